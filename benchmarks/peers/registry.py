"""The peers, their pinned versions, and the layouts that each supports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pressmark
from benchmarks.peers import environments
from benchmarks.peers.environments import Command

__all__ = ["LAYOUTS", "PEERS", "Peer", "Subject"]


class Subject(NamedTuple):
    """A layout under one configuration."""

    key: str
    parameters: Mapping[str, Any] = MappingProxyType({})
    takes: str = ""

    @property
    def note(self) -> str:
        """The configuration, for headings."""
        return "".join(f", {name}={value}" for name, value in self.parameters.items())

    def layout(self, delimiter: str) -> pressmark.Layout:
        """Return the layout for identifiers whose prefix ends with ``delimiter``."""
        decided = {"delimiter": delimiter, "delimiters": [delimiter]}
        taken = {self.takes: decided[self.takes]} if self.takes else {}
        return pressmark.layout(self.key.partition(" ")[0], **self.parameters, **taken)


LAYOUTS = (
    Subject("pairtree"),
    Subject("0002"),
    Subject("0003"),
    Subject("0004"),
    Subject("0006", takes="delimiter"),
    Subject("0007", takes="delimiter"),
    Subject("0011"),
    Subject("0011 encode", {"encode_utf": True}),
    Subject("0012", takes="delimiters"),
)


class Peer(NamedTuple):
    """Another program that maps identifiers."""

    name: str
    version: str
    language: str
    subjects: tuple[str, ...]
    environment: Callable[[str], Command]
    slashes_around: bool = False
    """Whether its paths may begin or end with a slash, which does not count as a difference."""
    ours: bool = False

    @property
    def label(self) -> str:
        """Name and version."""
        return f"{self.name} {self.version}".strip()


_ALL = tuple(subject.key for subject in LAYOUTS)
_OCFL = ("0002", "0003", "0004", "0006", "0007")

PEERS = (
    Peer("Pressmark list", "", "Python", _ALL, environments.ours, ours=True),
    Peer("Pressmark lines", "", "Python", _ALL, environments.ours, ours=True),
    Peer("Pressmark arrow", "", "Python", _ALL, environments.ours, ours=True),
    Peer("Pressmark pure", "", "Python", _ALL, environments.ours, ours=True),
    Peer("document", "(a plain loop)", "Python", ("pairtree", "0003", "0012"), environments.python),
    Peer("pairtree", "0.8.1", "Python", ("pairtree",), environments.python),
    Peer("ptree", "0.3", "Python", ("pairtree",), environments.python, slashes_around=True),
    Peer("pypairtree", "1.1.0", "Python", ("pairtree",), environments.python, slashes_around=True),
    Peer("ocfl-py", "2.1.0", "Python", ("0002", "0003"), environments.python),
    Peer("rocfl", "1.7.0", "Rust", _OCFL, environments.cargo),
    Peer("ocfl-go", "0.11.1", "Go", _OCFL, environments.go),
    Peer("ocfl-java", "2.2.3", "Java", _OCFL, environments.maven),
)
