"""What a site's file gives away, exact and rounded, and what the rounding costs.

    python -m benchmarks.site_privacy [--quick]

Two attacks by a receiver who has the site's file and all sources.  A row counts as recovered if
every feature is within .02 of the spread of that feature.

honest    the sources are linear and honest; the receiver draws many rows as likely as the site's
          and keeps, for each row of the file, those for which the sources would say just the same;
          without rounding it solves the equations instead
classes   the same from files of labels, of the label's probability alone and of all classes
spy       one source was made to write the features into its probability and its density, on as
          many levels as pass

Then, on several problems: how far z moves, and what the worst loss over all mixtures, measured on
exact numbers, and the certificate are with z from exact and from rounded files.
"""

import sys
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares
from scipy.stats import norm
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from anymix import DistributionWeightedClassifier, DistributionWeightedRegressor, Source
from anymix.cli.demo_command import views
from anymix.densities import GaussianKDE
from anymix.exchange import SiteTable, bits_for_a_spy, evaluate_site, join_sites
from anymix.exchange.rounding import BOUNDS_LOSS, BOUNDS_R

Floats = NDArray[np.float64]
NEAR = 0.02  # of the spread of a feature
CANDIDATES = 200_000
TRIES = 8


class Rows(NamedTuple):
    """Training and held-out rows of one site."""

    X: Floats
    y: NDArray[Any]
    held_X: Floats
    held_y: NDArray[Any]


def received(sources: Sequence[Source], classes: Any = None) -> list[Any]:
    """Sources as if they had been read from folders."""
    task = "regression" if classes is None else "classification"
    return [
        SimpleNamespace(
            manifest=SimpleNamespace(name=one.name, classes=classes, task=task),
            source=one,
            sha256=one.name,
        )
        for one in sources
    ]


def recovered(guesses: Floats, truth: Floats) -> float:
    """Share of rows whose guess is near in every feature; each guess knows its row."""
    away = np.abs(guesses - truth) / truth.std(axis=0)
    return float((away.max(axis=1) < NEAR).mean())


# --- honest sources, solved for the row -----------------------------------------------------


def linear_sources(d: int, n: int, seed: int) -> tuple[list[Source], Floats, Floats]:
    """Three ridge regressions, and held-out rows of the first site."""
    rng, sources = np.random.default_rng(seed), []
    for name, centre in (("north", -1.0), ("south", 1.0), ("west", 0.5)):
        X, wanted = rng.normal(centre, size=(200, d)), rng.normal(size=d)
        model = Ridge().fit(X, X @ wanted + 0.1 * rng.normal(size=200))
        sources.append(Source(name, model, GaussianKDE(0.7).fit(X).shareable()))
        if name == "north":
            held = rng.normal(centre, size=(n, d))
            target = held @ wanted + 0.1 * rng.normal(size=n)
    return sources, held, target


def solve_exact(table: SiteTable, sources: Sequence[Source], d: int) -> Floats:
    """Solve h_k(x) − h_0(x) and log D_k(x) = what the file says for x."""
    rng, found = np.random.default_rng(0), []
    log_masses = table.log_responsibilities + table.log_total
    for due, outcome in zip(log_masses.T, table.outcomes.T, strict=True):

        def misfit(x: Floats, due: Floats = due, outcome: Floats = outcome) -> Floats:
            said = np.array([one.predict(x[None])[0] for one in sources])
            logs = np.array([one.log_density(x[None])[0] for one in sources])
            gaps = (said - said[0]) - (outcome - outcome[0])
            return np.concatenate([30 * gaps[1:], logs - due])

        best = least_squares(misfit, rng.normal(-1, 1, d))
        for _ in range(TRIES):
            if best.cost > 1e-6:
                again = least_squares(misfit, rng.normal(-1, 1, d))
                best = min(best, again, key=lambda one: one.cost)
        found.append(best.x)
    return np.array(found)


