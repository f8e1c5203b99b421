"""``--column`` on Parquet: results, other columns, and failures."""

from __future__ import annotations

import errno
import io
import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from time import sleep
from typing import Any

import pytest

from pressmark.cli.common.files import OutputStream
from pressmark.layouts import Pairtree

from .conftest import Call, Run, environment

pa: Any = pytest.importorskip("pyarrow")
pq: Any = pytest.importorskip("pyarrow.parquet")

from pressmark.tabular import parquet  # noqa: E402 - it needs pyarrow

pytestmark = pytest.mark.usefixtures("implementation")


def written(path: Path, name: str = "path") -> list[Any]:
    column: list[Any] = pq.read_table(path).column(name).to_pylist()
    return column


def test_a_parquet_file(call: Call, tmp_path: Path) -> None:
    """The command adds a column, and prints nothing."""
    table = pa.table({"n": [1, 2], "id": ["abc", None]})
    pq.write_table(table, tmp_path / "in.parquet")
    result = call("map", "pairtree", "in.parquet", "--column", "id", "-o", "out.parquet")
    assert (result.stdout, result.stderr, result.exit_code) == ("", "", 0)
    assert pq.read_table(tmp_path / "out.parquet") == table.append_column("path", pa.array(["ab/c", None]))


# --- rows that fail -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("on_error", "rows"),
    [
        ("stop", None),
        ("skip", [(0, "a"), (1, None), (4, "d")]),
        ("empty", [(0, "a"), (1, None), (2, None), (3, None), (4, "d")]),
    ],
)
@pytest.mark.parametrize("batch", [1, 2, 100])
def test_on_error(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_error: str, rows: list[Any] | None, batch: int
) -> None:
    """A failing row is named by its number; it is skipped, or its result is null, unless the run stops."""
    monkeypatch.setattr(parquet, "BATCH_ROWS", batch)
    table = pa.table({"n": range(5), "id": ["a", None, "", "..", "d"]})
    pq.write_table(table, tmp_path / "in.pq", row_group_size=3)
    result = call("map", "0002", "in.pq", "--column", "id", "-o", "out.pq", "--on-error", on_error)
    lines = [
        "pressmark: in.pq:3: '': path is empty",
        "pressmark: in.pq:4: '..': path segment '..' at offset 0",
        "pressmark: 2 of 5 identifiers failed",
    ]
    assert (result.stdout, result.stderr.splitlines(), result.exit_code) == ("", lines if rows else lines[:1], 1)
    if rows is None:
        assert os.listdir(tmp_path) == ["in.pq"]
    else:
        assert [(row["n"], row["path"]) for row in pq.read_table(tmp_path / "out.pq").to_pylist()] == rows


def test_skipping_all(call: Call, tmp_path: Path) -> None:
    """If all rows are skipped, the output is an empty table."""
    pq.write_table(pa.table({"id": ["", ""]}), tmp_path / "in.pq")
    assert call("map", "0002", "in.pq", "--column", "id", "-o", "out.pq", "--on-error", "skip").exit_code == 1
    assert pq.read_table(tmp_path / "out.pq").num_rows == 0


def test_results_that_are_not_text(call: Call, tmp_path: Path) -> None:
    """An unmapped identifier that is not UTF-8 fails."""
    reason = "is not UTF-8, which Parquet requires"
    pq.write_table(pa.table({"path": ["^f/f", "a"]}), tmp_path / "in.pq")
    result = call("unmap", "pairtree", "in.pq", "--column", "path", "-o", "out.pq", "--on-error", "skip")
    assert result.stderr == f"pressmark: in.pq:1: '^f/f': identifier {reason}\npressmark: 1 of 2 paths failed\n"
    assert written(tmp_path / "out.pq", "identifier") == ["a"]


def test_items_that_are_not_text(call: Call, tmp_path: Path) -> None:
    """Text of a Parquet file that is not UTF-8 fails with its row number."""
    text = pa.array([b"a", b"\xff", None]).view(pa.string())
    for column in (text, text.dictionary_encode()):
        pq.write_table(pa.table({"id": column}), tmp_path / "in.pq")
        result = call("map", "0002", "in.pq", "--column", "id", "-o", "out.pq", "--on-error", "empty")
        reason = "byte 0xff at offset 0 is not UTF-8; this layout requires UTF-8"
        assert result.stderr == f"pressmark: in.pq:2: '\\xff': {reason}\npressmark: 1 of 3 identifiers failed\n"
        assert written(tmp_path / "out.pq") == ["a", None, None]


