"""Manifests of digests in three formats.

``coreutils``
    The format of ``sha512sum`` and ``b3sum``: digest, two spaces (or a space and ``*``), name. A line with a line feed
    or backslash in the name starts with a backslash, and these are escaped. One algorithm per manifest.
``bsd``
    The format of ``sha512sum --tag`` and the BSD tools: ``SHA512 (name) = digest``, with the same escapes. Several
    algorithms; the lines of one file are consecutive.
``json``
    One object per line: ``{"path": …, "size": …, "mtime_ns": …, "digests": {"sha512": …}}``. Bytes of a name that are
    not UTF-8 are the surrogates of :func:`os.fsdecode`, escaped.

Names are bytes; every file name can be written and read back.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from pressmark.fixity.algorithms import ALGORITHMS
from pressmark.fixity.outcomes import HashedFiles, Outcome
from pressmark.fs.names import encode_fs

__all__ = ["FORMATS", "block_lines", "manifest_line", "manifest_lines", "object_digest", "write_manifest"]

#: The formats of manifests: ``coreutils`` (``sha512sum``), ``bsd``, ``json``.
FORMATS = ("coreutils", "bsd", "json")


def manifest_line(outcome: Outcome, format: str) -> bytes:
    """Return the line of a file, with a line feed; in the BSD format, one line for each digest.

    :raises ValueError: the format is unknown, the file has no digests, or several in the ``coreutils`` format
    """
    digests = outcome.digests
    if digests is None:
        raise ValueError("outcome without digests")
    if format == "json":
        import json  # other formats do not need it

        record = {
            "path": outcome.path,
            "size": outcome.size,
            "mtime_ns": outcome.mtime_ns,
            "digests": digests,
        }
        return json.dumps(record).encode() + b"\n"
    name = os.fsencode(outcome.path)
    if format == "coreutils":
        if len(digests) != 1:
            raise ValueError("the coreutils format has one digest per file")
        ((algorithm, digest),) = digests.items()
        mark, escaped = _escaped(name, algorithm)
        return b"%b%b  %b\n" % (mark, digest.encode(), escaped)
    if format == "bsd":
        lines = []
        for algorithm, digest in digests.items():
            mark, escaped = _escaped(name, algorithm)
            lines.append(b"%b%b (%b) = %b\n" % (mark, ALGORITHMS[algorithm].tag.encode(), escaped, digest.encode()))
        return b"".join(lines)
    raise ValueError(f"format={format!r}: expected {', '.join(FORMATS)}")


def manifest_lines(outcomes: Sequence[Outcome], format: str) -> bytes:
    """Return the lines of several files, as :func:`manifest_line` does; raises its errors."""
    if format == "coreutils" and all(outcome.digests and len(outcome.digests) == 1 for outcome in outcomes):
        names = [os.fsencode(outcome.path) for outcome in outcomes]
        joined = b"\0".join(names)
        if not (b"\\" in joined or b"\n" in joined or b"\r" in joined):
            digests = [digest for outcome in outcomes for digest in outcome.digests.values()]  # type: ignore[union-attr]
            return b"".join([b"%b  %b\n" % pair for pair in zip(map(str.encode, digests), names, strict=True)])
    return b"".join([manifest_line(outcome, format) for outcome in outcomes])


def block_lines(files: HashedFiles, names: Sequence[str], format: str) -> bytes:
    """Return the lines of the files that have digests, as :func:`manifest_line` does; raises its errors.

    :param names: official names of the algorithms
    """
    lines = None
    if format == "bsd":
        lines = files.kernel_lines([ALGORITHMS[name].tag.encode() for name in names])
    elif format == "coreutils" and len(names) == 1:
        lines = files.kernel_lines(None)
    if lines is None:
        return manifest_lines([outcome for outcome in files.outcomes() if outcome.ok], format)
    return lines


def object_digest(digests: Mapping[str, str]) -> str:
    """Return the digest of an object, in hex.

    It is the SHA-512 of the output of ``sha512sum`` for the object's files in the byte order of their names: digest,
    two spaces, name, line feed, with names escaped as ``sha512sum`` does.

    :param digests: SHA-512 of each file, in hex, by its name within the object
    """
    import hashlib  # writing a manifest does not need it

    whole = hashlib.sha512(usedforsecurity=False)
    for name, digest in sorted([(encode_fs(name), digest) for name, digest in digests.items()]):
        mark, escaped = _escaped(name, "sha512")
        whole.update(b"%b%b  %b\n" % (mark, digest.encode(), escaped))
    return whole.hexdigest()


def write_manifest(
    path: str | bytes | os.PathLike[str], outcomes: Iterable[Outcome], format: str = "coreutils"
) -> list[Outcome]:
    """Write a manifest atomically, compressed if ``path`` ends in ``.gz``, and return the outcomes that failed.

    :raises OSError: it cannot be written; an existing file is unchanged
    """
    from pressmark.fs.atomic import open_output
    from pressmark.fs.gzipped import packed

    failed = []
    with open_output(os.fsencode(path)) as file, packed(file, os.fsdecode(path)) as sink:
        for outcome in outcomes:
            if outcome.ok:
                sink.write(manifest_line(outcome, format))
            else:
                failed.append(outcome)
    return failed


def _escaped(name: bytes, algorithm: str) -> tuple[bytes, bytes]:
    """Return the prefix of the line, and the escaped name."""
    escaped = name.replace(b"\\", b"\\\\").replace(b"\n", b"\\n")
    if algorithm != "blake3":
        # coreutils 9 escapes carriage returns as well; b3sum does not.
        escaped = escaped.replace(b"\r", b"\\r")
    return (b"", name) if escaped == name else (b"\\", escaped)
