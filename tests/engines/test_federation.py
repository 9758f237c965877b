"""Learning from sites that keep their rows: the same result, what left, and each failure."""

import json
import subprocess
import sys
import time
from functools import partial
from io import BytesIO
from types import SimpleNamespace

import numpy as np
import pytest

from anymix import load
from anymix.engines.account import total
from anymix.engines.federation import Settings, SiteError, Sites, federate
from anymix.engines.rounds import digest
from anymix.engines.site import answer, part_of_site
from anymix.engines.site_queries import check_query
from anymix.engines.wire import Refusal, dump_queries, dump_reply, load_queries, load_reply
from anymix.exceptions import InputError
from anymix.exchange import load_message
from anymix.sources import Blocks, Query
from anymix.sources import learn as learn_at_hand
from anymix.storage import plain_json
from tests.engines.federated_world import InProcessSites, build, heart, quiet

QUICK = {"calibrate": False, "consult": False, "objective": "gamma"}


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    quiet()
    return build(tmp_path_factory.mktemp("numbers"), "regression", 40)


@pytest.fixture(scope="module")
def labels(tmp_path_factory):
    quiet()
    return build(tmp_path_factory.mktemp("labels"), "classification", 40)


def sites_of(world, change=None, configs=None, **changed):
    found = InProcessSites(world.expected, configs or world.nodes(**changed))
    if change is not None:
        found.change = change
    return found


def settings_of(world, out, **changed):
    # The generalist has tests of its own.
    given = {"sources": str(world.folder / "sources"), "out": str(out), "generalist": False}
    return Settings.of(given | changed)


def learn(world, out, transport=None, **changed):
    transport = sites_of(world) if transport is None else transport
    settings = settings_of(world, out, **changed)
    taught, sites = federate(transport, world.expected, settings, lambda text: None)
    return SimpleNamespace(taught=taught, sites=sites)


def at_hand(world, task, **changed):
    """What a learner finds that has the rows of all sites."""
    goal = settings_of(world, "", **changed).goal(task, world.names)
    return learn_at_hand(world.tables(), goal)


def same(found, there):
    """Everything that is learned is the same: pools, calibrations, z, and the certificate."""
    for one, other in zip(found.combination.parts, there.combination.parts, strict=True):
        np.testing.assert_allclose(one.z, other.z, atol=1e-8)
        assert (one.consulting is None) == (other.consulting is None)
        if one.consulting is not None:
            np.testing.assert_allclose(one.consulting.weights, other.consulting.weights, atol=1e-8)
        if one.calibration is not None:
            known = one.calibration.temperature, other.calibration.temperature
            np.testing.assert_allclose(*known, rtol=1e-6)
    judged = found.evidence.certificate, there.evidence.certificate
    np.testing.assert_allclose(*(one.source_losses for one in judged), rtol=1e-8)
    assert judged[0].sentence == judged[1].sentence
    crossed = (each.evidence.cross_loss for each in (found, there))
    np.testing.assert_allclose(*((one.mean, one.upper) for one in crossed), rtol=1e-8)


@pytest.mark.parametrize("objective", ["regret", "robust"])
def test_all_that_is_learned_is_that_of_rows_at_hand(numbers, tmp_path, objective):
    found = learn(numbers, tmp_path / "model", objective=objective)
    same(found.taught, at_hand(numbers, "regression", objective=objective))


def test_of_labels_too(labels, tmp_path):
    found = learn(labels, tmp_path / "model", objective="gamma")
    same(found.taught, at_hand(labels, "classification", objective="gamma"))


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_of_so_many_rows_that_bounds_are_claimed_too(tmp_path, task):
    world = build(tmp_path, task, 300)
    found = learn(world, tmp_path / "model")
    assert found.taught.evidence.certificate.confidence is not None
    assert found.sites.n_rounds <= 25
    same(found.taught, at_hand(world, task))


def test_of_heart_too(tmp_path):
    world = heart(tmp_path)
    found = learn(world, tmp_path / "model")
    same(found.taught, at_hand(world, "classification"))


def test_the_folder_holds_a_model_that_predicts_and_claims_nothing(numbers, tmp_path):
    found = learn(numbers, tmp_path / "model")
    model = load(tmp_path / "model")
    X, *_ = numbers.rows()
    np.testing.assert_allclose(model.z_, found.taught.combination.z)
    tables = numbers.tables()
    said = found.taught.combination.predict(tables.log_masses, tables.predictions)
    np.testing.assert_allclose(model.predict(X), said, rtol=1e-4, atol=1e-5)
    assert model.certificate_ is None
    beside = json.loads((tmp_path / "model.sites.json").read_text())
    assert beside["sentence"] == found.taught.evidence.certificate.sentence
    assert not list(tmp_path.glob("model.rounds/round-*"))


