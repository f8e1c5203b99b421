"""What every store is: objects by identifier, walked, checked, repaired, put, given and removed."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from pressmark.errors import StoreError
from pressmark.layouts import Layout
from pressmark.reports import Problem, Report

if TYPE_CHECKING:
    from pressmark.stores.stored_object import StoredObject

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
    "encode_path",
    "leads_out",
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


def leads_out(name: bytes) -> bool:
    """Return whether a name, with ``/`` between directories, is none of a file within an object.

    On Windows a backslash separates too, and a colon stands behind a drive or before a stream of the file.
    """
    return bool({b"", b".", b".."} & set(name.split(b"/"))) or any(one in name for one in _LEADING_OUT)


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
