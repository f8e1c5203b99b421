"""Hypothesis strategies shared by the suite: identifiers, texts, configurations and near-valid paths.

They follow the specifications and do not import the library. They draw the boundaries of every character class of every
layout and the neighbouring characters; lengths are near the limits (100 of 0003, 127 of 0011, 255 of file systems).

    identifiers()           bytes: UTF-8 or not
    texts()                 str: the same with the surrogates of os.fsdecode, and other unpaired surrogates
    configs(layout_name)    valid configurations in camelCase
    paths(layout_name)      bytes: valid or nearly valid paths to map back (default configuration)
"""

import hashlib

from hypothesis import strategies as st

# ------------------------------------------------------------------------------------------------ characters

LETTERS_AND_DIGITS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

# the neighbours of the ranges of letters and digits: / 0 9 :   @ A Z [   ` a z {
BESIDE_LETTERS_AND_DIGITS = "/:@[`{"

SPECIAL_ASCII = (
    '"<\\*=^+>|,?'  # Pairtree 3, first step
    "/:."  # Pairtree 3, second step
    "~"  # the one character that Vitro adds
    "*?:[]\"<>|(){}&'!;#@"  # 0011, second step
    "%$-_"  # 0003: the escape character, a neighbour of it, and the safe ones
)

# both sides of 20 21, 7e 7f (Pairtree, Vitro), of 1f 20 (0007, 0010) and of U+0009-000D (0011)
CONTROLS = "".join(map(chr, range(0x21))) + "\x7e\x7f"

# both sides of U+007F, U+00FF (Vitro), U+07FF, U+FFFF (lengths in UTF-8), and of the surrogates
BESIDE_RANGES = "\x7f\x80\u00fe\u00ff\u0100\u07ff\u0800\ud7ff\ue000\ufffd\ufffe\uffff\U00010000\U0010ffff"

# 0011: each listed white space and its neighbours
WHITE_SPACE_AND_NEIGHBOURS = (
    "\u0084\u0085\u0086\u009f\u00a0\u00a1\u167f\u1680\u1681"
    "\u1fff\u2000\u2001\u2009\u200a\u200b\u200d\u200e\u200f\u2010"
    "\u2027\u2028\u2029\u202a\u202e\u202f\u2030\u205e\u205f\u2060\u2fff\u3000\u3001\ufeff"
)

# 0011: what the Go code strips on the right, U+2010-20A0, and its neighbours
STRIPPED_RIGHT_AND_NEIGHBOURS = "\u200f\u2010\u2013\u2019\u2022\u2026\u2032\u2070\u209f\u20a0\u20a1\u20ac"

# letters and digits that a careless class or case mapping treats as ASCII, and two forms of one character
TREACHEROUS = "\u00e9\u00c9e\u0301\u0130\u0131\u017f\u212a\u00aa\u00b9\u00df\u0660\u0664\uff10\uff21\uff0f\uff0e\u202e"

ASTRAL = "\U0001f350\U0001d7d8\U000e0020"

# ------------------------------------------------------------------------------------------------ pieces of identifiers

WORDS = (
    # dots and slashes
    ".", "..", "...", "/", "//", "/.", "/..", "../", "./", "/../", "~/", "-/", " /",
    # Windows
    "CON", "con", "PRN", "AUX", "aux", "NUL", "nul", "COM1", "com9", "LPT1", "COM\u00b9", "con.txt", "nUl",
    # escapes of all layouts, whole, cut and doubled
    "^20", "^2a", "^2A", "^5e", "^", "^2", "^zz", "%2e", "%2E", "%25", "%", "%2", "%ff",
    "=u", "=u0", "=u00", "=u003", "=u003a", "=u003A", "=u003D", "=u003Du003A", "=u00zz",
    "=uD83D", "=uDF50", "=u002F", "==u0041",
    # real prefixes and delimiters
    "http://", "info:fedora/", "ark:/13030/", "urn:nbn:", "doi:10.", "edu/", "EDU/", "info:", "mdp.", "a~", "b~",
    "http://vivo.mydomain.edu/individual/", "gh875jh5489", "::", "$$", "aa", "aaa",
    # names that stores use
    "extensions", "ocfl_layout.json", "0=ocfl_1.1", "pairtree_root", "pairtree_prefix", "fallback", "fallback/", "obj",
)  # fmt: skip

