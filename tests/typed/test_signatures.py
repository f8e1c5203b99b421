"""The signatures of everything public: typed without ``Any``, and without collected keywords."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterator

import pytest

import pressmark

PACKAGES = ("", "bagit", "compare", "errors", "fixity", "jobs", "layouts", "migrate", "reports", "stores")
# Parameters of layouts are keywords of these.
COLLECTED = re.compile(r"\.layout(_from_config)?$")
# Only ``Store.ingest`` constructs one, with the writer of its kind.
CONSTRUCTED = {"pressmark.stores.Ingest.__init__"}
# A word, not a part of another one such as ``AnyPath``.
ANY = re.compile(r"\bAny\b")


def public(package: str) -> Iterator[tuple[str, Callable[..., object]]]:
    """Yield the public functions, and the public methods and properties of public classes."""
    name = f"pressmark.{package}" if package else "pressmark"
    module = importlib.import_module(name)
    for one in module.__all__:
        found = getattr(module, one)
        if inspect.isfunction(found):
            yield f"{name}.{one}", found
        elif inspect.isclass(found):
            for member, value in inspect.getmembers(found):
                value = value.fget if isinstance(value, property) else value
                is_ours = str(getattr(value, "__module__", "")).startswith(pressmark.__name__)
                if is_ours and (not member.startswith("_") or member == "__init__") and inspect.isroutine(value):
                    yield f"{name}.{one}.{member}", value


def faults(name: str, function: Callable[..., object]) -> Iterator[str]:
    """Yield what is wrong with a signature."""
    signature = inspect.signature(function)
    for parameter in signature.parameters.values():
        where = f"{name}({parameter.name})"
        if parameter.annotation is parameter.empty and parameter.name not in ("self", "cls"):
            yield f"{where}: no type"
        if ANY.search(str(parameter.annotation)) and name not in CONSTRUCTED:
            yield f"{where}: {parameter.annotation}"
        if parameter.kind is parameter.VAR_KEYWORD and not COLLECTED.search(name):
            yield f"{where}: collects keywords"
    if signature.return_annotation is signature.empty and not name.endswith(".__init__"):
        yield f"{name}: no type of the result"
    if ANY.search(str(signature.return_annotation)):
        yield f"{name}: returns {signature.return_annotation}"


@pytest.mark.parametrize("package", PACKAGES)
def test_attributes(package: str) -> None:
    """No attribute of a public class is ``Any``."""
    module = importlib.import_module(f"pressmark.{package}" if package else "pressmark")
    classes = [found for found in (getattr(module, one) for one in module.__all__) if inspect.isclass(found)]
    found = {
        f"{cls.__name__}.{name}: {annotation}"
        for cls in classes
        for name, annotation in vars(cls).get("__annotations__", {}).items()
        if not name.startswith("_") and ANY.search(str(annotation))
    }
    assert found == set()


@pytest.mark.parametrize("package", PACKAGES)
def test_signatures(package: str) -> None:
    """Every parameter and result has a type that says what it is."""
    assert [fault for name, function in public(package) for fault in faults(name, function)] == []
