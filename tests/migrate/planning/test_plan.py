"""Plans: their entries, refusals before anything is written, and warnings."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import pressmark
from pressmark import migrate, stores
from pressmark.errors import JobError, LayoutConfigError, MigrationError, ObjectError, StoreError
from pressmark.fs.atomic import temporary
from pressmark.jobs import WorkFolder
from pressmark.migrate.planning import conflicts as refusals
from pressmark.migrate.planning.planner import make_plan
from pressmark.progress_event import EventListener
from pressmark.reports import ProgressEvent
from pressmark.stores.registry import store_class

from ..stores_to_migrate import QUICK, known_rows, layout_or_none, listed, made, refused, targets, warnings

HATHI = ["miun.aje1563.0001.001", "miun.aje1563.0002.001", "mdp.39015013764785", "uc1.$b793221", "coo.31924003873721"]
# Characters that layouts escape, bytes that look escaped, digits, several scripts, controls, length.
HOSTILE = [
    *(
        "ark:/13030/xt12t3",
        "a b",
        "a^20b",
        "what-the-*@?#!^!?",
        "..",
        ".",
        "-rf",
        "~",
        "%2e%2e",
        "a/../b",
        "CON",
        "con",
    ),
    *("\n", "a\nb", "\x7f", '"', "a,b", "a\tb", "é", "e\u0301", "日本語", "\u202etxt", "x" * 100, "\udcff\udcfe"),
]


# --- entries ----------------------------------------------------------------------------------------------------------


def test_a_plan_says_where_every_object_is_and_goes(source: Path, tmp_path: Path) -> None:
    made(source, HATHI, {"one.txt": b"1", "sub/two.bin": b"22" * 3000})
    events: list[ProgressEvent] = []
    plan = migrate.plan(source, tmp_path / "root", to="ocfl", layout="0003", progress=EventListener(events.append))
    assert (plan.objects, plan.files, plan.bytes) == (5, 10, 5 * 6001)
    assert plan.work == str(tmp_path / "root.migration")
    entries = list(plan.entries())
    assert [entry.source for entry in entries] == [one.path for one in stores.open(source).objects()]
    by_id = {entry.id: entry for entry in entries}
    assert by_id.keys() == set(HATHI)
    one = by_id["mdp.39015013764785"]
    assert one.target == "b0f/42b/ed2/mdp%2e39015013764785".replace("b0f/42b/ed2", one.target[:11])
    assert (one.files, one.bytes, one.encapsulation) == (2, 6001, "mdp,39015013764785")
    assert events[-1] == ProgressEvent("plan", items=5, bytes=5 * 6001)
    assert not (tmp_path / "root").exists()


def test_a_plan_is_read_back(source: Path, tmp_path: Path) -> None:
    made(source, HATHI)
    plan = migrate.plan(source, tmp_path / "root", to="pairtree", work=tmp_path / "work")
    assert migrate.Plan.open(tmp_path / "work") == plan
    assert migrate.state(tmp_path / "work") == "planned"
    assert plan.summary()["objects"] == 5
    json.dumps(plan.record())


def test_a_plan_that_was_not_begun_is_replaced(source: Path, tmp_path: Path) -> None:
    made(source, HATHI)
    migrate.plan(source, tmp_path / "root", to="ocfl", layout="0002")
    plan = migrate.plan(source, tmp_path / "root", to="pairtree")
    assert migrate.Plan.open(plan.work).options.to == "pairtree"


def test_chunks_cover_the_entries(source: Path, tmp_path: Path) -> None:
    made(source, [f"id-{number}" for number in range(50)])
    options = migrate.make_options(source, tmp_path / "root", to="ocfl", layout="0004")
    plan = make_plan(options, tmp_path / "work", chunk_objects=7)
    chunks = listed(tmp_path / "work" / "plan.jsonl")
    assert 4 <= len(chunks) == plan.chunks <= 8
    entries = (tmp_path / "work" / "entries.jsonl").read_bytes()
    assert chunks[0]["start"] == 0
    assert [chunk["stop"] for chunk in chunks] == [*(chunk["start"] for chunk in chunks[1:]), len(entries)]
    assert all(entries[chunk["stop"] - 1 :][:1] == b"\n" for chunk in chunks)


def test_hostile_identifiers_have_their_places(source: Path, tmp_path: Path) -> None:
    made(source, HOSTILE)
    for kind, layout in (("pairtree", None), ("ocfl", "0003"), ("ocfl", "0004"), ("vitro", None), ("bags", "0004")):
        ids = [one for one in HOSTILE if kind != "vitro" or one.isascii()]
        ids = [one for one in ids if "\udcff" not in one or (kind, layout) == ("pairtree", None)]
        ids = [one for one in ids if "\n" not in one or kind != "bags"]
        plan = migrate.plan(source, tmp_path / "root", to=kind, layout=layout, ids=ids, work=tmp_path / "work")
        found = targets(plan)
        assert found.keys() == set(ids)
        store = store_class(kind).create(tmp_path / f"{kind}-{layout}", layout_or_none(layout), **QUICK[kind])
        for identifier in ids:
            # The store itself adds it.
            placed = store.put(identifier, {"data.txt": tmp_path / "file-source-0"})
            assert placed.path == found[identifier]


@pytest.mark.parametrize("kind", ["pairtree", "vitro", "ocfl", "bags"])
def test_every_kind_of_source(kind: str, tmp_path: Path) -> None:
    how = {"layout": layout_or_none("0003")} if kind == "ocfl" else {}
    made(tmp_path / "source", HATHI, kind=kind, **how)
    plan = migrate.plan(tmp_path / "source", tmp_path / "root", to="ocfl", layout="0004")
    assert plan.objects == 5
    assert {entry.source for entry in plan.entries()} == {
        one.path for one in stores.open(tmp_path / "source").objects()
    }
    if kind in ("pairtree", "vitro"):
        assert plan.bytes == 5 * len(b"content")


def test_modes(source: Path, tmp_path: Path) -> None:
    made(source, HATHI)

    def mode(**how: Any) -> str:
        return migrate.plan(source, tmp_path / "root", to="pairtree", work=tmp_path / "work", **how).mode

    assert mode(copy_mode="copy") == "copy"
    assert mode(copy_mode="hardlink") == "hardlink"
    assert mode(copy_mode="rename", move=True) == "rename"
    assert mode(move=True) == "rename"
    assert mode() in ("copy", "reflink")


def test_0011_for_a_root_is_a_warning(source: Path, tmp_path: Path) -> None:
    made(source, HATHI)
    plan = migrate.plan(source, tmp_path / "root", to="ocfl", layout="0011")
    assert plan.warnings == {"layout-0011": 1}
    assert targets(plan)["mdp.39015013764785"] == "mdp.39015013764785"


# --- collisions -------------------------------------------------------------------------------------------------------


def test_equal_places_are_refused_with_all_that_have_them(source: Path, tmp_path: Path) -> None:
    made(source, HATHI)
    flat = pressmark.layout("0012", delimiters=["."], number_of_tuples=0, tuple_size=0)
    error, items = refused(source, tmp_path / "root", to="ocfl", layout=flat)
    assert "'miun.aje1563.0001.001' and 'miun.aje1563.0002.001' at '001'" in str(error)
    assert [(item["kind"], item["count"]) for item in items] == [("equal", 2)]
    assert {one["source_id"] for one in items[0]["objects"]} == set(HATHI[:2])
    assert all(one["source"].startswith("pairtree_root/") for one in items[0]["objects"])
    # Its digest covers only what remains of the identifier, so hashing does not help.
    error, items = refused(source, tmp_path / "root", to="ocfl", layout=pressmark.layout("0012", delimiters=["."]))
    assert [(item["kind"], item["count"]) for item in items] == [("equal", 2)]
    with pytest.raises(MigrationError, match="refused"):
        migrate.run(tmp_path / "root.migration")
    # Another layout with the same work folder works.
    assert migrate.plan(source, tmp_path / "root", to="ocfl", layout="0012:delimiters=:").objects == 5


def test_an_object_inside_of_another_is_refused(source: Path, tmp_path: Path) -> None:
    made(source, ["abcdef", "abcdef/ghi", "other"])
    error, items = refused(source, tmp_path / "root", to="ocfl", layout="0011")
    assert [(item["kind"], item["count"]) for item in items] == [("inside", 2)]
    assert [one["source_id"] for one in items[0]["objects"]] == ["abcdef", "abcdef/ghi"]
    assert "inside" in str(error)
    # Ppaths may contain each other, and so may directories of a Vitro store.
    assert migrate.plan(source, tmp_path / "root", to="pairtree").objects == 3
    assert migrate.plan(source, tmp_path / "root", to="vitro").objects == 3


def test_vitro_files_where_other_objects_have_directories(source: Path, tmp_path: Path) -> None:
    store = stores.create("pairtree", source)
    (tmp_path / "file").write_bytes(b"x")
    store.put("abc", {"def": tmp_path / "file"})
    store.put("abcdefghi", {"x": tmp_path / "file"})
    _error, items = refused(source, tmp_path / "root", to="vitro")
    assert [item["kind"] for item in items] == ["inside"]


@pytest.mark.parametrize(
    ("identifiers", "kind"), [(["AB", "ab", "c"], "case"), (["\u00e9", "e\u0301", "c"], "normalization")]
)
def test_case_and_normalization(source: Path, tmp_path: Path, identifiers: list[str], kind: str) -> None:
    made(source, identifiers)
    layout = "0011" if kind == "normalization" else "0002"
    plan = migrate.plan(source, tmp_path / "root", to="ocfl", layout=layout)
    assert [item["kind"] for item in warnings(plan) if item["kind"] != "layout-0011"] == [kind]
    for profile in ("windows", "all"):
        _error, items = refused(source, tmp_path / "root", to="ocfl", layout=layout, profile=profile)
        assert [(item["kind"], item["count"]) for item in items] == [(kind, 2)]
        assert {one["source_id"] for one in items[0]["objects"]} == set(identifiers[:2])
    for profile in ("s3", "azure"):
        assert migrate.plan(source, tmp_path / "root", to="ocfl", layout=layout, profile=profile).objects == 3


def test_case_clashes_of_files_in_an_object(source: Path, tmp_path: Path) -> None:
    made(source, ["one"], {"a/README": b"1", "a/ReadMe": b"2"})
    assert migrate.plan(source, tmp_path / "root", to="ocfl", layout="0002").objects == 1
    _error, items = refused(source, tmp_path / "root", to="ocfl", layout="0002", profile="windows")
    assert [item["kind"] for item in items] == ["case"]
    assert "README" in items[0]["message"] + items[0]["objects"][0]["target"]


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        (("A", "a/b"), "case"),
        (("Sub/x", "sub/y"), "case"),
        (("deep/Sub/x", "deep/sub/y"), "case"),
        (("e\u0301/x", "\u00e9/y"), "normalization"),
    ],
)
def test_case_clashes_of_directories_in_an_object(
    source: Path, tmp_path: Path, names: tuple[str, str], kind: str
) -> None:
    made(source, ["one"], dict.fromkeys(names, b"x"))
    assert migrate.plan(source, tmp_path / "root", to="ocfl", layout="0002").objects == 1
    _error, items = refused(source, tmp_path / "root", to="ocfl", layout="0002", profile="windows")
    assert [item["kind"] for item in items] == [kind]


def test_a_file_system_that_folds_case(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(source, ["AB", "ab"])
    monkeypatch.setattr(refusals, "is_case_insensitive", lambda _directory: True)
    _error, items = refused(source, tmp_path / "root", to="ocfl", layout="0002")
    assert [item["kind"] for item in items] == ["case"]


# --- names ------------------------------------------------------------------------------------------------------------


def test_names_of_places(source: Path, tmp_path: Path) -> None:
    made(source, ["con", "ends.", "good", "a:b"])
    _error, items = refused(source, tmp_path / "root", to="ocfl", layout="0002", profile="windows")
    assert {one["source_id"] for item in items for one in item["objects"]} == {"con", "ends.", "a:b"}
    assert {item["kind"] for item in items} == {"refused-name"}
    _error, items = refused(source, tmp_path / "root", to="ocfl", layout="0002", profile="azure")
    assert {one["source_id"] for item in items for one in item["objects"]} == {"ends."}
    assert migrate.plan(source, tmp_path / "root", to="ocfl", layout="0004", profile="windows").objects == 4


def test_names_of_files(source: Path, tmp_path: Path) -> None:
    made(source, ["one", "two"], {"good": b"", "what?.txt": b""})
    for kind, inside in (("pairtree", "what?.txt"), ("ocfl", "v1/content/what?.txt"), ("bags", "data/what?.txt")):
        layout = "0004" if kind == "ocfl" else None
        error, items = refused(source, tmp_path / "root", to=kind, layout=layout, profile="windows")
        assert [item["kind"] for item in items] == ["refused-name", "refused-name"]
        assert all(item["objects"][0]["target"].endswith(inside) for item in items)
        assert "'?'" in str(error)
    # Cleaned content paths have other names.
    plan = migrate.plan(
        *(source, tmp_path / "root"),
        to="ocfl",
        layout="0004",
        profile="windows",
        destination_options={"content_paths": {"extensionName": "0011-direct-clean-path-layout"}},
    )
    assert plan.objects == 2


@pytest.mark.parametrize(
    ("names", "to", "kind"),
    [
        ([b"caf\xe9.txt"], "bags", "refused-name"),
        ([b"caf\xe9.txt"], "ocfl", "refused-name"),
        ([b"sub/caf\xe9/a.txt"], "bags", "refused-name"),
        (["\u00e9.txt".encode(), "e\u0301.txt".encode()], "bags", "normalization"),
        (["\u00e9/a".encode(), "e\u0301/b".encode()], "bags", "normalization"),
        ([b"C:scan.tif"], "bags", None),
        (["\u00e9.txt".encode(), b"E.txt", b"e.txt"], "bags", None),
        (["\u00e9.txt".encode(), "e\u0301.txt".encode()], "ocfl", None),
        ([b"caf\xe9.txt"], "pairtree", None),
    ],
)
def test_names_that_the_kind_of_store_does_not_take(
    source: Path, tmp_path: Path, names: list[bytes], to: str, kind: str | None
) -> None:
    """Names that the destination's kind does not allow are refused before anything is written."""
    made(source, ["good", "name"])
    path = os.fsencode(source) + b"/pairtree_root/na/me/name/"
    for name in names:
        os.makedirs(os.path.dirname(path + name), exist_ok=True)
        Path(os.fsdecode(path + name)).write_bytes(b"x")
    how: dict[str, Any] = {"to": to, "layout": "0004" if to == "ocfl" else None}
    if kind is None:
        assert migrate.run(migrate.plan(source, tmp_path / "root", **how), processes=False).ok
        return
    error, (item,) = refused(source, tmp_path / "root", **how)
    assert (item["kind"], item["objects"][0]["source_id"]) == (kind, "name")
    assert "rename" in error.reason
    assert migrate.run(migrate.plan(source, tmp_path / "root", ids=["good"], **how), processes=False).ok


