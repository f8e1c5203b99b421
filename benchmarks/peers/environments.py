"""The peers' environments: each in a folder of its own under ``build/peers``, from the pinned files beside this one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

__all__ = [
    *("Command", "Unavailable"),
    *("cargo", "go", "interpreter", "maven", "pressmark", "probe_go", "probe_gocfl", "python", "run"),
]

HERE = Path(__file__).resolve().parent
BUILD = HERE.parents[1] / "build" / "peers"
# Building rocfl's 150 crates takes minutes on two cores.
PATIENCE = 1800

#: Give the layout's configuration file; get the command to run, short of identifiers, paths and rounds.
Command = Callable[[Path], Sequence[str]]


class Unavailable(Exception):
    """An environment cannot be made here; the text says why, in one line."""


def run(*command: str | Path, cwd: Path | None = None, **environment: str) -> None:
    """Run a build step, or raise ``Unavailable`` with the last thing that it said."""
    if shutil.which(str(command[0])) is None:
        raise Unavailable(f"{command[0]} is not installed")
    try:
        done = subprocess.run(
            list(map(str, command)),
            cwd=cwd,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=PATIENCE,
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{command[0]} took more than {PATIENCE} s") from None
    if done.returncode:
        said = [line.strip() for line in done.stdout.splitlines() if line.strip()] or [f"exit {done.returncode}"]
        raise Unavailable(f"{Path(command[0]).name}: {said[-1][:200]}")


def pressmark(peer: str) -> Command:
    """Return Pressmark itself in this Python: ``pressmark DOOR``, or ``pressmark pure`` for lists through that twin."""
    door = peer.partition(" ")[2]
    switch = ("env", "PRESSMARK_IMPLEMENTATION=pure") if door == "pure" else ()
    program = (sys.executable, str(HERE.parent / "pressmark_peer.py"), "list" if door == "pure" else door)
    return lambda config: (*switch, *program, str(config))


def interpreter(peer: str) -> Path:
    """Make a virtual environment of what ``python/<peer>.txt`` names, and return its Python."""
    folder = BUILD / peer
    found = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    requirements = HERE / "python" / f"{peer}.txt"
    stamp = folder / "made-from.txt"
    if not stamp.exists() or stamp.read_text() != requirements.read_text():
        shutil.rmtree(folder, ignore_errors=True)
        run(sys.executable, "-m", "venv", folder)
        run(found, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", requirements)
        stamp.write_text(requirements.read_text())
    return found


def python(peer: str) -> Command:
    """Make a virtual environment with the peer of ``python/<peer>.txt``, if there is such a file."""
    has_requirements = (HERE / "python" / f"{peer}.txt").exists()
    used = str(interpreter(peer)) if has_requirements else sys.executable
    return lambda config: (used, str(HERE / "python" / "runner.py"), peer, str(config))


def cargo(peer: str) -> Command:
    """Build a Rust runner in release mode, of the exact version that its Cargo.toml names."""
    target = BUILD / peer
    run("cargo", "build", "--release", "--quiet", cwd=HERE / peer, CARGO_TARGET_DIR=str(target))
    return lambda config: (str(target / "release" / "pressmark-peer-rocfl"), str(config))


def go(peer: str) -> Command:
    """Build a Go runner from its module files."""
    runner = BUILD / peer / "runner"
    runner.parent.mkdir(parents=True, exist_ok=True)
    run("go", "build", "-mod=readonly", "-o", runner, ".", cwd=HERE / peer)
    return lambda config: (str(runner), str(config))


def probe_go(module: str) -> NoReturn:
    """Raise ``Unavailable``: no runner is here for a Go module, of which it was not known whether it can be had."""
    folder = BUILD / "probe"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "go.mod").write_text("module probe\n\ngo 1.22\n")
    try:
        run("go", "mod", "download", module, cwd=folder)
    except Unavailable as error:
        raise Unavailable(f"{module}: {str(error).rpartition(': ')[2]}") from None
    raise Unavailable(f"{module} can be had here, but no runner has been written for want of a place to try it")


def probe_gocfl(_peer: str) -> Command:
    """Raise ``Unavailable``: gocfl 3 itself has no layouts, and the module that has them is not always to be had."""
    # The version that gocfl-cli requires.
    probe_go("github.com/ocfl-archive/gocfl-extensions@v0.0.0-20260422161719-881c5367067f")


def maven(peer: str) -> Command:
    """Compile a Java runner and fetch its libraries."""
    folder = BUILD / peer
    run("mvn", "--quiet", "--batch-mode", "--file", HERE / peer / "pom.xml", f"-Dpeer.directory={folder}", "compile")
    path = os.pathsep.join((str(folder / "classes"), str(folder / "lib" / "*")))
    return lambda config: ("java", "-cp", path, "Runner", str(config))
