"""Detectors of joint faults side by side, and their worth to the fault-aware controller: docs/fault_detectors.md.

    python benchmarks/fault_detectors.py [--worlds 48] [--seconds 40] [--episodes 128] [--out docs/fault_detectors.md]

Robots drive by CC with random gaits on seeds that no training has seen; 0 to 3 joints of each fail for good in mid-run,
each in one of five ways. The detectors listen only. Then the fault-aware controller drives with each of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track

from snake_gym.benchmark.fault_logs import KINDS, record
from snake_gym.benchmark.fault_scores import FaultScores, listen, mean, pool, score
from snake_gym.benchmark.statistics import mean_interval
from snake_gym.config import OptionParser, build, load_yaml, merge, prepare_file, run_program, write_atomic
from snake_gym.controllers import make_controller, resolve_controller
from snake_gym.controllers.fault_detection import FaultDetector, FaultDetectorConfig
from snake_gym.controllers.learned_detection import CODES, LearnedDetector, LearnedDetectorConfig
from snake_gym.envs import WaypointsConfig
from snake_gym.envs.core import SnakeCore
from snake_gym.envs.tables import table

OUT = Path(__file__).parents[1] / "docs" / "fault_detectors.md"
SEED = 1_000_000
SERVO = "resilient_servo"


def varied(**ranges: tuple[float, float]) -> dict[str, Any]:
    """Return settings of ``resilient_servo`` in a world where these quantities vary."""
    return {"robot": SERVO, "randomisation": {name: {"low": low, "high": high} for name, (low, high) in ranges.items()}}


CONDITIONS: dict[str, dict[str, Any]] = {
    "nothing varies": {"robot": SERVO},
    "encoder noise 0.02 rad, 0.1 rad/s": {
        "robot": SERVO, "sensors": {"angle_noise_rad": 0.02, "rate_noise_rad_s": 0.1},
    },
    "backlash 0.02 to 0.04 rad": varied(backlash_rad=(0.02, 0.04)),
    "commands 0.05 to 0.1 s late, readings to 0.04 s": varied(command_delay_s=(0.05, 0.1), encoder_delay_s=(0.0, 0.04)),
    "servos with 40 to 60 % of their torque": varied(torque_limit=(0.4, 0.6)),
    "saturated servos: `robo_conda`": {"robot": "robo_conda"},
    "saturated servos: `snakesys`": {"robot": "snakesys"},
    "all of it: configs/env/randomised_servo.yaml": load_yaml("configs/env/randomised_servo.yaml"),
    "a robot not trained on: configs/robot/heavy_head.yaml": {"robot": "configs/robot/heavy_head.yaml"},
}  # fmt: skip
SCENARIOS: dict[str, dict[str, Any]] = {
    "configs/env/resilience.yaml": load_yaml("configs/env/resilience.yaml"),
    "1 to 3 for good, no noise": {
        **load_yaml("configs/env/locked_joints.yaml"),
        "faults": {
            "n_min": 1,
            "n_max": 3,
            "kinds": ["locked", "free", "weak"],
            "onset_min_s": 2.0,
            "onset_max_s": 10.0,
        },
    },
}
"""Scenarios in which the controllers compete: joints fail while the robot crawls."""
LEARNED, MODEL, TOLD = "learned", "model", "told which joints"


def main(argv: list[str] | None = None) -> int:
    """Simulate, score and write. Raises ConfigError for what the user has to correct."""
    parser = OptionParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=48, help="robots for each condition (48)")
    parser.add_argument("--seconds", type=float, default=40.0, help="length of their logs (40)")
    parser.add_argument("--episodes", type=int, default=128, help="episodes of each controller (128)")
    parser.add_argument("--file", default=LearnedDetectorConfig("learned").file, help="the learned estimator")
    parser.add_argument("--out", type=Path, default=OUT, help="the page (docs/fault_detectors.md)")
    args = parser.parse_args(argv)
    prepare_file(args.out, "--out")
    console = Console(stderr=True)
    found: dict[str, dict[str, FaultScores]] = {}
    for name, env in track(CONDITIONS.items(), "listening", console=console):
        found[name] = judge(env, args.worlds, args.seconds, args.file)
    progress = {}
    for name, env in track(SCENARIOS.items(), "driving", console=console):
        progress[name] = {who: drive(who, env, args.episodes, args.file) for who in ("cc", MODEL, LEARNED, TOLD)}
    write_atomic(args.out, page(found, progress, args.worlds, args.seconds))
    return 0


def judge(env: Mapping[str, Any], n_worlds: int, time_s: float, file: str) -> dict[str, FaultScores]:
    """Return the scores of both detectors."""
    log = record(env, n_worlds, SEED, time_s, noisy=False)
    model = FaultDetector(FaultDetectorConfig(angle_noise_rad=noise_rad(env)), log.spec)
    learned = LearnedDetector(LearnedDetectorConfig("learned", file), log.spec)
    return {MODEL: score(*listen(model, log), log), LEARNED: score(*listen(learned, log), log)}


def noise_rad(env: Mapping[str, Any]) -> float:
    """Return the encoders' noise [rad] that the model is told of, never less than it takes by itself."""
    return max(FaultDetectorConfig().angle_noise_rad, env.get("sensors", {}).get("angle_noise_rad", 0.0))


