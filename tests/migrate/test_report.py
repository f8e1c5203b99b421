"""The report: rows as tables, a summary, and an HTML page."""

from __future__ import annotations

import csv
import dataclasses
import gzip
import importlib.util
import json
import os
import re
import tracemalloc
from collections.abc import Iterable, Sequence
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from pressmark import jobs, layout, migrate
from pressmark.errors import JobError, MigrationError, ReportError
from pressmark.jobs.chunks import Chunk
from pressmark.jobs.receipts import Receipt
from pressmark.migrate.entry import ROW_KEYS, SOURCE_KEPT, Entry
from pressmark.migrate.execution.run_result import FIRST, Outcome, Summary, outcome_of, summarize
from pressmark.migrate.job import Migrate
from pressmark.migrate.planning.plan import write_record
from pressmark.migrate.reporting.page import REMEDIES, page_text, verdict_of
from pressmark.migrate.reporting.report import FORMATS, check_report, format_of

from .stores_to_migrate import made

JINJA2 = importlib.util.find_spec("jinja2") is not None
PYARROW = importlib.util.find_spec("pyarrow") is not None
needs_jinja2 = pytest.mark.skipif(not JINJA2, reason="the page needs jinja2")

MARKUP = "<script>alert('x')</script>&amp;"
HOSTILE = f"a\u202eb{MARKUP}\n{{{{ 7 * 7 }}}}"


def row(identifier: str, status: str = "ok", **more: Any) -> migrate.Entry:
    """Return a row as a run writes it."""
    good = status in migrate.GOOD
    given: dict[str, Any] = {
        "source": f"pairtree_root/{identifier}",
        "target": f"abc/{identifier}",
        "mode": "copy" if status == "ok" else None,
        "files": 2,
        "bytes": 1000,
        "algorithm": "sha512",
        "digest": "ab" * 64,
        "verify": "copy" if good else "none",
        "error_code": None if good else "a-code",
        "error": None if good else f"why {identifier}",
        "started": "2026-11-21T10:00:00.500Z",
        "seconds": 0.25,
        "host": "node1",
        "entries": "00.11",
    }
    return migrate.Entry(**{"id": identifier, "source_id": identifier, "status": status, **given, **more})


def finished(folder: Path, rows: Iterable[migrate.Entry], state: str = "finished", **plan: Any) -> Path:
    """Write the work folder of a finished run with these rows."""
    work = folder / "root.migration"
    work.mkdir()
    written = 0
    with (work / "rows.jsonl").open("wb") as file:
        for one in rows:
            file.write(one.line())
            written += 1
    options = migrate.Options(
        "/data/books", "pairtree", "/data/root", "ocfl", layout=layout("0003").config(), verify="reread", profile="s3"
    )
    given = {"objects": written, "files": 2 * written, "bytes": 1000 * written, "chunks": 1, "mode": "copy", **plan}
    write_record(str(work / "plan.json"), migrate.Plan(str(work), options, **given).record())
    (work / "entries.jsonl").write_bytes(b"\n\n")
    chunks = [Chunk(f"00000{number}", "objects", "entries.jsonl", number, number + 1, 1) for number in range(2)]
    folder_of_chunks = jobs.WorkFolder.create(work, Migrate(options), chunks)
    for chunk, seconds in zip(chunks, (60, 15), strict=True):
        folder_of_chunks.write_receipt(Receipt(chunk.id, folder_of_chunks.job_key, seconds=seconds))
    (work / "remaining.txt").write_text("a\n")
    if state == "finished":
        write_record(str(work / "finished.json"), {})
    return work


# --- summary ----------------------------------------------------------------------------------------------------------


def test_every_status_has_a_way_out() -> None:
    """Every status has a remedy."""
    assert list(REMEDIES) == list(migrate.STATUSES)
    assert all(REMEDIES[status] == "nothing" for status in migrate.GOOD)


