"""Checking and repairing a whole storage root."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pressmark.layouts import list_layouts
from pressmark.progress_event import EventListener
from pressmark.reports import Problem, ProgressEvent
from pressmark.stores.objects import RepairStep
from pressmark.stores.ocfl import check as ocfl_check
from pressmark.stores.ocfl.declarations import is_registered
from pressmark.stores.ocfl.root import OcflRoot
from pressmark.stores.ocfl.walk import Walk
from pressmark.stores.problems import KINDS, SECTIONS
from support.events import listening

from .samples import CREATED, LAYOUTS, at, copy_tree, create, kinds, reopened, rewrite, save, source, tree

IDENTIFIERS = ("info:a/1", "info:a/2", "info:b/3")

pytestmark = pytest.mark.usefixtures("every_storage")


@pytest.fixture
def root(tmp_path: Path) -> OcflRoot:
    root = create(tmp_path / "root", "0003")
    for identifier in IDENTIFIERS:
        root.put(identifier, source(tmp_path / "in"), created=CREATED)
    return root


def path_of(root: OcflRoot, number: int = 0) -> Any:
    assert root.layout is not None
    return at(root) / root.layout.map_id(IDENTIFIERS[number])


def write(name: str, data: bytes) -> Callable[[OcflRoot], object]:
    return lambda root: (at(root) / name).write_bytes(data)


def moved(root: OcflRoot) -> None:
    (at(root) / "elsewhere").mkdir()
    path_of(root).rename(at(root) / "elsewhere/object")
    for parent in list(path_of(root).parents)[:3]:
        parent.rmdir()


def inside(root: OcflRoot) -> None:
    path_of(root).rename(path_of(root, 1) / "inner")
    for parent in list(path_of(root).parents)[:3]:
        parent.rmdir()


def clash(root: OcflRoot) -> None:
    for name in ("\u00e9", "e\u0301", "E\u0301"):
        (at(root) / name).mkdir()
        copy_tree(path_of(root), at(root) / name / "o")


def later(root: OcflRoot) -> None:
    for name in ("0=ocfl_1.1",):
        (at(root) / name).unlink()
    (at(root) / "0=ocfl_1.0").write_text("ocfl_1.0\n")
    root.version = "1.0"


def hard_link(root: OcflRoot) -> None:
    (at(root).parent / "other").hardlink_to(path_of(root) / "v1/content/a.txt")


BAD: list[tuple[str, Callable[[OcflRoot], object], list[str], str]] = [
    (
        "a changed byte",
        lambda r: (path_of(r) / "v1/content/a.txt").write_bytes(b"onE"),
        ["content-mismatch"],
        "E092",
    ),
    ("a moved object", moved, ["misplaced"], "E083"),
    ("an empty directory", lambda r: (at(r) / "x/y").mkdir(parents=True), ["directory-empty"], "E073"),
    ("a hard link", hard_link, ["hard-link"], "E090"),
    ("a symbolic link", lambda r: (at(r) / "link").symlink_to("000"), ["symbolic-link"], "E090"),
    ("a second declaration", write("0=ocfl_1.0", b"ocfl_1.0\n"), ["declaration-several"], "E076"),
    ("a declaration's content", write("0=ocfl_1.1", b"ocfl_1.1"), ["declaration-malformed"], "E080"),
    ("an unknown declaration", write("0=ocfl_2.0", b""), ["declaration-several", "declaration-unknown"], "E079"),
    (
        "an object's declaration in the root",
        write("0=ocfl_object_1.1", b"ocfl_object_1.1\n"),
        ["declaration-several", "declaration-unknown"],
        "E003",
    ),
    ("an object inside of one", inside, ["misplaced", "object-extra", "object-inside"], "E082"),
    ("names that clash", clash, ["case-clash", "misplaced"], "E083"),
    ("a later version", later, ["version-later"], "E081"),
    ("a file in the hierarchy", lambda r: (path_of(r).parent / "file").write_bytes(b"x"), ["file-stray"], "E072"),
    ("a file in extensions", write("extensions/file", b"x"), ["extensions-file"], "E112"),
    ("a link in extensions", lambda r: (at(r) / "extensions/link").symlink_to("x"), ["symbolic-link"], "E090"),
    ("an object's declaration gone", lambda r: (path_of(r) / "0=ocfl_object_1.1").unlink(), ["file-stray"], "E003"),
    ("layout file", write("ocfl_layout.json", b"{}"), ["layout-malformed"], "E070"),
    (
        "a layout by its number",
        write("ocfl_layout.json", b'{"extension": "0003", "description": ""}'),
        ["layout-unknown"],
        "E071",
    ),
    ("unknown layout", write("ocfl_layout.json", b'{"extension": "x", "description": ""}'), ["layout-unknown"], "E071"),
]


@pytest.mark.parametrize(("change", "expected", "code"), [bad[1:] for bad in BAD], ids=[bad[0] for bad in BAD])
def test_each_bad_root(root: OcflRoot, change: Callable[[OcflRoot], object], expected: list[str], code: str) -> None:
    """Exactly the expected problems are reported, with OCFL codes, and passed to the listener."""
    assert root.check(digests=True).problems == []
    change(root)
    streamed: list[Problem] = []
    report = root.check(digests=True, progress=listening(on_problem=streamed.append))
    assert sorted({problem.kind for problem in report.problems}) == expected
    assert any(code == problem.code and f"({code})" in problem.message for problem in report.problems)
    assert all(problem.section == SECTIONS[problem.code] for problem in report.problems if problem.code)
    assert streamed == report.problems
    assert not report.ok
    # Other thread counts give the same problems in the same order.
    for threads in (1, 2):
        assert root.check(digests=True, threads=threads).problems == streamed


@pytest.mark.on_disk
def test_ocfl_java_spelling(tmp_path: Path) -> None:
    """Objects that ocfl-java 2.2.3 stored under layout 0003 are recognised, found, and not put twice."""
    root = create(tmp_path / "root", "0003")
    identifier = "info:\u20ac/\U0001f350/\u00e9"
    root.put(identifier, source(tmp_path / "in"))
    [record] = root.objects()
    right = at(root) / record.path
    assert right.name == "info%3a%e2%82%ac%2f%f0%9f%8d%90%2f%c3%a9"
    right.rename(right.with_name("info%3a%E2%82%ac%2f%F0%9f%8d%90%2f%c3%a9"))
    [record] = root.objects()
    assert (record.id, record.proper, [problem.kind for problem in record.problems]) == (
        *(identifier, False),
        ["path-ocfl-java"],
    )
    assert kinds(root.check()) == ["path-ocfl-java"]
    with root.get(identifier).open("a.txt") as file:
        assert file.read() == b"one"
    with pytest.raises(Exception, match="object exists"):
        root.put(identifier, tmp_path / "in")
    root.delete(identifier)
    assert list(root.objects()) == []


def test_extensions_that_are_not_registered(root: OcflRoot) -> None:
    """Each unregistered extension of the root is reported, of objects only the first."""
    for name in ("0005-mutable-head", "initial", "pressmark-staging", "rocfl-staging"):
        (at(root) / "extensions" / name).mkdir()
    for number in range(3):
        for name in ("0005-mutable-head", "initial", "of-our-own"):
            (path_of(root, number) / "extensions" / name).mkdir(parents=True)
    report = root.check()
    assert report.ok
    found = [one for one in report.problems if one.kind not in ("unversioned", "mutable-head")]
    assert [(one.kind, one.code, one.section, one.path) for one in found] == [
        ("extension-unregistered", "W016", "4.4", "extensions/rocfl-staging"),
        ("extension-unregistered", "W013", "3.9", min(record.path for record in root.objects())),
    ]
    assert found[1].message == (
        "'of-our-own' is not the name of a registered extension; 3 objects affected; this is the first (W013)"
    )


def test_every_layout_is_a_registered_extension() -> None:
    assert all(is_registered(layout.name) for layout in list_layouts() if layout.name[0] == "0")
    assert is_registered("0005-mutable-head")
    assert not any(map(is_registered, ("pairtree", "vitro", "0003", "0003-hash", "9999-own", "of-our-own")))


def test_sections_of_kinds_are_those_of_their_codes() -> None:
    for word, kind in KINDS.items():
        assert not kind.codes or kind.section == SECTIONS[kind.codes[0]], word


def test_identifiers_twice_without_a_layout(tmp_path: Path, root: OcflRoot) -> None:
    """Duplicate identifiers are found in a root without a layout."""
    copy_tree(path_of(root), at(root) / "copy")
    (at(root) / "ocfl_layout.json").unlink()
    [problem] = reopened(root).check().errors
    assert (problem.kind, problem.path) == ("duplicate-id", "copy")
    assert repr(os.path.relpath(path_of(root), root.root)) in problem.message


def test_each_object_has_its_result(root: OcflRoot) -> None:
    """Each object's result comes in walk order, also with mixed digest algorithms."""
    root.put("info:c/4", {"a": path_of(root) / "v1/content/a.txt"}, fixity={"md5": {}})
    reopened(root, algorithm="sha256").put("info:d/5", {})
    for number in range(6, 12):
        reopened(root, algorithm="sha256").put(f"info:d/{number}", at(root).parent / "in")
    (path_of(root, 1) / "v1/content/a.txt").write_bytes(b"x")
    results: list[ocfl_check.ObjectResult] = []
    events: list[object] = []
    report = ocfl_check.Check(root, listening(events.append), results.append).report(True, 2, ())
    assert [result.path for result in results] == [record.path for record in root.objects()]
    assert {result.id for result in results if result.problems} == {IDENTIFIERS[1]}
    assert report.counts == {"objects": 11, "files": 19, "bytes": 55}
    assert events[-1] == ProgressEvent(items=11, failed=len(report.problems))
    advice = [problem for problem in report.problems if problem.kind == "inventory-advice"]
    assert sorted(re.findall("W[0-9]+", " ".join(problem.message for problem in advice))) == ["W004", "W007"]
    assert all("7 objects" in problem.message for problem in advice)


