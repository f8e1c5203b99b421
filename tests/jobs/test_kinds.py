"""The kinds of jobs: their output does not depend on the chunks."""

from __future__ import annotations

import json
import os
import pickle
import threading
from pathlib import Path
from typing import Any

import pytest

import pressmark
from pressmark import bagit, fixity, jobs, stores
from pressmark.errors import JobError
from pressmark.jobs import Summary, WorkFolder
from pressmark.jobs.receipts import Receipt
from pressmark.jobs.run import run_chunk
from pressmark.stores.registry import store_class
from support.implementations import Implementation


def finished(folder: Path, job: Any, chunks: Any, **options: Any) -> tuple[WorkFolder, Summary]:
    """Plan and run a job."""
    work = WorkFolder.create(folder, job, chunks, job.parameters())
    return work, jobs.run_local(job, work, 2, processes=False, **options)


def outputs(work: WorkFolder) -> list[bytes]:
    return [work.output_path(one.output).read_bytes() for one in work.receipts() if one.output is not None]


def failures(work: WorkFolder) -> list[dict[str, Any]]:
    """Return the failed items that the runs recorded."""
    found = []
    for receipt in work.receipts():
        if receipt.errors:
            assert receipt.output is not None
            stem = receipt.output.rpartition(".")[0]
            lines = work.output_path(f"{stem}.errors.jsonl").read_bytes().splitlines()
            assert len(lines) == receipt.errors
            found += [json.loads(line) for line in lines]
    return found


# --- hashing ------------------------------------------------------------------------------------------------------


def tree(root: Path) -> None:
    """Write some directories of files, with names that manifests escape."""
    for number in range(6):
        folder = root / f"d{number}" / "deep"
        folder.mkdir(parents=True)
        for name in ("a", "b\nc", "ü", "\\", os.fsdecode(b"\xff")):
            (folder / name).write_bytes(name.encode("utf-8", "surrogateescape") * number)
    (root / "top").write_bytes(b"x" * 5000)
    (root / "nowhere").symlink_to("gone")


@pytest.mark.parametrize("format", fixity.FORMATS)
def test_hashing(tmp_path: Path, format: str, implementation: Implementation) -> None:
    """The chunks' manifests together are that of the tree; files without a digest are reported."""
    tree(tmp_path / "tree")
    job = fixity.HashFiles(str(tmp_path / "tree"), ("md5",) if format == "coreutils" else ("md5", "blake3"), format)
    work, summary = finished(tmp_path / "work", job, job.plan(tmp_path / "work", files=4, nbytes=4000))
    assert len(list(work.chunks())) == 7
    assert (summary.n, summary.errors, summary.by_status) == (32, 1, {"dangling-link": 1, "ok": 31})
    assert failures(work) == [{"status": "dangling-link", "path": "nowhere", "message": "dangling symbolic link"}]
    root = tmp_path / "tree"
    expected = b"".join(
        fixity.manifest_line(outcome._replace(path=os.path.relpath(outcome.path, root)), format)
        for outcome in fixity.hash_files(fixity.walk(root), job.algorithms)
        if outcome.ok
    )
    assert b"".join(outputs(work)) == expected


def test_hashing_with_links_and_missing_trees(tmp_path: Path) -> None:
    """Refused links are errors, also in the plan; a missing tree is refused."""
    tree(tmp_path / "tree")
    job = fixity.HashFiles(str(tmp_path / "tree"), links="refuse")
    work, summary = finished(tmp_path / "work", job, job.plan(tmp_path / "work"))
    assert summary.by_status == {"link": 1, "ok": 31}
    assert [one["path"] for one in failures(work)] == ["nowhere"]
    with pytest.raises(JobError, match="directory not found"):
        WorkFolder.create(tmp_path / "other", job, fixity.HashFiles("/none/of/that").plan(tmp_path / "other"))
    with pytest.raises(JobError, match="which the run reads; choose another one"):
        job.plan(tmp_path / "tree" / "work")
    for options in ({"format": "x"}, {"algorithms": ("md5", "sha1")}, {"links": "x"}):
        with pytest.raises(ValueError, match=r"expected|one digest per file"):
            fixity.HashFiles("/", **options)  # type: ignore[arg-type]


