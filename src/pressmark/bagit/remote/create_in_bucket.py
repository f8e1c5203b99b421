"""Create a bag in a bucket, as a tree of keys.

The payload is written first, each key only if it does not exist; then the manifests and the other tag files; bagit.txt
last. A prefix without it is not a bag, so the bag appears with one request. The next run reuses the keys of an
interrupted one, if Pressmark wrote them and their content is the same.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, suppress
from itertools import islice
from math import inf
from tempfile import TemporaryDirectory
from time import monotonic

from pressmark.bagit import bag_info, bagit_txt
from pressmark.bagit.bag_info import BagInfo
from pressmark.bagit.changes import RUN_AGAIN, Listener, refusing
from pressmark.bagit.manifest_format import manifest_name
from pressmark.bagit.paths import BELOW_PAYLOAD, PAYLOAD
from pressmark.bagit.remote.bag_in_bucket import bucket_errors
from pressmark.bagit.remote.key_output import fit_bucket, require_free
from pressmark.bagit.writing.options import CreateOptions
from pressmark.bagit.writing.payload import Sources
from pressmark.bagit.writing.tag_writer import TagWriter
from pressmark.bagit.writing.write import read_payload
from pressmark.buckets.address import find_key
from pressmark.buckets.bucket import MAX_KEY, Bucket
from pressmark.buckets.listing import listed
from pressmark.buckets.remote_file import RemoteFile
from pressmark.buckets.requests import REQUESTS, in_order
from pressmark.buckets.upload import NewKey, Space
from pressmark.errors import BagError, quoted_path
from pressmark.fixity.hasher import OpenOptions, examine, transfer, transfer_content
from pressmark.fixity.outcomes import PROGRESS_EVERY, Content, Outcome, not_written, require_written
from pressmark.reports import ProgressEvent
from pressmark.threads import Threads

__all__ = ["create_in_bucket"]

# Bytes of files that are being sent, at most.
SENDING = 64 << 20
# Keys that are examined before anything is written.
EXAMINED = 1000
OTHERS = "the prefix contains files that are not part of the new bag; choose another prefix"


def create_in_bucket(
    paths: Sequence[bytes],
    several: bool,
    destination: bytes,
    options: CreateOptions,
    nested: bool,
    on_event: Listener,
) -> BagInfo:
    """Create a bag at an address from the files at ``paths``, and return the content of bag-info.txt.

    :param several: keep the name of each of ``paths`` in the payload
    :raises BagError: the bag cannot be created
    """
    with ExitStack() as stack:
        payload = stack.enter_context(Sources(paths, several, nested, options, on_event))
        payload.examine(destination)
        with bucket_errors(destination):
            bucket, key = find_key(destination)
            continues = _require_free(bucket, key + b"/", destination, options)
            fit_bucket(destination)
        stack.enter_context(refusing(destination, RUN_AGAIN))
        folder = os.fsencode(stack.enter_context(TemporaryDirectory(prefix="pressmark-")))
        pool = stack.enter_context(Threads(REQUESTS, "pressmark-part"))
        sender = _Sender(bucket, key + b"/", options, pool, continues)
        tags = TagWriter(options, folder)
        contents = read_payload(payload, "copy", sender.send(payload, on_event), tags, on_event)
        payload.check_unchanged()
        for path in sorted(contents.keys() - {bagit_txt.NAME}):
            sender.send_tag_file(path, contents[path], os.path.join(folder, path))
        on_event(ProgressEvent("move"))
        if sum(1 for one in listed(bucket, sender.prefix) if one.key != sender.prefix) != sender.files:
            raise BagError(destination, OTHERS)
        sender.send_tag_file(bagit_txt.NAME, contents[bagit_txt.NAME], b"")
        return tags.info()


def _require_free(bucket: Bucket, prefix: bytes, destination: bytes, options: CreateOptions) -> bool:
    """Refuse a prefix with anything but what an interrupted run has left; return whether one has left anything.

    :raises BagError: another key is there, or a bag
    """
    if prefix == b"/":
        return False  # no prefix, which is refused
    require_free(bucket, prefix + bagit_txt.NAME, destination)
    tag_files = [bag_info.NAME, *(path for path, _source in options.tag_files)]
    tag_files += [manifest_name(name, tag=tag) for name in options.algorithms for tag in (False, True)]
    allowed = {PAYLOAD, *(path.split(b"/")[0] for path in tag_files)}
    page = bucket.list(prefix, delimiter=True)
    for key in (*(one.key for one in page.keys), *page.directories):
        name = key[len(prefix) :].removesuffix(b"/")
        if name and name not in allowed:
            raise BagError(destination, f"the prefix contains {quoted_path(name)}; choose an empty or new prefix")
    first = [one.key for one in islice(listed(bucket, prefix), EXAMINED) if one.key != prefix]
    for key, status in zip(first, in_order(bucket.head, first), strict=True):
        if not status.is_ours:
            what = f"the prefix contains {quoted_path(key[len(prefix) :])}, which another program has written"
            raise BagError(destination, f"{what}; choose an empty or new prefix")
    return bool(first)


class _Sender:
    """Writes the files of a new bag.

    :param pool: sends the parts of large files
    :param continues: an interrupted run has sent files in the same order; those are not sent again
    :ivar prefix: the beginning of their keys
    :ivar files: number of files that were written
    """

    def __init__(self, bucket: Bucket, prefix: bytes, options: CreateOptions, pool: Threads, continues: bool) -> None:
        self.prefix = prefix
        self.files = 0
        self._bucket = bucket
        self._names = options.algorithms
        self._opening = OpenOptions(options.links == "follow", real=options.links != "follow")
        self._pool = pool
        # The number of the first file that no interrupted run has sent, as far as known; files are sent out of order.
        self._unsent: float = inf if continues else 0
        self._space = Space(SENDING)

    def send(self, payload: Sources, on_event: Listener) -> Generator[tuple[bytes, Outcome]]:
        """Read and send all files of a payload, many at a time; yield path in the payload and outcome of each."""
        size = 0
        next_event = monotonic()

        def files() -> Iterator[tuple[int, bytes, bytes, int]]:
            number = 0
            for path, kind, source in payload.entries():
                if kind == "file":
                    needed = 0
                    with suppress(OSError):  # reading it reports the error
                        needed = min(os.stat(source).st_size, SENDING)
                    self._space.take(needed)
                    yield number, path, source, needed
                    number += 1

        for path, outcome in in_order(self._sent, files()):
            self.files += 1
            size += outcome.size or 0
            if monotonic() >= next_event:
                next_event = monotonic() + PROGRESS_EVERY
                on_event(ProgressEvent(items=self.files, bytes=size))
            yield path, outcome
        on_event(ProgressEvent(items=self.files, bytes=size))

    def _sent(self, file: tuple[int, bytes, bytes, int]) -> tuple[bytes, Outcome]:
        number, path, source, needed = file
        try:
            with self._opening.opener() as opener:
                found = examine(source, self._opening, opener)
                if isinstance(found, Outcome):
                    return path, found
                new = self._new(BELOW_PAYLOAD + path, found.st_size)
                outcome = transfer(source, self._names, self._opening, opener, copy=new)
            return path, self._published(number, new, outcome)
        except OSError as error:
            return path, not_written(self.prefix + BELOW_PAYLOAD + path, error)
        finally:
            self._space.give(needed)

    def _new(self, path: bytes, size: int) -> NewKey:
        key = self.prefix + path
        if len(key) > MAX_KEY:
            reason = f"the key would have {len(key):,} bytes, more than {MAX_KEY:,}; use a shorter prefix"
            raise OSError(errno.ENAMETOOLONG, reason, key)
        return NewKey(self._bucket, key, self._pool, size)

    def _published(self, number: int, new: NewKey, outcome: Outcome) -> Outcome:
        """Make a file visible after reading it, and return its outcome."""
        if outcome.digests is None:
            return outcome
        try:
            if not self._publish(number, new, outcome):
                what = "an interrupted run has left a file with other content; choose another prefix"
                raise OSError(errno.EEXIST, what)
        except OSError as error:
            return not_written(new.path, error)
        return outcome

    def send_tag_file(self, path: bytes, data: bytes | None, source: bytes) -> None:
        """Send a tag file.

        :param data: its content; :data:`None` if it is at ``source``
        :raises OSError: it cannot be written
        """
        size = os.stat(source).st_size if data is None else len(data)
        new = self._new(path, size)
        if data is not None:
            outcome = transfer_content(Content(data), self._names, new)
        else:
            with OpenOptions().opener() as opener:
                outcome = transfer(source, self._names, OpenOptions(), opener, copy=new)
        require_written(outcome)
        if outcome.digests is None:
            raise OSError(errno.EIO, outcome.message, source)
        if not self._publish(self.files, new, outcome):
            self._replace(new, outcome)
        self.files += 1

    def _publish(self, number: int, new: NewKey, outcome: Outcome) -> bool:
        """Make a file visible; return whether its key has the content, perhaps by an earlier run."""
        assert outcome.digests is not None
        if number < self._unsent and new.is_small:
            with suppress(FileNotFoundError):
                return self._is_there(new.path, outcome)
            self._unsent = min(self._unsent, number)
        try:
            new.publish(outcome.digests)
            return True
        except FileExistsError:
            return self._is_there(new.path, outcome)

    def _is_there(self, key: bytes, outcome: Outcome) -> bool:
        """Return whether a key has the content of a file.

        :raises FileNotFoundError: it does not exist
        """
        assert outcome.digests is not None
        there = self._bucket.head(key)
        if not there.is_ours or there.size != outcome.size:
            return False
        known = there.digests
        if known.keys().isdisjoint(outcome.digests):
            with RemoteFile(self._bucket, key, token=there.token) as opened:
                known = transfer_content(Content(opened), self._names).digests or {}
        return all(known[name] == outcome.digests[name] for name in outcome.digests if name in known) and bool(known)

    def _replace(self, new: NewKey, outcome: Outcome) -> None:
        """Replace a tag file that an interrupted run has left: on another day, bag-info.txt differs.

        :raises OSError: it belongs to a bag, or to another program
        """
        with suppress(FileNotFoundError):
            self._bucket.head(self.prefix + bagit_txt.NAME)
            raise OSError(errno.EEXIST, "another program has created the bag; choose another prefix")
        there = self._bucket.head(new.path)
        if not there.is_ours:
            raise OSError(errno.EEXIST, OTHERS)
        assert outcome.digests is not None
        new.publish(outcome.digests, over=there.token)
