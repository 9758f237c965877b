"""Rows that are run alone come into the records of the whole, and the header says so."""

import json

import pytest

from experiments import parts, runner
from experiments.parts import merge, run_part
from experiments.runner import Result, read_records, write_records
from tools import part as command


def cell(method, seed, value, protocol="clean", study="sentiment"):
    return Result(study, "Table 1", protocol, method, "K", "MSE", seed, value)


class Study:
    @staticmethod
    def run_part(data, seeds, progress, only):
        for seed in seeds:
            for name in ("KMM", "KMM, ridge"):
                if name in only:
                    yield cell(name, seed, 9.0 + seed)


@pytest.fixture
def whole(tmp_path):
    path = tmp_path / "whole.jsonl"
    results = [cell(m, s, 1.0) for s in (0, 1, 2) for m in ("unif", "KMM", "DW")]
    write_records(path, runner.header("sentiment", 3, 1.0, 1.0), results)
    return path


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(parts, "import_module", lambda name: Study)


def test_rows_take_the_place_of_the_old_and_new_ones_stand_beside(whole, tmp_path, quick):
    out = tmp_path / "part.jsonl"
    run_part("sentiment", ["KMM", "KMM, ridge"], [0, 1], out=out)
    merge(whole, [out])
    head, found = read_records(whole)
    assert [(r.seed, r.method, r.value) for r in found] == [
        *[(0, "unif", 1.0), (0, "KMM", 9.0), (0, "KMM, ridge", 9.0), (0, "DW", 1.0)],
        *[(1, "unif", 1.0), (1, "KMM", 10.0), (1, "KMM, ridge", 10.0), (1, "DW", 1.0)],
        *[(2, "unif", 1.0), (2, "KMM", 1.0), (2, "DW", 1.0)],
    ]
    (told,) = head["parts"]
    assert told["methods"] == ["KMM", "KMM, ridge"]
    assert told["of_seeds"] == [0, 1]
    assert told["version"] == runner.__version__


def test_parts_of_several_seeds_are_one_in_the_header_and_the_last_run_counts(
    whole, tmp_path, quick
):
    for seed in (0, 1):
        run_part("sentiment", ["KMM"], [seed], out=tmp_path / f"{seed}.jsonl")
    for _ in range(2):
        merge(whole, [tmp_path / "0.jsonl", tmp_path / "1.jsonl"])
    head, found = read_records(whole)
    (told,) = head["parts"]
    assert told["of_seeds"] == [0, 1]
    assert told["command"] == "python -m experiments sentiment --seeds 2"
    assert len(found) == 9


def test_what_cannot_be_run_or_merged_is_told(whole, tmp_path, quick):
    with pytest.raises(ValueError, match="runs no rows"):
        run_part("sentiment", ["KMM", "nobody"], [0])
    with pytest.raises(ValueError, match="No study 'nothing'"):
        run_part("nothing", ["KMM"], [0])
    out = tmp_path / "part.jsonl"
    run_part("sentiment", ["KMM"], [0, 7], out=out)
    with pytest.raises(ValueError, match=r"has no row of \['KMM'\]"):
        merge(whole, [out])
    other = tmp_path / "other.jsonl"
    lines = out.read_text(encoding="utf-8").splitlines()
    head = json.loads(lines[0]) | {"version": "9"}
    other.write_text("\n".join([json.dumps(head), *lines[1:]]) + "\n", encoding="utf-8")
    with pytest.raises(ValueError, match="differ in version"):
        merge(whole, [out, other])
    write_records(
        other, runner.header("office", 1, 1.0, 1.0), [cell("KMM", 0, 1.0, study="office")]
    )
    with pytest.raises(ValueError, match="holds office"):
        merge(other, [out])


def test_a_study_without_such_rows_says_so():
    with pytest.raises(ValueError, match="run the whole study"):
        run_part("theory", ["DW"], [0])


def test_the_command_runs_and_merges(whole, tmp_path, quick):
    out = tmp_path / "part.jsonl"
    command.main(["run", "sentiment", str(out), "--methods", "KMM", "--seeds", "2"])
    command.main(["merge", str(whole), str(out)])
    assert {r.seed: r.value for r in read_records(whole)[1] if r.method == "KMM"}[2] == 11.0
