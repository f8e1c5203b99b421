"""Layouts as objects: creation by name, class or file; immutability, equality, pickling, sharing; extra methods."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from hypothesis import given, strategies as st

import naive.vitro
import pressmark
from pressmark import (
    DifferentialNTupleOmitPrefix,
    DirectClean,
    FlatDirect,
    FlatOmitPrefix,
    HashAndIdNTuple,
    HashAndNoPrefixIdNTuple,
    HashedNTuple,
    IdentifierError,
    Layout,
    LayoutConfigError,
    LayoutConfigWarning,
    NotReversibleError,
    NTupleOmitPrefix,
    Pairtree,
    PathError,
    Vitro,
)
from pressmark.layouts import as_layout, clean, find_layout, list_layouts, unclean
from pressmark.option_names import camel_case
from strategies import LAYOUT_NAMES, configs
from support.implementations import Implementation, use
from support.samples import CONFIGURATIONS, REVERSIBLE, layout_of, required_config, sample
from support.streams import unmap_lines

CLASSES = {cls.name: cls for cls in list_layouts()}

# ------------------------------------------------------------------------------------------------ objects


@pytest.mark.parametrize("word", CONFIGURATIONS)
def test_layouts_are_frozen(word: str) -> None:
    """No parameter can be changed, added or removed."""
    layout = sample(word)
    for name in [field.name for field in dataclasses.fields(layout)] + ["anything"]:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(layout, name, None)
        with pytest.raises(dataclasses.FrozenInstanceError):
            delattr(layout, name)


@pytest.mark.parametrize("word", CONFIGURATIONS)
def test_layouts_are_equal_by_configuration(implementation: Implementation, word: str) -> None:
    """Layouts with equal configurations are equal and have equal hashes, used or not."""
    one, other = sample(word), sample(word)
    one.map_ids(["abc"], on_error="none")
    assert one == other
    assert hash(one) == hash(other)
    assert len({one, other}) == 1
    assert [another for another in CONFIGURATIONS if sample(another) == one] == [word]


def test_arguments_are_copied() -> None:
    """A layout keeps no mutable argument: changing it afterwards changes nothing."""
    delimiters, namespaces, sizes = [":"], {"a": "http://"}, [1, 2]
    layouts = (
        HashAndNoPrefixIdNTuple(delimiters=delimiters),
        Vitro(namespaces),
        DifferentialNTupleOmitPrefix(tuple_segment_sizes=sizes),
    )
    before = [hash(layout) for layout in layouts]
    delimiters.append("/")
    namespaces["b"] = "x"
    sizes.append(3)
    assert [hash(layout) for layout in layouts] == before
    config = layouts[0].config()
    config["delimiters"].append("/")
    assert layouts[0].config()["delimiters"] == [":"]


@pytest.mark.parametrize("word", CONFIGURATIONS)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_layouts_are_pickled(implementation: Implementation, word: str, protocol: int) -> None:
    """Copies and pickles, before and after use, are equal, contain no kernel, and map alike."""
    layout = sample(word)
    fresh = pickle.dumps(layout, protocol)
    expected = layout.map_ids(["a:b", "ab/c", "\u00e9"], on_error="none")
    used = pickle.dumps(layout, protocol)
    assert used == fresh
    for again in (pickle.loads(used), copy.copy(layout), copy.deepcopy(layout), dataclasses.replace(layout)):
        assert again == layout
        assert hash(again) == hash(layout)
        assert again.map_ids(["a:b", "ab/c", "\u00e9"], on_error="none") == expected


@pytest.mark.parametrize("word", CONFIGURATIONS)
def test_layouts_are_pickled_between_implementations(pair: tuple[Implementation, Implementation], word: str) -> None:
    """A layout pickled under one implementation works under the other; the pickles are equal."""
    pickles = []
    for here, there in (pair, pair[::-1]):
        with use(here):
            layout = sample(word)
            expected = layout.map_ids(["a:b", "ab/c"], on_error="none")
            pickles.append(pickle.dumps(layout))
        with use(there):
            for again in (layout, pickle.loads(pickles[-1])):
                assert again.map_ids(["a:b", "ab/c"], on_error="none") == expected
    assert pickles[0] == pickles[1]


@pytest.mark.parametrize("word", CONFIGURATIONS)
def test_threads_share_a_layout(implementation: Implementation, word: str) -> None:
    """Threads that share a new layout get the results of a single thread."""
    ids = [f"ns:{number}/{number * number}" for number in range(500)]
    expected = sample(word).map_ids(ids, on_error="none")
    layout, barrier = sample(word), Barrier(8)

    def work() -> list[str | None]:
        barrier.wait(timeout=60)
        return layout.map_ids(ids, on_error="none")

    with ThreadPoolExecutor(8) as executor:
        futures = [executor.submit(work) for _ in range(8)]
        assert all(future.result(timeout=60) == expected for future in futures)


def test_layouts_have_a_repr() -> None:
    """The repr is the call that makes an equal layout."""
    classes = {cls.__name__: cls for cls in CLASSES.values()}
    for word in CONFIGURATIONS:
        layout = sample(word)
        assert eval(repr(layout), classes) == layout


def test_a_layout_requires_its_parameters() -> None:
    """``Layout`` is abstract, and a missing required parameter is an error with its key."""
    with pytest.raises(TypeError):
        Layout()
    with pytest.raises(LayoutConfigError, match="delimiter: required by 0006"):
        FlatOmitPrefix()


# ------------------------------------------------------------------------------------------------ registry


def test_the_registry_holds_every_layout_in_order() -> None:
    """The registry has the official names, in the order of the specifications' numbers."""
    assert tuple(CLASSES) == LAYOUT_NAMES
    assert all(getattr(pressmark, cls.__name__) is cls for cls in CLASSES.values())


