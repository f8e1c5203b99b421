"""Versions of OCFL objects: reading each, listing all, comparing two, whoever wrote them."""

from __future__ import annotations

import hashlib
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from pressmark.errors import ObjectError
from pressmark.stores.ocfl.differences import Changes
from pressmark.stores.ocfl.ocfl_object import OcflObject
from pressmark.stores.ocfl.root import OcflRoot

from .samples import CREATED, USER, at, create, files_of, reopened, rewrite, save, source

pytestmark = pytest.mark.usefixtures("every_storage")

IDENTIFIER = "info:x/1"
#: The files of each version of the object that :func:`by_hand` writes.
HISTORY: list[dict[str, bytes]] = [
    {"a.txt": b"one", "sub/b.txt": b"two", "same.txt": b"one"},
    {"a.txt": b"three!", "sub/b.txt": b"two", "same.txt": b"one"},
    {"a.txt": b"three!", "moved/ü b.txt": b"two", "new.txt": b"one"},
    {},
    {"a.txt": b"one", "last": b""},
]


def by_hand(
    root: OcflRoot,
    *,
    width: int = 0,
    algorithm: str = "sha512",
    content: str | None = None,
    upper: bool = False,
    earlier_algorithm: str | None = None,
) -> Any:
    """Write an object with the versions of :data:`HISTORY`, without the code under test.

    :param width: digits of version numbers, 0 for no padding
    :param content: the content directory
    :param upper: write digests in upper case
    :param earlier_algorithm: of the inventories of all versions but the newest
    """
    folder = at(root) / root.path_for(IDENTIFIER)
    blocks: dict[str, Any] = {}
    stored: dict[bytes, str] = {}
    for number, files in enumerate(HISTORY, 1):
        version = f"v{number:0{width}}"
        (folder / version).mkdir(parents=True)
        for name, data in files.items():
            if data not in stored:
                stored[data] = f"{version}/{content or 'content'}/{name}"
                path = folder / stored[data]
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
        blocks[version] = files
        used = earlier_algorithm or algorithm if number < len(HISTORY) else algorithm
        save(folder / version, inventory(blocks, stored, used, content, upper), used, None)
    save(folder, inventory(blocks, stored, algorithm, content, upper), algorithm, None)
    (folder / "0=ocfl_object_1.1").write_text("ocfl_object_1.1\n")
    return folder


def inventory(
    blocks: dict[str, dict[str, bytes]], stored: dict[bytes, str], algorithm: str, content: str | None, upper: bool
) -> dict[str, Any]:
    def digest(data: bytes) -> str:
        found = hashlib.new(algorithm, data).hexdigest()
        return found.upper() if upper else found

    versions = {}
    for version, files in blocks.items():
        state: dict[str, list[str]] = {}
        for name, data in files.items():
            state.setdefault(digest(data), []).append(name)
        versions[version] = {"created": CREATED, "message": f"Made {version}", "user": USER, "state": state}
    return {
        "id": IDENTIFIER,
        "type": "https://ocfl.io/1.1/spec/#inventory",
        "digestAlgorithm": algorithm,
        "head": list(blocks)[-1],
        **({} if content is None else {"contentDirectory": content}),
        "manifest": {digest(data): [path] for data, path in stored.items()},
        "versions": versions,
    }


STYLES: dict[str, dict[str, Any]] = {
    "plain": {},
    "padded": {"width": 4},
    "sha256": {"algorithm": "sha256"},
    "content directory": {"content": "data files"},
    "upper case": {"upper": True},
    "earlier inventories with sha256": {"earlier_algorithm": "sha256"},
    "all": {"width": 3, "algorithm": "sha256", "content": "f", "upper": True},
}


@pytest.fixture(params=STYLES)
def written(request: pytest.FixtureRequest, tmp_path: Path) -> OcflRoot:
    """A root with one object in a style of another writer."""
    root = create(tmp_path / "root")
    by_hand(root, **STYLES[request.param])
    report = root.check(digests=True)
    assert [problem for problem in report.problems if problem.severity == "error"] == []
    return root


def contents(found: OcflObject) -> dict[str, bytes]:
    """Return the files of an object, read in both ways if they are on a disk."""
    read = files_of(found)
    for name, path in found.files():
        if not path.startswith(("/memory/", "s3://")):
            assert Path(os.fsdecode(path)).read_bytes() == read[name]
    return read


