"""What is refused in this room, each in one line that names what was given."""

from __future__ import annotations

from pathlib import Path

import pytest

from snake_gym.benchmark import evaluate, tune
from snake_gym.config import ConfigError, dump_yaml

CC = ["--classical-only", "--controllers", "cc", "--episodes", "2"]
SJC = ["--robot", "resilient_servo", "--controller", "sjc"]
SHIPPED = str(Path(__file__).parents[2] / "agents" / "pretrained" / "resilient_servo_locked_joints")


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["--set", "env.faults.n_max=99"], r"^env.faults.n_max is 99; expected at most 9"),
        (["--set", "references=[pp0]"], r"references is 'pp0'; expected one of cc"),
        (["--set", "policies={a: runs/none}"], r"runs/none does not exist.* snake-gym train"),
        (["--robot", "resilient"], r"no tuned parameters for robot resilient .*tune --controller cc --robot resilient"),
        (["--set", "env_id=SnakeGym/SpatialWaypoints-v0", "robot={chain: spatial}"], r"tune is for planar robots"),
        (["--policy", "a=x", "--policy", "a=y"], r"two policies are called 'a'"),
        (["--policy", f"ppo={SHIPPED}", "--robot", "six.yaml"], r"policy ppo has .* observations.*another robot"),
        (["--policy", "ppo=half"], r"policy\.safetensors cannot be read: No such file"),
        (["--out", "/proc/no"], r"/proc/no cannot be written to"),
        (["--freeze", "--episodes", "2"], r"--freeze does not go with --classical-only"),
        (["--seed", str(2**31)], r"seed \+ episodes"),
        (["--replay", "none"], r"none/results.json does not exist; expected the folder"),
        (["--replay", "none", "--seed", "3"], r"--replay does not go with --"),
    ],
)
def test_evaluate(words: list[str], fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    dump_yaml({"preset": "resilient_servo", "n_links": 6}, "six.yaml")
    Path("half").mkdir()
    (Path("half") / "policy.json").write_text((Path(SHIPPED) / "policy.json").read_text())
    monkeypatch.setattr("snake_gym.benchmark.comparison.play_all", lambda *_: pytest.fail("played"))
    with pytest.raises(ConfigError, match=fault) as caught:
        evaluate.main([*([] if "--replay" in words else [*CC, "--no-pictures"]), *words])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        ([*SJC, "--robot", "robot.yaml"], r"robot\.yaml: name is .*; expected letters, digits"),
        ([*SJC, "--out", "/proc/no/x.yaml"], r"/proc/no cannot be written to"),
        ([*SJC, "--out", "robot.yaml"], r"robot\.yaml exists already; give --overwrite"),
        ([*SJC, "--seeds", "0,2000"], r"seed is 2000; expected <= 1999"),
        ([*SJC, "--worlds", "20"], r"worlds is 20; expected a multiple of population 32, such as 32"),
        ([*SJC, "--budget", "400001"], r"too many for the seeds"),
    ],
)
def test_tune(words: list[str], fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    dump_yaml({"preset": "resilient_servo", "name": "../../x"}, "robot.yaml")
    with pytest.raises(ConfigError, match=fault):
        tune.main(words)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["robot.yaml"]