def test_a_damaged_listing(tmp_path: Path) -> None:
    """A truncated listing is a failure, not a shorter list."""
    tree(tmp_path / "tree")
    job = fixity.HashFiles(str(tmp_path / "tree"))
    work = WorkFolder.create(tmp_path / "work", job, job.plan(tmp_path / "work"))
    listing = work.path / "files.jsonl"
    listing.write_bytes(listing.read_bytes()[:-5])
    summary = jobs.run_local(job, work, 1, processes=False)
    assert "files.jsonl is damaged at byte" in summary.failed[0].reason


# --- bags ---------------------------------------------------------------------------------------------------------


def bags(folder: Path) -> list[Path]:
    """Make three bags, the second of them damaged."""
    made = []
    for number in range(3):
        source = folder / f"source{number}"
        source.mkdir(parents=True)
        (source / "file").write_text(f"{number}")
        made.append(folder / "bags" / f"bag{number}")
        made[-1].parent.mkdir(exist_ok=True)
        bagit.create(source, made[-1], info={"External-Identifier": f"id{number}"})
    (made[1] / "data" / "file").write_text("!")
    return made


def test_bags(tmp_path: Path) -> None:
    """Each bag has its status and its problems; a directory that is not a bag is unreadable."""
    made = bags(tmp_path)
    for level, expected in (
        ("full", {"invalid": 1, "unreadable": 1, "valid": 2}),
        ("complete", {"passed": 3, "unreadable": 1}),
    ):
        job = bagit.ValidateBags(level)
        work, summary = finished(tmp_path / level, job, job.plan(tmp_path / level, [*made, tmp_path / "none"], 2))
        assert summary.by_status == expected
        records = [json.loads(line) for one in outputs(work) for line in one.splitlines()]
        assert [Path(one["path"]) for one in records] == made
        assert [one["ok"] for one in records] == [True, level == "complete", True]
    with pytest.raises(ValueError, match="expected oxum"):
        bagit.ValidateBags("best")


def test_chunks_of_bags_with_directories(tmp_path: Path) -> None:
    """A directory in a payload counts as a twentieth of a chunk, because its size is unknown."""
    for number in range(50):
        (tmp_path / "flat" / str(number) / "data").mkdir(parents=True)
        (tmp_path / "deep" / str(number) / "data" / "sub").mkdir(parents=True)
    (tmp_path / "work").mkdir()
    for kind, wanted in (("flat", 1), ("deep", 2)):
        bags = sorted((tmp_path / kind).iterdir())
        assert len(list(bagit.ValidateBags().plan(tmp_path / "work", bags))) == wanted


# --- stores -------------------------------------------------------------------------------------------------------


def broken(kind: str, folder: Path) -> stores.Store:
    """Make a store with objects in several directories, some broken, and with stray files."""
    options: dict[str, Any] = {"namespaces": ["http://example.org/"]} if kind == "vitro" else {}
    layout = pressmark.layout("0003") if kind == "ocfl" else None
    store = store_class(kind).create(folder, layout, **options)
    source = folder.parent / "given.txt"
    source.write_text("given")
    for number in range(12):
        store.put(f"id{number}", source if kind == "vitro" else {"a": source, "b/c": source})
    if kind == "ocfl":
        root = folder / pressmark.layout("0003").map_id("id3")
        (root / "v1" / "content" / "a").write_text("other")
        (folder / pressmark.layout("0003").map_id("id4") / "inventory.json").unlink()
        (folder / pressmark.layout("0003").map_id("id5")).rename(folder / "elsewhere")
        (folder / "stray").touch()
    elif kind == "bags":
        (next(folder.glob("id7*")) / "data" / "a").write_text("other")
        (folder / "stray").touch()
    elif kind == "pairtree":
        (folder / "pairtree_root" / "zz" / "zz").mkdir(parents=True)
        (folder / "pairtree_root" / "id" / "x").mkdir(parents=True)
        (folder / "pairtree_root" / "id" / "x" / "bare file").touch()
        (folder / "pairtree_version0_1").unlink()
        if os.name == "posix":
            (folder / "pairtree_root" / "id" / "3" / "id3" / "dangling").symlink_to("nowhere")
    else:
        (folder / "file_storage_root" / "zzz" / "y").mkdir(parents=True)
        (folder / "file_storage_root" / "zzz" / "y" / "b c").touch()
        (folder / "file_storage_root" / "stray").touch()
    return stores.open(folder)


