"""Inventories: reading, writing, and every validation rule."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

from pressmark.stores import problems as kinds
from pressmark.stores.ocfl.history_rules import history_findings, order_finding, unset_finding
from pressmark.stores.ocfl.inventory import (
    InventoryError,
    inventory_bytes,
    logical_files,
    read_inventory,
    scan_identifier,
    sidecar_bytes,
    sidecar_digest,
    version_state,
)
from pressmark.stores.ocfl.inventory_rules import inventory_findings, path_fault, version_number

from .samples import CREATED, USER

ONE, TWO, THREE = "1" * 128, "2" * 128, "3" * 128

GOOD: dict[str, Any] = {
    "id": "info:x/1",
    "type": "https://ocfl.io/1.1/spec/#inventory",
    "digestAlgorithm": "sha512",
    "head": "v2",
    "contentDirectory": "content",
    "manifest": {ONE: ["v1/content/a", "v1/content/d/b"], TWO: ["v2/content/a"]},
    "versions": {
        "v1": {"created": CREATED, "message": "first", "user": USER, "state": {ONE: ["a", "d/b"]}},
        "v2": {"created": CREATED, "message": "second", "user": USER, "state": {TWO: ["a"], ONE: ["c"]}},
    },
    "fixity": {"md5": {"4" * 32: ["v1/content/a"]}},
}


def test_a_good_inventory_has_no_findings() -> None:
    assert inventory_findings(GOOD, "1.1") == []


Change = Callable[[dict[str, Any]], object]


def without(*path: str) -> Change:
    def change(document: dict[str, Any]) -> None:
        for key in path[:-1]:
            document = document[key]
        del document[path[-1]]

    return change


def having(*path_and_value: Any) -> Change:
    *path, last, value = path_and_value

    def change(document: dict[str, Any]) -> None:
        for key in path:
            document = document[key]
        document[last] = value

    return change


def both(*changes: Change) -> Change:
    def change(document: dict[str, Any]) -> None:
        for one in changes:
            one(document)

    return change


def upper_twice(document: dict[str, Any]) -> None:
    lower, upper = "ab" * 64, "AB" * 64
    document["manifest"].update({lower: ["v1/content/x"], upper: ["v1/content/y"]})
    document["versions"]["v2"]["state"].update({lower: ["x"], upper: ["y"]})


V1 = ("versions", "v1")
RULES: list[tuple[str, str, str, Change]] = [
    ("no id", "inventory-key-missing", "E036", without("id")),
    ("no type", "inventory-key-missing", "E036", without("type")),
    ("no digestAlgorithm", "inventory-key-missing", "E036", without("digestAlgorithm")),
    ("no head", "inventory-key-missing", "E036", without("head")),
    ("no manifest", "inventory-key-missing", "E041", without("manifest")),
    ("no versions", "inventory-key-missing", "E041", without("versions")),
    ("a key of its own", "inventory-key-unknown", "E102", having("colour", "red")),
    ("id empty", "inventory-value", "E037", having("id", "")),
    ("id a number", "inventory-value", "E037", having("id", 7)),
    ("type of another version", "inventory-value", "E038", having("type", "https://ocfl.io/1.0/spec/#inventory")),
    ("type of no version", "inventory-value", "E038", having("type", "https://ocfl.io/1.7/spec/#inventory")),
    ("type a word", "inventory-value", "E038", having("type", "inventory")),
    ("md5", "digest-algorithm", "E025", having("digestAlgorithm", "md5")),
    ("algorithm a list", "digest-algorithm", "E025", having("digestAlgorithm", "SHA512")),
    ("contentDirectory with slash", "inventory-value", "E017", having("contentDirectory", "a/b")),
    ("contentDirectory above", "inventory-value", "E018", having("contentDirectory", "..")),
    ("head not the newest", "inventory-value", "E040", having("head", "v1")),
    ("head a number", "inventory-value", "E040", having("head", 2)),
    ("versions a list", "inventory-value", "E044", having("versions", [])),
    ("no version", "version-absent", "E008", having("versions", {})),
    ("no first version", "version-absent", "E009", without("versions", "v1")),
    (
        "a version left out",
        "version-absent",
        "E010",
        lambda d: d["versions"].update({"v4": d["versions"].pop("v2")}),
    ),
    ("a version called 2", "version-name", "E104", lambda d: d["versions"].update({"2": d["versions"].pop("v2")})),
    ("a version called v0", "version-name", "E104", lambda d: d["versions"].update({"v0": d["versions"]["v2"]})),
    ("padding mixed", "version-name", "E012", lambda d: d["versions"].update({"v02": d["versions"].pop("v2")})),
    ("a version a text", "inventory-value", "E047", having("versions", "v1", "x")),
    ("a version's key", "inventory-key-unknown", "E102", having(*V1, "colour", "red")),
    ("no created", "inventory-key-missing", "E048", without(*V1, "created")),
    ("no state", "inventory-key-missing", "E048", without(*V1, "state")),
    ("no zone", "inventory-value", "E049", having(*V1, "created", "2026-01-02T03:04:05")),
    ("no seconds", "inventory-value", "E049", having(*V1, "created", "2026-01-02T03:04Z")),
    ("no such day", "inventory-value", "E049", having(*V1, "created", "2026-02-30T03:04:05Z")),
    ("no such hour", "inventory-value", "E049", having(*V1, "created", "2026-02-03T24:04:05Z")),
    ("created a number", "inventory-value", "E049", having(*V1, "created", 2026)),
    ("message a list", "inventory-value", "E094", having(*V1, "message", [])),
    ("user a text", "inventory-value", "E054", having(*V1, "user", "me")),
    ("user without name", "inventory-value", "E054", having(*V1, "user", {"address": "mailto:x@y"})),
    ("user's key", "inventory-key-unknown", "E102", having(*V1, "user", {**USER, "age": 7})),
    ("address a number", "inventory-value", "E054", having(*V1, "user", {"name": "x", "address": 7})),
    ("state a list", "inventory-value", "E050", having(*V1, "state", [])),
    ("state's paths a text", "inventory-value", "E050", having(*V1, "state", ONE, "a")),
    ("digest not in the manifest", "digest-unknown", "E050", having(*V1, "state", THREE, ["z"])),
    ("state's digest cut", "digest-malformed", "E050", having(*V1, "state", "12", ["z"])),
    ("logical path at root", "path-malformed", "E053", having(*V1, "state", ONE, ["/a"])),
    ("logical path with end", "path-malformed", "E053", having(*V1, "state", ONE, ["a/"])),
    ("logical path upward", "path-malformed", "E052", having(*V1, "state", ONE, ["a/../b"])),
    ("logical path empty", "path-malformed", "E052", having(*V1, "state", ONE, [""])),
    ("logical path twice", "path-repeated", "E095", having(*V1, "state", ONE, ["a", "a"])),
    ("file and directory", "path-conflict", "E095", having(*V1, "state", ONE, ["a", "a/b/c"])),
    ("manifest a list", "inventory-value", "E106", having("manifest", [])),
    ("manifest's paths a text", "inventory-value", "E092", having("manifest", ONE, "v1/content/a")),
    ("digest cut", "digest-malformed", "E025", having("manifest", "12", ["v1/content/z"])),
    ("digest in two cases", "digest-repeated", "E096", upper_twice),
    ("digest of nothing", "digest-unused", "E107", having("manifest", THREE, ["v1/content/z"])),
    ("content path at root", "path-malformed", "E100", having("manifest", TWO, ["/v2/content/a"])),
    ("content path upward", "path-malformed", "E099", having("manifest", TWO, ["v2/content/../a"])),
    ("content path elsewhere", "path-malformed", "E042", having("manifest", TWO, ["v3/content/a"])),
    ("content path beside content", "path-malformed", "E042", having("manifest", TWO, ["v2/payload/a"])),
    ("content path twice", "path-repeated", "E101", having("manifest", TWO, ["v1/content/a"])),
    (
        "content file and directory",
        "path-conflict",
        "E101",
        having("manifest", TWO, ["v2/content/a", "v2/content/a/b"]),
    ),
    ("fixity a list", "inventory-value", "E111", having("fixity", [])),
    ("fixity unknown", "fixity-algorithm", "E056", having("fixity", "crc", {"12": ["v1/content/a"]})),
    ("fixity's block a list", "inventory-value", "E057", having("fixity", "md5", [])),
    ("fixity's digest cut", "digest-malformed", "E057", having("fixity", "md5", {"12": ["v1/content/a"]})),
    ("fixity's paths a text", "inventory-value", "E057", having("fixity", "md5", {"4" * 32: "v1/content/a"})),
    ("fixity's path unknown", "path-unknown", "E057", having("fixity", "md5", {"4" * 32: ["v1/content/z"]})),
    (
        "fixity's digest in two cases",
        "digest-repeated",
        "E097",
        having("fixity", "md5", {"ab" * 16: ["v1/content/a"], "AB" * 16: ["v1/content/a"]}),
    ),
    ("sha256", "inventory-advice", "W004", having("digestAlgorithm", "sha256")),
    ("id a word", "inventory-advice", "W005", having("id", "seven")),
    ("id with a space", "inventory-advice", "W005", having("id", "urn:a b")),
    ("id not ASCII", "inventory-advice", "W005", having("id", "urn:\u00e9")),
    ("id with a bare percent sign", "inventory-advice", "W005", having("id", "urn:50%")),
    ("no message", "inventory-advice", "W007", without(*V1, "message")),
    ("no user", "inventory-advice", "W007", without(*V1, "user")),
    ("no address", "inventory-advice", "W008", having(*V1, "user", {"name": "x"})),
    ("address a word", "inventory-advice", "W009", having(*V1, "user", {"name": "x", "address": "home"})),
]


@pytest.mark.parametrize(("kind", "code", "change"), [rule[1:] for rule in RULES], ids=[rule[0] for rule in RULES])
def test_each_rule_is_found_broken(kind: str, code: str, change: Change) -> None:
    """A violation is reported with the specification's code and a documented kind."""
    document = copy.deepcopy(GOOD)
    change(document)
    found = [(finding.kind, finding.code) for finding in inventory_findings(document, "1.1")]
    assert (kind, code) in found
    assert {kind for kind, _code in found} <= kinds.KINDS.keys()


