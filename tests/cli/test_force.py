"""`--force` replaces what a command has written, and no file that only looks alike."""

import numpy as np
import pytest

from anymix.cli.outputs import is_graph, is_page, is_prediction
from anymix.cli.table_writer import WRITERS, writing

OURS = [
    ["label", "p(a)", "p(b)"],
    ["label", "p(a, b)", "p(c)", "weight(north)", "weight(south)", "novelty"],
    ["prediction", "weight(north)", "weight(south)"],
    ["prediction", "novelty"],
]
FOREIGN = [
    ["label"],
    ["novelty"],
    ["label", "novelty"],
    ["label", "weight(kg)"],
    ["prediction", "p(a)"],
    ["p(a)", "label"],
    ["label", "p(a)", "weight(kg)", "p(b)"],
    ["label", "p(a)", "p"],
    ["label", "p(a)", "mine"],
    ["label", "p()"],
]


def table_of(names, path):
    with writing(path) as out:
        out.write({name: np.zeros(2) for name in names})
    return path


@pytest.mark.parametrize("suffix", WRITERS)
def test_tables_of_predictions_are_known_by_all_their_columns(tmp_path, suffix):
    for i, names in enumerate(OURS):
        assert is_prediction(table_of(names, tmp_path / f"ours{i}{suffix}")), names
    for i, names in enumerate(FOREIGN):
        assert not is_prediction(table_of(names, tmp_path / f"mine{i}{suffix}")), names
    broken = tmp_path / f"broken{suffix}"
    broken.write_bytes(b'PK\x03\x04"\xff' * 9)
    assert not is_prediction(broken)


@pytest.mark.parametrize(
    ("is_ours", "content"),
    [
        (is_page, b'notes on <meta name="generator" content="anymix">\n'),
        (is_page, b'<!doctype html>\n<meta name="generator" content="anymix">\n'),
        (is_graph, b"xx\x12\x06anymix my notes"),
        (is_graph, b"\x08\x0a\x12\x06pytorch\x12\x06anymix"),
    ],
)
def test_files_that_look_alike_are_not_ours(tmp_path, is_ours, content):
    (tmp_path / "mine").write_bytes(content)
    assert not is_ours(tmp_path / "mine")


@pytest.mark.parametrize("suffix", WRITERS)
def test_a_sole_column_of_predictions_holds_nothing_but_numbers(numbers, run, tmp_path, suffix):
    out = tmp_path / f"p{suffix}"
    words = ["predict", numbers.model, numbers.test[0].split("=")[1], "--out", out, "--force"]
    assert [run(*words).status for _ in "12"] == [0, 0]
    out.unlink()
    with writing(out) as mine:
        mine.write({"prediction": np.array(["rain", "sun"])})
    said = run(*words)
    assert (said.status, "or remove it first" in said.err) == (3, True)


@pytest.mark.parametrize("line", ["12.50", "3", "", "1.5 ", "1.5\r", "rain"])
def test_numbers_that_others_wrote_are_kept(tmp_path, line):
    (tmp_path / "p.csv").write_bytes(f"prediction\n0.25\n{line}\n".encode())
    assert not is_prediction(tmp_path / "p.csv")
