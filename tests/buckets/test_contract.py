"""The twelve calls of a bucket: the same in memory and on a server."""

from __future__ import annotations

import errno
import hashlib
import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from threading import Barrier
from time import time

import pytest

from pressmark.buckets.bucket import (
    ANY,
    MAX_KEY,
    MIN_PART,
    Bucket,
    KeyChangedError,
    ListedKey,
    Page,
    Part,
)
from pressmark.buckets.listing import find_keys
from pressmark.buckets.memory import MemoryBucket

CONTENT = b"content of a key"


def read(bucket: Bucket, key: bytes) -> bytes:
    """Return the content of a key."""
    download = bucket.get(key)
    try:
        return download.read()
    finally:
        download.close()


def keys_of(bucket: Bucket, prefix: bytes = b"") -> list[bytes]:
    """Return all keys that begin with a prefix, by pages."""
    return [one.key for page in pages(bucket, prefix) for one in page.keys]


def pages(bucket: Bucket, prefix: bytes = b"", limit: int = 1000, delimiter: bool = False) -> list[Page]:
    """Return all parts of a listing."""
    found = [bucket.list(prefix, limit=limit, delimiter=delimiter)]
    while found[-1].after is not None:
        found.append(bucket.list(prefix, after=found[-1].after, limit=limit, delimiter=delimiter))
    return found


# --- one key ----------------------------------------------------------------------------------------------------------


def test_a_key(bucket: Bucket) -> None:
    """What is written can be read, listed and removed."""
    token = bucket.put(b"a/b.txt", CONTENT)
    status = bucket.head(b"a/b.txt")
    assert (status.size, status.token, status.storage_class, status.is_archived) == (16, token, "STANDARD", False)
    assert abs(status.modified - time()) < 600
    assert read(bucket, b"a/b.txt") == CONTENT
    page = bucket.list(b"a/")
    [listed] = page.keys
    assert listed == ListedKey(b"a/b.txt", 16, token, listed.modified)
    assert (page.directories, page.after) == ([], None)
    assert abs(page.date - time()) < 600
    bucket.delete([b"a/b.txt"])
    assert bucket.list(b"").keys == []


def test_an_empty_key(bucket: Bucket) -> None:
    """A key without content is read as such, also from its end."""
    bucket.put(b"empty", b"")
    assert read(bucket, b"empty") == b""
    download = bucket.get(b"empty", begin=0, end=0)
    assert (download.read(), download.status.size) == (b"", 0)


def test_a_missing_key(bucket: Bucket) -> None:
    """Reading a missing key is an error; removing it is none."""
    for call in (bucket.head, bucket.get, lambda key: bucket.copy(key, b"b")):
        with pytest.raises(FileNotFoundError):
            call(b"missing")
    bucket.delete([b"missing"])
    bucket.delete([b"missing"], token="0" * 32)


@pytest.mark.parametrize(
    ("begin", "end"), [(0, 4), (4, 8), (4, None), (12, 100), (16, None), (16, 20), (20, None), (5, 5), (0, 16)]
)
def test_ranges(bucket: Bucket, begin: int, end: int | None) -> None:
    """A range is read as a slice, with the status of the whole key."""
    token = bucket.put(b"key", CONTENT)
    download = bucket.get(b"key", begin=begin, end=end, token=token)
    assert download.read() == CONTENT[begin:end]
    assert (download.status.size, download.status.token) == (16, token)
    download.close()


def test_reading_in_blocks(bucket: Bucket) -> None:
    """Blocks have at most the size that was asked for; none at the end."""
    content = os.urandom(100_000)
    bucket.put(b"key", content)
    download = bucket.get(b"key")
    blocks = []
    while block := download.read(30_000):
        assert len(block) <= 30_000
        blocks.append(block)
    assert b"".join(blocks) == content
    assert download.read(1) == b""
    download.close()


def test_closing_early(bucket: Bucket) -> None:
    """A download that is closed before its end does not disturb the next request."""
    content = os.urandom(3_000_000)
    bucket.put(b"key", content)
    for _ in range(20):
        download = bucket.get(b"key")
        assert download.read(10) == content[:10]
        download.close()
    assert read(bucket, b"key") == content


