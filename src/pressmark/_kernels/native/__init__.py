"""The fast twin: Cython over C, with the same surface as ``pure``."""

from __future__ import annotations

import os

from pressmark._kernels.native.arrow import (
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
from pressmark._kernels.native.clean_path import CleanPathMap, CleanPathUnmap
from pressmark._kernels.native.digests import best_level, level, levels, supported, use_level
from pressmark._kernels.native.direct import DirectMap
from pressmark._kernels.native.files import Engine, lane_count, lane_level, sha_extensions
from pressmark._kernels.native.hashed import HashAndIdMap, HashAndIdUnmap, HashedMap
from pressmark._kernels.native.manifest_index import ManifestIndex
from pressmark._kernels.native.omit_prefix import DifferentialMap, FlatOmitPrefixMap, NTupleOmitPrefixMap
from pressmark._kernels.native.packed import Packed
from pressmark._kernels.native.pairtree import PairtreeClean, PairtreeMap, PairtreeUnclean, PairtreeUnmap
from pressmark._kernels.native.pairtree_scan import scan_pairtree
from pressmark._kernels.native.path_lengths import PathLengths, beginning
from pressmark._kernels.native.path_sort import PathMerge, PathSorter, beyond_ascii, questionable
from pressmark._kernels.native.path_tree import PathTree
from pressmark._kernels.native.small_files import copy_small, write_small
from pressmark._kernels.native.small_objects import move_object, write_small_object
from pressmark._kernels.native.vitro import VitroDecodeFilename, VitroEncodeFilename, VitroMap, VitroUnmap
from pressmark.errors import PressmarkError

__all__ = [
    "LEVEL",
    "NAME",
    "RELEASES_GIL",
    "Array",
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
    "Packed",
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
    "beginning",
    "beyond_ascii",
    "copy_small",
    "describe_schema",
    "export_array",
    "export_schema",
    "export_stream",
    "lane_count",
    "lane_level",
    "map_part",
    "move_object",
    "questionable",
    "scan_pairtree",
    "sha_extensions",
    "supported",
    "write_small",
    "write_small_object",
]

NAME = "native"


def _choose_level() -> str:
    """Use the level that PRESSMARK_SIMD names, or the best that this machine runs; return its name."""
    wanted = os.environ.get("PRESSMARK_SIMD", "")
    if wanted:
        runnable = levels()[: levels().index(best_level()) + 1]
        if wanted not in runnable:
            raise PressmarkError(f"PRESSMARK_SIMD={wanted}: this machine and build run {', '.join(runnable)}")
        use_level(wanted)
    name: str = level()
    return name


LEVEL = _choose_level()
# Threads that run these kernels run side by side.
RELEASES_GIL = True