def test_a_bag_may_have_such_names(source: Path, tmp_path: Path) -> None:
    """A valid bag with such names is migrated unchanged."""
    stores.create("bags", tmp_path / "bags")
    made(source, ["good"])
    stores.open(tmp_path / "bags").put("name", tmp_path / "file-source-0")
    bag = tmp_path / "bags" / "name"
    for name in ("\u00e9", "e\u0301"):
        (bag / "data" / name).write_bytes(b"x")
        with open(bag / "manifest-sha512.txt", "a", encoding="utf-8") as manifest:
            manifest.write(f"{hashlib.sha512(b'x').hexdigest()}  data/{name}\n")
    (bag / "tagmanifest-sha512.txt").unlink()
    (bag / "bag-info.txt").write_text("External-Identifier: name\n")
    stores.open(source).put("name", bag)
    assert migrate.run(migrate.plan(source, tmp_path / "root", to="bags"), processes=False).by_status == {"ok": 2}


def test_lengths(source: Path, tmp_path: Path) -> None:
    made(source, ["x" * 300, "short"])
    _error, items = refused(source, tmp_path / "root", to="ocfl", layout="0002")
    assert [item["kind"] for item in items] in (["refused-name"], ["unmapped"])
    assert items[0]["objects"][0]["source_id"] == "x" * 300
    deep = tmp_path / "/".join(["d" * 50] * 4) / "root"
    deep.parent.mkdir(parents=True)
    made(tmp_path / "other", ["one"], {"f" * 60: b""})
    _error, items = refused(tmp_path / "other", deep, to="ocfl", layout="0004", profile="windows")
    assert [item["kind"] for item in items] == ["refused-name"]
    assert "260" in items[0]["message"]


