"""Bags of files that are on servers: created from a list of URLs and lists of checksums, and completed."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pressmark.bagit.bag import create_from_lists
from pressmark.bagit.fetch.complete import complete
from pressmark.bagit.manifest_format import manifest_name
from pressmark.bagit.validation.validate import validate
from pressmark.errors import BagError
from pressmark.progress_event import EventListener
from pressmark.reports import Problem
from support.events import stages

from ..bags import tree
from ..loopback import Server, ranged, serving

FILES = {"a b/50%.tif": b"one" * 1000, "é": b"", "~x+y": b"three"}
OXUM = "3005.3"


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as made:
        for number, body in enumerate(FILES.values()):
            made.answer(f"/{number}", ranged(body))
        yield made


@pytest.fixture
def fetch(tmp_path: Path) -> Path:
    """A list of the files, with their lengths."""
    return listing(tmp_path, "https://example.org")


def listing(folder: Path, base: str, *, lengths: bool = True) -> Path:
    lines = [
        f"{base}/{number} {len(body) if lengths else '-'} data/{name.replace('%', '%25')}\n"
        for number, (name, body) in enumerate(FILES.items())
    ]
    (folder / "list").write_text("".join(lines), encoding="utf-8")
    return folder / "list"


def digest(algorithm: str, body: bytes) -> str:
    return hashlib.new(algorithm, body).hexdigest()


def sums(path: Path, algorithm: str, before: str = "", files: dict[str, bytes] | None = None) -> Path:
    """Write a list of checksums, as sha512sum does."""
    entries = FILES if files is None else files
    lines = [f"{digest(algorithm, body)}  {before}{name}\n" for name, body in reversed(entries.items())]
    path.write_text("".join(lines), encoding="utf-8")
    return path


def bag_manifest(path: Path, algorithm: str) -> Path:
    return sums(path, algorithm, "data/", {name.replace("%", "%25"): body for name, body in FILES.items()})


def refusals(fetch: Path, manifests: list[Path], **options: Any) -> list[tuple[str, bytes]]:
    """Return kinds and paths of the problems that prevent the creation, which leaves nothing."""
    before = tree(fetch.parent)
    events: list[object] = []
    with pytest.raises(BagError, match="no bag was created and nothing was changed"):
        create_from_lists(fetch, manifests, fetch.parent / "bag", progress=EventListener(events.append), **options)
    assert tree(fetch.parent) == before
    assert stages(events) == ["examine"]
    found = [one for one in events if isinstance(one, Problem)]
    return [(one.kind, one.path) for one in found if one.severity == "error"]


@pytest.mark.parametrize("lengths", [True, False])
def test_the_completed_bag_is_valid(server: Server, tmp_path: Path, lengths: bool) -> None:
    """The bag is created without the server, and complete downloads the files."""
    pytest.importorskip("urllib3")
    fetch = listing(tmp_path, server.url(""), lengths=lengths)
    manifests = [sums(tmp_path / "SHA512SUMS", "sha512"), bag_manifest(tmp_path / "manifest-md5.txt", "md5")]
    (tmp_path / "readme").write_bytes(b"x")
    bag = create_from_lists(fetch, manifests, tmp_path / "bag", info={"X": "y"}, tag_files=[tmp_path / "readme"])
    assert server.paths == []
    assert os.listdir(tmp_path / "bag" / "data") == []
    assert (tmp_path / "bag" / "fetch.txt").read_bytes() == fetch.read_bytes()
    assert bag.algorithms == ("md5", "sha512")
    assert bag.info.get("X") == "y"
    assert bag.info.get("Payload-Oxum") == (OXUM if lengths else None)
    assert ("Bag-Size" in dict(bag.info.elements)) == lengths
    assert {one.kind for one in validate(bag.path).errors} <= {"file-not-fetched", "oxum-mismatch"}
    assert complete(bag, allow_http=True, allow_private=True, retries=0).ok
    assert validate(bag.path).problems == []
    expected = {b"data/" + os.fsencode(name): body for name, body in FILES.items()}
    assert {path: body for path, body in tree(tmp_path / "bag").items() if path.startswith(b"data/")} == expected


@pytest.mark.parametrize(
    ("name", "algorithm", "given", "expected"),
    [
        ("list.md5", "md5", None, "md5"),
        ("checksums.txt", "sha1", None, "sha1"),
        ("x", "sha256", None, "sha256"),
        ("x", "sha512", None, "sha512"),
        ("B2SUMS", "blake2b", None, "blake2b-512"),
        ("sha3-256sum.txt", "sha3_256", None, "sha3-256"),
        ("manifest-sha3256.txt", "sha3_256", None, "sha3-256"),
        ("x", "sha3_256", "SHA3-256", "sha3-256"),
        ("SHA512SUMS", "blake2b", "blake2b-512", "blake2b-512"),
        ("x", "sha384", ["sha384"], "sha384"),
    ],
)
@pytest.mark.parametrize("before", ["", "data/", "./"])
def test_the_algorithm_of_a_list(
    fetch: Path, name: str, algorithm: str, given: Any, expected: str, before: str
) -> None:
    """The algorithm is the given one, that of the name, or the usual one of the length; names may start with data/."""
    if name.startswith("manifest-"):
        manifest = bag_manifest(fetch.parent / name, algorithm)
    else:
        manifest = sums(fetch.parent / name, algorithm, before)
    bag = create_from_lists(fetch, [manifest], fetch.parent / "bag", algorithms=given)
    assert bag.algorithms == (expected,)
    lines = (fetch.parent / "bag" / os.fsdecode(manifest_name(expected))).read_text(encoding="utf-8").splitlines()
    assert lines == [f"{digest(algorithm, FILES[name])}  data/{name.replace('%', '%25')}" for name in FILES]


def test_lists_that_name_algorithms(fetch: Path) -> None:
    """Lists in JSON and in BSD format name their algorithms; a list may have several."""
    lines = [json.dumps({"path": name, "digests": {"md5": digest("md5", body)}}) for name, body in FILES.items()]
    (fetch.parent / "json").write_text("\n".join(lines) + "\n")
    lines = [
        f"{shown} ({name}) = {digest(algorithm, body)}"
        for shown, algorithm in (("SHA1", "sha1"), ("SHA3-512", "sha3_512"))
        for name, body in FILES.items()
    ]
    (fetch.parent / "bsd").write_text("\n".join(lines) + "\n", encoding="utf-8")
    bag = create_from_lists(fetch, [fetch.parent / "bsd", fetch.parent / "json"], fetch.parent / "bag")
    assert set(bag.algorithms) == {"sha1", "sha3-512", "md5"}
    assert {one.kind for one in validate(bag.path).errors} == {"file-not-fetched", "oxum-mismatch"}


def test_several_lists_of_the_same_length(fetch: Path) -> None:
    """As many algorithms as lists apply in order."""
    manifests = [sums(fetch.parent / "x", "sha3_256"), sums(fetch.parent / "y", "sha256")]
    bag = create_from_lists(fetch, manifests, fetch.parent / "bag", algorithms=["sha3-256", "sha256"])
    lines = (fetch.parent / "bag" / "manifest-sha256.txt").read_text(encoding="utf-8")
    assert f"{digest('sha256', b'three')}  data/~x+y\n" in lines
    assert set(bag.algorithms) == {"sha3-256", "sha256"}


def test_a_payload_in_a_directory_named_data(tmp_path: Path) -> None:
    """Names that start with data/ are read as the list of files requires."""
    (tmp_path / "list").write_bytes(b"https://example.org/1 5 data/data/~x+y\n")
    for number, before in enumerate(("data/", "data/data/")):
        manifest = sums(tmp_path / "x", "md5", before, {"~x+y": b"three"})
        create_from_lists(tmp_path / "list", [manifest], tmp_path / str(number))
        lines = (tmp_path / str(number) / "manifest-md5.txt").read_text()
        assert lines == f"{digest('md5', b'three')}  data/data/~x+y\n"
    manifest = sums(tmp_path / "manifest-md5.txt", "md5", "data/", {"~x+y": b"three"})
    assert len(refusals(tmp_path / "list", [manifest])) == 2  # names of a bag's manifest have one meaning


def test_files_that_are_not_everywhere(fetch: Path) -> None:
    """Every file must be in every list, and every name of a list among the files; all of them are named."""
    lacking = sums(fetch.parent / "x", "md5", "", {"~x+y": b"three"})
    more = sums(fetch.parent / "y", "sha1", "", {**FILES, "more": b"", "../up": b""})
    assert refusals(fetch, [lacking, more]) == [
        ("fetch-unlisted", "data/a b/50%.tif"),
        ("fetch-unlisted", "data/é"),
        ("file-missing", "../up"),
        ("file-missing", "more"),
    ]


@pytest.mark.parametrize(
    ("line", "kind", "path"),
    [
        ("https://example.org/3 - data/../../up", "path-unsafe", "data/../../up"),
        ("https://example.org/3 - /etc/passwd", "path-unsafe", "/etc/passwd"),
        ("https://example.org/3 - other", "fetch-tag-file", "other"),
        ("https://example.org/3 - data/~x+y", "path-duplicate", "data/~x+y"),
        ("https://example.org/3 - data/e\u0301", "name-clash", "data/e\u0301"),
        ("https://example.org/3 - data/~x+y/z", "name-clash", "data/~x+y"),
        ("example.org/3 - data/x", "fetch-url", None),
        ("https://example.org/3 many data/x", "line-malformed", None),
        ("https://example.org/3", "line-malformed", None),
        ("", "line-blank", None),
    ],
)
def test_lists_of_files_that_no_bag_can_contain(fetch: Path, line: str, kind: str, path: str | None) -> None:
    """Lines are judged as in the fetch.txt of a bag; a path that is listed twice is refused, too."""
    with fetch.open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")
    manifest = sums(fetch.parent / "x", "md5")
    assert refusals(fetch, [manifest]) == [(kind, str(fetch) if path is None else path)]


def test_lists_of_checksums_that_repeat_a_name(fetch: Path) -> None:
    """A name that is listed twice is refused, in each format."""
    for name in ("x", "manifest-md5.txt"):
        manifest = bag_manifest(fetch.parent / name, "md5") if name != "x" else sums(fetch.parent / name, "md5")
        manifest.write_bytes(manifest.read_bytes() + b"0" * 32 + b"  " + (b"data/" if name != "x" else b"") + b"~x+y\n")
        assert refusals(fetch, [manifest]) == [("path-duplicate", "~x+y" if name == "x" else "data/~x+y")]


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (b"", {}, "contains no checksum"),
        (b"x  y\n", {}, "line 1: expected digest, two spaces and name"),
        (b"0" * 96 + b"  y\n", {}, "cannot tell the algorithm of 96 hex digits; specify its algorithm"),
        (b"0" * 64 + b"  y\n", {"algorithms": "md5"}, "digest of 64 hex digits is not md5"),
        (b'{"path": "y", "digests": {"md5": "%b"}}\n' % (b"0" * 32), {"algorithms": ["md5", "sha1"]}, "of sha1"),
    ],
)
def test_unsuitable_lists_of_checksums(fetch: Path, content: bytes, options: dict[str, Any], message: str) -> None:
    """A list that cannot be read, or whose algorithm is unknown, is refused before anything is written."""
    (fetch.parent / "x").write_bytes(content)
    before = tree(fetch.parent)
    with pytest.raises(BagError, match=message):
        create_from_lists(fetch, [fetch.parent / "x"], fetch.parent / "bag", **options)
    assert tree(fetch.parent) == before


def test_lists_with_the_same_algorithm(fetch: Path) -> None:
    """Two lists of one algorithm are refused, as is an empty list of files, and the unknown name of a manifest."""
    manifests = [sums(fetch.parent / name, "md5") for name in ("x", "y")]
    with pytest.raises(BagError, match=r"contains md5 checksums, as does '.*x'; omit one"):
        create_from_lists(fetch, manifests, fetch.parent / "bag")
    with pytest.raises(BagError, match="unknown algorithm in its name"):
        create_from_lists(fetch, [sums(fetch.parent / "manifest-zz.txt", "md5")], fetch.parent / "bag")
    fetch.write_bytes(b"")
    with pytest.raises(BagError, match="lists no file"):
        create_from_lists(fetch, manifests, fetch.parent / "bag")
    assert not (fetch.parent / "bag").exists()


@pytest.mark.parametrize(
    "changes",
    [
        {"destination": "bag.tar"},
        {"manifests": []},
    ],
)
def test_unsuitable_options(fetch: Path, changes: dict[str, Any]) -> None:
    """Options that do not fit are refused before anything is written."""
    manifest = sums(fetch.parent / "x", "md5")
    before = tree(fetch.parent)
    options = {"destination": fetch.parent / "bag", "fetch": fetch, "manifests": [manifest]} | changes
    with pytest.raises(ValueError, match=r"^(destination|manifests): "):
        create_from_lists(**options)
    assert tree(fetch.parent) == before
