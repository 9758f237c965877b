"""A model is written where nothing of the user's is, by one writer, and read whole beside it."""

import hashlib
import json
import os
import re
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest

import anymix
from anymix.densities import GaussianKDE
from anymix.models import (
    check_place,
    read_certificate,
    read_model,
    reserved,
    summarise_folder,
    writing,
)
from anymix.storage import locked
from tests.models.test_commands import labels


@pytest.fixture(scope="module")
def models():
    return labels(), labels(objective="robust", density=GaussianKDE(bandwidth=0.7))


@pytest.fixture(scope="module")
def good(models, tmp_path_factory):
    place = tmp_path_factory.mktemp("place") / "m"
    anymix.save(models[0], place)
    return place


@pytest.fixture
def folder(good, tmp_path):
    return Path(shutil.copytree(good, tmp_path / "m"))


def everything(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def not_json(folder):
    (folder / "model.json").write_text("{")


def another_program(folder):
    (folder / "model.json").write_text('{"format": "layers-model"}')


def schema_true(folder):
    record = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps(record | {"schema": True}))


def letter(folder):
    (folder / "letter.txt").write_text("mine")


def table_of_mine(folder):
    (folder / "tables-000000000000.safetensors").write_text("mine")


def my_temporary(folder):
    (folder / ".notes.tmp").write_text("mine")


def my_certificate(folder):
    (folder / "certificate.json").write_text('{"of": "baptism"}')


def source_of_mine(folder):
    (folder / "sources" / "thesis-0123456789ab").mkdir()
    (folder / "sources" / "thesis-0123456789ab" / "manifest.json").write_text("mine")


def in_a_source(folder):
    (next((folder / "sources").iterdir()) / "notes.txt").write_text("mine")


def finder(folder):
    (folder / "sources" / ".DS_Store").write_text("system")


def linked_sources(folder):
    (folder / "sources").rename(folder.parent / "home")
    (folder / "sources").symlink_to(folder.parent / "home")


def linked_part(folder):
    (part,) = folder.glob("tables-*")
    part.rename(folder.parent / "photo")
    part.symlink_to(folder.parent / "photo")


def my_lock(folder):
    (folder / ".lock").write_text("mine")


STRANGE = [
    *(not_json, another_program, schema_true, letter, table_of_mine, my_temporary, my_certificate),
    *(source_of_mine, in_a_source, finder, linked_sources, linked_part, my_lock),
]


@pytest.mark.parametrize("change", STRANGE)
def test_a_folder_with_anything_else_is_left_as_it_is(change, folder, models):
    change(folder)
    before = everything(folder.parent)
    with pytest.raises(ValueError, match=r"holds|did not write") as refused:
        anymix.save(models[1], folder)
    assert str(folder) in str(refused.value)
    assert everything(folder.parent) == before


def test_a_link_and_a_file_are_no_place(folder, models, tmp_path):
    (tmp_path / "link").symlink_to(folder)
    (tmp_path / "file").write_text("mine")
    for name, words in (("link", "is a link"), ("file", "is a file")):
        with pytest.raises(ValueError, match=words):
            anymix.save(models[1], tmp_path / name)


def test_what_a_killed_run_left_goes_and_a_broken_source_is_written_anew(folder, models):
    first = {path.relative_to(folder) for path in folder.rglob("*")}
    (part,) = folder.glob("tables-*")
    content = part.read_bytes() + b" "
    digest = hashlib.sha256(content).hexdigest()[:12]
    (folder / f"tables-{digest}.safetensors").write_bytes(content)
    (folder / ".model-0123456789abcdef.tmp.json").write_text("{")
    (folder / ".lock").touch()
    half = folder / "sources" / ".north-0123456789ab-0123456789abcdef.tmp"
    half.mkdir()
    (half / "manifest.json").write_text("{")
    broken = next(p for p in (folder / "sources").iterdir() if not p.name.startswith("."))
    (broken / "predictor.onnx").write_bytes(b"broken")
    assert check_place(folder)
    anymix.save(models[0], folder)
    assert {path.relative_to(folder) for path in folder.rglob("*")} == first
    np.testing.assert_array_equal(anymix.load(folder).z_, models[0].z_)


