"""Emulated Dynamixel X servo: what it does otherwise than Feetech's, as listed in ``dynamixel``.

A write that it does not carry out as a whole is not carried out at all, and its answer says why. Faults named in
``unload_condition`` latch; the others last as long as their cause. The bus watchdog counts from the last instruction to
this servo or to all, the stricter reading of the manual. When it runs out, the servo brakes and holds where it is, and
its torque stays on.

Not modelled: modes other than position, times instead of speeds, registered writes, ``clear``, a second ID, indirect
addresses, bulk and fast reads.
"""

from __future__ import annotations

from snake_gym.emulator.servo import EmulatedServo
from snake_gym.hardware.bus import dynamixel as dynamixel  # known by name
from snake_gym.hardware.bus.family import family_of_model
from snake_gym.hardware.bus.protocol import Instruction

_ALERT = 0x80
_NO_INSTRUCTION, _RANGE, _LENGTH, _LIMIT, _ACCESS = 2, 4, 5, 6, 7
"""Reasons for which an instruction fails."""
_LONGEST = 250
_GOALS = {"torque_limit", "goal_current", "goal_velocity", "goal_position"}
"""Registers that are read-only after the bus watchdog has run out."""


class XServo(EmulatedServo):
    """Dynamixel X servo on an emulated bus; arguments as of ``EmulatedServo``."""

    offset_sign = 1

    def execute(self, instruction: int, params: bytes, broadcast: bool = False) -> bytes | None:
        memory, own_id, data, failure = self.memory, self.id, b"", 0
        self._heard_s = self._now_s
        address, n_bytes, _ = self.protocol.split(params)
        least_level = 2  # of ``response_level``, for an answer
        if instruction == Instruction.PING:
            least_level, data = 0, memory.read(0, 2) + memory.read(6, 1)
        elif instruction == Instruction.READ:
            least_level = 1
            failure = 0 if len(params) == 4 and 0 < n_bytes <= _LONGEST else _LENGTH
            if not failure:
                self.sense()
                data = memory.read(address, n_bytes)
        elif instruction == Instruction.WRITE:
            failure = self.write(address, params[2:])
        elif instruction == Instruction.REBOOT:
            self.power_cycle(self._now_s)
        else:
            failure = _NO_INSTRUCTION
        if memory.get("response_level") < least_level or (broadcast and instruction != Instruction.PING):
            return None
        return self.protocol.status(own_id, failure | _ALERT * bool(self.error()), data)

    def write(self, address: int, data: bytes) -> int:
        memory, end = self.memory, address + len(data)
        self._heard_s = self._now_s
        was_on, held = memory.get("torque_enable"), memory.between(address, end)
        if not held or any(one.access == "r" or (was_on and one.address < self.family.eeprom_end) for one in held):
            return _ACCESS
        if held[0].address < address or end < held[-1].end:
            return _LENGTH
        counts = {one.name: one.encoding.decode(data[one.address - address : one.end - address]) for one in held}
        if any(not one.limits[0] <= counts[one.name] <= one.limits[1] for one in held):
            return _RANGE
        if memory.get("bus_watchdog") < 0 and _GOALS & counts.keys():
            return _RANGE
        goal = counts.get("goal_position", memory.get("min_angle_limit"))
        if not memory.get("min_angle_limit") <= goal <= memory.get("max_angle_limit"):
            return _LIMIT
        if counts.get("torque_enable") and self._latched:
            return _ACCESS
        memory.write(address, data)
        if memory.get("torque_enable") and not was_on:
            memory.set("goal_position", self.present())
        return 0

    def error(self) -> int:
        return super().error() | self._latched

    def sense(self) -> None:
        super().sense()
        self.memory.set("hardware_error", self.error())

    def update(self, now_s: float, angle_rad: float, rate_rad_s: float, load: float) -> None:
        super().update(now_s, angle_rad, rate_rad_s, load)
        memory = self.memory
        if fatal := super().error() & memory.get("unload_condition"):
            self._latched |= fatal
            memory.set("torque_enable", 0)
        limit_s = memory.value("bus_watchdog")
        if 0.0 < limit_s < now_s - self._heard_s and memory.get("torque_enable"):
            memory.set("bus_watchdog", -1)
            memory.set("goal_position", self.present())

    def _start_up(self) -> None:
        self._latched = 0
        self._heard_s = self._now_s
        super()._start_up()


def emulated_servo(
    servo_id: int, model: str = "STS3215", zero_steps: int | None = None, direction: int = 1,
    settings: dict[str, int] | None = None,
) -> EmulatedServo:  # fmt: skip
    """Return an emulated servo of that model; arguments as of ``EmulatedServo``."""
    make = XServo if family_of_model(model)[0].protocol == 2 else EmulatedServo
    return make(servo_id, model, zero_steps, direction, settings)
