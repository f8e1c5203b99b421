"""The walk: rules 8 to 18 of Pairtree, object by object, compared with a naive transcription."""

from __future__ import annotations

import itertools
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, strategies as st

from pressmark import stores
from pressmark.errors import StoreError
from pressmark.fs.names import encode_fs
from pressmark.reports import Problem
from pressmark.stores import StoreObject
from pressmark.stores.directories import store_directory
from pressmark.stores.pairtree import walk as pairtree_walk
from pressmark.stores.pairtree.pairtree_store import PairtreeStore
from support.implementations import Implementation, use
from support.in_bucket import read_both
from support.trees import write

from ..conftest import Tree


def walked(base: Path, **options: object) -> tuple[dict[str, tuple[str | None, str | None, list[str]]], list[str]]:
    """Return path -> identifier, encapsulation and kinds of problems of every object; and the other problems.

    In a bucket, they must be the same, and the report of a check.
    """
    read_both(base, checked_at)
    return read_both(base, lambda place: walked_at(place, **options))


def checked_at(base: str) -> tuple[list[dict[str, object]], dict[str, int]]:
    report = PairtreeStore(base).check()
    return [problem.record() for problem in report.problems], report.counts


def listed_at(base: str) -> tuple[list[StoreObject], list[Problem]]:
    problems: list[Problem] = []
    return list(PairtreeStore(base).objects(problems=problems)), problems


def files_at(base: str) -> list[list[tuple[str, bytes]]]:
    """Return the name and the content of each file in each object, and the names of empty directories."""
    store = PairtreeStore(base)
    found = []
    for stored in map(store.locate, store.objects()):
        files = [(name, stored.read_bytes(name)) for name, _path in stored.files()]
        found.append([*files, *((name, b"") for name, _path in stored.empty_directories())])
    return found


def walked_at(base: str, **options: object) -> tuple[dict[str, tuple[str | None, str | None, list[str]]], list[str]]:
    others: list[Problem] = []
    store = PairtreeStore(base, **options)  # type: ignore[arg-type]
    found = {}
    for record in store.objects(problems=others):
        assert record.proper == (record.encapsulation is not None)
        kinds = [problem.kind for problem in record.problems]
        found[record.path.removeprefix("pairtree_root/")] = (record.id, record.encapsulation, kinds)
    return found, [f"{each.path}: {each.kind}" for each in others]


