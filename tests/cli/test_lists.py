"""Lists of identifiers: file formats, line ends and byte-order marks, for every command that reads one."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from pressmark import stores

from .conftest import Call


def zipped() -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("xl/workbook.xml", "<x/>")
    return archive.getvalue()


BYTES = {
    "zip": zipped(),
    "pdf": b"%PDF-1.7\n1 0 obj\n",
    "zst": b"\x28\xb5\x2f\xfd\x24\x05rest\n",
    "xz": b"\xfd7zXZ\0\0\x04",
    "bz2": b"BZh91AY&SY",
    "sqlite": b"SQLite format 3\0\x10\0",
    "ole": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1more",
    "gzip": gzip.compress(b"a\n"),
    "parquet": b"PAR1\x15\x04\x15\n",
    "UTF-16": "\ufeffabc\r\nü\r\n".encode("utf-16-le"),
    "UTF-16, big end first": "\ufeffabc\r\nü\r\n".encode("utf-16-be"),
    "UTF-16 of other letters": "\ufeff識別\n".encode("utf-16-le"),
    "gzipped twice": gzip.compress(gzip.compress(b"a\n")),
}
NAMES = ["a.xlsx", "a.ods", "a.docx", "a.PDF", "a.zip", "a.zst", "a.bz2", "a.txt.xz", "a.tar.gz", "a.sqlite", "a.json"]

Reader = Callable[..., tuple[int, str, str]]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A Pairtree with the objects ``a`` and ``b``."""
    (tmp_path / "file").write_text("x")
    store = stores.create("pairtree", tmp_path / "tree")
    for identifier in ("a", "b"):
        store.put(identifier, tmp_path / "file")
    return tmp_path / "tree"


