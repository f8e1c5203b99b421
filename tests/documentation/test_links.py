"""Links between pages lead to existing files and headings, and commands in the text exist."""

from __future__ import annotations

import importlib.util
import re
import shlex
import tomllib
from pathlib import Path
from types import ModuleType

import click
import pytest

import pressmark
from pressmark import bagit, migrate, stores
from pressmark.cli import main

from .pages import DOCS, ROOT, name_of, pages, prose

pytestmark = pytest.mark.skipif(not DOCS.exists(), reason="the tests stand apart from the documents")

# Not every folder with tests has these.
MORE = [path for path in (ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md") if path.exists()]
# What the hook of MkDocs adds to the site.
ADDED = [ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "examples/tour.ipynb")]
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
        elif page.is_relative_to(DOCS) and not path.is_relative_to(DOCS) and path not in ADDED:
            broken.append(f"{target}: not part of the site")
    assert broken == []


def site_hook() -> ModuleType:
    """Return the hook of MkDocs."""
    path = ROOT / "ci" / "site.py"
    if not path.exists():
        pytest.skip("the tests stand apart from ci")
    spec = importlib.util.spec_from_file_location("site_hook", path)
    assert spec is not None
    assert spec.loader is not None
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    return hook


def test_pages_that_the_site_adds() -> None:
    """Links to files that the site adds, and from these, lead to pages of the site; others are unchanged."""
    hook = site_hook()
    assert [ROOT / name for name in hook.ADDED] == ADDED
    text = "[a](../../CHANGELOG.md#unreleased) [b](../performance.md) [c](https://example.org/SECURITY.md) [d](#here)"
    expected = text.replace("../../CHANGELOG.md", "../project/changelog.md")
    assert hook.relinked(text, "how-to/page.md") == expected
    text = "[a](docs/explanation/architecture.md) [b](SECURITY.md) ![c](docs/terminal.svg)"
    expected = "[a](../explanation/architecture.md) [b](security.md) ![c](../terminal.svg)"
    assert hook.relinked(text, "project/contributing.md") == expected


def test_the_search_finds_each_kind_of_problem() -> None:
    """Each kind of problem and each status has an entry of its own in the index of the search."""
    hook = site_hook()
    for name, words in (
        ("bagit-problems", bagit.KINDS),
        ("store-problems", stores.PROBLEM_KINDS),
        ("migration-statuses", migrate.STATUSES),
    ):
        found = hook.rows((DOCS / "reference" / f"{name}.md").read_text(encoding="utf-8"))
        assert {*words} <= {word for word, _text in found}
        assert len({word for word, _text in found}) == len(found)
        assert all(text for _word, text in found)


@pytest.mark.parametrize("word", ["s3", "ocfl", "storage", "store", "bags", "migrate", "collisions"])
def test_the_search_finds_pages_by_their_titles(word: str) -> None:
    """The title of a page has the word by itself: the search splits titles at spaces and hyphens only."""
    titles = [page.read_text(encoding="utf-8").partition("\n")[0] for page in pages() if page.is_relative_to(DOCS)]
    assert [title for title in titles if word in re.split(r"[\s-]+", title.lower())]


def test_one_description() -> None:
    """The package, its docstring, the recipe and the site have one description."""
    if not (ROOT / "recipe").exists():
        pytest.skip("the tests stand apart from the recipe")
    description = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["description"]
    assert pressmark.__doc__ == f"{description}."
    for name, key in (("recipe/recipe.yaml", "summary"), ("mkdocs.yml", "site_description")):
        assert f'{key}: "{description}"\n' in (ROOT / name).read_text(encoding="utf-8")


INDEXES = ("pypi.org/project", "crates.io", "pkg.go.dev", "npmjs.com", "sonatype.com", "pypi.org/packages")


@pytest.mark.parametrize("page", [*pages(), *MORE], ids=name_of)
def test_links_lead_to_the_sites_of_projects(page: Path) -> None:
    """No link leads to a package index: it says less than the project's own site, and not in its words."""
    assert [link for link in _LINK.findall(prose(page)) if any(index in link for index in INDEXES)] == []


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
