"""A fit that needs no rows in one place gives the answer of the fit that has them."""

import json

import numpy as np
import pytest

from anymix.exchange import AuditError
from anymix.exchange.site_table import read_site
from anymix.exchange.tensors import dump_arrays, load_arrays
from tests.cli.organisations import NAMES


def evaluate_all(world, run, folder, *options):
    paths = []
    for name, held in zip(NAMES, world.held, strict=True):
        paths.append(str(folder / f"{name}.site"))
        said = run(
            *["site", "evaluate", *world.sources, "--site", name, "--rows", held.split("=")[1]],
            *["--out", paths[-1], *options],
        )
        assert said.status == 0, said.err
    return paths


@pytest.fixture(params=["world", "numbers"])
def either(request):
    return request.getfixturevalue(request.param)


def test_the_same_answer_as_from_the_rows(either, run, tmp_path):
    sites = evaluate_all(either, run, tmp_path, "--exact")
    said = run("fit", *either.sources, "--from-sites", *sites, "--out", tmp_path / "m", "--json")
    assert said.status == 0, said.err
    mine = json.loads(said.out)
    with open(f"{either.model}/model.json") as file:
        due = json.load(file)
    np.testing.assert_allclose(mine["certificate"]["z"], due["certificate"]["z"], rtol=1e-4)
    np.testing.assert_allclose(mine["solution"]["z"], due["solution"]["z"], rtol=1e-4)
    for key in ("regret", "robust_loss"):
        assert mine["certificate"][key] == pytest.approx(due["certificate"][key], rel=1e-4)
    np.testing.assert_allclose(mine["cross_loss"]["mean"], due["cross_loss"]["mean"], rtol=1e-9)


def test_nearly_the_same_answer_from_rounded_numbers(either, run, tmp_path):
    sites = evaluate_all(either, run, tmp_path)
    said = run("fit", *either.sources, "--from-sites", *sites, "--out", tmp_path / "m", "--json")
    assert said.status == 0, said.err
    mine = json.loads(said.out)
    with open(f"{either.model}/model.json") as file:
        due = json.load(file)
    np.testing.assert_allclose(mine["certificate"]["z"], due["certificate"]["z"], atol=0.15)
    worst = {}
    for name, model in (("exact", either.model), ("rounded", tmp_path / "m")):
        said = run("compare", model, "--held-out", *either.test, "--json")
        assert said.status == 0, said.err
        worst[name] = max(json.loads(said.out)["worst"][:1])
    assert worst["rounded"] == pytest.approx(worst["exact"], rel=0.05)


def test_the_file_holds_few_levels_and_no_row(world, run, tmp_path):
    site = read_site(evaluate_all(world, run, tmp_path)[0])
    rows = np.loadtxt(world.held[0].split("=")[1], delimiter=",", skiprows=1, usecols=(0, 1))
    outcomes = np.moveaxis(site.outcomes, 2, 0).reshape(-1, 100)
    numbers = np.concatenate([site.log_responsibilities, outcomes])
    assert site.log_total is None
    assert not np.isin(rows, numbers).any()
    assert numbers.shape == (9, 100)
    assert len(np.unique(site.outcomes[:, :, 0])) <= 11 + 3
    # the order of the rows is another one every time, and nothing else
    (tmp_path / "again").mkdir()
    again = read_site(evaluate_all(world, run, tmp_path / "again")[0])
    assert not np.array_equal(again.outcomes, site.outcomes)
    np.testing.assert_array_equal(np.sort(again.outcomes, axis=1), np.sort(site.outcomes, axis=1))


