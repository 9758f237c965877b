"""The pictures of the page in docs/images, of the model in the README: run it to take them anew."""

import sys
import tempfile
from pathlib import Path

from PIL import Image
from sklearn.linear_model import LogisticRegression

from anymix import DistributionWeightedClassifier, compare
from anymix.cli.demo_command import SITES, views
from anymix.estimators import Joint, SingleSource, Uniform, summarise
from anymix.report import render
from tests.report.browser import Browser

FOLDER = Path(__file__).parents[2] / "docs" / "images"
# Width and height in pixels, and the colour scheme.
PICTURES = {
    "report.png": (1040, 1344, "light"),
    "report-dark.png": (1280, 1040, "dark"),
    "report-phone.png": (390, 1400, "light"),
}
# Few colours make small files, and the page has few.
COLOURS = 128


def record():
    """What the README's example knows of its model."""
    images, y, number = views()
    X, site, train = images.reshape(-1, 64), [list(SITES)[k] for k in number], slice(0, None, 2)
    test, linear = slice(1, None, 2), LogisticRegression(max_iter=1000)
    rivals = {name: SingleSource(linear, name) for name in SITES}
    rivals |= {"uniform": Uniform(linear), "all rows": Joint(linear)}
    rivals["anymix"] = DistributionWeightedClassifier(random_state=0)
    for rival in rivals.values():
        rival.fit(X[train], y[train], sample_domain=site[train])
    told = compare(rivals, X[test], y[test], site[test], measure="error_rate")
    return summarise(rivals["anymix"], told, name="Digits from three sites")


def main():
    """Take them all."""
    with tempfile.TemporaryDirectory() as folder:
        page, window = render(record(), Path(folder) / "page.html"), Browser(Path(folder))
        try:
            for name, (width, height, scheme) in PICTURES.items():
                window.page(page, width=width, scheme=scheme)
                window.screenshot(FOLDER / name, height)
                Image.open(FOLDER / name).quantize(COLOURS).save(FOLDER / name, optimize=True)
                sys.stdout.write(f"wrote {FOLDER / name}\n")
        finally:
            window.close()


if __name__ == "__main__":
    main()
