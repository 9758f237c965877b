"""The eight data sets of the evidence: rows as their publishers give them, cut from real domains.

Tables are DataFrames with words and gaps as they are, texts are lists of documents, and vectors
arrays.  Rows that are copies of each other have one group, which no split tears apart.  pandas
reads the tables.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.fetch import DataNotFoundError, Published, find, obtain
from experiments.loaders import REVIEW_DOMAINS, load_office, load_reviews, load_small_digits

Kind = Literal["table", "texts", "vectors"]

_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/heart-disease/"
HOSPITALS = ("cleveland", "hungarian", "switzerland", "va")
HEART = {
    name: Published(f"processed.{name}.data", f"{_UCI}processed.{name}.data") for name in HOSPITALS
}
HEART_COLUMNS = (
    *("age", "sex", "cp", "trestbps", "chol", "fbs", "restecg", "thalach", "exang"),
    *("oldpeak", "slope", "ca", "thal", "num"),
)
HEART_CODES = ("cp", "restecg", "slope", "thal")
HOUSING = Published(
    "housing.csv",
    "https://raw.githubusercontent.com/ageron/handson-ml2/master/datasets/housing/housing.csv",
)
# Of all numbers, sorted: the publishers' files and compact ones hold them in other orders.
HEART_SHA256 = "ce8d0389b9447c03741389392d3d077e1667ab82d948bee327d187ce65bb7d24"
HOUSING_SHA256 = "663e3b67d40c8f24007d418d3be28fca31a26253ed57af52364326bb23d9f4b2"
# Files that their publishers give to users with an account only, or nobody publishes any more.
CARS = Published(
    "uk_used_cars_9_makes.csv.gz",
    "https://www.kaggle.com/datasets/adityadesai13/used-car-dataset-ford-and-mercedes",
)
AIRLINE = Published(
    "airline_tweets.csv.gz", "https://www.kaggle.com/datasets/crowdflower/twitter-airline-sentiment"
)
SURF = {
    name: Published(
        f"{file}_SURF_L10.mat", "https://github.com/jindongwang/transferlearning/tree/master/data"
    )
    for name, file in {
        "amazon": "amazon",
        "caltech": "Caltech10",
        "dslr": "dslr",
        "webcam": "webcam",
    }.items()
}
# Drawn once, for time; the other sets are whole.  Of the digits 1000 of each domain are trained on.
N_CARS, N_HOUSING, N_DIGITS = 11_000, 8_000, 1_430


class EvidenceSet(NamedTuple):
    """Rows, targets, the domain of each row by name, and a number that copies of a row share."""

    name: str
    kind: Kind
    X: Any
    y: NDArray[Any]
    domain: NDArray[np.str_]
    groups: NDArray[np.intp]
    classification: bool

    def take(self, rows: NDArray[np.intp]) -> EvidenceSet:
        """Choose some rows.

        >>> whole = made("x", "texts", ["a", "b", "a"], np.arange(3.0), np.array(["k", "k", "l"]))
        >>> whole.take(np.array([2, 1])).X, whole.groups
        (['a', 'b'], array([0, 1, 0]))
        """
        if isinstance(self.X, list):
            X: Any = [self.X[i] for i in rows]
        else:
            X = self.X.iloc[rows] if hasattr(self.X, "iloc") else self.X[rows]
        return self._replace(
            X=X, y=self.y[rows], domain=self.domain[rows], groups=self.groups[rows]
        )

    @property
    def domains(self) -> list[str]:
        """The names of the domains, sorted."""
        return [str(name) for name in np.unique(self.domain)]


def made(
    name: str,
    kind: Kind,
    X: Any,
    y: NDArray[Any],
    domain: NDArray[Any],
    classification: bool = False,
) -> EvidenceSet:
    """Make a set of rows, with a group for each different row."""
    return EvidenceSet(name, kind, X, y, domain.astype(str), copies(X), classification)


def copies(X: Any) -> NDArray[np.intp]:
    """Number the different rows in the order in which they come; copies have the same number.

    >>> copies(np.array([[1, 2], [3, 4], [1, 2]]))
    array([0, 1, 0])
    """
    if hasattr(X, "columns"):
        keys: list[Any] = [str(row) for row in X.itertuples(index=False, name=None)]
    else:
        keys = X if isinstance(X, list) else [row.tobytes() for row in np.ascontiguousarray(X)]
    number: dict[Any, int] = {}
    return np.array([number.setdefault(key, len(number)) for key in keys], dtype=np.intp)


def need_pandas() -> Any:
    """Return pandas, or say how to get it."""
    try:
        return import_module("pandas")
    except ImportError:
        raise ImportError(
            "the tables of the evidence are read with pandas, which is not here: `pip install "
            "pandas`."
        ) from None


def _digest(table: Any) -> str:
    """Of the numbers of a table, its rows sorted."""
    values = np.ascontiguousarray(table.to_numpy(dtype=np.float64, na_value=np.nan)) + 0.0
    return hashlib.sha256(b"".join(sorted(row.tobytes() for row in values))).hexdigest()


def _as_published(table: Any, columns: Sequence[str], digest: str, name: str) -> None:
    if _digest(table[list(columns)]) != digest:
        raise DataNotFoundError(
            f"{name} does not hold the rows as published; delete the files and get them again."
        )


def load_heart(data: Path | None = None) -> EvidenceSet:
    """Heart disease at four hospitals, 920 patients (Janosi, Steinbrunn, Pfisterer, Detrano).

    To be told: is a vessel narrowed?  A cholesterol of 0 is one that was not measured, and four of
    the columns are codes, taken as words.
    """
    pandas = need_pandas()
    compact = find(data, ["heart_4_hospitals.csv"])
    if compact is not None:
        table = pandas.read_csv(compact)
    else:
        parts = {
            name: pandas.read_csv(
                obtain(data, HEART[name]), names=list(HEART_COLUMNS), na_values="?"
            )
            for name in HOSPITALS
        }
        table = pandas.concat(
            [part.assign(hospital=name) for name, part in parts.items()], ignore_index=True
        )
    _as_published(table, HEART_COLUMNS, HEART_SHA256, "heart disease")
    X = table[list(HEART_COLUMNS[:-1])].copy()
    X["chol"] = X["chol"].where(X["chol"] != 0)
    for name in HEART_CODES:
        X[name] = X[name].map(lambda code: f"{code:.0f}", na_action="ignore")
    y = (table["num"] > 0).to_numpy().astype(np.intp)
    return made("heart", "table", X, y, table["hospital"].to_numpy(), classification=True)


def load_housing(data: Path | None = None) -> EvidenceSet:
    """Log of the median house value in districts of California, four zones (census of 1990)."""
    pandas = need_pandas()
    path = find(data, ["california_housing_by_zone.csv.gz"]) or obtain(data, HOUSING)
    table = pandas.read_csv(path)
    numbers = [name for name in table.columns if name != "ocean_proximity"]
    _as_published(table, numbers, HOUSING_SHA256, "housing")
    table = table[table["ocean_proximity"] != "ISLAND"]
    table = _drawn(table, N_HOUSING)
    y = np.log(table.pop("median_house_value").to_numpy(dtype=np.float64))
    return made("housing", "table", table, y, table.pop("ocean_proximity").to_numpy())


def load_cars(data: Path | None = None) -> EvidenceSet:
    """Log of the price of used cars of nine makes; the model, which names the make, is left out."""
    table = _drawn(need_pandas().read_csv(obtain_copy(data, CARS)), N_CARS)
    y = np.log(table.pop("price").to_numpy(dtype=np.float64))
    domain = table.pop("make").to_numpy()
    return made("cars", "table", table.drop(columns="model"), y, domain)


def load_airline(data: Path | None = None) -> EvidenceSet:
    """Tweets to six airlines, three classes; each text once, and names are one word."""
    table = need_pandas().read_csv(obtain_copy(data, AIRLINE)).drop_duplicates("text")
    texts = [plain(text) for text in table["text"]]
    y = table["airline_sentiment"].to_numpy().astype(str)
    return made("airline", "texts", texts, y, table["airline"].to_numpy(), classification=True)


def plain(text: str) -> str:
    """Write one word for every name, as names tell the airline.

    >>> plain("@United thanks, @jane_d!")
    'atname thanks, atname!'
    """
    return re.sub(r"@\w+", "atname", text)


def load_review_ratings(data: Path | None = None) -> EvidenceSet:
    """Ratings of product reviews of four kinds (Blitzer, Dredze and Pereira 2007)."""
    texts, ratings, domain = load_reviews(data)
    return made("reviews", "texts", texts, ratings, np.array(REVIEW_DOMAINS)[domain])


def load_office_features(data: Path | None = None) -> EvidenceSet:
    """Office-31: 31 things in pictures of three kinds, as features of a network."""
    X, y, domain = load_office(data)
    names = np.array(("amazon", "webcam", "dslr"))[domain]
    return made("office", "vectors", X.astype(np.float64), y, names, classification=True)


def load_surf(data: Path | None = None) -> EvidenceSet:
    """Office-Caltech: ten things in pictures of four kinds, as counts of 800 visual words."""
    from scipy.io import loadmat

    found = {name: loadmat(obtain_copy(data, file)) for name, file in SURF.items()}
    X = np.vstack([part["fts"] for part in found.values()]).astype(np.float64)
    y = np.concatenate([part["labels"].ravel() for part in found.values()]).astype(np.intp)
    sizes = [part["labels"].size for part in found.values()]
    return made("surf", "vectors", X, y, np.repeat(list(found), sizes), classification=True)


def load_digit_pixels(data: Path | None = None) -> EvidenceSet:
    """Digits of SVHN, MNIST and USPS, 8 × 8 grey: for each domain the first training images."""
    found = load_small_digits(data)
    images = np.concatenate([part.x_train[:N_DIGITS] for part in found.values()])
    y = np.concatenate([part.y_train[:N_DIGITS] for part in found.values()])
    n = len(images)
    X = images.reshape(n, 8, 4, 8, 4).mean(axis=(2, 4)).reshape(n, 64) / 255
    domain = np.repeat(list(found), [len(part.y_train[:N_DIGITS]) for part in found.values()])
    return made("digits", "vectors", X, y, domain, classification=True)


def obtain_copy(data: Path | None, file: Published) -> Path:
    """Return a file that cannot be downloaded without an account from the folder of the data."""
    path = find(data, [file.name])
    if path is None:
        raise DataNotFoundError(
            f"{file.name} is not in the data folder; get the data from {file.address} and name the "
            "folder that holds the file with --data or in ANYMIX_DATA."
        )
    return path


def _drawn(table: Any, n: int) -> Any:
    """Draw n rows, always the same, and number them anew."""
    rows = np.sort(np.random.default_rng(0).permutation(len(table))[:n])
    return table.iloc[rows].reset_index(drop=True)


LOADERS: dict[str, Callable[[Path | None], EvidenceSet]] = {
    "heart": load_heart,
    "housing": load_housing,
    "cars": load_cars,
    "airline": load_airline,
    "reviews": load_review_ratings,
    "office": load_office_features,
    "surf": load_surf,
    "digits": load_digit_pixels,
}
