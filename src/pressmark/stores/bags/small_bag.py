"""A bag of a few small files, written without the engine; equal to one of :func:`pressmark.bagit.create`."""

from __future__ import annotations

import os
from collections.abc import Sequence

from pressmark import _kernels
from pressmark.bagit.bag_directory import STAGING
from pressmark.bagit.creation.options import CreateOptions
from pressmark.bagit.creation.preflight import why_unlistable
from pressmark.bagit.creation.tag_writer import small_tag_files
from pressmark.bagit.manifest_format import manifest_name
from pressmark.bagit.paths import PAYLOAD
from pressmark.fixity.copying import keep_status
from pressmark.fixity.hasher import OpenOptions

__all__ = ["ALGORITHMS", "write_small_bag"]

ALGORITHMS = ("sha512",)
_FLAGS = OpenOptions(follow=False).flags
_LONGEST = b"/" + manifest_name(ALGORITHMS[0], tag=True)


def write_small_bag(source: bytes, new: bytes, info: Sequence[tuple[str, str]]) -> tuple[int, bytes] | None:
    """Write a bag with manifests of SHA-512; it is not flushed.

    :param source: the directory of the payload
    :param new: path of the new bag
    :param info: the first elements of bag-info.txt
    :return: size of the payload, and the longest path in the bag after a slash; :data:`None` if the bag cannot be
        written in this way, or at all: the caller removes ``new``, and creates the bag with the engine
    :raises OSError: a file cannot be written
    """
    try:
        status = os.stat(source)
    except OSError:
        return None
    data = new + b"/" + PAYLOAD
    found = _kernels.active.copy_small_tree(source, (new, data), _FLAGS)
    if found is None or any(_is_special(name) for name, _digest, _size in found):
        return None
    # In the order of a walk.
    files = sorted(found, key=lambda file: file[0].split(b"/"))
    size = sum(file[2] for file in files)
    inner = {above for name, _digest, _size in files for above in _directories(name)}
    for above in sorted(inner, reverse=True):
        keep_status(data + b"/" + above, os.stat(source + b"/" + above))
    keep_status(data, status)
    options = CreateOptions.from_arguments(ALGORITHMS, info, "refuse", (), None, "parallel", None)
    digests = [(name, {ALGORITHMS[0]: digest}) for name, digest, _size in files]
    tags, _info = small_tag_files(options, digests, size)
    written = _kernels.active.write_small([new + b"/" + name for name in tags], list(tags.values()))
    if written is not True:
        if written is False:
            return None
        raise OSError(written[1], os.strerror(written[1]), new)
    return size, max(_LONGEST, *(b"/data/" + file[0] for file in files), key=len)


def _is_special(name: bytes) -> bool:
    return name.startswith(STAGING + b"/") or name == STAGING or why_unlistable(name) is not None


def _directories(name: bytes) -> list[bytes]:
    """Return the directories above a file."""
    parts = name.split(b"/")
    return [b"/".join(parts[:depth]) for depth in range(1, len(parts))]
