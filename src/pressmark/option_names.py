"""How messages name options and parameters: as the caller spells them, in Python, in a shell or in a configuration."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Container, Iterator
from contextvars import ContextVar

__all__ = ["are_flags", "as_flags", "camel_case", "named_by_key", "option", "parameter_name"]

# The flags that are not named after their keyword.
FLAGS = {
    "algorithms": "-a",
    "allow_buckets": "--allow-bucket",
    "allow_hosts": "--allow-host",
    "namespaces": "--namespace",
    "new_ids": "--map",
    "null": "-0",
    "result": "--as",
    "tag_files": "--tag-file",
}

# The options whose value may be left out: it is joined to the flag.
JOINED = {"digests"}

# One item for each running block of as_flags, in any thread: the threads of a command name flags too.
_blocks: list[None] = []
# The parameters that the caller named by keyword; None: all of them.
_keywords: ContextVar[Container[str] | None] = ContextVar("keywords", default=None)


def option(name: str, value: str | bool | int | list[str] | None = None) -> str:
    """Return how a message names an option, with the value that it advises or refuses.

    >>> option("kind"), option("replace", True), option("header", False), option("copy_mode", "auto")
    ('kind=', 'replace=True', 'header=False', "copy_mode='auto'")
    >>> with as_flags():
    ...     option("kind"), option("replace", True), option("header", False), option("copy_mode", "auto")
    ('--kind', '--replace', '--no-header', '--copy-mode auto')
    """
    if not are_flags():
        return f"{name}=" if value is None else f"{name}={value!r}"
    flag = FLAGS.get(name, f"--{'no-' if value is False else ''}{name.replace('_', '-')}")
    if value is None or isinstance(value, bool):
        return flag
    words = value if isinstance(value, list) else [str(value)]
    text = ",".join(word if re.fullmatch("[0-9A-Za-z._-]+", word) else repr(word) for word in words)
    return f"{flag}={text}" if name in JOINED else f"{flag} {text}"


def are_flags() -> bool:
    """Return whether a command runs: messages name options by their flags."""
    return bool(_blocks)


@contextlib.contextmanager
def as_flags(when: bool = True) -> Iterator[None]:
    """Name options by their flags within the block, in all threads; ``when`` tells whether at all."""
    if when:
        _blocks.append(None)
    try:
        yield
    finally:
        if when:
            _blocks.pop()


# --- parameters of layouts --------------------------------------------------------------------------------------------


def camel_case(name: str) -> str:
    """Return the specification's spelling of a Python name: ``tupleSize`` for ``tuple_size``.

    The acronym in ``encodeUTF`` is the one exception.
    """
    head, *rest = name.split("_")
    return head + "".join("UTF" if word == "utf" else word.capitalize() for word in rest)


def parameter_name(name: str) -> str:
    """Return how a message names a parameter of a layout: by its keyword, or by its key if the caller used keys.

    >>> parameter_name("tuple_size")
    'tuple_size'
    >>> with named_by_key(except_for={"number_of_tuples"}):
    ...     parameter_name("tuple_size"), parameter_name("number_of_tuples")
    ('tupleSize', 'number_of_tuples')
    """
    keywords = _keywords.get()
    is_keyword = not are_flags() and (keywords is None or name in keywords)
    return name if is_keyword else camel_case(name)


@contextlib.contextmanager
def named_by_key(except_for: Container[str] = ()) -> Iterator[None]:
    """Name parameters by their keys in configuration files within the block.

    :param except_for: the parameters that the caller named by keyword
    """
    token = _keywords.set(except_for)
    try:
        yield
    finally:
        _keywords.reset(token)
