"""The implementations to test, and a context to run under one of them."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterator
from types import ModuleType

from pressmark import _kernels


@dataclasses.dataclass(frozen=True)
class Implementation:
    """A parameter of tests; its text is part of the name of the test, ``[native]`` or ``[pure]``."""

    name: str

    @property
    def kernels(self) -> ModuleType:
        return _kernels.load(self.name)

    def __str__(self) -> str:
        return self.name


NATIVE = Implementation("native")
PURE = Implementation("pure")


def native_is_missing() -> bool:
    """Return whether the extension modules are not installed.

    :raises ImportError: they are installed, but fail to load
    """
    try:
        _kernels.load("native")
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("pressmark._kernels.native."):
            raise
        return True
    return False


def implementations_to_test() -> list[Implementation]:
    """Return the available implementations, or the one that ``PRESSMARK_IMPLEMENTATION`` names."""
    wanted = os.environ.get("PRESSMARK_IMPLEMENTATION", "auto")
    if wanted != "auto":
        return [Implementation(wanted)]
    return [PURE] if native_is_missing() else [NATIVE, PURE]


def both_are_testable() -> bool:
    """Return whether tests that compare the two implementations run."""
    return os.environ.get("PRESSMARK_IMPLEMENTATION") != "pure" and not native_is_missing()


@contextlib.contextmanager
def use(implementation: Implementation) -> Iterator[None]:
    """Run the body under ``implementation``."""
    before = _kernels.active
    _kernels.active = implementation.kernels
    try:
        yield
    finally:
        _kernels.active = before
