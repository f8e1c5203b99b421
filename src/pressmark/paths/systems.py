"""The rules of systems for paths of files and objects: names and lengths, one profile for each kind of system.

========= ===========================================================================================================
unix      segments of at most 255 bytes, paths of at most 4096 bytes including the NUL; no NUL
windows   segments of at most 255 UTF-16 units, paths of at most 260 including the NUL; no control characters and none
          of ``<>:"\\|?*``; no segment that ends with a dot or space; no segment CON, PRN, AUX, NUL, COM1 … COM9 or
          LPT1 … LPT9, with or without an extension
azure     segments of at most 254 characters (UTF-16 units), paths of at most 1024; no control characters, no ``\\``; no
          segment that ends with a dot
s3        paths of at most 1024 bytes
all       the rules of all profiles together
========= ===========================================================================================================

No profile allows an empty path, or a segment that is empty, ``.`` or ``..``. Only unix allows bytes that are not UTF-8.

Sources: path_resolution(7) and NAME_MAX, PATH_MAX of limits.h; "Naming Files, Paths, and Namespaces" of Windows;
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
from pressmark.paths.batches import Texts, batches

__all__ = ["PROFILES", "NameViolation", "NameViolations", "Profile", "advice", "name_violation", "name_violations"]

_CONTROLS = frozenset(map(chr, range(0x20)))
# In names of devices, Windows treats superscript digits as digits.
_DEVICES = frozenset(
    {*WINDOWS_RESERVED, *(f"{port}{digit}" for port in ("COM", "LPT") for digit in "\u00b9\u00b2\u00b3")}
)
# The byte classes of the kernel.
_REFUSED, _NOT_LAST, _ADVISED_FIRST = 1, 2, 4
_UNLIMITED = 1 << 62


@dataclass(frozen=True)
class Profile:
    """The rules of one kind of system. A limit of :data:`None` means no limit.

    :ivar name: key in :data:`PROFILES`
    :ivar segment_bytes: maximum length of a segment in bytes
    :ivar path_bytes: maximum length of a path in bytes, including the root
    :ivar segment_units: maximum length of a segment in UTF-16 units
    :ivar path_units: maximum length of a path in UTF-16 units, including the root
    :ivar with_nul: whether the limit of the path includes the NUL
    :ivar characters: characters not allowed in a segment
    :ivar endings: characters not allowed at the end of a segment
    :ivar devices: whether the names of devices are reserved
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


#: The profiles by name; ``all`` stands for all others.
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
    """A path that breaks a rule.

    :ivar number: index of the path in the column
    :ivar path: the path; bytes that are not UTF-8 are the surrogates of :func:`os.fsdecode`
    :ivar reason: the reason, on one line
    """

    number: int
    path: str
    reason: str


class NameViolations(NamedTuple):
    """The paths of a column that break a rule of a profile.

    :ivar count: number of these paths
    :ivar first: the first of them
    :ivar advised: number of all paths with a segment that starts with ``-``: see :func:`advice`
    """

    count: int  # type: ignore[assignment]  # not the method of tuples
    first: tuple[NameViolation, ...]
    advised: int


def name_violation(path: str | bytes, profile: str, *, root_length: int = 0) -> str | None:
    """Return which rule of a profile ``path`` breaks, on one line that names the segment, or :data:`None`.

    :param root_length: bytes of the root directory of the path, without a trailing slash; 0 for none
    :raises ValueError: the profile is unknown, or the length is negative
    :raises PathError: the path has an unpaired surrogate

    >>> name_violation("ark/aux.txt", "windows")
    "segment 'aux.txt': reserved device name"
    """
    profiles = _profiles(profile, root_length)
    return _violation(_encoded(path), profiles, root_length)


def advice(path: str | bytes) -> str | None:
    """Return why an allowed path is not advisable, on one line, or :data:`None`.

    A segment that starts with ``-`` is interpreted as an option by many commands.
    """
    for segment in _encoded(path).split(b"/"):
        if segment.startswith(b"-"):
            return f"segment {quoted(segment)}: starts with '-', like an option"
    return None


