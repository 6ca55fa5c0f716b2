"""Gaits that a person drives: pace and steering by hand, and smooth changes from one gait to another.

A gait steers towards a point ahead, which lies ``steering`` times ``STEEPEST_RAD`` beside the robot's heading. Its
clock runs ``pace`` times as fast as its settings say, below 0 backwards. Both follow what is asked for with a bounded
rate.

At a change both gaits run, in the same phase, and the references go from the old one's ``a`` to the new one's ``b``:

    reference = a + s(t / fade_s) (b - a),   s(x) = 10 x^3 - 15 x^4 + 6 x^5

s, its rate and its acceleration are continuous, so references are as smooth as the gaits are. The first gait comes in
like this from the shape that the robot has, as soon as a pace is asked for. Last, no reference changes faster than the
servos turn, and not by more than ``FASTEST_RAD_S``. A change that is asked for during a change waits for its end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from snake_gym.controllers.base import Controller, ControllerState
from snake_gym.controllers.speed_hold import PACE
from snake_gym.robot.chain import ChainSpec, FloatArray
from snake_gym.robot.measurement import Goal, Measurement, mean_angle, tracked_point

STEEPEST_RAD = np.pi / 6.0
"""Angle between the heading and the point ahead for a steering of 1: tuned gaits run into their own tails beyond."""
FASTEST_RAD_S = 10.0
"""Largest rate of a reference."""
SLEW_S = 2.0
"""Largest rate of pace and steering [1/s]."""
_AHEAD = 10.0
"""Distance of the point ahead, in lengths of the robot."""
_SHAPE = -1.0
"""Number of the gait that holds the shape at the start."""


class Modal(Controller, Protocol):
    """Controller with modes, between which it changes by itself, and actions (W, A): preference of each mode, pace,
    steering. Its ``config`` has ``mode`` and ``pace_range``."""

    modes: tuple[str, ...]
    gait_actions: tuple[str, ...]
    config: Any

    def take_action(self, action: FloatArray, state: ControllerState) -> None:
        """Set mode, pace and steering by actions (W, A) in [-1, 1], in place."""


class DrivenModes:
    """Modes of a controller, of which one is driven. The controller itself changes between them.

    State: the network's, with ``asked_pace``, ``asked_steering`` and ``asked_gait`` as in ``DrivenGaits``; ``held``
    (W, J) [rad] the shape that a robot keeps until a pace is asked for.
    """

    def __init__(self, network: Modal, names: Sequence[str] = ()) -> None:
        own, modes = network.config.mode, network.modes
        self.names = tuple(names) or (own, *(mode for mode in modes if mode != own))
        self.n_joints, self._network = network.n_joints, network
        self._codes = np.array([modes.index(mode) for mode in self.names])

    def initial_state(self, n_worlds: int) -> ControllerState:
        """Return the state of W robots that stand and shall go straight on in the first mode."""
        one, many = np.zeros(n_worlds), np.full((n_worlds, self.n_joints), np.nan)
        asked = {"asked_pace": one + 1.0, "asked_steering": one, "asked_gait": one.copy(), "held": many}
        return {**self._network.initial_state(n_worlds), **asked}

    def phase(self, state: ControllerState) -> FloatArray:
        """Return the phase (W,) [rad] of each robot's network."""
        return self._network.phase(state)

    def command(self, measurement: Measurement, goal: Goal, state: ControllerState, dt_s: float) -> FloatArray:
        """Return joint references (W, J) [rad]; advance ``state``. The goal is not looked at: a person steers."""
        first = np.isnan(state["held"][:, 0])
        state["held"][first] = measurement.joint_angle[first]
        waits = (state["begun"] == 0.0) & (state["asked_pace"] == 0.0)
        before = {name: values[waits].copy() for name, values in state.items()}
        network, rows = self._network, np.arange(len(waits))
        action = np.zeros((len(waits), len(network.gait_actions)))
        action[rows, self._codes[np.clip(np.rint(state["asked_gait"]), 0, len(self.names) - 1).astype(np.int64)]] = 1.0
        action[:, -2] = np.clip(state["asked_pace"], -1.0, 1.0) / network.config.pace_range
        action[:, -1] = np.clip(state["asked_steering"], -1.0, 1.0)
        network.take_action(action, state)
        reference = network.command(measurement, goal, state, dt_s)
        for name, values in before.items():
            state[name][waits] = values
        return np.where(waits[:, None], state["held"], reference)


