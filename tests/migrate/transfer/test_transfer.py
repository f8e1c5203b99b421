"""Objects in every direction keep identifiers, names, bytes and digests, in a store that passes a check."""

from __future__ import annotations

import ctypes
import hashlib
import os
import pickle
import shutil
import struct
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pressmark import layout, migrate as migrate_module, stores
from pressmark.bagit.bag import Bag
from pressmark.errors import ObjectError, StoreError
from pressmark.fs.staging import RunDirectory
from pressmark.migrate.entry import failure_of
from pressmark.migrate.object_digest import object_digest
from pressmark.migrate.transfer import reading
from pressmark.migrate.transfer.object_transfer import transfer_chunk
from pressmark.migrate.transfer.places import DISK, read_files
from pressmark.migrate.transfer.reading import verify_object
from pressmark.stores.bags.bag_folder import BagFolder
from pressmark.stores.bags.bag_object import listed_digests
from pressmark.stores.ocfl.root import OcflRoot

from ..samples import Files, entries, errors, held, make, migrate, objects, one_file, options, tree, write

TO = ("ocfl", "pairtree", "bags")


def statuses(rows: dict[str, object]) -> Counter[str]:
    return Counter(row.status for row in rows.values())  # type: ignore[attr-defined]


@pytest.fixture
def given() -> dict[str, Files]:
    return objects()


@pytest.mark.parametrize("to", [*TO, "vitro"])
@pytest.mark.parametrize("kind", ["pairtree", "vitro", "ocfl", "bags"])
def test_every_direction(tmp_path: Path, kind: str, to: str, given: dict[str, Files]) -> None:
    """Objects keep their names and bytes, and each row has the object's digest."""
    if "vitro" in (kind, to):
        given = one_file(given)
    if kind == "bags" and to == "vitro":
        pytest.skip("a bag is more than one file")
    source = make(kind, tmp_path / "source", given, tmp_path / "given")
    before = tree(tmp_path / "source")
    rows, destination = migrate(source, to, tmp_path / "destination", verify="reread")
    assert {row.id: (row.status, row.error) for row in rows.values() if row.status != "ok"} == {}
    assert {row.verify for row in rows.values()} == {"reread"}
    assert {row.mode for row in rows.values()} <= {"copy", "reflink"}
    assert tree(tmp_path / "source") == before
    assert errors(destination) == []
    found = held(destination)
    if kind == "bags" and to != "bags":
        assert {name for files in found.values() for name in files} >= {"bagit.txt", "bag-info.txt"}
        found = {
            identifier: {name.removeprefix("data/"): data for name, data in files.items() if name.startswith("data/")}
            for identifier, files in found.items()
        }
    assert found == given
    if kind != "bags":
        for identifier, files in given.items():
            read = read_files(DISK, write_all(tmp_path / "again", files))
            assert rows[identifier].digest == read.whole
            assert (rows[identifier].files, rows[identifier].bytes) == (
                (len(files), sum(map(len, files.values())))
                if (kind, to) != ("ocfl", "ocfl")
                else (rows[identifier].files, rows[identifier].bytes)
            )


def write_all(folder: Path, files: Files) -> list[tuple[str, bytes]]:
    folder = folder / str(len(os.listdir(folder)) if folder.is_dir() else 0)
    write(folder, files)
    return [(name, os.fsencode(folder / name)) for name in files]


@pytest.mark.parametrize("over", ["ocfl", "bags", "pairtree"])
def test_there_and_back_again(tmp_path: Path, over: str, given: dict[str, Files]) -> None:
    """A Pairtree migrated to another kind of store and back is identical, byte for byte."""
    source = make("pairtree", tmp_path / "source", given, tmp_path / "given")
    there, middle = migrate(source, over, tmp_path / "there")
    back, _ = migrate(middle, "pairtree", tmp_path / "back")
    assert statuses(there) == statuses(back) == {"ok": len(given)}
    assert {row.id: row.digest for row in there.values()} == {row.id: row.digest for row in back.values()}
    assert tree(tmp_path / "back") == tree(tmp_path / "source")