@pytest.mark.parametrize("name", CLASSES)
def test_every_name_and_alias_makes_its_layout(name: str) -> None:
    """A layout is created by its official name or its four digits, and reports its official name."""
    required = required_config(name)
    layout = pressmark.layout(name, **required)
    assert type(layout) is CLASSES[name]
    assert layout.name == name
    assert layout.config()["extensionName"] == name
    alias = find_layout(name).alias
    assert alias == (name[:4] if name[0] == "0" else None)
    for other in filter(None, (alias,)):
        assert pressmark.layout(other, **required) == layout
        assert pressmark.layout_from_config({"extensionName": other, **required}) == layout
    assert layout.specification
    assert layout.summary
    assert layout.url.startswith("https://")


@pytest.mark.parametrize("name", ["", "0001", "0005", "3", "Pairtree", "0003 ", "NNNN", "0011-direct-clean-path"])
def test_an_unknown_name_lists_the_known_names(name: str) -> None:
    """An unknown name is refused with the list of known names."""
    for make in (lambda: pressmark.layout(name), lambda: find_layout(name)):
        with pytest.raises(
            LayoutConfigError, match=r"unknown layout .*known layouts: pairtree, vitro, 0002, 0003"
        ) as raised:
            make()
        assert raised.value.key == "layout"


def test_0003_has_no_delimiters_and_0012_has() -> None:
    """Without delimiters 0012 gives the paths of 0003, but is another layout."""
    assert HashAndNoPrefixIdNTuple() != HashAndIdNTuple()
    assert HashAndNoPrefixIdNTuple().map_id("a:b") == HashAndIdNTuple().map_id("a:b")
    assert pressmark.layout("0012") == HashAndNoPrefixIdNTuple(delimiters=[])
    layout = HashAndIdNTuple(tuple_size=2, delimiters=[":"])
    assert layout == pressmark.layout("0012", tuple_size=2, delimiters=[":"])
    assert pickle.loads(pickle.dumps(layout)) == layout
    assert "delimiters" not in HashAndIdNTuple().config()
    with pytest.raises(LayoutConfigError, match="delimiters: unknown parameter"):
        pressmark.layout("0003", delimiters=[":"])
    with pytest.raises(LayoutConfigError) as raised:
        pressmark.layout("0012", delimiters=None)
    assert raised.value.key == "delimiters"


@pytest.mark.parametrize("name", CLASSES)
def test_classes_list_their_parameters(name: str) -> None:
    """A layout's class lists each parameter with spelling, default, allowed values and meaning."""
    parameters = find_layout(name).parameters()
    required = required_config(name)
    config = pressmark.layout(name, **required).config()
    assert ["extensionName", *(parameter.key for parameter in parameters)] == list(config)
    for parameter in parameters:
        assert parameter.key == camel_case(parameter.name)
        assert parameter.check.allowed
        assert parameter.doc
        assert parameter.required == (parameter.name in required)
        if not parameter.required:
            assert parameter.check.to_json(parameter.check(parameter.key, parameter.default)) == config[parameter.key]


def test_reversibility_is_as_documented() -> None:
    """A layout reports whether it has an inverse; one without refuses every inverse call."""
    assert [word for word in CONFIGURATIONS if sample(word).reversible] == REVERSIBLE
    for word in CONFIGURATIONS:
        assert (sample(word).reversible_when == "never") == (word not in REVERSIBLE)


# ------------------------------------------------------------------------------------------------ configuration


