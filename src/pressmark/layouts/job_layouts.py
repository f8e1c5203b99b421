"""The layouts of one's own in jobs: worker processes import what their caller has imported."""

from __future__ import annotations

import importlib
from contextlib import suppress
from typing import Any

from pressmark.layouts.base import CLASSES

__all__ = ["BringsLayouts"]


class BringsLayouts:
    """A base of jobs: their worker processes import the modules of the layouts that the caller has imported."""

    def __getstate__(self) -> dict[str, Any]:
        modules = {cls.__module__ for cls in CLASSES.values() if not cls.__module__.startswith("pressmark.")}
        return {**vars(self), "layout_modules": sorted(modules)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for module in state.pop("layout_modules"):
            # Most jobs do not need the layout; without it, the others report an unknown layout.
            with suppress(Exception):
                importlib.import_module(module)
        vars(self).update(state)
