"""The options of a migration: from where, to where, and how; completed, and checked against what is there."""

from __future__ import annotations

import dataclasses
import inspect
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from pressmark import stores
from pressmark.errors import MigrationError, StoreError
from pressmark.layouts import Layout, Pairtree, Vitro, layout_from_config
from pressmark.layouts import layout as layout_by_name
from pressmark.paths import PROFILES
from pressmark.stores import Store
from pressmark.stores.bags.bag_folder import BagFolder
from pressmark.stores.ocfl.declarations import VERSIONS
from pressmark.stores.ocfl.layout_files import refused_layout
from pressmark.stores.vitro.namespaces import with_declared

__all__ = [
    "COPY_MODES",
    "IMPROPER",
    "LINKS",
    "TREES",
    "VERIFICATIONS",
    "Options",
    "existing",
    "is_within",
    "make_options",
]

COPY_MODES = ("auto", "rename", "reflink", "copy", "hardlink")
VERIFICATIONS = ("none", "copy", "reread")
IMPROPER = ("skip", "take", "refuse")
LINKS = ("refuse", "follow")
#: The directory of a source that its objects are in, and that layouts do not name.
TREES = {"pairtree": b"pairtree_root", "vitro": b"file_storage_root"}

# What is said when a store is made, and read from it afterwards.
_CREATION = {
    "pairtree": {"prefix"},
    "vitro": {"namespaces"},
    "ocfl": {"version", "description"},
    "bags": {"identifiers"},
}
# A store of these kinds takes an object of its own kind as it is, by moving its directory.
_VERBATIM = frozenset({"pairtree", "ocfl", "bags"})


