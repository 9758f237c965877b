"""Bounds that what was measured refutes say so, and name the assumption that fails."""

import numpy as np
import pytest

from anymix.core import Problem, solve
from anymix.core.guarantees.bounds import PAPERS
from anymix.core.guarantees.premises import REGRET, Assumptions, Bound, mark_contradicted
from tests.core.test_bounds import FACTS, bounds_of, named


def swapped(eta: float = 1e-3) -> Problem:
    """Each source perfect at home and far off elsewhere, and the densities those of the other."""
    rows = np.array([[0.0, 0.0, 1.0, 1.0], [3.0, 3.0, 0.0, 0.0]])
    return Problem.from_log_densities(
        [[-9.0, -9.0, 0.0, 0.0], [0.0, 0.0, -9.0, -9.0]],
        rows,
        np.zeros(4),
        eta=eta,
        sample_domain=[0, 0, 1, 1],
    )


def test_wrong_densities_refute_the_per_source_guarantee_and_are_named():
    """With the own measure and estimated densities (a) of the theorem says nothing."""
    problem = swapped()
    z = solve(problem, "gamma").z
    bounds = bounds_of(problem, z, Assumptions(alpha=2.0, target_divergence=1.0))
    refuted = {bound.paper for bound in bounds if bound.contradicted}
    every = {f"{paper}{proof}" for paper in PAPERS for proof in ("", ", proof")}
    assert refuted == every | {"Cor. 10"}
    said = named(bounds, "Lemma 4, Cor. 2").contradicted
    assert said == (
        f"{problem.regret(z):.4g} was measured, more than "
        f"{named(bounds, 'Lemma 4, Cor. 2').value:.4g}: the densities in use are not the sources' "
        "own, or the sources do not share one conditional."
    )
    assert "It rests on “loss on any mixture”" in named(bounds, "Cor. 10").contradicted


@pytest.mark.parametrize(
    ("low", "said"),
    [
        (None, "0.5 was measured, more than 0.4: the densities"),
        (0.45, "0.5 was measured, more than 0.4, and 0.45 or more with 95 % confidence: the densi"),
        (0.3, "more than 0.4, and 0.3 or more with 95 % confidence: unless that is chance, the d"),
        (-np.inf, "0.5 was measured, more than 0.4: unless that is chance, the densities"),
    ],
)
def test_a_sentence_says_how_sure_the_contradiction_is(low, said):
    bound = Bound("loss on any mixture", 0.4, "Cor. 2", "It is so.", False)
    confidence = None if low is None else 0.95
    measured = FACTS._replace(loss=0.5, regret=0.0, loss_low=low, confidence=confidence)
    (marked,) = mark_contradicted([bound], measured)
    assert said in marked.contradicted
    assert marked.value == bound.value


def test_an_assumption_that_the_tables_refute_is_no_matter_of_chance():
    refuted = "D_k ≥ μU fails."
    bound = Bound("loss on any mixture", 0.4, "Thm 3", "It is so.", False, refuted)
    (marked,) = mark_contradicted(
        [bound], FACTS._replace(loss=0.5, loss_low=-np.inf, regret_low=-np.inf, confidence=0.95)
    )
    assert marked.contradicted == f"0.5 was measured, more than 0.4: {refuted}"
    (unseen,) = mark_contradicted([bound], FACTS._replace(loss=0.3, regret=0.0))
    assert unseen.contradicted == refuted


def test_only_what_was_measured_is_held_against_a_bound():
    names = ["loss on any mixture", REGRET, "loss of the normalised rule on any mixture", "else"]
    bounds = [Bound(name, 0.4, "Cor. 2", "It is so.", False) for name in names]
    marked = mark_contradicted(bounds, FACTS._replace(loss=0.3, regret=0.5))
    assert [bool(bound.contradicted) for bound in marked] == [False, True, False, False]
    marked = mark_contradicted(bounds, FACTS._replace(loss=0.5, regret=0.3, normalised=True))
    assert [bool(bound.contradicted) for bound in marked] == [False, False, True, False]


def test_a_rounding_error_is_no_contradiction():
    bound = Bound("loss on any mixture", 0.4, "Cor. 2", "It is so.", False)
    assert mark_contradicted([bound], FACTS._replace(loss=0.4 + 1e-13))[0] is bound


def test_records_with_and_without_the_mark_come_back():
    bound = Bound("loss on any mixture", 0.4, "Cor. 2", "It is so.", False, "It is not so.")
    assert Bound.from_dict(bound.to_dict()) == bound
    older = {name: item for name, item in bound.to_dict().items() if name != "contradicted"}
    assert Bound.from_dict(older).contradicted == ""
