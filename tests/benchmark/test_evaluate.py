"""``evaluate.py`` from the command line to the files it leaves."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from snake_gym.benchmark import evaluate
from snake_gym.benchmark.scenarios import named_policies
from snake_gym.config import ConfigError, dump_yaml
from tests.agents.runs import untrained

ROOT = Path(__file__).parents[2]


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    """A small benchmark of two classical controllers."""
    for kind in ("sjc", "cc"):
        gait = {"kind": kind, "amplitude_rad": 0.5, "frequency_rad_s": 4.0}
        dump_yaml({"controller": gait}, tmp_path / f"{kind}.yaml")
    config = {
        "episodes": 12,
        "controllers": [f"sjc={tmp_path}/sjc.yaml", f"cc={tmp_path}/cc.yaml"],
        "resamples": 200,
        "env": {"time_limit_s": 4.0, "faults": {"n_max": 2}},
    }
    dump_yaml(config, tmp_path / "small.yaml")
    return tmp_path / "small.yaml"


def run(*arguments: Any) -> int:
    return evaluate.main([str(argument) for argument in arguments])


def test_the_step_is_checked_where_asked_and_a_coarse_one_is_noted(settings: Path, tmp_path: Path) -> None:
    slippery = {"tangential_coulomb": 0.05, "normal_coulomb": 0.5, "tangential_ns_m": 0.0, "normal_ns_m": 0.0}
    shared = ("--config", settings, "--robot", tmp_path / "coulomb.yaml", "--no-pictures", "--out", tmp_path / "out")
    found = {}
    for step_s in (0.01, 0.00125):
        robot = {"preset": "resilient_servo", "friction": slippery, "sim_dt_s": step_s}
        dump_yaml(robot, tmp_path / "coulomb.yaml")
        assert run(*shared, "--check-step") == 0
        found[step_s] = json.loads((tmp_path / "out" / "results.json").read_text())
        check = found[step_s]["policies"]["cc"]["step_check"]
        assert (check["scenarios"], check["step_s"]) == (12, step_s / 2.0)
        assert check["mean"] == pytest.approx(found[step_s]["policies"]["cc"]["mean"])
    coarse, fine = (each["policies"]["cc"]["step_check"]["largest_difference_m"] for each in found.values())
    assert 0.0 < fine < coarse
    assert [len(each["notes"]) for each in found.values()] == [3, 2]  # that it is coarse, and each policy's check
    assert found[0.01]["notes"][0].startswith("robot.sim_dt_s is 0.01; without it, it would be 0.00")


@pytest.mark.slow
def test_policies_played_side_by_side_have_the_rows_of_one_process(settings: Path, tmp_path: Path) -> None:
    found = {}
    for name, words in (("alone", ()), ("jobs", ("--jobs", 2)), ("again", ("--jobs", 2, "--fresh"))):
        out = tmp_path / name
        assert run("--config", settings, "--no-pictures", "--out", out, *words) == 0
        found[name] = (out / "episodes.csv").read_bytes()
    assert found["alone"] == found["jobs"] == found["again"]
    (tmp_path / "cc.yaml").unlink()
    with pytest.raises(ConfigError, match=r"cc\.yaml does not exist"):
        run("--config", settings, "--no-pictures", "--out", tmp_path / "other", "--jobs", 2)
    with pytest.raises(ConfigError, match="--sweep does not go with --jobs"):
        run("--config", settings, "--sweep", "--ray", "local")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--set", "episode=3"], r"^episode is not a setting; did you mean 'episodes'"),
        (["--episodes", "0"], r"^episodes is 0; expected in \[1, "),
        (["--set", "env.faults.n_max=99"], r"^env.faults.n_max is 99; expected at most 9"),
        (["--set", "env.time_limit_s=0.3"], r"^env.time_limit_s is 0.3; expected a multiple"),
        (["--robot", "nope"], r"^robot is 'nope'; expected a preset"),
    ],
)
def test_what_is_wrong_on_the_command_line_does_not_name_the_file(
    words: list[str], message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The demo's policy, which is not there, does not come first either."""
    monkeypatch.setattr(evaluate, "DEMO", tmp_path / "demo.yaml")
    dump_yaml({"episodes": 2, "policies": {"ppo": str(tmp_path / "no_run")}}, tmp_path / "demo.yaml")
    with pytest.raises(ConfigError, match=message):
        run(*words, "--out", tmp_path / "out")
    with pytest.raises(ConfigError, match="no_run does not exist"):
        run("--out", tmp_path / "out")
    dump_yaml({"episode": 2}, tmp_path / "demo.yaml")
    with pytest.raises(ConfigError, match=r"demo.yaml: episode is not a setting"):
        run(*words, "--out", tmp_path / "out")


