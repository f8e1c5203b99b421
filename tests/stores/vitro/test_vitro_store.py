"""Vitro stores: create, put, get, replace, delete, check and repair."""

from __future__ import annotations

import errno
import os
import re
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st

import pressmark
import strategies
from pressmark import Vitro, stores
from pressmark.errors import IdentifierError, ObjectError, StoreError
from pressmark.fs.beneath import read_regular
from pressmark.fs.names import encode_fs, is_junk
from pressmark.fs.staging import leftovers
from pressmark.progress_event import EventListener
from pressmark.reports import Report
from pressmark.stores import RepairStep
from pressmark.stores.vitro.vitro_object import VitroObject
from pressmark.stores.vitro.vitro_store import VitroStore
from pressmark.stores.vitro.walk import Walk
from support.implementations import Implementation, use
from support.in_bucket import read_both
from support.trees import snapshot, write

NAMES = "file_storage_namespaces.properties"


@pytest.fixture
def vitro(tmp_path: Path) -> VitroStore:
    """An empty Vitro store with one namespace and without flushing; and a file to put."""
    (tmp_path / "f.txt").write_bytes(b"data")
    return VitroStore.create(tmp_path / "store", namespaces=["http://x/"], durable=False)


def tree(store: VitroStore) -> list[str]:
    """Return the files below file_storage_root."""
    top = Path(store.root, "file_storage_root")
    return sorted(path.relative_to(top).as_posix() for path in top.rglob("*") if path.is_file())


def data(store: VitroStore, identifier: str) -> tuple[str, bytes]:
    """Return name and content of an object; in a bucket, they must be the same."""

    def read(found: VitroObject) -> tuple[str, bytes]:
        with found.open(found.name) as file:
            assert [name for name, _path in found.files()] == [found.name]
            return found.name, file.read()

    result = read(store.get(identifier))
    if not Path(store.root, "file_storage_pressmark", "renaming").exists() and not store.walk.ignore:
        assert read_both(store.root, lambda place: read(VitroStore(place).get(identifier))) == result
    return result


def checked(store: VitroStore) -> Report:
    """Return the report of a check; in a bucket, it must be the same."""
    report = store.check()
    if "unfinished" not in {one.kind for one in report.problems}:
        read_both(store.root, lambda place: [one.record() for one in VitroStore(place).check().problems])
    return report


# --- creating and opening ---------------------------------------------------------------------------------------------


def test_create(tmp_path: Path) -> None:
    """The namespaces file is written as Vitro writes it, and the store opens by its directory or its root's."""
    store = stores.VitroStore.create(tmp_path / "a" / "b", namespaces=["http://x/", "urn:", "http://x/"])
    assert snapshot(tmp_path / "a" / "b") == {
        b"file_storage_root": None,
        NAMES.encode(): b"a = http://x/\nb = urn:\n",
    }
    for path in (store.root, os.path.join(store.root, "file_storage_root")):
        again = stores.open(path)
        assert isinstance(again, VitroStore)
        assert again.kind == "vitro"
        assert again.layout == Vitro({"a": "http://x/", "b": "urn:"})
    with pytest.raises(StoreError, match="specify an empty"):
        stores.create("vitro", tmp_path / "a" / "b")


def test_create_by_layout(tmp_path: Path) -> None:
    """A layout's prefixes are kept, and unused letters are assigned."""
    store = VitroStore.create(tmp_path / "a", Vitro({"b": "urn:", "7": "x:"}), namespaces=["http://x/"])
    assert store.namespaces == {"7": "x:", "a": "http://x/", "b": "urn:"}
    with pytest.raises(StoreError, match="not pairtree"):
        VitroStore.create(tmp_path / "b", pressmark.layout("pairtree"))


def test_create_beside_the_namespaces_of_another(tmp_path: Path) -> None:
    """An existing namespaces file of a store without a root is not overwritten."""
    write(tmp_path, {f"store/{NAMES}": b"a = urn:\n"})
    for namespaces in ([], ["http://x/"]):
        with pytest.raises(StoreError, match="file_storage_root is missing"):
            VitroStore.create(tmp_path / "store", namespaces=namespaces)
    assert snapshot(tmp_path / "store") == {os.fsencode(NAMES): b"a = urn:\n"}
    assert VitroStore.create(tmp_path / "store", namespaces=["urn:"]).namespaces == {"a": "urn:"}