def match_rounded(table: SiteTable, sources: Sequence[Source], d: int) -> Floats:
    """Mean of the drawn rows of which the sources would say what the file says."""
    rng = np.random.default_rng(0)
    home = sources[0]
    X = np.asarray(home.density.sample(CANDIDATES, random_state=0))
    # Noise as large as the site's own errors, which the file tells.
    y = home.predict(X) - rng.choice(table.outcomes[0], len(X)) * rng.uniform(0.7, 1.4, len(X))
    drawn = evaluate_site(received(sources), "north", X, y).rounded()
    keys = _keys(drawn)
    found = []
    for key in _keys(table):
        alike = X[(keys == key).all(axis=1)]
        found.append(alike.mean(axis=0) if len(alike) else np.full(d, np.nan))
    return np.array(found)


def _keys(table: SiteTable) -> NDArray[np.int64]:
    """The numbers of each row as whole numbers, which equal ones share."""
    numbers = np.concatenate([table.log_responsibilities, table.outcomes]).T
    return np.round(numbers * 1e4).astype(np.int64)


# --- honest sources of several classes ----------------------------------------------------------


def class_sources(d: int, c: int, n: int) -> tuple[list[Source], Floats, NDArray[Any]]:
    """Three logistic regressions of c classes, and held-out rows of the first site."""
    rng, sources = np.random.default_rng(d + c), []
    slopes = rng.normal(size=(d, c))

    def labelled(X: Floats, law: Floats) -> NDArray[Any]:
        return np.asarray(np.argmax(X @ law + rng.gumbel(size=(len(X), c)), axis=1))

    for name, centre in (("north", -1.0), ("south", 1.0), ("west", 0.5)):
        X = rng.normal(centre, size=(300, d))
        y = labelled(X, slopes + 0.5 * rng.normal(size=slopes.shape))
        model = LogisticRegression(max_iter=1000).fit(X, y)
        sources.append(Source(name, model, GaussianKDE(0.7).fit(X).shareable()))
    held = rng.normal(-1.0, size=(n, d))
    return sources, held, labelled(held, slopes)


