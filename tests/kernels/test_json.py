"""JSON texts: both implementations, and the standard library."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import example, given, strategies as st

from support.implementations import Implementation

PIECES = ['"', "\\", "{", "}", "[", "]", ",", ":", " ", "\n", "\t", "\x00", "\x1f", "\ufeff", "1", "n", "null", "NaN"]
PIECES += ['"a"', '"a":', '"a":"b",', "\\u0041", "\\ud800", "é", "{}", "[]", '["a"]', "[" * 40 + "]" * 40, "[" * 40]
TEXTS = st.text(max_size=4) | st.sampled_from(["", "a", "id", "é", "\n", '"', "\\", "\U0001f350"])
VALUES = st.recursive(
    TEXTS | st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=8,
)


@st.composite
def texts(draw: st.DrawFn) -> bytes:
    """Draw a JSON text with a few changes."""
    options: dict[str, Any] = {"ensure_ascii": draw(st.booleans()), "indent": draw(st.sampled_from([None, 1]))}
    text = json.dumps(draw(VALUES), **options)
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(text)))
        text = text[:at] + draw(st.sampled_from(PIECES)) + text[at + draw(st.sampled_from([0, 0, 1, 3])) :]
    data = text.encode("utf-8", "surrogatepass")
    at = draw(st.integers(0, len(data)))
    return data[:at] + draw(st.sampled_from([b"", b"", b"", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\x00"])) + data[at:]


def expected(data: bytes) -> Any:
    """Return the value of a text by the standard library, or the type of the error."""

    def refuse(constant: str) -> None:
        raise ValueError(constant)

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _value in pairs}) < len(pairs):
            raise ValueError("repeated")
        return dict(pairs)

    try:
        return json.loads(data.decode(), object_pairs_hook=unique, parse_constant=refuse)
    except ValueError:
        return ValueError
    except RecursionError:
        return RecursionError


@given(data=texts())
@example(b"")
@example(b'{"a": "b", "a": "b"}')
@example(b'{"a": {"b": "c", "b": "c"}}')
@example(b'{"a": "\n"}')
@example(b'{"a" "b"}')
@example(b'["a" "b"]')
@example(b'["a",]')
@example(b'{"a": "b",}')
@example(b"{,}")
@example(b'{"a"')
@example(b'["a"')
@example(b'"a')
@example(b'"a" x')
@example(b'{"a": "b"}\x00')
@example(b"[" * 100_000)
def test_values(implementations: list[Implementation], data: bytes) -> None:
    """A text has the value that the standard library gives it, or the same kind of error."""
    wanted = expected(data)
    for implementation in implementations:
        try:
            found = implementation.kernels.read_json(data)
        except ValueError:
            found = ValueError
        except RecursionError:
            found = RecursionError
        assert found == wanted
        assert json.dumps(found, default=repr) == json.dumps(wanted, default=repr)  # order and types