def test_declared_later(vitro: VitroStore) -> None:
    """Namespaces are added and never removed; each gets the first free letter."""
    vitro.declare("urn:", "http://x/")
    assert Path(vitro.root, NAMES).read_bytes() == b"a = http://x/\nb = urn:\n"
    assert VitroStore(vitro.root).namespaces == vitro.namespaces == {"a": "http://x/", "b": "urn:"}
    before = snapshot(Path(vitro.root))
    with pytest.raises(StoreError, match="26"):
        vitro.declare(*(f"n{number}:" for number in range(25)))
    assert snapshot(Path(vitro.root)) == before


@pytest.mark.parametrize("namespace", ["", " x", "\tx", "C:\\data\\", "a\nb", "a\rb", "\ud800"])
def test_namespaces_that_would_be_read_back_differently(tmp_path: Path, vitro: VitroStore, namespace: str) -> None:
    """An invalid namespace is refused for a new store and for an existing one; nothing is written."""
    before = snapshot(Path(vitro.root))
    with pytest.raises(StoreError, match="cannot be declared") as caught:
        vitro.declare("urn:", namespace)
    assert "\n" not in str(caught.value)
    assert snapshot(Path(vitro.root)) == before
    with pytest.raises(StoreError, match="cannot be declared"):
        VitroStore.create(tmp_path / "new", namespaces=[namespace])
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("content", "namespaces", "kind", "reason"),
    [
        (b"ab = x\n", {"a": "x"}, "namespaces-malformed", "line 1: prefix 'ab' is longer"),
        (b"a = y\nab = x\n", {"a": "y"}, "namespaces-malformed", "line 2: prefix 'ab' is longer"),
        (
            "a = y\né = x\n".encode(),
            {"a": "y"},
            "namespaces-malformed",
            "line 2: prefix 'é' is not an ASCII letter",
        ),
        (b"a = y\n= x\n", {"a": "y"}, "namespaces-malformed", "line 2: no prefix"),
        (b"a = y\nb = \\u00zz\n", {"a": "y"}, "namespaces-malformed", "line 2: .* four hex digits"),
        (b"a = y\nb = \\ud800\n", {"a": "y"}, "namespaces-malformed", "line 2: .* unpaired surrogate"),
        (b"a = y\nb = \xff\n", {"a": "y"}, "namespaces-malformed", "line 2: not utf-8"),
        (b"\xef\xbb\xbfa = y\n", {"a": "y"}, "namespaces-malformed", "byte order mark"),
        (b"a = y\nb =\n", {"a": "y", "b": ""}, "namespaces-value", "is empty"),
        (b"a = y\nb = C\\:\\\\data\n", {"a": "y", "b": "C:\\data"}, "namespaces-value", "changes when Vitro writes"),
        (b"a = C:\\data\\new\n", {"a": "C:data\new"}, "namespaces-value", "changes when Vitro writes"),
        (b"a = \\ x\n", {"a": " x"}, "namespaces-value", "changes when Vitro writes"),
    ],
)
def test_ambiguous_namespaces(
    tmp_path: Path, vitro: VitroStore, content: bytes, namespaces: dict[str, str], kind: str, reason: str
) -> None:
    """An ambiguous namespaces file is reported; the store can be read but not changed."""
    vitro.put("http://x/1", tmp_path / "f.txt")
    Path(vitro.root, NAMES).write_bytes(content)
    before = snapshot(Path(vitro.root))
    store = VitroStore(vitro.root)
    assert store.namespaces == namespaces
    assert [record.id for record in store.objects()] == [f"{namespaces['a']}1"]
    assert store.get(f"{namespaces['a']}1").name == "f.txt"
    found = [one for one in store.check().problems if one.kind == kind]
    assert len(found) == 1
    assert re.search(reason, found[0].message)
    changes: list[Callable[[], object]] = [
        lambda: store.put("urn:1", tmp_path / "f.txt"),
        lambda: store.put("http://x/1", tmp_path / "f.txt", replace=True),
        lambda: store.delete("http://x/1"),
        lambda: store.declare("urn:"),
        store.repair,
        lambda: store.repair(dry_run=True),
    ]
    for change in changes:
        with pytest.raises(StoreError, match=f"the store is read-only: .*{reason}") as caught:
            change()
        assert os.fsencode(caught.value.path).endswith(NAMES.encode())
        assert "\n" not in str(caught.value)
    assert snapshot(Path(vitro.root)) == before


