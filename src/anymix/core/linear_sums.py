"""Linear models of rows that stay in their parts; every step is one round of sums.

D columns, c outputs (1 for numbers and for two labels), w_i the weight of a row.  There is a
problem for each fold t that is left out and each strength μ, and one round serves all of them:

    F(θ, b) = Σ_{i not in t} w_i ℓ(s_i, y_i) + μ/2 ‖θ‖²,     s_i = θ x_i + b

    numbers      ℓ = (s − y)²/2                               ℓ'' = 1
    two labels   ℓ = log(1 + exp s) − y s                     ℓ'' = q (1 − q)
    labels       ℓ = log Σ_c exp s_c − s_y                    ℓ'' = diag q − q q'

    query        goes in                           comes out
    slopes       θ of each problem, c (D + 1)      Σ w ℓ, Σ w ℓ'' and gradient: 2 + c (D + 1)
    products     θ and a direction v               Hessian times v: c (D + 1)
    sketch       -                                 X'WX times r columns of signs, Σ w x, Σ w y, Σ w
    losses       θ of each problem                 Σ w ℓ and Σ w of fold t: 2

Newton's method solves each problem; its linear systems are solved by conjugate gradients.  They are
preconditioned by the r largest eigenvalues of X'WX, which one product with random columns shows:

    A ≈ U Λ U',    P⁻¹ = (λ_r + μ) U (Λ + μ)⁻¹ U' + I − U U'       (Frangella, Tropp and Udell 2023)
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, svd
from scipy.special import log_softmax

from anymix._arrays import FloatArray, mixed

Arrays = dict[str, NDArray[Any]]
# Rounds of one fit, the one for the sketch included; and the last gradient over the first.
MOST_ROUNDS, TOL = 60, 1e-11
# Columns of a sketch: of fewer columns X'WX itself is known after one round.
SKETCHED = 200
# A step of Newton's method is halved so often, and solved for no more exactly than this.
HALVINGS, FORCING = 30, 0.1
ARMIJO = 1e-4
# Eigenvalues of a sketch that count, relative to the largest.
RANK = 1e-12
# Products that the next systems of a problem are preconditioned by.
PAIRS = 40


@dataclass(frozen=True)
class LinearPart:
    """Rows of one part: what X multiplies, targets, weights, the fold and the source of each row.

    X (n, D) is an array, a sparse matrix or a `LinearOperator`; y (n,) are numbers, or places among
    `n_classes` labels.

    Examples
    --------
    >>> part = LinearPart(np.eye(2), np.array([1.0, 3.0]), np.ones(2), np.array([0, 1]))
    >>> part.slopes(np.zeros((1, 1, 3)), np.array([-1]))["gradient"]
    array([[[-1., -3., -4.]]])
    """

    X: Any
    y: NDArray[Any]
    weight: FloatArray
    fold: NDArray[np.intp]
    n_classes: int = 0

    @property
    def hot(self) -> FloatArray:
        """Targets, one-hot for labels: (n, c)."""
        if self.n_classes < 3:
            return np.asarray(self.y, dtype=float)[:, None]
        return np.asarray(np.eye(self.n_classes)[self.y])

    def weights_of(self, without: NDArray[np.intp]) -> FloatArray:
        """Weights of the rows in each problem, (b, n)."""
        return np.where(self.fold == np.asarray(without)[:, None], 0.0, self.weight)

    def answer(self, name: str, arrays: Arrays) -> Arrays:
        """Answer "sketch", "losses" or "step": slopes at "theta", products "along" directions."""
        if name == "sketch":
            return self.sketch()
        if name == "losses":
            return self.losses(arrays["theta"], arrays["fold"])
        found = dict.fromkeys(("value", "bend", "gradient", "product"), np.zeros(0))
        if "theta" in arrays:
            found |= self.slopes(arrays["theta"], arrays["without"])
        if "along" in arrays:
            at = arrays.get("at", arrays["along"])
            found["product"] = self.products(at, arrays["along"], arrays["of"])
        return found

    def scores(self, theta: FloatArray) -> FloatArray:
        """S = θ x + b for a stack of θ (b, c, D + 1): (b, n, c)."""
        b, c, e = theta.shape
        flat = np.ascontiguousarray(theta[:, :, :-1].reshape(b * c, e - 1).T)
        scores = np.asarray(self.X @ flat) + theta[:, :, -1].ravel()
        return np.ascontiguousarray(scores.reshape(-1, b, c).transpose(1, 0, 2))

    def _back(self, residual: FloatArray) -> FloatArray:
        """Σ_i r_i (x_i, 1) for residuals (b, n, c): (b, c, D + 1)."""
        b, n, c = residual.shape
        flat = np.ascontiguousarray(residual.transpose(1, 0, 2).reshape(n, b * c))
        sums = np.asarray(self.X.T @ flat).T.reshape(b, c, -1)
        return np.concatenate([sums, residual.sum(axis=1)[:, :, None]], axis=2)

    def slopes(self, theta: FloatArray, without: NDArray[np.intp]) -> Arrays:
        """Σ w ℓ and its gradient for each problem: (b,) and (b, c, D + 1)."""
        scores, w = self.scores(theta), self.weights_of(without)
        losses, slope, bend = self._losses(scores)
        return {
            "value": (w * losses).sum(axis=1),
            "bend": (w * bend).sum(axis=1),
            "gradient": self._back(w[:, :, None] * slope),
        }

    def products(self, theta: FloatArray, v: FloatArray, without: NDArray[np.intp]) -> FloatArray:
        """Hessian of Σ w ℓ at θ times v for each problem: (b, c, D + 1)."""
        along = self.scores(v)
        if self.n_classes:
            scores = self.scores(theta)
            if self.n_classes == 2:
                q = _sigmoid(scores)
                along *= q * (1.0 - q)
            else:
                q = np.exp(log_softmax(scores, axis=2))
                along = q * (along - (q * along).sum(axis=2, keepdims=True))
        return self._back(self.weights_of(without)[:, :, None] * along)

    def losses(self, theta: FloatArray, fold: NDArray[np.intp]) -> Arrays:
        """Σ w ℓ and Σ w of the rows in the fold of each problem, (b,)."""
        losses = self._losses(self.scores(theta))[0]
        inside = np.where(self.fold == np.asarray(fold)[:, None], self.weight, 0.0)
        return {"losses": (inside * losses).sum(axis=1), "weights": inside.sum(axis=1)}

    def sketch(self) -> Arrays:
        """X'WX times columns of signs (D, r), Σ w x, Σ w y or of each label, and Σ w."""
        image = self.weight[:, None] * np.asarray(self.X @ signs(self.X.shape[1]))
        return {
            "image": np.asarray(self.X.T @ image),
            "sums": np.asarray(self.X.T @ self.weight),
            "targets": self.weight @ self.hot,
            "weight": np.array(self.weight.sum()),
        }

    def _losses(self, scores: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """ℓ (b, n), its slope in the scores (b, n, c), and the mean of its c curvatures (b, n)."""
        if not self.n_classes:
            away = scores - self.hot
            return 0.5 * away[:, :, 0] ** 2, away, np.ones(scores.shape[:2])
        if self.n_classes == 2:
            s, q = scores[:, :, 0], _sigmoid(scores)
            bend = (q * (1.0 - q))[:, :, 0]
            return np.logaddexp(0.0, s) - self.y * s, q - self.hot, bend
        log_q = log_softmax(scores, axis=2)
        q, places = np.exp(log_q), np.asarray(self.y)[None, :, None]
        own = np.take_along_axis(log_q, places, axis=2)[:, :, 0]
        return -own, q - self.hot, (q * (1.0 - q)).mean(axis=2)


def _sigmoid(s: FloatArray) -> FloatArray:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * s)))