def drive(who: str, env: Mapping[str, Any], n_episodes: int, file: str) -> np.ndarray[Any, Any]:
    """Return the progress (n_episodes,) [m] of the tuned fault-aware controller with a detector, or of tuned CC."""
    settings = merge(env, {"faults": {"reveal": who == TOLD}})
    config = build(WaypointsConfig, {**settings, "action": {"kind": "joint_reference"}, "n_threads": 1}, "env")
    core = SnakeCore(config, n_episodes)
    core.reset(SEED + np.arange(n_episodes, dtype=np.int64))
    own = resolve_controller({"tuned": "cc" if who == "cc" else "fault_aware"}, spec=core.spec)
    if who == LEARNED:
        own["detector"] = {"kind": "learned", "file": file}
    elif who == MODEL:
        own["detector"] = {**own["detector"], "angle_noise_rad": noise_rad(env)}
    driver = make_controller(own, core.spec)
    state = driver.initial_state(n_episodes)
    for _ in range(core.n_steps):
        command = driver.command(core.measurement, core.task.goal(), state, core.spec.control_dt_s)
        core.step(command / core.spec.joint_limit_rad)
    return np.array(core.task.progress_m)


def page(
    found: Mapping[str, Mapping[str, FaultScores]],
    progress: Mapping[str, Mapping[str, Any]],
    worlds: int,
    time_s: float,
) -> str:
    """Return the page as Markdown."""
    episodes = len(next(iter(progress.values()))["cc"])
    both = {who: pool([scores[who] for scores in found.values()]) for who in (MODEL, LEARNED)}
    rows = [[name, who, *cells(scores[who])] for name, scores in found.items() for who in (MODEL, LEARNED)]
    rows += [["all conditions", who, *cells(scores)] for who, scores in both.items()]
    head = ["condition", "detector", "false alarms [1/joint h]", "healthy time flagged [%]"]
    late, confusion, sizes = [], [], []
    for k, kind in enumerate(KINDS):
        for who, scores in both.items():
            quantiles = [f"{scores.delay_quantile_s(kind, share):.1f}" for share in (0.25, 0.5, 0.75)]
            late.append([kind, who, *quantiles, str(int((scores.kind == k).sum()))])
            confusion.append([kind, who, *(f"{100.0 * share:.0f}" for share in scores.confusion(kind))])
        errors = both[LEARNED].severity_error[both[LEARNED].kind == k]
        errors = errors[np.isfinite(errors)]
        if errors.size:
            sizes.append([kind, f"{errors.mean():.3f}", str(errors.size)])
    parts = [
        INTRODUCTION,
        "## What they find",
        f"{worlds} robots for each condition, {time_s:g} s each, driven by CC with random gaits on seeds that no "
        "training has seen; 0 to 3 joints of each fail for good. *Found*: the fault raised an alarm after its onset, "
        "whatever it was called, or was called failed already when it began: where much healthy time is flagged, that "
        "says little.",
        table([*head, *(f"{kind} found [%]" for kind in KINDS)], rows).rstrip("\n"),
        "Delays from onset to alarm over all conditions [s], within which a quarter, half and three quarters of all "
        "faults are found (inf: fewer are found).",
        table(["fault", "detector", "25 %", "50 %", "75 %", "faults"], late).rstrip("\n"),
        "Named at the end, over all conditions [%]:",
        table(["fault", "detector", *CODES], confusion).rstrip("\n"),
        "Mean error of the learned detector's severity, where the kind is named right (share of torque or speed left; "
        "offset in rad):",
        table(["fault", "error", "faults"], sizes).rstrip("\n"),
        "## What they are worth",
        f"Progress [m] of the tuned fault-aware controller on `{SERVO}` in 60 s, {episodes} episodes from seed {SEED} "
        "on, means with 95 % intervals. After 2 to 10 s joints fail: in configs/env/resilience.yaml 0 to 5 of them "
        "lock, lose their power, most of their torque or their calibration, or slip on their horns, some in bursts, "
        "with noise and delays; else 1 to 3 lock or lose their power or most of their torque for good. A robot that is "
        "told which joints have failed still finds out how by the model's detector, and takes those for weak that it "
        "sees nothing of.",
        table(["scenarios", "controller", "progress [m]", "lead over the model [m]"], gains(progress)).rstrip("\n"),
    ]
    return "\n\n".join(parts) + "\n"


