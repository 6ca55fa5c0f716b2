"""Plans of a sampling model-predictive controller: drawn, weighed by what they are worth, and followed for a step.

A plan is a gait with a shape of its own for each joint, and offsets that change over the horizon T:

    phi_ref_i(t) = o_i(t) + a_i sin(phase + omega t + psi_i),    0 <= t <= T,

o_i linear from its value now to that at the end. Each control step draws K plans around the present one, which the
caller plays in K copies of each world. The mean of the plans weighted with exp(worth / temperature) is the new one
(path integral control: Williams et al. 2017, "Information theoretic MPC"). It is warm-started: its offsets move on by
one step.

Such small changes never turn a gait round. A share of the plans therefore runs the wave the other way, with a random
offset on all joints; the best of them becomes the plan where it is worth more, by ``_LEAD_M``, than all others.

Worth [m] = way made towards the target - ``heading_m`` (1 - cos e) / 2, e the angle at the end between target and
driving direction, less within ``_NEAR_M`` of the target. Where the target is reached and the next one is hidden, the
rest of the time counts ``speed_m_s``.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from snake_gym.config import Settings
from snake_gym.config.settings import Angle, NonNegative, Positive
from snake_gym.controllers.base import ControllerState, PerWorld, per_world_parameters, searched, wrap_phase
from snake_gym.controllers.noise import draw_normal
from snake_gym.controllers.serpenoid import fastest_followed
from snake_gym.robot.spec import FloatArray, RobotSpec

_LEAD_M, _NEAR_M = 0.02, 0.5
_WIDEST_TURN_RAD = 0.6
"""Largest offset of a plan that turns the gait round [rad]."""
_SLOWEST = 0.4
"""Least frequency of a plan, as a share of the gait's that it began with."""

BoolArray = NDArray[np.bool_]


class PlanConfig(Settings):
    """Settings of the search for a plan."""

    samples: Annotated[int, Field(ge=4, le=1024)] = 64
    """Number of plans that are compared in each control step."""
    horizon_s: Annotated[float, Field(gt=0.0, le=60.0)] = 2.0
    """Time that a plan looks ahead [s]."""
    temperature_m: Positive = searched(0.02, 0.005, 0.1, log=True)
    """Difference in worth at which the weight of a plan falls to 1/e."""
    amplitude_spread_rad: Angle = searched(0.12, 0.04, 0.4, log=True)
    """Standard deviation of the plans' amplitudes, joint by joint and of all joints together."""
    phase_spread_rad: Angle = searched(0.25, 0.08, 0.8, log=True)
    """Standard deviation of the joints' phases."""
    shift_spread_rad: Angle = 0.1
    """Standard deviation of the phase shift between neighbours, all alike."""
    frequency_spread_rad_s: NonNegative = searched(0.4, 0.1, 1.6, log=True)
    """Standard deviation of the frequency."""
    offset_spread_rad: Angle = searched(0.12, 0.04, 0.4, log=True)
    """Standard deviation of the offsets, joint by joint."""
    turn_spread_rad: Angle = searched(0.25, 0.08, 0.8, log=True)
    """Standard deviation of the offset that all joints have together, which turns the robot."""
    reversed_share: Annotated[float, Field(ge=0.0, le=0.5)] = 0.15
    """Share of the plans that run the wave the other way."""
    heading_m: NonNegative = searched(0.3, 0.1, 1.0, log=True)
    """Worth of being turned to the target, rather than away from it, at the end."""
    radius_m: NonNegative = 0.1
    """Distance [m] at which the target counts as reached."""
    speed_m_s: NonNegative = 0.35
    """Speed that is counted on after a target that has been reached."""


class Plans(NamedTuple):
    """Plans of W worlds (W, ...), or K of each (W, K, ...)."""

    amplitude: FloatArray
    """(..., J) [rad]"""
    phase: FloatArray
    """(..., J) [rad]"""
    offset: FloatArray
    """(..., 2, J) [rad]: now, and at the end of the horizon"""
    frequency: FloatArray
    """(...) [rad/s]"""


