"""Update bags: payload, algorithms, metadata and version."""
