"""What a peer reports about objects that Pressmark writes, and that is not so by the specification.

Each entry is tried: the peer reports its example, and the same object without the cause is not reported.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from pressmark.layouts import Layout

__all__ = ["DISAGREEMENTS", "Disagreement", "Example", "Subject", "unexplained"]


class Subject(NamedTuple):
    """An object that a peer validates.

    :ivar by_id: it is looked up by its identifier
    """

    layout: Layout
    identifier: str
    folder: Path
    by_id: bool = False


class Example(NamedTuple):
    """An object with one file.

    :ivar layout: the word of a layout
    :ivar is_mapped: its content paths are those of extension 0011
    :ivar is_upgraded: the second version has the file again under another name, the third another digest algorithm
    :ivar dedup: content of the second version is not stored again
    """

    layout: str = "0003"
    identifier: str = "info:x"
    name: str = "a"
    fixity: tuple[str, ...] = ()
    is_mapped: bool = False
    is_upgraded: bool = False
    dedup: bool = True


class Disagreement(NamedTuple):
    """An error or a warning of peers.

    :ivar report: a regular expression of the peers' words
    :ivar cause: returns whether an object has what the peers report
    :ivar sentence: of the specification
    :ivar example: the smallest object with the cause
    :ivar control: the same object without the cause
    """

    peers: tuple[str, ...]
    what: str
    report: str
    cause: Callable[[Subject], bool]
    sentence: str
    example: Example
    control: Example


def _has_escapes(subject: Subject) -> bool:
    return any(b"\\" in path.read_bytes() for path in subject.folder.glob("**/inventory.json"))


def _has_sha512_256(subject: Subject) -> bool:
    return "sha512/256" in json.loads((subject.folder / "inventory.json").read_bytes()).get("fixity", {})


def _is_under_no_tuples(subject: Subject) -> bool:
    return subject.by_id and subject.layout.config().get("tupleSize") == 0


def _is_beyond_two_bytes(subject: Subject) -> bool:
    return subject.by_id and subject.layout.name.startswith("0003") and any(c > "\u07ff" for c in subject.identifier)


def _has_copies_in_versions_and_algorithms(subject: Subject) -> bool:
    paths = [subject.folder / "inventory.json", *subject.folder.glob("v*/inventory.json")]
    inventories = [json.loads(path.read_bytes()) for path in paths]
    versions = [{path.partition("/")[0] for path in paths} for paths in inventories[0]["manifest"].values()]
    return len({one["digestAlgorithm"] for one in inventories}) > 1 and any(len(some) > 1 for some in versions)


_JSON = (
    "OCFL 1.1, 3.5: 'An OCFL Object Inventory MUST follow the JSON (defined by [RFC8259]) structure'; RFC 8259, 7: "
    "'Any character may be escaped.'"
)

DISAGREEMENTS = (
    Disagreement(
        ("rocfl",),
        "rejects paths with characters that JSON escapes",
        r"\[E(051|092)\].* must reference an array of strings",
        _has_escapes,
        _JSON,
        Example(name='a"b'),
        Example(name="a'b"),
    ),
    Disagreement(
        ("rocfl",),
        "rejects identifiers with characters that JSON escapes",
        r"\[E037\].*'id' must be a string|Not found: Object",
        _has_escapes,
        _JSON,
        Example(identifier='info:a"b'),
        Example(identifier="info:a'b"),
    ),
    Disagreement(
        ("rocfl",),
        "finds no object of layout 0003 without tuples by its identifier",
        "Not found: Object",
        _is_under_no_tuples,
        "Extension 0003: 'the OCFL object identifier is percent-encoded to create a directory name for the OCFL object "
        "root'; rocfl takes the digest",
        Example(layout="0003-flat"),
        Example(),
    ),
    Disagreement(
        ("ocfl-java",),
        "finds no object of layout 0003 by an identifier with a character above U+07FF",
        "NotFoundException",
        _is_beyond_two_bytes,
        "Extension 0003: 'it is percent-encoded using the lower-case hex characters of its UTF-8 encoding'; ocfl-java "
        "writes the first digit in upper case",
        Example(identifier="info:\u4f8b"),
        Example(identifier="info:\u00e9"),
    ),
    Disagreement(
        ("ocfl-java", "rocfl"),
        "rejects the states before a copy of content that an inventory with another digest algorithm lists",
        r"E066.*(is inconsistent with later|maps to different content paths than it does in later) inventories",
        _has_copies_in_versions_and_algorithms,
        "OCFL 1.1, 3.7: 'each version block in each prior inventory file MUST represent the same object state as the "
        "corresponding version block in the current inventory file'; these peers omit later copies on one side only",
        Example(is_upgraded=True, dedup=False),
        Example(is_upgraded=True),
    ),
    Disagreement(
        ("ocfl-py",),
        "rejects sha512/256 in the fixity block",
        r"\[E056b\]",
        _has_sha512_256,
        "OCFL 1.1, 3.5.4: 'the controlled vocabulary of digest algorithm names listed in the Digests section, or in a "
        "table given in an Extension'; extension 0009 has it",
        Example(fixity=("sha512/256",)),
        Example(fixity=("sha512", "blake2b-160")),
    ),
    Disagreement(
        ("ocfl-py", "rocfl", "ocfl-java", "ocfl-go"),
        "warns of extension 0011 as unregistered",
        "W013.*0011-direct-clean-path-layout",
        lambda subject: True,
        "OCFL 1.1, 3.9: 'Extension sub-directories SHOULD be named according to a registered extension name'; 0011 is "
        "registered since 2024",
        Example(is_mapped=True),
        Example(),
    ),
)


def unexplained(peer: str, subject: Subject, texts: Sequence[str]) -> tuple[list[str], set[str]]:
    """Return the errors or warnings that no entry explains, and the entries that explain the others."""
    known = [one for one in DISAGREEMENTS if peer in one.peers and one.cause(subject)]
    left, used = [], set()
    for text in texts:
        reasons = {one.what for one in known if re.search(one.report, text)}
        used |= reasons
        if not reasons:
            left.append(text)
    return left, used