@pytest.mark.parametrize("over", ["ocfl", "bags", "pairtree"])
def test_encapsulating_directories_with_names_of_their_own(tmp_path: Path, over: str) -> None:
    """Pairtrees and bags keep the name of an encapsulating directory; for OCFL it is derived again."""
    store = stores.PairtreeStore.create(tmp_path / "source", encapsulation="fixed:obj")
    store.put("abc", write(tmp_path / "in", {"one": b"1", "two/three": b"23"}))
    _, middle = migrate(store, over, tmp_path / "there")
    more = {"destination_options": {"encapsulation": "fixed:obj"}} if over == "ocfl" else {}
    migrate(middle, "pairtree", tmp_path / "back", **more)
    assert tree(tmp_path / "back") == tree(tmp_path / "source")


def test_empty_directories(tmp_path: Path) -> None:
    """A Pairtree keeps empty directories; OCFL cannot, and the row lists them."""
    source = make("pairtree", tmp_path / "source", {"abc": {"one": b"1"}}, tmp_path / "given")
    path = tmp_path / "source" / "pairtree_root" / "ab" / "c" / "abc"
    (path / "empty" / "er").mkdir(parents=True)
    migrate(source, "pairtree", tmp_path / "same")
    assert tree(tmp_path / "same") == tree(tmp_path / "source")
    rows, root = migrate(source, "ocfl", tmp_path / "root")
    assert rows["abc"].status == "ok"
    assert rows["abc"].error_code is None
    assert "empty/er" in str(rows["abc"].error)
    assert errors(root) == []


def test_bags_into_ocfl_carry_their_checksums(tmp_path: Path) -> None:
    """Checksums of payload and tag files are compared during the copy, and recorded in fixity blocks."""
    bags = BagFolder.create(tmp_path / "bags")
    BagFolder(tmp_path / "bags", algorithms=("md5", "sha256")).put(
        "x:1", write(tmp_path / "in", objects(1)["ark:/13030/xt12t3"])
    )
    rows, root = migrate(bags, "ocfl", tmp_path / "root")
    assert rows["x:1"].status == "ok"
    assert isinstance(root, OcflRoot)
    inventory = root.get("x:1").inventory
    assert set(inventory["fixity"]) == {"md5", "sha256"}
    contents = {path for paths in inventory["manifest"].values() for path in paths}
    noted = {path for paths in inventory["fixity"]["md5"].values() for path in paths}
    # Tag manifests are not listed in any manifest.
    assert {path.rpartition("/")[2] for path in contents - noted} == {"tagmanifest-md5.txt", "tagmanifest-sha256.txt"}
    assert errors(root) == []


@pytest.mark.parametrize("over", ["ocfl", "pairtree"])
def test_bags_arrive_as_the_same_bags(tmp_path: Path, over: str) -> None:
    """A bag that was an object of another store arrives as the same bag."""
    bags = BagFolder.create(tmp_path / "bags")
    for number, files in enumerate(objects(14).values()):
        bags.put(f"bag:{number}", write(tmp_path / "in" / str(number), files))
        top = tmp_path / "bags" / bags.get(f"bag:{number}").bag_path
        (top / "about").mkdir()
        (top / "about" / "tag.txt").write_text("a tag file in no manifest")
    there, middle = migrate(bags, over, tmp_path / "there")
    back, again = migrate(middle, "bags", tmp_path / "back", verify="reread")
    assert statuses(there) == statuses(back) == {"ok": 14}
    assert {row.id: row.digest for row in there.values()} == {row.id: row.digest for row in back.values()}
    assert tree(tmp_path / "back") == tree(tmp_path / "bags")
    assert errors(again) == []


