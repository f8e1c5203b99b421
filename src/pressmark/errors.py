"""Every exception that Pressmark raises on purpose.

::

    PressmarkError
    ├── LayoutConfigError(key, reason)              + ValueError   a layout's parameter is refused
    ├── IdentifierError(identifier, index, reason)  + ValueError   an identifier has no path
    ├── PathError(path, index, reason)              + ValueError   a path has no identifier
    ├── NotReversibleError(layout)                  + ValueError   a layout has no inverse at all
    ├── ColumnError(reason)                         + ValueError   an Arrow column is malformed or not text
    ├── FixityError
    │   ├── AlgorithmError(name, reason)            + ValueError   a digest algorithm is unknown or not available
    │   ├── FileError(path, kind, reason)                          one file has no digest
    │   ├── ManifestError(source, line, reason)     + ValueError   a manifest of digests is malformed
    │   └── LedgerError(path, reason)                              a ledger is refused
    ├── BagError(path, reason)                                     a bag cannot be opened, made or changed
    │   ├── ArchiveError(path, kind, reason)                       an archive is damaged, is none, or asks for too much
    │   └── BagInvalidError(path, reason, report)                  it is not as its manifests say: it is left alone
    ├── ProfileError(source, reason)                + ValueError   a BagIt Profile is malformed
    ├── MigrationError(source, destination, reason)                a migration is refused before it starts
    ├── SpillError(path, reason)                                   what memory does not hold finds no place on disk
    ├── StoreError(path, reason)                                   a store cannot be opened, made or changed
    │   └── ObjectError(path, identifier, kind, reason)            one object of a store cannot be had or changed
    ├── JobError(path, reason)                                     a run's work folder or workers cannot be used
    └── ReportError(path, reason)                                  a report cannot be written

The data are attributes, the text is ``str(error)``: always one line, always naming the item.
Both implementations raise the same class with the same text, because only shared code raises.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

__all__ = [
    "AlgorithmError",
    "ArchiveError",
    "BagError",
    "BagInvalidError",
    "ColumnError",
    "FileError",
    "FixityError",
    "IdentifierError",
    "JobError",
    "LayoutConfigError",
    "LayoutConfigWarning",
    "LedgerError",
    "ManifestError",
    "MigrationError",
    "NotReversibleError",
    "ObjectError",
    "PathError",
    "PressmarkError",
    "ProfileError",
    "ReportError",
    "SpillError",
    "StoreError",
    "quoted",
    "quoted_value",
]

# Enough to recognise an identifier by; the rest of a ten-megabyte one only hides the reason.
SHOWN_CHARACTERS = 80
# A parameter's name, or a file's, is shown whole up to here.
NAME_CHARACTERS = 255
# The path of a bag or store, and of what stands in the way there: it is to be looked at, so it is shown whole.
PATH_CHARACTERS = 4096


def quoted(item: str | bytes, characters: int = SHOWN_CHARACTERS) -> str:
    """Return ``item`` quoted on one line, a long one cut after so many ``characters``.

    Octets that are not UTF-8 appear as ``\\udc80`` … ``\\udcff``, as :func:`os.fsdecode` gives them.
    """
    # No more of it is looked at than can be shown; a character has four bytes at most.
    head = item[: 4 * (characters + 1)]
    text = head.decode("utf-8", "surrogateescape") if isinstance(head, bytes) else head
    return _escaped(text, len(head) < len(item), characters)


def quoted_value(value: object) -> str:
    """Return a configuration's value on one line, a long one cut after its head."""
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
    """Quote as much of ``text`` as ``characters`` hold once what is not printable is escaped."""
    pieces = []
    left = characters
    for character in text:
        piece = character if character.isprintable() else ascii(character)[1:-1]
        left -= len(piece)
        if left < 0:
            more = True
            break
        pieces.append(piece)
    return f"'{''.join(pieces)}'{'…' if more else ''}"


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"


