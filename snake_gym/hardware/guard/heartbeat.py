"""Heartbeat: bytes on a second serial port, by which a board on the servos' supply knows that somebody is in charge.

``+`` in every bus cycle while the torque may be on, ``-`` once it is off in all servos. A board that has heard ``+``
and then nothing for too long takes the supply away (docs/hardware.md has its program). So the bytes stop without ``-``
where the process that runs the bus is killed or hangs, and where a robot has stopped but a servo has not said that it
is limp.
"""

from __future__ import annotations

from snake_gym.hardware.bus.transport import PortGone, SerialTransport

BEAT, REST = b"+", b"-"


class Heartbeat:
    """Heartbeat on a serial device; without one (None) it does nothing. Raises PortGone."""

    def __init__(self, device: str | None = None) -> None:
        self._port = None if device is None else SerialTransport(device, 115_200)
        self._rests = True
        self.trouble: str | None = None
        """Reason why nothing may move any more: the board hears nothing."""

    def beat(self) -> None:
        self._rests = False
        self._send(BEAT)

    def rest(self) -> None:
        """Say that the torque is off in all servos."""
        if not self._rests:
            self._send(REST)
        self._rests = True

    def close(self) -> None:
        if self._port is not None:
            self._port.close()

    def _send(self, byte: bytes) -> None:
        if self._port is None or self.trouble is not None:
            return
        try:
            self._port.write(byte, wait_s=0.0)
        except PortGone as error:
            self.trouble = f"the heartbeat does not reach its board: {error}"
