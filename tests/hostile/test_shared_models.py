"""What a model folder tells of single rows: little by default, nothing of held-out rows if shared.

And what a folder claims of itself: that it is a claim stands where the claim does.
"""

import itertools
import json
import re
import warnings

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression

import anymix
from anymix import DistributionWeightedClassifier, DistributionWeightedRegressor
from anymix.densities import DomainClassifier, GaussianKDE, GaussianMixtureDensity
from anymix.exceptions import AuditError, InputError
from anymix.exchange import load_arrays
from anymix.models import add_record, read_model, read_record, summarise_folder
from anymix.report import render
from anymix.sources import Seen

LABEL = "claimed by the folder, not verified"
FEW = (20, 2, 3, 6, 2)  # values of each column, as coded answers have


def coded(n=300, seed=0):
    """Rows of few values: all that are possible can be listed."""
    rng = np.random.default_rng(seed)
    X = np.stack([rng.integers(0, k, n) for k in FEW], axis=1).astype(float)
    domain = np.where(X[:, 0] + rng.normal(0, 4, n) < 10, "east", "west")
    return X, (X[:, 3] + rng.normal(0, 2, n) > 2.5).astype(int), domain


@pytest.fixture(scope="module")
def model():
    X, y, domain = coded()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return DistributionWeightedClassifier(
            LogisticRegression(), density=DomainClassifier(), random_state=0
        ).fit(X, y, sample_domain=domain)


@pytest.fixture
def shared(model, tmp_path):
    anymix.save(model, tmp_path / "shared", share=True)
    return tmp_path / "shared"


def test_listing_all_possible_rows_singles_none_out_of_a_saved_folder(model, tmp_path):
    """Of the rows that seem known at least four in five were not there; in 0.3.0 none."""
    anymix.save(model, tmp_path / "m")
    seen = anymix.load(tmp_path / "m").seen_
    X = coded()[0]
    grid = np.array(list(itertools.product(*map(range, FEW))), dtype=float)
    real = {tuple(row) for row in X.tolist()}
    new = np.array([row for row in grid.tolist() if tuple(row) not in real])
    ways = [one.knows(content) for one, content in seen._contents(new)]
    assert ways
    assert all(one.bits < 16 for one in (seen.said, *seen.grids))
    every = np.all(ways, axis=0)
    assert every.sum() > 0.05 * len(new)
    assert not any(seen.have_seen(row[None]) for row in X)


def test_rows_of_the_fit_are_recognised_after_loading(model, tmp_path):
    anymix.save(model, tmp_path / "m")
    again = anymix.load(tmp_path / "m")
    X, _, domain = coded()
    assert again.seen_domains(X, domain) == ["east", "west"]
    rng = np.random.default_rng(1)
    new = X + rng.uniform(0.2, 0.8, size=X.shape)
    assert again.seen_domains(new, domain) == []


def test_few_bits_recognise_continuous_rows_and_texts():
    rng = np.random.default_rng(0)
    X, texts = rng.normal(size=(200, 3)), [f"text {i}" for i in range(400)]
    tables = anymix.evaluate(
        [anymix.Source(name, lambda X: X[:, 0], lambda X: X[:, 1]) for name in "ab"], X
    ).labelled(X[:, 0], np.arange(200) % 2)
    for rows, others in ((X, rng.normal(size=(200, 3))), (texts[:200], texts[200:])):
        known = Seen.of(tables, rows).faint()
        assert known.have_seen(rows[:40])
        assert not known.have_seen(others)
        assert not known.have_seen(rows[:1])


def test_a_shared_folder_holds_what_predicts_and_the_certificate(model, shared):
    X, y, domain = coded(seed=3)
    record, again = read_record(shared), anymix.load(shared)
    stated = {name for name, value in record.items() if value}
    assert "certificate" in stated
    assert not stated & {"seen", "tables", "novelty", "fold_scores", "comparison", "cross_loss"}
    assert not list(shared.glob("tables-*"))
    np.testing.assert_allclose(again.predict_proba(X), model.predict_proba(X), rtol=1e-9)
    assert again.certificate_.to_dict() == model.certificate_.to_dict()
    assert LABEL in again.describe()
    with pytest.raises(AuditError, match="no tables to recompute its certificate from"):
        anymix.load(shared, verify=True)
    assert again.certify(X, y, domain).robust_loss > 0


