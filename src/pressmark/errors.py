"""The exceptions of Pressmark.

::

    PressmarkError
    ├── LayoutConfigError(key, reason)              + ValueError   invalid configuration of a layout
    ├── IdentifierError(id, index, reason)          + ValueError   an identifier cannot be mapped
    ├── PathError(path, index, reason)              + ValueError   a path cannot be mapped back
    ├── NotReversibleError(layout)                  + ValueError   the layout has no inverse
    ├── ColumnError(reason)                         + ValueError   an Arrow column is invalid or not text
    ├── TableError(name, reason, line)              + ValueError   a list or table is malformed
    │   └── FormatError(name, reason)               + ValueError   it has another format, or lacks the column
    ├── FixityError
    │   ├── AlgorithmError(name, reason)            + ValueError   an algorithm is unknown or not available
    │   ├── FileError(path, kind, reason)                          a file cannot be read, or has changed
    │   ├── ManifestError(source, line, reason)     + ValueError   a manifest is malformed
    │   └── LedgerError(path, reason)                              a ledger cannot be used
    ├── BagError(path, reason)                                     a bag cannot be opened, created or changed
    │   ├── ArchiveError(path, kind, reason)                       an archive is damaged or exceeds a limit
    │   └── BagInvalidError(path, reason, report)                  a bag is invalid and was left unchanged
    ├── ProfileError(source, reason)                + ValueError   a BagIt Profile is malformed
    ├── MigrationError(source, destination, reason)                a migration cannot start
    ├── SpillError(path, reason)                                   a temporary file cannot be written or read
    ├── StoreError(path, reason)                                   a store cannot be opened, created or changed
    │   └── ObjectError(path, id, kind, reason)                    one object cannot be read or changed
    │       ├── DamagedObjectError(path, id, kind, reason)          + FixityError  its content does not match its digest
    │       └── ObjectTypeError(path, id, kind, reason)             + TypeError    its source has the wrong type
    ├── JobError(path, reason)                                     a run cannot start or continue
    ├── AuditError(path, reason)                                   a state of audits cannot be used
    └── ReportError(path, reason)                                  a report cannot be written

:exc:`Cancelled` is no ``Exception``: it ends a call that :meth:`pressmark.Progress.cancel` cancelled.

The arguments are attributes of the same names. ``str(error)`` is one line that identifies the item. Both
implementations raise the same errors with the same text.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import islice
from typing import Any

__all__ = [
    "DIGEST_DIGITS",
    "AlgorithmError",
    "ArchiveError",
    "AuditError",
    "BagError",
    "BagInvalidError",
    "Cancelled",
    "ColumnError",
    "DamagedObjectError",
    "FileError",
    "FixityError",
    "FormatError",
    "IdentifierError",
    "JobError",
    "LayoutConfigError",
    "LayoutConfigWarning",
    "LedgerError",
    "ManifestError",
    "MigrationError",
    "NotReversibleError",
    "ObjectError",
    "ObjectTypeError",
    "PathError",
    "PressmarkError",
    "ProfileError",
    "ReportError",
    "SpillError",
    "StoreError",
    "TableError",
    "TableWarning",
    "escaped",
    "is_store_wide",
    "quoted",
    "quoted_path",
    "quoted_value",
    "short_digest",
]

# Enough to recognise an identifier; a longer one would hide the reason.
SHOWN_CHARACTERS = 80
# Names of parameters and files are quoted in full up to this length.
NAME_CHARACTERS = 255
#: Digits of a digest in messages.
DIGEST_DIGITS = 12
# Paths of bags and stores are quoted in full.
PATH_CHARACTERS = 4096


def quoted(item: str | bytes, characters: int = SHOWN_CHARACTERS) -> str:
    """Return ``item`` in quotes on one line, truncated to ``characters`` characters.

    Bytes that are not UTF-8, which :func:`os.fsdecode` turns into surrogates, are shown as ``\\x80`` to ``\\xff``.
    """
    # A character has at most four bytes.
    head = item[: 4 * (characters + 1)]
    text = head.decode("utf-8", "surrogateescape") if isinstance(head, bytes) else head
    return _escaped(text, len(head) < len(item), characters)


def quoted_path(path: str | bytes) -> str:
    """Return a path for messages, in quotes on one line and in full.

    All messages quote paths by this function; only a line of a command begins with a bare path.
    """
    return quoted(path, PATH_CHARACTERS)


def escaped(character: str) -> str:
    """Return the escape of an unprintable character; a byte that is not UTF-8 is shown as ``\\x80`` to ``\\xff``."""
    if "\udc80" <= character <= "\udcff":
        return f"\\x{ord(character) - 0xDC00:02x}"
    return ascii(character)[1:-1]


def short_digest(digest: str) -> str:
    """Return a short form of a digest for messages."""
    return f"{digest[:DIGEST_DIGITS]}…" if len(digest) > DIGEST_DIGITS else digest


def quoted_value(value: object) -> str:
    """Return the value of a configuration parameter on one line, truncated if it is long."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, int) and value.bit_length() > 64:
        return f"an integer of {value.bit_length()} bits"
    if isinstance(value, Mapping):
        inside = ", ".join(f"{quoted_value(key)}: {quoted_value(one)}" for key, one in islice(value.items(), 8))
        return f"{{{_cut(inside)}}}"
    if isinstance(value, (list, tuple)):
        return f"[{_cut(', '.join(map(quoted_value, value[:SHOWN_CHARACTERS])))}]"
    if value is None or isinstance(value, bool):
        return str(value).lower().replace("none", "null")
    return _cut(ascii(value))


