"""Many objects at once: each whole or absent, in order, reported when it is stored."""

from __future__ import annotations

import errno
import io
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pressmark
from pressmark import stores
from pressmark.errors import IdentifierError, ObjectError, StoreError
from pressmark.fs.staging import RunDirectory
from pressmark.stores import IngestError, IngestResult, Store, StoreObject, staging_writer, walked_store
from pressmark.stores.registry import store_class
from pressmark.stores.store_change import above, all_above
from support.copies import count_copies
from support.implementations import Implementation, use
from support.trees import snapshot, write

Result = IngestResult[StoreObject]


def created(kind: str, folder: Path, **options: Any) -> Store:
    layout = pressmark.layout("0002") if kind == "ocfl" else None
    return store_class(kind).create(folder, layout, **options)


def content(store: Store, identifier: str) -> dict[str, bytes]:
    return {name: Path(path).read_bytes() for name, path in store.get(identifier).files()}


@pytest.fixture(params=stores.KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return created(request.param, tmp_path / "store")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    write(tmp_path / "in", {"name.bin": b"content"})
    return tmp_path / "in"


def problems(store: Store) -> list[str]:
    return [found.kind for found in store.check(digests=True).problems if found.kind != "inventory-advice"]


def test_objects_in_order(store: Store, source: Path) -> None:
    """Objects are stored, their results come in order, and failed objects are among them with their errors."""
    store.put("b", source)
    results: list[Result] = []
    with store.ingest(results=results, max_objects=3) as batch:
        for identifier in ("a", "b", "\ud800", "c", "d", "c"):
            batch.put(identifier, source if identifier != "d" else source / "missing")
    assert [result.id for result in results] == ["a", "b", "\ud800", "c", "d", "c"]
    assert isinstance(results[2].error, IdentifierError)
    missing = "io-error" if store.kind == "bags" else "source"
    kinds = [getattr(result.error, "kind", None) for result in results]
    assert kinds == [None, "exists", "bad-name", None, missing, "exists"]
    for result in results:
        assert (result.record is None) == (result.error is not None)
        assert result.error is None or "\n" not in str(result.error)
        if result.record is not None:
            assert result.record == next(found for found in store.objects() if found.id == result.id)
    assert (batch.stored, batch.failed) == (2, 4)
    assert {name: content(store, name) for name in "abc"} == {name: {"name.bin": b"content"} for name in "abc"}
    assert not problems(store)
    assert not [name for name in snapshot(Path(store.root)) if b"pressmark-" in name and b".json" not in name]


def test_the_result_equals_that_of_put(store: Store, source: Path, tmp_path: Path) -> None:
    """An object is the same, whether it is stored alone or with others."""
    alone = created(store.kind, tmp_path / "alone")
    results: list[Result] = []
    with store.ingest(results=results) as batch:
        batch.put("abc", source)
        batch.put(b"xyz", source / "name.bin")
    records = [alone.put("abc", source), alone.put(b"xyz", source / "name.bin")]
    assert [result.record for result in results] == records
    assert list(store.objects()) == list(alone.objects())
    found, expected = (snapshot(Path(one.root)) for one in (store, alone))
    assert found.keys() == expected.keys()


@pytest.mark.parametrize("kind", stores.KINDS)
def test_many_at_once(tmp_path: Path, kind: str, implementation: Implementation) -> None:
    """Objects that are prepared at the same time are those of put, and their results come in order."""
    given: dict[str, Any] = {}
    for number in range(300):
        files = {"name.bin": b"%d" % number} if kind == "vitro" or number % 3 else {"a": b"%d" % number, "b/c": b"more"}
        write(tmp_path / "in" / str(number), files)
        given[f"id:{number}/\u00e9"] = tmp_path / "in" / str(number)
        if number % 3 == 1:
            given[f"id:{number}/\u00e9"] /= "name.bin"
    given["empty"] = tmp_path / "in" / "none"
    given["content"] = {"name.bin": b"content"}
    items = list(given.items())
    several, single = (created(kind, tmp_path / name) for name in ("several", "single"))
    results: list[Result] = []
    with use(implementation):
        several.put(items[7][0], items[7][1])
        with several.ingest(results=results, max_objects=290, max_seconds=60) as batch:
            batch.put_all([*items[:150], *items[:5], *items[150:]])
    expected = [name for name, _source in [*items[:150], *items[:5], *items[150:]]]
    assert [result.id for result in results] == expected
    failed = [number for number, result in enumerate(results) if result.error is not None]
    assert failed == [7, *range(150, 155), expected.index("empty")]
    kinds = [getattr(results[number].error, "kind", None) for number in failed]
    assert kinds == ["exists"] * 6 + ["io-error" if kind == "bags" else "source"]
    with single.ingest(results=[]) as batch:
        for identifier, source in items:
            batch.put(identifier, source)
    assert list(several.objects()) == list(single.objects())
    assert {result.record for result in results if result.record} <= set(several.objects())
    for identifier in given.keys() - {"empty"}:
        assert content(several, identifier) == content(single, identifier)
    assert not problems(several)


def test_the_files_of_many_objects_are_one_stream(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once it is known that a device cannot share blocks, the files of many objects are copied by one call; a call
    begins when the objects of the one before it are ready, so that large ones are published soon.
    """
    for number in range(20):
        write(tmp_path / "in" / str(number), {"name.bin": b"%06d" % number * 100})
    items = [(str(number), tmp_path / "in" / str(number)) for number in range(20)]
    named = [(f"named {number}", {"name.bin": tmp_path / "in" / str(number) / "name.bin"}) for number in range(20)]
    counts = count_copies(monkeypatch)
    with store.ingest(copy_mode="copy") as batch:
        batch.put_all(items[:10])
        assert counts == [10]
        monkeypatch.setattr(staging_writer, "TOGETHER", 2000)
        counts.clear()
        batch.put_all(items[10:])
        assert counts == [3, 3, 3, 1]
        if store.kind != "bags":  # of a mapping, each is written by itself
            counts.clear()
            batch.put_all(named[:7])
            assert counts == [3, 3, 1]
    names = [name for name, _source in (*items, *(named[:7] if store.kind != "bags" else ()))]
    assert sorted(str(found.id) for found in store.objects()) == sorted(names)
    assert not problems(store)


def test_failed_objects_are_raised_at_the_end(store: Store, source: Path) -> None:
    """Without a callback, failed objects are an error at the end, and the other objects are stored."""

    def ingest() -> None:
        with store.ingest() as batch:
            for identifier in "abcd":
                batch.put(identifier, source / "missing" if identifier in "bc" else source)

    with pytest.raises(IngestError, match=r"2 of 4 objects not stored: .*'b'.*(No such file|not found)") as caught:
        ingest()
    assert caught.value.path == store.root
    assert "\n" not in str(caught.value)
    assert [error.id for error in caught.value.errors if isinstance(error, ObjectError)] == ["b", "c"]
    assert sorted(str(found.id) for found in store.objects()) == ["a", "d"]


def test_the_error_of_the_block_comes_first(store: Store, source: Path) -> None:
    """An exception in the block is not replaced by failed objects, and what was flushed stays."""

    def ingest() -> None:
        with store.ingest() as batch:
            batch.put("a", source)
            batch.put("b", source / "missing")
            batch.flush()
            raise KeyError

    with pytest.raises(KeyError):
        ingest()
    assert [found.id for found in store.objects()] == ["a"]
    assert not problems(store)


def test_flush(store: Store, source: Path) -> None:
    """After a flush, all objects are stored and reported."""
    results: list[Result] = []
    with store.ingest(results=results) as batch:
        batch.put("a", source)
        batch.put("b", source)
        batch.flush()
        assert [result.id for result in results] == ["a", "b"]
        assert content(store, "b") == {"name.bin": b"content"}
        batch.flush()
    assert len(results) == batch.stored == 2


def test_batches_are_bounded_in_time(store: Store, source: Path) -> None:
    """A batch that has waited for its time is published with the next object."""
    results: list[Result] = []
    with store.ingest(results=results, max_seconds=0) as batch:
        for number in range(3):
            batch.put(str(number), source)
            assert len(results) == number + 1


def test_replacing(store: Store, source: Path) -> None:
    """With replace, existing objects are replaced, also those of the same batch."""
    store.put("a", source)
    write(source.parent / "new", {"new.bin": b"new"})
    results: list[Result] = []
    with store.ingest(replace=True, results=results) as batch:
        for identifier, given in (("b", "in"), ("a", "new"), ("b", "new"), ("c", "new")):
            batch.put(identifier, source.parent / given)
    assert [(result.id, result.error) for result in results] == [(name, None) for name in "babc"]
    assert [content(store, name) for name in "abc"] == [{"new.bin": b"new"}] * 3
    assert not problems(store)


def test_put_outside_of_the_block(store: Store, source: Path) -> None:
    """Objects are put only inside of the block."""
    batch = store.ingest()
    with pytest.raises(ValueError, match="not in a with block"):
        batch.put("a", source)
    with batch:
        batch.put("a", source)
    with pytest.raises(ValueError, match="not in a with block"):
        batch.put("b", source)
    assert [found.id for found in store.objects()] == ["a"]


def test_a_store_that_cannot_be_written_to(tmp_path: Path, source: Path) -> None:
    """Errors of the whole store are raised at once."""
    stores.create("pairtree", tmp_path / "tree")
    tree = stores.PairtreeStore(tmp_path / "tree", dialect="unt")
    with pytest.raises(StoreError, match="read-only"), tree.ingest() as batch:
        batch.put("a", source)


# --- content that is not in a file ------------------------------------------------------------------------------------


class Upload:
    """An object with nothing but ``read``."""

    def __init__(self, data: bytes) -> None:
        self._file = io.BytesIO(data)

    def read(self, size: int, /) -> bytes:
        return self._file.read(min(size, 1000))


@pytest.mark.parametrize("many", [True, False])
def test_content(store: Store, source: Path, many: bool) -> None:
    """Content in memory and open files are stored under the names of the mapping, beside files."""
    big = bytes(range(256)) * 10_000
    sources: dict[str, dict[str, Any]] = {
        "bytes": {"a.bin": b"content"},
        "memory": {"a.bin": memoryview(bytearray(b"content"))},
        "file": {"b.bin": io.BytesIO(big)},
        "upload": {"c.bin": Upload(big)},
        "empty": {"d.bin": b""},
    }
    expected = {"bytes": b"content", "memory": b"content", "file": big, "upload": big, "empty": b""}
    if store.kind != "vitro":
        sources["mixed"] = {"sub/x.bin": b"1", "y": io.BytesIO(b"22"), "z": source}
    with (source / "name.bin").open("rb") as opened:
        sources["open"] = {"e.bin": opened}
        expected["open"] = b"content"
        if many:
            with store.ingest() as batch:
                for identifier, given in sources.items():
                    batch.put(identifier, given)
        else:
            for identifier, given in sources.items():
                store.put(identifier, given)
    for identifier, data in expected.items():
        assert content(store, identifier) == {next(iter(sources[identifier])): data}
    if store.kind != "vitro":
        assert content(store, "mixed") == {"sub/x.bin": b"1", "y": b"22", "z/name.bin": b"content"}
    assert not problems(store)


class Broken(io.BytesIO):
    def read(self, size: int | None = -1, /) -> bytes:
        raise OSError(errno.EIO, "Input/output error")


def test_content_that_cannot_be_read(store: Store) -> None:
    """An upload that fails, is closed, or is text, names the file and the reason; nothing is stored."""
    closed = io.BytesIO(b"x")
    closed.close()
    text: Any = io.StringIO("x")
    results: list[Result] = []
    with store.ingest(results=results) as batch:
        for number, given in enumerate((Broken(), closed, text)):
            batch.put(str(number), {"name.bin": given})
    for result, reason in zip(
        results, ("Input/output error", "closed file", "specify an open binary file"), strict=True
    ):
        assert isinstance(result.error, ObjectError)
        assert result.error.kind == "source"
        assert "'name.bin': " in str(result.error)
        assert reason in str(result.error)
    assert list(store.objects()) == []
    assert not problems(store)


@pytest.mark.parametrize("bare", [b"content", io.BytesIO(b"content"), bytearray(b"content")])
def test_content_without_a_name(tmp_path: Path, bare: Any) -> None:
    """Content needs a file name; bytes are never the path of a source."""
    for kind in stores.KINDS:
        store = created(kind, tmp_path / kind)
        results: list[Result] = []
        with store.ingest(results=results) as batch:
            batch.put("a", bare)
        with pytest.raises(ObjectError, match=r"without a file name; specify a mapping such as \{'name.bin'") as caught:
            store.put("a", bare)
        assert str(results[0].error) == str(caught.value)
        assert list(store.objects()) == []


def test_changes_with_content(tmp_path: Path, source: Path) -> None:
    """A new version of an OCFL object takes content as well."""
    root = created("ocfl", tmp_path / "root")
    assert isinstance(root, stores.OcflRoot)
    root.put("a", source)
    root.put("a", {"name.bin": b"new", "other": io.BytesIO(b"x")}, replace=True)
    root.update("a", add={"more": b"y", "name.bin": io.BytesIO(b"again")}, remove=["other"])
    assert content(root, "a") == {"name.bin": b"again", "more": b"y"}
    assert not problems(root)


@pytest.mark.parametrize("kind", ["pairtree", "ocfl", "bags"])
def test_a_source_that_contains_the_store(tmp_path: Path, source: Path, kind: str) -> None:
    """It is refused as by put, whatever waits to be published."""
    write(tmp_path / "above", {"file": b"1"})
    store = created(kind, tmp_path / "above" / "store")
    results: list[Result] = []
    with store.ingest(results=results) as batch:
        for identifier, given in (("a", source), ("b", tmp_path / "above"), ("c", source), ("d", tmp_path / "above")):
            batch.put(identifier, given)
    refused = "cannot copy a directory into itself"
    assert [result.error is not None and refused in str(result.error) for result in results] == [False, True] * 2
    assert sorted(record.id or "" for record in store.objects()) == ["a", "c"]
    with pytest.raises(ObjectError, match=refused):
        store.put("b", tmp_path / "above")


def test_sources_are_not_read_for_existing_objects(store: Store) -> None:
    """An object that exists is refused before its source is read, so that it can still be replaced with it."""
    upload = io.BytesIO(b"new")
    store.put("a", {"name.bin": b"old"})
    results: list[Result] = []
    with store.ingest(results=results) as batch:
        batch.put("a", {"name.bin": upload})
    assert isinstance(results[0].error, ObjectError)
    assert results[0].error.kind == "exists"
    with store.ingest(replace=True) as batch:
        batch.put("a", {"name.bin": upload})
    assert content(store, "a") == {"name.bin": b"new"}


# --- the order on the disk --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", stores.KINDS)
def test_content_is_flushed_before_names_before_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Content is on disk before an object appears, and its name before it is reported; one flush serves a batch."""
    events: list[str] = []
    store = created(kind, tmp_path / "store")

    def noted(name: str) -> Callable[..., None]:
        real = getattr(staging_writer, name)

        def flush(*paths: Any) -> None:
            real(*paths)
            assert paths
            events.append(name)

        return flush

    for name in ("flush_trees", "flush_directories"):
        monkeypatch.setattr(staging_writer, name, noted(name))
    move = staging_writer.StagingWriter._move_all

    def moving(self: Any, *arguments: Any) -> Any:
        for moved in move(self, *arguments):
            events.append("move")
            yield moved

    monkeypatch.setattr(staging_writer.StagingWriter, "_move_all", moving)

    class Told(list[Any]):
        def append(self, _result: Any) -> None:
            events.append("result")

    with store.ingest(max_objects=2, results=Told()) as batch:
        for identifier in ("abcd", "efgh", "ijkl", "mnop"):
            batch.put(identifier, {"name.bin": identifier.encode()})
    assert len(events) % 2 == 0
    half = len(events) // 2
    assert events[:half] == events[half:]
    expected = ["flush_trees", "move", "move", "flush_directories", "result", "result"]
    assert events[:half] == expected


@pytest.mark.parametrize("kind", stores.KINDS)
def test_names_that_cannot_be_flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """If the names of a batch cannot be flushed, no object of the batch is reported as stored."""
    store = created(kind, tmp_path / "store")
    results: list[Result] = []

    def failing(_paths: list[bytes]) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(staging_writer, "flush_directories", failing)

    def ingest() -> None:
        with store.ingest(results=results) as batch:
            batch.put("abcd", {"name.bin": b"x"})

    with pytest.raises(StoreError, match="Input/output error"):
        ingest()
    assert results == []
    assert content(store, "abcd") == {"name.bin": b"x"}


@pytest.mark.parametrize("kind", stores.KINDS)
def test_one_run_directory_for_many(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch, kind: str, implementation: Implementation
) -> None:
    """The private directory and the locks are set up for each batch, not for each object."""
    store = created(kind, tmp_path / "store")
    counts = Counter[str]()
    enter, lock = RunDirectory.__enter__, RunDirectory.lock

    def entering(self: RunDirectory) -> RunDirectory:
        counts["directories"] += 1
        return enter(self)

    def locking(self: RunDirectory, **how: Any) -> Any:
        counts["locks"] += 1
        return lock(self, **how)

    monkeypatch.setattr(RunDirectory, "__enter__", entering)
    monkeypatch.setattr(RunDirectory, "lock", locking)
    with store.ingest(max_objects=50, max_seconds=60) as batch:
        for number in range(100):
            batch.put(f"id{number:03}", source)
    assert counts == {"directories": 1, "locks": 2}
    assert not problems(store)


# --- places that are not free -----------------------------------------------------------------------------------------

BULK = ["pairtree", "vitro", "ocfl"]


@pytest.mark.parametrize("kind", stores.KINDS)
def test_another_run_stores_the_object_first(tmp_path: Path, source: Path, kind: str) -> None:
    """An object that another run has stored meanwhile is not replaced, and the others are stored."""
    store = created(kind, tmp_path / "store")
    results: list[Result] = []
    with store.ingest(results=results) as batch:
        for identifier in ("abcd", "efgh"):
            batch.put(identifier, source)
        stores.open(store.root).put("abcd", {"name.bin": b"theirs"})
    assert isinstance(results[0].error, ObjectError)
    assert (results[0].error.kind, results[1].error) == ("exists", None)
    assert content(store, "abcd") == {"name.bin": b"theirs"}
    assert content(store, "efgh") == {"name.bin": b"content"}
    assert not problems(store)


@pytest.mark.parametrize("kind", BULK)
def test_a_file_in_the_way(tmp_path: Path, source: Path, kind: str) -> None:
    """An object below a file is refused, and the others are stored."""
    store = created(kind, tmp_path / "store")
    path = {"pairtree": "pairtree_root/ab", "vitro": "file_storage_root/abc"}.get(kind, "abcd")
    (tmp_path / "store" / path).write_bytes(b"a file")
    results: list[Result] = []
    with store.ingest(results=results) as batch:
        for identifier in ("abcd", "efgh"):
            batch.put(identifier, source)
    assert isinstance(results[0].error, ObjectError)
    assert (results[0].error.kind, results[1].error) == ("collision", None)
    assert [found.id for found in store.objects() if found.proper] == ["efgh"]


def test_a_tree_with_links_and_other_objects(tmp_path: Path, source: Path) -> None:
    """In a Pairtree, objects are stored behind links to directories, above and below other objects."""
    tree = created("pairtree", tmp_path / "store")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "store/pairtree_root/ab").symlink_to(tmp_path / "elsewhere")
    with tree.ingest() as batch:
        for identifier in ("abcdef", "abcd", "abcdefgh", "abcdefg"):
            batch.put(identifier, source)
    assert sorted(str(found.id) for found in tree.objects()) == ["abcd", "abcdef", "abcdefg", "abcdefgh"]
    assert (tmp_path / "elsewhere/cd/ef/gh").is_dir()
    assert not problems(tree)
    strict = stores.PairtreeStore(tmp_path / "store", links="refuse")
    results: list[Result] = []
    with strict.ingest(results=results) as batch:
        batch.put("abxy", source)
    assert isinstance(results[0].error, ObjectError)
    assert results[0].error.kind == "collision"


@pytest.mark.parametrize("kind", ["pairtree", "vitro"])
def test_another_file_system_within_a_tree(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """An object whose path is on another file system is refused, alone and with others."""
    tree = created(kind, tmp_path / "store")
    tree.put("abcd", source)
    before = snapshot(tmp_path / "store")

    def refused(old: bytes, new: bytes) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), old, None, new)

    monkeypatch.setattr(walked_store, "rename_new", refused)
    results: list[Result] = []
    with tree.ingest(results=results) as batch:
        batch.put_all([("abce", source), ("abcf", source)])
    with pytest.raises(ObjectError) as caught:
        tree.put("abcg", source)
    for error in (*(result.error for result in results), caught.value):
        assert isinstance(error, ObjectError)
        assert error.kind == "io-error"
        assert "mounted within the store" in str(error)
    assert snapshot(tmp_path / "store") == before


