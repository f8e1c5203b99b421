"""The page of a store report: its numbers, its texts, and that it is self-contained, safe and accessible."""

from __future__ import annotations

import importlib.util
import json
import os
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from pressmark import html as pages, stores
from pressmark.errors import ReportError
from pressmark.stores import OcflRoot, ProblemCount, StoreReport
from pressmark.stores.audits.audit_state import LastResults
from pressmark.stores.reporting.statistics import Statistics, most_frequent
from pressmark.stores.reporting.store_page import check_store_page, store_page_text
from support.trees import write

from .counting import CASES, USER, make_store
from .test_store_coverage import age
from .test_store_numbers import as_json

pytestmark = pytest.mark.skipif(importlib.util.find_spec("jinja2") is None, reason="the extra report is not installed")

HOSTILE = [
    "</script><script>alert(1)</script>",
    '<img src="http://example.org/x.png" onerror=alert(1)>',
    "\u202eabc\u2066def",
    "'\"><svg onload=alert(1)>",
    "{{ 7 * 7 }}{% raw %}",
    "a" * 3000,
]


class Page(HTMLParser):
    """The elements of a page, and the cells of its tables by row; checks that tags are nested correctly."""

    VOID = frozenset({"meta", "br"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        #: The texts of captions and headings.
        self.captions: list[str] = []
        #: By the id of a table, and the name of a row: the values of its cells.
        self.rows: dict[str, dict[str, list[int]]] = {}
        #: By id: the values of the first figures.
        self.figures: dict[str, int] = {}
        self._open: list[str] = []
        self._table = self._row = ""
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.elements.append((tag, found))
        self.texts.setdefault(tag, "")
        if tag not in self.VOID:
            self._open.append(tag)
        if tag == "table":
            self._table = found["id"] or ""
            self.rows[self._table] = {}
        if tag == "tr":
            self._row = found.get("data-row") or found.get("data-kind") or ""
            self.rows[self._table].setdefault(self._row, [])
        value = found.get("data-value")
        if value is not None and tag == "td":
            self.rows[self._table][self._row].append(int(value))
        elif value is not None:
            self.figures[found["id"] or ""] = int(value)

    def handle_endtag(self, tag: str) -> None:
        assert self._open
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        for tag in set(self._open):
            self.texts[tag] += data


def visible(text: str) -> str:
    """Return the text of a page that a reader sees."""
    shown = re.sub(r"<(script|style|title)\b.*?</\1>", "", text, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]*>", " ", shown).split())


@pytest.fixture
def found(tmp_path: Path) -> StoreReport:
    """A report on a storage root with damaged objects, an audit, and names that look like markup."""
    path = make_store("ocfl", tmp_path / "<b>root", 3)
    root = OcflRoot(path, user=USER)
    for number, name in enumerate(HOSTILE):
        root.put(name, {f"{number}.txt": b"x"})
    stores.audit(root, tmp_path / "state", max_objects=12)
    broken = sorted({one.parent for one in path.rglob("0=ocfl_object_*")})
    (broken[0] / "inventory.json").unlink()
    next(one for one in (broken[1] / "v1" / "content").rglob("*") if one.is_file()).unlink()
    write(path, {one.replace("/", "|")[:200]: b"x" for one in HOSTILE})
    report = stores.report(root, tmp_path / "state")
    assert report.audited is not None
    return report


@pytest.fixture
def text(found: StoreReport) -> str:
    return store_page_text(found)


@pytest.mark.parametrize("kind", CASES)
def test_every_number_is_that_of_the_report(kind: str, tmp_path: Path) -> None:
    """Each cell of each table; the report itself is compared with the files elsewhere."""
    path = make_store(kind, tmp_path / "store", 9)
    store = stores.open(path)
    stores.audit(store, tmp_path / "state")
    age(tmp_path / "state", 1_700_000_000)
    write(path, {"beside/file": b"x"})
    report = stores.report(store, tmp_path / "state")
    record = as_json(report)
    page = Page(store_page_text(report))
    expected = {name: record[name] for name in ("objects", "files", "bytes")}
    expected["verified"] = record["coverage"]["verified"]["90 days"]
    if kind == "ocfl":
        expected |= {"stored-bytes": record["stored"]["bytes"], "all-versions": record["versions"]}
    assert page.figures == expected
    rows = {table: [cells for cells in found.values() if cells] for table, found in page.rows.items()}
    total, growth = 0, []
    for one in record["growth"]:
        total += one["bytes"]
        growth.append([one["objects"], one["files"], one["bytes"], total])
    assert len(growth) > 3
    if len(growth) > 24:
        head = [sum(numbers) for numbers in zip(*(one[:3] for one in growth[:-24]), strict=True)]
        growth = [[*head, growth[-25][3]], *growth[-24:]]
    assert rows.pop("growth") == growth
    assert rows.pop("formats") == [[one["files"], one["bytes"]] for one in record["formats"]]
    keys = ("files", "file_bytes", "objects", "object_bytes")
    assert rows.pop("sizes") == [[one[key] for key in keys] for one in record["sizes"]]
    coverage = record["coverage"]
    assert rows.pop("coverage") == [
        *([one] for one in coverage["verified"].values()),
        *([coverage[name]] for name in ("earlier", "never", "damaged")),
    ]
    assert rows.pop("problems") == [[one["count"]] for one in record["problems"]]
    if kind == "ocfl":
        assert rows.pop("versions") == [[one["objects"]] for one in record["versions_per_object"]]
    assert rows == {}


def test_numbers_in_words(found: StoreReport, text: str) -> None:
    """What a reader sees: the verdict, dates, shares and sizes."""
    shown = visible(text)
    errors = found.errors
    assert (
        f"✗ {errors} errors found The structure of each object was checked; no content was read. What is known" in shown
    )
    assert "layout 0004-hashed-n-tuple-storage-layout. 20" in shown
    assert (
        f"Files and size are those of the newest versions. All versions together have {found.statistics.stored_files}"
        in shown
    )
    assert "The files of 1 unreadable object are not counted." in shown
    assert "18 objects by the time of their last verification" in shown
    assert "never 6 33\u00a0%".replace("\u00a0", " ") in shown
    assert "The oldest verification is of 20" in shown
    assert "the dates of their versions (17)" in shown
    assert "The largest object is urn:ocfl:" in shown


def test_the_page_without_problems(tmp_path: Path) -> None:
    root = OcflRoot.create(tmp_path / "root", layout="0004", durable=False, user=USER)
    root.put("urn:a", {"x.tif": b"x" * 1500}, created="2026-02-01T00:00:00Z")
    shown = visible(store_page_text(stores.report(root)))
    assert "✓ No problems found The structure of each object was checked; no content was read. " in shown
    assert "The check of the structure found no problems." in shown
    assert "without the state of an audit. See pressmark store audit ." in shown
    assert "objects 1 files 1 size 1.5 kB" in shown
    assert ".tif 1 1.5 kB" in shown
    (tmp_path / "root" / "extensions" / "own").mkdir()
    assert "! 1 warning, no errors" in visible(store_page_text(stores.report(root)))


def test_an_empty_store_has_a_page(tmp_path: Path) -> None:
    for kind in CASES:
        options: dict[str, Any] = {"layout": "0004"} if kind == "ocfl" else {}
        report = stores.report(stores.create(kind, tmp_path / kind, **options))
        page = Page(store_page_text(report))
        assert page.figures == {"objects": 0, "files": 0, "bytes": 0}
        assert not [cells for table in page.rows.values() for cells in table.values() if cells]


def of_coverage(**numbers: int) -> str:
    """Return what a page says about 10,000 verified objects."""
    values = {"earlier": 0, "damaged": 0, "never": 0, **numbers}
    within = 10_000 - sum(values.values())
    last = LastResults(10_000, {30: within, 90: within, 365: within}, **values, oldest=0, kinds={})
    kind = {"fixity": (values["damaged"], "a/b")} if values["damaged"] else {}
    damaged = tuple(ProblemCount(one, "error", count, path, "", "restore it") for one, (count, path) in kind.items())
    report = StoreReport("root", "pairtree", "pairtree", 0, Statistics(objects=10_000), (), last, damaged)
    return visible(store_page_text(report))


def test_not_all_is_never_100_per_cent() -> None:
    """A share that is rounded does not hide an object that was not verified."""
    assert "verified in the last 90 days 100 % Files" in of_coverage()
    assert "in the last 90 days 10,000 100 %" in of_coverage()
    assert "in the last 90 days 9,999 99.99 %" in of_coverage(never=1)
    assert "never 1 0.01 % with errors, the last time 0 0 %" in of_coverage(never=1)
    assert "in the last 90 days 9,900 99 %" in of_coverage(never=100)


def test_damage_is_in_the_verdict() -> None:
    shown = of_coverage(damaged=2)
    assert "✗ 2 objects with errors when verified last" in shown
    assert "Errors of objects when they were verified last" in shown
    assert "fixity error 2 a/b restore it" in shown


# --- texts ------------------------------------------------------------------------------------------------------------


def test_texts_are_escaped(text: str, found: StoreReport, tmp_path: Path) -> None:
    """Names never become markup; unprintable characters are escaped."""
    page = Page(text)
    assert "alert" not in "".join(tag for tag, _ in page.elements)
    assert not {"b", "img", "svg"} & {tag for tag, _ in page.elements} - {"svg"}
    kinds = tuple(ProblemCount(f"kind{number}", "error", 1, one, one, one) for number, one in enumerate(HOSTILE))
    text = store_page_text(replace(found, problems=kinds, root=HOSTILE[0], layout=HOSTILE[1]))
    shown = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    Page(text)
    assert shown.count("&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;") >= 4
    assert "&lt;img src=" in shown
    assert "\\u202eabc\\u2066def" in shown
    assert "{{ 7 * 7 }}" in shown
    assert [one for one in shown if not one.isprintable() and one not in "\n\u00a0"] == []


def test_the_data_are_complete(text: str, found: StoreReport) -> None:
    data = Page(text).texts["script"]
    assert json.loads(data) == as_json(found)
    assert not set(data) & set("<>&")


def test_the_page_runs_no_script(text: str) -> None:
    """The only script is data, the policy blocks everything but the style sheet, and nothing is loaded."""
    page = Page(text)
    assert [one.get("type") for tag, one in page.elements if tag == "script"] == ["application/json"]
    policy = next(one["content"] for _tag, one in page.elements if one.get("http-equiv") == "Content-Security-Policy")
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"
    for _tag, attributes in page.elements:
        assert not {"src", "href", "srcset", "action", "data", "poster"} & attributes.keys()
        assert not [name for name in attributes if name.startswith("on")]
    assert not re.search(r"url\(|@import", text)


def test_the_page_is_accessible(text: str) -> None:
    """Heading levels, unique ids, table captions and scopes, a text beside the picture."""
    page = Page(text)
    assert next(one for tag, one in page.elements if tag == "html")["lang"] == "en"
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    ids = [one["id"] for _tag, one in page.elements if one.get("id")]
    assert len(ids) == len(set(ids))
    tags = [tag for tag, _ in page.elements]
    assert tags.count("table") == tags.count("caption") == len(page.rows)
    assert all(one.get("scope") for tag, one in page.elements if tag == "th")
    assert [one["aria-label"] for tag, one in page.elements if tag == "svg"]


# --- errors -----------------------------------------------------------------------------------------------------------


def test_where_a_page_cannot_be_written(tmp_path: Path) -> None:
    path = make_store("pairtree", tmp_path / "store", 1, objects=1)
    report = stores.report(stores.open(path))
    (tmp_path / "folder.html").mkdir()
    (tmp_path / "link").symlink_to(path)
    (tmp_path / "state").write_text("state")
    for name, reason in (
        ("store/page.html", "inside the store"),
        ("store/pairtree_root/page.html", "inside the store"),
        ("link/page.html", "inside the store"),
        ("nowhere/page.html", "parent directory not found"),
        ("folder.html", "is a directory"),
        ("page.pdf", "a report is HTML; choose a name that ends in .html"),
    ):
        with pytest.raises(ReportError, match=reason):
            report.write(tmp_path / name)
    with pytest.raises(ReportError, match="input and report are the same file"):
        check_store_page(tmp_path / "state", str(path), tmp_path / "state")
    assert sorted(os.listdir(tmp_path)) == ["folder.html", "link", "state", "store"]
    report.write(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = stores.report(stores.create("pairtree", tmp_path / "store"))
    monkeypatch.setattr(pages.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ReportError, match=r'jinja2 is not installed; run: pip install "pressmark\[report\]"'):
        report.write(tmp_path / "page.html")


def test_the_most_frequent_formats_come_first(found: StoreReport, text: str) -> None:
    formats = most_frequent(found.statistics.endings)
    counts = [cells[0] for cells in Page(text).rows["formats"].values() if cells]
    assert counts == [one.number for one in formats.values()] == sorted(counts, reverse=True)
