"""Steps of changes, observed or stopped one by one, in either implementation."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from pressmark import _kernels
from pressmark._kernels.records import MOVE, Step
from pressmark.fs import changes

__all__ = ["Killed", "killed_between_moves", "observed", "stopped"]

CALLS = ("mkdir", "rename", "unlink", "rmdir", "fsync")


@contextmanager
def observed(before: Callable[[bytes, Step], object]) -> Iterator[None]:
    """Run each step alone, and call ``before`` with its directory and itself first; an OSError is the step's error."""
    run = _kernels.active.run_steps

    def run_steps(bases: list[bytes], lists: list[list[Step]]) -> list[tuple[int, int, int]]:
        outcomes = []
        for base, steps in zip(bases, lists, strict=True):
            error, made, lock = 0, 0, -1
            try:
                for step in steps:
                    before(base, step)
                    [(error, _made, descriptor)] = run([base], [[step]])
                    if error:
                        break
                    made, lock = made + 1, max(lock, descriptor)
            except OSError as failed:
                error = failed.errno or 5
            except BaseException:
                if lock >= 0:
                    os.close(lock)
                raise
            outcomes.append((error, made, lock))
        return outcomes

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_kernels.active, "run_steps", run_steps)
        yield


class Killed(BaseException):
    """Simulates the death of the process: no code may catch it."""


@contextmanager
def killed_between_moves(staging: bytes) -> Iterator[None]:
    """Kill a change between its moves out and in, without reversing it.

    :param staging: name of the hidden directory
    """

    def kill(*_args: object) -> None:
        raise Killed

    def before(_base: bytes, step: Step) -> None:
        if step[0] == MOVE and step[1].startswith((staging + b"/data", staging + b"/new")):
            raise Killed

    with pytest.MonkeyPatch.context() as patch, observed(before), pytest.raises(Killed):  # noqa: PT012
        patch.setattr(changes, "_reverse", kill)
        yield


@contextmanager
def stopped(stop: int, error: BaseException) -> Iterator[None]:
    """Make step or call number ``stop`` that changes a file, and all later ones, raise ``error``."""
    count, inside = 0, False

    def next_one() -> None:
        nonlocal count
        count += 1
        if count > stop:
            raise error

    def stopping(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: object, **more: object) -> object:
            if not inside:
                next_one()
            return real(*args, **more)

        return call

    def counted(run: Callable[..., Any]) -> Callable[..., Any]:
        def run_steps(bases: list[bytes], lists: list[list[Step]]) -> Any:
            nonlocal inside
            inside = True
            try:
                return run(bases, lists)
            finally:
                inside = False

        return run_steps

    with observed(lambda _base, _step: next_one()), pytest.MonkeyPatch.context() as patch:
        patch.setattr(_kernels.active, "run_steps", counted(_kernels.active.run_steps))
        for name in CALLS:
            patch.setattr(os, name, stopping(getattr(os, name)))
        yield
