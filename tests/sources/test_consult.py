"""Consulting on tables: nothing leaks, few rows do no harm, and bad models hurt nobody."""

from dataclasses import replace

import numpy as np
import pytest

from anymix.core import LOSSES, get_loss, losses_at
from anymix.sources import Blocks, LearningSettings, Tables, certify_tables, consult, learn


def labels(rng, n, strength=(1.0, 1.0, 1.0), c=3):
    """Three sources that each know something of the label that the others do not."""
    truth = rng.normal(size=(3, 3 * n, c))
    y = np.argmax(2 * truth.sum(axis=0) + rng.gumbel(size=(3 * n, c)), axis=1)
    scores = truth * np.array(strength)[:, None, None]
    h = np.exp(scores) / np.exp(scores).sum(axis=2, keepdims=True)
    return tables(np.maximum(h, 1e-6), y, n, np.arange(c))


def numbers(rng, n):
    truth = rng.normal(size=(3, 3 * n))
    return tables(truth + 5, truth.sum(axis=0) + rng.normal(size=3 * n) + 5, n)


def tables(h, y, n, classes=None):
    domain = np.repeat([0, 1, 2], n)
    log_masses = np.where(np.arange(3)[:, None] == domain, 0.0, -3.0)
    return Tables(log_masses, h, y, domain, None, classes)


def at_home(found, loss):
    domain = np.asarray(found.sample_domain)
    losses = found.point_losses(loss)
    return np.array([losses[k, domain == k].mean() for k in range(len(losses))])


@pytest.mark.parametrize(("make", "loss"), [(labels, "cross_entropy"), (numbers, "squared")])
def test_what_folds_say_holds_on_new_rows(make, loss):
    learned = consult(make(np.random.default_rng(0), 3000), loss)
    new = make(np.random.default_rng(1), 4000)
    promised = at_home(learned.tables, loss)
    kept = at_home(new.heard(learned.consulting), loss)
    assert (kept < 0.9 * at_home(new, loss)).all()
    assert np.allclose(promised, kept, rtol=0.1)


def test_a_row_does_not_choose_what_is_said_of_it():
    """A label moves what is said of other rows; of its own only by the unit of the penalty."""
    given = numbers(np.random.default_rng(0), 50)
    learned = consult(given, "squared")
    row, step = 7, 1e-6  # so small that all folds stay as they are
    y = given.targets.copy()
    y[row] += step
    again = consult(replace(given, targets=y), "squared")
    moved = np.abs(learned.tables.predictions[0, :50] - again.tables.predictions[0, :50]) / step
    assert moved[row] < 1e-3
    assert moved.max() > 1e-2


def test_rows_of_others_do_not_count():
    rng = np.random.default_rng(0)
    given = numbers(rng, 60)
    y = given.targets.copy()
    y[60:] = rng.normal(size=120)
    one, other = consult(given, "squared"), consult(replace(given, targets=y), "squared")
    assert np.array_equal(one.consulting.weights[0], other.consulting.weights[0])


def test_the_order_of_rows_does_not_count():
    given = labels(np.random.default_rng(0), 60)
    order = np.random.default_rng(1).permutation(180)
    one, other = consult(given, "cross_entropy"), consult(given.taken(order), "cross_entropy")
    assert np.allclose(one.consulting.weights, other.consulting.weights, atol=1e-6)


@pytest.mark.parametrize("n", [3, 30])
@pytest.mark.parametrize("make", [labels, numbers])
def test_few_rows_do_no_harm(make, n):
    """Over many draws of few rows, with others that know nothing, the loss is near the own one."""
    loss = "cross_entropy" if make is labels else "squared"
    harm = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        given, new = make(rng, n), make(rng, 300)
        shuffled = rng.permutation(3 * n)
        for k in (1, 2):
            given.predictions[k] = given.predictions[k, shuffled]
            new.predictions[k] = new.predictions[k, rng.permutation(900)]
        learned = consult(given, loss)
        harm.append(at_home(new.heard(learned.consulting), loss)[0] - at_home(new, loss)[0])
    own = at_home(new, loss)[0]
    assert np.mean(harm) < 0.08 * own
    if n == 3:
        assert np.all(np.array(harm) == 0)


