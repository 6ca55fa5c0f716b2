"""Guard of ``wiggle`` and ``calibrate``: bus calls of another process, and torque-off whatever becomes of it.

A call that gives torque is refused after a stop. While torque may be on, the other process has to call something at
least every ``silence_s``, if only ``beat``.
"""

from __future__ import annotations

import socket
from typing import Any

from snake_gym.hardware.bus.bus import Bus
from snake_gym.hardware.guard.guard import Guard
from snake_gym.hardware.guard.torque_switch import TorqueSwitch

_LOOK_S = 0.02
"""Time between two looks at the emergency stop [s]."""


class BenchGuard(Guard):
    """Guard of single bus calls.

    Args:
        silence_s: time without a call after which the other process hangs [s].
    """

    def __init__(self, link: socket.socket, bus: Bus, torque: TorqueSwitch, silence_s: float) -> None:
        super().__init__(link, bus, torque)
        self._silence_s = silence_s
        self._heard_s = self._next_look_s = self._clock.now()

    def start(self) -> None:
        self._torque.check_stop()
        self.beat()

    def patience_s(self) -> float:
        return max(0.0, self._next_look_s - self._clock.now())

    def take(self, kind: str, *content: Any) -> None:
        self.beat()
        self._mind_silence()
        number, *call = content
        self.send("answer", number, self._call(*call))
        self._heard_s = self._clock.now()

    def turn(self) -> bool:
        now = self._clock.now()
        if now >= self._next_look_s:
            self._next_look_s = now + _LOOK_S
            self._mind_silence()
            self._torque.look()
            self.tell_news()
            self.beat()
        return True

    def _mind_silence(self) -> None:
        """Stop if torque may be on and nothing was asked for too long: also before a call that comes after a pause."""
        if self._torque.pending and self._clock.now() - self._heard_s > self._silence_s:
            self._torque.halt(f"nothing was asked for {self._silence_s:g} s")

    def _call(self, name: str, *arguments: Any) -> Any:
        if name == "beat":
            return True
        moved = _moved(name, *arguments)
        if moved and self._torque.stop_reason is not None:
            return False
        self._torque.expect_on(moved)
        if name == "torque" and not moved:
            return self._torque.off(arguments[0])
        return getattr(self._bus, name)(*arguments)


def _moved(name: str, ids: Any, *arguments: Any) -> list[int]:
    """Return the IDs of servos that may have torque after a bus call."""
    if name == "write_targets" or (name == "torque" and arguments[0]):
        return list(ids)
    return [ids] if name == "write_register" and arguments[0] == "torque_enable" and arguments[1] else []