def test_a_folder_without_tables_that_claims_something_is_refused(numbers, tmp_path):
    learn(numbers, tmp_path / "model", **QUICK)
    path = tmp_path / "model" / "model.json"
    record = json.loads(path.read_text())
    beside = json.loads((tmp_path / "model.sites.json").read_text())
    path.write_text(json.dumps(record | {"certificate": beside["certificate"]}))
    with pytest.raises(InputError.__mro__[1], match="no tables"):
        load(tmp_path / "model", verify=True)


def test_the_server_writes_what_left_and_sites_count_the_same(numbers, tmp_path):
    state = {name: str(tmp_path / name) for name in numbers.names}
    nodes = [numbers.node(name, state=state[name]) for name in numbers.names]
    learn(numbers, tmp_path / "model", sites_of(numbers, configs=nodes), **QUICK)
    found = json.loads((tmp_path / "model.sites.json").read_text())
    for name in numbers.names:
        (account,) = json.loads((tmp_path / name / "left.json").read_text()).values()
        assert account["left"] == found["left"][name]
        assert account["rounds"] == found["rounds"]
        assert account["left"]["baseline"] == [5, 5 * (1 + 3)]
        assert account["left"]["evaluate"][1] % (1 + 3) == 0  # L_k and p slopes for each z
        assert total(account["left"]) == sum(n for _, n in account["left"].values())


def test_folds_share_rounds(numbers, tmp_path):
    """Five lessons take as many rounds as the longest of them, not as all of them."""
    shared = learn(numbers, tmp_path / "model", **QUICK).sites
    alone = Sites(sites_of(numbers), numbers.names)
    alone.connect()
    goal = settings_of(numbers, "", **QUICK).goal("regression", numbers.names)
    learn_at_hand(Blocks(numbers.names, map=alone, ahead=True), goal)
    assert shared.left == alone.left
    lessons = 5 * 5
    assert alone.n_rounds - shared.n_rounds >= lessons - lessons // 5
    assert shared.n_rounds <= 16


def test_a_second_run_adds_to_the_account_and_asks_no_source_again(numbers, tmp_path):
    state = tmp_path / "state"
    nodes = [numbers.node(name, state=str(state / name)) for name in numbers.names]
    grid = sites_of(numbers, configs=nodes)
    learn(numbers, tmp_path / "one", grid, **QUICK)
    first = (state / "north" / "left.json").read_text()
    (tables,) = (state / "north").glob("tables-*.safetensors")
    written = tables.stat().st_mtime_ns
    learn(numbers, tmp_path / "two", grid, **QUICK)
    assert tables.stat().st_mtime_ns == written
    second = (state / "north" / "left.json").read_text()
    (before,), (after,) = (json.loads(text).values() for text in (first, second))
    assert after["rounds"] == 2 * before["rounds"]


# --- failures ------------------------------------------------------------------------------------


def refused(world, out, words, grid):
    with pytest.raises(SiteError, match=words) as caught:
        learn(world, out, grid, **QUICK)
    sentence = str(caught.value)
    assert sentence.endswith(".")
    assert "\n" not in sentence
    return sentence


def test_a_site_refuses_below_its_own_minimum_of_rows(numbers, tmp_path):
    nodes = numbers.nodes(state=str(tmp_path / "state"))
    nodes[1] = numbers.node("south", **{"min-rows": 500, "state": str(tmp_path / "south")})
    grid = sites_of(numbers, configs=nodes)
    sentence = refused(numbers, tmp_path / "model", "refuses to answer", grid)
    assert "its table cannot be used, or has too few rows" in sentence
    assert "40" not in sentence
    # A server cannot change what the site says.
    with pytest.raises(InputError, match="setting 'min-rows' is unknown"):
        Settings.of({"min-rows": 1})


def test_a_site_with_another_source_folder_is_named(numbers, tmp_path):
    other = {**numbers.expected, "south": "0" * 64}
    grid = sites_of(numbers)
    grid.expected = other
    refused(numbers, tmp_path / "model", "its folder of sources cannot be used", grid)


def lying(world, lie, after=3):
    """Sites of which 'south' sends something else from some round on."""
    seen = []

    def change(config, message, reply):
        if config["site"] != "south":
            return reply
        seen.append(1)
        return lie(message, reply) if len(seen) > after else reply

    return sites_of(world, change)


