"""What strangers write is weighed before it is built: JSON, manifests, site files, tables."""

import json
import sys
import tracemalloc

import numpy as np
import pytest

pytest.importorskip("safetensors")

from anymix import DistributionWeightedRegressor, Source, Tables, evaluate
from anymix.exceptions import AuditError, InputError
from anymix.exchange import check_name, read_alike, read_site
from anymix.exchange.manifest import MOST_CLASSES, parse_manifest
from anymix.exchange.site_table import FEWEST_ROWS
from anymix.exchange.tensors import DocumentDensity, dump_arrays
from anymix.sources import LearningSettings, learn, learning
from anymix.storage import DEEPEST, plain_json


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (b"[" * 60 + b"]" * 60, f"nested more than {DEEPEST} deep"),
        (b'{"a":' * 900 + b"1" + b"}" * 900, f"nested more than {DEEPEST} deep"),
        (b"1" * 31, "a whole number has more than 30 digits"),
        (b"1" + b"0" * 400, "a whole number has more than 30 digits"),
        (b"1e400", "1e400 is too large for a number"),
        (b"[-1e999]", "-1e999 is too large"),
        (b"0." + b"1" * 200, "a number has more than 100 digits"),
        (b"NaN", "NaN is not a number"),
        (b'{"a": 1, "a": 2}', "a key occurs twice"),
        (rb'"\ud800"', "half of a character"),
        (rb'{"\udc00x": 1}', "half of a character"),
        (b'"\xed\xa0\x80"', "can't decode"),
        (b"", "Expecting value"),
        (b'"' + b'\\"' * 100_000, "Unterminated"),
    ],
)
def test_odd_json_gets_a_sentence(text, cause):
    with pytest.raises(ValueError, match=f"^is not plain JSON: .*{cause}"):
        plain_json(text)


@pytest.mark.parametrize(
    "value",
    [
        [[[]]],
        {"a": ["[[[[", '"{', "\\"]},
        "\U0001f600",
        {"long": "[" * 1000},
        [1e-300, -(10**29), 1.5e308, True, None],
        [[[]] * 3] * 3,
    ],
)
def test_honest_json_is_read_as_it_was(value):
    assert plain_json(json.dumps(value).encode()) == value
    assert plain_json(json.dumps(value, ensure_ascii=False).encode()) == value


def test_a_depth_that_is_allowed_is_read():
    text = b"[" * DEEPEST + b"]" * DEEPEST
    assert json.dumps(plain_json(text)).encode() == text


def test_a_bomb_of_lists_is_refused_before_it_is_parsed():
    content = b'{"x":[' + b"[]," * (10 * 2**20) + b"1]}"
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="more than the 2000000 entries and signs"):
            plain_json(content)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def manifest(**change):
    facts = {"size": 1, "sha256": "0" * 64}
    data = {
        "schema": 1,
        "name": "north",
        "task": "regression",
        "classes": None,
        "features": [{"name": "x", "dtype": "float32"}],
        "density": "gaussian_kernels",
        "reveals": "nothing.",
        "own_loss": None,
        "n_rows": None,
        "files": {"predictor.onnx": facts, "density.safetensors": facts},
    }
    return json.dumps(data | change).encode()


def labels(n):
    return {"task": "classification", "classes": [f"c{i}" for i in range(n)]}


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"schema": True}, "has schema True; this version reads 1"),
        ({"schema": 1.0}, "has schema 1.0; this version reads 1"),
        ({"own_loss": {"loss": "squared", "value": 10**400, "n_rows": 1}}, "more than 30 digits"),
        ({"own_loss": {"loss": "squared", "value": 1e101, "n_rows": 1}}, "invalid own_loss"),
        ({"n_rows": True}, "has n_rows True"),
        ({"name": "uniform"}, "no usable name: 'uniform' cannot name a source"),
        ({"name": "Anymix"}, "no usable name: 'Anymix' cannot name a source"),
        ({"name": "all "}, "cannot name a source"),
        ({"name": "likeliest source"}, "cannot name a source"),
        ({"name": "worst"}, "cannot name a source"),
        ({"name": ["north"]}, "has no usable name"),
        (labels(MOST_CLASSES + 1), f"must list 2 to {MOST_CLASSES} classes"),
    ],
)
def test_manifests_beyond_bounds_are_refused(change, cause):
    assert parse_manifest(manifest()).name == "north"
    with pytest.raises(AuditError, match=cause):
        parse_manifest(manifest(**change))


