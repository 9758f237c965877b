"""The generalist by rounds: the same as of rows in one place; odd queries and lies are refused."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from anymix import Source, Tables, load
from anymix.densities import BoostedTrees, GaussianMixtureDensity
from anymix.engines.federation import Settings, SiteError, federate
from anymix.engines.generalist import (
    LINEAR,
    check_linear,
    columns_of,
    learn_generalist,
    linear_rows,
)
from anymix.engines.site import part_of_site
from anymix.engines.wire import dump_reply, load_queries, load_reply
from anymix.exceptions import InputError
from anymix.exchange import pack_source, read_alike, read_site_rows, read_sources, received_trees
from anymix.sources import LeafColumns, NumberColumns, Query, combined_predictions, predictions_of
from anymix.sources import learn as learn_at_hand
from tests.cli.organisations import NAMES, draw, label, write_csv
from tests.engines.federated_world import InProcessSites, build, described, quiet
from tests.engines.test_federation import same

LEARNERS = {
    "regression": HistGradientBoostingRegressor(max_iter=10, min_samples_leaf=10),
    "classification": HistGradientBoostingClassifier(max_iter=10, min_samples_leaf=10),
}


def with_trees(folder, task):
    """Three sites whose sources are boosted trees."""
    rng = np.random.default_rng(2)
    for name in NAMES:
        X, y = draw(name, 200, rng)
        target = label(y) if task == "classification" else y
        density = GaussianMixtureDensity().fit(X)
        source = Source(name, LEARNERS[task].fit(X, target), density, feature_names=["a", "b"])
        pack_source(source, folder / "sources" / name, rows=X)
        X, y = draw(name, 60, rng)
        write_csv(folder / f"{name}.csv", X, label(y) if task == "classification" else y)
    return described(folder, NAMES)


@pytest.fixture(scope="module", params=["linear", "regression", "classification"])
def world(request, tmp_path_factory):
    quiet()
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "linear":
        return build(folder, "classification", 60)
    return with_trees(folder, request.param)


def learn(world, out, change=None):
    transport = InProcessSites(world.expected, world.nodes())
    transport.change = change or transport.change
    given = {"sources": str(world.folder / "sources"), "out": str(out)}
    return federate(transport, world.expected, Settings.of(given), lambda text: None)


def parts_of(world, received, columns):
    """What each site answers by, without messages; and its table."""
    rows, tables, whole = [], [], world.tables()
    for k, name in enumerate(world.names):
        X, _ = read_site_rows(world.node(name)["rows"], received, "y")
        tables.append(whole.taken(whole.rows_of(k)))
        rows.append(linear_rows(columns, X, part_of_site(tables[-1])))
    return rows, tables


def test_what_is_learned_is_that_of_rows_in_one_place(world, tmp_path):
    found, sites = learn(world, tmp_path / "model")
    received = read_alike([world.folder / "sources" / name for name in world.names])
    columns = columns_of(received)
    rows, tables = parts_of(world, received, columns)
    predictions = {}

    def ask(query, parts):
        if query.name in LINEAR:
            return [part.answer(query.name, query.options, query.arrays) for part in rows]
        agreed = {n: a for n, a in query.arrays.items() if n != "theta"}
        for k, (part, table) in enumerate(zip(rows, tables, strict=True)):
            models = [
                columns.predictor(one, table.classes, agreed) for one in query.arrays["theta"]
            ]
            each = [predictions_of(Source("x", m), part.X, table.classes) for m in models]
            predictions[k] = np.stack(each)[part.fold, np.arange(len(part.fold))]
        return [{} for _ in rows]

    model, _, record = learn_generalist(ask, world.names, columns, received)
    assert record == found.evidence.generalist
    assert record.n_rounds <= 60
    assert sites.n_rounds - record.n_rounds <= 25
    given = [replace(table, generalist=predictions[k]) for k, table in enumerate(tables)]
    task = "regression" if tables[0].classes is None else "classification"
    there = learn_at_hand(Tables.concatenate(given), Settings().goal(task, world.names))
    same(found, there)
    # The folder holds it, and predicts as the combination does.
    loaded, (X, *_) = load(tmp_path / "model"), world.rows()
    whole = world.tables()
    general = predictions_of(model, np.asarray(X, dtype=float), whole.classes)
    expected = combined_predictions(replace(whole, generalist=general), found.combination)
    told = loaded.predict_proba(X) if whole.classes is not None else loaded.predict(X)
    np.testing.assert_allclose(told, expected, rtol=1e-4, atol=1e-5)


def test_columns_are_leaves_where_graphs_hold_trees(world):
    received = read_alike([world.folder / "sources" / name for name in world.names])
    columns = columns_of(received)
    if received_trees(received[0]) is None:
        assert isinstance(columns, NumberColumns)
    else:
        assert isinstance(columns, LeafColumns)


@pytest.mark.parametrize("task", LEARNERS)
def test_trees_are_read_back_from_graphs(tmp_path, task):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.nansum(X, axis=1) + rng.normal(size=300)
    model = LEARNERS[task].fit(X, (y > 0).astype(int) if task == "classification" else y)
    density = GaussianMixtureDensity().fit(np.nan_to_num(X))
    source = Source("s", model, density, feature_names=["a", "b"])
    pack_source(source, tmp_path / "s", rows=np.nan_to_num(X))
    found, own = received_trees(read_sources([tmp_path / "s"])[0]), BoostedTrees.of(model)
    np.testing.assert_array_equal(found.leaves(X), own.leaves(X))


def test_sites_refuse_other_queries_about_it(world):
    received = read_alike([world.folder / "sources" / name for name in world.names])
    columns = columns_of(received)
    rows, _ = parts_of(world, received, columns)
    d = rows[0].X.shape[1]
    agreed = {"mean": np.zeros(d), "scale": np.ones(d)}
    agreed = agreed if isinstance(columns, NumberColumns) else {}
    D = rows[0].columns.matrix(rows[0].X, agreed, 1).shape[1]
    theta = {"theta": np.zeros((2, 1, D + 1)), "without": np.array([0, -1])}
    check_linear(Query("step", {}, theta | agreed), rows[0])
    wrong = {
        "of shape": {"theta": np.zeros((2, 1, D))},
        "of shape .200": {"theta": np.zeros((200, 1, D + 1))},
        "outside": {"without": np.array([0, 9])},
        "outside of": {"theta": np.full((2, 1, D + 1), np.inf)},
        "protocol does not need": {"rows": np.arange(2)},
        "agreed": {"mean": np.zeros(d)} if not agreed else {"idf": np.zeros(d)},
    }
    for words, change in wrong.items():
        with pytest.raises(InputError, match=words if words != "agreed" else "need|agreed"):
            check_linear(Query("step", {}, theta | agreed | change), rows[0])
    with pytest.raises(InputError, match="protocol does not need"):
        check_linear(Query("step", {"loss": "squared"}, theta | agreed), rows[0])


def test_a_site_that_lies_about_it_is_named(world, tmp_path):
    def change(config, message, reply):
        queries = load_queries(message)
        if config["site"] != "south" or all(query.name != "step" for query in queries):
            return reply
        _, sent = load_reply(reply, len(queries))
        return dump_reply("south", [one | {"gradient": one["gradient"][:, :, :1]} for one in sent])

    with pytest.raises(SiteError, match=r"'south'.*sent gradient of shape"):
        learn(world, tmp_path / "model", change)