def changed(verb, change):
    """A lie about what a site sends when it is asked something."""

    def lie(message, reply):
        queries = load_queries(message)
        _, sent = load_reply(reply, len(queries))
        pairs = zip(queries, sent, strict=True)
        return dump_reply("south", [change(s) if q.name == verb else s for q, s in pairs])

    return lie


LIES = {
    "losses that are not finite": lambda s: s | {"losses": s["losses"] * np.nan},
    "slopes that are not finite": lambda s: s | {"slopes": s["slopes"] + np.inf},
    "slopes of shape": lambda s: s | {"slopes": s["slopes"][:, :2]},
    "losses of shape": lambda s: s | {"losses": s["losses"][:, None]},
    "hessians, losses, slopes where": lambda s: s | {"hessians": np.zeros((1, 3, 3))},
    "below the least one": lambda s: s | {"losses": -1 - s["losses"]},
    "losses that are not finite when": lambda s: s | {"losses": s["losses"] + np.inf},
}


@pytest.mark.parametrize("words", LIES)
def test_what_cannot_be_is_named_and_nothing_is_learned_from_it(numbers, tmp_path, words):
    grid = lying(numbers, changed("evaluate", LIES[words]))
    sentence = refused(numbers, tmp_path / "model", words, grid)
    assert sentence.startswith("site 'south'")
    assert "nothing was learned from this round" in sentence
    assert not (tmp_path / "model").exists()
    saved = json.loads((tmp_path / "model.rounds" / "checkpoint.json").read_text())
    assert saved["rounds"] == len(list((tmp_path / "model.rounds").glob("round-*.npz")))


@pytest.mark.parametrize("verb", ["evidence", "paired", "theorems"])
def test_a_response_of_other_arrays_is_named(numbers, tmp_path, verb):
    lie = changed(verb, lambda s: dict(list(s.items())[1:]))
    grid = lying(numbers, lie, after=0)
    with pytest.raises(SiteError, match=f"'south' sent arrays of other .* asked for {verb}"):
        learn(numbers, tmp_path / "model", grid, calibrate=False, consult=False)


def test_numbers_that_no_rows_give_end_in_a_sentence(numbers, tmp_path):
    lie = changed("baseline", lambda s: {})
    with pytest.raises(SiteError, match="responses of the sites cannot be of real rows"):
        learn(numbers, tmp_path / "model", lying(numbers, lie, after=0), **QUICK)
    assert not (tmp_path / "model").exists()


def test_a_loss_above_the_largest_one_is_named(labels, tmp_path):
    lie = changed("evaluate", lambda s: s | {"losses": s["losses"] + 40})
    grid = lying(labels, lie)
    refused(labels, tmp_path / "model", "a loss of 40.* above the largest one, 13.8", grid)


def test_rows_that_change_between_queries_are_named(numbers, tmp_path):
    more = np.array([0, 1, 0])
    lie = changed("count", lambda s: s | {"rows": s["rows"] + more * (len(s["rows"]) > 1)})
    grid = lying(numbers, lie, after=0)
    refused(numbers, tmp_path / "model", "has 45 rows where it had 40 before", grid)


def test_rows_of_other_sources_are_named(numbers, tmp_path):
    lie = changed("count", lambda s: s | {"rows": s["rows"] + 1})
    grid = lying(numbers, lie, after=0)
    refused(numbers, tmp_path / "model", "43 rows, 41 of its own source", grid)


def test_a_reply_that_cannot_be_read_and_one_of_another_site_are_named(numbers, tmp_path):
    def other(message, reply):
        return dump_reply("west", load_reply(reply, len(load_queries(message)))[1])

    lies = {
        "sent what cannot be read": lambda message, reply: b"",
        "has 0 responses to": lambda message, reply: dump_reply("south", []),
        "now says that it is 'west'": other,
        "failed: the line is dead; fix it there": lambda message, reply: "the line is dead.",
    }
    for words, lie in lies.items():
        assert "south" in refused(numbers, tmp_path / "model", words, lying(numbers, lie))


def dying(world, alive):
    """Sites of which 'south' is gone after some rounds, until it is started again."""

    def change(config, message, reply):
        gone = grid.dead and config["site"] == "south" and grid.asked.count("south") > alive
        return None if gone else reply

    grid = sites_of(world, change)
    grid.dead = True
    return grid


