"""Monitor.adapt: a model that suits today's traffic, from unlabelled rows or a few labels."""

import numpy as np
import pytest

import anymix
from anymix import DistributionWeightedClassifier, DistributionWeightedRegressor
from anymix.densities import GaussianKDE
from anymix.estimators import summarise
from anymix.monitor import Monitor


def rows(rng, n, share):
    """Two overlapping sources; the slope of the answer differs between them."""
    domain = (rng.random(n) > share).astype(int)
    X = rng.normal(np.where(domain == 0, -0.7, 0.7), 1.0)[:, None]
    y = np.where(domain == 0, -X[:, 0], X[:, 0]) + 0.1 * rng.standard_normal(n)
    return X, y, domain


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X, y, domain = rows(rng, 800, 0.5)
    model = DistributionWeightedRegressor(density=GaussianKDE(bandwidth=0.4), random_state=0)
    model = model.fit(X, y, sample_domain=domain)
    X_ref, _, d_ref = rows(rng, 600, 0.5)
    return model, Monitor(model, X_ref, d_ref, n_bootstrap=100)


@pytest.mark.parametrize("labelled", [False, True])
def test_adapting_lowers_the_loss_on_skewed_traffic(fitted, labelled):
    model, monitor = fitted
    rng = np.random.default_rng(1)
    X, y, _ = rows(rng, 1500, 0.95)
    adapted = monitor.adapt(X, y if labelled else None)
    X_new, y_new, _ = rows(rng, 3000, 0.95)
    before = np.mean((model.predict(X_new) - y_new) ** 2)
    assert np.mean((adapted.predict(X_new) - y_new) ** 2) < 0.9 * before
    assert adapted.z_[0] > model.z_[0]


def test_the_model_itself_and_its_certificate_stay_as_they_were(fitted):
    model, monitor = fitted
    z, certificate = model.z_.copy(), model.certificate_
    adapted = monitor.adapt(rows(np.random.default_rng(2), 500, 0.9)[0])
    assert np.array_equal(model.z_, z)
    assert model.certificate_ is certificate
    assert adapted.certificate_ is not certificate


def test_the_adapted_model_is_certified_for_the_mixtures_of_the_traffic(fitted, tmp_path):
    """Intervals and bounds take half of what may fail each; a folder keeps both."""
    model, monitor = fitted
    adapted = monitor.adapt(rows(np.random.default_rng(2), 500, 0.9)[0])
    found, (first, second) = adapted.certificate_, adapted.certificate_.source_losses
    low, high = adapted.mixtures["0"]
    assert (found.mixtures[0].lower, found.mixtures[0].upper) == (low, high)
    assert low < 0.9 < high
    assert found.confidence == 0.975
    worst = max(share * first + (1 - share) * second for share in (low, high))
    assert found.robust_loss == pytest.approx(worst, rel=1e-6)
    assert found.loss_upper < model.certificate_.loss_upper
    X_new, y_new, _ = rows(np.random.default_rng(9), 3000, 0.9)
    lost = np.minimum((adapted.predict(X_new) - y_new) ** 2, found.clip)
    assert lost.mean() < found.loss_upper
    anymix.save(adapted, tmp_path / "model")
    again = anymix.load(tmp_path / "model", verify=True)
    assert again.certificate_.sentence == found.sentence


def test_z_of_a_model_without_rows_is_not_learned_again(fitted):
    model, _ = fitted
    with pytest.raises(ValueError, match="mixtures names 'x'"):
        model.with_mixtures({"x": (0.1, 0.2)})
    X, y, domain = rows(np.random.default_rng(0), 200, 0.5)
    members = DistributionWeightedRegressor(refit=False, random_state=0, consult=False, cv=2)
    members = members.fit(X, y, sample_domain=domain)
    with pytest.raises(ValueError, match="z can be learned again from the held-out rows"):
        members.with_mixtures({"0": (0.1, 0.2)})


