"""The run: layout files first, then chunk after chunk, then what is left to do when all of them are in place.

::

    <work>/
    ├── begun.json        the plan is carried out; it is not replaced any more
    ├── output/           the rows of each chunk
    ├── copied.jsonl      with ``move``: all rows, before sources were removed
    ├── removal/          with ``move``: the work folder of the removal
    ├── rows.jsonl        all rows: the plan's order, then those of what was left out by the plan
    ├── remaining.txt     identifiers of what is not done: a list for another plan
    ├── finished.json     how it ended
    ├── migrated.jsonl    of a catch-up: its rows, and those of the runs before it that have none there
    └── verify-1/, …      work folders of verifications

Whenever it is interrupted, doing it again goes on: receipts say which chunks are done, and everything after the chunks
can be done twice.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import count
from time import monotonic
from typing import Any, NamedTuple

from pressmark import jobs
from pressmark.errors import JobError, MigrationError, StoreError
from pressmark.fs.atomic import Replacement
from pressmark.fs.durable import flush_directory
from pressmark.jobs.workdir import work_errors
from pressmark.migrate.object_digest import sha256_of
from pressmark.migrate.options import Options
from pressmark.migrate.phases import OnEvent, Progress
from pressmark.migrate.planning.entry import Entry
from pressmark.migrate.planning.plan import BEGUN, ENTRIES, KNOWN, PLANNED, Plan, job_of, write_record
from pressmark.migrate.rows import GOOD, KEPT, Row
from pressmark.stores.directories import prune_upward
from pressmark.stores.store import octets

__all__ = [
    "COPIED",
    "FINISHED",
    "REMAINING",
    "ROWS",
    "TREES",
    "Run",
    "Workers",
    "finished_rows",
    "is_of_run",
    "output_lines",
    "refuse_others",
    "run_plan",
    "state",
    "verify_run",
]

ROWS, COPIED, REMAINING, FINISHED = "rows.jsonl", "copied.jsonl", "remaining.txt", "finished.json"
_REMOVAL, _VERIFY = "removal", "verify-"
_OWN = PLANNED | {BEGUN, ROWS, COPIED, REMAINING, FINISHED}
_SUBFOLDERS = frozenset({"receipts", "output"})
#: The directory of a source that its objects are in, and that layouts do not name.
TREES = {"pairtree": b"pairtree_root", "vitro": b"file_storage_root"}


class Workers(NamedTuple):
    """Who does the chunks.

    :ivar workers: how many; :data:`None` for as many as there are cores, or as the cluster has threads
    :ivar threads: of this process, instead of processes
    :ivar executor: any of :mod:`concurrent.futures`; ``workers`` says how many it has
    :ivar client: of a Dask cluster
    """

    workers: int | None = None
    threads: bool = False
    executor: Executor | None = None
    client: Any = None

    def drive(self, job: Any, work: jobs.WorkFolder, **how: Any) -> jobs.Summary:
        """Do the chunks that have no receipt.

        :raises JobError: the run cannot begin or go on
        """
        if self.client is not None:
            return jobs.run_dask(job, work, self.client, self.workers, **how)
        if self.executor is not None:
            count = self.workers or getattr(self.executor, "_max_workers", None) or os.cpu_count() or 1
            return jobs.run_executor(job, work, self.executor, count, **how)
        return jobs.run_local(job, work, self.workers, self.threads, **how)


@dataclass(frozen=True)
class Run:
    """How a migration, or its verification, ended.

    :ivar work: the work folder
    :ivar plan: what was to be done
    :ivar objects: that have a row
    :ivar files: of those that are done
    :ivar bytes: likewise
    :ivar by_status: how many objects have which status
    :ivar by_mode: how the files of how many objects came: ``rename``, ``reflink``, ``copy``, ``hardlink``
    :ivar kept: with ``move``, objects that are done, but whose source could not be removed
    :ivar noted: objects that are done, but of which something was left out: the row's ``error`` names it
    :ivar remaining: objects of the plan that have no row yet
    :ivar failed: chunks that were given up
    :ivar stopped: why it ended before all was done: ``stop``, ``max_errors``; :data:`None` where it did not
    :ivar pruned: directories of the source that were empty in the end, and removed
    :ivar seconds: it took, from the start of this call
    :ivar rows_path: the file with the rows
    """

    work: str
    plan: Plan
    objects: int
    files: int
    bytes: int
    by_status: dict[str, int]
    by_mode: dict[str, int]
    kept: int = 0
    noted: int = 0
    remaining: int = 0
    failed: tuple[jobs.Failed, ...] = ()
    stopped: str | None = None
    pruned: int = 0
    seconds: float = 0.0
    rows_path: str = ""

    @property
    def complete(self) -> bool:
        """Whether every chunk was done."""
        return not self.remaining and not self.failed and self.stopped is None

    @property
    def ok(self) -> bool:
        """Whether every object is in the destination, and verified."""
        return self.complete and not self.kept and not self.by_status.keys() - GOOD

    @property
    def exit_code(self) -> int:
        """0 where all is well, 1 where something is not; a run that is refused raises an error instead, which is 2."""
        return 0 if self.ok else 1

    def rows(self) -> Iterator[Row]:
        """Give every row, in the order of the plan."""
        with open(self.rows_path, "rb") as lines:
            for line in lines:
                yield Row.parse(line)

    def record(self) -> dict[str, Any]:
        """Return it as it stands in JSON, without the plan."""
        record = {key: value for key, value in asdict(self).items() if key not in ("plan", "rows_path")}
        return {"ok": self.ok, "complete": self.complete, **record, "failed": [one._asdict() for one in self.failed]}


def state(work: str | os.PathLike[str]) -> str:
    """Return how far a work folder is: ``none``, ``planned``, ``begun`` or ``finished``."""
    folder = os.fspath(work)
    for name, word in ((FINISHED, "finished"), (BEGUN, "begun"), ("plan.json", "planned")):
        if os.path.exists(os.path.join(folder, name)):
            return word
    return "none"


def is_of_run(path: str, work: str) -> bool:
    """Return whether a file is one that a run, or its plan, has for itself.

    :param work: the work folder of the next run, which need not be there
    """
    folder, name = os.path.split(os.path.realpath(path))
    if os.path.basename(folder) in _SUBFOLDERS:
        folder = os.path.dirname(folder)
    elif name not in _OWN:
        return False
    return folder == os.path.realpath(work) or os.path.exists(os.path.join(folder, "run.json"))


def run_plan(
    plan: Plan,
    workers: Workers,
    *,
    resume: bool = False,
    options: Options | None = None,
    max_errors: int | None = None,
    on_event: OnEvent | None = None,
    stop: Callable[[], bool] | None = None,
) -> Run:
    """Carry out a plan.

    :param resume: go on with a run that was begun
    :param options: what is asked for now, to be compared with what the run began with
    :param max_errors: end when more objects than this went wrong
    :param stop: asked every now and then; once it says :data:`True`, no more chunks are begun
    :raises MigrationError: it was begun before, or with other options; or the destination places objects otherwise
    :raises StoreError: the destination cannot be made
    :raises JobError: the run cannot go on
    """
    if options is not None:
        refuse_others(plan, options)
    before = state(plan.work)
    if before in ("begun", "finished") and not resume:
        what = (
            "is not finished: resume it" if before == "begun" else "is finished: name another work folder to run again"
        )
        raise _refusal(plan, f"the run in {plan.work} {what}")
    started = monotonic()
    job = job_of(plan.options)
    work = jobs.WorkFolder.open(plan.work)
    work.check(job, {**plan.options.record(), "entries": plan.sha256})
    tell = on_event or (lambda _event: None)
    with work_errors(plan.work), work.held():
        _check_planned(plan)
        if not os.path.exists(os.path.join(plan.work, BEGUN)):
            write_record(os.path.join(plan.work, BEGUN), {"at": _now(), "pid": os.getpid()})
        try:
            plan.options.create_destination()
        except StoreError as error:
            raise _refusal(plan, f"the destination: {error}") from error
        how = {"max_errors": max_errors, "stop": stop}
        summary = workers.drive(job, work, on_receipt=_Teller("run", plan, work, tell), **how)
        moving = plan.options.move and summary.complete
        merged = _copied(plan, work) if moving else _merge(plan, work, ROWS)
        pruned = 0
        if moving:
            removal = _remove(plan, workers, tell, how) if merged.removable else None
            if removal is not None:
                summary = summary._replace(failed=removal.failed, stopped=removal.stopped)
            if removal is None or removal.complete:
                merged = _merge_removal(plan, merged)
                tell(Progress("prune", merged.objects, merged.bytes, plan.objects, plan.bytes, merged.by_status))
                pruned = _prune(plan)
        _write_remaining(plan, work, None if merged.all_done else os.path.join(plan.work, merged.name))
        run = merged.run(plan, summary, pruned, round(monotonic() - started, 3))
        if run.complete:
            finished = {"at": _now(), "rows_sha256": merged.sha256, **run.record()}
            write_record(os.path.join(plan.work, FINISHED), finished)
        tell(Progress("merge", run.objects, run.bytes, plan.objects, plan.bytes, run.by_status))
    return run


def _refusal(plan: Plan, what: str) -> MigrationError:
    return MigrationError(plan.options.source, plan.options.destination, what)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def refuse_others(plan: Plan, options: Options) -> None:
    """Refuse options that are not those of the plan.

    :raises MigrationError: they are not
    """
    planned, asked = json.loads(plan.options.text()), json.loads(options.text())
    differ = [name for name in planned if planned[name] != asked[name]]
    if differ:
        said = ", ".join(f"{name} was {json.dumps(planned[name])}, not {json.dumps(asked[name])}" for name in differ)
        raise _refusal(plan, f"the run in {plan.work} began with other options ({said}): take those, or plan another")


def _check_planned(plan: Plan) -> None:
    """Make sure that what is to be done, and what was left out, is as it was planned."""
    for name, digest in ((ENTRIES, plan.sha256), (KNOWN, plan.known_sha256)):
        if sha256_of(os.path.join(plan.work, name)) != digest:
            raise JobError(plan.work, f"{name} is not as it was planned: plan the migration again, in another folder")


def finished_rows(plan: Plan) -> tuple[str, str]:
    """Return the file with all rows of a run that is finished, and its SHA-256 in hex.

    :raises JobError: it is not as the run has written it
    """
    path = os.path.join(plan.work, ROWS)
    found = sha256_of(path)
    try:
        with open(os.path.join(plan.work, FINISHED), "rb") as file:
            written = json.load(file)["rows_sha256"]
    except (OSError, ValueError, KeyError, TypeError):
        written = None
    if found != written:
        raise JobError(path, "it is not as the run has written it: resume that, which puts the rows together again")
    return path, found


class _Teller:
    """Makes events of receipts."""

    def __init__(self, phase: str, plan: Plan, work: jobs.WorkFolder, tell: OnEvent) -> None:
        self._phase = phase
        self._plan = plan
        self._tell = tell
        done = work.done()
        self._objects, self._bytes = done.n, done.bytes
        self._by_status = Counter(done.by_status)
        self._say()

    def __call__(self, receipt: jobs.Receipt) -> None:
        self._objects += receipt.n
        self._bytes += receipt.bytes
        self._by_status.update(receipt.by_status)
        self._say()

    def _say(self) -> None:
        plan = self._plan
        self._tell(Progress(self._phase, self._objects, self._bytes, plan.objects, plan.bytes, dict(self._by_status)))


# --- rows -------------------------------------------------------------------------------------------------------------


class _Merged:
    """What a file of rows says, all together."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.sha256 = ""  # of the file, once it is written
        self.objects = self.files = self.bytes = self.kept = self.noted = self.planned = 0
        self.removable = False
        self.by_status: Counter[str] = Counter()
        self.by_mode: Counter[str] = Counter()

    def add(self, line: bytes) -> None:
        # Not as a Row: one process does this for all of them, while the others have nothing to do.
        row = Row.facts(line)
        self.objects += 1
        self.by_status[row.status] += 1
        if row.mode is not None:
            self.by_mode[row.mode] += 1
        if row.status in GOOD:
            self.files += row.files
            self.bytes += row.bytes
            self.kept += row.error_code == KEPT
            self.noted += row.noted
            # What was renamed has no source any more.
            self.removable = self.removable or row.verify != "moved"

    @property
    def all_done(self) -> bool:
        """Whether nothing remains to be done with any of them."""
        return not self.kept and not self.by_status.keys() - GOOD

    def run(self, plan: Plan, summary: jobs.Summary, pruned: int, seconds: float, folder: str = "") -> Run:
        return Run(
            work=plan.work,
            plan=plan,
            objects=self.objects,
            files=self.files,
            bytes=self.bytes,
            by_status=dict(sorted(self.by_status.items())),
            by_mode=dict(sorted(self.by_mode.items())),
            kept=self.kept,
            noted=self.noted,
            remaining=max(0, plan.objects - self.planned),
            failed=summary.failed,
            stopped=summary.stopped,
            pruned=pruned,
            seconds=seconds,
            rows_path=os.path.join(folder or plan.work, self.name),
        )


