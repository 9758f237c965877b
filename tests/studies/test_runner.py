import io
import json

import pytest

from anymix.cli import main
from anymix.studies import runner, theory
from anymix.studies.runner import ProgressLine, Result, mean_rows, read_records, run_study


@pytest.fixture(autouse=True)
def _few_points(monkeypatch):
    monkeypatch.setattr(theory, "N_POINTS", 60)


def test_the_same_seeds_give_the_same_records_and_the_file_keeps_every_digit(tmp_path):
    path = tmp_path / "deep" / "theory.jsonl"
    first = run_study("theory", n_seeds=1, out=path)
    head, read = read_records(path)
    assert read == first == run_study("theory", n_seeds=1)
    assert head["study"] == "theory"
    assert head["command"] == "anymix study theory --seeds 1"
    assert head["seconds"] >= 0
    assert head["processor_seconds"] >= 0
    assert [json.loads(line) for line in path.read_text().splitlines()[1:]] == [
        r.to_dict() for r in first
    ]


def test_other_seeds_give_other_records():
    one, two = ({r.seed for r in run_study("theory", n_seeds=n)} for n in (1, 2))
    assert (one, two) == ({0}, {0, 1})


@pytest.mark.parametrize(("name", "n", "word"), [("nothing", 1, "no study"), ("theory", 0, "seed")])
def test_wrong_calls_are_refused_in_a_sentence(name, n, word):
    with pytest.raises(ValueError, match=word):
        run_study(name, n_seeds=n)


def test_the_data_folder_comes_from_the_argument_or_the_environment(monkeypatch, tmp_path):
    seen = []

    class Module:
        @staticmethod
        def run(data, seeds, progress):
            seen.append(data)
            return iter(())

    monkeypatch.setattr(runner, "import_module", lambda name: Module)
    monkeypatch.setenv("ANYMIX_DATA", "/elsewhere")
    run_study("theory", tmp_path, 1)
    run_study("theory", None, 1)
    monkeypatch.delenv("ANYMIX_DATA")
    run_study("theory", None, 1)
    assert [str(path) for path in seen] == [str(tmp_path), "/elsewhere", "None"]


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


def test_the_command_prints_the_tables(capsys, tmp_path):
    given = ["theory", "--seeds", "1", "--out", str(tmp_path / "r.jsonl"), "--style", "latex"]
    assert main(["study", *given]) == 0
    shown = capsys.readouterr()
    assert r"\begin{tabular}" in shown.out
    assert "[1/1] seed 0" in shown.err
    assert (tmp_path / "r.jsonl").exists()


def test_missing_data_end_the_command_with_a_sentence(capsys, tmp_path):
    assert main(["study", "sentiment", "--data", str(tmp_path)]) != 0
    told = capsys.readouterr().err
    assert "domain_sentiment_data.tar.gz is not in" in told
    assert "ANYMIX_DATA" in told


def test_each_study_has_its_usual_number_of_seeds():
    seeds = {r.seed for r in run_study("theory")}
    assert seeds == set(range(runner.STUDIES["theory"]))


def test_mean_rows_average_the_columns_of_each_seed():
    cells = [
        Result("s", "T", "clean", "DW", column, "MSE", seed, value)
        for seed, column, value in [(0, "a", 1.0), (0, "b", 3.0), (1, "a", 5.0), (1, "c", 9.0)]
    ]
    assert [(r.seed, r.target, r.value) for r in mean_rows(cells, ("a", "b"))] == [
        (0, "mean", 2.0),
        (1, "mean", 5.0),
    ]
