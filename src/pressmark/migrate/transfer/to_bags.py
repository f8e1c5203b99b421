"""Objects of any store into a folder of bags.

An object that is a bag already, wherever it lies, arrives as that bag, byte for byte, if it is valid and the folder
would find it by the identifier. Any other becomes the payload of a new bag, which says so: see
:data:`~pressmark.migrate.transfer.reading.WRAPPED`.
"""

from __future__ import annotations

import os
import stat

from pressmark.bagit.bag_tags import BagTags
from pressmark.bagit.validation.validate import validate
from pressmark.errors import ObjectError
from pressmark.fixity import hash_file
from pressmark.fs.names import decode_fs
from pressmark.migrate.object_digest import Read
from pressmark.migrate.transfer.direction import Copied, Way, compare, names, note_left_out, place_of
from pressmark.migrate.transfer.failures import TransferError, status_of_problem
from pressmark.migrate.transfer.in_flight import InFlight
from pressmark.migrate.transfer.reading import WRAPPED, Content, check_unchanged, is_bag
from pressmark.stores.bags.bag_folder import BagFolder

__all__ = ["IntoBags"]


class IntoBags(Way):
    """Makes bags, or takes those that are."""

    destination: BagFolder

    def begin(self, item: InFlight, replace: bool = False) -> bool:
        content = self.content(item.entry)
        self.note_time(item, content)
        whole = self.options.source_kind == "bags"
        if whole or is_bag(content):
            try:
                self._take(item, content, replace)
                return True
            except ObjectError as error:
                if whole or error.kind != "improper":
                    raise
        self._wrap(item, content, replace)
        return True

    def _take(self, item: InFlight, content: Content, replace: bool) -> None:
        """Have the bag itself arrive."""
        entry = item.entry
        copied = Copied(item, content)
        rename = self.options.renames() and not replace
        here = place_of(self.source, entry)
        at = here if self.options.source_kind == "bags" else content.top
        mode = "rename" if rename else self.mode

        def check(bag: bytes) -> None:
            if stat.S_ISDIR(os.stat(bag).st_mode):
                # The bytes were compared while they were copied.
                report = validate(bag, "complete" if content.known else "full", threads=1)
                if not report.ok:
                    wrong = report.errors[0]
                    what = f"{decode_fs(wrong.path)}: {wrong.message}" if wrong.path else wrong.message
                    raise TransferError(status_of_problem(wrong.kind), wrong.kind, f"the bag is not valid: {what}")
            if not rename:
                check_unchanged(content)

        self.destination.adopt(
            entry.id,
            names(content) if at is None else at,
            mode=mode,
            replace=replace,
            check=check,
            algorithms=copied.algorithms,
            on_file=copied.file,
            on_event=copied.event,
        )
        if rename:
            item.files, item.bytes, item.mode = len(content.files), entry.bytes, "rename"
        else:
            copied.finish()
            note_left_out(item, content, self.options.to)
            if item.mode == "hardlink":
                self.note_time(item, content)

    def _wrap(self, item: InFlight, content: Content, replace: bool) -> None:
        """Make a bag around the object."""
        kind = self.options.source_kind
        encapsulation = item.entry.encapsulation or ""
        said = f"{kind} {encapsulation}".rstrip()
        copied = Copied(item, content)
        found: list[Read] = []

        def check(bag: bytes) -> None:
            found.append(_payload(bag, copied.algorithms))
            compare(found[0], content.known)
            check_unchanged(content)

        self.destination.put(
            item.entry.id,
            names(content) if content.top is None else content.top,
            replace=replace,
            mode=self.mode,
            links=self.options.links if content.top is not None else "follow",  # type: ignore[arg-type]
            info={WRAPPED: said} if encapsulation.isprintable() and encapsulation == encapsulation.strip() else {},
            check=check,
            on_event=copied.event,
        )
        (read,) = found
        item.files = len(read.digests)
        item.bytes = sum(os.stat(path).st_size for _name, path in content.files)
        item.digest = read.whole
        if item.mode == "hardlink":
            self.note_time(item, content)  # a second name is a change of status
        note_left_out(item, content, self.options.to)


def _payload(path: bytes, algorithms: tuple[str, ...]) -> Read:
    """Return the digests of a new bag's payload, from its manifests as far as they have them."""
    bag = BagTags.open(path)
    digests: dict[str, dict[str, str]] = {}
    for listed in bag.payload.entries():
        found = dict(listed.digests)
        missing = tuple(name for name in algorithms if name not in found)
        if missing:
            found.update(hash_file(os.path.join(path, listed.path), missing, threads=1))
        digests[decode_fs(listed.path).removeprefix("data/")] = found
    bag.payload.close()
    return Read(digests)
