"""Stores with many kinds of objects, and their numbers, counted from the files on the disk by a script of its own."""

from __future__ import annotations

import datetime
import json
import os
import random
import re
import tarfile
import time
import zipfile
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from pressmark.bagit import create, create_archive
from pressmark.stores import OcflRoot
from pressmark.stores.registry import store_class
from support.trees import write

#: Kinds of stores, and whether bags and storage roots have the dates of their objects.
CASES = ("ocfl", "pairtree", "vitro", "bags")
USER = {"name": "Ann", "address": "mailto:ann@example.org"}
NAMES = (
    "a.tif",
    "b.TIFF",
    "sub/c.tif",
    "d.tar.gz",
    "sub/.profile",
    "readme",
    "e.2",
    "f.jp2",
    "g.x" + "y" * 9,
    "h.longestends",
)
SIZES = (0, 1, 7, 999, 1000, 1001, 9_999, 10_000, 123_456)


class Counted(NamedTuple):
    """An object.

    :ivar files: of the newest version: name and size
    :ivar stored: month and size of each stored file; the month is empty if unknown
    :ivar first: its first month
    :ivar versions: their number; 0 without versions
    """

    name: str
    files: list[tuple[str, int]]
    stored: list[tuple[str, int]]
    first: str
    dates: str
    versions: int = 0


# --- stores -----------------------------------------------------------------------------------------------------------


def moment(numbers: random.Random) -> datetime.date:
    return datetime.date(numbers.choice((1999, 2019, 2024, 2025)), numbers.randint(1, 12), numbers.randint(1, 28))


def some_files(numbers: random.Random) -> dict[str, bytes]:
    """Return some files; some have the same content."""
    names = numbers.sample(NAMES, numbers.randint(1, 6))
    return {name: numbers.choice((b"x", b"y")) * numbers.choice(SIZES) for name in names}


def make_store(kind: str, path: Path, seed: int, objects: int = 12) -> Path:
    """Create a store with objects of several sizes, formats, dates and numbers of versions."""
    numbers = random.Random(seed)
    options = {"ocfl": {"layout": "0004", "durable": False, "user": USER}, "bags": {}}.get(kind, {"durable": False})
    store = store_class(kind).create(path, **options)
    for number in range(objects):
        identifier = f"urn:{kind}:{number}"
        files = some_files(numbers)
        if isinstance(store, OcflRoot):
            store.put(identifier, files, created=f"{moment(numbers)}T10:00:00Z")
            for more in range(numbers.choice((0, 0, 0, 1, 2, 6))):
                add = {**some_files(numbers), "version.txt": b"%d" % more}
                kept = set(store.get(identifier).digests)
                remove = [name for name in sorted(kept) if name not in add and numbers.random() < 0.3]
                store.update(identifier, add=add, remove=remove, created=f"{moment(numbers)}T10:00:00+02:00")
        elif kind == "bags":
            _make_bag(path, number, files, numbers)
        else:
            some = dict([*files.items()][:1]) if kind == "vitro" else files
            store.put(identifier, {name.rpartition("/")[2] if kind == "vitro" else name: some[name] for name in some})
    if kind in ("pairtree", "vitro", "bags"):
        for file in sorted(one for one in path.rglob("*") if one.is_file()):
            when = time.mktime(moment(numbers).timetuple())
            os.utime(file, (when, when))
    return path


def _make_bag(path: Path, number: int, files: dict[str, bytes], numbers: random.Random) -> None:
    source = path.parent / f"{path.name}-{number}"
    write(source, files)
    date = moment(numbers)
    ending = ("", "", ".tar", ".zip", ".tar.gz")[number % 5]
    if ending:
        create_archive(source, path / f"bag-{number}{ending}", {}, date=date)
        return
    bag = path / f"bag-{number}"
    create(source, bag, {}, date=date)
    if number == 0:
        bag_info = bag / "bag-info.txt"
        text = bag_info.read_text()
        (bag / "tagmanifest-sha512.txt").unlink()  # a bag needs none
        bag_info.write_text("".join(line for line in text.splitlines(True) if not line.startswith("Bagging-Date")))


# --- counting ---------------------------------------------------------------------------------------------------------


def below(folder: Path) -> Iterator[tuple[str, Path]]:
    for above, _folders, names in os.walk(folder):
        for name in names:
            yield os.path.relpath(os.path.join(above, name), folder), Path(above, name)


def month_written(file: Path) -> str:
    return time.strftime("%Y-%m", time.gmtime(file.stat().st_mtime))


def count_objects(kind: str, root: Path) -> Iterator[Counted | None]:
    """Yield the objects of a store; :data:`None` for one whose inventory is broken."""
    return {"ocfl": _ocfl_objects, "pairtree": _pairtree_objects, "vitro": _vitro_objects, "bags": _bags}[kind](root)


