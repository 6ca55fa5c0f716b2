"""Servo chain in this process: bus cycles, health checks, bring-up and torque-off.

A cycle reads all servos in one block, checks their health, passes the wanted references through the gate and sends
them. Cycles follow each other at the bus's own rate, faster than the policy acts. Once the robot is up, no fault of a
servo or the wire raises an exception: it becomes news, a lost joint or a stop.

A goal switches a servo's torque on (see ``feetech``), so none is sent after a stop, nor to a servo that has been
silent: it may have restarted, without its torque limit. Such a servo is checked as during bring-up, and follows again
from the present angle of its joint.

After a stop, torque-off is repeated in the cycles until every servo confirms it, even if a servo or the whole port was
away at the time of the stop (``torque_off_pending``).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from snake_gym.hardware.bus.bus import ADAPTER_S, PORT_GONE, READING_SHARE, Bus, close_locks
from snake_gym.hardware.bus.family import READING, ServoError
from snake_gym.hardware.bus.transport import SerialTransport
from snake_gym.hardware.calibration.calibration import Calibration
from snake_gym.hardware.guard.body import BodySample, BringUpError, ServoReadings
from snake_gym.hardware.guard.bring_up import (
    PATIENCE_S,
    Look,
    check_reading,
    find_missing,
    raise_torque,
    servo_faults,
    set_torque_limit,
)
from snake_gym.hardware.guard.checks import CommandGate, HealthMonitor, SafetyLimits, beyond_range
from snake_gym.hardware.guard.emergency_stop import EmergencyStop
from snake_gym.hardware.guard.torque_switch import TorqueSwitch
from snake_gym.robot.spec import FloatArray

_ABSENT_S = 0.1
"""Silence after which a servo may have restarted [s]."""
_PATIENCE_S = 0.005
"""Longest delay of an answer on a slow wire: the most that a USB adapter and a busy computer add [s]."""


class ServoBody:
    """Servo chain on a bus of this process, which is closed with it.

    Args:
        period_s: period of a bus cycle [s].
        speed_rad_s: speed limit set in the servos, (J,) or one for all; inf: their own.
        stop: the emergency stop; None: this user's.
        board: port of a board on the servos' supply; closed with the bus.
    """

    def __init__(
        self, bus: Bus, calibration: Calibration, limits: SafetyLimits, period_s: float = 0.02,
        speed_rad_s: FloatArray | float = math.inf, stop: EmergencyStop | None = None,
        board: SerialTransport | None = None,
    ) -> None:  # fmt: skip
        self.bus, self.calibration, self.clock = bus, calibration, bus.clock
        self.limits = limits = limits.of_model(calibration.model)
        self.period_s = period_s
        self.sending_s = bus.cycle_time(calibration.ids).goals_s + ADAPTER_S
        """Time [s] that the goals of all servos take."""
        self.torque = TorqueSwitch(bus, calibration.ids, stop or EmergencyStop(), board)
        self.watch: Callable[[BodySample], None] | None = None
        """Function called with every sample, once a bus cycle; its reference was sent before the sample was read."""
        self.n_joints = n = len(calibration.joints)
        self._speed = calibration.goal_speeds(speed_rad_s)
        self._read = ServoReadings(calibration)
        self._cycle_s = self._line_free_s = -math.inf
        self._monitor = HealthMonitor(limits, n)
        self._gate = self._new_gate()
        self._is_up = False
        self._follows = np.zeros(n, bool)
        self._wanted = np.zeros(n)
        self._commanded_s = -math.inf
        self._gone_since_s: float | None = None
        self.next_cycle_s = 0.0
        """Time when the next cycle is due [s]."""
        self._owes_goal = False
        self._news = self.torque.news
        self._refused: set[str] = set()

    @property
    def stop_reason(self) -> str | None:
        """Reason why the torque is off; None: it is on, or the robot has not been started."""
        return self.torque.stop_reason

    @property
    def torque_off_pending(self) -> bool:
        """True if the robot has stopped, but not every servo has confirmed that its torque is off."""
        return self.stop_reason is not None and bool(self.torque.pending)

    def start(self, look: Look = lambda: None) -> BodySample:
        """Bring the robot up, if it is not, and return a sample. Raises BringUpError, with all torque off: a latched
        stop, a fault of a joint, or by ``look``, called at least every 20 ms or once a servo."""
        if not self._is_up or self.stop_reason is not None:
            try:
                self._bring_up(look)
            except BaseException:
                self.torque.abandon(self.calibration.ids)
                raise
        self._cycle_s = -math.inf  # a pause without readings is no silence of the servos
        self._commanded_s = self.clock.now()
        return self.sample()

    def command(self, reference: FloatArray) -> None:
        """Aim at joint references (J,) [rad]; they are sent at once if this cycle still owes a goal."""
        self._wanted = np.array(reference, dtype=np.float64)
        self._commanded_s = self.clock.now()
        self.send_goal()

    def run_until(self, when_s: float) -> BodySample:
        """Run cycles until ``when_s`` [s]. The last cycle's goal is owed until the next command or run."""
        self.send_goal()
        while self.next_cycle_s <= when_s + 0.25 * self.period_s:
            self.send_goal()
            self.clock.sleep(self.next_cycle_s - self.clock.now())
            self.cycle()
        self.clock.sleep(when_s - self.clock.now())
        return self.sample()

    def cycle(self) -> None:
        """Read all servos once and check the readings; a goal is owed afterwards."""
        self.torque.look()
        now = self.clock.now()
        passed_s = now - self._cycle_s if math.isfinite(self._cycle_s) else self.period_s
        self._cycle_s, late = now, now - self.next_cycle_s
        self.next_cycle_s = self.period_s + (now if late > self.period_s else self.next_cycle_s)
        deadline_s = self._reading_ends_s(now)
        self._ask(deadline_s)
        if self.stop_reason is None:
            self._look_after(now, passed_s, max(late, self.clock.now() - deadline_s))
        self._owes_goal = self.stop_reason is None and self._gone_since_s is None
        if self.watch is not None:
            self.watch(self.sample())

    def sample(self) -> BodySample:
        """Return the newest sample, in fresh arrays."""
        return BodySample(
            self._read.angle.copy(), self._read.rate.copy(), self._read.stamp_s, self._cycle_s,
            self._gate.reference.copy(), self._gate.clamped.copy(), self._monitor.lost.copy(), self._read.health,
        )  # fmt: skip

    def news(self) -> list[str]:
        """Return the events since the last call, one line each."""
        return self.torque.take_news()

    def close(self) -> None:
        """Switch the torque off, as far as the servos can be reached, and free the port; may be called twice."""
        try:
            if self.torque.pending:
                self.torque.halt("closed")
        finally:
            self._is_up = False
            self.torque.close()

    # --- cycle -------------------------------------------------------------------------------------------------------

    def _reading_ends_s(self, now_s: float) -> float:
        """Return the time [s] when a reading that begins now, or after the goals, is given up."""
        cycle = self.bus.cycle_time(self.calibration.ids)
        whole_s = cycle.reading_s + cycle.latency_s + _PATIENCE_S
        most_s = min(whole_s, self.period_s - self.sending_s)
        return max(now_s, self._line_free_s) + max(READING_SHARE * self.period_s, most_s)

    def _ask(self, deadline_s: float) -> None:
        read = self.bus.read_block(self.calibration.ids, *READING, deadline_s=deadline_s)
        gone = bool(read.failures) and set(read.failures.values()) == {PORT_GONE}
        if gone and len(read.failures) == self.n_joints:
            if self._gone_since_s is None:
                self._gone_since_s = read.stamp_s
                self._news.append("the port is gone")
            return
        self._read.take(read)
        if self._gone_since_s is not None:
            self._news.append(f"the port is back after {read.stamp_s - self._gone_since_s:.2f} s")
            self._gone_since_s = None
            self._wanted = self._read.angle.copy()
            self._gate = self._new_gate()
            self._follows[:] = False

    def _look_after(self, now: float, passed_s: float, late_s: float) -> None:
        halt, limits = self.torque.halt, self.limits
        if self._gone_since_s is not None:
            if now - self._gone_since_s > limits.port_timeout_s:
                halt(f"the port has been gone for {limits.port_timeout_s:g} s")
        elif now - self._commanded_s > limits.command_timeout_s:
            halt(f"no command for {limits.command_timeout_s:g} s (safety.command_timeout_s)")
        else:
            news, reason = self._monitor.check(self._read.health, passed_s, late_s)
            self._news += news
            for joint, place in self._beyond().items():
                reason = reason or f"joint {joint + 1} {place}"
            if reason is not None:
                halt(reason, latch=True)
            else:
                self._look_after_absent()

    def _look_after_absent(self) -> None:
        """Send no goals to servos that may have restarted; let those that are back follow again."""
        blind = (self._read.health.error & ServoError.ENCODER) != 0
        self._follows &= ~(blind | (self._monitor.silent_s > _ABSENT_S))
        away = np.flatnonzero(~self._follows & self._read.health.answered & ~blind).tolist()
        back = [joint for joint in away if self._take_back(joint)]
        if back:
            names = ", ".join(str(joint + 1) for joint in back)
            gap_s = float(self._monitor.gap_s[back].max())
            silent = f"were silent for {gap_s:.2f} s and " if math.isfinite(gap_s) else ""
            self._news.append(f"joints {names} {silent}follow again")

    def _take_back(self, joint: int) -> bool:
        """Let a servo that was away follow again, from its joint's present angle and with this run's torque."""
        servo_id, wrong = self.calibration.ids[joint], servo_faults(self.bus, self.calibration, joint)
        refused = "; ".join(wrong or ())
        if refused and refused not in self._refused:
            self._refused.add(refused)
            self._news.append(f"{refused}: it stays limp")
        if wrong != [] or not set_torque_limit(self.bus, servo_id, self.limits.torque_limit):
            return False
        self.torque.expect_on([servo_id])  # its place is the goal before the torque is on
        self.bus.write_targets([servo_id], [round(self._read.steps[joint])], [self._speed[joint]])
        if not self.bus.torque([servo_id], True)[servo_id]:
            return False
        self._gate.rest_at(joint, float(self._read.angle[joint]))
        self._follows[joint] = True
        return True

    def send_goal(self) -> None:
        """Send the goal that this cycle still owes, through the gate."""
        owes, self._owes_goal = self._owes_goal, False
        if not owes or not self._is_up or self.stop_reason is not None:
            return
        if not self._gate.pass_on(self._wanted, self.period_s):
            self._news.append("a reference that is no number was refused")
        steps, ids = self.calibration.steps(self._gate.reference, self._read.steps).tolist(), self.calibration.ids
        chosen = [(ids[joint], steps[joint], self._speed[joint]) for joint in np.flatnonzero(self._follows)]
        if chosen:
            ids, goals, speeds = zip(*chosen, strict=True)
            self.torque.expect_on(ids)
            self.bus.write_targets(ids, goals, speeds)
            self._line_free_s = self.clock.now() + self.bus.cycle_time(ids).goals_s

    # --- the way up --------------------------------------------------------------------------------------------------

    def _bring_up(self, look: Look) -> None:
        torque = self.torque

        def asked() -> None:
            torque.beat()
            torque.check_stop()
            look()

        asked()
        ids = self.calibration.ids
        missing = find_missing(self.bus, self.calibration, self.limits.max_lost_joints, asked)
        self._news += [f"joint {joint + 1} (servo {ids[joint]}) does not answer" for joint in missing]
        present = [joint for joint in range(self.n_joints) if joint not in missing]
        opened = [str(one) for one in close_locks(self.bus, [ids[joint] for joint in present])]
        if opened:
            self._news.append(f"the memory of servos {', '.join(opened)} was open: it is closed now")
        complaint = self.bus.cycle_time(ids).too_short(self.period_s, len(ids), self.bus.baud)
        if complaint is not None:
            raise BringUpError(complaint)
        give_up_s = self.clock.now() + PATIENCE_S
        self._read.take(self.bus.read_block(ids, *READING))
        while not self._read.health.answered[present].all() and self.clock.now() < give_up_s:
            asked()
            self._read.take(self.bus.read_block(ids, *READING))
        self._monitor = HealthMonitor(self.limits, self.n_joints)
        self._monitor.miss(missing)
        check_reading(self._read.health, self._beyond(), self.calibration, self.limits, present)
        torque.expect_on(ids[joint] for joint in present)
        steps = self._read.steps.astype(int)
        goals = [(ids[joint], int(steps[joint]), self._speed[joint]) for joint in present]
        raise_torque(self.bus, goals, self.limits.torque_limit, self.limits.ramp_time_s, asked)
        self._gate, self._is_up = self._new_gate(), True
        self._wanted = self._read.angle.copy()
        self._follows = np.isin(np.arange(self.n_joints), present)
        self._refused, torque.stop_reason, self._gone_since_s = set(), None, None
        self.next_cycle_s = self.clock.now()
        self._owes_goal = False

    def _beyond(self) -> dict[int, str]:
        low, high = self.calibration.low_rad, self.calibration.high_rad
        return beyond_range(self._read.angle, low, high, self.limits.runaway_rad)

    def _new_gate(self) -> CommandGate:
        return CommandGate(self.calibration.low_rad, self.calibration.high_rad, self.limits, self._read.angle)
