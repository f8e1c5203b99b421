"""Public attributes have a type and a sentence, and described parameters exist: for ``help()`` and the site."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import pytest

import pressmark
from pressmark.layouts import Layout

PACKAGES = (
    *("arrow", "bagit", "bagit.archive", "compare", "compare.report", "errors", "fixity", "jobs", "layouts"),
    *("migrate", "paths", "reports", "stores"),
)
SOURCE = Path(pressmark.__file__).parent


def classes() -> list[type]:
    """Return all public classes."""
    modules = [pressmark, *(importlib.import_module(f"pressmark.{name}") for name in PACKAGES)]
    names = (getattr(module, name) for module in modules for name in module.__all__)
    return sorted(set(filter(inspect.isclass, names)), key=lambda cls: (cls.__module__, cls.__qualname__))


def bases(cls: type) -> Iterator[type]:
    """Yield a class and its base classes in Pressmark."""
    for base in cls.__mro__:
        if base.__module__.startswith("pressmark"):
            yield base


def tree_of(cls: type) -> ast.ClassDef:
    [tree] = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(tree, ast.ClassDef)
    return tree


def set_on_self(cls: type) -> Iterator[tuple[str, bool]]:
    """Yield each attribute that a method sets, and whether it shows its type: by an annotation, as a parameter of the
    same name, or by a literal."""
    for method in tree_of(cls).body:
        if not isinstance(method, ast.FunctionDef):
            continue
        parameters = {one.arg for one in (*method.args.args, *method.args.kwonlyargs) if one.annotation is not None}
        for node in ast.walk(method):
            targets = node.targets if isinstance(node, ast.Assign) else []
            if isinstance(node, ast.AnnAssign):
                targets = [node.target]
            for target in (one for every in targets for one in ast.walk(every)):
                is_attribute = isinstance(target, ast.Attribute) and isinstance(target.ctx, ast.Store)
                if is_attribute and isinstance(target.value, ast.Name) and target.value.id == "self":
                    is_literal = isinstance(node.value, ast.Constant) and node.value.value is not None
                    is_typed = isinstance(node, ast.AnnAssign) or is_literal
                    yield target.attr, is_typed or (method.name == "__init__" and target.attr in parameters)


def constants(cls: type) -> Iterator[tuple[str, bool]]:
    """Yield each constant in the body of a class, and whether it shows its type."""
    for node in tree_of(cls).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, True
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if not callable(getattr(cls, name, None)):
                yield name, isinstance(node.value, ast.Constant | ast.Tuple)


def attributes(cls: type) -> dict[str, bool]:
    """Return the public attributes of a class, and whether each has a type."""
    found: dict[str, bool] = {}
    for base in bases(cls):
        properties = {
            name: "return" in (getattr(member, "fget", None) or member.func).__annotations__
            for name, member in vars(base).items()
            if isinstance(member, property | cached_property)
        }
        for name, is_typed in (*constants(base), *set_on_self(base), *properties.items()):
            if not name.startswith("_") and name != "args":
                found[name] = found.get(name, False) or is_typed
    return found


def described(cls: type) -> set[str]:
    """Return the attributes of a class that have a sentence."""
    found: set[str] = set()
    for base in bases(cls):
        found |= set(re.findall(r":(?:ivar|cvar|param) (\w+): *\S", base.__doc__ or ""))
        found |= {name for name, member in vars(base).items() if isinstance(member, property) and member.__doc__}
        found |= {one for one, member in vars(base).items() if isinstance(member, cached_property) and member.__doc__}
        found |= set(re.findall(r"^ *#: .*\n(?: *#: .*\n)* *(?:self\.)?(\w+) *[:=]", inspect.getsource(base), re.M))
    if issubclass(cls, Layout):
        found |= {one.name for one in cls.parameters() if one.doc}
    return found


@pytest.mark.repository
@pytest.mark.parametrize("cls", [pytest.param(cls, id=f"{cls.__module__}.{cls.__qualname__}") for cls in classes()])
def test_every_attribute_has_a_type_and_a_sentence(cls: type) -> None:
    """Each attribute of a public class has both; an attribute for internal use begins with an underscore."""
    found = attributes(cls)
    assert [name for name, is_typed in found.items() if not is_typed] == []
    assert sorted(found.keys() - described(cls)) == []


def test_described_parameters_exist() -> None:
    """A docstring describes only parameters that the function takes: ``help()`` would promise what is not there."""
    unknown = []
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                given = {one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg)}
                named = re.findall(r":param \**(\w+):", ast.get_docstring(node) or "")
                unknown += [f"{path.name}: {node.name}: {name}" for name in named if name not in given]
    assert unknown == []
