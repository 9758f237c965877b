"""Models that count how often they are written to be sent elsewhere, and that take their time."""

import time

WRITTEN = [0]


class Counted:
    """Answers as the model inside."""

    def __init__(self, model):
        self.model = model
        self.sources = getattr(model, "sources_", None)
        if hasattr(model, "classes_"):
            self.classes_ = model.classes_
            self.predict_proba = model.predict_proba

    def __getstate__(self):
        WRITTEN[0] += 1
        return vars(self)

    def __setstate__(self, state):
        vars(self).update(state)

    def predict(self, X):
        return self.model.predict(X)


class Slow(Counted):
    """Gives others the time to kill the worker."""

    def __getattribute__(self, name):
        if name.startswith("predict"):
            time.sleep(0.05)
        return super().__getattribute__(name)
