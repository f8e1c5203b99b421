"""Selected objects: their checks and records are those of the whole store, and the others are not opened."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from pressmark import stores
from pressmark.buckets.memory import MemoryBucket
from pressmark.errors import IdentifierError, ObjectError, StoreError
from pressmark.reports import Problem
from pressmark.stores import BagFolder, OcflRoot, Store, VitroStore
from pressmark.stores.registry import store_class
from support.in_bucket import ADDRESS, fill, serving
from support.trees import write

LAYOUTS = ("0004", "0003", "0002")
#: Kind of store, and layout of a storage root.
CASES = ["pairtree", "vitro", "bags", *(f"ocfl {layout}" for layout in LAYOUTS)]
IDS = [f"urn:obj{letter}" for letter in "abcdefgh"]
USER = {"name": "Ann", "address": "mailto:ann@example.org"}


def make(path: Path, case: str) -> Store:
    kind, _, layout = case.partition(" ")
    options = {"ocfl": {"layout": layout, "durable": False, "user": USER}}.get(kind, {})
    store: Store = store_class(kind).create(path, **options)
    store.put_all([])
    for one in IDS:
        store.put(one, {"a.txt": one.encode()})
    return store


def reopened(case: str, path: Path | str) -> Store:
    return store_class(case.split()[0])(path)


def directory_of(store: Store, identifier: str) -> Path:
    return Path(store.root) / store.find(identifier).path


def damage(store: Store) -> None:
    """Damage some objects, and leave files outside of all objects."""
    first, second, third, fourth = (directory_of(store, one) for one in IDS[:4])
    files = sorted(path for path in first.rglob("*") if path.is_file() and path.name == "a.txt")
    if store.kind in ("ocfl", "bags"):
        files[0].write_bytes(b"damaged")
        next(path for path in second.rglob("*") if path.name == "a.txt").unlink()
    write(third, {"more.txt": b"x", "other.txt": b"y"})
    if store.kind == "ocfl":
        (fourth / "inventory.json").unlink()
        inventory = directory_of(store, IDS[4]) / "inventory.json"
        inventory.write_bytes(inventory.read_bytes()[:40])
        write(directory_of(store, IDS[5]) / "strange", {"0=ocfl_object_1.1": b"ocfl_object_1.1\n"})
    if store.kind == "bags":
        (fourth / "manifest-sha512.txt").unlink()
    write(Path(store.root), {"beside/file": b"x"})


def of_object(problems: list[Problem], path: str) -> list[Problem]:
    return [one for one in problems if one.path == path or one.path.startswith(f"{path}/")]


@contextlib.contextmanager
def opened(case: str, path: Path, is_remote: bool) -> Iterator[Store]:
    """Open a store, on the disk or copied to a bucket."""
    if not is_remote:
        yield reopened(case, path)
        return
    bucket = MemoryBucket()
    assert fill(bucket, path)
    with serving(bucket):
        yield reopened(case, ADDRESS)


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.mark.parametrize("is_remote", [False, True])
@pytest.mark.parametrize("digests", [False, True])
def test_verdicts_of_the_whole_store(case: str, digests: bool, is_remote: bool, tmp_path: Path) -> None:
    """The problems of each selected object, and of all, are those of a check of the whole store."""
    local = make(tmp_path / "store", case)
    paths = {one: local.find(one).path for one in IDS}
    damage(local)
    with opened(case, tmp_path / "store", is_remote) as store:
        whole = store.check(digests=digests)
        expected = {one: of_object(whole.problems, paths[one]) for one in IDS}
        assert any(expected.values())
        for one in IDS:
            report = store.check(ids=[one], digests=digests)
            if store.kind == "ocfl" and one == IDS[5]:
                # The object inside is one of its own.
                assert [found for found in expected[one] if found.path == paths[one]] == [
                    found for found in report.problems if found.path == paths[one]
                ]
                continue
            assert report.problems == expected[one], one
            assert report.counts["objects"] == 1
            assert report.ok == (not any(found.severity == "error" for found in expected[one]))
        several = store.check(ids=iter([IDS[6], IDS[0], IDS[2]]), digests=digests)
        assert several.problems == expected[IDS[6]] + expected[IDS[0]] + expected[IDS[2]]
        assert several.counts["objects"] == 3
        by_path = store.check(ids=[paths[one] for one in (IDS[0], IDS[3])], digests=digests)
        assert by_path.problems == expected[IDS[0]] + expected[IDS[3]]
        matching = store.check(match="urn:obj*", digests=digests)
        assert {*matching.problems} == {found for one in IDS for found in expected[one]}
        assert matching.counts == whole.counts


@pytest.mark.parametrize("is_remote", [False, True])
def test_records_of_the_whole_store(case: str, is_remote: bool, tmp_path: Path) -> None:
    make(tmp_path / "store", case)
    with opened(case, tmp_path / "store", is_remote) as store:
        every = {record.id: record for record in store.objects()}
        assert list(store.objects(ids=["urn:objc", "urn:obja"])) == [every["urn:objc"], every["urn:obja"]]
        found = list(store.objects(ids=[every["urn:objc"].path, b"urn:obja"]))
        if store.kind == "bags" and is_remote:
            found.reverse()  # a path is tried after all bags
        assert found == [every["urn:objc"], every["urn:obja"]]
        assert list(store.objects(match="urn:obj[bd]")) == [
            one for one in every.values() if one.id in ("urn:objb", "urn:objd")
        ]
        assert len(list(store.objects(match=["urn:obja", "*h"]))) == 2
        assert list(store.objects(match="urn:obj")) == list(store.objects(ids=[])) == []


def test_not_found(case: str, tmp_path: Path) -> None:
    """An object that is not found is one problem, and the others are checked; without a list it is an error."""
    store = make(tmp_path / "store", case)
    report = store.check(ids=["nothing", "urn:obja", "urn:objb/../urn:objc", ""])
    assert [one.kind for one in report.problems] == ["object-missing"] * 3
    assert [one.path for one in report.problems] == ["nothing", "urn:objb/../urn:objc", ""]
    assert report.problems[0].message
    assert not report.ok
    assert report.counts["objects"] == 1
    problems: list[Problem] = []
    assert [one.id for one in store.objects(ids=["nothing", "urn:obja"], problems=problems)] == ["urn:obja"]
    assert [one.kind for one in problems] == ["object-missing"]
    with pytest.raises((ObjectError, IdentifierError)):
        list(store.objects(ids=["nothing", "urn:obja"]))


def test_one_way_of_selecting(case: str, tmp_path: Path) -> None:
    store = make(tmp_path / "store", case)
    for call in (store.objects, store.check):
        with pytest.raises(ValueError, match="ids: not supported with match"):
            call(ids=["urn:obja"], match="*")
        with pytest.raises(ValueError, match="must not be empty"):
            call(match=["*", ""])
    with pytest.raises(StoreError, match="requires an OCFL storage root in object storage"):
        store.check(ids=["urn:obja"], digests="stored")


def test_ignored_names(case: str, tmp_path: Path) -> None:
    store = make(tmp_path / "store", case)
    write(directory_of(store, "urn:obja"), {"Thumbs.tmp": b"x"})
    whole = store.check(ignore=["*.tmp"])
    assert store.check(ids=["urn:obja"], ignore=["*.tmp"]).problems == of_object(
        whole.problems, store.find("urn:obja").path
    )
    assert store.check(match="urn:obja", ignore=["*.tmp"]).problems == of_object(
        whole.problems, store.find("urn:obja").path
    )


@pytest.mark.skipif(os.name != "posix", reason="needs modes of files")
def test_unreadable_directories_of_a_match(case: str, open_folder: Path) -> None:
    """A matching object may be in a directory that cannot be read."""
    store = make(open_folder / "store", case)
    tree = {"pairtree": "pairtree_root", "vitro": "file_storage_root"}.get(store.kind, "")
    shut = Path(store.root) / tree / "zz"
    write(shut, {"zz/file": b"x"})
    shut.chmod(0)
    user = os.geteuid()
    os.seteuid(user or 65534)  # the superuser reads all directories
    try:
        found = store.check(match="other*").problems
    finally:
        os.seteuid(user)
        shut.chmod(0o755)
    assert [(one.kind, one.path) for one in found] == [("unreadable", f"{tree}/zz".strip("/"))]


# --- storage roots ----------------------------------------------------------------------------------------------------


@pytest.fixture
def root(tmp_path: Path) -> OcflRoot:
    store = make(tmp_path / "store", "ocfl 0003")
    assert isinstance(store, OcflRoot)
    return store


def test_a_root_without_a_layout(root: OcflRoot, tmp_path: Path) -> None:
    """One walk looks for all identifiers, and names two objects with one identifier."""
    (tmp_path / "store" / "ocfl_layout.json").unlink()
    shutil.copytree(tmp_path / "store" / root.find("urn:obja").path, tmp_path / "store" / "copy")
    store = OcflRoot(tmp_path / "store")
    report = store.check(ids=["urn:objc", "urn:obja", "nothing"])
    assert sorted(one.kind for one in report.problems) == ["duplicate-id", "object-missing"]
    assert report.counts["objects"] == 3
    assert len(list(store.objects(match="urn:obja"))) == 2
    with pytest.raises(ObjectError, match="object not found"):
        list(store.objects(ids=["nothing"]))


def test_objects_that_are_not_in_place(root: OcflRoot, tmp_path: Path) -> None:
    """A moved object is found by its identifier, and by a glob; it is reported as in a check of the whole root."""
    before = root.find("urn:objb").path
    (tmp_path / "store" / before).rename(tmp_path / "store" / "moved")
    store = OcflRoot(tmp_path / "store")
    expected = of_object(store.check().problems, "moved")
    assert [one.kind for one in expected] == ["misplaced"]
    assert store.check(ids=["urn:objb"]).problems == expected
    assert store.check(match="*b").problems == expected
    assert store.check(ids=["moved"]).problems == expected


def test_duplicates(root: OcflRoot, tmp_path: Path) -> None:
    shutil.copytree(tmp_path / "store" / root.find("urn:obja").path, tmp_path / "store" / "000" / "copy")
    report = OcflRoot(tmp_path / "store").check(ids=["urn:obja", "urn:objb"])
    assert {one.kind for one in report.problems} == {"misplaced"}
    assert report.counts["objects"] == 3


@pytest.mark.parametrize("layout", ["0003", "0002"])
def test_a_match_opens_matching_objects_only(layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the path tells the identifier, the inventories of other objects are not read."""
    store = make(tmp_path / "store", f"ocfl {layout}")
    assert isinstance(store, OcflRoot)
    store.first_objects.misplaced()  # read once, whatever is selected
    damaged = directory_of(store, "urn:objh") / "inventory.json"
    damaged.write_bytes(b"{")
    assert store.check(match="urn:obj[a-g]").problems == []
    assert [one.kind for one in store.check(match="urn:objh").problems][:1] == ["inventory-malformed"]


