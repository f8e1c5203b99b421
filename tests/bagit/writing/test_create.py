"""Creating bags: complete or not at all, in place and elsewhere."""

from __future__ import annotations

import builtins
import datetime
import errno
import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fixity.conftest import environment
from pressmark.bagit import create_archive
from pressmark.bagit.bag import Bag, create, make_bag
from pressmark.bagit.bag_directory import STAGING
from pressmark.bagit.changes import Event
from pressmark.bagit.validation.validate import validate
from pressmark.bagit.writing.tag_writer import bag_size
from pressmark.errors import AlgorithmError, BagError
from pressmark.fixity import ALGORITHMS, Ledger
from pressmark.fixity.copying import Copying
from pressmark.fs import changes
from pressmark.fs.staging import NewPath
from pressmark.fs.steps import ALONE, MAKE, WRITE, Step
from pressmark.progress_event import EventListener
from pressmark.reports import Problem, ProgressEvent
from support.events import at, stages
from support.implementations import Implementation
from support.steps import killed_between_moves, observed
from support.users import OTHER, as_user, needs_users

from ..bags import tree
from ..naive import flaws

DAY = datetime.date(2026, 11, 21)
# Difficult names: line ends, percent signs, blanks at both ends, and names of tag files.
HOSTILE = (
    *(b"plain", b" leading", b"trailing ", b"two  blanks", b"tab\t", b"\tab", b"new\nline", b"\nnew", b"new\n"),
    *(b"car\rriage", b"return\r", b"crlf\r\n", b"%", b"100%", b"%0A", b"%0a", b"%25", b"%2525", b"%41", b"\n%0A"),
    *(b"~", b"~$x.docx", b"~root", b"*star", b"#comment", b"-dash", b".hidden", b"...", b"a:b", b"C:"),
    *(b"\xc3\xa9", b"\xf0\x9f\x93\x9a", b"\xe2\x80\xa8", b"\xc2\x85", b"\x0b\x0c", b"\x1c\x1d\x1e", b"\x7f\x01"),
    *(b"data", b"bagit.txt", b"manifest-md5.txt", b"tagmanifest-sha512.txt", b"'\"`$(x)", b"x" * 255),
)


def make(folder: Path, names: tuple[bytes, ...] = (b"a", b"b c", b"sub/d%", b"sub/deep/e\n")) -> Path:
    """Make a directory of small files with different contents."""
    folder.mkdir()
    for number, name in enumerate(names):
        path = os.path.join(os.fsencode(folder), name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(b"%d" % number * (number * 1000))
    return folder


def payload(folder: Path) -> dict[bytes, bytes]:
    return {path[5:]: data for path, data in tree(folder).items() if path.startswith(b"data/")}


def refused(match: str, *args: Any, **options: Any) -> list[Event]:
    """Make a call that is refused, and return its events."""
    events: list[Event] = []
    places = [one for one in args if one is not None]
    with pytest.raises(BagError, match=match) as caught:
        (create if len(places) > 1 else make_bag)(*places, progress=EventListener(events.append), **options)
    assert "\n" not in str(caught.value)
    return events


# --- in place and elsewhere -------------------------------------------------------------------------------------------

WAYS = ("in place", "copy", "hardlink", "auto")


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Path]:
    """Create a bag in one of the ways, and return its path."""

    def run(source: Path, **options: Any) -> Path:
        if request.param == "in place":
            return Path(os.fsdecode(make_bag(source, date=DAY, **options).path))
        before = tree(source)
        bag = create(source, tmp_path / "made", date=DAY, copy_mode=request.param, **options)
        assert tree(source) == before
        assert sorted(path.name for path in tmp_path.iterdir()) == sorted((source.name, "made"))
        return Path(bag.path)

    run.name = request.param  # type: ignore[attr-defined]
    return run


def test_a_bag(implementation: Implementation, way: Callable[..., Path], tmp_path: Path) -> None:
    """A new bag has the unchanged payload and correct tag files."""
    source = make(tmp_path / "s")
    before = tree(source)
    bag = way(source, algorithms=["sha512", "SHA3-256"], info=[("Contact-Name", "A"), ("Contact-Name", "B")])
    assert payload(bag) == before
    assert flaws(bag) == []
    assert validate(bag).problems == []
    assert sorted(name for name in os.listdir(bag)) == [
        "bag-info.txt",
        "bagit.txt",
        "data",
        "manifest-sha3256.txt",
        "manifest-sha512.txt",
        "tagmanifest-sha3256.txt",
        "tagmanifest-sha512.txt",
    ]
    assert (bag / "bag-info.txt").read_text().splitlines() == [
        "Contact-Name: A",
        "Contact-Name: B",
        "Bagging-Date: 2026-11-21",
        "Bag-Size: 6 KB",
        "Payload-Oxum: 6000.4",
        "Bag-Software-Agent: Pressmark 0.1.0",
    ]


def test_hostile_names(way: Callable[..., Path], tmp_path: Path) -> None:
    """Every UTF-8 name of a file or directory is preserved."""
    source = make(tmp_path / "s", HOSTILE + tuple(b"dir/%b/f" % name for name in HOSTILE))
    before = tree(source)
    bag = way(source, nested=True)
    assert payload(bag) == before
    assert flaws(bag) == []
    assert {found.kind for found in validate(bag).problems} == {"name-clash"}  # %0A and %0a
    assert b"  data/\n" not in (bag / "manifest-sha512.txt").read_bytes()


def test_deep_directories(way: Callable[..., Path], tmp_path: Path) -> None:
    """Paths far longer than a system call accepts are bagged."""
    source = make(tmp_path / "s")
    here = os.getcwd()
    try:
        os.chdir(source)
        for _ in range(12):
            os.mkdir("d" * 250)
            os.chdir("d" * 250)
        Path("f").write_bytes(b"deep")
    finally:
        os.chdir(here)
    bag = way(source)
    assert flaws(bag) == []


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm(tmp_path: Path, algorithm: str) -> None:
    """Each manifest has the algorithm's name in BagIt, in place and elsewhere."""
    source = make(tmp_path / "s")
    bags = [
        create(source, tmp_path / "t", date=DAY, algorithms=algorithm),
        make_bag(source, date=DAY, algorithms=algorithm),
    ]
    trees = [tree(Path(bag.path)) for bag in bags]
    assert trees[0] == trees[1]
    assert flaws(bags[0].path) == []
    name = "".join(character for character in algorithm if character.isalnum())
    assert b"manifest-%b.txt" % name.encode() in trees[0]


