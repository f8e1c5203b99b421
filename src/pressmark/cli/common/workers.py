"""Work shared among processes or the workers of a Dask cluster: the options, and the run of a job.

Commands import this module; :mod:`pressmark.jobs` is imported when a job is run.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pressmark.cli.common.console import CallError, Failure, Interrupted, say
from pressmark.cli.common.signals import told_of_ctrl_c
from pressmark.errors import JobError

if TYPE_CHECKING:
    from pressmark.jobs import Chunk, Job, Receipt, Summary, WorkFolder

__all__ = ["Workers", "check_workers", "dask_cluster", "ending_soon", "failures", "job_options", "worker_options"]

Function = TypeVar("Function", bound=Callable[..., Any])
Plan = Callable[[str], "Iterable[Chunk]"]
OnReceipt = Callable[["Receipt"], object]

_WORKERS = (
    click.option(
        "--workers",
        metavar="N",
        type=click.IntRange(min=0),
        help="Share the work among N processes; 0 for one per core.",
    ),
    click.option(
        "--dask",
        metavar="ADDRESS",
        help="Share the work among the workers of the Dask cluster whose scheduler is at ADDRESS, tcp://…",
    ),
    click.option(
        "--dask-scheduler-file",
        metavar="FILE",
        type=click.Path(dir_okay=False),
        help="Share the work among the workers of the Dask cluster whose scheduler wrote FILE.",
    ),
)
_RUN = (
    click.option(
        "--work",
        metavar="DIR",
        type=click.Path(file_okay=False),
        help="With --workers or --dask: keep plan, receipts and results in DIR until the run is complete. All workers"
        " must see DIR under this path. Default: OUTPUT.work, or without OUTPUT a temporary directory, which no later"
        " run can resume.",
    ),
    click.option("--resume", is_flag=True, help="Continue the interrupted run in DIR; finished parts stay."),
)


def worker_options(function: Function) -> Function:
    """Add the options that say who does the work; :func:`check_workers` checks what they give."""
    for option in reversed(_WORKERS):
        function = option(function)
    return function


def job_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a run that may be shared; the command gets them as ``workers``, or :data:`None` there."""

    @functools.wraps(function)
    def command(
        *arguments: Any,
        workers: int | None,
        dask: str | None,
        dask_scheduler_file: str | None,
        work: str | None,
        resume: bool,
        **call: Any,
    ) -> Any:
        check_workers(workers, dask, dask_scheduler_file)
        if workers is None and dask is None and dask_scheduler_file is None:
            for given, option in ((work is not None, "--work"), (resume, "--resume")):
                if given:
                    raise CallError(f"{option} needs --workers or --dask")
            return function(*arguments, workers=None, **call)
        with Workers(workers, dask, dask_scheduler_file, work, resume) as chosen:
            return function(*arguments, workers=chosen, **call)

    wrapped: Callable[..., Any] = command
    for option in reversed(_RUN):
        wrapped = option(wrapped)
    return worker_options(wrapped)


def check_workers(workers: int | None, dask: str | None, scheduler_file: str | None) -> None:
    """Refuse more than one answer to who does the work."""
    if sum(given is not None for given in (workers, dask, scheduler_file)) > 1:
        raise CallError("use only one of --workers, --dask and --dask-scheduler-file")


@contextlib.contextmanager
def dask_cluster(address: str | None, scheduler_file: str | None) -> Iterator[Any]:
    """Give a client of a Dask cluster; :data:`None` where a call names none."""
    if address is None and scheduler_file is None:
        yield None
        return
    from pressmark.jobs import dask_client

    with contextlib.closing(dask_client(address, scheduler_file)) as client:
        yield client


def ending_soon() -> None:
    """Answer the first Ctrl-C of a run whose parts at work are waited for."""
    say("stopping when the running parts are done; press Ctrl-C again to stop now")


