"""A model card in Markdown, with the front matter of Hugging Face: the page's records as text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, TypedDict

from anymix.core import CLAIMED
from anymix.report.guarantees import certified_unit
from anymix.report.markup import flat, number, unit_of
from anymix.report.record import OURS, ReportRecord, checked, claimed, recorded
from anymix.report.standing import Stand, listed
from anymix.storage import to_yaml

Data = dict[str, Any]
SPECIAL = re.compile(r"([\\`*_\[\]{}|#~$])")
HALVES = {"regret": "Excess over each source’s own model", "loss": "Loss on the worst mixture"}
GROUNDS = {
    "exact": "exact: it holds at every number of rows",
    "asymptotic": "asymptotic: it holds as rows become many",
    "measured": "measured only: no confidence is claimed",
    "tables": "on these rows alone, taken as the distributions themselves",
}
MOST_LISTED = 40
# What a card of ours begins with; YAML takes it for a comment.
CARD_BEGIN = "---\n# Written by anymix export --card from the model's records.\n"


class CardFacts(TypedDict):
    """Facts of a model card beyond the report's record; lists have one entry per source.

    Attributes
    ----------
    task : "classification" or "regression"
    classes : list or None
    features : list of dict
        name, kind, `gaps` (whether values may be missing), and categories where there are any.
    trained : list of int or None
        Rows that each source says it was trained on.
    densities : list of str
        The kind of each source's density.
    """

    task: str
    classes: list[Any] | None
    features: list[dict[str, Any]]
    trained: list[int | None]
    densities: list[str]


def render_card(record: ReportRecord | Data, facts: CardFacts) -> str:
    """Return the model card of a record.

    Parameters
    ----------
    record : ReportRecord
        As `render` takes it.
    facts : CardFacts

    Examples
    --------
    >>> facts = {"task": "regression", "classes": None, "features": [], "trained": [None, 90],
    ...          "densities": ["gaussian_kernels", "none"]}
    >>> card = render_card({"name": "Claims", "sources": ["north", "south"]}, CardFacts(**facts))
    >>> card.splitlines()[2:4], "# Claims" in card
    (['library_name: anymix', 'pipeline_tag: tabular-regression'], True)
    """
    content = checked(record)
    drawn = (_use, _certificate, _comparison, _limits)
    parts = (_what(content, facts), _sources(content, facts), *(draw(content) for draw in drawn))
    head = f"{CARD_BEGIN}{to_yaml(_front(content, facts))}---\n"
    return "\n".join([head, f"# {_md(content['name'])}", "", *filter(None, parts), _loading(facts)])


def _md(text: object) -> str:
    r"""Write a text so that Markdown and HTML in it stay what they are."""
    safe = SPECIAL.sub(r"\\\1", str(text))
    return safe.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines) + "\n"


def _part(title: str, *paragraphs: str) -> str:
    return "\n\n".join([f"## {title}", *(p.rstrip("\n") for p in paragraphs if p)]) + "\n"


def _front(record: Data, facts: CardFacts) -> Data:
    """What Hugging Face reads: names, tags, and the numbers of the comparison."""
    kind, comparison = f"tabular-{facts['task']}", record.get("comparison")
    tags = ["anymix", "onnx", kind, "domain-adaptation", "multiple-sources"]
    front: Data = {"library_name": "anymix", "pipeline_tag": kind, "tags": tags}
    if comparison is None or OURS not in comparison["methods"]:
        return front
    losses = comparison["loss"][comparison["methods"].index(OURS)]
    measure = str(comparison.get("measure"))
    metric = {"type": measure, "name": unit_of(measure).head}
    results = [
        {
            "task": {"type": kind},
            "dataset": {"name": f"held-out rows: {name}", "type": "private"},
            "metrics": [metric | {"value": loss}],
        }
        for name, loss in zip(comparison["mixtures"], losses, strict=True)
    ]
    if results:
        front["model-index"] = [{"name": record["name"], "results": results}]
    return front


def _what(record: Data, facts: CardFacts) -> str:
    names = listed([_md(name) for name in record["sources"]], 8)
    loss = f" It was learned by {unit_of(record['loss']).head}." if "loss" in record else ""
    labels = facts["classes"]
    gives = "a number for each row"
    if labels is not None:
        some = listed([_md(label) for label in labels], 12)
        gives = f"a label and probabilities for each row; the labels are {some}"
    shown = []
    for feature in facts["features"][:MOST_LISTED]:
        words, kind = feature.get("categories"), feature["kind"]
        if words is not None:
            kind += f": {listed([_md(word) for word in words], 8)}"
        shown.append((_md(feature["name"]), f"{kind}, may be empty" if feature["gaps"] else kind))
    more = len(facts["features"]) - len(shown)
    rest = f"\nand {more} more.\n" if more else ""
    return _part(
        "What it is",
        f"One model of {len(record['sources'])} sources: {names}. Each source is a model that was "
        "trained at home and a density of its rows; a row is answered by the sources that it is "
        f"likely to come from, weighed by these densities and by z.{loss} It gives {gives}.",
        f"It takes these columns:\n\n{_table(['column', 'kind'], shown)}{rest}" if shown else "",
    )


def _sources(record: Data, facts: CardFacts) -> str:
    columns: dict[str, Sequence[object]] = {
        "source": [_md(name) for name in record["sources"]],
        "trained on, rows": ["not stated" if n is None else n for n in facts["trained"]],
        "held-out rows": record.get("rows", ()),
        "z": [number(z, 4) for z in record.get("z", ())],
        "density": [_md(kind) for kind in facts["densities"]],
    }
    shown = {head: column for head, column in columns.items() if column}
    days = record.get("recorded", {})
    recorded = [f"{part} on {_md(day)}" for part, day in sorted(days.items())]
    return _part(
        "Sources",
        _table([*shown], zip(*shown.values(), strict=True)),
        f"Recorded on new rows: {listed(recorded)}." if recorded else "The records state no day.",
        f"All numbers are {CLAIMED}." if record.get("stated") else "",
    )


def _use(record: Data) -> str:
    stands = [Stand(verdict, record["sources"]) for verdict in record.get("verdict") or []]
    sentences = [
        "For rows that come from these sources in any mixture. For rows of another kind nothing is "
        "promised; `anymix monitor` tells whether today’s rows are such a mixture."
    ]
    if stands:
        title = stands[0].decision()[1]
        sentences.append(f"**Verdict: {_md(title)}.**")
    for stand in stands:
        sentences.append(f"By {stand.unit.head}, it is {_md(listed(stand.phrases(), 9))}.")
    return _part("Intended use", *sentences)


def _certificate(record: Data) -> str:
    certificate = record.get("certificate")
    if certificate is None:
        why = " z was adapted after it was certified." if record.get("adapted") else ""
        return _part("Certificate", f"There is none.{why}")
    unit, rows = certified_unit(record), []
    for half, title in HALVES.items():
        upper, ground = certificate.get(f"{half}_upper"), certificate.get(f"{half}_ground") or ""
        measured = certificate.get("regret" if half == "regret" else "robust_loss")
        values = [unit.text(v, unit.digits([measured])) for v in (measured, upper)]
        rows.append([title, *values, GROUNDS.get(ground, _md(ground))])
    confidence = certificate.get("confidence")
    sure = "at most" if confidence is None else f"at most, with {100 * confidence:g} % confidence"
    clip = certificate.get("clip")
    cut = "" if clip is None else f"No row counts for more than {unit.said(clip, 2)}."
    return _part(
        "Certificate",
        f"> {_md(certificate.get('sentence', ''))}",
        recorded(record, "certificate").strip() or claimed(record, "certificate").strip(),
        _table([unit.head, "measured", sure, "ground"], rows),
        cut,
    )


def _comparison(record: Data) -> str:
    comparison = record.get("comparison")
    if comparison is None:
        return ""
    unit = unit_of(comparison.get("measure"))
    digits = unit.digits(flat(comparison["loss"]))
    rows = []
    for a, (name, cheats) in enumerate(
        zip(comparison["methods"], comparison["privileged"], strict=True)
    ):
        values = [
            unit.text(value, digits) for value in (*comparison["loss"][a], comparison["worst"][a])
        ]
        rows.append([f"**{OURS}**" if name == OURS else _md(name) + r" \*" * cheats, *values])
    star = r"\* uses information that others lack." if any(comparison["privileged"]) else ""
    return _part(
        "Compared with the others",
        f"Mean {unit.head}, smaller is better, on held-out rows of each source, of all in equal "
        "parts, and of the source where it is worst." + recorded(record, "comparison"),
        _table([unit.head, *map(_md, comparison["mixtures"]), "worst"], rows),
        star,
    )


def _limits(record: Data) -> str:
    sentences = [
        "It promises nothing for rows that no mixture of its sources brings.",
        "It is as fair, and as right, as its sources: what all of them get wrong stays wrong.",
        "Rows were held out by the sources themselves; who hands in rows that a model was trained "
        "on makes it look better than it is.",
    ]
    certificate = record.get("certificate") or {}
    if certificate.get("confidence") is None:
        sentences.append(
            "No confidence is claimed: too few rows, or rows that the model was fitted on."
        )
    worst = [_md(name) for name in record.get("set_aside", [])]
    if worst:
        sentences.append(f"The rows of {listed(worst)} did not choose z.")
    return _part("Limits", "\n".join(f"- {sentence}" for sentence in sentences))


def _loading(facts: CardFacts) -> str:
    wanted = "label, probabilities" if facts["task"] == "classification" else "prediction"
    names = ", ".join(f'"{name}"' for name in [*wanted.split(", "), "weights"])
    words = any(feature["kind"] == "category" for feature in facts["features"])
    coded = (
        "Categories are encoded by their place in the list, missing values by NaN." if words else ""
    )
    return _part(
        "How to load it",
        "With onnxruntime alone, from the file that `anymix export` writes:",
        "```python\nimport onnxruntime\n\n"
        'session = onnxruntime.InferenceSession("robust.onnx")\n'
        f'{wanted}, weights = session.run([{names}], {{"X": X}})\n```',
        f"X holds numbers, with the columns in the order above. {coded}",
        'With anymix: `anymix.load("model")`, on the model folder.',
    )
