"""The tools that create and check bags: their operations and commands."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pressmark
from benchmarks.peers import environments
from benchmarks.peers.environments import BUILD, HERE

__all__ = ["OURS", "TOOLS", "Call", "Tool", "environment_of"]

RUNNER = HERE / "python" / "bag_runner.py"
BAGR = "0.3.0"


class Call(NamedTuple):
    """One operation: ``open``, ``validate``, ``complete``, ``create``, or ``create elsewhere``."""

    operation: str
    bag: Path
    algorithm: str
    destination: Path | None = None


#: From an operation to its command.
Command = Callable[[Call], Sequence[str]]


class Tool(NamedTuple):
    """A tool with a number of workers.

    :ivar workers: threads or processes
    :ivar make: creates its environment and returns its command; raises ``Unavailable``
    """

    name: str
    version: str
    workers: int
    operations: tuple[str, ...]
    make: Callable[[Tool], Command]

    @property
    def label(self) -> str:
        """Name and workers."""
        return f"{self.name}, {self.workers}" if self.workers else self.name


def _with_python(interpreter: str | Path, tool: Tool) -> Command:
    name, workers = tool.name.lower(), str(tool.workers or 1)

    def command(call: Call) -> Sequence[str]:
        destination = [] if call.destination is None else [str(call.destination)]
        operation = call.operation.removesuffix(" elsewhere")
        return (str(interpreter), str(RUNNER), name, operation, str(call.bag), call.algorithm, workers, *destination)

    return command


def _ours(tool: Tool) -> Command:
    return _with_python(sys.executable, tool)


def _python(tool: Tool) -> Command:
    return _with_python(environments.interpreter("bags"), tool)


def _bagr(_tool: Tool) -> Command:
    program = environments.cargo_install("bagr", BAGR)

    def command(call: Call) -> Sequence[str]:
        places = [str(call.bag)] + ([] if call.destination is None else [str(call.destination)])
        return (str(program), "--quiet", "bag", "--digest-algorithm", call.algorithm, *places)

    return command


_ALL = ("create", "create elsewhere", "validate", "open", "complete")

OURS = Tool("pressmark", pressmark.__version__, 2, _ALL, _ours)
TOOLS = (
    OURS,
    Tool("bagit", "1.9.0", 1, ("create", "validate", "open", "complete"), _python),
    Tool("bagit", "1.9.0", 2, ("create", "create elsewhere", "validate"), _python),
    Tool("bdbag", "1.8.0", 1, ("create", "validate", "open", "complete"), _python),
    # It does not validate.
    Tool("bagr", BAGR, 0, ("create", "create elsewhere"), _bagr),
)


def environment_of(tool: Tool) -> dict[str, str]:
    """Return the environment variables of a tool's process."""
    found = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    # bdbag reads its settings from the home directory.
    home = BUILD / "home"
    home.mkdir(parents=True, exist_ok=True)
    found["HOME"] = str(home)
    if tool is OURS:
        found["PYTHONPATH"] = str(Path(pressmark.__file__).parents[1])
    return found
