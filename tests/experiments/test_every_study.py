"""The shared tests: every study in the list runs through them, and a wrong one fails."""

from dataclasses import replace
from importlib import import_module
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

import experiments
from experiments import STUDIES, Result
from tests.experiments.study_cases import (
    CHECKS,
    check_form,
    check_known,
    check_missing_data,
    check_other_seed,
    check_progress,
    check_records,
    check_same_seed,
    each_study,
    recorded,
    rehearsal,
    rehearsed,
)


@each_study()
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_study_keeps_to_what_all_keep_to(name, check):
    check(rehearsal(name))


@each_study()
def test_a_rehearsal_fills_the_tables_of_the_recorded_run(name):
    check_known(rehearsal(name), recorded(name))


@each_study()
def test_a_study_without_data_says_what_is_missing(name, tmp_path):
    check_missing_data(name, import_module(f"experiments.{name}"), tmp_path)


def test_every_module_that_runs_is_in_the_list():
    names = [path.stem for path in Path(experiments.__path__[0]).glob("[a-z]*.py")]
    runs = {name for name in names if hasattr(import_module(f"experiments.{name}"), "run")}
    assert runs == set(STUDIES), "enter the study in STUDIES of experiments.runner"


def right(seeds, progress):
    """A study that keeps to everything."""
    for i, seed in enumerate(seeds):
        yield Result("mine", "Table 1", "clean", "DW", "K", "MSE", seed, 1.0 + seed)
        yield Result("mine", "Table 1", "clean", "unif", "K", "MSE", seed, 2.0)
        progress(i + 1, len(seeds), f"seed {seed}")


def run(data, seeds, progress):
    return right(seeds, progress)


def changed(**change):
    """The right study, its records changed."""

    def rehearse(seeds, progress):
        return (replace(r, **change) for r in right(seeds, progress))

    return rehearse


def forgets_its_seed(seeds, progress):
    return (replace(r, value=float(next(CLOCK))) for r in right(seeds, progress))


def stops_half_way(seeds, progress):
    return right(seeds, lambda done, total, what: progress(1, 3, what))


def says_nothing(seeds, progress):
    return right(seeds, lambda *step: None)


def fills_a_cell_twice(seeds, progress):
    return (replace(r, method="DW") for r in right(seeds, progress))


CLOCK = count()
WRONG = {
    "another's name": (changed(study="yours"), check_records, "a record of 'yours'"),
    "no such protocol": (changed(protocol="ours"), check_records, "no protocol 'ours'"),
    "not finite": (changed(value=float("nan")), check_records, "not finite"),
    "another seed": (changed(seed=7), check_records, "seed 7"),
    "no number": (changed(value="1.0"), check_records, "holds a str"),
    "twice": (fills_a_cell_twice, check_records, "fills cells twice"),
    "empty": (lambda seeds, progress: iter(()), check_records, "no records"),
    "forgetful": (forgets_its_seed, check_same_seed, "other records for the same seed"),
    "deaf to seeds": (changed(value=1.0), check_other_seed, "the same records for another seed"),
    "half way": (stops_half_way, check_progress, "ends at 1 of 3"),
    "silent": (says_nothing, check_progress, "reports no progress"),
}


def test_a_right_study_passes():
    module = SimpleNamespace(run=run, rehearse=right)
    check_form("mine", module)
    found = rehearsed("mine", module)
    for check in CHECKS:
        check(found)
    check_known(found, found.alone)


@pytest.mark.parametrize("fault", WRONG)
def test_a_wrong_study_fails(fault):
    rehearse, check, said = WRONG[fault]
    found = rehearsed("mine", SimpleNamespace(run=run, rehearse=rehearse))
    with pytest.raises(AssertionError, match=said):
        check(found)


@pytest.mark.parametrize(
    ("module", "said"),
    [
        (SimpleNamespace(run=run), r"lacks rehearse\(seeds, progress\)"),
        (SimpleNamespace(rehearse=right), r"lacks run\(data, seeds, progress\)"),
        (SimpleNamespace(run=right, rehearse=right), "run of mine takes"),
    ],
)
def test_what_a_study_lacks_is_named(module, said):
    with pytest.raises(AssertionError, match=said):
        check_form("mine", module)


@pytest.mark.parametrize("change", [{"table": "Table 9"}, {"target": "Q"}, {"paper": 0.5}])
def test_tables_that_were_not_recorded_are_named(change):
    module = SimpleNamespace(run=run, rehearse=changed(**change))
    with pytest.raises(AssertionError, match="rehearsal"):
        check_known(rehearsed("mine", module), list(right([0], lambda *step: None)))


def test_a_study_without_records_is_told_to_make_them():
    with pytest.raises(AssertionError, match="make study-mine"):
        recorded("mine")