def test_padded_versions_are_advised_against() -> None:
    document = copy.deepcopy(GOOD)
    document["versions"] = {"v01": document["versions"]["v1"], "v02": document["versions"]["v2"]}
    document["head"] = "v02"
    document["manifest"] = {ONE: ["v01/content/a", "v01/content/d/b"], TWO: ["v02/content/a"]}
    document["fixity"] = {}
    assert [finding.code for finding in inventory_findings(document, "1.1")] == ["W001"]


HISTORY: list[tuple[str, Change]] = [
    ("E110", having("id", "other")),
    ("E040", having("head", "v2")),
    ("E020", having("contentDirectory", "data")),
    ("E066", having(*V1, "state", {ONE: ["other"]})),
    ("E066", lambda d: d["versions"].update({"v9": d["versions"]["v1"]})),
    ("W011", having(*V1, "message", "another")),
    (
        "E066",
        lambda d: [d.update(manifest={THREE: d["manifest"][ONE]}), d["versions"]["v1"].update(state=state_of(THREE))],
    ),
]


def state_of(digest: str) -> dict[str, list[str]]:
    return {digest: ["a", "d/b"]}


@pytest.mark.parametrize(("code", "change"), HISTORY)
def test_an_earlier_inventory_must_agree(code: str, change: Change) -> None:
    earlier = copy.deepcopy(GOOD)
    earlier["head"] = "v1"
    del earlier["versions"]["v2"], earlier["manifest"][TWO]
    assert history_findings("v1", earlier, GOOD) == []
    change(earlier)
    assert code in [finding.code for finding in history_findings("v1", earlier, GOOD)]


