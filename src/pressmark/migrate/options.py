"""The options of a migration, completed and checked against source and destination."""

from __future__ import annotations

import dataclasses
import inspect
import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, cast

from pressmark import stores
from pressmark.buckets.address import absolute, is_address, is_below
from pressmark.errors import MigrationError, StoreError, quoted
from pressmark.layouts import Layout, Pairtree, Vitro, as_layout, layout_from_config
from pressmark.option_names import option
from pressmark.paths import PROFILES
from pressmark.stores import Store
from pressmark.stores.exceptions import store_errors
from pressmark.stores.registry import detect_kind, names_at, store_class

if TYPE_CHECKING:
    from pressmark.stores.bags.bag_folder import BagFolder
    from pressmark.stores.ocfl.root import OcflRoot

__all__ = [
    "COPY_MODES",
    "IMPROPER",
    "LINKS",
    "TREES",
    "VERIFICATIONS",
    "Options",
    "complete_options",
    "layout_config",
    "make_options",
    "nearest_existing",
    "version_name",
]

#: How files get to the destination: ``auto`` is the cheapest of the others that is possible.
COPY_MODES = ("auto", "rename", "reflink", "copy", "hardlink")
#: What is compared with the digests of the source: nothing, the bytes while they are copied, also the files read again,
#: or also the digests that a server keeps.
VERIFICATIONS = ("none", "copy", "reread", "stored")
#: What to do with invalid source objects: ``skip`` them, ``take`` the readable ones, or ``refuse`` the plan.
IMPROPER = ("skip", "take", "refuse")
#: What to do with symbolic links in objects: refuse the object, or copy their targets.
LINKS = ("refuse", "follow")
#: The directory in a source that contains all objects, and that layouts do not name.
TREES = {"pairtree": b"pairtree_root", "vitro": b"file_storage_root"}

# Options for creating a store; an existing store records them.
_CREATION = {
    "pairtree": {"prefix"},
    "vitro": {"namespaces"},
    "ocfl": {"version", "description"},
    "bags": {"identifiers"},
}
# Modes that need one file system.
_SHARING = ("rename", "hardlink", "reflink")
# Stores of these kinds accept the directory of an object from a store of the same kind.
_VERBATIM = frozenset({"pairtree", "ocfl", "bags"})


