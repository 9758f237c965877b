"""Pages made of docstrings agree with them, and every page and name can be found."""

import re
from importlib import import_module

import pytest

from tests.house.source_tree import LIBRARY, ROOT
from tools import api_page

PAGE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
PROSE = ["quickstart.md", "choosing.md", "losses.md", "paper_map.md"]
PROSE += [f"tutorials/{path.name}" for path in TUTORIALS]


def test_the_api_page_is_what_the_docstrings_say():
    assert api_page.render() == PAGE, "run `make docs`"


def test_every_public_name_is_on_the_api_page():
    headings = re.findall(r"^### (\w+)$", PAGE, flags=re.MULTILINE)
    assert len(headings) == len(set(headings))
    names = {n for room in ("anymix", *api_page.ROOMS) for n in import_module(room).__all__}
    assert not {name for name in names if not name.startswith("_")} - set(headings)


def test_every_room_is_on_the_api_page():
    """The command has a page of its own."""
    rooms = {f"anymix.{path.parent.name}" for path in LIBRARY.glob("*/__init__.py")}
    assert rooms - {"anymix.cli"} <= set(api_page.ROOMS)


def test_every_public_name_is_described():
    for room in api_page.ROOMS:
        for name in api_page.public(import_module(room)):
            if api_page.is_constant(getattr(import_module(room), name)):
                continue
            entry = PAGE.split(f"\n### {name}\n")[1].split("\n## ")[0].split("\n### ")[0]
            assert len(entry.replace(name, "").split()) > 5, name


def test_changed_docstrings_change_the_page(monkeypatch):
    from anymix.core import solve

    monkeypatch.setattr(solve, "__doc__", "Find z quickly.")
    assert api_page.render() != PAGE


@pytest.mark.parametrize("page", PROSE)
def test_pages_end_their_doctests_before_the_fence(page):
    """A closing fence right after output would be taken for output."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        assert ">>>" not in block or block.endswith("\n\n"), block


@pytest.mark.parametrize("page", [*PROSE, "api.md"])
def test_names_in_backticks_exist(page):
    """`anymix.core.solve` and the like must be importable."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    for dotted in re.findall(r"`(anymix(?!\.toml)(?:\.\w+)+)`", text):
        module, _, name = dotted.rpartition(".")
        try:
            import_module(dotted)
        except ModuleNotFoundError:
            assert hasattr(import_module(module), name), dotted


@pytest.mark.parametrize("page", PROSE)
def test_calls_in_backticks_are_on_the_api_page(page):
    """`GaussianKDE(...)` and `novelty(X)` must be names that the API page describes."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    for name in re.findall(r"`(\w+)\(", re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
        assert re.search(rf"(### |`){name}\b", PAGE), name