# Names below pairtree_root -> objects, and problems without an object.
RULES: dict[str, tuple[tuple[str | bytes, ...], dict[str, object], list[str]]] = {
    "2 proper": (
        ("ab/cd/foo/README.txt", "ab/cd/foo/gh/x", "ab/cd/e/bar/54321.wav"),
        {"ab/cd": ("abcd", "foo", []), "ab/cd/e": ("abcde", "bar", [])},
        [],
    ),
    "2 split end": (
        ("be/nt/README.txt", "be/nt/report.pdf", "be/nt/ef/gh/foo/x"),
        {"be/nt": ("bent", None, ["split-end"]), "be/nt/ef/gh": ("bentefgh", "foo", [])},
        [],
    ),
    "13 a file of two characters": (("ab/xy",), {"ab": ("ab", None, ["bare-file"])}, []),
    "13 a file on the way": (
        ("ab/file", "ab/cd/foo/x"),
        {"ab": ("ab", None, ["bare-file"]), "ab/cd": ("abcd", "foo", [])},
        [],
    ),
    "14 an encapsulated pairtree": (("ab/foo/pairtree_root/cd/bar/x",), {"ab": ("ab", "foo", [])}, []),
    "15 two directories": (("ab/foo/x", "ab/bar/x"), {"ab": ("ab", None, ["split-end"])}, []),
    "A5 a morty ends": (("ab/c/de/x",), {"ab/c": ("abc", None, ["post-morty"])}, []),
    "A5 a morty with more": (
        ("ab/c/de/x", "ab/c/foo/x"),
        {"ab/c": ("abc", None, ["split-end", "post-morty"])},
        [],
    ),
    "16 reserved": (
        ("ab/pairtree_x/y", "ab/cd/foo/x", "ab/cd/pairtreefile", "pairtree9"),
        {"ab/cd": ("abcd", "foo", [])},
        [f"pairtree_root/{name}: reserved" for name in ("pairtree9", "ab/pairtree_x", "ab/cd/pairtreefile")],
    ),
    "17 empty": (("ab/cd/", "ab/e/"), {}, ["pairtree_root/ab/cd: empty", "pairtree_root/ab/e: empty"]),
    "18 an empty object": (("ab/foo/",), {"ab": ("ab", "foo", [])}, []),
    "A1 upper case and needless": (
        ("^2/A/foo/x", "^6/1b/foo/x"),
        {"^2/A": ("*", "foo", ["not-canonical"]), "^6/1b": ("ab", "foo", ["not-canonical"])},
        [],
    ),
    "A2 malformed": (
        ("ab/^/foo/x", "^r/fx/foo/y"),
        {"ab/^": (None, "foo", ["undecodable"]), "^r/fx": (None, "foo", ["undecodable"])},
        [],
    ),
    "A3 not UTF-8": (("^f/fa/foo/x",), {"^f/fa": ("\udcffa", "foo", ["not-utf8"])}, []),
    "A4 uncleaned": (
        ("a./é/foo/x", b"\xff\xfe/bar/x", " a/foo/x"),
        {
            " a": (" a", "foo", ["not-canonical"]),
            "a./é": ("a.é", "foo", ["not-canonical"]),
            "\udcff\udcfe": ("\udcff\udcfe", "bar", ["not-utf8", "not-canonical"]),
        },
        [],
    ),
    "A4 three characters of few octets": (("ab/éàü/x",), {"ab": ("ab", "éàü", [])}, []),
    "A7 the empty identifier": (
        ("foo/x", "ab/foo/x"),
        {"pairtree_root": (None, None, ["empty-id"]), "ab": ("ab", "foo", [])},
        [],
    ),
    "A15 dot files": (("ab/foo/x", "ab/.dotfile"), {"ab": ("ab", None, ["split-end"])}, []),
    "junk": (
        ("ab/foo/x", "ab/.DS_Store", "cd/Thumbs.db", "e/._a", ".DS_Store", "gh/a", "gh/desktop.ini", "ij/foo/._a"),
        {"ab": ("ab", "foo", []), "gh": ("gh", None, ["bare-file"]), "ij": ("ij", "foo", [])},
        [
            *(f"pairtree_root/{path}: junk" for path in (".DS_Store", "ab/.DS_Store", "cd/Thumbs.db", "e/._a")),
            "pairtree_root/gh/desktop.ini: junk",
        ],
    ),
    "directories with names of junk": (
        ("__/MA/CO/SX/__MACOSX/x", "ab/.DS_Store/x", "cd/foo/x", "cd/__MACOSX/y", "ef/@eaDir/z", "gh/.Trash-1000/z"),
        {
            "__/MA/CO/SX": ("__MACOSX", "__MACOSX", []),
            "ab": ("ab", ".DS_Store", []),
            "cd": ("cd", "foo", []),
        },
        ["pairtree_root/cd/__MACOSX: junk", "pairtree_root/ef/@eaDir: junk", "pairtree_root/gh/.Trash-1000: junk"],
    ),
    "files in the root": (
        ("ab/foo/x", "notes.txt", "a", "cd"),
        {"ab": ("ab", "foo", [])},
        [f"pairtree_root/{name}: root-file" for name in ("a", "cd", "notes.txt")],
    ),
    "files and directories in the root": (
        ("foo/x", "notes.txt", "ab/notes.txt"),
        {"pairtree_root": (None, None, ["empty-id"]), "ab": ("ab", None, ["bare-file"])},
        ["pairtree_root/notes.txt: root-file"],
    ),
    "A19 two ppaths, one identifier": (
        ("^2/0/foo/x", "^2/0x/foo/x", " x/foo/x", "^7/Ax/foo/x", "^7/ax/foo/x"),
        {
            " x": (" x", "foo", ["not-canonical", "duplicate-id"]),
            "^2/0": (" ", "foo", []),
            "^2/0x": (" x", "foo", []),
            "^7/Ax": ("zx", "foo", ["not-canonical"]),
            "^7/ax": ("zx", "foo", ["not-canonical", "duplicate-id"]),
        },
        [],
    ),
    "order": (
        ("ab/foo/x", "a/foo/x", "a!/foo/x", "ab/c/foo/x", "ab/cd/foo/x", "AB/foo/x"),
        {name: (name.replace("/", ""), "foo", []) for name in ("AB", "a", "a!", "ab", "ab/c", "ab/cd")},
        [],
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_rules(implementation: Implementation, tree: Tree, rule: str) -> None:
    """A small tree shows each rule."""
    names, objects, others = RULES[rule]
    found = walked(tree(*names))
    assert found == (objects, others)
    assert rule != "order" or list(found[0]) == list(objects)


def test_beside(tree: Tree) -> None:
    """Foreign files beside the tree belong to no object; initiation files belong to Pairtree."""
    base = tree("ab/foo/x", stranger=b"", pairtree_prefix=b"p:", pairtree_version0_1=b"", pairtree_other=b"")
    assert walked(base) == ({"ab": ("p:ab", "foo", [])}, ["stranger: beside"])
    report = PairtreeStore(base).check()
    assert [problem.kind for problem in report.problems] == ["version-unknown", "beside"]
    assert report.counts == {"objects": 1, "proper": 1}


def test_ignoring(tree: Tree) -> None:
    """Ignored names belong to no object at any depth; directories that extend a ppath are never ignored."""
    base = tree(
        "ab/foo/x", "ab/.DS_Store", "ab/cd/.DS_Store", ".nfs1", "ab/.snapshot/x", "ab/c/.DS_Store", "ab/c/bar/y"
    )
    objects = {"ab": ("ab", "foo", []), "ab/c": ("abc", "bar", [])}
    assert walked(base, ignore=[".DS_Store", ".nfs*", ".snap*", "a?", "c*"]) == (objects, [])
    assert [record.id for record in PairtreeStore(base).objects(ignore=[".*"])] == ["ab", "abc"]


@pytest.mark.skipif(os.name != "posix", reason="needs symbolic links")
def test_links(implementation: Implementation, tree: Tree, tmp_path: Path) -> None:
    """Links are followed, except upward ones; or all are refused."""
    base = tree("ab/cd/foo/x", "ef/x")
    root = base / "pairtree_root"
    write(tmp_path / "elsewhere", {"gh/foo/x": b"", "volume/x": b""})
    (root / "gh").symlink_to("../../elsewhere/gh")  # a branch
    (root / "ab" / "up").symlink_to("..")
    (root / "ij").mkdir()
    (root / "ij" / "volume").symlink_to("../../../elsewhere/volume")  # an object
    (root / "kl").mkdir()
    (root / "kl" / "xyz").symlink_to("nowhere")
    (root / "mn").symlink_to("ef/x")  # a file
    (root / "op").mkdir()
    (root / "op" / "zz").symlink_to("../ef/x")
    assert walked(base) == (
        {
            "ab/cd": ("abcd", "foo", []),
            "ef": ("ef", None, ["bare-file"]),
            "gh": ("gh", "foo", []),
            "ij": ("ij", "volume", []),
            "kl": ("kl", None, ["bare-file", "link-dangling"]),
            "op": ("op", None, ["bare-file"]),
        },
        ["pairtree_root/mn: root-file", "pairtree_root/ab/up: link-loop"],
    )
    refused, others = walked(base, links="refuse")
    assert sorted(others) == [f"pairtree_root/{path}: link" for path in ("ab/up", "gh", "mn", "op/zz")]
    assert {directory: kinds for directory, (_, _, kinds) in refused.items()} == {
        "ab/cd": [],
        "ef": ["bare-file"],
        "ij": ["link"],
        "kl": ["link"],
    }


def test_files_in_the_staging_directory(tree: Tree) -> None:
    """Files in the staging directory or with a reserved name are accounted for."""
    base = tree(*("ab/foo/x", "ab/pairtree_pressmark", "cd/pairtree_pressmark/one", "ef/pairtree_pressmark-old"))
    write(base, {"pairtree_pressmark/two": b"x"})
    objects, others = walked(base)
    assert objects == {"ab": ("ab", "foo", [])}
    assert sorted(others) == [
        "pairtree_pressmark/two: reserved",
        "pairtree_root/ab/pairtree_pressmark: reserved",
        "pairtree_root/cd/pairtree_pressmark/one: reserved",
        "pairtree_root/ef/pairtree_pressmark-old: reserved",
    ]
    (base / "pairtree_pressmark" / "two").unlink()
    (base / "pairtree_pressmark").rmdir()
    write(base, {"pairtree_pressmark": b"x"})
    assert "pairtree_pressmark: reserved" in walked(base)[1]


@pytest.mark.skipif(os.name != "posix", reason="needs symbolic links")
def test_a_link_to_the_root(tree: Tree) -> None:
    """A link to the file system's root, which contains this tree, is followed only once."""
    base = tree("ab/foo/x")
    (base / "pairtree_root" / "rt").symlink_to("/")
    others: list[Problem] = []
    records = itertools.islice(PairtreeStore(base).objects(problems=others), 10_000)
    assert "ab" in [record.id for record in records]


def test_unreadable(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unreadable directory is a problem, and the rest is walked."""
    base = tree("ab/foo/x", "cd/foo/x", "cd/pairtree1", "ef/foo/x")
    real = store_directory.scan

    def scan(directory: bytes, **options: bool) -> object:
        if directory.endswith(b"/cd"):
            raise PermissionError(13, "Permission denied", directory)
        return real(directory, **options)

    monkeypatch.setattr(store_directory, "scan", scan)
    assert walked_at(str(base)) == (
        {"ab": ("ab", "foo", []), "ef": ("ef", "foo", [])},
        ["pairtree_root/cd: unreadable"],
    )


def test_paths_that_are_too_long(tree: Tree) -> None:
    """A tree deeper than a path can be is walked as far as possible; the rest is a problem."""
    base = tree("zz/foo/x")
    descriptors = [os.open(base / "pairtree_root", os.O_RDONLY)]
    try:
        for _ in range(1500):
            os.mkdir("ab", dir_fd=descriptors[-1])
            descriptors.append(os.open("ab", os.O_RDONLY, dir_fd=descriptors[-1]))
            os.close(descriptors.pop(-2)) if len(descriptors) > 2 else None
        objects, others = walked_at(str(base))
        assert objects == {"zz": ("zz", "foo", [])}
        assert [other.rpartition(": ")[2] for other in others] == ["unreadable"]
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
        # The removal of temporary folders cannot reach this depth by path.
        os.system(f"rm -r '{base}/pairtree_root/ab'")


# --- any tree ---------------------------------------------------------------------------------------------------------

NAMES = st.sampled_from(
    [
        *(
            "a",
            "b",
            "ab",
            "cd",
            "^2",
            "0x",
            "2a",
            "A.",
            "é",
            "éa",
            "日本",
            "x/",
            ".",
            "..",
            "foo",
            "foo-",
            "a+",
            "obj",
            "barn",
            "éàü",
        ),
        *(
            "日本語",
            "pairtree",
            "pairtree_x",
            "pairtrees",
            "pairtre",
            ".DS_Store",
            "._a",
            "Thumbs.db",
            "^",
            "\\a",
            " ",
            "\t\n",
            "a" * 60,
        ),
        *(b"\xff", b"\xff\xfe", b"\xff\xfe\xfd", b"\xc3\xa9\xff", b"\xf0\x9f\x93\x9a\xf0\x9f\x93\x9a"),
    ]
).filter(lambda name: name not in (".", "..", "x/"))
# A tree: name -> a file (None) or a directory.
TREES = st.recursive(
    st.none(), lambda inner: st.dictionaries(NAMES.map(encode_fs), inner, max_size=4), max_leaves=25
).filter(lambda tree: tree is not None)


def build(folder: bytes, tree: dict[bytes, object]) -> None:
    os.makedirs(folder, exist_ok=True)
    for name, below in tree.items():
        path = os.path.join(folder, name)
        if below is None:
            Path(os.fsdecode(path)).write_bytes(b"x")
        else:
            build(path, below)  # type: ignore[arg-type]


def naive(tree: dict[bytes, object], path: str = "") -> tuple[list[tuple[str, int, bool]], list[str]]:
    """Sections 2 and C transcribed: objects as (ppath, number of names, proper), and the names without an object."""
    objects: list[tuple[str, int, bool]] = []
    others: list[str] = []
    name = path.rpartition("/")[2]
    morty = len(name) == 1
    extending, ends = [], []
    for octets_, below in sorted(tree.items()):
        child = octets_.decode("utf-8", "surrogateescape")
        is_stray = below is None and (not path or child in (".DS_Store", "._a", "Thumbs.db"))
        if child.startswith("pairtree") or is_stray:
            others.append(f"{path}/{child}".lstrip("/"))
        elif below is not None and len(child) <= 2 and not morty:
            extending.append((child, below))
        else:
            ends.append((child, below))
    if ends:
        proper = len(ends) == 1 and ends[0][1] is not None and len(ends[0][0]) >= 3 and bool(path)
        objects.append((path, len(ends), proper))
    if path and not tree:
        others.append(path)
    for child, below in extending:
        more, names = naive(below, f"{path}/{child}".lstrip("/"))  # type: ignore[arg-type]
        objects += more
        others += names
    return objects, others


@given(TREES, st.integers(1, 3))
@example({b"a": {b"b": {}}}, 1)
def test_any_tree(implementations: list[Implementation], tree: dict[bytes, object], threads: int) -> None:
    """The walk agrees with a naive transcription on objects, members, unowned names and order."""
    objects, others = naive(tree)
    budget = pairtree_walk.BUDGET
    with tempfile.TemporaryDirectory() as folder:
        build(os.path.join(os.fsencode(folder), b"pairtree_root"), tree)
        store = PairtreeStore(folder)
        results = []
        for implementation in implementations:
            for pairtree_walk.BUDGET in (1, budget):
                with use(implementation):
                    loose: list[Problem] = []
                    records = list(store.objects(threads=threads, problems=loose))
                    results.append((records, loose))
        pairtree_walk.BUDGET = budget
        assert all(result == results[0] for result in results)
        records, loose = results[0]
        assert read_both(folder, listed_at) == (records, loose)
        read_both(folder, checked_at)
        read_both(folder, files_at)
        shown = [(record.path.removeprefix("pairtree_root").lstrip("/"), record.proper) for record in records]
        assert shown == [(directory, proper) for directory, _, proper in objects]
        assert sorted(problem.path.removeprefix("pairtree_root/") for problem in loose) == sorted(others)
        # Every file belongs to one object or lies below a reported name.
        files = {
            os.path.relpath(os.path.join(above, name), os.fsencode(folder))
            for above, _, names in os.walk(os.fsencode(folder))
            for name in names
        }
        accounted = [
            os.fsencode(os.path.relpath(path, os.path.abspath(folder)))
            for record in records
            for _, path in store.locate(record).files()
        ]
        assert len(accounted) == len(set(accounted))
        reported = tuple(encode_fs(problem.path) + b"/" for problem in loose)
        assert files - set(accounted) == {path for path in files if (path + b"/").startswith(reported)}


def test_many_threads(implementation: Implementation, store: PairtreeStore, tmp_path: Path) -> None:
    """Thousands of objects are returned in the same order and without delay, whatever the threads."""
    ids = sorted({f"{number * 7919 % 100_000:05}" for number in range(3000)})
    for identifier in ids:
        (tmp_path / "store" / "pairtree_root" / store.layout.object_path(identifier)).mkdir(parents=True)
    one = list(store.objects(threads=1))
    assert sorted(record.id or "" for record in one) == ids
    assert [record.path for record in one] == sorted(record.path for record in one)
    for threads in (None, 2, 5):
        assert list(store.objects(threads=threads)) == one
    half = store.objects(threads=3)
    assert [next(half) for _ in range(10)] == one[:10]
    half.close()  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="threads=-1"):
        next(store.objects(threads=-1))


@pytest.mark.parametrize("threads", [1, 2])
def test_a_second_look_after_the_walk(tree: Tree, threads: int) -> None:
    """A directory that was empty is read again after the walk, with everything that is below it now."""
    base = tree("ab/foo/x", "ef/")
    walk = PairtreeStore(base).walk
    first, empty = walk.items(threads)
    assert isinstance(first, StoreObject)
    assert isinstance(empty, Problem)
    write(base / "pairtree_root" / "ef", {"gh/one/x": b"", "gh/two/x": b""})
    [found] = walk.again(empty)
    assert isinstance(found, StoreObject)
    assert found.id == "efgh"


def test_directories_that_are_not_pairtrees(tmp_path: Path) -> None:
    """A directory that is not a Pairtree is refused with the reason."""
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "empty").mkdir()
    write(tmp_path / "odd", {"pairtree_root": b"a file"})
    for name, reason in {
        "missing": "No such file or directory",
        "file": "not a directory",
        "empty": "pairtree_root is missing",
        "odd": "is not a directory",
    }.items():
        with pytest.raises(StoreError, match=reason) as caught:
            stores.open(tmp_path / name, "pairtree")
        assert "\n" not in str(caught.value)
        assert name in str(caught.value)
