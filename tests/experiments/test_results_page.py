import numpy as np
import pytest

from experiments.figures import curves, draw_curves, draw_domains
from experiments.runner import STUDIES, Result
from experiments.synthetic import paper_classification_domains
from tools import results


def test_page_and_records_agree():
    assert results.PAGE.read_text(encoding="utf-8") == results.page(), (
        "run `python tools/results.py`"
    )


def test_every_study_has_its_records_and_its_words():
    for ending in ("jsonl", "md"):
        found = {path.stem for path in results.RECORDS.glob(f"*.{ending}")} - {"README"}
        assert found == set(STUDIES)


def test_every_picture_is_there():
    for head, records in results.sections():
        for table in curves(records):
            assert (results.PICTURES / results.picture(head["study"], table)).exists()


@pytest.mark.parametrize("values", [[1.0, 2.0], [1e-6, 1.0]])
def test_a_table_of_numbers_is_drawn(tmp_path, values):
    cells = [
        Result("s", "Fig. 1, share", "clean", "DW", f"{0.5 * i}", "MSE", 0, v)
        for i, v in enumerate(values)
    ]
    draw_curves(cells, "Fig. 1, share", tmp_path / "x.png")
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def test_the_domains_of_the_second_artificial_problem_are_drawn(tmp_path):
    domains = paper_classification_domains(np.random.default_rng(0))
    draw_domains(domains, 20, tmp_path / "x.png")
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
