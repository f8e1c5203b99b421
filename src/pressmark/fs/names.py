"""Names of files as bytes and text: how long they may be, and which ones a file system takes for the same."""

from __future__ import annotations

import errno
import os
import stat

from pressmark.fs.durable import exists

__all__ = [
    "NAME_MAX",
    "PATH_MAX",
    "decode_fs",
    "encode_fs",
    "existing_spelling",
    "first_link",
    "is_absent",
    "is_blocked",
    "is_case_insensitive",
    "is_inside",
    "is_utf8",
    "too_long",
]

NAME_MAX, PATH_MAX = 255, 4096  # bytes, where the system does not say; a path's NUL is counted


def encode_fs(name: str | bytes) -> bytes:
    """Return ``name`` as the bytes it has on the disk: layouts give UTF-8, whatever the locale is."""
    return name.encode("utf-8", "surrogateescape") if isinstance(name, str) else name


def decode_fs(name: bytes) -> str:
    """Return the bytes of a path or an identifier as :class:`str`, the inverse of :func:`encode_fs`."""
    return name.decode("utf-8", "surrogateescape")


def is_utf8(name: bytes) -> bool:
    """Return whether bytes are UTF-8."""
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True


def too_long(base: bytes, relative: bytes) -> str | None:
    """Return why no file system takes the path ``relative`` below ``base``, or :data:`None`."""
    longest = max(map(len, relative.split(b"/")))
    if longest > NAME_MAX:
        return f"a name in its path would have {longest} bytes, and {NAME_MAX} are the most that file systems take"
    length = len(os.path.abspath(base)) + 1 + len(relative)
    if length >= PATH_MAX:
        return f"its path would have {length} bytes, and {PATH_MAX - 1} are the most that the system takes"
    return None


def is_absent(base: bytes, relative: bytes) -> bool:
    """Return whether the path ``relative`` below ``base`` leads to nothing, also where it is too long to be looked at.

    It is not said to be absent where all of it that can be looked at is there: by a shorter path the rest may be, too.

    :raises OSError: nobody can say
    """
    path = base
    for name in relative.split(b"/"):
        path += b"/" + name
        try:
            if len(name) > NAME_MAX or not exists(path):
                return True
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                return False
            raise
    return False


def is_case_insensitive(directory: bytes) -> bool:
    """Return whether ``directory``, whose name has letters, can be had in the other case too: names clash by case."""
    parent, name = os.path.split(os.path.abspath(directory))
    other = name.swapcase()
    try:
        return other != name and os.path.samestat(
            os.lstat(os.path.join(parent, other)), os.lstat(os.path.join(parent, name))
        )
    except OSError:
        return False


def existing_spelling(base: bytes, relative: bytes) -> bytes | None:
    """Return the part of the path ``relative`` below ``base`` that is there under another spelling, or :data:`None`.

    Ask where :func:`is_case_insensitive`: a name is there, and the directory that holds it lists it otherwise.
    """
    at = base
    for name in relative.split(b"/"):
        path = os.path.join(at, name)
        if not os.path.lexists(path):
            return None
        if name not in os.listdir(at):
            return os.path.relpath(path, base)
        at = path
    return None


def first_link(base: bytes, relative: bytes) -> bytes | None:
    """Return the part of the path ``relative`` below ``base`` that is a symbolic link, the first; or :data:`None`."""
    at = b""
    for name in relative.split(b"/"):
        at = os.path.join(at, name)
        if os.path.islink(os.path.join(base, at)):
            return at
    return None


def is_inside(
    path: str | bytes | os.PathLike[str] | os.PathLike[bytes], directory: str | bytes | os.PathLike[str]
) -> bool:
    """Return whether ``path`` is ``directory`` or below it once symbolic links are resolved; neither need exist."""
    real, outer = os.path.realpath(os.fsencode(path)), os.path.realpath(os.fsencode(directory))
    return real == outer or real.startswith(os.path.join(outer, b""))


def is_blocked(path: bytes) -> bool:
    """Return whether there is something that is no directory; asked once, since other runs make and remove them."""
    try:
        mode = os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    return not (stat.S_ISDIR(mode) or (stat.S_ISLNK(mode) and os.path.isdir(path)))
