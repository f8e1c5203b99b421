"""The setting of a folder of bags: where the identifiers of its bags are, and the layout of new ones."""

from __future__ import annotations

import json
import os

from pressmark.buckets.address import find_key, is_address
from pressmark.buckets.remote_file import RemoteFile
from pressmark.errors import LayoutConfigError, StoreError
from pressmark.fs.atomic import replace_file
from pressmark.fs.beneath import read_regular
from pressmark.layouts import Layout, layout_from_config
from pressmark.option_names import option

__all__ = ["CONFIG", "UNFINISHED", "check_identifiers", "read_config", "write_config"]

CONFIG = b".pressmark-bags.json"
_PART = CONFIG + b".new"
#: The file that an interrupted creation may leave in the folder.
UNFINISHED = frozenset({_PART})
IDENTIFIERS = ("external", "name", "layout")
_LIMIT = 1 << 20


def check_identifiers(base: bytes, identifiers: str, layout: Layout | None) -> None:
    """Check the source of identifiers.

    :raises StoreError: it requires a layout, or does not allow one
    :raises ValueError: it is unknown
    """
    if identifiers not in IDENTIFIERS:
        raise ValueError(f"identifiers={identifiers!r}: expected {', '.join(IDENTIFIERS)}")
    if (identifiers == "layout") != (layout is not None):
        what = "required; specify a layout" if layout is None else f"{layout.name} not allowed; omit the layout"
        raise StoreError(base, f"identifiers from {identifiers!r}: layout {what}")


def read_config(base: bytes) -> tuple[str, Layout | None]:
    """Return the folder's setting for identifiers, or the default.

    :raises StoreError: it cannot be read, or is malformed
    """
    path = os.path.join(base, CONFIG)
    try:
        config = json.loads(_read_key(path) if is_address(base) else read_regular(path, _LIMIT))
        identifiers, layout = config["identifiers"], config["layout"]
        if identifiers not in IDENTIFIERS or (identifiers == "layout") != (layout is not None):
            raise ValueError("unknown source of identifiers")
        return identifiers, layout_from_config(layout) if layout is not None else None
    except FileNotFoundError:
        return "external", None
    except OSError as error:
        raise StoreError(path, error.strerror or str(error)) from error
    except LayoutConfigError as error:
        raise StoreError(path, f"{error}; correct the file") from None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        how = f"correct the file, or specify the source of identifiers ({option('identifiers')})"
        raise StoreError(path, f"malformed ({error}); {how}") from None


def _read_key(address: bytes) -> bytes:
    bucket, key = find_key(address)
    with RemoteFile(bucket, key, _LIMIT) as file:
        return file.readall()


def write_config(base: bytes, identifiers: str, layout: Layout | None) -> None:
    """Write the folder's setting.

    :raises OSError: it cannot be written
    """
    config = {"identifiers": identifiers, "layout": layout.config() if layout is not None else None}
    path = os.path.join(base, CONFIG)
    replace_file(path, json.dumps(config, indent=2).encode() + b"\n", part=os.path.join(base, _PART))