# --- unusable files -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "column", "line"),
    [
        ({"id": ["a"], "n": [1]}, "x", "column 'x' not found; columns: id, n"),
        ({"id": ["a"], "n": [1]}, "3", "column 3 not found; columns: id, n"),
        ({"id": ["a"], "n": [1]}, "n", "column 'n' is int64, not text"),
        ({"id": ["a"], "s": [{"id": "a"}]}, "s", "column 's' is struct<id: string>, not text"),
        ({"id": ["a"], "path": ["b"]}, "id", "column 'path' already exists; choose another name (--as)"),
    ],
)
def test_unusable_tables(call: Call, tmp_path: Path, table: dict[str, Any], column: str, line: str) -> None:
    """An unusable table is a one-line error, and no output is left."""
    pq.write_table(pa.table(table), tmp_path / "in.pq")
    result = call("map", "0002", "in.pq", "--column", column, "-o", "out.pq")
    assert (result.stderr, result.exit_code) == (f"pressmark: in.pq: {line}\n", 2)
    assert os.listdir(tmp_path) == ["in.pq"]


def test_an_ambiguous_name(call: Call, tmp_path: Path) -> None:
    """Columns with the same name are distinguished by number."""
    pq.write_table(pa.table([["a"], ["b"]], ["id", "id"]), tmp_path / "in.pq")
    result = call("map", "0002", "in.pq", "--column", "id", "-o", "out.pq")
    assert result.stderr == "pressmark: in.pq: column 'id' is not unique; use its number\n"
    assert call("map", "0002", "in.pq", "--column", "2", "-o", "out.pq").exit_code == 0
    assert pq.ParquetFile(tmp_path / "out.pq").read().column(2).to_pylist() == ["b"]
    for number, longest in (("1", 1), ("2", 2)):
        pq.write_table(pa.table([["a"], ["bb"]], ["id", "id"]), tmp_path / "in.pq")
        result = call("compare", "in.pq", "--column", number, "--layout", "0002", "--json")
        assert json.loads(result.stdout.splitlines()[0])["lengths"]["path_bytes"]["max"] == longest


def whole_file() -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table({"id": [f"id-{n}" for n in range(5000)]}), file, use_dictionary=False, compression="none")
    return file.getvalue()


