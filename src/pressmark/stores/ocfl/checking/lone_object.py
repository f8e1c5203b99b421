"""The check of one OCFL object, wherever it is."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

from pressmark.buckets.address import is_address
from pressmark.errors import StoreError
from pressmark.progress_event import Progress
from pressmark.reports import Report
from pressmark.stores.exceptions import store_errors
from pressmark.stores.objects import Digests, Path, encode_path
from pressmark.stores.ocfl.checking.selected_objects import ObjectPath
from pressmark.stores.ocfl.declarations import VERSIONS, is_object_root
from pressmark.stores.ocfl.root import OcflRoot
from pressmark.threads import resolve_threads

__all__ = ["check_object"]


class _Surroundings(OcflRoot):
    """A directory that contains an object, and need not be a storage root.

    :param name: the name of the object
    """

    def __init__(self, path: bytes, name: bytes) -> None:
        self._name = name
        super().__init__(path)

    def read_declaration(self) -> None:
        self._why_undeclared = self._why_no_layout = ""
        self.version = VERSIONS[0]
        if not is_object_root(self.storage.scan(self._name)):
            what = "not an OCFL object: no 0=ocfl_object_1.x; specify the directory of an object"
            raise StoreError(os.path.join(self._root, self._name), what)

    def _selected_paths(
        self,
        ids: Iterable[str | bytes] | None,
        match: Sequence[str] | str,
        threads: int,
        ignore: Sequence[str],
        strict: bool,
    ) -> Iterator[ObjectPath]:
        return iter([(self._name, None)])


def check_object(
    path: Path,
    *,
    digests: Digests = False,
    threads: int | None = None,
    progress: Progress | None = None,
    ignore: Sequence[str] = (),
) -> Report:
    """Check one OCFL object strictly, inside or outside of a storage root, as :meth:`Store.check` checks all.

    :param path: the directory of the object, or its address in object storage; the paths of problems begin with its
        name
    :param digests: as for :meth:`OcflRoot.check`
    :param threads: as for :meth:`Store.objects`
    :param progress: as for :meth:`Store.check`
    :param ignore: globs of names to ignore
    :raises StoreError: not an OCFL object, or not readable
    """
    base = encode_path(path, remote=True)
    above, name = os.path.split(base.rstrip(b"/") if is_address(base) else os.path.abspath(base))
    resolve_threads(threads)
    with store_errors(base):
        return _Surroundings(above, name).check(digests=digests, threads=threads, progress=progress, ignore=ignore)
