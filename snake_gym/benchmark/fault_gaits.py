"""Oracle that knows the faults: it changes to the gait that was tuned for them, and undoes what can be undone.

An offset, or a horn that has slipped, moves a joint away from its reference. The oracle sends it as far to the other
side, and its gaits see the true angle. A joint without power costs the more the nearer it is to the middle, where no
one gait does well with and without it: there is a gait for each distance [joints] of the innermost free or weak joint
from the middle one, and one for all else. All gaits go on in step, each with its own state; the one in turn is sent,
and the others learn what was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snake_gym.controllers import make_controller
from snake_gym.controllers.base import Controller, ControllerState
from snake_gym.controllers.speed_hold import PACE
from snake_gym.physics.faults import FREE, LOCKED, OFFSET, WEAK
from snake_gym.robot.measurement import Goal, Measurement
from snake_gym.robot.protocol import Robot
from snake_gym.robot.spec import FloatArray


class FaultGaits:
    """Controller of gaits: the first for all else, the last for the middle joint, those before for its neighbours."""

    def __init__(self, gaits: Sequence[Mapping[str, Any]], robot: Robot) -> None:
        self._robot = robot
        self._gaits: list[Controller] = [make_controller(gait, robot.spec) for gait in gaits]
        self.n_joints = robot.spec.n_joints
        joints = np.arange(self.n_joints)
        self._distance = np.floor(np.abs(joints - (self.n_joints - 1) / 2.0))

    def initial_state(self, n_worlds: int) -> ControllerState:
        """Return the states of all gaits, under their numbers."""
        states = ((i, gait.initial_state(n_worlds)) for i, gait in enumerate(self._gaits))
        return {f"{i}/{name}": values for i, state in states for name, values in state.items()}

    def phase(self, state: ControllerState) -> FloatArray:
        """Return the phase (W,) [rad] of the first gait."""
        return self._gaits[0].phase(self._own(state, 0))

    def command(self, measurement: Measurement, goal: Goal, state: ControllerState, dt_s: float) -> FloatArray:
        """Return joint references (W, J) [rad]."""
        first, second = np.isin(self._robot.acting_kinds(), (LOCKED, FREE, WEAK))
        angle = measurement.joint_angle + self._robot.state.slip_rad
        measurement = measurement._replace(joint_angle=angle, joint_failed=first | second)
        each = [gait.command(measurement, goal, self._own(state, i), dt_s) for i, gait in enumerate(self._gaits)]
        reference = np.stack(each)[self.in_turn(), np.arange(each[0].shape[0])]
        limit = self._robot.spec.joint_limit_rad
        reference = np.clip(reference - self._shift(), -limit, limit)
        self.command_given(reference, state)
        return reference

    def command_given(self, reference: FloatArray, state: ControllerState) -> None:
        """Tell all gaits where the references (W, J) [rad] that were sent lead."""
        reference = reference + self._shift()
        for i, gait in enumerate(self._gaits):
            if hasattr(gait, "command_given"):
                gait.command_given(reference, self._own(state, i))

    def _shift(self) -> FloatArray:
        """Return the distance of each joint from what it is sent (W, J) [rad]."""
        both = (self._robot.faults, self._robot.second_faults)
        kinds = self._robot.acting_kinds()
        offsets = [(kind == OFFSET) * faults.offset_rad for kind, faults in zip(kinds, both, strict=True)]
        return self._robot.state.slip_rad + np.sum(offsets, axis=0)

    def in_turn(self) -> NDArray[np.int64]:
        """Return the number of each world's gait (W,), by the faults that act now."""
        kinds = self._robot.acting_kinds()
        without_power = ((kinds == FREE) | (kinds == WEAK)).any(axis=0)
        last = len(self._gaits) - 1
        innermost = np.where(without_power, self._distance, last).min(axis=1)
        return np.maximum(last - innermost, 0).astype(np.int64)

    @staticmethod
    def _own(state: ControllerState, i: int) -> ControllerState:
        own = {name.partition("/")[2]: values for name, values in state.items() if name.startswith(f"{i}/")}
        return own | ({PACE: state[PACE]} if PACE in state else {})
