"""What the emulated servo answers, byte by byte, and how it follows its registers."""

from __future__ import annotations

import itertools
import math

import pytest

from snake_gym.emulator.bus import EmulatedBus, FirstOrderPlant
from snake_gym.emulator.servo import EmulatedServo
from snake_gym.hardware.bus.feetech import FEETECH
from snake_gym.hardware.bus.protocol import PROTOCOLS, PacketParser

protocol = PROTOCOLS[1]
build = protocol.build


def make_bus(*ids: int, **settings: int) -> EmulatedBus:
    return EmulatedBus([EmulatedServo(i, settings=settings) for i in ids or (1,)])


def ask(bus: EmulatedBus, request: bytes, wait_s: float = 0.02) -> bytes:
    """All bytes that come back within ``wait_s``."""
    end = bus.host_transport()
    end.read(4096, 0.0)
    end.write(request)
    bus.clock.sleep(wait_s)
    return end.read(4096, 0.0)


def write(bus: EmulatedBus, servo_id: int, name: str, value: int) -> bytes:
    register = FEETECH.by_name[name]
    return ask(bus, protocol.write(servo_id, register.address, register.encoding.encode(value)))


# --- instructions ----------------------------------------------------------------------------------------------------


def test_error_byte_is_the_status_register() -> None:
    bus = make_bus(1)
    bus.servo(1).supply_v = 15.0
    bus.servo(1).temperature_c = 90.0
    assert ask(bus, protocol.ping(1))[4] == 0x05
    assert ask(bus, protocol.read(1, 65, 1)) == build(1, 0x05, b"\x05")
    assert ask(bus, protocol.read(1, 62, 2)) == build(1, 0x05, bytes([150, 90]))


# --- timing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("baud_code", "delay"), [(0, 0), (4, 250), (3, 0)])
def test_answers_come_at_baud_rate_after_the_return_delay(baud_code: int, delay: int) -> None:
    bus = make_bus(1, 2, return_delay=delay, baud_rate=baud_code)
    bus.baud = bus.servos[0].baud
    end = bus.host_transport()
    start_s = bus.clock.now()
    request = protocol.sync_read([1, 2], 56, 15)
    end.write(request)
    arrivals = []
    while len(arrivals) < 2:
        data = end.read(4096, 1.0)
        assert data
        arrivals.append((len(data), bus.clock.now() - start_s))
    byte_s, answer = 10.0 / bus.baud, 21
    first_s = len(request) * byte_s + delay * 2e-6 + answer * byte_s
    second_s = first_s + delay * 2e-6 + answer * byte_s
    assert [n for n, _ in arrivals] == [answer, answer]
    assert [time_s for _, time_s in arrivals] == pytest.approx([first_s, second_s], abs=1e-8)


def test_talking_into_an_answer_spoils_both() -> None:
    bus = make_bus(1)
    end = bus.host_transport()
    end.write(protocol.write(1, 41, b"\x05"))  # acknowledged, whether the host waits or not
    bus.clock.sleep(100e-6)
    end.write(protocol.write(1, 41, b"\x09"))
    bus.clock.sleep(0.01)
    parser = PacketParser()
    assert parser.feed(end.read(100, 0.0)) == []
    assert bus.servo(1).memory.get("acceleration") == 5


# --- memory ----------------------------------------------------------------------------------------------------------


def test_eeprom_lock_decides_what_outlasts_power_off() -> None:
    bus = make_bus(1)
    assert write(bus, 1, "max_torque", 500) == build(1, 0)
    assert bus.servo(1).memory.get("max_torque") == 500  # locked: it acts...
    bus.servo(1).power_cycle(bus.clock.now())
    assert bus.servo(1).memory.get("max_torque") == 1000  # ... until power-off
    bus.clock.sleep(0.5)
    write(bus, 1, "lock", 0)
    write(bus, 1, "max_torque", 600)
    write(bus, 1, "torque_limit", 100)
    bus.servo(1).power_cycle(bus.clock.now())
    memory = bus.servo(1).memory
    assert (memory.get("max_torque"), memory.get("torque_limit"), memory.get("lock")) == (600, 600, 1)


# --- position --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("zero_steps", "offset", "direction"),
    [(2048, 0, 1), (0, 500, -1), (4090, -904, 1), (123, 2047, -1), (4090, -2047, -1), (123, -904, 1)],
)
def test_present_is_actual_minus_offset(zero_steps: int, offset: int, direction: int) -> None:
    servo = EmulatedServo(1, zero_steps=zero_steps, direction=direction, settings={"homing_offset": offset})
    angle = 0.3
    bus = EmulatedBus([servo], plant=FirstOrderPlant(1, joint_angle=[angle]))
    actual = zero_steps + direction * round(angle / (2 * math.pi) * 4096)
    assert ask(bus, protocol.read(1, 56, 2)) == build(1, 0, ((actual - offset) % 4096).to_bytes(2, "little"))


def settle(bus: EmulatedBus, duration_s: float = 2.0) -> int:
    bus.clock.sleep(duration_s)
    bus.poll()
    return bus.servos[0].present()


@pytest.mark.parametrize("speed", [1000, 3000, 0])
def test_the_speed_of_a_goal_is_kept(speed: int) -> None:
    bus = make_bus(1)
    assert isinstance(bus.plant, FirstOrderPlant)
    bus.plant.lag_s = 1e-4
    ask(bus, protocol.write(1, 41, bytes([0, *(3000).to_bytes(2, "little"), 0, 0, *speed.to_bytes(2, "little")])))
    track, dt = [bus.servos[0].present()], 0.01
    for _ in range(100):
        track.append(settle(bus, dt))
    top = max((b - a) / dt for a, b in itertools.pairwise(track))
    assert track[-1] == max(track) == 3000
    assert top == pytest.approx(min(speed or 1e9, 67 * 50), abs=150)  # a step of the encoder is 100 steps/s here


def test_across_the_encoders_zero_a_servo_goes_the_long_way_round() -> None:
    bus = EmulatedBus([EmulatedServo(1, zero_steps=4090)])
    write(bus, 1, "goal_position", 10)
    assert settle(bus, 3.0) == 10
    assert bus.plant.joint_angle()[0] == pytest.approx(-(4080 / 4096) * 2 * math.pi, abs=0.01)
