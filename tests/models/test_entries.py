"""What shows names without reading a source shows those of the manifests."""

import json

import pytest

import anymix
from anymix.exceptions import AuditError
from anymix.models import read_certificate, summarise_folder
from tests.models.test_commands import labels


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("entries") / "m"
    anymix.save(labels(), place)
    return place


def renamed(text, names):
    for old, new in names.items():
        text = text.replace(f'"{old}"', f'"<{new}>"')
    return text.replace("<", "").replace(">", "")


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ({"a": "north"}, "is not what its manifest states"),
        ({"a": "b", "b": "a"}, "is not what its manifest states"),
        ({"a": "anymix"}, "it has a special meaning"),
        ({"a": "north\\u202e"}, "cannot name a source"),
    ],
)
@pytest.mark.parametrize("ask", [read_certificate, summarise_folder])
def test_names_that_no_manifest_states_are_not_shown(folder, ask, names, words):
    path = folder / "model.json"
    text = path.read_text()
    path.write_text(renamed(text, names))
    try:
        with pytest.raises(AuditError, match=words):
            ask(folder)
    finally:
        path.write_text(text)
    assert ask(folder)


def test_a_manifest_that_was_changed_is_found_without_reading_the_source(folder):
    name = json.loads((folder / "model.json").read_text())["sources"][0]["folder"]
    path = folder / "sources" / name / "manifest.json"
    content = path.read_bytes()
    path.write_bytes(content + b" ")
    try:
        with pytest.raises(AuditError, match="is not the source that the model was made of"):
            summarise_folder(folder)
    finally:
        path.write_bytes(content)
