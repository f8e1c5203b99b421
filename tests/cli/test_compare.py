"""``pressmark compare``: every kind of input, the same numbers in every output, errors on one line."""

from __future__ import annotations

import gzip
import importlib.util
import io
import json
import os
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import click.testing
import pytest

from pressmark import html as pages, layout, stores
from pressmark._kernels.tables import MAX_IDENTIFIER_BYTES
from pressmark.cli.common.rich_tables import Table, tables_text
from pressmark.cli.compare import DEFAULT_LAYOUTS
from pressmark.compare import comparison as comparing
from pressmark.compare.result import Probe, ProbeTimes

from .conftest import Call, Run

# 0012 with the delimiter "." maps the first two to the same path.
IDS = ["miun.aje1563.0001.001", "miun.aje1563.0002.001", "uc1.b1", "uc1.b12", "mdp.39015004042316"]
LAYOUTS = ("--layout", "0004", "--layout", "0012:delimiters=.")
HAS_REPORT = all(importlib.util.find_spec(package) for package in ("matplotlib", "jinja2"))
needs_report = pytest.mark.skipif(not HAS_REPORT, reason="the extra report is not installed")


@pytest.fixture
def ids(tmp_path: Path) -> Path:
    path = tmp_path / "ids.txt"
    path.write_text("".join(f"{identifier}\n" for identifier in IDS))
    return path


def records(output: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the layouts of ``--json``, and the summary."""
    *layouts, last = (json.loads(line) for line in output.splitlines())
    return layouts, last["summary"]


def test_json(call: Call, ids: Path) -> None:
    """One line per layout, then a summary with the verdict."""
    result = call("compare", "ids.txt", *LAYOUTS, "--json", "--directory-limit", "3")
    (first, second), summary = records(result.stdout)
    assert result.exit_code == 1
    assert (first["name"], first["layout"]) == ("0004", layout("0004").name)
    assert second["config"] == layout("0012", delimiters=["."]).config()
    assert (first["collisions"]["equal"], second["collisions"]["equal"]) == (0, 2)
    assert (first["mapped"], first["directories"]["leaf"], second["directories"]["leaf"]) == (5, 5, 4)
    assert (summary["identifiers"], summary["source"], summary["directory_limit"]) == (5, "ids.txt", 3)
    assert summary["ok"] is True
    assert summary["verdict"]["word"] == "1 of 2 layouts has path collisions"
    [group] = summary["verdict"]["groups"]
    assert [statement["rule"] for statement in group["statements"]] == ["shared"]


def test_item_without_nul(call: Call) -> None:
    """An item without a NUL is cut at the maximum length."""
    result = call("compare", "-", "-0", "--layout", "0004", "--json", stdin=b"y" * (MAX_IDENTIFIER_BYTES + 9) + b"\0z")
    (found,), summary = records(result.stdout)
    assert (found["mapped"], found["unmapped"]["count"], summary["identifiers"]) == (1, 1, 2)
    _, summary = records(call("compare", "-", "-0", "--layout", "0004", "--json", stdin=b"a\0\0b\nc\0d").stdout)
    assert (summary["identifiers"], summary["distinct"], summary["blank"]) == (4, 4, 1)


def test_tables(call: Call, ids: Path) -> None:
    """The tables show the verdict and the same numbers."""
    result = call("compare", "ids.txt", *LAYOUTS)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0].startswith("Recommended for an OCFL storage root: ")
    assert lines[lines.index("1 of 2 layouts has path collisions.") + 2] == "Objects would overwrite each other:"
    assert any(line.startswith("- 0012:delimiters=.: 2 identifiers share 1 path") for line in lines)
    safety = [line.split() for line in lines if line.split()[:1] == ["0012:delimiters=."]]
    assert safety[0][1:4] == ["no", "2", "0"]
    assert "'miun.aje1563.0001.001', 'miun.aje1563.0002.001'" in result.stdout


def test_safe_layouts(call: Call, ids: Path) -> None:
    result = call("compare", "ids.txt", "--layout", "0004", "--layout", "pairtree")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "\n\nAll layouts are safe.\n\n" in result.stdout


def test_default_layouts(call: Call, ids: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without --layout, common layouts are compared, one is recommended, and the tables fit 80 columns."""
    result = call("compare", "ids.txt", "--json")
    layouts, summary = records(result.stdout)
    assert [one["name"] for one in layouts] == list(DEFAULT_LAYOUTS)
    found = summary["verdict"]["recommendations"]
    assert [(one["structure"], one["layout"]) for one in found] == [("ocfl", "0003"), ("pairtree", "pairtree")]
    text = call("compare", "ids.txt").stdout
    lines = text.splitlines()
    assert lines[0] == "Recommended for an OCFL storage root: 0003"
    assert lines[1].startswith("  Every identifier has a unique path, also on file systems that ignore case; ")
    assert "  pressmark store init ocfl STORE --layout 0003" in lines[:5]
    assert "  pressmark store init pairtree STORE" in lines[:10]
    for one in found:
        assert call(*one["command"].replace("STORE", one["structure"]).split()[1:]).exit_code == 0
    # In a file, lines have at most 120 columns.
    assert max(map(len, text.splitlines())) <= 120
    assert text.count("identifiers/s: - if there are too few identifiers to measure the speed") == 1
    monkeypatch.setattr(shutil, "get_terminal_size", lambda: os.terminal_size((80, 20)))
    monkeypatch.setattr(click.testing._NamedTextIOWrapper, "isatty", lambda self: True)
    monkeypatch.setenv("TERM", "dumb")
    lines = call("compare", "ids.txt").stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.split() == ["safe", *["yes"] * 5] for line in lines)


