"""Kernels in Python, called item by item in both implementations: for layouts of one's own and rare forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pressmark._kernels.pure.column import KernelError, first_difference
from pressmark._kernels.pure.text import checked_path
from pressmark._kernels.tables import MAX_IDENTIFIER_BYTES, MAX_PATH_BYTES, ErrorCode
from pressmark.errors import IdentifierError, PathError

__all__ = ["REFUSED", "ItemKernel", "KernelError", "MapKernel", "UnmapKernel"]

#: The error code of an item for which the function raised an exception; not a code of the other kernels.
REFUSED = -1

Function = Callable[[str], str]


def _encoded(function: Function, item: str) -> bytes:
    result = function(item)
    if not isinstance(result, str):
        raise TypeError(f"{function.__name__} returned {type(result).__name__}, not str")
    return result.encode("utf-8", "surrogateescape")


class ItemKernel:
    """A kernel in Python that converts item by item.

    :param packed: the ``ByteColumn`` of the implementation
    """

    # Threads that run Python functions take turns.
    releases_gil = False
    limit = MAX_IDENTIFIER_BYTES

    def __init__(self, packed: Any) -> None:
        self.packed = packed

    def convert(self, item: bytes) -> bytes:
        """Return the result of one item that is not too long.

        :raises KernelError: the item has no result
        """
        raise NotImplementedError

    def result(self, item: bytes) -> bytes:
        """Return the result of one item.

        :raises KernelError: the item has no result
        """
        if len(item) > self.limit:
            raise KernelError(ErrorCode.TOO_LONG)
        return self.convert(item)

    def __call__(self, column: Any) -> tuple[Any, list[tuple[int, int, int]]]:
        results: list[bytes] = []
        errors: list[tuple[int, int, int]] = []
        for index in range(len(column)):
            try:
                results.append(self.result(column[index]))
            except KernelError as error:
                errors.append((index, error.code, error.position))
                results.append(b"")
        return self.packed.from_texts(results)[0], errors


class MapKernel(ItemKernel):
    """A kernel that maps each identifier with ``to_path``."""

    def __init__(self, packed: Any, to_path: Function) -> None:
        super().__init__(packed)
        self.to_path = to_path

    def result(self, item: bytes) -> bytes:
        """Return the result of one item.

        :raises KernelError: the item has no result; an exception of the layout is its ``__cause__``
        """
        try:
            return super().result(item)
        except (KernelError, MemoryError):
            raise
        except Exception as error:
            raise KernelError(REFUSED) from error  # type: ignore[arg-type]

    def convert(self, item: bytes) -> bytes:
        """Return the checked path of an identifier."""
        if not item:
            raise KernelError(ErrorCode.EMPTY)
        return checked_path(_encoded(self.to_path, item.decode("utf-8", "surrogateescape")))

    def cause(self, item: str | bytes) -> tuple[str, BaseException | None]:
        """Return the reason why the layout refuses an item, and its exception: the function is called again."""
        try:
            self.result(item.encode("utf-8", "surrogateescape") if isinstance(item, str) else item)
        except KernelError as refusal:
            error = refusal.__cause__
            if isinstance(error, (IdentifierError, PathError)):
                return error.reason, error
            if error is not None:
                # A ValueError is the layout's answer; any other exception may be a mistake in its code.
                text = " ".join(str(error).split())
                name = type(error).__name__
                expected = isinstance(error, ValueError) and text
                return text if expected else f"{name}: {text}" if text else name, error
        return "the layout refused it, but not when asked again; its result must depend on its argument only", None


class UnmapKernel(MapKernel):
    """A kernel that maps each path with ``to_id``, strictly: ``to_path`` of the result must be the path."""

    limit = MAX_PATH_BYTES

    def __init__(self, packed: Any, to_path: Function, to_id: Function) -> None:
        super().__init__(packed, to_path)
        self.to_id = to_id

    def convert(self, item: bytes) -> bytes:
        """Return the identifier of a path."""
        checked_path(item)
        identifier = _encoded(self.to_id, item.decode("utf-8", "surrogateescape"))
        try:
            again = super().convert(identifier)
        except MemoryError:
            raise
        except Exception:
            again = b""
        if again != item:
            raise KernelError(ErrorCode.NOT_CANONICAL, first_difference(item, again))
        return identifier
