"""A control loop over the servo bus: how steadily it ticks, and what it costs.

The bus is emulated by another process behind a pseudo terminal, with the wire times of the real one. This process
does what a robot's loop does at every tick: goals for all servos in one sync write, everything measured in one sync
read (addresses 56 to 70), wait for the next tick::

    python benchmarks/servo_bus.py --minutes 10 --servos 13 --rate-hz 50

Printed: percentiles of the period's deviation, how long an exchange takes, answers that were missing, and the share of
one core that the loop and the emulator took. Run it on an otherwise idle machine: on a busy one it measures the others.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import resource
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from snake_gym.hardware.clock import MonotonicClock
from snake_gym.hardware.emulated_port import EmulatedPort
from snake_gym.hardware.servo_bus import FeetechBus
from snake_gym.hardware.servo_emulator import EmulatedBus, EmulatedServo, WireFaults
from snake_gym.hardware.transport import SerialTransport

BLOCK = ("present_position", "present_current")


def emulate(pipe: Connection, n_servos: int, baud: int, loss: float) -> None:
    """The other process: servos until the pipe is closed, then its processor time."""
    servos = [EmulatedServo(i + 1, settings={"baud_rate": (1_000_000, 500_000).index(baud)}) for i in range(n_servos)]
    faults = WireFaults(lost=loss, corrupted=loss)
    bus = EmulatedBus(servos, clock=MonotonicClock(), baud=baud, faults=faults, step_s=0.005)
    with EmulatedPort(bus) as port:
        pipe.send(port.port)
        pipe.recv()
        usage = resource.getrusage(resource.RUSAGE_SELF)
        pipe.send(usage.ru_utime + usage.ru_stime)


def run_loop(driver: FeetechBus, ids: list[int], rate_hz: float, duration_s: float) -> dict[str, Any]:
    """Tick for ``duration_s`` and report."""
    period_s = 1.0 / rate_hz
    n_ticks = int(duration_s * rate_hz)
    starts, exchanges = np.empty(n_ticks), np.empty(n_ticks)
    missing = late = 0
    cpu_s = time.process_time()
    begin_s = next_s = time.monotonic()
    for tick in range(n_ticks):
        left_s = next_s - time.monotonic()
        if left_s > 0.0:
            time.sleep(left_s)
        starts[tick] = now = time.monotonic()
        late += now - next_s > period_s
        phase = 2.0 * math.pi * 0.2 * (now - begin_s)
        goals = [2048 + round(300.0 * math.sin(phase - 0.6 * i)) for i in ids]
        driver.write_targets(ids, goals)
        found = driver.read_block(ids, *BLOCK, deadline_s=next_s + period_s - 0.002)
        missing += len(found.failures)
        exchanges[tick] = time.monotonic() - now
        next_s += period_s
    elapsed_s = time.monotonic() - begin_s
    deviation_ms = np.abs(np.diff(starts) - period_s) * 1e3
    return {
        "ticks": n_ticks,
        "rate_hz": n_ticks / elapsed_s,
        "period_deviation_ms": _percentiles(deviation_ms),
        "exchange_ms": _percentiles(exchanges * 1e3),
        "ticks_over_a_period_late": int(late),
        "missing_answers": missing,
        "missing_share": missing / (n_ticks * len(ids)),
        "loop_cpu_share": (time.process_time() - cpu_s) / elapsed_s,
    }


def _percentiles(values: np.ndarray) -> dict[str, float]:
    shares = {"p50": 50.0, "p99": 99.0, "p99.9": 99.9, "max": 100.0}
    return {name: round(float(np.percentile(values, share)), 3) for name, share in shares.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--servos", type=int, default=13)
    parser.add_argument("--rate-hz", type=float, default=50.0)
    parser.add_argument("--baud", type=int, default=1_000_000, choices=(1_000_000, 500_000))
    parser.add_argument("--loss", type=float, default=0.0, help="share of packets lost, and again corrupted")
    parser.add_argument("--port", help="a real bus instead of the emulated one (its servos will move!)")
    options = parser.parse_args()
    ids = list(range(1, options.servos + 1))
    process = pipe = None
    port = options.port
    if port is None:
        pipe, theirs = multiprocessing.get_context("spawn").Pipe()
        arguments = (theirs, options.servos, options.baud, options.loss)
        process = multiprocessing.get_context("spawn").Process(target=emulate, args=arguments, daemon=True)
        process.start()
        port = pipe.recv()
    driver = FeetechBus(SerialTransport(port, options.baud), baud=options.baud)
    answering = [i for i in ids if driver.ping(i) is not None]
    if options.port is None and options.loss == 0.0 and answering != ids:
        sys.exit(f"only {answering} of {options.servos} servos answer")
    driver.torque(ids, True)
    began_s = time.monotonic()
    report = run_loop(driver, ids, options.rate_hz, 60.0 * options.minutes)
    driver.torque(ids, False)
    driver.close()
    if process is not None and pipe is not None:
        pipe.send("stop")
        report["emulator_cpu_share"] = pipe.recv() / (time.monotonic() - began_s)
        process.join(5.0)
    report["counters"] = vars(driver.counters)
    report["cores"] = len(os.sched_getaffinity(0))
    report["load_average"] = os.getloadavg()[0]
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
