"""Long commands on a terminal, tmux: a bar that moves, and after Ctrl-C the end, with a line on how to continue.

The work is slow because a preloaded library delays each access to paths with "slow-".
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from bagit.loopback import Server, below, serving
from pressmark import bagit, stores
from pressmark.layouts import layout
from support.effort import LONG
from support.preloading import preloadable

from .conftest import COMMAND, environment

pytestmark = [
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is missing"),
    pytest.mark.slow_under_sanitizers,
    pytest.mark.long,
]

FILES, OBJECTS = 4000, 3000
BAR = re.compile("━|╸|╺")
AGAIN = "run the same command again"
# Seconds: a bar appears within two, and a command ends within one, unless the machine is busy.
PATIENCE, END = 10.0, 5.0
# Seconds for each access to a slow path, as on a busy network.
DELAY = 0.02


class Command(NamedTuple):
    """A command, in a folder that :func:`folder` fills.

    :ivar line: its arguments
    :ivar ending: the last line after Ctrl-C
    :ivar counts: what the display counts
    """

    line: str
    ending: str
    counts: str = r"\d files?"


COMMANDS = {
    "hash": Command("hash files -o list --threads 2", "use --ledger FILE to make a run resumable"),
    "hash --workers": Command("hash files -o list --workers 2", "run the same command with --resume to continue", ""),
    "verify": Command("verify list.sha512 --threads 2", "use --ledger FILE to make a run resumable", r"of 4,000 files"),
    "bag create": Command("bag create files --threads 2", f"nothing was changed; {AGAIN}"),
    "bag create of many": Command("bag create many/*", f"complete; {AGAIN} to create the others", ""),
    "bag create -o": Command("bag create files -o new --threads 2", f"nothing was changed; {AGAIN}"),
    "bag validate": Command(
        "bag validate bag --threads 2", "use --ledger FILE to make a run resumable", r"of 4,00\d files"
    ),
    "bag validate of many": Command("bag validate many/*", "use --ledger FILE to make a run resumable", ""),
    "bag validate --workers": Command(
        "bag validate bag another --workers 2 --work run", "with --resume to continue", ""
    ),
    "bag update": Command("bag update bag --add-algorithm md5 --threads 2", f"nothing was changed; {AGAIN}"),
    "bag complete": Command("bag complete incomplete --allow-http --allow-private --threads 2", f"{AGAIN} to continue"),
    "store put": Command("store put books new files", f"{AGAIN} to store the others", ""),
    "store put --from": Command("store put books --from list.tsv", f"{AGAIN} to store the others", r"of 4,000 objects"),
    "store check": Command("store check root", f"nothing was changed; {AGAIN}", r"\d objects?"),
    "store check --workers": Command("store check root --digests --workers 2 --work run", f"interrupted; {AGAIN}", ""),
    "store report": Command("store report root -o page.html", f"no report was written; {AGAIN}", r"\d objects?"),
    "store repair": Command("store repair root", "run the same command to continue", r"\d objects?"),
    "migrate --dry-run": Command(
        "migrate books new --to ocfl --layout 0003 --dry-run",
        f"nothing was written to the destination; {AGAIN}",
        "",
    ),
    "migrate": Command(
        "migrate books new --to ocfl --layout 0003 --resume", "with --resume to continue", "of 3,000 objects"
    ),
    "migrate --workers 1": Command(
        "migrate books new --to ocfl --layout 0003 --resume --workers 1",
        "with --resume to continue",
        "of 3,000 objects",
    ),
    "migrate --verify-again": Command(
        "migrate books copy --to ocfl --layout 0003 --verify-again",
        "run the same command to continue",
        "of 3,000 objects",
    ),
    "map": Command("map 0003 slow-ids.txt -o paths --threads 1", f"paths is unchanged; {AGAIN}", r"\d identifiers"),
    "compare": Command("compare slow-ids.txt --layout 0003 --layout 0004", f"interrupted; {AGAIN}", "MB of"),
}
SHORT = ("hash", "migrate --workers 1", "store put --from")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    return preloadable(Path(__file__).with_name("slow.c"), tmp_path_factory.mktemp("library"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with files, bags and stores, all of whose content has names with "slow-"."""
    files = tmp_path / "files"
    files.mkdir()
    for number in range(FILES):
        (files / f"slow-{number}").write_bytes(b"%d" % number)
    return tmp_path


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as server:
        yield server


