"""anymix completion: print a script for completion of commands, options, choices and files."""

from __future__ import annotations

from argparse import Action, ArgumentParser, Namespace
from typing import Any

from anymix.cli import COMMANDS, build_parser
from anymix.cli.argument_types import folder, name, table
from anymix.cli.console import Console
from anymix.storage import need

SHELLS = ("bash", "zsh", "fish")
FILES = {"APP", "CARD.md", "FILE", "FOLDER", "NAME=TABLE", "SOURCE", "SUMMARY", "TABLE"}


def add_arguments(parser: ArgumentParser) -> None:
    """Describe the command."""
    parser.add_argument("shell", choices=SHELLS, help="shell to write the script for")


def run(args: Namespace, console: Console) -> int:
    """Run the command."""
    script: str = need("shtab").complete(_parser_of_all_commands(), args.shell)
    console.result(script.rstrip("\n"), {"shell": args.shell, "script": script})
    return 0


def _parser_of_all_commands() -> ArgumentParser:
    """Return one parser with a subparser for each command, for shtab."""
    parser = ArgumentParser("anymix", add_help=False)
    groups: dict[str, Any] = {"": parser.add_subparsers()}
    for command, meaning in COMMANDS.items():
        noun, _, verb = command.rpartition(" ")
        if noun not in groups:
            verbs = [other.split()[1] for other in COMMANDS if other.startswith(f"{noun} ")]
            groups[noun] = groups[""].add_parser(noun, help=", ".join(verbs)).add_subparsers()
        options = build_parser(command)
        for action in options._actions:
            _complete(action)
        groups[noun].add_parser(verb, help=meaning, parents=[options], add_help=False)
    return parser


def _complete(action: Action) -> None:
    """Set the completions of an argument: its choices, or files."""
    # The type of --engine lists its choices in `names`.
    action.choices = action.choices or getattr(action.type, "keywords", {}).get("names")
    is_file = not action.option_strings and action.dest in ("model", "rows", "table")
    if is_file or action.type in (folder, name, table) or action.metavar in FILES:
        action.complete = need("shtab").FILE  # type: ignore[attr-defined]