def test_an_empty_namespace(tmp_path: Path, vitro: VitroStore) -> None:
    """An empty namespace matches every identifier that no earlier letter matches, as in Vitro."""
    vitro.put("http://x/1", tmp_path / "f.txt")
    vitro.put("abc", tmp_path / "f.txt")
    write(Path(vitro.root, "file_storage_root"), {"e~x/yz/g.txt": b"g"})
    Path(vitro.root, NAMES).write_bytes(b"a = http://x/\ne = \n")
    store = VitroStore(vitro.root)
    found = {record.id: [one.kind for one in record.problems] for record in store.objects()}
    assert found == {"http://x/1": [], "abc": ["hidden"], "xyz": []}
    assert store.get("xyz").name == "g.txt"


def test_escapes_that_change_nothing(tmp_path: Path, vitro: VitroStore) -> None:
    """Redundant escapes and a trailing blank in a namespace are not ambiguous."""
    Path(vitro.root, NAMES).write_bytes(b"# by hand\na = http\\://x/\nb = \\u00fcrn: \n")
    store = VitroStore(vitro.root)
    assert store.namespaces == {"a": "http://x/", "b": "ürn: "}
    assert [one.kind for one in store.check().problems] == ["namespaces-blank"]
    store.put("http://x/1", tmp_path / "f.txt")
    store.declare("urn:")
    assert Path(vitro.root, NAMES).read_text("utf-8") == "a = http://x/\nb = ürn: \nc = urn:\n"


def test_invalid_namespaces_files(vitro: VitroStore) -> None:
    """An invalid namespaces file is refused on opening, with its name in the message."""
    for content, encoding in ((b"#" * (1 << 21), "utf-8"), (b"a", "utf-16-le")):
        Path(vitro.root, NAMES).write_bytes(content)
        with pytest.raises(StoreError, match=r"longer|not utf-16-le at byte 0") as caught:
            read_both(vitro.root, lambda place, encoding=encoding: VitroStore(place, encoding=encoding))
        assert os.fsencode(caught.value.path).endswith(NAMES.encode())
        assert "\n" not in str(caught.value)


def test_another_encoding(vitro: VitroStore) -> None:
    """The encoding of an old Java is used where it is given, and kept."""
    Path(vitro.root, NAMES).write_bytes("a = é:\n".encode("latin-1"))
    store = VitroStore(vitro.root, encoding="latin-1")
    store.declare("ü:")
    assert Path(vitro.root, NAMES).read_bytes() == "a = é:\nb = ü:\n".encode("latin-1")
    with pytest.raises(StoreError, match="cannot be written in latin-1"):
        store.declare("€:")


def test_directories_that_are_not_vitro_stores(tmp_path: Path, vitro: VitroStore) -> None:
    """A missing path, or one that is not a directory, is reported with the remedy."""
    with pytest.raises(StoreError, match="No such file or directory"):
        VitroStore(tmp_path / "no")
    with pytest.raises(StoreError, match="not a Vitro store"):
        VitroStore(tmp_path)
    names = Path(vitro.root, NAMES)
    content = names.read_bytes()
    names.unlink()
    with pytest.raises(StoreError, match="restore it, or create an empty file"):
        VitroStore(vitro.root)
    names.write_bytes(content)
    Path(vitro.root, "file_storage_root").rmdir()
    with pytest.raises(StoreError, match="file_storage_root is missing"):
        VitroStore(vitro.root)
    Path(vitro.root, "file_storage_root").write_bytes(b"")
    with pytest.raises(StoreError, match="not a directory"):
        VitroStore(vitro.root)


# --- put and get ------------------------------------------------------------------------------------------------------

# Characters that Vitro can store, with many difficult ones.
_TEXTS = st.text(
    st.one_of(st.sampled_from('/:.^~=+,\\*"<>|? \n\0aCONcon1é\xff\x7f'), st.characters(max_codepoint=0xFF)), max_size=40
)