@pytest.mark.parametrize("to", ["ocfl", "bags"])
def test_reserved_places(source: Path, tmp_path: Path, to: str) -> None:
    """A plan refuses exactly the paths that the store reserves, in every spelling of the letters."""
    reserved = {
        "ocfl": ["extensions", "Extensions", "ocfl_layout.json", "OCFL_Layout.json", "0=mine", "0=OCFL_1.1"],
        "bags": [".pressmark-bags.json", ".Pressmark-Bags.JSON", ".PRESSMARK-work", "x.pressmark-OLD"],
    }
    all_kinds = [*reserved["ocfl"], *reserved["bags"], "good", "extension", "x0=mine"]
    made(source, all_kinds)
    _error, items = refused(source, tmp_path / "root", to=to, layout="0002")
    assert {item["kind"] for item in items} == {"reserved"}
    assert {item["objects"][0]["source_id"] for item in items} == set(reserved[to])
    store = stores.create(to, tmp_path / "store", "0002")
    for identifier in all_kinds:
        with pytest.raises(ObjectError) if identifier in reserved[to] else nullcontext() as caught:
            store.put(identifier, source.parent / "file-source-0")
        assert caught is None or caught.value.kind == "reserved"
    if to == "ocfl":
        paths = stores.OcflRoot(tmp_path / "store").paths_for(all_kinds)
        assert paths == [None if one in reserved[to] else one.encode() for one in all_kinds]


