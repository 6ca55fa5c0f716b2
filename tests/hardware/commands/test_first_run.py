"""The first run of docs/hardware.md on an emulated robot in another process, command by command."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest

from snake_gym.config import build, load_yaml
from snake_gym.hardware.__main__ import main
from snake_gym.hardware.calibration.calibration import load_calibration
from snake_gym.hardware.pose.april_tags import load_camera
from snake_gym.hardware.robot.connection import make_pose
from snake_gym.hardware.robot.record import read_record
from snake_gym.hardware.robot.run_config import RunConfig, robot_of
from snake_gym.robot.catalogue import load_robot
from tests.hardware.programs import EmulatorProcess, emulator, launch, press

ROOT = Path(__file__).parents[3]
POSE_PORT = 47917


def printed_commands() -> list[list[str]]:
    """Arguments of the commands that the page prints for an emulated robot."""
    text = (ROOT / "docs" / "hardware.md").read_text()
    text = text[text.index("## Without a robot") : text.index("## Parts")]
    blocks = "\n".join(re.findall(r"^```\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    return [shlex.split(line)[3:] for line in blocks.splitlines() if line.startswith("python -m snake_gym.hardware ")]


def converse(command: subprocess.Popen[str], robot: EmulatorProcess) -> None:
    """Answer what calibrate asks at the end of a line by what the robot says it did."""
    assert command.stdin is not None and command.stdout is not None
    said = ""
    while letter := command.stdout.read(1):
        said += letter
        if said.endswith(("Enter: ", "higher (u)? ")):
            answer = ""
            if asked := re.findall(r"(joint \d+) \(servo", said):
                told = robot.wait_for(re.compile(rf"{asked[-1]} bends").match, 60.0)
                answer = "r" if "right" in told else "l"
            press(command, answer + "\n")
            said = ""
    command.stdin.close()
    command.stdout.close()
    assert command.wait(20) == 0, said


@pytest.mark.slow
def test_the_commands_of_the_page_work_as_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = printed_commands()
    assert [words[0] for words in commands] == ["emulate", "scan", "wiggle", "calibrate", "run", "replay", "run"]

    def adapted(words: list[str]) -> list[str]:
        """Its own port, files and stop, so that it can run beside others, and runs of a few seconds."""
        places = {"/tmp/snake-bus": str(tmp_path / "bus")}
        places |= {name: str(tmp_path / name) for name in ("snake.json", "run.jsonl", "found.yaml")}
        found = [places.get(word, word) for word in words]
        if words[0] in ("wiggle", "calibrate", "run"):
            found += ["--latch", str(tmp_path / "estop")]
        if words[0] == "run":
            found += ["--time", "8"]
            found += ["--set", f"connection.pose.udp_port={POSE_PORT}", "--set", "safety.lost_after_s=5"]
            found += [] if "--log" in words else ["--log", "none"]
        return found

    monkeypatch.chdir(ROOT)
    assert commands[0] == ["emulate", "--link", "/tmp/snake-bus", *commands[0][3:]]
    with emulator(tmp_path / "bus", *commands[0][3:], "--pose-port", str(POSE_PORT)) as robot:
        for words in commands[1:]:
            if words[0] == "calibrate":
                robot.joint_angles_deg()  # what it has said of the wiggle is heard
                converse(launch(*adapted(words)), robot)
                continue
            assert main(adapted(words)) == 0, (words, capsys.readouterr().out)
        out = capsys.readouterr().out
        robot.process.send_signal(signal.SIGTERM)
        assert robot.process.wait(20) == 0
    assert not os.path.lexists(tmp_path / "bus")
    told = [line.split() for line in robot.said if re.match(r"\s+\d+\s+\d+\s+[+-]1", line)]
    calibration = load_calibration(tmp_path / "snake.json")
    assert calibration.direction.tolist() == [int(row[2]) for row in told]
    record = read_record(tmp_path / "run.jsonl")
    assert record.pose_valid.mean() > 0.9
    assert record.end is not None and record.end["progress_m"] > 0.2
    assert out.count("progress") >= 2
    found, nominal = load_robot(tmp_path / "found.yaml"), record.spec
    np.testing.assert_allclose(found.friction.normal_ns_m, nominal.friction.normal_ns_m, rtol=0.2)
    np.testing.assert_allclose(found.actuator.kp, nominal.actuator.kp, rtol=0.2)


def test_the_example_settings_are_valid() -> None:
    for path in (ROOT / "configs" / "hardware").glob("*.yaml"):
        if path.name == "camera.yaml":
            assert len(load_camera(path).floor) == 4
            continue
        config = build(RunConfig, load_yaml(path), str(path))
        spec = robot_of(config)
        assert spec.n_links == (29 if path.stem == "snake_robot_iii" else 10)
        if config.connection.pose.kind == "april_tags":
            make_pose(config.connection, spec).close()


def test_the_tags_of_the_example_are_printed_and_read_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import cv2

    config = str(ROOT / "configs" / "hardware" / "camera.yaml")
    assert main(["camera", config, "--print-tags", str(tmp_path)]) == 0
    assert sorted(path.name for path in tmp_path.glob("*.png")) == [f"tag{k}.png" for k in range(5)]
    sheet = np.full((720, 1280), 255, np.uint8)
    for k in range(5):
        tag = cv2.resize(cv2.imread(str(tmp_path / f"tag{k}.png"), cv2.IMREAD_GRAYSCALE), (150, 150))
        sheet[100:250, 60 + 200 * k : 210 + 200 * k] = tag
    cv2.imwrite(str(tmp_path / "00.jpg"), sheet)
    assert main(["camera", config, "--file", str(tmp_path / "%02d.jpg"), "--seconds", "3"]) in (0, 1)
    assert "pictures with a pose" in capsys.readouterr().out
