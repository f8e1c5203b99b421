"""The layouts to measure, with parameters that suit a corpus, and the corpora that each layout maps."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pressmark
from benchmarks import corpora
from pressmark.layouts import Layout

__all__ = ["CASES", "COLLECTIONS", "Case", "Collection", "pairs"]

#: The namespaces of the vitro corpus.
_NAMESPACES = {"f": "http://vivo.mydomain.edu/file/", "v": "http://vivo.mydomain.edu/"}


class Case(NamedTuple):
    """A layout and its parameters under a short name."""

    name: str
    layout: str
    parameters: Mapping[str, Any] = MappingProxyType({})
    takes: str = ""
    """The parameter whose value depends on the corpus: ``delimiter``, ``delimiters`` or ``namespaces``."""

    def make(self, delimiter: str) -> Layout:
        """Return the layout for identifiers whose prefix ends with ``delimiter``."""
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
    """A corpus in an order, with or without hostile identifiers."""

    corpus: str
    order: str = "sorted"
    hostile_share: float = 0.0

    @property
    def name(self) -> str:
        """The name in ``checksums.json``."""
        return f"{self.corpus}{'+hostile' if self.hostile_share else ''}-{self.order}"

    def load(self, count: int) -> corpora.Corpus:
        """Return ``count`` of its identifiers."""
        return corpora.load(self.corpus, count, self.order, self.hostile_share)


#: Every corpus sorted, one also shuffled (the order changes memory access only), and one with hostile identifiers.
COLLECTIONS = (
    *(Collection(name) for name in corpora.NAMES),
    Collection("hathitrust", "shuffled"),
    Collection("hathitrust", "shuffled", corpora.HOSTILE_SHARE),
)

# Left out: corpora of which a layout refuses many identifiers or all. 0010 needs identifiers of one length.
# checksums.json has the number of refused identifiers of each pair.
_ONLY = {"0010": ("druid",)}
_NOT = {
    "0002": ("vitro",),  # "//" makes an empty segment
    "0007": ("disk-path",),  # not all ASCII
    "vitro": ("disk-path",),  # not all Latin-1
}


def pairs() -> list[tuple[Case, Collection]]:
    """Return every case with every collection that it maps."""
    return [
        (case, collection)
        for case in CASES.values()
        for collection in COLLECTIONS
        if collection.corpus in _ONLY.get(case.name, (collection.corpus,))
        and collection.corpus not in _NOT.get(case.name, ())
    ]
