"""A pipeline as users write it; not run, but checked by mypy and pyright in strict mode.

Objects are put into an OCFL storage root and into bags, the bags are validated, a column is mapped, the storage root is
migrated, and layouts are compared; another thread may read the progress, and cancel.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path

import pressmark
from pressmark import bagit, fixity, migrate, reports, stores
from pressmark.compare import Comparison, compare


def ingest(root: Path, sources: Iterable[Path]) -> dict[str, str]:
    """Store directories as objects, and return the reason for each that is not stored."""
    store = stores.OcflRoot.create(root, layout="0003", user={"name": "Ann"}, message="first delivery")
    failed: dict[str, str] = {}
    for result in store.put_all((source.name, source) for source in sources):
        if result.error is not None:
            failed[str(result.id)] = str(result.error)
        elif result.record is not None:
            print(result.record.id, result.record.path)
    return failed


def bag(source: Path, destination: Path) -> bagit.BagReport:
    """Create a bag, and validate it."""
    created = bagit.create(source, destination, {"Contact-Name": "Ann"}, algorithms=["sha512"])
    print(created.info.first("Contact-Name"))
    report = bagit.validate(destination)
    for problem in report.problems:
        print(problem.kind, problem.severity, problem.message)
    return report


def problems(report: reports.Report) -> list[str]:
    """Return the stable words of all errors."""
    return [problem.kind for problem in report.errors]


def digests(files: Iterable[Path]) -> dict[str, str]:
    """Return the digest of each readable file."""
    found: dict[str, str] = {}
    for outcome in fixity.hash_files(files, ["sha512"]):
        if outcome.digests is not None:
            found[str(outcome.path)] = outcome.digests["sha512"]
    return found


def paths(ids: pressmark.StringColumn) -> list[str | None]:
    """Return the path of each identifier of a column."""
    layout = pressmark.layout("0012", delimiters=[":"], tuple_size=2)
    errors: list[pressmark.IdentifierError] = []
    mapped = layout.map(ids, on_error="none", errors=errors)
    for error in errors:
        print(error.index, error.reason)
    config = layout.config()
    print(config["extensionName"])
    return list(mapped)


def move(source: Path, destination: Path, progress: pressmark.Progress) -> migrate.Run:
    """Migrate all objects, or continue an interrupted run."""
    work = migrate.work_folder(destination)
    if migrate.state(work) == "begun":
        return migrate.resume(work, workers=2, max_errors=100, progress=progress)
    plan = migrate.plan(
        source,
        destination,
        to="ocfl",
        layout=pressmark.HashedNTuple(tuple_size=2),
        source_options={"ignore": [".DS_Store"]},
        verify="reread",
        progress=progress,
    )
    run = migrate.run(plan, workers=2, progress=progress)
    for row in run.rows():
        print(row.id, row.status, row.error)
    return run


def later(work: Path) -> bool:
    """Migrate what changed since a run, and read all objects again."""
    run = migrate.run(migrate.catch_up(work, verify="copy"), processes=False)
    return run.ok and migrate.verify(run.plan, processes=False).ok


def choose(ids: Iterable[str]) -> Comparison:
    """Compare layouts."""
    found = compare(ids, ["0003", pressmark.layout("0004")], files_per_object=3)
    for one in found.layouts:
        print(one.name, one.lengths.path_bytes.max, one.collisions.equal)
    return found


def main(source: Path, destination: Path) -> None:
    """Migrate in a thread, and cancel after a minute."""
    progress = pressmark.Progress(lambda now: print(now.stage, now.done, now.total, now.bytes))
    worker = threading.Thread(target=move, args=(source, destination, progress))
    worker.start()
    worker.join(60)
    if worker.is_alive():
        print(f"{progress.done:,} objects so far")
        progress.cancel()
    worker.join()


def mistakes(source: Path, destination: Path) -> None:
    """Calls that fail at run time fail in the type checker."""
    migrate.plan(source, destination, to="ocfl", layuot="0003")  # type: ignore[call-arg]
    migrate.plan(source, destination, to="ocfl", layout={"extensionName": "0003"})  # type: ignore[arg-type]
    migrate.run(destination, client="tcp://node1:8786")  # type: ignore[arg-type]
    pressmark.layout("0003", tuple_size=2.5)  # type: ignore[arg-type]
    compare(1, ["0003"])  # type: ignore[arg-type]
