"""The outcome of a call, in a form that can be compared between implementations and with the naive transcription."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import naive.by_name
from naive import Refused
from pressmark._kernels.tables import ErrorCode
from pressmark.layouts.batch import BoundKernel
from support.implementations import NATIVE, PURE, use

# The words for refusals in tests/vectors and tests/naive, by the error codes of the kernels.
KINDS = {
    ErrorCode.EMPTY: "empty",
    ErrorCode.EMPTY_PATH: "empty",
    ErrorCode.NOT_UTF8: "not-utf8",
    ErrorCode.NOT_ASCII: "not-ascii",
    ErrorCode.PREFIX_MISSING: "prefix",
    ErrorCode.BEYOND_LATIN1: "character",
    ErrorCode.DELIMITER_AT_END: "delimiter-at-end",
    ErrorCode.WRONG_LENGTH: "length",
    ErrorCode.ABSOLUTE: "segment",
    ErrorCode.SEGMENT_EMPTY: "segment",
    ErrorCode.SEGMENT_DOT: "segment",
    ErrorCode.SEGMENT_DOTDOT: "segment",
    ErrorCode.NUL: "nul",
    ErrorCode.FALLBACK_TOO_LONG: "too-long",
    ErrorCode.BAD_COMPONENT: "malformed",
    ErrorCode.BAD_CHARACTER: "malformed",
    ErrorCode.BAD_ESCAPE: "malformed",
    ErrorCode.UNKNOWN_PREFIX: "malformed",
    ErrorCode.STRAY_TILDE: "malformed",
    ErrorCode.NOT_CANONICAL: "not-canonical",
    ErrorCode.TRUNCATED: "truncated",
    ErrorCode.IS_FALLBACK: "fallback",
}


def outcome(call: Callable[[], Any]) -> tuple[Any, ...]:
    """Return ``("ok", value)``, or the type, the text and the data of the exception."""
    try:
        return "ok", call()
    except Exception as error:
        return type(error), str(error), error.args


def common_outcome(call: Callable[[], Any]) -> tuple[Any, ...]:
    """Return the outcome of ``call``, which must be the same under both implementations."""
    with use(NATIVE):
        native = outcome(call)
    with use(PURE):
        pure = outcome(call)
    assert native == pure
    return native


def kernel_results(bound: BoundKernel, items: Sequence[str | bytes]) -> list[bytes | str]:
    """Return for each item the result as ``bytes``, or as ``str`` the kind of its refusal."""
    packed, unpackable = bound.packed.from_texts(items)
    assert unpackable == []
    column, faults = bound.kernel(packed)
    results: list[bytes | str] = [column[index] for index in range(len(column))]
    for index, code, _position in faults:
        assert results[index] == b""
        results[index] = KINDS[ErrorCode(code)]
    return results


def naive_result(call: Callable[[], bytes]) -> bytes | str:
    """Return the result of the naive transcription, or the kind of its refusal."""
    try:
        return call()
    except Refused as refused:
        return refused.kind


def naive_paths(name: str, config: dict[str, Any], identifiers: Sequence[bytes]) -> Iterator[bytes | str]:
    for identifier in identifiers:
        yield naive_result(partial(naive.by_name.map_id, name, identifier, config))


def naive_identifiers(name: str, config: dict[str, Any], paths: Sequence[bytes]) -> Iterator[bytes | str]:
    for path in paths:
        yield naive_result(partial(naive.by_name.unmap_path, name, path, config))


def agree(item: bytes, actual: bytes | str, expected: bytes | str) -> bool:
    """Return whether two results are equal: the same value, or the same kind of refusal.

    A path may be unsafe for two reasons. The kernels report the first one in the path, the naive transcription reports
    the segment: if the item contains a NUL, both are correct.
    """
    return actual == expected or (expected == "segment" and actual == "nul" and b"\0" in item)
