"""What a call asks for: a new run, its plan alone, going on with one, catching up, or verifying."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from pressmark import migrate
from pressmark.cli.common.console import CallError, Failure, say
from pressmark.cli.common.file_progress import format_bytes, format_count
from pressmark.cli.common.progress import format_duration
from pressmark.cli.common.signals import on_ctrl_c
from pressmark.cli.common.worker_options import check_workers
from pressmark.cli.common.workers import dask_cluster, report_stopping
from pressmark.cli.migrate.options import asked_for, refuse_mixed
from pressmark.cli.migrate.output import Lines
from pressmark.cli.migrate.watch import Watch
from pressmark.errors import MigrationError, ReportError
from pressmark.fs.names import is_inside
from pressmark.migrate.execution.run_result import remaining_path
from pressmark.migrate.reporting.summary import Summary
from pressmark.migrate.workdir import WARNINGS, is_of_run

__all__ = ["Call"]

_STOPPED = {"max_errors": "too many objects failed", "stop": "stopped"}


class Call:
    """One call of the command.

    :param call: the values of all options
    :param given: what was said of the library's options
    :raises CallError: options do not go together
    """

    def __init__(self, call: Mapping[str, Any], given: dict[str, Any]) -> None:
        self._call = call
        self._source: str = call["source"]
        self._destination: str = call["destination"]
        self._to: str | None = call["to"]
        self._given = given
        self._work: str | None = None
        # The call that is gone on with may have been any other.
        later = ("dry_run", "verify_again") if call["resume"] else ("catch_up", "verify_again")
        verbs = [name for name in ("resume", *later) if call[name]]
        if call["dry_run"] and call["verify_again"]:
            verbs = ["dry_run", "verify_again"]
        if len(verbs) > 1:
            raise CallError(f"{_option(verbs[0])} and {_option(verbs[1])} do not go together")
        self._verb = verbs[0] if verbs else "migrate"
        self._check()

    def _check(self) -> None:
        call = self._call
        check_workers(call["workers"], call["dask"], call["dask_scheduler_file"])
        if call["dry_run"] and call["reports"]:
            raise CallError("--report does not go with --dry-run: nothing has become of any object yet")
        for name in ("column", "crlf"):
            if call[name] is not None and call["ids"] is None:
                raise CallError(f"--{name} goes with --ids only")
        later = {"catch_up": ("ids",), "verify_again": ("ids", "new_ids")}.get(self._verb, ())
        for name in later:
            if call[name] is not None:
                option = "--map" if name == "new_ids" else "--ids"
                raise CallError(f"{option} does not go with {_option(self._verb)}: it is about all of the first run")
        for report in call["reports"]:
            self._check_report(report)
        if self._verb == "migrate":
            if self._to is None:
                raise CallError("say what DESTINATION is to be: --to pairtree, --to vitro, --to ocfl or --to bags")
            refuse_mixed(self._to, self._given)

    def _check_report(self, path: str) -> None:
        """Make sure that a report can be written, replaces nothing that is needed, and does not lie in a store."""
        from pressmark.migrate.reporting.report import check_report

        for store in (self._source, self._destination):
            if is_inside(path, store):
                raise CallError(f"--report {path}: it would lie in the store {store}; name a place outside of it")
        for name, option in (("ids", "--ids"), ("new_ids", "--map")):
            # Where one of the two is not there, they are not the same.
            with suppress(OSError):
                if self._call[name] is not None and os.path.samefile(path, self._call[name]):
                    raise CallError(f"--report {path}: it would replace the list of {option}; name another file")
        if is_of_run(path, migrate.work_folder(self._destination, self._call["work"])):
            raise CallError(f"--report {path}: the run has a file of this name for itself; name another one")
        check_report(path)

    def go(self, lines: Lines, watch: Watch) -> int:
        """Do what was asked for, and return the exit status."""
        if self._verb == "resume":
            return self._run(migrate.Plan.open(self._unfinished()), lines, watch)
        if self._verb == "verify_again":
            return self._verify(lines, watch)
        work = self._next()
        try:
            plan = self._catch_up(work, watch) if self._verb == "catch_up" else self._plan(work, watch)
        except MigrationError as error:
            watch.hide()
            raise self._refused(error, lines) from None
        watch.hide()
        if self._call["dry_run"]:
            return self._planned(plan, lines)
        if plan.warnings:
            say(f"the plan warns of {_kinds(plan)}; {_warnings(plan)} lists them")
        return self._run(plan, lines, watch)

    @property
    def again(self) -> str:
        """How to continue once objects are being migrated."""
        how = "" if self._verb == "verify_again" else " with --resume"
        return f"run the same command{how} to continue"

    def interruption_message(self, watch: Watch) -> str:
        """Return the last words of a call that was interrupted."""
        if self._work is None or migrate.state(self._work) in ("none", "planned"):
            return "interrupted; nothing was written to the destination"
        far = watch.last if watch.phase == "run" else None
        done = f"{far.objects:,} of {far.of_objects or 0:,} objects done; " if far is not None else ""
        return f"interrupted; {done}{self.again}"

    # --- where ----------------------------------------------------------------------------------------------------

    def _next(self) -> str:
        """Return the work folder of a new run.

        :raises CallError: there is one that has not ended
        """
        folder = migrate.work_folder(self._destination, self._call["work"])
        if migrate.state(folder) == "begun":
            what = "run the same command with --resume to continue, or name another --work to start a new run"
            raise CallError(f"the run in {folder} is not finished; {what}")
        return folder

    def _unfinished(self) -> str:
        """Return the work folder of the run that is gone on with; where all are finished, of the last one.

        :raises CallError: there is none
        """
        folder = migrate.work_folder(self._destination, self._call["work"])
        if migrate.state(folder) == "none":
            finished = migrate.finished_folder(self._destination, self._call["work"])
            if finished is None:
                raise CallError(f"{folder}: no run to resume; omit --resume to start one")
            folder = finished
        return folder

    def _finished(self) -> migrate.Plan:
        """Return the plan of the last run that is finished.

        :raises CallError: there is none
        """
        folder = migrate.finished_folder(self._destination, self._call["work"])
        if folder is None:
            folder = migrate.work_folder(self._destination, self._call["work"])
            raise CallError(f"{folder}: no finished run; {_option(self._verb)} needs one")
        return migrate.Plan.open(folder)

    # --- the plan -------------------------------------------------------------------------------------------------

    def _plan(self, work: str, watch: Watch) -> migrate.Plan:
        call = self._call
        assert self._to is not None
        return migrate.plan(
            self._source,
            self._destination,
            to=self._to,
            work=work,
            ids=call["ids"],
            column=call["column"],
            crlf=call["crlf"],
            new_ids=call["new_ids"],
            order=call["order"],
            check_space=call["check_space"],
            threads=call["workers"],
            on_event=watch.on_event,
            **self._given,
        )

    def _catch_up(self, work: str, watch: Watch) -> migrate.Plan:
        first = self._finished()
        # Where the two are, and what the destination is, stays; how objects get there may be another way now.
        there = asked_for(first.options, self._source, self._destination, self._to, {})
        migrate.refuse_others(first, there)
        return migrate.catch_up(
            first,
            work=work,
            new_ids=self._call["new_ids"],
            threads=self._call["workers"],
            on_event=watch.on_event,
            **self._given,
        )

    def _refused(self, error: MigrationError, lines: Lines) -> CallError:
        """List what is refused, and return the error that says so."""
        count = 0
        for record in _records(error.refused) if error.refused is not None else ():
            count += 1
            lines.refusal(record)
        lines.summary({"ok": False, "refused": count, "reason": error.reason, "refused_path": error.refused})
        if not count:
            return CallError(str(error))
        what = f"{format_count(count, 'reason')}, each on standard output and in {error.refused}"
        return CallError(f"{self._destination}: refused, and nothing was written there: {what}")

    def _planned(self, plan: migrate.Plan, lines: Lines) -> int:
        """Tell what would be done."""
        for record in _records(_warnings(plan)):
            lines.refusal(record)
        if self._call["everything"]:
            for entry in plan.entries():
                lines.entry(entry)
        lines.summary({"ok": True, "dry_run": True, **plan.summary()})
        pieces = [
            f"{format_count(plan.objects, 'object')} would be migrated by {plan.mode}",
            f"{format_count(plan.files, 'file')}, {format_bytes(plan.bytes)}",
        ]
        for number, what in (
            (plan.invalid, "left out as not proper"),
            (plan.missing, "not in the source"),
            (plan.unchanged, "not changed since"),
        ):
            if number:
                pieces.append(f"{number:,} {what}")
        say(f"{self._destination}: {'; '.join(pieces)}; nothing was written")
        return 0

    # --- the run --------------------------------------------------------------------------------------------------

    def _run(self, plan: migrate.Plan, lines: Lines, watch: Watch) -> int:
        self._work = plan.work
        with self._workers(plan) as workers, on_ctrl_c(lambda: _report_end(watch)):
            how: dict[str, Any] = {
                "max_errors": self._call["max_errors"],
                "on_event": watch.on_event,
                **workers,
            }
            if self._verb == "resume":
                run = migrate.resume(plan, options=self._asked(plan), **how)
            else:
                run = migrate.run(plan, **how)
        return self._end(run, lines, watch)

    def _verify(self, lines: Lines, watch: Watch) -> int:
        plan = self._finished()
        self._work = plan.work
        migrate.refuse_others(plan, self._asked(plan))
        with self._workers(plan) as workers, on_ctrl_c(lambda: _report_end(watch)):
            run = migrate.verify(plan, max_errors=self._call["max_errors"], on_event=watch.on_event, **workers)
        return self._end(run, lines, watch)

    def _asked(self, plan: migrate.Plan) -> migrate.Options:
        return asked_for(plan.options, self._source, self._destination, self._to, self._given)

    @contextmanager
    def _workers(self, plan: migrate.Plan) -> Iterator[dict[str, Any]]:
        """Give who does the work, as the library takes it."""
        with dask_cluster(self._call["dask"], self._call["dask_scheduler_file"]) as client:
            # A single chunk is one worker's anyway, and a thread begins at once.
            here = {"workers": self._call["workers"], "threads": plan.chunks <= 1}
            yield here if client is None else {"client": client}

    def _end(self, run: migrate.Run, lines: Lines, watch: Watch) -> int:
        """Tell how it ended, and return the exit status."""
        watch.hide()
        summary = Summary()
        unseen = 0  # what no list of identifiers can name
        for row in run.rows():
            lines.row(row)
            summary.add(row)
            unseen += row.status not in migrate.GOOD and not row.source_id
        status = run.exit_code
        for path in self._call["reports"]:
            try:
                migrate.report(run, path)
            except ReportError as error:
                say(str(error))
                status = Failure.exit_code
        # Rows say when objects were migrated, not when they were read again.
        busy = run.seconds if self._verb == "verify_again" else summary.clock.busy
        rates = {
            "objects_per_second": round(run.objects / busy, 1) if busy else None,
            "bytes_per_second": round(run.bytes / busy) if busy else None,
        }
        lines.summary({**run.record(), **rates, "rows_path": run.rows_path, "reports": list(self._call["reports"])})
        for text in self._last_words(run, summary, busy, unseen):
            say(text)
        return status

    def _last_words(self, run: migrate.Run, summary: Summary, busy: float, unseen: int) -> Iterator[str]:
        statuses = ", ".join(f"{run.by_status[one]:,} {one}" for one in migrate.STATUSES if one in run.by_status)
        read = " read again" if self._verb == "verify_again" else ""
        pieces = [f"{format_count(run.objects, 'object')}{read}{f': {statuses}' if statuses else ''}"]
        by = f" by {', '.join(run.by_mode)}" if run.by_mode and not read else ""
        pieces.append(f"{format_count(run.files, 'file')}, {format_bytes(run.bytes)}{by}")
        if run.noted:
            pieces.append(f"{format_count(run.noted, 'object')} not migrated whole")
        if busy >= 1:
            pieces.append(
                f"{format_duration(busy)}, {run.objects / busy:,.0f} objects/s, {format_bytes(run.bytes / busy)}/s"
            )
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
                # What a catch-up has not done the next one does; it takes no list.
                how = f"--ids {path}" if run.plan.before is None else "--catch-up"
                yield f"{left:,} not done; fix the listed problems, then run the same command with {how}{instead}"
            if unseen:
                what = f"{unseen:,} not done, with unknown identifiers"
                yield f"{what}; fix the listed problems, then run the same command with --catch-up{instead}"


def _report_end(watch: Watch) -> None:
    watch.hide()
    report_stopping()


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _records(path: str) -> Iterator[dict[str, Any]]:
    with open(path, "rb") as lines:
        yield from map(json.loads, lines)


def _kinds(plan: migrate.Plan) -> str:
    return ", ".join(f"{count:,} {kind}" for kind, count in plan.warnings.items())


def _warnings(plan: migrate.Plan) -> str:
    return os.path.join(plan.work, WARNINGS)
