"""Every error of Pressmark has a kind: what a caller logs or compares."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import pressmark
from pressmark.errors import PressmarkError


def subclasses(one: type[PressmarkError]) -> Iterator[type[PressmarkError]]:
    for below in one.__subclasses__():
        yield below
        yield from subclasses(below)


def test_every_error_has_a_kind() -> None:
    for module in pkgutil.walk_packages(pressmark.__path__, "pressmark."):
        if not module.name.endswith("__main__") and "native" not in module.name:
            importlib.import_module(module.name)
    found = {one.__name__: one for one in subclasses(PressmarkError)}
    assert {"IdentifierError", "IngestError", "SourceError", "TransferError"} <= found.keys()
    public = {name for name in found if not name.startswith("_")}
    # The others have it among their arguments.
    without = {name for name in public if found[name].kind == "error"}
    assert (
        without
        == {"FileError", "ObjectError", "ArchiveError", "SourceError", "SourceTypeError", "UnreadableSourceError"}
        & without
    )
    assert all(kind == kind.lower() and " " not in kind for kind in (one.kind for one in found.values()))