def test_an_empty_payload(way: Callable[..., Path], tmp_path: Path) -> None:
    """An empty directory makes a valid bag with an empty manifest."""
    (tmp_path / "s").mkdir()
    bag = way(tmp_path / "s")
    assert flaws(bag) == []
    assert validate(bag).problems == []
    assert (bag / "manifest-sha512.txt").read_bytes() == b""
    assert b"Payload-Oxum: 0.0\n" in (bag / "bag-info.txt").read_bytes()


def test_empty_directories(way: Callable[..., Path], tmp_path: Path) -> None:
    """Empty directories are kept with a warning each: no manifest can list them."""
    source = make(tmp_path / "s")
    for name in ("empty", "sub/empty", "z/y/x"):
        (source / name).mkdir(parents=True)
    events: list[Event] = []
    bag = way(source, progress=EventListener(events.append))
    assert all((bag / "data" / name).is_dir() for name in ("empty", "sub/empty", "z/y/x"))
    noticed = [event for event in events if isinstance(event, Problem)]
    assert [(found.kind, found.severity, found.path) for found in noticed] == [
        ("directory-empty", "warning", "empty"),
        ("directory-empty", "warning", "sub/empty"),
        ("directory-empty", "warning", "z/y/x"),
    ]


def test_events(implementation: Implementation, way: Callable[..., Path], tmp_path: Path) -> None:
    """Events announce each stage with its totals, and complete progress."""
    events: list[Event] = []
    way(make(tmp_path / "s"), progress=EventListener(events.append))
    assert stages(events)[0::4] == ["examine", "move"]
    read = "hash" if way.name == "in place" else "copy"  # type: ignore[attr-defined]
    of_reading = [event for event in events if isinstance(event, ProgressEvent) and event.stage == read]
    assert of_reading[0] == ProgressEvent(read, of_items=4, of_bytes=6000)
    assert of_reading[-1] == ProgressEvent(read, 4, 6000, of_items=4, of_bytes=6000)


def test_tag_files(way: Callable[..., Path], tmp_path: Path) -> None:
    """Additional tag files are copied to their paths and listed in the tag manifests."""
    source = make(tmp_path / "s")
    (tmp_path / "mets.xml").write_bytes(b"<mets/>")
    given = {"mets.xml": tmp_path / "mets.xml", "metadata/a/b%.xml": tmp_path / "mets.xml"}
    if way.name == "in place":  # type: ignore[attr-defined]
        bag = way(source, tag_files=given)
    else:
        bag = create(source, tmp_path / "made", tag_files=given)
        bag = tmp_path / "made"
    assert flaws(bag) == []
    assert (bag / "metadata" / "a" / "b%.xml").read_bytes() == b"<mets/>"
    assert b"  metadata/a/b%25.xml\n" in (bag / "tagmanifest-sha512.txt").read_bytes()


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("bagit.txt", "reserved"),
        ("bag-info.txt", "reserved"),
        ("fetch.txt", "reserved"),
        ("manifest-x.txt", "reserved"),
        ("tagmanifest-sha512.txt", "reserved"),
        ("data/x", "not allowed in this directory"),
        (".pressmark-bag/x", "not allowed in this directory"),
        ("../x", r"'\.\.' segment"),
        ("/x", "absolute"),
        ("a/../x", r"'\.\.' segment"),
        ("~/x", "home directory"),
        ("", "empty path"),
        ("x/", "not the path"),
        ("x//y", "not the path"),
        ("./bagit.txt", r"'\.' segment"),
        ("./manifest-sha512.txt", r"'\.' segment"),
        ("x/./y", r"'\.' segment"),
        ("fetch.txt/x", "reserved"),
        ("manifest-x.txt/y", "reserved"),
        (" x", "manifests do not preserve"),
        ("*x", "manifests do not preserve"),
        ("C:x", "drive"),
    ],
)
def test_tag_files_that_are_refused(tmp_path: Path, path: str, reason: str) -> None:
    """A tag file at a reserved or occupied path is refused."""
    source = make(tmp_path / "s")
    (tmp_path / "x").write_bytes(b"")
    before = tree(source)
    refused(reason, source, tag_files={path: tmp_path / "x"})
    assert tree(source) == before


def test_tag_files_of_one_name(tmp_path: Path) -> None:
    """Tag files with one path, from the payload, or that are not files are refused."""
    source = make(tmp_path / "s")
    (tmp_path / "x").mkdir()
    for path in (tmp_path / "y", tmp_path / "x" / "y"):
        path.write_bytes(b"")
    refused("two tag files", source, tag_files=[tmp_path / "y", tmp_path / "x" / "y"])
    refused("inside the source directory|inside the source directory", source, tag_files=[source / "a"])
    refused("regular file", source, tag_files=[tmp_path / "x"])
    refused("No such file", source, tag_files=[tmp_path / "none"])
    create(source, tmp_path / "t", tag_files=[tmp_path / "y"])
    assert (tmp_path / "t" / "y").exists()


# --- bag-info ---------------------------------------------------------------------------------------------------------


def test_elements(tmp_path: Path) -> None:
    """Given elements keep their order, and override computed ones in any case."""
    long = "É" * 60 + " b" * 40
    info = {"bagging-date": "2008-01-15", "X": ["1", "2"], "Bag-Software-Agent": "me", "Contact-Name": long}
    make_bag(make(tmp_path / "s"), info=info, date=DAY)
    lines = (tmp_path / "s" / "bag-info.txt").read_text("utf-8").splitlines()
    assert lines[:4] == ["Bagging-Date: 2008-01-15", "X: 1", "X: 2", "Bag-Software-Agent: me"]
    assert lines[4] == f"Contact-Name: {long}"
    assert sum(line.lower().startswith("bagging-date") for line in lines) == 1
    assert flaws(tmp_path / "s") == []