class DrivenGaits:
    """Gaits by name, of which one is driven. Pace, steering and gait that are asked for are written into the state.

    State: ``asked_pace`` (W,) in [-1, 1]; ``asked_steering`` (W,) in [-1, 1], to the left above 0; ``asked_gait`` (W,)
    index of a gait; beside what they have come to, and the gaits' own.
    """

    def __init__(self, gaits: Mapping[str, Controller], spec: ChainSpec, fade_s: float = 1.0) -> None:
        self.names, self._gaits = tuple(gaits), tuple(gaits.values())
        self.n_joints, self._spec, self.fade_s = spec.n_joints, spec, fade_s
        self._rate = np.minimum(spec.joints("actuator.speed_limit_rad_s"), FASTEST_RAD_S)
        self._fresh: dict[int, list[ControllerState]] = {}

    def initial_state(self, n_worlds: int) -> ControllerState:
        """Return the state of W robots that stand and shall go straight on with the first gait."""
        one, many = np.zeros(n_worlds), np.full((n_worlds, self.n_joints), np.nan)
        state = {
            "asked_pace": one + 1.0, "asked_steering": one, "asked_gait": one, "pace": one, "steering": one,
            "gait": one, "gait_before": one + _SHAPE, "faded": one, "shape": many, "reference": many,
        }  # fmt: skip
        for i, gait in enumerate(self._gaits):
            state |= {f"{i}.{name}": values for name, values in gait.initial_state(n_worlds).items()}
        return {name: values.copy() for name, values in state.items()}

    def phase(self, state: ControllerState) -> FloatArray:
        """Return the phase (W,) [rad] of each robot's gait."""
        phases = [gait.phase(self._inner(state, i)) for i, gait in enumerate(self._gaits)]
        return np.choose(state["gait"].astype(np.int64), phases)

    def command(self, measurement: Measurement, goal: Goal, state: ControllerState, dt_s: float) -> FloatArray:
        """Return joint references (W, J) [rad]; advance ``state``. The goal is not looked at: a person steers."""
        first = np.isnan(state["reference"][:, 0])
        for name in ("shape", "reference"):
            state[name][first] = measurement.joint_angle[first]
        for name in ("pace", "steering"):
            gap = np.clip(state[f"asked_{name}"], -1.0, 1.0) - state[name]
            state[name] += np.clip(gap, -SLEW_S * dt_s, SLEW_S * dt_s)
        waits = (state["gait_before"] == _SHAPE) & (state["faded"] == 0.0) & (state["asked_pace"] == 0.0)
        self._begin_change(state, waits)
        ahead = self._ahead(measurement, state["steering"])
        now, before, fading = state["gait"], state["gait_before"], state["faded"] < 1.0
        come, left = state["shape"].copy(), state["shape"].copy()
        for i in range(len(self._gaits)):
            runs = ((now == i) & ~waits) | ((before == i) & fading)
            if runs.any():
                reference = self._advance(i, runs, measurement, ahead, state, dt_s)
                come[now == i] = reference[now == i]
                left[before == i] = reference[before == i]
        state["faded"][:] = np.where(waits, 0.0, np.minimum(state["faded"] + dt_s / self.fade_s, 1.0))
        x = state["faded"][:, None]
        wanted = left + x**3 * (10.0 - 15.0 * x + 6.0 * x**2) * (come - left)
        last, most = state["reference"], self._rate * dt_s
        state["reference"][:] = np.clip(wanted, last - most, last + most)
        return state["reference"].copy()

    def command_given(self, reference: FloatArray, state: ControllerState) -> None:
        """Tell the gaits that run the references (W, J) [rad] really sent."""
        for i, gait in enumerate(self._gaits):
            runs = (state["gait"] == i) | ((state["gait_before"] == i) & (state["faded"] < 1.0))
            if runs.any() and hasattr(gait, "command_given"):
                inner = self._inner(state, i)
                gait.command_given(reference, inner)
                self._keep(i, runs, inner, state)

    def _begin_change(self, state: ControllerState, waits: NDArray[np.bool_]) -> None:
        """Begin the changes of gait that are asked for, where none is going on: the new gait in the old one's phase."""
        asked = np.clip(np.rint(state["asked_gait"]), 0, len(self._gaits) - 1)
        state["gait"][waits] = asked[waits]
        rows = (asked != state["gait"]) & (state["faded"] >= 1.0)
        if not rows.any():
            return
        phase, n_worlds = self.phase(state), len(rows)
        state["gait_before"][rows], state["gait"][rows] = state["gait"][rows], asked[rows]
        state["faded"][rows] = 0.0
        fresh = self._fresh.setdefault(n_worlds, [gait.initial_state(n_worlds) for gait in self._gaits])
        for i, inner in enumerate(fresh):
            new = rows & (asked == i)
            for name, values in inner.items():
                state[f"{i}.{name}"][new] = values[new]
            if "phase" in inner and inner["phase"].shape == phase.shape:
                state[f"{i}.phase"][new] = phase[new]

    def _ahead(self, measurement: Measurement, steering: FloatArray) -> Goal:
        """Return the points that robots with this ``steering`` (W,) head for."""
        angle = mean_angle(measurement) + STEEPEST_RAD * steering
        way = _AHEAD * self._spec.length_m * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        return Goal(tracked_point(self._spec, measurement, "centre") + way, np.ones(len(angle), bool))

    def _inner(self, state: ControllerState, i: int) -> ControllerState:
        head = f"{i}."
        inner = {name[len(head) :]: values.copy() for name, values in state.items() if name.startswith(head)}
        return {**inner, PACE: state["pace"].copy()}

    def _advance(
        self,
        i: int,
        runs: NDArray[np.bool_],
        measurement: Measurement,
        ahead: Goal,
        state: ControllerState,
        dt_s: float,
    ) -> FloatArray:
        """Return the references (W, J) [rad] of gait ``i``, whose state advances in the worlds ``runs``."""
        inner = self._inner(state, i)
        reference = self._gaits[i].command(measurement, ahead, inner, dt_s)
        self._keep(i, runs, inner, state)
        return np.asarray(reference)

    def _keep(self, i: int, runs: NDArray[np.bool_], inner: ControllerState, state: ControllerState) -> None:
        for name, values in inner.items():
            if name != PACE:
                state[f"{i}.{name}"][runs] = values[runs]
