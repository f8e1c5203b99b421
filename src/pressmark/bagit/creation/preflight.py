"""What is to become payload: looked at before anything is made of it, and once more afterwards."""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterable, Iterator

from pressmark.bagit.bag_directory import STAGING, BagDirectory
from pressmark.bagit.changes.events import Event, Notice
from pressmark.bagit.changes.refusals import RUN_AGAIN, refusing
from pressmark.bagit.creation.tag_writer import ManifestWriter
from pressmark.bagit.paths import PAYLOAD, normal_key, why_unsafe
from pressmark.bagit.problems import problem
from pressmark.bagit.walk import BagEntry, walk
from pressmark.errors import BagError
from pressmark.fixity.outcomes import Outcome
from pressmark.fs.durable import exists
from pressmark.fs.names import is_inside
from pressmark.reports import Problem

__all__ = [
    "CHANGED_MEANWHILE",
    "ChangeDetector",
    "Listener",
    "Preflight",
    "payload_files",
    "real_path",
    "record_outcomes",
    "refuse_bag",
    "why_unlistable",
]

Listener = Callable[[Event], object]

# Refusals that are named in the error itself; each is an event, too.
NAMED = 3
CHANGED_MEANWHILE = "it was changed, added or removed while the bag was being made"


class Preflight:
    """The check of sources before a bag is made of them: what they hold, and why none can be made.

    :param links: ``refuse`` symbolic links, or ``follow`` them

    :ivar files: how many will be payload
    :ivar bytes: how many these have
    :ivar refused: how many reasons there are to make no bag
    """

    def __init__(self, links: str, on_event: Listener) -> None:
        self.files = self.bytes = self.refused = 0
        self._links = links
        self._on_event = on_event
        self._reasons: list[str] = []

    def refuse(self, found: Problem) -> None:
        """Note one reason to make no bag."""
        self.refused += 1
        self._on_event(Notice(found._replace(severity="error")))
        if len(self._reasons) < NAMED:
            self._reasons.append(str(BagError(found.path, found.message)))

    def warn(self, found: Problem) -> None:
        """Note what makes a bag that some will not like."""
        self._on_event(Notice(found._replace(severity="warning")))

    def raise_if_refused(self, source: bytes) -> None:
        """Refuse to go on where there was a reason.

        :raises BagError: there was
        """
        if self.refused:
            more = f"; and {self.refused - NAMED} more" if self.refused > NAMED else ""
            raise BagError(source, f"no bag was made, nothing was changed: {'; '.join(self._reasons)}{more}")

    def check_directory(self, base: BagDirectory, into: bytes | None = None) -> None:
        """Go through the directory ``base``.

        :param into: the real path that the bag will have; :data:`None` where it is made in place
        :raises BagError: a link that is followed leads to what will hold the bag
        """
        in_place = into is None
        device = base.status(b"").st_dev
        folder: bytes | None = None
        for found in walk(base, links=self.links_to_follow(in_place)):
            if found.path == STAGING and in_place:
                continue
            if folder is not None and not found.path.startswith(folder + b"/"):
                self.warn(problem("directory-empty", folder))
            folder = None
            if self._passes(base, found, in_place, device):
                if found.kind == "file":
                    self.files += 1
                    self.bytes += found.size
                elif found.kind == "directory":
                    folder = found.path
                    if into is not None and found.fault is not None:
                        _refuse_around(into, os.path.join(base.path, found.path))
        if folder is not None:
            self.warn(problem("directory-empty", folder))

    def links_to_follow(self, in_place: bool) -> str:
        """Return which links a walk is to follow: those that lead out can only be copied."""
        return "trusted" if self._links == "follow" and not in_place else "inside"

    def check_file(self, path: bytes, size: int) -> None:
        """Take up a source that is a file."""
        self.files += 1
        self.bytes += size
        if not _is_readable(path):
            self.refuse(problem("file-unreadable", path))

    def _passes(self, base: BagDirectory, found: BagEntry, in_place: bool, device: int) -> bool:
        """Return whether a file or directory can be in a bag."""
        fault = found.fault
        if fault is not None and fault.kind == "name-clash":
            self._report_collision(base, found)
            return False  # it was counted already
        if fault is not None and fault.kind.startswith("link-") and fault.kind != "link-loop":
            if self._links == "refuse":
                self.refuse(fault._replace(message="it is a symbolic link; remove it, or have links followed"))
                return False
            if in_place and fault.severity == "warning" and not _moves_along(base, found.path):
                self.refuse(fault._replace(message="the symbolic link would lead elsewhere once it is in the payload"))
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
        full = os.path.join(base.path, found.path)
        if found.kind == "file" and not _is_readable(full):
            self.refuse(problem("file-unreadable", found.path))
            return False
        if in_place and found.kind == "directory" and b"/" not in found.path and fault is None:
            # A directory that changes places is written to: its .. is another.
            if base.status(found.path).st_dev != device:
                self.refuse(
                    problem(
                        "file-unreadable", found.path, "another file system is mounted there; make the bag elsewhere"
                    )
                )
            elif not _is_writable(full):
                self.refuse(problem("file-unreadable", found.path, "the directory must be writable to be moved"))
        return True

    def _report_collision(self, base: BagDirectory, found: BagEntry) -> None:
        """Refuse names that are the same once normalized, warn of such as differ only in case (6.1.1.3)."""
        above, _, name = found.path.rpartition(b"/")
        others = os.listdir(os.path.join(base.path, above))
        same = [other for other in others if other != name and normal_key(other) == normal_key(name)]
        if same:
            message = f"{ascii(os.fsdecode(same[0]))[1:-1]} is the same name, written otherwise in Unicode; rename one"
            self.refuse(problem("name-clash", found.path, message))
        else:
            message = "another name differs from it only in case: some file systems keep only one of them"
            self.warn(problem("name-clash", found.path, message))


