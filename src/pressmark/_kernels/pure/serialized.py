"""A lock for objects that several threads use at the same time."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import Lock
from typing import Concatenate, ParamSpec, Protocol, TypeVar

__all__ = ["serialized"]


class _Locked(Protocol):
    _lock: Lock


Owner = TypeVar("Owner", bound=_Locked)
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def serialized(
    method: Callable[Concatenate[Owner, Arguments], Result],
) -> Callable[Concatenate[Owner, Arguments], Result]:
    """Decorate ``method`` to hold the object's ``_lock`` while it runs."""

    @wraps(method)
    def run(self: Owner, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        with self._lock:
            return method(self, *args, **kwargs)

    return run
