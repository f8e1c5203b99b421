"""Create, validate, update, complete and pack bags: the BagIt File Packaging Format 1.0 (draft-kunze-bagit-17).

>>> import pressmark
>>> info = pressmark.bagit.BagInfo([("Contact-Name", "Jane Doe")])
>>> info.to_bytes()
b'Contact-Name: Jane Doe\\n'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pressmark.lazy import face

if TYPE_CHECKING:
    from pressmark.bagit import archive as archive
    from pressmark.bagit.archive.pack import pack as pack
    from pressmark.bagit.archive.unpack import unpack as unpack
    from pressmark.bagit.bag import (
        Bag as Bag,
        create as create,
        create_archive as create_archive,
        create_from_lists as create_from_lists,
        create_holey as create_holey,
        make_bag as make_bag,
        open as open,
        update as update,
    )
    from pressmark.bagit.bag_info import BagInfo as BagInfo
    from pressmark.bagit.fetch.complete import complete as complete
    from pressmark.bagit.job import ValidateBags as ValidateBags
    from pressmark.bagit.problems import KINDS as KINDS, BagReport as BagReport
    from pressmark.bagit.profile import Profile as Profile
    from pressmark.bagit.validation.validate import validate as validate, validate_many as validate_many
    from pressmark.bagit.writing.from_table import TableBag as TableBag, create_from_table as create_from_table
    from pressmark.bagit.writing.revert import revert as revert

__all__, __getattr__, __dir__ = face(
    __name__,
    {
        ".archive": "",
        ".bag": "Bag create create_archive create_from_lists create_holey make_bag open update",
        ".bag_info": "BagInfo",
        ".fetch.complete": "complete",
        ".job": "ValidateBags",
        ".archive.pack": "pack",
        ".archive.unpack": "unpack",
        ".problems": "BagReport KINDS",
        ".profile": "Profile",
        ".validation.validate": "validate validate_many",
        ".writing.from_table": "TableBag create_from_table",
        ".writing.revert": "revert",
    },
)
