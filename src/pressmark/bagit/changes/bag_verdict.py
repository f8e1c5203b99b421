"""The verdict on a bag that is packed or unpacked."""

from __future__ import annotations

from collections.abc import Iterable

from pressmark.bagit.changes import Listener
from pressmark.bagit.problems import BagReport
from pressmark.errors import BagError, BagInvalidError
from pressmark.reports import ERROR, Problem

__all__ = ["Verdict"]

# A bag that is not downloaded completely can be packed, and completed after unpacking.
_NOT_FETCHED, _OXUM = "file-not-fetched", "oxum-mismatch"


class Verdict:
    """The problems of a bag: counted, reported as events, and turned into an error.

    :ivar report: the report of the validation
    :ivar is_invalid: whether there is an error other than a file to be downloaded
    """

    def __init__(self, on_event: Listener) -> None:
        self.report = BagReport(level="full")
        self.is_invalid = False
        self._is_holey = False
        self._first: Problem | None = None
        self._errors = 0
        self._oxum: list[Problem] = []
        self._on_event = on_event

    def add(self, problems: Iterable[Problem]) -> None:
        """Add problems. The Payload-Oxum of a bag with files to be downloaded cannot match."""
        for found in problems:
            if found.kind == _NOT_FETCHED:
                self._is_holey = True
            elif found.kind == _OXUM and self._is_holey:
                continue
            elif found.severity == ERROR:
                self.is_invalid = True
                self._errors += 1
                self._first = self._first or found
            self.report.add([found])
            self._on_event(found)

    def raise_if_invalid(self, path: bytes, consequence: str) -> None:
        """Raise an error about the problems, if the bag is invalid.

        :param consequence: the state after the error
        :raises BagInvalidError: the bag is invalid
        """
        if self._first is None:
            return
        first = self._first
        shown = str(BagError(first.path, first.message)) if first.path else first.message
        reason = f"bag is not valid, {consequence}: {shown}"
        if self._errors > 1:
            reason += f"; and {self._errors - 1} more"
        raise BagInvalidError(path, reason, self.report)