RUN_LENGTHS = (2, 3, 31, 32, 33, 34, 49, 50, 63, 64, 65, 85, 99, 100, 101, 126, 127, 128, 254, 255, 256, 600)

NOT_UTF8 = (
    b"\x80", b"\xbf",  # lone continuation bytes
    b"\xc0\xaf", b"\xc1\xbf", b"\xe0\x80\xaf", b"\xf0\x80\x80\xaf",  # overlong
    b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xed\xa0\xbd\xed\xbc\x90",  # surrogates, and a pair of them
    b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xf5", b"\xf8\x88\x80\x80\x80", b"\xfe", b"\xff",  # beyond U+10FFFF
    b"\xc3", b"\xe2", b"\xe2\x82", b"\xf0\x9f", b"\xf0\x9f\x8d",  # truncated
    b"\xe2\x82\xe2\x82\xac", b"\xf0\x9f\x8d\xc3\xa9", b"\xc3/", b"\xe2\x82:",  # truncated by a valid sequence
)  # fmt: skip


def characters() -> st.SearchStrategy[str]:
    """One character that can be encoded, mostly from the boundaries."""
    return st.one_of(
        st.sampled_from(LETTERS_AND_DIGITS),
        st.sampled_from(BESIDE_LETTERS_AND_DIGITS + SPECIAL_ASCII),
        st.sampled_from(CONTROLS),
        st.sampled_from(BESIDE_RANGES),
        st.sampled_from(WHITE_SPACE_AND_NEIGHBOURS + STRIPPED_RIGHT_AND_NEIGHBOURS),
        st.sampled_from(TREACHEROUS + ASTRAL),
        st.characters(exclude_categories=("Cs",)),
    )


def runs() -> st.SearchStrategy[str]:
    """One character many times, near the limits of length."""
    return st.builds(lambda character, count: character * count, characters(), st.sampled_from(RUN_LENGTHS))


def pieces() -> st.SearchStrategy[str]:
    return st.one_of(characters(), st.sampled_from(WORDS), st.text(st.sampled_from(LETTERS_AND_DIGITS), max_size=12))


def clean_texts() -> st.SearchStrategy[str]:
    """Text without unpaired surrogates."""
    short = st.lists(pieces(), max_size=12).map("".join)
    long = st.builds(lambda before, run, after: before + run + after, short, runs(), short)
    digits = st.text(st.sampled_from("0123456789abcdef"), min_size=1, max_size=40)
    ascii_only = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7F), max_size=40)
    druid = st.text(st.sampled_from(LETTERS_AND_DIGITS), min_size=11, max_size=11)
    prefixed = st.builds(
        lambda prefix, rest: prefix + rest,
        st.sampled_from((":", "a:", "druid:", "edu/", "http://x/edu/", "EDU/", "info:", "a::")),
        st.one_of(druid, digits, ascii_only, short),
    )
    return st.one_of(short, short, long, digits, ascii_only, druid, prefixed)


def identifiers() -> st.SearchStrategy[bytes]:
    """Identifiers as bytes: mostly UTF-8, sometimes with invalid pieces, sometimes arbitrary bytes."""
    valid = clean_texts().map(lambda text: text.encode("utf-8"))
    invalid = st.sampled_from(NOT_UTF8)
    mixed = st.lists(st.one_of(valid, invalid), min_size=1, max_size=6).map(b"".join)
    return st.one_of(valid, valid, valid, mixed, st.binary(max_size=40))


def texts() -> st.SearchStrategy[str]:
    """Identifiers as text: without surrogates, with those of os.fsdecode, or with others.

    U+DC80 to U+DCFF represent bytes; U+D800, U+DBFF, U+DC00, U+DC7F, U+DD00 and U+DFFF are invalid.
    """
    as_decoded = identifiers().map(lambda identifier: identifier.decode("utf-8", "surrogateescape"))
    surrogates = st.sampled_from("\ud800\udbff\udc00\udc7f\udc80\udcc3\udca9\udcff\udd00\udfff")
    # the two consecutive surrogates are the bytes of e-acute
    with_surrogates = st.lists(st.one_of(pieces(), surrogates, st.just("\udcc3\udca9")), max_size=8).map("".join)
    return st.one_of(clean_texts(), as_decoded, with_surrogates)


