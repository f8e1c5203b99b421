"""Serialized bags: tar, compressed tar and zip files, read as streams and never unpacked.

An archive is untrusted input. Its members are listed and hashed while they are read, within :class:`Limits`. The
verdict is that of the unpacked bag: a table of the members is validated like a directory.

>>> from pressmark.bagit.archive import open_archive, validate_archive
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pressmark.lazy import face

if TYPE_CHECKING:
    from pressmark.bagit.archive.check import validate_archive as validate_archive
    from pressmark.bagit.archive.members import Limits as Limits, Member as Member
    from pressmark.bagit.archive.reader import Archive as Archive, open_archive as open_archive

__all__, __getattr__, __dir__ = face(
    __name__,
    {
        ".check": "validate_archive",
        ".members": "Limits Member",
        ".reader": "Archive open_archive",
    },
)
