"""The kinds of jobs: their output does not depend on the chunks."""

from __future__ import annotations

import csv
import io
import json
import os
import pickle
import random
import threading
from pathlib import Path
from typing import Any

import pytest

import pressmark
from pressmark import bagit, fixity, jobs, stores
from pressmark.cli.common.files import InputStream
from pressmark.cli.common.tables.columns import ColumnSpec
from pressmark.cli.common.tables.text import TextReader
from pressmark.errors import JobError
from pressmark.jobs import Summary, WorkFolder
from pressmark.tabular import row_ranges as rows
from pressmark.tabular.delimited import CSV
from support.implementations import Implementation

LAYOUTS = [pressmark.layout("pairtree"), pressmark.layout("0003")]
IDENTIFIERS = ["ark:/13030/xt12t3", "mdp.390", 'quo"ted', "comma,comma", "ünïcode", "uc1.$b1", "x" * 300, "end."]


def finished(folder: Path, job: Any, chunks: Any, **options: Any) -> tuple[WorkFolder, Summary]:
    """Plan and run a job."""
    work = WorkFolder.create(folder, job, chunks, job.parameters())
    return work, jobs.run_local(job, work, 2, threads=True, **options)


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


# --- mapping ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name[:8])
@pytest.mark.parametrize("nbytes", [1, 50, 10**9])
def test_lines(tmp_path: Path, layout: pressmark.Layout, nbytes: int, implementation: Implementation) -> None:
    """Lines, cut anywhere, give identifier, TAB and path; items without a path are reported."""
    chosen = random.Random(7)
    lines = [chosen.choice(IDENTIFIERS).encode() for _ in range(60)]
    lines[5:5] = [b"", b"a\tb", b"\xff\xfe"]
    (tmp_path / "ids.txt").write_bytes(b"\n".join(lines))
    job = pressmark.layouts.MapIds(layout)
    work, summary = finished(tmp_path / "work", job, job.plan(tmp_path / "ids.txt", nbytes=nbytes))
    whole = io.BytesIO()
    counts = layout.map_lines(io.BytesIO(b"\n".join(lines)), whole, on_error="skip", both=True)
    assert b"".join(outputs(work)) == whole.getvalue()
    assert (summary.n, summary.errors, summary.complete) == (63, counts.failed, True)
    failed = failures(work)
    assert [one["item"] for one in failed][:2] == ["", "a\tb"]
    if nbytes > 100:
        assert [one["row"] for one in failed][:2] == [6, 7]
    assert len(list(work.chunks())) > (nbytes == 1) * 50


