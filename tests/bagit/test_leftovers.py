"""Leftovers of killed runs of Pressmark's first version are finished, undone or refused.

The files below were written by that version, killed at each of these moments.
"""

from __future__ import annotations

import datetime
import json
import os
from pathlib import Path

import pytest

from pressmark.bagit import create, make_bag, update, validate
from pressmark.bagit.changes import Event
from pressmark.bagit.changes.bag_changes import is_decided, recover
from pressmark.bagit.fetch.complete import complete
from pressmark.errors import BagError
from pressmark.progress_event import EventListener
from pressmark.reports import ProgressEvent

from .bags import tree
from .loopback import serving, whole
from .naive import flaws

DAY = datetime.date(2026, 11, 21)
SOURCE = {"a": "1", "d/b": "2"}

BAG_INFO = "X: y\nBagging-Date: 2026-11-21\nBag-Size: 2 B\nPayload-Oxum: 2.2\nBag-Software-Agent: Pressmark 0.1.0\n"
BAGIT = "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"
MANIFEST = "c4ca4238a0b923820dcc509a6f75849b  data/a\nc81e728d9d4c2f636f067f89cc14862c  data/d/b\n"
TAG_MANIFEST = (
    "1cd8849cf19c7df07387466cbf3f09fe  bag-info.txt\n"
    "eaa2c609ff6371712f623f5531945b44  bagit.txt\n"
    "469dd9914a3a2ae7d292bcf51749f3ed  manifest-md5.txt\n"
)
TAGS = {"bag-info.txt": BAG_INFO, "manifest-md5.txt": MANIFEST, "tagmanifest-md5.txt": TAG_MANIFEST}
BAG = {"data/a": "1", "data/d/b": "2", "bagit.txt": BAGIT, **TAGS}

STAGING = ".pressmark-bag"
CREATE = (
    '{"pressmark_bag": 1, "request": {"command": "create", "algorithms": ["md5"], "info": [["X", "y"]], "links": '
    '"refuse", "tag_files": [], "nested": false}, "out": ["a", "d"], "in": ["bag-info.txt", "manifest-md5.txt", '
    '"tagmanifest-md5.txt", "bagit.txt"], "payload": true}'
)
UPDATE = (
    '{"pressmark_bag": 1, "request": {"command": "update", "algorithms": null, "add": ["sha1"], "drop": [], "info": '
    '[], "payload": true, "accept": [], "rewrite": false, "date": "2026-11-21"}, "out": ["bagit.txt", '
    '"tagmanifest-md5.txt"], "in": ["manifest-sha1.txt", "tagmanifest-md5.txt", "tagmanifest-sha1.txt", "bagit.txt"], '
    '"payload": false}'
)
NEW = {f"{STAGING}/new/{name}": text for name, text in {**TAGS, "bagit.txt": BAGIT}.items()}
MOVED_OUT = {f"{STAGING}/data/{name}": text for name, text in SOURCE.items()}

# Killed before the journal got its name, between the moves, and while the moves were reversed.
PREPARED = {**SOURCE, **NEW, f"{STAGING}/lock": "", f"{STAGING}/journal.part": CREATE}
MOVING_OUT = {**MOVED_OUT, **NEW, f"{STAGING}/lock": "", f"{STAGING}/journal": CREATE}
MOVING_IN = {
    **{"data/a": "1", "data/d/b": "2", "bag-info.txt": BAG_INFO, f"{STAGING}/lock": "", f"{STAGING}/journal": CREATE},
    **{path: text for path, text in NEW.items() if not path.endswith("bag-info.txt")},
}
UNDOING = {**MOVED_OUT, **NEW, f"{STAGING}/lock": "", f"{STAGING}/journal.undo": CREATE}

