"""What becomes the payload of a bag: files and directories, examined first, and looked at again at the end."""

from __future__ import annotations

import errno
import os
import stat
from abc import abstractmethod
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from types import TracebackType
from typing import Any, NamedTuple, Self

from pressmark.bagit.bag_directory import STAGING, BagDirectory, Match
from pressmark.bagit.changes import RUN_AGAIN, Listener, refusing
from pressmark.bagit.paths import BELOW_PAYLOAD, PAYLOAD, normal_key, why_unsafe
from pressmark.bagit.problems import problem
from pressmark.bagit.walk import BagEntry, Exclusion, walk
from pressmark.bagit.writing.options import CreateOptions
from pressmark.buckets.address import is_address
from pressmark.errors import BagError
from pressmark.fixity.outcomes import Content
from pressmark.fs.beneath import real_path
from pressmark.fs.durable import exists, is_readable
from pressmark.fs.names import decode_fs, is_inside
from pressmark.option_names import option
from pressmark.reports import Problem, ProgressEvent

__all__ = [
    "APPEARED",
    "FileFacts",
    "Payload",
    "Preflight",
    "SourceChangedError",
    "Sources",
    "inner_path",
    "is_writable",
    "moves_along",
    "name_problems",
    "payload_files",
    "refuse_bag",
    "why_unlistable",
    "why_unmovable",
]

# Number of problems quoted in the error itself; each one is also an event.
NAMED = 3
# Number of files that are kept between check and hashing.
FEW = 1000
APPEARED = f"changed, added or removed while the bag was being created; {RUN_AGAIN}"


class SourceChangedError(BagError):
    """A file of a source was changed, added or removed while the bag was being created."""

    def __init__(self, path: bytes) -> None:
        super().__init__(path, APPEARED)


#: Path, size, and time of modification in nanoseconds of a file.
FileFacts = tuple[bytes, int, int]


class _Source(NamedTuple):
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


class Payload:
    """What becomes the payload of a bag; a context manager that holds its directories open.

    :param path: the source, for errors
    :param options: of the bag
    :ivar preflight: the result of :meth:`examine`
    :ivar detector: of changes of the files
    :ivar folders: path in the payload and status of each directory, from :meth:`check_unchanged`
    """

    def __init__(self, path: bytes, options: CreateOptions, on_event: Listener) -> None:
        self.path = path
        self.preflight = Preflight(options, on_event)
        self._profile, self._notices = options.profile, options.notices
        self.detector = _ChangeDetector()
        self.folders: list[tuple[bytes, os.stat_result]] = []
        self._on_event = on_event

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        return None

    def examine(self, destination: bytes) -> None:
        """Check all files and directories.

        :param destination: the future bag
        :raises BagError: the bag cannot be created
        """
        self._on_event(ProgressEvent("examine"))
        for notice in self._notices:
            self.preflight.warn(notice)
        self._examine(destination)
        self.preflight.raise_if_refused(self.path)
        if self._profile is not None:
            with refusing(self.path, "nothing was changed"):
                for found in self._profile.check_payload((BELOW_PAYLOAD + path, size) for path, size in self._sizes()):
                    self.preflight.refuse(found)
            self.preflight.raise_if_refused(self.path)

    @abstractmethod
    def _examine(self, destination: bytes) -> None:
        """Check all files and directories."""

    def _sizes(self) -> Iterable[tuple[bytes, int]]:
        """Check the payload, and return the path in it and the size of each file."""
        raise NotImplementedError

    def entries(self) -> Iterator[tuple[bytes, str, bytes | Content]]:
        """Yield path in the payload, kind and path of each file and directory; a directory precedes its content.

        :raises OSError: a directory cannot be read
        """
        raise NotImplementedError

    def check_unchanged(self) -> None:
        """Compare the files with those that were read.

        :raises SourceChangedError: a file was changed, added or removed
        """
        self._on_event(ProgressEvent("check", of_items=self.preflight.files, of_bytes=self.preflight.bytes))
        self.detector.compare(self.path, self._files_now())

    @abstractmethod
    def _files_now(self) -> Iterable[FileFacts]:
        """Return the present facts of the files, and set :attr:`folders`.

        :raises SourceChangedError: a file was changed, added or removed
        """