def test_unknown_identifiers_match(tmp_path: Path) -> None:
    """An object without an identifier may be any."""
    store = make(tmp_path / "store", "ocfl 0004")
    (directory_of(store, "urn:objh") / "inventory.json").write_bytes(b"{")
    assert "inventory-malformed" in {one.kind for one in store.check(match="urn:obja").problems}
    assert [one.id for one in store.objects(match="urn:obja")].count(None) == 1


def test_an_object_in_another(tmp_path: Path) -> None:
    store = make(tmp_path / "store", "ocfl 0002")
    assert isinstance(store, OcflRoot)
    shutil.copytree(directory_of(store, "urn:obja"), directory_of(store, "urn:objb") / "inner")
    path = f"{store.find('urn:objb').path}/inner"
    whole = OcflRoot(tmp_path / "store").check()
    expected = [one for one in of_object(whole.problems, path) if one.kind != "object-extra"]  # of the outer object
    assert [one.kind for one in expected] == ["object-inside", "misplaced"]
    assert OcflRoot(tmp_path / "store").check(ids=[path]).problems == expected


# --- other stores -----------------------------------------------------------------------------------------------------


def test_a_match_of_a_pairtree_reads_no_other_object(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = make(tmp_path / "store", "pairtree")
    asked: list[str] = []
    unreadable = store.walk.__class__.unreadable  # type: ignore[attr-defined]

    def counted(walk: object, record: stores.StoreObject) -> object:
        asked.append(record.id or "")
        return unreadable(walk, record)

    monkeypatch.setattr(store.walk.__class__, "unreadable", counted)  # type: ignore[attr-defined]
    assert store.check(match="urn:obj[ab]").counts == {"objects": 2, "proper": 2}
    assert asked == ["urn:obja", "urn:objb"]


def test_a_hidden_object(tmp_path: Path) -> None:
    """An object that was stored before its namespace was declared is found and reported."""
    store = make(tmp_path / "store", "vitro")
    assert isinstance(store, VitroStore)
    store.put("http://example.org/a", {"f": b"x"})
    store.declare("http://example.org/")
    expected = store.check().problems
    assert "hidden" in {one.kind for one in expected}
    assert store.check(ids=["http://example.org/a"]).problems == expected


def test_two_bags_with_one_identifier(tmp_path: Path) -> None:
    store = make(tmp_path / "store", "bags")
    assert isinstance(store, BagFolder)
    shutil.copytree(directory_of(store, "urn:obja"), tmp_path / "store" / "copy")
    report = BagFolder(tmp_path / "store").check(ids=["urn:obja", "urn:objb"])
    assert [(one.kind, one.path) for one in report.problems] == [("duplicate-id", "urn:obja")]
    assert report.counts["objects"] == 1


@pytest.mark.parametrize("case", CASES)
def test_identifiers_are_read_lazily(case: str, tmp_path: Path) -> None:
    """Each object is yielded before the next identifier is asked for, on a disk."""
    store = make(tmp_path / "store", case)
    asked: list[str] = []

    def ids() -> Iterator[str]:
        for one in IDS:
            asked.append(one)
            yield one

    records: Iterator[stores.StoreObject] = store.objects(ids=ids(), threads=1)
    assert next(records).id == IDS[0]
    assert len(asked) <= 2


def test_bags_of_other_names_in_a_bucket(tmp_path: Path) -> None:
    """One walk looks for all bags that are not named after their identifiers."""
    make(tmp_path / "store", "bags")
    for number, path in enumerate(sorted((tmp_path / "store").glob("urn*"))):
        path.rename(tmp_path / "store" / f"bag{number}")
    bucket = MemoryBucket()
    assert fill(bucket, tmp_path / "store")
    with serving(bucket):
        store = reopened("bags", ADDRESS)
        costs = []
        for ids in ([], [IDS[3]], [*IDS, "urn:x", "urn:y", "bag7"]):
            requests: list[str] = []
            bucket.on_request = lambda name, *_more, seen=requests: seen.append(name)  # type: ignore[misc]
            problems: list[Problem] = []
            found = list(store.objects(ids=ids, problems=problems))
            assert {one.id for one in found} == {*ids} - {"urn:x", "urn:y", "bag7"} | (
                {IDS[7]} if len(ids) > 1 else set()
            )
            costs.append(len(requests))
        assert [one.path for one in problems] == ["urn:x", "urn:y"]
        assert costs[2] < 2 * costs[1]
