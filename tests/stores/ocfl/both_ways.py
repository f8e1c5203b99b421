"""The check of one object in every way: read by itself, and in a batch by each implementation."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from pressmark.fixity import hash_file
from pressmark.reports import Problem
from pressmark.stores.ocfl.checking.checked import Advice
from pressmark.stores.ocfl.checking.object_check import check_object
from pressmark.stores.ocfl.checking.object_tree import ObjectTree, StoredTree, object_trees
from pressmark.stores.ocfl.local.local_storage import LocalStorage
from pressmark.stores.ocfl.storage import Reads
from support.implementations import implementations_to_test, use

__all__ = ["Verdict", "all_verdicts"]

READS: tuple[Reads, ...] = ("content", "rules")


class Verdict(NamedTuple):
    """The result of a check, with that of content which was read afterwards."""

    identifier: str | None
    problems: list[Problem]
    advice: list[Advice]
    files: int
    bytes: int

    @property
    def is_valid(self) -> bool:
        return all(problem.severity != "error" for problem in self.problems)


def verdict(top: Path, tree: ObjectTree) -> Verdict:
    checked = check_object(tree, "1.1")
    problems, size = [*checked.problems], checked.bytes
    for file in checked.unread_files():
        path = os.path.join(os.fsencode(top), tree.path, file.path)
        problems += file.problems(tree.path, hash_file(path, list(file.digests)))
        size += os.path.getsize(path)
    return Verdict(checked.identifier, problems, list(checked.advice), checked.files, size)


def all_verdicts(top: Path, name: str) -> list[Verdict]:
    """Return the verdict on an object that is read by itself, and those on batches, unless it must be read so."""
    storage, directory = LocalStorage(os.fsencode(top)), os.fsencode(name)
    found = [verdict(top, StoredTree(storage, directory, storage.scan(directory)))]
    for implementation in implementations_to_test():
        with use(implementation):
            for reads in READS:
                [(path, _tree, one)] = object_trees(storage.trees(b"", [directory], reads))
                assert path == directory
                found += [] if one is None else [verdict(top, one)]
    return found
