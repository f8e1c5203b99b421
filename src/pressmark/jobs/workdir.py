"""The work folder of a run: its plan, its receipts, and its output.

::

    <work folder>/
    ├── run.json          key and parameters of the job, digest of the plan; written last
    ├── plan.jsonl        one chunk per line
    ├── nonce             identifies the folder to workers, which may see another one under the same path
    ├── driver.lock       the scheduler that runs it
    ├── receipts/         <chunk>.json for each completed chunk
    └── output/           <chunk>.<attempt>.<suffix>, named in the receipt; .<chunk>.tmp: progress of a running one

Two workers may run the same chunk at the same time, if a cluster loses contact with one worker and assigns the chunk to
another. So each attempt writes files with unique names; the first receipt counts, and files not named in a receipt are
removed at the end.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
import shutil
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple, Protocol

from pressmark.errors import JobError
from pressmark.fs.atomic import OutputFile, is_temporary, replace_file, write_new
from pressmark.fs.beneath import open_regular, read_regular, write_regular
from pressmark.fs.durable import flush_directory
from pressmark.fs.locks import FileLock, LockHeldError
from pressmark.fs.owners import UntrustedError, enter_shared, require_shared
from pressmark.jobs.chunks import Chunk
from pressmark.jobs.receipts import Receipt, Summary
from pressmark.option_names import are_flags
from pressmark.version import __version__

__all__ = ["REPORT_EVERY", "Job", "OnProgress", "WorkFolder", "WorkerFolder", "job_key", "locked", "work_errors"]

RUN, PLAN, NONCE, LOCK = "run.json", "plan.jsonl", "nonce", "driver.lock"
RECEIPTS, OUTPUT = "receipts", "output"
_FORMAT = 1
REPORT_EVERY = 0.5  # seconds
# Names recorded for a root.
_NAMES = 16
# Entries examined to find names of files: at least, and at most. Files such as declarations stay; the object
# directories that were found first may all be moved.
_LOOK_AT, _LOOK_AT_MOST = 1000, 1_000_000
_OF_ATTEMPT = re.compile(r"[^.]+\.[0-9a-f]{12}\.")


#: Called with the number of items done, and their size in bytes.
OnProgress = Callable[[int, int], object]


class Job(Protocol):
    """The work on each chunk: a frozen dataclass that can be pickled.

    Two more methods are optional. ``retryable(error) -> bool`` returns whether a chunk that failed with ``error`` is
    retried; without this method, chunks are retried after system errors that may be temporary. ``roots() ->
    Iterable[str]`` returns the directories that every worker must see.
    """

    @property
    def key(self) -> str:
        """The key of the job: see :func:`job_key`."""

    def run(self, chunk: Chunk, work: WorkFolder) -> Receipt:
        """Run a chunk. Another process may run the same chunk at the same time, or may have run part of it before."""


def job_key(kind: str, parameters: Mapping[str, object], version: int = 1) -> str:
    """Return the key of a job. Jobs whose output may differ have different keys.

    :param kind: a word that identifies the job
    :param parameters: all its parameters, as JSON values
    :param version: version of its output format
    """
    text = json.dumps([kind, version, parameters], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


class WorkerFolder(NamedTuple):
    """The location of a run, sent to its workers.

    :ivar path: absolute path of the work folder
    :ivar nonce: content of the file ``nonce`` in the work folder
    :ivar job_key: key of the job
    :ivar version: version of pressmark that the scheduler runs
    :ivar roots: the other directories that a worker must see, each with some names in it: an unmounted mount point is
        empty
    :ivar are_flags: whether a command started the run: messages name options by their flags
    """

    path: str
    nonce: str
    job_key: str
    version: str
    roots: tuple[tuple[str, tuple[str, ...]], ...]
    are_flags: bool


def _some_names(root: str) -> tuple[str, ...]:
    """Return some names in a directory. A worker must see one of them; the run may remove the others.

    :raises OSError: it cannot be read
    """
    files: list[str] = []
    directories: list[str] = []
    with os.scandir(root) as entries:
        for number, entry in enumerate(islice(entries, _LOOK_AT_MOST), 1):
            some = directories if entry.is_dir(follow_symlinks=False) else files
            if len(some) < _NAMES:
                some.append(entry.name)
            if len(files) == _NAMES or (files and number >= _LOOK_AT):
                break
    return tuple([*files, *directories][:_NAMES])


class WorkFolder:
    """The work folder of a run, returned by :meth:`create` and :meth:`open`.

    :ivar path: absolute path of the folder
    :ivar job_key: key of the job
    :ivar plan_sha256: SHA-256 of the plan, in hex
    :ivar parameters: parameters of the run, for display
    :ivar version: version of pressmark that created it
    """

    def __init__(self, path: Path, run: Mapping[str, object], attempt: str | None = None) -> None:
        fields: dict[str, Any] = {**run}
        self.path = path
        self.job_key: str = fields["job_key"]
        self.plan_sha256: str = fields["plan_sha256"]
        self.parameters: dict[str, Any] = dict(fields["parameters"])
        self.version: str = fields["version"]
        self._nonce: str = fields["nonce"]
        self._attempt = attempt
        self._held = 0
        self._on_progress: OnProgress | None = None
        self._reported = monotonic()

    def __repr__(self) -> str:
        return f"<WorkFolder {str(self.path)!r}>"

    # --- create and open ------------------------------------------------------------------------------------------

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        job: Job,
        chunks: Iterable[Chunk] | None = None,
        parameters: Mapping[str, object] | None = None,
    ) -> WorkFolder:
        """Create the work folder of a run, and write its plan.

        :param path: a new directory, or an existing one without a run; it may contain the listings of the chunks
        :param chunks: consumed after the directory is created; :data:`None` for those of ``job.plan(path)``
        :param parameters: parameters of the run, as JSON values, for display and error messages; :data:`None` for
            ``job.parameters()``, if there are
        :raises JobError: the folder has a run, or cannot be written
        :raises ValueError: two chunks have the same id, or a chunk is invalid
        """
        folder = Path(os.path.abspath(path))
        chunks = job.plan(path) if chunks is None else chunks  # type: ignore[attr-defined]
        if parameters is None:
            parameters = getattr(job, "parameters", dict)()
        try:
            if cls.exists(folder):
                raise JobError(str(folder), "a run exists here; resume it or choose another work folder")
            enter_shared(os.fspath(folder))
            for name in (RECEIPTS, OUTPUT):
                (folder / name).mkdir(exist_ok=True)
                if any(not is_temporary(one) for one in os.listdir(folder / name)):
                    raise JobError(str(folder), f"{name} is not empty but {RUN} is missing; choose another folder")
            digest = cls._write_plan(folder, chunks)
            nonce = uuid.uuid4().hex
            replace_file(folder / NONCE, nonce.encode())
            run = {
                "format": _FORMAT,
                "version": __version__,
                "job_key": job.key,
                "plan_sha256": digest,
                "nonce": nonce,
                "parameters": dict(parameters),
            }
            # Written last: a folder with this file is complete.
            if not write_new(folder / RUN, json.dumps(run, indent=2).encode() + b"\n"):
                raise JobError(str(folder), "another process has started a run here; choose another work folder")
            flush_directory(os.fsencode(folder.parent))
        except OSError as error:
            raise _refused(folder, error) from error
        return cls(folder, run)

    @staticmethod
    def exists(path: str | os.PathLike[str]) -> bool:
        """Return whether a directory is the work folder of a run."""
        return os.path.exists(os.path.join(path, RUN))

    @staticmethod
    def _write_plan(folder: Path, chunks: Iterable[Chunk]) -> str:
        seen: set[str] = set()
        with OutputFile(folder / PLAN) as file:
            for chunk in chunks:
                # Ids are file names, also on file systems that ignore case.
                if chunk.checked().id.casefold() in seen:
                    raise ValueError(f"duplicate chunk id {chunk.id!r}")
                seen.add(chunk.id.casefold())
                file.write(chunk.line())
        return file.sha256

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> WorkFolder:
        """Open the work folder of a run.

        :raises JobError: no run is found, or its plan or nonce has changed
        """
        folder = Path(os.path.abspath(path))
        try:
            require_shared(os.fspath(folder))
            run = json.loads(read_regular(folder / RUN))
            with open_regular(folder / PLAN) as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
            if run["format"] != _FORMAT:
                raise JobError(
                    str(folder), f"the run was started with pressmark {run['version']}; continue with that version"
                )
            work = cls(folder, run)
            nonce = read_regular(folder / NONCE)
        except FileNotFoundError as error:
            raise JobError(str(folder), f"no run found ({os.path.basename(error.filename)} is missing)") from None
        except OSError as error:
            raise _refused(folder, error) from error
        except (ValueError, KeyError, TypeError):
            raise JobError(str(folder), f"{RUN} is damaged; start again in another work folder") from None
        if found != work.plan_sha256:
            reason = f"{PLAN} has changed since the run started; restore it, or start again in another work folder"
            raise JobError(str(folder), reason)
        # Workers would report another folder.
        if nonce != os.fsencode(work._nonce):
            raise JobError(str(folder), f"{NONCE} is damaged; write exactly {work._nonce} to it")
        return work

    @classmethod
    def at(cls, folder: WorkerFolder, on_progress: OnProgress | None = None) -> WorkFolder:
        """Return the folder for one attempt of a worker at a chunk; its output files have unique names.

        :param on_progress: called with the progress of the chunk; :data:`None` to write it to a file
        """
        run = {**folder._asdict(), "plan_sha256": "", "parameters": {}}
        work = cls(Path(folder.path), run, uuid.uuid4().hex[:12])
        work._on_progress = on_progress
        return work

    def check(self, job: Job, parameters: Mapping[str, object] | None = None) -> None:
        """Check that a job is the one that the run was started with.

        :param parameters: as for :meth:`create`
        :raises JobError: it is another job, or has other parameters
        """
        if job.key == self.job_key:
            return
        names = sorted({*self.parameters, *(parameters or {})})
        differ = [
            name for name in names if parameters is not None and self.parameters.get(name) != parameters.get(name)
        ]
        what = f"different parameters ({', '.join(differ)})" if differ else "a different job or parameters"
        raise JobError(str(self.path), f"run was started with {what}; use the same or choose another work folder")

    def for_workers(self, job: Job) -> WorkerFolder:
        """Return the location of the run for its workers.

        :raises JobError: a root of the job cannot be read
        """
        roots: Iterable[str] = getattr(job, "roots", tuple)()
        seen = []
        for root in roots:
            try:
                seen.append((os.path.abspath(root), _some_names(root)))
            except OSError as error:
                raise JobError(root, f"{error.strerror}; the run needs this directory") from None
        return WorkerFolder(str(self.path), self._nonce, self.job_key, __version__, tuple(seen), are_flags())

    # --- one scheduler ---------------------------------------------------------------------------------------------

    @contextmanager
    def held(self) -> Iterator[WorkFolder]:
        """Lock the folder against a second scheduler. Calls may be nested.

        :raises JobError: another scheduler has the lock
        """
        with ExitStack() as stack:
            if not self._held:
                try:
                    stack.enter_context(locked(self.path / LOCK))
                except OSError as error:
                    raise _refused(self.path, error) from error
            self._held += 1
            try:
                yield self
            finally:
                self._held -= 1

    def sweep(self) -> None:
        """Remove the unfinished files of killed workers. The folder must be locked."""
        for folder in (self.path, self.path / RECEIPTS, self.path / OUTPUT):
            for name in os.listdir(folder):
                if is_temporary(name):
                    with suppress(FileNotFoundError):
                        (folder / name).unlink()

    def sweep_outputs(self) -> None:
        """When every chunk has a receipt, remove the output files not named in a receipt.

        Until then, an abandoned attempt may still write a receipt.
        """
        named = set()
        for chunk in self.chunks():
            receipt = self.receipt(chunk.id)
            if receipt is None:
                return
            if receipt.output is not None:
                named.add(_stem(receipt.output))
        for name in os.listdir(self.path / OUTPUT):
            if _OF_ATTEMPT.match(name) and _stem(name) not in named:
                with suppress(FileNotFoundError):
                    (self.path / OUTPUT / name).unlink()

    # --- the plan -------------------------------------------------------------------------------------------------

    def chunks(self) -> Iterator[Chunk]:
        """Yield the chunks of the plan, in order."""
        with open_regular(self.path / PLAN) as file:
            for line in file:
                yield Chunk.parse(line)

    def remaining(self) -> Iterator[Chunk]:
        """Yield the chunks without a valid receipt, in order.

        :raises JobError: a receipt belongs to another run
        """
        for chunk in self.chunks():
            if self.receipt(chunk.id) is None:
                yield chunk

    # --- receipts -------------------------------------------------------------------------------------------------

    def receipt(self, chunk: str) -> Receipt | None:
        """Return the valid receipt of a chunk, if any.

        A receipt is not valid if it is damaged or its output is missing: the chunk is repeated.

        :raises JobError: the receipt belongs to another run
        """
        path = self.path / RECEIPTS / f"{chunk}.json"
        try:
            receipt = Receipt.parse(read_regular(path))
        except (FileNotFoundError, ValueError):
            return None
        except OSError as error:
            raise _refused(path, error) from error
        if receipt.job_key != self.job_key or receipt.chunk != chunk:
            raise JobError(str(path), "receipt of another run; choose another work folder")
        if receipt.output is not None and not (self.path / OUTPUT / receipt.output).is_file():
            return None
        return receipt

    def receipts(self) -> Iterator[Receipt]:
        """Yield the valid receipts, in the order of the plan."""
        for chunk in self.chunks():
            receipt = self.receipt(chunk.id)
            if receipt is not None:
                yield receipt

    def failures(self, receipt: Receipt) -> Iterator[dict[str, object]]:
        """Yield the records of the items that failed in a chunk, in order."""
        if receipt.errors and receipt.output is not None:
            with open_regular(self.output_path(f"{receipt.output.rpartition('.')[0]}.errors.jsonl")) as lines:
                yield from map(json.loads, lines)

    def write_receipt(self, receipt: Receipt) -> Receipt:
        """Write the receipt of a chunk whose output is in place, and return the valid one: the first written.

        :raises OSError: it cannot be written
        """
        stored = receipt
        if receipt.output is not None:
            stored = dataclasses.replace(receipt, output=self._name(receipt.output))
        path = self.path / RECEIPTS / f"{receipt.chunk}.json"
        if not write_new(path, stored.text()):
            first = self.receipt(receipt.chunk)
            if first is not None:
                if stored.output is not None and stored.output != first.output:
                    self._remove_outputs(_stem(stored.output))
                return first
            replace_file(path, stored.text())
        return stored

    def summary(self) -> Summary:
        """Return the totals of all receipts."""
        receipts = [self.receipt(chunk.id) for chunk in self.chunks()]
        done = [receipt for receipt in receipts if receipt is not None]
        by_status: Counter[str] = Counter()
        for receipt in done:
            by_status.update(receipt.by_status)
        return Summary(
            len(receipts),
            len(done),
            sum(receipt.n for receipt in done),
            sum(receipt.bytes for receipt in done),
            sum(receipt.errors for receipt in done),
            dict(sorted(by_status.items())),
            round(sum(receipt.seconds for receipt in done), 6),
        )

    def remove(self) -> None:
        """Remove the files of the run, and the folder if it is then empty."""
        listings = {chunk.source for chunk in self.chunks() if not os.path.isabs(chunk.source)}
        # run.json goes last: until then, the run can be resumed.
        for name in (RECEIPTS, OUTPUT):
            shutil.rmtree(self.path / name, ignore_errors=True)
        for name in (RUN, PLAN, NONCE, LOCK, *sorted(listings)):
            (self.path / name).unlink(missing_ok=True)
        with suppress(OSError):
            self.path.rmdir()

    # --- progress -------------------------------------------------------------------------------------------------

    def report(self, chunk: str, items: int, nbytes: int) -> None:
        """Report the progress of a running chunk, at most twice per second; may be called for each item.

        :param items: number of items that are done
        :param nbytes: of these items
        """
        if monotonic() - self._reported < REPORT_EVERY:
            return
        if self._on_progress is not None:
            self._on_progress(items, nbytes)
        else:
            # Progress that is lost is no error.
            with suppress(OSError), open(self._progress_path(chunk), "wb", opener=write_regular) as file:
                file.write(f"{items} {nbytes}".encode("ascii"))
        self._reported = monotonic()

    def progress(self, chunk: str) -> tuple[int, int]:
        """Return the number of items of a running chunk that are done, and their size in bytes, as far as reported."""
        try:
            items, nbytes = map(int, read_regular(self._progress_path(chunk)).split())
        except (OSError, ValueError):
            return 0, 0
        return items, nbytes

    def end_progress(self, chunk: str) -> None:
        """Remove the file of :meth:`report`."""
        with suppress(OSError):
            self._progress_path(chunk).unlink()

    def _progress_path(self, chunk: str) -> Path:
        return self.path / OUTPUT / f".{chunk}.tmp"

    # --- output ---------------------------------------------------------------------------------------------------

    def output_path(self, name: str) -> Path:
        """Return the path of the ``output`` of a receipt, or of another file in the same directory."""
        return self.path / OUTPUT / self._name(name)

    def writing(self, name: str) -> OutputFile:
        """Return a new file in ``output``, a context manager. The file appears when the context ends.

        :param name: starts with the id of the chunk and a full stop, after which the id of the attempt is inserted;
            receipts contain the name without the id of the attempt
        """
        return OutputFile(self.output_path(name))

    def write_output(self, name: str, lines: Iterable[bytes]) -> str:
        """Write a file in ``output`` and return its SHA-256, in hex.

        :param name: as for :meth:`writing`
        :param lines: including line feeds
        """
        with self.writing(name) as file:
            for line in lines:
                file.write(line)
        return file.sha256

    def _name(self, name: str) -> str:
        """Return the name on disk of a file of this attempt."""
        first, _, rest = name.partition(".")
        if self._attempt is None or rest.startswith(f"{self._attempt}."):
            return name
        return f"{first}.{self._attempt}.{rest}"

    def _remove_outputs(self, stem: str) -> None:
        for name in os.listdir(self.path / OUTPUT):
            if name.startswith(f"{stem}."):
                with suppress(OSError):
                    (self.path / OUTPUT / name).unlink()


def _stem(name: str) -> str:
    """Return the part of an output name with the chunk and the attempt."""
    return ".".join(name.split(".", 2)[:2])


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Lock a work folder.

    :raises JobError: another scheduler has the lock
    :raises OSError: it cannot be written
    """
    try:
        lock = FileLock(os.fspath(path), owner=True)
    except LockHeldError as error:
        reason = f"in use by {error.owner}; wait for it to end, or remove {path.name} if it no longer runs"
        raise JobError(str(path.parent), reason) from None
    with lock:
        yield


@contextmanager
def work_errors(folder: str) -> Iterator[None]:
    """Convert an :class:`OSError` in a work folder to a :class:`JobError`; errors about other files are not converted.

    :param folder: an absolute path
    """
    try:
        yield
    except ConnectionError:
        raise  # from a callback or a cluster, not from a disk
    except OSError as error:
        if error.errno is None:
            raise  # the cluster cannot be reached
        named = error.filename
        # A relative name is inside a tree that is being removed.
        if isinstance(named, (str, bytes)) and os.path.isabs(named):
            path = os.fsdecode(named)
            if path != folder and not path.startswith(os.path.join(folder, "")):
                raise
        raise _refused(Path(folder), error) from error


def _refused(path: Path, error: OSError) -> JobError:
    if isinstance(error, UntrustedError):
        return JobError(str(path), error.reason)
    return JobError(str(path), f"{error.strerror or error}; the run needs read and write access")
