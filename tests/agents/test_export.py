"""Exported policies act like SB3's, from every algorithm and network that a policy file can hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from snake_gym.agents import export
from snake_gym.agents.algorithms import make_model
from snake_gym.agents.config import TrainConfig
from snake_gym.agents.onnx_model import run_onnx
from snake_gym.agents.policy_writer import LearnerPolicy, PolicyWriter
from snake_gym.agents.run_folder import RunFolder, write_folder
from snake_gym.agents.sb3_vec_env import Sb3VecEnv

from snake_gym.config import ConfigError
from snake_gym.envs import make_waypoints
from snake_gym.interface.observer import Observer
from snake_gym.interface.policy_file import load_policy
from snake_gym.interface.policy_writing import write_policy
from tests.agents.runs import small_config


def make_run(path: Path, algorithm: dict[str, Any], **env: Any) -> tuple[RunFolder, LearnerPolicy]:
    """The folder of a run with random weights, large enough that actions fill their range."""
    config: TrainConfig = small_config(algorithm=algorithm, env={"time_limit_s": 2.0, **env})
    rng = np.random.default_rng(3)
    model = make_model(config.algorithm, Sb3VecEnv(make_waypoints(2, config.env, "SAME_STEP")), 0)
    with torch.no_grad():
        for values in model.policy.parameters():
            values.copy_(torch.from_numpy(rng.normal(0.0, 1.0 / np.sqrt(values.shape[-1]), values.shape)))
    folder = RunFolder(path)
    folder.path.mkdir()
    folder.begin_launch(config, ["python", "train.py"])
    write_folder(folder.policies / "final", PolicyWriter(config, folder).encode(model, {"return": 1.5}))
    return folder, LearnerPolicy(model)


PPO = {"name": "PPO", "n_steps": 8, "batch_size": 16}
OFF_POLICY = {"buffer_size": 100, "learning_starts": 10}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "PPO relu": ({**PPO, "network": {"net_arch": [128, 128], "activation": "relu"}}, {}),
    "PPO elu, without hidden layers for the actor": (
        {**PPO, "network": {"net_arch": {"pi": [], "vf": [8]}, "activation": "elu"}}, {},
    ),
    "PPO with state-dependent exploration": ({**PPO, "use_sde": True}, {"action": {"kind": "gait"}}),
    "A2C silu": ({"name": "A2C", "network": {"net_arch": [64, 32], "activation": "silu"}}, {}),
    "SAC": ({"name": "SAC", **OFF_POLICY}, {"action": {"kind": "joint_reference"}}),
    "SAC with state-dependent exploration": (
        {"name": "SAC", **OFF_POLICY, "use_sde": True, "network": {"net_arch": [32]}}, {},
    ),
    "TD3": ({"name": "TD3", **OFF_POLICY, "network": {"net_arch": [64, 48]}}, {"faults": {"reveal": True}}),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_numpy_and_onnx_give_the_learners_actions(case: str, tmp_path: Path) -> None:
    algorithm, env = CASES[case]
    folder, learner = make_run(tmp_path / "run", algorithm, **env)
    files = export.export_policy(folder.path, onnx=True)
    assert set((folder.path / "export").iterdir()) == set(files)
    policy = load_policy(folder.path / "export")
    obs = np.random.default_rng(9).normal(size=(300, *policy.observation_space.shape)).astype(np.float32)
    expected, _ = learner.predict(obs, deterministic=True)
    assert (np.abs(expected) < 0.99).mean() > 0.2
    model = (folder.path / "export" / "policy.onnx").read_bytes()
    for batch in (obs, obs[:1]):
        for actions in (policy.predict(batch)[0], run_onnx(model, batch)):
            np.testing.assert_allclose(actions, expected[: len(batch)], rtol=0.0, atol=1e-6)


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
        again = Observer(layout, 3).look(measurement, goal, core.reference, action, decoder.phase(state))
        np.testing.assert_array_equal(again, obs)
        action = policy.predict(again)[0].astype(np.float64)
        reference = decoder.decode(action, measurement, goal, state)
        obs = env.step(action.astype(np.float32))[0]
        np.testing.assert_array_equal(reference, core.reference)


def test_a_policy_that_is_no_run_is_exported_to_a_named_folder_with_its_normaliser(tmp_path: Path) -> None:
    env = make_waypoints(1, {"time_limit_s": 2.0})
    rng, n_obs = np.random.default_rng(3), env.single_observation_space.shape[0]
    layers = [(rng.normal(0.0, 0.1, (8, n_obs)), None), (rng.normal(size=(9, 8)), rng.normal(size=9))]
    mean, var = rng.normal(size=n_obs), rng.uniform(0.1, 2.0, n_obs)
    write_policy(tmp_path / "file", env, layers, observation_mean=mean, observation_var=var, clip=3.0)
    with pytest.raises(ConfigError, match=r"file is no run's folder; say with --out"):
        export.export_policy(tmp_path / "file")
    export.export_policy(tmp_path / "file", tmp_path / "out", onnx=True)
    model, obs = tmp_path / "out" / "policy.onnx", rng.normal(size=(300, n_obs)).astype(np.float32)
    expected = load_policy(tmp_path / "file").predict(obs)[0]
    np.testing.assert_allclose(run_onnx(model.read_bytes(), obs), expected, rtol=0.0, atol=1e-5)
    export.export_policy(tmp_path / "file", tmp_path / "out", estimator=True)
    assert not model.exists()  # it might be of other weights
    assert load_policy(tmp_path / "out").contract.action.settings.estimator.on


SHIPPED = Path(__file__).parents[2] / "agents" / "pretrained" / "resilient_servo_locked_joints"


def test_the_shipped_model_gives_the_actions_of_the_shipped_file() -> None:
    policy = load_policy(SHIPPED)
    content = (SHIPPED / "policy.onnx").read_bytes()
    properties = {entry.key: entry.value for entry in onnx.load_from_string(content).metadata_props}
    assert properties["weights_sha256"] == policy.contract.weights.sha256
    obs = np.random.default_rng(4).normal(size=(500, 45)).astype(np.float32)
    np.testing.assert_allclose(run_onnx(content, obs), policy.predict(obs)[0], rtol=0.0, atol=1e-6)