def test_what_the_command_says_is_true(world, run, tmp_path):
    common = ["site", "evaluate", *world.sources, "--site", "north"]
    common += ["--rows", world.held[0].split("=")[1], "--out"]
    said = run(*common, tmp_path / "x").out
    assert "9 numbers for each of 100 rows in random order, rounded" in said
    assert "; over all rows 20 quantiles and " in said
    assert "up to 11 bits of each row for every malicious source" in said
    assert "no features" not in said
    said = run(*common, tmp_path / "y", "--exact").out
    assert "10 numbers" in said
    assert "can compute features and labels from them" in said
    said = run(*common, tmp_path / "z", "--exact", "--responsibilities-only").out
    assert "9 numbers" in said


def test_responsibilities_alone(world, run, tmp_path):
    sites = evaluate_all(world, run, tmp_path, "--responsibilities-only", "--exact")
    assert read_site(sites[0]).log_total is None
    model = tmp_path / "m"
    assert run("fit", *world.sources, "--from-sites", *sites, "--out", model).status == 0
    table = world.test[0].split("=")[1]
    assert run("predict", model, table, "--out", tmp_path / "p.csv").status == 0
    refused = run("predict", model, table, "--out", tmp_path / "q.csv", "--novelty")
    assert "no novelty" in refused.err
    assert "which only new rows of each source can tell" in run("monitor", model, table).out
    asked = run("monitor", model, table, "--reference", *world.test)
    assert "leave --reference out to see the mixture" in asked.err
    with open(f"{world.model}/model.json") as file:
        due = json.load(file)["certificate"]["z"]
    found = json.loads((model / "model.json").read_text())["certificate"]["z"]
    np.testing.assert_allclose(found, due, rtol=1e-4)


def test_refusals(world, run, tmp_path):
    rows = world.held[0].split("=")[1]
    common = ["site", "evaluate", *world.sources, "--rows", rows, "--out", tmp_path / "x"]
    assert "too few" in run(*common, "--site", "north", "--min-rows", 101).err
    assert "the sources are north, south, west" in run(*common, "--site", "east").err
    strange = tmp_path / "strange.csv"
    strange.write_text("a,b,y\n" + "1,2,yes\n" * 20 + "1,2,maybe\n")
    said = run(*common[:-4], "--rows", strange, "--out", tmp_path / "x", "--site", "north").err
    assert f"{strange}: row 21 has the label 'maybe', which no source knows" in said
    assert "leave such rows out" in said
    assert not (tmp_path / "x").exists()
    sites = evaluate_all(world, run, tmp_path)
    turned = [world.sources[1], world.sources[0], world.sources[2]]
    assert run("fit", *turned, "--from-sites", *sites, "--out", tmp_path / "m").status == 0
    said = run("fit", *world.sources[:2], "--from-sites", *sites, "--out", tmp_path / "n")
    assert "evaluated other sources than the given ones: north, south, west, not" in said.err


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda a: a.update(outcomes=-a["outcomes"]), "outcome"),
        (
            lambda a: a.update(log_responsibilities=a["outcomes"][:, :, 0].copy()),
            "cannot be responsibilities",
        ),
        (lambda a: a.update(outcomes=np.full((3, 100, 2), 0.7)), "do not sum to 1"),
        (lambda a: a.update(outcomes=np.full((3, 100, 60), 1 / 60)), "wrong shapes"),
        (lambda a: a.update(outcomes=a["outcomes"][:, 1:]), "wrong shapes"),
        (lambda a: a.pop("outcomes"), "not a site's file"),
        (lambda a: a.update(site=np.zeros(3, np.uint8)), "not plain JSON"),
        (lambda a: a.update(site=np.frombuffer(b"{}", np.uint8)), "no sound header"),
    ],
)
def test_damaged_site_files(world, run, tmp_path, change, words):
    path = tmp_path / "north.site"
    rows = world.held[0].split("=")[1]
    run("site", "evaluate", *world.sources, "--site", "north", "--rows", rows, "--out", path)
    arrays = dict(load_arrays(path.read_bytes()))
    change(arrays)
    path.write_bytes(dump_arrays(arrays))
    with pytest.raises(AuditError, match=words):
        read_site(path)
