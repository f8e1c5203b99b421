"""The face of a package: public names, each imported from its module when it is first used."""

from __future__ import annotations

import importlib
import sys

TYPE_CHECKING = False  # without typing, whose import takes longer than the rest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

__all__ = ["face"]


def face(
    package: str, modules: Mapping[str, str], own: str = ""
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__all__``, ``__getattr__`` and ``__dir__`` of a package: most of its users need few of its modules.

    :param package: its name
    :param modules: the names of each module, separated by spaces; a leading dot is the package, and a module without
        names is itself a public name
    :param own: public names that the package defines itself
    """
    places = {name: module for module, names in modules.items() for name in names.split() or [module.lstrip(".")]}
    everything = sorted([*places, *own.split()])

    def find(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = importlib.import_module(places[name], package)
        found = getattr(module, name) if modules[places[name]] else module
        setattr(sys.modules[package], name, found)
        return found

    return everything, find, lambda: everything
