"""The work folder of a migration: the names of its files, the state of a run, and the preparation of the folder.

::

    <work>/
    ├── refused.jsonl     why the plan was refused; empty if it was not
    ├── warnings.jsonl    warnings of the plan
    ├── entries.jsonl     the planned objects, one per line: :class:`~pressmark.migrate.entry.Entry`
    ├── known.jsonl       rows of the objects that the plan left out: ``source_missing``, ``source_invalid``
    ├── map.jsonl         with a map: an old and a new identifier per line
    ├── plan.json         the summary of the plan; written last
    ├── run.json, …       the run of the chunks: :class:`pressmark.jobs.WorkFolder`
    ├── begun.json        the run has started; its plan is not replaced any more
    ├── output/           the rows of each chunk
    ├── copied.jsonl      with ``move``: all rows, before sources are removed
    ├── removal/          with ``move``: the work folder of the removal
    ├── rows.jsonl        all rows: first those of the plan, in its order, then those of the objects that it left out
    ├── remaining.txt     identifiers of the objects that are not done: a list for another plan
    ├── finished.json     how the run ended
    ├── migrated.jsonl    of a catch-up: its rows, and the rows of earlier runs that it has no row for
    └── verify-1/, …      work folders of verifications
"""

from __future__ import annotations

import json
import os
import shutil
from contextlib import ExitStack, suppress
from pathlib import Path

from pressmark.buckets.address import absolute, is_address, is_below
from pressmark.errors import JobError, MigrationError, quoted_path
from pressmark.fs.atomic import is_temporary
from pressmark.fs.beneath import open_regular, read_regular
from pressmark.fs.locks import is_owner_lock
from pressmark.fs.owners import UntrustedError, enter_shared
from pressmark.jobs.workdir import LOCK, locked
from pressmark.migrate.object_digest import sha256_of
from pressmark.migrate.options import Options

__all__ = [
    "BEGUN",
    "COPIED",
    "ENTRIES",
    "FINISHED",
    "KNOWN",
    "MAP",
    "MIGRATED",
    "PLAN",
    "REFUSED",
    "REMAINING",
    "REMOVAL",
    "ROWS",
    "SCRATCH",
    "VERIFICATION",
    "WARNINGS",
    "finished_folder",
    "finished_rows",
    "is_of_earlier_format",
    "is_of_run",
    "prepare",
    "state",
    "work_folder",
]

REFUSED, WARNINGS = "refused.jsonl", "warnings.jsonl"
ENTRIES, KNOWN, MAP, PLAN = "entries.jsonl", "known.jsonl", "map.jsonl", "plan.json"
#: Exists from the beginning of the run: its plan must not be replaced any more.
BEGUN = "begun.json"
ROWS, COPIED, REMAINING, FINISHED, MIGRATED = (
    *("rows.jsonl", "copied.jsonl", "remaining.txt", "finished.json"),
    "migrated.jsonl",
)
#: The work folder of the removal of sources, and the prefix of the work folders of verifications.
REMOVAL, VERIFICATION = "removal", "verify-"
#: Prefix and suffix of temporary files and directories of a plan.
SCRATCH = ("identifiers-", ".tmp")

# The files that a plan creates first.
_FIRST = {REFUSED, WARNINGS}
# The files of a work folder before its run begins.
_PLANNED = frozenset(
    {
        *(ENTRIES, f"{ENTRIES}.new", KNOWN, MAP, PLAN, f"{PLAN}.new", REFUSED, WARNINGS),
        *("run.json", "plan.jsonl", "nonce", LOCK, "receipts", "output", f"{BEGUN}.new"),
    }
)
_RUN = _PLANNED | {BEGUN, ROWS, COPIED, REMAINING, FINISHED}
_SUBFOLDERS = frozenset({"receipts", "output"})

_Name = str | os.PathLike[str]


# --- which folder, and how far it is ----------------------------------------------------------------------------------


def work_folder(destination: _Name, work: _Name | None = None) -> str:
    """Return the work folder of the unfinished run, or of the next run.

    It is the first of ``<destination>.migration``, ``<destination>.migration-2`` and so on that has no finished run. If
    the destination is an address, it is in the current directory: ``<last part of the address>.migration``.

    :param work: a path to use instead of ``<destination>.migration``
    """
    return _folders(destination, work)[-1]


def finished_folder(destination: _Name, work: _Name | None = None) -> str | None:
    """Return the work folder of the last finished run; :data:`None` if no run is finished.

    :param work: as for :func:`work_folder`
    """
    *finished, _next = _folders(destination, work)
    return finished[-1] if finished else None


def _folders(destination: _Name, work: _Name | None) -> list[str]:
    """Return the work folders of all finished runs, and the next one."""
    base = os.path.abspath(f"{_beside(destination)}.migration" if work is None else os.fspath(work))
    found = [base]
    while state(found[-1]) == "finished":
        found.append(f"{base}-{len(found) + 1}")
    return found


def _beside(destination: _Name) -> str:
    """Return the path of the destination; of one in a bucket, its name, for the current directory."""
    path = absolute(destination)
    return os.path.basename(path) if is_address(path) else path


