"""Lists of checksums in formats that are not read: what they are, and what to do."""

from __future__ import annotations

import re

__all__ = ["foreign_list"]

_HEX = re.compile(rb"[0-9A-Fa-f]+")
_WITHOUT_PADDING = 10  # more other letters than a mistyped digest has
_BASE64 = "digest in base64; write the list with hexadecimal digests"
_ORDER = "digest after name; write digest, two spaces and name"

_FOREIGN = tuple(
    (re.compile(pattern, re.DOTALL), what)
    for pattern, what in (
        (
            rb"-----BEGIN PGP SIGNED MESSAGE-----.*",
            "list signed with PGP; verify the signature and extract the list (gpg --output LIST --decrypt FILE)",
        ),
        (rb"-----BEGIN PGP .*", "PGP signature, not a list; specify the list that it signs"),
        (rb"%%%% (?:HASHDEEP|size,).*", "hashdeep list; verify it with hashdeep, or write digest, two spaces and name"),
        (rb"(?:/set |\. +type=).*", "mtree specification; verify it with mtree"),
        (
            rb'(?:#TYPE |"?Algorithm"?[\s,:]).*',
            "output of Get-FileHash; write digest, two spaces and name",
        ),
        (rb"[A-Z0-9]+ hash of .*:", "output of certutil; write digest, two spaces and name"),
        (rb"\[.*", "JSON array; write one object per line (jq -c '.[]')"),
        (rb"\s*<[?!A-Za-z].*", "XML or HTML; export digest, two spaces and name"),
        (rb"PK(?:\x03\x04|\x05\x06).*", "zip archive; unpack it, and specify the list in it"),
        (rb"BZh[1-9]1AY&SY.*", "compressed by bzip2; decompress it (bzip2 -dc)"),
        (rb"\xfd7zXZ\0.*", "compressed by xz; decompress it (xz -dc)"),
        (rb"\x28\xb5\x2f\xfd.*", "compressed by zstd; decompress it (zstd -dc)"),
        (rb"\\?[0-9A-Fa-f]{8,} .*\0.*", "lines end with NUL; write the list without --zero"),
        (
            rb"(?:[\t -~]\0){4}.*|(?:\0[\t -~]){4}.*",
            "UTF-16 without byte-order mark; convert it to UTF-8 (iconv -f UTF-16LE -t UTF-8)",
        ),
        (rb".*\0.*", "binary file, not a list; write digest, two spaces and name"),
        (rb"[0-9]{1,10} [0-9]+ .+", "list of cksum (CRC); write the digests of another algorithm"),
        (rb".*[^=\s][ \t]+[0-9A-Fa-f]{8}", "SFV list (CRC-32); write the digests of another algorithm"),
        (rb".*[^=\s][ \t:,;\"]+[0-9A-Fa-f]{32,128}\"?", _ORDER),
    )
)
_FIELD = re.compile(
    rb"[ \t]*\\?(?:(?:md5|sha1|sha224|sha256|sha384|sha512)-)?([A-Za-z0-9+/]{22,88}={0,2})[ \t].+"
    rb"|\\?[A-Za-z0-9][A-Za-z0-9/_-]* ?\(.+\) ?= ?([A-Za-z0-9+/]{22,88}={0,2})",
    re.DOTALL,
)
# Bytes of the digests of all algorithms, except the shortest.
_SIZES = frozenset((16, 20, 28, 32, 48, 64))


def foreign_list(line: bytes) -> str | None:
    """Return what a list is that contains ``line``, and what to do; :data:`None` if its format is unknown.

    :param line: a line that is not in a format of :mod:`pressmark.fixity.manifests`, without its line feed
    """
    for pattern, what in _FOREIGN:
        if pattern.fullmatch(line):
            return what
    return _BASE64 if _is_base64(line) else None


def _is_base64(line: bytes) -> bool:
    found = _FIELD.fullmatch(line)
    if found is None:
        return False
    text = found[1] or found[2]
    digits = text.rstrip(b"=")
    if len(text) % 4 or len(digits) * 3 // 4 not in _SIZES:
        return False
    return digits != text or len(_HEX.sub(b"", digits)) >= _WITHOUT_PADDING
