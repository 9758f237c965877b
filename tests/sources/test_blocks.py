"""What rows in parts teach is what all of them teach: z, calibration, pools, certificate."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from anymix.core import Assumptions, CrossFittedCombination, clip_of
from anymix.sources import (
    Block,
    Blocks,
    Grounds,
    HeldOut,
    LearningSettings,
    Tables,
    certify_tables,
    combined_predictions,
    find_z,
    in_threads,
    learn,
    learn_fold,
    numbers_in,
    usual_clip,
    usual_cut,
)
from anymix.sources.certification import JudgedAverage
from tests.engines.worlds import at_home, in_chunks, labels, numbers


def assert_same_record(found, due, atol=1e-8):
    """Records with the same numbers."""
    mine, theirs = found.to_dict(), due.to_dict()
    assert mine.keys() == theirs.keys()
    for name, value in theirs.items():
        if name in ("bounds", "beside", "assumptions"):
            continue
        if value is None or isinstance(value, str) or not np.size(value):
            assert mine[name] == value, name
        else:
            np.testing.assert_allclose(mine[name], value, atol=atol, err_msg=name)


def assert_same_certificate(found, due):
    assert_same_record(found, due)
    assert [b.paper for b in found.bounds] == [b.paper for b in due.bounds]
    for one, other in zip(found.bounds, due.bounds, strict=True):
        assert one.value == pytest.approx(other.value, abs=1e-8)
        assert (one.name, one.checked, one.contradicted) == (
            other.name,
            other.checked,
            other.contradicted,
        )
    assert [b.name for b in found.beside] == [b.name for b in due.beside]
    for one, other in zip(found.beside, due.beside, strict=True):
        assert one.loss == pytest.approx(other.loss, abs=1e-9)
    assert found.sentence == due.sentence


def assert_same_average(found, due):
    assert len(found.parts) == len(due.parts)
    for one, other in zip(found.parts, due.parts, strict=True):
        np.testing.assert_allclose(one.z, other.z, atol=1e-8)
        for name in ("calibration", "consulting"):
            mine, theirs = getattr(one, name), getattr(other, name)
            assert (mine is None) == (theirs is None)
            if mine is not None:
                assert_same_record(mine, theirs)


CASES = {
    "numbers": (numbers, LearningSettings()),
    "numbers that hear": (numbers, LearningSettings(consult=True)),
    "weights": (lambda: numbers(weight=True), LearningSettings(consult=True)),
    "few rows": (lambda: numbers(12), LearningSettings(consult=True)),
    "absolute, robust": (numbers, LearningSettings(loss="absolute", objective="robust")),
    "gamma": (numbers, LearningSettings(objective="gamma")),
    "not calibrated": (numbers, LearningSettings(calibrate=False, shrinkage=0.01)),
    "set aside": (numbers, LearningSettings(set_aside=(1,), ways=4, consult=True)),
    "labels": (labels, LearningSettings(loss="cross_entropy")),
    "labels that hear": (labels, LearningSettings(loss="cross_entropy", consult=True)),
    "normalised": (labels, LearningSettings(loss="cross_entropy", rule="normalised", fresh=False)),
    "many labels": (lambda: labels(4000), LearningSettings(loss="cross_entropy")),
    "brier": (labels, LearningSettings(loss="brier", consult=True, names=("a", "b", "c"))),
}


@pytest.mark.parametrize("case", CASES)
def test_sites_teach_what_all_rows_teach(case):
    world, goal = CASES[case]
    tables = world()
    due = learn(tables, goal)
    found = learn(Blocks(at_home(tables)), goal)
    assert_same_average(found.combination, due.combination)
    assert_same_certificate(found.evidence.certificate, due.evidence.certificate)
    np.testing.assert_allclose(found.evidence.solution.z, due.evidence.solution.z, atol=1e-8)
    assert found.evidence.solution.status == due.evidence.solution.status
    crossed = (each.evidence.cross_loss for each in (found, due))
    for one, other in zip(*((table.mean, table.upper) for table in crossed), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)
    assert (found.evidence.calibration_report is None) == (due.evidence.calibration_report is None)
    if due.evidence.calibration_report is not None:
        for name, value in vars(due.evidence.calibration_report).items():
            assert getattr(found.evidence.calibration_report, name) == pytest.approx(
                value, abs=1e-9
            )
    assert (found.evidence.consulting_gain is None) == (due.evidence.consulting_gain is None)
    if due.evidence.consulting_gain is not None:
        np.testing.assert_allclose(
            found.evidence.consulting_gain.gains, due.evidence.consulting_gain.gains, atol=1e-9
        )
        np.testing.assert_allclose(
            found.evidence.consulting_gain.errors, due.evidence.consulting_gain.errors, atol=1e-9
        )


def test_several_sources_at_one_site_and_threads():
    tables, goal = numbers(), LearningSettings(consult=True)
    first, second, third = at_home(tables)
    with ThreadPoolExecutor(2) as pool:
        sites = [Tables.concatenate([first, third]), second]
        found = learn(Blocks(sites, pool.map, in_threads), goal)
    due = learn(tables, goal)
    assert_same_average(found.combination, due.combination)
    assert_same_certificate(found.evidence.certificate, due.evidence.certificate)


@pytest.mark.parametrize(
    ("world", "goal"),
    [(numbers, LearningSettings()), (labels, LearningSettings(loss="cross_entropy", consult=True))],
    ids=["numbers", "labels that hear"],
)
def test_chunks_teach_nearly_the_same(world, goal):
    """Rows are dealt out in each chunk, so that folds differ, and little else."""
    tables = world(700)
    due = learn(tables, goal)
    chunks = Blocks(in_chunks(tables, 3))
    found = learn(chunks, goal)
    assert not chunks.whole.any()
    np.testing.assert_allclose(found.combination.z, due.combination.z, atol=0.04)
    assert found.evidence.certificate.robust_loss == pytest.approx(
        due.evidence.certificate.robust_loss, rel=0.01
    )
    assert (
        found.evidence.certificate.loss_ground
        == found.evidence.certificate.regret_ground
        == "asymptotic"
    )
    assert found.evidence.certificate.loss_upper == pytest.approx(
        due.evidence.certificate.loss_upper, rel=0.05
    )
    assert found.combination.consults == due.combination.consults


def test_chunks_find_the_z_of_their_folds():
    """By brute force: the same folds, the same calibration, one problem of all rows."""
    tables, goal = numbers(500), LearningSettings()
    parts = [Block(chunk) for chunk in in_chunks(tables, 5)]
    found = learn(Blocks(parts), goal)
    joined = Tables.concatenate([part.tables for part in parts])
    fold = np.concatenate([part.fold({"folds": 5, "spread": np.ones(3)}) for part in parts])
    for t, part in enumerate(found.combination.parts):
        some = joined.taken(np.flatnonzero(fold != t))
        due, *_ = learn_fold(some, goal)
        assert_same_record(part.calibration, due.calibration)
        z = find_z(some.weighed(part.calibration).problem(goal.loss, goal.eta), goal).z
        np.testing.assert_allclose(part.z, z, atol=1e-8)


def test_rows_are_dealt_out_evenly_though_parts_are_small():
    tables = numbers(400)
    rows = Blocks(in_chunks(tables, 300))
    assert rows.n_folds == 5
    sizes = rows.by_fold["weights"]
    np.testing.assert_array_equal(sizes.sum(axis=0), np.bincount(tables.sample_domain))
    np.testing.assert_allclose(sizes, sizes.mean(axis=0)[None].repeat(5, axis=0), rtol=0.25)


def test_pools_of_spread_rows_learn_from_a_sample_and_say_so():
    tables, goal = labels(350), LearningSettings(loss="cross_entropy", consult=True)
    few = Blocks(in_chunks(tables, 2), most_rows=300)
    found = learn(few, goal)
    assert any("from 300 rows each" in sentence for sentence in found.evidence.sketched)
    all_rows = learn(Blocks(in_chunks(tables, 2)), goal)
    assert not any("rows each" in sentence for sentence in all_rows.evidence.sketched)


def test_a_part_that_keeps_its_rows_gives_none():
    parts = [Block(chunk, shares_rows=False) for chunk in in_chunks(numbers(), 3)]
    learn(Blocks(parts), LearningSettings())
    with pytest.raises(ValueError, match="keep each source's rows in one part"):
        learn(Blocks(parts), LearningSettings(consult=True))
    sites = [Block(site, shares_rows=False) for site in at_home(numbers())]
    assert learn(Blocks(sites), LearningSettings(consult=True)).combination.consults


@pytest.mark.parametrize("measure", [None, "accuracy", "brier"])
def test_new_rows_in_parts_certify(measure):
    used = learn(labels(), LearningSettings(loss="cross_entropy", consult=True)).combination
    new = labels(300, seed=1)
    due = certify_tables(new, used, "cross_entropy", measure=measure)
    found = certify_tables(Blocks(at_home(new)), used, "cross_entropy", measure=measure)
    assert_same_certificate(found, due)
    spread = certify_tables(Blocks(in_chunks(new, 4)), used, "cross_entropy", measure=measure)
    np.testing.assert_allclose(spread.source_losses, due.source_losses, atol=1e-10)


@pytest.mark.parametrize(
    "given",
    [
        {"grounds": Grounds(None)},
        {"grounds": Grounds(clip=1.5)},
        {"assumptions": Assumptions(loss_bound=20.0)},
        {"assumptions": Assumptions(loss_bound=20.0, alpha=2.0, target_divergence=1.5)},
        {"assumptions": Assumptions(loss_bound=20.0, mass_floor=1e-4)},
    ],
    ids=["tables", "clip", "bound", "target", "floor"],
)
def test_new_rows_in_parts_certify_on_the_same_terms(given):
    goal = LearningSettings(loss="cross_entropy", rule="normalised")
    used, new = learn(labels(), goal).combination, labels(60, seed=1)
    due = certify_tables(new, used, goal.loss, **given)
    assert_same_certificate(certify_tables(Blocks(at_home(new)), used, goal.loss, **given), due)


@pytest.mark.parametrize("parts", [at_home, lambda tables: in_chunks(tables, 5)])
@pytest.mark.parametrize("measure", [None, "mae"])
def test_the_usual_clip_is_found_by_counts(parts, measure):
    tables = numbers(150, weight=True)
    used = CrossFittedCombination.of(learn(numbers(), LearningSettings()).combination)
    held_out = HeldOut(combined_predictions(tables, used), np.zeros(tables.n_points, dtype=int))
    found = JudgedAverage(Blocks(parts(tables)), used, "squared", "new", measure).summary
    due = usual_clip(tables, held_out, "squared", measure)
    assert clip_of(found) == pytest.approx(due, rel=1e-12)


def test_few_new_rows_are_clipped_lower_than_many():
    """About ten of the new rows exceed the clip, however many rows the fit had."""
    tables, new = numbers(600), numbers(30, seed=1)
    used = CrossFittedCombination.of(learn(numbers(), LearningSettings()).combination)
    held_out = HeldOut(combined_predictions(tables, used), np.zeros(tables.n_points, dtype=int))
    found = usual_cut(tables, held_out, "squared", None, new)["clip"]
    assert found < usual_cut(tables, held_out, "squared")["clip"]
    losses = (held_out.predictions - np.asarray(tables.targets)) ** 2
    domain = tables.domain
    above = [np.mean(losses[domain == k] > found) for k in range(tables.n_sources)]
    # One in twenty: ten of thirty rows would be too many to leave out.
    assert max(above) <= 0.051


def test_questions_travel_and_few_numbers_leave():
    tables, left = numbers(), {}
    order = []

    def sent(question, parts):
        question = pickle.loads(pickle.dumps(question))  # noqa: S301
        assert all(isinstance(array, np.ndarray) for array in question.arrays.values())
        found = [question(part) for part in parts]
        assert all(array.dtype == float for one in found for array in one.values())
        left[question.name] = max(left.get(question.name, 0), *map(numbers_in, found))
        order.append(question.name)
        return found

    found = learn(Blocks(at_home(tables), sent), LearningSettings(consult=True))
    due = learn(tables, LearningSettings(consult=True))
    assert_same_average(found.combination, due.combination)
    p = 3
    assert left["evaluate"] <= 15 * (p + 2 * p * p)
    assert left["calibrate"] == 1 + 2 * p + 4 * p * p
    assert left["tally"] == 33
    assert left["gains"] == 19 * p
    assert left["pools"] == 4 * p + p * p
    assert "sample" not in order
    # No answer has as many numbers as a source has rows, but for quantiles and counts.
    assert {verb for verb, n in left.items() if n >= 200} <= {"novelty", "below", "evaluate"}


def test_parts_that_were_lost_answer_again():
    """A part that forgets everything between two questions gives the same answers."""
    tables, goal = numbers(60), LearningSettings(consult=True)

    def forgetful(question, parts):
        return [question(pickle.loads(pickle.dumps(part))) for part in parts]  # noqa: S301

    due = learn(Blocks(at_home(tables)), goal)
    found = learn(Blocks(at_home(tables), forgetful), goal)
    np.testing.assert_array_equal(found.combination.z, due.combination.z)
    assert found.evidence.certificate.sentence == due.evidence.certificate.sentence


def test_float32_tables_teach_nearly_the_same():
    tables = numbers()
    small = replace(
        tables,
        log_masses=tables.log_masses.astype(np.float32),
        predictions=tables.predictions.astype(np.float32),
    )
    due = learn(Blocks(at_home(tables)), LearningSettings())
    found = learn(Blocks(at_home(small)), LearningSettings())
    np.testing.assert_allclose(found.combination.z, due.combination.z, atol=1e-4)


def test_parts_that_do_not_agree_are_refused():
    with pytest.raises(ValueError, match="agree in classes"):
        learn(Blocks([numbers(), labels()]), LearningSettings())
    with pytest.raises(ValueError, match="the same sources"):
        learn(Blocks([numbers(), numbers(p=2)]), LearningSettings())
    with pytest.raises(ValueError, match="a loss of numbers"):
        learn(Blocks([numbers()]), LearningSettings(loss="cross_entropy"))
    with pytest.raises(ValueError, match="one block at least"):
        Blocks([])
    with pytest.raises(ValueError, match="is not one of"):
        Block(numbers()).answer("hurry", {}, {})
    used = learn(numbers(), LearningSettings()).combination
    with pytest.raises(ValueError, match="no rows of source 2"):
        certify_tables(Blocks(at_home(numbers())[:2]), CrossFittedCombination.of(used), "squared")


def test_novelty_is_nearly_that_of_all_rows():
    tables = numbers(1000)
    due = learn(tables, LearningSettings()).evidence.novelty
    new = np.linspace(-30.0, 0.0, 50)[None].repeat(3, axis=0)
    for parts in (at_home(tables), in_chunks(tables, 6)):
        found = Blocks(parts).novelty()
        np.testing.assert_allclose(found.score(new), due.score(new), atol=0.01)