def test_identifiers_that_do_not_map(source: Path, tmp_path: Path) -> None:
    made(source, ["a/b", "..", "good", "\udcff"])
    _error, items = refused(source, tmp_path / "root", to="ocfl", layout="0002")
    assert {item["kind"] for item in items} == {"unmapped"}
    assert {item["objects"][0]["source_id"] for item in items} >= {"..", "\udcff"}
    _error, items = refused(source, tmp_path / "root", to="pairtree", destination_options={"prefix": "ark:"})
    assert len(items) == 4
    assert all(item["kind"] == "unmapped" for item in items)


def test_identifiers_that_a_bag_cannot_say(source: Path, tmp_path: Path) -> None:
    made(source, ["a\nb", "good"])
    _error, items = refused(source, tmp_path / "root", to="bags", layout="0004")
    assert [(item["kind"], item["objects"][0]["source_id"]) for item in items] == [("unmapped", "a\nb")]
    # The path may encode the identifier instead.
    assert migrate.plan(source, tmp_path / "root", to="bags", layout="pairtree").objects == 2


def test_vitro_takes_objects_of_one_file(source: Path, tmp_path: Path) -> None:
    made(source, ["one"], {"a": b"", "b": b""})
    _error, items = refused(source, tmp_path / "root", to="vitro")
    assert [item["kind"] for item in items] == ["files-several"]