UPDATING = {
    **{path: text for path, text in BAG.items() if path not in ("bagit.txt", "tagmanifest-md5.txt")},
    f"{STAGING}/lock": "",
    f"{STAGING}/journal": UPDATE,
    f"{STAGING}/new/bagit.txt": BAGIT,
    f"{STAGING}/new/manifest-sha1.txt": (
        "356a192b7913b04c54574d18c28d46e6395428ab  data/a\nda4b9237bacccdf19c0760cab7aec4a8359010b0  data/d/b\n"
    ),
    f"{STAGING}/new/tagmanifest-md5.txt": TAG_MANIFEST + "ffa9f02fca69e6b5d8ef57f4aa012ca7  manifest-sha1.txt\n",
    f"{STAGING}/new/tagmanifest-sha1.txt": (
        "44bf2edc2d575a5f246e12ec804976170c235ee0  bag-info.txt\n"
        "8010d7758f1793d0221c529fef818ff988dda141  bagit.txt\n"
        "5a463838f9ddad679a6c388a20586d8e62028fca  manifest-md5.txt\n"
        "6af784082a5e4338d37d2f213b271c6b4569ea3e  manifest-sha1.txt\n"
    ),
    f"{STAGING}/old/bagit.txt": BAGIT,
    f"{STAGING}/old/tagmanifest-md5.txt": TAG_MANIFEST,
}

BESIDE = ".pressmark-e3b98a4da31a127d.tmp"  # of the destination "t"
COPYING = {
    **{f"s/{path}": text for path, text in SOURCE.items()},
    **{f"{BESIDE}/bag/{path}": text for path, text in BAG.items() if path != "bagit.txt"},
    f"{BESIDE}/tags/bagit.txt": BAGIT,
    f"{BESIDE}/lock": "",
}


def write(folder: Path, files: dict[str, str]) -> Path:
    """Write a leftover, with the first version's permissions of directories."""
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, newline="")
    for path in (folder, *folder.rglob("*")):
        if path.is_dir():
            path.chmod(0o755)
    return folder


def contents(files: dict[str, str]) -> dict[bytes, bytes]:
    return {path.encode(): text.encode() for path, text in files.items()}


def create_again(source: Path) -> list[Event]:
    """Make the call that was killed."""
    events: list[Event] = []
    make_bag(source, info={"X": "y"}, algorithms=["md5"], date=DAY, progress=EventListener(events.append))
    return events


@pytest.mark.parametrize("left", [MOVING_OUT, MOVING_IN], ids=["moving out", "moving in"])
def test_a_decided_bag_is_finished(tmp_path: Path, left: dict[str, str]) -> None:
    """Only the same call finishes a decided change."""
    source = write(tmp_path / "s", left)
    assert is_decided(os.fsencode(source))
    assert create_again(source) == [ProgressEvent("recover")]
    assert tree(source) == contents(BAG)
    assert validate(source).problems == []


def test_a_decided_bag_with_other_options(tmp_path: Path) -> None:
    """Another call finishes the bag, and reports that its own options were not used."""
    source = write(tmp_path / "s", MOVING_IN)
    with pytest.raises(BagError, match="with different options"):
        make_bag(source)
    assert tree(source) == contents(BAG)


@pytest.mark.parametrize("left", [PREPARED, UNDOING], ids=["prepared", "undoing"])
def test_undecided_changes_are_undone(tmp_path: Path, left: dict[str, str]) -> None:
    """An undecided change is undone, and the same call creates the bag."""
    source = write(tmp_path / "s", left)
    assert recover(os.fsencode(source)) is None
    assert tree(source) == contents(SOURCE)
    again = write(tmp_path / "again", left)
    create_again(again)
    assert flaws(again) == []


def test_an_update_is_finished(tmp_path: Path) -> None:
    """Until the same call finishes the update, the directory is not a bag."""
    bag = write(tmp_path / "s", UPDATING)
    assert not validate(bag).ok
    events: list[Event] = []
    found = update(bag, add="sha1", date=DAY, progress=EventListener(events.append))
    assert (found.algorithms, events) == (("md5", "sha1"), [ProgressEvent("recover")])
    assert flaws(bag) == []
    assert not (bag / STAGING).exists()


