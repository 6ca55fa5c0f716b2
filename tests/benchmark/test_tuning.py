"""The search for gait parameters: it finds better gaits and pairs its scenarios; what is searched stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snake_gym.benchmark.runner import play
from snake_gym.benchmark.scenarios import BenchmarkConfig, classical_entrant, make_scenarios
from snake_gym.benchmark.tune import main
from snake_gym.benchmark.tuning import SEED_BASE, Search, TuningConfig, objective, score_of, search_space, value_at
from snake_gym.config import load_yaml, to_dict
from snake_gym.controllers import CONTROLLERS, make_controller, resolve_controller
from snake_gym.controllers.base import SearchRange
from snake_gym.robot.catalogue import load_robot
from snake_gym.robot.presets import PRESETS

CONFIGS = Path(__file__).parents[2] / "configs" / "controllers"
SHORT: dict[str, Any] = {"env": {"time_limit_s": 4.0, "n_threads": 1}, "population": 8, "worlds": 16}


def search(**settings: Any) -> Search:
    return Search(TuningConfig(**{**SHORT, **settings}))


@pytest.mark.parametrize("robot", list(PRESETS))
def test_every_controller_can_be_tuned_anywhere_in_its_space(robot: str) -> None:
    spec = PRESETS[robot]
    for kind in (kind for kind in CONTROLLERS if kind != "multimodal"):  # that one is spatial
        space = search_space(kind, spec)
        for share in (0.0, 0.5, 1.0):
            values = {name: float(value_at(np.array(share), within)) for name, within in space.items()}
            make_controller({"kind": kind, **values}, spec)


def test_a_candidate_plays_like_that_controller_alone_on_the_scenarios_of_the_others() -> None:
    tuned = search(controller={"kind": "cc"})
    shares = np.random.default_rng(0).uniform(0.2, 0.8, (8, len(tuned.space)))
    seeds = np.array([SEED_BASE, SEED_BASE + 5])
    progress = tuned.play(shares, seeds)
    alone = tuned.play(np.tile(shares[3], (8, 1)), seeds)
    np.testing.assert_array_equal(alone, np.tile(progress[3], (8, 1)))
    assert np.unique(progress).size == 16
    np.testing.assert_array_equal(tuned.play(shares, seeds), progress)  # nothing is left over from the last play


def test_values_of_a_share_are_even_in_their_range_or_its_logarithm_and_rounded() -> None:
    shares = np.array([0.0, 1.0 / 3.0, 1.0])
    assert value_at(shares, SearchRange(1.0, 3.0)).tolist() == [1.0, 1.6667, 3.0]
    assert value_at(shares, SearchRange(0.1, 10.0, log=True)).tolist() == [0.1, 0.46416, 10.0]


@pytest.mark.parametrize(("tried", "worlds", "chosen"), [(10, 72, slice(2, 10)), (7, 16, slice(3, 7))])
def test_the_last_means_play_for_the_choice_and_the_best_is_scored_on_new_seeds(
    tried: int, worlds: int, chosen: slice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most eight finalists, as many as share the worlds evenly."""
    tuned = search(seed=2, worlds=worlds)
    means = [0.1 * k for k in range(tried)]
    tuned.trail, tuned.generation = [[mean] * len(tuned.space) for mean in means], tried
    played: list[tuple[list[float], list[int]]] = []

    def play(shares: np.ndarray, seeds: np.ndarray) -> np.ndarray:
        played.append((shares[:, 0].tolist(), seeds.tolist()))
        return np.repeat(-((shares[:, :1] - 0.5) ** 2), seeds.size, axis=1)

    monkeypatch.setattr(tuned, "play", play)
    seeds = tuned.report()["tuning"]["seeds"]
    first, n_each = 4_000_000, worlds // len(means[chosen])
    choice, score = range(first + 800_000, first + 800_000 + n_each), range(first + 900_000, first + 900_000 + worlds)
    assert played == [(means[chosen], list(choice)), ([means[5]], list(score))]
    assert seeds == {
        "search": [first, first + worlds // 8 * tried - 1], "choice": [choice[0], choice[-1]],
        "score": [score[0], score[-1]],
    }  # fmt: skip


def test_a_generation_moves_to_its_elite_by_the_weights_of_the_method(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cross-entropy by hand: 12 candidates around 0.5 with deviation 0.3, the best quarter, 0.7 of the way to it."""
    tuned = search(seed=1, population=12, worlds=24)
    played: list[tuple[np.ndarray, list[int]]] = []

    def play(shares: np.ndarray, seeds: np.ndarray) -> np.ndarray:
        played.append((shares, seeds.tolist()))
        return np.repeat(-np.abs(shares - 0.6).sum(axis=1)[:, None], seeds.size, axis=1)

    monkeypatch.setattr(tuned, "play", play)
    tuned.advance()
    tuned.advance()
    noise = np.random.default_rng([1, 0]).standard_normal((12, len(tuned.space)))
    noise[0] = 0.0
    shares = np.clip(0.5 + 0.3 * noise, 0.0, 1.0)
    np.testing.assert_allclose(played[0][0], shares)
    elite = shares[np.argsort(np.abs(shares - 0.6).sum(axis=1))[:3]]
    np.testing.assert_allclose(tuned.trail[0], 0.7 * elite.mean(axis=0) + 0.3 * 0.5)
    deviation = np.maximum(0.7 * elite.std(axis=0) + 0.3 * 0.3, 0.02)
    noise = np.random.default_rng([1, 1]).standard_normal((12, len(tuned.space)))
    noise[0] = 0.0
    np.testing.assert_allclose(played[1][0], np.clip(tuned.trail[0] + deviation * noise, 0.0, 1.0))
    assert [seeds for _, seeds in played] == [[SEED_BASE + 1_000_000 + k for k in pair] for pair in ([0, 1], [2, 3])]
    tuned.deviation[:] = 0.0
    tuned.advance()
    np.testing.assert_allclose(tuned.deviation, 0.02)


# --- what is maximised ------------------------------------------------------------------------------------------------


def test_success_comes_first_then_the_time_then_the_way() -> None:
    def worth(success: list[bool], goal_s: list[float], share: list[float]) -> np.ndarray:
        time_s = np.where(success, goal_s, 60.0)
        infos = {"is_success": np.array(success), "time_to_goal_s": time_s, "episode_time_s": time_s}
        way = {"progress_m": 4.0 * np.array(share), "route_m": np.full(len(success), 4.0)}
        return objective({**infos, **way}, "is_success", 60.0)

    ranked = worth([True, True, False, False, False], [20.0, 50.0, 60.0, 60.0, 60.0], [1.0, 1.0, 0.9, 0.2, -1.0])
    assert (np.diff(ranked) < 0.0).all()
    assert score_of(ranked, "is_success") == {"mean": 0.4, "ci95": [0.1176, 0.7693], "episodes": 5}  # Wilson
    n = 100_000  # in the largest search, no time makes up for one success
    fast = worth([True] * (n - 1) + [False], [1e-3] * n, [1.0] * n)
    assert worth([True] * n, [60.0] * n, [1.0] * n).mean() > fast.mean()


def test_a_search_in_the_field_maximises_success() -> None:
    """A gait that reaches the goal is the better one, though another makes more way in the time of the episode."""
    env = {"n_threads": 1, "time_limit_s": 20.0, "field": {"goal_distance_m": 0.8, "difficulty": 0.2}}
    in_field = search(env_id="SnakeGym/ObstacleField-v0", env=env, generations=1, population=4)
    in_field.advance()
    report = in_field.report()["tuning"]
    assert report["score"] == "is_success" and "progress_m" not in report
    assert set(report["is_success"]) == {"mean", "ci95", "episodes"}
    assert 0.0 <= report["is_success"]["ci95"][0] <= report["is_success"]["mean"] <= 1.0
    gaits = np.array([[0.4, 0.8, 0.2, 0.7], [0.0, 0.0, 0.5, 0.5], [0.4, 0.8, 0.2, 0.7], [0.0, 0.0, 0.5, 0.5]])
    worth = in_field.play(gaits, np.arange(2_000_000, 2_000_004))
    reached = in_field.env.core.task.record["is_success"].reshape(4, 4)
    assert reached[0].any() and not reached[1].any()
    np.testing.assert_array_equal(worth >= 1.0, reached)


# --- the program -----------------------------------------------------------------------------------------------------

FAST = ["--population", "8", "--worlds", "16", "--budget", "2"]


def test_the_program_writes_a_file_that_builds_a_controller(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "cc.yaml"
    arguments = ["--robot", "resilient_servo", "--controller", "cc", "--out", str(out), *FAST]
    assert main([*arguments, "--set", "env.time_limit_s=4", "n_threads=1", "--set", "controller.coupling=0.5"]) == 0
    resolved = resolve_controller({"file": str(out)})
    assert (resolved["kind"], resolved["coupling"]) == ("cc", 0.5)
    tuning = load_yaml(out)["tuning"]
    assert tuning["command"].startswith("snake-gym tune --robot resilient_servo")
    assert tuning["env"]["time_limit_s"] == 4.0
    assert tuning["robot"] == to_dict(load_robot("resilient_servo"))
    assert "coupling" not in tuning["searched"]
    assert [tuning[name] for name in ("generations", "population", "worlds", "seed")] == [2, 8, 16, 0]
    assert "16 unseen scenarios" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == [out]


def test_the_search_spaces_are_those_of_the_shipped_gaits() -> None:
    """In their order, too: another one would give other candidates. Some parameters came later, and some have gone."""
    n_tuned = 0
    for path in CONFIGS.rglob("*.yaml"):
        content = load_yaml(path)
        searched = content.get("tuning", {}).get("searched", {})
        if searched:
            space = search_space(content["controller"]["kind"], load_robot(content["tuning"]["robot"]))
            ranges = {n: value_at(np.array([0.0, 1.0]), of).tolist() for n, of in space.items() if n in searched}
            assert list(ranges.items()) == [(name, ends) for name, ends in searched.items() if name in ranges], path
            n_tuned += 1
    assert n_tuned > 40


def test_of_several_seeds_the_one_that_is_best_where_all_play_the_same_is_kept(tmp_path: Path) -> None:
    """The means of all are those of the gaits alone, played by the benchmark's own code."""
    arguments = ["--robot", "resilient_servo", "--controller", "sjc", *FAST, "--set", "env.time_limit_s=4"]
    first, means, gaits = SEED_BASE + 3 * 1_000_000 + 850_000, {}, {}
    config = BenchmarkConfig(robot="resilient_servo", env={"time_limit_s": 4.0}, episodes=16, seed=first)
    for seed in (0, 3):
        alone = tmp_path / f"{seed}.yaml"
        assert main([*arguments, "--out", str(alone), "--seed", str(seed)]) == 0
        played = play(classical_entrant(f"gait={alone}", config), make_scenarios(config))
        means[seed], gaits[seed] = float(played.columns["progress_m"].mean()), load_yaml(alone)["controller"]
    assert main([*arguments, "--out", str(tmp_path / "sjc.yaml"), "--seeds", "0,3"]) == 0
    found = load_yaml(tmp_path / "sjc.yaml")
    tuning, best = found["tuning"], max(means, key=lambda seed: means[seed])
    assert tuning["command"].endswith("--seeds 0,3")
    assert tuning["of_seeds"]["seeds"] == [first, first + 15]
    searches = {str(seed): {"mean": pytest.approx(mean, abs=1e-4)} for seed, mean in means.items()}
    assert tuning["of_seeds"]["searches"] == searches
    assert (tuning["seed"], found["controller"]) == (best, gaits[best])
