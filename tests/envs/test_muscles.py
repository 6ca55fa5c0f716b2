"""The muscle robot as an env: pressures as actions, single muscles that fail, what is felt, the tuned gait."""

from __future__ import annotations

import numpy as np

import snake_gym  # noqa: F401  (registers)
from papers.haghshenas2022.runs import CONTROLLER
from snake_gym.config import load_yaml, merge
from snake_gym.envs import SnakeEnv, SnakeVectorEnv
from snake_gym.robot.muscle_pair import muscle_force
from snake_gym.robot.presets import MUSCLE

PATH = "SnakeGym/PathFollow-v0"
SHIPPED = load_yaml("configs/env/muscle.yaml")
PAIR = MUSCLE.actuator.muscle


def test_pressures_are_commanded_and_a_burst_muscle_is_felt() -> None:
    burst = {"events": [{"joint": 2, "kind": "burst_right", "onset_s": 0.5}], "n_min": 0}
    env = SnakeEnv(PATH, config={**SHIPPED, "faults": burst})
    env.reset(seed=0)
    action = np.zeros((5, 2))
    action[:, 1], action[1, 0] = -0.9, 1.0
    for _ in range(30):
        obs, *_ = env.step(action.ravel())
    pressure, tension, longer = (
        env.core.layout.read(obs[None], f"muscle_{name}").reshape(5, 2) for name in ("pressure", "tension", "length")
    )
    expected = PAIR.max_pressure_pa * 0.5 * (1.0 + action)
    expected[1, 1] = 0.0
    np.testing.assert_allclose(pressure, expected, atol=1e-3 * PAIR.max_pressure_pa)
    np.testing.assert_allclose(tension, muscle_force(PAIR, PAIR.rest_length_m + longer, expected), atol=0.1)
    assert longer[1, 0] < -0.005 and tension[1, 1] == 0.0, "the left muscle alone bends the joint"


def test_the_published_gait_holds_the_published_speed_on_the_circle_and_the_tuned_one_keeps_the_schedule() -> None:
    for controller, low, high in ((CONTROLLER, 0.26, 0.29), ({"tuned": "speed"}, 0.2, 0.31)):
        whole = {"action": {"kind": "residual", "controller": controller}, "faults": {"n_max": 0}, "time_limit_s": 40.0}
        env = SnakeVectorEnv(PATH, 2, config=merge(SHIPPED, whole))
        env.reset(seed=1)
        speeds = []
        for _ in range(env.core.n_steps):
            *_, infos = env.step(np.zeros(env.action_space.shape))
            angle = env.core.robot.heading()
            speeds.append((env.core.robot.state.centre_vel.T * [np.cos(angle), np.sin(angle)]).sum(axis=0))
        settled = np.array(speeds)[len(speeds) // 2 :]
        assert settled.min() > low and settled.max() < high
        assert (infos["progress_m"] > 0.99 * 40.0 * 0.275).all()
