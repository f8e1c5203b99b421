r"""The namespaces file, as :class:`java.util.Properties` reads text.

The expectations are those of the class's documentation (java.util.Properties#load(Reader)).
"""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from pressmark.stores.vitro.namespaces import parse, render


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("", []),
        ("a = http://x/\n", [("a", "http://x/")]),
        ("a=x", [("a", "x")]),
        ("a:x", [("a", "x")]),
        ("a x", [("a", "x")]),
        ("a\tx\fy", [("a", "x\fy")]),
        ("  \t\f a = x", [("a", "x")]),
        ("a = x  ", [("a", "x  ")]),
        ("a = = x", [("a", "= x")]),
        ("a == x", [("a", "= x")]),
        ("a : = x", [("a", "= x")]),
        ("a", [("a", "")]),
        ("=x", [("", "x")]),
        ("# a = x\n!b=y\n  # c\n", []),
        ("a = x # y", [("a", "x # y")]),
        ("\n\r\n \t\f\n\r", []),
        ("a=1\rb=2\r\nc=3\nd=4", [("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")]),
        ("a=1\na=2", [("a", "1"), ("a", "2")]),
        ("a = x\\\n   y", [("a", "xy")]),
        ("a = x\\\r\n\ty", [("a", "xy")]),
        ("a = x\\\n#y", [("a", "x#y")]),
        ("a = x\\\\\nb = y", [("a", "x\\"), ("b", "y")]),
        ("a = x\\\n\nb = y", [("a", "x"), ("b", "y")]),
        ("# a \\\nb = y", [("b", "y")]),
        ("\\\n  \\\n\na=x", [("a", "x")]),
        ("a = x\\", [("a", "x")]),
        ("a = x\\\n\\\n", [("a", "x")]),
        ("\\\n#b = y\n!c = z\na = x", [("a", "x")]),
        ("\\", [("", "")]),
        ("a = x\n \\\n", [("a", "x"), ("", "")]),
        ("a = x\n\\\r\n", [("a", "x")]),
        ("a = x\n\\\n ", [("a", "x")]),
        ("a = C:\\data\\new\\", [("a", "C:data\new")]),
        ("a\\=b = x", [("a=b", "x")]),
        ("a\\ b x", [("a b", "x")]),
        ("a\\:b:x", [("a:b", "x")]),
        ("a = \\t\\n\\r\\f\\b\\z\\\\", [("a", "\t\n\r\fbz\\")]),
        ("a = \\u0041\\u00e9", [("a", "Aé")]),
        ("a = \\ud83d\\ude00", [("a", "\U0001f600")]),
        ("\\u0061 = x", [("a", "x")]),
        ("a\\u003d = x", [("a=", "x")]),
        ("a = x\vy\x85z\u2028w", [("a", "x\vy\x85z\u2028w")]),
        ("a\xa0=x", [("a\xa0", "x")]),
    ],
)
def test_properties(text: str, pairs: list[tuple[str, str]]) -> None:
    """Separators, comments, continued lines, escapes and line ends follow Java."""
    assert parse(text) == pairs


@pytest.mark.parametrize("text", ["a = \\u", "a = \\u12", "a = \\uzzzz", "a = \\ud800", "a = \\U0041\\u"])
def test_invalid_escapes(text: str) -> None:
    """Invalid escapes are refused, as in Java, and so are unpaired surrogates."""
    with pytest.raises(ValueError, match=r"^\\u with"):
        parse(text)


@given(st.dictionaries(st.sampled_from("abcxyz019"), st.text(max_size=20)))
def test_written_namespaces_are_read_back(namespaces: dict[str, str]) -> None:
    """Written namespaces are read back unchanged."""
    plain = {
        prefix: "".join(one for one in namespace if one not in "\\\r\n").lstrip(" \t\f")
        for prefix, namespace in namespaces.items()
    }
    assert parse(render(plain)) == sorted(plain.items())
