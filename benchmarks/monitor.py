"""Which mixture is the traffic, and is it one?  Errors of λ̂ and rates of the alarm on real rows.

    python -m benchmarks.monitor [--quick] [--data ../shared/data]

Office-31 features and product reviews.  Each domain gives rows to its density, other rows to
calibration and reference, and the rest to traffic.  λ̂ is judged on 2000 rows drawn with
replacement; the alarm on 300 drawn without, from mixtures and from a domain that was left out.
"""

import argparse
import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anymix.densities import (
    BigramModel,
    DomainClassifier,
    GaussianKDE,
    SharedVocabulary,
    TemperatureScaling,
)
from anymix.monitor import Scores, estimate_mixture, mixture_alarm, novelty_scores

Array = NDArray[np.float64]
Rows = NDArray[np.intp]
Scorer = Callable[[Rows], tuple[Array, Array]]
OFFICE = "office31/office31_effnetlite0_fp16.npz"
REVIEWS = "sentiment/amazon_reviews_8000.jsonl.gz"
ERROR_TARGET, LEVEL = 0.06, 0.01


class Split(NamedTuple):
    train: Rows
    reference: Rows
    traffic: Rows


def split_rows(domain: Rows, shares: tuple[float, float], rng: np.random.Generator) -> Split:
    """Cut each domain into rows for densities, for calibration and reference, and for traffic."""
    parts = []
    for k in np.unique(domain):
        rows = rng.permutation(np.flatnonzero(domain == k))
        parts.append(np.split(rows, np.cumsum(np.array(shares) * len(rows)).astype(int)))
    return Split(*(np.concatenate(part) for part in zip(*parts, strict=True)))


class Office:
    """Unit-norm features; a kernel density a domain, responsibilities from it or a classifier."""

    shares = (0.4, 0.3)

    def __init__(self, data: Path, classifier: bool):
        self.name = "office-31, domain classifier" if classifier else "office-31, kernel densities"
        self.classifier = classifier
        with np.load(data / OFFICE) as file:
            X, self.domain = file["X"].astype(np.float32), file["domain"].astype(np.intp)
        self.domain_names = ["amazon", "webcam", "dslr"]
        self.X = X / np.linalg.norm(X, axis=1, keepdims=True)

    def scorer(self, train: Rows, sources: list[int]) -> Scorer:
        """Return a function from rows to what calibration and what novelty is made of."""
        train = train[np.isin(self.domain[train], sources)]
        of = self.domain[train]
        kernels = [GaussianKDE(bandwidth=0.15).fit(self.X[train[of == k]]) for k in sources]
        router = DomainClassifier().fit(self.X[train], of) if self.classifier else None

        def score(rows: Rows) -> tuple[Array, Array]:
            log_d = np.stack([kernel.score_samples(self.X[rows]) for kernel in kernels])
            return (router.log_responsibilities(self.X[rows]) if router else log_d), log_d

        return score


class Reviews:
    """Title and text; a bigram model a domain over the words that all of them use."""

    # Chosen after trying three: inversion .060 at (.6, .2), .054 at (.5, .25) and (.4, .3), where
    # reference and traffic have more rows.
    name, shares = "reviews, bigram models", (0.4, 0.3)

    def __init__(self, data: Path):
        with gzip.open(data / REVIEWS, "rt", encoding="utf-8") as file:
            reviews = [json.loads(line) for line in file]
        # The same text twice would put a row of traffic among the training rows.
        reviews = list({review["text"]: review for review in reviews}.values())
        self.docs = [f"{review['title']} {review['text']}" for review in reviews]
        names, codes = np.unique([review["domain"] for review in reviews], return_inverse=True)
        self.domain_names, self.domain = names.tolist(), codes.astype(np.intp)

    def scorer(self, train: Rows, sources: list[int]) -> Scorer:
        """Return a function from rows to what calibration and what novelty is made of."""
        train = train[np.isin(self.domain[train], sources)]
        of = self.domain[train]
        words = SharedVocabulary(min_count=2, output="tokens")
        docs = words.fit([self.docs[i] for i in train], sample_domain=of).transform(
            [self.docs[i] for i in train]
        )
        models = [
            BigramModel(vocabulary=words.vocabulary_).fit(
                [doc for doc, j in zip(docs, of, strict=True) if j == k]
            )
            for k in sources
        ]

        def score(rows: Rows) -> tuple[Array, Array]:
            docs = words.transform([self.docs[i] for i in rows])
            log_d = np.stack([model.score_samples(docs) for model in models])
            # A long review is not a strange one: novelty is judged by the word.
            return log_d, log_d / np.array([len(doc) + 1.0 for doc in docs])

        return score


class Stage(NamedTuple):
    """Held-out evidence of the sources, and of traffic rows with their domain: −1 was left out."""

    reference: Scores
    sample_domain: Rows
    pool: Scores
    pool_domain: Rows

    def traffic(self, rows: Rows) -> Scores:
        return Scores(self.pool.log_r[:, rows], self.pool.novelty[rows])

    def draw(self, counts: list[int], rng: np.random.Generator, replace: bool) -> Rows:
        """Draw so many rows of each source, or all that there are."""
        rows = [np.flatnonzero(self.pool_domain == k) for k in range(len(counts))]
        sizes = [n if replace else min(n, len(own)) for own, n in zip(rows, counts, strict=True)]
        drawn = [rng.choice(own, n, replace) for own, n in zip(rows, sizes, strict=True)]
        return np.concatenate(drawn)


