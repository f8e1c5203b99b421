"""Lists of identifiers, and maps from old ones to new ones."""

from __future__ import annotations

import errno
import gzip
import json
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from pressmark import migrate, stores
from pressmark.errors import JobError, MigrationError
from pressmark.migrate.id_index import IdentifierIndex

from ..stores_to_migrate import known_rows, layout_or_none, made, refused, targets, warnings

IDS = ["ark:/13030/xt12t3", "mdp.39015013764785", "uc1.$b793221", "coo.31924003873721"]


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


# --- lists ------------------------------------------------------------------------------------------------------------


def test_foreign_files(source: Path, tmp_path: Path) -> None:
    """Unsupported files are refused before a work folder is created."""
    made(source, IDS)
    for what, name in (("ids", "ids.xlsx"), ("new_ids", "map.xlsx"), ("new_ids", "map.jsonl"), ("ids", "ids")):
        path = written(tmp_path / name, b"PK\x03\x04")
        with pytest.raises(MigrationError, match=rf"{name}: "):
            migrate.plan(source, tmp_path / "root", to="bags", work=tmp_path / "work", **{what: path})
        assert not (tmp_path / "work").exists()


@pytest.mark.parametrize("what", ["ids", "new_ids"])
def test_a_list_that_is_not_there(source: Path, tmp_path: Path, what: str) -> None:
    """A missing list leaves no work folder."""
    made(source, IDS)
    with pytest.raises(MigrationError, match=r"no-list: No such file or directory; use a readable file"):
        migrate.plan(source, tmp_path / "root", to="bags", work=tmp_path / "work", **{what: tmp_path / "no-list"})
    assert not (tmp_path / "work").exists()


def test_a_part_of_the_source(source: Path, tmp_path: Path) -> None:
    made(source, IDS)
    wanted = [IDS[2], IDS[0], "not-there", IDS[2], "\udcfe"]
    plan = migrate.plan(source, tmp_path / "root", to="ocfl", layout="0003", ids=wanted)
    assert [entry.id for entry in plan.entries()] == [IDS[2], IDS[0]]
    assert (plan.objects, plan.missing) == (2, 2)
    assert plan.warnings == {"list-repeated": 1, "missing": 2}
    assert [(row.source_id, row.status) for row in known_rows(plan)] == [
        ("not-there", "source_missing"),
        ("\udcfe", "source_missing"),
    ]


@pytest.mark.parametrize("kind", ["pairtree", "vitro", "ocfl", "bags"])
def test_a_list_gives_what_a_walk_gives(kind: str, tmp_path: Path) -> None:
    how = {"layout": layout_or_none("0003")} if kind == "ocfl" else {}
    source = made(tmp_path / "source", IDS, kind=kind, **how)
    all_ = migrate.plan(source, tmp_path / "root", to="bags", layout="0004", work=tmp_path / "walk")
    some = migrate.plan(source, tmp_path / "root", to="bags", layout="0004", work=tmp_path / "list", ids=IDS)
    found, expected = (sorted(one.entries(), key=lambda entry: entry.id) for one in (some, all_))
    assert found == expected
    assert migrate.plan(source, tmp_path / "root", to="bags", ids=[*IDS[:2], "none"]).missing == 1


def test_a_source_that_says_no_layout(tmp_path: Path) -> None:
    source = made(tmp_path / "source", IDS, kind="ocfl", layout=layout_or_none("0004"))
    (source / "ocfl_layout.json").unlink()
    plan = migrate.plan(source, tmp_path / "root", to="ocfl", layout="0003", ids=[IDS[1], "none"])
    assert [entry.id for entry in plan.entries()] == [IDS[1]]
    assert plan.missing == 1


def test_listed_objects_that_are_improper(source: Path, tmp_path: Path) -> None:
    made(source, ["good", "bare"])
    bare = source / "pairtree_root" / "ba" / "re"
    os.rename(bare / "bare" / "data.txt", bare / "data.txt")
    (bare / "bare").rmdir()
    plan = migrate.plan(source, tmp_path / "root", to="pairtree", ids=["good", "bare"])
    assert (plan.objects, plan.invalid) == (1, 1)
    assert migrate.plan(source, tmp_path / "root", to="pairtree", ids=["good", "bare"], improper="take").objects == 2