@pytest.mark.parametrize("name", LAYOUT_NAMES)
@given(data=st.data())
def test_configurations_round_trip(name: str, data: st.DataObject) -> None:
    """``config()`` is complete, survives JSON, keeps given values, and makes an equal layout."""
    config = data.draw(configs(name))
    layout = layout_of(name, config)
    written = layout.config()
    assert written["extensionName"] == name
    assert {key: written[key] for key in config} == config
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = pressmark.layout_from_config(json.loads(json.dumps(written)))
    assert again == layout
    assert again.config() == written
    assert again.map_ids(["a:b", "x" * 200], "none") == layout.map_ids(["a:b", "x" * 200], "none")


def test_names_have_one_spelling_in_python_and_one_in_json() -> None:
    """snake_case becomes the specification's camelCase, with its one acronym."""
    assert camel_case("tuple_size") == "tupleSize"
    assert camel_case("delimiter") == "delimiter"
    assert camel_case("encode_utf") == "encodeUTF"
    assert camel_case("full_identifier_as_object_root") == "fullIdentifierAsObjectRoot"
    assert camel_case("max_pathname_len") == "maxPathnameLen"


@pytest.mark.parametrize(
    ("make", "key", "hint"),
    [
        (lambda: HashedNTuple(tuple_sise=3), "tuple_sise", "did you mean tuple_size?"),
        (lambda: pressmark.layout("0004", tupleSize=3), "tupleSize", "did you mean tuple_size?"),
        (lambda: layout_of("0004", {"tuple_size": 3}), "tuple_size", "did you mean tupleSize?"),
        (lambda: layout_of("0011", {"encodeUtf": True}), "encodeUtf", "did you mean encodeUTF?"),
        (lambda: layout_of("0011", {"PathFilenameLen": 5}), "PathFilenameLen", "did you mean maxPathnameLen?"),
        (lambda: FlatDirect(colour="red"), "colour", "this layout has no parameters"),
        (lambda: Vitro(colour="red"), "colour", "known parameters: namespaces"),
        (lambda: pressmark.layout_from_config({"extensionName": "0003"}, tuple_sizes=3), "tuple_sizes", "tuple_size"),
    ],
)
def test_an_unknown_parameter_suggests_the_right_one(make: Callable[[], Any], key: str, hint: str) -> None:
    """An unknown parameter is refused with the likely one, or with the list of parameters."""
    with pytest.raises(LayoutConfigError) as raised:
        make()
    assert raised.value.key == key
    assert hint in raised.value.reason


@pytest.mark.parametrize(
    ("make", "key"),
    [
        (lambda: DifferentialNTupleOmitPrefix(tuple_segment_sizes=b"\2\3"), "tuple_segment_sizes"),
        (lambda: DifferentialNTupleOmitPrefix(tuple_segment_sizes={2: 3}), "tuple_segment_sizes"),
        (lambda: HashAndNoPrefixIdNTuple(delimiters=b":"), "delimiters"),
        (lambda: HashAndNoPrefixIdNTuple(delimiters={":": "x"}), "delimiters"),
        (lambda: HashAndNoPrefixIdNTuple(delimiters=":"), "delimiters"),
        (lambda: FlatOmitPrefix(b":"), "delimiter"),
        (lambda: Pairtree(prefix=b"a"), "prefix"),
        (lambda: Pairtree(prefix=None), "prefix"),
        (lambda: Pairtree(prefix_required=1), "prefix_required"),
        (lambda: Pairtree(encapsulation=None), "encapsulation"),
        (lambda: Vitro(None), "namespaces"),
        (lambda: Vitro("ab"), "namespaces"),
        (lambda: Vitro([["a", "b"]]), "namespaces"),
        (lambda: Vitro({"\u00e9": "x"}), "namespaces"),
        (lambda: Vitro({"a": b"x"}), "namespaces"),
        (lambda: Vitro({1: "x"}), "namespaces"),
        (lambda: HashedNTuple(tuple_size=True, number_of_tuples=1), "tuple_size"),
        (lambda: DirectClean(max_pathname_len=2**31), "max_pathname_len"),
        (lambda: DirectClean(encode_utf="false"), "encode_utf"),
        (lambda: DirectClean(rules=None), "rules"),
    ],
)
def test_a_value_of_a_wrong_type_is_refused(make: Callable[[], Any], key: str) -> None:
    """Types are not converted: bytes are not text, objects not arrays, numbers not booleans."""
    with pytest.raises(LayoutConfigError) as raised:
        make()
    assert raised.value.key == key