def output_lines(work: jobs.WorkFolder) -> Iterator[bytes]:
    """Give the rows of the chunks that are done, in the order of the plan.

    :raises JobError: they are not those that the receipts are for, or cannot be read
    """
    for receipt in work.receipts():
        if receipt.output is None:
            continue
        path = work.output_path(receipt.output)
        try:
            rows = path.read_bytes()  # of one chunk
        except OSError as error:
            raise JobError(str(path), f"it cannot be read ({error.strerror}), and the run needs it") from error
        # Before any of them is given: they may be no rows at all.
        if hashlib.sha256(rows).hexdigest() != receipt.sha256:
            raise JobError(str(path), "it is not as it was written: remove it and resume, its chunk is done again")
        yield from rows.splitlines(keepends=True)


def _write_rows(folder: str, merged: _Merged, lines: Iterator[bytes], known: str | None) -> None:
    """Write a file of rows, as a whole or not at all."""
    path = os.path.join(folder, merged.name)
    digest = hashlib.sha256()
    with Replacement(path, part=path + ".new") as file:
        for line in lines:
            merged.add(line)
            file.write(line)
            digest.update(line)
        merged.planned = merged.objects
        if known is not None:
            with open(known, "rb") as more:
                for line in more:
                    merged.add(line)
                    file.write(line)
                    digest.update(line)
    flush_directory(os.fsencode(folder))
    merged.sha256 = digest.hexdigest()


