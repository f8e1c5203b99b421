"""Whether a worker sees what the scheduler sees."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

__all__ = ["MountProbe", "Place", "unseen"]

NONCE = "nonce"
# Of a root so many names are remembered; a worker must see one of them, for others may go while the run does its work.
_NAMES = 16
# How many names are looked at, at least and at most, to find some that are of files: declarations stay, directories of
# objects may be moved away, all of those that were seen first.
_LOOK_AT, _LOOK_AT_MOST = 1000, 1_000_000


class MountProbe(NamedTuple):
    """A directory that every worker must see.

    :ivar path: of it, absolute
    :ivar names: some names in it; a directory that should be mounted there, and is not, is empty
    """

    path: str
    names: tuple[str, ...]

    @classmethod
    def of(cls, path: str) -> MountProbe:
        """Return what is seen from here.

        :raises OSError: nothing is
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
    """Where a run takes place, as its workers are told.

    :ivar path: of the work folder, absolute
    :ivar nonce: what stands in the work folder's file of that name
    :ivar job_key: of the run's job
    :ivar version: of pressmark, where the scheduler runs
    :ivar sights: what a worker must see besides
    """

    path: str
    nonce: str
    job_key: str
    version: str
    sights: tuple[MountProbe, ...]


def unseen(place: Place) -> str | None:
    """Return what is not seen from here as the scheduler sees it, :data:`None` where all is."""
    try:
        with open(os.path.join(place.path, NONCE), encoding="ascii") as file:
            if file.read(1000) != place.nonce:
                return f"the work folder {place.path} (there is another one of that name)"
    except (OSError, UnicodeDecodeError):
        return f"the work folder {place.path}"
    return next(_unseen(place.sights), None)


def _unseen(sights: Iterable[MountProbe]) -> Iterator[str]:
    for path, names in sights:
        if not os.path.isdir(path):
            yield path
        elif names and not any(os.path.lexists(os.path.join(path, name)) for name in names):
            yield f"what is in {path} (is it mounted?)"
