"""Objects with hostile identifiers and file names, stores with them, and migrations of one chunk."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pressmark import layout
from pressmark.migrate.entry import Entry
from pressmark.migrate.options import Options
from pressmark.migrate.planning.source import measure
from pressmark.migrate.planning.targets import Targets
from pressmark.migrate.transfer.object_transfer import transfer_chunk
from pressmark.stores import Store
from pressmark.stores.registry import store_class

#: Files of an object: names and bytes.
Files = dict[str, bytes]

IDENTIFIERS = (
    "ark:/13030/xt12t3",
    "what-the-*@?#!^!?",
    "info:fedora/a b",
    "http://example.org/file/n1",
    "\u00e9\u4f8b\U0001f350",
    "e\u0301 decomposed",
    "CON",
    "a",
    "ab",
    "abcd",
    "..",
    "-leading/and/trailing",
    "100% ^20 %41 ~",
    "tab\there",
    "x" * 90,
    "line\u2028separator",
)
#: Names that every kind of store except Vitro accepts.
NAMES = (
    "a.txt",
    "deep/er/and deeper/b",
    ".hidden",
    "-rf",
    "new\nline",
    "back\\slash",
    "percent%20%0A",
    "\u00e9 e\u0301 \u4f8b",
    "data/manifest-sha512.txt",
    "quo\"te'",
    "*?",
    "inventory.json",
    "trailing. ",
)


def objects(count: int = 20) -> dict[str, Files]:
    """Return objects by identifier: hostile names, empty files, equal files, and files larger than a read."""
    found: dict[str, Files] = {}
    for number in range(count):
        base = IDENTIFIERS[number % len(IDENTIFIERS)]
        identifier = base if number < len(IDENTIFIERS) else f"{base}:{number}"
        files: Files = {"same": b"same", "again/same": b"same", "empty": b""}
        files[NAMES[number % len(NAMES)]] = f"{number}".encode() * (number + 1)
        if number % 4 == 3:
            files["large"] = os.urandom(1 << 19)
        found[identifier] = files
    return found


def write(folder: Path, files: Mapping[str, bytes]) -> Path:
    """Write files below a directory."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def make(kind: str, folder: Path, given: Mapping[str, Files], scratch: Path) -> Store:
    """Make a store with these objects."""
    options: dict[str, Any] = {"layout": layout("0004")} if kind == "ocfl" else {}
    if kind in ("pairtree", "vitro"):
        options["durable"] = False
    store = store_class(kind).create(folder, **options)
    if kind == "ocfl":
        store = store_class(kind)(folder, durable=False)
    for number, (identifier, files) in enumerate(given.items()):
        source = write(scratch / f"{kind}-{number}", files)
        store.put(identifier, source)
    return store


def one_file(given: Mapping[str, Files]) -> dict[str, Files]:
    """Return the objects with one file each, with a name that Vitro can store."""
    names = ("a b.txt", "\u00e9.txt", "100%.txt", "-x", "^20", ".b")
    return {
        identifier: {names[number % len(names)]: b"%d" % number * (number + 1)}
        for number, identifier in enumerate(given)
        if max(identifier) <= "\u00ff"  # the last that Vitro can encode
    }


def options(source: Store, to: str, folder: Path, **more: Any) -> Options:
    """Return the options of a migration."""
    if to == "ocfl":
        more.setdefault("layout", layout("0003").config())
    return Options(os.path.abspath(source.root), source.kind, os.path.abspath(folder), to, **more)


def entries(chosen: Options, only: Iterable[str] | None = None) -> list[Entry]:
    """Return a plan: every object under its own identifier."""
    source = chosen.open_source()
    records = [one for one in source.objects() if one.id is not None and (only is None or one.id in only)]
    paths = Targets(chosen).paths([str(one.id) for one in records])
    sizes = [size for size, _names in measure(source, records, chosen)]
    return [
        Entry(
            *(str(one.id), str(one.id), one.path, str(path[0])),
            files=size.files,
            bytes=size.bytes,
            entries=size.entries,
            encapsulation=one.encapsulation,
        )
        for one, path, size in zip(records, paths, sizes, strict=True)
    ]


def migrate(source: Store, to: str, folder: Path, **more: Any) -> tuple[dict[str, Entry], Store]:
    """Migrate all objects of a store, and return the rows by identifier, and the destination."""
    chosen = options(source, to, folder, **more)
    chosen.create_destination()
    rows = transfer_chunk(chosen, entries(chosen))
    return {row.id: row for row in rows}, chosen.open_destination()


def rows_of(work: Path) -> list[Entry]:
    """Return the rows that a run has written to its work folder."""
    files = [path for path in [work / "rows.jsonl", *work.glob("output/*.jsonl")] if path.exists()]
    return [Entry.parse(line) for path in files for line in path.read_bytes().splitlines(keepends=True)]


def held(store: Store) -> dict[str, Files]:
    """Return a store's objects and files: of bags the payload."""
    found: dict[str, Files] = {}
    for record in store.objects():
        assert record.id is not None
        assert record.id not in found
        found[record.id] = {name: Path(path).read_bytes() for name, path in store.locate(record).files()}
    return found


def tree(folder: Path) -> dict[str, bytes | None]:
    """Return everything below a directory."""
    found: dict[str, bytes | None] = {}
    for path in folder.rglob("*"):
        found[os.fspath(path.relative_to(folder))] = path.read_bytes() if path.is_file() else None
    return found


def errors(store: Store) -> list[Any]:
    """Return the problems of a strict check with all digests."""
    return [one for one in store.check(digests=True).problems if one.severity == "error"]
