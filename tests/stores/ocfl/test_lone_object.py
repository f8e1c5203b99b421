"""One OCFL object outside of a storage root."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from pressmark import stores
from pressmark.buckets.memory import MemoryBucket
from pressmark.errors import StoreError
from pressmark.stores import OcflRoot
from support.in_bucket import ADDRESS, fill, serving
from support.trees import write

USER = {"name": "Ann", "address": "mailto:ann@example.org"}


@pytest.fixture(params=["1.0", "1.1"])
def copied(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of an object with two versions."""
    root = OcflRoot.create(tmp_path / "root", "0004", version=request.param, user=USER, durable=False)
    root.put("urn:a", {"a.txt": b"one", "b.txt": b"two"})
    root.put("urn:a", {"a.txt": b"new"}, replace=True)
    (tmp_path / "elsewhere").mkdir()
    return Path(shutil.copytree(tmp_path / "root" / root.find("urn:a").path, tmp_path / "elsewhere" / "object"))


def test_an_object(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no problem, however its path is given; what is beside it does not matter."""
    write(copied.parent, {"other": b"x", "0=ocfl_9.9": b"x"})
    monkeypatch.chdir(copied)
    for path in (copied, f"{copied}/", os.fsencode(copied), ".", "../object"):
        for digests in (False, True):
            report = stores.check_object(path, digests=digests)
            assert report.ok, report
            assert report.problems == []
            assert report.counts == {"objects": 1, "files": 3, **({"bytes": 9} if digests else {})}


def test_the_problems_of_a_root(copied: Path, tmp_path: Path) -> None:
    """They are those of a check of a root that contains the object, without those of its path."""
    (copied / "v1" / "content" / "a.txt").write_bytes(b"damaged")
    (copied / "v2" / "inventory.json").unlink()
    write(copied, {"stray": b"x", "ignored.tmp": b"x"})
    root = OcflRoot(tmp_path / "root")
    path = root.find("urn:a").path
    shutil.rmtree(tmp_path / "root" / path)
    shutil.copytree(copied, tmp_path / "root" / path)
    whole = root.check(digests=True, ignore=["*.tmp"])
    report = stores.check_object(copied, digests=True, ignore=["*.tmp"], threads=2)
    assert not report.ok
    assert [one._replace(path=one.path.replace("object", path, 1)) for one in report.problems] == whole.problems
    assert report.counts == whole.counts


def test_no_object(copied: Path, tmp_path: Path) -> None:
    for path in (tmp_path / "root", copied / "v1", copied / "inventory.json", copied / "nothing"):
        with pytest.raises(StoreError) as caught:
            stores.check_object(path)
        assert str(path) in str(caught.value)
    with pytest.raises(StoreError, match=r"not an OCFL object: no 0=ocfl_object_1\.x; specify"):
        stores.check_object(tmp_path / "root")
    with pytest.raises(StoreError, match="requires an OCFL storage root in object storage"):
        stores.check_object(copied, digests="stored")
    with pytest.raises(ValueError, match="threads=-1"):
        stores.check_object(copied, threads=-1)


def test_an_object_in_a_bucket(copied: Path) -> None:
    bucket = MemoryBucket()
    assert fill(bucket, copied.parent)
    with serving(bucket):
        report = stores.check_object(f"{ADDRESS}/object/", digests=True)
        assert (report.problems, report.counts["objects"], report.counts["read"]) == ([], 1, 3)
        with pytest.raises(StoreError):
            stores.check_object(ADDRESS)
