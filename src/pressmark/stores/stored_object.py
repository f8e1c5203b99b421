"""The files of one object in a store, which are compared with their recorded digests while they are read."""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import BinaryIO, NamedTuple, cast

from pressmark.errors import DamagedObjectError, ObjectError, quoted, quoted_path, short_digest
from pressmark.fixity.outcomes import Content, Outcome, require_written
from pressmark.fs.beneath import open_regular, real_path
from pressmark.fs.durable import flush_directory, flush_trees
from pressmark.fs.file_errors import message_of
from pressmark.fs.moves import rename_new
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.option_names import option
from pressmark.stores.exceptions import is_unsafe_name, object_errors

__all__ = ["RecordedDigest", "StoredObject", "is_same_version", "status_of"]

_BUFFER = 1 << 16  # 64 KiB


class RecordedDigest(NamedTuple):
    """The digest of a file, as an inventory or a manifest records it.

    :ivar algorithm: official name of an available algorithm
    :ivar digest: in lower case
    """

    algorithm: str
    digest: str


class StoredObject:
    """The files of one object in a store.

    All reads are of the version that was returned by ``get``. If another process replaces or removes the object,
    :meth:`open`, :meth:`files` and :meth:`confirm` raise an error of kind ``changed``; get the object again.

    :param store: the store's root, for messages
    :param identifier: the object's identifier
    :param path: the directory that file names are relative to, absolute
    :param members: the names in it that belong to the object; :data:`None` for all
    :param links: ``"follow"`` or ``"refuse"`` symbolic links
    :ivar id: the identifier
    :ivar path: the directory, absolute, as :func:`os.fsdecode` returns it
    """

    def __init__(
        self,
        store: str | bytes,
        identifier: str,
        path: bytes,
        members: Sequence[bytes] | None = None,
        links: str = "follow",
    ) -> None:
        self.id: str = identifier
        self.path: str = os.fsdecode(path)
        self._top = path
        self._store = store
        self._members = members
        self._links = links
        # A directory that holds nothing but the object is replaced as a whole; in others, each member is.
        if members is None:
            self._seen = {path: status_of(path)}
        else:
            self._seen = {top: status_of(top) for top in (os.path.join(path, name) for name in members)}

    @property
    def is_directory(self) -> bool:
        """Whether the object is the directory :attr:`path` with everything in it."""
        return self._members is None

    def __repr__(self) -> str:
        return f"<StoredObject {self.id!r} in {self.path!r}>"

    def files(self) -> Iterator[tuple[str, str]]:
        """Yield the name of each file in the object and its path, in the order of the names' bytes.

        Content read by these paths is not verified. Call :meth:`confirm` after reading them.

        :raises ObjectError: a directory cannot be read, or contains a special file; or of kind ``changed``, at the end
            at the latest
        """
        from pressmark.fixity.tree import walk_files  # writing an object needs no walk

        for top in self._seen:
            if self._is_refused(()):
                raise ObjectError(self._store, self.id, "unreadable", f"{quoted_path(top)}: {message_of('link')}")
            for found in walk_files(top, links=self._links):
                if isinstance(found, Outcome):
                    self.confirm()
                    reason = f"{quoted_path(self._name(encode_fs(found.path)))}: {found.message}"
                    raise ObjectError(self._store, self.id, "unreadable", reason)
                path = encode_fs(found)
                yield decode_fs(self._name(path)), os.fsdecode(path)
        self.confirm()

    def empty_directories(self) -> Iterator[tuple[str, str]]:
        """Yield name and path of each empty directory, which :meth:`files` does not list.

        :raises ObjectError: a directory cannot be read; or as for :meth:`files`
        """
        with object_errors(self._store, self.id):
            for top in self._seen:
                for path in _empty_directories(top, self._links == "follow"):
                    if path != self._top:
                        yield decode_fs(self._name(path)), os.fsdecode(path)
        self.confirm()

    def copy_to(
        self, target: str | bytes | os.PathLike[str], *, copy_mode: str = "auto", verify: bool = True
    ) -> tuple[list[str], list[str]]:
        """Copy all files and empty directories into the new directory ``target``, which appears when it is complete.

        :param copy_mode: as for :func:`pressmark.fixity.copying.copy_files`
        :param verify: compare each copy with its recorded digest
        :return: the names of the files, and of the empty directories
        :raises ObjectError: the object was changed, or a file cannot be read
        :raises DamagedObjectError: content does not match its recorded digest, or cannot be verified
        :raises BagError: files cannot be cloned
        :raises BlockingIOError: another run is making ``target``
        :raises OSError: a copy cannot be written, or ``target`` exists
        """
        from pressmark.fs.staging import NewPath  # most objects are not copied

        published = os.path.abspath(os.fsencode(target))
        with NewPath(published, (b"files",)) as hidden:
            new = os.path.join(hidden.inside, b"files")
            copied = self._copy(new, copy_mode, verify)
            flush_trees(new)
            rename_new(new, published)
            flush_directory(os.path.dirname(published))
        return copied

    def _copy(self, target: bytes, mode: str, verify: bool) -> tuple[list[str], list[str]]:
        from pressmark.fixity import copying  # most objects are not copied

        files = dict(self.files())
        empty = dict(self.empty_directories())
        recorded = self.recorded_digests(list(files), whole=True) if verify else None
        algorithms = tuple(sorted({digest.algorithm for digest in (recorded or {}).values()}))

        def tasks() -> Iterator[tuple[str, bytes | Content, bytes]]:
            for name, source in self._sources(files):
                yield name, source, self._make(target, name, os.path.dirname(encode_fs(name)))

        os.mkdir(target)
        for name in empty:
            self._make(target, name, encode_fs(name))
        with closing(copying.copy_files(tasks(), algorithms, mode=mode, real=True)) as copies:
            for name, outcome in copies:
                require_written(outcome)
                if outcome.digests is None:
                    self.confirm()  # that may be why a file has gone
                    raise self.error("source", f"{quoted_path(outcome.path)}: {outcome.message}")
                if recorded is not None:
                    expected = recorded[name]
                    digest = outcome.digests.get(expected.algorithm, "")
                    if digest != expected.digest:
                        raise self.damaged(name, expected, digest)
        self.confirm()
        return list(files), list(empty)

    def _make(self, target: bytes, name: str, folder: bytes) -> bytes:
        """Create a directory in a copy of the object; return the path of the copy of a file or directory.

        :param folder: the directory, relative to ``target``
        :raises ObjectError: the name leads out of the object
        """
        if is_unsafe_name(encode_fs(name)):
            raise self.error("bad-name", f"{quoted_path(name)} is not a valid file name in an object")
        os.makedirs(os.path.join(target, folder), exist_ok=True)
        return os.path.join(target, encode_fs(name))

    def confirm(self) -> None:
        """Check that the object is still the version that was returned by ``get``.

        :raises ObjectError: of kind ``changed``: the object was replaced, moved or removed, or this cannot be
            determined
        """
        for top in self._seen:
            self._confirm(top)

    def _confirm(self, top: bytes) -> None:
        if not is_same_version(status_of(top), self._seen[top]):
            raise self._changed()

    def _changed(self) -> ObjectError:
        what = "another process has replaced, moved or removed the object since it was looked up; get it again"
        return ObjectError(self._store, self.id, "changed", what)

    def _is_refused(self, parts: Sequence[bytes]) -> bool:
        """Return whether links are refused, and a name or the object's own directory contains one."""
        first = 0 if self._members is None else 1
        paths = (os.path.join(self._top, *parts[:depth]) for depth in range(first, len(parts) + 1))
        return self._links == "refuse" and any(map(os.path.islink, paths))

    def _name(self, path: bytes) -> bytes:
        return os.path.relpath(path, self._top).replace(os.sep.encode(), b"/")

    def recorded_digests(self, names: Sequence[str], *, whole: bool = False) -> Mapping[str, RecordedDigest] | None:
        """Return the recorded digest of each file; :data:`None` if stores of this kind record none.

        :param names: of files in the object
        :param whole: these are all files in the object; another file with a recorded digest is missing
        :raises ObjectError: the digests cannot be read
        :raises DamagedObjectError: a file has no digest or is missing, or the digests are not those that were recorded
        """
        return None

    def open(self, name: str, *, verify: bool = True) -> BinaryIO:
        """Open a file of the object for reading.

        The stream compares the content with its recorded digest, in OCFL objects and bags: reading the last byte raises
        :class:`DamagedObjectError` if they differ. A stream that is positioned by ``seek``, or closed before its end,
        is not verified. Pairtrees and Vitro stores record no digests.

        :param name: its name in the object
        :param verify: whether to compare the content with its digest
        :raises ObjectError: of kind ``missing``: the object has no such file; of kind ``changed``: the object was
            replaced; or the file cannot be read
        :raises DamagedObjectError: the content cannot be verified
        """
        if not verify:
            return self._open(name)
        recorded = self.recorded_digests([name])
        file = self._open(name)
        if recorded is None:
            return file
        return _open_verified(file, recorded[name], lambda found: self.damaged(name, recorded[name], found))

    def read_bytes(self, name: str, *, verify: bool = True) -> bytes:
        """Return the content of a file.

        :raises ObjectError: as for :meth:`open`
        :raises DamagedObjectError: the content does not match its recorded digest
        """
        with self.open(name, verify=verify) as file, object_errors(self._store, self.id):
            return file.read()

    def _sources(self, files: Mapping[str, str]) -> Iterator[tuple[str, bytes | Content]]:
        """Yield name and source of each file for a copy: its real path, or its content.

        :param files: from :meth:`files`, whose content :meth:`recorded_digests` may have chosen since
        """
        return ((name, real_path(os.fsencode(path))) for name, path in files.items())

    def error(self, kind: str, reason: str) -> ObjectError:
        """Return an error about this object."""
        return ObjectError(self._store, self.id, kind, reason)

    def damaged(self, name: str, expected: RecordedDigest, found: str) -> DamagedObjectError:
        """Return the error of a file whose digest is not the recorded one."""
        digests = f"expected {short_digest(expected.digest)}, found {short_digest(found)}"
        what = f"{quoted(name)}: content does not match its {expected.algorithm} digest ({digests})"
        return self._unverified("content-mismatch", what)

    def _unverified(self, kind: str, what: str) -> DamagedObjectError:
        self.confirm()  # content and digests of two versions differ
        how = f"read without verification ({option('verify', False)})"
        advice = f'list all problems with "pressmark store check --digests", or {how}'
        return DamagedObjectError(self._store, self.id, kind, f"{what}; {advice}")

    def _open(self, name: str) -> BinaryIO:
        parts = encode_fs(name).split(b"/")
        # No name leads out of the object.
        if is_unsafe_name(encode_fs(name)) or not (self._members is None or parts[0] in self._members):
            raise self._no_file(name)
        path = os.path.join(self._top, *parts)
        top = self._top if self._members is None else os.path.join(self._top, parts[0])
        file = None if self._is_refused(parts) else self._opened(path, top)
        if file is None:
            raise self._no_file(name)
        return file

    def _opened(self, path: bytes, top: bytes) -> BinaryIO | None:
        """Open a file of this version; return :data:`None` if it does not exist."""
        with object_errors(self._store, self.id):
            file = _opened(path, self._links == "follow")
        try:
            self._confirm(top)
        except BaseException:
            if file is not None:
                file.close()
            raise
        return file

    def _no_file(self, name: str) -> ObjectError:
        return ObjectError(self._store, self.id, "missing", f"file {quoted_path(name)} not found in the object")


