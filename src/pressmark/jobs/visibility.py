"""Checks that a worker sees the same directories as the scheduler."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from pressmark.fs.beneath import read_regular

__all__ = ["MountProbe", "Place", "unseen"]

NONCE = "nonce"
# Names recorded for a root. A worker must see one of them; the run may remove the others.
_NAMES = 16
# Entries examined to find names of files: at least, and at most. Files such as declarations stay; the object
# directories that were found first may all be moved.
_LOOK_AT, _LOOK_AT_MOST = 1000, 1_000_000


class MountProbe(NamedTuple):
    """A directory that every worker must see.

    :ivar path: absolute path of the directory
    :ivar names: some names in it: an unmounted mount point is empty
    """

    path: str
    names: tuple[str, ...]

    @classmethod
    def of(cls, path: str) -> MountProbe:
        """Record the names in ``path``.

        :raises OSError: it cannot be read
        """
        with os.scandir(path) as entries:
            files: list[str] = []
            directories: list[str] = []
            for number, entry in enumerate(islice(entries, _LOOK_AT_MOST), 1):
                some = directories if entry.is_dir(follow_symlinks=False) else files
                if len(some) < _NAMES:
                    some.append(entry.name)
                if len(files) == _NAMES or (files and number >= _LOOK_AT):
                    break
        return cls(path, tuple([*files, *directories][:_NAMES]))


class Place(NamedTuple):
    """The location of a run, sent to its workers.

    :ivar path: absolute path of the work folder
    :ivar nonce: content of the file ``nonce`` in the work folder
    :ivar job_key: key of the job
    :ivar version: version of pressmark that the scheduler runs
    :ivar probes: the other directories that a worker must see
    """

    path: str
    nonce: str
    job_key: str
    version: str
    probes: tuple[MountProbe, ...]


def unseen(place: Place) -> str | None:
    """Return a description of the first directory that this machine does not see as the scheduler does, if any."""
    try:
        if read_regular(os.path.join(place.path, NONCE)).decode("ascii") != place.nonce:
            return f"the work folder {place.path} (another folder has this path)"
    except (OSError, UnicodeDecodeError):
        return f"the work folder {place.path}"
    return next(_unseen(place.probes), None)


def _unseen(probes: Iterable[MountProbe]) -> Iterator[str]:
    for path, names in probes:
        if not os.path.isdir(path):
            yield path
        elif names and not any(os.path.lexists(os.path.join(path, name)) for name in names):
            yield f"the content of {path} (is it mounted?)"
