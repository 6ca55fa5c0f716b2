"""A horn slips on its servo's shaft in mid-run: how soon it is found, what it costs, and a film of it.

    python -m examples.slipping_horn --film docs/images/slipping_horn.gif        # in real time, a minute and a half
    python -m examples.slipping_horn --joints 1 2 3 4 5 6 7 8 9 --port memory

A policy goes straight on, through driver, guard and emulated servos, first without ``action.estimator``, then with it.
Behind the servos is the robot in MuJoCo of benchmarks/mujoco_servos.py. At ``--at`` seconds one of its links turns on
its shaft by ``--deg``: the servo is healthy, and reads its shaft, not the link. The film shows the robot in MuJoCo, and
in orange the links where the policy takes them to be.
"""

from __future__ import annotations

import argparse
import io
import math
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from benchmarks.mujoco_servos import MujocoRobot
from snake_gym.__main__ import main as snake_gym
from snake_gym.config import build
from snake_gym.hardware.robot.run_config import RunConfig, open_loop, plan_run
from snake_gym.interface.policy_file import find_policy_file
from snake_gym.physics.faults import SLIPPED
from snake_gym.render.frames import FrameRenderer, Picture, ends_of
from snake_gym.render.palette import ORANGE
from snake_gym.robot.measurement import centre_offset, chain_angles

SLIP_S = 0.5
"""Time that the slip takes [s]."""
TARGET = (100.0, 0.0)
"""Straight on [m]."""
FRAME_S, SHOWN_S, LEAD_S, SIZE = 0.2, 0.14, 4.0, (340, 230)
"""Time between two frames of the film, how long each is shown, its time before the slip, and a run's size [pixel]."""


