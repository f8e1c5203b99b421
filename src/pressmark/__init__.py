"""Digital preservation: identifiers to storage paths, fixity, bags, stores and migrations."""

from __future__ import annotations

from pressmark.lazy import face

TYPE_CHECKING = False  # without typing, whose import takes longer than the rest
if TYPE_CHECKING:
    from typing import Any

    from pressmark import (
        bagit as bagit,
        compare as compare,
        fixity as fixity,
        jobs as jobs,
        layouts as layouts,
        migrate as migrate,
        stores as stores,
    )
    from pressmark.arrow import StringColumn as StringColumn
    from pressmark.errors import (
        AuditError as AuditError,
        BagError as BagError,
        BagInvalidError as BagInvalidError,
        Cancelled as Cancelled,
        ColumnError as ColumnError,
        FormatError as FormatError,
        IdentifierError as IdentifierError,
        JobError as JobError,
        LayoutConfigError as LayoutConfigError,
        LayoutConfigWarning as LayoutConfigWarning,
        MigrationError as MigrationError,
        NotReversibleError as NotReversibleError,
        ObjectError as ObjectError,
        ObjectTypeError as ObjectTypeError,
        PathError as PathError,
        PressmarkError as PressmarkError,
        ProfileError as ProfileError,
        StoreError as StoreError,
        TableError as TableError,
        TableWarning as TableWarning,
    )
    from pressmark.layouts import (
        DifferentialNTupleOmitPrefix as DifferentialNTupleOmitPrefix,
        DirectClean as DirectClean,
        FlatDirect as FlatDirect,
        FlatOmitPrefix as FlatOmitPrefix,
        HashAndIdNTuple as HashAndIdNTuple,
        HashAndNoPrefixIdNTuple as HashAndNoPrefixIdNTuple,
        HashedNTuple as HashedNTuple,
        Layout as Layout,
        LineCounts as LineCounts,
        NTupleOmitPrefix as NTupleOmitPrefix,
        Pairtree as Pairtree,
        Vitro as Vitro,
        layout as layout,
        layout_from_config as layout_from_config,
    )
    from pressmark.progress_event import Progress as Progress

#: Which implementation runs, ``"native"`` or ``"pure"``; ``pressmark --version`` adds the vector level.
implementation: str
#: The version of Pressmark.
__version__: str

__all__, _part, __dir__ = face(
    __name__,
    {
        ".bagit": "",
        ".compare": "",
        ".fixity": "",
        ".jobs": "",
        ".layouts": "",
        ".migrate": "",
        ".stores": "",
        "pressmark.arrow": "StringColumn",
        "pressmark.errors": (
            "AuditError BagError BagInvalidError Cancelled ColumnError FormatError IdentifierError JobError"
            " LayoutConfigError LayoutConfigWarning MigrationError NotReversibleError ObjectError ObjectTypeError"
            " PathError PressmarkError ProfileError StoreError TableError TableWarning"
        ),
        "pressmark.layouts": (
            "DifferentialNTupleOmitPrefix DirectClean FlatDirect FlatOmitPrefix HashAndIdNTuple HashAndNoPrefixIdNTuple"
            " HashedNTuple Layout LineCounts NTupleOmitPrefix Pairtree Vitro layout layout_from_config"
        ),
        "pressmark.progress_event": "Progress",
        "pressmark.version": "__version__",
    },
    "implementation",
)


def __getattr__(name: str) -> Any:
    """Import a part of the package when it is first used."""
    if name != "implementation":
        return _part(name)
    from pressmark import _kernels

    return _kernels.active.NAME
