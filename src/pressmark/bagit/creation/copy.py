"""Create a bag in a new directory: in a hidden directory next to its destination, which is renamed when the bag is
complete.

::

    .pressmark-….tmp/       the name depends on the destination only, so the next run finds it
    ├── lock                held during a run
    ├── tags/               tag files while they are written
    ├── bag/                the payload, then the tag files, bagit.txt last
    └── request             the options of the run, once the bag is complete
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import stat
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from pressmark.bagit.bag_directory import STAGING, BagDirectory
from pressmark.bagit.bag_info import BagInfo
from pressmark.bagit.changes import Stage, enter_staging, refusing
from pressmark.bagit.creation.options import CreateOptions
from pressmark.bagit.creation.preflight import (
    ChangeDetector,
    Listener,
    Preflight,
    record_outcomes,
    refuse_bag,
    why_unlistable,
)
from pressmark.bagit.creation.tag_writer import ManifestWriter, write_tag_files
from pressmark.bagit.paths import PAYLOAD, normal_key
from pressmark.bagit.walk import Exclusion, walk
from pressmark.errors import BagError
from pressmark.fixity.copying import CopyTask, copy_files, keep_status
from pressmark.fs.durable import can_flush_filesystem, exists, flush_directory, flush_filesystem
from pressmark.fs.names import is_inside
from pressmark.fs.staging import StagingDirectory

__all__ = ["build_bag", "create_elsewhere"]

EXISTS = "destination already exists; choose another name"
_BAG, _TAGS, _REQUEST = b"bag", b"tags", b"request"
_HOLDS = frozenset({_BAG, _TAGS, _REQUEST})


class _Source(NamedTuple):
    """A file or directory to copy.

    :ivar path: the given path
    :ivar prefix: start of its paths in the payload: empty, the directory's name with a slash, or the file's name
    :ivar status: status at the start of the run
    :ivar base: the open directory; :data:`None` for a file
    """

    path: bytes
    prefix: bytes
    status: os.stat_result
    base: BagDirectory | None


def create_elsewhere(
    paths: Sequence[bytes],
    several: bool,
    destination: bytes,
    options: CreateOptions,
    mode: str,
    nested: bool,
    on_event: Listener,
) -> BagInfo | None:
    """Create a bag at ``destination`` from the files at ``paths``.

    :param several: keep the name of each of ``paths`` in the payload
    :param mode: as in :func:`~pressmark.fixity.copying.copy_files`
    :return: the content of bag-info.txt; :data:`None` if an interrupted run had finished
    :raises BagError: the bag cannot be created
    """
    if not destination:  # abspath would return the working directory
        raise BagError(destination, "destination is empty; specify a new directory")
    destination = os.path.abspath(destination)
    parent, name = os.path.split(destination)
    staging = os.path.join(parent, b".pressmark-%b.tmp" % hashlib.sha256(name).hexdigest()[:16].encode())
    request = options.request(sources=[os.fsdecode(os.path.abspath(path)) for path in paths], mode=mode)
    with contextlib.ExitStack() as stack:
        sources = _opened(paths, several, nested, stack)
        for source in sources:
            if source.base is not None and is_inside(destination, source.path):
                raise BagError(destination, "destination is inside a source; choose another destination")
        with refusing(destination):
            if exists(destination) and not exists(staging):
                raise BagError(destination, EXISTS)
            if not os.path.isdir(parent):
                raise BagError(parent, "not a directory" if exists(parent) else "directory not found; create it first")
            hidden = enter_staging(staging, destination, holds=_HOLDS)
        stack.callback(_leave, hidden)
        with refusing(destination, "no bag was created"), _by_name(hidden):
            if exists(destination):
                if not _was_finished(hidden, destination, request):
                    raise BagError(destination, EXISTS)
                on_event(Stage("recover"))
                return None
            _empty(hidden)
            preflight = _preflight(sources, options, destination, on_event)
            preflight.raise_if_refused(paths[0])
            if mode == "copy" and (free := shutil.disk_usage(parent).free) < preflight.bytes:
                raise BagError(destination, f"not enough disk space: {preflight.bytes} bytes needed, {free} available")
            bag, info = _build(hidden.inside, sources, options, mode, preflight, on_event)
            with open(os.path.join(hidden.inside, _REQUEST), "xb") as file:
                file.write(_packed(request, os.lstat(bag)))
            on_event(Stage("move"))
            _flush(hidden.inside)
            if exists(destination):
                raise BagError(destination, EXISTS)
            hidden.publish(_BAG, destination)
        with refusing(destination, "the bag is complete, but a power failure can still remove its name"):
            flush_directory(parent)
        return info


def build_bag(path: bytes, folder: bytes, options: CreateOptions, mode: str, nested: bool, on_event: Listener) -> bytes:
    """Write a bag into a private directory, whose owner flushes and publishes it.

    :param path: the source: a directory, whose content becomes the payload, or a file
    :param folder: a new directory
    :param mode: as in :func:`~pressmark.fixity.copying.copy_files`
    :return: path of the bag in ``folder``
    :raises BagError: the bag cannot be created; the caller removes ``folder``
    """
    with contextlib.ExitStack() as stack:
        sources = _opened([path], False, nested, stack)
        with refusing(folder):
            os.mkdir(folder)
            preflight = _preflight(sources, options, folder, on_event)
            preflight.raise_if_refused(path)
            return _build(folder, sources, options, mode, preflight, on_event)[0]


def _flush(staging: bytes) -> None:
    """Write all files to disk, with a single call."""
    if can_flush_filesystem():
        flush_filesystem(staging)
    elif hasattr(os, "sync"):
        os.sync()


def _opened(paths: Sequence[bytes], several: bool, nested: bool, stack: contextlib.ExitStack) -> list[_Source]:
    """Open all sources, and refuse those that cannot be in the same payload."""
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
        sources.append(_Source(path, prefix, status, stack.enter_context(BagDirectory(path)) if is_directory else None))
    return sources


def _refuse_unfinished(path: bytes) -> None:
    with refusing(path):
        if not exists(os.path.join(path, STAGING)):
            return
    from pressmark.bagit.changes.bag_transaction import is_decided  # few sources have a staging directory

    if is_decided(path):
        raise BagError(path, "a change of this directory was interrupted; run that command again first")


def _preflight(sources: Sequence[_Source], options: CreateOptions, destination: bytes, on_event: Listener) -> Preflight:
    on_event(Stage("examine"))
    into = os.path.realpath(destination)
    preflight = Preflight(options, on_event)
    for source in sources:
        if source.base is None:
            preflight.check_file(source.path, source.status.st_size)
        else:
            preflight.check_directory(source.base, into)
    return preflight


def _build(
    staging: bytes,
    sources: Sequence[_Source],
    options: CreateOptions,
    mode: str,
    preflight: Preflight,
    on_event: Listener,
) -> tuple[bytes, BagInfo]:
    """Write the whole bag, and return its path and the content of bag-info.txt."""
    on_event(Stage("copy", preflight.files, preflight.bytes))
    bag, tags = os.path.join(staging, _BAG), os.path.join(staging, _TAGS)
    data = os.path.join(bag, PAYLOAD)
    os.makedirs(data)
    os.mkdir(tags)
    links = preflight.links_to_follow(in_place=False)
    detector = ChangeDetector()
    paths: deque[bytes] = deque()  # of the files being copied

    def jobs() -> Iterator[CopyTask]:
        for path, job in _jobs(sources, data, links, preflight.exclusion()):
            paths.append(path)
            yield job

    copies = copy_files(
        jobs(),
        options.algorithms,
        mode=mode,
        threads=options.threads,
        read=options.read,
        links=options.links,
        on_event=on_event,
    )
    with contextlib.closing(copies), ManifestWriter(tags, options.algorithms) as manifests:
        outcomes = ((paths.popleft(), outcome) for outcome in copies)
        nbytes, files = record_outcomes(outcomes, manifests, detector, preflight)
    preflight.raise_if_refused(sources[0].path)
    on_event(Stage("check", files, nbytes))
    detector.compare(sources[0].path, _again(sources, data, links, preflight.exclusion()))
    on_event(Stage("tag"))
    names, info = write_tag_files(tags, options, nbytes, files)
    for name in names:
        os.rename(os.path.join(tags, name), os.path.join(bag, name))
    return bag, info


def _jobs(
    sources: Sequence[_Source], data: bytes, links: str, exclusion: Exclusion | None
) -> Iterator[tuple[bytes, CopyTask]]:
    """Yield the path in the payload and the copy task of each file; create directories."""
    for source in sources:
        if source.base is None:
            yield source.prefix, CopyTask(os.path.realpath(source.path), os.path.join(data, source.prefix))
            continue
        if source.prefix:
            os.mkdir(os.path.join(data, source.prefix))
        for found in walk(source.base, links=links, exclusion=exclusion):
            target = os.path.join(data, source.prefix + found.path)
            if found.kind == "directory":
                os.mkdir(target)
            elif found.kind == "file":
                yield source.prefix + found.path, CopyTask(os.path.join(source.base.path, found.path), target)


def _again(
    sources: Sequence[_Source], data: bytes, links: str, exclusion: Exclusion | None
) -> Iterator[tuple[bytes, os.stat_result]]:
    """Yield path and status of each source file after copying; copy the status of directories."""
    for source in sources:
        if source.base is None:
            yield source.prefix, os.stat(source.path)
            continue
        folders = [(os.path.join(data, source.prefix), source.status)]
        for found in walk(source.base, links=links, exclusion=exclusion):
            if found.kind == "directory":
                status = os.stat(os.path.join(source.base.path, found.path))
                folders.append((os.path.join(data, source.prefix + found.path), status))
            elif found.kind == "file":
                yield source.prefix + found.path, os.stat(os.path.join(source.base.path, found.path))
        # Bottom-up, because a directory may deny access to its content.
        for target, status in reversed(folders):
            keep_status(target, status)


# --- the hidden directory ---------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _by_name(hidden: StagingDirectory) -> Iterator[None]:
    """Replace the internal path of the hidden directory in errors by its name."""
    try:
        yield
    except OSError as error:
        if isinstance(error.filename, (str, bytes)):
            error.filename = hidden.shown(error.filename)
        raise
    except BagError as error:
        path = os.fsencode(error.path)
        if hidden.shown(path) == path:
            raise
        raise BagError(hidden.shown(path), error.reason) from error


def _leave(hidden: StagingDirectory) -> None:
    with contextlib.suppress(OSError):  # the next run removes the rest
        _empty(hidden)
    hidden.leave()


def _empty(hidden: StagingDirectory) -> None:
    """Remove all files of an unfinished run."""
    for name in (_BAG, _TAGS, _REQUEST):
        hidden.remove(name)


def _packed(request: dict[str, Any], bag: os.stat_result) -> bytes:
    return json.dumps({"request": request, "inode": bag.st_ino}).encode()


def _was_finished(hidden: StagingDirectory, destination: bytes, request: dict[str, Any]) -> bool:
    """Return whether a killed run with the same request had already moved this bag into place."""
    if exists(os.path.join(hidden.inside, _BAG)):
        return False
    try:
        with open(os.path.join(hidden.inside, _REQUEST), "rb") as file:
            return file.read() == _packed(request, os.lstat(destination))
    except FileNotFoundError:
        return False
