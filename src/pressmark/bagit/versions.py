"""The rules that differ between versions of BagIt, as data: a bag is checked by the rules of its own version.

All other rules are the same in all versions, or left open by older versions.

>>> applies("tag-manifest-complete", (1, 0)), applies("tag-manifest-complete", (0, 97))
(True, False)
"""

from __future__ import annotations

from typing import NamedTuple

from pressmark.reports import WARNING, Problem

__all__ = ["RULES", "VERSIONS", "VersionRule", "applies", "judge_violation"]

#: All published versions, in order.
VERSIONS = ((0, 93), (0, 94), (0, 95), (0, 96), (0, 97), (1, 0))


class VersionRule(NamedTuple):
    """A rule that some versions do not have.

    :ivar since: the first version with the rule
    :ivar words: the rule
    :ivar before: what older versions say
    :ivar kinds: kinds of problems of a bag that violates the rule
    :ivar severity: of these problems in older versions; :data:`None` if older versions have no such problem
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
        "It is in package-info.txt; a bag without that file may have bag-info.txt.",
        (),
    ),
    "percent-encoded": VersionRule(
        (1, 0),
        "In paths of manifests and of fetch.txt, CR, LF and % are percent-encoded.",
        "Only CR and LF are percent-encoded; a percent sign stands for itself.",
        ("percent-raw",),
    ),
    "listed-everywhere": VersionRule(
        (1, 0),
        "Every payload file, and every file that fetch.txt lists, is in every payload manifest.",
        "It is in at least one payload manifest.",
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
        "There is no registry.",
        ("algorithm-unregistered",),
    ),
    "labels-tight": VersionRule(
        (1, 0),
        "In bag-info.txt a label is followed by a colon and by one blank.",
        "There may be any number of blanks before and after the colon.",
        ("info-whitespace",),
    ),
    "oxum-once": VersionRule(
        (1, 0),
        "Payload-Oxum is there once.",
        "Every element may be repeated; each Payload-Oxum is checked.",
        ("oxum-repeated",),
        WARNING,
    ),
    "elements-once": VersionRule(
        (1, 0),
        "Bagging-Date, Bag-Size, Bag-Group-Identifier and Bag-Count are there once, and Bag-Count not alone.",
        "Every element may be repeated, and none needs another.",
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