# --- space ------------------------------------------------------------------------------------------------------------


class _Status:
    """The capacity that a file system reports."""

    f_frsize = 4096

    def __init__(self, blocks: int, inodes: int, of: int = 1000) -> None:
        self.f_bavail, self.f_favail, self.f_files = blocks, inodes, of


def test_too_little_space(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(source, HATHI, {"a": b"x" * 5000, "b": b""})
    monkeypatch.setattr(os, "statvfs", lambda _path: _Status(9, 10_000))
    error, items = refused(source, tmp_path / "root", to="pairtree", copy_mode="copy")
    assert [item["kind"] for item in items] == ["space"]
    assert "at least 41 kB needed" in str(error)
    # An OCFL object adds files of its own.
    monkeypatch.setattr(os, "statvfs", lambda _path: _Status(10, 10_000))
    assert migrate.plan(source, tmp_path / "root", to="pairtree", copy_mode="copy").objects == 5
    _error, items = refused(source, tmp_path / "root", to="ocfl", layout="0002", copy_mode="copy")
    assert [item["kind"] for item in items] == ["space"]
    plan = migrate.plan(source, tmp_path / "root", to="ocfl", layout="0002", copy_mode="copy", check_space=False)
    assert plan.warnings == {"space": 1}
    # Renamed files and hard links need none.
    monkeypatch.setattr(os, "statvfs", lambda _path: _Status(0, 10_000))
    assert migrate.plan(source, tmp_path / "root", to="pairtree", copy_mode="hardlink").objects == 5
    assert migrate.plan(source, tmp_path / "root", to="pairtree", copy_mode="rename", move=True).objects == 5


def test_too_few_inodes(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(source, HATHI)
    monkeypatch.setattr(os, "statvfs", lambda _path: _Status(10_000, 9))
    _error, items = refused(source, tmp_path / "root", to="ocfl", layout="0002", copy_mode="copy")
    assert [item["kind"] for item in items] == ["inodes"]
    # Some file systems do not count inodes.
    monkeypatch.setattr(os, "statvfs", lambda _path: _Status(10_000, 0, 0))
    assert migrate.plan(source, tmp_path / "root", to="ocfl", layout="0002", copy_mode="copy").objects == 5


# --- conflicting options ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "match"),
    [
        ({"to": "ocfl"}, "needs a layout"),
        ({"to": "ocfl", "layout": "pairtree"}, "not an OCFL layout"),
        ({"to": "ocfl", "layout": "0002", "copy_mode": "hardlink"}, "E090"),
        ({"to": "ocfl", "layout": "0002", "copy_mode": "rename", "move": True}, "rename cannot convert"),
        ({"to": "pairtree", "copy_mode": "rename"}, "add move=True"),
        ({"to": "pairtree", "layout": "0003"}, "has the layout pairtree"),
        ({"to": "ocfl", "layout": "0002", "move": True, "verify": "none"}, "requires verification"),
    ],
)
def test_options_that_do_not_go_together(source: Path, tmp_path: Path, how: dict[str, Any], match: str) -> None:
    made(source, ["one"])
    error, _ = refused(source, tmp_path / "root", **how)
    assert match in str(error)
    assert not (tmp_path / "root.migration").exists()


def test_values_that_are_none(source: Path, tmp_path: Path) -> None:
    made(source, ["one"])
    for how in ({"to": "zip"}, {"to": "bags", "verify": "maybe"}, {"to": "bags", "profile": "vms"}):
        with pytest.raises(ValueError, match="expected one of"):
            migrate.plan(source, tmp_path / "root", **how)
    for how, match in (
        (
            {"source_options": {"shelf": 1}},
            "option 'shelf' is unknown for a source of kind pairtree; known",
        ),
        ({"source_layout": "pairtree"}, "source_layout is unknown for a source of kind pairtree"),
        ({"destination_options": {"version": "1.0"}}, "option 'version' is unknown for a destination of kind bags"),
    ):
        with pytest.raises(ValueError, match=match):
            migrate.plan(source, tmp_path / "root", to="bags", **how)
    with pytest.raises(LayoutConfigError):
        migrate.plan(source, tmp_path / "root", to="ocfl", layout="0099")
    with pytest.raises(TypeError, match="layout: expected a layout or its name, such as 0003, not dict"):
        migrate.plan(source, tmp_path / "root", to="ocfl", layout={"extensionName": "pairtree"})
    with pytest.raises(StoreError):
        migrate.plan(tmp_path / "nothing", tmp_path / "root", to="bags")


def test_destinations_in_the_source_and_the_other_way_round(source: Path, tmp_path: Path) -> None:
    made(source, ["one"])
    (tmp_path / "link").symlink_to(source)
    for destination in (source, source / "below", tmp_path / "link", tmp_path / "link" / "new"):
        with pytest.raises(MigrationError):
            migrate.plan(source, destination, to="pairtree")
    with pytest.raises((MigrationError, StoreError)):
        migrate.plan(source, tmp_path, to="pairtree")
    for work in (source / "work", source, tmp_path / "root" / "work", tmp_path / "link" / "work"):
        with pytest.raises(MigrationError, match="work folder"):
            migrate.plan(source, tmp_path / "root", to="pairtree", work=work)
    assert sorted(os.listdir(source)) == ["pairtree_root", "pairtree_version0_1"]


def test_work_folders_of_others_are_left_alone(source: Path, tmp_path: Path) -> None:
    made(source, ["one"])
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "thesis.txt").write_text("mine")
    with pytest.raises(MigrationError, match=r"contains 'thesis\.txt'"):
        migrate.plan(source, tmp_path / "root", to="pairtree", work=tmp_path / "work")
    assert os.listdir(tmp_path / "work") == ["thesis.txt"]
    # Names that a plan also has do not make a directory a plan, and its files stay.
    (tmp_path / "work" / "thesis.txt").rename(tmp_path / "work" / "plan.json")
    with pytest.raises(MigrationError, match=r"contains 'plan\.json'"):
        migrate.plan(source, tmp_path / "root", to="pairtree", work=tmp_path / "work")
    migrate.plan(source, tmp_path / "root", to="pairtree", work=tmp_path / "other")
    (tmp_path / "other" / "output" / "mine.txt").write_text("mine")
    with pytest.raises(MigrationError, match="cannot be written"):
        migrate.plan(source, tmp_path / "root", to="pairtree", work=tmp_path / "other")
    assert (tmp_path / "other" / "output" / "mine.txt").read_text() == "mine"


