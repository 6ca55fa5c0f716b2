"""A servo chain as the control loop sees it: joint references in, samples out.

Joint angles are phi_i = theta_i - theta_{i+1} [rad], joint 1 at the tail; what the servos count is in ``calibration``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from snake_gym.hardware.clock import Clock
from snake_gym.hardware.safety import BoolArray, ServoHealth
from snake_gym.robot.spec import FloatArray

PORT_AWAY = "the port is gone"
"""News; until it is back the last reading is told again in every cycle."""


class BringUpError(RuntimeError):
    """The robot may not move: why, one line for each thing that is wrong."""


class BodySample(NamedTuple):
    """What the servos said last."""

    joint_angle: FloatArray
    """(J,) [rad]; of a joint that does not answer, the last one."""
    joint_rate: FloatArray
    """(J,) [rad/s]; 0 for a joint that does not answer."""
    stamp_s: float
    """[s] when it was read."""
    cycle_s: float
    """[s] when the last bus cycle began: later than ``stamp_s`` where nobody answered in it."""
    reference: FloatArray
    """(J,) [rad] what was really asked of the servos last."""
    clamped: BoolArray
    """(J,) where that is not what was wanted."""
    lost: BoolArray
    """(J,) joints that no longer answer."""
    health: ServoHealth


class Body(Protocol):
    """A servo chain, in this process or guarded by another one."""

    clock: Clock
    watch: Callable[[BodySample], None] | None
    """Told every sample as it comes, once each bus cycle; its reference is what was sent before it was read."""

    @property
    def n_joints(self) -> int: ...

    @property
    def stop_reason(self) -> str | None:
        """Why the torque is off; None: it is on, or the robot has not been started."""
        ...

    def start(self) -> BodySample:
        """Bring the robot up, if it is not: torque on, holding the present shape. Raises BringUpError."""
        ...

    def command(self, reference: FloatArray) -> None:
        """Aim at joint references (J,) [rad] from now on."""
        ...

    def run_until(self, when_s: float) -> BodySample:
        """Go on until ``when_s`` [s] and give the sample of that time."""
        ...

    def news(self) -> list[str]:
        """What has happened since the last call, one line each."""
        ...

    def close(self) -> None:
        """Torque off, port free; may be called twice."""
        ...
