"""A model that counts how often it is written, to be sent elsewhere."""

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