class Workers:
    """Who does the work of a call, and where its results are kept meanwhile; a context manager.

    A work folder of :meth:`run` is removed when the context ends without an exception: then OUTPUT is in place.

    :param count: of processes; :data:`None` for a Dask cluster
    :param address: of a Dask scheduler
    :param scheduler_file: that a Dask scheduler wrote
    :param work: the work folder; :data:`None` where the call names none
    :param resume: continue the run in it
    """

    def __init__(
        self, count: int | None, address: str | None, scheduler_file: str | None, work: str | None, resume: bool
    ) -> None:
        self._count = count
        self._address = address
        self._scheduler_file = scheduler_file
        self._named = work
        self._resume = resume
        self._temporary = contextlib.ExitStack()
        self._work: WorkFolder | None = None

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._temporary:
            if kind is None:
                self.remove()

    def remove(self) -> None:
        """Remove the work folder: nobody needs its results any more."""
        work, self._work = self._work, None
        if work is not None:
            work.remove()

    @property
    def cluster(self) -> bool:
        """Whether a Dask cluster does the work."""
        return self._address is not None or self._scheduler_file is not None

    def refuse(self, *pairs: tuple[object, str]) -> None:
        """Refuse what cannot be shared.

        :param pairs: whether it is given; what is wrong, and what to do, up to leaving out these options
        :raises CallError: something is given
        """
        for given, what in pairs:
            if given:
                raise CallError(f"{what} leave out {'--dask' if self.cluster else '--workers'}")

    def run(self, job: Job, plan: Plan, inputs: Sequence[str], output: str | None, on_receipt: OnReceipt) -> WorkFolder:
        """Have a job done, and return its work folder.

        :param plan: gives the chunks, from the path of the work folder
        :param inputs: what the run is about, as the call names it: another call does not resume it
        :param output: where results go, as the call names it
        :raises CallError: the run cannot begin
        :raises Failure: parts of it could not be done
        :raises Interrupted: it was interrupted, and says how to continue
        """
        folder = self._folder(output)
        again = "run the same command with --resume to continue"
        if folder is None:
            import tempfile

            temporary = self._temporary.enter_context(tempfile.TemporaryDirectory(prefix="pressmark-"))
            folder = os.path.join(temporary, "work")
            again = "nothing was kept (with --work DIR the run could be resumed)"
        work = None
        try:
            with dask_cluster(self._address, self._scheduler_file) as client:
                work = self._work_folder(folder, job, plan, inputs)
                with told_of_ctrl_c(ending_soon):
                    summary = self._summary(job, work, client, on_receipt)
        except KeyboardInterrupt:
            raise Interrupted("interrupted" if work is None else f"interrupted; {again}") from None
        except JobError as error:
            if work is None:
                raise
            raise Failure(f"{error}; {again}") from None
        if not summary.complete:
            for failed in summary.failed:
                say(f"part {failed.chunk} failed: {failed.reason}")
            raise Failure(f"{summary.chunks - summary.done} of {summary.chunks} parts are missing; {again}")
        self._work = work
        return work

    def _folder(self, output: str | None) -> str | None:
        if self._named is not None:
            return self._named
        if output is not None and output != "-":
            return f"{output}.work"
        if self._resume:
            raise CallError("--resume needs --work DIR")
        if self.cluster:
            raise CallError("--dask needs --work DIR, a directory that all workers see under the same path")
        return None

    def _work_folder(self, folder: str, job: Job, plan: Plan, inputs: Sequence[str]) -> WorkFolder:
        from pressmark.jobs import WorkFolder

        # As it comes back out of JSON.
        parameters = json.loads(json.dumps({**job.parameters(), "inputs": list(inputs)}))  # type: ignore[attr-defined]
        begun = os.path.exists(os.path.join(folder, "run.json"))
        if not self._resume:
            if begun:
                what = "run the same command with --resume to continue it, or choose another folder with --work"
                raise CallError(f"{folder}: a run was started here and is not complete; {what}")
            return WorkFolder.create(folder, job, plan(folder), parameters)
        if not begun:
            raise CallError(f"{folder}: no run to resume; leave out --resume to start one")
        work = WorkFolder.open(folder)
        if work.job_key != job.key or work.parameters != parameters:
            names = sorted({*work.parameters, *parameters})
            differ = ", ".join(name for name in names if work.parameters.get(name) != parameters.get(name))
            what = "use the same options, or start a new run with another --work"
            raise CallError(f"{folder}: this run was started with different options ({differ}); {what}")
        return work

    def _summary(self, job: Job, work: WorkFolder, client: Any, on_receipt: OnReceipt) -> Summary:
        from pressmark.jobs import run_dask, run_local

        if client is not None:
            return run_dask(job, work, client, on_receipt=on_receipt)
        # A single part is one worker's anyway, and a thread begins at once.
        threads = len(list(islice(work.chunks(), 2))) < 2
        return run_local(job, work, self._count, threads, on_receipt=on_receipt)


def failures(work: WorkFolder, receipt: Receipt) -> Iterator[dict[str, Any]]:
    """Give what went wrong in a chunk, in its order."""
    if receipt.errors and receipt.output is not None:
        with open(work.output_path(f"{receipt.output.rpartition('.')[0]}.errors.jsonl"), "rb") as lines:
            yield from map(json.loads, lines)