@pytest.mark.parametrize(
    "element",
    [("a:b", "x"), ("", "x"), (" a", "x"), ("a\n", "x"), ("A", "\ud800"), ("A", " b"), ("Payload-Oxum", "1.1")],
)
def test_elements_that_are_refused(tmp_path: Path, element: tuple[str, str]) -> None:
    """An invalid label or value is an error of the caller, before any file is read."""
    source = make(tmp_path / "s")
    with pytest.raises(ValueError, match=r"label|value|Oxum|encoded"):
        make_bag(source, info=[element])
    assert os.listdir(tmp_path) == ["s"]
    assert not (source / "bagit.txt").exists()


@pytest.mark.parametrize(
    ("length", "text"),
    [
        *((0, "0 B"), (999, "999 B"), (1000, "1 KB"), (1050, "1.1 KB"), (999_949, "999.9 KB"), (999_950, "1 MB")),
        *((42_600_000_000, "42.6 GB"), (10**15, "1 PB"), (10**21, "1000 EB")),
    ],
)
def test_sizes(length: int, text: str) -> None:
    """A size is a number and a unit, rounded to a tenth."""
    assert bag_size(length) == text


# --- refusals ---------------------------------------------------------------------------------------------------------


def test_invalid_arguments(tmp_path: Path) -> None:
    """Invalid arguments are refused."""
    source = make(tmp_path / "s")
    for options in ({"links": "keep"}, {"read": "x"}, {"threads": -1}):
        with pytest.raises(ValueError, match=next(iter(options))):
            make_bag(source, **options)  # type: ignore[arg-type]
    for name, match in (("t", "copy_mode='move'"), ("t.tar", "destination: an archive; use create_archive")):
        with pytest.raises(ValueError, match=match):
            create(source, tmp_path / name, copy_mode="move" if name == "t" else "copy")
    with pytest.raises(ValueError, match="destination: not the name of an archive"):
        create_archive(source, tmp_path / "t")
    with pytest.raises(ValueError, match="at least one source"):
        create([], tmp_path / "t")
    for algorithms in (["shake_128"], [], ["md5", "none"]):
        with pytest.raises(AlgorithmError):
            make_bag(source, algorithms=algorithms)
    assert sorted(os.listdir(source)) == ["a", "b c", "sub"]


def test_sources_that_are_not_directories(tmp_path: Path) -> None:
    """A file or a missing path cannot be bagged in place."""
    (tmp_path / "f").write_bytes(b"")
    refused("not a directory", tmp_path / "f")
    refused("No such file", tmp_path / "none")
    refused("No such file", tmp_path / "none", tmp_path / "t")
    assert os.listdir(tmp_path) == ["f"]


def test_a_source_that_is_a_bag(tmp_path: Path) -> None:
    """A bag is put into another only with ``nested``."""
    source = make(tmp_path / "s")
    make_bag(source, date=DAY)
    before = tree(source)
    refused("already a bag", source)
    refused("already a bag", source, tmp_path / "t")
    assert tree(source) == before
    create(source, tmp_path / "t", nested=True)
    make_bag(source, nested=True)
    for bag in (source, tmp_path / "t"):
        assert flaws(bag) == []
        assert payload(bag) == before
        assert flaws(bag / "data") == []


@pytest.fixture
def _socket(tmp_path: Path) -> Any:
    made = socket.socket(socket.AF_UNIX)
    here = os.getcwd()
    os.chdir(tmp_path)
    made.bind("sock")
    os.chdir(here)
    yield
    made.close()


@pytest.mark.usefixtures("_socket")
@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize(
    ("what", "kind"),
    [
        ("fifo", "file-special"),
        ("socket", "file-special"),
        ("name", "path-unsafe"),
        ("directory name", "path-unsafe"),
        ("backslash", "path-unsafe"),
        ("normalization", "name-clash"),
        ("directory normalization", "name-clash"),
        ("kelvin", "name-clash"),
        ("link", "link-inside"),
        ("link out", "link-outside"),
        ("dangling", "link-dangling"),
        ("link to directory", "link-inside"),
    ],
)
def test_unusable_payloads(tmp_path: Path, what: str, kind: str, elsewhere: bool) -> None:
    """An unusable payload is refused before anything is read or moved; all reasons are reported."""
    source = make(tmp_path / "s")
    top = os.fsencode(source)
    match what:
        case "fifo":
            os.mkfifo(source / "sub" / "pipe")
        case "socket":
            os.rename(tmp_path / "sock", source / "sock")
        case "name":
            Path(os.fsdecode(os.path.join(top, b"sub/\xff"))).write_bytes(b"")
        case "directory name":
            os.mkdir(os.path.join(top, b"\xff"))
            Path(os.fsdecode(os.path.join(top, b"\xff/x"))).write_bytes(b"")
        case "backslash":
            (source / "..\\x").write_bytes(b"")
        case "normalization":
            for form in ("NFC", "NFD"):
                (source / "sub" / unicodedata.normalize(form, "é")).write_bytes(b"")
        case "directory normalization":
            for form in ("NFC", "NFD"):
                (source / unicodedata.normalize(form, "é")).mkdir()
                (source / unicodedata.normalize(form, "é") / form).write_bytes(b"")
        case "kelvin":
            for name in ("K", "\u212a"):
                (source / name).write_bytes(b"")
        case "link":
            (source / "l").symlink_to("a")
        case "link out":
            (source / "l").symlink_to(tmp_path)
        case "dangling":
            (source / "l").symlink_to("nowhere")
        case "link to directory":
            (source / "l").symlink_to("sub")
    before = tree(source)
    names = sorted(os.listdir(source))
    events = refused("nothing was changed", source, tmp_path / "t" if elsewhere else None)
    noticed = [event for event in events if isinstance(event, Problem)]
    assert next(found.kind for found in noticed if found.severity == "error") == kind
    assert tree(source) == before
    assert sorted(os.listdir(source)) == names
    assert not (tmp_path / "t").exists()
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]
    assert stages(events) == ["examine"]


