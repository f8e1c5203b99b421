"""How messages name an option: by its keyword to users of Python, by its flag to users of the command line."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

__all__ = ["as_flags", "option"]

# The flags that are not named after their keyword.
FLAGS = {"null": "-0", "algorithms": "-a"}

_are_flags = False


def option(name: str, value: str | bool | None = None) -> str:
    """Return how a message names an option, with the value that it advises.

    >>> option("kind"), option("replace", True), option("copy_mode", "auto")
    ('kind=', 'replace=True', "copy_mode='auto'")
    >>> with as_flags():
    ...     option("kind"), option("replace", True), option("copy_mode", "auto")
    ('--kind', '--replace', '--copy-mode auto')
    """
    if not _are_flags:
        return f"{name}=" if value is None else f"{name}={value!r}"
    flag = FLAGS.get(name, f"--{name.replace('_', '-')}")
    return flag if value is None or value is True else f"{flag} {value}"


@contextlib.contextmanager
def as_flags() -> Iterator[None]:
    """Name options by their flags within the block, in all threads."""
    global _are_flags
    before, _are_flags = _are_flags, True
    try:
        yield
    finally:
        _are_flags = before