def test_bags_by_another_identifier_are_wrapped(tmp_path: Path) -> None:
    """A bag whose identifier differs from its object's is wrapped in another bag."""
    bags = BagFolder.create(tmp_path / "bags")
    bags.put("inner", write(tmp_path / "in", {"one": b"1"}))
    root = OcflRoot.create(tmp_path / "root", layout("0003"))
    root.put("outer", tmp_path / "bags" / "inner")
    rows, folder = migrate(root, "bags", tmp_path / "back")
    assert rows["outer"].status == "ok"
    assert set(held(folder)["outer"]) >= {"bagit.txt", "data/one", "manifest-sha512.txt"}
    migrate(folder, "pairtree", tmp_path / "tree")
    assert held(stores.open(tmp_path / "tree")) == held(folder)


def test_wrapped_bags_that_were_added_to_stay_bags(tmp_path: Path) -> None:
    """Files added to a wrapped bag are migrated with it."""
    source = make("pairtree", tmp_path / "source", {"abc": {"one": b"1"}, "def": {"one": b"1"}}, tmp_path / "given")
    _, folder = migrate(source, "bags", tmp_path / "bags")
    Bag.open(tmp_path / "bags" / "abc").update(info=[("Contact-Name", "A Curator")])
    migrate(folder, "pairtree", tmp_path / "tree")
    found = held(stores.open(tmp_path / "tree"))
    assert set(found["abc"]) >= {"bagit.txt", "bag-info.txt", "data/one"}
    assert found["def"] == {"one": b"1"}


@pytest.mark.parametrize("mode", ["copy", "auto"])
@pytest.mark.parametrize("move", [False, True])
def test_relayout_keeps_all_versions(tmp_path: Path, mode: str, move: bool) -> None:
    """OCFL objects keep all versions under another layout, and are moved on request."""
    source = make("ocfl", tmp_path / "source", objects(20), tmp_path / "given")
    source.put("a", write(tmp_path / "new", {"one": b"new"}), replace=True)
    source = stores.open(tmp_path / "source")
    inside = {record.id: tree(tmp_path / "source" / record.path) for record in source.objects()}
    rows, root = migrate(source, "ocfl", tmp_path / "root", copy_mode=mode, move=move)
    assert statuses(rows) == {"ok": 20}
    renamed = move and mode == "auto"
    assert {(row.mode, row.verify) for row in rows.values()} == {("rename", "moved") if renamed else ("copy", "copy")}
    assert {record.id: tree(tmp_path / "root" / record.path) for record in root.objects()} == inside
    assert errors(root) == errors(source) == []
    assert len(list(source.objects())) == (0 if renamed else 20)
    if renamed:
        assert {path.name for path in (tmp_path / "source").iterdir()} <= {
            "0=ocfl_1.1",
            "ocfl_layout.json",
            "extensions",
        }


def test_what_was_moved_is_read_where_that_is_asked_for(tmp_path: Path) -> None:
    """On request, a moved OCFL object is compared with its inventory."""
    source = make("ocfl", tmp_path / "source", {"aa": {"one": b"1"}, "bb": {"one": b"2"}}, tmp_path / "given")
    (damaged,) = [record.path for record in source.objects() if record.id == "bb"]
    (tmp_path / "source" / damaged / "v1" / "content" / "one").write_bytes(b"3")
    rows, _root = migrate(source, "ocfl", tmp_path / "root", move=True, verify="reread")
    assert {row.mode for row in rows.values()} == {"rename"}
    assert (rows["aa"].status, rows["aa"].verify) == ("ok", "reread")
    assert rows["aa"].digest is not None
    assert rows["bb"].status == "digest_mismatch"
    assert (rows["bb"].error or "").endswith("as recorded in the destination")


