"""Pressmark lists, reads, checks, updates and migrates the storage roots that other programs write."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from migrate.samples import held, migrate
from pressmark import layout
from pressmark.errors import ObjectError
from pressmark.migrate.entry import GOOD
from pressmark.stores.ocfl.root import OcflRoot
from support.trees import snapshot, write

from .conftest import PeerNamed
from .peer_disagreements import Subject, unexplained
from .peers import Peer, PeerError, marks
from .samples import LAYOUTS, USER, kinds

pytestmark = [pytest.mark.peers, pytest.mark.slow_under_sanitizers]

Files = dict[str, bytes]

#: The versions of an object: files added, changed, removed and renamed, and the content of an earlier version.
HISTORY: tuple[Files, ...] = (
    {"a": b"1", "d/b \u00e9": b"2", "same": b"1"},
    {"a": b"1 changed", "renamed": b"2", "caf\u00e9": b"3", "cafe\u0301": b"4"},
    {"a": b"1", "deep/er/c": b"5", "empty": b""},
)
IDENTIFIERS = ("info:001", "info:002")


class Case(NamedTuple):
    """A storage root that a peer makes.

    :ivar options: of its objects
    :ivar versions: how many versions of an object it can make
    """

    maker: str
    layout: str
    version: str
    options: dict[str, Any]
    versions: int = 3

    @property
    def history(self) -> tuple[Files, ...]:
        """The versions of each object."""
        return HISTORY[: self.versions]

    def __str__(self) -> str:
        return "-".join([self.maker, self.layout, self.version, *map(str, self.options)])


_PADDED = {"algorithm": "sha256", "content": "data", "padding": 4}
_FIXED = {"algorithm": "sha256", "fixity": ["md5", "sha1", "blake2b-512"]}
CASES = (
    # A second version of ocfl-py claims to be OCFL 1.1, in an object that declares 1.0.
    Case("ocfl-py", "0002", "1.0", {}, versions=1),
    Case("ocfl-py", "0002", "1.1", {}),
    Case("ocfl-py", "0003", "1.1", {"algorithm": "sha256", "content": "data", "fixity": ["md5", "sha1"]}),
    # rocfl writes no fixity block; ocfl-py and ocfl-go pad no version numbers.
    Case("rocfl", "0002", "1.1", {}),
    Case("rocfl", "0003", "1.1", _PADDED),
    Case("rocfl", "0004", "1.0", {}),
    Case("rocfl", "0006", "1.1", {}),
    Case("rocfl", "0007", "1.0", {"algorithm": "sha256"}),
    Case("ocfl-java", "0002", "1.0", {}),
    Case("ocfl-java", "0003", "1.1", {**_PADDED, "fixity": ["md5", "sha1", "blake2b-512"]}),
    Case("ocfl-java", "0004", "1.0", {"content": "data"}),
    # Its config.json has no extensionName.
    Case("ocfl-java", "0006", "1.1", {}),
    Case("ocfl-java", "0007", "1.1", {}),
    # ocfl-go offers no other content directory.
    Case("ocfl-go", "0002", "1.0", {}),
    Case("ocfl-go", "0003", "1.1", _FIXED),
    Case("ocfl-go", "0004", "1.0", {"algorithm": "sha256"}),
    Case("ocfl-go", "0006", "1.1", {}),
    Case("ocfl-go", "0007", "1.1", {}),
)


def _param(case: Case) -> Any:
    return pytest.param(case, id=str(case), marks=marks(case.maker))


@pytest.fixture(scope="module", params=[_param(case) for case in CASES])
def case(request: pytest.FixtureRequest) -> Case:
    """Return a root to make."""
    chosen: Case = request.param
    return chosen


@pytest.fixture(scope="module")
def made(case: Case, peer_named: PeerNamed, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a root that a peer made, not to be changed."""
    maker = peer_named(case.maker)
    folder = tmp_path_factory.mktemp("made")
    maker.create(folder / "root", LAYOUTS[case.layout], case.version)
    for identifier in IDENTIFIERS:
        for number, files in enumerate(case.history):
            given = write_all(folder / f"{identifier}-{number}", files)
            maker.put(folder / "root", identifier, given, **case.options)
    return folder / "root"


def write_all(folder: Path, files: Files) -> Path:
    """Return a new directory with files."""
    folder.mkdir()
    write(folder, files)
    return folder


def contents(root: OcflRoot, identifier: str, version: str | int | None = None) -> Files:
    """Return the files of an object's version."""
    return {name: Path(path).read_bytes() for name, path in root.get(identifier, version).files()}