@dataclass(frozen=True)
class Options:
    """Everything that decides what a migration does; picklable, and the same in JSON.

    :ivar source: the source's directory, absolute
    :ivar source_kind: one of :data:`pressmark.stores.KINDS`
    :ivar source_options: for opening it
    :ivar source_layout: an OCFL ``config.json`` mapping that places the source's objects instead of its own
    :ivar destination: the destination's directory, absolute
    :ivar to: its kind
    :ivar layout: the ``config.json`` mapping of the destination's layout; :data:`None` where the kind has only one
    :ivar destination_options: for creating and opening it: ``prefix``, ``namespaces``, ``version``, …
    :ivar copy_mode: one of :data:`COPY_MODES`
    :ivar verify: ``none``, ``copy``: compare what was copied with what is known, ``reread``: and read it again
    :ivar move: remove sources after verification
    :ivar replace: objects that are there and different
    :ivar profile: whose rules names must keep, see :mod:`pressmark.paths`
    :ivar links: symbolic links in objects: ``refuse`` or ``follow``
    :ivar algorithms: of a folder of bags
    :ivar improper: objects of the source that are not as its specification says: ``skip`` them and report them as
        ``source_invalid``, ``take`` them where they can be read, or ``refuse`` to start
    :ivar drop_empty_directories: with ``move``, remove sources although the destination has no place for their empty
        directories
    """

    source: str
    source_kind: str
    destination: str
    to: str
    layout: Mapping[str, Any] | None = None
    source_layout: Mapping[str, Any] | None = None
    source_options: Mapping[str, Any] = field(default_factory=dict)
    destination_options: Mapping[str, Any] = field(default_factory=dict)
    copy_mode: str = "auto"
    verify: str = "copy"
    move: bool = False
    replace: bool = False
    profile: str = "unix"
    links: str = "refuse"
    algorithms: tuple[str, ...] = ("sha512",)
    improper: str = "skip"
    drop_empty_directories: bool = False

    def record(self) -> dict[str, Any]:
        """Return them as they stand in JSON."""
        return asdict(self)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Options:
        """Return the options of a JSON object.

        :raises TypeError: it is none
        """
        return cls(**{**record, "algorithms": tuple(record["algorithms"])})

    def text(self) -> str:
        """Return them as one line, the same for the same options."""
        return json.dumps(self.record(), sort_keys=True)

    @property
    def verbatim(self) -> bool:
        """Whether the destination takes objects of the source as they are, directory by directory."""
        return self.source_kind == self.to and self.to in _VERBATIM

    def same_file_system(self) -> bool:
        """Return whether source and destination, or what is to hold it, are on one file system.

        :raises OSError: the source cannot be looked at
        """
        return os.stat(self.source).st_dev == os.stat(existing(self.destination)).st_dev

    def renames(self) -> bool:
        """Return whether objects are moved by renaming them: no byte of them goes anywhere.

        ``auto`` does so where sources are to be removed and the destination takes them as they are.

        :raises OSError: the source cannot be looked at
        """
        if self.copy_mode == "auto":
            return self.move and self.verbatim and self.same_file_system()
        return self.copy_mode == "rename"

    def destination_layout(self) -> Layout | None:
        """Return the destination's layout, if one was given."""
        return None if self.layout is None else layout_from_config(self.layout)

    def places(self) -> Layout | None:
        """Return what maps identifiers to places in a destination that is made as these options say.

        :data:`None` for a folder of bags that are called by their cleaned identifiers.

        :raises StoreError: a namespace cannot be declared
        """
        layout = self.destination_layout()
        said = self.destination_options
        if self.to == "pairtree":
            given = layout if isinstance(layout, Pairtree) else Pairtree()
            return Pairtree(
                said.get("prefix") or given.prefix,
                said.get("encapsulation", given.encapsulation),
                given.prefix_required,
            )
        if self.to == "vitro":
            named = dict(layout.namespaces) if isinstance(layout, Vitro) else {}
            return Vitro(with_declared(os.fsencode(self.destination), named, said.get("namespaces", ())))
        return layout

    def open_source(self) -> Store:
        """Open the source.

        :raises StoreError: it cannot be read
        """
        layout = {} if self.source_layout is None else {"layout": layout_from_config(self.source_layout)}
        return stores.open(self.source, self.source_kind, **layout, **self.source_options)

    def open_destination(self, **options: Any) -> Store:
        """Open the destination, which is there.

        :param options: of the kind's class, instead of those that were given
        :raises StoreError: it is not there, or cannot be read
        """
        return stores.open(self.destination, self.to, **{**self._opening(), **options})

    def create_destination(self, **options: Any) -> Store:
        """Make the destination, or open it where it is there already.

        :param options: of the kind's class, for opening it
        :raises StoreError: it cannot be made, or is there and places objects otherwise
        """
        if self.destination_is_there():
            store = self.open_destination(**options)
            why = self.difference(store)
            if why is not None:
                raise StoreError(self.destination, why)
            return store
        said = {key: value for key, value in self.destination_options.items() if key in _CREATION[self.to]}
        layout = self.destination_layout()
        return stores.create(self.to, self.destination, layout, **said, **{**self._opening(), **options})

    def destination_is_there(self) -> bool:
        """Return whether the destination is a store already, and not a directory that is empty or not there.

        :raises StoreError: it is there and no store of the kind
        """
        try:
            empty = not os.listdir(self.destination)
        except FileNotFoundError:
            return False
        except NotADirectoryError:
            raise StoreError(self.destination, "not a directory; name another destination") from None
        except OSError as error:
            what = f"cannot be read ({error.strerror}); run as a user with read access, or name another destination"
            raise StoreError(self.destination, what) from error
        if empty:
            return False
        try:
            found = stores.kind_of(self.destination)
        except StoreError as error:
            if self._is_unfinished():
                return False  # made by a run that was killed before it was done with that; creating goes on
            raise StoreError(self.destination, f"not empty, and not a store: {error.reason}") from None
        if found != self.to:
            raise StoreError(
                self.destination, f"it is a store of kind {found}, not {self.to}; name another destination"
            )
        return True

    def _is_unfinished(self) -> bool:
        """Return whether there is nothing but what creating a store writes before it becomes one."""
        names = set(os.listdir(self.destination))
        first = {
            "pairtree": {
                *("pairtree_version0_1", "pairtree_prefix"),
                *("pairtree_version0_1.new", "pairtree_prefix.new"),
            },
            "vitro": {"file_storage_namespaces.properties", "file_storage_pressmark"},
            "ocfl": {"ocfl_layout.json", "extensions", "declaration.pressmark-new"},
            "bags": {".pressmark-bags.json.new"},
        }
        return names <= first[self.to]

    def unknown(self) -> str | None:
        """Return which options source or destination do not have, :data:`None` where they have all."""
        sides: tuple[tuple[str, str, set[str], set[str]], ...] = (
            ("source", self.source_kind, {*self.source_options, *(["layout"] if self.source_layout else [])}, set()),
            ("destination", self.to, set(self.destination_options), _CREATION[self.to]),
        )
        for name, kind, said, more in sides:
            known = set(inspect.signature(stores.store_class(kind)).parameters) - {"path", "root"} | more
            if strangers := sorted(said - known):
                what = "no layout of its own" if strangers[0] == "layout" else f"no option {strangers[0]!r}"
                options = ", ".join(sorted(known))
                return f"a {name} of kind {kind} takes {what}; there are {options}"
        return None

    def _opening(self) -> dict[str, Any]:
        """Return the options for opening the destination."""
        opening = {key: value for key, value in self.destination_options.items() if key not in _CREATION[self.to]}
        if self.to == "bags":
            opening.setdefault("algorithms", self.algorithms)
        if opening.get("content_paths") is not None and not isinstance(opening["content_paths"], Layout):
            opening["content_paths"] = layout_from_config(opening["content_paths"])
        layout = self.destination_layout()
        if isinstance(layout, Pairtree):
            opening.setdefault("encapsulation", layout.encapsulation)
        return opening

    def difference(self, store: Store) -> str | None:
        """Return why a destination that is there places objects otherwise than these options say, or :data:`None`.

        :raises StoreError: it is only read
        """
        store.refuse_changes()
        if self.to == "pairtree":
            wanted, found = self.places(), store.layout
            assert isinstance(wanted, Pairtree)
            assert isinstance(found, Pairtree)
            if wanted.prefix == found.prefix:
                return None
            return f"it has the prefix {found.prefix!r}, not {wanted.prefix!r}; give that one, or another destination"
        if self.to == "vitro":
            wanted, found = self.places(), store.layout
            assert isinstance(wanted, Vitro)
            assert isinstance(found, Vitro)
            if set(dict(wanted.namespaces).values()) <= set(dict(found.namespaces).values()):
                return None
            return "it does not have all the namespaces; declare them there first, or name another destination"
        if isinstance(store, BagFolder):
            said = self.destination_options.get("identifiers", store.identifiers)
            if said != store.identifiers:
                return f"its identifiers come from {store.identifiers!r}, not {said!r}; name another destination"
        layout = self.destination_layout()
        if layout is None or layout == store.layout:
            return None
        is_laid_out = "none" if store.layout is None else json.dumps(store.layout.config())
        return f"its layout is {is_laid_out}, not {json.dumps(layout.config())}; one store has one layout: name another"