@pytest.mark.parametrize("bad", ["noise", "opposite"])
def test_a_bad_model_hurts_nobody(bad):
    rng = np.random.default_rng(0)
    sound, new = labels(rng, 300), labels(rng, 3000)
    spoilt, strange = sound.predictions.copy(), new.predictions.copy()
    for h in (spoilt, strange):
        h[2] = rng.permutation(h[2]) if bad == "noise" else h[2][:, ::-1]
    learned = consult(replace(sound, predictions=spoilt), "cross_entropy")
    without = consult(sound.without([2]), "cross_entropy")
    heard = replace(new, predictions=strange).heard(learned.consulting)
    alone = new.without([2]).heard(without.consulting)
    assert (at_home(heard, "cross_entropy")[:2] < at_home(alone, "cross_entropy") + 0.01).all()


def test_who_is_set_aside_keeps_to_its_own_model():
    given = numbers(np.random.default_rng(0), 100)
    learned = consult(given, "squared", set_aside=(1,))
    assert learned.consulting.consults.tolist() == [True, False, True]


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_every_loss_can_be_consulted(name):
    loss, rng = get_loss(name), np.random.default_rng(0)
    if loss.takes != "number":
        given = labels(rng, 150)
    else:
        y = rng.poisson(3.0, size=450).astype(float)
        y = np.where(y > 3, 1.0, -1.0) if name in ("logistic", "hinge") else y
        h = np.maximum(y + rng.normal(size=(3, 450)), 0.1)
        h = h - 2 if name in ("logistic", "hinge", "poisson_log") else h
        given = tables(h, y, 150)
    learned = consult(given, name)
    assert learned.consulting is not None
    gains = at_home(given, name) - at_home(learned.tables, name)
    assert np.allclose(gains, learned.advice.gains)
    assert (gains[learned.consulting.consults] > 0).all()


def test_errors_and_numbers_teach_alike_where_weights_sum_to_one():
    given = numbers(np.random.default_rng(0), 200)
    errors = replace(
        given, predictions=given.predictions - given.targets, targets=np.zeros(600), at_label=True
    )
    learned = consult(errors, "squared")
    assert learned.consulting.takes_errors
    said = given.heard(learned.consulting).predictions - given.targets
    assert np.allclose(said, errors.heard(learned.consulting).predictions)


def test_the_label_alone_is_too_little():
    given = labels(np.random.default_rng(0), 50)
    chosen = given.predictions[:, np.arange(150), given.targets][:, :, None]
    alone = replace(given, predictions=chosen, targets=np.zeros(150, dtype=int), at_label=True)
    assert consult(alone, "cross_entropy").consulting is None
    learned = consult(given, "cross_entropy")
    with pytest.raises(ValueError, match="probabilities of all classes"):
        alone.heard(learned.consulting)
    free = consult(numbers(np.random.default_rng(0), 200), "squared").consulting
    with pytest.raises(ValueError, match="hold errors"):
        replace(numbers(np.random.default_rng(0), 9), at_label=True).heard(free)


def test_learning_certifies_what_is_said_in_the_end():
    given = labels(np.random.default_rng(0), 200)
    plain = learn(given, LearningSettings("cross_entropy"))
    heard = learn(given, LearningSettings("cross_entropy", consult=True))
    assert not plain.combination.consults
    assert heard.combination.consults
    assert heard.evidence.certificate.robust_loss < plain.evidence.certificate.robust_loss
    # Own models are judged as they were handed over; what hearing brings is told beside it.
    assert np.allclose(heard.evidence.certificate.own_losses, at_home(given, "cross_entropy"))
    assert np.allclose(
        heard.evidence.consulting_gain.own_losses, heard.evidence.certificate.own_losses
    )
    assert heard.evidence.consulting_gain.gains.max() > 0
    assert np.allclose(np.diag(heard.evidence.cross_loss.mean), at_home(given, "cross_entropy"))
    new = labels(np.random.default_rng(1), 2000)
    fresh = certify_tables(new, heard.combination, "cross_entropy")
    said = heard.combination.predict(new.log_masses, new.predictions)
    losses = losses_at(said, new.targets, "cross_entropy")
    by_source = [losses[new.sample_domain == k].mean() for k in range(3)]
    assert np.allclose(fresh.source_losses, by_source)