def test_a_site_that_dies_is_named_and_the_fit_resumes_where_it_was(numbers, tmp_path):
    out = tmp_path / "model"
    whole = learn(numbers, tmp_path / "whole", **QUICK)
    grid = dying(numbers, alive=7)
    sentence = refused(numbers, out, "site 'south' has not answered within 600 s", grid)
    assert "then resume" in sentence
    saved = json.loads((tmp_path / "model.rounds" / "checkpoint.json").read_text())
    assert (saved["why"], saved["rounds"]) == (sentence, 7)
    assert np.allclose([np.sum(z) for Z in saved["z"] for z in Z], 1.0)
    grid.dead, asked = False, grid.asked.count("north")
    found = learn(numbers, out, grid, resume=True, **QUICK)
    np.testing.assert_allclose(
        found.taught.evidence.solution.z, whole.taught.evidence.solution.z, atol=1e-12
    )
    # What was answered is not asked again: but for who is there, the rounds that were left.
    left = whole.sites.n_rounds - 7
    assert grid.asked.count("north") - asked == found.sites.n_rounds == left + 1


def test_a_fit_does_not_resume_with_other_rows(numbers, tmp_path):
    refused(numbers, tmp_path / "model", "has not answered", dying(numbers, alive=4))
    lie = changed("count", lambda s: s | {"rows": s["rows"] * np.array([0, 2, 0])})
    with pytest.raises(SiteError, match="has 40 rows where it had 80 before"):
        learn(numbers, tmp_path / "model", lying(numbers, lie, 0), resume=True)


def test_the_error_of_a_site_stays_in_its_log(numbers, tmp_path):
    def broken(path, received, target):
        raise RuntimeError("the disk is gone")

    grid = sites_of(numbers, state=str(tmp_path))
    grid.read_rows = broken
    assert "disk" not in refused(numbers, tmp_path / "model", "its table cannot be used", grid)


def test_late_sites_are_waited_for(numbers, tmp_path):
    grid = sites_of(numbers)
    ids, asked = grid.nodes(), []

    def late():
        asked.append(time.monotonic())
        return ids if len(asked) > 2 else ids[:1]

    grid.nodes = late
    assert learn(numbers, tmp_path / "model", grid, **QUICK).sites.n_rounds > 1
    grid.nodes = lambda: ids[:2]
    with pytest.raises(SiteError, match=r"2 of 3 sites have connected within 0\.1 s"):
        learn(numbers, tmp_path / "model", grid, patience=0.1)


def test_two_nodes_of_one_site_and_strangers_are_refused(numbers, tmp_path):
    twice = [numbers.node(n) for n in ("north", "north", "west")]
    unknown = [numbers.node("north"), numbers.node("south"), {**numbers.node("west"), "site": "x"}]
    bare = [numbers.node("north"), numbers.node("south"), {"site": "west"}]
    wrong = {
        "'north' is served by two nodes": twice,
        "4 nodes are connected where 3 sites": [*numbers.nodes(), numbers.node("west")],
        "node 2 refuses to answer: its configuration": unknown,
        "refuses to answer: its configuration": bare,
    }
    for words, configs in wrong.items():
        refused(numbers, tmp_path / "m", words, sites_of(numbers, configs=configs))


@pytest.mark.parametrize("verb", ["sample", "novelty", "tables", "__init__", "answer"])
def test_sites_answer_no_other_verb(numbers, verb):
    part = part_of_site(numbers.tables().taken(np.arange(40)))
    with pytest.raises(InputError, match="is not answered by sites"):
        check_query(Query(verb, {}, {}), part.tables)
    with pytest.raises(Refusal, match="does not answer such a query"):
        answer(Query(verb, {}, {}), part)


def pool(weights):
    """A pool of three sources as the arrays of a query."""
    return {
        "ears.0": weights,
        "ear_offset.0": np.zeros(3),
        "reach.0": np.ones(3),
        "choice.0": np.zeros(3),
    }


def test_sites_refuse_questions_that_are_not_sound(numbers):
    part = part_of_site(numbers.tables().taken(np.arange(40)))
    words = {"loss": "squared", "rule": "marginal"}
    fold = {"folds": np.array(1), "without": np.array(-1), "homes": np.ones(3)}
    fold |= {"parts": np.array(1), "z.0": np.full(3, 1 / 3)}
    sound = {"eta": np.array(1e-3), "totals": np.full(3, 40.0), "Z": np.full((1, 3), 1 / 3), **fold}
    assert answer(Query("evaluate", words, sound), part)["slopes"].shape == (1, 3)
    wrong = {
        "shape": {"Z": np.full((1, 4), 0.25)},
        "off the simplex": {"Z": np.array([[2.0, -1.0, 0.0]])},
        "not finite": {"Z": np.full((1, 3), np.nan)},
        "some of the rows": {"share": np.array(0.05), "seed": np.array(1)},
        "not to 5": {"folds": np.array(4)},
        "spread": {"spread": np.array([True, False, False])},
        "100 z": {"Z": np.full((100, 3), 1 / 3)},
        "sharper": {"temperature.0": np.full(3, 0.01), "offset.0": np.zeros(3)},
        "outside": pool(1e3 * np.eye(3)),
        "other shapes": pool(np.eye(4)),
        "does not need": {"anything": np.array(1.0)},
        "values": {"Z": np.array([["a", "b", "c"]])},
    }
    for said, change in wrong.items():
        with pytest.raises(ValueError, match=said):
            check_query(Query("evaluate", words, sound | change), part.tables)
    with pytest.raises(Refusal, match="cannot be computed"):
        answer(Query("evaluate", words, {"Z": sound["Z"]}), part)


