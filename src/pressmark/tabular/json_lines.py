"""JSON lines: one object per line, of which one key has the item."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["item_of", "parsed"]


def parsed(line: bytes) -> Any:
    """Return the value of a line.

    :raises ValueError: the line is not JSON in UTF-8
    """
    try:
        return json.loads(line.decode())
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 at byte {error.start}") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON: {error}") from None


def item_of(record: Any, key: str) -> bytes | None:
    """Return the item of a line, :data:`None` for null.

    :param record: the value of the line
    :raises ValueError: the line has no such key, or its value is not a string
    """
    if not isinstance(record, dict):
        raise ValueError("not a JSON object")
    if key not in record:
        raise ValueError(f"key {key!r} not found")
    item = record[key]
    if item is None:
        return None
    if not isinstance(item, str):
        raise ValueError(f"the value of {key!r} is not a string")
    try:
        # As in all JSON of Pressmark, a surrogate of os.fsdecode means its byte.
        return item.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise ValueError(f"unpaired surrogate at index {error.start}") from None
