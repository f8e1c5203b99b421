"""``--column`` on CSV and TSV: results, other columns, and failures."""

from __future__ import annotations

import gzip
import os
import subprocess
from pathlib import Path

import pytest
from click.testing import Result

from pressmark.fs import gzipped
from pressmark.layouts import FlatDirect, Pairtree
from pressmark.tabular import delimited, text

from .conftest import COMMAND, Call, Run, environment, feed_endlessly

pytestmark = pytest.mark.usefixtures("implementation")

needs_dev_full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")


def outcome(result: Result) -> tuple[bytes, str, int]:
    return result.stdout_bytes, result.stderr, result.exit_code


# --- output -------------------------------------------------------------------------------------------------------


def test_hathifiles(call: Call, tmp_path: Path) -> None:
    """TSV without header row, gzipped, under a name that says .txt.gz."""
    rows = [b'mdp.39015013764785\tallow\tpd\t\xe2\x80\x9cq\xe2\x80\x9d "q"', b"uc1.$b1\tdeny\tic\t"]
    (tmp_path / "hathi_full.txt.gz").write_bytes(gzip.compress(b"\n".join(rows) + b"\n"))
    paths = [Pairtree().map_id(row.partition(b"\t")[0]).encode() for row in rows]
    expected = b"".join(b"%b\t%b\n" % pair for pair in zip(rows, paths, strict=True))
    result = call("map", "pairtree", "hathi_full.txt.gz", "--format", "tsv", "--column", "1", "--no-header")
    assert outcome(result) == (expected, "", 0)


@pytest.mark.parametrize("kind", ["csv", "tsv"])
def test_unmap_turns_map_back(call: Call, tmp_path: Path, kind: str) -> None:
    """unmap reads the column that map added; its result is named "identifier"."""
    separator = "," if kind == "csv" else "\t"
    (tmp_path / f"ids.{kind}").write_text("id\na:1\nb c\n")
    assert call("map", "pairtree", f"ids.{kind}", "--column", "id", "-o", f"paths.{kind}").exit_code == 0
    rows = call("unmap", "pairtree", f"paths.{kind}", "--column", "path").stdout.splitlines()
    assert [row.split(separator) for row in rows] == [
        ["id", "path", "identifier"],
        ["a:1", "a+/1", "a:1"],
        ["b c", "b^/20/c", "b c"],
    ]


@pytest.mark.parametrize("layout", ["0002", "0003", "vitro"])
def test_other_layouts_and_threads(call: Call, layout: str) -> None:
    """A column gives the same results as lines, under every layout and number of threads."""
    ids = b"".join(b"item-%d\n" % number for number in range(3000))
    lines = call("map", layout, stdin=ids).stdout_bytes.splitlines()
    for threads in ("1", "3"):
        result = call("map", layout, "--format", "tsv", "--column", "1", "--no-header", "--threads", threads, stdin=ids)
        assert [row.partition(b"\t")[2] for row in result.stdout_bytes.splitlines()] == lines


# --- rows that fail -----------------------------------------------------------------------------------------------

TABLE = b'id,t\nabc,"1\n2"\n,x\nd,y\n\xff,z\n'
EMPTY = "pressmark: <stdin>:4: '': identifier is empty\n"
NOT_UTF8 = "pressmark: <stdin>:6: '\\xff': byte 0xff at offset 0 is not UTF-8; this layout requires UTF-8\n"
SUMMARY = "pressmark: 2 of 4 identifiers failed\n"


@pytest.mark.parametrize(
    ("on_error", "expected", "message"),
    [
        ("stop", b'id,t,path\nabc,"1\n2",abc\n', EMPTY),
        ("skip", b'id,t,path\nabc,"1\n2",abc\nd,y,d\n', EMPTY + NOT_UTF8 + SUMMARY),
        ("empty", b'id,t,path\nabc,"1\n2",abc\n,x,\nd,y,d\n\xff,z,\n', EMPTY + NOT_UTF8 + SUMMARY),
    ],
)
def test_on_error(call: Call, on_error: str, expected: bytes, message: str) -> None:
    """A failing row is named by its first line; the other rows are written unless the run stops."""
    result = call("map", "0003", "--format", "csv", "--column", "id", "--on-error", on_error, stdin=TABLE)
    written = result.stdout_bytes
    for identifier in (b"abc", b"d"):
        path = call("map", "0003", stdin=identifier).stdout_bytes
        written = written.replace(path, identifier)
    assert (written, result.stderr, result.exit_code) == (expected, message, 1)


