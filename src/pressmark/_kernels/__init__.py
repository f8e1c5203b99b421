"""The hot loops, implemented twice with identical behaviour: ``native`` (Cython and C) and ``pure`` (plain Python).

``PRESSMARK_IMPLEMENTATION`` selects one. ``native`` imports the extension modules or raises; ``pure`` never looks for
them; ``auto`` (the default) falls back to pure only if our extension modules are not installed. An extension module
that exists but fails to load is an error: a broken build must not run unnoticed at a thirtieth of the speed.

Kernels are total: they accept a column of bytes, return a column of bytes and a list of errors, and raise nothing. The
shared code above them checks arguments and words all messages.
"""

from __future__ import annotations

import contextlib
import importlib
import os
from importlib.machinery import EXTENSION_SUFFIXES
from types import ModuleType
from typing import TYPE_CHECKING

from pressmark.errors import PressmarkError

__all__ = ["IMPLEMENTATIONS", "active", "load"]

IMPLEMENTATIONS = ("native", "pure")
_VARIABLE = "PRESSMARK_IMPLEMENTATION"


def load(name: str) -> ModuleType:
    """Import the implementation ``name``, regardless of the environment."""
    return importlib.import_module(f"{__name__}.{name}")


def _select() -> ModuleType:
    wanted = os.environ.get(_VARIABLE, "auto")
    if wanted in IMPLEMENTATIONS:
        return load(wanted)
    if wanted != "auto":
        raise PressmarkError(f"{_VARIABLE}={wanted}: expected auto, native or pure")
    try:
        return load("native")
    except ModuleNotFoundError as error:
        # If only some of the modules are missing, the build is broken.
        ours = (error.name or "").startswith(f"{__name__}.native.")
        files = os.listdir(os.path.join(os.path.dirname(__file__), "native"))
        if not ours or any(name.endswith(tuple(EXTENSION_SUFFIXES)) for name in files):
            raise
        return load("pure")


def __getattr__(name: str) -> ModuleType:
    """Select ``active`` again; raises :class:`PressmarkError` for an unknown word in the environment."""
    if name == "active":
        return _select()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


if TYPE_CHECKING:
    from pressmark._kernels import pure as active
# An unknown word in the environment must not prevent the import: the command starts and reports it in one line. Any
# other error, such as a broken build, is raised here.
with contextlib.suppress(PressmarkError):
    active = _select()
