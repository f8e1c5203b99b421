"""What every store is: objects by identifier, walked, checked, repaired, put, given and removed."""

from __future__ import annotations

import errno
import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO, ClassVar, Literal, NamedTuple

from pressmark.errors import BagError, ObjectError, StoreError
from pressmark.fixity import Outcome, walk
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.layouts import Layout
from pressmark.reports import Problem, Report
from pressmark.stores.problems import problem

__all__ = [
    "Changed",
    "CopyMode",
    "Event",
    "OnEvent",
    "OnProblem",
    "Progress",
    "Source",
    "Store",
    "StoreObject",
    "StoredObject",
    "encode_path",
    "is_same_version",
    "leads_out",
    "object_errors",
    "refusal",
    "status_of",
    "store_errors",
    "unrepaired",
]

Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]
#: What an object is made of: a file, a directory, or names within the object and the files they are copied from.
Source = Path | Mapping[str, Path]
CopyMode = Literal["auto", "copy", "reflink", "hardlink"]
OnProblem = Callable[[Problem], object]


# In no name of a file within an object.
_LEADING_OUT = (b"\0",) if os.name == "posix" else (b"\0", b"\\", b":")


class Progress(NamedTuple):
    """An event: so much is done, given every now and then.

    :ivar objects: that were looked at
    :ivar problems: that were found
    """

    objects: int
    problems: int


class Changed(NamedTuple):
    """An event of a repair: one thing that was done, or would be done.

    :ivar action: a stable word: ``encapsulate``, ``finish``, ``prune``, ``remove``, …
    :ivar path: what it is done to, relative to the store's root
    :ivar names: what is moved or removed there, where there is more to say
    """

    action: str
    path: bytes
    names: tuple[bytes, ...] = ()


Event = Progress | Changed
OnEvent = Callable[[Event], object]


def encode_path(path: Path) -> bytes:
    """Return the bytes of the path of a store.

    :raises StoreError: no file can have this path
    """
    try:
        given = os.fsencode(path)
    except UnicodeEncodeError as error:
        raise StoreError(str(error.object), "the path is not text that a file name can be; name another") from None
    if b"\0" in given:
        raise StoreError(given, "there is a NUL in the path; name another")
    return given


class StoreObject(NamedTuple):
    """One object, as a walk finds it.

    :ivar id: the identifier; surrogates of :func:`os.fsdecode` stand for octets that are not UTF-8, and :data:`None`
        for an identifier that cannot be read
    :ivar path: of the object's place, relative to the store's root and with ``/``; surrogates likewise
    :ivar proper: whether it is stored as its specification says
    :ivar encapsulation: of a Pairtree the encapsulating directory's name; :data:`None` elsewhere, and without one
    :ivar problems: what is wrong with it; an object may be proper and still have some
    """

    id: str | None
    path: str
    proper: bool
    encapsulation: str | None
    problems: tuple[Problem, ...]

    def record(self) -> dict[str, Any]:
        """Return it as it stands in JSON."""
        return {**self._asdict(), "problems": [problem.record() for problem in self.problems]}


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


def leads_out(name: bytes) -> bool:
    """Return whether a name, with ``/`` between directories, is none of a file within an object.

    On Windows a backslash separates too, and a colon stands behind a drive or before a stream of the file.
    """
    return bool({b"", b".", b".."} & set(name.split(b"/"))) or any(one in name for one in _LEADING_OUT)


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


