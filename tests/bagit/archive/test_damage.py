"""Damaged archives: never an exception, and never valid where anything that a checksum covers was touched.

An archive is cut at many places, and bits are flipped at many others. Python's own modules unpack it; elsewhere, such
as in padding and times, the verdict is that of the unpacked bag.
"""

from __future__ import annotations

import random
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from pressmark.bagit import validate
from pressmark.bagit.archive import validate_archive
from support.effort import LONG
from support.memory_addresses import put_tree, use_memory

from ..bags import Sketch
from .packing import FORMATS, pack, unpacked

CUTS = 2000 if LONG else 50
FLIPS = 5000 if LONG else 200
CASES = [*FORMATS, "stored.zip"]


@pytest.fixture
def bag(tmp_path: Path) -> Path:
    """A valid bag with compressible and incompressible payload, and a tag file."""
    payload = {b"data/a.txt": b"alpha\n" * 300, b"data/b/noise": random.Random(1).randbytes(4000), b"data/empty": b""}
    size = sum(map(len, payload.values()))
    info = b"Payload-Oxum: %d.3\n" % size
    return Sketch(payload=payload, info=info, tag_files={b"notes.txt": b"a tag file\n" * 20}).write(tmp_path / "bag")


@pytest.fixture(params=["file", "bucket"])
def is_ok(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], bool]:
    """Return the verdict on an archive: on the file, or on its copy in a bucket."""
    if request.param == "file":
        return _is_ok
    bucket = use_memory(monkeypatch)

    def is_ok_there(archive: Path) -> bool:
        put_tree(bucket, archive, archive.name)
        return _is_ok(f"s3://memory/{archive.name}")

    return is_ok_there


def _is_ok(archive: Path | str) -> bool:
    try:
        return validate_archive(archive).ok
    except BaseException as error:  # the exact error does not matter
        raise AssertionError(f"{archive}: {error!r}") from error


def is_valid_unpacked(files: dict[str, bytes] | None, folder: Path) -> bool:
    """Return the verdict on unpacked files, in a new directory."""
    if files is None:
        return False
    try:
        for name, data in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    except (OSError, ValueError):  # a damaged name
        return False
    tops = list(folder.iterdir()) if folder.is_dir() else []
    return len(tops) == 1 and tops[0].is_dir() and validate(tops[0]).ok


def end_of(archive: Path) -> int:
    """Return the number of bytes up to the end of the end mark: of a plain tar file, zeros follow it."""
    data = archive.read_bytes()
    if archive.suffix != ".tar":
        return len(data)
    return -(-len(data.rstrip(b"\0")) // 512) * 512 + 1024


@pytest.mark.long
@pytest.mark.parametrize("ending", CASES)
def test_truncated_archives(tmp_path: Path, bag: Path, ending: str, is_ok: Callable[[Path], bool]) -> None:
    """An archive that is cut is never valid, except in the end mark of a tar file, where nothing is missing."""
    archive = pack(bag, tmp_path / f"x.{ending}", stored=ending.startswith("stored"))
    whole = archive.read_bytes()
    end = end_of(archive)
    places = {end * number // CUTS for number in range(CUTS)} | set(range(end - 30, end))
    for place in sorted(places):
        archive.write_bytes(whole[:place])
        is_whole = ending == "tar" and place >= end - 1024
        assert is_ok(archive) == is_whole, place
    for place in sorted({end, len(whole)}):
        archive.write_bytes(whole[:place])
        assert is_ok(archive), place


def free_places(archive: Path, whole: bytes) -> set[int]:
    """Return places of bytes that nothing covers and that unpacking ignores: padding, times, versions, owners."""
    if archive.name.endswith(".tar.gz"):
        return {*range(4, 10)}  # time, effort and system
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive) as zipped:
            members = zipped.infolist()
        found: set[int] = set()
        at = struct.unpack_from("<L", whole, len(whole) - 6)[0]
        for member in members:
            found.update(range(member.header_offset + 10, member.header_offset + 14))  # time
            found.update({at + 4, *range(at + 12, at + 16), *range(at + 36, at + 40)})  # version, time, attributes
            name, extra, comment = struct.unpack_from("<3H", whole, at + 28)
            at += 46 + name + extra + comment
        return found
    if archive.suffix != ".tar":
        return set()
    found = set(range(end_of(archive), len(whole)))
    at = 0
    while any(block := whole[at : at + 512]):
        size = int(block[124:135], 8)
        end = at + 512 + size + -size % 512
        found.update(range(at + 512 + size, end))
        at = end
    return found


def without_tag_manifest(files: dict[str, bytes] | None) -> dict[str, bytes]:
    """Return the files that a manifest lists: of the tag manifest, the case of a digit may change."""
    return {name: data for name, data in (files or {}).items() if not name.startswith("bag/tagmanifest-")}


@pytest.mark.long
@pytest.mark.parametrize("ending", CASES)
def test_flipped_bits(tmp_path: Path, bag: Path, ending: str, is_ok: Callable[[Path], bool]) -> None:
    """An archive with a flipped bit is only valid if nothing of the bag was touched, as its unpacked files show."""
    archive = pack(bag, tmp_path / f"x.{ending}", stored=ending.startswith("stored"))
    whole = archive.read_bytes()
    original = without_tag_manifest(unpacked(archive))
    free = free_places(archive, whole)
    chance = random.Random(3)
    places = [chance.randrange(len(whole)) for _ in range(FLIPS)]
    places += chance.sample(sorted(free), min(len(free), 20))
    for number, place in enumerate(places):
        bit = 1 << chance.randrange(8)
        data = bytearray(whole)
        data[place] ^= bit
        archive.write_bytes(data)
        ok = is_ok(archive)
        files = unpacked(archive)
        if ok or place in free:
            assert ok == is_valid_unpacked(files, tmp_path / f"unpacked{number}"), (place, bit)
        if ok:
            assert without_tag_manifest(files) == original, (place, bit)
    assert original
