"""Register tables are data: every code there and back, addresses and signs as published, positions across the wrap."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snake_gym.config import ConfigError
from snake_gym.hardware.bus.family import (
    Encoding,
    Register,
    ServoError,
    describe_error,
    family_of_model,
    find_family,
    register_servo_family,
)
from snake_gym.hardware.bus.feetech import FEETECH

PUBLISHED = {
    "model": 3, "id": 5, "baud_rate": 6, "return_delay": 7, "min_angle_limit": 9, "max_angle_limit": 11,
    "max_temperature": 13, "max_torque": 16, "homing_offset": 31, "mode": 33, "protective_torque": 34,
    "protection_time": 35, "overload_torque": 36, "torque_enable": 40, "acceleration": 41, "goal_position": 42,
    "goal_time": 44, "goal_speed": 46, "torque_limit": 48, "lock": 55, "present_position": 56, "present_speed": 58,
    "present_load": 60, "present_voltage": 62, "present_temperature": 63, "status": 65, "moving": 66,
    "present_current": 69,
}  # fmt: skip


@pytest.mark.parametrize(
    ("encoding", "value", "code"),
    [
        (Encoding(1), 255, "ff"),
        (Encoding(2), 1000, "e803"),
        (Encoding(2, 10), -1000, "e807"),
        (Encoding(2, 11), -904, "880b"),
        (Encoding(2, 15), -1, "0180"),
        (Encoding(2, None, 1.0, "big"), 1000, "03e8"),
        (Encoding(2, signed=True), -2, "feff"),
        (Encoding(4), 1, "01000000"),
        (Encoding(4, signed=True), -5, "fbffffff"),
    ],
)
def test_every_code_round_trips(encoding: Encoding, value: int, code: str) -> None:
    assert encoding.encode(value).hex() == code
    top = (1 << 8 * encoding.size) if encoding.sign_bit is None else 2 << encoding.sign_bit
    for number in range(0, top, max(1, top >> 16)):
        data = number.to_bytes(encoding.size, encoding.byte_order)
        is_minus_zero = encoding.sign_bit is not None and number == 1 << encoding.sign_bit
        assert encoding.encode(encoding.decode(data)) == (bytes(encoding.size) if is_minus_zero else data)
    for beyond in (encoding.min_value - 1, encoding.max_value + 1):
        with pytest.raises(ValueError, match=str(beyond)):  # would set the sign bit, and turn the joint the other way
            encoding.encode(beyond)


@given(st.integers(-100_000, 100_000), st.integers(-100_000, 100_000))
def test_the_nearest_turn_is_the_nearest(steps: int, reference: int) -> None:
    unwrapped = FEETECH.nearest_turn(steps, reference)
    assert (unwrapped - steps) % 4096 == 0
    assert abs(unwrapped - reference) <= 2048
    assert FEETECH.steps(FEETECH.angle(steps)) == steps


def test_addresses_signs_and_units_as_published() -> None:
    assert {name: FEETECH.register(name).address for name in PUBLISHED} == PUBLISHED
    signs = {one.name: one.encoding.sign_bit for one in FEETECH.registers if one.encoding.sign_bit is not None}
    assert signs["present_position"] == signs["goal_position"] == signs["present_speed"] == signs["goal_speed"] == 15
    assert (signs["present_load"], signs["homing_offset"]) == (10, 11)
    assert (FEETECH.scale("present_voltage"), FEETECH.scale("return_delay")) == (0.1, 2e-6)
    assert FEETECH.scale("present_current") == pytest.approx(6.5e-3)
    assert FEETECH.scale("acceleration") == pytest.approx(100 * 0.00153398, rel=1e-4)
    assert FEETECH.baud_rates == (1_000_000, 500_000, 250_000, 128_000, 115_200)


def test_faults_by_the_bits_of_the_family() -> None:
    assert FEETECH.faults_of(0x21) == ServoError.VOLTAGE | ServoError.OVERLOAD
    other = replace(FEETECH, faults={"heat": 0, "encoder": 7})
    assert describe_error(other.faults_of(0x81)) == "encoder, heat"
    assert describe_error(other.faults_of(0x03)) == "heat, other"


def test_defaults_fit_every_model() -> None:
    for servo in FEETECH.models:
        assert set(servo.defaults) <= set(FEETECH.by_name)
        for one in FEETECH.registers:
            assert one.limits[0] <= servo.default(one) <= one.limits[1]


@pytest.mark.parametrize(
    ("call", "fragment"),
    [
        (lambda: FEETECH.encode("baud_rate", 5), "expected 0 to 4"),
        (lambda: FEETECH.encode("present_position", 1), "read-only"),
        (lambda: FEETECH.register("presnt_position"), "did you mean 'present_position'"),
        (lambda: family_of_model("STS3125"), "did you mean 'STS3215'"),
        (lambda: find_family("snake_gym.hardware.bus.feetech:math"), "is a module; expected a ServoFamily"),
        (lambda: Encoding(2, 15, signed=True), "none with two's complement"),
        (lambda: replace(FEETECH, registers=FEETECH.registers[5:]), "registers lack id, model"),
        (lambda: replace(FEETECH, registers=(*FEETECH.registers, Register("twice", 86))), "'twice' begins at 86"),
        (lambda: register_servo_family(replace(FEETECH, name="copy")), "STS3215 are of family 'feetech' already"),
    ],
)
def test_what_is_wrong_with_a_table_or_a_name_is_named(call: Callable[[], object], fragment: str) -> None:
    with pytest.raises((ConfigError, ValueError), match=re.escape(fragment)):
        call()
