"""Write tag files: the declaration, bag-info.txt, manifests and tag manifests."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Mapping, Sequence
from types import TracebackType

from pressmark.bagit.bag_info import BagInfo
from pressmark.bagit.bagit_txt import declaration_bytes
from pressmark.bagit.creation.options import CreateOptions
from pressmark.bagit.encodings import UTF8, Charset
from pressmark.bagit.manifest_format import manifest_line, manifest_name
from pressmark.bagit.paths import PAYLOAD
from pressmark.errors import BagError
from pressmark.fixity.algorithms import ALGORITHMS
from pressmark.fixity.copying import keep_status
from pressmark.fixity.pool import hash_files
from pressmark.version import __version__

__all__ = [
    "ManifestWriter",
    "bag_size",
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
    outcomes = hash_files([where for _path, where in files], algorithms)
    with ManifestWriter(folder, algorithms, charset, version, tag=True) as manifests:
        for (path, _where), outcome in zip(files, outcomes, strict=True):
            if outcome.digests is None:
                raise BagError(outcome.path, outcome.message)
            manifests.add(path, outcome.digests)


def write_tag_files(folder: bytes, options: CreateOptions, nbytes: int, files: int) -> tuple[list[bytes], BagInfo]:
    """Write all tag files except the payload manifests, which exist.

    :param folder: contains only tag files
    :param nbytes: size of the payload
    :param files: number of payload files
    :return: the names in ``folder``, with ``bagit.txt``, which makes a directory a bag, at the end; and the content of
        bag-info.txt
    :raises OSError: a file cannot be written
    """
    info = _new_info(options, nbytes, files)
    paths = list(map(manifest_name, options.algorithms))
    for path, data in ((b"bag-info.txt", info.to_bytes()), (b"bagit.txt", declaration_bytes())):
        paths.append(path)
        with open(os.path.join(folder, path), "xb") as file:
            file.write(data)
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
) -> tuple[dict[bytes, bytes], BagInfo]:
    """Return the content of all tag files, without other tag files, by name; and that of bag-info.txt.

    :param digests: path in the payload and digests of each payload file
    :param nbytes: size of the payload
    """
    info = _new_info(options, nbytes, len(digests))
    contents = {b"bag-info.txt": info.to_bytes(), b"bagit.txt": declaration_bytes()}
    for name in options.algorithms:
        lines = [manifest_line(found[name], b"%b/%b" % (PAYLOAD, path)) for path, found in digests]
        contents[manifest_name(name)] = b"".join(lines)
    listed = sorted(contents.items())
    for name in options.algorithms:
        make = ALGORITHMS[name].make
        lines = []
        for path, data in listed:
            hasher = make(1)
            hasher.update(data)
            lines.append(manifest_line(hasher.hexdigest(), path))
        contents[manifest_name(name, tag=True)] = b"".join(lines)
    return contents, info


def _new_info(options: CreateOptions, nbytes: int, files: int) -> BagInfo:
    """Return the content of bag-info.txt: the given elements and those that are computed."""
    info = BagInfo(options.info)
    given = {label.lower() for label, _value in options.info}
    for label, value in (
        ("Bagging-Date", options.date.isoformat()),
        ("Bag-Size", bag_size(nbytes)),
        ("Payload-Oxum", f"{nbytes}.{files}"),
        ("Bag-Software-Agent", AGENT),
    ):
        if label.lower() not in given:
            info.add(label, value)
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
