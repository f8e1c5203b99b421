"""Links between pages lead to existing files and headings, and commands in the text exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from pressmark.cli import main

from .pages import DOCS, ROOT, name_of, pages, prose

pytestmark = pytest.mark.skipif(not DOCS.exists(), reason="the tests stand apart from the documents")

# Not every folder with tests has these.
MORE = [path for path in (ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md") if path.exists()]
_LINK = re.compile(r"\[[^]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"`([^`\n]+)`")


def headings(page: Path) -> set[str]:
    """Return the anchors of a page, as Python-Markdown makes them."""
    found = set()
    for title in re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE):
        words = re.sub(r"[^\w\s-]", "", re.sub(r"`|\[|\]\([^)]*\)", "", title)).strip().lower()
        found.add(re.sub(r"[-\s]+", "-", words))
    found.update(re.findall(r"^::: ([\w.]+)$", prose(page), re.MULTILINE))
    return found | set(re.findall(r"<a id=\"([\w-]+)\">", prose(page)))


@pytest.mark.parametrize("page", [*pages(), *MORE], ids=name_of)
def test_links(page: Path) -> None:
    """The target of each link is a file of the documentation, and its anchor a heading."""
    broken = []
    for target in _LINK.findall(re.sub(r"`[^`\n]*`", "", prose(page))):
        name, _, anchor = target.partition("#")
        if re.match(r"https://", target):
            continue
        path = (page.parent / name).resolve() if name else page
        if not path.exists() or (anchor and anchor not in headings(path)):
            # The wheel's tests stand beside few files of the source tree.
            if (ROOT / "src").is_dir() or path.is_relative_to(DOCS):
                broken.append(target)
        elif page.is_relative_to(DOCS) and not path.is_relative_to(DOCS):
            broken.append(f"{target}: not part of the site")
    assert broken == []


def usage_errors(text: str) -> list[str]:
    """Return the subcommands and options in ``text`` that do not exist."""
    words = shlex.split(text, comments=True)[1:]
    command: click.Command = main
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.commands.get(words[0]) or command.get_command(click.Context(command), words[0])
        if found is None:
            return [words[0]]
        command, words = found, words[1:]
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    return [word for word in words if re.match(r"--\w", word) and word.partition("=")[0] not in {*known, "--help"}]


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_commands_in_the_text(page: Path) -> None:
    """Every command in the text has an existing name and existing options."""
    for text in _CODE.findall(prose(page)):
        if text.startswith("pressmark ") and not text.startswith("pressmark --version"):
            assert (text, usage_errors(text.replace("|", " "))) == (text, [])


def test_every_page_is_linked() -> None:
    """Every page of the site is in the navigation of mkdocs.yml."""
    settings = ROOT / "mkdocs.yml"
    if not settings.exists():
        pytest.skip("no mkdocs.yml")
    text = settings.read_text(encoding="utf-8")
    missing = [page.relative_to(DOCS).as_posix() for page in sorted(DOCS.rglob("*.md"))]
    assert [page for page in missing if f" {page}\n" not in text] == []
