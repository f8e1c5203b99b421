"""``pressmark map`` and ``pressmark unmap``: delimiters, columns, failing items, layout options."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.samples import KNOWN

from .conftest import Call


@pytest.mark.parametrize(
    ("options", "given", "expected"),
    [
        ([], b"", b""),
        ([], b"a\nb\n", b"a\nb\n"),
        ([], b"a\nb", b"a\nb"),
        (["--crlf", "keep"], b"a\r\nb\r\n", b"a\r\nb\r\n"),
        (["-0"], b"a\nb\0c\0", b"a\nb\0c\0"),
        (["--null"], b"a\nb\0c", b"a\nb\0c"),
        (["--both"], b"a\nb", b"a\ta\nb\tb"),
        (["--both", "-0"], b"a\tb\0c\0", None),
        (["--threads", "2"], b"a\nb\n", b"a\nb\n"),
    ],
    ids=["nothing", "lines", "last open", "carriage returns", "NUL", "last open, NUL", "both", "both, NUL", "threads"],
)
def test_items_in_and_out(call: Call, options: list[str], given: bytes, expected: bytes | None) -> None:
    """Items end only with the delimiter; if the last one lacks it, so does the output."""
    result = call("map", "0002", *options, stdin=given)
    if expected is None:
        # A path of 0002 may hold a TAB as its identifier does, so the two could not be separated.
        assert result.exit_code == 1
        result = call("map", "0003", *options, stdin=given)
        expected = b"a\tb\t894/891/f8b/a%09b\0c\t2e7/d2c/03a/c\0"
    assert (result.stdout_bytes, result.stderr, result.exit_code) == (expected, "", 0)


@pytest.mark.parametrize("layout", ["pairtree", "vitro", "0002", "0003"])
def test_unmap_turns_map_back(call: Call, tmp_path: Path, layout: str) -> None:
    """unmap inverts map; with --both the columns are those of map."""
    (tmp_path / "ids").write_bytes(b"one\ntwo:2\nthree")
    assert call("map", layout, "ids", "-o", "paths").exit_code == 0
    assert call("unmap", layout, "paths").stdout_bytes == b"one\ntwo:2\nthree"
    both = call("unmap", layout, "--both", "paths")
    assert both.stdout_bytes == call("map", layout, "--both", "-", stdin=b"one\ntwo:2\nthree").stdout_bytes


@pytest.mark.parametrize(
    ("on_error", "expected", "messages"),
    [
        ("stop", b"a\n", []),
        ("skip", b"a\nc\n", ["pressmark: 2 of 4 identifiers failed"]),
        ("empty", b"a\n\nc\n\n", ["pressmark: 2 of 4 identifiers failed"]),
    ],
)
def test_on_error(call: Call, on_error: str, expected: bytes, messages: list[str]) -> None:
    """Each failing item is one line; later items are mapped unless the run stops."""
    result = call("map", "0003", "--on-error", on_error, stdin=b"a\n\xff\nc\n\n")
    lines = [
        "pressmark: <stdin>:2: '\\xff': byte 0xff at offset 0 is not UTF-8; this layout requires UTF-8",
        "pressmark: <stdin>:4: '': identifier is empty",
    ]
    written = [line.rpartition(b"/")[2] for line in result.stdout_bytes.split(b"\n")]
    assert b"\n".join(written) == expected
    assert result.stderr.splitlines() == lines[: 2 if messages else 1] + messages
    assert result.exit_code == 1


def test_one_of_one(call: Call) -> None:
    """The summary uses the singular, and names paths for unmap."""
    result = call("unmap", "pairtree", "--on-error", "skip", stdin=b"abc\n")
    assert result.stderr.splitlines()[1:] == ["pressmark: 1 of 1 path failed"]
    assert result.stderr.startswith("pressmark: <stdin>:1: 'abc': ")


@pytest.mark.parametrize("arguments", [("map", "pairtree"), ("hash", "ids.txt")])
def test_an_output_without_a_name(call: Call, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """An empty output name is a usage error, before anything is read."""
    (tmp_path / "ids.txt").write_text("a\n")
    result = call(*arguments, "-o", "", stdin=b"a\n")
    message = "pressmark: output file name is empty; use - for standard output\n"
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", message)


def test_nul_delimited_items_are_numbered(call: Call) -> None:
    """With -0, items are numbered instead of lines."""
    result = call("map", "pairtree", "-0", "--on-error", "skip", stdin=b"a\nb\0\0c")
    assert result.stdout_bytes == b"a^/0a/b\0c"
    assert result.stderr.splitlines() == [
        "pressmark: <stdin>: item 2: '': identifier is empty",
        "pressmark: 1 of 3 identifiers failed",
    ]


def test_a_tab_does_not_fit_two_columns(call: Call) -> None:
    """An identifier with a TAB fails with --both; with "empty" both columns are empty."""
    skipped = call("map", "0003", "--both", "--on-error", "skip", stdin=b"a\tb\nc\n")
    emptied = call("map", "0003", "--both", "--on-error", "empty", stdin=b"a\tb\nc\n")
    assert skipped.stdout_bytes == b"c\t2e7/d2c/03a/c\n"
    assert emptied.stdout_bytes == b"\t\nc\t2e7/d2c/03a/c\n"
    assert skipped.stderr.startswith("pressmark: <stdin>:1: 'a\\tb': identifier contains a TAB")
    assert skipped.exit_code == emptied.exit_code == 1


def test_a_line_feed_in_an_identifier_needs_nul(call: Call) -> None:
    """A result with a line feed fails; with NUL delimiters it is written."""
    result = call("unmap", "pairtree", stdin=b"a^/0a/b\n")
    assert result.exit_code == 1
    assert "-0" in result.stderr
    assert call("unmap", "pairtree", "-0", stdin=b"a^/0a/b\0").stdout_bytes == b"a\nb\0"


def test_an_identifier_of_ten_megabytes(call: Call) -> None:
    """An identifier of ten megabytes fails in one short line, and the next one is mapped."""
    result = call("map", "pairtree", "--on-error", "skip", stdin=b"a" * 10_000_000 + b"\nb\n")
    assert result.stdout_bytes == b"b\n"
    assert len(result.stderr) < 400
    assert [line[:24] for line in result.stderr.splitlines()] == [
        "pressmark: <stdin>:1: 'a",
        "pressmark: 1 of 2 identi",
    ]


def test_an_identifier_without_a_safe_path(call: Call) -> None:
    """An unsafe path of 0011 with an empty replacement fails; the other lines are mapped."""
    result = call("map", "0011", "--set", "replacementString=", "--on-error", "skip", stdin=b"a/.../b\nx:y\nz\n")
    assert result.stdout_bytes == b"xy\nz\n"
    assert result.stderr.splitlines() == [
        "pressmark: <stdin>:1: 'a/.../b': path segment '..' at offset 2",
        "pressmark: 1 of 3 identifiers failed",
    ]


def test_many_failures_are_in_order(call: Call) -> None:
    """No failure is lost or repeated when lines are written in groups."""
    result = call("map", "0002", "--on-error", "skip", stdin=b"a\n\n" * 1000)
    lines = [f"pressmark: <stdin>:{line}: '': path is empty" for line in range(2, 2001, 2)]
    assert result.stderr.splitlines() == [*lines, "pressmark: 1,000 of 2,000 identifiers failed"]
    assert result.stdout_bytes == b"a\n" * 1000


# --- layout options -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layout", "settings", "identifier", "path"),
    [
        ("0012", ['delimiters=[":"]'], "prefix:object-01", "3c0/ff4/240/object-01"),
        ("0012", ["delimiters=:"], "prefix:object-01", "3c0/ff4/240/object-01"),
        (
            "0007",
            ["tupleSize=4", "numberOfTuples=2", "reverseObjectRoot=true"],
            "namespace:12887296",
            "6927/8821/12887296",
        ),
        ("0011", ["encodeUTF=true"], "info:fedora/object-01", "info=u003Afedora/object-01"),
        ("vitro", ['namespaces={"a": "http://x/"}'], "http://x/n3424", "a~n/342/4"),
        ("0010", ["tupleSegmentSizes=[2,2]"], "a:bcde", "bc/de"),
        ("0006", ["delimiter=="], "a=b", "b"),
        (
            "0004-hashed-n-tuple-storage-layout",
            ["tupleSize=2", "tupleSize=0", "numberOfTuples=0"],
            "a",
            "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb",
        ),
    ],
)
def test_set(call: Call, layout: str, settings: list[str], identifier: str, path: str) -> None:
    """--set accepts each parameter's type; the last value of a key counts."""
    options = [word for setting in settings for word in ("--set", setting)]
    result = call("map", layout, *options, stdin=identifier.encode())
    assert (result.stdout, result.stderr, result.exit_code) == (path, "", 0)


