"""Trial and error (Cully et al., Nature 2015): a robot tries gaits of an archive until one takes it well.

python examples/trial_and_error.py runs/trial.yaml    builds the archive with the intact robot (pip install ribs)
snake-gym evaluate --config configs/benchmark/severe.yaml --plugin examples/trial_and_error.py \
    --controllers cc,trial=runs/trial.yaml

The archive has the fastest gait for each share of work of tail, middle and head (MAP-Elites). In an episode the robot
plays one gait for ``trial_s``, measures its speed towards the target, and corrects what it expects of all gaits alike
(Gaussian process, the intact robot's speeds as prior). It needs to know neither that a joint has failed nor which.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from snake_gym.config import dump_yaml
from snake_gym.config.settings import Positive, Share
from snake_gym.controllers.base import Gait, register_controller, wrap_phase
from snake_gym.controllers.cc import CcConfig
from snake_gym.controllers.guidance import PointOfSight
from snake_gym.robot.measurement import tracked_point

PARTS = np.array([1.0, 3.0, 5.0]) / 6.0
"""Places of the amplitudes along the body, 0 at the tail."""
MEMORY = 12
"""Trials that a robot remembers."""
CC = {"heading_gain": 0.41184, "coupling": 0.47169, "gain_ratio_s": 0.17216}
"""Steering and coupling of all gaits: those of CC as tuned for the suite ``resilience``."""


class TrialConfig(CcConfig):
    """Settings of trial and error."""

    archive: tuple[tuple[float, ...], ...] = ((0.5, 0.5, 0.5, 4.3, 0.52, 0.3),)
    """Amplitudes of tail, middle and head [rad], frequency [rad/s], phase shift [rad], speed when intact [m/s]."""
    trial_s: Positive = 8.0
    """Length of a trial."""
    width_rad: Positive = 0.6
    """Difference of amplitudes over which speeds differ little."""
    spread_m_s: Positive = 0.05
    """Standard deviation of speeds of a broken robot about those of the intact one."""
    common: Share = 0.5
    """Share of that variance that all gaits have in common."""
    noise_m_s: Positive = 0.04
    """Standard deviation of one trial."""
    explore: Positive = 0.1
    """Worth of not knowing: standard deviations added to the expected speed of a gait."""


@register_controller("trial_and_error", TrialConfig)
class TrialAndError(Gait):
    """Controller that tries gaits. State: the gait and time of the trial, and what was measured of earlier ones."""

    lopsided = ()

    def __init__(self, config: TrialConfig, spec: Any, per_world: Any = None) -> None:
        super().__init__(config, spec, per_world)
        self._gaits, self._prior = np.array(config.archive)[:, :5], np.array(config.archive)[:, 5]
        apart = np.linalg.norm(self._gaits[:, None, :3] - self._gaits[:, :3], axis=2) / config.width_rad
        matern = (1.0 + apart + apart**2 / 3.0) * np.exp(-apart)  # 5/2
        self._alike = config.spread_m_s**2 * (config.common + (1.0 - config.common) * matern)
        self._guidance = PointOfSight(spec, config.tracked_point)
        places = np.linspace(0.0, 1.0, spec.n_joints)
        self._weights = np.array([np.interp(places, PARTS, row) for row in np.eye(3)])

    def initial_state(self, n_worlds: int) -> dict[str, Any]:
        best = np.full(n_worlds, float(self._prior.argmax()))
        return {
            "phase": np.zeros(n_worlds), "gait": best, "trial_time_s": np.zeros(n_worlds), "way_m": np.zeros(n_worlds),
            "last_xy": np.full((n_worlds, 2), np.nan), "tried": np.zeros((n_worlds, MEMORY)),
            "speed_m_s": np.full((n_worlds, MEMORY), np.nan),
        }  # fmt: skip

    def command(self, measurement: Any, goal: Any, state: Any, dt_s: float) -> Any:
        here = tracked_point(self.spec, measurement, self.config.tracked_point)
        towards = goal.target_xy_w - here
        towards /= np.maximum(np.hypot(*towards.T), 1e-9)[:, None]
        state["way_m"] += np.nan_to_num(((here - state["last_xy"]) * towards).sum(axis=1))
        state["last_xy"][:] = here
        over = np.flatnonzero(state["trial_time_s"] > self.config.trial_s - 0.5 * dt_s)
        if over.size:
            self._learn(state, over)
        state["trial_time_s"] += dt_s
        gait = self._gaits[state["gait"].astype(int)]
        phase = state["phase"][:, None] + gait[:, 4:] * np.arange(self.n_joints)
        reference = (gait[:, :3] @ self._weights) * np.sin(phase)
        reference += self._guidance.offset(measurement, goal, self.parameter)[:, None]
        behind = reference - measurement.joint_angle - self.config.gain_ratio_s * measurement.joint_rate
        reference[:, 1:] += self.config.coupling * behind[:, :-1]
        state["phase"] += gait[:, 3] * dt_s
        wrap_phase(state["phase"])
        return self.limited(reference.T)

    def _learn(self, state: Any, rows: Any) -> None:
        """Remember the trials of ``rows``, and choose their next gaits."""
        for name, new in (("tried", state["gait"][rows]), ("speed_m_s", (state["way_m"] / self.config.trial_s)[rows])):
            state[name][rows] = np.column_stack([state[name][rows, 1:], new])
        tried, speed = state["tried"][rows].astype(int), state["speed_m_s"][rows]
        unknown = np.isnan(speed)
        noise = np.where(unknown, 1e6, self.config.noise_m_s**2)
        seen = self._alike[tried[:, :, None], tried[:, None, :]] + noise[:, None] * np.eye(MEMORY)
        like = self._alike[:, tried].transpose(1, 0, 2)  # (M, gaits, MEMORY)
        missed = np.where(unknown, 0.0, speed - self._prior[tried])
        weight = np.linalg.solve(seen, np.concatenate([missed[:, :, None], like.transpose(0, 2, 1)], axis=2))
        expected = self._prior + (like @ weight[:, :, :1])[..., 0]
        variance = self.config.spread_m_s**2 - (like * weight[:, :, 1:].transpose(0, 2, 1)).sum(axis=2)
        better = expected + self.config.explore * np.sqrt(np.maximum(variance, 0.0))
        state["gait"][rows] = better.argmax(axis=1)
        state["way_m"][rows] = state["trial_time_s"][rows] = 0.0


def build_archive(robot: str, generations: int, seed: int) -> list[list[float]]:
    """Return the fastest gaits of the intact robot in 4 x 4 x 4 cells of their amplitudes, by MAP-Elites."""
    from ribs.archives import GridArchive
    from ribs.emitters import GaussianEmitter
    from ribs.schedulers import Scheduler

    from snake_gym.envs import SnakeVectorEnv

    low, high = [0.0, 0.0, 0.0, 2.0, 0.2], [1.0, 1.0, 1.0, 6.0, 0.9]
    archive = GridArchive(solution_dim=5, dims=[4, 4, 4], ranges=[(0.0, 1.0)] * 3, seed=seed)
    emitter = GaussianEmitter(
        archive, sigma=[0.15, 0.15, 0.15, 0.5, 0.08], x0=[0.53, 0.53, 0.53, 4.3, 0.52],
        bounds=list(zip(low, high, strict=True)), batch_size=128, seed=seed,
    )  # fmt: skip
    scheduler = Scheduler(archive, [emitter])
    course = {"kind": "list", "targets": [[3.0, 0.0], [4.0, 2.5], [1.0, 3.0], [3.0, 6.0], [-9.0, 6.0]]}
    settings = {"robot": robot, "course": course, "start": {"random": False}, "faults": {"n_max": 0}}
    env = SnakeVectorEnv(num_envs=128, autoreset_mode="DISABLED", config={**settings, "time_limit_s": 40.0})
    core = env.core
    for generation in range(generations):
        gaits = scheduler.ask()
        candidates = TrialAndError(
            TrialConfig(archive=tuple((*map(float, gait), 0.0) for gait in gaits), **CC), core.spec
        )
        state = candidates.initial_state(env.num_envs)
        state["gait"][:] = np.arange(env.num_envs)
        env.reset(seed=seed)
        for _ in range(core.n_steps):
            state["trial_time_s"][:] = 0.0  # no gait is another's next one
            reference = candidates.command(core.measurement, core.goal, state, core.spec.control_dt_s)
            *_, infos = env.step(reference / core.spec.joint_limit_rad)
        speed = infos["progress_m"] / 40.0
        scheduler.tell(speed, gaits[:, :3])
        if generation % 20 == 19:
            print(f"{generation + 1}: {archive.stats.num_elites} gaits, fastest {archive.stats.obj_max:.3f} m/s")
    found = archive.data()
    rows = np.column_stack([found["solution"], found["objective"]])
    return [[round(float(value), 4) for value in row] for row in rows if row[-1] > 0.05]


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", help="YAML file of the controller")
    parser.add_argument("--robot", default="resilient_servo")
    parser.add_argument("--generations", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    archive = build_archive(args.robot, args.generations, args.seed)
    dump_yaml({"controller": {"kind": "trial_and_error", "archive": archive, **CC}}, args.out)
    print(f"{len(archive)} gaits in {args.out}")


if __name__ == "__main__":
    main()