def test_an_earlier_inventory_is_of_no_later_specification() -> None:
    earlier = {**copy.deepcopy(GOOD), "head": "v1", "versions": {"v1": GOOD["versions"]["v1"]}}
    newest = {**GOOD, "type": "https://ocfl.io/1.0/spec/#inventory"}
    assert order_finding("v1", earlier | {"type": newest["type"]}, GOOD) is None
    finding = order_finding("v1", earlier, newest)
    assert finding is not None
    assert finding.code == "E103"


def test_a_content_directory_is_set_by_the_first_inventory_or_none() -> None:
    """The first inventory that sets contentDirectory decides, also one between the first and the newest."""
    first = {key: value for key, value in GOOD.items() if key != "contentDirectory"}
    assert unset_finding("v1", first, [first, first]) is None
    assert unset_finding("v1", GOOD, [GOOD, GOOD]) is None
    assert unset_finding("v2", first, [first, GOOD]) is None
    finding = unset_finding("v01", first, [first, GOOD, first])
    assert finding is not None
    assert finding.code == "E019"


def test_later_versions_may_add_copies_of_the_same_content() -> None:
    """A later manifest may list more content paths for a digest than an earlier one."""
    earlier = {**copy.deepcopy(GOOD), "head": "v1", "versions": {"v1": GOOD["versions"]["v1"]}}
    del earlier["manifest"][TWO]
    newest = copy.deepcopy(GOOD)
    newest["manifest"][ONE].append("v2/content/c")
    assert inventory_findings(newest, "1.1") == []
    assert history_findings("v1", earlier, newest) == []


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=5)
    | st.sampled_from(["v1", ONE, "a/b", "v1/content/a"]),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.sampled_from([*GOOD, "v1", "v2", ONE]), inside),
    max_leaves=12,
)