def contents(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


COMMANDS: dict[str, list[str]] = {
    "map": ["map", "pairtree", "LIST"],
    "unmap": ["unmap", "pairtree", "LIST"],
    "map -0": ["map", "pairtree", "-0", "LIST"],
    "compare": ["compare", "LIST", "--layout", "pairtree", "--no-progress"],
    "compare -0": ["compare", "LIST", "-0", "--layout", "pairtree", "--no-progress"],
    "put": ["store", "put", "tree", "--from", "LIST"],
    "rm": ["store", "rm", "tree", "--from", "LIST"],
    "ids": ["migrate", "tree", "root", "--to", "bags", "--ids", "LIST"],
    "map file": ["migrate", "tree", "root", "--to", "bags", "--map", "LIST"],
    "map CSV": ["map", "pairtree", "--format", "csv", "--column", "id", "LIST"],
    "map JSON lines": ["map", "pairtree", "--format", "jsonl", "--column", "id", "LIST"],
}
# These read only lines.
OF_LINES = ["map", "unmap", "compare", "put", "rm", "ids"]


def given(command: str, name: str) -> list[str]:
    return [name if word == "LIST" else word for word in COMMANDS[command]]


@pytest.mark.usefixtures("tree")
@pytest.mark.parametrize("kind", BYTES)
@pytest.mark.parametrize("command", COMMANDS)
def test_foreign_bytes_are_refused(call: Call, tmp_path: Path, command: str, kind: str) -> None:
    """Another format is refused under any name, with the remedy, and nothing is written."""
    name = "list.gz" if kind == "gzipped twice" else "list"
    (tmp_path / name).write_bytes(BYTES[kind])
    before = contents(tmp_path)
    result = call(*given(command, name))
    assert (result.exit_code, result.stdout) == (2, ""), result.stderr
    assert result.stderr.count("\n") == 1
    assert f"{name}: " in result.stderr
    assert "; " in result.stderr
    assert contents(tmp_path) == before


@pytest.mark.parametrize("kind", [kind for kind in BYTES if kind != "gzipped twice"])
@pytest.mark.parametrize("arguments", [["map", "pairtree"], ["compare", "-", "--layout", "pairtree", "--no-progress"]])
def test_foreign_bytes_on_standard_input(call: Call, arguments: list[str], kind: str) -> None:
    """Standard input is checked by its first bytes."""
    result = call(*arguments, stdin=BYTES[kind])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("pressmark: <stdin>: ")


@pytest.mark.usefixtures("tree")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("command", [one for one in COMMANDS if "CSV" not in one and "JSON" not in one])
def test_foreign_names_are_refused(call: Call, tmp_path: Path, command: str, name: str) -> None:
    """Another format's extension is refused, even if the content resembles lines."""
    content = b"a\tb\n"
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    before = contents(tmp_path)
    result = call(*given(command, name))
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"{name}: " in result.stderr
    assert "; " in result.stderr
    assert contents(tmp_path) == before


def test_a_format_overrides_a_name(call: Call, tmp_path: Path) -> None:
    """A given format overrides the file name; outputs have no such option."""
    (tmp_path / "ids.zip").write_bytes(b"abc\n")
    (tmp_path / "ids.csv").write_bytes(b"a,b\n")
    assert call("map", "pairtree", "--format", "lines", "ids.zip").stdout_bytes == b"ab/c\n"
    assert call("map", "pairtree", "--format", "lines", "ids.csv").stdout_bytes == b"a^/2c/b\n"
    result = call("map", "pairtree", "-o", "paths.xlsx", stdin=b"abc\n")
    message = "paths.xlsx: unsupported output format; use .txt, "
    assert (result.exit_code, message in result.stderr) == (2, True)
    assert not (tmp_path / "paths.xlsx").exists()


GOOD = b"".join(b"id%06d\n" % number for number in range(9000))  # more than the first bytes that are checked at once
LATE = {
    "CR LF": b"a\r\nb\r\n",
    "CR": b"a\rb\rc\r",
    "joined byte-order mark": b"\xef\xbb\xbfa\nb\n",
    "UTF-16": "abcdef\n".encode("utf-16-le"),
}
OF_TABLES = {
    **{f"{name} CSV": [*COMMANDS[name][:2], "LIST.csv", "--column", "id"] for name in ("map", "unmap")},
    "map TSV": ["map", "pairtree", "LIST.tsv", "--column", "1", "--header"],
    "map to a file": ["map", "pairtree", "LIST.csv", "--column", "id", "-o", "out.csv"],
    "compare CSV": ["compare", "LIST.csv", "--column", "id", "--layout", "pairtree", "--no-progress"],
    "ids CSV": ["migrate", "tree", "root", "--to", "bags", "--ids", "LIST.csv"],
    "map file": COMMANDS["map file"],
}


@pytest.mark.usefixtures("tree")
@pytest.mark.parametrize("kind", LATE)
@pytest.mark.parametrize("command", [*OF_LINES, "map --gzip"])
def test_lists_are_checked_to_their_end(call: Call, tmp_path: Path, command: str, kind: str) -> None:
    """Bytes that lead to wrong paths are refused anywhere, in one line, and an output file is not written."""
    verb, _, how = command.partition(" --")
    name = "list.gz" if how == "gzip" else "list"
    content = GOOD + LATE[kind]
    if verb == "put":
        content = (
            b"c\tfile\nlong\t" + b"x" * 70_000 + b"\n" + LATE[kind].replace(b"a", b"a\tfile").replace(b"b", b"b\tfile")
        )
    (tmp_path / name).write_bytes(gzip.compress(content) if how == "gzip" else content)
    output = ["-o", "paths"] if verb in ("map", "unmap") else []
    result = call(*given(verb, name), *output)
    assert result.exit_code in (1, 2)
    found = [line for line in result.stderr.splitlines() if name in line]
    assert len(found) == 1, result.stderr
    assert "; " in found[0]
    assert not (tmp_path / "paths").exists()
    assert not (tmp_path / "root").exists()
    if verb == "put":
        assert result.stdout.startswith("c\t")  # stored before, and reported


@pytest.mark.usefixtures("tree")
@pytest.mark.parametrize("kind", [kind for kind in LATE if kind != "CR LF"])
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("command", OF_TABLES)
def test_tables_are_checked_to_their_end(call: Call, tmp_path: Path, command: str, late: bool, kind: str) -> None:
    columns = b"id,id" if command == "map file" else b"id"
    rows = (GOOD * late).replace(b"\n", b",x\n") if command == "map file" else GOOD * late
    last = LATE[kind].replace(b"a", b"a,b") if command == "map file" and kind != "UTF-16" else LATE[kind]
    if kind == "UTF-16" and not late:
        table = "id\na\n".encode("utf-16-be")
    elif kind == "CR" and not late:
        table = columns + b"\r" + last
    else:
        table = columns + b"\n" + rows + last
    names = [name.replace("LIST", "list") for name in OF_TABLES[command]]
    (tmp_path / next(name for name in names if name.startswith("list"))).write_bytes(table)
    options = ["--on-error", "skip"] if names[0] in ("map", "unmap") else []
    result = call(*names, *options)
    assert result.exit_code == (2 if not late else result.exit_code) != 0
    found = [line for line in result.stderr.splitlines() if "list" in line and " failed" not in line]
    assert "UTF-16" in found[-1] or "carriage return" in found[-1] or "byte-order mark" in found[-1], result.stderr
    assert "; " in found[-1]
    assert not (tmp_path / "out.csv").exists()
    assert not (tmp_path / "root").exists()


@pytest.mark.usefixtures("tree")
@pytest.mark.parametrize("command", OF_LINES)
@pytest.mark.parametrize("content", [b"a\r\nb\r\n", b"a\nb\r\n", b"\xef\xbb\xbfa\nb\n", b"a\r", b"a\rb\r"], ids=repr)
def test_windows_line_ends_stop_the_run(call: Call, tmp_path: Path, command: str, content: bytes) -> None:
    """CRLF or a byte-order mark stops the run, nothing is written, and the message names the option."""
    (tmp_path / "list").write_bytes(content)
    before = contents(tmp_path)
    result = call(*given(command, "list"))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--crlf keep" in result.stderr
    assert result.stderr.count("\n") == 1
    assert contents(tmp_path) == before


@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("ending", [b"\r\n", b"\r", b""], ids=repr)
def test_crlf_strip(call: Call, tmp_path: Path, threads: str, ending: bytes) -> None:
    """The carriage return before each line feed, also at block edges, and the byte-order mark are stripped."""
    lines = [b"%d" % number for number in range(300_000)]
    (tmp_path / "ids").write_bytes(b"\xef\xbb\xbf" + b"\r\n".join(lines) + ending)
    (tmp_path / "plain").write_bytes(b"\n".join(lines) + (b"\n" if b"\n" in ending else b""))
    result = call("map", "pairtree", "--crlf", "strip", "--threads", threads, "ids", "-o", "paths")
    assert (result.exit_code, result.stderr) == (0, "")
    call("map", "pairtree", "plain", "-o", "expected")
    assert (tmp_path / "paths").read_bytes() == (tmp_path / "expected").read_bytes()


def test_crlf_keep(call: Call) -> None:
    """Everything between line feeds is the identifier."""
    result = call("map", "pairtree", "--crlf", "keep", stdin=b"\xef\xbb\xbfa\r\nb\r")
    assert (result.exit_code, result.stdout_bytes) == (0, b"^e/f^/bb/^b/fa/^0/d\nb^/0d")
    result = call("map", "pairtree", "--crlf", "strip", stdin=b"a\r\r\nb\rc\n")
    assert (result.exit_code, result.stdout_bytes) == (0, b"a^/0d\nb^/0d/c\n")


def test_nul_delimited_items_may_contain_line_ends(call: Call) -> None:
    """With NUL delimiters, carriage returns belong to the items, and a byte-order mark is refused."""
    assert call("map", "pairtree", "-0", stdin=b"a\r\nb\0").stdout_bytes == b"a^/0d/^0/ab\0"
    assert call("map", "pairtree", "-0", stdin=b"\xef\xbb\xbfa\0").exit_code == 2
    result = call("map", "pairtree", "-0", "--crlf", "strip", stdin=b"\xef\xbb\xbfa\r\n\0")
    assert result.stdout_bytes == b"a^/0d/^0/a\0"


def test_a_nul_in_a_line(call: Call) -> None:
    """A NUL in a line suggests binary data or a missing -0."""
    result = call("map", "pairtree", stdin=b"abc\0def\0")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "use -0 " in result.stderr
    result = call("map", "pairtree", "--crlf", "keep", stdin=b"a\0b\n")
    assert (result.exit_code, result.stdout_bytes) == (0, b"a^/00/b\n")


def test_crlf_is_for_lines(call: Call, tmp_path: Path) -> None:
    """Tables accept both line ends in any case."""
    (tmp_path / "a.csv").write_bytes(b"id\na\n")
    for options in (["pairtree", "a.csv"], ["pairtree", "-", "--format", "tsv"]):
        result = call("map", *options, "--column", "id", "--crlf", "strip")
        assert (result.exit_code, "--crlf" in result.stderr) == (2, True)
    result = call("migrate", "tree", "root", "--to", "bags", "--crlf", "strip")
    assert (result.exit_code, "--crlf" in result.stderr) == (2, True)


@pytest.mark.usefixtures("tree")
def test_other_commands_strip(call: Call, tmp_path: Path) -> None:
    """compare, put, rm and --ids read the same identifiers with --crlf strip as without carriage returns."""
    (tmp_path / "crlf").write_bytes(b"\xef\xbb\xbfc\tfile\r\nd\tfile\r\n")
    result = call("store", "put", "tree", "--from", "crlf", "--crlf", "strip")
    assert [line.split("\t")[0] for line in result.stdout.splitlines()] == ["c", "d"]
    (tmp_path / "crlf").write_bytes(b"\xef\xbb\xbfc\r\nd\r\n")
    result = call("compare", "crlf", "--layout", "0002", "--json", "--crlf", "strip")
    assert json.loads(result.stdout.splitlines()[0])["lengths"]["path_bytes"]["max"] == 1
    result = call("migrate", "tree", "root", "--to", "bags", "--ids", "crlf", "--crlf", "strip", "--all", "--json")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row.get("source_id") for row in rows[:-1]] == ["c", "d"], result.stderr
    assert rows[-1]["summary"]["ok"]
    assert call("store", "rm", "tree", "--from", "crlf", "--crlf", "strip").exit_code == 0
    assert call("store", "ls", "tree").stdout.split()[::2] == ["a", "b"]


