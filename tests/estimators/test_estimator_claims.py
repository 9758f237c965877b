"""Small versions of what the benchmarks measure in full."""

import numpy as np
import pytest

from benchmarks import estimators, office, real_data, reviews


def test_the_certificate_holds_on_fresh_rows():
    rates = estimators.coverage(2, n=300, n_fresh=2000)
    assert rates["loss holds"] == 1.0
    assert rates["regret holds"] == 1.0
    assert rates["regret slack"] > 0


def test_skipping_spares_models_and_stays_within_its_bound():
    spared, change = estimators.saving(0.02)
    assert spared > 0.5
    assert change < 0.02


def test_a_split_of_reviews_shares_no_text():
    rng = np.random.default_rng(0)
    domain, group = np.repeat(["a", "b"], 2000), rng.integers(3000, size=4000)
    train, test = real_data.reviews_split(domain, group, seed=0)
    assert (np.unique(domain[train], return_counts=True)[1] == 1600).all()
    assert not set(group[train]) & set(group[test])


@pytest.mark.parametrize("benchmark", [office, reviews])
def test_absent_data_are_one_sentence(benchmark, tmp_path, capsys):
    benchmark.main(quick=True, data=str(tmp_path))
    assert capsys.readouterr().out.count("\n") == 1
