"""The public names of the package: complete, sorted and documented."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import pytest

import pressmark
from pressmark import errors

PACKAGE = Path(pressmark.__file__).parent


def modules() -> list[str]:
    """Return the names of all modules with an ``__all__``, except kernels and commands."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        names = path.relative_to(PACKAGE.parent).with_suffix("").parts
        if names[1] in ("_kernels", "cli", "__main__"):
            continue
        name = ".".join(names[:-1] if names[-1] == "__init__" else names)
        if re.search(r"^__all__ = ", path.read_text(encoding="utf-8"), re.MULTILINE):
            found.append(name)
    return found


@pytest.mark.parametrize("name", modules())
def test_every_exported_name_exists(name: str) -> None:
    """``__all__`` is sorted as ruff sorts it, without repetition, and every name in it exists."""
    module = importlib.import_module(name)
    exported = module.__all__
    assert len(exported) == len(set(exported))
    for export in exported:
        assert hasattr(module, export)
    namespace: dict[str, object] = {}
    exec(f"from {name} import *", namespace)
    assert set(exported) <= set(namespace)


@pytest.mark.parametrize("name", modules())
def test_everything_public_is_exported(name: str) -> None:
    """Every public class and function that a module defines is in its ``__all__``."""
    module = importlib.import_module(name)
    defined = {
        key
        for key, value in vars(module).items()
        if (inspect.isclass(value) or inspect.isfunction(value)) and value.__module__ == name and key[0] != "_"
    }
    assert defined - set(module.__all__) == set()


def test_the_package_exports_all_layouts_and_their_errors() -> None:
    """Every layout, and every error that a layout may raise, can be imported from ``pressmark``."""
    # Other tests have layouts of their own.
    ours = [layout for layout in pressmark.layouts.list_layouts() if layout.__module__.startswith("pressmark.")]
    assert {layout.__name__ for layout in ours} <= set(pressmark.__all__)
    for name in ("PressmarkError", "LayoutConfigError", "IdentifierError", "PathError", "NotReversibleError"):
        assert name in pressmark.__all__
        assert getattr(pressmark, name) is getattr(errors, name)


@pytest.mark.parametrize("name", sorted(set(pressmark.__all__) - {"__version__", "implementation"}))
def test_every_public_name_is_documented(name: str) -> None:
    """Each public name has a docstring whose first line is a sentence, and so has each public method of a class."""
    value = getattr(pressmark, name)
    members = [value]
    if inspect.isclass(value):
        members += [member for key, member in vars(value).items() if inspect.isfunction(member) and key[0] != "_"]
    for member in members:
        first = (inspect.getdoc(member) or "").partition("\n\n")[0]
        assert first.rstrip().endswith((".", ":")), member


TREE = re.compile(
    r"^    (?P<depth>[ \u2502\u251c\u2514\u2500]*)(?P<name>[A-Z]\w+)(?:\((?P<arguments>[\w, ]*)\))?"
    r"(?: +\+ (?P<also>\w+))?(?: {2,}\S.*)?$",
    re.MULTILINE,
)


def test_the_tree_of_errors_is_documented() -> None:
    """The tree in the docstring of ``pressmark.errors`` has every error, with its bases, arguments and attributes."""
    drawn = list(TREE.finditer(errors.__doc__ or ""))
    raised = [getattr(errors, name) for name in errors.__all__ if inspect.isclass(getattr(errors, name))]
    names = [cls.__name__ for cls in raised if issubclass(cls, errors.PressmarkError)]
    assert sorted(found["name"] for found in drawn) == sorted(names)
    above: list[str] = []
    for found in drawn:
        del above[len(found["depth"]) // 4 :]
        cls = getattr(errors, found["name"])
        bases = {base.__name__ for base in cls.__mro__ if base.__name__[0] != "_"}
        assert bases - {"object", "BaseException", "Exception"} == {
            found["name"],
            *above,
            *filter(None, [found["also"]]),
        }
        arguments = (found["arguments"] or "").split(", ")
        if arguments != [""]:
            error = cls(*(f"the {argument}" for argument in arguments))
            assert [getattr(error, argument) for argument in arguments] == [f"the {argument}" for argument in arguments]
        above.append(found["name"])
    assert not issubclass(errors.LayoutConfigWarning, errors.PressmarkError)