def test_objects_of_dialects(source: Path, tmp_path: Path) -> None:
    stores.create("pairtree", source)
    (source / "pairtree_root" / "a^" / "9d" / "b" / "object").mkdir(parents=True)
    (source / "pairtree_root" / "a^" / "9d" / "b" / "object" / "file").write_text("x")
    plan = migrate.plan(source, tmp_path / "root", to="pairtree", source_options={"dialect": "unt"}, ids=["a b"])
    (entry,) = plan.entries()
    assert (entry.source, entry.encapsulation) == ("pairtree_root/a^/9d/b", "object")


def test_a_list_that_cannot_be_read(source: Path, tmp_path: Path) -> None:
    made(source, IDS)
    error, _ = refused(source, tmp_path / "root", to="pairtree", ids=written(tmp_path / "ids.csv", b"a\n1\n"))
    assert "not found" in str(error)
    error, _ = refused(source, tmp_path / "root", to="pairtree", ids=tmp_path / "nothing.txt")
    assert "nothing.txt: No such file" in str(error)
    damaged = written(tmp_path / "ids.txt.gz", b"one\n" * 1000)
    damaged.write_bytes(damaged.read_bytes()[:-9])
    error, _ = refused(source, tmp_path / "root", to="pairtree", ids=damaged)
    assert "ids.txt.gz: broken gzip data: unexpected end" in str(error)


# --- maps -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("map.tsv", "mdp.39015013764785\tark:/1/b\nuc1.$b793221\tark:/1/c\n"),
        ("map.csv", 'old,new\nmdp.39015013764785,"ark:/1/b"\nuc1.$b793221,ark:/1/c\n'),
        ("map", "source_id,id\r\nmdp.39015013764785,ark:/1/b\r\nuc1.$b793221,ark:/1/c"),
        ("map.csv.gz", "mdp.39015013764785,ark:/1/b\nmdp.39015013764785,ark:/1/b\nuc1.$b793221,ark:/1/c\n"),
    ],
)
def test_objects_get_other_identifiers(source: Path, tmp_path: Path, name: str, content: str) -> None:
    made(source, IDS)
    given_ = written(tmp_path / name, content.encode())
    plan = migrate.plan(source, tmp_path / "root", to="pairtree", new_ids=given_)
    assert {entry.source_id: entry.id for entry in plan.entries()} == {
        IDS[0]: IDS[0],
        IDS[1]: "ark:/1/b",
        IDS[2]: "ark:/1/c",
        IDS[3]: IDS[3],
    }
    assert targets(plan)[IDS[1]] == "pairtree_root/ar/k+/=1/=b"
    pairs = [(IDS[1], "ark:/1/b"), (IDS[2], "ark:/1/c")]
    for same in (dict(pairs), pairs, iter(pairs)):
        again = migrate.plan(source, tmp_path / "root", to="pairtree", new_ids=same)
        assert list(again.entries()) == list(plan.entries())


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"a\tb\nc\td\na\te\n", r"map\.tsv: two new identifiers for 'a', in lines 1 and 3"),
        (b"a\tb\nc\n", r"map\.tsv:2: expected an old and a new identifier"),
        (b"a\tb\tc\n", r"map\.tsv:1: expected"),
        (b"a\t\n", r"map\.tsv:1: expected"),
        (b'a,b\n"c"d,e\n', r"map\.tsv:2: text after the closing quote"),
        (b'a,"b\nc,d\n', r"map\.tsv:1: quote is never closed"),
    ],
)
def test_malformed_maps(source: Path, tmp_path: Path, content: bytes, match: str) -> None:
    made(source, ["a", "c"])
    with pytest.raises(MigrationError, match=match):
        migrate.plan(source, tmp_path / "root", to="pairtree", new_ids=written(tmp_path / "map.tsv", content))
    assert not (tmp_path / "root").exists()


def test_maps_of_what_is_not_there(source: Path, tmp_path: Path) -> None:
    made(source, IDS)
    mapped = {IDS[0]: "new", "mdp.3901501376478": "typing error"}
    error, items = refused(source, tmp_path / "root", to="pairtree", new_ids=mapped)
    assert [(item["kind"], item["objects"][0]["source_id"]) for item in items] == [("map-unknown", "mdp.3901501376478")]
    assert "mdp.3901501376478" in str(error)
    # A map of the whole collection serves for a part of it.
    plan = migrate.plan(source, tmp_path / "root", to="pairtree", new_ids=mapped, ids=IDS[:2])
    assert plan.warnings == {"map-unknown": 1}
    assert [item["kind"] for item in warnings(plan)] == ["map-unknown"]


