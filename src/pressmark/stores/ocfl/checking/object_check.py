"""The strict check of one OCFL object: its files, and what its inventories state about them (section 3).

Sets are compared first: in an object that has exactly the files that its inventory lists, no name is wrong. In any
other, each directory is looked at. Nothing here reads a disk, because an
:class:`~pressmark.stores.ocfl.checking.object_tree.ObjectTree` has everything. The digests of content that the tree has
are compared; all other content files are returned with their digests, so that those of many objects can be read in one
run.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from pressmark.errors import quoted
from pressmark.fixity import ALGORITHMS as DIGESTS
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.reports import Problem
from pressmark.stores.ocfl.checking.checked import NOTHING, Advice, Checked, content_file
from pressmark.stores.ocfl.checking.object_names import SIDECAR, NameCheck
from pressmark.stores.ocfl.checking.object_tree import ObjectTree
from pressmark.stores.ocfl.declarations import (
    OBJECT,
    VERSIONS,
    declaration,
    later,
)
from pressmark.stores.ocfl.history_rules import history_findings, is_contained, order_finding, unset_finding
from pressmark.stores.ocfl.inventory import (
    ALGORITHMS,
    INVENTORY,
    InventoryError,
    content_directory,
    next_version,
    read_inventory,
    sidecar_bytes,
    sidecar_digest,
    sidecar_name,
    version_number,
)
from pressmark.stores.ocfl.inventory_rules import Finding, content_digests, inventory_findings
from pressmark.stores.ocfl.unfinished import find_unfinished

__all__ = ["check_object"]

_INVENTORY = encode_fs(INVENTORY)
_DECLARATIONS = {
    version: (decode_fs(name), content)
    for version, (name, content) in ((version, declaration(OBJECT, version)) for version in VERSIONS)
}
# What later inventories are compared with after a version's inventory itself is dropped.
_LASTING = ("type", "contentDirectory")


def check_object(tree: ObjectTree, root_version: str | None = None) -> Checked:
    """Check an object, and its content as far as the tree has digests.

    :param root_version: the OCFL version that the storage root declares
    """
    return _Check(tree).all(root_version)


class _Check(NameCheck):
    def __init__(self, tree: ObjectTree) -> None:
        super().__init__(tree)
        # Whether the inventory has no violation, and whether the object is exact as well.
        self._is_valid = self._is_exact = False
        # The digest of each content path in the newest manifest.
        self._contents: dict[str, str] = {}
        self._expected: dict[str, dict[str, str]] = {}
        self._fixity: dict[str, set[str]] = {}
        # The content files in each version directory; those up to the version that is checked, if they are listed.
        self._stored: dict[str, list[str]] = {}
        self._disk: Collection[str] = ()
        self._before: set[str] = set()
        # What lasts of the inventories of earlier versions, in the order of their numbers.
        self._earlier: list[tuple[str, dict[str, Any]]] = []
        # What they report on content, which is reported after all versions.
        self._unlisted: list[Problem] = []
        self._absent: dict[str, str] = {}
        self._contradictions: list[Problem] = []
        self._inventory_digest: str | None = None

    # --- problems -------------------------------------------------------------------------------------------------

    def _take(self, findings: Sequence[Finding], path: str) -> None:
        for finding in findings:
            kind, code, message, algorithm, expected, found = finding
            if kind == "inventory-advice":
                self._advice.setdefault(code, Advice(code, message))
            else:
                self._report(kind, path, message, code=code, algorithm=algorithm, expected=expected, found=found)

    # --- reading --------------------------------------------------------------------------------------------------

    # --- the object -----------------------------------------------------------------------------------------------

    def all(self, root_version: str | None) -> Checked:
        tree = self._tree
        version = next((declared for declared, (name, _) in _DECLARATIONS.items() if name in tree.files), None)
        self._version = version
        document, data = self._inventory(version)
        if document is not None and self._has_only_listed_files(document, version, root_version):
            self._is_exact = True
            versions: Collection[str] = document["versions"]
        else:
            versions = self._explain_names(document, root_version)
        if document is None or data is None:
            return Checked(tree.path, tree.inside, None, self._problems, self._advice.values(), tree.seen)
        if not self._is_exact:
            self._replace_symptoms(document, data)
            document, data = self._with_unfinished(versions, document, data)
        contradictions = self._expect(document, versions)
        if "fixity" in document:
            self._compare_sizes(document["fixity"])
        self._versions(versions, document, data)
        self._history(document)
        self._problems += contradictions
        self._compare_paths()
        self._clashes()
        files, size, unread = self._compare_digests()
        identifier = document.get("id")
        return Checked(
            tree.path,
            tree.inside,
            identifier if isinstance(identifier, str) and identifier else None,
            self._problems,
            self._advice.values(),
            tree.seen,
            files,
            size,
            unread,
            self._expected if unread else NOTHING,
            self._fixity if unread else NOTHING,
            self._inventory_digest,
        )

    def _has_only_listed_files(
        self, document: Mapping[str, Any], version: str | None, root_version: str | None
    ) -> bool:
        """Return whether the object has the files that its inventory lists, its declaration, and an inventory with its
        sidecar for itself and each version, and nothing else.
        """
        tree = self._tree
        if self._problems or version is None or tree.others or tree.linked or tree.empty:
            return False
        name, content = _DECLARATIONS[version]
        sidecar = sidecar_name(document["digestAlgorithm"])
        expected = {name, INVENTORY, sidecar}
        for one in document["versions"]:
            expected.add(f"{one}/{INVENTORY}")
            expected.add(f"{one}/{sidecar}")
        return (
            len(tree.files) == len(expected) + len(self._contents)
            and tree.files.keys() >= self._contents.keys()
            and tree.files.keys() >= expected
            and self._is_content(name, content)
            and (root_version is None or version == root_version or not later(version, root_version))
        )

    def _is_content(self, path: str, content: bytes) -> bool:
        try:
            return self._tree.content(path) == content
        except OSError:
            return False

    def _inventory(self, version: str | None) -> tuple[dict[str, Any] | None, bytes | None]:
        if INVENTORY not in self._tree.files:
            if not self._is_unread(INVENTORY):
                self._report("inventory-missing", "")
            return None, None
        data = self._read(INVENTORY)
        document = None if data is None else self._parse(data, INVENTORY)
        if data is None or document is None:
            return None, None
        self._contents = content_digests(document)
        self._take(inventory_findings(document, version, self._tree.files, self._contents), INVENTORY)
        self._is_valid = not self._problems
        self._sidecar(document, data, "")
        return document, data

    def _parse(self, data: bytes, path: str) -> dict[str, Any] | None:
        repeated: list[str] = []
        try:
            document = read_inventory(data, repeated)
        except InventoryError as error:
            self._report("inventory-malformed", path, str(error))
            return None
        for key in repeated:
            self._report("inventory-key-repeated", path, f"the key {quoted(key)} occurs more than once")
        return document

    def _sidecar(self, document: Mapping[str, Any], data: bytes, folder: str) -> None:
        """Check the sidecar of an inventory.

        :param folder: the directory of both, with a slash at its end; empty for the object's own
        """
        algorithm = document.get("digestAlgorithm")
        if algorithm not in ALGORITHMS:
            return  # reported already
        inventory, name = f"{folder}{INVENTORY}", sidecar_name(algorithm)
        if f"{folder}{name}" not in self._tree.files:
            if not self._is_unread(f"{folder}{name}"):
                self._report("sidecar-missing", inventory, f"{name} is missing")
            return
        content = self._read(f"{folder}{name}")
        if content is None:
            return
        found = self._digest(inventory, algorithm, data)
        if not folder:
            self._inventory_digest = found
        if content == sidecar_bytes(found):
            return
        expected = sidecar_digest(content)
        if expected is None:
            what = f"the sidecar is not a digest, white space and {INVENTORY}"
            self._report("sidecar-malformed", f"{folder}{name}", what)
            return
        if found == expected:
            return
        unfinished = None if folder else find_unfinished(self._tree, self._tree.path, document, data)
        if unfinished is not None and unfinished.is_listed:
            self._problems.append(unfinished.problem(self._tree.path))
        else:
            what = f"the {algorithm} digest of the inventory differs from its sidecar"
            self._report("sidecar-mismatch", inventory, what, algorithm=algorithm, expected=expected, found=found)

    def _digest(self, path: str, algorithm: str, data: bytes) -> str:
        column = self._tree.digests(algorithm)
        known = None if column is None else column[self._tree.files[path]]
        return known or hashlib.new(algorithm, data, usedforsecurity=False).hexdigest()

    # --- versions -------------------------------------------------------------------------------------------------

    def _with_unfinished(
        self, versions: Collection[str], document: dict[str, Any], data: bytes
    ) -> tuple[dict[str, Any], bytes]:
        """Report a complete version that the inventory does not list yet.

        :return: the inventory that describes the whole object, and its bytes
        """
        name = next_version(str(document.get("head")))
        if name is None or name not in versions:
            return document, data
        unfinished = find_unfinished(self._tree, self._tree.path, document, data)
        if unfinished is None or unfinished.is_listed:
            return document, data
        self._problems.append(unfinished.problem(self._tree.path))
        self._is_valid = False
        return unfinished.document, unfinished.data

    def _replace_symptoms(self, document: dict[str, Any], data: bytes) -> None:
        """Report a version in another form whose publishing was interrupted, instead of the names that are left."""
        old = {problem for problem in self._problems if self._is_symptom(problem)}
        unfinished = find_unfinished(self._tree, self._tree.path, document, data) if old else None
        if unfinished is not None and unfinished.is_listed and unfinished.declared:
            others = [problem for problem in self._problems if problem not in old]
            self._problems = [*others, unfinished.problem(self._tree.path)]

    def _is_symptom(self, problem: Problem) -> bool:
        """Return whether a problem of the object's root can be due to an interrupted change of its form."""
        is_sidecar = SIDECAR.fullmatch(os.path.basename(encode_fs(problem.path))) is not None
        return (
            problem.kind in ("sidecar-missing", "declaration-several", "version-unfinished")
            or (problem.kind == "inventory-value" and problem.code == "E038")
            or (problem.kind == "object-extra" and is_sidecar)
        )

    def _versions(self, on_disk: Collection[str], document: dict[str, Any], data: bytes) -> None:
        """Check the version directories."""
        blocks = document.get("versions")
        named: Collection[str] = blocks if isinstance(blocks, dict) else ()
        for name in () if self._is_exact else sorted(set(named).difference(on_disk), key=encode_fs):
            if version_number(name) is not None:
                what = f"the directory of the version {quoted(name)} is missing"
                self._report("version-absent", name, what, code="E046")
        for name in sorted(on_disk, key=_in_order) if len(on_disk) > 1 else on_disk:
            if name not in named:
                self._report("version-extra", name, "the inventory does not list this version")
            if self._stored:
                self._before.update([path for path in self._stored[name] if path in self._contents])
            if self._is_exact:
                own = self._version_inventory(name, document, data)
                if own is not None and own.get("digestAlgorithm") != document["digestAlgorithm"]:
                    self._sidecars(name, self._scan(name), own)
            else:
                self._explain_version(name, document, data)

    def _explain_version(self, name: str, document: dict[str, Any], data: bytes) -> None:
        """Look at everything in the directory of a version."""
        folder = content_directory(document)
        entries = self._scan(name)
        has_content = False
        for path, entry in entries:
            if entry.kind == "directory":
                if path == f"{name}/{folder}":
                    has_content = True
                else:
                    self._report("version-directory", path)
                    self._undescribed(path)
            elif entry.name != _INVENTORY and SIDECAR.fullmatch(entry.name) is None:
                self._report("version-file", path)
        self._sidecars(name, entries, self._version_inventory(name, document, data))
        if has_content and not self._content(f"{name}/{folder}"):
            self._advice.setdefault("W003", Advice("W003", f"the content directory of {name} is empty"))

    def _version_inventory(self, name: str, document: dict[str, Any], data: bytes) -> dict[str, Any] | None:
        """Check the inventory in a version's directory, and return it if it can be read."""
        path = f"{name}/{INVENTORY}"
        if path not in self._tree.files:
            if not self._is_unread(path):
                self._advice.setdefault("W010", Advice("W010", f"{name} has no inventory"))
            return None
        copy = self._read(path)
        if copy is None:
            return None
        is_newest = document.get("head") == name
        if is_newest and copy == data:
            self._sidecar(document, copy, f"{name}/")
            return document
        if is_newest:
            self._report("inventory-differs", path)
        own = self._parse(copy, path)
        if own is None:
            return None
        is_usual = not is_newest and self._is_valid and is_contained(name, own, document) and self._has_stored(own)
        if not is_usual:
            self._take(inventory_findings(own, None, self._tree.files), path)
        self._sidecar(own, copy, f"{name}/")
        if not is_newest:
            if not is_usual:
                self._take(history_findings(name, own, document), path)
                self._compare_earlier(name, own)
            self._earlier.append((name, {key: own[key] for key in _LASTING if key in own}))
        return own

    # --- several inventories --------------------------------------------------------------------------------------

    def _history(self, newest: dict[str, Any]) -> None:
        """Compare each inventory of the object with the next one (sections 3.3.1 and 3.7.1)."""
        if not self._earlier:
            return
        inventories = [*self._earlier, ("", newest)]
        for (name, earlier), (_name, following) in pairwise(inventories):
            finding = order_finding(name, earlier, following)
            if finding is not None:
                self._take([finding], f"{name}/{INVENTORY}")
        first, inventory = self._earlier[0]
        finding = unset_finding(first, inventory, [document for _name, document in inventories])
        if finding is not None:
            self._take([finding], f"{first}/{INVENTORY}")

    def _has_stored(self, inventory: Mapping[str, Any]) -> bool:
        """Return whether the content of the versions so far is what an inventory lists."""
        return self._before == {path for paths in inventory["manifest"].values() for path in paths}

    def _compare_earlier(self, name: str, earlier: Mapping[str, Any]) -> None:
        """Compare the manifest of an earlier version with the content up to that version (section 3.3.1), and its
        digests with those that are known.
        """
        path = f"{name}/{INVENTORY}"
        if isinstance(earlier.get("manifest"), dict):
            own = _all_content_digests(earlier).keys()
            if unlisted := sorted(self._before - own, key=encode_fs):
                more = f" and {len(unlisted) - 1} more" if len(unlisted) > 1 else ""
                what = f"the manifest of {name} lacks the content file {quoted(unlisted[0])}{more}"
                self._unlisted.append(self._problem("history-differs", path, what, code="E023"))
            for content in own - self._contents.keys():
                if content not in self._disk:
                    self._absent.setdefault(content, name)
        for algorithm, content, digest, other, is_manifest in self._merge(earlier):
            what = f"the {algorithm} digest of {quoted(content)} differs from another inventory"
            code = "E092" if is_manifest else "E093"
            self._contradictions.append(
                self._problem("history-differs", path, what, code=code, expected=other, found=digest)
            )

    # --- content --------------------------------------------------------------------------------------------------

    def _expect(self, document: Mapping[str, Any], versions: Collection[str]) -> list[Problem]:
        """Collect the content and the digests that the newest inventory lists; return its contradictions."""
        if not self._is_exact:
            self._contents = _all_content_digests(document)
        self._disk = self._contents
        if not self._is_exact or len(versions) > 1:
            self._group(content_directory(document), versions)
        if self._is_exact and "fixity" not in document:
            self._expected = {document["digestAlgorithm"]: self._contents}
            return []
        return [
            self._problem(
                "fixity-mismatch",
                path,
                f"the fixity block contradicts another {algorithm} digest of this file",
                algorithm=algorithm,
                expected=other,
                found=digest,
            )
            for algorithm, path, digest, other, is_manifest in self._merge(document)
            if not is_manifest
        ]

    def _group(self, folder: str, versions: Collection[str]) -> None:
        """Collect the content files on disk by version."""
        self._stored = {name: [] for name in versions}
        prefix = f"{folder}/"
        for path in self._contents if self._is_exact else self._tree.files:
            name, _, rest = path.partition("/")
            if name in self._stored and rest.startswith(prefix) and "/" not in folder:
                self._stored[name].append(path)
        if not self._is_exact:
            self._disk = {path for paths in self._stored.values() for path in paths}

    def _merge(self, document: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str, bool]]:
        """Add the digests of an inventory to those that are known.

        :return: algorithm, path, digest and known digest where they differ, and whether it is in the manifest
        """
        for algorithm, block, is_manifest in _blocks(document):
            known = self._expected.get(algorithm)
            if known is None or known is self._contents:
                known = self._expected[algorithm] = dict(known or ())
            fixity = self._fixity.setdefault(algorithm, set())
            for path, digest in _pairs(block):
                other = known.get(path)
                if other is None:
                    known[path] = digest
                    if not is_manifest:
                        fixity.add(path)
                    continue
                if is_manifest:
                    fixity.discard(path)
                if other.lower() != digest.lower():
                    yield algorithm, path, digest, other, is_manifest

    def _compare_paths(self) -> None:
        """Compare the newest manifest with the files, and report the findings of earlier inventories on them."""
        if not self._is_exact:
            for path in sorted(self._contents.keys() - self._disk, key=encode_fs):
                if not self._is_unread(path):
                    self._report("content-missing", path)
            for path in sorted(set(self._disk) - self._contents.keys(), key=encode_fs):
                self._report("content-extra", path)
        if self._earlier:
            self._problems += self._unlisted
            for path, name in sorted(self._absent.items(), key=lambda item: encode_fs(item[0])):
                if not self._is_unread(path):
                    self._report("content-missing", path, f"missing; listed in the manifest of {name}")
            self._problems += self._contradictions

    def _compare_sizes(self, fixity: Any) -> None:
        """Compare the sizes in a fixity block, an algorithm of extension 0009, with those of the files."""
        block = fixity.get("size") if isinstance(fixity, dict) else None
        for path, size in _pairs(block) if isinstance(block, dict) else ():
            number = self._tree.files.get(path) if path in self._contents else None
            if number is not None and size != (found := str(self._tree.sizes[number])):
                what = "size differs from that in the fixity block"
                self._report("fixity-mismatch", path, what, algorithm="size", expected=size, found=found)

    def _compare_digests(self) -> tuple[int, int, Collection[str]]:
        """Compare the content with the inventories as far as its digests are known.

        :return: the number of content files that have digests, the size of those that were compared, and the others
        """
        tree, files = self._tree, self._tree.files
        there: Collection[str] = self._contents
        if self._is_exact and len(self._expected) == 1:
            [(name, block)] = self._expected.items()
            column = tree.digests(name)
            numbers = [files[path] for path in block]
            known = [column[number] for number in numbers] if column is not None else []
            if known == [*block.values()]:
                sizes = tree.sizes
                return len(block), sum([sizes[number] for number in numbers]), ()
            if not any(known):
                return len(block), 0, block
        if not self._is_exact:
            there = {path for path in self._contents if path in self._disk}
            there = {path for block in self._expected.values() for path in block if path in there}
        wrong: set[str] = set()
        unread: set[str] = set()
        for algorithm, block in self._expected.items():
            column = tree.digests(algorithm)
            if column is None:
                return len(there), 0, there
            for path in [path for path, digest in block.items() if path in there and column[files[path]] != digest]:
                (unread if column[files[path]] is None else wrong).add(path)
        for path in sorted(wrong - unread, key=encode_fs):
            file = content_file(path, self._expected, self._fixity)
            found = {algorithm: (tree.digests(algorithm) or ())[files[path]] for algorithm in file.digests}
            self._problems += file.problems(tree.path, found)
        sizes = tree.sizes
        return len(there), sum([sizes[files[path]] for path in there if path not in unread]), unread


