"""fetch.txt: lines, URLs by the grammar of RFC 3986, and refused paths."""

from __future__ import annotations

import io

import pytest
from hypothesis import given, strategies as st

from pressmark.bagit.fetch.fetch_txt import FetchEntry, fetch_line, is_absolute_uri, read_fetch
from pressmark.bagit.problems import KINDS
from pressmark.reports import Problem


def read(data: bytes, encoding: str = "UTF-8", version: tuple[int, int] = (1, 0), **options: bool):
    entries, problems = [], []
    for found in read_fetch(io.BytesIO(data), encoding, version, **options):
        (problems if isinstance(found, Problem) else entries).append(found)
    assert all("\n" not in one.message for one in problems)
    return entries, [one.kind for one in problems]


URL = "https://example.org/a%20b?c=d"
names = st.binary(min_size=1, max_size=12).map(lambda name: name.replace(b"\0", b"").lstrip(b"/") or b"x")


@given(
    st.lists(
        st.tuples(
            st.sampled_from([URL, "ark:/13030/x", "urn:uuid:1", "data:,x"]),
            st.none() | st.integers(0, 10**18 - 1),
            names.map(b"data/%b".__mod__),
        )
    )
)
def test_entries_are_read_back(entries: list[tuple[str, int | None, bytes]]) -> None:
    """Written entries are read back: any URL, any length, any path of a file."""
    from pressmark.bagit.paths import canonical, why_unsafe

    kept = [
        FetchEntry(*entry)
        for entry in entries
        if why_unsafe(entry[2]) is None and canonical(entry[2]) == (entry[2], False) and entry[2][-1:] != b"/"
    ]
    found, kinds = read(b"".join(map(fetch_line, kept)))
    assert [entry._replace(line=0) for entry in found] == kept
    assert set(kinds) <= {"undecodable"}


@pytest.mark.parametrize(
    ("line", "entry", "kinds"),
    [
        (b"http://a/b 1 data/x\n", ("http://a/b", 1, b"data/x"), []),
        (b"http://a/b\t \t-\t data/x y\n", ("http://a/b", None, b"data/x y"), []),
        (b"http://a/b 0 data/x \r", ("http://a/b", 0, b"data/x "), []),
        (b"http://a/b 007 data/a%0Ab%25\n", ("http://a/b", 7, b"data/a\nb%"), []),
        (b"http://a/b 1 data/a%20\n", ("http://a/b", 1, b"data/a%20"), ["percent-raw"]),
        (b"http://a/b 1 ./data/x\n", ("http://a/b", 1, b"data/x"), ["path-not-canonical"]),
        (b"http://a/b 1 data/\xff\n", ("http://a/b", 1, b"data/\xff"), ["undecodable"]),
        (b"http://a/b 1 data/x", ("http://a/b", 1, b"data/x"), ["line-unterminated"]),
        (b"http://a/b one data/x\n", ("http://a/b", None, b"data/x"), ["line-malformed"]),
        (b"http://a/b -1 data/x\n", ("http://a/b", None, b"data/x"), ["line-malformed"]),
        (b"http://a/b " + b"9" * 5000 + b" data/x\n", ("http://a/b", None, b"data/x"), ["line-malformed"]),
        (b"a/b 1 data/x\n", ("a/b", 1, b"data/x"), ["fetch-url"]),
        (b"http://a/b#c 1 data/x\n", ("http://a/b#c", 1, b"data/x"), ["fetch-url"]),
        (b"http:/x 1 data/x\n", ("http:/x", 1, b"data/x"), ["fetch-url-odd"]),
        (b"http:// 1 data/x\n", ("http://", 1, b"data/x"), ["fetch-url-odd"]),
        (b"\n", None, ["line-blank"]),
        (b" \t\n", None, ["line-blank"]),
        (b"http://a/b data/x\n", None, ["line-malformed"]),
        (b"http://a/b\n", None, ["line-malformed"]),
        (b" http://a/b 1 data/x\n", None, ["line-malformed"]),
        (b"http://a/b 1 bagit.txt\n", None, ["fetch-tag-file"]),
        (b"http://a/b 1 data\n", None, ["path-directory"]),
        (b"http://a/b 1 data/\n", None, ["path-directory"]),
        (b"http://a/b 1 data/x/\n", None, ["path-directory"]),
        (b"http://a/b 1 ../x\n", None, ["path-unsafe"]),
        (b"http://a/b 1 /etc/passwd\n", None, ["path-unsafe"]),
        (b"http://a/b 1 data/../../x\n", None, ["path-unsafe"]),
    ],
)
def test_lines(line: bytes, entry: tuple[str, int | None, bytes] | None, kinds: list[str]) -> None:
    """Each line has exactly its problems; an unsafe path, or one outside the payload, gives no entry."""
    expected = [] if entry is None else [FetchEntry(*entry, line=1)]
    assert read(line) == (expected, kinds)