# A value that is not allowed, or values that contradict each other, of the layouts with names of several words.
SPELLED: list[tuple[str, dict[str, Any]]] = [
    ("0003", {"tuple_size": 99}),
    ("0003", {"tuple_size": 0, "number_of_tuples": 2}),
    ("0004", {"tuple_size": 32, "number_of_tuples": 5}),
    ("0004", {"digest_algorithm": "md5", "tuple_size": 2, "number_of_tuples": 16, "short_object_root": True}),
    ("0004", {"digest_algorithm": "md6"}),
    ("0007", {"zero_padding": "middle"}),
    ("0010", {"tuple_segment_sizes": []}),
    ("0011", {"number_of_fallback_tuples": 16, "fallback_tuple_size": 2}),
    ("0011", {"encode_utf": 1}),
    ("0011", {"rules": "gocfl", "replacement_string": "$"}),
    ("0012", {"number_of_tuples": 33}),
    ("pairtree", {"prefix_required": "no"}),
]


@pytest.mark.parametrize(("name", "parameters"), SPELLED)
def test_errors_spell_parameters_as_the_caller(name: str, parameters: dict[str, Any]) -> None:
    """Keywords are in snake_case; keys of settings, configurations and commands in the specification's camelCase."""
    config = {camel_case(parameter): value for parameter, value in parameters.items()}
    settings = ",".join(f"{key}={json.dumps(value)}" for key, value in config.items())
    by_keyword = [lambda: find_layout(name)(**parameters), lambda: pressmark.layout(name, **parameters)]
    by_key = [
        lambda: pressmark.layout(f"{name}:{settings}"),
        lambda: as_layout(f"{name}:{settings}"),
        lambda: layout_of(name, config),
    ]
    keywords, keys = set(), set()
    for calls, found in ((by_keyword, keywords), (by_key, keys)):
        for call in calls:
            with pytest.raises(LayoutConfigError) as raised:
                call()
            found.add((raised.value.key, raised.value.reason))
    [(keyword, reason)], [(key, other)] = keywords, keys
    assert keyword in parameters
    assert key == camel_case(keyword)
    for parameter in filter(lambda one: "_" in one, parameters):
        assert camel_case(parameter) not in reason
        assert parameter not in other
        reason = reason.replace(parameter, camel_case(parameter))
    assert reason == other


def test_each_parameter_is_spelled_as_it_was_given() -> None:
    """A keyword that overrides a setting or a configuration is named by keyword; defaults are named by key."""
    with pytest.raises(LayoutConfigError, match=r"^tupleSize: 32 times number_of_tuples 5 exceeds"):
        pressmark.layout("0004:tupleSize=32", number_of_tuples=5)
    with pytest.raises(LayoutConfigError, match=r"^tuple_size: 32 times numberOfTuples 5 exceeds"):
        pressmark.layout_from_config({"extensionName": "0004", "numberOfTuples": 5}, tuple_size=32)
    with pytest.raises(LayoutConfigError, match=r"^tupleSize: 32 times numberOfTuples 3 exceeds"):
        pressmark.layout("0004:tupleSize=32")
    with pytest.raises(LayoutConfigError, match=r"^tuple_size: 32 times number_of_tuples 3 exceeds"):
        HashedNTuple("sha256", 32)


def test_overrides_replace_configured_values(tmp_path: Path) -> None:
    """Keyword arguments of ``layout_from_config`` override the file."""
    config = {"extensionName": "0004", "tupleSize": 2, "numberOfTuples": 2}
    assert pressmark.layout_from_config(config, tuple_size=4) == HashedNTuple(tuple_size=4, number_of_tuples=2)
    assert config == {"extensionName": "0004", "tupleSize": 2, "numberOfTuples": 2}


@pytest.mark.parametrize("name", CLASSES)
def test_a_configuration_may_be_a_file(tmp_path: Path, name: str) -> None:
    """The path of a ``config.json``, as text or path object, works like its mapping."""
    layout = layout_of(name, required_config(name))
    file = tmp_path / "config.json"
    file.write_text(json.dumps(layout.config()), encoding="utf-8")
    assert pressmark.layout_from_config(file) == layout
    assert pressmark.layout_from_config(str(file)) == layout
    file.write_text("\ufeff" + json.dumps(layout.config()), encoding="utf-8")
    assert pressmark.layout_from_config(file) == layout


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "not a JSON object"),
        (b"null", "not a JSON object"),
        (b"{}", "no extensionName"),
        (b'{"extensionName": 3}', "no extensionName"),
        (b'{"extensionName": null}', "no extensionName"),
    ],
    ids=lambda value: repr(value[:20]) if isinstance(value, bytes) else "",
)
def test_a_file_that_is_not_a_configuration_is_refused_by_name(tmp_path: Path, content: bytes, reason: str) -> None:
    """A file that is not a JSON object with an ``extensionName`` is refused by name."""
    file = tmp_path / "config.json"
    file.write_bytes(content)
    with pytest.raises(LayoutConfigError, match=reason) as raised:
        pressmark.layout_from_config(file)
    assert raised.value.key == str(file)


