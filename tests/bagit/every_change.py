"""Every change that creates, updates or completes a bag, killed or refused at every single step.

    python every_change.py CASE FOLDER kill|ERRNO|-ERRNO [STRIDE]

Run with disk_faults.c preloaded. For each change of the disk, this creates new files, runs the operation in a child
process that fails at that step, and checks the result. The files must be unchanged or completely changed, or the same
call must finish the change. Until a change is decided, the verdict on the bag is as before, and then as after it. No
file is incomplete under its own name. An error is one line, and states that nothing was changed only if that is true.
STRIDE is the distance between tested steps.
"""

from __future__ import annotations

import atexit
import datetime
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from bagit.bags import Sketch, tree
from bagit.naive import flaws
from pressmark.bagit import create_from_lists, revert
from pressmark.bagit.archive.pack import pack
from pressmark.bagit.archive.unpack import unpack
from pressmark.bagit.bag import create, create_archive, create_holey, make_bag, update
from pressmark.bagit.changes.bag_changes import is_decided
from pressmark.bagit.fetch.complete import complete
from pressmark.bagit.validation.validate import validate
from pressmark.bagit.writing.in_place import create_together
from pressmark.bagit.writing.options import CreateOptions
from pressmark.errors import BagError
from support.disk_faults import DiskFault

DAY = datetime.date(2026, 11, 21)
# Each run makes its files anew, at another time.
SAME = {"timestamps": "bagging-date"}


def make_source(folder: Path) -> None:
    (folder / "s" / "d").mkdir(parents=True)
    (folder / "s" / "a").write_bytes(b"1" * 100)
    (folder / "s" / "d" / "b").write_bytes(b"2" * 300_000)
    (folder / "note").write_bytes(b"a tag file")


def make_small_source(folder: Path) -> None:
    (folder / "s" / "d").mkdir(parents=True)
    (folder / "s" / "a").write_bytes(b"1" * 100)
    (folder / "s" / "d" / "b").write_bytes(b"2" * 3000)


def make_old_bag(folder: Path) -> None:
    Sketch(info=b"Title: x\n", algorithms=["sha512", "md5"]).write(folder / "s")


