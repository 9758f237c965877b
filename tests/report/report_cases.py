"""Records made of random numbers, and a reader of pages that shares no code with the writer."""

from html.parser import HTMLParser

import numpy as np

HOSTILE = [
    "<img src=x onerror=window.hacked=1>",
    "</script><script>window.hacked=2</script>",
    "\"' onfocus='window.hacked=3' autofocus x=\"",
    "${title} &amp; <!-- ]]> \\u003c",
    "an organisation with a name that has no end, and then goes on for a while longer",
]
VOID = {"meta", "input", "br"}


def full_record(names=("north", "south", "west"), seed=0):
    """A record with every field, its numbers drawn at random."""
    rng, names = np.random.default_rng(seed), list(names)
    p = len(names)
    return {
        "name": "Claims",
        "sources": names,
        "loss": "squared",
        "objective": "regret",
        "anymix": "0.1.0",
        "rows": rng.integers(50, 900, p).tolist(),
        "z": rng.dirichlet(np.ones(p)).tolist(),
        "weights": rng.dirichlet(np.ones(p), p).T.tolist(),
        "certificate": _certificate(rng, p),
        "verdict": [verdict(p, "squared", seed)],
        "cross_loss": _interval(rng, (p, p), "mean") | {"names": names, "confidence": 0.95},
        "comparison": _comparison(rng, names),
        "solution": _solution(rng),
        "calibration": _calibration(rng),
        "traffic": _traffic(rng, p),
    }


def verdict(p, measure, seed=0, most=3.0):
    """How a model stands beside three others, its numbers drawn at random."""
    rng = np.random.default_rng([seed, p])
    loss = rng.uniform(0.2, 0.4, p + 1) * most
    rivals = []
    for name in ("average", "own", "constant"):
        other = loss + rng.uniform(-0.1, 0.3, p + 1) * most
        gap, width = loss - other, rng.uniform(0.01, 0.1, p + 1) * most
        ends = {"difference": gap, "lower": gap - width, "upper": gap + width}
        rivals.append({"name": name, "loss": other.tolist()} | _plain(ends))
    width = rng.uniform(0.02, 0.1, p + 1) * most
    return {
        "measure": measure,
        "confidence": 0.95,
        "fresh": True,
        "rows": rng.integers(50, 900, p).astype(float).tolist(),
        **_plain({"loss": loss, "lower": loss - width, "upper": loss + width}),
        "rivals": rivals,
    }


def _plain(arrays):
    return {name: array.tolist() for name, array in arrays.items()}


def labelled_record(names=("north", "south", "west"), seed=0):
    """A record of a classifier: its table in wrong labels, its certificate in cross-entropy."""
    record, p = full_record(names, seed), len(names)
    table = record["comparison"]
    for field in ("loss", "lower", "upper", "worst"):
        table[field] = (np.array(table[field]) / 4).tolist()
    table["measure"] = "error_rate"
    record["certificate"]["loss"] = "cross-entropy"
    shares = verdict(p, "error rate", seed, most=1.0)
    nats = verdict(p, "cross-entropy", seed + 1)
    return record | {"loss": "cross_entropy", "verdict": [shares, nats]}


def _interval(rng, shape, centre):
    value = rng.uniform(0.2, 3.0, shape)
    width = rng.uniform(0.01, 0.1, shape)
    bounds = {centre: value, "lower": value - width, "upper": value + width}
    return {name: array.tolist() for name, array in bounds.items()}


def _certificate(rng, p):
    return {
        "sentence": "On any mixture of the sources the loss is at most 1.5, with 95 % confidence.",
        "own_losses": rng.uniform(0.5, 1, p).tolist(),
        "source_losses": rng.uniform(0.5, 1, p).tolist(),
        "robust_loss": 1.2345,
        "regret": -0.04567,
        "loss_upper": 1.5678,
        "regret_upper": 0.03456,
        "confidence": 0.95,
        "method": "betting",
        "bounds": [
            {"name": "a bound", "value": 2.3456, "paper": "Thm 1", "assumptions": "It is so."}
        ],
    }


def _comparison(rng, names):
    p, methods = len(names), ["uniform", "anymix", "told the mixture"]
    mixtures = np.concatenate([[np.full(p, 1 / p)], np.eye(p)[::-1]])
    alone = rng.uniform(0.2, 3.0, (3, p))
    loss = alone @ mixtures.T
    return {
        "methods": methods,
        "privileged": [False, False, True],
        "sources": names,
        "mixtures": ["all", *names[::-1]],
        "mixture_weights": mixtures.tolist(),
        "loss": loss.tolist(),
        "lower": (loss - 0.1).tolist(),
        "upper": (loss + 0.1).tolist(),
        "worst": alone.max(axis=1).tolist(),
        "worst_mixture": [names[k] for k in alone.argmax(axis=1)],
        "measure": "squared",
    }


def _solution(rng):
    steps = 10.0 ** -np.arange(1, 8) * rng.uniform(1, 9, 7)
    trace = [
        {"n_evaluations": float(n), "gamma": g, "worst": 0.5 + g}
        for n, g in enumerate(steps.tolist(), 1)
    ]
    return {
        "status": "converged",
        "objective": "regret",
        "n_evaluations": 7.0,
        "optimality": 2e-9,
        "trace": trace,
    }


def _calibration(rng):
    curves = {
        name: [
            {"confidence": c, "accuracy": a, "share": 0.25}
            for c, a in zip(np.linspace(0.4, 1, 4).tolist(), rng.uniform(0, 1, 4), strict=True)
        ]
        for name in ("before", "after")
    }
    report = {
        "n_points": 300,
        "log_loss_before": 0.8765,
        "log_loss_after": 0.4321,
        "error_before": 0.1234,
        "error_after": 0.0345,
    }
    return {"report": report, **curves}


def _traffic(rng, p):
    mixture = rng.dirichlet(np.ones(p))
    return {
        "sentence": "These 200 rows are a mixture of the sources; nothing strange (p = 0.4).",
        "estimate": {
            "mixture": mixture.tolist(),
            "lower": (0.5 * mixture).tolist(),
            "upper": (0.5 + 0.5 * mixture).tolist(),
            "n": 200,
            "confidence": 0.95,
        },
        "alarm": {"rings": False, "p_value": 0.4, "level": 0.01},
    }


class Page(HTMLParser):
    """The elements of a page: their tags, attributes and text, and its tables by section."""

    def __init__(self, html):
        super().__init__()
        self.elements, self.stack = [], []
        self.feed(html)
        self.close()
        assert not self.stack, f"not closed: {self.stack[-1]['tag']}"

    def handle_starttag(self, tag, attributes):
        inside = [element["tag"] for element in self.stack]
        section = next((e["id"] for e in self.stack if e["tag"] == "section"), "")
        element = {"tag": tag, "attributes": dict(attributes), "text": "", "inside": inside}
        element |= {"id": dict(attributes).get("id", ""), "section": section}
        self.elements.append(element)
        if tag not in VOID:
            self.stack.append(element)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.stack.pop()

    def handle_endtag(self, tag):
        assert self.stack.pop()["tag"] == tag

    def handle_data(self, text):
        for element in self.stack:
            element["text"] += text

    def find(self, tag, section=None):
        return [
            e for e in self.elements if e["tag"] == tag and section in (None, e["section"], e["id"])
        ]

    def cells(self, section):
        """The text of each cell of a section's tables, without the small print."""
        return [e["text"] for e in self.find("td", section)]
