"""Digests of the files of trees in memory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pressmark.fixity.algorithms import ALGORITHMS
from pressmark.fixity.scheduling import hash_trees
from pressmark.fs.trees import Wanted, trees
from support.implementations import Implementation

from .trees import expected

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX files")


def test_every_algorithm(implementation: Implementation, tmp_path: Path) -> None:
    """A column for each algorithm, in lanes or not; nothing for a file whose content is not in memory."""
    contents = [bytes([number]) * number * 13 for number in range(60)]
    for number, content in enumerate(contents):
        (tmp_path / f"{number % 4}").mkdir(exist_ok=True)
        (tmp_path / f"{number % 4}" / f"{number:02}").write_bytes(content)
    names = [b"0", b"1", b"2", b"3"]
    (batch,) = trees(os.fsencode(tmp_path), names, Wanted(file=700), threads=1)
    found = hash_trees(batch, list(ALGORITHMS))
    assert list(found) == list(ALGORITHMS)
    for algorithm, column in found.items():
        for tree in batch.trees:
            for path, number in tree.files.items():
                content = contents[int(path)]
                assert column[number] == (expected(content, algorithm) if len(content) <= 700 else None)
    assert None in found["sha512"]
