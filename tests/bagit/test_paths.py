"""Paths in manifests and fetch.txt: written, read, and refused."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, strategies as st

from pressmark.bagit.paths import (
    canonical,
    decode_path,
    encode_path,
    has_raw_percent,
    normal_key,
    possible_paths,
    why_unsafe,
)

paths = st.binary(max_size=30) | st.lists(
    st.sampled_from([b"%", b"25", b"0A", b"0d", b"\n", b"\r", b"/", b".", b"a", b"\xff"])
).map(b"".join)


@given(paths)
def test_every_path_is_read_back(path: bytes) -> None:
    """A path is preserved by encoding and decoding, and its encoding has no line end or raw percent sign."""
    text = encode_path(path)
    assert decode_path(text) == path
    assert not set(text) & set(b"\r\n")
    assert not has_raw_percent(text)
    assert possible_paths(text)[0] == path


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (b"%25", b"%"),
        (b"%0A%0a%0D%0d", b"\n\n\r\r"),
        (b"%250A", b"%0A"),
        (b"%2525", b"%25"),
        (b"%20%2F%", b"%20%2F%"),
        (b"%2", b"%2"),
    ],
)
def test_only_three_bytes_are_decoded(text: bytes, path: bytes) -> None:
    """Only CR, LF and the percent sign are decoded, in either case and once."""
    assert decode_path(text) == path


def test_percent_signs_before_1_0() -> None:
    """Up to 0.97 only line ends are encoded; other encodings are tried as well."""
    assert decode_path(b"%25%0A", (0, 97)) == b"%25\n"
    assert possible_paths(b"a%25%0A", (0, 97)) == (b"a%25\n", b"a%25%0A", b"a%\n")
    assert possible_paths(b"a%25%0A", (1, 0)) == (b"a%\n", b"a%25%0A", b"a%25\n")
    assert possible_paths(b"a%20", (1, 0)) == (b"a%20",)
    assert possible_paths(b"a", (1, 0)) == (b"a",)


UNSAFE = [
    *(b"", b".", b"./", b"/", b"/etc/passwd", b"//x", b"..", b"../x", b"data/..", b"data/../../x", b"data/x/../y"),
    *(b"~", b"~/x", b"~root", b"~root/x", b"C:/x", b"c:x", b"\\x", b"\\\\host\\share", b"\\\\?\\C:\\x", b"data\\..\\x"),
    *(b"data/a\0b", b"data/\\..\\..\\x", b"..\\x"),
]


@pytest.mark.parametrize("path", UNSAFE, ids=ascii)
def test_unsafe_paths(path: bytes) -> None:
    """An unsafe path has a reason that does not repeat it."""
    assert why_unsafe(path)


@pytest.mark.parametrize(
    "path",
    [
        *(b"data/x", b"data/..x", b"data/x..", b"data/...", b"...", b"data/~root/x", b"~$draft.docx", b"data/C:/x"),
        *(b"a/~", b"data/a\\b", b"data/a\\..b", b"data/ ", b"data/\xff", b"~notes.txt", b"data/\r\n", b".hidden"),
    ],
    ids=ascii,
)
def test_safe_paths(path: bytes) -> None:
    """Unusual names are accepted."""
    assert why_unsafe(path) is None


@given(st.lists(st.sampled_from([b"..", b".", b"", b"a", b"~", b"C:", b"\\", b"\0"]), max_size=6).map(b"/".join))
def test_no_harmless_looking_path_leads_out(path: bytes) -> None:
    """A path that is accepted stays inside its directory, segment by segment."""
    if why_unsafe(path) is None:
        path, _ = canonical(path)
        assert path
        assert not path.startswith(b"/")
        assert not {b"..", b".", b""} & set(path.rstrip(b"/").split(b"/"))
        assert b"\0" not in path


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (b"data/x", b"data/x"),
        (b"./data/x", b"data/x"),
        (b"data//x", b"data/x"),
        (b"data/./x", b"data/x"),
        (b".//.//data///x", b"data/x"),
        (b"data/x/", b"data/x/"),
        (b"data/x/.", b"data/x/"),
        (b"data/x.", b"data/x."),
        (b"data/.x", b"data/.x"),
        (b"data/...", b"data/..."),
        (b"./", b""),
    ],
)
def test_canonical(path: bytes, found: bytes) -> None:
    """Needless segments are removed; a final slash is kept."""
    assert canonical(path) == (found, found != path)
    assert canonical(found) == (found, False)


def test_keys() -> None:
    """All normalization forms have one key; bytes that are not UTF-8 are kept."""
    name = "data/N\u00fa\u00f1ez \u212b \u1e9e.txt"
    forms = {unicodedata.normalize(form, name).encode() for form in ("NFC", "NFD")}
    assert len(forms) == 2
    assert len(set(map(normal_key, forms))) == 1
    cases = forms | {form.decode().lower().encode() for form in forms}
    assert len(set(map(normal_key, cases))) == 2
    assert normal_key(b"data/\xff\xc3") == b"data/\xff\xc3"


@given(st.binary(max_size=20))
def test_keys_are_their_own_keys(path: bytes) -> None:
    """The key of a key is the key."""
    assert normal_key(normal_key(path)) == normal_key(path)
