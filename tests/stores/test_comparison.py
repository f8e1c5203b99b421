"""Two stores compared: each difference, between all kinds of stores, on a disk and in a bucket."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pressmark import migrate, stores
from pressmark.buckets import address
from pressmark.buckets.memory import MemoryBucket
from pressmark.cli import main
from pressmark.errors import SpillError
from pressmark.stores.comparing import store_comparison

KINDS = ("pairtree", "ocfl", "bags", "vitro")
NAMESPACE = "http://example.org/"
USER = {"name": "A Curator", "address": "mailto:curator@example.org"}


def new_store(kind: str, path: Path | str) -> Any:
    if kind == "ocfl":
        return stores.OcflRoot.create(path, "0003", user=USER)
    if kind == "vitro":
        return stores.VitroStore.create(path, namespaces=[NAMESPACE])
    return stores.create(kind, path)


def differences(one: Any, other: Any, **options: Any) -> list[tuple[str, ...]]:
    return [tuple(filter(None, found[:3])) for found in stores.compare(one, other, **options)]


@pytest.mark.parametrize("there", KINDS)
@pytest.mark.parametrize("here", KINDS)
@pytest.mark.parametrize("digests", [False, True])
def test_all_kinds(here: str, there: str, digests: bool, tmp_path: Path) -> None:
    """The differences are those that were planted at random, whatever the kinds of the stores."""
    chance = random.Random(f"{here} {there} {digests}")
    one, other = new_store(here, tmp_path / "one"), new_store(there, tmp_path / "other")
    is_single = "vitro" in (here, there)  # one file is an object
    records = {"ocfl", "bags"} >= {here, there}
    truth: set[tuple[str, ...]] = set()
    counts = dict.fromkeys(("equal", "different", "only_here", "only_there"), 0)
    for number in range(40):
        name = f"{NAMESPACE}o{number}"
        names = ["f"] if is_single else ["f", "é/g", "h"]
        ours = {file: f"{number} {file}".encode() for file in names}
        theirs = dict(ours)
        what = chance.choice(["equal", "content", "size", "file", "here", "there"])
        if what == "content":
            theirs["f"] = ours["f"][::-1]
            is_found = digests or records
            truth |= {("different", name, "f")} if is_found else set()
            counts["different" if is_found else "equal"] += 1
        elif what == "size":
            theirs["f"] += b"!"
            truth.add(("different", name, "f"))
            counts["different"] += 1
        elif what == "file" and not is_single:
            theirs["new"] = theirs.pop("h")
            truth |= {("only-here", name, "h"), ("only-there", name, "new")}
            counts["different"] += 1
        elif what in ("here", "there"):
            truth.add((f"only-{what}", name))
            counts[f"only_{what}"] += 1
        else:
            counts["equal"] += 1
        if what != "there":
            one.put(name, ours)
        if what != "here":
            other.put(name, theirs)
    comparison = stores.compare(one, other, digests=digests)
    found = [tuple(filter(None, difference[:3])) for difference in comparison]
    assert (len(found), set(found)) == (len(truth), truth)
    assert counts.items() <= comparison.counts.items()
    assert comparison.counts["unreadable"] == 0
    assert comparison.ok is not truth
    swapped = {"only-here": "only-there", "only-there": "only-here"}
    assert set(differences(other, one, digests=digests)) == {(swapped.get(one[0], one[0]), *one[1:]) for one in truth}


def test_nothing_is_read(tmp_path: Path) -> None:
    """Recorded digests are compared without the content: it may be gone."""
    one, other = new_store("ocfl", tmp_path / "one"), new_store("ocfl", tmp_path / "other")
    for store in (one, other):
        store.put("x", {"f": b"content"})
    for path in (tmp_path / "other").rglob("f"):
        path.write_bytes(b"damaged")
    assert differences(one, other) == []
    assert differences(one, other, digests=True) == [("different", "x", "f")]


def test_copies_of_bags(tmp_path: Path) -> None:
    """An object that is a copy of a bag is compared with all files of the bag."""
    bags = new_store("bags", tmp_path / "bags")
    bags.put("x", {"f": b"content"})
    plan = migrate.plan(tmp_path / "bags", tmp_path / "copies", to="ocfl", layout="0003")
    assert migrate.run(plan, processes=False).ok
    copies = stores.open(tmp_path / "copies")
    assert differences(bags, copies) == differences(copies, bags) == differences(bags, copies, digests=True) == []
    with open(os.path.join(bags.get("x").bag_path, "bag-info.txt"), "a", encoding="utf-8") as file:
        file.write("Contact-Name: A Curator\n")
    assert differences(bags, copies) == [("different", "x", "bag-info.txt")]


def test_a_bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A replica in a bucket is compared with its original; a Pairtree with a root in a bucket."""
    bucket = MemoryBucket()
    monkeypatch.setattr(address, "open_bucket", lambda text, *_options: (bucket, address.parse(text)[1]))
    root, tree = new_store("ocfl", tmp_path / "root"), new_store("pairtree", tmp_path / "tree")
    replica = new_store("ocfl", "s3://books/root")
    for number in range(20):
        for store in (root, tree, replica):
            store.put(f"o{number}", {"f": b"%d" % number, "d/g": b"2" * number})
    for store in (root, tree):
        assert differences(store, replica) == differences(replica, store) == []
        assert differences(store, replica, digests=True) == []
    replica.update("o3", add={"f": b"33"})
    assert ("different", "o3", "f") in differences(root, replica)
    assert ("different", "o3", "f") in differences(replica, tree)
    assert ("different", "o3", "f") in differences(replica, tree, digests=True)


