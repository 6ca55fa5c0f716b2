"""Policies that were trained elsewhere, through the program: functions, zips of SB3, TorchScript and ONNX files."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from snake_gym.agents.onnx_policy import OnnxPolicy
from stable_baselines3 import A2C, PPO, SAC, TD3
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from snake_gym.benchmark import evaluate
from snake_gym.config import ConfigError, dump_yaml
from snake_gym.envs import SnakeEnv

ROOT = Path(__file__).parents[2]
RESIDUAL = {"kind": "residual", "controller": {"kind": "sjc", "amplitude_rad": 0.5, "frequency_rad_s": 4.0}}
ENV = {"time_limit_s": 2.0, "action": RESIDUAL, "robot": "resilient_servo", "faults": {"n_max": 0}}
OPTIONS = ["--controllers", "none", "--episodes", "3", "--set", "resamples=100", "--no-pictures", "--out", "out"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working folder with the settings of an env; its modules and those of other tests are forgotten."""
    monkeypatch.chdir(tmp_path)
    elsewhere = str(tmp_path.parent.parent)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry and not entry.startswith(elsewhere)])
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(elsewhere):
            monkeypatch.delitem(sys.modules, name)
    dump_yaml(ENV, tmp_path / "env.yaml")
    yield tmp_path
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


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
    with pytest.raises(ConfigError, match=r"nothing tells in which env to play p; say what to play: --env FILE"):
        play("mine:make", env=False)


def test_the_console_program_finds_the_module_too(folder: Path) -> None:
    (folder / "mine.py").write_text(FACTORY)
    program = "import sys; sys.path = [p for p in sys.path if p]; from snake_gym.__main__ import main; main()"
    command = [sys.executable, "-c", program, "evaluate", "--policy", "p=mine:make", "--env", "env.yaml", *OPTIONS]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env=environment)
    assert done.returncode == 0, done.stderr


def test_a_function_may_say_in_which_env_it_plays(folder: Path) -> None:
    told = (
        'make.env_id = "SnakeGym/Waypoints-v0"\nmake.env_config = {"time_limit_s": 1.0, "action": {"kind": "gait"}}\n'
    )
    (folder / "mine.py").write_text(FACTORY + told)
    results = play("mine:make", env=False)
    assert results["config"]["env"]["time_limit_s"] == 1.0
    (folder / "half.py").write_text(FACTORY + told.splitlines()[0])
    with pytest.raises(ConfigError, match=r"^policy p=half:make has no env_config"):
        play("half:make")


def test_actions_of_another_range_are_noted(folder: Path) -> None:
    (folder / "mine.py").write_text(FACTORY.replace(
        "def make(env):", "def make(env):\n    Constant.observation_space = env.observation_space\n"
        "    Constant.action_space = type(env.action_space)(-2.0, 2.0, env.action_space.shape)"
    ))  # fmt: skip
    assert play("mine:make")["notes"] == ["p: its actions are in [-2, 2]; here they are clipped to [-1, 1]"]


def test_what_has_no_digest_is_played_again_and_what_has_one_is_not(folder: Path) -> None:
    (folder / "mine.py").write_text(FACTORY)
    play("mine:make")
    assert not list((folder / "out").glob("policies/*"))
    (folder / "named.py").write_text(FACTORY.replace("    def predict", '    digest = "1"\n    def predict'))
    play("named:make")
    assert [path.name for path in (folder / "out" / "policies").iterdir()] == ["p.npz"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("make = 3", r"is 3; expected a class or a function"),
        ("def make(env): return 3", r"p=mine:make has no predict"),
        ("def make(env): raise KeyError('x')", r"it fails in line 1: KeyError: 'x'"),
        (
            "def make(env):\n    from snake_gym.config import ConfigError\n    raise ConfigError('no such net')",
            r"make: no such net$",
        ),
        (FACTORY.replace("0.2", "np.nan"), r"its action is nan at \[0, 0\]; expected finite numbers"),
        (FACTORY.replace("shape[0]", "shape[0] + 1"), r"its action has shape \(3, 10\); expected \(3, 9\)"),
        ("import nothing_like_it\nmake = 3", r"plugin mine fails: ModuleNotFoundError"),
    ],
)
def test_a_wrong_function_is_named_in_one_line(text: str, message: str, folder: Path) -> None:
    (folder / "mine.py").write_text(text)
    with pytest.raises(ConfigError, match=message) as caught:
        play("mine:make")
    assert "\n" not in str(caught.value)


# --- what executes code ----------------------------------------------------------------------------------------------


class Trap:
    """Unpickling it makes a folder."""

    def __reduce__(self) -> Any:
        return os.mkdir, ("sprung",)


