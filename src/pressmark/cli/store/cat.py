"""``pressmark store cat``: write a file of an object to standard output."""

from __future__ import annotations

import click

from pressmark.cli.common.output import Output
from pressmark.cli.common.program import Command
from pressmark.cli.store.options import (
    IDENTIFIER,
    STORE,
    VERIFY,
    VERSION,
    StoreFormat,
    find_object,
    store_options,
)
from pressmark.stores.exceptions import object_errors

__all__ = ["cat_command"]

READ_SIZE = 1 << 20  # 1 MiB

HELP = """\
Write the file NAME of the object IDENTIFIER to standard output.

\b
Examples:
  pressmark store cat books ark:/13030/xt12t3 page1.tif | sha256sum
  pressmark store cat root ark:/13030/xt12t3 mets.xml --version v1
"""

EPILOG = """\
"pressmark store ls STORE IDENTIFIER" lists the names. The only file of a serialized bag is the archive.

Files of OCFL objects and bags are compared with their digest in the inventory or the manifests while they are read. If
content is damaged, the exit status is 1, but part of it may have been written. Pairtrees and Vitro stores record no
digests.

Exit status: 0 success, 1 object or file not found, content is damaged, or reading failed; 2 usage error,
130 interrupted.
"""


@click.command("cat", cls=Command, help=HELP, epilog=EPILOG, short_help="Write a file of an object to standard output.")
@STORE
@IDENTIFIER
@click.argument("name", metavar="NAME")
@VERSION
@VERIFY
@store_options
def cat_command(
    path: bytes,
    store_format: StoreFormat,
    ignore: tuple[str, ...],
    progress: bool | None,
    identifier: str,
    name: str,
    version: str | None,
    verify: bool,
) -> int:
    """Write a file of an object to standard output."""
    store = store_format.open(path, ignore)
    found = find_object(store, identifier, version)
    with Output(progress, data=True) as output, found.open(name, verify=verify) as file:
        while True:
            with object_errors(path, identifier):
                data = file.read(READ_SIZE)
            if not data:
                break
            output.data(data)
    return 0
