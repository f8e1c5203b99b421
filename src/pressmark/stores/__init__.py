"""Stores: Pairtrees, Vitro stores, OCFL storage roots and folders of bags, with a common interface.

>>> store = open("/data/pairtree")                  # doctest: +SKIP
>>> for record in store.objects():                  # doctest: +SKIP
...     record.id, record.path, record.proper
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from pressmark.stores.problems import KINDS as PROBLEM_KINDS
from pressmark.stores.registry import CLASSES, KINDS, create, kind_of, open, store_class
from pressmark.stores.store import CheckProgress, CopyMode, ObjectSource, Path, RepairStep, Store, StoreObject
from pressmark.stores.stored_object import StoredObject

if TYPE_CHECKING:
    from pressmark.stores.bags.bag_folder import BagFolder
    from pressmark.stores.ingest import Ingest, IngestError, IngestResult
    from pressmark.stores.job import CheckStore
    from pressmark.stores.ocfl.changes import Changes
    from pressmark.stores.ocfl.history import VersionInfo
    from pressmark.stores.ocfl.root import OcflRoot
    from pressmark.stores.pairtree.pairtree_store import PairtreeStore
    from pressmark.stores.vitro.vitro_store import VitroStore

__all__ = [
    "KINDS",
    "PROBLEM_KINDS",
    "BagFolder",
    "Changes",
    "CheckProgress",
    "CheckStore",
    "CopyMode",
    "Ingest",
    "IngestError",
    "IngestResult",
    "ObjectSource",
    "OcflRoot",
    "PairtreeStore",
    "Path",
    "RepairStep",
    "Store",
    "StoreObject",
    "StoredObject",
    "VersionInfo",
    "VitroStore",
    "create",
    "kind_of",
    "open",
    "store_class",
]

# The module of each name, imported when the name is first used.
_MODULES = {name: module for module, name in CLASSES.values()} | {
    "Changes": "pressmark.stores.ocfl.changes",
    "CheckStore": "pressmark.stores.job",
    "Ingest": "pressmark.stores.ingest",
    "IngestError": "pressmark.stores.ingest",
    "IngestResult": "pressmark.stores.ingest",
    "VersionInfo": "pressmark.stores.ocfl.history",
}


def __getattr__(name: str) -> Any:
    """Import a class when it is first used."""
    if name in _MODULES:
        return getattr(importlib.import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
