"""Messages of commands on stores, of migrations and of changes: none advises to delete what may be the only copy."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from pressmark.bagit.problems import REMEDIES as OF_BAGS
from pressmark.migrate.reporting.page import REMEDIES, remedies_for
from ways.stores import KINDS, make_store

# An imperative after a comma or a semicolon.
DELETES = re.compile(
    r"[;,] (?:or )?(?:remove|delete|drop|discard) (?:it|them|one|that|this|the)\b|(?:run|use) pressmark store rm"
)
SOURCES = Path(__file__).parents[2] / "src" / "pressmark"


@pytest.mark.parametrize("kind", KINDS)
def test_an_existing_object_is_not_advised_away(kind: str, tmp_path: Path, call: Any, implementation: Any) -> None:
    """``--replace`` replaces an object; the history of an OCFL object stays only with it."""
    store = make_store(kind, tmp_path / "store", {"one": {"a.txt": b"a"}})
    (tmp_path / "new.txt").write_bytes(b"new")
    found = call("store", "put", f"{store}", "one", f"{tmp_path / 'new.txt'}")
    assert found.exit_code == 1
    assert "--replace" in found.stderr
    assert not DELETES.search(found.stderr), found.stderr
    assert ("add a version" in found.stderr) == (kind == "ocfl")


def test_no_hint_deletes() -> None:
    """No message of the source code advises to delete, and no table of remedies."""
    found = [
        f"{path.relative_to(SOURCES)}:{number}: {line.strip()}"
        for path in sorted(SOURCES.rglob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if '"' in line and '"""' not in line and DELETES.search(line)
    ]
    assert not found, "\n".join(found)
    for remedies in (OF_BAGS, REMEDIES, remedies_for(True)):
        assert not [text for text in remedies.values() if re.search(r"\b(?:remove|delete|rm|discard)\b", text)]
