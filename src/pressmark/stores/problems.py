"""Every kind of problem that a store can have: a stable word, its severity, and the section of the specification.

Pairtree: draft-kunze-pairtree-01. OCFL: the specification 1.1. Vitro: the design of its file storage subsystem.
"""

from __future__ import annotations

from pressmark.reports import ERROR, WARNING, Kind, Kinds

__all__ = ["KINDS", "METHODS", "REMEDIES", "REPAIRED", "SECTIONS", "code_in", "problem"]

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
# The codes of OCFL 1.0 for rules that have codes of their own since 1.1.
_CODES_OF_1_0 = {"E104": "E046", "E106": "E041", "E110": "E037", "E111": "E056", "E112": "E067"}

_ADVICE = ("W001", "W003", "W004", "W005", "W007", "W008", "W009", "W010", "W011")


def code_in(version: str | None, code: str) -> str:
    """Return a validation code of OCFL 1.1 as the declared version has it."""
    return _CODES_OF_1_0.get(code, code) if version == "1.0" else code


def _ocfl(severity: str, meaning: str, *codes: str) -> Kind:
    """Return a kind of problem with OCFL validation codes, the most frequent first."""
    return Kind(severity, SECTIONS[codes[0]], meaning, codes)


#: The kinds of problems that a check of a store can find.
KINDS = Kinds(
    {
        # --- all stores
        "beside": Kind(
            WARNING, "", "a file or directory next to the store's own files that does not belong to any object"
        ),
        "object-missing": Kind(ERROR, "", "no object has the selected identifier or path"),
        "object-changing": Kind(ERROR, "", "the object kept changing during the check; check it again"),
        "junk": Kind(
            WARNING,
            "",
            "a file or directory that an operating system added, such as .DS_Store or lost+found; it does not belong to"
            " any object",
        ),
        "leftover": Kind(WARNING, "", "a temporary directory of an interrupted run; the next change removes it"),
        "leftover-foreign": Kind(
            WARNING,
            "",
            "a temporary directory of another user's interrupted run; that user's next change removes it",
        ),
        "partial": Kind(
            WARNING, "", "the object contains only files of an interrupted transfer, such as those in .rsync-partial"
        ),
        "unrepaired": Kind(ERROR, "", "the operating system refused the repair; nothing is lost"),
        "unmended": Kind(ERROR, "", "a damaged or lost file that the good copy does not have"),
        "unreadable": Kind(ERROR, "", "a file or directory cannot be read"),
        "content-archived": Kind(
            WARNING, "", "the content of a file is archived, so it was not read; restore it before you read it"
        ),
        "excluded": Kind(WARNING, "", "left out of a source: a glob matches its name, or it is on another file system"),
        # --- Pairtree: the tree as a whole
        "version-missing": Kind(WARNING, "4", "pairtree_version0_1 is missing"),
        "version-unknown": Kind(WARNING, "4", "pairtree_version0_1 does not name Pairtree 0.1"),
        # --- Pairtree: objects
        "ambiguous": Kind(ERROR, "3", "the path can be decoded to more than one identifier in this dialect"),
        "bare-file": Kind(ERROR, "2", "the object is a single file without an encapsulating directory"),
        "duplicate-id": Kind(ERROR, "3", "another path has the same identifier"),
        "empty-id": Kind(ERROR, "2", "directories directly in pairtree_root, which have no identifier"),
        "link": Kind(ERROR, "", "a symbolic link, not followed because links are refused"),
        "link-dangling": Kind(ERROR, "", "a symbolic link whose target does not exist"),
        "link-loop": Kind(ERROR, "", "a symbolic link to a directory above it, not followed"),
        "not-canonical": Kind(WARNING, "3", "the ppath differs from the one that its identifier maps to"),
        "not-utf8": Kind(WARNING, "3", "the identifier is not UTF-8"),
        "post-morty": Kind(
            ERROR, "2", "directories with short names below a directory of one character, which ends the ppath"
        ),
        "split-end": Kind(
            ERROR, "2", "the object consists of several files or directories instead of one encapsulating directory"
        ),
        "undecodable": Kind(ERROR, "3", "the ppath cannot be decoded to an identifier"),
        "unfinished": Kind(ERROR, "", "an interrupted change of the object; a repair completes it"),
        # --- Pairtree: names outside of objects
        "empty": Kind(WARNING, "2", "a ppath that ends in an empty directory"),
        "root-file": Kind(WARNING, "", "a file directly in pairtree_root; it does not belong to any object"),
        "reserved": Kind(WARNING, "2", "a reserved name: it begins with pairtree and does not belong to any object"),
        "link-unmoved": Kind(WARNING, "", "a relative link in the object would have another target after the repair"),
        # --- Vitro
        "bad-file-name": Kind(ERROR, "Filename encoding", "Vitro does not find the object's file by its stored name"),
        "file-in-root": Kind(
            ERROR, "Directory structure", "a file directly in file_storage_root, which has no identifier"
        ),
        "files-several": Kind(ERROR, "Directory structure", "the object has more than one file"),
        "hidden": Kind(
            ERROR, "Namespaces", "the object was stored before its namespace was declared, and Vitro does not find it"
        ),
        "namespaces-blank": Kind(WARNING, "Namespaces", "a namespace ends with white space"),
        "namespaces-malformed": Kind(ERROR, "Namespaces", "Vitro misreads or rejects a line of the namespaces file"),
        "namespaces-order": Kind(
            WARNING, "Namespaces", "the choice between two namespaces depends on the version of Java"
        ),
        "namespaces-repeated": Kind(
            WARNING, "Namespaces", "a prefix is repeated, or two prefixes have the same namespace"
        ),
        "namespaces-value": Kind(ERROR, "Namespaces", "a namespace is empty, or changes when Vitro writes it again"),
        "unknown-prefix": Kind(ERROR, "Namespaces", "the namespaces file does not define the prefix"),
        # --- audits
        "object-changed": Kind(WARNING, "", "the object has changed since its last audit"),
        "object-differs": Kind(
            ERROR, "", "files of the object differ from its last audit, but have the same times of modification"
        ),
        "object-mended": Kind(WARNING, "", "the object had errors in its last audit, and has none now"),
        "object-new": Kind(WARNING, "", "an object that no earlier audit has listed"),
        "object-vanished": Kind(WARNING, "", "the object no longer exists; later audits do not mention it"),
        # --- folders of bags
        "index-outdated": Kind(
            WARNING, "", "the index of the folder has a different identifier for a bag; repair the folder"
        ),
        "archive-unchecked": Kind(WARNING, "", "a serialized bag, which is only validated with digests"),
        "identifier-missing": Kind(WARNING, "", "the bag has no identifier"),
        "identifier-several": Kind(WARNING, "", "the bag has more than one External-Identifier"),
        # --- OCFL: the storage root
        "declaration-malformed": _ocfl(ERROR, "a declaration's content does not match its name", "E007", "E080"),
        "declaration-missing": _ocfl(ERROR, "the storage root has no declaration", "E069"),
        "declaration-several": _ocfl(ERROR, "more than one declaration", "E003", "E076"),
        "declaration-unknown": _ocfl(ERROR, "a declaration of an unknown version", "E006", "E079"),
        "extensions-file": _ocfl(ERROR, "a file directly in the extensions directory", "E067", "E112"),
        "extension-unregistered": _ocfl(WARNING, "a directory not named after a registered extension", "W013", "W016"),
        "layout-malformed": _ocfl(ERROR, "ocfl_layout.json is malformed", "E070"),
        "layout-missing": Kind(WARNING, "4.1", "ocfl_layout.json is missing; the paths of objects are not checked"),
        "layout-unknown": _ocfl(ERROR, "the layout is unknown, unsuitable, or named by an abbreviation", "E071"),
        "version-later": _ocfl(ERROR, "an object declares a later OCFL version than its storage root", "E081"),
        # --- OCFL: the hierarchy
        "case-clash": Kind(WARNING, "4.6", "names that differ only in case or Unicode normalization"),
        "directory-empty": _ocfl(ERROR, "an empty directory", "E073"),
        "file-stray": _ocfl(ERROR, "a file in the hierarchy that does not belong to any object", "E003", "E072"),
        "hard-link": _ocfl(ERROR, "a file with more than one hard link", "E090"),
        "identifier-unplaced": Kind(ERROR, "4.3", "the layout cannot map the object's identifier"),
        "misplaced": _ocfl(ERROR, "the object is not at the path that the layout maps its identifier to", "E083"),
        "object-inside": _ocfl(ERROR, "an object inside another object", "E082"),
        "path-ocfl-java": Kind(ERROR, "4.3", "the object's path follows ocfl-java's variant of layout 0003"),
        "special-file": _ocfl(ERROR, "a named pipe, socket or device, not opened", "E089"),
        "symbolic-link": _ocfl(ERROR, "a symbolic link, not followed", "E090"),
        # --- OCFL: objects
        "content-changing": Kind(ERROR, "3.4", "a content file changed while it was read"),
        "content-directory-empty": _ocfl(ERROR, "an empty directory in the content", "E024"),
        "content-extra": _ocfl(ERROR, "a content file that is not listed in any manifest", "E023"),
        "content-mismatch": _ocfl(ERROR, "a content file does not match its digest in the manifest", "E092"),
        "content-missing": _ocfl(ERROR, "a content file listed in the manifest is missing", "E092"),
        "content-unreadable": Kind(ERROR, "3.5.2", "a content file cannot be read"),
        "content-unverified": Kind(
            ERROR, "", "a content file was not verified: neither the server nor the report has a digest of it"
        ),
        "digest-algorithm": _ocfl(ERROR, "the digest algorithm is neither sha512 nor sha256", "E025"),
        "digest-malformed": _ocfl(ERROR, "a digest is malformed for its algorithm", "E025", "E050", "E057"),
        "digest-repeated": _ocfl(ERROR, "a digest occurs in upper and in lower case", "E050", "E096", "E097"),
        "digest-unknown": _ocfl(ERROR, "a state uses a digest that is not in the manifest", "E050"),
        "digest-unused": _ocfl(ERROR, "the manifest contains a digest that no state uses", "E107"),
        "fixity-algorithm": _ocfl(WARNING, "the fixity block uses an unknown algorithm", "E056"),
        "fixity-mismatch": _ocfl(ERROR, "a content file does not match its digest in the fixity block", "E093"),
        "history-differs": _ocfl(
            ERROR,
            "an earlier inventory contradicts a later one",
            "E019",
            "E020",
            "E037",
            "E040",
            "E066",
            "E092",
            "E093",
            "E103",
            "E110",
        ),
        "inventory-advice": _ocfl(WARNING, "the object does not follow a recommendation of OCFL", *_ADVICE),
        "inventory-differs": _ocfl(ERROR, "the newest version's inventory differs from the object's", "E064"),
        "inventory-key-missing": _ocfl(ERROR, "a required key is missing", "E036", "E041", "E048"),
        "inventory-key-repeated": _ocfl(ERROR, "a JSON object contains a key more than once", "E033"),
        "inventory-key-unknown": _ocfl(ERROR, "an inventory contains an unknown key", "E102"),
        "inventory-malformed": _ocfl(ERROR, "an inventory is not a JSON object", "E033"),
        "inventory-missing": _ocfl(ERROR, "the object has no inventory", "E063"),
        "inventory-value": _ocfl(
            ERROR,
            "an inventory contains an invalid value",
            "E017",
            "E018",
            "E037",
            "E038",
            "E040",
            "E041",
            "E044",
            "E047",
            "E049",
            "E050",
            "E054",
            "E056",
            "E057",
            "E092",
            "E094",
            "E106",
            "E111",
        ),
        "object-extra": _ocfl(ERROR, "an unknown file or directory in the root of an object", "E001"),
        "mutable-head": Kind(
            WARNING,
            "3.9",
            "a mutable HEAD (extension 0005): changes that ocfl-java has staged, which are in no version yet",
        ),
        "path-conflict": _ocfl(ERROR, "a path is used for a file and for a directory", "E095", "E101"),
        "path-malformed": _ocfl(ERROR, "a path has an invalid form", "E042", "E052", "E053", "E099", "E100"),
        "path-repeated": _ocfl(ERROR, "a path occurs more than once in a manifest or state", "E095", "E101"),
        "path-unknown": _ocfl(ERROR, "the fixity block contains a path that is not in the manifest", "E057"),
        "sidecar-malformed": _ocfl(ERROR, "an inventory's sidecar is malformed", "E061"),
        "sidecar-mismatch": _ocfl(ERROR, "an inventory does not match the digest in its sidecar", "E060"),
        "sidecar-missing": _ocfl(ERROR, "an inventory has no sidecar", "E058"),
        "unversioned": Kind(WARNING, "3.9", "files of an extension, which do not belong to any version of the object"),
        "version-absent": _ocfl(
            ERROR, "a version is missing in the inventory or on disk", "E008", "E009", "E010", "E046"
        ),
        "version-directory": _ocfl(WARNING, "an unexpected directory in a version, ignored", "W002"),
        "version-extra": _ocfl(ERROR, "a version directory that the inventory does not list", "E046"),
        "version-file": _ocfl(ERROR, "an unexpected file in a version", "E015"),
        "version-name": _ocfl(ERROR, "an invalid version name", "E012", "E046", "E104"),
        "version-unfinished": _ocfl(
            ERROR,
            "an interrupted change: a complete version that the inventory does not list yet, or an inventory with the "
            "sidecar or the declaration of the earlier one; a repair or the next change of the object completes it",
            "E038",
            "E046",
            "E060",
        ),
    },
    SECTIONS,
)