def test_versions_encodings_and_leniency() -> None:
    """Before 1.0, percent signs are literal; other encodings are decoded; blank lines may be warnings."""
    assert read(b"u:x 1 data/%25%20\n", version=(0, 97)) == ([FetchEntry("u:x", 1, b"data/%25%20", 1)], [])
    entries, kinds = read("u:x 1 data/\u00e9\n".encode("utf-16"), "UTF-16")
    assert (entries, kinds) == ([FetchEntry("u:x", 1, "data/\u00e9".encode(), 1)], [])
    assert read(b"u:x 1 data/\xff\n", "US-ASCII") == ([], ["undecodable"])
    found = list(read_fetch(io.BytesIO(b"\n"), lenient=True))
    assert [one.severity for one in found if isinstance(one, Problem)] == ["warning"]
    with pytest.raises(ValueError, match="encoding='hex': unknown"):
        read_fetch(io.BytesIO(), "hex")
    with pytest.raises(ValueError, match="not an absolute URI"):
        fetch_line(FetchEntry("http://a b", 1, b"data/x"))


# RFC 3986, sections 1.1.2, 3.2.2 and 5.4, and similar ones.
GOOD = [
    *("ftp://ftp.is.co.za/rfc/rfc1808.txt", "ldap://[2001:db8::7]/c=GB?objectClass?one", "mailto:John.Doe@example.com"),
    *("news:comp.infosystems.www.servers.unix", "tel:+1-816-555-1212", "telnet://192.0.2.16:80/"),
    *("urn:oasis:names:specification:docbook:dtd:xml:4.1.2", "http://a", "http://a:/", "http://u:p@h:1/p;q?r=/?"),
    *("a:", "a:b", "a:/", "a:/b//c", "a://", "a:///b", "a+b-c.1:x", "http://[::]/", "http://[::ffff:1.2.3.4]"),
    *("http://[v1.a:b]/", "http://[1:2:3:4:5:6:7:8]", "http://[1::8]", "http://%41/%7E", "s3://bucket/key"),
]
BAD = [
    *(
        "",
        "a",
        "/a",
        "//a/b",
        "a/b:c",
        "1a:b",
        "http://a/b#c",
        "http://a b",
        "http://a/%",
        "http://a/%4",
        "http://a/%4g",
    ),
    *("http://[::1", "http://[:::]/", "http://[1:2:3:4:5:6:7]", "http://[1::2::3]", "http://[g::]", "http://a:b/"),
    *(
        "http://a/\u00e9",
        "http://a/[",
        'http://a/"',
        "http://a/<b>",
        "http://a/\\",
        "http://a/^",
        "http://a/`",
        "http://a\n",
    ),
    *("http://a/{b}", "http://a/|", ":a", "a\u017f:b", "http://[1.2.3.4]/", "http://[::1.2.3.256]/", "http://[::%31]/"),
    *("http://[12345::]/", "http://a@b@c/"),
]


@pytest.mark.parametrize("url", GOOD)
def test_absolute_uris(url: str) -> None:
    """Absolute URIs of the RFC are accepted."""
    assert is_absolute_uri(url)


@pytest.mark.parametrize("url", BAD, ids=ascii)
def test_refused_uris(url: str) -> None:
    """Relative references, fragments, and unencoded characters are refused."""
    assert not is_absolute_uri(url)


def test_a_long_url_takes_linear_time() -> None:
    """Matching a long URL takes linear time."""
    for piece in ("a", "/", "%41", "@", ":", "a:", "[", "?", "a@", "::", "1."):
        for end in ("", "\n", "#"):
            assert isinstance(is_absolute_uri("http://" + piece * 100_000 + end), bool)
            assert isinstance(is_absolute_uri("x:" + piece * 100_000 + end), bool)


@given(
    st.binary(max_size=80)
    | st.lists(st.sampled_from([b"http://a/b", b" ", b"\t", b"-", b"1", b"data/", b"..", b"\n", b"%0A", b"\r"])).map(
        b"".join
    )
)
def test_any_input(data: bytes) -> None:
    """Any input gives entries in the payload and problems of known kinds."""
    for encoding in ("UTF-8", "UTF-16LE"):
        entries, kinds = read(data, encoding)
        assert set(kinds) <= set(KINDS)
        assert all(entry.path.startswith(b"data/") and b".." not in entry.path.split(b"/") for entry in entries)
