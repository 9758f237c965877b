"""Models that count how often they are written to be sent elsewhere, and that take their time."""

import time

WRITTEN = [0]


class Counted:
    """Answers as the model inside."""

    def __init__(self, model):
        self.model = model
        self.sources = model.sources_

    def __getstate__(self):
        WRITTEN[0] += 1
        return vars(self)

    def __setstate__(self, state):
        vars(self).update(state)

    def predict(self, X):
        return self.model.predict(X)


class Slow(Counted):
    """Gives others the time to kill the worker."""

    def predict(self, X):
        time.sleep(0.05)
        return self.model.predict(X)
