"""The tables of the kinds of errors have the kinds that the source has, and no others."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import pressmark
from pressmark.errors import IdentifierError
from pressmark.fixity.hasher import CHANGED
from pressmark.fs import file_errors
from pressmark.stores import exceptions

from .pages import DOCS

pytestmark = pytest.mark.skipif(not DOCS.exists(), reason="an installed package has no pages")

STORES = Path(pressmark.__file__).parent / "stores"
# The position of the kind among the arguments of each call that makes an error.
CALLS = {"ObjectError": 2, "SourceError": 0, "_error": 0, "error": 0, "_unverified": 0}


def kinds() -> Iterator[str]:
    """Yield the kinds of errors of objects."""
    yield from (kind for kind, _advice in exceptions._REFUSALS.values())
    yield from ("io-error", CHANGED, IdentifierError.kind)
    for path in STORES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and (at := CALLS.get(ast.unparse(node.func).rpartition(".")[2])) is not None:
                found = node.args[at] if len(node.args) > at else None
                if isinstance(found, ast.Constant) and isinstance(found.value, str):
                    yield found.value


def rows(number: int) -> list[str]:
    """Return the first cells of a table of the page."""
    text = (DOCS / "reference" / "object-errors.md").read_text()
    tables = re.findall(r"^\| kind \|.*\n\| --- .*\n((?:\|.*\n)+)", text, re.MULTILINE)
    return re.findall(r"^\| `([^`]+)` \|", tables[number], re.MULTILINE)


def test_kinds_of_objects() -> None:
    """The table has each kind once, in alphabetical order."""
    assert rows(0) == sorted(set(kinds()))


def test_kinds_of_files() -> None:
    """The table has the kinds of the module, in its order."""
    assert rows(1) == re.findall(r"^``(\S+)``", file_errors.__doc__ or "", re.MULTILINE)
