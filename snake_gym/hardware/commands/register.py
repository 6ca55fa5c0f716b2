"""Command ``register``: read and write a register of a servo by its name.

``register read [NAME]`` prints counts and values; without a name, of all registers. ``register write NAME COUNT``
switches the servo's torque off first, opens and closes the lock of its memory where the register is a stored one, and
reads back.
"""

from __future__ import annotations

import argparse
import contextlib

from snake_gym.config import ConfigError
from snake_gym.hardware.bus.family import Register
from snake_gym.hardware.commands import PROGRAM
from snake_gym.hardware.commands.options import add_bus, bus_port, id_list, open_bus
from snake_gym.hardware.commands.stored_registers import check_count, set_register

_ELSEWHERE = {
    "id": f"{PROGRAM} scan --change-id",
    "baud_rate": f"{PROGRAM} scan --change-baud",
    "goal_position": f"{PROGRAM} wiggle, as a goal moves the joint",
    "torque_enable": f"{PROGRAM} limp for torque off, and calibrate for a new middle",
}
"""Command to use instead, by the name of a register that is not written here."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=["read", "write"])
    parser.add_argument("name", nargs="?", help="register, as max_torque; read: default all")
    parser.add_argument("count", nargs="?", type=int, help="what to write, in the register's own counts")
    add_bus(parser)
    parser.add_argument("--id", type=id_list, required=True, metavar="IDS", help="servo, or several as in 1-9")


def run(options: argparse.Namespace) -> int:
    port, name, count, writes = bus_port(options), options.name, options.count, options.action == "write"
    if writes != (count is not None):
        raise ConfigError(f"register {options.action} has {'no' if writes else 'a'} count; expected "
                          + ("write NAME COUNT" if writes else "read NAME"))  # fmt: skip
    chosen = port.family.registers if name is None else (port.family.register(name),)
    if writes and name in _ELSEWHERE:
        raise ConfigError(f"register {name} is not written here; expected {_ELSEWHERE[name]}")
    if writes:
        check_count(port.family, name, count)
    with contextlib.closing(open_bus(port)) as bus:
        for servo_id in options.id:
            if writes:
                set_register(bus, servo_id, name, count)
            found = bus.read_block([servo_id], *(one.name for one in chosen)).values[servo_id]
            if found is None:
                raise ConfigError(f"servo {servo_id} does not answer at {bus.baud} baud; see who does with scan")
            stored = ", stored" if writes and chosen[0].address < port.family.eeprom_end else ""
            for one in chosen:
                print(f"servo {servo_id:3d}: {one.name:20s} {describe(one, found[one.name])}{stored}")
    return 0


def describe(register: Register, count: int) -> str:
    """Return a count, and the value that it means, for people."""
    if not register.unit:
        return str(count)
    return f"{count} ({count * register.encoding.scale:.4g} {register.unit})"
