"""Sentences made from records say what the records bear, and nothing else can be made."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.claim_lines import listed, read_claim, say_claim, say_duels, say_holds, say_near
from experiments.claims import Paired, cells, duels, gains, others, signed
from experiments.runner import Result
from tools import results as page


def cell(method, column, seed, value, table="Table 1", **more):
    return Result("s", table, "clean", method, column, "MSE", seed, value, **more)


def rows(**values):
    """Records of methods with one list of values a column, over seeds."""
    return [
        cell(method, column, seed, value, privileged=method == "comb")
        for method, columns in values.items()
        for column, series in columns.items()
        for seed, value in enumerate(series)
    ]


RECORDS = rows(
    DW={"K": [1.0, 1.1, 1.2], "D": [2.0, 2.1, 2.0], "KD": [1.5, 1.6, 1.6]},
    unif={"K": [1.5, 1.65, 1.7], "D": [2.0, 2.0, 2.1], "KD": [1.8, 1.8, 1.9]},
    comb={"K": [1.0, 1.1, 1.2], "D": [1.5, 1.6, 1.4], "KD": [1.9, 2.0, 2.3]},
)


def test_a_duel_counts_what_is_won_level_and_lost():
    assert say_duels(RECORDS, "DW; clean").splitlines()[2:] == [
        "- unif: won 2, level 1 (D), lost 0 of 3 columns; better on the mean, +0.261 ± 0.024.",
        "- comb*: won 1, level 1 (K), lost 1 (D) of 3 columns; level on the mean, −0.011 ± 0.022.",
    ]


def test_holds_names_whom_and_where_not():
    assert say_holds(RECORDS, "DW; clean").startswith(
        "DW is better on all 3 columns than none of the rows; not so against unif (level on D) "
        "and comb* (level on K; worse on D). <!-- holds: DW; clean; clean; all -->"
    )


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        ("DW; clean; better; unif; clean; K, KD", "DW is better than unif on K, KD: "),
        ("DW; clean; worse; comb; clean; D", "DW is worse than comb* on D: −0.53"),
        ("DW; clean; no worse; unif; clean; all", "DW is nowhere worse than unif on all 3 "),
        (
            "DW; clean; level; comb; clean; mean",
            "DW is level with comb* on the mean: −0.011 ± 0.022",
        ),
        ("DW; clean; ?; unif + comb; clean; K", "DW is better than unif on K: "),
    ],
)
def test_a_claim_that_the_records_bear_is_said(claim, said):
    sentence = say_claim(RECORDS, claim)
    assert sentence.startswith(said)
    assert sentence.endswith(f"<!-- claim: {claim} -->")


@pytest.mark.parametrize(
    "claim",
    [
        "DW; clean; better; unif; clean; all",
        "DW; clean; better; comb; clean; K",
        "DW; clean; worse; unif; clean; D",
        "DW; clean; level; unif; clean; mean",
        "DW; clean; no worse; comb; clean; all",
    ],
)
def test_a_claim_that_they_do_not_bear_is_refused(claim):
    with pytest.raises(ValueError, match="do not bear"):
        say_claim(RECORDS, claim)


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        ("DW; clean; better; unif; clean", "is no claim"),
        ("DW; clean; best; unif; clean; all", "is no claim"),
        ("DW; clean; better; nobody; clean; all", "No record of"),
        ("DW; clean; better; unif; clean; Q", "No record of"),
        ("DW; clean; better; unif; clean; K, Q", "not all of"),
    ],
)
def test_wrong_lines_are_refused_in_a_sentence(claim, words):
    with pytest.raises(ValueError, match=words):
        say_claim(RECORDS, claim)


def test_an_unknown_line_is_refused():
    with pytest.raises(ValueError, match="is none of"):
        page.fill("{praise DW; clean}", RECORDS)


def test_a_column_of_two_tables_counts_once_and_must_agree():
    twice = [
        *RECORDS,
        *(cell(r.method, "KD", r.seed, r.value, "Table 5") for r in RECORDS if r.target == "KD"),
    ]
    assert len(gains(twice, ("DW", "clean"), ("unif", "clean"))) == 3
    assert duels(twice, ("DW", "clean"), [("unif", "clean")])[0].mean == pytest.approx(
        duels(RECORDS, ("DW", "clean"), [("unif", "clean")])[0].mean
    )
    with pytest.raises(ValueError, match="Two tables differ on KD"):
        cells([*RECORDS, cell("DW", "KD", 0, 9.0, "Table 5")], ("DW", "clean"))


def test_privileged_rows_are_rivals_too():
    assert others(RECORDS, ("DW", "clean"), "clean") == [("unif", "clean"), ("comb", "clean")]


def test_the_mean_of_a_table_is_no_column_of_it():
    made = [
        Result("s", "Table 3", "clean", m, c, "accuracy, %", s, v)
        for m, up in (("DW", 1.0), ("unif", 0.0))
        for c, v0 in (("a", 90.0), ("b", 80.0), ("mean", 70.0))
        for s, v in enumerate((v0 + up, v0 + 2 * up, v0 + 3 * up))
    ]
    (duel,) = duels(made, ("DW", "clean"), [("unif", "clean")])
    assert list(duel.gains) == ["a", "b"]
    assert duel.mean == pytest.approx(Paired(2.0, 1 / np.sqrt(3)))


def test_a_rival_with_fewer_seeds_is_paired_on_those_and_it_is_said():
    more = [cell("DW", c, 3, 1.0) for c in ("K", "D", "KD")]
    fewer = [*RECORDS, *more]
    duel = duels(fewer, ("DW", "clean"), [("unif", "clean")])[0]
    assert duel.gains["K"].difference == pytest.approx(np.mean([0.5, 0.55, 0.5]))
    assert duel.sentence.endswith("(on 3 of 4 seeds)")
    with pytest.raises(ValueError, match="needs 3 seeds"):
        duels([r for r in RECORDS if r.seed < 2], ("DW", "clean"), [("unif", "clean")])


def test_cells_near_the_papers_are_counted_once():
    near = [
        cell("DW", c, 0, v, t, paper=1.0, paper_sd=0.1)
        for t, c, v in (("Table 1", "K", 1.05), ("Table 1", "KD", 1.2), ("Table 5", "KD", 1.2))
    ]
    assert say_near(near, "DW; clean") == "1 of 2"


@given(
    st.lists(
        st.tuples(st.floats(-5, 5, width=32), st.floats(-5, 5, width=32)), min_size=3, max_size=12
    ),
    st.booleans(),
)
def test_a_gain_is_the_mean_of_the_paired_differences(pairs, accuracy):
    metric = "accuracy, %" if accuracy else "MSE"
    made = [
        Result("s", "Table 1", "clean", name, "K", metric, seed, pair[i])
        for seed, pair in enumerate(pairs)
        for i, name in enumerate(("DW", "unif"))
    ]
    gap = np.array([a - b for a, b in pairs]) * (1 if accuracy else -1)
    found = gains(made, ("DW", "clean"), ("unif", "clean"))["K"]
    assert found.difference == pytest.approx(gap.mean(), abs=1e-12)
    assert found.error == pytest.approx(gap.std(ddof=1) / np.sqrt(len(gap)), abs=1e-12)
    swapped = gains(made, ("unif", "clean"), ("DW", "clean"))["K"]
    turned = {"above": "below", "below": "above", "level": "level"}
    assert swapped.verdict == turned[found.verdict]


def test_names_and_numbers_are_written_plainly():
    assert listed([]) == ""
    assert signed(Paired(0.5, 0.0)) == "+0.5"
    assert read_claim("a; b; ?; c + d; e; mean").rivals == [("c", "e"), ("d", "e")]
