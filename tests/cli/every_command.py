"""A call of every command that succeeds, and the files that these calls read."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click

from pressmark.cli import main

from .conftest import COMMAND, environment

COMMANDS: dict[str, list[str]] = {
    "map": ["map", "0003", "ids.txt", "-o", "out.txt"],
    "map table": ["map", "0003", "table.csv", "--column", "id", "-o", "out.csv"],
    "unmap": ["unmap", "0002", "ids.txt", "-o", "out.txt"],
    "layouts": ["layouts"],
    "compare": ["compare", "ids.txt"],
    "completion": ["completion", "bash"],
    "hash": ["hash", "files", "-o", "out.sums"],
    "verify": ["verify", "SHA512SUMS"],
    "create": ["bag", "create", "files", "-o", "new"],
    "create archive": ["bag", "create", "files", "-o", "new.tar"],
    "create in place": ["bag", "create", "plain"],
    "validate": ["bag", "validate", "bag"],
    "validate archive": ["bag", "validate", "bag.tar"],
    "bag update": ["bag", "update", "bag", "--add-algorithm", "md5"],
    "complete": ["bag", "complete", "bag"],
    "revert": ["bag", "revert", "bag", "-o", "bag.sha512"],
    "create table": ["bag", "create", "--table", "items.csv", "-o", "bags"],
    "info": ["bag", "info", "bag"],
    "pack": ["bag", "pack", "bag", "-o", "packed.tar"],
    "unpack": ["bag", "unpack", "bag.tar", "-o", "unpacked"],
    "init": ["store", "init", "vitro", "vitro"],
    "declare": ["store", "declare", "uploads", "http://example.org/b"],
    "put": ["store", "put", "root", "b:1", "files"],
    "put list": ["store", "put", "pairtree", "--from", "list.tsv"],
    "ls": ["store", "ls", "root"],
    "ls files": ["store", "ls", "root", "a:1"],
    "check": ["store", "check", "root", "--digests"],
    "check pairtree": ["store", "check", "pairtree"],
    "report": ["store", "report", "pairtree", "--json"],
    "get": ["store", "get", "root", "a:1", "copy"],
    "cat": ["store", "cat", "root", "a:1", "f1"],
    "log": ["store", "log", "root", "a:1"],
    "diff": ["store", "diff", "root", "a:1"],
    "store update": ["store", "update", "root", "a:1", "--remove", "f2"],
    "restore": ["store", "restore", "root", "c:1", "--version", "v1"],
    "upgrade": ["store", "upgrade", "root", "--algorithm", "sha256"],
    "rm": ["store", "rm", "pairtree", "a:1"],
    "repair": ["store", "repair", "root"],
    "migrate": ["migrate", "pairtree", "migrated", "--to", "ocfl", "--layout", "0003"],
}


def make_files(folder: Path) -> None:
    """Write everything that the calls read."""
    (folder / "files" / "sub").mkdir(parents=True)
    for number in range(12):
        (folder / "files" / f"f{number}").write_bytes(b"file %d\n" % number * 999 * number)
    (folder / "files" / "sub" / "x").write_bytes(b"x")
    shutil.copytree(folder / "files", folder / "plain")
    identifiers = [f"ark:/1/{number}" for number in range(2000)]
    (folder / "ids.txt").write_text("".join(f"{one}\n" for one in identifiers))
    (folder / "table.csv").write_text("id,n\n" + "".join(f"{one},1\n" for one in identifiers))
    (folder / "items.csv").write_text("path,Title\nfiles,A\nfiles/sub,B\n")
    (folder / "list.tsv").write_text("".join(f"id:{number}\tfiles\n" for number in range(5)))
    for arguments in (
        ["hash", "files", "-o", "SHA512SUMS"],
        ["bag", "create", "files", "-o", "bag"],
        ["bag", "pack", "bag", "-o", "bag.tar"],
        ["store", "init", "ocfl", "root", "--layout", "0003"],
        ["store", "put", "root", "a:1", "files"],
        ["store", "put", "root", "c:1", "files"],
        ["store", "put", "root", "c:1", "files/f1", "--replace"],
        ["store", "init", "pairtree", "pairtree"],
        ["store", "put", "pairtree", "a:1", "files"],
        ["store", "init", "vitro", "uploads", "--namespace", "http://example.org/a"],
    ):
        subprocess.run([*COMMAND, *arguments], cwd=folder, env=environment(), check=True, capture_output=True)


def options_of(name: str) -> Iterator[click.Option]:
    """Yield the options of the command in a call."""
    command: click.Command = main
    context = click.Context(main)
    for word in COMMANDS[name]:
        if not isinstance(command, click.Group):
            break
        found = command.get_command(context, word)
        assert found is not None
        command = found
    yield from (parameter for parameter in command.params if isinstance(parameter, click.Option))
