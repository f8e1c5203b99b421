"""The command group: loads commands on demand, and converts errors to messages and exit statuses."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import click

from pressmark.cli.common.console import PROGRAM, CallError, Failure, Interrupted, cause, say
from pressmark.cli.common.signals import signals_as_ctrl_c
from pressmark.errors import LayoutConfigError, PressmarkError

__all__ = ["Commands", "Program", "discard_stdout"]


class Commands(click.Group):
    """A group whose commands are named by module and imported on demand.

    :param commands_at: ``"module:attribute"`` of each command, in the order of the help
    """

    def __init__(self, *args: Any, commands_at: Mapping[str, str], **attributes: Any) -> None:
        attributes.update(invoke_without_command=True, subcommand_metavar="COMMAND [ARGS]...")
        super().__init__(*args, **attributes)
        self.commands_at = commands_at

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return list(self.commands_at)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command called ``cmd_name``, or return :data:`None`."""
        if cmd_name not in self.commands_at:
            return None
        module, _, attribute = self.commands_at[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was called."""
        result = super().invoke(ctx)
        if ctx.invoked_subcommand is None:
            # Without a command, the exit status must show that nothing was done.
            click.echo(ctx.get_help(), err=True)
            ctx.exit(2)
        return result


class Program(Commands):
    """The top-level group: converts errors to messages and exit statuses."""

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Parse the arguments; prints ``--help`` and ``--version``."""
        with _endings():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        with _endings():
            return super().invoke(ctx)

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        """Run the command line and exit with its status; without ``standalone_mode`` return the status."""
        with signals_as_ctrl_c() as ending:
            try:
                # The same name for "python -m pressmark".
                extra.update(prog_name=PROGRAM, standalone_mode=False)
                status = super().main(*args, **extra)
            except click.ClickException as error:
                say(_message(error))
                status = error.exit_code
            except (click.Abort, KeyboardInterrupt):
                # Ctrl-C before or after a command.
                say("interrupted")
                status = Interrupted.exit_code
        if status == Interrupted.exit_code and ending.status is not None:
            status = ending.status
        if standalone_mode:
            sys.exit(status or 0)
        return status or 0


def discard_stdout() -> None:
    """Redirect stdout to the null device, so that flushing it at exit cannot fail again."""
    with contextlib.suppress(AttributeError, OSError, ValueError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)


@contextlib.contextmanager
def _endings() -> Iterator[None]:
    """Convert errors to exceptions that :meth:`Program.main` reports."""
    try:
        yield
    except BrokenPipeError:
        discard_stdout()
        raise click.exceptions.Exit(0) from None
    except OSError as error:
        # Writing tables and help to stdout raises errors without a file name.
        discard_stdout()
        name = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else "<stdout>"
        raise Failure(f"{name}: {cause(error)}") from None
    except KeyboardInterrupt:
        raise Interrupted("interrupted") from None
    except LayoutConfigError as error:
        # The name of the layout is an argument, not a key.
        raise CallError(error.reason if error.key == "layout" else str(error)) from None
    except PressmarkError as error:
        raise CallError(str(error)) from None


def _message(error: click.ClickException) -> str:
    message = error.format_message()
    if not isinstance(error, click.UsageError):
        return message
    # The messages of click are sentences, some with several lines.
    sentence = " ".join(message.split()).rstrip(".")
    path = error.ctx.command_path if error.ctx else PROGRAM
    return f"{sentence[:1].lower()}{sentence[1:]} (see '{path} --help')"
