"""The names that the package passes on."""

from __future__ import annotations

import pkgutil

from pressmark import migrate


def test_no_module_is_called_as_a_function() -> None:
    """Importing a module puts it in the place of whatever has its name in the package."""
    assert set(migrate.__all__) & {module.name for module in pkgutil.iter_modules(migrate.__path__)} == set()
