"""The lanes on other systems: cross-compiled, run under qemu's user emulation or wine, and compared with hashlib.

ci/emulate runs many more tests there; these need only a cross compiler and qemu or wine.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from native_lanes.lanes_library import ALGORITHMS, SOURCES, reference

pytestmark = pytest.mark.repository

NEON = ["portable", "neon", "neon-sha2", "neon-sha3"]
X86 = ["portable", "avx2", "avx512"]
# Compiler, emulator, and the levels that the emulated processor runs.
PROCESSORS = {
    "aarch64": ("aarch64-linux-gnu-gcc", ["qemu-aarch64", "-cpu", "max"], NEON),
    "aarch64 without SHA-512": ("aarch64-linux-gnu-gcc", ["qemu-aarch64", "-cpu", "cortex-a57"], NEON[:3]),
    "big endian": ("s390x-linux-gnu-gcc", ["qemu-s390x", "-cpu", "max"], ["portable"]),
    "32 bits": ("arm-linux-gnueabihf-gcc", ["qemu-arm", "-cpu", "max"], ["portable"]),
    # The levels are those of this machine's processor. Debian's package wine64 has no program in PATH.
    "Windows": ("x86_64-w64-mingw32-gcc", [shutil.which("wine64") or "/usr/lib/wine/wine64"], None),
}
# All numbers of blocks, full sets of lanes, and leftovers.
LENGTHS = [*range(0, 300, 7), *[26] * 40, 1000, 5000]


@pytest.mark.parametrize("processor", PROCESSORS)
def test_digests(processor: str, tmp_path: Path) -> None:
    """Every level has the digests of hashlib, and compiles without a warning."""
    compiler, emulator, levels = PROCESSORS[processor]
    for name in (compiler, emulator[0]):
        if shutil.which(name) is None:
            pytest.skip(f"{name} is not installed")
    probe = [compiler, "-static", "-x", "c", "-", "-o", str(tmp_path / "probe")]
    source = b"#include <stdio.h>\nint main(void) { return 0; }\n"
    if subprocess.run(probe, input=source, stderr=subprocess.DEVNULL, check=False).returncode:
        pytest.skip(f"{compiler} has no C library")
    program = tmp_path / "run_lanes.exe"  # MinGW adds the suffix
    driver = Path(__file__).with_name("run_lanes.c")
    sources = [driver, *sorted(SOURCES.glob("*.c"))]
    flags = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-static", f"-I{SOURCES}", "-o", str(program)]
    subprocess.run([compiler, *flags, *map(str, sources)], check=True)
    messages = [random.Random(length).randbytes(length) for length in LENGTHS]
    command = [*emulator, str(program), *map(str, LENGTHS)]
    environment = {**os.environ, "WINEPREFIX": str(tmp_path / "wine"), "WINEDEBUG": "-all"}
    done = subprocess.run(command, input=b"".join(messages), stdout=subprocess.PIPE, env=environment, check=True)
    found = {
        (level, ALGORITHMS[int(number)]): hexes
        for level, number, hexes in map(str.split, done.stdout.decode().splitlines())
    }
    names = list(dict.fromkeys(level for level, _algorithm in found))
    assert names == (levels or X86[: len(names)])
    for (level, algorithm), hexes in found.items():
        hashed = reference(algorithm)
        assert hexes == "".join(hashed(message).hexdigest() for message in messages), f"{algorithm} at {level}"
