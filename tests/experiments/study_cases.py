"""What every study must keep to, as checks that take any study: one in the list or a wrong one."""

import inspect
import json
from collections import Counter
from importlib import import_module
from typing import NamedTuple, get_args

import numpy as np
import pytest

from experiments import STUDIES, Result, render
from experiments.fetch import DataNotFoundError
from experiments.runner import Setup, quiet, read_records
from experiments.tables import Style, tables
from tools.results import RECORDS

FORMS = {"run": ["data", "seeds", "progress"], "rehearse": ["seeds", "progress"]}


class Rehearsal(NamedTuple):
    """What a study did on made-up data: on seed 0, then on seeds 0 and 1, and what it told."""

    name: str
    alone: list[Result]
    both: list[Result]
    told: list[tuple[int, int, str]]


_done: dict[str, Rehearsal] = {}


def each_study(*names):
    """Parametrise over studies, all that are listed if none is named; one worker a study."""
    return pytest.mark.parametrize(
        "name",
        [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in names or STUDIES],
    )


def rehearsal(name):
    """The rehearsal of a study in the list, held once in a session."""
    if name not in _done:
        module = import_module(f"experiments.{name}")
        check_form(name, module)
        try:
            _done[name] = rehearsed(name, module)
        except ImportError as error:
            # An optional library that is absent, named with its remedy.
            if "pip install" not in str(error):
                raise
            pytest.skip(str(error))
    return _done[name]


def rehearsed(name, module):
    """Rehearse any study."""
    told = []
    both = list(module.rehearse([0, 1], lambda *step: told.append(step)))
    return Rehearsal(name, list(module.rehearse([0], quiet)), both, told)


def check_form(name, module):
    for function, arguments in FORMS.items():
        assert hasattr(module, function), (
            f"the study {name} lacks {function}({', '.join(arguments)}): see experiments.runner "
            "for what a study offers"
        )
        found = list(inspect.signature(getattr(module, function)).parameters)
        assert found == arguments, f"{function} of {name} takes {found} and not {arguments}"


def check_records(found):
    assert found.alone, f"the rehearsal of {found.name} gives no records"
    for r in found.both:
        assert r.study == found.name, f"{found.name} gives a record of {r.study!r}"
        assert r.protocol in get_args(Setup), f"there is no protocol {r.protocol!r}"
        assert r.seed in (0, 1), f"seed {r.seed} was not asked for"
        assert type(r.value) in (int, float), f"{r} holds a {type(r.value).__name__}"
        assert np.isfinite(r.value), f"{r} is not finite"
    cells = [(r.table, r.protocol, r.method, r.target, r.metric, r.seed) for r in found.both]
    twice = [cell for cell, n in Counter(cells).items() if n > 1]
    assert not twice, f"{found.name} fills cells twice: {twice[:3]}"


def check_json(found):
    for r in found.both:
        assert Result(**json.loads(r.to_json())) == r


def check_same_seed(found):
    first = [r for r in found.both if r.seed == 0]
    assert found.alone == first, f"{found.name} gives other records for the same seed"


def check_other_seed(found):
    """Records of another seed differ somewhere, unless what is not random was done once."""
    values = {
        seed: {
            (r.table, r.protocol, r.method, r.target): r.value for r in found.both if r.seed == seed
        }
        for seed in (0, 1)
    }
    drawn = values[0].keys() & values[1].keys()
    assert not values[1] or any(values[0][cell] != values[1][cell] for cell in drawn), (
        f"{found.name} gives the same records for another seed"
    )


def check_progress(found):
    assert found.told, f"{found.name} reports no progress"
    done, totals, _ = zip(*found.told, strict=True)
    assert list(done) == sorted(done), f"the progress of {found.name} runs backwards"
    assert done[-1] == totals[-1] > 0, f"{found.name} ends at {done[-1]} of {totals[-1]}"


def check_tables(found):
    for style in get_args(Style):
        shown = render(found.both, style)
        for table in tables(found.both):
            for text in (table.name, *(row.method for row in table.rows)):
                assert text in shown, f"{style} does not show {text!r} of {found.name}"


def check_known(found, recorded):
    """The rehearsal fills the tables of the recorded run: same rows, no other columns."""

    def rows(results):
        return {(r.table, r.protocol, r.method, r.metric, r.privileged) for r in results}

    def cells(results):
        return {(r.table, r.method, r.target, r.protocol, r.paper, r.paper_sd) for r in results}

    strange = rows(found.both) ^ rows(recorded)
    assert not strange, f"not both in the rehearsal and the records: {sorted(strange)[:3]}"
    new = cells(found.both) - cells(recorded)
    assert not new, f"in the rehearsal of {found.name} and not in its records: {list(new)[:3]}"


def recorded(name):
    path = RECORDS / f"{name}.jsonl"
    assert path.exists(), f"{path.name} is missing: run `make study-{name}`"
    return read_records(path)[1]


def check_missing_data(name, module, folder):
    """In an empty folder a study does without data, or says what is missing and what to do."""
    said = ""
    try:
        assert next(module.run(folder, [0], quiet)).study == name
    except DataNotFoundError as error:
        said = str(error)
    assert not said or "--data or in ANYMIX_DATA" in said


CHECKS = (
    check_records,
    check_json,
    check_same_seed,
    check_other_seed,
    check_progress,
    check_tables,
)
