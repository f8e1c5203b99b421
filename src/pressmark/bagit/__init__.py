"""Create, validate, update, complete and pack bags: the BagIt File Packaging Format 1.0 (draft-kunze-bagit-17).

>>> import pressmark
>>> info = pressmark.bagit.BagInfo([("Contact-Name", "Jane Doe")])
>>> info.to_bytes()
b'Contact-Name: Jane Doe\\n'
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from pressmark.bagit.problems import KINDS

if TYPE_CHECKING:
    from pressmark.bagit import archive
    from pressmark.bagit.bag import Bag, create, open, update
    from pressmark.bagit.bag_info import BagInfo
    from pressmark.bagit.fetch.complete import complete
    from pressmark.bagit.job import ValidateBags
    from pressmark.bagit.packing.pack import pack
    from pressmark.bagit.packing.unpack import unpack
    from pressmark.bagit.problems import BagReport
    from pressmark.bagit.profile.profile import Profile
    from pressmark.bagit.validation.validate import validate

__all__ = [
    "KINDS",
    "Bag",
    "BagInfo",
    "BagReport",
    "Profile",
    "ValidateBags",
    "archive",
    "complete",
    "create",
    "open",
    "pack",
    "unpack",
    "update",
    "validate",
]

# The module of each name, imported on first use: validating does not load what creating needs.
_MODULES = {
    "Bag": "bag",
    "BagInfo": "bag_info",
    "BagReport": "problems",
    "Profile": "profile.profile",
    "ValidateBags": "job",
    "complete": "fetch.complete",
    "create": "bag",
    "open": "bag",
    "pack": "packing.pack",
    "unpack": "packing.unpack",
    "update": "bag",
    "validate": "validation.validate",
}


def __getattr__(name: str) -> Any:
    """Import a public name of the package on first use."""
    if name in _MODULES:
        found = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
        globals()[name] = found
        return found
    if name == "archive":
        return importlib.import_module(f"{__name__}.archive")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
