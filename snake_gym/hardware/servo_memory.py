"""The register file of an emulated servo: what a write changes, what survives power-off, what a read returns.

As in the real memory, every byte of 0-255 can be read: addresses without a register, and those behind the table, read
0, and a block that runs over the end gets its full length. Writing goes by bytes as well: a write may begin in the
middle of a register; read-only bytes within it are left alone, and a value outside its register's limits is cut to
them. An ID that does not exist (254, 255) is not taken.

EEPROM (addresses below 40): a write acts at once; it outlasts power-off only if ``lock`` is 0 at that time.
"""

from __future__ import annotations

from snake_gym.hardware.encoding import Encoding
from snake_gym.hardware.protocol import MAX_ID
from snake_gym.hardware.registers import BY_NAME, EEPROM_END, REGISTERS, Register, ServoModel

SIZE = 256


class ServoMemory:
    """256 bytes, some of them registers.

    Args:
        model: gives the defaults.
        servo_id: what the ``id`` register holds from the start.
        settings: further registers that differ from the model's defaults, EEPROM ones as if they had been stored.
    """

    def __init__(self, model: ServoModel, servo_id: int, settings: dict[str, int] | None = None) -> None:
        self.model = model
        self._bytes = bytearray(SIZE)
        self._eeprom = bytearray(EEPROM_END)
        self._counts: dict[str, int] = {}
        self._owner: list[Register | None] = [None] * SIZE
        for register in REGISTERS:
            self._owner[register.address : register.address + register.size] = [register] * register.size
        self.factory_reset()
        for name, value in {**(settings or {}), "id": servo_id}.items():
            self.set(name, value)
        self._eeprom[:] = self._bytes[:EEPROM_END]
        self.power_on()

    def get(self, name: str) -> int:
        """The count that a register holds."""
        return self._counts[name]

    def set(self, name: str, value: int) -> None:
        """Let a register hold ``value``, as the servo itself does: read-only ones too, nothing is stored."""
        register = BY_NAME[name]
        self._bytes[register.address : register.address + register.size] = register.encoding.encode(value)
        self._counts[name] = value

    def read(self, address: int, n_bytes: int) -> bytes:
        """``n_bytes`` from ``address`` on; 0 where there is nothing."""
        found = bytes(self._bytes[address : address + n_bytes])
        return found + bytes(n_bytes - len(found))

    def write(self, address: int, data: bytes) -> list[str]:
        """What a write instruction does.

        Returns:
            names of the registers that it touched.
        """
        stores = self.get("lock") == 0
        touched: list[Register] = []
        before = bytes(self._bytes)
        for at, byte in enumerate(data, start=address):
            register = self._owner[at] if at < SIZE else None
            if register is None or register.access == "r":
                continue
            self._bytes[at] = byte
            if register not in touched:
                touched.append(register)
        for register in touched:
            self._decode(register)
            self._keep_within_limits(register, before)
            if stores and register.is_eeprom:
                part = slice(register.address, register.address + register.size)
                self._eeprom[part] = self._bytes[part]
        return [register.name for register in touched]

    def power_on(self) -> None:
        """EEPROM as stored, everything else as after power-off."""
        for register in REGISTERS:
            if not register.is_eeprom:
                self.set(register.name, self.model.default(register))
        self._bytes[:EEPROM_END] = self._eeprom
        for register in REGISTERS:
            self._decode(register)
        self.set("torque_limit", self.get("max_torque"))

    def factory_reset(self) -> None:
        """All registers to the model's defaults; the ID stays, or a chain of servos would become indistinguishable."""
        servo_id = self._counts.get("id", 1)
        for register in REGISTERS:
            self.set(register.name, self.model.default(register))
        self.set("id", servo_id)
        self._eeprom[:] = self._bytes[:EEPROM_END]

    def _decode(self, register: Register) -> None:
        data = bytes(self._bytes[register.address : register.address + register.size])
        self._counts[register.name] = register.encoding.decode(data)

    def _keep_within_limits(self, register: Register, before: bytes) -> None:
        value, (low, high) = self.get(register.name), register.limits
        if register.name == "id" and value > MAX_ID:
            self.set("id", before[register.address])
        elif not low <= value <= high:
            self.set(register.name, min(max(value, low), high))


def saturate(value: float, encoding: Encoding) -> int:
    """``value`` as a count, cut to what the register can show."""
    return min(max(round(value), encoding.min_value), encoding.max_value)
