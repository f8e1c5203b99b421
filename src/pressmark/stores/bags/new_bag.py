"""The bag of a new object. One of few files with plain names is written without the checks that others need, with the
same result.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from pressmark import _kernels
from pressmark.bagit.bag import create as create_bag
from pressmark.bagit.bag_directory import STAGING
from pressmark.bagit.bag_info import BagInfo, unfolded
from pressmark.bagit.changes import Notice
from pressmark.bagit.paths import PAYLOAD
from pressmark.bagit.writing.options import CreateOptions
from pressmark.bagit.writing.preflight import empty_directories, why_unlistable
from pressmark.bagit.writing.small_folders import list_small_folders
from pressmark.bagit.writing.tag_writer import TagWriter
from pressmark.bagit.writing.write import build_bag
from pressmark.errors import BagError
from pressmark.fixity.copying import Copying, copy_files
from pressmark.fixity.hasher import OpenOptions, keep_status
from pressmark.fixity.outcomes import require_written
from pressmark.fs.beneath import real_path
from pressmark.fs.durable import exists, is_directory
from pressmark.fs.names import decode_fs
from pressmark.fs.removal import remove_tree
from pressmark.fs.trees import longest_inside
from pressmark.stores.bags.walk import IDENTIFIER
from pressmark.stores.exceptions import SourceError
from pressmark.stores.object_sources import copy_source, refuse_within
from pressmark.stores.objects import ObjectSource

__all__ = ["NewBag", "is_writable_identifier", "write_bag", "write_small_bag"]

_PLAIN = re.compile("[!-~]{1,1000}")
# Problems of file names that no manifest can contain.
_OF_NAMES = frozenset({"name-clash", "path-unsafe"})
_QUICK = ("sha512",)  # the algorithms that the kernel for small files computes
_FLAGS = OpenOptions(follow=False).flags

# The name, the digests and the size of a file.
_Files = Sequence[tuple[bytes, Mapping[str, str], int]]


class NewBag(NamedTuple):
    """A bag that was written.

    :ivar size: of its payload, in bytes
    :ivar longest: the longest path in it, after a slash
    :ivar digests: the name of each payload file in ``data``, and its digests; :data:`None` if only its manifests have
        them
    """

    size: int
    longest: bytes
    digests: list[tuple[bytes, Mapping[str, str]]] | None


def is_writable_identifier(identifier: str) -> bool:
    """Return whether a bag-info.txt can contain an identifier."""
    if _PLAIN.fullmatch(identifier):  # written as it is, on one line
        return True
    try:
        written = BagInfo([(IDENTIFIER, identifier)]).to_bytes()
        return bool(identifier) and unfolded(BagInfo.parse(written)[0].all(IDENTIFIER)[0]) == identifier
    except (BagError, ValueError):
        return False


def write_bag(
    source: ObjectSource,
    new: bytes,
    above: Collection[tuple[int, int]],
    algorithms: tuple[str, ...],
    info: list[tuple[str, str]],
    mode: str,
    links: str,
    on_event: Callable[[object], object],
) -> NewBag:
    """Write a bag; it is not flushed.

    :param new: path of the new bag
    :param above: :func:`~pressmark.stores.object_sources.identities_above` of its directory
    :param algorithms: of the manifests
    :param info: elements of bag-info.txt
    :param mode: as for :func:`~pressmark.fixity.copying.copy_files`
    :param links: ``"refuse"`` or ``"follow"`` symbolic links in the source
    :param on_event: called with the events of copying
    :raises SourceError: the source cannot be stored
    :raises OSError: a file cannot be written
    """
    if isinstance(source, (str, os.PathLike)):
        given = os.fsencode(source)
        refuse_within(given, new, above)
        options = CreateOptions.from_arguments(algorithms, info, "refuse", (), None, "parallel", None)
        written = write_small_bag(given, new, options, mode, on_event)
        if written is not None:
            return written
    refused_for: set[str] = set()

    def note(event: object) -> None:
        if isinstance(event, Notice) and event.problem.severity == "error":
            refused_for.add(event.problem.kind)
        else:
            on_event(event)

    try:
        _write_any(source, new, algorithms, info, mode, links, note)
    except BagError as error:
        if isinstance(error.__cause__, OSError):
            raise error.__cause__ from None
        if refused_for and refused_for <= _OF_NAMES:
            kind = "bad-name"
        else:
            kind = "unreadable" if "file-unreadable" in refused_for else "source"
        raise SourceError(kind, str(error)) from None
    data = os.path.join(new, PAYLOAD)
    sizes = (os.lstat(os.path.join(top, name)).st_size for top, _names, files in os.walk(data) for name in files)
    return NewBag(sum(sizes), longest_inside(new), None)


def _write_any(
    source: ObjectSource,
    new: bytes,
    algorithms: tuple[str, ...],
    info: list[tuple[str, str]],
    mode: str,
    links: str,
    note: Callable[[object], object],
) -> None:
    """Write a bag with all checks.

    :raises BagError: the source cannot be stored
    :raises SourceError: the source cannot be stored
    :raises OSError: a file cannot be written
    """
    if isinstance(source, Mapping):
        copy_source(source, new, mode=mode, links=links, on_event=note)
        if exists(os.path.join(new, STAGING)):  # it would be taken for our own and removed
            reason = f"{decode_fs(STAGING)!r} is reserved for changes of the bag; rename the file"
            raise SourceError("bad-name", reason)
        create_bag(new, None, algorithms, info, nested=True, on_event=note)
        # A remaining staging directory would look like an interrupted change.
        remove_tree(os.path.join(new, STAGING))
        return
    given = os.fsencode(source)
    fault = None if is_directory(given) else why_unlistable(os.path.basename(given))
    if fault is not None:
        raise SourceError("bad-name", f"{decode_fs(given)}: {fault}")
    folder = new + b"-parts"
    options = CreateOptions.from_arguments(algorithms, info, links, (), None, "parallel", None)
    try:
        os.rename(build_bag(given, folder, options, mode, True, note), new)
    finally:
        remove_tree(folder)


# --- a bag of few files -----------------------------------------------------------------------------------------------


def write_small_bag(
    source: bytes,
    new: bytes,
    options: CreateOptions,
    mode: str,
    on_event: Callable[[object], object],
) -> NewBag | None:
    """Write a bag; it is not flushed.

    :param source: the directory of the payload
    :param new: path of the new bag
    :param options: of the bag, without tag files and with links refused
    :param mode: as for :func:`~pressmark.fixity.copying.copy_files`
    :param on_event: called with the events of copying
    :return: :data:`None` if the bag cannot be written in this way, or at all: nothing of it is left, and
        :func:`pressmark.bagit.create` reports why
    :raises OSError: a file cannot be written
    """
    data = new + b"/" + PAYLOAD
    found: _Files | None = None
    if mode == "copy" and options.algorithms == _QUICK:
        quick = _kernels.active.copy_small_tree(source, (new, data), _FLAGS)
        if quick is not None:
            on_event(Copying(mode))
            found = [(name, {_QUICK[0]: digest}, size) for name, digest, size in quick]
        elif os.path.lexists(new):
            remove_tree(new)
    if found is None:
        found = _copied(source, new, options.algorithms, mode, on_event)
    if found is None or not all(_is_listable(name) for name, _digests, _size in found):
        written = None
    else:
        written = _with_tag_files(source, new, options, found)
    if written is None and os.path.lexists(new):
        remove_tree(new)
    return written


def _copied(
    source: bytes, new: bytes, algorithms: tuple[str, ...], mode: str, on_event: Callable[[object], object]
) -> _Files | None:
    """Copy a directory of few files of any size; return :data:`None` if that fails or they change meanwhile."""
    entries = _entries(source)
    if not entries or empty_directories(entries):  # a warning
        return None
    data, top = new + b"/" + PAYLOAD, real_path(source)
    os.mkdir(new)
    os.mkdir(data)
    tasks = []
    for name, facts in entries:
        if facts is None:
            os.mkdir(data + b"/" + name)
        else:
            tasks.append((name, top + b"/" + name, data + b"/" + name))
    try:
        copied = list(copy_files(tasks, algorithms, mode=mode, real=True, on_event=on_event))
    except BagError:  # the mode is not possible
        return None
    for _name, outcome in copied:
        require_written(outcome)
    now = _entries(source)
    states = {name: (outcome.size, outcome.mtime_ns) for name, outcome in copied}
    if now is None or states != {name: facts[:2] for name, facts in now if facts is not None}:
        return None
    files = []
    for name, outcome in copied:
        if outcome.digests is None or outcome.size is None:
            return None
        files.append((name, outcome.digests, outcome.size))
    return files


def _entries(source: bytes) -> list[tuple[bytes, tuple[int, int, int] | None]] | None:
    """Return the directories and files in a directory: their paths, and the size, time and inode of each file."""
    (found,) = list_small_folders([source], b"")
    return found


def _with_tag_files(source: bytes, new: bytes, options: CreateOptions, found: _Files) -> NewBag | None:
    """Complete a bag whose payload was copied."""
    data = new + b"/" + PAYLOAD
    # In the order of a walk.
    files = sorted(found, key=lambda file: file[0].split(b"/"))
    inner = {above for name, _digests, _size in files for above in _directories(name)}
    for above in (*sorted(inner, reverse=True), b""):
        keep_status(data + b"/" + above, os.stat(source + b"/" + above))
    size = sum(file[2] for file in files)
    digests = [(name, found) for name, found, _size in files]
    with TagWriter(options, new) as writer:
        for name, one in digests:
            writer.add(name, one)
        tags = writer.finish(size, len(digests))
    small = {name: data for name, data in tags.items() if data is not None}  # the others are in the bag
    written = _kernels.active.write_small([new + b"/" + name for name in small], list(small.values()))
    if written is not True:
        if written is False:
            return None
        raise OSError(written[1], os.strerror(written[1]), new)
    paths = [*(b"/data/" + name for name, _digests in digests), *(b"/" + name for name in tags)]
    return NewBag(size, max(paths, key=len), digests)


def _is_listable(name: bytes) -> bool:
    return not name.startswith(STAGING + b"/") and name != STAGING and why_unlistable(name) is None


def _directories(name: bytes) -> Iterable[bytes]:
    """Return the directories above a file."""
    parts = name.split(b"/")
    return [b"/".join(parts[:depth]) for depth in range(1, len(parts))]
