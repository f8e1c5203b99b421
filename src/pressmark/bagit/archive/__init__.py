"""Serialized bags: tar, compressed tar and zip files, read as streams and never unpacked.

An archive is untrusted input. Its members are listed and hashed while they are read, within :class:`Limits`. The
verdict is that of the unpacked bag: a table of the members is validated like a directory.

>>> from pressmark.bagit.archive import open_archive, validate_archive
"""

from __future__ import annotations

from pressmark.bagit.archive.archive_validation import validate_archive
from pressmark.bagit.archive.members import Limits, Member
from pressmark.bagit.archive.reader import Archive, open_archive

__all__ = ["Archive", "Limits", "Member", "open_archive", "validate_archive"]


def __dir__() -> list[str]:
    return sorted(__all__)