@dataclass(frozen=True)
class Options:
    """The options of a migration; picklable, with an exact representation in JSON.

    :ivar source: absolute path of the source, or its address
    :ivar source_kind: one of :data:`pressmark.stores.KINDS`
    :ivar source_options: options for opening the source
    :ivar source_layout: an OCFL ``config.json`` mapping that replaces the layout of the source
    :ivar destination: absolute path of the destination, or its address
    :ivar to: the kind of the destination
    :ivar layout: the ``config.json`` mapping of the destination's layout; :data:`None` if the kind has only one
    :ivar destination_options: options for creating and opening the destination: ``prefix``, ``namespaces``,
        ``version``, …
    :ivar copy_mode: one of :data:`COPY_MODES`
    :ivar verify: ``none``; ``copy``: compare digests while copying; ``reread``: also read the destination again;
        ``stored``: also compare the digests that the server of the destination keeps
    :ivar move: remove sources after verification
    :ivar replace: replace existing objects with different content
    :ivar profile: the naming rules of the target system, see :mod:`pressmark.paths`
    :ivar links: symbolic links in objects: ``refuse`` or ``follow``
    :ivar algorithms: digest algorithms of new bags
    :ivar improper: invalid source objects: ``skip`` them and report them as ``source_invalid``, ``take`` the readable
        ones, or ``refuse`` to start
    :ivar drop_empty_directories: with ``move``, remove sources with empty directories, which the destination does not
        support
    :ivar version: the version of OCFL objects to migrate to other kinds of stores, such as ``v2``; :data:`None` for the
        newest of each
    """

    source: str
    source_kind: str
    destination: str
    to: str
    layout: Mapping[str, object] | None = None
    source_layout: Mapping[str, object] | None = None
    source_options: Mapping[str, object] = field(default_factory=dict)
    destination_options: Mapping[str, object] = field(default_factory=dict)
    copy_mode: str = "auto"
    verify: str = "copy"
    move: bool = False
    replace: bool = False
    profile: str = "unix"
    links: str = "refuse"
    algorithms: tuple[str, ...] = ("sha512",)
    improper: str = "skip"
    drop_empty_directories: bool = False
    version: str | None = None

    def record(self) -> dict[str, object]:
        """Return the JSON object of the options.

        Two options are absent at their defaults, because the key of a run includes this object.
        """
        record = asdict(self)
        for added in ("drop_empty_directories", "version"):
            if not record[added]:
                del record[added]
        return {**record, "algorithms": list(self.algorithms)}

    @classmethod
    def from_record(cls, record: Mapping[str, object]) -> Options:
        """Return the options of a JSON object.

        :raises TypeError: a key is missing or unknown
        """
        fields: dict[str, Any] = {**record}
        return cls(**{**fields, "algorithms": tuple(fields["algorithms"])})

    @property
    def is_from_bucket(self) -> bool:
        """Whether the source is in object storage."""
        return is_address(self.source)

    @property
    def is_to_bucket(self) -> bool:
        """Whether the destination is in object storage."""
        return is_address(self.destination)

    def local_roots(self, *sides: str) -> list[str]:
        """Return the directories of source or destination, or of both, that are on a disk."""
        return [path for path in (getattr(self, side) for side in sides) if not is_address(path)]

    @property
    def verbatim(self) -> bool:
        """Whether the destination stores the directories of source objects unchanged."""
        return self.source_kind == self.to and self.to in _VERBATIM

    def same_file_system(self) -> bool:
        """Return whether source and destination are on one file system.

        :raises OSError: the source cannot be read
        """
        if self.is_from_bucket or self.is_to_bucket:
            return False
        return os.stat(self.source).st_dev == os.stat(nearest_existing(self.destination)).st_dev

    def renames(self) -> bool:
        """Return whether objects are moved by renaming their directories.

        ``auto`` renames if sources are to be removed and the destination stores objects unchanged.

        :raises OSError: the source cannot be read
        """
        if self.copy_mode == "auto":
            return self.move and self.verbatim and self.same_file_system()
        return self.copy_mode == "rename"

    def destination_layout(self) -> Layout | None:
        """Return the destination's layout; :data:`None` without the option."""
        return None if self.layout is None else layout_from_config(self.layout)

    def resulting_layout(self) -> Layout | None:
        """Return the layout of a destination created with these options.

        :data:`None` for a folder of bags that are named by their cleaned identifiers.

        :raises StoreError: a namespace cannot be declared
        :raises LayoutConfigError: a setting of the layout is not for stores
        """
        layout = self.destination_layout()
        options: Mapping[str, Any] = self.destination_options  # checked by the store that takes them
        if self.to == "pairtree":
            pairtree = layout if isinstance(layout, Pairtree) else Pairtree()
            pairtree.check_plain()
            return Pairtree(
                options.get("prefix") or pairtree.prefix,
                options.get("encapsulation", pairtree.encapsulation),
                pairtree.prefix_required,
            )
        if self.to == "vitro":
            from pressmark.stores.vitro.namespaces import with_declared

            named = dict(layout.namespaces) if isinstance(layout, Vitro) else {}
            return Vitro(with_declared(os.fsencode(self.destination), named, options.get("namespaces", ())))
        return layout

    def open_source(self) -> Store:
        """Open the source.

        :raises StoreError: it cannot be read
        """
        options = dict(self.source_options)
        if self.source_layout is not None:
            options["layout"] = layout_from_config(self.source_layout)
        store: Store = store_class(self.source_kind)(self.source, **options)
        return store

    def open_destination(self) -> Store:
        """Open the existing destination.

        :raises StoreError: the destination does not exist, or cannot be read
        """
        store: Store = store_class(self.to)(self.destination, **self._opening())
        if self.layout is not None and self.to in ("ocfl", "bags"):
            cast("OcflRoot | BagFolder", store).layout_is_given = True
        return store

    def create_destination(self) -> Store:
        """Create the destination, or open an existing one.

        :raises StoreError: the destination cannot be created, or exists with another layout
        """
        if self.destination_is_there():
            store = self.open_destination()
            why = self.difference(store)
            if why is not None:
                raise StoreError(self.destination, why)
            if self.is_to_bucket:
                with store_errors(self.destination), store._run_directory():
                    pass  # the server is fit
            return store
        options = {key: value for key, value in self.destination_options.items() if key in _CREATION[self.to]}
        layout = self.destination_layout()
        created: Store = store_class(self.to).create(self.destination, layout, **options, **self._opening())
        return created

    def destination_is_there(self) -> bool:
        """Return whether the destination is a store; an empty or missing directory is not.

        :raises StoreError: the directory contains something other than a store of the kind
        """
        try:
            names = self._destination_names()
        except FileNotFoundError:
            return False
        except NotADirectoryError:
            raise StoreError(self.destination, "not a directory; choose another destination") from None
        except OSError as error:
            what = f"cannot be read ({error.strerror}); run as a user with read access, or choose another destination"
            raise StoreError(self.destination, what) from error
        if names <= store_class(self.to).unfinished_names:
            return False  # a killed run may have been creating it; creation continues
        if self.is_to_bucket:
            return True  # opening it says what is there
        try:
            found = stores.kind_of(self.destination)
        except StoreError as error:
            what = f"not empty, and not a store ({error.reason.partition(';')[0]})"
            raise StoreError(self.destination, f"{what}; choose another destination") from None
        if found != self.to:
            raise StoreError(self.destination, f"a store of kind {found}, not {self.to}; choose another destination")
        return True

    def _destination_names(self) -> frozenset[bytes]:
        """Return the names in the directory of the destination, or at its address.

        :raises StoreError: it cannot be read, or stores of the kind cannot be in object storage
        :raises OSError: the directory cannot be read
        """
        path = os.fsencode(self.destination)
        if not self.is_to_bucket:
            return frozenset(os.listdir(path))
        if self.to != "ocfl":
            what = f"a store of kind {self.to} cannot be written in object storage"
            raise StoreError(self.destination, f"{what}; choose an OCFL storage root ({option('to', 'ocfl')})")
        with store_errors(path):
            return frozenset(names_at(path))

    def unknown(self) -> str | None:
        """Return the first unknown option of source or destination; :data:`None` if all are known."""
        sides: tuple[tuple[str, str, set[str], Callable[..., Store]], ...] = (
            (
                "source",
                self.source_kind,
                {*self.source_options, *(["layout"] if self.source_layout else [])},
                store_class(self.source_kind),
            ),
            ("destination", self.to, set(self.destination_options), store_class(self.to).create),
        )
        for name, kind, names, call in sides:
            known = set(inspect.signature(call).parameters) - {"path"}
            if unknown := sorted(names - known):
                what = "source_layout" if unknown[0] == "layout" else f"option {unknown[0]!r}"
                return f"{what} is unknown for a {name} of kind {kind}; known options: {', '.join(sorted(known))}"
        return None

    def _opening(self) -> dict[str, Any]:
        """Return the options for opening the destination."""
        opening: dict[str, Any] = {
            key: value for key, value in self.destination_options.items() if key not in _CREATION[self.to]
        }
        if self.to == "bags":
            opening.setdefault("algorithms", self.algorithms)
        if opening.get("content_paths") is not None and not isinstance(opening["content_paths"], Layout):
            opening["content_paths"] = layout_from_config(opening["content_paths"])
        layout = self.destination_layout()
        if isinstance(layout, Pairtree):
            opening.setdefault("encapsulation", layout.encapsulation)
        return opening

    def difference(self, store: Store) -> str | None:
        """Return how an existing destination contradicts these options; :data:`None` if it does not.

        :raises StoreError: the destination is read-only, or its objects are not where its layout puts them
        """
        store.refuse_changes()
        if self.to == "pairtree":
            wanted, found = self.resulting_layout(), store.layout
            assert isinstance(wanted, Pairtree)
            assert isinstance(found, Pairtree)
            if wanted.prefix == found.prefix:
                return None
            return (
                f"its prefix is {found.prefix!r}, not {wanted.prefix!r}; use that prefix, or choose another destination"
            )
        if self.to == "vitro":
            wanted, found = self.resulting_layout(), store.layout
            assert isinstance(wanted, Vitro)
            assert isinstance(found, Vitro)
            if set(dict(wanted.namespaces).values()) <= set(dict(found.namespaces).values()):
                return None
            return "it lacks some of the namespaces; declare them there first, or choose another destination"
        if self.to == "bags":
            own = cast("BagFolder", store).identifiers
            chosen = self.destination_options.get("identifiers", own)
            if chosen != own:
                return f"its identifiers come from {own!r}, not {chosen!r}; choose another destination"
        layout = self.destination_layout()
        if layout is None:
            cast("OcflRoot | BagFolder", store).refuse_misplaced()
        if layout is None or layout == store.layout:
            return None
        own = "none" if store.layout is None else json.dumps(store.layout.config())
        return f"its layout is {own}, not {json.dumps(layout.config())}; choose another destination"


