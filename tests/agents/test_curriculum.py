"""A training's curriculum: episodes grow harder with the steps, and evaluations stay as hard as the settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from snake_gym.agents.config import CurriculumConfig
from snake_gym.agents.metrics import EpisodeWindow

from tests.agents.runs import run_to_end, small_config


def test_difficulty_is_linear_in_the_share_of_the_run_that_is_done() -> None:
    curriculum = CurriculumConfig(start=0.2, end=0.8, share=0.5)
    given = [curriculum.difficulty(done) for done in (0.0, 0.125, 0.25, 0.5, 0.9, 1.1)]
    assert given == [0.2, 0.35, 0.5, 0.8, 0.8, 0.8]
    assert CurriculumConfig(start=1.0, end=0.5, share=1.0).difficulty(0.4) == 0.8


def test_episodes_grow_harder_with_the_steps_and_evaluations_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = small_config(curriculum={"start": 0.0, "end": 1.0, "share": 0.5}, stagger=False, env={"time_limit_s": 1.6})
    seen: list[tuple[int, float, float]] = []
    update = EpisodeWindow.update

    def watch(window: EpisodeWindow) -> None:
        update(window)
        difficulty = window.venv.core.infos()["difficulty"]
        seen.append((16 * (len(seen) + 1), difficulty.min(), difficulty.max()))

    monkeypatch.setattr(EpisodeWindow, "update", watch)
    env: Any = run_to_end(config, tmp_path / "run").evaluation_env
    # Episodes and rollouts have 8 steps of 16 worlds: the last step of a rollout begins the next episodes.
    for step, least, most in seen:
        begun = max(step // 128 - 1, 0) * 128
        assert least == most == pytest.approx(min(begun / 640, 1.0), abs=6e-4), step
    assert seen[0][1] == 0.0 and seen[-1][1] == 1.0
    assert (env.core.difficulty == 1.0).all()