def test_rounded_errors_teach_no_pool():
    """A model that errs by -70 or so is rounded to err by -64: perfect, but for an offset."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=400)
    errors = np.stack([rng.normal(size=400), rng.normal(-70, 5, size=400)])
    coarse = np.sign(errors) * np.exp2(np.round(np.log2(np.abs(errors))))
    for given, teaches in ((errors, True), (coarse, False)):
        tables = Tables(np.zeros((2, 400)), given, 0 * y, np.repeat([0, 1], 200), at_label=True)
        found = consult(tables, "squared").consulting
        assert (found is not None) == teaches


# -- with a generalist ---------------------------------------------------------------------------


def with_generalist(given, kind, rng):
    """Tables with one that knows all, noise, or the opposite of what is right."""
    y = np.asarray(given.targets)
    if given.classes is None:
        h = y + 0.1 * rng.normal(size=y.size)
        h = rng.permutation(h) if kind == "noise" else h
        return replace(given, generalist=10 - h if kind == "opposite" else h)
    h = np.full((y.size, 3), 0.05)
    h[np.arange(y.size), y] = 0.9
    h = rng.permutation(h) if kind == "noise" else h
    return replace(given, generalist=np.roll(h, 1, axis=1) if kind == "opposite" else h)


@pytest.mark.parametrize("kind", ["perfect", "noise", "opposite"])
@pytest.mark.parametrize("n", [10, 30, 100])
@pytest.mark.parametrize("make", [labels, numbers])
def test_a_generalist_helps_and_does_no_harm(make, n, kind):
    """Losses at home on new rows, over draws of few rows: near those without one, or far below."""
    loss = "cross_entropy" if make is labels else "squared"
    ratios = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        given, new = make(rng, n), make(rng, 500)
        without = at_home(new.heard(consult(given, loss).consulting), loss).mean()
        learned = consult(with_generalist(given, kind, rng), loss)
        found = with_generalist(new, kind, rng).heard(learned.consulting)
        ratios.append(at_home(found, loss).mean() / without)
    most = {"perfect": 0.5, "noise": 1.0 + 2.0 / n, "opposite": 1.0 + 2.0 / n}[kind]
    assert np.mean(ratios) < most


def test_of_rows_too_few_for_pools_all_sources_take_the_better_model():
    given = with_generalist(
        numbers(np.random.default_rng(0), 6), "perfect", np.random.default_rng(1)
    )
    learned = consult(given, "squared")
    assert learned.consulting.choice == (9, 9, 9)
    assert np.allclose(learned.tables.predictions, given.generalist)


def test_a_generalist_that_is_not_there_is_missed():
    rng = np.random.default_rng(0)
    given = with_generalist(numbers(rng, 50), "perfect", rng)
    learned = consult(given, "squared")
    with pytest.raises(ValueError, match="generalist"):
        replace(given, generalist=None).heard(learned.consulting)


def test_blocks_choose_as_one_table_does():
    rng = np.random.default_rng(0)
    given = with_generalist(labels(rng, 60), "perfect", rng)
    whole = learn(given, LearningSettings("cross_entropy", consult=True)).combination
    parts = Blocks([given.taken(given.rows_of(k)) for k in range(3)])
    spread = learn(parts, LearningSettings("cross_entropy", consult=True)).combination
    for one, other in zip(whole.parts, spread.parts, strict=True):
        assert one.consulting.choice == other.consulting.choice
        assert np.allclose(one.consulting.weights, other.consulting.weights, atol=1e-6)
