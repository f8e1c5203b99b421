"""OCFL storage roots on a server that receives no conditions: killed writers with claims, and a single writer."""

from __future__ import annotations

from pathlib import Path

import pytest

from pressmark.buckets import s3, upload
from pressmark.errors import StoreError
from pressmark.stores.ocfl.remote import preparing
from pressmark.stores.ocfl.root import OcflRoot

from .killed_writers import ROOT, USER, check_killed_writers, errors, no_condition


@pytest.fixture
def unconditional(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of a bucket on a server that receives no conditions."""
    monkeypatch.setattr(s3, "_condition", no_condition)
    return folder


def test_killed_writers_with_claims(unconditional: Path, request: pytest.FixtureRequest) -> None:
    """Killed writers lose no update, and leave neither problems nor claims."""
    with pytest.raises(StoreError, match="use claims=True if only Pressmark writes"):
        OcflRoot.create(ROOT, "0003", user=USER)
    kills = 30 if request.config.getoption("--long") else 3
    check_killed_writers(unconditional, 4, kills, (2, 4), claims=True)
    assert not (unconditional / "root/extensions/pressmark-staging/claims").exists()


def test_a_single_writer(unconditional: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A life of a root, with a file in parts."""
    monkeypatch.setattr(preparing, "WHOLE", upload.PART)
    root = OcflRoot.create(ROOT, "0003", user=USER, single_writer=True)
    (tmp_path / "large").write_bytes(bytes(upload.PART) + b"end")
    root.put("id:1", {"large": tmp_path / "large", "small": b"1"})
    root.update("id:1", add={"small": b"2"}, remove=["large"])
    root.put("id:2", {"small": b"1"})
    root.delete("id:2")
    assert root.get("id:1").read_bytes("small") == b"2"
    assert root.get("id:1", "v1").digests.keys() == {"large", "small"}
    assert [one.id for one in root.objects()] == ["id:1"]
    assert errors(root) == []
    assert errors(OcflRoot(unconditional / "root")) == []
