"""The index over manifests: compared with a dictionary, at its edges, and within its limits."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pytest
from hypothesis import given, strategies as st

from pressmark.bagit import manifest_index
from pressmark.bagit.manifest import ManifestEntry, read_manifest
from pressmark.bagit.manifest_format import manifest_line
from pressmark.bagit.manifest_index import ListedFile, Listing, ManifestSource, RespelledEntry
from pressmark.errors import BagError
from pressmark.reports import Problem
from support.implementations import Implementation, use


def digest(number: int, algorithm: str = "md5") -> str:
    return hashlib.new(algorithm, str(number).encode()).hexdigest()


def listing(*manifests: bytes, version: tuple[int, int] = (1, 0), encoding: str = "UTF-8", **options: bool) -> Listing:
    """Return the index of manifests in memory: the first of md5, the second of sha1, the third of sha256."""
    sources = [
        ManifestSource(b"manifest-%b.txt" % name.encode(), name, io.BytesIO(data))
        for name, data in zip(("md5", "sha1", "sha256"), manifests, strict=False)
    ]
    return Listing(sources, encoding, version, **options)


def kinds(found: Listing) -> list[str]:
    return [one.kind for one in found.problems]


pytestmark = pytest.mark.usefixtures("implementation")

pieces = st.sampled_from(
    [
        *(digest(1).encode(), digest(2).encode(), digest(3).encode().upper(), digest(4)[1:].encode()),
        *(b" ", b"  ", b"\t", b"   ", b"data/", b"data/a", b"data/A", b"data/a%25b", b"data/a%b", b"data/\xc3\xa9"),
        *(
            b"data/e\xcc\x81",
            b"data/\xff",
            b"./data/a",
            b"data//a",
            b"*data/a",
            b"\\",
            b"/",
            b"..",
            b"x",
            b"\0",
            b"%0A",
        ),
        *(b"\n", b"\r\n", b"\r", b"\n", b"bagit.txt", b"\xef\xbb\xbf"),
    ]
)
contents = st.lists(pieces, max_size=40).map(b"".join) | st.lists(
    st.tuples(st.integers(1, 9), st.integers(1, 6), st.sampled_from([b"\n", b"\r", b"\r\n"])), max_size=30
).map(lambda rows: b"".join(b"%b  data/%d%b" % (digest(a).encode(), b, end) for a, b, end in rows))


class Trickle(io.BytesIO):
    """A file that returns a few bytes per read."""

    few = 0

    def read(self, size: int | None = -1) -> bytes:
        return super().read(min(size, self.few) if size and size > 0 and self.few else size)


@given(
    st.lists(contents, min_size=1, max_size=3), st.sampled_from([(1, 0), (0, 97)]), st.booleans(), st.integers(0, 99)
)
def test_same_as_a_dictionary(
    implementations: list[Implementation], data: list[bytes], version: tuple[int, int], tag: bool, few: int
) -> None:
    """Entries, checksums, duplicates, marks and problems equal those of the lines read into a dictionary."""
    algorithms = ["md5", "sha1", "sha256"][: len(data)]
    expected: dict[bytes, dict[str, str]] = {}
    problems: list[tuple[str, str]] = []
    for algorithm, content in zip(algorithms, data, strict=True):
        for found in read_manifest(io.BytesIO(content), b"M", algorithm, "UTF-8", version, tag=tag):
            if isinstance(found, Problem):
                problems.append((found.kind, found.path))
            elif algorithm in expected.setdefault(found.path, {}):
                problems.append(("path-duplicate", os.fsdecode(found.path)))
            else:
                expected[found.path][algorithm] = found.digest
    for implementation in implementations:
        sources = []
        for algorithm, content in zip(algorithms, data, strict=True):
            file = Trickle(content)
            file.few = few
            sources.append(ManifestSource(b"M", algorithm, file))
        with use(implementation), Listing(sources, "UTF-8", version, tag=tag) as made:
            for source in sources:
                source.file.few = 0  # type: ignore[attr-defined]
            assert {path: dict(sorted(digests.items())) for path, digests in made.entries()} == {
                path: dict(sorted(digests.items())) for path, digests in expected.items()
            }
            assert len(made) == len(expected)
            assert bool(made) == bool(expected)
            assert [(one.kind, one.path) for one in made.problems] == problems
            for path, digests in expected.items():
                assert made.find(path) == digests
                assert path in made
            for path in (b"data/none", b"", b"data/", b"data/a%2525b"):
                if path not in expected:
                    assert made.find(path) == {}
                    assert not made.mark_seen(path)
            assert [path for path, _ in made.unmarked()] == [path for path, _ in made.entries()]
            kept = [path for path, _ in made.entries()]
            for path in kept[::2]:
                assert made.mark_seen(path)
            assert [path for path, _ in made.unmarked()] == kept[1::2]


def test_empty_indexes() -> None:
    """The index of no manifests, or of empty ones, is empty."""
    for made in (listing(), listing(b""), listing(b"", b"")):
        assert (len(made), bool(made), made.problems, list(made.entries())) == (0, False, [], [])
        assert made.find(b"data/x") == {}
        assert made.find_respelled(b"data/x") is None
        assert list(made.collisions()) == []


def test_several_manifests() -> None:
    """A file has the checksums of all manifests that list it; entries are unique and in order."""
    first = manifest_line(digest(1), b"data/a") + manifest_line(digest(2), b"data/b")
    second = manifest_line(digest(3, "sha1"), b"data/c") + manifest_line(digest(1, "sha1"), b"data/a")
    made = listing(first, second)
    assert made.algorithms == ("md5", "sha1")
    assert list(made.entries()) == [
        ListedFile(b"data/a", {"md5": digest(1), "sha1": digest(1, "sha1")}),
        ListedFile(b"data/b", {"md5": digest(2)}),
        ListedFile(b"data/c", {"sha1": digest(3, "sha1")}),
    ]
    assert len(made) == 3
    assert made.find(b"data/a", mark=True) == {"md5": digest(1), "sha1": digest(1, "sha1")}
    assert [path for path, _ in made.unmarked()] == [b"data/b", b"data/c"]


def test_duplicates() -> None:
    """The first line counts; a duplicate with another checksum is reported."""
    made = listing(
        manifest_line(digest(1), b"data/a") * 2 + f"{digest(2)}  ./data//a\n{digest(1).upper()}\tdata/a\n".encode()
    )
    assert len(made) == 1
    found = [one for one in made.problems if one.kind == "path-duplicate"]
    assert [(one.expected, one.found) for one in found] == [(None, None), (digest(1), digest(2)), (None, None)]
    assert [one.message for one in found] == [
        "manifest-md5.txt, line 2: duplicate entry",
        "manifest-md5.txt, line 3: duplicate entry, with another checksum",
        "manifest-md5.txt, line 4: duplicate entry",
    ]


def test_raw_percent_signs() -> None:
    """A line's decoded name counts; its raw name is tried for lines without a match."""
    data = f"{digest(1)}  data/a%25b\n{digest(2)}  data/c%0Ad\n".encode()
    made = listing(data)
    assert made.find(b"data/a%25b") == {}
    assert made.find(b"data/a%b") == {"md5": digest(1)}
    assert made.find_respelled(b"data/a%25b", mark=False) == RespelledEntry(
        "percent-raw", b"data/a%b", {"md5": digest(1)}
    )
    assert made.find_respelled(b"data/a%25b") == RespelledEntry("percent-raw", b"data/a%b", {"md5": digest(1)})
    assert made.find_respelled(b"data/a%25b") is None
    assert made.find_respelled(b"data/c%0Ad") == RespelledEntry("percent-raw", b"data/c\nd", {"md5": digest(2)})
    assert list(made.unmarked()) == []
    both = listing(data)
    assert both.mark_seen(b"data/a%b")
    assert both.find_respelled(b"data/a%25b") is None


