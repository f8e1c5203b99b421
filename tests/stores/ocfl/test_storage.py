"""Walk, check and objects work on any storage, shown with one in memory."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest

from pressmark.errors import ObjectError
from pressmark.stores.ocfl.check import Check
from pressmark.stores.ocfl.local.local_storage import LocalStorage
from pressmark.stores.ocfl.storage import Storage

from .memory import MemoryStorage
from .samples import at, create, kinds, source


def test_a_root_in_memory(tmp_path: Path) -> None:
    """A root in memory is read only through its storage: the directory is deleted."""
    root = create(tmp_path / "root")
    identifiers = ["info:a/1", "info:a/2", "info:b/3"]
    for identifier in identifiers:
        root.put(identifier, source(tmp_path / "in"))
    root.put(identifiers[0], source(tmp_path / "other", {"a.txt": b"other"}), replace=True)
    on_disk = [record.id for record in root.objects()]
    memory = MemoryStorage.of(tmp_path / "root")
    root.storage = memory
    shutil.rmtree(tmp_path / "root")

    assert [record.id for record in root.objects(threads=1)] == on_disk
    assert [record.id for record in root.objects(threads=3)] == on_disk
    report = root.check(digests=True, threads=1)
    assert (kinds(report), report.counts) == ([], {"objects": 3, "files": 7, "bytes": 23})
    with root.get(identifiers[0]).open("a.txt") as file:
        assert file.read() == b"other"
    with pytest.raises(ObjectError) as caught:
        root.get("info:c/4")
    assert caught.value.kind == "missing"

    path = at(root) / root.path_for(identifiers[1])
    (path / "v1/content/a.txt").write_bytes(b"oNe")
    (at(root) / root.path_for(identifiers[2]) / "inventory.json.sha512").unlink()
    (path / "v1/content/extra").write_bytes(b"")
    found = Check(root, None).report(True, 1, ())
    assert kinds(found) == ["content-extra", "content-mismatch", "sidecar-missing"]


@pytest.mark.skipif(os.name != "posix", reason="needs symbolic links and named pipes")
def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    """A symbolic link is not followed, and a named pipe is not opened."""
    (tmp_path / "file").write_bytes(b"data")
    (tmp_path / "link").symlink_to("file")
    os.mkfifo(tmp_path / "pipe")
    storage: Storage = LocalStorage(os.fsencode(tmp_path))
    assert storage.read(b"file", 2) == b"da"
    for name in (b"link", b"pipe", b"."):
        with pytest.raises(OSError, match=r"symbolic link|named pipe|[Dd]irectory"):
            storage.read(name)
    assert stat.S_ISLNK(storage.status(b"link").st_mode)
