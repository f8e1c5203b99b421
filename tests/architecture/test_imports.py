"""Who may import whom: the house has floors, and nobody reaches up."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import pressmark

PACKAGE = Path(pressmark.__file__).parent

# What each part may import besides itself, top to bottom; nothing else, not even at the bottom of a function.
# A part is a module or package right under pressmark; of the kernels also each of theirs.
ALLOWED: dict[str, set[str]] = {
    "__main__": {"cli"},
    "cli": {"*"},
    "migrate": {
        "stores",
        "bagit",
        "layouts",
        "fixity",
        "jobs",
        "paths",
        "pages",
        "fs",
        "trees",
        "delimited",
        "tabular",
        "cores",
        "reports",
        "errors",
        "version",
    },
    "compare": {
        "stores",
        "layouts",
        "columns",
        "jobs",
        "paths",
        "pages",
        "tabular",
        "cores",
        "reports",
        "errors",
        "version",
    },
    "bench": {"layouts", "fixity", "columns", "cores", "errors", "version"},
    "stores": {"_kernels", "bagit", "layouts", "fixity", "fs", "trees", "cores", "reports", "errors", "version"},
    "bagit": {"_kernels", "_kernels.tables", "fixity", "fs", "trees", "reports", "errors", "version"},
    "jobs": {
        "stores",
        "bagit",
        "layouts",
        "columns",
        "fixity",
        "delimited",
        "tabular",
        "fs",
        "trees",
        "cores",
        "reports",
        "errors",
        "version",
    },
    "paths": {"_kernels", "_kernels.tables", "columns", "errors"},
    "layouts": {"_kernels", "_kernels.tables", "columns", "tabular", "cores", "errors"},
    "fixity": {"_kernels", "_kernels.tables", "fs", "cores", "errors"},
    "columns": {"_kernels", "_kernels.tables", "errors"},
    # The twins share the tables, and know neither each other nor who calls them.
    "_kernels": {"errors"},
    "_kernels.native": {"_kernels.tables", "errors"},
    "_kernels.pure": {"_kernels.tables", "errors"},
    "_kernels.tables": set(),
    "pages": {"fs", "errors"},
    "reports": {"errors"},
    "cores": set(),
    "delimited": {"errors"},
    "tabular": {"delimited", "errors"},
    "trees": set(),
    # The ground floor: what touches a disk, and knows nothing of preservation.
    "fs": {"errors"},
    "errors": set(),
    "version": set(),
    # The package itself gives public names, and must load no command.
    "": {
        "_kernels",
        "errors",
        "version",
        "layouts",
        "columns",
        "fixity",
        "bagit",
        "stores",
        "migrate",
        "compare",
        "jobs",
        "paths",
        "reports",
    },
}


def part_of(module: str) -> str:
    """Return the part that a module below pressmark belongs to: ``_kernels.pure.text`` is of ``_kernels.pure``."""
    names = module.split(".")
    for length in (2, 1):
        if ".".join(names[:length]) in ALLOWED:
            return ".".join(names[:length])
    return names[0]


def imported(tree: ast.AST, module: str, is_package: bool, modules: set[str]) -> Iterator[str]:
    """Yield the modules below pressmark that a module imports, anywhere in it."""
    here = ["pressmark", *filter(None, module.split("."))]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            up = here[: len(here) - node.level + is_package] if node.level else []
            base = ".".join([*up, *filter(None, [node.module])])
            # A name taken from a package may be a module of it.
            names = [f"{base}.{alias.name}" for alias in node.names]
            names = [name if name.removeprefix("pressmark.") in modules else base for name in names]
        else:
            continue
        yield from (
            name.removeprefix("pressmark").removeprefix(".") for name in names if re.match(r"pressmark\b", name)
        )


def forbidden(source: str, module: str, modules: set[str], is_package: bool = False) -> list[str]:
    """Return the edges that the table does not allow, as ``importer -> imported``."""
    own = part_of(module)
    found = []
    for other in imported(ast.parse(source), module, is_package, modules):
        target = part_of(other)
        if target != own and not ALLOWED[own] & {target, "*"}:
            found.append(f"{module or 'pressmark'} -> {other or 'pressmark'}")
    return found


def sources(suffix: str) -> dict[str, Path]:
    """Return the files of the package by the names of their modules below it."""
    files = {}
    for path in sorted(PACKAGE.rglob(f"*{suffix}")):
        names = path.relative_to(PACKAGE).with_suffix("").parts
        files[".".join(names[:-1] if names[-1] == "__init__" else names)] = path
    return files


MODULES = sources(".py")


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module or "pressmark")
def test_imports_go_down_only(module: str) -> None:
    """A module imports of ours what the table allows, and belongs to a part that the table knows."""
    path = MODULES[module]
    assert part_of(module) in ALLOWED, f"a new part: say in the table whom {module} may import"
    everything = set(MODULES) | set(sources(".pyx"))
    assert forbidden(path.read_text(encoding="utf-8"), module, everything, path.name == "__init__.py") == []


@pytest.mark.repository
def test_compiled_modules_keep_to_themselves() -> None:
    """A Cython module imports of ours its own package and the tables."""
    for suffix in (".pyx", ".pxd"):
        for module, path in sources(suffix).items():
            lines = re.findall(
                r"^ *(?:from|c?import) +(pressmark[\w.]*)", path.read_text(encoding="utf-8"), re.MULTILINE
            )
            parts = {part_of(name.removeprefix("pressmark.")) for name in lines}
            assert parts <= {"_kernels.native", "_kernels.tables"}, module


BAD = {
    "up": ("layouts.new", "from pressmark.cli import main", ["layouts.new -> cli"]),
    "sideways": ("fixity.pool", "import pressmark.layouts", ["fixity.pool -> layouts"]),
    "by name": ("layouts.new", "from pressmark import cli, errors", ["layouts.new -> cli"]),
    "into a twin": ("layouts.new", "from pressmark._kernels.pure import text", ["layouts.new -> _kernels.pure.text"]),
    "twin to twin": (
        "_kernels.pure.text",
        "from pressmark._kernels import native",
        ["_kernels.pure.text -> _kernels.native"],
    ),
    "relative": ("_kernels.pure.text", "from ..native import packed", ["_kernels.pure.text -> _kernels.native"]),
    "errors import": ("errors", "from pressmark.version import __version__", ["errors -> version"]),
    "the package": ("layouts.new", "import pressmark", ["layouts.new -> pressmark"]),
    "from a package": ("layouts", "from .. import cli", ["layouts -> cli"]),
    "in a function": ("bagit.bag", "def f():\n    from pressmark.stores import open", ["bagit.bag -> stores"]),
    "for types": (
        "fixity.pool",
        "if TYPE_CHECKING:\n    from pressmark.layouts import Layout",
        ["fixity.pool -> layouts"],
    ),
}
GOOD = {
    "tables": ("layouts.new", "from pressmark._kernels.tables import Fault"),
    "own package": ("layouts.new", "from pressmark.layouts.base import Layout\nfrom .door import Door"),
    "commands": ("cli.new", "import pressmark\nfrom pressmark.layouts import Layout"),
    "others": ("errors", "import pressmarks\nfrom pressmark_tools import cli\nimport os"),
}
KNOWN = {
    "cli",
    "layouts",
    "layouts.base",
    "_kernels",
    "_kernels.pure",
    "_kernels.pure.text",
    "_kernels.native",
    "errors",
}


@pytest.mark.parametrize("what", BAD)
def test_the_checker_sees(what: str) -> None:
    """The checker finds each kind of forbidden import in a made-up module."""
    module, source, expected = BAD[what]
    assert forbidden(source, module, KNOWN, is_package=module == "layouts") == expected


@pytest.mark.parametrize("what", GOOD)
def test_the_checker_lets_pass(what: str) -> None:
    """The checker lets allowed imports pass, and whatever is not ours."""
    module, source = GOOD[what]
    assert forbidden(source, module, KNOWN) == []


def test_the_table_is_a_hierarchy() -> None:
    """The allowed edges have no circle."""

    def below(part: str, above: tuple[str, ...]) -> None:
        assert part not in above, (*above, part)
        for other in (set(ALLOWED) - {part, "", "__main__"}) if "*" in ALLOWED[part] else ALLOWED[part]:
            below(other, (*above, part))

    for part in ALLOWED:
        below(part, ())
