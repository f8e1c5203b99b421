"""What the tests of jobs share."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def no_flushing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of small chunks need not survive the loss of the machine; other processes flush as always."""
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)
