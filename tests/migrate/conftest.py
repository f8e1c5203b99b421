"""Fixtures shared by the tests of migration, and with those of stores."""

from __future__ import annotations

from pathlib import Path

import pytest

from stores.conftest import disk_faults  # noqa: F401


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """The path of a source to create."""
    return tmp_path / "source"
