"""More time for the answers of emulated servos, which a busy machine keeps from their turn.

``be_patient`` changes this process and the guards that it starts. ``python -m tests.hardware.patient MODULE WORD...``
runs a command or a guard with the same patience. The product's own times stay as they are; tests that are about
lateness do without.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable

from snake_gym.hardware.bus import line
from snake_gym.hardware.guard import client, guard


def be_patient(patch: Callable[[object, str, object], None] = setattr) -> None:
    """Wait longer for answers, here and in the guards started from now on."""
    patch(line, "LEAST_WAIT_S", 0.03)
    patch(guard, "FAREWELL_S", 20.0)
    patch(client, "GUARD", ("tests.hardware.patient", client.GUARD[-1]))
    patch(client, "SILENCE_S", 3.0)


def main(module: str, *words: str) -> None:
    """Run ``module``, a guard or a command, with its words."""
    be_patient()
    if module == client.GUARD[-1]:
        sys.exit(guard.main(list(words)))
    from snake_gym.hardware.commands import options

    options._PATIENCE_S = 0.1
    sys.argv = [module, *words]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