def test_roots_of_peers_are_read(case: Case, made: Path, record_property: Callable[[str, object], None]) -> None:
    """Every object is listed, every version is read, and the strict check finds no error."""
    root = OcflRoot(made)
    assert root.layout == LAYOUTS[case.layout]
    assert root.version == case.version
    assert sorted((record.id, record.proper) for record in root.objects()) == [(one, True) for one in IDENTIFIERS]
    padding = case.options.get("padding", 0)
    for identifier in IDENTIFIERS:
        names = [f"v{number:0{padding}}" for number in range(1, case.versions + 1)]
        assert [one.version for one in root.versions(identifier)] == names
        for number, files in enumerate(case.history, 1):
            assert contents(root, identifier, number) == contents(root, identifier, names[number - 1]) == files
        assert contents(root, identifier) == case.history[-1]
    inventory = root.get(IDENTIFIERS[0]).inventory
    assert inventory["digestAlgorithm"] == case.options.get("algorithm", "sha512")
    assert inventory.get("contentDirectory", "content") == case.options.get("content", "content")
    assert set(inventory.get("fixity", {})) == set(case.options.get("fixity", []))
    assert kinds(root.check(digests=True)) == []
    record_property("ocfl peer", json.dumps([case.maker, "theirs", len(IDENTIFIERS), []]))


