"""Objects on disk, each with one defect, and the exact result of the strict check."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from pressmark.errors import ObjectError
from pressmark.fs.moves import remove_tree
from pressmark.stores.ocfl.root import OcflRoot
from pressmark.stores.problems import SECTIONS
from support.implementations import PURE, use

from .samples import CREATED, at, create, files_of, kinds, rewrite, save, source, tree

IDENTIFIER = "info:x/1"

pytestmark = pytest.mark.usefixtures("every_storage")


@pytest.fixture
def root(tmp_path: Path) -> OcflRoot:
    """A storage root with one object of two versions."""
    root = create(tmp_path / "root")
    root.put(IDENTIFIER, source(tmp_path / "one"), created=CREATED, fixity={"md5": {}})
    root.put(IDENTIFIER, source(tmp_path / "two", {"a.txt": b"three", "same.txt": b"one"}), replace=True)
    return root


def folder_of(root: OcflRoot) -> Any:
    return at(root) / root.find(IDENTIFIER).path


def test_a_good_object_has_no_problems(root: OcflRoot) -> None:
    report = root.check(digests=True)
    assert report.problems == []
    assert report.counts.items() >= {"objects": 1, "files": 3, "bytes": 11}.items()


def add(name: str, data: bytes = b"x") -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)

    return change


def gone(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).unlink()


def directory(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).mkdir(parents=True)


def inventory(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], object]:
    return lambda folder: rewrite(folder, change)


def link(name: str, target: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).symlink_to(target)


def hard_link(folder: Path) -> None:
    (folder / "v1/content/x").hardlink_to(folder / "v1/content/a.txt")
    (folder / "v1/content/a.txt").unlink()
    (folder / "v1/content/a.txt").hardlink_to(folder / "v1/content/x")
    (folder / "v1/content/x").rename(folder.parents[3].parent / "elsewhere")


def fifo(folder: Path) -> None:
    os.mkfifo(folder / "v1/content/pipe")


def earlier(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], object]:
    """Change the inventory of version 1 alone."""

    def do(folder: Path) -> None:
        document = json.loads((folder / "v1/inventory.json").read_bytes())
        change(document)
        save(folder / "v1", document, head=None)

    return do


def other_algorithm(folder: Path) -> None:
    digest = hashlib.sha256((folder / "inventory.json").read_bytes()).hexdigest()
    (folder / "inventory.json.sha256").write_text(f"{digest} inventory.json\n")


def version_between(folder: Path) -> None:
    """Add ten versions, the fifth with an earlier specification version than its neighbours."""
    document = json.loads((folder / "inventory.json").read_bytes())
    for number in range(3, 13):
        document["head"] = f"v{number}"
        document["versions"][f"v{number}"] = document["versions"]["v2"]
        (folder / f"v{number}").mkdir()
        kind = "https://ocfl.io/1.0/spec/#inventory" if number == 5 else document["type"]
        save(folder / f"v{number}", {**document, "type": kind}, head=None)
    save(folder, document, head=None)


# An earlier inventory with another content directory does not list its files.
EARLIER_CONTENT = ["history-differs", "path-malformed"]

BAD: list[tuple[str, Callable[[Path], object], list[str], str]] = [
    ("E001 file", add("notes.txt"), ["object-extra"], "E001"),
    ("E001 directory", add("data/notes.txt"), ["object-extra"], "E001"),
    ("E001 sidecar of another algorithm", other_algorithm, ["object-extra"], "E001"),
    ("E003 second declaration", add("0=ocfl_object_1.0", b"ocfl_object_1.0\n"), ["declaration-several"], "E003"),
    (
        "E003 unknown second declaration",
        add("0=ocfl_object_9.9", b"ocfl_object_9.9\n"),
        ["declaration-several", "declaration-unknown"],
        "E006",
    ),
    ("E007 declaration", add("0=ocfl_object_1.1", b"ocfl_object_1.1"), ["declaration-malformed"], "E007"),
    ("E007 empty declaration", add("0=ocfl_object_1.1", b""), ["declaration-malformed"], "E007"),
    ("E015 file in version", add("v1/notes.txt"), ["version-file"], "E015"),
    ("E015 sidecar of none", lambda f: gone("v1/inventory.json")(f), ["version-file"], "E015"),
    ("E015 another sidecar", add("v2/inventory.json.sha256"), ["version-file"], "E015"),
    ("E092 earlier digest", lambda f: other_digest(f), ["content-mismatch"], "E092"),
    ("E092 earlier digests exchanged", lambda f: digests_exchanged(f), ["history-differs"], "E092"),
    (
        "E092 earlier path",
        earlier(lambda d: listed(d, "v1/content/gone")),
        ["content-missing", "history-differs"],
        "E092",
    ),
    (
        "E093 earlier fixity",
        lambda f: earlier_fixity(f, {"sha1": {"0" * 40: ["v1/content/a.txt"]}}),
        ["fixity-mismatch"],
        "E093",
    ),
    (
        "E093 earlier fixity by the manifest's algorithm",
        lambda f: earlier_fixity(f, {"sha512": {"0" * 128: ["v1/content/a.txt"]}}),
        ["history-differs"],
        "E093",
    ),
    (
        "E093 fixity by the manifest's algorithm",
        inventory(lambda d: d["fixity"].update(sha512={"0" * 128: ["v1/content/a.txt"]})),
        ["fixity-mismatch"],
        "E093",
    ),
    (
        "E093 two digests in fixity",
        inventory(lambda d: d["fixity"]["md5"].update({"0" * 32: ["v1/content/a.txt"]})),
        ["fixity-mismatch"],
        "E093",
    ),
    ("E023 extra content", add("v1/content/extra"), ["content-extra"], "E023"),
    ("E023 earlier manifest", lambda f: copied(f), ["history-differs"], "E023"),
    ("E023 manifest between", lambda f: unlisted_between(f), ["history-differs"], "E023"),
    ("E019 content directory set later", lambda f: set_between(f), ["history-differs"], "E019"),
    ("E020 content directory", earlier(lambda d: d.update(contentDirectory="data")), EARLIER_CONTENT, "E020"),
    ("E047 version", inventory(lambda d: d["versions"].update(v1="x")), ["history-differs", "inventory-value"], "E047"),
    ("E024 empty directory", directory("v1/content/empty/empty"), ["content-directory-empty"], "E024"),
    ("E033 no JSON", lambda f: save(f, b"{", head="v2"), ["inventory-malformed"], "E033"),
    ("E033 repeated key", lambda f: save(f, twice(f), head="v2"), ["inventory-key-repeated"], "E033"),
    ("E036 no id", inventory(lambda d: d.pop("id")), ["inventory-key-missing"], "E036"),
    ("E038 type", inventory(lambda d: d.update(type="x")), ["inventory-value"], "E038"),
    (
        "E040 head",
        inventory(lambda d: d.update(head="v1")),
        ["history-differs", "inventory-differs", "inventory-value"],
        "E040",
    ),
    ("E046 version gone", lambda f: shutil.rmtree(f / "v1"), ["content-missing", "version-absent"], "E046"),
    ("E046 version too many", directory("v3"), ["version-extra"], "E046"),
    ("E058 no sidecar", gone("inventory.json.sha512"), ["sidecar-missing"], "E058"),
    ("E058 no sidecar in version", gone("v2/inventory.json.sha512"), ["sidecar-missing"], "E058"),
    ("E060 sidecar", add("inventory.json.sha512", b"ab inventory.json\n"), ["sidecar-mismatch"], "E060"),
    ("E060 sidecar in version", add("v1/inventory.json.sha512", b"ab inventory.json\n"), ["sidecar-mismatch"], "E060"),
    ("E061 sidecar", add("inventory.json.sha512", b"ab  inventory\n"), ["sidecar-malformed"], "E061"),
    ("E063 no inventory", gone("inventory.json"), ["inventory-missing"], "E063"),
    (
        "E064 copies differ",
        lambda f: rewrite(f, lambda d: d.update(id=d["id"]), versions=False),
        ["inventory-differs"],
        "E064",
    ),
    ("E066 history", earlier(lambda d: swap(d)), ["history-differs"], "E066"),
    ("E110 history", earlier(lambda d: d.update(id="other")), ["history-differs"], "E110"),
    ("E103 history", version_between, ["history-differs"], "'v4' has OCFL version 1.1, the next"),
    ("E067 extensions", add("extensions/notes.txt"), ["extensions-file"], "E067"),
    ("W013 extensions", add("extensions/of-our-own/config.json"), [], "W013"),
    ("E089 pipe", fifo, ["special-file"], "E089"),
    ("E090 link to file", link("v1/content/link", "a.txt"), ["symbolic-link"], "E090"),
    ("E090 link for file", lambda f: swap_for_link(f), ["content-missing", "symbolic-link"], "E090"),
    ("E090 link to directory", link("v1/content/link", "deep"), ["symbolic-link"], "E090"),
    ("E090 link in extensions", lambda f: link_below(f, "extensions/x"), ["symbolic-link"], "E090"),
    ("E090 link in logs", lambda f: link_below(f, "logs"), ["symbolic-link"], "E090"),
    ("E090 hard link", hard_link, ["hard-link"], "E090"),
    ("E092 content gone", gone("v1/content/a.txt"), ["content-missing"], "E092"),
    ("E092 byte changed", add("v1/content/a.txt", b"onE"), ["content-mismatch", "fixity-mismatch"], "E092"),
    (
        "E093 fixity",
        inventory(lambda d: d["fixity"].update(md5={"0" * 32: ["v1/content/a.txt"]})),
        ["fixity-mismatch", "history-differs"],
        "E093",
    ),
    ("E102 key", inventory(lambda d: d.update(colour="red")), ["inventory-key-unknown"], "E102"),
    ("W002 directory", directory("v1/other"), [], "W002"),
    ("W003 empty content", lambda f: no_content(f), [], "W003"),
    ("W010 no inventory", lambda f: [gone("v1/inventory.json")(f), gone("v1/inventory.json.sha512")(f)], [], "W010"),
]


def twice(folder: Path) -> bytes:
    data = (folder / "inventory.json").read_bytes()
    return data.replace(b'  "head"', b'  "id": "info:x/1",\n  "head"')


def first_inventory(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "v1/inventory.json").read_bytes())
    return found


def earlier_fixity(folder: Path, fixity: dict[str, Any]) -> None:
    """Put a wrong digest in the first version's inventory only."""
    save(folder / "v1", {**first_inventory(folder), "fixity": fixity}, head=None)


