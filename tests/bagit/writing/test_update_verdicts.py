"""An update reports what a validation would: it refuses an invalid bag or repairs it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bagit.bags import Sketch, digest, tree
from cli.conftest import call
from pressmark.bagit.bag import update
from pressmark.bagit.validation.validate import validate
from pressmark.errors import BagError, BagInvalidError

__all__ = ["call"]

BOM = b"\xef\xbb\xbf"
BOTH = {b"data/a": b"a", b"data/b": b"b"}


class Case(NamedTuple):
    """A bag with a problem in a tag file.

    :ivar sketch: arguments of :class:`Sketch`
    :ivar kind: the kind of the problem that refuses the update; empty if the update repairs it
    :ivar kept: bytes that the tag files contain after the repair
    """

    sketch: dict[str, Any]
    kind: str = ""
    kept: bytes = b""


def info(data: bytes, kind: str = "", kept: bytes = b"") -> Case:
    return Case({"info": data}, kind, kept)


def fetch(line: bytes, kind: str = "", kept: bytes = b"") -> Case:
    return Case({"info": None, "fetch": b"https://example.org/a - data/a\n" + line}, kind, kept)


CASES = {
    "info: byte-order mark": info(BOM + b"A: b\r\nC: d\n e\n", kept=b"A: b\nC: d\n e\n"),
    "info: no space": info(b"A:b\nC: d\n e\n", kept=b"A: b\nC: d\n e\n"),
    "info: two spaces": info(b"A:  b\n", kept=b"A: b\n"),
    "info: space before the colon": info(b"A : b\n", kept=b"A: b\n"),
    "info: no colon": info(b"A: b\nnothing\n", "info-malformed"),
    "info: blank line and no space": info(b"A: b\n\nC:d\n", kept=b"A: b\nC: d\n"),
    "info: no label": info(b": b\n", "info-malformed"),
    "info: not UTF-8": info(b"A: b\nB: \xff\xfe\n", "undecodable"),
    "info: mark and no colon": info(BOM + b"nothing\n", "info-malformed"),
    "info: long line": info(b"A: " + b"x" * 1_100_000 + b"\n", "line-too-long"),
    "info: malformed Oxum": info(b"Payload-Oxum: 1\n", kept=b"Payload-Oxum: 2.2\n"),
    "info: wrong Oxum": info(b"Payload-Oxum: 1.1\n", kept=b"Payload-Oxum: 2.2\n"),
    "info: two Oxums": info(b"Payload-Oxum: 2.2\nPayload-Oxum: 2.2\n", kept=b"Payload-Oxum: 2.2\n"),
    "fetch: one word": fetch(b"https://example.org/b\n", "line-malformed"),
    "fetch: length": fetch(b"https://example.org/b x data/b\n", "line-malformed"),
    "fetch: no URL": fetch(b"b - data/b\n", "fetch-url"),
    "fetch: unsafe": fetch(b"https://example.org/b - data/../../b\n", "path-unsafe"),
    "fetch: tag file": fetch(b"https://example.org/b - bagit.txt\n", "fetch-tag-file"),
    "fetch: directory": fetch(b"https://example.org/b - data/b/\n", "path-directory"),
    "fetch: unlisted": fetch(b"https://example.org/b - data/other\n", "fetch-unlisted"),
    "fetch: not UTF-8": fetch(b"https://example.org/\xff - data/b\n", "undecodable"),
    "fetch: blank line": fetch(b"\n", kept=b"https://example.org/a - data/a\n"),
    "fetch: byte-order mark": Case({"fetch": BOM + b"https://example.org/a - data/a\n", "info": None}, "", b"https"),
    "declaration: byte-order mark": Case(
        {"declaration": BOM + b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"}, "", b"BagIt-Version: 1.0\n"
    ),
    "declaration: three lines": Case(
        {"declaration": b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\nx\n"}, "", b"BagIt-Version: 1.0\n"
    ),
    "tag manifest: payload": Case(
        {"tag_manifests": {"tagmanifest-sha512.txt": digest(b"a", "sha512").encode() + b"  data/a\n"}}
    ),
    "tag manifest: nothing": Case({"tag_manifests": {"tagmanifest-sha512.txt": b""}}),
    "tag manifest: malformed": Case({"tag_manifests": {"tagmanifest-sha512.txt": b"nothing\n"}}, "line-malformed"),
    "tag manifest: BSD": Case(
        {"tag_manifests": {"tagmanifest-sha512.txt": b"SHA512 (bagit.txt) = " + b"0" * 128 + b"\n"}}, "line-malformed"
    ),
    "no payload directory": Case({"payload": {}, "info": None}, "payload-directory-missing"),
}


def make(case: Case, bag: Path) -> None:
    sketch = Sketch(**{"payload": dict(BOTH), "info": b"A: b\n", "algorithms": ["sha512"], **case.sketch})
    sketch.write(bag)
    if case.kind == "payload-directory-missing":
        (bag / "data").rmdir()


def refusal(bag: Path, changes: dict[str, Any]) -> BagError | None:
    try:
        update(bag, **changes)
    except BagError as error:
        return error
    return None


@pytest.mark.parametrize("changes", [{}, {"add": "md5", "info": {"Title": "x"}}, {"payload": False}], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_an_update_reports_what_a_validation_would(
    tmp_path: Path, implementation: Any, name: str, changes: dict[str, Any]
) -> None:
    """The bag is refused and unchanged, or valid afterwards."""
    case, bag = CASES[name], tmp_path / "bag"
    make(case, bag)
    before = tree(bag)
    assert not validate(bag).ok
    refused = refusal(bag, changes)
    metadata_only = changes == {"payload": False}
    if refused is not None:
        assert case.kind or metadata_only, refused
        assert isinstance(refused, BagInvalidError), refused
        assert not case.kind or case.kind in [one.kind for one in refused.report.errors], refused
        assert tree(bag) == before
        return
    assert not case.kind
    found = validate(bag)
    assert {one.kind for one in found.errors} <= ({"oxum-mismatch"} if metadata_only else set()), found.problems
    assert metadata_only or case.kept in b"".join(tree(bag).values())


def test_an_element_that_the_character_set_lacks(tmp_path: Path, call: Any) -> None:
    """An element that cannot be written is refused on one line, before the payload is read."""
    bag = Sketch(encoding="ISO-8859-1", info="A: \u00e9\n".encode()).write(tmp_path / "bag")
    before = tree(bag)
    refused = call("bag", "update", f"{bag}", "--info", "X=\u4e00")
    assert refused.exit_code == 2
    assert refused.stderr.splitlines()[-1].endswith("X: '\u4e00' cannot be encoded in ISO-8859-1")
    assert tree(bag) == before


def test_a_bag_without_payload_manifest(tmp_path: Path) -> None:
    """It gets one only if the caller accepts that it proves nothing, and says of which algorithm."""
    folder = Sketch(payload=BOTH, algorithms=[], tag_algorithms=[], info=None).write(tmp_path / "bag")
    before = tree(folder)
    every = ["added", "removed", "changed", "tag-files"]
    for how in ({"add": "sha512"}, {"add": "sha512", "accept": every}):
        with pytest.raises(BagInvalidError, match="no payload manifest found"):
            update(folder, **how)  # type: ignore[arg-type]
    with pytest.raises(BagError, match="no payload manifest found; restore it from another copy"):
        update(folder, accept=["no-manifest"])
    assert tree(folder) == before
    events: list[Any] = []
    bag = update(folder, add=["sha512", "md5"], accept="no-manifest", progress=events.append)
    assert bag.algorithms == ("md5", "sha512")
    assert bag.validate().problems == []
    [warning] = [one for one in events if getattr(one, "kind", "")]
    assert (warning.severity, "proves nothing about their past" in warning.message) == ("warning", True)


def test_a_manifest_that_the_tag_manifests_list(tmp_path: Path) -> None:
    """A manifest that was there, and is gone, is more than none: the tag manifest is evidence of it."""
    folder = Sketch(payload=BOTH, info=None).write(tmp_path / "bag")
    (folder / "manifest-sha512.txt").unlink()
    with pytest.raises(BagInvalidError):
        update(folder, add="sha512", accept="no-manifest")
    assert update(folder, add="sha512", accept=["no-manifest", "tag-files"]).is_valid()


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("mark", [b" ", b"*"])
def test_backslashes(tmp_path: Path, end: bytes, mark: bytes) -> None:
    """Lines of a program on Windows are verified, and rewritten; damage of a file is still found."""
    payload = {b"data/a/b c": b"a", b"data/d": b"d"}
    lines = b"".join(
        digest(data, "sha512").encode() + b" " + mark + path.replace(b"/", b"\\") + end
        for path, data in payload.items()
    )
    sketch = Sketch(payload=payload, info=None, manifests={"manifest-sha512.txt": lines}, tag_algorithms=[])
    folder = sketch.write(tmp_path / "bag")
    assert {one.kind for one in validate(folder).errors} == {"path-backslashes"}
    (folder / "data" / "d").write_bytes(b"x")
    assert {one.kind for one in validate(folder).errors} == {"path-backslashes", "checksum-mismatch"}
    with pytest.raises(BagInvalidError):
        update(folder)
    (folder / "data" / "d").write_bytes(b"d")
    assert update(folder).validate().problems == []
    assert b"\\" not in (folder / "manifest-sha512.txt").read_bytes()
    assert update(folder, info={"Title": "x"}).is_valid()
