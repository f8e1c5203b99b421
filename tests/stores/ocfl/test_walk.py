"""Walking a storage root returns every object once, in a fixed order, and accounts for every file."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any, Self

import pytest
from hypothesis import given, settings, strategies as st

from pressmark.errors import IdentifierError, ObjectError
from pressmark.reports import Problem
from pressmark.stores.ocfl import walk as ocfl_walk
from pressmark.stores.ocfl.local.local_storage import LocalStorage
from pressmark.stores.ocfl.root import OcflRoot
from strategies import clean_texts

from .samples import CREATED, LAYOUTS, create, kinds, rewrite, source, tree

REFUSED = {"collision", "exists", "object-inside", "reserved", "bad-name"}


@pytest.mark.parametrize("word", LAYOUTS)
@settings(max_examples=20)
@given(data=st.data())
def test_what_is_put_in_comes_back(word: str, data: st.DataObject) -> None:
    """The walk returns exactly the stored identifiers, the root is valid, and every object can be deleted."""
    common = st.one_of(
        clean_texts(), st.sampled_from(["a", "a/b", "A", "a:b", "x:a", "extensions", "a/b/v1/content/c"])
    )
    identifiers = data.draw(st.lists(common, max_size=12))
    with tempfile.TemporaryDirectory() as folder:
        root = create(Path(folder) / "root", word)
        new = tree(Path(root.root))
        (Path(folder) / "file").write_bytes(b"content")
        stored: list[str] = []
        refused: set[str] = set()
        for identifier in identifiers:
            try:
                root.put(identifier, Path(folder) / "file", created=CREATED)
            except IdentifierError:
                continue
            except ObjectError as error:
                refused.add(error.kind)
                continue
            stored.append(identifier)
        assert refused <= REFUSED
        stray: list[Problem] = []
        found = list(root.objects(problems=stray))
        assert sorted(record.id or "" for record in found) == sorted(stored)
        assert [os.fsencode(record.path) for record in found] == sorted(
            (os.fsencode(record.path) for record in found), key=lambda path: path.split(b"/")
        )
        assert stray == []
        assert all(record.proper and record.problems == () for record in found)
        assert kinds(root.check(digests=True)) == []
        for record in found:
            with root.get(record.id or "").open("file") as file:
                assert file.read() == b"content"
        for identifier in stored:
            root.delete(identifier)
        assert tree(Path(root.root)) == new


def big(tmp_path: Path) -> OcflRoot:
    """A storage root with a few hundred objects at several depths."""
    root = create(tmp_path / "root", "0011")
    file = source(tmp_path / "in") / "a.txt"
    chosen = random.Random(1)
    for number in range(150):
        folders = "/".join(f"d{chosen.randrange(4)}" for _ in range(chosen.randrange(5)))
        root.put(f"{folders}/object-{number}", file)
    return root


@pytest.mark.parametrize(("siblings", "budget", "ahead", "depth"), [(1, 1, 1, 0), (2, 3, 4, 1), (64, 256, 512, 200)])
@pytest.mark.parametrize("threads", [1, 2, 7])
def test_order_does_not_depend_on_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int, siblings: int, budget: int, ahead: int, depth: int
) -> None:
    """The order of the walk does not depend on threads or on chunks."""
    root = big(tmp_path)
    expected = sorted(
        (path.relative_to(root.root).parent for path in Path(root.root).rglob("0=ocfl_object_1.1")),
        key=lambda path: path.parts,
    )
    monkeypatch.setattr(LocalStorage, "siblings", siblings)
    for name, value in {"BUDGET": budget, "AHEAD": ahead, "DEPTH": depth}.items():
        monkeypatch.setattr(ocfl_walk, name, value)
    assert [record.path for record in root.objects(threads=threads)] == [path.as_posix() for path in expected]
    assert root.check(threads=threads).counts["objects"] == 150


class RoundPool:
    """Stands for two threads: whoever waits for a call has two of the submitted calls run at a time."""

    def __init__(self, *_arguments: object) -> None:
        self.rounds = self.calls = 0
        self.submitted: deque[Call] = deque()

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Call:
        self.submitted.append(Call(self, partial(function, *arguments)))
        return self.submitted[-1]

    def run(self) -> None:
        self.rounds += 1
        for _ in range(min(2, len(self.submitted))):
            call = self.submitted.popleft()
            call.set_result(call.function())
            self.calls += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        """Nothing runs."""


class Call(Future[Any]):
    def __init__(self, pool: RoundPool, function: Callable[[], Any]) -> None:
        super().__init__()
        self.pool = pool
        self.function = function

    def result(self, timeout: float | None = None) -> Any:
        while not self.done():
            self.pool.run()
        return super().result(timeout)


def test_two_threads_take_half_as_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No thread waits while there is work: what a call leaves over does not hold up the others."""
    pool = RoundPool()
    monkeypatch.setattr("pressmark.fs.walk.Threads", lambda *_arguments: pool)
    monkeypatch.setattr(LocalStorage, "siblings", 4)
    for name, value in {"BUDGET": 4}.items():
        monkeypatch.setattr(ocfl_walk, name, value)
    assert len(list(big(tmp_path).objects(threads=2))) == 150
    assert pool.calls > 30
    assert pool.rounds <= 0.6 * pool.calls


def test_a_walk_may_be_left(tmp_path: Path) -> None:
    """An abandoned walk leaves no thread behind."""
    root = big(tmp_path)
    walk = root.objects(threads=3)
    assert next(walk).id is not None
    walk.close()  # type: ignore[attr-defined]


