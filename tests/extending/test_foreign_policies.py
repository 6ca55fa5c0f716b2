"""Policies that were trained elsewhere, through the program: functions, classes and ONNX files."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from snake_gym.benchmark import evaluate
from snake_gym.config import ConfigError, dump_yaml
from snake_gym.envs import SnakeEnv

ROOT = Path(__file__).parents[2]
RESIDUAL = {"kind": "residual", "controller": {"kind": "sjc", "amplitude_rad": 0.5, "frequency_rad_s": 4.0}}
ENV = {"time_limit_s": 2.0, "action": RESIDUAL, "robot": "resilient_servo", "faults": {"n_max": 0}}
OPTIONS = ["--controllers", "none", "--episodes", "3", "--set", "resamples=100", "--no-pictures", "--out", "out"]


def forget(folder: Path) -> None:
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(str(folder)):
            del sys.modules[name]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working folder with the settings of an env; its modules and those of other tests are forgotten."""
    monkeypatch.chdir(tmp_path)
    elsewhere = tmp_path.parent.parent
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry and not entry.startswith(str(elsewhere))])
    forget(elsewhere)
    dump_yaml(ENV, tmp_path / "env.yaml")
    yield tmp_path
    forget(tmp_path)


def play(path: str, *options: str, env: bool = True) -> dict[str, Any]:
    where = ["--env", "env.yaml"] if env else []
    assert evaluate.main(["--policy", f"p={path}", *where, *OPTIONS, *options]) == 0
    results: dict[str, Any] = json.loads((Path("out") / "results.json").read_text())
    return results


def progress(results: dict[str, Any]) -> float:
    return float(results["policies"]["p"]["mean"])


def by_hand(act: Any) -> float:
    """Mean progress of what ``act`` makes of an observation (D,), played in single envs, without the benchmark."""
    made = []
    for i in range(3):
        env = SnakeEnv(config=ENV)
        obs, info = env.reset(seed=1_000_000 + i)
        ended = False
        while not ended:
            obs, _, terminated, truncated, info = env.step(act(obs))
            ended = terminated or truncated
        made.append(info["progress_m"])
    return float(np.mean(made))


# --- functions and classes -------------------------------------------------------------------------------------------

FACTORY = """
import numpy as np

class Constant:
    def __init__(self, n, value):
        self.n, self.value = n, value
    def predict(self, obs, state=None, episode_start=None, deterministic=True):
        return np.full((len(obs), self.n), self.value, np.float32), state

def make(env):
    env.reset(seed=0)
    return Constant(env.action_space.shape[0], 0.2)
"""


def test_a_function_of_a_module_in_the_working_folder_gets_one_env_of_the_benchmark(folder: Path) -> None:
    (folder / "mine.py").write_text(FACTORY)
    expected = by_hand(lambda obs: np.full(9, 0.2))
    for path in ("mine:make", "mine.py:make"):
        assert progress(play(path)) == pytest.approx(expected, abs=1e-9)
    with pytest.raises(ConfigError, match=r"the env to play in is unknown for p; say what to play: --env FILE"):
        play("mine:make", env=False)


def test_a_function_may_say_in_which_env_it_plays(folder: Path) -> None:
    env_of_policy = (
        'make.env_id = "SnakeGym/Waypoints-v0"\nmake.env_config = {"time_limit_s": 1.0, "action": {"kind": "gait"}}\n'
    )
    (folder / "mine.py").write_text(FACTORY + env_of_policy)
    results = play("mine:make", env=False)
    assert results["config"]["env"]["time_limit_s"] == 1.0
    (folder / "half.py").write_text(FACTORY + env_of_policy.splitlines()[0])
    with pytest.raises(ConfigError, match=r"^policy p=half:make has no env_config"):
        play("half:make")


def test_actions_of_another_range_are_noted(folder: Path) -> None:
    (folder / "mine.py").write_text(FACTORY.replace(
        "def make(env):", "def make(env):\n    Constant.observation_space = env.observation_space\n"
        "    Constant.action_space = type(env.action_space)(-2.0, 2.0, env.action_space.shape)"
    ))  # fmt: skip
    assert play("mine:make")["notes"] == ["p: its actions are in [-2, 2]; here they are clipped to [-1, 1]"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def make(env): return 3", r"p=mine:make has no predict"),
        ("def make(env): raise KeyError('x')", r"fails in line 1: KeyError: 'x'"),
        (FACTORY.replace("0.2", "np.nan"), r"its action is nan at \[0, 0\]; expected finite"),
        (FACTORY.replace("shape[0]", "shape[0] + 1"), r"its action has shape \(3, 10\); expected \(3, 9\)"),
        (FACTORY.replace("np.float32), state", "np.float32)"), r"its predict returned .*; expected \(actions, state\)"),
    ],
)
def test_wrong_code_is_named_in_one_line(text: str, message: str, folder: Path) -> None:
    (folder / "mine.py").write_text(text)
    with pytest.raises(ConfigError, match=message) as caught:
        play("mine:make")
    assert "\n" not in str(caught.value)


