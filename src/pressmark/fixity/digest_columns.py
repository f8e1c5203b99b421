"""Digests of the files of directory trees in memory, a column for each algorithm."""

from __future__ import annotations

from collections.abc import Sequence

from pressmark import _kernels
from pressmark.fixity.algorithms import implementation
from pressmark.fixity.scheduling import Plan

__all__ = ["hash_trees"]


def hash_trees(batch: _kernels.active.TreeBatch, algorithms: Sequence[str]) -> dict[str, list[str | None]]:
    """Return the digest of each file of a batch, by algorithm and number of the file.

    The digest of a file whose content is not in memory is :data:`None`: it must be read.

    :param algorithms: official names
    :return: lower-case hex digests
    """
    # Contents are hashed several at a time where that is faster, the others one after another.
    lanes = Plan(algorithms, 1).lanes
    return {
        name: batch.digests(name, None if name in lanes else implementation(name).one_shot()) for name in algorithms
    }
