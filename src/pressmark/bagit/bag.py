"""Open, create and update bags.

Each call imports only the modules that it needs.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, cast

from pressmark.bagit.bag_directory import BagDirectory, BagFiles, BaseDirectory
from pressmark.bagit.bag_tags import BagTags, new_manifests, open_listing
from pressmark.bagit.changes import with_stages
from pressmark.bagit.paths import archive_ending
from pressmark.bagit.problems import KEEP
from pressmark.buckets.address import is_address
from pressmark.errors import BagError
from pressmark.progress_event import Progress
from pressmark.reports import Problem, Report

if TYPE_CHECKING:
    import datetime

    from pressmark.bagit.bag_info import BagInfo
    from pressmark.bagit.problems import BagReport
    from pressmark.bagit.profile import Profile
    from pressmark.bagit.validation.validate import AnyLedger
    from pressmark.bagit.writing.options import CreateOptions, Elements, Path
    from pressmark.fixity.ledger import Ledger

__all__ = [
    "Bag",
    "create",
    "create_archive",
    "create_from_lists",
    "create_holey",
    "make_bag",
    "open",
    "update",
]


class Bag(BagTags):
    """A bag in a directory or an archive: its tag files, and the operations on it. :func:`pressmark.bagit.open` returns
    one.

    A bag in an archive is not changed: :meth:`update` and :meth:`complete` raise :class:`~pressmark.errors.BagError`.
    """

    def __init__(self, *content: object) -> None:
        if len(content) < 2:
            arguments = ", ".join(map(repr, content))
            raise TypeError(
                f"Bag({arguments}): call pressmark.bagit.open(path), or pressmark.bagit.make_bag(directory)"
            )
        super().__init__(*cast("tuple[Any, ...]", content))

    @classmethod
    def of_new(cls, path: bytes, options: CreateOptions, info: BagInfo) -> Bag:
        """Return a bag that was just created, as :meth:`open` would."""
        from pressmark.bagit.bagit_txt import Declaration

        return cls(path, Declaration(options.version), info, *new_manifests(options.algorithms))

    @classmethod
    def open(cls, path: Path) -> Bag:
        """Open the bag in a directory or an archive: see :func:`pressmark.bagit.open`."""
        with _opened_tag_files(os.fsencode(path)) as base:
            return cls.read(base)

    def files(self) -> AbstractContextManager[BagFiles]:
        """Open the files of the bag; an archive is read to its end.

        :raises BagError: the bag does not exist any more
        """
        return _opened_files(os.fsencode(self.path))

    def tag_files(self) -> AbstractContextManager[BaseDirectory]:
        """Open the tag files of the bag; the payload of a bag in object storage is not listed.

        :raises BagError: the bag does not exist any more
        """
        return _opened_tag_files(os.fsencode(self.path))

    @property
    def entries(self) -> dict[str, dict[str, str]]:
        """The digests of every file that a manifest lists, by path and algorithm; payload files come first.

        All manifests are read into memory: for bags of many files, iterate over ``payload.entries()`` instead.

        :raises BagError: a manifest cannot be read
        """
        problems: list[Problem] = []
        found: dict[str, dict[str, str]] = {}
        with self.tag_files() as base:
            for manifests in (self.manifests, self.tag_manifests):
                with open_listing(base, self, manifests, problems, tag=manifests is self.tag_manifests) as listing:
                    for entry in listing.entries():
                        found.setdefault(os.fsdecode(entry.path), {}).update(entry.digests)
        for one in problems:
            if one.kind == "file-unreadable":
                raise BagError(os.path.join(self.path, one.path), one.message)
        return found

    def validate(
        self,
        level: str = "full",
        *,
        lenient: bool = False,
        links: str = "inside",
        threads: int | None = None,
        read: str = "parallel",
        ledger: AnyLedger | None = None,
        profile: Profile | None = None,
        keep: int = KEEP,
        progress: Progress | None = None,
    ) -> BagReport:
        """Validate the bag: see :func:`pressmark.bagit.validate`."""
        from pressmark.bagit.validation.validate import validate

        return validate(
            self.path,
            level,
            lenient=lenient,
            links=links,
            threads=threads,
            read=read,
            ledger=ledger,
            profile=profile,
            keep=keep,
            progress=progress,
        )

    def is_valid(self, level: str = "full", *, threads: int | None = None) -> bool:
        """Return whether the bag is valid; :meth:`validate` also returns the problems.

        :raises BagError: the bag does not exist any more
        """
        return self.validate(level, threads=threads).ok

    def save(self, *, manifests: bool = False) -> None:
        """Write the changed elements of :attr:`info` to the bag; without changes, nothing is written.

        The payload is not read, so a damaged payload file stays as it is, and is found by :meth:`validate`.

        :param manifests: also accept changed, added and removed payload files, as they are now, into the manifests
        :raises BagInvalidError: the tag files are not valid: for example, one of them does not match the tag manifests;
            nothing was changed
        :raises BagError: the bag cannot be changed; nothing was changed
        :raises ValueError: an element is computed, such as Payload-Oxum
        """
        old = Bag.open(self.path).info
        changed: dict[str, list[str] | None] = {label: None for label in old if label not in self.info}
        changed |= {label: self.info.all(label) for label in self.info if self.info.all(label) != old.all(label)}
        if changed or manifests:
            accept = ("added", "removed", "changed") if manifests else ()
            vars(self).update(vars(update(self, info=changed, payload=manifests, accept=accept)))

    def update(
        self,
        *,
        algorithms: Iterable[str] | str | None = None,
        add: Iterable[str] | str = (),
        drop: Iterable[str] | str = (),
        info: Elements | Mapping[str, str | Iterable[str] | None] | None = None,
        payload: bool = True,
        accept: Collection[str] = (),
        rewrite: bool = False,
        date: datetime.date | None = None,
        threads: int | None = None,
        read: str = "parallel",
        ledger: Ledger | None = None,
        progress: Progress | None = None,
    ) -> Bag:
        """Update the bag and return it reopened: see :func:`pressmark.bagit.update`."""
        return update(
            self,
            algorithms=algorithms,
            add=add,
            drop=drop,
            info=info,
            payload=payload,
            accept=accept,
            rewrite=rewrite,
            date=date,
            threads=threads,
            read=read,
            ledger=ledger,
            progress=progress,
        )

    def complete(
        self,
        *,
        threads: int = 4,
        allow_http: bool = False,
        allow_private: bool = False,
        allow_hosts: Iterable[str] = (),
        allow_buckets: Iterable[str] = (),
        header_from: str | os.PathLike[str] | None = None,
        netrc: bool = False,
        maximum: int | None = None,
        retries: int = 4,
        timeout: float = 60.0,
        certificates: str | None = None,
        verify: bool = False,
        progress: Progress | None = None,
    ) -> Report:
        """Download the missing files that fetch.txt lists: see :func:`pressmark.bagit.complete`."""
        from pressmark.bagit.fetch.complete import complete

        return complete(
            self,
            threads=threads,
            allow_http=allow_http,
            allow_private=allow_private,
            allow_hosts=allow_hosts,
            allow_buckets=allow_buckets,
            header_from=header_from,
            netrc=netrc,
            maximum=maximum,
            retries=retries,
            timeout=timeout,
            certificates=certificates,
            verify=verify,
            progress=progress,
        )

    def revert(
        self,
        *,
        level: str = "full",
        sums: Path | None = None,
        delete_tag_files: bool = False,
        dry_run: bool = False,
        threads: int | None = None,
        read: str = "parallel",
        progress: Progress | None = None,
    ) -> list[str]:
        """Turn the bag back into a directory of its payload files: see :func:`pressmark.bagit.revert`."""
        from pressmark.bagit.writing.revert import revert

        return revert(
            self,
            level=level,
            sums=sums,
            delete_tag_files=delete_tag_files,
            dry_run=dry_run,
            threads=threads,
            read=read,
            progress=progress,
        )

    def check_profile(self, profile: Profile) -> list[Problem]:
        """Return the violations of a BagIt Profile."""
        if not _is_file(os.fsencode(self.path)):
            return profile.check(self)
        from pressmark.bagit.archive.reader import MEDIA_TYPES, open_archive

        with open_archive(self.path) as archive:
            return profile.check(self, MEDIA_TYPES[archive.format])


def _is_file(path: bytes) -> bool:
    """Return whether a path leads to a file, or an address to a single key."""
    if not is_address(path):
        return os.path.isfile(path)
    from pressmark.bagit.remote.bag_in_bucket import is_key  # most bags are local

    return is_key(path)


def _opened_files(path: bytes) -> AbstractContextManager[BagFiles]:
    """Open the files of the bag in a directory or an archive."""
    if _is_file(path):
        # Most bags are directories.
        from pressmark.bagit.archive.check import opened_bag
        from pressmark.bagit.archive.reader import is_archive

        if is_address(path) or is_archive(path):
            return opened_bag(path)
    elif is_address(path):
        from pressmark.bagit.remote.bag_in_bucket import open_tree

        return open_tree(path)
    return BagDirectory(path)


def _opened_tag_files(path: bytes) -> AbstractContextManager[BaseDirectory]:
    if is_address(path) and not _is_file(path):
        from pressmark.bagit.remote.bag_in_bucket import open_base

        return open_base(path)
    return _opened_files(path)


def open(path: Path) -> Bag:
    """Open the bag in a directory or an archive. The payload is not verified.

    :param path: the base directory, or a zip, tar or compressed tar file, or the address of either in object storage,
        such as ``s3://bucket/bag``. A compressed file is decompressed to its end
    :raises BagError: the path does not exist, is no bag, or contains an unreadable tag file
    """
    return Bag.open(path)


def make_bag(
    directory: Path,
    info: Elements | None = None,
    *,
    algorithms: Iterable[str] | str | None = None,
    links: str = "refuse",
    tag_files: Mapping[str, Path] | Iterable[Path] = (),
    profile: Profile | None = None,
    nested: bool = False,
    exclude: Sequence[str] | str = (),
    delete_excluded: bool = False,
    date: datetime.date | None = None,
    threads: int | None = None,
    read: str = "parallel",
    ledger: Ledger | None = None,
    progress: Progress | None = None,
) -> Bag:
    """Turn a directory into a bag of version 1.0, whose payload is its content, and return the bag.

    All files are checked and hashed before any file is moved. After an interruption, the directory is unchanged except
    for a hidden directory that the next call removes, or the same call completes the bag.

    :param directory: an existing directory; its content moves to ``data/`` in it
    :param info: elements of bag-info.txt, in this order: a mapping of labels to values, or pairs. A value is a ``str``,
        or a list of ``str`` for a repeated label; an empty list adds no element. Bagging-Date, Bag-Size and
        Bag-Software-Agent are added if missing; Payload-Oxum is always computed
    :param algorithms: names that :func:`~pressmark.fixity.algorithm_name` accepts; one manifest each. :data:`None` for
        those that the profile requires, or SHA-512
    :param links: ``refuse`` symbolic links, or ``follow`` those inside the directory, which stay links
    :param tag_files: additional tag files: a mapping from paths in the bag to files, or files that keep their names
    :param profile: create a bag that conforms to this profile. Elements of ``info`` that it requires or recommends and
        that have one allowed value are added, as is its identifier; a tag file that it requires in a directory is added
        there. The version of the bag is 1.0, or the latest one that it accepts
    :param nested: accept a directory that is already a bag
    :param exclude: globs of the names of files and directories, such as ``.DS_Store``, that do not belong in the bag;
        they are refused unless ``delete_excluded``
    :param delete_excluded: delete them; the deletion is part of the atomic change
    :param date: Bagging-Date (default: today, or the day of the environment variable SOURCE_DATE_EPOCH)
    :param threads: number of threads; :data:`None` for one per core
    :param read: ``parallel``, or ``sequential`` to read one file at a time, for hard disks
    :param ledger: an open ledger for the same algorithms, whose files are not read again
    :param progress: its stages are those of :mod:`pressmark.bagit.changes`
    :raises AlgorithmError: an algorithm is unknown or not available
    :raises BagError: the bag cannot be created, for example because ``directory`` does not exist, or is a bag already;
        nothing was changed
    :raises TypeError: a value of ``info`` is neither a ``str`` nor a list of ``str``
    :raises ValueError: another argument is invalid
    """
    from pressmark.bagit.writing.in_place import create_in_place
    from pressmark.bagit.writing.options import CreateOptions

    options = CreateOptions.from_arguments(
        algorithms, info, links, tag_files, threads, read, date, exclude, delete_excluded
    )
    options = _fitted(options, profile, None, algorithms)
    path = os.fsencode(directory)
    return _opened(path, options, create_in_place(path, options, nested, ledger, with_stages(progress)))


def create(
    source: Path | Iterable[Path],
    destination: Path,
    info: Elements | None = None,
    *,
    algorithms: Iterable[str] | str | None = None,
    copy_mode: str = "copy",
    links: str = "refuse",
    tag_files: Mapping[str, Path] | Iterable[Path] = (),
    profile: Profile | None = None,
    nested: bool = False,
    exclude: Sequence[str] | str = (),
    one_file_system: bool = False,
    date: datetime.date | None = None,
    threads: int | None = None,
    read: str = "parallel",
    progress: Progress | None = None,
) -> Bag:
    """Create a bag of version 1.0 in a new directory, and return it; the source is not changed.

    The payload is the content of the directory ``source``; if ``source`` is a list, the payload is its files and
    directories under their own names. An interrupted call leaves nothing at ``destination``.

    :param source: a directory, or files and directories
    :param destination: the base directory of the bag. It must not exist, not even as an empty directory; the directory
        above it must exist. Or an address without keys below it, such as ``s3://bucket/bag``: the bag appears there
        when bagit.txt is written, which is last, and an interrupted call leaves keys that the same call takes
    :param copy_mode: ``copy``, ``reflink``, ``hardlink``, or ``auto``: reflink if the file system can, else copy
    :param links: ``refuse`` symbolic links, or ``follow`` them and copy their targets
    :param nested: accept a source that is already a bag
    :param exclude: globs of the names of files and directories below ``source`` to leave out, such as ``.DS_Store``
    :param one_file_system: leave out directories on other file systems than ``source``, such as mount points

    The other parameters and the errors are those of :func:`make_bag`.
    """
    from pressmark.bagit.writing.options import CreateOptions
    from pressmark.bagit.writing.write import create_elsewhere
    from pressmark.fixity.copying import MODES

    if copy_mode not in MODES:
        raise ValueError(f"copy_mode={copy_mode!r}: expected {', '.join(MODES)}")
    options = CreateOptions.from_arguments(
        algorithms, info, links, tag_files, threads, read, date, exclude, one_file_system=one_file_system
    )
    path = _new_directory(destination, "use create_archive")
    options = _fitted(options, profile, path, algorithms)
    sources, several = _sources(source)
    if is_address(path):
        from pressmark.bagit.remote.create_in_bucket import create_in_bucket  # most bags are local

        if copy_mode not in ("copy", "auto"):
            raise ValueError(f"copy_mode={copy_mode!r}: not supported in object storage; use copy")
        return _opened(path, options, create_in_bucket(sources, several, path, options, nested, with_stages(progress)))
    new = create_elsewhere(sources, several, path, options, copy_mode, nested, with_stages(progress))
    return _opened(path, options, new)


def create_archive(
    source: Path | Iterable[Path],
    destination: Path,
    info: Elements | None = None,
    *,
    algorithms: Iterable[str] | str | None = None,
    links: str = "refuse",
    tag_files: Mapping[str, Path] | Iterable[Path] = (),
    profile: Profile | None = None,
    nested: bool = False,
    exclude: Sequence[str] | str = (),
    one_file_system: bool = False,
    date: datetime.date | None = None,
    timestamps: str | None = None,
    threads: int | None = None,
    read: str = "parallel",
    progress: Progress | None = None,
) -> Bag:
    """Create a bag of version 1.0 in an archive, and return it; no directory is written. See :func:`pack`.

    :param destination: a name that ends with .tar, .tar.gz, .tgz, .tar.zst, .tzst or .zip, or an address with such an
        end. It must not exist; the directory above a file must exist
    :param timestamps: as for :func:`pack`; new tag files have the time of Bagging-Date or SOURCE_DATE_EPOCH

    The other parameters and the errors are those of :func:`create`.
    """
    from pressmark.bagit.archive.create_archive import create_archive as create_in_archive
    from pressmark.bagit.writing.options import CreateOptions

    options = CreateOptions.from_arguments(
        algorithms, info, links, tag_files, threads, read, date, exclude, one_file_system=one_file_system
    )
    path = os.fsencode(destination)
    if archive_ending(path) is None:
        raise ValueError("destination: not the name of an archive; use create for a directory")
    options = _fitted(options, profile, path, algorithms)
    sources, several = _sources(source)
    info = create_in_archive(sources, several, path, options, nested, timestamps, with_stages(progress))
    return _opened(path, options, info)


def create_holey(
    source: Path | Iterable[Path],
    destination: Path,
    url: str,
    info: Elements | None = None,
    *,
    algorithms: Iterable[str] | str | None = None,
    links: str = "refuse",
    tag_files: Mapping[str, Path] | Iterable[Path] = (),
    profile: Profile | None = None,
    nested: bool = False,
    exclude: Sequence[str] | str = (),
    one_file_system: bool = False,
    date: datetime.date | None = None,
    threads: int | None = None,
    read: str = "parallel",
    progress: Progress | None = None,
) -> Bag:
    """Create a bag of version 1.0 without its payload, and return it: fetch.txt lists the URLs of the files.

    The files are read; the server is not contacted. Empty directories are left out. The URL of a file is ``url``, with
    a slash at its end, and the path of the file below ``data/``, whose bytes are percent-encoded except for slashes and
    the unreserved characters of RFC 3986 (``A-Z a-z 0-9 - . _ ~``).

    :param destination: as for :func:`create`
    :param url: an absolute URL without a query, such as ``https://example.org/bags/1/data/``

    The other parameters and the errors are those of :func:`create`.
    """
    from pressmark.bagit.writing.options import CreateOptions
    from pressmark.bagit.writing.write import create_elsewhere

    options = CreateOptions.from_arguments(
        algorithms,
        info,
        links,
        tag_files,
        threads,
        read,
        date,
        exclude,
        fetch_base=url,
        one_file_system=one_file_system,
    )
    path = _new_directory(destination, "a holey bag is a directory")
    options = _fitted(options, profile, path, algorithms)
    sources, several = _sources(source)
    new = create_elsewhere(sources, several, path, options, "copy", nested, with_stages(progress))
    return _opened(path, options, new)


def create_from_lists(
    fetch: Path,
    manifests: Sequence[Path],
    destination: Path,
    info: Elements | None = None,
    *,
    algorithms: Iterable[str] | str | None = None,
    tag_files: Mapping[str, Path] | Iterable[Path] = (),
    date: datetime.date | None = None,
    progress: Progress | None = None,
) -> Bag:
    """Create a bag of version 1.0 whose files are on servers, and return it.

    fetch.txt lists the files; none is downloaded. Payload-Oxum and Bag-Size are left out if a length is unknown.

    :param fetch: a file in the format of fetch.txt (2.2.3) that lists the payload files
    :param manifests: lists of the checksums of exactly the files in ``fetch``: payload manifests of a bag, by their
        name, or lists in the formats of :mod:`pressmark.fixity.manifests`, whose names are paths in the bag or below
        ``data/``
    :param destination: as for :func:`create`
    :param algorithms: those of ``manifests``, one for each list in order; :data:`None` for those in their names or
        lines, or md5, sha1, sha256 or sha512 by the length of their digests

    The other parameters and the errors are those of :func:`make_bag`.
    """
    from pressmark.bagit.writing.listed import create_from_lists as create_listed
    from pressmark.bagit.writing.options import CreateOptions

    if not manifests:
        raise ValueError("manifests: expected at least one list of checksums")
    names = ("sha512",) if algorithms is None else algorithms
    options = CreateOptions.from_arguments(names, info, "refuse", tag_files, None, "parallel", date)
    if algorithms is None:
        options = options._replace(algorithms=())
    path = _new_directory(destination, "a holey bag is a directory")
    create_listed(os.fsencode(fetch), list(map(os.fsencode, manifests)), path, options, with_stages(progress))
    return Bag.open(path)


def _fitted(
    options: CreateOptions, profile: Profile | None, destination: bytes | None, algorithms: object
) -> CreateOptions:
    """Return the options of a bag that conforms to a profile, if there is one."""
    if profile is None:
        return options
    from pressmark.bagit.writing.profile_options import fit_profile, profile_algorithms  # few bags have a profile

    if algorithms is None:
        options = options._replace(algorithms=profile_algorithms(profile))
    return fit_profile(options, profile, destination)


def _sources(source: Path | Iterable[Path]) -> tuple[list[bytes], bool]:
    """Return the paths of a source, and whether it is a list of files and directories."""
    if isinstance(source, str | bytes | os.PathLike):
        return [os.fsencode(source)], False
    return list(map(os.fsencode, source)), True


def _new_directory(destination: Path, advice: str) -> bytes:
    """Return the path of a destination that must not be an archive.

    :raises ValueError: its name is that of an archive
    """
    path = os.fsencode(destination)
    if archive_ending(path) is not None:
        raise ValueError(f"destination: an archive; {advice}")
    return path


def _opened(path: bytes, options: CreateOptions, info: BagInfo | None) -> Bag:
    """Return a new bag.

    :param info: its elements; :data:`None` to read them from the bag
    """
    return Bag.open(path) if info is None else Bag.of_new(path, options, info)


def update(
    bag: BagTags | Path,
    *,
    algorithms: Iterable[str] | str | None = None,
    add: Iterable[str] | str = (),
    drop: Iterable[str] | str = (),
    info: Elements | Mapping[str, str | Iterable[str] | None] | None = None,
    payload: bool = True,
    accept: Collection[str] = (),
    rewrite: bool = False,
    date: datetime.date | None = None,
    threads: int | None = None,
    read: str = "parallel",
    ledger: Ledger | None = None,
    progress: Progress | None = None,
) -> Bag:
    """Update a bag to version 1.0 and apply the given changes; return it reopened. If the update fails, the bag is
    unchanged.

    Each file is read once: its old checksums are verified while new ones are computed. Manifests that do not need to
    change and the bytes of unchanged elements of bag-info.txt are kept. Manifests with lines in md5sum's format, or
    with unencoded percent signs, are rewritten.

    :param algorithms: the algorithms of the payload manifests; :data:`None` for the current ones
    :param add: algorithms to add
    :param drop: algorithms to remove
    :param info: elements of bag-info.txt, as for :func:`make_bag`; each replaces all elements of its label. The value
        :data:`None`, or an empty list, removes them
    :param payload: :data:`False` keeps payload and version, and reads tag files only
    :param accept: changes to accept instead of refusing them: ``added``, ``removed`` and ``changed`` payload files, and
        ``tag-files`` that were changed or removed; and ``no-manifest``: a bag without payload manifest gets those of
        ``add`` from its present files, which proves nothing about their past. A tag file that no tag manifest lists is
        only added to them if ``tag-files`` are accepted, or if the bag has no tag manifest yet
    :param rewrite: rewrite all manifests
    :param date: the new Bagging-Date
    :param threads: number of threads; :data:`None` for one per core
    :param read: ``parallel``, or ``sequential`` for hard disks
    :param ledger: an open ledger for :func:`algorithms_to_read`, whose payload files are not read again
    :param progress: its stages are those of :mod:`pressmark.bagit.changes`
    :raises AlgorithmError: an algorithm is unknown or not available
    :raises BagInvalidError: the bag does not match its manifests; the report lists the differences; nothing was changed
    :raises BagError: the bag cannot be changed; nothing was changed
    :raises TypeError: a value of ``info`` is neither a ``str`` nor a list of ``str``
    :raises ValueError: another argument is invalid
    """
    from pressmark.bagit.writing.update import update_bag
    from pressmark.bagit.writing.update_options import UpdateOptions

    path = os.fsencode(bag.path if isinstance(bag, BagTags) else bag)
    options = UpdateOptions.from_arguments(algorithms, add, drop, info, payload, accept, rewrite, date)
    update_bag(path, options, threads=threads, read=read, ledger=ledger, on_event=progress)
    return Bag.open(path)
