"""Check the files that will become payload before the bag is created."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from pressmark.bagit.bag_directory import STAGING, BagDirectory, Match
from pressmark.bagit.changes import Listener, Notice, refusing
from pressmark.bagit.paths import PAYLOAD, normal_key, why_unsafe
from pressmark.bagit.problems import problem
from pressmark.bagit.walk import BagEntry, Exclusion, walk
from pressmark.bagit.writing.options import CreateOptions
from pressmark.errors import BagError
from pressmark.fs.durable import exists, is_readable
from pressmark.fs.names import decode_fs, is_inside
from pressmark.reports import Problem

__all__ = [
    "Preflight",
    "empty_directories",
    "is_writable",
    "name_problems",
    "payload_files",
    "real_path",
    "refuse_bag",
    "why_unlistable",
]


# Number of problems quoted in the error itself; each one is also an event.
NAMED = 3
# Number of files that are kept between check and hashing.
FEW = 1000


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
        self._delete_excluded = options.delete_excluded
        self._on_event = on_event
        self._reasons: list[str] = []
        self._few: list[BagEntry] = []

    def refuse(self, found: Problem) -> None:
        """Add a problem that prevents the creation."""
        self.refused += 1
        self._on_event(Notice(found._replace(severity="error")))
        if len(self._reasons) < NAMED:
            self._reasons.append(str(BagError(found.path, found.message)))

    def warn(self, found: Problem) -> None:
        """Report a problem that does not prevent the creation."""
        self._on_event(Notice(found._replace(severity="warning")))

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
            for path in empty_directories(entries):
                self.warn(problem("directory-empty", path))

    def payload(self, base: BagDirectory) -> Iterator[BagEntry]:
        """Yield the files that were found in place; many of them by another walk, to bound memory."""
        if len(self._few) == self.files:
            return iter(self._few)
        return payload_files(base, self.links_to_follow(in_place=True), self.exclusion())

    def exclusion(self, on_match: Callable[[BagEntry], object] = lambda _entry: None) -> Exclusion | None:
        """Return what a walk leaves out."""
        return None if self._is_excluded is None else Exclusion(self._is_excluded, on_match)

    def _exclude(self, found: BagEntry) -> None:
        self.warn(problem("excluded", found.path, "left out of the bag"))

    def _exclude_in_place(self, base: BagDirectory, found: BagEntry) -> None:
        if found.real != found.path:
            return  # below a link; also found without it
        full = os.path.join(base.path, found.path)
        if not self._delete_excluded:
            message = "would stay in the directory; create the bag elsewhere (-o)"
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
            if in_place and fault.severity == "warning" and not _moves_along(base, found.path):
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
        if in_place and found.kind == "directory" and b"/" not in found.path and fault is None:
            # Moving a directory writes to it, because its .. entry changes.
            if base.status(found.path).st_dev != device:
                self.refuse(
                    problem(
                        "file-unreadable",
                        found.path,
                        "mount point of another file system; create the bag in a new directory",
                    )
                )
            elif not is_writable(full):
                self.refuse(
                    problem(
                        "file-unreadable",
                        found.path,
                        "directory not writable, so it cannot be moved; change its permissions",
                    )
                )
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


def empty_directories(entries: Sequence[tuple[bytes, object]]) -> list[bytes]:
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
        return (
            "symbolic link to a target outside the directory; move it, or create the bag in a new directory with"
            " --links follow"
        )
    return "symbolic link; include its target with --links follow, or move it elsewhere"


def is_writable(path: bytes) -> bool:
    """Return whether this process has permission to write to a file or directory."""
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def _moves_along(base: BagDirectory, path: bytes) -> bool:
    """Return whether a symbolic link keeps its target when the whole directory is moved."""
    target = os.readlink(os.path.join(base.path, path))
    depth = path.count(b"/")
    for name in target.split(b"/"):
        depth += (name == b"..") * -1 + (name not in (b"", b".", b".."))
        if depth < 0:
            return False
    return not target.startswith(b"/")


def real_path(found: BagEntry | Match) -> bytes:
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
            raise BagError(
                path, "already a bag; run pressmark bag update to change it, or create a nested bag (--nested)"
            )
