"""One call of ``pressmark migrate``: a new run, a plan only, a resumed run, a catch-up or a verification."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pressmark import migrate
from pressmark.buckets.address import is_below
from pressmark.cli.common.console import CallError, Failure, say
from pressmark.cli.common.output import Output
from pressmark.cli.common.program import on_ctrl_c
from pressmark.cli.common.progress import Reporter, format_bytes, format_count, format_duration
from pressmark.cli.migrate.options import check_destination_options, options_of_call
from pressmark.cli.migrate.output import write_conflict, write_entry, write_row
from pressmark.cli.store.options import missing_provenance
from pressmark.errors import MigrationError, PressmarkError, ReportError, quoted_path
from pressmark.fs.beneath import open_regular
from pressmark.jobs.workdir import LOCK, locked
from pressmark.migrate.execution.run_result import Summary, remaining_path
from pressmark.migrate.planning.plan import refuse_others
from pressmark.migrate.workdir import WARNINGS, is_of_run
from pressmark.option_names import option
from pressmark.reports import ProgressEvent
from pressmark.stores.registry import detect_kind

__all__ = ["MigrateCall"]

_STOPPED = {"max_errors": "too many objects failed", "stop": "stopped"}


class MigrateCall:
    """One call of the command.

    :param call: the values of all options
    :param options: the options of the library that the call names
    :raises CallError: options contradict each other
    """

    def __init__(self, call: Mapping[str, Any], options: dict[str, Any]) -> None:
        if call["destination"] is None:
            raise CallError("DESTINATION missing; name both stores: pressmark migrate SOURCE DESTINATION")
        self._call = call
        self._source: str = call["source"]
        self._destination: str = call["destination"]
        self._to: str | None = call["to"]
        self._options = options
        self._provenance = call["provenance"]
        self._running: migrate.Plan | None = None
        self._before = 0  # objects in the chunks that an interrupted run has completed
        # A resumed call may have been any other one.
        later = ("dry_run", "verify_again") if call["resume"] else ("catch_up", "verify_again")
        verbs = [name for name in ("resume", *later) if call[name]]
        if call["dry_run"] and call["verify_again"]:
            verbs = ["dry_run", "verify_again"]
        if len(verbs) > 1:
            raise CallError(f"use only one of {option(verbs[0])} and {option(verbs[1])}")
        self._verb = verbs[0] if verbs else "migrate"
        self._check()

    def _check(self) -> None:
        call = self._call
        for report in call["reports"]:
            self._check_report(report)
        if self._verb == "migrate":
            if self._to is None:
                raise CallError("kind of DESTINATION missing; use --to pairtree, --to vitro, --to ocfl or --to bags")
            check_destination_options(self._to, self._options)

    def _check_report(self, path: str) -> None:
        """Check that a report can be written, and that it is neither inside a store nor a file that the run needs."""
        from pressmark.migrate.reporting.report import check_report

        for store in (self._source, self._destination):
            if is_below(path, store):
                raise CallError(f"--report {path}: the path is inside the store {store}; choose a file outside it")
        for name in ("ids", "new_ids"):
            # A missing file is not the same.
            with suppress(OSError):
                if self._call[name] is not None and os.path.samefile(path, self._call[name]):
                    raise CallError(f"--report {path}: file already used by {option(name)}; choose another file")
        if is_of_run(path, migrate.work_folder(self._destination, self._call["work"])):
            raise CallError(f"--report {path}: the path belongs to the run; choose another file")
        check_report(path)

    def execute(self, output: Output) -> int:
        """Execute the call, and return the exit status."""
        if self._verb == "resume":
            return self._run(migrate.Plan.open(self._unfinished()), output)
        if self._verb == "verify_again":
            return self._verify(output)
        work = self._next()
        try:
            plan = self._catch_up(work, output) if self._verb == "catch_up" else self._plan(work, output)
        except MigrationError as error:
            output.reporter.hide()
            raise self._refused(error, output) from None
        output.reporter.hide()
        if self._call["dry_run"]:
            return self._planned(plan, output)
        if plan.warnings:
            output.tell(f"warnings: {_kinds(plan)}; see {_warnings(plan)}")
        return self._run(plan, output)

    @property
    def again(self) -> str:
        """How to continue after objects were migrated."""
        how = "" if self._verb == "verify_again" else " with --resume"
        return f"run the same command{how} to continue"

    def interrupted_message(self, progress: ProgressEvent) -> str:
        """Return the last line of a call that was interrupted at ``progress``."""
        plan = self._running
        if plan is None or migrate.state(plan.work) in ("none", "planned"):
            return "interrupted; nothing was written to the destination; run the same command again"
        if self._verb == "verify_again":
            is_far = progress.stage == "verify"
            done = f"{progress.items:,} of {progress.of_items or 0:,} objects verified; " if is_far else ""
            return f"interrupted; {done}{self.again}"
        found = self._recorded(plan)
        done = f"at least {found:,} of {plan.objects:,} objects are in {self._destination}; " if found else ""
        return f"interrupted; {done}{self.again}"

    @staticmethod
    def _recorded(plan: migrate.Plan) -> int:
        """Return the number of objects that complete chunks have stored; 0 if that cannot be read."""
        from pressmark.jobs import WorkFolder
        from pressmark.migrate.entry import GOOD

        try:
            by_status = WorkFolder.open(plan.work).summary().by_status
        except (PressmarkError, OSError, ValueError):
            return 0
        return sum(number for status, number in by_status.items() if status in GOOD or status == "unverified")

    # --- where ----------------------------------------------------------------------------------------------------

    def _next(self) -> str:
        """Return the work folder of a new run.

        :raises CallError: an earlier run is not finished
        :raises JobError: another process has it in use
        """
        folder = migrate.work_folder(self._destination, self._call["work"])
        if migrate.state(folder) == "begun":
            # A folder that cannot be written to has no lock.
            with suppress(OSError), locked(Path(folder, LOCK)):
                pass
            what = "run the same command with --resume to continue, or choose another --work to start a new run"
            raise CallError(f"the run in {quoted_path(folder)} is not finished; {what}")
        return folder

    def _unfinished(self) -> str:
        """Return the work folder of the run to resume: the unfinished one, or else the last finished one.

        :raises CallError: there is no run
        """
        folder = migrate.work_folder(self._destination, self._call["work"])
        if migrate.state(folder) == "none":
            finished = migrate.finished_folder(self._destination, self._call["work"])
            if finished is None:
                raise CallError(f"{folder}: no run to resume; omit --resume to start one")
            folder = finished
        return folder

    def _finished(self) -> migrate.Plan:
        """Return the plan of the last finished run.

        :raises CallError: no run is finished
        """
        folder = migrate.finished_folder(self._destination, self._call["work"])
        if folder is None:
            folder = migrate.work_folder(self._destination, self._call["work"])
            raise CallError(f"{folder}: no finished run; {option(self._verb)} needs one")
        return migrate.Plan.open(folder)

    # --- the plan -------------------------------------------------------------------------------------------------

    def _plan(self, work: str, output: Output) -> migrate.Plan:
        call = self._call
        assert self._to is not None
        source_kind = call["source_kind"] or detect_kind(self._source, "source_kind")
        self._check_ignore(source_kind)
        return migrate.plan(
            self._source,
            self._destination,
            to=self._to,
            work=work,
            ids=call["ids"],
            column=call["column"],
            crlf=call["crlf"],
            new_ids=call["new_ids"],
            check_space=call["check_space"],
            threads=call["workers"] or None,
            progress=output.progress,
            **self._with_provenance(self._to, source_kind),
        )

    def _catch_up(self, work: str, output: Output) -> migrate.Plan:
        first = self._finished()
        # Source, destination and its kind must be the same; other options may differ.
        same = options_of_call(first.options, self._source, self._destination, self._to, {})
        refuse_others(first, same)
        check_destination_options(first.options.to, self._options)
        self._check_ignore(first.options.source_kind)
        return migrate.catch_up(
            first,
            work=work,
            new_ids=self._call["new_ids"],
            threads=self._call["workers"] or None,
            progress=output.progress,
            **self._with_provenance(first.options.to, first.options.source_kind),
        )

    def _check_ignore(self, source_kind: str) -> None:
        """Refuse globs for a source whose objects are marked by declarations.

        :raises CallError: there are globs
        """
        if self._call["ignore"] and source_kind == "ocfl":
            raise CallError("--ignore: files outside of OCFL objects are never migrated; omit the option")

    def _with_provenance(self, to: str, source_kind: str) -> dict[str, Any]:
        """Return the options of the call, with message and user if the run makes versions.

        :raises CallError: message or user do not fit the stores
        """
        if to == source_kind == "ocfl":
            if any(value is not None for value in self._provenance):
                raise CallError("--message, --user: versions of OCFL objects keep their own; omit the options")
            return self._options
        found = self._provenance.options(to)
        if not found:
            return self._options
        return {**self._options, "destination_options": {**self._options.get("destination_options", {}), **found}}

    def _refused(self, error: MigrationError, output: Output) -> CallError:
        """List the conflicts of a refused plan, and return the error."""
        count = 0
        for record in _records(error.refused) if error.refused is not None else ():
            count += 1
            write_conflict(output, record)
        output.summary({"ok": False, "refused": count, "reason": error.reason, "refused_path": error.refused})
        if not count:
            return CallError(str(error))
        what = f"{format_count(count, 'conflict')}, listed on stdout and in {error.refused}"
        return CallError(f"{self._destination}: plan refused, nothing written: {what}")

    def _planned(self, plan: migrate.Plan, output: Output) -> int:
        """Report a plan."""
        for record in _records(_warnings(plan)):
            write_conflict(output, record)
        if self._call["everything"]:
            for entry in plan.entries():
                write_entry(output, entry)
        ok = not (plan.invalid or plan.missing)
        output.summary({"ok": ok, "dry_run": True, **plan.summary()})
        pieces = [
            f"{format_count(plan.objects, 'object')} would be migrated by {plan.mode}",
            f"{format_count(plan.files, 'file')}, {format_bytes(plan.bytes)}",
        ]
        if plan.requests:
            pieces.append(f"about {format_count(plan.requests, 'request')}")
        for number, what in (
            (plan.invalid, "invalid"),
            (plan.missing, "not in the source"),
            (plan.unchanged, "unchanged"),
        ):
            if number:
                pieces.append(f"{number:,} {what}")
        output.tell(f"{self._destination}: {'; '.join(pieces)}; nothing was written", failed=not ok)
        self._forget(plan)
        return 0 if ok else Failure.exit_code

    def _forget(self, plan: migrate.Plan) -> None:
        """Remove the work folder of a catch-up that found nothing; the last run stays the one to catch up with."""
        if self._verb == "catch_up" and not (plan.objects or plan.invalid or plan.missing or plan.warnings):
            shutil.rmtree(plan.work, ignore_errors=True)

    # --- the run --------------------------------------------------------------------------------------------------

    def _run(self, plan: migrate.Plan, output: Output) -> int:
        self._running = plan
        with self._workers(plan, output) as workers:
            how: dict[str, Any] = {
                "max_errors": self._call["max_errors"],
                "progress": output.progress,
                **workers,
            }
            if self._verb == "resume":
                options = self._with_provenance(plan.options.to, plan.options.source_kind)
                if migrate.state(plan.work) == "begun":
                    self._before = self._recorded(plan)
                lists = {name: self._call[name] for name in ("ids", "column", "crlf", "new_ids")}
                run = migrate.resume(plan, options=self._current_options(plan, options), **lists, **how)
            else:
                run = migrate.run(plan, **how)
        return self._end(run, output)

    def _verify(self, output: Output) -> int:
        plan = self._finished()
        self._running = plan
        refuse_others(plan, self._current_options(plan, self._options))
        with self._workers(plan, output) as workers:
            run = migrate.verify(plan, max_errors=self._call["max_errors"], progress=output.progress, **workers)
        return self._end(run, output)

    def _current_options(self, plan: migrate.Plan, options: Mapping[str, Any]) -> migrate.Options:
        return options_of_call(plan.options, self._source, self._destination, self._to, options)

    @contextmanager
    def _workers(self, plan: migrate.Plan, output: Output) -> Iterator[dict[str, Any]]:
        """Yield the workers, as options of the library."""
        if self._call["dask"] is None:
            # A single chunk needs one worker, and a thread starts faster than a process.
            yield {"workers": self._call["workers"] or None, "processes": plan.chunks > 1}
            return
        from pressmark.cli.common.workers import dask_cluster

        # Processes end at once; a cluster ends the running parts.
        with dask_cluster(self._call["dask"]) as client, on_ctrl_c(lambda: _report_end(output.reporter)):
            yield {"client": client}

    def _end(self, run: migrate.Run, output: Output) -> int:
        """Report the result, and return the exit status."""
        output.reporter.hide()
        summary = Summary()
        unseen = 0  # objects without a readable identifier, which no list can contain
        for row in run.rows():
            write_row(output, row, self._call["everything"])
            summary.add(row)
            unseen += row.status not in migrate.GOOD and not row.source_id
        status = run.exit_code
        for path in self._call["reports"]:
            try:
                migrate.report(run, path)
            except ReportError as error:
                say(str(error))
                status = Failure.exit_code
        rated = run.processed and run.seconds
        rates = {
            "objects_per_second": round(run.processed / run.seconds, 1) if rated else None,
            "bytes_per_second": round(run.processed_bytes / run.seconds) if rated else None,
        }
        output.summary({**run.record(), **rates, "rows_path": run.rows_path, "reports": list(self._call["reports"])})
        for text in self._last_words(run, summary, unseen):
            output.tell(text, failed=bool(status))
        if run.complete:
            self._forget(run.plan)
        return status

    def _last_words(self, run: migrate.Run, summary: Summary, unseen: int) -> Iterator[str]:
        statuses = ", ".join(f"{run.by_status[one]:,} {one}" for one in migrate.STATUSES if one in run.by_status)
        read = " verified" if self._verb == "verify_again" else ""
        options = run.plan.options
        if run.by_mode and not read and options.to == "ocfl" != options.source_kind:
            missing = missing_provenance(options.open_destination())
            if missing is not None:
                yield f"{self._destination}: {missing}"
        pieces = [f"{format_count(run.objects, 'object')}{read}{f': {statuses}' if statuses else ''}"]
        if self._before:
            pieces.append(f"{self._before:,} were done before this call")
        by = f" by {', '.join(run.by_mode)}" if run.by_mode and not read else ""
        pieces.append(f"{format_count(run.files, 'file')}, {format_bytes(run.bytes)}{by}")
        if run.noted:
            pieces.append(f"{format_count(run.noted, 'object')} not migrated completely")
        pieces += self._of_this_call(run)
        yield f"{self._destination}: {'; '.join(pieces)}"
        for failed in run.failed:
            yield f"chunk {failed.chunk} failed: {failed.reason}"
        if not run.complete:
            why = _STOPPED.get(run.stopped or "", "some chunks failed")
            yield f"the run is not finished: {why}; {self.again}"
        elif self._verb != "verify_again":
            left = summary.undone + summary.kept.objects - unseen
            path = remaining_path(run.work)
            instead = " instead of --resume" if self._verb == "resume" else ""
            if path is not None:
                # The next catch-up includes the objects that this one has not done.
                how = f"--ids {path}" if run.plan.before is None else "--catch-up"
                yield f"{left:,} not done; fix the listed problems, then run the same command with {how}{instead}"
            if unseen:
                what = f"{unseen:,} not done, with unknown identifiers"
                yield f"{what}; fix the listed problems, then run the same command with --catch-up{instead}"

    def _of_this_call(self, run: migrate.Run) -> list[str]:
        """Return the time and the rates of this call, and with objects of earlier calls, how many are its own."""
        pieces = []
        if self._verb == "resume" or (self._verb == "verify_again" and run.processed < run.objects):
            own = f"processed {format_count(run.processed, 'object')}" if run.processed else "had nothing to do"
            pieces.append(f"this call {own}")
        if run.processed and run.seconds >= 1:
            rates = f"{run.processed / run.seconds:,.0f} objects/s, {format_bytes(run.processed_bytes / run.seconds)}/s"
            pieces.append(f"{format_duration(run.seconds)}, {rates}")
        return [" in ".join(pieces)] if pieces else []


def _report_end(reporter: Reporter) -> None:
    from pressmark.cli.common.workers import report_stopping

    reporter.hide()
    report_stopping()


def _records(path: str) -> Iterator[dict[str, Any]]:
    with open_regular(path) as lines:
        yield from map(json.loads, lines)


def _kinds(plan: migrate.Plan) -> str:
    return ", ".join(f"{count:,} {kind}" for kind, count in plan.warnings.items())


def _warnings(plan: migrate.Plan) -> str:
    return os.path.join(plan.work, WARNINGS)
