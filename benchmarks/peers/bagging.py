"""The tools that make and check bags: what each can do, and how it is started."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pressmark
from peers import environments
from peers.environments import BUILD, HERE

__all__ = ["OURS", "TOOLS", "Call", "Tool", "environment_of"]

RUNNER = HERE / "python" / "bag_runner.py"
BAGR = "0.3.0"


class Call(NamedTuple):
    """One operation: ``open``, ``validate``, ``complete``, ``create``, or ``create elsewhere``."""

    operation: str
    bag: Path
    algorithm: str
    destination: Path | None = None


#: Give what is to be done, get the command that does it.
Command = Callable[[Call], Sequence[str]]


class Tool(NamedTuple):
    """A tool, as it is run.

    :ivar workers: threads or processes
    :ivar make: makes its environment, and returns how it is started
    :raises Unavailable: by ``make``, where it cannot be had
    """

    name: str
    version: str
    workers: int
    operations: tuple[str, ...]
    make: Callable[[Tool], Command]

    @property
    def label(self) -> str:
        """Name and workers: it is listed once for each number of them."""
        return f"{self.name}, {self.workers}" if self.workers else self.name


def _with_python(interpreter: str | Path, tool: Tool) -> Command:
    name, workers = tool.name.lower(), str(tool.workers or 1)

    def command(call: Call) -> Sequence[str]:
        destination = [] if call.destination is None else [str(call.destination)]
        operation = call.operation.partition(" ")[0]
        return (str(interpreter), str(RUNNER), name, operation, str(call.bag), call.algorithm, workers, *destination)

    return command


def _ours(tool: Tool) -> Command:
    return _with_python(sys.executable, tool)


def _python(tool: Tool) -> Command:
    return _with_python(environments.interpreter("bags"), tool)


def _bagr(_tool: Tool) -> Command:
    program = BUILD / "bagr" / "bin" / "bagr"
    # With the dependencies that its own lock file names.
    where = ("--root", BUILD / "bagr", "--target-dir", BUILD / "bagr" / "target")
    environments.run("cargo", "install", "--quiet", "--locked", "bagr", "--version", f"={BAGR}", *where)

    def command(call: Call) -> Sequence[str]:
        places = [str(call.bag)] + ([] if call.destination is None else [str(call.destination)])
        return (str(program), "--quiet", "bag", "--digest-algorithm", call.algorithm, *places)

    return command


def _go_module(path: str) -> Callable[[Tool], Command]:
    """Return what raises ``Unavailable``: the module is not always to be had, and says why."""

    def make(tool: Tool) -> Command:
        environments.probe_go(f"{path}@v{tool.version}")

    return make


_ALL = ("create", "create elsewhere", "validate", "open", "complete")

OURS = Tool("pressmark", pressmark.__version__, 2, _ALL, _ours)
TOOLS = (
    OURS,
    Tool("bagit", "1.9.0", 1, ("create", "validate", "open", "complete"), _python),
    Tool("bagit", "1.9.0", 2, ("create", "create elsewhere", "validate"), _python),
    Tool("bdbag", "1.8.0", 1, ("create", "validate", "open", "complete"), _python),
    # It makes bags and opens them to change them; it has no validation.
    Tool("bagr", BAGR, 0, ("create", "create elsewhere"), _bagr),
    Tool("go-bagit", "0.3.1-alpha", 0, ("validate",), _go_module("github.com/nyudlts/go-bagit")),
    Tool("bagit-gython", "0.6.1", 0, ("validate",), _go_module("github.com/artefactual-labs/bagit-gython")),
)


def environment_of(tool: Tool) -> dict[str, str]:
    """Return the environment variables of a tool's process: ours finds the Pressmark of this one."""
    found = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    # bdbag keeps its settings in the home directory, and nothing of ours may decide what it does.
    home = BUILD / "home"
    home.mkdir(parents=True, exist_ok=True)
    found["HOME"] = str(home)
    if tool is OURS:
        found["PYTHONPATH"] = str(Path(pressmark.__file__).parents[1])
    return found