def test_what_a_killed_plan_leaves_is_cleared_away(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(source, ["one"])
    unlink, listdir = os.unlink, os.listdir
    work = tmp_path / "work"
    first = migrate.plan(source, tmp_path / "root", to="pairtree", work=work)
    left = [
        *(Path(temporary(str(work / name))) for name in ("plan.jsonl", "nonce", "run.json")),
        work / "begun.json.new",
    ]
    for path in left:
        path.write_text("half")
    again = migrate.plan(source, tmp_path / "root", to="pairtree", work=work)
    assert again.sha256 == first.sha256
    assert not any(path.exists() for path in left)
    hardly = tmp_path / "hardly"
    hardly.mkdir()
    (hardly / "refused.jsonl").touch()
    assert migrate.plan(source, tmp_path / "root", to="pairtree", work=hardly).objects == 1
    for number in range(12):
        half = tmp_path / f"half-{number}"
        migrate.plan(source, tmp_path / "root", to="pairtree", work=half)
        for name in ("refused.jsonl", "warnings.jsonl"):
            (half / name).write_text("{}\n")
        calls = count()

        def until_killed(path: Any, number: int = number, calls: Iterator[int] = calls, **how: Any) -> None:
            if next(calls) == number:
                raise KeyboardInterrupt
            unlink(path, **how)

        with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
            patch.setattr(os, "unlink", until_killed)
            patch.setattr(os, "listdir", lambda path: sorted(listdir(path), reverse=True))
            migrate.plan(source, tmp_path / "root", to="pairtree", work=half)
        assert migrate.plan(source, tmp_path / "root", to="pairtree", work=half).objects == 1
    # Without a plan beside it, the file is foreign.
    (tmp_path / "other").mkdir()
    Path(temporary(str(tmp_path / "other" / "run.json"))).write_text("mine")
    with pytest.raises(MigrationError, match="does not belong to a plan"):
        migrate.plan(source, tmp_path / "root", to="pairtree", work=tmp_path / "other")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "refused.jsonl").write_text("mine")
    with pytest.raises(MigrationError, match="does not belong to a plan"):
        migrate.plan(source, tmp_path / "root", to="pairtree", work=tmp_path / "mine")


