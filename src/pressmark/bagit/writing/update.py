"""Update a bag: payload, algorithms, metadata and version. Old checksums are verified in the same read.

A wrong checksum is never replaced unless the caller accepts the changed file. New files are written to a hidden
directory and moved into place atomically.
"""

from __future__ import annotations

import contextlib
import filecmp
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import BinaryIO

from pressmark.bagit import bag_info, bagit_txt
from pressmark.bagit.bag_directory import BagDirectory, Match, ResolvedPath
from pressmark.bagit.bag_info import BagInfo
from pressmark.bagit.bag_tags import BagTags, is_described
from pressmark.bagit.bagit_txt import Declaration, declaration_bytes
from pressmark.bagit.changes import Listener, refusing, with_stages
from pressmark.bagit.changes.bag_changes import BagChange, is_decided
from pressmark.bagit.encodings import UTF8, find_charset
from pressmark.bagit.fetch.fetch_txt import FetchEntry, fetch_line, read_fetch
from pressmark.bagit.manifest_format import bag_name, manifest_name
from pressmark.bagit.paths import BELOW_PAYLOAD, FETCH_TXT, PAYLOAD, canonical, normal_key
from pressmark.bagit.problems import KINDS, REMEDIES, BagReport, Cause, problem
from pressmark.bagit.validation.bag_check import compare_digests
from pressmark.bagit.validation.file_matcher import FileMatcher
from pressmark.bagit.validation.tag_files import TagFiles
from pressmark.bagit.writing.payload import inner_path, why_unlistable
from pressmark.bagit.writing.tag_writer import ManifestWriter, bag_size
from pressmark.bagit.writing.update_options import UpdateOptions
from pressmark.errors import BagError, BagInvalidError, quoted_path
from pressmark.fixity.ledger import Ledger
from pressmark.fixity.outcomes import Outcome
from pressmark.fixity.pool import hash_tasks
from pressmark.fs.durable import exists
from pressmark.option_names import option
from pressmark.progress_event import EventListener
from pressmark.reports import Problem, ProgressEvent

__all__ = ["ADDED", "algorithms_to_read", "update_bag"]

