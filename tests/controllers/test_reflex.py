"""Stuck reflex: when it acts, what it does, and that it does nothing else."""

from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy as np
import pytest

from snake_gym.config import ConfigError, Settings
from snake_gym.controllers import CONTROLLERS, check_unused, make_controller, resolve_controller
from snake_gym.controllers.base import Controller, ControllerState
from snake_gym.robot.presets import PEGBOARD
from tests.controllers.worlds import N_JOINTS, SPEC, straight_world, take_world

DT = 0.2
GAIT = {"kind": "sjc", "amplitude_rad": 0.4, "frequency_rad_s": 3.0}
REFLEX = {"kind": "reflex", "controller": GAIT, "after_s": 2.0, "least_way_m": 0.1, "reverse_s": 1.0, "dither_rad": 0.0}


def run(controller: Controller, speed_m_s: list[float], n_steps: int) -> tuple[np.ndarray, ControllerState]:
    """Phases (steps, W) before each command of robots that move straight ahead at these speeds."""
    measurement, goal = straight_world(len(speed_m_s))
    state = controller.initial_state(len(speed_m_s))
    phases = []
    for step in range(n_steps):
        phases.append(controller.phase(state).copy())
        here = np.stack([np.array(speed_m_s) * DT * step, np.zeros(len(speed_m_s))], axis=1)
        controller.command(measurement._replace(head_xy_w=here), goal, state, DT)
    return np.array(phases), state


def test_the_clock_runs_backwards_for_a_while_where_no_way_is_made() -> None:
    phases, _ = run(make_controller(REFLEX, SPEC), [0.0, 0.2, -0.2, 0.04], 30)
    steps = np.round(np.diff(np.unwrap(phases, axis=0), axis=0) / (3.0 * DT), 6)
    stuck = np.ones(29)
    stuck[10:15] = stuck[25:30] = -1.0  # after 2 s, for 1 s; then the watch begins anew
    np.testing.assert_array_equal(steps[:, 0], stuck)
    assert (steps[:, 1:3] == 1.0).all(), "moving on, or in reverse, is no standstill"
    assert (steps[:, 3] == -1.0).any(), "0.08 m in 2 s is too little"


@pytest.mark.parametrize("kind", [kind for kind in CONTROLLERS if kind not in ("reflex", "mpc", "multimodal")])
def test_a_robot_that_gets_on_is_commanded_as_without_it(kind: str) -> None:
    spec = PEGBOARD if kind == "pfl" else SPEC
    plain, guarded = (make_controller(c, spec) for c in ({"kind": kind}, {**REFLEX, "controller": {"kind": kind}}))
    measurement, goal = straight_world(2)
    one, other = plain.initial_state(2), guarded.initial_state(2)
    for step in range(20):
        here = measurement._replace(head_xy_w=np.full((2, 2), 0.1 * step))
        np.testing.assert_array_equal(guarded.command(here, goal, other, DT), plain.command(here, goal, one, DT))


def test_noise_is_of_the_size_that_is_set_and_each_world_has_its_own() -> None:
    noisy = make_controller(
        {**REFLEX, "noise_rad": 0.05, "after_s": 1e6, "controller": {**GAIT, "amplitude_rad": 0}}, SPEC
    )
    measurement, goal = straight_world(3)
    measurement.joint_angle[:] = np.arange(3)[:, None] * 1e-3
    state, alone = noisy.initial_state(3), noisy.initial_state(1)
    commands = []
    for _ in range(200):
        commands.append(noisy.command(measurement, goal, state, DT))
        np.testing.assert_array_equal(noisy.command(*take_world(measurement, goal, 2), alone, DT)[0], commands[-1][2])
    noise = np.array(commands) - np.mean(commands, axis=0)
    assert noise.shape == (200, 3, N_JOINTS)
    assert abs(noise.std() - 0.05) < 0.003
    assert abs(np.corrcoef(noise[:, 0].ravel(), noise[:, 1].ravel())[0, 1]) < 0.1


class GuardedConfig(Settings):
    inner: dict[str, Any] = field(default_factory=lambda: {"tuned": "cc"}, metadata={"controller": True})


def test_a_controller_within_one_of_a_users_is_resolved_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CONTROLLERS, "guarded", type("Guarded", (), {"config_type": GuardedConfig}))
    tuned = resolve_controller({"tuned": "sjc"}, spec=SPEC)
    assert resolve_controller({"kind": "guarded", "inner": {"tuned": "sjc"}}, spec=SPEC)["inner"] == tuned
    assert resolve_controller("guarded", spec=SPEC)["inner"] == resolve_controller({"tuned": "cc"}, spec=SPEC)
    check_unused({"kind": "guarded"})
    with pytest.raises(ConfigError, match=r"controller\.inner\.amplitud_rad"):
        check_unused({"kind": "guarded", "inner": {"kind": "cc", "amplitud_rad": 1.0}})
