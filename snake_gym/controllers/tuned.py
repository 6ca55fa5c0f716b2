"""Tuned gaits, as ``snake-gym tune`` writes them to ``configs/controllers/<robot>/<controller>.yaml``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from snake_gym.config import ConfigError, find_config, load_yaml
from snake_gym.controllers.base import CONTROLLERS
from snake_gym.robot.catalogue import load_any_robot
from snake_gym.robot.chain import ChainSpec
from snake_gym.robot.difference import robot_note

PROGRAM = "snake-gym tune"
TUNED = Path("configs", "controllers")


@dataclass(frozen=True)
class Tuning:
    """Robot and env that a gait was tuned with, from its file."""

    robot: Mapping[str, Any]
    """Complete settings of the robot."""
    env_id: str | None
    env: Mapping[str, Any]
    """Settings of the env, without robot and action."""

    def robot_note(self, here: ChainSpec) -> str | None:
        """Return the differences of the robot ``here`` from the tuned one, for people; None if there are none."""
        try:
            own = load_any_robot(self.robot)
        except ConfigError:
            return f"tuned on a robot that this version does not know, plays on {here.name}"
        return robot_note(own, here, "tuned")


def tuned_file(robot: str, kind: str) -> Path:
    """Return the path of a controller's tuned parameters for a robot of that name, see ``find_config``."""
    return find_config(TUNED / robot / f"{kind}.yaml")


def tuned_kinds(spec: ChainSpec) -> list[str]:
    """Return the controllers that have parameters tuned for a robot of the name of ``spec``."""
    return [kind for kind in CONTROLLERS if tuned_file(spec.name, kind).is_file()]


def find_tuned(kind: str, spec: ChainSpec) -> Path:
    """Return the file of a controller that was tuned for a robot of the name of ``spec``.

    Raises ConfigError: the file does not exist; the message has the command that makes it.
    """
    path = tuned_file(spec.name, kind)
    if path.is_file():
        return path
    advice = f"make them with `{PROGRAM} --controller {kind} --robot {spec.name}` (or the robot's file)"
    if spec.in_space:
        advice = (
            f"{PROGRAM} is for planar robots; expected a file of yours, as configs/controllers/snake_robot_iii/swl.yaml"
        )
    missing = f"controller {kind} has no tuned parameters for robot {spec.name} ({path} does not exist)"
    raise ConfigError(f"{missing}: {advice}")


def read_tuned(path: str | os.PathLike[str]) -> tuple[Mapping[str, Any], Tuning | None]:
    """Return controller settings of a tuned file, and robot and env of the tuning if named. Raises ConfigError."""
    content = load_yaml(path)
    if "kind" in content:  # written by hand
        return content, None
    settings, tuning = content.get("controller"), content.get("tuning")
    if not isinstance(settings, Mapping):
        raise ConfigError(f"{path} holds no group 'controller'; expected it, as the tuner writes it, or kind: NAME")
    if not isinstance(tuning, Mapping) or not isinstance(tuning.get("robot"), Mapping):
        return settings, None
    env = tuning.get("env")
    return settings, Tuning(tuning["robot"], tuning.get("env_id"), env if isinstance(env, Mapping) else {})
