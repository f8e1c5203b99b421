"""The files of one object that is in a store."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from pressmark.errors import ObjectError
from pressmark.fixity.outcomes import Outcome
from pressmark.fixity.tree import walk
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.stores.exceptions import object_errors
from pressmark.stores.store import leads_out

__all__ = ["StoredObject", "is_same_version", "status_of"]


class StoredObject:
    """The files of one object that is in a store.

    What is read through it is of the version that it was got of. Where another process has put another version in its
    place meanwhile, or removed it, :meth:`open`, :meth:`files` and :meth:`confirm` say so: to be got again.

    :param store: the store's root, for messages
    :param identifier: the object's
    :param path: the directory that its files' names are relative to, absolute
    :param members: the names in it that are the object's; :data:`None` for all
    :param links: ``"follow"`` symbolic links, or ``"refuse"`` them

    :ivar id: the identifier
    :ivar path: the directory, absolute
    """

    def __init__(
        self,
        store: str | bytes,
        identifier: str,
        path: bytes,
        members: Sequence[bytes] | None = None,
        links: str = "follow",
    ) -> None:
        self.id = identifier
        self.path = path
        self._store = store
        self._members = members
        self._links = links
        # Of a directory that is the object's alone it is that which is replaced; of others, what is the object's in it.
        if members is None:
            self._seen = {path: status_of(path)}
        else:
            self._seen = {top: status_of(top) for top in (os.path.join(path, name) for name in members)}

    def __repr__(self) -> str:
        return f"<StoredObject {self.id!r} in {decode_fs(self.path)!r}>"

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Give each file's name within the object and its path, in the order of their octets.

        Whoever reads the paths asks :meth:`confirm` afterwards.

        :raises ObjectError: a directory cannot be read, or holds what is no file; or of kind ``changed``, at the latest
            at the end
        """
        for top in self._seen:
            for found in walk(top, links=self._links):
                if isinstance(found, Outcome):
                    self.confirm()
                    reason = f"{decode_fs(self._name(encode_fs(found.path)))}: {found.message}"
                    raise ObjectError(self._store, self.id, "unreadable", reason)
                path = encode_fs(found)
                yield decode_fs(self._name(path)), path
        self.confirm()

    def empty_directories(self) -> Iterator[tuple[str, bytes]]:
        """Give name within the object and path of each directory with nothing in it: :meth:`files` names none of them.

        :raises ObjectError: a directory cannot be read; or as :meth:`files`
        """
        with object_errors(self._store, self.id):
            for top in self._seen:
                for path in _empty_directories(top, self._links == "follow"):
                    if path != self.path:
                        yield decode_fs(self._name(path)), path
        self.confirm()

    def confirm(self) -> None:
        """Make sure that the object is still the one that was got.

        :raises ObjectError: of kind ``changed``: it was replaced, moved or removed, or nobody can say
        """
        for top in self._seen:
            self._confirm(top)

    def _confirm(self, top: bytes) -> None:
        if not is_same_version(status_of(top), self._seen[top]):
            raise self._changed()

    def _changed(self) -> ObjectError:
        what = "another process has replaced, moved or removed it since it was looked up; get it again"
        return ObjectError(self._store, self.id, "changed", what)

    def _is_refused(self, parts: Sequence[bytes]) -> bool:
        """Return whether a name leads over a symbolic link, where links are refused."""
        paths = (os.path.join(self.path, *parts[:depth]) for depth in range(1, len(parts) + 1))
        return self._links == "refuse" and any(map(os.path.islink, paths))

    def _name(self, path: bytes) -> bytes:
        return os.path.relpath(path, self.path).replace(os.sep.encode(), b"/")

    def open(self, name: str) -> BinaryIO:
        """Open the file ``name`` of the object for reading.

        :raises ObjectError: of kind ``missing``: there is no such file in it; of kind ``changed``: it is no longer the
            object that was got; or it cannot be read
        """
        parts = encode_fs(name).split(b"/")
        # A name is looked up, never followed out of the object.
        if leads_out(encode_fs(name)) or not (self._members is None or parts[0] in self._members):
            raise self._no_file(name)
        path = os.path.join(self.path, *parts)
        top = self.path if self._members is None else os.path.join(self.path, parts[0])
        file = None if self._is_refused(parts) else self._opened(path, top)
        if file is None:
            raise self._no_file(name)
        return file

    def _opened(self, path: bytes, top: bytes) -> BinaryIO | None:
        """Open a file of the version that was got; :data:`None` where there is none."""
        with object_errors(self._store, self.id):
            file = _opened(path)
        try:
            self._confirm(top)
        except BaseException:
            if file is not None:
                file.close()
            raise
        return file

    def _no_file(self, name: str) -> ObjectError:
        return ObjectError(self._store, self.id, "missing", f"there is no file {name!r} in it")


def status_of(path: bytes) -> os.stat_result | None:
    """Return the status of a file or directory; :data:`None` where there is none to be had.

    Why that is so, says whoever reads it.
    """
    try:
        return os.stat(path)
    except OSError:
        return None


def is_same_version(one: os.stat_result | None, other: os.stat_result | None) -> bool:
    """Return whether two looks at a path have found the same file, or the same directory with the same names.

    The times tell versions from each other where the number of one that is gone is given to the next. The time of
    modification alone does not: a copy has that of its source.
    """
    if one is None or other is None:
        return one is other
    if not os.path.samestat(one, other) or one.st_mtime_ns != other.st_mtime_ns:
        return False
    # A hard link to a file, such as a migration makes, changes its status and not the file.
    is_linked = stat.S_ISREG(one.st_mode) and one.st_nlink != other.st_nlink and one.st_size == other.st_size
    return is_linked or one.st_ctime_ns == other.st_ctime_ns


def _opened(path: bytes) -> BinaryIO | None:
    """Open a file for reading; :data:`None` where there is none.

    :raises OSError: it cannot be read
    """
    try:
        return open(path, "rb") if stat.S_ISREG(os.stat(path).st_mode) else None
    except OSError as error:
        # Of a longer name than any no file can be there.
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG):
            return None
        raise


def _empty_directories(top: bytes, follow: bool, above: tuple[tuple[int, int], ...] = ()) -> Iterator[bytes]:
    """Give the directories with nothing in them at and below a path, in the order of their octets.

    :param follow: symbolic links to directories; what ``top`` itself leads to is looked at in any case
    :param above: devices and numbers of the directories above
    :raises OSError: a directory cannot be read
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
