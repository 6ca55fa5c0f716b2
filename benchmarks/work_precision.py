"""What a simulated second costs at a given error, ours and MuJoCo's, each at its best step; everything in one run.

    python benchmarks/work_precision.py [--picture FILE] [--links N ...]

``resilient_servo`` with 10, 28 and 64 links crawls for 6 s with a new servo reference every 0.2 s, bare and among 20
pegs. The gaits: "gentle" (30 degrees, 60 deg/s), and "fast" (34 degrees, 100 deg/s: each new reference takes the servos
to their torque limit). Neither side has a speed limit, since MuJoCo has none to set.

Error: distance between the place of the centre of mass at the end and in the converged run, over the way gone; the
median over 4 scenarios (pegs, and how far the gait has begun). Bare, the converged run is ours at 0.2 ms, for both
sides. Among pegs each side has its own, MuJoCo's by RK4 at its smallest step: our stiff springs and MuJoCo's contacts
are different models. MuJoCo's contacts have its default softness, which lets it take longer steps than our stiffness.

Cost: seconds of CPU time per simulated second of one robot; ours in a batch of 256, MuJoCo's without Python in its
loop. A method's step is the longest of those tried (STEPS) from which on all shorter ones keep to the error as well; a
method is done at the second step in turn within the smallest error. Half an hour in all.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import mujoco
import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from mujoco_chain import build_xml
from random_episodes import clear, link_ends, place_obstacles

from snake_gym.controllers.serpenoid import serpenoid_reference
from snake_gym.obstacles.shapes import Circle, features
from snake_gym.physics.state import FloatArray, Obstacles
from snake_gym.robot.presets import RESILIENT_SERVO
from snake_gym.simulation.simulated_robot import Precision, SimulatedRobot

Row = dict[str, Any]
SECONDS, CONTROL_S, N_SCENARIOS, N_WORLDS, N_PEGS = 6.0, 0.2, 4, 256, 20
OURS = ("ours", "ours, float32")
TARGETS = (0.01, 0.001, 0.0001)
GAITS = {"gentle": (30.0, 60.0), "fast": (34.0, 100.0)}
"""Amplitude [deg] and frequency [deg/s]."""
STEPS = {
    "ours": (1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 32, 48, 64, 96, 128, 192, 256),
    "implicitfast": (50, 100, 150, 200, 300, 400, 500, 600, 800, 1200, 1600, 3200),
    "RK4": (800, 1200, 1600, 2400),
}
"""Sub-steps of a control step to try."""


class Case(NamedTuple):
    """What is simulated."""

    links: int
    gait: str
    pegs: bool

    @property
    def title(self) -> str:
        return f"N = {self.links}, {self.gait}" + (f", {N_PEGS} pegs" if self.pegs else "")


CASES = (Case(10, "gentle", False), *(Case(n, "fast", pegs) for pegs in (False, True) for n in (10, 28, 64)))


class Scene:
    """The scenarios of a case: references (steps, K, J) [rad], and the pegs (n, 6) of each."""

    def __init__(self, case: Case) -> None:
        self.case = case
        actuator = replace(RESILIENT_SERVO.actuator, speed_limit_rad_s=math.inf)
        self.spec = replace(RESILIENT_SERVO, n_links=case.links, control_dt_s=CONTROL_S, actuator=actuator)
        amplitude, frequency = np.radians(GAITS[case.gait])
        time_s = CONTROL_S * np.arange(round(SECONDS / CONTROL_S))
        phase = frequency * time_s[:, None] + 0.5 * np.pi * np.arange(N_SCENARIOS)
        wave = serpenoid_reference(phase.ravel(), amplitude, 2.4 * math.pi / case.links, case.links - 1)
        self.references = wave.reshape(*phase.shape, case.links - 1)
        robot = self.robot(1)
        tail, head = link_ends(robot.params, robot.state)
        self.middle, self.angle = 0.5 * (tail + head), robot.state.link_angle
        self.pegs = [self._draw_pegs(tail[k], head[k], k) for k in range(N_SCENARIOS)]

    def _draw_pegs(self, tail: FloatArray, head: FloatArray, seed: int) -> FloatArray:
        """Discs of 3 to 7 cm round the body, 2 mm from it at least; they may overlap one another."""
        rng = np.random.default_rng(seed)
        low, high = np.minimum(tail, head).min(axis=0) - 0.3, np.maximum(tail, head).max(axis=0) + 0.3
        at, radius = rng.uniform(low, high, (500, 2)), rng.uniform(0.03, 0.07, 500)
        rows = features([Circle(x, y, r) for (x, y), r in zip(at.tolist(), radius.tolist(), strict=True)])
        return rows[clear(rows, tail, head, self.spec.links("link_radius_m"))][:N_PEGS]

    def robot(
        self, n_substeps: int, n_worlds: int = N_SCENARIOS, obstacles: Obstacles | None = None,
        precision: Precision = "float64",
    ) -> SimulatedRobot:  # fmt: skip
        robot = SimulatedRobot(replace(self.spec, sim_dt_s=CONTROL_S / n_substeps), n_worlds, 1, obstacles, precision)
        shape = np.resize(self.references[0], (n_worlds, self.spec.n_joints))
        robot.set_shape(shape, np.zeros(n_worlds), np.zeros((n_worlds, 2)), "centre")
        return robot

    def run_ours(
        self, n_substeps: int, n_worlds: int = N_WORLDS, precision: Precision = "float64"
    ) -> tuple[FloatArray, float]:
        """Centres of mass (steps + 1, K, 2) [m], and CPU seconds per simulated second of a robot."""
        pegs = [self.pegs[w % N_SCENARIOS] for w in range(n_worlds)]
        obstacles = place_obstacles(self.spec, pegs) if self.case.pegs else None
        robot = self.robot(n_substeps, n_worlds, obstacles, precision)
        references = [np.resize(reference, (n_worlds, self.spec.n_joints)) for reference in self.references]
        track = [robot.state.centre_xy[:N_SCENARIOS].copy()]
        begun = time.process_time()
        for reference in references:
            robot.step(reference)
            track.append(robot.state.centre_xy[:N_SCENARIOS].copy())
        return np.array(track), (time.process_time() - begun) / (n_worlds * SECONDS)

    def run_mujoco(self, integrator: str, n_substeps: int) -> tuple[FloatArray, float]:
        """The same of MuJoCo; stops at the first scenario that is not finite."""
        tracks, spent = [], 0.0
        root = self.spec.n_links // 2
        for k in range(N_SCENARIOS):
            pegs = self.pegs[k] if self.case.pegs else ()
            model = mujoco.MjModel.from_xml_string(build_xml(self.spec, CONTROL_S / n_substeps, integrator, pegs=pegs))
            data = mujoco.MjData(model)
            data.qpos[:3] = *self.middle[k, root], self.angle[k, root]
            for j, angle in enumerate(self.references[0, k]):
                data.joint(f"j{j}").qpos[0] = angle
            track = [centre_of_mass(model, data)]
            begun = time.process_time()
            for reference in self.references[:, k]:
                data.ctrl[: self.spec.n_joints] = reference
                mujoco.mj_step(model, data, n_substeps)
                track.append(centre_of_mass(model, data))
            spent += time.process_time() - begun
            tracks.append(track)
        return np.swapaxes(np.array(tracks), 0, 1), spent / (N_SCENARIOS * SECONDS)


def centre_of_mass(model: Any, data: Any) -> FloatArray:
    """Of the whole chain (2,) [m]."""
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    return np.array(data.subtree_com[0, :2])


def measure_case(case: Case) -> list[Row]:
    """One row for each method and step."""
    scene = Scene(case)
    methods: dict[str, Callable[[int], tuple[FloatArray, float]]] = {
        "ours": scene.run_ours,
        "ours, float32": partial(scene.run_ours, precision="float32"),
        "implicitfast": partial(scene.run_mujoco, "implicitfast"),
        "RK4": partial(scene.run_mujoco, "RK4"),
    }
    exact = {"ours": scene.run_ours(4 * STEPS["ours"][-1], N_SCENARIOS)[0]}
    exact["MuJoCo"] = scene.run_mujoco("RK4", STEPS["RK4"][-1])[0] if case.pegs else exact["ours"]
    rows: list[Row] = []
    for name, run in methods.items():
        end = exact["ours" if name in OURS else "MuJoCo"]
        way = np.linalg.norm(np.diff(end, axis=0), axis=-1).sum(axis=0)
        n_kept = 0
        # Ours refuses steps beyond 10 ms among obstacles.
        steps = [n for n in STEPS["ours" if name in OURS else name] if n >= 20 or not case.pegs]
        for n in steps:
            track, cost = run(n)
            error = float(np.median(np.linalg.norm(track[-1] - end[-1], axis=-1) / way))
            error = error if math.isfinite(error) else math.inf
            rows.append({"case": case.title, "method": name, "step_ms": 1e3 * CONTROL_S / n,
                         "error": error, "cost_s": cost})  # fmt: skip
            print(f"{case.title:24}{name:14}{rows[-1]['step_ms']:8.3f} ms{100 * error:12.5f} %{1 / cost:12.0f} /s",
                  file=sys.stderr)  # fmt: skip
            n_kept = n_kept + 1 if error <= TARGETS[-1] else 0
            if n_kept == 2:
                break
    return rows


def best(rows: Sequence[Row], methods: Sequence[str], target: float) -> Row | None:
    """The cheapest row of these methods from which on a method's error keeps to the target; None if none does."""
    found = []
    for method in methods:
        own = sorted((row for row in rows if row["method"] == method), key=lambda row: row["step_ms"])
        last = next((i for i, row in enumerate(own) if row["error"] > target), len(own))
        found += own[max(0, last - 1) : last]
    return min(found, key=lambda row: row["cost_s"], default=None)


