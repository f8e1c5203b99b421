"""Lanes compared with hashlib: every algorithm, every level that this machine runs, and plain words.

The C files are compiled again and called through ctypes, because the extension modules export only a part of them.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import random
import shutil

import pytest

from native_lanes.lanes_library import ALGORITHMS, BANK_SIZE, LEVELS, SANITIZERS, Bank, build, packed, reference
from support.implementations import native_is_missing

pytestmark = [
    pytest.mark.repository,
    pytest.mark.skipif(os.name != "posix", reason="guard pages are made with mprotect"),
    pytest.mark.skipif(native_is_missing(), reason="there is no compiler to build the lanes with"),
]

COMPILER = shutil.which(os.environ.get("CC", "cc"))
# The build for machines without vector levels.
BUILDS = {"vectors": (), "plain words": ("-DPM_HAVE_X86_LEVELS=0", "-DPM_HAVE_NEON_LEVELS=0")}
CASES = [*(("vectors", level) for level in LEVELS), ("plain words", "portable")]
SEED = 20261120


class Subject:
    """One algorithm at one level, and its reference."""

    def __init__(self, library, level, algorithm, randomness):
        self.library, self.level, self.algorithm, self.randomness = library, level, algorithm, randomness
        self.hashed = reference(ALGORITHMS[algorithm])
        self.lanes = library.pm_lanes(level, algorithm)
        self.digest = library.pm_digest_size(algorithm)
        self.block = library.pm_block_size(algorithm)

    def messages(self, lengths):
        return [self.randomness.randbytes(length) for length in lengths]

    def column(self, messages):
        """Return the digests of a column whose memory ends at an inaccessible page."""
        data, offsets = packed(messages)
        out = ctypes.create_string_buffer(b"\xa5" * (self.digest * len(messages) + 64))
        with Guarded(data) as address:
            self.library.pm_digest_column(
                self.level, self.algorithm, address, offsets, ctypes.c_int64(len(messages)), out
            )
        assert out.raw[self.digest * len(messages) :] == b"\xa5" * 64 + b"\0", "wrote behind the digests"
        return [out.raw[at : at + self.digest] for at in range(0, self.digest * len(messages), self.digest)]

    def matches(self, messages):
        expected = [self.hashed(message).digest() for message in messages]
        found = self.column(messages)
        wrong = [(index, len(messages[index])) for index in range(len(messages)) if found[index] != expected[index]]
        assert not wrong, f"(message, length) wrong: {wrong[:8]}"


class Guarded:
    """A copy of data that ends at an inaccessible page: reading one byte too far always crashes."""

    libc = ctypes.CDLL(None, use_errno=True)

    def __init__(self, data):
        pages = -(-len(data) // mmap.PAGESIZE) * mmap.PAGESIZE
        self.memory = mmap.mmap(-1, pages + mmap.PAGESIZE)
        self.memory[pages - len(data) : pages] = data
        self.anchor = ctypes.c_char.from_buffer(self.memory)
        self.guard = ctypes.c_void_p(ctypes.addressof(self.anchor) + pages)
        self.address = ctypes.c_void_p(ctypes.addressof(self.anchor) + pages - len(data))

    def protect(self, protection):
        assert self.libc.mprotect(self.guard, mmap.PAGESIZE, protection) == 0

    def __enter__(self):
        self.protect(0)
        return self.address

    def __exit__(self, *exception):
        self.protect(mmap.PROT_READ | mmap.PROT_WRITE)
        del self.anchor
        self.memory.close()


def lengths_around_blocks(block):
    """Return lengths around the edges of blocks, and around block - 1 - length field, where padding needs a block."""
    edges = [blocks * block + shift for blocks in range(1, 10) for shift in (-18, -17, -16, -10, -9, -8, -1, 0, 1)]
    return [edge for edge in edges if edge >= 0]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Compile a build, once."""
    flags = SANITIZERS if os.environ.get("PRESSMARK_SANITIZE") else ("-O3",)
    return functools.cache(lambda name: build(COMPILER, (*flags, *BUILDS[name]), tmp_path_factory.mktemp("lanes")))


@pytest.fixture(scope="module", params=CASES, ids=" ".join)
def case(request, built):
    """The shared library of one of the builds, and one of its levels."""
    build_name, level_name = request.param
    library = built(build_name)
    assert library.pm_bank_size() <= BANK_SIZE
    level = LEVELS.index(level_name)
    if level > library.pm_best_level():
        pytest.skip(f"this machine does not run {level_name}")
    return library, level


@pytest.fixture(params=range(len(ALGORITHMS)), ids=ALGORITHMS)
def subject(request, case):
    """One algorithm at one level."""
    return Subject(*case, request.param, random.Random(SEED))