class SlippingRobot(MujocoRobot):
    """The robot in MuJoCo, with horns that slip: ``joint_angle`` is that of shafts, ``link_joint_angle`` of links."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.slip_rad, self.slip_end_rad = np.zeros((2, self.spec.n_joints))
        """Slip now, and when it is over (J,) [rad]."""
        self._slip_rad_s = 0.0

    def slip(self, joint: int, angle_rad: float) -> None:
        """Let the horn of ``joint`` (from 0) slip by ``angle_rad`` within ``SLIP_S``."""
        self.slip_end_rad[joint], self._slip_rad_s = angle_rad, abs(angle_rad) / SLIP_S

    def advance(self, dt_s: float, target_rad: Any, *limits: Any) -> None:
        most = self._slip_rad_s * dt_s
        self.slip_rad += np.clip(self.slip_end_rad - self.slip_rad, -most, most)
        super().advance(dt_s, target_rad + self.slip_rad, *limits)

    def joint_angle(self) -> Any:
        return super().joint_angle() - self.slip_rad

    def link_joint_angle(self) -> Any:
        """Return the angles between the links (J,) [rad]."""
        return np.array(self.data.qpos[self._at] + self.data.qpos[self._slack])


class Run(NamedTuple):
    """What happened in T control steps."""

    name: str
    spec: Any
    time_s: Any
    """(T,) [s]."""
    angle: Any
    """(T, J) [rad] of the joints between the links."""
    taken: Any
    """(T, J) [rad] of the joints as the policy takes them to be."""
    undone: Any
    """(T, J) [rad] slips and offsets that the estimator undoes."""
    slip: Any
    """(T, J) [rad] true slips."""
    head: Any
    """(T, 3) place [m] and direction [rad] of the head."""

    def way(self) -> Any:
        """Return the way of the centre towards the target (T,) [m]."""
        point = self.head[:, :2] + centre_offset(self.spec, chain_angles(self.angle, self.head[:, 2]))
        far = np.linalg.norm(np.array(TARGET) - point, axis=1)
        return far[0] - far


def play(policy: str, name: str, joint: int, options: argparse.Namespace) -> Run:
    """Play a policy while the horn of ``joint`` (from 0) slips."""
    with tempfile.TemporaryDirectory() as folder:
        emulated = {"plant": "examples.slipping_horn:SlippingRobot"}
        connection = {"port": options.port, "latch": f"{folder}/estop", "emulated": emulated}
        settings = {"policy": policy, "course": {"targets": [TARGET]}, "connection": connection}
        config = build(RunConfig, {**settings, "time_limit_s": options.seconds})
        plan = plan_run(config)
        loop, connected = open_loop(plan.contract, config)
        bus, dt_s, rows, carried = connected.emulated, loop.spec.control_dt_s, [], None
        nothing = np.zeros((1, loop.spec.n_joints))
        try:
            observation = loop.reset()
            for time_s in dt_s * np.arange(round(options.seconds / dt_s)):
                with bus.lock:
                    angle, slip, head = bus.plant.link_joint_angle(), bus.plant.slip_rad.copy(), bus.plant.head_pose()
                    if time_s >= options.at:
                        bus.plant.slip(joint, math.radians(options.deg))
                undone = loop.state.get("slips/slip", nothing)[0] + loop.state.get("offsets/offset", nothing)[0]
                rows.append((time_s, angle, loop.measurement.joint_angle[0], undone, slip, head))
                action, carried = plan.policy.predict(observation, carried)
                record = loop.step(action)
                if record.stop_reason is not None:
                    raise SystemExit(f"the robot stopped: {record.stop_reason}")
                observation = record.observation
        finally:
            connected.close()
    return Run(name, loop.spec, *(np.array(each) for each in zip(*rows, strict=True)))


def row(run: Run, joint: int, at_s: float) -> str:
    """Return a run as a line of the table."""
    hits, way = np.flatnonzero(run.undone[:, joint]), run.way()
    known_s = float(run.time_s[hits[0]]) if hits.size else math.inf
    off = np.degrees(run.taken - run.angle)[:, joint]
    cells = []
    for begin_s, end_s in ((2.0, at_s), (at_s + SLIP_S, known_s), (known_s, math.inf)):
        within = np.flatnonzero((run.time_s >= begin_s) & (run.time_s <= end_s))
        ends = within[[0, -1]] if within.size > 1 else None
        cells += ["-", "-"] if ends is None else [
            f"{np.diff(way[ends])[0] / np.diff(run.time_s[ends])[0]:.2f}", f"{off[within].mean():+.1f}"
        ]  # fmt: skip
    others = [j + 1 for j in np.flatnonzero(run.undone.any(axis=0)) if j != joint]
    when = f"{known_s - at_s:.1f}" if hits.size else "-"
    return f"| {joint + 1} | {run.name} | {when} | {' | '.join(cells)} | {', '.join(map(str, others)) or '-'} |"


def panels(run: Run, begin_s: float) -> list[Any]:
    """Return the frames of a run (H, W, 3) from ``begin_s`` [s] on."""
    renderer, way, frames = FrameRenderer(run.spec, size=SIZE), run.way(), []
    dt_s = run.spec.control_dt_s
    seen = [chain_angles(angle, run.head[:, 2]) for angle in (run.angle, run.taken)]
    for k in range(round(begin_s / dt_s), len(run.time_s), round(FRAME_S / dt_s)):
        ends, taken = (ends_of(run.spec, theta[k], run.head[k, :2]) for theta in seen)
        undone = ", ".join(f"joint {j + 1} {np.degrees(run.undone[k, j]):+.0f}" for j in np.flatnonzero(run.undone[k]))
        before = max(0, k - round(3.0 / dt_s))
        speed = (way[k] - way[before]) / max(run.time_s[k] - run.time_s[before], 1e-9)
        text = [f"{run.name} estimator", f"{run.time_s[k]:.1f} s   {speed:.2f} m/s"]
        text += [f"undone: {undone} degrees"] if undone else []
        kinds = np.where(run.slip[k] != 0.0, SLIPPED, 0)

        def over(sketch: Any, taken: Any = taken) -> None:
            places = sketch.camera.to_pixel(taken)
            for start, end in pairwise(places):
                sketch.line(start, end, ORANGE, 2.0)

        surface = renderer.paint(Picture(ends, failed=kinds, text=text), over)
        frames.append(np.swapaxes(renderer.pygame.surfarray.array3d(surface), 0, 1))
    return frames


def film(runs: list[Run], begin_s: float) -> bytes:
    """Return runs one below the other, from ``begin_s`` [s] on, as an animated GIF."""
    images = [
        Image.fromarray(np.concatenate(each)) for each in zip(*(panels(run, begin_s) for run in runs), strict=True)
    ]
    palette = images[-1].quantize(32, dither=Image.Dither.NONE)
    first, *others = (image.quantize(palette=palette, dither=Image.Dither.NONE) for image in images)
    buffer, shown_ms = io.BytesIO(), round(1e3 * SHOWN_S)
    first.save(buffer, "GIF", save_all=True, append_images=others, duration=shown_ms, loop=0)
    return buffer.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--policy", default="sts3215_chain_locked_joints", help="policy file or shipped policy (%(default)s)")
    add("--joints", type=int, nargs="+", default=[5], metavar="N", help="joints, one for each pair of runs (5)")
    add("--deg", type=float, default=20.0, help="slip (20)")
    add("--at", type=float, default=10.0, metavar="S", help="time of the slip (10)")
    add("--seconds", type=float, default=25.0)
    add("--port", choices=("pty", "memory"), default="pty", help="pty: in real time, under the guard (pty)")
    add("--film", type=Path, metavar="GIF", help="film of the runs with the first joint")
    options = parser.parse_args()
    heads = (
        "joint",
        "estimator",
        "known after [s]",
        "speed before [m/s]",
        "joint off by [deg]",
        "speed after the slip",
    )
    print(f"| {' | '.join((*heads, 'off by', 'speed when known', 'off by', 'other joints'))} |\n{'|---' * 10}|")
    with tempfile.TemporaryDirectory() as folder:
        snake_gym(["export", str(find_policy_file(options.policy)), "--estimator", "--out", folder])
        for joint in options.joints:
            runs = []
            for name, policy in (("without", options.policy), ("with", folder)):
                runs.append(play(policy, name, joint - 1, options))
                print(row(runs[-1], joint - 1, options.at), flush=True)
            if options.film and joint == options.joints[0]:
                options.film.write_bytes(film(runs, max(0.0, options.at - LEAD_S)))


if __name__ == "__main__":
    main()