def match_classes(d: int, c: int, n: int) -> list[float]:
    """Share of rows recovered from rounded files, of the label alone and of all classes."""
    sources, X, y = class_sources(d, c, n)
    known, rng = received(sources, tuple(range(c))), np.random.default_rng(0)
    # As many as a file tells of all classes of.
    drawn = np.asarray(sources[0].density.sample(min(CANDIDATES, 10**6 // c), random_state=0))
    proba = sources[0].predict_proba(drawn, np.arange(c))
    guessed = (proba.cumsum(axis=1) > rng.random((len(drawn), 1))).argmax(axis=1)
    tables = [evaluate_site(known, "north", *rows) for rows in ((X, y), (drawn, guessed))]
    shares = []
    for whole in (False, True):
        told = [(one if whole else one.at_label()).rounded() for one in tables]
        mine, theirs = (_unordered(one) for one in told)
        alike = [drawn[(theirs == key).all(axis=1)] for key in mine]
        means = [rows.mean(axis=0) if len(rows) else np.full(d, np.nan) for rows in alike]
        shares.append(recovered(np.array(means), X))
    return shares


def _unordered(table: SiteTable) -> NDArray[np.int64]:
    """The numbers of each row, those of other classes than the label sorted."""
    outcomes = table.outcomes.reshape(*table.log_responsibilities.shape, -1).copy()
    outcomes[:, :, 1:] = np.sort(outcomes[:, :, 1:], axis=2)
    parts = [table.log_responsibilities, *np.moveaxis(outcomes, 2, 0)]
    return np.round(np.concatenate(parts).T * 1e4).astype(np.int64)


# --- one source that spies ---------------------------------------------------------------------


class Spy(NamedTuple):
    """Writes the first feature into its probability, the second into its density."""

    levels: int

    def code(self, x: Floats) -> NDArray[np.int64]:
        return np.minimum((norm.cdf(x) * self.levels).astype(np.int64), self.levels - 1)

    def read(self, code: Floats) -> Floats:
        return np.asarray(norm.ppf((np.clip(code, 0, self.levels - 1) + 0.5) / self.levels))


def spied(d: int, n: int, rounded: bool) -> float:
    """Share of rows that a spying source gets out of one file; features are independent N(0, 1)."""
    rng = np.random.default_rng(d)
    X = rng.normal(size=(n, d))
    y = rng.integers(2, size=n)
    if not rounded:
        return _spied_exactly(X, y)
    losses = np.exp2(np.arange(np.log2(BOUNDS_LOSS[0]), np.log2(BOUNDS_LOSS[1]) + 1))
    depths = np.exp2(np.arange(np.log2(BOUNDS_R[0]), np.log2(BOUNDS_R[1]) + 1))
    by_loss, by_depth = Spy(len(losses)), Spy(len(depths))
    h = np.exp(-losses[by_loss.code(X[:, 0])])
    log_r = -depths[by_depth.code(X[:, min(1, d - 1)])]
    table = _file(log_r, h).rounded()
    seen = np.abs(np.log(table.outcomes[1])[:, None] + losses).argmin(axis=1)
    # The spy's own share after scaling; the honest source has the rest.
    odds = table.log_responsibilities[1]
    deep = np.abs(odds[:, None] + depths).argmin(axis=1)
    guess = np.zeros((n, d))
    guess[:, 0] = by_loss.read(seen)
    if d > 1:
        guess[:, 1] = by_depth.read(deep)
    return recovered(guess, X)


def _spied_exactly(X: Floats, y: NDArray[Any]) -> float:
    bits = 48 // X.shape[1]
    levels = 2.0**bits
    places = levels ** np.arange(X.shape[1])
    code = np.floor(np.clip((X + 8) / 16, 0, 1 - 1e-9) * levels)
    h = 0.6 + 0.3 * (code @ places) / levels ** X.shape[1]
    table = _file(np.full(len(X), -0.7), h)
    number = np.round((table.outcomes[1] - 0.6) / 0.3 * levels ** X.shape[1])
    back = np.floor(number[:, None] / places) % levels
    return recovered((back + 0.5) / levels * 16 - 8, X)


def _file(log_r: Floats, h: Floats) -> SiteTable:
    """An honest source and a spy: what the spy says decides the numbers."""
    both = np.stack([np.log1p(-np.exp(np.minimum(log_r, -1e-9))), log_r])
    outcomes = np.stack([np.full_like(h, 0.5), h])
    return SiteTable("a", "cross_entropy", ("a", "b"), ("", ""), both, outcomes)


def bits_through(rounded: bool) -> float:
    """log2 of how many different files a spy can cause for one row."""
    h = np.exp(-np.exp2(np.linspace(-12, 6, 4001)))
    depth = -np.exp2(np.linspace(-8, 14, 4001))
    outcomes, responsibilities = _file(np.full(4001, -0.7), h), _file(depth, np.full(4001, 0.5))
    if rounded:
        outcomes, responsibilities = outcomes.rounded(), responsibilities.rounded()
    counts = [
        len(np.unique(np.round(table, 9), axis=1).T)
        for table in (outcomes.outcomes, responsibilities.log_responsibilities)
    ]
    return float(np.log2(np.prod(counts, dtype=float)))


# --- what the rounding costs ---------------------------------------------------------------------


def digits() -> list[Rows]:
    """Handwritten digits as three sites see them."""
    images, y, site = views()
    X, parts = images.reshape(len(images), -1), []
    for k in range(3):
        train, held, _ = np.array_split(np.flatnonzero(site == k), 3)
        parts.append(Rows(X[train], y[train], X[held], y[held]))
    return parts


def made_up(d: int, numeric: bool, seed: int) -> list[Rows]:
    """Three sites side by side, each with a law of its own."""
    rng, parts = np.random.default_rng(seed), []
    for centre in (-2.0, 0.0, 2.0):
        X = rng.normal(centre, size=(350, d))
        y = np.sin(1.5 * X[:, 0]) + X[:, -1] * centre / 4 + 0.3 * rng.normal(size=350)
        y = y if numeric else (y > 0).astype(int)
        parts.append(Rows(X[:200], y[:200], X[200:], y[200:]))
    return parts


PROBLEMS: dict[str, Callable[[], list[Rows]]] = {
    "digits, 64 features": digits,
    "labels, 2 features": lambda: made_up(2, False, 0),
    "numbers, 2 features": lambda: made_up(2, True, 0),
    "numbers, 10 features": lambda: made_up(10, True, 3),
}


def train(parts: Sequence[Rows]) -> tuple[list[Source], Any]:
    """A forest or a linear model for each site; return the sources and their labels."""
    classify = parts[0].y.dtype.kind == "i"
    linear = LogisticRegression(max_iter=1000) if classify else Ridge()
    forest = RandomForestClassifier if classify else RandomForestRegressor
    sources = []
    for k, rows in enumerate(parts):
        linear_model = make_pipeline(StandardScaler(), type(linear)(**linear.get_params()))
        model = linear_model if k % 2 else forest(50, min_samples_leaf=5, random_state=0)
        density = GaussianKDE(random_state=0).fit(rows.X).shareable()
        sources.append(Source(f"site {k}", model.fit(rows.X, rows.y), density))
    labels = np.unique(np.concatenate([rows.y for rows in parts])) if classify else None
    return sources, None if labels is None else tuple(labels.tolist())


def learn(sources: Sequence[Source], known: list[Any], sites: Sequence[SiteTable]) -> Any:
    numeric = sites[0].loss == "squared"
    kind = DistributionWeightedRegressor if numeric else DistributionWeightedClassifier
    model = kind.from_sources(list(sources), loss=sites[0].loss)
    return model.fit_tables(join_sites(sites, known))


def cost(parts: Sequence[Rows]) -> str:
    """z, the worst loss on exact numbers and the certificate, from exact and rounded files."""
    sources, labels = train(parts)
    known = received(sources, labels)
    sites = [
        evaluate_site(known, one.name, rows.held_X, rows.held_y)
        for one, rows in zip(sources, parts, strict=True)
    ]
    exact = learn(sources, known, sites)
    coarse = learn(sources, known, [site.rounded() for site in sites])
    tables = join_sites(sites, known)
    cells = [f"{np.abs(exact.z_ - coarse.z_).max():.3f}"]
    for judge in ("robust_loss", "regret"):
        worst = []
        for model in (exact, coarse):
            used = model.combination_
            problem = tables.weighed(used.calibration).problem(model.loss, used.eta, used.rule)
            worst.append(getattr(problem, judge)(used.z))
        cells.append(f"{worst[0]:.4f} | {worst[1]:.4f}")
    bounds = [model.certificate_.loss_upper for model in (exact, coarse)]
    return " | ".join([*cells, f"{bounds[0]:.3f} | {bounds[1]:.3f}"])


def main(quick: bool = False) -> None:
    n = 20 if quick else 60
    print("| share of rows recovered | exact | rounded |\n|---|---|---|")
    for d in (2, 5):
        sources, X, y = linear_sources(d, n, seed=d)
        table = evaluate_site(received(sources), "north", X, y)
        solved = recovered(solve_exact(table, sources, d), X)
        matched = recovered(match_rounded(table.rounded(), sources, d), X)
        print(f"| three honest linear sources, d = {d} | {solved:.2f} | {matched:.2f} |")
    for d in (2, 5):
        cells = [spied(d, 2000, rounded) for rounded in (False, True)]
        print(f"| one source that spies, d = {d} | {cells[0]:.2f} | {cells[1]:.3f} |")
    print("\n| recovered from rounded labels | label alone | all classes |\n|---|---|---|")
    for d, c in ((2, 2), (2, 4), (5, 4), (2, 10)):
        cells = match_classes(d, c, n)
        print(f"| {c} classes, d = {d} | {cells[0]:.2f} | {cells[1]:.2f} |")
    most = bits_for_a_spy("cross_entropy", 2)
    print(
        f"\nbits of a row that a spy gets through: {bits_through(False):.0f} or more exactly, "
        f"{bits_through(True):.1f} rounded (at most {most:.1f})\n"
    )
    print(
        "| problem | z moves by | worst loss | rounded | regret | rounded | certified | rounded |"
    )
    print("|---" * 8 + "|")
    for name in list(PROBLEMS)[1:2] if quick else PROBLEMS:
        print(f"| {name} | {cost(PROBLEMS[name]())} |", flush=True)


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