def test_mixed_algorithms_wait_for_a_bounded_time(root: OcflRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ocfl_check, "BESIDE", 2)
    for number in range(4, 30):
        options = {"fixity": {"md5": {}}} if number % 3 else {}
        root.put(f"info:x/{number}", at(root).parent / "in", **options)  # type: ignore[arg-type]
    report = root.check(digests=True)
    assert kinds(report) == []
    assert report.counts == {"objects": 29, "files": 58, "bytes": 174}


# --- repair -----------------------------------------------------------------------------------------------------------


def lost_lines(root: OcflRoot) -> None:
    (at(root) / "0=ocfl_1.1").write_bytes(b"ocfl_1.1")
    (path_of(root) / "0=ocfl_object_1.1").write_bytes(b"ocfl_object_1.1\r\n")


REPAIRS: list[tuple[str, Callable[[OcflRoot], object], list[str]]] = [
    ("nothing", lambda r: None, []),
    (
        "empty directories",
        lambda r: [(at(r) / name).mkdir(parents=True) for name in ("x/y", "x/z", path_of(r).parent.name)],
        ["prune"],
    ),
    ("empty content", lambda r: (path_of(r) / "v1/content/none/none").mkdir(parents=True), ["prune"]),
    ("declarations", lost_lines, ["write"]),
    ("sidecar", lambda r: (path_of(r) / "inventory.json.sha512").unlink(), ["write"]),
    ("version's sidecar", lambda r: (path_of(r) / "v1/inventory.json.sha512").unlink(), ["write"]),
    ("layout file", lambda r: (at(r) / "ocfl_layout.json").unlink(), ["write"]),
    (
        "leftover",
        lambda r: os.makedirs(at(r) / "extensions/pressmark-staging/12/object/v1"),
        ["remove"],
    ),
]


