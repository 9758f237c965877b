"""Learn, certify and compare on the tables that sites hand over: rows are never asked for twice."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.stats import norm

from anymix._arrays import FloatArray
from anymix.cli.console import Console
from anymix.cli.table_reader import Columns, read_rows
from anymix.core import get_loss, simplex, source_weights
from anymix.estimators import Comparison
from anymix.exchange import ReceivedSource, SiteTable, evaluate_site, join_sites, read_site
from anymix.sources import Tables


def add_held_out(parser: ArgumentParser) -> None:
    """Add the two ways of giving held-out rows."""
    parser.add_argument(
        "--held-out",
        nargs="+",
        metavar="NAME=TABLE",
        help="held-out rows of each source, on which nothing was trained",
    )
    parser.add_argument("--target", default="y", help="column of the tables with the label")
    parser.add_argument(
        "--from-sites",
        nargs="+",
        metavar="FILE",
        help="files of `anymix site evaluate`, in place of rows",
    )


def pairs(given: Sequence[str]) -> dict[str, str]:
    """Read NAME=TABLE.

    Examples
    --------
    >>> pairs(["north=north.csv"])
    {'north': 'north.csv'}
    """
    found = {}
    for entry in given:
        name, equals, path = entry.partition("=")
        if not equals or not path:
            raise ValueError(
                f"--held-out takes NAME=TABLE, such as north=north.csv; got {entry!r}."
            )
        if name in found:
            raise ValueError(f"--held-out names {name!r} twice; join its tables.")
        found[name] = path
    return found


def held_out_sites(
    args: Namespace, audited: Sequence[ReceivedSource], console: Console
) -> list[SiteTable]:
    """Return what each site says, from rows that are here or from the files of the sites."""
    if bool(args.held_out) == bool(args.from_sites):
        raise ValueError(
            "give held-out rows with --held-out, or the sites' files with --from-sites."
        )
    if args.from_sites:
        return [read_site(path) for path in args.from_sites]
    columns, given = Columns.of(audited[0].manifest, args.target), pairs(args.held_out)
    progress, sites = console.progress("asking the sources"), []
    for i, (name, path) in enumerate(given.items(), 1):
        sites.append(ask_sources(audited, name, path, read_rows(path, columns), min_rows=2))
        progress.update(i / len(given))
    progress.done()
    return sites


def ask_sources(
    audited: Sequence[ReceivedSource], name: str, path: str, rows: tuple[Any, Any], **options: Any
) -> SiteTable:
    """Evaluate a site's rows; what is wrong with them is said with the name of their table."""
    try:
        return evaluate_site(audited, name, *rows, **options)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def held_out_tables(args: Namespace, audited: Sequence[ReceivedSource], console: Console) -> Tables:
    """Join what the sites say."""
    return join_sites(held_out_sites(args, audited, console), audited)


def with_classes(tables: Tables, model: Any) -> Tables:
    """Tell the tables which classes there are, though they hold one column alone."""
    labels = [source.labels for source in model.sources] if tables.predictions.ndim == 3 else []
    return replace(tables, classes=np.unique(np.concatenate(labels)) if labels else None)


def weighed(tables: Tables, model: Any) -> Tables:
    """Put the responsibilities that the model uses in place of the densities."""
    return replace(tables, log_masses=model.weighing_.transform(tables.log_masses))


def compare_tables(tables: Tables, model: Any, confidence: float = 0.95) -> Comparison:
    """Judge each source alone, their average, the likeliest source, and the model.

    All of them are averages Σ_k w_k h_k, so what the sources say at the labels is enough.
    """
    names = [str(name) for name in model.source_names_]
    p, m = tables.log_masses.shape
    log_r = weighed(tables, model).log_masses
    methods: dict[str, FloatArray] = {
        name: np.repeat(np.eye(p)[:, k : k + 1], m, axis=1) for k, name in enumerate(names)
    }
    methods["uniform"] = np.full((p, m), 1.0 / p)
    methods["likeliest source"] = np.eye(p)[:, tables.log_masses.argmax(axis=0)]
    methods["anymix"] = source_weights(log_r, model.z_, model.eta)
    mixtures = np.concatenate([np.eye(p), [simplex.uniform(p)]])
    scores = [_by_domain(tables, model.loss, w) for w in methods.values()]
    mean = np.stack([L for L, _ in scores])
    error = np.sqrt(np.stack([se for _, se in scores]) ** 2 @ (mixtures**2).T)
    width, loss = float(norm.ppf(0.5 + confidence / 2)) * error, mean @ mixtures.T
    return Comparison(
        methods=tuple(methods),
        privileged=(False,) * len(methods),
        sources=tuple(names),
        mixtures=(*names, "all"),
        mixture_weights=mixtures,
        loss=loss,
        lower=loss - width,
        upper=loss + width,
        worst=mean.max(axis=1),
        worst_mixture=tuple(names[k] for k in mean.argmax(axis=1)),
        measure=str(model.loss),
    )


def _by_domain(tables: Tables, loss: str, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean loss of Σ_k w_k h_k on each source's rows, and its standard error."""
    h = tables.predictions.reshape(weights.shape)
    values = get_loss(loss).value(np.einsum("ki,ki->i", weights, h), np.asarray(tables.targets))
    parts = [values[tables.sample_domain == k] for k in range(len(weights))]
    mean = np.array([part.mean() for part in parts])
    return mean, np.array([part.std() / np.sqrt(part.size) for part in parts])
