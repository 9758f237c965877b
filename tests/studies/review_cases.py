"""Where the real data lies, and reviews made up to stand in for them."""

import os
from pathlib import Path

import numpy as np

from anymix.studies.loaders import Reviews

SHARED = Path(__file__).parents[3] / "shared"
DATA = Path(os.environ.get("ANYMIX_DATA", SHARED / "data"))


def made_up_reviews(n_per_domain=60, seed=0):
    """Four domains with words of their own and shared words of praise and blame."""
    rng = np.random.default_rng(seed)
    words = [f"thing{chr(97 + i)}" for i in range(12)]
    tone = {1.0: "awful bad", 2.0: "bad weak", 4.0: "good fine", 5.0: "good great"}
    texts, ratings, domain = [], [], []
    for k in range(4):
        share = np.full(12, 0.04)
        share[3 * k : 3 * k + 3] = (1 - 9 * 0.04) / 3
        for _ in range(n_per_domain):
            rating = float(rng.choice(list(tone)))
            said = [*rng.choice(words, size=rng.integers(3, 9), p=share), *tone[rating].split()]
            texts.append(" ".join(rng.permutation(said)))
            ratings.append(rating)
            domain.append(k)
    texts[1] = texts[0]
    return Reviews(texts, np.array(ratings), np.array(domain, dtype=np.intp))
