"""Folders made by strangers: every damage gets a sentence, and nothing else happens."""

import json
import os

import numpy as np
import pytest

pytest.importorskip("skl2onnx")
pytest.importorskip("onnxruntime")

from anymix.exchange import AuditError, read_source
from anymix.exchange.manifest import parse_manifest
from tests.exchange import hostile_folders as hostile


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    return hostile.good_folder(tmp_path_factory.mktemp("good") / "north")


def test_the_undamaged_folder_passes(good):
    assert read_source(good).name == "north"


def test_damaged_folders(tmp_path):
    seen = set()
    for name, folder in hostile.hostile_folders(tmp_path, 90):
        answer = hostile.verdict_of_reading(folder)
        assert answer == "refused" or name in hostile.MAY_PASS, name
        seen.add(name)
    assert len(seen) == len(hostile.ATTACKS)


@pytest.mark.parametrize(
    ("attack", "words"),
    [
        (hostile.loop_in_graph, "uses a value that no earlier node gives"),
        (hostile.external_data, "lie outside the file"),
        (hostile.bad_weights, "not finite"),
        (hostile.nested_graph, "holds a graph"),
        (hostile.foreign_operator, "is not allowed|version 1 of|cannot be trusted"),
    ],
)
def test_the_sentence_names_the_folder_and_the_cause(tmp_path, attack, words):
    folder = hostile.good_folder(tmp_path / "north")
    attack(folder, np.random.default_rng(0))
    with pytest.raises(AuditError, match=words) as caught:
        read_source(folder)
    assert caught.value.where == str(folder / "predictor.onnx")
    assert caught.value.cause.startswith("cannot be trusted: ")


def test_a_bomb_stays_in_the_audit(tmp_path):
    folder = hostile.good_folder(tmp_path / "north")
    hostile.edit_graph(folder, lambda m: hostile.swell(m, 2**20))
    with pytest.raises(AuditError, match="cannot be trusted"):
        read_source(folder)


def test_predictors_after_one_that_kills_its_process_are_judged(good, tmp_path):
    folder = hostile.good_folder(tmp_path / "north")
    hostile.edit_graph(folder, lambda m: hostile.swell(m, 2**22))
    for _ in range(2):
        assert read_source(good).name == "north"
        with pytest.raises(AuditError, match="cannot be trusted"):
            read_source(folder)


def test_links_are_not_followed(good, tmp_path):
    for name in hostile.FILES:
        os.symlink(good / name, tmp_path / name)
    with pytest.raises(AuditError, match="is not a plain file"):
        read_source(tmp_path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schema": 2}, "has schema 2; this version reads 1"),
        ({"name": "../north"}, "no usable name"),
        ({"task": "magic"}, "names the task 'magic'"),
        ({"density": "pickle"}, "names the density 'pickle'"),
        ({"classes": ["a", "a"]}, "has a class twice"),
        ({"classes": ["a", 1]}, "all strings or all integers"),
        ({"features": []}, "lists no features"),
        ({"own_loss": {"loss": "x", "value": 1e300, "n_rows": 1}}, "invalid own_loss"),
        ({"n_rows": -1}, "has n_rows -1"),
        ({"extra": 1}, "unknown entries"),
        ({"files": {}}, "must list the files"),
        ({"density": "bigram"}, "if and only if bigram takes words"),
        ({"density": "domain_classifier"}, "names the density 'domain_classifier'"),
    ],
)
def test_manifests_that_are_refused(good, change, words):
    data = json.loads((good / "manifest.json").read_text()) | change
    with pytest.raises(AuditError, match=words):
        parse_manifest(json.dumps(data).encode())


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a": NaN}', '{"a": 1, "a": 2}', "\xff", ""])
def test_json_that_is_refused(text):
    with pytest.raises(AuditError, match=r"manifest.json is not plain JSON"):
        parse_manifest(text.encode("latin-1"))
