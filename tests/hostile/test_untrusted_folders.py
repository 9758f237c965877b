"""A small draw of what `python -m benchmarks.hostile` tries by the thousand."""

from collections import Counter

import pytest

pytest.importorskip("skl2onnx")
pytest.importorskip("onnxruntime")

from benchmarks.hostile import outside
from tests.cli.odd_tables import ask, fault_of
from tests.hostile.untrusted_folders import UntrustedFolders


@pytest.mark.filterwarnings("default")  # the command shows warnings and goes on
def test_strangers_get_a_sentence_and_nothing_else(tmp_path, monkeypatch):
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path / "home")
    strangers, seen = UntrustedFolders(tmp_path), Counter()
    before = outside(tmp_path)
    for case in strangers.cases(84, seed=5):
        code, said = ask(case.arguments)
        assert not fault_of(code, said, case.arguments[0]), (case, said)
        seen[code] += 1
        assert outside(tmp_path) == before, case
    assert seen[4] > 18
    assert seen[3] > 6
