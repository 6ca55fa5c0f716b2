"""Joints of the user's own behind the control loop: over ROS, CAN, HEBI, or whatever is no servo bus of this package.

``connection.body`` names a class of ``Joints``. Policies, tasks, commands and logs are those of servo chains; so are
the clamps of every reference, the emergency stop, the time-outs and the counting of lost joints. There is no guard
process: cycles run within steps only, so whatever drives the motors has to let them go by itself if this process dies,
or pauses.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable

import numpy as np

from snake_gym.hardware.bus.clock import Clock, MonotonicClock
from snake_gym.hardware.guard.body import BodySample, BringUpError
from snake_gym.hardware.guard.checks import CommandGate, HealthMonitor, SafetyLimits, ServoHealth
from snake_gym.hardware.guard.emergency_stop import EmergencyStop
from snake_gym.robot.spec import FloatArray

_FIRST_S = 3.0
"""Longest wait for the first angles of all joints [s]."""
_OFF_S = 1.0
"""Longest wait at the end for joints to be known to be without power [s]."""


class Joints:
    """Joints of one robot: J of them, joint 1 at the tail; a positive angle bends the robot to its right.

    Made as ``NAME(robot, **connection.body_arguments)``. Only ``start`` may raise, or wait.
    """

    clock: Clock = MonotonicClock()
    """Clock of the stamps, and of the loop: a simulation may bring its own."""

    def start(self) -> None:
        """Get ready to move, where the joints are. Raises BringUpError: the robot may not move."""

    def read(self) -> tuple[FloatArray, FloatArray, float]:
        """Return the latest angles (J,) [rad] and rates (J,) [rad/s], NaN of a silent joint, and their time [s]."""
        raise NotImplementedError

    def send(self, reference: FloatArray) -> None:
        """Aim at references (J,) [rad], which are clamped already."""
        raise NotImplementedError

    def let_go(self) -> bool:
        """Take the power off all joints; called until it returns True: it is known to be off."""
        raise NotImplementedError

    def close(self) -> None:
        """Free whatever is held."""


class OwnBody:
    """Body of ``joints`` for the control loop, in this process.

    Args:
        name: name of their class, for ``estop``.
        limit_rad: range of the joints, to both sides.
        period_s: period of a cycle: a reading, checks, references.
    """

    def __init__(
        self, joints: Joints, name: str, limit_rad: FloatArray, limits: SafetyLimits, period_s: float,
        stop: EmergencyStop,
    ) -> None:  # fmt: skip
        self._joints, self._limits, self._period_s, self._stop = joints, limits, period_s, stop
        self._lock = {"device": f"{name} {os.getpid()}", "ids": []}
        self.clock, self.n_joints = joints.clock, limit_rad.size
        self._limit = limit_rad
        self._angle, self._rate = np.zeros((2, self.n_joints))
        self._stamp_s = self._cycle_s = -math.inf
        self._next_s = self._commanded_s = 0.0
        self._gate = CommandGate(-limit_rad, limit_rad, limits, self._angle)
        self._monitor = HealthMonitor(limits, self.n_joints)
        self._health: ServoHealth | None = None
        self._wanted = self._angle
        self._news: list[str] = []
        self._is_up = False
        self.torque_off_pending = False
        """True while the joints are not known to be without power, though they should."""
        self.watch: Callable[[BodySample], None] | None = None
        """Function called with every sample, once a cycle."""
        self.stop_reason: str | None = None
        """Reason why the robot has let go; None: it has not."""

    def start(self) -> BodySample:
        """Bring the robot up, if it is not, and return a sample. Raises BringUpError."""
        if not self._is_up or self.stop_reason is not None:
            if self._stop.tripped:
                raise BringUpError(f"emergency stop: {self._stop.reason}; {self._stop.how_to_clear}")
            self._stop.hold("run", self._lock)
            if math.isfinite(self._stamp_s):
                self._read()  # what is from before a stop counts no more
            self._is_up, self.stop_reason = True, None
            try:
                self._joints.start()
                self._take_first()
            except BaseException as error:
                self._halt(str(error))
                raise
        self._cycle_s = self._commanded_s = self._next_s = self.clock.now()
        return self.sample()

    def _take_first(self) -> None:
        """Wait for angles of all joints, and begin where they are. Raises BringUpError."""
        give_up_s = self.clock.now() + _FIRST_S
        while not self._read().answered.all():
            if self.clock.now() > give_up_s:
                raise BringUpError(f"not all joints say their angles within {_FIRST_S:g} s")
            self.clock.sleep(self._period_s)
        if away := self._beyond():
            raise BringUpError(away)
        self._gate = CommandGate(-self._limit, self._limit, self._limits, self._angle)
        self._monitor, self._wanted = HealthMonitor(self._limits, self.n_joints), self._angle.copy()

    def command(self, reference: FloatArray) -> None:
        """Aim at joint references (J,) [rad] from now on."""
        last_s, self._commanded_s = self._commanded_s, self.clock.now()
        self._wanted = np.array(reference, dtype=np.float64)
        if self.stop_reason is None and self._commanded_s - last_s > self._limits.command_timeout_s:
            self._halt(self._no_command())

    def run_until(self, when_s: float) -> BodySample:
        """Run cycles until ``when_s`` [s]. Return the newest sample."""
        while self._next_s <= when_s + 0.25 * self._period_s:
            self.clock.sleep(self._next_s - self.clock.now())
            try:
                self._cycle()
            except BaseException as error:
                if self.stop_reason is None:
                    self._halt(f"{type(error).__name__}: {error}")
                raise
        self.clock.sleep(when_s - self.clock.now())
        return self.sample()

    def _cycle(self) -> None:
        now = self.clock.now()
        passed_s, self._cycle_s = now - self._cycle_s, now
        self._next_s = max(self._next_s, now - self._period_s) + self._period_s  # no burst after a pause
        health = self._read()
        if self.stop_reason is not None:
            self._let_go()
        elif self._stop.tripped:
            self._halt(f"emergency stop: {self._stop.reason}")
        elif now - self._commanded_s > self._limits.command_timeout_s:
            self._halt(self._no_command())
        else:
            lost = self._monitor.lost.copy()
            news, reason = self._monitor.check(health, passed_s)
            for joint in np.flatnonzero(lost & ~self._monitor.lost).tolist():
                self._gate.rest_at(joint, self._angle[joint])
            self._news += news
            if reason := reason or self._beyond():
                self._stop.trip(reason)
                self._halt(reason)
            else:
                if not self._gate.pass_on(self._wanted, self._period_s):
                    self._news.append("a reference that is no number was refused")
                self._joints.send(self._gate.reference.copy())
        if self.watch is not None:
            self.watch(self.sample())

    def _read(self) -> ServoHealth:
        """Take a reading. Return which joints have new angles; nothing more is known of them."""
        *both, stamp_s = self._joints.read()
        angle, rate = (np.reshape(values, self.n_joints) for values in both)
        seen = np.isfinite(angle) & np.isfinite(rate) & (stamp_s > self._stamp_s)
        self._angle, self._rate = np.where(seen, angle, self._angle), np.where(seen, rate, 0.0)
        self._stamp_s = max(self._stamp_s, stamp_s)
        unknown = np.full((4, self.n_joints), np.nan)
        self._health = ServoHealth(seen, np.zeros(self.n_joints, np.uint8), self._rate, *unknown)
        return self._health

    def _beyond(self) -> str | None:
        away = np.abs(self._angle) - self._limit - self._limits.runaway_rad
        joint = int(away.argmax())
        return f"joint {joint + 1} is at {self._angle[joint]:.3g} rad, outside its range" if away[joint] > 0 else None

    def sample(self) -> BodySample:
        """Return the newest sample, in fresh arrays."""
        assert self._health is not None
        return BodySample(
            self._angle.copy(), self._rate.copy(), self._stamp_s, self._cycle_s, self._gate.reference.copy(),
            self._gate.clamped.copy(), self._monitor.lost.copy(), self._health,
        )  # fmt: skip

    def news(self) -> list[str]:
        """Return the events since the last call, one line each."""
        news, self._news = self._news, []
        return news

    def _no_command(self) -> str:
        return f"no command for {self._limits.command_timeout_s:g} s (safety.command_timeout_s)"

    def _halt(self, reason: str) -> None:
        self.stop_reason, self.torque_off_pending = reason, True
        self._news.append(f"stopped: {reason}")
        self._let_go()

    def _let_go(self) -> None:
        if self.torque_off_pending and self._joints.let_go():
            self.torque_off_pending = False
            self._stop.release()

    def close(self) -> None:
        """Let the joints go, and free what they hold; may be called twice."""
        if self._is_up and self.stop_reason is None:
            self._halt("closed")
        give_up_s = self.clock.now() + _OFF_S
        while self.torque_off_pending and self.clock.now() < give_up_s:
            self._let_go()
            self.clock.sleep(self._period_s)
        if self.torque_off_pending:
            self._news.append("torque is not known to be off: use the hardware stop")
        self._is_up = False
        self._joints.close()
