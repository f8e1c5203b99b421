"""Write tag files: the declaration, bag-info.txt, manifests and tag manifests."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from types import TracebackType
from typing import BinaryIO, Self

from pressmark.bagit.bag_info import NAME, BagInfo
from pressmark.bagit.bagit_txt import Declaration, declaration_bytes
from pressmark.bagit.encodings import UTF8, Charset
from pressmark.bagit.manifest_format import manifest_line, manifest_name
from pressmark.bagit.paths import BELOW_PAYLOAD, FETCH_TXT
from pressmark.bagit.writing.options import CreateOptions
from pressmark.errors import BagError
from pressmark.fixity.algorithms import ALGORITHMS
from pressmark.version import __version__

__all__ = ["Contents", "ManifestWriter", "TagWriter", "bag_size", "computed_info"]

IN_MEMORY = 1 << 16  # 64 KiB; a larger tag file is written to disk while it grows
AGENT = f"Pressmark {__version__}"
UNITS = ("B", "KB", "MB", "GB", "TB", "PB", "EB")

#: The content of each tag file by its path in the bag; :data:`None` for one that is in the directory of new tag files.
Contents = dict[bytes, bytes | None]
# Such a content, and the digests of the file by official name.
_Written = tuple[bytes | None, dict[str, str]]


class _NewFile:
    """A tag file that is being written and hashed: in memory, and from a certain size on disk.

    :param path: its path on disk
    :param algorithms: official names
    """

    __slots__ = ("_algorithms", "_file", "_hashers", "_parts", "_path", "_size")

    def __init__(self, path: bytes, algorithms: Sequence[str]) -> None:
        self._path = path
        self._algorithms = algorithms
        self._file: BinaryIO | None = None
        self._parts: list[bytes] = []
        self._size = 0

    def write(self, data: bytes) -> None:
        """Add content."""
        self._parts.append(data)
        self._size += len(data)
        if self._size > IN_MEMORY:
            self._write_to_disk()

    def _write_to_disk(self) -> BinaryIO:
        if self._file is None:
            self._file = open(self._path, "xb")  # noqa: SIM115 - close() closes it
            self._hashers = [ALGORITHMS[name].make(1) for name in self._algorithms]
        data = b"".join(self._parts)
        self._file.write(data)
        for hasher in self._hashers:
            hasher.update(data)
        self._parts.clear()
        self._size = 0
        return self._file

    def finish(self, on_disk: bool = False) -> _Written:
        """Return the content, unless it is on disk, and its digests.

        :param on_disk: write it to disk, whatever its size
        """
        if self._file is None and not on_disk:
            data = b"".join(self._parts)
            return data, {name: _digest_of(name, data) for name in self._algorithms}
        self._write_to_disk().close()
        return None, {name: hasher.hexdigest() for name, hasher in zip(self._algorithms, self._hashers, strict=True)}

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


class ManifestWriter:
    """Writes new manifests, one for each algorithm; a context manager.

    :param folder: directory of manifests that are large
    :param algorithms: official names
    :param charset: the character set that bagit.txt names
    :param version: BagIt version of the bag
    :param tag: write tag manifests
    :param hashed_by: algorithms by which the manifests themselves are hashed
    """

    def __init__(
        self,
        folder: bytes,
        algorithms: Sequence[str],
        charset: Charset = UTF8,
        version: tuple[int, int] = (1, 0),
        *,
        tag: bool = False,
        hashed_by: Sequence[str] = (),
    ) -> None:
        self._charset = charset
        self._version = version
        self._files: list[tuple[str, bytes, _NewFile]] = []
        for algorithm in algorithms:
            name = manifest_name(algorithm, tag=tag)
            file = _NewFile(b"%b/%b" % (folder, name), hashed_by)
            if charset.needs_mark:
                file.write(charset.marks[0][0])
            self._files.append((algorithm, name, file))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all files."""
        for _algorithm, _name, file in self._files:
            file.close()

    def add(self, path: bytes, digests: Mapping[str, str]) -> None:
        """Write the line of a file to each manifest.

        :param path: relative to the base directory
        :param digests: hex digests by official name
        :raises BagError: the character set cannot encode the name
        """
        for algorithm, _name, file in self._files:
            line = manifest_line(digests[algorithm], path, self._version)
            file.write(line if self._charset.is_utf8 else self._encoded(line, path))

    def _encoded(self, line: bytes, path: bytes) -> bytes:
        try:
            return self._charset.encode(line.decode())
        except UnicodeError:
            raise BagError(
                path, f"name cannot be encoded in {self._charset.name}, the character set of the bag"
            ) from None

    def finish(self, on_disk: bool = False) -> dict[bytes, _Written]:
        """Return each manifest by name: its content, unless it is on disk, and its digests.

        :param on_disk: write all manifests to disk, whatever their size
        """
        return {name: file.finish(on_disk) for _algorithm, name, file in self._files}


