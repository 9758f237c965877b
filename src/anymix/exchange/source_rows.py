"""Read tables with the columns that sources expect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from anymix.exchange.manifest import Manifest
from anymix.exchange.read import ReceivedSource
from anymix.tables import TableColumns, read_rows


def table_columns(manifests: Sequence[Manifest], target: str | None = None) -> TableColumns:
    """Return the columns that compatible sources take.

    A cell may be empty where all of them allow it.
    """
    first = manifests[0]
    whole = first.classes is not None and isinstance(first.classes[0], int)
    names = tuple(feature.name for feature in first.features)
    columns = TableColumns(names, target, first.is_text, first.classes is None or whole, whole)
    coded = next((m.columns for m in manifests if m.columns is not None), None)
    if coded is None:
        return columns
    alike = zip(*(manifest.features for manifest in manifests), strict=True)
    gaps = tuple(all(feature.gaps for feature in each) for each in alike)
    return replace(columns, categories=tuple(c.categories for c in coded), gaps=gaps)


def read_site_rows(path: str, received: Sequence[ReceivedSource], target: str) -> tuple[Any, Any]:
    """Read features and targets of a site's table as the manifests of the sources describe it."""
    return read_rows(path, table_columns([one.manifest for one in received], target))
