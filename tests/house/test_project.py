"""One place for version, licence and Python versions; README and workflow agree with it."""

import re
import tomllib

from packaging.version import Version

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


def test_the_same_pythons_are_promised_and_tested():
    """A version that is named in one place only is promised and not tried, or tried in vain."""
    named = [line.rsplit(" ", 1)[1] for line in PROJECT["classifiers"] if ":: 3." in line]
    workflow = (ROOT / ".github/workflows/test.yml").read_text(encoding="utf-8")
    tried = re.findall(r"python: \[(.*)\]", workflow)
    assert tried
    assert all(re.findall(r"[\d.]+", row) == named for row in tried)


def test_the_lowest_versions_that_are_tried_are_those_that_are_allowed():
    extras = PROJECT["optional-dependencies"]
    bounds = [*PROJECT["dependencies"], *extras["exchange"]]
    allowed = dict(one.split(">=") for one in bounds)
    lines = (ROOT / "constraints-lowest.txt").read_text(encoding="utf-8").splitlines()
    tried = dict(line.split("==") for line in lines if not line.startswith("#"))
    each = [{name: Version(one) for name, one in pins.items()} for pins in (allowed, tried)]
    assert each[0] == each[1]


def test_flower_is_pinned_for_the_tests_alone():
    extras = PROJECT["optional-dependencies"]
    assert [one for one in extras["test"] if one.startswith("flwr==")]
    assert not [one for one in extras["flower"] if "==" in one]


def test_whoever_cites_names_this_version():
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {anymix.__version__}\n" in cited
    assert f"\nlicense: {PROJECT['license']}\n" in cited


def test_nothing_says_that_it_is_published():
    """Until it is, `pip install anymix` would install what a stranger puts there."""
    published = re.compile(r"pip install [^\n`]*\banymix\b")
    kinds = ("*.md", "src/**/*.py", "docs/**/*.md", "examples/*", ".github/**/*.yml")
    for path in (path for kind in kinds for path in ROOT.glob(kind) if path.is_file()):
        assert not published.search(path.read_text(encoding="utf-8")), path


def test_the_release_goes_the_way_that_is_tried_by_hand():
    release = (ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")
    assert "make dist" in release
    assert "id-token: write" in release
    assert "password" not in release


def test_ci_runs_the_readme_command():
    assert "make test" in (ROOT / ".ci/run").read_text(encoding="utf-8")
    assert "make test" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_links_of_the_pages_lead_somewhere():
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        prose = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", prose):
            if not target.startswith(("http", "mailto")):
                assert (page.parent / target).exists(), f"{page.name}: {target}"
