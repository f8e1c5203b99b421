"""``pressmark store probe``: find out whether a bucket is fit for a store."""

from __future__ import annotations

import os

import click

from pressmark.cli.common.console import CallError, Failure, cause
from pressmark.cli.common.object_storage import PATH_OR_ADDRESS, bucket_options
from pressmark.cli.common.output import Output
from pressmark.cli.common.program import Command
from pressmark.cli.common.progress import format_count
from pressmark.cli.store.options import JSON

__all__ = ["probe_command"]

HELP = """\
Find out what the server of a bucket promises to a store.

\b
Examples:
  pressmark store probe s3://books/root
  pressmark store probe s3://books --endpoint http://127.0.0.1:7070

Many servers accept a conditional request and ignore the condition. This command tries each condition that a store in
object storage relies on, with about thirty small requests.
"""

EPILOG = """\
Standard output shows each property: "yes" or "NO", the name, the requests, and the answer of the server; below it, what
follows for Pressmark. With --json it is {"property": ..., "ok": ..., "asked": ..., "answer": ..., "consequence": ...}.
A bucket is safe for several writers if it has the first four properties: creates, replaces, one_winner, lists_at_once.
Otherwise, the last line names the options that allow writing to an OCFL storage root: --claims, --single-writer.

The keys are written below ADDRESS, in a new directory of extensions/pressmark-staging, and removed at the end. Without
the right to remove keys, those that are left are reported.

Object storage requires botocore: pip install 'pressmark[s3]'. It finds credentials and settings as the AWS command line
does: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, AWS_DEFAULT_REGION, AWS_ENDPOINT_URL_S3.

Exit status: 0 safe for several writers, 1 not safe, 2 usage error, or the bucket cannot be written to or listed, 130
interrupted.
"""


@click.command(
    "probe", cls=Command, help=HELP, epilog=EPILOG, short_help="Find out whether a bucket is fit for a store."
)
@click.argument("path", metavar="ADDRESS", type=PATH_OR_ADDRESS)
@bucket_options
@JSON
def probe_command(path: bytes, as_json: bool) -> int:
    """Find out whether a bucket is fit for a store."""
    # Imported here: the other commands open stores.
    from pressmark.buckets.address import open_bucket
    from pressmark.buckets.probe import probe

    address = os.fsdecode(path)
    try:
        bucket, prefix = open_bucket(path)
        result = probe(bucket, prefix)
    except OSError as error:
        # 1 would mean that the server answers, and is not safe.
        raise CallError(f"{address}: {cause(error)}") from None
    with Output(None, as_json=as_json) as output:
        if as_json:
            for name, is_good, asked, answer, consequence in result.lines():
                output.record(
                    {"property": name, "ok": is_good, "asked": asked, "answer": answer, "consequence": consequence}
                )
        else:
            output.data(f"{result.table()}\n".encode())
        output.summary(
            {
                "ok": result.is_safe,
                "digests": list(result.digests),
                "left": [key.decode() for key in result.left],
                "requests": result.requests,
            }
        )
    if result.left:
        first = f"{bucket.url}/{result.left[0].decode()}"
        output.tell(f"{format_count(len(result.left), 'key')} left, without the right to remove them; first: {first}")
    output.tell(f"{address}: {result.advice()}", failed=not result.is_safe)
    return 0 if result.is_safe else Failure.exit_code
