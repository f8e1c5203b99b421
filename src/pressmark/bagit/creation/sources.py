"""The sources of a bag that is created elsewhere: files and directories."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

from pressmark.bagit.bag_directory import STAGING, BagDirectory
from pressmark.bagit.changes import Listener, refusing
from pressmark.bagit.creation.options import CreateOptions
from pressmark.bagit.creation.preflight import Preflight, refuse_bag, why_unlistable
from pressmark.bagit.paths import normal_key
from pressmark.bagit.walk import walk
from pressmark.errors import BagError
from pressmark.fs.beneath import real_path
from pressmark.fs.durable import exists
from pressmark.fs.names import is_inside
from pressmark.reports import Progress

__all__ = ["Source", "examine_sources", "open_sources", "refuse_inside", "source_entries"]


class Source(NamedTuple):
    """A file or directory to copy.

    :ivar path: the given path
    :ivar prefix: start of its paths in the payload: empty, the directory's name with a slash, or the file's name
    :ivar status: status at the start of the run
    :ivar base: the open directory; :data:`None` for a file
    :ivar real: the path without symbolic links
    """

    path: bytes
    prefix: bytes
    status: os.stat_result
    base: BagDirectory | None
    real: bytes


def open_sources(paths: Sequence[bytes], several: bool, nested: bool, stack: ExitStack) -> list[Source]:
    """Open all sources, and refuse those that cannot be in the same payload.

    :param several: keep the name of each of ``paths`` in the payload
    :param nested: allow sources that are bags
    :param stack: closes the sources
    :raises BagError: a source cannot be opened or used
    """
    taken: set[bytes] = set()
    sources = []
    if not paths:
        raise ValueError("at least one source is required")
    for path in paths:
        with refusing(path):
            status = os.stat(path)
        is_directory = stat.S_ISDIR(status.st_mode)
        prefix = b""
        if several or not is_directory:
            name = os.path.basename(os.path.abspath(path))
            if normal_key(name) in taken:
                raise BagError(
                    path,
                    "two sources have this name; rename one, or create the bag from a directory that contains both",
                )
            if reason := why_unlistable(name):
                raise BagError(path, reason)
            taken.add(normal_key(name))
            prefix = name + b"/" if is_directory else name
        if is_directory:
            _refuse_unfinished(path)
            refuse_bag(path, nested)
        elif not stat.S_ISREG(status.st_mode):
            raise BagError(path, "neither a directory nor a regular file")
        base = stack.enter_context(BagDirectory(path)) if is_directory else None
        sources.append(Source(path, prefix, status, base, real_path(path)))
    return sources


def _refuse_unfinished(path: bytes) -> None:
    with refusing(path):
        if not exists(os.path.join(path, STAGING)):
            return
    from pressmark.bagit.changes.bag_changes import is_decided  # few sources have a staging directory

    if is_decided(path):
        raise BagError(path, "a change of this directory was interrupted; run that command again first")


def refuse_inside(destination: bytes, sources: Sequence[Source]) -> None:
    """Refuse a destination that would be part of its own payload.

    :raises BagError: it is inside a source
    """
    for source in sources:
        if source.base is not None and is_inside(destination, source.path):
            raise BagError(destination, "destination is inside a source; choose another destination")


def examine_sources(
    sources: Sequence[Source], options: CreateOptions, destination: bytes, on_event: Listener
) -> Preflight:
    """Check all files and directories, and report the problems; the caller raises their error."""
    on_event(Progress("examine"))
    into = os.path.realpath(destination)
    preflight = Preflight(options, on_event)
    for source in sources:
        if source.base is None:
            preflight.check_file(source.path, source.status.st_size)
        else:
            preflight.check_directory(source.base, into)
    return preflight


def source_entries(
    sources: Sequence[Source], preflight: Preflight, order: Callable[[bytes], Any] | None = None
) -> Iterator[tuple[bytes, str, bytes]]:
    """Yield path in the payload, kind and path of each file and directory; a directory precedes its content.

    :param order: as in :func:`~pressmark.bagit.walk.walk`
    """
    links = preflight.links_to_follow(in_place=False)
    for source in sources:
        if source.base is None:
            yield source.prefix, "file", source.real
            continue
        if source.prefix:
            yield source.prefix[:-1], "directory", source.path
        for found in walk(source.base, links=links, exclusion=preflight.exclusion(), order=order):
            if found.kind:
                yield source.prefix + found.path, found.kind, os.path.join(source.real, found.path)
