"""The study of fault-aware control, in short runs: what it measures, and that its conclusions can be seen at once."""

from __future__ import annotations

import argparse

import numpy as np
import pytest

from papers.faults import STUDY
from papers.faults.runs import (
    ADDED,
    PARTS,
    ROBOT,
    Contender,
    Detection,
    Result,
    against,
    changed,
    compete,
    compete_with_one_failed,
    mean_with_interval,
    play,
    tuned,
    watch,
)
from snake_gym.controllers.fault_detection import KIND_NAMES
from snake_gym.envs.vector_env import SnakeVectorEnv
from snake_gym.robot.presets import PRESETS

LOCKED = KIND_NAMES.index("locked")


def test_locked_joints_are_found_in_the_gait() -> None:
    seen = watch(ROBOT, tuned("cc"), "locked", 0.0, 8, time_limit_s=20.0)
    assert seen.delay_s.shape == (16,)
    assert seen.found == 1.0
    assert seen.delay_quantile_s(0.95) <= 1.5
    assert seen.named[LOCKED] > 0.9
    assert seen.named.sum() == pytest.approx(1.0)


def test_healthy_joints_raise_hardly_any_alarm() -> None:
    seen = watch(ROBOT, tuned("cc"), "healthy", 0.01, 16, time_limit_s=40.0)
    assert seen.flagged_share < 2e-3
    assert np.isnan(seen.found)
    assert seen.named[0] > 0.98


def test_a_missed_joint_counts_in_the_delays() -> None:
    seen = Detection("r", "weak", 0.0, np.array([0.5, 1.0, np.nan, np.nan]), np.zeros(4), 0.0, 0.0)
    assert seen.found == 0.5
    assert seen.delay_quantile_s(0.25) == 1.0
    assert seen.delay_quantile_s(0.95) == np.inf


def test_fault_aware_control_gets_further_with_locked_joints() -> None:
    results = [compete(Contender(kind, tuned(kind)), "locked", 48, time_limit_s=30) for kind in ("cc", "fault_aware")]
    difference = against(results, "fault_aware", "cc", "locked")
    assert difference.low > 0.5
    assert (results[0].n_faults == results[1].n_faults).all()
    assert set(results[0].n_faults) == {0, 1, 2, 3}


def test_reverse_driving_saves_a_robot_with_a_free_joint_in_front() -> None:
    whole = compete_with_one_failed(Contender("fault_aware", tuned("fault_aware")), "free", 9, 8)
    head_first = compete_with_one_failed(changed("without any reverse"), "free", 9, 8)
    assert whole > head_first + 3.0


def test_every_changed_controller_is_a_fault_aware_one() -> None:
    for name in (*PARTS, *ADDED):
        contender = changed(name)
        assert contender.settings["kind"] == "fault_aware"
        assert contender.settings != tuned("fault_aware")
        play(contender.settings, {"robot": ROBOT, "faults": {"n_max": 2}, "time_limit_s": 2}, 2)


@pytest.mark.parametrize("robot", PRESETS)
@pytest.mark.parametrize("env_id", ["SnakeGym/Waypoints-v0", "SnakeGym/ObstacleField-v0"])
def test_it_drives_every_robot_in_every_env(robot: str, env_id: str) -> None:
    spec = {"preset": robot, "integrator": "implicit", "sim_dt_s": None}  # the one that knows obstacles
    if robot == "resilient":  # its joints move as commanded, which obstacles do not allow
        spec["actuator"] = {"kind": "position", "kp": 60.0, "kd": 10.0, "torque_limit_nm": 8.0}
    action = {"kind": "residual", "controller": {"kind": "fault_aware"}}
    env = SnakeVectorEnv(env_id, 3, robot=spec, action=action, time_limit_s=2)
    env.reset(seed=0)
    for _ in range(4):
        observation, *_ = env.step(np.zeros((3, PRESETS[robot].n_joints), np.float32))
    assert np.isfinite(observation).all()
    env.close()


def test_an_interval_of_equal_differences_is_a_point() -> None:
    assert mean_with_interval(np.full(5, 2.0)) == (2.0, 2.0, 2.0)
    result = Result("a", "locked", np.arange(20.0), np.zeros(20))
    mean, low, high = mean_with_interval(result.progress_m)
    assert low < mean == 9.5 < high


@pytest.mark.slow
def test_the_quick_study_holds_together() -> None:
    parser = argparse.ArgumentParser()
    STUDY.add_options(parser)
    outcome = STUDY.run(parser.parse_args(["--quick"]), lambda share, doing: None)
    assert all(len(row) == len(table.columns) for table in outcome.tables for row in table.rows)
    verdicts = {claim.text: claim.verdict for claim in outcome.claims}
    assert verdicts["Fault-aware control gets further than tuned CC: locked"] == "reproduced"