@given(st.sampled_from(sorted(GOOD)), ANYTHING, st.sampled_from([None, "v1", "state", "created", "user", ONE]))
def test_no_value_confuses_the_rules(key: str, value: Any, inner: str | None) -> None:
    """Any value in any place is reported or accepted; it never raises an unexpected error."""
    document = copy.deepcopy(GOOD)
    if inner is None or not isinstance(document[key], dict):
        document[key] = value
    else:
        document[key][inner] = value
    for finding in inventory_findings(document, None):
        assert finding.kind in kinds.KINDS
        assert "\n" not in finding.message
    history_findings("v1", document, GOOD)
    history_findings("v1", GOOD, document)
    order_finding("v1", document, GOOD)
    order_finding("v1", GOOD, document)
    try:
        list(logical_files(document))
    except InventoryError:
        with pytest.raises(InventoryError):
            version_state(document)


TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)


@given(
    TEXTS, st.dictionaries(TEXTS, TEXTS | st.lists(TEXTS) | st.dictionaries(TEXTS, st.lists(TEXTS))), st.integers(0, 9)
)
def test_what_is_written_reads_back(identifier: str, others: dict[str, Any], before: int) -> None:
    """A written inventory is valid JSON, and the scan finds its identifier."""
    others.pop("id", None)
    items = list(others.items())
    document = dict([*items[:before], ("id", identifier), *items[before:]])
    data = inventory_bytes(document)
    assert json.loads(data) == document == read_inventory(data, [])
    found = scan_identifier(data)
    assert found in (None, identifier)
    if all(isinstance(value, str) and key.isascii() and key.isalpha() for key, value in items[:before]):
        assert found == identifier
    # A truncated inventory or other formatting is left to the full parser.
    assert scan_identifier(json.dumps(document, indent=4).encode()) in (None, identifier)
    for end in range(0, len(data), 7):
        assert scan_identifier(data[:end]) in (None, identifier)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not valid JSON"),
        (b"[]", "not a JSON object"),
        (b'{"id": NaN}', "NaN is not JSON"),
        (b'\xef\xbb\xbf{"id": "a"}', "not valid JSON"),
        (b'{"id": "\xff"}', "not valid JSON"),
        (b'{"id": "\\ud800"}', "unpaired surrogate"),
        (b"[" * 100_000, "not valid JSON"),
    ],
)
def test_what_is_no_inventory(data: bytes, reason: str) -> None:
    with pytest.raises(InventoryError, match=reason):
        read_inventory(data, [])


def test_repeated_keys_are_noticed() -> None:
    repeated: list[str] = []
    read_inventory(b'{"id": "a", "head": {"x": 1, "x": 2}, "id": "b"}', repeated)
    assert repeated == ["x", "id"]


@pytest.mark.parametrize(
    ("data", "digest"),
    [
        (sidecar_bytes("ab12"), "ab12"),
        (b"AB12 \t inventory.json", "ab12"),
        (b"ab12 inventory.json\r\n", None),
        (b"ab12 inventory.json\n\n", None),
        (b"ab12 *inventory.json\n", None),
        (b"ab12\n", None),
        (b" ab12 inventory.json\n", None),
        (b"xyz inventory.json\n", None),
        (b"", None),
    ],
)
def test_sidecars(data: bytes, digest: str | None) -> None:
    assert sidecar_digest(data) == digest


@pytest.mark.parametrize("path", ["a", "a/b", "...", "a b", ".a", "a..", "é/例"])
def test_paths_that_may_be(path: str) -> None:
    assert path_fault(path) is None


@pytest.mark.parametrize("path", ["", "/", "/a", "a/", "a//b", ".", "..", "./a", "a/.", "a/../b", None, 7, ["a"]])
def test_paths_that_may_not_be(path: Any) -> None:
    assert path_fault(path) is not None


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("v1", (1, 0)),
        ("v10", (10, 0)),
        ("v0010", (10, 4)),
        ("v0", None),
        ("1", None),
        ("v1x", None),
        ("v" + "9" * 254, (10**254 - 1, 0)),
        ("v" + "9" * 5000, None),
    ],
)
def test_version_numbers(name: str, number: tuple[int, int] | None) -> None:
    assert version_number(name) == number