@pytest.mark.parametrize("alone", [True, False])
def test_excluded_names(store: Store, source: Path, tmp_path: Path, alone: bool) -> None:
    """Matching files of a source are left out, and each is a problem of the record; other sources are unchanged."""
    write(tmp_path / "junk", {"name.bin": b"content", ".DS_Store": b"x", "sub/._a": b"x", "sub/__MACOSX/b": b"x"})
    (tmp_path / "junk" / "__MACOSX").symlink_to(tmp_path / "in")
    named = {"name.bin": tmp_path / "junk" / "name.bin", "d": tmp_path / "junk" / "sub"}
    globs = (".DS_Store", "._*", "__MACOSX")
    records: list[Any] = []
    if alone:
        for identifier, given in (("abc", tmp_path / "junk"), ("plain", source), ("named", named)):
            records.append(store.put(identifier, given, exclude=globs))
    else:
        with store.ingest(exclude=globs, results=(results := [])) as batch:
            batch.put_all([("abc", tmp_path / "junk"), ("plain", source)])
            batch.put("named", named)
        records = [result.record for result in results]
    excluded = [[found for found in record.problems if found.kind == "excluded"] for record in records]
    assert [[found.path for found in some] for some in excluded] == [
        [".DS_Store", "__MACOSX", "sub/._a", "sub/__MACOSX"],
        [],
        ["d/._a", "d/__MACOSX"],
    ]
    assert {found.severity for some in excluded for found in some} == {"warning"}
    for identifier in ("abc", "plain", "named"):
        found = {name: data for name, data in content(store, identifier).items() if name in (b"name.bin", "name.bin")}
        assert found == content(store, identifier)
        assert list(found.values()) == [b"content"]
    assert not problems(store)