@pytest.mark.parametrize("kind", stores.KINDS)
def test_stores(tmp_path: Path, kind: str) -> None:
    """The chunks together find what a check of the whole store finds."""
    store = broken(kind, tmp_path / "store")
    job = stores.CheckStore(str(tmp_path / "store"))
    work, summary = finished(tmp_path / "work", job, job.plan(tmp_path / "work", objects=3))
    assert len(list(work.chunks())) > 1
    report = store.check(digests=True)
    found = [json.loads(line) for one in outputs(work) for line in one.splitlines()]
    # Advice is given once per chunk here, and once for the whole store there.
    expected = [one.record() for one in report.problems if one.kind != "inventory-advice"]
    assert sorted(map(repr, (one for one in found if one["kind"] != "inventory-advice"))) == sorted(map(repr, expected))
    assert not report.ok
    assert not summary.ok
    assert sum(summary.by_status.get(word, 0) for word in ("ok", "wrong")) == report.counts["objects"]


def test_an_object_that_is_removed_between_plan_and_run(tmp_path: Path) -> None:
    """An object removed by another run is not an error of the store."""
    store = stores.OcflRoot.create(tmp_path / "store", pressmark.layout("0003"), durable=False)
    (tmp_path / "file").touch()
    for number in range(3):
        store.put(f"info:x/{number}", tmp_path / "file")
    job = stores.CheckStore(store.root)
    work = WorkFolder.create(tmp_path / "work", job, job.plan(tmp_path / "work"), job.parameters())
    store.delete("info:x/1")
    summary = jobs.run_local(job, work, 1)
    assert (summary.ok, summary.by_status) == (True, {"ok": 2, "gone": 1})


def test_unusable_stores(tmp_path: Path) -> None:
    """An OCFL root without a layout is not cut into chunks: duplicate identifiers would go unnoticed."""
    stores.create("ocfl", tmp_path / "store", pressmark.layout("0003"))
    (tmp_path / "store" / "ocfl_layout.json").unlink()
    with pytest.raises(JobError, match="unknown layout"):
        stores.CheckStore(str(tmp_path / "store")).plan(tmp_path / "work")
    config = pressmark.layout("0003").config()
    (tmp_path / "work").mkdir()
    assert list(stores.CheckStore(str(tmp_path / "store"), layout=config).plan(tmp_path / "work")) == []


