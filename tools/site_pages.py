"""A hook of mkdocs: the site has the repository's pages at their places in the repository.

A link of a page then leads to the same thing on the site as beside the sources.  Python files that
a page links to become pages, and the API is written from the docstrings, a page for each room.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

# mkdocs runs this file by itself.
sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
sys.path.insert(0, str(Path(__file__).parents[1]))

from tools import api_page

ROOT = Path(__file__).parents[1]

API = "docs/api.md"
PROSE = ("*.md", "docs/**/*.md", "examples/*.md")
ASSETS = ("docs/images/*", "docs/site/*")
LINK = re.compile(r"(\]\((?!https?:)[^)#\s]+\.py)(?=[)#])")
# Classes whose methods are told whole, also those that they inherit.
WHOLE = ("DistributionWeightedClassifier", "DistributionWeightedRegressor")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """List the rooms of the API in the navigation."""
    rooms = [{name: _room_page(name)} for name in api_page.ROOMS]
    config.nav = [
        {"API": [API, *rooms]} if entry == {"API": API} else entry for entry in config.nav
    ]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Put the repository's pages in place of those that mkdocs found, which have lost `docs/`."""
    for file in list(files):
        if file.src_dir == config.docs_dir:
            files.remove(file)
    for path in [*_found(PROSE), *_found(ASSETS)]:
        if path != API:
            files.append(_file(config, path))
    for path, text in {**_api_pages(), **_code_pages()}.items():
        files.append(_file(config, path, text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Send links to Python files to their pages, and colour prompts as prompts."""
    markdown = re.sub(r"^```python\n(?=>>>)", "```pycon\n", markdown, flags=re.MULTILINE)
    return LINK.sub(r"\1.md", markdown)


def _found(patterns: tuple[str, ...]) -> list[str]:
    found = {path for pattern in patterns for path in ROOT.glob(pattern)}
    return sorted(path.relative_to(ROOT).as_posix() for path in found)


def _file(config: MkDocsConfig, path: str, text: str | None = None) -> File:
    """Return a page under its path in the repository, with an address that does without `docs/`."""
    file = File(path, str(ROOT), config.site_dir, use_directory_urls=True)
    if text is not None:
        file = File.generated(config, path, content=text)
    file.dest_uri = file.dest_uri.removeprefix("docs/")
    return file


def _api_pages() -> dict[str, str]:
    """Return one page for each room, and an index in place of the one long page."""
    pages, index = {}, api_page.HEAD.replace("; do not edit it here", "")
    for name in api_page.ROOMS:
        room = import_module(name)
        pages[_room_page(name)] = f"# {name}\n\n{inspect.getdoc(room)}\n\n" + "".join(
            _entries(room)
        )
        path = _room_page(name).removeprefix("docs/")
        index += f"## [{name}]({path})\n\n" + "".join(_summaries(room, path)) + "\n"
    return {API: index, **pages}


def _room_page(name: str) -> str:
    return f"docs/api/{name.removeprefix('anymix.')}.md"


def _entries(room: Any) -> Iterator[str]:
    for name in api_page.public(room):
        thing = getattr(room, name)
        if api_page.is_constant(thing):
            yield f"## {name}\n\n{api_page.constant(thing)}"
        else:
            inherited = "true" if name in WHOLE else "false"
            yield f"::: {_place(thing)}\n    options:\n      inherited_members: {inherited}\n\n"


def _place(thing: Any) -> str:
    return f"{thing.__module__}.{thing.__qualname__}"


def _summaries(room: Any, path: str) -> Iterator[str]:
    for name in api_page.public(room):
        thing = getattr(room, name)
        constant = api_page.is_constant(thing)
        anchor = name.lower() if constant else _place(thing)
        summary = "" if constant else (inspect.getdoc(thing) or "").split("\n\n")[0]
        yield f"- [`{name}`]({path}#{anchor}): {' '.join(summary.split())}\n"


def _code_pages() -> dict[str, str]:
    """Return a page for each Python file that some page links to."""
    linked = set()
    for page in _found(PROSE):
        for target in LINK.findall((ROOT / page).read_text(encoding="utf-8")):
            place = (ROOT / page).parent / target.removeprefix("](")
            linked.add(place.resolve().relative_to(ROOT).as_posix())
    return {f"{path}.md": _code_page(PurePosixPath(path)) for path in sorted(linked)}


def _code_page(path: PurePosixPath) -> str:
    """Return a file as a page; an example begins with its story and its picture."""
    code = (ROOT / path).read_text(encoding="utf-8")
    head, picture = f"# {path}\n\n", f"docs/images/{path.stem.removeprefix('plot_')}.png"
    if path.parent.name == "examples" and (ROOT / picture).exists():
        story = ast.get_docstring(ast.parse(code)) or ""
        title, _, rest = story.partition("\n\n")
        head = f"# {title.rstrip('.')}\n\n{rest}\n\n![{title}](../{picture})\n\n## {path}\n\n"
    return f"---\nsearch:\n  exclude: true\n---\n\n{head}````python\n{code}````\n"
