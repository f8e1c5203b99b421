"""Drawn and changed inventories: the check agrees with a naive one, however the object is read."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from pressmark.stores.objects import StoreObject
from pressmark.stores.ocfl.inventory import first_version, inventory_bytes, path_fault
from pressmark.stores.ocfl.inventory_rules import is_date_time, is_uri, path_conflicts
from pressmark.stores.ocfl.local.local_storage import LocalStorage
from pressmark.stores.ocfl.walk import walk_objects
from support.effort import stride

from .both_ways import all_verdicts
from .naive import is_valid
from .samples import CREATED, USER, save

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX files")

SHA512 = [hashlib.sha512(b"%d" % number).hexdigest() for number in range(3)]
WORDS = [
    "",
    "v1",
    "v2",
    "a.txt",
    "b",
    "b/c",
    "../b",
    "v1/content/a.txt",
    "v1/content/b",
    "info:x",
    "x",
    CREATED,
    "sha512",
]
WORDS += ["sha256", "a:b", "\u00e9", "\ud800", "a\\b", 'a"b', SHA512[0], SHA512[1].upper(), "0", *USER.values()]
KEYS = [
    "id",
    "type",
    "head",
    "manifest",
    "versions",
    "state",
    "created",
    "message",
    "user",
    "name",
    "address",
    "fixity",
]
VALUES = st.recursive(
    st.sampled_from(WORDS) | st.sampled_from([None, True, 0, 1.5, float("nan"), 10**30]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*KEYS, *WORDS[:-4]]), inner, max_size=3)
    ),
    max_leaves=4,
)


def plain(metadata: dict[str, Any]) -> dict[str, Any]:
    manifest = {SHA512[0]: ["v1/content/a.txt"], SHA512[1]: ["v1/content/b", "v1/content/c/d"]}
    state = {digest: [path.removeprefix("v1/content/") for path in paths] for digest, paths in manifest.items()}
    return first_version("info:x", "1.1", "sha512", manifest, {"created": CREATED, "state": state, **metadata})


def nodes(value: Any) -> list[Any]:
    """Return all containers in a JSON value."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [*([value] if isinstance(value, dict | list) else []), *(node for one in inner for node in nodes(one))]


@st.composite
def inventories(draw: st.DrawFn) -> bytes:
    """Draw the inventory of a plain object, with a few changes of values or bytes."""
    metadata = {key: {"message": "m:n", "user": dict(USER)}[key] for key in ("message", "user") if draw(st.booleans())}
    document = plain(metadata)
    for _ in range(draw(st.integers(0, 2))):
        node = draw(st.sampled_from(nodes(document)))
        if isinstance(node, list):
            node.insert(draw(st.integers(0, len(node))), draw(VALUES))
            if draw(st.booleans()):
                del node[draw(st.integers(0, len(node) - 1))]
        else:
            if node and draw(st.booleans()):
                del node[draw(st.sampled_from(sorted(node)))]
            if draw(st.booleans()):
                node[draw(st.sampled_from([*KEYS, *node, *SHA512]))] = draw(VALUES)
    data = json.dumps(document, ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 1])))
    raw = data.encode("utf-8", "surrogatepass")
    for _ in range(draw(st.integers(0, 2))):
        start = draw(st.integers(0, len(raw)))
        piece = draw(
            st.sampled_from([b"", b":", b'"', b'"id":"info:x",', b'"user":{},', b"\\", b"{", b"}", b"\xff", b"9", b" "])
        )
        end = start + draw(st.sampled_from([0, 0, 1, 8]))
        raw = raw[:start] + piece + raw[end:]
    if draw(st.booleans()):
        key = draw(st.sampled_from(KEYS)).encode()
        raw = raw.replace(
            b'"%s"' % key, b'"%s": %s, "%s"' % (key, draw(st.sampled_from([b'""', b"{}", b'"v1"'])), key), 1
        )
    return raw


# --- one object -------------------------------------------------------------------------------------------------------

CONTENT = {"v1/content/a.txt": b"0", "v1/content/b": b"1", "v1/content/c/d": b"1"}


class Sample:
    """One object, whose inventory changes.

    :ivar listed: its identifier in a listing
    :ivar advice: the codes of the recommendations that it does not follow
    """

    def __init__(self, top: Path) -> None:
        self.top = top
        self.folder = top / "o"
        self.listed: str | None = None
        self.advice: set[str] = set()
        for name, data in CONTENT.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_bytes(data)
        (self.folder / "0=ocfl_object_1.1").write_bytes(b"ocfl_object_1.1\n")

    def is_valid(self, data: bytes) -> bool:
        """Return whether the object is valid with an inventory; all checks must agree."""
        save(self.folder, data)
        alone, *together = all_verdicts(self.top, "o")
        assert together
        for one in together:
            assert one == alone, data
        assert alone.is_valid == is_valid(self.folder), (data, alone.problems)
        self.advice = {advice.code for advice in alone.advice}
        return alone.is_valid

    def list(self, data: bytes) -> str | None:
        """Return the identifier in a listing; it must be that of the whole inventory, which is read if need be."""
        save(self.folder, data)
        storage = LocalStorage(os.fsencode(self.top))
        found = [
            one.id
            for one in walk_objects(storage, lambda found: [[]] * len(found), lambda *_: True, 1, ())
            if isinstance(one, StoreObject)
        ]
        assert len(found) == 1
        return found[0]


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    return Sample(tmp_path_factory.mktemp("drawn"))


