"""Try an installed anymix outside of its sources: `python -I smoke.py`, as `make dist` does."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import anymix


def rows(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw n rows of each of two sources."""
    X = np.r_[rng.normal(-2, 1, (n, 1)), rng.normal(2, 1, (n, 1))]
    return X, np.where(np.abs(X[:, 0]) > 2, "far", "near"), np.repeat(["left", "right"], n)


def command(*words: str) -> str:
    """Run the installed command and return what it prints."""
    program = Path(sys.executable).parent / "anymix"
    done = subprocess.run([program, *words], capture_output=True, text=True, check=True)
    return done.stdout


def main() -> None:
    """Fit, predict, save and load; then let the command read the same folder."""
    assert Path(anymix.__file__).is_relative_to(sys.prefix), anymix.__file__
    assert command("--version") == f"anymix {anymix.__version__}\n"
    assert command("--help").startswith("usage: anymix")
    X, y, source = rows(100, np.random.default_rng(0))
    model = anymix.DistributionWeightedClassifier(random_state=0).fit(X, y, sample_domain=source)
    assert model.score(X, y) > 0.9
    with tempfile.TemporaryDirectory() as place:
        anymix.save(model, f"{place}/model")
        assert (anymix.load(f"{place}/model").predict(X) == model.predict(X)).all()
        assert "on every mixture of the 2 sources" in command("certify", f"{place}/model")
        command("report", f"{place}/model", "--out", f"{place}/report.html")
    sys.stdout.write(f"anymix {anymix.__version__} works on Python {sys.version.split()[0]}\n")


if __name__ == "__main__":
    main()