def other_digest(folder: Path) -> None:
    """Give the first version's inventory another digest algorithm and wrong digests."""
    document = first_inventory(folder)
    words = {digest: f"{number:064x}" for number, digest in enumerate(document["manifest"])}
    document["manifest"] = {words[digest]: paths for digest, paths in document["manifest"].items()}
    state = document["versions"]["v1"]["state"]
    document["versions"]["v1"]["state"] = {words[digest]: paths for digest, paths in state.items()}
    (folder / "v1/inventory.json.sha512").unlink()
    save(folder / "v1", {**document, "digestAlgorithm": "sha256"}, "sha256", None)


def digests_exchanged(folder: Path) -> None:
    """Swap the digests in the first version's inventory, in both manifest and state."""
    document = first_inventory(folder)
    one, two = document["manifest"]
    for block in (document["manifest"], document["versions"]["v1"]["state"]):
        block[one], block[two] = block[two], block[one]
    save(folder / "v1", {**document, "fixity": {}}, head=None)


def listed(document: dict[str, Any], path: str) -> None:
    """Add a content path to a manifest, beside one of the same content."""
    next(iter(document["manifest"].values())).append(path)


def copy_listed(document: dict[str, Any]) -> None:
    next(paths for paths in document["manifest"].values() if "v1/content/a.txt" in paths).append("v1/content/copy")


