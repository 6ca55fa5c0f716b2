"""Batches of failed robots, and the wave of CC in closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest

from papers.sibilska2022 import trials
from papers.sibilska2022.experiment import COUPLING, Broken, ControllerName
from papers.sibilska2022.trials import JOINT_LIMIT_RAD, ROBOT, play
from papers.sibilska2022.wave import Trial, extra_reference, joint_wave
from snake_gym.controllers import make_controller
from snake_gym.physics.faults import FAULT_CODES
from snake_gym.robot.measurement import Goal, Measurement
from snake_gym.simulation.simulated_robot import SimulatedRobot

PERIOD = 144
"""Steps of 0.05 s in 7.2 s."""


def swing(controller: ControllerName, broken: Broken, coupled_wave: bool = False) -> np.ndarray:
    """Amplitude and phase (J,) of the joints of a robot that does not steer, in its sixth period."""
    shipped = make_controller({"kind": controller}, ROBOT)
    extra = extra_reference(Trial(controller, broken, coupled_wave=coupled_wave))
    robot, state = SimulatedRobot(ROBOT, 1, n_threads=1), shipped.initial_state(1)
    robot.faults.kind[:, [joint - 1 for joint in broken]] = FAULT_CODES["locked"]
    no_goal = Goal(np.zeros((1, 2)), np.zeros(1, dtype=bool))
    found = np.zeros(ROBOT.n_joints, dtype=complex)
    for step in range(6 * PERIOD):
        seen = Measurement(
            robot.joint_angle(), robot.joint_rate(), robot.head_xy(), robot.state.link_angle[:, -1], np.ones(1, bool)
        )
        if step >= 5 * PERIOD:
            found += 2j / PERIOD * seen.joint_angle[0] * np.exp(-2j * np.pi * step / PERIOD)
        wave = (extra * np.exp(1j * shipped.phase(state)[0])).imag
        robot.step(np.ascontiguousarray(shipped.command(seen, no_goal, state, ROBOT.control_dt_s) + wave))
    return found


@pytest.mark.parametrize(("controller", "broken"), [("sjc", (3,)), ("cc", ()), ("cc", (3, 5, 6)), ("cc", (9,))])
def test_the_wave_is_that_of_the_closed_form(controller: ControllerName, broken: Broken) -> None:
    expected = joint_wave(COUPLING[controller], broken, math.radians(20.0))
    # references are held for 0.05 s: a lag of half a step, 1.25 degrees of the gait
    np.testing.assert_allclose(swing(controller, broken), expected, atol=0.03 * np.abs(expected).max())


def test_sjc_can_be_given_the_wave_of_cc() -> None:
    given, coupled = swing("sjc", (3, 5, 8), coupled_wave=True), swing("cc", (3, 5, 8))
    np.testing.assert_allclose(given, coupled, atol=0.02 * np.abs(coupled).max())
    assert np.abs(coupled[3]) > 1.4 * np.abs(coupled[0]) and np.abs(given[[2, 4, 7]]).max() < 1e-9


def test_a_run_in_a_batch_is_that_run_alone() -> None:
    batch = [
        Trial("cc", (4,), "free"),
        Trial("sjc", (3,), "locked", math.radians(25.0)),
        Trial("cc", (5,), "weak", start_angle_rad=0.1),
        Trial("sjc", (6,), "free"),
        Trial("sjc", (3,), coupled_wave=True),
    ]
    together = play(batch, n_targets=1, time_limit_s=60.0)
    for row, trial in enumerate(batch):
        alone = play([trial], n_targets=1, time_limit_s=60.0)
        np.testing.assert_array_equal(alone.arrivals_s[0], together.arrivals_s[row])
        np.testing.assert_allclose(alone.amplitude_rad[0], together.amplitude_rad[row], rtol=1e-9)
    assert len({float(t) for t in together.arrivals_s[:, 0] if math.isfinite(t)}) >= 3


def test_a_free_joint_has_stops_and_the_driven_ones_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[np.ndarray] = []
    add = trials._LockIn.add

    def listen(lock_in: trials._LockIn, phi: np.ndarray, step: int, going: np.ndarray) -> None:
        seen.append(phi.copy())
        add(lock_in, phi, step, going)

    monkeypatch.setattr(trials._LockIn, "add", listen)
    play([Trial("cc", (5,), "free"), Trial("cc", (), "free")], time_limit_s=20.0)
    peak = np.abs(seen).max(axis=0)
    assert peak[0, 4] == pytest.approx(JOINT_LIMIT_RAD, abs=1e-6)
    assert peak[0, 5] > JOINT_LIMIT_RAD + 0.3  # the joint behind it takes up its error


def test_progress_and_what_is_not_reached() -> None:
    heard: list[float] = []
    result = play(
        [Trial("sjc", ()), Trial("sjc", (5,), "free")], n_targets=1, time_limit_s=50.0, on_progress=heard.append
    )
    assert heard == sorted(heard) and len(heard) >= 3 and heard[0] >= 0.0 and heard[-1] <= 1.0
    assert np.isfinite(result.arrivals_s[0, 0]) and np.isnan(result.arrivals_s[1, 0])
    assert np.isnan(play([Trial("sjc", ())], time_limit_s=5.0).amplitude_rad).all()  # not one period
