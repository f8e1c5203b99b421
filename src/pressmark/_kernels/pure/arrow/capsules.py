"""Capsules of the Arrow C data interface, for libraries that ask an object for them."""

from __future__ import annotations

from typing import Any

__all__ = ["Capsules", "Description", "is_capsule"]

# A format, the fields of a struct (name, format, format of a dictionary's values), and the latter of the whole.
Description = tuple[str, tuple[tuple[str, str, str | None], ...], str | None]


class Capsules:
    """What was in a foreign object's hands, offered again by the Arrow PyCapsule protocol."""

    def __init__(self, schema: Any = None, array: Any = None, stream: Any = None) -> None:
        self.schema = schema
        self.array = array
        self.stream = stream

    def __arrow_c_schema__(self) -> Any:
        return self.schema

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        return self.schema, self.array

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.stream


def is_capsule(value: Any, name: str) -> bool:
    """Return whether ``value`` is a capsule of that name."""
    # Capsules say their name nowhere else, and have no type of a name before Python 3.13.
    return type(value).__name__ == "PyCapsule" and repr(value).startswith(f'<capsule object "{name}" ')