def test_percent_signs_that_were_encoded_before_1_0() -> None:
    """Up to 0.97 ``%25`` is literal; encoded percent signs are understood as well."""
    made = listing(f"{digest(1)}  data/a%25b\n".encode(), version=(0, 97))
    assert made.find(b"data/a%25b") == {"md5": digest(1)}
    assert made.find(b"data/a%b") == {}
    assert made.find_respelled(b"data/a%b") == RespelledEntry("percent-raw", b"data/a%25b", {"md5": digest(1)})


def test_backslashes_of_md5sum() -> None:
    """Backslashes in a line that begins with one may be doubled or not."""
    made = listing(f"\\{digest(1)}  data/a\\\\b\n\\{digest(2)}  data/c\\n\n".encode())
    assert made.find(b"data/a\\b", mark=True) == {"md5": digest(1)}
    assert made.find(b"data/c\\n") == {}
    assert made.find_respelled(b"data/c\\n") == RespelledEntry("md5sum-mark", b"data/c\n", {"md5": digest(2)})


@pytest.mark.parametrize(("listed", "there"), [("NFC", "NFD"), ("NFD", "NFC")])
def test_normalization(listed: str, there: str) -> None:
    """A name in another normalization form is found once, if no other entry matches."""
    import unicodedata

    name = "data/N\u00fa\u00f1ez \u212b.txt"
    one, other = (unicodedata.normalize(form, name).encode() for form in (listed, there))
    made = listing(manifest_line(digest(1), one), manifest_line(digest(1, "sha1"), one))
    assert made.find(other) == {}
    expected = RespelledEntry("name-normalized", one, {"md5": digest(1), "sha1": digest(1, "sha1")})
    assert made.find_normalized(other, mark=False) == expected
    assert made.find_respelled(other) == expected
    assert made.find_respelled(other) is None
    assert made.find_respelled(one) is None
    assert list(made.unmarked()) == []


