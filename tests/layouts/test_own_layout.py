"""Layouts of one's own: one method for each direction, in every way to map, and found by their entry points."""

from __future__ import annotations

import dataclasses
import io
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

import pressmark
from pressmark.errors import IdentifierError, LayoutConfigError, NotReversibleError, PathError
from pressmark.layouts import Integer, find_layout, list_layouts, parameter
from pressmark.layouts.base import CLASSES
from support.implementations import Implementation

MODULE = '''
import dataclasses
import pressmark
from pressmark.layouts import Integer, parameter


@dataclasses.dataclass(frozen=True)
class Mine(pressmark.Layout):
    """The first characters, then the identifier."""

    name = "mine-of-tests"
    size: int = parameter(Integer(1, 10), "characters of the directory", 2)

    def to_path(self, id):
        if id.startswith("#"):
            raise ValueError("identifier starts with '#'")
        return None if id == "none" else {}[id] if id == "key" else f"{id[: self.size]}/{id}"

    def to_id(self, path):
        return path[path.index("/") + 1 :]


@dataclasses.dataclass(frozen=True)
class OneWay(pressmark.Layout):
    name = "one-way-of-tests"

    def to_path(self, id):
        return id
'''
UNDECORATED = """
import pressmark
from pressmark.layouts import Integer, parameter


class Forgotten(pressmark.Layout):
    name = "forgotten-of-tests"
    size: int = parameter(Integer(1, 10), "characters of the directory", 2)

    def to_path(self, id):
        return id
"""
IDS = ["abc", "#x", "é1", "", "../x", "none", "key"]
PATHS = ["ab/abc", None, "é1/é1", None, None, None, None]
REASONS = {
    1: "identifier starts with '#'",
    3: "identifier is empty",
    4: "path segment '..' at offset 0",
    5: "TypeError: to_path returned NoneType, not str",
    6: "KeyError: 'key'",
}


def install(folder: Path, *lines: str) -> None:
    """Write what an installation of a distribution ``mine`` would."""
    metadata = folder / "mine-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("\n".join(["[pressmark.layouts]", *lines, ""]))
    (folder / "own_layout_of_tests.py").write_text(MODULE)
    (folder / "undecorated_of_tests.py").write_text(UNDECORATED)


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, implementation: Implementation) -> Iterator[pressmark.Layout]:
    """The layout, found by its entry point."""
    install(tmp_path, "mine-of-tests = own_layout_of_tests:Mine")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    before = dict(CLASSES)
    yield pressmark.layout("mine-of-tests:size=2")
    CLASSES.clear()
    CLASSES.update(before)
    for module in ("own_layout_of_tests", "undecorated_of_tests"):
        sys.modules.pop(module, None)


def test_every_item(mine: pressmark.Layout) -> None:
    """Items and lists have one result, and one error for each item without."""
    errors: list[IdentifierError] = []
    assert mine.map(IDS, "none", errors=errors) == PATHS
    assert {error.index: error.reason for error in errors} == REASONS
    assert (mine.map_id("abc"), mine.unmap_path("ab/abc"), mine.map(b"\xff")) == ("ab/abc", "abc", "\udcff/\udcff")
    with pytest.raises(IdentifierError, match="KeyError") as caught:
        mine.map_id("key")
    assert isinstance(caught.value.__cause__, KeyError)


def test_the_inverse_is_strict(mine: pressmark.Layout) -> None:
    """A path that the layout does not return has no identifier."""
    errors: list[PathError] = []
    assert mine.unmap(["ab/abc", "xx/abc", "abc"], "none", errors=errors) == ["abc", None, None]
    assert errors[0].reason == "no identifier maps to this path (first difference at offset 0)"
    assert errors[1].reason == "substring not found"
    one_way = find_layout("one-way-of-tests")()
    assert not one_way.reversible
    with pytest.raises(NotReversibleError):
        one_way.unmap_path("a")


@pytest.mark.parametrize("threads", [1, 3])
def test_columns(mine: pressmark.Layout, threads: int) -> None:
    """Columns have the results of lists; nulls stay null."""
    pa = pytest.importorskip("pyarrow")
    errors: list[IdentifierError] = []
    column = pa.chunked_array([[*IDS, None], ["abc"] * 200_000])
    result = mine.map(column, "none", errors=errors, threads=threads)
    assert result.to_pylist() == [*PATHS, None] + ["ab/abc"] * 200_000
    assert {error.index: error.reason for error in errors} == REASONS
    assert mine.unmap(result, threads=threads).to_pylist()[:3] == ["abc", None, "é1"]
    with pytest.raises(IdentifierError, match="starts with '#'"):
        mine.map(column, threads=threads)


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_columns_of_libraries(mine: pressmark.Layout, library: str) -> None:
    """A column of polars or pandas gives one of the same library."""
    pytest.importorskip("pyarrow")
    module = pytest.importorskip(library)
    result = mine.map(module.Series(["abc", "de"]))
    assert isinstance(result, module.Series)
    assert list(result) == ["ab/abc", "de/de"]


