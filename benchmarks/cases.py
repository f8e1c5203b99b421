"""What is measured: layouts with parameters that suit a corpus, and the corpora that each can map."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import corpora
import pressmark
from pressmark.layouts import Layout

__all__ = ["CASES", "COLLECTIONS", "Case", "Collection", "pairs"]

#: What the vitro corpus lives in.
_NAMESPACES = {"f": "http://vivo.mydomain.edu/file/", "v": "http://vivo.mydomain.edu/"}


class Case(NamedTuple):
    """A layout under a short name of its own."""

    name: str
    layout: str
    parameters: Mapping[str, Any] = MappingProxyType({})
    takes: str = ""
    """The parameter that the corpus decides: ``delimiter``, ``delimiters`` or ``namespaces``."""

    def make(self, delimiter: str) -> Layout:
        """Return the layout, for identifiers whose prefix ``delimiter`` ends."""
        decided = {"delimiter": delimiter, "delimiters": [delimiter], "namespaces": _NAMESPACES}
        return pressmark.layout(
            self.layout, **self.parameters, **({self.takes: decided[self.takes]} if self.takes else {})
        )


CASES = {
    case.name: case
    for case in (
        Case("pairtree", "pairtree"),
        Case("vitro", "vitro", takes="namespaces"),
        Case("0002", "0002"),
        Case("0003-sha256", "0003"),
        Case("0003-md5", "0003", {"digest_algorithm": "md5"}),
        Case("0003-sha512", "0003", {"digest_algorithm": "sha512"}),
        Case("0004", "0004"),
        Case("0006", "0006", takes="delimiter"),
        Case("0007", "0007", takes="delimiter"),
        Case("0010", "0010", takes="delimiter"),
        Case("0011", "0011"),
        Case("0011-encode", "0011", {"encode_utf": True}),
        Case("0011-gocfl", "0011", {"rules": "gocfl"}),
        Case("0012", "0012", takes="delimiters"),
    )
}


class Collection(NamedTuple):
    """A corpus in an order, with or without hostile identifiers among it."""

    corpus: str
    order: str = "sorted"
    hostile_share: float = 0.0

    @property
    def name(self) -> str:
        """The name in test parameters and in the file of checksums."""
        return f"{self.corpus}{'+hostile' if self.hostile_share else ''}-{self.order}"

    def load(self, count: int) -> corpora.Corpus:
        """Return ``count`` of its identifiers."""
        return corpora.load(self.corpus, count, self.order, self.hostile_share)


#: Every corpus sorted; one shuffled too (the order changes memory access, not work), and one with hostile identifiers.
COLLECTIONS = (
    *(Collection(name) for name in corpora.NAMES),
    Collection("hathitrust", "shuffled"),
    Collection("hathitrust", "shuffled", corpora.HOSTILE_SHARE),
)

# What a layout was not made for, so that it refuses many or all: 0010's segments must use up the whole identifier.
# checksums.json says of each pair how many identifiers fail.
_ONLY = {"0010": ("druid",)}
_NOT = {
    "0002": ("vitro",),  # its "//" would be an empty segment
    "0007": ("disk-path",),  # not ASCII in places
    "vitro": ("disk-path",),  # not Latin-1 in places
}


def pairs() -> list[tuple[Case, Collection]]:
    """Return every case with every collection that it can map."""
    return [
        (case, collection)
        for case in CASES.values()
        for collection in COLLECTIONS
        if collection.corpus in _ONLY.get(case.name, (collection.corpus,))
        and collection.corpus not in _NOT.get(case.name, ())
    ]
