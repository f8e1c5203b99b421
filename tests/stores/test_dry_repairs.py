"""A dry run of a repair reports the changes and the remaining problems of the repair, also where they are several."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from pressmark import layout, stores
from pressmark.progress_event import EventListener
from pressmark.reports import Report
from support.trees import snapshot, write

Damage = Callable[[Path], object]


def file(name: str, data: bytes = b"x") -> Damage:
    """Return what writes a file, or makes an empty directory."""
    return lambda root: write(root, {name: data})


def below(folder: str, *names: str) -> list[Damage]:
    return [file(f"{folder}/{name}") for name in names]


def lost(name: str) -> Damage:
    return lambda root: (root / name).unlink(missing_ok=True)


def moved(old: str, new: str) -> Damage:
    def move(root: Path) -> None:
        if (root / old).exists() and not (root / new).exists():
            (root / new).parent.mkdir(parents=True, exist_ok=True)
            (root / old).rename(root / new)

    return move


def copied(old: str, new: str) -> Damage:
    def copy(root: Path) -> None:
        if (root / old).is_dir():
            shutil.copytree(root / old, root / new)
        elif (root / old).exists():
            shutil.copy(root / old, root / new)

    return copy


def edited(name: str, old: bytes, new: bytes) -> Damage:
    def edit(root: Path) -> None:
        if (root / name).exists():
            (root / name).write_bytes((root / name).read_bytes().replace(old, new))

    return edit


def killed(folder: str) -> list[Damage]:
    """Return what leaves the private directories of killed runs."""
    return [file(f"{folder}/{run}/object/f") for run in ("0123", "4567")]


PAIRTREE = [
    *below("pairtree_root", "ab/x", "ab/y", "ab/.DS_Store", "ab/cd/", "ab/ce/", "ab/ce/fg/", "ab/ce/fh/h/"),
    *below("pairtree_root", "be/nt/obj/old", "be/nt/more", "be/nt/ef/foo/x", "zz/z/ab/c", "zz/z/foo/d"),
    *below("pairtree_root", "ij/pairtree_pressmark-old/foo/x", "ij/foo/y", "kl/pairtree_pressmark-obj/one", "kl/two"),
    *below("pairtree_root", "mn/pairtree_x", "mn/one", "top", "ok/foo/x", "ok/no/thing/", "xx/pairtree_pressmark-obj"),
    *killed("pairtree_pressmark"),
]
# The namespace a~ hides urn/+1; other names are not as Vitro writes them, or decode to the same identifiers.
VITRO = [
    *below("file_storage_root", "urn/+1/f", "urn/+1/g", "urn/+1/a b", "urn/+1/^zz", "urn/+1/e/m/"),
    *below("file_storage_root", "urn/+12/3/a b", "urn/+12/3/4/", "urn/+12/345/67/f", "urn/+12/345/e/", "ur/n+1/f"),
    *below("file_storage_root", "a~1/f", "a~1/23/f", "a~2", "urn/+2/f", "a~1/234/x", "a~1/234/567/", "abc/X^2Ay"),
    *below("file_storage_root", "abc/d e/f", "abc/e/f/", "abc/e/g/h/", "raw/a b", "raw/a^20b/x"),
    *killed("file_storage_pressmark"),
]
BAGS = [
    *(moved(name, f"{name}.pressmark-old") for name in ("abc", "x/y/abc")),
    *(copied(name, f"{name}.pressmark-old") for name in ("def", "x/y/abc", "x/y/def")),
    *(lost(f"{name}/data/f") for name in ("def", "abc.pressmark-old", "x/y/abc.pressmark-old", "x/y/abc")),
    *below(".", "a/b/c/", "a/b/d/", "a/e/f/", "x/z/", "x/y/e/", "x/y/beside", "abc.pressmark-ol/"),
    *killed(".pressmark-work"),
]


def ocfl(name: str) -> list[Damage]:
    """Return damages of one object, of which any several can be repaired at once, or none."""
    return [
        edited(f"{name}/inventory.json.sha512", b"\n", b"\r\n"),
        edited(f"{name}/v1/inventory.json.sha512", b"\n", b"\r\n"),
        lost(f"{name}/v2/inventory.json.sha512"),
        file(f"{name}/v2/content/e/m/"),
        file(f"{name}/v2/content/e/n/"),
        file(f"{name}/v1/content/p/"),
        file(f"{name}/strange"),
    ]


OCFL = [
    *ocfl("x"),
    *ocfl("y"),
    *(lost(f"z/{name}") for name in ("inventory.json", "inventory.json.sha512", "0=ocfl_object_1.1")),
    copied("z/v1/inventory.json", "z/inventory.json"),
    copied("z/v1/inventory.json.sha512", "z/inventory.json.sha512"),
    edited("z/v2/content/f", b"2", b"3"),
    edited("z/inventory.json", b"sha512", b"sha51"),
    edited("x/0=ocfl_object_1.1", b"\n", b""),
    lost("ocfl_layout.json"),
    file(
        "extensions/0002-flat-direct-storage-layout/config.json",
        b'{"extensionName": "0002-flat-direct-storage-layout"}',
    ),
    file("extensions/"),
    *below(".", "e/m/p/", "e/m/q/", "e/n/", "strange/file"),
    *killed("extensions/pressmark-staging"),
]
DAMAGES = {"pairtree": PAIRTREE, "vitro": VITRO, "bags": BAGS, "ocfl": OCFL}


@pytest.fixture(scope="module", params=DAMAGES)
def pattern(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """A sound store of each kind, to be copied."""
    kind = request.param
    folder = tmp_path_factory.mktemp(kind)
    store = stores.create(kind, folder / "store", layout("0002") if kind == "ocfl" else None)
    for version in (b"1", b"2"):
        write(folder, {"given/f": version})
        for name in {"bags": ("abc", "def"), "ocfl": ("x", "y", "z")}.get(kind, ()):
            store.put(name, folder / "given", replace=version == b"2")
    if kind == "bags":
        for name in ("abc", "def"):
            shutil.copytree(folder / "store" / name, folder / "store/x/y" / name)
    if isinstance(store, stores.VitroStore):
        store.declare("urn:")
    return kind, folder / "store"


def remaining(report: Report) -> list[tuple[str, str]]:
    advice = {"inventory-advice"}  # of the first of all objects
    return sorted((found.kind, found.path) for found in report.problems if found.kind not in advice)


@settings(deadline=None)
@given(st.data())
def test_several_damages(pattern: tuple[str, Path], data: st.DataObject) -> None:
    kind, store = pattern
    damages = data.draw(st.lists(st.sampled_from(range(len(DAMAGES[kind]))), unique=True).map(sorted))
    check_repair(kind, store, [DAMAGES[kind][number] for number in damages])


def check_repair(kind: str, pattern: Path, damages: Sequence[Damage]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(shutil.copytree(pattern, Path(folder, "store"), symlinks=True))
        for damage in damages:
            # Another damage may be in its place.
            with suppress(FileExistsError, NotADirectoryError, IsADirectoryError):
                damage(root)
        open_store = partial(stores.open, root, kind)
        before = snapshot(root)
        planned: list[object] = []
        expected = open_store().repair(dry_run=True, progress=EventListener(planned.append))
        assert snapshot(root) == before
        done: list[object] = []
        report = open_store().repair(progress=EventListener(done.append))
        assert planned == done
        assert remaining(expected) == remaining(report)
        assert expected.counts.get("repaired") == report.counts.get("repaired")
        after = snapshot(root)
        again = open_store().repair(progress=EventListener(lambda step: pytest.fail(f"second repair: {step}")))
        assert snapshot(root) == after
        assert remaining(again) == remaining(report)
