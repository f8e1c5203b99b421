"""Digests of files: one or many, several algorithms in one read, resumable, and checked against manifests.

>>> import pressmark
>>> pressmark.fixity.algorithm_name("SHA-512/256")
'sha512/256'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pressmark.lazy import face

if TYPE_CHECKING:
    from pressmark.fixity.algorithms import (
        ALGORITHMS as ALGORITHMS,
        algorithm_name as algorithm_name,
        algorithm_names as algorithm_names,
    )
    from pressmark.fixity.digest import Digest as Digest, hash_bytes as hash_bytes, new as new
    from pressmark.fixity.hasher import hash_file as hash_file
    from pressmark.fixity.job import HashFiles as HashFiles
    from pressmark.fixity.ledger import Ledger as Ledger
    from pressmark.fixity.manifest_reader import ManifestEntry as ManifestEntry, read_manifest as read_manifest
    from pressmark.fixity.manifests import (
        FORMATS as FORMATS,
        manifest_line as manifest_line,
        write_manifest as write_manifest,
    )
    from pressmark.fixity.outcomes import Content as Content, Outcome as Outcome
    from pressmark.fixity.pool import hash_files as hash_files, hash_tasks as hash_tasks
    from pressmark.fixity.tree import walk as walk
    from pressmark.fixity.verification import (
        ManifestCheck as ManifestCheck,
        Verdict as Verdict,
        check_manifest as check_manifest,
        verify as verify,
    )
    from pressmark.fs.beneath import open_directory as open_directory

__all__, __getattr__, __dir__ = face(
    __name__,
    {
        ".algorithms": "ALGORITHMS algorithm_name algorithm_names",
        ".digest": "Digest hash_bytes new",
        ".hasher": "hash_file",
        ".job": "HashFiles",
        ".ledger": "Ledger",
        ".manifest_reader": "ManifestEntry read_manifest",
        ".manifests": "FORMATS manifest_line write_manifest",
        ".outcomes": "Content Outcome",
        ".pool": "hash_files hash_tasks",
        ".tree": "walk",
        ".verification": "ManifestCheck Verdict check_manifest verify",
        "pressmark.fs.beneath": "open_directory",
    },
)
