"""The shipped suites: frozen, with reference rows that the page tells and that can be played again."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import suites
from snake_gym.benchmark.runner import Episodes, join_plays, play
from snake_gym.benchmark.scenarios import BenchmarkConfig, make_scenarios

ROOT = Path(__file__).parents[2]
ROWS = ROOT / "docs" / "suites"
NAMES = sorted(path.stem for path in (ROOT / "configs" / "benchmark").glob("*.yaml"))


@pytest.mark.parametrize("name", NAMES)
def test_a_suite_is_frozen_and_its_rows_are_of_its_scenarios(name: str) -> None:
    config = suites.suite_config(name)  # raises if it has other scenarios than it is frozen to
    about, results = suites.read_suite(ROWS / f"{name}.csv")
    assert config.scenarios == about["scenarios"]
    assert results[0].columns["seed"].tolist() == list(range(config.seed, config.seed + config.episodes))
    assert {"random", *config.revealed} <= about["policies"].keys()
    assert (ROWS / f"{name}.csv").stat().st_size < 300_000


@pytest.mark.parametrize("name", ["demo", *(pytest.param(n, marks=pytest.mark.slow) for n in NAMES if n != "demo")])
def test_the_page_has_the_numbers_of_the_rows(name: str) -> None:
    section = suites.section(ROWS / f"{name}.csv")
    assert section in (ROOT / "docs/suites.md").read_text(), "run: python benchmarks/suites.py"
    # the same by hand, without our statistics
    lines = [line for line in (ROWS / f"{name}.csv").read_text().splitlines() if not line.startswith("#")]
    rows = list(csv.DictReader(lines))
    policies = suites.read_suite(ROWS / f"{name}.csv")[0]["policies"]
    known = "cc" if "cc" in policies else next(each for each, kind in policies.items() if kind == "classical")
    mean = np.mean([float(row[f"{known} progress_m"]) for row in rows])
    share = np.mean([row[f"{known} is_success"] == "1" for row in rows])
    (row,) = [line for line in section.splitlines() if line.startswith(f"| {known} |")][:1]
    assert f"{share:.0%} [" in row
    assert name == "velocity" or f"{mean:.2f} [" in row


@pytest.mark.parametrize("name", ["demo", *(pytest.param(n, marks=pytest.mark.slow) for n in NAMES if n != "demo")])
def test_a_row_of_a_suite_played_again_is_the_same(name: str) -> None:
    config = suites.suite_config(name)
    scenarios = make_scenarios(config)
    _, results = suites.read_suite(ROWS / f"{name}.csv")
    recorded = {episodes.name: episodes for episodes in results}
    row = sum(map(ord, name)) % config.episodes
    for entrant in suites.entrants_of(config, scenarios, {}):
        again = play(entrant, scenarios, rows=[row]).columns
        assert str(again["faults"][0]) == str(recorded[entrant.name].columns["faults"][row])
        if scenarios.spec.in_space:  # many contacts at once are chaotic: other processors play other episodes
            continue
        for column in set(suites.measures(recorded[entrant.name].score)) - {"recovery_s"}:
            expected = float(recorded[entrant.name].columns[column][row])
            # Energies were stored before work was counted within a step.
            if column != "energy_j" and np.isfinite(expected):
                assert float(again[column][0]) == pytest.approx(expected, rel=2e-3, abs=2e-3), (entrant.name, column)


def made(name: str, kind: Any, progress: list[float]) -> Episodes:
    n = len(progress)
    faults = np.array(["", "3:locked", "3:locked", "1:free 2:free"])[:n]
    columns = {
        "seed": np.arange(n), "faults": faults, "n_faults": np.array([0, 1, 1, 2])[:n],
        "progress_m": np.array(progress), "is_success": np.array(progress) > 3.0, "energy_j": np.full(n, 10.0),
        "episode_time_s": np.ones(n), "fault_size": np.full(n, np.nan),
    }  # fmt: skip
    return Episodes(name, kind, columns, np.zeros(0), np.zeros((0, n), np.float32), "")


def test_rows_are_read_as_they_were_written(tmp_path: Path) -> None:
    results = [made("cc", "classical", [4.0, 2.0, 3.0, 1.0]), made("ppo", "learned", [8.0, 2.5, 3.5, 1.5])]
    about = {
        "env_id": "A", "scenarios": "0123456789abcdef", "score": "progress_m", "version": "1",
        "policies": {"cc": "classical", "ppo": "learned"}, "trainings": {"ppo": ["seed_0"]},
    }  # fmt: skip
    (tmp_path / "x.csv").write_text(suites.rows_text(about, results))
    read_about, read = suites.read_suite(tmp_path / "x.csv")
    assert read_about == about
    for one, other in zip(results, read, strict=True):
        told = one.columns.keys() - {"fault_size"}
        assert all(other.columns[key].tolist() == one.columns[key].tolist() for key in told)
    section = suites.section(tmp_path / "x.csv")
    assert "Lead of ppo over cc: +1.38 [" in section
    assert "| cc | 2.50 [1.25, 3.50] | 25% [5%, 70%] | 4 |" in section
    assert "| ppo (1 seed) | 3.88 [" in section and " | 3 |" in section
    assert "| faults |" not in section, "too few for a table by their number"
    bounds = {"scenarios": about["scenarios"], "scores": {"oracle_now": [12.0, 3.0]}}  # ppo makes 8 and 2.5 there
    (tmp_path / "x_oracles.json").write_text(json.dumps(bounds))
    section = suites.section(tmp_path / "x.csv")
    assert "| 3 | 0.70 [" in section and "of oracle_now (7.50 in 2)" in section
    (tmp_path / "x_oracles.json").write_text(json.dumps({**bounds, "scenarios": "other"}))
    assert "(7.50 in 2)" not in suites.section(tmp_path / "x.csv"), "of other scenarios"


def test_learned_policies_that_do_not_play_keep_their_rows(tmp_path: Path) -> None:
    scenarios = make_scenarios(BenchmarkConfig(episodes=4, controllers=()))
    path = tmp_path / "x.csv"
    assert suites.kept_rows(path, scenarios, (), False) == ([], {})
    ppo = join_plays([made("ppo", "learned", [8.0, 2.5, 3.5, 1.5]), made("ppo", "learned", [7.0, 2.0, 3.0, 1.0])])
    was = [made("cc", "classical", [9.0] * 4), ppo, made("sac", "learned", [4.0] * 4)]
    about = {"env_id": "A", "score": "progress_m", "version": "1", "scenarios": scenarios.hash()}
    about["policies"] = {each.name: each.kind for each in was}
    about["trainings"] = {"ppo": ["seed_0", "seed_1"], "sac": ["seed_0"]}
    path.write_text(suites.rows_text(about, was))
    (kept,), labels = suites.kept_rows(path, scenarios, {"sac"}, False)
    assert labels == {"ppo": ["seed_0", "seed_1"]}
    assert kept.plays("progress_m").tolist() == ppo.plays("progress_m").tolist()
    assert [each.name for each in suites.kept_rows(path, scenarios, {"sac"}, True)[0]] == ["cc", "ppo"]
    path.write_text(suites.rows_text({**about, "scenarios": "other"}, was))
    assert suites.kept_rows(path, scenarios, (), False) == ([], {})


@pytest.mark.slow
def test_the_recipes_of_the_learned_rows_are_trainings_of_their_suite() -> None:
    """Each is planned as ``train`` would, in the task of the suite that its policy plays in."""
    from snake_gym.agents.config import read_settings

    recipes, rows_of = suites.LEARNED["recipes"], suites.LEARNED["suites"]
    assert {recipe for rows in rows_of.values() for recipe in rows.values()} == recipes.keys()
    for suite, rows in rows_of.items():
        for name in rows.values():
            file, *settings = recipes[name]
            config, _ = read_settings(suites.TRAININGS / f"{file}.yaml", settings)
            assert config.env_id == suites.suite_config(suite).env_id
            assert name.endswith("without_faults") == (config.env["faults"]["n_max"] == 0)
