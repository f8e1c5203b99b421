"""The base class of layouts: parameters, configuration, and mapping of items, lists, Arrow columns and lines."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Self, TypeAlias, TypeVar, cast, overload

from pressmark import _kernels
from pressmark.errors import IdentifierError, LayoutConfigError, NotReversibleError, PathError, quoted, quoted_value
from pressmark.layouts.batch import BoundKernel
from pressmark.option_names import camel_case, parameter_name

if TYPE_CHECKING:
    from pressmark.arrow import ArrowArrayExportable, ArrowStreamExportable, ErrorList, LibraryColumn, StringColumn
    from pressmark.layouts.streams import ItemFile, LineCounts, LineErrors
    from pressmark.progress_event import Progress
    from pressmark.tabular.formats import Crlf

__all__ = [
    "CLASSES",
    "LARGEST_INTEGER",
    "NAME_MAX",
    "REQUIRED",
    "Boolean",
    "Check",
    "Choice",
    "Integer",
    "Layout",
    "Parameter",
    "Text",
    "parameter",
    "unknown_key",
]

# Where a specification sets no upper limit: the largest integer of other tools (Java's int).
LARGEST_INTEGER = 2**31 - 1

#: The default of a required parameter.
REQUIRED: Any = "<required>"
Value = TypeVar("Value")


def unknown_key(key: str, known: Iterable[str]) -> LayoutConfigError:
    """Return the error for an unknown parameter."""
    import difflib

    known = list(known)
    close = difflib.get_close_matches(key, known, 1)
    if close:
        return LayoutConfigError(key, f"unknown parameter; did you mean {close[0]}?")
    allowed = f"known parameters: {', '.join(known)}" if known else "this layout has no parameters"
    return LayoutConfigError(key, f"unknown parameter; {allowed}")


class Check(Generic[Value]):
    """The check of a parameter's value: a call returns the value (hashable) or raises ``LayoutConfigError``."""

    #: The allowed values, for messages and ``pressmark layouts``.
    allowed: str = ""

    def __call__(self, key: str, value: object) -> Value:
        raise NotImplementedError

    def from_text(self, key: str, text: str) -> object:
        """Return the value of ``text`` on a command line, which is JSON unless a subclass reads it differently."""
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise self.refusal(key, text) from None

    def to_json(self, value: Value) -> object:
        """Return ``value`` as in a configuration file."""
        return value

    def refusal(self, key: str, value: object) -> LayoutConfigError:
        """Return the error for a value that is not allowed."""
        return LayoutConfigError(key, f"{quoted_value(value)} is not {self.allowed}")


class Integer(Check[int]):
    """An integer; not a boolean.

    :ivar first: the least value
    :ivar last: the greatest value
    """

    def __init__(self, first: int, last: int = LARGEST_INTEGER) -> None:
        self.first = first
        self.last = last
        self.allowed = f"an integer from {first} to {last}"

    def __call__(self, key: str, value: object) -> int:
        if type(value) is not int or not self.first <= value <= self.last:
            raise self.refusal(key, value)
        return value


class Boolean(Check[bool]):
    """``true`` or ``false``."""

    allowed = "true or false"

    def __call__(self, key: str, value: object) -> bool:
        if type(value) is not bool:
            raise self.refusal(key, value)
        return value


class Text(Check[str]):
    """A string that UTF-8 can encode.

    :ivar empty: whether it may be empty
    :ivar without: the characters that it may not contain, with their names for messages
    """

    def __init__(self, *, empty: bool = True, without: Mapping[str, str] | None = None) -> None:
        self.empty = empty
        self.without = dict(without or {})
        self.allowed = "a string" if empty else "a string of at least one character"
        if self.without:
            self.allowed += f" without {', '.join(self.without.values())}"

    def __call__(self, key: str, value: object) -> str:
        if not isinstance(value, str) or not (value or self.empty) or any(c in value for c in self.without):
            raise self.refusal(key, value)
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise LayoutConfigError(key, f"{quoted(value)} contains an unpaired surrogate") from None
        return value

    def from_text(self, key: str, text: str) -> str:
        """Return ``text``, or the value of a quoted JSON string."""
        if re.fullmatch(r'".*"', text, re.DOTALL):
            try:
                return str(json.loads(text))
            except ValueError:
                pass
        return text


