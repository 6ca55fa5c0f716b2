"""What is reported: the right numbers, undefined ones as null, and typical scenarios."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from snake_gym.benchmark.pictures import typical_scenarios
from snake_gym.benchmark.report import summarise, tables, verdicts
from snake_gym.benchmark.runner import Episodes
from snake_gym.benchmark.scenarios import EntrantKind

ROOT = Path(__file__).parents[2]
N = 40


def episodes(name: str, kind: EntrantKind = "classical", mean: float = 1.0, n: int = N, **columns: Any) -> Episodes:
    rng = np.random.default_rng(len(name))
    faults = np.arange(n) % 4
    progress = mean * (4.0 - faults) / 2.5 + rng.normal(0, 0.05, n)
    defaults = {
        "seed": np.arange(n),
        "faults": np.array([" ".join(f"{joint + 1}:locked" for joint in range(count)) for count in faults]),
        "n_faults": faults,
        "n_failed_joints": faults,
        "progress_m": progress,
        "targets_reached": np.floor(np.maximum(progress, 0)).astype(int),
        "time_to_first_target_s": np.where(progress > 1.0, 10.0, np.inf),
        "last_target_time_s": np.where(progress > 1.0, 20.0, np.inf),
        "is_success": progress > 2.0,
        "energy_j": np.full(n, 50.0),
        "episode_time_s": np.full(n, 60.0),
        "return": progress * 10.0,
    }
    return Episodes(name, kind, {**defaults, **columns}, np.array([0.0, 60.0]), np.zeros((2, n), np.float32), "same")


def test_means_by_hand() -> None:
    progress = np.array([1.0, 2.0, 3.0, 6.0])
    first = np.array([10.0, np.inf, 20.0, 30.0])
    one = episodes(
        "one", n=4, progress_m=progress, n_faults=np.array([0, 0, 2, 2]), time_to_first_target_s=first,
        targets_reached=np.array([1, 0, 1, 2]), is_success=np.array([False, False, False, True]),
        stood_still=np.array([0.0, 3.0, 0.0, 1.0]), penetration_m=np.array([1e-4, 0.0, 3e-4, 2e-4]),
        n_changes=np.array([0, 2, 1, 1]), change_loss_m=np.array([0.0, 0.3, -0.1, 0.2]),
    )  # fmt: skip
    policy = summarise([one], 500)["policies"]["one"]
    expected = {
        "mean": 3.0, "episodes": 4, "targets": 1.0, "success": 0.25, "energy_j": 50.0, "stood_still": 1.0,
        "penetration_m": 3e-4,  # the deepest of all
        "time_to_target_s": 30.0,  # the one that never got there counts with its 60 s
    }  # fmt: skip
    assert {name: policy[name] for name in expected} == expected
    assert policy["energy_j_per_m"] == pytest.approx(200.0 / 12.0)
    assert policy["loss_per_change_m"] == pytest.approx(0.4 / 4.0)
    groups = {count: (group["mean"], group["episodes"]) for count, group in policy["by_faults"].items()}
    assert groups == {"0": (1.5, 2), "2": (4.5, 2)}
    low, high = policy["ci95"]
    assert 1.0 <= low < 3.0 < high <= 6.0


def test_the_ratio_is_of_each_learned_policy_to_the_best_classical_one() -> None:
    learned, strong = episodes("ppo", "learned", 3.0), episodes("strong", mean=2.0)
    summary = summarise([episodes("weak"), learned, strong, episodes("sac", "learned", 8.0)], 500)
    assert summary["best_classical"] == "strong"
    means = {name: policy["mean"] for name, policy in summary["policies"].items()}
    ppo = summary["policies"]["ppo"]
    assert ppo["ratio"] == pytest.approx(means["ppo"] / means["strong"])
    low, high = ppo["ratio_ci95"]
    assert low < ppo["ratio"] < high < low + 0.1
    assert ppo["ahead"] == 1.0
    assert summary["policies"]["sac"]["ratio"] == pytest.approx(means["sac"] / means["strong"])
    assert "ratio" not in summary["policies"]["weak"]
    assert "ppo makes 1.49 [1.4" in verdicts(summary)[0]
    ratio = means["sac"] / means["strong"]
    assert [text.split(" [")[0] for text in verdicts(summary)] == ["ppo makes 1.49", f"sac makes {ratio:.2f}"]


def test_policies_are_compared_by_how_often_they_get_through() -> None:
    def crossing(name: str, kind: EntrantKind, *reached: bool) -> Episodes:
        there = np.array(reached)
        made = episodes(
            name, kind, n=4, progress_m=np.where(there, 4.0, 1.0), is_success=there, faults=np.array([""] * 4),
            n_faults=np.zeros(4, int), episode_time_s=np.where(there, 20.0, 60.0), route_m=np.full(4, 4.0),
            time_to_goal_s=np.where(there, 20.0, np.inf), contact_time_s=np.full(4, 6.0),
            contact_impulse_ns=np.full(4, 30.0),
        )  # fmt: skip
        return dataclasses.replace(made, score="is_success")

    ppo, sjc = crossing("ppo", "learned", True, True, True, False), crossing("sjc", "classical", True, *[False] * 3)
    summary = summarise([ppo, sjc, crossing("cc", "classical", True, True, False, False)], 200)
    found = summary["policies"]["ppo"]
    assert summary["best_classical"] == "cc"
    wanted = {"success": 0.75, "mean": 3.25, "time_to_goal_s": 30, "ratio": 1.5, "ahead": 0.25}
    assert {key: found[key] for key in wanted} == wanted
    shares = [found[key] for key in ("route_share", "contact_share", "contact_force_n")]
    assert shares == pytest.approx([3.25 / 4.0, 24.0 / 120.0, 120.0 / 120.0])
    assert "ppo makes 1.50" in verdicts(summary)[0]
    heads = [str(column.header) for column in tables(summary, "title")[0].columns]
    assert heads[:3] == ["policy", "success (95 %)", "progress [m] (95 %)"] and "goal at\n[s]" in heads


@pytest.mark.parametrize(
    "results",
    [
        [episodes("a"), episodes("b")],
        [episodes("ppo", "learned")],
        [episodes("ppo", "learned"), episodes("backwards", mean=-1.0)],
    ],
)
def test_without_a_rival_there_is_no_ratio(results: list[Episodes]) -> None:
    summary = summarise(results, 200)
    assert all(policy.get("ratio") is policy.get("ratio_ci95") is None for policy in summary["policies"].values())
    assert verdicts(summary) == []
    json.dumps(summary, allow_nan=False)


def test_scores_over_oracles_and_the_healthy_tax_by_hand() -> None:
    faults, good = np.array([0, 0, 3, 4]), np.array([8.0, 12.0, 6.0, 4.0])
    rows = [
        episodes("ppo", "learned", n=4, n_faults=faults, progress_m=good * [0.9, 0.8, 0.5, 0.5]),
        episodes("specialist", "learned", n=4, n_faults=faults, progress_m=good),
        episodes("oracle_now", "oracle", n=4, n_faults=faults, progress_m=good),
    ]  # fmt: skip
    ppo = summarise(rows, 200, ["specialist"])["policies"]["ppo"]
    of, tax = ppo["of_oracle_now"], ppo["against"]["specialist"]
    assert (of["share"], of["severe"], tax["healthy_tax"]) == pytest.approx((21.8 / 30.0, 0.5, 1.0 - 16.8 / 20.0))
    assert of["severe_ci95"] == pytest.approx([0.5, 0.5]), "pairs: each makes half"
    assert tax["healthy_tax_ci95"] == pytest.approx([0.1, 0.2], abs=0.001)
    assert "of_oracle_now" not in summarise(rows[:1], 200)["policies"]["ppo"]


def failing(faults: list[str], progress: list[float]) -> Episodes:
    counts = np.array([len(each.split()) for each in faults])
    return episodes("cc", n=len(faults), faults=np.array(faults), n_faults=counts, progress_m=np.array(progress))


def test_groups_of_episodes_by_hand() -> None:
    faults = ["", "", "3:locked", "4:free", "3:free 4:free", "1:locked 2:free", "3:locked 5:locked"]
    policy = summarise([failing(faults, [8.0, 12.0, 9.0, 5.0, 3.0, 2.0, 4.0])], 200)["policies"]["cc"]
    groups = {by: {key: of["score"] for key, of in policy[by].items()} for by in ("by_kind", "by_joint")}
    assert groups == {"by_kind": {"free": 4.0, "locked": 6.5}, "by_joint": {"3": 9.0, "4": 5.0}}
    one = failing(["1:weak", "2:weak", "3:slipped", ""], [1.0, 2.0, 3.0, 4.0])
    one.columns["fault_size"] = np.array([0.95, 0.3, 0.2, np.nan])  # 5 and 70 % of the torque lost, 11 degrees
    by_size = summarise([one], 200)["policies"]["cc"]["by_size"]
    expected = {"weak 00-20 %": 1.0, "weak 60-80 %": 2.0, "slipped 10-20 deg": 3.0}
    assert {key: of["score"] for key, of in by_size.items()} == expected


def test_the_documentation_has_every_number_of_the_json() -> None:
    summary = summarise([episodes("ppo", "learned", 2.0), episodes("sjc")], 200)
    again = json.loads(json.dumps(summary, allow_nan=False))
    page = (ROOT / "docs" / "comparing.md").read_text()
    for policy in again["policies"].values():
        assert [key for key in policy if not key.endswith("ci95") and f"`{key}`" not in page] == ["kind"]
        assert policy["by_faults"].keys() == {"0", "1", "2", "3"}
        assert sum(group["episodes"] for group in policy["by_faults"].values()) == policy["episodes"] == N


def test_the_tables_fit_a_terminal_and_hold_every_policy() -> None:
    console = Console(width=80, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    results = [episodes("ppo", "learned", 30.0), episodes("sjc", mean=12.0), episodes("cc"), episodes("cp[g]", mean=-1)]
    for table in tables(summarise(results, 200), "a title"):
        console.print(table)
    text = console.export_text()
    console.file.close()
    assert "…" not in text
    for name in ("ppo", "sjc", "cc", "cp[g]", "progress [m] (95 %)", "J/m", "episodes"):
        assert name in text
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 80


def test_typical_scenarios_are_near_the_medians() -> None:
    pair = [episodes("ppo", "learned", 3.0), episodes("sjc")]
    worlds = typical_scenarios(pair, 4)
    assert [int(pair[0].columns["n_faults"][world]) for world in worlds] == [0, 1, 2, 3]
    for world in worlds:
        for one in pair:
            group = one.columns["progress_m"][one.columns["n_faults"] == one.columns["n_faults"][world]]
            assert abs(one.columns["progress_m"][world] - np.median(group)) <= 1.5 * group.std()
    assert [int(pair[0].columns["n_faults"][world]) for world in typical_scenarios(pair, 2)] == [0, 3]
