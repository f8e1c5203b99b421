"""Damaged objects: the check agrees with a naive one, whether an object is read by itself or with others."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from pressmark.reports import Problem
from support.effort import LONG, stride
from support.implementations import implementations_to_test

from .both_ways import READS, all_verdicts
from .naive import is_valid
from .samples import CREATED, create, save, source

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX files")

Damage = Callable[[Path], object]
# The number of pairs of damages between two that a short run tries; no divisor of the number of damages.
PAIRS = 179
UNKNOWN, OTHER = "0" * 128, "f" * 128


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An object of two versions with fixity, in a directory of its own."""
    top = tmp_path_factory.mktemp("whole")
    root = create(top / "root", "0002")
    root.put("info:x", source(top / "one"), created=CREATED, fixity={"md5": {}})
    root.put("info:x", source(top / "two", {"a.txt": b"three", "same.txt": b"one"}), replace=True, created=CREATED)
    return top / "root" / root.path_for("info:x")


# --- damages ----------------------------------------------------------------------------------------------------------


def write(name: str, data: bytes = b"x") -> Damage:
    def damage(folder: Path) -> None:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)

    return damage


def remove(name: str) -> Damage:
    return lambda folder: shutil.rmtree(folder / name) if (folder / name).is_dir() else (folder / name).unlink()


def make(name: str) -> Damage:
    return lambda folder: (folder / name).mkdir(parents=True)


def move(name: str, to: str) -> Damage:
    return lambda folder: (folder / name).rename(folder / to)


def edit(name: str, change: Callable[[bytes], bytes]) -> Damage:
    return lambda folder: (folder / name).write_bytes(change((folder / name).read_bytes()))


