"""Random choices from a seed, the same in every version of Python."""

from __future__ import annotations

import random
import string
from collections.abc import Sequence
from typing import TypeVar

__all__ = ["Draw"]

T = TypeVar("T")


class Draw:
    """Choices based on ``random.Random(seed).random()``, the only sequence that Python promises not to change."""

    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed).random

    def chance(self, share: float) -> bool:
        """Return True with the probability ``share``."""
        return self.random() < share

    def between(self, low: int, high: int) -> int:
        """Return an integer from ``low`` to ``high``, inclusive."""
        return low + int(self.random() * (high - low + 1))

    def pick(self, items: Sequence[T]) -> T:
        """Return one of ``items``."""
        return items[int(self.random() * len(items))]

    def text(self, alphabet: str, length: int) -> str:
        """Return ``length`` characters of ``alphabet``."""
        return "".join([alphabet[int(self.random() * len(alphabet))] for _ in range(length)])

    def digits(self, length: int) -> str:
        """Return ``length`` decimal digits."""
        return self.text(string.digits, length)