def table(rows: Sequence[Row]) -> str:
    """Simulated seconds per second of CPU time at each error, steps, and our lead, as Markdown."""
    text = ["| | error | ours | float32 | MuJoCo | ratio | float32 |", "|---|---|---|---|---|---|---|"]
    for case in dict.fromkeys(row["case"] for row in rows):
        own = [row for row in rows if row["case"] == case]
        for target in TARGETS:
            *ours, other = [best(own, names, target) for names in (OURS[:1], OURS[1:], ("implicitfast", "RK4"))]
            cells = [f"{1 / row['cost_s']:,.0f} ({row['step_ms']:.3g} ms)" if row else "-" for row in (*ours, other)]
            cells[2] += f", {other['method']}" if other else ""
            cells += [f"{other['cost_s'] / row['cost_s']:,.0f}" if row and other else "-" for row in ours]
            text.append(f"| {case} | {100 * target:g} % | {' | '.join(cells)} |")
    return "\n".join(text)


def draw(rows: Sequence[Row], path: Path) -> None:
    """One panel for each case but the gentle one: errors along, speed up."""
    import matplotlib.pyplot as plt

    from snake_gym.render.palette import BLUE, GREEN, SKY, VERMILION

    cases = [case.title for case in CASES if case.gait == "fast"]
    figure, axes = plt.subplots(2, 3, figsize=(10, 6), sharex=True, sharey=True, layout="constrained")
    for panel, case in zip(axes.flat, cases, strict=True):
        for method, colour in (("ours", BLUE), ("ours, float32", SKY), ("implicitfast", VERMILION), ("RK4", GREEN)):
            own = [row for row in rows if row["case"] == case and row["method"] == method and row["error"] < 0.3]
            label = method if method in OURS else f"MuJoCo {method}"
            error, speed = [100 * row["error"] for row in own], [1 / row["cost_s"] for row in own]
            panel.loglog(error, speed, "o-", color=colour, label=label, markersize=4)
        panel.set(title=case.replace(", fast", ""), xlim=(30, 1e-4), xticks=[10, 1, 0.1, 0.01, 0.001])
        panel.xaxis.set_major_formatter("{x:g}")
        panel.grid(alpha=0.3)
        for target in TARGETS:
            panel.axvline(100 * target, color="0.7", linewidth=0.8, zorder=0)
    axes[0, 0].legend(fontsize=8, loc="lower left")
    figure.supxlabel("error of the place after 6 s [% of the way]")
    figure.supylabel("simulated seconds per second of one core")
    figure.savefig(path, dpi=110)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw the diagram")
    parser.add_argument("--links", type=int, nargs="+", default=(10, 28, 64), metavar="N", help="cases to measure")
    args = parser.parse_args()
    Scene(CASES[0]).run_ours(20, precision="float32")  # compiles; the converged runs do the same in float64
    rows = [row for case in CASES if case.links in args.links for row in measure_case(case)]
    print(table(rows))
    if args.picture:
        draw(rows, args.picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
