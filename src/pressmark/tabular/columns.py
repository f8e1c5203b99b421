"""The column of a table whose items are mapped, and the column of the results."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from pressmark.errors import FormatError, quoted
from pressmark.option_names import option

__all__ = ["Column", "ItemMapper", "index_of"]


class Column(NamedTuple):
    """The column to map, and the name of the column of the results.

    :ivar name: its name, or its number from 1; or names, of which the first that exists is meant
    :ivar header: whether the first row of CSV and TSV has the column names; :data:`None`: yes, unless a number needs a
        decision
    :ivar result: the name of the new column; empty without a new column
    :ivar delimiter: the separator of CSV; :data:`None` for a comma
    """

    name: str | int | tuple[str, ...]
    header: bool | None = None
    result: str = ""
    delimiter: str | None = None


class ItemMapper(Protocol):
    """Maps the items of a block; a failed item has no result, but a reason.

    :ivar result: what a result is, for messages
    """

    result: str

    def column(self, items: Any) -> tuple[Any, dict[int, str]]:
        """Return the ``ByteColumn`` of results, empty for failed items, and their reasons by index."""

    def texts(self, items: list[bytes]) -> tuple[list[bytes], dict[int, str]]:
        """Return the results, empty for failed items, and their reasons by index."""

    def array(self, array: Any) -> Any:
        """Return the results of an Arrow array; null for null and for failed items."""

    def reason(self, item: bytes | str) -> str:
        """Return the reason why an item failed."""


def index_of(column: Column, names: list[str], file: str) -> int:
    """Return the index of the column among ``names``, the columns of ``file``.

    :raises FormatError: it does not exist, or is not unique; or the new column exists
    """
    if isinstance(column.name, int):
        if column.name > len(names):
            raise FormatError(file, f"column {column.name} not found; columns: {_listed(names)}")
        index = column.name - 1
    else:
        wanted = (column.name,) if isinstance(column.name, str) else column.name
        found = next((name for name in wanted if name in names), None)
        if found is None:
            missing = quoted(wanted[0]) if len(wanted) == 1 else f"{', '.join(wanted[:-1])} or {wanted[-1]}"
            advice = ""
            if len(names) == 1 and {*";\t"}.intersection(names[0]):
                advice = f"; specify the separator ({option('delimiter')})"
            raise FormatError(file, f"column {missing} not found; columns: {_listed(names)}{advice}")
        if isinstance(column.name, str) and names.count(found) > 1:
            raise FormatError(file, f"column {quoted(found)} is not unique; use its number")
        index = names.index(found)
    if column.result and column.result in names:
        what = f"column {quoted(column.result)} already exists"
        raise FormatError(file, f"{what}; choose another name ({option('result')})")
    return index


def _listed(names: list[str]) -> str:
    return ", ".join(names[:20]) + (f" … ({len(names)} in all)" if len(names) > 20 else "")