def _in_order(name: str) -> tuple[int, str]:
    """Return the sort key of a version directory: its number."""
    return int(name[1:]), name


def _blocks(document: Mapping[str, Any]) -> list[tuple[str, dict[str, Any], bool]]:
    """Return manifest and fixity blocks by algorithm, as far as the digests can be computed, and which is the
    manifest.
    """
    blocks = []
    algorithm, manifest, fixity = (document.get(key) for key in ("digestAlgorithm", "manifest", "fixity"))
    if isinstance(manifest, dict) and algorithm in ALGORITHMS:
        blocks.append((str(algorithm), manifest, True))
    if isinstance(fixity, dict):
        known = ((name, block) for name, block in fixity.items() if name in DIGESTS)
        blocks += [(name, block, False) for name, block in known if isinstance(block, dict)]
    return blocks


def _pairs(block: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield path and digest of each file in a manifest or fixity block."""
    for digest, paths in block.items():
        for path in paths if isinstance(paths, list) else ():
            if isinstance(path, str):
                yield path, digest


def _all_content_digests(document: Mapping[str, Any]) -> dict[str, str]:
    """Return the digest of each content path in a manifest that may be malformed."""
    manifest = document.get("manifest")
    return dict(_pairs(manifest)) if isinstance(manifest, dict) else {}
