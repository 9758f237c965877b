"""The command `anymix`: one module for each verb, which parses, calls one function, and prints."""

from __future__ import annotations

import sys

# `python -m anymix.cli` looks for modules in the working folder first, which may be untrusted.
if sys.argv[:1] == ["-m"] and "anymix.cli" in sys.orig_argv and not sys.flags.safe_path:
    del sys.path[0]

import argparse
import os
import shlex
import traceback
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from anymix._version import __version__
from anymix.cli.exit_codes import (
    MEANINGS,
    SUCCESS,
    USAGE,
    Terminated,
    code_of,
    ending_tidily,
    sentence_of,
)
from anymix.cli.streams import (
    complain,
    debugging,
    legible,
    note,
    say,
    show_warning,
    whisper,
)
from anymix.exceptions import UsageError
from anymix.storage import check_open

# Modules are imported when their command is run, so that `anymix --help` is quick.
COMMANDS = {
    "table show": "show how the columns of a table are read",
    "source pack": "train or take a predictor, fit a density, and write a source folder",
    "source check": "audit source folders that others made",
    "source show": "audit a source folder and show what is in it",
    "reference summary": "describe a site's columns, so that all sites can agree on a reference",
    "reference join": "merge the summaries of all sites into one reference",
    "fit": "learn one model from source folders and held-out rows of each",
    "predict": "predict the rows of a table",
    "certify": "state what is guaranteed, on new rows or on the rows of fit",
    "compare": "compare the model with each source, their average and the likeliest source",
    "monitor": "estimate the mixture of new rows; exit code 1 if they are not one",
    "site evaluate": "evaluate all sources on a site's own held-out rows, into one small file",
    "federate": "write a Flower app or an NVFlare job that learns while rows stay at their sites",
    "export": "write the model as one ONNX file, an MLflow folder or a model card",
    "report": "write one HTML page for whoever decides on deployment",
    "completion": "print a completion script for bash, zsh or fish",
    "demo": "run all steps on real digits, from three sources to the report",
}
COMMON = (
    ("--json", "print one JSON object"),
    ("--quiet", "print nothing but errors"),
)


class _Formatter(argparse.HelpFormatter):
    def _get_help_string(self, action: argparse.Action) -> str | None:
        """Append the default to the help of an option that has one."""
        text = action.help
        # 0 is a default; `in` would treat it as False.
        none = any(action.default is value for value in (None, False, argparse.SUPPRESS))
        if text is None or none or not action.option_strings:
            return text
        return f"{text} (default: %(default)s)"


class _Parser(argparse.ArgumentParser):
    """Report errors in one sentence, like the commands."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Report an unknown option first: argparse would report a missing argument instead."""
        for word in args or ():
            option = word.partition("=")[0]
            if option == "--":
                break
            if option.startswith("--") and option not in self._option_string_actions:
                meant = _meant(option, self._option_string_actions)
                raise UsageError(f"no option {option!r:.60}{meant} {self.prog} --help lists them.")
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; {self.prog} --help lists the options.")

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print the help at once, so that a broken pipe is handled here and not at exit."""
        if message:
            say(message)


def build_parser(command: str) -> argparse.ArgumentParser:
    """Return the parser of one command, such as "fit" or "source pack", with its `run`."""
    what = COMMANDS[command]
    parser = _Parser(
        formatter_class=partial(_Formatter, width=80),  # a fixed width, for docs/cli.md
        prog=f"anymix {command}",
        description=f"{what[0].upper()}{what[1:]}.",
        allow_abbrev=False,
    )
    noun, _, verb = command.partition(" ")
    module = import_module(f"anymix.cli.{noun}_command")
    getattr(module, f"add_{verb}_arguments" if verb else "add_arguments")(parser)
    parser.set_defaults(run=getattr(module, f"run_{verb}" if verb else "run"))
    for flag, meaning in COMMON:
        parser.add_argument(flag, action="store_true", help=meaning)
    return parser


def overview() -> str:
    """Return what `anymix --help` prints."""
    lines = ["usage: anymix COMMAND ...", ""]
    lines += ["Combine models of several sources into one for any mixture, with a certificate.", ""]
    lines += [f"  {command:<17} {what}" for command, what in COMMANDS.items()]
    lines += ["", "exit codes:"]
    lines += [f"  {code:<17} {meaning}" for code, meaning in MEANINGS.items()]
    return "\n".join([*lines, "", "anymix COMMAND --help describes a command."])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, report a failure in one sentence, and return the exit code."""
    # Replace a closed standard stream by the null device: otherwise the next file that is opened
    # would get its number, and output of a library could end up in that file.
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    words = list(sys.argv[1:] if arguments is None else arguments)
    with warnings.catch_warnings(), ending_tidily():
        warnings.showwarning = show_warning
        try:
            for word in words:
                check_open(word)
            return _run(words)
        # Here every failure becomes one sentence; ANYMIX_DEBUG shows the traceback.
        except (Exception, KeyboardInterrupt, Terminated) as error:  # noqa: BLE001
            if debugging():
                whisper(legible("".join(traceback.format_exception(error))))
            complain(sentence_of(error))
            return code_of(error)


