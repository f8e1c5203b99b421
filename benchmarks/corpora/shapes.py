"""The shapes of identifiers: each function draws one identifier, with the shares of real collections."""

from __future__ import annotations

import string
import unicodedata

from benchmarks.corpora.draw import Draw

__all__ = ["ark", "disk_path", "doi", "druid", "fedora_pid", "handle", "hathitrust", "urn_nbn", "uuid", "vitro"]

BETANUMERIC = "0123456789bcdfghjkmnpqrstvwxz"  # the alphabet of noid, which mints most ARKs
HEX = "0123456789abcdef"
LOWER = string.ascii_lowercase

_LIBRARIES = ("mdp",) * 36 + ("uc1",) * 20 + ("nyp",) * 10 + ("uc2",) * 9 + (
    "aeu", "chi", "coo", "dul1", "hvd", "ien", "iau", "inu", "loc", "miua", "miun", "msu", "njp", "nnc1", "nnc2", "osu",
    "psia", "pst", "pur1", "uiuc", "uiug", "umn", "usu", "uva", "wu",
)  # fmt: skip


def hathitrust(draw: Draw) -> str:
    """Draw a HathiTrust volume: of 177,214 real ones 60 % barcodes, 14 % ARKs, 13 % letters with digits, 6 % ``$b``."""
    kind = draw.random()
    library = draw.pick(_LIBRARIES)
    if kind < 0.603:
        return f"{library}.3{draw.digits(13)}"
    if kind < 0.748:
        return f"{draw.pick(('uc2', 'aeu', 'loc', 'dul1'))}.ark:/13960/t{draw.text(BETANUMERIC, 8)}"
    if kind < 0.876:
        return draw.pick(("uva.x", "inu.b9", "umn.p", "hvd.hw")) + draw.digits(draw.between(6, 9))
    if kind < 0.937:
        return f"uc1.$b{draw.digits(draw.between(5, 6))}"
    if kind < 0.999:
        return f"{library}.{draw.digits(draw.between(6, 11))}"
    return f"miun.a{draw.text(LOWER, 2)}{draw.digits(4)}.{draw.digits(4)}.001"


def ark(draw: Draw) -> str:
    """Draw an ARK: Internet Archive, Bibliothèque nationale, others; one in ten in the new form without the slash."""
    kind = draw.random()
    if kind < 0.4:
        return f"ark:/13960/t{draw.text(BETANUMERIC, 8)}"
    if kind < 0.7:
        return f"ark:/12148/{draw.pick(('bpt6k', 'btv1b', 'cb'))}{draw.digits(8)}{draw.pick(BETANUMERIC)}"
    if kind < 0.9:
        return f"ark:/{draw.digits(5)}/{draw.text(BETANUMERIC, draw.between(6, 14))}"
    return f"ark:{draw.digits(5)}/{draw.text(BETANUMERIC, draw.between(6, 14))}"


def doi(draw: Draw) -> str:
    """Draw a DOI of 13 to 42 characters, 40 % in mixed case (DOIs ignore case), one in 200 with a SICI."""
    prefix = f"10.{draw.digits(4)}"
    year = draw.between(1970, 2025)
    kind = draw.random()
    if kind < 0.005:
        start = draw.digits(3)
        return (
            f"{prefix}/(SICI){draw.digits(4)}-{draw.digits(4)}({year}{draw.digits(2)}){draw.digits(2)}:{draw.digits(1)}"
            f"<{start}::AID-{draw.text(string.ascii_uppercase, 4)}{draw.digits(1)}>3.0.CO;2-{draw.pick('ABCXYZ')}"
        )
    if kind < 0.35:
        name = f"j.{draw.text(LOWER, draw.between(3, 9))}.{year}.{draw.digits(2)}.{draw.digits(3)}"
    elif kind < 0.55:
        name = f"s{draw.digits(5)}-{draw.digits(3)}-{draw.digits(4)}-{draw.pick(BETANUMERIC)}"
    elif kind < 0.75:
        name = f"{draw.text(LOWER, draw.between(2, 12))}.{draw.digits(draw.between(3, 8))}"
    elif kind < 0.91:
        name = draw.text(string.digits + LOWER, draw.between(6, 18))
    elif kind < 0.95:
        name = f"s{draw.digits(4)}-{draw.digits(4)}({draw.digits(2)}){draw.digits(5)}-{draw.digits(1)}"
    elif kind < 0.996:
        name = f"{draw.text(LOWER, 4)}/{draw.digits(4)}_{draw.digits(4)}/{draw.digits(5)}"
    else:
        name = f"{draw.text(LOWER, 6)}:{draw.digits(6)}"
    return f"{prefix}/{name.upper() if draw.chance(0.2) else name.title() if draw.chance(0.25) else name}"


