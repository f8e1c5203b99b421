"""The loops that one writes without this library: each layout as few lines of Python, for well-behaved identifiers.

They take the identifiers of :mod:`~pressmark.bench.samples` and give the same paths as the layouts do; nothing is
checked, refused or shortened. They are what a measurement compares with, and nothing else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

__all__ = ["LOOPS", "Loop"]

#: From identifiers to paths.
Loop = Callable[[Sequence[str]], list[str]]

_ESCAPED = {octet: f"^{octet:02x}" for octet in (*range(0x21), *range(0x7F, 0x100), *b'"*+,<=>?\\^|')}
_PAIRTREE = str.maketrans({**{chr(octet): text for octet, text in _ESCAPED.items()}, "/": "=", ":": "+", ".": ","})
_VITRO = {**_PAIRTREE, ord("~"): "^7e"}
_SAFE = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_PERCENT = str.maketrans({chr(octet): f"%{octet:02x}" for octet in range(0x80) if octet not in _SAFE})
_DANGEROUS = (*range(0x20), 0x7F, *b"*?:[]\"<>|(){}&'!;#@")
_CLEAN = str.maketrans({**{chr(octet): "_" for octet in _DANGEROUS}, **dict.fromkeys("\t\n\r ", " ")})
_ENCODE = str.maketrans({chr(octet): f"=u{octet:04X}" for octet in (*_DANGEROUS, 0x20)})


def _pairtree(ids: Sequence[str]) -> list[str]:
    paths = []
    for identifier in ids:
        cleaned = identifier.translate(_PAIRTREE)
        paths.append("/".join([cleaned[at : at + 2] for at in range(0, len(cleaned), 2)]))
    return paths


def _vitro(ids: Sequence[str]) -> list[str]:
    paths = []
    for identifier in ids:
        encoded = identifier.translate(_VITRO)
        paths.append("/".join([encoded[at : at + 3] for at in range(0, len(encoded), 3)]))
    return paths


def _direct(ids: Sequence[str]) -> list[str]:
    paths = []
    for identifier in ids:
        # The identifier is the path, so that this one check is all there is to do.
        if any(segment in ("", ".", "..") for segment in identifier.split("/")):
            raise ValueError(identifier)
        paths.append(identifier)
    return paths


def _hash_and_id(ids: Sequence[str]) -> list[str]:
    sha256 = hashlib.sha256
    paths = []
    for identifier in ids:
        digest = sha256(identifier.encode()).hexdigest()
        paths.append(f"{digest[:3]}/{digest[3:6]}/{digest[6:9]}/{identifier.translate(_PERCENT)}")
    return paths


def _hash_and_rest(ids: Sequence[str]) -> list[str]:
    return _hash_and_id([identifier[identifier.rfind(".") + 1 :] for identifier in ids])


def _hashed(ids: Sequence[str]) -> list[str]:
    sha256 = hashlib.sha256
    paths = []
    for identifier in ids:
        digest = sha256(identifier.encode()).hexdigest()
        paths.append(f"{digest[:3]}/{digest[3:6]}/{digest[6:9]}/{digest}")
    return paths


def _omit_prefix(ids: Sequence[str]) -> list[str]:
    return [identifier[identifier.rfind(".") + 1 :] for identifier in ids]


def _omit_prefix_tuples(ids: Sequence[str]) -> list[str]:
    paths = []
    for identifier in ids:
        rest = identifier[identifier.rfind(".") + 1 :]
        padded = rest.rjust(9, "0")
        paths.append(f"{padded[:3]}/{padded[3:6]}/{padded[6:9]}/{rest}")
    return paths


def _differential(ids: Sequence[str]) -> list[str]:
    paths = []
    for identifier in ids:
        rest = identifier[identifier.rfind(":") + 1 :]
        paths.append(f"{rest[:2]}/{rest[2:5]}/{rest[5:7]}/{rest[7:]}")
    return paths


def _clean(ids: Sequence[str]) -> list[str]:
    return [identifier.translate(_CLEAN) for identifier in ids]


def _encoded(ids: Sequence[str]) -> list[str]:
    return [identifier.translate(_ENCODE) for identifier in ids]


#: By the titles of the cases in :mod:`~pressmark.bench.layouts`.
LOOPS: dict[str, Loop] = {
    "pairtree": _pairtree,
    "vitro": _vitro,
    "0002": _direct,
    "0003": _hash_and_id,
    "0004": _hashed,
    "0006:delimiter=.": _omit_prefix,
    "0007:delimiter=.": _omit_prefix_tuples,
    "0010": _differential,
    "0011": _clean,
    "0011:encodeUTF=true": _encoded,
    "0012:delimiters=.": _hash_and_rest,
}
