"""``pressmark completion``: the completion script of a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from pressmark.cli.common.console import PROGRAM, Failure
from pressmark.cli.common.output import Output
from pressmark.cli.common.program import Command

__all__ = ["completion_command"]

HELP = """\
Print the completion script for SHELL.

\b
Examples:
  pressmark completion bash
  pressmark completion zsh

It completes commands, options, files, layouts, algorithms and kinds of stores. Install the script once:

\b
  pressmark completion bash >> ~/.bashrc
  pressmark completion zsh > ~/.zfunc/_pressmark
  pressmark completion fish > ~/.config/fish/completions/pressmark.fish
  pressmark completion powershell >> $PROFILE

zsh requires the line "fpath+=~/.zfunc; autoload -Uz compinit; compinit" in ~/.zshrc. Create missing directories first.
"""

EPILOG = """\
Exit status: 0 success, 1 this installation does not support SHELL, 2 usage error.
"""

VARIABLE = "_PRESSMARK_COMPLETE"  # of click, for a program of this name
SHELLS = ("bash", "zsh", "fish", "powershell")


@click.command("completion", cls=Command, help=HELP, epilog=EPILOG, short_help="Complete commands in a shell.")
@click.argument("shell", metavar="SHELL", type=click.Choice(SHELLS))
@click.pass_context
def completion_command(context: click.Context, shell: str) -> None:
    """Print the completion script."""
    found = get_completion_class(shell)
    if found is None:
        raise Failure(f"completion in {shell} requires click 8.5; run pip install --upgrade click")
    with Output(False) as output:
        output.line(found(context.find_root().command, {}, PROGRAM, VARIABLE).source().encode())