def make_options(
    source: str | os.PathLike[str],
    destination: str | os.PathLike[str],
    *,
    to: str,
    layout: Layout | str | None = None,
    source_kind: str | None = None,
    source_layout: Layout | str | None = None,
    source_options: Mapping[str, object] | None = None,
    destination_options: Mapping[str, object] | None = None,
    copy_mode: str = "auto",
    verify: str = "copy",
    move: bool = False,
    replace: bool = False,
    profile: str = "unix",
    links: str = "refuse",
    algorithms: Iterable[str] = ("sha512",),
    improper: str = "skip",
    drop_empty_directories: bool = False,
    version: str | int | None = None,
) -> Options:
    """Return the options of a migration, completed and checked against each other, source and destination.

    See :class:`Options` for the parameters.

    :raises MigrationError: options contradict each other
    :raises StoreError: the source is not a store, or the destination cannot be one
    :raises LayoutConfigError: a layout is invalid
    :raises ValueError: the value of an option is unknown
    """
    return complete_options(
        Options(
            source=absolute(source),
            source_kind=source_kind or detect_kind(os.fspath(source), "source_kind"),
            destination=absolute(destination),
            to=to,
            layout=layout_config(layout),
            source_layout=layout_config(source_layout),
            source_options=dict(source_options or {}),
            destination_options=dict(destination_options or {}),
            copy_mode=copy_mode,
            verify=verify,
            move=move,
            replace=replace,
            profile=profile,
            links=links,
            algorithms=tuple(algorithms),
            improper=improper,
            drop_empty_directories=drop_empty_directories,
            version=None if version is None else version_name(version),
        )
    )


