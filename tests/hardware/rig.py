"""Emulated servos for tests: on a bus in memory, whose clock only moves when somebody waits, or on a pseudo terminal in
real time; with a driver, and with all that moves a robot.
"""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from snake_gym.config.settings import NonNegative, Share
from snake_gym.emulator.bus import EmulatedBus, EmulatedServo, FirstOrderPlant, HostEnd, WireFaults
from snake_gym.emulator.port import EmulatedPort
from snake_gym.emulator.x_servo import emulated_servo
from snake_gym.hardware.bus.clock import MonotonicClock
from snake_gym.hardware.bus.protocol import Packet
from snake_gym.hardware.bus.servo_bus import ServoBus
from snake_gym.hardware.bus.transport import PortGone
from snake_gym.hardware.calibration.calibration import IDENTITY, SETUP, Calibration, JointCalibration, straight_chain
from snake_gym.hardware.guard.checks import SafetyLimits
from snake_gym.hardware.guard.emergency_stop import EmergencyStop
from snake_gym.hardware.guard.servo_body import ServoBody

MODEL = "STS3215"
"""Model of the servos that are made by their IDs, as fast as this one: see the fixture ``family``."""
FAST = {"XL430-W250": {"baud_rate": 3, "return_delay": 0}}
QUICK = SafetyLimits(ramp_time_s=0.05)


@dataclass
class AdapterFaults(WireFaults):
    """Faults of the wire and of the adapter, and those that are ordered whatever the rates."""

    late: Share = 0.0
    """Probability that an answer is delayed, as by a stalled adapter; the line itself is free."""
    merged: Share = 0.0
    """Probability that an answer is held back and handed over together with the next one."""
    wrong_id: Share = 0.0
    """Probability that an answer carries another servo's ID and a right checksum."""
    late_min_s: NonNegative = 0.02
    late_max_s: NonNegative = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        self._ordered: list[tuple[str, int]] = []

    def order(self, name: str, servo_id: int) -> None:
        """Cause the fault in the next answer of that servo."""
        self._ordered.append((name, servo_id))

    def happens(self, name: str, servo_id: int) -> bool:
        if (name, servo_id) in self._ordered:
            self._ordered.remove((name, servo_id))
            self.counts[name] += 1
            return True
        return self._happens(name)

    def delay_s(self) -> float:
        return float(self._rng.uniform(self.late_min_s, self.late_max_s))


class FaultyBus(EmulatedBus):
    """Emulated bus behind an adapter with ``AdapterFaults``."""

    faults: AdapterFaults

    def __init__(self, servos: Any, faults: AdapterFaults | None = None, **more: Any) -> None:
        self._held = b""
        super().__init__(servos, faults=faults or AdapterFaults(), **more)

    def _deliver(self, servo_id: int, answer: bytes, end_s: float) -> None:
        faults = self.faults
        if faults.happens("lost", servo_id):
            return
        if faults.happens("wrong_id", servo_id):
            packet = self.protocol.parse(answer)
            assert packet is not None
            answer = self.protocol.status((servo_id + 1) % 0xFD, packet.error_or_instruction, packet.params)
        if faults.happens("corrupted", servo_id):
            answer = faults._corrupt(answer)
        delay_s = faults.delay_s() if faults.happens("late", servo_id) else 0.0
        held, self._held = self._held + answer, b""
        if faults.happens("merged", servo_id):
            self._held = held
            return
        self._hand_over(held, end_s + delay_s)

    def _execute(self, packet: Packet, at_s: float) -> None:
        super()._execute(packet, at_s)
        if self._held:
            self._hand_over(self._held, self._answers_end_s)
            self._held = b""


def new_servo(servo_id: int, zero_steps: int | None = None, direction: int = 1) -> EmulatedServo:
    """A servo of the model that the test is about."""
    return emulated_servo(servo_id, MODEL, zero_steps, direction, FAST.get(MODEL))


class Spy:
    """A transport that keeps what is written to it."""

    def __init__(self, end: HostEnd) -> None:
        self.end = end
        self.written: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.written.append(data)
        self.end.write(data)

    def read(self, max_bytes: int, timeout_s: float) -> bytes:
        return self.end.read(max_bytes, timeout_s)

    def close(self) -> None:
        self.end.close()


class Movable(ServoBus):
    """A bus of servos that nobody stops, unless a test replaces ``interrupted``."""

    def interrupted(self) -> str | None:
        return None


