"""Servo chain in this process: bus cycles, health checks, bring-up and torque-off.

A cycle reads all servos in one block, checks their health, passes the wanted references through the gate and sends
them. Cycles follow each other at the bus's own rate, faster than the policy acts. Once the robot is up, no fault of a
servo or the wire raises an exception: it becomes news, a lost joint or a stop.

A goal switches a servo's torque on (see ``feetech``), so none is sent after a stop, nor to a servo that has been
silent: it may have restarted, without its torque limit. Such a servo is checked as during bring-up, and follows again
from the present angle of its joint.

On the way up every servo is checked, then the torque rises in steps, with goals where the joints are. A servo may move
the robot if it answers, has the settings of its calibration, runs in position mode, has limits that leave the joint its
calibrated range, and does not have to drive across its encoder's zero, which no servo does within one turn.

After a stop, torque-off is repeated in the cycles until every servo confirms it, even if a servo or the whole port was
away at the time of the stop (``torque_off_pending``).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from snake_gym.hardware.bus.bus import ADAPTER_S, PORT_GONE, READING_SHARE, WATCHDOG_S, Bus, say_twins, set_back
from snake_gym.hardware.bus.family import READING, ServoError, describe_error
from snake_gym.hardware.bus.transport import SerialTransport
from snake_gym.hardware.calibration.calibration import Calibration, changes, faults, read_held
from snake_gym.hardware.guard.body import BodySample, BringUpError, ServoReadings
from snake_gym.hardware.guard.checks import CommandGate, HealthMonitor, SafetyLimits
from snake_gym.hardware.guard.emergency_stop import EmergencyStop
from snake_gym.hardware.guard.torque_switch import TorqueSwitch
from snake_gym.robot.spec import FloatArray

Look = Callable[[], None]
"""Function called all the time during bring-up; it raises BringUpError to end it."""

_RAMP_STEPS = 5
_LOOK_S = 0.02
"""Time between two calls of ``look`` [s]."""
_UP_PATIENCE_S = 0.5
"""Time for which silent servos are asked again on the way up [s]."""
_BEND_BACK = (
    "bend it back by hand; where the robot does not look like that, calibrate again "
    "(python -m snake_gym.hardware calibrate)"
)
_SET_BACK = {
    "lock": (0, 1, "the memory of servos {} was open: it is closed now"),
    "bus_watchdog": (-1, 0, "servos {} had stopped by themselves, as nobody spoke to them any more"),
}
"""Registers that a killed program leaves behind: count, the right one, and what to say."""
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
        self._has_watchdog = "bus_watchdog" in bus.family.by_name
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
        if self._has_watchdog and self.clock.now() - self.torque.fed_s > 0.5 * WATCHDOG_S:
            self._follows[:] = False  # they may have stopped by themselves
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
        self.torque.fed_s = self.clock.now()
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
            silent = f"were silent for {gap_s:.2f} s and " if 0.0 < gap_s < math.inf else ""
            self._news.append(f"joints {names} {silent}follow again")

    def _take_back(self, joint: int) -> bool:
        """Let a servo that was away follow again, from its joint's present angle and with this run's torque."""
        servo_id, wrong = self.calibration.ids[joint], self._servo_faults(joint)
        refused = "; ".join(wrong or ())
        if refused and refused not in self._refused:
            self._refused.add(refused)
            self._news.append(f"{refused}: it stays limp")
        set_back(self.bus, [servo_id], "bus_watchdog", -1, 0)
        if wrong != [] or not self._set_torque_limit(servo_id, self.limits.torque_limit):
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
        missing = self._find_missing(asked)
        self._news += [f"{self._name(joint)} does not answer" for joint in missing]
        present = [joint for joint in range(self.n_joints) if joint not in missing]
        for register, (wrong, right, news) in _SET_BACK.items():
            found = set_back(self.bus, [ids[joint] for joint in present], register, wrong, right)
            if found:
                self._news.append(news.format(", ".join(map(str, found))))
        complaint = self.bus.cycle_time(ids).too_short(self.period_s, len(ids), self.bus.baud)
        if self._has_watchdog and self.period_s > WATCHDOG_S / 3.0:
            expected = f"expected <= {WATCHDOG_S / 3.0:g}: without a packet these servos stop after {WATCHDOG_S:g} s"
            complaint = f"connection.period_s is {self.period_s:g}; {expected}"
        if complaint is not None:
            raise BringUpError(complaint)
        give_up_s = self.clock.now() + _UP_PATIENCE_S
        self._read.take(self.bus.read_block(ids, *READING))
        while not self._read.health.answered[present].all() and self.clock.now() < give_up_s:
            asked()
            self._read.take(self.bus.read_block(ids, *READING))
        self._check_reading(present)
        torque.expect_on(ids[joint] for joint in present)
        self._raise_torque(present, asked)
        self._monitor = HealthMonitor(self.limits, self.n_joints)
        self._monitor.miss(missing)
        self._gate, self._is_up = self._new_gate(), True
        self._wanted = self._read.angle.copy()
        self._follows = np.isin(np.arange(self.n_joints), present)
        self._refused, torque.stop_reason, self._gone_since_s = set(), None, None
        self.next_cycle_s = self.clock.now()
        self._owes_goal = False

    def _find_missing(self, look: Look) -> list[int]:
        """Return joints (from 0) with silent servos. Raises BringUpError: too many, unfit ones, or interrupted."""
        missing, wrong, give_up_s = list(range(self.n_joints)), [], math.inf
        while missing and self.clock.now() < give_up_s:
            for joint in list(missing):
                look()
                found = self._servo_faults(joint)
                if found is not None:
                    missing.remove(joint)
                    wrong += found
            give_up_s = min(give_up_s, self.clock.now() + _UP_PATIENCE_S)
        silent = [f"{self._name(joint)} does not answer" for joint in missing]
        if wrong:
            raise BringUpError("\n".join([*wrong, *silent]))
        if len(missing) == self.n_joints:
            raise BringUpError(
                "no servo answers at this baud rate; look at power and cable, and who answers to scan --all-bauds"
            )
        if len(missing) > self.limits.max_lost_joints:
            raise BringUpError("\n".join([*silent, f"at most {self.limits.max_lost_joints} joints may be missing"]))
        return missing

    def _servo_faults(self, joint: int) -> list[str] | None:
        """Return why the servo of ``joint`` (from 0) may not move, one line each, or None if it does not answer."""
        one, name = self.calibration.joints[joint], self._name(joint)
        info = self.bus.ping(one.servo_id)
        if info is None:
            return None
        if info.ambiguous:
            return [f"{name}: {say_twins(one.servo_id)}"]
        found = read_held(self.bus, [one.servo_id])[one.servo_id]
        if found is None:
            return None
        family = self.calibration.family
        if family.protocol == 2 and (fatal := info.error & family.faults_of(found["unload_condition"])):
            return [f"{name} says {describe_error(fatal)}, and stays limp until its supply has been off"]
        changed = [] if one.held is None else changes(one.held, found, one.servo_id)
        step_rad = one.direction * self.calibration.rad_per_step
        ends = one.zero_steps + one.low_rad / step_rad, one.zero_steps + one.high_rad / step_rad
        return [f"{name}: {line}" for line in changed] or faults(found, name, ends, family)

    def _check_reading(self, joints: list[int]) -> None:
        """Raise BringUpError if a servo of ``joints`` (from 0) is silent, beyond a limit, or has a broken encoder, or a
        joint is outside its range: its servo takes the range to be elsewhere, and would drive it there."""
        health, outside = self._read.health, self._beyond()
        _, reason = HealthMonitor(self.limits, self.n_joints).check(health, 0.0)
        wrong = [] if reason is None else [reason]
        for joint in joints:
            if not health.answered[joint]:
                wrong.append(f"{self._name(joint)} answers a ping but no reading; look at the wiring")
            elif health.error[joint] & ServoError.ENCODER:
                wrong.append(f"{self._name(joint)} says that its encoder is broken")
            elif joint in outside:
                wrong.append(f"{self._name(joint)}: it {outside[joint]}: {_BEND_BACK}")
        if wrong:
            raise BringUpError("\n".join(wrong))

    def _raise_torque(self, joints: list[int], look: Look) -> None:
        """Raise the torque of ``joints`` (from 0), at rest where they are. Raises BringUpError: one does not obey."""
        ids = [self.calibration.ids[joint] for joint in joints]
        for part in range(_RAMP_STEPS):
            for servo_id in ids:
                look()
                give_up_s = self.clock.now() + _UP_PATIENCE_S
                while not self._set_torque_limit(servo_id, self.limits.torque_limit * (part + 1) / _RAMP_STEPS):
                    look()
                    if self.clock.now() > give_up_s:
                        raise BringUpError(f"servo {servo_id} does not take a torque limit")
            if part == 0:  # the goal is the present position, and switches the torque on
                steps = self._read.steps[joints].astype(int).tolist()
                self.bus.write_targets(ids, steps, [self._speed[joint] for joint in joints])
                silent = [str(one) for one, known in self.bus.torque(ids, True).items() if not known]
                if silent:
                    raise BringUpError(f"servos {', '.join(silent)} do not switch their torque on")
            end_s = self.clock.now() + self.limits.ramp_time_s / _RAMP_STEPS
            while (left_s := end_s - self.clock.now()) > 0.0:
                look()
                self.clock.sleep(min(left_s, _LOOK_S))

    def _set_torque_limit(self, servo_id: int, share: float) -> bool:
        """Let a servo use this share of its stall torque. Return True if it is known to obey."""
        count = round(share * self.bus.family.full_count("torque_limit"))
        return self.bus.write_register(servo_id, "torque_limit", count)

    def _name(self, joint: int) -> str:
        return f"joint {joint + 1} (servo {self.calibration.ids[joint]})"

    def _beyond(self) -> dict[int, str]:
        """Return where joints are, by number from 0, that are far outside their range: none that follows gets there."""
        angle, low, high = self._read.angle, self.calibration.low_rad, self.calibration.high_rad
        most = self.limits.runaway_rad
        return {
            k: f"is at {angle[k]:.3g} rad, outside its range {low[k]:.3g} to {high[k]:.3g} by more than {most:g}"
            for k in np.flatnonzero(np.maximum(low - angle, angle - high) > most).tolist()
        }

    def _new_gate(self) -> CommandGate:
        return CommandGate(self.calibration.low_rad, self.calibration.high_rad, self.limits, self._read.angle)