#: Creates a problem of one of these kinds; paths are relative to the store's root.
problem = KINDS.problem

#: How the files of a check in object storage were verified, as its counts say.
METHODS = ("read", "stored", "report", "unverified")

#: Kinds that ``store repair`` mends, where that is unambiguous.
REPAIRED = frozenset(
    {
        *("leftover", "unfinished", "empty", "bare-file", "post-morty", "split-end", "bad-file-name", "hidden"),
        *("index-outdated", "directory-empty", "content-directory-empty", "declaration-malformed", "layout-missing"),
        *("declaration-missing", "file-stray", "sidecar-missing", "sidecar-malformed", "sidecar-mismatch"),
        *("inventory-missing", "inventory-malformed", "version-unfinished", "declaration-several"),
    }
)
_REPAIR = "repair the store"
_AGAIN = "check again when nothing changes the store"
_MEND = "repair the store from a good copy (`pressmark store repair --from`)"
_RESTORE = "restore the object from another copy"
_MAKER = "report it to the developers of the program that wrote the object; the object can still be read"
_NONE = "none required"
#: What to do about each kind.
REMEDIES = {
    "beside": f"{_NONE}; move it elsewhere if it does not belong to the store",
    "object-missing": "correct the identifier, or restore the object from another copy",
    "object-changing": _AGAIN,
    "junk": _NONE,
    "leftover": f"{_NONE}; a repair removes it",
    "leftover-foreign": "ask its owner to repair the store",
    "partial": "transfer the object again",
    "unrepaired": "correct what the message names, such as permissions, and repair the store again",
    "unmended": "use another good copy",
    "unreadable": "correct the permissions, or check the disk",
    "content-archived": "use the digests of the server (`pressmark store check --digests=stored`) or of a report "
    "(in an OCFL storage root), or restore the file from the archive and check again",
    "excluded": _NONE,
    # --- Pairtree
    "version-missing": "create pairtree_version0_1 with the line of section 4",
    "version-unknown": "correct pairtree_version0_1, or use software for its version",
    "ambiguous": "specify another dialect, or look at both identifiers",
    "bare-file": _REPAIR,
    "duplicate-id": "compare both objects, and move one out of the store",
    "empty-id": "move them to the path of an identifier, or out of pairtree_root",
    "link": "follow links, or replace the link with its target",
    "link-dangling": "mount or restore the target, or move the link out of the store",
    "link-loop": "move the link out of the store",
    "not-canonical": f"{_NONE}; a migration moves the object to its path",
    "not-utf8": f"{_NONE} in a Pairtree; other layouts require UTF-8",
    "post-morty": _REPAIR,
    "split-end": _REPAIR,
    "undecodable": "find out which program wrote it, or move it out of the tree",
    "unfinished": _REPAIR,
    "empty": _REPAIR,
    "root-file": "move it out of pairtree_root",
    "reserved": "rename it, or move it out of the tree",
    "link-unmoved": "replace the link with its target, and repair again",
    # --- Vitro
    "bad-file-name": _REPAIR,
    "file-in-root": "store it under an identifier, and move it out of file_storage_root",
    "files-several": "move the files that do not belong to the object out of its directory",
    "hidden": _REPAIR,
    "namespaces-blank": "correct the line",
    "namespaces-malformed": "correct the line",
    "namespaces-order": "keep one of the two namespaces",
    "namespaces-repeated": "keep one of the lines",
    "namespaces-value": "correct the line",
    "unknown-prefix": "declare the namespace again (`pressmark store declare`)",
    # --- audits
    "object-changed": f"{_NONE}, if the change was intended",
    "object-differs": "restore the object from another copy; if the change was intended, touch one of its files",
    "object-mended": _NONE,
    "object-new": _NONE,
    "object-vanished": f"{_NONE}, if somebody has removed the object; otherwise restore it from another copy",
    # --- folders of bags
    "index-outdated": _REPAIR,
    "archive-unchecked": "run `pressmark store check --digests`",
    "identifier-missing": "add External-Identifier to its bag-info.txt (`pressmark bag update`)",
    "identifier-several": "keep one External-Identifier",
    # --- OCFL: the storage root
    "declaration-malformed": _REPAIR,
    "declaration-missing": "run `pressmark store repair --kind ocfl`, if it is a storage root",
    "declaration-several": "keep the declaration of the version in use; a repair removes the earlier ones of the root",
    "declaration-unknown": "use software for this version",
    "extensions-file": "move it out of the extensions directory",
    "extension-unregistered": _NONE,
    "layout-malformed": "correct ocfl_layout.json, or specify the layout",
    "layout-missing": "repair the store with its layout (`pressmark store repair --layout`)",
    "layout-unknown": "write the registered name in ocfl_layout.json, or specify the layout",
    "version-later": "declare the later version in the storage root",
    # --- OCFL: the hierarchy
    "case-clash": f"{_NONE} on this file system; others treat both names as one",
    "directory-empty": _REPAIR,
    "file-stray": "repair the store; if it is no part of an object, move it out of the storage root",
    "hard-link": "replace the file with a copy of its own",
    "identifier-unplaced": "specify the layout by which the object was stored",
    "misplaced": "migrate the storage root, or specify the layout by which it was stored",
    "object-inside": "move the inner object out of the outer one",
    "path-ocfl-java": f"{_NONE} for ocfl-java; a migration moves the object to its path",
    "special-file": "move it out of the storage root",
    "symbolic-link": "replace the link with its target",
    # --- OCFL: objects
    "content-changing": _AGAIN,
    "content-directory-empty": _REPAIR,
    "content-extra": "move it out of the object, or restore the inventory that lists it",
    "content-mismatch": _MEND,
    "content-missing": _MEND,
    "content-unreadable": "correct the permissions, or check the disk",
    "content-unverified": "check the store by reading it (`pressmark store check --digests`), or with a report that "
    "lists the file",
    "digest-algorithm": _MAKER,
    "digest-malformed": _RESTORE,
    "digest-repeated": _MAKER,
    "digest-unknown": _RESTORE,
    "digest-unused": _MAKER,
    "fixity-algorithm": f"{_NONE}; these digests are not compared",
    "fixity-mismatch": "compare the file with another copy; the manifest decides",
    "history-differs": "compare the object with another copy; the newest inventory decides",
    "inventory-advice": _NONE,
    "inventory-differs": "compare both inventories with another copy of the object",
    "inventory-key-missing": _RESTORE,
    "inventory-key-repeated": _RESTORE,
    "inventory-key-unknown": _MAKER,
    "inventory-malformed": f"{_REPAIR}; or {_RESTORE}",
    "inventory-missing": f"{_REPAIR}; or {_RESTORE}",
    "inventory-value": _RESTORE,
    "object-extra": "move it out of the object",
    "mutable-head": "commit or discard the changes with ocfl-java; until then, Pressmark does not change the object",
    "path-conflict": _RESTORE,
    "path-malformed": _RESTORE,
    "path-repeated": _RESTORE,
    "path-unknown": _MAKER,
    "sidecar-malformed": _REPAIR,
    "sidecar-mismatch": f"{_REPAIR}; or {_RESTORE}",
    "sidecar-missing": _REPAIR,
    "unversioned": f"{_NONE}; copies of single versions lack these files",
    "version-absent": _RESTORE,
    "version-directory": "move it out of the version",
    "version-extra": _RESTORE,
    "version-file": "move it out of the version",
    "version-name": _MAKER,
    "version-unfinished": _REPAIR,
}