PLANNING = """
import sys
from pressmark import migrate
from pressmark.progress_event import EventListener

def wait(event):
    print("planning", flush=True)
    sys.stdin.read()

migrate.plan(sys.argv[1], sys.argv[2], to="pairtree", work=sys.argv[3], progress=EventListener(wait))
"""


def test_one_plan_at_a_time(source: Path, tmp_path: Path) -> None:
    """A second plan is refused during the first one, even with force, and accepted after it."""
    made(source, ["one"])
    work, root = tmp_path / "work", tmp_path / "root"
    packages = os.pathsep.join(
        filter(None, [str(Path(pressmark.__file__).parent.parent), os.environ.get("PYTHONPATH")])
    )
    environment = {**os.environ, "PYTHONPATH": packages}
    with subprocess.Popen(
        [sys.executable, "-c", PLANNING, source, root, work],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"planning\n"
        before = sorted(os.listdir(work))
        call = ["migrate", source, root, "--to", "pairtree", "--work", work]
        done = subprocess.run(
            [sys.executable, "-m", "pressmark", *call], capture_output=True, text=True, env=environment, check=False
        )
        assert done.returncode == 2
        assert f"process {process.pid} on " in done.stderr
        assert "in use by process" in done.stderr
        assert done.stderr.count("\n") == 1
        assert sorted(os.listdir(work)) == before
        process.kill()
    assert migrate.run(migrate.plan(source, root, to="pairtree", work=work), processes=False).ok


def test_no_plan_beside_a_run_that_begins(source: Path, tmp_path: Path) -> None:
    """A plan is not replaced while a run starts."""
    made(source, ["one"])
    plan = migrate.plan(source, tmp_path / "root", to="pairtree")
    with WorkFolder.open(plan.work).held(), pytest.raises(JobError, match="in use by process"):
        migrate.plan(source, tmp_path / "root", to="pairtree")
    assert migrate.run(plan, processes=False).ok


@pytest.mark.parametrize("holder", ["", '["elsewhere", 12]', "mine"])
def test_a_lock_alone(source: Path, tmp_path: Path, holder: str) -> None:
    """A lock without a plan is left by a killed plan; foreign files of that name stay."""
    made(source, ["one"])
    work = tmp_path / "work"
    work.mkdir()
    (work / "driver.lock").write_text(holder)
    if not holder:
        assert migrate.plan(source, tmp_path / "root", to="pairtree", work=work).objects == 1
        return
    expected = MigrationError if holder == "mine" else JobError
    with pytest.raises(expected, match=r"does not belong to a plan|process 12 on elsewhere; .* remove driver\.lock"):
        migrate.plan(source, tmp_path / "root", to="pairtree", work=work)
    assert (work / "driver.lock").read_text() == holder


@pytest.fixture
def there(tmp_path: Path) -> Path:
    return made(tmp_path / "root", ["old"], kind="ocfl", layout=layout_or_none("0003"))


def test_a_destination_that_is_there(source: Path, there: Path) -> None:
    made(source, ["one"])
    # Its layout is used, or must be equal.
    for layout in (None, "0003"):
        plan = migrate.plan(source, there, to="ocfl", layout=layout)
        assert plan.options.layout is not None
        assert plan.options.layout["extensionName"].startswith("0003")
    with pytest.raises(MigrationError, match="choose another destination"):
        migrate.plan(source, there, to="ocfl", layout="0004")
    with pytest.raises((MigrationError, StoreError), match="of kind ocfl, not pairtree"):
        migrate.plan(source, there, to="pairtree")


def test_a_destination_that_is_something_else(source: Path, tmp_path: Path) -> None:
    made(source, ["one"])
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "thesis.txt").write_text("mine")
    for kind in ("pairtree", "bags"):
        with pytest.raises((MigrationError, StoreError), match="not empty, and not a store"):
            migrate.plan(source, tmp_path / "root", to=kind)


def test_other_prefixes_of_pairtrees(source: Path, tmp_path: Path) -> None:
    made(source, ["ark:one"])
    made(tmp_path / "root", [], prefix="ark:")
    assert targets(migrate.plan(source, tmp_path / "root", to="pairtree", destination_options={"prefix": "ark:"})) == {
        "ark:one": "pairtree_root/on/e"
    }
    with pytest.raises(MigrationError, match="prefix"):
        migrate.plan(source, tmp_path / "root", to="pairtree", destination_options={"prefix": "x"})


# --- damaged sources --------------------------------------------------------------------------------------------------


