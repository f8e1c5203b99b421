"""The report on a store: how much it contains, its growth, its formats, its problems, and what is verified."""
