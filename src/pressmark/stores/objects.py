"""What stores return and accept: records and recorded files of objects, steps of repairs, sources and paths."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from pressmark.buckets.address import is_address
from pressmark.errors import StoreError
from pressmark.fixity.outcomes import Readable
from pressmark.reports import Problem, ProgressEvent, RepairStep

__all__ = [
    "CopyMode",
    "Data",
    "Digests",
    "Event",
    "ObjectSource",
    "OnEvent",
    "OnProblem",
    "PathObject",
    "RecordedFiles",
    "RepairStep",
    "SourcePath",
    "StoreObject",
    "encode_path",
]

#: A path, as ``str``, bytes or :class:`os.PathLike`.
Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]


Data = bytes | bytearray | memoryview | Readable
PathObject = os.PathLike[str] | os.PathLike[bytes]
SourcePath = str | PathObject
#: The source of an object: a file, a directory, or a mapping of names in the object to their content: bytes, open
#: binary files, or files or directories to copy as :class:`pathlib.Path`; no ``str``, which could be either.
ObjectSource = SourcePath | Mapping[str, PathObject | Data]
#: Whether a check verifies the content, and how: ``"read"`` (or :data:`True`) reads it, and ``"stored"`` uses the
#: digests that the server of object storage keeps.
Digests = bool | Literal["read", "stored"]
#: How files get into a store; ``auto`` is ``reflink`` if the file system supports it, else ``copy``.
CopyMode = Literal["auto", "copy", "reflink", "hardlink"]
OnProblem = Callable[[Problem], object]
Event = ProgressEvent | Problem | RepairStep
OnEvent = Callable[[Event], object]


def encode_path(path: Path, *, remote: bool = False) -> bytes:
    """Return the path of a store as bytes.

    :param remote: it may be an address in object storage
    :raises StoreError: no file can have this path, or it is an address
    """
    try:
        encoded = os.fsencode(path)
    except UnicodeEncodeError as error:
        raise StoreError(str(error.object), "the path cannot be encoded as a file name; choose another path") from None
    if b"\0" in encoded:
        raise StoreError(encoded, "the path contains a NUL character; choose another path")
    if is_address(encoded) and not remote:
        raise StoreError(encoded, "object storage is not supported here; use a local path")
    return encoded


class StoreObject(NamedTuple):
    """One object in the listing of a store.

    :ivar id: the identifier; surrogates of :func:`os.fsdecode` stand for bytes that are not UTF-8; :data:`None` if the
        identifier cannot be read
    :ivar path: the object's path, relative to the store's root, with ``/``; surrogates as in ``id``
    :ivar proper: whether the object conforms to the specification
    :ivar encapsulation: the name of the encapsulating directory of a Pairtree object, or :data:`None`
    :ivar problems: the object's problems; a proper object may have some
    :ivar version: the newest version after a change of an existing OCFL object, such as ``v2``; otherwise :data:`None`
    :ivar changes: the effect of the change: the number of files ``added``, ``removed``, ``changed``, ``renamed`` and
        ``unchanged``, and the number of files ``restored`` because the stored content is damaged, if there are any;
        :data:`None` without ``version``
    :ivar exists_same: whether a put found an object with the same content, and stored nothing
    """

    id: str | None
    path: str
    proper: bool
    encapsulation: str | None
    problems: tuple[Problem, ...]
    version: str | None = None
    changes: Mapping[str, int] | None = None
    exists_same: bool = False

    def with_problems(self, problems: tuple[Problem, ...]) -> StoreObject:
        """Return the object with more problems."""
        return self._replace(problems=(*self.problems, *problems)) if problems else self

    @classmethod
    def from_record(cls, record: Mapping[str, object]) -> StoreObject:
        """Return the object of a JSON object: the inverse of :meth:`record`."""
        fields: dict[str, Any] = {**record}
        fields["problems"] = tuple(map(Problem.from_record, fields["problems"]))
        return cls(**fields)

    def record(self) -> dict[str, object]:
        """Return the object as a JSON-compatible dictionary. ``version`` and ``changes`` are omitted if they are
        :data:`None`, and ``exists_same`` if it is false.
        """
        record = self._asdict()
        record["problems"] = [problem.record() for problem in self.problems]
        for key in ("version", "changes", "exists_same"):
            if record[key] in (None, False):
                del record[key]
        return record


class RecordedFiles(NamedTuple):
    """The files that an object must have.

    :ivar directory: the object's directory, relative to the root of its store
    :ivar files: algorithm and digest of each file, by its path in that directory
    :ivar describing: those of the files that describe others, such as manifests
    :ivar proof: is another value after any change of what the object records
    """

    directory: bytes
    files: dict[bytes, tuple[str, str]]
    describing: frozenset[bytes]
    proof: Any
