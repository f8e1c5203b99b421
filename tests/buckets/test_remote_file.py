"""Large keys are read in parts, several at a time, as one stream."""

from __future__ import annotations

import gc
import io
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from pressmark import stores
from pressmark.buckets import address, remote_file
from pressmark.buckets.bucket import Bucket, Download, KeyChangedError
from pressmark.buckets.memory import MemoryBucket
from pressmark.buckets.remote_content import RemoteContent
from pressmark.buckets.remote_file import RemoteFile
from pressmark.fixity import pool
from pressmark.threads import Cancelled, Threads

DATA = bytes(range(251)) * 40  # 10,040 bytes: eleven parts
PARTS = [(at, min(at + 1000, len(DATA))) for at in range(0, len(DATA), 1000)]


class RangesBucket(MemoryBucket):
    """A bucket in memory whose downloads can fail.

    :ivar ranges: begin and end of each download, and the version that was asked for
    :ivar on_read: called with begin, end and size of each read
    """

    def __init__(self) -> None:
        super().__init__()
        self.ranges: list[tuple[int, int | None, str | None]] = []
        self.on_read: Callable[[int, int | None, int], object] = lambda _begin, _end, _size: None

    def get(self, key: bytes, *, begin: int = 0, end: int | None = None, token: str | None = None) -> Download:
        download = super().get(key, begin=begin, end=end, token=token)
        self.ranges.append((begin, end, token))
        read = download.read

        def reading(size: int = -1) -> bytes:
            self.on_read(begin, end, size)
            return read(size)

        download.read = reading  # type: ignore[method-assign]
        return download

    @property
    def parts(self) -> list[tuple[int, int | None]]:
        """The ranges, in the order of their begin: several are read at a time."""
        return sorted((begin, end) for begin, end, _token in self.ranges)


@pytest.fixture
def ranges(monkeypatch: pytest.MonkeyPatch) -> RangesBucket:
    """A bucket with a key of eleven parts."""
    monkeypatch.setattr(remote_file, "PART", 1000)
    monkeypatch.setattr(remote_file, "RANGE", 3000)
    monkeypatch.setattr(remote_file, "BLOCK", 300)
    monkeypatch.setattr(remote_file, "SKIP", 10)
    bucket = RangesBucket()
    bucket.put(b"key", DATA)
    return bucket


@pytest.fixture(autouse=True)
def no_leftovers() -> Iterator[None]:
    """No test leaves a thread, or a file that counts as being read ahead."""
    yield
    gc.collect()
    assert remote_file._AHEAD._value == 2
    end = time.monotonic() + 10
    while any(thread.name == "pressmark-request" for thread in threading.enumerate()):
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize("size", [1, 299, 300, 301, 1000, 100_000, -1])
def test_a_large_file_is_read_in_parts(ranges: RangesBucket, size: int) -> None:
    """Each byte is requested once, and all parts of the same version."""
    with RemoteFile(ranges, b"key") as opened:
        assert b"".join(iter(lambda: opened.read(size), b"")) == DATA
        assert opened.tell() == len(DATA)
        assert opened.read(size) == b""
    assert ranges.parts == [(0, 1000), *PARTS[1:]]
    token = ranges.head(b"key").token
    assert [asked for _begin, _end, asked in ranges.ranges] == [None] + [token] * 10
    assert ranges.received == len(DATA)


def test_several_at_a_time(ranges: RangesBucket) -> None:
    """While the first bytes of a part are awaited, the parts behind it are read; not more than a few."""
    barrier = threading.Barrier(remote_file.AT_A_TIME)
    ranges.on_read = lambda begin, _end, _size: begin and meet(begin)
    met: set[int] = set()

    def meet(begin: int) -> None:
        if begin not in met:
            met.add(begin)
            barrier.wait(10)

    with RemoteFile(ranges, b"key") as opened:
        assert opened.read(1000) == DATA[:1000]
        assert ranges.parts == [(0, 1000)]  # nothing is read ahead before
        assert opened.read(10) == DATA[1000:1010]
        assert max(begin for begin, _end in ranges.parts) <= 1000 * remote_file.AT_A_TIME


@pytest.mark.parametrize("size", [0, 1, 999, 1000])
def test_a_small_file_is_one_request(ranges: RangesBucket, size: int) -> None:
    ranges.put(b"small", DATA[:size])
    with RemoteFile(ranges, b"small") as opened:
        assert opened.read() == DATA[:size]
    assert ranges.requests == 3


def test_random_access_reads_nothing_ahead(ranges: RangesBucket) -> None:
    """A request for each place, as long as each is left before the end of its range."""
    with RemoteFile(ranges, b"key") as opened:
        for place in (9000, 10, 5000, 0, 5900):
            opened.seek(place)
            assert opened.read(200) == DATA[place : place + 200]
    assert [begin for begin, _end, _token in ranges.ranges] == [0, 9000, 10, 5000, 0, 5900]


def test_a_limited_read(ranges: RangesBucket) -> None:
    """Nothing is requested behind the end that the caller needs."""
    with RemoteFile(ranges, b"key", 2500, begin=100) as opened:
        assert opened.readall() == DATA[100:2500]
    assert ranges.parts == [(100, 1100), (1100, 2100), (2100, 2500)]


def test_seeking_while_reading_ahead(ranges: RangesBucket) -> None:
    """The parts that were read ahead are dropped; a small gap is read over."""
    with RemoteFile(ranges, b"key") as opened:
        opened.read(1000)
        assert opened.read(5) == DATA[1000:1005]
        opened.seek(1010)
        assert opened.read(5) == DATA[1010:1015]
        opened.seek(20)
        assert opened.read(5) == DATA[20:25]
        opened.seek(len(DATA) - 3)
        assert opened.read() == DATA[-3:]
        opened.seek(5, io.SEEK_END)
        assert opened.read(5) == b""


