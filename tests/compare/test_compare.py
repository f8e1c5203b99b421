"""Comparisons: known results, kinds of input, edge cases, and costs."""

from __future__ import annotations

import gzip
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pressmark
from pressmark import stores
from pressmark.compare import KINDS, Comparison, LayoutResult, compare
from pressmark.compare.report import judge
from pressmark.errors import FormatError, SpillError
from pressmark.layouts import blocks, streams as lines
from pressmark.progress_event import EventListener
from pressmark.reports import ProgressEvent
from support.implementations import Implementation, use

from . import samples

LAYOUTS = samples.layouts()


def one(ids: Any, name: str = "0012", **more: Any) -> LayoutResult:
    (result,) = compare(ids, [LAYOUTS[name]], **more).layouts
    return result


# --- known results ------------------------------------------------------------------------------------------------


def test_volumes_of_one_work(implementation: Implementation) -> None:
    """0012 with the delimiter ``.`` maps ``miun.aje1563.0001.001`` and 177 others to one path; other layouts do not."""
    volumes = [f"miun.{letters}{number:04d}.0001.001" for letters in ("aje", "aat") for number in range(89)]
    ids = [*volumes, *(f"mdp.39015{number:09d}" for number in range(500))]
    names = ["0012", "0003 3x3", "0002", "0004", "pairtree"]
    found = {one.name: one for one in compare(ids, [LAYOUTS[name] for name in names], names=names).layouts}
    assert {name: result.collisions.equal for name, result in found.items()} == {**dict.fromkeys(names, 0), "0012": 178}
    collisions = found["0012"].collisions
    assert (collisions.groups["equal"], collisions.paths) == (1, 501)
    (group,) = collisions.first["equal"]
    assert (group.kind, group.count, group.exact, len(group.members)) == ("equal", 178, True, 20)
    assert [(member.number, member.id) for member in group.members[:2]] == [
        (0, "miun.aje0000.0001.001"),
        (1, "miun.aje0001.0001.001"),
    ]
    assert {member.path.rpartition("/")[2] for member in group.members} == {"001"}
    assert [name for name, result in found.items() if not result.ok] == ["0012"]
    # Without a prefix to remove, there are no collisions.
    for delimiters in ([], ["/"], [":"]):
        (other,) = compare(ids, [pressmark.layout("0012", delimiters=delimiters)]).layouts
        assert other.collisions.equal == 0


def test_collisions_of_every_kind(implementation: Implementation) -> None:
    """Counts are numbers of colliding identifiers; groups list examples of each kind."""
    ids = ["a.x", "A.x", "caf\u00e9", "cafe\u0301", "in", "in/side", "a.x", "alone"]
    result = one(ids, "0002")
    collisions = result.collisions
    assert (collisions.equal, collisions.case, collisions.normalization, collisions.folded) == (0, 2, 2, 4)
    assert (collisions.inside, collisions.inside_exact, collisions.paths) == (2, 2, 7)
    assert collisions.groups == {"equal": 0, "case": 1, "normalization": 1, "inside": 1}
    members = {kind: [one.id for one in collisions.first[kind][0].members] for kind in KINDS[1:]}
    assert members == {
        "case": ["a.x", "A.x"],
        "normalization": ["cafe\u0301", "caf\u00e9"],
        "inside": ["in", "in/side"],
    }
    assert not result.ok
    assert compare(ids, [LAYOUTS["0002"]]).duplicates == 2
    assert one(["x.a", "y.a"]).collisions.first["equal"][0].members[1].id == "y.a"


def test_only_the_first_groups_are_named(implementation: Implementation) -> None:
    """All groups are counted, but only the first are listed."""
    collisions = one([f"{space}.{number:02d}" for number in range(50) for space in "ab"]).collisions
    assert (collisions.equal, collisions.groups["equal"], len(collisions.first["equal"])) == (100, 50, 20)


def test_pairtree_allows_nesting(implementation: Implementation) -> None:
    """Encapsulating directories keep nested objects apart."""
    ids = ["ab", "abcd"]
    found = {name: one(ids, name) for name in ("pairtree", "0002")}
    assert found["pairtree"].collisions.inside_exact == 2
    assert found["pairtree"].nesting
    assert found["pairtree"].ok
    assert one(["ab", "ab/cd"], "0002").ok is False