class Sources(Payload):
    """Files and directories that are copied, packed or hashed. They are opened when the context is entered.

    :param paths: at least one
    :param several: keep the name of each of ``paths`` in the payload
    :param nested: allow sources that are bags
    :raises BagError: on entering: a source cannot be opened, or they cannot be in the same payload
    """

    def __init__(
        self, paths: Sequence[bytes], several: bool, nested: bool, options: CreateOptions, on_event: Listener
    ) -> None:
        if not paths:
            raise ValueError("at least one source is required")
        super().__init__(paths[0], options, on_event)
        self._paths = paths
        self._several = several
        self._nested = nested
        self._sources: Sequence[_Source] = ()
        self._opened = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            self._sources = _open_sources(self._paths, self._several, self._nested, opened)
            self._opened = opened.pop_all()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self._opened.close()

    def refuse_inside(self, destination: bytes) -> None:
        """Refuse a destination that would be part of its own payload.

        :raises BagError: it is inside a source
        """
        for source in self._sources if not is_address(destination) else ():
            if source.base is not None and is_inside(destination, source.path):
                raise BagError(destination, "destination is inside a source; choose another destination")

    def _examine(self, destination: bytes) -> None:
        into = os.path.realpath(os.devnull.encode() if is_address(destination) else destination)
        for source in self._sources:
            if source.base is None:
                self.preflight.check_file(source.path, source.status.st_size)
            else:
                self.preflight.check_directory(source.base, into)

    def _sizes(self) -> Iterator[tuple[bytes, int]]:
        return ((path, os.stat(source).st_size) for path, kind, source in self.entries() if kind == "file")

    def space(self) -> int:
        """Return the size of all files in bytes without the holes of sparse ones, which copies keep."""
        files = (os.stat(source) for _path, kind, source in self.entries() if kind == "file")
        return sum(min(file.st_size, getattr(file, "st_blocks", file.st_size) * 512) for file in files)

    def entries(self, order: Callable[[bytes], Any] | None = None) -> Iterator[tuple[bytes, str, bytes]]:
        """Yield path in the payload, kind and path of each file and directory; a directory precedes its content.

        :param order: as in :func:`~pressmark.bagit.walk.walk`
        :raises OSError: a directory cannot be read
        """
        links = self.preflight.links_to_follow(in_place=False)
        for source in self._sources:
            if source.base is None:
                yield source.prefix, "file", source.real
                continue
            if source.prefix:
                yield source.prefix[:-1], "directory", source.path
            for found in walk(source.base, links=links, exclusion=self.preflight.exclusion(), order=order):
                if found.kind:
                    yield source.prefix + found.path, found.kind, os.path.join(source.real, found.path)

    def _files_now(self) -> Iterator[FileFacts]:
        self.folders = [(b"", source.status) for source in self._sources if not source.prefix]
        for path, kind, source in self.entries():
            status = os.stat(source)
            if kind == "file":
                yield path, status.st_size, status.st_mtime_ns
            else:
                self.folders.append((path, status))


class _ChangeDetector:
    """Fingerprints of the files that were read, to detect later changes."""

    def __init__(self) -> None:
        self._facts = array("q")

    def add(self, path: bytes, size: int, mtime_ns: int) -> None:
        self._facts.append(hash((path, size, mtime_ns)))

    def compare(self, folder: bytes, now: Iterable[FileFacts]) -> None:
        """Compare the files with those that were read. Their order does not matter.

        :param folder: the directory that the paths are relative to
        :raises SourceChangedError: a file was changed, added or removed; for a removed file, it names the next one
        """
        total = sum(self._facts)
        first: bytes | None = None
        count = 0
        for facts in now:
            fact = hash(facts)
            total -= fact
            if first is None and (count >= len(self._facts) or self._facts[count] != fact):
                first = facts[0]
            count += 1
        if total != 0 or count != len(self._facts):
            raise SourceChangedError(os.path.join(folder, first or b""))


