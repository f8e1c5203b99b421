"""Lines of manifests and tag manifests, each with its problems."""

from __future__ import annotations

import hashlib
import io

import pytest
from hypothesis import given, strategies as st

from pressmark.bagit.manifest import ManifestEntry, digest_digits, read_manifest
from pressmark.bagit.manifest_format import REGISTERED, bag_name, is_normalized, manifest_line, official_name
from pressmark.bagit.paths import canonical, why_unsafe
from pressmark.bagit.problems import KINDS
from pressmark.fixity import ALGORITHMS
from pressmark.reports import Problem

MD5 = hashlib.md5(b"").hexdigest()
M = MD5.encode()


def read(
    data: bytes, version: tuple[int, int] = (1, 0), *, algorithm: str = "md5", encoding: str = "UTF-8", **options: bool
) -> tuple[list[ManifestEntry], list[str]]:
    entries, problems = [], []
    for found in read_manifest(io.BytesIO(data), b"M", algorithm, encoding, version, **options):
        (problems if isinstance(found, Problem) else entries).append(found)
    assert all("\n" not in one.message for one in problems)
    return entries, [one.kind for one in problems]


names = st.binary(min_size=1, max_size=12) | st.lists(
    st.sampled_from([b"%", b"25", b"0a", b"\n", b"\r", b" ", b"*", b"\\"])
).map(b"".join)


@given(st.lists(names.map(b"data/%b".__mod__)))
def test_every_name_is_read_back(paths: list[bytes]) -> None:
    """Any name of a payload file is read back."""
    paths = [path for path in paths if not why_unsafe(path) and canonical(path) == (path, False) and path[-1:] != b"/"]
    entries, kinds = read(b"".join(manifest_line(MD5, path) for path in paths))
    assert entries == [ManifestEntry(path, MD5, number) for number, path in enumerate(paths, 1)]
    assert set(kinds) <= {"undecodable"}


LINES = [
    (M + b" data/x\n", b"data/x", []),
    (M + b"\tdata/x\r", b"data/x", []),
    (M + b"  data/x\r\n", b"data/x", []),
    (M + b" \t \t  data/x\n", b"data/x", []),
    (M.upper() + b"  data/x\n", b"data/x", []),
    (M + b"  data/ x \t\n", b"data/ x \t", []),
    (M + b"  data/a%0Ab%0d%25\n", b"data/a\nb\r%", []),
    (M + b"  data/\xc3\xa9\x0b\x0c\x1c\xc2\x85\xe2\x80\xa8\n", b"data/\xc3\xa9\x0b\x0c\x1c\xc2\x85\xe2\x80\xa8", []),
    (M + b"  data/a\\b\n", b"data/a\\b", []),
    (M + b"  data/%41\n", b"data/%41", ["percent-raw"]),
    (M + b"  data/100%\n", b"data/100%", ["percent-raw"]),
    (M + b"  data/x", b"data/x", ["line-unterminated"]),
    (M + b"  data/\xff\n", b"data/\xff", ["undecodable"]),
    (M + b"  ./data//x\n", b"data/x", ["path-not-canonical"]),
    (M + b" *data/x\n", b"data/x", ["md5sum-mark"]),
    (M + b"  *data/x\n", b"data/x", ["md5sum-mark"]),
    (b"\\" + M + b"  data/a\\\\b\\n\n", b"data/a\\b\n", ["md5sum-mark"]),
    (b"\\" + M + b" *data/a\\b\n", b"data/a\\b", ["md5sum-mark", "md5sum-mark"]),
    (M[1:] + b"  data/x\n", b"data/x", ["checksum-malformed"]),
    (M + b"0  data/x\n", b"data/x", ["checksum-malformed"]),
    (M[1:] + b"g  data/x\n", b"data/x", ["checksum-malformed"]),
    ("\uff11".encode() + M[1:] + b"  data/x\n", b"data/x", ["checksum-malformed"]),
    (b"\n", None, ["line-blank"]),
    (b" \t\n", None, ["line-blank"]),
    (M + b"\n", None, ["line-malformed"]),
    (M + b"  \n", None, ["line-malformed"]),
    (b"data/x\n", None, ["line-malformed"]),
    (b" " + M + b"  data/x\n", None, ["line-malformed"]),
    (b"\xef\xbb\xbf" + M + b"  data/x\n", b"data/x", ["bom"]),
    (M + b"  bagit.txt\n", None, ["path-outside-payload"]),
    (M + b"  DATA/x\n", None, ["path-outside-payload"]),
    (M + b"  data\n", None, ["path-directory"]),
    (M + b"  data/\n", None, ["path-directory"]),
    (M + b"  data/x/\n", None, ["path-directory"]),
    (M + b"  data/x/.\n", None, ["path-not-canonical", "path-directory"]),
    (M + b"  data/../x\n", None, ["path-unsafe"]),
    (M + b"  ./C:/data/x\n", None, ["path-unsafe"]),
    (M + b"  .//~root/x\n", None, ["path-unsafe"]),
    (M + b"  /data/x\n", None, ["path-unsafe"]),
    (M + b"  ~/data/x\n", None, ["path-unsafe"]),
    (M + b"  \\\\host\\data\\x\n", None, ["path-unsafe"]),
    (M + b"  C:\\data\\x\n", None, ["path-unsafe"]),
    (M + b"  data/\0\n", None, ["path-unsafe"]),
    (M + b"  data/%2E%2E/x\n", b"data/%2E%2E/x", ["percent-raw"]),
]