@settings(max_examples=settings.default.max_examples // 2)
@given(st.dictionaries(_TEXTS.filter(bool), _TEXTS, max_size=8), st.sampled_from([(), ("http://x/", "a"), ("", "x")]))
@example({"abc": "def", "abcdef": "x"}, ())
@example({"0": "__MACOSX", "1": "Thumbs.db", "2": "._x", "3": ".x.Ab12Cd"}, ())
@example({"con": "con", "conaux": "AUX.txt", "a~b": "~con", "a": "a"}, ("con",))
def test_objects_are_read_back(
    implementations: list[Implementation], wanted: dict[str, str], namespaces: tuple[str, ...]
) -> None:
    """Hostile identifiers and names are read back exactly, a refused put leaves no trace, and all can be deleted."""
    for implementation in implementations:
        with use(implementation), tempfile.TemporaryDirectory() as folder:
            store = VitroStore.create(os.path.join(folder, "store"), namespaces=filter(None, namespaces), durable=False)
            source = Path(folder, "source")
            stored, refused = {}, set()
            for identifier, name in wanted.items():
                source.write_bytes(identifier.encode())
                try:
                    assert store.put(identifier, {name: source}).proper
                    stored[identifier] = name
                except ObjectError as error:
                    refused.add(error.kind)
            assert refused <= {"bad-name", "collision"}
            # A file with the name of junk is no object, but is found by its identifier.
            junk = {identifier for identifier, name in stored.items() if is_junk(name.encode("latin-1"))}
            assert sorted(record.id or "" for record in store.objects()) == sorted(stored.keys() - junk)
            assert all(record.proper for record in store.objects())
            kinds = Counter(one.kind for one in store.check().problems)
            assert kinds.pop("junk", 0) == len(junk)
            assert set(kinds) <= {"partial"}
            for identifier, name in stored.items():
                assert data(store, identifier) == (name, identifier.encode())
            for identifier in stored:
                store.delete(identifier)
            assert snapshot(Path(store.root)).keys() == {NAMES.encode(), b"file_storage_root"}


@settings(max_examples=settings.default.max_examples // 2)
@given(st.lists(strategies.identifiers(), max_size=6, unique=True))
def test_any_bytes_as_identifiers(implementations: list[Implementation], given_ids: list[bytes]) -> None:
    """Identifiers that Vitro cannot store are refused before anything is written; the others are read back."""
    for implementation in implementations:
        with use(implementation), tempfile.TemporaryDirectory() as folder:
            store = VitroStore.create(os.path.join(folder, "store"), durable=False)
            source = Path(folder, "name.txt")
            source.write_bytes(b"x")
            stored, refused = set(), set()
            for identifier in given_ids:
                try:
                    store.put(identifier, source)
                    stored.add(identifier)
                except (IdentifierError, ObjectError) as error:
                    refused.add(getattr(error, "kind", "bad-name"))
            assert refused <= {"bad-name"}
            assert {encode_fs(record.id or "") for record in store.objects()} == stored


@pytest.mark.parametrize("name", ["lily.jpg", "other name.jpg"])
def test_replace(tmp_path: Path, vitro: VitroStore, name: str) -> None:
    """An object is replaced only on request, also by a file of another name."""
    vitro.put("http://x/1", tmp_path / "f.txt")
    vitro.put("http://x/123", {name: tmp_path / "f.txt"})
    write(tmp_path, {name: b"new"})
    with pytest.raises(ObjectError, match=r"use another identifier, or replace=True"):
        vitro.put("http://x/1", tmp_path / name)
    assert vitro.put("http://x/1", tmp_path / name, replace=True).proper
    assert data(vitro, "http://x/1") == (name, b"new")
    assert data(vitro, "http://x/123") == (name, b"data")
    assert len(tree(vitro)) == 2
    assert checked(vitro).problems == []


def test_a_pending_rename_that_cannot_be_read(
    tmp_path: Path, vitro: VitroStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a pending rename cannot be read, the call fails and keeps it; the next run finishes it."""
    vitro.put("http://x/1", tmp_path / "f.txt")
    write(tmp_path, {"other": b"new"})

    def failing(path: bytes) -> bytes:
        read_regular(path)
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), path)

    with monkeypatch.context() as patched:
        patched.setattr("pressmark.stores.vitro.walk.read_regular", failing)
        with pytest.raises(ObjectError, match=os.strerror(errno.ESTALE)):
            vitro.put("http://x/1", tmp_path / "other", replace=True)
    assert data(vitro, "http://x/1") == ("other", b"new")
    vitro.repair()
    assert [path.rpartition("/")[2] for path in tree(vitro)] == ["other"]
    assert data(vitro, "http://x/1") == ("other", b"new")
    assert checked(vitro).problems == []


def test_sources(tmp_path: Path, vitro: VitroStore) -> None:
    """A source may be a file, also in a directory or renamed; more or fewer than one file is refused."""
    write(tmp_path, {"one/a": b"1", "two/a": b"1", "two/b": b"2", "deep/er/a": b"1", "none/": None})
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "name").symlink_to(tmp_path / "f.txt")
    vitro.put("1", tmp_path / "one")
    assert data(vitro, "1") == ("a", b"1")
    vitro.put("2", {"a/b: ü": tmp_path / "one" / "a"})
    assert data(vitro, "2") == ("a/b: ü", b"1")
    vitro.put("3", tmp_path / "linked", links="follow")
    assert data(vitro, "3") == ("name", b"data")
    for source in ("two", "deep", "none", "linked", "missing"):
        with pytest.raises(ObjectError) as caught:
            vitro.put("4", tmp_path / source)
        assert caught.value.kind == "source", source
    with pytest.raises(ObjectError, match="2 names"):
        vitro.put("4", {"a": tmp_path / "f.txt", "b": tmp_path / "f.txt"})
    with pytest.raises(ObjectError, match="U\\+20AC"):
        vitro.put("4", {"€": tmp_path / "f.txt"})
    assert [record.id for record in vitro.objects()] == ["1", "2", "3"]


def test_names_that_are_too_long(tmp_path: Path, vitro: VitroStore) -> None:
    """A stored name of more than 255 bytes is refused before anything is written."""
    before = snapshot(tmp_path)
    for name in ("x" * 256, " " * 86):
        with pytest.raises(ObjectError, match="the limit is 255") as caught:
            vitro.put("abc", {name: tmp_path / "f.txt"})
        assert caught.value.kind == "bad-name"
    with pytest.raises(ObjectError, match="path too long"):
        vitro.put("x" * 4000, tmp_path / "f.txt")
    assert snapshot(tmp_path) == before
    vitro.put("abc", {"x" * 255: tmp_path / "f.txt"})
    assert checked(vitro).problems == []


def test_files_and_directories_that_collide(tmp_path: Path, vitro: VitroStore) -> None:
    """The second of two objects that need one path as file and directory is refused before anything is written."""
    vitro.put("abc", {"def": tmp_path / "f.txt"})
    before = snapshot(tmp_path)
    with pytest.raises(ObjectError, match="is a file of another object") as caught:
        vitro.put("abcdefg", tmp_path / "f.txt")
    assert caught.value.kind == "collision"
    assert snapshot(tmp_path) == before
    vitro.delete("abc")
    vitro.put("abcdef", tmp_path / "f.txt")
    with pytest.raises(ObjectError, match="rename the file") as caught:
        vitro.put("abc", {"def": tmp_path / "f.txt"})
    assert caught.value.kind == "collision"


@pytest.mark.skipif(os.name != "posix", reason="needs symbolic links")
def test_directories_that_are_links(tmp_path: Path, vitro: VitroStore) -> None:
    """Content behind a symbolic link is not part of the store: not listed, read, written or removed."""
    write(tmp_path / "elsewhere", {"def/f.txt": b"theirs", "555": None})
    root = Path(vitro.root, "file_storage_root")
    (root / "abc").symlink_to(tmp_path / "elsewhere")
    vitro.put("urn:x:n555", tmp_path / "f.txt")
    vitro.declare("urn:x:")
    (root / "b~n").symlink_to(tmp_path / "elsewhere")  # the destination of a repair
    before = snapshot(tmp_path)
    for action in (vitro.get, vitro.delete):
        with pytest.raises(ObjectError, match="'file_storage_root/abc' is a symbolic link") as caught:
            action("abcdef")
        assert caught.value.kind == "missing"
    for replace in (False, True):
        with pytest.raises(ObjectError, match="'file_storage_root/abc' is a symbolic link") as caught:
            vitro.put("abcdef", tmp_path / "f.txt", replace=replace)
        assert caught.value.kind == "collision"
    assert vitro.repair().counts["repaired"] == 0
    assert snapshot(tmp_path) == before
    assert sorted(one.kind for one in checked(vitro).problems) == ["hidden", "link", "link"]


def test_ambiguous(tmp_path: Path, vitro: VitroStore) -> None:
    """An object with several files is not read, replaced or removed; ignored names do not count."""
    vitro.put("abc", tmp_path / "f.txt")
    write(Path(vitro.root), {"file_storage_root/abc/x.tmp": b""})
    for action in (vitro.get, vitro.delete, lambda one: vitro.put(one, tmp_path / "f.txt", replace=True)):
        with pytest.raises(ObjectError, match="move the others out of it") as caught:
            action("abc")
        assert caught.value.kind == "ambiguous"
    assert [one.kind for one in checked(vitro).problems] == ["files-several"]
    assert vitro.check(ignore=["*.tmp"]).problems == []
    other = VitroStore(vitro.root, ignore=["x.tmp"])
    assert data(other, "abc") == ("f.txt", b"data")
    other.delete("abc")
    assert tree(vitro) == ["abc/x.tmp"]


def test_delete(tmp_path: Path, vitro: VitroStore) -> None:
    """Deleting removes the file, however its name is spelled, and the empty directories above it."""
    for identifier in ("abc", "abcdef", "x"):
        vitro.put(identifier, tmp_path / "f.txt")
    vitro.delete("abc")
    assert tree(vitro) == ["abc/def/f.txt", "x/f.txt"]
    vitro.delete("abcdef")
    assert sorted(os.listdir(Path(vitro.root, "file_storage_root"))) == ["x"]
    with pytest.raises(ObjectError, match="object not found at 'file_storage_root/abc'"):
        vitro.delete("abc")
    write(Path(vitro.root), {"file_storage_root/yyy/a b.txt": b"1"})
    vitro.delete("yyy")
    assert tree(vitro) == ["x/f.txt"]


# --- checking and repairing -------------------------------------------------------------------------------------------


def test_check(tmp_path: Path, vitro: VitroStore) -> None:
    """Every file is accounted for, and every problem has its kind."""
    vitro.put("abc", tmp_path / "f.txt")
    write(
        Path(vitro.root),
        {
            "beside.txt": b"",
            "file_storage_root/inroot": b"",
            "file_storage_root/z~n/1/a": b"",
            "file_storage_root/ab/cd/short": b"",
            "file_storage_root/htt/p+=/=x=/n5/hidden": b"",
            "file_storage_root/con/x": b"",
            "file_storage_root/two/a": b"",
            "file_storage_root/two/b": b"",
            "file_storage_root/raw/a b": b"",
            "file_storage_root/bad/^zz": b"",
            "file_storage_root/emp/ty": None,
        },
    )
    assert len(checked(vitro).problems) == 10
    write(Path(vitro.root), {b"file_storage_root/\xff\xfe/x": b""})
    os.symlink("f", Path(vitro.root, "file_storage_root", "link"))
    os.mkfifo(Path(vitro.root, "file_storage_root", "pipe"))
    report = checked(vitro)
    assert sorted((one.kind, one.path.removeprefix("file_storage_root/")) for one in report.problems) == [
        ("bad-file-name", "bad/^zz"),
        ("bad-file-name", "raw/a b"),
        ("beside", "beside.txt"),
        ("empty", "emp/ty"),
        ("file-in-root", "inroot"),
        ("files-several", "two"),
        ("hidden", "htt/p+=/=x=/n5"),
        ("link", "link"),
        ("special-file", "pipe"),
        ("undecodable", "ab/cd"),
        ("undecodable", "con"),
        ("undecodable", "\udcff\udcfe"),
        ("unknown-prefix", "z~n/1"),
    ]
    assert (report.counts["objects"], report.counts["proper"], report.ok) == (9, 1, False)
    assert [record.id for record in vitro.objects() if record.proper] == ["abc"]
    for record in vitro.objects():
        if "files-several" not in [one.kind for one in record.problems]:
            assert vitro.locate(record).file.startswith(os.path.join(vitro.root, record.path))


def test_namespaces_that_are_odd(vitro: VitroStore) -> None:
    """Two letters for one namespace, or a choice that depends on the Java version, is a warning."""
    Path(vitro.root, NAMES).write_bytes(b"a = x:\nb = x:\n")
    assert [one.kind for one in checked(VitroStore(vitro.root)).problems] == ["namespaces-repeated"]
    Path(vitro.root, NAMES).write_bytes(b"a = y:\na = x:\n")
    assert VitroStore(vitro.root).namespaces == {"a": "x:"}
    assert [one.kind for one in checked(VitroStore(vitro.root)).problems] == ["namespaces-repeated"]
    Path(vitro.root, NAMES).write_bytes(b"a = x:\nd = x:y:\n")
    assert [one.kind for one in checked(VitroStore(vitro.root)).problems] == ["namespaces-order"]
    Path(vitro.root, NAMES).write_bytes(b"a = x:\nb = x:y:\n")
    assert checked(VitroStore(vitro.root)).problems == []


def test_repair(tmp_path: Path, vitro: VitroStore) -> None:
    """A repair moves hidden files and corrects names; ambiguous ones stay; repair is idempotent."""
    for identifier in ("urn:1", "urn:123", "urn:2", "abc"):
        vitro.put(identifier, tmp_path / "f.txt")
    write(
        Path(vitro.root),
        {
            "file_storage_root/raw/a b": b"raw",
            "file_storage_root/emp/ty": None,
            "file_storage_root/two/a": b"",
            "file_storage_root/two/b": b"",
            "file_storage_root/pho/X^2Ay": b"upper",
        },
    )
    vitro.declare("urn:")
    # Vitro stores an object again that a later namespace hides.
    write(Path(vitro.root), {f"file_storage_root/{vitro.layout.map_id('urn:2')}/f": b"data"})
    ids = sorted(record.id or "" for record in vitro.objects())
    before = snapshot(Path(vitro.root))
    announced: list[object] = []
    dry = vitro.repair(dry_run=True, progress=EventListener(announced.append))
    assert snapshot(Path(vitro.root)) == before
    done: list[object] = []
    report = vitro.repair(progress=EventListener(done.append))
    assert done == announced
    assert [(one.kind, one.path) for one in dry.problems] == [(one.kind, one.path) for one in report.problems]
    assert sorted(one.kind for one in report.problems) == ["duplicate-id", "files-several", "hidden"]
    assert sorted(record.id or "" for record in vitro.objects()) == ids
    assert data(vitro, "raw") == ("a b", b"raw")
    assert data(vitro, "pho") == ("X*y", b"upper")
    assert data(vitro, "urn:123") == ("f.txt", b"data")
    assert sorted(filter(None, before.values())) == sorted(filter(None, snapshot(Path(vitro.root)).values()))
    after = snapshot(Path(vitro.root))
    assert vitro.repair(progress=EventListener(lambda event: pytest.fail(str(event)))).counts["repaired"] == 0
    assert snapshot(Path(vitro.root)) == after


def test_a_dry_run_considers_its_own_changes(tmp_path: Path, vitro: VitroStore) -> None:
    """A dry run reports the first name that a move would give, and the directories that would be empty."""
    vitro.put("urn:123", tmp_path / "f.txt")
    at = Path(vitro.root, "file_storage_root", vitro.layout.map_id("urn:123"))
    (at / "f.txt").rename(at / "a b")
    write(at.parent, {"~": None})
    vitro.declare("urn:")
    announced: list[object] = []
    vitro.repair(dry_run=True, progress=EventListener(announced.append))
    done: list[object] = []
    assert vitro.repair(progress=EventListener(done.append)).problems == []
    assert announced == done
    assert [event.action for event in done if isinstance(event, RepairStep)] == ["rename", "move", *["prune"] * 3]


def test_a_dry_run_while_another_run_prunes(vitro: VitroStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dry run ignores directories that another run removes meanwhile."""
    empty = Path(vitro.root, "file_storage_root/ab")
    empty.mkdir()
    walk = Walk.items

    def gone(self: Walk, *arguments: Any) -> Any:
        items = list(walk(self, *arguments))
        if empty.exists():
            empty.rmdir()
        return items

    monkeypatch.setattr(Walk, "items", gone)
    assert vitro.repair(dry_run=True).problems == []


@pytest.mark.usefixtures("stuck")
def test_a_repair_continues_after_a_refused_directory(vitro: VitroStore) -> None:
    """A repair reports a directory that it cannot remove and repairs the rest."""
    write(Path(vitro.root, "file_storage_root"), {"a/": None, "stuck/": None, "xyz/a b": b"2"})
    report = vitro.repair()
    assert tree(vitro) == ["xyz/a^20b"]
    assert sorted(os.listdir(Path(vitro.root, "file_storage_root"))) == ["stuck", "xyz"]
    path = "file_storage_root/stuck"
    assert [(one.kind, one.path) for one in report.problems] == [("empty", path), ("unrepaired", path)]


def test_a_file_replaced_during_a_repair(tmp_path: Path, vitro: VitroStore) -> None:
    """A file that appears during a repair keeps its name."""
    write(Path(vitro.root), {"file_storage_root/abc/a b": b"1", "file_storage_root/xyz/a b": b"2"})

    def replace(_event: object) -> None:
        os.unlink(Path(vitro.root, "file_storage_root", "xyz", "a b"))
        write(Path(vitro.root), {"file_storage_root/xyz/new": b"3"})

    assert vitro.repair(progress=EventListener(replace)).counts["repaired"] == 1
    assert tree(vitro) == ["abc/a^20b", "xyz/new"]


def test_an_interrupted_rename(tmp_path: Path, vitro: VitroStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a kill between content and rename, the object reads as new, and the next change finishes it."""
    vitro.put("abc", tmp_path / "f.txt")
    write(tmp_path, {"g.txt": b"new"})
    finish = Walk.finish
    calls = []

    def killed(walk: Walk, folder: bytes, durable: bool) -> None:
        calls.append(walk)
        if len(calls) == 2:
            raise SystemExit
        finish(walk, folder, durable)

    with monkeypatch.context() as patched:
        patched.setattr(Walk, "finish", killed)
        with pytest.raises(SystemExit):
            vitro.put("abc", tmp_path / "g.txt", replace=True)
    assert tree(vitro) == ["abc/f.txt"]
    assert data(vitro, "abc") == ("g.txt", b"new")
    assert [one.kind for one in checked(vitro).problems] == ["unfinished"]
    assert vitro.repair().problems == []
    assert tree(vitro) == ["abc/g.txt"]
    assert data(vitro, "abc") == ("g.txt", b"new")
    assert sorted(os.listdir(vitro.root)) == [NAMES, "file_storage_root"]


def test_names_that_differ_in_case(tmp_path: Path, vitro: VitroStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a case-insensitive file system, a name that differs only in case is refused with the remedy."""
    vitro.put("abc", tmp_path / "f.txt")
    for module in ("staging_writer", "walked_store"):
        monkeypatch.setattr(f"pressmark.stores.{module}.is_case_insensitive", lambda _directory: True)
    monkeypatch.setattr("pressmark.stores.staging_writer.existing_spelling", lambda _base, _relative: b"abc")
    with pytest.raises(ObjectError, match="case-sensitive") as caught:
        vitro.put("ABC", tmp_path / "f.txt")
    assert caught.value.kind == "collision"


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("file_storage_pressmark", ("beside", "file_storage_pressmark")),
        ("file_storage_pressmark/x", ("beside", "file_storage_pressmark/x")),
        ("file_storage_root/file_storage_pressmark", ("file-in-root", "file_storage_root/file_storage_pressmark")),
        ("file_storage_root/file_storage_pressmark/x", ("undecodable", "file_storage_root/file_storage_pressmark")),
    ],
)
def test_files_in_the_staging_directory(vitro: VitroStore, name: str, found: tuple[str, str]) -> None:
    """Files in the staging directory, or with a reserved name, are accounted for."""
    write(Path(vitro.root), {name: b"x"})
    assert [(one.kind, one.path) for one in checked(vitro).problems] == [found]


def test_a_link_in_place_of_the_staging_directory(tmp_path: Path, vitro: VitroStore) -> None:
    """Files behind a link are not part of the store."""
    write(tmp_path, {"elsewhere/x": b"x"})
    (Path(vitro.root) / "file_storage_pressmark").symlink_to(tmp_path / "elsewhere")
    assert [(one.kind, one.path) for one in checked(vitro).problems] == [("beside", "file_storage_pressmark")]


def test_leftovers(tmp_path: Path, vitro: VitroStore) -> None:
    """Leftovers of a killed run are reported, are not objects, and are removed by the next change."""
    write(Path(vitro.root), {"file_storage_pressmark/0123/lock": b"", "file_storage_pressmark/0123/object/x": b"1"})
    assert [one.kind for one in checked(vitro).problems] == ["leftover"]
    vitro.put("abc", tmp_path / "f.txt")
    assert checked(vitro).problems == []
    assert not leftovers(os.fsencode(vitro.root) + b"/file_storage_pressmark")


def test_an_object_beside_junk(tmp_path: Path) -> None:
    """An object with a problem is listed although a file of an operating system is in its directory."""
    store = VitroStore.create(tmp_path / "store", namespaces=["urn:"], durable=False)
    write(Path(store.root) / "file_storage_root/urn/+1", {"^zz": b"data", ".DS_Store": b"junk"})
    assert [record.id for record in store.objects()] == ["urn:1"]
    assert sorted(found.kind for found in store.check().problems) == ["bad-file-name", "hidden", "junk"]
