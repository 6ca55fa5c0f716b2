"""Policy files and checkpoints: what is read back acts the same; foreign or damaged files are refused in one line."""

from __future__ import annotations

import io
import json
import os
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
import stable_baselines3
import torch

from agents.checkpoint import FORMAT, list_checkpoints, load_policy, read_checkpoint
from agents.sb3_vec_env import Sb3VecEnv
from agents.training import Training
from benchmarks.zero_cost_env import CopyEnv
from snake_gym.config import ConfigError
from snake_gym.envs import make_waypoints
from tests.agents.runs import SAC, run_to_end, small_config


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Training]:
    path = tmp_path_factory.mktemp("runs") / "normalised"
    return path, run_to_end(small_config(normalise={"observation": True}, total_steps=256), path)


def observations(training: Training) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(5, *training.model.observation_space.shape)).astype(np.float32)  # type: ignore[misc]


def test_a_loaded_policy_acts_like_the_model(run: tuple[Path, Training]) -> None:
    path, training = run
    policy = load_policy(path / "policy" / "final.npz")
    obs = observations(training)
    normaliser = training.model.get_vec_normalize_env()
    assert normaliser is not None
    expected, _ = training.model.predict(normaliser.normalize_obs(obs), deterministic=True)  # type: ignore[arg-type]
    action, state = policy.predict(obs)
    assert state is None
    assert action.dtype == np.float32
    assert np.array_equal(action, expected)
    assert np.allclose(policy.predict(obs[0])[0], expected[0], atol=1e-6)  # a product of another shape rounds otherwise
    assert (policy.name, policy.algorithm, policy.steps) == ("normalised", "PPO", 256)
    assert policy.evaluation["return"] == training.standing.evaluation["return"]  # type: ignore[index]


def test_the_env_config_makes_the_env_it_was_trained_in(run: tuple[Path, Training]) -> None:
    policy = load_policy(run[0])
    env = make_waypoints(3, policy.env_config)
    assert env.single_observation_space == policy.observation_space
    assert env.single_action_space == policy.action_space
    obs, _ = env.reset(seed=0)
    env.step(policy.predict(obs)[0])


def test_a_run_gives_its_best_policy_and_a_checkpoint_its_own(run: tuple[Path, Training]) -> None:
    path, _ = run
    assert load_policy(path).digest == load_policy(path / "policy" / "best.npz").digest
    checkpoint = list_checkpoints(path)[0]
    assert load_policy(checkpoint).path == checkpoint / "policy.npz"


def test_sac_stores_its_actor_alone(tmp_path: Path) -> None:
    training = run_to_end(small_config(algorithm=SAC, total_steps=160), tmp_path / "sac")
    policy = load_policy(tmp_path / "sac")
    obs = observations(training)
    assert np.array_equal(policy.predict(obs)[0], training.model.predict(obs, deterministic=True)[0])
    with np.load(tmp_path / "sac" / "policy" / "final.npz") as data:
        assert not [name for name in data.files if "critic" in name or "qf" in name]


def write_sb3_zip(path: Path) -> None:
    with path.open("wb") as stream:
        stable_baselines3.PPO("MlpPolicy", Sb3VecEnv(CopyEnv(2)), n_steps=4, batch_size=8).save(stream)


def write_pickled_npz(path: Path) -> None:
    np.savez(path, meta=np.array({"format": "x"}, dtype=object))


def write_other_npz(path: Path) -> None:
    np.savez(path, meta=np.array(json.dumps({"format": "something else"})))


def write_zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data", "hello")


@pytest.mark.parametrize(
    "write",
    [write_sb3_zip, write_pickled_npz, write_other_npz, write_zip, lambda path: path.write_text("hello"),
     lambda path: path.write_bytes(b""), lambda path: torch.save({"a": 1}, path)],
    ids=["sb3", "pickle", "other", "zip", "text", "empty", "torch"],
)  # fmt: skip
def test_foreign_files_are_refused(write: object, tmp_path: Path) -> None:
    path = tmp_path / "foreign.npz"
    write(path)  # type: ignore[operator]
    with pytest.raises(ConfigError, match=r"is no policy that train\.py wrote, or it is damaged") as caught:
        load_policy(path)
    assert "\n" not in str(caught.value)


def test_a_damaged_policy_is_refused(run: tuple[Path, Training], tmp_path: Path) -> None:
    path = run[0] / "policy" / "best.npz"
    content = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        largest = max(archive.infolist(), key=lambda part: part.file_size)
    flipped = bytearray(content)
    flipped[largest.header_offset + largest.file_size // 2] ^= 0xFF
    for damaged in (content[: len(content) // 2], bytes(flipped)):
        path = tmp_path / "damaged.npz"
        path.write_bytes(damaged)
        with pytest.raises(ConfigError, match="damaged"):
            load_policy(path)


def test_weights_of_another_network_are_refused(run: tuple[Path, Training], tmp_path: Path) -> None:
    with np.load(run[0] / "policy" / "best.npz") as data:
        arrays = {name: data[name] for name in data.files}
    meta = json.loads(str(arrays["meta"]))
    meta["network"]["net_arch"] = [8]
    buffer = io.BytesIO()
    np.savez(buffer, **{**arrays, "meta": np.array(json.dumps(meta))})
    (tmp_path / "other.npz").write_bytes(buffer.getvalue())
    with pytest.raises(ConfigError, match=r"damaged \(Error"):
        load_policy(tmp_path / "other.npz")


def test_missing_policies_name_the_nearest(run: tuple[Path, Training], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"normalized does not exist; did you mean '.*normalised'"):
        load_policy(run[0].parent / "normalized")
    with pytest.raises(ConfigError, match="holds no trained policy"):
        load_policy(tmp_path)


@pytest.mark.parametrize("name", ["state.json", "arrays.npz", "tensors.pt"])
def test_a_damaged_checkpoint_is_refused(run: tuple[Path, Training], tmp_path: Path, name: str) -> None:
    copy = tmp_path / "step_000000000256"
    shutil.copytree(list_checkpoints(run[0])[0], copy)
    read_checkpoint(copy)
    content = (copy / name).read_bytes()
    (copy / name).write_bytes(content[:-7])
    with pytest.raises(ConfigError, match="damaged"):
        read_checkpoint(copy)
    (copy / name).unlink()
    with pytest.raises(ConfigError, match="damaged"):
        read_checkpoint(copy)


def test_a_checkpoint_that_would_run_code_is_refused(tmp_path: Path) -> None:
    class Touch:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.mkdir, (str(tmp_path / "touched"),)

    checkpoint = tmp_path / "step_000000000001"
    checkpoint.mkdir()
    np.savez(checkpoint / "arrays.npz", a=np.zeros(1))
    torch.save(Touch(), checkpoint / "tensors.pt")
    (checkpoint / "state.json").write_text(json.dumps({"format": FORMAT, "step": 1, "files": {}, "state": {}}))
    with pytest.raises(ConfigError, match="damaged"):
        read_checkpoint(checkpoint)
    assert not (tmp_path / "touched").exists()
