"""Public names: the overview lists each, the changelog those that went, and parameters have one spelling."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

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


PACKAGES = ("bagit", "compare", "errors", "fixity", "jobs", "layouts", "migrate", "reports", "stores")
OLD = Path(__file__).with_name("names_of_0_1.txt")
CHANGELOG = DOCS.parent / "CHANGELOG.md"


def is_public(name: str) -> bool:
    """Return whether a dotted name can be reached through names that are public."""
    parts = name.split(".")
    package = "pressmark" if len(parts) == 2 or parts[1][0].isupper() else ".".join(parts[:2])
    found: object = importlib.import_module(package)
    for part in name.removeprefix(f"{package}.").split("."):
        if (
            (part[0] == "_" and part != "__version__")
            or not hasattr(found, part)
            or part not in getattr(found, "__all__", [part])
        ):
            return False
        found = getattr(found, part)
    return True


def test_a_name_that_went_is_in_the_changelog() -> None:
    """Each public name of 0.1 is still one, or its word is in the table of names that changed."""
    table = CHANGELOG.read_text().partition("### Names that changed")[2].partition("\n### ")[0]
    before = [line.split("|")[1] for line in table.splitlines() if line.startswith("|")]
    words = {word for code in re.findall(r"`([^`]*)`", " ".join(before)) for word in re.findall(r"\w+", code)}
    gone = [name for name in OLD.read_text().split() if not is_public(name)]
    own = {name: [part for part in name.split(".")[1:] if part not in PACKAGES] for name in gone}
    assert [name for name in gone if words.isdisjoint(own[name])] == []


# Words of parameters that have another spelling here, with the callable that may use them for something else.
SPELLINGS = {
    "identifier": "id",
    "identifiers": "ids",
    "mode": "copy_mode",
    "field": "column",
    "on_event": "progress",
    "on_progress": "progress",
    "on_problem": "progress",
    "on_object": "progress",
    "on_result": "results",
    "on_excluded": "excluded",
    "on_failure": "errors",
    "dest": "destination",
    "directory_path": "path",
    "filename": "path",
    "nthreads": "threads",
}
OTHERWISE = {
    ("pressmark.bagit.Profile", "identifier"),  # BagIt-Profile-Identifier
    ("pressmark.compare.Comparison", "identifiers"),  # their number
    ("pressmark.migrate.Plan", "mode"),  # how files were copied, as in the rows of a run
    ("pressmark.migrate.Entry", "mode"),
    ("pressmark.jobs.WorkFolder.at", "on_progress"),  # of chunks that run in other processes
    ("pressmark.layouts.Vitro.object_path", "filename"),
    ("pressmark.stores.StoredObject", "identifier"),  # nobody constructs it
    ("pressmark.stores.BagFolder", "identifiers"),  # where the identifiers of bags come from
    ("pressmark.stores.BagFolder.create", "identifiers"),
    ("pressmark.Vitro.object_path", "filename"),  # the name of the one file of an object
    ("pressmark.Vitro.encode_filename", "filename"),
}


# Methods that only Pressmark calls.
INNER = {
    *("check_free", "existing", "find_at", "holds", "in_place", "look_up", "name_and_path"),
    *("path_for", "paths_for", "refuse_too_long", "withdraw"),
}


def signatures() -> Iterator[tuple[str, inspect.Signature]]:
    """Yield the signature of each public function, class and method."""
    for package in ("pressmark", *(f"pressmark.{name}" for name in PACKAGES)):
        module = importlib.import_module(package)
        for name in module.__all__:
            found = getattr(module, name)
            calls = {f"{package}.{name}": found}
            if inspect.isclass(found):
                members = inspect.getmembers(found, inspect.isroutine)
                calls |= {f"{package}.{name}.{one}": value for one, value in members if one[0] != "_"}
            for path, call in calls.items():
                if callable(call) and not (inspect.isclass(call) and issubclass(call, tuple)):
                    with suppress(ValueError, TypeError):
                        yield path, inspect.signature(call)


def test_one_spelling_each() -> None:
    """A parameter has one name in all calls."""
    found = [
        (path, name)
        for path, signature in signatures()
        for name in signature.parameters
        if name in SPELLINGS and (path, name) not in OTHERWISE and path.rpartition(".")[2] not in INNER
    ]
    assert [f"{path}({name}): {SPELLINGS[name]}" for path, name in found] == []
