"""Validate storage roots with ocfl-py, in its own process: importing ocfl-py configures logging globally.

Arguments are roots. For each root, this prints a JSON object: whether the root is valid, the numbers of objects and of
valid objects, the messages, and the path and identifier of each object.
"""

from __future__ import annotations

import json
import sys
import warnings

warnings.simplefilter("ignore")
del sys.path[0]  # this file's folder has a package of the same name

# This script's folder has tests of the same name.
del sys.path[0]

import ocfl  # noqa: E402
from ocfl.layout import Layout  # noqa: E402
from ocfl.layout_registry import add_layout  # noqa: E402

# ocfl-py knows 0002 and 0003; the others are registered by name, so that their roots are validated.
NAMES = (
    "0004-hashed-n-tuple-storage-layout",
    "0006-flat-omit-prefix-storage-layout",
    "0007-n-tuple-omit-prefix-storage-layout",
    "0010-differential-n-tuple-omit-prefix-storage-layout",
    "0011-direct-clean-path-layout",
    "0012-hash-and-no-prefix-id-n-tuple-storage-layout",
)


class Named(Layout):
    """A layout that is only known by name."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.NAME = name

    def read_layout_params(self, root_fs: object = None, params_required: bool = False) -> None:
        pass


for one in NAMES:
    add_layout(one, lambda name=one: Named(name))


def validated(path: str) -> dict[str, object]:
    root = ocfl.StorageRoot(root=path)
    root.registered_extensions += NAMES
    valid = root.validate(validate_objects=True, check_digests=True)
    said = [str(error) for error in root.errors] if isinstance(root.errors, list) else str(root.errors or "")
    return {
        "valid": valid,
        "objects": root.num_objects,
        "good": root.good_objects,
        "errors": said,
        # ocfl-py opens each inventory again, and stops at the first that is not JSON.
        "found": sorted(root.list_objects()) if valid and root.good_objects == root.num_objects else [],
    }


for argument in sys.argv[1:]:
    print(json.dumps(validated(argument)))
