"""Short functions, short files, few arguments; each exception has its reason here."""

import ast
from statistics import median

import pytest

from tests.house.source_tree import FILES, code_lines, functions, module_name, parse

# An estimator states all its parameters once, in its constructor.
MANY_ARGUMENTS_ALLOWED = {"__init__"}


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_files_are_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 300


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_functions_are_short_and_take_few_arguments(path):
    text = path.read_text(encoding="utf-8").splitlines()
    for function in functions(parse(path)):
        where = f"{module_name(path)}.{function.name}"
        assert code_lines(function, text) <= 40, where
        arguments = [a for a in function.args.args if a.arg not in ("self", "cls")]
        if function.name not in MANY_ARGUMENTS_ALLOWED:
            assert len(arguments) <= 7, where


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_classes_are_short(path):
    text = path.read_text(encoding="utf-8").splitlines()
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.ClassDef):
            assert code_lines(node, text) <= 150, f"{module_name(path)}.{node.name}"


def test_medians():
    sizes = [
        code_lines(function, path.read_text(encoding="utf-8").splitlines())
        for path in FILES
        for function in functions(parse(path))
    ]
    assert median(sizes) <= 8
    assert median(len(path.read_text(encoding="utf-8").splitlines()) for path in FILES) <= 150


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_public_things_have_docstrings_and_types(path):
    for function in functions(parse(path)):
        if function.name.startswith("_"):
            continue
        where = f"{module_name(path)}.{function.name}"
        assert function.returns is not None, where
