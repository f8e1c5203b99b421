"""Bags that are created holey: fetch.txt lists the files, and complete downloads them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from pressmark.bagit.bag import create, create_holey
from pressmark.bagit.fetch.complete import complete
from pressmark.bagit.validation.validate import validate
from pressmark.errors import BagError
from pressmark.progress_event import EventListener
from support.events import at, stages

from ..bags import tree
from ..loopback import below, serving
from ..naive import flaws

URL = "https://example.org/files"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "d e").mkdir(parents=True)
    (folder / "d e" / "50%.tif").write_bytes(b"x" * 3000)
    (folder / "é").write_bytes(b"")
    (folder / "note.tmp").write_bytes(b"junk")
    (folder / "nothing").mkdir()
    return folder


def test_files_are_listed_and_not_copied(source: Path, tmp_path: Path) -> None:
    """All tag files are those of the complete bag, besides fetch.txt; the payload directory is empty."""
    before = tree(source)
    rules: dict[str, Any] = {"algorithms": ["sha512", "md5"], "info": {"X": "y"}, "exclude": ["*.tmp"]}
    events: list[object] = []
    bag = create_holey(source, tmp_path / "bag", URL, progress=EventListener(events.append), **rules)
    create(source, tmp_path / "copy", **rules)
    assert stages(events) == ["examine", "hash", "tag", "check", "move"]
    assert tree(source) == before
    found, copied = tree(tmp_path / "bag"), tree(tmp_path / "copy")
    assert os.listdir(tmp_path / "bag" / "data") == []
    assert bag.info.get("Payload-Oxum") == "3000.2"
    assert found.pop(b"fetch.txt").splitlines() == [
        b"https://example.org/files/d%20e/50%25.tif 3000 data/d e/50%25.tif",
        "https://example.org/files/%C3%A9 0 data/é".encode(),
    ]
    for path, data in found.items():
        if not path.startswith(b"tagmanifest-"):
            assert data == copied[path], path
    assert flaws(tmp_path / "bag", holey=True) == []
    assert {one.kind for one in validate(tmp_path / "bag").errors} == {"file-not-fetched", "oxum-mismatch"}


def test_complete_downloads_the_files(source: Path, tmp_path: Path) -> None:
    """A bag of several sources, completed from them, is valid."""
    pytest.importorskip("urllib3")
    (tmp_path / "one").write_bytes(b"one")
    bag = tmp_path / "bag"
    with serving() as server:
        server.default = below(tmp_path)
        create_holey([source, tmp_path / "one"], bag, server.url("/"))
        assert complete(bag, allow_http=True, allow_private=True).ok
    assert validate(bag).problems == []
    expected = {b"data/source/" + path: data for path, data in tree(source).items()} | {b"data/one": b"one"}
    assert {path: data for path, data in tree(bag).items() if path.startswith(b"data/")} == expected


def test_a_change_during_the_run_is_refused(source: Path, tmp_path: Path) -> None:
    """If a file is added during the run, no bag is left."""

    change = at("check", lambda: (source / "late").write_bytes(b"late"))
    with pytest.raises(BagError, match="changed, added or removed"):
        create_holey(source, tmp_path / "bag", URL, progress=EventListener(change))
    assert sorted(os.listdir(tmp_path)) == ["source"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"destination": "bag.tar"}, "destination: an archive; a holey bag is a directory"),
        ({"url": "files"}, "not an absolute URL"),
        ({"url": "https://me:secret@example.org/"}, "user name or password"),
    ],
)
def test_unsuitable_options(source: Path, tmp_path: Path, options: dict[str, Any], message: str) -> None:
    """Options that do not fit are refused before anything is written."""
    before = tree(tmp_path)
    with pytest.raises(ValueError, match=message):
        create_holey(source, **{"destination": tmp_path / "bag", "url": URL} | options)
    assert tree(tmp_path) == before
