"""The options of updating a bag, validated."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from pressmark.bagit.bag_info import element_values
from pressmark.bagit.bag_tags import BagTags
from pressmark.bagit.manifest_format import bag_name, official_name
from pressmark.bagit.writing.options import Elements, checked_elements, labelled_values
from pressmark.errors import BagError
from pressmark.fixity.algorithms import algorithm_names

__all__ = ["ACCEPTED", "UpdateOptions"]

# Changes that the caller can accept.
ACCEPTED = ("added", "removed", "changed", "tag-files", "no-manifest")


class UpdateOptions(NamedTuple):
    """The options of :func:`pressmark.bagit.update`."""

    algorithms: tuple[str, ...] | None
    add: tuple[str, ...]
    drop: tuple[str, ...]
    info: list[tuple[str, list[str]]]
    payload: bool
    accept: tuple[str, ...]
    rewrite: bool
    date: datetime.date | None

    @classmethod
    def from_arguments(
        cls,
        algorithms: Iterable[str] | str | None,
        add: Iterable[str] | str,
        drop: Iterable[str] | str,
        info: Elements | Mapping[str, str | Iterable[str] | None] | None,
        payload: bool,
        accept: Collection[str],
        rewrite: bool,
        date: datetime.date | None,
    ) -> UpdateOptions:
        """Validate the arguments of :func:`pressmark.bagit.update`, and raise its errors."""
        accepted = (accept,) if isinstance(accept, str) else tuple(accept)
        for word in accepted:
            if word not in ACCEPTED:
                raise ValueError(f"accept={word!r}: expected {', '.join(ACCEPTED)}")
        dropped = [drop] if isinstance(drop, str) else list(drop)
        new = algorithm_names(add) if add else ()
        wanted = None if algorithms is None else algorithm_names(algorithms)
        if not payload and (new or accepted or rewrite):
            raise ValueError("payload=False: not supported with these options, which read the payload")
        return cls(
            wanted,
            new,
            # Unknown algorithms can be dropped.
            tuple(official_name(name) or bag_name(name) for name in dropped),
            _changes(info),
            payload,
            tuple(sorted(accepted)),
            rewrite,
            date,
        )

    def request(self) -> dict[str, object]:
        """Return a JSON-serializable record of the options, from which a later run recognizes the same request."""
        return {
            "command": "update",
            "algorithms": None if self.algorithms is None else list(self.algorithms),
            "add": list(self.add),
            "drop": list(self.drop),
            "info": [[label, values] for label, values in self.info],
            "payload": self.payload,
            "accept": list(self.accept),
            "rewrite": self.rewrite,
            "date": None if self.date is None else self.date.isoformat(),
        }

    def target(self, bag: BagTags) -> tuple[str, ...]:
        """Return the algorithms that the bag will have.

        :raises BagError: no algorithm would remain
        :raises ValueError: with ``payload=False``, an algorithm would be added
        """
        begin = bag.algorithms if self.algorithms is None else self.algorithms
        names = tuple(name for name in dict.fromkeys((*begin, *self.add)) if name not in self.drop)
        if not names and not bag.manifests:
            raise BagError(bag.path, "no payload manifest found; restore it from another copy")
        if not names:
            raise BagError(bag.path, "no payload manifest would remain; keep one, or add another")
        if not self.payload and set(names) - set(bag.algorithms):
            raise ValueError("payload=False: adding an algorithm reads the payload")
        return names


def _changes(info: Elements | Mapping[str, str | Iterable[str] | None] | None) -> list[tuple[str, list[str]]]:
    """Return the new values of each label."""
    if info is None:
        return []
    changes: dict[str, list[str]] = {}
    for label, value in labelled_values(info):
        values = changes.setdefault(label, [])
        if value is not None:
            values += element_values(label, value)
    checked_elements([(label, value) for label, values in changes.items() for value in values])
    return list(changes.items())