def test_rows_in_short() -> None:
    """The summary counts objects, files and bytes by status, mode and verification, and keeps few rows."""
    rows = [
        *(row(f"f{number}", "copy_failed") for number in range(FIRST + 7)),
        *(row(f"o{number}") for number in range(3)),
        row("s", "exists_same"),
        row("r", mode="rename", verify="moved"),
        row("k", error_code=SOURCE_KEPT, error="its source was kept"),
        row("n", error="its times could not be kept"),
        row("m", "source_missing", started=""),
        row("l", "copy_failed", started="2026-11-22T10:00:50.000Z", seconds=1.5),
    ]
    found = summarize(one.line() for one in rows)
    assert list(found.by_status) == ["ok", "exists_same", "source_missing", "copy_failed"]
    assert (found.whole.objects, found.done.objects, found.undone) == (len(rows), 7, FIRST + 9)
    assert found.by_status["copy_failed"].objects == FIRST + 8
    assert found.by_status["copy_failed"].codes == {"a-code": FIRST + 8}
    assert [one.id for one in found.by_status["copy_failed"].first] == [f"f{number}" for number in range(FIRST)]
    assert found.by_status["ok"].first == []
    assert {mode: group.objects for mode, group in found.by_mode.items()} == {"copy": 5, "rename": 1}
    assert {way: group.objects for way, group in found.by_verify.items()} == {"copy": 6, "moved": 1}
    assert ([one.id for one in found.kept.first], [one.id for one in found.noted.first]) == (["k"], ["n"])
    record = json.loads(json.dumps(found.record()))
    assert (record["objects"], record["done"], record["kept"]) == (
        len(rows),
        {"objects": 7, "files": 14, "bytes": 7000},
        1,
    )
    assert (record["started"], record["ended"]) == ("2026-11-21T10:00:00+00:00", "2026-11-22T10:00:51+00:00")


# --- tables -----------------------------------------------------------------------------------------------------------

ROWS = [row("a:1"), row('caf\u00e9,"1"\n2'), row("x\udc80y", "copy_failed"), row("b", digest=None, started="")]


def reported(work: Path, name: str) -> Path:
    path = work.parent / name
    summary = migrate.report(work, path)
    assert isinstance(summary, Summary)
    assert sorted(os.listdir(work.parent)) == sorted({"root.migration", name})
    return path


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.jsonl.gz", "ROWS.NDJSON"])
def test_json_lines(tmp_path: Path, name: str) -> None:
    """All rows as they are."""
    path = reported(finished(tmp_path, ROWS), name)
    data = gzip.decompress(path.read_bytes()) if name.endswith(".gz") else path.read_bytes()
    assert [migrate.Entry.parse(line) for line in data.splitlines()] == ROWS


@pytest.mark.parametrize("name", ["rows.csv", "rows.csv.gz"])
def test_csv(tmp_path: Path, name: str) -> None:
    """CSV has a header and one line per row; its identifiers can be used as a list, byte for byte."""
    work = finished(tmp_path, ROWS)
    path = reported(work, name)
    data = gzip.decompress(path.read_bytes()) if name.endswith(".gz") else path.read_bytes()
    text = data.decode("utf-8", "surrogateescape")
    header, *lines = csv.reader(text.splitlines(keepends=True))
    assert tuple(header) == ROW_KEYS
    assert [line[0] for line in lines] == [one.id for one in ROWS]
    assert [line[:5] for line in lines] == [[one.id, one.source_id, one.source, one.target, one.status] for one in ROWS]
    assert lines[3][header.index("digest")] == ""

    from pressmark.tabular.identifiers import read_identifiers

    assert list(read_identifiers(path)) == [one.source_id for one in ROWS]


def test_csv_of_line_ends(tmp_path: Path) -> None:
    """An identifier with any line end is one field."""
    from pressmark.tabular.identifiers import read_identifiers

    rows = [row(identifier) for identifier in ("a\nb", "a\rb", "a\r\nb", "end\r", 'a\r"b"', "plain")]
    path = reported(finished(tmp_path, rows), "rows.csv")
    assert list(read_identifiers(path)) == [one.source_id for one in rows]
    with path.open(newline="") as file:
        assert {len(fields) for fields in csv.reader(file)} == {len(ROW_KEYS)}


def test_csv_of_what_is_no_text(tmp_path: Path) -> None:
    """Bytes are preserved, and an unpaired surrogate is visible; neither changes the other."""
    path = reported(finished(tmp_path, [row("x\udc80"), row("y\ud800z\udcff")]), "rows.csv")
    first, second = path.read_bytes().splitlines()[1:]
    assert first.startswith(b"x\x80,x\x80,")
    assert second.startswith(b"y\\ud800z\xff,y\\ud800z\xff,")