@settings(max_examples=400, suppress_health_check=list(HealthCheck), deadline=None)
@given(data=inventories())
def test_drawn_inventories(sample: Sample, data: bytes) -> None:
    sample.is_valid(data)


BYTES = [
    b"",
    b'"',
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b" ",
    b"\x00",
    b"\x1f",
    b"\x7f",
    b"\xff",
    b"/",
    b".",
    b"0",
    b"A",
]


def mutations(data: bytes, every: int) -> Iterator[bytes]:
    """Yield ``data`` with one byte replaced, removed, inserted, repeated or swapped with the next one."""
    number = 0
    for at in range(len(data) + 1):
        one, two = data[at : at + 1], data[at + 1 : at + 2]
        changed = [byte + data[at + 1 :] for byte in (*BYTES, one.swapcase(), two + one + two, one + one)]
        inserted = [byte + data[at:] for byte in (b'"', b",", b"}", b"\n", b"\xc3", b"\xef\xbb\xbf")]
        for tail in (*changed, two + one + data[at + 2 :], *inserted):
            number += 1
            if number % every == 0:
                yield data[:at] + tail


@pytest.mark.long
def test_every_byte_of_an_inventory(sample: Sample) -> None:
    """Whatever byte of an inventory is changed, all checks agree."""
    user = {"name": "A \u00e9", "address": "mailto:a@b"}
    document = plain({"message": "m: n", "user": user})
    valid = 0
    for data in (inventory_bytes(document), json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()):
        assert sample.is_valid(data)
        for one in mutations(data, stride(97)):
            valid += sample.is_valid(one)
    # White space, and changes of the message, the name and the identifier.
    assert valid > 20


def test_parts_of_an_inventory(sample: Sample) -> None:
    """Lines are removed, repeated or swapped."""
    lines = inventory_bytes(plain({"message": "m", "user": dict(USER)})).splitlines(keepends=True)
    for number, other in [*itertools.product(range(len(lines)), repeat=2)][:: stride(5)]:
        changed = [*lines]
        changed[number], changed[other] = changed[other], changed[number]
        sample.is_valid(b"".join(changed))
        sample.is_valid(b"".join([*lines[:number], lines[other], *lines[number:]]))
        sample.is_valid(b"".join([*lines[:number], *lines[other:]]))


def test_digests(sample: Sample) -> None:
    """Digests and paths of manifest and state do not fit."""
    first, second = SHA512[:2]
    one, two = ["v1/content/a.txt"], ["v1/content/b", "v1/content/c/d"]
    others = [digit * 128 for digit in "09af"]
    manifests: list[dict[str, list[str]]] = [
        {first: one, second: two},
        {first: one, second: two[::-1]},
        {second: one, first: two},
        {first: one, second: two[:1]},
        {first: one, second: [two[0], two[0]]},
        {first: one, second: [*two, one[0]]},
        {first: one, second: [two[0], "v1/content/c"]},
        {first: [*one, two[0]], second: two[1:]},
        *({first: one, second: two, other: ["v1/content/e"]} for other in others),
        *({first: one, second: two[:1], other: two[1:]} for other in others),
        *({first: one, other: two} for other in others),
        *({first: one, second: two, other: []} for other in others),
    ]
    for manifest in manifests:
        states = [{digest: ["x"] for digest in manifest}, {digest: [digest[:3]] for digest in manifest}]
        states += [{**states[1], other: ["y"]} for other in (*others, first.upper())]
        states += [{**states[1], other: []} for other in manifest]
        states += [{digest: paths for digest, paths in states[1].items() if digest != less} for less in manifest]
        for state in states:
            document = plain({})
            document["manifest"], document["versions"]["v1"]["state"] = manifest, state
            sample.is_valid(json.dumps(document).encode())
    document = plain({})
    assert sample.is_valid(json.dumps(document).encode())
    exchanged = json.dumps(document).replace(first, "~").replace(second, first).replace("~", second)
    assert not sample.is_valid(exchanged.encode())
    # A digest that is repeated in manifest and state alike.
    repeated = re.sub(r'"((?:v1/content/)?b)", "', rf'"\1"], "{second}": ["', json.dumps(document))
    assert repeated.count(second) == 4
    assert not sample.is_valid(repeated.encode())


@pytest.mark.parametrize("metadata", [{}, {"message": "m:n"}, {"message": "", "user": USER}, {"user": {"name": "n"}}])
def test_usual_inventories(sample: Sample, metadata: dict[str, Any]) -> None:
    """Inventories of Pressmark, and compact ones, are valid."""
    document = plain(metadata)
    document["versions"]["v1"]["state"][SHA512[0]].append("another: copy")
    assert sample.is_valid(inventory_bytes(document))
    assert sample.is_valid(json.dumps(document, separators=(",", ":")).encode())


