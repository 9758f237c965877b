"""Write plain values as YAML that every parser reads the same way."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

PLAIN = re.compile(r"[A-Za-z][\w ./()-]*[\w)]")
# Words that YAML takes for something else than a text.
WORDS = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}


def to_yaml(value: Mapping[str, Any] | Sequence[Any], depth: int = 0) -> str:
    """Write mappings and sequences, one entry a line; texts that could be misread are quoted.

    Examples
    --------
    >>> print(to_yaml({"tags": ["onnx", "no"], "env": {"pip": "pip<=3"}, "rows": 3}), end="")
    tags:
    - onnx
    - "no"
    env:
      pip: "pip<=3"
    rows: 3
    """
    pad = "  " * depth
    if isinstance(value, Mapping):
        entries = [(f"{pad}{_scalar(key)}:", part) for key, part in value.items()]
    else:
        entries = [(f"{pad}-", part) for part in value]
    lines = []
    for head, part in entries:
        if isinstance(part, Mapping | list | tuple) and part:
            below = depth + (isinstance(part, Mapping) or head.endswith("-"))
            text = to_yaml(part, below)
            # A mapping in a list begins on the line of its dash.
            lines.append(f"{head} {text.lstrip()}" if head.endswith("-") else f"{head}\n{text}")
        else:
            lines.append(f"{head} {_scalar(part)}\n")
    return "".join(lines)


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        safe = PLAIN.fullmatch(value) and value.lower() not in WORDS
        return value if safe else json.dumps(value, ensure_ascii=False)
    return json.dumps(value, allow_nan=False)
