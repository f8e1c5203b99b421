"""The effort of the long proofs: a short form in every run, the long form under ``pytest --long``."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable

__all__ = ["LONG", "faults", "repeats", "stride"]

#: Set by the option ``--long``.
LONG = os.environ.get("PRESSMARK_LONG") == "1"


def repeats(short: int, long: int = 100) -> int:
    """Return how often a proof repeats its trial; the option ``--repeat`` overrides both numbers."""
    return int(os.environ.get("PRESSMARK_REPEAT", long if LONG else short))


def stride(short: int) -> int:
    """Return the distance between the steps that a proof tries; the long form tries every step."""
    return 1 if LONG else short


def faults(cases: Iterable[str], *lasting: int) -> list[tuple[str, str]]:
    """Return cases, each with the ways in which the disk fails: ``kill``, one error, and errors that last.

    The short form has one of ``lasting`` for each case, in turn: code that handles none well is found by any, and code
    that handles one badly by the cases that have it.
    """
    return [
        (case, how)
        for number, case in enumerate(cases)
        for how in (
            "kill",
            f"{errno.EIO}",
            *(f"-{error}" for error in (lasting if LONG else [lasting[number % len(lasting)]])),
        )
    ]
