"""Pictures of the pages, made by hand: python docs/site/pictures.py faults | gaits | evaluation | tensorboard

``faults`` and ``gaits`` play short episodes, the others show what these commands leave:

    snake-gym evaluate --policy ppo=resilient_servo_locked_joints --controllers fault_aware,cc,cpg,sjc --episodes 256 \\
        --out runs/picture
    snake-gym train --config configs/train/ppo.yaml --run-dir runs/mine --set total_steps=1_500_000

``tensorboard`` needs chromium. The SVG files are drawn by hand.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("MUJOCO_GL", "egl")

import gymnasium as gym
import matplotlib
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

import snake_gym  # noqa: F401
from snake_gym.render.palette import BLUE, GRID, INK, MUTED, ORANGE, VERMILION

matplotlib.use("Agg")
import matplotlib.pyplot as plt

IMAGES = Path(__file__).parents[1] / "images"
ROOT = Path(__file__).parents[2]
COLOURS = 64
"""Colours of a saved PNG."""
ONSET_S, END_S, JOINT = 3.99, 12.0, 5
"""Onset of the shown fault, end of the panel [s], and the joint that fails."""
FAULTS: dict[str, dict[str, Any]] = {
    "healthy": {}, "locked": {}, "free": {}, "weak": {"strength": 0.03}, "slow": {"strength": 0.1},
    "offset": {"offset_rad": 0.4}, "slipped": {"offset_rad": 0.6}, "rough": {"strength": 0.9}, "loose": {},
    "overload": {"strength": 0.05}, "misread": {}, "silent": {},
}  # fmt: skip
"""Settings of each panel's fault."""
GAITS = {
    "CL": "creeping", "TWL": "travelling wave", "SWL": "side winding", "ARL": "arc rolling", "SRL": "spiral rolling"
}  # fmt: skip


