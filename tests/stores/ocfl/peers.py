"""The other programs for OCFL, behind one interface: make roots and versions, validate objects."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pressmark.layouts import Layout

from .samples import USER

__all__ = ["NAMES", "REPOSITORY", "Missing", "Peer", "PeerError", "Verdict", "marks", "open_peer"]

REPOSITORY = Path(__file__).parents[3]
_OCFL_PY = Path(__file__).parents[1] / "ocfl_validate.py"

#: The peers, and the layouts that each knows.
NAMES = {
    "ocfl-py": ("0002", "0003"),
    "rocfl": ("0002", "0003", "0004", "0006", "0007"),
    "ocfl-java": ("0002", "0003", "0004", "0006", "0007"),
    "ocfl-go": ("0002", "0003", "0004", "0006", "0007"),
}


def marks(name: str) -> list[pytest.MarkDecorator]:
    """Return the marks of a test with a peer: only ocfl-py is installed where the source tree is not."""
    return [] if name == "ocfl-py" else [pytest.mark.repository]


class Missing(Exception):
    """A peer is not installed; the message tells how to install it."""


class PeerError(Exception):
    """A peer refused a request."""


class Verdict(NamedTuple):
    """What a validator found, each with its code."""

    errors: list[str]
    warnings: list[str]


class Peer:
    """A program that answers requests; see ``benchmarks/peers/ocfl_stores.py``."""

    def __init__(self, name: str, command: Sequence[str]) -> None:
        self.name = name
        self.command = list(command)
        self._process: subprocess.Popen[str] | None = None

    def __repr__(self) -> str:
        return self.name

    def knows(self, layout: Layout) -> bool:
        """Return whether the peer maps identifiers of this layout."""
        return layout.name[:4] in NAMES[self.name]

    def close(self) -> None:
        """End the program."""
        if self._process is not None:
            with self._process:
                assert self._process.stdin is not None
                self._process.stdin.close()
            self._process = None

    def _ask(self, do: str, root: Path, **more: Any) -> Any:
        if self._process is None:
            # The stream of errors has what the libraries log.
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=_environment(),
                encoding="utf-8",
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        given = {key: value for key, value in more.items() if value is not None}
        self._process.stdin.write(json.dumps({"do": do, "root": str(root), **given}) + "\n")
        self._process.stdin.flush()
        said = json.loads(self._process.stdout.readline())
        if "error" in said:
            raise PeerError(f"{self.name}: {said['error']}")
        return said["answer"]

    def create(self, root: Path, layout: Layout, version: str = "1.1") -> None:
        """Make a storage root."""
        self._ask("create", root, layout=layout.config(), version=version)

    def put(self, root: Path, identifier: str, source: Path, **options: Any) -> None:
        """Make the files of a directory the next version of an object, or the first of a new one.

        :param options: ``algorithm``, ``content``, ``padding`` and ``fixity``, of a new object
        """
        options = {"algorithm": "sha512", "message": "a version", "user": USER, **options}
        self._ask("put", root, id=identifier, source=str(source), **options)

    def stage(self, root: Path, identifier: str, source: Path, **options: Any) -> None:
        """As :meth:`put`, without publishing the version: into a mutable HEAD, or the root's staging area."""
        options = {"algorithm": "sha512", "message": "a version", "user": USER, **options}
        self._ask("stage", root, id=identifier, source=str(source), **options)

    def commit(self, root: Path, identifier: str) -> None:
        """Publish the staged version of an object."""
        self._ask("commit", root, id=identifier, message="a version", user=USER)

    def validate(self, root: Path, *, paths: Sequence[str] = (), ids: Sequence[str] = ()) -> dict[str, Verdict]:
        """Validate objects with their content, by their paths and by their identifiers."""
        answer = self._ask("validate", root, paths=list(paths), ids=list(ids))
        return {path: Verdict(found["errors"], found["warnings"]) for path, found in answer.items()}

    def validate_root(self, root: Path) -> list[str] | None:
        """Validate a root and all objects in it, and return the errors; :data:`None` if the peer cannot."""
        if self.name != "ocfl-py":
            return None
        command = [*self.command, str(root)]
        done = subprocess.run(command, stdout=subprocess.PIPE, env=_environment(), check=True, encoding="utf-8")
        found = json.loads(done.stdout)
        good = found["valid"] and found["good"] == found["objects"]
        return [] if good and not found["errors"] else [json.dumps(found)]


