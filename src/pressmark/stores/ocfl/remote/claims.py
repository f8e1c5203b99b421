"""Claims of objects, which keep runs apart where the server ignores conditions.

A run writes a claim of an object, then lists the claims. If there is another one, it removes its own, and tries again
after a pause. Of two runs that both find no other claim, each would have listed before the other had written, which is
impossible where a listing has all keys that were written before: at most one run changes the object.
"""

from __future__ import annotations

import hashlib
import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from pressmark.buckets.bucket import ANY
from pressmark.option_names import option
from pressmark.stores.exceptions import SourceError
from pressmark.stores.ocfl.remote.location import CLAIMS, Location
from pressmark.threads import require_use

__all__ = ["Claims"]

# Attempts to claim an object, and the longest pause between two of them in seconds.
ATTEMPTS = 16
PAUSE = 1.0
# Seconds until a run writes its claim again: a repair removes those older than a day.
RENEWED = 3600.0


class _Claim:
    """A claim of this run.

    :ivar count: of its users, each of which releases it
    :ivar written: when, by the clock of this machine
    """

    def __init__(self) -> None:
        self.count = 1
        self.written = time.monotonic()


class Claims:
    """The claims of a run; none unless the root needs them.

    :ivar are_needed: whether other runs are kept apart by claims
    """

    def __init__(self, location: Location) -> None:
        self._location = location
        self._run = os.urandom(8).hex().encode()
        self._claims: dict[bytes, _Claim] = {}

    @property
    def are_needed(self) -> bool:
        return self._location.has_claims

    @contextmanager
    def of(self, path: bytes) -> Iterator[None]:
        """Return a context in which no other run changes an object.

        :raises SourceError: of kind ``changed``: another run is changing it
        """
        self.take(path)
        try:
            yield
        finally:
            self.release(path)

    def take(self, path: bytes) -> None:
        """Claim an object; :meth:`release` must follow.

        :raises SourceError: of kind ``changed``: another run is changing it
        """
        if not self.are_needed:
            return
        claim = self._claims.get(path)
        if claim is None:
            self._wait(path)
            self._claims[path] = _Claim()
            return
        claim.count += 1
        if time.monotonic() > claim.written + RENEWED:
            self._write(path)
            claim.written = time.monotonic()

    def release(self, path: bytes) -> None:
        """Remove a claim when its last user releases it."""
        if not self.are_needed:
            return
        self._claims[path].count -= 1
        if not self._claims[path].count:
            del self._claims[path]
            self._remove(path)

    def _wait(self, path: bytes) -> None:
        for attempt in range(ATTEMPTS):
            try:
                self._write(path)
                if self._is_alone(path):
                    return
            except BaseException:
                self._remove(path)
                raise
            self._remove(path)
            require_use()
            time.sleep(random.uniform(0, min(PAUSE, 0.02 * 2**attempt)))
        what = "another run is changing the object; try again, or if it was killed, repair the store"
        raise SourceError("changed", f"{what} ({option('alone', True)})")

    def _key(self, path: bytes) -> bytes:
        return self._location.prefix + _folder(path) + self._run

    def _write(self, path: bytes) -> None:
        self._location.bucket.put(self._key(path), path, over=ANY)

    def _is_alone(self, path: bytes) -> bool:
        return [one.key for one in self._location.listed(_folder(path), 2)] == [self._key(path)]

    def _remove(self, path: bytes) -> None:
        with suppress(OSError):  # a repair removes it
            self._location.bucket.delete([self._key(path)])


def _folder(path: bytes) -> bytes:
    """Return the directory of the claims of an object."""
    return CLAIMS + hashlib.sha256(path).hexdigest().encode() + b"/"
