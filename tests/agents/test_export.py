"""Exported policies act like SB3's, from every algorithm and network that a policy file can hold."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from snake_gym.agents import export
from snake_gym.agents.algorithms import find_algorithm, make_model
from snake_gym.agents.config import TrainConfig
from snake_gym.agents.onnx_graph import run_onnx
from snake_gym.agents.policy_writer import LearnerPolicy, PolicyWriter
from snake_gym.agents.run_folder import RunFolder, write_folder
from snake_gym.agents.sb3_vec_env import Sb3VecEnv
from stable_baselines3.common.vec_env import VecNormalize

from snake_gym.config import ConfigError
from snake_gym.envs import make_waypoints
from snake_gym.interface.policy_file import load_policy
from tests.agents.runs import small_config


def make_run(
    path: Path, algorithm: dict[str, Any], normalise: bool = False, **env: Any
) -> tuple[RunFolder, LearnerPolicy]:
    """The folder of a run whose policy has random weights, large enough that actions fill their range."""
    config: TrainConfig = small_config(
        algorithm=algorithm, normalise={"observation": normalise}, env={"time_limit_s": 2.0, **env}
    )
    found = find_algorithm(config.algorithm)
    venv: Any = Sb3VecEnv(make_waypoints(2, config.env, "SAME_STEP"))
    rng = np.random.default_rng(3)
    if normalise:
        venv = VecNormalize(venv, clip_obs=3.0)
        venv.obs_rms.mean = rng.normal(size=venv.obs_rms.mean.shape)
        venv.obs_rms.var = rng.uniform(0.1, 2.0, venv.obs_rms.mean.shape)
    model = make_model(found, venv, 0)
    with torch.no_grad():
        for values in model.policy.parameters():
            values.copy_(torch.from_numpy(rng.normal(0.0, 1.0 / np.sqrt(values.shape[-1]), values.shape)))
    folder = RunFolder(path)
    folder.path.mkdir()
    folder.write_config(config)
    folder.begin_launch(["python", "train.py"])
    write_folder(folder.policies / "final", PolicyWriter(config, folder).encode(model, {"return": 1.5}))
    return folder, LearnerPolicy(model)


PPO = {"name": "PPO", "n_steps": 8, "batch_size": 16}
OFF_POLICY = {"buffer_size": 100, "learning_starts": 10}
CASES: dict[str, tuple[dict[str, Any], bool, dict[str, Any]]] = {
    "PPO relu, normalised": ({**PPO, "network": {"net_arch": [128, 128], "activation": "relu"}}, True, {}),
    "PPO elu, without hidden layers for the actor": (
        {**PPO, "network": {"net_arch": {"pi": [], "vf": [8]}, "activation": "elu"}}, False, {},
    ),
    "PPO with state-dependent exploration": ({**PPO, "use_sde": True}, False, {"action": {"kind": "gait"}}),
    "A2C silu, normalised": ({"name": "A2C", "network": {"net_arch": [64, 32], "activation": "silu"}}, True, {}),
    "SAC": ({"name": "SAC", **OFF_POLICY}, False, {"action": {"kind": "joint_reference"}}),
    "SAC with state-dependent exploration": (
        {"name": "SAC", **OFF_POLICY, "use_sde": True, "network": {"net_arch": [32]}}, False, {},
    ),
    "TD3": ({"name": "TD3", **OFF_POLICY, "network": {"net_arch": [64, 48]}}, False, {"faults": {"reveal": True}}),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_numpy_and_onnx_give_the_learners_actions(case: str, tmp_path: Path) -> None:
    algorithm, normalise, env = CASES[case]
    folder, learner = make_run(tmp_path / "run", algorithm, normalise, **env)
    files = export.export_policy(folder.path, onnx=True)
    assert set((folder.path / "export").iterdir()) == set(files)
    policy = load_policy(folder.path / "export")
    obs = np.random.default_rng(9).normal(size=(300, *policy.observation_space.shape)).astype(np.float32)
    expected, _ = learner.predict(obs, deterministic=True)
    assert (np.abs(expected) < 0.99).mean() > 0.2
    for batch in (obs, obs[:1]):
        np.testing.assert_allclose(policy.predict(batch)[0], expected[: len(batch)], rtol=0.0, atol=1e-6)
    model = (folder.path / "export" / "policy.onnx").read_bytes()
    for batch in (obs, obs[:1]):
        np.testing.assert_allclose(run_onnx(model, batch), expected[: len(batch)], rtol=0.0, atol=1e-6)


def test_the_contract_plays_the_env_it_was_trained_in(tmp_path: Path) -> None:
    """Layout and decoder of the file against those of the env, step by step, faults revealed."""
    folder, _ = make_run(tmp_path / "run", PPO, faults={"n_min": 2, "n_max": 2, "reveal": True})
    export.export_policy(folder.path)
    policy = load_policy(folder.path / "export")
    env = make_waypoints(3, policy.env_config, "DISABLED")
    core = env.core
    obs, _ = env.reset(seed=0)
    layout, decoder = policy.make_layout(), policy.make_decoder()
    state, action = decoder.initial_state(3), np.zeros((3, 9))
    for _ in range(5):
        measurement, goal = core.measurement, core.task.goal()
        again = layout.build(measurement, goal, core.reference, action, decoder.phase(state))
        np.testing.assert_array_equal(again, obs)
        action = policy.predict(again)[0].astype(np.float64)
        reference = decoder.decode(action, measurement, goal, state)
        obs = env.step(action.astype(np.float32))[0]
        np.testing.assert_array_equal(reference, core.reference)


def test_a_policy_inside_a_run_can_be_exported_and_a_stray_one_to_a_named_folder(tmp_path: Path) -> None:
    folder, _ = make_run(tmp_path / "run", PPO)
    file = folder.policies / "final"
    assert export.export_policy(file, onnx=True)[0].parent == folder.path / "export"
    export.export_policy(file)
    assert not (folder.path / "export" / "policy.onnx").exists()  # it might be of other weights
    shutil.copytree(file, tmp_path / "stray")
    with pytest.raises(ConfigError, match=r"stray is in no run's folder; say with --out"):
        export.export_policy(tmp_path / "stray")
    export.export_policy(tmp_path / "stray", tmp_path / "out")


SHIPPED = Path(__file__).parents[2] / "agents" / "pretrained" / "resilient_servo_locked_joints"


def test_the_shipped_model_gives_the_actions_of_the_shipped_file() -> None:
    policy = load_policy(SHIPPED)
    content = (SHIPPED / "policy.onnx").read_bytes()
    properties = {entry.key: entry.value for entry in onnx.load_from_string(content).metadata_props}
    assert properties["weights_sha256"] == policy.contract.weights.sha256
    obs = np.random.default_rng(4).normal(size=(500, 45)).astype(np.float32)
    np.testing.assert_allclose(run_onnx(content, obs), policy.predict(obs)[0], rtol=0.0, atol=1e-6)
