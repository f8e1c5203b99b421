"""Problems of bags: their kinds, the rules of each version of BagIt, and the report that contains them.

A kind has a stable word, a default severity, and the section of the specification.

The specification is the BagIt File Packaging Format 1.0 (draft-kunze-bagit-17). A bag is checked by the rules of its
version. The rules that older versions do not have are listed below; all other rules are the same in all versions, or
not defined by older versions.

>>> applies("tag-manifest-complete", (1, 0)), applies("tag-manifest-complete", (0, 97))
(True, False)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, cast

from pressmark.errors import short_digest
from pressmark.reports import ERROR, WARNING, Kind, Kinds, Problem, Report, counts_of

__all__ = [
    "KEEP",
    "KINDS",
    "REMEDIES",
    "RULES",
    "VERSIONS",
    "BagReport",
    "Cause",
    "VersionRule",
    "applies",
    "judge_violation",
    "mismatch_problem",
    "problem",
]

#: The kinds of problems that a validation can find.
KINDS = Kinds(
    {
        # --- the declaration, bagit.txt
        "declaration-missing": Kind(ERROR, "2.1.1", "bagit.txt not found"),
        "declaration-malformed": Kind(ERROR, "2.1.1", "bagit.txt does not consist of the two required lines"),
        "declaration-label": Kind(WARNING, "2.1.1", "label in bagit.txt with wrong capitalization"),
        "version-unknown": Kind(ERROR, "2.1.1", "unsupported BagIt version; 0.93 to 1.0 are supported"),
        "encoding-unknown": Kind(ERROR, "2.1.1", "unknown character encoding of the tag files"),
        "encoding-not-utf8": Kind(WARNING, "2.1.1", "character encoding of the tag files is not UTF-8"),
        # --- structure
        "payload-directory-missing": Kind(ERROR, "2.1.2", "payload directory data/ not found"),
        "payload-manifest-missing": Kind(ERROR, "2.1.3", "no payload manifest found"),
        "algorithm-name": Kind(ERROR, "2.4", "algorithm in the name of a manifest is not normalized"),
        "algorithm-repeated": Kind(ERROR, "2.4", "two manifests have the same algorithm under different names"),
        "algorithm-unknown": Kind(ERROR, "3", "unknown algorithm; the checksums of the manifest cannot be verified"),
        "algorithm-unregistered": Kind(WARNING, "2.4", "algorithm of a manifest is not in the IANA registry"),
        # --- text
        "bom": Kind(ERROR, "2.3", "tag file starts with a byte-order mark that its encoding does not allow"),
        "bom-missing": Kind(ERROR, "2.3", "UTF-16 or UTF-32 tag file without a byte-order mark"),
        "undecodable": Kind(ERROR, "2.3", "tag file is not in the encoding that bagit.txt declares"),
        "line-unterminated": Kind(WARNING, "2.3", "last line of a tag file is not terminated"),
        "line-too-long": Kind(ERROR, "", "line is too long for any file path; not read"),
        # --- manifests
        "line-blank": Kind(ERROR, "2.1.3", "blank line in a manifest or in fetch.txt"),
        "line-malformed": Kind(ERROR, "2.1.3", "malformed line in a manifest or in fetch.txt"),
        "checksum-malformed": Kind(
            ERROR, "2.1.3", "malformed checksum: not hexadecimal, or wrong length for the algorithm"
        ),
        "md5sum-mark": Kind(WARNING, "6.1.3", "line in the format of md5sum, with an asterisk or backslash"),
        "path-unsafe": Kind(ERROR, "5.1", "unsafe path: it leads, or could lead, outside the bag"),
        "path-outside-payload": Kind(ERROR, "2.1.3", "payload manifest lists a file outside data/"),
        "path-not-canonical": Kind(WARNING, "2.1.3", "path is not normalized: redundant . or slashes"),
        "path-backslashes": Kind(ERROR, "2.1.3", "separators of the path are backslashes, not slashes"),
        "path-duplicate": Kind(ERROR, "2.1.3", "manifest or fetch.txt lists a file more than once"),
        "path-directory": Kind(ERROR, "2.1.3", "manifest lists a directory"),
        "percent-raw": Kind(WARNING, "2.1.3", "percent sign in a path is not encoded"),
        "problems-omitted": Kind(ERROR, "", "more problems of a kind than are listed"),
        "tag-manifest-payload": Kind(ERROR, "2.2.1", "tag manifest lists a payload file"),
        "tag-manifest-itself": Kind(ERROR, "2.2.1", "tag manifest lists a tag manifest"),
        "tag-manifest-omission": Kind(ERROR, "2.2.1", "tag manifest does not list a payload manifest"),
        "tag-manifests-differ": Kind(WARNING, "2.2.1", "tag manifests do not list the same files"),
        "tag-manifest-algorithms": Kind(
            WARNING, "2.2.1", "tag manifests and payload manifests have different algorithms"
        ),
        "tag-file-unlisted": Kind(WARNING, "2.2.1", "tag file is not listed in any tag manifest"),
        # --- files
        "file-missing": Kind(ERROR, "3", "listed file not found"),
        "file-not-fetched": Kind(ERROR, "3", "file listed in fetch.txt not downloaded yet"),
        "file-unlisted": Kind(ERROR, "3", "payload file is not listed in any payload manifest"),
        "file-not-everywhere": Kind(ERROR, "2.1.3", "payload file is listed in some payload manifests, but not in all"),
        "file-unreadable": Kind(ERROR, "3", "file cannot be read"),
        "file-special": Kind(ERROR, "3", "named pipe, socket or device; not opened"),
        "file-changing": Kind(ERROR, "3", "file changed while it was read"),
        "checksum-mismatch": Kind(ERROR, "3", "checksum mismatch"),
        "link-inside": Kind(WARNING, "5.1", "symbolic link to a file or directory of the bag"),
        "link-outside": Kind(ERROR, "5.1", "symbolic link to a target outside the bag; not followed"),
        "link-dangling": Kind(ERROR, "5.1", "symbolic link to a missing target"),
        "link-loop": Kind(ERROR, "5.1", "symbolic link to a directory that contains it; not entered"),
        "links-too-many": Kind(
            ERROR, "5.1", "symbolic links multiply the files of the bag beyond the limit; the rest was not checked"
        ),
        "name-normalized": Kind(
            WARNING, "6.1.1", "name of a file differs from its manifest entry in Unicode normalization"
        ),
        "name-clash": Kind(WARNING, "6.1.1", "names differ only in case or Unicode normalization"),
        "directory-empty": Kind(WARNING, "2.1.3", "empty directory, which no manifest can list"),
        "excluded": Kind(
            WARNING, "", "left out of a new bag: a glob matches its name, or it is on another file system"
        ),
        # --- metadata, bag-info.txt
        "info-malformed": Kind(ERROR, "2.2.2", "malformed line in bag-info.txt"),
        "info-blank-line": Kind(WARNING, "2.2.2", "blank line in bag-info.txt"),
        "info-whitespace": Kind(
            ERROR, "2.2.2", "spaces around a label in bag-info.txt, or not exactly one after its colon"
        ),
        "info-long-line": Kind(WARNING, "2.2.2", "lines of bag-info.txt are longer than 79 characters"),
        "element-alone": Kind(WARNING, "2.2.2", "Bag-Count without Bag-Group-Identifier"),
        "element-repeated": Kind(WARNING, "2.2.2", "repeated element in bag-info.txt that should occur once"),
        "element-malformed": Kind(WARNING, "2.2.2", "malformed value of an element in bag-info.txt"),
        "info-too-long": Kind(ERROR, "", "bag-info.txt is too large; not read"),
        "oxum-malformed": Kind(
            ERROR, "2.2.2", "malformed Payload-Oxum; expected the number of bytes, a full stop, and the number of files"
        ),
        "oxum-repeated": Kind(ERROR, "2.2.2", "Payload-Oxum occurs more than once"),
        "oxum-mismatch": Kind(ERROR, "2.2.2", "Payload-Oxum does not match the payload"),
        "oxum-missing": Kind(ERROR, "2.2.2", "Payload-Oxum not found"),
        # --- fetch.txt
        "fetch-url": Kind(ERROR, "2.2.3", "URL is not an absolute URI"),
        "fetch-url-odd": Kind(WARNING, "2.2.3", "URL without a host"),
        "fetch-unlisted": Kind(ERROR, "2.2.3", "fetch.txt lists a file that not every payload manifest lists"),
        "fetch-tag-file": Kind(ERROR, "2.2.3", "fetch.txt lists a tag file"),
        "fetch-length": Kind(WARNING, "5.3", "length of a file differs from fetch.txt"),
        "fetch-failed": Kind(ERROR, "2.2.3", "file listed in fetch.txt could not be downloaded"),
        "fetch-refused": Kind(ERROR, "5.2", "entry of fetch.txt not allowed; not downloaded"),
        "fetch-too-long": Kind(ERROR, "5.3", "server sends more bytes than allowed; download stopped"),
        "file-unwritable": Kind(ERROR, "", "file could not be written"),
        "disk-full": Kind(ERROR, "", "no space left on the disk; free some and run the same command again to continue"),
        # --- BagIt Profiles; the sections are those of a profile
        "profile-data-not-empty": Kind(ERROR, "Data-Empty", "profile requires an empty payload"),
        "profile-element-missing": Kind(ERROR, "Bag-Info", "bag-info.txt lacks an element that the profile requires"),
        "profile-element-recommended": Kind(
            WARNING, "Bag-Info", "bag-info.txt lacks an element that the profile recommends"
        ),
        "profile-element-repeated": Kind(
            ERROR, "Bag-Info", "profile does not allow a repeated element of bag-info.txt"
        ),
        "profile-element-value": Kind(
            ERROR, "Bag-Info", "profile does not allow a value of an element of bag-info.txt"
        ),
        "profile-fetch-forbidden": Kind(ERROR, "Allow-Fetch.txt", "profile does not allow fetch.txt"),
        "profile-fetch-missing": Kind(ERROR, "Fetch.txt-Required", "profile requires fetch.txt"),
        "profile-identifier": Kind(
            ERROR, "BagIt-Profile-Identifier", "bag-info.txt does not contain the identifier of the profile"
        ),
        "profile-manifest-forbidden": Kind(ERROR, "Manifests-Allowed", "profile does not allow a payload manifest"),
        "profile-manifest-missing": Kind(ERROR, "Manifests-Required", "profile requires a payload manifest"),
        "profile-payload-file-forbidden": Kind(ERROR, "Payload-Files-Allowed", "profile does not allow a payload file"),
        "profile-payload-file-missing": Kind(
            ERROR, "Payload-Files-Required", "profile requires a payload file or directory"
        ),
        "profile-serialization": Kind(ERROR, "Serialization", "serialization not allowed by the profile"),
        "profile-tag-file-forbidden": Kind(ERROR, "Tag-Files-Allowed", "profile does not allow a tag file"),
        "profile-tag-file-missing": Kind(ERROR, "Tag-Files-Required", "profile requires a tag file"),
        "profile-tag-manifest-forbidden": Kind(ERROR, "Tag-Manifests-Allowed", "profile does not allow a tag manifest"),
        "profile-tag-manifest-missing": Kind(ERROR, "Tag-Manifests-Required", "profile requires a tag manifest"),
        "profile-unknown": Kind(
            WARNING, "", "profile contains a section or parameter unknown to its specification; not checked"
        ),
        "profile-version": Kind(ERROR, "Accept-BagIt-Version", "profile does not accept the BagIt version of the bag"),
        # --- serialized bags
        "archive-malformed": Kind(
            ERROR, "", "archive is damaged, unknown or ambiguous, or does not contain exactly one top-level directory"
        ),
        "archive-member": Kind(ERROR, "", "archive member conflicts with another member, or cannot be unpacked safely"),
        "archive-limit": Kind(ERROR, "", "archive exceeds a limit; unpack it if you trust it"),
        "archive-extra": Kind(WARNING, "", "bytes after the end of an archive"),
        "archive-junk": Kind(
            WARNING, "", "archive contains files that an operating system added beside the bag, such as ._*"
        ),
        "key-unusable": Kind(ERROR, "", "key in object storage that cannot be a file"),
        "key-directory": Kind(WARNING, "", "key in object storage that marks a directory, and is not a file"),
        "archive-unterminated": Kind(
            WARNING, "", "tar file does not end with two blocks of zeros; the manifests show whether files are missing"
        ),
        # --- leftovers
        "change-unfinished": Kind(ERROR, "", "unfinished change of the bag; run the same command again"),
    }
)

#: What to do about each kind of problem, for the documentation.
REMEDIES = {
    "declaration-missing": "restore bagit.txt, or specify the base directory of the bag",
    "declaration-malformed": "write the two lines as in section 2.1.1",
    "declaration-label": "none required; `pressmark bag update` rewrites bagit.txt",
    "version-unknown": "correct bagit.txt, or validate the bag with software for its version",
    "encoding-unknown": "correct the encoding in bagit.txt",
    "encoding-not-utf8": "none required",
    "payload-directory-missing": "restore data/ from another copy; if the manifests list no file, create it",
    "payload-manifest-missing": "restore the manifest from another copy",
    "algorithm-name": "rename the manifest as in section 2.4, or run `pressmark bag update`",
    "algorithm-repeated": "find out which of the two manifests is correct, and move the other one out of the bag",
    "algorithm-unknown": "verify with software that supports it",
    "algorithm-unregistered": "none required; other software may not support the algorithm",
    "bom": "run `pressmark bag update`, which writes the file without the byte-order mark",
    "bom-missing": "declare UTF-16LE, UTF-16BE, UTF-32LE or UTF-32BE in bagit.txt",
    "undecodable": "correct the encoding in bagit.txt, or restore the file from another copy",
    "line-unterminated": "none required; make sure that the file is not truncated",
    "line-too-long": "restore the file from another copy",
    "line-blank": "run `pressmark bag update`, or `pressmark bag validate --lenient`",
    "line-malformed": "restore the file from another copy, or correct the line",
    "checksum-malformed": "restore the manifest from another copy",
    "md5sum-mark": "run `pressmark bag update`, which rewrites the manifest",
    "path-unsafe": "do not unpack or complete the bag; ask its sender",
    "path-outside-payload": "restore the manifest from another copy, or correct the path; it begins with data/",
    "path-not-canonical": "run `pressmark bag update`, which rewrites the manifest",
    "path-backslashes": "run `pressmark bag update`, which rewrites the manifest",
    "path-duplicate": "find out which line is correct; `pressmark bag update` joins lines with the same checksum",
    "path-directory": "correct the line; manifests list files only",
    "percent-raw": "run `pressmark bag update`, which encodes the percent sign",
    "problems-omitted": "correct the listed problems, and validate again",
    "tag-manifest-payload": "run `pressmark bag update`, which rewrites the tag manifest",
    "tag-manifest-itself": "run `pressmark bag update`, which rewrites the tag manifest",
    "tag-manifest-omission": "run `pressmark bag update`, which adds the manifest",
    "tag-manifests-differ": "run `pressmark bag update`, which completes the tag manifests",
    "tag-manifest-algorithms": "run `pressmark bag update`, which makes a tag manifest for each algorithm",
    "tag-file-unlisted": "none required; to list the file, run `pressmark bag update --accept tag-files`",
    "file-missing": "restore the file from another copy; if its removal is intended, run"
    " `pressmark bag update --accept removed`",
    "file-not-fetched": "run `pressmark bag complete`",
    "file-unlisted": "compare the manifests with another copy of the bag; if the file belongs to it, run"
    " `pressmark bag update --accept added`",
    "file-not-everywhere": "run `pressmark bag update`, which completes the manifests",
    "file-unreadable": "validate as a user with read access; check the disk if the message is an input/output error",
    "file-special": "replace it with a regular file, or move it out of the bag",
    "file-changing": "wait until no program writes to the bag, and validate again",
    "checksum-mismatch": "restore the file from another copy; if its change is intended, run"
    " `pressmark bag update --accept changed` (of a tag file: `tag-files`)",
    "link-inside": "none required; a copy of the target is safer",
    "link-outside": "replace the link with a copy of its target; for your own bags, run"
    " `pressmark bag validate --links trusted`",
    "link-dangling": "restore the target, or replace the link with the file from another copy",
    "link-loop": "replace the link with a copy of the files, or move it out of the bag",
    "links-too-many": "replace links to directories with copies",
    "name-normalized": "none required; rename the file if other software does not find it",
    "name-clash": "rename one of the files before you copy the bag to a file system that ignores case",
    "directory-empty": "none required; to keep it in copies, put a file into it",
    "excluded": "none required; in place, create the bag in another directory to keep the file where it is",
    "info-malformed": "correct the line, and run `pressmark bag update --accept tag-files`",
    "info-blank-line": "none required",
    "info-whitespace": "run `pressmark bag update`, which corrects the spaces",
    "info-long-line": "none required",
    "element-alone": "add Bag-Group-Identifier with `pressmark bag update --info`",
    "element-repeated": "set one value with `pressmark bag update --info`",
    "element-malformed": "set a correct value with `pressmark bag update --info`",
    "info-too-long": "restore bag-info.txt from another copy",
    "oxum-malformed": "restore bag-info.txt from another copy, or run `pressmark bag update`, which computes it",
    "oxum-repeated": "run `pressmark bag update`, which computes it",
    "oxum-mismatch": "see the other problems; if there are none, run `pressmark bag update`, which computes it",
    "oxum-missing": "validate at another level",
    "fetch-url": "correct the URL in fetch.txt, and run `pressmark bag update --accept tag-files`",
    "fetch-url-odd": "correct the URL in fetch.txt, and run `pressmark bag update --accept tag-files`",
    "fetch-unlisted": "restore the manifest from another copy, or correct the path in fetch.txt",
    "fetch-tag-file": "correct the path in fetch.txt; it lists payload files only",
    "fetch-length": "none required if the checksum matches; correct the length in fetch.txt",
    "fetch-failed": "run `pressmark bag complete` again, or ask for a new URL",
    "fetch-refused": "allow the URL with the option that the message names, if you trust it",
    "fetch-too-long": "correct the length in fetch.txt, if you trust the server",
    "file-unwritable": "make the bag writable, and run the same command again",
    "disk-full": "free disk space, and run the same command again",
    "profile-data-not-empty": "use another profile, or create a new bag with an empty payload",
    "profile-element-missing": "add the element with `pressmark bag update --info`",
    "profile-element-recommended": "add the element with `pressmark bag update --info`",
    "profile-element-repeated": "set one value with `pressmark bag update --info`",
    "profile-element-value": "set an allowed value with `pressmark bag update --info`",
    "profile-fetch-forbidden": "run `pressmark bag complete`, move fetch.txt elsewhere, and run `pressmark bag update`",
    "profile-fetch-missing": "add fetch.txt, or use another profile",
    "profile-identifier": "set BagIt-Profile-Identifier with `pressmark bag update --info`",
    "profile-manifest-forbidden": "run `pressmark bag update --drop-algorithm`",
    "profile-manifest-missing": "run `pressmark bag update --add-algorithm`",
    "profile-payload-file-forbidden": "move the file out of the bag, and run `pressmark bag update --accept removed`",
    "profile-payload-file-missing": "add the file, and run `pressmark bag update --accept added`",
    "profile-serialization": "pack the bag as the profile requires",
    "profile-tag-file-forbidden": "move the file out of the bag, and run `pressmark bag update --accept tag-files`",
    "profile-tag-file-missing": "add the file, and run `pressmark bag update --accept tag-files`",
    "profile-tag-manifest-forbidden": "run `pressmark bag update --drop-algorithm`",
    "profile-tag-manifest-missing": "run `pressmark bag update --add-algorithm`",
    "profile-unknown": "check the profile for misspelled names",
    "profile-version": "run `pressmark bag update`, if the profile accepts version 1.0",
    "archive-malformed": "request the archive again, or unpack it and validate the directory",
    "archive-member": "do not unpack the archive; ask its sender",
    "archive-limit": "unpack the archive if you trust it, and validate the directory",
    "archive-extra": "none required; make sure that the archive is not truncated or extended",
    "archive-junk": "none required; unpacking leaves them out",
    "key-unusable": "move the content to a key whose parts are names of files",
    "key-directory": "none required; other programs may download the key as an empty file",
    "archive-unterminated": "none required; without a tag manifest, make sure that no tag files are missing",
    "change-unfinished": "run the interrupted command again",
}

#: Creates a problem of one of these kinds; paths are relative to the base directory of the bag.
problem = KINDS.problem


def mismatch_problem(path: bytes, algorithm: str, expected: str, found: str) -> Problem:
    """Return the problem of a file with another digest than the one that a manifest lists."""
    message = f"{algorithm} is {short_digest(found)}; expected {short_digest(expected)}"
    return problem("checksum-mismatch", path, message, algorithm=algorithm, expected=expected, found=found)


# --- causes -----------------------------------------------------------------------------------------------------------

# Kinds of problems of required elements, which explain other problems; the first explains most.
_CAUSES = (
    *("declaration-missing", "declaration-malformed", "version-unknown", "encoding-unknown", "bom-missing"),
    *("payload-directory-missing", "payload-manifest-missing", "undecodable", "line-malformed", "line-too-long"),
    *("checksum-malformed", "path-outside-payload", "path-unsafe"),
)
_PAYLOAD_DIFFERS = frozenset(
    ("file-missing", "file-unlisted", "file-not-everywhere", "checksum-mismatch", "path-backslashes")
)


class Cause:
    """Finds the cause of the problems of bags: a required element that is missing or damaged.

    Advice follows the cause. The problems that result from it must not be accepted: if a manifest is damaged, the files
    that it lists no longer are not new.
    """

    def __init__(self) -> None:
        self._kinds: set[str] = set()
        self._payload_differs = self._manifest_differs = self._misses_payload = self._is_unread = False
        self._unlisted = 0

    def add(self, found: Problem) -> None:
        """Add a problem of a bag."""
        # An update rewrites bagit.txt, but not without a warning.
        if found.severity == ERROR or found.kind == "declaration-malformed":
            self._kinds.add(found.kind)
        if found.path.startswith("data/"):
            self._payload_differs |= found.kind in _PAYLOAD_DIFFERS
            self._misses_payload |= found.kind == "file-missing"
            self._is_unread |= found.kind == "file-unreadable"
            self._unlisted += found.kind == "file-unlisted"
        elif found.path.startswith("manifest-"):
            if found.kind == "file-missing":
                self._kinds.add("payload-manifest-missing")
            self._manifest_differs |= found.kind in ("checksum-mismatch", "line-unterminated", "file-unreadable")

    def end_bag(self, files: int) -> None:
        """End the problems of a bag.

        :param files: number of its payload files that exist
        """
        if (self._payload_differs and self._manifest_differs) or self._unlisted == files > 0:
            self._kinds.add("payload-manifest-missing")
        if self._misses_payload and not files and not self._is_unread:
            self._kinds.add("payload-directory-missing")
        self._payload_differs = self._manifest_differs = self._misses_payload = self._is_unread = False
        self._unlisted = 0

    @property
    def kind(self) -> str | None:
        """The kind of problem of the cause, a key of :data:`REMEDIES`; :data:`None` if required elements are sound."""
        return next((kind for kind in _CAUSES if kind in self._kinds), None)


# --- versions ---------------------------------------------------------------------------------------------------------

#: All published versions, in order.
VERSIONS = ((0, 93), (0, 94), (0, 95), (0, 96), (0, 97), (1, 0))


class VersionRule(NamedTuple):
    """A rule that some versions do not have.

    :ivar since: the first version with the rule
    :ivar words: the rule as a sentence
    :ivar before: the rule of older versions
    :ivar kinds: kinds of problems of a bag that violates the rule
    :ivar severity: severity of these problems in older versions; :data:`None` if these versions allow them
    """

    since: tuple[int, int]
    words: str
    before: str
    kinds: tuple[str, ...]
    severity: str | None = None


RULES = {
    "bag-info": VersionRule(
        (0, 96),
        "Bag metadata is in bag-info.txt.",
        "Bag metadata is in package-info.txt; a bag without that file may have bag-info.txt.",
        (),
    ),
    "percent-encoded": VersionRule(
        (1, 0),
        "In paths of manifests and of fetch.txt, CR, LF and % are percent-encoded.",
        "Only CR and LF are percent-encoded; a percent sign is literal.",
        ("percent-raw",),
    ),
    "listed-everywhere": VersionRule(
        (1, 0),
        "Every payload file, and every file that fetch.txt lists, is listed in every payload manifest.",
        "Every such file is listed in at least one payload manifest.",
        ("file-not-everywhere", "fetch-unlisted"),
    ),
    "listed-once": VersionRule(
        (1, 0),
        "A manifest lists a file once.",
        "A file may be listed again with the same checksum; with another checksum it is an error.",
        ("path-duplicate",),
        WARNING,
    ),
    "tag-manifest-complete": VersionRule(
        (1, 0),
        "Every tag manifest lists every payload manifest.",
        "A tag manifest lists any tag files.",
        ("tag-manifest-omission",),
    ),
    "tag-manifests-unlisted": VersionRule(
        (1, 0),
        "No tag manifest lists a tag manifest.",
        "A tag manifest may list another one; its checksum is verified.",
        ("tag-manifest-itself",),
    ),
    "tag-manifests-alike": VersionRule(
        (1, 0),
        "Tag manifests list the same files, with the algorithms of the payload manifests.",
        "Tag manifests are independent of each other and of payload manifests.",
        ("tag-manifests-differ", "tag-manifest-algorithms"),
    ),
    "algorithms-registered": VersionRule(
        (1, 0),
        "Algorithms are in the IANA registry of named information hash algorithms.",
        "No registry is defined.",
        ("algorithm-unregistered",),
    ),
    "labels-tight": VersionRule(
        (1, 0),
        "In bag-info.txt a label is followed by a colon and one space.",
        "Any number of spaces is allowed before and after the colon.",
        ("info-whitespace",),
    ),
    "oxum-once": VersionRule(
        (1, 0),
        "Payload-Oxum occurs once.",
        "Every element may be repeated; each Payload-Oxum is checked.",
        ("oxum-repeated",),
        WARNING,
    ),
    "elements-once": VersionRule(
        (1, 0),
        "Bagging-Date, Bag-Size, Bag-Group-Identifier and Bag-Count occur once; Bag-Count requires "
        "Bag-Group-Identifier.",
        "Every element may be repeated, and none requires another.",
        ("element-repeated", "element-alone"),
    ),
}


def applies(rule: str, version: tuple[int, int]) -> bool:
    """Return whether a rule of :data:`RULES` applies to bags of a version."""
    return version >= RULES[rule].since


def judge_violation(rule: str, version: tuple[int, int], found: Problem) -> list[Problem]:
    """Return the problem of a violated rule with its severity in the bag's version; empty if that version allows it."""
    if applies(rule, version):
        return [found]
    severity = RULES[rule].severity
    return [found._replace(severity=severity)] if severity is not None else []