def fedora_pid(draw: Draw) -> str:
    """Draw a Fedora PID, half of them as the OCFL identifiers that Fedora gives them (``info:fedora/`` before)."""
    kind = draw.random()
    if kind < 0.4:
        pid = f"{draw.pick(('yul', 'islandora', 'demo', 'umd', 'archives.org'))}:{draw.digits(draw.between(1, 7))}"
    elif kind < 0.6:
        pid = f"nlm:nlmuid-{draw.digits(9)}-bk"
    elif kind < 0.8:
        pid = f"{draw.pick(('changeme', 'ora', 'lib'))}:{uuid4(draw)}"
    else:
        pid = druid(draw)
    return f"info:fedora/{pid}" if draw.chance(0.5) else pid


def druid(draw: Draw) -> str:
    """Draw one of Stanford's druids, the model of OCFL 0010."""
    letters = "bcdfghjkmnpqrstvwxyz"
    text, digits = draw.text, draw.digits
    return f"druid:{text(letters, 2)}{digits(3)}{text(letters, 2)}{digits(4)}"


def urn_nbn(draw: Draw) -> str:
    """Draw a URN:NBN in the patterns of the German, Finnish and Swedish national libraries."""
    kind = draw.random()
    if kind < 0.4:
        return f"urn:nbn:de:gbv:{draw.digits(1)}:1-{draw.digits(10)}-{draw.digits(9)}-{draw.digits(1)}"
    if kind < 0.7:
        return f"urn:nbn:de:{draw.digits(4)}-{draw.text(LOWER, 3)}{draw.digits(7)}"
    if kind < 0.9:
        return f"urn:nbn:fi:{draw.pick(('tkk', 'jyu', 'hulib'))}-{draw.digits(draw.between(6, 12))}"
    return f"URN:NBN:se:uu:diva-{draw.digits(6)}"


def handle(draw: Draw) -> str:
    """Draw a handle of HathiTrust, or a short one of DSpace."""
    if draw.chance(0.3):
        return f"2027/{hathitrust(draw)}"
    return f"{draw.pick(('1721.1', '2142', '10023', '1813', '20.500.12111'))}/{draw.digits(draw.between(3, 6))}"


def uuid4(draw: Draw) -> str:
    """Draw the bare form of a random UUID."""
    h = draw.text(HEX, 30)
    return f"{h[:8]}-{h[8:12]}-4{h[12:15]}-{draw.pick('89ab')}{h[15:18]}-{h[18:30]}"


def uuid(draw: Draw) -> str:
    """Draw a UUID: bare, as a URN, or as Fedora writes it."""
    return draw.pick(("", "", "urn:uuid:", "info:fedora/")) + uuid4(draw)


def vitro(draw: Draw) -> str:
    """Draw the URI of a file in a VIVO installation; 10 % are outside its namespace."""
    if draw.chance(0.9):
        return f"http://vivo.mydomain.edu/file/n{draw.digits(draw.between(2, 6))}"
    return f"http://vivo.mydomain.edu/individual/{draw.text(LOWER, draw.between(4, 12))}{draw.digits(4)}"


# --- disk paths ---------------------------------------------------------------------------------------------------

_WORDS = (
    "annual", "archive", "backup", "budget", "chapter", "copy", "data", "draft", "final", "image", "interview",
    "letter", "list", "meeting", "minutes", "notes", "old", "paper", "photo", "project", "report", "scan", "slides",
    "talk", "text",
)  # fmt: skip
_FOREIGN = ("Zürich", "año", "été", "Ærø", "naïve", "Ångström", "日本語", "Übersicht", "São", "řeka", "смета")
_EXTENSIONS = ("doc", "docx", "gif", "htm", "jpg", "jpg", "mp3", "pdf", "pdf", "tif", "txt", "xls", "xml", "zip")


def _name(draw: Draw, foreign_share: float) -> str:
    separator = " " if draw.chance(0.3) else draw.pick(("_", "-", ""))
    words = [draw.pick(_WORDS) for _ in range(draw.between(1, 3))]
    if draw.chance(foreign_share):
        # Half of such disks come from systems that decompose accents.
        words.append(unicodedata.normalize(draw.pick(("NFC", "NFD")), draw.pick(_FOREIGN)))
    if draw.chance(0.6):
        words.append(draw.digits(draw.between(1, 4)))
    return separator.join(words)


def disk_path(draw: Draw) -> str:
    """Draw a path of a private disk: 30 % of names with spaces, 4 % not ASCII, some not allowed on other systems."""
    folders = [_name(draw, 0.02) for _ in range(min(draw.between(1, 8), draw.between(1, 12)))]
    name = _name(draw, 0.04)
    odd = draw.random()
    if odd < 0.0005:
        name = " ".join([name] * 30)[:210]
    elif odd < 0.0015:
        name += draw.pick(("\x07", "\x0b", "\uf022", "\uf028"))
    name += f".{draw.pick(_EXTENSIONS)}"
    if odd > 0.995:
        name += draw.pick((" ", "."))
    return "/".join([*folders, name])
