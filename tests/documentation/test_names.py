"""The overview of the Python reference lists every public name."""

from __future__ import annotations

import re

import pytest

from .pages import DOCS

pytestmark = pytest.mark.skipif(not DOCS.exists(), reason="the pages are not here")


def test_the_overview_links_every_name() -> None:
    """Each name on a page of a module has its link on the overview, and each link leads to a name."""
    folder = DOCS / "reference" / "python"
    listed = {
        f"{page.name}#{name}"
        for page in folder.glob("*.md")
        for name in re.findall(r"^::: (\S+)$", page.read_text(), re.MULTILINE)
        if name != f"pressmark.{page.stem}"
    }
    linked = re.findall(r"\]\(([\w.]+\.md#pressmark\.[\w.]+)\)", (folder / "index.md").read_text())
    assert sorted(linked) == sorted(listed)
