"""What is logged of episodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from snake_gym.agents.metrics import EpisodeWindow, play_episodes, summarise
from snake_gym.agents.sb3_vec_env import Ends, Sb3VecEnv
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from snake_gym.envs import make_waypoints
from snake_gym.interface.policy_file import load_policy
from snake_gym.tasks.waypoints import Waypoints
from tests.agents.runs import copy_envs, resume_to_end, run_to_end, small_config, stop_after

SETTINGS = {"action": {"kind": "residual"}, "faults": {"n_max": 3}, "time_limit_s": 2.0}


class Random:
    """A policy that acts at random, the same for the same observation count."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)

    def predict(self, observation: np.ndarray, *_: object, **__: object) -> tuple[np.ndarray, None]:
        return self.rng.uniform(-1, 1, (observation.shape[0], 9)), None


def assert_terms_add_up(columns: dict[str, np.ndarray]) -> None:
    terms = sum(values for name, values in columns.items() if name.startswith("reward/"))
    assert np.allclose(terms, columns["return"], atol=1e-12)


def test_reward_terms_add_up_to_the_return_and_the_window_keeps_the_newest() -> None:
    venv = Sb3VecEnv(make_waypoints(8, SETTINGS, AutoresetMode.SAME_STEP))
    venv.seed(0)
    venv.reset()
    window = EpisodeWindow(venv, 10)
    policy = Random()
    returns: list[float] = []
    progress: list[float] = []
    for _ in range(40):
        venv.step(policy.predict(np.zeros((8, 1)))[0])
        window.update()
        if venv.ends is not None:
            returns += venv.ends.returns.tolist()
            progress += venv.ends.infos["progress_m"][venv.ends.worlds].tolist()
    assert len(returns) > 20
    columns = window.columns
    assert columns["return"].tolist() == returns[-10:] and columns["progress_m"].tolist() == progress[-10:]
    assert_terms_add_up(columns)
    assert (columns["speed_m_s"] > 0).all()


def test_the_score_of_any_task_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Waypoints, "score", "time_to_first_target_s")
    columns = play_episodes(Random(), make_waypoints(2, SETTINGS, AutoresetMode.DISABLED), 0)
    assert columns is not None and columns["time_to_first_target_s"].tolist() == [np.inf] * 2


def test_means_by_number_of_failed_joints() -> None:
    columns = {
        "return": np.array([1.0, 2.0, 6.0]), "progress_m": np.array([1.0, 3.0, 8.0]),
        "n_failed_joints": np.array([0.0, 2.0, 2.0]),
    }  # fmt: skip
    means = {"return": 3.0, "progress/all": 4.0, "progress/0_failed": 1.0, "progress/2_failed": 5.5}
    assert summarise(columns) == means
    assert summarise({}) == {}


def test_evaluation_plays_one_episode_of_each_world() -> None:
    env = make_waypoints(6, SETTINGS, AutoresetMode.DISABLED)
    columns = play_episodes(Random(), env, seed=500_000)
    assert columns is not None
    assert (columns["length"] == 10).all()
    assert np.array_equal(columns["progress_m"], env.core.task.record["progress_m"])
    assert_terms_add_up(columns)
    again = play_episodes(Random(), env, seed=500_000)
    assert again is not None and np.array_equal(again["return"], columns["return"])
    assert play_episodes(Random(), env, 0, should_stop=lambda: True) is None
    with pytest.raises(ValueError, match="expected DISABLED"):
        play_episodes(Random(), make_waypoints(2, SETTINGS, AutoresetMode.SAME_STEP), 0)


def test_successes_that_end_first_do_not_make_the_first_means() -> None:
    """Half of the episodes succeed at step 3, the others fail at step 10."""
    venv = Sb3VecEnv(copy_envs(8, AutoresetMode.SAME_STEP))
    window = EpisodeWindow(venv, 100)
    age = np.zeros(8, np.int64)
    shown: list[float] = []
    for _ in range(40):
        age += 1
        ended = np.flatnonzero((age == 10) | ((age == 3) & (np.arange(8) < 4)))
        success = (np.arange(8) < 4).astype(float)
        venv.ends = Ends(ended, success[ended], age[ended], {"is_success": success}) if ended.size else None
        age[ended] = 0
        window.update()
        shown += [means["success_rate"]] if (means := window.means()) else []
        early = EpisodeWindow(venv, 100)
        early.set_state(window.get_state())
        assert early.means() == means
    assert shown
    assert max(shown) <= 24 / 28, "six rounds of successes to each of failures, never successes alone"


def read_scalars(run: Path) -> dict[str, list[tuple[int, float]]]:
    events = EventAccumulator(str(run / "tensorboard"))
    events.Reload()
    return {tag: [(e.step, e.value) for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def test_tensorboard_has_what_was_promised_and_goes_on_after_a_resume(tmp_path: Path) -> None:
    config = small_config()
    run_to_end(config, tmp_path / "a")
    stop_after(config, tmp_path / "b", rollouts=7)
    resume_to_end(config, tmp_path / "b")
    whole, parts = read_scalars(tmp_path / "a"), read_scalars(tmp_path / "b")
    promised = {
        "rollout/return", "rollout/length", "rollout/success_rate", "rollout/targets", "rollout/speed_m_s",
        "rollout/energy_j", "progress/all", "progress/0_failed", "progress/3_failed", "reward/progress",
        "reward/target", "reward/effort", "time/fps", "eval/return", "eval/progress/all", "train/loss",
    }  # fmt: skip
    assert promised <= whole.keys()
    assert not any("reward/energy" in tag for tag in whole), "a term of weight 0"
    for tag in promised - {"time/fps"}:
        assert parts[tag] == whole[tag], tag
    assert {value for _, value in whole["rollout/length"]} == {20.0}, "no episode that was cut short"
    assert [step for step, _ in whole["eval/return"]] == [0, 512, 1024, 1280]


def test_what_has_not_learned_yet_is_never_the_best(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played: list[int] = []

    def first_one_shines(*arguments: Any) -> Any:
        columns = play_episodes(*arguments)
        assert columns is not None
        played.append(1)
        return columns | {"return": columns["return"] + (1e6 if len(played) == 1 else 0.0)}

    monkeypatch.setattr("snake_gym.agents.callback.play_episodes", first_one_shines)
    run_to_end(small_config(total_steps=512), tmp_path / "run")
    assert len(played) == 2
    assert load_policy(tmp_path / "run").contract.training["steps"] == 512