def _escaped(text: str, more: bool, characters: int) -> str:
    """Quote ``text`` with unprintable characters escaped, truncated to ``characters`` characters."""
    pieces = []
    left = characters
    for character in text:
        piece = character if character.isprintable() else escaped(character)
        left -= len(piece)
        if left < 0:
            more = True
            break
        pieces.append(piece)
    return f"'{''.join(pieces)}'{'…' if more else ''}"


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"


class PressmarkError(Exception):
    """The base class of all errors that Pressmark raises on purpose.

    :ivar kind: a stable word for programs: the same for all errors of a class, unless ``kind`` is among its arguments
    """

    kind: str = "error"


class Cancelled(BaseException):  # no error; as KeyboardInterrupt, nothing catches it as the error of an item
    """A call was cancelled by :meth:`pressmark.Progress.cancel`; it leaves what Ctrl-C would leave."""


class LayoutConfigError(PressmarkError, ValueError):
    """The configuration of a layout is invalid.

    :ivar key: the parameter as the caller spelled it (``tuple_size`` as a keyword, ``tupleSize`` in a name with
        settings, a configuration or a command), or ``layout``, or a file name; ``reason`` spells parameters alike
    :ivar reason: the problem and the allowed values, on one line
    """

    kind = "layout"

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(key, reason)
        self.key = key
        self.reason = reason

    def __str__(self) -> str:
        key = self.key if self.key.isprintable() and len(self.key) <= NAME_CHARACTERS else quoted(self.key)
        return f"{key}: {self.reason}"


class LayoutConfigWarning(UserWarning):
    """A configuration was accepted, but the program that wrote it interprets it differently."""


class TableWarning(UserWarning):
    """A table is written in another way than its source was."""


class _ItemError(PressmarkError, ValueError):
    """Base class of :class:`IdentifierError` and :class:`PathError`.

    :ivar item: the identifier or the path
    """

    #: The noun of the item, for messages.
    what: str = ""

    def __init__(self, item: str | bytes, index: int | None, reason: str) -> None:
        super().__init__(item, index, reason)
        self.item = item
        self.index = index
        self.reason = reason

    def __str__(self) -> str:
        place = "" if self.index is None else f" {self.index}"
        return f"{self.what}{place} {quoted(self.item)}: {self.reason}"


class IdentifierError(_ItemError):
    """An identifier that the layout cannot map to a path.

    :ivar id: the identifier, as the caller specified it; from a file a ``str``, with the surrogates of ``os.fsdecode``
    :ivar index: index in the batch, from 0; in a file its line with a header, in Parquet its row, from 0; :data:`None`
        outside of a batch
    :ivar reason: the reason, on one line
    """

    kind = "bad-name"
    what = "identifier"

    @property
    def id(self) -> str | bytes:
        """The identifier, as the caller specified it; from a file a ``str``."""
        return self.item