def _open_sources(paths: Sequence[bytes], several: bool, nested: bool, stack: ExitStack) -> list[_Source]:
    """Open all sources, and refuse those that cannot be in the same payload.

    :param several: keep the name of each of ``paths`` in the payload
    :param nested: allow sources that are bags
    :param stack: closes the sources
    :raises BagError: a source cannot be opened or used
    """
    names: set[bytes] = set()
    sources = []
    for path in paths:
        with refusing(path):
            status = os.stat(path)
        is_directory = stat.S_ISDIR(status.st_mode)
        prefix = b""
        if several or not is_directory:
            name = os.path.basename(os.path.abspath(path))
            if normal_key(name) in names:
                raise BagError(
                    path,
                    "two sources have this name; rename one, or create the bag from a directory that contains both",
                )
            if reason := why_unlistable(name):
                raise BagError(path, reason)
            names.add(normal_key(name))
            prefix = name + b"/" if is_directory else name
        if is_directory:
            _refuse_unfinished(path)
            refuse_bag(path, nested)
        elif not stat.S_ISREG(status.st_mode):
            raise BagError(path, "neither a directory nor a regular file")
        base = stack.enter_context(BagDirectory(path)) if is_directory else None
        sources.append(_Source(path, prefix, status, base, real_path(path)))
    return sources


def _refuse_unfinished(path: bytes) -> None:
    with refusing(path):
        if not exists(os.path.join(path, STAGING)):
            return
    from pressmark.bagit.changes.bag_changes import is_decided  # few sources have a staging directory

    if is_decided(path):
        raise BagError(path, "a change of this directory was interrupted; run that command again first")


# --- the check of the sources -----------------------------------------------------------------------------------------


