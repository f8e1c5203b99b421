"""The paths of selected objects in a storage root, each with the object that contains it, if any.

A layout gives the path of an identifier. Without a layout, or if the first objects of the root are not in place, one
walk looks for many identifiers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from pressmark.errors import IdentifierError, ObjectError, PathError
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.reports import Problem
from pressmark.stores.objects import StoreObject
from pressmark.stores.ocfl.checking.object_tree import ObjectTree, StoredTree
from pressmark.stores.ocfl.declarations import declares_object
from pressmark.stores.ocfl.storage import Reads
from pressmark.stores.ocfl.storage_root import StorageRoot
from pressmark.stores.ocfl.walk import Walk, identify
from pressmark.stores.selection import Ids, id_matcher, look_up_all, refuse_both, searched_records

__all__ = ["ObjectPath", "selected_paths"]

#: An object, and the object that contains it; :data:`None` for most.
ObjectPath = tuple[bytes, bytes | None]


def selected_paths(
    root: StorageRoot, ids: Ids | None, match: Sequence[str] | str, threads: int, ignore: Sequence[str], strict: bool
) -> Iterator[ObjectPath | Problem]:
    """Yield the selected objects, and a problem for each that is not found; see :meth:`Store.objects`.

    :param strict: raise the error of an identifier instead
    :raises OSError: the root cannot be read
    """
    refuse_both(ids, match)
    if ids is None:
        return _matching(root, id_matcher(match), threads, ignore)
    if _is_in_place(root):
        return look_up_all(ids, partial(_path_of, root), strict, root.bucket)
    return _searched(root, ids, threads, ignore, strict)


def _is_in_place(root: StorageRoot) -> bool:
    return root.layout is not None and root.first_objects.misplaced() is None


def _path_of(root: StorageRoot, identifier: str | bytes) -> ObjectPath:
    """Return an object by its identifier, or by its path; its inventory may be damaged.

    :raises ObjectError: it is not found, or several objects have the identifier
    :raises IdentifierError: the identifier has no path in the root, and is not a path
    """
    try:
        path = root._existing_path(identifier)
    except (IdentifierError, ObjectError) as error:
        if isinstance(error, ObjectError) and error.kind not in ("missing", "collision"):
            raise
        path = encode_fs(identifier).rstrip(b"/")
        if not root._is_object_at(path):
            raise
    return path, _surrounding(root, path)


def _surrounding(root: StorageRoot, path: bytes) -> bytes | None:
    """Return the innermost object around a path; :data:`None` if there is none."""
    names = path.split(b"/")
    above = (b"/".join(names[:number]) for number in range(len(names) - 1, 0, -1)) if root.may_nest else ()
    return next((one for one in above if declares_object(root.storage, one)), None)


def _searched(
    root: StorageRoot, ids: Ids, threads: int, ignore: Sequence[str], strict: bool
) -> Iterator[ObjectPath | Problem]:
    """Look for objects in the whole root."""

    def at(path: str | bytes) -> StoreObject | None:
        encoded = encode_fs(path).rstrip(b"/")
        return StoreObject(None, decode_fs(encoded), False, None, ()) if root._is_object_at(encoded) else None

    def missing(identifier: str | bytes) -> ObjectError:
        return ObjectError(root.root, identifier, "missing", "object not found")

    objects = partial(root.objects, threads=threads, ignore=ignore)
    for item in searched_records(ids, objects, at, missing, strict):
        if isinstance(item, Problem):
            yield item
        else:
            path = encode_fs(item.path)
            yield path, _surrounding(root, path)


def _matching(
    root: StorageRoot, is_match: Callable[[str | None], bool], threads: int, ignore: Sequence[str]
) -> Iterator[ObjectPath | Problem]:
    """Yield the objects with matching identifiers, which are derived from paths or read from inventories."""
    layout = root.layout if root.layout is not None and root.layout.reversible and _is_in_place(root) else None

    def visit(tree: ObjectTree) -> ObjectPath | None:
        identifier = None
        if layout is not None:
            try:
                identifier = layout.unmap_path(tree.path)
            except PathError:  # of a long identifier, or of an object that is not in place
                if not root.storage.exists(tree.path):
                    return None
                tree = StoredTree(root.storage, tree.path, root.storage.scan(tree.path), tree.inside)
        if identifier is None:
            found = identify(root.storage, tree)
            if found is None:
                return None  # another run has removed it
            identifier = found[0]
        return (tree.path, tree.inside) if is_match(identifier) else None

    reads: Reads = "ids" if layout is None else "paths"
    for item in Walk(root.storage, visit, reads=reads, threads=threads, ignore=ignore):
        if not isinstance(item, Problem) or item.kind == "unreadable":
            yield item