def status_of(path: bytes) -> os.stat_result | None:
    """Return the status of a file or directory, or :data:`None` if it cannot be determined."""
    try:
        return os.stat(path)
    except OSError:
        return None


def is_same_version(one: os.stat_result | None, other: os.stat_result | None) -> bool:
    """Return whether a path had the same file, or the same directory with the same names, at two times.

    Inode numbers are reused, so times are also compared. The modification time is not enough: a copy keeps that of its
    source.
    """
    if one is None or other is None:
        return one is other
    if not os.path.samestat(one, other) or one.st_mtime_ns != other.st_mtime_ns:
        return False
    # A new hard link, as made by a migration, changes the status and not the file.
    is_linked = stat.S_ISREG(one.st_mode) and one.st_nlink != other.st_nlink and one.st_size == other.st_size
    return is_linked or one.st_ctime_ns == other.st_ctime_ns


def _opened(path: bytes, follow: bool) -> BinaryIO | None:
    """Open a file for reading; return :data:`None` if it does not exist.

    :param follow: follow a symbolic link
    """
    try:
        return open_regular(path, follow=follow)
    except IsADirectoryError:
        return None
    except OSError as error:
        # No file has a name that is too long.
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG):
            return None
        raise


def _empty_directories(top: bytes, follow: bool, above: tuple[tuple[int, int], ...] = ()) -> Iterator[bytes]:
    """Yield the empty directories at and below a path, in the order of bytes.

    :param follow: symbolic links to directories below ``top``; ``top`` itself is always followed
    :param above: devices and inodes of the directories above, to detect loops
    """
    if not os.path.isdir(top):
        return
    status = os.stat(top)
    identity = (status.st_dev, status.st_ino)
    if identity in above:
        return
    with os.scandir(top) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    if not found:
        yield top
    for entry in found:
        if entry.is_dir(follow_symlinks=follow):
            yield from _empty_directories(entry.path, follow, (*above, identity))


