"""Jobs over chunks: rows and receipts, verification, and removal of sources."""

from __future__ import annotations

import os
import pickle
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import pressmark
from pressmark import jobs, stores
from pressmark.errors import ObjectError
from pressmark.jobs.chunks import Chunk
from pressmark.migrate.entry import Entry
from pressmark.migrate.job import Migrate, Remove, Verify
from pressmark.migrate.object_digest import entries_digest
from pressmark.migrate.options import Options
from pressmark.migrate.transfer.content import file_state
from pressmark.stores import Store, StoreObject

from ..samples import entries, held, make, options, tree, write

GIVEN = {name: {"one": name.encode(), "two/three": b"23"} for name in ("aa1", "bb2", "cc3", "dd4")}


def run(job: Any, folder: Path, lines: list[bytes]) -> list[Entry]:
    """Run a job over lines in two chunks, and return its rows."""
    folder.mkdir()
    (folder / "lines.jsonl").write_bytes(b"".join(lines))
    half, whole = sum(map(len, lines[:2])), sum(map(len, lines))
    chunks = [
        Chunk("0", "objects", "lines.jsonl", 0, half, 0),
        Chunk("1", "objects", "lines.jsonl", half, whole, 0),
    ]
    work = jobs.WorkFolder.create(folder, pickle.loads(pickle.dumps(job)), chunks)
    summary = jobs.run_local(job, work, 1, processes=False)
    assert not summary.failed
    rows = []
    for receipt in work.receipts():
        found = [Entry.parse(line) for line in work.output_path(str(receipt.output)).read_bytes().splitlines(True)]
        assert receipt.n == len(found)
        assert dict(receipt.by_status) == {
            status: sum(row.status == status for row in found) for status in {row.status for row in found}
        }
        rows += found
    return rows


def migrated(tmp_path: Path, source: Store, to: str, **more: Any) -> tuple[Options, list[Entry]]:
    chosen = options(source, to, tmp_path / "destination", **more)
    chosen.create_destination()
    rows = run(Migrate(chosen), tmp_path / "work", [one.line() for one in entries(chosen)])
    assert {row.status for row in rows} == {"unverified" if more.get("verify") == "none" else "ok"}
    return chosen, rows


@pytest.fixture
def source(tmp_path: Path) -> Store:
    return make("pairtree", tmp_path / "source", GIVEN, tmp_path / "given")


def test_keys(source: Store, tmp_path: Path) -> None:
    """The key of a job depends on its options and its kind."""
    one, two = (options(source, "ocfl", tmp_path / "to", verify=verify) for verify in ("copy", "reread"))
    assert len({Migrate(one).key, Migrate(two).key, Verify(one).key, Remove(one).key}) == 4


@pytest.mark.parametrize("to", ["ocfl", "pairtree", "bags"])
def test_verification_reads_the_destination_again(tmp_path: Path, source: Store, to: str) -> None:
    """An unchanged object is ok, even if never verified; others have distinct statuses."""
    chosen, rows = migrated(tmp_path, source, to, verify="none")
    folder = {"ocfl": "v1/content", "pairtree": None, "bags": "data"}[to]
    path = {row.id: tmp_path / "destination" / row.target / (folder or row.id) for row in rows}
    (path["aa1"] / "one").write_bytes(b"xxx")
    chosen.open_destination().delete("bb2")
    found = run(Verify(chosen), tmp_path / "verify", [row.line() for row in rows])
    assert {row.id: (row.status, row.error_code) for row in found} == {
        "aa1": ("digest_mismatch", "mismatch"),
        "bb2": ("copy_failed", "missing"),
        "cc3": ("ok", None),
        "dd4": ("ok", None),
    }
    assert {row.verify for row in found} == {"reread"}


def test_what_was_moved_unread_is_read_then(tmp_path: Path) -> None:
    """An OCFL object moved unread is compared with its inventory."""
    source = make("ocfl", tmp_path / "source", GIVEN, tmp_path / "given")
    chosen, rows = migrated(tmp_path, source, "ocfl", move=True)
    assert {(row.digest, row.verify) for row in rows} == {(None, "moved")}
    (tmp_path / "destination" / rows[0].target / "v1" / "content" / "one").write_bytes(b"xxx")
    found = run(Verify(chosen), tmp_path / "verify", [row.line() for row in rows])
    assert [row.status for row in found] == ["digest_mismatch", "ok", "ok", "ok"]
    assert all(row.digest for row in found[1:])


def test_older_versions_are_read_again(tmp_path: Path) -> None:
    """An object migrated with all versions is damaged if one of them is."""
    source = make("ocfl", tmp_path / "source", GIVEN, tmp_path / "given")
    for name in ("aa1", "bb2"):
        source.put(name, write(tmp_path / f"new-{name}", {"one": b"new"}), replace=True)
    chosen, rows = migrated(tmp_path, source, "ocfl")
    path = {row.id: tmp_path / "destination" / row.target for row in rows}
    (path["aa1"] / "v1" / "content" / "one").write_bytes(b"xxx")
    (path["bb2"] / "v1" / "content" / "two" / "three").unlink()
    found = run(Verify(chosen), tmp_path / "verify", [row.line() for row in rows])
    assert {row.id: row.status for row in found} == {
        "aa1": "digest_mismatch",
        "bb2": "copy_failed",
        "cc3": "ok",
        "dd4": "ok",
    }
    assert "v1/content/one" in str(next(row.error for row in found if row.id == "aa1"))


