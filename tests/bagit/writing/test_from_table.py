"""Bags from a table: one a row, bad rows beside good ones, and the same call after an interruption."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

import pressmark
from pressmark.bagit import Bag, TableBag, create_from_table
from pressmark.bagit.changes import Event
from pressmark.bagit.writing import from_table
from pressmark.errors import BagError, TableError
from support.memory_addresses import use_memory

from ..bags import tree
from ..test_profile import profile


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sources, in the working directory."""
    for name in ("a", "b", "c"):
        (tmp_path / "in" / name).mkdir(parents=True)
        (tmp_path / "in" / name / "x.txt").write_text(name)
    (tmp_path / "in" / "one.txt").write_text("one")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(*lines: str) -> str:
    Path("t.csv").write_text("".join(f"{line}\n" for line in lines))
    return "t.csv"


def run(table: str, destination: str = "out", **how: Any) -> list[TableBag]:
    return list(create_from_table(table, destination, **how))


def statuses(found: list[TableBag]) -> list[tuple[int, str, str]]:
    return [(one.row, one.status, one.path) for one in found]


TABLE = (
    "path,Contact-Name,External-Identifier,Contact-Name",
    'in/a,Ada,1,"Grace\nHopper"',
    "in/none,,2,",
    "in/b,,,",
    "in/one.txt,Joe,3,",
)


@pytest.mark.parametrize("threads", [1, 3])
def test_a_bag_of_each_row(files: Path, threads: int) -> None:
    """The columns are elements in their order; an empty cell is none; a row that fails does not affect the others."""
    found = run(write(*TABLE), info={"Source-Organization": "Us"}, threads=threads)
    assert statuses(found) == [
        (2, "created", "out/a"),
        (4, "failed", "out/none"),
        (5, "created", "out/b"),
        (6, "created", "out/one.txt"),
    ]
    assert str(found[1].error) == "'in/none': No such file or directory"
    assert found[0].bag is not None
    assert found[0].bag.info.elements[:4] == [
        ("Source-Organization", "Us"),
        ("Contact-Name", "Ada"),
        ("External-Identifier", "1"),
        ("Contact-Name", "Grace\nHopper"),
    ]
    assert "Contact-Name" not in Bag.open("out/b").info
    assert (files / "out" / "one.txt" / "data" / "one.txt").read_text() == "one"
    assert all(Bag.open(one.path).is_valid() for one in found if one.status == "created")
    assert sorted(path.name for path in Path("out").iterdir()) == ["a", "b", "one.txt"]


def test_the_same_call_again(files: Path) -> None:
    """Bags that exist are not created again, nor changed; the missing ones are created."""
    run(write(*TABLE))
    before = tree(files / "out")
    (files / "in" / "none").mkdir()
    (files / "in" / "none" / "y").write_text("y")
    found = run("t.csv")
    assert [one.status for one in found] == ["exists", "created", "exists", "exists"]
    assert {path: data for path, data in tree(files / "out").items() if not path.startswith(b"none/")} == before
    (files / "in" / "none" / "y").write_text("changed, and not read again")
    assert [one.status for one in run("t.csv")] == ["exists"] * 4


def test_what_is_in_the_way(files: Path) -> None:
    """What is not the bag of the row is neither taken for it nor replaced."""
    (files / "out" / "a").mkdir(parents=True)
    pressmark.bagit.create("in/b", "out/b", {"Contact-Name": "another"})
    before = tree(files / "out")
    found = run(write("path,Contact-Name", "in/a,Ada", "in/b,Joe"))
    assert [str(one.error) for one in found] == [
        "'out/a': destination already exists, and cannot be read as a bag:"
        " bagit.txt not found; specify the base directory of a bag",
        "'out/b': a bag with other elements in bag-info.txt exists; move it elsewhere, or change them"
        " with pressmark bag update",
    ]
    assert tree(files / "out") == before


CLASHES = [
    (["path", "in/a", "in/none/A"], {}),
    (["path,name", "in/a,x", "in/b,X"], {"name_column": "name"}),
    (["path", "in/a", "in/b", "./in/a/"], {"archive": "zip"}),
]


@pytest.mark.parametrize(("lines", "how"), CLASHES)
def test_names_that_clash(files: Path, lines: list[str], how: dict[str, str]) -> None:
    """Two rows with one name of a bag are an error before anything is created."""
    with pytest.raises(TableError, match="an earlier row has the same name for its bag") as caught:
        create_from_table(write(*lines), "out", **how)  # type: ignore[arg-type]
    assert caught.value.line == len(lines)
    assert not Path("out").exists()


def test_a_column_of_names(files: Path) -> None:
    """The names of the bags; the column is an element as well."""
    rows = ("file,External-Identifier", "in/a,one", "in/b,", "in/c,x/y", "in/a,..", "in/b,b.tar", "in/c,.pressmark-x")
    found = run(write(*rows), column="file", name_column="External-Identifier")
    assert [one.status for one in found] == ["created", *["failed"] * 5]
    assert Bag.open("out/one").info["External-Identifier"] == "one"
    assert [str(one.error) for one in found[1:]] == [
        "t.csv:3: name of the bag '': empty",
        "t.csv:4: name of the bag 'x/y': contains a slash or NUL",
        "t.csv:5: name of the bag '..': not the name of a file",
        "t.csv:6: name of the bag 'b.tar': the ending '.tar' is that of an archive; use archive= to create archives",
        "t.csv:7: name of the bag '.pressmark-x': reserved",
    ]


