"""Tables that are handed in, in place of rows: what they must hold."""

from __future__ import annotations

from collections.abc import Sequence

from anymix.estimators._rows import check_sources
from anymix.sources import Source, Tables


def check_tables(tables: Tables, sources: Sequence[Source] | None) -> None:
    """Refuse what is no table of these sources at labelled rows."""
    if not sources:
        raise ValueError("fit_tables needs sources: use from_sources([...]).fit_tables(tables).")
    if not isinstance(tables, Tables):
        raise TypeError(f"fit_tables takes Tables, as evaluate gives; got {type(tables)}.")
    check_sources(sources)
    p = len(sources)
    if len(tables.log_masses) != p:
        raise ValueError(f"the tables are of {len(tables.log_masses)} sources, not of {p}.")
    if tables.targets is None or tables.sample_domain is None:
        raise ValueError(
            "z is learned from held-out rows: add their targets and domains to the tables with "
            "tables.labelled(y, sample_domain)."
        )
