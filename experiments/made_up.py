"""Made-up reviews, images, features and tables: small stand-ins for the data in rehearsals."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from experiments.evidence_sets import EvidenceSet, made, need_pandas
from experiments.loaders import REVIEW_DOMAINS, Features, Images, Reviews

N_DOMAINS = 3
# Contrast and noise of each domain's images.
LIGHT = {"svhn": (2.0, 4.0), "mnist": (5.0, 0.5), "usps": (-3.0, 1.0)}
TONES = {1.0: "awful bad", 2.0: "bad weak", 4.0: "good fine", 5.0: "good great"}
# Words of a domain, and the share of each word of the others.
N_OWN, SHARE_OF_OTHERS = 3, 0.04


def made_up_features(n_classes: int = 4, n_per_cell: int = 20, seed: int = 0) -> Features:
    """Draw three domains, far apart; each turns the same classes another way.

    >>> made_up_features(n_per_cell=5).X.shape
    (60, 4)
    """
    rng = np.random.default_rng(seed)
    domain, y = (i.ravel() for i in np.indices((N_DOMAINS, n_classes * n_per_cell)))
    y = y % n_classes
    angle = 2 * np.pi * (y / n_classes + domain / N_DOMAINS)
    centre = np.column_stack([np.cos(angle), np.sin(angle), 3.0 * domain, np.ones(len(y))])
    X = (centre + rng.normal(0, 0.3, centre.shape)).astype(np.float32)
    return Features(X, y, domain)


def made_up_images(n_train: int = 80, n_test: int = 30, seed: int = 0) -> dict[str, Images]:
    """Draw ten classes as ten directions of a slope, with another contrast in each domain.

    >>> {name: images.x_test.shape for name, images in made_up_images(20, 10).items()}
    {'svhn': (10, 32, 32), 'mnist': (10, 32, 32), 'usps': (10, 32, 32)}
    """
    rng = np.random.default_rng(seed)
    grid = np.indices((32, 32)) - 15.5

    def draw(n: int, contrast: float, noise: float) -> tuple[NDArray[np.uint8], NDArray[np.intp]]:
        y = np.arange(n) % 10
        angle = 2 * np.pi * y / 10
        ramp = np.tensordot(np.column_stack([np.sin(angle), np.cos(angle)]), grid, axes=1)
        x = 128 + contrast * ramp + rng.normal(0, noise, ramp.shape)
        return x.clip(0, 255).astype(np.uint8), y

    return {name: Images(*draw(n_train, *how), *draw(n_test, *how)) for name, how in LIGHT.items()}


def made_up_reviews(n_per_domain: int = 60, seed: int = 0) -> Reviews:
    """Draw four domains with words of their own and shared words of praise and blame.

    The second review is a copy of the first, as some real ones are.

    >>> len(made_up_reviews(10).texts)
    40
    """
    rng = np.random.default_rng(seed)
    words = [f"thing{chr(97 + i)}" for i in range(4 * N_OWN)]
    texts, ratings = [], []
    for k in range(4):
        share = np.full(len(words), SHARE_OF_OTHERS)
        share[N_OWN * k : N_OWN * (k + 1)] = (1 - 3 * N_OWN * SHARE_OF_OTHERS) / N_OWN
        for _ in range(n_per_domain):
            rating = float(rng.choice(list(TONES)))
            said = [*rng.choice(words, size=rng.integers(3, 9), p=share), *TONES[rating].split()]
            texts.append(" ".join(rng.permutation(said)))
            ratings.append(rating)
    texts[1] = texts[0]
    return Reviews(texts, np.array(ratings), np.repeat(np.arange(4), n_per_domain))


def made_up_evidence(n_per_domain: int = 40, seed: int = 0) -> list[EvidenceSet]:
    """Draw a table with words and gaps, texts and vectors, of two domains each.

    >>> [rows.domains for rows in made_up_evidence(10)]
    [['cleveland', 'va'], ['books', 'dvd'], ['amazon', 'webcam']]
    """
    return [_table(n_per_domain, seed), _texts(n_per_domain, seed), _vectors(n_per_domain, seed)]


def _table(n: int, seed: int) -> EvidenceSet:
    rng = np.random.default_rng(seed)
    domain = np.repeat(["cleveland", "va"], n)
    age, at_va = rng.normal(50, 9, 2 * n).round(3), domain == "va"
    pain = np.where(rng.random(2 * n) < np.where(at_va, 0.8, 0.3), "typical", "none")
    ill = (age + 8 * (pain == "typical") * np.where(at_va, -1, 1) > 50).astype(np.intp)
    gaps = rng.random(2 * n) < 0.2
    X = need_pandas().DataFrame({"age": age, "chol": np.where(gaps, np.nan, age + 150), "cp": pain})
    return made("heart", "table", X, ill, domain, classification=True)


def _texts(n: int, seed: int) -> EvidenceSet:
    texts, ratings, domain = made_up_reviews(n, seed)
    rows = [i for i, k in enumerate(domain) if REVIEW_DOMAINS[k] in ("books", "dvd")]
    names = np.array(REVIEW_DOMAINS)[domain[rows]]
    return made("reviews", "texts", [texts[i] for i in rows], ratings[rows], names)


def _vectors(n: int, seed: int) -> EvidenceSet:
    X, y, domain = made_up_features(2, n // 2, seed)
    rows = np.flatnonzero(domain < 2)
    names = np.array(["amazon", "webcam"])[domain[rows]]
    return made("office", "vectors", X[rows], y[rows], names, classification=True)
