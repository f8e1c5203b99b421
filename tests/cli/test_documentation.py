"""Help and documents: complete, fresh, and with examples that work."""

from __future__ import annotations

import gzip
import importlib.util
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from pressmark.cli import main

from .conftest import COMMAND, environment

PYARROW = importlib.util.find_spec("pyarrow") is not None
ROOT = Path(__file__).resolve().parent.parent.parent


def commands() -> Iterator[tuple[str, click.Command]]:
    context = click.Context(main, info_name="pressmark")
    yield "pressmark", main
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        assert command is not None
        yield f"pressmark {name}", command


COMMANDS = dict(commands())


@pytest.mark.parametrize("path", COMMANDS)
def test_everything_has_help(path: str) -> None:
    """Every command says what it does, what its exit status means and how it is used; every option has help."""
    command = COMMANDS[path]
    assert command.help
    assert command.get_short_help_str(80)
    assert command.epilog
    assert "Exit status:" in command.epilog
    assert "Examples:" in command.epilog
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name


def test_documents_are_fresh() -> None:
    """docs/commands.md and docs/layouts.md say what the code says."""
    script = ROOT / "ci" / "docs"
    if not script.exists():
        pytest.skip("the tests stand apart from the documents")
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, env=environment(), check=False)
    assert (done.stderr, done.returncode) == (b"", 0)


EXAMPLES = [
    line.strip()
    for command in COMMANDS.values()
    for line in (command.epilog or "").partition("Examples:\n")[2].splitlines()
    if line.strip()
]


@pytest.mark.skipif(os.name != "posix", reason="the examples are for a POSIX shell")
def test_examples_work(tmp_path: Path) -> None:
    """Every example of every help text succeeds, without a word on stderr, on files called as in it."""
    assert len(EXAMPLES) > 10
    script = tmp_path / "bin" / "pressmark"
    script.parent.mkdir()
    quoted = " ".join(f"'{word}'" for word in COMMAND)
    script.write_text(f'#!/bin/sh\nexec {quoted} "$@"\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "identifiers.txt").write_text("a:1\nb:2\n")
    (tmp_path / "table.csv").write_text("id,title\na:1,one\n")
    (tmp_path / "table.tsv").write_text("ppath\ttitle\na+/1\tone\n")
    (tmp_path / "hathi_full.txt.gz").write_bytes(gzip.compress(b'mdp.1\tallow\t"one"\n'))
    if PYARROW:
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.table({"id": ["a:1"]}), tmp_path / "table.parquet")
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "one").write_text("1")
    (tmp_path / "config.json").write_text('{"extensionName": "0003-hash-and-id-n-tuple-storage-layout"}')
    variables = {**environment(), "PATH": f"{script.parent}{os.pathsep}{os.environ['PATH']}"}
    for example in EXAMPLES:
        if ".parquet" in example and not PYARROW:
            continue
        # What each layout's example finds in paths.txt must be its own.
        if "paths.txt" in example and "unmap" in example:
            (tmp_path / "paths.txt").write_text("a=u003A1\n" if "0011" in example else "a+/1\n")
        done = subprocess.run(
            ["sh", "-ec", example], capture_output=True, cwd=tmp_path, env=variables, timeout=60, check=False
        )
        assert (example, done.stderr, done.returncode) == (example, b"", 0)
        assert done.stdout or "-o " in example, example
