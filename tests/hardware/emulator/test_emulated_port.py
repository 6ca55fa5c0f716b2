"""The emulator behind a real serial device, and the driver there: real time, so generous limits."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from snake_gym.config import ConfigError
from snake_gym.hardware.bus.clock import MonotonicClock, VirtualClock
from snake_gym.hardware.bus.exchange import LineTiming
from snake_gym.hardware.bus.servo_bus import ServoBus
from snake_gym.hardware.bus.transport import PortGone, SerialTransport
from snake_gym.hardware.emulator.bus import EmulatedBus, EmulatedServo, FirstOrderPlant, WireFaults
from snake_gym.hardware.emulator.port import EmulatedPort
from snake_gym.robot.spec import FloatArray
from tests.hardware.rig import wait_until

IDS = list(range(1, 14))
BLOCK = ("present_position", "present_current")
PATIENT = LineTiming(latency_s=0.05, longest_late_s=0.3, reopen_interval_s=0.05)
"""Tests run beside other work: an answer may take its time."""


def make_bus(faults: WireFaults | None = None, **more: float) -> EmulatedBus:
    return EmulatedBus([EmulatedServo(i) for i in IDS], clock=MonotonicClock(), faults=faults, step_s=0.005, **more)


def open_driver(port: EmulatedPort, **more: object) -> ServoBus:
    def open_port() -> SerialTransport:
        return SerialTransport(port.port, 1_000_000)

    return ServoBus(open_port(), timing=PATIENT, reopen=open_port, **more)  # type: ignore[arg-type]


def test_reading_and_moving_through_a_serial_device() -> None:
    bus = make_bus()
    with EmulatedPort(bus) as port:
        driver = open_driver(port)
        info = driver.ping(4)
        assert info is not None and info.model == 777
        assert not driver.read_block(IDS, *BLOCK).failures
        assert driver.torque(IDS, True) == dict.fromkeys(IDS, True)
        assert driver.write_targets(IDS, [2000 + 10 * i for i in IDS])
        wait_until(lambda: [bus.servo(i).present() for i in IDS] == [2000 + 10 * i for i in IDS])
        found = driver.read_block(IDS, *BLOCK)
        assert [v["present_position"] for v in found.values.values() if v] == [2000 + 10 * i for i in IDS]
        durations = []
        for _ in range(10):
            start_s = time.monotonic()
            assert not driver.read_block(IDS, *BLOCK).failures
            durations.append(time.monotonic() - start_s)
        assert min(durations) >= 2.9e-3, "answers take their time on the wire"
        driver.close()
    assert not os.path.lexists(port.port), "the device is gone afterwards"


def test_pulled_in_the_middle_of_an_answer() -> None:
    bus = make_bus()
    with EmulatedPort(bus) as port:
        line = SerialTransport(port.port, 1_000_000)
        line.write(b"\xff\xff\xfe\x06\x82\x38")
        port.unplug()
        with pytest.raises(PortGone):
            line.read(100, 0.5)
        with pytest.raises(PortGone):
            line.write(b"\x0f")
        line.close()
        port.plug()
        SerialTransport(port.port, 1_000_000).close()


def test_a_host_that_does_not_read() -> None:
    """The terminal's buffer runs full; the bus goes on, and the host finds its way back."""
    bus = make_bus()
    with EmulatedPort(bus) as port:
        line = SerialTransport(port.port, 1_000_000)
        driver = ServoBus(line, timing=PATIENT)
        assert driver.ping(1) is not None
        request = b"\xff\xff\x01\x04\x02\x00\xfa\xfe"  # 250 bytes each
        for _ in range(40):
            line.write(request)
            time.sleep(0.003)
        wait_until(lambda: not driver.read_block(IDS, *BLOCK).failures)
        driver.close()


def test_a_wrong_baud_rate_is_not_understood() -> None:
    with EmulatedPort(make_bus()) as port:
        slow = ServoBus(SerialTransport(port.port, 500_000), baud=500_000, retries=0)
        assert slow.ping(1) is None
        slow.close()
        right = open_driver(port)
        assert right.ping(1) is not None
        right.close()


def test_a_bus_on_a_virtual_clock_has_no_port() -> None:
    with pytest.raises(ValueError, match="MonotonicClock"):
        EmulatedPort(EmulatedBus([EmulatedServo(1)], clock=VirtualClock()))
    with pytest.raises(ValueError, match="VirtualClock"):
        make_bus().host_transport()


def test_a_link_that_another_emulator_serves_is_left_to_it(tmp_path: Path) -> None:
    link = tmp_path / "bus"
    with EmulatedPort(EmulatedBus([EmulatedServo(1)], clock=MonotonicClock()), link):
        with pytest.raises(ConfigError, match="which another emulator serves"):
            EmulatedPort(EmulatedBus([EmulatedServo(1)], clock=MonotonicClock()), link)
        assert link.exists()
    assert list(tmp_path.iterdir()) == []
    link.symlink_to("/dev/pts/none")  # left behind by one that was killed
    with EmulatedPort(EmulatedBus([EmulatedServo(1)], clock=MonotonicClock()), link):
        assert link.exists()


def test_servos_answer_on_a_computer_that_is_too_slow_for_their_robot() -> None:
    class HeavyRobot(FirstOrderPlant):
        def advance(self, dt_s: float, *commands: FloatArray) -> None:
            time.sleep(2.0 * dt_s)
            super().advance(dt_s, *commands)

    bus = EmulatedBus([EmulatedServo(1)], HeavyRobot(1), clock=MonotonicClock(), step_s=0.005)
    with EmulatedPort(bus) as port:
        driver = open_driver(port)
        time.sleep(1.0)  # a robot that catches up with everything is a second late by now, and never again in time
        answers = [driver.ping(1) for _ in range(10)]
        driver.close()
    assert any(answers), "on a busy machine one may be late"
