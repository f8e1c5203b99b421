"""``pressmark store report``: its output, exit status, what it refuses, and how it ends."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from pressmark import html, stores
from pressmark.stores.reporting import store_report
from ways.stores import KINDS, make_store

from .conftest import Call

IDS = ("urn:a", "urn:b", "urn:c")
needs_jinja2 = pytest.mark.skipif(importlib.util.find_spec("jinja2") is None, reason="the extra report is missing")


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def store(kind: str, tmp_path: Path) -> Path:
    return make_store(kind, tmp_path / "store", {one: {"f.txt": one.encode()} for one in IDS})


@needs_jinja2
def test_a_page(kind: str, store: Path, call: Call) -> None:
    """One line says what was found; the page has the numbers, and --quiet says nothing."""
    done = call("store", "report", "store", "-o", "page.html")
    assert (done.exit_code, done.stdout) == (0, "")
    warnings = {"ocfl": ", 1 warning"}.get(kind, "")
    assert done.stderr in (
        f"pressmark: store: 3 objects, 3 files, 15 B{more}; page.html: report written\n" for more in ("", warnings)
    )
    assert '<dd id="objects" data-value="3">3</dd>' in Path("page.html").read_text(encoding="utf-8")
    done = call("store", "report", "store", "-o", "page.html", "--quiet")
    assert (done.exit_code, done.output) == (0, "")


def test_json(store: Path, call: Call) -> None:
    """The summary is the only line, and that of the report in Python."""
    done = call("store", "report", "store", "--json")
    assert done.exit_code == 0
    [line] = done.stdout.splitlines()
    found = json.loads(line)["summary"]
    expected = stores.report(stores.open("store")).record()
    for one in (found, expected):
        del one["created"]
    assert found == json.loads(json.dumps(expected))
    assert found["coverage"] is None


@needs_jinja2
def test_recommendations(call: Call, tmp_path: Path) -> None:
    """Each has a row with the number of objects that do not follow it; the number of warnings is that of a check."""
    root = make_store("ocfl", tmp_path / "root", {one: {"f.txt": one.encode()} for one in IDS})
    user = {"name": "A"}
    stores.OcflRoot(root, user=user).put("urn:d", {"f.txt": b"d"})
    done = call("store", "report", "root", "--json")
    summary = json.loads(done.stdout)["summary"]
    found = [(one["kind"], one["count"], one["objects"], one["message"][-7:]) for one in summary["problems"]]
    assert found == [("inventory-advice", 1, 3, " (W007)"), ("inventory-advice", 1, 1, " (W008)")]
    assert summary["warnings"] == 2
    call("store", "report", "root", "-o", "page.html")
    assert 'data-name="number:" data-value="3">3</td>' in (tmp_path / "page.html").read_text(encoding="utf-8")


@needs_jinja2
def test_the_state_of_an_audit(kind: str, store: Path, call: Call) -> None:
    """Damage that an audit has found is in the last line, on the page and in JSON; the exit status is 0."""
    if kind in ("ocfl", "bags"):
        broken = next(one for one in sorted(store.rglob("*")) if one.name == "f.txt")
        broken.write_bytes(b"other")
    assert call("store", "audit", "store", "--state", "state").exit_code == (kind in ("ocfl", "bags"))
    done = call("store", "report", "store", "--state", "state", "-o", "page.html", "--json")
    assert done.exit_code == 0
    coverage = json.loads(done.stdout)["summary"]["coverage"]
    text = Path("page.html").read_text(encoding="utf-8")
    if kind in ("ocfl", "bags"):
        assert (coverage["verified"]["30 days"], coverage["damaged"]) == (2, 1)
        assert ", 1 with errors when verified last; page.html: report written\n" in done.stderr
        assert '<dd id="verified" data-value="2">67\u00a0%</dd>' in text
        [damage] = coverage["kinds"]
        assert damage["kind"] in ("content-mismatch", "checksum-mismatch")
    else:
        assert (coverage["verified"]["30 days"], coverage["damaged"]) == (3, 0)
        assert '<dd id="verified" data-value="3">100\u00a0%</dd>' in text


@pytest.mark.parametrize("kind", ["pairtree"], indirect=True)
@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("store report store", "no output; specify -o FILE.html or --json"),
        (
            "store report store -o store/page.html",
            "'store/page.html': inside the store 'store'; choose another file",
        ),
        ("store report store -o folder", "is a directory"),
        ("store report store -o page.txt", "'page.txt': a report is HTML; choose a name that ends in .html"),
        ("store report store -o nowhere/page.html", "'nowhere/page.html': parent directory not found"),
        ("store report store -o state --state state", "'state': input and report are the same file"),
        ("store report store --json --state nothing", "'nothing': no such file; specify the state of an audit of this"),
        ("store report store --json --state state", "'state': not the state of an audit"),
        ("store report nothing --json", "'nothing': No such file or directory"),
        ("store report store --json -o s3://books/page.html", "object storage is not supported for --output"),
        ("store report store --json --endpoint http://x", "--endpoint: only for an address such as s3://bucket/prefix"),
    ],
)
@needs_jinja2
def test_refused(store: Path, call: Call, arguments: str, reason: str) -> None:
    """Before anything is read or written, in one line."""
    Path("folder").mkdir()
    Path("state").write_text("the state of something else")
    before = sorted(Path().rglob("*"))
    done = call(*arguments.split())
    assert (done.exit_code, done.stdout) == (2, "")
    assert reason in done.stderr
    assert sorted(Path().rglob("*")) == before
    assert Path("state").read_text() == "the state of something else"


@pytest.mark.parametrize("kind", ["pairtree"], indirect=True)
def test_without_jinja2(store: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page needs it, --json does not."""
    monkeypatch.setattr(html.importlib.util, "find_spec", lambda name: None)
    done = call("store", "report", "store", "-o", "page.html")
    assert (done.exit_code, done.stdout) == (2, "")
    assert 'jinja2 is not installed; run: pip install "pressmark[report]"' in done.stderr
    assert not Path("page.html").exists()
    assert call("store", "report", "store", "--json").exit_code == 0


@needs_jinja2
@pytest.mark.parametrize("kind", ["ocfl"], indirect=True)
def test_an_interrupted_report(store: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """An earlier page stays as it is, and nothing is left beside it."""
    Path("page.html").write_text("old")

    def interrupted(*_arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(store_report, "measure", interrupted)
    before = sorted(Path().iterdir())
    done = call("store", "report", "store", "-o", "page.html")
    assert (done.exit_code, done.stdout) == (130, "")
    assert done.stderr == "pressmark: interrupted; no report was written; run the same command again\n"
    assert Path("page.html").read_text() == "old"
    assert sorted(Path().iterdir()) == before
