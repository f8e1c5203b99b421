"""The files of a tree, with an outcome for each that cannot be read."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from typing import Any, cast

from pressmark.buckets.address import is_address
from pressmark.fixity.hasher import OpenOptions, error_outcome
from pressmark.fixity.outcomes import Outcome, failed_outcome
from pressmark.fs.beneath import Directory
from pressmark.fs.walk import Walk

__all__ = ["walk", "walk_files"]


def walk(
    root: str | bytes | os.PathLike[str] | os.PathLike[bytes],
    *,
    links: str = "follow",
    leave_out: Collection[tuple[int, int]] = (),
    beneath: Directory | None = None,
    exclude: Sequence[str] | str = (),
    once: bool = False,
    one_file_system: bool = False,
    excluded: list[str] | None = None,
) -> Iterator[str | Outcome]:
    """Yield the path of every file under ``root``, or ``root`` itself if it is not a directory.

    The walk is depth-first, in the order of the bytes of the names, files and directories together. For entries that
    cannot be read, an :class:`Outcome` is yielded: inaccessible directories, named pipes, sockets, devices, and links
    to a parent directory.

    :param root: the top directory, or an address in object storage, such as ``s3://bucket/prefix``, whose keys are in
        the order of their bytes; paths begin with it, and are :class:`str` as :func:`os.fsdecode` returns them
    :param links: ``"follow"`` symbolic links to files and directories, ``"skip"`` them, or ``"refuse"`` them with an
        outcome for each; ``root`` itself is followed unless links are refused
    :param leave_out: device and inode of files to skip, such as the output and the ledger of the run
    :param beneath: a directory from :func:`~pressmark.fs.beneath.open_directory` that ``root`` and the yielded paths
        are relative to; ``root`` may be ``"."``. No link is followed: ``"follow"`` means ``"refuse"``
    :param exclude: globs of the names of files and directories below ``root`` to leave out, such as ``.DS_Store``; a
        directory is left out with everything in it
    :param once: of several links to one directory, follow only the first: directories that link to each other have more
        paths than anyone can wait for
    :param one_file_system: leave out directories on other file systems than ``root``; without effect in object storage
    :param excluded: receives the path of each, that of a directory with a slash at its end, before the next path is
        yielded; with ``once`` also that of each link that is not followed
    :raises ValueError: an argument is invalid
    """
    if beneath is None and is_address(os.fspath(root)):
        return _addresses(os.fspath(root), exclude, excluded)
    # A string as root makes strings of all paths.
    return cast(
        "Iterator[str | Outcome]",
        walk_files(
            os.fsdecode(root),
            links=links,
            leave_out=leave_out,
            beneath=beneath,
            exclude=exclude,
            once=once,
            one_file_system=one_file_system,
            excluded=excluded,
        ),
    )


def _addresses(root: str | bytes, exclude: Sequence[str] | str, excluded: list[str] | None) -> Iterator[str | Outcome]:
    """Yield the addresses of keys; see :class:`pressmark.fixity.bucket_files.KeyTree`."""
    from pressmark.fixity.bucket_files import KeyTree  # few walks are in object storage

    left_out: list[bytes] = []
    for one in KeyTree(root).files(exclude, left_out):
        if excluded is not None:
            excluded.extend(map(os.fsdecode, left_out))
        left_out.clear()
        yield one if isinstance(one, Outcome) else os.fsdecode(one.path)
    if excluded is not None:
        excluded.extend(map(os.fsdecode, left_out))


def walk_files(
    root: str | bytes,
    *,
    links: str = "follow",
    leave_out: Collection[tuple[int, int]] = (),
    beneath: Directory | None = None,
    exclude: Sequence[str] | str = (),
    once: bool = False,
    one_file_system: bool = False,
    excluded: list[Any] | None = None,
) -> Iterator[str | bytes | Outcome]:
    """Yield the files as :func:`walk` does, with paths of the type of ``root``: bytes need no decoding."""
    if links not in ("follow", "skip", "refuse"):
        raise ValueError(f"links={links!r}: expected follow, skip or refuse")
    is_excluded = None
    if exclude:
        from pressmark.fs.names import glob_matcher  # few walks leave out anything

        is_excluded = glob_matcher(exclude)
    options = OpenOptions(links == "follow", beneath)
    with options.opener() as opener:
        found = Walk(
            opener,
            lambda path, kind, number: (
                error_outcome(path, number, options) if kind is None else failed_outcome(path, kind)
            ),
            links=links,
            leave_out=leave_out,
            beneath=beneath is not None,
            is_excluded=is_excluded,
            once=once,
            one_file_system=one_file_system,
            on_excluded=(lambda _path: None) if excluded is None else excluded.append,
        )
        yield from found.files(root)