# ------------------------------------------------------------------------------------------------ configurations

# OCFL 3.4 and extension 0009: the algorithms, and the hex digits of their digests
HEX_LENGTHS = {
    "md5": 32,
    "sha1": 40,
    "sha256": 64,
    "sha512": 128,
    "blake2b-512": 128,
    "blake2b-160": 40,
    "blake2b-256": 64,
    "blake2b-384": 96,
    "sha512/256": 64,
}

# 0011 requires an algorithm "supported by OCFL"
OCFL_ALGORITHMS = ("md5", "sha1", "sha256", "sha512", "blake2b-512")

DELIMITERS = (
    ":", "/", "::", "//", "edu/", "EDU/", "eDu/", "info:", "$$", "%", "-", "a", "A", "aa", "aba", "1", "0", ".", "..",
    " ", "\x7f", "\u00e9", "\u0130", "\u00c9", "\U0001f350", "\u2026", "http://", "\x00",
)  # fmt: skip

NAMESPACES = (
    "http://vivo.mydomain.edu/individual/", "http://", "h", "info:", "info:fedora/", "urn:", "urn:nbn:", "a", "aa",
    "CON", ".", "/", "\u00e9", "\u0100:", "\u4f8b\u3048/", "a~", "^", "doi:10.",
)  # fmt: skip

PREFIXES = (
    "", "mdp.", "http://n2t.info/ark:/13030/xt2", "a", "aa", "a.c", "^20", "/", "..", "\u00e9", "e\u0301", " ", "\x00",
)  # fmt: skip

# never "/", NUL or line feed (rule A14), and no "$": Go expands it in a replacement
REPLACEMENTS = (
    "_", "", " ", "-", "~", ".", "..", "__", "+-+", ":", "=", "=u0041",
    "\u00e9", "\u2026", "\u3000", "\u00a0", "\t", "a b", "\U0001f350",
)  # fmt: skip

FALLBACK_FOLDERS = (
    "fallback", "f", "x/y", "a/b/c", "~ f:", "...", "..a", "\u00e9", "0", "f" * 130, "a b", "extensions",
)  # fmt: skip


