"""The lines of a plan: one object each, where it is and where it goes."""

from __future__ import annotations

import builtins
import json
from typing import NamedTuple

from pressmark.stores import StoreObject

__all__ = ["PlanEntry"]

_encode = json.JSONEncoder(separators=(",", ":")).encode
_decode = json.JSONDecoder().decode


class PlanEntry(NamedTuple):
    """One object that is to be migrated.

    :ivar id: its identifier in the destination
    :ivar source_id: its identifier in the source
    :ivar source: its place, relative to the source's root
    :ivar target: its place, relative to the destination's root
    :ivar encapsulation: of a Pairtree's object, as :class:`~pressmark.stores.StoreObject` has it
    :ivar files: how many it has
    :ivar bytes: how many they have together
    :ivar changed: when the newest of them was changed last, in nanoseconds since 1970
    """

    id: str
    source_id: str
    source: str
    target: str
    encapsulation: str | None
    files: int
    bytes: int
    changed: int

    def line(self) -> builtins.bytes:
        """Return the entry as a line of JSON; lone surrogates, which stand for octets, are escaped."""
        return _encode(self._asdict()).encode() + b"\n"

    @classmethod
    def parse(cls, line: builtins.bytes) -> PlanEntry:
        """Return the entry of a line.

        :raises ValueError: it is no line of a plan
        """
        try:
            return cls(**_decode(line.decode()))
        except TypeError as error:
            raise ValueError(str(error)) from None

    def record(self) -> StoreObject:
        """Return the source's object, as its walk had it."""
        return StoreObject(self.source_id, self.source, True, self.encapsulation, ())