class PathError(_ItemError):
    """A path from which the layout cannot recover an identifier.

    :ivar path: the path, as the caller specified it; from a file a ``str``, with the surrogates of ``os.fsdecode``
    :ivar index: index in the batch, from 0; in a file its line with a header, in Parquet its row, from 0; :data:`None`
        outside of a batch
    :ivar reason: the reason, on one line
    """

    kind = "path"
    what = "path"

    @property
    def path(self) -> str | bytes:
        """The path, as the caller specified it; from a file a ``str``."""
        return self.item


class NotReversibleError(PressmarkError, ValueError):
    """The layout has no inverse: its paths do not contain the whole identifier.

    :ivar layout: official name of the layout
    """

    kind = "not-reversible"

    def __init__(self, layout: str) -> None:
        super().__init__(layout)
        self.layout = layout

    def __str__(self) -> str:
        return (
            f"{self.layout} has no inverse: its paths do not contain the whole identifier; "
            "read it from the object, for example from its OCFL inventory"
        )


class ColumnError(PressmarkError, ValueError):
    """An Arrow column that cannot be read: invalid, not text, or without the requested field.

    :ivar reason: the reason, on one line
    """

    kind = "column"

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class TableError(PressmarkError, ValueError):
    """A list or a table that is malformed or damaged.

    :ivar name: the file; may be empty
    :ivar reason: the problem and what to do, on one line
    :ivar line: the number of the line, in Parquet of the row, from 1; :data:`None` for the whole file
    """

    kind = "table"

    def __init__(self, name: str, reason: str, line: int | None = None) -> None:
        super().__init__(name, reason, line)
        self.name = name
        self.reason = reason
        self.line = line

    def __str__(self) -> str:
        place = self.name if self.line is None else f"{self.name}:{self.line}"
        return f"{place}: {self.reason}" if place else self.reason


class FormatError(TableError):
    """A file of another format, or without the column; nothing was written."""

    kind = "format"


class FixityError(PressmarkError):
    """Base class of the errors about digests of files."""

    kind = "fixity"


class AlgorithmError(FixityError, ValueError):
    """A digest algorithm that is unknown, or not available in this installation.

    :ivar name: the name of the algorithm, unchanged
    :ivar reason: the reason, on one line
    """

    kind = "algorithm"

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, reason)
        self.name = name
        self.reason = reason

    def __str__(self) -> str:
        return f"algorithm {quoted(self.name)}: {self.reason}"


class FileError(FixityError):
    """A file without digest, raised by functions for one file; batches report an outcome instead.

    :ivar path: the path, as :func:`os.fsdecode` returns it
    :ivar kind: a kind from the table in :mod:`pressmark.fs.file_errors`
    :ivar reason: the reason, on one line
    """

    def __init__(self, path: str | bytes, kind: str, reason: str) -> None:
        super().__init__(os.fsdecode(path), kind, reason)
        self.path = os.fsdecode(path)
        self.kind = kind
        self.reason = reason

    def __str__(self) -> str:
        return f"{quoted(self.path)}: {self.reason}"


class ManifestError(FixityError, ValueError):
    """A manifest of digests that is malformed.

    :ivar source: name of the manifest
    :ivar line: number of the malformed line, from 1; 0 for the whole manifest
    :ivar reason: the reason, on one line
    """

    kind = "manifest"

    def __init__(self, source: str, line: int, reason: str) -> None:
        super().__init__(source, line, reason)
        self.source = source
        self.line = line
        self.reason = reason

    def __str__(self) -> str:
        where = f"{self.source}:{self.line}" if self.line else self.source
        return f"{where}: {self.reason}"


class LedgerError(FixityError):
    """A ledger that this run cannot use.

    :ivar path: name of the ledger
    :ivar reason: the reason, on one line
    """

    kind = "ledger"

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


class _PlaceError(PressmarkError):
    """Base class of the errors about a file or directory.

    :ivar path: as :func:`os.fsdecode` returns it
    """

    def __init__(self, path: str | bytes, reason: str) -> None:
        super().__init__(os.fsdecode(path), reason)
        self.path = os.fsdecode(path)
        self.reason = reason

    def __str__(self) -> str:
        return f"{quoted_path(self.path)}: {self.reason}"


class BagError(_PlaceError):
    """A bag that cannot be opened, created or changed; it is unchanged.

    :ivar path: the bag, or the file that causes the error
    :ivar reason: the problem and what to do, on one line
    """

    kind = "bag"