@st.composite
def tuple_configs(draw: st.DrawFn) -> dict[str, object]:
    """digestAlgorithm, tupleSize and numberOfTuples as 0003, 0004 and 0012 allow them together."""
    algorithm = draw(st.sampled_from(sorted(HEX_LENGTHS)))
    limit = HEX_LENGTHS[algorithm]
    if draw(st.integers(0, 5)) == 0:
        size, number = 0, 0
    else:
        size = draw(st.integers(1, 32))
        number = draw(st.integers(1, min(32, limit // size)))
    return {"digestAlgorithm": algorithm, "tupleSize": size, "numberOfTuples": number}


@st.composite
def hash_and_id_configs(draw: st.DrawFn) -> dict[str, object]:
    return draw(st.one_of(st.just({}), st.just({"digestAlgorithm": "md5"}), tuple_configs()))


@st.composite
def no_prefix_configs(draw: st.DrawFn) -> dict[str, object]:
    config = draw(hash_and_id_configs())
    if draw(st.booleans()):
        delimiter = st.one_of(st.sampled_from(DELIMITERS), st.text(characters(), min_size=1, max_size=3))
        config = {**config, "delimiters": draw(st.lists(delimiter, max_size=4))}
    return config


@st.composite
def hashed_configs(draw: st.DrawFn) -> dict[str, object]:
    config = draw(hash_and_id_configs())
    if draw(st.booleans()):
        used = config.get("tupleSize", 3) * config.get("numberOfTuples", 3)
        rest = HEX_LENGTHS[config.get("digestAlgorithm", "sha256")] - used
        config = {**config, "shortObjectRoot": draw(st.booleans()) if rest else False}
    return config


def delimiters_of_one_layout() -> st.SearchStrategy[str]:
    return st.one_of(st.just(":"), st.sampled_from(DELIMITERS), st.text(characters(), min_size=1, max_size=4))


def flat_omit_prefix_configs() -> st.SearchStrategy[dict[str, object]]:
    return st.fixed_dictionaries({"delimiter": delimiters_of_one_layout()})


def n_tuple_omit_prefix_configs() -> st.SearchStrategy[dict[str, object]]:
    return st.fixed_dictionaries(
        {},
        optional={
            "delimiter": delimiters_of_one_layout(),
            "tupleSize": st.one_of(st.integers(1, 4), st.integers(1, 32)),
            "numberOfTuples": st.one_of(st.integers(1, 4), st.integers(1, 32)),
            "zeroPadding": st.sampled_from(("left", "right")),
            "reverseObjectRoot": st.booleans(),
        },
    )


def differential_configs() -> st.SearchStrategy[dict[str, object]]:
    few = st.lists(st.integers(1, 4), min_size=1, max_size=4)
    many = st.lists(st.integers(1, 40), min_size=1, max_size=12)
    return st.fixed_dictionaries(
        {},
        optional={
            "delimiter": delimiters_of_one_layout(),
            "tupleSegmentSizes": st.one_of(few, few, st.just([11]), many),
            "fullIdentifierAsObjectRoot": st.booleans(),
        },
    )


@st.composite
def clean_path_configs(draw: st.DrawFn) -> dict[str, object]:
    algorithm = draw(st.sampled_from(("md5", *OCFL_ALGORITHMS)))
    limit = HEX_LENGTHS[algorithm] - 1  # N*S is less than the length of the digest (rule A16)
    size = draw(st.one_of(st.integers(1, 3), st.integers(1, limit)))
    config = {
        "rules": draw(st.sampled_from(("spec", "gocfl"))),
        "encodeUTF": draw(st.booleans()),
        "maxPathSegmentLen": draw(st.one_of(st.sampled_from((127, 127, 255, 1, 10, 32, 33)), st.integers(1, 300))),
        "maxPathnameLen": draw(st.one_of(st.sampled_from((32000, 32000, 1, 41, 60)), st.integers(1, 400))),
        "replacementString": draw(st.one_of(st.just("_"), st.sampled_from(REPLACEMENTS))),
        "whitespaceReplacementString": draw(st.one_of(st.just(" "), st.sampled_from(REPLACEMENTS))),
        "fallbackDigestAlgorithm": algorithm,
        "fallbackFolder": draw(st.one_of(st.just("fallback"), st.sampled_from(FALLBACK_FOLDERS))),
        "numberOfFallbackTuples": draw(st.integers(0, limit // size)),
        "fallbackTupleSize": size,
    }
    # The parameters of tuples are kept with their algorithm. Any other key may be absent.
    together = ("fallbackDigestAlgorithm", "numberOfFallbackTuples", "fallbackTupleSize")
    absent = draw(st.sets(st.sampled_from([key for key in config if key not in together])))
    if draw(st.integers(0, 3)) == 0:
        absent |= set(together)
    return {key: value for key, value in config.items() if key not in absent}


def pairtree_configs() -> st.SearchStrategy[dict[str, object]]:
    prefix = st.one_of(st.sampled_from(PREFIXES), st.text(characters(), max_size=4))
    return st.fixed_dictionaries({}, optional={"prefix": prefix})


def vitro_configs() -> st.SearchStrategy[dict[str, object]]:
    # rule 10: a namespace that can be declared: no backslash, CR or LF, no leading blank; an empty one can be read
    safe = st.text(
        st.characters(exclude_categories=("Cs", "Cc", "Zs"), exclude_characters="\\"), min_size=1, max_size=3
    )
    namespace = st.one_of(st.sampled_from(NAMESPACES), safe, st.just(""))
    namespaces = st.dictionaries(st.sampled_from(LETTERS_AND_DIGITS), namespace, max_size=4)
    return st.fixed_dictionaries({}, optional={"namespaces": namespaces})


CONFIGS = {
    "pairtree": pairtree_configs,
    "vitro": vitro_configs,
    "0002-flat-direct-storage-layout": lambda: st.just({}),
    "0003-hash-and-id-n-tuple-storage-layout": hash_and_id_configs,
    "0004-hashed-n-tuple-storage-layout": hashed_configs,
    "0006-flat-omit-prefix-storage-layout": flat_omit_prefix_configs,
    "0007-n-tuple-omit-prefix-storage-layout": n_tuple_omit_prefix_configs,
    "0010-differential-n-tuple-omit-prefix-storage-layout": differential_configs,
    "0011-direct-clean-path-layout": clean_path_configs,
    "0012-hash-and-no-prefix-id-n-tuple-storage-layout": no_prefix_configs,
}

LAYOUT_NAMES = tuple(CONFIGS)


def configs(layout_name: str) -> st.SearchStrategy[dict[str, object]]:
    """Valid configurations of a layout, in camelCase. Keys may be absent; the others are consistent."""
    return CONFIGS[layout_name]()


# ------------------------------------------------------------------------------------------------ paths


def split_every(text: bytes, size: int) -> bytes:
    return b"/".join(text[start : start + size] for start in range(0, len(text), size))


@st.composite
def with_one_of(draw: st.DrawFn, tokens: st.SearchStrategy[list], odd: st.SearchStrategy) -> list:
    """The tokens; one time in four, an unusual one is inserted."""
    drawn = draw(tokens)
    if draw(st.integers(0, 3)) == 0:
        drawn.insert(draw(st.integers(0, len(drawn))), draw(odd))
    return drawn


@st.composite
def damaged(draw: st.DrawFn, whole: st.SearchStrategy[bytes]) -> bytes:
    """A path, unchanged or with one or two bytes removed, doubled, replaced or inserted."""
    path = draw(whole)
    noise = st.sampled_from(
        [b"/", b"//", b".", b"..", b"^", b"~", b"%", b"=", b"a", b"A", b":", b" ", b"\x00", b"\xff", b"\xc3\xa9"]
    )
    for _ in range(draw(st.sampled_from((0, 0, 0, 1, 1, 2)))):
        position = draw(st.integers(0, len(path)))
        before, after = path[:position], path[position:]
        kind = draw(st.sampled_from(("remove", "double", "replace", "insert", "upper")))
        if kind == "remove":
            path = before + after[1:]
        elif kind == "double":
            path = before + after[:1] + after
        elif kind == "replace":
            path = before + draw(noise) + after[1:]
        elif kind == "insert":
            path = before + draw(noise) + after
        else:
            path = before + after[:1].upper() + after[1:]
    return path


def pairtree_paths() -> st.SearchStrategy[bytes]:
    """Cleaned characters in pairs, some of them redundantly or wrongly encoded."""
    plain = st.sampled_from([bytes([byte]) for byte in range(0x21, 0x7F) if bytes([byte]) not in b'"<\\*^>|?/:.'])
    encoded = st.integers(0, 255).map(lambda byte: b"^%02x" % byte)
    odd = st.sampled_from([b"^2A", b"^61", b"^", b"^2", b"^zz", b".", b":", b" ", b'"', b"^2f", b"\xc3\xa9"])
    right = st.lists(st.one_of(plain, plain, encoded), min_size=1, max_size=20)
    cleaned = with_one_of(right, odd).map(b"".join)
    trailing_slash = st.sampled_from((b"", b"", b"/"))
    return st.builds(lambda text, end: split_every(text, 2) + end, cleaned, trailing_slash)


def vitro_paths() -> st.SearchStrategy[bytes]:
    """Encoded characters in groups of three; reserved names may be guarded, and prefixes may be unknown."""
    plain = st.sampled_from([bytes([byte]) for byte in range(0x21, 0x7F) if bytes([byte]) not in b'"*<>?^|\\~/:.'])
    outside = [byte for byte in range(256) if byte < 0x21 or byte > 0x7E or byte in b'"*+,<=>?^|\\~']
    encoded = st.sampled_from(outside).map(lambda byte: b"^%02x" % byte)
    odd = st.sampled_from(
        [b"^2A", b"^41", b"^", b"^2", b"^-1", b".", b":", b"~", b"\xc3\xa9", b"\xc4\x80", b"con", b"NUL"]
    )
    right = st.lists(st.one_of(plain, plain, encoded, st.just(b"con")), min_size=1, max_size=14)
    prefix = st.sampled_from((b"", b"", b"", b"", b"", b"a~", b"b~", b"~"))
    encoded_text = st.builds(lambda before, tokens: before + b"".join(tokens), prefix, with_one_of(right, odd))

    def groups(text: bytes) -> list[bytes]:
        return [text[start : start + 3] for start in range(0, len(text), 3)]

    def guarded(group: bytes) -> bytes:
        return b"~" + group if group.upper() in (b"CON", b"PRN", b"AUX", b"NUL") else group

    reserved = st.sampled_from([b"con", b"PRN", b"aUx", b"nul", b"~con", b"~PRN", b"~abc", b"~COM1", b"COM1"])
    grouped = encoded_text.map(lambda text: b"/".join(map(guarded, groups(text))))
    mixed = st.lists(st.one_of(reserved, encoded_text.map(lambda text: text[:3])), min_size=1, max_size=5).map(
        b"/".join
    )
    return st.one_of(grouped, grouped, grouped, mixed)


def flat_paths() -> st.SearchStrategy[bytes]:
    return identifiers()


def percent_encoded(identifier: bytes) -> bytes:
    safe = LETTERS_AND_DIGITS.encode() + b"-_"
    return b"".join(bytes([byte]) if byte in safe else b"%%%02x" % byte for byte in identifier)


@st.composite
def hash_and_id_paths(draw: st.DrawFn) -> bytes:
    """Default configuration: three tuples of three, from the sha256 of the identifier, whole or truncated leaf."""
    identifier = draw(identifiers())
    digest = hashlib.sha256(identifier).hexdigest().encode()
    leaf = percent_encoded(identifier)
    if len(leaf) > 100 and draw(st.integers(0, 3)) > 0:
        leaf = leaf[:100] + b"-" + digest
    tuples = draw(st.sampled_from((digest[:9], digest[:9], digest[:9], digest[9:18], b"", digest[:8])))
    return b"/".join([split_every(tuples, 3), leaf] if tuples else [leaf])


@st.composite
def clean_paths(draw: st.DrawFn) -> bytes:
    """Segments encoded as by encodeUTF, and paths that resemble those of the fallback function."""
    codes = [*range(0x21), 0x7F, 0x85, 0xA0, 0x1680, *range(0x2000, 0x2010), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000]
    codes += [ord(character) for character in "*?:[]\"<>|(){}&'!;#@"]
    encoded = st.sampled_from(codes).map(lambda code: f"=u{code:04X}")
    plain = st.sampled_from(LETTERS_AND_DIGITS + "\\%$`^,+=~-._" + "\u00e9\u0301\u2010\u2026\u20a0\ufffd\U0001f350")
    odd = st.sampled_from(WORDS)
    beginning = st.sampled_from(("", "", "a", "=u007E", "=u002E."))
    tokens = with_one_of(st.lists(st.one_of(plain, plain, encoded), min_size=1, max_size=10), odd)
    part = st.builds(lambda first, others: first + "".join(others), beginning, tokens)
    kind = draw(st.integers(0, 9))
    if kind == 0:
        hexes = st.text(st.sampled_from("0123456789abcdef"), min_size=31, max_size=33)
        return f"fallback/{draw(hexes)}".encode()
    if kind == 1:
        digest = hashlib.md5(draw(identifiers())).hexdigest()
        folder = draw(st.sampled_from(("fallback/", "fallback/", "Fallback/", f"fallback/{digest[0]}/", "")))
        return (folder + draw(st.sampled_from((digest, digest, digest.upper(), digest[:31])))).encode()
    return "/".join(draw(st.lists(part, min_size=1, max_size=5))).encode()


PATHS = {
    "pairtree": pairtree_paths,
    "vitro": vitro_paths,
    "0002-flat-direct-storage-layout": flat_paths,
    "0003-hash-and-id-n-tuple-storage-layout": hash_and_id_paths,
    "0011-direct-clean-path-layout": clean_paths,
}

REVERSIBLE_LAYOUT_NAMES = tuple(PATHS)


@st.composite
def paths(draw: st.DrawFn, layout_name: str) -> bytes:
    """Paths to map back: valid for the default configuration, nearly valid, or (one in ten) arbitrary.

    0011 has an inverse with encodeUTF only: its paths are for {"encodeUTF": True}.
    """
    kind = draw(st.integers(0, 9))
    if kind == 9:
        return draw(identifiers())
    if kind >= 5:
        return draw(damaged(PATHS[layout_name]()))
    return draw(PATHS[layout_name]())
