"""A record is written beside a model, and over nothing that is the user's."""

import errno

import pytest

import anymix
from anymix.exceptions import InputError
from anymix.models import add_record, held
from anymix.storage import locked, locks
from tests.models.test_commands import NEW, labels


@pytest.fixture(scope="module")
def model():
    return labels()


@pytest.fixture
def folder(model, tmp_path):
    anymix.save(model, tmp_path / "m")
    return tmp_path / "m"


def test_a_record_replaces_a_record_and_nothing_else(folder, model):
    path = folder / "certificate.json"
    add_record(folder, "certificate", model.certify(*NEW["labels"]))
    add_record(folder, "certificate", model.certificate_)
    path.write_text('{"my": "lab certificate"}')
    with pytest.raises(InputError, match="is not a record that anymix wrote"):
        add_record(folder, "certificate", model.certificate_)
    with pytest.raises(InputError, match="is not a record that anymix wrote"), held(folder):
        pass
    assert path.read_text() == '{"my": "lab certificate"}'


def test_a_lock_that_is_a_file_of_the_user_stays(folder):
    (folder / ".lock").write_text("mine")
    with pytest.raises(InputError, match="is not a lock of anymix"), held(folder):
        pass
    assert (folder / ".lock").read_text() == "mine"


def test_a_lock_that_was_written_into_meanwhile_stays(folder):
    with held(folder):
        (folder / ".lock").write_text("mine")
    assert (folder / ".lock").read_text() == "mine"


def test_nothing_is_written_through_a_link(folder, tmp_path):
    (tmp_path / "link").symlink_to(folder)
    with pytest.raises(InputError, match="is a link"), held(tmp_path / "link"):
        pass


@pytest.mark.skipif(locks.fcntl is None, reason="Windows has locks of its own")
def test_a_disk_without_locks_is_left_as_it_was(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(locks.fcntl, "flock", refuse)
    with (
        pytest.raises(InputError, match=r"without file locks .* use a local one"),
        locked(tmp_path / "a"),
    ):
        pass
    assert list(tmp_path.iterdir()) == []