@pytest.mark.parametrize(
    ("call_", "line"),
    [
        (["map", "0012", "--set", "tupleSize"], "--set 'tupleSize': expected KEY=VALUE"),
        (["map", "0012", "--set", "=1"], "--set '=1': expected KEY=VALUE"),
        (["map", "0012", "--set", "tupleSize=x"], "tupleSize: 'x' is not an integer from 0 to 32"),
        (["map", "0002", "--set", "tupleSize=1"], "tupleSize: unknown parameter; this layout has no parameters"),
        (
            ["map", "pairtree", "--set", "prefix=\udcff"],
            "prefix: '\\xff' contains an unpaired surrogate",
        ),
        (
            ["map", "0003", "--set", "tupleSize=" + "[" * 100_000],
            "tupleSize: '" + "[" * 80 + "'… is not an integer from 0 to 32",
        ),
        (
            ["map", "pairtree", "-o", "no/such/folder"],
            "no/such/folder: No such file or directory; create its directory first",
        ),
        (["map", "pairtree", "--config", "missing"], "missing: No such file or directory"),
        (
            ["unmap", "0011"],
            "0011-direct-clean-path-layout is reversible only with encodeUTF, unless the fallback was used",
        ),
        (
            ["unmap", "0004", "missing"],
            "0004-hashed-n-tuple-storage-layout has no inverse: its paths do not contain the "
            "whole identifier; read it from the object, for example from its OCFL inventory",
        ),
    ],
    ids=["no =", "no key", "type", "no parameters", "surrogate", "depth", "folder", "config", "unless", "never"],
)
def test_usage_errors(call: Call, call_: list[str], line: str) -> None:
    """A usage error is one line and exit status 2."""
    result = call(*call_, stdin=b"a\n")
    assert (result.stdout, result.stderr, result.exit_code) == ("", f"pressmark: {line}\n", 2)


