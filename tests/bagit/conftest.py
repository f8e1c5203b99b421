"""What tests of bags share with those of the fixity engine."""

from __future__ import annotations

from fixity.conftest import faults, run  # noqa: F401