@pytest.mark.parametrize("left", [MOVING_IN, UNDOING, UPDATING], ids=["create", "undo", "update"])
def test_another_format_is_refused(tmp_path: Path, left: dict[str, str]) -> None:
    """A journal of another format is not changed, and the message names the remedy."""
    name = next(path for path in left if "/journal" in path)
    journal = json.dumps({**json.loads(left[name]), "pressmark_bag": 2})
    bag = write(tmp_path / "s", {**left, name: journal})
    before = tree(bag)
    for run in (lambda: make_bag(bag), lambda: update(bag), lambda: complete(bag), lambda: recover(os.fsencode(bag))):
        with pytest.raises(
            BagError, match="unsupported journal format 2; finish the change with the version of Pressmark that"
        ):
            run()
        assert tree(bag) == before


def test_a_copy_is_made_again(tmp_path: Path) -> None:
    """An incomplete copy is replaced by a complete one; the source keeps its files."""
    write(tmp_path, COPYING)
    create(tmp_path / "s", tmp_path / "t", info={"X": "y"}, date=DAY, algorithms=["md5"])
    assert sorted(os.listdir(tmp_path)) == ["s", "t"]
    assert tree(tmp_path / "s") == contents(SOURCE)
    assert flaws(tmp_path / "t") == []


@pytest.mark.skipif(os.name != "posix", reason="modes of directories")
def test_a_copy_that_others_may_write_to(tmp_path: Path) -> None:
    """A group-writable copy of the first version is refused, and stays."""
    write(tmp_path, COPYING)
    (tmp_path / BESIDE).chmod(0o775)
    before = tree(tmp_path)
    with pytest.raises(BagError, match="if an interrupted run left it, make it writable by you only"):
        create(tmp_path / "s", tmp_path / "t", info={"X": "y"}, date=DAY, algorithms=["md5"])
    assert tree(tmp_path) == before


def test_a_copy_that_was_finished(tmp_path: Path) -> None:
    """Without the bag's identity in the recorded request, a finished bag is kept but not claimed."""
    request = {"command": "create", "algorithms": ["md5"], "info": [["X", "y"]], "links": "refuse", "tag_files": []}
    request |= {"sources": [str(tmp_path / "s")], "mode": "copy"}
    write(tmp_path, {f"s/{path}": text for path, text in SOURCE.items()})
    write(tmp_path, {**{f"t/{path}": text for path, text in BAG.items()}, f"{BESIDE}/lock": ""})
    write(tmp_path, {f"{BESIDE}/request": json.dumps(request)})
    with pytest.raises(BagError, match="already exists"):
        create(tmp_path / "s", tmp_path / "t", info={"X": "y"}, date=DAY, algorithms=["md5"])
    assert tree(tmp_path / "t") == contents(BAG)


@pytest.mark.parametrize("part", ["fetched", "", "fet"], ids=["whole", "empty", "half"])
def test_a_download_is_continued(tmp_path: Path, part: str) -> None:
    """The partial file of an interrupted download is used or replaced, and removed."""
    pytest.importorskip("urllib3")
    with serving() as server:
        url = server.answer("/remote", whole(b"fetched"))
        bag = write(
            tmp_path / "s",
            {
                "bagit.txt": BAGIT,
                "manifest-md5.txt": "0bfa89ee0a8f6a514d35084dd9a9893e  data/f\n",
                "fetch.txt": f"{url} 7 data/f\n",
                f"{STAGING}/lock": "",
                f"{STAGING}/fetch/ebc18b678d6e0f200a755b4ccb421694": part,
            },
        )
        (bag / STAGING / "new").mkdir()
        report = complete(bag, allow_http=True, allow_private=True, threads=1, retries=0)
    assert (report.problems, (bag / "data" / "f").read_text()) == ([], "fetched")
    assert not (bag / STAGING).exists()
