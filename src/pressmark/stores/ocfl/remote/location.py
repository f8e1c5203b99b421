"""The keys of a storage root in a bucket, by the paths of files and directories."""

from __future__ import annotations

import re

from pressmark.buckets.bucket import Bucket
from pressmark.buckets.probe import STAGING, ProbeResult, require_fit
from pressmark.buckets.remote_directory import RemoteDirectory

__all__ = ["DECIDED", "FIRST", "REMOVALS", "Location"]

#: Where runs note which objects they remove.
REMOVALS = STAGING + b"removals/"

#: The inventory of a version, relative to its object.
DECIDED = re.compile(rb"v[0-9]+/inventory\.json")
#: That of the first version, which decides about a new object.
FIRST = re.compile(rb"v0*1/inventory\.json")
_IN_VERSION = re.compile(rb"v[0-9]+/")


class Location(RemoteDirectory):
    """A storage root in a bucket, or a part of it.

    :param prefix: empty, or with ``/`` at its end
    :ivar probed: how the server behaves, once that is known
    """

    def __init__(self, bucket: Bucket, prefix: bytes) -> None:
        super().__init__(bucket, prefix)
        self.probed: ProbeResult | None = None

    def require_fit(self) -> None:
        """Check once that the server decides between writers.

        :raises StoreError: it does not
        """
        if self.probed is None:
            self.probed = require_fit(self.bucket, self.prefix)

    def is_leftover(self, path: bytes, version: bytes = b"") -> bool:
        """Return whether the directory of an object, or of a version, has only content that no inventory lists, and
        that Pressmark has written.
        """
        top = path + b"/" + version if version else path
        names = self.names(top)
        if version:
            is_left = bool(names) and b"inventory.json" not in names
        else:
            is_left = bool(names) and all(_IN_VERSION.match(name) and not FIRST.fullmatch(name) for name in names)
        return is_left and not any(self.is_ours(top + b"/" + name) is False for name in names)

    def is_ours(self, path: bytes) -> bool | None:
        """Return whether Pressmark has written a file; :data:`None` if the file is gone."""
        try:
            return self.bucket.head(self.prefix + path).is_ours
        except FileNotFoundError:
            return None