class ScriptedTrap(torch.nn.Module):
    """Playing it makes a file."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[:, :9] + 0.0 * torch.from_file("sprung", True, 4).sum()


def script(module: torch.nn.Module, path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.jit.script(module).save(str(path))


def write_trap(folder: Path, kind: str) -> str:
    """Write a file of that kind that leaves ``sprung`` behind when it is loaded or played; return the policy's path."""
    model = PPO("MlpPolicy", SnakeEnv(config=ENV), n_steps=8, batch_size=8)
    if kind == "zip":
        model.ent_coef = Trap()  # type: ignore[assignment]
        model.save(folder / "model.zip")
        return "model.zip"
    if kind == "statistics":
        model.save(folder / "model.zip")
        (folder / "trap.pkl").write_bytes(pickle.dumps(Trap()))
        return "model.zip+trap.pkl"
    if kind == "statistics of onnx":
        write_onnx(folder / "policy.onnx", np.zeros((9, 50), np.float32))
        (folder / "trap.pkl").write_bytes(pickle.dumps(Trap()))
        return "policy.onnx+trap.pkl"
    script(ScriptedTrap(), folder / "policy.pt")
    return "policy.pt"


@pytest.mark.parametrize("kind", ["zip", "statistics", "statistics of onnx", "torchscript"])
def test_nothing_that_executes_code_is_loaded_without_trust(kind: str, folder: Path) -> None:
    path = write_trap(folder, kind)
    with pytest.raises(ConfigError, match=r"may execute code .*; give --trust .*, or play a policy file") as caught:
        play(path)
    assert "\n" not in str(caught.value)
    dump_yaml({"env_file": "env.yaml", "policies": {"p": path}}, folder / "mine.yaml")
    with pytest.raises(ConfigError, match="give --trust"):
        evaluate.main(["--config", "mine.yaml", *OPTIONS])
    assert not (folder / "sprung").exists()
    with contextlib.suppress(ConfigError):  # a trap is no VecNormalize
        play(path, "--trust")
    assert (folder / "sprung").exists()  # the trap works


# --- Stable-Baselines3 -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", [PPO, A2C, SAC, TD3])
def test_a_zip_of_stable_baselines3_plays_as_its_model_does(algorithm: Any, folder: Path) -> None:
    model = algorithm("MlpPolicy", SnakeEnv(config=ENV), seed=1)
    model.save(folder / "model.zip")
    results = play("model.zip", "--trust")
    assert progress(results) == pytest.approx(by_hand(lambda obs: model.predict(obs, deterministic=True)[0]), rel=1e-3)
    assert results["notes"] == []


def test_statistics_of_vec_normalize_are_taken_where_they_are_named(folder: Path) -> None:
    venv = VecNormalize(DummyVecEnv([lambda: SnakeEnv(config=ENV)]))
    model = PPO("MlpPolicy", venv, n_steps=64, batch_size=32, seed=1)
    model.learn(64)
    model.save(folder / "model.zip")
    venv.save(str(folder / "vecnormalize.pkl"))
    expected = by_hand(lambda obs: model.predict(venv.normalize_obs(obs[None]), deterministic=True)[0][0])
    without = play("model.zip", "--trust")
    assert without["notes"] == ["p: plays without vecnormalize.pkl; model.zip+vecnormalize.pkl takes it"]
    results = play("model.zip+vecnormalize.pkl", "--trust")
    assert progress(results) == pytest.approx(expected, rel=1e-3)
    assert abs(progress(without) - expected) > 1e-3 * abs(expected)
    with pytest.raises(ConfigError, match=r"other.pkl does not exist"):
        play("model.zip+other.pkl", "--trust")
    (folder / "other.pkl").write_bytes(pickle.dumps(3))
    with pytest.raises(ConfigError, match=r"other.pkl holds a int; expected the VecNormalize"):
        play("model.zip+other.pkl", "--trust")


def test_recurrent_models_keep_a_state_for_each_world(folder: Path) -> None:
    contrib = pytest.importorskip("sb3_contrib")
    model = contrib.RecurrentPPO("MlpLstmPolicy", SnakeEnv(config=ENV), n_steps=8, batch_size=8, seed=1)
    with torch.no_grad():
        model.policy.action_net.weight *= 100.0  # so that the state is seen in the motion
    model.save(folder / "model.zip")
    carried: list[Any] = [None]
    steps = [0]

    def act(obs: Any) -> Any:
        begins = steps[0] % 10 == 0  # episodes of 2 s
        steps[0] += 1
        action, carried[0] = model.predict(obs, None if begins else carried[0], np.array([begins]), deterministic=True)
        return action

    assert progress(play("model.zip", "--trust")) == pytest.approx(by_hand(act), rel=1e-3)


