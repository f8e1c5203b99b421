"""Somebody else on the same machine: a child process with another user id, where the tests may take one."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

__all__ = ["OTHER", "THIRD", "as_user", "needs_users", "shared_folder"]

#: User ids that nobody on the machine need have.
OTHER, THIRD = 54321, 54322

needs_users = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may act as another user"
)


def as_user(user: int, folder: Path, action: Callable[[], object], *, group: int | None = None, umask: int = 0) -> None:
    """Do something in a child process as another user, who stands in ``folder`` and need not be able to reach it.

    :param group: of all that the user makes, and the only one that the user has; as the user's number if not given
    :raises AssertionError: it raised an exception
    """
    failed, sent = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # other threads: the child needs none of their locks
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
    """Make a directory that others may write to as well."""
    path.mkdir()
    os.chown(path, -1, group)
    os.chmod(path, mode)
    return path
