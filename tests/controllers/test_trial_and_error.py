"""The example that tries gaits: it leaves one that does not keep what the archive says of it."""

from pathlib import Path

import numpy as np

from snake_gym.envs import SnakeEnv

PLUGIN = str(Path(__file__).parents[2] / "examples" / "trial_and_error.py")


def test_a_gait_that_gets_nowhere_is_left_for_one_that_does() -> None:
    archive = [[0.0, 0.0, 0.0, 4.3, 0.52, 0.32], [0.53, 0.53, 0.53, 4.3, 0.52, 0.3]]
    gait = {"kind": "trial_and_error", "archive": archive, "trial_s": 4.0, "coupling": 0.47, "gain_ratio_s": 0.17}
    course = {"kind": "list", "targets": [[9.0, 0.0]]}
    env = SnakeEnv(
        plugin=PLUGIN, course=course, start={"random": False}, faults={"n_max": 0},
        action={"kind": "residual", "controller": gait},
    )  # fmt: skip
    env.reset(seed=0)
    ways = [env.step(np.zeros(env.action_space.shape))[4]["progress_m"] for _ in range(100)]
    assert abs(ways[19]) < 0.05 and ways[-1] > 3.0
