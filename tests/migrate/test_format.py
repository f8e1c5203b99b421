"""Work folders on disk: the present format is continued and finished, an earlier one refused, with nothing touched.

The files are written here key by key, without help from the package.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from pressmark import migrate, stores
from pressmark.cli import main
from pressmark.errors import JobError, MigrationError
from support.trees import snapshot

from .stores_to_migrate import contents, made

IDS = ["obj1", "obj2", "obj3"]
TARGETS = ["7e4/85f/c04/obj1", "71d/00f/404/obj2", "67f/15e/751/obj3"]
NONCE = "6505504281934b49b491f6a2eeee5558"
LAYOUT = {
    "extensionName": "0003-hash-and-id-n-tuple-storage-layout",
    "digestAlgorithm": "sha256",
    "tupleSize": 3,
    "numberOfTuples": 3,
}
CONTENT = b"content"


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def compact(record: Any, sort_keys: bool = False) -> bytes:
    return json.dumps(record, sort_keys=sort_keys, separators=(",", ":")).encode()


def written(path: Path, record: Any) -> None:
    path.write_text(json.dumps(record, indent=2) + "\n", encoding="ascii")


def state(status: os.stat_result) -> str:
    """Return the digest over the entries of an object with the file ``data.txt``: content, then times of status."""
    times = *divmod(status.st_mtime_ns, 10**9), *divmod(status.st_ctime_ns, 10**9)
    stamp = struct.pack("=5q", status.st_size, *times)
    parts = (b"data.txt\0" + stamp[:24], b"data.txt\0" + stamp[24:])
    return ".".join(hashlib.blake2b(part, digest_size=16).hexdigest() for part in parts)


class Folder:
    """The work folder of a migration from a Pairtree to OCFL, with one object per chunk.

    :param move: the run removes sources
    :param without: what an earlier format did not record: the state of ``entries``, or these and the ``list``
    """

    def __init__(self, source: Path, destination: Path, *, move: bool = False, without: str = "") -> None:
        self.without = without
        self.path = Path(f"{destination}.migration")
        self.source = source
        self.destination = destination
        self.options = {
            "source": str(source),
            "source_kind": "pairtree",
            "destination": str(destination),
            "to": "ocfl",
            "layout": LAYOUT,
            "source_layout": None,
            "source_options": {},
            "destination_options": {},
            "copy_mode": "auto",
            "verify": "copy",
            "move": move,
            "replace": False,
            "profile": "unix",
            "links": "refuse",
            "algorithms": ["sha512"],
            "improper": "skip",
        }

    def planned(self) -> Folder:
        """Write the files of a finished plan."""
        self.path.mkdir()
        lines = []
        for identifier, target in zip(IDS, TARGETS, strict=True):
            path = f"pairtree_root/{identifier[:2]}/{identifier[2:]}"
            (file,) = (self.source / path / identifier).iterdir()
            status = file.stat()
            entry = {
                "id": identifier,
                "source_id": identifier,
                "source": path,
                "target": target,
                "encapsulation": identifier,
                "files": 1,
                "bytes": len(CONTENT),
                **self._state(status),
            }
            lines.append(compact(entry) + b"\n")
        entries = b"".join(lines)
        (self.path / "entries.jsonl").write_bytes(entries)
        for name in ("known.jsonl", "refused.jsonl", "warnings.jsonl", "driver.lock"):
            (self.path / name).touch()
        self._job(self.path, "migrate", "objects", "entries.jsonl", lines, {**self.options, "entries": sha256(entries)})
        plan = {
            "work": str(self.path),
            "options": self.options,
            "objects": 3,
            "files": 3,
            "bytes": 3 * len(CONTENT),
            "chunks": 3,
            "mode": "copy",
            "invalid": 0,
            "missing": 0,
            "unchanged": 0,
            "warnings": {},
            "sha256": sha256(entries),
            "known_sha256": sha256(b""),
            "map_sha256": "",
            "ids_sha256": "",
            "seconds": 0.003,
            "before": None,
        }
        if self.without == "list":
            del plan["ids_sha256"]
        written(self.path / "plan.json", plan)
        return self

    def _state(self, status: os.stat_result) -> dict[str, Any]:
        if self.without:
            return {"changed": max(status.st_mtime_ns, status.st_ctime_ns)}
        return {"entries": state(status)}

    def _job(
        self, folder: Path, kind: str, unit: str, listing: str, lines: list[bytes], parameters: dict[str, Any]
    ) -> None:
        """Write the run of a job over lines, one line per chunk."""
        self.key = sha256(compact([kind, 1, self.options], sort_keys=True))
        chunks, start = [], 0
        for number, line in enumerate(lines):
            chunk = {"id": f"{number:06}", "kind": unit, "source": listing, "start": start}
            chunks.append(compact({**chunk, "stop": start + len(line), "nbytes": len(CONTENT)}) + b"\n")
            start += len(line)
        plan = b"".join(chunks)
        (folder / "plan.jsonl").write_bytes(plan)
        (folder / "nonce").write_text(NONCE)
        for name in ("receipts", "output"):
            (folder / name).mkdir()
        run = {"format": 1, "version": "0.1.0", "job_key": self.key, "plan_sha256": sha256(plan), "nonce": NONCE}
        written(folder / "run.json", {**run, "parameters": parameters})

    def begun(self, done: int = 0) -> Folder:
        """Write the files of a run killed after some chunks, with their objects in the destination."""
        self.planned()
        written(self.path / "begun.json", {"at": "2026-11-22T17:13:41+00:00", "pid": 22324})
        stores.create("ocfl", self.destination, "0003")
        for number in range(done):
            stores.open(self.destination).put(IDS[number], {"data.txt": self.source.parent / "file-source-0"})
            self._receipt(self.path, number, self._row(number))
        (self.path / "driver.lock").write_text('["gone", 999999]')
        return self

    def _receipt(self, folder: Path, number: int, line: bytes) -> None:
        name = f"{number:06}.b308acf29e66.jsonl"
        (folder / "output" / name).write_bytes(line)
        receipt = {
            "chunk": f"{number:06}",
            "job_key": self.key,
            "n": 1,
            "bytes": len(CONTENT),
            "errors": 0,
            "by_status": {"ok": 1},
            "output": name,
            "sha256": sha256(line),
            "host": "gone",
            "pid": 22324,
            "seconds": 0.1,
        }
        check = f"{crc32(compact(receipt, sort_keys=True)):08x}"
        (folder / "receipts" / f"{number:06}.json").write_bytes(compact({**receipt, "crc32": check}) + b"\n")

    def _row(self, number: int) -> bytes:
        entry = json.loads((self.path / "entries.jsonl").read_bytes().splitlines()[number])
        line = b"%b  data.txt\n" % hashlib.sha512(CONTENT).hexdigest().encode()
        row = {
            **{name: entry[name] for name in ("id", "source_id", "source", "target")},
            "status": "ok",
            "mode": "copy",
            "files": 1,
            "bytes": len(CONTENT),
            "algorithm": "sha512",
            "digest": hashlib.sha512(line).hexdigest(),
            "verify": "copy",
            "error_code": None,
            "error": None,
            "started": "2026-11-22T17:13:41.601Z",
            "seconds": 0.005,
            "host": "gone",
        }
        if self.without:
            row["changed"] = entry["changed"] if self.options["move"] else 0
        else:
            row["entries"] = entry["entries"] if self.options["move"] else ""
        return compact(row) + b"\n"

    def finished(self) -> Folder:
        """Write the files of a finished run."""
        self.begun(done=3)
        rows = b"".join(map(self._row, range(3)))
        (self.path / "rows.jsonl").write_bytes(rows)
        (self.path / "remaining.txt").touch()
        (self.path / "driver.lock").unlink()
        written(
            self.path / "finished.json", {"at": "2026-11-22T17:13:41+00:00", "rows_sha256": sha256(rows), "ok": True}
        )
        return self

    def removing(self, removed: int = 1) -> Folder:
        """Write the files of a run with ``move`` killed while it removes sources."""
        self.begun(done=3)
        lines = [self._row(number) for number in range(3)]
        (self.path / "copied.jsonl").write_bytes(b"".join(lines))
        folder = self.path / "removal"
        folder.mkdir()
        self._job(folder, "migrate-remove", "rows", "../copied.jsonl", lines, {"rows": sha256(b"".join(lines))})
        for number in range(removed):
            stores.open(self.source).delete(IDS[number])
            self._receipt(folder, number, lines[number])
        return self


@pytest.fixture
def pairtree(tmp_path: Path) -> Path:
    return made(tmp_path / "source", IDS, {"data.txt": CONTENT})


def statuses(run: migrate.Run) -> list[str]:
    return [row.status for row in run.rows()]


@pytest.fixture(autouse=True)
def this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock of a dead process on this machine does not block a run."""
    monkeypatch.setattr("platform.node", lambda: "gone")


