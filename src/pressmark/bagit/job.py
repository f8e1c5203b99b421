"""Validate many bags in chunks."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from pressmark.bagit.problems import BagReport
from pressmark.bagit.validation.bag_check import LEVELS
from pressmark.bagit.validation.validate import validate_many
from pressmark.bagit.walk import LINKS
from pressmark.errors import SpillError
from pressmark.jobs.chunks import BYTES, Chunk, ListingLine, read_listing, write_listing
from pressmark.jobs.receipts import Receipt, ReceiptBuilder
from pressmark.jobs.workdir import WorkFolder, job_key

__all__ = ["ValidateBags"]

LISTING = "bags.jsonl"
# A chunk of small bags takes much longer than its receipt.
BAGS = 100
# A directory in the payload counts as this many bytes: its content is not known.
UNKNOWN = BYTES // 20


@dataclass(frozen=True)
class ValidateBags:
    """Validates bags anywhere on disk; the output is one JSON line per bag, with its problems.

    The statuses are ``valid`` (level ``full`` only), ``passed``, ``invalid`` and ``unreadable``.

    :ivar level: ``full``, ``complete`` or ``oxum``, as in :meth:`pressmark.bagit.Bag.validate`
    :ivar lenient: see :func:`pressmark.bagit.validate`
    :ivar links: follow symbolic links that stay ``inside`` the bag, or all ``trusted`` ones
    :ivar profile: absolute path of a BagIt Profile to check, or :data:`None`
    """

    level: str = "full"
    lenient: bool = False
    links: str = "inside"
    profile: str | None = None

    def __post_init__(self) -> None:
        if self.level not in LEVELS:
            raise ValueError(f"level={self.level!r}: expected {', '.join(LEVELS)}")
        if self.links not in LINKS:
            raise ValueError(f"links={self.links!r}: expected {' or '.join(LINKS)}")

    def parameters(self) -> dict[str, object]:
        """Return the parameters that determine the output, as JSON values."""
        # Absent at their defaults: the key of a run includes the parameters.
        absent = {"links": "inside", "profile": None}
        return {name: value for name, value in asdict(self).items() if name not in absent or value != absent[name]}

    @property
    def key(self) -> str:
        """The key of the job: see :func:`~pressmark.jobs.workdir.job_key`."""
        return job_key("validate-bags", self.parameters())

    def plan(
        self,
        folder: str | os.PathLike[str],
        bags: Iterable[str | bytes | os.PathLike[str] | os.PathLike[bytes]],
        count: int = BAGS,
        nbytes: int = BYTES,
    ) -> Iterator[Chunk]:
        """Yield chunks of bags, in the given order.

        :param folder: the work folder, which receives the listing
        :param bags: directories of the bags, or archives
        :param count: maximum number of bags in a chunk
        :param nbytes: maximum number of bytes in a chunk; a directory in a payload directory counts as 205 MiB
        """
        return write_listing(folder, LISTING, "bags", _listed(bags), count, nbytes)

    def run(self, chunk: Chunk, work: WorkFolder) -> Receipt:
        """Validate the bags of a chunk."""
        name = f"{chunk.id}.jsonl"
        status = "valid" if self.level == "full" else "passed"
        profile = self._profile()
        paths = list(read_listing(work, chunk))
        options = {"lenient": self.lenient, "links": self.links, "profile": profile}
        reports = validate_many(paths, self.level, **options, threads=1, keep=sys.maxsize)
        with ReceiptBuilder(chunk, work) as receipt, work.writing(name) as output:
            for path, report in zip(paths, reports, strict=True):
                if isinstance(report, SpillError):
                    raise report
                if not isinstance(report, BagReport):
                    receipt.fail("unreadable", path=path, message=report.reason)
                    continue
                record = {"path": path, **report.summary(), "problems": [one.record() for one in report.problems]}
                output.write(json.dumps(record).encode() + b"\n")
                receipt.bytes += report.counts.get("bytes", 0)
                if report.ok:
                    receipt.count(status)
                else:
                    receipt.fail("invalid", path=path, message=f"{record['errors']} errors")
        return receipt.build(self.key, output, name)

    def _profile(self) -> Any:
        if self.profile is None:
            return None
        # Imported here because few validations have a profile.
        from pressmark.bagit.profile import Profile

        return Profile.load(self.profile)


def _listed(bags: Iterable[Any]) -> Iterator[ListingLine]:
    for bag in bags:
        path = os.path.abspath(os.fsdecode(bag))
        yield ListingLine(path, _size(path), os.path.dirname(path))


def _size(path: str) -> int:
    """Return the estimated size of the payload: a full walk can take as long as a validation."""
    try:
        if os.path.isfile(path):
            return os.path.getsize(path)
        with os.scandir(os.path.join(path, "data")) as entries:
            return sum(
                UNKNOWN if entry.is_dir(follow_symlinks=False) else entry.stat(follow_symlinks=False).st_size
                for entry in entries
            )
    except OSError:
        return 0
