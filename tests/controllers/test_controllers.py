"""Building controllers from settings and files, and what all of them have in common."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snake_gym.config import ConfigError, dump_yaml
from snake_gym.controllers import CONTROLLERS, make_controller, resolve_controller
from snake_gym.controllers.base import search_ranges
from snake_gym.robot.chain import ChainSpec
from snake_gym.robot.spec import ActuatorSpec
from snake_gym.spatial.spec import load_spatial_robot
from tests.controllers.worlds import N_JOINTS, SPEC, random_world, take_world

KINDS = [kind for kind, controller in CONTROLLERS.items() if not getattr(controller, "spatial", False)]
SETTINGS: list[dict[str, Any]] = [{"kind": kind} for kind in KINDS]


@pytest.mark.parametrize("kind", KINDS)
def test_defaults_build_and_command(kind: str) -> None:
    controller = make_controller({"kind": kind}, SPEC)
    world = random_world(6)
    state = controller.initial_state(6)
    for _ in range(50):
        phase = controller.phase(state)
        assert phase.shape == (6,)
        assert ((phase >= 0.0) & (phase < 2.0 * np.pi)).all()
        command = controller.command(*world, state, SPEC.control_dt_s)
        assert command.shape == (6, N_JOINTS)
        assert np.abs(command).max() <= SPEC.joint_limit_rad
    assert controller.n_joints == N_JOINTS
    assert all(values.shape[0] == 6 and values.dtype == np.float64 for values in state.values())


@pytest.mark.parametrize("settings", SETTINGS)
def test_the_state_is_all_there_is(settings: dict[str, Any]) -> None:
    controller = make_controller(settings, SPEC)
    world = random_world(4)
    state = controller.initial_state(4)
    for _ in range(5):
        controller.command(*world, state, 0.2)
    saved = {name: values.copy() for name, values in state.items()}
    expected = [controller.command(*world, state, 0.2) for _ in range(5)]
    again = pickle.loads(pickle.dumps(controller))
    np.testing.assert_array_equal([again.command(*world, saved, 0.2) for _ in range(5)], expected)


@pytest.mark.parametrize("settings", [*SETTINGS, {"kind": "cpg", "weights": "gaussian"}])
def test_a_world_in_a_batch_equals_that_world_alone(settings: dict[str, Any]) -> None:
    controller = make_controller(settings, SPEC)
    state = controller.initial_state(5)
    alone = [controller.initial_state(1) for _ in range(5)]
    for step in range(12):
        world = random_world(5, step)
        kept = [values.copy() for part in world for values in part if values is not None]
        batch = controller.command(*world, state, 0.2)
        for w, own in enumerate(alone):
            np.testing.assert_array_equal(controller.command(*take_world(*world, w), own, 0.2)[0], batch[w])
        for before, after in zip(kept, [v for part in world for v in part if v is not None], strict=True):
            np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("kind", KINDS)
def test_each_world_may_have_its_own_parameters(kind: str) -> None:
    plain = make_controller({"kind": kind}, SPEC)
    numbers = {name: plain.parameter[name] for name in search_ranges(plain.config_type) if name in plain.parameter}
    per_world = {name: np.array([value, 0.9 * value]) for name, value in numbers.items()}
    population = make_controller({"kind": kind}, SPEC, per_world)
    other = type(plain)(replace(plain.config, **{name: 0.9 * float(value) for name, value in numbers.items()}), SPEC)
    state, alone = population.initial_state(2), [plain.initial_state(1), other.initial_state(1)]
    for step in range(20):
        world = random_world(2, step)
        commands = population.command(*world, state, 0.2)
        for w, controller in enumerate((plain, other)):
            expected = controller.command(*take_world(*world, w), alone[w], 0.2)[0]
            np.testing.assert_allclose(commands[w], expected, atol=1e-12)


def test_settings_are_filled_in_by_defaults_or_a_tuned_file(tmp_path: Path) -> None:
    resolved = resolve_controller({"kind": "sjc", "amplitude_rad": 5e-1})
    assert (resolved["amplitude_rad"], resolved["heading_gain"]) == (0.5, 1.0)
    assert resolve_controller("sjc") == resolve_controller({"kind": "sjc"})
    path = tmp_path / "cc.yaml"
    dump_yaml({"controller": {"kind": "cc", "amplitude_rad": 0.4, "coupling": 0.3}, "tuning": {"seed": 1}}, path)
    resolved = resolve_controller({"file": str(path), "coupling": 0.1})
    assert (resolved["kind"], resolved["amplitude_rad"], resolved["coupling"]) == ("cc", 0.4, 0.1)
    assert resolve_controller(str(path))["coupling"] == 0.3


PLANAR, SPATIAL = SPEC, load_spatial_robot("configs/robot/spatial/snake_robot_iii.yaml")
LIMP = replace(PLANAR, actuator=ActuatorSpec("torque", kp=0.0, kd=0.0))
CC_FILE = "configs/controllers/resilient_servo/cc.yaml"

REFUSED: list[tuple[Any, ChainSpec, str]] = [
    ({"kind": "sjx"}, PLANAR, "controller.kind is 'sjx'; expected one of .* did you mean 'sjc'"),
    ({}, PLANAR, "controller.kind is missing; expected one of serpenoid, sjc, cc, cpg"),
    ({"kind": "sjc", "amplitude": 0.4}, PLANAR, "controller.amplitude is not a setting; did you mean 'amplitude_rad'"),
    ({"kind": "pfl"}, LIMP, "robot.actuator.kp is 0; expected > 0"),
    ({"kind": "cc"}, LIMP, "gain_ratio_s is null and robot.actuator.kp"),
    ({"kind": "reflex", "controller": {"kind": "reflex"}}, PLANAR, r"controller\.controller is a reflex"),
    ({"kind": "multimodal"}, PLANAR, "for spatial robots"),
    ({"kind": "sjc"}, SPATIAL, "controller is sjc, which is for planar robots"),
    ({"kind": "multimodal", "arc_radius_m": 1.0}, SPATIAL, "arc_radius_m is set, which SWL has no use for"),
    ({"file": "configs/env/escape.yaml"}, PLANAR, "holds no group 'controller'"),
    ({"file": CC_FILE, "kind": "sjc"}, PLANAR, "controller.kind is 'sjc'; expected 'cc', as in"),
    ({"tuned": "cc", "file": CC_FILE}, PLANAR, "controller has both tuned and file"),
    ({"tuned": "fault_awar"}, PLANAR, "controller.tuned is 'fault_awar'; .*did you mean 'fault_aware'"),
]


@pytest.mark.parametrize(("config", "robot", "expected"), REFUSED, ids=[row[2] for row in REFUSED])
def test_bad_settings_are_one_clear_line(config: Any, robot: ChainSpec, expected: str) -> None:
    with pytest.raises(ConfigError, match=expected) as caught:
        make_controller(config, robot)
    assert "\n" not in str(caught.value)
