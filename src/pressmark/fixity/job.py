"""Hashing a tree of files, in chunks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from pressmark.errors import JobError
from pressmark.fixity.algorithms import algorithm_names
from pressmark.fixity.manifests import FORMATS, manifest_line
from pressmark.fixity.outcomes import Outcome
from pressmark.fixity.pool import hash_files
from pressmark.fixity.walk import walk
from pressmark.jobs.chunks import BYTES, FILES, Chunk
from pressmark.jobs.counts import Tally
from pressmark.jobs.listing import Listed, listed_chunks, read_listing, refuse_inside
from pressmark.jobs.receipts import Receipt
from pressmark.jobs.workdir import WorkFolder, job_key

__all__ = ["HashFiles"]

LISTING = "files.jsonl"


@dataclass(frozen=True)
class HashFiles:
    """Digests of all files below a directory: for each chunk a manifest, whose lines have names relative to it.

    Files that have no digest are in ``<chunk>.errors.jsonl``; the statuses are ``ok`` and the kinds of
    :mod:`pressmark.fs.file_errors`.

    :ivar root: the directory, absolute
    :ivar algorithms: their official names
    :ivar format: of the manifests: one of :data:`pressmark.fixity.FORMATS`
    :ivar links: ``follow`` symbolic links, ``skip`` them, or ``refuse`` them with an error each
    """

    root: str
    algorithms: tuple[str, ...] = ("sha512",)
    format: str = "coreutils"
    links: str = "follow"

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", os.path.abspath(self.root))
        object.__setattr__(self, "algorithms", algorithm_names(self.algorithms))
        if self.format not in FORMATS:
            raise ValueError(f"format={self.format!r}: expected {', '.join(FORMATS)}")
        if self.format == "coreutils" and len(self.algorithms) != 1:
            raise ValueError("format='coreutils' holds one digest a file: take bsd or json")
        if self.links not in ("follow", "skip", "refuse"):
            raise ValueError(f"links={self.links!r}: expected follow, skip or refuse")

    def parameters(self) -> dict[str, Any]:
        """Return what decides its output, as in JSON."""
        return {**asdict(self), "algorithms": list(self.algorithms)}

    @property
    def key(self) -> str:
        """What it does."""
        return job_key("hash-files", self.parameters())

    def roots(self) -> tuple[str, ...]:
        """Return the directories that every worker must see."""
        return (self.root,)

    def plan(self, folder: str | os.PathLike[str], files: int = FILES, nbytes: int = BYTES) -> Iterator[Chunk]:
        """Walk the tree, and give chunks that end where a directory does.

        :param folder: the work folder, where the listing is written
        :param files: how many make a chunk
        :param nbytes: how many bytes make a chunk
        :raises JobError: the directory is not there, or the work folder is in it
        """
        if not os.path.isdir(self.root):
            raise JobError(self.root, "there is no such directory")
        refuse_inside(folder, self.root)
        return listed_chunks(folder, LISTING, "paths", self._found(), files, nbytes)

    def _found(self) -> Iterator[Listed]:
        root = os.fsencode(self.root)
        for found in walk(root, links=self.links):
            path = os.fsencode(found.path if isinstance(found, Outcome) else found)
            name = os.fsdecode(os.path.relpath(path, root))
            directory = os.path.dirname(path)
            if isinstance(found, Outcome):
                yield Listed([name, found.kind, found.message], 0, directory)
                continue
            try:
                size = os.stat(path).st_size
            except OSError:
                size = 0  # whoever reads it says why not
            yield Listed([name], size, directory)

    def run(self, chunk: Chunk, work: WorkFolder) -> Receipt:
        """Hash the files of a chunk."""
        name = f"{chunk.id}.jsonl" if self.format == "json" else f"{chunk.id}.sums"
        with Tally(chunk, work) as tally, work.writing(name) as output:
            # One thread: the cores have a chunk each.
            links = "refuse" if self.links == "refuse" else "follow"
            prefix = os.path.join(os.fsencode(self.root), b"")
            for outcome in hash_files(self._paths(work, chunk), self.algorithms, 1, links=links):
                shown = outcome._replace(path=os.fsencode(outcome.path).removeprefix(prefix))
                if outcome.ok:
                    output.write(manifest_line(shown, self.format))
                    tally.count("ok")
                    tally.bytes += outcome.size or 0
                else:
                    tally.fail(outcome.kind or "io-error", path=os.fsdecode(shown.path), message=outcome.message)
        return tally.receipt(self.key, output, name)

    def _paths(self, work: WorkFolder, chunk: Chunk) -> Iterator[bytes | Outcome]:
        for name, *failure in read_listing(work, chunk):
            path = os.path.join(os.fsencode(self.root), os.fsencode(name))
            yield Outcome(path, None, None, None, None, *failure) if failure else path