class Bench:
    """Servos in memory, given by their IDs or as they are, and a driver; ``more``: arguments of the bus."""

    def __init__(
        self, servos: Sequence[int | EmulatedServo], plant: FirstOrderPlant | None = None,
        latency_s: float | None = None, **more: Any,
    ) -> None:  # fmt: skip
        self.servos = [new_servo(one) if isinstance(one, int) else one for one in servos]
        self.plant = plant or FirstOrderPlant(len(servos))
        self.bus = FaultyBus(self.servos, plant=self.plant, **more)
        self.clock = self.bus.clock
        self.spy = Spy(self.bus.host_transport())
        family = self.servos[0].family
        self.driver = Movable(self.spy, self.bus.baud, self.clock, latency_s, reopen=self._reopen, family=family)

    def _reopen(self) -> Spy:
        self.spy.end = self.bus.host_transport()
        return self.spy

    def now(self) -> float:
        return self.clock.now()

    def wait(self, duration_s: float) -> None:
        """Let time pass; what arrives meanwhile waits in the host's buffer."""
        self.clock.sleep(duration_s)
        with suppress(PortGone):
            self.spy.end.listen()
        self.bus.advance_to(self.now())

    def open(self, baud: int) -> ServoBus:
        """The bus at another rate."""
        self.bus.poll()  # what was sent before went at the rate before
        self.bus.baud = baud
        return ServoBus(self.bus.host_transport(), baud, self.clock, family=self.servos[0].family)

    def angle(self, joint: int) -> float:
        self.bus.poll()
        return float(self.plant.joint_angle()[joint])

    def torque_on(self) -> list[bool]:
        self.bus.poll()
        return [servo.memory.get("torque_enable") == 1 for servo in self.servos]


class Rig(Bench):
    """Servos 1..n, a calibration that fits, and a ``ServoBody`` on them."""

    def __init__(
        self, folder: Path, n: int = 4, limits: SafetyLimits = QUICK, zero_steps: int = 2048, direction: int = 1,
        plant: FirstOrderPlant | None = None, **more: Any,
    ) -> None:  # fmt: skip
        servos = [new_servo(k + 1, zero_steps, direction) for k in range(n)]
        super().__init__(servos, plant or FirstOrderPlant(n, joint_angle=[0.1 * k for k in range(n)]), **more)
        joints = tuple(JointCalibration(k + 1, direction, zero_steps, -1.2, 1.2) for k in range(n))
        self.calibration = Calibration(joints, MODEL, 4096)
        self.stop = EmergencyStop(folder / "estop")
        self.body = ServoBody(self.driver, self.calibration, limits, stop=self.stop)

    def run(self, seconds: float, reference: np.ndarray, period_s: float = 0.1) -> None:
        """Command ``reference`` every ``period_s`` for so long."""
        when = self.clock.now()
        for _ in range(round(seconds / period_s)):
            self.body.command(reference)
            when += period_s
            self.body.run_until(when)


def serve(servos: Sequence[int | EmulatedServo], plant: FirstOrderPlant | None = None) -> EmulatedPort:
    """Servos on a pseudo terminal, in real time: easy on a busy machine."""
    made = [new_servo(one) if isinstance(one, int) else one for one in servos]
    return EmulatedPort(EmulatedBus(made, plant, clock=MonotonicClock(), step_s=0.01))


def torque_on(port: EmulatedPort) -> list[bool]:
    """Of the registers: also of servos that do not answer now, and would go on once they do."""
    with port.bus.lock:
        return [servo.memory.get("torque_enable") == 1 for servo in port.bus.servos]


def watch_torque(port: EmulatedPort) -> list[tuple[int, bool]]:
    """What arrives at the servos from now on and switches torque: servo, on or off. A goal switches it on."""
    written: list[tuple[int, bool]] = []

    def watched(servo: EmulatedServo) -> Callable[[int, bytes], None]:
        def write(address: int, data: bytes) -> None:
            EmulatedServo.write(servo, address, data)
            if address < 44 and address + len(data) > 40:  # torque_enable to goal_position
                written.append((servo.id, servo.memory.get("torque_enable") == 1))

        return write

    for servo in port.bus.servos:
        servo.write = watched(servo)  # type: ignore[method-assign]
    return written


def write_calibration(path: Path, servos: Sequence[EmulatedServo]) -> None:
    """The file of straight joints with these servos, as ``calibrate`` would write it."""
    names = [name for name in (*IDENTITY, *SETUP) if name in servos[0].family.by_name]
    held = [{name: servo.memory.get(name) for name in names} for servo in servos]
    chain = straight_chain([servo.id for servo in servos], 1.5, servos[0].model.name)
    joints = (replace(joint, held=one) for joint, one in zip(chain.joints, held, strict=True))
    replace(chain, joints=tuple(joints)).save(path)


def wait_until(condition: Callable[[], object], seconds: float = 20.0) -> float:
    """Time until ``condition()`` [s]; fails after ``seconds``."""
    begun_s = time.monotonic()
    while not condition():
        assert time.monotonic() - begun_s < seconds
        time.sleep(0.005)  # the servos are a thread of this process
    return time.monotonic() - begun_s


@contextmanager
def ending(process: subprocess.Popen[Any]) -> Iterator[None]:
    """Kill ``process``, if it still runs, and wait for its end; after a failure close its pipes too."""
    try:
        yield
    except BaseException:
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        raise
    finally:
        process.kill()
        process.wait()