VALUES_AT = [("id",), ("type",), ("head",), ("versions", "v1", "message"), ("versions", "v1", "created")]
VALUES_AT += [("versions", "v1", "user"), ("versions", "v1", "user", "name"), ("versions", "v1", "user", "address")]
VALUES_AT += [("manifest",), ("versions",), ("versions", "v1"), ("versions", "v1", "state"), ("more",), ("fixity",)]


@pytest.mark.parametrize("place", VALUES_AT, ids="/".join)
def test_values(sample: Sample, place: tuple[str, ...]) -> None:
    """Values are empty, unusual or of another type."""
    for value in ("", " ", "x", "v1", "sha512", "0", {}, [], ["x"], {"x": "y"}, {"name": "n", "x": "y"}, None, 0, True):
        document = plain({"message": "m", "user": dict(USER)})
        block = document
        for key in place[:-1]:
            block = block[key]
        block[place[-1]] = value
        sample.is_valid(json.dumps(document).encode())


def test_identifiers_in_a_listing(sample: Sample) -> None:
    """A listing finds the identifier that the whole inventory has."""
    keys = [b"type", b"", b"a b", b"ty\xffpe", b"a1", b"ids", b"ID", b"\xc3\xa9"]
    values = [b'"x"', b'""', b'"\xff"', b'"\\""', b"1", b"{}", b'["x"]', b'{"id": "y"}']
    heads = [b'"%s": %s, ' % pair for pair in itertools.product(keys, values)] + [b"", b", ", b'"id", ']
    for head, identifier in itertools.product(heads, (b'"a"', b'"\xc3\xa9"', b'"\xff"', b'""', b'"\\u0041"', b"1")):
        data = b' {%s"id" : %s}' % (head, identifier)
        try:
            expected = json.loads(data.decode())["id"]
        except ValueError:
            continue  # a listing does not read the whole inventory
        assert sample.list(data) == (expected if isinstance(expected, str) and expected else None), data


def test_dates(sample: Sample) -> None:
    """``created`` is accepted if and only if it is a date and time of RFC 3339."""
    dates = [
        f"{year}-{month:02}-{day:02}T00:00:00Z"
        for year in ("0000", "0001", "1900", "2000", "2023", "2024", "9999")
        for month in (0, 1, 2, 4, 12, 13)
        for day in (0, 1, 28, 29, 30, 31, 32)
    ]
    times = [
        "23:59:60",
        "24:00:00",
        "00:60:00",
        "00:00:61",
        "0:00:00",
        "00:00",
        "00:00:00.1",
        "00:00:00.",
        "00:00:00,1",
    ]
    zones = ["Z", "z", "", "+00:00", "-23:59", "+24:00", "+00:60", "+0000", "+00", "Z ", "+00:000", ".5Z"]
    dates += [f"2024-02-03{mark}{time}{zone}" for mark in "Tt " for time in ("00:00:00", *times) for zone in zones]
    dates += ["", "2024", "24-01-01T00:00:00Z", "2024-1-1T00:00:00Z", "+024-01-01T00:00:00Z", "2024/01/01T00:00:00Z"]
    for created in dates:
        document = plain({})
        document["versions"]["v1"]["created"] = created
        assert sample.is_valid(json.dumps(document).encode()) == is_date_time(created), created


def test_uris(sample: Sample) -> None:
    """Identifiers and addresses that are not URIs are advised against."""
    characters = [chr(number) for number in range(0x20, 0x7F) if chr(number) not in '"\\'] + [
        "\u00e9",
        "%41",
        "%4",
        "%gg",
    ]
    texts = ["x", ":", "a:", ":a", "1:a", "a1+.-:x", "a:b:c"]
    texts += [text for one in characters for text in (f"a:{one}", f"{one}:a", f"a{one}:a", f"a:b{one}c")]
    for text in texts:
        document = plain({"user": {"name": "n", "address": text}})
        document["id"] = text
        data = json.dumps(document, ensure_ascii=False).encode()
        assert sample.is_valid(data), text
        assert sample.advice == {"W007", *(() if is_uri(text) else ("W005", "W009"))}, text


def test_logical_paths(sample: Sample) -> None:
    """A state is accepted if and only if its paths are valid and none is another one or a directory of it."""
    elements = ["a", "a!", "aa", ".", "..", "...", ".a", "", "b"]
    paths = [*elements, *map("/".join, itertools.product(["a", "a!", "..", ""], ["a", "b", ".", ""]))]
    for one, other in itertools.product(paths, repeat=2):
        document = plain({})
        # In the order of bytes, the third path is between a directory and its files.
        named = ["a!x", one, other]
        document["versions"]["v1"]["state"] = {SHA512[0]: named[1:2], SHA512[1]: [named[0], other]}
        is_valid = not any(map(path_fault, named)) and len(set(named)) == 3 and not path_conflicts(named)
        assert sample.is_valid(json.dumps(document).encode()) == is_valid, named
