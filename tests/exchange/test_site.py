"""The table of a site: what is wrong with a user's rows is said with the place and the cause."""

import numpy as np
import pytest

pytest.importorskip("skl2onnx")
pytest.importorskip("onnxruntime")

from sklearn.linear_model import LogisticRegression

from anymix import Source
from anymix._errors import InputError
from anymix.densities import GaussianKDE
from anymix.exchange import (
    AuditError,
    dump,
    evaluate_site,
    join_sites,
    load,
    pack_source,
    read_site,
    read_sources,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
Y = np.where(X[:, 0] > 0, "yes", "no")


@pytest.fixture(scope="module")
def received(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sources")
    for name in ("north", "south"):
        density = GaussianKDE(0.5).fit(X + (name == "south"))
        pack_source(Source(name, LogisticRegression().fit(X, Y), density), folder / name)
    return read_sources([folder / "north", folder / "south"])


def test_rows_that_cannot_be_used(received):
    with pytest.raises(InputError, match="is unknown; the sources are north, south") as caught:
        evaluate_site(received, "east", X, Y)
    assert caught.value.where == "site 'east'"
    with pytest.raises(InputError, match="are too few: give at least 20") as caught:
        evaluate_site(received, "north", X[:3], Y[:3])
    assert caught.value.where == "3 held-out rows of 'north'"
    strange = Y.astype(object)
    strange[7] = "maybe"
    with pytest.raises(InputError, match="has the label 'maybe', which no source knows") as caught:
        evaluate_site(received, "north", X, strange)
    assert caught.value.where == "row 8"


def test_sites_that_do_not_fit_together(received):
    north, south = (evaluate_site(received, name, X, Y) for name in ("north", "south"))
    assert join_sites([south, north], received).log_masses.shape == (2, 120)
    with pytest.raises(InputError, match="evaluated other sources, or in another order") as caught:
        join_sites([north, south], received[::-1])
    assert caught.value.where == "the site 'north'"
    with pytest.raises(InputError, match="are needed, once each; got north, north"):
        join_sites([north, north], received)


def test_a_damaged_file_is_named(received, tmp_path):
    path = tmp_path / "north.site"
    evaluate_site(received, "north", X, Y).write(path)
    np.testing.assert_array_equal(read_site(path).outcomes.shape, (2, 60, 2))
    arrays = dict(load(path.read_bytes())) | {"site": np.frombuffer(b"{", np.uint8)}
    path.write_bytes(dump(arrays))
    with pytest.raises(AuditError, match="is not plain JSON") as caught:
        read_site(path)
    assert caught.value.where == str(path)
    with pytest.raises(AuditError, match="does not exist"):
        read_site(tmp_path / "nowhere")
