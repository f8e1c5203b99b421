"""Write tag files: the declaration, bag-info.txt, manifests and tag manifests."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import TracebackType

from pressmark.bagit.bag_info import BagInfo
from pressmark.bagit.bagit_txt import declaration_bytes
from pressmark.bagit.creation.options import CreateOptions
from pressmark.bagit.encodings import UTF8, Charset
from pressmark.bagit.manifest_format import manifest_line, manifest_name
from pressmark.bagit.paths import FETCH_TXT, PAYLOAD
from pressmark.errors import BagError
from pressmark.fixity.algorithms import ALGORITHMS
from pressmark.fixity.hasher import keep_status
from pressmark.fixity.pool import hash_tasks
from pressmark.fs.durable import exists
from pressmark.version import __version__

__all__ = [
    "ManifestWriter",
    "bag_size",
    "new_info",
    "small_tag_files",
    "write_tag_files",
    "write_tag_manifests",
]

BUFFER = 1 << 16  # 64 KiB
AGENT = f"Pressmark {__version__}"
UNITS = ("B", "KB", "MB", "GB", "TB", "PB", "EB")


class ManifestWriter:
    """Writes new manifests, one for each algorithm; a context manager.

    :param folder: directory of the new files
    :param algorithms: official names
    :param charset: the character set that bagit.txt names
    :param version: BagIt version of the bag
    """

    def __init__(
        self,
        folder: bytes,
        algorithms: Sequence[str],
        charset: Charset = UTF8,
        version: tuple[int, int] = (1, 0),
        *,
        tag: bool = False,
    ) -> None:
        self._charset = charset
        self._version = version
        with contextlib.ExitStack() as stack:
            self._files = [
                (name, stack.enter_context(open(os.path.join(folder, manifest_name(name, tag=tag)), "xb", BUFFER)))
                for name in algorithms
            ]
            if charset.needs_mark:
                for _name, file in self._files:
                    file.write(charset.marks[0][0])
            self._stack = stack.pop_all()

    def __enter__(self) -> ManifestWriter:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self._stack.close()

    def add(self, path: bytes, digests: Mapping[str, str]) -> None:
        """Write the line of a file to each manifest.

        :param path: relative to the base directory
        :param digests: hex digests by official name
        """
        for name, file in self._files:
            line = manifest_line(digests[name], path, self._version)
            file.write(line if self._charset.is_utf8 else self._encoded(line, path))

    def _encoded(self, line: bytes, path: bytes) -> bytes:
        try:
            return self._charset.encode(line.decode())
        except UnicodeError:
            raise BagError(
                path, f"name cannot be encoded in {self._charset.name}, the character set of the bag"
            ) from None


def write_tag_manifests(
    folder: bytes,
    algorithms: Sequence[str],
    files: Sequence[tuple[bytes, bytes]],
    charset: Charset = UTF8,
    version: tuple[int, int] = (1, 0),
) -> None:
    """Write a tag manifest for each algorithm; all of them list the same files (2.2.1).

    :param folder: directory of the new files
    :param algorithms: official names
    :param files: path in the bag and current path of each tag file
    :param charset: the character set that bagit.txt names
    :param version: BagIt version of the bag
    :raises BagError: a tag file cannot be read
    """
    with ManifestWriter(folder, algorithms, charset, version, tag=True) as manifests:
        for path, outcome in hash_tasks(files, algorithms):
            if outcome.digests is None:
                raise BagError(outcome.path, outcome.message)
            manifests.add(path, outcome.digests)


def write_tag_files(
    folder: bytes, options: CreateOptions, nbytes: int | None, files: int
) -> tuple[list[bytes], BagInfo]:
    """Write all tag files except the payload manifests and fetch.txt, which exist.

    :param folder: contains only tag files
    :param nbytes: size of the payload; :data:`None` if unknown
    :param files: number of payload files
    :return: the names in ``folder``, with ``bagit.txt``, which makes a directory a bag, at the end; and the content of
        bag-info.txt
    :raises OSError: a file cannot be written
    """
    info = new_info(options, nbytes, files)
    paths = list(map(manifest_name, options.algorithms))
    for path, data in ((b"bag-info.txt", info.to_bytes()), (b"bagit.txt", declaration_bytes())):
        paths.append(path)
        with open(os.path.join(folder, path), "xb") as file:
            file.write(data)
    if exists(os.path.join(folder, FETCH_TXT)):
        paths.append(FETCH_TXT)
    for path, where in options.tag_files:
        paths.append(path)
        target = os.path.join(folder, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copyfile(where, target)
        keep_status(target, os.stat(where))
    write_tag_manifests(folder, options.algorithms, [(path, os.path.join(folder, path)) for path in sorted(paths)])
    names = sorted(os.listdir(folder))
    names.remove(b"bagit.txt")
    return [*names, b"bagit.txt"], info


def small_tag_files(
    options: CreateOptions, digests: Sequence[tuple[bytes, Mapping[str, str]]], nbytes: int
) -> dict[bytes, bytes]:
    """Return the content of all tag files, without other tag files, by name.

    :param digests: path in the payload and digests of each payload file
    :param nbytes: size of the payload
    """
    given, labels = _given_info(tuple(options.info))
    computed = _computed_info(options, nbytes, len(digests))
    info = given + b"".join(b"%b: %b\n" % element for element in computed if element[0].lower() not in labels)
    contents = {b"bag-info.txt": info, b"bagit.txt": declaration_bytes()}
    for name in options.algorithms:
        lines = [manifest_line(found[name], b"%b/%b" % (PAYLOAD, path)) for path, found in digests]
        contents[manifest_name(name)] = b"".join(lines)
    listed = sorted(contents.items())
    for name in options.algorithms:
        lines = [b"%b  %b\n" % (_digest_of(name, data), path) for path, data in listed]
        contents[manifest_name(name, tag=True)] = b"".join(lines)
    return contents


@lru_cache(maxsize=16)  # all bags of a run have the same bagit.txt, and most the same bag-info.txt
def _digest_of(algorithm: str, data: bytes) -> bytes:
    hasher = ALGORITHMS[algorithm].make(1)
    hasher.update(data)
    return hasher.hexdigest().encode()


@lru_cache(maxsize=8)  # for a run
def _given_info(elements: tuple[tuple[str, str], ...]) -> tuple[bytes, frozenset[bytes]]:
    """Return the start of bag-info.txt, and the labels in it in lower case."""
    return BagInfo(elements).to_bytes(), frozenset(label.lower().encode() for label, _value in elements)


def _computed_info(options: CreateOptions, nbytes: int | None, files: int) -> list[tuple[bytes, bytes]]:
    """Return the elements of bag-info.txt that are computed: each is one short line of ASCII."""
    sizes = []
    if nbytes is not None:
        sizes = [(b"Bag-Size", bag_size(nbytes).encode()), (b"Payload-Oxum", b"%d.%d" % (nbytes, files))]
    return [
        (b"Bagging-Date", options.date.isoformat().encode()),
        *sizes,
        (b"Bag-Software-Agent", AGENT.encode()),
    ]


def new_info(options: CreateOptions, nbytes: int | None, files: int) -> BagInfo:
    """Return the content of bag-info.txt: the given elements and those that are computed."""
    info = BagInfo(options.info)
    given = {label.lower() for label, _value in options.info}
    for label, value in _computed_info(options, nbytes, files):
        if label.decode().lower() not in given:
            info.add(label.decode(), value.decode())
    return info


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
