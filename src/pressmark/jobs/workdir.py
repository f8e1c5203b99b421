"""The work folder of a run: what is to be done, and what is done.

::

    <work folder>/
    ├── run.json          the job's key and parameters, the plan's digest; written last when the folder is made
    ├── plan.jsonl        a chunk a line
    ├── nonce             by which a worker knows that it sees this folder, and no other of the same name
    ├── driver.lock       who is at work
    ├── receipts/         <chunk>.json for each chunk that is done
    └── output/           <chunk>.<attempt>.<suffix>; each receipt names its own

A chunk may be worked at twice at the same time: a cluster loses sight of a worker and gives the chunk to another. So
each attempt writes files of its own; the first receipt counts, and files that no receipt names are removed at the end.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from pressmark.errors import JobError
from pressmark.fs.atomic import OutputFile, is_temporary, replace_file, write_new
from pressmark.fs.durable import flush_directory
from pressmark.fs.locks import FileLock, LockHeldError
from pressmark.fs.owners import UntrustedError, enter_shared, require_shared
from pressmark.jobs.chunks import Chunk
from pressmark.jobs.receipts import Receipt
from pressmark.jobs.visibility import NONCE, MountProbe, Place
from pressmark.version import __version__

__all__ = ["Done", "Job", "WorkFolder", "job_key", "locked", "work_errors"]

RUN, PLAN, LOCK, RECEIPTS, OUTPUT = "run.json", "plan.jsonl", "driver.lock", "receipts", "output"
_FORMAT = 1
_BLOCK = 1 << 20
_OF_ATTEMPT = re.compile(r"[^.]+\.[0-9a-f]{12}\.")


class Job(Protocol):
    """What is done with each chunk: a frozen dataclass that can be pickled.

    It may have two methods more. ``retryable(error) -> bool``: whether to try a chunk again that failed with this
    exception; without it, what the operating system may get over is tried again. ``roots() -> Iterable[str]``:
    directories that every worker must see.
    """

    @property
    def key(self) -> str:
        """What it does, as :func:`job_key` says it."""

    def run(self, chunk: Chunk, work: WorkFolder) -> Receipt:
        """Do a chunk; another process may do the same one at the same time, and one may have begun it before."""


def job_key(kind: str, parameters: Mapping[str, Any], version: int = 1) -> str:
    """Return the key of a job: different wherever its output may be different.

    :param kind: a word for what it does
    :param parameters: all of them, as in JSON
    :param version: of what it writes
    """
    text = json.dumps([kind, version, parameters], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


class Done(NamedTuple):
    """What the receipts of a run say.

    :ivar chunks: of the plan
    :ivar done: that have a receipt
    :ivar n: items
    :ivar bytes: that were read or copied
    :ivar errors: items that went wrong
    :ivar by_status: items of each status
    :ivar seconds: of work, all workers together
    """

    chunks: int
    done: int
    n: int
    bytes: int
    errors: int
    by_status: dict[str, int]
    seconds: float


class WorkFolder:
    """The work folder of one run; :meth:`create` and :meth:`open` give it.

    :ivar path: the folder, absolute
    :ivar job_key: of the job that it is for
    :ivar plan_sha256: of its plan, in hex
    :ivar parameters: of the run, for people
    :ivar version: of pressmark, with which it was made
    """

    def __init__(self, path: Path, run: Mapping[str, Any], attempt: str | None = None) -> None:
        self.path = path
        self.job_key: str = run["job_key"]
        self.plan_sha256: str = run["plan_sha256"]
        self.parameters: dict[str, Any] = dict(run["parameters"])
        self.version: str = run["version"]
        self._nonce: str = run["nonce"]
        self._attempt = attempt
        self._held = 0

    def __repr__(self) -> str:
        return f"<WorkFolder {str(self.path)!r}>"

    # --- made and opened ------------------------------------------------------------------------------------------

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        job: Job,
        chunks: Iterable[Chunk],
        parameters: Mapping[str, Any] | None = None,
    ) -> WorkFolder:
        """Make the work folder of a run, and write down its plan.

        :param path: a directory that is not there, or has no run in it; listings that chunks are of may lie there
        :param chunks: written as they come, after the directory is made
        :param parameters: of the run, as in JSON: for people, and to say what differs where a run is refused
        :raises JobError: a run is there, or it cannot be written
        :raises ValueError: two chunks have the same id, or one cannot stand in a plan
        """
        folder = Path(os.path.abspath(path))
        try:
            if (folder / RUN).exists():
                raise JobError(str(folder), "a run is there already: resume it, or name another work folder")
            enter_shared(os.fspath(folder))
            for name in (RECEIPTS, OUTPUT):
                (folder / name).mkdir(exist_ok=True)
                if any(not is_temporary(one) for one in os.listdir(folder / name)):
                    raise JobError(str(folder), f"there is something in its {name}, but no {RUN}: name another folder")
            digest = cls._write_plan(folder, chunks)
            nonce = uuid.uuid4().hex
            replace_file(folder / NONCE, nonce.encode())
            run = {
                "format": _FORMAT,
                "version": __version__,
                "job_key": job.key,
                "plan_sha256": digest,
                "nonce": nonce,
                "parameters": dict(parameters or {}),
            }
            # Last, and never over another one: where it is, everything is.
            if not write_new(folder / RUN, json.dumps(run, indent=2).encode() + b"\n"):
                raise JobError(str(folder), "another process has begun a run there: name another work folder")
            flush_directory(os.fsencode(folder.parent))
        except OSError as error:
            raise _refused(folder, error) from error
        return cls(folder, run)

    @staticmethod
    def _write_plan(folder: Path, chunks: Iterable[Chunk]) -> str:
        seen: set[str] = set()
        with OutputFile(folder / PLAN) as file:
            for chunk in chunks:
                # Receipts are called by the ids, on file systems that have one name for both cases as well.
                if chunk.checked().id.casefold() in seen:
                    raise ValueError(f"two chunks are called {chunk.id!r}")
                seen.add(chunk.id.casefold())
                file.write(chunk.line())
        return file.sha256

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> WorkFolder:
        """Open the work folder of a run that was begun.

        :raises JobError: there is none, or its plan or nonce is not the one that it began with
        """
        folder = Path(os.path.abspath(path))
        try:
            require_shared(os.fspath(folder))
            run = json.loads((folder / RUN).read_bytes())
            found = hashlib.sha256()
            with (folder / PLAN).open("rb") as file:
                while block := file.read(_BLOCK):
                    found.update(block)
            if run["format"] != _FORMAT:
                raise JobError(str(folder), f"pressmark {run['version']} made it; use that one to go on")
            work = cls(folder, run)
            nonce = (folder / NONCE).read_bytes()
        except FileNotFoundError as error:
            raise JobError(
                str(folder), f"no run was begun there ({os.path.basename(error.filename)} is missing)"
            ) from None
        except OSError as error:
            raise _refused(folder, error) from error
        except (ValueError, KeyError, TypeError):
            raise JobError(str(folder), f"its {RUN} is damaged: begin again in another work folder") from None
        if found.hexdigest() != work.plan_sha256:
            reason = f"its {PLAN} is not the one that the run began with: bring that back, or begin again elsewhere"
            raise JobError(str(folder), reason)
        # Workers would say that they see another folder of this name.
        if nonce != os.fsencode(work._nonce):
            raise JobError(str(folder), f"its {NONCE} is damaged: write {work._nonce} there, with nothing behind it")
        return work

    @classmethod
    def at(cls, place: Place) -> WorkFolder:
        """Return the folder for one attempt at a chunk by a worker that sees it: its files get names of their own."""
        run = {"job_key": place.job_key, "plan_sha256": "", "parameters": {}, "version": place.version}
        return cls(Path(place.path), {**run, "nonce": place.nonce}, uuid.uuid4().hex[:12])

    def check(self, job: Job, parameters: Mapping[str, Any] | None = None) -> None:
        """Refuse a job that is not the one that the run began with.

        :param parameters: as for :meth:`create`
        :raises JobError: it is another one, or has other parameters
        """
        if job.key == self.job_key:
            return
        names = sorted({*self.parameters, *(parameters or {})})
        differ = [
            name for name in names if parameters is not None and self.parameters.get(name) != parameters.get(name)
        ]
        what = f"other parameters ({', '.join(differ)})" if differ else "another job or other parameters"
        raise JobError(str(self.path), f"its run began with {what}: take those, or name another work folder")

    def place(self, job: Job) -> Place:
        """Return where the run takes place, as its workers are told.

        :raises JobError: one of the job's roots is not there
        """
        roots: Iterable[str] = getattr(job, "roots", tuple)()
        sights = []
        for root in roots:
            try:
                sights.append(MountProbe.of(os.path.abspath(root)))
            except OSError as error:
                raise JobError(root, f"{error.strerror}: the run needs this directory") from None
        return Place(str(self.path), self._nonce, self.job_key, __version__, tuple(sights))

    # --- one scheduler ---------------------------------------------------------------------------------------------

    @contextmanager
    def held(self) -> Iterator[WorkFolder]:
        """Hold the folder, so that no second scheduler begins; may be nested.

        :raises JobError: another scheduler has it
        """
        if self._held:
            self._held += 1
            try:
                yield self
            finally:
                self._held -= 1
            return
        try:
            context = locked(self.path / LOCK)
            context.__enter__()
        except OSError as error:
            raise _refused(self.path, error) from error
        self._held = 1
        try:
            yield self
        finally:
            self._held = 0
            context.__exit__(None, None, None)

    def sweep(self) -> list[str]:
        """Remove what killed workers left half written; return the names. Only for who holds the folder."""
        removed = []
        for folder in (self.path, self.path / RECEIPTS, self.path / OUTPUT):
            for name in os.listdir(folder):
                if is_temporary(name):
                    with suppress(FileNotFoundError):
                        (folder / name).unlink()
                        removed.append(name)
        return removed

    def sweep_outputs(self) -> list[str]:
        """Remove output that no receipt names, when every chunk has one; return the names.

        Not before: an attempt that nobody waits for any more may be about to write its receipt. Later, it finds one.
        """
        named = set()
        for chunk in self.chunks():
            receipt = self.receipt(chunk.id)
            if receipt is None:
                return []
            if receipt.output is not None:
                named.add(_stem(receipt.output))
        removed = []
        for name in os.listdir(self.path / OUTPUT):
            if _OF_ATTEMPT.match(name) and _stem(name) not in named:
                with suppress(FileNotFoundError):
                    (self.path / OUTPUT / name).unlink()
                    removed.append(name)
        return removed

    # --- the plan -------------------------------------------------------------------------------------------------

    def chunks(self) -> Iterator[Chunk]:
        """Give the chunks of the plan, in order."""
        with (self.path / PLAN).open("rb") as file:
            for line in file:
                yield Chunk.parse(line)

    def remaining(self) -> Iterator[Chunk]:
        """Give the chunks that have no receipt that counts, in order.

        :raises JobError: a receipt is of another run
        """
        for chunk in self.chunks():
            if self.receipt(chunk.id) is None:
                yield chunk

    # --- receipts -------------------------------------------------------------------------------------------------

    def receipt(self, chunk: str) -> Receipt | None:
        """Return the receipt of a chunk, if it has one that counts.

        One that is not whole does not count, nor one whose output is gone: the chunk is done again.

        :raises JobError: it is of another run: somebody has mixed two work folders
        """
        path = self.path / RECEIPTS / f"{chunk}.json"
        try:
            receipt = Receipt.parse(path.read_bytes())
        except (FileNotFoundError, ValueError):
            return None
        except OSError as error:
            raise _refused(path, error) from error
        if receipt.job_key != self.job_key or receipt.chunk != chunk:
            raise JobError(str(path), "it is a receipt of another run: take it away, or name another work folder")
        if receipt.output is not None and not (self.path / OUTPUT / receipt.output).is_file():
            return None
        return receipt

    def receipts(self) -> Iterator[Receipt]:
        """Give the receipts that count, in the order of the plan."""
        for chunk in self.chunks():
            receipt = self.receipt(chunk.id)
            if receipt is not None:
                yield receipt

    def failures(self, receipt: Receipt) -> Iterator[dict[str, Any]]:
        """Yield the records of the items that failed in a chunk, in order."""
        if receipt.errors and receipt.output is not None:
            with self.output_path(f"{receipt.output.rpartition('.')[0]}.errors.jsonl").open("rb") as lines:
                yield from map(json.loads, lines)

    def write_receipt(self, receipt: Receipt) -> Receipt:
        """Write the receipt of a chunk whose work is in place, and return the one that counts: the first.

        :raises OSError: it cannot be written
        """
        stored = receipt
        if receipt.output is not None:
            stored = Receipt(**{**receipt.record(), "output": self._name(receipt.output)})
        path = self.path / RECEIPTS / f"{receipt.chunk}.json"
        if not write_new(path, stored.text()):
            first = self.receipt(receipt.chunk)
            if first is not None:
                if stored.output is not None and stored.output != first.output:
                    self._remove_outputs(_stem(stored.output))
                return first
            replace_file(path, stored.text())
        return stored

    def done(self) -> Done:
        """Return what the receipts say, all together."""
        chunks = done = n = nbytes = errors = 0
        by_status: Counter[str] = Counter()
        seconds = 0.0
        for chunk in self.chunks():
            chunks += 1
            receipt = self.receipt(chunk.id)
            if receipt is None:
                continue
            done += 1
            n += receipt.n
            nbytes += receipt.bytes
            errors += receipt.errors
            by_status.update(receipt.by_status)
            seconds += receipt.seconds
        return Done(chunks, done, n, nbytes, errors, dict(sorted(by_status.items())), round(seconds, 6))

    def remove(self) -> None:
        """Remove what the run has written in the folder, and the folder where nothing else is in it."""
        listings = {chunk.source for chunk in self.chunks() if not os.path.isabs(chunk.source)}
        # Until the results are gone the run can be resumed; afterwards another one can begin here.
        for name in (RECEIPTS, OUTPUT):
            shutil.rmtree(self.path / name, ignore_errors=True)
        for name in (RUN, PLAN, NONCE, LOCK, *sorted(listings)):
            (self.path / name).unlink(missing_ok=True)
        with suppress(OSError):
            self.path.rmdir()

    # --- output ---------------------------------------------------------------------------------------------------

    def output_path(self, name: str) -> Path:
        """Return where a receipt's ``output`` is, or a file beside it."""
        return self.path / OUTPUT / self._name(name)

    def writing(self, name: str) -> OutputFile:
        """Return a new file in ``output``, to be used as a context: there when it is complete, and not before.

        :param name: begins with the chunk's id and a full stop. A worker's attempt is put behind that; receipts are to
            have the name that is given here
        """
        return OutputFile(self.output_path(name))

    def write_output(self, name: str, lines: Iterable[bytes]) -> str:
        """Write a file in ``output`` and return its SHA-256, in hex.

        :param name: as for :meth:`writing`
        :param lines: with their line feeds
        """
        with self.writing(name) as file:
            for line in lines:
                file.write(line)
        return file.sha256

    def _name(self, name: str) -> str:
        """Return the name that a file of this attempt has on the disk."""
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
    """Return the chunk and the attempt of an output's name."""
    return ".".join(name.split(".", 2)[:2])


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a work folder.

    :raises JobError: another scheduler has it
    :raises OSError: it cannot be made
    """
    try:
        lock = FileLock(os.fspath(path), owner=True)
    except LockHeldError as error:
        reason = f"{error.owner} is at work in it; wait for its end, or if it is gone, remove {path.name}"
        raise JobError(str(path.parent), reason) from None
    with lock:
        yield


@contextmanager
def work_errors(folder: str) -> Iterator[None]:
    """Turn what the system refuses in a work folder into a :class:`JobError`; what names a file elsewhere stays.

    :param folder: absolute
    """
    try:
        yield
    except ConnectionError:
        raise  # no disk says that: whoever is told of events, or does the work, has left
    except OSError as error:
        if error.errno is None:
            raise  # nor is that the system's: clusters say so that they cannot be reached
        named = error.filename
        # A name that is not absolute is one in a tree that is being removed.
        if isinstance(named, (str, bytes)) and os.path.isabs(named):
            path = os.fsdecode(named)
            if path != folder and not path.startswith(os.path.join(folder, "")):
                raise
        raise _refused(Path(folder), error) from error


def _refused(path: Path, error: OSError) -> JobError:
    if isinstance(error, UntrustedError):
        return JobError(str(path), error.reason)
    return JobError(str(path), f"{error.strerror or error}; the run needs to read and write there")
