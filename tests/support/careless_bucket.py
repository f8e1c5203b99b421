"""A bucket of a server that accepts conditions and ignores them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pressmark.buckets.bucket import ANY
from pressmark.buckets.memory import MemoryBucket

__all__ = ["CarelessBucket"]

CONDITIONS: dict[str, dict[str, Any]] = {
    "put": {"over": ANY},
    "complete": {"over": ANY},
    "copy": {"over": ANY},
    "delete": {"token": None},
}


class CarelessBucket(MemoryBucket):
    """A bucket in memory that ignores the conditions of some calls; without any, of all."""

    def __init__(self, *calls: str, **options: Any) -> None:
        super().__init__(**options)
        for name in calls or CONDITIONS:
            setattr(self, name, _ignoring(getattr(self, name), CONDITIONS[name]))


def _ignoring(call: Callable[..., Any], condition: dict[str, Any]) -> Callable[..., Any]:
    return lambda *arguments, **options: call(*arguments, **{**options, **condition})
