"""The files of a tree, and an outcome for each that cannot be read."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator

from pressmark.fixity.hasher import OpenOptions, error_outcome
from pressmark.fixity.outcomes import Outcome, failed_outcome
from pressmark.fs.beneath import Directory
from pressmark.fs.walk import Walk

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
    :param beneath: a directory, as :func:`~pressmark.fs.beneath.open_directory` gives it: ``root`` is relative to
        it, ``"."`` for itself, and so are the paths that are given; no link is followed, and ``"follow"`` is
        ``"refuse"``
    :raises ValueError: an argument is wrong
    """
    if links not in ("follow", "skip", "refuse"):
        raise ValueError(f"links={links!r}: expected follow, skip or refuse")
    options = OpenOptions(links == "follow", special_files, beneath)
    with options.opener() as opener:
        found = Walk(
            opener,
            lambda path, kind, number: (
                error_outcome(path, number, options) if kind is None else failed_outcome(path, kind)
            ),
            links=links,
            leave_out=leave_out,
            special_files=special_files,
            beneath=beneath is not None,
        )
        yield from found.files(os.fspath(root))
