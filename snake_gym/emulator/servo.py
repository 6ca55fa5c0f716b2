"""Emulated servo: registers, goal following, sensors, protections, and answers to the host.

Frames: the *actual* position counts encoder steps, ``zero_steps + direction * joint angle``; the *present* position is
what the servo reports, actual minus ``homing_offset``, within one turn. Goals are in present steps.

Behaviour of the real servos that it copies: see the list in ``feetech``. It goes straight to the goal; the speed limit
is handed to the plant.

Protections, on as far as ``unload_condition`` has their bit: heat switches the output off while it lasts; overload
(``overload_torque`` exceeded for ``protection_time``) latches and leaves ``protective_torque``, until torque is written
or a goal asks for the other direction. The error byte of every answer is the ``status`` register.

A joint that is jammed, or at its mechanical stop, stalls: its motor pushes with what the distance to its target asks
for, up to the torque limit. The current is the load times the stall current.

Not modelled: modes other than position, several turns, ``acceleration``, registered writes, dead band and loop gains
of the registers (the plant has its own), a supply that sags, heating under load, the brake of ``torque_enable`` 2 (here
the joint is free). No public source says what a real servo does with other codes of ``torque_enable``; here they change
nothing.
"""

from __future__ import annotations

import math
from collections import deque
from typing import NamedTuple

import numpy as np

from snake_gym.hardware.bus.family import Register, ServoFamily, ServoModel, family_of_model
from snake_gym.hardware.bus.feetech import FEETECH
from snake_gym.hardware.bus.protocol import PROTOCOLS, Instruction


class ServoMemory:
    """Registers of a servo, as counts; ``settings`` replace the model's defaults, as if stored."""

    def __init__(
        self, family: ServoFamily, model: ServoModel, servo_id: int, settings: dict[str, int] | None = None
    ) -> None:
        self.family, self.model = family, model
        registers = {**FEETECH.by_name, **family.by_name}
        self._counts = {name: model.default(one) for name, one in registers.items()}
        self._counts |= {**(settings or {}), "id": servo_id}
        self._scale = {name: one.encoding.scale for name, one in registers.items()}
        self._eeprom = {one.name: self._counts[one.name] for one in family.registers if self._lasts(one)}
        self.power_on()

    def get(self, name: str) -> int:
        """Return the count of a register; one that the family lacks acts as Feetech's default does."""
        return self._counts[name]

    def value(self, name: str) -> float:
        """Return the value of a register in its unit."""
        return self._counts[name] * self._scale[name]

    def counts(self, name: str, value: float) -> float:
        """Return ``value`` in counts of a register, not rounded."""
        return round(value / self._scale[name], 6)

    def set(self, name: str, value: int) -> None:
        """Set a register to ``value``, as the servo itself does: read-only ones too, and nothing is stored."""
        if name in self.family.by_name:
            self._counts[name] = value

    def show(self, name: str, value: float) -> None:
        """Set a register to the count nearest to ``value`` in its unit."""
        if name in self.family.by_name:
            encoding = self.family.by_name[name].encoding
            self._counts[name] = min(max(round(self.counts(name, value)), encoding.min_value), encoding.max_value)

    def read(self, address: int, n_bytes: int) -> bytes:
        """Return ``n_bytes`` from ``address`` on; 0 where there is nothing."""
        data = bytearray(n_bytes)
        for one in self.between(address, address + n_bytes):
            for at, byte in enumerate(one.encoding.encode(self._counts[one.name]), start=one.address - address):
                if 0 <= at < n_bytes:
                    data[at] = byte
        return bytes(data)

    def write(self, address: int, data: bytes) -> list[str]:
        """Carry out a write instruction. Return the names of the registers that it touched."""
        stores = "lock" not in self.family.by_name or self.get("lock") == 0
        old_id, end, max_id = self.get("id"), address + len(data), PROTOCOLS[self.family.protocol].max_id
        touched = [one for one in self.between(address, end) if one.access == "rw"]
        for one in touched:
            whole = bytearray(one.encoding.encode(self._counts[one.name]))
            for at in range(max(one.address, address), min(one.end, end)):
                whole[at - one.address] = data[at - address]
            count, (low, high) = one.encoding.decode(bytes(whole)), one.limits
            self._counts[one.name] = old_id if one.name == "id" and count > max_id else min(max(count, low), high)
            if stores and self._lasts(one):
                self._eeprom[one.name] = self._counts[one.name]
        return [one.name for one in touched]

    def power_on(self) -> None:
        """Restore the EEPROM as stored, and everything else as after power-off."""
        for one in self.family.registers:
            self._counts[one.name] = self._eeprom.get(one.name, self.model.default(one))
        self.set("torque_limit", round(self.counts("torque_limit", self.value("max_torque"))))

    def between(self, begin: int, end: int) -> list[Register]:
        """Return the registers of which the addresses from ``begin`` to before ``end`` hold a part."""
        return [one for one in self.family.registers if one.address < end and begin < one.end]

    def _lasts(self, register: Register) -> bool:
        return register.address < self.family.eeprom_end