class Choice(Text):
    """One of several words; case-sensitive.

    :ivar choices: the words
    """

    def __init__(self, choices: Sequence[str]) -> None:
        super().__init__()
        self.choices = tuple(choices)
        self.allowed = f"one of {', '.join(choices)}"

    def __call__(self, key: str, value: object) -> str:
        if not isinstance(value, str) or value not in self.choices:
            raise self.refusal(key, value)
        return value


def parameter(check: Check[Value], doc: str, default: Value = REQUIRED) -> Value:
    """Declare a field of a layout's dataclass.

    :param check: the check of its values
    :param doc: the meaning, for ``pressmark layouts`` and the documentation
    """
    return dataclasses.field(default=default, metadata={"check": check, "doc": doc})


# --- layouts ----------------------------------------------------------------------------------------------------------

# The longest file name in bytes, on nearly every file system.
NAME_MAX = 255

BatchErrors = Literal["raise", "none"]
ArrowColumn: TypeAlias = "ArrowArrayExportable | ArrowStreamExportable"

#: The layouts defined so far, by official name: each subclass of :class:`Layout` that has a name.
CLASSES: dict[str, type[Layout]] = {}


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A parameter of a layout.

    :ivar name: its name in Python
    :ivar key: its name in the specification and in settings
    :ivar default: its default; ``<required>`` without one
    :ivar check: the check of its value
    :ivar doc: its meaning, in one line
    """

    name: str
    key: str
    default: object
    check: Check[object]
    doc: str

    @property
    def required(self) -> bool:
        """Whether the parameter has no default."""
        return self.default is REQUIRED


@dataclasses.dataclass(frozen=True)
class Layout:
    """A mapping of identifiers to storage paths.

    Layouts are frozen, hashable, picklable, equal by configuration, cheap to create and safe to share between
    threads. An unknown parameter, a wrong type and a value out of range raise ``LayoutConfigError``. A class with a
    parameter but without the decorator :func:`dataclasses.dataclass` raises :exc:`TypeError` when it is used.

    A layout of one's own is a frozen dataclass with a :attr:`name` and the method :meth:`to_path`, and with
    :meth:`to_id` if it is reversible. Every subclass with a name is registered: :func:`pressmark.layout` accepts it.
    Commands find it by an entry point of the group ``pressmark.layouts`` with the same name.

    >>> import dataclasses, pressmark
    >>> @dataclasses.dataclass(frozen=True)
    ... class ByLength(pressmark.Layout):
    ...     name = "by-length"
    ...     def to_path(self, id: str) -> str:
    ...         return f"{len(id)}/{id}"
    >>> pressmark.layout("by-length").map(["a", "bcd"])
    ['1/a', '3/bcd']
    """

    #: The official name, as registries, configurations and command lines spell it.
    name: ClassVar[str]
    #: A description of its paths.
    summary: ClassVar[str] = ""
    #: Title of the document that defines the layout.
    specification: ClassVar[str] = ""
    #: Address of that document.
    url: ClassVar[str] = ""
    #: The parameters and paths for which :meth:`unmap_path` works.
    reversibility: ClassVar[str] = "never"
    #: Other names of this layout in configuration files.
    foreign_names: ClassVar[tuple[str, ...]] = ()
    #: The first character of its escapes, for messages.
    escape_mark: ClassVar[str] = "^"
    #: The four digits of an OCFL extension, accepted in place of the name.
    alias: ClassVar[str | None]

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if "to_id" in vars(cls) and "reversibility" not in vars(cls):
            cls.reversibility = "always"
        if not cls.summary:
            cls.summary = (vars(cls).get("__doc__") or "").strip().partition("\n")[0].rstrip(".")
        if "name" in vars(cls):
            cls.alias = cls.name[:4] if cls.name[:4].isdigit() else None
            CLASSES[cls.name] = cls

    def __new__(cls, *_args: Any, **parameters: Any) -> Self:
        if cls.to_path is Layout.to_path and cls._map_kernel is Layout._map_kernel:
            raise TypeError(f"{cls.__name__} does not define to_path")
        cls.check_names(parameters)
        return super().__new__(cls)

    @classmethod
    def check_names(cls, parameters: Iterable[str]) -> None:
        """Check names of parameters in snake_case.

        :raises LayoutConfigError: the layout has no such parameter
        """
        known = [field.name for field in cls._parameter_fields()]
        for name in parameters:
            if name not in known:
                raise unknown_key(name, known)

    def __post_init__(self) -> None:
        for parameter in self.parameters():
            value, shown = getattr(self, parameter.name), parameter_name(parameter.name)
            if value is REQUIRED:
                raise LayoutConfigError(shown, f"required by {self.name}: {parameter.check.allowed}")
            object.__setattr__(self, parameter.name, parameter.check(shown, value))
        self._check_together()

    def _check_together(self) -> None:
        """Raise ``LayoutConfigError`` for values that are not allowed together."""

    @property
    def reversible_when(self) -> str:
        """The paths for which :meth:`unmap_path` works under this configuration."""
        return self.reversibility

    @property
    def reversible(self) -> bool:
        """Whether :meth:`unmap_path` works for any path under this configuration."""
        return self.reversible_when != "never"

    @classmethod
    def parameters(cls) -> tuple[Parameter, ...]:
        """Return the parameters of the layout."""
        return tuple(
            Parameter(field.name, camel_case(field.name), field.default, field.metadata["check"], field.metadata["doc"])
            for field in cls._parameter_fields()
        )

    @classmethod
    def _parameter_fields(cls) -> tuple[dataclasses.Field[Any], ...]:
        """Return the fields of the dataclass; raise :exc:`TypeError` for one that is not a parameter."""
        # A decorator runs after __init_subclass__, so a class without it is noticed when it is used.
        for base in cls.__mro__:
            for name, value in vars(base).items() if "__dataclass_fields__" not in vars(base) else ():
                if isinstance(value, dataclasses.Field):
                    decorator = "@dataclasses.dataclass(frozen=True)"
                    raise TypeError(f"{base.__name__}.{name}: the class lacks {decorator}; add the decorator")
        fields = dataclasses.fields(cls)
        for field in fields:
            if "check" not in field.metadata:
                declaration = "parameter(check, meaning, default)"
                raise TypeError(f"{cls.__name__}.{field.name}: not a parameter; declare it as {declaration}")
        return fields

    @classmethod
    def read_config(cls, config: Mapping[str, object], _where: str) -> dict[str, object]:
        """Return the parameters of a ``config.json`` in snake_case.

        :param config: the content of the file, without ``extensionName``
        :param _where: the name of the file, for messages
        :raises LayoutConfigError: a parameter is unknown
        """
        names = {parameter.key: parameter.name for parameter in cls.parameters()}
        for key in config:
            if key not in names:
                raise unknown_key(key, names)
        return {names[key]: value for key, value in config.items()}

    @classmethod
    def read_settings(cls, settings: Iterable[str]) -> dict[str, object]:
        """Return the parameters of texts ``key=value`` in snake_case; keys are those of ``config.json``.

        :raises LayoutConfigError: a text is malformed, or a parameter is unknown
        """
        by_key = {parameter.key: parameter for parameter in cls.parameters()}
        found = {}
        for setting in settings:
            key, equals, text = setting.partition("=")
            if not (key and equals):
                raise LayoutConfigError("layout", f"{quoted(setting)}: expected KEY=VALUE")
            if key not in by_key:
                raise unknown_key(key, by_key)
            found[by_key[key].name] = by_key[key].check.from_text(key, text)
        return found

    def config(self) -> dict[str, object]:
        """Return the complete content of a ``config.json``: every parameter, in the specification's spelling."""
        config: dict[str, object] = {"extensionName": self.name}
        for parameter in self.parameters():
            config[parameter.key] = parameter.check.to_json(getattr(self, parameter.name))
        return config

    def __getstate__(self) -> dict[str, object]:
        """Return the parameters, without the kernels."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    # --- kernels ------------------------------------------------------------------------------------------

    def _map_kernel(self, kernels: ModuleType) -> Any:
        """Return the kernel that maps identifiers to paths, from the implementation ``kernels``."""
        from pressmark._kernels.python_kernel import MapKernel  # for layouts of one's own

        return MapKernel(kernels.ByteColumn, self.to_path)

    def _unmap_kernel(self, kernels: ModuleType) -> Any:
        """Return the kernel that maps paths to identifiers; called only if :attr:`reversible`."""
        from pressmark._kernels.python_kernel import UnmapKernel  # for layouts of one's own

        return UnmapKernel(kernels.ByteColumn, self.to_path, self.to_id)

    def to_path(self, id: str) -> str:
        """Return the path of one identifier; a layout of one's own defines this, callers use :meth:`map`.

        The result must depend on the identifier and the parameters only. Pressmark refuses an empty identifier before
        the call, and after it a path that is empty or absolute, has an empty segment, ``.`` or ``..``, or contains
        NUL.

        :param id: bytes that are not UTF-8 are the surrogates of :func:`os.fsdecode`
        :raises ValueError: the identifier has no path; the message becomes the reason of the ``IdentifierError``
        """
        raise NotImplementedError(f"{type(self).__name__} does not define to_path")

    def to_id(self, path: str) -> str:
        """Return the identifier of one path; a reversible layout of one's own defines this, callers use :meth:`unmap`.

        Pressmark accepts the identifier only if :meth:`to_path` returns ``path`` for it.

        :param path: bytes that are not UTF-8 are the surrogates of :func:`os.fsdecode`
        :raises ValueError: the path has no identifier; the message becomes the reason of the ``PathError``
        """
        raise NotImplementedError(f"{type(self).__name__} does not define to_id")

    def _bound_kernel(
        self, purpose: str, make: Callable[[ModuleType], Any], error: type[IdentifierError | PathError]
    ) -> BoundKernel:
        """Return the kernel of ``purpose``, created once for each layout object and implementation."""
        kernels = _kernels.active
        # Not a field: neither compared nor pickled. Two threads may create it twice, which is harmless.
        bound_kernels = self.__dict__.setdefault("_bound_kernels", {})
        key = (purpose, kernels.NAME)
        if key not in bound_kernels:
            bound_kernels[key] = BoundKernel(kernels, make(kernels), error, self)
        return cast("BoundKernel", bound_kernels[key])

    def _mapping(self) -> BoundKernel:
        return self._bound_kernel("map", self._map_kernel, IdentifierError)

    def _unmapping(self) -> BoundKernel:
        if not self.reversible:
            raise NotReversibleError(self.name)
        return self._bound_kernel("unmap", self._unmap_kernel, PathError)

    # --- identifiers to paths -----------------------------------------------------------------------------

    @overload
    def map(  # type: ignore[overload-overlap]  # str is Iterable[str], but first here
        self, values: str | bytes, on_error: Literal["raise"] = "raise", *, threads: int | None = None
    ) -> str: ...

    @overload
    def map(  # type: ignore[overload-overlap]
        self,
        values: str | bytes,
        on_error: BatchErrors,
        *,
        errors: ErrorList[IdentifierError] | None = None,
        threads: int | None = None,
    ) -> str | None: ...

    @overload
    def map(  # type: ignore[overload-overlap]
        self,
        values: LibraryColumn,
        on_error: BatchErrors = "raise",
        *,
        errors: ErrorList[IdentifierError] | None = None,
        threads: int | None = None,
    ) -> LibraryColumn: ...

    @overload
    def map(
        self,
        values: ArrowColumn,
        on_error: BatchErrors = "raise",
        *,
        errors: ErrorList[IdentifierError] | None = None,
        threads: int | None = None,
    ) -> StringColumn: ...

    @overload
    def map(
        self, values: Iterable[str | bytes], on_error: Literal["raise"] = "raise", *, threads: int | None = None
    ) -> list[str]: ...

    @overload
    def map(
        self,
        values: Iterable[str | bytes | None],
        on_error: BatchErrors,
        *,
        errors: ErrorList[IdentifierError] | None = None,
        threads: int | None = None,
    ) -> list[str | None]: ...

    def map(
        self,
        values: object,
        on_error: BatchErrors = "raise",
        *,
        errors: ErrorList[IdentifierError] | None = None,
        threads: int | None = None,
    ) -> object:
        """Return the path of an identifier, or the paths of many, in the same order.

        One identifier (``str`` or ``bytes``) gives one path, a list or other iterable a list, and an Arrow column a
        column; nulls stay null. A column of pyarrow, polars or pandas gives one of the same library, a pandas series
        with the same index; any other object with ``__arrow_c_array__`` or ``__arrow_c_stream__`` (the Arrow PyCapsule
        interface), such as those of DuckDB and nanoarrow, gives a :class:`~pressmark.StringColumn`, which it can read.
        Columns are of type utf8, large_utf8, utf8_view, their binary counterparts, or a dictionary of these. Without a
        native build they require pyarrow.

        >>> import pressmark
        >>> layout = pressmark.layout("pairtree")
        >>> layout.map("ark:/13030/xt12t3"), layout.map(["a", "b"])
        ('ar/k+/=1/30/30/=x/t1/2t/3', ['a', 'b'])
        >>> errors = []
        >>> layout.map(["a", ""], on_error="none", errors=errors), errors[0].index
        (['a', None], 1)

        :param on_error: ``"raise"`` an error with the ``index`` of the first identifier without a path, or return
            :data:`None`, in a column null, for each (``"none"``). Then an item of a list may be :data:`None`, as a null
            of a column: it stays :data:`None`, and is no error
        :param errors: a list that receives the error of each identifier without a path, under ``"none"``
        :param threads: for columns: maximum number of threads; :data:`None` for one per core; a short column uses one
        :raises IdentifierError: an identifier has no path, under ``"raise"``
        :raises ColumnError: the column is malformed or is not text; or no library can read it
        :raises TypeError: an item is neither ``str`` nor ``bytes``; or it is :data:`None`, under ``"raise"``
        :raises ValueError: ``on_error`` is unknown
        """
        return self._mapping().values(values, on_error, errors, threads)

    def map_id(self, id: str | bytes) -> str:
        """Return the path of an identifier: relative, ``/``-separated, without a trailing ``/``.

        :raises IdentifierError: the identifier has no path under this layout
        """
        return self._mapping().one(id)

    @overload
    def map_ids(self, ids: Iterable[str | bytes], on_error: Literal["raise"] = "raise") -> list[str]: ...

    @overload
    def map_ids(self, ids: Iterable[str | bytes | None], on_error: Literal["none"]) -> list[str | None]: ...

    def map_ids(
        self, ids: Iterable[str | bytes | None], on_error: BatchErrors = "raise"
    ) -> list[str] | list[str | None]:
        """Return the paths of many identifiers as a list, as :meth:`map` does; a single string is an error.

        :raises IdentifierError: an identifier has no path, under ``"raise"``
        :raises TypeError: an item is neither ``str`` nor ``bytes``
        :raises ValueError: ``on_error`` is unknown
        """
        return self._mapping().many(ids, on_error)

    # --- paths to identifiers -----------------------------------------------------------------------------

    @overload
    def unmap(  # type: ignore[overload-overlap]  # str is Iterable[str], but first here
        self, values: str | bytes, on_error: Literal["raise"] = "raise", *, threads: int | None = None
    ) -> str: ...

    @overload
    def unmap(  # type: ignore[overload-overlap]
        self,
        values: str | bytes,
        on_error: BatchErrors,
        *,
        errors: ErrorList[PathError] | None = None,
        threads: int | None = None,
    ) -> str | None: ...

    @overload
    def unmap(  # type: ignore[overload-overlap]
        self,
        values: LibraryColumn,
        on_error: BatchErrors = "raise",
        *,
        errors: ErrorList[PathError] | None = None,
        threads: int | None = None,
    ) -> LibraryColumn: ...

    @overload
    def unmap(
        self,
        values: ArrowColumn,
        on_error: BatchErrors = "raise",
        *,
        errors: ErrorList[PathError] | None = None,
        threads: int | None = None,
    ) -> StringColumn: ...

    @overload
    def unmap(
        self, values: Iterable[str | bytes], on_error: Literal["raise"] = "raise", *, threads: int | None = None
    ) -> list[str]: ...

    @overload
    def unmap(
        self,
        values: Iterable[str | bytes | None],
        on_error: BatchErrors,
        *,
        errors: ErrorList[PathError] | None = None,
        threads: int | None = None,
    ) -> list[str | None]: ...

    def unmap(
        self,
        values: object,
        on_error: BatchErrors = "raise",
        *,
        errors: ErrorList[PathError] | None = None,
        threads: int | None = None,
    ) -> object:
        """Return the identifier of a path, or the identifiers of many, in the same order: the inverse of :meth:`map`.

        The inverse is strict: only a path that :meth:`map` returns is accepted. Identifiers need not be UTF-8: in
        ``str``, other bytes are the surrogates of :func:`os.fsdecode`; a column with such identifiers is binary.

        :raises PathError: the layout does not map any identifier to a path, or the path lacks part of the identifier,
            under ``"raise"``
        :raises NotReversibleError: the layout has no inverse
        :raises ColumnError: the column is malformed or is not text; or no library can read it
        :raises TypeError: an item is neither ``str`` nor ``bytes``
        :raises ValueError: ``on_error`` is unknown
        """
        return self._unmapping().values(values, on_error, errors, threads)

    def unmap_path(self, path: str | bytes) -> str:
        """Return the identifier of a path; bytes that are not UTF-8 become the surrogates of ``os.fsdecode``.

        :raises PathError: the layout does not map any identifier to ``path``, or ``path`` lacks part of the identifier
        :raises NotReversibleError: the layout has no inverse
        """
        return self._unmapping().one(path)

    # --- files ---------------------------------------------------------------------------------------------

    def map_file(
        self,
        source: ItemFile,
        destination: ItemFile,
        *,
        unmap: bool = False,
        column: str | int | None = None,
        format: Literal["lines", "csv", "tsv", "jsonl", "parquet"] | None = None,
        header: bool | None = None,
        result: str | None = None,
        delimiter: str | None = None,
        crlf: Crlf | None = None,
        null: bool = False,
        both: bool = False,
        on_error: LineErrors = "raise",
        threads: int | None = None,
        errors: ErrorList[IdentifierError] | ErrorList[PathError] | None = None,
        progress: Progress | None = None,
    ) -> LineCounts:
        """Write the paths of the identifiers in a file to another file, or with ``unmap`` the identifiers of its paths.

        A file is a list of lines or, with ``column``, a table: CSV, TSV, JSON lines or Parquet, of which each row is
        written with its result as a new last column. A table is written in its own format; text formats keep their
        bytes, Parquet its schema, metadata and compression. Memory use is constant.

        >>> import io, pressmark
        >>> layout, paths = pressmark.layout("pairtree"), io.BytesIO()
        >>> layout.map_file(io.BytesIO(b"id,title\\na:1,One\\n"), paths, format="csv", column="id").items
        1
        >>> paths.getvalue()
        b'id,title,path\\na:1,One,a+/1\\n'

        :param source: a path, decompressed if it ends in ``.gz``; or a binary stream, for Parquet a seekable one
        :param destination: a path, compressed if it ends in ``.gz``, replaced when complete; or a binary stream
        :param unmap: ``source`` has paths; the result of each is its identifier
        :param column: the column of the items: its name, or its number from 1; for JSON lines, a key
        :param format: the format of ``source``; :data:`None` decides by its suffix, lines for other names
        :param header: the first row of CSV and TSV has the column names; required if ``column`` is a number
        :param result: the name of the new column; :data:`None` for ``path`` or ``identifier``
        :param delimiter: the separator of CSV; :data:`None` for a comma
        :param crlf: for lines: ``strip`` carriage returns before line feeds and byte-order marks, or ``keep`` both
        :param null: NUL ends items, instead of a line feed
        :param both: for lines: write identifier, TAB, path
        :param on_error: ``"raise"`` an error, after all earlier items; ``"skip"`` the row; or write no result for it
            (``"none"``): an empty line or field, null in JSON lines and Parquet
        :param threads: maximum number of threads; :data:`None` for one per core
        :param errors: a list that receives the error of each failed item, in order; not under ``"raise"``
        :param progress: shows the items and bytes read so far, after each block
        :raises IdentifierError: an item failed, under ``"raise"`` (with ``unmap`` :exc:`PathError`); its ``index``
            counts lines with a header, or rows of Parquet, from 0. Also a row that cannot be written as empty
        :raises NotReversibleError: the layout has no inverse, with ``unmap``
        :raises FormatError: the file has another format or lacks the column, the arguments contradict each other, or
            Parquet needs pyarrow
        :raises TableError: the file is malformed or damaged
        :raises OSError: a file cannot be read or written
        :raises ValueError: ``on_error`` is unknown
        """
        # Few programs map files.
        from pressmark.layouts.streams import name_of, open_destination, open_source, pass_lines
        from pressmark.tabular.formats import check_output, chosen_format, open_list

        bound = self._unmapping() if unmap else self._mapping()
        name = name_of(source)
        options: dict[str, Any] = {"header": header, "result": result, "delimiter": delimiter, "crlf": crlf}
        chosen = chosen_format(name, column=column, format=format, null=null, both=both, **options)
        check_output(name_of(destination), chosen)
        with open_source(source) as stream, open_destination(destination) as sink:
            if column is None:
                end = b"\0" if null else b"\n"
                lines: Any = open_list(stream, name=name, delimiter=end, crlf=crlf, json_lines=format is None)
                return pass_lines(bound, lines, sink, end, threads, on_error, both, unmap, errors, progress)
            from pressmark.layouts.table_mapping import map_table  # most files are lists
            from pressmark.tabular.columns import Column

            table = Column(column, header, result or ("identifier" if unmap else "path"), delimiter)
            return map_table(bound, stream, sink, name, chosen, table, on_error, threads, errors, progress)