def test_a_comparison_leaves_its_files(settings: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "deep" / "results"
    assert run("--config", settings, "--out", out, "--json", tmp_path / "copy.json") == 0
    files = {path.name for path in out.iterdir()}
    assert files == {
        "config.yaml", "episodes.csv", "paired_scenarios.png", "performance_profiles.png", "policies",
        "progress_by_faults.png", "progress_over_time.png", "replay.gif", "replay.html", "results.json",
    }  # fmt: skip
    results = json.loads((out / "results.json").read_text())
    assert results == json.loads((tmp_path / "copy.json").read_text())
    assert set(results["policies"]) == {"sjc", "cc"}
    assert results["seeds"] == {"first": 1_000_000, "episodes": 12, "for": ["benchmarks"]}
    assert results["notes"] == []
    assert results["config"]["env"]["time_limit_s"] == 4.0
    assert results["policies"]["cc"]["controller"]["kind"] == "cc"
    assert results["policies"]["cc"]["controller"]["amplitude_rad"] == 0.5
    assert results["best_classical"] in ("sjc", "cc")
    assert results["ratio"] is None
    assert "numpy" in results["versions"]
    assert len((out / "episodes.csv").read_text().splitlines()) == 25
    assert (out / "replay.gif").stat().st_size < 2_000_000
    text = capsys.readouterr()
    assert "sjc" in text.out
    assert f"results, plots and replay.html are in {out}" in text.out
    assert "note:" not in text.out


def test_the_replay_shows_the_episodes_of_the_table(settings: Path, tmp_path: Path) -> None:
    run("--config", settings, "--out", tmp_path / "out")
    page = (tmp_path / "out" / "replay.html").read_text()
    data = json.loads(page.split('<script type="application/json" id="data">')[1].split("</script>")[0])
    rows = [line.split(",") for line in (tmp_path / "out" / "episodes.csv").read_text().splitlines()[1:]]
    table = {(row[0], round(float(row[6]) * 1000)) for row in rows}
    assert len(data["scenes"]) == 3
    for scene in data["scenes"]:
        for policy in scene["policies"]:
            assert (policy["name"], policy["progress_mm"][-1]) in table


def test_json_alone_goes_to_standard_output(settings: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--config", settings, "--out", tmp_path / "out", "--no-pictures", "--json", "-")
    assert run(*arguments, "--episodes", 5, "--seed", 40, "--set", "env.faults.n_max=0") == 0
    text = capsys.readouterr()
    results = json.loads(text.out)
    assert "sjc" in text.err
    assert results["seeds"] == {"first": 40, "episodes": 5, "for": ["training"]}
    assert "note: seeds 40 to 44 are among those of training" in text.err
    assert "seeds 40 to 44" in results["notes"][0]
    assert f"results are in {tmp_path / 'out'}" in text.err
    assert results["policies"]["cc"]["by_faults"].keys() == {"0"}
    assert not (tmp_path / "out" / "replay.html").exists()


def test_several_settings_follow_one_set_and_one_scenario_is_no_scenarios(
    settings: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assignments = ("--set", "episodes=1", "env.time_limit_s=2", "--set", "resamples=100")
    run("--config", settings, "--out", tmp_path / "out", "--no-pictures", *assignments)
    assert "1 scenario of 2 s, mean of each policy" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--controllers", "sjk"], "controller is 'sjk'.*did you mean 'sjc'"),
        (
            ["--robot", "resilient", "--controllers", "cc"],
            "no tuned parameters for robot resilient .*tune --controller cc --robot resilient "
            "--set env.faults.n_max=2 env.time_limit_s=4.0`",
        ),
        (["--controllers", "a=nowhere.yaml"], "nowhere.yaml does not exist"),
        (["--robot", "resiliant", "--controllers", "sjc"], "robot is 'resiliant'.*did you mean"),
        (["--set", "env.fauts.n_max=2"], "fauts is not a setting.*did you mean 'faults'"),
        (["--set", "env.observation.columns=[velocity]"], "velocity of .* no entries in .* needs SnakeGym/Velocity"),
        (["--set", "episodes=1e9"], "episodes is 1e\\+09; expected in \\[1, 100000\\]"),
        (["--policy", "a=x", "--policy", "a=y"], "two policies are called 'a'"),
        (["--json", "."], "--json is '.', a folder"),
        (["--policy", "=x"], "expected NAME=PATH"),
        (["--set", "policies={a: runs/none}"], "runs/none does not exist.* snake-gym train .*; --classical-only"),
        (["--policy", "ppo=runs/nowhere"], "runs/nowhere"),
    ],
)
def test_mistakes_are_named_in_one_line(settings: Path, tmp_path: Path, arguments: list[str], message: str) -> None:
    given = arguments if "--config" in arguments else ["--config", str(settings), *arguments]
    with pytest.raises(ConfigError, match=message) as caught:
        run(*given, "--out", tmp_path / "out", "--no-pictures")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An untrained policy on top of SJC, which does what SJC does."""
    action = {"kind": "residual", "controller": {"kind": "sjc", "amplitude_rad": 0.5, "frequency_rad_s": 4.0}}
    return untrained(tmp_path_factory.mktemp("run"), {"action": action}, still=True)


def test_a_learned_policy_plays_against_the_controllers(settings: Path, tmp_path: Path, learned: Path) -> None:
    run("--config", settings, "--policy", f"ppo={learned}", "--out", tmp_path / "out", "--json", tmp_path / "r.json")
    results = json.loads((tmp_path / "r.json").read_text())
    assert results["learned"] == "ppo"
    assert results["policies"]["ppo"]["kind"] == "learned"
    assert results["policies"]["ppo"]["mean"] == pytest.approx(results["policies"]["sjc"]["mean"], abs=0.02)
    best = results["policies"][results["best_classical"]]["mean"]
    assert results["ratio"] == pytest.approx(results["policies"]["ppo"]["mean"] / best)
    assert results["ratio_ci95"][0] <= results["ratio"] <= results["ratio_ci95"][1]
    assert "ppo" in (tmp_path / "out" / "replay.html").read_text()


SHIPPED = ROOT / "agents" / "pretrained" / "resilient_servo_locked_joints"


def test_a_policy_file_plays_without_any_learning_library(settings: Path, tmp_path: Path) -> None:
    program = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "stable_baselines3", "onnxruntime"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent())
from snake_gym.benchmark import evaluate
sys.exit(evaluate.main(sys.argv[1:]))
"""
    arguments = ["--config", settings, "--policy", f"ppo={SHIPPED}", "--out", tmp_path / "out", "--episodes", 4]
    command = [sys.executable, "-c", program, *map(str, arguments), "--no-pictures", "--set", "env.time_limit_s=8"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert results["policies"]["ppo"]["kind"] == "learned"
    assert results["policies"]["ppo"]["mean"] > results["policies"]["sjc"]["mean"] > 0.0


def test_a_policy_file_of_another_robot_or_a_damaged_one_is_refused(settings: Path, tmp_path: Path) -> None:
    robot = "{preset: resilient_servo, n_links: 6}"
    with pytest.raises(ConfigError, match=r"policy ppo has .* observations.*another robot"):
        run("--config", settings, "--policy", f"ppo={SHIPPED}", "--controllers", "none", "--set", f"robot={robot}",
            "--out", tmp_path / "out")  # fmt: skip
    (tmp_path / "policy.json").write_text((SHIPPED / "policy.json").read_text())
    with pytest.raises(ConfigError, match=r"policy\.safetensors cannot be read: No such file"):
        run("--config", settings, "--policy", f"ppo={tmp_path}", "--out", tmp_path / "out")


def test_a_folder_that_cannot_be_made_is_found_before_playing(settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("snake_gym.benchmark.comparison.play_all", lambda *_: pytest.fail("played"))
    with pytest.raises(ConfigError, match="/proc/no cannot be written to"):
        run("--config", settings, "--out", "/proc/no", "--no-pictures")


def test_two_policies_of_one_name_are_refused(settings: Path, tmp_path: Path) -> None:
    twice = f"sjc={tmp_path}/sjc.yaml,sjc={tmp_path}/cc.yaml"
    with pytest.raises(ConfigError, match="two policies are called 'sjc'"):
        run("--config", settings, "--controllers", twice, "--out", tmp_path / "out")


def test_a_mistake_ends_with_code_2_and_without_a_traceback(tmp_path: Path) -> None:
    command = [sys.executable, "evaluate.py", "--set", "env.fauts=1", "--out", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert "fauts" in done.stderr


def test_a_policy_without_a_name_is_called_after_its_path() -> None:
    given = ["runs/mine", "runs/a/best.zip", "x=runs/a=b"]
    assert named_policies(given) == {"mine": "runs/mine", "best": "runs/a/best.zip", "x": "runs/a=b"}
