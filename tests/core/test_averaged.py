"""An average of combinations is what its parts say on average, and loses no more than they do."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anymix.core import Calibration, Combination, Consulting, CrossFittedCombination, losses_at


def parts(seed, K=3, p=3, consult=False, rule="marginal"):
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(K):
        calibration = Calibration(rng.uniform(0.5, 2, p), rng.normal(size=p), -50.0)
        pools = None
        if consult:
            weights = np.eye(p) + 0.2 * rng.normal(size=(p, p))
            pools = Consulting(weights, np.zeros((p, 2)), np.zeros(p), "labels")
        found.append(Combination(rng.dirichlet(np.ones(p)), 1e-2, calibration, rule, pools))
    return CrossFittedCombination(tuple(found))


@given(
    seed=st.integers(0, 1000),
    consult=st.booleans(),
    rule=st.sampled_from(["marginal", "normalised"]),
)
def test_it_is_the_mean_of_its_parts_and_loses_no_more(seed, consult, rule):
    average, rng = parts(seed, consult=consult, rule=rule), np.random.default_rng(seed)
    log_masses = 3 * rng.normal(size=(3, 9))
    h = rng.dirichlet(np.ones(2), size=(3, 9))
    said = average.predict(log_masses, h)
    each = [part.predict(log_masses, h) for part in average.parts]
    np.testing.assert_allclose(said, np.mean(each, axis=0), rtol=1e-12)
    asked = average.predict(log_masses, lambda k, rows: h[k] if rows is None else h[k][rows])
    np.testing.assert_allclose(asked, said, rtol=1e-12)
    y = rng.integers(2, size=9)
    for loss in ("cross_entropy", "brier"):
        mean = np.mean([losses_at(one, y, loss) for one in each], axis=0)
        assert (losses_at(said, y, loss) <= mean + 1e-12).all()
    np.testing.assert_allclose(average.weights(log_masses).sum(axis=0), 1.0)
    q = np.mean([np.exp(part.log_responsibilities(log_masses)) for part in average.parts], axis=0)
    np.testing.assert_allclose(np.exp(average.log_responsibilities(log_masses)), q)
    again = CrossFittedCombination.from_dict(average.to_dict())
    np.testing.assert_array_equal(again.predict(log_masses, h), said)


def test_one_part_is_itself_and_another_z_is_put_into_all():
    one = parts(0, K=1)
    np.testing.assert_array_equal(CrossFittedCombination.of(one.parts[0]).z, one.parts[0].z)
    z = np.array([0.2, 0.3, 0.5])
    assert all(part.z is z for part in parts(1).with_z(z).parts)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (CrossFittedCombination(()), "1 to 100 parts"),
        (
            CrossFittedCombination((Combination(np.ones(1), 0.1), Combination(np.ones(1), 0.2))),
            "one number of",
        ),
        (CrossFittedCombination((Combination(np.ones(2), 0.1),)), "simplex"),
    ],
)
def test_parts_that_do_not_go_together_are_refused(found, words):
    with pytest.raises(ValueError, match=words):
        found.check()
