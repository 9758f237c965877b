"""Networks of PyTorch as sources: asked at rest, in batches, and left as they were."""

import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest

import anymix
from anymix import DistributionWeightedClassifier, DistributionWeightedRegressor, Source
from anymix.densities import GaussianKDE
from anymix.estimators import compare
from anymix.exceptions import InputError
from anymix.exchange import pack_source, read_source
from anymix.sources import evaluate, torch_predictor

torch = pytest.importorskip("torch", reason="the extra networks brings PyTorch")
nn = torch.nn
LABELS = ["no", "yes"]
BOTH = np.array(LABELS)
X = np.random.default_rng(0).normal(size=(120, 3))


@pytest.fixture(autouse=True)
def _same_weights():
    torch.manual_seed(0)


def net(n_out=2, end=()):
    layers = [nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5)]
    return nn.Sequential(*layers, nn.Linear(8, n_out), *end)


def asked(module, rows):
    with torch.no_grad():
        return module.eval()(torch.tensor(rows, dtype=torch.float32)).double().numpy()


@pytest.mark.parametrize("output", ["logits", "probabilities"])
def test_two_columns_are_the_classes(output):
    module = net(2, [nn.Softmax(1)] if output == "probabilities" else [])
    source = Source.from_torch(module, name="a", output=output, classes=LABELS)
    out = asked(module, X)
    due = out if output == "probabilities" else np.exp(out) / np.exp(out).sum(axis=1)[:, None]
    np.testing.assert_allclose(source.predict_proba(X, BOTH), due, atol=1e-6)
    assert source.gives_probabilities


@pytest.mark.parametrize("output", ["logits", "probabilities"])
def test_one_column_is_the_second_class(output):
    module = net(1, [nn.Sigmoid()] if output == "probabilities" else [])
    source = Source.from_torch(module, name="a", output=output, classes=LABELS)
    out = asked(module, X)[:, 0]
    due = out if output == "probabilities" else 1 / (1 + np.exp(-out))
    np.testing.assert_allclose(source.predict_proba(X, BOTH)[:, 1], due, atol=1e-6)


@pytest.mark.parametrize("end", [[], [nn.Flatten(0)]])
def test_numbers_come_as_one_column_or_none(end):
    module = net(1, end)
    source = Source.from_torch(module, name="a", output="number", n_rows=9)
    np.testing.assert_allclose(source.predict(X), asked(module, X).ravel(), atol=1e-6)
    assert source.n_rows == 9


def test_every_part_keeps_its_mode_and_no_gradient_is_kept():
    module = net().train()
    module[1].eval()  # a normalisation that its owner has frozen
    before = [part.training for part in module.modules()]
    mean = module[1].running_mean.clone()
    source = Source.from_torch(module, name="a", output="logits", classes=LABELS)
    once, again = (source.predict_proba(X, BOTH) for _ in range(2))
    np.testing.assert_array_equal(once, again)
    assert [part.training for part in module.modules()] == before
    assert torch.equal(module[1].running_mean, mean)
    assert all(weight.grad is None for weight in module.parameters())

    class Broken(nn.Module):
        def forward(self, rows):
            raise RuntimeError("no")

    broken = Broken().train()
    with pytest.raises(RuntimeError, match="no"):
        Source.from_torch(broken, name="a", output="number").predict(X)
    assert broken.training


def test_threads_do_not_undo_each_others_mode():
    module = net().train()
    source = Source.from_torch(module, name="a", output="logits", classes=LABELS)
    due = source.predict_proba(X, BOTH)
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda _: source.predict_proba(X, BOTH), range(40)):
            np.testing.assert_array_equal(found, due)
    assert module.training


def test_batches_change_nothing(monkeypatch):
    source = Source.from_torch(net(), name="a", output="logits", classes=LABELS)
    due = source.predict_proba(X, BOTH)
    monkeypatch.setattr(torch_predictor, "BATCH_ROWS", 7)
    np.testing.assert_allclose(source.predict_proba(X, BOTH), due, atol=1e-6)
    assert source.predict_proba(X[:0], BOTH).shape == (0, 2)
    frame = pd.DataFrame(X, columns=list("abc"))
    np.testing.assert_allclose(source.predict_proba(frame, BOTH), due, atol=1e-6)