def copied(folder: Path) -> None:
    """Add a copy in the first version's content that only the newest manifest lists."""
    shutil.copy(folder / "v1/content/a.txt", folder / "v1/content/copy")
    rewrite(folder, copy_listed)


def set_between(folder: Path) -> None:
    """Make three versions of which only the second sets contentDirectory."""
    third_version(folder, lambda document: document.update(contentDirectory="content"))


def unlisted_between(folder: Path) -> None:
    """Make three versions; the second manifest lacks a copy that the others list."""
    copied(folder)
    earlier(copy_listed)(folder)
    third_version(
        folder,
        lambda document: [
            paths.remove("v1/content/copy") for paths in document["manifest"].values() if "v1/content/copy" in paths
        ],
    )


def third_version(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Add a version equal to the second, and change the second's inventory."""
    document = json.loads((folder / "inventory.json").read_bytes())
    second = copy.deepcopy(document)
    change(second)
    save(folder / "v2", second, head=None)
    document["head"] = "v3"
    document["versions"]["v3"] = document["versions"]["v2"]
    (folder / "v3").mkdir()
    save(folder, document, head="v3")


def swap(document: dict[str, Any]) -> None:
    state = document["versions"]["v1"]["state"]
    one, two = state
    state[one], state[two] = state[two], state[one]


def swap_for_link(folder: Path) -> None:
    (folder / "v1/content/a.txt").rename(folder.parents[3].parent / "elsewhere")
    (folder / "v1/content/a.txt").symlink_to(folder.parents[3].parent / "elsewhere")


def link_below(folder: Path, name: str) -> None:
    (folder / name).mkdir(parents=True)
    (folder / name / "link").symlink_to("/etc")


def no_content(folder: Path) -> None:
    """Add an empty content directory to version 2."""
    (folder / "v2/content/a.txt").unlink()

    def change(document: dict[str, Any]) -> None:
        [digest] = (digest for digest, paths in document["manifest"].items() if paths == ["v2/content/a.txt"])
        del document["manifest"][digest], document["versions"]["v2"]["state"][digest]

    rewrite(folder, change)


@pytest.mark.verdicts
@pytest.mark.parametrize(("change", "expected", "code"), [bad[1:] for bad in BAD], ids=[bad[0] for bad in BAD])
def test_each_bad_object(root: OcflRoot, change: Callable[[Path], object], expected: list[str], code: str) -> None:
    """Exactly the expected kinds of problems are reported, with codes and with paths in the object."""
    folder = folder_of(root)
    change(folder)
    report = root.check(digests=True)
    assert kinds(report) == expected
    said = [found for found in report.problems if code in found.message]
    assert said, [found.message for found in report.problems]
    assert not re.fullmatch("[EW][0-9]{3}", code) or code in {found.code for found in said}
    for found in report.problems:
        if found.kind == "unversioned":  # not covered by OCFL
            assert found.code is None
            continue
        assert found.section == SECTIONS[found.code]
        assert found.message.count(f"({found.code})") == 1
    path = str(folder.relative_to(at(root)))
    assert all(problem.path.startswith(path) for problem in report.problems)
    assert report.ok is not bool(expected)


def test_directories_below_each_other_a_thousand_times(root: OcflRoot) -> None:
    """Directories nested deeper than Python's recursion limit are checked."""
    folder = folder_of(root) / "v1/content"
    names: list[str] = []
    for _ in range(1100):
        names.append("d")
        (folder / "/".join(names)).mkdir()
    assert kinds(root.check()) == ["content-directory-empty"]
    while names:
        (folder / "/".join(names)).rmdir()
        names.pop()


def padded(tmp_path: Path, name: str) -> OcflRoot:
    """Make a foreign object ``x`` whose first version is called ``name``."""
    root = create(tmp_path / "root", "0002")
    root.put("x", source(tmp_path / "one"))
    folder = at(root) / "x"
    (folder / "v1").rename(folder / name)
    text = (folder / "inventory.json").read_text().replace('"v1', f'"{name}')
    save(folder, text.encode(), head=name)
    return root


@pytest.mark.parametrize(("name", "following"), [("v0001", "v0002"), ("v01", "v02")])
def test_padded_versions_may_be(tmp_path: Path, name: str, following: str) -> None:
    """A foreign object with zero-padded versions is valid, readable, and keeps its padding."""
    root = padded(tmp_path, name)
    report = root.check(digests=True)
    assert report.ok
    assert any("W001" in problem.message for problem in report.problems)
    root.put("x", source(tmp_path / "two", {"c": b"c"}), replace=True)
    assert root.get("x").inventory["head"] == following
    assert [name for name, _path in root.get("x").files()] == ["c"]
    assert root.check(digests=True).ok


def test_padded_versions_come_to_an_end(tmp_path: Path) -> None:
    """Two-digit zero-padded version numbers end at v09."""
    root = padded(tmp_path, "v01")
    for number in range(2, 10):
        root.put("x", source(tmp_path / str(number), {"c": b"%d" % number}), replace=True)
    assert root.get("x").inventory["head"] == "v09"
    before = tree(tmp_path / "root")
    with pytest.raises(ObjectError, match="v09") as caught:
        root.put("x", source(tmp_path / "ten", {"c": b"ten"}), replace=True)
    assert caught.value.kind == "improper"
    assert tree(tmp_path / "root") == before
    assert root.check(digests=True).ok


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero"), os.mkdir])
def test_an_inventory_that_is_no_file_is_not_read(root: OcflRoot, make: Callable[[Path], object]) -> None:
    """A pipe or device in place of an inventory is not read."""
    folder = folder_of(root)
    (folder / "inventory.json").unlink()
    make(folder / "inventory.json")
    [record] = root.objects()
    assert [problem.kind for problem in record.problems] == ["inventory-missing"]
    assert "inventory-missing" in kinds(root.check())
    with pytest.raises(ObjectError):
        root.get(IDENTIFIER)


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero"), os.mkdir])
def test_content_that_is_no_file_is_not_read(root: OcflRoot, make: Callable[[Path], object]) -> None:
    folder = folder_of(root)
    [name] = os.listdir(folder / "v2/content")
    (folder / "v2/content" / name).unlink()
    make(folder / "v2/content" / name)
    with pytest.raises(ObjectError):
        root.get(IDENTIFIER).open(name)


@pytest.mark.on_disk
@pytest.mark.parametrize("name", ["v2", "v2/content", "v2/content/a.txt"])
def test_links_in_an_object_are_not_followed(tmp_path: Path, root: OcflRoot, name: str) -> None:
    """A symbolic link in an object is not followed."""
    folder = folder_of(root)
    (folder / name).rename(tmp_path / "elsewhere")
    (folder / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ObjectError, match="symbolic link"):
        list(root.get(IDENTIFIER).files())
    with pytest.raises(ObjectError, match="symbolic link"):
        root.get(IDENTIFIER).open("a.txt")


def test_a_source_that_is_too_deep_is_refused(tmp_path: Path, root: OcflRoot) -> None:
    folder = tmp_path / "deep"
    folder.mkdir()
    names: list[str] = []
    for _ in range(1100):
        names.append("d")
        (folder / "/".join(names)).mkdir()
    try:
        with pytest.raises(ObjectError, match="nested more than") as caught:
            root.put("info:deep", folder)
        assert caught.value.kind == "source"
        assert root.check().ok
    finally:
        remove_tree(os.fsencode(folder))
    assert not folder.exists()


def test_a_content_path_with_a_nul_is_refused(root: OcflRoot) -> None:
    folder = folder_of(root)
    text = (folder / "inventory.json").read_text().replace("v2/content/a.txt", "v2/content/\\u0000")
    save(folder, text.encode(), head="v2")
    with pytest.raises(ObjectError, match="NUL"):
        list(root.get(IDENTIFIER).files())


def test_content_directories_have_the_name_that_the_inventory_gives(tmp_path: Path) -> None:
    root = create(tmp_path / "root", "0002")
    root.put("x", source(tmp_path / "one"))
    folder = at(root) / "x"
    (folder / "v1/content").rename(folder / "v1/data")
    rewrite(folder, lambda document: [document.update(contentDirectory="data"), moved(document)])
    assert root.check(digests=True).ok
    assert files_of(root.get("x")).keys() == {"a.txt", "deep/er/b.txt", "same.txt"}
    root.put("x", source(tmp_path / "two", {"c": b"c"}), replace=True)
    assert (folder / "v2/data/c").read_bytes() == b"c"
    assert root.check(digests=True).ok


def moved(document: dict[str, Any]) -> None:
    for paths in document["manifest"].values():
        paths[:] = [path.replace("/content/", "/data/") for path in paths]


def test_sizes_in_a_fixity_block_are_compared(root: OcflRoot) -> None:
    """The algorithm ``size`` of extension 0009, without reading the content."""
    path = "v1/content/a.txt"
    rewrite(folder_of(root), lambda document: document["fixity"].update(size={"3": [path]}))
    assert root.check().problems == root.check(digests=True).problems == []
    rewrite(folder_of(root), lambda document: document["fixity"].update(size={"4": [path]}))
    for digests in (False, True):
        [found] = root.check(digests=digests).problems
        assert (found.kind, found.code, found.algorithm) == ("fixity-mismatch", "E093", "size")
        assert (found.expected, found.found) == ("4", "3")


@pytest.mark.parametrize(
    ("change", "code", "code_of_1_0"),
    [
        (lambda document: document.update(manifest=[]), "E106", "E041"),
        (lambda document: document.update(fixity=None), "E111", "E056"),
        (lambda document: document.update(versions="v1"), "E044", "E044"),
        (lambda document: document["versions"].update({"2": document["versions"].pop("v1")}), "E104", "E046"),
    ],
    ids=["manifest", "fixity", "versions", "version name"],
)
def test_codes_are_those_of_the_declared_version(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], code: str, code_of_1_0: str
) -> None:
    for version, expected in (("1.1", code), ("1.0", code_of_1_0)):
        root = create(tmp_path / version, version=version)
        root.put(IDENTIFIER, source(tmp_path / f"in {version}"))
        rewrite(folder_of(root), change)
        codes = {found.code for found in root.check().problems}
        assert expected in codes
        assert code == expected or code not in codes


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("a.txt", "A.txt"), ["a.txt"]),
        (("d/\u00e9", "d/e\u0301", "d/E\u0301"), ["d/e\u0301", "d/\u00e9"]),
        (("D/x", "d/y", "d/z"), ["d"]),
        (("A.txt", "b/a.txt"), []),
    ],
)
def test_names_that_differ_only_in_case_or_normalization(
    tmp_path: Path, names: Sequence[str], expected: list[str]
) -> None:
    """A warning, as for directories of objects: some file systems take them for one."""
    root = create(tmp_path / "root")
    root.put(IDENTIFIER, source(tmp_path / "in", {name: name.encode() for name in names}))
    report = root.check(digests=True)
    path = folder_of(root).relative_to(at(root)) / "v1/content"
    assert [(found.kind, found.path) for found in report.problems] == [
        ("case-clash", str(path / name)) for name in expected
    ]
    assert report.ok