def test_new_versions_of_peers_objects_are_valid(
    case: Case, made: Path, peer: Peer, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Pressmark replaces and updates an object of a peer: valid for every peer; and the maker adds another version.

    The object has logs (section 3.2), by hand because no peer writes them: they stay.
    """
    folder = tmp_path / "root"
    shutil.copytree(made, folder)
    root = OcflRoot(folder, user=USER, durable=False)
    earlier = root.get(IDENTIFIERS[0]).inventory
    path = next(record.path for record in root.objects() if record.id == IDENTIFIERS[0])
    write(folder / path, {"logs/2026/log.txt": b"a log"})
    files = {"a": b"of ours", "renamed": b"2", "deep/er/c": b"5"}
    root.put(IDENTIFIERS[0], write_all(tmp_path / "ours", files), replace=True, message="why")
    assert contents(root, IDENTIFIERS[0]) == files
    assert (folder / path / "logs/2026/log.txt").read_bytes() == b"a log"
    inventory = root.get(IDENTIFIERS[0]).inventory
    for key in ("type", "digestAlgorithm", "contentDirectory"):
        assert inventory.get(key) == earlier.get(key)
    assert inventory["head"] == f"v{case.versions + 1:0{case.options.get('padding', 0)}}"
    assert inventory["versions"].items() >= earlier["versions"].items()
    report = root.check(digests=True)
    assert kinds(report) == []
    used = check_validity(peer, root, IDENTIFIERS[0], path, by_id=peer.name == case.maker)
    record_property("ocfl peer", json.dumps([peer.name, "ours", 1, sorted(used)]))
    new = {"new": tmp_path / "ours/a"}
    root.update(IDENTIFIERS[0], add=new, remove=["a"], rename={"renamed": "again"}, message="why", fixity={"md5": {}})
    updated = {"new": b"of ours", "again": b"2", "deep/er/c": b"5"}
    assert contents(root, IDENTIFIERS[0]) == updated
    assert kinds(root.check(digests=True)) == []
    check_validity(peer, root, IDENTIFIERS[0], path, by_id=peer.name == case.maker)
    if peer.name == case.maker and case.versions > 1:
        last = {"a": b"of theirs", "renamed": b"2"}
        peer.put(folder, IDENTIFIERS[0], write_all(tmp_path / "theirs", last), **case.options)
        for number, expected in enumerate((*case.history, files, updated, last), 1):
            assert contents(root, IDENTIFIERS[0], number) == expected
        assert kinds(root.check(digests=True)) == []


def check_validity(peer: Peer, root: OcflRoot, identifier: str, path: str, *, by_id: bool) -> set[str]:
    """Check that a peer finds an object valid by its path, and by its identifier; return the disagreements."""
    assert root.layout is not None
    subject = Subject(root.layout, identifier, Path(root.root) / path)
    [verdict] = peer.validate(Path(root.root), paths=[path]).values()
    left, used = unexplained(peer.name, subject, verdict.errors)
    assert left == []
    if by_id:
        [verdict] = peer.validate(Path(root.root), ids=[identifier]).values()
        assert unexplained(peer.name, subject._replace(by_id=True), verdict.errors)[0] == []
    return used


@pytest.mark.parametrize("kind", ["pairtree", "bags", "ocfl"])
def test_roots_of_peers_are_migrated(case: Case, made: Path, kind: str, tmp_path: Path) -> None:
    """The newest version of every object is in a Pairtree and in bags; every version is in another OCFL layout."""
    more = {"layout": layout("0012", delimiters=[":"]).config()} if kind == "ocfl" else {}
    rows, store = migrate(OcflRoot(made), kind, tmp_path / "target", verify="reread", **more)
    assert {row.status for row in rows.values()} <= GOOD
    assert held(store) == dict.fromkeys(IDENTIFIERS, case.history[-1])
    if isinstance(store, OcflRoot):
        for identifier in IDENTIFIERS:
            for number, files in enumerate(case.history, 1):
                assert contents(store, identifier, number) == files
    assert kinds(store.check(digests=True)) == []


@pytest.fixture
def java(peer_named: PeerNamed) -> Peer:
    """Return ocfl-java."""
    return peer_named("ocfl-java")


@pytest.mark.repository
@pytest.mark.parametrize("kind", ["pairtree", "bags", "ocfl"])
def test_paths_of_ocfl_java_above_two_bytes(
    java: Peer, tmp_path: Path, kind: str, record_property: Callable[[str, object], None]
) -> None:
    """ocfl-java spells some paths of 0003 in upper case: the objects are found, updated there, and migrated."""
    identifiers = ("info:\u4f8b", "info:\U0001f600/\u2010", "info:\u00e9")
    given = [write_all(tmp_path / str(number), files) for number, files in enumerate(HISTORY)]
    java.create(tmp_path / "root", LAYOUTS["0003"])
    for identifier in identifiers:
        java.put(tmp_path / "root", identifier, given[0])
        java.put(tmp_path / "root", identifier, given[1])
    root = OcflRoot(tmp_path / "root", user=USER, durable=False)
    found = {record.id: [one.kind for one in record.problems] for record in root.objects()}
    assert found == {identifiers[0]: ["path-ocfl-java"], identifiers[1]: ["path-ocfl-java"], identifiers[2]: []}
    assert kinds(root.check(digests=True)) == ["path-ocfl-java"]
    for identifier in identifiers:
        assert contents(root, identifier, 1) == HISTORY[0]
        path = root.put(identifier, given[0], replace=True, message="why").path
        assert root.update(identifier, rename={"a": "b"}, message="why").path == path
        assert root.put(identifier, given[2], replace=True, message="why").path == path
        assert contents(root, identifier) == HISTORY[2]
        [by_path] = java.validate(tmp_path / "root", paths=[path]).values()
        [by_id] = java.validate(tmp_path / "root", ids=[identifier]).values()
        assert by_path.errors == by_id.errors == []
    assert sorted(record.id or "" for record in root.objects()) == sorted(identifiers)
    rows, store = migrate(root, kind, tmp_path / "target", verify="reread")
    assert {row.status for row in rows.values()} <= GOOD
    assert held(store) == dict.fromkeys(identifiers, HISTORY[2])
    assert kinds(store.check(digests=True)) == []
    for identifier in identifiers:
        root.delete(identifier)
    assert list(root.objects()) == []
    assert kinds(root.check()) == []
    record_property("ocfl peer", json.dumps(["ocfl-java", "theirs", len(identifiers), []]))


@pytest.mark.repository
def test_a_mutable_head_of_ocfl_java(java: Peer, tmp_path: Path) -> None:
    """An object with a mutable HEAD is valid and read without it, refused to be changed, and changed after a commit."""
    folder = tmp_path / "root"
    java.create(folder, LAYOUTS["0003"])
    given = [write_all(tmp_path / str(number), files) for number, files in enumerate(HISTORY)]
    java.put(folder, "info:x", given[0])
    java.stage(folder, "info:x", given[1])
    root = OcflRoot(folder, user=USER, durable=False)
    report = root.check(digests=True)
    # Two names of the staged version differ only in normalization.
    assert (kinds(report), kinds(report, "warning")) == ([], ["case-clash", "mutable-head"])
    [found] = [problem for problem in report.problems if problem.kind == "mutable-head"]
    assert found.path.endswith("/0005-mutable-head")
    assert contents(root, "info:x") == HISTORY[0]
    for change in (
        lambda: root.put("info:x", given[2], replace=True, message="why"),
        lambda: root.update("info:x", remove=["a"], message="why"),
        lambda: root.restore("info:x", "v1", message="why"),
        lambda: root.delete("info:x"),
    ):
        with pytest.raises(ObjectError, match="commit it with ocfl-java") as caught:
            change()
        assert caught.value.kind == "mutable-head"
    rows, store = migrate(root, "pairtree", tmp_path / "pairtree", verify="reread")
    assert "commit it with ocfl-java" in str(rows["info:x"].error)
    assert held(store) == {"info:x": HISTORY[0]}
    java.commit(folder, "info:x")
    assert kinds(root.check(digests=True)) == []
    assert contents(root, "info:x") == HISTORY[1]
    path = root.put("info:x", given[2], replace=True, message="why").path
    [verdict] = java.validate(folder, paths=[path]).values()
    assert verdict.errors == []
    java.put(folder, "info:x", given[0])
    assert [contents(root, "info:x", number) for number in (1, 2, 3, 4)] == [*HISTORY, HISTORY[0]]


@pytest.mark.repository
def test_an_upgrade_beside_a_mutable_head_of_ocfl_java(java: Peer, tmp_path: Path) -> None:
    """The object with a mutable HEAD is named and not touched; ocfl-java commits it, and the next run upgrades it."""
    folder = tmp_path / "root"
    java.create(folder, LAYOUTS["0003"], "1.0")
    given = [write_all(tmp_path / str(number), files) for number, files in enumerate(HISTORY)]
    for identifier in IDENTIFIERS:
        java.put(folder, identifier, given[0])
    java.stage(folder, IDENTIFIERS[0], given[2])
    root = OcflRoot(folder, user=USER, durable=False)
    paths = [root.find(identifier).path for identifier in IDENTIFIERS]
    staged = snapshot(folder / paths[0])
    results = {one.id: one.error for one in root.upgrade(to="1.1", algorithm="sha256", message="why")}
    assert {one: error and error.kind for one, error in results.items()} == {
        paths[0]: "mutable-head",
        IDENTIFIERS[1]: None,
    }
    assert snapshot(folder / paths[0]) == staged
    assert (root.version, kinds(root.check(digests=True))) == ("1.1", [])
    java.commit(folder, IDENTIFIERS[0])
    assert contents(root, IDENTIFIERS[0]) == HISTORY[2]
    assert [one.error for one in root.upgrade(to="1.1", algorithm="sha256", message="why")] == [None, None]
    java.put(folder, IDENTIFIERS[0], given[1])
    assert [contents(root, IDENTIFIERS[0], number) for number in (1, 2, 3, 4)] == [
        *(HISTORY[0], HISTORY[2], HISTORY[2], HISTORY[1])
    ]
    verdicts = java.validate(folder, paths=paths)
    assert [verdicts[path].errors for path in paths] == [[], []]
    assert kinds(root.check(digests=True)) == []


@pytest.mark.repository
def test_staged_changes_of_rocfl(peer_named: PeerNamed, tmp_path: Path) -> None:
    """rocfl stages versions and new objects in the root: they are no objects yet, and do not stand in the way."""
    rocfl = peer_named("rocfl")
    folder = tmp_path / "root"
    rocfl.create(folder, LAYOUTS["0003"])
    given = [write_all(tmp_path / str(number), files) for number, files in enumerate(HISTORY)]
    rocfl.put(folder, "info:x", given[0])
    rocfl.stage(folder, "info:x", given[1])
    rocfl.stage(folder, "info:y", given[1])
    root = OcflRoot(folder, user=USER, durable=False)
    assert [record.id for record in root.objects()] == ["info:x"]
    report = root.check(digests=True)
    assert (kinds(report), kinds(report, "warning")) == ([], ["extension-unregistered"])
    root.put("info:x", given[2], replace=True, message="why")
    with pytest.raises(PeerError, match=r"Cannot create version v2 .* because the current version is at v2"):
        rocfl.commit(folder, "info:x")
    rocfl.commit(folder, "info:y")
    assert [contents(root, "info:x", number) for number in (1, 2)] == [HISTORY[0], HISTORY[2]]
    assert contents(root, "info:y") == HISTORY[1]
    assert kinds(root.check(digests=True)) == []


@pytest.mark.repository
def test_a_configuration_of_ocfl_java_without_extension_name(java: Peer, tmp_path: Path) -> None:
    """ocfl-java writes no extensionName for 0006; the layout is read all the same."""
    folder = tmp_path / "root"
    java.create(folder, LAYOUTS["0006"])
    config = json.loads((folder / "extensions/0006-flat-omit-prefix-storage-layout/config.json").read_bytes())
    assert "extensionName" not in config
    assert OcflRoot(folder).layout == LAYOUTS["0006"]


def test_updates_of_ocfl_py_in_ocfl_1_0_are_invalid(peer_named: PeerNamed, peer: Peer, tmp_path: Path) -> None:
    """ocfl-py writes OCFL 1.1 into inventories of objects that declare 1.0: an error (E038) here and for the others."""
    maker = peer_named("ocfl-py")
    folder = tmp_path / "root"
    maker.create(folder, LAYOUTS["0002"], "1.0")
    for number in range(2):
        maker.put(folder, "x", write_all(tmp_path / str(number), HISTORY[number]))
    report = OcflRoot(folder).check(digests=True)
    assert {problem.code for problem in report.problems if problem.severity == "error"} == {"E038"}
    [verdict] = peer.validate(folder, paths=["x"]).values()
    assert bool(verdict.errors) == (peer is not maker)
