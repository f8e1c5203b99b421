"""The walk of a folder of bags in object storage, and the files of one of its bags. Nothing is changed.

Bags are trees of keys or archives. A listing with a delimiter replaces the scan of a directory. The identifier of a bag
requires the download of its bag-info.txt; the walk reads many bags at a time. It keeps no index.
"""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import BinaryIO, ClassVar, cast

from pressmark.bagit.bag_tags import BagTags, read_tag_files
from pressmark.bagit.paths import BELOW_PAYLOAD
from pressmark.bagit.remote.bag_in_bucket import BaseInBucket, open_base
from pressmark.buckets.address import find_key
from pressmark.buckets.bucket import ListedKey
from pressmark.buckets.listing import listed, status_of_key
from pressmark.buckets.probe import STAGING
from pressmark.buckets.remote_directory import RemoteDirectory
from pressmark.buckets.remote_file import RemoteFile
from pressmark.buckets.requests import in_order
from pressmark.errors import IdentifierError, ObjectError, StoreError
from pressmark.fixity.outcomes import Content
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.fs.trees import DirectoryEntry
from pressmark.layouts import Layout
from pressmark.reports import Problem
from pressmark.stores.bags import archives
from pressmark.stores.bags.bag_object import BagObject, Listed, listed_in
from pressmark.stores.bags.folder_config import CONFIG
from pressmark.stores.bags.walk import BagWalk, is_bag, record_of, within
from pressmark.stores.directories.bucket_directory import read_ahead
from pressmark.stores.exceptions import is_unsafe_name, object_errors, store_errors
from pressmark.stores.objects import StoreObject
from pressmark.stores.recheck import Item
from pressmark.stores.selection import Ids, searched_records

__all__ = ["RemoteBag", "RemoteBagWalk", "contains_bags", "selected_bags"]

# Entries of a folder that are read to find out whether it contains bags.
_LOOKED_AT = 16


def contains_bags(address: bytes) -> bool:
    """Return whether an address is that of a folder of bags.

    :raises StoreError: it is that of a bag, or the bucket cannot be read
    """
    with store_errors(address):
        walk = RemoteBagWalk(address, "external", None, ())
        entries = walk.first_entries()
        if is_bag(entries):
            raise StoreError(address, "a bag, not a store; use pressmark bag, or specify the address above it")
        names = {entry.name for entry in entries}
        if CONFIG in names or any(name.startswith(b"0=ocfl_") for name in names):
            return CONFIG in names
        some = islice((one for one in entries if one.kind == "directory" or archives.stem(one.name)), _LOOKED_AT)
        return any(isinstance(one, StoreObject) for one in chain.from_iterable(in_order(walk.items_of, some)))


class RemoteBagWalk(BagWalk):
    """A walk of a folder of bags in a bucket; see :class:`BagWalk`."""

    is_remote: ClassVar[bool] = True

    def __init__(self, base: bytes, identifiers: str, layout: Layout | None, ignore: Sequence[str]) -> None:
        super().__init__(base.rstrip(b"/"), identifiers, layout, ignore)
        self._bucket, key = find_key(base)
        self._prefix = key and key + b"/"

    def scan(self, path: bytes) -> list[DirectoryEntry]:
        found = list(self._entries(path))
        if not found and path:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return sorted(found)

    def first_entries(self) -> list[DirectoryEntry]:
        """Return the entries of the first page of a listing."""
        return list(islice(self._entries(b""), 1000))

    def _entries(self, path: bytes) -> Iterator[DirectoryEntry]:
        unusable = {b""}, {b"", b".", b".."}
        for entry in RemoteDirectory(self._bucket, self._prefix).entries(path):
            if entry.name not in unusable[entry.kind == "directory"]:
                yield entry

    def is_tree(self, path: bytes) -> bool:
        return next(iter(listed(self._bucket, self._prefix + path + b"/", 1)), None) is not None

    def items(self, threads: int | None = None) -> Iterator[Item]:
        entries = (entry for entry in self.scan(b"") if not self._is_left_out(b"", entry.name))
        yield from chain.from_iterable(in_order(self.items_of, entries))

    def items_of(self, entry: DirectoryEntry) -> list[Item]:
        """Return everything at and below an entry of the folder."""
        if entry.name == STAGING.split(b"/")[0]:  # of probes
            return []
        return list(self._items_at([(entry.name, entry.kind)], self.is_ignored))

    def second_look(self, item: Item) -> list[Item]:
        return [item]

    def again(self, item: Item) -> list[Item]:
        path = encode_fs(item.path)
        is_tree = self.is_tree(path)
        return list(self.read(path, "directory" if is_tree else "file")) if is_tree or self._is_key(path) else []

    def _bag(self, path: bytes, entries: Sequence[DirectoryEntry]) -> Iterator[StoreObject | Problem]:
        prefix = self._prefix + path + b"/"
        problems: list[Problem] = []
        bag, _ = read_tag_files(BaseInBucket(os.path.join(self.base, path), self._bucket, prefix, entries), problems)
        identifier: str | None = None
        more: list[Problem] = []
        if not any(one.kind == "file-unreadable" for one in problems) or self._path_gives_identifier(path):
            identifier, more = self.identified(path, bag.info, path)
        yield record_of(identifier, path, [within(path, one) for one in problems] + more)

    def record_at(self, path: str) -> StoreObject | None:
        encoded = encode_fs(path)
        if {b"", b".", b".."} & set(encoded.split(b"/")):
            return None
        kind = "directory" if self.is_tree(encoded) else "file"
        if kind == "directory" and not is_bag(self.scan(encoded)):
            return None
        if kind == "file" and not self._is_key(encoded):
            return None
        return next((one for one in self.read(encoded, kind) if isinstance(one, StoreObject)), None)

    def _is_key(self, path: bytes) -> bool:
        try:
            self._bucket.head(self._prefix + path)
        except FileNotFoundError:
            return False
        return True

    def has_identifier(self, path: bytes, identifier: str) -> bool:
        record = self.record_at(decode_fs(path))
        return record is not None and record.id == identifier

    def own_record(self, identifier: str) -> StoreObject | None:
        """Return the record of the bag with an identifier, if it is where a new one would be.

        :raises IdentifierError: the identifier has no path
        :raises ObjectError: its path is reserved
        """
        path = self._expected(identifier)
        page = self._bucket.list(self._prefix + path, delimiter=True)
        there = {*(one.key for one in page.keys), *(one[:-1] for one in page.directories)}
        for candidate in (path, *(path + ending for ending in archives.SERIALIZED)):
            record = self.record_at(decode_fs(candidate)) if self._prefix + candidate in there else None
            if record is not None and record.id == identifier:
                return record
        return None

    def find(self, identifier: str, soon: bool) -> list[bytes]:
        """Return the path of the bag where a new one with the identifier would be, or else the paths of all bags that
        have it, which are searched one by one.
        """
        failure: IdentifierError | ObjectError | None = None
        try:
            if (record := self.own_record(identifier)) is not None:
                return [encode_fs(record.path)]
        except (IdentifierError, ObjectError) as error:
            failure = error
        found = [encode_fs(record.path) for record in self.objects() if record.id == identifier]
        if failure is not None and not found:
            raise failure
        return found


