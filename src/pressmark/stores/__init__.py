"""Stores: Pairtrees, Vitro stores, OCFL storage roots and folders of bags, with a common interface.

>>> from pressmark import stores
>>> store = stores.create("pairtree", "pairtree")
>>> store.put("ark:/13030/xt12t3", {"page.txt": b"page 1"}).path
'pairtree_root/ar/k+/=1/30/30/=x/t1/2t/3'
>>> store = stores.open("pairtree")
>>> [(record.id, record.proper) for record in store.objects()]
[('ark:/13030/xt12t3', True)]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pressmark.lazy import face
from pressmark.stores.problems import KINDS as PROBLEM_KINDS  # noqa: F401 - public

if TYPE_CHECKING:
    from pressmark.stores.audits.audit import AuditReport as AuditReport, audit as audit
    from pressmark.stores.audits.audit_state import Coverage as Coverage
    from pressmark.stores.bags.bag_folder import BagFolder as BagFolder
    from pressmark.stores.comparing.object_pairs import Difference as Difference
    from pressmark.stores.comparing.store_comparison import StoreComparison as StoreComparison, compare as compare
    from pressmark.stores.ingest import Ingest as Ingest, IngestError as IngestError, IngestResult as IngestResult
    from pressmark.stores.job import CheckStore as CheckStore, PutObjects as PutObjects
    from pressmark.stores.objects import (
        CopyMode as CopyMode,
        ObjectSource as ObjectSource,
        Path as Path,
        RepairStep as RepairStep,
        StoreObject as StoreObject,
    )
    from pressmark.stores.ocfl.checking.lone_object import check_object as check_object
    from pressmark.stores.ocfl.differences import Changes as Changes
    from pressmark.stores.ocfl.history import VersionInfo as VersionInfo
    from pressmark.stores.ocfl.root import OcflRoot as OcflRoot
    from pressmark.stores.pairtree.pairtree_store import PairtreeStore as PairtreeStore
    from pressmark.stores.registry import (
        KINDS as KINDS,
        create as create,
        kind_of as kind_of,
        open as open,
    )
    from pressmark.stores.repairing.mending import mend as mend
    from pressmark.stores.reporting.store_report import (
        ProblemCount as ProblemCount,
        StoreReport as StoreReport,
        report as report,
    )
    from pressmark.stores.store import Store as Store
    from pressmark.stores.stored_object import StoredObject as StoredObject
    from pressmark.stores.vitro.vitro_store import VitroStore as VitroStore

__all__, __getattr__, __dir__ = face(
    __name__,
    {
        ".audits.audit": "AuditReport audit",
        ".audits.audit_state": "Coverage",
        ".bags.bag_folder": "BagFolder",
        ".comparing.object_pairs": "Difference",
        ".comparing.store_comparison": "StoreComparison compare",
        ".ingest": "Ingest IngestError IngestResult",
        ".job": "CheckStore PutObjects",
        ".repairing.mending": "mend",
        ".reporting.store_report": "ProblemCount StoreReport report",
        ".objects": "CopyMode ObjectSource Path RepairStep StoreObject",
        ".ocfl.checking.lone_object": "check_object",
        ".ocfl.differences": "Changes",
        ".ocfl.history": "VersionInfo",
        ".ocfl.root": "OcflRoot",
        ".pairtree.pairtree_store": "PairtreeStore",
        ".registry": "KINDS create kind_of open",
        ".store": "Store",
        ".stored_object": "StoredObject",
        ".vitro.vitro_store": "VitroStore",
    },
    "PROBLEM_KINDS",
)
