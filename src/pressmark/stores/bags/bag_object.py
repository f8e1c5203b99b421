"""The files of one bag in a folder of bags, and the digests in its manifests."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from pressmark.bagit.bag import Bag
from pressmark.bagit.bag_directory import BagDirectory, BaseDirectory
from pressmark.bagit.bag_tags import BagTags, open_listing
from pressmark.bagit.paths import BELOW_PAYLOAD, FETCH_TXT
from pressmark.errors import BagError, ObjectError, quoted
from pressmark.fs.durable import exists, walk
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.stores.exceptions import is_unsafe_name
from pressmark.stores.stored_object import RecordedDigest, StoredObject

if TYPE_CHECKING:
    from pressmark.bagit.manifest_index import Listing

__all__ = ["BagObject", "Listed", "listed_digests", "listed_in", "recorded_files"]

_BELOW = decode_fs(BELOW_PAYLOAD)
# Problems of a serialized bag that concern other content than its payload.
_ELSEWHERE = ("info-", "element-", "oxum-", "tag-", "fetch-")


class BagObject(StoredObject):
    """A bag in a folder of bags: its files are the payload, or the one file of a serialized bag.

    :ivar bag_path: the bag's base directory or file, absolute
    :ivar serialized: whether it is a file
    """

    def __init__(self, store: str, identifier: str, path: bytes, serialized: bool) -> None:
        inside = os.path.dirname(path) if serialized else os.path.join(path, b"data")
        super().__init__(store, identifier, inside, (os.path.basename(path),) if serialized else None, "refuse")
        self.bag_path = os.fsdecode(path)
        self._bag_path = path
        self.serialized = serialized

    def bag(self) -> Bag:
        """Open the bag.

        :raises BagError: the bag is serialized, or cannot be opened
        """
        return Bag.open(self.bag_path)

    def recorded_digests(self, names: Sequence[str], *, whole: bool = False) -> Mapping[str, RecordedDigest] | None:
        """Return the digest of each payload file; of a file in several manifests, the longest one.

        A serialized bag is validated instead: its one file, the archive, has no digest of its own.
        """
        from pressmark.fixity.algorithms import ALGORITHMS  # opening an object needs no digest

        try:
            if self.serialized:
                self._validate()
                return None
            listed = self._listed([BELOW_PAYLOAD + encode_fs(name) for name in names])
        except BagError as error:
            self.confirm()  # that may be why a manifest cannot be read
            raise ObjectError(self._store, self.id, "unreadable", str(error)) from None
        recorded: dict[str, RecordedDigest] = {}
        for algorithm in sorted(listed.digests, key=lambda name: ALGORITHMS[name].size):
            for path, digest in listed.digests[algorithm].items():
                recorded[path.removeprefix(_BELOW)] = RecordedDigest(algorithm, digest)
        for name in names:
            if name not in recorded:
                if not self._has(name):
                    raise self._no_file(name)
                raise self._unverified(
                    "content-unlisted", f"{quoted(name)}: no manifest with a known algorithm lists it"
                )
        if whole and listed.missing is not None:
            raise self._unverified("content-missing", f"{quoted(listed.missing)}: listed in a manifest, but not found")
        return recorded

    def _listed(self, names: Sequence[bytes]) -> Listed:
        return self.tags_and_digests(names)[1]

    def tags_and_digests(self, names: Sequence[bytes]) -> tuple[BagTags, Listed]:
        """Return what the tag files say, and the digests of files.

        :param names: of all files of the bag, or of some
        :raises BagError: the bag is serialized, or cannot be read
        """
        with BagDirectory(self._bag_path) as base:
            bag = BagTags.read(base)
            return bag, listed_in(base, bag, names)

    def _has(self, name: str) -> bool:
        return os.path.lexists(os.path.join(self._top, encode_fs(name)))

    def _validate(self) -> None:
        from pressmark.bagit.validation.validate import validate

        for found in validate(self.bag_path).errors:
            if not found.kind.startswith(_ELSEWHERE):
                where = f"{quoted(found.path)}: " if found.path else ""
                raise self._unverified("content-mismatch", f"{where}{found.message}")


class Listed(NamedTuple):
    """What the manifests of a bag list.

    :ivar digests: by algorithm and name
    :ivar missing: the first payload file that is listed and was not among the names
    """

    digests: dict[str, dict[str, str]]
    missing: bytes | None


def listed_digests(bag: BagTags, path: bytes, names: Iterable[bytes]) -> Listed:
    """Return the digests in the manifests of a bag.

    :param path: the base directory
    :param names: of all files of the bag, or of some
    """
    with BagDirectory(path) as base:
        return listed_in(base, bag, names)


def listed_in(base: BaseDirectory, bag: BagTags, names: Iterable[bytes]) -> Listed:
    """Return the digests in the manifests of an open bag: see :func:`listed_digests`."""
    from pressmark.fixity.algorithms import ALGORITHMS

    known: dict[str, dict[str, str]] = {}
    missing: bytes | None = None
    for listing, tag in _listings(base, bag):
        found = _look_up(listing, (name for name in names if name.startswith(BELOW_PAYLOAD) != tag))
        for name, digests in found.items():
            for algorithm, digest in digests.items():
                if algorithm in ALGORITHMS:
                    known.setdefault(algorithm, {})[decode_fs(name)] = digest
        if not tag:
            missing = next((listed.path for listed in listing.unmarked()), None)
    return Listed(known, missing)


def recorded_files(path: bytes) -> tuple[dict[bytes, tuple[str, str]], frozenset[bytes], Any]:
    """Return what the manifests of a bag list, for :class:`~pressmark.stores.objects.RecordedFiles`: algorithm and
    digest of each file, of several the longest digest; the manifests; and their states.

    A serialized bag is not looked into, and files that are still to be fetched are left out.

    :param path: the base directory, or the file of a serialized bag
    :raises BagError: the bag cannot be read
    """
    from pressmark.fixity.algorithms import ALGORITHMS

    files: dict[bytes, tuple[str, str]] = {}
    if not os.path.isdir(path):
        return files, frozenset(), None
    there = [
        os.path.relpath(os.path.join(above, name), path) for above, _folders, names in walk(path) for name in names
    ]
    with BagDirectory(path) as base:
        bag = BagTags.read(base)
        manifests = [*bag.manifests, *bag.tag_manifests]
        to_fetch = {entry.path for entry in bag.fetch} if exists(os.path.join(path, FETCH_TXT)) else set()
        for listing, _tag in _listings(base, bag):
            unmarked = ((one.path, one.digests) for one in listing.unmarked() if one.path not in to_fetch)
            for name, digests in chain(_look_up(listing, there).items(), unmarked):
                known = [algorithm for algorithm, digest in digests.items() if digest and algorithm in ALGORITHMS]
                if known and not is_unsafe_name(name):
                    longest = max(known, key=lambda algorithm: ALGORITHMS[algorithm].size)
                    files[name] = longest, digests[longest]
        states = [(one.name, base.status(one.name)) for one in manifests]
    proof = [(name, one.st_ino, one.st_size, one.st_mtime_ns, one.st_ctime_ns) for name, one in states]
    return files, frozenset(one.name for one in manifests), proof


def _listings(base: BaseDirectory, bag: BagTags) -> Iterator[tuple[Listing, bool]]:
    """Yield what the manifests with known algorithms list, and what the tag manifests list."""
    for manifests, tag in ((bag.manifests, False), (bag.tag_manifests, True)):
        with open_listing(base, bag, [one for one in manifests if one.known], [], tag=tag) as listing:
            yield listing, tag


def _look_up(listing: Listing, names: Iterable[bytes]) -> dict[bytes, dict[str, str]]:
    """Return the digests of files by their names: all exact names first, then names in other spellings."""
    found = {name: listing.find(name, mark=True) for name in names}
    for name, digests in found.items():
        for again in listing.find_rest(name, digests):
            digests.update(again.digests)
    return found