def _merge(plan: Plan, work: jobs.WorkFolder, name: str) -> _Merged:
    merged = _Merged(name)
    _write_rows(plan.work, merged, output_lines(work), os.path.join(plan.work, KNOWN))
    return merged


def _write_remaining(plan: Plan, work: jobs.WorkFolder, rows: str | None) -> None:
    """Write the source's identifiers of what is not done; ended by NUL where one of them has a line end.

    :param rows: the file of those that are not; :data:`None` where all of them are done
    """

    def remaining() -> Iterator[bytes]:
        with open(os.devnull if rows is None else rows, "rb") as lines:
            for line in lines:
                row = Row.parse(line)
                if (row.status not in GOOD or row.error_code == KEPT) and row.source_id:
                    yield octets(row.source_id)
        with open(os.path.join(plan.work, ENTRIES), "rb") as entries:
            for chunk in work.remaining():
                entries.seek(chunk.start)
                while entries.tell() < chunk.stop:
                    yield octets(Entry.parse(entries.readline()).source_id)

    end = b"\0" if any(b"\n" in one or one.endswith(b"\r") for one in remaining()) else b"\n"
    path = os.path.join(plan.work, REMAINING)
    with Replacement(path, part=path + ".new", durable=False) as file:
        for one in remaining():
            file.write(one + end)