def test_ignored_names_in_an_object(root: OcflRoot) -> None:
    """They are ignored at every level, but never what OCFL requires, or what an inventory lists."""
    folder = folder_of(root)
    for name in (".nfs1", "v1/.nfs1", "v1/content/.nfs1", "v2/content/deep/.nfs1", "logs/.nfs1", ".nfs2/sub/file"):
        add(name)(folder)
    assert not root.check().ok
    assert root.check(ignore=[".nfs*", "deep"]).problems == []
    names = [".nfs*", "v?", "content", "deep", "*.txt", "inv*"]
    assert root.check(ignore=names, digests=True).problems == []
    (folder / "v1/content/a.txt").write_bytes(b"changed")
    assert kinds(root.check(ignore=names, digests=True)) == ["content-mismatch", "fixity-mismatch"]
    (folder / "v1/content/a.txt").unlink()
    assert kinds(root.check(ignore=names)) == ["content-missing"]


@pytest.mark.parametrize("closed", ["v1", "v1/content"])
def test_nothing_is_missing_in_a_directory_that_cannot_be_read(
    root: OcflRoot, monkeypatch: pytest.MonkeyPatch, closed: str
) -> None:
    path = os.fsencode(folder_of(root).relative_to(at(root)) / closed)
    scan = type(root.storage).scan

    def refuse(storage: Any, directory: bytes) -> Any:
        if directory == path:
            raise PermissionError(13, os.strerror(13))
        return scan(storage, directory)

    monkeypatch.setattr(type(root.storage), "scan", refuse)
    # With names to ignore, objects are read one by one.
    assert {(found.kind, found.path) for found in root.check(ignore=["other"]).problems} == {
        ("unreadable", os.fsdecode(path))
    }


@pytest.mark.on_disk
def test_unreadable_content_is_no_mismatch(root: OcflRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unreadable content is reported as unreadable, and the other files are verified."""
    (folder_of(root) / "v1/content/a.txt").write_bytes(b"changed")

    def unreadable(path: bytes, *args: Any, **options: Any) -> Any:
        if os.fsencode(path).endswith(b"b.txt"):
            raise PermissionError(13, os.strerror(13))
        return stat(path, *args, **options)

    stat = os.stat
    monkeypatch.setattr("pressmark.fixity.hasher.os.stat", unreadable)
    with use(PURE):  # the native implementation does not call os.stat
        report = root.check(digests=True)
    assert kinds(report) == ["content-mismatch", "content-unreadable", "fixity-mismatch"]
