"""The environments of the peers: each in ``build/peers``, from the pinned files beside this module."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pressmark

__all__ = [
    *("Command", "Unavailable"),
    *("cargo", "cargo_install", "go", "interpreter", "java", "maven", "ours", "python", "run", "with_pressmark"),
]

HERE = Path(__file__).resolve().parent
SOURCE = Path(pressmark.__file__).parents[1]
BUILD = HERE.parents[1] / "build" / "peers"
# Building rocfl's 150 crates takes minutes on two cores.
PATIENCE = 1800

#: From the layout's configuration file to the command; identifiers, paths and rounds are appended.
Command = Callable[[Path], Sequence[str]]


class Unavailable(Exception):
    """An environment cannot be created; the message is one line."""


def run(*command: str | Path, cwd: Path | None = None, **environment: str) -> None:
    """Run a build step.

    :raises Unavailable: the step failed; the message is its last line of output
    """
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


def with_pressmark() -> dict[str, str]:
    """Return environment variables under which a process finds this Pressmark and these benchmarks."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (SOURCE, HERE.parents[1])))}


def ours(peer: str) -> Command:
    """Return the command of ``Pressmark list`` and the other kinds of input; ``pure`` is lists in pure Python."""
    kind = peer.partition(" ")[2]
    switch = ("env", "PRESSMARK_IMPLEMENTATION=pure") if kind == "pure" else ()
    program = (sys.executable, "-m", "benchmarks.peers.pressmark_runner", "list" if kind == "pure" else kind)
    return lambda config: (*switch, *program, str(config))


def interpreter(peer: str) -> Path:
    """Create a virtual environment from ``python/<peer>.txt`` and return its Python."""
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
    """Create a virtual environment with the peer of ``python/<peer>.txt``, if that file exists."""
    used = str(interpreter(peer)) if (HERE / "python" / f"{peer}.txt").exists() else sys.executable
    return lambda config: (used, str(HERE / "python" / "runner.py"), peer, str(config))


def cargo(peer: str) -> Command:
    """Build a Rust runner in release mode, of the exact version that its Cargo.toml names."""
    target = BUILD / peer
    run("cargo", "build", "--release", "--quiet", cwd=HERE / peer, CARGO_TARGET_DIR=str(target))
    return lambda config: (str(target / "release" / "pressmark-peer-rocfl"), str(config))


def cargo_install(crate: str, version: str, *options: str) -> Path:
    """Install a program with the dependencies of its lock file, and return it."""
    folder = BUILD / crate
    where = ("--root", folder, "--target-dir", folder / "target")
    run("cargo", "install", "--quiet", "--locked", crate, "--version", f"={version}", *options, *where)
    return folder / "bin" / crate


def go(peer: str, package: str = ".", name: str = "runner") -> Command:
    """Build a Go program from a package of the peer's module."""
    program = BUILD / peer / name
    program.parent.mkdir(parents=True, exist_ok=True)
    run("go", "build", "-mod=readonly", "-o", program, package, cwd=HERE / peer)
    return lambda config: (str(program), str(config))


def maven(peer: str) -> Command:
    """Compile the Java programs of a peer and fetch its libraries."""
    folder = BUILD / peer
    run("mvn", "--quiet", "--batch-mode", "--file", HERE / peer / "pom.xml", f"-Dpeer.directory={folder}", "compile")
    return lambda config: (*java(peer, "Runner"), str(config))


def java(peer: str, program: str) -> tuple[str, ...]:
    """Return the command of a Java program of a peer."""
    folder = BUILD / peer
    return ("java", "-cp", os.pathsep.join((str(folder / "classes"), str(folder / "lib" / "*"))), program)
