"""Completion: in real shells where they are installed, and what each shell is told."""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pressmark.fixity import ALGORITHMS
from pressmark.stores import KINDS

from .conftest import COMMAND, Run, environment

PATIENCE = 60  # seconds for a shell on a busy machine
PROMPT = "ready> "
# How each shell starts without the user's settings, and its first line.
SHELLS = {
    "bash": (
        ["bash", "--norc", "--noprofile", "-i"],
        "bind 'set bell-style none'; bind 'set enable-bracketed-paste off'; PS1='ready''> '",
    ),
    "zsh": (
        ["zsh", "-f", "-i"],
        "unsetopt zle_bracketed_paste beep; bindkey -e; autoload -Uz compinit; compinit -D; PROMPT='ready''> '",
    ),
}


class Terminal:
    """A shell on a pseudo-terminal.

    :ivar seen: its output
    """

    def __init__(self, shell: str, folder: Path) -> None:
        import pty

        variables = {**environment(), "TERM": "dumb", "HOME": str(folder), "HISTFILE": os.devnull}
        variables["PATH"] = f"{folder.parent / 'bin'}{os.pathsep}{variables['PATH']}"
        self.seen = ""
        arguments, first_line = SHELLS[shell]
        self._process, self._terminal = pty.fork()
        if not self._process:
            os.chdir(folder)
            os.execvpe(arguments[0], arguments, variables)
        self.type(f"{first_line}\n")
        self.wait(PROMPT)
        self.type(f'eval "$(pressmark completion {shell})"\n')
        self.wait(PROMPT)

    def type(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def wait(self, pattern: str) -> re.Match[str]:
        """Wait for a match of ``pattern``, and return it."""
        deadline = time.monotonic() + PATIENCE
        while (found := re.search(pattern, self.seen, re.DOTALL)) is None:
            assert time.monotonic() < deadline, (pattern, self.seen)
            if select.select([self._terminal], [], [], 1)[0]:
                self.seen += os.read(self._terminal, 1 << 16).decode()
        self.seen = self.seen[found.end() :]
        return found

    def close(self) -> None:
        os.kill(self._process, signal.SIGKILL)
        os.waitpid(self._process, 0)
        os.close(self._terminal)

    def completed(self, typed: str) -> str:
        """Return the words of the command line after TAB, separated by spaces."""
        # Ctrl-A moves to the start of the line: the shell prints the words.
        self.type(f"{typed}\t\x01printf '%s ' '<<' \x05 '>>'\n")
        words = self.wait("<< (.*?) >> ")[1]
        self.wait(PROMPT)
        return words


@pytest.fixture(params=SHELLS)
def terminal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Terminal]:
    """A shell that completes, in a folder with a few files."""
    if os.name != "posix" or shutil.which(request.param) is None:
        pytest.skip(f"{request.param} not found")
    script = tmp_path / "bin" / "pressmark"
    script.parent.mkdir()
    quoted = " ".join(f"'{word}'" for word in COMMAND)
    script.write_text(f'#!/bin/sh\nexec {quoted} "$@"\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    folder = tmp_path / "home"
    (folder / "volumes").mkdir(parents=True)
    (folder / "SHA512SUMS").touch()
    found = Terminal(request.param, folder)
    yield found
    found.close()


def test_shells_complete(terminal: Terminal) -> None:
    """Commands, layouts, algorithms after a comma, kinds and files are completed."""
    for typed, expected in (
        ("pressmark verif", "pressmark verify"),
        ("pressmark bag cr", "pressmark bag create"),
        ("pressmark hash --exclude-j", "pressmark hash --exclude-junk"),
        ("pressmark map 0012-", "pressmark map 0012-hash-and-no-prefix-id-n-tuple-storage-layout"),
        ("pressmark store init ocfl root --layout vit", "pressmark store init ocfl root --layout vitro"),
        ("pressmark hash -a sha512,md", "pressmark hash -a sha512,md5"),
        ("pressmark store init pair", "pressmark store init pairtree"),
        ("pressmark store check root --kind oc", "pressmark store check root --kind ocfl"),
        ("pressmark verify SHA", "pressmark verify SHA512SUMS"),
        ("pressmark hash vol", "pressmark hash volumes"),
    ):
        assert terminal.completed(typed).rstrip(" /") == expected


def candidates(quick: Run, monkeypatch: pytest.MonkeyPatch, shell: str, words: str) -> list[str]:
    """Return what Pressmark answers a completion script; the last word is incomplete."""
    monkeypatch.setenv("_PRESSMARK_COMPLETE", f"{shell}_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
    done = quick()
    assert (done.stderr, done.returncode) == (b"", 0)
    lines = done.stdout.decode().splitlines()
    if shell == "bash":
        return [line.partition(",")[2] for line in lines]
    return [value for kind, value, _help in zip(*[iter(lines)] * 3, strict=True) if kind == "plain"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "powershell"])
def test_candidates(quick: Run, monkeypatch: pytest.MonkeyPatch, shell: str) -> None:
    """Layouts are completed by name and by alias, algorithms in lists, kinds by name; nothing is written to stderr."""
    if shell == "powershell" and quick("completion", "powershell").returncode:
        pytest.skip("this click does not know PowerShell")

    def found(words: str) -> list[str]:
        return candidates(quick, monkeypatch, shell, words)

    for words in ("map 000", "store ls root --layout 000", "compare ids.txt --layout 000"):
        assert found(f"pressmark {words}")[:3] == ["0002", "0002-flat-direct-storage-layout", "0003"]
    assert found("pressmark layouts vi") == ["vitro"]
    assert found("pressmark migrate a b --source-layout pairt") == ["pairtree"]
    assert found("pressmark hash -a xxh") == [name for name in ALGORITHMS if name.startswith("xxh")]
    assert found("pressmark hash -a md5,sha3-2") == ["md5,sha3-224", "md5,sha3-256"]
    assert found("pressmark bag update bag --add-algorithm sha1,md") == ["sha1,md5"]
    assert found("pressmark store init ") == list(KINDS)
    assert found("pressmark compl") == ["completion"]
    # Words that are wrong so far.
    assert found("pressmark map none ids.txt --on-error s") == ["stop", "skip"]
    assert found("pressmark store get root id copy --version x --copy-mode c") == ["copy"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_script(run: Run, shell: str) -> None:
    """The script names the program; the shell accepts it, if it is installed."""
    done = run("completion", shell)
    if shell == "powershell" and done.returncode:
        assert done.stderr.startswith(b"pressmark: completion in powershell requires click 8.5")
        return
    assert (done.stderr, done.returncode) == (b"", 0)
    assert b"_PRESSMARK_COMPLETE" in done.stdout
    if shell != "powershell" and shutil.which(shell):
        checked = subprocess.run([shell, "-n"], input=done.stdout, capture_output=True, timeout=PATIENCE, check=False)
        assert (checked.stderr, checked.returncode) == (b"", 0)


def test_unknown_shell(run: Run) -> None:
    """Another shell is a usage error that lists the known ones."""
    done = run("completion", "tcsh")
    assert done.returncode == 2
    assert b"'bash', 'zsh', 'fish', 'powershell'" in done.stderr
