"""Many small objects: copied, written and moved in one call, and left alone if anything is unusual."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from pressmark.fixity.hasher import OpenOptions
from pressmark.threads import call_for_all
from support.implementations import Implementation
from support.trees import snapshot, write

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX files")

Pair = tuple[Implementation, Implementation]
FLAGS = OpenOptions(follow=False).flags
LIMIT = 4096
TEXTS = (b'{\n  "id": ', b',\n  "manifest": ', b',\n  "state": ', b"\n}\n", b"0=ocfl_object_1.1", b"ocfl_object_1.1\n")
SIGNS = (b"/inventory.json", b"/0=ocfl_object_1.0")
FILES = {"a.xml": b"<mets/>", "b": bytes(range(256)) * 64, "sub/deeper/c": b"c", "sub.txt": b"before sub/"}
OTHERS = {"one": {"caf\u00e9": b"x"}, "twins": {"a": b"same", "b": b"same"}, "quote": {'"': b"x"}}


def copied(pair: Pair, folder: Path, names: list[str], *, whole: bool = True, **more: Any) -> list[Any]:
    """Copy sources in a folder, each to a new path with its number."""
    top = os.fsencode(folder)
    jobs = [
        (os.path.join(top, os.fsencode(name)), top + b"/new/%d" % number, top + b"/store/%d/name" % number)
        for number, name in enumerate(names)
    ]
    (folder / "new").mkdir(exist_ok=True)
    how = {"devices": (), "limit": LIMIT, **more}
    native, pure = pair
    before = snapshot(folder)
    assert pure.kernels.copy_small_sources(jobs, how["devices"], FLAGS, how["limit"], whole) == [None] * len(names)
    assert snapshot(folder) == before
    options = how["devices"], FLAGS, how["limit"], whole
    return call_for_all(lambda some: native.kernels.copy_small_sources(some, *options), jobs)


def test_directories_and_files_are_copied(pair: Pair, tmp_path: Path) -> None:
    """Names, bytes, permission bits and times are those of the source, whatever the names; a file gets a directory."""
    write(tmp_path / "files", FILES)
    for name, files in OTHERS.items():
        write(tmp_path / name, files)
    path = tmp_path / "files" / "a.xml"
    path.chmod(0o640)
    os.utime(path, ns=(1_600_000_000_000_000_000, 1_500_000_000_123_456_789))
    found = copied(pair, tmp_path, ["files", *OTHERS, "files/a.xml"])
    assert found == [
        (sum(map(len, FILES.values())), b"/sub/deeper/c"),
        (1, "/caf\u00e9".encode()),
        (8, b"/a"),
        (1, b'/"'),
        (len(FILES["a.xml"]), b"/a.xml"),
    ]
    for number, name in enumerate(("files", *OTHERS)):
        assert snapshot(tmp_path / "new" / str(number)) == snapshot(tmp_path / name)
    for copy in (tmp_path / "new" / "0" / "a.xml", tmp_path / "new" / "4" / "a.xml"):
        assert copy.read_bytes() == FILES["a.xml"]
        assert stat.S_IMODE(copy.stat().st_mode) == 0o640
        assert copy.stat().st_mtime_ns == 1_500_000_000_123_456_789


def test_files_are_copied(pair: Pair, tmp_path: Path) -> None:
    """Without directories, a file is copied as it is, and a directory is not."""
    write(tmp_path, {"file": b"data", "folder/file": b"data", "empty": b"", "large": bytes(16385)})
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "file").chmod(0o604)
    names = ["file", "folder", "empty", "large", "link", "missing", "nul\0"]
    assert copied(pair, tmp_path, names, whole=False) == [(4, b""), *[None] * 6]
    assert (tmp_path / "new" / "0").read_bytes() == b"data"
    assert stat.S_IMODE((tmp_path / "new" / "0").stat().st_mode) == 0o604
    assert os.listdir(tmp_path / "new") == ["0"]


@pytest.mark.parametrize("whole", [True, False])
def test_objects_left_to_the_shared_code(pair: Pair, tmp_path: Path, whole: bool) -> None:
    """Objects on other devices, with existing or long paths or an existing target, are not copied."""
    write(tmp_path, {"file": b"data"})
    device = tmp_path.stat().st_dev
    assert copied(pair, tmp_path, ["file"], whole=whole, devices=(device + 1,)) == [None]
    if whole:
        later = os.fsencode(tmp_path) + b"/store/0/name/file"
        assert copied(pair, tmp_path, ["file"], limit=len(later)) == [None]
        assert copied(pair, tmp_path, ["file"], limit=len(later) + 1) != [None]
    else:
        assert copied(pair, tmp_path, ["file"], whole=False, devices=(device + 1, device)) != [None]
    before = snapshot(tmp_path / "new")
    assert copied(pair, tmp_path, ["file"], whole=whole) == [None]
    assert snapshot(tmp_path / "new") == before
    (tmp_path / "store" / "1").mkdir(parents=True)
    assert copied(pair, tmp_path, ["none", "file"], whole=whole) == [None, None]


def objects(pair: Pair, folder: Path, jobs: list[Any], devices: tuple[int, ...] = ()) -> list[Any]:
    """Write objects of sources, each to a new path with its number."""
    top = os.fsencode(folder)
    given = [
        (above, name, top + b"/new/%d" % number, top + b"/store/%d" % number, b'"id %d"' % number)
        for number, (above, name) in enumerate(jobs)
    ]
    (folder / "new").mkdir(exist_ok=True)
    native, pure = pair
    before = snapshot(folder)
    assert pure.kernels.write_small_objects(given, TEXTS, devices, FLAGS, LIMIT) == [None] * len(jobs)
    assert snapshot(folder) == before
    return call_for_all(lambda some: native.kernels.write_small_objects(some, TEXTS, devices, FLAGS, LIMIT), given)


def expected(number: int, files: dict[str, bytes]) -> dict[bytes, bytes]:
    """Return the files of an object."""
    digests = {name: hashlib.sha512(files[name]).hexdigest() for name in sorted(files)}
    manifest = ",\n".join(f'    "{digest}": ["v1/content/{name}"]' for name, digest in digests.items())
    state = ",\n".join(f'        "{digest}": ["{name}"]' for name, digest in digests.items())
    inventory = (
        f'{{\n  "id": "id {number}",\n  "manifest": {{\n{manifest}\n  }},\n  "state": {{\n{state}\n      }}\n}}\n'
    )
    sidecar = f"{hashlib.sha512(inventory.encode()).hexdigest()} inventory.json\n"
    found = {f"v1/content/{name}": data for name, data in files.items()}
    for above in ("", "v1/"):
        found[f"{above}inventory.json"] = inventory.encode()
        found[f"{above}inventory.json.sha512"] = sidecar.encode()
    found["0=ocfl_object_1.1"] = b"ocfl_object_1.1\n"
    return {name.encode(): data for name, data in found.items()}


def contents(top: Path) -> dict[bytes, bytes]:
    return {os.fsencode(path.relative_to(top)): path.read_bytes() for path in top.rglob("*") if path.is_file()}


@pytest.mark.parametrize("count", [1, 5, 100])
def test_objects_are_written(pair: Pair, tmp_path: Path, count: int) -> None:
    """Each object has its files, inventories, sidecars and declaration; batches are bounded in objects and in bytes."""
    given = []
    for number in range(count):
        files = {name: data * (number % 4 + 1) for name, data in FILES.items() if name != "b"}
        files |= {f"more {n}": b"%d %d" % (n, number) + bytes(16_000) for n in range(number % 4)}
        write(tmp_path / "in" / str(number) / "obj", files)
        given.append(files)
    tops = [os.fsencode(tmp_path / "in" / str(number)) for number in range(count)]
    jobs = [(top, b"obj") if number % 2 else (None, top + b"/obj") for number, top in enumerate(tops)]
    found = objects(pair, tmp_path, jobs, (tmp_path.stat().st_dev,))
    for number, (one, files) in enumerate(zip(found, given, strict=True)):
        assert contents(tmp_path / "new" / str(number)) == expected(number, files)
        paths = [tmp_path / "in" / str(number) / "obj" / name for name in files]
        changed = max(max(path.stat().st_mtime_ns, path.stat().st_ctime_ns) for path in paths)
        digests = {name: hashlib.sha512(files[name]).hexdigest() for name in sorted(files)}
        assert one == (changed, sum(map(len, files.values())), digests)
        assert list(one[2]) == list(digests)


def test_an_object_of_one_file(pair: Pair, tmp_path: Path) -> None:
    """A file is an object with its name; a file in a directory of its own is not taken for one."""
    write(tmp_path, {"in/file": b"data"})
    path = os.fsencode(tmp_path / "in" / "file")
    found = objects(pair, tmp_path, [(None, path), (os.path.dirname(path), b"file")])
    assert found[1] is None
    assert contents(tmp_path / "new" / "0") == expected(0, {"file": b"data"})


def test_unusual_objects_are_not_written(pair: Pair, tmp_path: Path) -> None:
    """Objects with unusual content, names or paths are left alone, and those between them are written."""
    write(tmp_path, {"fine/file": b"data", "beside/obj/file": b"x", "beside/other": b"y", "large/file": bytes(16385)})
    for name, files in OTHERS.items():
        write(tmp_path / name, files)
    write(tmp_path / "many", {str(number): b"%d" % number for number in range(16)})
    write(tmp_path / "empty", {"file": b""})
    (tmp_path / "linked").symlink_to("fine")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "file").symlink_to("../fine/file")
    top = os.fsencode(tmp_path)
    names = [*OTHERS, "large", "many", "empty", "linked", "links", "missing", "nul\0", ""]
    jobs = [job for name in names for job in ((None, top + b"/fine"), (None, os.path.join(top, name.encode())))]
    jobs += [(top + b"/beside", b"obj"), (None, top + b"/fine"), (top, b"a/fine")]
    (tmp_path / "store" / str(len(jobs) - 2)).mkdir(parents=True)
    found = objects(pair, tmp_path, jobs)
    fine = [number for number, one in enumerate(found) if one is not None]
    assert fine == list(range(0, 2 * len(names), 2))
    for number in fine:
        assert contents(tmp_path / "new" / str(number)) == expected(number, {"file": b"data"})
    assert objects(pair, tmp_path, [(None, top + b"/fine")], (tmp_path.stat().st_dev + 1,)) == [None]
    before = contents(tmp_path / "new")
    assert objects(pair, tmp_path, [(None, top + b"/fine")]) == [None]
    assert contents(tmp_path / "new") == before


def test_long_paths(pair: Pair, tmp_path: Path) -> None:
    """An object is not written if one of its paths would be longer than the system allows."""
    write(tmp_path, {"in/" + "f" * 200: b"data"})
    top = os.fsencode(tmp_path)
    length = len(top + b"/store/v1/content/") + 200
    job = (None, top + b"/in", top + b"/new", top + b"/store", b'"id"')
    for limit, is_written in ((length, False), (length + 1, True)):
        [found] = pair[0].kernels.write_small_objects([job], TEXTS, (), FLAGS, limit)
        assert (found is not None) == is_written


def moved(pair: Pair, base: Path, moves: list[tuple[Path, bytes]], *, fresh: bool = False) -> list[bool]:
    """Move objects."""
    given = [(os.fsencode(old), place) for old, place in moves]
    native, pure = pair
    before = snapshot(base.parent)
    assert pure.kernels.move_objects(given, os.fsencode(base), SIGNS, fresh) == [False] * len(moves)
    assert snapshot(base.parent) == before
    return list(native.kernels.move_objects(given, os.fsencode(base), SIGNS, fresh))


def test_objects_are_moved(pair: Pair, tmp_path: Path) -> None:
    """Objects are moved, and missing parent directories are created."""
    base = tmp_path / "base"
    (base / "a" / "b").mkdir(parents=True)
    places = [b"one", b"one more/two", b"a/b/c/d", b"a/b/c/e", b"a/x/d", b"\xff/new\nline", b"a/" + b"n" * 255]
    for number in range(len(places)):
        write(tmp_path / "new" / str(number), {"file": b"%d" % number})
    moves = [(tmp_path / "new" / str(number), place) for number, place in enumerate(places)]
    assert moved(pair, base, moves) == [True] * len(places)
    assert not os.listdir(tmp_path / "new")
    for number, place in enumerate(places):
        with open(os.path.join(os.fsencode(base), place, b"file"), "rb") as file:
            assert file.read() == b"%d" % number


def test_new_directories_only(pair: Pair, tmp_path: Path) -> None:
    """With ``fresh``, nothing is moved into an existing directory."""
    base = tmp_path / "base"
    (base / "ab" / "cd").mkdir(parents=True)
    write(tmp_path, {str(number): b"%d" % number for number in range(6)})
    places = [b"ab/ef/name", b"ab/ef/other", b"ab/cd/name", b"name", b"ab/ef/gh/name", b"ab/gh/name"]
    moves = [(tmp_path / str(number), place) for number, place in enumerate(places)]
    assert moved(pair, base, moves, fresh=True) == [True, False, False, False, True, True]
    assert snapshot(base).keys() >= {b"ab/ef/name", b"ab/ef/gh/name", b"ab/gh/name"}


def test_occupied_paths(pair: Pair, tmp_path: Path) -> None:
    """If an object, file or link is a parent, or the path exists, nothing is moved or lost."""
    base = tmp_path / "base"
    write(base, {
        "declared/0=ocfl_object_1.0": b"",
        "damaged/inventory.json": b"{}",
        "deep/plain/inventory.json": b"{}",
        "file": b"kept",
        "object/file": b"kept",
    })  # fmt: skip
    (base / "empty").mkdir()
    (base / "sign").mkdir()
    (base / "sign" / "inventory.json").symlink_to("nowhere")
    (base / "link").symlink_to("deep", target_is_directory=True)
    write(tmp_path / "new", FILES)
    before = sorted(base.rglob("*"))
    places = (
        b"declared/x", b"damaged/x/y", b"deep/plain/x", b"file/x", b"file", b"object", b"object/file", b"empty",
        b"sign/x", b"link/x", b"link", b"n" * 256, b"/".join([b"d" * 250] * 20), b"nul\0", b"",
    )  # fmt: skip
    assert moved(pair, base, [(tmp_path / "new", place) for place in places]) == [False] * len(places)
    assert contents(tmp_path / "new") == {name.encode(): data for name, data in FILES.items()}
    assert [path for path in sorted(base.rglob("*")) if path.name != "x"] == before
    assert (base / "object" / "file").read_bytes() == b"kept"
    assert moved(pair, base, [(tmp_path / "missing", b"here")]) == [False]


def test_an_object_is_no_parent(pair: Pair, tmp_path: Path) -> None:
    """An object is not moved into one that was moved before it, and the next one is checked from the top."""
    base = tmp_path / "base"
    base.mkdir()
    for number in range(3):
        write(tmp_path / str(number), {"inventory.json": b"{}"})
    moves = [(tmp_path / "0", b"a/b"), (tmp_path / "1", b"a/b/c"), (tmp_path / "2", b"a/b/d")]
    assert moved(pair, base, moves) == [True, False, False]
    moves = [(tmp_path / "1", b"a/c/d"), (tmp_path / "2", b"a/c/d/e")]
    assert moved(pair, base, moves) == [True, False]