_BOOT_S = 0.3
_AMBIENT_C = 25.0
_STALL_GAIN = 10.0  # 1/rad: a jammed motor is at its limit from a distance of 0.1 rad on
_AT_STOP_RAD = 0.005
_BRAKE = 2  # code of torque_enable
_DEAD_V = 2.0  # below, the processor stops


class Imprecision:
    """Goals that act ``delay_s`` late, and readings with noise of deviations ``angle_rad`` and ``rate_rad_s``."""

    def __init__(self, delay_s: float = 0.0, angle_rad: float = 0.0, rate_rad_s: float = 0.0, seed: int = 0) -> None:
        self.delay_s, self.angle_rad, self.rate_rad_s = delay_s, angle_rad, rate_rad_s
        self._rng = np.random.default_rng(seed)
        self.forget(0.0)

    def forget(self, held: float) -> None:
        """Restart from a servo that holds ``held`` [steps]."""
        self._goals: deque[tuple[float, float]] = deque([(-math.inf, held)])

    def late(self, goal: float, now_s: float) -> float:
        """Return the goal [steps] that acts now, if ``goal`` is the one just set."""
        if self._goals[-1][1] != goal:
            self._goals.append((now_s, goal))
        while len(self._goals) > 1 and self._goals[1][0] <= now_s - self.delay_s + 1e-9:
            self._goals.popleft()
        return self._goals[0][1]

    def noise(self, deviation: float) -> float:
        """Return the noise of one reading with this standard deviation."""
        return deviation * float(self._rng.standard_normal()) if deviation else 0.0


class JointCommand(NamedTuple):
    """Command of a servo to its motor: see ``ServoPlant.advance``."""

    target_rad: float
    enabled: bool
    torque_limit: float
    speed_limit_rad_s: float


