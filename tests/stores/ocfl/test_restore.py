"""Earlier versions that come back, whole or in part, without copying content."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pressmark.buckets.bucket import ANY
from pressmark.buckets.memory import MemoryBucket
from pressmark.stores.ocfl.root import OcflRoot

from .samples import CREATED, at, create, kinds, source, tree
from .test_update import ALL, new_content
from .test_versions import contents, folder, refused

FIRST = {"a": b"one", "b": b"two", "d/c": b"three", "d/e/f": b"one"}
NOW = {"a": b"other", "g": b"two", "d/c": b"three", "d/new": b"new", "e/x": b"x"}

pytestmark = pytest.mark.usefixtures("every_storage")


@pytest.fixture
def root(tmp_path: Path) -> OcflRoot:
    """A root with the object ``x`` of two versions."""
    root = create(tmp_path / "root", "0002")
    root.put("x", source(tmp_path / "first", FIRST), created=CREATED)
    root.put("x", source(tmp_path / "now", NOW), created=CREATED, replace=True)
    return root


#: The paths that come back; the files afterwards that differ from before, and what is reported.
PATHS: dict[str, tuple[list[str], dict[str, bytes | None], dict[str, int]]] = {
    "all": (
        [],
        {**dict.fromkeys(NOW), **FIRST},
        {"added": 1, "removed": 2, "changed": 1, "renamed": 1, "unchanged": 1},
    ),
    "a changed file": (["a"], {"a": b"one"}, {"changed": 1, "unchanged": 4}),
    "a removed file": (["b"], {"b": b"two"}, {"added": 1, "unchanged": 5}),
    "a directory": (["d"], {"d/new": None, "d/e/f": b"one"}, {"added": 1, "removed": 1, "unchanged": 4}),
    "a directory below": (["d/e"], {"d/e/f": b"one"}, {"added": 1, "unchanged": 5}),
    "several": (["d/e/f", "a", "a"], {"d/e/f": b"one", "a": b"one"}, {"added": 1, "changed": 1, "unchanged": 4}),
}


@pytest.mark.parametrize(("paths", "files", "counts"), PATHS.values(), ids=list(PATHS))
def test_what_comes_back(
    root: OcflRoot, paths: list[str], files: dict[str, bytes | None], counts: dict[str, int]
) -> None:
    """The files become as they were, all others stay, and no content is stored."""
    record = root.restore("x", "v1", paths, message="why", created=CREATED)
    assert contents(root) == {name: data for name, data in {**NOW, **files}.items() if data is not None}
    assert (record.version, record.changes) == ("v3", {**ALL, **counts})
    assert new_content(root, "v3") == []
    inventory = root.get("x").inventory
    block = inventory["versions"]["v3"]
    assert (block["created"], block["message"], block["user"]) == (CREATED, "why", root.user)
    assert root.get("x", "v1").inventory["manifest"] == inventory["manifest"]
    assert kinds(root.check(digests=True)) == []


@pytest.mark.parametrize("version", ["v1", "1", 1, "v0001"])
def test_the_state_that_comes_back_is_equal(root: OcflRoot, version: str | int) -> None:
    root.restore(root.find("x"), version)
    versions = root.get("x").inventory["versions"]
    assert versions["v3"]["state"] == versions["v1"]["state"]
    assert contents(root) == FIRST


@pytest.mark.parametrize(("version", "paths"), [("v2", []), ("v2", ["d", "a"]), ("v1", ["d/c"])])
def test_nothing_changes(root: OcflRoot, version: str, paths: list[str]) -> None:
    """There is no new version, and the result says so."""
    before = tree(at(root))
    record = root.restore("x", version, paths)
    assert (record.version, record.changes) == ("v2", {**ALL, "unchanged": 5})
    assert tree(at(root)) == before


REFUSED: dict[str, tuple[Any, list[str], str, str]] = {
    "no version": ("v3", [], "missing", "version 'v3' not found; the object has v1 to v2"),
    "no version of this name": ("x", [], "missing", "version 'x' not found"),
    "no file": ("v1", ["a", "none"], "missing", "'none' is not in v1"),
    "only now": ("v1", ["e"], "missing", "'e' is not in v1"),
    "bad name": ("v1", ["d/"], "bad-name", "begins or ends with '/'"),
    "NUL": ("v1", ["d\0"], "bad-name", "contains a NUL character"),
}


@pytest.mark.parametrize(("version", "paths", "kind", "words"), REFUSED.values(), ids=list(REFUSED))
def test_what_is_refused(root: OcflRoot, version: Any, paths: list[str], kind: str, words: str) -> None:
    error = refused(root, lambda: root.restore("x", version, paths))
    assert error.kind == kind
    assert words in str(error)


def test_a_file_where_a_directory_is(root: OcflRoot) -> None:
    """A file takes the place of a directory, but not of one above it."""
    root.put("x", {"d": b"file", "a/b": b"below"}, replace=True)
    error = refused(root, lambda: root.restore("x", 1, ["d/c"]))
    assert (error.kind, "'d' would be a file and a directory" in str(error)) == ("collision", True)
    root.restore("x", 1, ["a"])
    assert contents(root) == {"a": b"one", "d": b"file"}
    root.restore("x", 1, ["d"])
    assert contents(root) == {"a": b"one", "d/c": b"three", "d/e/f": b"one"}


def test_one_path_is_no_list(root: OcflRoot) -> None:
    with pytest.raises(TypeError, match="expected a list of logical paths"):
        root.restore("x", 1, "d")


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("damage", ["changed", "lost"])
def test_damaged_content_does_not_come_back(root: OcflRoot, damage: str, verify: bool) -> None:
    """Only content that comes back matters; without verification, it only has to exist."""
    content = folder(root) / "v1/content/a"
    content.write_bytes(b"abc") if damage == "changed" else content.unlink()
    if damage == "changed" and not verify:
        assert root.restore("x", 1, ["a"], verify=False).version == "v3"
        return
    for paths in (["a"], ["d"], []):
        error = refused(root, lambda paths=paths: root.restore("x", 1, paths, verify=verify))  # type: ignore[misc]
        assert error.kind == ("content-mismatch" if damage == "changed" else "content-missing")
        assert "content of 'v1/content/a': " in str(error)
        assert str(error).endswith("; restore the file from a good copy")
    assert root.restore("x", 1, ["b"], verify=verify).version == "v3"


def test_another_copy_of_the_content(root: OcflRoot) -> None:
    """Content that is stored twice comes back if one copy is intact."""
    root.update("x", add={"again": b"one"}, dedup=False)
    (folder(root) / "v1/content/a").write_bytes(b"abc")
    assert root.restore("x", 1, ["a"]).version == "v4"
    with root.get("x").open("a") as file:
        assert file.read() == b"one"


def test_archived_content(root: OcflRoot) -> None:
    """In object storage, content that cannot be read comes back if the caller asks for no verification."""
    bucket = root.bucket
    if not isinstance(bucket, MemoryBucket):
        pytest.skip("about object storage")
    key = next(key for key in bucket.keys if key.endswith(b"v1/content/a"))
    bucket.put(key, b"one", over=ANY, storage_class="DEEP_ARCHIVE")
    error = refused(root, lambda: root.restore("x", 1, ["a"]))
    assert error.kind == "unreadable"
    assert root.restore("x", 1, ["a"], verify=False).version == "v3"


def test_content_is_not_sent(root: OcflRoot) -> None:
    """In object storage, a version sends its inventories and sidecars, and reads what comes back."""
    bucket = root.bucket
    if not isinstance(bucket, MemoryBucket):
        pytest.skip("about object storage")
    calls: list[tuple[str, bytes]] = []
    bucket.on_request = lambda call, key: calls.append((call, key))
    root.restore("x", 1)
    bucket.on_request = None
    sent = [key.rpartition(b"/x/")[2] for call, key in calls if call in ("put", "start", "part", "copy")]
    assert sorted(sent) == [
        b"inventory.json",
        b"inventory.json.sha512",
        b"v3/inventory.json",
        b"v3/inventory.json.sha512",
    ]
