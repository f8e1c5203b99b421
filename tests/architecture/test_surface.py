"""Native and pure have the same public names, and use the same tables."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pressmark import _kernels
from support.implementations import Implementation
from support.samples import CONFIGURATIONS, sample

ROOT = Path(__file__).parents[2]

# Names that the extension modules export in addition to the package, with the reason.
ONLY_COMPILED = {
    # The pure implementation exports nothing itself.
    "_arrow": {"outstanding_exports"},
    # Vector levels: plain Python has none.
    "_digests": {"best_level", "hexdigest_function", "level", "levels", "use_level"},
    "_mapping": {"Inverse", "Kernel"},
    "_paths": set(),
    "_trees": set(),
}
# Functions that do nothing in the pure implementation, as their first line states.
SAID_DIFFERENTLY = {
    "lane_count",
    "sha_extensions",
    "supported",
}


def public(cls: type) -> set[str]:
    return {name for name in dir(cls) if not name.startswith("_")}


def first_line(value: Any) -> str:
    return (inspect.getdoc(value) or "").partition("\n")[0]


def test_both_packages_export_the_same(pair: tuple[Implementation, Implementation]) -> None:
    """Each name that an extension module exports is a name of pure, except the few listed here."""
    native, pure = (implementation.kernels for implementation in pair)
    compiled: set[str] = set()
    for name, alone in ONLY_COMPILED.items():
        exported = set(getattr(native, name).__all__)
        assert exported - set(pure.__all__) == alone
        compiled |= exported
    assert set(pure.__all__) - compiled == {"LEVEL", "NAME", "RELEASES_GIL"}
    assert sorted(pure.__all__) == sorted(set(pure.__all__))
    for name in pure.__all__:
        assert isinstance(getattr(native, name), type) == isinstance(getattr(pure, name), type)
    assert list(_kernels.IMPLEMENTATIONS) == [native.NAME, pure.NAME]


def test_both_have_the_same_docstrings(pair: tuple[Implementation, Implementation]) -> None:
    """The first docstring lines of classes and functions are the same in both."""
    native, pure = (implementation.kernels for implementation in pair)
    for export in pure.__all__:
        one, other = getattr(native, export), getattr(pure, export)
        if callable(one):
            assert one.__name__ == other.__name__ == export
            assert first_line(one)
            assert export in SAID_DIFFERENTLY or first_line(one) == first_line(other)


def test_batches_have_the_same_columns(pair: tuple[Implementation, Implementation]) -> None:
    """``TreeBatch`` has the same public attributes and methods in both."""
    native, pure = (public(type(one.kernels.TreeBatch.of([], []))) for one in pair)
    assert native == {*pure, *vars(pair[1].kernels.TreeBatch.of([], []))} - {"_contents", "_digests"}


def test_columns_have_the_same_methods(pair: tuple[Implementation, Implementation]) -> None:
    """``ByteColumn`` has the same public methods, parameters and first lines; only pure Python shows its items."""
    native, pure = (implementation.kernels.ByteColumn for implementation in pair)
    assert public(pure) - public(native) == {"items"}
    assert public(native) - public(pure) == set()
    for name in sorted(public(native)):
        one, other = getattr(native, name), getattr(pure, name)
        assert first_line(one) == first_line(other)
        assert parameters(one) == parameters(other)


def parameters(function: Any) -> list[tuple[str, Any]]:
    """Return the name and kind of each parameter, and whether it has a default; only Python has annotations."""
    return [
        (parameter.name, parameter.kind, parameter.default is not inspect.Parameter.empty)
        for parameter in inspect.signature(function).parameters.values()
    ]


def kernel_arguments() -> dict[str, tuple[Any, ...]]:
    """Return the arguments with which layouts create their kernels; other kernels have none."""
    arguments: dict[str, tuple[Any, ...]] = {}

    class Recorder:
        def __getattr__(self, name: str) -> Any:
            return lambda *given: arguments.setdefault(name, given)

    for layout in map(sample, CONFIGURATIONS):
        layout._map_kernel(Recorder())  # type: ignore[arg-type]
        if layout.reversible:
            layout._unmap_kernel(Recorder())  # type: ignore[arg-type]
    return arguments


def test_kernels_take_the_same_parameters(pair: tuple[Implementation, Implementation]) -> None:
    """Every kernel is created with the same arguments, refuses others, has the same limit, and is called alike."""
    native, pure = (implementation.kernels for implementation in pair)
    bases = (pure.column.Kernel, pure.column.Inverse)
    kernels = {
        name for name in pure.__all__ if inspect.isclass(getattr(pure, name)) and issubclass(getattr(pure, name), bases)
    }
    arguments = kernel_arguments()
    assert set(arguments) <= kernels
    for name in kernels:
        given = arguments.get(name, ())
        made = [getattr(kernels, name)(*given) for kernels in (native, pure)]
        assert made[0].limit == made[1].limit
        for kernels in (native, pure):
            with pytest.raises(TypeError):
                getattr(kernels, name)(*given, "one more")
            packed, _ = kernels.ByteColumn.from_texts(["abc"])
            results, faults = getattr(kernels, name)(*given)(packed)
            assert len(results) == 1
            assert isinstance(faults, list)


def signatures(kernels: Any, name: str) -> dict[str, list[str]]:
    """Return the names of the parameters of a function, or of each public method of a class."""
    value = getattr(kernels, name)
    methods = {
        f"{name}.{method}": getattr(value, method)
        for method in (public(value) if inspect.isclass(value) else ())
        if inspect.isroutine(getattr(value, method))
    }
    routines = methods if inspect.isclass(value) else {name: value} if callable(value) else {}
    return {
        key: [one for one in inspect.signature(routine).parameters if one != "self"]
        for key, routine in routines.items()
    }


def test_functions_and_methods_have_the_same_parameters(pair: tuple[Implementation, Implementation]) -> None:
    """Native functions and methods have the parameters of their pure counterparts, whose types mypy checks."""
    native, pure = (implementation.kernels for implementation in pair)
    for name in pure.__all__:
        found, described = signatures(native, name), signatures(pure, name)
        assert {key: names for key, names in described.items() if key in found} == found


@pytest.mark.repository
def test_the_generated_tables_are_fresh() -> None:
    """The C tables are those that ``ci/tables`` generates."""
    run = subprocess.run(
        [sys.executable, str(ROOT / "ci" / "tables"), "--check"], capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_the_byte_classes_are_complete() -> None:
    """Every byte class covers all 256 bytes, and every range of code points is valid."""
    from pressmark._kernels import tables

    for name, value in vars(tables).items():
        if isinstance(value, bytes) and len(value) > 64 and name != "VISIBLE_ASCII" and not name.startswith("_"):
            assert len(value) == 256, name
            assert set(value) <= {0, 1}, name
        if name.startswith("CLEAN_") and isinstance(value, tuple):
            assert all(first <= last <= 0x10FFFF for first, last in value), name
    assert [fault.value for fault in tables.ErrorCode] == list(range(1, len(tables.ErrorCode) + 1))