@pytest.mark.parametrize("output", ["lines", "parquet"])
@pytest.mark.parametrize("nbytes", [1, 64, 10**9])
def test_csv(tmp_path: Path, nbytes: int, output: str) -> None:
    """CSV is cut between rows, never inside quotes; a malformed row is reported and harms no other row."""
    chosen = random.Random(3)
    identifiers = [chosen.choice([*IDENTIFIERS, "two\nlines"]) for _ in range(50)]
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(["n", "the id", "note"])
    for number, identifier in enumerate(identifiers):
        writer.writerow([number, identifier, chosen.choice(["", 'say "hm"', "a\nb,c\n\n", "plain"])])
    data = "\ufeff" + text.getvalue() + '1,2\r\n3,"bad"x,\r\n4,last,'
    (tmp_path / "ids.csv").write_bytes(data.encode())
    layout = pressmark.layout("0003")
    job = pressmark.layouts.MapIds(layout, column="the id", output=output)
    work, summary = finished(tmp_path / "work", job, job.plan([tmp_path / "ids.csv"], nbytes=nbytes))
    assert summary.complete
    identifiers.append("last")
    if output == "parquet":
        pq = pytest.importorskip("pyarrow.parquet")
        found = [row for one in outputs(work) for row in pq.read_table(io.BytesIO(one)).to_pylist()]
        assert [row["identifier"] for row in found if row["path"]] == identifiers
        assert [row["path"] for row in found if row["path"]] == layout.map_ids(identifiers)
        assert (len(found), summary.errors) == (53, 2)
    else:
        pairs = [line.split("\t") for line in b"".join(outputs(work)).decode().split("\n")[:-1]]
        kept = [identifier for identifier in identifiers if "\n" not in identifier]
        assert pairs == [[identifier, layout.map_id(identifier)] for identifier in kept]
        assert summary.errors == 2 + len(identifiers) - len(kept)
    reasons = {one["reason"] for one in failures(work)}
    assert "row has 2 fields; the first row has 3" in reasons
    assert "text after the closing quote of the field" in reasons


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        # Text after a malformed field belongs to its row.
        (b'1,"a"b,"x\n2,no row"\n3,c\n', [None, b"c"]),
        (b"1,\r\r\n2,b\n", [b"\r", b"b"]),
        (b'1,a\rb\n2,"a\r\nb"\r\n', [b"a\rb", b"a\r\nb"]),
        (b'1,a"b""\n2,\0\n', [b'a"b""', b"\0"]),
        (b"\n1,b", [None, b"b"]),
        (b'1,b\n2,"c\n3,d\n', [b"b", None]),
    ],
)
def test_csv_is_read_as_commands_read_it(tmp_path: Path, data: bytes, expected: list[bytes | None]) -> None:
    """In whole and in chunks of any size, a row has the field or the error that it has for a command."""
    (tmp_path / "ids.csv").write_bytes(b"n,id\n" + data)
    with open(tmp_path / "ids.csv", "rb") as file:
        shape = rows.shape_of(file, "csv", "id", True)
        for nbytes in range(1, len(data) + 1):
            ranges = rows.row_ranges(file, "csv", shape.start, nbytes)
            found = [field for start, stop in ranges for field in rows.fields(file, "csv", shape, start, stop)]
            assert [None if isinstance(field, str) else field for field in found] == expected
    if expected[-1] is not None:
        with open(tmp_path / "ids.csv", "rb") as source:
            reader = TextReader(InputStream(source, "ids.csv"), CSV, ColumnSpec("id", True, ""))
            blocks = list(reader.blocks())
        items = [None if index in block.faults else item for block in blocks for index, item in enumerate(block.items)]
        assert items == expected


def test_tsv_and_numbers_of_columns(tmp_path: Path) -> None:
    """In TSV quotes are data; a column may be a number; several files are one run."""
    for name in ("one.tsv", "two.tsv"):
        (tmp_path / name).write_bytes(f'1\t"{name}\r\n2\tb"\r\n'.encode())
    job = pressmark.layouts.MapIds(pressmark.layout("pairtree"), column=2, header=False)
    work, summary = finished(tmp_path / "work", job, job.plan([tmp_path / "one.tsv", tmp_path / "two.tsv"]))
    assert summary.ok
    found = [line.split(b"\t")[0].decode() for one in outputs(work) for line in one.splitlines()]
    assert found == ['"one.tsv', 'b"', '"two.tsv', 'b"']


@pytest.mark.parametrize("nbytes", [1, 5, 10**9])
@pytest.mark.parametrize("output", ["lines", "parquet"])
def test_lines_of_windows(tmp_path: Path, nbytes: int, output: str) -> None:
    """CRLF lines are refused in advance, or read with the additions stripped, in chunks of any size."""
    path = tmp_path / "ids.txt"
    path.write_bytes(b"\xef\xbb\xbfabc\r\ndef\r\nghi\r")
    job = pressmark.layouts.MapIds(pressmark.layout("pairtree"), output=output)
    with pytest.raises(JobError, match="--crlf strip"):
        list(job.plan(path))
    job = pressmark.layouts.MapIds(pressmark.layout("pairtree"), output=output, crlf="strip")
    if output == "parquet":
        pytest.importorskip("pyarrow")
    work, summary = finished(tmp_path / "work", job, job.plan(path, nbytes=nbytes))
    assert (summary.n, summary.errors, summary.complete) == (3, 0, True)
    assert [path for _, path in pairs(work, output)] == ["ab/c", "de/f", "gh/i"]


def pairs(work: WorkFolder, output: str) -> list[tuple[str, str]]:
    if output == "lines":
        return [tuple(line.split("\t")) for one in outputs(work) for line in one.decode().splitlines()]  # type: ignore[misc]
    pq = pytest.importorskip("pyarrow.parquet")
    rows = [row for one in outputs(work) for row in pq.read_table(io.BytesIO(one)).to_pylist()]
    return [(row["identifier"], row["path"]) for row in rows if row["path"] is not None]


