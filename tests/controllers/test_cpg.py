"""The Hopf network against liu2024's own equations, its limit cycle, its phase lock and steering."""

from __future__ import annotations

import math

import numpy as np
import pytest

from snake_gym.controllers.base import ControllerState
from snake_gym.controllers.cpg import Cpg, CpgConfig, Weights, coupling_weights
from snake_gym.controllers.serpenoid import serpenoid_reference
from snake_gym.robot.spec import FloatArray
from tests.controllers.worlds import N_JOINTS, SPEC, straight_world

DT_S = 0.2


def run(controller: Cpg, state: ControllerState, time_s: float, dt_s: float = DT_S, heading: float = 0.0) -> FloatArray:
    """Commands (T, W, J) over ``time_s`` of straight robots that point ``heading`` left of their target."""
    world = straight_world(state["centre"].size, heading)
    return np.array([controller.command(*world, state, dt_s) for _ in range(round(time_s / dt_s))])


def disturb(state: ControllerState) -> None:
    """Put the oscillators anywhere."""
    rng = np.random.default_rng(3)
    for name in ("u", "v"):
        state[name][:] = rng.normal(0.0, 0.4, state[name].shape)


def locked_phases(controller: Cpg, state: ControllerState) -> FloatArray:
    """Phase of each oscillator against its neighbour (W, J-1) [rad]."""
    z = state["u"] + 1j * state["v"]
    return np.angle(z[:, 1:] / z[:, :-1])


# --- against the paper -----------------------------------------------------------------------------------------------


def published_rate(x: FloatArray, centre: float, config: CpgConfig, weight: FloatArray) -> FloatArray:
    """dx/dt (J, 2) by the formulas of liu2024, eq. 7-16, term by term, with sigma = k = 1."""
    rho, delta = config.amplitude_rad, config.phase_shift_rad
    hat = x - np.array([centre, 0.0])
    rate = np.empty_like(x)
    for i, (u, v) in enumerate(hat):
        e = 1.0 - (u * u + v * v) / rho**2
        law = 2.0 / (1.0 + math.exp(-e)) - 1.0 if e < 0.0 else e
        rate[i] = config.frequency_rad_s * np.array([-v, u]) + config.convergence_per_s * law * hat[i]
        for j in range(len(x)):
            angle = (i - j) * delta
            turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
            rate[i] -= config.coupling_per_s * weight[i, j] * (hat[i] - turn @ hat[j])
    return rate


@pytest.mark.parametrize("weights", ["gaussian", pytest.param("equal", marks=pytest.mark.slow)])
def test_integrates_the_published_equations(weights: Weights) -> None:
    config = CpgConfig(weights=weights, heading_gain=1.0, frequency_rad_s=4.0)
    controller = Cpg(config, SPEC)
    state = controller.initial_state(1)
    disturb(state)
    state["centre"][:] = centre = 0.2  # and it stays there: the robot points 0.2 rad off
    weight = coupling_weights(N_JOINTS, weights, config.weight_width_joints)
    x = np.stack([state["u"][0], state["v"][0]], axis=1)
    h = 0.002
    for _ in range(round(2 * DT_S / h)):
        k1 = published_rate(x, centre, config, weight)
        k2 = published_rate(x + 0.5 * h * k1, centre, config, weight)
        k3 = published_rate(x + 0.5 * h * k2, centre, config, weight)
        k4 = published_rate(x + h * k3, centre, config, weight)
        x = x + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    commands = run(controller, state, 2 * DT_S, heading=0.2)
    np.testing.assert_allclose(np.stack([state["u"][0], state["v"][0]], axis=1), x, atol=3e-3)
    np.testing.assert_allclose(commands[-1, 0], x[:, 0], atol=3e-3)


# --- limit cycle and phase lock --------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", ["equal", "gaussian"])
def test_locks_to_the_limit_cycle_from_anywhere(weights: Weights) -> None:
    config = CpgConfig(amplitude_rad=0.45, frequency_rad_s=5.0, phase_shift_rad=0.3, weights=weights)
    controller = Cpg(config, SPEC)
    state = controller.initial_state(8)
    disturb(state)
    state["u"][0], state["v"][0] = 0.1, 0.1
    run(controller, state, 120.0)
    np.testing.assert_allclose(np.hypot(state["u"], state["v"]), 0.45, rtol=0.01)
    np.testing.assert_allclose(locked_phases(controller, state), 0.3, atol=0.01)


@pytest.mark.parametrize("n_waves", [1, 2, 3])
def test_whole_waves_do_not_silence_the_start(n_waves: int) -> None:
    """They sum to zero over equal oscillators, which would then damp each other down to rounding."""
    shift = 2.0 * math.pi * n_waves / N_JOINTS
    controller = Cpg(CpgConfig(amplitude_rad=0.5, phase_shift_rad=shift), SPEC)
    state = controller.initial_state(1)
    run(controller, state, 8.0)
    np.testing.assert_allclose(np.hypot(state["u"], state["v"]), 0.5, rtol=0.05)
    np.testing.assert_allclose(locked_phases(controller, state), shift, atol=0.05)


def test_locked_network_is_the_serpenoid_gait() -> None:
    config = CpgConfig(amplitude_rad=0.4, frequency_rad_s=5.0, phase_shift_rad=0.5)
    controller = Cpg(config, SPEC)
    state = controller.initial_state(1)
    run(controller, state, 30.0)
    for _ in range(10):
        phase = controller.phase(state)  # that the next command will use
        command = run(controller, state, DT_S)[0]
        np.testing.assert_allclose(command, serpenoid_reference(phase, 0.4, 0.5, N_JOINTS), atol=1e-4)


# --- steering --------------------------------------------------------------------------------------------------------


def test_steering_shifts_all_joints_by_the_offset() -> None:
    config = CpgConfig(heading_gain=0.5, frequency_rad_s=5.0)
    controller = Cpg(config, SPEC)
    state = controller.initial_state(1)
    run(controller, state, 20.0, heading=0.4)
    period = run(controller, state, 2.0 * math.pi / 5.0 * 5.0, dt_s=2.0 * math.pi / 5.0 / 10.0, heading=0.4)
    np.testing.assert_allclose(period.mean(axis=0), 0.2, atol=2e-3)
    assert state["centre"][0] == pytest.approx(0.2, abs=1e-5)


def test_steering_is_smooth_and_acts_at_once() -> None:
    config = CpgConfig(amplitude_rad=0.3, frequency_rad_s=0.0, steering_rate_per_s=2.0)
    controller = Cpg(config, SPEC)
    state = controller.initial_state(1)
    run(controller, state, 20.0)
    at_rest = run(controller, state, DT_S)[0, 0]
    first = run(controller, state, 0.02, dt_s=0.02, heading=0.5)[0, 0]
    step = first - at_rest
    assert np.abs(step).max() > 1e-4
    assert np.abs(step).max() < 0.5 * 2.0 * 0.02 * 1.1
