"""Manifests: exchange with other tools, and every name is read back."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import assume, given, strategies as st

from pressmark.errors import AlgorithmError, ManifestError
from pressmark.fixity import (
    ALGORITHMS,
    FORMATS,
    ManifestEntry,
    Outcome,
    hash_files,
    manifest_line,
    read_manifest,
    walk,
    write_manifest,
)
from pressmark.fixity.algorithms import algorithms_in_name
from pressmark.fixity.manifests import manifest_lines

from .trees import HOSTILE

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="names are bytes on Linux")


def read(data: bytes, algorithms: list[str] | None = None, format: str | None = None) -> list[ManifestEntry]:
    return list(read_manifest(io.BytesIO(data), "M", algorithms, format))


def outcome(path: bytes, *names: str) -> Outcome:
    digests = {name: hashlib.shake_128(path + name.encode()).hexdigest(ALGORITHMS[name].size) for name in names}
    return Outcome(os.fsdecode(path), digests, len(path), 1_700_000_000_123_456_789, 7)


names = st.binary(min_size=1, max_size=40).filter(lambda name: b"\0" not in name) | st.sampled_from(HOSTILE)
some_algorithms = st.lists(st.sampled_from(list(ALGORITHMS)), min_size=1, max_size=4, unique=True)


@pytest.mark.slow_under_sanitizers
@given(st.lists(names, min_size=1, max_size=5), some_algorithms, st.sampled_from(FORMATS))
def test_round_trip(paths: list[bytes], algorithms: list[str], format: str) -> None:
    """Every name and digest is read back in every format."""
    if format == "coreutils":
        algorithms = algorithms[:1]
    # Consecutive lines of one file are one entry in the BSD format.
    paths = list(dict.fromkeys(paths))
    outcomes = [outcome(path, *algorithms) for path in paths]
    data = b"".join(manifest_line(one, format) for one in outcomes)
    # b3sum does not escape carriage returns: most names that end with one look like a list of Windows.
    assume(format != "coreutils" or 2 * data.count(b"\r\n") <= data.count(b"\n"))
    assert manifest_lines(outcomes, format) == data
    entries = read(data, algorithms)
    assert [(entry.path, entry.digests) for entry in entries] == [(one.path, one.digests) for one in outcomes]
    if format == "json":
        assert [(entry.size, entry.mtime_ns) for entry in entries] == [(one.size, one.mtime_ns) for one in outcomes]
    if format != "coreutils":
        assert read(data) == entries


@given(st.binary(max_size=200))
def test_nonsense_is_refused_in_one_line(data: bytes) -> None:
    """Any input gives entries or an error with a line number."""
    found: ManifestError | None = None
    try:
        read(data)
    except ManifestError as error:
        found = error
    if found is not None:
        assert 1 <= found.line <= data.count(b"\n") + 1
        assert str(found).startswith(f"M:{found.line}: ")


MD5 = "d41d8cd98f00b204e9800998ecf8427e"
SHA1 = "da39a3ee5e6b4b0d3255bfef95601890afd80709"


@pytest.mark.parametrize(
    ("line", "path", "algorithm"),
    [
        (f"{MD5}  a b", b"a b", "md5"),
        (f"{MD5} *a", b"a", "md5"),
        (f"{MD5}   a", b" a", "md5"),
        (f"{MD5.upper()}  a", b"a", "md5"),
        (f"\\{MD5}  a\\nb\\\\c\\rd", b"a\nb\\c\rd", "md5"),
        (f"{MD5}  a\\nb", b"a\\nb", "md5"),
        (f"{MD5} a", b"a", "md5"),
        (f"{MD5}\ta b", b"a b", "md5"),
        (f"  {MD5}  a", b"a", "md5"),
        (f"\\{MD5} a\\nb", b"a\nb", "md5"),
        (f"{SHA1}  a", b"a", "sha1"),
        (f"MD5 (a) = {MD5}", b"a", "md5"),
        (f"MD5(a)= {MD5}", b"a", "md5"),
        (f"SHA1 (a) = b) = {SHA1}", b"a) = b", "sha1"),
        (f"\\SHA1 (a\\nb) = {SHA1}", b"a\nb", "sha1"),
        (f'{{"path": "a\\udcff", "digests": {{"SHA-1": "{SHA1.upper()}"}}}}', b"a\xff", "sha1"),
    ],
)
def test_lines_of_others(line: str, path: bytes, algorithm: str) -> None:
    """Lines of other tools are read, with or without a final line feed, and between comments."""
    digest = MD5 if algorithm == "md5" else SHA1
    for data in (line, f"{line}\n", f"# comment\n\n{line}\n; another\n"):
        for text in (data, data.replace("\n", "\r\n")):
            encoded = text.encode()
            for content in (encoded, codecs.BOM_UTF8 + encoded, text.encode("utf-16"), gzip.compress(encoded)):
                entries = read(content)
                assert [(entry.path, entry.digests) for entry in entries] == [(os.fsdecode(path), {algorithm: digest})]
                assert entries[0].line == (1 if data.startswith(line) else 3)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("nonsense", "expected digest, two spaces and name"),
        (f"{MD5}", "expected digest, two spaces and name"),
        (f"{MD5}  ", "expected digest, two spaces and name"),
        (f"{MD5[1:]}  a", "digest has 31 hex digits, earlier ones have 32; choose one of the algorithms (algorithms=)"),
        (f"{SHA1}  a", "digest has 40 hex digits, earlier ones have 32; choose one of the algorithms (algorithms=)"),
        (f"\\{MD5}  a\\xb", "invalid escape '\\x'"),
        (f"\\{MD5}  a\\", "invalid escape '\\'"),
        (f"MD5 (a) = {MD5}", "expected digest, two spaces and name"),
    ],
)
def test_bad_lines(line: str, reason: str) -> None:
    """A malformed line is an error with its number."""
    with pytest.raises(ManifestError) as caught:
        read(f"{MD5}  first\n{line}\n".encode())
    assert str(caught.value) == f"M:2: {reason}"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("abcd  a", "no algorithm with 4 hex digits"),
        (f"MD6 (a) = {MD5}", "algorithm 'MD6': unknown; choose from md5"),
        (f"MD5 (a) = {SHA1}", "expected 32 hex digits for md5"),
        ("{", "invalid JSON"),
        ("{}", 'expected an object with "path"'),
        ('{"path": "a"}', '"digests" is not an object, or empty'),
        ('{"path": "a", "digests": {"md5": "x"}}', "expected 32 hex digits for md5"),
        (f'{{"path": "", "digests": {{"md5": "{MD5}"}}}}', '"path" is not a valid file name'),
        (f'{{"path": "\\ud800", "digests": {{"md5": "{MD5}"}}}}', '"path" has an unpaired surrogate'),
        (f'{{"path": "a", "size": 1.5, "digests": {{"md5": "{MD5}"}}}}', '"size" is not an integer'),
        (
            f'{{"path": "a", "digests": {{"md5": "{MD5}", "MD5": "{MD5}"}}}}',
            "digest 'MD5' is not a string, or a duplicate",
        ),
        (
            f'{{"path": "a", "digests": {{"md5": "{MD5}", "md5": "{MD5}"}}}}',
            "duplicate key 'md5'",
        ),
        (f'{{"path": "a", "path": "b", "digests": {{"md5": "{MD5}"}}}}', "duplicate key 'path'"),
    ],
)
def test_bad_first_lines(line: str, reason: str) -> None:
    """A malformed first line is an error in each format."""
    with pytest.raises(ManifestError) as caught:
        read(line.encode())
    assert str(caught.value).startswith(f"M:1: {reason}")


FOREIGN = {
    "-----BEGIN PGP SIGNED MESSAGE-----": "list signed with PGP",
    "-----BEGIN PGP SIGNATURE-----": "PGP signature",
    "%%%% HASHDEEP-1.0": "hashdeep",
    "/set type=file": "mtree",
    "Algorithm       Hash          Path": "Get-FileHash",
    '"Algorithm","Hash","Path"': "Get-FileHash",
    "SHA256 hash of a.iso:": "certutil",
    '[{"path": "a"}]': "JSON array",
    "<?xml version='1.0'?>": "XML",
    "PK\x03\x04": "zip archive",
    "3915528286 4 a": "cksum",
    "12345678 4 a": "cksum",
    "a b.tif 0123abCD": "SFV",
    f"a b.tif  {MD5}": "digest after name",
    f"a.tif: {SHA1}": "digest after name",
    f'"a.tif","{SHA1}"': "digest after name",
    f"{MD5}  a\0{MD5}  b\0": "without --zero",
    "1B2M2Y8AsgTpgAmY7PhCfg==  a": "digest in base64",
    "SHA256 (a) = 47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=": "digest in base64",
    "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=  a": "digest in base64",
    "OLBgp1GsljhM2TJ+sbHjaiH9txEUvgdDTAzHv2P24donTt6/529l+9Ua0vFImLlb  a": "digest in base64",
}


@pytest.mark.parametrize("line", FOREIGN)
def test_other_formats(line: str) -> None:
    """A list in a format that is not read is refused by name, wherever the line is; the message says what to do."""
    for before in ("", "# comment\n", f"{MD5}  first\n"):
        if before.startswith(MD5) and line.startswith(("1234", "3915")):
            continue  # without two spaces, the rest is a name
        with pytest.raises(ManifestError) as caught:
            read(f"{before}{line}\n".encode())
        assert FOREIGN[line] in caught.value.reason
        assert re.search(r"[;(]", caught.value.reason)
    for encoding in ("utf-16-le", "utf-16-be"):
        with pytest.raises(ManifestError, match=r"M:1: UTF-16 without byte-order mark; convert it to UTF-8"):
            read(f"{MD5}  a\n".encode(encoding))
    with pytest.raises(ManifestError, match=r"M:1: binary file"):
        read(b"\x7fELF\2\1\1\0\0\n")
    for encoding in ("utf-32-le", "utf-32-be"):
        with pytest.raises(ManifestError, match="M:1: UTF-32"):
            read(f"\ufeff{MD5}  a\n".encode(encoding))
    with pytest.raises(ManifestError, match="M:2: invalid UTF-16"):
        read(f"{MD5}  a\n{MD5}  b\n".encode("utf-16")[:-1])
    with pytest.raises(ManifestError, match="M:1: broken gzip data: unexpected end"):
        read(gzip.compress(f"{MD5}  a\n".encode())[:-1])


def test_a_mistyped_digest_is_not_base64() -> None:
    """A letter that is no hexadecimal digit does not make a digest base64."""
    with pytest.raises(ManifestError, match="expected digest, two spaces and name"):
        read(b"g" + b"0" * 63 + b"  a\n")


def test_what_is_passed_over_is_counted() -> None:
    """Comments, blank lines and digests of other algorithms are counted."""
    entries = read_manifest(io.BytesIO(f"# a\n\n{MD5}  a\n \t\n".encode()), "M")
    assert entries.format is None
    assert [entry.path for entry in entries] == ["a"]
    assert (entries.format, entries.passed_over) == ("coreutils", 3)
    lines = f"{MD5}  a\n{SHA1}  a\n{MD5}  b\n"
    for data in (lines, f"MD5 (a) = {MD5}\nMD5 (b) = {MD5}\nSHA1 (b) = {SHA1}\n"):
        entries = read_manifest(io.BytesIO(data.encode()), "M", "sha1")
        assert [list(entry.digests) for entry in entries] == [["sha1"]]
        assert entries.passed_over == 1  # b
        assert [list(entry.digests) for entry in read(lines.encode(), ["sha1", "md5"])] == [["md5", "sha1"], ["md5"]]
        with pytest.raises(ManifestError, match="is not sha256"):
            read(data.encode(), ["sha256"])


def test_one_space_and_two() -> None:
    """The first line decides, as for sha512sum: after one space, more of them are part of the name."""
    assert [entry.path for entry in read(f"{MD5} a\n{MD5}  b\n{MD5} *c\n".encode())] == ["a", " b", "*c"]
    assert [entry.path for entry in read(f"{MD5}  a\n{MD5} b\n{MD5} *c\n".encode())] == ["a", "b", "c"]


def test_names_that_end_with_a_carriage_return() -> None:
    """Of the macOS file "Icon\r", which old versions of sha512sum do not escape, the return is part of the name."""
    assert [entry.path for entry in read(f"{MD5}  Icon\r\n{MD5}  a\n".encode())] == ["Icon\r", "a"]
    assert [entry.path for entry in read(f"{MD5}  Icon\r\r\n{MD5}  a\r\n".encode())] == ["Icon\r", "a"]
    assert [entry.path for entry in read(f"{MD5}  a\r\n{MD5}  b\r\n{MD5}  c\n".encode())] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("SHA256SUMS", "sha256"),
        ("sha512sum.txt", "sha512"),
        ("manifest-md5.txt", "md5"),
        ("tagmanifest-sha512256.txt", "sha512/256"),
        ("manifest-sha3256.txt", "sha3-256"),
        ("dir.256/x.sha1", "sha1"),
        ("x.tar.gz.sha3-512", "sha3-512"),
        ("b3sum", "blake3"),
        ("B2SUMS", "blake2b-512"),
        ("x.b3.gz", "blake3"),
        ("x.blake2b-256", "blake2b-256"),
        ("bash.md5sums", "md5"),
        ("CHECKSUM.SHA-256", "sha256"),
        ("md5checksums.txt", "md5"),
        ("sha256_checksums.txt", "sha256"),
        ("SHASUMS256.txt", "sha256"),
        ("inventory.json.sha512", "sha512"),
        ("x.xxh128sum", "xxh128"),
        ("x.xxh3-64", "xxh3-64"),
        ("box-b3.txt", None),
        ("md50.txt", None),
        ("sha256x.txt", None),
        ("b3sum/SUMS", None),
        ("<stdin>", None),
    ],
)
def test_algorithm_in_the_name(name: str, expected: str | None) -> None:
    """The name of a list tells its algorithm, if the digests have its length."""
    assert algorithms_in_name(name) == (() if expected is None else (expected,))
    if expected is not None:
        digest = "0" * (2 * ALGORITHMS[expected].size)
        entries = read_manifest(io.BytesIO(f"{digest}  a\n".encode()), name)
        assert [list(entry.digests) for entry in entries] == [[expected]]
        assert not entries.is_guessed
    entries = read_manifest(io.BytesIO(b"0" * 56 + b"  a\n"), name)
    assert [list(entry.digests) for entry in entries] == [["sha224"]]
    assert entries.is_guessed


def test_several_algorithms_in_the_name() -> None:
    """The last one that fits counts: a list of the lists of sha256 may be named sha256.b3."""
    for name, digits, expected in (("sha256.b3", 64, "blake3"), ("md5.sha256", 32, "md5"), ("b3sum.sha1", 40, "sha1")):
        entries = read_manifest(io.BytesIO(b"0" * digits + b"  a\n"), name)
        assert [list(entry.digests) for entry in entries] == [[expected]]


def test_algorithm_of_coreutils_lines() -> None:
    """The algorithm of coreutils lines is given, where digests have equal lengths."""
    digest = "0" * 64
    line = f"{digest}  a\n".encode()
    assert read(line)[0].digests == {"sha256": digest}
    assert read(line, ["b3"])[0].digests == {"blake3": digest}
    assert read(line, ["md5", "blake3"])[0].digests == {"blake3": digest}
    with pytest.raises(ManifestError, match="digest of 64 hex digits is not sha512"):
        read(line, ["sha512"])
    with pytest.raises(ManifestError, match="is not sha256 or blake3"):
        read(line, ["sha256", "blake3"])
    with pytest.raises(AlgorithmError):
        read(line, ["nope"])
    with pytest.raises(ValueError, match="format="):
        read(line, format="csv")


def test_chosen_digests() -> None:
    """Of several digests, the requested ones are kept; files without any of them are omitted."""
    lines = f"MD5 (a) = {MD5}\nSHA1 (a) = {SHA1}\nMD5 (b) = {MD5}\nMD5 (b) = {MD5}\n".encode()
    assert [(entry.path, entry.digests, entry.line) for entry in read(lines)] == [
        ("a", {"md5": MD5, "sha1": SHA1}, 1),
        ("b", {"md5": MD5}, 3),
        ("b", {"md5": MD5}, 4),
    ]
    assert [(entry.path, entry.digests) for entry in read(lines, ["sha1"])] == [("a", {"sha1": SHA1})]


def test_a_line_without_end() -> None:
    """The length of a line is limited, so that a file without line feeds does not fill the memory."""
    with pytest.raises(ManifestError, match="M:1: line longer than 1048576 bytes"):
        read(b"a" * (1 << 21))


def test_outcomes_without_a_line() -> None:
    """Failures have no line, and the coreutils format has one digest."""
    with pytest.raises(ValueError, match="without digests"):
        manifest_line(Outcome("a", None, None, None, None, "missing", "x"), "bsd")
    with pytest.raises(ValueError, match="one digest"):
        manifest_line(outcome(b"a", "md5", "sha1"), "coreutils")
    with pytest.raises(ValueError, match="format="):
        manifest_line(outcome(b"a", "md5"), "csv")
    with pytest.raises(ValueError, match="without digests"):
        manifest_lines([outcome(b"a", "md5"), Outcome("b", None, None, None, None, "missing", "x")], "coreutils")
    with pytest.raises(ValueError, match="one digest"):
        manifest_lines([outcome(b"a", "md5"), outcome(b"b", "md5", "sha1")], "coreutils")
    assert manifest_lines([], "coreutils") == b""


def test_written_completely_or_not_at_all(tmp_path: Path) -> None:
    """A manifest replaces an existing file only when complete; nothing else remains."""
    path = tmp_path / "M"
    path.write_bytes(b"old")

    def broken() -> object:
        yield outcome(b"a", "md5")
        assert path.read_bytes() == b"old"
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_manifest(path, broken())  # type: ignore[arg-type]
    assert [entry.name for entry in tmp_path.iterdir()] == ["M"]
    assert path.read_bytes() == b"old"
    missing = Outcome("b", None, None, None, None, "missing", "x")
    assert write_manifest(path, [outcome(b"a", "md5"), missing], "json") == [missing]
    assert json.loads(path.read_bytes())["path"] == "a"
    write_manifest(tmp_path / "M.gz", [outcome(b"a", "md5"), missing], "json")
    assert gzip.decompress((tmp_path / "M.gz").read_bytes()) == path.read_bytes()


# --- exchange with other tools --------------------------------------------------------------------------------------

TOOLS = {"md5sum": "md5", "sha1sum": "sha1", "sha256sum": "sha256", "sha512sum": "sha512", "b2sum": "blake2b-512"}


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    folder = tmp_path / "hostile"
    folder.mkdir()
    for number, name in enumerate(HOSTILE):
        with open(os.path.join(os.fsencode(folder), name), "wb") as file:
            file.write(b"%d" % number)
    return folder


def tool(name: str, *args: bytes | str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"no {name} here")
    return subprocess.run([path, *args], cwd=folder, capture_output=True, check=False)


@linux
@pytest.mark.parametrize("tag", [False, True], ids=["plain", "tag"])
@pytest.mark.parametrize("name", [*TOOLS, "b3sum"])
def test_tools_accept_ours(name: str, tag: bool, hostile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """sha512sum -c and related tools verify every hostile name that we write."""
    monkeypatch.chdir(hostile)
    algorithm = TOOLS.get(name, "blake3")
    outcomes = list(hash_files(walk(b"."), [algorithm]))
    data = b"".join(manifest_line(one, "bsd" if tag else "coreutils") for one in outcomes)
    if name == "b3sum":
        if tag:
            pytest.skip("b3sum reads plain lines")
        # b3sum refuses names that are not UTF-8, even its own.
        data = b"".join(line for line in data.splitlines(keepends=True) if b"\xff" not in line)
    manifest = hostile.parent / "M"
    manifest.write_bytes(data)
    done = tool(name, "-c", manifest, folder=hostile)  # type: ignore[arg-type]
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(b": OK\n") == data.count(b"\n")
    assert done.stderr == b""


@linux
@pytest.mark.parametrize("tag", [False, True], ids=["plain", "tag"])
@pytest.mark.parametrize("name", [*TOOLS, "b3sum"])
def test_we_accept_theirs(name: str, tag: bool, hostile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every line of sha512sum and related tools is read, and agrees with our digest."""
    monkeypatch.chdir(hostile)
    algorithm = TOOLS.get(name, "blake3")
    paths = [os.fsencode(path) for path in walk(b".") if isinstance(path, str)]
    if name == "b3sum":
        if tag:
            pytest.skip("older ones cannot")
        paths = [path for path in paths if b"\xff" not in path]
    done = tool(name, *(["--tag"] if tag else []), "--", *paths, folder=hostile)
    assert done.returncode == 0, done.stderr
    entries = read(done.stdout, [algorithm])
    found = list(hash_files(paths, [algorithm]))
    assert [(entry.path, entry.digests) for entry in entries] == [(os.fsdecode(one.path), one.digests) for one in found]