@pytest.mark.parametrize("kind", ["pairtree", "ocfl", "bags", "vitro"])
def test_sources_are_removed(tmp_path: Path, kind: str) -> None:
    """All sources and their empty parents are removed; a second run finds nothing."""
    given = {name: {"one": files["one"]} for name, files in GIVEN.items()}
    source = make(kind, tmp_path / "source", given, tmp_path / "given")
    chosen, rows = migrated(tmp_path, source, "ocfl" if kind != "ocfl" else "pairtree", move=True)
    lines = [row.line() for row in rows]
    found = run(Remove(chosen), tmp_path / "removal", lines)
    assert [row.error for row in found] == [None] * len(GIVEN)
    assert found == rows
    assert list(stores.open(tmp_path / "source", kind).objects()) == []
    assert run(Remove(chosen), tmp_path / "again", lines) == rows
    assert len(held(chosen.open_destination())) == len(GIVEN)


def test_only_what_was_copied_is_removed(tmp_path: Path) -> None:
    """An object deeper than its proper place is not removed: its identifier leads to another object."""
    source = make("ocfl", tmp_path / "source", GIVEN, tmp_path / "given")
    chosen, rows = migrated(tmp_path, source, "pairtree", move=True)
    path = tmp_path / "source" / rows[0].source
    deeper = tmp_path / "source" / "backup" / rows[0].source
    deeper.parent.mkdir(parents=True)
    path.rename(deeper)
    shutil.copytree(deeper, path)
    row = replace(rows[0], source=f"backup/{rows[0].source}")
    before = tree(tmp_path / "source")
    [found] = run(Remove(chosen), tmp_path / "removal", [row.line()])
    assert found.error_code == "source_kept"
    assert found.error == f"source kept: {row.source!r} is not the path of its identifier; compare both objects"
    assert tree(tmp_path / "source") == before


def test_a_bag_in_one_file_is_removed_by_its_name(tmp_path: Path) -> None:
    """A serialized bag is removed by its layout path; another one with its identifier may lie beside it."""
    source = stores.create("bags", tmp_path / "source", layout=pressmark.layout("0003"))
    source.put("aa1", write(tmp_path / "given", GIVEN["aa1"]))
    [bag] = (tmp_path / "source").glob("*/*/*/aa1")
    shutil.make_archive(str(bag), "tar", bag.parent, bag.name)
    shutil.rmtree(bag)
    chosen, [row] = migrated(tmp_path, source, "pairtree", move=True)
    right = tmp_path / "source" / row.source
    shutil.copy(right, right.with_name("other.tar"))
    wrong = right.with_name("wrong.tar")
    right.rename(wrong)
    wrong.with_name("other.tar").rename(right)

    def state(path: Path) -> str:
        return entries_digest([file_state(os.fsencode(path.name), path.stat())])

    misplaced = replace(row, source=str(wrong.relative_to(tmp_path / "source")), entries=state(wrong))
    [found] = run(Remove(chosen), tmp_path / "removal", [misplaced.line()])
    assert "not the path of its identifier" in str(found.error)
    assert right.exists()
    row = replace(row, entries=state(right))
    assert run(Remove(chosen), tmp_path / "again", [row.line()]) == [row]
    assert not right.exists()
    assert wrong.exists()


def test_sources_are_kept_where_they_must_be(tmp_path: Path, source: Store) -> None:
    """A source that changed, or that is missing in the destination, failed or unverified, is kept."""
    chosen, rows = migrated(tmp_path, source, "ocfl", move=True)
    write(tmp_path / "source" / "pairtree_root" / "aa" / "1" / "aa1", {"new": b"since"})
    path = tmp_path / "source" / "pairtree_root" / "bb" / "2" / "bb2" / "one"
    path.write_bytes(b"2bb")
    os.utime(path, (1, 1))
    chosen.open_destination().delete("cc3")
    before = tree(tmp_path / "source")
    rows[3] = replace(rows[3], verify="none", status="unverified")
    found = run(Remove(chosen), tmp_path / "removal", [row.line() for row in rows])
    assert {row.id: row.error_code for row in found} == {
        "aa1": "source_kept",
        "bb2": "source_kept",
        "cc3": "source_kept",
        "dd4": None,
    }
    assert tree(tmp_path / "source") == before


@pytest.mark.parametrize("kind", ["pairtree", "vitro", "ocfl", "bags"])
def test_a_source_that_went_was_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """An error after the removal is not an error of the row; one before it is."""
    source = make(kind, tmp_path / "source", {name: {"one": name.encode()} for name in GIVEN}, tmp_path / "given")
    chosen, rows = migrated(tmp_path, source, "pairtree", move=True, copy_mode="copy")
    delete = type(source).delete

    def failing(store: Store, record: StoreObject, *, check: Any) -> None:
        if record.id != "bb2":
            delete(store, record)
        raise ObjectError(store.root, record.id or "", "io-error", "Input/output error")

    monkeypatch.setattr(type(source), "delete", failing)
    found = run(Remove(chosen), tmp_path / "removal", [row.line() for row in rows])
    assert [row.id for row in found if row.error_code is not None] == ["bb2"]
    assert [record.id for record in source.objects()] == ["bb2"]