def test_a_file_that_cannot_be_read_is_an_os_error(tmp_path: Path) -> None:
    """A missing file and a directory are an ``OSError``."""
    with pytest.raises(FileNotFoundError):
        pressmark.layout_from_config(tmp_path / "missing.json")
    with pytest.raises(OSError, match=r".+"):
        pressmark.layout_from_config(tmp_path)


# ------------------------------------------------------------------------------------------------ gocfl

GOCFL = {
    "replacementString": "_",
    "whitespaceReplacementString": " ",
    "fallbackDigestAlgorithm": "md5",
    "fallbackTupleSize": 1,
}


@pytest.mark.parametrize("name", ["NNNN-direct-clean-path-layout", "NNNN-direct-path-layout"])
def test_gocfl_names_are_read_never_written(name: str) -> None:
    """The unregistered names that gocfl writes are read as 0011."""
    layout = pressmark.layout_from_config({"extensionName": name, "encodeUTF": True})
    assert layout == DirectClean(encode_utf=True)
    assert layout.config()["extensionName"] == "0011-direct-clean-path-layout"
    assert pressmark.layout(name) == DirectClean()


@pytest.mark.parametrize(
    ("old", "new", "value"),
    [
        ("maxFilenameLen", "maxPathSegmentLen", 100),
        ("fallbackSubdirs", "numberOfFallbackTuples", 2),
        ("fallbackSubFolders", "numberOfFallbackTuples", 3),
    ],
)
def test_gocfl_spellings_are_read(old: str, new: str, value: int) -> None:
    """Keys of earlier gocfl versions are read as the specification's; contradictions are refused."""
    expected = layout_of("0011", {new: value})
    assert layout_of("0011", {old: value}) == expected
    assert layout_of("0011", {old: value, new: value}) == expected
    with pytest.raises(LayoutConfigError, match=f"contradicts {new}") as raised:
        layout_of("0011", {old: value, new: value + 1})
    assert raised.value.key == old
    with pytest.raises(LayoutConfigError, match="unknown parameter"):
        layout_of("0003", {old: value})


def test_utf_encode_is_read_with_a_warning() -> None:
    """``utfEncode`` is read as ``encodeUTF``, with a warning about gocfl's other differences."""
    with pytest.warns(LayoutConfigWarning, match="written by gocfl") as warned:
        layout = layout_of("0011", {"utfEncode": True})
    assert layout == DirectClean(encode_utf=True)
    for key in GOCFL:
        assert f"{key} is absent, gocfl uses" in str(warned[0].message)
    assert warned[0].filename == layout_of.__code__.co_filename
    with pytest.warns(LayoutConfigWarning) as warned:
        layout_of("0011", {"utfEncode": True, **GOCFL})
    assert "absent" not in str(warned[0].message)


def test_gocfl_rules_are_read_without_a_warning() -> None:
    """If the configuration has ``rules``, there is no warning; gocfl's key is written as well."""
    layout = DirectClean(encode_utf=True, rules="gocfl")
    assert layout.config()["utfEncode"] is True
    assert "utfEncode" not in DirectClean().config()
    assert pressmark.layout_from_config(layout.config()) == layout
    assert layout_of("0011", {"utfEncode": False, "rules": "gocfl"}) == DirectClean(rules="gocfl")


# ------------------------------------------------------------------------------------------------ Pairtree


@pytest.mark.parametrize(
    ("policy", "identifier", "name"),
    [
        ("id", "abcd", "abcd"),
        ("id", "abc", "abc"),
        ("id", "ab", "0ab"),
        ("id", "c", "00c"),
        ("id", "ark:/13030/xt12t3", "ark+=13030=xt12t3"),
        ("id", "a b", "a^20b"),
        ("id", "\u00e9", "^c3^a9"),
        ("id", b"\xff", "^ff"),
        ("id", "pairtree", "obj"),
        ("id", "pairtree_root", "obj"),
        ("id", "Pairtree", "Pairtree"),
        ("id", "pairtre", "pairtre"),
        ("id", "con", "obj"),
        ("id", "NUL", "obj"),
        ("id", "lPt9", "obj"),
        ("id", "com0", "com0"),
        ("id", "con.txt", "con,txt"),
        ("id", "x" * 255, "x" * 255),
        ("id", "x" * 256, "obj"),
        ("id", " " * 85, "^20" * 85),
        ("id", " " * 86, "obj"),
        ("id", "...", ",,,"),
        ("tail:3", "abcdef", "def"),
        ("tail:3", "ab", "0ab"),
        ("tail:1", "abc", "00c"),
        ("tail:3", "xxcon", "obj"),
        ("tail:300", "x" * 400, "obj"),
        ("fixed:data", "abc", "data"),
        ("fixed:data", "con", "data"),
        (str.upper, "abc", "ABC"),
    ],
)
def test_encapsulating_directories_are_named(
    implementation: Implementation, policy: Any, identifier: str | bytes, name: str
) -> None:
    """Rule A12: the cleaned identifier, padded to three; ``obj`` for a reserved name; or by the policy."""
    layout = Pairtree(encapsulation=policy)
    assert layout.encapsulation_name(identifier) == name
    assert layout.object_path(identifier) == f"{layout.map_id(identifier)}/{name}"


