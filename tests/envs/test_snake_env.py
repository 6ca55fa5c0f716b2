"""What the envs promise of their episodes."""

from typing import Any

import numpy as np
import pytest

from snake_gym.envs import SnakeEnv
from snake_gym.tasks.waypoints import PAPER_TARGETS

WEIGHTS = {"progress": 3.0, "effort": -0.1, "energy": -0.2}


@pytest.mark.parametrize(
    ("env_id", "reached", "settings"),
    [
        ("SnakeGym/Waypoints-v0", "target", {"reward": {**WEIGHTS, "target": 1.5}, "course": {"radius_m": 1.5}}),
        (
            "SnakeGym/ObstacleField-v0", "goal",
            {"reward": {**WEIGHTS, "goal": 1.5, "contact": -0.01}, "goal": {"radius_m": 4.1},
             "action": {"kind": "residual", "scale_rad": 0.1}},
        ),
    ],
)  # fmt: skip
def test_reward_is_the_weighted_sum_of_its_terms(env_id: str, reached: str, settings: dict[str, Any]) -> None:
    env = SnakeEnv(env_id, **settings)
    env.reset(seed=2)
    for _ in range(60):
        action = env.action_space.sample()
        _, reward, _, _, info = env.step(action)
        terms = {name: info["reward_raw/" + name] for name in settings["reward"]}
        assert reward == pytest.approx(sum(settings["reward"][name] * value for name, value in terms.items()))
        assert reward == pytest.approx(sum(info["reward/" + name] for name in terms))
        assert terms["effort"] == pytest.approx(float(np.square(action.astype(np.float64)).sum()))
        if terms[reached] == 1.0:
            return
    raise AssertionError("nothing was reached")


def test_paper_course_terminates_when_complete_and_starts_as_published() -> None:
    env = SnakeEnv(course={"kind": "paper", "radius_m": 20.0}, start={"random": False}, robot="resilient")
    obs, _ = env.reset(seed=0)
    wave = np.radians(20.0) * np.sin(np.radians(30.0) * np.arange(9))
    np.testing.assert_allclose(obs[:9], wave, atol=1e-6)
    np.testing.assert_allclose(env.core.robot.state.centre_xy, 0.0, atol=1e-12)
    assert env.core.robot.state.link_angle[0, -1] == 0.0
    for i in range(len(PAPER_TARGETS)):
        _, _, terminated, truncated, info = env.step(np.zeros(9))
        assert (terminated, truncated) == (i == len(PAPER_TARGETS) - 1, False)
    assert info["is_success"]
    progress = info["progress_m"]
    _, reward, terminated, _, info = env.step(np.ones(9))
    assert (reward, terminated, info["progress_m"]) == (0.0, True, progress)


@pytest.mark.parametrize("name", ["link_angle", "link_rate", "centre_xy", "centre_vel"])
def test_every_part_of_a_motion_has_to_stay_finite(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    env = SnakeEnv()
    env.reset(seed=0)

    def lose(*_: object, **__: object) -> None:
        getattr(env.core.robot.state, name)[0, 1] = np.nan

    monkeypatch.setattr(env.core.robot, "step", lose)
    with pytest.raises(FloatingPointError, match="the motion of world 0 is no longer finite after step 1"):
        env.step(np.zeros(9))


@pytest.mark.parametrize("kind", ["torque", "acceleration"])
def test_torques_move_joints_as_the_closed_form_says(kind: str) -> None:
    """Two equal links without friction, straight: a torque bends them by 2 torque / J, however they are built."""
    actuator = {"kind": kind, "kp": 0.0, "kd": 0.0}
    friction = {"tangential_ns_m": 0.0, "normal_ns_m": 0.0}
    robot = {"preset": "resilient", "n_links": 2, "link_inertia_kgm2": 0.02, "actuator": actuator, "friction": friction}
    action = {"kind": "torque", "torque_max": 0.4}
    env = SnakeEnv(config={"robot": robot, "action": action, "start": {"amplitude_rad": 0.0}, "faults": {"n_max": 0}})
    env.reset(seed=0)
    env.step(np.array([0.5]))
    acceleration = 0.2 if kind == "acceleration" else 2.0 * 0.2 / 0.02
    time_s = env.core.spec.control_dt_s
    assert env.core.robot.joint_rate()[0, 0] == pytest.approx(acceleration * time_s, rel=1e-3)
    assert env.core.robot.joint_angle()[0, 0] == pytest.approx(0.5 * acceleration * time_s**2, rel=0.1)
