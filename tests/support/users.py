"""Run as another user of the machine: a child process with another user id. Needs root."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

__all__ = ["OTHER", "THIRD", "as_user", "needs_users", "shared_folder"]

#: User ids that need not exist on the machine.
OTHER, THIRD = 54321, 54322

needs_users = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may act as another user"
)


def as_user(user: int, folder: Path, action: Callable[[], object], *, group: int | None = None, umask: int = 0) -> None:
    """Call ``action`` in a child process as another user.

    :param folder: the working directory; the user need not have access to its parents
    :param group: the only group of the user; by default the same number as ``user``
    :raises AssertionError: ``action`` raised an exception
    """
    failed, sent = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the child does not use locks of other threads
        child = os.fork()
    if child == 0:
        words = ""
        try:
            os.chdir(folder)
            os.umask(umask)
            _become(user, user if group is None else group, [])
            action()
        except BaseException:
            words = traceback.format_exc()
        finally:
            os.write(sent, words.encode()[:60_000])
            os._exit(0)
    os.close(sent)
    with open(failed, "rb") as file:
        words = file.read().decode()
    os.waitpid(child, 0)
    assert not words, words


def _become(user: int, group: int, groups: Sequence[int]) -> None:
    if sys.platform != "win32":
        os.setgroups(groups)
        os.setresgid(group, group, group)
        os.setresuid(user, user, user)


def shared_folder(path: Path, mode: int, group: int = 0) -> Path:
    """Make a directory with a mode and a group."""
    path.mkdir()
    os.chown(path, -1, group)
    os.chmod(path, mode)
    return path
