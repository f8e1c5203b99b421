"""Every file and directory of a store made unreadable in turn, and the store checked by an unprivileged user.

    python every_denial.py KIND FOLDER

Prints a JSON list of the unreadable paths for which a check reported no error at, above or below the path. If run as
root, this gives FOLDER to an unprivileged user and becomes that user.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

import pressmark
from pressmark import stores
from pressmark.errors import PressmarkError
from pressmark.reports import Problem
from pressmark.stores.registry import store_class

NOBODY = 65534
# Unreadable files and directories, and directories without search or without list permission.
CLOSED = {True: (0, 0o444, 0o333), False: (0,)}
OPTIONS = {"pairtree": {"prefix": "x"}, "vitro": {"namespaces": ["http://a/"]}}


def build(kind: str, folder: Path) -> Path:
    """Create a store with every kind of file that it can contain, and return its root."""
    source = folder / "source"
    (source / "sub").mkdir(parents=True)
    (source / "one").write_bytes(b"1")
    (source / "sub" / "two").write_bytes(b"2")
    base = folder / "store"
    layout = pressmark.layout("0004") if kind == "ocfl" else None
    store = store_class(kind).create(base, layout, **OPTIONS.get(kind, {}))
    for identifier in ("xabcd", "xabcdef"):
        store.put(identifier, source / "one" if kind == "vitro" else source)
    paths = [record.path for record in store.objects()]
    if kind == "pairtree":
        for name in ("ba/re/file.txt", "sp/li/file.txt", "sp/li/dir/sub/file.txt"):
            (base / "pairtree_root" / name).parent.mkdir(parents=True, exist_ok=True)
            (base / "pairtree_root" / name).write_bytes(b"x")
    elif kind == "ocfl":
        (base / "extensions" / "0007-n-tuple-omit-prefix-storage-layout").mkdir()
        (base / "extensions" / "0007-n-tuple-omit-prefix-storage-layout" / "config.json").write_bytes(b"{}")
        for path in paths:
            (base / path / "logs").mkdir()
            (base / path / "logs" / "log.txt").write_bytes(b"x")
            (base / path / "extensions" / "0005-mutable-head" / "sub").mkdir(parents=True)
            (base / path / "extensions" / "0005-mutable-head" / "sub" / "file").write_bytes(b"x")
    elif kind == "bags":
        with tarfile.open(folder / "serialised.tar", "w") as archive:
            archive.add(base / paths[0], "serialised")
        shutil.move(folder / "serialised.tar", base / "serialised.tar")
    return base


def errors(kind: str, base: Path, digests: bool) -> set[tuple[str, str]]:
    """Return the errors of a check: their kinds and relative paths."""

    def where(found: Problem) -> str:
        return os.fsdecode(found.path).rstrip("/")

    try:
        report = stores.open(base, kind).check(digests=digests)
    except PressmarkError as error:
        return {("error", ""), ("error", str(error))}
    return {(found.kind, where(found)) for found in report.problems if found.severity == "error"}


def drop_rights(folder: Path) -> None:
    """Drop privileges and own everything below ``folder``."""
    if os.geteuid() == 0:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)


def main(kind: str, folder: Path) -> None:
    base = build(kind, folder)
    errors(kind, base, True)  # import modules now: later, they may be readable only by root
    drop_rights(folder)
    tempfile.tempdir = os.fspath(folder)
    before = {digests: errors(kind, base, digests) for digests in (False, True)}
    missed = []
    for path in (base, *sorted(base.rglob("*"))):
        mode = path.stat().st_mode & 0o777
        name = "" if path == base else os.fspath(path.relative_to(base))
        for closed in CLOSED[path.is_dir()]:
            if name == "" and closed == 0o444 and kind == "bags":
                continue
            path.chmod(closed)
            for digests in (False, True):
                found = errors(kind, base, digests) - before[digests]
                near = [one for _kind, one in found if one == name or f"{one}/".startswith(f"{name}/") or one == ""]
                if not near:
                    missed.append([name, oct(closed), digests, sorted(found)])
            path.chmod(mode)
    print(json.dumps(missed))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
