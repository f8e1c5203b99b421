"""Every code block of README.md and of the site is run, in the order of its page, in an empty directory."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shlex
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

import pytest

from buckets.servers import find_versitygw, user_settings, versitygw
from cli.conftest import COMMAND, environment

from .pages import DOCS, Block, blocks, name_of, pages, prose

pytestmark = [
    pytest.mark.skipif(os.name != "posix" or not DOCS.exists(), reason="the pages are for a POSIX shell"),
    pytest.mark.slow_under_sanitizers,
]

PAGES = {name_of(page): blocks(page) for page in pages()} if DOCS.exists() else {}
RUN = {"sh", "python"}
# The blocks that are not run, and why.
NOT_RUN = [
    ("README.md", "needs a checkout and the network"),
    ("docs/how-to/bags.md", "needs a server"),
    ("docs/how-to/bags.md", "needs a server"),
    ("docs/how-to/dataframes.md", "needs Spark"),
    ("docs/how-to/jobs.md", "needs an interrupted run"),
    ("docs/how-to/jobs.md", "needs mpi4py"),
    ("docs/how-to/jobs.md", "needs a Dask cluster"),
    ("docs/how-to/migrating.md", "needs a Dask cluster"),
    ("docs/how-to/object-storage.md", "needs versitygw"),
    ("docs/how-to/object-storage.md", "needs Amazon S3"),
    ("docs/how-to/own-layout.md", "needs the network"),
    ("docs/index.md", "needs a checkout and the network"),
    ("docs/performance.md", "needs a checkout and the network"),
    ("docs/reference/ocfl-interoperation.md", "needs a checkout, cargo, Go and Maven"),
    ("docs/tutorial.md", "needs a checkout and the network"),
]
# Not a package, but a server of object storage, which runs while the blocks of its page are run.
SERVER = "versitygw"
SESSION = Path(__file__).with_name("python_session.py")
_STATUS = re.compile(r"^(.*\S)\s+# exit status (\d+)$", re.MULTILINE)
# Duration and rates, which are only printed after a second.
_RATE = re.compile(r"(; \d+:\d\d)?(, [\d.,]+ \S+/s)+$", re.MULTILINE)
# A block begins with the directory and the variables that the one before it left.
_SCRIPT = """if [ -e "$PAGE_STATE" ]; then . "$PAGE_STATE"; fi
expect() {{ if [ "$1" != "$2" ]; then echo "exit status $2, not $1: $3"; exit 99; fi; }}
{}
export -p >"$PAGE_STATE"
pwd >"$PAGE_STATE.folder"
"""


def with_status(line: re.Match[str]) -> str:
    """Return a command that fails unless its exit status is the documented one."""
    return f"status=0; {line[1]} || status=$?; expect {line[2]} $status {shlex.quote(line[1])}"


def missing(block: Block) -> list[str]:
    """Return the packages that a block requires and that are not installed, and the server if it is not."""
    return [
        name
        for name in block.requires
        if (find_versitygw() is None if name == SERVER else not any(importlib.metadata.distributions(name=name)))
    ]


class Reader:
    """A reader who runs the blocks of a page in a directory of their own.

    :ivar folder: the current directory
    """

    def __init__(self, home: Path, session: subprocess.Popen[str], variables: dict[str, str]) -> None:
        self._state = home / "state"
        self._session = session
        self._variables = {**variables, "PAGE_STATE": str(self._state)}
        self.folder = home / "work"
        self.folder.mkdir()

    def run(self, block: Block) -> str:
        """Run a block, and return its output on both streams."""
        if block.language == "sh":
            script = _SCRIPT.format(_STATUS.sub(with_status, block.text))
            output = self._process(block, ["sh", "-ec", script])
            self.folder = Path(self._state.with_suffix(".folder").read_text().rstrip("\n"))
            return output
        if "__main__" in block.text:
            # Worker processes import the script.
            (self.folder / "script.py").write_text(block.text)
            return self._process(block, [sys.executable, "script.py"])
        assert self._session.stdin is not None
        assert self._session.stdout is not None
        request = {"code": block.text, "place": block.place, "folder": str(self.folder)}
        print(json.dumps(request), file=self._session.stdin, flush=True)
        answer = json.loads(self._session.stdout.readline())
        assert answer["error"] is None, f"{block.place}\n{answer['error']}"
        return str(answer["output"])

    def _process(self, block: Block, command: list[str]) -> str:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=self.folder,
            env=self._variables,
            timeout=180,
            check=False,
        )
        output = done.stdout.decode()
        assert done.returncode == 0, f"{block.place}: exit status {done.returncode}\n{output}"
        return output


@contextmanager
def served(page: str, home: Path) -> Iterator[dict[str, str]]:
    """Run the server that blocks of a page require, if it is installed, and yield the variables of its users."""
    needed = [block for block in PAGES[page] if SERVER in block.requires]
    if not needed or any(map(missing, needed)):
        yield {}
        return
    folder = home / "server"
    folder.mkdir()
    with versitygw(folder) as endpoint:
        yield {**user_settings(folder), "AWS_ENDPOINT_URL_S3": endpoint}


@contextmanager
def reader(home: Path, more: Mapping[str, str] = MappingProxyType({})) -> Iterator[Reader]:
    """Yield a reader with the tested command in the path.

    :param more: variables of the environment
    """
    programs = home / "bin"
    programs.mkdir()
    for name, words in (("pressmark", COMMAND), ("python3", [sys.executable])):
        script = programs / name
        script.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    variables = {**environment(), "PATH": path, "HOME": str(home), "LC_ALL": "C.UTF-8", "COLUMNS": "100", **more}
    command = [sys.executable, "-P", str(SESSION)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes, encoding="utf-8", env=variables) as session:
        yield Reader(home, session, variables)
        assert session.stdin is not None
        session.stdin.close()


def assert_output(block: Block, found: str) -> None:
    """Compare an output with the one of the page; ``…`` stands for any text."""
    found = _RATE.sub("", found)
    pattern = ""
    for line in block.text.splitlines():
        pattern += r"(?:.*\n)*?" if line == "…" else ".*?".join(map(re.escape, line.split("…"))) + r"[ \t]*\n"
    if re.fullmatch(pattern, found) is None:
        assert found == block.text, block.place


@pytest.mark.parametrize("page", [name for name, found in PAGES.items() if any(one.language in RUN for one in found)])
def test_blocks(page: str, tmp_path: Path) -> None:
    """The blocks of a page succeed one after another, with the output on the page."""
    with served(page, tmp_path) as variables, reader(tmp_path, variables) as someone:
        output: str | None = None
        for block in PAGES[page]:
            if block.is_output:
                if output is not None:
                    assert_output(block, output)
            elif block.language in RUN:
                output = None if block.not_run or missing(block) else someone.run(block)


def test_every_block_is_run() -> None:
    """Every block has a language; only the listed ones are not run; and an output follows a block that is run."""
    not_run = []
    for page, found in PAGES.items():
        previous = ""
        for block in found:
            assert block.language in RUN | {"text", "json"}, block.place
            assert not block.is_output or previous in RUN, block.place
            if block.not_run:
                not_run.append((page, block.not_run))
            previous = block.language
    assert not_run == NOT_RUN


def test_commands_in_the_table_of_the_readme(tmp_path: Path) -> None:
    """Every command in the table "I have …, I want …" succeeds, one after another, after the quick start."""
    [page] = [page for page in pages() if page.name == "README.md"]
    table = prose(page).partition("\n## I have")[2].partition("\n## ")[0]
    commands = re.findall(r"\| `(pressmark [^`]+)` \|$", table, re.MULTILINE)
    assert len(commands) > 10
    with reader(tmp_path) as someone:
        for block in PAGES["README.md"]:
            if block.language == "sh" and not block.not_run:
                someone.run(block)
        someone.folder.joinpath("ids.txt").write_text("ark:/13030/xt12t3\nark:/13030/b\n")
        someone.folder.joinpath("ids.csv").write_text("id,title\nark:/13030/xt12t3,One\n")
        someone.folder.joinpath("objects.tsv").write_text("ark:/13030/b\tscans\nark:/13030/c\tscans\n")
        for command in commands:
            someone.run(Block(f"README.md: {command}", "sh", f"{command}\n", False, "", ()))
