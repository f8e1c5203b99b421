"""Tag files for the fuzzing: made after their grammars from what is usual and what is not, and mutated."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from random import Random

from pressmark.bagit.manifest_format import manifest_line

__all__ = ["ENCODINGS", "Grammar", "mutated"]

ENCODINGS = (
    "UTF-8",
    "UTF-8",
    "UTF-8",
    "UTF-8",
    "UTF-16",
    "UTF-16LE",
    "ISO-8859-1",
    "Shift_JIS",
    "UTF-7",
    "UTF-9",
    "rot13",
)
ENDS = (b"\n", b"\n", b"\n", b"\r\n", b"\r", b"", b"\n\n", b"\x85", b"\n\0")
BLANKS = (b" ", b"  ", b"  ", b"\t", b" \t ", b"", b" *", b"\xc2\xa0")
SEGMENTS = (
    *(b"data", b"data", b"data", b"a.txt", b"b", b"A.TXT", b".", b"..", b"", b"~", b"~root", b"C:", b"\\", b"\\\\?\\"),
    *(b"%25", b"%0A", b"%0d", b"%", b"%2", b"100%", b"%2e%2e", b" x ", b"\xc3\xa9", b"e\xcc\x81", b"\xff\xfe", b"\0"),
    *(
        b"\xe2\x80\xa8",
        b"\xc2\x85",
        b"\x0b",
        b"x" * 300,
        b"NUL",
        b"tagmanifest-md5.txt",
        b"manifest-md5.txt",
        b"bagit.txt",
    ),
    *(b"link-out", b"link-in", b"link-loop", b"pipe", b"secret", b"outside", b"..\\..\\outside"),
)
LABELS = (
    *("Payload-Oxum", "payload-oxum", "Bagging-Date", "Bag-Size", "Bag-Count", "Bag-Group-Identifier", "Contact-Name"),
    *("", " x", "x ", "\u00e9", "a:b", "BagIt-Version", "Tag-File-Character-Encoding"),
)
VALUES = (
    *(
        "1.2",
        "11.2",
        "\u00b2.1",
        "1",
        "1.2.3",
        "9" * 5000 + ".1",
        "2008-01-15",
        "2008-02-30",
        "1 of 2",
        "3 of ?",
        "42 GB",
    ),
    *("", " ", "value " * 40, "x" * 2000, "\u4e00\U0001f350", "a:b", "1.0", "0.97", "0.93", "2.0", "1." + "1" * 5000),
)
URLS = (
    *(b"https://example.org/a", b"http:/x", b"http://", b"file:///etc/passwd", b"urn:x:y", b"a/b", b"http://[::1]/"),
    *(b"http://[:::", b"http://a/" + b"%41" * 50, b"HTTP://a", b"", b"http://a/\xc3\xa9", b"gopher://x/#y"),
)
LENGTHS = (b"0", b"6", b"-", b"-1", b"1e9", b"9" * 30, b"9" * 6000, b"", b"\xef\xbc\x91", b"007")


class Grammar:
    """Makes tag files.

    :param random: decides
    :param paths: of files that are there, with their content
    :param outside: the directory beside the bag that must not be opened
    """

    def __init__(self, random: Random, paths: dict[bytes, bytes], outside: bytes) -> None:
        self.random = random
        self.paths = paths
        self.outside = outside

    def path(self) -> bytes:
        """Return a path: of a file that is there, or of some segments."""
        random = self.random
        if self.paths and random.random() < 0.6:
            return random.choice(list(self.paths))
        if random.random() < 0.1:
            return random.choice((self.outside, b"../outside", b"data/../../outside", b"~")) + b"/secret"
        return b"/".join(random.choices(SEGMENTS, k=random.randint(1, 5)))

    def manifest(self, algorithm: str) -> bytes:
        """Return a manifest, some of its checksums the right ones."""
        lines = []
        for _ in range(self.random.choice((0, 1, 2, 3, 8, 40))):
            path = self.path()
            data = self.paths.get(path, path)
            known = algorithm in hashlib.algorithms_available
            digest = hashlib.new(algorithm, data).hexdigest() if known else "ab12"
            text = self.random.choice(
                (digest, digest, digest, digest.upper(), digest[1:], "\\" + digest, "g" + digest[1:])
            )
            spelled = path.replace(b"%", b"%25").replace(b"\n", b"%0A").replace(b"\r", b"%0D")
            spelled = self.random.choice((spelled, spelled, spelled, path, b"./" + path, path.replace(b"/", b"//")))
            lines.append(text.encode() + self.random.choice(BLANKS) + spelled + self.random.choice(ENDS))
        return b"".join(lines)

    def whole_manifest(self, algorithm: str, paths: list[bytes]) -> bytes:
        """Return a manifest that lists all of some files, as it must be."""
        known = algorithm in hashlib.algorithms_available
        return b"".join(
            manifest_line(hashlib.new(algorithm, self.paths[path]).hexdigest() if known else "ab12", path)
            for path in paths
        )

    def info(self) -> bytes:
        """Return a bag-info.txt."""
        lines = []
        for _ in range(self.random.choice((0, 1, 3, 12))):
            colon = self.random.choice((": ", ": ", ": ", ":", " : ", ":\t", ""))
            text = self.random.choice(LABELS) + colon + self.random.choice(VALUES)
            lines.append(text.encode() + self.random.choice(ENDS))
            if self.random.random() < 0.2:
                lines.append(self.random.choice((b" ", b"\t", b"   ")) + b"folded" + self.random.choice(ENDS))
        return b"".join(lines)

    def fetch(self) -> bytes:
        """Return a fetch.txt."""
        lines = []
        for _ in range(self.random.choice((0, 1, 3, 12))):
            pieces = (self.random.choice(URLS), self.random.choice(LENGTHS), self.path())
            lines.append(self.random.choice(BLANKS).join(pieces) + self.random.choice(ENDS))
        return b"".join(lines)

    def declaration(self) -> bytes:
        """Return a bagit.txt, good most of the time."""
        encoding = self.random.choice(ENCODINGS).encode()
        version = self.random.choice((b"1.0", b"1.0", b"0.97", b"0.93", b"2.0", b"1", b"", b"1.0 "))
        data = b"BagIt-Version: %b\nTag-File-Character-Encoding: %b\n" % (version, encoding)
        return data if self.random.random() < 0.8 else mutated(self.random, data)

    def encoded(self, data: bytes, encoding: str) -> bytes:
        """Return a file that was made as UTF-8 in the encoding, if it can be and mostly; else as it is."""
        try:
            return data.decode("utf-8").encode(encoding) if self.random.random() < 0.8 else data
        except (UnicodeError, LookupError):
            return data


def mutated(random: Random, data: bytes) -> bytes:
    """Return ``data`` after some changes: octets, pieces moved, doubled, left out, and pieces of other files put in."""
    tokens = (
        *SEGMENTS,
        *ENDS,
        *BLANKS,
        *LENGTHS[:4],
        b"\xef\xbb\xbf",
        b"\xff\xfe",
        b"\xfe\xff",
        b"\0",
        b"d" * 40,
        b"/" * 9,
    )

    def place() -> int:
        return random.randint(0, len(data))

    def span() -> tuple[int, int]:
        begin = place()
        return begin, min(len(data), begin + random.choice((1, 1, 2, 8, 50)))

    def put() -> bytes:
        at = place()
        return data[:at] + random.choice(tokens) + data[at:]

    def flip() -> bytes:
        begin, end = span()
        return data[:begin] + bytes(octet ^ 1 << random.randrange(8) for octet in data[begin:end]) + data[end:]

    def leave_out() -> bytes:
        begin, end = span()
        return data[:begin] + data[end:]

    def double() -> bytes:
        begin, end = span()
        return data[:end] + data[begin:end] * random.choice((1, 2, 30)) + data[end:]

    def cut() -> bytes:
        return data[: place()]

    def noise() -> bytes:
        at = place()
        return data[:at] + random.randbytes(random.choice((1, 3, 20))) + data[at:]

    changes: Sequence[Callable[[], bytes]] = (put, put, flip, leave_out, double, cut, noise)
    for _ in range(random.choice((0, 1, 1, 2, 4))):
        data = random.choice(changes)()[: 1 << 16]
    return data
