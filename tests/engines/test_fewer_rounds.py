"""How many rounds all that `fit` learns takes at ten sources."""

import numpy as np
import pytest

from anymix import Tables
from anymix.engines.federation import Settings, Sites, first_queries
from anymix.engines.site import answer, part_of_site
from anymix.engines.wire import dump_reply, load_queries
from anymix.sources import Blocks, learn


class Parts:
    """A transport to sites whose tables are here."""

    def __init__(self, tables, names):
        self.parts = {
            name: part_of_site(tables.taken(tables.rows_of(k))) for k, name in enumerate(names)
        }

    def nodes(self):
        return list(self.parts)

    def send(self, message, nodes, patience):
        queries = load_queries(message)
        return {n: dump_reply(n, [answer(q, self.parts[n]) for q in queries]) for n in nodes}


def drawn(p, m, labels, rng):
    """Sources of Gaussian rows, each with a linear model that is right at home."""
    centre = 1.2 * rng.normal(size=(p, 4))
    X = np.concatenate([mean + rng.normal(size=(m, 4)) for mean in centre])
    domain, W = np.repeat(np.arange(p), m), rng.normal(size=4) + 0.7 * rng.normal(size=(p, 4))
    log_masses = -0.5 * ((X - centre[:, None]) ** 2).sum(axis=2)
    told, truth = X @ W.T, (X * W[domain]).sum(axis=1)
    if not labels:
        return Tables(log_masses, told.T).labelled(truth + rng.normal(size=p * m), domain)
    chance = 1 / (1 + np.exp(-told.T))
    predictions = np.stack([1 - chance, chance], axis=2)
    y = (rng.random(p * m) < 1 / (1 + np.exp(-truth))).astype(int)
    return Tables(log_masses, predictions, classes=np.arange(2)).labelled(y, domain)


@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize("objective", ["regret", "robust"])
def test_all_that_fit_learns_takes_few_rounds(labels, objective):
    p, m = 10, 300
    names = [f"site{k}" for k in range(p)]
    sites = Sites(Parts(drawn(p, m, labels, np.random.default_rng(0)), names), names)
    task = "classification" if labels else "regression"
    goal = Settings(objective=objective).goal(task, tuple(names))
    sites.connect(first_queries(goal, p))
    learn(Blocks(names, map=sites, together=sites.together, ahead=True), goal)
    assert sites.n_rounds <= 25