class Planner:
    """Search for plans of robots ``spec``, that begins with a travelling wave.

    State, with the names ``plan_*``: the present plan. Beside it are ``phase`` (W,) and the streams of ``noise``.
    """

    def __init__(self, config: PlanConfig, spec: RobotSpec, parameter: PerWorld | None = None) -> None:
        self.config = config
        self.parameter = per_world_parameters(config, None) if parameter is None else parameter
        self.n_steps = max(2, round(config.horizon_s / spec.control_dt_s))
        self._dt_s, self._limit, self._n_joints = spec.control_dt_s, spec.joint_limit_rad, spec.n_joints
        self._fastest = fastest_followed(spec)
        self._n_reversed = int(config.reversed_share * config.samples)

    def initial_state(
        self,
        n_worlds: int,
        amplitude_rad: FloatArray | float,
        frequency_rad_s: FloatArray | float,
        phase_shift_rad: FloatArray | float,
    ) -> ControllerState:
        """Return the plan of a travelling wave, whose parameters are numbers or (W,)."""
        shape = (n_worlds, self._n_joints)
        shift = np.broadcast_to(phase_shift_rad, n_worlds)[:, None] * np.arange(self._n_joints)
        frequency = np.broadcast_to(frequency_rad_s, n_worlds)
        return {
            "phase": np.zeros(n_worlds),
            "plan_amplitude": np.array(np.broadcast_to(np.reshape(amplitude_rad, (-1, 1)), shape)),
            "plan_phase": shift, "plan_offset": np.zeros((n_worlds, 2, self._n_joints)),
            "plan_frequency": frequency.copy(), "plan_slowest": _SLOWEST * np.abs(frequency),
        }  # fmt: skip

    def draw(self, state: ControllerState) -> Plans:
        """Return K plans of each world: the present one first, those that turn the gait round last."""
        of = {name: np.reshape(values, (-1, 1, 1)) for name, values in self.parameter.items()}
        n_worlds, k, j = len(state["phase"]), self.config.samples, self._n_joints
        now = Plans(*(state[f"plan_{name}"][:, None] for name in Plans._fields))
        sizes = (j, j, 2 * j, 2, 3)
        noise = draw_normal(state, k * sum(sizes)).reshape(n_worlds, k, -1)
        noise[:, 0] = 0.0
        joint, phase, offset, turn, three = np.split(noise, np.cumsum(sizes)[:-1], axis=2)
        shape = np.where(np.arange(k) % 2 == 0, 1.0, 0.0)[:, None]  # every other plan turns and hurries only
        amplitude = now.amplitude + of["amplitude_spread_rad"] * shape * (joint + three[..., :1])
        phase = now.phase + shape * (
            of["phase_spread_rad"] * phase + of["shift_spread_rad"] * three[..., 1:2] * np.arange(j)
        )
        offset = now.offset + of["offset_spread_rad"][..., None] * offset.reshape(n_worlds, k, 2, j)
        offset += (of["turn_spread_rad"] * turn)[..., None]
        frequency = now.frequency + of["frequency_spread_rad_s"][..., 0] * three[..., 2]
        if self._n_reversed:
            last = slice(k - self._n_reversed, k)
            amplitude[:, last], phase[:, last], frequency[:, last] = now.amplitude, now.phase, -now.frequency
            spread = np.tanh(three[:, last, :1, None])  # of any offset up to the widest
            offset[:, last] = _WIDEST_TURN_RAD * spread
        size = np.clip(np.abs(frequency), state["plan_slowest"][:, None], self._fastest)
        return Plans(
            np.clip(amplitude, 0.0, self._limit), phase, np.clip(offset, -self._limit, self._limit),
            np.where(frequency < 0.0, -size, size),
        )  # fmt: skip

    def reference(self, plans: Plans, state: ControllerState, step: int, pace: FloatArray | float = 1.0) -> FloatArray:
        """Return the joint references (W, K, J) [rad] of ``plans`` in a step of the horizon, counted from 0.

        Their clocks run ``pace``, a number or (W,), times as fast as their frequencies say.
        """
        phase = state["phase"][:, None] + plans.frequency * np.reshape(pace, (-1, 1)) * (step * self._dt_s)
        share = step / (self.n_steps - 1)
        now, end = np.moveaxis(plans.offset, -2, 0)
        offset = (1.0 - share) * now + share * end
        return np.clip(offset + plans.amplitude * np.sin(phase[..., None] + plans.phase), -self._limit, self._limit)

    def improve(self, state: ControllerState, plans: Plans, worth: FloatArray) -> None:
        """Move the present plans to where the ``worth`` (W, K) [m] of ``plans`` is large."""
        worth = np.where(np.isfinite(worth), worth, -1e6)
        n_main = self.config.samples - self._n_reversed
        main = worth[:, :n_main]
        top = main.max(axis=1)
        weight = np.exp((main - top[:, None]) / np.reshape(self.parameter["temperature_m"], (-1, 1)))
        weight /= weight.sum(axis=1, keepdims=True)
        rows = np.arange(len(worth))
        best = n_main + worth[:, n_main:].argmax(axis=1) if self._n_reversed else rows * 0
        turns = worth[rows, best] > top + _LEAD_M
        for name, values in zip(Plans._fields, plans, strict=True):
            share = weight.reshape(*weight.shape, *([1] * (values.ndim - 2)))
            mean = np.add.accumulate(share * values[:, :n_main], axis=1)[:, -1]  # in the same order in any batch
            now = state[f"plan_{name}"]
            now[:] = mean
            now[turns] = values[rows, best][turns]

    def follow(self, state: ControllerState, pace: FloatArray | float = 1.0) -> FloatArray:
        """Return the present plans' joint references (W, J) [rad] for the next control step, and move on by it."""
        now = Plans(*(state[f"plan_{name}"][:, None] for name in Plans._fields))
        reference = self.reference(now, state, 0)[:, 0]
        state["phase"] += state["plan_frequency"] * pace * self._dt_s
        wrap_phase(state["phase"])
        offset, end = np.moveaxis(state["plan_offset"], 1, 0)
        offset += (end - offset) / (self.n_steps - 1)
        return reference