def link(name: str, to: str) -> Damage:
    def damage(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(to)

    return damage


def hard_link(folder: Path) -> None:
    os.link(folder / "v1/content/a.txt", folder / "v1/content/linked")


def swap(one: str, other: str) -> Damage:
    def damage(folder: Path) -> None:
        first, second = (folder / one).read_bytes(), (folder / other).read_bytes()
        (folder / one).write_bytes(second)
        (folder / other).write_bytes(first)

    return damage


def inventory(change: Callable[[dict[str, Any]], object], *, version: str | None = None) -> Damage:
    """Change the inventory and its copy, or that of a version, with right sidecars."""

    def damage(folder: Path) -> None:
        above = folder if version is None else folder / version
        document = json.loads((above / "inventory.json").read_bytes())
        change(document)
        algorithm = document.get("digestAlgorithm")
        save(above, document, algorithm if algorithm == "sha256" else "sha512", "v2" if version is None else None)

    return damage


def text(change: Callable[[bytes], bytes]) -> Damage:
    """Change the bytes of the inventory and its copy, with right sidecars."""
    return lambda folder: save(folder, change((folder / "inventory.json").read_bytes()), head="v2")


def state(document: dict[str, Any], version: str = "v2") -> dict[str, Any]:
    found: dict[str, Any] = document["versions"][version]["state"]
    return found


def first(block: dict[str, Any]) -> Any:
    return next(iter(block.values()))


def renamed(name: str, to: str) -> Callable[[dict[str, Any]], object]:
    return lambda document: document.update({to: document.pop(name)})


def upper(block: dict[str, Any]) -> None:
    items = {digest.upper(): paths for digest, paths in block.items()}
    block.clear()
    block.update(items)


def all_upper(document: dict[str, Any]) -> None:
    for block in (document["manifest"], *(one["state"] for one in document["versions"].values())):
        upper(block)


def exchanged(block: dict[str, Any]) -> None:
    one, other = [*block][:2]
    block[one], block[other] = block[other], block[one]


VALUES: dict[str, tuple[tuple[str, ...], list[Any]]] = {
    "id": (("id",), ["", "other", 1, None, ["x"]]),
    "type": (("type",), ["x", "https://ocfl.io/1.0/spec/#inventory", "https://ocfl.io/1.7/spec/#inventory", 1]),
    "algorithm": (("digestAlgorithm",), ["sha256", "md5", 1]),
    "head": (("head",), ["v1", "v3", 2, "v02"]),
    "content directory": (("contentDirectory",), ["content", "other", "", ".", "a/b", 1]),
    "manifest": (("manifest",), [{}, [], None]),
    "versions": (("versions",), [{}, [], 1]),
    "version": (("versions", "v1"), [{}, [], "x"]),
    "state": (("versions", "v2", "state"), [{}, [], {UNKNOWN: ["a"]}]),
    "created": (
        ("versions", "v1", "created"),
        ["", "2026-02-30T00:00:00Z", "2026-01-02", 1, "2026-01-02T03:04:05+01:00"],
    ),
    "message": (("versions", "v2", "message"), ["", 1, None]),
    "user": (("versions", "v2", "user"), [{}, {"name": ""}, {"name": "n"}, {"name": "n", "x": "y"}, "n"]),
    "address": (("versions", "v2", "user", "address"), ["x", 1, ""]),
    "fixity": (("fixity",), [{}, [], {"md5": []}, {"x": {}}, {"md5": {"0" * 32: ["v1/content/a.txt"]}}]),
    "more": (("more",), [""]),
}
MISSING = [
    *(("id",), ("type",), ("digestAlgorithm",), ("head",), ("manifest",), ("versions",), ("versions", "v1")),
    *(
        ("versions", "v2", "state"),
        ("versions", "v2", "created"),
        ("versions", "v2", "user"),
        ("versions", "v2", "message"),
    ),
]


def set_value(path: tuple[str, ...], value: Any) -> Callable[[dict[str, Any]], object]:
    def change(document: dict[str, Any]) -> None:
        for key in path[:-1]:
            document = document[key]
        document[path[-1]] = value

    return change


def delete(path: tuple[str, ...]) -> Callable[[dict[str, Any]], object]:
    def change(document: dict[str, Any]) -> None:
        for key in path[:-1]:
            document = document[key]
        del document[path[-1]]

    return change


BLOCKS: dict[str, Callable[[dict[str, Any]], object]] = {
    "a path twice": lambda d: first(d["manifest"]).append("v1/content/a.txt"),
    "a path of another": lambda d: first(d["manifest"]).append("v2/content/a.txt"),
    "a path that is not there": lambda d: first(d["manifest"]).append("v1/content/z"),
    "a path elsewhere": lambda d: first(d["manifest"]).append("v1/inventory.json"),
    "a path in no version": lambda d: first(d["manifest"]).append("v9/content/z"),
    "a path with dots": lambda d: first(d["manifest"]).append("v1/content/../content/z"),
    "a path as directory": lambda d: first(d["manifest"]).append("v1/content/a.txt/z"),
    "a number as path": lambda d: first(d["manifest"]).append(1),
    "a list as path": lambda d: first(d["manifest"]).append([]),
    "no paths": lambda d: d["manifest"].update({UNKNOWN: []}),
    "paths that are no list": lambda d: d["manifest"].update({UNKNOWN: "v1/content/a.txt"}),
    "a digest too many": lambda d: d["manifest"].update({UNKNOWN: ["v1/content/z"]}),
    "a digest too few": lambda d: d["manifest"].popitem(),
    "another digest": lambda d: d["manifest"].update({OTHER: d["manifest"].popitem()[1]}),
    "a short digest": lambda d: d["manifest"].update({"0" * 127: d["manifest"].popitem()[1]}),
    "digests exchanged": lambda d: exchanged(d["manifest"]),
    "upper case": all_upper,
    "upper case in the manifest": lambda d: upper(d["manifest"]),
    "a digest in two cases": lambda d: [
        d["manifest"].update({"a" * 128: ["v1/content/y"], "A" * 128: ["v1/content/z"]})
    ],
    "state: a path twice": lambda d: first(state(d)).append("a.txt"),
    "state: another path": lambda d: first(state(d)).append("other"),
    "state: a path with dots": lambda d: first(state(d)).append("../x"),
    "state: a path with a slash": lambda d: first(state(d)).append("/x"),
    "state: a path as directory": lambda d: first(state(d)).append("a.txt/x"),
    "state: a path in a directory": lambda d: first(state(d)).append("b/c/d"),
    "state: a number as path": lambda d: first(state(d)).append(1),
    "state: an unknown digest": lambda d: state(d).update({UNKNOWN: ["z"]}),
    "state: no paths": lambda d: state(d).update({next(iter(state(d))): []}),
    "state: a digest too few": lambda d: state(d).popitem(),
    "state: exchanged": lambda d: exchanged(state(d, "v1")),
    "state: upper case": lambda d: upper(state(d, "v1")),
    "versions renamed": lambda d: d["versions"].update(v02=d["versions"].pop("v2")),
    "versions padded": lambda d: [
        d.update(head="v02", versions={"v01": d["versions"]["v1"], "v02": d["versions"]["v2"]})
    ],
    "a version between": lambda d: d["versions"].update(v4=d["versions"]["v2"]),
    "a third version": lambda d: [d.update(head="v3"), d["versions"].update(v3=d["versions"]["v2"])],
    "a version with a name of its own": lambda d: d["versions"].update(first=d["versions"]["v1"]),
    "fixity of no file": lambda d: d["fixity"]["md5"].update({"0" * 32: ["v1/content/z"]}),
    "fixity by the algorithm of the manifest": lambda d: d["fixity"].update(sha512={UNKNOWN: ["v1/content/a.txt"]}),
    "fixity of an unknown algorithm": lambda d: d["fixity"].update(crc={"0": ["v1/content/a.txt"]}),
    "fixity: a short digest": lambda d: d["fixity"]["md5"].update({"0" * 31: ["v1/content/a.txt"]}),
}
TEXTS: dict[str, Callable[[bytes], bytes]] = {
    "no JSON": lambda data: data[:-3],
    "text after the end": lambda data: data + b"x",
    "an array": lambda data: b"[" + data + b"]",
    "bytes that are not UTF-8": lambda data: data.replace(b"info:x", b"info:\xff"),
    "a byte order mark": lambda data: b"\xef\xbb\xbf" + data,
    "NaN": lambda data: data.replace(b'"head"', b'"more": NaN, "head"', 1),
    "a repeated key": lambda data: data.replace(b'"head"', b'"head": "v2", "head"', 1),
    "a surrogate": lambda data: data.replace(b"info:x", b"info:x\\ud800"),
    "an escape": lambda data: data.replace(b"info:x", b"info:\\u0078"),
    "a control character": lambda data: data.replace(b"info:x", b"info:\x01"),
    "an empty file": lambda _data: b"",
    "deep brackets": lambda _data: b"[" * 100_000,
    "other white space": lambda data: json.dumps(json.loads(data), separators=(",", ":")).encode(),
}
SIDECARS: dict[str, Callable[[bytes], bytes]] = {
    "another digest": lambda data: UNKNOWN.encode() + data[128:],
    "upper case": lambda data: data[:128].upper() + data[128:],
    "a tab": lambda data: data.replace(b" ", b"\t "),
    "no space": lambda data: data.replace(b" ", b""),
    "no line feed": lambda data: data.rstrip(),
    "a carriage return": lambda data: data.rstrip() + b"\r\n",
    "another name": lambda data: data.replace(b"inventory", b"inventorx"),
    "nothing": lambda _data: b"",
}
FILES: dict[str, Damage] = {
    "nothing": lambda folder: None,
    "a file in the root": write("notes.txt"),
    "a directory in the root": write("data/notes.txt"),
    "an empty directory in the root": make("data"),
    "a sidecar too many": write("inventory.json.sha256"),
    "a file in a version": write("v1/notes.txt"),
    "a directory in a version": write("v1/other/notes.txt"),
    "a link in a directory of a version": lambda folder: [make("v1/other")(folder), link("v1/other/x", "y")(folder)],
    "a sidecar too many in a version": write("v1/inventory.json.sha256"),
    "a version too many": write("v3/content/x"),
    "an empty version too many": make("v3"),
    "a version of another name": move("v2", "v02"),
    "no first version": remove("v1"),
    "no newest version": remove("v2"),
    "no inventory": remove("inventory.json"),
    "no sidecar": remove("inventory.json.sha512"),
    "no inventory in v1": remove("v1/inventory.json"),
    "no sidecar in v1": remove("v1/inventory.json.sha512"),
    "no inventory in v2": remove("v2/inventory.json"),
    "no sidecar in v2": remove("v2/inventory.json.sha512"),
    "an unlisted version": lambda folder: [
        save(folder, json.loads((folder / "v1/inventory.json").read_bytes()), head=None),
    ],
    "an old sidecar": lambda folder: shutil.copy(folder / "v1/inventory.json.sha512", folder / "inventory.json.sha512"),
    "inventories exchanged": swap("inventory.json", "v1/inventory.json"),
    "a declaration with another content": write("0=ocfl_object_1.1", b"ocfl_object_1.1"),
    "an earlier declaration": move("0=ocfl_object_1.1", "0=ocfl_object_1.0"),
    "two declarations": write("0=ocfl_object_1.0", b"ocfl_object_1.0\n"),
    "an unknown declaration": write("0=ocfl_object_2.0", b"ocfl_object_2.0\n"),
    "extensions": write("extensions/0001-x/config.json"),
    "a file in extensions": write("extensions/notes.txt"),
    "a link in extensions": lambda folder: [make("extensions/x")(folder), link("extensions/x/y", "z")(folder)],
    "logs": write("logs/log.txt"),
    "no logs": make("logs"),
    "content that differs": edit("v1/content/a.txt", lambda data: data + b"x"),
    "content that is empty": write("v2/content/a.txt", b""),
    "contents exchanged": swap("v1/content/a.txt", "v2/content/a.txt"),
    "content that is missing": remove("v1/content/a.txt"),
    "content of the newest version that is missing": remove("v2/content/a.txt"),
    "content too much": write("v1/content/extra"),
    "content too much below": write("v2/content/deep/er/extra"),
    "content with another name": move("v1/content/a.txt", "v1/content/A.txt"),
    "content that is not UTF-8": lambda folder: os.rename(
        os.fsencode(folder / "v1/content/a.txt"), os.fsencode(folder / "v1/content") + b"/\xff"
    ),
    "content in another version": move("v1/content/a.txt", "v2/content/b.txt"),
    "no content": remove("v2/content"),
    "an empty directory": make("v1/content/empty"),
    "empty directories": make("v1/content/empty/empty"),
    "a link": link("v1/content/link", "a.txt"),
    "a link for content": link("v1/content/a.txt", "../../inventory.json"),
    "a link for the inventory": link("inventory.json", "v2/inventory.json"),
    "a hard link": hard_link,
    "a hard link to the inventory": lambda folder: os.link(folder / "inventory.json", folder / "v1/content/x"),
    "a named pipe": lambda folder: os.mkfifo(folder / "v1/content/pipe"),
    "a directory for content": lambda folder: [remove("v1/content/a.txt")(folder), write("v1/content/a.txt/b")(folder)],
    "a directory for the inventory": lambda folder: [remove("inventory.json")(folder), make("inventory.json")(folder)],
    "an object inside": lambda folder: shutil.copytree(folder, folder / "inner"),
}


def damages() -> dict[str, Damage]:
    found = dict(FILES)
    for name, (path, values) in VALUES.items():
        for value in values:
            found[f"{name}: {str(value)[:40]!r}"] = inventory(set_value(path, value))
    for path in MISSING:
        found[f"no {'/'.join(path)}"] = inventory(delete(path))
    for name, change in BLOCKS.items():
        found[name] = inventory(change)
        if "v2" not in name:
            found[f"v1: {name}"] = inventory(change, version="v1")
    for name, made in TEXTS.items():
        found[f"text: {name}"] = text(made)
        found[f"v1: {name}"] = edit("v1/inventory.json", made)
    for name, made in SIDECARS.items():
        for directory in ("", "v1/", "v2/"):
            found[f"sidecar of {directory}: {name}"] = edit(f"{directory}inventory.json.sha512", made)
    return found


DAMAGES = damages()


def damaged(whole: Path, folder: Path, names: tuple[str, ...]) -> bool:
    """Copy the object and damage the copy; return False if one damage prevents another."""
    if folder.exists():
        shutil.rmtree(folder)
    shutil.copytree(whole, folder)
    try:
        for name in names:
            DAMAGES[name](folder)
    except (OSError, LookupError, ValueError, AttributeError, TypeError, StopIteration, RecursionError):
        return False
    # A directory without a declaration is no object.
    return any(name.startswith("0=ocfl_object_") for name in os.listdir(folder))


def cases() -> Iterator[tuple[str, ...]]:
    yield from ((name,) for name in DAMAGES)
    for number, pair in enumerate(combinations(DAMAGES, 2)):
        if number % stride(PAIRS) == 0:
            yield pair


def shown(problems: list[Problem]) -> list[str]:
    return [f"{one.kind} {one.path}: {one.message}" for one in problems]


def test_damaged_objects(whole: Path, tmp_path: Path) -> None:
    """An object is valid if it is for a naive check, and has equal problems and advice however it is read."""
    tried = batches = valid = 0
    for names in cases():
        if not damaged(whole, tmp_path / "o", names):
            continue
        tried += 1
        alone, *together = all_verdicts(tmp_path, "o")
        assert alone.is_valid == is_valid(tmp_path / "o"), (names, shown(alone.problems))
        for one in together:
            assert shown(one.problems) == shown(alone.problems), names
            assert one == alone, names
        valid += alone.is_valid
        batches += bool(together)
    assert tried > (5000 if LONG else 350)
    assert batches > 0.95 * tried
    assert 10 < valid < 0.2 * tried
    assert len(together) == len(READS) * len(implementations_to_test())