def state(work: _Name) -> str:
    """Return the state of a work folder: ``none``, ``planned``, ``begun`` or ``finished``."""
    folder = os.fspath(work)
    for name, word in ((FINISHED, "finished"), (BEGUN, "begun"), (PLAN, "planned")):
        if os.path.exists(os.path.join(folder, name)):
            return word
    return "none"


def is_of_earlier_format(work: str) -> bool:
    """Return whether an earlier version wrote the plan, which then lacks the digest of its list or those of objects."""
    try:
        lacks_list = "ids_sha256" not in json.loads(read_regular(os.path.join(work, PLAN)))
    except (OSError, ValueError, TypeError):  # missing or damaged
        return False
    with suppress(OSError), open_regular(os.path.join(work, ENTRIES)) as lines:
        return lacks_list or b',"changed":' in lines.readline()
    return lacks_list


def is_of_run(path: str, work: str) -> bool:
    """Return whether a path belongs to a run or its plan.

    :param work: the work folder of the next run, which may not exist yet
    """
    folder, name = os.path.split(os.path.realpath(path))
    if os.path.basename(folder) in _SUBFOLDERS:
        folder = os.path.dirname(folder)
    elif name not in _RUN:
        return False
    return folder == os.path.realpath(work) or os.path.exists(os.path.join(folder, "run.json"))


def finished_rows(work: str) -> tuple[str, str]:
    """Return the file with all rows of a finished run, and its SHA-256 in hex.

    :raises JobError: the file was changed after the run wrote it
    """
    path = os.path.join(work, ROWS)
    found = sha256_of(path)
    try:
        written = json.loads(read_regular(os.path.join(work, FINISHED)))["rows_sha256"]
    except (OSError, ValueError, KeyError, TypeError):
        written = None
    if found != written:
        raise JobError(path, "changed since the run wrote it; resume the run to merge the rows again")
    return path, found


# --- before a plan ----------------------------------------------------------------------------------------------------


def prepare(options: Options, folder: str, resources: ExitStack) -> None:
    """Create and lock the work folder; remove a plan whose run has not started.

    :param resources: the lock is held until these are closed
    :raises MigrationError: the folder cannot be used
    :raises JobError: another process uses it
    """

    def refused(what: str) -> MigrationError:
        return MigrationError(options.source, options.destination, f"{what}; choose another work folder")

    for name, path in (("source", options.source), ("destination", options.destination)):
        if is_below(folder, path):
            raise refused(f"the work folder {quoted_path(folder)} is inside the {name}")

    def look() -> list[str]:
        names = os.listdir(folder)
        if BEGUN in names:
            what = f"the work folder {quoted_path(folder)} contains a run that has started"
            raise refused(f"{what}; resume it if it is unfinished")
        if is_of_earlier_format(folder):
            raise refused(f"the work folder {quoted_path(folder)} contains a plan of an earlier version of Pressmark")
        # The names of a plan's files alone do not prove that a plan wrote them.
        ours = set(names) >= _FIRST or _is_hardly_begun(folder, names)
        stranger = next((name for name in sorted(names) if not _is_of_plan(name, ours)), None)
        if stranger is not None:
            what = f"{quoted_path(stranger)}, which does not belong to a plan"
            raise refused(f"the work folder {quoted_path(folder)} contains {what}")
        return names

    try:
        enter_shared(folder)
        look()  # before the lock is written into a folder of somebody else
        resources.enter_context(locked(Path(folder, LOCK)))
        # The first files of a plan go last: without them the rest is not recognised as a plan.
        for name in sorted(look(), key=_FIRST.__contains__):
            if name == LOCK:
                continue
            path = os.path.join(folder, name)
            if os.path.islink(path) or not os.path.isdir(path):
                os.unlink(path)
            elif _is_scratch(name):
                shutil.rmtree(path)
            else:
                os.rmdir(path)  # empty until a run begins
    except UntrustedError as error:
        raise refused(f"the work folder {quoted_path(folder)}: {error.reason}") from None
    except OSError as error:
        raise refused(f"the work folder {quoted_path(folder)} cannot be written ({error.strerror})") from error


def _is_hardly_begun(folder: str, names: list[str]) -> bool:
    """Return whether a plan was killed when it had written only its lock and its first files.

    The next plan removes those last, too: then the folder has a lock, and the files may have content.
    """
    paths = {name: os.path.join(folder, name) for name in names if not _is_scratch(name)}
    if not paths.keys() <= {LOCK, *_FIRST}:
        return False
    lock = paths.pop(LOCK, None)
    return not any(map(os.path.getsize, paths.values())) if lock is None else is_owner_lock(lock)


def _is_of_plan(name: str, ours: bool) -> bool:
    """Return whether a plan, finished or killed, may have left a file of this name.

    :param ours: the folder has the files that every plan creates first
    """
    return _is_scratch(name) or (ours and (name in _PLANNED or is_temporary(name)))


def _is_scratch(name: str) -> bool:
    return name.startswith(SCRATCH[0]) and name.endswith(SCRATCH[1])