@pytest.fixture
def broken(source: Path) -> Path:
    made(source, ["good", "split", "bare"])
    path = source / "pairtree_root" / "sp" / "li" / "t"
    (path / "more.txt").write_text("beside the object's directory")
    bare = source / "pairtree_root" / "ba" / "re"
    os.rename(bare / "bare" / "data.txt", bare / "data.txt")
    (bare / "bare").rmdir()
    (source / "stray.txt").write_text("of nobody")
    return source


def test_improper_objects_are_left_out(broken: Path, tmp_path: Path) -> None:
    plan = migrate.plan(broken, tmp_path / "root", to="ocfl", layout="0002")
    assert (plan.objects, plan.invalid) == (1, 2)
    assert plan.warnings["improper"] == 2
    assert plan.warnings["stray"] == 1
    rows = known_rows(plan)
    assert {(row.source_id, row.status) for row in rows} == {("split", "source_invalid"), ("bare", "source_invalid")}
    assert {row.error_code for row in rows} == {"split-end", "bare-file"}


def test_improper_objects_may_be_taken_or_refused(broken: Path, tmp_path: Path) -> None:
    assert migrate.plan(broken, tmp_path / "root", to="ocfl", layout="0002", improper="take").objects == 3
    _error, items = refused(broken, tmp_path / "root", to="ocfl", layout="0002", improper="refuse")
    assert {item["objects"][0]["source_id"] for item in items} == {"split", "bare"}
    stores.open(broken).repair()
    assert migrate.plan(broken, tmp_path / "root", to="ocfl", layout="0002", improper="refuse").objects == 3


def test_objects_without_an_identifier(source: Path, tmp_path: Path) -> None:
    made(source, ["good"])
    (source / "pairtree_root" / "^z" / "z" / "object").mkdir(parents=True)
    (source / "pairtree_root" / "^z" / "z" / "object" / "file").write_text("whose?")
    plan = migrate.plan(source, tmp_path / "root", to="ocfl", layout="0002", improper="take")
    assert (plan.objects, plan.invalid) == (1, 1)
    (row,) = known_rows(plan)
    assert (row.source_id, row.source, row.status) == ("", "pairtree_root/^z/z", "source_invalid")


def test_two_paths_of_one_identifier(source: Path, tmp_path: Path) -> None:
    made(source, ["a.b"])
    (source / "pairtree_root" / "a^" / "2e" / "b" / "object").mkdir(parents=True)
    (source / "pairtree_root" / "a^" / "2e" / "b" / "object" / "file").write_text("twice")
    _error, items = refused(source, tmp_path / "root", to="ocfl", layout="0002")
    assert [item["kind"] for item in items] == ["equal"]
    assert [one["source"] for one in items[0]["objects"]] == ["pairtree_root/a,/b", "pairtree_root/a^/2e/b"]


def test_a_directory_that_cannot_be_read_is_not_passed_over(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(source, ["good", "hidden"], kind="vitro")
    scandir = os.scandir

    def refusing(path: Any = ".") -> Any:
        if not isinstance(path, int) and os.fsencode(path).endswith(b"/hid"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    plan = migrate.plan(source, tmp_path / "root", to="ocfl", layout="0002")
    assert (plan.objects, plan.invalid) == (1, 1)
    (row,) = known_rows(plan)
    assert (row.source, row.status, row.error_code) == ("file_storage_root/hid", "copy_failed", "unreadable")


def test_a_destination_that_is_only_read(there: Path, tmp_path: Path) -> None:
    """A Vitro store with ambiguous namespaces is refused as a destination before planning."""
    store = stores.VitroStore.create(tmp_path / "uploads", namespaces=["urn:"])
    Path(store.root, "file_storage_namespaces.properties").write_bytes(b"a = urn:\nb =\n")
    with pytest.raises(StoreError, match="the store is read-only: the namespace of 'b' is empty"):
        migrate.plan(there, tmp_path / "uploads", to="vitro")


def test_dialects_become_what_the_specification_says(source: Path, tmp_path: Path) -> None:
    stores.create("pairtree", source)
    # pypairtree writes a space as ^9d.
    (source / "pairtree_root" / "a^" / "9d" / "b" / "object").mkdir(parents=True)
    (source / "pairtree_root" / "a^" / "9d" / "b" / "object" / "file").write_text("x")
    plan = migrate.plan(source, tmp_path / "root", to="pairtree", source_options={"dialect": "unt"})
    assert targets(plan) == {"a b": "pairtree_root/a^/20/b"}


def test_objects_that_hold_their_identifier_keep_it(there: Path, tmp_path: Path) -> None:
    _error, items = refused(there, tmp_path / "new", to="ocfl", layout="0004", new_ids={"old": "new"})
    assert [item["kind"] for item in items] == ["identifier-fixed"]
    assert migrate.plan(there, tmp_path / "new", to="pairtree", new_ids={"old": "new"}).objects == 1
