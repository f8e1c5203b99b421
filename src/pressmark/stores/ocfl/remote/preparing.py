"""Objects and versions that are prepared for a root in a bucket: their files are copied, and sent where they stay."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import wait
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from itertools import count
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Self

from pressmark.buckets.bucket import MAX_COPY
from pressmark.buckets.remote_content import SMALL
from pressmark.buckets.requests import REQUESTS
from pressmark.buckets.upload import WHOLE, PartsUpload, Space
from pressmark.fixity.hasher import OpenOptions, examine, transfer, transfer_content
from pressmark.fixity.outcomes import Content, Outcome
from pressmark.fs.moves import remove_tree
from pressmark.fs.names import decode_fs
from pressmark.stores.object_sources import Copier, SourceCopy, opened
from pressmark.stores.ocfl.remote.claims import Claims
from pressmark.stores.ocfl.remote.location import DECIDED, Location
from pressmark.stores.ocfl.remote.prepared import Joined, Prepared, Sent, beginning, busy_file, other_names
from pressmark.threads import Threads, resolve_threads

__all__ = ["FRESH", "RemotePreparation"]

# A path, content, or the outcome of a file that has arrived.
_File = bytes | Content | Outcome
# Bytes of small files that are sent at a time, and requests that wait.
SENDING = 64 << 20
#: A file that was left by another run is taken if it is younger, in seconds: a repair removes older ones.
FRESH = 12 * 3600.0


class RemotePreparation:
    """The first half of :class:`pressmark.stores.ocfl.storage.Changes`: what nobody reads yet.

    Small files are copied to a temporary directory of this machine first, as into any store; large ones are sent while
    they are read.

    :param content_class: storage class of content; :data:`None` for the default of the bucket
    """

    together = REQUESTS
    alone = False

    def __init__(self, location: Location, content_class: str | None = None) -> None:
        self._location = location
        self._class = content_class
        self._claims = Claims(location)
        self._numbers = count()
        self._prepared: dict[bytes, Prepared] = {}
        self._free: set[bytes] = set()  # paths that were looked up, until an object is begun there
        self._space = Space(SENDING)
        self.path = b""

    def __enter__(self) -> Self:
        self._location.require_fit()
        self._bucket = self._location.bucket
        self._stack = ExitStack()
        folder = self._stack.enter_context(TemporaryDirectory(prefix="pressmark-", ignore_cleanup_errors=True))
        self.path = os.fsencode(folder)
        self._parts = self._stack.enter_context(Threads(REQUESTS, "pressmark-part"))
        self._pool = self._stack.enter_context(Threads(REQUESTS, "pressmark-send"))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            for new in list(self._prepared):
                if isinstance(error, KeyboardInterrupt):
                    self._prepared[new].uploads.clear()  # the next run continues them
                self.discard(new)
        finally:
            self._stack.__exit__(kind, error, trace)

    def __truediv__(self, name: bytes) -> bytes:
        return os.path.join(self.path, name)

    def lock(self, *, wait: bool = True) -> AbstractContextManager[object]:
        """Return a context that does nothing: the server decides between writers."""
        return nullcontext()

    def claimed(self, path: bytes) -> AbstractContextManager[None]:
        """Return a context in which no other run changes an object, where the server does not decide."""
        return nullcontext() if self.alone else self._claims.of(path)

    # --- prepare ------------------------------------------------------------------------------------------------------

    def begin(self, path: bytes = b"") -> bytes:
        new = self / b"%d" % next(self._numbers)
        self._prepared[new] = Prepared(path, path in self._free)
        self._free.discard(path)
        return new

    def look_up(self, paths: Sequence[bytes]) -> None:
        self._free.update(self._location.free(paths))

    def is_free(self, path: bytes) -> bool:
        if path not in self._free and not self._location.exists(path):
            self._free.add(path)
        return path in self._free

    def make(self, directory: bytes) -> None:
        os.makedirs(directory, exist_ok=True)

    def copy(self, copies: Sequence[SourceCopy], copier: Copier, together: int | None = None) -> Iterator[SourceCopy]:
        return Copier("copy", set(), self._send_large, self._copy_on_server).copy(copies, together)

    def _place(self, target: bytes) -> tuple[Prepared, bytes]:
        """Return what a path below one of :meth:`begin` belongs to, and the path in it."""
        top = target[: target.index(b"/", len(self.path) + 1)]
        return self._prepared[top], target[len(top) + 1 :]

    def _copy_on_server(self, copy: SourceCopy, content: Any, target: bytes) -> Any:
        """Copy a file from a bucket of the same server, if the server knows that the copy is equal; otherwise read it.

        It keeps digests of the source and of the copy, and it must not replace what is there.
        """
        source, (prepared, path) = content.data, self._place(target)
        probed = self._location.probed
        can_copy = probed is not None and probed.copies and source.bucket.server == self._bucket.server
        # A small file needs fewer requests if it is read and sent.
        if not can_copy or path.count(b"/") < 2 or (source.size is not None and source.size <= SMALL):
            return opened(content)
        key = self._key(prepared, path)
        try:
            found = source.bucket.head(source.key)
            digests = {name: found.digests[name] for name in copy.algorithms if name in found.digests}
            if len(digests) < len(copy.algorithms) or found.size > MAX_COPY:
                return opened(content)
            self._bucket.copy(source.key, key, of=source.bucket, storage_class=self._class)
            there = self._bucket.head(key)
            if there.size != found.size or not digests.items() <= there.digests.items():
                self._bucket.delete([key])
                return opened(content)
        except OSError:  # reading it meets the reason, too
            return opened(content)
        os.close(os.open(target, os.O_CREAT | os.O_EXCL, 0o600))
        prepared.copied.add(path)
        return Outcome(decode_fs(source.key), digests, found.size, int(found.modified * 1e9), None)

    def _send_large(self, copy: SourceCopy, content: _File, target: bytes) -> _File:
        """Send a large file of a source in parts, and return its outcome; a small one is returned."""
        options = OpenOptions(copy.links == "follow", real=copy.is_real and copy.links == "refuse")
        if isinstance(content, Outcome):
            return content
        prepared, path = self._place(target)
        if path.count(b"/") < 2:  # an inventory of an object that is stored as it is
            return content
        if isinstance(content, Content):
            if not hasattr(content.data, "read"):
                return content
            size = getattr(content.data, "size", None) or 0
            if not size:
                first = beginning(content)
                if len(first) <= WHOLE:
                    return Content(first, content.name)
                content = Content(Joined(first, content.data), content.name)
            elif size <= WHOLE:
                return content
        else:
            opener = options.opener()
            found = examine(content, options, opener)
            if isinstance(found, Outcome) or found.st_size <= WHOLE:
                opener.close()
                return content
            size = found.st_size
        probed = self._location.probed
        assert probed is not None
        if not probed.completes:
            what = "the server ignores the condition of uploads in parts, so that files over 64 MiB can be overwritten"
            raise OSError(errno.EOPNOTSUPP, f"{what}; {probed.replacements()}", target)
        upload = PartsUpload(self._bucket, self._key(prepared, path), self._parts, size, self._class)
        prepared.uploads[path] = upload
        os.close(os.open(target, os.O_CREAT | os.O_EXCL, 0o600))  # in its place, for those who look
        if isinstance(content, Content):
            return transfer_content(content, copy.algorithms, upload)
        try:
            return transfer(content, copy.algorithms, options, opener, resolve_threads(copy.threads), copy=upload)
        finally:
            opener.close()

    def _key(self, prepared: Prepared, path: bytes) -> bytes:
        return self._location.prefix + prepared.path + b"/" + path

    def added(self, file: bytes, digests: Mapping[str, str]) -> None:
        prepared, path = self._place(file)
        prepared.waiting[path] = file, digests
        prepared.size += 0 if path in prepared.uploads else os.path.getsize(file)
        # Nothing is sent of an object that is refused, unless it is large.
        if prepared.size > SENDING:
            self._send_all(prepared)

    def _send_all(self, prepared: Prepared) -> None:
        """Begin to send all files that wait."""
        if not prepared.is_claimed:
            self._claims.take(prepared.path)
            prepared.is_claimed = True
        waiting, prepared.waiting, prepared.size = prepared.waiting, {}, 0
        for path, (copy, digests) in waiting.items():
            if path in prepared.copied:
                prepared.copied.remove(path)
                prepared.sending[path] = self._pool.submit(Sent, path)
                continue
            if path in prepared.uploads:
                prepared.sending[path] = self._pool.submit(self._publish_upload, prepared, path)
                continue
            size = os.path.getsize(copy)
            self._space.take(size)
            prepared.sending[path] = self._pool.submit(self._send, prepared, path, copy, digests, size)

    def _send(self, prepared: Prepared, path: bytes, spooled: bytes, digests: Mapping[str, str], size: int) -> Sent:
        try:
            with open(spooled, "rb") as file:
                data = file.read()
            os.unlink(spooled)
            # Inventories of versions are read more often than content.
            storage_class = None if DECIDED.match(path) else self._class
            for other in other_names(path):
                if other not in prepared.there:
                    with suppress(FileExistsError):
                        key = self._key(prepared, other)
                        self._bucket.put(key, data, digests=digests, storage_class=storage_class)
                        return Sent(other)
                if self._is_same(prepared.path + b"/" + other, data, digests):
                    return Sent(other, True)
            raise AssertionError("the names never end")
        finally:
            self._space.give(size)

    def _is_same(self, path: bytes, data: bytes, digests: Mapping[str, str]) -> bool:
        """Return whether a file has this content, and stays: a lost answer, an earlier run, or another writer."""
        try:
            there = self._bucket.head(self._location.prefix + path)
            if there.size != len(data) or there.modified < self._now() - FRESH:
                return False
            known = [there.digests[name] == digests[name] for name in digests if name in there.digests]
            return all(known) if known else self._location.read(path)[0] == data
        except FileNotFoundError:
            return False

    def _now(self) -> float:
        return self._bucket.list(self._location.prefix, limit=1).date

    def _publish_upload(self, prepared: Prepared, path: bytes) -> Sent:
        upload = prepared.uploads.pop(path)
        try:
            upload.publish()
        except FileExistsError:
            raise busy_file(upload.path) from None
        return Sent(path, upload.is_there)

    def write(self, new: bytes, files: Mapping[bytes, bytes | None]) -> None:
        for name, data in files.items():
            if data is None:
                os.mkdir(os.path.join(new, name).rstrip(b"/"))
            else:
                self._prepared[new].written[name] = data

    def drop(self, file: bytes) -> None:
        prepared, path = self._place(file)
        if path in prepared.uploads:
            prepared.uploads.pop(path).discard()
        if path in prepared.copied:
            self._bucket.delete([self._key(prepared, path)])
        os.unlink(file)

    def prune(self, directory: bytes) -> None: ...

    def is_prepared(self, new: bytes) -> bool:
        return new in self._prepared

    def discard(self, new: bytes) -> None:
        prepared = self._prepared.pop(new, None)
        if prepared is not None:
            running = [sending for sending in prepared.sending.values() if not sending.cancel()]
            with suppress(OSError):
                self._bucket.delete([self._key(prepared, path) for path in prepared.copied])
            for upload in prepared.uploads.values():
                with suppress(OSError):
                    upload.discard()
            if prepared.is_claimed:
                wait(running)  # another run may then write the same keys
                self._claims.release(prepared.path)
        with suppress(OSError):
            if os.path.lexists(new):
                remove_tree(new)