def test_all_reasons_are_reported(tmp_path: Path) -> None:
    """The error names three reasons and counts the others; the events have all of them."""
    source = make(tmp_path / "s")
    for number in range(10):
        os.mkfifo(source / f"p{number}")
    events = refused("'p0': .*; 'p1': .*; 'p2': .*; and 7 more$", source)
    assert len([event for event in events if isinstance(event, Problem)]) == 10


def test_case_collisions(way: Callable[..., Path], tmp_path: Path) -> None:
    """Names that differ only in case cause a warning."""
    source = make(tmp_path / "s", (b"a", b"A", b"\xc3\xa9", b"\xc3\x89"))
    events: list[Event] = []
    bag = way(source, progress=EventListener(events.append))
    noticed = [event for event in events if isinstance(event, Problem)]
    assert {(found.kind, found.severity) for found in noticed} == {("name-clash", "warning")}
    assert len(noticed) == 2
    assert flaws(bag) == []


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read everything")
def test_permissions(tmp_path: Path) -> None:
    """Unreadable files, directories that cannot be moved, and read-only destinations are refused."""
    source = make(tmp_path / "s")
    os.chmod(source / "a", 0)
    refused("'a'", source)
    os.chmod(source / "a", 0o600)
    os.chmod(source / "sub", 0o500)
    refused("'sub': directory not writable", source)
    os.chmod(source, 0o500)
    refused("or create the bag elsewhere", source)
    create(source, tmp_path / "t")
    assert flaws(tmp_path / "t") == []
    os.chmod(source, 0o700)
    os.chmod(source / "sub", 0o700)
    for path in (tmp_path / "t").rglob("*"):
        os.chmod(path, 0o700)


# --- links ------------------------------------------------------------------------------------------------------------


def test_links_that_are_followed_in_place(tmp_path: Path) -> None:
    """Links within the directory stay links, and their targets are listed under both names."""
    source = make(tmp_path / "s")
    (source / "l").symlink_to("sub/d%")
    (source / "sub" / "up").symlink_to("../a")
    (source / "dir").symlink_to("sub/deep")
    make_bag(source, links="follow")
    assert (source / "data" / "l").is_symlink()
    assert sorted(line.split("  ")[1] for line in (source / "manifest-sha512.txt").read_text().splitlines()) == [
        "data/a",
        "data/b c",
        "data/dir/e%0A",
        "data/l",
        "data/sub/d%25",
        "data/sub/deep/e%0A",
        "data/sub/up",
    ]


@pytest.mark.parametrize("target", ["{tmp}/x", "../x", "{tmp}/s/a", "../s/a", "sub/../../s/a"])
def test_links_that_lead_out(tmp_path: Path, target: str) -> None:
    """In place, links that lead out of the bag, also after the move into ``data``, are refused."""
    source = make(tmp_path / "s")
    (tmp_path / "x").write_bytes(b"out")
    (source / "l").symlink_to(target.format(tmp=tmp_path))
    before = sorted(os.listdir(source))
    refused("'l': ", source, links="follow")
    assert sorted(os.listdir(source)) == before


def test_links_that_are_followed_elsewhere(tmp_path: Path) -> None:
    """The targets of links are copied, also from outside; a loop is refused."""
    source = make(tmp_path / "s")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "x").write_bytes(b"out")
    (source / "l").symlink_to("a")
    (source / "m").symlink_to(tmp_path / "out")
    for mode in ("copy", "hardlink", "auto"):
        create(source, tmp_path / mode, links="follow", copy_mode=mode)
        assert flaws(tmp_path / mode) == []
        assert payload(tmp_path / mode)[b"m/x"] == b"out"
        assert not [path for path in (tmp_path / mode).rglob("*") if path.is_symlink()]
    (source / "loop").symlink_to(".")
    refused("loop", source, tmp_path / "t", links="follow")


@pytest.mark.parametrize("place", [".", "deep", "near"])
def test_links_to_a_directory_above_the_destination(tmp_path: Path, place: str) -> None:
    """A followed link to a directory that contains the destination is refused before anything is written."""
    source = make(tmp_path / "s")
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "near").symlink_to(tmp_path / "deep" / "er")
    (source / "sub" / "l").symlink_to(tmp_path / place)
    with pytest.raises(BagError, match="contains the destination") as caught:
        create(source, tmp_path / "deep" / "er" / "t", links="follow")
    assert caught.value.path == str(source / "sub" / "l")
    assert list((tmp_path / "deep" / "er").iterdir()) == []


# --- elsewhere --------------------------------------------------------------------------------------------------------


def test_several_sources(tmp_path: Path) -> None:
    """Each source is stored under its own name."""
    (tmp_path / "f").write_bytes(b"file")
    make(tmp_path / "s")
    (tmp_path / "e").mkdir()
    for number, sources in enumerate(([tmp_path / "f", tmp_path / "s", tmp_path / "e"], [tmp_path / "f"])):
        bag = create(sources, tmp_path / f"t{number}")
        assert flaws(bag.path) == []
    assert set(payload(tmp_path / "t0")) == {b"f", b"s/a", b"s/b c", b"s/sub/d%", b"s/sub/deep/e\n"}
    assert (tmp_path / "t0" / "data" / "e").is_dir()
    assert payload(tmp_path / "t1") == {b"f": b"file"}
    create(tmp_path / "f", tmp_path / "t2")
    assert payload(tmp_path / "t2") == {b"f": b"file"}


