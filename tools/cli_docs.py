"""Put the options of every command into docs/cli.md: `python tools/cli_docs.py`.

Options that all commands share, and those of all tables, stand on the page once.
"""

from __future__ import annotations

import re
import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from anymix.cli import COMMANDS, build_parser, overview

PAGE = Path(__file__).parents[1] / "docs" / "cli.md"
BLOCK = re.compile(r"(<!-- help: (.*?) -->\n```text\n).*?(```\n)", re.DOTALL)
WIDTH = 110
# A bracketed option of a usage line, with one level of brackets inside.
OPTIONAL = re.compile(r" \[-(?:[^\[\]]|\[[^\]]*\])*\]")
SHARED = re.compile(r"  (?:-h, --help|--json|--quiet) .*\n")
FORMAT = re.compile(r"\nformat of tables.*?\n(?:  .*\n)*")


def full_help(command: str) -> str:
    """Return what `anymix COMMAND --help` prints, in the width of the page."""
    parser = build_parser(command)
    setattr(parser, "formatter_class", partial(parser.formatter_class, width=WIDTH))  # noqa: B010
    return parser.format_help()


def shared_help() -> str:
    """Return the options that are not repeated for each command."""
    text = full_help("table show")
    (tables,) = FORMAT.findall(text)
    return "".join(["all commands:\n", *SHARED.findall(text), tables])


def help_of(command: str) -> str:
    """Return what the page shows of a command; "anymix" stands for `anymix --help`."""
    if command == "anymix":
        return overview() + "\n"
    if command == "options":
        return shared_help()
    usage, _, text = full_help(command).partition("\n\n")
    required = OPTIONAL.sub("", " ".join(usage.split())).removeprefix(f"usage: anymix {command}")
    tables = " [FORMAT]" if FORMAT.search(text) else ""
    _, _, text = text.partition("\n\n")  # the description: the page has its own
    text = SHARED.sub("", FORMAT.sub("", text)).removesuffix("options:\n").rstrip("\n")
    first = f"usage: anymix {command} [OPTIONS]{tables}{required}\n"
    return first + (f"\n{text}\n" if text else "")


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