def test_damaged_parquet(call: Call, tmp_path: Path) -> None:
    """The error of pyarrow is one line, without a traceback."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table({"id": [f"identifier{number}" for number in range(1000)]})
    parquet.write_table(table, tmp_path / "ids.parquet", compression="none", use_dictionary=False)
    data = bytearray((tmp_path / "ids.parquet").read_bytes())
    data[4:200] = bytes(one ^ 0xFF for one in data[4:200])
    (tmp_path / "ids.parquet").write_bytes(data)
    result = call("compare", "ids.parquet", "--column", "id", *LAYOUTS)
    assert result.exit_code == 1
    assert result.stderr.startswith("pressmark: ids.parquet: ")
    assert "Traceback" not in result.stderr
    assert result.stderr.count("\n") == 1


def test_every_input(call: Call, tmp_path: Path) -> None:
    """Every kind of input gives the same comparison."""
    lines = "".join(f"{identifier}\n" for identifier in IDS).encode()
    (tmp_path / "ids.txt").write_bytes(lines)
    (tmp_path / "ids.txt.gz").write_bytes(gzip.compress(lines))
    (tmp_path / "nul").write_bytes(lines.replace(b"\n", b"\0"))
    (tmp_path / "table.csv").write_text("n,id\n" + "".join(f'1,"{identifier}"\n' for identifier in IDS))
    (tmp_path / "table.tsv.gz").write_bytes(gzip.compress(b"".join(f"{one}\tx\n".encode() for one in IDS)))
    inputs = [
        ("ids.txt",),
        ("ids.txt.gz",),
        ("nul", "-0"),
        ("table.csv", "--column", "id"),
        ("table.csv", "--column", "2", "--header"),
        ("table.tsv.gz", "--column", "1", "--no-header"),
        ("-",),
    ]
    if importlib.util.find_spec("pyarrow"):
        import pyarrow
        import pyarrow.parquet

        table = pyarrow.table({"n": [1, 2, None, 3, 4, 5], "id": [*IDS[:3], None, *IDS[3:]]})
        pyarrow.parquet.write_table(table, tmp_path / "table.parquet", row_group_size=2)
        inputs.append(("table.parquet", "--column", "id"))
    (tmp_path / "file").write_text("content")
    books = stores.create("pairtree", tmp_path / "books")
    for identifier in IDS:
        books.put(identifier, tmp_path / "file")
    inputs.append(("books",))
    wanted = None
    for given in inputs:
        result = call("compare", *given, *LAYOUTS, "--json", stdin=lines)
        layouts, summary = records(result.stdout)
        assert (given, result.exit_code, summary["identifiers"]) == (given, 1, 5)
        numbers = [
            (one["collisions"]["equal"], one["directories"], one["lengths"], one["fan_out"]["max"]) for one in layouts
        ]
        wanted = wanted or numbers
        assert (given, numbers) == (given, wanted)


@needs_report
@pytest.mark.parametrize(
    "name",
    [
        *("0003:tupleSize=2", '0012:delimiters=["/", ":"]', "pairtree:prefix=http://example.org/"),
        *("vitro", 'vitro:namespaces={"a": "http://example.org/"}'),
    ],
)
def test_the_recommended_command(call: Call, tmp_path: Path, name: str) -> None:
    """The command creates a store whose objects are at the paths of the compared layout."""
    (tmp_path / "ids.txt").write_text("http://example.org/n1\nhttp://example.org/n2\n")
    result = call("compare", "ids.txt", "--layout", name, "--json")
    [recommended] = records(result.stdout)[1]["verdict"]["recommendations"]
    program, *arguments = shlex.split(recommended["command"])
    assert program == "pressmark"
    assert call(*arguments).exit_code == 0
    assert stores.open(tmp_path / "STORE").layout == layout(name)


def test_the_report(call: Call, ids: Path, tmp_path: Path) -> None:
    """The report contains the same numbers and replaces an existing file."""
    (tmp_path / "report.html").write_text("old")
    result = call("compare", "ids.txt", *LAYOUTS, "--report", "report.html", "--json")
    assert result.exit_code == 1
    assert result.stderr == "pressmark: report.html: report written\n"
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    data = json.loads(text.rpartition('id="data">')[2].partition("</script>")[0])
    layouts, summary = records(result.stdout)
    assert data["layouts"] == layouts
    assert {**data, "verdict": summary["verdict"]} == {**summary, "layouts": layouts}
    assert sorted(one.name for one in tmp_path.iterdir()) == ["ids.txt", "report.html"]


def test_parameters_reach_the_comparison(
    call: Call, ids: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def probe_tree(folder: Path, paths: list[str]) -> Probe:
        # The real function may drop the caches of the whole machine.
        return Probe(str(folder), objects=len(paths), walk_cold=ProbeTimes(reason="caches cannot be dropped"))

    monkeypatch.setattr(comparing, "probe_tree", probe_tree)
    result = call(
        *("compare", "ids.txt", "--layout", "0004", "--files-per-object", "7", "--versions", "3", "--json"),
        *(
            "--profile",
            "windows",
            "--root",
            "/" + "r" * 299 + "/",
            "--probe",
            ".",
            "--temporary",
            ".",
            "--threads",
            "1",
        ),
    )
    [one], summary = records(result.stdout)
    assert (one["costs"]["files_per_object"], one["costs"]["versions"]) == (7, 3)
    assert list(one["refused"]) == ["windows"]
    # Every path is too long below a root of 300 bytes.
    assert one["refused"]["windows"]["count"] == 5
    assert (summary["profile"], summary["threads"]) == ("windows", 1)
    assert (one["probe"]["objects"], one["probe"]["folder"]) == (5, ".")
    assert [one.name for one in tmp_path.iterdir()] == ["ids.txt"]


def test_a_probe_as_a_table(call: Call, ids: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table shows times, or the reason why there are none."""
    times = ProbeTimes(0.5, 12.5)
    probe = Probe("here", "ext4", 5, 20, create=times, walk_cold=ProbeTimes(reason="caches cannot be dropped"))
    monkeypatch.setattr(comparing, "probe_tree", lambda folder, paths: probe)
    result = call("compare", "ids.txt", "--layout", "0004", "--probe", ".")
    assert result.exit_code == 0
    assert "Microseconds per directory, in here (ext4)" in result.stdout
    assert "12.5" in result.stdout
    assert result.stdout.rstrip().endswith("caches cannot be dropped")


