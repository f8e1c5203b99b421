"""Native and pure behave alike: equal values, or exceptions of equal type, text and data."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st

import pressmark
from pressmark.layouts import Layout, clean, unclean
from strategies import LAYOUT_NAMES, REVERSIBLE_LAYOUT_NAMES, configs, identifiers, paths, texts
from support.implementations import Implementation, use
from support.outcomes import common_outcome
from support.samples import layout_of, required_config
from support.streams import map_lines, pass_through, unmap_lines

pytestmark = pytest.mark.usefixtures("pair")

WRONG = st.sampled_from((None, 0, 1.5, True, [], ("a",), bytearray(b"a"), memoryview(b"a"), object))


class Text(str):
    """A ``str`` subclass, with another memory layout."""


class Bytes(bytes):
    """A ``bytes`` subclass."""


# Strategies are built once: building one for every example would take longer than the example.
@cache
def items_of(name: str | None = None) -> st.SearchStrategy[Any]:
    """Return identifiers, or paths of a layout, of every type that one may be given."""
    raw = identifiers() if name is None else paths(name)
    return st.one_of(texts(), raw, raw.map(lambda item: item.decode("utf-8", "surrogateescape")))


@cache
def odd_items() -> st.SearchStrategy[Any]:
    return st.one_of(texts().map(Text), identifiers().map(Bytes), WRONG)


@cache
def batches(name: str | None = None) -> st.SearchStrategy[list[Any]]:
    """Return a batch of any length, one time in three with an item that is not an identifier."""
    whole = st.lists(items_of(name), max_size=5)
    return st.one_of(whole, whole, st.lists(st.one_of(items_of(name), odd_items()), max_size=5))


@cache
def mappings(name: str, *, back: bool = False) -> st.SearchStrategy[tuple[Any, ...]]:
    """Return a layout, a batch for it, and a function that makes an iterable of the batch."""
    items = batches(name) if back else batches()
    return st.tuples(layouts(name, encoded=back), items, st.sampled_from(ITERABLES))


@cache
def layouts(name: str, *, encoded: bool = False) -> st.SearchStrategy[Layout]:
    """Return layouts under any configuration; 0011 has an inverse under encodeUTF only."""
    always = {"encodeUTF": True} if encoded and name.startswith("0011") else {}
    return configs(name).map(lambda config: layout_of(name, {**config, **always}))


def once(items: Iterable[Any]) -> Iterable[Any]:
    yield from items


ITERABLES: tuple[Callable[[list[Any]], Iterable[Any]], ...] = (
    list,
    tuple,
    once,
    deque,
    lambda items: map(id_of, items),
)


def id_of(item: Any) -> Any:
    return item


def check_batch(
    one: Callable[[Any], Any], many: Callable[..., Any], items: list[Any], make: Callable[..., Any]
) -> None:
    """Compare the implementations over the calls for one item and for a batch."""
    for item in items:
        common_outcome(partial(one, item))
    for on_error in ("raise", "none"):
        common_outcome(lambda on_error=on_error: many(make(items), on_error=on_error))


@pytest.mark.parametrize("name", LAYOUT_NAMES)
@given(data=st.data())
def test_identifiers_map_alike(name: str, data: st.DataObject) -> None:
    """``map_id`` and ``map_ids`` agree for any items in any iterable."""
    layout, items, make = data.draw(mappings(name))
    check_batch(layout.map_id, layout.map_ids, items, make)


@pytest.mark.parametrize("name", REVERSIBLE_LAYOUT_NAMES)
@given(data=st.data())
def test_paths_map_back_alike(name: str, data: st.DataObject) -> None:
    """``unmap_path`` and ``unmap_paths`` agree, also for paths of the layout itself."""
    layout, items, make = data.draw(mappings(name, back=True))
    check_batch(layout.unmap_path, layout.unmap, items, make)
    mapped = [path for path in layout.map_ids([item for item in items if type(item) in (str, bytes)], "none") if path]
    check_batch(layout.unmap_path, layout.unmap, mapped, list)


BLOBS = st.builds(
    lambda items, separators: b"".join(b for pair in zip(items, separators, strict=True) for b in pair),
    st.lists(identifiers(), min_size=4, max_size=4),
    st.lists(st.sampled_from((b"\n", b"\0", b"\t", b"\n\n", b"\r\n", b":", b"")), min_size=4, max_size=4),
)
LINE_OPTIONS = st.fixed_dictionaries(
    {
        "delimiter": st.sampled_from((b"\n", b"\0", b"/", b":", b"\t", b"a", b"\xa9")),
        "on_error": st.sampled_from(("raise", "skip", "none")),
        "both": st.booleans(),
        "threads": st.sampled_from((1, 1, 1, 2)),
    }
)


@cache
def lines(name: str, *, back: bool = False) -> st.SearchStrategy[tuple[Any, ...]]:
    """Return a layout, delimited text for it, and options."""

    def joined(layout: Layout, right: list[bytes], blob: bytes, options: dict[str, Any]) -> tuple[Any, ...]:
        return layout, options["delimiter"].join([*right, blob]), options

    right = st.lists(paths(name), max_size=2) if back else st.just([])
    return st.builds(joined, layouts(name, encoded=back), right, BLOBS, LINE_OPTIONS)


# Half as many examples: each is a whole stream of items.
fewer = settings(max_examples=settings.default.max_examples // 2)


@pytest.mark.parametrize("name", LAYOUT_NAMES)
@fewer
@given(data=st.data())
def test_lines_map_alike(name: str, data: st.DataObject) -> None:
    """``map_lines`` writes the same bytes and fails in the same lines, with all options."""
    layout, blob, options = data.draw(lines(name))
    common_outcome(lambda: pass_through(partial(map_lines, layout), blob, **options))


@pytest.mark.parametrize("name", REVERSIBLE_LAYOUT_NAMES)
@fewer
@given(data=st.data())
def test_lines_map_back_alike(name: str, data: st.DataObject) -> None:
    """``unmap_lines`` writes the same bytes and fails in the same lines, with all options."""
    layout, blob, options = data.draw(lines(name, back=True))
    common_outcome(lambda: pass_through(partial(unmap_lines, layout), blob, **options))


@given(st.one_of(items_of("pairtree"), items_of(), odd_items()))
@example("")
@example("^")
@example("a^zz")
def test_cleaning_is_alike(item: Any) -> None:
    """``clean`` and ``unclean`` agree as functions and as methods."""
    for call in (clean, unclean, pressmark.Pairtree.clean, pressmark.Pairtree().unclean):
        common_outcome(partial(call, item))


def some_name(identifier: str) -> str:
    return identifier[:300]


ENCAPSULATIONS = st.sampled_from(("id", "tail:1", "tail:5", "tail:400", "fixed:data", some_name))


@given(ENCAPSULATIONS, st.sampled_from(("", "a", "\u00e9")), st.one_of(items_of(), odd_items()))
def test_encapsulation_is_alike(policy: Any, prefix: str, item: Any) -> None:
    """``object_path`` and ``encapsulation_name`` of Pairtree agree under every policy."""
    layout = pressmark.Pairtree(prefix=prefix, encapsulation=policy)
    common_outcome(partial(layout.object_path, item))
    common_outcome(partial(layout.encapsulation_name, item))


@given(st.sampled_from(("", "a")), items_of("pairtree"))
@example("", "pairtree_root/ab/c/obj")
@example("", "/ab//^z/z/obj")
@example("", "\ud800/a")
def test_loose_splitting_is_alike(prefix: str, item: Any) -> None:
    """``split_path`` of Pairtree agrees for any path."""
    common_outcome(partial(pressmark.Pairtree(prefix).split_path, item))


@given(items_of("vitro"), st.one_of(items_of("vitro"), odd_items()))
@example("abc", "~CON")
@example("abc", "^-f")
@example("abc", "\uff21^4\uff11")
def test_file_names_are_alike(identifier: Any, item: Any) -> None:
    """``encode_filename``, ``decode_filename`` and ``object_path`` of Vitro agree."""
    layout = pressmark.Vitro({"a": "http://"})
    common_outcome(partial(layout.encode_filename, item))
    common_outcome(partial(layout.decode_filename, item))
    common_outcome(partial(layout.object_path, identifier, item))


@pytest.mark.parametrize("name", sorted(set(LAYOUT_NAMES) - set(REVERSIBLE_LAYOUT_NAMES)))
def test_no_inverse_is_alike(name: str, pair: tuple[Implementation, Implementation]) -> None:
    """A layout without inverse raises the same error under both implementations, in every call."""
    layout = layout_of(name, required_config(name))
    for call in (
        partial(layout.unmap_path, "a"),
        partial(layout.unmap, []),
        lambda: pass_through(partial(unmap_lines, layout), b"").result,
    ):
        found = common_outcome(call)
        assert pressmark.NotReversibleError in (found[0], found[1][0])
    for implementation in pair:
        with use(implementation):
            assert not layout.reversible


@pytest.mark.parametrize("name", ["0003", "0004", "0012"])
@pytest.mark.parametrize("algorithm", ["md5", "sha1", "sha256", "blake2b-384", "sha512"])
def test_digests_of_many_identifiers(name: str, algorithm: str) -> None:
    """Identifiers of all lengths, with delimiters at all places, among some that fail, have the same paths."""
    parts = ["a:b", "é", "::", "x", ":", "\U0001f350", "%", "ab::c"]
    ids: list[Any] = [(parts[index % 8] + parts[index % 5] * (index % 120))[: index % 300] for index in range(1500)]
    ids[700:710] = [b"\xff", b"", b"a:\xc3", b":", b"::", b"a::", b"::a", b"x" * 70_000, b"\0", "é:é".encode()]
    settings_ = [{"tuple_size": 3, "number_of_tuples": 3}, {"tuple_size": 17, "number_of_tuples": 1}, {}]
    for given_ in settings_:
        more = {"delimiters": [":", "::", "é"]} if name == "0012" else {}
        layout = pressmark.layout(name, digest_algorithm=algorithm, **given_, **more)
        for items in (ids, ids[:1], ids[:511], ids[:513]):
            common_outcome(partial(layout.map_ids, items, on_error="none"))
