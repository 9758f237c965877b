"""The table of a site: what is wrong with a user's rows is said with the place and the cause."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("skl2onnx")
pytest.importorskip("onnxruntime")

from sklearn.linear_model import LogisticRegression

from anymix import DistributionWeightedClassifier, Source
from anymix.densities import GaussianKDE
from anymix.exceptions import InputError
from anymix.exchange import (
    AuditError,
    dump_arrays,
    evaluate_site,
    join_sites,
    load_arrays,
    pack_source,
    read_site,
    read_sources,
)
from anymix.sources import certify_tables

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
    anew = [received[0], replace(received[1], sha256="0" * 64)]
    with pytest.raises(InputError, match=r"other sources .*: south as packed another") as caught:
        join_sites([north, south], anew)
    assert caught.value.where == "the site 'north'"
    others = replace(north, sources=("north", "east"))
    with pytest.raises(InputError, match="north, east, not north, south; ask it to evaluate"):
        join_sites([others, south], received)
    with pytest.raises(InputError, match="are needed, once each; got north, north"):
        join_sites([north, north], received)


def test_sources_may_come_in_any_order(received, tmp_path):
    """Each site lists folders as its shell does: what they say is the same, under other numbers."""
    turned = received[::-1]
    for name, folders in (("north", received), ("south", turned)):
        evaluate_site(folders, name, X, Y).write(tmp_path / name)
    found = join_sites([read_site(tmp_path / name) for name in ("north", "south")], turned)
    due = join_sites(
        [evaluate_site(turned, name, X, Y).rounded() for name in ("north", "south")], turned
    )
    np.testing.assert_allclose(found.log_masses, due.log_masses)
    np.testing.assert_allclose(found.predictions, due.predictions)
    assert found.sample_domain.tolist() == [0] * 60 + [1] * 60


def test_a_damaged_file_is_named(received, tmp_path):
    path = tmp_path / "north.site"
    evaluate_site(received, "north", X, Y).write(path)
    np.testing.assert_array_equal(read_site(path).outcomes.shape, (2, 60, 2))
    arrays = dict(load_arrays(path.read_bytes())) | {"site": np.frombuffer(b"{", np.uint8)}
    path.write_bytes(dump_arrays(arrays))
    with pytest.raises(AuditError, match="is not plain JSON") as caught:
        read_site(path)
    assert caught.value.where == str(path)
    with pytest.raises(AuditError, match="does not exist"):
        read_site(tmp_path / "nowhere")


# --- all classes, the label first ---------------------------------------------------------------

C = np.array(["red", "green", "blue", "white"])


@pytest.fixture(scope="module")
def coloured(tmp_path_factory):
    """Two weak models of four classes, and held-out rows of both."""
    folder, rng, held = tmp_path_factory.mktemp("coloured"), np.random.default_rng(1), {}
    for name, centre in (("north", -0.5), ("south", 0.5)):
        rows = rng.normal(centre, size=(700, 3))
        color = C[2 * (rows[:, 0] > 0) + (rows[:, 1] + 0.5 * rng.normal(size=700) > 0)]
        model = LogisticRegression(C=0.01).fit(rows[:100], color[:100])
        pack_source(Source(name, model, GaussianKDE(0.5).fit(rows[:100])), folder / name)
        held[name] = rows[100:], color[100:]
    return read_sources([folder / "north", folder / "south"]), held


def told(coloured, **options):
    received, held = coloured
    return [evaluate_site(received, name, *held[name], **options) for name in held]


def test_the_label_comes_first_and_no_order_tells_it(coloured):
    site, again = (told(coloured, rng=np.random.default_rng(seed))[0] for seed in (5, 6))
    assert site.outcomes.shape == (2, 600, 4)
    np.testing.assert_allclose(site.outcomes.sum(axis=2), 1.0)
    received, held = coloured
    plain = told(coloured)[0]
    rows, color = held["north"]
    proba = received[1].source.predict_proba(rows, np.sort(C))
    due = proba[np.arange(600), np.searchsorted(np.sort(C), color)]
    np.testing.assert_allclose(plain.outcomes[1, :, 0], due)
    # the classes are the same, in another order for each row and each time
    for one in (site, again):
        by_row = np.lexsort(one.outcomes[:, :, 0])
        due = np.lexsort(plain.outcomes[:, :, 0])
        found, known = one.outcomes[:, by_row], plain.outcomes[:, due]
        np.testing.assert_allclose(np.sort(found, axis=2), np.sort(known, axis=2))
        assert 0.1 < np.isclose(found[0], known[0]).all(axis=1).mean() < 0.3  # 1 of 6 by chance
        # and it is one order for all sources
        moved = [np.argsort(np.argsort(part[:, 1:], axis=1), axis=1) for part in found]
        same = [np.argsort(np.argsort(part[:, 1:], axis=1), axis=1) for part in known]
        np.testing.assert_array_equal(
            *(
                np.take_along_axis(part[1], np.argsort(part[0], axis=1), axis=1)
                for part in (moved, same)
            )
        )


def test_sources_consult_through_files_as_they_do_with_rows_but_for_offsets(coloured, tmp_path):
    received, held = coloured
    for site in told(coloured, rng=np.random.default_rng(0)):
        site.write(tmp_path / site.site, exact=True)
    sites = [read_site(tmp_path / name) for name in held]
    tables = join_sites(sites, received)
    assert tables.at_label
    sources = [one.source for one in received]
    model = DistributionWeightedClassifier.from_sources(sources).fit_tables(tables)
    pools = [part.consulting for part in model.combination_.parts]
    assert any(pools)
    assert all(one is None or one.takes_errors for one in pools)
    rows = np.concatenate([rows for rows, _ in held.values()])
    color = np.concatenate([color for _, color in held.values()])
    domain = np.repeat(list(held), 600)
    due = model.certify(rows, color, domain).source_losses
    found = certify_tables(tables, model.combination_, "cross_entropy")
    np.testing.assert_allclose(found.source_losses, due, rtol=1e-9)
    brier = certify_tables(tables, model.combination_, "brier")
    model.loss = "brier"
    np.testing.assert_allclose(
        brier.source_losses, model.certify(rows, color, domain).source_losses, rtol=1e-9
    )


def test_rounded_files_teach_nearly_the_same(coloured):
    received, _ = coloured
    sources = [one.source for one in received]
    exact, coarse = (
        DistributionWeightedClassifier.from_sources(sources).fit_tables(join_sites(sites, received))
        for sites in (told(coloured), [site.rounded() for site in told(coloured)])
    )
    whole = join_sites(told(coloured), received, whole=True)
    losses = []
    for model in (exact, coarse):
        losses.append(certify_tables(whole, model.combination_, "cross_entropy").source_losses)
    alone = whole.weighed(exact.combination_.parts[0].calibration).problem("cross_entropy", 1e-3)
    np.testing.assert_allclose(losses[1], losses[0], rtol=0.1)
    assert (losses[1] < 0.9 * alone.source_losses(exact.z_)).all()


def test_older_files_with_the_label_alone_are_read_beside_new_ones(coloured, tmp_path):
    received, _ = coloured
    north, south = told(coloured)
    north.at_label().write(tmp_path / "old")
    south.write(tmp_path / "new")
    old, new = read_site(tmp_path / "old"), read_site(tmp_path / "new")
    assert old.outcomes.shape == (2, 600)
    assert join_sites([old, new], received).predictions.shape == (2, 1200, 1)
    few = replace(new, outcomes=new.outcomes[:, :, :3])
    with pytest.raises(InputError, match="has other classes"):
        join_sites([old, few], received)


def test_of_many_classes_the_label_alone_is_told(coloured, monkeypatch):
    monkeypatch.setattr("anymix.exchange.site_table.MOST_TOLD", 3)
    assert told(coloured)[0].outcomes.shape == (2, 600)