def test_a_shared_folder_has_no_held_out_target_or_row(model, shared):
    X, y, _ = coded()
    for path in shared.rglob("*.safetensors"):
        arrays = load_arrays(path.read_bytes(), str(path))
        assert all(len(y) not in array.shape for array in arrays.values()), path
    text = (shared / "model.json").read_text()
    assert "digests" not in text
    assert not re.search(rf"(\d+,\s*){{{len(X)}}}", text)


def test_a_shared_model_that_was_loaded_is_saved_as_it_is(shared, tmp_path):
    anymix.save(anymix.load(shared), tmp_path / "again")
    one, other = (read_record(folder) for folder in (shared, tmp_path / "again"))
    assert one["certificate"] == other["certificate"]


def regressor(density, learner=None):
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(-1, 1, (60, 2)), rng.normal(1, 1, (60, 2))]
    y = np.exp(X[:, 0]) + 0.1 * rng.normal(size=120)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = DistributionWeightedRegressor(learner, density=density, random_state=0)
        return model.fit(X, y, sample_domain=np.repeat(["a", "b"], 60)), X, y


def test_a_density_of_training_rows_is_not_shared(tmp_path):
    with pytest.raises(InputError, match="training rows"):
        anymix.save(regressor(GaussianKDE())[0], tmp_path / "m", share=True)
    assert not (tmp_path / "m").exists()
    anymix.save(regressor(GaussianMixtureDensity(2))[0], tmp_path / "m", share=True)


def test_a_predictor_that_holds_targets_is_not_shared(tmp_path):
    model, X, y = regressor(DomainClassifier(), RandomForestRegressor(5, random_state=0))
    with pytest.raises(AuditError, match="the target of a single"):
        anymix.save(model, tmp_path / "m", share=True)
    with pytest.raises(AuditError, match="training targets as they are"):
        anymix.save(model, tmp_path / "m", share=True, rows=X, targets=y)


def test_the_command_writes_a_shareable_folder(model, tmp_path, capsys):
    from anymix.cli import main

    anymix.save(model, tmp_path / "m")
    words = ["export", str(tmp_path / "m"), "--shareable", str(tmp_path / "s")]
    assert main(words) == 0
    assert not list((tmp_path / "s").glob("tables-*"))
    assert main(words) == 3
    assert main([*words, "--force"]) == 0
    X = coded(seed=4)[0]
    given, due = (anymix.load(tmp_path / name).predict_proba(X) for name in "sm")
    np.testing.assert_allclose(given, due, rtol=1e-9)
    capsys.readouterr()


def forged(model, folder):
    """A folder with a record of new rows that is a millionth of what was measured."""
    anymix.save(model, folder)
    X, y, domain = coded(600, seed=5)
    found = read_model(folder).model.certify(X, y, domain)
    add_record(folder, "certificate", found)
    record = json.loads((folder / "certificate.json").read_text())
    for name in ("own_losses", "source_losses"):
        record[name] = [1e-6 * value for value in record[name]]
    for name in ("epsilon", "robust_loss", "regret", "loss_upper", "regret_upper", "gamma"):
        record[name] = record[name] and 1e-6 * record[name]
    (folder / "certificate.json").write_text(json.dumps(record))
    return folder


def test_a_forged_certificate_is_called_a_claim_wherever_it_stands(model, tmp_path, capsys):
    from anymix.cli import main
    from anymix.exchange import describe_graph

    folder = forged(model, tmp_path / "m")
    for verify in (False, True):
        render(summarise_folder(folder, verify=verify), tmp_path / "r.html")
        page = re.sub(r"<[^>]+>", " ", (tmp_path / "r.html").read_text())
        tile = page[page.index("Guaranteed on every mixture") :][:600]
        assert LABEL.capitalize() in tile
    words = ["export", str(folder), str(tmp_path / "m.onnx"), "--card", str(tmp_path / "c.md")]
    assert main(words) == 0
    assert describe_graph(tmp_path / "m.onnx")["certificate.status"] == LABEL
    card = (tmp_path / "c.md").read_text()
    assert LABEL in card[card.index("## Certificate") :]
    assert LABEL in anymix.load(folder).describe()
    capsys.readouterr()


def test_what_was_recomputed_is_no_claim(model, tmp_path, capsys):
    from anymix.cli import main
    from anymix.exchange import describe_graph

    anymix.save(model, tmp_path / "m")
    assert LABEL not in anymix.load(tmp_path / "m", verify=True).describe()
    assert main(["export", str(tmp_path / "m"), str(tmp_path / "m.onnx"), "--verify"]) == 0
    assert "certificate.status" not in describe_graph(tmp_path / "m.onnx")
    capsys.readouterr()