@pytest.mark.parametrize(("line", "path", "kinds"), LINES, ids=[ascii(line[0][-24:]) for line in LINES])
def test_lines(line: bytes, path: bytes | None, kinds: list[str]) -> None:
    """Each line has exactly its problems, and gives an entry if possible."""
    digest = "" if "checksum-malformed" in kinds else MD5
    assert read(line) == ([] if path is None else [ManifestEntry(path, digest, 1)], kinds)


TAG_LINES = [
    (M + b"  bagit.txt\n", b"bagit.txt", []),
    (M + b"  manifest-md5.txt\n", b"manifest-md5.txt", []),
    (M + b"  tags/data/x\n", b"tags/data/x", []),
    (M + b"  tags/tagmanifest-md5.txt\n", b"tags/tagmanifest-md5.txt", []),
    (M + b"  database\n", b"database", []),
    (M + b"  *x\n", b"*x", []),
    (M + b" *x\n", b"x", ["md5sum-mark"]),
    (M + b"  ~$x.docx\n", b"~$x.docx", []),
    (M + b"  data/x\n", None, ["tag-manifest-payload"]),
    (M + b"  tagmanifest-md5.txt\n", None, ["tag-manifest-itself"]),
    (M + b"  ./tagmanifest-sha3_256.txt\n", None, ["path-not-canonical", "tag-manifest-itself"]),
    (M + b"  ~root/x\n", None, ["path-unsafe"]),
    (M + b"  ../x\n", None, ["path-unsafe"]),
    (M + b"  /etc/passwd\n", None, ["path-unsafe"]),
    (M + b"  .\n", None, ["path-unsafe"]),
]


@pytest.mark.parametrize(("line", "path", "kinds"), TAG_LINES, ids=[ascii(line[0][-24:]) for line in TAG_LINES])
def test_lines_of_tag_manifests(line: bytes, path: bytes | None, kinds: list[str]) -> None:
    """Tag manifests list tag files, not the payload or themselves."""
    assert read(line, tag=True) == ([] if path is None else [ManifestEntry(path, MD5, 1)], kinds)


def test_a_name_may_begin_with_a_blank() -> None:
    """A tag file whose name begins with a blank is listed as ``./`` and its name."""
    line = manifest_line(MD5, b" x")
    assert line == M + b"  ./ x\n"
    assert read(line, tag=True) == ([ManifestEntry(b" x", MD5, 1)], ["path-not-canonical"])


def test_versions() -> None:
    """Before 1.0 only line ends are encoded, and a percent sign is literal."""
    assert read(M + b"  data/%41%25%0A\n", (0, 97)) == ([ManifestEntry(b"data/%41%25\n", MD5, 1)], [])


def test_leniency() -> None:
    """Blank lines are errors, or warnings with ``lenient``."""
    for lenient, severity in ((False, "error"), (True, "warning")):
        found = list(read_manifest(io.BytesIO(b"\n"), b"M", "md5", lenient=lenient))
        assert [one.severity for one in found if isinstance(one, Problem)] == [severity]


def test_unknown_algorithms() -> None:
    """Checksums of an unknown algorithm are hexadecimal of any length."""
    assert read(b"AbC  data/x\nxyz  data/y\n", algorithm="crc12") == (
        [ManifestEntry(b"data/x", "abc", 1), ManifestEntry(b"data/y", "", 2)],
        ["checksum-malformed"],
    )


