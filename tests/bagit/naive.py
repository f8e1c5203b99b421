"""A validator in a few lines, written from the draft alone: it returns the reason why a bag is invalid."""

from __future__ import annotations

import os
import re
from pathlib import Path

from .bags import digest, tree

STAGING = b".pressmark-bag/"


def decoded(path: bytes) -> bytes:
    """Return the path from a line of a version 1.0 manifest."""
    return re.sub(rb"%(25|0[AD])", lambda found: bytes.fromhex(found[1].decode()), path)


def listed(data: bytes) -> dict[bytes, str]:
    """Return the entries of a manifest."""
    lines = data.split(b"\n")
    assert lines.pop() == b""
    pairs = [line.split(b"  ", 1) for line in lines]
    found = {decoded(path): checksum.decode() for checksum, path in pairs}
    assert len(found) == len(pairs)
    return found


def flaws(folder: Path | bytes, *, holey: bool = False) -> list[str]:
    """Return why a directory is not a valid bag of version 1.0 with tag manifests; empty for a valid one.

    :param holey: files that fetch.txt lists may be missing
    """
    files = {
        path.replace(os.fsencode(os.sep), b"/"): data
        for path, data in tree(Path(os.fsdecode(folder))).items()
        if not path.startswith(STAGING)
    }
    if files.get(b"bagit.txt") != b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n":
        return ["bagit.txt"]
    if not os.path.isdir(os.path.join(os.fsencode(folder), b"data")):
        return ["data"]
    found = []
    payload = {path for path in files if path.startswith(b"data/")}
    lines = files.get(b"fetch.txt", b"").splitlines() if holey else []
    missing = {decoded(line.split(b" ", 2)[2]) for line in lines} - payload
    tag_files = {path for path in files.keys() - payload if not path.startswith(b"tagmanifest-")}
    for prefix, expected in ((b"manifest-", payload | missing), (b"tagmanifest-", tag_files)):
        manifests = [path for path in files if path.startswith(prefix)]
        if not manifests:
            found.append(f"no {prefix.decode()}")
        for manifest in manifests:
            algorithm = manifest[len(prefix) : -4].decode()
            checksums = listed(files[manifest])
            if checksums.keys() != expected:
                found.append(f"{manifest!r}: {checksums.keys() ^ expected}")
            found += [
                f"{manifest!r}: {path!r}"
                for path, checksum in checksums.items()
                if path in files and digest(files[path], algorithm) != checksum
            ]
    info = files.get(b"bag-info.txt", b"")
    oxum = re.findall(rb"(?m)^Payload-Oxum: (.*?)\r?$", info)
    if oxum and not missing and oxum != [b"%d.%d" % (sum(len(files[path]) for path in payload), len(payload))]:
        found.append(f"oxum: {oxum}")
    return found