def test_names_that_tables_use_cannot_be_packed():
    check_name("uniformed")
    with pytest.raises(InputError, match="'all' cannot name a source: it has a special meaning"):
        check_name("all")


def test_as_many_classes_and_columns_as_allowed():
    assert len(parse_manifest(manifest(**labels(MOST_CLASSES))).classes) == MOST_CLASSES
    columns = [{"name": f"x{i}", "dtype": "float32"} for i in range(25_000)]
    assert len(parse_manifest(manifest(features=columns)).features) == 25_000


def not_to_be_asked(X):
    raise AssertionError("a source was asked")


def test_tables_too_large_are_refused_before_a_source_is_asked():
    sources = [Source(name, not_to_be_asked, not_to_be_asked, classes=[0, 1]) for name in "ab"]
    with pytest.raises(InputError, match="2 sources, 100000 rows and 1000 classes takes more than"):
        evaluate(sources, np.zeros((100_000, 1)), np.arange(1000))


def test_sources_of_many_classes_are_asked_about_few_rows_at_a_time(monkeypatch):
    asked = []

    def uniform(X):
        asked.append(len(X))
        return np.full((len(X), 4), 0.25)

    monkeypatch.setattr(sys.modules[evaluate.__module__], "CHUNK_NUMBERS", 40)
    sources = [Source("a", uniform, lambda X: np.zeros(len(X)), classes=[0, 1, 2, 3])]
    found = evaluate(sources, np.zeros((25, 1)), np.arange(4))
    assert asked == [10, 10, 5]
    np.testing.assert_array_equal(found.predictions, np.full((1, 25, 4), 0.25))


def test_a_number_that_cannot_be_judged_is_named_by_source_and_row():
    wild = Source("west", lambda X: np.where(X[:, 0] == 7, -1e80, 0.0), lambda X: np.zeros(len(X)))
    with pytest.raises(InputError, match="source 'west' predicts -1e\\+80 for row 7; beyond 1e"):
        evaluate([wild], np.arange(10.0)[:, None], chunk_rows=3)


def test_too_many_sources_are_refused_first(monkeypatch, tmp_path):
    p = 151
    monkeypatch.setattr(learning, "solve", not_to_be_asked)
    many = Tables(np.zeros((p, p)), np.zeros((p, p)), np.zeros(p), np.arange(p))
    with pytest.raises(ValueError, match="151 sources are too many"):
        learn(many, LearningSettings())
    with pytest.raises(ValueError, match="151 sources are too many"):
        read_alike([tmp_path / "not there"] * p)
    sources = [Source(f"s{k}", not_to_be_asked, not_to_be_asked) for k in range(p)]
    with pytest.raises(ValueError, match="151 sources are too many"):
        DistributionWeightedRegressor.from_sources(sources).fit(
            np.arange(2.0 * p)[:, None], np.zeros(2 * p), np.repeat(np.arange(p), 2)
        )


def test_documents_are_cut_into_words_one_block_at_a_time():
    class Model:
        def score_samples(self, docs):
            assert not isinstance(docs, list)
            return [len(doc) for doc in docs]

    assert DocumentDensity(Model()).score_samples(["A b c", ""]).tolist() == [3, 0]


HEAD = {
    "schema": 1,
    "site": "a",
    "loss": "squared",
    "sources": ["a", "b"],
    "fingerprints": ["0" * 64, "1" * 64],
}


