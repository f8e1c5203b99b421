"""Digests of the files of directory trees in memory, a column for each algorithm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from pressmark import _kernels
from pressmark.fixity.algorithms import implementation
from pressmark.fixity.scheduling import plan

__all__ = ["hash_trees"]


def hash_trees(batch: _kernels.active.TreeBatch, algorithms: Sequence[str]) -> dict[str, list[str | None]]:
    """Return the digest of each file of a batch, by algorithm and number of the file.

    The digest of a file whose content is not in memory is :data:`None`: it must be read.

    :param algorithms: official names
    :return: lower-case hex digests
    """
    kernels = _kernels.active
    functions = _functions(kernels, kernels.lane_level(), tuple(algorithms))
    return {name: batch.digests(name, function) for name, function in functions}


@lru_cache(maxsize=16)  # many batches are small
def _functions(
    _kernels_in_use: object, _level: str, algorithms: tuple[str, ...]
) -> list[tuple[str, Callable[[bytes], str] | None]]:
    """Return the function that hashes one content, for each algorithm; :data:`None` to hash several at a time."""
    lanes = plan(algorithms, 1).lanes
    return [(name, None if name in lanes else implementation(name).one_shot()) for name in algorithms]
