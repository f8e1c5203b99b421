"""Doubtful identifiers are named whatever the kind of input, and sound ones are not."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from typing import Any

import pytest

import pressmark
from pressmark.compare import compare
from pressmark.compare.remarks import REMARKS, canonical_name
from pressmark.layouts import blocks
from support.implementations import Implementation

from . import samples

LAYOUT = pressmark.layout("0004")

# Of each kind, and only of that.
DOUBTFUL: dict[str, list[str | bytes]] = {
    "encoding": [b"caf\xe9", b"Universit\xe4t K\xf6ln", b"\x93M\xfcnchen\x94"],
    "ends": [" a", "a ", "\ta", "a\t", "a\r", "  ", "\u2003a", "a\u3000", "a b "],
    "invisible": [
        "a\u00a0b",
        "a\u200bb",
        "\ufeffa",
        "soft\u00adhyphen",
        "a\u202fb",
        "a\u2060",
        "ab\u200c",
        "\u200da",
        "a\u2011b",
    ],
}
SPELLINGS = [
    [
        *("doi:10.1000/a", "doi: 10.1000/a", "10.1000/a", "http://doi.org/10.1000/a", "https://doi.org/10.1000/a"),
        *("https://www.doi.org/10.1000/a", "https://doi.org/10.1000%2Fa", "urn:doi:10.1000/a", "info:doi/10.1000/a"),
    ],
    [
        "https://n2t.net/ark:/12345/a",
        "https://x.org/ark:/12345/a",
        "http://x.org/ark:12345/a",
        "ark:12345/a",
        "ark:/12345/a",
    ],
    ["10.1000/ABC", "10.1000/abc", "doi:10.1000/abc", "DOI: 10.1000/abc", "https://doi.org/10.1000/Abc"],
    ["http://dx.doi.org/10.1002/(sici)1097%3C1", "10.1002/(SICI)1097<1", "info:doi/10.1002/(sici)1097<1"],
    ["ark:/12345/x54-xz-321", "ark:12345/x54xz321", "ARK:/12345/x54xz321", "https://n2t.net/ark:/12345/x5-4xz-321"],
    ["urn:doi:10.1234.5/x", "10.1234.5/X"],
]
SOUND: list[str | bytes] = [
    *samples.hathitrust(40),
    *("aeu.ark:/13960/t03x9kx0k", "aeu.ark+=13960=t22c08w6m", "loc.ark:/13960/t0-1", "loc.ark:/13960/t01"),
    *(
        "10.1000/abc",
        "10.1000/ab-c",
        "hdl:10.1000/abc.d",
        "ark:/12345/abc",
        "ark:/12345/ABC",
        "ark:/12345/ab.c",
        "x/10.1000/ABC",
    ),
    # Joiners between letters, and in emoji; accents in both forms; blanks inside.
    *(
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "क्\u200dष",
        "\U0001f469\u200d\U0001f4bb",
        "café",
        "cafe\u0301",
        "a b",
        "a\tb",
        "König & Söhne",
        "sep=;",
    ),
    *(
        "-rf",
        "~",
        "urn:nbn:de:0183-mbi0003721",
        "URN:NBN:de:0183-mbi0003721",
        "info:fedora/a",
        "文書",
        "http://x/10.1/a",
    ),
]


def remarks(ids: Any, **more: Any) -> dict[str, tuple[int, list[int], int, str]]:
    """Return the count, the numbers of the examples, the groups and the detail of each remark."""
    found = compare(ids, [LAYOUT], **more).remarks
    assert [one.kind for one in found] == [kind for kind in REMARKS if kind in {one.kind for one in found}]
    return {one.kind: (one.count, [named.number for named in one.first], one.groups, one.detail) for one in found}


def encoded(item: str | bytes) -> bytes:
    return item.encode() if isinstance(item, str) else item


def lines(items: list[str | bytes]) -> Any:
    return io.BytesIO(b"".join(encoded(item) + b"\n" for item in items))


def arrow(items: list[str | bytes]) -> Any:
    return pytest.importorskip("pyarrow").array(list(map(encoded, items)), "binary")


SOURCES = pytest.mark.parametrize("source", [list, lines, arrow])


@SOURCES
@pytest.mark.parametrize("kind", DOUBTFUL)
def test_each_kind(implementation: Implementation, source: Callable[[Any], Any], kind: str) -> None:
    """Every identifier of a kind is counted and named, among sound ones."""
    ids = ["x", *DOUBTFUL[kind], "y"]
    numbers = list(range(1, len(ids) - 1))
    detail = "windows-1252" if kind == "encoding" else ""
    assert remarks(source(ids)) == {kind: (len(numbers), numbers, 0, detail)}


@SOURCES
def test_sound_identifiers(implementation: Implementation, source: Callable[[Any], Any]) -> None:
    assert remarks(source(SOUND)) == {}
    assert remarks(source([])) == {}


@SOURCES
def test_spellings_of_one_name(implementation: Implementation, source: Callable[[Any], Any]) -> None:
    """The groups, and their members next to each other."""
    ids = [*SOUND[-4:], *(name for names in SPELLINGS for name in names)]
    ids.append(ids[4])  # a repetition is not another spelling
    count, numbers, groups, _ = remarks(source(ids))["spelling"]
    assert (count, groups) == (28, 6)
    assert len(set(numbers)) == 20
    assert set(numbers) <= set(range(4, 32))
    (remark,) = (one for one in compare(source(ids), [LAYOUT]).remarks if one.kind == "spelling")
    names = [member.path for member in remark.first]
    assert len([name for name, before in zip(names, ["", *names], strict=False) if name != before]) == len(set(names))


@pytest.mark.parametrize("names", SPELLINGS)
def test_any_two_spellings(implementation: Implementation, names: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in blocks of their own, with other identifiers before and after."""
    assert len({canonical_name(name.encode()) for name in names}) == 1
    for size in (1, 1 << 16):
        monkeypatch.setattr(blocks, "ITEMS", size)
        for one in names:
            for two in names:
                if one != two:
                    count, numbers, groups, _ = remarks(["a", one, "b", "c", two, "d"])["spelling"]
                    assert (count, sorted(numbers), groups) == (2, [1, 4], 1)