def test_the_same_layout_twice(call: Call, ids: Path) -> None:
    """Each row has a distinct name."""
    layouts, _ = records(call("compare", "ids.txt", "--layout", "0004", "--layout", "0004", "--json").stdout)
    assert len({one["name"] for one in layouts}) == 2


def test_identifiers_that_are_all_equal(call: Call, tmp_path: Path) -> None:
    (tmp_path / "ids.txt").write_text("same\n" * 1000)
    result = call("compare", "ids.txt", "--layout", "0004", "--json")
    [one], summary = records(result.stdout)
    assert result.exit_code == 0
    assert (one["collisions"]["equal"], summary["duplicates"], summary["ok"]) == (0, 1000, True)
    assert summary["verdict"]["groups"][0]["statements"][0]["rule"] == "duplicates"


def test_identifiers_without_a_path(call: Call, tmp_path: Path) -> None:
    (tmp_path / "ids.txt").write_bytes(b"..\n\n\xff\xfe\na\n")
    result = call("compare", "ids.txt", "--layout", "0002")
    assert result.exit_code == 1
    assert "not mapped" in result.stdout
    assert "'..'" in result.stdout


def test_hostile_identifiers_on_a_terminal(call: Call, tmp_path: Path) -> None:
    """Unprintable characters are escaped, and markup is plain text."""
    (tmp_path / "ids.txt").write_bytes("a:[bold]\x1b[31m\u202e\nb:[bold]\x1b[31m\u202e\n".encode())
    result = call("compare", "ids.txt", "--layout", "0012:delimiters=:")
    assert "'a:[bold]\\x1b[31m\\u202e'" in result.stdout
    assert all(one.isprintable() or one == "\n" for one in result.stdout)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("ids.txt", "--layout", "0099"), "--layout '0099': unknown layout '0099'; known layouts: pairtree"),
        (("ids.txt", "--layout", "0003:tupleSize=40"), "--layout '0003:tupleSize=40': tupleSize: 40 is not an integer"),
        (("ids.txt", "--layout", "0006"), "--layout '0006': delimiter: required by"),
        (("nowhere.txt", "--layout", "0004"), "nowhere.txt: No such file or directory"),
        (("empty.txt", "--layout", "0004"), "empty.txt: no identifiers"),
        (("empty.csv", "--column", "id", "--layout", "0004"), "empty.csv: empty file; no header row"),
        (("ids.csv", "--layout", "0004"), "ids.csv: CSV needs --column"),
        (
            ("excel.csv", "--column", "id", "--layout", "0004"),
            "excel.csv: first line 'sep=;' is a setting of Excel; remove it, and specify the separator (--delimiter)",
        ),
        (("ids.csv", "--column", "no", "--layout", "0004"), "ids.csv: column 'no' not found; columns: id"),
        (("plain", "."), "only one FILE; to compare two stores: pressmark store compare plain ."),
        (("ids.csv", "--column", "id", "-0", "--layout", "0004"), "-0 cannot be combined with --column"),
        ((".", "--column", "1", "--layout", "0004"), ".: a directory is opened as a store"),
        (("plain", "--layout", "0004"), "'plain': "),
        (("ids.txt", "--layout", "0004", "--probe", "nowhere"), "--probe nowhere: directory not found"),
        (("ids.txt", "--layout", "0004", "--temporary", "nowhere"), "--temporary nowhere: directory not found"),
        (("ids.txt", "--layout", "0004", "--directory-limit", "0"), "invalid value for '--directory-limit'"),
    ],
)
def test_usage_errors(call: Call, tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    (tmp_path / "ids.txt").write_text("a\n")
    (tmp_path / "ids.csv").write_text("id\na\n")
    (tmp_path / "excel.csv").write_text("sep=;\r\nid;n\r\na;1\r\n")
    (tmp_path / "empty.txt").touch()
    (tmp_path / "empty.csv").touch()
    (tmp_path / "plain").mkdir()
    result = call("compare", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"pressmark: {message}")
    assert result.stderr.count("\n") == 1


@needs_report
@pytest.mark.parametrize(
    ("report", "message"),
    [
        ("nowhere/report.html", "'nowhere/report.html': parent directory not found; create it or choose another file"),
        ("folder", "'folder': is a directory; choose a file name"),
        ("report.pdf", "'report.pdf': a report is HTML; choose a name that ends in .html"),
        ("ids.txt", "'ids.txt': input and report are the same file; choose another report"),
    ],
)
def test_a_report_that_cannot_be_written(call: Call, ids: Path, tmp_path: Path, report: str, message: str) -> None:
    """The report is checked before the comparison."""
    (tmp_path / "folder").mkdir()
    result = call("compare", "ids.txt", "--layout", "0004", "--report", report)
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", f"pressmark: {message}\n")
    assert ids.read_text().splitlines() == IDS


@needs_report
@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="nothing is read-only to this user")
def test_a_read_only_folder(call: Call, ids: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir(mode=0o555)
    result = call("compare", "ids.txt", "--layout", "0004", "--report", "folder/report.html")
    assert result.exit_code == 2
    assert result.stderr == (
        "pressmark: 'folder/report.html': cannot be written (Permission denied); choose another file\n"
    )


def test_a_missing_package(call: Call, ids: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages.importlib.util, "find_spec", lambda name: None)
    result = call("compare", "ids.txt", "--layout", "0004", "--report", "report.html")
    assert (result.exit_code, result.stdout) == (2, "")
    assert (
        result.stderr
        == "pressmark: 'report.html': matplotlib is not installed; run: pip install \"pressmark[report]\"\n"
    )


def test_a_malformed_row(call: Call, tmp_path: Path) -> None:
    """A malformed row ends the run."""
    (tmp_path / "table.csv").write_text("id,n\na,1\nb\n")
    result = call("compare", "table.csv", "--column", "id", "--layout", "0004")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "pressmark: table.csv:3: 'b': row has 1 field; the first row has 2\n"


def test_examples_of_one_reason_are_one_row(call: Call, tmp_path: Path) -> None:
    """Identifiers with the same reason are counted, not listed; another reason is shown as well."""
    (tmp_path / "ids.txt").write_text("mdp:0\ncon\n" + "".join(f"mdp:{number}\n" for number in range(1, 30)))
    text = call("compare", "ids.txt", "--layout", "0002", "--profile", "windows").stdout
    examples = text.partition("Examples")[2]
    assert len(re.findall("not allowed: Windows", examples)) == 1
    assert "31" in examples
    assert "'mdp:0', 'con'" in examples
    assert examples.count("segment") == 2
    # Nested objects that a Pairtree allows are one row, too; collisions are listed.
    (tmp_path / "ids.txt").write_text("abcd\nabcdx\nefgh\nefghx\nefghxy\n")
    text = call("compare", "ids.txt", "--layout", "pairtree").stdout
    assert re.findall(r"^pairtree  nested  (\d)  ", text, re.MULTILINE) == ["5"]


def test_names_of_layouts_are_not_broken(call: Call, ids: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long names stay in one piece, in sentences and above the columns of tables, where a line ends after a comma."""
    monkeypatch.setattr(shutil, "get_terminal_size", lambda: os.terminal_size((50, 20)))
    monkeypatch.setattr(click.testing._NamedTextIOWrapper, "isatty", lambda self: True)
    names = ["0003-hash-and-id-n-tuple-storage-layout:tupleSize=2", "0004-hashed-n-tuple-storage-layout"]
    text = call("compare", "ids.txt", "--layout", names[0], "--layout", names[1]).stdout
    words = {word.rstrip(":") for word in text.split()}
    assert set(names) <= words
    assert not {word for word in words if word.endswith("-") and word != "-"}


def test_wide_heads_are_folded() -> None:
    """A table that is wider than a file has its heads on several lines, and then its rows and columns exchanged."""
    table = Table("T", ["name", *["a rather long head of a column"] * 5])
    table.add("one", *"12345")
    lines = tables_text(table).splitlines()
    assert max(map(len, lines)) <= 120
    assert [line.split() for line in lines if "one" in line] == [["one", *"12345"]]
    wide = Table("T", ["name", *["0123456789"] * 12])
    wide.add("one", *["1"] * 12)
    lines = tables_text(wide).splitlines()
    assert max(map(len, lines)) <= 120
    assert sum(line.split() == ["0123456789", "1"] for line in lines) == 12


@pytest.mark.parametrize("columns", [60, 18, 14])
def test_tables_on_narrow_terminals(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    """A wide table is transposed, or printed row by row; numbers are never wrapped."""

    class Terminal(io.StringIO):
        encoding = "utf-8"

        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setattr(shutil, "get_terminal_size", lambda: os.terminal_size((columns, 20)))
    monkeypatch.setenv("TERM", "xterm")
    table = Table("T", ["name", "one", "two", "three"])
    table.add("a", "1.1", "1.2", "1.3")
    table.add("b", "2.1", "2.2", "2.3")
    text = re.sub(r"\x1b\[[0-9;]*m", "", tables_text(table))
    for number in ("1.1", "1.2", "1.3", "2.1", "2.2", "2.3"):
        assert number in text
    assert all(len(line) <= columns for line in text.splitlines())
    assert ("one: 1.1" in text) == (columns == 14)
    assert bool(re.search(r"^ +a +b *$", text, re.MULTILINE)) == (columns == 18)


def test_process(run: Run, tmp_path: Path) -> None:
    """A short run shows no progress."""
    (tmp_path / "ids.txt").write_text("".join(f"a:{number}\n" for number in range(1000)))
    done = run("compare", "ids.txt", "--layout", "0004", "--progress")
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"This layout is safe." in done.stdout


def test_one_bad_line(call: Call, tmp_path: Path) -> None:
    """A bad line is named, and the rest is recommended for."""
    (tmp_path / "ids.txt").write_bytes(b"".join(b"mdp.%d\n" % number for number in range(200)) + b"\nmdp.1\nmdp.2\n")
    result = call("compare", "ids.txt")
    assert result.exit_code == 1
    lines = " ".join(result.stdout.split())
    assert lines.startswith("Recommended for an OCFL storage root: 0003 All but 1 identifier has a unique path,")
    assert (
        " All layouts are safe for all but 1 identifier. In the list of identifiers: - 2 identifiers occur more than"
        " once in the input, 4 times in total; each counts once. - 1 identifier in the input is empty, item 201; leave"
        " it out. "
    ) in lines
    assert "pressmark store init ocfl STORE --layout 0003" in lines
    layouts, summary = records(call("compare", "ids.txt", "--json").stdout)
    assert {(one["mapped"], one["unmapped"]["count"]) for one in layouts} == {(200, 1)}
    assert (summary["identifiers"], summary["distinct"], summary["blank"]) == (203, 201, 1)
    assert summary["verdict"]["recommendations"][0]["layout"] == "0003"


def test_doubtful_identifiers(call: Call, tmp_path: Path) -> None:
    """Each kind has a sentence, and none changes the exit status."""
    (tmp_path / "ids.txt").write_bytes("sep=;\n10.1000/A\ndoi:10.1000/a\n a\na\u200bb\n".encode())
    result = call("compare", "ids.txt", "--layout", "pairtree", "--json")
    _, summary = records(result.stdout)
    assert result.exit_code == 0
    assert [one["kind"] for one in summary["remarks"]] == ["setting", "ends", "invisible", "spelling"]
    assert summary["verdict"]["word"] == "Safe, but see the remarks"


def test_objects_without_a_readable_identifier(call: Call, tmp_path: Path) -> None:
    """They are counted and skipped."""
    (tmp_path / "file").write_text("content")
    store = stores.create("ocfl", tmp_path / "store", layout=layout("0003"))
    for identifier in ("a", "b"):
        store.put(identifier, tmp_path / "file")
    [inventory, *_] = sorted((tmp_path / "store").glob("*/*/*/*/inventory.json"))
    inventory.write_text("{")
    result = call("compare", "store", "--layout", "0004", "--json")
    _, summary = records(result.stdout)
    assert (result.exit_code, summary["identifiers"], summary["unreadable"]) == (1, 1, 1)
    assert (
        result.stderr == 'pressmark: store: 1 object skipped, identifier cannot be read; run "pressmark store check"\n'
    )


def test_a_closed_pipe(call: Call, ids: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The exit status is that of the comparison."""
    from pressmark.cli.common.files import OutputStream

    def write(self: OutputStream, data: bytes) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(OutputStream, "write", write)
    monkeypatch.setattr("pressmark.cli.common.output.discard_stdout", lambda: None)
    for layouts, status in (((), 0), (LAYOUTS, 1)):
        result = call("compare", "ids.txt", *layouts)
        assert (result.exit_code, result.stdout, result.stderr) == (status, "", "")
