"""Update a bag: payload, algorithms, metadata and version. Old checksums are verified in the same read.

A wrong checksum is never replaced unless the caller accepts the changed file. New files are written to a hidden
directory and moved into place atomically.
"""

from __future__ import annotations

import contextlib
import filecmp
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import BinaryIO, NamedTuple

from pressmark.bagit import bag_info, bagit_txt
from pressmark.bagit.bag_directory import BagDirectory, ResolvedPath, open_tag_file
from pressmark.bagit.bag_info import BagInfo
from pressmark.bagit.bag_tags import BagTags, ManifestFile, is_described, missing_problem, open_listing, read_tag_files
from pressmark.bagit.bagit_txt import Declaration, declaration_bytes
from pressmark.bagit.changes import Listener, Notice, refusing, with_stages
from pressmark.bagit.changes.bag_changes import BagChange, is_decided
from pressmark.bagit.encodings import UTF8, find_charset
from pressmark.bagit.fetch.fetch_txt import FetchEntry, fetch_line, read_fetch
from pressmark.bagit.manifest_format import bag_name, manifest_name
from pressmark.bagit.manifest_index import Listing
from pressmark.bagit.paths import BELOW_PAYLOAD, FETCH_TXT, PAYLOAD
from pressmark.bagit.problems import KINDS, REMEDIES, BagReport, Cause, mismatch_problem, problem
from pressmark.bagit.validation.tag_files import TagFiles
from pressmark.bagit.walk import BagEntry, UnreadableDirectories, walk
from pressmark.bagit.writing.preflight import real_path, why_unlistable
from pressmark.bagit.writing.tag_writer import ManifestWriter, bag_size
from pressmark.bagit.writing.update_options import UpdateOptions
from pressmark.errors import BagError, BagInvalidError
from pressmark.fixity.ledger import Ledger
from pressmark.fixity.outcomes import Outcome
from pressmark.fixity.pool import hash_tasks
from pressmark.fs.durable import exists
from pressmark.reports import Problem, Progress

__all__ = ["ADDED", "algorithms_to_read", "update_bag"]

VERSION = (1, 0)
#: The end of the message about a tag file that no tag manifest listed, and that the update adds.
ADDED = "added to the tag manifests"
# Problems of a manifest's format only, which rewriting fixes.
REWRITTEN = frozenset(("bom", "line-blank", "line-unterminated", "md5sum-mark", "percent-raw", "path-not-canonical"))
# Problems of the declaration and structure that make manifests ambiguous.
FATAL = frozenset(("declaration-missing", "version-unknown", "encoding-unknown", "bom-missing", "file-unreadable"))
# Problems of lines of bag-info.txt that only its author can correct.
FATAL_IN_INFO = frozenset(("info-malformed", "info-too-long", "line-too-long", "undecodable"))


def update_bag(
    path: bytes,
    options: UpdateOptions,
    *,
    threads: int | None = None,
    read: str = "parallel",
    ledger: Ledger | None = None,
    on_event: Listener | None = None,
) -> None:
    """Update a bag, or leave it unchanged; for arguments and errors see :func:`pressmark.bagit.update`."""
    on_event = with_stages(on_event)
    with BagDirectory(path) as base, contextlib.ExitStack() as stack:
        where = os.path.realpath(path)
        if not is_decided(where):
            BagTags.open(path)  # raises BagError
        change = stack.enter_context(BagChange(where))
        if change.recovered is not None:
            on_event(Progress("recover"))
            if change.recovered == options.request():
                return
        with refusing(path, "nothing was changed"):
            _Update(base, change, options, threads, read, ledger, on_event, stack).run()


def algorithms_to_read(
    bag: BagTags,
    algorithms: Iterable[str] | str | None = None,
    add: Iterable[str] | str = (),
    drop: Iterable[str] | str = (),
) -> tuple[str, ...]:
    """Return the algorithms that an update with these arguments computes: old ones to verify, new ones to write."""
    options = UpdateOptions.from_arguments(algorithms, add, drop, None, True, (), False, None)
    return tuple(dict.fromkeys((*bag.algorithms, *options.target(bag))))


class _Job(NamedTuple):
    """A payload file to read.

    :ivar path: as it will be listed
    :ivar real: path without links; empty if the file is not fetched yet
    :ivar digests: listed checksums; empty for an added file
    """

    path: bytes
    real: bytes
    digests: dict[str, str]


