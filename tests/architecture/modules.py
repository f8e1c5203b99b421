"""The modules of the package, and what each of them imports."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pressmark

__all__ = ["MODULES", "PACKAGE", "circles", "edges", "imported", "is_face", "sources"]

PACKAGE = Path(pressmark.__file__).parent


def sources(*suffixes: str, package: Path = PACKAGE) -> dict[str, Path]:
    """Return the files of the package by the dotted names of their modules, without ``pressmark``."""
    files = {}
    for path in sorted(package.rglob("*")):
        if path.suffix in suffixes:
            names = path.relative_to(package).with_suffix("").parts
            files[".".join(names[:-1] if names[-1] == "__init__" else names)] = path
    return files


MODULES = sources(".py")


def imported(source: str, module: str, modules: Iterable[str], is_package: bool = False) -> Iterator[str]:
    """Yield the modules of pressmark that a module imports, including imports in functions and for type checking."""
    known = set(modules)
    here = ["pressmark", *filter(None, module.split("."))]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            up = here[: len(here) - node.level + is_package] if node.level else []
            base = ".".join([*up, *filter(None, [node.module])])
            # A name taken from a package may be a module of it.
            names = [f"{base}.{alias.name}" for alias in node.names]
            names = [name if name.removeprefix("pressmark.") in known else base for name in names]
        else:
            continue
        yield from (
            name.removeprefix("pressmark").removeprefix(".") for name in names if re.match(r"pressmark\b", name)
        )


def is_face(source: str) -> bool:
    """Return whether the ``__init__.py`` of a package only re-exports names."""
    return not any(isinstance(node, (ast.FunctionDef, ast.ClassDef)) for node in ast.parse(source).body)


def edges() -> dict[str, set[str]]:
    """Return the modules of pressmark that each module imports, except packages that only re-export names."""
    known = {*MODULES, *sources(".pyx")}
    found = {}
    for module, path in MODULES.items():
        source = path.read_text(encoding="utf-8")
        is_package = path.name == "__init__.py"
        if module and not (is_package and is_face(source)):
            found[module] = set(imported(source, module, known, is_package)) - {module}
    return {module: others & found.keys() for module, others in found.items()}


def circles(graph: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Return the groups of modules that import each other, directly or through others (Tarjan's algorithm)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(module: str) -> None:
        index[module] = low[module] = len(index)
        stack.append(module)
        for other in sorted(graph.get(module, ())):
            if other not in index:
                visit(other)
                low[module] = min(low[module], low[other])
            elif other in stack:
                low[module] = min(low[module], index[other])
        if low[module] == index[module]:
            group = stack[stack.index(module) :]
            del stack[stack.index(module) :]
            if len(group) > 1:
                found.append(sorted(group))

    for module in graph:
        if module not in index:
            visit(module)
    return sorted(found)
