"""The storage of a root, on a disk or in a bucket."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pressmark.buckets.address import is_address
from pressmark.errors import StoreError
from pressmark.option_names import option
from pressmark.stores.ocfl.local.local_storage import LocalStorage
from pressmark.stores.ocfl.storage import Storage

if TYPE_CHECKING:
    from pressmark.stores.ocfl.remote.location import Replacement

__all__ = ["storage_at"]


def storage_at(root: bytes, content_class: str | None, claims: bool, single_writer: bool) -> Storage:
    """Return the storage of a directory, or of an address in object storage, such as ``s3://bucket/prefix``.

    :param content_class: storage class of new content
    :param claims: as for :class:`~pressmark.stores.ocfl.storage_root.StorageRoot`, like ``single_writer``
    :raises StoreError: the address is malformed, an option is invalid, or botocore is not installed
    """
    for name, is_chosen in (("claims", claims), ("single_writer", single_writer)):
        if is_chosen and not is_address(root):
            raise StoreError(root, f"{option(name, True)} requires an OCFL storage root in object storage; omit it")
    if claims and single_writer:
        raise StoreError(root, f"{option('claims', True)} excludes {option('single_writer', True)}; omit one of them")
    if not is_address(root):
        return LocalStorage(root)
    from pressmark.buckets.address import open_bucket
    from pressmark.stores.ocfl.remote.remote_storage import RemoteStorage  # slow to import

    bucket, prefix = open_bucket(root)
    replacement: Replacement | None = "claims" if claims else "single_writer" if single_writer else None
    return RemoteStorage(bucket, prefix, content_class, replacement)
