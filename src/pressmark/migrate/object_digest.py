"""The digest of a whole object, which depends on the names and bytes of its files, but not on the store; and the digest
of its entries, which shows whether an object has changed since a run looked at it."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pressmark.errors import JobError, quoted_path
from pressmark.fixity.manifests import object_digest
from pressmark.fs.beneath import open_regular
from pressmark.stores.exceptions import SourceError

__all__ = [
    "ALGORITHM",
    "FileDigests",
    "FileState",
    "compare",
    "entries_digest",
    "has_same_content_times",
    "mismatch",
    "object_digest",
    "sha256_of",
    "with_known",
]

#: The algorithm of the digests of files, and of whole objects.
ALGORITHM = "sha512"

#: Name, size, and times of modification and of status change of a file, in nanoseconds.
FileState = tuple[bytes, int, int, int]

# Size and time of modification, and time of status change: times in seconds and nanoseconds.
_CONTENT, _STATUS = struct.Struct("=3q"), struct.Struct("=2q")
_SECOND = 1_000_000_000


class FileDigests(NamedTuple):
    """The digests of the files of an object.

    :ivar digests: by name, then by algorithm
    """

    digests: dict[str, dict[str, str]]

    @property
    def whole(self) -> str:
        """The digest of the object."""
        return object_digest({name: found[ALGORITHM] for name, found in self.digests.items()})

    def below(self, folder: str) -> FileDigests | None:
        """Return the files in ``folder``, by their names there; :data:`None` if it contains no file."""
        found = {name.removeprefix(folder): one for name, one in self.digests.items() if name.startswith(folder)}
        return FileDigests(found) if found else None


def with_known(known: Mapping[str, object]) -> tuple[str, ...]:
    """Return :data:`ALGORITHM` and the algorithms of recorded digests."""
    return tuple(dict.fromkeys((ALGORITHM, *known)))


def compare(read: FileDigests, known: Mapping[str, Mapping[str, str]], where: str = "the source") -> None:
    """Compare digests with recorded ones.

    :param known: recorded digests, by algorithm and name
    :param where: the store that recorded them
    :raises SourceError: of kind ``mismatch``
    """
    for algorithm, block in known.items():
        for name, expected in block.items():
            found = read.digests.get(name, {}).get(algorithm)
            if found != expected:
                raise mismatch(name, algorithm, found, expected, where)


def mismatch(name: str, algorithm: str, found: str | None, expected: str, where: str = "the source") -> SourceError:
    """Return the error for a file whose digest differs from the recorded one."""
    return SourceError(
        "mismatch", f"{quoted_path(name)}: its {algorithm} is {found}, not {expected} as recorded in {where}"
    )


def entries_digest(files: Iterable[FileState], empty: Iterable[bytes] = ()) -> str:
    """Return a digest over all entries of an object.

    It has two parts, separated by a dot: one over names, kinds, sizes and times of modification, and one over names and
    times of status change. A backup that is restored, and a change of permissions, change only the second part.

    :param empty: names of empty directories, whose times are not those of files
    """
    content, status = [], []
    for name, size, mtime, ctime in sorted([*files, *((name + b"/", 0, 0, 0) for name in empty)]):
        name += b"\0"
        content.append(name + _CONTENT.pack(size, mtime // _SECOND, mtime % _SECOND))
        status.append(name + _STATUS.pack(ctime // _SECOND, ctime % _SECOND))
    return f"{_digest(b''.join(content))}.{_digest(b''.join(status))}"


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def has_same_content_times(one: str, other: str) -> bool:
    """Return whether two digests differ at most in times of status change."""
    return bool(one) and one.partition(".")[0] == other.partition(".")[0]


def sha256_of(path: str) -> str:
    """Return the SHA-256 of a file of the work folder, in hex.

    :raises JobError: the file cannot be read
    """
    try:
        with open_regular(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise JobError(path, f"cannot be read ({error.strerror}); the run needs it") from error
