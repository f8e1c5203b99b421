"""Stores of all kinds with processes killed at random or running at once: nothing is lost or incomplete."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

import pressmark
from pressmark import stores
from pressmark.stores import Store
from pressmark.stores.registry import store_class
from support.effort import repeats
from support.implementations import Implementation
from support.trees import write

from .killing import IDENTIFIERS, VERSIONS

pytestmark = [pytest.mark.kill, pytest.mark.slow_under_sanitizers]

KILLS = repeats(2)

State = dict[str, dict[str, bytes]]

# Further repairs; for Vitro stores and Pairtrees, with their object.
BROKEN: dict[str, dict[str | bytes, bytes | None]] = {
    "pairtree": {"pairtree_root/zz/zy/bare": b"bare", "pairtree_root/yy/yy/yy": None},
    "vitro": {"file_storage_root/zzz/y/b c": b"bare", "file_storage_root/yyy/yyy": None},
    "ocfl": {"yyy/yyy": None},
    "bags": {"yyy/yyy": None},
}
WHOSE = {"pairtree": ("zzzy", "bare"), "vitro": ("zzzy", "b c")}
# Leftovers of a killed run, which a repair removes.
LEFT = {"leftover", "empty", "unfinished", "directory-empty", "version-unfinished", "bare-file", "bad-file-name"}


def given_files(folder: Path) -> dict[str, dict[str, bytes]]:
    """Write each version's files, and return them."""
    files: dict[str, dict[str, bytes]] = {
        version: {f"{version}.bin": bytes([number]) * 40_000 * (number + 1)} for number, version in enumerate(VERSIONS)
    }
    for version in VERSIONS:
        if version != "one":
            files[version]["deep/er"] = version.encode()
        write(folder / version, files[version])  # type: ignore[arg-type]
    return files


def created(kind: str, folder: Path) -> Store:
    options: dict[str, Any] = {}
    if kind == "vitro":
        options["namespaces"] = ["http://example.org/"]
    if kind == "ocfl":
        options["layout"] = pressmark.layout("0003")
    return store_class(kind).create(folder, **options)


def state(store: Store) -> State:
    """Return every object's files, read by its identifier."""
    found: State = {}
    for record in store.objects():
        assert record.id is not None
        assert record.id not in found
        found[record.id] = {name: Path(path).read_bytes() for name, path in store.get(record.id).files()}
    return found


def started(script: list[str], implementation: str) -> subprocess.Popen[bytes]:
    package = str(Path(pressmark.__file__).parent.parent)
    path = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path, "PRESSMARK_IMPLEMENTATION": implementation}
    process = subprocess.Popen([sys.executable, *script], stdout=subprocess.PIPE, env=environment)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def after(before: State, log: Path, files: State, kind: str) -> list[State]:
    """Return the possible contents after the logged operations, of which the last may be unfinished."""
    states = [dict(before)]
    for line in log.read_text().splitlines():
        if line == "end":
            states = states[-1:]
            continue
        _, operation, identifier = line.split("\t")
        now = dict(states[-1])
        if operation == "delete":
            now.pop(identifier, None)
        elif operation == "put":
            now.setdefault(identifier, files["one"])
        elif operation != "repair":
            now[identifier] = (
                {f"{operation}.bin": files[operation][f"{operation}.bin"]} if kind == "vitro" else files[operation]
            )
        states.append(now)
    return states


@pytest.mark.parametrize("kind", stores.KINDS)
def test_killed_at_any_moment(tmp_path: Path, kind: str, implementations: list[Implementation]) -> None:
    """After a kill, the store is as before or after the interrupted operation, even before a repair."""
    chosen = random.Random(KILLS)
    files = given_files(tmp_path / "given")
    store = created(kind, tmp_path / "store")
    log = tmp_path / "log"
    expected: State = {}
    for number in range(KILLS * len(implementations)):
        # Directories each time, the improper object once.
        is_mended = bool(kind in WHOSE and expected)
        write(tmp_path / "store", {name: data for name, data in BROKEN[kind].items() if not (data and is_mended)})
        if kind in WHOSE:
            expected.setdefault(WHOSE[kind][0], {WHOSE[kind][1]: b"bare"})
        script = [
            str(Path(__file__).with_name("killing.py")),
            store.root,
            str(tmp_path / "given"),
            str(log),
            str(number),
        ]
        process = started(script, str(implementations[number % len(implementations)]))
        time.sleep(chosen.uniform(0, 0.4))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        found = state(store)
        states = after(expected, log, files, kind)
        assert found in states, log.read_text()[-200:]
        problems = {one.kind for one in store.check(digests=True).problems}
        assert problems <= LEFT | {"inventory-advice", "split-end"}
        # The repair finishes a version.
        expected = states[-1] if "version-unfinished" in problems else found
        store = stores.open(store.root)
        store.repair()
        assert state(store) == expected
        assert {one.kind for one in store.check(digests=True).problems} <= {"inventory-advice"}
    for identifier in list(expected):
        store.delete(identifier)
    assert list(store.objects()) == []
    assert not [name for name in os.listdir(store.root) if "pressmark" in name and not name.endswith(".json")]


WORK = """
import sys
from pathlib import Path
from pressmark import stores
from pressmark.errors import ObjectError
sys.path.insert(0, sys.argv[3])
from killing import IDENTIFIERS, VERSIONS, source

store = stores.open(sys.argv[1])
given = Path(sys.argv[2])
print("ready", flush=True)
for turn in range(8):
    for identifier in IDENTIFIERS:
        for action in (
            lambda: store.put(identifier, source(store.kind, given, "one")),
            lambda: store.put(identifier, source(store.kind, given, VERSIONS[turn % 3]), replace=True),
            lambda: turn % 2 and store.delete(identifier),
        ):
            try:
                action()
            except ObjectError as error:
                if error.kind not in ("exists", "missing", "changed"):
                    raise
print("done")
"""


@pytest.mark.parametrize("kind", stores.KINDS)
def test_two_processes_at_once(tmp_path: Path, kind: str, implementations: list[Implementation]) -> None:
    """While two processes put, replace and remove the same objects, each object is always complete."""
    files = given_files(tmp_path / "given")
    store = created(kind, tmp_path / "store")
    script = ["-c", textwrap.dedent(WORK), store.root, str(tmp_path / "given"), str(Path(__file__).parent)]
    names = [str(one) for one in implementations]
    processes = [started(script, names[number % len(names)]) for number in range(3)]
    for process in processes:
        assert process.communicate(timeout=120)[0] == b"done\n"
        assert process.returncode == 0
    assert not [one for one in store.check(digests=True).problems if one.kind != "inventory-advice"]
    for identifier, found in state(store).items():
        assert identifier in IDENTIFIERS
        assert found in [
            {f"{version}.bin": files[version][f"{version}.bin"]} if kind == "vitro" else files[version]
            for version in VERSIONS
        ]
    assert not [name for name in os.listdir(store.root) if "pressmark" in name and not name.endswith(".json")]
