"""Match the files that the walk finds with the manifests."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from time import monotonic

from pressmark.bagit.bag_directory import BagFiles, Match
from pressmark.bagit.bag_tags import ManifestFile, missing_problem
from pressmark.bagit.manifest import PATH_LIMIT
from pressmark.bagit.manifest_index import Listing
from pressmark.bagit.paths import BELOW_PAYLOAD, PAYLOAD
from pressmark.bagit.problems import judge_violation, problem
from pressmark.bagit.validation.tag_files import ReportProblems, TagFiles, lacking
from pressmark.bagit.walk import BagEntry, UnreadableDirectories, walk
from pressmark.errors import quoted
from pressmark.fixity.outcomes import PROGRESS_EVERY
from pressmark.fs.disk_queue import DiskQueue
from pressmark.reports import Problem, ProgressEvent

__all__ = ["FileMatcher"]


class FileMatcher:
    """One walk through a bag.

    :param base: its files
    :param links: as in :func:`pressmark.bagit.walk.walk`
    :param report_problems: called with problems

    :ivar nbytes: size of the payload files
    :ivar nfiles: number of payload files
    :ivar tag_files: number of other files
    :ivar is_counted: whether the walk could list the whole payload
    """

    def __init__(self, base: BagFiles, tag_files: TagFiles, links: str, report_problems: ReportProblems) -> None:
        self._base = base
        self._tag_files = tag_files
        self._payload = tag_files.payload
        self._tags = tag_files.tags
        self._links = links
        self._report_problems = report_problems
        self._unreadable = UnreadableDirectories()
        self.nbytes = self.nfiles = self.tag_files = 0
        self.is_counted = True

    def counts(self) -> dict[str, int]:
        """Return the counts of a report."""
        return {"files": self.nfiles, "bytes": self.nbytes, "tag_files": self.tag_files}

    def run(self, on_event: Callable[[ProgressEvent], object] | None) -> None:
        """Check all files without reading them."""
        next_progress = monotonic() + PROGRESS_EVERY
        matches = self.matches() if self._tag_files.level != "oxum" else self._entries()
        for found in matches:
            if isinstance(found, Match):
                self._check_readable(found.path, found.real)
            if on_event is not None and monotonic() >= next_progress:
                next_progress = monotonic() + PROGRESS_EVERY
                on_event(ProgressEvent(items=self.nfiles + self.tag_files))
        if on_event is not None:
            on_event(ProgressEvent(items=self.nfiles + self.tag_files))

    def matches(self) -> Iterator[Match]:
        """Yield each file that a manifest lists, with its checksums; report problems of the others."""
        for match in self.files():
            if match.digests:
                yield match
            else:
                self._check_readable(match.path, match.real)

    def files(self) -> Iterator[Match]:
        """Yield each file with its listed checksums. An unlisted file has none, and is reported.

        A file that a manifest does not list under its own name may be listed under another spelling. Such files are
        matched last, when all exact matches are known.
        """
        with DiskQueue[tuple[bytes, bytes | None]]() as strays:
            for found in self._entries():
                path = found.path
                if path == PAYLOAD:
                    continue
                listing = self._listing(path)
                digests = listing.find(path, mark=True)
                if found.kind == "file":
                    if digests.keys() >= set(listing.algorithms):
                        yield Match(path, found.real, digests)
                    else:
                        strays.add((path, found.real))
                elif digests and found.kind == "directory":
                    self._report_problems([problem("path-directory", path)])
            for path, real in strays:
                yield Match(path, real, *self._everywhere(path))

    def _check_readable(self, path: bytes, real: bytes | None) -> None:
        """Report a file that cannot be read and that no one else reads."""
        error = self._base.why_unreadable(path, real)
        if error is None or isinstance(error, FileNotFoundError) or path in self._tag_files.unreadable:
            return
        self._report_problems([problem("file-unreadable", path, error.strerror or str(error))])

    def check_missing(self) -> None:
        """Report files that are listed but were not found, after the walk."""
        bag, fetched = self._tag_files.bag, self._tag_files.fetched
        for listing, manifests in ((self._payload, bag.manifests), (self._tags, bag.tag_manifests)):
            missing = False
            for listed in listing.unmarked():
                if self._unreadable.hides(listed.path):
                    continue
                missing = True
                # Bounds memory; no file has a longer path.
                path = listed.path[:PATH_LIMIT]
                if listing is self._payload and fetched is not None and listed.path in fetched:
                    self._report_problems([problem("file-not-fetched", path)])
                else:
                    self._report_problems([missing_problem(path, manifests, listed.digests)])
            if missing:
                self._explain_missing(listing)

    def report_unreadable(self) -> None:
        """Report the directories that the walk could not list, after :meth:`check_missing`."""
        for found in self._unreadable.problems():
            if os.fsencode(found.path) not in self._tag_files.unreadable:
                self._report_problems([found])

    def _explain_missing(self, listing: Listing) -> None:
        """Report listed names of which a file system that ignores case or normalization keeps only one (6.1.1.3).

        If both files exist, the walk has reported them.
        """
        for first, second in listing.collisions():
            if not (listing.is_marked(first) and listing.is_marked(second)):
                differs = f"name differs from {quoted(first)} only in case or normalization"
                message = f"{differs}; some file systems keep only one of them"
                self._report_problems([problem("name-clash", second[:PATH_LIMIT], message)])

    def _entries(self) -> Iterator[BagEntry]:
        """Walk, count, and report the problems of the walk."""
        fetched = self._tag_files.fetched
        for found in walk(self._base, links=self._links):
            if found.fault is not None:
                self._add_fault(found.fault)
            if found.kind == "file":
                if found.path.startswith(BELOW_PAYLOAD):
                    self.nfiles += 1
                    self.nbytes += found.size
                    if fetched is not None:
                        self._check_length(found.path, found.size, fetched.length(found.path))
                else:
                    self.tag_files += 1
            yield found

    def _add_fault(self, fault: Problem) -> None:
        """Report a fault of the walk, or keep it until the files that it hides are known."""
        if fault.kind != "file-unreadable":
            self._report_problems([self._judged(fault)])
            return
        path = os.fsencode(fault.path)
        self.is_counted &= path not in (b"", PAYLOAD) and not path.startswith(BELOW_PAYLOAD)
        if self._listing(path).find(path):
            self._report_problems([fault])
        else:
            self._unreadable.add(fault)

    def _judged(self, fault: Problem) -> Problem:
        """Return a fault of the walk with its severity for validation.

        Even if links are trusted, tag files that the draft describes must not be links out of the bag.
        """
        if fault.kind == "link-outside" and os.fsencode(fault.path) in self._tag_files.names - {PAYLOAD}:
            return problem("link-outside", fault.path)
        return fault

    def _listing(self, path: bytes) -> Listing:
        return self._payload if path.startswith(BELOW_PAYLOAD) else self._tags

    def _check_length(self, path: bytes, size: int, length: int | None) -> None:
        if length is not None and length != size:
            message = f"{size} bytes; fetch.txt states {length}"
            self._report_problems([problem("fetch-length", path, message, expected=str(length), found=str(size))])

    def _compare_lists(self, path: bytes, digests: Mapping[str, str]) -> None:
        """Check that all required manifests list a file."""
        bag = self._tag_files.bag
        if path.startswith(BELOW_PAYLOAD):
            if not self._tag_files.is_everywhere(digests):
                self._report_problems([problem("file-not-everywhere", path, lacking(bag.manifests, digests))])
        elif len(digests) < len(set(self._tags.algorithms)) and not self._is_unlisted_rightly(path):
            differ = problem("tag-manifests-differ", path, lacking(bag.tag_manifests, digests))
            self._report_problems(judge_violation("tag-manifests-alike", bag.version, differ))

    def _everywhere(self, path: bytes) -> tuple[Mapping[str, str], tuple[bytes, ...]]:
        """Return the checksums of a file in all manifests, and the other spellings of its name in some of them."""
        listing = self._listing(path)
        digests = listing.find(path)
        respelled = []
        for again in listing.find_rest(path, digests):
            message = f"listed as {quoted(again.path)}"
            if digests:
                names = (os.fsdecode(one.name) for one in self._manifests(path) if one.algorithm in again.digests)
                message += f" in {', '.join(names)}"
            expected, found = os.fsdecode(again.path), os.fsdecode(path)
            self._report_problems([problem(again.kind, path, message, expected=expected, found=found)])
            digests.update(again.digests)
            respelled.append(again.path)
        if digests:
            self._compare_lists(path, digests)
        else:
            self._say_unlisted(path)
        return digests, tuple(respelled)

    def _say_unlisted(self, path: bytes) -> None:
        # A missing manifest was reported once.
        if path.startswith(BELOW_PAYLOAD):
            if self._payload.algorithms:
                self._report_problems([problem("file-unlisted", path)])
        elif self._tags.algorithms and not self._is_unlisted_rightly(path):
            self._report_problems([problem("tag-file-unlisted", path)])

    def _is_unlisted_rightly(self, path: bytes) -> bool:
        """Return whether tag manifests may or must omit a tag file, or the omission was reported as an error."""
        bag = self._tag_files.bag
        return any(manifest.name == path for manifest in (*bag.manifests, *bag.tag_manifests))

    def _manifests(self, path: bytes) -> tuple[ManifestFile, ...]:
        bag = self._tag_files.bag
        return bag.manifests if path.startswith(BELOW_PAYLOAD) else bag.tag_manifests