# --- verification while reading ---------------------------------------------------------------------------------------


def _open_verified(file: BinaryIO, recorded: RecordedDigest, error: Callable[[str], Exception]) -> BinaryIO:
    """Return a stream of ``file`` that raises an error instead of its last bytes if the content is damaged.

    A stream that is positioned by ``seek``, or closed before its end, is not verified.

    :param file: an open file at its beginning; the stream closes it
    :param error: creates the error, from the digest of the content
    """
    return cast(BinaryIO, io.BufferedReader(_VerifiedFile(file, recorded, error), _BUFFER))


class _VerifiedFile(io.RawIOBase):
    """The bytes of a file, hashed as they are read."""

    def __init__(self, file: BinaryIO, recorded: RecordedDigest, error: Callable[[str], Exception]) -> None:
        from pressmark.fixity.algorithms import ALGORITHMS  # opening an object needs no digest

        self._file = file
        self._recorded = recorded
        self._error = error
        self._hasher = ALGORITHMS[recorded.algorithm].make(1)
        self._size = _size_of(file)
        self._hashed = 0
        self._is_read_in_order = True

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._file.seekable()

    def fileno(self) -> int:
        return self._file.fileno()

    @property
    def name(self) -> object:
        return self._file.name

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        count: int = self._file.readinto(buffer)  # type: ignore[attr-defined]
        if self._is_read_in_order and len(buffer):
            self._hasher.update(memoryview(buffer)[:count])
            self._hashed += count
            # A caller that reads as many bytes as the file has may never read its end.
            if not count or self._hashed == self._size:
                found = self._hasher.hexdigest()
                if found != self._recorded.digest:
                    raise self._error(found)
        return count

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        before = self._file.tell()
        after = self._file.seek(offset, whence)
        self._is_read_in_order = self._is_read_in_order and after == before
        return after

    def tell(self) -> int:
        return self._file.tell()

    def close(self) -> None:
        try:
            super().close()
        finally:
            self._file.close()


def _size_of(file: BinaryIO) -> int:
    """Return the size of an open file; -1 if it is not on a disk."""
    try:
        return os.fstat(file.fileno()).st_size
    except OSError:
        return -1
