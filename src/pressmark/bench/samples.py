"""Identifiers to measure with, the same on every machine: no file is needed, and nothing is drawn at random."""

from __future__ import annotations

__all__ = ["druids", "volumes"]

_BETANUMERIC = "0123456789bcdfghjkmnpqrstvwxz"  # the alphabet in which ARKs are minted
_LETTERS = "bcdfghjkmnpqrstvwxyz"  # that of druids
# Far from any power of two, so that digits change everywhere and not at the end only.
_STEP = 7_368_787


def volumes(count: int) -> list[str]:
    """Return identifiers of the shapes of HathiTrust's: barcodes, ARKs, numbers with letters."""
    return [_volume(number * _STEP % 10_000_000_019) for number in range(1, count + 1)]


def _volume(number: int) -> str:
    kind = number % 10
    if kind < 6:
        return f"mdp.39015{number:010d}"
    if kind < 8:
        return f"uc2.ark:/13960/t{_written(number, _BETANUMERIC, 8)}"
    return f"uc1.b{number}" if kind < 9 else f"miun.aje{number:010d}.0001.001"


def druids(count: int) -> list[str]:
    """Return identifiers of the shape of Stanford's druids, whose parts have fixed lengths."""
    return [_druid(number * _STEP % 10_000_000_019) for number in range(1, count + 1)]


def _druid(number: int) -> str:
    letters, digits = _written(number // 7, _LETTERS, 4), f"{number % 10_000_000:07d}"
    return f"druid:{letters[:2]}{digits[:3]}{letters[2:]}{digits[3:]}"


def _written(number: int, alphabet: str, length: int) -> str:
    characters = []
    for _ in range(length):
        number, digit = divmod(number, len(alphabet))
        characters.append(alphabet[digit])
    return "".join(characters)