def test_sources_of_one_name(tmp_path: Path) -> None:
    """Two sources with the same normalized name are refused."""
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        make(tmp_path / folder / "s")
    refused("two sources have this name", [tmp_path / "x" / "s", tmp_path / "y" / "s"], tmp_path / "t")
    (tmp_path / "x" / unicodedata.normalize("NFC", "é")).write_bytes(b"")
    (tmp_path / "y" / unicodedata.normalize("NFD", "é")).write_bytes(b"")
    sources = [*(tmp_path / "x").glob("?"), *(tmp_path / "y").glob("??")]
    refused("two sources have this name", [path for path in sources if path.name != "s"], tmp_path / "t")
    assert sorted(os.listdir(tmp_path)) == ["x", "y"]


def test_an_empty_destination(tmp_path: Path) -> None:
    """An empty destination is refused; it is not the working directory."""
    with pytest.raises(BagError, match=r"^'': destination is empty"):
        create(make(tmp_path / "s"), "")


@pytest.mark.parametrize("elsewhere", [False, True])
def test_an_unwritable_destination(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, elsewhere: bool) -> None:
    """The error names the directory that cannot be written to, not the hidden one in it."""
    source = make(tmp_path / "s")

    def mkdir(path: bytes, *_args: object, **_options: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    def before(_base: bytes, step: Step) -> None:
        if step[0] == MAKE:
            mkdir(step[1])

    monkeypatch.setattr(os, "mkdir", mkdir)
    with observed(before), pytest.raises(BagError, match="cannot write to this directory: Permission") as caught:
        create(source, tmp_path / "t") if elsewhere else make_bag(source)
    assert caught.value.path == str(tmp_path if elsewhere else source)


@needs_users
@pytest.mark.parametrize("elsewhere", [False, True])
def test_unreadable_sources(open_folder: Path, elsewhere: bool) -> None:
    """Each unreadable file and directory is reported once with the reason, and is not called empty."""
    source = open_folder / "s"
    (source / "closed").mkdir(parents=True)
    for name in ("closed/a", "no", "ok"):
        (source / name).touch()
    (source / "no").chmod(0)
    (source / "closed").chmod(0o200)
    for path in (open_folder, source, *source.iterdir()):
        os.chown(path, OTHER, OTHER)

    def act() -> None:
        events: list[Event] = []
        with pytest.raises(BagError, match="no bag was created"):
            create("s", "t", progress=EventListener(events.append)) if elsewhere else make_bag(
                "s", progress=EventListener(events.append)
            )
        found = [event for event in events if isinstance(event, Problem)]
        assert sorted((one.kind, one.path, one.message) for one in found) == [
            ("file-unreadable", "closed", "Permission denied"),
            ("file-unreadable", "no", "Permission denied"),
        ]
        assert os.listdir() == ["s"]

    as_user(OTHER, open_folder, act)


def test_destinations_that_are_refused(tmp_path: Path) -> None:
    """An existing destination is not overwritten, and one inside a source is refused."""
    source = make(tmp_path / "s")
    (tmp_path / "f").write_bytes(b"mine")
    (tmp_path / "empty").mkdir()
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "in").symlink_to(source / "sub")
    for name in ("f", "empty", "dangling", "s"):
        refused("already exists|is inside", source, tmp_path / name)
    for name in ("s/t", "s/sub/t", "in/t"):
        refused("inside a source", source, tmp_path / name)
    refused("inside a source", [tmp_path / "f", source], source / "t")
    create(tmp_path / "f", tmp_path / "empty" / "bag")
    (tmp_path / "link").symlink_to(tmp_path / "empty" / "bag" / "data")
    for name in ("empty/bag/t", "empty/bag/data/t", "link/t"):
        refused("is inside the bag .*empty/bag'; choose another", source, tmp_path / name)
        refused("is inside the bag .*empty/bag'; choose another", [tmp_path / "f", source], tmp_path / name)
    assert not validate(tmp_path / "empty" / "bag").problems
    shutil.rmtree(tmp_path / "empty" / "bag")
    (tmp_path / "link").unlink()
    refused("directory not found; create it first", source, tmp_path / "none" / "t")
    refused("ot a directory", source, tmp_path / "f" / "t")
    assert (tmp_path / "f").read_bytes() == b"mine"
    assert sorted(os.listdir(tmp_path)) == ["dangling", "empty", "f", "in", "s"]
    assert not list((tmp_path / "empty").iterdir())


def test_status_is_kept(tmp_path: Path) -> None:
    """Copies keep permission bits and times, also of directories; special bits are dropped."""
    source = make(tmp_path / "s")
    os.chmod(source / "a", 0o4750)
    os.chmod(source / "sub" / "d%", 0o400)
    os.chmod(source / "sub" / "deep", 0o555)
    for path in (source / "a", source / "sub" / "deep", source / "sub", source):
        os.utime(path, ns=(1_000_000_007, 2_000_000_009))
    for mode in ("copy", "auto"):
        create(source, tmp_path / mode, copy_mode=mode)
        data = tmp_path / mode / "data"
        assert stat.S_IMODE((data / "a").stat().st_mode) == 0o750
        assert stat.S_IMODE((data / "sub" / "d%").stat().st_mode) == 0o400
        assert stat.S_IMODE((data / "sub" / "deep").stat().st_mode) == 0o555
        assert {(data / name).stat().st_mtime_ns for name in ("a", "sub/deep", "sub", ".")} == {2_000_000_009}
    shutil.rmtree(tmp_path / "copy")


def test_the_copy_mode_is_an_event(tmp_path: Path) -> None:
    """An event names the copy mode."""
    source = make(tmp_path / "s")
    for mode in ("copy", "hardlink", "auto"):
        events: list[Event] = []
        create(source, tmp_path / mode, copy_mode=mode, progress=EventListener(events.append))
        said = [event.mode for event in events if isinstance(event, Copying)]
        assert said == [mode] if mode != "auto" else said in (["copy"], ["reflink"])
    assert (source / "a").stat().st_nlink == 2


