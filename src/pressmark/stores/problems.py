"""Every kind of problem that a store can have: a stable word, how grave it is, and where its specification says so.

Pairtree: draft-kunze-pairtree-01. OCFL: the specification 1.1. Vitro: the file storage subsystem's design.
"""

from __future__ import annotations

from pressmark.reports import ERROR, WARNING, Kind, Kinds

__all__ = ["KINDS", "SECTIONS", "problem"]

# The validation codes of OCFL 1.1 by the sections that define them; those that begin with E break a MUST, those that
# begin with W a SHOULD: https://ocfl.io/1.1/spec/validation-codes.html
_CODES = {
    "3.1": "E001",
    "3.2": "E002 E003 E004 E005 E006 E007",
    "3.3": "E008 E009 E010 E011 E012 E013 E014 E015 E104 E105 W001 W002",
    "3.3.1": "E016 E017 E018 E019 E020 E021 E022 E023 E024 E108 W003",
    "3.4": "E025 E026 E027 E028 E029 E030 E031 E032 W004",
    "3.5": "E033 E034 E035 E102",
    "3.5.1": "E036 E037 E038 E039 E040 E041 E110 W005",
    "3.5.2": "E042 E092 E096 E098 E099 E100 E101 E106 E107",
    "3.5.3": "E043 E044 E045 E046 E047",
    "3.5.3.1": "E048 E049 E050 E051 E052 E053 E054 E094 E095 W007 W008 W009",
    "3.5.4": "E055 E056 E057 E093 E097 E111",
    "3.6": "E058 E059 E060 E061 E062",
    "3.7": "E063 E064 E066 W010 W011",
    "3.7.1": "E103",
    "3.8": "W012",
    "3.9": "E067 W013",
    "4.1": "E069 E070 E071 E072 E073 E074 E087 E088",
    "4.2": "E075 E076 E077 E078 E079 E080 E081",
    "4.3": "E082 E083 E084 E085 W014 W015",
    "4.4": "E112 W016",
    "4.6": "E089 E090",
}
#: The section of each validation code.
SECTIONS = {code: section for section, codes in _CODES.items() for code in codes.split()}

_ADVICE = ("W001", "W003", "W004", "W005", "W007", "W008", "W009", "W010", "W011")


def _ocfl(severity: str, meaning: str, *codes: str) -> Kind:
    """Return a kind of problem for which OCFL has validation codes, the usual one first."""
    return Kind(severity, SECTIONS[codes[0]], meaning, codes)


