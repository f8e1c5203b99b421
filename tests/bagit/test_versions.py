"""The rules that differ between versions of BagIt: each one with a bag that violates it, in every version."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pressmark.bagit import KINDS, Bag, update, validate
from pressmark.bagit.problems import RULES, VERSIONS, VersionRule, judge_violation
from pressmark.errors import BagInvalidError
from pressmark.reports import Problem
from support.implementations import Implementation

from .bags import PAYLOAD, Sketch, line
from .rules import ALPHA, BOTH, HEX, MANIFEST, TAG_MANIFEST, A, C, manifest, tag_lines, two_algorithms

Version = tuple[int, int]


def written(version: Version) -> str:
    return "{}.{}".format(*version)


def tag_manifests(version: str) -> dict[str, Any]:
    """Return a bag with two tag manifests, the second of which lists the first."""
    first = tag_lines(version=version)
    more = line(first, TAG_MANIFEST.encode(), "md5")
    return {
        "tag_algorithms": ["sha512", "md5"],
        "tag_manifests": {"tagmanifest-md5.txt": tag_lines(more=more, algorithm="md5", version=version)},
    }


def repeated(label: str, *values: str) -> dict[str, Any]:
    return {"info": "".join(f"{label}: {value}\n" for value in values).encode()}


# For each rule its violation, and the kinds found where it applies. A bag of an older version is valid,
# or has these kinds as the table says.
BREACHES: dict[str, list[tuple[Callable[[str], dict[str, Any]], set[str]]]] = {
    "bag-info": [],
    "percent-encoded": [
        (
            lambda _version: {
                "payload": {b"data/100%": ALPHA},
                "info": None,
                "manifests": {MANIFEST: HEX + b"  data/100%\n"},
            },
            {"percent-raw"},
        )
    ],
    "listed-everywhere": [
        (
            lambda _version: two_algorithms(sha256=manifest(A, algorithm="sha256"), sha512=manifest(C)),
            {"file-not-everywhere"},
        ),
        (
            lambda _version: {
                "fetch": b"https://example.org/a 6 data/a.txt\n",
                **two_algorithms(sha512=manifest(C)),
            },
            {"file-not-everywhere", "fetch-unlisted"},
        ),
    ],
    "listed-once": [(lambda _version: {"manifests": {MANIFEST: BOTH + manifest(A)}}, {"path-duplicate"})],
    "tag-manifest-complete": [
        (
            lambda version: {
                "tag_manifests": {TAG_MANIFEST: tag_lines(without=MANIFEST.encode(), version=version)},
            },
            {"tag-manifest-omission"},
        )
    ],
    "tag-manifests-unlisted": [(tag_manifests, {"tag-manifest-itself", "tag-manifest-algorithms"})],
    "tag-manifests-alike": [
        (lambda _version: {"tag_algorithms": ["sha512", "md5"]}, {"tag-manifest-algorithms"}),
        (
            lambda version: {
                "tag_files": {b"notes": b"x"},
                **two_algorithms(),
                "tag_manifests": {
                    "tagmanifest-sha256.txt": tag_lines(
                        without=b"notes",
                        algorithm="sha256",
                        version=version,
                        tag_files={b"notes": b"x"},
                        algorithms=["sha512", "sha256"],
                    )
                },
            },
            {"tag-manifests-differ"},
        ),
    ],
    "algorithms-registered": [
        (
            lambda _version: {"algorithms": ["sha224"], "tag_algorithms": []},
            {"algorithm-unregistered"},
        )
    ],
    "labels-tight": [(lambda _version: {"info": b"Contact-Name \t:   A\nX:y\n"}, {"info-whitespace"})],
    "oxum-once": [(lambda _version: repeated("Payload-Oxum", "20.2", "20.2"), {"oxum-repeated"})],
    "elements-once": [
        (lambda _version: repeated("Bagging-Date", "2016-02-26", "2016-03-10"), {"element-repeated"}),
        (lambda _version: {"info": b"Bag-Count: 1 of 2\n"}, {"element-alone"}),
    ],
}
ROWS = [(rule, number, version) for rule in RULES for number in range(len(BREACHES[rule])) for version in VERSIONS]


def test_every_row_has_its_bags() -> None:
    """The bags together violate each rule in each way that the table lists."""
    assert BREACHES.keys() == RULES.keys()
    for name, rule in RULES.items():
        found = {kind for _sketch, kinds in BREACHES[name] for kind in kinds}
        assert set(rule.kinds) <= found
        assert set(rule.kinds) <= KINDS.keys()
        assert rule.since in VERSIONS[1:]
        assert re.fullmatch(r".*\.", rule.words)
        assert re.fullmatch(r".*\.", rule.before)


@pytest.mark.parametrize(("name", "number", "version"), ROWS)
def test_violations(implementation: Implementation, tmp_path: Path, name: str, number: int, version: Version) -> None:
    """A bag is judged by the rules of its own version."""
    rule: VersionRule = RULES[name]
    sketch, kinds = BREACHES[name][number]
    bag = Sketch(version=written(version), **sketch(written(version))).write(tmp_path / "bag")
    report = validate(bag)
    expected = {(kind, KINDS[kind].severity) for kind in kinds}
    if version < rule.since:
        expected = {(kind, rule.severity) for kind in kinds if rule.severity is not None}
    assert {(one.kind, one.severity) for one in report.problems} == expected
    assert report.ok == all(severity != "error" for _kind, severity in expected)


@pytest.mark.parametrize("version", VERSIONS)
def test_bag_info(tmp_path: Path, version: Version) -> None:
    """Up to 0.95, metadata is in package-info.txt if that file exists."""
    sketch = Sketch(
        version=written(version), info=b"A: new\n", tag_files={b"package-info.txt": b"Packing-Date: 2009-10-14\n"}
    )
    bag = Bag.open(sketch.write(tmp_path / "bag"))
    found = (bag.info_name, bag.info.elements)
    if version < RULES["bag-info"].since:
        assert found == (b"package-info.txt", [("Packing-Date", "2009-10-14")])
    else:
        assert found == (b"bag-info.txt", [("A", "new")])
    assert validate(bag.path).problems == []


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("sketch", "kinds"),
    [
        ({"manifests": {MANIFEST: BOTH + HEX[::-1] + b"  data/a.txt\n"}}, {"path-duplicate"}),
        ({"payload": {**PAYLOAD, b"data/d": b""}, "unlisted": {b"data/d"}, "info": None}, {"file-unlisted"}),
        ({"fetch": b"https://example.org/d 6 data/d\n"}, {"fetch-unlisted"}),
        (repeated("Payload-Oxum", "20.2", "21.2"), {"oxum-repeated", "oxum-mismatch"}),
    ],
)
def test_violations_in_every_version(tmp_path: Path, version: Version, sketch: dict[str, Any], kinds: set[str]) -> None:
    """A violation in every version is a problem in older versions as well."""
    report = validate(Sketch(version=written(version), **sketch).write(tmp_path / "bag"))
    assert {one.kind for one in report.problems} == kinds
    assert not report.ok


def test_a_tag_manifest_that_another_lists(tmp_path: Path) -> None:
    """A tag manifest listed in another is verified by a validation, and before an update rewrites it."""
    for good in (True, False):
        bag = Sketch(version="0.97", **tag_manifests("0.97")).write(tmp_path / f"{good}")
        if good:
            assert update(bag).version == (1, 0)
            assert validate(bag).ok
            continue
        first = bag / TAG_MANIFEST
        first.write_bytes(first.read_bytes().replace(b"  ", b" "))
        assert [(one.kind, one.path) for one in validate(bag).problems] == [("checksum-mismatch", TAG_MANIFEST)]
        with pytest.raises(BagInvalidError, match=TAG_MANIFEST):
            update(bag)


def test_a_manifest_that_is_named_with_the_other_form(tmp_path: Path) -> None:
    """If only some manifests spell a name differently, the message names them."""
    sketch: dict[str, Any] = {"payload": {"data/\u00e9".encode(): ALPHA}, "info": None}
    other = two_algorithms(sha512=HEX + "  data/e\u0301\n".encode())
    (found,) = validate(Sketch(**sketch, **other).write(tmp_path / "bag")).problems
    assert (found.severity, found.path) == ("warning", "data/\u00e9")
    assert found.message == "listed as 'data/e\u0301' in manifest-sha512.txt"


def test_violations_of_newer_rules() -> None:
    """A violation of a newer rule is not a problem in an older version."""
    found = Problem("tag-manifest-omission", "error", "2.2.1", "x")
    assert judge_violation("tag-manifest-complete", (1, 0), found) == [found]
    assert judge_violation("tag-manifest-complete", (0, 97), found) == []
    again = Problem("path-duplicate", "error", "2.1.3", "x")
    assert judge_violation("listed-once", (0, 93), again) == [again._replace(severity="warning")]
