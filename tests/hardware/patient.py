"""More time for the answers of emulated servos, which a busy machine keeps from their turn.

``be_patient`` changes this process and the guards that it starts. ``python -m tests.hardware.patient - MODULE WORD...``
runs a command with the same patience, but not its guard. The product's own times stay as they are; tests that are about
lateness do without.
"""

from __future__ import annotations

import runpy
import socket
import subprocess
import sys
from collections.abc import Callable

from snake_gym.hardware.bus import line
from snake_gym.hardware.guard import client, torque_off
from snake_gym.hardware.guard.torque_off import start_partner

WAIT_S = 0.03
"""Least wait for an answer [s]."""
_FAREWELL_S = 20.0
"""Time for which a guard that is no longer needed tries to reach servos [s]."""


def be_patient(patch: Callable[[object, str, object], None] = setattr) -> None:
    """Wait longer for answers, here and in the guards started from now on."""
    patch(line, "LEAST_WAIT_S", WAIT_S)
    patch(client, "start_partner", _start)


def _start(module: str, link: socket.socket) -> subprocess.Popen[bytes]:
    return start_partner(__name__, link, module)


def main(descriptor: str, module: str, *words: str) -> None:
    """Run ``module``: a partner that talks through ``descriptor``, or a command (-)."""
    line.LEAST_WAIT_S = WAIT_S
    torque_off.FAREWELL_S = _FAREWELL_S
    sys.argv = [module, descriptor]
    if descriptor == "-":
        from snake_gym.hardware.commands import options

        options._PATIENCE_S = 0.1
        sys.argv = [module, *words]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