@pytest.mark.parametrize(
    ("kind", "table", "line"),
    [
        ("csv", b"a,b\nc\nd,e\n", "2: 'c': row has 1 field; the first row has 2"),
        ("csv", b"a,b\nc,d,e\nd,e\n", "2: 'c,d,e': row has 3 fields; the first row has 2"),
        ("csv", b"a,b\n\nd,e\n", "2: '': row has 1 field; the first row has 2"),
        ("csv", b'a,b\n"c"d,e\nd,e\n', "2: '\"c\"d,e': text after the closing quote of the field"),
        ("csv", b'a,"b\n"\n"c",d,e\nd,e\n', "3: '\"c\",d,e': row has 3 fields; the first row has 2"),
        ("tsv", b"a\tb\nc\nd\te\n", "2: 'c': row has 1 field; the first row has 2"),
        ("tsv", b"a\tb\n\t\nd\te\n", "2: '': path is empty"),
    ],
)
def test_malformed_rows(call: Call, kind: str, table: bytes, line: str) -> None:
    """A malformed row fails, is skipped, or keeps its bytes."""
    call_ = ["map", "0002", "--format", kind, "--column", "1", "--no-header"]
    stopped, skipped, emptied = (call(*call_, "--on-error", one, stdin=table) for one in ("stop", "skip", "empty"))
    separator = b"," if kind == "csv" else b"\t"
    row = table.split(b"\n")[int(line[0]) - 1]
    assert stopped.stderr == f"pressmark: <stdin>:{line}\n"
    assert skipped.stderr == emptied.stderr == stopped.stderr + "pressmark: 1 of 3 identifiers failed\n"
    assert skipped.stdout_bytes.endswith(b"d" + separator + b"e" + separator + b"d\n")
    assert skipped.stdout_bytes.count(b"\n") == table.count(b"\n") - 1
    assert row + separator + b"\n" in emptied.stdout_bytes
    assert {stopped.exit_code, skipped.exit_code, emptied.exit_code} == {1}


def test_a_skipped_last_row(call: Call) -> None:
    """The row before it keeps its line feed."""
    result = call(
        "map", "0002", "--format", "tsv", "--column", "1", "--no-header", "--on-error", "skip", stdin=b"a\tb\n\tc"
    )
    assert result.stdout_bytes == b"a\tb\ta\n"


def test_results_not_allowed_in_tsv(call: Call) -> None:
    """An identifier with a TAB, line feed or carriage return fails in TSV, and is quoted in CSV."""
    table = b"a^/09b\na^/0a/b\na^/0d/b\nabc\nab/c\n"
    options = ["--column", "1", "--no-header", "--on-error", "empty"]
    result = call("unmap", "pairtree", "--format", "tsv", *options, stdin=table.replace(b"^/09b", b"^/09/b"))
    assert result.stdout_bytes == b"a^/09/b\t\na^/0a/b\t\na^/0d/b\t\nabc\t\nab/c\tabc\n"
    reason = "result contains a TAB or a line break, which TSV does not allow"
    assert [reason in line for line in result.stderr.splitlines()] == [True, True, True, False, False]
    result = call("unmap", "pairtree", "--format", "csv", *options, stdin=b"a^/0a/b\na^/00/b\na^/0d/b\n")
    assert outcome(result) == (b'a^/0a/b,"a\nb"\na^/00/b,a\0b\na^/0d/b,"a\rb"\n', "", 0)


def test_fields_with_line_feeds_and_nul(call: Call) -> None:
    """A block of items that contain every possible separator is mapped correctly."""
    result = call(
        "map",
        "pairtree",
        "--format",
        "csv",
        "--column",
        "1",
        "--no-header",
        "--on-error",
        "skip",
        stdin=b'"a\nb"\nc\0\n""\n',
    )
    assert result.stdout_bytes == b'"a\nb",a^/0a/b\nc\0,c^/00\n'
    assert result.stderr.startswith("pressmark: <stdin>:4: '': identifier is empty\n")


