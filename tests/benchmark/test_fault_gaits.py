"""The oracle that changes its gait by the true faults."""

import math
from pathlib import Path

import numpy as np
import pytest

from snake_gym.benchmark.fault_gaits import FaultGaits
from snake_gym.benchmark.runner import play
from snake_gym.benchmark.scenarios import BenchmarkConfig, Variant, make_scenarios
from snake_gym.benchmark.variants import variant_entrant
from snake_gym.config import dump_yaml
from snake_gym.envs import make_waypoints
from snake_gym.physics.faults import FREE, LOCKED, WEAK
from snake_gym.robot.presets import PRESETS
from snake_gym.simulation.simulated_robot import SimulatedRobot

FAULTS = {"n_min": 1, "n_max": 1, "kinds": ["free"], "onset_min_s": 2.0, "onset_max_s": 4.0}


def test_the_innermost_joint_without_power_chooses_the_gait() -> None:
    robot = SimulatedRobot(PRESETS["resilient_servo"], 6)
    gaits = FaultGaits([{"kind": "cc"}] * 4, robot)
    kinds = np.zeros((2, 6, 9), np.int64)
    kinds[0, 1, 4] = FREE  # joint 5 of 9, the middle one
    kinds[0, 2, [0, 3]] = FREE, WEAK
    kinds[1, 3, 6] = FREE  # a second fault
    kinds[0, 4, 1] = FREE
    kinds[0, 5, 4] = LOCKED
    both = (robot.faults, robot.second_faults)
    for faults, kind in zip(both, kinds, strict=True):
        faults.kind[:], faults.onset_s[:] = kind, 0.0
    assert gaits.in_turn().tolist() == [0, 3, 2, 1, 0, 0]
    for faults in both:
        faults.onset_s[:] = 5.0
    assert gaits.in_turn().tolist() == [0] * 6, "none acts yet"


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    for name, amplitude in (("a", 0.5), ("b", 0.8)):
        dump_yaml({"controller": {"kind": "fault_aware", "amplitude_rad": amplitude}}, tmp_path / f"{name}.yaml")
    return [str(tmp_path / f"{name}.yaml") for name in ("a", "b")]


def test_gaits_that_are_all_the_same_are_that_gait_and_others_act_only_from_the_fault_on(files: list[str]) -> None:
    config = BenchmarkConfig(episodes=6, env={"time_limit_s": 12.0, "faults": FAULTS})
    scenarios = make_scenarios(config)
    found = [
        play(variant_entrant("row", variant, config), scenarios)
        for variant in (
            Variant(controller=files[0], reveal=True), Variant(controller=files[0], gaits=(files[0],) * 5),
            Variant(controller=files[0], gaits=(files[1],) * 5),
        )
    ]  # fmt: skip
    plain, same, other = (episodes.sample_progress_m for episodes in found)
    np.testing.assert_array_equal(plain, same)
    before = found[0].sample_time_s <= 2.0
    np.testing.assert_array_equal(plain[before], other[before])
    assert np.abs(plain[-1] - other[-1]).min() > 1e-3


@pytest.mark.parametrize("kind", ["offset", "slipped"])
def test_joints_that_stand_beside_their_place_are_sent_back_to_it(kind: str) -> None:
    """The mean angle of a joint in a gait without steering, once its horn has slipped all its way."""
    events = [{"joint": 4, "kind": kind, "offset_rad": 0.5}]
    gait = {"kind": "fault_aware", "amplitude_rad": 0.5, "heading_gain": 0.0, "frequency_rad_s": math.pi}
    means = []
    for undoes in (False, True):
        env = make_waypoints(1, {"faults": {"events": events}, "action": {"kind": "residual", "controller": gait}})
        if undoes:
            env.core.use_controller(FaultGaits([gait], env.core.robot))
        env.reset(seed=0)
        angles = []
        for _ in range(60):
            env.step(np.zeros((1, 9)))
            angles.append(env.core.robot.joint_angle()[0, 3])
        means.append(np.mean(angles[-30:]))  # three periods
    assert means == pytest.approx([0.5, 0.0], abs=0.05)
