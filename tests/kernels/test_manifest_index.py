"""The index of a manifest's lines: which lines are plain, where a scan stops, and that no line is lost."""

from __future__ import annotations

import hashlib
from itertools import accumulate

import pytest
from hypothesis import example, given, strategies as st

from pressmark._kernels.tables import LineStatus
from support.implementations import Implementation

DIGEST = hashlib.md5(b"").hexdigest().encode()
DIGITS, PREFIX, LIMIT, SALT = 32, b"data/", 200, b"saltsalt"
PLAIN = DIGEST + b"  data/x\n"


def index_of(implementation: Implementation, digits: int = DIGITS, salt: bytes = SALT):
    return implementation.kernels.ManifestIndex(digits, PREFIX, LIMIT, salt)


def scan(implementation: Implementation, block: bytes, final: bool = True) -> tuple[int, int, LineStatus]:
    position, lines, status = index_of(implementation).scan(block, 0, 0, final)
    return position, lines, LineStatus(status)


@pytest.mark.parametrize(
    "line",
    [
        DIGEST + b" data/x\n",
        DIGEST + b"\tdata/x\r\n",
        DIGEST + b" \tdata/x\r",
        DIGEST.upper() + b"  data/x\n",
        DIGEST + b"  data/a b/c\n",
        DIGEST + b"  data/.x/..y/z.\n",
        DIGEST + b"  data/ \t\n",
        DIGEST + "  data/\u00e9\u4e00\U0001f350\n".encode(),
        DIGEST + b"  data/" + b"x" * (LIMIT - DIGITS - 7) + b"\n",
    ],
)
def test_plain_lines(implementation: Implementation, line: bytes) -> None:
    """Plain lines are added, with any line end."""
    assert scan(implementation, line) == (len(line), 1, LineStatus.MORE)
    assert scan(implementation, line + PLAIN[:-1], final=False) == (len(line), 1, LineStatus.MORE)
    path = line.rstrip(b"\r\n")[DIGITS + 1 :]
    path = path[1:] if path[:1] in b" \t" else path
    index = index_of(implementation)
    index.scan(line, 0, 1000, True)
    assert index.find(path) == [0]
    assert index.find(path + b"x") == index.find(b"") == []
    assert (len(index), index.line(0)) == (1, 1000)


