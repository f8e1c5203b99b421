"""What tests of migration share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Where a source is to be made."""
    return tmp_path / "source"