def selected_bags(
    walk: RemoteBagWalk, ids: Ids, missing: Callable[[str | bytes], ObjectError], strict: bool
) -> Iterator[StoreObject | Problem]:
    """Yield the record of each bag; see :func:`pressmark.stores.selection.searched_records`."""

    def own_record(identifier: str | bytes) -> StoreObject | None:
        with suppress(IdentifierError, ObjectError):
            return walk.own_record(decode_fs(encode_fs(identifier)))
        return None

    def at(path: str | bytes) -> StoreObject | None:
        return walk.record_at(decode_fs(encode_fs(path).rstrip(b"/")))

    return searched_records(ids, walk.objects, at, missing, strict, lambda some: in_order(own_record, some))


class RemoteBag(BagObject):
    """A bag in a folder of bags in a bucket: its files are downloaded when they are read.

    :param address: of its tree of keys, or of its archive
    """

    def __init__(self, store: str, identifier: str, address: bytes, serialized: bool) -> None:
        super().__init__(store, identifier, address, serialized)
        self._bucket, key = find_key(address)
        self._prefix = key[: key.rfind(b"/") + 1] if serialized else key + b"/" + BELOW_PAYLOAD

    @property
    def statuses(self) -> Mapping[str, os.stat_result]:
        """The status of each file."""
        with object_errors(self._store, self.id):
            if self.serialized:
                name = os.path.basename(encode_fs(self._bag_path))
                return {decode_fs(name): status_of_key(self._bucket.head(self._prefix + name))}
            return {name: status_of_key(one) for name, one in self._payload()}

    def files(self) -> Iterator[tuple[str, str]]:
        with object_errors(self._store, self.id):
            if self.serialized:
                yield decode_fs(os.path.basename(self._bag_path)), self.bag_path
                return
            for name, _key in self._payload():
                yield name, os.fsdecode(os.path.join(self._top, encode_fs(name)))

    def _payload(self) -> Iterator[tuple[str, ListedKey]]:
        for one in listed(self._bucket, self._prefix):
            name = one.key[len(self._prefix) :]
            if not name.endswith(b"/"):
                yield decode_fs(name), one

    def empty_directories(self) -> Iterator[tuple[str, str]]:
        return iter(())

    def confirm(self) -> None:
        """Do nothing: each file is read in one version, and compared with its digest."""

    def tags_and_digests(self, names: Sequence[bytes]) -> tuple[BagTags, Listed]:
        with open_base(self._bag_path) as base:
            bag = BagTags.read(base)
            return bag, listed_in(base, bag, names)

    def _has(self, name: str) -> bool:
        try:
            self._bucket.head(self._prefix + encode_fs(name))
        except FileNotFoundError:
            return False
        return True

    def _open(self, name: str) -> BinaryIO:
        encoded = encode_fs(name)
        if is_unsafe_name(encoded) or (self.serialized and encoded != os.path.basename(self._bag_path)):
            raise self._no_file(name)
        try:
            with object_errors(self._store, self.id):
                return cast(BinaryIO, io.BufferedReader(self._opened_key(encoded), 1 << 18))
        except FileNotFoundError:
            raise self._no_file(name) from None

    def _sources(self, files: Mapping[str, str]) -> Iterator[tuple[str, bytes | Content]]:
        keys = ((name, self._prefix + encode_fs(name), None, encode_fs(path)) for name, path in files.items())
        return read_ahead(self._bucket, keys)

    def _opened_key(self, name: bytes) -> RemoteFile:
        return RemoteFile(self._bucket, self._prefix + name)
