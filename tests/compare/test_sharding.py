"""Comparisons in runs of chunks: the same numbers, whoever makes them, and resumed where they ended."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pressmark.compare import Comparison, collect, compare, compare_sharded, from_record, identifiers_of
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
    """Every number is the same as without a run."""
    layouts, names = list(LAYOUTS.values()), list(LAYOUTS)
    expected = compare(source, layouts, names=names, directory_limit=7, versions=3, crlf="keep")
    found = compare_sharded(
        source, layouts, tmp_path / "work", names=names, run=in_threads, directory_limit=7, versions=3, crlf="keep"
    )
    assert numbers(found) == numbers(expected)
    assert found.source == str(source)
    assert numbers(collect(WorkFolder.open(tmp_path / "work"))) == numbers(expected)


def test_records_come_back() -> None:
    """What is written as JSON is read again as what it was."""
    found = compare(samples.hathitrust(), list(LAYOUTS.values()), directory_limit=7)
    assert from_record(Comparison, json.loads(json.dumps(found.record()))) == found
    empty = compare([], list(LAYOUTS.values()))
    assert from_record(Comparison, json.loads(json.dumps(empty.record()))) == empty


def test_a_run_is_gone_on_with(tmp_path: Path, source: Path) -> None:
    """What has a receipt is not done again; what is not done is said."""
    layouts, work = list(LAYOUTS.values()), tmp_path / "work"
    with pytest.raises(JobError, match=r"of 4 layouts are not done"):
        compare_sharded(
            source,
            layouts,
            work,
            crlf="keep",
            run=lambda job, folder: run_local(job, folder, 1, True, window=1, stop=after(1)),
        )
    receipts = list(WorkFolder.open(work).receipts())
    assert 1 <= len(receipts) < 4
    with pytest.raises(JobError, match="is not done: resume the run"):
        collect(WorkFolder.open(work))
    found = compare_sharded(source, layouts, work, crlf="keep", run=in_threads)
    assert len(found.layouts) == 4
    done = list(WorkFolder.open(work).receipts())
    assert all(receipt in done for receipt in receipts)


def after(count: int) -> Any:
    """Return what says stop when it was asked so often."""
    asked = iter(range(count))
    return lambda: next(asked, None) is None


def test_other_parameters_are_another_run(tmp_path: Path, source: Path) -> None:
    """A work folder is one job's; a file that changed is another file."""
    layouts, work = list(LAYOUTS.values()), tmp_path / "work"
    compare_sharded(source, layouts, work, crlf="keep", run=in_threads)
    with pytest.raises(JobError):
        compare_sharded(source, layouts, work, crlf="keep", run=in_threads, versions=2)
    with pytest.raises(JobError, match="No such file"):
        compare_sharded(tmp_path / "absent", layouts, tmp_path / "other", crlf="keep", run=in_threads)


def test_outputs_are_what_was_written(tmp_path: Path, source: Path) -> None:
    """Somebody changed one: it is not taken."""
    work = tmp_path / "work"
    compare_sharded(source, list(LAYOUTS.values()), work, crlf="keep", run=in_threads)
    output = sorted((work / "output").iterdir())[0]
    output.write_bytes(output.read_bytes().replace(b"0", b"1"))
    with pytest.raises(JobError, match="not what was written"):
        collect(WorkFolder.open(work))


# --- files of identifiers -----------------------------------------------------------------------------------------


def test_tables_of_text(tmp_path: Path) -> None:
    """CSV and TSV by column; a row that is none is named."""
    layouts = [samples.layouts()["0012"]]
    table = tmp_path / "ids.csv"
    table.write_text('number,id\n1,"a.x"\n2,"b.x"\n', encoding="utf-8")
    assert compare(identifiers_of(table, "id"), layouts).layouts[0].clashes.equal == 2
    assert compare(identifiers_of(table, 2, header=True), layouts).identifiers == 2
    with pytest.raises(ValueError, match="not found, or not unique"):
        compare(identifiers_of(table, "name"), layouts)
    tabs = tmp_path / "ids.tsv"
    tabs.write_text("a.x\t1\nb.x\n", encoding="utf-8")
    with pytest.raises(JobError, match=r"row 2: row has 1 field; the first row has 2"):
        compare(identifiers_of(tabs, 1, header=False), layouts)
    with pytest.raises(ValueError, match="format='xls'"):
        identifiers_of(table, format="xls")


def test_lists_that_are_none(tmp_path: Path) -> None:
    """They are refused when the run is planned, as other readers refuse them."""
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
            compare_sharded(tmp_path / name, layouts, tmp_path / "work", column="b", run=in_threads)
    (tmp_path / "ids.jsonl").write_bytes(b'{"id": "a.x"}\n{"id": null}\n{"id": "b.x"}\n')
    assert compare(identifiers_of(tmp_path / "ids.jsonl", "id"), layouts).identifiers == 2
    (tmp_path / "ids.csv").write_bytes(b"a;b\n1;b.x\n")
    assert compare(identifiers_of(tmp_path / "ids.csv", "b", delimiter=";"), layouts).identifiers == 1


@pytest.mark.peers
def test_parquet(tmp_path: Path) -> None:
    """By column, in blocks."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    file = tmp_path / "ids.parquet"
    parquet.write_table(pyarrow.table({"n": [1, 2, 3], "id": ["a.x", None, "b.x"]}), file)
    layouts = [samples.layouts()["0012"]]
    for column in ("id", 2):
        found = compare(identifiers_of(file, column), layouts)
        assert (found.identifiers, found.layouts[0].clashes.equal) == (2, 2)
    for column in (None, "x", 3):
        with pytest.raises(ValueError, match=r"column"):
            identifiers_of(file, column)
    found = compare_sharded(file, layouts, tmp_path / "work", run=in_threads, column="id")
    assert found.identifiers == 2