def test_the_second_writer_is_told_at_once(folder, models):
    with reserved(folder):
        with pytest.raises(ValueError, match="is being written by another anymix"):
            anymix.save(models[1], folder)
        assert read_model(folder).model.objective == "regret", "readers need no lock"
    anymix.save(models[1], folder)
    assert not (folder / ".lock").exists()


def test_a_folder_that_a_failed_writer_made_goes_again(tmp_path):
    with pytest.raises(ZeroDivisionError), reserved(tmp_path / "m"):
        raise ZeroDivisionError
    with pytest.raises(ZeroDivisionError), locked(tmp_path):
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_readers_beside_a_writer_see_one_model_whole(folder, models, monkeypatch):
    """No part of one is a part of the other; a read that meets a vanished part reads again."""
    stop, seen = threading.Event(), set()
    packed = {id(model): writing.pack_sources(model) for model in models}
    monkeypatch.setattr(writing, "pack_sources", lambda model, share: packed[id(model)])

    def write():
        while not stop.is_set():
            for model in models:
                anymix.save(model, folder)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(15):
            model = read_model(folder).model
            seen.add((model.objective, model.solution_.objective))
            summarise_folder(folder)
    finally:
        stop.set()
        writer.join()
    assert seen == {("regret", "regret"), ("robust", "robust")}


def test_a_part_that_is_changed_while_the_model_is_written_is_noticed(folder, models, monkeypatch):
    before = (folder / "model.json").read_bytes()
    real = writing.write_source

    def tampered(path, files):
        real(path, files)
        (path / "predictor.onnx").write_bytes(b"other")

    monkeypatch.setattr(writing, "write_source", tampered)
    with pytest.raises(anymix.exchange.AuditError, match="was changed by others"):
        anymix.save(models[1], folder)
    assert (folder / "model.json").read_bytes() == before


FORGED = [
    lambda c: c.update(loss_upper=1e-7),
    lambda c: c.update(regret_upper=-1.0),
    lambda c: c.update(confidence=0.99),
    lambda c: c.update(n_candidates=7),
    lambda c: c.update(covers="", loss_ground="exact"),
    lambda c: c.update(source_losses=[0.0, 0.0, 0.0], robust_loss=0.0),
    lambda c: c.update(loss="squared"),
    lambda c: c["bounds"][0].update(value=0.0),
]


@pytest.mark.parametrize("forge", FORGED)
def test_a_certificate_that_the_tables_do_not_give_is_refused(forge, folder, run):
    record = json.loads((folder / "model.json").read_text())
    forge(record["certificate"])
    (folder / "model.json").write_text(json.dumps(record))
    said = run("certify", folder)
    assert said.status == 4, said
    assert re.search("does not agree with the tables|choices|not sound", said.err)
    with pytest.raises(anymix.exchange.AuditError):
        anymix.load(folder, verify=True)
    # The page refuses what cannot be, and says of all else that the folder states it.
    if run("report", folder, "--out", folder.parent / "r.html").status == 0:
        assert "claimed by the folder, not verified" in (folder.parent / "r.html").read_text()


def test_a_forged_sentence_is_never_said(folder, run):
    record = json.loads((folder / "model.json").read_text())
    record["certificate"]["sentence"] = "It is never wrong."
    (folder / "model.json").write_text(json.dumps(record))
    assert "never wrong" not in run("certify", folder).out
    assert "on every mixture of the 3 sources" in read_certificate(folder).sentence


def test_umask_is_left_to_the_kernel_and_modes_are_kept(folder, models, monkeypatch):
    def never(mask):
        raise AssertionError("umask races among threads")

    os.chmod(folder / "model.json", 0o600)
    monkeypatch.setattr(os, "umask", never)
    anymix.save(models[1], folder)
    assert (folder / "model.json").stat().st_mode & 0o777 == 0o600