@pytest.mark.parametrize(("change", "actions"), [case[1:] for case in REPAIRS], ids=[case[0] for case in REPAIRS])
def test_repair(root: OcflRoot, change: Callable[[OcflRoot], object], actions: list[str]) -> None:
    """A repair fixes what it can, a dry run reports the same without changes, and a second repair finds nothing."""
    before = {name: data for name, data in tree(at(root)).items() if data is not None}
    change(root)
    broken = tree(at(root))
    said: list[object] = []
    assert root.repair(dry_run=True, progress=EventListener(said.append)).problems == []
    assert tree(at(root)) == broken
    done: list[object] = []
    assert root.repair(progress=EventListener(done.append)).problems == []
    assert said == done
    assert sorted({event.action for event in done if isinstance(event, RepairStep)}) == actions
    after = tree(at(root))
    assert {name: data for name, data in after.items() if data is not None} == {
        **before,
        **({"ocfl_layout.json": after["ocfl_layout.json"]} if "ocfl_layout.json" in before else {}),
    }
    done.clear()
    assert root.repair(progress=EventListener(done.append)).problems == []
    assert done == []
    assert reopened(root).layout == LAYOUTS["0003"]


def test_what_repair_leaves_alone(root: OcflRoot) -> None:
    """Problems that a repair cannot decide stay, and are reported."""
    (path_of(root) / "v1/content/a.txt").write_bytes(b"changed")
    (path_of(root, 1) / "0=ocfl_object_1.1").write_bytes(b"something else")
    (path_of(root, 2) / "inventory.json.sha512").unlink()
    rewrite(path_of(root, 2), lambda document: None, versions=False)
    (path_of(root, 2) / "inventory.json.sha512").unlink()
    (at(root) / "stray").mkdir()
    (at(root) / "stray/file").write_bytes(b"x")
    before = tree(at(root))
    report = root.repair()
    assert tree(at(root)) == before
    assert kinds(report) == ["declaration-malformed", "file-stray", "inventory-differs", "sidecar-missing"]


