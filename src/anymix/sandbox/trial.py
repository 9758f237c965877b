"""A predictor is tried as it will be used: a row alone, in company, in other orders, twice."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anymix.sandbox.graph import Graph
from anymix.sandbox.session import ask, ask_in_blocks, open_session, run
from anymix.sandbox.shapes import N, Refused, Shape, W, is_stacked

Array = NDArray[Any]
# Rounding depends on the size of a batch, as products are summed in another order.
TOLERANCE = 1e-3
ALONE = 12
MADE_UP = 64
FAR = (1e3, 1e6, 1e30)


def try_out(
    graph: Graph, dtype: str, n_features: int, rows: Any = None, own: int = 0, classes: bool = False
) -> None:
    """Try rows that were made up, and given ones; the first `own` are of the predictor's kind."""
    check_shapes(graph, dtype, n_features)
    session = open_session(graph.content)
    made_up = _made_up(dtype, n_features)
    in_company(session, made_up, graph.block)
    for extreme in _extremes(made_up, dtype):
        # It may say no to a gap or a far row, in time and within its memory.
        with suppress(Refused):
            ask(session, extreme)
    if rows is not None and len(rows):
        judge(session, rows, graph.block, own, classes)


def judge(session: Any, rows: Any, block: int, own: int, classes: bool) -> None:
    """The same answers in any company; finite ones, and probabilities, at the first `own` rows."""
    answers = in_company(session, rows, block)[:own]
    if not own:
        return
    bad = np.flatnonzero(~np.isfinite(answers).all(axis=1))
    if bad.size:
        raise Refused(f"it answers {answers[bad[0]].tolist()!r:.60} to a row of a known kind")
    if classes:
        off = np.abs(answers.sum(axis=1) - 1).max() > TOLERANCE or answers.min() < -1e-6
        if off:
            raise Refused("its answers are scores, not probabilities that add up to 1")


def in_company(session: Any, rows: Any, block: int) -> Array:
    """Return the answers, which must not depend on what else is asked, or on when."""
    rng, n = np.random.default_rng(0), len(rows)
    answers = ask_in_blocks(session, rows, block)
    scale = TOLERANCE * (1 + np.nanmax(np.abs(np.where(np.isfinite(answers), answers, 0.0))))
    # Documents are not repeated: long ones would take all the time there is.
    crowd = np.resize(np.arange(n), n if rows.dtype == object else min(block, max(4 * n, 1000)))
    ways = [np.arange(n), rng.permutation(n), rng.permutation(crowd), np.arange(min(n, 2))]
    ways += [np.array([i]) for i in rng.choice(n, min(n, ALONE), replace=False)]
    for way in ways:
        again, due = ask_in_blocks(session, rows[way], block), answers[way]
        with np.errstate(invalid="ignore"):
            apart = ~((np.abs(again - due) <= scale) | (again == due))
        if (apart & ~(np.isnan(again) & np.isnan(due))).any():
            raise Refused("its answer to a row depends on the other rows, or on chance")
    return answers


def _made_up(dtype: str, n_features: int) -> Any:
    if dtype == "string":
        words = np.array(["some words", "and some more of them", "x", "a b c d e f", "words words"])
        return np.resize(words.astype(object), (MADE_UP, 1))
    return np.random.default_rng(0).normal(size=(MADE_UP, n_features)).astype(dtype)


def _extremes(rows: Any, dtype: str) -> list[Any]:
    """Far rows, gaps, zeros; nothing is asked of the answers but that they come."""
    if dtype == "string":
        odd = ["", " ", "\N{SNOWMAN} é", "1 2 3", "word " * 2000]
        return [np.array(odd, dtype=object)[:, None]]
    with np.errstate(over="ignore"):
        far = [(rows[:4] * size).astype(dtype) for size in FAR]
    return [*far, np.full_like(rows[:2], np.nan), np.zeros_like(rows[:1]), rows[:1] * 0 - np.inf]


def check_shapes(graph: Graph, dtype: str, n_features: int) -> None:
    """Every value has the shape that was worked out for it, at several numbers of rows."""
    from onnx import GraphProto, ModelProto, ValueInfoProto

    inner = [name for name in graph.shapes if name][1:]
    further = [ValueInfoProto(name=name) for name in inner if name != graph.output]
    # Messages that stand one after the other are one: the graph, with further outputs.
    more = ModelProto(graph=GraphProto(output=further)).SerializeToString() if further else b""
    whole = open_session(graph.content + more)
    for n in (1, 2, 3):
        found = run(whole, inner, _made_up(dtype, n_features)[:n])
        for name, value in zip(inner, found, strict=True):
            if not _fits(np.shape(value), graph.shapes[name], n):
                raise Refused(f"the value {name!r:.60} has another shape than its operators say")


def _fits(found: tuple[int, ...], stated: Shape, n: int) -> bool:
    if len(found) != len(stated):
        return False
    if is_stacked(stated):
        return True
    return all(b == W or a == (n if b == N else b) for a, b in zip(found, stated, strict=True))
