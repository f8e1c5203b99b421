"""The digest of a whole object: the same for the same names and bytes, in whichever kind of store they lie.

And that of a file of a work folder, by which a run knows that it is as it was written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pressmark.errors import JobError
from pressmark.fixity import Outcome, hash_file
from pressmark.fixity.manifests import manifest_line
from pressmark.fs.names import encode_fs

__all__ = ["ALGORITHM", "Read", "object_digest", "read_files", "sha256_of"]

#: Of the files, and of the whole.
ALGORITHM = "sha512"


def object_digest(digests: Mapping[str, str]) -> str:
    """Return the digest of an object, in hex.

    It is the SHA-512 of what ``sha512sum`` prints for the object's files, by the octets of their names: digest, two
    blanks, name, line feed, with names escaped as ``sha512sum`` does.

    :param digests: SHA-512 of each file, in hex, by its name within the object
    """
    lines = []
    for name, digest in sorted([(encode_fs(name), digest) for name, digest in digests.items()]):
        if b"\\" in name or b"\n" in name or b"\r" in name:
            outcome = Outcome(name, {ALGORITHM: digest}, None, None, None)
            lines.append(manifest_line(outcome, "coreutils"))
        else:
            lines.append(b"%b  %b\n" % (digest.encode(), name))
    return hashlib.sha512(b"".join(lines), usedforsecurity=False).hexdigest()


class Read(NamedTuple):
    """Files that were read.

    :ivar digests: of each file by its name, by algorithms
    """

    digests: dict[str, dict[str, str]]

    @property
    def whole(self) -> str:
        """The digest of the object that these files are."""
        return object_digest({name: found[ALGORITHM] for name, found in self.digests.items()})

    def below(self, folder: str) -> Read | None:
        """Return what is in ``folder``, under shorter names; :data:`None` where nothing is."""
        found = {name.removeprefix(folder): one for name, one in self.digests.items() if name.startswith(folder)}
        return Read(found) if found else None


def read_files(files: Iterable[tuple[str, bytes]], algorithms: tuple[str, ...] = (ALGORITHM,)) -> Read:
    """Read files, each once.

    :param files: names within the object, and paths
    :param algorithms: among them :data:`ALGORITHM`
    :raises FileError: one cannot be read, or changed meanwhile
    """
    return Read({name: hash_file(path, algorithms, threads=1, links="refuse") for name, path in files})


def sha256_of(path: str) -> str:
    """Return the SHA-256 of a file of the work folder, in hex.

    :raises JobError: it cannot be read
    """
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise JobError(path, f"it cannot be read ({error.strerror}), and the run needs it") from error