def test_repair_keeps_the_directory_of_a_version(root: OcflRoot) -> None:
    """A repair keeps the directory of a version, even if its content is missing."""
    folder = path_of(root)
    document = json.loads((folder / "inventory.json").read_bytes())
    document["head"] = "v2"
    document["versions"]["v2"] = document["versions"]["v1"]
    save(folder, document, head=None)
    (folder / "v2/content/none").mkdir(parents=True)
    assert kinds(root.check()) == ["content-directory-empty"]
    assert root.repair().ok
    assert sorted(os.listdir(folder / "v2")) == []


@pytest.mark.on_disk
@pytest.mark.usefixtures("stuck")
def test_repair_goes_on_where_one_directory_is_refused(root: OcflRoot) -> None:
    """A repair reports a directory that it cannot remove and repairs the rest."""
    for name in ("a", "stuck", "z"):
        (at(root) / name).mkdir()
    events: list[object] = []
    report = root.repair(progress=EventListener(events.append))
    assert events == [RepairStep("prune", "a"), RepairStep("prune", "z")]
    assert [(one.kind, one.path) for one in report.problems if one.severity == "error"] == [
        ("directory-empty", "stuck"),
        ("unrepaired", "stuck"),
    ]


def test_repair_of_an_object_that_goes(root: OcflRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repair skips an object that another run has removed."""
    (path_of(root) / "inventory.json.sha512").unlink()
    gone = path_of(root)
    walk = Walk.__iter__

    def removed(self: Any) -> Any:
        items = list(walk(self))
        shutil.rmtree(gone, ignore_errors=True)
        return iter(items)

    monkeypatch.setattr(Walk, "__iter__", removed)
    assert "sidecar-missing" not in kinds(root.repair())


def test_repair_leaves_directories_of_what_is_ignored(root: OcflRoot) -> None:
    """A dry run does not announce the removal of a directory that holds ignored files."""
    (at(root) / "empty" / "sub").mkdir(parents=True)
    (at(root) / "empty" / "sub" / ".DS_Store").write_bytes(b"x")
    for dry_run in (True, False):
        events: list[object] = []
        report = root.repair(dry_run=dry_run, progress=EventListener(events.append), ignore=[".DS_Store"])
        assert (kinds(report), events) == (["directory-empty"], [])


def test_repair_keeps_what_follows_a_declaration(root: OcflRoot) -> None:
    for tail in (b"\n\n\nnotes", b"\n" * 200 + b"notes"):
        path = path_of(root) / "0=ocfl_object_1.1"
        path.write_bytes(b"ocfl_object_1.1" + tail)
        assert kinds(root.repair()) == ["declaration-malformed"]
        assert path.read_bytes() == b"ocfl_object_1.1" + tail


@pytest.mark.on_disk
def test_repair_replaces_no_link_and_no_directory(root: OcflRoot) -> None:
    for number in range(2):
        (path_of(root, number) / "inventory.json.sha512").unlink()
    (path_of(root, 0) / "inventory.json.sha512").symlink_to("v1/inventory.json.sha512")
    (path_of(root, 1) / "inventory.json.sha512").mkdir()
    before = tree(at(root))
    assert "sidecar-missing" in kinds(root.repair())
    assert tree(at(root)) == before
    assert (path_of(root, 0) / "inventory.json.sha512").is_symlink()


@pytest.mark.on_disk
def test_an_empty_directory_of_extensions(tmp_path: Path) -> None:
    """An empty extensions directory, possibly left by a killed run, is removed."""
    root = create(tmp_path / "root", "0002")
    root.put("info:x", source(tmp_path / "in"))
    assert not (at(root) / "extensions").exists()
    (at(root) / "extensions/pressmark-staging/1/object").mkdir(parents=True)
    assert sorted({problem.kind for problem in root.check().problems}) == ["leftover"]
    assert root.repair().problems == []
    assert not (at(root) / "extensions").exists()
    (at(root) / "extensions").mkdir()
    assert kinds(root.check()) == ["directory-empty"]
    assert root.repair().problems == []
    assert not (at(root) / "extensions").exists()