@pytest.mark.parametrize("later", [False, True])
def test_bags_that_were_moved_are_compared_with_their_manifests(tmp_path: Path, later: bool) -> None:
    """A moved bag is compared with its manifests during the migration or in a later verification."""
    files = {"aa": {"one": b"1"}, "bb": {"one": b"2"}, "cc": {"one": b"3"}}
    source = make("bags", tmp_path / "source", files, tmp_path / "given")
    (tmp_path / "source" / "bb" / "data" / "one").write_bytes(b"3")
    info = tmp_path / "source" / "cc" / "bag-info.txt"
    info.write_bytes(info.read_bytes().replace(b"Bagging-Date: 2", b"Bagging-Date: 3"))
    rows, root = migrate(source, "bags", tmp_path / "root", move=True, verify="copy" if later else "reread")
    assert {row.mode for row in rows.values()} == {"rename"}
    if later:
        assert {row.verify for row in rows.values()} == {"moved"}
        (tmp_path / "root" / "cc" / "data" / "one").unlink()
        rows = {identifier: verify_object(root, row) for identifier, row in rows.items()}
    assert {row.id: row.status for row in rows.values()} == {
        "aa": "ok",
        "bb": "digest_mismatch",
        "cc": "digest_mismatch",
    }
    assert rows["aa"].verify == "reread"
    assert rows["aa"].digest is not None


@pytest.mark.parametrize("kind", ["pairtree", "bags"])
def test_renames_of_other_stores(tmp_path: Path, kind: str) -> None:
    """Pairtrees and folders of bags move objects without reading them."""
    source = make(kind, tmp_path / "source", objects(8), tmp_path / "given")
    before = held(source)
    rows, destination = migrate(source, kind, tmp_path / "destination", move=True)
    assert {(row.status, row.mode, row.verify) for row in rows.values()} == {("ok", "rename", "moved")}
    assert held(destination) == before
    assert list(source.objects()) == []


@pytest.mark.parametrize("kind", ["pairtree", "ocfl", "bags"])
def test_what_was_moved_is_known_again(tmp_path: Path, kind: str) -> None:
    """A resumed run recognises what it moved; another object of that identifier is not mistaken for it."""
    source = make(kind, tmp_path / "source", {"aa": {"one": b"1"}, "bb": {"one": b"1"}}, tmp_path / "given")
    if kind == "bags":
        # A serialized bag.
        shutil.make_archive(str(tmp_path / "source" / "bb"), "zip", tmp_path / "source", "bb")
        shutil.rmtree(tmp_path / "source" / "bb")
    chosen = options(source, kind, tmp_path / "destination", move=True)
    chosen.create_destination()
    plan = entries(chosen)
    first = transfer_chunk(chosen, plan)
    assert {row.status for row in first} == {"ok"}
    again = transfer_chunk(chosen, plan)
    assert [(row.status, row.mode, row.files, row.bytes) for row in again] == [
        ("ok", "rename", row.files, row.bytes) for row in first
    ]
    destination = stores.open(tmp_path / "destination", kind)
    destination.put("aa", write(tmp_path / "other", {"one": b"2"}), replace=True)
    rows = {row.id: row for row in transfer_chunk(chosen, plan)}
    assert {row.id: row.status for row in rows.values()} == {
        one.id: "source_missing" if one.id == "aa" else "ok" for one in plan
    }
    # It may be the source's, changed after the plan and moved by the killed run.
    assert "the destination has an object" in (rows["aa"].error or "")
    destination.delete("aa")
    (missing,) = [row for row in transfer_chunk(chosen, plan) if row.id == "aa"]
    assert (missing.status, "destination" in (missing.error or "")) == ("source_missing", False)


