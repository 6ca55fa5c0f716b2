"""Envs of spatial robots through the shared core: checkers, saved states, faults, actions, grounds, pictures."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import mujoco
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from scipy.spatial.transform import Rotation

import snake_gym  # noqa: F401  registers
from snake_gym.config import build, load_yaml, to_dict
from snake_gym.envs import SnakeVectorEnv
from snake_gym.envs.recording import Recorder
from snake_gym.registry import find_task
from snake_gym.simulation.fault_kinds import FAULT_KINDS
from snake_gym.spatial.ground import field_heights
from snake_gym.spatial.terrain import CHANGE_S, KINDS, TerrainConfig
from snake_gym.spatial.waypoints import VARIED
from tests.envs.vector_checker import assert_same, check_vector_env
from tests.tasks_of_robots import SPATIAL_TASKS

SMALL: dict[str, Any] = {
    "robot": {"n_joints": 12, "link_mass_kg": 0.5, "head_mass_kg": 0.5, "control_dt_s": 0.2, "sim_dt_s": 0.005,
              "actuator": {"kp": 20.0, "kd": 0.1, "torque_limit_nm": 6.0, "speed_limit_rad_s": 6.0}},
    "faults": {"n_max": 3},
    "time_limit_s": 8.0,
}  # fmt: skip
UPRIGHT: dict[str, Any] = {"SnakeGym/Climb-v0": {"fall_m": 50.0}}
"""Settings by which no episode ends early, whatever the joints do."""
ACTIONS: dict[str, dict[str, Any]] = {
    "gait": {},
    "residual": {"action": {"kind": "residual"}},
    "joint_reference": {"action": {"kind": "joint_reference"}},
}
both = pytest.mark.parametrize("env_id", SPATIAL_TASKS)


def make(env_id: str, n_worlds: int = 3, **settings: Any) -> SnakeVectorEnv:
    return SnakeVectorEnv(env_id, n_worlds, "DISABLED", **{**SMALL, **settings})


@both
@pytest.mark.parametrize("kind", ACTIONS)
def test_gymnasiums_checker_passes(env_id: str, kind: str) -> None:
    check_env(gym.make(env_id, **SMALL, **ACTIONS[kind]).unwrapped, skip_render_check=True)


@both
def test_a_setting_named_at_its_default_changes_no_other(env_id: str) -> None:
    default = to_dict(build(find_task(env_id), {}))
    for name, group in default.items():
        for key in group if isinstance(group, dict) and name != "robot" else ():
            assert to_dict(build(find_task(env_id), {name: {key: group[key]}})) == default


@both
def test_the_vector_checker_passes(env_id: str) -> None:
    """It compares the vector env with single ones, its autoreset modes, seeds and saved states."""
    settings = {**SMALL, "kinds": ["rocks", "steps"]} if "Terrain" in env_id else SMALL
    check_vector_env(lambda n, mode: SnakeVectorEnv(env_id, n, mode, **settings, max_episode_steps=8), n_steps=12)


def test_a_policy_may_choose_its_gait() -> None:
    env = make(SPATIAL_TASKS[0], 5, faults={})
    env.reset(seed=0)
    action = np.full((5, env.single_action_space.shape[0]), -1.0)
    action[np.arange(5), np.arange(5)] = 1.0
    obs = env.step(action)[0]
    assert (obs[:, env.core.layout.fields["gait_mode"].columns] == np.eye(5)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_every_ground_is_laid_and_carries_the_robot(kind: str) -> None:
    env = make("SnakeGym/Terrain-v0", 2, kinds=[kind], faults={})
    obs, _ = env.reset(seed=4)
    seen = obs[:, env.core.layout.fields["ground"].columns]
    assert (seen == np.eye(len(KINDS))[KINDS.index(kind)]).all()
    data = [env.core.robot.own_model(world).hfield_data for world in range(2)]
    assert (np.ptp(data[0]) > 0.0) == (kind != "flat")
    assert (data[0] != data[1]).any() == (kind in ("grass", "rocks"))
    for _ in range(8):
        env.step(np.zeros((2, env.single_action_space.shape[0])))
    height = env.core.robot.state.centre_z
    assert (height > -0.25).all() and (height < 0.6).all()


@pytest.mark.parametrize("kind", ["steps", "gaps"])
def test_steps_and_gaps_lie_across_every_way_from_the_start(kind: str) -> None:
    config = TerrainConfig()
    heights = field_heights(config.field(kind, 0))
    n, cell = heights.shape[0], config.cell_m
    for bearing in np.linspace(0.0, 2.0 * np.pi, 24, endpoint=False):
        way = np.arange(0.0, 4.0, 0.5 * cell)
        at = np.rint(np.outer(way, [np.cos(bearing), np.sin(bearing)]) / cell + 0.5 * (n - 1)).astype(int)
        met = heights[at[:, 1], at[:, 0]]
        assert (met[way < 0.4] == 0.0).all()
        assert np.abs(np.diff(met)).max() >= 0.9 * (config.step_m if kind == "steps" else config.gap_m)


def test_stretches_of_all_kinds_follow_one_another_and_the_policy_sees_which_it_is_on() -> None:
    kinds = ["gaps", "flat", "steps"]
    env = make("SnakeGym/Terrain-v0", 6, kinds=kinds, stretch_m=1.0, start_radius_m=0.0, faults={})
    env.reset(seed=4)
    core, config = env.core, env.core.config
    orders = [tuple(KINDS[kind] for kind in order[:3]) for order in core.task.kind]
    assert len(set(orders)) > 2 and all(sorted(order) == sorted(kinds) for order in orders)
    for world, order in enumerate(orders):
        heights = config.heights([*order, *order, *order][:8], int(core.task.seed[world]))
        middle = heights.shape[0] // 2
        for i, kind in enumerate(order):
            met = heights[middle, middle + 10 * i + 1 : middle + 10 * (i + 1) - 1]
            assert {"gaps": met.min() < -0.1, "steps": met.max() > 0.1, "flat": not met.any()}[kind]
    core.robot.state.physics[:, 1] += 1.3
    obs = env.step(np.zeros((6, env.single_action_space.shape[0])))[0]
    seen = obs[:, core.layout.fields["ground"].columns]
    distance_m = np.hypot(*core.point_xy.T)
    assert (distance_m > 0.5).all()
    stands = [KINDS.index(order[int(r // 1.0)]) for order, r in zip(orders, distance_m, strict=True)]
    assert (seen == np.eye(len(KINDS))[stands]).all()


def test_way_lost_at_a_change_of_stretch_is_that_at_its_mean_speed_less_that_made_at_first() -> None:
    settings = {"kinds": ["flat"], "stretch_m": 2.0, "start_radius_m": 0.0, "faults": {}, "time_limit_s": 20.0}
    (env := make("SnakeGym/Terrain-v0", 3, **settings)).reset(seed=4)
    n, way, changes = round(CHANGE_S / env.core.spec.control_dt_s), [np.zeros(3)], [0, 0, 0]
    for step in range(1, 99):
        env.core.robot.state.physics[:, 1] += 0.04 if step < 60 else 0.01  # carried along x, then more slowly
        infos = env.step(np.zeros((3, env.single_action_space.shape[0])))[4]
        way.append(infos["progress_m"].copy())
        for world, xy in enumerate(env.core.point_xy):
            if changes[world] == 0 and np.hypot(*xy) >= 2.0:
                changes[world] = step
    assert (infos["n_changes"] == 1).all() and np.abs(infos["change_loss_m"]).min() > 0.05
    for world, change in enumerate(changes):
        made = [way[step][world] - way[change][world] for step in (change + n, -1)]
        lost = n * made[1] / (len(way) - 1 - change) - made[0]
        np.testing.assert_allclose(infos["change_loss_m"][world], lost, atol=1e-9)


@pytest.mark.slow
def test_courses_stay_on_the_field_and_episodes_end_beyond_it() -> None:
    field = {"kinds": ["flat"], "size_m": 7.0, "faults": {}}
    env = make("SnakeGym/Terrain-v0", 200, **field)
    wide = make("SnakeGym/Terrain-v0", 200, **{**field, "size_m": 60.0})
    for each in (env, wide):
        each.reset(seed=5)
    kept, free = (each.core.task.targets_xy for each in (env, wide))
    length = SMALL["robot"]["n_joints"] * 0.16 + 0.16
    assert np.abs(kept).max() <= 0.5 * (7.0 - length) < np.abs(free).max()
    legs = [np.hypot(*np.moveaxis(np.diff(course, axis=1), -1, 0)) for course in (kept, free)]
    np.testing.assert_allclose(*legs, rtol=1e-12)
    inside = (np.abs(free) <= 0.5 * (7.0 - length)).all(axis=(1, 2))
    assert (kept[inside] == free[inside]).all()

    env = make("SnakeGym/Terrain-v0", 2, **field)
    env.reset(seed=5)
    env.core.robot.state.physics[0, 1] += 3.6
    _, _, terminated, _, infos = env.step(np.zeros((2, env.single_action_space.shape[0])))
    assert terminated.tolist() == [True, False] and not infos["is_success"][0]


@both
def test_a_joint_breaks_and_is_mended_while_the_episode_runs(env_id: str) -> None:
    settings = {"faults": {"n_max": 0}, "start": {"amplitude_rad": 0.4}, **UPRIGHT.get(env_id, {})}
    env = make(env_id, 2, **settings, **ACTIONS["joint_reference"])
    env.reset(seed=3)
    robot, held = env.core.robot, []
    for kind, sizes in (
        ("locked", {}), ("locked", {}), ("weak", {"strength": 0.5}), ("weak", {"strength": 0.05}), ("free", {}),
    ):  # fmt: skip
        env.core.set_fault(0, 2, kind, **sizes)
        env.step(np.full((2, 12), 0.5))
        assert robot.acting_kind()[:, 1].tolist() == [FAULT_KINDS[kind].code, 0]
        if kind == "locked":
            held.append(robot.joint_angle()[0, 1])
        if kind == "weak":
            assert robot.own_model(0).actuator_forcerange[1, 1] == pytest.approx(6.0 * sizes["strength"])
    assert abs(held[0]) > 0.01 and held[1] == pytest.approx(held[0], abs=0.01)
    env.core.mend(0)
    env.step(np.zeros((2, 12)))
    assert not robot.acting_kind().any()


@pytest.mark.parametrize("kind", ["locked", "weak", "slow"])
def test_an_episode_knows_nothing_of_the_faults_before_it(kind: str) -> None:
    """The same seed gives the same bits in a used env as in a fresh one, with a joint that fails in both episodes."""
    faults = {"joints": [5], "kinds": [kind], "weak_strength": [0.05, 0.9], "slow_strength": [0.05, 0.9]}
    settings = {"faults": faults, "start": {"amplitude_rad": 0.4}, **ACTIONS["joint_reference"]}
    used, fresh = make(SPATIAL_TASKS[0], 1, **settings), make(SPATIAL_TASKS[0], 1, **settings)
    actions = np.random.default_rng(0).uniform(-1.0, 1.0, (6, 1, 12))
    used.reset(seed=1)
    for action in actions:
        used.step(action)
    used.reset(seed=2)
    fresh.reset(seed=2)
    for action in actions:
        assert_same(used.step(action), fresh.step(action), "a step of the second episode")


def test_difficulty_scales_the_heights() -> None:
    highest = []
    for share in (0.0, 0.5, 1.0):
        env = make("SnakeGym/Terrain-v0", 1, kinds=["rocks"], difficulty=share)
        env.reset(seed=2)
        highest.append(float(np.ptp(env.core.robot.own_model(0).hfield_data)))
    assert highest[0] == 0.0 and highest[1] == pytest.approx(0.5 * highest[2], rel=1e-5) and highest[2] > 0.05


@pytest.mark.slow
def test_a_searched_gait_makes_way_on_the_course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("optuna")
    out = tmp_path / "swl.yaml"
    words = ["--mode", "SWL", "--trials", "2", "--scenarios", "1", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", ["search_gait.py", *words])
    runpy.run_path("examples/search_gait.py", run_name="__main__")
    assert load_yaml(out)["found"]["progress_m"] > 0.2
    make("SnakeGym/Terrain-v0", action={"kind": "residual", "controller": {"file": str(out)}})


@pytest.mark.parametrize(("friction", "climbs"), [(1.0, True), (0.05, False)])
def test_a_spiral_climbs_a_pole_from_any_phase_and_falls_from_a_slippery_one(friction: float, climbs: bool) -> None:
    """The score is the height gained; a fall ends the episode and leaves none."""
    slip, none = {"friction_along": {"low": friction, "high": friction}}, {"n_max": 0}
    env = SnakeVectorEnv("SnakeGym/Climb-v0", 4, "DISABLED", faults=none, randomisation=slip, time_limit_s=12.0)
    env.reset(seed=0)
    start, done = env.core.robot.state.centre_z.copy(), np.zeros(4, bool)
    while not done.all():
        _, _, terminated, truncated, infos = env.step(np.zeros((4, env.single_action_space.shape[0])))
        done = terminated | truncated
    assert (infos["fell"] == (not climbs)).all() and (terminated == (not climbs)).all()
    if climbs:
        np.testing.assert_allclose(infos["progress_m"], env.core.robot.state.centre_z - start, atol=1e-9)
    assert (infos["progress_m"] > 0.5).all() if climbs else (infos["progress_m"] <= 0.0).all()


@both
def test_everything_varies_as_the_infos_say_and_goes_on_after_a_restore(env_id: str) -> None:
    varied = {name: {"low": 0.7, "high": 1.3} for name in VARIED if name != "joint_friction_nm"}
    settings: dict[str, Any] = {
        "randomisation": {**varied, "joint_friction_nm": {"low": 0.0, "high": 0.2}},
        "costs": {"joint_limit_share": 0.3, "torque_share": 0.5, "heat_share": 0.2},
        "faults": {"n_max": 3, "kinds": ["locked", "free", "weak", "slow"]},
        "observation": {"privileged": ["true_joint_angle", "true_velocity", "true_turning_rate", "fault_kind",
                                       "mean_angle_error", "position_error", "randomisation/mass"]},
        "action": {"kind": "joint_reference"}, **UPRIGHT.get(env_id, {}),
    }  # fmt: skip
    env, other = make(env_id, **settings), make(env_id, **settings)
    obs, infos = env.reset(seed=3)
    other.reset(seed=50)
    for name in VARIED:
        assert np.ptp(infos[f"randomisation/{name}"]) > 0.01, name
    assert infos["randomisation/mass"].shape == (3, 13)
    actions = np.random.default_rng(0).uniform(-1.0, 1.0, (12, 3, 12))
    for action in actions[:6]:
        obs, _, _, _, infos = env.step(action)
    assert infos["cost"].max() > 0.0 and infos["cost/torque"].max() > 0.0
    place = env.core.privileged.fields["true_turning_rate"]
    assert np.abs(obs["privileged"][:, place.columns]).max() > 1e-3
    other.set_state(env.get_state())
    for action in actions[6:]:
        assert_same(env.step(action), other.step(action), "after a restore")


@pytest.mark.parametrize("name", VARIED)
def test_a_range_of_one_value_makes_the_robot_that_has_it(name: str) -> None:
    """The varied robot moves as one with that value in its file, to the last bit (twice a number is not rounded)."""
    robot = SMALL["robot"]
    actuator = robot["actuator"]
    changed: dict[str, dict[str, Any]] = {
        "friction_along": {"friction": 0.4},
        "mass": {"link_mass_kg": 1.0, "head_mass_kg": 1.0},
        "servo_gain": {"actuator": {**actuator, "kp": 40.0}},
        "servo_damping": {"actuator": {**actuator, "kd": 0.2}},
        "torque_limit": {"actuator": {**actuator, "torque_limit_nm": 12.0}},
        "speed_limit": {"actuator": {**actuator, "speed_limit_rad_s": 12.0}},
        "supply_voltage": {"actuator": {**actuator, "torque_limit_nm": 12.0, "speed_limit_rad_s": 12.0}},
        "joint_friction_nm": {"joint_friction_nm": 2.1},
    }
    action = {"action": {"kind": "joint_reference"}}
    varied = make(SPATIAL_TASKS[0], **action, randomisation={name: {"low": 2.0, "high": 2.0}})
    made = make(SPATIAL_TASKS[0], **action, robot={**robot, **changed[name]})
    nominal = make(SPATIAL_TASKS[0], **action)
    for env in (varied, made, nominal):
        env.reset(seed=4)
        for wave in range(4):
            env.step(np.tile(np.sin(0.9 * np.arange(12) + 2.5 * wave), (3, 1)))
    ends = [env.core.robot.state.physics for env in (varied, made, nominal)]
    assert (ends[0] == ends[1]).all()
    assert np.abs(ends[0] - ends[2]).max() > 1e-4


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("rgb_array", r"\(360, 640, 3\) uint8 True|.*MUJOCO_GL.*"), ("human", ".*MUJOCO_GL.*rgb_array.*")],
)
def test_pictures_where_mujoco_can_draw_and_one_refusal_elsewhere(mode: str, expected: str) -> None:
    """In a process of its own, without a display: the graphics library is chosen when mujoco is imported."""
    program = f"""
