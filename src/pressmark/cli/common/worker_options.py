"""The options of a run that processes or a Dask cluster share; :mod:`pressmark.cli.common.workers` does the run."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import click

__all__ = ["job_options", "worker_options"]

Function = TypeVar("Function", bound=Callable[..., Any])

_WORKERS = (
    click.option(
        "--workers",
        metavar="N",
        type=click.IntRange(min=0),
        help="Share the work among N processes; 0 for one per core.",
    ),
    click.option(
        "--dask",
        metavar="ADDRESS|FILE",
        help="Share the work among the workers of the Dask cluster whose scheduler is at ADDRESS, tcp://…, or wrote"
        " FILE (dask scheduler --scheduler-file FILE).",
    ),
)
_WORK = (
    "With --workers or --dask: keep plan, receipts and results in DIR until the run is complete. All workers must see"
    " DIR under this path. Default: {}a temporary directory, and the run cannot be resumed."
)
_RESUME = click.option(
    "--resume", is_flag=True, help="Continue the interrupted run in DIR; finished parts are not repeated."
)


def worker_options(function: Function) -> Function:
    """Add the options for workers."""
    for option in reversed(_WORKERS):
        function = option(function)
    return function


def job_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a run by workers; the command gets :class:`Workers` or :data:`None` as ``workers``."""

    @functools.wraps(function)
    def command(
        *arguments: Any,
        workers: int | None,
        dask: str | None,
        work: str | None,
        resume: bool,
        **call: Any,
    ) -> Any:
        if workers is None and dask is None:
            return function(*arguments, workers=None, **call)
        from pressmark.cli.common.workers import Workers

        with Workers(workers, dask, work, resume) as chosen:
            return function(*arguments, workers=chosen, **call)

    default = "with -o OUTPUT, OUTPUT.work; otherwise " if "output" in function.__annotations__ else ""
    work_option = click.option("--work", metavar="DIR", type=click.Path(file_okay=False), help=_WORK.format(default))
    return worker_options(work_option(_RESUME(command)))