class ArchiveError(BagError):
    """A serialized bag that is damaged, not an archive, or exceeds a limit.

    :ivar kind: ``archive-malformed`` or ``archive-limit``
    """

    def __init__(self, path: str | bytes, kind: str, reason: str) -> None:
        super().__init__(path, reason)
        self.args = (self.path, kind, reason)
        self.kind = kind


class BagInvalidError(BagError):
    """A bag that cannot be changed because it is invalid: new manifests would hide the problems.

    :ivar report: the problems, a :class:`pressmark.reports.Report`
    """

    kind = "bag-invalid"

    def __init__(self, path: str | bytes, reason: str, report: object) -> None:
        super().__init__(path, reason)
        self.args = (self.path, reason, report)
        self.report: Any = report


class ProfileError(PressmarkError, ValueError):
    """A BagIt Profile that cannot be used.

    :ivar source: file of the profile
    :ivar reason: the reason, on one line
    """

    kind = "profile"

    def __init__(self, source: str, reason: str) -> None:
        super().__init__(source, reason)
        self.source = source
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.source}: {self.reason}"


class MigrationError(PressmarkError):
    """A migration that cannot start; the destination is unchanged.

    :ivar source: directory of the source
    :ivar destination: directory of the destination
    :ivar reason: the problem and what to do, on one line
    :ivar refused: the file that lists the conflicts between objects, if there are any
    """

    kind = "migration"

    def __init__(self, source: str, destination: str, reason: str, refused: str | None = None) -> None:
        super().__init__(source, destination, reason, refused)
        self.source = source
        self.destination = destination
        self.reason = reason
        self.refused = refused

    def __str__(self) -> str:
        source = f"{quoted_path(self.source)} to " if self.source else ""
        return f"{source}{quoted_path(self.destination)}: {self.reason}"


class SpillError(_PlaceError):
    """A temporary file that cannot be created, written or read.

    :ivar path: the folder of the file
    :ivar reason: the problem and what to do, on one line
    """

    kind = "spill"


class StoreError(_PlaceError):
    """A store that cannot be opened, created or changed; it is unchanged.

    :ivar path: the store, or the file that causes the error
    :ivar reason: the problem and what to do, on one line
    """

    kind = "store"


class ObjectError(StoreError):
    """An object that a store cannot read, add or remove; other objects are not affected.

    :ivar path: path of the store
    :ivar id: identifier of the object
    :ivar kind: a stable word: ``missing``, ``exists``, ``collision``, ``improper``, ``bad-name``, …
    :ivar reason: the problem and what to do, on one line
    """

    def __init__(self, path: str | bytes, id: str | bytes, kind: str, reason: str) -> None:
        super().__init__(path, reason)
        self.args = (self.path, id, kind, reason)
        self.id = id
        self.kind = kind

    def __str__(self) -> str:
        return f"{quoted_path(self.path)}: object {quoted(self.id)}: {self.reason}"


def is_store_wide(error: BaseException) -> bool:
    """Return whether an error would fail the other objects as well, as when a server no longer answers."""
    return isinstance(error, StoreError) and not isinstance(error, ObjectError)


class DamagedObjectError(ObjectError, FixityError):
    """Content of an object that does not match its recorded digest, or that no digest verifies.

    :ivar kind: ``content-mismatch``; ``content-missing``: recorded, but not found; ``content-unlisted``: without a
        recorded digest; ``sidecar-mismatch``: the inventory, which records the digests, does not match its own; or
        ``digest-algorithm``: not available
    """


class ObjectTypeError(ObjectError, TypeError):
    """A source of an object that is neither a path nor a mapping of file names to content.

    :ivar kind: ``source``
    """


class JobError(_PlaceError):
    """A run that cannot start or continue; completed chunks stay completed.

    :ivar path: the work folder, a directory that a worker needs, or the address of a cluster
    :ivar reason: the problem and what to do, on one line
    """

    kind = "job"


class AuditError(_PlaceError):
    """A state of audits that a run cannot use; it is unchanged.

    :ivar path: the file of the state
    :ivar reason: the problem and what to do, on one line
    """

    kind = "audit"


class ReportError(_PlaceError):
    """A report that cannot be written.

    :ivar path: the report, or a file that it is created from
    :ivar reason: the problem and what to do, on one line
    """

    kind = "report"