@pytest.mark.parametrize(
    "call_",
    [
        ["map"],
        ["map", "pairtree", "a", "b"],
        ["map", "pairtree", "--bogus"],
        ["map", "pairtree", "--threads", "-1"],
        ["map", "pairtree", "--on-error", "ignore"],
        ["bogus"],
    ],
    ids=" ".join,
)
def test_usage_errors_of_click(call: Call, call_: list[str]) -> None:
    """click's usage errors are one line, too, with a hint to the help."""
    result = call(*call_)
    command = "pressmark map" if call_[0] == "map" else "pressmark"
    assert result.exit_code == 2
    assert result.stderr.startswith("pressmark: ")
    assert result.stderr.endswith(f" (see '{command} --help')\n")
    assert result.stderr.count("\n") == 1


def test_without_a_command_there_is_help(call: Call) -> None:
    """Without a command, the help is printed on stderr, and the exit status is 2."""
    result = call()
    assert (result.stdout, result.exit_code) == ("", 2)
    assert result.stderr.startswith("Usage: pressmark")


def test_config(call: Call, tmp_path: Path) -> None:
    """A configuration gives the parameters, and --set overrides it."""
    config = {"extensionName": "0004-hashed-n-tuple-storage-layout", "digestAlgorithm": "md5", "tupleSize": 2}
    (tmp_path / "config.json").write_text(json.dumps(config))
    result = call("map", "0004", "--config", "config.json", stdin=b"object-01")
    assert result.stdout == "ff/75/53/ff75534492485eabb39f86356728884e"
    result = call("map", "0004", "--config", "config.json", "--set", "numberOfTuples=1", stdin=b"object-01")
    assert result.stdout == "ff/ff75534492485eabb39f86356728884e"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        ("[" * 100_000, None),
        ("[]", "not a JSON object"),
        ("{}", "no extensionName; it is required to choose the layout"),
        ('{"extensionName": "x"}', f"extensionName: unknown layout 'x'; known layouts: {KNOWN}"),
        (
            '{"extensionName": "0004-hashed-n-tuple-storage-layout"}',
            "configuration of 0004-hashed-n-tuple-storage-layout, not of 0003-hash-and-id-n-tuple-storage-layout",
        ),
        (
            '{"extensionName": "0003-hash-and-id-n-tuple-storage-layout", "tupleSize": 99}',
            "tupleSize: 99 is not an integer from 0 to 32",
        ),
    ],
    ids=["no JSON", "depth", "array", "no name", "unknown", "other layout", "value"],
)
def test_refused_configurations(call: Call, tmp_path: Path, content: str, reason: str | None) -> None:
    """The file of an invalid configuration is named in a one-line error."""
    (tmp_path / "config.json").write_text(content)
    result = call("map", "0003", "--config", "config.json", stdin=b"a")
    assert (result.stdout, result.exit_code, result.stderr.count("\n")) == ("", 2, 1)
    assert result.stderr.startswith(f"pressmark: config.json: {reason or 'not JSON: '}")


