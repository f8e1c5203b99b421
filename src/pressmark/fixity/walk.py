"""The files of a tree, in an order that does not depend on the file system."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from typing import Any

from pressmark.fixity.outcomes import Outcome, failure, kind_of_error, kind_of_mode

__all__ = ["walk"]


def walk(
    root: str | bytes | os.PathLike[str] | os.PathLike[bytes],
    *,
    links: str = "follow",
    leave_out: Collection[tuple[int, int]] = (),
    special_files: bool = False,
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
    """
    if links not in ("follow", "skip", "refuse"):
        raise ValueError(f"links={links!r}: expected follow, skip or refuse")
    top: str | bytes = os.fspath(root)
    try:
        status = os.stat(top, follow_symlinks=links != "refuse")
    except (OSError, ValueError):
        yield top  # whoever reads it says why not
        return
    if kind_of_mode(status.st_mode) != "directory":
        yield top
        return
    follow = links == "follow"
    # Identities of the directories that are being gone through: only a link can lead back to one of them.
    above = [(status.st_dev, status.st_ino)]
    levels = [_names(top, leave_out)]
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
        if is_link and not follow:
            if links == "refuse":
                yield failure(path, "link")
            continue
        if is_directory:
            try:
                status = os.stat(path)
            except OSError as error:
                yield failure(path, kind_of_error(error.errno or 0, path), error.errno or 0)
                continue
            identity = (status.st_dev, status.st_ino)
            # Not only behind links: a directory may be mounted below itself.
            if identity in above:
                yield failure(path, "directory-loop")
                continue
            above.append(identity)
            levels.append(_names(path, leave_out))
        elif is_file or is_link:
            yield path
        else:
            yield path if special_files else _special(path)


Item = tuple[Any, bool, bool, bool]


def _names(directory: str | bytes, leave_out: Collection[tuple[int, int]]) -> Iterator[Item | Outcome]:
    """Give path, whether it is a link, leads to a directory, leads to a file, for every name in ``directory``."""
    inodes = {inode for _device, inode in leave_out}
    try:
        with os.scandir(directory) as entries:
            # Not the entries themselves: there may be a million, and each is several times the size of its name.
            found = [
                (os.fsencode(entry.name), _facts(entry))
                for entry in entries
                if not inodes or entry.inode() not in inodes or not _is_left_out(entry, leave_out)
            ]
    except OSError as error:
        yield failure(directory, kind_of_error(error.errno or 0, directory), error.errno or 0)
        return
    found.sort(reverse=True)
    text = isinstance(directory, str)
    while found:
        name, facts = found.pop()
        path: Any = os.path.join(directory, os.fsdecode(name) if text else name)  # type: ignore[arg-type]
        yield (path, *facts)


# One of few tuples, shared by all names.
_FACTS = {
    (is_link, is_directory, is_file): (is_link, is_directory, is_file)
    for is_link in (False, True)
    for is_directory in (False, True)
    for is_file in (False, True)
}


def _facts(entry: os.DirEntry[Any]) -> tuple[bool, bool, bool]:
    try:
        is_link = entry.is_symlink()
        return _FACTS[is_link, entry.is_dir(), entry.is_file()]
    except OSError:  # a link whose target cannot be looked at: reading it says why
        return _FACTS[True, False, True]


def _is_left_out(entry: os.DirEntry[Any], leave_out: Collection[tuple[int, int]]) -> bool:
    try:
        status = entry.stat()
    except OSError:
        return False
    return (status.st_dev, status.st_ino) in leave_out


def _special(path: Any) -> Outcome:
    try:
        kind = kind_of_mode(os.stat(path).st_mode) or "io-error"
    except OSError as error:
        return failure(path, kind_of_error(error.errno or 0, path), error.errno or 0)
    return failure(path, kind)