def test_objects_that_cannot_be_compared(tmp_path: Path) -> None:
    """They are named, and the others are compared."""
    one, other = new_store("ocfl", tmp_path / "one"), new_store("ocfl", tmp_path / "other")
    for store in (one, other):
        for name in ("a", "b", "c"):
            store.put(name, {"f": name.encode()})
    [folder] = [path.parent for path in (tmp_path / "other").rglob("inventory.json") if path.parent.name == "b"]
    (folder / "inventory.json").write_text("{")
    again = (tmp_path / "one").joinpath("copy")
    [folder] = [path.parent for path in (tmp_path / "one").rglob("inventory.json") if path.parent.name == "c"]
    shutil.copytree(folder, again)
    comparison = stores.compare(one, other)
    found = list(comparison)
    assert [one.kind for one in found if one.id == "a"] == []
    assert any(one.kind == "unreadable" and one.id.endswith("b") for one in found)
    assert ("unreadable", "c") in [one[:2] for one in found]
    assert not comparison.ok


def test_a_full_temporary_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is one error that says what to do."""

    class Full(store_comparison._Index):
        def __init__(self) -> None:
            super().__init__()
            self.execute("PRAGMA max_page_count = 4")

    monkeypatch.setattr(store_comparison, "_Index", Full)
    one, other = new_store("pairtree", tmp_path / "one"), new_store("pairtree", tmp_path / "other")
    for number in range(300):
        other.put(f"an-object-{number}", {"f": b""})
    with pytest.raises(SpillError, match="set TMPDIR to another directory"):
        list(stores.compare(one, other))


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, list[str], str]]:
    def call(*words: object) -> tuple[int, list[str], str]:
        with pytest.raises(SystemExit) as ended:
            main([str(word) for word in words])
        out, err = capfd.readouterr()
        return int(ended.value.code or 0), out.splitlines(), err

    return call


def test_command(tmp_path: Path, run: Callable[..., tuple[int, list[str], str]]) -> None:
    """The command prints each difference; its exit status tells whether there is one."""
    one, other = new_store("ocfl", tmp_path / "one"), new_store("pairtree", tmp_path / "other")
    one.put("a", {"f": b"1"})
    other.put("a", {"f": b"1"})
    status, lines, said = run("store", "compare", tmp_path / "one", tmp_path / "other")
    assert (status, lines) == (0, [])
    assert "1 object equal; 1 file compared by size only" in said
    one.put("b", {"f": b"1"})
    other.put("c", {"f": b"1"})
    other.put("a", {"f": b"2", "g": b""}, replace=True)
    status, lines, said = run("store", "compare", tmp_path / "one", tmp_path / "other", "--digests")
    assert (status, lines) == (1, ["only-here\tb", "different\ta\tf", "only-there\ta\tg", "only-there\tc"])
    assert "0 objects equal, 1 different, 1 only in" in said
    status, lines, _said = run("store", "compare", tmp_path / "one", tmp_path / "other", "--digests", "--json")
    rows = [json.loads(line) for line in lines]
    assert (rows[1]["kind"], rows[1]["file"], status) == ("different", "f", 1)
    assert rows[-1]["summary"]["ok"] is False


def test_no_kind_is_advised(tmp_path: Path, run: Callable[..., tuple[int, list[str], str]]) -> None:
    """The commands without --kind do not name it, nor do they advise to create a store."""
    new_store("pairtree", tmp_path / "one")
    (tmp_path / "other").mkdir()
    for command in (["store", "compare", tmp_path / "one"], ["compare"]):
        status, lines, said = run(*command, tmp_path / "other")
        assert (status > 0, lines) == (True, [])
        assert "bag found; specify the directory of one\n" in said
    (tmp_path / "other" / "pairtree_root").mkdir()
    (tmp_path / "other" / "file_storage_root").mkdir()
    _status, _lines, said = run("store", "compare", tmp_path / "other", tmp_path / "one")
    assert "several kinds of store detected (pairtree, vitro); specify a directory with one\n" in said
    assert "specify the kind (--kind)" in run("store", "ls", tmp_path / "other")[2]


def test_unread_content(tmp_path: Path, run: Callable[..., tuple[int, list[str], str]]) -> None:
    """The result of a comparison by recorded digests says that no content was read."""
    for name in ("one", "other"):
        new_store("ocfl", tmp_path / name).put("a", {"f": b"1"})
    assert run("store", "compare", tmp_path / "one", tmp_path / "other")[2].endswith(
        ": 1 object equal; content was not read\n"
    )
    assert run("store", "compare", tmp_path / "one", tmp_path / "other", "--digests")[2].endswith(": 1 object equal\n")