def test_profiles(implementation: Implementation) -> None:
    """Paths are checked against each profile, with reasons, and the length of the root counts."""
    ids = ["aux", "fine", "a:b", "-rf", "x" * 256]
    found = one(ids, "0002", profile="all")
    assert {profile: one.count for profile, one in found.refused.items()} == {
        "unix": 1,
        "windows": 3,
        "azure": 1,
        "s3": 0,
    }
    assert [(named.number, named.id) for named in found.refused["windows"].first] == [
        (0, "aux"),
        (2, "a:b"),
        (4, "x" * 256),
    ]
    assert "device" in found.refused["windows"].first[0].reason
    assert found.advised == 1
    assert set(one(ids, "0002", profile="s3").refused) == {"s3"}
    assert one(["y" * 100], "0002", profile="s3", root_length=1000).refused["s3"].count == 1


def test_truncated_identifiers(implementation: Implementation) -> None:
    """Identifiers that 0003 truncates or 0011 replaces by a digest, and similar ones that they keep."""
    ids = ["x" * 100, "y" * 101, "z" * 34 + ":" * 23, "ok"]
    assert one(ids, "0003 3x3").truncated == 2
    assert one(ids, "0003 3x3").irreversible == 2
    assert one(ids, "0003 3x3").reversible == "unless truncated"
    long = ["a" * 60, "b" * 61, "fallback/ab/cd/" + "0" * 28, "fallback/x", "c" * 70]
    found = one(long, "0011")
    assert (found.fallback, found.mapped) == (2, 5)
    assert found.irreversible == 5
    assert one(long, "0004").irreversible == 5
    assert one(long, "pairtree").irreversible == 0


def test_irreversible_identifiers_of_0011(implementation: Implementation) -> None:
    """Digests, lost empty segments and lost bytes are irreversible; encoded characters are not."""
    layout = pressmark.layout("0011", encode_utf=True, max_path_segment_len=60)
    told = ["a/b", "a:b c", "=u003D", "~.", "..", "fallback/x"]
    lost: list[str | bytes] = ["http://a/b", "/a", "a/", b"a\xff", "x" * 61, "fallback/" + "0" * 32]
    found = compare([*told, *lost, ""], [layout]).layouts[0]
    assert (found.mapped, found.fallback, found.unmapped.count) == (len(told) + len(lost), 1, 1)
    assert found.irreversible == len(lost)


def test_long_identifiers_are_shown_in_part(implementation: Implementation) -> None:
    """A very long identifier is shortened in examples only."""
    long = "x" * 100_000
    result = one([long, f"{long}yy"], "pairtree")
    (group,) = result.collisions.first["inside"]
    assert [len(member.id) for member in group.members] == [1001, 1001]
    assert [len(member.path) for member in group.members] == [1001, 1001]
    assert result.lengths.path_bytes.max == 150_002
    assert result.directories.levels == (1,) * 50_001
    assert result.refused["unix"].first[0].id.endswith("x…")


# --- kinds of input --------------------------------------------------------------------------------------------------

PLAIN = ["mdp.39015012345678", "uc1.$b1", "caf\u00e9.1", "uc1.$b1"]


def inputs(tmp_path: Path) -> Iterator[tuple[str, Any]]:
    lines = "".join(f"{item}\n" for item in PLAIN).encode()
    file = tmp_path / "ids.txt"
    file.write_bytes(lines)
    yield "list", PLAIN
    yield "generator", (item for item in PLAIN)
    yield "bytes", [item.encode() for item in PLAIN]
    yield "path", file
    yield "stream", io.BytesIO(lines[:-1])
    yield "column", pressmark.layout("0002").map(Column(PLAIN))