import gymnasium as gym, numpy as np, snake_gym
from snake_gym.config import ConfigError
env = gym.make("SnakeGym/Terrain-v0", render_mode="{mode}", kinds=["rocks"], view="camera_left")
for _ in range(2):
    try:
        env.reset(seed=1)
        frame = env.render()
        print(frame.shape, frame.dtype, int(np.ptp(frame)) > 50)
    except ConfigError as error:
        print(error)
env.close()
"""
    none = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, env=none)
    assert done.returncode == 0, done.stderr
    (said,) = set(done.stdout.splitlines())
    assert re.fullmatch(expected, said) and (mode == "rgb_array" or not done.stderr)


def test_a_recording_shows_the_bodies_that_mujoco_has() -> None:
    env = make("SnakeGym/Terrain-v0", kinds=["rocks"])
    env.reset(seed=3)
    recorder = Recorder(env.core, [1, 2])
    rng = np.random.default_rng(0)
    for _ in range(6):
        env.step(rng.uniform(-1.0, 1.0, env.action_space.shape))
        recorder.take()
    robot: Any = env.core.robot
    for world, recording in zip((1, 2), recorder.recordings("p", "learned", 0), strict=True):
        model, body = robot.own_model(world), recording.body
        data = mujoco.MjData(model)
        mujoco.mj_setState(model, data, robot.state.physics[world], mujoco.mjtState.mjSTATE_FULLPHYSICS)
        mujoco.mj_forward(model, data)
        assert body is not None
        for k, name in enumerate([f"link_{i + 1}" for i in range(12)] + ["head"]):
            frame = data.body(name)  # a link's frame stands in the joint at its front, its x axis towards the tail
            ahead = -frame.xmat.reshape(3, 3)[:, 1 if name == "head" else 0]
            middle = frame.xpos + (0.08 if name == "head" else -0.08) * ahead
            np.testing.assert_allclose(body.link_xyz[-1, k], middle, atol=1e-9)
        turns = Rotation.from_quat(body.link_quaternion[-1], scalar_first=True).as_matrix()
        along = turns[:, :, 0] * body.half_length_m[:, None]
        np.testing.assert_allclose(body.link_xyz[-1, :-1] + along[:-1], body.link_xyz[-1, 1:] - along[1:], atol=1e-9)
        for k, axis in enumerate(body.joint_axis):
            hinge = data.xaxis[model.joint(f"joint_{k + 1}").id]
            assert abs(hinge @ turns[k, :, "xyz".index(axis)]) == pytest.approx(1.0, abs=1e-9)
        heights = body.ground.heights_m
        assert heights is not None and heights.max() > 0.01
