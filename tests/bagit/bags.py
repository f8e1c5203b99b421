"""Small bags for tests: a valid bag that a test changes in one point before or after it is written."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pressmark.bagit import validate
from pressmark.bagit.problems import BagReport
from pressmark.bagit.validation import validate as validating
from pressmark.fixity import ALGORITHMS, algorithm_name

__all__ = ["PAYLOAD", "Sketch", "digest", "from_disk", "tree"]

PAYLOAD = {b"data/a.txt": b"alpha\n", b"data/b/c.txt": b"beta and more\n"}


def from_disk(path: Path, *arguments: Any, **options: Any) -> BagReport:
    """Validate a bag file by file, even if it is small."""
    with patch.object(validating, "check_in_memory", lambda paths, *_rest, **_options: (None for _ in paths)):
        return validate(path, *arguments, **options)


def digest(data: bytes, algorithm: str) -> str:
    """Return a digest by the algorithm's name in BagIt or elsewhere."""
    if algorithm in hashlib.algorithms_available and not algorithm.startswith("blake2"):
        return hashlib.new(algorithm, data).hexdigest()
    hasher = ALGORITHMS[algorithm_name(algorithm)].make(1)
    hasher.update(data)
    return hasher.hexdigest()


@dataclass
class Sketch:
    """The description of a bag to write; with default values, the bag is valid without a warning.

    :ivar payload: content by path; every file is in every payload manifest
    :ivar info: the bytes of bag-info.txt; :data:`None` to omit it
    :ivar fetch: the bytes of fetch.txt; :data:`None` to omit it
    :ivar tag_files: other tag files; they are in every tag manifest
    :ivar manifests: bytes of payload manifests by file name, instead of the correct ones
    :ivar tag_manifests: bytes of tag manifests by file name, instead of the correct ones
    :ivar absent: paths that are in manifests but not written
    :ivar unlisted: paths that are written but in no manifest
    """

    version: str = "1.0"
    encoding: str = "UTF-8"
    payload: dict[bytes, bytes] = field(default_factory=lambda: dict(PAYLOAD))
    algorithms: list[str] = field(default_factory=lambda: ["sha512"])
    tag_algorithms: list[str] = field(default_factory=lambda: ["sha512"])
    declaration: bytes | None = None
    info: bytes | None = b"Source-Organization: Example Library\nPayload-Oxum: 20.2\n"
    fetch: bytes | None = None
    tag_files: dict[bytes, bytes] = field(default_factory=dict)
    manifests: dict[str, bytes] = field(default_factory=dict)
    tag_manifests: dict[str, bytes] = field(default_factory=dict)
    absent: set[bytes] = field(default_factory=set)
    unlisted: set[bytes] = field(default_factory=set)

    def lines(self, algorithm: str) -> list[bytes]:
        """Return the lines of a payload manifest, each with its end."""
        return [line(data, path, algorithm) for path, data in self.payload.items() if path not in self.unlisted]

    def manifest(self, algorithm: str = "sha512") -> bytes:
        """Return a payload manifest, in the encoding of the bag if the paths are UTF-8."""
        return self.encoded(b"".join(self.lines(algorithm)))

    def encoded(self, text: bytes) -> bytes:
        """Return UTF-8 ``text`` in the bag's encoding, with a byte-order mark if the encoding requires one."""
        if self.encoding.lower() in ("utf-8", "nonsense"):
            return text
        return text.decode("utf-8").encode(self.encoding)

    def tags(self) -> dict[bytes, bytes]:
        """Return all tag files except the tag manifests."""
        files: dict[bytes, bytes] = {}
        declaration = self.declaration
        if declaration is None:
            declaration = f"BagIt-Version: {self.version}\nTag-File-Character-Encoding: {self.encoding}\n".encode()
        files[b"bagit.txt"] = declaration
        if self.info is not None:
            files[b"bag-info.txt"] = self.encoded(self.info)
        if self.fetch is not None:
            files[b"fetch.txt"] = self.encoded(self.fetch)
        for algorithm in self.algorithms:
            files[b"manifest-%b.txt" % algorithm.encode()] = self.manifest(algorithm)
        files.update((os.fsencode(name), data) for name, data in self.manifests.items())
        files.update(self.tag_files)
        return files

    def write(self, folder: Path) -> Path:
        """Write the bag into ``folder``, which must not exist, and return it."""
        (folder / "data").mkdir(parents=True)
        files = {path: data for path, data in self.payload.items() if path not in self.absent}
        tags = self.tags()
        files.update((path, data) for path, data in tags.items() if path not in self.absent)
        for algorithm in self.tag_algorithms:
            text = b"".join(line(data, path, algorithm) for path, data in tags.items() if path not in self.unlisted)
            files[b"tagmanifest-%b.txt" % algorithm.encode()] = self.encoded(text)
        files.update((os.fsencode(name), data) for name, data in self.tag_manifests.items())
        for path, data in files.items():
            target = os.path.join(os.fsencode(folder), path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "wb") as file:
                file.write(data)
        return folder


def line(data: bytes, path: bytes, algorithm: str = "sha512") -> bytes:
    """Return a manifest's line for a file."""
    written = path.replace(b"%", b"%25").replace(b"\n", b"%0A").replace(b"\r", b"%0D")
    return digest(data, algorithm).encode() + b"  " + written + b"\n"


def tree(folder: Path) -> dict[bytes, bytes]:
    """Return every regular file below ``folder`` with its content."""
    top = os.fsencode(folder)
    found = {}
    for directory, _, names in os.walk(top):
        for name in names:
            path = os.path.join(directory, name)
            if not os.path.islink(path) and os.path.isfile(path):
                with open(path, "rb") as file:
                    found[os.path.relpath(path, top)] = file.read()
    return found