def complete_options(options: Options) -> Options:
    """Return options, completed and checked against each other, source and destination.

    :raises MigrationError: options contradict each other
    :raises StoreError: the source is not a store, or the destination cannot be one
    :raises LayoutConfigError: a layout is invalid
    :raises ValueError: the value of an option is unknown
    """
    for name, value, known in (
        ("to", options.to, stores.KINDS),
        ("copy_mode", options.copy_mode, COPY_MODES),
        ("verify", options.verify, VERIFICATIONS),
        ("profile", options.profile, tuple(PROFILES)),
        ("links", options.links, LINKS),
        ("improper", options.improper, IMPROPER),
    ):
        if value not in known:
            raise ValueError(f"{name}={value!r}: expected one of {', '.join(known)}")
    unknown = options.unknown()
    if unknown is not None:
        raise ValueError(unknown)
    options.open_source()
    options = _completed(options)
    why = _contradiction(options)
    if why is not None:
        raise MigrationError(options.source, options.destination, why)
    return options


def version_name(version: str | int) -> str:
    """Return the name of a version without zero-padding.

    :param version: a name or a number, such as ``v2``, ``v0002`` or 2
    :raises ValueError: it is neither
    """
    from pressmark.stores.ocfl.inventory import version_number

    number = version_number(f"v{str(version).removeprefix('v')}")
    if number is None:
        raise ValueError(f"version {quoted(str(version))}: expected the name of a version, such as v2")
    return f"v{number[0]}"


