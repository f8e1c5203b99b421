"""Validating bags, in chunks."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from pressmark.bagit.validation.validate import LEVELS, validate
from pressmark.bagit.walk import LINKS
from pressmark.errors import BagError
from pressmark.jobs.chunks import BYTES, Chunk
from pressmark.jobs.listing import ListingLine, read_listing, write_listing
from pressmark.jobs.receipt_builder import ReceiptBuilder
from pressmark.jobs.receipts import Receipt
from pressmark.jobs.workdir import WorkFolder, job_key

__all__ = ["ValidateBags"]

LISTING = "bags.jsonl"
BAGS = 20


@dataclass(frozen=True)
class ValidateBags:
    """Reports of bags, wherever they are: a line a bag, with its problems.

    The statuses are ``valid`` (of level ``full`` only), ``passed``, ``invalid`` and ``unreadable``.

    :ivar level: ``full``, ``complete`` or ``oxum``, as :meth:`pressmark.bagit.Bag.validate` has them
    :ivar lenient: take blank lines in manifests for warnings
    :ivar links: follow symbolic links that stay ``inside`` of the bag, or ``trusted`` ones, which are all
    :ivar profile: the file of a BagIt Profile to check against, absolute; :data:`None` for none
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

    def parameters(self) -> dict[str, Any]:
        """Return what decides its output, as in JSON."""
        # Later parameters count where they are given: runs that were begun without them can be resumed.
        later = {"links": "inside", "profile": None}
        return {name: value for name, value in asdict(self).items() if name not in later or value != later[name]}

    @property
    def key(self) -> str:
        """What it does."""
        return job_key("validate-bags", self.parameters())

    def plan(
        self,
        folder: str | os.PathLike[str],
        bags: Iterable[str | bytes | os.PathLike[str] | os.PathLike[bytes]],
        count: int = BAGS,
        nbytes: int = BYTES,
    ) -> Iterator[Chunk]:
        """Give chunks of bags, in their order.

        :param folder: the work folder, where the listing is written
        :param bags: their directories
        :param count: how many make a chunk
        :param nbytes: how many bytes of files right in their payload directories make a chunk
        """
        return write_listing(folder, LISTING, "bags", _listed(bags), count, nbytes)

    def run(self, chunk: Chunk, work: WorkFolder) -> Receipt:
        """Validate the bags of a chunk."""
        name = f"{chunk.id}.jsonl"
        status = "valid" if self.level == "full" else "passed"
        profile = self._profile()
        with ReceiptBuilder(chunk, work) as receipt, work.writing(name) as output:
            for path in read_listing(work, chunk):
                try:
                    report = validate(
                        os.fsencode(path),
                        self.level,
                        lenient=self.lenient,
                        links=self.links,
                        threads=1,
                        profile=profile,
                        keep=sys.maxsize,
                    )
                except BagError as error:
                    receipt.fail("unreadable", path=path, message=error.reason)
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
        # Here and not above: few validations need what a profile needs.
        from pressmark.bagit.profile.profile import Profile

        return Profile.load(self.profile)


def _listed(bags: Iterable[Any]) -> Iterator[ListingLine]:
    for bag in bags:
        path = os.path.abspath(os.fsdecode(bag))
        yield ListingLine(path, _size(path), os.path.dirname(path))


def _size(path: str) -> int:
    """Return what a look into the payload directory shows: a whole walk would take as long as some validations."""
    try:
        with os.scandir(os.path.join(path, "data")) as entries:
            return sum(entry.stat(follow_symlinks=False).st_size for entry in entries)
    except OSError:
        return 0
