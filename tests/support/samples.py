"""Layouts for tests: every layout with default parameters, and configurations that cover every branch."""

from __future__ import annotations

from typing import Any

from pressmark.layouts import Layout, find_layout, layout_from_config, list_layouts

#: The layouts of Pressmark.
OWN = [cls for cls in list_layouts() if cls.__module__.startswith("pressmark.")]
#: (name, configuration) by a short word that appears in the names of tests.
CONFIGURATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "pairtree": ("pairtree", {}),
    "pairtree-prefix": ("pairtree", {"prefix": "a"}),
    "vitro": ("vitro", {}),
    "vitro-namespaces": ("vitro", {"namespaces": {"a": "http://", "b": "a", "c": "\u00e9\u4f8b"}}),
    "0002": ("0002-flat-direct-storage-layout", {}),
    "0003": ("0003-hash-and-id-n-tuple-storage-layout", {}),
    "0003-flat": ("0003-hash-and-id-n-tuple-storage-layout", {"tupleSize": 0, "numberOfTuples": 0}),
    "0004": ("0004-hashed-n-tuple-storage-layout", {}),
    "0004-short": (
        "0004-hashed-n-tuple-storage-layout",
        {"digestAlgorithm": "md5", "tupleSize": 2, "numberOfTuples": 15, "shortObjectRoot": True},
    ),
    "0006": ("0006-flat-omit-prefix-storage-layout", {"delimiter": ":"}),
    "0006-word": ("0006-flat-omit-prefix-storage-layout", {"delimiter": "aB"}),
    "0007": ("0007-n-tuple-omit-prefix-storage-layout", {}),
    "0007-reversed": (
        "0007-n-tuple-omit-prefix-storage-layout",
        {"tupleSize": 1, "numberOfTuples": 2, "zeroPadding": "right", "reverseObjectRoot": True},
    ),
    "0010": ("0010-differential-n-tuple-omit-prefix-storage-layout", {"tupleSegmentSizes": [1, 2]}),
    "0010-full": (
        "0010-differential-n-tuple-omit-prefix-storage-layout",
        {"tupleSegmentSizes": [1], "fullIdentifierAsObjectRoot": True, "delimiter": "/"},
    ),
    "0011": ("0011-direct-clean-path-layout", {}),
    "0011-encoded": ("0011-direct-clean-path-layout", {"encodeUTF": True}),
    "0011-gocfl": ("0011-direct-clean-path-layout", {"rules": "gocfl", "replacementString": "=u003"}),
    "0011-gocfl-encoded": ("0011-direct-clean-path-layout", {"rules": "gocfl", "encodeUTF": True}),
    "0011-short": (
        "0011-direct-clean-path-layout",
        {
            "maxPathSegmentLen": 5,
            "maxPathnameLen": 60,
            "replacementString": "..",
            "whitespaceReplacementString": ":",
            "numberOfFallbackTuples": 2,
            "fallbackTupleSize": 3,
        },
    ),
    "0012": ("0012-hash-and-no-prefix-id-n-tuple-storage-layout", {"delimiters": [":", "/", "\u00e9", "aB"]}),
}


def layout_of(name: str, config: dict[str, Any]) -> Layout:
    """Return the layout of an official name and a configuration in the specification's camelCase."""
    return layout_from_config({"extensionName": name, **config})


def sample(word: str) -> Layout:
    """Return the layout of ``CONFIGURATIONS[word]``."""
    return layout_of(*CONFIGURATIONS[word])


def required_config(name: str) -> dict[str, Any]:
    """Return the required parameters of the layout ``name``, from its first sample."""
    config = next(config for official, config in CONFIGURATIONS.values() if official == name)
    return {parameter.key: config[parameter.key] for parameter in find_layout(name).parameters() if parameter.required}


#: Their aliases and names, as the message for an unknown one lists them.
KNOWN = ", ".join(cls.alias or cls.name for cls in OWN)
#: The words of the samples that map back.
REVERSIBLE = [word for word in CONFIGURATIONS if sample(word).reversible]
#: The words of the samples with the four digits of their OCFL extension: one for each layout.
OCFL_WORDS = [word for word, (name, _config) in CONFIGURATIONS.items() if word == find_layout(name).alias]