class Rocfl(Peer):
    """The command line program rocfl."""

    def _run(self, root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [*self.command, "--root", str(root), "--no-styles", *arguments]
        return subprocess.run(command, capture_output=True, env=_environment(), encoding="utf-8", check=False)

    def _do(self, root: Path, *arguments: str) -> None:
        done = self._run(root, *arguments)
        if done.returncode:
            raise PeerError(f"rocfl {arguments[0]}: {done.stderr.strip()}")

    def create(self, root: Path, layout: Layout, version: str = "1.1") -> None:
        with tempfile.NamedTemporaryFile("w", suffix=".json") as config:
            json.dump(layout.config(), config)
            config.flush()
            given = ["--config-file", config.name] if layout.parameters() else []
            self._do(root, "init", "--spec-version", version, "--layout", layout.name, *given)

    def put(self, root: Path, identifier: str, source: Path, **options: Any) -> None:
        self.stage(root, identifier, source, **options)
        self.commit(root, identifier)

    def stage(self, root: Path, identifier: str, source: Path, **options: Any) -> None:
        if self._run(root, "info", "--", identifier).returncode:
            how = ["--digest-algorithm", options.get("algorithm") or "sha512"]
            how += ["--content-directory", options.get("content") or "content"]
            how += ["--zero-padding", str(options.get("padding") or 0)]
            self._do(root, "new", *how, "--", identifier)
        else:
            self._do(root, "rm", "--recursive", "--", identifier, "*")
        entries = sorted(str(path) for path in source.iterdir())
        if entries:
            self._do(root, "cp", "--recursive", identifier, *entries, "--", "/")

    def commit(self, root: Path, identifier: str) -> None:
        who = ["--user-name", USER["name"], "--user-address", USER["address"], "--message", "a version"]
        self._do(root, "commit", *who, "--", identifier)

    def validate(self, root: Path, *, paths: Sequence[str] = (), ids: Sequence[str] = ()) -> dict[str, Verdict]:
        found = {path: _verdict(self._run(root, "validate", "--paths", "--", path)) for path in paths}
        return found | {identifier: _verdict(self._run(root, "validate", "--", identifier)) for identifier in ids}

    def validate_root(self, root: Path) -> list[str] | None:
        return _verdict(self._run(root, "validate")).errors


def _verdict(done: subprocess.CompletedProcess[str]) -> Verdict:
    said = [found[1] for line in done.stdout.splitlines() if (found := re.match(r" *\d+\. (\[[EW]\d+\] .*)", line))]
    errors = [text for text in said if text.startswith("[E")]
    if done.returncode and not errors:
        errors = [done.stderr.strip() or f"exit status {done.returncode}"]
    return Verdict(errors, [text for text in said if text.startswith("[W")])


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


@cache
def _programs(make: bool) -> tuple[Mapping[str, list[str]], str]:
    """Return the commands of the programs of other languages, and why others could not be made."""
    if not (REPOSITORY / "benchmarks").is_dir():
        return {}, "the benchmarks are not here"
    program = [sys.executable, "-m", "benchmarks.peers.ocfl_stores"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(REPOSITORY), *sys.path]))}
    why = ""
    if make:
        made = subprocess.run(program, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
        why = made.stderr.strip()
    found = subprocess.run([*program, "--found"], cwd=REPOSITORY, env=environment, capture_output=True, check=True)
    return json.loads(found.stdout), why


def open_peer(name: str, make: bool = False) -> Peer:
    """Return a peer.

    :param make: make its program if it is not made
    :raises Missing: it is not installed
    """
    if name == "ocfl-py":
        # PRESSMARK_OCFL_PY names another Python with ocfl-py, to keep its dependencies out of this one.
        python = os.environ.get("PRESSMARK_OCFL_PY") or sys.executable
        if python == sys.executable and importlib.util.find_spec("ocfl") is None:
            raise Missing("ocfl-py is not installed; run pip install ocfl-py")
        return Peer(name, [python, str(_OCFL_PY)])
    commands, why = _programs(make)
    if name not in commands:
        reason = f" ({why})" if why else ""
        raise Missing(f"{name} is not installed; run python -m benchmarks.peers.ocfl_stores {name}{reason}")
    return (Rocfl if name == "rocfl" else Peer)(name, commands[name])