@pytest.mark.parametrize("looked_up", [4, 500])
@pytest.mark.parametrize("kind", stores.KINDS)
def test_put_objects(tmp_path: Path, kind: str, looked_up: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The chunks together store what one call stores; a chunk that runs once more finds its objects."""
    monkeypatch.setattr("pressmark.stores.job.LOOKED_UP", looked_up)
    (tmp_path / "file").write_text("content")
    (tmp_path / "other").write_text("other content")
    names = [f"http://example.org/{number}" for number in range(10)]
    pairs = [(name, tmp_path / "file") for name in names]
    layout = "0003" if kind == "ocfl" else None
    user = {"user": {"name": "A", "address": "mailto:a@example.org"}} if kind == "ocfl" else {}
    one, two = (stores.create(kind, tmp_path / name, layout) for name in ("one", "two"))
    alone = [result.record for result in type(one)(one.root, **user).put_all(pairs)]
    job = stores.PutObjects(two.root, options=user)
    more = [
        (names[0].encode(), tmp_path / "other"),
        ValueError("list:12: no source"),
        (f"{names[0]}/more", tmp_path / "gone"),
    ]
    work, summary = finished(tmp_path / "work", job, job.plan(tmp_path / "work", [*pairs, *more], size=3))
    assert len(list(work.chunks())) == 5
    assert summary.by_status == {"stored": 10, "failed": 3}
    results = list(job.results(work))
    assert [found for found in results if not isinstance(found, str)] == alone
    listed, line, gone = (found for found in results if isinstance(found, str))
    assert listed == f"'{two.root}': object '{names[0]}': listed before; list each object once, or run without workers"
    assert line == "list:12: no source"
    assert "gone" in gone
    assert [*one.objects()] == [*two.objects()]
    again, summary = finished(tmp_path / "again", job, job.plan(tmp_path / "again", pairs, size=3))
    assert summary.by_status == {"exists_same": 10}
    assert [record.exists_same for record in job.results(again) if not isinstance(record, str)] == [True] * 10


def test_put_objects_beside_the_store(tmp_path: Path) -> None:
    store = stores.create("pairtree", tmp_path / "store")
    with pytest.raises(JobError, match="work folder inside"):
        stores.PutObjects(store.root).plan(tmp_path / "store" / "work", [])


# --- all kinds ----------------------------------------------------------------------------------------------------


def test_jobs_use_one_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job uses one thread: each core runs a chunk of its own."""
    started: list[threading.Thread] = []
    begin = threading.Thread.start

    def start(thread: threading.Thread) -> None:
        started.append(thread)
        begin(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    bags(tmp_path)
    tree(tmp_path / "tree")
    store = broken("ocfl", tmp_path / "store")
    kinds: list[tuple[Any, Any]] = [
        (job := fixity.HashFiles(str(tmp_path / "tree")), lambda job=job: job.plan(tmp_path / "work0")),
        (job := bagit.ValidateBags(), lambda job=job: job.plan(tmp_path / "work1", [tmp_path / "bags" / "bag0"])),
        (job := stores.CheckStore(store.root), lambda job=job: job.plan(tmp_path / "work2")),
    ]
    for number, (job, chunks) in enumerate(kinds):
        work = WorkFolder.create(tmp_path / f"work{number}", job, chunks())
        started.clear()
        for chunk in work.chunks():
            assert isinstance(run_chunk(job, chunk, work.for_workers(job)), Receipt)
        # Another one at work besides ours.
        assert len(started) <= 1, job


def test_keys_depend_on_parameters() -> None:
    """Jobs with different parameters have different keys, equal jobs equal ones, and all can be pickled."""
    made = [
        fixity.HashFiles("/a"),
        fixity.HashFiles("/b"),
        fixity.HashFiles("/a", ("SHA-256",)),
        bagit.ValidateBags(),
        bagit.ValidateBags("oxum"),
        stores.CheckStore("/a", "ocfl"),
        stores.CheckStore("/a", "ocfl", digests=False),
        stores.PutObjects("/a", "ocfl"),
        stores.PutObjects("/a", "ocfl", how={"replace": True}),
    ]
    assert len({job.key for job in made}) == len(made)
    assert [pickle.loads(pickle.dumps(job)).key for job in made] == [job.key for job in made]
    with pytest.raises(AttributeError):
        jobs.Nothing  # noqa: B018


def test_a_long_chunk_of_a_storage_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The progress of a check that takes longer is not written among its problems."""
    user = {"name": "A", "address": "mailto:a@example.org"}
    root = stores.OcflRoot.create(tmp_path / "root", "0003", user=user)
    for number in range(3):
        root.put(f"info:{number}", {"file": b"x"})
    monkeypatch.setattr("pressmark.stores.ocfl.check.PROGRESS_EVERY", -1)
    job = stores.CheckStore(root.root)
    work, summary = finished(tmp_path / "work", job, job.plan(tmp_path / "work"))
    assert (summary.ok, outputs(work)) == (True, [b""])
