"""Stuck reflex: any gait, and what it does when it gets no further: it backs out for a while, and dithers.

The robot is stuck where its tracked point has come less than ``least_way_m`` along the robot's heading in ``after_s``.
Then the gait's clock runs backwards for ``reverse_s``, with white noise of ``dither_rad`` on the joint references;
after that the watch begins anew. ``noise_rad`` is white noise at all times. None of the papers has such a reflex.
"""

from __future__ import annotations

from dataclasses import field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snake_gym.config import ConfigError, Settings
from snake_gym.config.settings import Angle, NonNegative, Positive
from snake_gym.controllers import base
from snake_gym.controllers.base import ControllerState, PerWorld, register_controller, searched
from snake_gym.controllers.guidance import PointOfSight, TrackedPoint
from snake_gym.controllers.noise import begin_noise, draw_normal, initial_noise
from snake_gym.controllers.speed_hold import PACE
from snake_gym.robot.measurement import Goal, Measurement, tracked_point
from snake_gym.robot.spec import FloatArray, RobotSpec


class ReflexConfig(Settings):
    """Settings of a stuck reflex, and of the controller that has it."""

    controller: dict[str, Any] = field(default_factory=lambda: {"kind": "cc"}, metadata={"controller": True})
    """Controller that it is added to: {kind: .., its settings}, {tuned: kind} or {file: path}."""
    after_s: Positive = searched(3.0, 1.0, 20.0, log=True)
    """Time [s] with less than ``least_way_m`` made, after which the robot counts as stuck."""
    least_way_m: NonNegative = searched(0.15, 0.02, 0.5, log=True)
    """Way [m] along the heading, forwards or backwards, that is progress."""
    reverse_s: NonNegative = searched(1.5, 0.2, 10.0, log=True)
    """Time [s] for which the gait runs backwards and the joints dither; 0: it never does."""
    dither_rad: Angle = searched(0.2, 0.0, 0.5)
    """Standard deviation of the noise on the joint references while the gait runs backwards."""
    noise_rad: Angle = 0.0
    """Standard deviation of the noise on the joint references at all other times."""
    tracked_point: TrackedPoint = "centre"
    """Point of the robot whose way is watched."""


@register_controller("reflex", ReflexConfig)
class Reflex:
    """Controller that adds a stuck reflex to another one.

    State: that of the other one and of ``noise``; ``reflex_from`` (W, 2) [m], the point from which the way is watched,
    ``reflex_wait_s`` (W,) since then, and ``reflex_left_s`` (W,) for which the gait still runs backwards.
    """

    config_type = ReflexConfig

    def __init__(self, config: ReflexConfig, spec: RobotSpec, per_world: PerWorld | None = None) -> None:
        from snake_gym.controllers import make_controller

        own = {f.name for f in fields(config)}
        given = dict(per_world or {})
        self.config, self.spec, self.n_joints = config, spec, spec.n_joints
        self.parameter = base.per_world_parameters(config, {k: v for k, v in given.items() if k in own})
        others = {name: values for name, values in given.items() if name not in own}
        self.controller = make_controller(config.controller, spec, others or None, "controller.controller")
        if isinstance(self.controller, Reflex):
            raise ConfigError("controller.controller is a reflex; expected another kind")
        self._guidance = PointOfSight(spec, config.tracked_point)
        self._dithers = bool((self.parameter["dither_rad"] + self.parameter["noise_rad"]).any())

    def initial_state(self, n_worlds: int) -> ControllerState:
        """Return the state at the start of an episode: the other controller's, and no way made."""
        return {
            **self.controller.initial_state(n_worlds), **initial_noise(n_worlds),
            "reflex_from": np.full((n_worlds, 2), np.nan), "reflex_wait_s": np.zeros(n_worlds),
            "reflex_left_s": np.zeros(n_worlds),
        }  # fmt: skip

    def phase(self, state: ControllerState) -> FloatArray:
        """Return the gait phase (W,) [rad] that the next command will use."""
        return self.controller.phase(state)

    def command(self, measurement: Measurement, goal: Goal, state: ControllerState, dt_s: float) -> FloatArray:
        """Return joint references (W, J) [rad] within the robot's joint limit; advance ``state`` by ``dt_s`` [s]."""
        begin_noise(state, measurement, goal)
        self._watch(measurement, goal, state, dt_s)
        backs = state["reflex_left_s"] > 0.0
        if backs.any():
            reference = self._command_backwards(backs, measurement, goal, state, dt_s)
        else:
            reference = self.controller.command(measurement, goal, state, dt_s)
        if self._dithers:  # also where no world does now: the numbers that a world draws depend on that world alone
            size = np.broadcast_to(
                np.where(backs, self.parameter["dither_rad"], self.parameter["noise_rad"]), backs.shape
            )
            shaken = reference + size[:, None] * draw_normal(state, self.n_joints)
            reference = np.clip(shaken, -self.spec.joint_limit_rad, self.spec.joint_limit_rad)
        self.command_given(reference, state)
        return reference

    def command_given(self, reference: FloatArray, state: ControllerState) -> None:
        """Tell the other controller the references really sent (W, J) [rad]."""
        if hasattr(self.controller, "command_given"):
            self.controller.command_given(reference, state)

    def _watch(self, measurement: Measurement, goal: Goal, state: ControllerState, dt_s: float) -> None:
        """Bring up to date for how long the robot has made no way, and is to go backwards."""
        start, wait, left = state["reflex_from"], state["reflex_wait_s"], state["reflex_left_s"]
        here = tracked_point(self.spec, measurement, self.config.tracked_point)
        heading = self._guidance.heading(measurement)
        way = (here[:, 0] - start[:, 0]) * np.cos(heading) + (here[:, 1] - start[:, 1]) * np.sin(heading)
        on = (left > 0.0) | ~goal.active | ~(np.abs(way) < self.parameter["least_way_m"])
        left[:] = np.where(left > dt_s + 1e-9, left - dt_s, 0.0)
        start[on] = here[on]
        wait[:] = np.where(on, 0.0, wait + dt_s)
        stuck = wait >= self.parameter["after_s"] - 1e-9
        left[stuck] = np.broadcast_to(self.parameter["reverse_s"], left.shape)[stuck]
        wait[stuck] = 0.0

    def _command_backwards(
        self, backs: NDArray[np.bool_], measurement: Measurement, goal: Goal, state: ControllerState, dt_s: float
    ) -> FloatArray:
        """Return the other controller's command, its clock running backwards in the worlds ``backs`` (W,)."""
        held = state.get(PACE)
        state[PACE] = np.where(backs, -1.0, 1.0) * (1.0 if held is None else held)
        reference = self.controller.command(measurement, goal, state, dt_s)
        if held is None:
            del state[PACE]
        else:
            state[PACE] = held
        return reference