# --- ONNX ------------------------------------------------------------------------------------------------------------


def write_onnx(path: Path, weight: Any, batch: Any = "batch", **changes: Any) -> None:
    """A linear model: actions = observations @ weight.T; two outputs, as exports of SB3 policies have."""
    names = {"type": TensorProto.FLOAT, "external": False, **changes}
    given = [helper.make_tensor_value_info("obs", names["type"], [batch, weight.shape[1]])]
    graph = helper.make_graph(
        [helper.make_node("Gemm", ["obs", "w"], ["out"], transB=1), helper.make_node("Abs", ["out"], ["v"])],
        "g", given, [helper.make_tensor_value_info(n, names["type"], [batch, weight.shape[0]]) for n in ("out", "v")],
        [numpy_helper.from_array(weight.astype(helper.tensor_dtype_to_np_dtype(names["type"])), "w")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    external: dict[str, Any] = {"save_as_external_data": True, "size_threshold": 0, "location": path.name + ".data"}
    (path.parent / external["location"]).unlink(missing_ok=True)
    onnx.save(model, str(path), **(external if names["external"] else {}))


@pytest.mark.parametrize(
    ("batch", "changes"), [(1, {}), ("n", {"type": TensorProto.DOUBLE}), ("n", {"external": True})]
)
def test_an_onnx_model_plays(batch: Any, changes: dict[str, Any], folder: Path) -> None:
    weight = np.random.default_rng(0).normal(size=(9, 41)).astype(np.float32)
    write_onnx(folder / "policy.onnx", weight, batch, **changes)
    expected = by_hand(lambda obs: np.clip(weight @ obs, -1.0, 1.0))
    assert progress(play("policy.onnx")) == pytest.approx(expected, rel=1e-3)
    if "external" in changes:  # other weights in its second file are another policy
        write_onnx(folder / "policy.onnx", -weight, batch, **changes)
        other = by_hand(lambda obs: np.clip(-weight @ obs, -1.0, 1.0))
        assert progress(play("policy.onnx")) == pytest.approx(other, rel=1e-3)
        assert abs(other - expected) > 0.1 * abs(expected)


@pytest.mark.parametrize(
    ("shape", "batch", "message"),
    [
        ((9, 40), "n", r"policy p has \(40,\) observations, these scenarios .* have \(41,\)"),
        ((9, 41), 7, r"takes obs tensor\(float\) \[7, 41\]; expected one input"),
        (None, "n", "policy.onnx is no ONNX model that onnxruntime runs"),
    ],
)
def test_a_wrong_onnx_model_is_named_in_one_line(shape: Any, batch: Any, message: str, folder: Path) -> None:
    if shape is None:
        (folder / "policy.onnx").write_text("x")
    else:
        write_onnx(folder / "policy.onnx", np.zeros(shape, np.float32), batch)
    with pytest.raises(ConfigError, match=message) as caught:
        play("policy.onnx")
    assert "\n" not in str(caught.value)


def test_an_exported_model_knows_its_env_by_the_contract_in_its_folder(folder: Path) -> None:
    shipped = ROOT / "agents" / "pretrained" / "resilient_servo_locked_joints"
    short = ["--set", "env.time_limit_s=2"]
    results = play(str(shipped / "policy.onnx"), *short, env=False)
    assert results["config"]["env_id"] == "SnakeGym/Waypoints-v0"
    assert progress(results) == pytest.approx(progress(play(str(shipped), *short, env=False)), rel=1e-3)
    for name in ("policy.json", "policy.safetensors", "policy.onnx"):
        (folder / name).write_bytes((shipped / name).read_bytes())
    model = onnx.load(folder / "policy.onnx")
    next(each for each in model.metadata_props if each.key == "weights_sha256").value = "0"
    onnx.save(model, folder / "policy.onnx")
    with pytest.raises(ConfigError, match=r"policy.onnx and policy.json hold different policies"):
        play("policy.onnx", env=False)