def test_each_version_is_read_as_it_was_written(written: OcflRoot) -> None:
    """Names with and without padding, and numbers, return each version byte for byte, with its digests."""
    names = [one.version for one in written.versions(IDENTIFIER)]
    for number, (name, files) in enumerate(zip(names, HISTORY, strict=True), 1):
        for wanted in (name, f"v{number}", f"v{number:07}", str(number), number):
            found = written.get(IDENTIFIER, version=wanted)
            assert (found.version, contents(found)) == (name, files)
        algorithm = found.inventory["digestAlgorithm"]
        assert found.digests == {path: hashlib.new(algorithm, data).hexdigest() for path, data in files.items()}
        with pytest.raises(ObjectError, match="not found in the object"):
            found.open("none")
    newest = written.get(IDENTIFIER)
    assert (newest.version, contents(newest)) == (names[-1], HISTORY[-1])
    with pytest.raises(ObjectError, match="not found in the object"):
        newest.open("sub/b.txt")  # a file of earlier versions


def test_all_versions_are_described(written: OcflRoot) -> None:
    found = written.versions(IDENTIFIER)
    assert [(one.created, one.user, one.message) for one in found] == [
        (CREATED, USER, f"Made {one.version}") for one in found
    ]
    assert [one.files for one in found] == [3, 3, 3, 0, 2]
    assert [one.bytes for one in found] == [9, 12, 12, 0, 3]


def test_differences_between_versions(written: OcflRoot) -> None:
    def diff(*versions: str | int) -> Changes:
        return written.diff(IDENTIFIER, *versions)

    assert diff() == diff("v4", "v5") == diff(4) == Changes(added=("a.txt", "last"))
    assert diff(1, 2) == Changes(changed=("a.txt",), unchanged=("same.txt", "sub/b.txt"))
    renamed = (("same.txt", "new.txt"), ("sub/b.txt", "moved/ü b.txt"))
    assert diff("v2", "v0003") == Changes(renamed=renamed, unchanged=("a.txt",))
    assert diff(3, 4) == Changes(removed=("a.txt", "moved/ü b.txt", "new.txt"))
    assert diff(3, 3).is_empty
    # Backwards, from the newest to an older one.
    assert diff(5, 1) == Changes(("same.txt", "sub/b.txt"), ("last",), (), (), ("a.txt",))


def test_versions_that_are_missing(written: OcflRoot) -> None:
    newest = written.versions(IDENTIFIER)[-1].version
    for wanted in ("v6", "v0", "v00", 0, -1, "", "v", "vv1", "1.0", "newest", "v1/content", "v" + "9" * 300):
        for call in (written.get, written.diff):
            with pytest.raises(ObjectError, match=rf"not found; the object has v0*1 to {newest}$") as caught:
                call(IDENTIFIER, wanted)  # type: ignore[operator]
            assert caught.value.kind == "missing"
    for one in (written.get, written.versions, written.diff):
        with pytest.raises(ObjectError) as caught:
            one("info:x/2")  # type: ignore[operator]
        assert caught.value.kind == "missing"


def test_an_object_with_one_version(tmp_path: Path) -> None:
    root = create(tmp_path / "root")
    root.put(IDENTIFIER, source(tmp_path / "in"), created=CREATED)
    assert root.diff(IDENTIFIER) == Changes(added=("a.txt", "deep/er/b.txt", "same.txt"))
    assert root.diff(IDENTIFIER, 1).is_empty
    with pytest.raises(ObjectError, match=r"version 'v2' not found; the object has v1$"):
        root.get(IDENTIFIER, "v2")
    root.put("empty", {}, created=CREATED, message="")
    assert root.versions("empty") == [("v1", CREATED, USER, "", 0, 0)]
    assert root.diff("empty").is_empty


def test_what_the_inventory_does_not_say_is_none(tmp_path: Path) -> None:
    """Missing, malformed and partial provenance does not prevent the listing."""
    root = create(tmp_path / "root")
    folder = by_hand(root)

    def change(document: dict[str, Any]) -> None:
        blocks = document["versions"]
        for key in ("created", "message", "user"):
            del blocks["v1"][key]
        blocks["v2"].update(created=5, message=["x"], user="A Curator")
        blocks["v3"]["user"] = {"name": 5, "address": "mailto:x@example.org"}
        blocks["v4"]["user"] = {}

    rewrite(folder, change)
    found = root.versions(IDENTIFIER)
    assert [one[1:4] for one in found[:2]] == [(None, None, None)] * 2
    assert [one.user for one in found[2:]] == [{"address": "mailto:x@example.org"}, None, USER]


def test_sizes_that_are_unknown(tmp_path: Path) -> None:
    """A file that is missing, a link or a directory makes the size of its versions unknown, and only of those."""
    root = create(tmp_path / "root")
    folder = by_hand(root)
    (folder / "v2/content/a.txt").unlink()
    assert [one.bytes for one in root.versions(IDENTIFIER)] == [9, None, None, 0, 3]
    (folder / "v2/content/a.txt").mkdir()
    (folder / "v5/content/last").unlink()
    (folder / "v5/content/last").symlink_to("/etc/passwd")
    assert [one.bytes for one in root.versions(IDENTIFIER)] == [9, None, None, 0, None]
    rewrite(folder, lambda document: document["manifest"].update({digest(b"two"): ["../../x"]}))
    assert [one.bytes for one in root.versions(IDENTIFIER)] == [None, None, None, 0, None]