def test_a_buffered_reader(ranges: RangesBucket) -> None:
    """Lines, and a buffer of any size."""
    with io.BufferedReader(RemoteFile(ranges, b"key"), 700) as opened:
        assert list(opened) == list(io.BytesIO(DATA))


# --- failures ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", [0, 1, 4, 9])
def test_a_part_whose_connection_breaks(ranges: RangesBucket, part: int) -> None:
    """Only the rest of this part is requested again."""
    reads: list[int] = []

    def fail(begin: int, _end: int | None, _size: int) -> None:
        if begin == part * 1000:
            reads.append(begin)
            if len(reads) == 3:
                raise OSError(5, "the connection was lost")

    ranges.on_read = fail
    with RemoteFile(ranges, b"key") as opened:
        assert b"".join(iter(lambda: opened.read(300), b"")) == DATA
    assert ranges.parts == sorted([*PARTS, (part * 1000 + 600, part * 1000 + 1000)])
    assert ranges.received == len(DATA)


def test_a_part_that_cannot_be_read(ranges: RangesBucket) -> None:
    """The bytes before it are read; then the error, after a few attempts."""

    def fail(begin: int, _end: int | None, _size: int) -> None:
        if begin == 3000:
            raise OSError(5, "the connection was lost")

    ranges.on_read = fail
    found: list[bytes] = []
    with RemoteFile(ranges, b"key") as opened, pytest.raises(OSError, match="the connection was lost"):
        found.extend(iter(lambda: opened.read(100), b""))
    assert b"".join(found) == DATA[:3000]
    assert [begin for begin, _end, _token in ranges.ranges].count(3000) == remote_file.TRIES


@pytest.mark.parametrize("after", [1000, 1001])
def test_a_file_that_changes_between_parts(ranges: RangesBucket, after: int) -> None:
    """Never are parts of two versions joined."""
    with RemoteFile(ranges, b"key") as opened:
        opened.read(1000)
        opened.read(after - 1000)
        ranges.put_as_other(b"key", DATA[::-1])
        with pytest.raises(KeyChangedError):
            opened.readall()


def test_a_read_that_is_not_needed_ends(ranges: RangesBucket) -> None:
    """Neither the reader nor the parts wait for a connection that is silent."""
    waiting, end = threading.Event(), threading.Event()

    def wait(begin: int, _end: int | None, _size: int) -> None:
        if begin:
            waiting.set()
            end.wait(10)

    ranges.on_read = wait

    def read() -> bytes:
        with RemoteFile(ranges, b"key") as opened:
            return opened.readall()

    begun = time.monotonic()
    with Threads(1, "test", patience=5) as threads:
        call = threads.submit(read)
        assert waiting.wait(10)
    assert isinstance(call.exception(1), Cancelled)
    assert time.monotonic() - begun < 5
    end.set()


# --- many files -------------------------------------------------------------------------------------------------------


def test_few_files_are_read_ahead(ranges: RangesBucket) -> None:
    """With more at a time, memory would grow; each of the others is one stream of longer ranges."""
    with ExitStack() as stack:
        files = [stack.enter_context(RemoteFile(ranges, b"key")) for _ in range(3)]
        for opened in files:
            assert opened.read(1000) == DATA[:1000]
            assert opened.read(1) == DATA[1000:1001]
        del ranges.ranges[:]
        assert files[2].readall() == DATA[1001:]
        assert [(begin, end) for begin, end, _ in ranges.ranges if end and end - begin > 1000] == [
            (4000, 7000),
            (7000, 10_000),
        ]
        assert files[0].readall() == files[1].readall() == DATA[1001:]


def test_content_is_not_read_far_ahead(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Files that are copied are read a few ahead, however many there are."""
    bucket = MemoryBucket()
    monkeypatch.setattr(address, "open_bucket", lambda _url: (bucket, b"root/"))
    root = stores.OcflRoot.create("s3://memory/root", "0004", user={"name": "A", "address": "mailto:a@example.org"})
    files = {f"{number:03}": bytes([number]) * 20_000 for number in range(200)}
    root.put("id", files)
    object_ = root.get("id")
    before = bucket.received
    ahead: list[int] = []
    copy: Any = pool.transfer_content

    def copying(*arguments: Any) -> Any:
        ahead.append((bucket.received - before) // 20_000 - len(ahead))
        return copy(*arguments)

    monkeypatch.setattr(pool, "transfer_content", copying)
    object_.copy_to(tmp_path / "copy")
    assert len(ahead) == 200
    assert max(ahead) <= 40
    assert {one.name: one.read_bytes() for one in (tmp_path / "copy").iterdir()} == files


def test_content_of_a_key_that_changes(ranges: RangesBucket) -> None:
    """Content that was listed is not replaced by other content."""
    token = ranges.head(b"key").token
    content = RemoteContent(ranges, b"key", token=token)
    ranges.put_as_other(b"key", b"other")
    with pytest.raises(KeyChangedError):
        content.fetch()
    with pytest.raises(KeyChangedError):
        content.read()


# --- on a server ------------------------------------------------------------------------------------------------------


def test_large_files_of_both_buckets(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """The digests are those of the content, whichever bucket; a file that changes is an error."""
    monkeypatch.setattr(remote_file, "PART", 1000)
    token = bucket.put(b"key", DATA)
    with RemoteFile(bucket, b"key") as opened:
        assert opened.readall() == DATA
        opened.seek(0)
        assert opened.read(1000) + opened.readall() == DATA
    with RemoteFile(bucket, b"key") as opened:
        opened.read(1000)
        bucket.put(b"key", DATA[::-1], over=token)
        with pytest.raises(KeyChangedError):
            opened.readall()
