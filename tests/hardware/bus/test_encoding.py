"""Every code of every encoding, there and back; positions across the wrap."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snake_gym.hardware.bus.registers import (
    STEPS_PER_TURN,
    Encoding,
    decode_sign_magnitude,
    encode_sign_magnitude,
    nearest_turn,
    rad_to_steps,
    steps_to_rad,
    wrap_steps,
)

ENCODINGS = [Encoding(1), Encoding(2), Encoding(2, 10), Encoding(2, 11), Encoding(2, 15)]


@pytest.mark.parametrize("encoding", ENCODINGS, ids=str)
def test_every_value_round_trips(encoding: Encoding) -> None:
    for value in range(encoding.min_value, encoding.max_value + 1):
        assert encoding.decode(encoding.encode(value)) == value


@pytest.mark.parametrize("encoding", ENCODINGS, ids=str)
def test_every_code_round_trips(encoding: Encoding) -> None:
    top = (1 << 8 * encoding.size) if encoding.sign_bit is None else 2 << encoding.sign_bit
    for code in range(top):
        data = code.to_bytes(encoding.size, "little")
        back = encoding.encode(encoding.decode(data))
        is_minus_zero = encoding.sign_bit is not None and code == 1 << encoding.sign_bit
        assert back == (bytes(encoding.size) if is_minus_zero else data)


@pytest.mark.parametrize("encoding", ENCODINGS, ids=str)
def test_what_does_not_fit_is_refused(encoding: Encoding) -> None:
    for value in (encoding.min_value - 1, encoding.max_value + 1):
        with pytest.raises(ValueError, match=str(value)):
            encoding.encode(value)
    with pytest.raises(ValueError, match="bytes"):
        encoding.decode(bytes(3))


def test_known_codes() -> None:
    assert encode_sign_magnitude(-1, 15) == 0x8001
    assert decode_sign_magnitude(0x8001, 15) == -1
    assert encode_sign_magnitude(-1000, 10) == 0x7E8
    assert encode_sign_magnitude(-904, 11) == 0xB88
    assert decode_sign_magnitude(0x8000, 15) == 0
    with pytest.raises(ValueError, match="2048"):  # would set the sign bit: half a turn off, the other way round
        encode_sign_magnitude(2048, 11)


@given(st.integers(-100_000, 100_000), st.integers(-100_000, 100_000))
def test_the_nearest_turn_is_the_nearest(steps: int, reference: int) -> None:
    unwrapped = nearest_turn(steps, reference)
    assert (unwrapped - steps) % STEPS_PER_TURN == 0
    assert abs(unwrapped - reference) <= STEPS_PER_TURN // 2


def test_wrap() -> None:
    assert [wrap_steps(steps) for steps in (0, 2047, 2048, 4095, 4096, -1, -2048, -2049)] == [
        0, 2047, -2048, -1, 0, -1, -2048, 2047,
    ]  # fmt: skip
    assert nearest_turn(3, 4090) == 4099


@given(st.integers(-40_000, 40_000))
def test_steps_and_radians(steps: int) -> None:
    assert rad_to_steps(steps_to_rad(steps)) == steps
    assert steps_to_rad(STEPS_PER_TURN) == pytest.approx(2.0 * math.pi)
