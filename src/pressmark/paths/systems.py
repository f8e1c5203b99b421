"""What systems refuse as the path of a file or an object: names and lengths, one profile for each kind of system.

========= ===========================================================================================================
unix      255 octets a segment, 4096 the path with its NUL; no NUL
windows   255 UTF-16 units a segment, 260 the path with its NUL; no control character, none of ``<>:"\\|?*``; no segment
          that ends in a dot or a space; no CON, PRN, AUX, NUL, COM1 … COM9, LPT1 … LPT9, whatever follows behind a dot
azure     254 characters (UTF-16 units) a segment, 1024 the path; no control character, no ``\\``; no segment that ends
          in a dot
s3        1024 octets the path
all       what any of them refuses
========= ===========================================================================================================

All of them refuse a path that is empty and segments that are empty, ``.`` or ``..``; all but unix what is not UTF-8.

Documents: path_resolution(7) and NAME_MAX, PATH_MAX of limits.h; "Naming Files, Paths, and Namespaces" of Windows;
"Naming and Referencing Containers, Blobs, and Metadata" of Azure; "Naming Amazon S3 objects".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from pressmark import _kernels
from pressmark._kernels.tables import WINDOWS_RESERVED
from pressmark.errors import PathError, quoted
from pressmark.paths.batches import Texts, pieces

__all__ = ["PROFILES", "NameViolation", "NameViolations", "Profile", "advice", "name_violation", "name_violations"]

_CONTROLS = frozenset(map(chr, range(0x20)))
# Superscript digits are digits to Windows, here and only here.
_DEVICES = frozenset(
    {*WINDOWS_RESERVED, *(f"{port}{digit}" for port in ("COM", "LPT") for digit in "\u00b9\u00b2\u00b3")}
)
# The classes of octets that the kernel knows.
_REFUSED, _NOT_LAST, _ADVISED_FIRST = 1, 2, 4
_UNLIMITED = 1 << 62


@dataclass(frozen=True)
class Profile:
    """What one kind of system refuses; a limit that is None is none.

    :ivar name: as in :data:`PROFILES`
    :ivar segment_bytes: how long a segment may be
    :ivar path_bytes: how long a path may be with all in front of it
    :ivar segment_units: how long a segment may be in units of UTF-16
    :ivar path_units: how long a path may be with all in front of it, in units of UTF-16
    :ivar with_nul: whether the path's limit counts the NUL behind it
    :ivar characters: what no segment may hold
    :ivar endings: what no segment may end in
    :ivar devices: whether the names of devices are taken
    :ivar text: whether a path must be UTF-8
    """

    name: str
    segment_bytes: int | None = None
    path_bytes: int | None = None
    segment_units: int | None = None
    path_units: int | None = None
    with_nul: bool = False
    characters: frozenset[str] = frozenset()
    endings: frozenset[str] = frozenset()
    devices: bool = False
    text: bool = True


#: The profiles by their names; ``all`` stands for each of the others.
PROFILES: Mapping[str, Profile] = MappingProxyType(
    {
        profile.name: profile
        for profile in (
            Profile("unix", segment_bytes=255, path_bytes=4096, with_nul=True, characters=frozenset("\0"), text=False),
            Profile(
                "windows",
                segment_units=255,
                path_units=260,
                with_nul=True,
                characters=_CONTROLS | frozenset('<>:"\\|?*'),
                endings=frozenset(". "),
                devices=True,
            ),
            Profile(
                "azure",
                segment_units=254,
                path_units=1024,
                characters=_CONTROLS | frozenset("\\"),
                endings=frozenset("."),
            ),
            Profile("s3", path_bytes=1024, characters=frozenset("\0")),
            Profile("all"),
        )
    }
)


class NameViolation(NamedTuple):
    """One path that is refused.

    :ivar number: its place in the column
    :ivar path: as text, octets that are not UTF-8 as the surrogates of :func:`os.fsdecode`
    :ivar reason: one line that says why
    """

    number: int
    path: str
    reason: str


class NameViolations(NamedTuple):
    """What a profile refuses of a column.

    :ivar count: how many paths
    :ivar first: the first of them
    :ivar advised: how many paths are allowed or not, but have a segment that begins with ``-``: see :func:`advice`
    """

    count: int  # type: ignore[assignment]  # not the method of tuples
    first: tuple[NameViolation, ...]
    advised: int


def name_violation(path: str | bytes, profile: str, *, root_length: int = 0) -> str | None:
    """Return why systems of a profile refuse ``path``, on one line that names the segment; None where they do not.

    :param root_length: octets of the directory that the path will be in, without a slash at its end; 0 for none
    :raises ValueError: there is no such profile, or the length is negative
    :raises PathError: the path has a lone surrogate that stands for no octet

    >>> name_violation("ark/aux.txt", "windows")
    "segment 'aux.txt': the name of a device"
    """
    profiles = _profiles(profile, root_length)
    return _violation(_encoded(path), profiles, root_length)


def advice(path: str | bytes) -> str | None:
    """Return why a path had better be another though systems take it, on one line; None where there is nothing to say.

    A segment that begins with ``-`` looks like an option to many commands.
    """
    for segment in _encoded(path).split(b"/"):
        if segment.startswith(b"-"):
            return f"segment {quoted(segment)}: begins with '-', as options of commands do"
    return None


def name_violations(paths: Texts, profile: str, *, root_length: int = 0, first: int = 20) -> NameViolations:
    """Return how many of ``paths`` systems of a profile refuse, and the first of them. Nulls are passed over.

    :param root_length: as for :func:`name_violation`
    :param first: how many to name
    :raises ValueError: as for :func:`name_violation`
    :raises PathError: as for :func:`name_violation`
    """
    profiles = _profiles(profile, root_length)
    kernels = _kernels.active
    look, certain = _look(profile, root_length)
    count = advised = number = 0
    named: list[NameViolation] = []
    for piece, nulls in pieces(kernels, paths):
        found, dashes = kernels.suspicious(piece, *look)
        advised += dashes
        skipped = set(nulls)
        refused = set(kernels.suspicious(piece, *certain)[0]) if found else ()
        for index in found:
            if index in skipped:
                continue
            if index in refused and len(named) >= first:
                count += 1
                continue
            path = piece[index]
            reason = _violation(path, profiles, root_length)
            if reason is not None:
                count += 1
                if len(named) < first:
                    named.append(NameViolation(number + index, path.decode("utf-8", "surrogateescape"), reason))
        number += len(piece)
    return NameViolations(count, tuple(named), advised)


def _profiles(name: str, root_length: int) -> list[Profile]:
    if name not in PROFILES:
        raise ValueError(f"profile {name!r}: expected {', '.join(PROFILES)}")
    if root_length < 0:
        raise ValueError(f"root_length={root_length}: expected 0 or more")
    return [one for one in PROFILES.values() if one.name != "all"] if name == "all" else [PROFILES[name]]


def _encoded(path: str | bytes) -> bytes:
    if isinstance(path, bytes):
        return path
    try:
        return path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise PathError(path, None, f"the lone surrogate at {error.start} stands for no octet") from None


def _violation(path: bytes, profiles: Sequence[Profile], root_length: int) -> str | None:
    if not path:
        return "the path is empty"
    for profile in profiles:
        reason = _violation_of(path, profile, root_length)
        if reason is not None:
            return reason if len(profiles) == 1 else f"{reason} ({profile.name})"
    return None


def _violation_of(path: bytes, profile: Profile, root_length: int) -> str | None:
    for segment in path.split(b"/"):
        reason = _segment_violation(segment, profile)
        if reason is not None:
            return f"segment {quoted(segment)}: {reason}"
    before = root_length + 1 if root_length else 0
    for limit, length, unit in (
        (profile.path_bytes, len(path), "octets"),
        (profile.path_units, _units(path), "UTF-16 units"),
    ):
        if limit is not None and before + length + profile.with_nul > limit:
            rest = f" with the {root_length} of its root" if root_length else ""
            nul = ", of which the NUL behind the path is one" if profile.with_nul else ""
            return f"path {quoted(path)}: {length} {unit}{rest}; the limit is {limit}{nul}"
    return None


def _segment_violation(segment: bytes, profile: Profile) -> str | None:
    """Return what is wrong with one segment."""
    if segment in (b"", b".", b".."):
        return "it is no name" if segment else "it is empty"
    if profile.segment_bytes is not None and len(segment) > profile.segment_bytes:
        return f"{len(segment)} octets; the limit is {profile.segment_bytes}"
    text = segment.decode("utf-8", "surrogateescape")
    if profile.text and any("\udc80" <= character <= "\udcff" for character in text):
        return "it is not UTF-8"
    if profile.segment_units is not None and _units(segment) > profile.segment_units:
        return f"{_units(segment)} UTF-16 units; the limit is {profile.segment_units}"
    for character in text:
        if character in profile.characters:
            return f"it holds {quoted(character)}"
    if text[-1] in profile.endings:
        return f"it ends in {quoted(text[-1])}"
    if profile.devices and text.partition(".")[0].rstrip(" ").upper() in _DEVICES:
        return "the name of a device"
    return None


def _units(octets: bytes) -> int:
    """Return how many units of UTF-16 a path has; an octet that is not UTF-8 counts as one."""
    return len(octets.decode("utf-8", "surrogateescape").encode("utf-16-le", "surrogatepass")) // 2


# --- columns ----------------------------------------------------------------------------------------------------


# What the kernel is told to look for: classes of octets, the longest segment and path, whether devices matter.
_Look = tuple[bytes, int, int, bool]


@cache
def _look(name: str, root_length: int) -> tuple[_Look, _Look]:
    """Return a look that finds all that is refused and more, and one that finds only what is refused.

    Most of it is refused for an ASCII character, which is certain without a look at the text.
    """
    profiles = _profiles(name, root_length)
    filters = [_filter(one, root_length) for one in profiles]
    classes = bytes(
        _ADVISED_FIRST * (octet == 0x2D) | _union(classes[octet] for classes, _, _ in filters) for octet in range(256)
    )
    longest_segment = min(segment for _, segment, _ in filters)
    longest_path = min(path for _, _, path in filters)
    ascii_only = bytes(bits & (_REFUSED | _NOT_LAST) for bits in classes[:128]) + bytes(128)
    return (
        (classes, longest_segment, longest_path, any(one.devices for one in profiles)),
        (ascii_only, _UNLIMITED, _UNLIMITED, False),
    )


def _filter(profile: Profile, root_length: int) -> tuple[bytes, int, int]:
    """Return what the kernel can tell without reading text: the classes of octets, and lengths that are safe.

    A path has at least as many octets as units: one that is short enough in octets is so in units.
    """
    classes = bytearray(256)
    for character in profile.characters:
        classes[ord(character)] |= _REFUSED
    for character in profile.endings:
        classes[ord(character)] |= _NOT_LAST
    if profile.text:
        # Whether they are UTF-8, and which device has a superscript digit, is for the look at the text.
        for octet in range(0x80, 0x100):
            classes[octet] |= _REFUSED
    segment = min(limit for limit in (profile.segment_bytes, profile.segment_units, _UNLIMITED) if limit is not None)
    path = min(limit for limit in (profile.path_bytes, profile.path_units, _UNLIMITED) if limit is not None)
    before = root_length + 1 if root_length else 0
    return bytes(classes), segment, max(path - before - profile.with_nul, 0)


def _union(bits: Iterator[int]) -> int:
    together = 0
    for one in bits:
        together |= one
    return together