@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: b"",
        lambda whole: b"id\na\n",
        lambda whole: whole[:4],
        lambda whole: whole[: len(whole) // 2],
        lambda whole: whole[:-1],
        lambda whole: whole[len(whole) // 2 :],
        lambda whole: whole[:4] + b"\xff" * 40_000 + whole[40_004:],
    ],
    ids=["empty", "text", "magic", "half", "all but a byte", "second half", "pages"],
)
def test_broken_files(call: Call, tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    """A damaged file is a one-line error with its name, and no output is left."""
    (tmp_path / "in.pq").write_bytes(damage(whole_file()))
    result = call("map", "0002", "in.pq", "--column", "id", "-o", "out.pq")
    assert (result.stdout, result.stderr.count("\n"), result.exit_code) == ("", 1, 1)
    assert result.stderr.startswith("pressmark: in.pq: ")
    assert os.listdir(tmp_path) == ["in.pq"]


# --- row groups in the background ---------------------------------------------------------------------------------


@pytest.fixture
def groups(tmp_path: Path) -> Path:
    """A table of twenty row groups."""
    table = pa.table({"id": [f"id-{n * 7919:08}" for n in range(20_000)], "n": range(20_000)})
    pq.write_table(table, tmp_path / "in.pq", row_group_size=1000, compression="none", use_dictionary=False)
    return tmp_path


def writing_threads() -> list[str]:
    return [one.name for one in threading.enumerate() if one.name.startswith("pressmark-write")]


def test_groups_are_written_in_the_background(call: Call, groups: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread writes the row groups in order, and one more is mapped meanwhile; the bytes are those without it."""
    names, mapped, ahead = set(), [0], []
    write, read = parquet.ParquetWriter._write_group, parquet.ArrowBlock.map

    def observed(writer: Any, batches: list[Any], rows: int) -> None:
        names.add(threading.current_thread().name)
        sleep(0.02)
        write(writer, batches, rows)
        ahead.append(mapped[0] - len(ahead) - 1)

    def counted(block: Any, mapper: Any) -> None:
        read(block, mapper)
        mapped[0] += 1

    monkeypatch.setattr(parquet.ArrowBlock, "map", counted)
    monkeypatch.setattr(parquet.ParquetWriter, "_write_group", observed)
    assert call("map", "pairtree", "in.pq", "--column", "id", "-o", "out.pq").stderr == ""
    assert max(ahead) == 2  # the group that is held, and the one that ends it
    monkeypatch.setattr(parquet._Output, "is_regular", lambda _output: False)
    assert call("map", "pairtree", "in.pq", "--column", "id", "-o", "same.pq").stderr == ""
    assert names == {"pressmark-write", "MainThread"}
    assert (groups / "out.pq").read_bytes() == (groups / "same.pq").read_bytes()
    assert pq.read_table(groups / "out.pq").select([0, 1]) == pq.read_table(groups / "in.pq")
    assert pq.ParquetFile(groups / "out.pq").metadata.num_row_groups == 20
    assert writing_threads() == []


@pytest.mark.parametrize("group", [0, 1, 19])
@pytest.mark.parametrize("slow", ["reading", "writing"])
def test_a_failed_write(call: Call, groups: Path, monkeypatch: pytest.MonkeyPatch, group: int, slow: str) -> None:
    """A row group that cannot be written ends the run with the name of the output, and leaves no output."""
    write, read = parquet.ParquetWriter._write_group, parquet.ArrowBlock.map
    written_groups: list[int] = []

    def failing(writer: Any, batches: list[Any], rows: int) -> None:
        sleep(0.02 if slow == "writing" else 0)
        if len(written_groups) == group:
            monkeypatch.setattr(OutputStream, "write", refuse)
        written_groups.append(rows)
        write(writer, batches, rows)

    def refuse(stream: OutputStream, _data: bytes) -> int:
        with stream._named():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def mapped(block: Any, mapper: Any) -> None:
        sleep(0.02 if slow == "reading" else 0)
        read(block, mapper)

    monkeypatch.setattr(parquet.ParquetWriter, "_write_group", failing)
    monkeypatch.setattr(parquet.ArrowBlock, "map", mapped)
    result = call("map", "pairtree", "in.pq", "--column", "id", "-o", "out.pq")
    assert (result.stderr, result.exit_code) == ("pressmark: out.pq: No space left on device\n", 1)
    assert len(written_groups) == group + 1
    assert os.listdir(groups) == ["in.pq"]
    assert writing_threads() == []


def test_ctrl_c_during_a_write(call: Call, groups: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupted run waits for the thread, which writes nothing more, and leaves no output."""
    begun, written_bytes = threading.Event(), []
    write = OutputStream.write

    def slowly(stream: OutputStream, data: bytes) -> int:
        if threading.current_thread().name.startswith("pressmark-write"):
            begun.set()
            sleep(0.1)
            written_bytes.append(len(data))
        return write(stream, data)

    def interrupted(_block: Any, _mapper: Any) -> None:
        assert begun.wait(10)
        raise KeyboardInterrupt

    monkeypatch.setattr(OutputStream, "write", slowly)
    first = parquet.ArrowBlock.map
    blocks = iter([first, first, interrupted])
    monkeypatch.setattr(parquet.ArrowBlock, "map", lambda block, mapper: next(blocks)(block, mapper))
    result = call("map", "pairtree", "in.pq", "--column", "id", "-o", "out.pq")
    assert (result.stderr, result.exit_code) == (
        "pressmark: interrupted; out.pq is unchanged; run the same command again\n",
        130,
    )
    assert len(written_bytes) == 1
    assert os.listdir(groups) == ["in.pq"]
    assert writing_threads() == []


def test_a_damaged_group(call: Call, groups: Path) -> None:
    """A damaged row group in the middle ends the run with the name of the input, and leaves no output."""
    whole = bytearray((groups / "in.pq").read_bytes())
    start = pq.ParquetFile(groups / "in.pq").metadata.row_group(9).column(0).data_page_offset
    whole[start : start + 2000] = b"\xff" * 2000
    (groups / "in.pq").write_bytes(whole)
    result = call("map", "pairtree", "in.pq", "--column", "id", "-o", "out.pq")
    assert (result.stderr.count("\n"), result.exit_code) == (1, 1)
    assert result.stderr.startswith("pressmark: in.pq: ")
    assert os.listdir(groups) == ["in.pq"]
    assert writing_threads() == []


# --- processes ----------------------------------------------------------------------------------------------------


@pytest.fixture
def ids(tmp_path: Path) -> Path:
    pq.write_table(pa.table({"id": [f"id-{n}" for n in range(1000)]}), tmp_path / "in.pq")
    return tmp_path


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk(run: Run, ids: Path) -> None:
    """A full disk is one line; pyarrow adds none of its own."""
    done = run("map", "0002", "in.pq", "--column", "id", "-o", "/dev/full")
    assert (done.stderr, done.returncode) == (b"pressmark: /dev/full: No space left on device\n", 1)


@pytest.mark.skipif(os.name != "posix", reason="needs limits of processes")
def test_a_full_quota(groups: Path) -> None:
    """A file that cannot grow is one line, and no output is left."""
    code = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))\n"
    code += "from pressmark.cli import main; main()"
    command = [sys.executable, "-c", code, "map", "pairtree", "in.pq", "--column", "id", "-o", "out.pq"]
    done = subprocess.run(command, cwd=groups, env=environment(), capture_output=True, check=False)
    assert (done.stderr, done.returncode) == (b"pressmark: out.pq: File too large\n", 1)
    assert os.listdir(groups) == ["in.pq"]


