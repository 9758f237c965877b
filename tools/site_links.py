"""Check every link, picture and anchor of a built site: `python tools/site_links.py site`."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit


class Page(HTMLParser):
    """The addresses that a page points to, those that it loads, and the anchors that it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loads: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember what a tag names or points to."""
        for name, value in attrs:
            if name == "id" and value:
                self.anchors.add(value)
            elif name in ("href", "src") and value and tag != "base":
                self.links.add(value)
                if tag != "a":
                    self.loads.add(value)


def broken(site: Path) -> list[str]:
    """Return "page: link" for each link within the site that leads nowhere."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    return [
        f"{path.relative_to(site)}: {link}"
        for path, page in sorted(pages.items())
        if path.name != "404.html"  # is served for any address, so its links begin at the root
        for link in sorted(page.links)
        if not _leads_somewhere(pages, path, link)
    ]


def _leads_somewhere(pages: dict[Path, Page], path: Path, link: str) -> bool:
    address, anchor = urldefrag(link)
    if urlsplit(address).scheme:
        return True
    target = (path.parent / unquote(address)).resolve() if address else path
    target = target / "index.html" if target.is_dir() else target
    if target in pages and anchor:
        return unquote(anchor) in pages[target].anchors
    return target.exists()


def main() -> int:
    """Say what is broken; the exit code is 1 if anything is."""
    found = broken(Path(sys.argv[1]).resolve())
    sys.stdout.write("".join(f"{line}\n" for line in found) or "every link leads somewhere\n")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