def _run(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help"):
        say(overview() + "\n")
        return SUCCESS if words else USAGE
    if words[0] == "--version":
        say(f"anymix {__version__}\n")
        return SUCCESS
    n = 2 if " ".join(words[:2]) in COMMANDS else 1
    command = " ".join(words[:n])
    verbs = [other.split()[1] for other in COMMANDS if other.startswith(f"{command} ")]
    if verbs:
        return _list_verbs(command, verbs, words[1:])
    if command not in COMMANDS:
        raise UsageError(
            f"no command {command!r:.60}{_meant_command(command)} anymix --help lists them."
        )
    from anymix.cli.console import Console
    from anymix.cli.remembered_options import FILE, read_remembered, remembered_words
    from anymix.tables import CategoryWarning, holding_input

    parser, given = build_parser(command), words[n:]
    more = remembered_words(command, parser, given, read_remembered(Path()))
    args = parser.parse_args(_with_marks([*given, *more]))
    if more and not args.quiet:
        note(f"{FILE} adds {shlex.join(more)}")
    tables = (value for option, value in vars(args).items() if option != "missing")
    listed = (each if isinstance(each, list) else [each] for each in tables)
    given = [str(word).rpartition("=")[2] for each in listed for word in each]
    if sum(word in ("-", "/dev/stdin") for word in given) > 1:
        raise UsageError("standard input is one table; give the others as files.")
    warnings.simplefilter("always", CategoryWarning)
    with holding_input():
        status: int = args.run(args, Console(args.json, args.quiet))
    return status


def _with_marks(words: Sequence[str]) -> list[str]:
    """Join options and values that may begin with a dash, which argparse reads as options.

    >>> _with_marks(["t.csv", "--missing", "-,unknown"])
    ['t.csv', '--missing=-,unknown']
    """
    joined: list[str] = []
    for word in words:
        if joined and joined[-1] in ("--missing", "--sep") and word not in ("--json", "--quiet"):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def _meant(word: str, words: Iterable[str], names: Mapping[str, str] | None = None) -> str:
    """Name the word that was probably meant, or what `names` calls it.

    >>> _meant("fti", ["fit", "predict"]), _meant("xyz", ["fit", "predict"])
    ("; did you mean 'fit'?", ';')
    """
    from anymix._parameters import nearest

    near = nearest(word[:60], words)
    return ";" if near is None else f"; did you mean {(names or {}).get(near, near)!r}?"


def _meant_command(word: str) -> str:
    """Name the command that was probably meant: one that contains this word, or a similar one.

    >>> _meant_command("pack"), _meant_command("fti"), _meant_command("xyz")
    ("; did you mean 'source pack'?", "; did you mean 'fit'?", ';')
    """
    whole = {part: command for command in reversed(COMMANDS) for part in command.split()}
    return _meant(word, whole, whole)


def _list_verbs(noun: str, verbs: list[str], rest: list[str]) -> int:
    """List the commands that begin with an incomplete command name."""
    if rest and rest[0] in ("-h", "--help"):
        lines = [f"  {noun} {verb:<10} {COMMANDS[f'{noun} {verb}']}" for verb in verbs]
        say("\n".join([f"usage: anymix {noun} COMMAND ...", "", *lines]) + "\n")
        return SUCCESS
    meant = _meant(rest[0], verbs) if rest else ";"
    raise UsageError(
        f"{noun} is followed by {' or '.join(verbs)}, such as anymix {noun} {verbs[0]}{meant} "
        f"anymix {noun} --help lists them."
    )
