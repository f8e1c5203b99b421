"""Every rule of the BagIt draft, numbered, with bags that break exactly that rule and bags that must pass.

The specification is the BagIt File Packaging Format 1.0 (draft-kunze-bagit-17). A rule is a sentence of it with MUST,
MUST NOT, REQUIRED, SHALL, SHOULD, SHOULD NOT or RECOMMENDED, or a MAY that concerns readers. The paraphrases are ours.
``ci/docs`` writes docs/reference/bagit-rules.md from this table; ``test_rules.py`` checks each bag.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .bags import PAYLOAD, Sketch, digest, line

__all__ = ["RULES", "Case", "Rule"]


@dataclass(frozen=True)
class Case:
    """A bag, and the result of its full validation.

    :ivar words: the change of a valid bag
    :ivar kinds: kinds of all problems in its report, including warnings; empty for a bag without problems
    :ivar sketch: the arguments of :class:`~bagit.bags.Sketch`
    :ivar after: changes the directory after it is written
    """

    words: str
    kinds: frozenset[str]
    sketch: dict[str, Any]
    after: Callable[[Path], object] | None = None

    def write(self, folder: Path) -> Path:
        """Write the bag into ``folder``, which must not exist, and return it."""
        Sketch(**self.sketch).write(folder)
        if self.after is not None:
            self.after(folder)
        return folder


@dataclass(frozen=True)
class Rule:
    """One rule.

    :ivar section: section of the draft
    :ivar keyword: its keyword, such as ``MUST``
    :ivar words: the paraphrase
    :ivar cases: bags that violate it, and bags that it allows
    :ivar how: how it is implemented, if no bag can show it
    """

    section: str
    keyword: str
    words: str
    cases: tuple[Case, ...] = ()
    how: str = ""


def bag(words: str, *kinds: str, after: Callable[[Path], object] | None = None, **sketch: Any) -> Case:
    return Case(words, frozenset(kinds), sketch, after)


def manifest(*paths: bytes, algorithm: str = "sha512") -> bytes:
    """Return lines for files of the payload."""
    return b"".join(line(PAYLOAD[path], path, algorithm) for path in paths)


A, C = PAYLOAD
ALPHA = PAYLOAD[A]
HEX = digest(ALPHA, "sha512").encode()
BOTH = manifest(A, C)
MANIFEST = "manifest-sha512.txt"
TAG_MANIFEST = "tagmanifest-sha512.txt"
INFO = b"Source-Organization: Example Library\n"
FETCH = b"https://example.org/a 6 data/a.txt\n"


def remove(name: str) -> Callable[[Path], object]:
    def act(folder: Path) -> None:
        path = folder / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()

    return act


def write(name: bytes, data: bytes) -> Callable[[Path], object]:
    def act(folder: Path) -> None:
        path = os.path.join(os.fsencode(folder), name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)

    return act


def link(name: str, target: str) -> Callable[[Path], object]:
    def act(folder: Path) -> None:
        path = folder / name
        path.unlink(missing_ok=True)
        path.symlink_to(target)

    return act


def tag_lines(*, without: bytes = b"", more: bytes = b"", algorithm: str = "sha512", **sketch: Any) -> bytes:
    """Return a tag manifest for a sketch, without a file or with additional lines."""
    tags = Sketch(**sketch).tags()
    return b"".join(line(data, path, algorithm) for path, data in tags.items() if path != without) + more


def two_algorithms(**lines: bytes) -> dict[str, Any]:
    """Return a sketch with two payload manifests, one of which may have other lines."""
    names = {"sha512": MANIFEST, "sha256": "manifest-sha256.txt"}
    return {
        "algorithms": ["sha512", "sha256"],
        "tag_algorithms": ["sha512", "sha256"],
        "manifests": {names[name]: text for name, text in lines.items()},
    }


def moved(old: bytes, new: bytes) -> dict[str, Any]:
    """Return a sketch whose first payload file has another name."""
    return {"payload": {new: ALPHA, C: PAYLOAD[C]}, "info": INFO, "manifests": {MANIFEST: BOTH.replace(old, new)}}


RULES = (
    # --- 2
    Rule(
        "2",
        "MUST",
        "A bag consists of a base directory with tag files, a payload directory, and optional tag directories.",
        (
            bag(
                "an empty directory instead of a bag",
                "declaration-missing",
                "payload-directory-missing",
                "payload-manifest-missing",
                after=lambda folder: [remove(name)(folder) for name in os.listdir(folder)],
            ),
            bag("tag directories", tag_files={b"tags/deep/notes": b"\x00\xff"}),
        ),
    ),
    Rule(
        "2",
        "MAY",
        "Tag files and tag directories can have any name that is not reserved; the base directory can have any name.",
        (
            bag(
                "a tag directory named data-2, a tag file without extension",
                tag_files={b"data-2/x": b"", b"README": b""},
            ),
            bag(
                "tag files in a tag directory, with the names of those in the base directory",
                tag_files={b"old/bagit.txt": b"?", b"old/manifest-sha512.txt": b"?", b"old/fetch.txt": b"?"},
            ),
        ),
    ),
    # --- 2.1.1
    Rule(
        "2.1.1",
        "MUST",
        "bagit.txt has exactly two lines, BagIt-Version: M.N and Tag-File-Character-Encoding: ENCODING, in this order.",
        (
            bag(
                "a third line",
                "declaration-malformed",
                declaration=b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\nMore: yes\n",
            ),
            bag("a single line", "declaration-malformed", declaration=b"BagIt-Version: 1.0\n"),
            bag(
                "lines in the wrong order",
                "declaration-malformed",
                declaration=b"Tag-File-Character-Encoding: UTF-8\nBagIt-Version: 1.0\n",
            ),
            bag("an empty file", "declaration-malformed", declaration=b""),
            bag(
                "a version that is not M.N",
                "declaration-malformed",
                declaration=b"BagIt-Version: one\nTag-File-Character-Encoding: UTF-8\n",
            ),
            bag(
                "an unknown version",
                "version-unknown",
                declaration=b"BagIt-Version: 3.7\nTag-File-Character-Encoding: UTF-8\n",
            ),
            bag(
                "the label as spelled in section 4",
                "declaration-label",
                declaration=b"BagIt-version: 1.0\nTag-File-Character-Encoding: UTF-8\n",
            ),
            bag(
                "lines that end with CR LF", declaration=b"BagIt-Version: 1.0\r\nTag-File-Character-Encoding: UTF-8\r\n"
            ),
            bag("version 0.97", version="0.97"),
            bag("version 0.93", version="0.93"),
        ),
    ),
    Rule(
        "2.1.1",
        "SHOULD",
        "The encoding is UTF-8.",
        (bag("ISO-8859-1", "encoding-not-utf8", encoding="ISO-8859-1"),),
    ),
    Rule(
        "2.1.1",
        "MAY",
        "The encoding can be any other registered encoding.",
        (
            bag("UTF-16 with a byte-order mark", "encoding-not-utf8", encoding="UTF-16"),
            bag(
                "Shift_JIS, with a file name in it",
                "encoding-not-utf8",
                encoding="Shift_JIS",
                payload={"data/日本.txt".encode(): ALPHA, C: PAYLOAD[C]},
            ),
            bag(
                "an unknown encoding",
                "encoding-unknown",
                declaration=b"BagIt-Version: 1.0\nTag-File-Character-Encoding: nonsense\n",
            ),
            bag(
                "a Python codec that is not a character set",
                "encoding-unknown",
                declaration=b"BagIt-Version: 1.0\nTag-File-Character-Encoding: rot13\n",
            ),
        ),
    ),
    Rule(
        "2.1.1",
        "MUST",
        "bagit.txt itself is encoded in UTF-8.",
        (
            bag(
                "UTF-16",
                "declaration-malformed",
                "line-unterminated",
                declaration="BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n".encode("utf-16-le"),
            ),
        ),
    ),
    Rule(
        "2.1.1",
        "MUST NOT",
        "bagit.txt has a byte-order mark.",
        (
            bag(
                "a byte-order mark",
                "bom",
                declaration=b"\xef\xbb\xbfBagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n",
            ),
        ),
    ),
    Rule(
        "2.1",
        "REQUIRED",
        "bagit.txt exists.",
        (bag("no bagit.txt", "declaration-missing", "file-missing", after=remove("bagit.txt")),),
    ),
    # --- 2.1.2
    Rule(
        "2.1.2",
        "MUST",
        "The base directory contains a directory named data.",
        (
            bag("no data directory", "payload-directory-missing", payload={}, info=None, after=remove("data")),
            bag(
                "a file named data",
                "payload-directory-missing",
                payload={},
                info=None,
                tag_manifests={TAG_MANIFEST: tag_lines(payload={}, info=None)},
                after=lambda folder: (remove("data")(folder), write(b"data", b"")(folder)),
            ),
        ),
    ),
    Rule(
        "2.1.2",
        "MAY",
        "Payload files can be in any hierarchy of directories.",
        (
            bag("a hundred levels", payload={b"data/" + b"d/" * 100 + b"f": b""}, info=None),
            bag("an empty payload", payload={}, info=None),
            bag("empty directories", after=lambda folder: (folder / "data" / "empty").mkdir()),
        ),
    ),
    # --- 2.1.3
    Rule(
        "2.1.3",
        "MUST",
        "There is at least one payload manifest.",
        (bag("no payload manifest", "payload-manifest-missing", algorithms=[], tag_algorithms=[]),),
    ),
    Rule(
        "2.1.3",
        "MAY",
        "There can be several payload manifests.",
        (bag("two payload manifests", **two_algorithms()),),
    ),
    Rule(
        "2.1.3",
        "MUST",
        "Every payload manifest lists every payload file exactly once.",
        (
            bag("a file in no manifest", "file-unlisted", unlisted={C}),
            bag(
                "a hidden operating-system file",
                "file-unlisted",
                "oxum-mismatch",
                after=write(b"data/.DS_Store", b"x"),
            ),
            bag(
                "a file in one of two manifests",
                "file-not-everywhere",
                **two_algorithms(sha256=manifest(A, algorithm="sha256")),
            ),
            bag("a repeated line", "path-duplicate", manifests={MANIFEST: BOTH + manifest(A)}),
            bag(
                "a file listed twice with different checksums",
                "path-duplicate",
                manifests={MANIFEST: BOTH + b"0" * 128 + b"  data/a.txt\n"},
            ),
            bag(
                "a file listed twice, in different spellings",
                "path-duplicate",
                "path-not-canonical",
                manifests={MANIFEST: BOTH + HEX + b"  data/./a.txt\n"},
            ),
        ),
    ),
    Rule(
        "2.1.3",
        "MUST",
        "A payload manifest is named manifest-ALGORITHM.txt, with the algorithm in the form defined in section 2.4.",
        (
            bag(
                "the algorithm in upper case", "algorithm-name", algorithms=[], manifests={"manifest-SHA512.txt": BOTH}
            ),
            bag(
                "the algorithm with a hyphen", "algorithm-name", algorithms=[], manifests={"manifest-sha-512.txt": BOTH}
            ),
        ),
    ),
    Rule(
        "2.1.3",
        "MUST",
        "Each line of a payload manifest has a checksum and a path relative to the base directory.",
        (
            bag("a blank line", "line-blank", manifests={MANIFEST: BOTH + b"\n"}),
            bag("a line of spaces", "line-blank", manifests={MANIFEST: BOTH + b"  \n"}),
            bag("no path", "line-malformed", manifests={MANIFEST: BOTH + HEX + b"\n"}),
            bag(
                "the path before the checksum",
                "line-malformed",
                manifests={MANIFEST: BOTH + b"data/x.txt  " + HEX + b"\n"},
            ),
            bag("a comment", "path-outside-payload", manifests={MANIFEST: b"# made by hand\n" + BOTH}),
            bag(
                "a checksum that is too short",
                "checksum-malformed",
                manifests={MANIFEST: HEX[:-1] + b"  data/a.txt\n" + manifest(C)},
            ),
            bag(
                "a file name of spaces only",
                manifests={MANIFEST: BOTH + line(b"", b"data/x/  ")},
                payload={**PAYLOAD, b"data/x/  ": b""},
                info=None,
            ),
        ),
    ),
    Rule(
        "2.1.3",
        "MAY",
        "Checksums can be in upper or lower case.",
        (bag("upper case", manifests={MANIFEST: BOTH.replace(HEX, HEX.upper())}),),
    ),
    Rule(
        "2.1.3",
        "MUST",
        "The segments of a path are separated by a slash.",
        (
            bag(
                "backslashes",
                "path-backslashes",
                manifests={MANIFEST: manifest(A) + line(PAYLOAD[C], b"data\\b\\c.txt")},
            ),
        ),
    ),
    Rule(
        "2.1.3",
        "MUST",
        "The checksum and the path are separated by one or more spaces or tabs.",
        (
            bag("one space", manifests={MANIFEST: BOTH.replace(b"  ", b" ")}),
            bag("tabs", manifests={MANIFEST: BOTH.replace(b"  ", b"\t \t")}),
            bag(
                "no separator",
                "line-malformed",
                "file-unlisted",
                manifests={MANIFEST: HEX + b"data/a.txt\n" + manifest(C)},
            ),
            bag(
                "a no-break space",
                "line-malformed",
                "file-unlisted",
                manifests={MANIFEST: HEX + b"\xc2\xa0data/a.txt\n" + manifest(C)},
            ),
            bag("names with leading and trailing spaces", **moved(A, b"data/ a  b ")),
        ),
    ),
    Rule(
        "2.1.3",
        "MUST NOT",
        "A payload manifest lists a file outside the payload directory.",
        (
            bag("bagit.txt", "path-outside-payload", manifests={MANIFEST: BOTH + HEX + b"  bagit.txt\n"}),
            bag(
                "a directory whose name begins with data",
                "path-outside-payload",
                manifests={MANIFEST: BOTH + HEX + b"  data2/x\n"},
            ),
        ),
    ),
    Rule(
        "2.1.3",
        "MUST",
        "LF, CR and percent signs in a path are percent-encoded; no other characters are.",
        (
            bag(
                "LF, CR and a percent sign",
                **moved(A, b"data/x") | {"payload": {b"data/\n\r%": ALPHA, C: PAYLOAD[C]}, "manifests": {}},
            ),
            bag(
                "lower-case hex digits",
                payload={b"data/\n\r%": ALPHA},
                info=None,
                manifests={MANIFEST: HEX + b"  data/%0a%0d%25\n"},
            ),
            bag(
                "a percent sign that is not encoded",
                "percent-raw",
                payload={b"data/100%": ALPHA},
                info=None,
                manifests={MANIFEST: HEX + b"  data/100%\n"},
            ),
            bag(
                "an unencoded name that looks percent-encoded",
                "percent-raw",
                payload={b"data/a%25": ALPHA},
                info=None,
                manifests={MANIFEST: HEX + b"  data/a%25\n"},
            ),
            bag(
                "an encoded space",
                "file-missing",
                "file-unlisted",
                "percent-raw",
                payload={b"data/a b": ALPHA},
                info=None,
                manifests={MANIFEST: HEX + b"  data/a%20b\n"},
            ),
            bag(
                "a name with CR, before 1.0",
                version="0.97",
                payload={b"data/a\r": ALPHA},
                info=None,
                manifests={MANIFEST: HEX + b"  data/a%0D\n"},
            ),
        ),
    ),
    Rule(
        "2.1.3",
        "MUST NOT",
        "A manifest lists a directory.",
        (
            bag("a directory in the payload", "path-directory", manifests={MANIFEST: BOTH + HEX + b"  data/b\n"}),
            bag(
                "a directory with a trailing slash", "path-directory", manifests={MANIFEST: BOTH + HEX + b"  data/b/\n"}
            ),
        ),
    ),
    # --- 2.2.1
    Rule(
        "2.2.1",
        "MAY",
        "Tag manifests are optional; there can be several.",
        (
            bag("no tag manifest", tag_algorithms=[]),
            bag("two tag manifests", **two_algorithms()),
        ),
    ),
    Rule(
        "2.2.1",
        "SHOULD",
        "All tag manifests list the same tag files.",
        (
            bag(
                "a tag manifest that lists fewer files",
                "tag-manifests-differ",
                **{
                    **two_algorithms(),
                    "tag_manifests": {
                        "tagmanifest-sha256.txt": tag_lines(
                            without=b"bag-info.txt", algorithm="sha256", **two_algorithms()
                        )
                    },
                },
            ),
        ),
    ),
    Rule(
        "2.2.1",
        "MUST",
        "Each tag manifest lists every payload manifest.",
        (
            bag(
                "a tag manifest without a payload manifest",
                "tag-manifest-omission",
                tag_manifests={TAG_MANIFEST: tag_lines(without=b"manifest-sha512.txt")},
            ),
        ),
    ),
    Rule(
        "2.2.1",
        "MUST NOT",
        "A tag manifest lists a tag manifest.",
        (
            bag(
                "a tag manifest that lists itself",
                "tag-manifest-itself",
                tag_manifests={TAG_MANIFEST: tag_lines(more=HEX + b"  tagmanifest-sha512.txt\n")},
            ),
        ),
    ),
    Rule(
        "2.2.1",
        "SHOULD",
        "Each tag manifest lists all other tag files.",
        (
            bag("bag-info.txt in no tag manifest", "tag-file-unlisted", unlisted={b"bag-info.txt"}),
            bag("an operating-system file", "tag-file-unlisted", after=write(b"Thumbs.db", b"x")),
        ),
    ),
    Rule(
        "2.2.1",
        "MUST",
        "A tag manifest is named tagmanifest-ALGORITHM.txt, with the algorithm in the form defined in section 2.4.",
        (
            bag(
                "the algorithm in upper case",
                "algorithm-name",
                tag_algorithms=[],
                tag_manifests={"tagmanifest-SHA512.txt": tag_lines()},
            ),
        ),
    ),
    Rule(
        "2.2.1",
        "SHOULD",
        "Tag manifests use the same algorithms as payload manifests.",
        (bag("a different algorithm", "tag-manifest-algorithms", tag_algorithms=["sha256"]),),
    ),
    Rule(
        "2.2.1",
        "MUST NOT",
        "A tag manifest lists a payload file.",
        (
            bag(
                "a tag manifest with a payload file",
                "tag-manifest-payload",
                tag_manifests={TAG_MANIFEST: tag_lines(more=manifest(A))},
            ),
        ),
    ),
    # --- 2.2.2
    Rule(
        "2.2.2",
        "MAY",
        "bag-info.txt and its elements are optional, and elements can be repeated.",
        (
            bag("no bag-info.txt", info=None),
            bag("repeated elements", info=b"Contact-Name: A\nContact-Name: B\nX: 1\nX: 1\n"),
        ),
    ),
    Rule(
        "2.2.2",
        "MUST",
        "The order of the elements is preserved.",
        how="`pressmark.bagit.BagInfo` keeps order and bytes: tests/bagit/test_bag_info.py, updating/test_update.py",
    ),
    Rule(
        "2.2.2",
        "MUST",
        "An element is a label, a colon, one space or tab, a value, and a line break.",
        (
            bag("no colon", "info-malformed", info=b"Just some words\n"),
            bag("no label", "info-malformed", info=b": value\n"),
            bag("a blank line", "info-blank-line", info=INFO + b"\n" + b"X: y\n"),
            bag("no space after the colon", "info-whitespace", info=b"Contact-Name:A\n"),
            bag("two spaces after the colon", "info-whitespace", info=b"Contact-Name:  A\n"),
            bag("a tab after the colon", info=b"Contact-Name:\tA\n"),
        ),
    ),
    Rule(
        "2.2.2",
        "MUST NOT",
        "A label contains a colon, LF or CR.",
        how="labels are read up to the first colon; `BagInfo.add` and `BagInfo.set` refuse such labels",
    ),
    Rule(
        "2.2.2",
        "MUST NOT",
        "A label begins or ends with white space. White space inside a label is allowed.",
        (
            bag("a space before the colon", "info-whitespace", info=b"Contact-Name : A\n"),
            bag("spaces inside a label", info=b"Name of contact: A\n"),
        ),
    ),
    Rule(
        "2.2.2",
        "RECOMMENDED",
        "Lines have at most 79 characters.",
        (
            bag("80 characters", "info-long-line", info=b"X: " + b"y" * 77 + b"\n"),
            bag("79 characters", info=b"X: " + b"y" * 76 + b"\n"),
        ),
    ),
    Rule(
        "2.2.2",
        "MAY",
        "A value can continue on lines that begin with a space or tab.",
        (
            bag("a folded value", info=b"External-Description: some\n  words and\n\tmore\n"),
            bag("a folded line before any element", "info-malformed", info=b"  words\nX: y\n"),
        ),
    ),
    Rule(
        "2.2.2",
        "MUST",
        "Before 1.0, any number of spaces and tabs around the colon is accepted.",
        (bag("version 0.97", version="0.97", info=b"Contact-Name \t:   A\nX:y\n"),),
    ),
    Rule(
        "2.2.2",
        "MAY",
        "The reserved elements are optional; their labels are not case-sensitive.",
        (
            bag("PAYLOAD-oxum", "oxum-mismatch", info=b"PAYLOAD-oxum: 1.1\n"),
            bag("elements that are not reserved", info=b"Shelf: 3\nMood: good\n"),
        ),
    ),
    Rule(
        "2.2.2",
        "SHOULD NOT",
        "Bagging-Date is repeated. Its format is YYYY-MM-DD.",
        (
            bag("two elements", "element-repeated", info=b"Bagging-Date: 2020-01-01\nbagging-date: 2020-01-02\n"),
            bag("a different format", "element-malformed", info=b"Bagging-Date: 1 May 2020\n"),
        ),
    ),
    Rule(
        "2.2.2",
        "SHOULD NOT",
        "Bag-Size is repeated.",
        (bag("two elements", "element-repeated", info=b"Bag-Size: 1 MB\nBag-Size: 1 GB\n"),),
    ),
    Rule(
        "2.2.2",
        "MUST",
        "A matching Payload-Oxum does not make a bag valid; all checksums are verified.",
        (bag("two bytes exchanged", "checksum-mismatch", after=write(A, ALPHA[::-1])),),
    ),
    Rule(
        "2.2.2",
        "MUST NOT",
        "Payload-Oxum is repeated.",
        (
            bag("two elements", "oxum-repeated", info=b"Payload-Oxum: 20.2\nPayload-Oxum: 20.2\n"),
            bag("two elements in different case", "oxum-repeated", info=b"Payload-Oxum: 20.2\npayload-oxum: 20.2\n"),
        ),
    ),
    Rule(
        "2.2.2",
        "MUST",
        "Payload-Oxum is the number of bytes, a full stop, and the number of files of the payload.",
        (
            bag("no full stop", "oxum-malformed", info=b"Payload-Oxum: 20\n"),
            bag("non-ASCII digits", "oxum-malformed", info="Payload-Oxum: \uff12\uff10.\uff12\n".encode()),
            bag("a superscript digit", "oxum-malformed", info="Payload-Oxum: 20.²\n".encode()),
            bag("a wrong number of bytes", "oxum-mismatch", info=b"Payload-Oxum: 21.2\n"),
            bag("a wrong number of files", "oxum-mismatch", info=b"Payload-Oxum: 20.3\n"),
        ),
    ),
    Rule(
        "2.2.2",
        "SHOULD",
        "Bag-Group-Identifier is unique among the sender's content.",
        how="not checked; only the sender has this information",
    ),
    Rule(
        "2.2.2",
        "SHOULD",
        "The receiver preserves references to a Bag-Group-Identifier with a globally unique scheme.",
        how="`Bag.info` returns the element unchanged",
    ),
    Rule(
        "2.2.2",
        "SHOULD NOT",
        "Bag-Group-Identifier is repeated.",
        (bag("two elements", "element-repeated", info=b"Bag-Group-Identifier: a\nBag-Group-Identifier: b\n"),),
    ),
    Rule(
        "2.2.2",
        "SHOULD NOT",
        "Bag-Count is repeated. Its format is N of T, where T can be a question mark.",
        (
            bag(
                "two elements",
                "element-repeated",
                info=b"Bag-Group-Identifier: a\nBag-Count: 1 of 2\nBag-Count: 2 of 2\n",
            ),
            bag("a different format", "element-malformed", info=b"Bag-Group-Identifier: a\nBag-Count: first\n"),
            bag("an unknown total", info=b"Bag-Group-Identifier: a\nBag-Count: 3 of ?\n"),
        ),
    ),
    Rule(
        "2.2.2",
        "RECOMMENDED",
        "A bag with a Bag-Count also has a Bag-Group-Identifier.",
        (bag("Bag-Count only", "element-alone", info=b"Bag-Count: 1 of 2\n"),),
    ),
    # --- 2.2.3
    Rule(
        "2.2.3",
        "MAY",
        "A bag can be sent incomplete, with a list of files to fetch.",
        (
            bag("one file not fetched yet", "file-not-fetched", absent={A}, info=None, fetch=FETCH),
            bag("one file fetched", fetch=FETCH),
        ),
    ),
    Rule(
        "2.2.3",
        "MUST",
        "The list of files to fetch is named fetch.txt.",
        how="no other file is used",
    ),
    Rule(
        "2.2.3",
        "MUST",
        "Every file in fetch.txt is in every payload manifest.",
        (
            bag("a file in no manifest", "fetch-unlisted", fetch=b"https://example.org/x 1 data/x\n"),
            bag(
                "a file in one of two manifests",
                "fetch-unlisted",
                "file-not-everywhere",
                **{**two_algorithms(sha256=manifest(C, algorithm="sha256")), "fetch": FETCH},
            ),
            bag("an existing file in all manifests", fetch=FETCH),
        ),
    ),
    Rule(
        "2.2.3",
        "MUST NOT",
        "fetch.txt lists a tag file.",
        (bag("bag-info.txt", "fetch-tag-file", fetch=b"https://example.org/x 1 bag-info.txt\n"),),
    ),
    Rule(
        "2.2.3",
        "MUST",
        "Each line of fetch.txt has a URL, a length or a hyphen, and a path.",
        (
            bag("no length", "line-malformed", fetch=b"https://example.org/a data/a.txt\n"),
            bag("a length that is not a number", "line-malformed", fetch=b"https://example.org/a six data/a.txt\n"),
            bag("a blank line", "line-blank", fetch=FETCH + b"\n"),
            bag("a hyphen", fetch=FETCH.replace(b"6", b"-")),
        ),
    ),
    Rule(
        "2.2.3",
        "MUST",
        "A URL in fetch.txt is an absolute URI.",
        (
            bag("a relative URL", "fetch-url", fetch=b"a.txt 6 data/a.txt\n"),
            bag("a URL that begins with slashes", "fetch-url", fetch=b"//example.org/a 6 data/a.txt\n"),
            bag("a URL without a host", "fetch-url-odd", fetch=b"http:/a 6 data/a.txt\n"),
            bag("a URN", fetch=b"urn:isbn:0451450523 6 data/a.txt\n"),
            bag("an ARK", fetch=b"ark:/13030/xt12t3 6 data/a.txt\n"),
        ),
    ),
    Rule(
        "2.2.3",
        "MUST",
        "The segments of a path in fetch.txt are separated by a slash.",
        (bag("backslashes", "fetch-tag-file", fetch=b"https://example.org/a 6 data\\a.txt\n"),),
    ),
    Rule(
        "2.2.3",
        "MUST",
        "The values of a line of fetch.txt are separated by spaces or tabs, which are percent-encoded in a URL.",
        (
            bag("tabs", fetch=FETCH.replace(b" ", b"\t ")),
            bag(
                "a space in a URL", "line-malformed", "fetch-tag-file", fetch=b"https://example.org/a b 6 data/a.txt\n"
            ),
        ),
    ),
    Rule(
        "2.2.3",
        "MUST",
        "LF, CR and percent signs in a path in fetch.txt are percent-encoded; no other characters are.",
        (
            bag(
                "LF, CR and a percent sign",
                payload={b"data/\n\r%": ALPHA},
                info=None,
                fetch=b"https://example.org/a 6 data/%0A%0D%25\n",
            ),
        ),
    ),
    # --- 2.2.4
    Rule(
        "2.2.4",
        "MUST",
        "The checksums of all tag files in a tag manifest are verified.",
        (
            bag(
                "a changed tag file",
                "checksum-mismatch",
                tag_files={b"notes.txt": b"old"},
                after=write(b"notes.txt", b"new"),
            ),
            bag("a changed bag-info.txt", "checksum-mismatch", after=write(b"bag-info.txt", INFO)),
            bag(
                "a changed payload manifest",
                "checksum-mismatch",
                after=write(b"manifest-sha512.txt", BOTH.replace(b"  ", b" ")),
            ),
        ),
    ),
    Rule(
        "2.2.4",
        "MUST",
        "The content of other tag files is ignored.",
        (
            bag(
                "bytes that are invalid in any encoding",
                tag_files={b"notes.txt": b"\xff\xfe\x00", b"t/info.txt": b"\xef\xbb\xbf:\n"},
            ),
        ),
    ),
    # --- 2.3
    Rule(
        "2.3",
        "MUST",
        "The tag files defined by the specification have the text tag file format.",
        how="the following rules",
    ),
    Rule(
        "2.3",
        "MUST",
        "Lines of the tag files defined by the specification end with LF, CR, or CR LF.",
        (
            bag("CR", info=INFO.replace(b"\n", b"\r"), manifests={MANIFEST: BOTH.replace(b"\n", b"\r")}),
            bag("CR LF", info=INFO.replace(b"\n", b"\r\n"), manifests={MANIFEST: BOTH.replace(b"\n", b"\r\n")}),
            bag(
                "other line breaks that Python recognizes, in a name",
                **moved(A, "data/\x0b\x0c\x1c\x85\u2028".encode()),
            ),
        ),
    ),
    Rule(
        "2.3",
        "RECOMMENDED",
        "The last line of a tag file also ends with a line break.",
        (
            bag("bag-info.txt without a final line break", "line-unterminated", info=INFO.rstrip()),
            bag("a manifest without a final line break", "line-unterminated", manifests={MANIFEST: BOTH.rstrip()}),
        ),
    ),
    Rule(
        "2.3",
        "MUST",
        "The names of text tag files end in .txt.",
        (
            bag(
                "a manifest without .txt",
                "payload-manifest-missing",
                algorithms=[],
                manifests={"manifest-sha512": BOTH},
            ),
        ),
    ),
    Rule(
        "2.3",
        "MUST",
        "Text tag files other than bagit.txt have the encoding declared in bagit.txt.",
        (
            bag("bytes in bag-info.txt that are not UTF-8", "undecodable", info=b"X: \xff\n"),
            bag(
                "bytes in a file name that are not UTF-8, also in the manifest",
                "undecodable",
                **moved(A, b"data/\xe9.txt"),
            ),
        ),
    ),
    Rule(
        "2.3",
        "MAY",
        "A text tag file begins with a byte-order mark only if its encoding requires one.",
        (
            bag(
                "UTF-16LE with a byte-order mark",
                "encoding-not-utf8",
                "bom",
                encoding="UTF-16LE",
                manifests={MANIFEST: b"\xff\xfe" + BOTH.decode().encode("utf-16-le")},
            ),
            bag(
                "UTF-16 without a byte-order mark",
                "encoding-not-utf8",
                "bom-missing",
                encoding="UTF-16",
                info=None,
                manifests={MANIFEST: BOTH.decode().encode("utf-16-le")},
            ),
        ),
    ),
    Rule(
        "2.3",
        "MUST NOT",
        "A tag file in UTF-8 begins with a byte-order mark.",
        (
            bag("bag-info.txt", "bom", info=b"\xef\xbb\xbf" + INFO),
            bag("a manifest", "bom", manifests={MANIFEST: b"\xef\xbb\xbf" + BOTH}),
            bag("fetch.txt", "bom", fetch=b"\xef\xbb\xbf" + FETCH),
        ),
    ),
    Rule(
        "2.3",
        "RECOMMENDED",
        "Text tag files are in UTF-8.",
        (bag("US-ASCII", "encoding-not-utf8", encoding="US-ASCII"),),
    ),
    # --- 2.4
    Rule(
        "2.4",
        "MUST",
        "Checksums have the format defined in section 2.1.3.",
        (bag("Base64", "checksum-malformed", manifests={MANIFEST: b"A+/=" * 22 + b"  data/a.txt\n" + manifest(C)}),),
    ),
    Rule(
        "2.4",
        "SHOULD",
        "The algorithm is in the IANA registry of hash algorithms for named information.",
        (bag("xxh64", "algorithm-unregistered", algorithms=["xxh64"], tag_algorithms=["xxh64"]),),
    ),
    Rule(
        "2.4",
        "MAY",
        "The algorithm can be MD5 or SHA-1.",
        (
            bag("MD5", algorithms=["md5"], tag_algorithms=["md5"]),
            bag("SHA-1", algorithms=["sha1"], tag_algorithms=["sha1"]),
        ),
    ),
    Rule(
        "2.4",
        "MUST",
        "In the name of a manifest, the algorithm has only lower-case letters and digits.",
        (
            bag(
                "sha3_256",
                "algorithm-name",
                algorithms=[],
                tag_algorithms=[],
                manifests={
                    "manifest-sha3_256.txt": b"".join(line(data, path, "sha3_256") for path, data in PAYLOAD.items())
                },
            ),
            bag("sha3256", algorithms=["sha3256"], tag_algorithms=["sha3256"]),
        ),
    ),
    Rule(
        "2.4",
        "MUST",
        "Tools support SHA-256 and SHA-512.",
        (
            bag("SHA-256", algorithms=["sha256"], tag_algorithms=["sha256"]),
            bag("SHA-512"),
        ),
    ),
    Rule(
        "2.4",
        "SHOULD",
        "Tools create new bags with SHA-512 by default.",
        how="the default of `pressmark.bagit.create`: tests/bagit/writing/test_create.py",
    ),
    Rule(
        "2.4",
        "SHOULD",
        "Tools support MD5 and SHA-1.",
        (bag("MD5 and SHA-1", algorithms=["md5", "sha1"], tag_algorithms=["md5", "sha1"]),),
    ),
    # --- 3
    Rule(
        "3",
        "MUST",
        "Every element that section 2.1 requires exists.",
        (
            bag(
                "no payload manifest and no payload directory",
                "payload-manifest-missing",
                "payload-directory-missing",
                algorithms=[],
                tag_algorithms=[],
                payload={},
                info=None,
                after=remove("data"),
            ),
        ),
    ),
    Rule(
        "3",
        "MUST",
        "Every file in a tag manifest exists.",
        (bag("a missing tag file", "file-missing", tag_files={b"t/notes": b""}, absent={b"t/notes"}),),
    ),
    Rule(
        "3",
        "MUST",
        "Every file in a payload manifest exists.",
        (
            bag("a missing file", "file-missing", absent={A}, info=None),
            bag(
                "a missing file that is in fetch.txt",
                "file-not-fetched",
                absent={A},
                info=None,
                fetch=FETCH,
            ),
        ),
    ),
    Rule(
        "3",
        "MUST",
        "Every payload file is in every payload manifest; before 1.0, in at least one.",
        (
            bag(
                "a file in one of two manifests, before 1.0",
                version="0.97",
                **two_algorithms(sha256=manifest(A, algorithm="sha256"), sha512=manifest(C)),
            ),
            bag("a file in no manifest, before 1.0", "file-unlisted", version="0.97", unlisted={C}),
            bag(
                "files in fetch.txt and in one of two manifests, before 1.0",
                version="0.97",
                fetch=FETCH,
                **two_algorithms(sha256=manifest(A, algorithm="sha256"), sha512=manifest(C)),
            ),
        ),
    ),
    Rule(
        "3",
        "MUST",
        "Every element of the bag conforms to BagIt 1.0.",
        how="all other rules in this table",
    ),
    Rule(
        "3",
        "MUST",
        "A bag is valid if it is complete and every checksum in every manifest has been verified.",
        (
            bag(
                "a file with a different checksum in one of two manifests",
                "checksum-mismatch",
                **two_algorithms(sha256=manifest(C, algorithm="sha256") + b"0" * 64 + b"  data/a.txt\n"),
            ),
            bag(
                "a manifest with an unknown algorithm and one with a known algorithm",
                "algorithm-unknown",
                "algorithm-unregistered",
                "tag-manifest-algorithms",
                manifests={"manifest-snefru.txt": b"00  data/a.txt\n00  data/b/c.txt\n"},
            ),
            bag("a file that has grown", "checksum-mismatch", "oxum-mismatch", after=write(A, ALPHA + b"more")),
        ),
    ),
    # --- 5
    Rule(
        "5.1",
        "MUST",
        "Paths in a bag never cause files outside the bag to be read or written.",
        (
            bag("an absolute path", "path-unsafe", manifests={MANIFEST: BOTH + HEX + b"  /etc/passwd\n"}),
            bag("a path with ..", "path-unsafe", manifests={MANIFEST: BOTH + HEX + b"  data/../../x\n"}),
            bag("a path with .. in fetch.txt", "path-unsafe", fetch=b"https://example.org/x 1 data/../../x\n"),
            bag(
                "a path with .. in a tag manifest",
                "path-unsafe",
                tag_manifests={TAG_MANIFEST: tag_lines(more=HEX + b"  ../x\n")},
            ),
            bag(
                "a path with a home directory (~)",
                "path-unsafe",
                tag_manifests={TAG_MANIFEST: tag_lines(more=HEX + b"  ~root/x\n")},
            ),
            bag(
                "a symbolic link that leads outside", "link-outside", info=None, after=link("data/a.txt", "/etc/passwd")
            ),
            bag("a symbolic link to a directory outside", "link-outside", after=link("data/d", "../../..")),
            bag("a broken symbolic link", "link-dangling", info=None, after=link("data/a.txt", "nowhere")),
            bag(
                "a symbolic link to another payload file",
                "link-inside",
                payload={**PAYLOAD, b"data/l": ALPHA},
                info=None,
                after=link("data/l", "a.txt"),
            ),
            bag("a name that begins with ~$", **moved(A, b"data/~$a.docx")),
        ),
    ),
    Rule(
        "5.1",
        "SHOULD",
        "Implementations are tested with special directory characters.",
        how="the previous rule, tests/bagit/test_paths.py and tests/bagit/validation/test_validate.py",
    ),
    Rule(
        "5.1",
        "SHOULD",
        "On Windows, drive letters and device namespaces are also tested.",
        (
            bag("a drive letter", "path-unsafe", manifests={MANIFEST: BOTH + HEX + b"  C:/x\n"}),
            bag("a device namespace", "path-unsafe", manifests={MANIFEST: BOTH + HEX + b"  \\\\?\\C:\\x\n"}),
        ),
    ),
    Rule(
        "5.3",
        "SHOULD",
        "A transfer is stopped when it exceeds the length in fetch.txt.",
        (bag("a file with a different length", "fetch-length", fetch=FETCH.replace(b"6", b"7")),),
        how="tests/bagit/fetch/test_download.py",
    ),
    Rule(
        "5.3",
        "SHOULD NOT",
        "The length in fetch.txt determines the size of buffers or reserved space.",
        how="downloads use a buffer of fixed size: tests/bagit/fetch/test_download.py",
    ),
    Rule(
        "5.4",
        "SHOULD",
        "Organizations that need protection from attacks agree on further measures, such as signatures.",
        how="outside the scope of the specification and of Pressmark",
    ),
    # --- 6
    Rule(
        "6.1.1.3",
        "SHOULD",
        "Creating bags with files whose names differ only in case is discouraged.",
        how="`pressmark.bagit.create` warns: tests/bagit/writing/test_create.py",
    ),
    Rule(
        "6.1.1.3",
        "SHOULD",
        "Creating bags with files whose names differ only in normalization is prevented.",
        how="`pressmark.bagit.create` refuses such files: tests/bagit/writing/test_create.py",
    ),
    Rule(
        "6.1.1.3",
        "SHOULD",
        "Differences in normalization between manifests and the file system are tolerated.",
        (
            bag(
                "decomposed in the manifest, composed on disk",
                "name-normalized",
                payload={"data/\u00e9.txt".encode(): ALPHA},
                info=None,
                manifests={MANIFEST: HEX + "  data/e\u0301.txt\n".encode()},
            ),
            bag(
                "composed in the manifest, decomposed on disk",
                "name-normalized",
                payload={"data/e\u0301.txt".encode(): ALPHA},
                info=None,
                manifests={MANIFEST: HEX + "  data/\u00e9.txt\n".encode()},
            ),
            bag(
                "decomposed in one of two manifests",
                "name-normalized",
                payload={"data/\u00e9.txt".encode(): ALPHA},
                info=None,
                **two_algorithms(sha512=HEX + "  data/e\u0301.txt\n".encode()),
            ),
            bag(
                "decomposed in one of two manifests, with a different checksum",
                "checksum-mismatch",
                "name-normalized",
                payload={"data/\u00e9.txt".encode(): ALPHA},
                info=None,
                **two_algorithms(sha512=HEX[::-1] + "  data/e\u0301.txt\n".encode()),
            ),
            bag(
                "decomposed in one of two manifests, before 1.0",
                "name-normalized",
                version="0.97",
                payload={"data/\u00e9.txt".encode(): ALPHA},
                info=None,
                **two_algorithms(sha512=HEX + "  data/e\u0301.txt\n".encode()),
            ),
            bag(
                "a different form in each manifest and in fetch.txt",
                "name-normalized",
                payload={"data/\u1e69".encode(): ALPHA},
                info=None,
                fetch="https://example.org/a 6 data/s\u0323\u0307\n".encode(),
                **two_algorithms(
                    sha512=HEX + "  data/s\u0323\u0307\n".encode(),
                    sha256=digest(ALPHA, "sha256").encode() + "  data/s\u0307\u0323\n".encode(),
                ),
            ),
        ),
    ),
    Rule(
        "6.1.1.3",
        "SHOULD",
        "Names that differ only in case or normalization cause a warning.",
        (
            bag("names that differ in case", "name-clash", payload={A: ALPHA, b"data/A.TXT": b""}, info=None),
            bag(
                "names that differ in normalization",
                "name-clash",
                info=None,
                payload={"data/\u00e9".encode(): ALPHA, "data/e\u0301".encode(): b""},
            ),
        ),
    ),
    Rule(
        "6.1.2",
        "SHOULD",
        "Separators are translated when bags are exchanged between Windows and Unix.",
        how="paths in tag files have slashes on every system",
    ),
    Rule(
        "6.1.2",
        "SHOULD",
        "Receivers of bags are prepared for file systems of Windows and Unix.",
        how="names are compared as bytes; case and normalization are considered if names collide or are not found",
    ),
    Rule(
        "6.1.3",
        "MUST",
        "If the format of md5sum is accepted, a warning says that the bag fails strict validation.",
        (
            bag("an asterisk", "md5sum-mark", manifests={MANIFEST: BOTH.replace(b"  ", b" *")}),
            bag(
                "a backslash before the checksum",
                "md5sum-mark",
                payload={b"data/a\\b": ALPHA},
                info=None,
                manifests={MANIFEST: b"\\" + HEX + b"  data/a\\\\b\n"},
            ),
        ),
    ),
    Rule(
        "6.1.3",
        "RECOMMENDED",
        "There is an easy way to rewrite such manifests.",
        how="`Bag.update(rewrite=True)`, `pressmark bag update --rewrite`: tests/bagit/writing/test_update.py",
    ),
)
