"""Addresses such as ``s3://bucket/prefix``: which arguments accept them, and the options for the server."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import click

from pressmark.buckets.address import is_address
from pressmark.cli.common.console import CallError
from pressmark.errors import quoted

__all__ = [
    "FILE_OR_ADDRESS",
    "PATH_OR_ADDRESS",
    "STORE_OR_ADDRESS",
    "Address",
    "bucket_options",
    "check_addresses",
]

Function = TypeVar("Function", bound=Callable[..., Any])


class Address(click.Path):
    """The type of an argument that may be an address.

    :param workers: whether the command uses several processes for an address, too
    """

    def __init__(self, *, workers: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self.workers = workers


#: This type, for paths in bytes.
PATH_OR_ADDRESS = Address(path_type=bytes)
#: The same; a path that cannot be read is a failed file.
FILE_OR_ADDRESS = Address(readable=False, path_type=bytes)
#: The type for the stores of a migration.
STORE_OR_ADDRESS = Address(workers=True)

# The variable that each option sets, and those that would take precedence over it.
_VARIABLES: dict[str, tuple[str, tuple[str, ...]]] = {
    "--endpoint": ("AWS_ENDPOINT_URL_S3", ("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",)),
    "--s3-profile": ("AWS_PROFILE", ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")),
    "--region": ("AWS_DEFAULT_REGION", ()),
}
_LOCAL_ONLY = ("workers", "dask", "ledger")
# Copies that share disk blocks with their sources.
_SHARING = ("reflink", "hardlink")


def _keep(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    if value is not None and not context.resilient_parsing:
        _settings(context)[parameter.opts[0]] = value


def _settings(context: click.Context) -> dict[str, str]:
    """Return the values of the options for the server."""
    values: dict[str, str] = context.meta.setdefault("pressmark.bucket", {})
    return values


def bucket_options(function: Function) -> Function:
    """Add the options for the server of an address; :func:`check_addresses` applies them."""
    for name, metavar, text in (
        ("--region", "NAME", "Region of the bucket (default: AWS_DEFAULT_REGION)."),
        ("--s3-profile", "NAME", "Profile of the AWS settings (default: AWS_PROFILE)."),
        ("--endpoint", "URL", "Server with the protocol of S3 (default: AWS_ENDPOINT_URL_S3, or Amazon)."),
    ):
        function = click.option(name, metavar=metavar, callback=_keep, expose_value=False, help=text)(function)
    return function


def check_addresses(context: click.Context) -> None:
    """Refuse addresses and options that a command does not support, and set the variables of the server until the
    command ends.

    The variables are those of the AWS command line, so that worker processes inherit them.

    :raises CallError: an argument must be a local path, or an option is not supported
    """
    is_remote = bool(context.params.get("allow_buckets"))
    for parameter in context.command.params:
        if not isinstance(parameter.type, click.Path):
            continue
        address = next(filter(is_address, _texts(context.params.get(parameter.name or ""))), None)
        if address is None:
            continue
        if isinstance(parameter.type, Address):
            is_remote = True
            _check_options(context, parameter.type.workers)
        else:
            name = (parameter.metavar or "").strip("[].") if isinstance(parameter, click.Argument) else ""
            what = f"object storage is not supported for {name or parameter.opts[0]}"
            raise CallError(f"{os.fsdecode(address)}: {what}; use a local path")
    for option, value in _settings(context).items():
        if not is_remote:
            where = (
                "with --allow-bucket"
                if "allow_buckets" in context.params
                else "for an address such as s3://bucket/prefix"
            )
            raise CallError(f"{option}: only {where}; omit the option")
        if not value:
            raise CallError(f"{option}: the value is empty")
        if option == "--s3-profile":
            _check_profile(value)
        variable, others = _VARIABLES[option]
        for name in (variable, *others):
            context.call_on_close(_restored(name, os.environ.pop(name, None)))
        os.environ[variable] = value


def _texts(value: object) -> Iterator[str | bytes]:
    for one in value if isinstance(value, tuple | list) else (value,):
        if isinstance(one, str | bytes):
            yield one


def _check_options(context: click.Context, workers: bool) -> None:
    """Refuse options that a store in object storage does not support.

    :param workers: several processes are supported
    """
    values = context.params
    for name in () if workers else _LOCAL_ONLY:
        if values.get(name) is not None:
            raise CallError(f"--{name}: not supported in object storage; omit the option")
    if values.get("copy_mode") in _SHARING:
        raise CallError(f"--copy-mode {values['copy_mode']}: not supported in object storage; use --copy-mode auto")


def _check_profile(name: str) -> None:
    try:
        from botocore.session import Session  # slow to import
    except ModuleNotFoundError:
        return  # opening the address says what to install
    if name not in Session().available_profiles:
        raise CallError(f"--s3-profile {quoted(name)}: not found in the AWS settings; specify one that exists")


def _restored(name: str, value: str | None) -> Callable[[], None]:
    """Return a function that gives a variable its former value."""

    def restore() -> None:
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value

    return restore
