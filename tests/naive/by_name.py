"""The mappings by the official name of their layout, with the configuration of a config.json."""

import re

from . import clean_path, flat, hash_and_id, hashed, omit_prefix, pairtree, vitro

MAP_ID = {
    "pairtree": pairtree.map_id,
    "vitro": vitro.map_id,
    "0002-flat-direct-storage-layout": flat.map_id,
    "0003-hash-and-id-n-tuple-storage-layout": hash_and_id.map_id,
    "0004-hashed-n-tuple-storage-layout": hashed.map_id,
    "0006-flat-omit-prefix-storage-layout": omit_prefix.map_id_0006,
    "0007-n-tuple-omit-prefix-storage-layout": omit_prefix.map_id_0007,
    "0010-differential-n-tuple-omit-prefix-storage-layout": omit_prefix.map_id_0010,
    "0011-direct-clean-path-layout": clean_path.map_id,
    "0012-hash-and-no-prefix-id-n-tuple-storage-layout": hash_and_id.map_id,
}

UNMAP_PATH = {
    "pairtree": pairtree.unmap_path,
    "vitro": vitro.unmap_path,
    "0002-flat-direct-storage-layout": flat.unmap_path,
    "0003-hash-and-id-n-tuple-storage-layout": hash_and_id.unmap_path,
    "0011-direct-clean-path-layout": clean_path.unmap_path,
}


def snake_case(key: str) -> str:
    """tupleSize -> tuple_size, encodeUTF -> encode_utf"""
    return re.sub("(?<=[a-z])(?=[A-Z])", "_", key).lower()


def map_id(layout: str, identifier: bytes, config: dict[str, object]) -> bytes:
    """`config` has the camelCase keys of the specification."""
    return MAP_ID[layout](identifier, **{snake_case(key): value for key, value in config.items()})


def unmap_path(layout: str, path: bytes, config: dict[str, object]) -> bytes:
    return UNMAP_PATH[layout](path, **{snake_case(key): value for key, value in config.items()})