@pytest.mark.parametrize("nbytes", [1, 20, 10**9])
@pytest.mark.parametrize("output", ["lines", "parquet"])
def test_json_lines_and_delimiters(tmp_path: Path, nbytes: int, output: str) -> None:
    """JSON lines by a key, and CSV with another delimiter, in chunks of any size."""
    records = b'{"id": "abc"}\r\n{"id": null}\n\n{"n": 1}\n{"id": 2}\n{"id": "\\u00fc"}'
    (tmp_path / "ids.jsonl").write_bytes(records)
    job = pressmark.layouts.MapIds(pressmark.layout("pairtree"), column="id", output=output)
    work, summary = finished(tmp_path / "work", job, job.plan(tmp_path / "ids.jsonl", nbytes=nbytes))
    assert summary.by_status == {"ok": 2, "null": 1, "failed": 2}
    assert pairs(work, output) == [("abc", "ab/c"), ("ü", "^c/3^/bc")]
    assert [one["reason"] for one in failures(work)] == ["key 'id' not found", "the value of 'id' is not a string"]
    (tmp_path / "ids.csv").write_bytes(b'id;t\n"a;c";"x\ny"\nb;\n')
    with pytest.raises(JobError, match="--delimiter ';'"):
        list(job.plan(tmp_path / "ids.csv"))
    job = pressmark.layouts.MapIds(pressmark.layout("pairtree"), column="id", output=output, delimiter=";")
    work, summary = finished(tmp_path / "semicolons", job, job.plan(tmp_path / "ids.csv", nbytes=nbytes))
    assert pairs(work, output) == [("a;c", "a;/c"), ("b", "b")]


@pytest.mark.parametrize("output", ["lines", "parquet"])
def test_parquet(tmp_path: Path, output: str, implementation: Implementation) -> None:
    """Parquet is cut into row groups; nulls stay null, and items without a path are reported."""
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    identifiers = [f"mdp.{number:05d}" for number in range(1000)]
    column: list[str | None] = [*identifiers]
    column[500], column[700] = None, ""
    table = pa.table({"x": list(range(1000)), "a.b": column})
    pq.write_table(table, tmp_path / "ids.parquet", row_group_size=100)
    layout = pressmark.layout("pairtree")
    job = pressmark.layouts.MapIds(layout, column="a.b", output=output)
    work, summary = finished(tmp_path / "work", job, job.plan(tmp_path / "ids.parquet", rows=250))
    assert [(one.start, one.stop) for one in work.chunks()] == [(0, 2), (2, 4), (4, 6), (6, 8), (8, 10)]
    assert summary.by_status == {"failed": 1, "null": 1, "ok": 998}
    assert [one["item"] for one in failures(work)] == [""]
    if output == "parquet":
        found = pa.concat_tables([pq.read_table(io.BytesIO(one)) for one in outputs(work)])
        assert found.column("identifier").to_pylist() == column
        assert found.column("path").to_pylist() == [layout.map_id(one) if one else None for one in column]
        back = pressmark.layouts.MapIds(layout, unmap=True, column="path", output="parquet")
        names = [work.output_path(one.output or "") for one in work.receipts()]
        work, summary = finished(tmp_path / "back", back, back.plan(names))
        assert summary.by_status == {"null": 2, "ok": 998}
        found = pa.concat_tables([pq.read_table(io.BytesIO(one)) for one in outputs(work)])
        assert found.column("identifier").to_pylist() == [one or None for one in column]
    else:
        expected = [f"{one}\t{layout.map_id(one)}\n" for one in column if one]
        assert b"".join(outputs(work)).decode() == "".join(expected)


def test_a_source_that_changes(tmp_path: Path) -> None:
    """A file that changes after the plan is refused: its chunks would be others."""
    (tmp_path / "ids.txt").write_text("a\nb\n")
    job = pressmark.layouts.MapIds(LAYOUTS[0])
    work = WorkFolder.create(tmp_path / "work", job, job.plan(tmp_path / "ids.txt", nbytes=1))
    (tmp_path / "ids.txt").write_text("aa\nbb\n")
    summary = jobs.run_local(job, work, 1, threads=True)
    assert (summary.done, len(summary.failed)) == (0, 2)
    assert "file changed since the run was planned" in summary.failed[0].reason


