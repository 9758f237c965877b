"""The operators that a stranger's graph may have, and for each the rule that keeps rows apart.

A rule takes a node whose inputs are known (shapes.Value) and returns the shapes of its outputs, or
refuses.  Every shape is made of constants and the number of rows; nothing is random, nothing loops,
and no operator works along the axis of rows.  So a row's answer is a function of that row alone,
whatever stands beside it, and what it costs is known before it is run.
"""

from __future__ import annotations

from anymix.sandbox.arithmetic import ARITHMETIC
from anymix.sandbox.classical import CLASSICAL
from anymix.sandbox.layout import LAYOUT
from anymix.sandbox.node import Rule
from anymix.sandbox.texts import TEXTS, TOKENS

# The rule of each operator, by its domain.
RULES: dict[str, dict[str, Rule]] = {
    "": {**ARITHMETIC, **LAYOUT, **TEXTS},
    "ai.onnx.ml": CLASSICAL,
    "com.microsoft": TOKENS,
}
