"""Bus of emulated servos: it exchanges packets, each at its time, and moves the robot behind the servos.

``host_transport`` hands the bytes over within one thread on a virtual clock, ``emulator.port`` through a pseudo
terminal in real time.

Timing: 10 bits per byte at the host's baud rate. A request acts when the last byte of what was sent with it has
arrived; an answer starts after the servo's return delay, the answers of a sync read follow each other. A host that
sends while a servo answers spoils both, as on any half-duplex line. Servos that have one ID answer together: bytes that
overlap are and-ed, as on a wire that is low if anybody pulls it low. A servo set to another baud rate hears nothing.
Only two broadcasts are answered: ping, by all in the order of their IDs, and sync read.

Time passes for the robot behind the servos (``ServoPlant``) whether the host talks or not: servos hold their last goal
when the host is gone. On a computer too slow for its physics in real time, the robot falls behind by at most
``LONGEST_BACKLOG_S`` and misses the rest, and the servos still answer.
"""

from __future__ import annotations

import bisect
import math
import threading
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np

from snake_gym.emulator.servo import EmulatedServo as EmulatedServo
from snake_gym.hardware.bus.clock import Clock, VirtualClock
from snake_gym.hardware.bus.protocol import BROADCAST_ID, Instruction, Packet, PacketParser, wire_time_s
from snake_gym.hardware.bus.transport import PortGone
from snake_gym.hardware.guard.checks import BoolArray
from snake_gym.robot.spec import FloatArray

LONGEST_BACKLOG_S = 0.05
"""Longest time that the robot may lag behind the clock [s]."""
_CATCH_UP_S = 0.001
"""Real time spent on catching up before the host is heard again [s]."""


class ServoPlant(Protocol):
    """Joints behind the servos: J of them, in the order of the servos."""

    def advance(
        self, dt_s: float, target_rad: FloatArray, enabled: BoolArray, torque_limit: FloatArray,
        speed_limit_rad_s: FloatArray,
    ) -> None:  # fmt: skip
        """Let ``dt_s`` pass under constant commands.

        Args:
            target_rad: (J,) joint angles that the motors aim at [rad].
            enabled: (J,) False: no torque, the joint is free.
            torque_limit: (J,) share of the stall torque.
        """

    def joint_angle(self) -> FloatArray:
        """Return the joint angles (J,) [rad]."""

    def joint_rate(self) -> FloatArray:
        """Return the joint rates (J,) [rad/s]."""

    def load(self) -> FloatArray:
        """Return the motor torques (J,) as signed shares of the stall torque."""

    def head_pose(self) -> tuple[float, ...]:
        """Return the place (x, y) [m] and direction [rad] of the head link, world frame.

        A robot that moves in space goes on with its height [m] and the direction of the vertical (3) in its base frame.
        """

    def jam(self, joint: int, is_jammed: bool = True) -> None:
        """Hold joint ``joint`` (from 0) where it is, or let it go."""

    def bend(self, joint_angle: FloatArray) -> None:
        """Put the robot at rest into another shape (J,) [rad], as a hand would; the head stays where it is."""


class FirstOrderPlant:
    """Plant of J independent joints that approach their targets with a time constant, from ``joint_angle`` [rad] on."""

    def __init__(self, n_joints: int, joint_angle: Sequence[float] | None = None) -> None:
        self.lag_s = 0.03
        """Time constant of the joints [s]."""
        self._jammed = np.zeros(n_joints, bool)
        self._rate, self._load = np.zeros((2, n_joints))
        self._angle = np.zeros(n_joints) if joint_angle is None else np.array(joint_angle, dtype=np.float64)

    def advance(
        self, dt_s: float, target_rad: FloatArray, enabled: BoolArray, torque_limit: FloatArray,
        speed_limit_rad_s: FloatArray,
    ) -> None:  # fmt: skip
        error, limit = target_rad - self._angle, speed_limit_rad_s * dt_s
        step = np.clip(error * -np.expm1(-dt_s / self.lag_s), -limit, limit) * (enabled & ~self._jammed)
        self._angle, self._rate = self._angle + step, step / dt_s
        self._load = np.clip(0.5 * error, -torque_limit, torque_limit) * enabled

    def jam(self, joint: int, is_jammed: bool = True) -> None:
        self._jammed[joint] = is_jammed

    def bend(self, joint_angle: FloatArray) -> None:
        self._angle, self._rate = np.array(joint_angle), np.zeros_like(self._angle)

    def head_pose(self) -> tuple[float, float, float]:
        return 0.0, 0.0, 0.0

    def joint_angle(self) -> FloatArray:
        return self._angle

    def joint_rate(self) -> FloatArray:
        return self._rate

    def load(self) -> FloatArray:
        return self._load