# --- JSON lines -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson", "a.jsonl.gz", "a"])
def test_json_lines(call: Call, tmp_path: Path, name: str) -> None:
    """Each object gets the result as its last key; null stays null, and everything else is unchanged."""
    content = b'\xef\xbb\xbf{"id": "a:b",  "n": 1.50}\r\n\n{"id":"\\u00fc"}\n'
    content += b'{"id": null}\n{ "x": {"id": 1}, "id": "\\udcff" }'
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    options = ["--format", "jsonl"] if name == "a" else []
    result = call("map", "pairtree", name, "--column", "id", *options)
    assert (result.stderr, result.exit_code) == ("", 0)
    assert result.stdout_bytes.splitlines() == [
        b'{"id": "a:b",  "n": 1.50, "path": "a+/b"}',
        b'{"id":"\\u00fc", "path": "^c/3^/bc"}',
        b'{"id": null, "path": null}',
        b'{ "x": {"id": 1}, "id": "\\udcff", "path": "^f/f"}',
    ]
    assert [json.loads(line)["path"] for line in result.stdout.splitlines()] == ["a+/b", "^c/3^/bc", None, "^f/f"]
    (tmp_path / "b.jsonl").write_bytes(result.stdout_bytes)
    back = call("unmap", "pairtree", "b.jsonl", "--column", "path", "--as", "again")
    assert [json.loads(line)["again"] for line in back.stdout.splitlines()] == ["a:b", "ü", None, "\udcff"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"id": 1}', "is not a string"),
        (b'{"n": "a"}', "'id'"),
        (b'"a"', "not a JSON object"),
        (b"{", "not JSON"),
        (b'{"id": "\xff"}', "not UTF-8"),
        (b'{"id": "a", "path": "x"}', "--as"),
        (b"[" * 100_000, "not JSON"),
        (b'{"id": ""}', "identifier is empty"),
        (b'{"id": "\\ud800"}', "surrogate"),
    ],
    ids=["number", "no key", "string", "not JSON", "not UTF-8", "has the key", "deep", "empty", "surrogate"],
)
def test_malformed_json_lines(call: Call, line: bytes, reason: str) -> None:
    """A line without an identifier fails like an identifier without a path."""
    lines = b'{"id":"a"}\n' + line + b'\n{"id":"c"}\n'
    arguments = ["map", "pairtree", "--format", "jsonl", "--column", "id"]
    result = call(*arguments, stdin=lines)
    assert (result.exit_code, result.stdout_bytes) == (1, b'{"id":"a", "path": "a"}\n')
    assert "<stdin>:2: " in result.stderr
    assert reason in result.stderr
    result = call(*arguments, "--on-error", "skip", stdin=lines)
    assert (result.exit_code, len(result.stdout_bytes.splitlines())) == (1, 2)
    if "path" not in reason and "--as" not in reason:
        result = call("compare", "-", "--format", "jsonl", "--column", "id", "--layout", "pairtree", stdin=lines)
        assert result.exit_code == 1