def make_options(
    source: str | os.PathLike[str],
    destination: str | os.PathLike[str],
    *,
    to: str,
    layout: Layout | str | Mapping[str, Any] | None = None,
    source_kind: str | None = None,
    source_layout: Layout | Mapping[str, Any] | None = None,
    source_options: Mapping[str, Any] | None = None,
    destination_options: Mapping[str, Any] | None = None,
    copy_mode: str = "auto",
    verify: str = "copy",
    move: bool = False,
    replace: bool = False,
    profile: str = "unix",
    links: str = "refuse",
    algorithms: Iterable[str] = ("sha512",),
    improper: str = "skip",
    drop_empty_directories: bool = False,
) -> Options:
    """Return the options of a migration, completed and compared with each other and with what is there.

    :raises MigrationError: they do not go together
    :raises StoreError: the source is no store, or the destination cannot be one
    :raises LayoutConfigError: a layout is refused
    :raises ValueError: an option has no such value
    """
    for name, value, known in (
        ("to", to, stores.KINDS),
        ("copy_mode", copy_mode, COPY_MODES),
        ("verify", verify, VERIFICATIONS),
        ("profile", profile, tuple(PROFILES)),
        ("links", links, LINKS),
        ("improper", improper, IMPROPER),
    ):
        if value not in known:
            raise ValueError(f"{name}={value!r}: expected one of {', '.join(known)}")
    options = Options(
        source=os.path.abspath(os.fspath(source)),
        source_kind=source_kind or stores.kind_of(os.fspath(source)),
        destination=os.path.abspath(os.fspath(destination)),
        to=to,
        layout=_config(layout),
        source_layout=_config(source_layout),
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
    )
    unknown = options.unknown()
    if unknown is not None:
        raise ValueError(unknown)
    options.open_source()
    options = _completed(options)
    why = _contradiction(options)
    if why is not None:
        raise MigrationError(options.source, options.destination, why)
    return options


