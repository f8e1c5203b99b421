"""Records that both implementations accept and return: directory trees in memory, and steps of changes."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

__all__ = [
    *("DEEPEST", "TOGETHER", "Other", "Tree", "Wanted"),
    *("ALONE", "FLUSH", "LOCK", "MAKE", "MODE", "MOVE", "RMDIR", "UNLINK", "WRITE", "Step"),
]

#: A step of ``run_steps``: its kind, a path in the directory (empty: the directory itself), and what the kind says.
#:
#: ========== =========================================================================================================
#: ``MAKE``   create a directory; the mode, to which the umask applies
#: ``MODE``   set the mode of a file or directory; the mode
#: ``LOCK``   create and lock a file, which must not exist; nothing. Windows has no such step
#: ``WRITE``  create a file; its content
#: ``MOVE``   rename a file or directory; its new path in the directory, which must not exist
#: ``ALONE``  fail with ``EEXIST`` if a directory contains anything else than this name; the name
#: ``UNLINK`` remove a file; nothing
#: ``RMDIR``  remove an empty directory; nothing
#: ``FLUSH``  write a file to disk, or the entries of a directory; nothing
#: ========== =========================================================================================================
Step: TypeAlias = tuple[int, bytes, bytes | int | None]
# The same numbers are in file_steps.h.
MAKE, MODE, LOCK, WRITE, MOVE, ALONE, UNLINK, RMDIR, FLUSH = range(9)

# The largest ``Wanted.depth``: each level has an open directory.
DEEPEST = 256
# Bytes of contents after which a call returns.
TOGETHER = 1 << 20


class Wanted(NamedTuple):
    """The options of ``read_trees``.

    :ivar marker: a tree begins at the first directory with a regular file whose name has this prefix; empty: at each
        given name
    :ivar skip: a name to ignore in the directory of each tree, and in directories above trees; or empty
    :ivar content: of files: ``none`` looks at their status, ``open`` opens each as well, ``all`` reads them; ``names``
        does not even look: all columns of files, and without ``inside`` of directories, are 0
    :ivar prefixes: files whose names begin with one of these are read whatever ``content`` is; one with a slash at its
        end is a whole name
    :ivar first: of such a file, only so many bytes; 0 for all
    :ivar entries: the maximum number of entries of a tree
    :ivar depth: the maximum number of directories above an entry in its tree, and of directories between a name and a
        tree; at most 256
    :ivar total: the maximum size of the contents of a tree together
    :ivar file: the maximum size of the content of a file
    :ivar clashes: with a marker: a directory above trees is odd if some of its names may differ in case only
    :ivar budget: the maximum number of trees, and directories above trees, to read
    :ivar text: paths are :class:`str`, decoded from UTF-8 with ``surrogateescape``, not :class:`bytes`
    :ivar twice: look at the status of a file after reading it as well. Without it a file that is overwritten meanwhile
        may have a content that it never had
    :ivar inside: read the directories in a tree; otherwise only the entries of its own directory
    """

    marker: bytes = b""
    skip: bytes = b""
    content: str = "all"
    prefixes: tuple[bytes, ...] = ()
    first: int = 0
    entries: int = 4096
    depth: int = 64
    total: int = 4 << 20
    file: int = 1 << 20
    clashes: bool = False
    budget: int = 1 << 40
    text: bool = False
    twice: bool = True
    inside: bool = True


class Other(NamedTuple):
    """An entry of a tree that is neither a regular file nor a directory that could be read.

    :ivar path: relative to the tree; :class:`str` or :class:`bytes`
    :ivar kind: ``link``; ``special`` for a named pipe, socket or device; ``device`` for a directory on another file
        system than the tree; ``closed`` for a directory that could not be read
    :ivar errno: why a directory could not be read, otherwise 0
    """

    path: bytes | str
    kind: str
    errno: int


class Tree(NamedTuple):
    """A directory tree. Files, directories and other entries are each in the order of a walk: sorted by the bytes of
    their names, a directory followed by what it contains. Their paths are relative to the tree.

    :ivar path: as given; with a marker, the name and what follows it. Always :class:`bytes`
    :ivar state: ``whole``; or without entries ``large`` (it exceeds a limit, or took too long), ``unreadable``, or with
        a marker ``odd``: a directory above trees that is empty, contains anything but directories, is too deep, or
        has names that may clash; or with the names of its directories ``rest``: they were not read
    :ivar errno: why it is unreadable, otherwise 0
    :ivar device: of its directory, as the next three
    :ivar inode: its number
    :ivar mode: its type and permissions
    :ivar mtime: in nanoseconds
    :ivar files: the number of each regular file in the columns of the batch
    :ivar directories: the number of each directory in the columns of the batch; -1 if it was not read
    :ivar empty: the directories without entries
    :ivar linked: the files with several hard links
    :ivar others: all other entries
    """

    path: bytes
    state: str
    errno: int
    device: int
    inode: int
    mode: int
    mtime: int
    files: dict[bytes, int] | dict[str, int]
    directories: dict[bytes, int] | dict[str, int]
    empty: list[bytes] | list[str]
    linked: list[bytes] | list[str]
    others: list[Other]
