"""Sites agree on a reference, pack tables as they are, and one model is learned from them."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from anymix.cli import main
from anymix.cli.reference_command import REFERENCE, SUMMARY, read_part
from anymix.exchange import read_source
from tests.cli.mixed_world import HEADER, NAMES, rows_of, write

PACK = ["--target", "ill", "--task", "classification"]


@pytest.fixture(scope="module")
def clinics(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("clinics"), np.random.default_rng(0)
    parts = {"train": 260, "held": 80, "test": 80}
    for name in NAMES:
        for part, n in parts.items():
            write(folder / f"{name}_{part}.csv", rows_of(name, n, rng))
        table = f"{folder}/{name}_train.csv"
        words = [table, "--name", name, "--target", "ill", "--out", f"{folder}/{name}.json"]
        assert main(["reference", "summary", *words, "--quiet"]) == 0
    summaries = [f"{folder}/{name}.json" for name in NAMES]
    reference = f"{folder}/reference.json"
    assert main(["reference", "join", *summaries, "--out", reference, "--quiet"]) == 0
    for name in NAMES:
        words = ["--name", name, "--rows", f"{folder}/{name}_train.csv", "--reference", reference]
        assert main(["source", "pack", f"{folder}/{name}", *words, *PACK, "--quiet"]) == 0
    sources = [f"{folder}/{name}" for name in NAMES]
    held, test = ([f"{n}={folder}/{n}_{part}.csv" for n in NAMES] for part in ("held", "test"))
    model = ["--target", "ill", "--out", f"{folder}/model", "--quiet"]
    assert main(["fit", *sources, "--held-out", *held, *model]) == 0
    return SimpleNamespace(
        folder=folder, sources=sources, reference=reference, summaries=summaries, test=test
    )


def test_what_leaves_the_site_is_said_in_numbers(clinics, run, tmp_path):
    table = clinics.folder / "west_train.csv"
    said = run("reference", "summary", table, "--name", "w", "--target", "ill", "--out",
               tmp_path / "w.json")  # fmt: skip
    assert said.status == 0, said.err
    assert "note: column 'score' is empty in all rows." in said.out
    assert "Of 260 rows of 'w'" in said.out
    summary = read_part(tmp_path / "w.json", SUMMARY)
    assert summary.columns.names == ("age", "ward", "smokes", "score")
    assert [column.categories for column in summary.columns] == [None, ("day", "night"), None, None]
    assert summary.marginals[3].gaps == 1


def test_a_reference_has_the_words_of_all_sites(clinics):
    reference = read_part(clinics.reference, REFERENCE)
    assert [column.categories for column in reference.columns] == [
        None, ("day", "night"), None, None,
    ]  # fmt: skip
    assert [summary.name for summary in reference.summaries] == list(NAMES)


def test_a_packed_source_codes_frames(clinics):
    import pandas

    source = read_source(clinics.sources[0])
    assert source.columns.names == ("age", "ward", "smokes", "score")
    frame = pandas.read_csv(clinics.folder / "east_test.csv")
    coded = source.columns.encode(frame)
    classes = np.array(["no", "yes"])
    np.testing.assert_array_equal(
        source.predict_proba(frame, classes), source.predict_proba(coded, classes)
    )
    np.testing.assert_array_equal(source.log_density(frame), source.log_density(coded))


def test_every_command_takes_such_tables(clinics, run, tmp_path):
    model, table = clinics.folder / "model", clinics.folder / "east_test.csv"
    said = run("predict", model, table, "--out", tmp_path / "p.csv", "--weights", "--novelty")
    assert said.status == 0, said.err
    lines = (tmp_path / "p.csv").read_text().splitlines()
    run("predict", model, table, "--out", tmp_path / "c.csv", "--weights", "--novelty",
        "--chunk-rows", 7)  # fmt: skip
    assert (tmp_path / "c.csv").read_text().splitlines() == lines
    weights = np.array([line.split(",")[3] for line in lines[1:]], dtype=float)
    assert weights.mean() > 0.7  # rows of the first source
    for command in ("certify", "compare"):
        said = run(command, model, "--held-out", *clinics.test, "--target", "ill", "--save")
        assert said.status == 0, said.err
    found = json.loads(run("monitor", model, table, "--json").out)
    assert found["estimate"]["mixture"][0] > 0.8
    assert not found["alarm"]["rings"]
    assert run("report", model, "--out", tmp_path / "r.html").status == 0
    assert run("source", "check", *clinics.sources).status == 0
    assert (
        "1 with categories, missing values allowed" in run("source", "show", clinics.sources[0]).out
    )
    site = ["--site", "east", "--rows", table, "--target", "ill", "--out", tmp_path / "e.site"]
    assert run("site", "evaluate", *clinics.sources, *site).status == 0


def test_the_exported_graph_answers_alike(clinics, run, tmp_path):
    import onnxruntime

    from anymix.cli.chosen_columns import table_columns
    from anymix.models import read_model
    from anymix.tables import read_rows

    assert run("export", clinics.folder / "model", tmp_path / "m.onnx").status == 0
    saved = read_model(clinics.folder / "model")
    columns = table_columns([one.manifest for one in saved.received])
    X, _ = read_rows(clinics.folder / "west_test.csv", columns)
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    _, proba, weights = session.run(None, {"X": X})
    np.testing.assert_allclose(proba, saved.model.predict_proba(X), atol=1e-5)
    np.testing.assert_allclose(weights, saved.model.source_weights(X), atol=1e-5)


def test_the_manifest_tells_of_the_words(clinics):
    manifest = json.loads((clinics.folder / "east" / "manifest.json").read_text())
    assert manifest["features"][1] == {
        "name": "ward", "dtype": manifest["features"][1]["dtype"],
        "categories": ["day", "night"], "gaps": True,
    }  # fmt: skip
    assert manifest["density"] == "contrastive"
    assert (
        "It lists 2 words as categories of 1 column, those of the reference."
        in (manifest["reveals"])
    )


@pytest.fixture
def pack(clinics, run, tmp_path):
    """Pack a table that is given by rows and header, with the reference of the clinics."""

    def call(rows, header=HEADER, *options):
        table = write(tmp_path / "t.csv", rows, header)
        options = options or ("--reference", clinics.reference)
        return run("source", "pack", tmp_path / "s", "--name", "s", "--rows", table, *PACK,
                   *options)  # fmt: skip

    return call


def _rows(n=60):
    return list(rows_of("east", n, np.random.default_rng(5)))


def test_tables_that_disagree_with_the_reference(pack):
    short = pack([row[1:] for row in _rows()], HEADER[1:])
    assert short.status == 3
    assert "has no column 'age', which is in the reference; all must agree" in short.err
    more = pack([["1", *row] for row in _rows()], ["dose", *HEADER])
    assert "column 'dose' is not in the reference; leave it out with --drop, name" in more.err
    words = pack([["old", *row[1:]] for row in _rows()])
    assert "row 1: column 'age' holds 'old', which is not a number" in words.err
    numbers = pack([[row[0], "1", *row[2:]] for row in _rows()])
    assert "column 'ward' holds '1', and no category of the reference ('day', 'night')" in (
        numbers.err
    )
    for said in (short, more, words, numbers):
        assert said.status == 3
        assert len([x for x in said.err.splitlines() if "warning" not in x]) == 1


def test_a_new_word_and_empty_and_constant_columns_do_no_harm(pack, run, tmp_path):
    rows = [
        [row[0], "moon" if i < 3 else row[1], "true", "", row[4]] for i, row in enumerate(_rows())
    ]
    said = pack(rows)
    assert said.status == 0, said.err
    assert "column 'ward' has 3 cells with a word that is no category of it, such as 'moon'" in (
        said.err
    )
    assert "note: column 'score' is empty in all rows." in said.out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "has categories (column 'ward'), so it needs --reference FILE, the common"),
        (["--density", "kernels"], "column 'ward' holds categories, but --density kernels"),
        (
            ["--estimator", "sklearn.linear_model:LogisticRegression"],
            "holds categories, but --estimat",
        ),
        (["--reference", "nowhere.json"], "nowhere.json does not exist"),
    ],
)
def test_options_that_do_not_suit_the_table(pack, clinics, options, words):
    given = (
        options if "--estimator" not in options else [*options, "--reference", clinics.reference]
    )
    said = pack(_rows(), HEADER, *(given or ["--seed", "0"]))
    assert said.status == 3
    assert words in said.err
    assert said.err.count("\n") == 1


def test_a_linear_model_of_words_and_missing_values(clinics, pack):
    said = pack(_rows(), HEADER, "--reference", clinics.reference, "--estimator", "linear")
    assert said.status == 0, said.err


def test_complete_numbers_are_packed_as_ever(run, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2)).round(4)
    rows = [[*row, "yes" if row[0] > 0 else "no"] for row in X.tolist()]
    table = write(tmp_path / "t.csv", rows, ["a", "b", "y"])
    words = ["--name", "n", "--rows", table, "--task", "classification"]
    assert run("source", "pack", tmp_path / "s", *words, "--estimator", "linear").status == 0
    manifest = json.loads((tmp_path / "s" / "manifest.json").read_text())
    assert manifest["features"] == [{"name": n, "dtype": "float32"} for n in ("a", "b")]
    assert (manifest["schema"], manifest["density"]) == (1, "gaussian_mixture")


def test_booleans_alone_need_no_reference(run, tmp_path):
    rng = np.random.default_rng(0)
    rows = [[f"{x:.4f}", ["true", "False"][i % 2], "yes" if x > 0 else "no"]
            for i, x in enumerate(rng.normal(size=80))]  # fmt: skip
    table = write(tmp_path / "t.csv", rows, ["a", "b", "y"])
    words = ["--name", "n", "--rows", table, "--task", "classification"]
    said = run("source", "pack", tmp_path / "s", *words)
    assert said.status == 0, said.err
    features = json.loads((tmp_path / "s" / "manifest.json").read_text())["features"]
    assert [(f["categories"], f["gaps"]) for f in features] == [(None, False)] * 2


# --- files of strangers -------------------------------------------------------------------------


def test_summaries_must_agree(clinics, run, tmp_path):
    def summary(name, rows, header):
        table = write(tmp_path / f"{name}.csv", rows, header)
        out = tmp_path / f"{name}.json"
        assert run("reference", "summary", table, "--name", name, "--target", "ill", "--out",
                   out).status == 0  # fmt: skip
        return out

    def join(*others):
        return run("reference", "join", clinics.summaries[0], *others, "--out", tmp_path / "r.json")

    fewer = join(summary("fewer", [row[1:] for row in _rows()], HEADER[1:]))
    assert fewer.status == 3
    assert "has no column 'age', which 'east' has; all must agree" in fewer.err
    kinds = join(summary("kinds", [[*row[:1], "7", *row[2:]] for row in _rows()], HEADER))
    assert "column 'ward' holds numbers in 'kinds' and words in 'east'" in kinds.err
    twice = join(clinics.summaries[0])
    assert (
        "two of the summaries have the same name, or names that look alike ('east' and 'east')"
        in twice.err
    )
    assert not (tmp_path / "r.json").exists()


def test_what_exists_is_replaced_by_force_alone(clinics, run, tmp_path):
    out = tmp_path / "r.json"
    words = ["reference", "join", *clinics.summaries, "--out", out]
    assert run(*words).status == 0
    assert "exists already" in run(*words).err
    assert run(*words, "--force").status == 0
    own = run("reference", "join", *clinics.summaries, "--out", clinics.summaries[0], "--force")
    assert "is read by this command" in own.err


def _changed(clinics, tmp_path, change):
    data = json.loads((clinics.folder / "east.json").read_text())
    data = change(data) or data
    (tmp_path / "bad.json").write_text(json.dumps(data))
    return tmp_path / "bad.json"


def _set(*path_and_value):
    *path, value = path_and_value

    def change(data):
        for step in path[:-1]:
            data = data[step]
        data[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda _: [1], "is not an anymix summary"),
        (_set("kind", "anymix reference"), "but states that it is 'anymix reference'"),
        (_set("schema", 9), "has schema 9; this version reads 1"),
        (_set("schema", True), "has schema True"),
        (_set("content", []), "is invalid: must have the parts"),
        (_set("content", "n_rows", -1), "is invalid: must have a whole number of rows"),
        (_set("content", "columns", "names", ["a"]), "is invalid"),
        (_set("content", "columns", "categories", 1, ["a", "a"]), "is invalid"),
        (_set("content", "columns", "categories", 1, ["x"] * 1000), "is invalid"),
        (_set("content", "marginals", 0, {"gaps": 7}), "is invalid"),
        (_set("content", "marginals", 0, None), "is invalid"),
        (_set("content", "name", {}), "is invalid"),
    ],
)
def test_summaries_of_strangers_are_refused_in_a_sentence(clinics, run, tmp_path, change, words):
    bad = _changed(clinics, tmp_path, change)
    said = run("reference", "join", bad, clinics.summaries[1], "--out", tmp_path / "r.json")
    assert said.status == 4, said.err
    assert words in said.err
    assert said.err.count("\n") == 1
    assert not (tmp_path / "r.json").exists()


def test_files_that_are_none_are_refused(clinics, run, tmp_path):
    (tmp_path / "deep.json").write_text("[" * 100_000)
    (tmp_path / "nan.json").write_text('{"kind": NaN}')
    (tmp_path / "link.json").symlink_to(clinics.summaries[0])
    for name in ("deep", "nan", "link"):
        said = run("reference", "join", tmp_path / f"{name}.json", "--out", tmp_path / "r.json")
        assert said.status == 4, name
        assert said.err.count("\n") == 1


def test_a_summary_of_few_rows_would_tell_of_them(run, tmp_path):
    table = write(tmp_path / "t.csv", [["1", "yes"], ["2", "no"]], ["a", "y"])
    said = run("reference", "summary", table, "--name", "n", "--out", tmp_path / "n.json")
    assert said.status == 3
    assert "has 2 rows, fewer than --min-count 5" in said.err


def test_sources_of_different_references_are_not_combined(clinics, run, tmp_path):
    other = tmp_path / "other.json"
    assert run("reference", "join", clinics.summaries[0], "--out", other).status == 0
    words = ["--name", "west", "--rows", clinics.folder / "west_train.csv", "--reference", other]
    assert run("source", "pack", tmp_path / "west", *words, *PACK).status == 0
    held = [f"{name}={clinics.folder}/{name}_held.csv" for name in NAMES]
    said = run("fit", clinics.sources[0], tmp_path / "west", "--held-out", *held, "--target", "ill",
               "--out", tmp_path / "m")  # fmt: skip
    assert said.status == 3
    assert "has a density against another reference than the first source" in said.err


def test_joining_shows_what_each_site_has(clinics, run, tmp_path):
    """A line for each column and site, and a warning of what is written in two ways."""
    said = run("reference", "join", *clinics.summaries, "--out", tmp_path / "r.json")
    assert said.status == 0, said.err
    lines = said.out.splitlines()
    assert lines[0].split() == [
        "column",
        "site",
        "missing",
        "range",
        "(5",
        "to",
        "95",
        "%)",
        "or",
        "categories",
    ]
    assert lines[1].split()[:2] == ["age", "east"]
    assert lines[4].split()[0] == "west"
    assert lines[4].split()[2:] == ["%", "day,", "night"]
    assert lines[8].endswith("no value")
    assert said.err == ""
    rows = [[row[0] and str(40 * float(row[0])), row[1].upper(), *row[2:]] for row in _rows(100)]
    table = write(tmp_path / "n.csv", [row[::-1] for row in rows], HEADER[::-1])
    made = run("reference", "summary", table, "--name", "north", "--target", "ill", "--out",
               tmp_path / "n.json")  # fmt: skip
    assert made.status == 0, made.err
    given = [*clinics.summaries, tmp_path / "n.json"]
    said = run("reference", "join", *given, "--out", tmp_path / "three.json")
    assert said.status == 0, said.err
    assert "warning: column 'age': 'east' (" in said.err
    assert "check that both use one unit." in said.err
    assert "'day' at 'east' and 'DAY' at 'north' differ in capitals or blanks alone" in said.err
    found = json.loads(run("reference", "join", *given, "--out", tmp_path / "4", "--json").out)
    assert found["by_site"][0].keys() == {"column", "site", "missing", "low", "high", "categories"}


def test_rare_categories_are_said_to_be_read_if_another_site_lists_them(run, tmp_path):
    rows = [["40", "m", "yes"]] * 30 + [["41", "f", "no"]] * 3
    table = write(tmp_path / "t.csv", rows, ["age", "sex", "ill"])
    said = run("reference", "summary", table, "--name", "n", "--target", "ill", "--out",
               tmp_path / "s.json")  # fmt: skip
    assert "which is not listed: read as missing, unless another site lists it." in said.out