def test_empty_results_of_json_lines(call: Call) -> None:
    """With ``--on-error empty`` the result is null; a line that is not an object is left out."""
    arguments = ["map", "pairtree", "--format", "jsonl", "--column", "id", "--on-error", "empty"]
    result = call(*arguments, stdin=b'{"id":""}\n{}\n{"id":"c"}\n')
    assert result.stdout_bytes == b'{"id":"", "path": null}\n{"path": null}\n{"id":"c", "path": "c"}\n'
    result = call(*arguments, stdin=b'{"id":"a"}\n[]\n{"id":"c"}\n')
    assert (result.exit_code, result.stdout_bytes) == (1, b'{"id":"a", "path": "a"}\n{"id":"c", "path": "c"}\n')


def test_json_lines_need_a_key(call: Call, tmp_path: Path) -> None:
    """JSON lines are not mapped as lines, by name or first bytes, unless requested."""
    (tmp_path / "a.jsonl").write_bytes(b'{"id":"a"}\n')
    for arguments, stdin in ((["a.jsonl"], b""), ([], b'{"id":"a"}\n')):
        result = call("map", "pairtree", *arguments, stdin=stdin)
        assert (result.exit_code, result.stdout) == (2, "")
        assert "--column" in result.stderr
    assert call("map", "pairtree", "--format", "lines", "a.jsonl").exit_code == 0
    assert call("map", "pairtree", stdin=b"{550e8400-e29b-11d4-a716-446655440000}\n").exit_code == 0
    for options in (["--column", "1"], ["--column", "id", "--header"], ["--column", "id", "-o", "x.csv"]):
        assert call("map", "pairtree", "a.jsonl", *options).exit_code == 2
    (tmp_path / "a.csv").write_bytes(b"id\na\n")
    assert call("map", "pairtree", "a.csv", "--column", "id", "-o", "x.jsonl").exit_code == 2
    assert call("map", "pairtree", "-o", "x.jsonl", stdin=b"a\n").exit_code == 2


