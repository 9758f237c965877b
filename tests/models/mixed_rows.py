"""Three clinics with words, truths and gaps in their tables, and what is predicted there."""

import numpy as np
import pandas as pd

COLUMNS = ["age", "dose", "ward", "smokes"]
WARDS = np.array(["day", "night", "icu"], dtype=object)


def clinics(n=80, seed=0):
    """Return a frame, a number and a label for each row, and the clinic."""
    rng, parts = np.random.default_rng(seed), []
    for k in range(3):
        age, dose = rng.normal(40 + 12 * k, 7, n).round(1), rng.exponential(1 + k, n)
        ward = WARDS[rng.integers(k, k + 2, n) % 3]
        frame = pd.DataFrame(
            {"age": age, "dose": dose, "ward": ward, "smokes": (rng.random(n) < 0.4).astype(object)}
        )
        frame["score"] = np.sin(age / 9) + (ward == "day") + 0.1 * dose + 0.2 * rng.normal(size=n)
        frame["clinic"] = f"clinic {k}"
        for name in COLUMNS:
            frame.loc[rng.random(n) < 0.1, name] = None
        parts.append(frame)
    rows = pd.concat(parts, ignore_index=True)
    rows["dose"], rows["age"] = rows["dose"].astype(float), rows["age"].astype(float)
    labels = np.array(["low", "middle", "high"])[np.digitize(rows["score"], [0.0, 1.0])]
    return rows[COLUMNS], rows["score"].to_numpy(), labels, rows["clinic"].to_numpy()


def strangers(seed=9):
    """Return rows that were not learned from, some with a word that nobody knows."""
    frame = clinics(40, seed)[0]
    frame.loc[:7, "ward"] = "attic"
    return frame
