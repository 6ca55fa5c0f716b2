"""The chain of servos in this process: bus cycles, health, and the way up and down.

A cycle: read all servos in one block, look after their health, pass the wanted references through the gate, send them.
Cycles follow each other at the bus's own rate, faster than the policy acts; between two commands the servos follow
the gated reference. Nothing that a servo or the wire does raises an exception once the robot is up: it becomes news,
a lost joint or a stop.

A goal switches a servo's torque on (see ``registers``), so after a stop not one more goal is sent.

Way up: every servo answers, is of the right model, not too hot and within its voltage; then, with little torque, its
goal is where it is; then the torque is raised over ``ramp_time_s``.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from snake_gym.hardware.body import BodySample, BringUpError
from snake_gym.hardware.calibration import Calibration
from snake_gym.hardware.clock import Clock
from snake_gym.hardware.emergency_stop import EmergencyStop
from snake_gym.hardware.exchange import PORT_GONE
from snake_gym.hardware.registers import BY_NAME, model
from snake_gym.hardware.safety import CommandGate, HealthMonitor, SafetyLimits, ServoHealth
from snake_gym.hardware.servo_bus import BlockRead, ServoBus
from snake_gym.robot.spec import FloatArray

_FULL_TORQUE = 1000
_RAMP_STEPS = 5
_FIRST, _LAST = "present_position", "present_current"


class ServoBody:
    """A ``Body`` on a bus.

    Args:
        bus: the servos; closed with the body.
        calibration: which of them is which joint.
        limits: of this run.
        clock: what the cycles are timed with.
        period_s: of a bus cycle [s].
        speed_rad_s: greatest speed of the servos themselves, (J,) or one for all; inf: theirs.
        stop: the emergency stop.
    """

    def __init__(
        self,
        bus: ServoBus,
        calibration: Calibration,
        limits: SafetyLimits,
        clock: Clock,
        period_s: float = 0.02,
        speed_rad_s: FloatArray | float = math.inf,
        stop: EmergencyStop | None = None,
    ) -> None:
        self.bus, self.calibration, self.limits, self.clock = bus, calibration, limits, clock
        self.period_s = period_s
        self.stop = EmergencyStop() if stop is None else stop
        self.watch: Callable[[BodySample], None] | None = None
        n = len(calibration.joints)
        speed = np.broadcast_to(np.asarray(speed_rad_s, dtype=np.float64), (n,)) / calibration.rad_per_step
        # 0 counts mean no limit of speed.
        self._speed = [0 if not math.isfinite(one) else max(1, round(one)) for one in speed.tolist()]
        self._angle, self._steps = np.zeros(n), np.zeros(n)
        self._rate = np.zeros(n)
        self._health = ServoHealth(np.zeros(n, bool), np.zeros(n, np.uint8), *np.full((5, n), np.nan))
        self._stamp_s = self._cycle_s = -math.inf
        self._monitor = HealthMonitor(limits, n)
        self._gate: CommandGate | None = None
        self._clamped = np.zeros(n, bool)
        self._wanted = np.zeros(n)
        self._commanded_s = -math.inf
        self._gone_since_s: float | None = None
        self._next_s = 0.0
        self._owes_goal = False
        self._stop_reason: str | None = None
        self._news: list[str] = []
        self._told_faults: tuple[str, ...] = ()

    @property
    def n_joints(self) -> int:
        return len(self.calibration.joints)

    @property
    def stop_reason(self) -> str | None:
        return self._stop_reason

    @property
    def next_cycle_s(self) -> float:
        """[s] when the next cycle is due."""
        return self._next_s

    @property
    def port_gone(self) -> bool:
        """Whether the port has vanished and is not back."""
        return self._gone_since_s is not None

    def start(self) -> BodySample:
        """Bring the robot up, if it is not. Raises BringUpError: a latched stop, or what is wrong with which joint."""
        if self._gate is None or self._stop_reason is not None:
            self._bring_up()
        self._commanded_s = self.clock.now()
        return self.sample()

    def command(self, reference: FloatArray) -> None:
        """Aim at joint references (J,) [rad]; sent at once if this cycle's goal is still owed."""
        self._wanted = np.array(reference, dtype=np.float64)
        self._commanded_s = self.clock.now()
        self.send_goal()

    def run_until(self, when_s: float) -> BodySample:
        """Cycle until ``when_s`` [s]. The last cycle's goal is owed until the next command or run."""
        self.send_goal()
        while self._next_s <= when_s + 0.25 * self.period_s:
            self.send_goal()
            self.clock.sleep(self._next_s - self.clock.now())
            self.cycle()
        self.clock.sleep(when_s - self.clock.now())
        return self.sample()

    def cycle(self) -> None:
        """Read once and look after what was read; a goal is owed afterwards."""
        now = self._cycle_s = self.clock.now()
        late = now - self._next_s
        self._next_s = now + self.period_s if late > self.period_s else self._next_s + self.period_s
        self._read(now + 0.7 * self.period_s)
        self._look_after(now)
        self._owes_goal = self._stop_reason is None and not self.port_gone
        if self.watch is not None:
            self.watch(self.sample())

    def sample(self) -> BodySample:
        """The newest sample; fresh arrays."""
        reference = self._angle.copy() if self._gate is None else self._gate.reference.copy()
        return BodySample(
            self._angle.copy(), self._rate.copy(), self._stamp_s, self._cycle_s, reference,
            self._clamped.copy(), self._monitor.lost.copy(), self._health,
        )  # fmt: skip

    def news(self) -> list[str]:
        news, self._news = self._news, []
        return news

    def halt(self, reason: str, latch: bool = False) -> None:
        """Torque off, for good until the next ``start``; ``latch``: until somebody clears the emergency stop."""
        if self._stop_reason is None:
            self._stop_reason = reason
            self._news.append(f"stopped: {reason}")
            if latch:
                self.stop.trip(reason)
        self._owes_goal = False
        off = self.bus.torque(self.calibration.ids, False)
        on = [str(joint + 1) for joint, one in enumerate(self.calibration.ids) if not off[one]]
        if on:
            self._news.append(f"torque is not known to be off in joints {', '.join(on)}: use the hardware stop")

    def close(self) -> None:
        if self._gate is not None and self._stop_reason is None:
            self.halt("closed")
        self._gate = None
        self.bus.close()

    # --- cycle -------------------------------------------------------------------------------------------------------

    def _read(self, deadline_s: float) -> None:
        read = self.bus.read_block(self.calibration.ids, _FIRST, _LAST, deadline_s)
        gone = bool(read.failures) and set(read.failures.values()) == {PORT_GONE}
        if gone and len(read.failures) == self.n_joints:
            if self._gone_since_s is None:
                self._gone_since_s = read.stamp_s
                self._news.append("the port is gone")
            return
        self._take(read)
        if self._gone_since_s is not None:
            self._news.append(f"the port is back after {read.stamp_s - self._gone_since_s:.2f} s")
            self._gone_since_s = None
            self._wanted = self._angle.copy()
            self._gate = self._new_gate()

    def _take(self, read: BlockRead) -> None:
        ids, health = self.calibration.ids, {}
        answered = np.array([read.values[one] is not None for one in ids])
        for name in ("position", "speed", "load", "temperature", "voltage", "current"):
            scale = 1.0 if name in ("position", "speed") else BY_NAME[f"present_{name}"].encoding.scale
            told = [read.values[one] for one in ids]
            health[name] = np.array([math.nan if one is None else one[f"present_{name}"] * scale for one in told])
        self._steps = np.where(answered, health["position"], self._steps)
        self._angle = np.where(answered, self.calibration.angles(health["position"]), self._angle)
        rate = self.calibration.rates(health["speed"])
        self._rate = np.where(answered, rate, 0.0)
        error = np.array([read.errors.get(one, 0) for one in ids], np.uint8)
        self._health = ServoHealth(
            answered, error, rate, health["load"], health["temperature"], health["voltage"], health["current"]
        )
        if answered.any():
            self._stamp_s = read.stamp_s

    def _look_after(self, now: float) -> None:
        if self._stop_reason is not None:
            return
        if self.stop.tripped:
            self.halt(f"emergency stop: {self.stop.reason}")
        elif self._gone_since_s is not None:
            if now - self._gone_since_s > self.limits.port_timeout_s:
                self.halt(f"the port has been gone for {self.limits.port_timeout_s:g} s")
        elif now - self._commanded_s > self.limits.command_timeout_s:
            self.halt(f"no command for {self.limits.command_timeout_s:g} s")
        else:
            news, reason = self._monitor.check(self._health, self.period_s)
            self._news += [line for line in news if line not in self._told_faults]
            self._told_faults = self._health.faults
            if reason is not None:
                self.halt(reason, latch=True)

    def send_goal(self) -> None:
        """Send what this cycle still owes, through the gate."""
        if not self._owes_goal:
            return
        self._owes_goal = False
        if self._gate is None or self._stop_reason is not None:
            return
        gated = self._gate.pass_on(self._wanted, self.period_s)
        if gated.refused:
            self._news.append("a reference that is no number was refused")
        self._clamped = gated.clamped
        steps = self.calibration.steps(gated.reference, self._steps)
        self.bus.write_targets(self.calibration.ids, steps.tolist(), self._speed)

    # --- the way up --------------------------------------------------------------------------------------------------

    def _bring_up(self) -> None:
        if self.stop.tripped:
            raise BringUpError(f"the emergency stop is tripped: {self.stop.reason}; clear it with estop --clear")
        ids = self.calibration.ids
        missing = [joint for joint, one in enumerate(ids) if not self._is_right_model(joint, one)]
        if len(missing) > self.limits.max_lost_joints:
            names = ", ".join(f"{joint + 1} (servo {ids[joint]})" for joint in missing)
            raise BringUpError(f"joints {names} do not answer; at most {self.limits.max_lost_joints} may be missing")
        self._take(self.bus.read_block(ids, _FIRST, _LAST, None))
        self._monitor = HealthMonitor(self.limits, self.n_joints)
        self._monitor.lost[missing] = True
        _, reason = HealthMonitor(self.limits, self.n_joints).check(self._health, self.period_s)
        if reason is not None:
            raise BringUpError(reason)
        present = [joint for joint in range(self.n_joints) if joint not in missing]
        if not self._health.answered[present].all():
            raise BringUpError("a servo that answered a ping does not answer a reading; look at the wiring")
        self._raise_torque([ids[joint] for joint in present], present)
        self._gate = self._new_gate()
        self._wanted = self._angle.copy()
        self._stop_reason, self._gone_since_s = None, None
        self._next_s = self.clock.now()
        self._owes_goal = False

    def _is_right_model(self, joint: int, servo_id: int) -> bool:
        info = self.bus.ping(servo_id)
        if info is None:
            self._news.append(f"joint {joint + 1} (servo {servo_id}) does not answer")
            return False
        expected = model(self.calibration.model).number
        if expected is not None and info.model != expected:
            raise BringUpError(
                f"joint {joint + 1} (servo {servo_id}) says it is model {info.model}; "
                f"expected {expected} ({self.calibration.model})"
            )
        return True

    def _raise_torque(self, ids: list[int], joints: list[int]) -> None:
        steps = [int(self._steps[joint]) for joint in joints]
        for part in range(_RAMP_STEPS):
            share = self.limits.torque_limit * (part + 1) / _RAMP_STEPS
            for servo_id in ids:
                if not self.bus.write_register(servo_id, "torque_limit", round(_FULL_TORQUE * share)):
                    self.bus.torque(self.calibration.ids, False)
                    raise BringUpError(f"servo {servo_id} does not take a torque limit")
            if part == 0:
                # The goal is where it is, and switches the torque on.
                self.bus.write_targets(ids, steps, [self._speed[joint] for joint in joints])
                on = self.bus.torque(ids, True)
                if not all(on.values()):
                    silent = ", ".join(str(one) for one, known in on.items() if not known)
                    self.bus.torque(self.calibration.ids, False)
                    raise BringUpError(f"servos {silent} do not switch their torque on")
            self.clock.sleep(self.limits.ramp_time_s / _RAMP_STEPS)

    def _new_gate(self) -> CommandGate:
        return CommandGate(self.calibration.low_rad, self.calibration.high_rad, self.limits, self._angle)