@pytest.mark.parametrize("move", [False, True])
@pytest.mark.parametrize(
    ("kind", "to"),
    [
        ("pairtree", "ocfl"),
        ("pairtree", "pairtree"),
        ("pairtree", "bags"),
        ("vitro", "pairtree"),
        ("ocfl", "ocfl"),
        ("bags", "bags"),
    ],
)
def test_names_that_came_after_the_plan(tmp_path: Path, kind: str, to: str, move: bool) -> None:
    """The run also refuses names that the target system does not allow, and writes nothing of the object."""
    given = {"aa": {"one": b"1"}, "bb": {"one": b"2"}}
    source = make(kind, tmp_path / "source", given, tmp_path / "given")
    chosen = options(source, to, tmp_path / "destination", move=move, profile="windows")
    destination = chosen.create_destination()
    plan = entries(chosen)
    source.put("bb", write(tmp_path / "new", {"a:b": b"3"}), replace=True)
    rows = {row.id: row for row in transfer_chunk(chosen, plan)}
    assert {row.id: row.status for row in rows.values()} == {"aa": "ok", "bb": "refused_name"}
    assert rows["bb"].error_code == "refused-name"
    assert "a:b" in (rows["bb"].error or "")
    assert [record.id for record in destination.objects()] == ["aa"]
    assert "bb" in {record.id for record in source.objects()}


@pytest.mark.parametrize("to", ["bags", "ocfl"])
def test_names_that_a_kind_of_store_does_not_take(tmp_path: Path, to: str) -> None:
    """Names added after the plan that the destination does not allow are not an error of the source."""
    given = {"aa": {"one": b"1"}, "bb": {"one": b"2"}, "cc": {"one": b"3"}}
    source = make("pairtree", tmp_path / "source", given, tmp_path / "given")
    chosen = options(source, to, tmp_path / "destination")
    chosen.create_destination()
    plan = entries(chosen)
    tops = {name: tmp_path / "source" / "pairtree_root" / name / f"0{name}" for name in ("bb", "cc")}
    Path(os.fsdecode(os.fsencode(tops["bb"]) + b"/caf\xe9")).write_bytes(b"x")
    for name in ("\u00e9", "e\u0301"):
        (tops["cc"] / name).write_bytes(b"x")
    rows = {row.id: row for row in transfer_chunk(chosen, plan)}
    found = {"aa": "ok", "bb": "refused_name", "cc": "refused_name" if to == "bags" else "ok"}
    assert {row.id: row.status for row in rows.values()} == found


