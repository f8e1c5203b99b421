"""The public names of the package."""

from __future__ import annotations

import pkgutil

from pressmark import migrate


def test_no_module_is_called_as_a_function() -> None:
    """No submodule has the name of a public function: importing it would replace the function."""
    assert set(migrate.__all__) & {module.name for module in pkgutil.iter_modules(migrate.__path__)} == set()