# --- the report -------------------------------------------------------------------------------------------------------

# A problem takes about half a kilobyte.
KEEP = 100_000

_MISSING = frozenset(("file-missing", "file-not-fetched"))
_CHANGED = frozenset(("checksum-mismatch", "file-changing"))
_UNTRACKED = frozenset(("file-unlisted",))


@dataclass(repr=False)
class BagReport(Report):
    """The problems that a validation found. Beyond :attr:`keep` problems, it only counts them by kind.

    :ivar level: thoroughness: ``oxum``, ``complete`` or ``full``; only a full validation can find a bag valid
    :ivar keep: maximum number of problems to keep
    :ivar tally: number of problems by kind and severity
    """

    level: str = "full"
    keep: int = KEEP
    tally: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def ok(self) -> bool:
        """Whether there are no errors."""
        return self._errors() == 0

    @property
    def missing(self) -> list[str]:
        """Files that are listed in a manifest but do not exist."""
        return list(self._paths(_MISSING))

    @property
    def changed(self) -> list[str]:
        """Files with a wrong checksum."""
        return list(self._paths(_CHANGED))

    @property
    def untracked(self) -> list[str]:
        """Payload files that are not listed in any manifest."""
        return list(self._paths(_UNTRACKED))

    def add(self, problems: Iterable[Problem]) -> None:
        """Count problems, and keep them up to the limit."""
        for found in problems:
            self.tally[found.kind, found.severity] += 1
            if len(self.problems) < self.keep:
                self.problems.append(found)

    def summary(self) -> dict[str, object]:
        """Return the summary of a report as JSON values; ``omitted`` is the number of problems that were not kept."""
        counts = counts_of(self.tally)
        kinds = Counter(cast("dict[str, int]", counts.pop("kinds")))
        return {
            "ok": self.ok,
            **counts,
            "missing": sum(map(kinds.__getitem__, _MISSING)),
            "changed": sum(map(kinds.__getitem__, _CHANGED)),
            "untracked": sum(map(kinds.__getitem__, _UNTRACKED)),
            "kinds": dict(kinds),
            "omitted": self.tally.total() - len(self.problems),
            **self.counts,
        }

    def _errors(self) -> int:
        return sum([number for (_, severity), number in self.tally.items() if severity == ERROR])

    def _paths(self, kinds: frozenset[str]) -> Iterator[str]:
        # A file can have several wrong checksums.
        return iter(dict.fromkeys(found.path for found in self.problems if found.kind in kinds))