def test_many_failures_are_in_order(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Line numbers are counted across blocks, and in blocks of many rows."""
    monkeypatch.setattr(text, "BLOCK_ROWS", 7)
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 100)
    table = b"id,t\n" + b'a,"\n"\n,\n' * 200
    result = call("map", "0002", "--format", "csv", "--column", "id", "--on-error", "skip", stdin=table)
    lines = [f"pressmark: <stdin>:{line}: '': path is empty" for line in range(4, 602, 3)]
    assert result.stderr.splitlines() == [*lines, "pressmark: 200 of 400 identifiers failed"]
    assert result.stdout_bytes == b"id,t,path\n" + b'a,"\n",a\n' * 200


# --- unusable files -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "table", "line", "code"),
    [
        (["--format", "csv", "--column", "x"], b"id,t\na,b\n", "column 'x' not found; columns: id, t", 2),
        (["--format", "csv", "--column", "3", "--header"], b"id,t\na,b\n", "column 3 not found; columns: id, t", 2),
        (
            ["--format", "csv", "--column", "3", "--no-header"],
            b"id,t\na,b\n",
            "column 3 not found; the first row has 2",
            2,
        ),
        (
            ["--format", "csv", "--column", "id"],
            b"id,id\na,b\n",
            "column 'id' is not unique; use its number",
            2,
        ),
        (
            ["--format", "csv", "--column", "id"],
            b"id,path\na,b\n",
            "column 'path' already exists; choose another name (--as)",
            2,
        ),
        (["--format", "csv", "--column", "id"], b"", "empty file; no header row", 2),
        (
            ["--format", "tsv", "--column", "id"],
            "id".encode("utf-16"),
            "content is UTF-16; convert it to UTF-8 (iconv -f UTF-16 -t UTF-8)",
            2,
        ),
        (
            ["--format", "tsv", "--column", "id"],
            gzip.compress(b"id\na\n", mtime=0),
            "content is gzip data; rename it to end in .gz, or decompress it (gunzip -c)",
            2,
        ),
    ],
)
def test_unusable_tables(call: Call, tmp_path: Path, options: list[str], table: bytes, line: str, code: int) -> None:
    """An unusable table is a one-line error, and no output is left."""
    result = call("map", "0002", *options, "-o", "out", stdin=table)
    assert outcome(result) == (b"", f"pressmark: <stdin>: {line}\n", code)
    assert os.listdir(tmp_path) == []


def test_long_lists_of_columns_are_cut(call: Call) -> None:
    """The error lists at most twenty column names."""
    table = b",".join(b"c%d" % number for number in range(100)) + b"\n"
    message = call("map", "0002", "--format", "csv", "--column", "x", stdin=table).stderr
    assert message.endswith("c18, c19 … (100 in all)\n")


@pytest.mark.parametrize("on_error", ["stop", "skip", "empty"])
def test_a_quote_that_is_never_closed(call: Call, tmp_path: Path, on_error: str) -> None:
    """An unclosed quote would extend over the rest of the file: the run ends."""
    table = b'id,t\na,b\nc,"d\n' + b"e,f\n" * 10
    options = ["--format", "csv", "--column", "id", "--on-error", on_error]
    result = call("map", "0002", *options, "-o", "out", stdin=table)
    assert result.stderr == "pressmark: <stdin>:3: quote is never closed\n"
    assert (result.exit_code, os.listdir(tmp_path)) == (1, [])


@pytest.mark.parametrize("start", [b"", b'"'])
def test_a_row_without_end(call: Call, monkeypatch: pytest.MonkeyPatch, start: bytes) -> None:
    """An endless row does not fill the memory."""
    monkeypatch.setattr(delimited, "ROW_BYTES", 1 << 20)
    result = call(
        "map",
        "0002",
        "--format",
        "csv",
        "--column",
        "1",
        "--no-header",
        stdin=b"a\n" + start + b"x\n" * (start != b"") + b"x" * (3 << 20),
    )
    assert (result.stdout_bytes, result.exit_code) == (b"a,a\n", 1)
    assert result.stderr == "pressmark: <stdin>:2: row is longer than 1 MiB\n"


def test_a_long_field(call: Call) -> None:
    """A row of several blocks is copied."""
    field = b'"' + b"x\n" * (2 << 20) + b'"'
    result = call("map", "0002", "--format", "csv", "--column", "1", "--no-header", stdin=b"a," + field + b"\nb,c\n")
    assert result.stdout_bytes == b"a," + field + b",a\nb,c,b\n"


# --- usage errors -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("on_error", ["skip", "empty"])
def test_malformed_lines_of_json_are_left_out(call: Call, on_error: str) -> None:
    """A line that is not an object cannot have a result; it is named and counted, and the others are mapped."""
    lines = b'{"id": "a"}\n{"id":\n[1]\n{"x": 1}\n{"id": "b"}\n'
    result = call("map", "0002", "--format", "jsonl", "--column", "id", "--on-error", on_error, stdin=lines)
    without = b'{"x": 1, "path": null}\n' if on_error == "empty" else b""
    assert result.stdout_bytes == b'{"id": "a", "path": "a"}\n' + without + b'{"id": "b", "path": "b"}\n'
    assert [line.split(":")[2] for line in result.stderr.splitlines()[:-1]] == ["2", "3", "4"]
    assert result.stderr.endswith("3 of 5 identifiers failed\n")
    assert result.exit_code == 1


NAMES = {"csv": "CSV", "tsv": "TSV", "jsonl": "JSON lines", "pq": "Parquet", "txt": "lines"}


@pytest.mark.parametrize(
    ("call_", "line"),
    [
        (
            ["--column", "id"],
            "<stdin>: unknown table format; choose csv, tsv, jsonl or parquet (--format)",
        ),
        (
            ["t.dat", "--column", "id"],
            "t.dat: unknown table format; choose csv, tsv, jsonl or parquet (--format)",
        ),
        (
            ["t.txt", "--column", "1", "--no-header"],
            "t.txt: lines have no columns; choose csv, tsv, jsonl or parquet (--format)",
        ),
        (
            ["t.csv", "--format", "lines", "--column", "1", "--no-header"],
            "t.csv: lines have no columns; choose csv, tsv, jsonl or parquet (--format)",
        ),
        (["t.csv"], "t.csv: CSV needs --column; use --format lines for a list"),
        (["t.TSV.GZ"], "t.TSV.GZ: TSV needs --column; use --format lines for a list"),
        (["t.pq"], "t.pq: Parquet needs --column; use --format lines for a list"),
        (["--format", "csv"], "<stdin>: CSV needs --column; use --format lines for a list"),
        (["-o", "o.parquet"], "o.parquet: Parquet output needs --column"),
        (["--as", "x"], "--as needs --column"),
        (["--no-header"], "--no-header needs --column"),
        (["t.csv", "--column", "id", "-0"], "-0 cannot be combined with --column"),
        (
            ["t.csv", "--column", "id", "--both"],
            "--both cannot be combined with --column",
        ),
        (["t.csv", "--column", "0", "--no-header"], "--column 0: columns are numbered from 1"),
        (
            ["t.csv", "--column", "id", "--no-header"],
            "column 'id': columns have no names without a header row; use a number",
        ),
        (
            ["t.csv", "--column", "1", "--no-header", "--as", "x"],
            "--as: the new column has no name without a header row; use --header if there is one",
        ),
        (["t.csv", "--column", "id", "--as", ""], "name of the new column is empty"),
        (["t.tsv", "--column", "id", "--as", "a\tb"], "name of the new column 'a\\tb': not allowed in a TSV field"),
        (
            ["t.pq", "--column", "id", "--as", "\udcff", "-o", "o.pq"],
            "name of the new column '\\xff': must be UTF-8 in Parquet",
        ),
        (
            ["t.pq", "--column", "id", "--header", "-o", "o.pq"],
            "--header applies to CSV and TSV only",
        ),
        (
            ["t.pq", "--column", "id"],
            "Parquet cannot be written to standard output; use -o OUTPUT",
        ),
        *(
            (
                [f"t.{source}", "--column", "id", "-o", f"o.{target}"],
                f"o.{target}: {NAMES[source]} cannot be written as {NAMES[target]}; convert the table with DuckDB or"
                " pyarrow",
            )
            for source in ("csv", "tsv", "jsonl", "pq")
            for target in ("csv", "tsv", "jsonl", "pq", *(["txt"] if source == "pq" else []))
            if source != target
        ),
        (["t.pq", "--column", "id", "-o", "o.pq.gz"], "o.pq.gz: Parquet output cannot be gzipped; omit .gz"),
        (["t.pq.gz", "--column", "id", "-o", "o.pq"], "t.pq.gz: gzipped Parquet is not supported; decompress it first"),
        (["missing.csv", "--column", "id"], "missing.csv: No such file or directory"),
    ],
)
def test_usage_errors(call: Call, tmp_path: Path, call_: list[str], line: str) -> None:
    """Conflicting options are one line and exit status 2, before any file is opened."""
    result = call("map", "0002", *call_, stdin=b"id\na\n")
    assert outcome(result) == (b"", f"pressmark: {line}\n", 2)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (None, b"id,t,path\na,x,a\n"),
        ("-", b"id,t,path\na,x,a\n"),
        ("o.csv", b"id,t,path\na,x,a\n"),
        ("o", b"id,t,path\na,x,a\n"),
        ("o.txt", b"id,t,path\na,x,a\n"),
        ("o.csv.gz", b"id,t,path\na,x,a\n"),
        ("o.CSV.GZ", b"id,t,path\na,x,a\n"),
    ],
)
def test_kinds_of_output(call: Call, tmp_path: Path, output: str | None, expected: bytes) -> None:
    """OUTPUT has the format of FILE; .gz compresses it."""
    (tmp_path / "t.csv").write_bytes(b"id,t\na,x\n")
    result = call("map", "0002", "t.csv", "--column", "id", *([] if output is None else ["-o", output]))
    written = result.stdout_bytes if output in (None, "-") else (tmp_path / str(output)).read_bytes()
    assert (gzip.decompress(written) if output and output.lower().endswith(".gz") else written) == expected
    assert (result.stderr, result.exit_code) == ("", 0)


# --- gzip ---------------------------------------------------------------------------------------------------------


def test_gzipped_lines(call: Call, tmp_path: Path) -> None:
    """Lines are decompressed and compressed; the compressed output depends only on the data."""
    (tmp_path / "ids.txt.gz").write_bytes(gzip.compress(b"abc\nd", mtime=0))
    assert call("map", "pairtree", "ids.txt.gz").stdout_bytes == b"ab/c\nd"
    for name in ("one.gz", "two.gz"):
        assert call("map", "pairtree", "ids.txt.gz", "-o", name).exit_code == 0
    assert gzip.decompress((tmp_path / "one.gz").read_bytes()) == b"ab/c\nd"
    assert (tmp_path / "one.gz").read_bytes() == (tmp_path / "two.gz").read_bytes()


@pytest.mark.parametrize("size", [1, 5, 1 << 18])
@pytest.mark.parametrize("padding", [b"", b"\0", b"\0" * 1000])
def test_gzip_in_several_members(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, padding: bytes
) -> None:
    """Several gzip members, also empty ones, may follow each other, and zeros may follow all of them."""
    monkeypatch.setattr(gzipped, "READ_BYTES", size)
    members = [b"abc\t1\nd", b"", b"\t2\n" + b"e\t3\n" * 100]
    (tmp_path / "t.tsv.gz").write_bytes(b"".join(map(gzip.compress, members)) + padding)
    expected = b"abc\t1\tabc\nd\t2\td\n" + b"e\t3\te\n" * 100
    assert outcome(call("map", "0002", "t.tsv.gz", "--column", "1", "--no-header")) == (expected, "", 0)


PACKED = gzip.compress(os.urandom(3000).replace(b"\n", b"") + b"\n")


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"", "not a gzip file: empty"),
        (b"id\na\n", "not a gzip file: "),
        (PACKED[:5], "broken gzip data: unexpected end"),
        (PACKED[:2000], "broken gzip data: unexpected end"),
        (PACKED[:-1], "broken gzip data: unexpected end"),
        (PACKED[:-8] + b"12345678", "broken gzip data: "),
        (PACKED + b"garbage", "broken gzip data: "),
    ],
    ids=["empty", "none", "head", "half", "all but a byte", "checksum", "garbage behind"],
)
def test_broken_gzip(call: Call, tmp_path: Path, content: bytes, line: str) -> None:
    """Damaged gzip input is a one-line error, without output."""
    (tmp_path / "t.tsv.gz").write_bytes(content)
    result = call("map", "0002", "t.tsv.gz", "--column", "1", "--no-header", "-o", "out.tsv")
    assert result.stderr.startswith(f"pressmark: t.tsv.gz: {line}")
    assert (result.stderr.count("\n"), result.exit_code, os.listdir(tmp_path)) == (1, 1, ["t.tsv.gz"])


# --- processes ----------------------------------------------------------------------------------------------------


@needs_dev_full
@pytest.mark.parametrize("name", ["in.csv", "in.tsv.gz"])
def test_a_full_disk(run: Run, tmp_path: Path, name: str) -> None:
    """A full disk is a one-line error."""
    table = b"id\na\n"
    (tmp_path / name).write_bytes(gzip.compress(table, mtime=0) if name.endswith(".gz") else table)
    done = run("map", "0002", name, "--column", "id", "-o", "/dev/full")
    assert (done.stderr, done.returncode) == (b"pressmark: /dev/full: No space left on device\n", 1)


@needs_dev_full
def test_a_full_disk_behind_gzip(run: Run, tmp_path: Path) -> None:
    """The gzip trailer can fail on a full disk, too."""
    (tmp_path / "full.gz").symlink_to("/dev/full")
    done = run("map", "0002", "--format", "csv", "--column", "id", "-o", "full.gz", stdin=b"id\na\n")
    assert (done.stderr, done.returncode) == (b"pressmark: full.gz: No space left on device\n", 1)


def test_output_is_put_in_place_when_complete(run: Run, tmp_path: Path) -> None:
    """After a stop, OUTPUT is unchanged."""
    (tmp_path / "t.csv").write_bytes(b"id\na\n\nc\n")
    (tmp_path / "o.csv.gz").write_bytes(b"as before")
    assert run("map", "0002", "t.csv", "--column", "id", "-o", "o.csv.gz").returncode == 1
    assert (tmp_path / "o.csv.gz").read_bytes() == b"as before"
    assert run("map", "0002", "t.csv", "--column", "id", "-o", "o.csv.gz", "--on-error", "skip").returncode == 1
    assert gzip.decompress((tmp_path / "o.csv.gz").read_bytes()) == b"id,path\na,a\nc,c\n"
    assert sorted(os.listdir(tmp_path)) == ["o.csv.gz", "t.csv"]


def test_an_endless_table_in_constant_memory() -> None:
    """An endless table is processed in constant memory until the reader leaves."""
    line = feed_endlessly(
        ["map", "pairtree", "--format", "csv", "--column", "2", "--no-header"], b'"a, b",abc\n' * 4096
    )
    assert line == b'"a, b",abc,ab/c\n'


def test_a_row_is_written_at_once() -> None:
    """A row of a slow writer is processed before the next one arrives."""
    process = subprocess.Popen(
        [*COMMAND, "map", "pairtree", "--format", "tsv", "--column", "id"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(),
    )
    assert process.stdin
    assert process.stdout
    process.stdin.write(b"id\tt\nabc\tx\n")
    process.stdin.flush()
    assert [process.stdout.readline(), process.stdout.readline()] == [b"id\tt\tpath\n", b"abc\tx\tab/c\n"]
    process.stdin.close()
    assert process.wait(timeout=60) == 0
    process.stdout.close()


def test_columns_and_items_agree(call: Call) -> None:
    """A column gives the same results as the library."""
    ids = ["a:1", "ü", "x y", "..", "/a", "a//b"]
    table = "".join(f"{one}\n" for one in ids).encode()
    result = call("map", "0002", "--format", "tsv", "--column", "1", "--no-header", "--on-error", "empty", stdin=table)
    expected = [path or "" for path in FlatDirect().map_ids(ids, on_error="none")]
    assert [row.split("\t")[1] for row in result.stdout.split("\n")[:-1]] == expected