def why_unlistable(path: bytes) -> str | None:
    """Return why no manifest can list ``path`` below ``data/``; :data:`None` when it can."""
    try:
        path.decode()
    except UnicodeDecodeError:
        return "the name is not UTF-8; rename it"
    reason = why_unsafe(b"%b/%b" % (PAYLOAD, path))
    return f"no manifest may list it, because {reason}; rename it" if reason else None


def payload_files(base: BagDirectory, links: str) -> Iterator[BagEntry]:
    """Give the files of ``base`` that will be payload.

    :param links: as for :func:`~pressmark.bagit.walk.walk`
    """
    return (found for found in walk(base, links=links) if found.kind == "file")


def _is_readable(path: bytes) -> bool:
    return os.access(path, os.R_OK, effective_ids=os.access in os.supports_effective_ids)


def _is_writable(path: bytes) -> bool:
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def _moves_along(base: BagDirectory, path: bytes) -> bool:
    """Return whether a symbolic link leads to the same file when everything is moved together."""
    target = os.readlink(os.path.join(base.path, path))
    depth = path.count(b"/")
    for name in target.split(b"/"):
        depth += (name == b"..") * -1 + (name not in (b"", b".", b".."))
        if depth < 0:
            return False
    return not target.startswith(b"/")


class ChangeDetector:
    """The files that were read, as they were then: to notice whatever became of them afterwards."""

    def __init__(self) -> None:
        self._facts = array("q")

    def add(self, path: bytes, size: int, mtime_ns: int) -> None:
        self._facts.append(hash((path, size, mtime_ns)))

    def compare(self, folder: bytes, now: Iterable[tuple[bytes, os.stat_result]]) -> None:
        """Refuse to go on where the files are not those that were read.

        :param folder: what their paths are relative to
        :raises BagError: one is another, was not there, or is gone: then the one that comes after it is named
        """
        total = sum(self._facts)
        first: bytes | None = None
        count = 0
        for path, status in now:
            fact = hash((path, status.st_size, status.st_mtime_ns))
            total -= fact
            if first is None and (count >= len(self._facts) or self._facts[count] != fact):
                first = path
            count += 1
        # The same files in another order are the same files.
        if total != 0 or count != len(self._facts):
            raise BagError(os.path.join(folder, first or b""), f"{CHANGED_MEANWHILE}; {RUN_AGAIN}")


def real_path(found: BagEntry) -> bytes:
    """Return where a file is, relative to the base directory and without links; it was found without leaving that."""
    assert found.real is not None
    return found.real


def _refuse_around(into: bytes, link: bytes) -> None:
    """Refuse to follow a link to what will hold the bag, at once: all of that would be gone through, too.

    :raises BagError: it leads there
    """
    if is_inside(into, link):
        raise BagError(
            link, "the symbolic link leads to where the bag is made: it would be copied into itself; remove it"
        )


def refuse_bag(path: bytes, nested: bool) -> None:
    """Refuse to make a bag of a bag, unless that is wanted.

    :raises BagError: it is one, or the system cannot say
    """
    with refusing(path):
        if not nested and exists(os.path.join(path, b"bagit.txt")):
            raise BagError(path, "it is a bag already; update it, or ask for a nested bag to put it into another")


def record_outcomes(
    outcomes: Iterable[tuple[bytes, Outcome]], manifests: ManifestWriter, detector: ChangeDetector, preflight: Preflight
) -> tuple[int, int]:
    """Write what was hashed into the manifests, and return how many bytes and files it was.

    :param outcomes: each with the path in the payload
    """
    nbytes = files = 0
    for path, outcome in outcomes:
        if outcome.digests is None or outcome.size is None or outcome.mtime_ns is None:
            kind = "file-changing" if outcome.kind == "changed-while-read" else "file-unreadable"
            preflight.refuse(problem(kind, path, outcome.message))
            continue
        manifests.add(b"%b/%b" % (PAYLOAD, path), outcome.digests)
        detector.add(path, outcome.size, outcome.mtime_ns)
        nbytes += outcome.size
        files += 1
    return nbytes, files