# --- conditions -------------------------------------------------------------------------------------------------------


def test_creating_only(bucket: Bucket) -> None:
    """Without a condition of the caller, no key is overwritten."""
    token = bucket.put(b"key", CONTENT)
    with pytest.raises(FileExistsError):
        bucket.put(b"key", b"other")
    with pytest.raises(FileExistsError):
        bucket.put(b"key", CONTENT)
    assert read(bucket, b"key") == CONTENT
    assert bucket.put(b"key", b"other", over=ANY) != token
    assert read(bucket, b"key") == b"other"


def test_refusing_large_content(bucket: Bucket) -> None:
    """A refusal of much content is one of the condition, not of the connection."""
    content = memoryview(os.urandom(MIN_PART))
    bucket.put(b"key", content)
    for _ in range(5):
        with pytest.raises(FileExistsError):
            bucket.put(b"key", content)
    assert read(bucket, b"key") == content


def test_replacing(bucket: Bucket) -> None:
    """A token allows to replace the version that has it, and no other."""
    first = bucket.put(b"key", b"1")
    second = bucket.put(b"key", b"2", over=first)
    assert bucket.head(b"key").token == second
    for key in (b"key", b"missing"):
        with pytest.raises(KeyChangedError):
            bucket.put(key, b"3", over=first)
    assert keys_of(bucket) == [b"key"]
    assert read(bucket, b"key") == b"2"


def test_reading_a_version(bucket: Bucket) -> None:
    """A token allows to read the version that has it, and no other."""
    first = bucket.put(b"key", b"1")
    assert bucket.get(b"key", token=first).read() == b"1"
    bucket.put(b"key", b"2", over=first)
    with pytest.raises(KeyChangedError):
        bucket.get(b"key", token=first)


def test_removing_a_version(bucket: Bucket) -> None:
    """A token allows to remove the version that has it, and no other."""
    first = bucket.put(b"key", b"1")
    second = bucket.put(b"key", b"2", over=first)
    with pytest.raises(KeyChangedError):
        bucket.delete([b"key"], token=first)
    assert read(bucket, b"key") == b"2"
    bucket.delete([b"key"], token=second)
    assert keys_of(bucket) == []


def test_racing(bucket: Bucket) -> None:
    """Of twelve threads that create a key, or replace a version of it, one succeeds."""
    barrier = Barrier(12)

    def attempt(key: bytes, over: str, number: int) -> str:
        barrier.wait()
        try:
            bucket.put(key, b"%d" % number, **({"over": over} if over else {}))
        except (FileExistsError, KeyChangedError) as error:
            return type(error).__name__
        return "won"

    with ThreadPoolExecutor(12) as pool:
        for turn in range(5):
            key = b"race/%d" % turn
            created = Counter(pool.map(lambda number, key=key: attempt(key, "", number), range(12)))
            assert created == {"won": 1, "FileExistsError": 11}
            token = bucket.head(key).token
            replaced = Counter(pool.map(lambda n, key=key, token=token: attempt(key, token, n), range(100, 112)))
            assert replaced == {"won": 1, "KeyChangedError": 11}


# --- digests ----------------------------------------------------------------------------------------------------------


def test_digests(bucket: Bucket) -> None:
    """The server compares the longest digest that it accepts, and keeps it."""
    digests = {name: hashlib.new(name, CONTENT).hexdigest() for name in ("sha512", "sha256", "md5")}
    wrong = {name: hashlib.new(name, b"other").hexdigest() for name in digests}
    bucket.accepted = {"sha256", "sha512"}
    bucket.put(b"both", CONTENT, digests=digests)
    assert bucket.head(b"both").digests == {"sha512": digests["sha512"]}
    with pytest.raises(OSError, match="does not have the digest"):
        bucket.put(b"wrong", CONTENT, digests=wrong)
    bucket.accepted = {"sha256"}
    bucket.put(b"sha256", CONTENT, digests=digests)
    assert bucket.head(b"sha256").digests == {"sha256": digests["sha256"]}
    with pytest.raises(OSError, match="does not have the digest"):
        bucket.put(b"wrong", CONTENT, digests=wrong)
    bucket.accepted = set()
    bucket.put(b"none", CONTENT, digests=wrong)
    assert bucket.head(b"none").digests == {}
    assert keys_of(bucket) == [b"both", b"none", b"sha256"]


