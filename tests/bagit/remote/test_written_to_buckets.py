"""Bags and archives that are written to a bucket: complete or not there, whenever the run ends."""

from __future__ import annotations

import errno
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pressmark import bagit
from pressmark.bagit.remote import create_in_bucket
from pressmark.buckets import upload
from pressmark.buckets.bucket import ANY
from pressmark.buckets.memory import MemoryBucket
from pressmark.buckets.requests import REQUESTS
from pressmark.errors import BagError, BagInvalidError, PressmarkError
from support.memory_addresses import put_tree, use_memory

from ..archive.packing import HAS_ZSTD

BAG = "s3://memory/shelf/bag"
ENDINGS = ("tar", "tar.gz", *(("tar.zst",) if HAS_ZSTD else ()), "zip")
# Bytes of files; the large one is sent in parts.
SMALL, LARGE = 1 << 14, (5 << 16) + 1000


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> MemoryBucket:
    """An empty bucket that the addresses of this module lead to; files over 64 KiB are sent in parts."""
    monkeypatch.setattr(upload, "PART", 1 << 16)
    monkeypatch.setattr(upload, "MIN_PART", 1 << 16)
    monkeypatch.setattr("pressmark.bagit.remote.key_output.FIRST", 1 << 10)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    return use_memory(monkeypatch)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A directory with small files, a large one, and an empty one."""
    folder = tmp_path / "files"
    (folder / "b").mkdir(parents=True)
    chance = random.Random(7)
    (folder / "a.txt").write_bytes(b"alpha\n")
    (folder / "b" / "noise").write_bytes(chance.randbytes(SMALL))
    (folder / "b" / "large").write_bytes(chance.randbytes(LARGE))
    (folder / "empty").write_bytes(b"")
    (folder / "ünïcode %41").write_bytes(b"name")
    return folder


@pytest.fixture
def bag(files: Path, tmp_path: Path) -> Path:
    """A bag of the files."""
    return Path(bagit.create(files, tmp_path / "bag").path)


def there(bucket: MemoryBucket) -> dict[bytes, bytes]:
    """Return the keys without those of an interrupted probe."""
    return {key: data for key, data in bucket.keys.items() if b"pressmark-staging" not in key}


def content(folder: Path, prefix: str = "shelf/bag") -> dict[bytes, bytes]:
    """Return the files of a directory as the keys that a copy of it has."""
    bucket = MemoryBucket()
    put_tree(bucket, folder, prefix)
    return bucket.keys


# --- bags as trees of keys --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [{}, {"algorithms": ["md5", "sha256"]}, {"info": {"Contact-Name": "Ann"}}, {"exclude": "noise"}],
    ids=["default", "algorithms", "info", "exclude"],
)
def test_create(bucket: MemoryBucket, files: Path, tmp_path: Path, options: dict[str, Any]) -> None:
    """The keys are the files of the bag in a directory; bagit.txt is written last, and nothing else stays."""
    notes = tmp_path / "notes.txt"
    notes.write_text("notes")
    options["tag_files"] = {"tags/notes.txt": notes}
    local = bagit.create(files, tmp_path / "local", **options)
    order: list[bytes] = []
    bucket.on_request = lambda call, key: order.append(key) if call in ("put done", "complete done") else None
    bag = bagit.create(files, BAG, **options)
    bucket.on_request = None
    assert bucket.keys == content(Path(local.path))
    assert order[-1] == b"shelf/bag/bagit.txt"
    written = [key.startswith(b"shelf/bag/data/") for key in order if key.startswith(b"shelf/bag/")]
    assert written == sorted(written, reverse=True)
    assert not list(bucket.uploads(b""))
    assert bag.info.elements == local.info.elements
    assert bag.validate().ok
    assert repr(bag).startswith(f"<Bag '{BAG}': BagIt 1.0")


def test_files_with_their_names(bucket: MemoryBucket, files: Path) -> None:
    """Several sources keep their names; a bag in a bag needs permission."""
    bagit.create([files / "b", files / "a.txt"], BAG)
    assert {b"shelf/bag/data/a.txt", b"shelf/bag/data/b/noise"} <= bucket.keys.keys()
    (files / "link").symlink_to("a.txt")
    with pytest.raises(BagError, match="symbolic link"):
        bagit.create(files, BAG + "2")
    bagit.create(files, BAG + "2", links="follow")
    assert bucket.keys[b"shelf/bag2/data/link"] == b"alpha\n"


def test_small_files_keep_a_digest(bucket: MemoryBucket, files: Path) -> None:
    """The digest of the manifest is sent with each small file, and the server keeps it."""
    bagit.create(files, BAG)
    status = bucket.head(b"shelf/bag/data/a.txt")
    with bagit.open(BAG).payload as listing:
        assert status.digests == {"sha512": listing.find(b"data/a.txt")["sha512"]}
    assert status.is_ours


REFUSED: dict[str, tuple[dict[bytes, bytes], str]] = {
    "a bag": ({b"shelf/bag/bagit.txt": b""}, "destination already exists"),
    "another file": ({b"shelf/bag/data/a.txt": b"alpha\n"}, "contains 'data/a.txt', which another program has written"),
    "a folder of bags": ({b"shelf/bag/one/bagit.txt": b""}, "the prefix contains 'one'; choose an empty or new prefix"),
    "a file beside": ({b"shelf/bag/read.me": b""}, "the prefix contains 'read.me'; choose"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_prefixes(bucket: MemoryBucket, files: Path, name: str) -> None:
    """A prefix that is in use is refused before anything is written."""
    keys, reason = REFUSED[name]
    for key, data in keys.items():
        bucket.put_as_other(key, data)
    with pytest.raises(BagError, match=reason):
        bagit.create(files, BAG)
    assert bucket.keys == keys


def test_the_mark_of_the_directory_is_no_content(bucket: MemoryBucket, files: Path) -> None:
    """A console has created the directory: the bag is created in it."""
    bucket.put_as_other(b"shelf/bag/", b"")
    assert bagit.create(files, BAG).validate().ok


def test_keys_of_an_earlier_run(bucket: MemoryBucket, files: Path, tmp_path: Path) -> None:
    """Keys with the same content are taken; other content, and files that the bag does not have, are refused."""
    whole = content(Path(bagit.create(files, tmp_path / "local").path))
    for key in (b"shelf/bag/data/a.txt", b"shelf/bag/data/b/large", b"shelf/bag/manifest-sha512.txt"):
        bucket.put(key, whole[key])
    bucket.put(b"shelf/bag/bag-info.txt", b"Bagging-Date: yesterday\n")
    bagit.create(files, BAG)
    assert bucket.keys == whole
    bucket.delete([b"shelf/bag/bagit.txt"])
    bucket.put(b"shelf/bag/data/a.txt", b"other\n", over=ANY)
    with pytest.raises(BagError, match="an interrupted run has left a file with other content"):
        bagit.create(files, BAG)
    bucket.put(b"shelf/bag/data/a.txt", b"alpha\n", over=ANY)
    bucket.put(b"shelf/bag/data/removed", b"")
    with pytest.raises(BagError, match="not part of the new bag"):
        bagit.create(files, BAG)
    assert b"shelf/bag/bagit.txt" not in bucket.keys


def test_a_run_that_is_continued(bucket: MemoryBucket, tmp_path: Path) -> None:
    """Files that an interrupted run has sent are not sent again, except those around its end; few requests find it."""
    files = tmp_path / "many"
    files.mkdir()
    for number in range(200):
        (files / f"{number:03}").write_bytes(b"%d" % number)

    def interrupt(call: str, key: bytes) -> None:
        if call == "put" and key.endswith(b"/150"):
            raise KeyboardInterrupt

    bucket.on_request = interrupt
    with pytest.raises(KeyboardInterrupt):
        bagit.create(files, BAG)
    left = {key for key in bucket.keys if b"/data/" in key}
    assert len(left) >= 150
    calls: list[tuple[str, bytes]] = []
    bucket.on_request = lambda call, key: calls.append((call, key))
    bagit.create(files, BAG)
    assert len(left & {key for call, key in calls if call == "put"}) < 2 * REQUESTS
    assert len([key for call, key in calls if call == "head" and key not in left]) < 2 * REQUESTS
    assert bagit.validate(BAG).ok


def test_a_slow_file_of_a_run_that_is_continued(
    bucket: MemoryBucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that was sent is not sent again, even if a later one is found missing before it is read."""
    folder = tmp_path / "three"
    folder.mkdir()
    for name in ("0", "1", "2"):
        (folder / name).write_bytes(name.encode())
    bagit.create(folder, BAG)
    bucket.delete([key for key in bucket.keys if key[-7:] not in (b"/data/0", b"/data/1")])
    is_missed = threading.Event()
    puts: list[bytes] = []

    def note(call: str, key: bytes) -> None:
        if call == "put":
            puts.append(key)
            is_missed.set()

    def examine(source: bytes, *arguments: Any) -> Any:
        if source.endswith(b"/0"):
            assert is_missed.wait(60)
        return examined(source, *arguments)

    examined = create_in_bucket.examine
    monkeypatch.setattr(create_in_bucket, "examine", examine)
    bucket.on_request = note
    bagit.create(folder, BAG)
    assert [key for key in puts if b"/data/" in key] == [b"shelf/bag/data/2"]
    assert bagit.validate(BAG).ok