def name_violations(paths: Texts, profile: str, *, root_length: int = 0, first: int = 20) -> NameViolations:
    """Return the paths that break a rule of a profile. Nulls are ignored.

    :param root_length: as for :func:`name_violation`
    :param first: maximum number of paths to name
    :raises ValueError: as for :func:`name_violation`
    :raises PathError: as for :func:`name_violation`
    """
    profiles = _profiles(profile, root_length)
    kernels = _kernels.active
    look, certain = _look(profile, root_length)
    count = advised = number = 0
    named: list[NameViolation] = []
    for batch, nulls in batches(kernels, paths):
        found, dashes = kernels.suspicious(batch, *look)
        advised += dashes
        skipped = set(nulls)
        refused = set(kernels.suspicious(batch, *certain)[0]) if found else ()
        for index in found:
            if index in skipped:
                continue
            if index in refused and len(named) >= first:
                count += 1
                continue
            path = batch[index]
            reason = _violation(path, profiles, root_length)
            if reason is not None:
                count += 1
                if len(named) < first:
                    named.append(NameViolation(number + index, path.decode("utf-8", "surrogateescape"), reason))
        number += len(batch)
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
        raise PathError(path, None, f"unpaired surrogate at index {error.start}") from None


def _violation(path: bytes, profiles: Sequence[Profile], root_length: int) -> str | None:
    if not path:
        return "path is empty"
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
        (profile.path_bytes, len(path), "bytes"),
        (profile.path_units, _units(path), "UTF-16 units"),
    ):
        if limit is not None and before + length + profile.with_nul > limit:
            rest = f" plus {root_length} of the root" if root_length else ""
            nul = " including a NUL" if profile.with_nul else ""
            return f"path {quoted(path)}: {length} {unit}{rest}; the limit is {limit}{nul}"
    return None


def _segment_violation(segment: bytes, profile: Profile) -> str | None:
    """Return which rule a segment breaks, or :data:`None`."""
    if segment in (b"", b".", b".."):
        return "not a name" if segment else "empty"
    if profile.segment_bytes is not None and len(segment) > profile.segment_bytes:
        return f"{len(segment)} bytes; the limit is {profile.segment_bytes}"
    text = segment.decode("utf-8", "surrogateescape")
    if profile.text and any("\udc80" <= character <= "\udcff" for character in text):
        return "not UTF-8"
    if profile.segment_units is not None and _units(segment) > profile.segment_units:
        return f"{_units(segment)} UTF-16 units; the limit is {profile.segment_units}"
    for character in text:
        if character in profile.characters:
            return f"contains {quoted(character)}"
    if text[-1] in profile.endings:
        return f"ends with {quoted(text[-1])}"
    if profile.devices and text.partition(".")[0].rstrip(" ").upper() in _DEVICES:
        return "reserved device name"
    return None


def _units(path: bytes) -> int:
    """Return the number of UTF-16 units of a path; a byte that is not UTF-8 counts as one."""
    return len(path.decode("utf-8", "surrogateescape").encode("utf-16-le", "surrogatepass")) // 2


# --- columns ----------------------------------------------------------------------------------------------------


# The arguments of the kernel: byte classes, longest segment and path, whether to look for devices.
_Look = tuple[bytes, int, int, bool]


@cache
def _look(name: str, root_length: int) -> tuple[_Look, _Look]:
    """Return arguments that find all paths that break a rule and more, and arguments that find only such paths.

    Most paths break a rule by an ASCII character, which the kernel decides alone.
    """
    profiles = _profiles(name, root_length)
    filters = [_filter(one, root_length) for one in profiles]
    classes = bytes(
        _ADVISED_FIRST * (byte == 0x2D) | _union(classes[byte] for classes, _, _ in filters) for byte in range(256)
    )
    longest_segment = min(segment for _, segment, _ in filters)
    longest_path = min(path for _, _, path in filters)
    ascii_only = bytes(bits & (_REFUSED | _NOT_LAST) for bits in classes[:128]) + bytes(128)
    return (
        (classes, longest_segment, longest_path, any(one.devices for one in profiles)),
        (ascii_only, _UNLIMITED, _UNLIMITED, False),
    )


def _filter(profile: Profile, root_length: int) -> tuple[bytes, int, int]:
    """Return the byte classes of a profile, and the lengths of segments and paths that are always allowed.

    A path has at least as many bytes as units, so a path that is short enough in bytes is short enough in units.
    """
    classes = bytearray(256)
    for character in profile.characters:
        classes[ord(character)] |= _REFUSED
    for character in profile.endings:
        classes[ord(character)] |= _NOT_LAST
    if profile.text:
        # To be decoded: invalid UTF-8, or a device with a superscript digit.
        for byte in range(0x80, 0x100):
            classes[byte] |= _REFUSED
    segment = min(limit for limit in (profile.segment_bytes, profile.segment_units, _UNLIMITED) if limit is not None)
    path = min(limit for limit in (profile.path_bytes, profile.path_units, _UNLIMITED) if limit is not None)
    before = root_length + 1 if root_length else 0
    return bytes(classes), segment, max(path - before - profile.with_nul, 0)


def _union(bits: Iterator[int]) -> int:
    together = 0
    for one in bits:
        together |= one
    return together
