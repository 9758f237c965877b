"""Nothing is written over: inputs, folders, links and files of others are left as they are."""

import os
import shutil
import threading
from pathlib import Path

import pytest

from anymix.exceptions import AuditError, InputError
from anymix.storage import read_file, replacing, write_folder


@pytest.fixture
def model(world, tmp_path):
    return Path(shutil.copytree(world.model, tmp_path / "model"))


@pytest.fixture
def table(world, tmp_path):
    return Path(shutil.copy(world.test[0].split("=")[1], tmp_path / "t.csv"))


@pytest.fixture
def writes(world, model, table):
    """Every command that writes one file, but for its name, and a suffix that it takes."""
    site = ["site", "evaluate", *world.sources, "--site", "north", "--rows", table, "--out"]
    return {
        "predict": (["predict", model, table, "--out"], ".csv"),
        "site": (site, ".site"),
        "export": (["export", model], ".onnx"),
        "report": (["report", model, "--out"], ".html"),
    }


COMMANDS = ["predict", "site", "export", "report"]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_file_is_replaced_by_force_alone(name, writes, run, tmp_path):
    words, suffix = writes[name]
    out = tmp_path / f"out{suffix}"
    assert run(*words, out).status == 0
    first = out.read_bytes()
    os.chmod(out, 0o600)
    refused = run(*words, out)
    assert refused.status == 3
    assert "exists already; choose another name, or replace it with --force" in refused.err
    assert out.read_bytes() == first
    assert run(*words, out, "--force").status == 0
    assert out.stat().st_mode & 0o777 == 0o600
    out.write_bytes(b"a,b,y\n1,2,3\n")
    assert run(*words, out).status == 3
    assert out.read_bytes() == b"a,b,y\n1,2,3\n"
    assert run(*words, out, "--force").status == 0
    assert out.read_bytes() != b"a,b,y\n1,2,3\n"
    out.write_bytes(b"")  # as mktemp makes it
    assert run(*words, out).status == 0
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("name", COMMANDS)
def test_folders_and_links_are_not_written_to(name, writes, run, tmp_path):
    words, suffix = writes[name]
    folder, link, mine = (tmp_path / f"{one}{suffix}" for one in ("folder", "link", "mine"))
    folder.mkdir()
    link.symlink_to(mine)
    for out, said in ((folder, "is a folder"), (link, "is a link")):
        for force in ([], ["--force"]):
            refused = run(*words, out, *force)
            assert (refused.status, said in refused.err) == (3, True), refused
    assert not mine.exists()
    mine.write_text("mine")
    assert run(*words, link, "--force").status == 3
    assert mine.read_text() == "mine"


def test_an_output_is_never_an_input(world, writes, model, table, run, tmp_path):
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    (tmp_path / "hard.csv").hardlink_to(table)
    (tmp_path / "way").symlink_to(tmp_path)
    outs = {
        "predict": [table, tmp_path / "hard.csv", tmp_path / "way" / "t.csv", model / "p.csv"],
        "site": [table, Path(world.sources[0]) / "manifest.json"],
        "export": [model / "model.json", model, model / "new.onnx"],
        "report": [model / "model.json", tmp_path / "way" / "model" / "r.html"],
    }
    for name, places in outs.items():
        for out in places:
            refused = run(*writes[name][0], out, "--force")
            assert refused.status == 3, (name, out, refused)
            assert "is read by this command" in refused.err
    (tmp_path / "hard.csv").unlink()
    (tmp_path / "way").unlink()
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before


def test_fit_keeps_its_inputs(world, run, tmp_path):
    exchange = tmp_path / "exchange"
    inner = [shutil.copytree(one, exchange / "sources" / Path(one).name) for one in world.sources]
    (exchange / "sources" / "west, second delivery").mkdir()
    before = sorted(exchange.rglob("*"))
    held = ["--held-out", *world.held]
    said = run("fit", *inner, *held, "--out", exchange, "--force")
    assert (said.status, "which is read by this command" in said.err) == (3, True)
    said = run("fit", *world.sources, *held, "--out", world.sources[0], "--force")
    assert "is read by this command" in said.err
    said = run("fit", *world.sources, *held, "--out", Path(world.sources[0]) / "m")
    assert "lies in" in said.err
    assert sorted(exchange.rglob("*")) == before


@pytest.mark.parametrize("name", ["predict", "site", "export", "report"])
def test_pipes_and_devices_are_written_to(name, writes, run, tmp_path):
    words, suffix = writes[name]
    pipe, found = tmp_path / f"pipe{suffix}", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    assert run(*words, pipe).status == 0
    reader.join(30)
    assert run(*words, "/dev/null").status == 0
    assert run(*words, tmp_path / f"out{suffix}").status == 0
    if name != "site":  # which shuffles
        assert found == [(tmp_path / f"out{suffix}").read_bytes()]
    assert pipe.is_fifo()
    assert Path("/dev/null").is_char_device()


def test_what_appears_or_changes_meanwhile_is_kept(tmp_path):
    out = tmp_path / "a.txt"
    with pytest.raises(InputError, match="by others meanwhile"), replacing(out):
        out.write_text("mine")
    assert out.read_text() == "mine"
    with pytest.raises(InputError, match="by others meanwhile"), replacing(out):
        out.write_text("mine, longer")
    assert out.read_text() == "mine, longer"
    with pytest.raises(InputError, match="exists already"), replacing(out, new=True):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_new_files_and_folders_have_the_modes_that_the_umask_gives(tmp_path):
    old = os.umask(0o027)
    try:
        with replacing(tmp_path / "a.txt") as temporary:
            temporary.write_text("new")
        write_folder(tmp_path / "b", {"c": b"new"})
    finally:
        os.umask(old)
    modes = {p.name: p.stat().st_mode & 0o777 for p in tmp_path.rglob("*")}
    assert modes == {"a.txt": 0o640, "b": 0o750, "c": 0o640}


def test_a_disk_without_hard_links_will_do(tmp_path, monkeypatch):
    def none(*_):
        raise PermissionError

    monkeypatch.setattr(os, "link", none)
    with replacing(tmp_path / "a.txt") as temporary:
        temporary.write_text("new")
    assert (tmp_path / "a.txt").read_text() == "new"


def test_a_pipe_that_is_swapped_in_does_not_block(tmp_path, monkeypatch):
    """Between the look at a file and its opening another thing may take its name."""
    path, real = tmp_path / "f", os.lstat
    path.write_text("plain")

    def swapped(name):
        found = real(name)
        path.unlink()
        os.mkfifo(path)
        return found

    monkeypatch.setattr(os, "lstat", swapped)
    with pytest.raises(AuditError, match="is not a plain file"):
        read_file(path, 100)

    def linked(name):
        path.unlink()
        path.symlink_to(__file__)
        return real(__file__)

    monkeypatch.setattr(os, "lstat", linked)
    with pytest.raises(AuditError, match="is not a plain file"):
        read_file(path, 10_000)


def test_two_writers_of_records(world, model, run):
    from anymix.storage import locked

    held = ["--held-out", *world.test]
    with locked(model):
        for words in (["certify", model, *held], ["compare", model, *held]):
            assert "is being written by another anymix" in run(*words, "--save").err
            assert run(*words).status == 0
    assert run("certify", model, *held, "--save").status == 0