@pytest.mark.parametrize(
    ("name", "data", "options", "reason"),
    [
        ("x.txt.gz", b"", {}, "a compressed file cannot be divided"),
        ("none.txt", None, {}, "No such file"),
        ("x.csv", b"a,b\n", {}, r"2 columns; choose one \(--column\)"),
        ("x.csv", b"a,b\n", {"column": "c"}, "column 'c' not found, or not unique; the first row is a, b"),
        ("x.csv", b'"a', {"column": "c"}, "malformed first row"),
        ("x.tsv", b"a\tb\n", {"column": 3}, r"2 columns; choose one \(--column\)"),
        ("x.parquet", b"PAR1", {}, "."),
        ("x.csv", b"a\n", {"column": 1}, "--header if that is a column name"),
        ("x.csv", b"a\n", {}, "--header if that is a column name"),
        ("x.xlsx", b"a\n", {}, "a spreadsheet"),
        ("x.txt.zst", b"a\n", {}, "zstd"),
        ("x", b"PK\3\4", {}, "a zip archive"),
        ("x.csv", b"PK\3\4", {"column": "a"}, "a zip archive"),
        ("x.jsonl", b'{"id": 1}\n', {}, "require a key"),
    ],
)
def test_unusable_sources(tmp_path: Path, name: str, data: bytes | None, options: dict[str, Any], reason: str) -> None:
    """An unusable file is refused by the plan in one line with its name."""
    if data is not None:
        (tmp_path / name).write_bytes(data)
    job = pressmark.layouts.MapIds(LAYOUTS[0], **options)
    with pytest.raises(JobError, match=reason) as caught:
        list(job.plan(tmp_path / name))
    assert caught.value.path == str(tmp_path / name)


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
    root = os.fsencode(tmp_path / "tree")
    expected = b"".join(
        fixity.manifest_line(outcome._replace(path=os.path.relpath(os.fsencode(outcome.path), root)), format)
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
    summary = jobs.run_local(job, work, 1, threads=True)
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
    store = stores.create(kind, folder, layout, **options)
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
    store = stores.create("ocfl", tmp_path / "store", pressmark.layout("0003"), durable=False)
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
    (tmp_path / "ids.txt").write_text("abc\n" * 200_000)
    kinds: list[tuple[Any, Any]] = [
        (job := pressmark.layouts.MapIds(LAYOUTS[0]), lambda job=job: job.plan(tmp_path / "ids.txt")),
        (job := fixity.HashFiles(str(tmp_path / "tree")), lambda job=job: job.plan(tmp_path / "work1")),
        (job := bagit.ValidateBags(), lambda job=job: job.plan(tmp_path / "work2", [tmp_path / "bags" / "bag0"])),
        (job := stores.CheckStore(store.root), lambda job=job: job.plan(tmp_path / "work3")),
    ]
    for number, (job, chunks) in enumerate(kinds):
        work = WorkFolder.create(tmp_path / f"work{number}", job, chunks())
        started.clear()
        for chunk in work.chunks():
            assert isinstance(jobs.run_chunk(job, chunk, work.place(job)), jobs.Receipt)
        # Another one at work besides ours.
        assert len(started) <= 1, job


def test_keys_depend_on_parameters() -> None:
    """Jobs with different parameters have different keys, equal jobs equal ones, and all can be pickled."""
    made = [
        pressmark.layouts.MapIds(LAYOUTS[0]),
        pressmark.layouts.MapIds(LAYOUTS[1]),
        pressmark.layouts.MapIds(LAYOUTS[0], unmap=True),
        fixity.HashFiles("/a"),
        fixity.HashFiles("/b"),
        fixity.HashFiles("/a", ("SHA-256",)),
        bagit.ValidateBags(),
        bagit.ValidateBags("oxum"),
        stores.CheckStore("/a", "ocfl"),
        stores.CheckStore("/a", "ocfl", digests=False),
    ]
    assert len({job.key for job in made}) == len(made)
    assert [pickle.loads(pickle.dumps(job)).key for job in made] == [job.key for job in made]
    with pytest.raises(AttributeError):
        jobs.Nothing  # noqa: B018
    for options in ({"format": "x"}, {"output": "x"}):
        with pytest.raises(ValueError, match="expected"):
            pressmark.layouts.MapIds(LAYOUTS[0], **options)  # type: ignore[arg-type]