def test_paths_of_many_objects(implementation: Implementation) -> None:
    """They are those of single objects, and ``None`` where a single object has none."""

    def path(layout: Any, *item: Any) -> str | None:
        try:
            return str(layout.object_path(*item))
        except IdentifierError:
            return None

    identifiers = ["abc", b"a/b", "", "\ud800", "x" * 400, "nul\0", "\u20ac", "con"]
    policies: list[Any] = ["id", "tail:3", "fixed:data", lambda name: name[:4]]
    for layout in (Pairtree("a", encapsulation=policy) for policy in policies):
        assert layout.object_paths(identifiers) == [path(layout, one) for one in identifiers]
        assert layout.object_paths(identifiers)[0] is not None or policies[3] is layout.encapsulation
    names = ["name.bin", b"caf\xc3\xa9", "", ".", "x" * 300, "\u20ac", "a b", "nul\0"]
    for vitro in (Vitro(), Vitro({"a": "x"})):
        items = [(one, name) for one in identifiers for name in names]
        given_ids, given_names = zip(*items, strict=True)
        assert vitro.object_paths(given_ids, given_names) == [path(vitro, *item) for item in items]


def test_encapsulation_leaves_the_prefix_out(implementation: Implementation) -> None:
    """The name is made from the identifier without its prefix."""
    layout = Pairtree("http://n2t.info/ark:/13030/xt2")
    assert layout.object_path("http://n2t.info/ark:/13030/xt2aacd") == "aa/cd/aacd"
    assert layout.object_path("http://n2t.info/ark:/13030/xt2a") == "a/00a"
    with pytest.raises(IdentifierError, match="does not start with the prefix"):
        layout.object_path("aacd")
    assert Pairtree("p", prefix_required=False).object_path("abc") == "ab/c/abc"


@pytest.mark.parametrize(
    "policy",
    [
        *("", "ID", "x", "tail", "tail:", "tail:0", "tail:-1", "tail:x", "tail:03", "fixed", "fixed:", "fixed:ab"),
        *("fixed:pairtree1", "fixed:a/bc", "fixed:CON", "fixed:con", "fixed:...", "fixed:a\0bc", "fixed:" + "x" * 256),
    ],
)
def test_an_invalid_policy_is_refused_at_construction(policy: str) -> None:
    """An unknown policy, or one with an invalid name for every object, is refused at construction."""
    with pytest.raises(LayoutConfigError) as raised:
        Pairtree(encapsulation=policy)
    assert raised.value.key == "encapsulation"


@pytest.mark.parametrize(
    "name", ["", "ab", "pairtree", "a/bc", "a\0bc", "...", "x" * 256, "\u00e9" * 128, "Nul", None, 5]
)
def test_a_callable_with_an_invalid_name_fails_for_that_identifier(implementation: Implementation, name: Any) -> None:
    """A callable policy gets the identifier as text; an invalid result is an error of the identifier."""
    seen = []

    def policy(identifier: str) -> Any:
        seen.append(identifier)
        return name

    with pytest.raises(IdentifierError, match=r"encapsulation name .*"):
        Pairtree(encapsulation=policy).object_path(b"\xc3\xa9\xff")
    assert seen == ["\u00e9\udcff"]


@pytest.mark.parametrize(
    ("path", "identifier", "rest"),
    [
        ("ab/cd/obj/file", "abcd", "obj/file"),
        ("ab/c", "abc", ""),
        ("ab/c/", "abc", ""),
        ("/data/pairtree_root/ab/c/foo", "abc", "foo"),
        ("pairtree_root/xx/pairtree_root/ab/cd", "abcd", ""),
        ("//ab//cd//", "abcd", ""),
        ("a/b/c", "a", "b/c"),
        ("/x/ab/cd/", "x", "ab/cd"),
        ("ab/c/de/fgh", "abc", "de/fgh"),
        ("ab/cd/pairtree_version0_1", "abcd", "pairtree_version0_1"),
        ("ar/k+/=1/30/30/=x/t1/2t/3/foo/bar", "ark:/13030/xt12t3", "foo/bar"),
        ("^2/0", " ", ""),
        ("^2/A/obj", "*", "obj"),
        ("a./b c", "a.", "b c"),
        ("H\u00e4/ab/obj", "H\u00e4ab", "obj"),
        (b"a\xc3\xa9/ob/obj", "a\u00e9ob", "obj"),
        ("^f/f", "\udcff", ""),
    ],
)
def test_any_path_into_a_tree_is_split(
    implementation: Implementation, path: str | bytes, identifier: str, rest: str
) -> None:
    """Rules A4 to A6: the last root wins, slashes may repeat, one character ends the ppath, so does a longer name."""
    assert Pairtree().split_path(path) == (identifier, rest)
    assert Pairtree("pre:").split_path(path) == (f"pre:{identifier}", rest)


