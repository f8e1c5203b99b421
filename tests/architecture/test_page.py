"""docs/explanation/architecture.md mentions only files and folders that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "architecture.md"


@pytest.mark.repository
def test_paths_exist() -> None:
    """Paths are relative to the package, or to the repository for tests and scripts."""
    text = PAGE.read_text(encoding="utf-8")
    named = {name for name in re.findall(r"`([\w./]+)`", text) if "/" in name or name.endswith(".py")}
    # A module without a path names a role that several packages have.
    named -= {"job.py", "__init__.py", "store.py", "tables.py"}
    assert len(named) > 30
    assert {
        name for name in named if not any((base / name).exists() for base in (ROOT / "src/pressmark", ROOT))
    } == set()
