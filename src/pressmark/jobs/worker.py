"""What a worker does with a chunk, wherever it is."""

from __future__ import annotations

import errno
from typing import NamedTuple

from pressmark.fs.locks import host
from pressmark.jobs.chunks import Chunk
from pressmark.jobs.receipts import Receipt
from pressmark.jobs.visibility import Place, unseen
from pressmark.jobs.workdir import Job, WorkFolder
from pressmark.version import __version__

__all__ = ["Failed", "run_chunk"]

# What a file system may get over: a server that was away, a disk that was busy.
_TRANSIENT = frozenset(
    getattr(errno, name)
    for name in ("EIO", "ESTALE", "ETIMEDOUT", "EAGAIN", "EBUSY", "EINTR", "ECONNRESET", "EHOSTDOWN", "EREMOTEIO")
    if hasattr(errno, name)
)


class Failed(NamedTuple):
    """A chunk that a worker could not do.

    :ivar chunk: its id
    :ivar kind: the exception's class, or ``lost`` where its worker died or was lost
    :ivar reason: one line
    :ivar retryable: whether it may go well another time
    :ivar fatal: whether the other chunks would fail as well
    """

    chunk: str
    kind: str
    reason: str
    retryable: bool = False
    fatal: bool = False


def run_chunk(job: Job, chunk: Chunk, place: Place) -> Receipt | Failed:
    """Do a chunk, and write its receipt once its work is in place.

    It raises nothing of its own: not every exception survives the way back from another process.
    """
    hidden = unseen(place)
    if hidden is not None:
        reason = f"a worker on {host()} does not see {hidden}; mount it there under the same path"
        return Failed(chunk.id, "unseen", reason, fatal=True)
    if place.version != __version__:
        reason = (
            f"a worker on {host()} has pressmark {__version__}, the scheduler {place.version}; install the same one"
        )
        return Failed(chunk.id, "version", reason, fatal=True)
    work = WorkFolder.at(place)
    try:
        # Done by another worker, while this one was thought to be lost; or done by this one, and its answer was lost.
        done = work.receipt(chunk.id)
        return work.write_receipt(job.run(chunk, work)) if done is None else done
    except Exception as error:
        text = " ".join(str(error).split()) or "no message"
        return Failed(chunk.id, type(error).__name__, text, _is_retryable(job, error))


def _is_retryable(job: Job, error: Exception) -> bool:
    own = getattr(job, "retryable", None)
    if own is not None:
        return bool(own(error))
    return isinstance(error, OSError) and error.errno in _TRANSIENT
