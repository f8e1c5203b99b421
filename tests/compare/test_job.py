"""Comparisons as jobs: the same numbers as in one process, and resumable."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pressmark.compare import Comparison, collect, compare, compare_in_chunks, open_identifiers
from pressmark.errors import JobError
from pressmark.jobs import Summary, WorkFolder, run_local

from . import samples

LAYOUTS = {name: samples.layouts()[name] for name in ("pairtree", "0003 3x3", "0011", "0012")}


def in_threads(job: Any, work: WorkFolder, **more: Any) -> Summary:
    return run_local(job, work, 2, threads=True, **more)


def numbers(comparison: Comparison) -> dict[str, Any]:
    record = comparison.record()
    layouts = [{key: value for key, value in one.items() if key != "throughput"} for one in record["layouts"]]
    return {"layouts": layouts, **{key: record[key] for key in ("identifiers", "duplicates", "directory_limit", "ok")}}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    texts = [one if isinstance(one, bytes) else one.encode() for one in samples.hostile()]
    lines = [*(one for one in texts if b"\n" not in one), *(one.encode() for one in samples.hathitrust())]
    file = tmp_path / "ids.txt"
    file.write_bytes(b"".join(line + b"\n" for line in lines))
    return file


def test_a_run_is_a_comparison(tmp_path: Path, source: Path) -> None:
    """A job computes the same numbers as a single call."""
    layouts, names = list(LAYOUTS.values()), list(LAYOUTS)
    expected = compare(source, layouts, names=names, directory_limit=7, versions=3, crlf="keep")
    found = compare_in_chunks(
        source, layouts, tmp_path / "work", names=names, run=in_threads, directory_limit=7, versions=3, crlf="keep"
    )
    assert numbers(found) == numbers(expected)
    assert found.source == str(source)
    assert numbers(collect(WorkFolder.open(tmp_path / "work"))) == numbers(expected)


def test_resume(tmp_path: Path, source: Path) -> None:
    """A resumed run skips chunks with a receipt; an incomplete run is an error."""
    layouts, work = list(LAYOUTS.values()), tmp_path / "work"
    with pytest.raises(JobError, match=r"of 4 layouts have not been compared yet"):
        compare_in_chunks(
            source,
            layouts,
            work,
            crlf="keep",
            run=lambda job, folder: run_local(job, folder, 1, True, window=1, stop=after(1)),
        )
    receipts = list(WorkFolder.open(work).receipts())
    assert 1 <= len(receipts) < 4
    with pytest.raises(JobError, match="has not been compared yet; resume the run"):
        collect(WorkFolder.open(work))
    found = compare_in_chunks(source, layouts, work, crlf="keep", run=in_threads)
    assert len(found.layouts) == 4
    done = list(WorkFolder.open(work).receipts())
    assert all(receipt in done for receipt in receipts)


def after(count: int) -> Any:
    """Return a function that returns True from the given call on."""
    asked = iter(range(count))
    return lambda: next(asked, None) is None


def test_other_parameters_are_another_run(tmp_path: Path, source: Path) -> None:
    """A work folder belongs to one job."""
    layouts, work = list(LAYOUTS.values()), tmp_path / "work"
    compare_in_chunks(source, layouts, work, crlf="keep", run=in_threads)
    with pytest.raises(JobError):
        compare_in_chunks(source, layouts, work, crlf="keep", run=in_threads, versions=2)
    with pytest.raises(JobError, match="No such file"):
        compare_in_chunks(tmp_path / "absent", layouts, tmp_path / "other", crlf="keep", run=in_threads)


def test_outputs_are_what_was_written(tmp_path: Path, source: Path) -> None:
    """A modified output is refused."""
    work = tmp_path / "work"
    compare_in_chunks(source, list(LAYOUTS.values()), work, crlf="keep", run=in_threads)
    output = sorted((work / "output").iterdir())[0]
    output.write_bytes(output.read_bytes().replace(b"0", b"1"))
    with pytest.raises(JobError, match="checksum mismatch"):
        collect(WorkFolder.open(work))


# --- files of identifiers -----------------------------------------------------------------------------------------


def test_tables_of_text(tmp_path: Path) -> None:
    """Columns of CSV and TSV; a malformed row is an error with its number."""
    layouts = [samples.layouts()["0012"]]
    table = tmp_path / "ids.csv"
    table.write_text('number,id\n1,"a.x"\n2,"b.x"\n', encoding="utf-8")
    assert compare(open_identifiers(table, "id"), layouts).layouts[0].collisions.equal == 2
    assert compare(open_identifiers(table, 2, header=True), layouts).identifiers == 2
    with pytest.raises(ValueError, match="not found, or not unique"):
        compare(open_identifiers(table, "name"), layouts)
    tabs = tmp_path / "ids.tsv"
    tabs.write_text("a.x\t1\nb.x\n", encoding="utf-8")
    with pytest.raises(JobError, match=r"row 2: row has 1 field; the first row has 2"):
        compare(open_identifiers(tabs, 1, header=False), layouts)
    with pytest.raises(ValueError, match="format='xls'"):
        open_identifiers(table, format="xls")


def test_files_that_are_not_lists(tmp_path: Path) -> None:
    """Files that are not lists are refused when the run is planned."""
    layouts = [samples.layouts()["0012"]]
    for name, data, match in (
        ("ids.txt", b"a\r\n", "--crlf strip"),
        ("ids.xlsx", b"a\n", "a spreadsheet"),
        ("ids", b"%PDF-1.7\n", "a document"),
        ("ids.csv", b"a;b\n", "--delimiter ';'"),
        ("ids.txt.gz", b"", "compressed"),
    ):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(JobError, match=match):
            compare_in_chunks(tmp_path / name, layouts, tmp_path / "work", column="b", run=in_threads)
    (tmp_path / "ids.jsonl").write_bytes(b'{"id": "a.x"}\n{"id": null}\n{"id": "b.x"}\n')
    assert compare(open_identifiers(tmp_path / "ids.jsonl", "id"), layouts).identifiers == 2
    (tmp_path / "ids.csv").write_bytes(b"a;b\n1;b.x\n")
    assert compare(open_identifiers(tmp_path / "ids.csv", "b", delimiter=";"), layouts).identifiers == 1


@pytest.mark.peers
def test_parquet(tmp_path: Path) -> None:
    """Columns of Parquet, read in blocks."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    file = tmp_path / "ids.parquet"
    parquet.write_table(pyarrow.table({"n": [1, 2, 3], "id": ["a.x", None, "b.x"]}), file)
    layouts = [samples.layouts()["0012"]]
    for column in ("id", 2):
        found = compare(open_identifiers(file, column), layouts)
        assert (found.identifiers, found.layouts[0].collisions.equal) == (2, 2)
    for column in (None, "x", 3):
        with pytest.raises(ValueError, match=r"column"):
            open_identifiers(file, column)
    found = compare_in_chunks(file, layouts, tmp_path / "work", run=in_threads, column="id")
    assert found.identifiers == 2