def unprivileged(work: Callable[[], Any]) -> Any:
    """Return the result of an unprivileged child process, also if the tests run as root."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                header = struct.pack("Ii", 0x20080522, 0)  # capabilities version 3, of this thread
                assert ctypes.CDLL(None).capset(header, bytes(24)) == 0
            os.write(writer, pickle.dumps(work()))
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, "rb") as file:
        found = file.read()
    os.waitpid(child, 0)
    return pickle.loads(found)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="there is no other way to give up root's rights")
@pytest.mark.parametrize(
    ("kind", "to"), [("pairtree", "ocfl"), ("pairtree", "pairtree"), ("pairtree", "bags"), ("bags", "ocfl")]
)
def test_what_cannot_be_read_has_one_status(tmp_path: Path, kind: str, to: str) -> None:
    """Unreadable files and directories have one status, and are not damage of the source."""
    given = {name: {"one": b"1", "sub/two": b"2"} for name in ("dir", "file", "good", "top")}
    source = make(kind, tmp_path / "source", given, tmp_path / "given")
    closed = {"dir": "sub", "file": "sub/two", "top": ""}
    for name, inside in closed.items():
        (path,) = (tmp_path / "source").rglob(f"{name}/data/{inside}" if kind == "bags" else f"{name}/{inside}")
        path.chmod(0)

    def work() -> dict[str, tuple[str, str | None]]:
        run = migrate_module.run(
            migrate_module.plan(source.root, tmp_path / "new", to=to, layout="0004" if to == "ocfl" else None),
            processes=False,
        )
        return {row.source_id: (row.status, row.error_code) for row in run.rows()}

    rows = unprivileged(work)
    assert {name: status for name, (status, _code) in rows.items()} == {
        **dict.fromkeys(closed, "copy_failed"),
        "good": "ok",
    }
    assert {code for _status, code in rows.values()} <= {"permission", "unreadable", "file-unreadable", None}


def test_hardlinks_between_pairtrees_only(tmp_path: Path) -> None:
    """Pairtrees may share files; OCFL forbids hard links, and nothing is written."""
    source = make("pairtree", tmp_path / "source", {"abc": {"one": b"1"}}, tmp_path / "given")
    rows, destination = migrate(source, "pairtree", tmp_path / "tree", copy_mode="hardlink")
    assert rows["abc"].mode == "hardlink"
    ((_, path),) = destination.get("abc").files()
    assert os.stat(path).st_nlink == 2
    chosen = options(source, "ocfl", tmp_path / "root", copy_mode="hardlink")
    chosen.create_destination()
    with pytest.raises(StoreError, match="E090"):
        transfer_chunk(chosen, entries(chosen))
    assert list(stores.open(tmp_path / "root").objects()) == []


@pytest.mark.parametrize("verify", ["none", "copy", "reread"])
def test_verification_is_what_was_asked_for(tmp_path: Path, verify: str) -> None:
    """Without verification an object is unverified, and not ok."""
    source = make("pairtree", tmp_path / "source", {"abc": {"one": b"1"}}, tmp_path / "given")
    rows, _ = migrate(source, "ocfl", tmp_path / "root", verify=verify)
    assert (rows["abc"].status, rows["abc"].verify) == ("unverified" if verify == "none" else "ok", verify)


def test_object_digest_is_what_sha512sum_says() -> None:
    """The digest of an object equals that of sha512sum lines: escaped alike, sorted by bytes."""
    one = "a" * 128
    assert object_digest({"b\nc": one, "a": one}) == object_digest({"a": one, "b\nc": one})
    import hashlib

    text = f"{one}  a\n\\{one}  b\\nc\n".encode()
    assert object_digest({"b\nc": one, "a": one}) == hashlib.sha512(text).hexdigest()


def test_places_all_at_once(tmp_path: Path) -> None:
    """Objects without a path, and those that need a closer look, are separated; the others match single lookups."""
    root = OcflRoot.create(tmp_path / "root", layout("0002"))
    identifiers = ["a", "\u00e9", "\udcff", "extensions", "0=ocfl_1.1", "ocfl_layout.json", "x" * 300, "x" * 250, ".."]
    paths = root.paths_for(identifiers)
    assert paths == [b"a", "\u00e9".encode(), *[None] * 5, b"x" * 250, None]
    for identifier, path in zip(identifiers, paths, strict=True):
        if path is None:
            with pytest.raises((StoreError, ValueError)):
                root.path_for(identifier)
        else:
            assert root.path_for(identifier) == path.decode()


def test_identifiers_that_are_not_utf_8(tmp_path: Path) -> None:
    """Identifiers that are not UTF-8 are valid in a Pairtree, and refused by OCFL."""
    source = stores.create("pairtree", tmp_path / "source")
    for identifier in (b"\xff\xfe", b"abc"):
        source.put(identifier, write(tmp_path / "in", {"one": b"1"}))
    rows, _ = migrate(source, "ocfl", tmp_path / "root")
    assert [row.status for row in rows.values()] == ["refused_name", "ok"]
    rows, _ = migrate(source, "pairtree", tmp_path / "there")
    assert {row.status for row in rows.values()} == {"ok"}
    assert tree(tmp_path / "there") == tree(tmp_path / "source")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="there is no other way to give up root's rights")
def test_what_cannot_be_read_has_one_status_where_it_would_replace_something(tmp_path: Path) -> None:
    there = make("ocfl", tmp_path / "there", {"file": {"a": b"2"}}, tmp_path / "given")
    closed = tmp_path / "given" / "closed"
    write(closed, {"sub/two": b"2"})
    found = {}
    for name in ("sub/two", "sub"):
        (closed / name).chmod(0)

        def work() -> tuple[str, str]:
            with pytest.raises(ObjectError) as caught:
                there.put("file", closed, replace=True)
            return failure_of(caught.value)[:2]

        found[name] = unprivileged(work)
        (closed / name).chmod(0o700)
    assert set(found.values()) == {("copy_failed", "permission")}


@pytest.mark.parametrize("kind", ["bags", "ocfl"])
@pytest.mark.parametrize("alone", [False, True])
def test_names_that_are_refused_when_they_are_put(tmp_path: Path, kind: str, alone: bool) -> None:
    store = make(kind, tmp_path / "store", {}, tmp_path / "given")
    (tmp_path / "one").mkdir()
    path = os.fsencode(tmp_path / "one") + b"/caf\xe9"
    Path(os.fsdecode(path)).write_bytes(b"x")
    with pytest.raises(ObjectError, match=r"rename (it|the file)") as caught:
        store.put("x", os.fsdecode(path) if alone else tmp_path / "one")
    assert caught.value.kind == "bad-name"


def test_digests_of_names_in_two_forms(tmp_path: Path) -> None:
    """If manifests spell a file's name in different normalization forms, each contributes its digest."""
    (tmp_path / "bag/data").mkdir(parents=True)
    (tmp_path / "bag/data/\u00e9").write_bytes(b"x")
    (tmp_path / "bag/bagit.txt").write_text("BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n")
    wanted = {}
    for algorithm, name in (("md5", "e\u0301"), ("sha256", "\u00e9")):
        wanted[algorithm] = {"data/\u00e9": hashlib.new(algorithm, b"x").hexdigest()}
        text = "{}  data/{}\n".format(wanted[algorithm]["data/\u00e9"], name)
        (tmp_path / f"bag/manifest-{algorithm}.txt").write_text(text, encoding="utf-8")
    names = ["bagit.txt", "data/\u00e9", "manifest-md5.txt", "manifest-sha256.txt"]
    found = listed_digests(Bag.open(tmp_path / "bag"), os.fsencode(tmp_path / "bag"), [n.encode() for n in names])
    assert found.digests == wanted
    assert found.missing is None


