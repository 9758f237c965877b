"""How long `import anymix` takes, and how long its rooms take beside the libraries that they need.

    python -m benchmarks.imports [--quick]

Python's own clock of imports (-X importtime), the best of several fresh processes.  "own" is what
modules of anymix take by themselves; "all" includes everything that is loaded on the way.
"""

import subprocess
import sys

# What a front door may cost, in seconds of its own.
LIMIT = 0.15
MODULES = ("anymix", "anymix.core", "anymix.densities", "anymix.estimators", "anymix.cli", "json")


def times(module: str) -> tuple[float, float]:
    """Seconds of the modules of anymix (or of the one asked for) alone, and of all."""
    command = [sys.executable, "-X", "importtime", "-c", f"import {module}"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    rows = [line.removeprefix("import time:").split("|") for line in said.splitlines()[1:]]
    begun = {name.strip(): (int(self), int(total)) for self, total, name in rows}
    root = module.split(".")[0]
    own = sum(self for name, (self, _) in begun.items() if name.split(".")[0] == root)
    # A submodule is loaded beside its package, which is not inside its time.
    packages = [".".join(module.split(".")[: n + 1]) for n in range(module.count(".") + 1)]
    return own / 1e6, sum(begun[name][1] for name in packages) / 1e6


def main(quick: bool = False) -> dict[str, tuple[float, float]]:
    table = {}
    for module in MODULES:
        runs = [times(module) for _ in range(1 if quick else 7)]
        table[module] = min(own for own, _ in runs), min(total for _, total in runs)
        own, total = table[module]
        print(f"import {module:18} own {own:.4f} s, all {total:.4f} s")
    fast = table["anymix"][1] <= LIMIT
    print(f"`import anymix` within {LIMIT} s: {'yes' if fast else 'NO'}")
    return table


if __name__ == "__main__":
    main("--quick" in sys.argv)
