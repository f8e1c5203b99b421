"""Each layout compared with the naive transcription of its specification in ``tests/naive``."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

import naive
from pressmark import IdentifierError, PathError
from pressmark._kernels.tables import ErrorCode
from strategies import LAYOUT_NAMES, REVERSIBLE_LAYOUT_NAMES, configs, identifiers, paths
from support.implementations import Implementation, use
from support.outcomes import KINDS, agree, kernel_results, naive_identifiers, naive_paths, outcome
from support.samples import layout_of

# Small batches: a failing example stays short, and identifiers share the drawing of a configuration.
BATCH = st.lists(identifiers(), min_size=1, max_size=4)
# Built once: building one for every example would take longer than the example.
CASES = {name: st.tuples(configs(name), BATCH) for name in LAYOUT_NAMES}
PATHS = {name: paths(name) for name in REVERSIBLE_LAYOUT_NAMES}


@pytest.mark.parametrize("name", LAYOUT_NAMES)
@given(data=st.data())
def test_identifiers_map_as_in_the_naive_transcription(
    implementations: list[Implementation], name: str, data: st.DataObject
) -> None:
    """Every identifier has the path of the naive transcription, or the same kind of error."""
    config, items = data.draw(CASES[name])
    expected = list(naive_paths(name, config, items))
    layout = layout_of(name, config)
    for implementation in implementations:
        with use(implementation):
            actual = kernel_results(layout._mapping(), items)
            assert all(map(agree, items, actual, expected)), (implementation.name, actual, expected)
            assert layout.map_ids(items, on_error="none") == public_results(actual)
            assert outcomes(layout.map_id, items) == public_outcomes(actual, IdentifierError)


def compare_inverses(
    implementations: list[Implementation], name: str, config: dict[str, Any], items: list[bytes]
) -> None:
    expected = list(naive_identifiers(name, config, items))
    layout = layout_of(name, config)
    for implementation in implementations:
        with use(implementation):
            actual = kernel_results(layout._unmapping(), items)
            assert all(map(agree, items, actual, expected)), (implementation.name, actual, expected)
            assert layout.unmap(items, on_error="none") == public_results(actual)
            assert outcomes(layout.unmap_path, items) == public_outcomes(actual, PathError)


@pytest.mark.parametrize("name", REVERSIBLE_LAYOUT_NAMES)
@given(data=st.data())
def test_paths_map_back_as_in_the_naive_transcription(
    implementations: list[Implementation], name: str, data: st.DataObject
) -> None:
    """Every path, correct or nearly so, has the identifier or the kind of error of the naive transcription."""
    config: dict[str, Any] = {"encodeUTF": True} if name.startswith("0011") else {}
    compare_inverses(implementations, name, config, [data.draw(PATHS[name])])


@pytest.mark.parametrize("name", REVERSIBLE_LAYOUT_NAMES)
@given(data=st.data())
def test_mapped_paths_map_back_as_in_the_naive_transcription(
    implementations: list[Implementation], name: str, data: st.DataObject
) -> None:
    """Under any configuration, a mapped path maps back if the naive transcription does."""
    config, items = data.draw(CASES[name])
    if name.startswith("0011"):
        config = {**config, "encodeUTF": True}
    mapped = [path for path in naive_paths(name, config, items) if isinstance(path, bytes)]
    compare_inverses(implementations, name, config, mapped)


def public_results(results: list[bytes | str]) -> list[str | None]:
    """Return the results of the batch calls for the ``results`` of the kernels."""
    return [result.decode("utf-8", "surrogateescape") if isinstance(result, bytes) else None for result in results]


def public_outcomes(results: list[bytes | str], error: type[Exception]) -> list[Any]:
    """Return the result of the calls for one item: the value, or the class of the exception."""
    return [error if value is None else value for value in public_results(results)]


def outcomes(call: Callable[[bytes], str], items: list[bytes]) -> list[Any]:
    found = [outcome(lambda item=item: call(item)) for item in items]
    return [value[1] if value[0] == "ok" else value[0] for value in found]


def test_every_kind_of_refusal_has_a_word() -> None:
    """The words for the kernels' codes are those that the naive transcription documents, and no code lacks one."""
    documented = set(re.findall(r"^([a-z0-9-]+) {2,}", inspect.getdoc(naive.Refused) or "", re.MULTILINE))
    assert set(KINDS.values()) == documented
    # These codes come from the shared code, for input that the specifications do not cover.
    shared = {
        ErrorCode.NOT_TEXT,
        ErrorCode.SURROGATE,
        ErrorCode.TOO_LONG,
        ErrorCode.HOLDS_DELIMITER,
        ErrorCode.HOLDS_SEPARATOR,
        ErrorCode.NO_PPATH,
        ErrorCode.NO_ENCAPSULATION,
        ErrorCode.NOT_DIALECT,
        ErrorCode.AMBIGUOUS,
        ErrorCode.NOT_CLEANED,
    }
    assert set(ErrorCode) - set(KINDS) == shared
