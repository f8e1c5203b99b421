"""The tables on the rows and the files of a migration name all of them."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from pressmark import migrate, stores
from pressmark.migrate.entry import ROW_KEYS

from .pages import DOCS, prose

pytestmark = pytest.mark.skipif(not DOCS.exists(), reason="an installed package has no pages")


def first_cells(text: str, head: str) -> set[str]:
    """Return the names in the first column of a table, without slashes."""
    rows = text.partition(f"\n| {head} |")[2].partition("\n\n")[0].splitlines()[2:]
    return {name.rstrip("/") for row in rows for name in re.findall(r"`([^`]+)`", row.split(" | ")[0])}


def test_every_column_is_described() -> None:
    """The guide describes the columns of a report, and no others."""
    text = prose(DOCS / "how-to" / "migrating.md")
    assert first_cells(text, "column of the rows | content") == set(ROW_KEYS)


@pytest.mark.parametrize("page", ["how-to/migrating.md", "reference/files.md"])
def test_every_file_is_described(tmp_path: Path, page: str) -> None:
    """The guide and the reference describe every file of a work folder."""
    (tmp_path / "file").write_text("content")
    (tmp_path / "map.tsv").write_text("a\tb\n")
    source = stores.create("pairtree", tmp_path / "source")
    source.put("a", tmp_path / "file")
    how = {"to": "pairtree", "move": True, "copy_mode": "copy", "new_ids": tmp_path / "map.tsv"}
    first = migrate.plan(tmp_path / "source", tmp_path / "new", **how)
    assert migrate.run(first, processes=False).ok
    source.put("c", tmp_path / "file")
    second = migrate.catch_up(first)
    assert migrate.run(second, processes=False).ok
    assert migrate.verify(second, processes=False).ok
    found = set(os.listdir(first.work)) | set(os.listdir(second.work))
    assert {"copied.jsonl", "removal", "map.jsonl", "migrated.jsonl", "verify-1"} < found
    assert found - set(re.findall(r"`([\w.-]+)[/`]", prose(DOCS / page))) == set()