def test_zips_of_something_else_and_of_another_robot_are_refused(folder: Path) -> None:
    with zipfile.ZipFile(folder / "other.zip", "w") as file:
        file.writestr("x", "y")
    (folder / "text.zip").write_text("x")
    for name in ("other.zip", "text.zip"):
        with pytest.raises(ConfigError, match=f"{name} is no zip that a model of Stable-Baselines3 was saved to"):
            play(name, "--trust")
    with pytest.raises(ConfigError, match=r"othr.zip does not exist; did you mean 'other.zip'"):
        play("othr.zip", "--trust")
    PPO("MlpPolicy", SnakeEnv(config={**ENV, "action": {"kind": "gait"}}), n_steps=8, batch_size=8).save("gait.zip")
    with pytest.raises(ConfigError, match=r"policy p has \(\d+,\) observations, these scenarios .* have \(41,\)"):
        play("gait.zip", "--trust")


# --- TorchScript -----------------------------------------------------------------------------------------------------


class Plain(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(41, 16), torch.nn.Tanh(), torch.nn.Linear(16, 9))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 3.0 * self.net(x)


def test_a_torchscript_module_plays_clipped_to_the_action_space(folder: Path) -> None:
    torch.manual_seed(0)
    net = Plain()
    script(net, folder / "policy.pt")

    def act(obs: Any) -> Any:
        with torch.no_grad():
            return net(torch.as_tensor(obs)[None]).clamp(-1, 1)[0].numpy()

    assert progress(play("policy.pt", "--trust")) == pytest.approx(by_hand(act), rel=1e-3)
    torch.save(net.state_dict(), folder / "weights.pt")
    with pytest.raises(ConfigError, match=r"weights.pt is no TorchScript archive .*give a function") as caught:
        play("weights.pt", "--trust")
    assert "\n" not in str(caught.value)


# --- ONNX ------------------------------------------------------------------------------------------------------------


