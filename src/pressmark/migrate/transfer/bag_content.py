"""Bags as source objects: all files, tag files included, with the digests of the manifests.

A bag that a migration made from an object of another store has the element :data:`WRAPPED` in its bag-info.txt. A
migration to another kind of store unwraps such a bag, unless something was added to it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from pressmark.bagit.bag_info import unfolded
from pressmark.bagit.bag_tags import BagTags
from pressmark.bagit.validation.validate import validate
from pressmark.errors import quoted_path
from pressmark.fs.names import decode_fs
from pressmark.migrate.entry import TransferError, status_of_problem
from pressmark.migrate.transfer.content import Content
from pressmark.stores.bags.bag_object import BagObject
from pressmark.stores.bags.walk import IDENTIFIER

__all__ = ["WRAPPED", "check_bag", "is_bag", "with_manifests"]

#: The element of bag-info.txt that records from which kind of store the payload came, and its encapsulation.
WRAPPED = "Pressmark-Wrapped"
# The other elements of such a bag.
_ELEMENTS = {IDENTIFIER, WRAPPED, "Bagging-Date", "Bag-Size", "Bag-Software-Agent", "Payload-Oxum"}
_PAYLOAD = b"data/"


def is_bag(content: Content) -> bool:
    """Return whether an object has the files that every bag has."""
    names = {name for name, _path in content.files if b"/" not in name}
    payload = any(name.startswith(_PAYLOAD) for name, _path in content.files)
    payload = payload or any((name + b"/").startswith(_PAYLOAD) for name, _path in content.empty)
    return b"bagit.txt" in names and payload and any(name.startswith(b"manifest-") for name in names)


def check_bag(path: bytes, level: str = "complete", what: str = "complete") -> None:
    """Check that a bag is complete or valid.

    :param level: ``complete`` reads no file, ``full`` reads all
    :param what: the noun for the message
    :raises TransferError: it is not
    """
    report = validate(path, level, threads=1)
    if not report.ok:
        wrong = report.errors[0]
        where = f"{quoted_path(wrong.path)}: " if wrong.path else ""
        reason = f"the bag is not {what}: {where}{wrong.message}; repair it"
        raise TransferError(status_of_problem(wrong.kind), wrong.kind, reason)


def with_manifests(content: Content, found: BagObject, unwrap: bool) -> Content:
    """Return the content of a bag with the digests of its manifests, unwrapped if a migration made the bag.

    :param content: the files below the base directory
    :param found: the bag
    :param unwrap: whether a bag may be unwrapped
    """
    path = os.fsencode(found.bag_path)
    bag, listed = found.tags_and_digests([name for name, _path in content.files])
    known = listed.digests
    encapsulation = _wrapped_encapsulation(bag, content) if unwrap else None
    if encapsulation is None:
        return content._replace(known=known)
    return _payload(content, known, path, encapsulation)


def _payload(content: Content, known: Mapping[str, Mapping[str, str]], bag: bytes, encapsulation: str) -> Content:
    """Return the object that a bag was made from."""
    prefix = decode_fs(_PAYLOAD)
    return Content(
        [(name.removeprefix(_PAYLOAD), path) for name, path in content.files if name.startswith(_PAYLOAD)],
        {
            algorithm: {name.removeprefix(prefix): digest for name, digest in block.items() if name.startswith(prefix)}
            for algorithm, block in known.items()
        },
        [(name.removeprefix(_PAYLOAD), path) for name, path in content.empty if name.startswith(_PAYLOAD)],
        encapsulation or None,
        None if content.top is None else os.path.join(bag, b"data"),
        content.seen,
        place=content.place,
        listed=content.listed,
    )


def _wrapped_encapsulation(bag: BagTags, content: Content) -> str | None:
    """Return the encapsulation of the object that a migration made a bag from; empty if it had none.

    :data:`None` for any other bag, and for a bag to which something was added.
    """
    said = bag.info.all(WRAPPED)
    if len(said) != 1 or {label for label, _value in bag.info.elements} - _ELEMENTS:
        return None
    usual = {b"bagit.txt", b"bag-info.txt", *(one.name for one in (*bag.manifests, *bag.tag_manifests))}
    if any(not name.startswith(_PAYLOAD) and name not in usual for name, _path in content.files):
        return None
    if any(not name.startswith(_PAYLOAD) and name != _PAYLOAD[:-1] for name, _path in content.empty):
        return None
    return unfolded(said[0]).partition(" ")[2]