class Column:
    """An Arrow column of a class that only has the PyCapsule interface."""

    def __init__(self, items: list[str]) -> None:
        pyarrow = pytest.importorskip("pyarrow")
        self._column = pyarrow.chunked_array([items[:1], items[1:]])

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._column.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    ("name", "text", "more"),
    [
        ("ids.csv", "id,title\na.x,One\nb.x,Two\n", {"column": "id"}),
        ("ids.csv.gz", "id,title\na.x,One\nb.x,Two\n", {"column": "id"}),
        ("ids.tsv", "a.x\tOne\nb.x\tTwo\n", {"column": 1, "header": False}),
        ("ids.csv", "title;id\nOne;a.x\nTwo;b.x\n", {"column": "id", "delimiter": ";"}),
        ("ids.jsonl", '{"id": "a.x"}\n{"id": null}\n{"id": "b.x"}\n', {"column": "id"}),
        ("ids", "id\na.x\nb.x\n", {"column": "id", "format": "csv"}),
        ("ids.csv", "a.x\nb.x\n", {"format": "lines"}),
        ("ids.txt.gz", "a.x\nb.x\n", {}),
    ],
)
def test_a_column_of_a_file(
    implementation: Implementation, tmp_path: Path, name: str, text: str, more: dict[str, Any]
) -> None:
    """A table is read as the command reads it, and a list too."""
    data = gzip.compress(text.encode()) if name.endswith(".gz") else text.encode()
    (tmp_path / name).write_bytes(data)
    found = compare(tmp_path / name, ["0002"], **more)
    assert found.layouts[0].mapped == found.identifiers == 2
    if "format" in more:
        assert compare(io.BytesIO(data), ["0002"], **more).layouts[0].mapped == 2


@pytest.mark.peers
def test_a_column_of_parquet(implementation: Implementation, tmp_path: Path) -> None:
    """A column of Parquet is read; a null is no identifier."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"id": ["a.x", None, "b.x"]}), tmp_path / "ids.parquet")
    assert compare(tmp_path / "ids.parquet", ["0002"], column="id").identifiers == 2


def test_a_table_without_a_column(tmp_path: Path) -> None:
    """A table is not compared as lines, and a column must exist."""
    (tmp_path / "ids.csv").write_text("id\na\n")
    with pytest.raises(FormatError, match="CSV needs"):
        compare(tmp_path / "ids.csv", ["0002"])
    with pytest.raises(FormatError, match="column 'x' not found; columns: id"):
        compare(tmp_path / "ids.csv", ["0002"], column="x")


def test_the_verdict() -> None:
    """The verdict has the recommendation of the command, and names a path inside another."""
    found = compare(["a", "a/b"], ["0002", "0004"], names=["flat", "hashed"])
    assert [(one.structure, one.layout) for one in found.verdict.recommendations] == [("ocfl", "hashed")]
    assert found.verdict == judge(found)
    [group] = found.verdict.groups
    assert (group.title, group.statements[0].text) == (
        "One object would be inside another",
        "flat: 2 identifiers have nested paths, for example 'a' and 'a/b'.",
    )


@pytest.mark.peers
def test_every_input(implementation: Implementation, tmp_path: Path) -> None:
    """Every kind of input gives the same numbers."""
    found = {}
    for name, ids in [*inputs(tmp_path), ("arrow", Column(PLAIN))]:
        record = one(ids).record()
        del record["throughput"]
        found[name] = record
    assert {name for name, record in found.items() if record != found["list"]} == set()
    assert found["list"]["mapped"] == 3


def test_block_boundaries(implementation: Implementation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Block boundaries do not affect the numbers."""
    ids = [one for one in samples.hathitrust(900) if isinstance(one, str)]
    file = tmp_path / "ids"
    file.write_text("\n".join(ids), encoding="utf-8")

    def record(given: Any) -> dict[str, Any]:
        found = one(given, "pairtree").record()
        return {key: value for key, value in found.items() if key != "throughput"}

    expected = record(ids)
    monkeypatch.setattr(blocks, "ITEMS", 1)
    assert record(ids) == expected
    monkeypatch.setattr(blocks, "BYTES", 1)
    assert record(iter(ids)) == expected
    monkeypatch.setattr(lines, "BLOCK_BYTES", 64)
    assert record(file) == expected