@dataclass
class WireFaults:
    """Faults between a host and its servos: probabilities per packet, from one seeded generator."""

    lost: float = 0.0
    """Probability that a request is not heard, or an answer not sent."""
    corrupted: float = 0.0
    """Probability that one to three bytes of a request or an answer are changed."""
    seed: int = 0
    counts: Counter[str] = field(init=False, default_factory=Counter)
    """Number of times that each fault has happened."""

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng(self.seed)

    def damage(self, data: bytes) -> bytes:
        """Return what arrives of a packet: all of it, some bytes changed, or nothing."""
        if self._happens("lost"):
            return b""
        return self._corrupt(data) if self._happens("corrupted") else data

    def _happens(self, name: str) -> bool:
        rate = float(getattr(self, name))
        happens = rate > 0.0 and self._rng.random() < rate
        self.counts[name] += happens
        return happens

    def _corrupt(self, data: bytes) -> bytes:
        damaged = bytearray(data)
        for at in self._rng.choice(len(damaged), size=min(len(damaged), int(self._rng.integers(1, 4))), replace=False):
            damaged[at] ^= int(self._rng.integers(1, 256))
        return bytes(damaged)


_SLACK_S = 1e-9
_IDLE_LINE_S = 0.002
"""Silence after which servos discard an incomplete packet [s]."""


def on_one_wire(answers: Sequence[tuple[float, bytes]], baud: int) -> list[tuple[float, bytes]]:
    """Return what a host hears of answers (start [s], bytes): those that overlap are and-ed."""
    heard: list[tuple[float, bytes]] = []
    for start_s, data in sorted(answers):
        if heard and start_s < heard[-1][0] + wire_time_s(len(heard[-1][1]), baud) - _SLACK_S:
            first_s, line = heard.pop()
            at = round((start_s - first_s) / wire_time_s(1, baud))
            n_bytes = max(len(line), at + len(data))
            both = zip(line.ljust(n_bytes, b"\xff"), (b"\xff" * at + data).ljust(n_bytes, b"\xff"), strict=True)
            start_s, data = first_s, bytes(one & other for one, other in both)
        heard.append((start_s, data))
    return heard


def _spoiled(data: bytes) -> bytes:
    return bytes(byte ^ 0x5A for byte in data)


