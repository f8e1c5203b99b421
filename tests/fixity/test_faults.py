"""Files that change or fail during the read: each has its outcome, the others their digests."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from pressmark.fixity import hash_files
from pressmark.fixity.hasher import READ_SIZE
from support.implementations import Implementation

from .conftest import Run
from .trees import content, expected

SMALL, LONG = 5000, 3 * READ_SIZE + 17

# Name of a file -> its size and error; None for a digest of its content.
FILES: dict[str, tuple[int, str | None]] = {
    "append-long": (LONG, f"size changed from {LONG} to {LONG + 4} bytes while it was read"),
    "append-small": (SMALL, f"size changed from {SMALL} to {SMALL + 4} bytes while it was read"),
    "append-empty": (0, "size changed from 0 to 4 bytes while it was read"),
    "chmod-long": (LONG, None),
    "chmod-small": (SMALL, None),
    "delete-long": (LONG, "deleted while it was read"),
    "eio-long": (LONG, os.strerror(5)),
    "eio-small": (SMALL, os.strerror(5)),
    "late-long": (LONG, os.strerror(5)),
    "plain-long": (LONG, None),
    "plain-small": (SMALL, None),
    "replace-long": (LONG, "replaced while it was read"),
    "rewrite-long": (LONG, "modified while it was read"),
    "rewrite-small": (SMALL, "modified while it was read"),
    "truncate-long": (LONG, f"size changed from {LONG} to 10 bytes while it was read"),
    "truncate-small": (SMALL, f"size changed from {SMALL} to 10 bytes while it was read"),
}


@pytest.mark.parametrize("read", ["parallel", "sequential"])
@pytest.mark.parametrize("algorithms", ["sha512", "md5,blake3", "sha3-256"])
def test_changes_and_failures(
    implementation: Implementation, faults: str, run: Run, tmp_path: Path, algorithms: str, read: str
) -> None:
    """A file's name determines its fault at the first read; the run is complete and correct for all others."""
    folder = tmp_path / "files"
    folder.mkdir()
    # Enough files of each kind for lanes.
    wanted, said = {}, {}
    for turn in range(8):
        for number, (name, (size, message)) in enumerate(FILES.items()):
            path = folder / f"{name}-{turn}"
            data = content(number, size)
            path.write_bytes(data)
            if message is None:
                wanted[f"files/{path.name}"] = {name: expected(data, name) for name in algorithms.split(",")}
            else:
                said[f"files/{path.name}"] = message
    done = run(
        *("hash", "files", "-a", algorithms, "--format", "json", "--read", read, "--threads", "2"),
        variables={"LD_PRELOAD": faults, "PRESSMARK_IMPLEMENTATION": str(implementation)},
    )
    *lines, last = done.stderr.decode().splitlines()
    assert done.returncode == 1
    assert dict(line.removeprefix("pressmark: ").split(": ", 1) for line in lines) == said
    assert last == f"pressmark: {len(said)} of {len(said) + len(wanted)} files failed"
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert {record["path"]: record["digests"] for record in records} == wanted
    assert [record["path"] for record in records] == sorted(wanted)


def test_endless_files_end(implementation: Implementation, tmp_path: Path) -> None:
    """A file that grows endlessly is given up, also one that was empty at first."""
    done = threading.Event()
    paths = [tmp_path / "log", tmp_path / "empty"]
    paths[0].write_bytes(b"x" * 1000)
    paths[1].write_bytes(b"")

    def append() -> None:
        with paths[0].open("ab") as one, paths[1].open("ab") as other:
            while not done.is_set():
                one.write(b"x" * 300_000)
                other.write(b"x" * 300_000)
                if one.tell() > 1 << 28:
                    break

    writer = threading.Thread(target=append)
    writer.start()
    try:
        for outcome in hash_files(paths * 5, ["md5"], threads=2):
            assert outcome.ok or outcome.kind == "changed-while-read"
        assert not done.is_set()
    finally:
        done.set()
        writer.join()
        # Up to 512 MB, which pytest would keep.
        for path in paths:
            path.unlink()
