"""What every layout has: configuration in and out, and the doors to the kernels."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Literal, TypeAlias, overload

from pressmark import _kernels
from pressmark.errors import IdentifierError, LayoutConfigError, NotReversibleError, PathError
from pressmark.layouts.batch import Door
from pressmark.layouts.parameters import REQUIRED, Check, camel_case, unknown_key
from pressmark.layouts.streams import LineCounts, LineErrors, pass_lines
from pressmark.threads import resolve_threads

if TYPE_CHECKING:
    from pressmark.arrow import ArrowArrayExportable, ArrowStreamExportable, StringColumn, StringTable

__all__ = ["CLASSES", "NAME_MAX", "Layout", "Parameter"]

# Bytes that the name of a file or directory has at most, in nearly every file system.
NAME_MAX = 255

BatchErrors = Literal["raise", "none"]
ArrowColumn: TypeAlias = "ArrowArrayExportable | ArrowStreamExportable"

#: The layouts defined so far, by official name: each subclass of :class:`Layout` that has a name.
CLASSES: dict[str, type[Layout]] = {}


@dataclasses.dataclass(frozen=True)
class Parameter:
    """One parameter of a layout, for listings: names, default, what is allowed, what it means."""

    name: str
    key: str
    default: Any
    check: Check
    doc: str

    @property
    def required(self) -> bool:
        return self.default is REQUIRED


@dataclasses.dataclass(frozen=True)
class Layout(ABC):
    """A way to turn identifiers into storage paths.

    Layouts are frozen, hashable, picklable, equal by configuration, cheap to make and safe to share between
    threads. A parameter that is unknown, of a wrong type or out of range is a ``LayoutConfigError``.
    """

    #: The official name, as registries, configurations and command lines spell it.
    name: ClassVar[str]
    #: What its paths consist of.
    summary: ClassVar[str]
    #: Title of the document that defines the layout.
    specification: ClassVar[str]
    #: Address of that document.
    url: ClassVar[str]
    #: Under which parameters, and for which paths, :meth:`unmap_path` works.
    reversibility: ClassVar[str] = "never"
    #: Other names in configuration files that mean this layout.
    foreign_names: ClassVar[tuple[str, ...]] = ()
    #: First character of its escapes.
    escape_mark: ClassVar[str] = "^"
    #: The four digits of an OCFL extension, which replace its name everywhere.
    alias: ClassVar[str | None]

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if "name" in vars(cls):
            cls.alias = cls.name[:4] if cls.name[:4].isdigit() else None
            CLASSES[cls.name] = cls

    def __new__(cls, *_args: Any, **parameters: Any) -> Layout:
        known = [field.name for field in dataclasses.fields(cls)]
        for name in parameters:
            if name not in known:
                raise unknown_key(name, known)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        for parameter in self.parameters():
            value = getattr(self, parameter.name)
            if value is REQUIRED:
                raise LayoutConfigError(parameter.key, f"required by {self.name}: {parameter.check.allowed}")
            object.__setattr__(self, parameter.name, parameter.check(parameter.key, value))
        self._check_together()

    def _check_together(self) -> None:  # noqa: B027  # most layouts have nothing to check
        """Raise ``LayoutConfigError`` where parameters, each allowed, do not fit together."""

    @property
    def reversible_when(self) -> str:
        """For which paths :meth:`unmap_path` works under this configuration."""
        return self.reversibility

    @property
    def reversible(self) -> bool:
        """Whether :meth:`unmap_path` works at all under this configuration."""
        return self.reversible_when != "never"

    @classmethod
    def parameters(cls) -> tuple[Parameter, ...]:
        """Return the parameters of the layout."""
        return tuple(
            Parameter(field.name, camel_case(field.name), field.default, field.metadata["check"], field.metadata["doc"])
            for field in dataclasses.fields(cls)
        )

    @classmethod
    def read_config(cls, config: Mapping[str, Any], _where: str) -> dict[str, Any]:
        """Return the parameters of a ``config.json``, under their names in Python.

        :param config: without ``extensionName``
        :param _where: the file, for messages
        :raises LayoutConfigError: the layout has no such parameter
        """
        names = {parameter.key: parameter.name for parameter in cls.parameters()}
        for key in config:
            if key not in names:
                raise unknown_key(key, names)
        return {names[key]: value for key, value in config.items()}

    def config(self) -> dict[str, Any]:
        """Return the complete ``config.json`` mapping, every parameter written out in the specification's spelling."""
        config: dict[str, Any] = {"extensionName": self.name}
        for parameter in self.parameters():
            config[parameter.key] = parameter.check.to_json(getattr(self, parameter.name))
        return config

    def __getstate__(self) -> dict[str, Any]:
        """Return the parameters alone: compiled kernels stay behind."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    # --- kernels ------------------------------------------------------------------------------------------

    @abstractmethod
    def _map_kernel(self, kernels: ModuleType) -> Any:
        """Return the kernel from identifiers to paths, of the implementation ``kernels``."""

    def _unmap_kernel(self, kernels: ModuleType) -> Any:
        """Return the kernel from paths to identifiers; called only where :attr:`reversible`."""
        raise NotImplementedError

    def _door(self, purpose: str, make: Callable[[ModuleType], Any], error: type[IdentifierError | PathError]) -> Door:
        """Return the door of ``purpose``, compiled once for each layout object and implementation."""
        kernels = _kernels.active
        # Not a field: neither compared nor pickled. Two threads may compile it twice, which is harmless.
        doors = self.__dict__.setdefault("_doors", {})
        key = (purpose, kernels.NAME)
        if key not in doors:
            doors[key] = Door(kernels, make(kernels), error, self)
        found: Door = doors[key]
        return found

    def _mapping(self) -> Door:
        return self._door("map", self._map_kernel, IdentifierError)

    def _unmapping(self) -> Door:
        if not self.reversible:
            raise NotReversibleError(self.name)
        return self._door("unmap", self._unmap_kernel, PathError)

    # --- identifiers to paths -----------------------------------------------------------------------------

    def map_id(self, identifier: str | bytes) -> str:
        """Return the path of ``identifier``: relative, ``/``-separated, without a trailing ``/``.

        :raises IdentifierError: it has no path under this layout
        """
        return self._mapping().one(identifier)

    @overload
    def map_ids(self, ids: Iterable[str | bytes], on_error: Literal["raise"] = "raise") -> list[str]: ...

    @overload
    def map_ids(self, ids: Iterable[str | bytes], on_error: Literal["none"]) -> list[str | None]: ...

    def map_ids(self, ids: Iterable[str | bytes], on_error: BatchErrors = "raise") -> list[str] | list[str | None]:
        """Return the paths of ``ids``, in their order.

        :param on_error: ``"raise"`` at the first identifier without a path (its ``index`` is in the error), or
            ``"none"`` to put :data:`None` in its place
        :raises IdentifierError: as said
        :raises TypeError: an item is neither ``str`` nor ``bytes``
        """
        return self._mapping().many(ids, on_error)

    def map_arrow(
        self,
        column: ArrowColumn,
        on_error: BatchErrors = "raise",
        *,
        field: str | None = None,
        threads: int | None = None,
    ) -> StringColumn:
        """Return the paths of an Arrow column, in its order; nulls stay null.

        ``column`` is any object with ``__arrow_c_array__`` or ``__arrow_c_stream__`` (the Arrow PyCapsule interface)
        that holds utf8, large_utf8, utf8_view, their binary counterparts, or a dictionary of these: a column of
        pyarrow, polars, pandas, DuckDB, nanoarrow and others. Without a native build pyarrow or nanoarrow is needed.
        The result has the chunks of the column, without the empty ones; a long chunk becomes several where several
        threads work on it.

        :param on_error: ``"raise"`` at the first identifier without a path (its ``index`` counts from the column's
            beginning), or ``"none"`` to put null in its place
        :param field: which column of a table (a struct); needed where there are several
        :param threads: how many at most; ``None`` or ``0`` for as many as there are cores, and short columns take one
        :raises IdentifierError: as said
        :raises ColumnError: the column is malformed, holds no text, or has not the field; or nothing is installed that
            reads it
        :raises TypeError: ``column`` offers neither protocol
        """
        return self._mapping().column(column, on_error, field, resolve_threads(threads))

    def map_table(
        self,
        column: ArrowColumn,
        on_error: BatchErrors = "raise",
        *,
        field: str | None = None,
        threads: int | None = None,
    ) -> StringTable:
        """Return the identifiers of an Arrow column and their paths, as two columns; see :meth:`map_arrow`."""
        return self._mapping().table(column, on_error, field, resolve_threads(threads), False)

    def map_lines(
        self,
        src: BinaryIO,
        dst: BinaryIO,
        delimiter: bytes = b"\n",
        threads: int | None = None,
        *,
        on_error: LineErrors = "raise",
        both: bool = False,
        on_failure: Callable[[IdentifierError], None] | None = None,
        on_progress: Callable[[LineCounts], None] | None = None,
    ) -> LineCounts:
        r"""Read identifiers from the binary stream ``src`` and write their paths to ``dst``, in constant memory.

        Items end with ``delimiter`` (one byte) and with nothing else: a ``\r`` belongs to its item. Where the last
        one lacks it, the output does too. Output order is input order, whatever the threads.

        :param threads: how many at most; ``None`` or ``0`` for as many as there are cores
        :param on_error: ``"raise"`` after everything before the failing item is written; ``"skip"`` it; or write an
            ``"empty"`` item for it
        :param both: write identifier, TAB, path
        :param on_failure: called with each error that is skipped or emptied, in order
        :param on_progress: called with the counts so far after each block
        :raises IdentifierError: under ``"raise"``; its ``index`` counts the items from 0
        """
        return pass_lines(self._mapping(), src, dst, delimiter, threads, on_error, both, False, on_failure, on_progress)

    # --- paths to identifiers -----------------------------------------------------------------------------

    def unmap_path(self, path: str | bytes) -> str:
        """Return the identifier of ``path``; octets that are not UTF-8 as the surrogates of ``os.fsdecode``.

        The inverse is strict: a path that no identifier maps to is refused.

        :raises PathError: ``path`` is not one of this layout's, or does not hold its whole identifier
        :raises NotReversibleError: the layout has no inverse
        """
        return self._unmapping().one(path)

    @overload
    def unmap_paths(self, paths: Iterable[str | bytes], on_error: Literal["raise"] = "raise") -> list[str]: ...

    @overload
    def unmap_paths(self, paths: Iterable[str | bytes], on_error: Literal["none"]) -> list[str | None]: ...

    def unmap_paths(
        self, paths: Iterable[str | bytes], on_error: BatchErrors = "raise"
    ) -> list[str] | list[str | None]:
        """Return the identifiers of ``paths``, in their order; the mirror of :meth:`map_ids`.

        :raises PathError: in place of :exc:`IdentifierError`
        :raises NotReversibleError: the layout has no inverse
        """
        return self._unmapping().many(paths, on_error)

    def unmap_arrow(
        self,
        column: ArrowColumn,
        on_error: BatchErrors = "raise",
        *,
        field: str | None = None,
        threads: int | None = None,
    ) -> StringColumn:
        """Return the identifiers of an Arrow column of paths; the mirror of :meth:`map_arrow`.

        Identifiers need not be UTF-8: see :class:`~pressmark.StringColumn`.

        :raises PathError: in place of :exc:`IdentifierError`
        :raises NotReversibleError: the layout has no inverse
        """
        return self._unmapping().column(column, on_error, field, resolve_threads(threads))

    def unmap_table(
        self,
        column: ArrowColumn,
        on_error: BatchErrors = "raise",
        *,
        field: str | None = None,
        threads: int | None = None,
    ) -> StringTable:
        """Return the identifiers of an Arrow column of paths, and the paths; the mirror of :meth:`map_table`.

        The columns are the same: ``identifier``, ``path``.
        """
        return self._unmapping().table(column, on_error, field, resolve_threads(threads), True)

    def unmap_lines(
        self,
        src: BinaryIO,
        dst: BinaryIO,
        delimiter: bytes = b"\n",
        threads: int | None = None,
        *,
        on_error: LineErrors = "raise",
        both: bool = False,
        on_failure: Callable[[PathError], None] | None = None,
        on_progress: Callable[[LineCounts], None] | None = None,
    ) -> LineCounts:
        """Read paths from ``src`` and write their identifiers to ``dst``; the mirror of :meth:`map_lines`.

        With ``both`` the columns are the same: identifier, TAB, path.

        :raises PathError: in place of :exc:`IdentifierError`
        :raises NotReversibleError: the layout has no inverse
        """
        return pass_lines(
            self._unmapping(), src, dst, delimiter, threads, on_error, both, True, on_failure, on_progress
        )
