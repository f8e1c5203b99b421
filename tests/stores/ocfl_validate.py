"""ocfl-py, in its own process: importing it configures logging globally.

Arguments are roots. For each root, this prints a JSON object: whether the root is valid, the numbers of objects and of
valid objects, the messages, and the path and identifier of each object.

Without arguments, it answers requests; see ``benchmarks/peers/ocfl_stores.py``.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

warnings.simplefilter("ignore")
del sys.path[0]  # this file's folder has a package of the same name

import ocfl  # noqa: E402
from ocfl.layout import Layout  # noqa: E402
from ocfl.layout_registry import add_layout  # noqa: E402
from ocfl.validator import Validator  # noqa: E402

# ocfl-py knows 0002 and 0003; the others are registered by name, so that their roots are validated.
# The vectors of a layout have its name.
VECTORS = Path(__file__).parents[1] / "vectors"
NAMES = tuple(sorted(path.stem for path in VECTORS.glob("0*.json") if not path.name.startswith(("0002", "0003"))))


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


def create(asked: dict[str, Any]) -> None:
    layout = {key: value for key, value in asked["layout"].items() if key != "extensionName"}
    root = ocfl.StorageRoot(root=asked["root"], layout_name=asked["layout"]["extensionName"])
    root.initialize(spec_version=asked["version"], layout_params=json.dumps(layout) if layout else None)


def put(asked: dict[str, Any]) -> None:
    root = ocfl.StorageRoot(root=asked["root"])
    root.open_root_fs()
    root.check_root_structure()
    metadata = ocfl.VersionMetadata(
        message=asked["message"], name=asked["user"]["name"], address=asked["user"]["address"]
    )
    directory = os.path.join(asked["root"], root.object_path(asked["id"]))
    if os.path.exists(directory):
        # It keeps neither the digest algorithm nor the version of an object by itself.
        changed = ocfl.Object(path=directory, digest_algorithm=asked["algorithm"], spec_version=root.spec_version)
        changed.add_version_with_content(directory, asked["source"], metadata)
        return
    with tempfile.TemporaryDirectory() as folder:
        made = ocfl.Object(
            identifier=asked["id"],
            content_directory=asked.get("content") or "content",
            digest_algorithm=asked["algorithm"],
            spec_version=root.spec_version,
            fixity=asked.get("fixity"),
        )
        made.create(asked["source"], metadata, os.path.join(folder, "object"))
        root.add(os.path.join(folder, "object"))


def checked(path: str) -> dict[str, list[str]]:
    validator = Validator(log_warnings=True, check_digests=True)
    valid = validator.validate_object(path)
    said = validator.log.messages
    errors = [text for text in said if not text.startswith("[W")]
    return {"errors": errors or ([] if valid else ["invalid"]), "warnings": [text for text in said if text[1] == "W"]}


def validate(asked: dict[str, Any]) -> dict[str, dict[str, list[str]]]:
    found = {path: checked(os.path.join(asked["root"], path)) for path in asked.get("paths", ())}
    if asked.get("ids"):
        root = ocfl.StorageRoot(root=asked["root"])
        root.open_root_fs()
        root.check_root_structure()
        for identifier in asked["ids"]:
            found[identifier] = checked(os.path.join(asked["root"], root.object_path(identifier)))
    return found


def answer(line: str) -> dict[str, Any]:
    try:
        asked = json.loads(line)
        return {"answer": {"create": create, "put": put, "validate": validate}[asked["do"]](asked)}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


for argument in sys.argv[1:]:
    print(json.dumps(validated(argument)))
if not sys.argv[1:]:
    for line in sys.stdin:
        print(json.dumps(answer(line)), flush=True)
