"""The examples in docstrings run, each module's in an empty directory."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path
from unittest import mock

import pytest

import pressmark
from pressmark.layouts import list_layouts
from pressmark.layouts.base import CLASSES
from support.implementations import Implementation

PACKAGE = Path(pressmark.__file__).parent


def modules() -> list[str]:
    """Return the names of the modules with examples."""
    paths = (path for path in sorted(PACKAGE.rglob("*.py")) if ">>> " in path.read_text(encoding="utf-8"))
    return [
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__") for path in paths
    ]


@pytest.mark.parametrize("name", modules())
def test_examples(name: str, implementation: Implementation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every example gives its output, and none is skipped."""
    monkeypatch.chdir(tmp_path)
    runner = doctest.DocTestRunner(verbose=False)
    failures: list[str] = []
    examples = doctest.DocTestFinder().find(importlib.import_module(name), name)
    list_layouts()  # loads those of the package
    with mock.patch.dict(CLASSES):  # an example defines a layout, which other tests do not know
        for found in examples:
            runner.run(found, out=failures.append)
    assert "".join(failures) == ""
    assert runner.tries > 0
    assert not [one.source for found in examples for one in found.examples if one.options.get(doctest.SKIP)]