def test_deep_hierarchies(tmp_path: Path) -> None:
    """A hierarchy as deep as paths allow is walked; Python's recursion limit does not apply."""
    root = create(tmp_path / "root", "0002")
    identifier = "/".join("d" for _ in range(700))
    root.put(identifier, source(tmp_path / "in") / "a.txt")
    for threads in (1, 2):
        assert [record.id for record in root.objects(threads=threads)] == [identifier]
    assert kinds(root.check()) == []
    root.delete(identifier)
    assert list(root.objects()) == []


def accounted(root: OcflRoot) -> dict[str, list[str]]:
    """Return the owner of each file, and check that it has exactly one."""
    stray: list[Problem] = []
    records = list(root.objects(problems=stray))
    objects = {record.path for record in records}
    problems = {problem.path for problem in stray}
    by: dict[str, list[str]] = {}
    for directory, folders, files in os.walk(root.root):
        if directory == root.root:
            folders[:] = [name for name in folders if name != "extensions"]
            continue
        names = [*files, *(name for name in folders if (Path(directory) / name).is_symlink())]
        for name in names:
            path = os.path.relpath(os.path.join(directory, name), root.root)
            above = [parent.as_posix() for parent in Path(path).parents if parent.as_posix() in objects]
            assert bool(above) != (path in problems), path
            by.setdefault(above[0] if above else "", []).append(path)
        if not folders and not files:
            assert os.path.relpath(directory, root.root) in problems or any(
                os.path.relpath(directory, root.root).startswith(f"{object_path}/") for object_path in objects
            )
    return by


def test_every_file_is_accounted_for(tmp_path: Path) -> None:
    """Every file belongs to exactly one object or problem, in a root with every kind of stray file."""
    root = create(tmp_path / "root", "0002")
    folder = tmp_path / "root"
    given = source(tmp_path / "in")
    for identifier in ("a", "b/c", "d", "e"):
        root.put(identifier, given)
    shutil.move(folder / "d", folder / "a/inner")
    (folder / "b/stray").write_bytes(b"x")
    (folder / "b/link").symlink_to("c")
    os.mkfifo(folder / "b/pipe")
    (folder / "empty/empty").mkdir(parents=True)
    (folder / "a/more/nothing").mkdir(parents=True)
    (folder / "a/more/file").write_bytes(b"x")
    (folder / "e/0=ocfl_object_1.1").unlink()
    (folder / "f").symlink_to("a")
    (folder / "notes.txt").write_bytes(b"files right in the root may be anything (E087)")
    by = accounted(root)
    assert sorted(by) == ["", "a", "a/inner", "b/c"]
    stray: list[Problem] = []
    records = list(root.objects(problems=stray))
    assert [(record.id, record.path, record.proper) for record in records] == [
        ("a", "a", True),
        ("d", "a/inner", False),
        ("b/c", "b/c", True),
    ]
    assert {problem.kind for problem in records[1].problems} == {"object-inside", "misplaced"}
    assert {problem.path: problem.kind for problem in stray} == {
        "b/link": "symbolic-link",
        "b/pipe": "special-file",
        "b/stray": "file-stray",
        "empty/empty": "directory-empty",
        "f": "symbolic-link",
        "e/inventory.json": "file-stray",
        "e/inventory.json.sha512": "file-stray",
        "e/v1/inventory.json": "file-stray",
        "e/v1/inventory.json.sha512": "file-stray",
        "e/v1/content/a.txt": "file-stray",
        "e/v1/content/deep/er/b.txt": "file-stray",
    }
    names = {"b/stray", "b/link", "b/pipe", "f", "empty"}
    less: list[Problem] = []
    list(root.objects(problems=less, ignore=["stray", "li*", "pipe", "?", "empty"]))
    assert not names & {problem.path for problem in less}


def test_identifiers_that_cannot_be_read(tmp_path: Path) -> None:
    """An object with an unreadable identifier is listed without one, with the reason."""
    root = create(tmp_path / "root", "0002")
    for identifier in ("a", "b", "c", "d", "e"):
        root.put(identifier, source(tmp_path / "in"))
    folder = tmp_path / "root"
    (folder / "a/inventory.json").unlink()
    (folder / "b/inventory.json").write_bytes(b"no")
    rewrite(folder / "c", lambda document: document.pop("id"))
    rewrite(folder / "d", lambda document: document.update(id=["d"]))
    rewrite(folder / "e", lambda document: document.update(id="other"))
    found = {record.path: (record.id, [problem.kind for problem in record.problems]) for record in root.objects()}
    assert found == {
        "a": (None, ["inventory-missing"]),
        "b": (None, ["inventory-malformed"]),
        "c": (None, ["inventory-value"]),
        "d": (None, ["inventory-value"]),
        "e": ("other", ["misplaced"]),
    }
    assert not any(record.proper for record in root.objects())


def test_identifiers_far_down_in_an_inventory(tmp_path: Path) -> None:
    """The identifier is found in any position, and not confused with values that look like keys."""
    root = create(tmp_path / "root", "0002")
    root.put("a", source(tmp_path / "in", {'"id": "x"': b"1", "id": b"2"}), message='{"id": "y"} \\" ')
    for order in (sorted, lambda keys: sorted(keys, reverse=True)):

        def reorder(document: dict, order=order) -> None:  # type: ignore[no-untyped-def,type-arg]
            items = dict(document)
            document.clear()
            document.update({key: items[key] for key in order(items)})

        rewrite(tmp_path / "root/a", reorder)
        assert [record.id for record in root.objects()] == ["a"]
        assert kinds(root.check()) == []
