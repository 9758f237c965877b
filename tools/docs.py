"""Write the pages that are made of docstrings: `python tools/docs.py`, or `make docs`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tools import api_page, paper_map


def pages() -> dict[Path, str]:
    """Return each page with the text that it should have."""
    return {
        paper_map.PAGE: paper_map.render(paper_map.PAGE.read_text(encoding="utf-8")),
        api_page.PAGE: api_page.render(),
    }


def main() -> None:
    """Write what has changed and say so."""
    for path, text in pages().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            sys.stdout.write(f"wrote {path}\n")


if __name__ == "__main__":
    main()