@functools.cache
def served(folder: Path) -> str:
    """Serve a folder from another process, since this one forks, and return its URL."""
    command = [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", str(folder)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    atexit.register(server.kill)
    assert server.stdout is not None
    return f"http://127.0.0.1:{server.stdout.readline().split()[5]}"


def make_holey_bag(folder: Path) -> None:
    fetched = {f"data/{name}".encode(): name.encode() * 50_000 for name in ("e/f", "g")}
    lines = []
    for path, content in fetched.items():
        remote = folder / os.fsdecode(path).replace("/", "-")
        remote.write_bytes(content)
        lines.append(f"{served(folder)}/{remote.name} - {os.fsdecode(path)}\n".encode())
    sketch = Sketch(info=None, fetch=b"".join(lines), absent=set(fetched))
    sketch.payload.update(fetched)
    sketch.write(folder / "s")


class Case(NamedTuple):
    """A change to run.

    :ivar make: writes the files
    :ivar run: changes the files in that folder
    :ivar bag: name of the resulting bag; empty for several, each of which changes on its own
    :ivar again: the error of the same call if the change is already complete; empty if it succeeds
    :ivar flaws: returns what is wrong with the resulting bag
    """

    make: Callable[[Path], None]
    run: Callable[[Path], Any]
    bag: str
    again: str = ""
    flaws: Callable[[Path], list[str]] = flaws


def in_place(folder: Path) -> object:
    return make_bag(folder / "s", info={"X": "y"}, tag_files=[folder / "note"], date=DAY)


def small(folder: Path) -> object:
    return make_bag(folder / "s", info={"X": "y"}, date=DAY, algorithms=["sha512", "md5"])


def make_small_sources(folder: Path) -> None:
    for number in range(6):
        (folder / str(number)).mkdir()
        make_small_source(folder / str(number))


def many(folder: Path) -> object:
    """Create small bags together, and the others one by one, as the command does."""
    paths = [os.fsencode(folder / str(number) / "s") for number in range(6)]
    rules = {"algorithms": ["sha512", "md5"], "info": {"X": "y"}, "links": "refuse", "tag_files": (), "threads": 1}
    options = CreateOptions.from_arguments(**rules, read="parallel", date=DAY)  # type: ignore[arg-type]
    errors = []
    for path, bag in zip(paths, list(create_together(paths, options, False)), strict=True):
        try:
            if bag is None:
                make_bag(path, info={"X": "y"}, date=DAY, algorithms=["sha512", "md5"])
        except BagError as error:
            errors.append(error)
    if errors:
        raise errors[0]
    return None


def make_source_with_junk(folder: Path) -> None:
    make_source(folder)
    (folder / "s" / ".DS_Store").write_bytes(b"j" * 9)
    (folder / "s" / "d" / ".DS_Store").write_bytes(b"k" * 9)
    (folder / "s" / "d" / "__MACOSX" / "e").mkdir(parents=True)
    (folder / "s" / "d" / "__MACOSX" / "e" / "f").write_bytes(b"l" * 9)


def without_junk(folder: Path) -> object:
    globs = [".DS_Store", "__MACOSX"]
    return make_bag(folder / "s", info={"X": "y"}, exclude=globs, delete_excluded=True, date=DAY)


def elsewhere(folder: Path) -> object:
    return create(folder / "s", folder / "t", info={"X": "y"}, tag_files=[folder / "note"], date=DAY)


def holey(folder: Path) -> object:
    return create_holey(folder / "s", folder / "t", "https://example.org/", tag_files=[folder / "note"], date=DAY)


def make_lists(folder: Path) -> None:
    (folder / "s").mkdir()
    (folder / "s" / "urls").write_bytes(b"https://example.org/a 3 data/a\nhttps://example.org/b 4 data/b\n")
    (folder / "s" / "SHA512SUMS").write_bytes(b"%b  a\n%b  b\n" % (b"0" * 128, b"1" * 128))
    (folder / "note").write_bytes(b"a tag file")


def from_lists(folder: Path) -> object:
    urls, sums = folder / "s" / "urls", folder / "s" / "SHA512SUMS"
    return create_from_lists(urls, [sums], folder / "t", tag_files=[folder / "note"], date=DAY)


def updated(folder: Path) -> object:
    return update(folder / "s", add="sha256", drop="md5", info={"Title": "y"})


def archived(folder: Path) -> object:
    how: dict[str, Any] = {"info": {"X": "y"}, "tag_files": [folder / "note"], "date": DAY, **SAME}
    return create_archive(folder / "s", folder / "t.tar.gz", **how)


def packed(folder: Path) -> object:
    return pack(folder / "s", folder / "t.zip", **SAME)


def make_archive(folder: Path) -> None:
    make_old_bag(folder)
    pack(folder / "s", folder / "t.tar", **SAME)


def unpacked(folder: Path) -> object:
    return unpack(folder / "t.tar")


def flaws_in_archive(file: Path) -> list[str]:
    with tempfile.TemporaryDirectory() as below:
        shutil.unpack_archive(file, below)
        return flaws(Path(below) / "t")


def completed(folder: Path) -> object:
    report = complete(folder / "s", allow_http=True, allow_private=True, threads=1, retries=0)
    if not report.ok:
        raise BagError(b"s", "; ".join(f"{one.kind} {one.message}" for one in report.problems))
    return report


def make_bag_to_revert(folder: Path) -> None:
    """A bag whose payload has the names of the bag itself, so that each move in follows a move out."""
    files = {b"data/data/x": b"x", b"data/a": b"1" * 100, b"data/d/b": b"2" * 3000, b"data/manifest-md5.txt": b"m"}
    Sketch(payload=files, tag_files={b"notes/n": b"n"}, info=None).write(folder / "s")


def reverted(folder: Path) -> object:
    return revert(folder / "s", delete_tag_files=True)


CASES = {
    "in-place": Case(make_source, in_place, "s", "already a bag"),
    "small": Case(make_small_source, small, "s", "already a bag"),
    "many": Case(make_small_sources, many, "", "already a bag"),
    "without-junk": Case(make_source_with_junk, without_junk, "s", "already a bag"),
    "elsewhere": Case(make_source, elsewhere, "t", "already exists"),
    "holey": Case(make_source, holey, "t", "already exists", functools.partial(flaws, holey=True)),
    "from-lists": Case(make_lists, from_lists, "t", "already exists", functools.partial(flaws, holey=True)),
    "archive": Case(make_source, archived, "t.tar.gz", "already exists", flaws_in_archive),
    "pack": Case(make_old_bag, packed, "t.zip", "already exists", flaws_in_archive),
    "unpack": Case(make_archive, unpacked, "t", "already exists"),
    "update": Case(make_old_bag, updated, "s"),
    "complete": Case(make_holey_bag, completed, "s"),
    "revert": Case(make_bag_to_revert, reverted, "s", "bagit.txt not found", lambda _bag: []),
}


def fresh(case: Case, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    case.make(folder)


def quoted(folder: Path) -> dict[bytes, bytes]:
    """Return all files except those in hidden directories."""
    return {path: data for path, data in tree(folder).items() if b".pressmark-" not in path}


def is_part(found: dict[bytes, bytes], before: dict[bytes, bytes], after: dict[bytes, bytes]) -> bool:
    """Return whether some files exist, each of them complete."""
    return before.items() <= found.items() <= after.items()


def refusal(case: Case, folder: Path) -> str:
    """Run again; return the error, if any."""
    try:
        case.run(folder)
    except BagError as error:
        return error.reason
    return ""


def check_many(
    case: Case,
    folder: Path,
    bags: list[str],
    before: dict[bytes, bytes],
    after: dict[bytes, bytes],
    status: int,
    words: str,
    where: str,
) -> None:
    """Check each of several bags on its own, and again after the same call."""

    def below(files: dict[bytes, bytes], bag: str) -> dict[bytes, bytes]:
        return {path: data for path, data in files.items() if path.startswith(f"{bag}/".encode())}

    found = quoted(folder)
    if status in (0, 4):
        assert found == after, where
    for bag in bags:
        left = is_decided(os.fsencode(folder / bag / "s"))
        is_whole = below(found, bag) == below(after, bag)
        assert left or is_whole or below(found, bag) == below(before, bag), (where, bag)
        assert left or not errors(folder / bag / "s"), (where, bag)
    refusal(case, folder)
    assert quoted(folder) == after, (where, words)
    assert not any(flaws(folder / bag / "s") for bag in bags), where


def errors(bag: Path) -> list[str]:
    """Return the errors of a validation of a bag; empty if there is no bag."""
    if not (bag / "bagit.txt").is_file():
        return []
    return [f"{one.kind}: {one.message}" for one in validate(bag).errors]


def main() -> None:
    name, folder, given, stride = sys.argv[1], Path(sys.argv[2]), sys.argv[3], int((*sys.argv, "1")[4])
    case = CASES[name]
    fault = DiskFault(given, BagError)
    fresh(case, folder)
    before = quoted(folder)
    errors_before = errors(folder / case.bag)
    case.run(folder)
    after = quoted(folder)
    errors_after = errors(folder / case.bag)
    bags = [case.bag] if case.bag else sorted(os.listdir(folder))
    assert not any(case.flaws(folder / bag / ("" if case.bag else "s")) for bag in bags)
    step = 1 - stride
    while True:
        step += stride
        fresh(case, folder)
        status, words = fault.run(step, functools.partial(case.run, folder))
        where = f"{name}, change {step}, ended {status}: {words}"
        found = quoted(folder)
        if not case.bag:
            check_many(case, folder, bags, before, after, status, words, where)
            if status == 0:
                break
            continue
        left = is_decided(os.fsencode(folder / case.bag))
        assert left or found in (before, after) or (name == "complete" and is_part(found, before, after)), where
        nothing = ("nothing was changed", "no bag was created", "no archive was created", "nothing was unpacked")
        if any(one in words for one in nothing):
            assert found == before, where
            assert not left, where
        assert "put in its place" not in words or found != after, where
        if status in (0, 4):
            assert found == after, where
        if case.bag and not left and found in (before, after):
            wrong = errors(folder / case.bag)
            assert wrong == (errors_after if found == after else errors_before), (where, wrong)
        if status == 0:
            break
        again = refusal(case, folder)
        assert not again or (found == after and case.again and case.again in again), (where, again)
        assert quoted(folder) == after, where
        if found != after:
            assert not list(folder.rglob(".pressmark-*")), where
    print(step)


if __name__ == "__main__":
    main()
