"""Flushing files to disk."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from pressmark.fs import durable

fcntl = pytest.importorskip("fcntl")


@pytest.mark.parametrize("supported", [True, False])
def test_the_cache_of_the_drive_on_macos(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, supported: bool) -> None:
    """On macOS, the call that empties the cache of the drive is used; where a file system lacks it, ``fsync``."""
    calls: list[str] = []

    def full(_descriptor: int, command: int) -> int:
        calls.append(f"fcntl {command}")
        if not supported:
            raise OSError
        return 0

    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", full)
    monkeypatch.setattr(os, "fsync", lambda _descriptor: calls.append("fsync"))
    durable.flush_path(os.fsencode(tmp_path))
    assert calls == ["fcntl 51"] + ["fsync"] * (not supported)
