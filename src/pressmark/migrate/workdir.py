"""The work folder before anything is planned: whether it can be one, and held from then on."""

from __future__ import annotations

import os
import shutil
from contextlib import ExitStack
from pathlib import Path

from pressmark.errors import MigrationError
from pressmark.fs.atomic import is_temporary
from pressmark.fs.locks import is_owner_lock
from pressmark.fs.names import is_inside
from pressmark.fs.owners import UntrustedError, enter_shared
from pressmark.jobs.workdir import LOCK, locked
from pressmark.migrate.id_index import is_index
from pressmark.migrate.options import Options
from pressmark.migrate.planning.plan import BEGUN, PLANNED

__all__ = ["prepare"]

# The first files of a plan that are made.
_FIRST = {"refused.jsonl", "warnings.jsonl"}


def prepare(options: Options, folder: str, resources: ExitStack) -> None:
    """Make the work folder, or clear away a plan that was not begun, and hold it as a run does.

    :param resources: it is held until these are closed
    :raises MigrationError: it cannot be used
    :raises JobError: somebody else is at work in it
    """

    def refused(what: str) -> MigrationError:
        return MigrationError(options.source, options.destination, f"{what}; name another work folder")

    for name, place in (("source", options.source), ("destination", options.destination)):
        if is_inside(folder, place):
            raise refused(f"the work folder {folder} is inside of the {name}")

    def look() -> list[str]:
        names = os.listdir(folder)
        if BEGUN in names:
            raise refused(f"{folder} holds a run that was begun; if it is not finished resume it")
        # The names of a plan's files alone do not say that they are a plan's.
        ours = set(names) >= _FIRST or _is_hardly_begun(folder, names)
        stranger = next((name for name in sorted(names) if not _is_of_plan(name, ours)), None)
        if stranger is not None:
            raise refused(f"the work folder {folder} holds {stranger!r}, which is nothing of a plan")
        return names

    try:
        enter_shared(folder)
        look()  # before a lock is written beside what is somebody else's
        resources.enter_context(locked(Path(folder, LOCK)))
        # Those last without which the rest is nothing of a plan.
        for name in sorted(look(), key=_FIRST.__contains__):
            if name == LOCK:
                continue
            path = os.path.join(folder, name)
            if os.path.islink(path) or not os.path.isdir(path):
                os.unlink(path)
            elif is_index(name):
                shutil.rmtree(path)
            else:
                os.rmdir(path)  # before a run is begun, there is nothing in it
    except UntrustedError as error:
        raise refused(f"the work folder {folder}: {error.reason}") from None
    except OSError as error:
        raise refused(f"the work folder {folder} cannot be written ({error.strerror})") from error


def _is_hardly_begun(folder: str, names: list[str]) -> bool:
    """Return whether a plan was killed when it had no more than its lock and the very first of its files.

    Those are the last that the next one clears away, too: then there is a lock, and they may hold something.
    """
    paths = {name: os.path.join(folder, name) for name in names if not is_index(name)}
    if not paths.keys() <= {LOCK, *_FIRST}:
        return False
    lock = paths.pop(LOCK, None)
    return not any(map(os.path.getsize, paths.values())) if lock is None else is_owner_lock(lock)


def _is_of_plan(name: str, ours: bool) -> bool:
    """Return whether a plan, or one that was killed, may have left this in its work folder.

    :param ours: there is what every plan begins with
    """
    return is_index(name) or (ours and (name in PLANNED or is_temporary(name)))
