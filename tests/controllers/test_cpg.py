"""The Hopf network against liu2024's own equations, its limit cycle, its phase lock, steering and changes of gait."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest

from snake_gym.controllers.base import ControllerState
from snake_gym.controllers.cpg import PAPER_RATES, Coupling, Cpg, CpgConfig, Topology, coupling_weights
from snake_gym.controllers.serpenoid import serpenoid_reference
from snake_gym.robot.spec import FloatArray
from tests.controllers.worlds import N_JOINTS, SPEC, straight_world

TOPOLOGIES = get_args(Topology)
DT_S = 0.2


def run(controller: Cpg, state: ControllerState, time_s: float, dt_s: float = DT_S, heading: float = 0.0) -> FloatArray:
    """Commands (T, W, J) over ``time_s`` of straight robots that point ``heading`` left of their target."""
    world = straight_world(state["centre"].size, heading)
    return np.array([controller.command(*world, state, dt_s) for _ in range(round(time_s / dt_s))])


def disturb(state: ControllerState, seed: int = 3) -> None:
    """Put the oscillators anywhere."""
    rng = np.random.default_rng(seed)
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
@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_integrates_the_published_equations(topology: Topology, weights: Any) -> None:
    config = CpgConfig(topology=topology, weights=weights, heading_gain=1.0, frequency_rad_s=4.0)
    controller = Cpg(config, SPEC)
    state = controller.initial_state(1)
    disturb(state)
    state["centre"][:] = centre = 0.2  # and it stays there: the robot points 0.2 rad off
    weight = coupling_weights(N_JOINTS, topology, weights, config.weight_width_joints)
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


@pytest.mark.slow
def test_the_published_rates_converge_too() -> None:
    controller = Cpg(CpgConfig(topology="full", phase_shift_rad=0.4, **PAPER_RATES), SPEC)
    state = controller.initial_state(1)
    run(controller, state, 400.0)
    np.testing.assert_allclose(np.hypot(state["u"], state["v"]), controller.config.amplitude_rad, rtol=0.01)
    np.testing.assert_allclose(locked_phases(controller, state), 0.4, atol=0.01)


# --- limit cycle and phase lock --------------------------------------------------------------------------------------


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_locks_to_the_limit_cycle_from_anywhere(topology: Topology) -> None:
    config = CpgConfig(amplitude_rad=0.45, frequency_rad_s=5.0, phase_shift_rad=0.3, topology=topology)
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
    controller = Cpg(CpgConfig(amplitude_rad=0.5, phase_shift_rad=shift, topology="full"), SPEC)
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


# --- topologies ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_every_oscillator_is_reached_from_the_head(topology: Topology) -> None:
    for n_joints in (2, 3, 9, 14):
        weight = coupling_weights(n_joints, topology, "equal", 2.0)
        assert (np.diag(weight) == 0.0).all()
        assert (weight.sum(axis=1)[:-1] > 0.0).all()
        reached = np.zeros(n_joints, dtype=bool)
        reached[-1] = True
        for _ in range(n_joints):
            reached |= (weight @ reached) > 0.0
        assert reached.all()


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("n_joints", [1, 2, 3, 4, 9])
def test_coupling_is_the_graph_laplacian(topology: Topology, n_joints: int) -> None:
    weight = coupling_weights(n_joints, topology, "equal", 2.0)
    alpha = np.array([0.5, 1.5])
    y = np.random.default_rng(0).normal(size=(2, n_joints, 2))
    coupling = Coupling(weight, alpha)
    rate = -coupling.decay * y
    coupling.add_pull(rate, y)
    expected = -alpha * np.einsum("ij,cjw->ciw", np.diag(weight.sum(axis=1)) - weight, y)
    np.testing.assert_allclose(rate, expected, atol=1e-5)


# --- steering --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("steering", ["centre", "offset"])
def test_steering_shifts_all_joints_by_the_offset(steering: Any) -> None:
    config = CpgConfig(heading_gain=0.5, steering=steering, frequency_rad_s=5.0)
    controller = Cpg(config, SPEC)
    state = controller.initial_state(1)
    run(controller, state, 20.0, heading=0.4)
    period = run(controller, state, 2.0 * math.pi / 5.0 * 5.0, dt_s=2.0 * math.pi / 5.0 / 10.0, heading=0.4)
    np.testing.assert_allclose(period.mean(axis=0), 0.2, atol=2e-3)
    assert state["centre"][0] == pytest.approx(0.2, abs=1e-5)


@pytest.mark.parametrize("steering", ["centre", "offset"])
def test_steering_is_smooth_and_acts_at_once(steering: Any) -> None:
    config = CpgConfig(steering=steering, amplitude_rad=0.3, frequency_rad_s=0.0, steering_rate_per_s=2.0)
    controller = Cpg(config, SPEC)
    state = controller.initial_state(1)
    run(controller, state, 20.0)
    at_rest = run(controller, state, DT_S)[0, 0]
    first = run(controller, state, 0.02, dt_s=0.02, heading=0.5)[0, 0]
    step = first - at_rest
    assert np.abs(step).max() > 1e-4
    assert np.abs(step).max() < 0.5 * 2.0 * 0.02 * 1.1


# --- changes of gait -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"amplitude_rad": 0.2},
        {"frequency_rad_s": -4.0},
        {"phase_shift_rad": -0.5},
        {"amplitude_rad": 0.6, "frequency_rad_s": 6.0, "phase_shift_rad": 0.9},
    ],
)
@pytest.mark.parametrize("topology", ["nearest", "full"])
def test_a_change_of_gait_is_smooth(change: dict[str, float], topology: Topology) -> None:
    """Also where another change begins before it is over: speed, acceleration and pauses of every joint are bounded."""
    dt_s, omega, rho = (
        0.01,
        max(abs(change.get("frequency_rad_s", 0.0)), 4.0),
        max(change.get("amplitude_rad", 0.0), 0.5),
    )
    config = CpgConfig(amplitude_rad=0.5, frequency_rad_s=4.0, phase_shift_rad=0.5, topology=topology)
    controller = Cpg(config, SPEC)
    state = controller.initial_state(3)
    wave = 0.5 * np.arange(N_JOINTS)
    state["u"][:], state["v"][:] = 0.5 * np.sin(wave), -0.5 * np.cos(wave)
    commands = [run(controller, state, 0.1, dt_s)]
    controller.set_gait(state, np.array([True, False, True]), **change)
    commands.append(run(controller, state, 1.3, dt_s))
    controller.set_gait(state, np.array([False, False, True]), 0.5, 4.0, -0.2)
    commands.append(run(controller, state, 15.0, dt_s))
    rate = np.diff(np.concatenate(commands), axis=0) / dt_s
    assert np.abs(rate[:, 0]).max() <= omega * rho * (1.0 + 1e-6)
    assert np.abs(rate[:, 2]).max() <= 1.2 * omega * rho
    assert np.abs(np.diff(rate, axis=0)).max() <= 1.5 * omega**2 * rho * dt_s
    moving = np.abs(rate) > 0.05 * 4.0 * min(change.get("amplitude_rad", 0.5), 0.5)
    period = round(2.0 * math.pi / 4.0 / dt_s)
    windows = np.lib.stride_tricks.sliding_window_view(moving, period, axis=0)
    assert windows.any(axis=-1).all(), "a joint stands still for a period"
    np.testing.assert_allclose(np.hypot(state["u"], state["v"])[0], change.get("amplitude_rad", 0.5), rtol=1e-3)
    np.testing.assert_allclose(locked_phases(controller, state)[0], change.get("phase_shift_rad", 0.5), atol=1e-3)
    np.testing.assert_allclose(locked_phases(controller, state)[1], 0.5, atol=1e-6)
    np.testing.assert_allclose(locked_phases(controller, state)[2], -0.2, atol=1e-3)


def test_another_number_of_waves_leaves_the_amplitude_alone() -> None:
    """Two waves along the body sum to zero over three: coupled all with all, the oscillators would damp each other."""
    two, three = (4.0 * math.pi / N_JOINTS, 6.0 * math.pi / N_JOINTS)
    controller = Cpg(CpgConfig(amplitude_rad=0.5, frequency_rad_s=2.0, phase_shift_rad=two, topology="full"), SPEC)
    state = controller.initial_state(2)
    wave = two * np.arange(N_JOINTS)
    state["u"][:], state["v"][:] = 0.5 * np.sin(wave), -0.5 * np.cos(wave)
    controller.set_gait(state, np.ones(2, dtype=bool), phase_shift_rad=three)
    state["departure"][1] = 0.0  # the published equations: the new phase shift at once
    smallest = np.ones(2)
    for _ in range(400):
        run(controller, state, 0.05, 0.05)
        smallest = np.minimum(smallest, np.hypot(state["u"], state["v"]).min(axis=1) / 0.5)
    assert smallest[0] > 0.95
    assert smallest[1] < 0.1
    np.testing.assert_allclose(locked_phases(controller, state)[0], three, atol=1e-3)


def test_a_gait_that_stands_still_takes_its_new_shape_by_coupling() -> None:
    controller = Cpg(CpgConfig(frequency_rad_s=0.0, phase_shift_rad=0.5), SPEC)
    state = controller.initial_state(1)
    run(controller, state, 20.0)
    before = state["u"].copy()
    controller.set_gait(state, np.ones(1, dtype=bool), phase_shift_rad=0.3)
    first = run(controller, state, 0.01, 0.01)[0]
    assert np.abs(first - before).max() < 0.05
    run(controller, state, 20.0)
    np.testing.assert_allclose(locked_phases(controller, state), 0.3, atol=0.01)


def test_only_the_masked_worlds_change_their_gait() -> None:
    controller = Cpg(CpgConfig(), SPEC)
    state = controller.initial_state(3)
    mask = np.array([True, False, True])
    controller.set_gait(state, mask, amplitude_rad=np.array([0.3, 0.6]), frequency_rad_s=2.0)
    np.testing.assert_allclose(state["amplitude_rad"], [0.3, controller.config.amplitude_rad, 0.6])
    np.testing.assert_allclose(state["frequency_rad_s"], [2.0, controller.config.frequency_rad_s, 2.0])
    np.testing.assert_allclose(state["phase_shift_rad"], controller.config.phase_shift_rad)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"amplitude_rad": 0.0}, r"amplitude_rad is 0; expected in \[1e-06, pi\]"),
        ({"frequency_rad_s": math.nan}, "frequency_rad_s is nan"),
        ({"phase_shift_rad": np.array([0.1, 4.0])}, r"phase_shift_rad is 4; expected in \[-3.14159, 3.14159\]"),
    ],
)
def test_a_bad_gait_is_refused_and_changes_nothing(change: dict[str, Any], message: str) -> None:
    controller = Cpg(CpgConfig(), SPEC)
    state = controller.initial_state(2)
    with pytest.raises(ValueError, match=message):
        controller.set_gait(state, np.ones(2, dtype=bool), **{"amplitude_rad": 0.3, **change})
    np.testing.assert_array_equal(state["amplitude_rad"], controller.config.amplitude_rad)


# --- batches ---------------------------------------------------------------------------------------------------------


def test_each_world_may_have_its_own_rates_and_gait() -> None:
    config = CpgConfig()
    per_world = {
        "amplitude_rad": np.array([0.2, 0.6]),
        "frequency_rad_s": np.array([2.0, 6.0]),
        "phase_shift_rad": np.array([0.3, 0.8]),
        "convergence_per_s": np.array([1.0, 3.0]),
        "coupling_per_s": np.array([0.1, 0.6]),
        "steering_rate_per_s": np.array([1.0, 9.0]),
        "heading_gain": np.array([0.2, 1.0]),
    }
    population = Cpg(config, SPEC, per_world)
    state = population.initial_state(2)
    commands = run(population, state, 4.0, heading=0.3)
    for w in range(2):
        alone = Cpg(replace(config, **{name: float(values[w]) for name, values in per_world.items()}), SPEC)
        expected = run(alone, alone.initial_state(1), 4.0, heading=0.3)
        np.testing.assert_allclose(commands[:, w], expected[:, 0], atol=2e-3)  # the step of RK4 is another