class EmulatedServo:
    """Servo on an emulated bus.

    Args:
        model: name of the servo's model.
        zero_steps: actual position at joint angle 0, given by the mounting of the horn; None: the middle.
        direction: +1 or -1, sense of the encoder against the joint angle.
        settings: registers that differ from the model's defaults, by name.
    """

    offset_sign = -1
    """Sign with which ``homing_offset`` enters the present position."""

    def __init__(
        self, servo_id: int, model: str = "STS3215", zero_steps: int | None = None, direction: int = 1,
        settings: dict[str, int] | None = None,
    ) -> None:  # fmt: skip
        self.family, self.model = family_of_model(model)
        self.protocol = PROTOCOLS[self.family.protocol]
        self.memory = ServoMemory(self.family, self.model, servo_id, settings)
        self.zero_steps = self.family.middle if zero_steps is None else zero_steps
        self.direction = direction
        self._bits = {name: 1 << bit for name, bit in {**FEETECH.faults, **self.family.faults}.items()}
        self.dead = False
        """True: the servo is deaf, mute and without torque."""
        self.encoder_broken = False
        """True: the encoder stays at its last value, and the servo reports it broken."""
        self.jammed = False
        """True: something holds the joint where it is, and the motor stalls."""
        self.stop_rad = math.inf
        """Mechanical stop of the joint, to both sides [rad]; there the motor stalls as well."""
        self.imprecision = Imprecision()
        self.supply_v = self.model.nominal_voltage_v
        """Voltage of the supply [V]."""
        self.temperature_c = _AMBIENT_C
        self.angle_rad = self.rate_rad_s = self.load = 0.0
        self._ready_s = -math.inf
        self._powered = True
        self._now_s = 0.0
        self._actual = self.zero_steps
        self._aim = 0.0
        self._overload_s = self._overload_sign = 0.0
        self._command = JointCommand(0.0, False, 0.0, 0.0)
        self._start_up()

    @property
    def id(self) -> int:
        return self.memory.get("id")

    @property
    def baud(self) -> int:
        return self.family.baud_rates[self.memory.get("baud_rate")]

    @property
    def return_delay_s(self) -> float:
        return self.memory.value("return_delay")

    @property
    def torque_on(self) -> bool:
        """True if the motor's output is on: enabled, supplied and not switched off by a protection."""
        faults = self._bits["voltage"] | self._bits["encoder"] | self._bits["heat"]
        is_unloaded = self.error() & self.memory.get("unload_condition") & faults
        return self._powered and not self.dead and self.memory.get("torque_enable") == 1 and not is_unloaded

    def listens(self, baud: int) -> bool:
        """Return True if the servo understands a host at this baud rate now."""
        return not self.dead and self._powered and self._now_s >= self._ready_s and baud == self.baud

    def execute(self, instruction: int, params: bytes, broadcast: bool = False) -> bytes | None:
        """Carry out an instruction. Return the status packet, or None if none is due."""
        own_id, data = self.id, b""  # it still answers under this one if the instruction changes it
        answers = not broadcast
        if instruction == Instruction.PING:
            answers = True
        elif instruction == Instruction.READ and len(params) == 2 and params[1] <= 250:
            self.sense()
            data = self.memory.read(params[0], params[1])
        elif instruction == Instruction.WRITE and len(params) >= 2:
            answers = answers and self.memory.get("response_level") == 1
            self.write(params[0], params[1:])
        elif instruction == Instruction.REBOOT:
            self.power_cycle(self._now_s)
            return None
        else:
            return None
        return self.protocol.status(own_id, self.error(), data) if answers else None

    def write(self, address: int, data: bytes) -> int:
        """Carry out a write or a sync write. Return why it failed, by the protocol's number; 0: it did not."""
        memory = self.memory
        was, at = memory.get("torque_enable"), self.family.register("torque_enable").address - address
        if 0 <= at < len(data) and data[at] not in (0, 1, _BRAKE, self.family.recentre_code):
            data = data[:at] + bytes((was,)) + data[at + 1 :]
        touched = memory.write(address, data)
        if "torque_enable" in touched:
            self._overload_s, self._overload_sign = 0.0, 0.0
            if memory.get("torque_enable") == self.family.recentre_code:
                self._calibrate_middle()
            elif memory.get("torque_enable") == 1 and was != 1 and "goal_position" not in touched:
                memory.set("goal_position", self.present())  # it holds where it is
        if "goal_position" in touched:
            memory.set("torque_enable", 1)  # on the real servos a goal switches torque on
            if (self._goal() - self.present()) * self._overload_sign < 0.0:
                self._overload_s, self._overload_sign = 0.0, 0.0
        return 0

    def present(self) -> int:
        """Return the present position [steps]."""
        return (self._actual + self.offset_sign * self.memory.get("homing_offset")) % self.family.steps_per_turn

    def error(self) -> int:
        """Return the status register: present faults."""
        memory, bits = self.memory, self._bits
        volts = memory.counts("present_voltage", self.supply_v)
        return (
            bits["voltage"] * (not memory.get("min_voltage") <= volts <= memory.get("max_voltage"))
            | bits["encoder"] * self.encoder_broken
            | bits["heat"] * (self.temperature_c > memory.get("max_temperature"))
            | bits["overload"] * bool(self._overload_sign)
        )

    def sense(self) -> None:
        """Store the measured values in the registers that show them."""
        memory, noise, step_rad = self.memory, self.imprecision, self.family.step_rad
        away = round(self.direction * noise.noise(noise.angle_rad) / step_rad)
        memory.set("present_position", (self.present() + away) % self.family.steps_per_turn)
        memory.show("present_speed", self.direction * (self.rate_rad_s + noise.noise(noise.rate_rad_s)))
        memory.show("present_load", self.direction * self.load)
        memory.show("present_voltage", self.supply_v)
        memory.show("present_temperature", self.temperature_c)
        memory.show("present_current", self.direction * self.load * self.model.stall_current_a)
        memory.set("moving", int(abs(self.rate_rad_s) > 10.0 * step_rad))
        memory.set("target_position", round(self._aim))
        memory.set("goal_position_2", round(self._goal()))
        memory.set("status", self.error())

    def update(self, now_s: float, angle_rad: float, rate_rad_s: float, load: float) -> None:
        """Take the joint's state after the time up to ``now_s`` [s]; load as a share of the stall torque."""
        dt_s, self._now_s = now_s - self._now_s, now_s
        target, enabled, limit, _ = self._command
        at_stop = abs(angle_rad) >= self.stop_rad - _AT_STOP_RAD and (target - angle_rad) * angle_rad > 0.0
        if self.jammed or at_stop:
            load = min(max(_STALL_GAIN * (target - angle_rad), -limit), limit) if enabled else 0.0
        supplied = self.supply_v > _DEAD_V
        if supplied and not self._powered:
            self.power_cycle(now_s)
        self._powered = supplied
        self.angle_rad, self.rate_rad_s, self.load = angle_rad, rate_rad_s, load
        if not self.encoder_broken:
            self._actual = self.zero_steps + self.direction * round(angle_rad / self.family.step_rad)
        memory = self.memory
        over = memory.counts("overload_torque", abs(load)) >= memory.get("overload_torque")
        over = over and bool(memory.get("unload_condition") & self._bits["overload"])
        self._overload_s = self._overload_s + dt_s if over else 0.0
        if over and self._overload_s >= memory.value("protection_time"):
            self._overload_sign = math.copysign(1.0, self.direction * load)

    def command(self, dt_s: float) -> JointCommand:
        """Return the command to the motor for the next ``dt_s`` [s]."""
        memory = self.memory
        enabled = self.torque_on
        limit = memory.value("torque_limit")
        if self._overload_sign:
            limit = min(limit, memory.value("protective_torque"))
        if enabled:
            self._aim = self.imprecision.late(self._goal(), self._now_s)
            way = self._aim - self.present()  # within the present turn
            target = self.direction * (self._actual + way - self.zero_steps) * self.family.step_rad
        else:
            self._rest()
            target = self.angle_rad
        top = memory.value("max_speed")
        speed_rad_s = min(abs(memory.value("goal_speed")) or top, top)  # 0 is the greatest
        self._command = JointCommand(target, enabled, limit, speed_rad_s)
        return self._command

    def power_cycle(self, now_s: float) -> None:
        """Switch the servo off and on: what is not in EEPROM is lost; it answers when it has started up."""
        self.memory.power_on()
        self._start_up()
        self._ready_s = now_s + _BOOT_S

    def _start_up(self) -> None:
        self._overload_s = self._overload_sign = 0.0
        self._rest()

    def _rest(self) -> None:
        """Hold the present position, and no goal from before."""
        self._aim = float(self.present())
        self.imprecision.forget(self._aim)

    def _calibrate_middle(self) -> None:
        """Store the offset that makes the present position 2048."""
        memory = self.memory
        if "homing_offset" not in self.family.by_name:
            return
        relative = self._actual % self.family.steps_per_turn - self.family.steps_per_turn // 2
        offset = self.family.register("homing_offset")
        memory.set("lock", 0)
        memory.write(offset.address, offset.encoding.encode(max(relative, offset.encoding.min_value)))
        memory.set("lock", 1)
        memory.set("torque_enable", 0)

    def _goal(self) -> float:
        memory = self.memory
        goal = memory.get("goal_position")
        low, high = memory.get("min_angle_limit"), memory.get("max_angle_limit")
        return float(goal if low == high == 0 else min(max(goal, low), high))