@pytest.mark.parametrize(("header", "value", "reason"), [
    ("Payload-Oxum", "1.1", "Payload-Oxum is computed; omit it"),
    ("A:b", "1", "label 'A:b': label contains a colon or a line break"),
    ("Title", " x", "Title: a line of the value begins with white space"),
])  # fmt: skip
def test_elements_that_cannot_be_written(files: Path, header: str, value: str, reason: str) -> None:
    """The row fails, with its number and the column."""
    [one] = run(write(f"path,{header}", f"in/a,{value}"))
    assert str(one.error).startswith(f"t.csv:2: {reason}")
    assert not list(Path("out").iterdir())


def test_archives_and_a_profile(files: Path) -> None:
    """A profile is checked for each row; one that requires archives needs the format."""
    wanted = profile(
        Bag_Info={"Contact-Name": {"required": True}, "Kind": {"required": True, "values": ["x"]}},
        Serialization="required",
        Accept_Serialization=["application/zip"],
        Manifests_Required=["md5"],
    )
    table = write("path,Contact-Name", "in/a,Ada", "in/b,", "in/c,Joe")
    with pytest.raises(BagError, match="the profile requires serialized bags; choose a format"):
        create_from_table(table, "out", profile=wanted)
    found = run(table, profile=wanted, archive="zip")
    assert statuses(found) == [
        (2, "created", "out/a.zip"),
        (3, "failed", "out/b.zip"),
        (4, "created", "out/c.zip"),
    ]
    reason = "bag-info.txt lacks Contact-Name; fill the column of each in row 3, or add the column"
    assert str(found[1].error).endswith(f": {reason}")
    assert Bag.open("out/a.zip").validate(profile=wanted).problems == []
    assert [one.status for one in run(table, profile=wanted, archive="zip")] == ["exists", "failed", "exists"]


def test_in_object_storage(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bags are trees of keys; the same call creates the missing ones."""
    bucket = use_memory(monkeypatch)
    table = write("path,Title", "in/a,A", "in/none,", "in/b,B")
    calls: list[str] = []
    bucket.on_request = lambda call, _key: calls.append(call)
    assert [one.status for one in run(table, "s3://memory/shelf")] == ["created", "failed", "created"]
    assert calls.count("complete") == 1  # of one probe: small files have no parts
    bucket.delete([b"shelf/b/bagit.txt"])  # as an interrupted run leaves it
    assert [one.status for one in run(table, "s3://memory/shelf")] == ["exists", "failed", "created"]
    assert Bag.open("s3://memory/shelf/b").info["Title"] == "B"
    assert all(one.ok for one in map(pressmark.bagit.validate, ("s3://memory/shelf/a", "s3://memory/shelf/b")))


def test_json_lines(files: Path) -> None:
    """A list of values is a repeated element."""
    Path("t.jsonl").write_text(json.dumps({"path": "in/a", "Contact-Name": ["Ada", "Joe"], "Bag-Count": "1 of 1"}))
    assert [one.status for one in run("t.jsonl")] == ["created"]
    assert Bag.open("out/a").info["Contact-Name"] == ["Ada", "Joe"]


def test_problems_of_a_row(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Warnings and errors about files are in the result of the row, up to a limit."""
    monkeypatch.setattr(from_table, "KEPT", 2)
    for number in range(4):
        (files / "in" / "a" / f"empty{number}").mkdir()
    (files / "in" / "b" / "link").symlink_to("x.txt")
    found = run(write("path", "in/a", "in/b", "in/c"))
    assert [[one.kind for one in result.problems] for result in found] == [["directory-empty"] * 2, ["link-inside"], []]
    assert [one.status for one in found] == ["created", "failed", "created"]
    assert run("t.csv", "again", links="follow")[1].status == "created"


def test_progress_is_that_of_all_bags(files: Path) -> None:
    """It counts the files of bags that are complete and of those that are being created."""
    events: list[Any] = []
    run(write("path", "in/a", "in/b", "in/c"), progress=events.append, threads=2)
    assert [(one.items, one.bytes) for one in events[-1:]] == [(3, 3)]
    assert [one.items for one in events] == sorted(one.items for one in events)


def test_an_interruption(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Closing the results ends the bags that are being created; nothing half-made is left; the same call continues."""
    started = threading.Event()
    end = threading.Event()
    listener = from_table._Total.listener

    def slow(total: from_table._Total, row: int) -> Any:
        hear = listener(total, row)

        def wait(event: Event) -> None:
            if row > 2:
                started.set()
                end.wait(60)
            hear(event)

        return wait

    monkeypatch.setattr(from_table._Total, "listener", slow)
    results = create_from_table(write("path", "in/a", "in/b", "in/c"), "out", threads=2)
    assert next(results).status == "created"
    assert started.wait(60)
    threading.Timer(0.2, end.set).start()
    results.close()  # type: ignore[attr-defined]
    assert sorted(path.name for path in Path("out").iterdir()) == ["a"]
    monkeypatch.undo()
    monkeypatch.chdir(files)
    assert [one.status for one in run("t.csv")] == ["exists", "created", "created"]


def test_arguments(files: Path) -> None:
    """What is wrong with the call is an error of the call, before anything is created."""
    table = write("path", "in/a")
    with pytest.raises(ValueError, match="archive='7z'"):
        create_from_table(table, "out", archive="7z")
    with pytest.raises(TableError, match="column 'x' not found"):
        create_from_table(table, "out", column="x")
    with pytest.raises(TableError, match="column 'x' not found"):
        create_from_table(table, "out", name_column="x")
    with pytest.raises(TableError, match="No such file"):
        create_from_table("none.csv", "out")
    assert not Path("out").exists()
    with pytest.raises(BagError, match="cannot create this directory"):
        create_from_table(table, "in/one.txt/out")
