"""Three hospitals with models of their own, from training to the page."""

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from anymix import DistributionWeightedClassifier, Source, compare
from anymix.densities import GaussianKDE
from anymix.estimators import HardRouter, LambdaComb, SingleSource, Uniform, summarise
from anymix.monitor import Monitor

NAMES = ["Northgate", "Southbank", "Westfield"]
CENTRES = [[-1.6, -0.8], [1.6, -0.8], [0.0, 1.9]]


def draw(k, n, rng):
    """Patients of hospital k, and who came back."""
    X = rng.normal(CENTRES[k], 1.0, (n, 2))
    risk = [
        2.2 * X[:, 1] + 1.5,
        3.0 - 2.0 * X[:, 0],
        1.8 * X[:, 0] * np.sign(X[:, 1] - 1.9),
    ][k]
    return X, (rng.random(n) < 1 / (1 + np.exp(-risk))).astype(int)


def draw_all(sizes, rng):
    parts = [draw(k, n, rng) for k, n in enumerate(sizes)]
    return *map(np.concatenate, zip(*parts, strict=True)), np.repeat(NAMES, sizes)


def train(n, rng):
    """Each hospital trains what it likes on its own rows."""
    forest = RandomForestClassifier(50, min_samples_leaf=8, random_state=0)
    models, sources = [LogisticRegression(), LogisticRegression(C=0.1), forest], []
    for k, (name, model) in enumerate(zip(NAMES, models, strict=True)):
        X, y = draw(k, n, rng)
        sources.append(Source(name, model.fit(X, y), GaussianKDE(bandwidth=0.35).fit(X)))
    return sources


def fit(n, rng):
    """Return the fitted model and the record of its report."""
    sources = train(2 * n, rng)
    held_out = draw_all([n] * 3, rng)
    model = DistributionWeightedClassifier.from_sources(sources).fit(*held_out)
    X, _, domain = held_out
    fitted = {"anymix": model}
    for name in NAMES:
        alone = SingleSource.from_sources(sources, source=name)
        fitted[f"{name} alone"] = alone.fit(*held_out)
    fitted["uniform"] = Uniform.from_sources(sources).fit(*held_out)
    fitted["hard router"] = HardRouter.from_sources(sources).fit(*held_out)
    fitted["known mixture"] = LambdaComb.from_sources(sources).fit(*held_out)
    comparison = compare(fitted, *draw_all([n] * 3, rng))
    today = draw_all([11 * n // 20, n // 10, 7 * n // 20], rng)[0]
    traffic = Monitor(model, X, domain).estimate(today)
    title = "Readmission risk, three hospitals"
    return model, summarise(model, comparison, traffic, name=title)
