"""Ceilings on what the whole library costs a reader: lines, records, names, and calls per task.

A ceiling may fall and must not rise: a change that needs a higher one needs a reason first.
"""

import ast
import warnings
from collections import Counter
from importlib import import_module

import pytest

from tests.house.source_tree import LIBRARY, MODULES, Module, made_up, room
from tools import trace

# Raised for version 0.4.0: comparison with pooled models, boosted trees of other libraries, and
# models by sums over sites.
MOST_LINES = 53_500
MOST_FILES = 262
MOST_RECORDS = 140
MOST_MODULES_OF_ONE_NAME = 0
MOST_CLASSES_OF_ONE_NAME = 0
MOST_PRIVATE_SHARE = 0.01
# Call -> most functions and most files of the library that it may run.
MOST_TRACED = {
    "fit": (530, 78),
    "predict_proba": (60, 20),
    "anymix fit": (600, 100),
    "anymix predict": (280, 70),
}
ROOMS = sorted(path.parent.name for path in LIBRARY.glob("*/__init__.py"))
# A module of these names says nothing but what its package is.
NAMELESS = ("__init__", "__main__")


def is_record(node: ast.AST) -> bool:
    """Whether a class is made of fields: a NamedTuple, a dataclass or a `Record` of ours."""
    if not isinstance(node, ast.ClassDef):
        return False
    bases = {getattr(base, "id", getattr(base, "attr", "")) for base in node.bases}
    decorators = {getattr(d, "func", d) for d in node.decorator_list}
    names = {getattr(d, "id", getattr(d, "attr", "")) for d in decorators}
    return bool(bases & {"NamedTuple", "Record"} or "dataclass" in names)


def private_imports(module: Module) -> tuple[list[str], int]:
    """Names from other packages that are not in their `__all__`, and how many come from others."""
    private, total = [], 0
    for source, name in module.imports():
        other = room(source)
        if other not in ROOMS or other == module.room:
            continue
        total += 1
        if source != f"anymix.{other}" or name not in import_module(source).__all__:
            private.append(f"{module.name} takes {source}.{name}")
    return private, total


def repeated(names: list[str]) -> list[str]:
    return sorted(name for name, n in Counter(names).items() if n > 1)


def test_the_library_does_not_grow():
    assert sum(module.text.count("\n") for module in MODULES) <= MOST_LINES
    assert len(MODULES) <= MOST_FILES


def test_record_types_do_not_multiply():
    records = [name for m in MODULES for name, node in m.definitions() if is_record(node)]
    assert len(records) <= MOST_RECORDS


def test_packages_use_what_others_list():
    """A name that another package needs is public: it is in `__all__`, and so described."""
    each = [private_imports(module) for module in MODULES]
    private = sorted(name for names, _ in each for name in names)
    assert len(private) <= MOST_PRIVATE_SHARE * sum(n for _, n in each), "\n".join(private)


def test_no_two_modules_have_one_name():
    stems = [module.name.rsplit(".", 1)[1] for module in MODULES if not module.is_package]
    twice = repeated([stem for stem in stems if stem not in NAMELESS])
    assert len(twice) <= MOST_MODULES_OF_ONE_NAME, twice


def test_no_two_classes_have_one_name():
    classes = [n.name for m in MODULES for n in m.tree.body if isinstance(n, ast.ClassDef)]
    twice = repeated(classes)
    assert len(twice) <= MOST_CLASSES_OF_ONE_NAME, twice


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return trace.of_the_library() | trace.of_the_command(tmp_path_factory.mktemp("traced"))


@pytest.mark.parametrize("call", MOST_TRACED)
def test_a_call_runs_few_functions_in_few_files(traces, call):
    functions, files = MOST_TRACED[call]
    assert len(traces[call].functions) <= functions, str(traces[call])
    assert len(traces[call].files) <= files, str(traces[call])


def test_what_is_traced_has_done_its_work(traces):
    """A refusal would run few functions, too."""
    assert any(name.endswith(".fit") for name in traces["fit"].names("estimators"))
    for call in ("anymix fit", "anymix predict"):
        assert len(traces[call].names("models")) > 10


def test_a_refused_command_is_not_traced(tmp_path):
    with pytest.raises(RuntimeError, match="ended with exit code"):
        trace._run(["predict", str(tmp_path / "no-model"), str(tmp_path / "no-rows.csv")])


@pytest.mark.parametrize(
    "text",
    [
        "class A(NamedTuple): ...",
        "class A(typing.NamedTuple): ...",
        "@dataclass\nclass A: ...",
        "@dataclass(frozen=True)\nclass A: ...",
        "@dataclasses.dataclass\nclass A: ...",
        "class A(Record): ...",
    ],
)
def test_records_are_recognised(text):
    assert [is_record(node) for _, node in made_up(text).definitions()] == [True]


def test_other_classes_are_no_records():
    text = "class A(Protocol): ...\nclass B: ...\n@final\nclass C: ..."
    assert not any(is_record(node) for _, node in made_up(text).definitions())


@pytest.mark.parametrize(
    ("text", "n_private", "n"),
    [
        ("from anymix.core import Problem, solve", 0, 2),
        ("from anymix.core.problem import Problem", 1, 1),
        ("from anymix.core import no_such_name", 1, 1),
        ("import anymix.core", 1, 1),
        ("from anymix.sources.source import Source\nimport numpy", 0, 0),
        ("from anymix._arrays import FloatArray", 0, 0),
    ],
)
def test_private_imports_are_counted(text, n_private, n):
    private, total = private_imports(made_up(text))
    assert (len(private), total) == (n_private, n)
