import io
import json

import pytest

from experiments import runner
from experiments.__main__ import main
from experiments.fetch import DataNotFoundError
from experiments.runner import (
    ProgressLine,
    Result,
    mean_rows,
    read_records,
    rehearse_study,
    run_study,
)


class Quick:
    """A study of one record a seed, in the place of the study of the theorems."""

    def __init__(self):
        self.folders = []

    def run(self, data, seeds, progress):
        self.folders.append(data)
        return self.rehearse(seeds, progress)

    def rehearse(self, seeds, progress):
        for i, seed in enumerate(seeds):
            yield Result("theory", "Cor. 2, η", "as published", "DW", "1", "loss", seed, 1 / 3 + i)
            progress(i + 1, len(seeds), f"seed {seed}")


@pytest.fixture
def quick(monkeypatch):
    module = Quick()
    monkeypatch.setattr(runner, "import_module", lambda name: module)
    return module


def test_the_file_keeps_every_digit_and_says_how_it_came_about(tmp_path, quick):
    path = tmp_path / "deep" / "theory.jsonl"
    first = run_study("theory", n_seeds=1, out=path)
    head, read = read_records(path)
    assert read == first
    assert head["study"] == "theory"
    assert head["command"] == "python -m experiments theory --seeds 1"
    assert head["seconds"] >= 0
    assert head["processor_seconds"] >= 0
    assert [json.loads(line) for line in path.read_text().splitlines()[1:]] == [
        r.to_dict() for r in first
    ]


@pytest.mark.parametrize("call", [run_study, rehearse_study])
@pytest.mark.parametrize(("name", "n", "word"), [("nothing", 1, "no study"), ("theory", 0, "seed")])
def test_wrong_calls_are_refused_in_a_sentence(call, name, n, word):
    with pytest.raises(ValueError, match=word):
        call(name, n_seeds=n)


def test_the_data_folder_comes_from_the_argument_or_the_environment(monkeypatch, tmp_path, quick):
    monkeypatch.setenv("ANYMIX_DATA", "/elsewhere")
    run_study("theory", tmp_path, 1)
    run_study("theory", None, 1)
    monkeypatch.delenv("ANYMIX_DATA")
    run_study("theory", None, 1)
    assert [str(path) for path in quick.folders] == [str(tmp_path), "/elsewhere", "None"]


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("stream", "lines"), [(io.StringIO(), 3), (Terminal(), 1)])
def test_progress_is_one_line_on_a_terminal_and_plain_lines_elsewhere(stream, lines):
    line = ProgressLine(stream)
    for done in (0, 1, 2):
        line(done, 2, "step")
    text = stream.getvalue()
    assert text.count("\n") == lines
    assert ("\x1b" in text) == stream.isatty()
    assert "[2/2] step, 0 s left" in text


def test_a_rehearsal_runs_on_so_many_seeds_and_reports(quick):
    told = []
    results = rehearse_study("theory", 2, lambda *step: told.append(step))
    assert [r.seed for r in results] == [0, 1]
    assert told == [(1, 2, "seed 0"), (2, 2, "seed 1")]
    assert not quick.folders


def test_the_command_prints_the_tables(capsys, tmp_path):
    given = ["artificial", "--seeds", "1", "--out", str(tmp_path / "r.jsonl"), "--style", "latex"]
    assert main(given) == 0
    shown = capsys.readouterr()
    assert r"\begin{tabular}" in shown.out
    assert "[1/1] seed 0" in shown.err
    assert (tmp_path / "r.jsonl").exists()


def test_missing_data_end_the_command_with_a_sentence(capsys, tmp_path):
    with pytest.raises(DataNotFoundError) as raised:
        main(["sentiment", "--data", str(tmp_path)])
    told = str(raised.value)
    assert "domain_sentiment_data.tar.gz is not in" in told
    assert "ANYMIX_DATA" in told


@pytest.mark.parametrize("name", runner.STUDIES)
def test_each_study_has_its_usual_number_of_seeds(name, quick):
    assert [r.seed for r in run_study(name)] == [*range(runner.STUDIES[name])]


def test_mean_rows_average_the_columns_of_each_seed():
    cells = [
        Result("s", "T", "clean", "DW", column, "MSE", seed, value)
        for seed, column, value in [(0, "a", 1.0), (0, "b", 3.0), (1, "a", 5.0), (1, "c", 9.0)]
    ]
    assert [(r.seed, r.target, r.value) for r in mean_rows(cells, ("a", "b"))] == [
        (0, "mean", 2.0),
        (1, "mean", 5.0),
    ]
