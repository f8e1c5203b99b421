"""The readable twin: every specification in plain Python, with the same surface as ``native``."""

from __future__ import annotations

from pressmark._kernels.pure.clean_path import CleanPathMap, CleanPathUnmap
from pressmark._kernels.pure.digests import supported
from pressmark._kernels.pure.direct import DirectMap
from pressmark._kernels.pure.hashed import HashAndIdMap, HashAndIdUnmap, HashedMap
from pressmark._kernels.pure.omit_prefix import DifferentialMap, FlatOmitPrefixMap, NTupleOmitPrefixMap
from pressmark._kernels.pure.packed import Packed
from pressmark._kernels.pure.pairtree import PairtreeClean, PairtreeMap, PairtreeUnclean, PairtreeUnmap
from pressmark._kernels.pure.vitro import VitroDecodeFilename, VitroEncodeFilename, VitroMap, VitroUnmap

__all__ = [
    "LEVEL",
    "NAME",
    "RELEASES_GIL",
    "CleanPathMap",
    "CleanPathUnmap",
    "DifferentialMap",
    "DirectMap",
    "FlatOmitPrefixMap",
    "HashAndIdMap",
    "HashAndIdUnmap",
    "HashedMap",
    "NTupleOmitPrefixMap",
    "Packed",
    "PairtreeClean",
    "PairtreeMap",
    "PairtreeUnclean",
    "PairtreeUnmap",
    "VitroDecodeFilename",
    "VitroEncodeFilename",
    "VitroMap",
    "VitroUnmap",
    "supported",
]

NAME = "pure"
LEVEL = "none"
# Threads that run these kernels take turns.
RELEASES_GIL = False
