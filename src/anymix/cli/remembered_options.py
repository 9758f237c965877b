"""Options remembered in the file `anymix.toml` of the working folder; typed options win.

The file holds a key for each option, such as target = "ill" or drop = ["note", "ward"].  Options
that loosen the protection of rows or replace files are not remembered.
"""

from __future__ import annotations

import csv
import io
import tomllib
from argparse import Action, ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from anymix._parameters import nearest
from anymix.exceptions import InputError
from anymix.storage import read_file

FILE, LIMIT = "anymix.toml", 2**20
KEYS = (
    *("name", "target", "task", "features", "drop", "text", "id", "groups", "categories"),
    *("reference", "address", "sep", "decimal", "encoding", "missing"),
)
# The name of a source is that of the site that evaluates its rows.
OTHER_NAMES = {"site evaluate": {"site": "name"}}


def read_remembered(folder: Path) -> dict[str, Any]:
    """Return the options in the file of a folder; empty without a file."""
    path = folder / FILE
    if not path.exists():
        return {}
    try:
        found = tomllib.loads(read_file(path, LIMIT).decode())
    except ValueError as error:
        raise InputError(path, f"is not TOML: {str(error).rstrip('.')}") from error
    for key, value in found.items():
        if key not in KEYS:
            near = nearest(key[:60], KEYS)
            meant = f"write one of {', '.join(KEYS)}" if near is None else f"did you mean {near!r}"
            raise InputError(path, f"has the unknown key {key!r:.60}; {meant}")
        each = value if isinstance(value, list) else [value]
        if not each or not all(isinstance(one, str | float | int) for one in each):
            raise InputError(path, f"must have a text, a number or a list of texts as {key!r}")
    return found


def remembered_words(
    command: str, parser: ArgumentParser, words: Sequence[str], remembered: dict[str, Any]
) -> list[str]:
    """Return the remembered options that a command takes and that were not given.

    Examples
    --------
    >>> parser = ArgumentParser()
    >>> option = parser.add_argument("--target", default="y")
    >>> remembered_words("fit", parser, ["a"], {"target": "ill", "text": "review"})
    ['--target', 'ill']
    >>> remembered_words("fit", parser, ["a", "--target=y"], {"target": "ill"})
    []
    """
    if "-h" in words or "--help" in words:
        return []
    given = {word.partition("=")[0] for word in words}
    # One of several exclusive options is enough.
    for group in parser._mutually_exclusive_groups:
        strings = {name for action in group._group_actions for name in action.option_strings}
        given |= strings if given & strings else set()
    found: list[str] = []
    for action in parser._actions:
        name = action.dest.replace("_", "-")
        key = OTHER_NAMES.get(command, {}).get(name, name)
        if (
            key in remembered
            and not given & {*action.option_strings}
            and _takes(action, key, given)
        ):
            found += _words(action, remembered[key])
    return found


def _takes(action: Action, key: str, given: set[str]) -> bool:
    """Whether a remembered option applies to the action and fits the given options."""
    if not action.option_strings or (key == "reference" and action.nargs is not None):
        return False  # the --reference of monitor is rows
    if key == "target" and action.default is None and "--reference" not in given:
        return False  # also of monitor
    return key != "groups" or "--from-sites" not in given


def _words(action: Action, value: Any) -> list[str]:
    option, each = action.option_strings[0], value if isinstance(value, list) else [value]
    texts = [str(one) for one in each]
    if action.nargs in ("+", "*"):
        return [option, *texts]
    if isinstance(value, list):  # COL[,COL...]
        line = io.StringIO()
        csv.writer(line, lineterminator="").writerow(texts)
        texts = [line.getvalue()]
    # A text may begin with a dash.
    return [option, *texts] if not texts[0].startswith("-") else [f"{option}={texts[0]}"]
