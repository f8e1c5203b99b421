"""The run of a job by processes or by the workers of a Dask cluster."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from pressmark import jobs
from pressmark.cli.common.console import CallError, Failure, Interrupted, say
from pressmark.cli.common.program import on_ctrl_c
from pressmark.cli.common.progress import Reporter
from pressmark.errors import JobError
from pressmark.fs.atomic import is_stream
from pressmark.jobs import Summary, WorkFolder
from pressmark.jobs.chunks import Chunk
from pressmark.jobs.executors import start_fork_server
from pressmark.jobs.workdir import Job
from pressmark.progress_event import EventListener, Progress

__all__ = ["Workers", "dask_cluster", "report_stopping"]

Plan = Callable[[str], Iterable[Chunk]]


@contextlib.contextmanager
def dask_cluster(scheduler: str | None) -> Iterator[Any]:
    """Yield a client of the Dask cluster, or :data:`None` if no cluster is given.

    :param scheduler: ``--dask``
    """
    if scheduler is None:
        yield None
        return
    with contextlib.closing(jobs.dask_client(scheduler)) as client:
        # Dask logs the tracebacks of a lost connection, which is reported as one error here.
        for name in list(logging.root.manager.loggerDict):
            if name.partition(".")[0] == "distributed":
                logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        yield client


def report_stopping() -> None:
    """Report the first Ctrl-C, after which running parts are completed."""
    say("stopping when the running parts are done; press Ctrl-C again to stop now")


class Workers:
    """The workers of a command, and the work folder of its run; a context manager.

    The work folder is removed when the context ends without an exception, as the output is complete then.

    :param count: number of processes; :data:`None` for a Dask cluster
    :param dask: ``--dask``
    :param work: ``--work``
    :param resume: ``--resume``
    """

    def __init__(self, count: int | None, dask: str | None, work: str | None, resume: bool) -> None:
        self._count = count
        self._dask = dask
        self._named = work
        self._resume = resume
        self._temporary = contextlib.ExitStack()
        self._work: WorkFolder | None = None

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._temporary:
            if kind is None and self._work is not None:
                self._work.remove()

    @property
    def cluster(self) -> bool:
        """Whether the workers are those of a Dask cluster."""
        return self._dask is not None

    def run(
        self,
        job: Job,
        plan: Plan,
        inputs: Sequence[str],
        output: str | None,
        reporter: Reporter,
        kept: str = "nothing was kept; use --work DIR to make a run resumable",
    ) -> WorkFolder:
        """Run a job, and return its work folder.

        :param plan: returns the chunks, given the path of the work folder
        :param inputs: the input arguments of the command; a run is resumed only with the same
        :param output: ``--output``
        :param reporter: receives the progress of the chunks that are complete
        :param kept: what is left of a run that has ended early and has no work folder of its own, and what to do
        :raises CallError: the run cannot start
        :raises Failure: parts of it failed
        :raises Interrupted: the run was interrupted
        """
        folder = self._folder(output)
        again = "run the same command with --resume to continue"
        if folder is None:
            temporary = self._temporary.enter_context(tempfile.TemporaryDirectory(prefix="pressmark-"))
            folder = os.path.join(temporary, "work")
            again = kept
        work = None
        try:
            with dask_cluster(self._dask) as client:
                work = self._work_folder(folder, job, plan, inputs)
                # Processes end at once; a cluster ends the running parts.
                with contextlib.nullcontext() if client is None else on_ctrl_c(report_stopping):
                    summary = self._summary(job, work, client, EventListener(reporter.on_event))
        except KeyboardInterrupt:
            raise Interrupted(f"interrupted; {again if work else 'run the same command again'}") from None
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
        if output is not None and output != "-" and not is_stream(output):
            return f"{output}.work"
        if self._resume:
            raise CallError("--resume needs --work DIR")
        if self.cluster:
            raise CallError("--dask needs --work DIR, a directory that all workers see under the same path")
        return None

    def _work_folder(self, folder: str, job: Job, plan: Plan, inputs: Sequence[str]) -> WorkFolder:
        # As parsed from JSON.
        parameters = json.loads(json.dumps({**job.parameters(), "inputs": list(inputs)}))  # type: ignore[attr-defined]
        begun = WorkFolder.exists(folder)
        if not self._resume:
            if begun:
                what = "run the same command with --resume to continue it, or choose another folder with --work"
                raise CallError(f"{folder}: a run was started here and is not complete; {what}")
            return WorkFolder.create(folder, job, self._beside_start(job, plan(folder)), parameters)
        if not begun:
            raise CallError(f"{folder}: no run to resume; omit --resume to start one")
        work = WorkFolder.open(folder)
        if work.job_key != job.key or work.parameters != parameters:
            names = sorted({*work.parameters, *parameters})
            differ = ", ".join(name for name in names if work.parameters.get(name) != parameters.get(name))
            what = "use the same options, or start a new run with another --work"
            raise CallError(f"{folder}: this run was started with different options ({differ}); {what}")
        return work

    def _beside_start(self, job: Job, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        """Yield the chunks of a plan, and start the fork server at the second one: a single chunk needs no process."""
        for number, chunk in enumerate(chunks):
            if number == 1 and not self.cluster:
                start_fork_server(type(job).__module__)
            yield chunk

    def _summary(self, job: Job, work: WorkFolder, client: Any, progress: Progress) -> Summary:
        if client is not None:
            return jobs.run_dask(job, work, client, progress=progress)
        # For a single part, a thread starts faster than a process.
        is_single = len(list(islice(work.remaining(), 2))) < 2
        return jobs.run_local(job, work, self._count or None, processes=not is_single, progress=progress)
