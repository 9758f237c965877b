"""A folder that replaces another: the old or the new one is whole, whatever comes between."""

import shutil
from pathlib import Path

import pytest

from anymix.exceptions import InputError
from anymix.storage import files, write_folder

OLD, NEW = {"a": b"old"}, {"a": b"new", "b": b""}


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(params=["exchange", "two steps"])
def place(request, tmp_path, monkeypatch):
    write_folder(tmp_path / "out", OLD)
    if request.param == "two steps":
        monkeypatch.setattr(files, "_exchanged", lambda one, other: False)
    return tmp_path


def test_a_folder_is_replaced_and_nothing_is_left(place):
    write_folder(place / "out", NEW, replace=True)
    assert content(place / "out") == NEW
    assert [path.name for path in place.iterdir()] == ["out"]


def failing(step, cause):
    """Path.rename, of which one call fails."""
    whole, calls = Path.rename, [0]

    def rename(self, target):
        calls[0] += 1
        if calls[0] == step:
            cause(target)
        return whole(self, target)

    return rename


def interrupt(target):
    raise KeyboardInterrupt


@pytest.mark.parametrize("step", [1, 2])
def test_an_interrupt_between_two_steps_leaves_the_old_folder(tmp_path, monkeypatch, step):
    write_folder(tmp_path / "out", OLD)
    monkeypatch.setattr(files, "_exchanged", lambda one, other: False)
    monkeypatch.setattr(Path, "rename", failing(step, interrupt))
    with pytest.raises(KeyboardInterrupt):
        write_folder(tmp_path / "out", NEW, replace=True)
    assert content(tmp_path / "out") == OLD
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_what_others_put_there_and_the_old_folder_are_kept(tmp_path, monkeypatch):
    def take(target):
        Path(target).mkdir()
        (Path(target) / "theirs").write_bytes(b"")

    write_folder(tmp_path / "out", OLD)
    monkeypatch.setattr(files, "_exchanged", lambda one, other: False)
    monkeypatch.setattr(Path, "rename", failing(2, take))
    with pytest.raises(InputError, match="made by others meanwhile"):
        write_folder(tmp_path / "out", NEW, replace=True)
    (aside,) = tmp_path.glob(".*")
    assert content(aside) == OLD
    assert content(tmp_path / "out") == {"theirs": b""}


def test_two_folders_are_exchanged_in_one_step(tmp_path):
    for name, what in (("one", OLD), ("other", NEW)):
        write_folder(tmp_path / name, what)
    if not files._exchanged(tmp_path / "one", tmp_path / "other"):
        pytest.skip("this system exchanges no names")
    assert content(tmp_path / "one") == NEW
    assert content(tmp_path / "other") == OLD
    shutil.rmtree(tmp_path / "other")
    with pytest.raises(FileNotFoundError):
        files._exchanged(tmp_path / "one", tmp_path / "other")