@pytest.mark.skipif(not PYARROW, reason="Parquet needs pyarrow")
def test_parquet(tmp_path: Path) -> None:
    """Numbers and times have their types; bytes that are not UTF-8 are visible."""
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(reported(finished(tmp_path, ROWS), "rows.parquet"))
    assert tuple(table.column_names) == ROW_KEYS
    found = table.to_pylist()
    assert [one["id"] for one in found] == ["a:1", ROWS[1].id, "x\\udc80y", "b"]
    assert (found[0]["bytes"], found[0]["seconds"], found[0]["entries"]) == (1000, 0.25, ROWS[0].entries)
    assert found[0]["started"].isoformat() == "2026-11-21T10:00:00.500000+00:00"
    assert (found[3]["started"], found[3]["digest"]) == (None, None)
    assert len(pyarrow.parquet.read_table(reported(finished_again(tmp_path, []), "rows.parquet"))) == 0


def finished_again(folder: Path, rows: Sequence[migrate.Entry]) -> Path:
    inside = folder / "again"
    inside.mkdir()
    return finished(inside, rows)


@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl"])
def test_rows_are_never_all_in_memory(tmp_path: Path, name: str) -> None:
    """Rows are streamed, never all in memory."""
    work = finished(tmp_path, (row(f"id{number}") for number in range(5_000)))
    migrate.report(work, tmp_path / f"before-{name}")
    tracemalloc.start()
    try:
        migrate.report(work, tmp_path / name)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (work / "rows.jsonl").stat().st_size > 2 << 20
    assert peak < 3 << 19  # a list of chunks is read in blocks of 1 MiB


def test_rows_of_a_run_that_has_not_ended(tmp_path: Path) -> None:
    """The rows of an unfinished run are those of its finished chunks, not of an earlier end."""
    source = made(tmp_path / "source", ["a1", "b2"])
    plan = migrate.plan(source, tmp_path / "root", to="ocfl", layout="0003")
    migrate.report(plan, tmp_path / "none.jsonl")
    assert (tmp_path / "none.jsonl").read_bytes() == b""
    migrate.run(plan, processes=False)
    Path(plan.work, "finished.json").unlink()
    Path(plan.work, "rows.jsonl").write_bytes(b"old")
    summary = migrate.report(plan.work, tmp_path / "rows.jsonl")
    assert summary.whole.objects == 2
    found = [migrate.Entry.parse(line).id for line in (tmp_path / "rows.jsonl").read_bytes().splitlines()]
    assert sorted(found) == ["a1", "b2"]


# --- refused ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["report", "report.doc", "report.html.gz", "report.parquet.gz", ".html", "report.gz"])
def test_unknown_endings(tmp_path: Path, name: str) -> None:
    """An unknown file extension is refused before anything is written."""
    with pytest.raises(ReportError, match="unknown report format"):
        check_report(tmp_path / name)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(("name", "package"), [("a.html", "jinja2"), ("a.parquet", "pyarrow")])
