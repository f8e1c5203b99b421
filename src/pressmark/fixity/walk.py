"""The files of a tree, in an order that does not depend on the file system."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from typing import Any

from pressmark.fixity.hasher import Manner, refusal
from pressmark.fixity.outcomes import Outcome, failure
from pressmark.fs.beneath import Directory, Way
from pressmark.fs.file_errors import kind_of_mode

__all__ = ["walk"]


def walk(
    root: str | bytes | os.PathLike[str] | os.PathLike[bytes],
    *,
    links: str = "follow",
    leave_out: Collection[tuple[int, int]] = (),
    special_files: bool = False,
    beneath: Directory | None = None,
) -> Iterator[str | bytes | Outcome]:
    """Give the path of every file under ``root``, or ``root`` itself where it is no directory.

    Directories are gone through by the octets of their names, files and directories alike, each directory whole before
    the next name. What cannot be read is given as an :class:`Outcome` in its place: directories that do not open, named
    pipes, sockets and devices, links that lead to a directory above them.

    :param root: where to begin; paths are given below it, as :class:`str` or :class:`bytes` as it is
    :param links: ``"follow"`` symbolic links to files and directories, ``"skip"`` them, or ``"refuse"`` them with an
        outcome each; ``root`` itself is followed unless they are refused
    :param leave_out: device and inode of files below ``root`` that are not given: a run's own output and ledger
    :param special_files: named pipes and devices are given as paths, to be read
    :param beneath: a directory, as :func:`~pressmark.fs.beneath.opened_directory` gives it: ``root`` is relative to
        it, ``"."`` for itself, and so are the paths that are given; no link is followed, and ``"follow"`` is
        ``"refuse"``
    :raises ValueError: an argument is wrong
    """
    if links not in ("follow", "skip", "refuse"):
        raise ValueError(f"links={links!r}: expected follow, skip or refuse")
    manner = Manner(links == "follow", special_files, beneath)
    with manner.way() as way:
        yield from _Walk(manner, way, links, leave_out).files(os.fspath(root))


Item = tuple[Any, bool, bool, bool]


class _Walk:
    def __init__(self, manner: Manner, way: Way, links: str, leave_out: Collection[tuple[int, int]]) -> None:
        self._manner = manner
        self._way = way
        self._links = links
        self._leave_out = leave_out

    def files(self, top: str | bytes) -> Iterator[str | bytes | Outcome]:
        beneath = self._manner.beneath is not None
        try:
            # What is asked for by name is followed, too, where links below it are only skipped.
            followed = self._links == "skip" and not beneath
            status = os.stat(top) if followed else self._way.stat_directory(top)
        except (OSError, ValueError):
            yield top  # whoever reads it says why not
            return
        if kind_of_mode(status.st_mode) != "directory":
            yield top
            return
        if beneath and top in (".", b"."):
            top = top[:0]
        # Identities of the directories that are being gone through: only a link can lead back to one of them.
        above = [(status.st_dev, status.st_ino)]
        levels = [self._names(top)]
        while levels:
            item = next(levels[-1], None)
            if item is None:
                levels.pop()
                above.pop()
                continue
            if isinstance(item, Outcome):
                yield item
                continue
            path, is_link, is_directory, is_file = item
            if is_link and not self._manner.follow:
                if self._links != "skip":
                    yield failure(path, "link")
                continue
            if is_directory:
                try:
                    status = self._way.stat(path)
                except OSError as error:
                    yield refusal(path, error.errno or 0, self._manner)
                    continue
                identity = (status.st_dev, status.st_ino)
                # Not only behind links: a directory may be mounted below itself.
                if identity in above:
                    yield failure(path, "directory-loop")
                    continue
                above.append(identity)
                levels.append(self._names(path))
            elif is_file or is_link:
                yield path
            else:
                yield path if self._manner.special_files else self._special(path)

    def _names(self, directory: str | bytes) -> Iterator[Item | Outcome]:
        """Give path, whether it is a link, leads to a directory, leads to a file, for every name in ``directory``."""
        inodes = {inode for _device, inode in self._leave_out}
        follow = self._manner.follow
        try:
            with self._way.names(directory) as entries:
                # Not the entries themselves: there may be a million, and each is several times the size of its name.
                found = [
                    (os.fsencode(entry.name), _facts(entry, follow))
                    for entry in entries
                    if not inodes or entry.inode() not in inodes or not _is_left_out(entry, self._leave_out)
                ]
        except OSError as error:
            yield refusal(directory, error.errno or 0, self._manner)
            return
        found.sort(reverse=True)
        text = isinstance(directory, str)
        while found:
            name, facts = found.pop()
            path: Any = os.path.join(directory, os.fsdecode(name) if text else name)  # type: ignore[arg-type]
            yield (path, *facts)

    def _special(self, path: Any) -> Outcome:
        try:
            kind = kind_of_mode(self._way.stat(path).st_mode) or "io-error"
        except OSError as error:
            return refusal(path, error.errno or 0, self._manner)
        return failure(path, kind)


# One of few tuples, shared by all names.
_FACTS = {
    (is_link, is_directory, is_file): (is_link, is_directory, is_file)
    for is_link in (False, True)
    for is_directory in (False, True)
    for is_file in (False, True)
}


def _facts(entry: os.DirEntry[Any], follow: bool) -> tuple[bool, bool, bool]:
    try:
        is_link = entry.is_symlink()
        return _FACTS[is_link, entry.is_dir(follow_symlinks=follow), entry.is_file(follow_symlinks=follow)]
    except OSError:  # a link whose target cannot be looked at: reading it says why
        return _FACTS[True, False, True]


def _is_left_out(entry: os.DirEntry[Any], leave_out: Collection[tuple[int, int]]) -> bool:
    try:
        status = entry.stat()
    except OSError:
        return False
    return (status.st_dev, status.st_ino) in leave_out