class PressmarkError(Exception):
    """The root of the tree above: catch this to catch everything Pressmark refuses."""


class LayoutConfigError(PressmarkError, ValueError):
    """A layout's configuration is refused; nothing is clamped or repaired.

    :ivar key: the parameter, in the specification's camelCase, or what stands for it (a layout's name, a file)
    :ivar reason: what is wrong with it and what is allowed
    """

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(key, reason)
        self.key = key
        self.reason = reason

    def __str__(self) -> str:
        key = self.key if self.key.isprintable() and len(self.key) <= NAME_CHARACTERS else quoted(self.key)
        return f"{key}: {self.reason}"


class LayoutConfigWarning(UserWarning):
    """A configuration was read, but the program that wrote it would read it differently."""


class _ItemError(PressmarkError, ValueError):
    """What :class:`IdentifierError` and :class:`PathError` share."""

    what = ""

    def __init__(self, item: str | bytes, index: int | None, reason: str) -> None:
        super().__init__(item, index, reason)
        self.item = item
        self.index = index
        self.reason = reason

    def __str__(self) -> str:
        place = "" if self.index is None else f" {self.index}"
        return f"{self.what}{place} {quoted(self.item)}: {self.reason}"


class IdentifierError(_ItemError):
    """An identifier that the layout must not or cannot map.

    :ivar identifier: the identifier as it was given, :class:`str` or :class:`bytes`
    :ivar index: its place in the batch, counted from 0; :data:`None` outside a batch
    :ivar reason: one line that says why
    """

    what = "identifier"

    @property
    def identifier(self) -> str | bytes:
        return self.item


class PathError(_ItemError):
    """A path that the layout does not give for any identifier, or whose identifier is not in it.

    :ivar path: the path as it was given, :class:`str` or :class:`bytes`
    :ivar index: its place in the batch, counted from 0; :data:`None` outside a batch
    :ivar reason: one line that says why
    """

    what = "path"

    @property
    def path(self) -> str | bytes:
        return self.item


class NotReversibleError(PressmarkError, ValueError):
    """The layout keeps too little of an identifier in its paths to find it again.

    :ivar layout: the layout's official name
    """

    def __init__(self, layout: str) -> None:
        super().__init__(layout)
        self.layout = layout

    def __str__(self) -> str:
        return (
            f"{self.layout} has no inverse: its paths do not hold the whole identifier; "
            "read it from the object (an OCFL inventory, for example)"
        )


class ColumnError(PressmarkError, ValueError):
    """An Arrow column that cannot be read: malformed, not text, or without the field asked for.

    :ivar reason: one line that says why
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class FixityError(PressmarkError):
    """What can go wrong with digests of files; never raised itself."""


class AlgorithmError(FixityError, ValueError):
    """A digest algorithm that nobody here knows, or that this installation lacks.

    :ivar name: the algorithm as it was given
    :ivar reason: one line that says why
    """

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, reason)
        self.name = name
        self.reason = reason

    def __str__(self) -> str:
        return f"algorithm {quoted(self.name)}: {self.reason}"


class FileError(FixityError):
    """A single file that was asked for and has no digest. In a batch this is an outcome, not an exception.

    :ivar path: the path as it was given, :class:`str` or :class:`bytes`
    :ivar kind: a stable word, listed in :mod:`pressmark.fs.file_errors`
    :ivar reason: one line that says why
    """

    def __init__(self, path: str | bytes, kind: str, reason: str) -> None:
        super().__init__(path, kind, reason)
        self.path = path
        self.kind = kind
        self.reason = reason

    def __str__(self) -> str:
        return f"{quoted(self.path)}: {self.reason}"


class ManifestError(FixityError, ValueError):
    """A manifest of digests that is not what its format says.

    :ivar source: the manifest's name
    :ivar line: the line at fault, counted from 1
    :ivar reason: one line that says why
    """

    def __init__(self, source: str, line: int, reason: str) -> None:
        super().__init__(source, line, reason)
        self.source = source
        self.line = line
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.source}:{self.line}: {self.reason}"


class LedgerError(FixityError):
    """A ledger that this run must not go on with.

    :ivar path: the ledger's name
    :ivar reason: one line that says why
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


