"""Programs that hash files, each on one core: two Go libraries, b3sum, rclone, and programs of the system."""

from __future__ import annotations

import functools
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.peers import environments
from benchmarks.peers.environments import HERE, Unavailable
from pressmark import _kernels

__all__ = ["PROGRAMS", "Program", "Words", "b3sum_program", "for_each_file", "installed"]

B3SUM = "1.8.7"

Words = Sequence[str | Path]


class Program(NamedTuple):
    """A program that hashes the files of a directory, and prints a digest and a path on each line.

    :ivar command: from an algorithm of Pressmark, the directory, and a file with the path of each of its files; raises
        ``Unavailable``
    :ivar version: returns its version
    """

    name: str
    algorithms: tuple[str, ...]
    command: Callable[[str, Path, Path], Words]
    version: Callable[[], str]


def for_each_file(tool: str, folder: Path, processes: int) -> Words:
    """Return a command that passes all files below a directory to a program, 1,000 at a time."""
    line = f'find "$0" -type f -print0 | xargs -0 -n 1000 -P {processes} {tool}'
    return "sh", "-c", line, folder


def installed(name: str) -> str:
    """Return the name of a program of the system."""
    if shutil.which(name) is None:
        raise Unavailable(f"{name} is not installed")
    return name


def printed(*command: str | Path) -> str:
    """Return the version in the output of a program."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    return match[0] if (match := re.search(r"\d+(\.\d+)+", done.stdout)) else ""


# --- programs ---------------------------------------------------------------------------------------------------------


@functools.cache
def _go_program() -> Path:
    environments.go("go-hashes")
    return environments.BUILD / "go-hashes" / "runner"


def _go_module(name: str) -> str:
    """Return the pinned version of a module."""
    return re.search(rf"/{name} v(\S+)", (HERE / "go-hashes" / "go.mod").read_text())[1]


def _go_hashes(algorithm: str, _folder: Path, paths: Path) -> Words:
    return _go_program(), algorithm, paths


def _go_avx512(algorithm: str, folder: Path, paths: Path) -> Words:
    if _kernels.load("native").best_level() != "avx512":
        raise Unavailable("this processor has no AVX-512")
    return _go_hashes(f"{algorithm}-avx512", folder, paths)


@functools.cache
def b3sum_program() -> Path:
    """Return b3sum, which is built if it is missing."""
    return environments.cargo_install("b3sum", B3SUM)


def _b3sum(_algorithm: str, folder: Path, _paths: Path) -> Words:
    return for_each_file(f"{shlex.quote(str(b3sum_program()))} --num-threads 1", folder, 1)


def _xxhsum(_algorithm: str, folder: Path, _paths: Path) -> Words:
    return for_each_file(f"{installed('xxhsum')} -H2", folder, 1)


def _coreutils(algorithm: str, folder: Path, _paths: Path) -> Words:
    return for_each_file(installed(f"{algorithm}sum"), folder, 1)


def _hashdeep(algorithm: str, folder: Path, _paths: Path) -> Words:
    return installed("hashdeep"), "-j0", "-c", algorithm, "-r", folder


@functools.cache
def _rclone_program() -> Path:
    return environments.interpreter("buckets").with_name("rclone")


def _rclone(algorithm: str, folder: Path, _paths: Path) -> Words:
    one = ("--checkers", "1", "--transfers", "1")
    return "env", "GOMAXPROCS=1", _rclone_program(), "--config", "", *one, "hashsum", algorithm, folder


PROGRAMS = (
    Program("md5-simd", ("md5",), _go_hashes, lambda: _go_module("md5-simd")),
    Program("sha256-simd", ("sha256",), _go_hashes, lambda: _go_module("sha256-simd")),
    Program("AVX-512 server of sha256-simd", ("sha256",), _go_avx512, lambda: _go_module("sha256-simd")),
    Program("b3sum", ("blake3",), _b3sum, lambda: B3SUM),
    Program("xxhsum", ("xxh128",), _xxhsum, lambda: printed("xxhsum", "--version")),
    Program("hashdeep", ("md5", "sha1", "sha256"), _hashdeep, lambda: printed("hashdeep", "-V")),
    Program(
        "rclone hashsum",
        ("md5", "sha1", "sha256", "sha512", "blake3", "xxh128"),
        _rclone,
        lambda: printed(_rclone_program(), "version"),
    ),
    Program("coreutils", ("md5", "sha1", "sha256", "sha512"), _coreutils, lambda: printed("sha256sum", "--version")),
)
