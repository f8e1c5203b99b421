"""Serialised bags: tar, compressed tar and zip files, read as a stream and never unpacked.

An archive is untrusted input. Its members are listed and hashed as they stream by, within :class:`Limits`, and the
verdict is that of the unpacked bag: the validation of directories runs over a table of the members.

>>> from pressmark.bagit.archive import open_archive, validate_archive
"""

from __future__ import annotations

from pressmark.bagit.archive.archive_validation import validate_archive
from pressmark.bagit.archive.members import Limits, Member
from pressmark.bagit.archive.reader import Archive, open_archive

__all__ = ["Archive", "Limits", "Member", "open_archive", "validate_archive"]