def prepare(name: str, folder: Path, server: Server) -> None:
    """Add what a command needs."""
    files = folder / "files"
    if name == "verify":
        call(folder, "hash files -o list.sha512")
    elif name.endswith("of many"):
        for number in range(OBJECTS):
            one = folder / "many" / f"slow-{number}"
            one.mkdir(parents=True)
            (one / "slow-file").write_bytes(b"%d" % number)
            if name.startswith("bag validate"):
                bagit.make_bag(one)
    elif name.startswith("bag validate") or name == "bag update":
        bagit.create(files, folder / "bag")
        if name.endswith("--workers"):
            bagit.create(files, folder / "another")
    elif name == "bag complete":
        bag = folder / "incomplete"
        bagit.create(files, bag)
        server.default = below(files)
        fetched = [f"{server.url(f'/{path.name}')} - data/{path.name}\n" for path in sorted((bag / "data").iterdir())]
        shutil.rmtree(bag / "data")
        (bag / "data").mkdir()
        (bag / "fetch.txt").write_text("".join(fetched))
    elif name.startswith(("store check", "store repair", "store report")):
        with stores.create("ocfl", folder / "root", layout("0002")).ingest() as batch:
            for number in range(FILES):
                batch.put(f"slow-{number}", files / f"slow-{number}")
    elif name.startswith(("migrate", "store put")):
        books = stores.create("pairtree", folder / "books")
        if name.startswith("migrate"):
            with books.ingest() as batch:
                for number in range(OBJECTS):
                    batch.put(f"slow-{number}", {f"slow-{one}": files / f"slow-{one}" for one in range(3)})
        lines = [f"id{number}\t{files}/slow-{number}\n" for number in range(FILES)]
        (folder / "list.tsv").write_text("".join(lines))
        if name in ("migrate", "migrate --workers 1"):
            call(folder, "migrate books new --to ocfl --layout 0003 --dry-run")
        elif name == "migrate --verify-again":
            call(folder, "migrate books copy --to ocfl --layout 0003")
    elif name in ("map", "compare"):
        (folder / "slow-ids.txt").write_text("".join(f"identifier-{number}\n" for number in range(3_000_000)))


def call(folder: Path, line: str) -> None:
    subprocess.run([*COMMAND, *line.split()], cwd=folder, env=environment(), check=True, capture_output=True)


class Terminal:
    """A terminal with a command."""

    def __init__(self, socket: str) -> None:
        self._socket = socket

    def run(self, *command: str) -> str:
        """Run a command of tmux, and return its output."""
        done = subprocess.run(
            ["tmux", "-u", "-L", self._socket, *command], capture_output=True, text=True, timeout=60, check=False
        )
        return done.stdout

    def lines(self) -> list[str]:
        """Return the lines of the screen, and those above it, that are not empty."""
        return [line.rstrip() for line in self.run("capture-pane", "-p", "-S", "-").splitlines() if line.strip()]

    def status(self) -> int | None:
        """Return the exit status of the command; None while it runs."""
        dead, _, status = self.run("display-message", "-p", "#{pane_dead} #{pane_dead_status}").strip().partition(" ")
        return int(status or -1) if dead == "1" else None

    def until(self, condition: Callable[[list[str]], bool], seconds: float = PATIENCE) -> list[str]:
        """Return the first screen that fulfils a condition."""
        end = time.monotonic() + seconds
        while True:
            lines = self.lines()
            if condition(lines):
                return lines
            assert time.monotonic() < end, lines
            time.sleep(0.05)


@contextmanager
def terminal(folder: Path, columns: int, line: str, library: str) -> Iterator[Terminal]:
    """Run a command in tmux; each access to a slow file takes :data:`DELAY`."""
    variables = {"LD_PRELOAD": library, "DELAY": str(round(DELAY * 1e6)), "OLD_KERNEL": "1", "LC_ALL": "C.UTF-8"}
    wanted = {**environment(), **variables}
    names = [
        f"{name}={wanted[name]}" for name in ("PYTHONPATH", "PRESSMARK_IMPLEMENTATION", *variables) if name in wanted
    ]
    command = f"exec {shlex.join(['env', *names, *COMMAND])} {line}"
    made = Terminal(f"pressmark-{os.getpid()}")
    size = ["-x", str(columns), "-y", "24"]
    try:
        # The command starts once it stays on the screen after its end.
        made.run("-f", os.devnull, "new-session", "-d", *size, "-c", str(folder), "cat")
        made.run("set-option", "-g", "remain-on-exit", "on")
        made.run("respawn-pane", "-k", "-c", str(folder), command)
        yield made
    finally:
        made.run("kill-server")


@pytest.mark.parametrize("columns", [80, 120] if LONG else [80])
@pytest.mark.parametrize("name", COMMANDS if LONG else SHORT)
def test_a_long_command(folder: Path, server: Server, library: str, name: str, columns: int) -> None:
    """A bar appears and moves; Ctrl-C ends the command soon, and the last line tells how to continue."""
    command = COMMANDS[name]
    prepare(name, folder, server)
    begin = time.monotonic()
    with terminal(folder, columns, command.line, library) as shown:
        first = shown.until(lambda lines: any(map(BAR.search, lines)))
        appeared = time.monotonic() - begin
        second = shown.until(lambda lines: any(map(BAR.search, lines)) and lines != first)
        counted = shown.until(lambda lines: re.search(command.counts, "\n".join(lines)) is not None)
        for lines in (first, second, counted):
            assert max(map(len, lines)) < columns
            assert sum(BAR.search(line) is not None for line in lines) == 1, "wrapped"
        assert shown.status() is None
        begin = time.monotonic()
        shown.run("send-keys", "C-c")
        while shown.status() is None:
            assert time.monotonic() - begin < END, shown.lines()
            time.sleep(0.02)
        ended = time.monotonic() - begin
        last = [line.rstrip() for line in shown.run("capture-pane", "-p", "-J", "-S", "-").splitlines() if line.strip()]
        last = [line for line in last if "Pane is dead" not in line]
    print(f"{name}, {columns} columns: a bar after {appeared:.1f} s, the end {ended:.1f} s after Ctrl-C")
    print("\n".join([*counted, *last]))
    assert last[-1].startswith("pressmark: interrupted")
    assert last[-1].endswith(command.ending)
    assert not any(map(BAR.search, last))
    assert not any("Traceback" in line for line in last)
