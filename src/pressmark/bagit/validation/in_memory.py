"""Validate bags of few small files in memory, many in one call.

The files of a bag and the lines of its manifests are compared as sets. Where they agree, no rule for a single file or
line has anything to add. A bag where they do not agree, or that has an error or anything unusual such as a link, is not
judged here: it is read from the disk again, file by file (:mod:`.validate`).
"""

from __future__ import annotations

import errno
import io
import os
import re
from collections.abc import Collection, Generator, Iterable, Iterator
from functools import lru_cache
from typing import BinaryIO, NamedTuple, cast

from pressmark import _kernels
from pressmark.bagit.bag_directory import STAGING, ResolvedPath
from pressmark.bagit.bag_tags import BagTags, ManifestFile
from pressmark.bagit.encodings import find_charset
from pressmark.bagit.manifest import digest_digits
from pressmark.bagit.paths import BELOW_PAYLOAD, FETCH_TXT
from pressmark.bagit.validation.tag_files import TagFiles
from pressmark.fixity.scheduling import hash_trees
from pressmark.fs.trees import Tree, Wanted, trees
from pressmark.paths.folding import are_distinct
from pressmark.progress_event import ProgressEvent
from pressmark.reports import ERROR, Problem

__all__ = ["PlainBag", "check_in_memory"]

# Larger bags are read by several threads, file by file. What a torn read finds wrong is looked at again.
_SMALL = Wanted(entries=128, depth=16, total=256 << 10, file=256 << 10, twice=False)
_TAG_FILES = (b"bagit.txt", b"bag-info.txt", b"package-info.txt")
_MANIFESTS = (b"manifest-", b"tagmanifest-")
_WANTED = {
    "full": _SMALL,
    "complete": _SMALL._replace(content="open", prefixes=_TAG_FILES + _MANIFESTS),
    "oxum": _SMALL._replace(content="none", prefixes=_TAG_FILES),
}
# Bytes that have a meaning in some line of a manifest, or that no line contains.
_UNUSUAL = bytes([*range(0x0A), *range(0x0B, 0x20), 0x7F]) + b"%\\"
# Digests of the files of a batch by algorithm.
_Columns = dict[str, list[str | None]]


class PlainBag(NamedTuple):
    """A small bag without errors.

    :ivar tags: its tag files
    :ivar counts: those of its report
    :ivar progress: the progress at its end, as of any other bag
    :ivar problems: its problems, which are warnings
    """

    tags: BagTags
    counts: dict[str, int]
    progress: ProgressEvent
    problems: list[Problem]


def check_in_memory(
    paths: Iterable[bytes],
    level: str,
    *,
    lenient: bool = False,
    threads: int | None = None,
) -> Generator[PlainBag | None]:
    """Yield each bag that is small and has no error, and :data:`None` for any other.

    :param paths: the base directories
    :param level: as in :func:`pressmark.bagit.validate`, like the other options
    :param threads: number of threads; :data:`None` for one per core
    :raises ValueError: the number of threads is invalid
    """
    for batch in trees(b"", paths, _WANTED[level], threads):
        columns: _Columns = {}
        for tree in batch.trees:
            is_plain = tree.state == "whole" and not tree.others
            yield _check(_TreeFiles(batch, tree, columns), level, lenient) if is_plain else None


class _TreeFiles:
    """The files of a bag in memory.

    :ivar files: the number of each
    :ivar directories: their paths
    """

    def __init__(self, batch: _kernels.active.TreeBatch, tree: Tree, columns: _Columns) -> None:
        self.path = tree.path
        self.files = cast("dict[bytes, int]", tree.files)
        self.directories = cast("dict[bytes, int]", tree.directories)
        self.batch = batch
        self._columns = columns

    def hashed(self, algorithms: Collection[str]) -> _Columns:
        """Return the digests of all files of the batch; most bags of a collection have the same algorithms."""
        if lacking := [name for name in algorithms if name not in self._columns]:
            self._columns.update(hash_trees(self.batch, lacking))
        return self._columns

    def names(self) -> Iterator[bytes]:
        """Yield the names in the base directory."""
        return (path for path in (*self.files, *self.directories) if b"/" not in path)

    def resolve(self, path: bytes) -> ResolvedPath:
        """Return what a path in the base directory is."""
        if path in self.files:
            return ResolvedPath("file", path)
        return ResolvedPath("directory" if path in self.directories else "dangling", path)

    def open(self, path: bytes) -> BinaryIO:
        """Open a file.

        :raises OSError: its content is not in memory
        """
        return io.BytesIO(self.content(path))

    def content(self, path: bytes) -> bytes:
        """Return the content of a file.

        :raises OSError: it is not in memory, or no file
        """
        number = self.files.get(path)
        content = None if number is None else self.batch.content(number)
        if content is None:
            raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return content