KINDS = Kinds(
    {
        # --- all stores
        "beside": Kind(WARNING, "", "it lies beside the store's own files and belongs to no object"),
        "object-changing": Kind(ERROR, "", "the object changed whenever it was checked; check it again"),
        "leftover": Kind(WARNING, "", "an interrupted run of pressmark left it behind; the next change removes it"),
        "leftover-foreign": Kind(
            WARNING,
            "",
            "an interrupted run of another user left it behind; that user's next change removes it",
        ),
        "unrepaired": Kind(ERROR, "", "the system refuses what a repair would do here; nothing is lost"),
        "unreadable": Kind(ERROR, "", "a file or directory cannot be read"),
        # --- Pairtree: the tree as a whole
        "version-missing": Kind(WARNING, "4", "there is no pairtree_version0_1"),
        "version-unknown": Kind(WARNING, "4", "pairtree_version0_1 does not say that this is Pairtree 0.1"),
        # --- Pairtree: objects
        "ambiguous": Kind(ERROR, "3", "the dialect's path can be read as more than one identifier"),
        "bare-file": Kind(ERROR, "2", "the object is a single file without an encapsulating directory"),
        "duplicate-id": Kind(ERROR, "3", "another ppath stands for the same identifier"),
        "empty-id": Kind(ERROR, "2", "what lies right in pairtree_root belongs to no identifier"),
        "link": Kind(ERROR, "", "a symbolic link, and links are refused; it was not followed"),
        "link-dangling": Kind(ERROR, "", "a symbolic link that leads nowhere"),
        "link-loop": Kind(ERROR, "", "a symbolic link to a directory that holds it; it was not followed"),
        "not-canonical": Kind(WARNING, "3", "the ppath is not the one that its identifier maps to"),
        "not-utf8": Kind(WARNING, "3", "the identifier is not UTF-8"),
        "post-morty": Kind(ERROR, "2", "short directories below a directory of one character, where every ppath ends"),
        "split-end": Kind(ERROR, "2", "the object is not in one encapsulating directory but in several names"),
        "undecodable": Kind(ERROR, "3", "the ppath stands for no identifier"),
        "unfinished": Kind(ERROR, "", "a change of the object was interrupted; a repair finishes it"),
        # --- Pairtree: names that belong to no object
        "empty": Kind(WARNING, "2", "a ppath that ends in an empty directory; it holds no object"),
        "reserved": Kind(WARNING, "2", "a name that begins with pairtree is reserved; it belongs to no object"),
        "link-unmoved": Kind(WARNING, "", "a relative link in the object would lead elsewhere after the repair"),
        # --- Vitro
        "bad-file-name": Kind(ERROR, "Filename encoding", "Vitro looks for the object's file under another name"),
        "file-in-root": Kind(ERROR, "Directory structure", "a file right in file_storage_root is no identifier's"),
        "files-several": Kind(ERROR, "Directory structure", "the object has more than one file"),
        "hidden": Kind(ERROR, "Namespaces", "the object was stored before its namespace was declared"),
        "namespaces-blank": Kind(WARNING, "Namespaces", "a namespace ends with a blank"),
        "namespaces-malformed": Kind(
            ERROR, "Namespaces", "Vitro reads a line of the namespaces file otherwise, or fails"
        ),
        "namespaces-order": Kind(WARNING, "Namespaces", "which of two namespaces wins depends on the version of Java"),
        "namespaces-repeated": Kind(WARNING, "Namespaces", "a prefix is repeated, or two stand for one namespace"),
        "namespaces-value": Kind(ERROR, "Namespaces", "a namespace is empty, or changes when Vitro writes it again"),
        "unknown-prefix": Kind(ERROR, "Namespaces", "the namespaces file does not say what the prefix stands for"),
        # --- folders of bags
        "archive-unchecked": Kind(WARNING, "", "a serialised bag: its checksums are verified on request only"),
        "identifier-missing": Kind(WARNING, "", "nothing says the bag's identifier"),
        "identifier-several": Kind(WARNING, "", "the bag has several External-Identifiers"),
        # --- OCFL: the storage root
        "declaration-malformed": _ocfl(ERROR, "a declaration's content is not its name's", "E007", "E080"),
        "declaration-missing": _ocfl(ERROR, "there is no declaration of the storage root", "E069"),
        "declaration-several": _ocfl(ERROR, "there is more than one declaration", "E003", "E076"),
        "declaration-unknown": _ocfl(ERROR, "a declaration of no version that is known", "E006", "E079"),
        "extensions-file": _ocfl(ERROR, "what is no directory right in the directory of extensions", "E067", "E112"),
        "extension-unregistered": _ocfl(WARNING, "a directory not named after a registered extension", "W013", "W016"),
        "layout-malformed": _ocfl(ERROR, "ocfl_layout.json is not as required", "E070"),
        "layout-missing": Kind(WARNING, "4.1", "nothing says which layout places the objects: that is not checked"),
        "layout-unknown": _ocfl(ERROR, "the layout is unknown or refused: where objects belong is not checked", "E071"),
        "version-later": _ocfl(ERROR, "an object declares a later OCFL version than its root", "E081"),
        # --- OCFL: the hierarchy
        "case-clash": Kind(WARNING, "4.6", "names that differ only in case or Unicode normalization"),
        "directory-empty": _ocfl(ERROR, "an empty directory", "E073"),
        "file-stray": _ocfl(ERROR, "a file in the hierarchy that belongs to no object", "E003", "E072"),
        "hard-link": _ocfl(ERROR, "a file that has more than one name", "E090"),
        "identifier-unplaced": Kind(ERROR, "4.3", "the layout has no place for the object's identifier"),
        "misplaced": _ocfl(ERROR, "the object is not where the layout places it", "E083"),
        "object-inside": _ocfl(ERROR, "an object inside of another object", "E082"),
        "path-ocfl-java": Kind(ERROR, "4.3", "the object is where ocfl-java's spelling of layout 0003 places it"),
        "special-file": _ocfl(ERROR, "a named pipe, socket or device; it was not opened", "E089"),
        "symbolic-link": _ocfl(ERROR, "a symbolic link; it was not followed", "E090"),
        # --- OCFL: objects
        "content-changing": Kind(ERROR, "3.4", "a content file changed while it was read"),
        "content-directory-empty": _ocfl(ERROR, "an empty directory in the content", "E024"),
        "content-extra": _ocfl(ERROR, "a content file that no manifest lists", "E023"),
        "content-mismatch": _ocfl(ERROR, "a content file has not the digest of the manifest", "E092"),
        "content-missing": _ocfl(ERROR, "a content file of the manifest is not there", "E092"),
        "content-unreadable": Kind(ERROR, "3.5.2", "a content file cannot be read"),
        "digest-algorithm": _ocfl(ERROR, "the digest algorithm is neither sha512 nor sha256", "E025"),
        "digest-malformed": _ocfl(ERROR, "a digest has not its algorithm's form", "E025", "E050", "E057"),
        "digest-repeated": _ocfl(ERROR, "a digest is there in upper and in lower case", "E050", "E096", "E097"),
        "digest-unknown": _ocfl(ERROR, "a state has a digest that is not in the manifest", "E050"),
        "digest-unused": _ocfl(ERROR, "the manifest has a digest that no state uses", "E107"),
        "fixity-algorithm": _ocfl(WARNING, "fixity has an algorithm that is not known", "E056"),
        "fixity-mismatch": _ocfl(ERROR, "a content file has not the digest that fixity says", "E093"),
        "history-differs": _ocfl(
            ERROR,
            "an earlier inventory contradicts a later one",
            "E019",
            "E020",
            "E040",
            "E066",
            "E092",
            "E093",
            "E103",
            "E110",
        ),
        "inventory-advice": _ocfl(WARNING, "what an object should have, and does not", *_ADVICE),
        "inventory-differs": _ocfl(ERROR, "the newest version's inventory is not that of the object", "E064"),
        "inventory-key-missing": _ocfl(ERROR, "a key that inventories must have is missing", "E036", "E041", "E048"),
        "inventory-key-repeated": _ocfl(ERROR, "a JSON object has a key more than once", "E033"),
        "inventory-key-unknown": _ocfl(ERROR, "an inventory has a key that OCFL does not know", "E102"),
        "inventory-malformed": _ocfl(ERROR, "an inventory is no JSON object", "E033"),
        "inventory-missing": _ocfl(ERROR, "the object has no inventory", "E063"),
        "inventory-value": _ocfl(
            ERROR,
            "a value in an inventory is not what it must be",
            "E017",
            "E018",
            "E037",
            "E038",
            "E040",
            "E044",
            "E045",
            "E047",
            "E049",
            "E050",
            "E054",
            "E057",
            "E092",
            "E094",
            "E106",
            "E111",
        ),
        "object-extra": _ocfl(ERROR, "a name in an object's root that OCFL does not know", "E001"),
        "path-conflict": _ocfl(ERROR, "a path is a file and a directory", "E095", "E101"),
        "path-malformed": _ocfl(ERROR, "a path has a forbidden form", "E042", "E052", "E053", "E099", "E100"),
        "path-repeated": _ocfl(ERROR, "a path is in a manifest or state more than once", "E095", "E101"),
        "path-unknown": _ocfl(ERROR, "fixity has a path that is not in the manifest", "E057"),
        "sidecar-malformed": _ocfl(ERROR, "an inventory's sidecar has not its form", "E061"),
        "sidecar-mismatch": _ocfl(ERROR, "an inventory has not the digest of its sidecar", "E060"),
        "sidecar-missing": _ocfl(ERROR, "an inventory has no sidecar with its digest", "E058"),
        "unversioned": Kind(WARNING, "3.1", "logs or an extension's files: they are in no version of the object"),
        "version-absent": _ocfl(
            ERROR, "a version is missing in the inventory or on the disk", "E008", "E009", "E010", "E046"
        ),
        "version-directory": _ocfl(WARNING, "a directory beside a version's content; it is ignored", "W002"),
        "version-extra": _ocfl(ERROR, "a version directory that the inventory has not", "E046"),
        "version-file": _ocfl(ERROR, "a file beside a version's content and inventory", "E015"),
        "version-name": _ocfl(ERROR, "a version's name is not as it must be", "E012", "E104"),
    },
    SECTIONS,
)

#: Makes a problem of one of these kinds; paths are relative to the store's root.
problem = KINDS.problem