def test_a_killed_run_is_cleaned_up_after(tmp_path: Path) -> None:
    """Leftovers of a killed run are removed by the next, whatever their permissions."""
    source = make(tmp_path / "s")
    os.chmod(source / "sub", 0o555)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NewPath, "__exit__", lambda hidden, *_error: hidden.leave())
        patch.setattr("pressmark.bagit.writing.write.flush_staging", lambda _hidden: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            create(source, tmp_path / "t")
    (left,) = [path for path in tmp_path.iterdir() if path.name.startswith(".pressmark-")]
    assert (left / "bag" / "data" / "sub").is_dir()
    create(source, tmp_path / "t")
    assert flaws(tmp_path / "t") == []
    assert sorted(os.listdir(tmp_path)) == ["s", "t"]
    os.chmod(tmp_path / "t" / "data" / "sub", 0o755)


def test_a_run_killed_after_its_end(tmp_path: Path) -> None:
    """If only the cleaning was missing, another call reports the name as occupied."""
    source = make(tmp_path / "s")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NewPath, "__exit__", lambda hidden, *_error: hidden.abandon())
        create(source, tmp_path / "t")
    assert len(os.listdir(tmp_path)) == 3
    refused("already exists", source, tmp_path / "t", algorithms="md5")
    assert sorted(os.listdir(tmp_path)) == ["s", "t"]
    refused("already exists", source, tmp_path / "t")


def test_the_same_call_after_its_end(tmp_path: Path) -> None:
    """The same call finds the bag that it had created."""
    source = make(tmp_path / "s")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NewPath, "__exit__", lambda hidden, *_error: hidden.abandon())
        create(source, tmp_path / "t")
    events: list[Event] = []
    bag = create(source, tmp_path / "t", progress=EventListener(events.append))
    assert (bag.path, events) == (str(tmp_path / "t"), [ProgressEvent("recover")])
    assert sorted(os.listdir(tmp_path)) == ["s", "t"]


def test_too_little_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without enough disk space, no copy begins."""
    source = make(tmp_path / "s")
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage._replace(free=5999))
    refused("6000 bytes needed, 5999 available", source, tmp_path / "t")
    assert os.listdir(tmp_path) == ["s"]
    create(source, tmp_path / "t", copy_mode="hardlink")


# --- changes and errors during a run ----------------------------------------------------------------------------------


@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize("what", ["append", "rewrite", "add", "remove", "replace"])
def test_changes_meanwhile(tmp_path: Path, what: str, elsewhere: bool) -> None:
    """A file that changes after it was read is detected, and nothing is moved."""
    source = make(tmp_path / "s")

    def change() -> None:
        match what:
            case "append":
                with open(source / "b c", "ab") as file:
                    file.write(b"more")
            case "rewrite":
                os.utime(source / "b c", ns=(1, 1))
            case "add":
                (source / "b c2").write_bytes(b"")
            case "remove":
                (source / "b c").unlink()
            case "replace":
                (source / "sub" / "n").write_bytes(b"x" * 1000)
                os.utime(source / "sub" / "n", ns=(1, 1))
                os.rename(source / "sub" / "n", source / "b c")

    before = tree(source)
    on_event = at("check", change)
    with pytest.raises(BagError, match="changed, added or removed while the bag was being created"):
        create(source, tmp_path / "t", progress=EventListener(on_event)) if elsewhere else make_bag(
            source, progress=EventListener(on_event)
        )
    assert os.listdir(tmp_path) == ["s"]
    assert tree(source).keys() | {b"b c", b"b c2"} == before.keys() | {b"b c2", b"b c"}
    assert sorted({"a", "sub"} & set(os.listdir(source))) == ["a", "sub"]


def test_a_name_that_appears_at_the_last_moment(tmp_path: Path) -> None:
    """A file that appears after the other files were moved makes all of them move back."""
    source = make(tmp_path / "s")
    before = tree(source)

    def appear(_base: bytes, step: Step) -> None:
        if step[0] == ALONE:
            (source / "late").write_bytes(b"late")

    with observed(appear):
        refused("late': changed", source)
    assert tree(source) == {**before, b"late": b"late"}
    make_bag(source)
    assert flaws(source) == []


@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        *(("eio-x", "Input/output error"), ("late-x", "Input/output error")),
        *(("append-x", "size changed"), ("truncate-x", "size changed"), ("rewrite-x", "modified while")),
    ],
)
def test_files_that_fail(
    implementation: Implementation, faults: str, tmp_path: Path, name: str, reason: str, elsewhere: bool
) -> None:
    """An unreadable or changing file is named, the others are read, and nothing is changed."""
    source = make(tmp_path / "s")
    (source / name).write_bytes(b"x" * 300_000)
    names = sorted(os.listdir(source))
    code = (
        "import sys\nfrom pressmark.bagit.bag import create, make_bag\nfrom pressmark.errors import BagError\n"
        "from pressmark.progress_event import EventListener\n"
        "def say(event):\n    print(getattr(event, 'items', None))\n"
        "try:\n    call = create if sys.argv[2:] else make_bag\n    call(*sys.argv[1:], progress=EventListener(say))\n"
        "except BagError as error:\n    print(error)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(source), *([str(tmp_path / "t")] if elsewhere else [])],
        env=environment(PRESSMARK_IMPLEMENTATION=str(implementation), LD_PRELOAD=faults),
        capture_output=True,
        text=True,
        check=True,
    )
    lines = run.stdout.splitlines()
    assert f"'{name}': " in lines[-1]
    assert reason in lines[-1]
    assert "nothing was changed" in lines[-1]
    assert "5" in lines
    assert sorted(os.listdir(source)) == names
    assert os.listdir(tmp_path) == ["s"]


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, elsewhere: bool) -> None:
    """If the disk is full, nothing is changed and nothing is left behind."""
    source = make(tmp_path / "s")
    before = tree(source)
    opened = builtins.open

    def full(path: Any, mode: str = "r", *args: Any, **options: Any) -> Any:
        if mode == "xb" and os.path.basename(os.fsencode(path)) == b"bag-info.txt":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        return opened(path, mode, *args, **options)

    def full_step(_base: bytes, step: Step) -> None:
        if step[0] == WRITE and os.path.basename(step[1]) == b"bag-info.txt":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(builtins, "open", full)
    with observed(full_step):
        refused("No space left on device; n", source, tmp_path / "t" if elsewhere else None)
    monkeypatch.setattr(builtins, "open", opened)
    assert tree(source) == before
    assert os.listdir(tmp_path) == ["s"]
    assert STAGING not in os.listdir(os.fsencode(source))


def test_a_ledger(tmp_path: Path) -> None:
    """Files in the ledger are not read again."""
    source = make(tmp_path / "s")
    with Ledger(tmp_path / "l", ["sha512", "md5"], ["s"]) as ledger, pytest.raises(BagError):
        make_bag(
            source, algorithms=["sha512", "md5"], ledger=ledger, progress=EventListener(_failing_at_the_end(source))
        )
    (source / "late").unlink()
    events: list[Event] = []
    with Ledger(tmp_path / "l", ["sha512", "md5"], ["s"]) as ledger:
        assert ledger.records == 4
        make_bag(source, algorithms=["sha512", "md5"], ledger=ledger, progress=EventListener(events.append))
    assert not any(event.bytes for event in events if isinstance(event, ProgressEvent))
    assert flaws(source) == []


def _failing_at_the_end(source: Path) -> Callable[[Event], None]:
    return at("check", lambda: (source / "late").write_bytes(b""))


@pytest.mark.parametrize("read", ["parallel", "sequential"])
@pytest.mark.parametrize("threads", [1, 3])
def test_threads_and_order(tmp_path: Path, read: str, threads: int) -> None:
    """The bag does not depend on the number of threads or the order of reading."""
    source = make(tmp_path / "s", tuple(b"%03d" % number for number in range(100)))
    create(source, tmp_path / "t", date=DAY, threads=threads, read=read, algorithms=["md5"])
    make_bag(source, date=DAY, threads=threads, read=read, algorithms=["md5"])
    assert tree(tmp_path / "t") == tree(source)
    lines = (source / "manifest-md5.txt").read_text().splitlines()
    assert [line.split("  ")[1] for line in lines] == [f"data/{number:03}" for number in range(100)]


def test_another_request_than_was_interrupted(tmp_path: Path) -> None:
    """Another call also finishes an interrupted run, but is then refused."""
    for number, options in enumerate(({}, {"algorithms": "md5"})):
        source = make(tmp_path / f"s{number}")
        interrupt(source)
        events: list[Event] = []
        if options:
            with pytest.raises(BagError, match="now a bag, but created with different options"):
                make_bag(source, **options)  # type: ignore[arg-type]
        else:
            make_bag(source, progress=EventListener(events.append))
            assert events == [ProgressEvent("recover")]
        assert flaws(source) == []


def test_killed_in_the_last_moment(tmp_path: Path) -> None:
    """After a kill just before the end, the bag is valid, and the same call removes the hidden directory."""
    source = make(tmp_path / "s")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(changes, "_remove_hidden", lambda _changes: None)
        make_bag(source)
    assert [(one.kind, one.severity) for one in validate(source).problems] == [("change-unfinished", "warning")]
    with pytest.raises(BagError, match="already a bag"):
        make_bag(source)
    assert validate(source).problems == []


def interrupt(source: Path) -> None:
    """Stop a run between its moves, as kill -9 does."""
    with killed_between_moves(STAGING):
        make_bag(source)
    assert not (source / "bagit.txt").exists()
    journal = json.loads((source / os.fsdecode(STAGING) / "journal").read_bytes())
    assert journal["request"]["command"] == "create"


def test_an_interrupted_source_is_not_copied(tmp_path: Path) -> None:
    """A directory with an interrupted change is refused as a source."""
    source = make(tmp_path / "s")
    interrupt(source)
    refused("a change of this directory was interrupted; run that command again first", source, tmp_path / "t")
    make_bag(source)
    create(source, tmp_path / "t", nested=True)


def test_relative_paths_and_links_to_the_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The directory may be given by any path."""
    make(tmp_path / "s")
    (tmp_path / "l").symlink_to("s")
    monkeypatch.chdir(tmp_path)
    assert make_bag("l").path == "l"
    assert flaws(tmp_path / "s") == []
    make(tmp_path / "s2")
    monkeypatch.chdir(tmp_path / "s2")
    make_bag(".")
    create(b"../s", "../t", nested=True)
    assert flaws(tmp_path / "s2") == []
    assert flaws(tmp_path / "t") == []


