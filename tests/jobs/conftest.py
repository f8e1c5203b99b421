"""Fixtures shared by the tests of jobs."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def no_flushing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not flush hundreds of small chunks in this process; other processes flush as usual."""
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)