@pytest.mark.parametrize(
    "path", ["", "/", "foo", "foo/ab", "ab/pairtree_root", "^", "^z/z", "ab/^2/obj", b"\xff\xff\xff"]
)
def test_a_path_without_ppath_cannot_be_split(implementation: Implementation, path: str | bytes) -> None:
    """A path without a ppath, or with a truncated escape, is refused, and the error contains it."""
    with pytest.raises(PathError) as raised:
        Pairtree().split_path(path)
    assert raised.value.path == path


@pytest.mark.parametrize("wrong", [None, 5, ["ab"]])
def test_splitting_another_type_is_a_type_error(implementation: Implementation, wrong: Any) -> None:
    """An argument that is neither ``str`` nor ``bytes`` is refused."""
    with pytest.raises(TypeError, match="expected str or bytes"):
        Pairtree().split_path(wrong)


def test_cleaning_is_public_and_total(implementation: Implementation) -> None:
    """``clean`` and ``unclean`` accept any text, also an empty one, and are inverse for all bytes."""
    every_byte = bytes(range(256))
    assert clean("") == unclean("") == ""
    assert unclean(clean(every_byte)) == every_byte.decode("utf-8", "surrogateescape")
    assert clean("ark:/13030/xt12t3") == Pairtree.clean("ark:/13030/xt12t3") == "ark+=13030=xt12t3"
    assert Pairtree().unclean("what-the-^2a@^3F#!^5e!^3f") == "what-the-*@?#!^!?"
    assert clean("^20") == "^5e20"
    assert unclean("^5e20") == "^20"


# ------------------------------------------------------------------------------------------------ Vitro

RESERVED = ["CON", "PRN", "AUX", "NUL", *(f"{port}{number}" for port in ("COM", "LPT") for number in range(1, 10))]


@pytest.mark.parametrize("name", RESERVED)
def test_reserved_file_names_are_guarded(implementation: Implementation, name: str) -> None:
    """All 22 names reserved by Windows get a tilde, in either case, which decoding removes."""
    layout = Vitro()
    for spelling in (name, name.lower(), name.capitalize()):
        assert layout.encode_filename(spelling) == f"~{spelling}"
        assert layout.decode_filename(f"~{spelling}") == spelling
        assert layout.encode_filename(f"{spelling}.txt") == f"{spelling}.txt"
        assert layout.encode_filename(f"{spelling}.") == f"{spelling}."


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("", ""),
        (".", "."),
        ("..", ".."),
        ("photo.jpg", "photo.jpg"),
        ("a b.txt", "a^20b.txt"),
        ("a/b:c", "a=b+c"),
        ("a=b+c,d", "a^3db^2bc^2cd"),
        ("~CON", "^7eCON"),
        ("CONIN$", "CONIN$"),
        ("COM\u00b9", "COM^b9"),
        ("COM0", "COM0"),
        ("\u00e9\u00ff", "^e9^ff"),
        ("\0\x7f\x80", "^00^7f^80"),
        ("100%", "100%"),
    ],
)
def test_file_names_are_encoded_and_decoded(implementation: Implementation, name: str, stored: str) -> None:
    """Rule 1.2: rare characters in hex, slash and colon substituted, periods kept; and back."""
    layout = Vitro()
    assert layout.encode_filename(name) == stored == naive.vitro.encode_filename(name)
    assert layout.encode_filename(name.encode()) == stored
    assert layout.decode_filename(stored) == name == naive.vitro.decode_filename(stored)


@pytest.mark.parametrize(
    ("stored", "name"),
    [
        ("^41", "A"),
        ("X^2Ay", "X*y"),
        ("a b.txt", "a b.txt"),
        ("a,b", "a,b"),
        ("~a", "~a"),
        ("~~CON", "~~CON"),
        ("\u00e9\u4f8b", "\u00e9\u4f8b"),
        ("^3d=", "=/"),
        ("^2b+", "+:"),
        ("^5e41", "^41"),
        (b"\xff", "\udcff"),
    ],
)
def test_decoding_a_file_name_is_lenient(implementation: Implementation, stored: str | bytes, name: str) -> None:
    """Rule 1.3: hex of either case, needless escapes and raw characters are read; substitution comes before hex."""
    assert Vitro().decode_filename(stored) == name