# --- keys and listings ------------------------------------------------------------------------------------------------

ODD = [
    *("a b", "a+b", "a%2Fb", "a%b", "a=b", "é", "e\u0301", "日本", "a?b#c", "q'\"q", "back\\slash", "tilde~", "star*"),
    *("a&b<c>", "nl\nx", "cr\rx", "tab\tx", "nbsp\u00a0", "😀", "0=ocfl_object_1.1", "A", "a", "b ", "\u007f", "a//b"),
    *("./dot", "../up", "/lead", "dir/", "\x01", "x\x1fy", "\ufffe"),
]
# Names of files that versitygw changes or refuses; and what its listings cannot hold.
REFUSED = {"a//b", "./dot", "../up", "/lead", "dir/", "\x01", "x\x1fy", "\ufffe"}


def test_odd_keys(bucket: Bucket) -> None:
    """Keys are bytes: no character has a meaning."""
    odd = sorted(text.encode() for text in ODD if isinstance(bucket, MemoryBucket) or text not in REFUSED)
    for key in odd:
        bucket.put(key, key)
    assert keys_of(bucket) == odd
    assert [read(bucket, key) for key in odd] == odd
    assert [bucket.list(key, limit=1).keys[0].key for key in odd] == odd
    for key, following in pairwise(odd):
        assert bucket.list(b"", after=key, limit=1).keys[0].key == following
    for key in odd:
        bucket.copy(key, b"copies/" + key)
        assert bucket.head(b"copies/" + key).size == len(key)
    bucket.delete(odd)
    assert keys_of(bucket) == [b"copies/" + key for key in odd]


@pytest.mark.parametrize(
    ("key", "number"),
    [
        (b"", errno.EINVAL),
        (b"a" * (MAX_KEY + 1), errno.ENAMETOOLONG),
        ("é".encode() * 513, errno.ENAMETOOLONG),
        (b"\xff", errno.EILSEQ),
        (b"\xed\xa0\x80", errno.EILSEQ),
    ],
)
def test_keys_that_are_none(bucket: Bucket, key: bytes, number: int) -> None:
    """An empty, a long and an undecodable key are refused."""
    with pytest.raises(OSError, match="the key") as caught:
        bucket.put(key, b"")
    assert caught.value.errno == number
    assert bucket.list(b"").keys == []


@pytest.mark.parametrize("limit", [1, 2, 3, 1000])
def test_pages(bucket: Bucket, limit: int) -> None:
    """A listing has all keys in the order of their bytes, whatever the size of its parts."""
    keys = sorted(b"p/%s" % name for name in (b"a", b"a/1", b"b-", b"b/1", b"b/2", b"b0", b"c", "é".encode()))
    if not isinstance(bucket, MemoryBucket):
        keys.remove(b"p/a")  # a file, where a directory is
    for key in [*keys, b"o", b"p", b"q/1"]:
        if isinstance(bucket, MemoryBucket) or key != b"p":
            bucket.put(key, b"")
    found = pages(bucket, b"p/", limit)
    assert [one.key for page in found for one in page.keys] == keys
    assert all(0 < len(page.keys) <= limit for page in found)


@pytest.mark.parametrize("limit", [1, 2, 3, 1000])
def test_directories(bucket: Bucket, limit: int) -> None:
    """With a delimiter, a directory is listed once, and the next part begins behind it."""
    for key in (b"p/a", b"p/b/1", b"p/b/2", b"p/b/3/4", b"p/b0", b"p/c/1", b"p/c/2", b"p/d", b"q/1"):
        bucket.put(key, b"")
    found = pages(bucket, b"p/", limit, delimiter=True)
    assert [one.key for page in found for one in page.keys] == [b"p/a", b"p/b0", b"p/d"]
    assert [one for page in found for one in page.directories] == [b"p/b/", b"p/c/"]
    assert all(len(page.keys) + len(page.directories) <= limit for page in found)
    assert bucket.list(b"p/", after=b"p/b/2", delimiter=True).directories == [b"p/c/"]
    assert bucket.list(b"", delimiter=True).directories == [b"p/", b"q/"]