def test_collisions() -> None:
    """Names that differ only in case or normalization are each reported once, never with themselves."""
    names = ["a", "A", "b", "\u00c9", "e\u0301", "E\u0301", "c/D", "C/d", "x", "\u212a", "k", "\u1e9e", "SS"]
    data = "".join(f"{digest(1)}  data/{name}\n" for name in names).encode()
    made = listing(data)
    pairs = [(one.decode()[5:], other.decode()[5:]) for one, other in made.collisions()]
    assert pairs == [
        *(("a", "A"), ("\u00c9", "e\u0301"), ("\u00c9", "E\u0301"), ("c/D", "C/d"), ("k", "\u212a")),
        ("\u1e9e", "SS"),
    ]
    two = listing(manifest_line(digest(1), b"data/A"), data.replace(digest(1).encode(), digest(1, "sha1").encode()))
    assert (b"data/a", b"data/A") in set(two.collisions())
    assert len(list(two.collisions())) == len(pairs)
    assert list(listing(data.lower().replace("\u1e9e".encode(), b"z")).collisions())


@pytest.mark.parametrize("encoding", ["UTF-16", "UTF-16LE", "UTF-32BE", "GB18030", "ISO-8859-1", "IBM037"])
def test_other_encodings(encoding: str) -> None:
    """Lines in other character sets are found and read again."""
    codec = {"IBM037": "cp037"}.get(encoding, encoding)
    names = [f"data/{number}\u00e9" for number in range(500)]
    data = "".join(f"{digest(number)}  {name}\n" for number, name in enumerate(names)).encode(codec)
    made = listing(data, encoding=encoding)
    assert made.problems == []
    assert list(made.entries()) == [
        ListedFile(name.encode(), {"md5": digest(number)}) for number, name in enumerate(names)
    ]
    assert made.find(names[-1].encode()) == {"md5": digest(499)}


