"""Layouts of other distributions: the entry points of the group ``pressmark.layouts``."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any

from pressmark.errors import LayoutConfigError, quoted
from pressmark.layouts.base import CLASSES, Layout

__all__ = ["find_entry_points", "load_layout", "refusal"]

GROUP = "pressmark.layouts"


def find_entry_points() -> dict[str, EntryPoint]:
    """Return the entry points of layouts by name; of several with one name, the first that Python finds."""
    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=GROUP):
        found.setdefault(entry.name, entry)
    return found


def load_layout(entry: EntryPoint) -> type[Layout]:
    """Return the layout class of an entry point.

    :raises LayoutConfigError: it cannot be imported, is not a layout, or has another name or unusable fields
    """
    try:
        found: Any = entry.load()
    except Exception as error:
        cause = " ".join(f"{type(error).__name__}: {error}".split())
        raise refusal(entry, f"cannot import {entry.value} ({cause}); reinstall or repair the distribution") from None
    if not (isinstance(found, type) and issubclass(found, Layout)):
        raise refusal(entry, f"{entry.value} is not a subclass of pressmark.Layout; correct the entry point")
    name = getattr(found, "name", None)
    if name != entry.name:
        shown = "no name" if name is None else f"the name {quoted(str(name))}"
        raise refusal(entry, f"{entry.value} has {shown}; give the class and the entry point the same name")
    try:
        found.parameters()
    except TypeError as error:
        CLASSES.pop(found.name, None)  # lists have only usable layouts
        raise refusal(entry, f"{entry.value} is not usable ({error})") from None
    return found


def refusal(entry: EntryPoint, reason: str) -> LayoutConfigError:
    """Return the error for an entry point, with the name of its distribution."""
    owner = entry.dist.name if entry.dist is not None else "unknown"
    return LayoutConfigError("layout", f"entry point {quoted(entry.name)} of distribution {owner}: {reason}")