@pytest.mark.peers
def test_nulls_are_not_identifiers(implementation: Implementation) -> None:
    """Nulls are not counted as identifiers, but as rows."""
    pyarrow = pytest.importorskip("pyarrow")
    found = compare(pyarrow.array(["a.b", None, "c.b"]), [LAYOUTS["0012"]])
    assert (found.identifiers, found.layouts[0].mapped, found.layouts[0].unmapped.count) == (2, 2, 0)
    assert [member.number for member in found.layouts[0].collisions.first["equal"][0].members] == [0, 2]
    table = pyarrow.table({"n": ["1"], "id": ["x.y"]})
    assert compare(table, [LAYOUTS["0012"]], column="id").identifiers == 1


def test_a_store_is_walked(tmp_path: Path) -> None:
    """The identifiers of its objects are compared."""
    store = stores.create("ocfl", tmp_path / "store", layout=pressmark.layout("0003"))
    (tmp_path / "file").write_bytes(b"x")
    for identifier in ("a.1", "b.1"):
        store.put(identifier, tmp_path / "file")
    found = compare(store, [LAYOUTS["0012"]])
    assert (found.identifiers, found.layouts[0].collisions.equal) == (2, 2)


@pytest.mark.parametrize("ids", ["one", b"one", 7, None])
def test_unsupported_input(ids: Any) -> None:
    """A single string and a number are not lists of identifiers."""
    with pytest.raises(TypeError, match="expected identifiers"):
        compare(ids, [LAYOUTS["0003 3x3"]])


def test_items_that_are_not_identifiers(implementation: Implementation) -> None:
    """An item of another type is an error; an unpaired surrogate has no path."""
    with pytest.raises(TypeError, match="identifier 1: expected str or bytes, not int"):
        compare(["a", 1], [LAYOUTS["0003 3x3"]])
    found = compare(["a", "\ud800", "b"], [LAYOUTS["0003 3x3"]])
    (result,) = found.layouts
    assert (found.identifiers, result.mapped, result.unmapped.count) == (3, 2, 1)
    (named,) = result.unmapped.first
    assert (named.number, named.id) == (1, "\ud800")
    assert "surrogate" in named.reason
    json.dumps(found.record())


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"files_per_object": -1}, "files_per_object=-1"),
        ({"versions": 0}, "versions=0"),
        ({"profile": "vms"}, "profile='vms'"),
        ({"directory_limit": 0}, "directory_limit=0"),
        ({"memory": 0}, "memory=0"),
        ({"threads": -1}, "threads=-1"),
        ({"names": ["a", "b"]}, "2 names for 1 layouts"),
    ],
)
def test_parameters_out_of_range(more: dict[str, Any], message: str) -> None:
    """The message contains the parameter and its value."""
    with pytest.raises(ValueError, match=message):
        compare([], [LAYOUTS["0003 3x3"]], **more)


def test_no_layout() -> None:
    """A comparison needs a layout."""
    with pytest.raises(ValueError, match="no layouts"):
        compare([], [])


def test_names_are_distinct() -> None:
    """Equal names get a number."""
    three = [LAYOUTS["0003 3x3"], LAYOUTS["0003 2x2"], LAYOUTS["0002"]]
    names = [one.name for one in compare([], three).layouts]
    official = "0003-hash-and-id-n-tuple-storage-layout"
    assert names == [f"{official} #1", f"{official} #2", "0002-flat-direct-storage-layout"]
    names = [one.name for one in compare([], three, names=["x", "x", "x #1"]).layouts]
    assert names == ["x #2", "x #3", "x #1"]


# --- edge cases ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LAYOUTS)
def test_no_identifiers(implementation: Implementation, name: str) -> None:
    """Without identifiers, all numbers are 0."""
    found = compare([], [LAYOUTS[name]])
    (result,) = found.layouts
    assert (found.identifiers, found.duplicates, result.mapped, result.directories.total) == (0, 0, 0, 0)
    assert (result.lengths.path_bytes.count, result.costs.inodes, result.growth.model) == (0, 0, "count")
    assert result.ok
    json.dumps(found.record(), allow_nan=False)