class _Update:
    """The update of a bag, within its change."""

    def __init__(
        self,
        base: BagDirectory,
        change: BagChange,
        options: UpdateOptions,
        threads: int | None,
        read: str,
        ledger: Ledger | None,
        on_event: Listener,
        stack: contextlib.ExitStack,
    ) -> None:
        self._base = base
        self._change = change
        self._new = change.new
        self._options = options
        self._threads = threads
        self._read = read
        self._ledger = ledger
        self._on_event = on_event
        self._report = BagReport()
        self._refused = False
        self._cause = Cause()
        self._hints: dict[str, None] = {}  # words that the caller could accept, in order
        self._respelled: dict[bytes, Mapping[str, str]] = {}  # checksums of tag files listed under another spelling
        self._left_out: set[bytes] = set()  # tag files that no tag manifest listed and that stay so
        self._listed_manifests: list[BagEntry] = []  # tag manifests listed by another one, as allowed before 1.0
        self._rewrite = options.rewrite
        self._rewrite_fetch = False
        self._nbytes = self._nfiles = 0
        self._unread = False  # whether a payload manifest could not be read
        self._holes = 0  # files of fetch.txt that are missing
        self._nfound = 0  # number of payload files that exist
        self._changed = False  # whether the payload differs from the manifests
        self._linked: dict[bytes, bytes] = {}  # links to files in the base directory, and their targets
        problems: list[Problem] = []
        self._bag, self._names = read_tag_files(base, problems)
        for found in problems:
            in_info = found.path == self._bag.info_name and found.kind in FATAL_IN_INFO
            self._note(found, found.kind in FATAL or in_info)
        self._target = options.target(self._bag)
        self._charset = find_charset(self._bag.encoding) or UTF8
        self._payload = self._listing(self._bag.manifests if options.payload else (), stack, tag=False)
        self._tags = self._listing(self._bag.tag_manifests, stack, tag=True)

    def run(self) -> None:
        """Verify, write, and commit or refuse."""
        self._on_event(Progress("examine"))
        self._check_algorithms()
        self._check_info()
        self._check_fetch()
        if PAYLOAD not in self._names:
            self._note(problem("payload-directory-missing", PAYLOAD), True)
        tag_files, jobs = self._examine()
        self._verify_tag_files([*tag_files, *self._listed_manifests])
        self._settle(compared=False)
        if self._options.payload:
            self._on_event(Progress("hash", of_items=len(self._payload)))
            self._hash(jobs)
        self._settle()
        self._on_event(Progress("tag"))
        self._stage(tag_files)

    # --- findings ----------------------------------------------------------------------------------------------------

    def _note(self, found: Problem, fatal: bool) -> None:
        """Add a problem that prevents the update, or one that the update fixes or does not affect."""
        self._refused |= fatal
        found = found._replace(severity="error" if fatal else "warning")
        self._report.add([found])
        self._cause.add(found)
        self._on_event(Notice(found))

    def _judge(self, found: Problem, word: str) -> None:
        """Add a problem, unless the caller accepts ``word``."""
        accepted = word in self._options.accept
        if not accepted:
            self._hints[word] = None
        self._note(found, not accepted)

    def _settle(self, *, compared: bool = True) -> None:
        """Raise an error about the problems that prevent the update, if any.

        :param compared: whether the checksums of the files were compared
        :raises BagInvalidError: the bag does not match its manifests
        """
        if not self._refused:
            return
        errors = self._report.errors
        what = "does not match its manifests" if self._hints else "is not valid"
        reason = f"bag {what}, nothing was changed: {BagError(errors[0].path, errors[0].message)}"
        if len(errors) > 1:
            reason += f"; and {len(errors) - 1} more"
        self._cause.end_bag(self._nfound)
        if self._cause.kind is not None:
            reason += "; " + REMEDIES[self._cause.kind].replace("`", '"')
        elif self._hints:
            reason += f"; if this is intended, use --accept {','.join(self._hints)}"
        if not compared:
            reason += '; the payload was not read; "pressmark bag validate" lists all problems'
        raise BagInvalidError(self._bag.path, reason, self._report)

    def _listing(self, manifests: tuple[ManifestFile, ...], stack: contextlib.ExitStack, *, tag: bool) -> Listing:
        problems: list[Problem] = []
        listing = open_listing(self._base, self._bag, manifests, problems, tag=tag, lenient=True)
        for found in problems:
            # A repeated line with the same checksum can be removed, and tag manifests are always rewritten.
            mended = found.kind in REWRITTEN or (found.kind == "path-duplicate" and found.expected is None)
            mended |= found.kind in ("tag-manifest-payload", "tag-manifest-itself")
            self._rewrite |= mended and not tag
            self._note(found, not mended and found.severity == "error")
        self._unread |= not tag and len(listing.algorithms) < len(manifests)
        return stack.enter_context(listing)

    def _check_algorithms(self) -> None:
        """Refuse unknown algorithms, and have manifests with wrong names rewritten."""
        manifests = self._bag.manifests
        for manifest in (*manifests, *self._bag.tag_manifests):
            if not manifest.known and bag_name(manifest.algorithm) not in self._options.drop:
                message = f"unknown algorithm {manifest.algorithm}; update the bag with software that supports it"
                self._note(problem("algorithm-unknown", manifest.name, message), True)
        if len({manifest.algorithm for manifest in manifests}) < len(manifests):
            self._note(
                problem("algorithm-repeated", b"", "two manifests have the same algorithm; find out which is correct"),
                True,
            )
        if not manifests:
            self._note(problem("payload-manifest-missing", b""), True)
        raised = self._options.payload and self._bag.version < VERSION
        self._rewrite |= raised or any(manifest_name(one.algorithm) != one.name for one in manifests if one.known)

    def _examine(self) -> tuple[list[BagEntry], Iterator[_Job]]:
        """Walk through the bag; return its tag files and the payload files to read."""
        tag_files: list[BagEntry] = []
        added: list[BagEntry] = []
        # For files listed under another spelling, or behind links: the path to list and the path without links.
        aside: dict[bytes, tuple[bytes, bytes]] = {}
        unlisted: list[BagEntry] = []
        strays: list[bytes] = []
        unreadable = UnreadableDirectories()
        for found in walk(self._base):
            if found.fault is not None and found.fault.kind == "file-unreadable":
                unreadable.add(found.fault)
            elif found.fault is not None and found.fault.kind != "change-unfinished":
                self._note(found.fault, found.fault.severity == "error")
            if found.kind != "file":
                continue
            if found.real != found.path and b"/" not in real_path(found):
                self._linked[found.path] = real_path(found)
            if not found.path.startswith(BELOW_PAYLOAD):
                if not _is_tag_manifest(self._bag, found.path):
                    tag_files.append(found)
                    if not self._tags.mark_seen(found.path):
                        strays.append(found.path)
                elif self._tags.mark_seen(found.path):
                    self._listed_manifests.append(found)
            elif self._options.payload:
                self._nfound += 1
                if not self._payload.mark_seen(found.path):
                    unlisted.append(found)
                elif found.real != found.path:
                    aside[found.path] = found.path, real_path(found)
        for found in unlisted:
            again = self._payload.find_respelled(found.path)
            if again is None:
                added.append(found)
                self._note_added(found)
                continue
            # Keep the listed normalization: file systems of other platforms may use it.
            mended = again.kind != "name-normalized"
            self._rewrite |= mended
            aside[again.path] = found.path if mended else again.path, real_path(found)
        for path in strays:
            # Tag manifests are rewritten from the files, which fixes the spelling.
            if (again := self._tags.find_respelled(path)) is not None:
                self._respelled[path] = again.digests
            else:
                self._judge_unlisted(path)
        missing = {listed.path for listed in self._payload.unmarked()}
        hidden = {path for path in missing if unreadable.hides(path)}
        missing_tag_files = [listed for listed in self._tags.unmarked() if not unreadable.hides(listed.path)]
        for fault in unreadable.problems():
            self._note(fault, True)
        known = missing - hidden
        holes = {entry.path for entry in self._fetched() if entry.path in known}
        self._note_missing(holes, hidden)
        for listed in missing_tag_files:
            self._judge(missing_problem(listed.path, self._bag.tag_manifests, listed.digests), "tag-files")
        return tag_files, self._jobs(aside, added, missing, holes)

    def _note_added(self, found: BagEntry) -> None:
        if not self._unread:  # otherwise it may be listed
            self._judge(problem("file-unlisted", found.path), "added")
        if reason := why_unlistable(found.path.removeprefix(BELOW_PAYLOAD)):
            self._note(problem("path-unsafe", found.path, reason), True)

    def _judge_unlisted(self, path: bytes) -> None:
        """Decide whether the tag manifests will list a tag file that none of them listed.

        The update verifies or writes payload manifests and bagit.txt; nothing is known about other tag files. The first
        tag manifests of a bag list all tag files.
        """
        first = not self._bag.tag_manifests
        if path == bagit_txt.NAME or any(one.name == path for one in self._bag.manifests):
            return
        if first and is_described(path):
            return
        message = KINDS["tag-file-unlisted"].meaning
        if first or "tag-files" in self._options.accept:
            message += f"; {ADDED}"
        else:
            self._left_out.add(path)
            message += "; to add it, use --accept tag-files"
        self._note(problem("tag-file-unlisted", path, message), False)

    def _note_missing(self, holes: Collection[bytes], hidden: Collection[bytes]) -> None:
        self._holes = len(holes)
        lacking: set[str] = set()
        for listed in self._payload.unmarked():
            if listed.path in holes:
                lacking |= set(self._target) - listed.digests.keys()
            elif listed.path not in hidden:
                self._judge(missing_problem(listed.path, self._bag.manifests, listed.digests), "removed")
                self._changed = True
        if self._changed and not (self._nfound or hidden):
            self._note(problem("payload-directory-missing", PAYLOAD, "no payload file would be left"), True)
        advice = f"{len(holes)} files listed in fetch.txt are missing; complete the bag first"
        if lacking:
            raise BagError(self._bag.path, f"cannot compute {' and '.join(sorted(lacking))} of all files: {advice}")
        if holes and self._options.accept:
            raise BagError(self._bag.path, f"cannot accept the current payload: {advice}")

    def _fetched(self) -> Iterator[FetchEntry]:
        """Yield the entries of fetch.txt."""
        return (line for line in self._fetch_lines() if isinstance(line, FetchEntry))

    def _fetch_lines(self) -> Iterator[FetchEntry | Problem]:
        problems: list[Problem] = []
        file = open_tag_file(self._base, FETCH_TXT, problems) if FETCH_TXT in self._names else None
        for found in problems:
            self._note(found, True)
        if file is not None:
            with file:
                yield from read_fetch(file, self._bag.encoding, self._bag.version)

    def _check_info(self) -> None:
        """Refuse elements that the character set of the bag lacks.

        :raises BagError: an element cannot be written
        """
        try:
            BagInfo([(label, value) for label, values in self._options.info for value in values], self._charset.name)
        except ValueError as error:
            raise BagError(self._bag.path, str(error)) from None

    def _check_fetch(self) -> None:
        """Note the problems of fetch.txt, and have it rewritten if that fixes them."""
        for found in self._fetch_lines():
            if isinstance(found, Problem):
                is_error = found.severity == "error"
                mended = found.kind in REWRITTEN and self._options.payload
                self._rewrite_fetch |= is_error and mended
                self._note(found, is_error and not mended)

    # --- reading ------------------------------------------------------------------------------------------------------

    def _jobs(
        self,
        aside: Mapping[bytes, tuple[bytes, bytes]],
        added: Iterable[BagEntry],
        missing: Collection[bytes],
        holes: Collection[bytes],
    ) -> Iterator[_Job]:
        """Yield the payload files in the order of the manifests, then the added ones."""
        for listed in self._payload.entries():
            if listed.path in holes:
                yield _Job(listed.path, b"", listed.digests)
            elif listed.path not in missing:
                path, real = aside.get(listed.path, (listed.path, listed.path))
                yield _Job(path, real, listed.digests)
        for found in added:
            self._changed = True
            yield _Job(found.path, real_path(found), {})

    def _hash(self, jobs: Iterator[_Job]) -> None:
        """Read the payload once: verify listed checksums, and write the new manifests."""
        names = tuple(dict.fromkeys((*self._bag.algorithms, *self._target)))
        # Files that are not fetched yet pass through in their places.
        tasks = ((job, job.real or Outcome(job.path, job.digests, None, None, None)) for job in jobs)
        outcomes = hash_tasks(
            tasks,
            names,
            self._threads,
            self._on_event,
            read=self._read,
            ledger=self._ledger,
            beneath=self._base.beneath,
        )
        with ManifestWriter(self._new, self._target, self._charset) as manifests:
            for job, outcome in outcomes:
                digests = self._digests(job, outcome) if job.real else job.digests
                self._rewrite |= len(job.digests) < len(self._bag.algorithms)
                if digests is not None and not self._refused:
                    manifests.add(job.path, digests)
            manifests.finish(on_disk=True)

    def _digests(self, job: _Job, outcome: Outcome) -> dict[str, str] | None:
        """Return the new checksums of a file; :data:`None` if it could not be read."""
        if outcome.digests is None:
            kind = "file-changing" if outcome.kind == "changed-while-read" else "file-unreadable"
            self._note(problem(kind, job.path, outcome.message), True)
            return None
        self._nbytes += outcome.size or 0
        self._nfiles += 1
        if not self._verify(job.path, job.digests, outcome.digests, "changed"):
            self._changed = True
        return outcome.digests

    def _verify(self, path: bytes, digests: Mapping[str, str], found: Mapping[str, str], word: str) -> bool:
        """Compare the checksums of a file with the listed ones."""
        wrong = [name for name, digest in digests.items() if name in found and found[name] != digest]
        for name in wrong:
            self._judge(mismatch_problem(path, name, digests[name], found[name]), word)
        return not wrong

    def _verify_tag_files(self, tag_files: Collection[BagEntry]) -> None:
        """Compare tag files with the tag manifests."""
        names = self._bag.tag_algorithms
        if not names:
            return
        tasks = ((found, real_path(found)) for found in tag_files)
        outcomes = hash_tasks(tasks, names, self._threads, read=self._read, beneath=self._base.beneath)
        for found, outcome in outcomes:
            if outcome.digests is None:
                self._note(problem("file-unreadable", found.path, outcome.message), True)
            else:
                digests = self._respelled.get(found.path) or self._tags.find(found.path)
                self._verify(found.path, digests, outcome.digests, "tag-files")

    # --- writing ------------------------------------------------------------------------------------------------------

    def _stage(self, tag_files: Iterable[BagEntry]) -> None:
        """Write the other tag files, and commit the change."""
        old = {one.name for one in (*self._bag.manifests, *self._bag.tag_manifests)}
        if self._options.payload:
            self._keep_manifests()
            self._stage_fetch()
        self._stage_info()
        version = VERSION if self._options.payload else self._bag.version
        self._write(bagit_txt.NAME, declaration_bytes(Declaration(version, self._bag.encoding)))
        staged = set(os.listdir(self._new))
        kept = {found.path: self._path(found.path) for found in tag_files if found.path not in old | staged}
        kept |= {name: self._path(name) for name in old - staged if self._stays(name, staged)}
        files = kept | {name: os.path.join(self._new, name) for name in staged}
        for path in self._left_out & files.keys():
            del files[path]
        with ManifestWriter(self._new, self._target, self._charset, version, tag=True) as manifests:
            for path, outcome in hash_tasks(sorted(files.items()), self._target):
                if outcome.digests is None:
                    raise BagError(outcome.path, outcome.message)
                manifests.add(path, outcome.digests)
            manifests.finish(on_disk=True)
        staged = set(os.listdir(self._new))
        gone = {name for name in old if name not in staged and name not in kept}
        self._check_result(staged, gone)
        changed = {name for name in staged if not self._is_same(name)}
        if not changed and not gone:
            return
        self._refuse_links(changed | gone)
        # Even if unchanged: while it is moved out, the directory does not count as a bag.
        changed.add(bagit_txt.NAME)
        for name in staged - changed:
            os.unlink(os.path.join(self._new, name))
        away = gone | {name for name in changed if exists(self._path(name))}
        self._on_event(Progress("move"))
        self._change.commit(self._options.request(), away, changed)

    def _refuse_links(self, changed: Collection[bytes]) -> None:
        """Refuse to rewrite files that listed symbolic links point to.

        :param changed: names in the base directory
        """
        for path, real in self._linked.items():
            if real in changed and path not in changed:
                reason = f"symbolic link to {os.fsdecode(real)}, which the update changes"
                raise BagError(os.path.join(self._bag.path, path), f"{reason}; replace the link with a copy first")

    def _check_result(self, staged: Collection[bytes], gone: Collection[bytes]) -> None:
        """Check the tag files as they will be, as a validation does: an update never returns an invalid bag."""
        with BagDirectory(self._new) as new, contextlib.ExitStack() as stack:

            def note_errors(problems: Iterable[Problem]) -> None:
                for found in problems:
                    if found.severity == "error":
                        self._note(found, True)

            result = _Result(self._base, new, staged, gone)
            TagFiles(result, "complete", False, note_errors).read_lists(stack)
        self._settle()

    def _stays(self, name: bytes, staged: Collection[bytes]) -> bool:
        """Return whether the update keeps a manifest unchanged."""
        return any(
            one.name == name and one.algorithm in self._target and manifest_name(one.algorithm) not in staged
            for one in self._bag.manifests
        )

    def _keep_manifests(self) -> None:
        """Remove new manifests if the present ones need no change."""
        if self._rewrite or self._changed:
            return
        for name in map(manifest_name, self._target):
            if exists(self._path(name)):
                os.unlink(os.path.join(self._new, name))

    def _stage_fetch(self) -> None:
        """Rewrite fetch.txt if that fixes problems, or for 1.0 if it contains percent signs (2.2.3)."""
        has_percent = self._bag.version < VERSION and any(b"%" in entry.path for entry in self._fetched())
        self._settle()  # in case reading it again failed
        if not has_percent and not self._rewrite_fetch:
            return
        try:
            lines = b"".join(map(fetch_line, self._fetched())).decode()
        except ValueError as error:
            raise BagError(FETCH_TXT, f"cannot be converted to version 1.0: {error}") from None
        mark = self._charset.marks[0][0] if self._charset.needs_mark else b""
        self._write(FETCH_TXT, mark + self._charset.encode(lines))

    def _stage_info(self) -> None:
        """Write bag-info.txt if elements change."""
        info = self._bag.info
        before = info.to_bytes()
        if self._options.payload:
            _, problems = BagInfo.parse(before, self._bag.encoding, VERSION)
            if {found.kind for found in problems} & {"bom", "info-whitespace"}:
                try:
                    info = BagInfo(info.elements, self._bag.encoding)
                except ValueError as error:
                    self._note(problem("info-malformed", self._bag.info_name, str(error)), True)
        for label, values in self._options.info:
            info.remove(label) if len(values) != 1 else info.set(label, values[0])
            if len(values) > 1:
                for value in values:
                    info.add(label, value)
        if self._options.date is not None:
            info.set("Bagging-Date", self._options.date.isoformat())
        if self._options.payload and not self._holes:
            if info.get("Payload-Oxum") is not None:
                info.set("Payload-Oxum", f"{self._nbytes}.{self._nfiles}")
            given = any(label.lower() == "bag-size" for label, _values in self._options.info)
            if self._changed and not given and info.get("Bag-Size") is not None:
                info.set("Bag-Size", bag_size(self._nbytes))
        after = info.to_bytes()
        if after != before:
            self._write(bag_info.NAME, after)

    def _write(self, name: bytes, data: bytes) -> None:
        with open(os.path.join(self._new, name), "xb") as file:
            file.write(data)

    def _path(self, name: bytes) -> bytes:
        return os.path.join(self._base.path, name)

    def _is_same(self, name: bytes) -> bool:
        """Return whether a new file equals the present one; tag manifests may differ in order."""
        new, old = os.path.join(self._new, name), self._path(name)
        if not os.path.isfile(old):
            return False
        if not _is_tag_manifest(self._bag, name):
            return filecmp.cmp(new, old, shallow=False)
        if os.path.getsize(new) != os.path.getsize(old):
            return False
        with open(new, "rb") as new_file, open(old, "rb") as old_file:
            return sorted(new_file) == sorted(old_file)


class _Result:
    """The files in the base directory as they will be, for reading the tag files.

    :param new: the directory of the new files
    :param staged: the names in it that will replace others
    :param gone: names that will not exist any more
    """

    def __init__(
        self, base: BagDirectory, new: BagDirectory, staged: Collection[bytes], gone: Collection[bytes]
    ) -> None:
        self.path = base.path
        self._base, self._new, self._staged, self._gone = base, new, staged, gone

    def _place(self, path: bytes) -> BagDirectory:
        return self._new if path in self._staged else self._base

    def open(self, path: bytes) -> BinaryIO:
        return self._place(path).open(path)

    def names(self) -> list[bytes]:
        replaced = {*self._staged, *self._gone}
        return [name for name in self._base.names() if name not in replaced] + self._new.names()

    def resolve(self, path: bytes) -> ResolvedPath:
        return self._place(path).resolve(path)


def _is_tag_manifest(bag: BagTags, path: bytes) -> bool:
    return any(one.name == path for one in bag.tag_manifests)
