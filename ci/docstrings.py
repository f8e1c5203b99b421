"""An extension of griffe: what our docstrings contain, as the site needs it."""

from __future__ import annotations

import re
from typing import Any

from griffe import Attribute, Docstring, Extension, Object

# :class:`~pressmark.fs.locks.FileLock`: a tilde hides the package.
_ROLE = re.compile(r":(?:attr|class|data|exc|func|meth|mod):`(?:~[\w.]*\.)?([^`]+)`")
_EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)


class Markdown(Extension):
    """Turns reStructuredText into Markdown, fences examples, and makes comments above data (``#:``) docstrings."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Convert the docstring of an object."""
        if obj.docstring is None and isinstance(obj, Attribute):
            obj.docstring = _comment(obj)
        if obj.docstring is not None:
            text = _EXAMPLE.sub(r"```pycon\n\g<0>\n```", _ROLE.sub(r"`\1`", obj.docstring.value))
            # Literal blocks are indented in both.
            obj.docstring.value = re.sub(r"^( *)::$", r"\1", text, flags=re.MULTILINE).replace("::\n", ":\n")


def _comment(attribute: Attribute) -> Docstring | None:
    """Return the ``#:`` lines directly above an attribute of a module."""
    if not attribute.lineno or not attribute.parent or not attribute.parent.is_module:
        return None
    found: list[str] = []
    for line in reversed(attribute.parent.source.splitlines()[: attribute.lineno - 1]):
        if not line.startswith("#: "):
            break
        found.insert(0, line[3:])
    return Docstring("\n".join(found), parent=attribute) if found else None