@pytest.mark.parametrize("few", [1, 1000])
def test_new_bag_equals_opened_bag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    """The bag that is returned is what opening it returns, however many of its files were kept in memory."""
    monkeypatch.setattr("pressmark.bagit.writing.payload.FEW", few)
    info = [("External-Description", "long " * 60), ("Contact-Name", "A"), ("Contact-Name", "B\nC")]
    made = make_bag(make(tmp_path / "b"), info=info, algorithms=["sha512", "md5"])
    found = Bag.open(tmp_path / "b")
    assert made.path == found.path
    assert (made.version, made.encoding) == (found.version, found.encoding)
    assert (made.info.elements, made.info.to_bytes()) == (found.info.elements, found.info.to_bytes())
    assert (made.info_name, made.manifests, made.tag_manifests) == (
        found.info_name,
        found.manifests,
        found.tag_manifests,
    )
    assert validate(made.path).ok
    with made.payload as listing:
        assert len(listing) == 4


JUNK = (b".DS_Store", b"a", b"sub/.DS_Store", b"sub/__MACOSX/x", b"sub/b", b"only/.DS_Store")


def excluded_of(events: list[Event]) -> list[tuple[str, str]]:
    found = [event for event in events if isinstance(event, Problem)]
    return [(problem.path, problem.severity) for problem in found if problem.kind == "excluded"]