def test_a_source_that_changes(bucket: MemoryBucket, files: Path) -> None:
    """Files that are changed, added or removed meanwhile prevent the bag."""

    def change(call: str, key: bytes) -> None:
        if call == "put" and key.endswith(b"empty"):
            (files / "more").write_bytes(b"more")

    bucket.on_request = change
    with pytest.raises(BagError, match="changed, added or removed while the bag was being created"):
        bagit.create(files, BAG)
    assert b"shelf/bag/bagit.txt" not in bucket.keys


def test_long_keys(bucket: MemoryBucket, files: Path) -> None:
    """A key that is too long is named in one line."""
    below = files.joinpath(*["n" * 205] * 5)
    below.mkdir(parents=True)
    (below / "file").write_bytes(b"")
    with pytest.raises(BagError, match=r"the key would have 1,0\d\d bytes, more than 1,024; use a shorter prefix"):
        bagit.create(files, BAG)
    assert b"shelf/bag/bagit.txt" not in bucket.keys


def test_not_supported(bucket: MemoryBucket, files: Path) -> None:
    """What needs a directory says so in one line, and writes nothing."""
    for call in (
        lambda: bagit.create_holey(files, BAG, "https://example.org/"),
        lambda: bagit.make_bag(BAG),
        lambda: bagit.update(BAG),
        lambda: bagit.complete(BAG),
        lambda: bagit.pack(BAG, "x.tar"),
    ):
        with pytest.raises(BagError, match="not supported in object storage; use a local"):
            call()
    with pytest.raises(ValueError, match="copy_mode='hardlink': not supported in object storage"):
        bagit.create(files, BAG, copy_mode="hardlink")
    with pytest.raises(BagError, match="names only a bucket"):
        bagit.create(files, "s3://memory")
    assert bucket.keys == {}


