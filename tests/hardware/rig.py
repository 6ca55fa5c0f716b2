"""A chain of emulated servos on a bus in memory, on a clock that only moves when somebody waits."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from snake_gym.hardware.bus.clock import MonotonicClock
from snake_gym.hardware.bus.servo_bus import ServoBus
from snake_gym.hardware.calibration.calibration import Calibration, JointCalibration
from snake_gym.hardware.emulator.bus import EmulatedBus, EmulatedServo, FirstOrderPlant, WireFaults
from snake_gym.hardware.emulator.port import EmulatedPort
from snake_gym.hardware.safety.checks import SafetyLimits
from snake_gym.hardware.safety.emergency_stop import EmergencyStop
from snake_gym.hardware.safety.servo_body import ServoBody
from tests.hardware.adapter_faults import FaultyBus

QUICK = SafetyLimits(ramp_time_s=0.05)


class Rig:
    """Emulated servos 1..n, their bus, a calibration that fits, and a ``ServoBody`` on it all."""

    def __init__(
        self,
        folder: Path,
        n: int = 4,
        limits: SafetyLimits = QUICK,
        faults: WireFaults | None = None,
        zero_steps: int = 2048,
        direction: int = 1,
    ) -> None:
        self.plant = FirstOrderPlant(n, joint_angle=[0.1 * k for k in range(n)])
        self.servos = [EmulatedServo(k + 1, zero_steps=zero_steps, direction=direction) for k in range(n)]
        self.bus = FaultyBus(self.servos, faults, plant=self.plant)
        self.clock = self.bus.clock
        self.driver = ServoBus(self.bus.host_transport(), clock=self.clock, reopen=self.bus.host_transport)
        self.calibration = Calibration(
            tuple(JointCalibration(k + 1, direction, zero_steps, -1.2, 1.2) for k in range(n)), "STS3215"
        )
        self.stop = EmergencyStop(folder / "estop")
        self.body = ServoBody(self.driver, self.calibration, limits, stop=self.stop)

    def torque_on(self) -> list[bool]:
        self.bus.poll()
        return [servo.memory.get("torque_enable") == 1 for servo in self.servos]

    def run(self, seconds: float, reference: np.ndarray, period_s: float = 0.1) -> None:
        """Command ``reference`` every ``period_s`` for so long."""
        when = self.clock.now()
        for _ in range(round(seconds / period_s)):
            self.body.command(reference)
            when += period_s
            self.body.run_until(when)


def serve(servos: Sequence[EmulatedServo], plant: FirstOrderPlant | None = None) -> EmulatedPort:
    """Servos on a pseudo terminal, in real time: easy on a busy machine."""
    return EmulatedPort(EmulatedBus(servos, plant, clock=MonotonicClock(), step_s=0.01))


def wait_until(condition: Callable[[], object], seconds: float = 20.0) -> float:
    """Time until ``condition()`` [s]; fails after ``seconds``."""
    begun_s = time.monotonic()
    while not condition():
        assert time.monotonic() - begun_s < seconds
        time.sleep(0.005)  # the servos are a thread of this process
    return time.monotonic() - begun_s


@contextmanager
def ending(process: subprocess.Popen[Any]) -> Iterator[None]:
    """Kill ``process``, if it still runs, and wait for its end; after a failure close its pipes too."""
    try:
        yield
    except BaseException:
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        raise
    finally:
        process.kill()
        process.wait()
