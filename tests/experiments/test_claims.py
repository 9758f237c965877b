"""The committed records of the reviews: complete, quoted right, and counted with all rivals."""

from collections import Counter
from statistics import mean

import pytest

from experiments.claims import cells, duels, others
from experiments.paper_numbers import columns, published
from experiments.runner import read_records
from experiments.sentiment import TABLES
from tools.results import RECORDS

HEAD, SENTIMENT = read_records(RECORDS / "sentiment.jsonl")
SINGLE = ["K", "D", "B", "E"]
KMM = ["KMM", "KMM, tolerance 1e-4", "KMM, kernel ridge"]


def test_every_cell_of_the_papers_tables_has_a_value_for_each_split_beside_it():
    count = Counter((r.table, r.protocol, r.method, r.target) for r in SENTIMENT)
    apart = {name: len(part["of_seeds"]) for part in HEAD["parts"] for name in part["methods"]}
    assert set(apart) <= set(KMM), "all else was run on all splits"
    assert min(apart.values()) >= 3
    for table in TABLES:
        for method, column in [
            *published(table),
            *((name, c) for name in KMM for c in columns(table)),
        ]:
            for protocol in ("as published", "clean"):
                assert count[table, protocol, method, column] == apart.get(method, 10)


def test_the_paper_is_quoted_right():
    for r in SENTIMENT:
        if r.table in TABLES and r.paper is not None:
            assert (r.paper, r.paper_sd) == published(r.table)[r.method, r.target]


@pytest.mark.parametrize("method", [*SINGLE, "unif"])
def test_base_errors_are_within_the_papers_deviations(method):
    near = [
        abs(mean(values.values()) - published(table)[method, column][0])
        <= published(table)[method, column][1]
        for column, values in cells(SENTIMENT, (method, "as published")).items()
        for table in TABLES
        if (method, column) in published(table)
    ]
    assert sum(near) >= 24


def test_all_rivals_of_the_paper_are_counted_the_privileged_too():
    rivals = [name for name, _ in others(SENTIMENT, ("DW", "as published"), "as published")]
    assert rivals == [*SINGLE, "unif", *KMM, "λ-comb"]
    for duel in duels(SENTIMENT, ("DW", "as published"), [("λ-comb", "as published")]):
        assert duel.rival == "λ-comb*"
        assert "KE" in duel.on("below"), "on kitchen and electronics λ-comb is the better one"


def test_a_duel_is_what_the_means_say():
    (duel,) = duels(SENTIMENT, ("DW", "clean"), [("unif", "clean")])
    ours, theirs = (
        {c: mean(v.values()) for c, v in cells(SENTIMENT, (name, "clean")).items()}
        for name in ("DW", "unif")
    )
    assert len(ours) == len(duel.gains) == 25, "KD and BE stand in two tables and count once"
    assert duel.mean.difference == pytest.approx(mean(theirs.values()) - mean(ours.values()))
    for column, gain in duel.gains.items():
        assert gain.difference == pytest.approx(theirs[column] - ours[column])


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="No record"):
        cells(SENTIMENT, ("DW", "beyond"))