@pytest.mark.skipif(os.name != "posix", reason="needs named pipes")
def test_an_interrupted_write_to_a_pipe_ends(ids: Path) -> None:
    """A run that writes to a pipe whose reader does not read ends at a signal."""
    os.mkfifo(ids / "pipe")
    pq.write_table(pa.table({"id": [f"id-{n * 7919:08}" for n in range(50_000)]}), ids / "in.pq", row_group_size=10_000)
    reader = os.open(ids / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    command = [sys.executable, "-m", "pressmark", "map", "pairtree", "in.pq", "--column", "id", "-o", "pipe"]
    with subprocess.Popen(command, cwd=ids, env=environment(), stderr=subprocess.PIPE) as process:
        try:
            while not select.select([reader], [], [], 0.05)[0]:
                assert process.poll() is None
            sleep(0.5)  # until the pipe is full
            process.send_signal(signal.SIGTERM)
            assert process.communicate(timeout=30)[1].startswith(b"pressmark: interrupted")
        finally:
            process.kill()
            os.close(reader)


@pytest.mark.skipif(os.name != "posix", reason="needs named pipes")
def test_a_stopped_run_does_not_look_complete(run: Run, tmp_path: Path) -> None:
    """A reader of a pipe must not mistake a truncated table for a complete one."""
    pq.write_table(pa.table({"id": ["a", "", "b"]}), tmp_path / "in.pq", row_group_size=1)
    os.mkfifo(tmp_path / "pipe")
    # A reader that does not wait; the output fits into the pipe.
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    done = run("map", "0002", "in.pq", "--column", "id", "-o", "pipe")
    got = os.read(reader, 1 << 16)
    os.close(reader)
    assert (done.stderr, done.returncode) == (b"pressmark: in.pq:2: '': path is empty\n", 1)
    assert got.startswith(b"PAR1")
    assert not got.endswith(b"PAR1")


@pytest.mark.skipif(os.name != "posix", reason="needs pipes that files can be")
def test_standard_input(run: Run, ids: Path) -> None:
    """A redirected file works, a pipe does not: Parquet must be seekable."""
    call_ = ["map", "0002", "--format", "parquet", "--column", "id", "-o", "out.pq"]
    done = run(*call_, stdin=(ids / "in.pq").read_bytes())
    line = b"pressmark: <stdin>: Parquet input must be seekable; a pipe is not\n"
    assert (done.stderr, done.returncode) == (line, 2)
    with open(ids / "in.pq", "rb") as file:
        done = subprocess.run(
            [sys.executable, "-m", "pressmark", *call_], stdin=file, cwd=ids, env=environment(), check=False
        )
    assert done.returncode == 0
    assert written(ids / "out.pq") == [f"id-{n}" for n in range(1000)]


def test_without_pyarrow(ids: Path) -> None:
    """Without pyarrow, one line names the package to install; CSV and TSV do not need it."""
    (ids / "in.csv").write_bytes(b"id\na\n")
    code = "import sys; sys.modules['pyarrow'] = None; from pressmark.cli import main; main(sys.argv[1:])"

    def call(*args: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, "-c", code, "map", "0002", "--column", "id", *args],
            capture_output=True,
            cwd=ids,
            env=environment(),
            check=False,
        )

    done = call("in.pq", "-o", "out.pq")
    line = "pressmark: reading Parquet needs pyarrow: pip install 'pressmark[arrow]'\n"
    assert (done.stdout, done.stderr.decode(), done.returncode) == (b"", line, 2)
    assert sorted(os.listdir(ids)) == ["in.csv", "in.pq"]
    assert call("in.csv").stdout == b"id,path\na,a\n"


@pytest.mark.parametrize("library", ["polars", "duckdb"])
def test_files_of_other_libraries(call: Call, tmp_path: Path, library: str) -> None:
    """Files of other libraries are read, and they read ours."""
    package = pytest.importorskip(library)
    rows = [(f"id:{n}", n) for n in range(1000)]
    source, target = str(tmp_path / "in.parquet"), str(tmp_path / "out.parquet")
    if library == "polars":
        package.DataFrame({"id": [one for one, _ in rows], "n": [n for _, n in rows]}).write_parquet(source)
    else:
        query = "SELECT 'id:' || range AS id, range AS n FROM range(1000)"
        package.sql(f"COPY ({query}) TO '{source}' (FORMAT parquet)")
    assert call("map", "pairtree", source, "--column", "id", "-o", target).stderr == ""
    if library == "polars":
        read = package.read_parquet(target).rows()
    else:
        read = package.sql(f"SELECT * FROM '{target}'").fetchall()
    assert read == [(*row, Pairtree().map_id(row[0])) for row in rows]