def save(image: Image.Image, name: str) -> None:
    """Write a small PNG."""
    image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(IMAGES / name, optimize=True)
    print(IMAGES / name, (IMAGES / name).stat().st_size // 1000, "kB")


def joint_trace(kind: str, settings: dict[str, Any]) -> NDArray[np.float64]:
    """Return time, reference, angle and reading (T, 4) [s, rad] of a joint of a crawling robot with a fault."""
    from snake_gym.robot.presets import RESILIENT_SERVO

    events = [] if kind == "healthy" else [{"joint": JOINT, "kind": kind, "onset_s": ONSET_S, **settings}]
    robot = replace(RESILIENT_SERVO, control_dt_s=0.05)
    course = {"kind": "list", "targets": [[90.0, 0.0]]}
    faults = {"events": events} if events else {"n_max": 0}
    env = gym.make("SnakeGym/Waypoints-v0", robot=robot, start={"random": False}, course=course, faults=faults)
    env.reset(seed=1)
    core, rows = env.unwrapped.core, []  # type: ignore[attr-defined]
    for step in range(int(END_S / robot.control_dt_s)):
        wave = 0.6 * np.sin(2.0 * robot.control_dt_s * step + 0.9 * np.arange(9))
        env.step((wave / robot.joint_limit_rad).astype(np.float32))
        angles = (core.reference, core.robot.joint_angle(), core.measurement.joint_angle)
        rows.append([step * robot.control_dt_s, *(float(each[0, JOINT - 1]) for each in angles)])
    return np.array(rows)


def draw_faults() -> None:
    """Draw each kind of fault as a joint's reference, angle and reading over time."""
    plt.rcParams.update({"font.size": 8, "axes.edgecolor": MUTED, "xtick.color": MUTED, "ytick.color": MUTED})
    figure, axes = plt.subplots(3, 4, figsize=(9.6, 5.2), sharex=True, sharey=True, dpi=110)
    for axis, (kind, settings) in zip(axes.flat, FAULTS.items(), strict=True):
        time, reference, angle, reading = joint_trace(kind, settings).T
        if kind != "healthy":
            axis.axvspan(ONSET_S, END_S, color=VERMILION, alpha=0.08, lw=0)
        axis.plot(time, reference, color=ORANGE, lw=1.0, label="reference")
        axis.plot(time, angle, color=BLUE, lw=1.6, label="angle")
        axis.plot(time, reading, color=INK, lw=1.0, ls=(0, (2, 2)), label="encoder's reading")
        axis.set_title(kind, fontsize=9, color=INK, loc="left", pad=2)
        axis.set(xlim=(2.0, END_S), ylim=(-1.35, 1.35))
        axis.grid(color=GRID)
    for axis in axes[-1]:
        axis.set_xlabel("time [s]")
    for axis in axes[:, 0]:
        axis.set_ylabel("joint 5 [rad]")
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper right", ncols=3, frameon=False, fontsize=8)
    figure.tight_layout(rect=(0, 0, 1, 0.95))
    figure.canvas.draw()
    save(Image.fromarray(np.asarray(figure.canvas.buffer_rgba())[..., :3]), "fault_kinds.png")  # type: ignore[attr-defined]


def gait_frames(mode: str, size: tuple[int, int]) -> list[Image.Image]:
    """Return a gait at three moments, a third of a period apart."""
    from snake_gym.spatial.frames import SpatialView

    on_pole = mode == "SRL"
    robot = ROOT / "configs/robot/spatial/snake_robot_iii.yaml"
    gait = {"kind": "multimodal", "mode": mode, "frequency_rad_s": 2.0}
    env = gym.make(
        f"SnakeGym/{'Climb' if on_pole else 'SpatialWaypoints'}-v0", start={"random": False}, faults={"n_max": 0},
        **({} if on_pole else {"robot": str(robot), "action": {"kind": "residual", "controller": gait}}),
    )  # fmt: skip
    env.reset(seed=1)
    core, frames = env.unwrapped.core, []  # type: ignore[attr-defined]
    view = SpatialView(core, 0)
    view._camera.azimuth, view._camera.elevation = 75.0, -24.0
    view._camera.distance = 1.8 if on_pole else 0.85 * core.spec.length_m
    for step in range(51):
        env.step(np.zeros(env.action_space.shape, np.float32))  # type: ignore[arg-type]
        if step in (40, 45, 50):
            frames.append(Image.fromarray(view.draw()).resize(size))  # type: ignore[arg-type]
    return frames


def draw_gaits() -> None:
    """Draw five gaits, one in each row."""
    width, height = 300, 124
    sheet = Image.new("RGB", (3 * width + 8, 5 * (height + 4)), "white")
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(15)
    for row, (mode, name) in enumerate(GAITS.items()):
        for column, frame in enumerate(gait_frames(mode, (width, height))):
            sheet.paste(frame, (column * (width + 4), row * (height + 4)))
        pen.text((8, row * (height + 4) + 6), f"{mode}  {name}", fill=INK, font=font)
    save(sheet, "gaits.png")


def draw_evaluation(folder: Path = Path("runs/picture")) -> None:
    """Put two plots of an evaluation next to each other."""
    plots = [Image.open(folder / f"{name}.png") for name in ("progress_by_faults", "paired_scenarios")]
    height = 330
    plots = [plot.resize((plot.width * height // plot.height, height), Image.Resampling.LANCZOS) for plot in plots]
    sheet = Image.new("RGB", (sum(plot.width for plot in plots), height), "white")
    for i, plot in enumerate(plots):
        sheet.paste(plot, (sum(each.width for each in plots[:i]), 0))
    save(sheet, "evaluation.png")


def draw_tensorboard(runs: str = "runs", port: int = 6123) -> None:
    """Draw TensorBoard's scalars of evaluations."""
    page = f"http://127.0.0.1:{port}/?darkMode=false#scalars&tagFilter=eval%2Fprogress&_smoothingWeight=0&_ignoreYOutliers=false"
    file = "/tmp/tensorboard.png"
    board = [sys.executable, "-m", "tensorboard.main", "--logdir", runs, "--host", "127.0.0.1", "--port", str(port)]
    with subprocess.Popen(board) as server:
        time.sleep(15.0)
        browser = ["chromium", "--headless", "--no-sandbox", "--hide-scrollbars", "--virtual-time-budget=90000"]
        subprocess.run([*browser, "--window-size=1280,860", f"--screenshot={file}", page], check=True)
        server.terminate()
    save(Image.open(file).crop((0, 0, 1040, 745)), "tensorboard.png")


if __name__ == "__main__":
    drawn = {"faults": draw_faults, "gaits": draw_gaits, "evaluation": draw_evaluation, "tensorboard": draw_tensorboard}
    for name in sys.argv[1:]:
        drawn[name]()
