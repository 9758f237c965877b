"""What a lying site does to the others, who is named, and what it costs to be robust.

    python -m benchmarks.poison [--quick] [number of random problems]

Honest problems: how often a site or source is named, and the worst loss and regret of fits with and
without set_aside="worst".  A random problem counts as agreeing if the model loses less than three
times what each source's own model does at home: sites whose laws contradict each other where they
overlap do harm each other, and are named for it.

Attacks: one site hands in invented rows, twenty or as many as the others.  The real loss of the
site that suffers most, on its true rows, is told for honest files, for the lie, for
set_aside="worst", for the liar named by hand, and for sums within a site that are medians of means.

    outcomes           rows that look like another site's, whose predictor is said to fail there
    responsibilities   true outcomes, rows that look like another site's
    noise              random responsibilities and outcomes
    opposite           true rows, with the predictors of the liar and of another site exchanged
    few                true rows, three of which are replaced by those of "outcomes"
"""

import sys
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anymix.core import SolverWarning
from anymix.exchange import SiteTable, evaluate_site, join_sites
from anymix.sources import LearningSettings, Tables, find_influence, learn
from benchmarks.site_privacy import Rows, digits, made_up, received, train

Floats = NDArray[np.float64]
AGREEING = 3.0
LIAR, VICTIM = 2, 0
GROUPS = 9  # of a median of means
FEW = 3


def levels(spread: float = 4.0, gap: float = 70.0) -> list[Rows]:
    """Three sites at three levels of the target."""
    rng, parts = np.random.default_rng(0), []
    for k, centre in enumerate(((spread, 0.0), (0.0, spread), (-spread, 0.0))):
        X = rng.normal(centre, size=(350, 2))
        y = gap * k + 3.0 * X[:, 0] + 5.4 * rng.normal(size=350)
        parts.append(Rows(X[:200], y[:200], X[200:], y[200:]))
    return parts


PROBLEMS = {
    "levels, apart": levels,
    "levels, overlapping": lambda: levels(2.0),
    "numbers, 2 features": lambda: made_up(2, True, 0),
    "labels, 2 features": lambda: made_up(2, False, 0),
    "digits, 64 features": digits,
}


def random_problem(seed: int) -> Tables:
    """Three to seven sites with Gaussian rows and laws that agree more or less."""
    rng = np.random.default_rng(seed)
    p, d = int(rng.integers(3, 8)), int(rng.integers(1, 6))
    spread, conflict, gap = rng.uniform(0.3, 5), rng.uniform(0, 1), float(rng.choice([1, 10, 70]))
    centres, wide = spread * rng.normal(size=(p, d)), rng.uniform(0.5, 1.5, p)
    laws = (1 - conflict) * rng.normal(size=d) + conflict * rng.normal(size=(p, d))
    laws, shift = laws * gap / 3, gap * conflict * rng.normal(size=p)
    domain = np.repeat(np.arange(p), rng.integers(40, 300, p))
    X = centres[domain] + wide[domain, None] * rng.normal(size=(domain.size, d))
    noise = rng.uniform(0.1, 1, p)[domain] * rng.normal(size=domain.size)
    y = (X * laws[domain]).sum(axis=1) + shift[domain] + noise
    away = (X[None] - centres[:, None]) / wide[:, None, None]
    log_d = -0.5 * (away**2).sum(axis=2) - d * np.log(wide)[:, None]
    # Models that were learned from some rows are a little wrong everywhere.
    predictions = laws @ X.T + shift[:, None] + 0.1 * (rng.normal(size=(p, d)) @ X.T)
    return Tables(log_d, predictions).labelled(y, domain)


class Site(NamedTuple):
    """Honest files of a problem, with what joins them."""

    known: list[Any]
    sites: list[SiteTable]

    def tables(self, lie: SiteTable | None = None) -> Tables:
        files = list(self.sites)
        if lie is not None:
            files[LIAR] = lie
        return join_sites(files, self.known)


def files_of(parts: Sequence[Rows]) -> Site:
    sources, labels = train(parts)
    known = received(sources, labels)
    pairs = zip(sources, parts, strict=True)
    return Site(known, [evaluate_site(known, s.name, r.held_X, r.held_y) for s, r in pairs])


