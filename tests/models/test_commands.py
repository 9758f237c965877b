"""The command on every kind of folder that save can write: a right answer, or a sentence."""

from dataclasses import replace

import numpy as np
import pytest

import anymix
from anymix import DistributionWeightedClassifier, DistributionWeightedRegressor
from anymix.densities import DomainClassifier, GaussianKDE
from anymix.exchange import evaluate_site
from anymix.models import certify_sites, compare_sites, read_model
from anymix.monitor import Monitor
from tests.cli.organisations import write_csv
from tests.estimators.several_sources import classification, regression

KDE = GaussianKDE(bandwidth=0.8)
LABELS, NUMBERS = classification(25), regression(25)
NEW = {"labels": classification(20, seed=4), "numbers": regression(20, seed=4)}


def labels(**settings):
    settings = {"density": KDE, "cv": 2, "random_state": 0} | settings
    return DistributionWeightedClassifier(**settings).fit(*LABELS)


def numbers(loss, y=NUMBERS[1]):
    model = DistributionWeightedRegressor(
        density=KDE, loss=loss, cv=2, generalist=None, random_state=0
    )
    return model.fit(NUMBERS[0], y, NUMBERS[2])


FROM_SITES = {
    "cross-entropy": ("labels", lambda: labels(generalist=None)),
    "brier": ("labels", lambda: labels(loss="brier", generalist=None)),
    "normalised": ("labels", lambda: labels(rule="normalised", generalist=None)),
    "squared": ("numbers", lambda: numbers("squared")),
    "absolute": ("numbers", lambda: numbers("absolute")),
    "huber": ("numbers", lambda: numbers("huber")),
    "pinball": ("numbers", lambda: numbers("pinball")),
    "poisson_log": ("numbers", lambda: numbers("poisson_log", np.abs(NUMBERS[1]))),
}


@pytest.mark.parametrize("name", FROM_SITES)
def test_rows_at_hand_certify_as_in_python_and_what_sites_tell_too_or_is_refused(name, tmp_path):
    """Classes in no order, or errors, judged as if they were whole would be wrong, unseen."""
    task, make = FROM_SITES[name]
    model = make()
    anymix.save(model, tmp_path / "m")
    saved = read_model(tmp_path / "m")
    X, y, d = NEW[task]
    y = np.abs(y) if name == "poisson_log" else y
    sites = [
        evaluate_site(saved.received, one, X[d == one], y[d == one], min_rows=2)
        for one in np.unique(d).tolist()
    ]
    due = model.certify(X, y, d).source_losses
    # Pools with free weights or offsets, and a loss of numbers that are no errors, need whole rows.
    pools = [part.consulting for part in model.combination_.parts]
    refused = name == "poisson_log" or any(one and not one.takes_errors for one in pools)
    for given in (sites, [replace(site, whole=None) for site in sites]):
        if given is not sites and refused:
            for verb in (certify_sites, compare_sites):
                with pytest.raises(ValueError, match="in Python with model"):
                    verb(saved, given)
            continue
        found, seen = certify_sites(saved, given)
        assert not seen
        np.testing.assert_allclose(found.source_losses, due, rtol=1e-6)
        losses = compare_sites(saved, given)[0].loss[-1, : len(sites)]
        np.testing.assert_allclose(losses, found.source_losses, rtol=1e-6)


def test_site_files_of_a_model_with_a_generalist_are_refused(tmp_path):
    """They hold what sources predict, and nothing of the generalist."""
    anymix.save(labels(), tmp_path / "m")
    saved = read_model(tmp_path / "m")
    assert saved.generalist is not None
    X, y, d = NEW["labels"]
    sites = [
        evaluate_site(saved.received, name, X[d == name], y[d == name], min_rows=2)
        for name in np.unique(d).tolist()
    ]
    with pytest.raises(ValueError, match="evaluate the rows with the model"):
        certify_sites(saved, sites)


def adapted():
    model = labels()
    return Monitor.from_tables(model, n_bootstrap=50, level=0.05).adapt(LABELS[0][:40])


def one_source():
    with pytest.warns(UserWarning, match="the one source 'a'"):
        return DistributionWeightedClassifier(cv=2).fit(*LABELS[:2], np.full(len(LABELS[1]), "a"))


FOLDERS = {
    "one source": one_source,
    "adapted": adapted,
    "router": lambda: labels(density=DomainClassifier()),
    "normalised": lambda: labels(rule="normalised"),
    "brier": lambda: labels(loss="brier"),
}


@pytest.mark.parametrize("kind", FOLDERS)
def test_every_command_answers_in_an_answer_or_a_sentence(kind, run, tmp_path):
    folder, table = tmp_path / "m", tmp_path / "t.csv"
    anymix.save(FOLDERS[kind](), folder)
    X, y, d = NEW["labels"]
    columns = [f"x{i}" for i in range(X.shape[1])]
    write_csv(table, X, names=columns)
    held = [
        f"{one}={write_csv(tmp_path / f'{one}.csv', X[d == one], y[d == one], names=columns)}"
        for one in np.unique(d).tolist()
    ]
    commands = [
        ["predict", folder, table, "--out", tmp_path / "p.csv", "--weights"],
        ["predict", folder, table, "--out", tmp_path / "q.csv", "--novelty"],
        ["certify", folder],
        ["certify", folder, "--held-out", *held],
        ["compare", folder, "--held-out", *held],
        ["monitor", folder, table],
        ["report", folder, "--out", tmp_path / "r.html"],
        ["export", folder, tmp_path / "m.onnx"],
    ]
    for words in commands:
        said = run(*words)
        assert said.status in (0, 1, 3), words
        assert said.status < 2 or said.err.count("\n") == 1, (words, said.err)
    assert run(*commands[0], "--force").status == 0
    if kind != "one source":
        assert run("report", folder, "--out", tmp_path / "r.html", "--force").status == 0
