"""Log-responsibilities r_k = D_k / Σ_j D_j and their calibration."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from anymix._arrays import FloatArray, shares
from anymix.core.records import Record

# Far beyond what is ever learned, and far below where numbers overflow.
SHARPEST, LARGEST = 1e3, 1e200


@dataclass(frozen=True, eq=False)
class Calibration(Record):
    """Calibrated responsibilities: log q_k = s · (max(log r_k, floor) / T_k + b_k), normalised.

    Attributes
    ----------
    temperature, offset : array (p,)
        T_k > 0 and b_k, of each source.
    floor : float
        Log-responsibilities below it, −inf included, count as this value.
    sharpness : float
        s > 0; above 1 the likeliest source gets more than calibration alone would give it.
    """

    temperature: FloatArray
    offset: FloatArray
    floor: float
    sharpness: float = 1.0

    def check(self, p: int | None = None) -> None:
        """Raise a ValueError for numbers that cannot be a calibration."""
        p = self.temperature.size if p is None else p
        parts = (self.temperature, self.offset, np.array([self.floor, self.sharpness]))
        if self.temperature.shape != (p,) or self.offset.shape != (p,):
            raise ValueError(f"a calibration of {p} sources has {p} temperatures and offsets.")
        if not all(np.isfinite(part).all() for part in parts):
            raise ValueError("a calibration has a number that is not finite.")
        if not (self.temperature > 0).all() or not self.sharpness > 0:
            raise ValueError("a calibration has a temperature or sharpness that is not positive.")
        if self.floor > 0 or self.sharpness > SHARPEST:
            raise ValueError(
                f"a calibration has a floor above 0 or a sharpness above {SHARPEST:g}."
            )
        with np.errstate(over="ignore"):
            largest = self.sharpness * (np.abs(self.offset) - self.floor / self.temperature)
        if not (largest < LARGEST).all():
            raise ValueError("a calibration has a temperature or an offset that is out of bounds.")


def log_responsibilities(
    log_masses: FloatArray, calibration: Calibration | None = None
) -> FloatArray:
    """log r_k = log D_k − logsumexp_j log D_j or, calibrated, log q_k: (p, n), see `Calibration`.

    At a point with density 0 under every source, all sources have equal responsibility.
    """
    log_masses = np.where(np.isneginf(log_masses).all(axis=0), 0.0, log_masses)
    log_r = shares(log_masses)[0]
    if calibration is None:
        return log_r
    scale = calibration.sharpness / calibration.temperature
    offset = calibration.sharpness * calibration.offset
    scores = np.maximum(log_r, calibration.floor) * scale[:, None] + offset[:, None]
    return shares(scores)[0]
