"""The native implementation: Cython over C, with the same functions and classes as ``pure``."""

from __future__ import annotations

import os

from pressmark._kernels.native._arrow import (
    Array,
    Chunk,
    Concatenation,
    Source,
    Stream,
    describe_schema,
    export_array,
    export_schema,
    export_stream,
    map_part,
)
from pressmark._kernels.native._digests import (
    Engine,
    best_level,
    copy_small,
    copy_small_tree,
    lane_count,
    lane_level,
    level,
    levels,
    move_object,
    sha_extensions,
    supported,
    use_level,
    write_small,
)
from pressmark._kernels.native._mapping import (
    ByteColumn,
    CleanPathMap,
    CleanPathUnmap,
    DifferentialMap,
    DirectMap,
    FlatOmitPrefixMap,
    HashAndIdMap,
    HashAndIdUnmap,
    HashedMap,
    NTupleOmitPrefixMap,
    PairtreeClean,
    PairtreeMap,
    PairtreeUnclean,
    PairtreeUnmap,
    VitroDecodeFilename,
    VitroEncodeFilename,
    VitroMap,
    VitroUnmap,
)
from pressmark._kernels.native._paths import (
    ManifestIndex,
    PathLengths,
    PathMerge,
    PathSorter,
    PathTree,
    beyond_ascii,
    scan_pairtree,
    starts_with,
    suspicious,
)
from pressmark.errors import PressmarkError

__all__ = [
    "LEVEL",
    "NAME",
    "RELEASES_GIL",
    "Array",
    "ByteColumn",
    "Chunk",
    "CleanPathMap",
    "CleanPathUnmap",
    "Concatenation",
    "DifferentialMap",
    "DirectMap",
    "Engine",
    "FlatOmitPrefixMap",
    "HashAndIdMap",
    "HashAndIdUnmap",
    "HashedMap",
    "ManifestIndex",
    "NTupleOmitPrefixMap",
    "PairtreeClean",
    "PairtreeMap",
    "PairtreeUnclean",
    "PairtreeUnmap",
    "PathLengths",
    "PathMerge",
    "PathSorter",
    "PathTree",
    "Source",
    "Stream",
    "VitroDecodeFilename",
    "VitroEncodeFilename",
    "VitroMap",
    "VitroUnmap",
    "beyond_ascii",
    "copy_small",
    "copy_small_tree",
    "describe_schema",
    "export_array",
    "export_schema",
    "export_stream",
    "lane_count",
    "lane_level",
    "map_part",
    "move_object",
    "scan_pairtree",
    "sha_extensions",
    "starts_with",
    "supported",
    "suspicious",
    "write_small",
]

NAME = "native"


def _choose_level() -> str:
    """Select the vector level from PRESSMARK_SIMD, by default the best of this machine, and return its name."""
    wanted = os.environ.get("PRESSMARK_SIMD", "")
    if wanted:
        runnable = levels()[: levels().index(best_level()) + 1]
        if wanted not in runnable:
            raise PressmarkError(f"PRESSMARK_SIMD={wanted}: this machine and build run {', '.join(runnable)}")
        use_level(wanted)
    return level()


LEVEL = _choose_level()
# Several threads can run these kernels at the same time.
RELEASES_GIL = True
