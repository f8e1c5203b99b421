"""The hot loops, twice: ``native`` (Cython and C) and ``pure`` (plain Python), one behaviour.

``PRESSMARK_IMPLEMENTATION`` chooses: ``native`` imports or raises, ``pure`` never looks for the extension, and
``auto`` (the default) falls back to pure only where our own extension is not installed. An extension that is
there and fails to load is an error: a broken build must be seen, not survived at a thirtieth of the speed.

Kernels are total: they get packed bytes, return packed bytes and a list of errors, and raise nothing of their own.
All checking of arguments and all messages are in the shared code above them.
"""

from __future__ import annotations

import contextlib
import importlib
import os
from importlib.machinery import EXTENSION_SUFFIXES
from types import ModuleType

from pressmark.errors import PressmarkError

__all__ = ["IMPLEMENTATIONS", "active", "load"]

IMPLEMENTATIONS = ("native", "pure")
_VARIABLE = "PRESSMARK_IMPLEMENTATION"


def load(name: str) -> ModuleType:
    """Import the twin called ``name``, whatever the environment says."""
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
        # One module missing beside others is a broken build as well.
        ours = (error.name or "").startswith(f"{__name__}.native.")
        beside = os.listdir(os.path.join(os.path.dirname(__file__), "native"))
        if not ours or any(name.endswith(tuple(EXTENSION_SUFFIXES)) for name in beside):
            raise
        return load("pure")


def __getattr__(name: str) -> ModuleType:
    """Refuse ``active`` where the environment asked for something else than the three words, whenever it is needed."""
    if name == "active":
        return _select()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


active: ModuleType
# A wrong word in the environment must not keep the package from being imported: the command has to come up to say so
# in one line. Everything else that is wrong, such as a broken build, is seen at once.
with contextlib.suppress(PressmarkError):
    active = _select()
