"""Put the help of every command into docs/cli.md: `python tools/cli_docs.py`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from anymix.cli import COMMANDS, build_parser, overview

PAGE = Path(__file__).parents[1] / "docs" / "cli.md"
BLOCK = re.compile(r"(<!-- help: (.*?) -->\n```text\n).*?(```\n)", re.DOTALL)


def help_of(command: str) -> str:
    """Return what `anymix COMMAND --help` prints; "anymix" stands for `anymix --help`."""
    if command == "anymix":
        return overview() + "\n"
    return build_parser(command).format_help()


def render(page: str) -> str:
    """Return the page with every help block as it should be."""
    found = [match.group(2) for match in BLOCK.finditer(page)]
    missing = {"anymix", *COMMANDS} - set(found)
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