@pytest.mark.parametrize("stored", ["^", "a^2", "^zz", "^-f", "^+1", "^ 1", "\uff21^\uff11\uff11", "^\u0661\u0661"])
def test_a_broken_escape_in_a_file_name_is_refused(implementation: Implementation, stored: str) -> None:
    """Rules 1.3 and 20: exactly two ASCII hex digits follow a caret."""
    with pytest.raises(PathError, match=r"'\^' at offset \d+ is not followed by two hex digits") as raised:
        Vitro().decode_filename(stored)
    assert raised.value.path == stored


def test_files_have_paths(implementation: Implementation) -> None:
    """A file has the path of its identifier's directory and its encoded name."""
    layout = Vitro({"a": "http://vivo.myDomain.edu/file/"})
    assert layout.object_path("http://vivo.myDomain.edu/file/n3424", "my photo.jpg") == "a~n/342/4/my^20photo.jpg"
    assert layout.object_path("b", b"nul") == "b/~nul"
    assert layout.object_path("b", "x" * 255) == f"b/{'x' * 255}"


@pytest.mark.parametrize("name", ["", ".", "..", " " * 86, "x" * 256, "\u0100", b"\xff"])
def test_invalid_file_names_are_refused(implementation: Implementation, name: str | bytes) -> None:
    """Rule 17: names that are empty, dots, above 255 encoded bytes, or beyond Latin-1 are refused with the name."""
    with pytest.raises(IdentifierError) as raised:
        Vitro().object_path("b", name)
    assert raised.value.id == name


def test_the_lowest_prefix_wins(implementation: Implementation) -> None:
    """Rule 8: of several matching namespaces, the one with the lowest prefix is used, in any given order."""
    for namespaces in ({"a": "urn:", "b": "urn:x:"}, {"b": "urn:x:", "a": "urn:"}):
        assert Vitro(namespaces).map_id("urn:x:1") == "a~x/+1"


def test_an_empty_namespace(implementation: Implementation) -> None:
    """An empty namespace matches every identifier, as in Vitro."""
    layout = Vitro({"a": "urn:", "e": ""})
    for identifier, path in (("urn:1", "a~1"), ("xyz", "e~x/yz"), ("con", "e~c/on")):
        assert layout.map_id(identifier) == path
        assert layout.unmap_path(path) == identifier
    for path in ("xyz", "e~u/rn+/1", "e~"):
        with pytest.raises(PathError):
            layout.unmap_path(path)
    assert Vitro({"b": "urn:", "a": "urn:x:"}).map_id("urn:x:1") == "a~1"
    many = {chr(code): f"ns{code}:" for code in (*range(48, 58), *range(65, 91), *range(97, 123))}
    for prefix, namespace in many.items():
        assert Vitro(many).map_id(f"{namespace}1") == f"{prefix}~1"
        assert Vitro(many).unmap_path(f"{prefix}~1") == f"{namespace}1"


@pytest.mark.parametrize("layout", [HashedNTuple(), FlatOmitPrefix(":"), NTupleOmitPrefix(), DirectClean()], ids=repr)
def test_a_layout_without_inverse_refuses_inverse_calls(implementation: Implementation, layout: Layout) -> None:
    """Every inverse call of a layout without an inverse is refused with the layout's name."""
    for call in (
        lambda: layout.unmap_path("a"),
        lambda: layout.unmap([]),
        lambda: unmap_lines(layout, None, None),
    ):
        with pytest.raises(NotReversibleError, match="has no inverse") as raised:
            call()
        assert raised.value.layout == layout.name


def test_parameters_in_the_name() -> None:
    """As on the command line, by the keys of the specification; keywords replace them."""
    assert pressmark.layout("0003:tupleSize=2,numberOfTuples=2") == HashAndIdNTuple(tuple_size=2, number_of_tuples=2)
    assert pressmark.layout('0012:delimiters=[":","/"]') == pressmark.layout("0012", delimiters=[":", "/"])
    assert pressmark.layout("0003:tupleSize=2", tuple_size=4) == HashAndIdNTuple(tuple_size=4)
    for text, message in (
        ("0003:tupleSize", "layout: 'tupleSize': expected KEY=VALUE"),
        ("0003:size=2", "size: unknown parameter; known parameters: "),
        ("0003:tupleSize=x", "tupleSize: 'x' is not an integer"),
        ("0005:tupleSize=2", "layout: unknown layout '0005'"),
    ):
        with pytest.raises(LayoutConfigError) as caught:
            pressmark.layout(text)
        assert str(caught.value).startswith(message)