def test_what_is_held_out_is_what_the_adapted_model_says(fitted):
    model, monitor = fitted
    adapted = monitor.adapt(rows(np.random.default_rng(2), 500, 0.9)[0])
    before, after = model.held_out_, adapted.held_out_
    assert not np.allclose(before.predictions, after.predictions)
    at = after.fold == 1
    part, tables = adapted.combination_.parts[1], adapted.tables_
    said = part.predict(tables.log_masses[:, at], tables.all_predictions[:, at])
    np.testing.assert_allclose(after.predictions[at], said)
    lost = Monitor.from_tables(adapted, n_bootstrap=100).expected_loss(monitor.X_reference)
    squares = (after.predictions - tables.targets) ** 2
    own = [squares[tables.sample_domain == k].mean() for k in (0, 1)]
    np.testing.assert_allclose(lost.source_losses, own)


def test_the_held_out_rows_lose_no_more_on_the_worst_mixture_of_the_traffic(fitted):
    model, monitor = fitted
    X = rows(np.random.default_rng(2), 500, 0.9)[0]
    lower, upper = monitor.estimate(X).estimate.intervals(simultaneous=True)
    adapted, used, tables = monitor.adapt(X), model.combination_, model.tables_
    shares = np.linspace(max(lower[0], 1 - upper[1]), min(upper[0], 1 - lower[1]), 5)

    def worst(combination):
        h = combination.predict(tables.log_masses, tables.all_predictions)
        losses = (h - tables.targets) ** 2
        own = [losses[tables.sample_domain == k].mean() for k in (0, 1)]
        return max(share * own[0] + (1 - share) * own[1] for share in shares)

    assert worst(adapted.combination_) < worst(used)


def test_strange_traffic_changes_nothing(fitted):
    model, monitor = fitted
    with pytest.warns(UserWarning, match="z stays as it is: these rows are not a mixture"):
        adapted = monitor.adapt(np.random.default_rng(3).normal(9.0, 1.0, (400, 1)))
    assert np.array_equal(adapted.z_, model.z_)
    assert adapted.certificate_ is model.certificate_


def test_a_label_that_no_source_knows_is_named():
    rng = np.random.default_rng(4)
    X = np.r_[rng.normal(-2, 1, (150, 1)), rng.normal(2, 1, (150, 1))]
    y, domain = np.where(np.abs(X[:, 0]) > 2, "far", "near"), np.repeat([0, 1], 150)
    model = DistributionWeightedClassifier(random_state=0).fit(X, y, sample_domain=domain)
    monitor = Monitor(model, X, domain, n_bootstrap=100)
    assert monitor.adapt(X, y).predict(X).shape == (300,)
    with pytest.raises(ValueError, match="label 'odd'"):
        monitor.adapt(X, np.full(300, "odd"))


def test_labels_are_found_whatever_the_order_of_the_classes():
    """With classes b, a, c a search among them as if they were sorted finds a third of them."""
    rng = np.random.default_rng(5)
    X, domain = rng.normal(size=(400, 1)), np.repeat([0, 1], 200)
    y = np.array(["b", "a", "c"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    model = DistributionWeightedClassifier(random_state=0).fit(X, y, sample_domain=domain)
    model.classes_ = np.array(["b", "a", "c"])
    tables = model.evaluate(X, y, domain)
    assert (model.classes_[tables.targets] == y).all()
    adapted = Monitor(model, X, domain, n_bootstrap=100).adapt(X, y)
    assert adapted.score(X, y) > 0.8


def test_a_report_of_an_adapted_model_says_that_its_certificate_is_gone(fitted):
    _, monitor = fitted
    adapted = monitor.adapt(*rows(np.random.default_rng(6), 300, 0.9)[:2])
    record = summarise(adapted)
    assert record["certificate"] is None
    assert record["adapted"]
    np.testing.assert_allclose(record["z"], adapted.z_)


def test_held_out_tables_serve_as_well_as_their_rows(fitted):
    model, _ = fitted
    X, _, _ = rows(np.random.default_rng(7), 400, 0.8)
    X_ref, y_ref, d_ref = rows(np.random.default_rng(8), 500, 0.5)
    settings = {"n_bootstrap": 100, "level": 0.05}
    by_rows = Monitor(model, X_ref, d_ref, y_ref, **settings)
    by_tables = Monitor.from_tables(model, model.evaluate(X_ref, y_ref, d_ref), **settings)
    assert by_tables.estimate(X).to_json() == by_rows.estimate(X).to_json()
    own = Monitor.from_tables(model, **settings).estimate(X)
    assert abs(own.estimate.mixture[0] - 0.8) < 0.15