class Preflight:
    """The check of the sources of a bag: their number, size and problems.

    :ivar files: number of files that will be payload
    :ivar bytes: size of these files
    :ivar refused: number of problems that prevent the creation
    :ivar discarded: paths of the files and directories to delete, if the bag is created in place
    """

    def __init__(self, options: CreateOptions, on_event: Listener) -> None:
        self.files = self.bytes = self.refused = 0
        self.discarded: list[bytes] = []
        self._links = options.links
        self._is_excluded = options.is_excluded
        self._one_file_system = options.one_file_system
        self._delete_excluded = options.delete_excluded
        self._on_event = on_event
        self._reasons: list[str] = []
        self._few: list[BagEntry] = []

    def refuse(self, found: Problem) -> None:
        """Add a problem that prevents the creation."""
        self.refused += 1
        self._on_event(found._replace(severity="error"))
        if len(self._reasons) < NAMED:
            self._reasons.append(str(BagError(found.path, found.message)))

    def warn(self, found: Problem) -> None:
        """Report a problem that does not prevent the creation."""
        self._on_event(found._replace(severity="warning"))

    def raise_if_refused(self, source: bytes) -> None:
        """Raise an error about the problems that prevent the creation, if any.

        :raises BagError: the bag cannot be created
        """
        if self.refused:
            more = f"; and {self.refused - NAMED} more" if self.refused > NAMED else ""
            raise BagError(source, f"no bag was created and nothing was changed: {'; '.join(self._reasons)}{more}")

    def check_directory(self, base: BagDirectory, into: bytes | None = None) -> None:
        """Check all files and directories in ``base``.

        :param into: real path of the future bag; :data:`None` if it is created in place
        :raises BagError: a followed link leads to a directory that contains the future bag
        """
        in_place = into is None
        device = base.status(b"").st_dev
        folder: bytes | None = None
        on_excluded = partial(self._exclude_in_place, base) if in_place else self._exclude
        for found in walk(base, links=self.links_to_follow(in_place), exclusion=self.exclusion(on_excluded)):
            if found.path == STAGING and in_place:
                continue
            # A directory that cannot be listed is followed by its problem, with the same path.
            if folder is not None and found.path != folder and not found.path.startswith(folder + b"/"):
                self.warn(problem("directory-empty", folder))
            folder = None
            if self._passes(base, found, in_place, device):
                if found.kind == "file":
                    self.files += 1
                    self.bytes += found.size
                    if in_place and len(self._few) < FEW:
                        self._few.append(found)
                elif found.kind == "directory":
                    folder = found.path
                    if into is not None and found.fault is not None:
                        _refuse_around(into, os.path.join(base.path, found.path))
        if folder is not None:
            self.warn(problem("directory-empty", folder))

    def check_entries(self, entries: Sequence[tuple[bytes, tuple[int, int, int] | None]]) -> None:
        """Count files whose names and kinds are known to be fit for a bag, and warn of empty directories.

        :param entries: path in the order of a walk, and size, time of modification and inode of a file
        """
        sizes = [facts[0] for _path, facts in entries if facts is not None]
        self.files, self.bytes = len(sizes), sum(sizes)
        if len(sizes) < len(entries):
            for path in _empty_directories(entries):
                self.warn(problem("directory-empty", path))

    def payload(self, base: BagDirectory) -> Iterator[BagEntry]:
        """Yield the files that were found in place; many of them by another walk, to bound memory."""
        if len(self._few) == self.files:
            return iter(self._few)
        return payload_files(base, self.links_to_follow(in_place=True), self.exclusion())

    def exclusion(self, on_match: Callable[[BagEntry], object] = lambda _entry: None) -> Exclusion | None:
        """Return what a walk leaves out."""
        if self._is_excluded is None and not self._one_file_system:
            return None
        return Exclusion(self._is_excluded or (lambda _name: False), on_match, self._one_file_system)

    def _exclude(self, found: BagEntry) -> None:
        self.warn(problem("excluded", found.path, "left out of the bag"))

    def _exclude_in_place(self, base: BagDirectory, found: BagEntry) -> None:
        if found.real != found.path:
            return  # below a link; also found without it
        full = os.path.join(base.path, found.path)
        if not self._delete_excluded:
            message = "would stay in the directory; create the bag in another directory"
            self.refuse(problem("excluded", found.path, message))
        elif not (is_writable(os.path.dirname(full)) and (found.kind != "directory" or is_writable(full))):
            self.refuse(problem("excluded", found.path, "no permission to delete it; change the permissions"))
        else:
            self.warn(problem("excluded", found.path, "left out of the bag; deleted when the bag is complete"))
            self.discarded.append(found.path)

    def links_to_follow(self, in_place: bool) -> str:
        """Return which links a walk follows: links that lead outside can only be copied."""
        return "trusted" if self._links == "follow" and not in_place else "inside"

    def check_file(self, path: bytes, size: int) -> None:
        """Check a source that is a file."""
        self.files += 1
        self.bytes += size
        if not is_readable(path):
            self.refuse(problem("file-unreadable", path, os.strerror(errno.EACCES)))

    def _passes(self, base: BagDirectory, found: BagEntry, in_place: bool, device: int) -> bool:
        """Return whether a bag can contain a file or directory."""
        fault = found.fault
        if fault is not None and fault.kind == "name-clash":
            self._report_collision(base, found)
            return False  # already counted
        if fault is not None and fault.kind.startswith("link-") and fault.kind != "link-loop":
            if self._links == "refuse":
                self.refuse(fault._replace(message=_link_message(fault.kind, in_place)))
                return False
            if in_place and fault.severity == "warning" and not moves_along(base, found.path):
                self.refuse(
                    fault._replace(
                        message="symbolic link would have another target in the payload; replace it with the target"
                    )
                )
                return False
        if not found.kind:
            assert fault is not None
            self.refuse(fault)
            return False
        if fault is not None:
            self.warn(fault)
        if reason := why_unlistable(found.path):
            self.refuse(problem("path-unsafe", found.path, reason))
            return False
        if in_place and self._leads_to_excluded(found):
            self.refuse(problem("excluded", found.path, "symbolic link to a file that is left out; move it elsewhere"))
            return False
        full = os.path.join(base.path, found.path)
        if found.kind == "file" and not is_readable(full):
            self.refuse(problem("file-unreadable", found.path, os.strerror(errno.EACCES)))
            return False
        if in_place and fault is None and (reason := why_unmovable(base, found, device)):
            self.refuse(problem("file-unreadable", found.path, reason))
        return True

    def _leads_to_excluded(self, found: BagEntry) -> bool:
        """Return whether a file is only found through a link, because its own name is left out."""
        if self._is_excluded is None or found.real is None or found.real == found.path:
            return False
        return any(map(self._is_excluded, decode_fs(found.real).split("/")))

    def _report_collision(self, base: BagDirectory, found: BagEntry) -> None:
        """Refuse names that are equal after normalization; warn of names that differ only in case (6.1.1.3)."""
        above, _, name = found.path.rpartition(b"/")
        others = os.listdir(os.path.join(base.path, above))
        same = [other for other in others if other != name and normal_key(other) == normal_key(name)]
        if same:
            self.refuse(problem("name-clash", found.path, _same_name(same[0])))
        else:
            message = "another name differs only in case; some file systems keep only one of them"
            self.warn(problem("name-clash", found.path, message))


