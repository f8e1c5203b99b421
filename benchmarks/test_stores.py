"""Every kind of store: put one and many, get, list, check and repair small objects, beside ``cp -r`` and programs.

An object is two files of 1 and 10 KB, in a Vitro store one file. Each answer is compared with what was stored.
"""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Callable, Sequence
from itertools import count as numbers
from pathlib import Path
from typing import Any

import pytest

from benchmarks.conftest import Measure
from benchmarks.peers import environments, ocfl_stores
from benchmarks.peers.environments import Unavailable
from pressmark import layout
from pressmark.stores.registry import store_class

KINDS = ("pairtree", "ocfl", "vitro", "bags")
OBJECTS, SIZES = 500, (1_000, 10_000)
NAMESPACE = "http://example.org/individual/"
OPTIONS: dict[str, dict[str, Any]] = {"ocfl": {"layout": layout("0003")}, "vitro": {"namespaces": {"n": NAMESPACE}}}
USER = {"name": "Benchmark", "address": "https://example.org/benchmark"}


class Objects:
    """The small objects of a kind of store.

    :param kind: of the store
    :param count: number of objects
    """

    def __init__(self, folder: Path, kind: str, count: int) -> None:
        self.kind = kind
        self.count = count
        self.folder = folder / f"{kind}-sources"
        self.sources: dict[str, Path] = {}
        for number in range(count):
            place = self.folder / f"{number // 1000:04}" / f"{number:07}"
            place.mkdir(parents=True)
            for file, size in enumerate(SIZES[1:] if kind == "vitro" else SIZES):
                block = f"{number} {file} ".encode()
                (place / f"file-{file}.bin").write_bytes((block * (size // len(block) + 1))[:size])
            name = f"{NAMESPACE if kind == 'vitro' else ''}object-{number:07}"
            self.sources[name] = place / "file-0.bin" if kind == "vitro" else place
        self.list = folder / f"{kind}.txt"
        self.list.write_text("".join(f"{name}\t{place}\n" for name, place in self.sources.items()))
        self.store = folder / f"{kind}-store"
        self.create(self.store)
        with self.open().ingest() as ingest:
            for item in self.sources.items():
                ingest.put(*item)

    def create(self, path: Path) -> None:
        shutil.rmtree(path, ignore_errors=True)
        store_class(self.kind).create(path, **OPTIONS.get(self.kind, {}))

    def open(self, path: Path | None = None) -> Any:
        return store_class(self.kind)(path or self.store, **({"user": USER} if self.kind == "ocfl" else {}))

    def check_content(self, path: Path) -> None:
        """Compare the last object of a store with its source."""
        store = self.open(path)
        assert sum(1 for _record in store.objects()) == self.count
        name, place = next(reversed(self.sources.items()))
        found = store.get(name)
        files = [place] if place.is_file() else sorted(place.iterdir())
        assert sorted(found.read_bytes(one) for one, _path in found.files()) == sorted(
            file.read_bytes() for file in files
        )


@pytest.fixture(scope="session")
def objects(memory: Path, scaled: Callable[[int], int]) -> Callable[[str], Objects]:
    @functools.cache
    def made(kind: str) -> Objects:
        return Objects(memory, kind, scaled(OBJECTS))

    return made


@pytest.mark.parametrize("into", ["empty", "full"])
@pytest.mark.parametrize("kind", KINDS)
def test_put_one(measure: Measure, objects: Callable[[str], Objects], memory: Path, kind: str, into: str) -> None:
    """Put one object into a store that is opened for it."""
    one, path = objects(kind), memory / f"{kind}-empty"
    if into == "full":
        path = one.store
    elif not path.exists():
        one.create(path)
    name, source = next(iter(one.sources.items()))
    new = map(f"{name}-{{}}".format, numbers())
    put: list[str] = []

    def run() -> None:
        put.append(next(new))
        one.open(path).put(put[-1], source)

    def remove() -> None:
        while put:
            one.open(path).delete(put.pop())

    def check(_made: object) -> None:
        assert one.open(path).get(put[-1])

    measure.once(f"store put one, {kind}", run, before=remove, check=check, rounds=50)
    remove()


@pytest.mark.parametrize("kind", KINDS)
def test_put_many(measure: Measure, objects: Callable[[str], Objects], memory: Path, kind: str) -> None:
    one, path = objects(kind), memory / "put-many"

    def run() -> None:
        with one.open(path).ingest() as ingest:
            for item in one.sources.items():
                ingest.put(*item)

    def check(_made: object) -> None:
        one.check_content(path)

    group = put_title(kind)
    measure.once(group, run, before=functools.partial(one.create, path), check=check, objects=one.count)


@pytest.mark.yardstick
@pytest.mark.parametrize("kind", KINDS)
def test_copy_many(measure: Measure, objects: Callable[[str], Objects], memory: Path, kind: str) -> None:
    one, path = objects(kind), memory / "copy-many"

    def run() -> None:
        os.spawnlp(os.P_WAIT, "cp", "cp", "-r", str(one.folder), str(path))

    def check(_made: object) -> None:
        assert len(list(path.rglob("file-0.bin"))) == one.count

    remove = functools.partial(shutil.rmtree, path, ignore_errors=True)
    measure.once(put_title(kind), run, before=remove, check=check, objects=one.count)


def put_title(kind: str) -> str:
    return f"store put many, {kind}"


@pytest.mark.parametrize("kind", KINDS)
def test_put_command(
    measure: Measure, objects: Callable[[str], Objects], memory: Path, pressmark: tuple[str, ...], kind: str
) -> None:
    one, path = objects(kind), memory / "put-command"

    def check(_output: str) -> None:
        one.check_content(path)

    words = (*pressmark, "store", "put", path, "--from", one.list, "--no-progress")
    group = f"command store put --from, {kind}"
    measure.command(group, *words, before=functools.partial(one.create, path), check=check, objects=one.count)


@pytest.mark.parametrize("kind", KINDS)
def test_get(measure: Measure, objects: Callable[[str], Objects], kind: str) -> None:
    """Read all files of some objects, verified where the store has digests."""
    one = objects(kind)
    store, some = one.open(), list(one.sources)[:20]

    def run() -> list[bytes]:
        read = []
        for name in some:
            found = store.get(name)
            read += [found.read_bytes(file) for file, _path in found.files()]
        return read

    def check(read: list[bytes]) -> None:
        assert len(read) == len(some) * (1 if kind == "vitro" else len(SIZES))
        assert max(map(len, read)) == SIZES[1]

    measure.call(f"store get, {kind}", run, check=check, objects=len(some))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_ls(measure: Measure, objects: Callable[[str], Objects], kind: str, threads: int) -> None:
    one = objects(kind)

    def check(found: list[str]) -> None:
        assert sorted(found) == sorted(one.sources)

    def run() -> list[str]:
        return [record.id for record in one.open().objects(threads=threads)]

    measure.call(f"store ls, {kind}", run, check=check, objects=one.count)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("kind", "digests"), [*((kind, False) for kind in KINDS), ("ocfl", True), ("bags", True)])
def test_check(measure: Measure, objects: Callable[[str], Objects], kind: str, digests: bool, threads: int) -> None:
    one = objects(kind)

    def check(report: Any) -> None:
        assert report.ok
        assert report.counts["objects"] == one.count

    group = f"store check{' --digests' if digests else ''}, {kind}"
    measure.call(group, lambda: one.open().check(digests=digests, threads=threads), check=check, objects=one.count)


@pytest.mark.parametrize("kind", KINDS)
def test_repair(measure: Measure, objects: Callable[[str], Objects], kind: str) -> None:
    """Repair a store that needs none."""
    one = objects(kind)

    def check(report: Any) -> None:
        assert report.ok

    measure.call(f"store repair without findings, {kind}", lambda: one.open().repair(), check=check, objects=one.count)


# --- other programs ---------------------------------------------------------------------------------------------------

# Print the number of identifiers.
_PAIRTREE = (
    "import sys, logging; logging.disable(); from pairtree import PairtreeStorageFactory; "
    "store = PairtreeStorageFactory().get_store(store_dir=sys.argv[1], uri_base=''); "
    "print(sum(1 for one in store.list_ids()))"
)
_PYPAIRTREE = (
    "import os, sys; from pypairtree import pairtree; tree = sys.argv[1] + '/pairtree_root'; "
    "print(sum(1 for path in pairtree.findObjects(tree) if pairtree.deSanitizeString(os.path.split(path)[1])))"
)


def _rocfl(root: Path, *words: str) -> Sequence[str | Path]:
    return (*ocfl_stores.found()["rocfl"], "--root", root, *words)


def _ocfl_py(root: Path) -> Sequence[str | Path]:
    python = environments.interpreter("ocfl-py")
    return python, python.with_name("ocfl-validate.py"), "--quiet", root


@pytest.mark.peers
@pytest.mark.parametrize("program", ["pressmark", "pairtree", "pypairtree", "find"])
def test_ls_pairtree(
    measure: Measure, objects: Callable[[str], Objects], pressmark: tuple[str, ...], program: str
) -> None:
    one = objects("pairtree")
    (one.store / "pairtree_prefix").write_bytes(b"")  # the peers need one
    codes = {"pairtree": _PAIRTREE, "pypairtree": _PYPAIRTREE}
    words = {
        "pressmark": lambda: (*pressmark, "store", "ls", one.store),
        "find": lambda: ("find", one.store / "pairtree_root", "-name", "file-0.bin"),
    }.get(program, lambda: (environments.interpreter(program), "-c", codes[program], one.store))

    def check(output: str) -> None:
        assert (int(output) if program in codes else output.count("\n")) == one.count

    measure.command("command store ls, pairtree", *available(words), check=check, objects=one.count)


@pytest.mark.peers
@pytest.mark.parametrize("program", ["pressmark", "rocfl"])
def test_ls_ocfl(measure: Measure, objects: Callable[[str], Objects], pressmark: tuple[str, ...], program: str) -> None:
    one = objects("ocfl")
    words = {
        "pressmark": lambda: (*pressmark, "store", "ls", one.store),
        "rocfl": lambda: _rocfl(one.store, "ls"),
    }[program]

    def check(output: str) -> None:
        assert output.count("\n") == one.count

    measure.command("command store ls, ocfl", *available(words), check=check, objects=one.count)


@pytest.mark.peers
@pytest.mark.parametrize("program", ["pressmark", "rocfl", "ocfl-py"])
def test_check_ocfl(
    measure: Measure, objects: Callable[[str], Objects], pressmark: tuple[str, ...], program: str
) -> None:
    one = objects("ocfl")
    words: Callable[[], Sequence[str | Path]] = {
        "pressmark": lambda: (*pressmark, "store", "check", one.store, "--digests", "--threads", "2", "--no-progress"),
        "rocfl": lambda: _rocfl(one.store, "validate", "--level", "error"),
        "ocfl-py": lambda: _ocfl_py(one.store),
    }[program]
    measure.command("command store check --digests, ocfl", *available(words), objects=one.count)


def available(words: Callable[[], Sequence[str | Path]]) -> Sequence[str | Path]:
    """Return a command, or skip where its program is not available."""
    try:
        return words()
    except (Unavailable, KeyError) as error:
        pytest.skip(f"not available: {error}")
