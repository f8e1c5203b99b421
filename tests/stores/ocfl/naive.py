"""A naive transcription of OCFL 1.1: whether an object is valid, one statement of the specification after the other."""

from __future__ import annotations

import datetime
import hashlib
import itertools
import json
import os
import re
import stat
from pathlib import Path
from typing import Any

__all__ = ["is_valid"]

DIGESTS = {"md5": 32, "sha1": 40, "sha256": 64, "sha512": 128, "blake2b-512": 128}
VERSION = re.compile(r"v0*[1-9][0-9]*")


class Invalid(Exception):
    """The object violates the specification; the text is the code of the statement."""


def require(is_so: object, code: str) -> None:
    if not is_so:
        raise Invalid(code)


def is_valid(folder: Path) -> bool:
    """Return whether a directory is a valid object, including its content."""
    try:
        validate(folder)
    except Invalid:
        return False
    return True


def validate(folder: Path) -> None:
    """Raise the first violation that is found."""
    files: list[str] = []
    folders: list[str] = []
    for above, below, names in os.walk(folder):
        for name in below + names:
            path = os.path.join(above, name)
            status = os.lstat(path)
            relative = os.path.relpath(path, folder)
            require(stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode), "E089, E090")
            if stat.S_ISREG(status.st_mode):
                require(status.st_nlink == 1, "E090")
            (files if stat.S_ISREG(status.st_mode) else folders).append(relative)
    declared = [name for name in files if name.startswith("0=") and "/" not in name]
    require(declared in (["0=ocfl_object_1.0"], ["0=ocfl_object_1.1"]), "E003, E006")
    require((folder / declared[0]).read_bytes() == declared[0][2:].encode() + b"\n", "E007")
    version = declared[0][-3:]
    document = read(folder / "inventory.json")
    check_inventory(document)
    require(document["type"] == f"https://ocfl.io/{version}/spec/#inventory", "E038")
    check_sidecar(folder, document)
    root = {name for name in files if "/" not in name}
    require(root == {declared[0], "inventory.json", f"inventory.json.{document['digestAlgorithm']}"}, "E001")
    names = {name for name in folders if "/" not in name} - {"extensions", "logs"}
    require(names == set(document["versions"]), "E001, E046")
    require(not [name for name in files if name.startswith("extensions/") and name.count("/") == 1], "E067")
    content = document.get("contentDirectory", "content")
    stored = {name for name in files if len(name.split("/")) > 2 and name.split("/")[1] == content}
    stored = {name for name in stored if name.split("/")[0] in names}
    check_digests(folder, document, stored)
    for name in folders:
        parts = name.split("/")
        if parts[0] in names and len(parts) > 2 and parts[1] == content:
            require(os.listdir(folder / name), "E024")
    number = {name: int(name[1:]) for name in names}
    inventories = []
    for name in sorted(names, key=number.__getitem__):
        here = {os.path.basename(one) for one in files if os.path.dirname(one) == name}
        if "inventory.json" not in here:
            require(not here, "E015")
            continue
        own = read(folder / name / "inventory.json")
        check_inventory(own)
        check_sidecar(folder / name, own)
        require(here == {"inventory.json", f"inventory.json.{own['digestAlgorithm']}"}, "E015")
        if name == document["head"]:
            same = (folder / "inventory.json").read_bytes() == (folder / name / "inventory.json").read_bytes()
            require(same, "E064")
            continue
        inventories.append(own)
        check_earlier(own, name, document)
        until = {one for one in stored if number[one.split("/")[0]] <= number[name]}
        check_digests(folder, own, until)
    inventories.append(document)
    for one, other in itertools.pairwise(inventories):
        require(one["type"] <= other["type"], "E103")
    if len(inventories) > 1 and number[inventories[0]["head"]] == 1 and "contentDirectory" not in inventories[0]:
        require(not any("contentDirectory" in one for one in inventories), "E019")


