"""Small, reproducible storage roots and objects for tests."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from pressmark import _kernels
from pressmark.fs.trees import Tree
from pressmark.layouts import Layout, layout_from_config
from pressmark.reports import Report
from pressmark.stores.ocfl.local.local_storage import LocalStorage
from pressmark.stores.ocfl.ocfl_object import OcflObject
from pressmark.stores.ocfl.remote.remote_storage import RemoteStorage
from pressmark.stores.ocfl.root import OcflRoot
from support.samples import CONFIGURATIONS

from .bucket import BucketFiles, storage_of
from .memory import MemoryPath, MemoryStorage

CREATED = "2026-01-02T03:04:05Z"
USER = {"name": "A Curator", "address": "mailto:curator@example.org"}

#: Configurations of all layouts of OCFL roots, by short names.
LAYOUTS: dict[str, Layout] = {
    word: layout_from_config({"extensionName": name, **config})
    for word, (name, config) in CONFIGURATIONS.items()
    if name[:4].isdigit()
}


#: Where :func:`create` makes roots: ``disk``, ``memory`` or ``bucket``; see the fixture ``every_storage``.
place = "disk"


def create(folder: Path, word: str = "0003", **options: Any) -> OcflRoot:
    """Make a storage root that does not flush to disk."""
    OcflRoot.create(folder, LAYOUTS[word], **{key: options.pop(key) for key in ("version",) if key in options})
    if place != "disk":
        options["storage"] = MemoryStorage.of(folder) if place == "memory" else storage_of(folder)
        shutil.rmtree(folder)
    return OcflRoot(folder, user=USER, durable=False, **options)


def reopened(root: OcflRoot, **options: Any) -> OcflRoot:
    """Open a root again, as another run does."""
    storage = None if isinstance(root.storage, LocalStorage) else root.storage
    return OcflRoot(root.root, durable=False, storage=storage, **options)


def at(root: OcflRoot) -> Any:
    """Return the path of a root: a :class:`Path`, or the like in memory."""
    storage = root.storage
    if isinstance(storage, RemoteStorage):
        return MemoryPath(BucketFiles(storage.bucket), PurePosixPath())
    return MemoryPath(storage.files, PurePosixPath()) if isinstance(storage, MemoryStorage) else Path(root.root)


def files_of(found: OcflObject) -> dict[str, bytes]:
    """Return the content of the files of an object, by their names."""
    contents = {}
    for name, _path in found.files():
        with found.open(name) as file:
            contents[name] = file.read()
    return contents


def source(folder: Path, files: Mapping[str, bytes] | None = None) -> Path:
    """Make a directory with files."""
    for name, data in (files or {"a.txt": b"one", "deep/er/b.txt": b"two", "same.txt": b"one"}).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def kinds(report: Report, severity: str = "error") -> list[str]:
    """Return the distinct kinds of a report's problems."""
    return sorted({problem.kind for problem in report.problems if problem.severity == severity})


def tree(folder: Any) -> dict[str, bytes | None]:
    """Return all files below a folder with their content, and all directories."""
    found: dict[str, bytes | None] = {}
    for path in folder.rglob("*"):
        found[str(path.relative_to(folder))] = path.read_bytes() if path.is_file() else None
    return found


def copy_tree(folder: Any, to: Any) -> None:
    """Copy a directory of a root."""
    to.mkdir(parents=True)
    for path in folder.rglob("*"):
        copy = to / str(path.relative_to(folder))
        if path.is_dir():
            copy.mkdir(parents=True, exist_ok=True)
        else:
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())


def rewrite(folder: Any, change: Callable[[dict[str, Any]], object], *, versions: bool = True) -> None:
    """Change an object's inventory and update its sidecars.

    :param versions: change the newest version's copy too
    """
    document = json.loads((folder / "inventory.json").read_bytes())
    head = document["head"]
    algorithm = document["digestAlgorithm"]
    change(document)
    save(folder, document, algorithm, head if versions else None)


def save(folder: Any, document: Any, algorithm: str = "sha512", head: str | None = "v1") -> None:
    """Write an inventory and its sidecar, in the newest version too."""
    data = document if isinstance(document, bytes) else json.dumps(document).encode()
    digest = hashlib.new(algorithm, data).hexdigest()
    for path in (folder, *([folder / head] if head is not None else [])):
        (path / "inventory.json").write_bytes(data)
        (path / f"inventory.json.{algorithm}").write_text(f"{digest} inventory.json\n")


def visit_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read no object in one call: each is visited."""

    def defer(_storage: LocalStorage, _place: bytes, names: Sequence[bytes], _reads: str, **_options: Any) -> Any:
        trees = [Tree(name, "odd", 0, 0, 0, 0, 0, {}, {}, [], [], []) for name in names]
        return _kernels.active.TreeBatch.of(trees, [])

    monkeypatch.setattr(LocalStorage, "trees", defer)