def test_a_package_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, package: str) -> None:
    """A missing package is reported in one line, with the remedy and the alternative."""
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda one: None if one == package else found(one))
    work = finished(tmp_path, ROWS)
    with pytest.raises(ReportError) as caught:
        migrate.report(work, tmp_path / name)
    with pytest.raises(ReportError) as early:
        check_report(tmp_path / name)
    extra = {"jinja2": "report", "pyarrow": "arrow"}[package]
    text = f"needs {package}: pip install 'pressmark[{extra}]', or use a file name that ends in .csv or .jsonl"
    assert caught.value.reason == early.value.reason == text
    assert not (tmp_path / name).exists()


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    """An unusable report path is refused before the run, and a failed write keeps the existing file."""
    with pytest.raises(ReportError, match="parent directory not found"):
        check_report(tmp_path / "no" / "report.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ReportError, match="is a directory"):
        check_report(tmp_path / "folder.csv")
    with pytest.raises(MigrationError, match="no plan found"):
        migrate.report(tmp_path, tmp_path / "rows.csv")
    work = finished(tmp_path, ROWS)
    with pytest.raises(ReportError, match="cannot be written"):
        migrate.report(work, tmp_path / "no" / "rows.csv")
    (tmp_path / "rows.csv").write_text("as it was")
    (work / "rows.jsonl").write_bytes(ROWS[0].line() + b"{}\n")
    with pytest.raises(ValueError, match="missing"):
        migrate.report(work, tmp_path / "rows.csv")
    (work / "rows.jsonl").unlink()
    with pytest.raises(ReportError, match="resume the run to write it again"):
        migrate.report(work, tmp_path / "rows.csv")
    assert (tmp_path / "rows.csv").read_text() == "as it was"
    assert sorted(os.listdir(tmp_path)) == ["folder.csv", "root.migration", "rows.csv"]


def test_a_work_folder_without_its_run(tmp_path: Path) -> None:
    """A plan without its chunks is a one-line error."""
    work = finished(tmp_path, ROWS, "begun")
    (work / "run.json").unlink()
    with pytest.raises(JobError):
        migrate.report(work, tmp_path / "rows.csv")


# --- the page ---------------------------------------------------------------------------------------------------------

# Void elements.
VOID = {"meta", "link", "br", "img", "input", "hr"}


class Page(HTMLParser):
    """A page parsed with a check that every element is closed."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.headings: list[tuple[int, str]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)
        if re.fullmatch("h[1-6]", tag):
            self.headings.append((int(tag[1]), ""))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" in self._open:
            return
        self.text += data
        if any(re.fullmatch("h[1-6]", tag) for tag in self._open):
            level, text = self.headings[-1]
            self.headings[-1] = (level, text + data)

    def count(self, tag: str) -> int:
        return sum(found == tag for found, _ in self.tags)


def page_of(work: Path | migrate.Run) -> Page:
    outcome = outcome_of(work)
    return Page(page_text(outcome, summarize(outcome.lines())))


@needs_jinja2
def test_the_page_says_everything(tmp_path: Path) -> None:
    """The page has verdict, totals, failures with remedies, options and times, and loads nothing."""
    rows = [
        *(row(f"f{number}", "copy_failed") for number in range(FIRST + 19)),
        row("full", "copy_failed", error_code="no-space"),
        row(HOSTILE, "source_invalid", id="new", error="why\u202e"),
        row("k", error_code=SOURCE_KEPT, error="its source was kept: locked"),
        row("n", error="its times could not be kept"),
        row("x\udc80"),
    ]
    work = finished(tmp_path, rows, invalid=1)
    warning = {"kind": "stray", "objects": [{"source_id": None, "source": "pairtree_root/Thumbs.db"}]}
    (work / "warnings.jsonl").write_text(json.dumps(warning) + "\n")
    migrate.report(work, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    for words in (
        "Needs attention",
        f"3 of {len(rows)} objects are in the destination, and verified.",
        "122 objects need attention",
        "/data/books",
        "/data/root",
        f"copy_failed: {FIRST + 20} objects",
        f"Reasons: a-code {FIRST + 19}, no-space 1.",
        "source_invalid: 1 object",
        REMEDIES["copy_failed"],
        REMEDIES["source_invalid"],
        f"The first {FIRST} of {FIRST + 20}",
        "its source was kept: locked",
        "its times could not be kept",
        "Thumbs.db",
        "0003-hash-and-id-n-tuple-storage-layout",
        "reread",
        "1 min 15 s",
        "2026-11-21 10:00:00 UTC",
        str(work / "remaining.txt"),
        str(work / "rows.jsonl"),
        f"a\\u202eb{MARKUP}\\n{{{{ 7 * 7 }}}}",
        "why\\u202e",
    ):
        assert words in page.text, words
    assert f"f{FIRST - 1}" in page.text
    assert f"why f{FIRST}" not in page.text
    assert page.count("script") == page.count("img") == page.count("link") == page.count("iframe") == 0


@needs_jinja2
def test_the_page_can_be_read_by_anybody(tmp_path: Path) -> None:
    """The page declares its language, nests headings, labels tables, and loads nothing."""
    work = finished(tmp_path, [row("a"), row("b", "unverified"), row("c", "exists_different")])
    outcome = outcome_of(work)
    text = page_text(outcome, summarize(outcome.lines()))
    page = Page(text)
    tags = dict(page.tags)
    assert tags["html"] == {"lang": "en"}
    assert text.startswith("<!doctype html>\n")
    metas = [attributes for tag, attributes in page.tags if tag == "meta"]
    assert {"charset": "utf-8"} in metas
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in metas
    policy = next(one["content"] for one in metas if one.get("http-equiv") == "Content-Security-Policy")
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"
    assert [level for level, _ in page.headings].count(1) == 1
    levels = [level for level, _ in page.headings]
    assert all(below <= above + 1 for above, below in pairwise(levels))
    assert page.count("main") == page.count("header") == page.count("footer") == 1
    assert page.count("table") == page.count("caption") == page.count("thead") > 3
    assert all(attributes.get("scope") in ("col", "row") for tag, attributes in page.tags if tag == "th")
    names = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(names) == len(set(names))
    for _, attributes in page.tags:
        assert not {"src", "srcset", "action", "style", "onclick"} & set(attributes)
        href = attributes.get("href")
        assert href is None or (href.startswith("#") and href[1:] in names)
    assert "url(" not in text
    assert "@import" not in text
    for medium in ("@media print", "@media (max-width", "prefers-color-scheme: dark"):
        assert medium in text


@pytest.mark.parametrize(
    ("rows", "kind", "words"),
    [
        (
            [row("a"), row("b")],
            "good",
            "2 objects were to be migrated. All of them are in the destination, and verified.",
        ),
        ([row("a")], "good", "1 object was to be migrated. It is in the destination, and verified."),
        ([], "good", "The source has no objects to migrate."),
        (
            [row("a"), row("b", error_code=SOURCE_KEPT, error="locked")],
            "attention",
            "and verified. The source of 1 object could not be removed; see below.",
        ),
        (
            [row("a"), row("b", "unverified")],
            "attention",
            "1 of 2 objects is in the destination, and verified. 1 object was not verified",
        ),
        ([row("a", "copy_failed"), row("b", "unverified")], "attention", "0 of 2 objects are in the destination"),
        (
            [row("a"), row("b", error="not migrated: logs/a.log")],
            "good",
            "and verified. 1 object was not migrated completely; see below.",
        ),
        (
            [row("a"), row("b", mode="rename", verify="moved", digest=None)],
            "good",
            "All of them are in the destination; 1 object was moved without being read.",
        ),
    ],
)
def test_verdicts(tmp_path: Path, rows: list[migrate.Entry], kind: str, words: str) -> None:
    """The verdict is one plain sentence, and positive only if every object is migrated."""
    outcome = outcome_of(finished(tmp_path, rows))
    verdict = verdict_of(outcome, summarize(outcome.lines()))
    assert verdict.kind == kind
    assert words in verdict.text
    assert (verdict.word == "All is well") == words.endswith("verified.")


def test_verdict_of_a_run_that_has_not_ended(tmp_path: Path) -> None:
    """The verdict of an unfinished run never reads as finished."""
    work = finished(tmp_path, [row("a"), row("b", "copy_failed")], "begun", objects=5)
    outcome = Outcome(migrate.Plan.open(work), "begun", str(work / "rows.jsonl"))
    verdict = verdict_of(outcome, summarize(outcome.lines()))
    assert verdict.kind == "unfinished"
    assert verdict.text == (
        "3 objects of 5 have not been migrated yet. Of the others, 1 object needs attention."
        " Resume the run to continue."
    )


def test_verdict_of_a_verification_of_several_runs(tmp_path: Path) -> None:
    """The verification of a catch-up includes the objects of earlier runs."""
    source = made(tmp_path / "source", ["a1", "b2"])
    first = migrate.plan(source, tmp_path / "root", to="ocfl", layout="0003")
    migrate.run(first, processes=False)
    second = migrate.catch_up(first)
    migrate.run(second, processes=False)
    stopped = migrate.verify(second, processes=False, stop=lambda: True)
    verdict = verdict_of(outcome_of(stopped), Summary())
    assert verdict.word == "Not finished"
    assert verdict.text.startswith("2 objects of 2 have not been read again in the destination yet.")


@needs_jinja2
def test_the_page_of_a_verification(tmp_path: Path) -> None:
    """The page of a verification names the objects that changed since their migration."""
    source = made(tmp_path / "source", ["a1", "b2"])
    migrate.run(migrate.plan(source, tmp_path / "root", to="ocfl", layout="0003"), processes=False)
    work = tmp_path / "root.migration"
    verified = migrate.verify(work, processes=False)
    page = page_of(verified)
    assert "2 objects were read again in the destination. All of them are as migrated." in page.text
    [file] = (path for path in (tmp_path / "root").glob("**/a1/v1/content/data.txt"))
    file.chmod(0o644)
    file.write_bytes(b"CONTENT")
    page = page_of(migrate.verify(work, processes=False))
    assert "Needs attention" in page.text
    assert "digest_mismatch: 1 object" in page.text
    assert "the object in the destination is damaged" in page.text
    assert "remaining.txt" not in page.text


@needs_jinja2
@pytest.mark.parametrize("to", ["bags", "pairtree", "vitro", "ocfl"])
def test_the_page_of_a_run_that_has_just_begun(tmp_path: Path, to: str) -> None:
    """The page of a run that has just started states this, and how to continue."""
    source = made(tmp_path / "source", ["a1", "b2"])
    how: dict[str, Any] = {"bags": {"algorithms": ("md5",)}, "ocfl": {"layout": "0011"}}.get(to, {})
    if to == "pairtree":
        how = {"destination_options": {"prefix": "a"}, "ids": ["a1", "none"], "copy_mode": "copy"}
    plan = migrate.plan(source, tmp_path / "new", to=to, **how)
    page = page_of(Path(plan.work))
    text = re.sub(r"\s+", " ", page.text)
    assert "Not finished" in text
    known = "1 object of 2 has not been migrated yet. Of the others, 1 object needs attention."
    assert (known if to == "pairtree" else "No object has been done yet.") in text
    assert "Run pressmark migrate --resume" in text
    said = {"bags": "none; bags are named", "ocfl": "layout-0011", "pairtree": '{"prefix": "a"}'}
    assert said.get(to, "fixed by the kind of store") in text
    assert ("Digest algorithms of bags" in text) == (to == "bags")


@needs_jinja2
@pytest.mark.parametrize(
    ("source_kind", "to", "version", "shown"),
    [
        ("ocfl", "ocfl", None, "all"),
        ("ocfl", "bags", None, "newest"),
        ("ocfl", "bags", "v2", "v2"),
        ("pairtree", "ocfl", None, None),
    ],
)
def test_the_page_names_the_versions_of_an_ocfl_source(
    tmp_path: Path, source_kind: str, to: str, version: str | None, shown: str | None
) -> None:
    """A source of another kind has no versions, and its page no row for them."""
    work = finished(tmp_path, [row("a")])
    outcome = outcome_of(work)
    options = dataclasses.replace(outcome.plan.options, source_kind=source_kind, to=to, version=version)
    changed = dataclasses.replace(outcome, plan=dataclasses.replace(outcome.plan, options=options))
    text = re.sub(r"\s+", " ", Page(page_text(changed, summarize(outcome.lines()))).text)
    assert re.findall(r"Versions? of OCFL objects ?(\w+)", text) == ([] if shown is None else [shown])


@needs_jinja2
def test_the_page_of_nothing(tmp_path: Path) -> None:
    """A run without objects is successful."""
    text = page_of(finished(tmp_path, [])).text
    assert "The source has no objects to migrate." in text
    assert "What to do" not in text


def test_formats_are_known_by_their_endings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file extension selects one format, in any case."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: True)
    assert {format_of(f"A{ending.upper()}") for ending in FORMATS} == set(FORMATS.values())


def test_a_row_and_its_line() -> None:
    """A line gives the row again, whatever its texts contain; a damaged one is refused."""
    look = '","status":"ok","mode":"copy","error_code":"x",\\"status\\":"\udcff'
    for code in (None, "source_kept"):
        row = Entry(look, look, look, look, "exists_same", None, 3, 4, "sha512", None, "reread", code, look, look)
        assert Entry.parse(row.line()) == row
        assert row.noted == (code is None)
        assert not dataclasses.replace(row, error=None).noted
        assert not dataclasses.replace(row, status="unverified").noted
    for line in (b'{"status": "ok"}\n', b'{"status": "ok"', b"[]\n"):
        with pytest.raises(ValueError, match=r"."):
            Entry.parse(line)