def write_onnx(path: Path, weight: Any, batch: Any = "batch", **changes: Any) -> None:
    """A linear model: actions = observations @ weight.T; two outputs, as exports of SB3 policies have."""
    names = {"input": "obs", "type": TensorProto.FLOAT, "extra_input": False, "external": False, **changes}
    given = [helper.make_tensor_value_info(names["input"], names["type"], [batch, weight.shape[1]])]
    if names["extra_input"]:
        given.append(helper.make_tensor_value_info("h", TensorProto.FLOAT, [1]))
    graph = helper.make_graph(
        [helper.make_node("Gemm", [names["input"], "w"], ["out"], transB=1), helper.make_node("Abs", ["out"], ["v"])],
        "g", given, [helper.make_tensor_value_info(n, names["type"], [batch, weight.shape[0]]) for n in ("out", "v")],
        [numpy_helper.from_array(weight.astype(helper.tensor_dtype_to_np_dtype(names["type"])), "w")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    external: dict[str, Any] = {"save_as_external_data": True, "size_threshold": 0, "location": path.name + ".data"}
    (path.parent / external["location"]).unlink(missing_ok=True)
    onnx.save(model, str(path), **(external if names["external"] else {}))


@pytest.mark.parametrize(
    ("batch", "changes"), [("n", {}), (1, {}), ("n", {"type": TensorProto.DOUBLE}), ("n", {"external": True})]
)
def test_an_onnx_model_plays_without_trust(batch: Any, changes: dict[str, Any], folder: Path) -> None:
    weight = np.random.default_rng(0).normal(size=(9, 41)).astype(np.float32)
    write_onnx(folder / "policy.onnx", weight, batch, **changes)
    expected = by_hand(lambda obs: np.clip(weight @ obs, -1.0, 1.0))
    assert progress(play("policy.onnx")) == pytest.approx(expected, rel=1e-3)
    if "external" in changes:  # other weights in the file beside it are another policy
        write_onnx(folder / "policy.onnx", 0.5 * weight, batch, **changes)
        other = by_hand(lambda obs: np.clip(0.5 * weight @ obs, -1.0, 1.0))
        assert progress(play("policy.onnx")) == pytest.approx(other, rel=1e-3)
        assert abs(other - expected) > 0.1 * abs(expected)


@pytest.mark.parametrize(
    ("columns", "batch", "changes", "message"),
    [
        (40, "n", {}, r"policy p has \(40,\) observations, these scenarios .* have \(41,\)"),
        (41, 7, {}, r"is for batches of 7; expected any number \(dynamic axes\), or 1"),
        (41, "n", {"extra_input": True}, r"has the inputs obs, h; expected one, the observation"),
        (41, "n", {"type": TensorProto.DOUBLE, "nan": True}, r"its action is nan at \[0, 0\]"),
        (41, "n", {"rows": 8}, r"policy p has \(8,\) actions, these scenarios .* have \(9,\)"),
    ],
)
def test_a_wrong_onnx_model_is_named_in_one_line(
    columns: int, batch: Any, changes: dict[str, Any], message: str, folder: Path
) -> None:
    weight = np.full((changes.pop("rows", 9), columns), np.nan if changes.pop("nan", False) else 0.0, np.float32)
    write_onnx(folder / "policy.onnx", weight, batch, **changes)
    with pytest.raises(ConfigError, match=message) as caught:
        play("policy.onnx")
    assert "\n" not in str(caught.value)


class Remembering(torch.nn.Module):
    """Cells of torch's LSTM or GRU, whose action is seen to depend on their states."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.cells, self.act = getattr(torch.nn, kind)(41, 8), torch.nn.Linear(8, 9)
        self.kept: tuple[str, ...] = ("hidden", "cell") if kind == "LSTM" else ("hidden",)

    def forward(self, obs: torch.Tensor, *states: torch.Tensor) -> tuple[torch.Tensor, ...]:
        out, new = self.cells(0.3 * obs[None], states if len(states) > 1 else states[0])
        return 3.0 * self.act(out[0]), *(new if len(states) > 1 else (new,))

    def write(self, file: Path, batch: bool) -> None:
        names = ["obs", *self.kept], ["action", *(f"new_{name}" for name in self.kept)]
        axes = {name: {0 if name in ("obs", "action") else 1: "n"} for name in (*names[0], *names[1])} if batch else {}
        given = torch.zeros(1, 41), *(torch.zeros(1, 1, 8) for _ in self.kept)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the exporter, on itself
            torch.onnx.export(
                self, given, str(file), input_names=names[0], output_names=names[1], dynamic_axes=axes, dynamo=False
            )


@pytest.mark.parametrize(("kind", "batch"), [("LSTM", True), ("GRU", True), ("GRU", False)])
def test_a_recurrent_onnx_model_keeps_states_from_the_start_of_an_episode(kind: str, batch: bool, folder: Path) -> None:
    net = Remembering(kind)
    net.write(folder / "policy.onnx", batch)
    steps, states = [0], [torch.zeros(1, 1, 8)] * len(net.kept)

    def act(obs: Any) -> Any:
        if steps[0] % 10 == 0:  # episodes of 2 s
            states[:] = [torch.zeros(1, 1, 8)] * len(net.kept)
        steps[0] += 1
        with torch.no_grad():
            action, *states[:] = net(torch.as_tensor(obs)[None], *states)
        return action[0].clamp(-1, 1).numpy()

    assert progress(play("policy.onnx")) == pytest.approx(by_hand(act), rel=1e-3)
    policy = OnnxPolicy(folder / "policy.onnx")
    obs = np.random.default_rng(0).normal(size=(6, 3, 41)).astype(np.float32)
    carried, alone = None, [None, None, None]
    for i, seen in enumerate(obs):
        start = np.array([i == 0, i in (0, 3), i == 0])  # the second world's episode ends
        action, carried = policy.predict(seen, carried, start)
        for world in range(3):
            one, alone[world] = policy.predict(seen[world], alone[world], start[world : world + 1])
            np.testing.assert_allclose(one, action[world], atol=1e-6)
    first = policy.predict(obs[-1], None, np.ones(3, bool))[0]
    assert np.abs(first - action).max() > 1e-3


def test_states_that_an_onnx_model_does_not_give_back_are_refused(folder: Path) -> None:
    Remembering("LSTM").write(folder / "policy.onnx", True)
    model = onnx.load(folder / "policy.onnx")
    del model.graph.output[2]
    onnx.save(model, folder / "policy.onnx")
    with pytest.raises(
        ConfigError, match=r"has the inputs obs, hidden, cell; expected one, the observation, or states beside it that"
    ):
        play("policy.onnx")


def test_what_is_no_onnx_model_is_refused(folder: Path) -> None:
    (folder / "policy.onnx").write_text("x")
    with pytest.raises(ConfigError, match=r"policy.onnx is no ONNX model that onnxruntime runs") as caught:
        play("policy.onnx")
    assert "\n" not in str(caught.value)


def test_an_exported_model_knows_its_env_by_the_contract_beside_it(folder: Path) -> None:
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