def digest(data: bytes) -> str:
    return hashlib.sha512(data).hexdigest()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda document: document.pop("versions"), "no versions|state of the newest version is missing"),
        (lambda document: document.update(versions={}), "no versions|state of the newest version is missing"),
        (lambda document: document.update(versions=["v1", "v2"]), "no versions|state of the newest version is missing"),
        (lambda document: document["versions"].update({"x": document["versions"]["v1"]}), "'x' is not a version name"),
        (lambda document: document["versions"]["v2"].pop("state"), "or the state of 'v2' is missing"),
        (lambda document: document["versions"].update(v2=["state"]), "or the state of 'v2' is missing"),
        (lambda document: document["versions"]["v2"]["state"].update(x=["b"]), "the state of 'v2' uses digests"),
        (lambda document: document["versions"]["v2"]["state"].update(x=[]), "the state of 'v2' contains an invalid"),
    ],
)
def test_malformed_histories(tmp_path: Path, change: Any, message: str) -> None:
    """An inventory that cannot be understood is an error, never a wrong state."""
    root = create(tmp_path / "root")
    rewrite(by_hand(root), change)
    for call in (lambda: root.get(IDENTIFIER, 2), lambda: root.versions(IDENTIFIER), lambda: root.diff(IDENTIFIER, 2)):
        with pytest.raises(ObjectError, match=f"malformed inventory: .*({message})") as caught:
            call()
        assert caught.value.kind == "improper"


@pytest.mark.parametrize("sidecar", [False, True])
def test_an_unfinished_version_does_not_disturb_readers(tmp_path: Path, sidecar: bool) -> None:
    """A complete version directory that the root inventory does not list is not a version yet; one that it lists is,
    even while the sidecar is still that of the inventory before."""
    root = create(tmp_path / "root")
    root.put(IDENTIFIER, source(tmp_path / "in", {"a": b"1"}), created=CREATED)
    folder = at(root) / root.find(IDENTIFIER).path
    held = root.get(IDENTIFIER)
    before = {name: (folder / name).read_bytes() for name in ("inventory.json", "inventory.json.sha512")}
    root.put(IDENTIFIER, source(tmp_path / "in2", {"b": b"2"}), replace=True, created=CREATED)
    (folder / "inventory.json.sha512").write_bytes(before["inventory.json.sha512"])
    if not sidecar:
        (folder / "inventory.json").write_bytes(before["inventory.json"])
    listed = ["v1", "v2"] if sidecar else ["v1"]
    assert [one.version for one in root.versions(IDENTIFIER)] == listed
    assert contents(root.get(IDENTIFIER)) == ({"b": b"2"} if sidecar else {"a": b"1"})
    assert contents(root.get(IDENTIFIER, 1)) == {"a": b"1"}
    assert contents(held) == {"a": b"1"}
    held.versions()
    assert root.diff(IDENTIFIER).counts()["added"] == 1


def test_a_version_stays_readable_while_others_are_made(tmp_path: Path) -> None:
    """A reader beside a writer gets each version whole, and a history that only grows."""
    root = create(tmp_path / "root")
    root.put(IDENTIFIER, source(tmp_path / "0", {"n": b"0", "kept": b"kept"}), created=CREATED)
    first = root.get(IDENTIFIER, 1)
    wrong: list[object] = []
    end = threading.Event()

    def read() -> None:
        reader, longest = reopened(root), 0
        while not end.is_set():
            try:
                versions = reader.versions(IDENTIFIER)
                newest = reader.get(IDENTIFIER)
                for found in (newest, reader.get(IDENTIFIER, version=len(versions))):
                    number = int(found.version[1:]) - 1
                    if contents(found) != {"n": str(number).encode(), "kept": b"kept"}:
                        wrong.append(found.version)
                if len(versions) < longest or reader.diff(IDENTIFIER, 1, len(versions)).added:
                    wrong.append(versions)
                longest = len(versions)
            except Exception as error:
                wrong.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    for number in range(1, 12):
        files = {"n": str(number).encode(), "kept": b"kept"}
        root.put(IDENTIFIER, source(tmp_path / str(number), files), replace=True, created=CREATED)
    end.set()
    thread.join()
    assert wrong == []
    assert contents(first) == {"n": b"0", "kept": b"kept"}
    assert len(root.versions(IDENTIFIER)) == 12


def test_a_removed_object_is_reported_as_changed(tmp_path: Path) -> None:
    root = create(tmp_path / "root")
    by_hand(root)
    held = root.get(IDENTIFIER, 2)
    root.delete(IDENTIFIER)
    for call in (held.versions, lambda: held.open("a.txt"), lambda: list(held.files())):
        with pytest.raises(ObjectError) as caught:
            call()
        assert caught.value.kind == "changed"