def test_lines_across_blocks() -> None:
    """Lines of any length are found at the boundaries of blocks and across many blocks."""
    lengths = [*range(1, 300, 3), 5000, 20_000, 200_000, 1000, manifest_index.LINE_LIMIT - 60]
    paths = [b"data/%d/" % number + b"x" * length for number, length in enumerate(lengths)]
    data = b"".join(manifest_line(digest(number), path) for number, path in enumerate(paths))
    for content in (data, data.replace(b"\n", b"\r\n"), data.replace(b"\n", b"\r"), data[:-1]):
        made = listing(content)
        assert kinds(made) == ["line-unterminated"] * (content is data[:-1] or not content.endswith((b"\r", b"\n")))
        assert [path for path, _ in made.entries()] == paths
        for number, path in enumerate(paths):
            assert made.find(path) == {"md5": digest(number)}
            assert made.find(path + b"x") == {}
            assert made.find(path[:-1]) == {}


def test_problems_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Problems of a kind beyond the limit are counted."""
    monkeypatch.setattr(manifest_index, "PROBLEMS_LIMIT", 10)
    made = listing(b"\n" * 25 + b"x\n" * 10 + manifest_line(digest(1), b"data/a") * 12)
    assert (
        kinds(made)
        == ["line-blank"] * 10 + ["line-malformed"] * 10 + ["path-duplicate"] * 10 + ["problems-omitted"] * 2
    )
    assert [one.message for one in made.problems[-2:]] == [
        "15 more of kind line-blank",
        "1 more of kind path-duplicate",
    ]
    monkeypatch.setattr(manifest_index, "PROBLEMS_SIZE", 2000)
    long_ones = listing(b"".join(manifest_line(digest(1), b"/" + b"x" * 300 + b"%d" % n) for n in range(9)))
    assert kinds(long_ones) == ["path-unsafe"] * 2 + ["problems-omitted"]
    assert long_ones.problems[-1].severity == "error"


def test_a_changed_manifest_is_noticed(tmp_path: Path) -> None:
    """A manifest that changes between two reads is an error, never a wrong answer."""
    path = tmp_path / "manifest-md5.txt"
    content = b"".join(manifest_line(digest(n), b"data/%d" % n) for n in range(2000))
    for change in (b"", content[:-1], content + b"x", content.replace(b"data/1", b"data/2")):
        path.write_bytes(content)
        with open(path, "rb") as file, Listing([ManifestSource(b"manifest-md5.txt", "md5", file)]) as made:
            assert made.find(b"data/0") == {"md5": digest(0)}
            path.write_bytes(change)
            os.utime(path, ns=(1, 1))
            with pytest.raises(BagError, match="changed while in use"):
                list(made.entries())


class Growing(io.FileIO):
    """A file that is written to during the read."""

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(-1 if size is None else size)
        with open(self.name, "ab") as file:
            file.write(b"\n" if not data else b"")
        return data


def test_a_growing_manifest_is_noticed(tmp_path: Path) -> None:
    """A manifest that grows during the first read is an error."""
    path = tmp_path / "manifest-md5.txt"
    path.write_bytes(manifest_line(digest(1), b"data/a"))
    with pytest.raises(BagError, match="changed while in use"):
        Listing([ManifestSource(b"manifest-md5.txt", "md5", Growing(path))])


class Broken(io.BytesIO):
    def read(self, size: int | None = -1) -> bytes:
        raise OSError(5, "Input/output error")


def test_unreadable_manifests(tmp_path: Path) -> None:
    """A system error is reported with the manifest's name; every file is closed."""
    good = io.BytesIO()
    with pytest.raises(BagError, match=r"^'manifest-sha1\.txt': cannot be read: Input/output error$"):
        Listing([ManifestSource(b"M", "md5", good), ManifestSource(b"manifest-sha1.txt", "sha1", Broken())])
    assert good.closed
    with pytest.raises(ValueError, match="encoding='zip': unknown encoding"):
        Listing([], "zip")
    made = listing(manifest_line(digest(1), b"data/a"))
    made.close()
    with pytest.raises(BagError):
        list(made.entries())