def lies(site: SiteTable, n: int, rng: np.random.Generator) -> dict[str, SiteTable]:
    """Files that the site could hand in instead."""
    p, m = site.outcomes.shape
    squared = site.loss == "squared"
    near = np.full((p, n), 0.5e-9)
    near[VICTIM] = 1 - 0.5e-9 * (p - 1)
    failing = np.full((p, n), 0.0 if squared else 1.0)
    failing[VICTIM] = 1e6 if squared else 1e-6
    some = rng.permutation(m)[:n] if n <= m else rng.integers(m, size=n)
    swapped = np.arange(p)
    swapped[[LIAR, VICTIM]] = VICTIM, LIAR
    random = rng.dirichlet(np.ones(p), size=n).T.clip(1e-12)
    size = np.abs(site.outcomes).max()
    wild = size * rng.normal(size=(p, n)) if squared else rng.uniform(1e-6, 1, size=(p, n))
    told = {
        "outcomes": (near, failing),
        "responsibilities": (near, site.outcomes[:, some]),
        "noise": (random / random.sum(axis=0), wild),
        "opposite": (np.exp(site.log_responsibilities[:, some]), site.outcomes[swapped][:, some]),
        "few": tuple(
            np.concatenate([false[:, :FEW], true[:, some][:, FEW:]], axis=1)
            for false, true in (
                (near, np.exp(site.log_responsibilities)),
                (failing, site.outcomes),
            )
        ),
    }
    return {
        name: replace(
            site, log_responsibilities=np.log(r.clip(1e-300)), outcomes=outcomes, log_total=None
        )
        for name, (r, outcomes) in told.items()
    }