def _check(files: _TreeFiles, level: str, lenient: bool) -> PlainBag | None:
    problems: list[Problem] = []
    tag_files = TagFiles(files, level, lenient, problems.extend)
    payload = [path for path in files.files if path.startswith(BELOW_PAYLOAD)]
    if STAGING in files.directories or STAGING in files.files:  # a reserved name
        return None
    if not are_distinct([*files.files, *files.directories]) or (
        level != "oxum" and not _agree(files, tag_files, payload)
    ):
        return None
    bag, sizes = tag_files.bag, files.batch.sizes
    nbytes = sum([sizes[files.files[path]] for path in payload])
    tag_files.check_oxum(nbytes, len(payload))
    if any(found.severity == ERROR for found in problems):
        return None
    counts = {"files": len(payload), "bytes": nbytes, "tag_files": len(files.files) - len(payload)}
    progress = ProgressEvent(items=len(files.files))
    if level == "full":
        unlisted = files.files.keys() - payload if not bag.tag_manifests else {one.name for one in bag.tag_manifests}
        read = [sizes[number] for path, number in files.files.items() if path not in unlisted]
        progress = ProgressEvent(items=len(read), bytes=sum(read), of_items=len(read))
    return PlainBag(bag, counts, progress, problems)


def _agree(files: _TreeFiles, tag_files: TagFiles, payload: Collection[bytes]) -> bool:
    """Return whether each manifest lists every file that it must list, once, and nothing else, with its checksum."""
    bag = tag_files.bag
    charset = find_charset(bag.encoding)
    if FETCH_TXT in tag_files.names or charset is None or not charset.is_utf8:
        return False
    columns: _Columns = {}
    if tag_files.level == "full":
        columns = files.hashed({*bag.algorithms, *bag.tag_algorithms})
    elif any(files.batch.states[number] not in ("whole", "unwanted") for number in files.files.values()):
        return False
    tags = files.files.keys() - payload - {manifest.name for manifest in bag.tag_manifests}
    for manifests, paths in ((bag.manifests, payload), (bag.tag_manifests, tags)):
        for manifest in manifests:
            listed = _checksums(files, manifest)
            if listed is None or len(listed) != len(paths):
                return False
            column = columns.get(manifest.algorithm)
            for path in paths:
                checksum = listed.get(path)
                if checksum is None or (column is not None and checksum != column[files.files[path]]):
                    return False
    return True


def _checksums(files: _TreeFiles, manifest: ManifestFile) -> dict[bytes, str] | None:
    """Return the checksum of each path in a manifest; :data:`None` if a line may have a problem."""
    try:
        data = files.content(manifest.name)
    except OSError:
        return None
    if len(data.translate(None, _UNUSUAL)) != len(data):
        return None
    lines = _line_pattern(digest_digits(manifest.algorithm)).findall(data)
    if len(lines) != data.count(b"\n") or not data.endswith(b"\n"):
        return None
    if not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError:
            return None
    found = {path: checksum.decode().lower() for checksum, path in lines}
    return found if len(found) == len(lines) else None


@lru_cache
def _line_pattern(digits: int) -> re.Pattern[bytes]:
    """Return the pattern of a line: a checksum, one or two blanks, and a path that does not begin with a character of
    a meaning: a mark of md5sum, a blank, a home directory; or with a drive."""
    return re.compile(rb"^([0-9A-Fa-f]{%d})  ?(?![* ~]|[^\n]:)([^\n]*)$" % digits, re.MULTILINE)
