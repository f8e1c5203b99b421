"""Build the lanes library with a C compiler and call it through ctypes, for the tests and the benchmark."""

import ctypes
import hashlib
import platform
import subprocess
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[2] / "src/pressmark/_kernels/native/digests/lanes"
ALGORITHMS = (
    "md5", "sha1", "sha224", "sha256", "sha384", "sha512", "sha512/224", "sha512/256",
    "blake2b-160", "blake2b-256", "blake2b-384", "blake2b-512",
)  # fmt: skip
SANITIZERS = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer")
# The levels of this architecture; "portable" everywhere.
LEVELS = {
    "x86_64": ("portable", "avx2", "avx512"),
    "i686": ("portable", "avx2", "avx512"),
    "aarch64": ("portable", "neon", "neon-sha2", "neon-sha3"),
    "arm64": ("portable", "neon", "neon-sha2", "neon-sha3"),
}.get(platform.machine(), ("portable",))
MAXIMUM_LANES = 32
BANK_SIZE = 8192  # more than sizeof(pm_bank), as check_lanes.py asserts
Offset = ctypes.c_int64
Pointers = ctypes.c_char_p * MAXIMUM_LANES
Lengths = ctypes.c_size_t * MAXIMUM_LANES


def build(compiler, flags, folder):
    """Compile all C files into one shared library in ``folder`` and load it."""
    target = Path(folder) / "lanes.so"
    sources = sorted(map(str, SOURCES.glob("*.c")))
    command = [
        compiler,
        "-std=c11",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-fPIC",
        "-shared",
        *flags,
        *sources,
        "-o",
        str(target),
    ]
    subprocess.run(command, check=True)
    library = ctypes.CDLL(str(target))
    library.pm_digest_size.restype = ctypes.c_size_t
    library.pm_block_size.restype = ctypes.c_size_t
    library.pm_bank_size.restype = ctypes.c_size_t
    return library


def reference(algorithm):
    """Return the hashlib constructor for an OCFL algorithm name."""
    if algorithm.startswith("blake2b-"):
        size = int(algorithm.removeprefix("blake2b-")) // 8
        return lambda message=b"": hashlib.blake2b(message, digest_size=size)
    name = algorithm.replace("/", "_")
    return lambda message=b"": hashlib.new(name, message, usedforsecurity=False)


def packed(messages):
    """Return messages as a packed column: one buffer and count + 1 offsets."""
    offsets = (Offset * (len(messages) + 1))()
    position = 0
    for index, message in enumerate(messages, 1):
        position += len(message)
        offsets[index] = position
    return b"".join(messages), offsets


class Bank:
    """A pm_bank with the required alignment."""

    def __init__(self, library, level, algorithm):
        self.library = library
        self.lanes = library.pm_lanes(level, algorithm)
        self.size = library.pm_digest_size(algorithm)
        self.memory = ctypes.create_string_buffer(BANK_SIZE + 64)
        self.address = ctypes.c_void_p((ctypes.addressof(self.memory) + 63) & ~63)
        library.pm_bank_init(self.address, level, algorithm)

    def start(self, lane):
        self.library.pm_bank_start(self.address, lane)

    def update(self, pieces):
        self.library.pm_bank_update(self.address, Pointers(*pieces), Lengths(*map(len, pieces)))

    def finish(self, lane):
        out = ctypes.create_string_buffer(self.size)
        self.library.pm_bank_finish(self.address, lane, out)
        return out.raw

    def finish_many(self, lanes):
        outs = {lane: ctypes.create_string_buffer(self.size) for lane in lanes}
        pointers = (ctypes.c_void_p * MAXIMUM_LANES)()
        for lane, out in outs.items():
            pointers[lane] = ctypes.addressof(out)
        self.library.pm_bank_finish_many(self.address, sum(1 << lane for lane in outs), pointers)
        return {lane: out.raw for lane, out in outs.items()}
