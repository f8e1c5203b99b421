"""Sample identifiers and layouts."""

from __future__ import annotations

import random

import pressmark
from pressmark.layouts import Layout
from support.samples import OWN


def layouts(delimiter: str = ".") -> dict[str, Layout]:
    """Return all layouts, some with several sets of parameters."""
    values = {"delimiter": delimiter, "delimiters": [delimiter]}
    found: dict[str, Layout] = {}
    for cls in OWN:
        names = [parameter.name for parameter in cls.parameters()]
        found[cls.alias or cls.name] = cls(**{name: value for name, value in values.items() if name in names})
    return found | {
        "0003 3x3": found.pop("0003"),
        "0003 2x2": pressmark.layout("0003", tuple_size=2, number_of_tuples=2),
        "0011": pressmark.layout("0011", max_path_segment_len=60, number_of_fallback_tuples=2, fallback_tuple_size=2),
    }


def hathitrust(count: int = 120, seed: int = 1) -> list[str]:
    """Return identifiers like those of HathiTrust; two of them end with the same part."""
    drawn = random.Random(seed)
    ids = ["miun.aje1563.0001.001", "miun.aje1563.0002.001", "miun.aat0419.0001.001"]
    for _ in range(count):
        digits = drawn.randrange(10**14)
        ids += [f"mdp.3901{digits % 10**10:010d}", f"uc1.$b{digits % 10**6}", f"loc.ark:/13960/t{digits % 10**8:08x}"]
    return ids


def hostile() -> list[str | bytes]:
    """Return distinct identifiers that are difficult for layouts and file systems."""
    return [
        *("", ".", "..", "/", "//", "a/../b", "a//b", "/a", "a/", "-rf", "~", "con", "AUX.txt", "a.", "a ", " a"),
        *("A.b", "a.B", "a.b", "a.b/c", "a.b/c/d", "x.a.b", "y.a.b", "druid.gh875jh5489", "DRUID.gh875jh5489"),
        *("caf\u00e9.1", "cafe\u0301.1", "CAF\u00c9.1", "stra\u00dfe.1", "STRASSE.1", "\u4e00.\u4e00", "\U0001f350.9"),
        *("n\0ul", "new\nline", "tab\t.x", "quote'\".x", "back\\slash.x", "semi;colon", "per%cent.x", "caret^.x"),
        *("l" * 100, "l" * 101, "l" * 255, "l" * 256, "l" * 300 + ".x", "\u4e00" * 90, "p/" * 40 + "q", "\x01.\x02"),
        *(b"\xff\xfe.1", b"caf\xe9.1", b"\x80"),
        *("a" * length for length in range(1, 9)),
        *("fallback/" + "0" * 4, "fallback/ab/cd", "f" * 200, "g" * 200),
    ]
