"""The public interface of each package: listed by ``dir``, and documented."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import pressmark

FACES = ("", "bagit", "bagit.archive", "compare", "fixity", "jobs", "layouts", "migrate", "paths", "stores")
SOURCE = Path(pressmark.__file__).parent
# Names under which a package exports a constant of another name.
ALIASES = {"PROBLEM_KINDS": "KINDS"}


def face(name: str) -> ModuleType:
    return importlib.import_module(f"pressmark.{name}" if name else "pressmark")


def public(cls: type) -> Iterator[tuple[str, Any]]:
    """Yield the public members that a class of Pressmark defines."""
    for name, member in vars(cls).items():
        is_field = name in getattr(cls, "_fields", ()) or name in getattr(cls, "__dataclass_fields__", ())
        is_documented_kind = inspect.isfunction(member) or isinstance(member, property | classmethod | staticmethod)
        if not name.startswith("_") and not is_field and is_documented_kind:
            yield name, member


def is_documented(cls: type) -> bool:
    """Return whether a class has a docstring of its own; those of named tuples and dataclasses may be generated."""
    text = cls.__doc__ or ""
    return bool(text) and not text.startswith(f"{cls.__name__}(")


def commented_names() -> set[str]:
    """Return the names of all constants that a comment ``#:`` explains."""
    found = set()
    for path in SOURCE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for names in re.findall(r"^ *#: .*\n(?: *#: .*\n)* *([\w, ]+?) *[:=]", text, re.MULTILINE):
            found |= set(names.split(", "))
    return found


@pytest.mark.parametrize("name", FACES)
def test_dir(name: str) -> None:
    """``dir`` lists the public names, all of which exist, and nothing else."""
    module = face(name)
    assert dir(module) == sorted(module.__all__)
    for one in dir(module):
        getattr(module, one)


@pytest.mark.parametrize("name", FACES)
def test_public_names_are_documented(name: str) -> None:
    """Every public function, class, method and property has a docstring; every constant a comment."""
    module = face(name)
    commented = commented_names()
    missing = [name] if not module.__doc__ else []
    for one in module.__all__:
        found = getattr(module, one)
        if inspect.isclass(found):
            missing += [] if is_documented(found) else [one]
            missing += [f"{one}.{member}" for member, _ in public(found) if not inspect.getdoc(getattr(found, member))]
        elif inspect.isfunction(found) or inspect.ismodule(found):
            missing += [] if inspect.getdoc(found) else [one]
        elif ALIASES.get(one, one) not in commented:
            missing.append(one)
    assert missing == []


# Bytes that are no paths: content, lines of a file, a raw digest.
NO_PATHS = {
    *("Digest.digest", "StoredObject.read_bytes", "BagInfo.to_bytes", "Member.blocks", "manifest_line"),
    "Entry.line",
}
# The item of the caller, unchanged.
AS_GIVEN = {"IdentifierError.id", "IngestResult.id", "PathError.path"}
# Names in an archive, whose encoding is unknown; and names as a file system compares them.
RAW = {"Archive.zip_names", "Member.name", "Member.target", "folded"}
# Called by stores and migrations only.
INTERNAL = {
    *(f"{store}.withdraw" for store in ("BagFolder", "ChangedStore", "OcflRoot", "PairtreeStore", "VitroStore")),
    *(f"StorageRoot.{method}" for method in ("misplaced_objects", "name_and_path", "paths_for")),
    "Store.unfinished_names",
}


def returned(name: str) -> Iterator[tuple[str, str]]:
    """Yield each function, method, property and field of a package's public names, with the type of its value."""
    for one in dir(face(name)):
        given = getattr(face(name), one)
        if inspect.isfunction(given):
            yield one, str(given.__annotations__.get("return"))
        for cls in given.__mro__ if inspect.isclass(given) else ():
            if not cls.__module__.startswith("pressmark"):
                continue
            for field, kind in vars(cls).get("__annotations__", {}).items():
                if not field.startswith("_"):
                    yield f"{cls.__name__}.{field}", getattr(kind, "__forward_arg__", str(kind))
            for method, member in public(cls):
                function = getattr(member, "fget", None) or getattr(member, "__func__", member)
                yield f"{cls.__name__}.{method}", str(inspect.unwrap(function).__annotations__.get("return"))


def test_paths_are_text() -> None:
    """No public call returns a path as bytes, and no record contains one."""
    found = {one for name in FACES for one, kind in returned(name) if re.search(r"\bbytes\b", kind)}
    assert found == NO_PATHS | AS_GIVEN | RAW | INTERNAL
