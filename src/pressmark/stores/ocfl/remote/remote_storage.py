"""A storage root in a bucket, read through :class:`pressmark.buckets.bucket.Bucket`.

A bucket has keys and no directories: a directory exists as long as a key is below it. The token of a key takes the
place of the inode number in a status, so that two versions of a file differ.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import stat
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, BinaryIO, TypeVar, cast

from pressmark import _kernels
from pressmark.buckets.bucket import MAX_KEY, Bucket, KeyChangedError, ListedKey
from pressmark.buckets.listing import status_of_key
from pressmark.buckets.probe import STAGING
from pressmark.buckets.remote_file import RemoteFile
from pressmark.buckets.requests import PATIENCE, in_order
from pressmark.errors import StoreError, quoted, quoted_path
from pressmark.fixity.bucket_files import hash_key
from pressmark.fixity.outcomes import Content, Outcome
from pressmark.fs.names import NAME_MAX, decode_fs, encode_fs
from pressmark.fs.trees import DirectoryEntry, Tree
from pressmark.stores.directories.bucket_directory import read_ahead
from pressmark.stores.ocfl.inventory import ALGORITHMS, sidecar_bytes
from pressmark.stores.ocfl.remote.location import CLAIMS, REMOVALS, Location, Replacement
from pressmark.stores.ocfl.storage import HEAD, UNLIMITED, Reads

if TYPE_CHECKING:
    from pressmark.stores.ocfl.remote.remote_changes import RemoteChanges

__all__ = ["RemoteStorage"]

Key = TypeVar("Key")
# Keys that are listed in one call, before the rest is left to the next.
MANY = 20_000
_FIRST_DIRECTORIES = 5_000
_ALGORITHMS = frozenset(map(encode_fs, ALGORITHMS))


class RemoteStorage:
    """A storage root in a bucket.

    :param prefix: the beginning of its keys; empty, or with ``/`` at its end
    :param content_class: storage class of new content; :data:`None` for the default of the bucket
    :param replacement: as for :class:`Location`
    """

    # A listing has a thousand keys.
    siblings = 512
    # Each sends many requests at a time; while one lists, the other reads.
    walkers = 2
    # Each costs a request.
    first = 16
    has_links = False
    work_directory = None

    def __init__(
        self,
        bucket: Bucket,
        prefix: bytes = b"",
        content_class: str | None = None,
        replacement: Replacement | None = None,
    ) -> None:
        self._content_class = content_class
        self.bucket = bucket
        self.prefix = prefix
        self.location = Location(bucket, prefix, replacement)

    def below(self, path: bytes) -> RemoteStorage:
        return RemoteStorage(self.bucket, self.prefix + path + b"/")

    def path(self, relative: bytes) -> bytes:
        return self.location.path(relative)

    # --- names --------------------------------------------------------------------------------------------------------

    def scan(self, directory: bytes) -> list[DirectoryEntry]:
        found = list(self.location.entries(directory))
        if directory and not found:
            raise self.location.not_a_directory(directory)
        return sorted(entry for entry in found if entry.name)

    def all_entries(self) -> dict[bytes, list[DirectoryEntry]]:
        found: dict[bytes, set[DirectoryEntry]] = {b"": set()}
        for path in self.location.names(b""):
            kind = "file"
            while path:
                above, _, name = path.rpartition(b"/")
                if name:  # a key that stands for a directory
                    found.setdefault(above, set()).add(DirectoryEntry(name, kind, False))
                path, kind = above, "directory"
        return {directory: sorted(entries) for directory, entries in found.items()}

    def first_directories(self) -> list[bytes]:
        names = (entry.name for entry in self.location.entries(b"") if entry.kind == "directory")
        return sorted(islice(names, _FIRST_DIRECTORIES))

    def exists(self, path: bytes) -> bool:
        return self.location.exists(path)

    def status(self, path: bytes) -> os.stat_result:
        found = self.location.find(path) if path else None
        if found is not None and found.key == self.prefix + path:
            return status_of_key(found)
        if not path or found is not None:
            return os.stat_result((stat.S_IFDIR | 0o755, 0, 1, 1, 0, 0, 0, 0, 0, 0))
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self.path(path))

    def why_unreadable(self, file: bytes) -> OSError | None:
        try:
            self.bucket.head(self.prefix + file)
        except OSError as error:
            return error
        return None

    def too_long(self, path: bytes) -> str | None:
        """Return why a path is too long; names are limited as on disks, so that every object can be restored to one."""
        if len(self.prefix) + len(path) > MAX_KEY:
            return f"the key would have {len(self.prefix) + len(path):,} bytes, more than {MAX_KEY:,}"
        longest = max(path.split(b"/"), key=len)
        if len(longest) > NAME_MAX:
            return f"the name {quoted(decode_fs(longest)[:20])}… has {len(longest):,} bytes, more than {NAME_MAX}"
        return None

    def is_absent(self, path: bytes) -> bool:
        return True  # no key is as long

    def first_link(self, path: bytes) -> bytes | None:
        return None

    def is_leftover(self, path: bytes, version: bytes = b"") -> bool:
        return self.location.is_leftover(path, version)

    # --- content ------------------------------------------------------------------------------------------------------

    def open(self, file: bytes) -> tuple[BinaryIO, os.stat_result]:
        opened = RemoteFile(self.bucket, self.prefix + file)
        return cast(BinaryIO, io.BufferedReader(opened, 1 << 18)), status_of_key(opened.status)

    def read(self, file: bytes, limit: int = -1) -> bytes:
        try:
            return self._read(file, limit)
        except FileNotFoundError:
            if self.location.is_directory(file):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), self.path(file)) from None
            raise

    def _read(self, file: bytes, limit: int = -1) -> bytes:
        if not limit:
            return b""
        with RemoteFile(self.bucket, self.prefix + file, limit if limit > 0 else None) as opened:
            return opened.readall()

    def sources(self, files: Iterable[tuple[Key, bytes]]) -> Iterator[tuple[Key, bytes | Content]]:
        return read_ahead(self.bucket, ((key, self.prefix + file, None, self.path(file)) for key, file in files))

    def hash_tasks(
        self, tasks: Iterable[tuple[Key, bytes]], algorithms: tuple[str, ...], threads: int
    ) -> Iterator[tuple[Key, Outcome]]:
        def hashed(task: tuple[Key, bytes]) -> tuple[Key, Outcome]:
            key, file = task
            return key, hash_key(self.bucket, self.prefix + file, self.path(file), algorithms)

        return in_order(hashed, tasks, patience=PATIENCE)

    def trees(
        self,
        directory: bytes,
        names: Sequence[bytes],
        reads: Reads,
        *,
        marker: bytes = b"",
        clashes: bool = False,
        budget: int = UNLIMITED,
    ) -> _kernels.active.TreeBatch:
        above = directory + b"/" if directory else b""
        if marker:
            below = self._siblings(above, names)
        else:
            found = in_order(
                lambda name: (name, list(self.location.listed(above + _above(name)))), names, patience=PATIENCE
            )
            below = {name: keys for name, keys in found if len(names) == 1 or len(keys) <= MANY}
            below = {name: below.get(name) for name in names}
        trees: list[Tree] = []
        files: list[ListedKey] = []
        wanted: list[bool] = []
        done = 0
        for name, keys in below.items():
            # What was listed is used, unless few objects are wanted, each of which costs a request.
            if len(trees) >= budget < self.siblings:
                break
            done += 1
            tops: Mapping[bytes, Sequence[ListedKey]] | None = {name: keys or ()}
            if marker:
                tops = None if keys is None else _tops(keys, len(self.prefix + above), marker)
            if not keys or not tops or (clashes and len({one.lower() for one in tops}) < len(tops)):
                trees.append(_odd(name, "odd" if marker or keys is None else "unreadable"))
                continue
            for top, inside in tops.items():
                cut = len(self.prefix + above + _above(top))
                tree, ordered = _tree(top, inside, cut, len(files))
                trees.append(tree)
                if tree.state == "whole":
                    files += ordered
                    wanted += [_is_wanted(one.key[cut:], reads) for one in ordered]
        contents = self._contents([one for one, is_wanted in zip(files, wanted, strict=True) if is_wanted], reads)
        if left := dict.fromkeys(names[done:], 0):
            trees.append(Tree(b"", "rest", 0, 0, 0, 0, 0, {}, left, [], [], []))
        return _kernels.active.TreeBatch.of(
            trees, [contents.get(one.key) for one in files], [one.size for one in files]
        )

    def _contents(self, files: list[ListedKey], reads: Reads) -> dict[bytes, bytes]:
        """Return the contents of listed files, or their beginnings; not of those that cannot be read as listed.

        Files with equal tokens and sizes are equal, and read once: an inventory and its copy, a declaration. A sidecar
        whose token is the MD5 digest of what it must contain is not read.
        """
        found: dict[tuple[str | bytes, int], bytes | None] = {}
        contents: dict[bytes, bytes] = {}
        for some in ([one for one in files if not _is_sidecar(one)], [one for one in files if _is_sidecar(one)]):
            for one in some:
                inventory, _, algorithm = one.key.rpartition(b".")
                if _is_sidecar(one) and inventory in contents and algorithm in _ALGORITHMS:
                    line = sidecar_bytes(_hexdigest(decode_fs(algorithm), contents[inventory]))
                    if hashlib.md5(line, usedforsecurity=False).hexdigest() == one.token:
                        found[_identity(one)] = line
            unread = list({_identity(one): one for one in some if _identity(one) not in found}.values())
            read = in_order(lambda one: self._content(one, reads), unread, patience=PATIENCE)
            for one, content in zip(unread, read, strict=True):
                found[_identity(one)] = content
            for one in some:
                content = found[_identity(one)]
                if content is not None:
                    contents[one.key] = content
        return contents

    def _content(self, one: ListedKey, reads: Reads) -> bytes | None:
        try:
            with RemoteFile(self.bucket, one.key, HEAD if reads == "ids" else None, one.token) as opened:
                return opened.readall()
        except (FileNotFoundError, PermissionError, KeyChangedError):  # looked at again by itself
            return None

    def _siblings(self, above: bytes, names: Sequence[bytes]) -> dict[bytes, list[ListedKey] | None]:
        """Return the keys below the first of consecutive names in a directory, from one listing; :data:`None` for a
        name with too many keys, unless they are of one object.
        """
        found: dict[bytes, list[ListedKey] | None] = {}
        head = self.prefix + above
        keys = self.location.listed(above, start=names[0]) if names else iter(())
        one = next(keys, None)
        total = 0
        for name in names:
            if total > MANY:
                break
            start = head + name + b"/"
            own: list[ListedKey] = []
            while one is not None and one.key < start:
                one = next(keys, None)
            while one is not None and one.key.startswith(start):
                own.append(one)
                one = next(keys, None)
                if len(own) > MANY and not any(key.key.startswith(start + b"0=ocfl_object") for key in own):
                    own = []
                    break
            total += len(own)
            is_cut = one is not None and not own and one.key.startswith(start)
            found[name] = None if is_cut else own
            if is_cut:
                break
        return found

    # --- create -------------------------------------------------------------------------------------------------------

    def create(self, files: Mapping[bytes, bytes | None], name: bytes, data: bytes) -> None:
        names = (one for one in self.location.names(b"") if not one.startswith(STAGING))  # of probes
        foreign = next((one for one in names if one not in files), None)
        if foreign is not None:
            what = f"the prefix contains {quoted_path(foreign)}; specify an empty or new prefix"
            raise StoreError(self.path(b""), what)
        with self.changes(True) as changes:  # finds out whether the server is fit
            for file, content in (*files.items(), (name, data)):
                if content is not None:
                    changes.put_same(file, content)

    # --- change -------------------------------------------------------------------------------------------------------

    def is_decided(self, path: bytes, version: bytes) -> bool:
        return bool(self.location.is_ours(path + b"/" + version + b"/inventory.json"))

    def removals(self) -> list[bytes]:
        return [self.location.read(REMOVALS + name)[0] for name in self.location.names(REMOVALS[:-1])]

    def leftovers(self) -> list[bytes]:
        left = [STAGING + name for name in self.location.names(STAGING[:-1])]
        of_runs = [path for path in left if path.startswith((STAGING + b"probe-", CLAIMS))]
        return sorted({*of_runs, *(one.key[len(self.prefix) :] for one in self.bucket.uploads(self.prefix))})

    def changes(self, durable: bool) -> RemoteChanges:
        from pressmark.stores.ocfl.remote.remote_changes import RemoteChanges  # not needed for reading

        return RemoteChanges(self.location, self._content_class)

    @contextmanager
    def scratch(self) -> Iterator[bytes]:
        with TemporaryDirectory(prefix="pressmark-") as folder:
            yield os.fsencode(folder)


def _above(name: bytes) -> bytes:
    """Return how the keys in a directory begin; empty for the directory itself."""
    return name and name + b"/"


def _is_wanted(path: bytes, reads: Reads) -> bool:
    """Return whether a file of an object is read: its identifier's, or those that the rules read, and not content."""
    if reads == "ids":
        return path == b"inventory.json"
    above, _, name = path.rpartition(b"/")
    in_place = not above or (b"/" not in above and above.startswith(b"v"))
    return reads != "paths" and in_place and name.startswith((b"0=", b"inventory.json"))


