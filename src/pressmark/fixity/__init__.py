"""Files to digests: one or many, several algorithms from one read, resumable, and against manifests.

>>> import pressmark
>>> pressmark.fixity.algorithm_name("SHA-512/256")
'sha512/256'
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pressmark.fixity.algorithms import ALGORITHMS, algorithm_name, algorithm_names
from pressmark.fixity.hasher import hash_file
from pressmark.fixity.ledger import Ledger
from pressmark.fixity.manifests import FORMATS, Entry, manifest_line, read_manifest, write_manifest
from pressmark.fixity.outcomes import Outcome
from pressmark.fixity.pool import Finished, Progress, hash_files
from pressmark.fixity.verification import Verdict, verify
from pressmark.fixity.walk import walk
from pressmark.fs.beneath import opened_directory

if TYPE_CHECKING:
    from pressmark.fixity.job import HashFiles

__all__ = [
    "ALGORITHMS",
    "FORMATS",
    "Entry",
    "Finished",
    "HashFiles",
    "Ledger",
    "Outcome",
    "Progress",
    "Verdict",
    "algorithm_name",
    "algorithm_names",
    "hash_file",
    "hash_files",
    "manifest_line",
    "opened_directory",
    "read_manifest",
    "verify",
    "walk",
    "write_manifest",
]


def __getattr__(name: str) -> Any:
    """Import the job when it is first asked for."""
    if name == "HashFiles":
        from pressmark.fixity.job import HashFiles

        return HashFiles
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