def test_a_plan_is_carried_out(pairtree: Path, tmp_path: Path) -> None:
    folder = Folder(pairtree, tmp_path / "root").planned()
    assert migrate.state(folder.path) == "planned"
    run = migrate.run(folder.path, processes=False)
    assert run.ok
    assert contents(tmp_path / "root") == contents(pairtree)


@pytest.mark.parametrize("done", [0, 1, 3])
def test_a_killed_run_is_resumed(pairtree: Path, tmp_path: Path, done: int) -> None:
    folder = Folder(pairtree, tmp_path / "root").begun(done)
    before = [path.read_bytes() for path in sorted((folder.path / "output").iterdir())]
    options = migrate.make_options(pairtree, tmp_path / "root", to="ocfl", layout="0003")
    run = migrate.resume(folder.path, options=options, processes=False)
    assert run.ok
    assert statuses(run) == ["ok"] * 3
    # Finished chunks are not repeated.
    assert [path.read_bytes() for path in sorted((folder.path / "output").iterdir())][:done] == before
    assert contents(tmp_path / "root") == contents(pairtree)
    assert migrate.verify(folder.path, processes=False).ok


def test_a_run_that_was_killed_while_it_removed_sources(pairtree: Path, tmp_path: Path) -> None:
    before = contents(pairtree)
    folder = Folder(pairtree, tmp_path / "root", move=True).removing()
    run = migrate.resume(folder.path, processes=False)
    assert run.ok
    assert contents(tmp_path / "root") == before
    assert contents(pairtree) == {}


