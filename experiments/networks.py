"""A convolutional network for small grey images, as a scikit-learn classifier; needs PyTorch.

Three convolutions, each with a maximum over 2 × 2, a batch normalisation and a rectifier, then
three fully connected layers.  PyTorch is imported when a network is fitted or asked, and what is
kept of a network is a dictionary of arrays.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Self
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from anymix.storage import replacing

SIDE = 32
CHANNELS = (24, 48, 96)
WIDTHS = (256, 128)
# The name PyTorch gives to the layer of the classes' scores.
LAST = 4 * len(CHANNELS) + 6
BATCH = 128

Bytes = NDArray[np.uint8]
Report = Callable[[int], None]


class ConvNet(TransformerMixin, ClassifierMixin, BaseEstimator):
    """A small convolutional network on grey images of bytes, (n, 32, 32) or (n, 1024).

    Trained by AdamW with one cycle of the learning rate.  `transform` gives the output of the
    second fully connected layer, on which the paper estimates its densities.

    Parameters
    ----------
    n_epochs : int, default=8
        Passes over the training images.
    learning_rate : float, default=3e-3
        The highest of the cycle.
    report : callable, default=None
        Told after each batch how many images were seen since it was told last.
    random_state : int, default=0
        First weights, order of the images, dropout.  On one machine the same number gives the
        same network.

    Attributes
    ----------
    classes_ : ndarray
    weights_ : dict of ndarray
        By the names that PyTorch gives them.

    Paper: Sec. 5.2.
    """

    def __init__(
        self,
        n_epochs: int = 8,
        *,
        learning_rate: float = 3e-3,
        report: Report | None = None,
        random_state: int = 0,
    ) -> None:
        self.n_epochs = n_epochs
        self.learning_rate = learning_rate
        self.report = report
        self.random_state = random_state

    def fit(self, X: Bytes, y: NDArray[np.intp]) -> Self:
        """Train from new weights."""
        torch = need_torch()
        X = _images(X)
        self.classes_, targets = np.unique(y, return_inverse=True)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.random_state)
            module = _module(torch, len(self.classes_))
            self._train(torch, module, X, torch.from_numpy(targets))
        self.weights_ = {name: value.numpy() for name, value in module.state_dict().items()}
        return self

    def _train(self, torch: Any, module: Any, X: Bytes, y: Any) -> None:
        """One cycle: the rate rises over the first third of all steps and then falls to zero."""
        n_steps = self.n_epochs * -(-len(y) // BATCH)
        optimiser = torch.optim.AdamW(module.parameters(), weight_decay=0.05)
        cycle = torch.optim.lr_scheduler.OneCycleLR(optimiser, self.learning_rate, n_steps)
        for _ in range(self.n_epochs):
            for rows in torch.randperm(len(y)).split(BATCH):
                loss = torch.nn.functional.cross_entropy(module(_tensor(torch, X, rows)), y[rows])
                optimiser.zero_grad(set_to_none=True)
                loss.backward()
                optimiser.step()
                cycle.step()
                if self.report is not None:
                    self.report(len(rows))

    def transform(self, X: Bytes) -> NDArray[np.float32]:
        """Output (n, 128) of the second fully connected layer."""
        check_is_fitted(self)
        torch, images = need_torch(), _images(X)
        module = _module(torch, len(self.classes_))
        module.load_state_dict({k: torch.from_numpy(v) for k, v in self.weights_.items()})
        # The last two layers, a rectifier and the scores of the classes, are `score_features`.
        part = module.eval()[:-2]
        with torch.inference_mode():
            blocks = torch.arange(len(images)).split(4 * BATCH)
            found = [part(_tensor(torch, images, rows)) for rows in blocks]
            return np.asarray(torch.cat(found).numpy())

    def score_features(self, features: NDArray[Any]) -> NDArray[np.float64]:
        """Probabilities softmax(W max(0, f) + b) for outputs f of the second layer."""
        check_is_fitted(self)
        weight, bias = (self.weights_[f"{LAST}.{name}"] for name in ("weight", "bias"))
        scores = np.maximum(features, 0) @ weight.T + bias
        return np.asarray(softmax(scores.astype(np.float64), axis=1))

    def predict_proba(self, X: Bytes) -> NDArray[np.float64]:
        """Probabilities (n, n_classes)."""
        return self.score_features(self.transform(X))

    def predict(self, X: Bytes) -> NDArray[Any]:
        """Return the likeliest class of each image."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    def fingerprint(self, X: Bytes, y: NDArray[np.intp]) -> str:
        """Sixteen letters that tell apart what `fit` would give: layers, parameters and rows."""
        digest = hashlib.sha256(repr((SIDE, CHANNELS, WIDTHS, BATCH, self)).encode())
        for array in (X, y):
            digest.update(array.tobytes())
        return digest.hexdigest()[:16]

    def save(self, path: Path) -> None:
        """Write the weights to a file of arrays, whole or not at all."""
        check_is_fitted(self)
        with replacing(path) as part:
            np.savez(part, classes=self.classes_, **self.weights_)

    def load(self, path: Path) -> Self:
        """Take the weights from a file that `save` wrote."""
        try:
            with np.load(path) as arrays:
                self.weights_ = {name: arrays[name] for name in arrays.files}
            self.classes_ = self.weights_.pop("classes")
        except (BadZipFile, EOFError, KeyError, ValueError):
            raise ValueError(f"{path} holds no network; delete it and run again.") from None
        return self


def need_torch() -> Any:
    """Import PyTorch.

    Raises
    ------
    ImportError
        With the remedy, where it is not installed.
    """
    try:
        return import_module("torch")
    except ImportError:
        raise ImportError(
            "The networks of this study need PyTorch, of which the CPU build is enough: "
            "`pip install torch --index-url https://download.pytorch.org/whl/cpu`."
        ) from None


def _images(X: Bytes) -> Bytes:
    """Rows or images as (n, 1, 32, 32)."""
    images = np.asarray(X, dtype=np.uint8)
    if images.shape[1:] not in ((SIDE, SIDE), (SIDE * SIDE,)):
        raise ValueError(
            f"images must be {SIDE} × {SIDE} or rows of as many pixels; got shape {images.shape}."
        )
    return images.reshape(-1, 1, SIDE, SIDE)


def _module(torch: Any, n_classes: int) -> Any:
    nn = torch.nn
    layers: list[Any] = []
    for before, after in zip((1, *CHANNELS), CHANNELS, strict=False):
        convolution = nn.Conv2d(before, after, 3, padding=1, bias=False)
        layers += [convolution, nn.MaxPool2d(2), nn.BatchNorm2d(after), nn.ReLU()]
    pixels = (SIDE // 2 ** len(CHANNELS)) ** 2
    layers += [nn.Flatten(), nn.Linear(CHANNELS[-1] * pixels, WIDTHS[0]), nn.ReLU()]
    layers += [nn.Dropout(0.3), nn.Linear(*WIDTHS), nn.ReLU(), nn.Linear(WIDTHS[1], n_classes)]
    # Channels side by side in memory: a processor trains half as fast again.
    return nn.Sequential(*layers).to(memory_format=torch.channels_last)


def _tensor(torch: Any, X: Bytes, rows: Any) -> Any:
    """Images of some rows as floats about zero."""
    chosen = torch.from_numpy(X[rows.numpy()]).float()
    return ((chosen - 127.5) / 64).contiguous(memory_format=torch.channels_last)