@pytest.mark.parametrize(
    "line",
    [
        *(
            b"\n",
            b"\r",
            b" \n",
            b"x\n",
            PLAIN[1:],
            b"g" + PLAIN[1:],
            b"0" + PLAIN,
            DIGEST + b"data/xyz\n",
            b" " + PLAIN,
        ),
        *(DIGEST + b"   data/x\n", DIGEST + b" *data/x\n", DIGEST + b"  Data/x\n", DIGEST + b"  data\n"),
        *(DIGEST + b"  data/%s\n" % name for name in (b"", b"/", b"x/", b"/x", b".", b"..", b"./x", b"../x", b"a//b")),
        *(DIGEST + b"  data/%s\n" % name for name in (b"a/.", b"a/..", b"a/./b", b"a/../b", b"%41", b"a\\b", b"\0")),
        *(
            DIGEST + b"  data/%s\n" % name
            for name in (b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80")
        ),
        DIGEST + b"  data/" + b"x" * (LIMIT - DIGITS - 6) + b"\n",
        PLAIN[:-1],
    ],
    ids=ascii,
)
def test_odd_lines(implementation: Implementation, line: bytes) -> None:
    """A scan stops before a line that is not plain."""
    assert scan(implementation, line) == (0, 0, LineStatus.ODD)
    assert scan(implementation, PLAIN + line) == (len(PLAIN), 1, LineStatus.ODD)


@pytest.mark.parametrize("rest", [b"", PLAIN[:10], PLAIN[:-1], PLAIN[:-1] + b"\r", b"x", b"\r"])
def test_half_lines(implementation: Implementation, rest: bytes) -> None:
    """A line that may continue in the next block is not added; a CR at the end may be half of a CRLF."""
    assert scan(implementation, PLAIN + rest, final=False) == (len(PLAIN), 1, LineStatus.MORE)


def test_lines_without_digits(implementation: Implementation) -> None:
    """If the length of the checksum is unknown, no line is plain."""
    index = index_of(implementation, 0)
    assert index.scan(PLAIN, 0, 0, True) == (0, 0, LineStatus.ODD)
    assert index.scan(b"", 0, 0, True) == (0, 0, LineStatus.MORE)


def test_a_path_again(implementation: Implementation) -> None:
    """A second line of a path stops the scan. It can be added, and both lines are found, in order."""
    index = index_of(implementation)
    position, lines, status = index.scan(PLAIN + PLAIN, 0, 0, True)
    assert (position, lines, status) == (len(PLAIN), 1, LineStatus.AGAIN)
    index.add(b"data/x", 77, True)
    index.add(b"data/x", 78, False)
    assert index.find(b"data/x") == [0, 1, 2]
    assert [index.line(place) for place in range(3)] == [0, ~77, 78]


def test_marks_and_folds(implementation: Implementation) -> None:
    """Each line can be marked; lines with capitals or not in ASCII are distinguished from the others."""
    index = index_of(implementation)
    names = [b"a", b"B", b"\xc3\xa9", b"c/D", b"e"]
    block = b"".join(DIGEST + b"  data/" + name + b"\n" for name in names)
    assert index.scan(block, 0, 0, True)[1] == 5
    index.add(b"data/\xff", 1 << 50, True)
    index.add(b"data/%f", 2, False)
    folding, place = [], -1
    while (place := index.next_folding(place + 1)) >= 0:
        folding.append(place)
    assert folding == [1, 2, 3, 5]
    for place in (0, 2, 5):
        assert not index.is_marked(place)
        index.mark(place)
        assert index.is_marked(place)
    assert [index.next_unmarked(place) for place in range(8)] == [1, 1, 3, 3, 4, 6, 6, -1]
    assert index.line(5) == ~(1 << 50)
    for place in (7, 1 << 40):
        with pytest.raises(IndexError):
            index.line(place)


def test_many_lines(implementation: Implementation) -> None:
    """Ten thousand lines across block boundaries: each is found at its offset."""
    lines = [DIGEST + b"  data/%d/\xc3\xa9\n" % number for number in range(10_000)]
    data = b"".join(lines)
    index = index_of(implementation)
    base, held, taken = 0, b"", 0
    for begin in range(0, len(data), 4096):
        held += data[begin : begin + 4096]
        position, count, status = index.scan(held, 0, base, False)
        assert status == LineStatus.MORE
        taken += count
        base, held = base + position, held[position:]
    assert (taken, held) == (10_000, b"")
    assert [index.find(line[DIGITS + 2 : -1]) for line in lines] == [[place] for place in range(10_000)]
    offsets = [0, *accumulate(map(len, lines))][:-1]
    assert [index.line(place) for place in range(10_000)] == offsets


def test_salts(implementation: Implementation) -> None:
    """An index finds its lines with any salt, including long paths."""
    for salt in (b"", b"x", b"y" * 64):
        index = index_of(implementation, salt=salt)
        paths = [b"", b"a", b"b" * 4096, b"c" * 4097, b"d" * 100_000]
        for place, path in enumerate(paths):
            index.add(path, place, False)
        assert [index.find(path) for path in paths] == [[place] for place in range(len(paths))]


pieces = st.sampled_from(
    [
        *(DIGEST, DIGEST.upper(), DIGEST[1:], b" ", b"  ", b"\t", b"data/", b"data/", b"a", b"A", b"/", b".", b".."),
        *(b"\xc3\xa9", b"\xff", b"%", b"\\", b"\0", b"\n", b"\r", b"\r\n", b"\n", PLAIN, b"x" * 100),
        *(DIGEST + b"  data/a/b\n", DIGEST + b" data/A.b\r", DIGEST + b"\tdata/\xc3\xa9\r\n"),
    ]
)


@given(st.lists(pieces, max_size=20).map(b"".join) | st.binary(max_size=100), st.integers(0, 3), st.booleans())
@example(PLAIN + DIGEST + b"  data/y\r", 0, False)
def test_implementations_agree(
    pair: tuple[Implementation, Implementation], block: bytes, begin: int, final: bool
) -> None:
    """Both implementations stop at the same lines for the same reasons and contain the same lines."""
    native, pure = (index_of(implementation) for implementation in pair)
    position = min(begin, len(block))
    while True:
        found = native.scan(block, position, 5, final)
        assert found == pure.scan(block, position, 5, final)
        assert type(found[2]) is LineStatus
        position, _, status = found
        if status == LineStatus.MORE:
            break
        # The shared code adds this line.
        end = min((at for at in (block.find(b"\n", position), block.find(b"\r", position)) if at >= 0), default=-1)
        line = block[position:] if end < 0 else block[position:end]
        for index in (native, pure):
            index.add(line[DIGITS + 2 :], position, status == LineStatus.ODD)
        position = len(block) if end < 0 else end + 1
    assert len(native) == len(pure)
    for place in range(len(native)):
        assert native.line(place) == pure.line(place)
        assert native.next_folding(place) == pure.next_folding(place)
    for path in (b"", b"data/x", b"data/a/b", b"data/A.b", b"data/\xc3\xa9", b"data/a"):
        assert native.find(path) == pure.find(path)
