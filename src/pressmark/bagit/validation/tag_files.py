"""Check the tag files of a bag: the part of a validation that does not need the payload."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from pressmark.bagit.bag_directory import BaseDirectory
from pressmark.bagit.bag_info import read_oxum, unfolded
from pressmark.bagit.bag_tags import ManifestFile, open_listing, read_tag_files
from pressmark.bagit.manifest_index import Listing
from pressmark.bagit.paths import FETCH_TXT, PAYLOAD
from pressmark.bagit.problems import applies, judge_violation, problem
from pressmark.errors import quoted_path
from pressmark.reports import ERROR, WARNING, Problem

if TYPE_CHECKING:
    from pressmark.bagit.validation.fetch_entries import FetchEntries

__all__ = ["ReportProblems", "TagFiles", "lacking"]

# Faults of bag-info.txt that are warnings with ``lenient``.
_OF_FORM = frozenset(("info-malformed", "info-whitespace"))

ReportProblems = Callable[[Iterable[Problem]], None]


class TagFiles:
    """The tag files of a bag, read and checked; manifests and fetch.txt by :meth:`read_lists`.

    :param level: ``oxum``, ``complete`` or ``full``
    :param lenient: report as warnings what old tools wrote and what hides no file: blank lines in manifests, malformed
        lines in bag-info.txt and fetch.txt
    :param report_problems: called with problems

    :ivar bag: the content of the tag files
    :ivar payload: the files that the payload manifests list; none before :meth:`read_lists`
    :ivar tags: the files that the tag manifests list; none before :meth:`read_lists`
    :ivar fetched: the files that fetch.txt lists; :data:`None` if it does not exist
    :ivar names: names in the base directory that the draft describes
    :ivar unreadable: tag files that could not be read, which was reported
    """

    payload: Listing
    tags: Listing

    def __init__(self, base: BaseDirectory, level: str, lenient: bool, report_problems: ReportProblems) -> None:
        self._base = base
        self.level = level
        self._lenient = lenient
        self._report_problems = report_problems
        self.fetched: FetchEntries | None = None
        problems: list[Problem] = []
        self.bag, self.names = read_tag_files(base, problems)
        self.unreadable = {os.fsencode(one.path) for one in problems if one.kind == "file-unreadable"}
        if lenient:
            problems = [one._replace(severity=WARNING) if one.kind in _OF_FORM else one for one in problems]
        report_problems(problems)
        if PAYLOAD not in self.names or base.resolve(PAYLOAD).kind in ("file", "special"):
            report_problems([problem("payload-directory-missing", PAYLOAD)])
        if level != "oxum":
            self._check_manifests()

    def read_lists(self, stack: ExitStack, *, payload: bool = True) -> None:
        """Read the manifests and fetch.txt; not at the level ``oxum``, which has no lists.

        :param stack: closes the manifests
        :param payload: read the payload manifests; without them, nothing is known about payload files
        """
        everything = self.level != "oxum"
        self.payload = self._listing(self.bag.manifests if everything and payload else (), stack, tag=False)
        everywhere = applies("listed-everywhere", self.bag.version)
        self._manifests_needed = max(1, len(set(self.payload.algorithms))) if everywhere else 1
        self.tags = self._listing(self.bag.tag_manifests if everything else (), stack, tag=True)
        if everything:
            if FETCH_TXT in self.names:
                self._check_fetch()
            self._check_tag_manifests()

    @property
    def listed(self) -> int | None:
        """The number of files that all manifests list; :data:`None` unless manifests of the same files agree on it."""
        lengths = (self.payload.length, self.tags.length)
        return None if None in lengths else sum(filter(None, lengths))

    def is_everywhere(self, digests: Mapping[str, str]) -> bool:
        """Return whether a payload file that is listed with ``digests`` is in as many payload manifests as required.

        Before 1.0, one is enough (section 3).
        """
        return len(digests) >= self._manifests_needed

    def check_oxum(self, nbytes: int, nfiles: int) -> None:
        """Compare Payload-Oxum with the size and number of payload files (2.2.2)."""
        values = list(map(unfolded, self.bag.info.all("Payload-Oxum")))
        if not values and self.level == "oxum":
            self._report_problems([problem("oxum-missing", self.bag.info_name)])
        found = f"{nbytes}.{nfiles}"
        for value in dict.fromkeys(values):
            # A malformed value was reported already.
            if read_oxum(value) not in (None, (nbytes, nfiles)):
                message = f"Payload-Oxum is {value}; the payload has {found}"
                self._report_problems(
                    [problem("oxum-mismatch", self.bag.info_name, message, expected=value, found=found)]
                )

    def _listing(self, manifests: tuple[ManifestFile, ...], stack: ExitStack, *, tag: bool) -> Listing:
        problems: list[Problem] = []
        listing = open_listing(self._base, self.bag, manifests, problems, tag=tag, lenient=self._lenient)
        self.unreadable.update(os.fsencode(one.path) for one in problems if one.kind == "file-unreadable")
        self._report_problems(problems)
        return stack.enter_context(listing)

    def _check_manifests(self) -> None:
        """Check names and algorithms of the manifests (2.1.3, 2.2.1, 3)."""
        manifests, tag_manifests = self.bag.manifests, self.bag.tag_manifests
        if not manifests:
            self._report_problems([problem("payload-manifest-missing", b"")])
        severity = ERROR if self.level == "full" else WARNING
        for kind in (manifests, tag_manifests):
            known: dict[str, bytes] = {}
            for manifest in kind:
                algorithm = manifest.algorithm
                if not manifest.known:
                    self._report_problems(
                        [problem("algorithm-unknown", manifest.name, severity=severity, algorithm=algorithm)]
                    )
                if algorithm in known:
                    message = f"{quoted_path(known[algorithm])} has the same algorithm"
                    self._report_problems([problem("algorithm-repeated", manifest.name, message, algorithm=algorithm)])
                known[algorithm] = manifest.name
        of_payload = {manifest.algorithm for manifest in manifests}
        of_tags = {manifest.algorithm for manifest in tag_manifests}
        if of_tags and of_payload and of_tags != of_payload:
            expected, found = (", ".join(sorted(names)) for names in (of_payload, of_tags))
            message = f"tag manifests have {found}; payload manifests have {expected}"
            differ = problem("tag-manifest-algorithms", b"", message, expected=expected, found=found)
            self._report_problems(judge_violation("tag-manifests-alike", self.bag.version, differ))

    def _check_tag_manifests(self) -> None:
        """Check that each tag manifest lists every payload manifest (2.2.1)."""
        for manifest in self.bag.manifests:
            listed = self.tags.find(manifest.name)
            for tag_manifest in self.bag.tag_manifests:
                # An unreadable tag manifest was reported already.
                if tag_manifest.algorithm in self.tags.algorithms and tag_manifest.algorithm not in listed:
                    message = f"{quoted_path(manifest.name)} is not listed"
                    omission = problem("tag-manifest-omission", tag_manifest.name, message)
                    self._report_problems(judge_violation("tag-manifest-complete", self.bag.version, omission))

    def _check_fetch(self) -> None:
        from pressmark.bagit.validation.fetch_entries import FetchEntries  # most bags have no fetch.txt

        def lacking_in(digests: Mapping[str, str]) -> str | None:
            return None if self.is_everywhere(digests) else lacking(self.bag.manifests, digests)

        self.fetched = FetchEntries()
        for found in self.fetched.read(self._base, self.bag, self.payload, lacking_in, self._lenient):
            if found.kind == "file-unreadable":
                self.unreadable.add(os.fsencode(found.path))
            self._report_problems([found])


def lacking(manifests: Sequence[ManifestFile], digests: Mapping[str, str]) -> str:
    """Return a message that states which manifests list a file with ``digests``, and which do not."""
    names = {True: "", False: ""}
    for there in names:
        found = [os.fsdecode(one.name) for one in manifests if (one.algorithm in digests) == there]
        names[there] = ", ".join(found)
    if not names[True]:
        return f"not listed in {names[False]}" if names[False] else "not listed in any manifest"
    return f"listed in {names[True]}, but not in {names[False]}"
