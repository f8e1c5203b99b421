"""The command group: loads commands on demand, and converts errors and signals to messages and exit statuses."""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import re
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any

import click

from pressmark.cli.common.console import PROGRAM, CallError, Failure, Interrupted, cause, say, say_not_compiled
from pressmark.cli.common.exclusions import check_options
from pressmark.cli.common.files import discard_stdout
from pressmark.cli.common.object_storage import check_addresses
from pressmark.errors import FormatError, LayoutConfigError, ObjectError, PressmarkError, TableError
from pressmark.option_names import as_flags

__all__ = ["Command", "Commands", "Ending", "OptionalValue", "Program", "on_ctrl_c", "signals_as_ctrl_c"]

# Sent by "kill", "timeout", a system shutdown, and a terminal that is closed.
_SIGNALS = ("SIGTERM", "SIGHUP")
# The message of click about a path that this process may not read.
_UNREADABLE = re.compile("(?:File|Directory|Path) '(.*)' is not readable\\.", re.DOTALL)
# Seconds of a run after which its user is told what would make it faster.
LONG_RUN = 10.0


class OptionalValue(click.Option):
    """An option whose value, if any, follows an equals sign.

    :ivar value: the value of the option alone
    """

    value: str

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the option and its help."""
        record = super().get_help_record(ctx)
        return record and (record[0].replace(" [", "[=", 1), record[1])


class Command(click.Command):
    """A command whose help shows options in groups.

    :param details: paragraphs for the page of the command, which ``--help`` leaves out
    :param page_options: options that only the page describes; ``--help`` lists their names
    """

    def __init__(self, *args: Any, details: str = "", page_options: str = "", **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.details = details
        self.page_options = frozenset(page_options.split())

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; an option without its optional value has the default one."""
        alone = {name: one.value for one in self.params if isinstance(one, OptionalValue) for name in one.opts}
        end = args.index("--") if "--" in args else len(args)
        joined = [f"{arg}={alone[arg]}" if arg in alone else arg for arg in args[:end]]
        return super().parse_args(ctx, joined + args[end:])

    def invoke(self, ctx: click.Context) -> Any:
        """Check the options, and run the command; after a long run, report on a terminal that the native implementation
        is missing.
        """
        check_options(ctx)
        check_addresses(ctx)
        begin = time.monotonic()
        result = super().invoke(ctx)
        if time.monotonic() - begin > LONG_RUN and ctx.params.get("progress") is not False:
            say_not_compiled()
        return result

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the groups of options."""
        # Imported here: most runs do not show help.
        from pressmark.cli.common.help_page import is_page, write_options

        parameters = self.get_params(ctx)
        if not is_page(ctx):
            parameters = [one for one in parameters if not self.page_options.intersection(one.opts)]
        write_options(parameters, ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the paragraphs below the options."""
        from pressmark.cli.common.help_page import epilog, write_text

        write_text(epilog(self, ctx), formatter)


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

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that was called; an error names the command that was probably meant."""
        if args[0] not in self.commands_at and not args[0].startswith("-"):
            # Imported here: most runs name a command.
            from pressmark.cli.common.help_page import similar_command

            meant = similar_command(args[0], ctx.command_path, self.commands_at)
            if meant:
                ctx.fail(f"no such command {args[0]!r}; did you mean {PROGRAM} {meant}?")
        return super().resolve_command(ctx, args)

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
        with signals_as_ctrl_c(exits=standalone_mode) as ending, warnings.catch_warnings(), as_flags():
            warnings.showwarning = lambda message, *_more: say(f"warning: {message}")
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


class Ending:
    """Records the signal that ended the command.

    :ivar status: its exit status, as in shells: 128 + number of the signal; :data:`None` before
    """

    status: int | None = None

    def handle(self, number: int, _frame: FrameType | None) -> None:
        """Handle the signal ``number``."""
        # "timeout" sends its signal twice, to the process and to its group: the second must not stop the cleanup.
        if self.status is None:
            self.status = 128 + number
            raise KeyboardInterrupt


@contextlib.contextmanager
def signals_as_ctrl_c(exits: bool = False) -> Iterator[Ending]:
    """Convert these signals to :class:`KeyboardInterrupt` until the block ends.

    :param exits: the process exits after the block: a repeated signal must not change its exit status
    """
    ending = Ending()
    before = {}
    # ValueError: only the main thread can set handlers. A signal that is ignored ("nohup") stays ignored.
    with contextlib.suppress(ValueError):
        for name in _SIGNALS:
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) is signal.SIG_DFL:
                before[number] = signal.signal(number, ending.handle)
    try:
        yield ending
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_IGN if exits and ending.status is not None else handler)


@contextlib.contextmanager
def on_ctrl_c(callback: Callable[[], object]) -> Iterator[None]:
    """Call ``callback`` on Ctrl-C, before the :class:`KeyboardInterrupt`, until the block ends."""

    def handler(_number: int, _frame: FrameType | None) -> None:
        callback()
        raise KeyboardInterrupt

    before = None
    with contextlib.suppress(ValueError):
        # Only the default handler is replaced: Ctrl-C may be ignored, as in background jobs of scripts.
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)


def _is_of_stdout(error: OSError) -> bool:
    """Return whether help or a version could not be written, which raises errors without a file name."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    return last is not None and last.tb_frame.f_code is click.echo.__code__


@contextlib.contextmanager
def _endings() -> Iterator[None]:
    """Convert errors to exceptions that :meth:`Program.main` reports."""
    try:
        yield
    except BrokenPipeError:
        discard_stdout()
        raise click.exceptions.Exit(0) from None
    except OSError as error:
        name = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else ""
        if not name and _is_of_stdout(error):
            discard_stdout()
            name = "<stdout>"
        raise Failure(f"{name and f'{name}: '}{cause(error)}") from None
    except KeyboardInterrupt:
        raise Interrupted("interrupted") from None
    except LayoutConfigError as error:
        # The name of the layout is an argument, not a key.
        raise CallError(error.reason if error.key == "layout" else str(error)) from None
    except ObjectError as error:
        raise Failure(str(error)) from None
    except TableError as error:
        # A format is refused before anything is written.
        raise (CallError if isinstance(error, FormatError) else Failure)(str(error)) from None
    except PressmarkError as error:
        # Where reading or writing failed, an error of the operating system is the cause; others are usage errors.
        raise (Failure if isinstance(error.__cause__, OSError) else CallError)(str(error)) from None


def _message(error: click.ClickException) -> str:
    message = error.format_message()
    if not isinstance(error, click.UsageError):
        return message
    if unreadable := _UNREADABLE.fullmatch(error.message):
        return f"{unreadable[1]}: {os.strerror(errno.EACCES)}"
    # The messages of click are sentences, some with several lines.
    sentence = " ".join(message.split()).rstrip(".")
    path = error.ctx.command_path if error.ctx else PROGRAM
    return f"{sentence[:1].lower()}{sentence[1:]} (see '{path} --help')"