@pytest.mark.parametrize(
    ("name", "value"), [("loss", "poisson"), ("rule", "joint"), ("measure", "mae")]
)
def test_sites_judge_by_the_loss_and_the_rule_of_the_protocol_alone(numbers, name, value):
    part = part_of_site(numbers.tables().taken(np.arange(40)))
    with pytest.raises(InputError, match=f"has {name} .*does not need"):
        check_query(Query("cross", {"loss": "squared", name: value}, {}), part.tables)


def test_a_refusal_tells_its_kind_alone_and_is_counted(numbers, tmp_path):
    """A refused query used to carry numbers of single rows, and to be in no account."""
    ask = partial(asked, sites_of(numbers, state=str(tmp_path)))
    assert ask(Query("check", {"loss": "poisson", "rule": "marginal"}, {})) == "query"
    assert ask(Query("evaluate", {"loss": "squared", "rule": "marginal"}, {})) == "rows"
    account = json.loads((tmp_path / "left.json").read_text())
    ((_, entry),) = account.items()
    assert entry == {"rounds": 0, "left": {}, "refused": {"query": 1, "rows": 1}}
    for _ in range(98):
        ask(Query("tables", {}, {}))
    assert ask(Query("count", {}, {"folds": np.array(1)})) == "budget"


def asked(grid, query):
    """The kind of refusal that the site 'north' sends back for a query; "" if it responds."""
    arrays = load_message(grid.respond(0, dump_queries([query])), "a reply")
    head = plain_json(arrays.pop("head").tobytes())
    if "refused" not in head:
        return ""
    assert not arrays
    assert set(head) == {"form", "refused"}
    return head["refused"]


def test_queries_that_tell_of_rows_have_a_budget(numbers, tmp_path):
    grid = sites_of(numbers, state=str(tmp_path))
    known = {"loss": "squared", "rule": "marginal", "judged": "folds"}
    for n in range(21):
        arrays = {"clip": np.array(1.0), "constant": np.array(n / 10)}
        assert asked(grid, Query("beside", known, arrays)) == ("budget" if n == 20 else "")


def test_a_damaged_round_is_not_resumed(numbers, tmp_path):
    refused(numbers, tmp_path / "model", "has not answered", dying(numbers, alive=4))
    path = max((tmp_path / "model.rounds").glob("round-*.npz"))
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(InputError, match="is not what was written there"):
        learn(numbers, tmp_path / "model", resume=True)


def test_what_was_kept_is_checked_as_what_a_site_sends(numbers, tmp_path):
    refused(numbers, tmp_path / "model", "has not answered", dying(numbers, alive=7))
    path = max((tmp_path / "model.rounds").glob("round-*.npz"))
    with np.load(path) as file:
        arrays = {k: -np.inf + a if k.endswith("losses") else a for k, a in file.items()}
    content = BytesIO()
    np.savez(content, **arrays)
    path.unlink()
    name = f"{path.stem[:12]}{digest(content.getvalue())}.npz"
    (path.parent / name).write_bytes(content.getvalue())
    with pytest.raises(SiteError, match="not finite"):
        learn(numbers, tmp_path / "model", resume=True, **QUICK)


def test_an_account_loses_no_round_when_two_write_it(tmp_path):
    code = (
        "import sys, numpy as np\n"
        "from pathlib import Path\n"
        "from anymix.engines.account import record_left\n"
        "from anymix.sources import Query\n"
        "for _ in range(20):\n"
        "    record_left(Path(sys.argv[1]), '1', [Query('count')], [{'rows': np.ones(2)}])\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "left.json")]
    running = [subprocess.Popen(command) for _ in range(3)]
    assert [one.wait(120) for one in running] == [0, 0, 0]
    ((_, entry),) = json.loads((tmp_path / "left.json").read_text()).items()
    assert entry == {"rounds": 60, "left": {"count": [60, 120]}}