def site_file(path, head=None, raw=None, **arrays):
    text = json.dumps(HEAD | (head or {})).encode() if raw is None else raw
    half = np.full((2, 30), np.log(0.5))
    given = {"log_responsibilities": half, "outcomes": np.full((2, 30), 0.5)} | arrays
    path.write_bytes(dump_arrays({"site": np.frombuffer(text, np.uint8), **given}))
    return path


def with_one(value, shape=(2, 30), fill=0.5):
    table = np.full(shape, fill)
    table[..., 4] = value
    return table


LOG = {"loss": "cross_entropy"}


@pytest.mark.parametrize(
    ("head", "arrays", "cause"),
    [
        ({"schema": True}, {}, "no sound header"),
        ({"schema": 1.0}, {}, "no sound header"),
        ({"loss": ["squared"]}, {}, "a header with the loss"),
        ({"sources": ["a", "a"]}, {}, "does not name each source once"),
        ({"sources": ["a", "\x1b[2J"]}, {}, "its sources or fingerprints are none"),
        ({"sources": ["a"] * 1001}, {}, "its sources or fingerprints are none"),
        ({"fingerprints": ["0" * 64]}, {}, "does not name each source once"),
        ({"fingerprints": ["0" * 64, "short"]}, {}, "its sources or fingerprints are none"),
        ({"site": "c"}, {}, "a site that is not one of its sources"),
        ({}, {"raw": b"[" + b"[]," * 5001 + b"1]"}, "more than the 10000 entries"),
        ({}, {"raw": b" " * (2**20 + 1)}, "no sound header"),
        (LOG, {"outcomes": with_one(1e-9)}, "the outcome 1e-09 of source 0 at row 4"),
        (LOG, {"outcomes": with_one(0.0)}, "the outcome 0 of source"),
        (LOG, {"outcomes": with_one(1.5)}, "the outcome 1.5 of source 0 at row 4"),
        ({}, {"outcomes": with_one(1e16)}, r"the outcome 1e\+16 of source 0 at row 4"),
        ({}, {"outcomes": with_one(-np.inf)}, "the outcome -inf of source"),
        ({}, {"outcomes": with_one(np.nan)}, "the outcome nan of source"),
        ({}, {"log_responsibilities": with_one(np.nan)}, "cannot be responsibilities"),
        ({}, {"log_responsibilities": np.zeros((2, 30))}, "cannot be responsibilities"),
        ({}, {"log_total": with_one(np.nan, 30)}, "a log_total that cannot be the logarithm"),
        ({}, {"log_total": with_one(1e101, 30)}, "a log_total that cannot be the logarithm"),
        ({}, {"log_total": np.zeros(30, dtype=np.int64)}, "arrays that are not numbers"),
        ({}, {"log_total": np.zeros(29)}, "arrays of wrong shapes"),
        ({}, {"outcomes": np.zeros((3, 30))}, "arrays of wrong shapes"),
    ],
)
def test_site_files_beyond_bounds_are_refused(tmp_path, head, arrays, cause):
    with pytest.raises(AuditError, match=cause):
        read_site(site_file(tmp_path / "a.site", head, **arrays))


def test_a_site_of_one_row_says_nothing(tmp_path):
    one = {"log_responsibilities": np.full((2, 1), np.log(0.5)), "outcomes": np.zeros((2, 1))}
    with pytest.raises(AuditError, match=f"has 1 row.s., where {FEWEST_ROWS} or more are needed"):
        read_site(site_file(tmp_path / "a.site", **one))


def test_site_files_within_bounds_are_read(tmp_path):
    total = with_one(-np.inf, 30)
    exact = read_site(site_file(tmp_path / "a.site", log_total=total, outcomes=with_one(-1e15)))
    assert exact.outcomes.min() == -1e15
    coarse = with_one(np.exp(-16.0))
    assert read_site(site_file(tmp_path / "b.site", LOG, outcomes=coarse)).loss == "cross_entropy"