class EmulatedBus:
    """Emulated servos, the robot that they move, and the line to the host.

    Args:
        servos: in the order of the plant's joints.
        plant: the robot; None: a ``FirstOrderPlant``.
        clock: clock of the bus; None: a virtual one.
        faults: faults on the wire; None: none.
        baud: baud rate of the host.
        echo: True if the host's adapter returns what it sends.
        missing: behaviour of servos behind one that does not answer a sync read: they answer after the time that its
            answer would have taken, or not at all. It depends on the firmware; a driver has to cope with both.
        step_s: time after which servos look at their joints and goals again [s].
        latency_s: time for which the host's adapter holds back what it has received [s].
    """

    def __init__(
        self, servos: Sequence[EmulatedServo], plant: ServoPlant | None = None, clock: Clock | None = None,
        faults: WireFaults | None = None, baud: int = 1_000_000, echo: bool = False,
        missing: Literal["skip", "stop"] = "skip", step_s: float = 0.002, latency_s: float = 0.0,
    ) -> None:  # fmt: skip
        self.servos = list(servos)
        self.plant: ServoPlant = plant or FirstOrderPlant(len(self.servos))
        self.clock: Clock = clock or VirtualClock()
        self.faults = faults or WireFaults()
        self.baud, self.echo, self.missing, self.step_s, self.latency_s = baud, echo, missing, step_s, latency_s
        self.lock = threading.RLock()
        """Lock held while the bus works; another thread takes it to look at several registers at once."""
        self.unplugged = False
        """True while the host's port is gone."""
        self.protocol = self.servos[0].protocol
        self._parser = PacketParser(self.protocol)
        self._requests: deque[tuple[float, Packet]] = deque()
        self._to_host: list[tuple[float, bytes]] = []
        """Packets on their way to the host and the times of their ends [s], the next one first."""
        self._line_free_s = self._answers_end_s = -1.0
        self._plant_s = self.clock.now()
        for servo in self.servos:
            servo.update(self._plant_s, 0.0, 0.0, 0.0)
        self._look()
        for servo in self.servos:
            servo.power_cycle(self._plant_s - 1.0)

    def servo(self, servo_id: int) -> EmulatedServo:
        """Return the servo that has this ID now."""
        return next(servo for servo in self.servos if servo.id == servo_id)

    def jam(self, servo_id: int, is_jammed: bool = True) -> None:
        """Hold the joint of a servo where it is, so that its motor stalls, or let it go."""
        with self.lock:
            servo = self.servo(servo_id)
            servo.jammed = is_jammed
            self.plant.jam(self.servos.index(servo), is_jammed)

    # --- the host's side ---------------------------------------------------------------------------------------------

    def receive(self, data: bytes) -> None:
        """Take ``data`` that the host starts to send now, or when what it has sent before is out."""
        with self.lock:
            start_s = max(self.clock.now(), self._line_free_s)
            if start_s > self._line_free_s + _IDLE_LINE_S:
                self._parser.flush()
            if start_s < self._answers_end_s - _SLACK_S:  # both talk
                self._to_host = [(end_s, _spoiled(answer)) for end_s, answer in self._to_host]
                data = _spoiled(data)
            self._line_free_s = start_s + wire_time_s(len(data), self.baud)
            if self.echo:
                self._hand_over(data, self._line_free_s)
            for packet in self._parser.feed(self.faults.damage(data)):
                self._requests.append((self._line_free_s, packet))

    def poll(self) -> bytes:
        """Let time pass up to now. Return the bytes that have reached the host since the last call."""
        with self.lock:
            now = self.clock.now()
            give_up_s = math.inf if isinstance(self.clock, VirtualClock) else now + _CATCH_UP_S
            while self._requests and self._requests[0][0] <= now + _SLACK_S:
                at_s, packet = self._requests.popleft()
                self.advance_to(at_s, give_up_s)
                self._execute(packet, at_s)
            self.advance_to(now, give_up_s)
            n_arrived = bisect.bisect(self._to_host, now + _SLACK_S, key=lambda item: item[0])
            arrived, self._to_host = self._to_host[:n_arrived], self._to_host[n_arrived:]
            return b"".join(data for _, data in arrived)

    def next_event_s(self) -> float | None:
        """Return the time [s] of ``poll``'s next news, as far as known; None: when the host has sent something."""
        with self.lock:
            return min((items[0][0] for items in (self._requests, self._to_host) if items), default=None)

    @property
    def is_behind(self) -> bool:
        """True if the robot has to catch up with the clock."""
        return self._plant_s + self.step_s <= self.clock.now()

    def advance_to(self, time_s: float, give_up_s: float = math.inf) -> None:
        """Advance servos and robot to ``time_s`` [s], in whole steps, or until the clock shows ``give_up_s`` [s]."""
        while self._plant_s + self.step_s <= time_s + _SLACK_S:
            if self.clock.now() >= give_up_s:
                self._plant_s = max(self._plant_s, time_s - LONGEST_BACKLOG_S)
                return
            commands = [servo.command(self.step_s) for servo in self.servos]
            target, enabled, torque, speed = (np.array(column) for column in zip(*commands, strict=True))
            self.plant.advance(self.step_s, target, enabled, torque, speed)
            self._plant_s += self.step_s
            self._look()

    def host_transport(self) -> HostEnd:
        """Return the host's end of the line, for a host in the same thread on the bus's own clock. Raises PortGone."""
        if self.unplugged:
            raise PortGone("the emulated port is unplugged")
        return HostEnd(self)

    # --- the servos' side --------------------------------------------------------------------------------------------

    def _look(self) -> None:
        plant = self.plant
        state = zip(plant.joint_angle(), plant.joint_rate(), plant.load(), strict=True)
        for servo, (angle, rate, load) in zip(self.servos, state, strict=True):
            servo.update(self._plant_s, float(angle), float(rate), float(load))

    def _execute(self, packet: Packet, at_s: float) -> None:
        listening: dict[int, list[EmulatedServo]] = {}
        for servo in sorted(self.servos, key=lambda servo: servo.id):
            if servo.listens(self.baud):
                listening.setdefault(servo.id, []).append(servo)
        instruction, params = packet.error_or_instruction, packet.params
        broadcast, word = packet.id == BROADCAST_ID, self.protocol.word_bytes
        address, size, rest = self.protocol.split(params)
        if broadcast and instruction == Instruction.SYNC_READ:
            for servo_id in rest:
                if servo_id in listening:
                    at_s = self._answer(listening[servo_id], servo_id, Instruction.READ, params[: 2 * word], at_s)
                elif self.missing == "stop":
                    return
                else:
                    at_s += wire_time_s(self.protocol.overhead_bytes + size, self.baud)
        elif broadcast and instruction == Instruction.SYNC_WRITE:
            for start in range(0, len(rest) - size, 1 + size):
                for servo in listening.get(rest[start], []):
                    servo.write(address, rest[start + 1 : start + 1 + size])
        else:
            for servo_id in listening if broadcast else {packet.id} & set(listening):
                at_s = self._answer(listening[servo_id], servo_id, instruction, params, at_s, broadcast)

    def _answer(
        self, called: Sequence[EmulatedServo], servo_id: int, instruction: int, params: bytes, at_s: float,
        broadcast: bool = False,
    ) -> float:  # fmt: skip
        """Let servos with one ID carry out an instruction, and answer after ``at_s`` [s]. Return the end of it [s]."""
        answers = []
        for servo in called:
            start_s = at_s + servo.return_delay_s
            answer = servo.execute(instruction, params, broadcast)
            if answer is not None:
                answers.append((start_s, answer))
        for start_s, heard in on_one_wire(answers, self.baud):
            at_s = start_s + wire_time_s(len(heard), self.baud)
            self._deliver(servo_id, heard, at_s)
            self._answers_end_s = max(self._answers_end_s, at_s)
        return at_s

    def _deliver(self, servo_id: int, answer: bytes, end_s: float) -> None:
        """Hand over an answer, with the wire's faults; its last byte comes at ``end_s`` [s]."""
        self._hand_over(self.faults.damage(answer), end_s)

    def _hand_over(self, data: bytes, end_s: float) -> None:
        if data:
            bisect.insort(self._to_host, (end_s + self.latency_s, data), key=lambda item: item[0])


class HostEnd:
    """``Transport`` to an ``EmulatedBus`` on a virtual clock: waiting for bytes moves the clock."""

    def __init__(self, bus: EmulatedBus) -> None:
        if not isinstance(bus.clock, VirtualClock):
            raise ValueError("the bus runs in real time; expected one on a VirtualClock")
        self._bus, self._clock = bus, bus.clock
        self._input = bytearray()
        self._closed = False

    def write(self, data: bytes) -> None:
        self.listen()
        self._bus.receive(data)

    def read(self, max_bytes: int, timeout_s: float) -> bytes:
        end_s = self._clock.now() + max(0.0, timeout_s)
        while not self.listen() and self._clock.now() < end_s:
            event_s = self._bus.next_event_s()
            self._clock.advance_to(end_s if event_s is None else min(end_s, event_s))
        data = bytes(self._input[:max_bytes])
        del self._input[:max_bytes]
        return data

    def listen(self) -> bool:
        """Take the bytes that have arrived. Return True if there are unread ones."""
        if self._closed or self._bus.unplugged:
            self._closed = True  # a port that comes back has to be opened again
            raise PortGone("the emulated port has vanished")
        self._input += self._bus.poll()
        return bool(self._input)

    def close(self) -> None:
        self._closed = True
