"""A servo's baud rate, changed for good.

The servo changes as soon as it is told, so the change cannot be acknowledged: it is found again at the new rate, or, if
it has not heard, at the old one. Its memory is locked again wherever it is.
"""

from __future__ import annotations

from collections.abc import Callable

from snake_gym.hardware.calibration_procedures import ProcedureError
from snake_gym.hardware.clock import Clock, MonotonicClock
from snake_gym.hardware.registers import WRITABLE_BAUD
from snake_gym.hardware.servo_bus import ServoBus

_ATTEMPTS = 3
_SETTLE_S = 0.05


def change_baud(
    open_bus: Callable[[int], ServoBus], servo_id: int, old: int, new: int, clock: Clock | None = None
) -> None:
    """Set the servo from ``old`` to ``new`` [baud].

    Args:
        open_bus: opens the bus at a baud rate; closed again here.

    Raises:
        ProcedureError: a rate that servos are not set to, no answer at the old one, or the servo stays there.
    """
    if new not in WRITABLE_BAUD or old == new:
        rates = ", ".join(str(rate) for rate in WRITABLE_BAUD if rate != old)
        raise ProcedureError(f"the new baud rate is {new}; expected one of {rates}")
    clock = MonotonicClock() if clock is None else clock
    for attempt in range(_ATTEMPTS):
        bus = open_bus(old)
        try:
            if bus.ping(servo_id) is None:
                if attempt == 0:
                    raise ProcedureError(f"servo {servo_id} does not answer at {old} baud")
            else:
                _tell(bus, servo_id, new)
        finally:
            bus.close()
        clock.sleep(_SETTLE_S)
        if _lock(open_bus, servo_id, new):
            return
    locked = _lock(open_bus, servo_id, old)
    raise ProcedureError(
        f"servo {servo_id} does not take {new} baud"
        + ("" if locked else "; it does not answer any more: look for it with scan --all-bauds")
    )


def _tell(bus: ServoBus, servo_id: int, new: int) -> None:
    if not bus.torque([servo_id], False)[servo_id]:
        raise ProcedureError(f"servo {servo_id} does not switch its torque off; its baud rate was not changed")
    if not bus.write_register(servo_id, "lock", 0):
        bus.write_register(servo_id, "lock", 1)
        raise ProcedureError(f"servo {servo_id} does not unlock its memory; its baud rate was not changed")
    bus.write_register(servo_id, "baud_rate", WRITABLE_BAUD.index(new), acknowledged=False)


def _lock(open_bus: Callable[[int], ServoBus], servo_id: int, baud: int) -> bool:
    """Lock the servo's memory; False: it does not answer at this rate."""
    bus = open_bus(baud)
    try:
        return bus.ping(servo_id) is not None and bus.write_register(servo_id, "lock", 1)
    finally:
        bus.close()