def _ocfl_objects(root: Path) -> Iterator[Counted | None]:
    for declaration in root.rglob("0=ocfl_object_*"):
        top = declaration.parent
        try:
            inventory = json.loads((top / "inventory.json").read_text())
        except (ValueError, OSError):
            yield None
            continue
        versions, manifest = inventory["versions"], inventory["manifest"]
        files = []
        for digest, names in versions[inventory["head"]]["state"].items():
            content = top / manifest[digest][0]
            if content.exists():
                files += [(name, content.stat().st_size) for name in names]
        stored = []
        for paths in manifest.values():
            for path in filter(lambda one: (top / one).exists(), paths):
                stored.append((versions[path.split("/")[0]]["created"][:7], (top / path).stat().st_size))
        first = versions["v1"]["created"][:7]
        yield Counted(inventory["id"], files, stored, first, "versions", len(versions))


def _dated(name: str, files: list[tuple[str, Path]], month: str = "") -> Counted:
    stored = [(month or month_written(path), path.stat().st_size) for _name, path in files]
    sizes = [(one, path.stat().st_size) for one, path in files]
    return Counted(name, sizes, stored, min(stored)[0], "bagging-date" if month else "modified")


def _pairtree_objects(root: Path) -> Iterator[Counted]:
    objects: dict[str, list[tuple[str, Path]]] = {}
    for path, file in below(root / "pairtree_root"):
        parts = path.split("/")
        depth = next(number for number, part in enumerate(parts) if len(part) > 2)
        identifier = "".join(parts[:depth]).replace("+", ":")
        objects.setdefault(identifier, []).append(("/".join(parts[depth + 1 :]), file))
    for identifier, files in objects.items():
        yield _dated(identifier, files)


def _vitro_objects(root: Path) -> Iterator[Counted]:
    for path, file in below(root / "file_storage_root"):
        yield _dated(path.rpartition("/")[0].replace("/", "").replace("+", ":"), [(file.name, file)])


def _bags(root: Path) -> Iterator[Counted]:
    for top in root.iterdir():
        if top.name.startswith("."):
            continue
        files = [*below(top / "data")] if top.is_dir() else [(top.name, top)]
        yield _dated(top.name.split(".")[0], files, bagging_month(top))


def bagging_month(bag: Path) -> str:
    if bag.is_dir():
        text = (bag / "bag-info.txt").read_bytes()
    elif bag.suffix == ".zip":
        with zipfile.ZipFile(bag) as archive:
            text = archive.read(next(one for one in archive.namelist() if one.endswith("/bag-info.txt")))
    else:
        with tarfile.open(bag) as tar:
            member = tar.extractfile(next(one for one in tar if one.name.endswith("/bag-info.txt")))
            assert member is not None
            text = member.read()
    found = re.search(rb"^Bagging-Date: (\d{4}-\d\d)", text, re.MULTILINE)
    return found[1].decode() if found else ""


def ending(name: str) -> str | None:
    before, _, end = name.rpartition("/")[2].rpartition(".")
    is_one = before and 1 <= len(end) <= 10 and end.isalnum() and not end.isdigit()
    return end.lower() if is_one else None


def numbers_of(objects: list[Counted | None]) -> dict[str, Any]:
    """Return what the report must say of these objects, as its JSON."""
    found = [one for one in objects if one is not None]
    files = [(name, size) for one in found for name, size in one.files]
    stored = [(month, size) for one in found for month, size in one.stored]
    totals = [sum(size for _name, size in one.files) for one in found]
    months = {month for month, _size in stored} | {one.first for one in found}
    endings = Counter(ending(name) for name, _size in files)
    return {
        "objects": len(objects),
        "unreadable": objects.count(None),
        "files": len(files),
        "bytes": sum(totals),
        "stored": {"files": len(stored), "bytes": sum(size for _month, size in stored)},
        "growth": [
            {
                "month": month,
                "objects": sum(one.first == month for one in found),
                "files": sum(one == month for one, _size in stored),
                "bytes": sum(size for one, size in stored if one == month),
            }
            for month in sorted(months)
        ],
        "dates": dict(sorted(Counter(one.dates for one in found).items())),
        "formats": [
            {"ending": one, "files": count, "bytes": sum(size for name, size in files if ending(name) == one)}
            for one, count in sorted(endings.items(), key=lambda item: (-item[1], item[0] or ""))
        ],
        "sizes": _sizes([size for _name, size in files], totals),
        "versions": sum(one.versions for one in found),
        "versions_per_object": _versions([one.versions for one in found if one.versions]),
    }


def _sizes(files: list[int], objects: list[int]) -> list[dict[str, Any]]:
    ends = [0, 1, *(10**power for power in range(3, 13))]
    classes: list[tuple[int, int | None]] = [*pairwise(ends), (ends[-1], None)]
    rows = []
    for first, end in classes:
        of_files, of_objects = ([one for one in some if first <= one < (end or one + 1)] for some in (files, objects))
        row = {"from": first, "below": end, "files": len(of_files), "file_bytes": sum(of_files)}
        rows.append({**row, "objects": len(of_objects), "object_bytes": sum(of_objects)})
    while rows and not rows[-1]["files"] + rows[-1]["objects"]:
        rows.pop()
    return rows


def _versions(numbers: list[int]) -> list[dict[str, Any]]:
    classes = [(1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, 10), (11, 20), (21, 50), (51, 100), (101, None)]
    rows = [
        {"from": first, "to": last, "objects": sum(first <= one <= (last or one) for one in numbers)}
        for first, last in classes
    ]
    return [row for row in rows if row["objects"]]
