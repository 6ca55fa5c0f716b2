"""A control loop over the servo bus: how steadily it ticks, and what it costs.

The bus is emulated by another process behind a pseudo terminal, with the wire times of the real one. Two loops do what
a robot's loop does at every tick: goals for all servos in one sync write, everything measured in one sync read
(addresses 56 to 70), wait for the next tick::

    python benchmarks/servo_bus.py --minutes 10 --servos 13 --rate-hz 50                # the guard process, as in a run
    python benchmarks/servo_bus.py --minutes 10 --servos 13 --rate-hz 50 --loop driver   # the bare driver
    python benchmarks/servo_bus.py --config configs/hardware/sm8524bl.yaml               # a configuration's bus

``--loop guard`` is what a run uses: the guard owns the port, checks and clamps, and this process sends it a command for
every sample, as a policy that acts at the bus's rate; with ``--config`` one in each control period of its robot, at
its baud rate and bus period. Emulator and loop have the real-time priority of a run
(``--priority``, 0: none); whether the system granted it is printed.

Printed: percentiles of the period's deviation and of the samples' age (since the servos were asked, when the loop gets
them), answers that were missing, and the share of one core that the loop and the emulator took. Run it on an otherwise
idle machine: without real-time priority it measures the others.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from snake_gym.config import build, load_yaml
from snake_gym.hardware.bus.clock import MonotonicClock
from snake_gym.hardware.bus.feetech import FEETECH
from snake_gym.hardware.bus.servo_bus import BusPort, ServoBus
from snake_gym.hardware.bus.transport import SerialTransport
from snake_gym.hardware.calibration.calibration import straight_chain
from snake_gym.hardware.emulator.bus import EmulatedBus, EmulatedServo, WireFaults
from snake_gym.hardware.emulator.port import EmulatedPort
from snake_gym.hardware.run.connection import ConnectionConfig
from snake_gym.hardware.run.run_config import RunConfig
from snake_gym.hardware.safety.body import BodySample
from snake_gym.hardware.safety.checks import SafetyLimits
from snake_gym.hardware.safety.guard import spare_old_objects, take_priority
from snake_gym.hardware.safety.guarded_body import GuardedBody
from snake_gym.robot.catalogue import load_robot

BLOCK = ("present_position", "present_current")


def emulate(pipe: Connection, n_servos: int, baud: int, loss: float, priority: int, return_delay: int) -> None:
    """The other process: servos until the pipe is closed, then its processor time."""
    refused = take_priority(priority)
    settings = {"baud_rate": FEETECH.baud_rates.index(baud), "return_delay": return_delay}
    servos = [EmulatedServo(i + 1, settings=settings) for i in range(n_servos)]
    faults = WireFaults(lost=loss, corrupted=loss)
    bus = EmulatedBus(servos, clock=MonotonicClock(), baud=baud, faults=faults, step_s=0.005)
    spare_old_objects()
    with EmulatedPort(bus) as port:
        pipe.send((port.port, refused))
        pipe.recv()
        pipe.send(_cpu_s(resource.RUSAGE_SELF))


def wave(n_servos: int, time_s: float) -> np.ndarray:
    """Joint angles (J,) [rad] of a slow gait."""
    return 0.45 * np.sin(2.0 * math.pi * 0.2 * time_s - 0.6 * np.arange(n_servos))


def run_driver(port: str, n_servos: int, baud: int, rate_hz: float, n_ticks: int, priority: int) -> dict[str, Any]:
    """Tick with the bare driver, and report."""
    refused = take_priority(priority)
    ids = list(range(1, n_servos + 1))
    driver = ServoBus(SerialTransport(port, baud), baud=baud)
    driver.torque(ids, True)
    period_s = 1.0 / rate_hz
    starts, exchanges, ages = np.empty((3, n_ticks))
    missing = 0
    cpu_s = time.process_time()
    begin_s = next_s = time.monotonic()
    for tick in tqdm(range(n_ticks), unit="tick", mininterval=5.0):
        driver.clock.sleep(next_s - time.monotonic())
        starts[tick] = now = time.monotonic()
        driver.write_targets(ids, (2048 + 651.9 * wave(n_servos, now - begin_s)).round().astype(int).tolist())
        found = driver.read_block(ids, *BLOCK, deadline_s=next_s + period_s - 0.002)
        missing += len(found.failures)
        exchanges[tick] = time.monotonic() - now
        ages[tick] = time.monotonic() - found.stamp_s
        next_s += period_s
    cpu_s = time.process_time() - cpu_s
    driver.torque(ids, False)
    driver.close()
    return _report(starts, ages, period_s, missing, n_servos, cpu_s, refused) | {
        "exchange_ms": _percentiles(exchanges * 1e3),
        "counters": vars(driver.counters),
    }


def run_guard(
    port: str, n_servos: int, baud: int, rate_hz: float, n_ticks: int, priority: int, command_s: float = 0.0
) -> dict[str, Any]:
    """Tick with the guard process of a run, and report; a command every ``command_s`` [s], 0: for every sample."""
    period_s = 1.0 / rate_hz
    chain = straight_chain(range(1, n_servos + 1), 1.5)
    starts: list[float] = []
    ages: list[float] = []
    missing = whole = 0
    by_joint = np.zeros(n_servos, int)

    def watch(sample: BodySample) -> None:
        nonlocal missing, whole
        starts.append(sample.cycle_s)
        missing += int((~sample.health.answered).sum())
        whole += bool(sample.health.answered.all())
        by_joint[~sample.health.answered] += 1

    with tempfile.TemporaryDirectory() as folder:
        latch = Path(folder) / "estop"
        body = GuardedBody(BusPort(port, baud), chain, SafetyLimits(), period_s, latch=latch, priority=priority)
        body.start()
        body.watch = watch
        begin_s = time.monotonic()
        step_s = max(command_s, period_s)
        for tick in tqdm(range(round(n_ticks * period_s / step_s)), unit="tick", mininterval=5.0):
            body.command(wave(n_servos, time.monotonic() - begin_s))
            sample = body.run_until(begin_s + (tick + 1) * step_s)
            ages.append(time.monotonic() - sample.stamp_s)
            if body.stop_reason is not None:
                sys.exit(f"stopped: {body.stop_reason}")
        news = body.news()
        cpu_s = _cpu_s(resource.RUSAGE_CHILDREN)
        body.close()
        cpu_s = _cpu_s(resource.RUSAGE_CHILDREN) - cpu_s
    refused = next((line for line in news if "priority" in line), "")
    return _report(np.array(starts), np.array(ages), period_s, missing, n_servos, cpu_s, refused) | {
        "whole_cycles_share": whole / len(starts), "missing_by_joint": by_joint.tolist(), "news": news,
    }  # fmt: skip


def _report(
    starts: np.ndarray, ages: np.ndarray, period_s: float, missing: int, n_servos: int, cpu_s: float, refused: str
) -> dict[str, Any]:
    periods = np.diff(starts)
    elapsed_s = float(starts[-1] - starts[0])
    return {
        "ticks": len(starts),
        "rate_hz": len(periods) / elapsed_s,
        "period_deviation_ms": _percentiles(np.abs(periods - period_s) * 1e3),
        "sample_age_ms": _percentiles(ages * 1e3),
        "ticks_skipped": int((np.round(periods / period_s) - 1.0).clip(0.0).sum()),
        "missing_answers": missing,
        "missing_share": missing / (len(starts) * n_servos),
        "loop_cpu_share": cpu_s / elapsed_s,
        "priority_refused": refused,
    }


def _percentiles(values: np.ndarray) -> dict[str, float]:
    shares = {"p50": 50.0, "p99": 99.0, "p99.9": 99.9, "max": 100.0}
    return {name: round(float(np.percentile(values, share)), 3) for name, share in shares.items()}


def _cpu_s(whose: int) -> float:
    usage = resource.getrusage(whose)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--servos", type=int, default=13)
    parser.add_argument("--rate-hz", type=float, default=50.0)
    parser.add_argument("--baud", type=int, default=FEETECH.baud_rates[0], choices=FEETECH.baud_rates)
    parser.add_argument("--config", help="baud rate, bus period, servos and control period are those of this file")
    parser.add_argument("--return-delay", type=int, default=0, help="register of the emulated servos [2 us]")
    parser.add_argument("--loss", type=float, default=0.0, help="share of packets lost, and again corrupted")
    parser.add_argument("--loop", choices=("guard", "driver"), default="guard")
    parser.add_argument("--priority", type=int, default=ConnectionConfig.priority, help="real-time; 0: none")
    parser.add_argument("--port", help="a real bus instead of the emulated one (its servos will move!)")
    options = parser.parse_args()
    command_s = 0.0
    if options.config is not None:
        config = build(RunConfig, load_yaml(options.config))
        spec = load_robot(config.robot or "resilient_servo")
        options.servos, options.baud, command_s = spec.n_joints, config.connection.baud, spec.control_dt_s
        options.rate_hz = 1.0 / config.connection.period_s
    process = pipe = None
    port = options.port
    if port is None:
        spawn = multiprocessing.get_context("spawn")
        pipe, theirs = spawn.Pipe()
        arguments = (theirs, options.servos, options.baud, options.loss, options.priority, options.return_delay)
        process = spawn.Process(target=emulate, args=arguments, daemon=True)
        process.start()
        port, refused = pipe.recv()
    n_ticks = max(2, round(60.0 * options.minutes * options.rate_hz))
    began_s = time.monotonic()
    told = (port, options.servos, options.baud, options.rate_hz, n_ticks, options.priority)
    report = run_guard(*told, command_s) if options.loop == "guard" else run_driver(*told)
    if process is not None and pipe is not None:
        pipe.send("stop")
        report["emulator_cpu_share"] = pipe.recv() / (time.monotonic() - began_s)
        report["emulator_priority_refused"] = refused
        process.join(5.0)
    report["cores"] = len(os.sched_getaffinity(0))
    report["load_average"] = os.getloadavg()[0]
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