class Store(ABC):
    """Objects by identifier, in a directory.

    :ivar root: the store's directory
    :ivar layout: what maps identifiers to places; :data:`None` where none is known
    """

    #: The kind's word, as :func:`pressmark.stores.open` and the commands know it.
    kind: ClassVar[str]
    root: str
    layout: Layout | None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.root!r}>"

    @abstractmethod
    def objects(
        self, *, threads: int | None = None, on_problem: OnProblem | None = None, ignore: Sequence[str] = ()
    ) -> Iterator[StoreObject]:
        """Give every object, lazily, in an order that does not depend on the file system.

        Whatever belongs to no object goes to ``on_problem``, so that every file is accounted for.

        :param threads: how many read directories; :data:`None` or 0 for as many as there are cores
        :param ignore: globs of names that are passed over, such as ``.DS_Store``
        """

    @abstractmethod
    def get(self, identifier: str | bytes) -> StoredObject:
        """Return an object.

        :raises ObjectError: of kind ``missing``: it is not there
        :raises IdentifierError: the identifier has no place in this store
        """

    @abstractmethod
    def locate(self, record: StoreObject) -> StoredObject:
        """Return the object of a record of :meth:`objects`: also one that is not where its identifier belongs.

        :raises ObjectError: of kind ``missing``: it is no longer there
        """

    def refuse_changes(self) -> None:  # noqa: B027 (a store may be changed unless its kind knows better)
        """Return where the store may be changed, as far as it knows without trying.

        :raises StoreError: it is only read
        """

    @abstractmethod
    def put(
        self,
        identifier: str | bytes,
        source: Source,
        *,
        replace: bool = False,
        mode: CopyMode = "auto",
        links: Literal["refuse", "follow"] = "refuse",
    ) -> StoreObject:
        """Store an object: whole or not at all.

        :param source: a file, a directory, or names within the object and the files that are copied there
        :param replace: in the place of the object that is there, if one is
        :param mode: ``copy`` the bytes, share them (``reflink``, ``hardlink``), or ``auto``: reflink where the file
            system can, else copy
        :param links: symbolic links in the source: ``"refuse"`` them, or ``"follow"`` them and copy what they lead to
        :raises ObjectError: nothing was stored; its ``kind`` says why
        :raises IdentifierError: the identifier has no place in this store
        """

    @abstractmethod
    def delete(self, identifier: str | bytes) -> None:
        """Remove one object, and directories above it that are empty then; nothing else.

        :raises ObjectError: nothing was removed; its ``kind`` says why
        :raises IdentifierError: the identifier has no place in this store
        """

    @abstractmethod
    def check(
        self,
        *,
        digests: bool = False,
        threads: int | None = None,
        on_event: OnEvent | None = None,
        on_problem: OnProblem | None = None,
        ignore: Sequence[str] = (),
    ) -> Report:
        """Look at everything in the store and return what is wrong.

        :param digests: read the files too, where the store holds their digests
        :param on_event: called with :class:`Progress`
        :param on_problem: called with each problem as it is found; the report has them all the same
        """

    def repair(self, *, dry_run: bool = False, on_event: OnEvent | None = None, ignore: Sequence[str] = ()) -> Report:
        """Mend what can be mended without losing a byte; the report has what remains.

        :param dry_run: only say what would be done
        :param on_event: called with :class:`Changed` for each thing done
        :raises StoreError: stores of this kind cannot be repaired
        """
        raise StoreError(self.root, f"stores of kind {self.kind} cannot be repaired; restore what is damaged")


# What the operating system's number means for an object, and the way out.
_REFUSALS = {
    errno.ENOSPC: ("no-space", "make room, and run it again"),
    errno.EDQUOT: ("no-space", "make room, and run it again"),
    errno.EROFS: ("permission", "mount the file system for writing"),
    errno.EACCES: ("permission", "run it as somebody who may"),
    errno.EPERM: ("permission", "run it as somebody who may"),
    errno.ENAMETOOLONG: ("bad-name", "use a shorter name"),
    errno.EEXIST: ("collision", "two names are the same, or are one here that differ in case: rename one of them"),
    errno.EILSEQ: ("bad-name", "the file system takes no such names"),
}


def refusal(error: OSError) -> tuple[str, str]:
    """Return the kind of :class:`ObjectError` for what the operating system refuses, and a line with the way out."""
    kind, way_out = _REFUSALS.get(error.errno or 0, ("io-error", ""))
    named = error.filename if isinstance(error.filename, (str, bytes)) else ""
    name = decode_fs(os.path.basename(encode_fs(named)))
    reason = f"{error.strerror or error}{f' ({name})' if name else ''}"
    return kind, f"{reason}; {way_out}" if way_out else reason


# What the system refuses because of one object, and not of all.
_OF_ONE = (errno.EACCES, errno.EPERM, errno.EEXIST, errno.ENAMETOOLONG)


def unrepaired(path: bytes, error: OSError) -> Problem:
    """Return the problem of one object or directory that a repair has to leave as it is.

    :raises OSError: what was refused would stop every other, too
    """
    if error.errno not in _OF_ONE:
        raise error
    return problem("unrepaired", path, refusal(error)[1])


class object_errors:
    """Turn what the operating system or Python's stack refuses into an :class:`ObjectError`; a context manager.

    No generator: of many small objects that would cost more than most of what it surrounds.
    """

    __slots__ = ("_identifier", "_store")

    def __init__(self, store: str | bytes, identifier: str | bytes) -> None:
        self._store = store
        self._identifier = identifier

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, OSError):
            raise ObjectError(self._store, self._identifier, *refusal(error)) from error
        if isinstance(error, RecursionError):  # what goes through a tree calls itself for each level
            reason = "directories lie too deep below each other; leave them out, or pack them into one file"
            raise ObjectError(self._store, self._identifier, "source", reason) from None
        if isinstance(error, BagError):  # from copying, which bags share
            reason = f"{decode_fs(encode_fs(error.path))}: {error.reason}"
            raise ObjectError(self._store, self._identifier, "source", reason) from None


@contextmanager
def store_errors(store: str | bytes) -> Iterator[None]:
    """Turn what the operating system refuses inside into a :class:`StoreError`."""
    try:
        yield
    except BrokenPipeError:
        raise  # no disk says that: whoever is told of problems has left
    except OSError as error:
        raise StoreError(store, refusal(error)[1]) from error
