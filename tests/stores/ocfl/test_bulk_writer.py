"""Many objects at once, and one: same results, same refusals."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from pressmark.errors import ObjectError
from pressmark.stores.ocfl import inventory
from pressmark.stores.ocfl.root import OcflRoot
from pressmark.stores.ocfl.writing.bulk_writer import BulkWriter
from support.implementations import Implementation, use

from .samples import CREATED, at, create, kinds

OBJECTS: dict[str, dict[str, bytes]] = {
    "mdp.39015012345678": {"39015012345678.mets.xml": b"<mets/>", "39015012345678.zip": b"PK" * 900},
    'ark:/13960/t"\\\n\x01\u20ac\U0001f600': {"one": b"1"},
    "nested": {"b/c/d": b"deep", "b/c.txt": b"beside", "a": b"a"},
    "x" * 200: {"f" * 255: b"long"},
}
OTHERS: dict[str, dict[str, bytes]] = {
    "same content": {"a": b"same", "b": b"same"},
    "names": {"caf\u00e9": b"1", 'quo"te': b"2", "new\nline": b"3"},
    "nothing in one": {"a": b"", "b": b"b"},
    "large": {"a": bytes(20_000)},
}

pytestmark = pytest.mark.usefixtures("every_storage")


def lay(folder: Path, objects: dict[str, dict[str, bytes]]) -> dict[str, Path]:
    """Make the files of objects, each in its own directory."""
    tops = {}
    for number, (identifier, files) in enumerate(objects.items()):
        tops[identifier] = top = folder / str(number) / "obj"
        for name, data in files.items():
            (top / name).parent.mkdir(parents=True, exist_ok=True)
            (top / name).write_bytes(data)
            os.utime(top / name, ns=(1_700_000_000_123_456_789, 1_600_000_000_987_654_321))
            (top / name).chmod(0o640)
    return tops


def together(root: OcflRoot, tops: dict[str, Path]) -> None:
    """Put all objects at once."""
    with root._writer("copy") as writer:
        sizes = list(writer.prepare_all(list(tops.items())))
        assert sizes == [sum(path.stat().st_size for path in top.rglob("*") if path.is_file()) for top in tops.values()]
        assert all(error is None for _staged, error in writer.commit())


def alone(root: OcflRoot, tops: dict[str, Path]) -> None:
    """Put objects one by one, with their files."""
    with root._writer("copy") as writer:
        for identifier, top in tops.items():
            paths = [path for path in top.rglob("*") if path.is_file()]
            paths.sort(key=lambda path: path.parts)  # in the order of a walk
            stage(writer, identifier, [(os.fsencode(path.relative_to(top)), os.fsencode(path)) for path in paths])
        assert all(error is None for _staged, error in writer.commit())


def stage(writer: BulkWriter, identifier: str, files: list[tuple[bytes, bytes]], path: bytes | None = None) -> None:
    """Write one object aside."""
    staged = writer.begin_new(identifier, files, path)
    writer.copy([staged])
    writer.end(staged)


def tree(top: Path) -> dict[str, tuple[bytes, int, int]]:
    """Return content and permissions of all files, and times of copied files."""
    return {
        str(path.relative_to(top)): (
            path.read_bytes(),
            path.stat().st_mode & 0o777,
            path.stat().st_mtime_ns if "content" in path.parts else 0,
        )
        for path in top.rglob("*")
        if path.is_file()
    }


def test_objects_are_the_same(tmp_path: Path, implementation: Implementation, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many objects at once, and each alone with the list of its files, are written alike."""
    monkeypatch.setattr(inventory, "_moment", lambda _seconds: CREATED)
    tops = lay(tmp_path / "source", {**OBJECTS, **OTHERS})
    with use(implementation):
        many, one = create(tmp_path / "many"), create(tmp_path / "one")
        together(many, tops)
        alone(one, tops)
        assert tree(tmp_path / "many") == tree(tmp_path / "one")
        assert kinds(many.check(digests=True)) == []


@pytest.mark.parametrize(
    ("message", "user"),
    [
        (None, None),
        ('say "hello"\n\u20ac', {"name": 'A "B" C', "address": "mailto:a@b.example"}),
        ("<pressmark:0> and <pressmark:3>", None),
    ],
)
def test_what_a_version_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, message: str | None, user: dict[str, str] | None
) -> None:
    """Any message and user are written correctly, even text that looks like part of an inventory."""
    monkeypatch.setattr(inventory, "_moment", lambda _seconds: CREATED)
    tops = lay(tmp_path / "source", OBJECTS)
    many, one = (create(tmp_path / name, message=message) for name in ("many", "one"))
    many.user = one.user = user
    together(many, tops)
    alone(one, tops)
    assert tree(tmp_path / "many") == tree(tmp_path / "one")
    for found in many.objects():
        (version,) = many.get(str(found.id)).versions()
        assert (version.message, version.user) == (message, user)


def test_what_is_there_stays(tmp_path: Path, implementation: Implementation) -> None:
    """An existing object at the path, an object above it, or a file above it is refused and not changed."""
    tops = lay(tmp_path / "source", {"one": {"f": b"1"}, "two": {"f": b"2"}})
    with use(implementation):
        root = create(tmp_path / "root")
        alone(root, {"one": tops["one"]})
        before = tree(at(root))
        with root._writer("copy") as writer:
            files = [(b"f", os.fsencode(tops["two"] / "f"))]
            stage(writer, "one", files, root.path_for("one").encode())
            stage(writer, "two", files, root.path_for("one").encode() + b"/below")
            errors = [error for _staged, error in writer.commit()]
        assert [type(error) for error in errors] == [ObjectError, ObjectError]
        assert [error.kind for error in errors if error] == ["exists", "object-inside"]
        assert tree(at(root)) == before
        shutil.rmtree(tmp_path / "source")
        assert kinds(root.check(digests=True)) == []


@pytest.mark.on_disk
def test_an_object_that_another_run_removes_is_not_invalid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch that looks at an object while its files are removed looks again, and stores the new one."""
    root = create(tmp_path / "root")
    source = lay(tmp_path, {"abc": {"f": b"1"}})["abc"]
    root.put("abc", source)
    folder = at(root) / root.find("abc").path
    look_up = OcflRoot.look_up

    def removed_meanwhile(self: OcflRoot, *arguments: Any, **options: Any) -> Any:
        if folder.exists():
            (folder / "0=ocfl_object_1.1").unlink()
            try:
                return look_up(self, *arguments, **options)
            finally:
                shutil.rmtree(folder)
        return look_up(self, *arguments, **options)

    monkeypatch.setattr(OcflRoot, "look_up", removed_meanwhile)
    with root.ingest(replace=True) as batch:
        batch.put("abc", source)
    assert kinds(root.check(digests=True)) == []
    assert [record.id for record in root.objects()] == ["abc"]
