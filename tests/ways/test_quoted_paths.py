"""Messages quote paths in one way: :func:`pressmark.errors.quoted_path`.

Only a line of a command begins with a bare path, as the lines of grep do.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from pressmark.errors import quoted_path

SOURCES = Path(__file__).parents[2] / "src" / "pressmark"
DECODES = {"decode_fs", "fsdecode"}
#: Names of values that are paths or names of files.
PATHS = {"path", "name", "file", "link", "inside", "stranger", "target", "source", "one", "expected", "other"}
# Values of these names that are no paths: fields, columns, prefixes, identifiers and choices.
NO_PATHS = {
    "arrow.py",
    "lazy.py",
    "_kernels/__init__.py",
    "paths/systems.py",
    "stores/vitro/namespaces.py",
    "tabular/json_lines.py",
    "jobs/receipts.py",
    "jobs/chunks.py",
}


def _word(node: ast.expr) -> str:
    """Return the last name of ``a.b``, ``a.b()`` or ``a``."""
    if isinstance(node, ast.Call):
        return _word(node.func)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _messages(tree: ast.AST) -> Iterator[ast.JoinedStr]:
    """Yield the f-strings with a space, except those of ``__repr__``; others join paths."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef) and node.name == "__repr__":
            continue
        if isinstance(node, ast.JoinedStr) and any(isinstance(v, ast.Constant) and " " in v.value for v in node.values):
            yield node
        yield from _messages(node)


def _faults(path: Path) -> Iterator[str]:
    where = path.relative_to(SOURCES).as_posix()
    for message in _messages(ast.parse(path.read_text())):
        for number, value in enumerate(message.values):
            if not isinstance(value, ast.FormattedValue):
                continue
            word = _word(value.value)
            opens_line = where.startswith("cli/") and number == 0 and value.conversion == -1
            if word in DECODES and isinstance(value.value, ast.Call) and _word(value.value.args[0]).isupper():
                continue  # a name that a specification gives, such as ocfl_layout.json
            if isinstance(after := message.values[-1], ast.Constant) and "specify a str" in after.value:
                continue  # a name of a wrong type is no path
            is_quoted_otherwise = value.conversion == ord("r") and word in PATHS and where not in NO_PATHS
            if (word in DECODES and not opens_line) or is_quoted_otherwise:
                yield f"{where}:{value.lineno}: {ast.unparse(value.value)}"


def test_messages_quote_paths_by_one_function() -> None:
    """No message contains ``repr`` of a path, or a decoded path without quotes."""
    found = [line for path in sorted(SOURCES.rglob("*.py")) for line in _faults(path)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a b", "'a b'"),
        (b"a b", "'a b'"),
        ("it's", "'it's'"),
        (b"\xff\n", r"'\xff\n'"),
        ("\udcff", r"'\xff'"),
        ("x" * 3000, f"'{'x' * 3000}'"),
    ],
)
def test_quoted_paths_are_complete_on_one_line(path: str | bytes, expected: str) -> None:
    """A path is not truncated, and text and bytes look the same."""
    assert quoted_path(path) == expected