def test_two_objects_that_would_become_one(source: Path, tmp_path: Path) -> None:
    made(source, IDS)
    _error, items = refused(source, tmp_path / "root", to="ocfl", layout="0003", new_ids={IDS[0]: "x", IDS[1]: "x"})
    assert [item["kind"] for item in items] == ["equal"]
    assert {one["source_id"] for one in items[0]["objects"]} == set(IDS[:2])
    _error, items = refused(source, tmp_path / "root", to="ocfl", layout="0003", new_ids={IDS[0]: IDS[1]})
    assert {one["source_id"] for one in items[0]["objects"]} == set(IDS[:2])
    # Identifiers may be swapped.
    swapped = {IDS[0]: IDS[1], IDS[1]: IDS[0]}
    assert migrate.plan(source, tmp_path / "root", to="ocfl", layout="0003", new_ids=swapped).objects == 4


# --- the index --------------------------------------------------------------------------------------------------------

identifiers = st.binary(min_size=1, max_size=6).map(lambda name: name.decode("utf-8", "surrogateescape"))


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[str]:
    yield os.fspath(tmp_path)
    assert not list(tmp_path.iterdir())


@given(pairs=st.lists(st.tuples(identifiers, identifiers), max_size=40), asked=st.lists(identifiers, max_size=20))
def test_an_index_is_a_dictionary(folder: str, pairs: list[tuple[str, str]], asked: list[str]) -> None:
    first: dict[str, str] = {}
    for one, value in pairs:
        first.setdefault(one, value)
    with IdentifierIndex(folder) as index:
        index.fill(pairs)
        assert len(index) == len(pairs)
        assert list(index.items()) == list(first.items())
        asked += [one for one, _ in pairs[::3]]
        assert index.find(asked) == [first.get(one) for one in asked]
        assert list(index.unused()) == [item for item in first.items() if item[0] not in asked]
        again: dict[str, Any] = {}
        for one, earlier, later, same in index.repeated():
            assert pairs[earlier][0] == pairs[later][0] == one
            assert same == (pairs[earlier][1] == pairs[later][1])
            again.setdefault(one, []).append(later)
        assert sum(map(len, again.values())) == len(pairs) - len(first)


def test_bytes_survive_in_entries(source: Path, tmp_path: Path) -> None:
    made(source, ["\udcff", "a\x00b".replace("\x00", "\x01")])
    plan = migrate.plan(source, tmp_path / "root", to="pairtree")
    assert {entry.id for entry in plan.entries()} == {"\udcff", "a\x01b"}
    json.loads((Path(plan.work) / "plan.json").read_text())


@pytest.mark.parametrize("pages", [1, 3])
def test_an_index_on_a_full_disk(folder: str, monkeypatch: pytest.MonkeyPatch, pages: int) -> None:
    """A full disk is an error of the file, at any statement, and the file is removed."""
    connect = sqlite3.connect

    def small(*arguments: Any, **how: Any) -> sqlite3.Connection:
        base = connect(*arguments, **how)
        base.execute(f"PRAGMA max_page_count={pages}")
        return base

    monkeypatch.setattr(sqlite3, "connect", small)
    with pytest.raises(OSError, match="full") as caught, IdentifierIndex(folder) as index:
        index.fill((str(number), "value" * 100) for number in range(1000))
    assert (caught.value.errno, os.path.dirname(str(caught.value.filename))) == (errno.ENOSPC, folder)


def test_a_catch_up_that_cannot_write(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the work folder of the run before is full, the error names it."""
    made(source, IDS[:1])
    first = migrate.run(migrate.plan(source, tmp_path / "new", to="pairtree"), processes=False)

    def full(*_arguments: Any, **_how: Any) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), first.work + "/identifiers-x.tmp")

    monkeypatch.setattr("pressmark.migrate.id_index.tempfile.mkstemp", full)
    with pytest.raises(JobError, match=r"new\.migration"):
        migrate.catch_up(first.work)
