"""Put the options of every command into docs/cli.md: `python tools/cli_docs.py`.

Options that several commands share, and those of all tables, stand on the page once.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from anymix.cli import COMMANDS, build_parser, overview

PAGE = Path(__file__).parents[1] / "docs" / "cli.md"
BLOCK = re.compile(r"(<!-- help: (.*?) -->\n```text\n).*?(```\n)", re.DOTALL)
WIDTH = 110
# A bracketed option of a usage line, with one level of brackets inside.
OPTIONAL = re.compile(r" \[-(?:[^\[\]]|\[[^\]]*\])*\]")
COMMON = re.compile(r"  (?:-h, --help|--json|--quiet) .*\n")
FORMAT = re.compile(r"\nformat of tables.*?\n(?:  .*\n)*")
OPTION = re.compile(r"  (--[a-z-]+).*\n(?:   .*\n)*")
REPEATED = 3  # an option that so many commands have with the same help is not repeated


def full_help(command: str) -> str:
    """Return what `anymix COMMAND --help` prints, in the width of the page."""
    parser = build_parser(command)
    setattr(parser, "formatter_class", partial(parser.formatter_class, width=WIDTH))  # noqa: B010
    return parser.format_help()


def own_help(command: str) -> str:
    """Return the arguments of a command in one list, without those of all commands and tables."""
    _, _, text = full_help(command).partition("\n\n")
    _, _, text = text.partition("\n\n")  # the description: the page has its own
    text = text.removeprefix("positional arguments:\n").replace("\noptions:\n", "")
    return COMMON.sub("", FORMAT.sub("", text)).removeprefix("options:\n")


def repeated_options() -> list[str]:
    """Return the options that several commands have, each once."""
    options = Counter(m[0] for command in COMMANDS for m in OPTION.finditer(own_help(command)))
    return [option for option, n in options.items() if n >= REPEATED]


def help_of(command: str) -> str:
    """Return what the page shows of a command; "anymix" stands for `anymix --help`."""
    if command == "anymix":
        return overview() + "\n"
    if command == "options":
        text = full_help("table show")
        several = ["\nseveral commands:\n", *repeated_options(), *FORMAT.findall(text)]
        return "".join(["all commands:\n", *COMMON.findall(text), *several])
    tables = " [FORMAT]" if FORMAT.search(full_help(command)) else ""
    usage = " ".join(full_help(command).partition("\n\n")[0].split())
    required = OPTIONAL.sub("", usage).removeprefix(f"usage: anymix {command}")
    text, above = own_help(command), []
    for option in repeated_options():
        if option in text:
            text = text.replace(option, "", 1)
            above.append(option.split()[0])
    text = text.rstrip("\n")
    more = f"  {', '.join(above)}: see above\n" if above else ""
    first = f"usage: anymix {command} [OPTIONS]{tables}{required}\n"
    return first + (f"\n{text}\n{more}" if text else "")


def render(page: str) -> str:
    """Return the page with every help block as it should be."""
    found = [match.group(2) for match in BLOCK.finditer(page)]
    missing = {"anymix", "options", *COMMANDS} - set(found)
    if missing:
        raise ValueError(f"{PAGE.name} has no help block for {sorted(missing)}.")
    return BLOCK.sub(lambda m: m.group(1) + help_of(m.group(2)) + m.group(3), page)


def main() -> None:
    """Write the page if it has changed."""
    old = PAGE.read_text(encoding="utf-8")
    new = render(old)
    if new != old:
        PAGE.write_text(new, encoding="utf-8")
        sys.stdout.write(f"wrote {PAGE}\n")


if __name__ == "__main__":
    main()