@pytest.mark.parametrize("name", LAYOUTS)
def test_one_identifier(implementation: Implementation, name: str) -> None:
    """A single identifier has no collisions."""
    identifier = "druid.gh875jh5489"
    (result,) = compare([identifier], [LAYOUTS[name]]).layouts
    depth = LAYOUTS[name].map_id(identifier).count("/") + 1
    assert (result.mapped, result.directories.total, result.directories.leaf) == (1, depth, 1)
    assert (result.depth.min, result.depth.max, result.directories.levels) == (depth, depth, (1,) * depth)
    assert (result.collisions.equal, result.collisions.folded) == (0, 0)
    assert result.ok
    json.dumps(result.record(), allow_nan=False)


def test_equal_identifiers(implementation: Implementation) -> None:
    """Duplicates are counted as duplicates, not as collisions."""
    found = compare(["x.y"] * 3000, [LAYOUTS["0012"], LAYOUTS["0002"]])
    assert (found.duplicates, found.identifiers, found.repeated) == (3000, 3000, 1)
    for result in found.layouts:
        assert (result.collisions.equal, result.collisions.paths, result.directories.leaf) == (0, 1, 1)
        assert (result.collisions.folded, result.collisions.groups["equal"]) == (0, 0)
        assert result.collisions.first["equal"] == ()
        assert result.ok
    assert found.ok


@pytest.mark.parametrize(
    ("ids", "equal"),
    [
        (["a.x", "a.x", "b.x", "b.x"], 2),
        (["a.x", "a.x", "b.x"], 2),
        (["a.x", "b.x", "c.y", "c.y"], 2),
        (["a.x", "a.x", "b.y", "b.y"], 0),
    ],
)
def test_collisions_among_equal_identifiers(implementation: Implementation, ids: list[str], equal: int) -> None:
    """Collisions between different identifiers are found even if every identifier occurs more than once."""
    [result] = compare(ids, [LAYOUTS["0012"]]).layouts
    assert (result.collisions.equal, result.ok) == (equal, not equal)
    assert result.collisions.groups["equal"] == len(result.collisions.first["equal"]) == bool(equal)
    assert result.collisions.folded == equal


def test_case_among_equal_identifiers(implementation: Implementation) -> None:
    """So are those that differ only in case."""
    [result] = compare(["a", "a", "A", "A"], [LAYOUTS["0002"]]).layouts
    assert (result.collisions.equal, result.ok) == (0, True)
    assert result.collisions.case == result.collisions.folded == 2


def test_a_million_that_collide(pair: tuple[Implementation, Implementation]) -> None:
    """A million collisions are counted in bounded memory; only a few are listed."""
    with use(pair[0]):
        result = one((b"n%d.same" % number for number in range(10**6)), memory=16 << 20)
    assert (result.collisions.equal, result.collisions.paths, result.collisions.groups["equal"]) == (10**6, 1, 1)
    assert len(result.collisions.first["equal"][0].members) == 20
    assert result.directories.levels == (1, 1, 1, 1)


def test_identifiers_without_a_path(implementation: Implementation) -> None:
    """Identifiers without a path are counted and listed with a reason, and are not in other counts."""
    ids = ["short", "druid.gh875jh5489", *(f"bad{number}" for number in range(30))]
    result = one(ids, "0010")
    assert (result.mapped, result.unmapped.count, result.directories.leaf) == (1, 31, 1)
    assert len(result.unmapped.first) == 20
    first = result.unmapped.first[0]
    assert (first.number, first.id, first.path) == (0, "short", "")
    assert first.reason
    assert not result.ok


def test_missing_temporary_directory(implementation: Implementation, tmp_path: Path) -> None:
    """A missing directory for temporary files is an error."""
    with pytest.raises(SpillError, match="temporary file"):
        compare([str(number) for number in range(100)], [LAYOUTS["0002"]], memory=1, folder=tmp_path / "absent")


