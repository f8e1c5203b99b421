"""Times of files outside of 64 bits of nanoseconds, years 1677 to 2262, are read, compared and reported like others."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pressmark import bagit, migrate, stores
from pressmark.fixity import hash_files
from pressmark.fixity.ledger import Ledger
from support.implementations import Implementation

from .conftest import Run

#: Before 1677, before 1970, and after 2262, in seconds.
TIMES = [-9_300_000_000, -1, 9_300_000_000]
SIZES = (5, 70_000, 600_000)


@pytest.fixture(params=TIMES)
def files(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Return a folder of files of all sizes with the same time; skip the test if the file system cannot store it."""
    folder = tmp_path / "files"
    (folder / "d").mkdir(parents=True)
    wanted = request.param * 10**9 + 999_999_999
    for size in SIZES:
        for path in (folder / str(size), folder / "d" / str(size)):
            path.write_bytes(b"x" * size)
            os.utime(path, ns=(wanted, wanted))
            if path.stat().st_mtime_ns != wanted:
                pytest.skip("file system without this time")
    return folder


def paths(folder: Path) -> list[bytes]:
    return sorted(os.fsencode(path) for path in folder.rglob("*") if path.is_file())


def test_hashing(implementation: Implementation, files: Path, tmp_path: Path) -> None:
    """The outcome and the record in the ledger have the time that the system reports."""
    with Ledger(tmp_path / "l", "sha512", ["/r"]) as ledger:
        for outcome in hash_files(paths(files), "sha512", ledger=ledger):
            status = os.stat(outcome.path)
            assert (outcome.kind, outcome.mtime_ns, outcome.ctime_ns) == (None, status.st_mtime_ns, status.st_ctime_ns)
    with Ledger(tmp_path / "l", "sha512", ["/r"]) as ledger:
        list(hash_files(paths(files), "sha512", ledger=ledger))
        assert (ledger.added, ledger.found) == (0, 2 * len(SIZES))


def test_lines(run: Run, files: Path) -> None:
    """The time of ``hash --format json`` is that of the system."""
    done = run("hash", str(files), "--format", "json")
    assert done.returncode == 0
    found = {json.loads(line)["mtime_ns"] for line in done.stdout.splitlines()}
    assert found == {(files / "5").stat().st_mtime_ns}


def in_place(files: Path, to: Path) -> Path:
    bagit.make_bag(files)
    return files / "data"


def elsewhere(files: Path, to: Path) -> Path:
    bagit.create(files, to)
    return to / "data"


def with_ledger(files: Path, to: Path) -> Path:
    with Ledger(to, "sha512", [str(files)]) as ledger:
        bagit.make_bag(files, ledger=ledger)
    return files / "data"


def archived(files: Path, to: Path) -> Path:
    archive = to.with_suffix(".tar")
    bagit.create_archive(files, archive)
    bagit.unpack(archive, to)
    return to / "data"


@pytest.mark.parametrize("make", [in_place, elsewhere, with_ledger, archived])
def test_bags(implementation: Implementation, files: Path, tmp_path: Path, make: Callable[[Path, Path], Path]) -> None:
    """A bag is created of such files, large and small, and copies keep their time where copies do."""
    before = {path.relative_to(files): path.stat() for path in files.rglob("*") if path.is_file()}
    data = make(files, tmp_path / "to")
    assert bagit.validate(data.parent).problems == []
    for path, status in before.items():
        kept = 10**9 if make is archived else 1  # archives have whole seconds
        assert (data / path).stat().st_mtime_ns == status.st_mtime_ns // kept * kept


def test_small_bags(implementation: Implementation, files: Path) -> None:
    """A directory of small files only becomes a bag."""
    for path in files.rglob("*"):
        if path.is_file() and path.stat().st_size > 5:
            path.unlink()
    bagit.make_bag(files)
    assert bagit.validate(files).problems == []


@pytest.mark.parametrize("kind", ["ocfl", "bags", "pairtree"])
def test_stores(implementation: Implementation, files: Path, tmp_path: Path, kind: str) -> None:
    """Such files are stored and migrated, as small and as large objects, from a list and one by one."""
    source = stores.create("pairtree", tmp_path / "source")
    with source.ingest() as batch:
        for size in SIZES:
            batch.put(f"a:{size}", {str(size): files / str(size)})
    source.put("a:all", files)
    target = None if kind == "pairtree" else "0002"
    plan = migrate.plan(tmp_path / "source", tmp_path / "to", to=kind, layout=target)
    assert migrate.run(plan, processes=False).by_status == {"ok": 4}
    assert stores.open(tmp_path / "to").check().ok
    again = migrate.plan(tmp_path / "source", tmp_path / "to", to=kind, layout=target, work=tmp_path / "again")
    assert set(migrate.run(again, processes=False).by_status) <= {"exists_same"}