def cells(scores: FaultScores) -> list[str]:
    """Return the numbers of a row."""
    rate, flagged = scores.false_alarms / scores.healthy_h, 100.0 * scores.flagged_h / scores.healthy_h
    return [f"{rate:.1f}", f"{flagged:.2f}", *(f"{100 * scores.found(kind):.0f}" for kind in KINDS)]


def gains(progress: Mapping[str, Mapping[str, Any]]) -> list[list[str]]:
    """Return the rows of the controllers; leads are paired by episode."""
    rows = []
    for scenarios, results in progress.items():
        for who, values in results.items():
            name = "CC" if who == "cc" else f"fault_aware, {who}"
            low, high = mean_interval(values)
            lead = "-"
            if who != MODEL:
                ahead = values - results[MODEL]
                lead = f"{mean(ahead):+.2f} [{', '.join(f'{bound:+.2f}' for bound in mean_interval(ahead))}]"
            rows.append([scenarios, name, f"{mean(values):.2f} [{low:.2f}, {high:.2f}]", lead])
    return rows


INTRODUCTION = """# Detectors of joint faults

<!-- made by: python benchmarks/fault_detectors.py -->

The fault-aware controller finds failed joints by one of two detectors:

```yaml
controller:
  kind: fault_aware
  detector: {kind: model}     # the default: each joint against the nominal servo, by likelihood ratios
  # detector: {kind: learned} # a small network; file: configs/detectors/servo_faults.json
```

- `model` (`snake_gym/controllers/fault_detection.py`) needs no training, fits every actuator, and knows locked, free
  and weak joints.
- `learned` (`snake_gym/controllers/learned_detection.py`) is one network for all joints, of any number, that sees the
  last 12 samples of a joint (0.1 s each, or the time constant of its loop where that is longer) and how much its
  neighbours and the others lag. Its probabilities are averaged. It tells slow joints and offsets too, and how much
  torque or speed is left. For position and torque servos; other actuators are refused. It runs on numpy alone.

`alarm` is the probability from which on a joint counts as failed, `memory_s` the time over which it is averaged; the
defaults were chosen on seeds above 2,500,000, which this page does not use. The controller's state holds `fault_belief`
(the probabilities in the order of the file's `kinds`), `fault_kind` and `fault_severity`.

`python -m snake_gym.agents.fault_estimator` trains an estimator and writes its file: JSON, read strictly, nothing
executed. Its logs are simulated: six robots, random gaits, 0 to 3 joints that fail, with noise, backlash, delays, weak
servos and ground that vary. To train one for robots of your own, change `ROBOTS` and `VARIED` there. The file that is
shipped knew `snakesys` without dry joints and with slower servos; on the present preset it raises more false alarms.

Which one to take: the model where its assumptions hold, since it is the sooner by half a second and knows every robot;
the learned one where servos saturate, commands are late, or slow joints and offsets have to be found. A joint with
torque enough for its place follows like a healthy one: neither detector names weak joints well, and what the learned
one says of their torque is little better than a guess. On a robot that was not in its training it raises more false
alarms than the model; `alarm: 0.9` makes them rarer and the delays longer. The controller gains no more from it than
the intervals below allow."""


if __name__ == "__main__":
    run_program(main)
