"""The result of checking one object."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Set
from types import MappingProxyType
from typing import Any, NamedTuple

from pressmark.fs.names import encode_fs
from pressmark.reports import Problem
from pressmark.stores.problems import problem

__all__ = ["NOTHING", "Advice", "Checked", "ContentFile", "Expected", "content_file"]

#: Digests by algorithm and path.
Expected = Mapping[str, Mapping[str, str]]
NOTHING: Mapping[str, Any] = MappingProxyType({})


class ContentFile(NamedTuple):
    """A content file that exists.

    :ivar path: relative to the object's root
    :ivar digests: the expected digest for each algorithm, as in the inventory
    :ivar fixity: the algorithms whose digests are only in fixity blocks
    """

    path: bytes
    digests: dict[str, str]
    fixity: Collection[str] = ()

    def problems(self, path: bytes, found: Mapping[str, str | None]) -> Iterator[Problem]:
        """Yield a problem for each digest that the file does not have.

        :param path: the object
        :param found: the digests of the file; of one that was not read, some of them
        """
        for algorithm, expected in self.digests.items():
            if found.get(algorithm, expected.lower()) != expected.lower():
                kind = "fixity-mismatch" if algorithm in self.fixity else "content-mismatch"
                yield problem(
                    kind,
                    os.path.join(path, self.path),
                    f"{algorithm} digest mismatch",
                    algorithm=algorithm,
                    expected=expected.lower(),
                    found=found[algorithm],
                )


class Advice(NamedTuple):
    """A recommendation that an object does not follow: usually all objects of a root, or none."""

    code: str
    message: str
    kind: str = "inventory-advice"


class Checked(NamedTuple):
    """The result of checking one object.

    :ivar path: the object
    :ivar inside: the object that contains it; :data:`None` for most
    :ivar identifier: identifier in its inventory; :data:`None` without an inventory
    :ivar problems: their paths are relative to the store's root
    :ivar advice: each code once
    :ivar seen: the status of the inventory before the check; :data:`None` without one, or in a batch
    :ivar files: number of content files that have digests
    :ivar bytes: the size of those whose digests were compared
    :ivar unread: the paths of the others, in no order
    :ivar expected: the digests of content files, by algorithm and path, as in the inventories
    :ivar fixity: the paths whose digest is only in fixity blocks, by algorithm
    :ivar digest: of the inventory, as its sidecar should have it; :data:`None` without both
    :ivar measured: what else the caller of the check wants to know; see :class:`~pressmark.stores.ocfl.check.Check`
    """

    path: bytes
    inside: bytes | None
    identifier: str | None
    problems: list[Problem]
    advice: Collection[Advice]
    seen: os.stat_result | None
    files: int = 0
    bytes: int = 0
    unread: Collection[str] = ()
    expected: Expected = NOTHING
    fixity: Mapping[str, Set[str]] = NOTHING
    digest: str | None = None
    measured: Any = None

    def unread_files(self) -> Iterator[ContentFile]:
        """Yield the content files that were not read, in the order of their paths."""
        for path in sorted(self.unread, key=encode_fs):
            yield content_file(path, self.expected, self.fixity)


def content_file(path: str, expected: Expected, fixity: Mapping[str, Set[str]]) -> ContentFile:
    """Return a content file with its digests; the arguments are those of :class:`Checked`."""
    digests = {algorithm: block[path] for algorithm, block in expected.items() if path in block}
    return ContentFile(encode_fs(path), digests, [algorithm for algorithm, paths in fixity.items() if path in paths])
