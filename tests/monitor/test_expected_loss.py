"""Monitor.expected_loss: what the deployed model loses on traffic without labels."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anymix import DistributionWeightedClassifier, DistributionWeightedRegressor
from anymix.densities import GaussianKDE
from anymix.monitor import (
    ExpectedLoss,
    Monitor,
    TrafficReport,
    estimate_mixture,
    expected_loss,
)

DOMAIN = np.repeat([0, 1, 2], 100)
MEAN = np.array([1.0, 2.0, 4.0])


def rows(rng, n, share=0.5):
    """Two sources on a line with different answers."""
    domain = (rng.random(n) > share).astype(int)
    X = rng.normal(np.where(domain == 0, -1.5, 1.5), 1.0)[:, None]
    return X, np.where(domain == 0, -X[:, 0], X[:, 0]) + rng.normal(size=n), domain


@pytest.fixture(scope="module")
def fitted():
    model = DistributionWeightedRegressor(density=GaussianKDE(bandwidth=0.4), random_state=0)
    X, y, domain = rows(np.random.default_rng(0), 400)
    return model.fit(X, y, sample_domain=domain)


def tables(planar, rng, mixture, n=1000, domain=DOMAIN):
    traffic = planar.log_responsibilities(planar.rows(rng.choice(3, n, p=mixture), rng))
    return traffic, planar.log_responsibilities(planar.rows(domain, rng)), domain


def test_it_is_the_sum_of_shares_times_losses(planar):
    rng = np.random.default_rng(0)
    told = tables(planar, rng, [0.2, 0.3, 0.5])
    losses = MEAN[DOMAIN] * rng.exponential(size=DOMAIN.size)
    e = estimate_mixture(*told)
    found = expected_loss(e, *told, losses, "squared")
    L = [losses[100 * k : 100 * k + 100].mean() for k in range(3)]
    assert found.value == pytest.approx(np.dot(e.mixture, L))
    np.testing.assert_allclose(found.source_losses, L)
    assert (found.lowest, found.highest) == pytest.approx((min(L), max(L)))
    assert found.lower < found.value < found.upper
    assert (found.n, found.n_reference, found.confidence) == (1000, 300, 0.95)


@given(st.integers(0, 10**6), st.floats(0.5, 3.0), st.floats(-2.0, 2.0))
def test_the_answer_follows_the_unit_of_the_loss(seed, scale, shift):
    rng = np.random.default_rng(seed)
    domain = np.repeat([0, 1], 15)
    log_r = np.log(rng.dirichlet([1.0, 1.0], 30).T * 0.5 + 0.5 * np.eye(2)[:, domain])
    told = np.log(rng.dirichlet([1.0, 1.0], 50).T), log_r, domain
    losses = rng.normal(size=30) - 20.0  # below zero, where nothing is cut
    e = estimate_mixture(*told)
    one, other = (expected_loss(e, *told, x) for x in (losses, scale * losses + shift))
    for name in ("value", "lower", "upper", "lowest", "highest"):
        assert getattr(other, name) == pytest.approx(scale * getattr(one, name) + shift, rel=1e-5)
    assert one.lower <= one.value <= one.upper
    assert one.lowest - 1e-9 <= one.value <= one.highest + 1e-9


def test_equal_losses_leave_no_doubt_whatever_the_mixture(planar):
    told = tables(planar, np.random.default_rng(0), [0.4, 0.3, 0.3], n=50)
    found = expected_loss(estimate_mixture(*told), *told, np.full(300, 0.7))
    assert (found.lower, found.value, found.upper) == pytest.approx((0.7, 0.7, 0.7))


def test_sources_that_cannot_be_told_apart_leave_what_their_losses_leave():
    rng, even = np.random.default_rng(0), np.full((2, 200), np.log(0.5))
    domain = np.repeat([0, 1], 100)
    losses = np.where(domain == 0, 1.0, 5.0) + 0.1 * rng.normal(size=200)
    found = expected_loss(estimate_mixture(even, even, domain), even, even, domain, losses)
    assert 0.9 < found.lower < 1.0
    assert 5.0 < found.upper < 5.1


def test_losses_that_cannot_be_negative_have_no_negative_end(planar):
    rng = np.random.default_rng(3)
    domain = np.repeat([0, 1, 2], 3)
    told = tables(planar, rng, [1, 0, 0], 30, domain)
    losses = np.array([0.0, 0.0, 9.0, 1, 1, 1, 1, 1, 1.0])
    found = expected_loss(estimate_mixture(*told), *told, losses)
    assert found.lower == 0.0


def test_few_rows_of_traffic_are_doubted(planar):
    """Two rows of one source look alike; another source loses a hundred times as much."""
    eye = np.log(np.maximum(np.eye(2), 1e-300))
    domain = np.repeat([0, 1], 50)
    told = eye[:, [0, 0]], eye[:, domain], domain
    found = expected_loss(estimate_mixture(*told), *told, np.where(domain == 0, 1.0, 100.0))
    assert found.value == pytest.approx(1.0)
    assert found.upper > 30.0


@pytest.mark.parametrize("mixture", [[0.5, 0.3, 0.2], [0.0, 0.0, 1.0]])
def test_the_interval_holds_as_often_as_it_says(planar, mixture):
    rng, held = np.random.default_rng(7), []
    for _ in range(250):
        told = tables(planar, rng, mixture, 150, np.repeat([0, 1, 2], 40))
        losses = MEAN[told[2]] * rng.normal(size=120) ** 2
        found = expected_loss(estimate_mixture(*told), *told, losses)
        held.append(found.lower <= MEAN @ mixture <= found.upper)
    # 0.95 less three standard errors; with the losses taken as known it is below 0.6.
    assert np.mean(held) > 0.95 - 3 * np.sqrt(0.95 * 0.05 / 250)


def test_a_strange_day_is_said_not_to_be_trusted(planar):
    rng = np.random.default_rng(0)
    X = planar.rows(DOMAIN, rng)
    monitor = Monitor(planar, X, DOMAIN, losses=MEAN[DOMAIN], n_bootstrap=100)
    calm = monitor.expected_loss(planar.rows(rng.choice(3, 500), rng))
    assert calm.trusted
    assert calm.sentence.startswith("Without labels: the loss on these 500 rows is about 2.")
    assert calm.sentence.endswith("it ranges from 1 to 4.")
    strange = monitor.estimate(rng.normal(9.0, size=(300, 2)))
    assert strange.alarm.rings
    assert not strange.expected_loss.trusted
    assert strange.expected_loss.sentence.startswith("Do not trust an expected loss here")


def test_one_report_tells_mixture_alarm_and_loss_and_comes_back(planar):
    rng = np.random.default_rng(0)
    monitor = Monitor(
        planar, planar.rows(DOMAIN, rng), DOMAIN, losses=MEAN[DOMAIN], n_bootstrap=100
    )
    X = planar.rows(DOMAIN, rng)
    report = monitor.estimate(X)
    assert report.expected_loss.to_json() == monitor.expected_loss(X).to_json()
    again = TrafficReport.from_dict(report.to_dict())
    assert again.to_json() == report.to_json()
    assert isinstance(again.expected_loss, ExpectedLoss)
    with pytest.raises(AttributeError):
        again.expected_loss.value = 0.0
    old = json.loads(report.to_json())
    del old["expected_loss"], old["estimate"]["joint_lower"], old["estimate"]["joint_upper"]
    before = TrafficReport.from_dict(old)
    assert before.expected_loss is None
    with pytest.raises(ValueError, match="estimate the mixture again"):
        before.estimate.intervals(simultaneous=True)


def test_labels_of_the_held_out_rows_judge_the_model_itself(fitted):
    X, y, domain = rows(np.random.default_rng(1), 300)
    traffic = rows(np.random.default_rng(2), 2000, 0.8)
    monitor = Monitor(fitted, X, domain, y, n_bootstrap=100)
    found = monitor.expected_loss(traffic[0])
    errors = (fitted.predict(X) - y) ** 2
    np.testing.assert_allclose(
        found.source_losses, [errors[domain == k].mean() for k in (0, 1)], rtol=1e-6
    )
    true = np.mean((fitted.predict(traffic[0]) - traffic[1]) ** 2)
    assert found.loss == "squared"
    assert found.lower < true < found.upper


def test_labels_that_are_names_are_found():
    X, y, domain = rows(np.random.default_rng(3), 300)
    label = np.where(y > 1, "high", "low")
    model = DistributionWeightedClassifier(random_state=0).fit(X, label, sample_domain=domain)
    found = Monitor(model, X, domain, label, n_bootstrap=100).expected_loss(X)
    p = model.predict_proba(X)[np.arange(300), np.searchsorted(model.classes_, label)]
    assert found.loss == "cross-entropy"
    np.testing.assert_allclose(
        found.source_losses, [-np.log(p[domain == k]).mean() for k in (0, 1)], rtol=1e-6
    )


def stand_in(model, held_out):
    """The same model with other predictions at the rows of its tables."""
    names = ("tables_", "novelty_", "combination_", "source_names_", "loss")
    parts = {name: getattr(model, name) for name in names}
    told = {"log_responsibilities": model.log_responsibilities, "novelty": model.novelty}
    return SimpleNamespace(**parts, **told, held_out_=held_out)


def test_from_tables_takes_what_was_predicted_without_the_row(fitted):
    tables_ = fitted.tables_
    h = np.asarray(tables_.targets) + np.where(tables_.sample_domain == 0, 1.0, 3.0)
    model = stand_in(fitted, SimpleNamespace(predictions=h))
    found = Monitor.from_tables(model, n_bootstrap=100).expected_loss(
        rows(np.random.default_rng(4), 500)[0]
    )
    np.testing.assert_allclose(found.source_losses, [1.0, 9.0])


def test_rows_that_z_has_seen_are_told(fitted):
    m = len(fitted.tables_.sample_domain)
    held_out = SimpleNamespace(predictions=np.zeros(m), crossed=False)
    X = rows(np.random.default_rng(4), 500)[0]
    found = Monitor.from_tables(stand_in(fitted, held_out), n_bootstrap=100).expected_loss(X)
    assert not found.fresh
    assert found.sentence.endswith("z was learned from the rows that tell this: it may be more.")


def test_a_fitted_model_knows_its_losses(fitted):
    rng = np.random.default_rng(8)
    traffic, y, _ = rows(rng, 3000, 0.9)
    found = Monitor.from_tables(fitted, n_bootstrap=100).expected_loss(traffic)
    assert found.fresh
    assert found.lower < np.mean((fitted.predict(traffic) - y) ** 2) < found.upper


def test_given_losses_come_before_what_the_model_knows(fitted):
    m = len(fitted.tables_.sample_domain)
    model = stand_in(fitted, SimpleNamespace(predictions=np.zeros(m)))
    monitor = Monitor.from_tables(model, losses=np.full(m, 0.25), n_bootstrap=100)
    found = monitor.expected_loss(rows(np.random.default_rng(5), 200)[0])
    assert (found.value, found.loss) == (pytest.approx(0.25), "")


def test_without_losses_there_is_a_mixture_and_a_sentence_that_helps(fitted):
    monitor = Monitor.from_tables(stand_in(fitted, None), n_bootstrap=100)
    X = rows(np.random.default_rng(6), 200)[0]
    assert monitor.estimate(X).expected_loss is None
    with pytest.raises(ValueError, match=r"give losses, .* or y_reference"):
        monitor.expected_loss(X)


@pytest.mark.parametrize(
    ("losses", "said"), [(np.ones(7), r"got shape \(7,\)"), (np.full(300, np.inf), "infinite")]
)
def test_bad_losses_get_a_sentence(planar, losses, said):
    X = planar.rows(DOMAIN, np.random.default_rng(0))
    with pytest.raises(ValueError, match=said):
        Monitor(planar, X, DOMAIN, losses=losses).expected_loss(X)


def test_labels_are_of_no_use_to_a_model_that_cannot_evaluate_rows(planar):
    X = planar.rows(DOMAIN, np.random.default_rng(0))
    with pytest.raises(ValueError, match="models that evaluate rows; give losses"):
        Monitor(planar, X, DOMAIN, np.zeros(300)).expected_loss(X)
