"""A site's file and the labels of its rows: said where it tells them, and a form that does not."""

import json
import re

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from anymix import Source
from anymix.cli import main
from anymix.densities import GaussianKDE
from anymix.exchange import (
    commonest,
    evaluate_site,
    groups_of_rows,
    labels_named,
    mean_of_rows,
    pack_source,
    read_site,
    read_sources,
)

SHARES = {"north": 0.5, "south": 0.4, "west": 0.95}  # of "ill"; the west is one-sided
LABELS = np.array(["ill", "well"])


def rows(name, n=200, seed=0):
    rng = np.random.default_rng([seed, list(SHARES).index(name)])
    y = LABELS[(rng.random(n) > SHARES[name]).astype(int)]
    return rng.normal(size=(n, 2)) + 0.5 * (y == "ill")[:, None], y


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    place = tmp_path_factory.mktemp("sites")
    for name in SHARES:
        X, y = rows(name)
        model = LogisticRegression().fit(X, y)
        pack_source(Source(name, model, GaussianKDE(0.7).fit(X)), place / name, rows=X, targets=y)
        Xh, yh = rows(name, seed=1)
        np.savez(place / f"{name}.npz", X=Xh, y=yh)
    return place


@pytest.fixture(scope="module")
def table(world):
    received = read_sources([world / name for name in SHARES])
    return evaluate_site(received, "north", *rows("north", seed=1), np.random.default_rng(0))


def test_a_one_sided_source_tells_labels_and_means_do_not(table):
    labels = np.asarray(table.whole.targets)
    assert labels_named(table.at_label().rounded().outcomes, labels) > 0.9
    group = groups_of_rows(table, 10, np.random.default_rng(0))
    means = mean_of_rows(table, group)
    told = labels_named(means.rounded().outcomes[:, group], labels)
    assert told <= commonest(labels) + 0.05
    # Nor to whoever knows of each row which group it is in, and what each group is made of.
    made_of = np.array([np.bincount(labels[group == g], minlength=2) for g in range(means.n_rows)])
    shares = made_of / made_of.sum(axis=1, keepdims=True)
    overall = np.bincount(labels) / labels.size
    assert np.abs(shares - overall).max() < 0.15
    assert made_of.sum(axis=1).min() >= 9
    assert (made_of.max(axis=1)).sum() / labels.size <= commonest(labels) + 0.05


def test_losses_of_means_do_not_flatter(table):
    """For weights that are the same in a group: −log Σ w h of its means ≥ the rows' mean loss."""
    group = groups_of_rows(table, 10, np.random.default_rng(0))
    means = mean_of_rows(table, group)
    h, pooled = table.at_label().outcomes, means.outcomes
    for w in np.random.default_rng(1).dirichlet(np.ones(3), 50):
        each = -np.log(w @ h)
        own = np.array([each[group == g].mean() for g in range(means.n_rows)])
        assert (-np.log(w @ pooled) >= own - 1e-12).all()


def evaluate(world, name, out, *options, capsys):
    words = ["site", "evaluate", *(str(world / one) for one in SHARES), "--site", name]
    words += ["--rows", str(world / f"{name}.npz"), "--out", str(out), "--force", *options]
    code = main(words)
    said = capsys.readouterr()
    return code, said.out, said.err


def test_the_command_says_how_many_labels_its_file_names(world, tmp_path, capsys):
    code, out, err = evaluate(world, "north", tmp_path / "a.site", capsys=capsys)
    assert code == 0
    named, most = map(int, re.search(r"the label of (\d+) % .* label has (\d+) %", out).groups())
    assert named > 90
    assert most < 60
    assert "the file reveals labels" in err
    options = ("--mean-of", "10")
    code, out, err = evaluate(world, "north", tmp_path / "b.site", *options, capsys=capsys)
    assert code == 0
    named, most = map(int, re.search(r"the label of (\d+) % .* label has (\d+) %", out).groups())
    assert named <= most + 5
    assert "reveals labels" not in err
    assert read_site(tmp_path / "b.site").means


def test_a_model_is_learned_from_means_and_claims_nothing_by_them(world, tmp_path, capsys):
    files = []
    for name in SHARES:
        files.append(str(tmp_path / f"{name}.site"))
        code, *_ = evaluate(world, name, files[-1], "--mean-of", "5", "--json", capsys=capsys)
        assert code == 0
    words = [*(str(world / name) for name in SHARES), "--from-sites", *files]
    assert main(["fit", *words, "--out", str(tmp_path / "m")]) == 0
    record = json.loads((tmp_path / "m" / "model.json").read_text())
    assert record["certificate"]["confidence"] is None
    capsys.readouterr()
    assert main(["certify", str(tmp_path / "m"), "--from-sites", *files]) == 3
    assert "holds means over rows" in capsys.readouterr().err


def test_too_few_rows_and_numbers_are_refused(world, tmp_path, capsys):
    code, _, err = evaluate(world, "north", tmp_path / "a", "--mean-of", "150", capsys=capsys)
    assert (code, "too few for means" in err) == (3, True)
    code, _, err = evaluate(
        world, "north", tmp_path / "a", "--mean-of", "5", "--exact", capsys=capsys
    )
    assert code == 2
