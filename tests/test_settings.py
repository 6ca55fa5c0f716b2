"""Ranges of settings, checked however an object is made; and what programs share."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, Any

import numpy as np
import pytest

from snake_gym.config import (
    ConfigError,
    OptionParser,
    Range,
    Settings,
    build,
    check_order,
    digest,
    read_json,
    require,
    to_json,
)
from snake_gym.config.settings import Count, Limit, NonNegative, Positive, PositiveShare, Share


@dataclass(frozen=True)
class Wave(Settings):
    period_s: Positive = 2.0
    lag_s: NonNegative = 0.0
    torque_nm: Limit | tuple[Limit, ...] = math.inf
    duty: PositiveShare = 0.5
    mix: Share = 1.0
    turns: Count = 0
    slope_rad: Annotated[float, Range(-1.0, 1.0, without_low=True, without_high=True)] = 0.0
    offset: float = 0.0
    early_s: NonNegative = 0.0
    late_s: NonNegative = 9.0

    def check(self) -> None:
        check_order(self, "early_s", "late_s")


@pytest.mark.parametrize(
    ("name", "accepted", "refused", "expected"),
    [
        ("period_s", [1e-300, 1e9], [0.0, -1.0, 1.1e9, math.inf, math.nan], "finite and > 0, at most 1e+09"),
        ("lag_s", [0.0], [-1e-300], "finite and >= 0, at most 1e+09"),
        ("torque_nm", [math.inf, 1e300], [0.0, -math.inf], "> 0 (.inf for no limit)"),
        ("duty", [1e-9, 1.0], [0.0, 1.0001], "in (0, 1]"),
        ("mix", [0.0, 1.0], [-0.1, 1.1], "in [0, 1]"),
        ("turns", [0, 10**15], [-1], ">= 0"),
        ("slope_rad", [0.999], [1.0, -1.0], "in (-1, 1)"),
        ("offset", [-1e9], [math.inf, -1.1e9, 1e300], "finite, at most 1e+09 in size"),
    ],
)
def test_a_number_is_in_its_range(name: str, accepted: list[float], refused: list[float], expected: str) -> None:
    for value in accepted:
        assert getattr(Wave(**{name: value}), name) == value == getattr(build(Wave, {name: value}), name)
    for value in refused:
        said = "a number" if math.isnan(value) else expected
        with pytest.raises(ConfigError) as direct:
            Wave(**{name: value})
        assert str(direct.value).startswith(f"{name} is {value:g}; expected {said}")
        with pytest.raises(ConfigError) as built:
            build(Wave, {name: value}, "demo.yaml: gait")
        assert str(built.value) == f"demo.yaml: gait.{direct.value}"


@pytest.mark.parametrize("value", [10**400, -(10**400), "9" * 5000, Fraction(10**400, 3)])
def test_numbers_of_hundreds_of_digits_are_refused_as_others_are(value: Any) -> None:
    for name in ("period_s", "offset"):
        with pytest.raises(ConfigError, match=f"{name} is .*; expected (a number|finite)"):
            Wave(**{name: value})
    with pytest.raises(ConfigError, match="turns is"):
        Wave(turns=value)


def test_an_object_made_or_changed_in_python_is_read_as_one_from_a_file() -> None:
    wave = Wave(period_s=3, torque_nm=np.array([1.0, 2.0]), turns=2.0)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"^period_s is '3'; expected a number .* \(without quotes\)$"):
        Wave(period_s="3")  # type: ignore[arg-type]
    assert (wave.period_s, wave.torque_nm, wave.turns) == (3.0, (1.0, 2.0), 2)
    with pytest.raises(ConfigError, match=r"torque_nm\[1\] is 0; expected > 0 \(\.inf for no limit\)"):
        replace(wave, torque_nm=(1.0, 0.0))
    with pytest.raises(ConfigError, match=r"torque_nm is 'x'; expected a number > 0 .* or a list, each a number > 0"):
        replace(wave, torque_nm="x")  # type: ignore[arg-type]


def test_settings_that_contradict_each_other_are_refused_after_each_is_in_its_range() -> None:
    with pytest.raises(ConfigError, match=r"^early_s is 10, late_s 9; expected early_s <= late_s$"):
        Wave(early_s=10.0)
    with pytest.raises(ConfigError, match=r"^a\.yaml: early_s is 10, late_s 9"):
        build(Wave, {"early_s": 10}, "a.yaml")
    with pytest.raises(ConfigError, match="late_s is -1; expected finite"):
        Wave(early_s=10.0, late_s=-1.0)
    assert Wave(early_s=9.0).early_s == 9.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1, "a": 2}', "'a' stands there twice"),
        ('{"a": NaN}', "NaN is no number of JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("{", "x.json is not JSON"),
    ],
)
def test_json_is_strict(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_json(text, "x.json")


def test_json_holds_what_is_not_finite_as_text() -> None:
    value = {"inf": math.inf, "list": (1, -math.inf), "array": np.array([math.nan, 2.5]), "wave": Wave()}
    read: Any = read_json(to_json(value), "x.json")
    assert read["inf"] == "inf" and read["list"] == [1, "-inf"] and read["array"] == ["nan", 2.5]
    assert build(Wave, read["wave"]) == Wave()


def test_a_digest_tells_parts_apart() -> None:
    assert digest("ab", "c") != digest("a", "bc") != digest(b"a", "bc")
    assert digest({"a": 1.0}, np.arange(3)) == digest({"a": 1.0}, [0, 1, 2])


def test_a_missing_library_is_named_with_the_extra_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    require("a camera", "math")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError) as caught:
        require("a picture", "matplotlib", "torch")
    message = "a picture needs matplotlib, torch, which are not installed: pip install 'snake-robot-gym[render,train]'"
    assert str(caught.value) == message


def test_wrong_options_are_told_in_one_line_and_negative_numbers_are_values() -> None:
    parser = OptionParser(prog="crawl")
    parser.add_argument("--to")
    assert parser.parse_args(["--to", "-1,0"]).to == "-1,0"
    with pytest.raises(
        ConfigError, match=r"unrecognized arguments: --too=3; did you mean '--to'\? \(see crawl --help\)"
    ):
        parser.parse_args(["--too=3"])
    parser.add_mutually_exclusive_group(required=True).add_argument("--config")
    assert parser.parse_args(["--conf", "x", "--to=--y"]).config == "x"  # the beginning of an option is enough
    with pytest.raises(ConfigError, match=r"unrecognized arguments: --confg; did you mean '--config'\?"):
        parser.parse_args(["--confg", "x"])
