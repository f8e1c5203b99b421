"""Changes of a storage root in a bucket, safe with many writers and after a kill.

A bucket has no rename, so everything is written to its final key, in this order:

1. content, each file only if its key does not exist: nothing is overwritten;
2. the inventory of the version, ``vN/inventory.json``, only if its key does not exist. It contains the whole version:
   the run that writes it has won, and from then on any run can finish the version;
3. the sidecar of the version; then the object's inventory, only over the one that the run has read, and its sidecar. A
   new object gets its declaration last.

Where the server ignores conditions, they are checked before each request, and a run claims an object from its first
write to its last: see :mod:`pressmark.stores.ocfl.remote.claims`.

A run that is killed before step 2 leaves content that no inventory lists: the next version with this number reuses
equal files and removes the others. A run that is killed after it leaves a version that the next change, or a repair,
finishes.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from time import monotonic
from typing import Any

from pressmark.buckets.bucket import ANY, NEW, KeyChangedError
from pressmark.buckets.probe import STAGING
from pressmark.fixity.algorithms import ALGORITHMS
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.option_names import option
from pressmark.stores.exceptions import SourceError
from pressmark.stores.ocfl.declarations import EXTENSIONS, OBJECT, declaration_of, outdated_names
from pressmark.stores.ocfl.inventory import (
    INVENTORY,
    InventoryError,
    inventory_bytes,
    read_inventory,
    sidecar_bytes,
    sidecar_name,
)
from pressmark.stores.ocfl.inventory_rules import inventory_errors
from pressmark.stores.ocfl.remote.location import DECIDED, FIRST, REMOVALS
from pressmark.stores.ocfl.remote.prepared import (
    Prepared,
    busy_file,
    files_below,
)
from pressmark.stores.ocfl.remote.preparing import FRESH, RemotePreparation

__all__ = ["RemoteChanges"]

_INVENTORY = encode_fs(INVENTORY)
# Attempts to replace a file that other writers replace, too.
TRIES = 100
# Seconds. A run that removes an object renews its note more often.
ALIVE = 3600.0
_IN_VERSION = re.compile(rb"v[0-9]+/")


class RemoteChanges(RemotePreparation):
    """Changes of a root in a bucket; see :class:`pressmark.stores.ocfl.storage.Changes`."""

    # --- publish ------------------------------------------------------------------------------------------------------

    def publish(self, new: bytes, path: bytes, known: set[bytes], *, replace_empty: bool = False) -> None:
        with self.claimed(path):
            prepared = self._prepared[new]
            is_alone = prepared.is_new or self._is_alone(prepared, path)
            for name, data in prepared.written.items():
                if name.startswith(EXTENSIONS + b"/"):
                    self.put_same(path + b"/" + name, data)
            data, is_taken = self._arrived(prepared, prepared.written[_INVENTORY])
            try:
                self._decide(prepared, *self._first(prepared, data))
            except FileExistsError:
                self.recover(path)
                raise
            self._finish(path, data, is_new=True, is_alone=is_alone and not is_taken)
            self.discard(new)

    def _first(self, prepared: Prepared, data: bytes) -> tuple[bytes, bytes]:
        """Return the name of the first version of a new object, and its inventory.

        :param data: the inventory of the object
        """
        if not prepared.is_adopted:
            return b"v1", data
        name = next(name for name in prepared.written if FIRST.fullmatch(name))
        return name.partition(b"/")[0], prepared.written[name]

    def _is_alone(self, prepared: Prepared, path: bytes) -> bool:
        """Check that no object is at a path, and return whether nothing is there; what an interrupted run has sent is
        not sent again.

        :raises FileExistsError: anything but the content of an interrupted run is there
        """
        if not self._location.is_directory(path):
            return True
        self.recover(path)
        if not self._location.is_leftover(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), self._location.path(path))
        prepared.there = set(self._location.names(path))
        return False

    def _arrived(self, prepared: Prepared, data: bytes) -> tuple[bytes, bool]:
        """Wait until all content is in the bucket; return the inventory, with the paths that it has there, and whether
        some was there before.

        :param data: the inventory
        """
        self._send_all(prepared)
        sent = {path: sending.result() for path, sending in prepared.sending.items()}
        others = {decode_fs(path): decode_fs(one.path) for path, one in sent.items() if one.path != path}
        if others and prepared.is_adopted:
            raise busy_file(prepared.path + b"/" + encode_fs(next(iter(others))))
        if others:
            document = read_inventory(data)
            blocks = [document["manifest"], *document.get("fixity", {}).values()]
            for paths in (paths for block in blocks for paths in block.values()):
                paths[:] = [others.get(path, path) for path in paths]
            data = inventory_bytes(document)
        is_taken = any(one.is_taken for one in sent.values())
        if is_taken:
            # The writer that sent it may have lost since, and removed it.
            there = set(self._location.names(prepared.path))
            gone = [one.path for one in sent.values() if one.path not in there]
            if gone:
                raise FileExistsError(errno.EEXIST, "another writer has removed its copy", gone[0])
        return data, is_taken

    def _decide(self, prepared: Prepared, version: bytes, data: bytes) -> None:
        """Write the inventory of a version, which decides between writers.

        :raises FileExistsError: another writer has been faster
        """
        inventory = prepared.path + b"/" + version + b"/" + _INVENTORY
        try:
            algorithm = read_inventory(data)["digestAlgorithm"]
            self._bucket.put(self._location.prefix + inventory, data, digests=_digests_of(data, algorithm))
        except FileExistsError:
            decided, _token = self._location.read(inventory)
            if decided == data:  # the answer was lost
                return
            listed = _contents(read_inventory(decided))
            own = [one.result() for one in prepared.sending.values()]
            losing = [self._key(prepared, one.path) for one in own if not one.is_taken and one.path not in listed]
            with suppress(PermissionError):  # the winner removes them, or a repair
                self._bucket.delete(losing)
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), self._location.path(prepared.path)) from None

    def _finish(
        self, path: bytes, data: bytes, declared: bytes = b"", *, is_new: bool = False, is_alone: bool = False
    ) -> None:
        """Publish a version that is decided.

        :param data: its inventory
        :param declared: as for :meth:`publish_inventory`
        :param is_new: the object has no inventory
        :param is_alone: nothing else was at the path
        :raises FileNotFoundError: a file of the version is missing
        """
        document = read_inventory(data)
        version = encode_fs(document["head"])
        sidecar, line = _sidecar(document, data)
        if not is_alone:
            names, contents = set(self._location.names(path)), _contents(document)
            # Lost files of an earlier version do not prevent this one.
            wanted = {name for name in contents if is_new or name.startswith(version + b"/")}
            if missing := wanted - names:
                where = self._location.path(path + b"/" + min(missing))
                raise FileNotFoundError(errno.ENOENT, "a file of the new version is missing", where)
            # Files of runs that lost, and of objects that were removed.
            versions = map(encode_fs, document["versions"])
            own = {one + b"/" + _INVENTORY for one in versions} | contents
            # An earlier version may have another algorithm.
            beside = {name.rpartition(b".")[0] for name in names} & own
            left = [name for name in sorted(names - own) if _IN_VERSION.match(name)]
            left = [name for name in left if not (name.rpartition(b".")[0] in beside and DECIDED.match(name))]
            # Others add versions once the object is declared: not those that were listed before.
            is_first = is_new and left and not any(self._location.listed(path + b"/" + OBJECT, 1))
            foreign = [path + b"/" + name for name in left if is_first or name.startswith(version + b"/")]
            with suppress(PermissionError):  # a writer may have no right to delete; a repair has
                self._bucket.delete([self._location.prefix + one for one in foreign if self._location.is_ours(one)])
        algorithm = document["digestAlgorithm"]
        self.put_same(path + b"/" + version + b"/" + sidecar, line, algorithm)
        if not is_new:
            self._publish_inventory(path, data, declared)
            return
        name, content = declaration_of(document)
        for file, written in ((sidecar, line), (_INVENTORY, data), (name, content)):
            self.put_same(path + b"/" + file, written, algorithm)

    def put_same(self, path: bytes, data: bytes, algorithm: str = "sha512") -> None:
        """Write a file that every writer writes alike, unless it is there.

        :param algorithm: of the object's digests
        """
        with suppress(FileExistsError):
            self._bucket.put(self._location.prefix + path, data, digests=_digests_of(data, algorithm))

    def recover(self, path: bytes) -> bool:
        """Finish what an interrupted run has decided; see :class:`pressmark.stores.ocfl.storage.Changes`.

        A new object is published. Of a version, the sidecar is written; then the rules of unfinished versions apply.
        """
        with self.claimed(path):
            return self._recover(path)

    def _recover(self, path: bytes) -> bool:
        if self._finish_removal(path):
            return True
        names = set(self._location.names(path))
        is_new = _INVENTORY not in names or not any(name.startswith(OBJECT) for name in names)
        try:
            newest = self._newest(path, names, is_new)
            if not newest:
                return False
            data, _token = self._location.read(path + b"/" + newest)
            document = read_inventory(data)
            sidecar, line = _sidecar(document, data)
            beside = newest.removesuffix(_INVENTORY) + sidecar
            if inventory_errors(document) or encode_fs(document["head"]) + b"/" + _INVENTORY != newest:
                return False
        except (InventoryError, KeyError, TypeError):
            return False
        if not (is_new or beside not in names) or not self._location.is_ours(path + b"/" + newest):
            return False
        if is_new:
            self._finish(path, data, is_new=True)
        else:
            self.put_same(path + b"/" + beside, line, document["digestAlgorithm"])
        return True

    def _newest(self, path: bytes, names: set[bytes], is_new: bool) -> bytes:
        """Return the inventory of the newest version that is decided; empty if there is none.

        A new object is decided by its first version. Later ones were sent before, by a run that stores an object with
        all its versions: one that does not contain the first is of a run that has lost.
        """
        decided = sorted(filter(DECIDED.fullmatch, names), key=lambda name: int(name[1 : name.index(b"/")]))
        if not decided or not is_new:
            return decided[-1] if decided else b""
        if not FIRST.fullmatch(decided[0]):
            return b""
        first = read_inventory(self._location.read(path + b"/" + decided[0])[0])["versions"]
        for name in reversed(decided[1:]):
            later = read_inventory(self._location.read(path + b"/" + name)[0])["versions"]
            if first.items() <= later.items():
                return name
        return decided[0]

    def adopt(self, new: bytes, digests: Mapping[str, Mapping[str, str]]) -> None:
        prepared = self._prepared[new]
        prepared.is_adopted = True
        files = files_below(new)
        # What decides is sent last: the inventory of a version, or that of the first one of an object.
        decides = FIRST.fullmatch if _INVENTORY in files else DECIDED.match
        for name in files:
            if b"/" not in name or decides(name):
                with open(os.path.join(new, name), "rb") as file:
                    prepared.written[name] = file.read()
        if _INVENTORY in files and not any(map(FIRST.fullmatch, files)):
            what = "its first version has no inventory, so that it cannot be stored in a bucket in one step"
            where = self._location.path(prepared.path)
            raise OSError(errno.EINVAL, f"{what}; migrate it to another kind of store", where)
        for name in files:
            if name not in prepared.written:
                self.added(os.path.join(new, name), digests[decode_fs(name)])

    def publish_version(
        self, new: bytes, path: bytes, version: bytes, sidecar: bytes, data: bytes, declared: bytes = b""
    ) -> None:
        with self.claimed(path):
            prepared = self._prepared[new]
            inventory, _is_taken = self._arrived(prepared, prepared.written[_INVENTORY])
            self._decide(prepared, version, inventory)
            self._finish(path, inventory, declared)
            self.discard(new)

    def adopt_version(self, directory: bytes, path: bytes) -> None:
        with self.claimed(path):
            new, version = os.path.split(directory)
            prepared = self._prepared[new]
            self._arrived(prepared, data := prepared.written[version + b"/" + _INVENTORY])
            self._decide(prepared, version, data)
            self._finish(path, data)
            self.discard(new)

    def publish_inventory(self, new: bytes, path: bytes, sidecar: bytes, declared: bytes = b"") -> None:
        with self.claimed(path):
            self._publish_inventory(path, self._prepared[new].written[_INVENTORY], declared)

    def _publish_inventory(self, path: bytes, data: bytes, declared: bytes) -> None:
        """Replace the inventory of an object, unless another writer has published this or a later version."""
        inventory, document = path + b"/" + _INVENTORY, read_inventory(data)
        algorithm = document["digestAlgorithm"]
        for _ in range(TRIES):
            there, token = self._location.read(inventory)
            if len(read_inventory(there)["versions"]) < len(document["versions"]):
                try:
                    digests = _digests_of(data, algorithm)
                    self._bucket.put(self._location.prefix + inventory, data, over=token, digests=digests)
                except KeyChangedError:
                    continue
            sidecar = encode_fs(sidecar_name(algorithm))
            outdated = outdated_names(sidecar, declared) if declared else []
            self._delete_names(path, [name for name in outdated if name.startswith(_INVENTORY)])
            self._settle(path, algorithm)
            if declared:
                self.put_same(path + b"/" + declared, declaration_of(document)[1], algorithm)
                self._delete_names(path, [name for name in outdated if not name.startswith(_INVENTORY)])
            return
        raise self._busy(path)

    def _delete_names(self, path: bytes, names: Sequence[bytes]) -> None:
        for name in names:
            self.remove(path + b"/" + name)

    def _settle(self, path: bytes, algorithm: str) -> None:
        """Write the sidecar of the inventory that is there.

        The sidecar is read before the inventory: a slow writer then fails to replace the sidecar of a newer inventory.
        """
        for _ in range(TRIES):
            sidecar = path + b"/" + encode_fs(sidecar_name(algorithm))
            there, token = b"", NEW
            with suppress(FileNotFoundError):
                there, token = self._location.read(sidecar)
            data, _token = self._location.read(path + b"/" + _INVENTORY)
            document = read_inventory(data)
            if document["digestAlgorithm"] != algorithm:  # of a later version
                algorithm = document["digestAlgorithm"]
                continue
            line = _sidecar(document, data)[1]
            if line == there:
                return
            with suppress(KeyChangedError, FileExistsError):
                digests = _digests_of(line, algorithm)
                self._bucket.put(self._location.prefix + sidecar, line, over=token, digests=digests)
        raise self._busy(path)

    def _busy(self, path: bytes) -> OSError:
        what = "other writers keep changing it; run the command again"
        return OSError(errno.EBUSY, what, self._location.path(path))

    def flush(self, *paths: bytes) -> None: ...

    # --- files of the root, and removal -------------------------------------------------------------------------------

    def put(self, path: bytes, data: bytes) -> None:
        key = self._location.prefix + path
        for _ in range(TRIES):
            try:
                over = self._bucket.head(key).token
            except FileNotFoundError:
                over = NEW
            with suppress(KeyChangedError, FileExistsError):
                self._bucket.put(key, data, over=over, digests=_digests_of(data, "sha512"))
                return
        raise self._busy(path)

    def remove(self, path: bytes) -> None:
        if self._location.file(path) is not None:
            self._bucket.delete([self._location.prefix + path])

    def remove_empty(self, path: bytes, stop: bytes, removed: list[bytes], *, strict: bool) -> None:
        """Remove the key that stands for an empty directory; then one stands for ``stop`` if that becomes empty."""
        key = self._location.prefix + path + b"/"
        if [one.key for one in self._bucket.list(key, limit=2).keys] == [key]:
            if stop:
                self.put_same(stop + b"/", b"")
            self._bucket.delete([key])
            removed.append(path)

    def withdraw(self, path: bytes) -> list[bytes]:
        with self.claimed(path):
            mark = _mark(path)
            self._bucket.put(self._location.prefix + mark, path, over=ANY)
            token = self._bucket.head(self._location.prefix + path + b"/" + _INVENTORY).token
            self._bucket.delete([self._location.prefix + path + b"/" + _INVENTORY], token=token)
            self._remove(path)
            return []

    def _remove(self, path: bytes) -> None:
        """Remove an object whose removal is noted: first what shows it and what decides about it."""
        top = self._location.prefix + path + b"/"
        noted = monotonic()
        for _is_rest, some in groupby(sorted(self._location.names(path), key=_is_removed_last), _is_removed_last):
            keys = [top + name for name in some]
            for begin in range(0, len(keys), 1000):
                self._bucket.delete(keys[begin : begin + 1000])
                if monotonic() - noted > ALIVE / 4:
                    noted = monotonic()
                    self._bucket.put(self._location.prefix + _mark(path), path, over=ANY)
        self._bucket.delete([self._location.prefix + _mark(path)])

    def _finish_removal(self, path: bytes) -> bool:
        """Finish the removal of an object by an interrupted run, and return whether there was one.

        :raises SourceError: of kind ``changed``: a run is removing it
        """
        try:
            noted = self._bucket.head(self._location.prefix + _mark(path)).modified
        except FileNotFoundError:
            return False
        is_old = self.alone or noted < self._now() - ALIVE
        if self._location.file(path + b"/" + _INVENTORY) is not None:
            # The removal was refused or killed before it began, or there is a new object since.
            with suppress(PermissionError):
                self._bucket.delete([self._location.prefix + _mark(path)] if is_old else [])
            return False
        if not is_old:
            what = f"another run is removing the object; if it was killed, repair the store ({option('alone', True)})"
            raise SourceError("changed", what)
        self._remove(path)
        return True

    def remove_leftover(self, path: bytes, objects: Sequence[bytes]) -> bool:
        """Remove a file, or the files below a directory; see :class:`pressmark.stores.ocfl.storage.Changes`.

        What is younger than a day may belong to a run that goes on; what another program wrote is not touched.
        """
        end = len(self._location.prefix + path)
        below = [one for one in self._location.listed(path) if one.key[end : end + 1] in b"/"]
        limit = self._now() - 2 * FRESH
        if not below or (not self.alone and any(one.modified > limit for one in below)):
            return False
        if not all(self._location.is_ours(one.key[len(self._location.prefix) :]) for one in below):
            return False
        keys = {one.key for one in below}
        for top in objects:
            names = self._location.names(top)
            if _INVENTORY not in names and not any(map(FIRST.fullmatch, names)):
                continue  # nothing is decided
            for name in names:
                if name == _INVENTORY or DECIDED.fullmatch(name):
                    document = read_inventory(self._location.read(top + b"/" + name)[0])
                    own = {*_contents(document), name, _sidecar_beside(name, document)}
                    if keys & {self._location.prefix + top + b"/" + one for one in own}:
                        return False
        self._bucket.delete([one.key for one in below])
        return True

    def clear(self, path: bytes) -> bool:
        key = self._location.prefix + path
        limit = float("inf") if self.alone else self._now() - 2 * FRESH
        uploads = [one for one in self._bucket.uploads(key) if one.key == key and one.started < limit]
        for one in uploads:
            self._bucket.abort(key, one.id)
        of_probes = [one.key for one in self._location.listed(path, 1) if path.startswith(STAGING) and one.key == key]
        if not of_probes or self._bucket.head(key).modified >= limit:
            return bool(uploads)
        self._bucket.delete(of_probes)
        return True


def _mark(path: bytes) -> bytes:
    """Return the path of the note that an object is being removed."""
    return REMOVALS + hashlib.sha256(path).hexdigest().encode()


def _is_removed_last(name: bytes) -> bool:
    """Return whether a file neither shows an object nor decides about it; without its first version, others do not."""
    return not (name == _INVENTORY or name.startswith(OBJECT) or FIRST.fullmatch(name))


def _contents(document: Mapping[str, Any]) -> set[bytes]:
    """Return all content paths of an inventory."""
    return {encode_fs(path) for paths in document["manifest"].values() for path in paths}


def _sidecar_beside(inventory: bytes, document: Mapping[str, Any]) -> bytes:
    """Return the path of the sidecar of an inventory."""
    return inventory.removesuffix(_INVENTORY) + encode_fs(sidecar_name(str(document["digestAlgorithm"])))


def _sidecar(document: Mapping[str, Any], data: bytes) -> tuple[bytes, bytes]:
    """Return name and content of the sidecar of an inventory."""
    algorithm = document["digestAlgorithm"]
    hasher = ALGORITHMS[algorithm].make(1)
    hasher.update(data)
    return encode_fs(sidecar_name(algorithm)), sidecar_bytes(hasher.hexdigest())


def _digests_of(data: bytes, algorithm: str) -> dict[str, str]:
    """Return the digests of a file that is not content: those of the object, so that the server keeps equal ones of all
    its files, and SHA-256, which the signature of a request contains.
    """
    digests = {}
    for name in {algorithm, "sha256"}:
        hasher = ALGORITHMS[name].make(1)
        hasher.update(data)
        digests[name] = hasher.hexdigest()
    return digests