def test_a_configuration_of_gocfl_warns(call: Call, tmp_path: Path) -> None:
    """The library's warning is one line, and the identifiers are mapped."""
    (tmp_path / "config.json").write_text('{"extensionName": "NNNN-direct-clean-path-layout", "utfEncode": true}')
    result = call("map", "0011", "--config", "config.json", stdin=b"a:b")
    assert (result.stdout, result.exit_code, result.stderr.count("\n")) == ("a=u003Ab", 0, 1)
    assert result.stderr.startswith("pressmark: warning: config.json: written by gocfl")


def test_parameters_in_the_name_of_the_layout(call: Call) -> None:
    """LAYOUT accepts the spelling of --layout; --set overrides it."""
    name = "0003:tupleSize=2,numberOfTuples=2"
    path = call("map", "0003", "--set", "tupleSize=2", "--set", "numberOfTuples=2", stdin=b"a\n").stdout
    assert call("map", name, stdin=b"a\n").stdout == path
    assert call("unmap", name, stdin=path.encode()).stdout == "a\n"
    assert call("map", name, "--set", "numberOfTuples=1", stdin=b"a\n").stdout == "ca/a\n"
    result = call("map", "0003:tuple=2", stdin=b"a\n")
    assert (result.exit_code, "tuple" in result.stderr) == (2, True)
    assert call("map", "0004:tupleSize=2", "--set", "numberOfTuples", stdin=b"a\n").exit_code == 2


def test_an_error_that_stops_names_the_output(call: Call, tmp_path: Path) -> None:
    """With -o, the message says that nothing was written, and how to continue."""
    result = call("map", "0003", "-o", "paths", stdin=b"a\n\n")
    assert result.exit_code == 1
    assert result.stderr == (
        "pressmark: <stdin>:2: '': identifier is empty; nothing was written to paths;"
        " to continue after errors, use --on-error empty or --on-error skip\n"
    )
    assert not (tmp_path / "paths").exists()
    assert call("map", "0003", stdin=b"a\n\n").stderr == "pressmark: <stdin>:2: '': identifier is empty\n"


def test_a_hint_if_everything_fails(call: Call, tmp_path: Path) -> None:
    """If every item fails, the column or the layout may be wrong."""
    (tmp_path / "table.csv").write_text("id,path\none,two\nthree,four\n")
    result = call("unmap", "0003", "table.csv", "--column", "id", "--as", "new", "--on-error", "skip")
    assert result.exit_code == 1
    assert result.stderr.endswith("pressmark: 2 of 2 paths failed; check --column and LAYOUT\n")
    result = call("unmap", "0003", "--on-error", "skip", stdin=b"a\nb\n")
    assert result.stderr.endswith("pressmark: 2 of 2 paths failed; check FILE and LAYOUT\n")


def test_forms_of_pairtree(call: Call) -> None:
    """Settings of Pairtree map to object paths, and the paths of files and cleaned identifiers back and forth."""
    path = b"ab/c/abc"
    assert call("map", "pairtree:paths=object", stdin=b"abc\n").stdout_bytes == path + b"\n"
    assert call("unmap", "pairtree:paths=object", stdin=b"./" + path + b"/1.tif\n").stdout_bytes == b"abc\n"
    assert call("map", "pairtree", "--set", "cleaned=true", stdin=b"a=b\n").stdout_bytes == b"a=/b\n"
    refused = call("map", "pairtree:cleaned=true", stdin=b"a/b\n")
    message = "<stdin>:1: 'a/b': identifier is not cleaned (byte '/' at offset 1); omit the setting cleaned\n"
    assert (refused.stderr.removeprefix("pressmark: "), refused.exit_code) == (message, 1)
