"""One place for version, licence and Python versions; README and workflow agree with it."""

import re
import tomllib

import anymix
from tests.house.source_tree import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_version_is_stated_once():
    assert PROJECT["dynamic"] == ["version"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", anymix.__version__)
    assert f"## {anymix.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_licence_and_python_agree():
    assert PROJECT["license"] == "BSD-3-Clause"
    assert (ROOT / "LICENSE").read_text(encoding="utf-8").startswith("BSD 3-Clause")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "BSD-3-Clause" in readme
    least = PROJECT["requires-python"].removeprefix(">=")
    assert f"Python {least}" in readme
    assert f'"{least}"' in (ROOT / ".github/workflows/test.yml").read_text(encoding="utf-8")


def test_ci_runs_the_readme_command():
    assert "make test" in (ROOT / ".ci/run").read_text(encoding="utf-8")
    assert "make test" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_links_of_the_pages_lead_somewhere():
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if not target.startswith(("http", "mailto")):
                assert (page.parent / target).exists(), f"{page.name}: {target}"
