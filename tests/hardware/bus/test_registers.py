"""The register table is data: addresses, sizes and signs as published, and no gaps in what depends on it."""

from __future__ import annotations

import pytest

from snake_gym.config import ConfigError
from snake_gym.hardware.bus.registers import (
    BAUD_RATES,
    BY_NAME,
    MODELS,
    REGISTERS,
    TABLE_END,
    WRITABLE_BAUD,
    block,
    block_span,
    encode_register,
    model,
    register,
    unpack,
)
from snake_gym.hardware.safety.body import BLOCK

PUBLISHED = {
    "model": 3, "id": 5, "baud_rate": 6, "return_delay": 7, "min_angle_limit": 9, "max_angle_limit": 11,
    "max_temperature": 13, "max_torque": 16, "homing_offset": 31, "mode": 33, "protective_torque": 34,
    "protection_time": 35, "overload_torque": 36, "torque_enable": 40, "acceleration": 41, "goal_position": 42,
    "goal_time": 44, "goal_speed": 46, "torque_limit": 48, "lock": 55, "present_position": 56, "present_speed": 58,
    "present_load": 60, "present_voltage": 62, "present_temperature": 63, "status": 65, "moving": 66,
    "present_current": 69,
}  # fmt: skip


def test_addresses_as_published() -> None:
    assert {name: BY_NAME[name].address for name in PUBLISHED} == PUBLISHED


def test_registers_do_not_overlap() -> None:
    ends = [r.address + r.size for r in REGISTERS]
    assert all(end <= following.address for end, following in zip(ends, REGISTERS[1:], strict=False))
    assert ends[-1] == TABLE_END


def test_signs_and_units_as_published() -> None:
    signs = {r.name: r.encoding.sign_bit for r in REGISTERS if r.encoding.sign_bit is not None}
    assert signs["present_position"] == signs["goal_position"] == signs["present_speed"] == signs["goal_speed"] == 15
    assert (signs["present_load"], signs["homing_offset"]) == (10, 11)
    assert BY_NAME["present_voltage"].encoding.scale == 0.1
    assert BY_NAME["present_current"].encoding.scale == pytest.approx(6.5e-3)
    assert BY_NAME["return_delay"].encoding.scale == 2e-6
    assert BY_NAME["acceleration"].encoding.scale == pytest.approx(100 * 0.00153398, rel=1e-4)


def test_defaults_fit_every_model() -> None:
    for servo in MODELS.values():
        assert set(servo.defaults) <= set(BY_NAME)
        for r in REGISTERS:
            assert r.encoding.decode(r.encoding.encode(servo.default(r))) == servo.default(r)
            low, high = r.limits
            assert low <= servo.default(r) <= high


def test_the_block_of_a_control_loop() -> None:
    present = block(*BLOCK)
    assert block_span(present) == (56, 15)
    data = bytes(range(1, 16))
    values = unpack(present, data)
    assert values["present_position"] == 0x0201
    assert values["present_temperature"] == 8
    assert values["present_current"] == 0x0F0E


def test_baud_codes_that_drivers_disagree_about_are_never_written() -> None:
    assert BAUD_RATES == (1_000_000, 500_000, 250_000, 128_000, 115_200, 76_800, 57_600, 38_400)
    for code in range(len(WRITABLE_BAUD)):
        assert encode_register(BY_NAME["baud_rate"], code) == bytes([code])
    for code in (5, 6, 7):
        with pytest.raises(ValueError, match="disagree"):
            encode_register(BY_NAME["baud_rate"], code)


def test_wrong_writes_are_refused() -> None:
    with pytest.raises(ValueError, match="read-only"):
        encode_register(BY_NAME["present_position"], 1)
    with pytest.raises(ValueError, match="expected 0 to 253"):
        encode_register(BY_NAME["id"], 254)


def test_wrong_names_are_answered_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'present_position'"):
        register("presnt_position")
    with pytest.raises(ConfigError, match="STS3215"):
        model("STS3125")
    with pytest.raises(ConfigError, match="before"):
        block("present_current", "present_position")
    assert model("sts3215").number == 777