def test_a_prefix_inside_a_name(bucket: Bucket) -> None:
    """A prefix need not be a directory."""
    for key in (b"books/1", b"books-2/1", b"boots/1"):
        bucket.put(key, b"")
    assert keys_of(bucket, b"books") == [b"books-2/1", b"books/1"]
    assert bucket.list(b"books", delimiter=True).directories == [b"books-2/", b"books/"]


def test_more_keys_than_a_request_has(bucket: Bucket) -> None:
    """Keys are listed and removed by thousands."""
    keys = [b"many/%05d" % number for number in range(2_300 if isinstance(bucket, MemoryBucket) else 1_050)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda key: bucket.put(key, b""), keys))
    before = bucket.requests
    assert keys_of(bucket, b"many/") == keys
    assert bucket.requests - before == -(-len(keys) // 1000)
    bucket.delete(keys)
    assert keys_of(bucket) == []


# --- uploads in parts -------------------------------------------------------------------------------------------------


def upload(bucket: Bucket, key: bytes, content: bytes) -> tuple[str, list[Part]]:
    """Send content in parts of the smallest size."""
    name = bucket.start(key)
    view = memoryview(content)
    return name, [
        bucket.part(key, name, number, view[at : at + MIN_PART])
        for number, at in enumerate(range(0, len(content), MIN_PART), 1)
    ]


def test_parts(bucket: Bucket) -> None:
    """An upload becomes visible when it is completed."""
    content = os.urandom(2 * MIN_PART + 17)
    name, parts = upload(bucket, b"a/large", content)
    assert [(part.number, part.size) for part in parts] == [(1, MIN_PART), (2, MIN_PART), (3, 17)]
    assert [part.sha256 for part in parts] == [
        hashlib.sha256(content[at : at + MIN_PART]).hexdigest() for at in range(0, len(content), MIN_PART)
    ]
    assert bucket.parts(b"a/large", name) == parts
    assert keys_of(bucket) == []
    token = bucket.complete(b"a/large", name, parts)
    status = bucket.head(b"a/large")
    # A digest of digests is not one of the content.
    assert (status.size, status.token, status.digests) == (len(content), token, {})
    assert read(bucket, b"a/large") == content
    assert list(bucket.uploads(b"")) == []


def test_replacing_a_part(bucket: Bucket) -> None:
    """A part that is sent again replaces the first one; the parts may arrive in any order."""
    name = bucket.start(b"key")
    last = bucket.part(b"key", name, 2, b"end")
    bucket.part(b"key", name, 1, bytes(MIN_PART))
    first = bucket.part(b"key", name, 1, b"x" * MIN_PART)
    assert bucket.parts(b"key", name) == [first, last]
    bucket.complete(b"key", name, [first, last])
    assert read(bucket, b"key") == b"x" * MIN_PART + b"end"


def test_conditions_of_uploads(bucket: Bucket) -> None:
    """An upload replaces only what its caller knows."""
    first = bucket.put(b"key", b"1")
    name, parts = upload(bucket, b"key", b"2")
    with pytest.raises(FileExistsError):
        bucket.complete(b"key", name, parts)
    with pytest.raises(KeyChangedError):
        bucket.complete(b"key", name, parts, over="0" * 32)
    assert read(bucket, b"key") == b"1"
    token = bucket.complete(b"key", name, parts, over=first)
    assert bucket.head(b"key").token == token
    name, parts = upload(bucket, b"key", b"3")
    bucket.complete(b"key", name, parts, over=ANY)
    assert read(bucket, b"key") == b"3"


def test_uploads(bucket: Bucket) -> None:
    """Uploads are listed by their keys, and discarded."""
    names = {key: bucket.start(key) for key in (b"a/1", b"a/2", b"b/1", "é ü+%".encode())}
    found = list(bucket.uploads(b""))
    assert {one.key: one.id for one in found} == names
    assert all(abs(one.started - time()) < 600 for one in found)
    assert [one.key for one in bucket.uploads(b"a/")] == [b"a/1", b"a/2"]
    for key, name in names.items():
        bucket.abort(key, name)
        bucket.abort(key, name)
    assert list(bucket.uploads(b"")) == []
    for call in (bucket.parts, lambda key, name: bucket.part(key, name, 1, b"")):
        with pytest.raises(FileNotFoundError):
            call(b"a/1", names[b"a/1"])


def test_an_upload_that_is_none(bucket: Bucket) -> None:
    """Completing an unknown upload is an error, whether the key exists or not; versitygw reports success for it."""
    _name, parts = upload(bucket, b"other", b"1")
    unknown = "00000000-0000-0000-0000-000000000000"
    with pytest.raises(FileNotFoundError):
        bucket.complete(b"key", unknown, parts)
    bucket.put(b"key", b"1")
    with pytest.raises((FileNotFoundError, FileExistsError)):
        bucket.complete(b"key", unknown, parts)
    with pytest.raises((FileNotFoundError, KeyChangedError)):
        bucket.complete(b"key", unknown, parts, over=bucket.head(b"key").token)
    assert read(bucket, b"key") == b"1"


# --- copies -----------------------------------------------------------------------------------------------------------


def test_copy(bucket: Bucket) -> None:
    """A key is copied on the server."""
    bucket.put(b"a", CONTENT)
    sent = bucket.sent
    token = bucket.copy(b"a", b"b/c")
    assert bucket.head(b"b/c").token == token
    assert read(bucket, b"b/c") == CONTENT
    assert bucket.sent == sent


def test_conditions_of_copies() -> None:
    """A copy replaces only what its caller knows. versitygw ignores the conditions: the probe is for that."""
    bucket = MemoryBucket()
    bucket.put(b"a", b"1")
    first = bucket.put(b"b", b"2")
    with pytest.raises(FileExistsError):
        bucket.copy(b"a", b"b")
    with pytest.raises(KeyChangedError):
        bucket.copy(b"a", b"b", over="0")
    bucket.copy(b"a", b"b", over=first)
    assert bucket.keys == {b"a": b"1", b"b": b"1"}


# --- counters ---------------------------------------------------------------------------------------------------------


def test_counters(bucket: Bucket) -> None:
    """Requests and bytes are counted exactly, also in several threads."""

    def work(number: int) -> None:
        key = b"%d" % number
        bucket.put(key, bytes(100))
        read(bucket, key)

    before = bucket.requests
    with ThreadPoolExecutor(12) as pool:
        list(pool.map(work, range(120)))
    assert (bucket.requests - before, bucket.sent, bucket.received) == (240, 12_000, 12_000)


def test_finding_keys(bucket: Bucket) -> None:
    """Keys that exist are found, by few requests, whatever sorts between them."""
    there = [
        b"a/b",
        b"a/b/c",
        b"a/b0",
        b"a/bc",
        b"a/d/1",
        "a/d/\U0001f4d5".encode(),
        b"a/d/zz",
        b"a.x",
        b"b",
        b"a/e!",
    ]
    others = [b"a/m/%03d" % number for number in range(30)]
    if not isinstance(bucket, MemoryBucket):  # where a key is a file, nothing is below it
        there.remove(b"a/b/c")
    for key in (*there, *others):
        bucket.put(key, key)
    missing = [b"a", b"a/", b"a/a", b"a/b/", b"a/b1", b"a/d", "a/d/\ue000".encode(), b"c", b"a/zz"]
    for wanted in (there, [*there, *missing], missing, [], [b"b"], *([key] for key in (*there, *missing))):
        before = bucket.requests
        found = find_keys(bucket, wanted)
        assert {key: one.size for key, one in found.items()} == {key: len(key) for key in there if key in wanted}
        assert list(found) == sorted(found)
        assert bucket.requests - before == bool(wanted)


def test_finding_keys_far_apart() -> None:
    """Keys between those that are wanted are not all listed."""
    bucket = MemoryBucket()
    for number in range(3_000):
        bucket.put(b"x/%04d" % number, b"")
    bucket.put(b"w", b"")
    assert list(find_keys(bucket, [b"w", b"x/2999", b"x/1500/no", b"x/2998"])) == [b"w", b"x/2998", b"x/2999"]
    assert bucket.requests == 3_001 + 3
    assert find_keys(bucket, [b"x/2999"])[b"x/2999"].key == b"x/2999"