@pytest.mark.parametrize("encoding", ["UTF-16", "UTF-16LE", "UTF-32BE", "Shift_JIS", "GB18030", "IBM037", "EUC-JP"])
def test_other_encodings(encoding: str) -> None:
    """Text is decoded, and paths are its UTF-8."""
    codec = {"IBM037": "cp037"}.get(encoding, encoding)
    name = "data/a/b" if encoding == "IBM037" else "data/\u30bd\u8868\u30bd/\u80fd"
    data = f"{MD5}  {name}\r\n{MD5}\t{name}2\r".encode(codec)
    assert read(data, encoding=encoding) == (
        [ManifestEntry(name.encode(), MD5, 1), ManifestEntry(f"{name}2".encode(), MD5, 2)],
        [],
    )


def test_undecodable_lines_of_other_encodings() -> None:
    """An undecodable line gives no entry; the lines around it do."""
    data = M + b"  data/a\n" + M + b"  data/\xff\n" + M + b"  data/b\n"
    entries, kinds = read(data, encoding="US-ASCII")
    assert ([entry.path for entry in entries], kinds) == ([b"data/a", b"data/b"], ["undecodable"])


def test_problems_have_a_location() -> None:
    """A problem of a line names the manifest and the line; one of a path names the path."""
    data = M + b"  data/x\n\n" + M + b"  ../x\n"
    blank, unsafe = [one for one in read_manifest(io.BytesIO(data), b"M", "md5") if isinstance(one, Problem)]
    assert (blank.path, blank.algorithm, blank.message) == ("M", "md5", "line 2: a blank line")
    assert (unsafe.path, unsafe.message) == ("../x", "M, line 3: path contains a '..' segment")


@given(
    st.binary(max_size=100),
    st.sampled_from(["UTF-8", "UTF-16", "ISO-8859-1", "UTF-7", "HZ-GB-2312", "ISO-2022-JP"]),
    st.booleans(),
)
def test_any_input(data: bytes, encoding: str, tag: bool) -> None:
    """Any input gives safe paths and problems of known kinds."""
    for more in (b"", M + b"  data/", M + b" ", b"\n"):
        entries, kinds = read(more + data, encoding=encoding, tag=tag)
        assert set(kinds) <= set(KINDS)
        assert all(why_unsafe(entry.path) is None for entry in entries)
        assert all(entry.path.startswith(b"data/") != tag for entry in entries)


def test_an_unknown_encoding() -> None:
    """A name that is not a character set is refused."""
    with pytest.raises(ValueError, match="encoding='rot13': unknown"):
        read_manifest(io.BytesIO(), b"M", "md5", "rot13")


# --- names of algorithms --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_has_its_own_name(name: str) -> None:
    """Each name is normalized, and identifies its algorithm."""
    assert is_normalized(bag_name(name))
    assert official_name(bag_name(name)) == official_name(name) == name
    assert digest_digits(bag_name(name)) == digest_digits(name) == 2 * ALGORITHMS[name].size


@pytest.mark.parametrize(
    ("common", "normalized"),
    [
        ("MD5", "md5"),
        ("SHA-1", "sha1"),
        ("sha-256", "sha256"),
        ("sha-512", "sha512"),
        ("SHA512/256", "sha512256"),
        ("SHA3-256", "sha3256"),
        ("\u017fha-1", "ha1"),
    ],
)
def test_normalization(common: str, normalized: str) -> None:
    """Names are normalized to lower-case letters and digits, as in the draft's examples."""
    assert bag_name(common) == normalized


@pytest.mark.parametrize("name", ["sha3_256", "SHA256", "sha-256", "", "sha256\n", "\u017fha1", "md\uff15"])
def test_names_that_are_not_normalized(name: str) -> None:
    """Names with upper case, punctuation or characters outside ASCII are not normalized."""
    assert not is_normalized(name)


def test_names_of_unknown_algorithms() -> None:
    """An unknown algorithm is not an error of the line: its bag can be complete, but not valid."""
    assert official_name("crc64") is None
    assert official_name("") is None
    assert digest_digits("crc64") == 0


def test_the_registry() -> None:
    """All recommended algorithms are registered; non-cryptographic ones are not."""
    assert {bag_name(name) for name in ALGORITHMS} - REGISTERED == {
        *("sha224", "sha512256", "blake2b160", "blake2b384", "blake3"),
        *("xxh32", "xxh64", "xxh364", "xxh128"),
    }
    assert all(map(is_normalized, REGISTERED))
