"""Settings: what is accepted, what is refused, and the one line that the user reads."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import Field

from snake_gym.config import ConfigError, Settings, build, check_order, dump_yaml, load_yaml, to_dict
from snake_gym.config.settings import Count, Limit, NonNegative, Positive


class Algorithm(Settings):
    kind: Literal["ppo", "sac"] = "ppo"
    learning_rate: float = 3e-4
    batch_size: int = 64
    hidden: tuple[int, ...] = (128, 128)

    def check(self) -> None:
        if self.learning_rate <= 0:
            raise ValueError(f"learning_rate is {self.learning_rate:g}; expected > 0")
        if len(self.hidden) > 5:
            raise ValueError("more than five layers are of no use here")


class Required(Settings):
    kind: Literal["a", "b"]
    n: int = 1


class Training(Settings):
    algorithm: Algorithm = field(default_factory=Algorithm)
    extra: Algorithm | None = None
    gain: float | tuple[float, ...] = 1.0
    limit: Annotated[float, Field(allow_inf_nan=True)] = math.inf
    steps: int = 1000
    name: str = "run"
    weights: dict[str, float] = field(default_factory=dict)
    folder: Path = Path("runs")
    anything: Any = None
    seed: int | str | None = None
    either: Algorithm | Required | None = None


class Wave(Settings):
    period_s: Positive = 2.0
    torque_nm: Limit | tuple[Limit, ...] = math.inf
    turns: Count = 0
    offset: float = 0.0
    early_s: NonNegative = 0.0
    late_s: NonNegative = 9.0

    def check(self) -> None:
        check_order(self, "early_s", "late_s")


def refusal(mapping: Mapping[Any, Any], where: str = "", cls: type = Training) -> str:
    with pytest.raises(ConfigError) as caught:
        build(cls, mapping, where)
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    ("name", "given_value", "expected"),
    [
        ("limit", ".inf", math.inf),  # JSON has no other infinity
        ("steps", 3e6, 3_000_000),
        ("gain", np.array([1.0, 2.0]), (1.0, 2.0)),
        ("extra", Algorithm(batch_size=8), Algorithm(batch_size=8)),
        ("either", {"kind": "b"}, Required("b")),
    ],
)
def test_values_become_the_declared_type(name: str, given_value: Any, expected: Any) -> None:
    for made in (build(Training, {name: given_value}), Training(**{name: given_value})):
        assert getattr(made, name) == expected
        assert type(getattr(made, name)) is type(expected)


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"steps": "2"}, "steps is '2'; expected an integer"),
        ({"steps": True}, "steps is true; expected an integer"),
        ({"limit": math.nan}, "limit is nan; expected a number"),
        ({"gain": [1, "x"]}, "gain[1] is 'x'; expected a number or a list, each a number"),
        ({"algorithm": None}, "algorithm is null; expected a group of settings (kind, learning_rate, "),
        ({"algorithm": {"kind": "poo"}}, "algorithm.kind is 'poo'; expected one of 'ppo', 'sac'; did you mean 'ppo'?"),
        ({"algorithm": {"hiden": 1}}, "algorithm.hiden is not a setting; did you mean 'hidden'? (settings: kind, "),
        ({"learning_rate": 1}, "learning_rate is not a setting; did you mean 'algorithm.learning_rate'?"),
        ({"either": {"kind": "c", "m": 1}}, "either.m is not a setting (settings: kind, learning_rate, "),
        ({"algorithm": {"hidden": [1] * 6}}, "algorithm: more than five layers are of no use here"),
        ({"algorithm": {"learning_rate": -1}}, "algorithm.learning_rate is -1; expected > 0"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_named_with_its_place_and_what_was_expected(mapping: Any, message: str) -> None:
    assert refusal(mapping).startswith(message)
    assert len(refusal(mapping)) < 400
    assert refusal(mapping, "demo.yaml").startswith(f"demo.yaml: {message}")
    assert refusal(mapping, "demo.yaml: train").startswith(f"demo.yaml: train.{message}")
    with pytest.raises(ConfigError) as caught:
        Training(**mapping)
    assert str(caught.value) == refusal(mapping)


def test_a_missing_setting_is_named() -> None:
    assert refusal({}, "env", Required) == "env.kind is missing; expected one of 'a', 'b'"


@pytest.mark.parametrize(
    ("name", "accepted", "refused"),
    [
        ("period_s", [1e-300, 1e9], {0.0: "> 0", 1.1e9: "<= 1e+09", math.inf: "a finite number"}),
        ("torque_nm", [math.inf, 1e300], {0.0: "> 0", -math.inf: "> 0"}),
        ("turns", [0, 10**15], {-1: ">= 0"}),
        ("offset", [-1e9], {1e300: "<= 1e+09", -1.1e9: ">= -1e+09"}),
    ],
)
def test_a_number_is_in_its_range(name: str, accepted: list[float], refused: dict[float, str]) -> None:
    for value in accepted:
        assert getattr(Wave(**{name: value}), name) == value
    for value, expected in refused.items():
        said = refusal({name: value}, "a.yaml: gait", Wave)
        assert said == f"a.yaml: gait.{name} is {value:g}; expected {expected}"


def test_an_object_changed_in_python_is_checked_too() -> None:
    wave = Wave(3, torque_nm=np.array([1.0, 2.0]), turns=2.0)  # type: ignore[arg-type]
    assert (wave.period_s, wave.torque_nm, wave.turns) == (3.0, (1.0, 2.0), 2)
    with pytest.raises(ConfigError, match=r"torque_nm\[1\] is 0; expected > 0"):
        replace(wave, torque_nm=(1.0, 0.0))
    with pytest.raises(dataclasses.FrozenInstanceError):
        wave.turns = 3  # type: ignore[misc]


def test_settings_that_contradict_each_other_are_refused_after_each_is_in_its_range() -> None:
    assert refusal({"early_s": 10}, "a.yaml", Wave) == "a.yaml: early_s is 10, late_s 9; expected early_s <= late_s"
    assert "late_s is -1; expected >= 0" in refusal({"early_s": 10, "late_s": -1}, "", Wave)
    assert Wave(early_s=9.0).early_s == 9.0


trainings = st.builds(
    Training,
    gain=st.floats(-1e9, 1e9) | st.lists(st.floats(-1e9, 1e9), max_size=4).map(tuple),
    limit=st.floats(allow_nan=False),
    steps=st.integers(),
    name=st.text(max_size=12),
    weights=st.dictionaries(st.text(max_size=12), st.floats(-1e9, 1e9), max_size=3),
    seed=st.none() | st.integers() | st.text(max_size=12),
)


@settings(max_examples=60)
@given(training=trainings)
def test_yaml_then_build_is_the_identity(training: Training, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("yaml") / "training.yaml"
    dump_yaml(training, path)
    assert build(Training, load_yaml(path)) == training


def test_to_dict_gives_plain_data() -> None:
    plain = to_dict(Training(gain=(1.0, 2.0), weights={"a": np.float64(1)}, anything=np.arange(3)))
    shown = [plain[name] for name in ("gain", "anything", "folder", "limit")]
    assert shown == [[1.0, 2.0], [0, 1, 2], "runs", math.inf]
    assert plain["algorithm"] == dataclasses.asdict(Algorithm()) | {"hidden": [128, 128]}
    assert type(plain["weights"]["a"]) is float
    with pytest.raises(TypeError, match="cannot be written as plain data"):
        to_dict({"x": object()})