class Worth:
    """Worth of K plans in each of W worlds, summed up over the horizon; see the module."""

    def __init__(self, planner: Planner, plans: Plans) -> None:
        self._config, self._rest_s = planner.config, planner.n_steps * planner._dt_s
        self._dt_s, self._forward = planner._dt_s, plans.frequency.ravel() >= 0.0
        self.gain = np.zeros(plans.frequency.size)
        self.done = np.zeros(plans.frequency.size, bool)
        self._shape = plans.frequency.shape
        self._heading_m = np.broadcast_to(np.reshape(planner.parameter["heading_m"], (-1, 1)), self._shape).ravel()

    def add(self, made_m: FloatArray, reached: BoolArray, next_is_hidden: bool) -> None:
        """Count the way ``made_m`` (W * K,) of a step; ``reached``: copies whose target was reached in it."""
        config = self._config
        self._rest_s -= self._dt_s
        self.gain += np.where(self.done, 0.0, made_m)
        if next_is_hidden:
            self.gain += np.where(reached & ~self.done, config.speed_m_s * self._rest_s, 0.0)
            self.done |= reached
        else:
            self.gain += np.where(reached, config.heading_m, 0.0)  # for the new target's bearing costs at most that

    def total(self, heading: FloatArray, way_xy: FloatArray) -> FloatArray:
        """Return the worth (W, K), for mean link angles (W * K,) and ways to the targets (W * K, 2) at the end."""
        error = heading - np.arctan2(way_xy[:, 1], way_xy[:, 0]) + np.where(self._forward, 0.0, math.pi)
        near = np.minimum(1.0, np.hypot(way_xy[:, 0], way_xy[:, 1]) / _NEAR_M)
        cost = np.where(self.done, 0.0, 0.5 * self._heading_m * (1.0 - np.cos(error)) * near)
        return np.reshape(self.gain - cost, self._shape)