def test_every_length(subject):
    """Every length up to 300, alone and in all lanes at once, which is the fast path."""
    subject.matches(subject.messages(range(301)))
    for length in range(301):  # each length in all lanes at once: the fast path
        subject.matches(subject.messages([length] * subject.lanes))


def test_block_edges(subject):
    """Every length around the edges of one to nine blocks."""
    edges = lengths_around_blocks(subject.block)
    subject.matches(subject.messages(edges))
    for length in edges:
        subject.matches(subject.messages([length] * (subject.lanes + 1)))


def test_every_count(subject):
    """Every number of messages up to three times the lanes, including empty ones."""
    for count in range(3 * subject.lanes + 2):
        subject.matches(subject.messages(subject.randomness.randrange(15, 56) for _ in range(count)))
        subject.matches([b""] * count)


def test_ragged(subject):
    """Messages of very different lengths: leftovers, refilled lanes, and long messages among short ones."""
    pick = subject.randomness
    for largest in (60, 140, 400, 5_000):
        for count in (700, 1100):  # more than one window of the column
            subject.matches(subject.messages(pick.randrange(largest) for _ in range(count)))
    # One long message among short ones, at both ends and in the middle.
    for position in (0, 500, 999):
        lengths = [pick.randrange(15, 56) for _ in range(1000)]
        lengths[position] = 100_000
        subject.matches(subject.messages(lengths))
    # Enough long messages that the leftovers are processed more than once.
    subject.matches(subject.messages(pick.randrange(1100, 1500) for _ in range(5000)))


def test_part_of_a_column(subject):
    """Offsets that do not start at 0, with other bytes before and after; and an empty column."""
    out = ctypes.create_string_buffer(subject.digest)
    nothing = (ctypes.c_int64 * 2)()
    subject.library.pm_digest_column(subject.level, subject.algorithm, None, nothing, ctypes.c_int64(0), None)
    subject.library.pm_digest_column(subject.level, subject.algorithm, None, nothing, ctypes.c_int64(1), out)
    assert out.raw == subject.hashed().digest()
    messages = subject.messages(subject.randomness.randrange(80) for _ in range(200))
    data, offsets = packed(messages)
    for first, last in ((1, 199), (50, 51), (60, 130), (200, 200)):
        out = ctypes.create_string_buffer(subject.digest * (last - first) + 1)
        part = ctypes.byref(offsets, first * ctypes.sizeof(ctypes.c_int64))
        subject.library.pm_digest_column(
            subject.level, subject.algorithm, data, part, ctypes.c_int64(last - first), out
        )
        assert out.raw[:-1] == b"".join(subject.hashed(message).digest() for message in messages[first:last])


def test_every_split(subject):
    """Two updates, split at every position around three blocks, one position per lane."""
    length = 3 * subject.block + 5
    message = subject.randomness.randbytes(length)
    expected = subject.hashed(message).digest()
    bank = Bank(subject.library, subject.level, subject.algorithm)
    for base in range(0, length + 1, bank.lanes):
        cuts = [min(base + lane, length) for lane in range(bank.lanes)]
        bank.update([message[:cut] for cut in cuts])
        bank.update([message[cut:] for cut in cuts])
        found = bank.finish_many(range(bank.lanes))
        assert all(digest == expected for digest in found.values()), f"cut at {cuts}"


def test_bank_at_random(subject):
    """Random updates; lanes are idle, finish one by one or together at any time, and restart in the middle."""
    pick = subject.randomness
    bank = Bank(subject.library, subject.level, subject.algorithm)
    fed = [bytearray() for _ in range(bank.lanes)]
    sizes = (0, 0, 1, 7, subject.block - 1, subject.block, subject.block + 1, 3 * subject.block, 1000)
    for _ in range(1500):
        action = pick.random()
        if action < 0.7:
            pieces = [pick.randbytes(pick.choice(sizes)) for _ in range(bank.lanes)]
            bank.update(pieces)
            for message, piece in zip(fed, pieces, strict=True):
                message += piece
        elif action < 0.8:
            lane = pick.randrange(bank.lanes)
            assert bank.finish(lane) == subject.hashed(fed[lane]).digest(), f"lane {lane}, {len(fed[lane])} bytes"
            fed[lane].clear()
        elif action < 0.95:
            lanes = pick.sample(range(bank.lanes), pick.randint(1, bank.lanes))
            for lane, digest in bank.finish_many(lanes).items():
                assert digest == subject.hashed(fed[lane]).digest(), f"lane {lane}, {len(fed[lane])} bytes"
                fed[lane].clear()
        else:
            lane = pick.randrange(bank.lanes)
            bank.start(lane)
            fed[lane].clear()
