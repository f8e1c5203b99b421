"""Imports go down only: between layers, and between the modules of a package."""

from __future__ import annotations

import re

import pytest

from .modules import MODULES, circles, edges, imported, sources

# From the bottom up. A part is a module or package directly in pressmark; it imports only parts of lower layers.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors", "version", "threads", "summaries", "lazy", "option_names"),
    ("progress_event",),
    ("reports", "_kernels"),
    ("fs",),
    ("buckets",),
    ("html",),
    ("jobs",),
    ("arrow", "fixity"),
    ("tabular",),
    ("layouts",),
    ("paths",),
    ("bagit",),
    ("stores",),
    ("migrate", "compare"),
    ("cli",),
    ("__main__",),
)
LAYER = {part: number for number, parts in enumerate(LAYERS) for part in parts}

# The implementations share tables and records, and import neither each other nor their callers.
KERNELS = {
    # The type of ``active``, for mypy alone, is that of the pure implementation.
    "_kernels": {"_kernels.pure", "_kernels.tables", "errors"},
    "_kernels.native": {"_kernels.records", "_kernels.tables", "errors"},
    "_kernels.pure": {"_kernels.flushing", "_kernels.records", "_kernels.tables", "errors"},
    "_kernels.flushing": set(),
    "_kernels.records": set(),
    "_kernels.tables": set(),
}
SHARED = {"_kernels", "_kernels.flushing", "_kernels.records", "_kernels.tables"}
# The package re-exports public names, and must not load a command.
NOT_IN_THE_FACE = {"cli", "__main__"}

# Known violations of the rules. Only remove from these lists.
UPWARD: set[str] = set()
CIRCLES: list[list[str]] = []


def part_of(module: str) -> str:
    """Return the part that a module below pressmark belongs to: ``_kernels.pure.text`` belongs to ``_kernels.pure``."""
    names = module.split(".")
    return ".".join(names[:2]) if ".".join(names[:2]) in KERNELS else names[0]


def is_allowed(importer: str, other: str) -> bool:
    """Return whether a module may import another one, by the parts that they belong to."""
    own, target = part_of(importer), part_of(other)
    if own == target:
        return True
    if not importer:
        return target not in NOT_IN_THE_FACE
    if own in KERNELS:
        return target in KERNELS[own]
    if target in KERNELS and target not in SHARED:
        return False
    return target != "" and LAYER[target.split(".")[0]] < LAYER[own]


def forbidden(source: str, module: str, modules: set[str], is_package: bool = False) -> set[str]:
    """Return the imports that go up or sideways, as ``importer -> imported``."""
    return {
        f"{module or 'pressmark'} -> {other or 'pressmark'}"
        for other in imported(source, module, modules, is_package)
        if not is_allowed(module, other)
    }


def test_imports_go_down_only() -> None:
    """No module imports from its own layer or a higher one, except those in the list, which has no other entries."""
    unknown = {module for module in MODULES if module and part_of(module).split(".")[0] not in LAYER}
    assert unknown == set(), "a new part belongs into a layer"
    everything = set(MODULES) | set(sources(".pyx"))
    found = set()
    for module, path in MODULES.items():
        found |= forbidden(path.read_text(encoding="utf-8"), module, everything, path.name == "__init__.py")
    assert found == UPWARD


def test_no_modules_import_each_other() -> None:
    """Imports between modules have no cycle, except those in the list, which has no other entries."""
    assert circles(edges()) == CIRCLES


# Modules that import others by names that they compute; layouts.job_layouts those of other distributions.
BY_NAME = {"_kernels", "lazy", "cli.common.program", "layouts.job_layouts"}


def test_imports_are_statements() -> None:
    """Only these import modules by computed names: the other tests see statements only."""
    found = set()
    for module, path in MODULES.items():
        for call in re.findall(r"import_module\(([^)]*)\)", path.read_text(encoding="utf-8")):
            if not call.startswith('"') or call.startswith('"pressmark'):
                found.add(module)
    assert found == BY_NAME


@pytest.mark.repository
def test_compiled_modules_import_only_their_package() -> None:
    """A Cython module imports only its own package and the tables."""
    for module, path in sources(".pyx", ".pxd").items():
        lines = re.findall(r"^ *(?:from|c?import) +(pressmark[\w.]*)", path.read_text(encoding="utf-8"), re.MULTILINE)
        parts = {part_of(name.removeprefix("pressmark.")) for name in lines}
        assert parts <= {"_kernels.native", "_kernels.records", "_kernels.tables"}, module


BAD = {
    "up": ("layouts.new", "from pressmark.cli import main", {"layouts.new -> cli"}),
    "sideways": ("fixity.pool", "import pressmark.arrow", {"fixity.pool -> arrow"}),
    "by name": ("layouts.new", "from pressmark import cli, errors", {"layouts.new -> cli"}),
    "into an implementation": (
        "layouts.new",
        "from pressmark._kernels.pure import text",
        {"layouts.new -> _kernels.pure.text"},
    ),
    "between implementations": (
        "_kernels.pure.text",
        "from pressmark._kernels import native",
        {"_kernels.pure.text -> _kernels.native"},
    ),
    "relative": ("_kernels.pure.text", "from ..native import _mapping", {"_kernels.pure.text -> _kernels.native"}),
    "errors import": ("errors", "from pressmark.version import __version__", {"errors -> version"}),
    "the package": ("layouts.new", "import pressmark", {"layouts.new -> pressmark"}),
    "from a package": ("layouts", "from .. import cli", {"layouts -> cli"}),
    "the package a command": ("", "from pressmark import cli", {"pressmark -> cli"}),
    "in a function": ("bagit.bag", "def f():\n    from pressmark.stores import open", {"bagit.bag -> stores"}),
    "for types": (
        "fixity.pool",
        "if TYPE_CHECKING:\n    from pressmark.layouts import Layout",
        {"fixity.pool -> layouts"},
    ),
}
GOOD = {
    "tables": ("layouts.new", "from pressmark._kernels.tables import ErrorCode"),
    "own package": ("layouts.new", "from pressmark.layouts.base import Layout\nfrom .batch import BoundKernel"),
    "commands": ("cli.new", "from pressmark.layouts import Layout"),
    "others": ("errors", "import pressmarks\nfrom pressmark_tools import cli\nimport os"),
}
KNOWN = {
    *("cli", "arrow", "layouts", "layouts.base", "errors"),
    *("_kernels", "_kernels.pure", "_kernels.pure.text", "_kernels.native"),
}


@pytest.mark.parametrize("what", BAD)
def test_the_checker_finds_violations(what: str) -> None:
    """The checker finds each kind of forbidden import in a made-up module."""
    module, source, expected = BAD[what]
    assert forbidden(source, module, KNOWN, is_package=module in ("", "layouts")) == expected


@pytest.mark.parametrize("what", GOOD)
def test_the_checker_accepts_allowed_imports(what: str) -> None:
    """The checker accepts allowed imports, and imports of other packages."""
    module, source = GOOD[what]
    assert forbidden(source, module, KNOWN) == set()


def test_the_checker_finds_cycles() -> None:
    """Modules that import each other form a cycle of any length; other modules are not part of it."""
    assert circles({"a": ["b"], "b": ["c"], "c": ["a", "d"], "d": ["e"], "e": []}) == [["a", "b", "c"]]
    assert circles({"a": ["b"], "b": ["a"], "c": ["d"], "d": ["c", "a"]}) == [["a", "b"], ["c", "d"]]
    assert circles({"a": ["b", "c"], "b": ["c"], "c": []}) == []