VERSION = (1, 0)
#: The end of the message about a tag file that no tag manifest listed, and that the update adds.
ADDED = "added to the tag manifests"
# Problems of the format of manifests and fetch.txt, which rewriting them fixes.
REWRITTEN = frozenset(
    (
        *("bom", "line-blank", "line-unterminated", "md5sum-mark", "percent-raw", "path-not-canonical"),
        "path-backslashes",
    )
)
# New manifests of a bag without any are no proof.
UNPROVEN = "no payload manifest found; the new one lists the present files, and proves nothing about their past"
# Other errors that the update repairs; :meth:`_Update._check_result` finds those that are left.
REPAIRED = REWRITTEN | {
    *("declaration-malformed", "algorithm-name", "file-not-everywhere", "tag-manifest-payload", "tag-manifest-itself"),
    *("info-whitespace", "oxum-malformed", "oxum-repeated"),
}
# Problems about which the update has its own message, or that only its result can have.
LATER = frozenset(
    (
        *("change-unfinished", "file-unlisted", "tag-file-unlisted", "fetch-unlisted"),
        *("tag-manifests-differ", "tag-manifest-algorithms", "tag-manifest-omission"),
    )
)


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
            on_event(ProgressEvent("recover"))
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
        self._left_out: set[bytes] = set()  # tag files that no tag manifest listed and that stay so
        self._rewrite = options.rewrite
        self._rewrite_fetch = False
        self._nbytes = self._nfiles = 0
        self._missing: set[bytes] = set()  # payload files that do not exist
        self._holes: set[bytes] = set()  # those of them that fetch.txt lists
        self._changed = False  # whether the payload differs from the manifests
        self._linked: dict[bytes, bytes] = {}  # links to files in the base directory, and their targets
        found: list[Problem] = []
        self._tag_files = TagFiles(base, "complete", False, found.extend)
        self._bag = self._tag_files.bag
        self._judge(found)
        self._target = options.target(self._bag)
        self._charset = find_charset(self._bag.encoding) or UTF8
        found.clear()
        self._tag_files.read_lists(stack, payload=options.payload)
        self._judge(found)
        self._matcher = FileMatcher(base, self._tag_files, "inside", self._judge)

    def run(self) -> None:
        """Verify, write, and commit or refuse."""
        self._on_event(ProgressEvent("examine"))
        manifests = self._bag.manifests
        raised = self._options.payload and self._bag.version < VERSION
        self._rewrite |= raised or any(manifest_name(one.algorithm) != one.name for one in manifests if one.known)
        self._check_info()
        tag_files, jobs = self._examine()
        self._verify_tag_files(tag_files)
        self._raise_if_refused(compared=False)
        if self._options.payload:
            self._on_event(ProgressEvent("hash", of_items=len(self._tag_files.payload)))
            self._hash(jobs)
        self._raise_if_refused()
        self._on_event(ProgressEvent("tag"))
        self._stage([match for match in tag_files if not _is_tag_manifest(self._bag, match.path)])

    # --- findings ----------------------------------------------------------------------------------------------------

    def _note(self, found: Problem, fatal: bool) -> None:
        """Add a problem that prevents the update, or one that the update fixes or does not affect."""
        self._refused |= fatal
        found = found._replace(severity="error" if fatal else "warning")
        self._report.add([found])
        self._cause.add(found)
        self._on_event(found)

    def _judge(self, problems: Iterable[Problem]) -> None:
        """Add problems of the bag, and decide for each whether it prevents the update."""
        for found in problems:
            kind, path = found.kind, os.fsencode(found.path)
            of_payload = path.startswith(BELOW_PAYLOAD)
            if kind in LATER:
                continue
            if kind == "file-not-fetched":
                self._holes.add(path)
            elif kind == "file-missing":
                if of_payload:
                    self._missing.add(path)
                    self._changed = True
                self._judge_difference(found, "removed" if of_payload else "tag-files")
            elif kind == "payload-manifest-missing":
                accepted = "no-manifest" in self._options.accept
                self._note(found._replace(message=UNPROVEN) if accepted else found, not accepted)
            elif kind == "checksum-mismatch":
                self._changed |= of_payload
                self._judge_difference(found, "changed" if of_payload else "tag-files")
            elif kind == "algorithm-unknown":
                message = f"unknown algorithm {found.algorithm}; update the bag with software that supports it"
                self._note(found._replace(message=message), bag_name(str(found.algorithm)) not in self._options.drop)
            elif kind == "algorithm-repeated":
                message = "two manifests have the same algorithm; find out which is correct"
                self._note(found._replace(message=message), not path.startswith(b"tag"))
            else:
                self._note(found, not self._repairs(found) and found.severity == "error")

    def _repairs(self, found: Problem) -> bool:
        """Return whether the update repairs a problem by rewriting a file."""
        kind, path = found.kind, os.fsencode(found.path)
        if path == bagit_txt.NAME and kind in ("undecodable", "line-too-long"):
            return True
        # A repeated line with the same checksum can be removed; tag manifests are always rewritten.
        is_repeated = kind == "path-duplicate" and found.expected is None
        if kind not in REPAIRED and not is_repeated:
            return False
        if path == FETCH_TXT or found.section == "2.2.3":
            self._rewrite_fetch |= kind in ("bom", "line-blank")
            return self._options.payload or kind == "line-blank"
        of_manifest = any(one.name == path for one in self._bag.manifests)
        self._rewrite |= of_manifest or canonical(path)[0].startswith(BELOW_PAYLOAD)
        return True

    def _judge_difference(self, found: Problem, word: str) -> None:
        """Add a problem, unless the caller accepts ``word``."""
        accepted = word in self._options.accept
        if not accepted:
            self._hints[word] = None
        self._note(found, not accepted)

    def _raise_if_refused(self, *, compared: bool = True) -> None:
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
        self._cause.end_bag(self._matcher.nfiles)
        if self._cause.kind is not None:
            reason += "; " + REMEDIES[self._cause.kind].replace("`", '"')
        elif self._hints:
            reason += f"; if this is intended, use {option('accept', list(self._hints))}"
        if not compared:
            reason += '; the payload was not read; "pressmark bag validate" lists all problems'
        raise BagInvalidError(self._bag.path, reason, self._report)

    def _examine(self) -> tuple[list[Match], Iterator[Match]]:
        """Walk through the bag; return its tag files and the payload files to read.

        A tag manifest is one of the tag files if another one lists it, as allowed before 1.0.
        """
        tag_files: list[Match] = []
        added: list[Match] = []
        # By listed path, for files listed under another spelling or behind links; None for a further spelling.
        aside: dict[bytes, Match | None] = {}
        for match in self._matcher.files():
            path, real = match.path, inner_path(match)
            if real != path and b"/" not in real:
                self._linked[path] = real
            if not match.of_payload:
                if match.digests:
                    tag_files.append(match)
                elif not _is_tag_manifest(self._bag, path):
                    tag_files.append(match)
                    self._judge_unlisted(path)
            elif self._options.payload:
                if not match.digests:
                    added.append(match)
                    self._note_added(path)
                elif match.respelled or real != path:
                    aside |= dict.fromkeys(match.respelled)
                    aside.update([self._respelled(match)])
        self._matcher.check_missing()
        self._matcher.report_unreadable()
        self._check_holes()
        if self._changed and self._matcher.is_counted and not self._matcher.nfiles:
            self._note(problem("payload-directory-missing", PAYLOAD, "no payload file would be left"), True)
        return tag_files, self._jobs(aside, added)

    def _respelled(self, match: Match) -> tuple[bytes, Match]:
        """Return the path under which the manifests list a file, and the file as the new manifests list it."""
        path = match.path
        if not match.respelled or path in self._tag_files.payload:
            return path, match
        listed = match.respelled[0]
        # Keep the listed normalization: file systems of other platforms may use it.
        return listed, match._replace(path=listed if normal_key(listed) == normal_key(path) else path)

    def _note_added(self, path: bytes) -> None:
        # If a manifest was not read, it may be listed; without any, that was reported once.
        if 0 < len(self._tag_files.payload.algorithms) == len(self._bag.manifests):
            self._judge_difference(problem("file-unlisted", path), "added")
        if reason := why_unlistable(path.removeprefix(BELOW_PAYLOAD)):
            self._note(problem("path-unsafe", path, reason), True)

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
            message += f"; to add it, use {option('accept', ['tag-files'])}"
        self._note(problem("tag-file-unlisted", path, message), False)

    def _check_holes(self) -> None:
        """Refuse changes that need the content of files that are not fetched yet.

        :raises BagError: there are such files
        """
        lacking: set[str] = set()
        for path in self._holes:
            lacking |= set(self._target) - self._tag_files.payload.find(path).keys()
        advice = f"{len(self._holes)} files listed in fetch.txt are missing; complete the bag first"
        if lacking:
            raise BagError(self._bag.path, f"cannot compute {' and '.join(sorted(lacking))} of all files: {advice}")
        if self._holes and self._options.accept:
            raise BagError(self._bag.path, f"cannot accept the current payload: {advice}")

    def _fetched(self) -> Iterator[FetchEntry]:
        """Yield the entries of fetch.txt."""
        if FETCH_TXT in self._tag_files.names:
            with self._base.open(self._base.resolve(FETCH_TXT).path) as file:
                lines = read_fetch(file, self._bag.encoding, self._bag.version)
                yield from (line for line in lines if isinstance(line, FetchEntry))

    def _check_info(self) -> None:
        """Refuse elements that the character set of the bag lacks.

        :raises BagError: an element cannot be written
        """
        try:
            BagInfo([(label, value) for label, values in self._options.info for value in values], self._charset.name)
        except ValueError as error:
            raise BagError(self._bag.path, str(error)) from None

    # --- reading ------------------------------------------------------------------------------------------------------

    def _jobs(self, aside: Mapping[bytes, Match | None], added: Iterable[Match]) -> Iterator[Match]:
        """Yield the payload files in the order of the manifests, then the added ones."""
        for listed in self._tag_files.payload.entries():
            if listed.path not in self._missing:
                match = aside.get(listed.path, Match(listed.path, listed.path, listed.digests))
                if match is not None:
                    yield match
        for match in added:
            self._changed = True
            yield match

    def _hash(self, jobs: Iterator[Match]) -> None:
        """Read the payload once: verify listed checksums, and write the new manifests."""
        names = tuple(dict.fromkeys((*self._bag.algorithms, *self._target)))

        def task(match: Match) -> tuple[Match, bytes | Outcome]:
            # Files that are not fetched yet pass through in order.
            if match.path in self._holes:
                return match, Outcome(os.fsdecode(match.path), dict(match.digests), None, None, None)
            return match, inner_path(match)

        outcomes = hash_tasks(
            map(task, jobs),
            names,
            self._threads,
            EventListener(self._on_event),
            read=self._read,
            ledger=self._ledger,
            beneath=self._base.beneath,
        )
        with ManifestWriter(self._new, self._target, self._charset) as manifests:
            for match, outcome in outcomes:
                self._rewrite |= len(match.digests) < len(self._bag.algorithms)
                compare_digests(self._tag_files, match, outcome, self._judge)
                self._nbytes += outcome.size or 0
                self._nfiles += 1
                if outcome.digests is not None and not self._refused:
                    manifests.add(match.path, outcome.digests)
            manifests.finish(on_disk=True)

    def _verify_tag_files(self, tag_files: Iterable[Match]) -> None:
        """Compare tag files with the tag manifests."""
        names = self._bag.tag_algorithms
        if names:
            tasks = ((match, inner_path(match)) for match in tag_files)
            for match, outcome in hash_tasks(tasks, names, self._threads, read=self._read, beneath=self._base.beneath):
                compare_digests(self._tag_files, match, outcome, self._judge)

    # --- writing ------------------------------------------------------------------------------------------------------

    def _stage(self, tag_files: Iterable[Match]) -> None:
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
        self._on_event(ProgressEvent("move"))
        self._change.commit(self._options.request(), away, changed)

    def _refuse_links(self, changed: Collection[bytes]) -> None:
        """Refuse to rewrite files that listed symbolic links point to.

        :param changed: names in the base directory
        """
        for path, real in self._linked.items():
            if real in changed and path not in changed:
                reason = f"symbolic link to {quoted_path(real)}, which the update changes"
                raise BagError(
                    os.path.join(os.fsencode(self._bag.path), path), f"{reason}; replace the link with a copy first"
                )

    def _check_result(self, staged: Collection[bytes], gone: Collection[bytes]) -> None:
        """Check the tag files as they will be, as a validation does: an update never returns an invalid bag."""
        with BagDirectory(self._new) as new, contextlib.ExitStack() as stack:

            def note_errors(problems: Iterable[Problem]) -> None:
                for found in problems:
                    if found.severity == "error":
                        self._note(found, True)

            result = _Result(self._base, new, staged, gone)
            TagFiles(result, "complete", False, note_errors).read_lists(stack)
        self._raise_if_refused()

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
            if values:
                info[label] = values
            else:
                info.pop(label, None)
        if self._options.date is not None:
            info["Bagging-Date"] = self._options.date.isoformat()
        if self._options.payload and not self._holes:
            if "Payload-Oxum" in info:
                info["Payload-Oxum"] = f"{self._nbytes}.{self._nfiles}"
            is_size_set = any(label.lower() == "bag-size" for label, _values in self._options.info)
            if self._changed and not is_size_set and "Bag-Size" in info:
                info["Bag-Size"] = bag_size(self._nbytes)
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

    def _directory_of(self, path: bytes) -> BagDirectory:
        return self._new if path in self._staged else self._base

    def open(self, path: bytes) -> BinaryIO:
        return self._directory_of(path).open(path)

    def names(self) -> list[bytes]:
        replaced = {*self._staged, *self._gone}
        return [name for name in self._base.names() if name not in replaced] + self._new.names()

    def resolve(self, path: bytes) -> ResolvedPath:
        return self._directory_of(path).resolve(path)


def _is_tag_manifest(bag: BagTags, path: bytes) -> bool:
    return any(one.name == path for one in bag.tag_manifests)
