"""What to do about invalid bags, or a directory that is no bag: advice of ``pressmark bag validate``."""

from __future__ import annotations

import os
from collections import Counter

from pressmark.bagit.bag_tags import is_described
from pressmark.bagit.paths import BELOW_PAYLOAD, PAYLOAD
from pressmark.bagit.problems import REMEDIES, BagReport, Cause
from pressmark.buckets.address import is_address
from pressmark.cli.common.console import remedy_text
from pressmark.errors import StoreError
from pressmark.reports import ERROR, Problem

__all__ = ["Findings", "accept_word", "what_instead", "what_to_do"]

_ACCEPTED_BY = {"file-unlisted": "added", "file-missing": "removed", "checksum-mismatch": "changed"}


def accept_word(problem: Problem) -> str | None:
    """Return the word for ``bag update --accept`` that accepts a change; :data:`None` for any other problem."""
    word = _ACCEPTED_BY.get(problem.kind)
    return word if word is None or problem.path.startswith(os.fsdecode(BELOW_PAYLOAD)) else "tag-files"


class Findings:
    """The problems of all bags of a call, counted.

    :ivar report: their number; problems are not kept
    :ivar accept: words for ``--accept``, of all changes that can be accepted
    :ivar cause: the cause of the problems
    """

    def __init__(self) -> None:
        self.report = BagReport(keep=0)
        self.accept: set[str] = set()
        self.cause = Cause()

    def add(self, problem: Problem) -> None:
        """Count a problem."""
        self.report.add([problem])
        self.cause.add(problem)
        if (word := accept_word(problem)) is not None:
            self.accept.add(word)


def what_instead(path: bytes) -> str:
    """Return what to do if a directory without bagit.txt was meant to be a bag; empty if it may be a damaged one."""
    # Most directories are bags.
    from pressmark import stores
    from pressmark.bagit.changes.destination import enclosing_bag

    names = [os.fsencode(name) for name in os.listdir(path)]
    if PAYLOAD in names or any(map(is_described, names)):
        return ""
    if (above := enclosing_bag(os.path.dirname(os.path.abspath(path)))) is not None:
        bag = os.fsdecode(os.path.relpath(above))
        return f"inside the bag {bag}; to validate it: pressmark bag validate {bag}"
    name = os.fsdecode(path)
    try:
        kind = stores.kind_of(path)
    except StoreError:
        return f"not a bag (no bagit.txt); to make one: pressmark bag create {name} -o BAG"
    if kind == "bags":
        return f"not a bag, but a folder of bags; to check all of them: pressmark store check {name}"
    return f"not a bag, but a store of kind {kind}; to check it: pressmark store check {name}"


def what_to_do(findings: Findings, level: str, bag: bytes | None) -> str:
    """Return what to do about a bag with errors, or if ``bag`` is :data:`None`, about several; on one line."""
    import shlex  # most bags are valid

    name = "BAG" if bag is None else shlex.quote(os.fsdecode(bag))
    errors = Counter({kind: count for (kind, severity), count in findings.report.tally.items() if severity == ERROR})
    if level != "full" and set(errors) == {"oxum-mismatch"}:
        return f"find the files that cause it: pressmark bag validate {name}"
    if (cause := findings.cause.kind) is not None:
        is_tree = bag is None or is_address(bag) or os.path.isdir(bag)
        return _remedy(cause, errors) if is_tree else "request the archive again"
    if bag is not None and is_address(bag) and (findings.accept or errors["file-not-fetched"]):
        return "replace the files by those of another copy of the bag, with another program"
    if bag is not None and not os.path.isdir(bag) and (findings.accept or errors["file-not-fetched"]):
        command = "update" if findings.accept else "complete"
        how = f"unpack it with tar or unzip, and run pressmark bag {command} on the directory"
        return f"request the archive again; or {how}"
    if findings.accept:
        copied = "restore the files from another copy of the bag"
        how = copied if findings.accept - {"added"} else "compare the manifests with another copy of the bag"
        words = ",".join(sorted(findings.accept))
        return f"{how}; if the changes are intended: pressmark bag update {name} --accept {words}"
    if errors["file-not-fetched"]:
        return f"download the files: pressmark bag complete {name}"
    return _remedy(errors.most_common(1)[0][0], errors)


def _remedy(kind: str, errors: Counter[str]) -> str:
    return remedy_text(kind, errors, REMEDIES[kind], "bagit-problems")