def test_files(mine: pressmark.Layout) -> None:
    """Lines and tables have the results of lists."""
    errors: list[IdentifierError] = []
    lines, table, rows = io.BytesIO(), io.BytesIO(), io.BytesIO()
    source = io.BytesIO("\n".join([*IDS, ""]).encode())
    assert mine.map_file(source, lines, on_error="none", errors=errors, threads=2).failed == len(REASONS)
    assert lines.getvalue().decode() == "".join(f"{path or ''}\n" for path in PATHS)
    assert {error.index: error.reason for error in errors} == REASONS
    mine.map_file(io.BytesIO(b"id,n\nabc,1\n"), table, column="id", format="csv")
    assert table.getvalue() == b"id,n,path\nabc,1,ab/abc\n"
    mine.map_file(io.BytesIO(b'{"id": "abc"}\n'), rows, column="id", format="jsonl")
    assert b'"ab/abc"' in rows.getvalue()


def test_parquet(mine: pressmark.Layout) -> None:
    """Parquet has the results of lists."""
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    source, result = io.BytesIO(), io.BytesIO()
    parquet.write_table(pa.table({"id": ["abc", None, "#x"]}), source)
    source.seek(0)
    mine.map_file(source, result, column="id", format="parquet", on_error="none")
    assert parquet.read_table(io.BytesIO(result.getvalue()))["path"].to_pylist() == ["ab/abc", None, None]


def test_processes(mine: pressmark.Layout) -> None:
    """A layout is pickled without its kernels, and maps in another process."""
    mine.map_id("abc")
    assert pickle.loads(pickle.dumps(mine)) == mine
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(mine.map, ["abc"]).result() == ["ab/abc"]


SCRIPT = """
import pathlib, shutil, sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pressmark import migrate, stores
from pressmark.jobs import run_local

if __name__ == "__main__":
    how, entry_point = sys.argv[1:]
    if entry_point == "imported":
        import own_layout_of_tests
    stores.create("pairtree", "source").put("abc", {"a.txt": pathlib.Path("a.txt")})
    plan = migrate.plan("source", "root", to="ocfl", layout="9999-mine-of-tests", work="work")
    if how == "local":
        run = migrate.run(plan, workers=2)
    elif how == "dask":
        from distributed import LocalCluster

        with LocalCluster(n_workers=1, threads_per_worker=1, host="127.0.0.1", dashboard_address=":0") as cluster:
            with cluster.get_client() as client:
                run = migrate.run(plan, client=client)
    else:
        with ProcessPoolExecutor(2, mp_context=get_context(how)) as executor:
            run = migrate.run(plan, executor=executor)
    assert (run.by_status, run.failed) == ({"ok": 1}, ()), run
    assert not migrate.verify(plan, workers=2).failed
    assert stores.open("root").find("abc").path == "ab/abc"
    assert run_local(stores.CheckStore("root"), "check", workers=2).by_status["ok"] == 1
"""


@pytest.mark.parametrize("entry_point", ["installed", "imported"])
@pytest.mark.parametrize("how", ["local", "spawn", "dask"])
def test_workers_of_jobs(tmp_path: Path, how: str, entry_point: str) -> None:
    """Worker processes find a layout by its entry point, or import the module that the caller has imported."""
    if how == "dask":
        pytest.importorskip("distributed")
    name = "9999-mine-of-tests"  # layouts of OCFL have a number
    install(tmp_path, *([f"{name} = own_layout_of_tests:Mine"] if entry_point == "installed" else []))
    (tmp_path / "own_layout_of_tests.py").write_text(MODULE.replace("mine-of-tests", name))
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "script.py").write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [sys.executable, "script.py", how, entry_point],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stderr, done.returncode) == ("", 0)


def test_commands(mine: pressmark.Layout, tmp_path: Path) -> None:
    """Commands find the layout by its entry point."""
    for arguments, stdin, stdout in (
        (["map", "mine-of-tests:size=1"], "abc\n", "a/abc\n"),
        (["unmap", "mine-of-tests"], "ab/abc\n", "abc\n"),
        (["layouts", "mine-of-tests"], "", "mine-of-tests\n  summary        The first characters"),
        (["compare", "-", "--layout", "mine-of-tests", "--json"], "abc\n", "{"),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "pressmark", *arguments], input=stdin, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith(stdout)


