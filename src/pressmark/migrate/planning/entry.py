"""The lines of a plan: the path of each object in source and destination."""

from __future__ import annotations

import builtins
import json
from typing import NamedTuple

from pressmark.stores import StoreObject

__all__ = ["PlanEntry"]

# Every object of a migration has a line, and its keys and their order are known.
_LINE = '{"id":%s,"source_id":%s,"source":%s,"target":%s,"encapsulation":%s,"files":%d,"bytes":%d,"entries":%s}\n'
_encode = json.encoder.encode_basestring_ascii
_decode = json.JSONDecoder().decode


class PlanEntry(NamedTuple):
    """One object to migrate.

    :ivar id: identifier in the destination
    :ivar source_id: identifier in the source
    :ivar source: path relative to the source
    :ivar target: path relative to the destination
    :ivar encapsulation: encapsulating directory of a Pairtree object, as in :class:`~pressmark.stores.StoreObject`
    :ivar files: number of files
    :ivar bytes: total size of all files
    :ivar entries: the state of all its entries, see :func:`~pressmark.migrate.object_state.entries_digest`
    """

    id: str
    source_id: str
    source: str
    target: str
    encapsulation: str | None
    files: int
    bytes: int
    entries: str

    def line(self) -> builtins.bytes:
        """Return the entry as a line of JSON; surrogates for bytes that are not UTF-8 are escaped."""
        encapsulation = "null" if self.encapsulation is None else _encode(self.encapsulation)
        texts = _encode(self.id), _encode(self.source_id), _encode(self.source), _encode(self.target)
        return (_LINE % (*texts, encapsulation, self.files, self.bytes, _encode(self.entries))).encode()

    @classmethod
    def parse(cls, line: builtins.bytes) -> PlanEntry:
        """Return the entry of a line.

        :raises ValueError: the line is malformed
        """
        try:
            return cls(**_decode(line.decode()))
        except TypeError as error:
            raise ValueError(str(error)) from None

    def record(self) -> StoreObject:
        """Return the record of the object in the source."""
        return StoreObject(self.source_id, self.source, True, self.encapsulation, ())
