"""Objects that are read many in one call have the results of objects that are read one by one."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pressmark.reports import Problem
from pressmark.stores.job import _walked_ocfl
from pressmark.stores.ocfl import check as ocfl_check
from pressmark.stores.ocfl.checking.object_tree import ObjectTree, StoredTree
from pressmark.stores.ocfl.local.local_storage import LocalStorage
from pressmark.stores.ocfl.root import OcflRoot
from pressmark.stores.ocfl.storage import HEAD
from support.implementations import Implementation, implementations_to_test, use

from .samples import CREATED, create, rewrite, save, source, visit_all

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX files")

IDENTIFIERS = ("info:a/1", "info:a/2", "info:b/3", "info:c/4", "info:d/5")
FILES = {"a.txt": b"one", "deep/er/b.bin": bytes(range(256)) * 40, "empty": b""}


def filled(top: Path, word: str = "0003") -> OcflRoot:
    root = create(top, word)
    for number, identifier in enumerate(IDENTIFIERS):
        folder = source(top.parent / f"in{number}", {**FILES, "a.txt": b"%d" % number})
        root.put(identifier, folder, created=CREATED)
    return root


def path_of(root: OcflRoot, number: int = 2) -> Path:
    return Path(root.root) / root.path_for(IDENTIFIERS[number])


def results(
    root: OcflRoot, *, digests: bool = False, threads: int = 2
) -> tuple[list[Problem], dict[str, int], list[Any]]:
    """Return problems, counts and the result of each object, of a check."""
    objects: list[Any] = []

    def add(one: Any) -> None:
        objects.append(one._replace(advice=set(one.advice)))

    report = ocfl_check.Check(root, None, add).report(digests, threads, ())
    return report.problems, report.counts, objects


def everything(root: OcflRoot) -> list[Any]:
    found: list[Any] = [results(root, digests=digests, threads=n) for digests in (True, False) for n in (1, 2)]
    beside: list[Problem] = []
    return [*found, [*root.objects(threads=1, problems=beside)], beside, [*_walked_ocfl(root, ())]]


# --- what is read again -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("digests", [False, True])
def test_objects_without_errors_are_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, implementation: Implementation, digests: bool
) -> None:
    """Check and listing read objects many in one call, and neither scan nor open them one by one."""
    root = filled(tmp_path / "root")
    scan = LocalStorage.scan

    def refused(*_given: Any) -> Any:
        raise AssertionError("an object was read by itself")

    monkeypatch.setattr(StoredTree, "__init__", refused)
    monkeypatch.setattr(LocalStorage, "scan", lambda storage, name: refused() if b"/" in name else scan(storage, name))
    size = sum(map(len, FILES.values())) - 2
    for threads in (1, 2):
        report = root.check(digests=digests, threads=threads)
        assert report.problems == []
        assert report.counts == {"objects": 5, "files": 15, **({"bytes": 5 * size} if digests else {})}
    assert [record.id for record in root.objects()] == sorted(IDENTIFIERS, key=root.path_for)


def test_given_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, implementation: Implementation) -> None:
    """A check of given objects reads them in one call, and those with errors again."""
    root = filled(tmp_path / "root")
    changed, extra = path_of(root, 1), path_of(root, 3)
    (changed / "v1/content/a.txt").write_bytes(b"?")
    (extra / "extra").write_bytes(b"?")
    shutil.rmtree(path_of(root, 4))
    calls: list[bytes] = []
    check = ocfl_check.check_object

    def counted(tree: ObjectTree, *given: Any) -> Any:
        if isinstance(tree, StoredTree):
            calls.append(tree.path)
        return check(tree, *given)

    monkeypatch.setattr(ocfl_check, "check_object", counted)
    found = [(root.path_for(identifier).encode(), None) for identifier in IDENTIFIERS]
    outside = Problem("file-stray", "error", "", "x")
    results: list[ocfl_check.ObjectResult] = []
    report = ocfl_check.Check(root, None, results.append).report_on([found[0], outside, *found[1:]], True, 1)
    assert [(problem.kind, problem.path) for problem in report.problems] == [
        ("file-stray", "x"),
        ("content-mismatch", f"{found[1][0].decode()}/v1/content/a.txt"),
        ("object-extra", f"{found[3][0].decode()}/extra"),
    ]
    assert [result.path for result in results] == [where.decode() for where, _inside in found[:4]]
    assert set(calls) == {found[1][0], found[3][0]}
    # Objects below a path that is no object are not part of the check.
    above = os.path.dirname(found[0][0])
    results.clear()
    ocfl_check.Check(root, None, results.append).report_on([(above, None)], False, 1)
    assert [result.path for result in results] == [above.decode()]


@pytest.mark.parametrize(("idle", "expected"), [(2, 2), (512, 1)])
def test_long_runs_of_small_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, idle: int, expected: int) -> None:
    """A run of the engine ends before many objects without large files, so that they are reported soon."""
    monkeypatch.setattr(ocfl_check, "IDLE", idle)
    root = filled(tmp_path / "root", "0004")
    in_order = sorted(IDENTIFIERS, key=root.path_for)
    large = source(tmp_path / "large", {"large": b"x" * ((1 << 20) + 1)})
    for identifier in (in_order[0], in_order[-1]):
        root.put(identifier, large, replace=True)
    engine, runs = LocalStorage.hash_tasks, []

    def counted(*given: Any) -> Any:
        runs.append(given)
        return engine(*given)

    monkeypatch.setattr(LocalStorage, "hash_tasks", counted)
    objects: list[str] = []
    report = ocfl_check.Check(root, None, lambda one: objects.append(one.path)).report(True, 1, ())
    assert (report.problems, report.counts["objects"], len(runs)) == ([], 5, expected)
    assert objects == [root.path_for(identifier) for identifier in in_order]


# --- unusual objects --------------------------------------------------------------------------------------------------

Change = Callable[[OcflRoot], object]


def write(name: str, data: bytes = b"x") -> Change:
    def change(root: OcflRoot) -> None:
        path = path_of(root) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    return change


def remove(name: str) -> Change:
    return lambda root: (path_of(root) / name).unlink()


def inventory(change: Callable[[dict[str, Any]], object]) -> Change:
    return lambda root: rewrite(path_of(root), change)


def text(change: Callable[[bytes], bytes]) -> Change:
    """Change the bytes of the inventory, with the right sidecars."""
    return lambda root: save(path_of(root), change((path_of(root) / "inventory.json").read_bytes()))


def replaced(one: bytes, other: bytes) -> Change:
    def change(data: bytes) -> bytes:
        assert one in data
        return data.replace(one, other, 1)

    return text(change)


def link(name: str, target: str) -> Change:
    def change(root: OcflRoot) -> None:
        path = path_of(root) / name
        if path.is_file():
            path.unlink()
        path.symlink_to(target)

    return change


def sidecars(change: Callable[[bytes], bytes]) -> Change:
    """Change both sidecars."""

    def changed(root: OcflRoot) -> None:
        for name in ("inventory.json.sha512", "v1/inventory.json.sha512"):
            path = path_of(root) / name
            path.write_bytes(change(path.read_bytes()))

    return changed


def nested(root: OcflRoot) -> None:
    shutil.copytree(path_of(root, 1), path_of(root) / "inner")


def upper(document: dict[str, Any]) -> None:
    document["manifest"] = {digest.upper(): paths for digest, paths in document["manifest"].items()}
    state = document["versions"]["v1"]["state"]
    document["versions"]["v1"]["state"] = {digest.upper(): paths for digest, paths in state.items()}


def malformed(document: dict[str, Any]) -> None:
    for block in (document["manifest"], document["versions"]["v1"]["state"]):
        block["0" * 127] = block.pop(next(iter(block)))


def one_for_another(document: dict[str, Any]) -> None:
    """List one path twice instead of another one."""
    for block, path in ((document["manifest"], "v1/content/a.txt"), (document["versions"]["v1"]["state"], "a.txt")):
        block.pop(next(digest for digest, paths in block.items() if paths[0].endswith("empty")))
        next(paths for paths in block.values() if paths == [path]).append(path)


def first(block: dict[str, Any]) -> Any:
    return next(iter(block.values()))


UNUSUAL: dict[str, Change] = {
    "nothing": lambda root: None,
    "two versions": lambda root: root.put(IDENTIFIERS[2], Path(root.root).parent / "in0", replace=True),
    "another file": write("extra"),
    "an empty directory": lambda root: (path_of(root) / "v1/content/none").mkdir(),
    "an empty object": lambda root: root.put("info:empty", Path(root.root).parent / "in5"),
    "logs": write("logs/log"),
    "an extension": write("extensions/0001-x/file"),
    "a mutable head": write("extensions/0005-mutable-head/head/inventory.json"),
    "an object inside": nested,
    "a version that is not listed": write("v2/content/a"),
    "a file in the version": write("v1/extra"),
    "a folder in the version": write("v1/other/extra"),
    "content that is not listed": write("v1/content/extra"),
    "content that is missing": remove("v1/content/a.txt"),
    "content that differs": write("v1/content/a.txt", b"?"),
    "content that is not UTF-8": lambda root: (path_of(root) / "v1/content/a.txt").rename(
        os.fsdecode(os.fsencode(path_of(root) / "v1/content") + b"/\xff")
    ),
    "no inventory": remove("inventory.json"),
    "no inventory in v1": remove("v1/inventory.json"),
    "no sidecar": remove("inventory.json.sha512"),
    "no sidecar in v1": remove("v1/inventory.json.sha512"),
    "a sidecar of another algorithm": write("inventory.json.md5"),
    "a sidecar that is wrong": write("inventory.json.sha512", b"0" * 128 + b" inventory.json\n"),
    "a sidecar in v1 that is wrong": write("v1/inventory.json.sha512", b"0" * 128 + b" inventory.json\n"),
    "a sidecar without a name": sidecars(lambda data: data[:128]),
    "sidecars that are wrong": sidecars(lambda data: b"0" * 128 + data[128:]),
    "sidecars with one wrong digit": sidecars(
        lambda data: data[:127] + (b"1" if data[127:128] == b"0" else b"0") + data[128:]
    ),
    "sidecars in upper case": sidecars(lambda data: data[:128].upper() + data[128:]),
    "sidecars with a tab": sidecars(lambda data: data.replace(b" ", b" \t")),
    "sidecars without a space": sidecars(lambda data: data.replace(b" ", b"")),
    "sidecars without a line feed": sidecars(lambda data: data.rstrip()),
    "sidecars with two line feeds": sidecars(lambda data: data + b"\n"),
    "sidecars of another file": sidecars(lambda data: data.replace(b"inventory.json", b"inventory.jsom")),
    "an inventory in v1 that differs": write("v1/inventory.json", b"{}"),
    "a declaration that is wrong": write("0=ocfl_object_1.1", b"ocfl_object_1.1"),
    "a declaration that is unknown": write("0=ocfl_object_2.0", b"ocfl_object_2.0\n"),
    "two declarations": write("0=ocfl_object_1.0", b"ocfl_object_1.0\n"),
    "another declaration": lambda root: (path_of(root) / "0=ocfl_object_1.1").rename(
        path_of(root) / "0=ocfl_object_1.0"
    ),
    "no declaration": remove("0=ocfl_object_1.1"),
    "a link to content": link("v1/content/a.txt", "empty"),
    "a link to a directory": link("v1/content/link", "deep"),
    "a link to the inventory": link("inventory.json", "v1/inventory.json"),
    "a hard link": lambda root: os.link(path_of(root) / "v1/content/a.txt", Path(root.root).parent / "linked"),
    "a hard link to the sidecar": lambda root: os.link(path_of(root) / "inventory.json.sha512", path_of(root) / "v1/y"),
    "a named pipe": lambda root: os.mkfifo(path_of(root) / "v1/content/pipe"),
    "large content": lambda root: root.put("info:large", source(tmp(root), {"large": b"x" * (1 << 20) + b"x"})),
    "much content": lambda root: root.put(
        "info:much", source(tmp(root), {f"{number}": b"%d" % number * (1 << 19) for number in range(9)})
    ),
    "a moved object": lambda root: path_of(root).rename(Path(root.root) / "moved"),
    "a stray file": lambda root: (path_of(root).parent / "stray").write_bytes(b"x"),
    "an empty directory in the hierarchy": lambda root: (path_of(root).parent / "none").mkdir(),
    "names that differ in case": lambda root: [
        shutil.copytree(path_of(root), path_of(root).parent / name) for name in ("Xyz", "xyZ", "\u00e9", "e\u0301")
    ],
    "a fixity block": inventory(lambda document: document.update(fixity={"md5": {"0" * 32: ["v1/content/empty"]}})),
    "another content directory": inventory(lambda document: document.update(contentDirectory="other")),
    "the usual content directory": inventory(lambda document: document.update(contentDirectory="content")),
    "an unknown key": inventory(lambda document: document.update(more="")),
    "another identifier": inventory(lambda document: document.update(id="info:other")),
    "an identifier that is no URI": inventory(lambda document: document.update(id="other")),
    "an empty identifier": inventory(lambda document: document.update(id="")),
    "a number as identifier": inventory(lambda document: document.update(id=1)),
    "another type": inventory(lambda document: document.update(type="https://ocfl.io/1.0/spec/#inventory")),
    "another head": inventory(lambda document: document.update(head="v2")),
    "padded versions": inventory(lambda document: document.update(head="v01", versions={"v01": {}})),
    "upper case": inventory(upper),
    "a malformed digest": inventory(malformed),
    "one path for another": inventory(one_for_another),
    "sha256": inventory(lambda document: document.update(digestAlgorithm="sha256")),
    "no state": inventory(lambda document: document["versions"]["v1"].pop("state")),
    "an unknown key of the version": inventory(lambda document: document["versions"]["v1"].update(more="")),
    "created that is wrong": inventory(
        lambda document: document["versions"]["v1"].update(created="2026-02-30T00:00:00Z")
    ),
    "no created": inventory(lambda document: document["versions"]["v1"].pop("created")),
    "no message": inventory(lambda document: document["versions"]["v1"].pop("message")),
    "a message that is no text": inventory(lambda document: document["versions"]["v1"].update(message=[])),
    "no user": inventory(lambda document: document["versions"]["v1"].pop("user")),
    "no address": inventory(lambda document: document["versions"]["v1"]["user"].pop("address")),
    "an address that is no URI": inventory(lambda document: document["versions"]["v1"]["user"].update(address="x")),
    "an address that is no text": inventory(lambda document: document["versions"]["v1"]["user"].update(address=1)),
    "an empty name": inventory(lambda document: document["versions"]["v1"]["user"].update(name="")),
    "an unknown key of the user": inventory(lambda document: document["versions"]["v1"]["user"].update(more="")),
    "a path twice": inventory(lambda document: first(document["manifest"]).append("v1/content/a.txt")),
    "a path of another": inventory(lambda document: first(document["manifest"]).append("v1/content/empty")),
    "a path that is not there": inventory(lambda document: first(document["manifest"]).append("v1/content/z")),
    "a path with dots": inventory(lambda document: first(document["manifest"]).append("v1/content/../content/z")),
    "no paths": inventory(lambda document: document["manifest"].update({"0" * 128: []})),
    "paths that are no list": inventory(lambda document: document["manifest"].update({"0" * 128: "a"})),
    "a number as path": inventory(lambda document: first(document["manifest"]).append(1)),
    "a list as path": inventory(lambda document: first(document["manifest"]).append(["v1/content/a.txt"])),
    "a digest that is not used": inventory(lambda document: document["versions"]["v1"]["state"].popitem()),
    "a digest that is unknown": inventory(lambda document: document["manifest"].popitem()),
    "another digest in the state": inventory(
        lambda document: document["versions"]["v1"]["state"].update({"0" * 128: ["z"]})
    ),
    "several logical paths": inventory(lambda document: first(document["versions"]["v1"]["state"]).append("copy")),
    "renamed": inventory(lambda document: first(document["versions"]["v1"]["state"]).__setitem__(0, "other")),
    "a logical path twice": inventory(lambda document: first(document["versions"]["v1"]["state"]).append("empty")),
    "a logical path with dots": inventory(lambda document: first(document["versions"]["v1"]["state"]).append("../x")),
    "a logical file as directory": inventory(
        lambda document: first(document["versions"]["v1"]["state"]).append("empty/x")
    ),
    "a number as logical path": inventory(lambda document: first(document["versions"]["v1"]["state"]).append(1)),
    "a repeated key": replaced(b'"head"', b'"head": "v1", "head"'),
    "a repeated key with another value": replaced(b'"head"', b'"head": "v2", "head"'),
    "a repeated digest": text(lambda data: data.replace(b'"manifest": {', b'"manifest": {' + entry(data) + b",", 1)),
    "a repeated key of the user": replaced(b'"name"', b'"name": "", "name"'),
    "a repeated key without a colon": replaced(b'"head"', b'"head"\t: "v1" , "head"'),
    "an escape": replaced(b'"info:b/3"', b'"info:b\\/3"'),
    "an escaped key": replaced(b'"head"', b'"he\\u0061d": "v1", "head"'),
    "a surrogate": replaced(b'"info:b/3"', b'"info:b/3\\ud800"'),
    "NaN": replaced(b'"head"', b'"more": NaN, "head"'),
    "NaN that is replaced": replaced(b'"head"', b'"head": NaN, "head"'),
    "a long number": replaced(b'"head"', b'"head": ' + b"9" * 5000 + b', "head"'),
    "deep brackets": text(lambda _data: b"[" * 100_000),
    "bytes that are not UTF-8": replaced(b"A Curator", b"A Cur\xff"),
    "a byte order mark": text(lambda data: b"\xef\xbb\xbf" + data),
    "UTF-16": text(lambda data: data.decode().encode("utf-16")),
    "a control character": replaced(b"A Curator", b"A\x01Curator"),
    "text after the end": text(lambda data: data + b"x"),
    "an array": text(lambda data: b"[" + data + b"]"),
    "colons in names": replaced(b"A Curator", b"A: Curator"),
    "other white space": text(lambda data: json.dumps(json.loads(data), separators=(",", ":")).encode()),
    "an empty file": text(lambda _data: b""),
}


def tmp(root: OcflRoot) -> Path:
    return Path(root.root).parent / "more"


def entry(data: bytes) -> bytes:
    digest, paths = next(iter(json.loads(data)["manifest"].items()))
    return json.dumps({digest: paths}).encode()[1:-1]


@pytest.mark.parametrize("change", UNUSUAL.values(), ids=list(UNUSUAL))
def test_unusual_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Change) -> None:
    """Problems, counts, advice and order do not depend on how objects are read."""
    (tmp_path / "in5").mkdir()
    root = filled(tmp_path / "root")
    change(root)
    together = []
    for implementation in implementations_to_test():
        with use(implementation):
            together.append(everything(root))
    visit_all(monkeypatch)
    alone = everything(root)
    for one in together:
        assert one == alone


def test_a_later_version_than_the_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, implementation: Implementation
) -> None:
    """Objects of a later version of OCFL than their root are reported."""
    root = filled(tmp_path / "root")
    (tmp_path / "root" / "0=ocfl_1.1").unlink()
    (tmp_path / "root" / "0=ocfl_1.0").write_bytes(b"ocfl_1.0\n")
    root.read_declaration()
    together = everything(root)
    assert [problem.kind for problem in together[0][0]] == ["version-later"] * 5
    visit_all(monkeypatch)
    assert everything(root) == together


def test_identifiers_at_the_end_of_the_beginning(tmp_path: Path, implementation: Implementation) -> None:
    """An identifier is found beyond the first bytes of an inventory, which a listing reads."""
    root = filled(tmp_path / "root")
    for blanks in range(HEAD - 30, HEAD + 3):
        (path_of(root) / "inventory.json").write_bytes(b" " * blanks + b'{"id": "info:b/3"}')
        assert [record.id for record in root.objects()] == sorted(IDENTIFIERS, key=root.path_for)


def test_deep_content(tmp_path: Path, implementation: Implementation) -> None:
    root = filled(tmp_path / "root")
    root.put("info:deep", source(tmp_path / "deep", {"d/" * 100 + "f": b"f"}))
    assert root.check(digests=True).problems == []
