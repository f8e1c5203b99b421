"""Every exception that Pressmark raises on purpose.

::

    PressmarkError
    ├── LayoutConfigError(key, reason)              + ValueError   a layout's parameter is refused
    ├── IdentifierError(identifier, index, reason)  + ValueError   an identifier has no path
    ├── PathError(path, index, reason)              + ValueError   a path has no identifier
    └── NotReversibleError(layout)                  + ValueError   a layout has no inverse at all

The data are attributes, the text is ``str(error)``: always one line, always naming the item.
Both implementations raise the same class with the same text, because only shared code raises.
"""

from __future__ import annotations

__all__ = [
    "IdentifierError",
    "LayoutConfigError",
    "LayoutConfigWarning",
    "NotReversibleError",
    "PathError",
    "PressmarkError",
    "shown",
]

# Enough to recognise an identifier by; the rest of a ten-megabyte one only hides the reason.
SHOWN_CHARACTERS = 80


def shown(item: str | bytes) -> str:
    """Return ``item`` quoted on one line, a long one cut after its head.

    Octets that are not UTF-8 appear as ``\\udc80`` … ``\\udcff``, as :func:`os.fsdecode` gives them.
    """
    text = item.decode("utf-8", "surrogateescape") if isinstance(item, bytes) else item
    head = text[:SHOWN_CHARACTERS]
    quoted = f"'{head}'" if head.isprintable() else ascii(head)
    return quoted if len(text) <= SHOWN_CHARACTERS else f"{quoted}…"


class PressmarkError(Exception):
    """The root of the tree above: catch this to catch everything Pressmark refuses."""


class LayoutConfigError(PressmarkError, ValueError):
    """A layout's configuration is refused; nothing is clamped or repaired.

    :ivar key: the parameter, in the specification's camelCase, or what stands for it (a layout's name, a file)
    :ivar reason: what is wrong with it and what is allowed
    """

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(key, reason)
        self.key = key
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.key}: {self.reason}"


class LayoutConfigWarning(UserWarning):
    """A configuration was read, but the program that wrote it would read it differently."""


class _ItemError(PressmarkError, ValueError):
    """What :class:`IdentifierError` and :class:`PathError` share."""

    what = ""

    def __init__(self, item: str | bytes, index: int | None, reason: str) -> None:
        super().__init__(item, index, reason)
        self.item = item
        self.index = index
        self.reason = reason

    def __str__(self) -> str:
        place = "" if self.index is None else f" {self.index}"
        return f"{self.what}{place} {shown(self.item)}: {self.reason}"


class IdentifierError(_ItemError):
    """An identifier that the layout must not or cannot map.

    :ivar identifier: the identifier as it was given, :class:`str` or :class:`bytes`
    :ivar index: its place in the batch, counted from 0; :data:`None` outside a batch
    :ivar reason: one line that says why
    """

    what = "identifier"

    @property
    def identifier(self) -> str | bytes:
        return self.item


class PathError(_ItemError):
    """A path that the layout does not give for any identifier, or whose identifier is not in it.

    :ivar path: the path as it was given, :class:`str` or :class:`bytes`
    :ivar index: its place in the batch, counted from 0; :data:`None` outside a batch
    :ivar reason: one line that says why
    """

    what = "path"

    @property
    def path(self) -> str | bytes:
        return self.item


class NotReversibleError(PressmarkError, ValueError):
    """The layout keeps too little of an identifier in its paths to find it again.

    :ivar layout: the layout's official name
    """

    def __init__(self, layout: str) -> None:
        super().__init__(layout)
        self.layout = layout

    def __str__(self) -> str:
        return (
            f"{self.layout} has no inverse: its paths do not hold the whole identifier; "
            "read it from the object (an OCFL inventory, for example)"
        )
