"""An object in two stores: which of its files differ."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

from pressmark.errors import short_digest
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.stores.exceptions import object_errors
from pressmark.stores.store import Store
from pressmark.stores.stored_object import RecordedDigest, StoredObject

if TYPE_CHECKING:
    from pressmark.stores.bags.bag_object import BagObject

__all__ = [
    "Difference",
    "FilePair",
    "Files",
    "beside",
    "digest_reason",
    "files_of",
    "matched",
    "size_differences",
    "sizes_of",
    "statuses_of",
]

_DECLARATION, _PAYLOAD = "bagit.txt", "data/"


class Difference(NamedTuple):
    """A difference between two stores.

    :ivar kind: ``only-here``: only the first store has the object or file; ``only-there``: only the other one;
        ``different``: the file has other content; or ``unreadable``: the object cannot be compared
    :ivar id: the identifier of the object
    :ivar file: the name of the file in the object; :data:`None` for the whole object
    :ivar reason: how they differ, in one line; empty for what only one store has
    """

    kind: str
    id: str
    file: str | None = None
    reason: str = ""

    def record(self) -> dict[str, str]:
        """Return the difference as a JSON object, without ``file`` and ``reason`` if it has none."""
        return {name: value for name, value in self._asdict().items() if value}


class Files(NamedTuple):
    """The files of an object in one store.

    :ivar paths: by name
    :ivar digests: the recorded ones, by name
    """

    paths: Mapping[str, str]
    digests: Mapping[str, RecordedDigest]


class FilePair(NamedTuple):
    """A file in both stores, whose recorded digests do not tell whether it differs.

    :ivar here: its path in the first store
    :ivar there: its path in the other one
    """

    name: str
    here: str
    there: str


def files_of(store: Store, found: StoredObject, digests: bool) -> Files:
    """Return the files of an object, of a bag those of its payload.

    :param digests: with their recorded digests
    :raises ObjectError: the object cannot be read
    """
    paths = dict(found.files())
    is_archive = store.kind == "bags" and cast("BagObject", found).serialized  # without a digest of its own
    recorded = (digests and not is_archive and found.recorded_digests(list(paths))) or {}
    return Files(paths, recorded)


def beside(store: Store, found: StoredObject, files: Files, other: Files) -> Files:
    """Return the files of an object that are compared with those of another one: if that is a copy of a bag, all files
    of the bag.

    :param files: of the object, as :func:`files_of` returns them
    :raises ObjectError: the object cannot be read
    """
    if store.kind != "bags" or cast("BagObject", found).serialized or _DECLARATION not in other.paths:
        return files
    with object_errors(store.root, found.id):
        tag_files = dict(_tag_files(store, cast("BagObject", found).bag_path))
    payload = {_PAYLOAD + name: path for name, path in files.paths.items()}
    return Files({**tag_files, **payload}, {_PAYLOAD + name: digest for name, digest in files.digests.items()})


def _tag_files(store: Store, bag: str) -> Iterator[tuple[str, str]]:
    """Yield name and path of each file of a bag that is not in its payload."""
    if store.bucket is not None:
        from pressmark.buckets.address import parse_key  # most stores are on a disk
        from pressmark.buckets.listing import listed

        top = parse_key(encode_fs(bag))[1] + b"/"
        names = [decode_fs(one.key[len(top) :]) for one in listed(store.bucket, top)]
        yield from ((name, f"{bag}/{name}") for name in names if not name.startswith(_PAYLOAD))
        return
    for folder, folders, names in os.walk(bag):
        if folder == bag and "data" in folders:
            folders.remove("data")
        for path in (os.path.join(folder, name) for name in names):
            yield os.path.relpath(path, bag).replace(os.sep, "/"), path


def matched(identifier: str, here: Files, there: Files) -> Iterator[Difference | FilePair]:
    """Yield the differences between an object's files in two stores, and the files whose recorded digests do not tell,
    in the order of the names.
    """
    for name in sorted(here.paths.keys() | there.paths.keys(), key=encode_fs):
        if name not in there.paths:
            yield Difference("only-here", identifier, name)
        elif name not in here.paths:
            yield Difference("only-there", identifier, name)
        else:
            one, other = here.digests.get(name), there.digests.get(name)
            if one is None or other is None or one.algorithm != other.algorithm:
                yield FilePair(name, here.paths[name], there.paths[name])
            elif one.digest != other.digest:
                yield Difference("different", identifier, name, digest_reason(one.algorithm, one.digest, other.digest))


def digest_reason(algorithm: str, one: str, other: str) -> str:
    """Return how two digests differ."""
    return f"{algorithm} {short_digest(one)} here, {short_digest(other)} there"


def size_differences(identifier: str, pairs: Sequence[FilePair], here: Store, there: Store) -> Iterator[Difference]:
    """Yield the files of an object whose sizes differ.

    :raises OSError: a size cannot be determined
    """
    sizes = sizes_of(here, [pair.here for pair in pairs]), sizes_of(there, [pair.there for pair in pairs])
    for pair, one, other in zip(pairs, *sizes, strict=True):
        if one != other:
            yield Difference("different", identifier, pair.name, f"{one:,} bytes here, {other:,} there")


def sizes_of(store: Store, paths: Sequence[str]) -> list[int]:
    """Return the sizes of files of a store, in bytes.

    :raises OSError: a file cannot be found
    """
    return [one.st_size for one in statuses_of(store, paths)]


def statuses_of(store: Store, paths: Sequence[str]) -> list[os.stat_result]:
    """Return the statuses of files of a store.

    :raises OSError: a file cannot be found
    """
    if store.bucket is None:
        return [os.stat(path) for path in paths]
    from pressmark.buckets.address import parse_key  # most stores are on a disk
    from pressmark.buckets.listing import find_keys, status_of_key

    keys = [parse_key(encode_fs(path))[1] for path in paths]
    found = find_keys(store.bucket, keys)
    missing = next((path for path, key in zip(paths, keys, strict=True) if key not in found), None)
    if missing is not None:
        raise FileNotFoundError(2, os.strerror(2), missing)
    return [status_of_key(found[key]) for key in keys]