# --- archives ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ENDINGS)
def test_pack(bucket: MemoryBucket, bag: Path, tmp_path: Path, ending: str) -> None:
    """A tar file has the bytes of a local one; a zip file has the same members, with their sizes behind them."""
    assert bagit.pack(bag, f"{BAG}.{ending}") == f"{BAG}.{ending}"
    assert list(bucket.keys) == [b"shelf/bag." + ending.encode()]
    bagit.pack(bag, tmp_path / f"bag.{ending}")
    if ending != "zip":
        assert bucket.keys[b"shelf/bag." + ending.encode()] == (tmp_path / f"bag.{ending}").read_bytes()
    assert bagit.validate(f"{BAG}.{ending}").ok
    (tmp_path / f"copy.{ending}").write_bytes(bucket.keys[b"shelf/bag." + ending.encode()])
    assert bagit.validate(tmp_path / f"copy.{ending}").ok
    unpacked = bagit.unpack(f"{BAG}.{ending}", tmp_path / "unpacked")
    assert content(Path(unpacked.path)) == content(bag)
    with pytest.raises(BagError, match="destination already exists"):
        bagit.pack(bag, f"{BAG}.{ending}")


@pytest.mark.parametrize("ending", ENDINGS)
def test_create_archive(bucket: MemoryBucket, files: Path, ending: str) -> None:
    """An archive is created from files in one read, without a copy on this computer."""
    bag = bagit.create_archive(files, f"{BAG}.{ending}")
    assert bag.validate().ok
    assert list(bucket.keys) == [b"shelf/bag." + ending.encode()]
    assert not list(bucket.uploads(b""))


def test_an_invalid_bag_is_not_packed(bucket: MemoryBucket, bag: Path) -> None:
    """Nothing of it stays, not even parts."""
    (bag / "data" / "b" / "large").write_bytes(b"x" * LARGE)
    with pytest.raises(BagInvalidError):
        bagit.pack(bag, f"{BAG}.tar")
    assert bucket.keys == {}
    assert not list(bucket.uploads(b""))