def read(path: Path) -> Any:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        require(len(dict(pairs)) == len(pairs), "repeated key")
        return dict(pairs)

    def refuse(_constant: str) -> None:
        raise Invalid("E033")

    require(path.is_file(), "E063")
    try:
        document = json.loads(path.read_bytes().decode(), object_pairs_hook=unique, parse_constant=refuse)
        json.dumps(document, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise Invalid("E033, E034") from None
    require(isinstance(document, dict), "E033")
    return document


def check_sidecar(folder: Path, document: dict[str, Any]) -> None:
    algorithm = document["digestAlgorithm"]
    path = folder / f"inventory.json.{algorithm}"
    require(path.is_file(), "E058")
    match = re.fullmatch(rb"([0-9a-fA-F]+)[ \t]+inventory\.json\n?", path.read_bytes())
    require(match, "E061")
    digest = hashlib.new(algorithm, (folder / "inventory.json").read_bytes()).hexdigest()
    require(match is not None and match[1].decode().lower() == digest, "E060")


def check_inventory(document: dict[str, Any]) -> None:
    optional = {"contentDirectory", "fixity"}
    required = {"id", "type", "digestAlgorithm", "head", "manifest", "versions"}
    require(required <= set(document) <= required | optional, "E036, E041, E102")
    require(isinstance(document["id"], str) and document["id"], "E037")
    require(document["type"] in [f"https://ocfl.io/1.{minor}/spec/#inventory" for minor in (0, 1)], "E038")
    require(document["digestAlgorithm"] in ("sha512", "sha256"), "E025")
    content = document.get("contentDirectory", "content")
    require(isinstance(content, str) and content not in ("", ".", "..") and "/" not in content, "E017, E018")
    versions, manifest = document["versions"], document["manifest"]
    require(isinstance(versions, dict) and versions, "E008, E045")
    require(all(VERSION.fullmatch(name) for name in versions), "E104")
    require(sorted(int(name[1:]) for name in versions) == list(range(1, len(versions) + 1)), "E009, E010")
    paddings = {len(name) if name[1] == "0" else 0 for name in versions}
    require(len(paddings) == 1, "E012")
    require(document["head"] == max(versions, key=lambda name: int(name[1:])), "E040")
    digits = DIGESTS[document["digestAlgorithm"]]
    paths = check_block(manifest, digits)
    for path in paths:
        first, *rest = path.split("/")
        require(first in versions and len(rest) > 1 and rest[0] == content, "E042")
    used: set[str] = set()
    for block in versions.values():
        require(isinstance(block, dict) and {"created", "state"} <= set(block), "E047, E048")
        require(set(block) <= {"created", "state", "message", "user"}, "E102")
        require(isinstance(block.get("message", ""), str), "E094")
        user = block.get("user", {"name": "any"})
        require(isinstance(user, dict) and set(user) <= {"name", "address"}, "E054, E102")
        require(isinstance(user.get("name"), str) and user["name"] and isinstance(user.get("address", ""), str), "E054")
        check_date(block["created"])
        check_block(block["state"], digits)
        require(set(block["state"]) <= set(manifest), "E050")
        used |= set(block["state"])
    require(used == set(manifest), "E107")
    fixity = document.get("fixity", {})
    require(isinstance(fixity, dict), "E111")
    for algorithm, block in fixity.items():
        require(isinstance(block, dict), "E057")
        require(check_block(block, DIGESTS.get(algorithm), unique=False) <= paths, "E057")


def check_block(block: Any, digits: int | None, *, unique: bool = True) -> set[str]:
    """Check a manifest, a state, or a block of fixity, and return its paths."""
    require(isinstance(block, dict), "E050, E057, E106")
    require(len({digest.lower() for digest in block}) == len(block), "E096, E097")
    found: list[str] = []
    for digest, paths in block.items():
        require(digits is None or re.fullmatch(f"[0-9a-fA-F]{{{digits}}}", digest), "E025, E050, E057")
        require(isinstance(paths, list) and paths and all(isinstance(path, str) for path in paths), "E050, E092")
        found += paths
    require(not unique or len(set(found)) == len(found), "E095, E101")
    for path in found:
        require(not set(path.split("/")) & {"", ".", ".."}, "E052, E053, E099, E100")
        require(not any(other.startswith(f"{path}/") for other in found), "E095, E101")
    return set(found)


def check_date(text: Any) -> None:
    form = r"(\d{4}-\d{2}-\d{2})[Tt]([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)"
    match = re.fullmatch(form, text, re.ASCII) if isinstance(text, str) else None
    require(match, "E049")
    try:
        datetime.date.fromisoformat(match[1] if match else "")
    except ValueError:
        raise Invalid("E049") from None


def check_digests(folder: Path, document: dict[str, Any], stored: set[str]) -> None:
    """Compare the manifest with the stored files, and all digests with their content."""
    listed = {path: digest for digest, paths in document["manifest"].items() for path in paths}
    require(set(listed) == stored, "E023, E092")
    blocks = [(document["digestAlgorithm"], document["manifest"]), *document.get("fixity", {}).items()]
    for algorithm, block in blocks:
        for digest, paths in block.items() if algorithm in DIGESTS else ():
            for path in paths:
                found = hashlib.new(algorithm.removesuffix("-512"), (folder / path).read_bytes()).hexdigest()
                require(found == digest.lower(), "E092, E093")


def check_earlier(earlier: dict[str, Any], name: str, newest: dict[str, Any]) -> None:
    """Compare the inventory of an earlier version with the newest one."""
    require(earlier["head"] == name, "E040")
    require(earlier["id"] == newest["id"], "E110")
    folders = [one.get("contentDirectory", "content") for one in (earlier, newest)]
    require(folders[0] == folders[1], "E020")
    for version, block in earlier["versions"].items():
        require(version in newest["versions"], "E066")
        before, now = contents(block, earlier), contents(newest["versions"][version], newest)
        require(set(before) == set(now), "E066")
        for path, digest in before.items():
            if earlier["digestAlgorithm"] == newest["digestAlgorithm"]:
                require(digest.lower() == now[path].lower(), "E066")
            else:
                stored = (set(one["manifest"][one_of[path]]) for one, one_of in ((earlier, before), (newest, now)))
                require(next(stored) <= next(stored), "E066")


def contents(block: dict[str, Any], _document: dict[str, Any]) -> dict[str, str]:
    """Return the digest of each logical path."""
    return {path: digest for digest, paths in block["state"].items() for path in paths}
