"""Models that count how often they are written, or take their time; and a worker that is killed."""

import os
import signal
import threading
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


def killing_one(client, work):
    """Do some work; when it has begun, kill one of the workers."""
    pids, ended, killed = client.run(os.getpid), threading.Event(), []

    def kill():
        while not ended.wait(0.02) and not killed:
            if client.run_on_scheduler(n_answered) > 4:
                killed.append(min(pids.values()))
                os.kill(killed[0], signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        return work(), killed
    finally:
        ended.set()
        thread.join()


def n_answered(dask_scheduler):
    return sum(task.state == "memory" for task in dask_scheduler.tasks.values())
