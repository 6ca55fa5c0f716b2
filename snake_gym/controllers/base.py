"""What a controller is: measurements and a goal in, joint references out, its own state carried by the caller.

A controller is a frozen set of parameters; everything that changes lives in a ``ControllerState``, a dict of arrays
whose first axis counts worlds, so that an env can mask-reset, save and restore it. It sees the *nominal* robot only.
"""

from __future__ import annotations

from typing import Protocol

from numpy.typing import NDArray
import numpy as np

from snake_gym.robot.measurement import Goal, Measurement
from snake_gym.robot.spec import FloatArray

ControllerState = dict[str, FloatArray]


class Controller(Protocol):
    """A classical gait controller for W robots at once."""

    @property
    def n_joints(self) -> int: ...

    def initial_state(self, n_worlds: int) -> ControllerState:
        """State at the start of an episode; every array has shape (n_worlds, ...)."""
        ...

    def command(self, measurement: Measurement, goal: Goal, state: ControllerState, dt_s: float) -> FloatArray:
        """Joint references (W, J) [rad] to hold for the next ``dt_s`` [s]; advances ``state`` in place."""
        ...

    def phase(self, state: ControllerState) -> FloatArray:
        """Gait phase (W,) [rad] that the next ``command`` will use."""
        ...


def reset_worlds(controller: Controller, state: ControllerState, mask: NDArray[np.bool_]) -> None:
    """Put the worlds in ``mask`` (W,) back to the controller's initial state, in place."""
    fresh = controller.initial_state(1)
    for name, values in state.items():
        values[mask] = fresh[name][0]
