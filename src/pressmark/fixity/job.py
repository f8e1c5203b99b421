"""The job that hashes the files of a tree."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass

from pressmark.errors import JobError
from pressmark.fixity.algorithms import algorithm_names
from pressmark.fixity.manifests import FORMATS, manifest_line
from pressmark.fixity.outcomes import Outcome
from pressmark.fixity.pool import hash_tasks
from pressmark.fixity.tree import walk_files
from pressmark.fs.names import glob_matcher
from pressmark.jobs.chunks import BYTES, FILES, Chunk, ListingLine, read_listing, require_outside, write_listing
from pressmark.jobs.receipts import Receipt, ReceiptBuilder
from pressmark.jobs.workdir import WorkFolder, job_key
from pressmark.option_names import option
from pressmark.threads import resolve_threads

__all__ = ["HashFiles"]

LISTING = "files.jsonl"


@dataclass(frozen=True)
class HashFiles:
    """Hashes all files below a directory. The output of a chunk is a manifest with names relative to the directory.

    Files without digests are listed in ``<chunk>.errors.jsonl``. The statuses are ``ok`` and the kinds of
    :mod:`pressmark.fs.file_errors`.

    :ivar root: absolute path of the directory
    :ivar algorithms: official names of the algorithms
    :ivar format: format of the manifests: one of :data:`pressmark.fixity.FORMATS`
    :ivar links: ``follow`` symbolic links, ``skip`` them, or report each as an error (``refuse``)
    :ivar exclude: globs of names to leave out: see :func:`~pressmark.fixity.tree.walk`
    :ivar one_file_system: leave out directories on other file systems than the files and directories to hash
    """

    root: str
    algorithms: tuple[str, ...] = ("sha512",)
    format: str = "coreutils"
    links: str = "follow"
    exclude: tuple[str, ...] = ()
    one_file_system: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", os.path.abspath(self.root))
        object.__setattr__(self, "algorithms", algorithm_names(self.algorithms))
        if self.format not in FORMATS:
            raise ValueError(f"format={self.format!r}: expected {', '.join(FORMATS)}")
        if self.format == "coreutils" and len(self.algorithms) != 1:
            raise ValueError(f"{option('format', 'coreutils')} has one digest per file; use bsd or json")
        if self.links not in ("follow", "skip", "refuse"):
            raise ValueError(f"links={self.links!r}: expected follow, skip or refuse")
        exclude = (self.exclude,) if isinstance(self.exclude, str) else self.exclude
        object.__setattr__(self, "exclude", tuple(exclude))
        glob_matcher(self.exclude)  # raises ValueError

    def parameters(self) -> dict[str, object]:
        """Return the parameters of the job, as JSON values."""
        parameters = {**asdict(self), "algorithms": list(self.algorithms)}
        # Omitted by default, so that runs started before the parameters existed can be resumed.
        for name in ("exclude", "one_file_system"):
            if not parameters[name]:
                del parameters[name]
        return parameters

    @property
    def key(self) -> str:
        """The key of the job: see :func:`~pressmark.jobs.workdir.job_key`."""
        return job_key("hash-files", self.parameters())

    def roots(self) -> tuple[str, ...]:
        """Return the directories that every worker must see."""
        return (self.root,)

    def plan(
        self,
        folder: str | os.PathLike[str],
        files: int = FILES,
        nbytes: int = BYTES,
        paths: Sequence[str | bytes] | None = None,
        leave_out: Collection[tuple[int, int]] = (),
        excluded: list[str | bytes] | None = None,
    ) -> Iterator[Chunk]:
        """Walk the tree, and yield chunks that end where the directory changes.

        :param folder: the work folder, where the listing is written
        :param files: files per chunk
        :param nbytes: bytes per chunk
        :param paths: files and directories to hash, absolute or relative to the root; names start with them.
            :data:`None` for the root itself
        :param leave_out: device and inode of files to skip
        :param excluded: receives the name of each file or directory that is left out
        :raises JobError: the directory does not exist, or contains the work folder
        """
        if not os.path.isdir(self.root):
            raise JobError(self.root, "directory not found")
        for path in [self.root] if paths is None else map(os.fsdecode, paths):
            require_outside(folder, os.path.normpath(os.path.join(self.root, path)))
        return write_listing(
            folder, LISTING, "paths", self._listed(paths, leave_out, excluded), files, nbytes, resolve_threads(None)
        )

    def _listed(
        self,
        paths: Sequence[str | bytes] | None,
        leave_out: Collection[tuple[int, int]],
        excluded: list[str | bytes] | None,
    ) -> Iterator[ListingLine]:
        for path in [None] if paths is None else paths:
            yield from self._below(path, leave_out, excluded)

    def _below(
        self,
        given: str | bytes | None,
        leave_out: Collection[tuple[int, int]],
        excluded: list[str | bytes] | None,
    ) -> Iterator[ListingLine]:
        root = os.fsencode(self.root)
        top = root if given is None else os.path.join(root, os.fsencode(given))

        def name(path: bytes) -> str:
            return os.fsdecode(
                os.path.relpath(path, root) if given is None else os.fsencode(given) + path.removeprefix(top)
            )

        left_out: list[str | bytes] = []
        files = walk_files(
            top,
            links=self.links,
            leave_out=leave_out,
            exclude=self.exclude,
            once=True,
            one_file_system=self.one_file_system,
            excluded=left_out,
        )
        for found in files:
            at = os.fsencode(found.path if isinstance(found, Outcome) else found)
            yield self._line(found, at, name(at))
        if excluded is not None:
            excluded.extend(name(os.fsencode(path)) for path in left_out)

    def _line(self, found: str | bytes | Outcome, path: bytes, name: str) -> ListingLine:
        directory = os.path.dirname(path)
        if isinstance(found, Outcome):
            return ListingLine([name, found.kind, found.message], 0, directory)
        try:
            size = os.stat(path).st_size
        except OSError:
            size = 0  # reading it reports the error
        return ListingLine([name], size, directory)

    def run(self, chunk: Chunk, work: WorkFolder) -> Receipt:
        """Hash the files of a chunk."""
        name = f"{chunk.id}.jsonl" if self.format == "json" else f"{chunk.id}.sums"
        with ReceiptBuilder(chunk, work) as receipt, work.writing(name) as output:
            # One thread: each core has a worker.
            links = "refuse" if self.links == "refuse" else "follow"
            for named, outcome in hash_tasks(self._tasks(work, chunk), self.algorithms, 1, links=links):
                if outcome.ok:
                    output.write(manifest_line(outcome._replace(path=named), self.format))
                    receipt.count("ok")
                    receipt.bytes += outcome.size or 0
                else:
                    receipt.fail(outcome.kind or "io-error", path=named, message=outcome.message)
        return receipt.build(self.key, output, name)

    def _tasks(self, work: WorkFolder, chunk: Chunk) -> Iterator[tuple[str, bytes | Outcome]]:
        for name, *failure in read_listing(work, chunk):
            path = os.path.join(os.fsencode(self.root), os.fsencode(name))
            outcome = Outcome(os.fsdecode(path), None, None, None, None, *failure) if failure else None
            yield name, outcome or path
