"""No command waits for a named pipe in the place of one of the files that it reads, or reads an endless file whole."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pressmark import bagit
from support.trees import write
from ways.stores import KINDS, changing_commands, make_store, object_directory, reading_commands

FILES = {"a.txt": b"alpha", "sub/b.txt": b"beta"}
ID = "object"
HUGE = 1 << 40  # bytes; no memory for so many
pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")

#: Files that have a meaning for Pressmark beside those of a new store and its objects.
OTHERS = {
    "pairtree": ("pairtree_prefix", "pairtree_pressmark", "pairtree_pressmark/lock"),
    "vitro": ("file_storage_pressmark/lock", "file_storage_pressmark/renaming"),
    "ocfl": ("0=ocfl_1.0", "extensions/pressmark-staging/lock", "extensions/pressmark-staging/0123456789abcdef/lock"),
    "bags": (".pressmark-work", ".pressmark-work/lock", ".pressmark-work/index"),
}


class WaitedError(BaseException):
    """A command waits for ever."""


@contextmanager
def in_time() -> Iterator[None]:
    """End a call that waits."""

    def end(_number: int, _frame: object) -> None:
        raise WaitedError

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(20)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def replace(path: Path, make: Callable[[Path], object]) -> None:
    """Put another file in the place of a file, which need not exist."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    make(path)


def make_huge(path: Path) -> None:
    """Create an enormous file without any block."""
    with open(path, "wb") as file:
        file.truncate(HUGE)


def our_files(kind: str, store: Path) -> list[str]:
    """Return the files of a store that have a meaning, and those of one object."""
    directory = object_directory(store, ID)
    inside = [path for path in directory.rglob("*") if path.is_file()]
    beside = [path for path in store.glob("*") if path.is_file()] + list(store.glob("extensions/*/config.json"))
    return sorted({path.relative_to(store).as_posix() for path in (*inside, *beside)} | set(OTHERS[kind]))


def commands(kind: str, store: Path, new: Path, out: Path) -> dict[str, Sequence[str]]:
    """Return every command that reads a store."""
    migrate = ("migrate", f"{store}", f"{out}", "--to", "bags", "--workers", "1", "--quiet")
    found: dict[str, Sequence[str]] = {
        **reading_commands(kind, store, ID, "a.txt", out),
        **changing_commands(kind, store, ID, "a.txt", new),
        "ls STORE": ("store", "ls", f"{store}"),
        "check": ("store", "check", f"{store}"),
        "report": ("store", "report", f"{store}", "--json"),
        "check --digests": ("store", "check", f"{store}", "--digests"),
        "repair": ("store", "repair", f"{store}"),
        "migrate --dry-run": (*migrate, "--dry-run"),
        "migrate": migrate,
    }
    if kind == "vitro":
        found["declare"] = ("store", "declare", f"{store}", "http://y/")
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_stores(kind: str, tmp_path: Path, call: Any, request: Any, implementation: Any) -> None:
    """Every command ends, and says what is wrong, if a file of the store is a named pipe."""
    step = 1 if request.config.getoption("--long") else 4
    new, store, out = tmp_path / "new.txt", tmp_path / "store", tmp_path / "out"
    new.write_bytes(b"new")
    first = make_store(kind, tmp_path / "first", {ID: FILES})
    for number, name in enumerate(our_files(kind, first)):
        # Each command with some of the files, and each file with some of the commands.
        for command, arguments in list(commands(kind, store, new, out).items())[number % step :: step]:
            for old in (store, out, tmp_path / "out.migration"):
                shutil.rmtree(old, ignore_errors=True)
            shutil.copytree(first, store)
            replace(store / name, os.mkfifo)
            with in_time():
                result = call(*arguments)
            assert result.exit_code in (0, 1, 2), (name, command, result.output)
            assert result.exit_code == 0 or "pressmark: " in result.stderr, (name, command, result.output)


@pytest.mark.parametrize("kind", KINDS)
def test_endless_files(kind: str, tmp_path: Path, call: Any, implementation: Any) -> None:
    """A file that is too large to be ours is an error, and is not read into memory."""
    store = make_store(kind, tmp_path / "store", {ID: FILES})
    content = ("a.txt", "b.txt", "lock")
    # Manifests are read line by line, at any size.
    names = [name for name in our_files(kind, store) if not name.endswith(content) and "manifest" not in name]
    for name in names:
        if os.path.isdir(store / name):
            continue
        kept = (store / name).read_bytes() if (store / name).exists() else None
        replace(store / name, make_huge)
        for arguments in (("ls", f"{store}"), ("ls", f"{store}", ID), ("check", f"{store}")):
            with in_time():
                result = call("store", *arguments)
            assert result.exit_code in (0, 1, 2), (name, result.output)
        (store / name).unlink()
        if kept is not None:
            (store / name).write_bytes(kept)


BAG_FILES = [
    *("bagit.txt", "bag-info.txt", "manifest-sha512.txt", "tagmanifest-sha512.txt", "fetch.txt", "meta.txt"),
    *("data/a.txt", "data/pipe", ".pressmark-bag/lock", ".pressmark-bag/journal.json", ".pressmark-bag"),
]


@pytest.mark.parametrize("name", BAG_FILES)
def test_bags(name: str, tmp_path: Path, call: Any, implementation: Any) -> None:
    """Every command ends if a file of a bag is a named pipe."""
    bag, out = tmp_path / "bag", tmp_path / "out"
    write(tmp_path / "first", FILES)
    bagit.make_bag(tmp_path / "first")
    for arguments in (
        ("validate", f"{bag}"),
        ("validate", f"{bag}", "--level", "complete"),
        ("info", f"{bag}"),
        ("update", f"{bag}", "--info", "Contact-Name=A"),
        ("update", f"{bag}", "--accept", "added,removed,changed"),
        ("pack", f"{bag}", "-o", f"{out}.zip"),
        ("complete", f"{bag}"),
        ("create", f"{bag}"),
        ("create", f"{bag}", "-o", f"{out}"),
    ):
        for old in (bag, out):
            shutil.rmtree(old, ignore_errors=True)
        (tmp_path / "out.zip").unlink(missing_ok=True)
        shutil.copytree(tmp_path / "first", bag)
        replace(bag / name, os.mkfifo)
        with in_time():
            result = call("bag", *arguments)
        assert result.exit_code in (0, 1, 2), (arguments, result.output)


def test_lists_from_pipes(tmp_path: Path, call: Any, implementation: Any) -> None:
    """What users name as input may be a pipe."""
    read, wrote = os.pipe()
    os.write(wrote, b"ark:/1/x\n")
    os.close(wrote)
    result = call("map", "pairtree", f"/dev/fd/{read}")
    os.close(read)
    assert result.output == "ar/k+/=1/=x\n"