def test_a_finished_run(pairtree: Path, tmp_path: Path) -> None:
    folder = Folder(pairtree, tmp_path / "root").finished()
    assert migrate.resume(folder.path, processes=False).ok
    assert migrate.verify(folder.path, processes=False).by_status == {"ok": 3}
    assert migrate.work_folder(tmp_path / "root") == f"{folder.path}-2"
    assert migrate.report(folder.path, tmp_path / "rows.csv").done.objects == 3
    stores.open(pairtree).put("obj4", {"data.txt": tmp_path / "file-source-0"})
    plan = migrate.catch_up(folder.path)
    assert (plan.objects, plan.unchanged) == (1, 3)
    assert migrate.run(plan, processes=False).by_status == {"ok": 1}
    assert sum(migrate.verify(plan, processes=False).by_status.values()) == 4


def test_a_run_that_has_begun_is_not_cleared(pairtree: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = Folder(pairtree, tmp_path / "root").begun(1)
    before = {path: path.read_bytes() for path in folder.path.rglob("*.json*") if path.is_file()}
    call = ["migrate", str(pairtree), str(tmp_path / "root"), "--to", "ocfl", "--layout", "0003"]
    assert main(call, standalone_mode=False) == 2
    assert "--resume to continue" in capfd.readouterr().err
    with pytest.raises(MigrationError, match="has started; resume it"):
        migrate.plan(pairtree, tmp_path / "root", to="ocfl", layout="0003", work=folder.path)
    assert {path: path.read_bytes() for path in folder.path.rglob("*.json*") if path.is_file()} == before


def test_another_format_is_refused(pairtree: Path, tmp_path: Path) -> None:
    """An unknown format is refused with its number and the version that can continue; nothing is changed."""
    folder = Folder(pairtree, tmp_path / "root").begun(1)
    run = json.loads((folder.path / "run.json").read_bytes())
    written(folder.path / "run.json", {**run, "format": 0, "version": "0.0.7"})
    before = {path: path.read_bytes() for path in folder.path.rglob("*") if path.is_file()}
    with pytest.raises(JobError, match=r"0\.0\.7"):
        migrate.resume(folder.path, processes=False)
    assert {path: path.read_bytes() for path in folder.path.rglob("*") if path.is_file()} == before


def test_an_option_that_is_absent_has_its_default(pairtree: Path, tmp_path: Path) -> None:
    """A run without the option is not continued with it."""
    folder = Folder(pairtree, tmp_path / "root", move=True).begun(1)
    options = migrate.make_options(
        pairtree, tmp_path / "root", to="ocfl", layout="0003", move=True, drop_empty_directories=True
    )
    with pytest.raises(MigrationError, match="drop empty directories was off, now on"):
        migrate.resume(folder.path, options=options, processes=False)


def test_a_plan_whose_run_has_not_begun_is_replaced(pairtree: Path, tmp_path: Path) -> None:
    folder = Folder(pairtree, tmp_path / "root").planned()
    assert migrate.plan(pairtree, tmp_path / "root", to="bags", work=folder.path).objects == 3
    shutil.rmtree(folder.path / "output")
    (folder.path / "letter.txt").touch()
    with pytest.raises(MigrationError, match=r"'letter\.txt', which does not belong to a plan"):
        migrate.plan(pairtree, tmp_path / "root", to="bags", work=folder.path)
    assert os.path.exists(folder.path / "entries.jsonl")


# --- earlier formats --------------------------------------------------------------------------------------------------

STAGES: dict[str, Callable[[Folder], Folder]] = {
    "planned": Folder.planned,
    "begun": lambda folder: folder.begun(1),
    "removing": Folder.removing,
    "finished": Folder.finished,
}
CALLS: dict[str, Callable[[Folder], object]] = {
    "run": lambda folder: migrate.run(folder.path, processes=False),
    "resume": lambda folder: migrate.resume(folder.path, processes=False),
    "verify": lambda folder: migrate.verify(folder.path, processes=False),
    "catch up": lambda folder: migrate.catch_up(folder.path),
    "report": lambda folder: migrate.report(folder.path, folder.path.parent / "rows.csv"),
}


@pytest.mark.parametrize("without", ["entries", "list"])
@pytest.mark.parametrize("stage", STAGES)
def test_an_earlier_format_is_refused(
    pairtree: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], stage: str, without: str
) -> None:
    """In one line that says what to do; work folder, source and destination stay as they are."""
    folder = STAGES[stage](Folder(pairtree, tmp_path / "root", move=stage == "removing", without=without))
    before = snapshot(tmp_path)
    what = "planned by an earlier version of Pressmark, in a format that is no longer supported"
    what += "; continue with that version, or plan the migration in another work folder"
    for call in CALLS.values():
        with pytest.raises(MigrationError) as caught:
            call(folder)
        assert caught.value.reason == what
    verb = "--verify-again" if stage == "finished" else "--resume"
    command = ["migrate", str(pairtree), str(tmp_path / "root"), "--to", "ocfl", "--layout", "0003", verb]
    assert main(command, standalone_mode=False) == 2
    assert capfd.readouterr().err == f"pressmark: '{folder.path}': {what}\n"
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("without", ["entries", "list"])
def test_a_plan_of_an_earlier_format_is_not_replaced(pairtree: Path, tmp_path: Path, without: str) -> None:
    folder = Folder(pairtree, tmp_path / "root", without=without).planned()
    before = snapshot(tmp_path)
    with pytest.raises(MigrationError, match="a plan of an earlier version of Pressmark; choose another work folder"):
        migrate.plan(pairtree, tmp_path / "root", to="ocfl", layout="0003", work=folder.path)
    assert snapshot(tmp_path) == before


def test_a_catch_up_with_an_earlier_format(pairtree: Path, tmp_path: Path) -> None:
    """A run whose earlier run is of an earlier format."""
    folder = Folder(pairtree, tmp_path / "root").finished()
    plan = migrate.catch_up(folder.path)
    assert migrate.run(plan, processes=False).ok
    record = json.loads((folder.path / "plan.json").read_bytes())
    del record["ids_sha256"]
    written(folder.path / "plan.json", record)
    for call in (migrate.catch_up, migrate.verify):
        with pytest.raises(MigrationError, match="planned by an earlier version"):
            call(plan)
