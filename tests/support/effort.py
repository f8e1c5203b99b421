"""The effort of the long proofs: a short form in every run, the long form under ``pytest --long``."""

from __future__ import annotations

import os

__all__ = ["LONG", "repeats", "stride"]

#: Set by the option ``--long``.
LONG = os.environ.get("PRESSMARK_LONG") == "1"


def repeats(short: int, long: int = 100) -> int:
    """Return how often a proof repeats its trial; the option ``--repeat`` overrides both numbers."""
    return int(os.environ.get("PRESSMARK_REPEAT", long if LONG else short))


def stride(short: int) -> int:
    """Return the distance between the steps that a proof tries; the long form tries every step."""
    return 1 if LONG else short
