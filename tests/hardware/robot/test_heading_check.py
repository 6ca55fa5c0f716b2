"""A robot that was calibrated from the wrong end: its head turns against its joints."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from snake_gym.config import build
from snake_gym.hardware.robot.heading_check import HeadingCheck
from snake_gym.hardware.robot.run_config import RunConfig, open_loop, plan_run


def test_a_mirrored_robot_is_noticed_and_no_other(tmp_path: Path) -> None:
    noisy = {"pose_delay_s": 0.05, "position_noise_m": 0.003, "heading_noise_rad": 0.01}
    told = {"policy": "cc", "course": {"targets": [[50.0, 5.0]]}}
    config = build(RunConfig, {**told, "connection": {"latch": str(tmp_path / "estop"), "emulated": noisy}})
    plan = plan_run(config)
    loop, connected = open_loop(plan.contract, config)
    checks = {name: HeadingCheck(loop.spec) for name in ("right", "mirrored", "still", "blind")}
    warnings: dict[str, list[str | None]] = {name: [] for name in checks}
    loop.reset()
    for _ in range(round(8.0 / loop.spec.control_dt_s)):
        record = loop.step(np.zeros(loop.decoder.size))
        body, pose = record.body, record.pose
        mirrored = body._replace(joint_angle=-body.joint_angle)
        still = body._replace(joint_angle=0.0 * body.joint_angle)
        seen = {"right": (body, pose), "mirrored": (mirrored, pose), "still": (still, pose)}
        seen["blind"] = mirrored, pose._replace(valid=False)
        for name, (sample, where) in seen.items():
            warnings[name].append(checks[name].look(sample, where))
    connected.close()
    spoken = {name: [line for line in lines if line] for name, lines in warnings.items()}
    assert {name: len(lines) for name, lines in spoken.items()} == {"right": 0, "mirrored": 1, "still": 0, "blind": 0}
    assert "against its joints" in spoken["mirrored"][0]
