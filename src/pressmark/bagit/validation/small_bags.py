"""Validate bags of few small files, many in one call.

The kernel reads all files of a bag and returns only that it is valid, without any problem that depends on rules of this
package. Other bags, and those of the pure implementation, are validated one by one (:mod:`.validate`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pressmark import _kernels
from pressmark.bagit.bag_info import long_line_problem
from pressmark.bagit.problems import BagReport
from pressmark.reports import Problem
from pressmark.threads import call_for_all, ordered_map, resolve_threads

__all__ = ["SmallBag", "check_small_bag", "check_small_bags"]

# Bags in a call: enough to fill the lanes with their files.
BATCH = 64


class SmallBag(NamedTuple):
    """A valid bag.

    :ivar counts: counts of its report
    :ivar problems: its problems, which are warnings
    """

    counts: dict[str, int]
    problems: list[Problem]

    def report(self, keep: int) -> BagReport:
        """Return the report of a full validation, which keeps at most ``keep`` problems."""
        report = BagReport(counts=self.counts, keep=keep)
        report.add(self.problems)
        return report


def check_small_bag(path: bytes) -> SmallBag | None:
    """Return a bag if it is small and valid; :data:`None` for any other."""
    return _check((path,))[0]


def check_small_bags(paths: Sequence[bytes], threads: int | None = None) -> Iterator[SmallBag | None]:
    """Check many bags, and yield the result of :func:`check_small_bag` for each, in order."""
    batches = [paths[begin : begin + BATCH] for begin in range(0, len(paths), BATCH)]
    # A thread for a single batch would only be waited for.
    workers = min(resolve_threads(threads), max(1, len(batches)))
    for found in ordered_map(_check, batches, threads=workers, name="pressmark-bags"):
        yield from found


def _check(paths: Sequence[bytes]) -> list[SmallBag | None]:
    found = call_for_all(_kernels.active.check_small_bags, list(paths))
    return [None if facts is None else _bag(*facts) for facts in found]


def _bag(files: int, nbytes: int, tag_files: int, long_lines: int, first_long: int) -> SmallBag:
    problems = [long_line_problem(long_lines, first_long)] if long_lines else []
    return SmallBag({"files": files, "bytes": nbytes, "tag_files": tag_files}, problems)
