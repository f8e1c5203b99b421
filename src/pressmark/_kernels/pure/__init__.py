"""The pure implementation: plain Python, with the same functions and classes as ``native``."""

from __future__ import annotations

from pressmark._kernels.pure.arrow import (
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
from pressmark._kernels.pure.clean_path import CleanPathMap, CleanPathUnmap, DirectMap
from pressmark._kernels.pure.column import ByteColumn, row_ends
from pressmark._kernels.pure.digests import supported
from pressmark._kernels.pure.files import (
    Engine,
    lane_count,
    lane_level,
    run_steps,
    sha_extensions,
)
from pressmark._kernels.pure.hashed import HashAndIdMap, HashAndIdUnmap, HashedMap
from pressmark._kernels.pure.manifest_index import ManifestIndex
from pressmark._kernels.pure.omit_prefix import DifferentialMap, FlatOmitPrefixMap, NTupleOmitPrefixMap
from pressmark._kernels.pure.pairtree import PairtreeClean, PairtreeMap, PairtreeUnclean, PairtreeUnmap
from pressmark._kernels.pure.path_lengths import PathLengths, starts_with
from pressmark._kernels.pure.path_sort import PathMerge, PathSorter, beyond_ascii, suspicious
from pressmark._kernels.pure.path_tree import PathTree
from pressmark._kernels.pure.trees import TreeBatch, read_json, read_trees, scan_pairtree
from pressmark._kernels.pure.vitro import VitroDecodeFilename, VitroEncodeFilename, VitroMap, VitroUnmap

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
    "TreeBatch",
    "VitroDecodeFilename",
    "VitroEncodeFilename",
    "VitroMap",
    "VitroUnmap",
    "beyond_ascii",
    "describe_schema",
    "export_array",
    "export_schema",
    "export_stream",
    "lane_count",
    "lane_level",
    "map_part",
    "read_json",
    "read_trees",
    "row_ends",
    "run_steps",
    "scan_pairtree",
    "sha_extensions",
    "starts_with",
    "supported",
    "suspicious",
]

NAME = "pure"
LEVEL = "none"
# Threads that run these kernels take turns.
RELEASES_GIL = False