# --- the end of a move ------------------------------------------------------------------------------------------------


def _row_chunks(path: str) -> Iterator[jobs.Chunk]:
    """Cut a file of rows into chunks, for a work folder beside it."""
    cutter = jobs.Cutter("rows", os.path.join("..", os.path.basename(path)))
    with open(path, "rb") as lines:
        for line in lines:
            row = Row.parse(line)
            done = cutter.add(len(line), row.bytes, os.path.dirname(row.source))
            if done is not None:
                yield done
    rest = cutter.rest()
    if rest is not None:
        yield rest


def _opened(path: str) -> jobs.WorkFolder | None:
    """Open the work folder of something that is done with rows, if it was made."""
    return jobs.WorkFolder.open(path) if os.path.exists(os.path.join(path, "run.json")) else None


def _made(path: str, job: Any, rows: str) -> jobs.WorkFolder:
    """Make the work folder of something that is done with rows."""
    return jobs.WorkFolder.create(path, job, _row_chunks(rows), {"rows": sha256_of(rows)})


def _copied(plan: Plan, work: jobs.WorkFolder) -> _Merged:
    """Write all rows, before sources are removed; once that has begun they stay as they are.

    :raises JobError: they are not those that the removal began with
    """
    begun = _opened(os.path.join(plan.work, _REMOVAL))
    if begun is None:
        return _merge(plan, work, COPIED)
    path = os.path.join(plan.work, COPIED)
    if begun.parameters.get("rows") != sha256_of(path):
        raise JobError(path, "it is not as it was when the removal of sources began: bring that back")
    merged = _Merged(COPIED)
    with open(path, "rb") as lines:
        for line in lines:
            merged.add(line)
    merged.planned = merged.objects
    return merged


