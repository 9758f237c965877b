"""Measures by the names that people know: the right numbers, intervals, units and directions."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss, mean_absolute_error, roc_auc_score, root_mean_squared_error

from anymix import DistributionWeightedClassifier, Tables, compare
from anymix.core import Combination
from anymix.densities import GaussianKDE
from anymix.estimators import Comparison, compare_tables, verdicts
from anymix.estimators._mixture_losses import area, area_interval
from anymix.sources import check_measure

RNG = np.random.default_rng(0)
X = RNG.normal(size=(240, 3))
D = np.repeat(["north", "south"], [160, 80])
NUMBERS = X[:, 0] + 2 * RNG.normal(size=240)
LABELS = np.where(NUMBERS > 0, "yes", "no")
THREE = np.where(NUMBERS > 1, "high", np.where(NUMBERS < -1, "low", "mid"))
OWN = {name: np.where(name == D, 1 / np.sum(name == D), 0) for name in ("north", "south")}
HALF = (OWN["north"] + OWN["south"]) / 2


def by_hand(judge, weights=(OWN["north"], OWN["south"], HALF)):
    return [judge(w) for w in weights]


def compared(y, measure, **options):
    kind = Ridge() if y.dtype.kind == "f" else LogisticRegression()
    model = kind.fit(X[::2], y[::2])
    return model, compare({"m": model}, X, y, D, measure=measure, **options)


def test_the_area_is_that_of_scikit_learn_on_each_source_and_on_the_mixture():
    model, found = compared(LABELS, "auc")
    score = model.predict_proba(X)[:, 1]
    due = by_hand(lambda w: roc_auc_score(LABELS == "yes", score, sample_weight=w))
    np.testing.assert_allclose(found.loss[0], due)
    assert found.worst[0] == pytest.approx(min(due))
    assert found.higher_is_better
    assert found.unit == "area under the ROC curve"


def test_of_more_labels_it_is_the_mean_of_one_against_the_rest():
    model, found = compared(THREE, "roc_auc")
    proba = model.predict_proba(X)
    for t, name in enumerate(("north", "south")):
        rows = name == D
        due = roc_auc_score(THREE[rows], proba[rows], multi_class="ovr", average="macro")
        assert found.loss[0, t] == pytest.approx(due)
    assert (found.lower < found.loss).all()
    assert (found.upper > found.loss).all()


@pytest.mark.parametrize(
    ("measure", "judge", "unit"),
    [
        ("mae", mean_absolute_error, "absolute error in units of the target"),
        ("rmse", root_mean_squared_error, "root of the mean squared error in units of the target"),
    ],
)
def test_errors_of_numbers_are_those_of_scikit_learn(measure, judge, unit):
    model, found = compared(NUMBERS, measure)
    due = by_hand(lambda w: judge(NUMBERS, model.predict(X), sample_weight=w))
    np.testing.assert_allclose(found.loss[0], due)
    assert found.worst[0] == pytest.approx(max(due[:2]))
    assert (found.lower < found.loss).all()
    assert (found.lower >= 0).all()
    assert f"({unit}, smaller is better)" in str(found)


def test_losses_of_labels_are_those_of_scikit_learn():
    model, found = compared(LABELS, "log_loss")
    due = by_hand(lambda w: log_loss(LABELS, model.predict_proba(X), sample_weight=w))
    np.testing.assert_allclose(found.loss[0], due)
    assert "cross-entropy in nats" in str(found)
    _, wrong = compared(LABELS, "error_rate")
    assert wrong.loss[0, 0] == pytest.approx(1 - model.score(X[D == "north"], LABELS[D == "north"]))
    assert wrong.unit == "error rate"
    _, right = compared(LABELS, "accuracy")
    np.testing.assert_allclose(right.loss, 1 - wrong.loss)
    np.testing.assert_allclose(right.worst, 1 - wrong.worst)
    np.testing.assert_allclose([right.lower, right.upper], 1 - np.array([wrong.upper, wrong.lower]))
    assert "(accuracy, higher is better" in str(right)


def test_tables_and_their_json_say_measure_unit_direction_and_interval():
    _, found = compared(LABELS, "auc", confidence=0.9)
    record = found.to_dict()
    assert (record["measure"], record["unit"]) == ("auc", "area under the ROC curve")
    assert record["higher_is_better"] is True
    assert record["confidence"] == 0.9
    assert np.shape(record["lower"]) == np.shape(record["upper"]) == (1, 3)
    said = found.said()
    assert "higher is better; [ ]: 90 % intervals" in said
    assert "no mean over rows" in said
    assert f"[{found.lower[0, 0]:.3f}, {found.upper[0, 0]:.3f}]" in said
    again = Comparison.from_dict(record)
    assert again.to_dict() == record
    # Older records tell neither, and what is made from the measure is never read.
    for name in ("confidence", "unit", "higher_is_better"):
        record.pop(name)
    assert Comparison.from_dict(record | {"unit": "lies"}).unit == "area under the ROC curve"


@pytest.mark.parametrize(("shift", "m", "n"), [(0.0, 30, 30), (1.0, 15, 40), (2.5, 40, 20)])
def test_intervals_of_areas_cover(shift, m, n):
    rng, due, y = np.random.default_rng(1), norm.cdf(shift / np.sqrt(2)), np.repeat([1, 0], [m, n])
    hits = 0
    for _ in range(400):
        score = rng.normal(size=m + n) + shift * y
        _, low, high = area_interval(np.stack([-score, score], 1), y, np.ones(m + n), 1.96)
        hits += low <= due <= high
    assert hits >= 0.93 * 400


def test_intervals_of_areas_stay_inside_and_are_wide_where_luck_ranked_all():
    for score, mean in ((np.arange(20.0), 1.0), (-np.arange(20.0), 0.0)):
        y = np.repeat([0, 1], 10)
        found = area_interval(np.stack([-score, score], 1), y, np.ones(20), 1.96)
        assert found[0] == mean
        assert 0 <= found[1] <= found[0] <= found[2] <= 1
        assert found[2] - found[1] > 0.1
    assert area(np.zeros(4), np.array([True, False, True, False]), np.ones(4)) == 0.5


def test_a_source_of_one_label_has_no_area():
    y = np.where(D == "south", "yes", LABELS)
    model = LogisticRegression().fit(X, y)
    with pytest.raises(ValueError, match="rows of 'south' are of one label alone"):
        compare({"m": model}, X, y, D, measure="auc")


def test_tables_that_do_not_tell_labels_have_no_area():
    tables = Tables(np.zeros((2, 4)), np.full((2, 4, 2), 0.5), classes=np.array([0, 1]))
    tables = tables.labelled([0, 1, 0, 1], [0, 0, 1, 1])
    used = {"m": Combination(np.full(2, 0.5), 1e-3)}
    found = compare_tables(tables, used, "ab", "cross_entropy", measure="auc")
    np.testing.assert_allclose(found.loss, 0.5)
    with pytest.raises(ValueError, match="give the rows themselves"):
        compare_tables(
            tables.__class__(**{**vars(tables), "at_label": True}),
            *(used, "ab", "cross_entropy"),
            measure="auc",
        )


def test_a_verdict_leads_with_the_measure_that_was_asked_for():
    tables = Tables(np.zeros((2, 4)), np.array([[0.0] * 4, [1.0] * 4]))
    tables = tables.labelled([0.0, 0.0, 1.0, 1.0], [0, 0, 1, 1])
    said = np.array([0.0, 0.1, 1.0, 1.0])
    found = verdicts(tables, said, "squared", measure="mae")
    assert [one.measure for one in found] == ["absolute", "squared"]
    assert [one.measure for one in verdicts(tables, said, "squared", measure="rmse")] == ["squared"]


def test_rows_of_fit_are_warned_of_in_compare():
    density = GaussianKDE(bandwidth=0.8)
    model = DistributionWeightedClassifier(density=density, cv=2, random_state=0).fit(X, LABELS, D)
    with pytest.warns(UserWarning, match="rows of north, south are among those that 'anymix' was"):
        compare({"anymix": model}, X, LABELS, D)
    half = np.concatenate([X[D == "south"][:40], RNG.normal(size=(40, 3))])
    with pytest.warns(UserWarning, match="the rows of elsewhere are among"):
        compare({"anymix": model}, half, LABELS[:80], ["elsewhere"] * 80)
    compare({"anymix": model}, RNG.normal(size=(80, 3)), LABELS[:80], D[120:200])


def test_names_of_scikit_learn_are_known_and_others_refused():
    assert check_measure("roc_auc") == "auc"
    assert check_measure("mean_absolute_error") == "absolute"
    with pytest.raises(ValueError, match="of labels there are 'accuracy'"):
        check_measure("zzz")
    with pytest.raises(ValueError, match="name the same thing"):
        compare({"m": 0}, X, LABELS, D, loss="brier", measure="brier")
