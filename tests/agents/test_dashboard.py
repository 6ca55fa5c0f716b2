"""What TensorBoard shows of a run besides its curves."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from PIL import Image
from snake_gym.agents.checkpoint import list_checkpoints, read_checkpoint
from snake_gym.agents.config import EvaluationConfig
from snake_gym.agents.dashboard import hyper_parameters
from snake_gym.agents.metrics import EpisodeWindow, play_episodes, summarise
from snake_gym.agents.references import scores_by_joint
from snake_gym.agents.sb3_vec_env import Ends, Sb3VecEnv
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

from snake_gym.envs import make_waypoints
from snake_gym.interface.policy import ZeroResidual
from tests.agents.copy_env import CopyEnv
from tests.agents.runs import assert_same_state, resume_to_end, run_to_end, small_config, stop_after

SHOWN = {"eval": {"every_steps": 512, "episodes": 8, "references": True, "pictures": True}, "total_steps": 768}


def read(folder: Path) -> EventAccumulator:
    events = EventAccumulator(str(folder))
    events.Reload()
    return events


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    events = read(folder)
    return {tag: [(e.step, e.value) for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("dashboard") / "run"
    run_to_end(small_config(**SHOWN), path)
    return path


def test_references_stand_beside_the_evaluation_under_its_tags(run: Path) -> None:
    own = scalars(run / "tensorboard")
    lines = {path.name: scalars(path) for path in (run / "tensorboard" / "reference").iterdir()}
    assert "base" in lines
    assert len(lines) == 2
    best = lines.pop(next(name for name in lines if name.startswith("best_")))
    for line in (best, lines["base"]):
        for tag in ("eval/return", "eval/progress/all", "eval/success_rate"):
            assert [step for step, _ in line[tag]] == [step for step, _ in own[tag]] == [0, 512, 768]
            assert len({value for _, value in line[tag]}) == 1, "it learns nothing"
    for (_, regret), (_, mine), (_, its) in zip(
        own["eval/regret"], own["eval/progress/all"], best["eval/progress/all"], strict=True
    ):
        assert regret == pytest.approx(its - mine, abs=1e-5)


def test_the_base_is_the_policy_that_adds_nothing_in_the_same_scenarios(run: Path) -> None:
    config = small_config(**SHOWN)
    env = make_waypoints(8, config.env, AutoresetMode.DISABLED)
    columns = play_episodes(ZeroResidual(9), env, config.eval.seed)
    assert columns is not None
    wanted = summarise(columns)
    assert wanted["action_rms"] == wanted["action_residual_rms_rad"] == 0.0
    shown = scalars(run / "tensorboard" / "reference" / "base")
    for tag in ("return", "progress/all", "progress/locked", "success_rate", "energy_j"):
        assert shown[f"eval/{tag}"][0][1] == pytest.approx(wanted[tag], rel=1e-6), tag


def test_settings_pictures_layout_and_hyper_parameters(run: Path) -> None:
    events = read(run / "tensorboard")
    assert "faults" in events.Tensors("config/text_summary")[0].tensor_proto.string_val[0].decode()
    assert events.Tags()["tensors"].count("custom_scalars__config__") == 1
    for tag, size in (("eval/film", (1200, 400)), ("eval/failed_joint", None)):
        images = events.Images(tag)
        assert [image.step for image in images] == [0, 512, 768]
        pixels = np.asarray(Image.open(io.BytesIO(images[0].encoded_image_string)).convert("RGB"))
        assert size is None or pixels.shape[1::-1] == size
        assert pixels.std() > 5.0, "not blank"
    content = events.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    values = HParamsPluginData.FromString(content).session_start_info.hparams
    assert values["algorithm.n_steps"].number_value == 8.0
    assert values["env.action.controller"].string_value == "sjc"
    assert len(values) < 30, "no more than one can compare"
    assert "_hparams_/session_end_info" in events.summary_metadata


def test_a_resumed_run_shows_each_evaluation_once(run: Path, tmp_path: Path) -> None:
    config = small_config(**SHOWN)
    stop_after(config, tmp_path / "b", rollouts=5)
    resume_to_end(config, tmp_path / "b")
    assert_same_state(list_checkpoints(run)[0], list_checkpoints(tmp_path / "b")[0])
    for part in ("", "reference/base"):
        mine, whole = (scalars(path / "tensorboard" / part) for path in (tmp_path / "b", run))
        for tag in ("eval/return", "eval/progress/all"):
            assert mine[tag] == whole[tag]


def test_what_is_drawn_does_not_change_what_is_learned(run: Path, tmp_path: Path) -> None:
    plain = small_config(eval={"every_steps": 0}, total_steps=768)
    run_to_end(plain, tmp_path / "plain")
    (_, one), (_, other) = (read_checkpoint(list_checkpoints(path)[0]) for path in (run, tmp_path / "plain"))
    for name, values in one.tensors["parameters"]["policy"].items():
        assert values.equal(other.tensors["parameters"]["policy"][name]), name
    assert one.tensors["generator"].equal(other.tensors["generator"])
    assert one.plain["numpy_generator"] == other.plain["numpy_generator"]


def test_evaluations_are_at_every_twentieth_of_a_run_by_default() -> None:
    assert EvaluationConfig().period(3_000_000) == 150_000
    assert EvaluationConfig().period(10) == 1
    assert EvaluationConfig(every_steps=0).period(3_000_000) == 0
    assert EvaluationConfig(every_steps=7).period(3_000_000) == 7


def test_successes_that_end_first_do_not_make_the_first_means() -> None:
    """Half of the episodes succeed at step 3, the others fail at step 10."""
    venv = Sb3VecEnv(CopyEnv(8, mode=AutoresetMode.SAME_STEP))
    window = EpisodeWindow(8, 100)
    age = np.zeros(8, np.int64)
    shown: list[float] = []
    for _ in range(40):
        age += 1
        ended = np.flatnonzero((age == 10) | ((age == 3) & (np.arange(8) < 4)))
        success = (np.arange(8) < 4).astype(float)
        venv.ends = Ends(ended, success[ended], age[ended], {"is_success": success}) if ended.size else None
        age[ended] = 0
        window.update(venv)
        shown += [means["success_rate"]] if (means := window.means()) else []
        early = EpisodeWindow(8, 100)
        early.set_state(window.get_state())
        assert early.means() == means
    assert shown
    assert max(shown) <= 24 / 28, "six rounds of successes to each of failures, never successes alone"


def test_scores_by_joint() -> None:
    failed = np.array([[False, False, False], [True, False, False], [True, True, False]])
    means = scores_by_joint(np.array([5.0, 3.0, 1.0]), failed)
    assert means[:3].tolist() == [5.0, 2.0, 1.0]
    assert np.isnan(means[3])


def test_hyper_parameters_are_the_settings_that_matter() -> None:
    values = hyper_parameters(small_config())
    assert values["seed"] == 0
    assert values["algorithm.name"] == "PPO"
    assert values["env.faults.n_max"] == 3
    assert not any(name.startswith(("eval", "checkpoint", "env.robot")) for name in values)