def _remove(plan: Plan, workers: Workers, tell: OnEvent, how: dict[str, Any]) -> jobs.Summary:
    """Remove the sources of what is done and verified."""
    from pressmark.migrate.job import Remove

    job = Remove(plan.options)
    folder = os.path.join(plan.work, _REMOVAL)
    work = _opened(folder) or _made(folder, job, os.path.join(plan.work, COPIED))
    with work.held():
        return workers.drive(job, work, on_receipt=_Teller("remove", plan, work, tell), **how)


def _merge_removal(plan: Plan, before: _Merged) -> _Merged:
    """Write the rows as they are after the removal.

    :param before: those that it was given
    """
    if not before.removable:
        os.replace(os.path.join(plan.work, before.name), os.path.join(plan.work, ROWS))
        before.name = ROWS
        return before
    work = jobs.WorkFolder.open(os.path.join(plan.work, _REMOVAL))
    if work.done().n != before.objects:
        raise JobError(str(work.path), "it is not the removal of this run's objects: remove the folder and resume")
    merged = _Merged(ROWS)
    # The rows of what the plan left out are among them.
    _write_rows(plan.work, merged, output_lines(work), None)
    return merged


def _prune(plan: Plan) -> int:
    """Remove the directories of the source that are empty now, above the objects that went."""
    root = os.fsencode(plan.options.source)
    tree = TREES.get(plan.options.source_kind, b"")
    if tree and os.path.basename(root) != tree:
        root = os.path.join(root, tree)
    pruned = 0
    with open(os.path.join(plan.work, ROWS), "rb") as lines:
        for line in lines:
            row = Row.parse(line)
            if row.status in GOOD and row.error_code != KEPT:
                place = octets(row.source)
                # The objects are gone from the source: an empty directory that may not be removed undoes nothing.
                with suppress(OSError):
                    pruned += len(prune_upward(root, place.removeprefix(tree).lstrip(b"/") if tree else place))
    return pruned


# --- verification -----------------------------------------------------------------------------------------------------


def verify_run(
    plan: Plan,
    workers: Workers,
    *,
    max_errors: int | None = None,
    on_event: OnEvent | None = None,
    stop: Callable[[], bool] | None = None,
) -> Run:
    """Read all that was migrated again in the destination, by the runs that this one caught up with, too, and compare.

    A verification that was interrupted is gone on with; one that is finished is begun again beside it.

    :raises MigrationError: the run is not finished, or the work folder of one that it caught up with is gone
    :raises JobError: it cannot go on, or the run's rows are damaged
    """
    from pressmark.migrate.job import Verify
    from pressmark.migrate.previous_runs import migrated_rows

    if state(plan.work) != "finished":
        raise _refusal(plan, f"the run in {plan.work} is not finished: run or resume it first")
    started = monotonic()
    with work_errors(plan.work):
        rows, digest, earlier = migrated_rows(plan)
    job = Verify(plan.options)
    work = None
    for number in count(1):
        folder = os.path.join(plan.work, f"{_VERIFY}{number}")
        if state(folder) == "finished":
            continue
        work = _opened(folder)
        if work is None or work.parameters.get("rows") == digest:
            break
    work = work or _made(folder, job, rows)
    tell = on_event or (lambda _event: None)
    with work_errors(folder), work.held():
        told = _Teller("verify", replace(plan, objects=plan.objects + earlier), work, tell)
        summary = workers.drive(job, work, on_receipt=told, max_errors=max_errors, stop=stop)
        merged = _Merged(ROWS)
        _write_rows(folder, merged, output_lines(work), None)
        run = merged.run(plan, summary, 0, round(monotonic() - started, 3), folder)
        # What the plan left out is among the rows.
        expected = plan.objects + plan.invalid + plan.missing + earlier
        run = replace(run, remaining=max(0, expected - run.objects))
        if run.complete:
            write_record(os.path.join(folder, FINISHED), {"at": _now(), **run.record()})
    return run
