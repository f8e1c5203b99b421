"""A server that no longer answers ends a command with one line, wherever that happens; nothing else is begun."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from pressmark import bagit
from pressmark.buckets.memory import MemoryBucket
from pressmark.errors import StoreError
from pressmark.stores.audits import audit
from support.memory_addresses import put_tree, use_memory
from support.trees import write
from ways.stores import make_store

from .conftest import Call

GONE = "pressmark: 's3://memory': no request was answered\n"
NAMES = ["a", "b"]
ROOT = "s3://memory/root"
TABLE = ["bag", "create", "--table", "table.csv", "-o", "s3://memory/new"]


def _store(kind: str) -> Callable[[MemoryBucket, Path], object]:
    def prepare(bucket: MemoryBucket, folder: Path) -> None:
        objects = {name: {"f.txt": name.encode(), "deep/g.txt": b"more"} for name in NAMES}
        put_tree(bucket, make_store(kind, folder / "store", objects), "root")
        rows = "".join(f"{name}\tstore-source-{number}\n" for number, name in enumerate(NAMES))
        (folder / "objects.tsv").write_text(rows)

    return prepare


def _bags(bucket: MemoryBucket, folder: Path) -> None:
    for name in NAMES:
        write(folder / name, {"f.txt": name.encode()})
        bagit.create(folder / name, folder / f"{name}.bag")
        put_tree(bucket, folder / f"{name}.bag", f"bags/{name}")
    (folder / "table.csv").write_text("path\na\nb\n")


COMMANDS: dict[str, tuple[Callable[[MemoryBucket, Path], object], list[str]]] = {
    "audit of bags": (_store("bags"), ["store", "audit", ROOT, "--state", "state"]),
    "audit of a root": (_store("ocfl"), ["store", "audit", ROOT, "--state", "state"]),
    "check of bags": (_store("bags"), ["store", "check", ROOT, "--digests"]),
    "check of a root": (_store("ocfl"), ["store", "check", ROOT, "--digests"]),
    "compare": (_store("ocfl"), ["store", "compare", ROOT, "store", "--digests"]),
    "put again": (_store("ocfl"), ["store", "put", ROOT, "--from", "objects.tsv"]),
    "report": (_store("bags"), ["store", "report", ROOT, "-o", "page.html"]),
    "table": (_bags, TABLE),
    "table of archives": (
        _bags,
        [*TABLE, "--archive", "zip"],
    ),
    "validate": (_bags, ["bag", "validate", *(f"s3://memory/bags/{name}" for name in NAMES)]),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_request(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    """A single request without an answer, whichever it is, ends the command, and names no object."""
    monkeypatch.setattr(audit, "PAUSE", 0.001)
    prepare, arguments = COMMANDS[command]
    bucket = use_memory(monkeypatch)
    prepare(bucket, tmp_path)
    keys = bucket.keys
    for number in count(1, 3):
        bucket = use_memory(monkeypatch)
        for key, data in keys.items():
            bucket.put(key, data)
        turns = count(1)  # two for each request: before it takes effect, and after

        def fall_silent(_call: str, _key: bytes, turns: Iterator[int] = turns, number: int = number) -> None:
            if next(turns) == number:
                raise StoreError("s3://memory", "no request was answered") from TimeoutError("silent")

        bucket.on_request = fall_silent
        done = call(*arguments)
        (tmp_path / "state").unlink(missing_ok=True)
        if next(turns) <= number:
            break
        *before, last = done.stderr.splitlines(keepends=True)
        assert (done.exit_code, last, [line for line in before if "answered" in line]) == (1, GONE, []), number
    assert (done.exit_code, number > 10) == (0, True)