def test_another_program_is_faster(bucket: MemoryBucket, bag: Path) -> None:
    """What it has written stays."""

    def write(call: str, key: bytes) -> None:
        if call == "start" and key == b"shelf/bag.tar":
            bucket.put_as_other(b"shelf/bag.tar", b"theirs")

    bucket.on_request = write
    with pytest.raises(BagError, match="another program has created the destination"):
        bagit.pack(bag, f"{BAG}.tar")
    bucket.on_request = None
    assert bucket.keys == {b"shelf/bag.tar": b"theirs"}
    assert not list(bucket.uploads(b""))


def test_an_interrupted_upload_is_continued(bucket: MemoryBucket, bag: Path) -> None:
    """The next run sends only the parts that are missing."""

    def interrupt(call: str, _key: bytes) -> None:
        if call == "part done" and sum(len(bucket.parts(one.key, one.id)) for one in bucket.uploads(b"shelf/")) == 3:
            bucket.on_request = None
            raise KeyboardInterrupt

    bucket.on_request = interrupt
    with pytest.raises(KeyboardInterrupt):
        bagit.pack(bag, f"{BAG}.tar")
    bucket.on_request = None
    assert not there(bucket)
    bucket.sent = 0
    bagit.pack(bag, f"{BAG}.tar")
    assert bagit.validate(f"{BAG}.tar").ok
    assert bucket.sent < LARGE - 2 * upload.PART


# --- kills ------------------------------------------------------------------------------------------------------------


class Killed(BaseException):
    """The process ends here."""


class Faults:
    """Lets a bucket fail at one request, before it takes effect or after it; a killed run makes no other request."""

    def __init__(self, number: int, *, after: bool, error: type[BaseException]) -> None:
        self.left = number
        self._after = after
        self._error = error
        self._lock = threading.Lock()

    def __call__(self, call: str, key: bytes) -> None:
        with self._lock:
            self.left -= call.endswith(" done") == self._after
            is_dead, is_once = self.left < 0, self.left == -1
        if is_dead and (self._error is Killed or is_once):
            raise self._error(errno.EIO, "the connection broke", key)


def is_there(bucket: MemoryBucket, address: str) -> bool:
    """Return whether a bag is at an address, which is valid then."""
    key = address.removeprefix("s3://memory/").encode()
    keys = bucket.keys
    if key not in keys and key + b"/bagit.txt" not in keys:
        with pytest.raises(BagError):
            bagit.open(address)
        return False
    assert bagit.validate(address).ok
    return True


WRITES: dict[str, tuple[str, Callable[[Path, Path], object]]] = {
    "create": (BAG, lambda files, _bag: bagit.create(files, BAG)),
    **{
        f"pack {one}": (f"{BAG}.{one}", lambda _files, bag, one=one: bagit.pack(bag, f"{BAG}.{one}")) for one in ENDINGS
    },
    "create tar": (f"{BAG}.tar", lambda files, _bag: bagit.create_archive(files, f"{BAG}.tar")),
}


@pytest.mark.parametrize("after", [False, True], ids=["lost request", "lost answer"])
@pytest.mark.parametrize("error", [Killed, OSError], ids=["killed", "failed"])
@pytest.mark.parametrize("name", WRITES)
def test_killed_at_every_request(
    bucket: MemoryBucket, files: Path, bag: Path, name: str, error: type[BaseException], after: bool
) -> None:
    """Whichever request is the last one of a run, there is no bag or a whole one; the next run creates it."""
    address, write = WRITES[name]
    write(files, bag)
    requests = bucket.requests
    complete = 0
    for number in range(requests + 1):
        bucket._stored.clear()
        bucket._uploads.clear()
        bucket.on_request = Faults(number, after=after, error=error)
        try:
            write(files, bag)
        except (Killed, PressmarkError):
            pass
        else:
            complete += 1
        bucket.on_request = None
        if is_there(bucket, address):
            with pytest.raises(BagError, match="already exists"):
                write(files, bag)
        else:
            write(files, bag)
            assert is_there(bucket, address)
        # An interrupted probe leaves keys, which nobody takes for a file of the bag.
        assert all(key.startswith(address.removeprefix("s3://memory/").encode()) for key in there(bucket))
    assert complete > 0
