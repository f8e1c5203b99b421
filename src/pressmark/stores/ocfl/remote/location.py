"""The keys of a storage root in a bucket, by the paths of files and directories."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Literal, cast

from pressmark.buckets.bucket import Bucket
from pressmark.buckets.probe import STAGING, ProbeResult, probe
from pressmark.buckets.remote_directory import RemoteDirectory
from pressmark.buckets.unconditional import Unconditional
from pressmark.errors import StoreError

__all__ = ["CLAIMS", "DECIDED", "FIRST", "REMOVALS", "Location", "Replacement"]

#: What replaces conditions on a server that ignores them: see :class:`OcflRoot`.
Replacement = Literal["claims", "single_writer"]

#: Where runs note which objects they remove.
REMOVALS = STAGING + b"removals/"
#: Where runs note which objects they change, if the server ignores conditions.
CLAIMS = STAGING + b"claims/"

#: The inventory of a version, relative to its object.
DECIDED = re.compile(rb"v[0-9]+/inventory\.json")
#: The inventory of the first version, which decides about a new object.
FIRST = re.compile(rb"v0*1/inventory\.json")
_IN_VERSION = re.compile(rb"v[0-9]+/")


class Location(RemoteDirectory):
    """A storage root in a bucket, or a part of it.

    :param prefix: empty, or with ``/`` at its end
    :param replacement: what replaces conditions on a server that ignores them; :data:`None` to refuse the server
    :ivar probed: what can be relied on, once that is known
    :ivar has_claims: whether runs claim the objects that they change
    """

    def __init__(self, bucket: Bucket, prefix: bytes, replacement: Replacement | None = None) -> None:
        super().__init__(bucket, prefix)
        self._replacement = replacement
        self.probed: ProbeResult | None = None
        self.has_claims = False

    def require_fit(self) -> None:
        """Check once that the server decides between writers, or that something replaces its decision.

        :raises StoreError: neither is the case
        """
        if self.probed is not None:
            return
        found = probe(self.bucket, self.prefix)
        url = found.url.rstrip("/")
        if self._replacement is not None and not (found.is_safe and found.completes):
            self.has_claims = self._replacement == "claims"
            if self.has_claims and not found.lists_at_once:
                what = "the server lists new keys late, so that claims do not keep runs apart"
                raise StoreError(url, f"{what}; {found.advice()}")
            self.bucket = cast(Bucket, Unconditional(self.bucket, found))
            # A copy on the server would need a claim of its own.
            found = replace(found, completes=True, copies=not self.has_claims, deletes=True)
        elif not found.is_safe:
            what = "the server ignores conditions, so that writers can overwrite each other's files"
            raise StoreError(url, f"{what}; {found.replacements()}; see pressmark store probe")
        self.probed = found

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
