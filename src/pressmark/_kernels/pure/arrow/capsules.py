"""Capsules of the Arrow C data interface, offered to packages by the PyCapsule protocol."""

from __future__ import annotations

from typing import Any

__all__ = ["Capsules", "Description", "is_capsule"]

# A format, the fields of a struct (name, format, format of a dictionary's values), and the dictionary's format.
Description = tuple[str, tuple[tuple[str, str, str | None], ...], str | None]


class Capsules:
    """Capsules of a foreign object, offered again by the Arrow PyCapsule protocol."""

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
    """Return whether ``value`` is a capsule called ``name``."""
    # Only its repr contains the name of a capsule, and its type has no public name before Python 3.13.
    return type(value).__name__ == "PyCapsule" and repr(value).startswith(f'<capsule object "{name}" ')
