"""Registers of limp servos, written and read back; stored ones last, since the memory's lock is opened for them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

from snake_gym.config import ConfigError
from snake_gym.hardware.bus.bus import Bus, set_lock
from snake_gym.hardware.bus.family import ServoFamily

_QUIET_S, _BAUD_SETTLE_S = 0.15, 0.05
_ATTEMPTS = 3


def check_count(family: ServoFamily, name: str, value: int) -> None:
    """Raise ConfigError unless a register may hold this count."""
    try:
        family.encode(name, value)
    except ValueError as error:
        raise ConfigError(str(error)) from None


def set_register(bus: Bus, servo_id: int, name: str, value: int) -> None:
    """Set a register of a servo, limp from then on. Raises ConfigError: it does not hold the value afterwards."""
    check_count(bus.family, name, value)
    is_stored = _prepare(bus, servo_id, name)
    holder = servo_id
    try:
        if bus.write_register(servo_id, name, value) and name == "id":
            holder = value
    finally:
        is_locked = not is_stored or set_lock(bus, holder, True)
    values = bus.read_block([holder], name).values[holder]
    held = "nobody knows what" if values is None else values[name]
    if held != value:
        raise ConfigError(f"servo {servo_id} holds {held} in {name} after {value} was written")
    if not is_locked:
        raise ConfigError(f"servo {holder} holds {value} in {name} but does not lock its memory; try once more")


def change_id(bus: Bus, old: int, new: int) -> None:
    """Change the ID of the only servo with ``old`` to ``new``, permanently; new servos all have 1, so connect them
    singly. Raises ConfigError."""
    check_count(bus.family, "id", new)
    if bus.ping(new) is not None:
        raise ConfigError(f"id {new} is taken already; expected a free one")
    # A late answer to that ping must not pass for what the servo says under its new ID.
    bus.clock.sleep(_QUIET_S)
    check_alone(bus, old)
    set_register(bus, old, "id", new)
    if bus.ping(old) is not None:
        raise ConfigError(f"a second servo answers as {old}; both had that id: connect them one by one")


def check_alone(bus: Bus, servo_id: int) -> None:
    """Raise ConfigError unless one servo, and no second, has this ID."""
    info = bus.ping(servo_id)
    if info is None:
        raise ConfigError(f"no servo answers as {servo_id}: look at power and cable, or scan --all-bauds")
    if info.ambiguous:
        raise ConfigError(f"two servos (or more) answer as {servo_id}: take off all but one")


def change_baud(open_bus: Callable[[int], Bus], servo_id: int, old: int, new: int) -> None:
    """Set the servo from ``old`` to ``new`` [baud]; ``open_bus`` opens the bus at a baud rate. Raises ConfigError.

    The servo changes at once, so it cannot acknowledge: it is looked for at the new rate and, if it is not there, at
    the old one. Its memory is locked again at either rate.
    """
    for _ in range(_ATTEMPTS):
        with closing(open_bus(old)) as bus:
            if bus.ping(servo_id) is not None:
                _prepare(bus, servo_id, "baud_rate")
                code = bus.family.baud_rates.index(new)
                bus.write_register(servo_id, "baud_rate", code, acknowledged=False)
        bus.clock.sleep(_BAUD_SETTLE_S)
        if _lock(open_bus, servo_id, new):
            return
    away = "" if _lock(open_bus, servo_id, old) else "; it does not answer: look for it with scan --all-bauds"
    raise ConfigError(f"servo {servo_id} does not take {new} baud{away}")


def _prepare(bus: Bus, servo_id: int, name: str) -> bool:
    """Switch the torque off and open the memory for a stored register. Return True if it is one."""
    if not bus.torque([servo_id], False)[servo_id]:
        raise ConfigError(f"servo {servo_id} does not switch its torque off; {name} was not written")
    is_stored = bus.family.register(name).address < bus.family.eeprom_end
    if is_stored and not set_lock(bus, servo_id, False):
        set_lock(bus, servo_id, True)
        raise ConfigError(f"servo {servo_id} does not unlock its memory; {name} was not written")
    return is_stored


def _lock(open_bus: Callable[[int], Bus], servo_id: int, baud: int) -> bool:
    """Lock the servo's memory. Return False if it does not answer at this rate."""
    with closing(open_bus(baud)) as bus:
        return bus.ping(servo_id) is not None and set_lock(bus, servo_id, True)