def stage(data: Any, split: Split, left_out: int | None) -> Stage:
    """Fit densities and calibration of all domains but one, and look at the rows."""
    n_domains = int(data.domain.max()) + 1
    sources = [k for k in range(n_domains) if k != left_out]
    code = np.full(n_domains, -1)
    code[sources] = np.arange(len(sources))
    score = data.scorer(split.train, sources)
    held_out = split.reference[np.isin(data.domain[split.reference], sources)]
    domain = code[data.domain[held_out]]
    (home, home_novelty), (here, here_novelty) = score(held_out), score(split.traffic)
    scaling = TemperatureScaling().fit(home, domain)
    reference, pool = (
        Scores(scaling.transform(table), novelty_scores(scores, home_novelty, domain))
        for table, scores in ((home, home_novelty), (here, here_novelty))
    )
    return Stage(reference, domain, pool, code[data.domain[split.traffic]])


def mixture_errors(at: Stage, n: int, repeats: int, rng: np.random.Generator) -> list[Any]:
    """L1 errors of λ̂ by both methods, and of the counts of sources, which nobody can see."""
    p, errors = len(at.reference.log_r), []
    for _ in range(repeats):
        mixture = rng.dirichlet(np.ones(p))
        counts = rng.multinomial(n, mixture)
        log_r = at.traffic(at.draw(counts, rng, replace=True)).log_r
        found = [
            estimate_mixture(log_r, at.reference.log_r, at.sample_domain, method, 20).mixture
            for method in ("inversion", "em")
        ]
        errors.append([np.abs(guess - mixture).sum() for guess in (*found, counts / n)])
    return errors


def p_value(at: Stage, rows: Rows, rng: np.random.Generator) -> float:
    return mixture_alarm(at.traffic(rows), at.reference, at.sample_domain, rng=rng).p_value


def mixture_p_values(at: Stage, n: int, repeats: int, rng: np.random.Generator) -> list[float]:
    """p-values of mixtures, drawn without replacement: a row seen twice is no new evidence."""
    p = len(at.reference.log_r)
    counts = [rng.multinomial(n, rng.dirichlet(np.ones(p))) for _ in range(repeats)]
    return [p_value(at, at.draw(c, rng, replace=False), rng) for c in counts]


def left_out_p_values(at: Stage, n: int, repeats: int, rng: np.random.Generator) -> list[float]:
    """p-values of traffic from the domain that was left out."""
    rows = np.flatnonzero(at.pool_domain == -1)
    return [p_value(at, rng.permutation(rows)[:n], rng) for _ in range(repeats)]


def measure(data: Any, seeds: range, repeats: int, n: int = 2000, n_alarm: int = 300) -> Any:
    """Measure on several splits: errors of λ̂, p-values of mixtures and of left-out domains."""
    errors: list[Any] = []
    quiet: list[float] = []
    rings: dict[str, list[float]] = {name: [] for name in data.domain_names}
    for seed in seeds:
        rng = np.random.default_rng(seed)
        split = split_rows(data.domain, data.shares, rng)
        whole = stage(data, split, None)
        errors += mixture_errors(whole, n, repeats, rng)
        quiet += mixture_p_values(whole, n_alarm, repeats, rng)
        for k, name in enumerate(data.domain_names):
            rings[name] += left_out_p_values(stage(data, split, k), n_alarm, 3, rng)
    inversion, em, counts = np.mean(errors, axis=0)
    rate = {name: float(np.mean(np.array(p) <= LEVEL)) for name, p in rings.items()}
    return {
        "name": data.name,
        "inversion": float(inversion),
        "em": float(em),
        "counts": float(counts),
        "false_alarms": float(np.mean(np.array(quiet) <= LEVEL)),
        "rings": rate,
    }


def show(row: dict[str, Any], n_mixtures: int) -> None:
    reached = "reached" if row["inversion"] <= ERROR_TARGET else "NOT reached"
    print(
        f"{row['name']}: mean L1 error of λ̂ at n = 2000, {n_mixtures} mixtures: inversion "
        f"{row['inversion']:.3f} (target {ERROR_TARGET}, {reached}), em {row['em']:.3f}; counting "
        f"the sources themselves {row['counts']:.3f}"
    )
    rings = ", ".join(f"{name} {rate:.2f}" for name, rate in row["rings"].items())
    print(
        f"    alarm at level {LEVEL}, n = 300: rings for {row['false_alarms']:.3f} of the "
        f"mixtures, and for a left-out domain: {rings}"
    )


def main(quick: bool = False, data: Path | str | None = None) -> list[dict[str, Any]]:
    folder = Path(data or os.environ.get("ANYMIX_DATA", "../shared/data"))
    missing = [name for name in (OFFICE, REVIEWS) if not (folder / name).exists()]
    if missing:
        print(f"{folder} lacks {', '.join(missing)}: give the data folder by --data or ANYMIX_DATA")
        return []
    seeds, repeats = (range(1), 10) if quick else (range(8), 25)
    table = []
    for make in (lambda d: Office(d, True), lambda d: Office(d, False), Reviews):
        table.append(measure(make(folder), seeds, repeats))
        show(table[-1], len(seeds) * repeats)
    return table


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Errors of λ̂ and rates of the alarm")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--data")
    main(**vars(parser.parse_args()))