def test_excluded_names_are_not_copied(tmp_path: Path) -> None:
    """Matching files and directories are no payload, each is an event, and the source is unchanged."""
    source = make(tmp_path / "s", JUNK)
    os.mkfifo(source / "sub" / ".fifo")
    events: list[Event] = []
    create(source, tmp_path / "t", exclude=[".*", "__MACOSX"], date=DAY, progress=EventListener(events.append))
    assert not flaws(tmp_path / "t")
    assert {path for path in tree(tmp_path / "t") if path.startswith(b"data/")} == {b"data/a", b"data/sub/b"}
    assert excluded_of(events) == [
        (path, "warning") for path in (".DS_Store", "only/.DS_Store", "sub/.DS_Store", "sub/.fifo", "sub/__MACOSX")
    ]
    assert (source / "sub" / "__MACOSX" / "x").exists()
    # A source that is named is not compared.
    create([source / ".DS_Store"], tmp_path / "u", exclude=".DS_Store", date=DAY)
    assert (tmp_path / "u" / "data" / ".DS_Store").exists()


@pytest.mark.parametrize("small", [False, True])
def test_excluded_names_are_refused_in_place(tmp_path: Path, small: bool) -> None:
    """In place, an excluded file would stay in the payload; without one, the bag is created."""
    source = make(tmp_path / "s", JUNK)
    for path in source.rglob("*") if small else ():  # a directory of small files is read by a kernel
        if path.is_file():
            path.write_bytes(b"x")
    before = tree(source)
    events: list[Event] = []
    with pytest.raises(BagError, match="would stay in the directory; create the bag in another directory"):
        make_bag(source, exclude=[".DS_Store", "__MACOSX"], progress=EventListener(events.append))
    assert excluded_of(events) == [
        (path, "error") for path in (".DS_Store", "only/.DS_Store", "sub/.DS_Store", "sub/__MACOSX")
    ]
    assert tree(source) == before
    make_bag(source, exclude=["*.tmp"], date=DAY)
    assert not flaws(source)


def test_excluded_names_are_deleted_in_place(tmp_path: Path) -> None:
    """Deleting is part of the change: the bag is the bag of the other files."""
    source, other = make(tmp_path / "s", JUNK), make(tmp_path / "o", JUNK)
    (source / "link.tmp").symlink_to(tmp_path / "o")
    events: list[Event] = []
    globs = [".DS_Store", "__MACOSX", "*.tmp"]
    make_bag(source, exclude=globs, delete_excluded=True, date=DAY, progress=EventListener(events.append))
    create(other, tmp_path / "t", exclude=globs, date=DAY)
    assert tree(source) == tree(tmp_path / "t")
    assert ("sub/__MACOSX", "warning") in excluded_of(events)
    assert (source / "data" / "only").is_dir()
    assert (other / ".DS_Store").exists()
    assert not (source / os.fsdecode(STAGING)).exists()


def test_a_glob_does_not_match_the_staging_directory(tmp_path: Path) -> None:
    """The hidden directory of the run itself is not deleted."""
    source = make(tmp_path / "s", JUNK)
    make_bag(source, exclude=".*", delete_excluded=True, tag_files=[make(tmp_path / "n") / "a"], date=DAY)
    assert not flaws(source)
    assert set(tree(source)) >= {b"data/a", b"data/sub/b", b"data/sub/__MACOSX/x"}


@pytest.mark.parametrize("target", ["__MACOSX/x", "__MACOSX"])
def test_a_link_to_an_excluded_file(tmp_path: Path, target: str) -> None:
    """A link whose target would be deleted is refused."""
    source = make(tmp_path / "s", (b"a", b"__MACOSX/x"))
    (source / "link").symlink_to(target)
    before = tree(source)
    with pytest.raises(BagError, match="symbolic link to a file that is left out; move it elsewhere"):
        make_bag(source, exclude="__MACOSX", delete_excluded=True, links="follow")
    assert tree(source) == before


def test_an_excluded_file_behind_a_link(tmp_path: Path) -> None:
    """An excluded file that a followed link also leads to is deleted once."""
    source = make(tmp_path / "s", (b"d/a", b"d/.DS_Store"))
    (source / "link").symlink_to("d")
    make_bag(source, exclude=".DS_Store", delete_excluded=True, links="follow", date=DAY)
    assert not (source / "data" / "d" / ".DS_Store").exists()
    assert validate(source).ok


@pytest.mark.parametrize("delete", [False, True])
def test_an_excluded_file_that_appears_meanwhile(tmp_path: Path, delete: bool) -> None:
    """A file that appears after the check is neither deleted unseen nor left in the payload."""
    source = make(tmp_path / "s", (b".DS_Store", b"a", b"sub/b") if delete else (b"a", b"sub/b"))

    appear = at("tag", lambda: (source / "sub" / ".DS_Store").write_bytes(b"new"))
    with pytest.raises(BagError, match="changed, added or removed"):
        make_bag(source, exclude=".DS_Store", delete_excluded=delete, progress=EventListener(appear))
    assert (source / "sub" / ".DS_Store").exists()
    assert not (source / "bagit.txt").exists()


def test_options_of_exclusions(tmp_path: Path) -> None:
    """A glob is a name."""
    source = make(tmp_path / "s")
    with pytest.raises(ValueError, match="slash"):
        make_bag(source, exclude=["sub/a"])
    assert set(tree(source)) == {b"a", b"b c", b"sub/d%", b"sub/deep/e\n"}


@needs_users
@pytest.mark.parametrize("closed", ["d", "d/__MACOSX"])
def test_excluded_names_that_cannot_be_deleted(open_folder: Path, closed: str) -> None:
    """A file in a directory that is not writable, or such a directory, is refused before anything is written."""
    source = open_folder / "s"
    (source / "d" / "__MACOSX").mkdir(parents=True)
    (source / "a").touch()
    for path in (open_folder, *open_folder.rglob("*")):
        os.chown(path, OTHER, OTHER)
    (source / closed).chmod(0o500)

    def act() -> None:
        events: list[Event] = []
        with pytest.raises(BagError, match="no permission to delete it; change the permissions"):
            make_bag("s", exclude=["__MACOSX"], delete_excluded=True, progress=EventListener(events.append))
        assert ("d/__MACOSX", "error") in excluded_of(events)
        assert sorted(os.listdir("s")) == ["a", "d"]
        assert os.listdir("s/d") == ["__MACOSX"]

    as_user(OTHER, open_folder, act)