def layout_config(layout: Layout | str | None) -> dict[str, object] | None:
    """Return the ``config.json`` mapping of an argument that is a layout or its name.

    :raises LayoutConfigError: no layout has this name
    """
    found = as_layout(layout)
    return None if found is None else found.config()


def _completed(options: Options) -> Options:
    """Add the layout of an existing destination."""
    if not options.destination_is_there():
        return options
    store = options.open_destination()
    why = options.difference(store)
    if why is not None:
        raise MigrationError(options.source, options.destination, f"the destination exists, and {why}")
    if options.layout is None and store.layout is not None:
        options = dataclasses.replace(options, layout=store.layout.config())
    return options


def _contradiction(options: Options) -> str | None:
    """Return how options contradict each other; :data:`None` if they do not."""
    source, destination = (
        path if is_address(path) else os.path.realpath(path) for path in (options.source, options.destination)
    )
    if source == destination:
        return "source and destination are the same directory; choose another destination"
    if is_below(destination, source):
        return "the destination is inside the source; choose another destination"
    if is_below(source, destination):
        return "the source is inside the destination; choose another destination"
    if options.version is not None and options.source_kind != "ocfl":
        return f"a store of kind {options.source_kind} has no versions; omit {option('version')}"
    if options.version is not None and options.to == "ocfl":
        return f"a migration from OCFL to OCFL keeps all versions of each object; omit {option('version')}"
    chosen = sorted({"message", "user"}.intersection(options.destination_options))
    if chosen and options.verbatim:
        return f"versions of OCFL objects keep their own {' and '.join(chosen)}; omit the option"
    if options.to == "ocfl" and options.layout is None:
        return f"an OCFL storage root needs a layout; specify one, such as {option('layout', '0003')}"
    layout = options.destination_layout()
    if layout is not None and options.to in ("pairtree", "vitro") and layout.name != options.to:
        return f"a destination of kind {options.to} has the layout {options.to}, not {layout.name}"
    if layout is not None and options.to == "ocfl":
        from pressmark.stores.ocfl.declarations import VERSIONS, refused_layout

        why = refused_layout(layout, str(options.destination_options.get("version", VERSIONS[0])))
        if why is not None:
            return why
    mode = options.copy_mode
    if mode == "hardlink" and options.to == "ocfl":
        return f"OCFL forbids hard links (E090); use {option('copy_mode', 'auto')}"
    if mode == "rename" and not options.verbatim:
        return f"rename cannot convert {options.source_kind} objects to {options.to}; use {option('copy_mode', 'auto')}"
    if mode == "rename" and not options.move:
        how = f"add {option('move', True)}, or use {option('copy_mode', 'auto')}"
        return f"rename removes the objects from the source; {how}"
    if mode in _SHARING and (options.is_from_bucket or options.is_to_bucket):
        return f"object storage does not support {mode}; use {option('copy_mode', 'auto')}"
    if mode in _SHARING and not options.same_file_system():
        return f"{mode} works only within one file system; use {option('copy_mode', 'auto')}"
    if options.verify == "stored" and not options.is_to_bucket:
        return f"a disk keeps no digests; use {option('verify', 'reread')}"
    if options.move and options.verify == "none" and not options.renames():
        return f"{option('move', True)} requires verification; use {option('verify', 'copy')}"
    return None


def nearest_existing(path: str) -> str:
    """Return a path, or the nearest existing directory above it."""
    path = os.path.abspath(path)
    while not os.path.isdir(path):
        above = os.path.dirname(path)
        if above == path:
            break
        path = above
    return path