def test_memory_and_threads_change_nothing(implementation: Implementation, tmp_path: Path) -> None:
    """Memory limit and threads do not affect the numbers."""
    ids = [*samples.hostile(), *samples.hathitrust(300)]
    layouts = list(LAYOUTS.values())

    def record(**more: Any) -> list[dict[str, Any]]:
        found = compare(ids, layouts, **more).record()["layouts"]
        return [{key: value for key, value in one.items() if key != "throughput"} for one in found]

    expected = record(threads=1)
    assert record(threads=3) == expected
    assert record(threads=1, memory=5000, folder=tmp_path) == expected
    assert os.listdir(tmp_path) == []


def test_implementations_agree(pair: tuple[Implementation, Implementation]) -> None:
    """Both implementations give the same numbers."""
    records = []
    for implementation in pair:
        with use(implementation):
            found = compare([*samples.hostile(), *samples.hathitrust()], list(LAYOUTS.values()), directory_limit=5)
        record = found.record()["layouts"]
        records.append([{key: value for key, value in one.items() if key != "throughput"} for one in record])
    assert records[0] == records[1]


def test_events(implementation: Implementation) -> None:
    """Events for each block and each layout."""
    events: list[ProgressEvent] = []
    compare(["a", "b"], [LAYOUTS["0002"], LAYOUTS["0003 3x3"]], progress=EventListener(events.append))
    assert events == [
        ProgressEvent("read", items=2),
        ProgressEvent("map", items=2, of_items=2),
        ProgressEvent("merge", items=1, of_items=2),
        ProgressEvent("merge", items=2, of_items=2),
    ]


def test_the_record_is_complete() -> None:
    """The record is JSON and contains the machine."""
    found = compare(["a.b"], [LAYOUTS["0012"]], source="somewhere")
    assert isinstance(found, Comparison)
    record = json.loads(json.dumps(found.record(), allow_nan=False))
    assert (record["format"], record["identifiers"], record["source"], record["ok"]) == (3, 1, "somewhere", True)
    assert record["machine"]["implementation"] == pressmark.implementation
    assert record["layouts"][0]["lengths"]["path_bytes"]["histogram"] == [[13, 1]]
    assert found.layouts[0].lengths.path_bytes.ecdf() == [(13, 1.0)]


# --- costs --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "name", "files"),
    [("ocfl", "0003 2x2", 3), ("ocfl", "0002", 1), ("pairtree", "pairtree", 2), ("vitro", "vitro", 1)],
)
def test_inodes_are_those_of_real_objects(tmp_path: Path, kind: str, name: str, files: int) -> None:
    """A real store has the same number of inodes, except those of the store itself."""
    ids = [f"ark.{number}abc" for number in range(40)]
    (result,) = compare(ids, [LAYOUTS[name]], files_per_object=files).layouts
    source = {}
    for number in range(files):
        # Different content: OCFL stores the same content once.
        (tmp_path / f"f{number}").write_bytes(b"%d" % number)
        source[f"f{number}"] = tmp_path / f"f{number}"
    root = tmp_path / "store"
    store = stores.create(kind, root, layout=LAYOUTS[name])
    before = inodes(root)
    for identifier in ids:
        store.put(identifier, source)
    made = [after - was for after, was in zip(inodes(root), before, strict=True)]
    directories = result.directories.total + len(ids) * result.costs.object_directories
    assert made == [directories, len(ids) * result.costs.object_files]
    assert result.costs.inodes == sum(made)
    assert result.costs.directory_kib == 4 * directories


def inodes(root: Path) -> tuple[int, int]:
    found = [(len(directories), len(names)) for _, directories, names in os.walk(root)]
    return sum(one for one, _ in found), sum(one for _, one in found)


def test_costs_of_versions() -> None:
    """A version adds a directory, an inventory and its sidecar."""
    costs = one(["a.b"], files_per_object=0).costs
    assert (costs.object_files, costs.object_directories + 1) == (5, 3)
    costs = one(["a.b"], files_per_object=2, versions=3).costs
    assert (costs.object_files, costs.object_directories) == (3 + 6 + 2, 3 + 2)


def test_a_result_is_shown_in_one_line() -> None:
    result = one(["x.a", "y.a", "z.b"])
    assert repr(result) == f"<LayoutResult {result.name}: not safe, 3 mapped, 0 not mapped, 2 collide>"
