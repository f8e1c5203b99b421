"""A hook of MkDocs: pages and files of the site that are not in docs, and links to them."""

from __future__ import annotations

import html
import json
import os
import posixpath
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
# Files of the repository, and where the site has them.
ADDED = {
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "examples/tour.ipynb": "project/tour.ipynb",
}
# A row of a table that the search finds by its first word, which is also its anchor.
_ROW = re.compile(r'^\| <a id="([^"]+)"></a>`\1` \| (.+) \|$', re.MULTILINE)
_LINK = re.compile(r"(?<=\]\()(?!https?:|#)([^)#\s]+)")


def on_files(files: Any, *, config: Any) -> Any:
    """Add the files."""
    from mkdocs.structure.files import File

    for source, name in ADDED.items():
        files.append(File.generated(config, name, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """Change links between files of the repository to links between files of the site."""
    name = page.file.src_uri
    return relinked(markdown, name)


def relinked(markdown: str, name: str) -> str:
    """Return a page of the site whose links to added files, or from one, lead to files of the site."""
    sources = {place: source for source, place in ADDED.items()}
    source = sources.get(name, f"docs/{name}")

    def target(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), match[1]))
        if path not in ADDED and name not in sources:
            return match[1]
        place = ADDED.get(path) or path.removeprefix("docs/")
        return os.path.relpath(place, posixpath.dirname(name) or ".")

    return _LINK.sub(target, markdown)


def on_post_build(*, config: Any) -> None:
    """Add the kinds of problems and the statuses to the index of the search, which only knows headings."""
    path = Path(config.site_dir, "search", "search_index.json")
    index = json.loads(path.read_text(encoding="utf-8"))
    for page in sorted(Path(config.docs_dir, "reference").glob("*.md")):
        url = f"reference/{page.stem}.html"
        index["docs"] += [
            {"location": f"{url}#{word}", "title": word, "text": f"<p>{text}</p>"}
            for word, text in rows(page.read_text(encoding="utf-8"))
        ]
    path.write_text(json.dumps(index, sort_keys=True, separators=(",", ":")), encoding="utf-8")


def rows(markdown: str) -> list[tuple[str, str]]:
    """Return the word and the sentences of each row that the search finds."""
    found = []
    for word, cells in _ROW.findall(markdown):
        texts = [re.sub(r"\[([^]]*)\]\([^)]*\)|`", r"\1", cell) for cell in cells.replace("\\|", " ").split(" | ")]
        found.append((word, html.escape("; ".join(filter(None, map(str.strip, texts))), quote=False)))
    return found
