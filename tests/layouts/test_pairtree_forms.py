"""Pairtree with object paths, cleaned identifiers and dialects: items, files, and both implementations."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from pressmark import IdentifierError, LayoutConfigError, Pairtree, PathError
from pressmark.stores import PairtreeStore
from support.implementations import Implementation

ARK, PPATH = "ark:/13030/xt12t3", "ar/k+/=1/30/30/=x/t1/2t/3"
CLEANED = "ark+=13030=xt12t3"
OBJECT = f"{PPATH}/{CLEANED}"


@pytest.mark.parametrize(
    ("settings", "identifier", "path"),
    [
        ({"paths": "object"}, ARK, OBJECT),
        ({"paths": "object", "encapsulation": "fixed:obj"}, ARK, f"{PPATH}/obj"),
        ({"paths": "object", "prefix": "ark:/13030/"}, ARK, "xt/12/t3/xt12t3"),
        ({"paths": "object"}, "ab", "ab/0ab"),
        ({"cleaned": True}, CLEANED, PPATH),
        ({"cleaned": True, "prefix": "ark:/13030/"}, CLEANED, "xt/12/t3"),
        ({"cleaned": True, "paths": "object"}, CLEANED, OBJECT),
        ({"dialect": "unt"}, "a b", "a^/9d/b"),
        ({"dialect": "caltech"}, "\u00e9\u00e9a", "\u00e9\u00e9/a"),
        ({"dialect": "unpadded-hex"}, "\n", "^a"),
        ({"dialect": "unt", "cleaned": True}, "a^9db", "a^/9d/b"),
        ({"dialect": "unt", "paths": "object"}, "a b", "a^/9d/b/a^9db"),
    ],
)
def test_forms_are_inverse(implementation: Implementation, settings: Any, identifier: str, path: str) -> None:
    """An identifier has the path of the form, and that path leads back to it; ``object_path`` is the same."""
    layout = Pairtree(**settings)
    assert layout.map(identifier) == path
    assert layout.map([identifier]) == [path]
    assert layout.unmap(path) == identifier
    if layout.paths == "object":
        assert layout.object_path(identifier) == path
        assert layout.object_paths([identifier]) == [path]


@pytest.mark.parametrize("path", [f"/data/pairtree_root/{OBJECT}/p/1.tif", f"./{OBJECT}/1.tif", OBJECT])
def test_the_path_of_a_file_gives_its_object(implementation: Implementation, path: str) -> None:
    """The path of a file in an object is unmapped as ``split_path`` splits it."""
    assert Pairtree(paths="object").unmap(path) == ARK == Pairtree().split_path(path)[0]
    assert Pairtree(paths="object", cleaned=True).unmap(path) == CLEANED


@pytest.mark.parametrize(
    ("settings", "item", "message"),
    [
        ({"cleaned": True}, ARK, r"identifier is not cleaned \(byte ':' at offset 3\); omit the setting cleaned"),
        ({"cleaned": True}, "a^z", r"'\^' at offset 1 is not followed by two hex digits"),
        ({"cleaned": True, "dialect": "unt"}, "a b", "not cleaned as in the dialect unt; use the dialect that"),
    ],
)
def test_what_is_not_cleaned_is_refused(implementation: Implementation, settings: Any, item: str, message: str) -> None:
    """An identifier that should be cleaned already is neither cleaned nor accepted as it is."""
    with pytest.raises(IdentifierError, match=message):
        Pairtree(**settings).map(item)


@pytest.mark.parametrize(
    ("settings", "path", "message"),
    [
        ({"paths": "object"}, "ab/cd", "no directory or file after the ppath"),
        ({"paths": "object"}, "/data/file", "no ppath"),
        ({"paths": "object"}, "../ab/file", r"path segment '\.\.' at offset 0"),
        ({"paths": "object"}, "ab/^z/file", r"'\^' at offset 3"),
        ({"cleaned": True}, "abc/d", "component at offset 0"),
        ({"cleaned": True}, "a:/b", "byte ':' at offset 1"),
        ({"dialect": "unpadded-hex"}, "^9/f", "ambiguous in the dialect unpadded-hex"),
        ({"dialect": "unt"}, "a^/20", "not cleaned as in the dialect unt"),
        ({"dialect": "unt"}, "", "path is empty"),
    ],
)
def test_paths_of_another_form_are_refused(
    implementation: Implementation, settings: Any, path: str, message: str
) -> None:
    """A path that the form does not have is refused with its reason."""
    with pytest.raises(PathError, match=message):
        Pairtree(**settings).unmap(path)


def test_text_files_of_all_formats(implementation: Implementation) -> None:
    """Lines, CSV and JSON lines are mapped and unmapped; failed items are reported."""
    layout = Pairtree(paths="object")
    for source, options, expected in (
        (f"{ARK}\nab\n", {}, f"{OBJECT}\nab/0ab\n"),
        (f"id\n{ARK}\n", {"column": "id", "format": "csv"}, f"id,path\n{ARK},{OBJECT}\n"),
        (
            json.dumps({"id": ARK}) + "\n",
            {"column": "id", "format": "jsonl"},
            json.dumps({"id": ARK, "path": OBJECT}, separators=(", ", ": ")) + "\n",
        ),
    ):
        written = io.BytesIO()
        layout.map_file(io.BytesIO(source.encode()), written, **options)
        found = written.getvalue().decode()
        assert found.replace('","', '", "') == expected
    written, errors = io.BytesIO(), []
    layout.map_file(io.BytesIO(f"{OBJECT}/x\nab\n".encode()), written, unmap=True, on_error="skip", errors=errors)
    assert written.getvalue().decode() == f"{ARK}\n"
    assert [error.index for error in errors] == [1]


def test_parquet(implementation: Implementation, tmp_path: Any) -> None:
    """A column of Parquet is mapped, with null for null and for items that fail."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"id": [ARK, None, ""]}), tmp_path / "in.parquet")
    layout = Pairtree(paths="object")
    layout.map_file(tmp_path / "in.parquet", tmp_path / "out.parquet", column="id", on_error="none")
    assert pq.read_table(tmp_path / "out.parquet")["path"].to_pylist() == [OBJECT, None, None]


def test_arrow_columns(implementation: Implementation) -> None:
    """A column is mapped and unmapped as a list is, with an error for its first bad item."""
    pa = pytest.importorskip("pyarrow")
    layout = Pairtree(paths="object")
    column = layout.map(pa.array([ARK, None, "ab"]))
    assert column.to_pylist() == [OBJECT, None, "ab/0ab"]
    assert layout.unmap(column).to_pylist() == [ARK, None, "ab"]
    with pytest.raises(PathError, match="path 1 'ab': no directory or file after the ppath"):
        layout.unmap(pa.array([OBJECT, "ab"]))


def test_settings_that_cannot_be_combined(tmp_path: Any) -> None:
    """Stores refuse the settings, and a callable cannot name directories in bulk."""
    with pytest.raises(LayoutConfigError, match="callable cannot be combined with paths; use object_path"):
        Pairtree(paths="object", encapsulation=str.upper)
    for settings in ({"paths": "object"}, {"cleaned": True}, {"dialect": "unt"}):
        with pytest.raises(LayoutConfigError, match="for mapping, not for stores"):
            PairtreeStore.create(tmp_path / "store", Pairtree(**settings))
    assert not (tmp_path / "store").exists()