def test_rows_have_the_type_of_the_weights_and_answers_are_float64():
    source = Source.from_torch(net().double(), name="a", output="logits", classes=LABELS)
    assert source.predictor.kind()[0] == torch.float64
    assert source.predict_proba(X, BOTH).dtype == np.float64
    bare = Source.from_torch(nn.Flatten(0), name="a", output="number")
    np.testing.assert_allclose(bare.predict(X[:, :1]), X[:, 0], atol=1e-6)


def test_rows_are_shaped_as_the_module_takes_them(tmp_path):
    module = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(72, 2))
    rows = np.random.default_rng(1).normal(size=(60, 64))
    density = GaussianKDE(0.5).fit(rows)
    source = Source.from_torch(
        module, name="a", output="logits", classes=LABELS, shape=(1, 8, 8), density=density
    )
    due = source.predict_proba(rows, BOTH)
    pack_source(source, tmp_path / "a", rows=rows)
    np.testing.assert_allclose(
        read_source(tmp_path / "a").predict_proba(rows, BOTH), due, atol=1e-5
    )


def world(kind, **given):
    """Three sources of one network each, with the rows that they are for."""
    rng, rows, domain, sources = np.random.default_rng(3), [], [], []
    for k, centre in enumerate((-2.0, 0.0, 2.0)):
        part = rng.normal(centre, 1, (80, 3))
        sources.append(
            Source.from_torch(
                net(2 if kind == "logits" else 1),
                name=f"site {k}",
                density=GaussianKDE(0.5).fit(part),
                output=kind,
                **given,
            )
        )
        rows.append(part)
        domain += [f"site {k}"] * 80
    return sources, np.concatenate(rows), np.array(domain)


def test_a_classifier_is_learned_compared_saved_and_served(tmp_path):
    sources, rows, domain = world("logits", classes=LABELS)
    y = np.where(rows[:, 0] + rows[:, 1] > 0, "yes", "no")
    model = DistributionWeightedClassifier.from_sources(sources).fit(rows, y, sample_domain=domain)
    assert evaluate(sources, rows, BOTH).predictions.shape == (3, 240, 2)
    found = compare({"anymix": model}, rows + 0.5, y, domain)
    assert np.isfinite(found.loss).all()
    anymix.save(model, tmp_path / "m")
    again = anymix.load(tmp_path / "m")
    np.testing.assert_allclose(again.predict_proba(rows), model.predict_proba(rows), atol=1e-5)


def test_a_regressor_is_learned_packed_and_left_training(tmp_path):
    sources, rows, domain = world("number")
    sources[0].predictor.module.train()
    model = DistributionWeightedRegressor.from_sources(sources)
    model.fit(rows, rows[:, 0], sample_domain=domain)
    pack_source(sources[0], tmp_path / "a", rows=rows[:80])
    due = sources[0].predict(rows)
    np.testing.assert_allclose(read_source(tmp_path / "a").predict(rows), due, atol=1e-4)
    assert all(part.training for part in sources[0].predictor.module.modules())


def test_a_source_can_be_copied():
    source = Source.from_torch(net(), name="a", output="logits", classes=LABELS)
    again = pickle.loads(pickle.dumps(source))  # noqa: S301
    np.testing.assert_array_equal(again.predict_proba(X, BOTH), source.predict_proba(X, BOTH))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"output": "scores", "classes": LABELS}, "choose one of logits, probabilities, number"),
        ({"output": "logits"}, r"do not go together; pass classes=\[\.\.\.\]"),
        ({"output": "number", "classes": LABELS}, "do not go together; leave classes out"),
        ({"output": "logits", "classes": [0, 0]}, "name one twice; name each once"),
    ],
)
def test_what_does_not_go_together_is_refused(given, said):
    with pytest.raises(InputError, match=said):
        Source.from_torch(net(), name="a", **given)


def test_other_shapes_and_other_things_are_refused():
    with pytest.raises(InputError, match=r"is not a torch\.nn\.Module"):
        Source.from_torch(lambda rows: rows, name="a", output="number")
    wrong = Source.from_torch(net(4), name="a", output="logits", classes=["a", "b", "c"])
    with pytest.raises(InputError, match=r"gives the shape \(120, 4\) where \(n, 3\) is expected"):
        wrong.predict_proba(X, np.array(["a", "b", "c"]))


def test_without_pytorch_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match="extra 'networks'"):
        Source.from_torch(object(), name="a", output="number")
