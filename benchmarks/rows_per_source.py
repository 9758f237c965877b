"""How many rows must a source have until anymix loses less than one model of all rows pooled?

    python -m benchmarks.rows_per_source [--quick] [--data ../shared/data] [--sets housing cars]
    python -m benchmarks.rows_per_source --draw

Training and test rows are those of the first split of the evidence; of each source at most n of the
training rows are used.  Differences to the pooled model of the default learner are paired, row by
row.  Measurements go to `results/rows_per_source.ndjson`, and `--draw` draws them.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from benchmarks.generalist import by_domain, few_of
from experiments.evidence import judge, split
from experiments.evidence_sets import LOADERS

SETS = ("housing", "cars", "airline")
SIZES = (50, 100, 200, 500, 1000, 2000)
SEED = 0
METHODS = ("uniform", "joint", "best pooled", "anymix, no rows pooled", "anymix")
RECORD = Path("results/rows_per_source.ndjson")
PICTURE = Path("docs/images/rows-per-source.png")
STYLES = {
    "own": ("own model of the source*", "#9a9a9a", ":"),
    "best pooled": ("best learner on all rows*", "#222222", "--"),
    "anymix, no rows pooled": ("anymix, rows stay at the sites", "#6aa5cf", "-"),
    "anymix": ("anymix", "#1b6ca8", "-"),
}


def measure(name: str, size: int, data: Path) -> list[dict[str, Any]]:
    """Fit all methods on at most `size` rows of each source, and compare them on test rows."""
    rows = LOADERS[name](data)
    training, test = (rows.take(part) for part in split(rows, SEED))
    judged = judge(few_of(training, size), test, SEED, lambda n, method: None, METHODS)
    records = []
    for method, (losses, _) in judged.items():
        difference, error = by_domain(losses - judged["joint"].losses, test)
        loss = by_domain(losses, test)[0]
        record = {"set": name, "rows": size, "method": method, "loss": loss}
        records.append(record | {"minus_joint": difference, "error": error})
    return records


def draw(records: Sequence[dict[str, Any]], path: Path = PICTURE) -> None:
    """Draw losses relative to the pooled model of the default learner, a panel for each set."""
    sets = list(dict.fromkeys(record["set"] for record in records))
    figure = Figure(figsize=(3.6 * len(sets), 3.5), layout="constrained")
    panels = figure.subplots(1, len(sets), squeeze=False)[0]
    for axes, name in zip(panels, sets, strict=True):
        _draw_set(axes, [record for record in records if record["set"] == name])
        axes.set(title=name, xlabel="training rows of each source, at most")
    panels[0].set_ylabel("mean test loss, % above joint*")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    figure.savefig(path, dpi=130, metadata={"Software": None})


def _draw_set(axes: Any, records: Sequence[dict[str, Any]]) -> None:
    joint = {record["rows"]: record["loss"] for record in records if record["method"] == "joint"}
    for method, (label, colour, line) in STYLES.items():
        some = [record for record in records if record["method"] == method]
        size = [record["rows"] for record in some]
        unit = [100 / joint[n] for n in size]
        y = [u * record["minus_joint"] for u, record in zip(unit, some, strict=True)]
        bar = [2 * u * record["error"] for u, record in zip(unit, some, strict=True)]
        bar = bar if method == "anymix" else None
        axes.errorbar(size, y, bar, label=label, color=colour, ls=line, marker="o", ms=4, lw=1.6)
    axes.axhline(0, color="#222222", lw=1)
    axes.set_xscale("log")
    sizes = sorted(joint)
    axes.set_xticks(sizes, [str(n) for n in sizes], fontsize=8)
    axes.minorticks_off()
    axes.spines[["top", "right"]].set_visible(False)


def main(
    quick: bool = False,
    data: Path = Path("../shared/data"),
    sets: Sequence[str] = SETS,
    sizes: Sequence[int] = SIZES,
    record: Path = RECORD,
) -> None:
    """Measure each set at each size, and print and record it."""
    for name in sets[:1] if quick else sets:
        for size in sizes[:1] if quick else sizes:
            for line in measure(name, size, data):
                print(
                    f"{name:10}{size:6}  {line['method']:24}{line['loss']:9.5f}"
                    f"{line['minus_joint']:+10.5f} ± {line['error']:.5f}",
                    flush=True,
                )
                if not quick:
                    with record.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES)
    parser.add_argument("--draw", action="store_true")
    given = parser.parse_args()
    if given.draw:
        draw([json.loads(line) for line in RECORD.read_text("utf-8").splitlines()])
    else:
        main(given.quick, given.data, given.sets, given.sizes)
