"""How many files are copied by each call."""

from __future__ import annotations

from typing import Any

import pytest

from pressmark.stores import object_sources


def count_copies(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets the number of files of each following run of copies."""
    counts: list[int] = []
    copy = object_sources.copy_files

    def counted(tasks: Any, *rest: Any, **options: Any) -> Any:
        given = list(tasks)
        counts.append(len(given))
        return copy(given, *rest, **options)

    monkeypatch.setattr(object_sources, "copy_files", counted)
    return counts