def test_new_bags_are_published_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects that become bags share a private directory, and few turns of its lock."""
    files = {f"id{number:02}": {"one": b"%d" % number, "two": b"2"} for number in range(20)}
    source = make("pairtree", tmp_path / "source", files, tmp_path / "given")
    counts = Counter[str]()

    def counted(name: str) -> Callable[..., Any]:
        real = getattr(RunDirectory, name)

        def call(self: RunDirectory, *arguments: Any, **how: Any) -> Any:
            counts[name] += 1
            return real(self, *arguments, **how)

        return call

    for name in ("__enter__", "lock"):
        monkeypatch.setattr(RunDirectory, name, counted(name))
    rows, folder = migrate(source, "bags", tmp_path / "bags")
    assert statuses(rows) == {"ok": 20}
    assert counts == {"__enter__": 1, "lock": 1}
    assert folder.check(digests=True).problems == []


@pytest.mark.parametrize("damage", ["changed", "removed"])
@pytest.mark.parametrize("to", TO)
def test_damage_in_the_destination(
    tmp_path: Path, to: str, damage: str, given: dict[str, Files], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that changes or disappears before the object is read again is never verified."""
    source = make("pairtree", tmp_path / "source", given, tmp_path / "given")
    read = reading.read_target

    def read_damaged(store: stores.Store, entry: Any, thorough: bool) -> Any:
        path = max((path for _name, path in reading.locate_target(store, entry).files()), key=os.path.getsize)
        data = Path(os.fsdecode(path)).read_bytes()
        os.unlink(path)
        if damage == "changed":
            Path(os.fsdecode(path)).write_bytes(bytes([data[0] ^ 1]) + data[1:])
        return read(store, entry, thorough=thorough)

    monkeypatch.setattr(reading, "read_target", read_damaged)
    rows, _ = migrate(source, to, tmp_path / "destination", verify="reread")
    # The inventory lists a missing file, which is then opened.
    expected = "unverified" if (to, damage) == ("ocfl", "removed") else "digest_mismatch"
    assert statuses(rows) == {expected: len(given)}