def median_of_means(tables: Tables, goal: LearningSettings, rng: np.random.Generator) -> Tables:
    """Keep of each site the group of rows whose mean loss, of equal weights, is the median one.

    z from the group of the median is what a median of sums within a site would see.
    """
    losses = tables.point_losses(goal.loss).mean(axis=0)
    kept, domain = [], np.asarray(tables.sample_domain)
    for k in range(len(tables.log_masses)):
        groups = np.array_split(rng.permutation(np.flatnonzero(domain == k)), GROUPS)
        order = np.argsort([losses[group].mean() for group in groups])
        kept += [groups[i] for i in order[GROUPS // 3 : -(GROUPS // 3)]]
    return tables.taken(np.sort(np.concatenate(kept)))


def real(tables: Tables, goal: LearningSettings, learned: Any) -> tuple[Floats, Floats]:
    """L_k and ε_k on true rows."""
    used = learned.combination
    problem = tables.weighed(used.calibration).problem(goal.loss, used.eta)
    return problem.source_losses(used.z), problem.own_losses


def robust(tables: Tables, goal: LearningSettings) -> LearningSettings:
    """The goal with the worst site set aside, as the estimators do it."""
    worst = find_influence(tables, goal, range(len(tables.log_masses))).worst()
    ways = len(tables.log_masses) + 1
    return replace(goal, set_aside=() if worst is None else (worst,), ways=ways)


def price(name: str, tables: Tables, goal: LearningSettings) -> str:
    """Worst loss, regret and certified loss of honest sites with and without "worst"."""
    cells = []
    for wish in (goal, robust(tables, goal)):
        learned = learn(tables, wish)
        L, own = real(tables, goal, learned)
        upper = learned.evidence.certificate.loss_upper
        cells.append([L.max(), (L - own).max(), upper])
    pairs = zip(*cells, strict=True)
    aside = "nobody" if not wish.set_aside else f"site {wish.set_aside[0]}"
    return f"| {name} | {aside} | " + " | ".join(f"{a:.4g} | {b:.4g}" for a, b in pairs) + " |"


def attack(files: Site, lie: SiteTable) -> str:
    """Real loss of the site that suffers most, in every way of learning."""
    goal, truth = LearningSettings(loss=lie.loss), files.tables()
    told = files.tables(lie)
    influence = find_influence(told, goal, range(len(files.sites)))
    wish = robust(told, goal)
    fits = {
        "lie": learn(told, goal),
        "worst": learn(told, wish),
        "by hand": learn(told, replace(goal, set_aside=(LIAR,))),
        "medians": learn(median_of_means(told, goal, np.random.default_rng(0)), goal),
    }
    honest = real(truth, goal, learn(truth, goal))[0]
    others = np.arange(honest.size) != LIAR
    losses = {name: real(truth, goal, learned)[0] for name, learned in fits.items()}
    k = int(np.argmax(np.where(others, losses["lie"] / honest, 0.0)))
    said = (
        any(j == LIAR and by_rows for j, _, by_rows in influence.moved()),
        influence.least_known() == LIAR,
    )
    cells = [f"{honest[k]:.4g}", *(f"{L[k]:.4g}" for L in losses.values())]
    return " | ".join([*cells, *("yes" if one else "no" for one in said)])


def alarms(seeds: range) -> None:
    """Count honest random problems in which anybody is named."""
    counts = {"agreeing": [0, 0, 0], "contradicting": [0, 0, 0]}
    for seed in seeds:
        tables, goal = random_problem(seed), LearningSettings()
        found = find_influence(tables, goal, range(len(tables.log_masses)))
        kind = "agreeing" if (found.losses < AGREEING * found.own_losses).all() else "contradicting"
        by_rows = [one[2] for one in found.moved()]
        seen = 1, any(by_rows), not all(by_rows)
        counts[kind] = [a + b for a, b in zip(counts[kind], seen, strict=True)]
    print("| honest random problems | number | a site's rows named | a source named |")
    print("|---|---|---|---|")
    for kind, (n, rows, sources) in counts.items():
        print(f"| {kind} | {n} | {rows} | {sources} |")


def contradictions(seeds: range) -> None:
    """What honest sites that contradict each other win and lose where "worst" sets one aside."""
    ratios = []
    for seed in seeds:
        tables, goal = random_problem(seed), LearningSettings()
        wish = robust(tables, goal)
        if wish.set_aside:
            j = wish.set_aside[0]
            before, after = (real(tables, goal, learn(tables, one))[0] for one in (goal, wish))
            others = np.delete(after, j).max() / np.delete(before, j).max()
            ratios.append((after[j] / before[j], others, after.max() / before.max()))
    print(
        f"\nof {len(seeds)} honest random problems worst set a site aside in {len(ratios)}; there"
    )
    for name, column in zip(
        ("its loss", "the worst of the others", "the worst of all"),
        zip(*ratios, strict=True),
        strict=True,
    ):
        low, middle, high = np.quantile(column, [0.1, 0.5, 0.9])
        print(
            f"{name} became {middle:.2g} times what it was "
            f"(one in ten below {low:.2g}, one in ten above {high:.2g})"
        )


def main(quick: bool = False, n: int = 300) -> None:
    warnings.simplefilter("ignore", SolverWarning)
    alarms(range(4 if quick else n))
    contradictions(range(4 if quick else n // 5))
    chosen = ["levels, apart"] if quick else list(PROBLEMS)
    problems = {name: files_of(PROBLEMS[name]()) for name in chosen}
    print(
        "\n| honest sites | worst sets aside | worst loss | with worst | regret | with worst | "
        "certified loss | with worst |"
    )
    print("|---" * 8 + "|")
    for name, files in problems.items():
        print(price(name, files.tables(), LearningSettings(loss=files.sites[0].loss)), flush=True)
    print(
        "\n| attack | honest | lie | worst | liar set aside by hand | medians of means | its rows "
        "named | looked at first |"
    )
    print("|---" * 8 + "|")
    for name, files in problems.items():
        for rows in (20,) if quick else (20, files.sites[LIAR].outcomes.shape[1]):
            told = lies(files.sites[LIAR], rows, np.random.default_rng(0))
            for kind in list(told)[:1] if quick else told:
                print(f"| {name}: {kind}, {rows} | {attack(files, told[kind])} |", flush=True)


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()]
    main("--quick" in sys.argv, *numbers)
