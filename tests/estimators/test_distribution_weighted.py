"""What the estimators promise: z, certificate, weights, losses, rules, tables, text, skipping."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline

from anymix import (
    DistributionWeightedClassifier,
    DistributionWeightedRegressor,
    Source,
    Tables,
    evaluate,
)
from anymix.core import Combination, NormalisedRule, combine, solve, source_weights
from anymix.densities import BigramModel, DomainClassifier, GaussianKDE, SharedVocabulary
from anymix.sources import LearningSettings, consult, learn_fold
from anymix.sources.tables import Novelty
from tests.estimators.several_sources import classification, regression

KDE = GaussianKDE(bandwidth=0.8)
X, Y, D = classification()
XR, YR, DR = regression()
FITTED = DistributionWeightedClassifier(density=KDE, random_state=0).fit(X, Y, sample_domain=D)
# No source consults another, so that sources of small weight can be skipped.
ALONE = DistributionWeightedClassifier(density=KDE, random_state=0, consult=False)
ALONE.fit(X, Y, sample_domain=D)


def test_it_is_good_at_home_where_no_single_source_is_good_everywhere():
    fresh, labels, domain = classification(300, seed=1)
    weights, proba = FITTED.source_weights(fresh), FITTED.predict_proba(fresh)
    for k, source in enumerate(FITTED.sources_):
        home = domain == source.name
        own = log_loss(labels[home], source.predict_proba(fresh, FITTED.classes_)[home])
        assert log_loss(labels[home], proba[home]) < own + 0.05
        assert weights[home, k].mean() > 0.8


def test_the_formula_is_that_of_the_core():
    tables = evaluate(FITTED.sources_, X, FITTED.classes_, generalist=FITTED.generalist_)
    expected = 0.0
    parts = FITTED.combination_.parts
    for part in parts:
        log_r = part.log_responsibilities(tables.log_masses)
        heard = tables.heard(part.consulting).predictions
        expected = expected + combine(log_r, heard, part.z, FITTED.eta) / len(parts)
    assert np.allclose(FITTED.predict_proba(X), expected, atol=1e-6)
    assert np.array_equal(FITTED.predict(X), FITTED.classes_[expected.argmax(axis=1)])


@given(eta=st.floats(1e-9, 1.0), seed=st.integers(0, 50))
def test_weights_are_those_of_the_core(eta, seed):
    rng = np.random.default_rng(seed)
    log_d = rng.normal(scale=10.0 ** rng.integers(0, 4), size=(3, 8))
    log_d[0, 0] = -np.inf
    model = DistributionWeightedClassifier(eta=eta)
    model.__dict__ |= {k: v for k, v in vars(FITTED).items() if k.endswith("_") or k[0] == "_"}
    model.combination_ = Combination(rng.dirichlet(np.ones(3)), eta)
    model._log_masses = lambda X: log_d
    assert np.allclose(model.source_weights(X[:8]).T, source_weights(log_d, model.z_, eta))


def test_rows_that_all_sources_call_impossible_get_equal_responsibilities():
    log_masses = np.array([[-np.inf, -np.inf], [-np.inf, 0.0]])
    log_r = Combination(np.full(2, 0.5), 0.0).log_responsibilities(log_masses)
    assert np.allclose(np.exp(log_r), [[0.5, 0.0], [0.5, 1.0]])


def test_z_and_certificate_are_those_of_the_held_out_tables():
    """Each part is learned without its fold, as the core would, and judged by it alone."""
    fold, certificate = FITTED.held_out_.fold, FITTED.certificate_
    losses = np.empty(fold.size)
    for t, part in enumerate(FITTED.combination_.parts):
        taught, judged = (
            FITTED.tables_.taken(np.flatnonzero(one)) for one in (fold != t, fold == t)
        )
        said = consult(taught, "cross_entropy").tables.weighed(part.calibration)
        problem = said.problem("cross_entropy", FITTED.eta)
        assert np.allclose(solve(problem, shrinkage="auto").z, part.z, atol=1e-3)
        heard = judged.heard(part.consulting).weighed(part.calibration)
        h = heard.problem("cross_entropy", FITTED.eta).combined(part.z)
        losses[fold == t] = -np.log(h)
    due = [losses[FITTED.tables_.sample_domain == k].mean() for k in range(3)]
    assert np.allclose(due, certificate.source_losses)
    assert np.isclose((due - certificate.own_losses).max(), certificate.regret)
    assert certificate.covers == "the fold models"
    assert "3 sources" in certificate.sentence


def test_no_source_is_judged_on_rows_it_was_trained_on():
    class Memory(LinearRegression):
        def fit(self, X, y, sample_weight=None):
            self.seen = {row.tobytes() for row in X}
            return super().fit(X, y)

        def predict(self, X):
            # A row that was trained on would give a loss of 10**12.
            return super().predict(X) + 1e6 * np.array([row.tobytes() in self.seen for row in X])

    model = DistributionWeightedRegressor(Memory(), KDE, random_state=0).fit(XR, YR, DR)
    assert model.certificate_.loss_bound < 1e3


def test_cross_loss_is_small_on_its_diagonal_and_inside_its_interval():
    cross = FITTED.cross_loss_
    assert cross.names == ("a", "b", "c")
    assert (np.diag(cross.mean) <= cross.mean.min(axis=0) + 1e-12).all()
    assert (cross.lower < cross.mean).all()
    assert (cross.mean < cross.upper).all()
    assert np.allclose(np.diag(cross.mean), FITTED.certificate_.own_losses)


@pytest.mark.parametrize(
    ("loss", "objective"),
    [
        ("squared", "regret"),
        ("squared", "robust"),
        ("squared", "gamma"),
        ("absolute", "regret"),
        ("pinball", "robust"),
        ("huber", "regret"),
    ],
)
def test_losses_and_objectives_of_numbers(loss, objective):
    model = DistributionWeightedRegressor(
        Ridge(0.1), KDE, loss=loss, objective=objective, cv=3, random_state=0
    ).fit(XR, YR, DR)
    assert model.solution_.objective == objective
    assert model.score(XR, YR) > 0.9


def test_poisson_loss_of_positive_predictions():
    y = np.exp(0.3 * XR[:, 0]).round() + 1
    source = [
        Source("north", lambda X: np.exp(0.3 * X[:, 0]) + 1, KDE.fit(XR[:40]).score_samples),
        Source("south", lambda X: np.exp(0.2 * X[:, 0]) + 1, lambda X: -((X - 2) ** 2).sum(axis=1)),
    ]
    model = DistributionWeightedRegressor.from_sources(source, loss="poisson").fit(XR, y, DR)
    assert model.predict(XR).min() > 0


@pytest.mark.parametrize(("loss", "rule"), [("brier", "marginal"), ("cross_entropy", "normalised")])
def test_losses_and_rules_of_probabilities(loss, rule):
    model = DistributionWeightedClassifier(density=KDE, loss=loss, rule=rule, cv=3, random_state=0)
    proba = model.fit(X, Y, sample_domain=D).predict_proba(X)
    assert np.allclose(proba.sum(axis=1), 1)
    assert model.score(X, Y) > 0.8


def test_the_normalised_rule_is_certified_by_what_it_predicts():
    model = DistributionWeightedClassifier(density=KDE, rule="normalised", cv=3, random_state=0)
    model.fit(X, Y, sample_domain=D)
    fold, loss = model.held_out_.fold, np.empty(len(Y))
    for t, part in enumerate(model.combination_.parts):
        rows = np.flatnonzero(fold == t)
        tables = model.tables_.taken(rows).heard(part.consulting).weighed(part.calibration)
        log_joint = tables.log_masses[:, :, None] + np.log(tables.predictions)
        proba = combine(log_joint, tables.predictions, part.z, model.eta, rule="normalised")
        loss[rows] = -np.log(proba[np.arange(rows.size), tables.targets])
    by_domain = [loss[model.tables_.sample_domain == k].mean() for k in range(3)]
    assert np.allclose(model.certificate_.source_losses, by_domain)
    assert isinstance(tables.judgement("cross_entropy", 1e-3, "normalised"), NormalisedRule)


def test_given_sources_learn_z_alone():
    held = classification(seed=2)
    model = DistributionWeightedClassifier.from_sources(FITTED.sources_)
    model.fit(held[0], held[1], sample_domain=held[2])
    assert all(a is b for a, b in zip(model.sources_, FITTED.sources_, strict=True))
    by_number = DistributionWeightedClassifier.from_sources(FITTED.sources_)
    by_number.fit(held[0], held[1], np.searchsorted(["a", "b", "c"], held[2]))
    assert np.array_equal(by_number.z_, model.z_)


def test_tables_of_the_sites_give_the_same_z_as_their_rows():
    rows, labels, domain = classification(seed=2)
    model = DistributionWeightedClassifier.from_sources(FITTED.sources_)
    model.fit(rows, labels, sample_domain=domain)
    parts = [
        evaluate(FITTED.sources_, rows[domain == name], FITTED.classes_).labelled(
            labels[domain == name], k
        )
        for k, name in enumerate("abc")
    ]
    apart = DistributionWeightedClassifier.from_sources(FITTED.sources_)
    apart.fit_tables(Tables.concatenate(parts))
    assert np.allclose(apart.z_, model.z_)
    assert apart.certificate_.to_json() == model.certificate_.to_json()
    assert np.allclose(apart.predict_proba(rows), model.predict_proba(rows))


def test_sources_without_a_density_learn_one_from_the_rows():
    bare = [Source(s.name, s.predictor) for s in FITTED.sources_]
    for density in (DomainClassifier(), KDE):
        model = DistributionWeightedClassifier.from_sources(bare, density=density, random_state=0)
        assert model.fit(X, Y, sample_domain=D).score(X, Y) > 0.8
    with pytest.raises(ValueError, match="'a' has no density; pass one to Source, or learn with"):
        DistributionWeightedClassifier.from_sources(bare, density=None).fit(X, Y, D)


def test_domains_may_be_renamed_and_rows_permuted():
    one = DistributionWeightedRegressor(
        Ridge(), KDE, sources=None, calibrate=False, shrinkage=0.0, random_state=0
    )
    sources = one.fit(XR, YR, DR).sources_
    held = regression(seed=3)
    order = np.random.default_rng(0).permutation(len(held[1]))
    base = DistributionWeightedRegressor.from_sources(sources).fit(*held)
    shuffled = DistributionWeightedRegressor.from_sources(sources)
    shuffled.fit(*(part[order] for part in held))
    assert np.allclose(base.z_, shuffled.z_)
    swapped = [Source(n, s.predictor, s.density) for n, s in zip("ba", sources, strict=True)]
    renamed = DistributionWeightedRegressor.from_sources(swapped)
    renamed.fit(held[0], held[1], np.where(held[2] == "north", "b", "a"))
    assert np.allclose(renamed.z_, base.z_)


def test_sample_weight_counts_like_repeated_rows_for_given_sources():
    sources = DistributionWeightedRegressor(Ridge(), KDE, random_state=0).fit(XR, YR, DR).sources_
    rows, y, d = regression(seed=4)
    times = np.random.default_rng(0).integers(1, 4, size=len(y))
    options = {"shrinkage": 0.0, "calibrate": False}
    weighed = DistributionWeightedRegressor.from_sources(sources, **options)
    weighed.fit(rows, y, d, sample_weight=times)
    repeated = DistributionWeightedRegressor.from_sources(sources, **options)
    with pytest.warns(UserWarning, match="are copies of another row"):
        repeated.fit(*(np.repeat(part, times, axis=0) for part in (rows, y, d)))
    # The folds are drawn anew for other rows; of all rows together z is the same.
    settings = LearningSettings(shrinkage=0.0, calibrate=False)
    z = [learn_fold(model.tables_, settings)[0].z for model in (weighed, repeated)]
    assert np.allclose(*z, atol=1e-6)
    assert np.allclose(weighed.z_, repeated.z_, atol=0.05)


@pytest.mark.parametrize("inner", [Ridge(), make_pipeline(Ridge())])
def test_sample_weight_reaches_the_estimators(inner):
    weight = np.where(XR[:, 0] ** 2 < 4, 1.0, 1e-3)
    model = DistributionWeightedRegressor(inner, KDE, consult=False, random_state=0)
    model.fit(XR, YR, DR, sample_weight=weight)
    alone = Ridge().fit(XR[:40], YR[:40], sample_weight=weight[:40])
    assert np.allclose(model.sources_[0].predict(XR), alone.predict(XR))


def test_sparse_rows_with_a_classifier_of_domains():
    model = DistributionWeightedClassifier(
        LogisticRegression(), DomainClassifier(), consult=False, random_state=0
    )
    dense = clone(model).fit(X, Y, sample_domain=D)
    model.fit(sparse.csr_array(X), Y, sample_domain=D)
    assert (model.predict(sparse.csr_array(X)) == dense.predict(X)).mean() > 0.95


def test_documents():
    rng = np.random.default_rng(0)
    words = np.array(["good", "bad", "plot", "pan", "page", "hot"])
    chances = {"books": [0.2, 0.2, 0.3, 0.0, 0.3, 0.0], "kitchen": [0.2, 0.2, 0.0, 0.3, 0.0, 0.3]}
    docs, d = [], []
    for name, chance in chances.items():
        for _ in range(40):
            docs.append(" ".join(rng.choice(words, 12, p=chance)))
            d.append(name)
    y = np.array([doc.count("good") - doc.count("bad") for doc in docs], dtype=float)
    y[40:] += 3
    tokens = SharedVocabulary(min_count=1, output="tokens").fit(docs)
    counts = SharedVocabulary(min_count=1).fit(docs)
    model = DistributionWeightedRegressor(
        make_pipeline(FrozenEstimator(counts), Ridge()),
        make_pipeline(FrozenEstimator(tokens), BigramModel(vocabulary=tokens.vocabulary_)),
        random_state=0,
    )
    model.fit(docs, y, sample_domain=d)
    assert model.score(docs, y) > 0.9
    assert (model.source_weights(docs).argmax(axis=1) == np.repeat([0, 1], 40)).mean() > 0.95


EXACT = np.einsum(
    "ik,kic->ic",
    ALONE.source_weights(X),
    evaluate(ALONE.sources_, X, ALONE.classes_).predictions,
)


@given(skip_below=st.floats(1e-6, 0.3))
def test_skipping_moves_a_probability_by_less_than_it_says(skip_below):
    model = DistributionWeightedClassifier(density=KDE, random_state=0, skip_below=skip_below)
    model.__dict__ |= {k: v for k, v in vars(ALONE).items() if k.endswith("_") or k[0] == "_"}
    assert np.abs(model.predict_proba(X) - EXACT).max() < skip_below
    count = model.model_evaluations(X)
    assert count["made"] + count["saved"] == 3 * len(X)


def test_skipped_sources_are_not_asked():
    asked = []

    def counted(source):
        def predict(rows):
            asked.append(len(rows))
            return source.predictor.predict_proba(rows)

        return Source(source.name, predict, source.density, classes=source.labels)

    sources = [counted(source) for source in FITTED.sources_]
    model = DistributionWeightedClassifier.from_sources(sources, skip_below=0.05, consult=False)
    model.fit(X, Y, sample_domain=D)
    asked.clear()
    model.predict(X)
    count = model.model_evaluations(X)
    assert sum(asked) == count["made"] < 3 * len(X)


def test_novelty_is_small_at_home_and_large_far_away():
    fresh, _, _ = classification(200, seed=5)
    assert (FITTED.novelty(fresh) > 0.9).mean() < 0.2
    far = np.full((3, 2), 50.0)
    assert (FITTED.novelty(far) > 0.95).all()
    labels, refused = FITTED.predict_or_abstain(np.r_[fresh, far])
    assert refused[-3:].all()
    assert refused[:-3].mean() < 0.15
    assert labels.shape == (603,)


def test_novelty_counts_ranks():
    own = Novelty((np.array([1.0, 2.0, 3.0]),))
    # 0 lies one below the lowest, the lower half 1/2 below the median: a tail of e^-2.
    beyond = 1 - np.exp(-2) / 4
    assert np.allclose(own.score(np.array([[0.0, 1.5, 9.0]])), [beyond, 0.5, 0.0])


def test_predictions_in_chunks_are_the_same(monkeypatch):
    whole = FITTED.predict_proba(X)
    monkeypatch.setattr("anymix.estimators._ensemble.CHUNK_ROWS", 7)
    assert np.allclose(FITTED.predict_proba(X), whole)