def test_without_pread(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without pread, the file is sought."""
    monkeypatch.setattr(manifest_index, "_HAS_PREAD", False)
    path = tmp_path / "manifest-md5.txt"
    path.write_bytes(b"".join(manifest_line(digest(n), b"data/%d" % n) for n in range(2000)))
    with open(path, "rb") as file, Listing([ManifestSource(b"M", "md5", file)]) as made:
        assert made.find(b"data/1999") == {"md5": digest(1999)}
        assert made.find(b"data/0") == {"md5": digest(0)}
        assert len(list(made.entries())) == 2000


class Lines(io.RawIOBase):
    """A manifest too large for memory, with seekable content."""

    def __init__(self, count: int, line: bytes) -> None:
        self.length = count * len(line)
        self.line = line
        self.position = 0
        self.many = line * (1 << 18)

    def seek(self, offset: int, whence: int = 0) -> int:
        self.position = offset
        return offset

    def tell(self) -> int:
        return self.position

    def read(self, size: int = -1) -> bytes:
        size = max(0, min(size, self.length - self.position, len(self.many) - len(self.line)))
        begin = self.position % len(self.line)
        self.position += size
        return self.many[begin : begin + size]


@pytest.mark.slow_under_sanitizers
@pytest.mark.parametrize(
    "line", [b"\n", b"x", b"%b  data/a\n" % digest(1).encode(), b"%b  ../\xff%%\n" % digest(1).encode()]
)
def test_endless_repeated_lines(line: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory does not grow with repeated lines of a manifest."""
    monkeypatch.setattr(manifest_index, "PROBLEMS_LIMIT", 100)
    count = 5_000 if len(line) > 1 else 20_000 if line == b"\n" else 20_000_000
    tracemalloc.start()
    made = Listing([ManifestSource(b"M", "md5", Lines(count, line))])  # type: ignore[arg-type]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(made) == (b"data/" in line)
    assert peak < 16 << 20


SCRIPT = """
import resource, sys
from pressmark.bagit.manifest_index import Listing, ManifestSource
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with open(sys.argv[1], "rb", buffering=0) as file:
    made = Listing([ManifestSource(b"M", "sha512", file)])
    print(len(made), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ru_maxrss is KiB on Linux")
def test_memory_of_many_lines(tmp_path: Path, implementation: Implementation) -> None:
    """A hundred thousand lines, 17 MiB, take about 40 bytes each: tables that grow by half or double, and a block."""
    path = tmp_path / "manifest"
    value = digest(1, "sha512").encode()
    with open(path, "wb") as file:
        file.writelines(b"%b  data/collection/object-%06d/file.tif\n" % (value, n) for n in range(100_000))
    variables = {**os.environ, "PRESSMARK_IMPLEMENTATION": implementation.name, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(path)], env=variables, capture_output=True, text=True, check=True
    )
    count, kilobytes = map(int, run.stdout.split())
    assert count == 100_000
    assert kilobytes < 8 << 10


def test_a_stream_of_entries(tmp_path: Path) -> None:
    """Entries are yielded lazily, in the order of the lines."""
    content = b"".join(manifest_line(digest(n), b"data/%d" % n) for n in range(1000))
    entries: Iterator[ListedFile] = listing(content).entries()
    assert next(entries) == ListedFile(b"data/0", {"md5": digest(0)})
    assert [int(path[5:]) for path, _ in entries] == list(range(1, 1000))
    file: BinaryIO = io.BytesIO(content)
    assert next(iter(read_manifest(file, b"M", "md5"))) == ManifestEntry(b"data/0", digest(0), 1)
