"""Who takes part: the tuned controllers, and the fault-aware one with a part of it switched off."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from snake_gym.config import load_yaml, merge
from snake_gym.controllers import resolve_controller

ROBOT = "resilient_servo"
TUNED = Path(__file__).parents[2] / "configs" / "controllers"
"""Results of ``snake-gym tune``."""
Settings = dict[str, float | None]

COUPLED: Settings = {"free_ahead": None, "spread_ahead": None, "spread_behind": 0.0, "free_behind": 0.0}
"""Failed joints coupled as healthy ones are in CC; None: the controller's own coupling."""
HEAD_FIRST: Settings = {"front_weight_rad": 0.0, "free_front_weight_rad": 0.0, "turn_back": 0.0}
UNSCALED: Settings = {"amplitude_per_fault": 0.0, "frequency_per_fault": 0.0}
PARTS: dict[str, Settings] = {
    "without turning back": {"turn_back": 0.0},
    "without any reverse": HEAD_FIRST,
    "without spreading": COUPLED,
    "knowing nothing of faults": {"front_weight_rad": 0.0, "free_front_weight_rad": 0.0, **COUPLED, **UNSCALED},
    "with reversing for locked joints": {"front_weight_rad": 2.0},
}
"""Changes of the tuned fault-aware controller, by name."""
TURNING: Settings = {"turn_back": 0.6, "hysteresis_rad": 0.15}
SPREADING: Settings = {"spread_ahead": 0.5, "spread_behind": 0.5}
ADDED: dict[str, Settings] = {
    "cc + turning back": TURNING,
    "cc + reversing for faults": {"front_weight_rad": 2.0, "free_front_weight_rad": 6.0},
    "cc + spreading": SPREADING,
    "cc + all three": {**TURNING, **SPREADING, "front_weight_rad": 2.0, "free_front_weight_rad": 6.0},
}
"""Single parts added to the tuned CC, whose gait stays as it is."""


class Contender(NamedTuple):
    """One controller in the comparison."""

    name: str
    settings: dict[str, Any]
    told: bool = False
    """Whether the env reveals which joints have failed, in place of the detector."""


def tuned(kind: str, folder: Path = TUNED, robot: str = ROBOT) -> dict[str, Any]:
    """The tuned settings of a controller kind. Raises ConfigError where there are none."""
    return resolve_controller({"file": str(folder / robot / f"{kind}.yaml")}, kind)


def changed(name: str, folder: Path = TUNED) -> Contender:
    """The fault-aware controller with one of ``PARTS``, or the tuned CC with one of ``ADDED``."""
    if name in ADDED:
        settings = {**tuned("cc", folder), "kind": "fault_aware", **HEAD_FIRST, **UNSCALED, "weak_counts": 0.0}
        change = {**COUPLED, **ADDED[name]}
    else:
        settings, change = tuned("fault_aware", folder), PARTS[name]
    own = {key: settings["coupling"] if value is None else value for key, value in change.items()}
    return Contender(name, merge(settings, own))


def with_noise(settings: dict[str, Any], angle_noise_rad: float) -> dict[str, Any]:
    """Tell the detector how noisy the encoders are."""
    return merge(settings, {"detector": {"angle_noise_rad": angle_noise_rad}})


def scenario_settings() -> dict[str, Any]:
    """The env that all were tuned in: configs/env/locked_joints.yaml."""
    return load_yaml(str(TUNED.parent / "env" / "locked_joints.yaml"))
