"""What objects show of themselves: ``repr``, and HTML in notebooks."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from pathlib import Path

import pytest

import pressmark
from arrow.foreign import Opaque
from pressmark import bagit, compare, migrate, stores
from pressmark.reports import Problem, Report
from pressmark.summaries import html_table, text_table


def test_text_table() -> None:
    """Columns are aligned, numbers to the right; long cells are cut."""
    table = text_table(("name", "n"), [("a", 1), ("x" * 99, 12_345), ("b", 2)])
    lines = table.splitlines()
    assert lines[0].split() == ["name", "n"]
    assert lines[1].endswith("     1")
    assert lines[2].endswith("…  12,345")
    assert len({len(line) for line in lines}) == 1


def test_a_report_has_no_truth_value(tmp_path: Path) -> None:
    """``if validate(bag):`` would be true for an invalid bag."""
    (tmp_path / "bagit.txt").touch()
    for report in (Report(), bagit.validate(tmp_path)):
        with pytest.raises(TypeError, match="has no truth value: use its attribute ok"):
            bool(report)


def test_html_is_escaped() -> None:
    """Identifiers and messages cannot add markup."""
    assert "&lt;b&gt;" in html_table("a", ("x",), [("<b>",)])
    assert "<b>" not in html_table("<b>", ("<b>",), [("<b>",)])


@pytest.mark.usefixtures("implementation")
def test_columns() -> None:
    """A column shows its size and its first items."""
    layout = pressmark.layout("0006", delimiter=":")
    column = layout.map(Opaque(pytest.importorskip("pyarrow").array(["x:a", "x:b", None, *["x:c"] * 20])))
    assert repr(column).startswith("<StringColumn of 23 items, 1 null: ['a', 'b', None, 'c'")
    assert repr(column).endswith(", …]>")
    assert column._repr_html_().count("<tr>") == 11


def test_report() -> None:
    """A report shows its totals and its first problems."""
    problems = [Problem("file-missing", "error", "2.1", f"data/{n}\udcff", message="missing <here>") for n in range(12)]
    report = Report([*problems, Problem("odd", "warning", "", "x", message="odd")], {"files": 1_000})
    assert repr(report) == "<Report: 12 errors, 1 warning; files 1,000>"
    lines = str(report).splitlines()
    assert lines[0] == "12 errors, 1 warning; files 1,000"
    assert lines[1] == "  error: 'data/0\\xff': missing <here>"
    assert lines[-1] == "  and 3 more in .problems"
    assert "missing &lt;here&gt;" in report._repr_html_()
    assert repr(Report()) == "<Report: 0 errors, 0 warnings>"


def test_comparison() -> None:
    """A comparison shows a table with a row for each layout, which may be given by name."""
    found = compare.compare(["a:b", "a=b"], ["pairtree", pressmark.layout("0003")])
    assert repr(found) == f"<Comparison of 2 layouts on 2 identifiers; safe: pairtree, {found.layouts[1].name}>"
    lines = str(found).splitlines()
    assert lines[0] == "2 layouts on 2 identifiers"
    assert str(compare.compare(["a"], ["pairtree"])).startswith("1 layout on 1 identifier\n")
    assert lines[2].split()[:2] == ["pairtree", "yes"]
    assert found._repr_html_().count("<tr>") == 3


def test_migration(tmp_path: Path) -> None:
    """A plan and a run show their totals on one line, and a table in notebooks."""
    (tmp_path / "file").write_bytes(b"12")
    store = stores.create("pairtree", tmp_path / "books")
    for id in ("a", "b"):
        store.put(id, {"file": tmp_path / "file"})
    root, work = tmp_path / "<b>root", tmp_path / "work"
    plan = migrate.plan(tmp_path / "books", root, to="ocfl", layout="0003", work=work)
    assert repr(plan) == f"<Plan {str(work)!r}: 2 objects, 2 files, 4 B, pairtree to ocfl>"
    # Long paths are cut, whatever the length of the directory of the tests.
    options = dataclasses.replace(plan.options, destination="/<b>root")
    html = dataclasses.replace(plan, options=options)._repr_html_()
    assert "<caption>Plan: 2 objects, 2 files, 4 B</caption>" in html
    assert "&lt;b&gt;root (ocfl)" in html
    run = migrate.run(plan, processes=False)
    assert repr(run) == f"<Run {str(work)!r}: ok; 2 ok; 4 B>"
    assert "<caption>Run: ok; 2 files, 4 B</caption>" in run._repr_html_()
    unfinished = dataclasses.replace(run, by_status={"ok": 1}, remaining=1, stopped="stop", failed=())
    assert repr(unfinished) == f"<Run {str(work)!r}: not complete; 1 ok, 1 remaining; 4 B>"
    assert unfinished._repr_html_().count("<tr>") == 3
    assert "complete, not ok; 1 conflict;" in repr(dataclasses.replace(run, by_status={"conflict": 1}))


def test_bag(tmp_path: Path) -> None:
    """A bag shows what it is; its class says how to open one."""
    (tmp_path / "one").write_bytes(b"1")
    bag = bagit.create([tmp_path / "one"], tmp_path / "bag")
    assert repr(bag) == f"<Bag {str(tmp_path / 'bag')!r}: BagIt 1.0, sha512, Payload-Oxum 1.1>"
    for given in ([], [tmp_path / "bag"], [str(tmp_path / "bag")]):
        with pytest.raises(TypeError, match=r"Bag\(.*\): call pressmark.bagit.open\(path\)"):
            bagit.Bag(*given)
    for again in (copy.copy(bag), pickle.loads(pickle.dumps(bag))):
        assert repr(again) == repr(bag)
