"""``pressmark bench``: measurements as a table and as JSON; no test checks a speed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import pressmark
from pressmark.bench import bench_digest, bench_files, default_layouts, first_read, sample_files
from pressmark.bench.digests import hash_plainly
from pressmark.bench.layouts import sample_identifiers
from pressmark.bench.timing import best
from pressmark.cli.common.options import named_layout
from pressmark.fixity import ALGORITHMS, hash_file
from pressmark.layouts import list_layouts

from .conftest import Call

# So short that most measurements are made once.
SHORT = ("--seconds", "0.01")


def lines(output: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines()]


def test_every_layout_is_measured() -> None:
    """Each layout maps the sample identifiers with its default parameters."""
    ids = sample_identifiers()
    assert len(set(ids)) == len(ids)
    layouts = default_layouts()
    assert {layout.name for layout in layouts.values()} == {layout.name for layout in list_layouts()}
    for title, layout in layouts.items():
        assert named_layout(title) == layout
        assert len(set(layout.map_ids(ids[:1000]))) == 1000


def test_the_plain_loop_has_the_same_digests() -> None:
    with sample_files() as (small, large):
        assert small.bytes == 1000 * 4096
        assert len(large.paths) == 1
        for name in ("sha512/256", "blake2b-160", "xxh128"):
            assert hash_plainly(small.paths[:3], name) == [hash_file(path, name)[name] for path in small.paths[:3]]
        folder = Path(large.paths[0]).parent  # type: ignore[arg-type]
        assert folder.is_dir()
    assert not folder.exists()


def test_the_best_of_some_rounds() -> None:
    """Every candidate is called in turn, at least twice."""
    calls: list[int] = []
    times = best([lambda: calls.append(0), lambda: calls.append(1)], 1e-9)
    assert calls[:2] == [0, 1]
    assert all(time > 0 for time in times)


def test_layouts(call: Call) -> None:
    """One object per layout, for the given layouts and parameters."""
    result = call(
        "bench",
        "--only",
        "layouts",
        "--layout",
        "0004",
        "--layout",
        "0003:tupleSize=2",
        "--json",
        "--threads",
        "1",
        *SHORT,
    )
    assert result.exit_code == 0
    one, other, last = lines(result.stdout)
    assert (one["kind"], one["layout"], other["layout"]) == ("layout", "0004", "0003:tupleSize=2")
    for way in ("list", "lines", "hashlib"):
        assert one[way] > 0
    assert one["arrow"] is None or one["arrow"] > 0
    assert (one["pure"] is None) == (one["ratio"] is None) == (pressmark.implementation == "pure")
    assert last["summary"]["machine"]["cores"] >= 1
    assert last["summary"]["seconds"] > 0


def test_digests(call: Call) -> None:
    result = call("bench", "--only", "digests", "-a", "md5,SHA-256", "--json", *SHORT)
    assert result.exit_code == 0
    *rows, _ = lines(result.stdout)
    assert [row["algorithm"] for row in rows] == ["md5", "sha256"]
    for row in rows:
        for size in ("small", "large"):
            assert all(row[size][name] > 0 for name in ("pressmark", "loop", "memory", "ratio"))


def test_a_folder(call: Call, tmp_path: Path) -> None:
    """The files of a folder are hashed, and not changed."""
    (tmp_path / "files").mkdir()
    for name in ("one", "two"):
        (tmp_path / "files" / name).write_text(name * 1000)
    result = call("bench", "files", "--only", "folder", "-a", "sha512,blake3", "--json", *SHORT)
    assert result.exit_code == 0
    sha512, blake3, _ = lines(result.stdout)
    # Their number depends on the time available.
    assert (sha512["folder"], sha512["bytes"]) == ("files", 3000 * sha512["files"])
    assert sha512["first_read"] > 0
    assert blake3["first_read"] is None
    assert sorted(one.name for one in (tmp_path / "files").iterdir()) == ["one", "two"]


def test_the_first_read(tmp_path: Path) -> None:
    """Unreadable files are counted, and the others are measured."""
    for name in ("one", "two"):
        (tmp_path / name).write_text(name * 1000)
    (tmp_path / "gone").symlink_to("nowhere")
    files, rate = first_read(str(tmp_path), "sha512", 3600)
    assert [Path(os.fsdecode(path)).name for path in files.paths] == ["one", "two"]
    assert (files.bytes, files.left_out, files.failed, files.whole) == (6000, 0, 0, True)
    assert rate is not None


def test_tables(call: Call, tmp_path: Path) -> None:
    """The text output describes the machine, with a table per kind of measurement."""
    (tmp_path / "files").write_text("one")
    arguments = ("--only", "layouts", "--only", "digests", "--only", "folder", "--layout", "0002", "-a", "md5")
    result = call("bench", "files", *arguments, *SHORT)
    assert result.exit_code == 0
    assert result.stdout.startswith("pressmark ")
    for text in (
        "Identifiers per second",
        "Bytes per second: 1,000 files",
        "Bytes per second: 1 file of files, 3 B",
        "0002",
        "md5",
    ):
        assert text in result.stdout


def test_every_algorithm_can_be_measured() -> None:
    with sample_files() as samples:
        for name in ALGORITHMS:
            assert bench_files(samples[1], name, 1e-9).ratio > 0
        assert bench_digest("md5", samples, 1e-9).small.memory is not None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--only", "folder"), "pressmark: --only folder needs FOLDER\n"),
        (("nowhere",), "pressmark: nowhere: no such file or directory\n"),
        (("-a", "md6"), "pressmark: algorithm 'md6': unknown"),
        (("--layout", "0099"), "pressmark: --layout '0099': unknown layout '0099'; known layouts:"),
        (("--layout", "0003:size=2"), "pressmark: --layout '0003:size=2': size: unknown parameter"),
        (("--seconds", "0"), "pressmark: "),
    ],
)
def test_usage_errors(call: Call, arguments: tuple[str, ...], message: str) -> None:
    result = call("bench", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(message)
    assert result.stderr.count("\n") == 1


def test_a_folder_without_bytes(call: Call, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "nothing").touch()
    assert first_read(str(tmp_path / "empty"), "md5")[1] is None
    result = call("bench", "empty", "--only", "folder", *SHORT)
    assert result.exit_code == 1
    assert result.stderr == "pressmark: empty: no file with readable bytes\n"
