"""An extension of griffe: what our docstrings contain, as the site needs it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from griffe import Attribute, Class, Docstring, Expr, ExprCall, Extension, Function, Module, Object

# :class:`~pressmark.fs.locks.FileLock`: a tilde hides the package.
_ROLE = re.compile(r":(?:attr|class|data|exc|func|meth|mod):`(?:~[\w.]*\.)?([^`]+)`")
_EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)
_ATTRIBUTE = re.compile(r"^:(?:ivar|cvar|var) (\w+): *(.*(?:\n[ \t]+.+)*)\n?", re.MULTILINE)
_PARAMETER = re.compile(r"^:param (\w+): *(.*(?:\n[ \t]+.+)*)", re.MULTILINE)


class Markdown(Extension):
    """Turns reStructuredText into Markdown, fences examples, and gives each attribute its type and its sentence."""

    def on_package(self, *, pkg: Module, **_: Any) -> None:
        """Convert all docstrings, and complete the members of all classes."""
        found = list(_objects(pkg))
        for one in found:
            self._convert(one)
        classes = [one for one in found if isinstance(one, Class)]
        for one in classes:
            _move_descriptions(one)
        for one in classes:
            _inherit(one, {other.name: other for other in classes})
            _annotate(one)

    def _convert(self, obj: Object) -> None:
        if obj.docstring is None and isinstance(obj, Attribute):
            obj.docstring = _comment(obj) or _parameter(obj)
        if obj.docstring is not None:
            text = _EXAMPLE.sub(r"```pycon\n\g<0>\n```", _ROLE.sub(r"`\1`", obj.docstring.value))
            # Literal blocks are indented in both.
            obj.docstring.value = re.sub(r"^( *)::$", r"\1", text, flags=re.MULTILINE).replace("::\n", ":\n")


def _objects(parent: Object) -> Iterator[Object]:
    """Yield an object and all objects in it."""
    yield parent
    for member in parent.members.values():
        if isinstance(member, Object):
            yield from _objects(member)


def _move_descriptions(one: Class) -> None:
    """Move the ``:ivar`` fields of a class to its attributes."""
    if one.docstring is None:
        return

    for name, text in _PARAMETER.findall(one.docstring.value):
        member = one.members.get(name)
        if isinstance(member, Attribute) and member.docstring is None:
            member.docstring = Docstring(" ".join(text.split()), parent=member)

    def moved(match: re.Match[str]) -> str:
        member = one.members.get(match[1])
        if not isinstance(member, Attribute):
            return match[0]
        if member.docstring is None:
            member.docstring = Docstring(" ".join(match[2].split()), parent=member)
        return ""

    one.docstring.value = _ATTRIBUTE.sub(moved, one.docstring.value)


def _annotate(one: Class) -> None:
    """Give attributes without a type that of the parameter of ``__init__``, or of the literal, that they are set to."""
    init = one.members.get("__init__")
    parameters = {found.name: found for found in init.parameters} if isinstance(init, Function) else {}
    for name, member in one.members.items():
        if not isinstance(member, Attribute) or member.annotation is not None:
            continue
        if name in parameters:
            member.annotation = parameters[name].annotation
        elif member.value is not None:
            try:
                member.annotation = type(ast.literal_eval(str(member.value))).__name__
            except (SyntaxError, ValueError):
                continue


def _inherit(one: Class, by_name: dict[str, Class]) -> None:
    """Copy the types and docstrings that members lack from those that they replace."""
    bases = [str(base) for base in one.bases]
    # Imported names are not resolved yet; classes have unique names.
    while bases:
        base = by_name.get(bases.pop(0).rpartition(".")[2].partition("[")[0])
        if base is None or base is one:
            continue
        bases += map(str, base.bases)
        for name, member in one.members.items():
            other = base.members.get(name)
            if not isinstance(member, Attribute | Function) or not isinstance(other, Attribute | Function):
                continue
            if member.docstring is None and other.docstring is not None:
                member.docstring = Docstring(other.docstring.value, parent=member)
            if isinstance(member, Attribute) and isinstance(other, Attribute) and member.annotation is None:
                member.annotation = other.annotation


def _comment(attribute: Attribute) -> Docstring | None:
    """Return the ``#:`` lines directly above an attribute."""
    if not attribute.lineno or not attribute.parent:
        return None
    found: list[str] = []
    for line in reversed(attribute.parent.module.source.splitlines()[: attribute.lineno - 1]):
        if not line.lstrip().startswith("#: "):
            break
        found.insert(0, line.lstrip()[3:])
    return Docstring("\n".join(found), parent=attribute) if found else None


def _parameter(attribute: Attribute) -> Docstring | None:
    """Return the description of a parameter of a layout, the second argument of ``parameter``."""
    value = attribute.value
    if not isinstance(value, ExprCall) or str(value.function) != "parameter" or len(value.arguments) < 2:
        return None
    text: str | Expr = value.arguments[1]
    if str(text).isidentifier() and attribute.parent:
        text = str(attribute.parent.module.members[str(text)].value)
    try:
        return Docstring(ast.literal_eval(str(text)), parent=attribute)
    except (SyntaxError, ValueError):
        return None