class TagWriter:
    """Writes the tag files of a new bag (2.1, 2.2), while its payload is read.

    :param options: of the bag
    :param folder: an empty directory for tag files that are large, and those that the options name
    """

    def __init__(self, options: CreateOptions, folder: bytes) -> None:
        self._options = options
        self._folder = folder
        names = options.algorithms
        self._manifests = ManifestWriter(folder, names, version=options.version, hashed_by=names)
        self._fetch: _NewFile | None = None
        self._computed: list[tuple[bytes, bytes]] = []

    def close(self) -> None:
        """Close all files."""
        self._manifests.close()
        if self._fetch is not None:
            self._fetch.close()

    def add(self, path: bytes, digests: Mapping[str, str]) -> None:
        """Add a payload file to the manifests.

        :param path: below ``data/``
        :param digests: hex digests by official name
        """
        self._manifests.add(BELOW_PAYLOAD + path, digests)

    def add_to_fetch(self, line: bytes) -> None:
        """Add a line to fetch.txt, which begins with it."""
        if self._fetch is None:
            self._fetch = _NewFile(os.path.join(self._folder, FETCH_TXT), self._options.algorithms)
        self._fetch.write(line)

    def finish(self, nbytes: int | None, files: int) -> Contents:
        """Write all other tag files, and return the content of all.

        :param nbytes: size of the payload; :data:`None` if unknown
        :param files: number of payload files
        :raises BagError: a file that the options name cannot be read
        :raises OSError: a file cannot be written
        """
        options = self._options
        written = self._manifests.finish()
        if self._fetch is not None:
            written[FETCH_TXT] = self._fetch.finish()
        elements, labels = _given_info(tuple(options.info))
        computed = computed_info(options.date, nbytes, files)
        self._computed = [element for element in computed if element[0].lower() not in labels]
        info = elements + b"".join([b"%b: %b\n" % element for element in self._computed])
        for path, data in ((NAME, info), (b"bagit.txt", declaration_bytes(Declaration(options.version)))):
            written[path] = data, {name: _digest_of(name, data) for name in options.algorithms}
        if options.tag_files:
            written |= self._copied()
        with ManifestWriter(self._folder, options.algorithms, version=options.version, tag=True) as manifests:
            for path in sorted(written):
                manifests.add(path, written[path][1])
            written |= manifests.finish()
        return {path: content for path, (content, _digests) in written.items()}

    def info(self) -> BagInfo:
        """Return the elements of bag-info.txt, which :meth:`finish` has written."""
        return BagInfo([*self._options.info, *((label.decode(), value.decode()) for label, value in self._computed)])

    def _copied(self) -> Iterator[tuple[bytes, _Written]]:
        """Copy the tag files that the options name, and yield path and digests of each."""
        from pressmark.fixity.copying import copy_files  # few bags have other tag files
        from pressmark.fixity.outcomes import require_written

        tasks = []
        for path, where in self._options.tag_files:
            target = os.path.join(self._folder, path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            tasks.append((path, where, target))
        for path, outcome in copy_files(tasks, self._options.algorithms, links="follow"):
            require_written(outcome)
            if outcome.digests is None:
                raise BagError(outcome.path, outcome.message)
            yield path, (None, outcome.digests)


@lru_cache(maxsize=16)  # all bags of a run have the same bagit.txt, and most the same bag-info.txt
def _digest_of(algorithm: str, data: bytes) -> str:
    hasher = ALGORITHMS[algorithm].make(1)
    hasher.update(data)
    return hasher.hexdigest()


@lru_cache(maxsize=8)  # for a run
def _given_info(elements: tuple[tuple[str, str], ...]) -> tuple[bytes, frozenset[bytes]]:
    """Return the start of bag-info.txt, and the labels in it in lower case."""
    return BagInfo(elements).to_bytes(), frozenset(label.lower().encode() for label, _value in elements)


def computed_info(date: datetime.date, nbytes: int | None, files: int) -> list[tuple[bytes, bytes]]:
    """Return the elements of bag-info.txt that are computed unless given (2.2.2): each is one short line of ASCII."""
    sizes = []
    if nbytes is not None:
        sizes = [(b"Bag-Size", bag_size(nbytes).encode()), (b"Payload-Oxum", b"%d.%d" % (nbytes, files))]
    return [
        (b"Bagging-Date", date.isoformat().encode()),
        *sizes,
        (b"Bag-Software-Agent", AGENT.encode()),
    ]


def bag_size(nbytes: int) -> str:
    """Return a human-readable size (Bag-Size, 2.2.2), in powers of 1000.

    >>> bag_size(42_600_000_000)
    '42.6 GB'
    """
    size = float(nbytes)
    for unit in UNITS:
        if size < 999.95 or unit == UNITS[-1]:
            break
        size /= 1000
    return f"{size:.1f}".removesuffix(".0") + f" {unit}"