def signs(n_columns: int) -> FloatArray:
    """Random columns of 1 and −1, the same in all parts, or the unit matrix if it is as small.

    >>> signs(3).shape, signs(1000).shape
    ((3, 3), (1000, 200))
    """
    if n_columns <= SKETCHED:
        return np.eye(n_columns)
    words = -(-SKETCHED // 64)
    places = np.indices((n_columns, words)).reshape(2, -1).T.astype(np.uint64)
    bits = np.unpackbits(mixed(places).view(np.uint8)).reshape(n_columns, 64 * words)
    return np.asarray(2.0 * bits[:, :SKETCHED] - 1.0)


class Preconditioner:
    """The largest eigenvalues of the centred X'WX, by one product with random columns.

    Without them (r = 0) it does nothing.
    """

    def __init__(self, columns: FloatArray, image: FloatArray, center: FloatArray, weight: float):
        self.center, self.weight = center, weight
        if not columns.size:
            self.vectors, self.values = np.zeros((center.size, 0)), np.zeros(0)
            return
        # Xc'WXc = X'WX − Σw m m'; a little more is on the diagonal until the end.
        image = image - weight * np.outer(center, center @ columns)
        more = np.finfo(float).eps * np.linalg.norm(image) * np.sqrt(columns.shape[1])
        shifted = image + max(more, np.finfo(float).tiny) * columns
        # Columns that depend on each other, as leaves of a tree do, leave less than full rank.
        values, vectors = eigh((g := columns.T @ shifted) / 2 + g.T / 2)
        kept = values > RANK * max(float(values[-1]), np.finfo(float).tiny)
        root = shifted @ (vectors[:, kept] / np.sqrt(values[kept]))
        self.vectors, singular, _ = svd(root, full_matrices=False, check_finite=False)
        self.values = np.maximum(singular**2 - more, 0.0)

    def __call__(self, r: FloatArray, mu: float, bend: float) -> FloatArray:
        """P⁻¹ r for r (c, D + 1), where ℓ'' is about `bend` and the last entry is the intercept."""
        out = r.copy()
        if self.values.size:
            values = bend * self.values
            shares = (values[-1] + mu) / (values + mu) - 1.0
            out[:, :-1] += ((r[:, :-1] @ self.vectors) * shares) @ self.vectors.T
            out[:, :-1] /= values[-1] + mu
        else:
            out[:, :-1] /= mu
        out[:, -1] /= bend * self.weight
        return out


Steps = Generator[tuple[FloatArray, FloatArray | None], Any, None]


@dataclass
class LinearProblem:
    """One fold and one strength: its θ (c, D + 1) and the norm of its gradient over the first.

    θ is of centred columns, x − m, until `answer` takes it back.
    """

    without: int
    strength: float
    theta: FloatArray
    precondition: Preconditioner
    quadratic: bool
    residual: float = 1.0
    pairs: list[tuple[FloatArray, FloatArray]] = field(default_factory=list)

    def answer(self) -> FloatArray:
        """θ and b for columns as they are, (c, D + 1)."""
        return self.plain(self.theta)

    def plain(self, theta: FloatArray) -> FloatArray:
        """b of columns that are not centred: b − θ m."""
        out = theta.copy()
        out[:, -1] -= theta[:, :-1] @ self.precondition.center
        return out

    def _centred(self, gradient: FloatArray, theta: FloatArray) -> FloatArray:
        """The gradient in centred columns, with that of the penalty."""
        out = gradient.copy()
        out[:, :-1] -= np.outer(gradient[:, -1], self.precondition.center)
        out[:, :-1] += self.strength * theta[:, :-1]
        return out

    def _penalty(self, theta: FloatArray) -> float:
        return 0.5 * self.strength * float((theta[:, :-1] ** 2).sum())

    def steps(self) -> Steps:
        """Ask for a slope (θ, None) or a product (θ, v), one a round, until the gradient is 0."""
        value, bend, slope = yield self.plain(self.theta), None
        value += self._penalty(self.theta)
        slope = self._centred(slope, self.theta)
        first = float(np.linalg.norm(slope))
        while (size := float(np.linalg.norm(slope))) > TOL * first:
            self.residual = size / first
            step = yield from self._newton_step(slope, first, bend / self.precondition.weight)
            down, length = float((slope * step).sum()), 1.0
            for _ in range(HALVINGS):
                theta = self.theta + length * step
                new, bend, gradient = yield self.plain(theta), None
                new += self._penalty(theta)
                if self.quadratic or new <= value + ARMIJO * length * down + 1e-13 * abs(value):
                    break
                length /= 2
            else:
                return
            value, slope, last = new, self._centred(gradient, theta), size
            self.theta = theta
            # Rounding leaves no more to gain.
            if np.linalg.norm(slope) > 0.5 * last and last < 1e-6 * first:
                break
        self.residual = float(np.linalg.norm(slope)) / max(first, np.finfo(float).tiny)

    def _newton_step(
        self, slope: FloatArray, first: float, bend: float
    ) -> Generator[Any, Any, FloatArray]:
        """Solve H d = −slope by preconditioned conjugate gradients, as exactly as it is of use."""
        size = float(np.linalg.norm(slope))
        goal = 0.3 * TOL * first
        if not self.quadratic:
            goal = max(goal, size * min(FORCING, size / first))
        begin, d, r, pairs = self.theta, np.zeros_like(slope), -slope, []
        z = self._near(r, bend)
        v, rz = z, float((r * z).sum())
        while np.linalg.norm(r) > goal:
            product = yield self.plain(begin), self.plain(v)
            product = self._centred(product, v)
            pairs.append((v, product))
            step = rz / float((v * product).sum())
            d, r = d + step * v, r - step * product
            if self.quadratic:
                # Rounds may end here: what is known by now is of use.
                self.theta, self.residual = begin + d, float(np.linalg.norm(r)) / first
            z = self._near(r, bend)
            new = float((r * z).sum())
            v, rz = z + new / rz * v, new
        self.theta, self.pairs = begin, [*self.pairs, *pairs][-PAIRS:]
        return d

    def _near(self, r: FloatArray, bend: float) -> FloatArray:
        """About H⁻¹ r: the preconditioner, corrected by the products of earlier systems (BFGS)."""
        steps = []
        for v, product in reversed(self.pairs):
            share = float((v * r).sum() / (v * product).sum())
            steps.append(share)
            r = r - share * product
        z = self.precondition(r, self.strength, bend)
        for (v, product), share in zip(self.pairs, reversed(steps), strict=True):
            z = z + (share - float((product * z).sum() / (v * product).sum())) * v
        return z


def run_together(
    problems: Sequence[LinearProblem], ask: Callable[[Arrays], Arrays], rounds: int
) -> int:
    """Run the steps of all problems in shared rounds of `ask`; return the number of rounds.

    `ask` is given "theta" and "without" of those that need slopes, "at", "along" and "of" of those
    that need products, and returns the sums over all parts: "value", "bend", "gradient", "product".
    """
    running = [(problem, problem.steps()) for problem in problems]
    waiting = [(problem, steps, next(steps)) for problem, steps in running]
    for n in range(rounds):
        if not waiting:
            return n
        slopes = [one for one in waiting if one[2][1] is None]
        products = [one for one in waiting if one[2][1] is not None]
        given: Arrays = {}
        if slopes:
            given["theta"] = np.stack([asked[0] for _, _, asked in slopes])
            given["without"] = np.array([problem.without for problem, _, _ in slopes])
        if products:
            if not products[0][0].quadratic:
                given["at"] = np.stack([asked[0] for _, _, asked in products])
            given["along"] = np.array([asked[1] for _, _, asked in products])
            given["of"] = np.array([problem.without for problem, _, _ in products])
        found, kept = ask(given), []
        values = found["value"].tolist(), found["bend"].tolist(), found["gradient"]
        answers = list(zip(*values, strict=True))
        for (problem, steps, _), answer in zip(
            [*slopes, *products], [*answers, *found["product"]], strict=True
        ):
            try:
                kept.append((problem, steps, steps.send(answer)))
            except StopIteration:
                continue
        waiting = kept
    return rounds


@dataclass(frozen=True)
class LinearFit:
    """θ and b (K, S, c, D + 1) by fold and strength, rounds, and the largest gradient that is left.

    The gradient is relative to the first one.
    """

    theta: FloatArray
    n_rounds: int
    residual: float


def fit_linear(
    total: Callable[[str, Arrays], Arrays],
    n_classes: int,
    folds: Sequence[int],
    strengths: Sequence[float],
    max_rounds: int = MOST_ROUNDS,
) -> LinearFit:
    """Fit a linear model for each fold that is left out, −1 for none, and each strength.

    Parameters
    ----------
    total : callable
        total("sketch", {}) and total("step", arrays) give the sums over all parts; each call is one
        round.
    n_classes : int
        0 for numbers.
    folds, strengths : sequences
        t and μ.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 2))
    >>> part = LinearPart(X, X @ [1.0, 2.0] + 3.0, np.ones(40), np.arange(40) % 5)
    >>> fit_linear(part.answer, 0, [-1], [1e-6]).theta[0, 0].round(3)
    array([[1., 2., 3.]])
    """
    known = total("sketch", {})
    weight = float(known["weight"])
    condition = Preconditioner(
        signs(known["sums"].size), known["image"], known["sums"] / weight, weight
    )
    mean = known["targets"] / weight
    if n_classes == 2:
        mean = np.log(mean) - np.log1p(-mean)
    elif n_classes:
        mean = np.log(np.maximum(mean, np.finfo(float).tiny))
        mean -= mean.mean()
    start = np.column_stack([np.zeros((mean.size, known["sums"].size)), mean])
    problems = [
        LinearProblem(int(t), float(mu), start, condition, not n_classes)
        for t in folds
        for mu in strengths
    ]
    done = 1 + run_together(problems, lambda given: total("step", given), max_rounds - 1)
    theta = np.stack([problem.answer() for problem in problems])
    return LinearFit(
        theta.reshape(len(folds), len(strengths), *start.shape),
        done,
        max(problem.residual for problem in problems),
    )
