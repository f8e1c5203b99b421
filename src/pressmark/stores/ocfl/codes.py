"""The sections of OCFL 1.1 in which its validation codes stand, and the extensions that are registered.

The codes are those of https://ocfl.io/1.1/spec/validation-codes.html; codes that begin with E break a MUST, those that
begin with W a SHOULD. 1.0 has the same codes, but for those that 1.1 has added.
"""

from __future__ import annotations

__all__ = ["REGISTERED", "SECTIONS"]

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

#: The names of the extensions in https://ocfl.github.io/extensions/ (sections 3.9 and 4.4).
REGISTERED = frozenset(
    {
        "0000-example-extension",
        "0001-digest-algorithms",
        "0002-flat-direct-storage-layout",
        "0003-hash-and-id-n-tuple-storage-layout",
        "0004-hashed-n-tuple-storage-layout",
        "0005-mutable-head",
        "0006-flat-omit-prefix-storage-layout",
        "0007-n-tuple-omit-prefix-storage-layout",
        "0008-schema-registry",
        "0009-digest-algorithms",
        "0010-differential-n-tuple-omit-prefix-storage-layout",
        "0011-direct-clean-path-layout",
        "0012-hash-and-no-prefix-id-n-tuple-storage-layout",
        "initial",
    }
)
