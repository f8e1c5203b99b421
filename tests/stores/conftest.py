"""Trees written name by name, and a process with a preloaded fault library."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pressmark.stores.pairtree.pairtree_store import PairtreeStore
from support.disk_faults import DISK_FAULTS
from support.preloading import preloadable
from support.trees import write

Tree = Callable[..., Path]


@pytest.fixture
def store(tmp_path: Path) -> PairtreeStore:
    """An empty Pairtree without a prefix; it does not flush, for speed."""
    return PairtreeStore.create(tmp_path / "store", durable=False)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """Write a Pairtree, by names below pairtree_root, and return the directory that contains it."""

    def make(*names: str | bytes, **files: bytes) -> Path:
        base = tmp_path / "tree"
        (base / "pairtree_root").mkdir(parents=True, exist_ok=True)
        write(base / "pairtree_root", dict.fromkeys(names, b"x"))
        write(base, dict(files))
        return base

    return make


@pytest.fixture(scope="session")
def disk_faults(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The library that injects faults into changes of the disk, to be preloaded."""
    return preloadable(DISK_FAULTS, tmp_path_factory.mktemp("faults"))


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse to remove directories named ``stuck``."""
    rmdir = os.rmdir

    def refused(path: bytes, **options: Any) -> None:
        if os.path.basename(os.fsencode(path)) == b"stuck":
            raise PermissionError(errno.EACCES, "Permission denied", path)
        rmdir(path, **options)

    monkeypatch.setattr(os, "rmdir", refused)
