"""The identifiers, paths of bags, and file names in manifests that a folder of bags accepts."""

from __future__ import annotations

from collections.abc import Sequence

from pressmark.bagit.paths import normal_key
from pressmark.errors import quoted
from pressmark.fs.names import encode_fs
from pressmark.layouts import Layout
from pressmark.stores.bags.new_bag import is_writable_identifier
from pressmark.stores.bags.walk import IDENTIFIER

__all__ = ["is_bag", "same_in_manifest", "unstorable_identifier"]


def unstorable_identifier(identifier: str, path: str, layout: Layout | None) -> str | None:
    """Return why a new bag cannot record its identifier; :data:`None` if it can, or if its path does."""
    if is_writable_identifier(identifier):
        return None
    if layout is not None and layout.reversible and layout.unmap_path(path) == identifier:
        return None
    return f"the identifier cannot be written as an {IDENTIFIER}, which is one line of text"


def is_bag(names: Sequence[str]) -> bool:
    """Return whether an object with files of these names is a bag, and is stored as that bag."""
    return "bagit.txt" in names and any(name.startswith("manifest-") for name in names)


def same_in_manifest(names: Sequence[str]) -> tuple[str, str, str] | None:
    """Return the first path that equals another one in Unicode normalization form C (BagIt, section 6.1.1.3)."""
    seen: dict[bytes, str] = {}
    for name in names:
        path = name
        while path and seen.get(normal_key(encode_fs(path))) != path:
            other = seen.setdefault(normal_key(encode_fs(path)), path)
            if other != path:
                what = f"{quoted(other)} is the same name in another Unicode normalization; rename one of the files"
                return "normalization", path, what
            path = path.rpartition("/")[0]
    return None