# --- columns ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [["map", "pairtree", "a.csv"], ["compare", "a.csv", "--layout", "pairtree"]])
def test_a_column_number_requires_a_header_option(call: Call, tmp_path: Path, arguments: list[str]) -> None:
    """A column number requires an explicit choice about the header row."""
    (tmp_path / "a.csv").write_bytes(b"id,title\nabc,x\n")
    result = call(*arguments, "--column", "1")
    assert (result.exit_code, result.stdout) == (2, "")
    for word in ("a.csv: ", "'id'", "--header", "--no-header"):
        assert word in result.stderr
    assert call(*arguments, "--column", "1", "--header").exit_code == 0


SEMICOLONS = b"id;title, long\nark:/1;x, y\n"


@pytest.mark.parametrize(
    "options", [["--column", "1", "--header"], ["--column", "1", "--no-header"], ["--column", "id"]]
)
@pytest.mark.parametrize("separator", [b";", b"|", b"\t"])
@pytest.mark.parametrize("format_name", ["csv", "tsv"])
def test_another_delimiter_is_noticed(call: Call, options: list[str], separator: bytes, format_name: str) -> None:
    """Another delimiter in the first row is detected; the message names the option."""
    if format_name == "tsv" and separator == b"\t":
        separator = b","
    table = SEMICOLONS.replace(b", ", b" ").replace(b";", separator)
    result = call("map", "pairtree", "--format", format_name, *options, stdin=table)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--delimiter" in result.stderr