FORGOTTEN = "Forgotten.size: the class lacks @dataclasses.dataclass(frozen=True); add the decorator"


@pytest.fixture
def forgotten() -> Iterator[type[pressmark.Layout]]:
    """A layout whose author forgot the decorator."""

    class Forgotten(pressmark.Layout):
        name = "forgotten-of-tests"
        size: int = parameter(Integer(1, 10), "characters of the directory", 2)

        def to_path(self, id: str) -> str:
            return f"{id[: self.size]}/{id}"

    yield Forgotten
    del CLASSES[Forgotten.name]


@pytest.mark.parametrize(
    "call",
    [
        lambda cls: cls(),
        lambda cls: cls(size=3),
        lambda cls: pressmark.layout("forgotten-of-tests"),
        lambda cls: pressmark.layout("forgotten-of-tests", size=3),
        lambda cls: pressmark.layout("forgotten-of-tests:size=3"),
        lambda cls: pressmark.layout_from_config({"extensionName": "forgotten-of-tests", "size": 3}),
        lambda cls: cls.parameters(),
    ],
    ids=["class", "parameter", "name", "name and parameter", "setting", "configuration", "parameters"],
)
def test_a_forgotten_decorator(
    forgotten: type[pressmark.Layout], call: Callable[[type[pressmark.Layout]], object]
) -> None:
    """A parameter of a class without the decorator is an error, not ignored."""
    with pytest.raises(TypeError) as caught:
        call(forgotten)
    assert str(caught.value) == FORGOTTEN


def test_a_forgotten_decorator_of_a_base(forgotten: type[pressmark.Layout]) -> None:
    """A decorated subclass does not repair its base."""

    @dataclasses.dataclass(frozen=True)
    class Child(forgotten):  # type: ignore[valid-type, misc]
        more: int = parameter(Integer(1, 10), "more", 2)

    with pytest.raises(TypeError, match=r"^Forgotten\.size: "):
        Child()


def test_a_field_that_is_not_a_parameter() -> None:
    """A plain field of the dataclass is an error: it has no check."""

    @dataclasses.dataclass(frozen=True)
    class Plain(pressmark.Layout):
        size: int = 3

        def to_path(self, id: str) -> str:
            return id

    with pytest.raises(TypeError) as caught:
        Plain()
    assert str(caught.value) == "Plain.size: not a parameter; declare it as parameter(check, meaning, default)"


def test_a_class_without_parameters_needs_no_decorator(mine: pressmark.Layout) -> None:
    """A subclass may change a method only."""

    class Shouted(type(mine)):  # type: ignore[misc]
        def to_path(self, id: str) -> str:
            return f"{super().to_path(id)}!"

    assert Shouted(size=1).map("abc") == "a/abc!"


@pytest.mark.parametrize(
    ("line", "name", "reason"),
    [
        ("gone = no_such_module:X", "gone", "cannot import no_such_module:X (ModuleNotFoundError: "),
        ("text = os:sep", "text", "os:sep is not a subclass of pressmark.Layout; correct the entry point"),
        ("other = own_layout_of_tests:Mine", "other", "own_layout_of_tests:Mine has the name 'mine-of-tests'; give"),
        (
            "forgotten-of-tests = undecorated_of_tests:Forgotten",
            "forgotten-of-tests",
            "undecorated_of_tests:Forgotten is not usable (Forgotten.size: the class lacks @dataclasses.dataclass",
        ),
        ("0003 = own_layout_of_tests:Mine", "", "Pressmark has a layout of this name; rename the entry point"),
    ],
)
def test_bad_entry_points(
    line: str, name: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mine: pressmark.Layout
) -> None:
    """The error of an entry point names its distribution; the list of layouts has the others."""
    folder = tmp_path / "bad"
    folder.mkdir()
    install(folder, line)
    metadata = (folder / "mine-1.0.dist-info").rename(folder / "bad-1.0.dist-info") / "METADATA"
    metadata.write_text(metadata.read_text().replace("Name: mine", "Name: bad"))
    monkeypatch.syspath_prepend(folder)
    errors: list[LayoutConfigError] = []
    assert len(list_layouts(errors)) >= 11
    assert [error.reason.startswith(f"entry point '{line.split()[0]}' of distribution bad: ") for error in errors] == [
        True
    ]
    assert reason in errors[0].reason
    assert "\n" not in errors[0].reason
    if name:
        with pytest.raises(LayoutConfigError, match="of distribution bad"):
            find_layout(name)
    else:
        assert find_layout("0003") is pressmark.HashAndIdNTuple
