"""The content of a bag's tag files.

Opening a bag does not access its payload; manifests are read on first use.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, Self

from pressmark.bagit import bag_info, bagit_txt
from pressmark.bagit.bag_directory import BagDirectory, BagFiles, BaseDirectory, open_tag_file
from pressmark.bagit.bag_info import BagInfo, check_elements
from pressmark.bagit.bagit_txt import Declaration, read_declaration
from pressmark.bagit.manifest_format import (
    REGISTERED,
    bag_name,
    is_normalized,
    manifest_name,
    official_name,
    split_manifest_name,
)
from pressmark.bagit.paths import FETCH_TXT, PAYLOAD
from pressmark.bagit.problems import applies, judge_violation, problem
from pressmark.errors import BagError
from pressmark.reports import Problem

if TYPE_CHECKING:
    from pressmark.bagit.fetch.fetch_txt import FetchList
    from pressmark.bagit.manifest_index import Listing

__all__ = [
    "BagTags",
    "ManifestFile",
    "is_described",
    "missing_problem",
    "new_manifests",
    "open_listing",
    "read_tag_files",
]

# Bytes of a tag file to read first.
SMALL = 8 << 10  # 8 KiB
# The name of bag-info.txt up to version 0.95.
PACKAGE_INFO = b"package-info.txt"

_DESCRIBED = (bagit_txt.NAME, bag_info.NAME, PACKAGE_INFO, FETCH_TXT)


class ManifestFile(NamedTuple):
    """A payload manifest or tag manifest, known by its file name.

    :ivar name: the file name, in the base directory
    :ivar algorithm: the official name of its algorithm; if unknown, as the file name spells it
    :ivar known: whether the algorithm is available
    """

    name: bytes
    algorithm: str
    known: bool = True


def new_manifests(algorithms: Iterable[str]) -> tuple[tuple[ManifestFile, ...], tuple[ManifestFile, ...]]:
    """Return the payload manifests and the tag manifests of a new bag."""
    manifests, tag_manifests = (
        tuple(sorted([ManifestFile(manifest_name(name, tag=tag), name) for name in algorithms]))
        for tag in (False, True)
    )
    return manifests, tag_manifests


def missing_problem(path: bytes, manifests: Iterable[ManifestFile], digests: Container[str]) -> Problem:
    """Return the problem of a missing file that the manifests of the algorithms ``digests`` list."""
    names = ", ".join(os.fsdecode(one.name) for one in manifests if one.algorithm in digests)
    return problem("file-missing", path, f"listed in {names}, but not found")


class BagTags:
    """A bag as its tag files describe it; :meth:`open` reads them.

    :ivar path: the base directory, as given, as :func:`os.fsdecode` returns it
    :ivar version: major and minor number of the BagIt version
    :ivar encoding: character encoding of the tag files, as bagit.txt spells it
    :ivar info: the elements of bag-info.txt; empty if the file does not exist
    :ivar info_name: name of that file: package-info.txt in some bags up to version 0.95
    :ivar manifests: the payload manifests, sorted by name
    :ivar tag_manifests: the tag manifests, sorted by name
    """

    def __init__(
        self,
        path: str | bytes,
        declaration: Declaration,
        info: BagInfo,
        manifests: tuple[ManifestFile, ...],
        tag_manifests: tuple[ManifestFile, ...],
        info_name: bytes = bag_info.NAME,
    ) -> None:
        self.path = os.fsdecode(path)
        self.version: tuple[int, int] = declaration.version
        self.encoding: str = declaration.encoding
        self.info = info
        self.info_name = info_name
        self.manifests = manifests
        self.tag_manifests = tag_manifests
        self._payload: Listing | None = None

    def __repr__(self) -> str:
        version = ".".join(map(str, self.version))
        oxum = self.info.first("Payload-Oxum")
        size = f", Payload-Oxum {oxum}" if oxum else ""
        manifests = ", ".join(self.algorithms) or "no manifest"
        return f"<{type(self).__name__} {self.path!r}: BagIt {version}, {manifests}{size}>"

    @classmethod
    def open(cls, path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> Self:
        """Open the bag in a directory. The payload is not read.

        :param path: the base directory
        :raises BagError: the directory does not exist, has no bagit.txt, or contains an unreadable tag file
        """
        with BagDirectory(path) as base:
            return cls.read(base)

    @classmethod
    def read(cls, base: BaseDirectory) -> Self:
        """Read the tag files in a directory or archive; raises the errors of :meth:`open`."""
        problems: list[Problem] = []
        bag, _ = read_tag_files(base, problems)
        for found in problems:
            if found.kind == "declaration-missing":
                raise BagError(bag.path, "bagit.txt not found; specify the base directory of a bag")
            if found.kind == "file-unreadable":
                raise BagError(os.path.join(bag.path, found.path), found.message)
        declaration = Declaration(bag.version, bag.encoding)
        return cls(bag.path, declaration, bag.info, bag.manifests, bag.tag_manifests, bag.info_name)

    def files(self) -> AbstractContextManager[BagFiles]:
        """Open the files of the bag.

        :raises BagError: the bag does not exist any more
        """
        return BagDirectory(self.path)

    def tag_files(self) -> AbstractContextManager[BaseDirectory]:
        """Open the tag files of the bag.

        :raises BagError: the bag does not exist any more
        """
        return self.files()

    @property
    def algorithms(self) -> tuple[str, ...]:
        """Official names of the known algorithms of the payload manifests, sorted."""
        return tuple(sorted({manifest.algorithm for manifest in self.manifests if manifest.known}))

    @property
    def tag_algorithms(self) -> tuple[str, ...]:
        """Official names of the known algorithms of the tag manifests, sorted."""
        return tuple(sorted({manifest.algorithm for manifest in self.tag_manifests if manifest.known}))

    @property
    def payload(self) -> Listing:
        """The files that the payload manifests list; read on first use.

        :raises BagError: a manifest cannot be read
        """
        if self._payload is None:
            problems: list[Problem] = []
            with self.tag_files() as base:
                listing = open_listing(base, self, self.manifests, problems)
            for found in problems:
                if found.kind == "file-unreadable":
                    listing.close()
                    raise BagError(os.path.join(self.path, found.path), found.message)
            self._payload = listing
        return self._payload

    @property
    def fetch(self) -> FetchList:
        """The entries of fetch.txt. Iteration raises :class:`BagError` if the file cannot be read."""
        from pressmark.bagit.fetch.fetch_txt import FetchList  # most bags have no fetch.txt

        return FetchList(os.fsencode(self.path), self.encoding, self.version, self.tag_files)


@lru_cache(1024)  # the bags of a collection have few names of tag files
def is_described(name: bytes) -> bool:
    """Return whether the draft defines the meaning of a file of this name in the base directory."""
    return name in _DESCRIBED or split_manifest_name(name) is not None


def read_tag_files(base: BaseDirectory, problems: list[Problem]) -> tuple[BagTags, frozenset[bytes]]:
    """Read the tag files in the base directory of a bag, and add their problems to ``problems``.

    Manifests and fetch.txt are not read. Files that cannot be opened because of their type, such as named pipes and
    links that lead outside, are reported by the walk.

    :return: the bag, and the names of ``data`` and of the tag files that the draft describes, if they exist
    """
    names = _names(base, problems)
    declaration = Declaration()
    data = _content(base, bagit_txt.NAME, bagit_txt.DECLARATION_LIMIT, names, problems)
    if data is not None:
        declaration, of_declaration = read_declaration(data)
        problems += of_declaration
    elif bagit_txt.NAME not in names:
        problems.append(problem("declaration-missing", bagit_txt.NAME))
    of_old = PACKAGE_INFO in names and not applies("bag-info", declaration.version)
    info_name = PACKAGE_INFO if of_old else bag_info.NAME
    data = _content(base, info_name, bag_info.INFO_LIMIT, names, problems)
    if data is None or len(data) > bag_info.INFO_LIMIT:
        info = BagInfo(encoding=declaration.encoding)
        if data is not None:
            message = f"larger than {bag_info.INFO_LIMIT} bytes; not read"
            problems.append(problem("info-too-long", info_name, message))
    else:
        info, found = BagInfo.parse(data, declaration.encoding, declaration.version, name=info_name)
        problems += found
        problems += check_elements(info, info_name, declaration.version)
    manifests, tag_manifests, found_by_name = _manifests(names, declaration.version)
    problems += found_by_name
    return BagTags(base.path, declaration, info, manifests, tag_manifests, info_name), names


def open_listing(
    base: BaseDirectory,
    bag: BagTags,
    manifests: Sequence[ManifestFile],
    problems: list[Problem],
    *,
    tag: bool = False,
    lenient: bool = False,
) -> Listing:
    """Read the manifests of one kind, except unreadable ones.

    :param problems: receives the problems of the manifests and of their lines
    """
    # Most operations do not need the manifests.
    from pressmark.bagit.manifest_index import Listing, ManifestSource

    left = list(manifests)
    while True:
        sources = []
        for manifest in left:
            file = open_tag_file(base, manifest.name, problems)
            if file is not None:
                sources.append(ManifestSource(manifest.name, manifest.algorithm, file))
        try:
            listing = Listing(sources, bag.encoding, bag.version, tag=tag, lenient=lenient)
        except BagError as error:
            unreadable = os.fsencode(error.path)
            problems.append(problem("file-unreadable", unreadable, error.reason))
            names = {source.name for source in sources} - {unreadable}
            left = [manifest for manifest in left if manifest.name in names]
            continue
        problems += listing.problems
        return listing


def _names(base: BaseDirectory, problems: list[Problem]) -> frozenset[bytes]:
    """Return the names in the base directory that the draft describes."""
    try:
        return frozenset(name for name in base.names() if name == PAYLOAD or is_described(name))
    except OSError as error:
        problems.append(problem("file-unreadable", b"", error.strerror or str(error)))
        return frozenset()


def _content(
    base: BaseDirectory, name: bytes, limit: int, names: frozenset[bytes], problems: list[Problem]
) -> bytes | None:
    """Return the first ``limit + 1`` bytes of a tag file; :data:`None` if it does not exist or cannot be read."""
    file = open_tag_file(base, name, problems) if name in names else None
    if file is None:
        return None
    with file:
        try:
            # Most are small, and memory is allocated before reading.
            data = file.read(SMALL)
            return data + file.read(limit + 1 - SMALL) if len(data) == SMALL else data
        except OSError as error:
            problems.append(problem("file-unreadable", name, error.strerror or str(error)))
            return None


@lru_cache(8)
def _manifests(
    names: frozenset[bytes], version: tuple[int, int]
) -> tuple[tuple[ManifestFile, ...], tuple[ManifestFile, ...], tuple[Problem, ...]]:
    """Return the manifests and tag manifests among ``names``, and the problems of their names."""
    found: dict[bool, list[ManifestFile]] = {False: [], True: []}
    problems: list[Problem] = []
    for name in sorted(names):
        parts = split_manifest_name(name)
        if parts is not None:
            found[parts[0]].append(_manifest(name, parts[1], version, problems))
    return tuple(found[False]), tuple(found[True]), tuple(problems)


def _manifest(name: bytes, algorithm: str, version: tuple[int, int], problems: list[Problem]) -> ManifestFile:
    """Return the manifest of a file name, and check the name."""
    official = official_name(algorithm)
    if not is_normalized(algorithm):
        wanted = bag_name(official or algorithm)
        expected = wanted and f"{'tag' * name.startswith(b'tag')}manifest-{wanted}.txt"
        problems.append(problem("algorithm-name", name, expected=expected or None))
    if bag_name(algorithm) not in REGISTERED:
        unregistered = problem("algorithm-unregistered", name, algorithm=official or algorithm)
        problems += judge_violation("algorithms-registered", version, unregistered)
    return ManifestFile(name, official or algorithm, official is not None)