def name_problems(paths: Iterable[bytes]) -> Iterator[Problem]:
    """Yield the problems that prevent a payload with these files and directories."""
    seen: dict[bytes, bytes] = {}
    for path in paths:
        if reason := why_unlistable(path):
            yield problem("path-unsafe", path, reason)
        elif (before := seen.setdefault(normal_key(path), path)) != path:
            yield problem("name-clash", path, _same_name(before))


def _same_name(other: bytes) -> str:
    shown = ascii(os.fsdecode(other))[1:-1]
    return f"{shown} has the same name in another Unicode normalization; rename one of them"


def why_unlistable(path: bytes) -> str | None:
    """Return why no manifest can list ``path`` below ``data/``; :data:`None` if it can."""
    try:
        path.decode()
    except UnicodeDecodeError:
        return "name is not UTF-8; rename it"
    reason = why_unsafe(b"%b/%b" % (PAYLOAD, path))
    return f"manifests cannot list this name: {reason}; rename it" if reason else None


def _empty_directories(entries: Sequence[tuple[bytes, object]]) -> list[bytes]:
    """Return the paths of directories without content, which bags cannot record.

    :param entries: paths in the order of a walk, and :data:`None` for a directory
    """
    following = [path for path, _facts in entries[1:]] + [b""]
    return [
        path
        for (path, facts), after in zip(entries, following, strict=True)
        if facts is None and not after.startswith(path + b"/")
    ]


def payload_files(base: BagDirectory, links: str, exclusion: Exclusion | None = None) -> Iterator[BagEntry]:
    """Yield the files of ``base`` that will be payload.

    :param links: as in :func:`~pressmark.bagit.walk.walk`, like ``exclusion``
    """
    return (found for found in walk(base, links=links, exclusion=exclusion) if found.kind == "file")


def _link_message(kind: str, in_place: bool) -> str:
    """Return the message for a symbolic link that is not followed; not every link can be."""
    if kind == "link-dangling":
        return "symbolic link to a missing target; restore the target, or move the link elsewhere"
    if kind == "link-outside" and in_place:
        what = "symbolic link to a target outside the directory; move it, or create the bag in a new directory with"
        return f"{what} {option('links', 'follow')}"
    return f"symbolic link; include its target with {option('links', 'follow')}, or move it elsewhere"


def why_unmovable(base: BagDirectory, found: BagEntry, device: int) -> str | None:
    """Return why a file or directory cannot be moved with everything else in ``base``; :data:`None` if it can.

    :param device: number of the file system of ``base``
    """
    if found.kind != "directory" or b"/" in found.path:
        return None
    # Moving a directory writes to it, because its .. entry changes.
    if base.status(found.path).st_dev != device:
        return "mount point of another file system; create the bag in a new directory"
    if not is_writable(os.path.join(base.path, found.path)):
        return "directory not writable, so it cannot be moved; change its permissions"
    return None


def is_writable(path: bytes) -> bool:
    """Return whether this process has permission to write to a file or directory."""
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def moves_along(base: BagDirectory, path: bytes) -> bool:
    """Return whether a symbolic link keeps its target when the whole directory is moved."""
    target = os.readlink(os.path.join(base.path, path))
    depth = path.count(b"/")
    for name in target.split(b"/"):
        depth += (name == b"..") * -1 + (name not in (b"", b".", b".."))
        if depth < 0:
            return False
    return not target.startswith(b"/")


def inner_path(found: BagEntry | Match) -> bytes:
    """Return the path of a file without links; only for files found inside the base directory."""
    assert found.real is not None
    return found.real


def _refuse_around(into: bytes, link: bytes) -> None:
    """Refuse to follow a link to a directory that contains the future bag, which would be copied into itself.

    :raises BagError: the link leads there
    """
    if is_inside(into, link):
        raise BagError(link, "symbolic link to a directory that contains the destination; choose another destination")


def refuse_bag(path: bytes, nested: bool) -> None:
    """Refuse to create a bag from a bag, unless ``nested``.

    :raises BagError: ``path`` is a bag, or cannot be accessed
    """
    with refusing(path):
        if not nested and exists(os.path.join(path, b"bagit.txt")):
            raise BagError(path, f"already a bag; update it, or create a nested bag ({option('nested', True)})")
