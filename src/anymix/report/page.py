"""Assemble the page: one file without external resources."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any, TypeVar

from anymix.report import diagnostics, guarantees, verdict
from anymix.report.markup import esc, flat, unit_of
from anymix.report.record import ReportRecord, checked, corner_losses, corner_measure
from anymix.storage import replacing

T = TypeVar("T")

# The field that a part needs, and what draws it.
PARTS: tuple[tuple[str, Callable[[dict[str, Any]], str]], ...] = (
    ("traffic", guarantees.alarm),
    ("verdict", verdict.verdict),
    ("sources", guarantees.certificate),
    ("sources", guarantees.explorer),
    ("comparison", guarantees.comparison),
    ("traffic", diagnostics.traffic),
    ("sets", diagnostics.coverage),
    ("cross_loss", diagnostics.cross_table),
    ("influence", diagnostics.influence),
)
# What a person who decides need not read.
FOLDED: tuple[tuple[str, Callable[[dict[str, Any]], str]], ...] = (
    ("consulting", diagnostics.consulting),
    ("weights", diagnostics.weights),
    ("calibration", diagnostics.calibration),
    ("solution", diagnostics.convergence),
)


def embedded_json(value: Any) -> str:
    r"""Write JSON that cannot end its script element, whatever its strings contain."""
    text = json.dumps(value, allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def render_html(record: ReportRecord | dict[str, Any]) -> str:
    """Return the page of a record.

    Parameters
    ----------
    record : ReportRecord
        Only `name` and `sources` are needed; each further field adds a part to the page.

    Examples
    --------
    >>> page = render_html({"name": "Claims", "sources": ["north", "south"]})
    >>> "<h1>Claims</h1>" in page, " src=" in page, "@import" in page
    (True, False, False)
    """
    content = checked(record)
    methods = _draw(corner_losses, content)
    unit = unit_of(_draw(corner_measure, content))
    view = {"methods": methods, "unit": unit.short, "share": unit.share}
    view["decimals"] = unit.digits(flat(m["losses"] for m in methods))
    script = _asset("page.js")
    parts, folded = (
        "\n".join(_draw(part, content) for field, part in group if field in content)
        for group in (PARTS, FOLDED)
    )
    if folded:
        title = "For engineers: how the sources are weighed, calibration, solver"
        folded = f'<details id="engineers"><summary>{title}</summary>{folded}</details>'
    return Template(_asset("page.html")).substitute(
        title=esc(content["name"]),
        facts=_draw(guarantees.facts, content),
        body=f"{parts}\n{folded}",
        css=_asset("page.css"),
        script=script,
        # The page may run this one script and nothing else, so a hostile name stays a name.
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        data=embedded_json({"record": content, "view": view}),
    )


def _draw(part: Callable[[dict[str, Any]], T], content: dict[str, Any]) -> T:
    """Draw a part; records come from files too, and a broken one is named in a sentence."""
    try:
        return part(content)
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(
            f"the report's part {part.__name__!r} lacks {error} or has an invalid entry; "
            "see ReportRecord for what belongs there."
        ) from error


def render(record: ReportRecord | dict[str, Any], path: str | Path) -> Path:
    """Write the page to a file, whole or not at all, and return its path.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     render({"name": "Claims", "sources": ["north", "south"]}, f"{folder}/page.html").name
    'page.html'
    """
    text = render_html(record)
    path = Path(path)
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")
    return path


def _asset(name: str) -> str:
    return files("anymix.report").joinpath(name).read_text(encoding="utf-8")