def test_other_identifiers_have_no_canonical_name() -> None:
    for item in (
        b"",
        b"10.1/a",
        b"10.1000",
        b"x10.1000/a",
        b"ark:/1/a",
        b"loc.ark:/13960/t0",
        b"doi:x",
        b"ark:/12345/",
    ):
        assert canonical_name(item) is None


def test_a_setting_of_excel(implementation: Implementation) -> None:
    """Only as the first item."""
    assert remarks(lines(["sep=;", "a"])) == {"setting": (1, [0], 0, "")}
    assert remarks(["SEP=\t", "a"])["setting"] == (1, [0], 0, "")
    assert remarks(["a", "sep=;"]) == {}


def test_empty_identifiers(implementation: Implementation) -> None:
    assert remarks(lines(["a", "", "b", "", ""])) == {"blank": (3, [1], 0, "")}


def test_encodings(implementation: Implementation) -> None:
    """Windows-1252 is named if all identifiers beyond ASCII look like it."""

    def detail(*ids: str | bytes) -> str:
        return remarks(["a", *ids])["encoding"][3]

    assert detail(b"caf\xe9") == "windows-1252"
    assert detail(b"caf\xe9", "café") == "mixed"
    assert detail("Привет".encode("cp1251")) == ""
    assert detail("日本語".encode("shift-jis")) == ""
    assert detail(b"\xff\xfe", b"caf\xe9") == ""


def test_items_that_contain_line_feeds(implementation: Implementation) -> None:
    """A line feed inside an identifier is data; at the end it is a blank, as after reading lines in Python."""
    assert remarks(["a\n10.1000/a", "b\n b", "a\n\nb", "10.1000/A", "c\n"]) == {"ends": (1, [4], 0, "")}


def test_random_lists(implementation: Implementation, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of any size, repetitions and several threads give what each identifier gives alone."""
    drawn = random.Random(5)
    pool = [
        *SOUND,
        *(item for items in DOUBTFUL.values() for item in items),
        *(name for names in SPELLINGS for name in names),
    ]
    for _ in range(30):
        ids = ["first", *(drawn.choice(pool) for _ in range(drawn.choice([1, 5, 40])))]
        monkeypatch.setattr(blocks, "ITEMS", drawn.choice([1, 2, 7, 1 << 16]))
        first: dict[bytes, int] = {}
        for number, item in enumerate(ids):
            first.setdefault(encoded(item), number)
        expected = {
            kind: sorted(first[encoded(item)] for item in {*items} if encoded(item) in first)
            for kind, items in DOUBTFUL.items()
        }
        found = remarks(ids, threads=drawn.choice([1, 3]), memory=drawn.choice([1, 1 << 20]))
        for kind, numbers in expected.items():
            assert found.get(kind, (0, []))[:2] == (len(numbers), numbers[:20])
        names: dict[bytes, set[bytes]] = {}
        for item in first:
            name = canonical_name(item)
            if name is not None:
                names.setdefault(name, set()).add(item)
        shared = [items for items in names.values() if len(items) > 1]
        assert found.get("spelling", (0, [], 0, ""))[::2] == (sum(map(len, shared)), len(shared))
