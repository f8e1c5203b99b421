"""The cost of a new version does not depend on the versions and files that an object has."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from itertools import cycle
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest

import pressmark
from pressmark.stores.ocfl.root import OcflRoot
from support.effort import LONG

from .ocfl.samples import CREATED, USER, create, kinds, save

VERSIONS, FILES = (50, 10_000) if LONG else (20, 1000)

UPDATE = """
import os, pathlib, sys
from pressmark.stores.ocfl.root import OcflRoot
import pressmark.stores.ocfl.writing.version_writer, pressmark.fixity.copying
root = OcflRoot(sys.argv[1])
os.path.exists("/update-begins")
root.update("x", add={"new": pathlib.Path(sys.argv[2])}, copy_mode="copy")
os.path.exists("/update-ends")
"""


def build(folder: Path, versions: int, size: int = 0) -> int:
    """Make an object with this many versions, each with more files; return the size of its inventory.

    :param size: of the inventory; more logical paths of the same content fill it, as long as the digests elsewhere
    """
    root = create(folder, "0002")
    root.put("x", {}, created=CREATED)
    directory = folder / "x"
    manifest: dict[str, list[str]] = {}
    blocks: dict[str, Any] = {}
    state: dict[str, list[str]] = {}
    for number in range(1, versions + 1):
        content = directory / f"v{number}/content"
        content.mkdir(parents=True)
        for index in range((number - 1) * FILES // versions, number * FILES // versions):
            data = b"%d" % index
            digest = hashlib.sha512(data).hexdigest()
            manifest[digest] = [f"v{number}/content/{index}"]
            state[digest] = [f"files/{index}"]
            (content / str(index)).write_bytes(data)
        blocks[f"v{number}"] = {"created": CREATED, "message": "", "user": USER, "state": dict(state)}
    document = {**root.get("x").inventory, "head": f"v{versions}", "manifest": manifest, "versions": blocks}
    if size:
        left = size - len(json.dumps(document))
        for number, paths in zip(range(left // 145), cycle(state.values())):
            paths.append(f"same/{number:0>136}")
        blocks["v1"]["state"] = state
        blocks["v1"]["message"] = "x" * (size - len(json.dumps(document)))
    for path in (directory / "v1").glob("inventory.json*"):  # of the empty object
        path.unlink()
    save(directory, document, head=f"v{versions}")
    return (directory / "inventory.json").stat().st_size


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """An object with many versions, one with one version, and a new file."""
    folder = tmp_path_factory.mktemp("cost")
    (folder / "new").write_bytes(b"new")
    size = build(folder / "many", VERSIONS)
    assert build(folder / "one", 1, size) == size
    return folder / "many", folder / "one", folder / "new"


def calls(root: Path, new: Path, log: Path) -> Counter[str]:
    """Return the system calls of an update, by name."""
    path = os.pathsep.join(filter(None, [str(Path(pressmark.__file__).parent.parent), os.environ.get("PYTHONPATH")]))
    command = ["strace", "-f", "-o", str(log), sys.executable, "-c", UPDATE, str(root), str(new)]
    subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, check=True, capture_output=True, timeout=600)
    lines = log.read_text(errors="replace").splitlines()
    [begin] = [number for number, line in enumerate(lines) if "/update-begins" in line]
    [end] = [number for number, line in enumerate(lines) if "/update-ends" in line]
    names = (line.partition("(")[0].split()[-1] for line in lines[begin + 1 : end] if "(" in line)
    # Memory and signals are the interpreter's; waiting threads are no work.
    others = {"brk", "mmap", "munmap", "mremap", "madvise", "mprotect", "futex", "rt_sigaction", "rt_sigprocmask"}
    return Counter(name for name in names if name not in others)


def can_trace() -> bool:
    if shutil.which("strace") is None:
        return False
    return subprocess.run(["strace", "-o", os.devnull, "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.kill
@pytest.mark.slow_under_sanitizers
@pytest.mark.skipif(not can_trace(), reason="strace is not installed, or not allowed")
def test_system_calls_of_a_version(roots: tuple[Path, Path, Path], tmp_path: Path) -> None:
    """A new version of an object with many versions takes as many system calls as one of a single version."""
    many, one, new = roots
    counts = {}
    for root in (many, one):
        copy = tmp_path / root.name
        shutil.copytree(root, copy)
        begun = perf_counter()
        counts[root.name] = calls(copy, new, tmp_path / "log")
        print(root.name, perf_counter() - begun, sum(counts[root.name].values()), counts[root.name])
        assert OcflRoot(copy).get("x").inventory["head"] == f"v{VERSIONS + 1 if root is many else 2}"
    assert sum(counts["one"].values()) > 50
    assert sum(counts["many"].values()) <= 1.1 * sum(counts["one"].values())
    assert sum(counts["many"].values()) < 500
    assert counts["many"]["fsync"] <= counts["one"]["fsync"] < 20


@pytest.mark.long
@pytest.mark.slow_under_sanitizers
def test_versions_of_a_large_object(roots: tuple[Path, Path, Path], tmp_path: Path) -> None:
    """The measured objects are valid, before and after; the times are printed."""
    for path in roots[:2]:
        shutil.copytree(path, tmp_path / path.name)
        root = OcflRoot(tmp_path / path.name, user=USER)
        assert kinds(root.check(digests=True)) == []
        times = []
        for number in range(3):
            begun = perf_counter()
            record = root.update("x", add={f"new-{number}": roots[2]})
            times.append(perf_counter() - begun)
            assert record.changes is not None
            assert record.changes["added"] == 1
        assert kinds(root.check(digests=True)) == []
        print(path.name, [round(one, 3) for one in times])