def _config(layout: Layout | str | Mapping[str, Any] | None) -> dict[str, Any] | None:
    if layout is None:
        return None
    if isinstance(layout, str):
        layout = layout_by_name(layout)
    return layout.config() if isinstance(layout, Layout) else dict(layout)


def _completed(options: Options) -> Options:
    """Add what a destination that is there says of itself."""
    if not options.destination_is_there():
        return options
    store = options.open_destination()
    why = options.difference(store)
    if why is not None:
        raise MigrationError(options.source, options.destination, f"the destination is there already, and {why}")
    if options.layout is None and store.layout is not None:
        options = dataclasses.replace(options, layout=store.layout.config())
    return options


def _contradiction(options: Options) -> str | None:
    """Return why options do not go together, :data:`None` where they do."""
    source, destination = (os.path.realpath(path) for path in (options.source, options.destination))
    if source == destination:
        return "source and destination are one directory; name another destination"
    if is_within(destination, source):
        return "the destination is inside of the source; name another one"
    if is_within(source, destination):
        return "the source is inside of the destination; name another one"
    if options.to == "ocfl" and options.layout is None:
        return "an OCFL storage root needs a layout; give one, such as 0003-hash-and-id-n-tuple-storage-layout"
    layout = options.destination_layout()
    if layout is not None and options.to in ("pairtree", "vitro") and layout.name != options.to:
        return f"a destination of kind {options.to} has the layout {options.to}, not {layout.name}"
    if layout is not None and options.to == "ocfl":
        why = refused_layout(layout, options.destination_options.get("version", VERSIONS[0]))
        if why is not None:
            return why
    mode = options.copy_mode
    if mode == "hardlink" and options.to == "ocfl":
        return "OCFL forbids hard links (E090); take copy, reflink or auto"
    if mode == "rename" and not options.verbatim:
        return f"objects of kind {options.source_kind} are converted to {options.to}, not renamed; use copy or auto"
    if mode == "rename" and not options.move:
        return "renaming takes the objects out of the source: ask for that with move, or take another copy mode"
    if mode in ("rename", "hardlink", "reflink") and not options.same_file_system():
        return f"{mode} works within one file system, and source and destination are on two; take copy or auto"
    if options.move and options.verify == "none" and not options.renames():
        return "sources are removed after verification only; ask for verify copy or reread, or do not move"
    return None


def existing(path: str) -> str:
    """Return a path, or the nearest directory above it that is there."""
    path = os.path.abspath(path)
    while not os.path.isdir(path):
        above = os.path.dirname(path)
        if above == path:
            break
        path = above
    return path


def is_within(path: str, outer: str) -> bool:
    """Return whether ``path`` is ``outer``, or below it; both are real paths."""
    return os.path.commonpath([path, outer]) == outer
