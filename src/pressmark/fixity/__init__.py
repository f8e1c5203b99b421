"""Digests of files: one or many, several algorithms in one read, resumable, and checked against manifests.

>>> import pressmark
>>> pressmark.fixity.algorithm_name("SHA-512/256")
'sha512/256'
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pressmark.fixity.algorithms import ALGORITHMS, algorithm_name, algorithm_names
    from pressmark.fixity.hasher import hash_file
    from pressmark.fixity.job import HashFiles
    from pressmark.fixity.ledger import Ledger
    from pressmark.fixity.manifest_reader import ManifestEntry, read_manifest
    from pressmark.fixity.manifests import FORMATS, manifest_line, write_manifest
    from pressmark.fixity.outcomes import Outcome, Progress
    from pressmark.fixity.pool import hash_files
    from pressmark.fixity.tree import walk
    from pressmark.fixity.verification import Verdict, detect_algorithm, verify
    from pressmark.fs.beneath import open_directory

__all__ = [
    "ALGORITHMS",
    "FORMATS",
    "HashFiles",
    "Ledger",
    "ManifestEntry",
    "Outcome",
    "Progress",
    "Verdict",
    "algorithm_name",
    "algorithm_names",
    "detect_algorithm",
    "hash_file",
    "hash_files",
    "manifest_line",
    "open_directory",
    "read_manifest",
    "verify",
    "walk",
    "write_manifest",
]

# The module of each name, imported when the name is first used: most commands need few of them.
_MODULES = {
    "ALGORITHMS": "fixity.algorithms",
    "FORMATS": "fixity.manifests",
    "ManifestEntry": "fixity.manifest_reader",
    "HashFiles": "fixity.job",
    "Ledger": "fixity.ledger",
    "Outcome": "fixity.outcomes",
    "Progress": "fixity.outcomes",
    "Verdict": "fixity.verification",
    "algorithm_name": "fixity.algorithms",
    "algorithm_names": "fixity.algorithms",
    "detect_algorithm": "fixity.verification",
    "hash_file": "fixity.hasher",
    "hash_files": "fixity.pool",
    "manifest_line": "fixity.manifests",
    "open_directory": "fs.beneath",
    "read_manifest": "fixity.manifest_reader",
    "verify": "fixity.verification",
    "walk": "fixity.tree",
    "write_manifest": "fixity.manifests",
}


def __getattr__(name: str) -> Any:
    """Import a part of the package when it is first used."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = getattr(importlib.import_module(f"pressmark.{_MODULES[name]}"), name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted(__all__)
