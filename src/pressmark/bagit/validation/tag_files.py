"""What a bag's tag files say, and what is wrong with them: the part of a validation that needs no payload."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from pressmark.bagit.bag_directory import BagFiles
from pressmark.bagit.bag_info import read_oxum
from pressmark.bagit.bag_tags import ManifestFile, open_listing, read_tag_files
from pressmark.bagit.manifest_index import Listing
from pressmark.bagit.paths import FETCH_TXT, PAYLOAD
from pressmark.bagit.problems import problem
from pressmark.bagit.versions import applies, judge_violation
from pressmark.reports import ERROR, WARNING, Problem

if TYPE_CHECKING:
    from pressmark.bagit.validation.fetch_entries import FetchEntries

__all__ = ["ReportProblems", "TagFiles", "lacking"]

ReportProblems = Callable[[Iterable[Problem]], None]


class TagFiles:
    """The tag files of a bag, read and checked.

    :param level: ``oxum``, ``complete`` or ``full``; at ``oxum`` manifests and fetch.txt are left alone
    :param lenient: blank lines are warnings
    :param say: called with problems
    :param stack: closes the listings

    :ivar bag: as its tag files describe it
    :ivar payload: what the payload manifests list
    :ivar tags: what the tag manifests list
    :ivar fetched: what fetch.txt lists; :data:`None` where there is no such file
    :ivar names: those in the base directory that the draft gives a meaning
    :ivar unreadable: tag files that could not be read, which was said
    """

    def __init__(
        self, base: BagFiles, level: str, lenient: bool, report_problems: ReportProblems, stack: ExitStack
    ) -> None:
        self.base = base
        self.level = level
        self._lenient = lenient
        self._report_problems = report_problems
        self.fetched: FetchEntries | None = None
        problems: list[Problem] = []
        self.bag, self.names = read_tag_files(base, problems)
        self.unreadable = {one.path for one in problems if one.kind == "file-unreadable"}
        report_problems(problems)
        if PAYLOAD not in self.names or base.resolve(PAYLOAD).kind in ("file", "special"):
            report_problems([problem("payload-directory-missing", PAYLOAD)])
        everything = level != "oxum"
        if everything:
            self._check_manifests()
        self.payload = self._listing(self.bag.manifests if everything else (), stack, tag=False)
        everywhere = applies("listed-everywhere", self.bag.version)
        self._manifests_needed = max(1, len(set(self.payload.algorithms))) if everywhere else 1
        self.tags = self._listing(self.bag.tag_manifests if everything else (), stack, tag=True)
        if everything:
            if FETCH_TXT in self.names:
                self._check_fetch()
            self._check_tag_manifests()

    def is_everywhere(self, digests: Mapping[str, str]) -> bool:
        """Return whether a payload file that is listed with ``digests`` is in as many payload manifests as it must be.

        Before 1.0 that is one (section 3).
        """
        return len(digests) >= self._manifests_needed

    def check_oxum(self, nbytes: int, nfiles: int) -> None:
        """Compare Payload-Oxum with what the payload adds up to (2.2.2)."""
        values = self.bag.info.all("Payload-Oxum")
        if not values and self.level == "oxum":
            self._report_problems([problem("oxum-missing", self.bag.info_name)])
        found = f"{nbytes}.{nfiles}"
        for value in dict.fromkeys(values):
            # One that is malformed is among the problems already.
            if read_oxum(value) not in (None, (nbytes, nfiles)):
                message = f"Payload-Oxum is {value}, the payload adds up to {found}"
                self._report_problems(
                    [problem("oxum-mismatch", self.bag.info_name, message, expected=value, found=found)]
                )

    def _listing(self, manifests: tuple[ManifestFile, ...], stack: ExitStack, *, tag: bool) -> Listing:
        problems: list[Problem] = []
        listing = open_listing(self.base, self.bag, manifests, problems, tag=tag, lenient=self._lenient)
        self.unreadable.update(one.path for one in problems if one.kind == "file-unreadable")
        self._report_problems(problems)
        return stack.enter_context(listing)

    def _check_manifests(self) -> None:
        """Check which manifests there are (2.1.3, 2.2.1), and whether their checksums can be verified (3)."""
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
                    message = f"{os.fsdecode(known[algorithm])} has the same algorithm under another name"
                    self._report_problems([problem("algorithm-repeated", manifest.name, message, algorithm=algorithm)])
                known[algorithm] = manifest.name
        of_payload = {manifest.algorithm for manifest in manifests}
        of_tags = {manifest.algorithm for manifest in tag_manifests}
        if of_tags and of_payload and of_tags != of_payload:
            expected, found = (", ".join(sorted(names)) for names in (of_payload, of_tags))
            message = f"tag manifests have {found}, payload manifests {expected}"
            differ = problem("tag-manifest-algorithms", b"", message, expected=expected, found=found)
            self._report_problems(judge_violation("tag-manifests-alike", self.bag.version, differ))

    def _check_tag_manifests(self) -> None:
        """Check that each tag manifest lists every payload manifest (2.2.1)."""
        for manifest in self.bag.manifests:
            listed = self.tags.find(manifest.name)
            for tag_manifest in self.bag.tag_manifests:
                # Of one that could not be read, that was said.
                if tag_manifest.algorithm in self.tags.algorithms and tag_manifest.algorithm not in listed:
                    message = f"it does not list {os.fsdecode(manifest.name)}"
                    omission = problem("tag-manifest-omission", tag_manifest.name, message)
                    self._report_problems(judge_violation("tag-manifest-complete", self.bag.version, omission))

    def _check_fetch(self) -> None:
        from pressmark.bagit.validation.fetch_entries import FetchEntries  # most bags have no fetch.txt

        def lacking_in(digests: Mapping[str, str]) -> str | None:
            return None if self.is_everywhere(digests) else lacking(self.bag.manifests, digests)

        self.fetched = FetchEntries()
        for found in self.fetched.read(self.base, self.bag, self.payload, lacking_in, self._lenient):
            if found.kind == "file-unreadable":
                self.unreadable.add(found.path)
            self._report_problems([found])


def lacking(manifests: Sequence[ManifestFile], digests: Mapping[str, str]) -> str:
    """Return the message for a file that only those manifests list which have ``digests`` for it."""
    names = {True: "", False: ""}
    for there in names:
        found = [os.fsdecode(one.name) for one in manifests if (one.algorithm in digests) == there]
        names[there] = ", ".join(found)
    if not names[True]:
        return f"it is not in {names[False]}" if names[False] else "no manifest lists it"
    return f"it is in {names[True]}, and not in {names[False]}"