def test_delimiter(call: Call, tmp_path: Path) -> None:
    """CSV with another delimiter works like CSV, and the output has the same delimiter."""
    (tmp_path / "a.csv").write_bytes(b'\xef\xbb\xbfid;t\r\n"a;""b""";1,5\r\nabc;\r\n')
    result = call("map", "pairtree", "a.csv", "--column", "id", "--delimiter", ";")
    expected = b'\xef\xbb\xbfid;t;path\r\n"a;""b""";1,5;a;/^2/2b/^2/2\r\nabc;;ab/c\r\n'
    expected = expected.replace(b"a;/^2/2b/^2/2", b'"a;/^2/2b/^2/2"')
    assert (result.stdout_bytes, result.stderr) == (expected, "")
    (tmp_path / "a.txt").write_bytes(b"x;abc\n")
    result = call("map", "pairtree", "a.txt", "--column", "2", "--no-header", "--delimiter", ";")
    assert result.stdout_bytes == b"x;abc;ab/c\n"
    result = call("map", "pairtree", "a.txt", "--column", "2", "--no-header", "--delimiter", ";", "-o", "b.tsv")
    assert result.stderr == "pressmark: b.tsv: CSV cannot be written as TSV; convert the table with DuckDB or pyarrow\n"
    (tmp_path / "a.csv").write_bytes(b'x\t"a\tb"\n')
    result = call("map", "pairtree", "a.csv", "--column", "2", "--no-header", "--delimiter", r"\t")
    assert result.stdout_bytes == b'x\t"a\tb"\ta^/09/b\n'


def test_the_default_delimiter_may_be_given(call: Call) -> None:
    """The default delimiter may be given explicitly, for a single column with semicolons."""
    arguments = ["map", "pairtree", "--format", "csv", "--column", "1", "--no-header"]
    assert call(*arguments, stdin=b"a;b\n").exit_code == 2
    assert call(*arguments, "--delimiter", ",", stdin=b"a;b\n").stdout_bytes == b"a;b,a;/b\n"
    assert call(*arguments, stdin=b'"a;b"\n').stdout_bytes == b'"a;b",a;/b\n'
    tsv = ["map", "pairtree", "--format", "tsv", "--column", "1", "--no-header"]
    assert call(*tsv, "--delimiter", r"\t", stdin=b"a;b\n").stdout_bytes == b"a;b\ta;/b\n"


@pytest.mark.parametrize(
    "options",
    [
        ["--format", "csv", "--column", "1", "--delimiter", ";;"],
        ["--format", "csv", "--column", "1", "--delimiter", ""],
        ["--format", "csv", "--column", "1", "--delimiter", '"'],
        ["--format", "csv", "--column", "1", "--delimiter", "\n"],
        ["--format", "csv", "--column", "1", "--delimiter", "ü"],
        ["--format", "tsv", "--column", "1", "--delimiter", ";"],
        ["--format", "jsonl", "--column", "id", "--delimiter", ";"],
        ["--delimiter", ";"],
    ],
)
def test_invalid_delimiters(call: Call, options: list[str]) -> None:
    """A delimiter is one ASCII character, for CSV."""
    result = call("map", "pairtree", *options, stdin=b"a;b\n")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--delimiter" in result.stderr