class _PlaceError(PressmarkError):
    """What errors about a place on the disk share."""

    def __init__(self, path: str | bytes, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"{quoted(self.path, PATH_CHARACTERS)}: {self.reason}"


class BagError(_PlaceError):
    """A bag that cannot be opened, made or changed; nothing was.

    :ivar path: the bag, or the file in it that stands in the way
    :ivar reason: one line that says why, and the way out
    """


class ArchiveError(BagError):
    """A serialised bag that is damaged, is no archive, or exceeds a limit.

    :ivar kind: of the problem: ``archive-malformed`` or ``archive-limit``
    """

    def __init__(self, path: str | bytes, kind: str, reason: str) -> None:
        super().__init__(path, reason)
        self.args = (path, kind, reason)
        self.kind = kind


class BagInvalidError(BagError):
    """A bag that is not as its manifests say: a change would bless what is wrong.

    :ivar report: the problems, as a :class:`pressmark.reports.Report`
    """

    def __init__(self, path: str | bytes, reason: str, report: Any) -> None:
        super().__init__(path, reason)
        self.args = (path, reason, report)
        self.report = report


class ProfileError(PressmarkError, ValueError):
    """A BagIt Profile that cannot be used.

    :ivar source: the profile's file
    :ivar reason: one line that says why
    """

    def __init__(self, source: str, reason: str) -> None:
        super().__init__(source, reason)
        self.source = source
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.source}: {self.reason}"


class MigrationError(PressmarkError):
    """A migration that is refused before it starts: nothing was written to the destination.

    :ivar source: the source's directory
    :ivar destination: the destination's directory
    :ivar reason: one line that says why, and the way out
    :ivar refused: the file that lists what is refused, if objects are
    """

    def __init__(self, source: str, destination: str, reason: str, refused: str | None = None) -> None:
        super().__init__(source, destination, reason, refused)
        self.source = source
        self.destination = destination
        self.reason = reason
        self.refused = refused

    def __str__(self) -> str:
        source = f"{quoted(self.source, PATH_CHARACTERS)} to " if self.source else ""
        return f"{source}{quoted(self.destination, PATH_CHARACTERS)}: {self.reason}"


class SpillError(_PlaceError):
    """A temporary file that cannot be made, written or read.

    :ivar path: the folder that it is in
    :ivar reason: one line that says why, and the way out
    """


class StoreError(_PlaceError):
    """A store that cannot be opened, made or changed; nothing was.

    :ivar path: the store, or the file in it that stands in the way
    :ivar reason: one line that says why, and the way out
    """


class ObjectError(StoreError):
    """One object that a store cannot give, take or remove; the others are not concerned.

    :ivar path: of the store
    :ivar identifier: of the object
    :ivar kind: a stable word: ``missing``, ``exists``, ``collision``, ``improper``, ``bad-name``, …
    :ivar reason: one line that says why, and the way out
    """

    def __init__(self, path: str | bytes, identifier: str | bytes, kind: str, reason: str) -> None:
        super().__init__(path, reason)
        self.args = (path, identifier, kind, reason)
        self.identifier = identifier
        self.kind = kind

    def __str__(self) -> str:
        return f"{quoted(self.path, PATH_CHARACTERS)}: object {quoted(self.identifier)}: {self.reason}"


class JobError(_PlaceError):
    """A run that cannot begin or go on; what its receipts say is done stays done.

    :ivar path: the work folder, or what a worker does not have; of a cluster its address
    :ivar reason: one line that says why, and the way out
    """


class ReportError(_PlaceError):
    """A report that cannot be written; what it is about is as it was.

    :ivar path: its file, or one that it is made of
    :ivar reason: one line that says why, and the way out
    """
