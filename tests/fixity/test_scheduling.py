"""The choice between lanes and hashlib."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pressmark import _kernels
from pressmark.fixity import ALGORITHMS
from pressmark.fixity.algorithms import CHECKSUMS
from pressmark.fixity.scheduling import LANE_RATES, SERIAL_RATES, SMALL, WITH_SHA512, WITHOUT_EXTENSIONS, Plan

MIB = 1 << 20


WIDTHS = {"portable": 4, "avx2": 8, "avx512": 16, "neon": 8, "neon-sha2": 8, "neon-sha3": 8}


def lanes(monkeypatch: pytest.MonkeyPatch, level: str, extensions: int) -> None:
    wide = WIDTHS[level]
    counts = {name: wide // (1 if name in ("sha1", "sha224", "sha256") else 2) for name in LANE_RATES}
    counts["md5"] = 2 * wide if level in ("avx2", "avx512") else wide
    kernels = SimpleNamespace(
        lane_level=lambda: level, lane_count=lambda name: counts.get(name, 0), sha_extensions=lambda: extensions
    )
    monkeypatch.setattr(_kernels, "active", kernels)


def test_tables() -> None:
    """Every algorithm has a serial rate."""
    assert set(SERIAL_RATES) == {*ALGORITHMS, *CHECKSUMS}
    assert set(WITHOUT_EXTENSIONS) | set(WITH_SHA512) <= set(LANE_RATES) <= set(ALGORITHMS)
    assert {level for rates in LANE_RATES.values() for level in rates} == set(WIDTHS)


@pytest.mark.parametrize(
    ("level", "extensions", "expected"),
    [
        ("portable", 1, {"md5", "blake2b-512"}),
        ("portable", 0, {"md5", "blake2b-512", "sha1", "sha256"}),
        ("avx2", 1, {"md5", "blake2b-512", "sha1", "sha512"}),
        ("avx2", 0, {"md5", "blake2b-512", "sha1", "sha256", "sha512"}),
        ("avx512", 1, {"md5", "blake2b-512", "sha1", "sha256", "sha512"}),
        ("neon", 0, {"md5", "blake2b-512", "sha1", "sha256"}),
        ("neon", 1, {"md5", "blake2b-512", "sha1"}),
        ("neon-sha2", 1, {"md5", "blake2b-512", "sha1", "sha256"}),
        ("neon-sha3", 2, {"md5", "blake2b-512", "sha1", "sha256", "sha512"}),
    ],
)
def test_algorithms(monkeypatch: pytest.MonkeyPatch, level: str, extensions: int, expected: set[str]) -> None:
    """The algorithms for lanes depend on the level and on the SHA extensions."""
    lanes(monkeypatch, level, extensions)
    names = ["md5", "sha1", "sha256", "sha512", "blake2b-512", "blake3", "sha3-256", "xxh64"]
    plan = Plan(names, 2)
    assert set(plan.lanes) == expected
    assert set(plan.lanes) | set(plan.serials) == set(names)


@pytest.mark.parametrize(
    ("sizes", "serial"),
    [
        ([], 0),
        ([MIB], 1),
        ([MIB] * 2, 2),
        ([MIB] * 1000, 0),
        ([MIB] * 16, 0),
        ([1024 * MIB, *[MIB] * 2000], 1),
        ([1024 * MIB] * 2 + [MIB] * 100, 2),
        ([100] * 5000, 0),
    ],
)
def test_files(monkeypatch: pytest.MonkeyPatch, sizes: list[int], serial: int) -> None:
    """Few files, and files much larger than the others, are serial."""
    lanes(monkeypatch, "avx512", 1)
    assert Plan(["sha512"], 2).serial_files(sizes, 0) == serial


def test_backlog(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a backlog, lanes pay off for fewer new files."""
    lanes(monkeypatch, "avx512", 1)
    plan = Plan(["sha512"], 2)
    assert plan.serial_files([MIB], 1000 * MIB) == 0


@pytest.mark.parametrize(
    ("sizes", "serial"), [([], 0), ([100] * 100, 0), ([SMALL], 0), ([MIB, SMALL + 1, SMALL, 0], 2), ([MIB] * 10, 10)]
)
def test_without_lanes(monkeypatch: pytest.MonkeyPatch, sizes: list[int], serial: int) -> None:
    """Without lanes, only small files are batched; the others are serial."""
    lanes(monkeypatch, "avx512", 1)
    assert Plan(["blake3", "sha3-256"], 2).serial_files(sizes, 0) == serial
