"""What a migration is asked for: completed, and compared with itself and with what is there."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping
from typing import Any

from pressmark import stores
from pressmark.errors import MigrationError
from pressmark.layouts import Layout
from pressmark.layouts import layout as layout_by_name
from pressmark.migrate.options import COPY_MODES, IMPROPER, LINKS, VERIFICATIONS, Options
from pressmark.paths import PROFILES
from pressmark.stores.ocfl.declarations import VERSIONS
from pressmark.stores.ocfl.layout_files import refused_layout

__all__ = ["is_within", "make_options"]


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
        return f"objects of kind {options.source_kind} are made anew as {options.to}, not renamed; take copy or auto"
    if mode == "rename" and not options.move:
        return "renaming takes the objects out of the source: ask for that with move, or take another copy mode"
    if mode in ("rename", "hardlink", "reflink") and not options.same_file_system():
        return f"{mode} works within one file system, and source and destination are on two; take copy or auto"
    if options.move and options.verify == "none" and not options.renames():
        return "sources are removed after verification only; ask for verify copy or reread, or do not move"
    return None


def is_within(path: str, outer: str) -> bool:
    """Return whether ``path`` is ``outer``, or below it; both are real paths."""
    return os.path.commonpath([path, outer]) == outer
