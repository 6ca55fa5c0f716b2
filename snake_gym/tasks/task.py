"""What a task is to the env: where the robot starts, where it shall go, how a step is scored, when the episode ends.

A task holds the truth of W worlds and may use it, for scores and ends. What a policy is shown of it is the ``Goal``
alone. Everything that changes lies in arrays whose first axis counts worlds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from snake_gym.physics.state import ChainState, Obstacles
from snake_gym.robot.measurement import Goal
from snake_gym.robot.spec import FloatArray

BoolArray = NDArray[np.bool_]


class Start(NamedTuple):
    """Where the robots of M worlds begin."""

    point_xy: FloatArray
    """(M, 2) [m] the tracked point."""
    head_angle: FloatArray
    """(M,) [rad] of the head link."""


class Scenery(NamedTuple):
    """What lies in one world, for pictures."""

    features: FloatArray
    """(k, 6) obstacles, see ``physics.state.Obstacles``."""
    route_xy: FloatArray
    """(r, 2) [m] the way to the goal."""


class Task(Protocol):
    """One task in W worlds."""

    tracked_point: str
    """"centre" or "head": the point of the robot that counts."""
    radius_m: float
    """A target is reached when the tracked point is this near [m]."""
    purpose: str
    """Name of the random streams that ``begin`` gets its numbers from."""
    score: str
    """Name of the info by which policies are compared: "progress_m" or "is_success"."""
    weights: Mapping[str, float]
    """Of the reward terms; the reward is the sum of weight times term."""
    targets_xy: FloatArray
    """(W, K, 2) [m] the places to reach, in order."""
    index: NDArray[np.int64]
    """(W,) current target; equal to the number of targets reached."""
    progress_m: FloatArray
    """(W,) [m] way made so far."""

    @property
    def n_random(self) -> int:
        """Random numbers that ``begin`` needs per world."""
        ...

    @property
    def obstacles(self) -> Obstacles | None:
        """What the robots may touch: the same arrays for good, rewritten in place by ``begin``; None: nothing."""
        ...

    def begin(self, joint_angle: FloatArray, heading: FloatArray, u: FloatArray, rows: NDArray[np.int64]) -> Start:
        """New episodes in the worlds of ``rows`` (M indices); returns where their robots are to start.

        Args:
            joint_angle: (M, J) [rad] the robots' shape.
            heading: (M,) [rad] a direction that the task may use or not.
            u: (M, n_random) numbers in [0, 1).
        """
        ...

    def point(self, state: ChainState) -> FloatArray:
        """True position (W, 2) [m] of the tracked point."""
        ...

    def aim(self, measured_xy: FloatArray, rows: Any) -> None:
        """Choose what ``goal`` shows the worlds of ``rows`` (M), whose tracked point was measured at (M, 2) [m]."""
        ...

    def goal(self) -> Goal:
        """Where to go now. Not to be written to."""
        ...

    def evaluate(
        self, before_xy: FloatArray, state: ChainState, action: FloatArray, work_j: FloatArray, live: BoolArray
    ) -> tuple[dict[str, FloatArray], BoolArray]:
        """Raw reward terms (dict of (W,), named as in ``weights``) of one step and which worlds are complete.

        Args:
            before_xy: (W, 2) [m] tracked point at the step's start.
            action: (W, A).
            work_j: (W,) [J] positive actuator work of the step.
            live: (W,) worlds that took the step.
        """
        ...

    def infos(self) -> dict[str, NDArray[Any]]:
        """What is told of each world's episode so far; fresh arrays (W,). ``progress_m`` and ``is_success`` are."""
        ...

    def scenario(self) -> dict[str, NDArray[Any]]:
        """What the present episodes were given; copies (W, ...)."""
        ...

    def scenery(self, world: int) -> Scenery | None:
        """What lies in one world; None: nothing but targets."""
        ...

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        """Everything that changes, by name: the arrays themselves."""
        ...

    def check_state(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Raise ValueError unless ``arrays``, to be written into those of ``state_arrays``, go together.

        Their shapes and kinds are right, and they are finite. What follows from others of them is not to be trusted.
        """
        ...

    def restored(self) -> None:
        """Make the rest follow after the arrays of ``state_arrays`` were written to."""
        ...
