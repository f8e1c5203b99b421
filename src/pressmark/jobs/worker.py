"""Running a chunk in a worker."""

from __future__ import annotations

import errno

from pressmark.fs.locks import host
from pressmark.jobs.chunks import Chunk
from pressmark.jobs.receipts import FailedChunk, Receipt
from pressmark.jobs.visibility import Place, unseen
from pressmark.jobs.workdir import Job, OnProgress, WorkFolder
from pressmark.version import __version__

__all__ = ["run_chunk"]

# Errors that may be temporary: an unreachable server, a busy disk.
_TRANSIENT = frozenset(
    getattr(errno, name)
    for name in ("EIO", "ESTALE", "ETIMEDOUT", "EAGAIN", "EBUSY", "EINTR", "ECONNRESET", "EHOSTDOWN", "EREMOTEIO")
    if hasattr(errno, name)
)


def run_chunk(job: Job, chunk: Chunk, place: Place, on_progress: OnProgress | None = None) -> Receipt | FailedChunk:
    """Run a chunk, and write its receipt once its output is in place.

    Errors are returned, not raised: not every exception can be sent to another process.

    :param on_progress: called with the progress, which is otherwise written to the work folder
    """
    hidden = unseen(place)
    if hidden is not None:
        reason = f"worker on {host()} does not see {hidden}; mount it under the same path"
        return FailedChunk(chunk.id, "unseen", reason, fatal=True)
    if place.version != __version__:
        versions = f"pressmark {__version__} on worker {host()}, {place.version} on the scheduler"
        reason = f"{versions}; install the same version"
        return FailedChunk(chunk.id, "version", reason, fatal=True)
    work = WorkFolder.at(place, on_progress)
    try:
        # A chunk that was thought to be lost may have been completed meanwhile.
        done = work.receipt(chunk.id)
        return work.write_receipt(job.run(chunk, work)) if done is None else done
    except Exception as error:
        text = " ".join(str(error).split()) or "no message"
        return FailedChunk(chunk.id, type(error).__name__, text, _is_retryable(job, error))
    finally:
        work.end_progress(chunk.id)


def _is_retryable(job: Job, error: Exception) -> bool:
    own = getattr(job, "retryable", None)
    if own is not None:
        return bool(own(error))
    return isinstance(error, OSError) and error.errno in _TRANSIENT