def _identity(one: ListedKey) -> tuple[str | bytes, int]:
    """Return what files with equal content have in common; a key without a token is equal to itself only."""
    return one.token or one.key, one.size


def _is_sidecar(one: ListedKey) -> bool:
    return one.key.rpartition(b"/")[2].startswith(b"inventory.json.")


def _hexdigest(algorithm: str, data: bytes) -> str:
    return hashlib.new(algorithm, data, usedforsecurity=False).hexdigest()


def _tops(keys: Sequence[ListedKey], cut: int, marker: bytes) -> dict[bytes, Sequence[ListedKey]] | None:
    """Return the objects among keys in the order of their bytes, with the keys of each; :data:`None` if another key is
    among them, or an object is in another.
    """
    paths = [one.key[cut:] for one in keys]
    tops = {head for head, _, name in (path.rpartition(b"/") for path in paths) if name.startswith(marker)}
    found: dict[bytes, Sequence[ListedKey]] = {}
    end = 0
    for top in sorted(tops, key=lambda top: top + b"/"):
        begin = bisect_left(paths, top + b"/")
        if begin != end:
            return None
        end = bisect_left(paths, top + b"0")  # the character after the slash
        found[top] = keys[begin:end]
    if end != len(paths):
        return None
    return dict(sorted(found.items(), key=lambda item: item[0].split(b"/")))


def _odd(name: bytes, state: str) -> Tree:
    return Tree(name, state, errno.ENOENT if state == "unreadable" else 0, 0, 0, 0, 0, {}, {}, [], [], [])


def _tree(name: bytes, listed: Sequence[ListedKey], cut: int, number: int) -> tuple[Tree, list[ListedKey]]:
    """Return the tree of an object, ``odd`` if some key stands for a directory, and its keys in the order of a walk."""
    keys = sorted(listed, key=lambda one: one.key.split(b"/"))
    files: dict[str, int] = {}
    directories: dict[str, int] = {}
    for one in keys:
        path = decode_fs(one.key[cut:])
        if not path or path.endswith("/") or "//" in path:
            return _odd(name, "odd"), keys
        files[path] = number + len(files)
        above = path.rpartition("/")[0]
        missing = []
        while above and above not in directories:
            missing.append(above)
            above = above.rpartition("/")[0]
        directories.update(dict.fromkeys(reversed(missing), 0))
    if not files.keys().isdisjoint(directories):  # a file and a directory of one name
        return _odd(name, "odd"), keys
    return Tree(name, "whole", 0, 0, 0, 0, 0, files, directories, [], [], []), keys
