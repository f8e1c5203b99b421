"""The fast twin: Cython over C, with the same surface as ``pure``."""

from __future__ import annotations

from pressmark._kernels.native.clean_path import CleanPathMap, CleanPathUnmap
from pressmark._kernels.native.digests import level, supported
from pressmark._kernels.native.direct import DirectMap
from pressmark._kernels.native.hashed import HashAndIdMap, HashAndIdUnmap, HashedMap
from pressmark._kernels.native.omit_prefix import DifferentialMap, FlatOmitPrefixMap, NTupleOmitPrefixMap
from pressmark._kernels.native.packed import Packed
from pressmark._kernels.native.pairtree import PairtreeClean, PairtreeMap, PairtreeUnclean, PairtreeUnmap
from pressmark._kernels.native.vitro import VitroDecodeFilename, VitroEncodeFilename, VitroMap, VitroUnmap

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

NAME = "native"
# The vector level of the digests, chosen for this machine at import.
LEVEL = level()
# Threads that run these kernels run side by side.
RELEASES_GIL = True
