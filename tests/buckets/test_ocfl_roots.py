"""OCFL storage roots on a server: killed writers, large files, and what other programs find in its directory."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from pressmark import stores
from pressmark.buckets import upload
from pressmark.errors import ObjectError
from pressmark.stores.ocfl.remote import preparing
from pressmark.stores.ocfl.root import OcflRoot

from .killed_writers import IDS, ROOT, USER, check_killed_writers, errors


def test_killed_writers(folder: Path, request: pytest.FixtureRequest) -> None:
    """Killed writers lose no update, and leave a valid root."""
    kills = 60 if request.config.getoption("--long") else 6
    check_killed_writers(folder, 5, kills, (0.5, 1.5), claims=False)
    validated_by_ocfl_py(folder / "root")


def validated_by_ocfl_py(root: Path) -> None:
    ocfl = pytest.importorskip("ocfl")
    assert ocfl.StorageRoot(root=str(root)).validate(log_warnings=False)


def test_versions_without_content(folder: Path) -> None:
    """Objects are brought back and upgraded; other programs find the directory of the server valid."""
    root = OcflRoot.create("s3://books/root", "0003", version="1.0", algorithm="sha256", user=USER)
    for one in IDS:
        root.put(one, {"n": b"0", "d/kept": b"kept"})
        root.update(one, add={"n": b"1"}, remove=["d/kept"])
        assert root.restore(one, "v1", ["d"]).version == "v3"
    content = {path: path.stat().st_mtime_ns for path in folder.rglob("content/**/*") if path.is_file()}
    for _ in range(2):
        assert [one.error for one in root.upgrade(to="1.1", algorithm="sha512")] == [None] * len(IDS)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("content/**/*") if path.is_file()} == content
    for one in IDS:
        found = root.get(one)
        assert {name: found.read_bytes(name) for name, _path in found.files()} == {"n": b"1", "d/kept": b"kept"}
        assert found.version == "v4"
    assert errors(root) == []
    assert errors(OcflRoot(folder / "root")) == []
    assert sorted(path.name for path in (folder / "root").glob("0=*")) == ["0=ocfl_1.1"]
    validated_by_ocfl_py(folder / "root")


def test_readers_beside_writers(folder: Path) -> None:
    """A reader finds each version whole, while others are written."""
    root = OcflRoot.create(ROOT, "0003", user=USER)
    root.put("x", {"n": b"0", "kept": b"kept"})
    wrong: list[object] = []
    end = threading.Event()

    def read() -> None:
        reader = OcflRoot(ROOT)
        while not end.is_set():
            try:
                found = reader.get("x")
                number = int(found.version[1:]) - 1
                files = {name: found.read_bytes(name) for name, _path in found.files()}
                if files != {"n": str(number).encode(), "kept": b"kept"}:
                    wrong.append(files)
            except Exception as error:
                wrong.append(error)

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for number in range(1, 12):
        root.update("x", add={"n": str(number).encode()})
    end.set()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_large_file(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file in parts is sent again only from where a killed run was, and comes back whole."""
    size = 3 * upload.PART + 12_345
    data = os.urandom(1 << 20) * (size >> 20) + os.urandom(size & 0xFFFFF)
    (tmp_path / "large").write_bytes(data)
    root = OcflRoot.create(ROOT, "0003", user=USER)
    sent = root.storage.bucket.part
    monkeypatch.setattr(upload, "AT_A_TIME", 1)
    monkeypatch.setattr(preparing, "WHOLE", upload.PART)

    def fail(key: bytes, name: str, number: int, block: memoryview) -> Any:
        if number == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return sent(key, name, number, block)

    child = os.fork()
    if not child:
        root.storage.bucket.part = fail
        root.put("x", tmp_path / "large")
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    again = OcflRoot(ROOT, user=USER)
    again.put("x", tmp_path / "large")
    assert again.storage.bucket.sent < size - upload.PART
    assert again.get("x").read_bytes("large") == data
    assert errors(again) == []
    assert list(again.storage.bucket.uploads(b"")) == []
    # Another content at the same path is stored beside it.
    with pytest.raises(ObjectError, match="exists"):
        again.put("x", tmp_path / "large")
    again.update("x", add={"large": data[::-1], "copy": tmp_path / "large"})
    assert again.get("x").read_bytes("copy") == data


def test_open_by_kind(folder: Path) -> None:
    """A store is opened and created by its address."""
    store = stores.create("ocfl", "s3://books/a/b", "0004")
    assert store.put("x", {"f": b"data"}).path == stores.open("s3://books/a/b").find("x").path
    assert {"0=ocfl_1.1", "extensions", "ocfl_layout.json"} <= {*os.listdir(folder / "a" / "b")}
    store.delete("x")
    assert len(stores.open("s3://books/a/b")) == 0
