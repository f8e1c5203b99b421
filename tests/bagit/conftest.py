"""What tests of bags share with those of the fixity engine and of stores."""

from __future__ import annotations

from fixity.conftest import faults, run  # noqa: F401
from stores.conftest import disk_faults  # noqa: F401
