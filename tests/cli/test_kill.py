"""kill -9 leaves outputs old or new: at random moments, and between the calls that write."""

import numpy as np

from benchmarks.kills import Scene, strike_after, strike_before


def test_nothing_is_half_written(tmp_path):
    scene, rng = Scene(tmp_path, n_rows=2000), np.random.default_rng(0)
    seen = set()
    for name, calls in (("fit", (3, 8, 10)), ("predict", (1, 4))):
        for call in calls:
            assert strike_before(getattr(scene, name), call)
            seen.add(scene.check())
            scene.restore()
    for arguments in (scene.fit, scene.predict):
        strike_after(arguments, float(rng.uniform(0.5, 1.5)))
        scene.check()
        scene.restore()
    assert len(seen) >= 2, "no strike came after the outputs had changed places"
