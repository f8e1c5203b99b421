"""The command in this process and in another one, as in the tests of the command line."""

from __future__ import annotations

from cli.conftest import call, quick, run

__all__ = ["call", "quick", "run"]