def test_excluded_names_do_not_hide_errors(store: Store, source: Path, tmp_path: Path) -> None:
    """A symbolic link that stays is refused as without exclusions; an object that is refused does not affect others."""
    write(tmp_path / "linked", {".DS_Store": b"x"})
    (tmp_path / "linked" / "name.bin").symlink_to(source / "name.bin")
    results: list[Result] = []
    with store.ingest(exclude=".DS_Store", results=results) as batch:
        batch.put_all([("a", source), ("b", tmp_path / "linked"), ("c", source), ("b", source)])
    assert [getattr(result.error, "kind", None) for result in results] == [None, "source", None, None]
    assert "symbolic link" in str(results[1].error)
    with pytest.raises(ObjectError, match="symbolic link"):
        store.put("d", tmp_path / "linked", exclude=".DS_Store")
    store.put("d", tmp_path / "linked", exclude=".DS_Store", links="follow")
    assert list(content(store, "d").values()) == [b"content"]
    with pytest.raises(ValueError, match="slash"):
        store.put("e", source, exclude="a/b")


@pytest.mark.parametrize("kind", ["pairtree", "ocfl", "bags"])
def test_a_source_of_excluded_names_only(kind: str, tmp_path: Path) -> None:
    """It is stored like an empty directory; a directory that was empty before stays."""
    store = created(kind, tmp_path / "store")
    write(tmp_path / "junk", {".DS_Store": b"x", "empty/": None, "sub/.DS_Store": b"x"})
    store.put("abc", tmp_path / "junk", exclude=[".DS_Store"])
    assert content(store, "abc") == {}
    stored = {name for name, _path in store.get("abc").empty_directories()}
    assert stored == (set() if kind == "ocfl" else {"empty"})


@pytest.mark.parametrize("base", [b"store", b"/a/store/", b"/", b""])
def test_directories_above_many_objects(base: bytes) -> None:
    paths = [b"a/b/one", b"a/b/two", b"a/c/d/one", b"one", b"a/one"]
    assert all_above(base, paths) == {directory for path in paths for directory in above(base, path)}
