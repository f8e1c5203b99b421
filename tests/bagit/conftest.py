"""Fixtures shared with the tests of fixity and of stores."""

from __future__ import annotations

from fixity.conftest import faults, run  # noqa: F401
from stores.conftest import disk_faults  # noqa: F401
