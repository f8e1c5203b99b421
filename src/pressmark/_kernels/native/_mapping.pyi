from array import array
from collections.abc import Iterable, Mapping, Sequence

__all__ = [
    "ByteColumn",
    "CleanPathMap",
    "CleanPathUnmap",
    "DifferentialMap",
    "DirectMap",
    "FlatOmitPrefixMap",
    "HashAndIdMap",
    "HashAndIdUnmap",
    "HashedMap",
    "Inverse",
    "Kernel",
    "NTupleOmitPrefixMap",
    "PairtreeClean",
    "PairtreeMap",
    "PairtreeUnclean",
    "PairtreeUnmap",
    "VitroDecodeFilename",
    "VitroEncodeFilename",
    "VitroMap",
    "VitroUnmap",
]

# The index of an item, a tables.ErrorCode, and a position.
_ItemError = tuple[int, int, int]

class ByteColumn:
    @classmethod
    def from_texts(
        cls, texts: Sequence[str | bytes], start: int = 0, stop: int = ...
    ) -> tuple[ByteColumn, list[_ItemError]]: ...
    @classmethod
    def from_lines(cls, block: bytes, delimiter: bytes) -> ByteColumn: ...
    @classmethod
    def from_fields(cls, rows: bytes, separator: bytes, index: int, width: int) -> ByteColumn | None: ...
    @classmethod
    def from_buffers(cls, data: bytes, offsets: array[int]) -> ByteColumn: ...
    def buffers(self) -> tuple[bytes, array[int]]: ...
    def to_texts(self) -> list[str]: ...
    def to_lines(self, delimiter: bytes, skip: Iterable[int] = (), before: ByteColumn | None = None) -> bytes: ...
    def to_rows(self, rows: bytes, separator: bytes, quotes: bool) -> bytes: ...
    def blanked(self, indices: Iterable[int]) -> ByteColumn: ...
    def indices_containing(self, byte: bytes) -> list[int]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: int) -> bytes: ...

class Kernel:
    limit: int
    def __call__(self, packed: ByteColumn) -> tuple[ByteColumn, list[_ItemError]]: ...

class Inverse(Kernel):
    def __init__(self, decode: Kernel, map_again: Kernel) -> None: ...

class PairtreeMap(Kernel):
    def __init__(self, prefix: bytes, prefix_required: bool) -> None: ...

class PairtreeUnmap(Kernel):
    def __init__(self, prefix: bytes) -> None: ...

class PairtreeClean(Kernel):
    def __init__(self) -> None: ...

class PairtreeUnclean(Kernel):
    def __init__(self) -> None: ...

class VitroMap(Kernel):
    def __init__(self, namespaces: Mapping[bytes, bytes]) -> None: ...

class VitroUnmap(Inverse):
    def __init__(self, namespaces: Mapping[bytes, bytes]) -> None: ...

class VitroEncodeFilename(Kernel):
    def __init__(self) -> None: ...

class VitroDecodeFilename(Kernel):
    def __init__(self) -> None: ...

class DirectMap(Kernel):
    def __init__(self) -> None: ...

class FlatOmitPrefixMap(Kernel):
    def __init__(self, delimiter: bytes) -> None: ...

class NTupleOmitPrefixMap(Kernel):
    def __init__(
        self, delimiter: bytes, tuple_size: int, number_of_tuples: int, pad_left: bool, reverse: bool
    ) -> None: ...

class DifferentialMap(Kernel):
    def __init__(self, delimiter: bytes, sizes: Sequence[int], full_identifier: bool) -> None: ...

class HashAndIdMap(Kernel):
    def __init__(self, algorithm: str, tuple_size: int, number_of_tuples: int, delimiters: Iterable[bytes]) -> None: ...

class HashAndIdUnmap(Inverse):
    def __init__(self, algorithm: str, tuple_size: int, number_of_tuples: int) -> None: ...

class HashedMap(Kernel):
    def __init__(self, algorithm: str, tuple_size: int, number_of_tuples: int, short_root: bool) -> None: ...

class CleanPathMap(Kernel):
    def __init__(
        self,
        encode_utf: bool,
        max_path_segment_len: int,
        max_pathname_len: int,
        replacement_string: bytes,
        whitespace_replacement_string: bytes,
        fallback_digest_algorithm: str,
        fallback_folder: bytes,
        number_of_fallback_tuples: int,
        fallback_tuple_size: int,
        gocfl: bool,
        /,
    ) -> None: ...

class CleanPathUnmap(Inverse):
    def __init__(
        self,
        encode_utf: bool,
        max_path_segment_len: int,
        max_pathname_len: int,
        replacement_string: bytes,
        whitespace_replacement_string: bytes,
        fallback_digest_algorithm: str,
        fallback_folder: bytes,
        number_of_fallback_tuples: int,
        fallback_tuple_size: int,
        gocfl: bool,
        /,
    ) -> None: ...
