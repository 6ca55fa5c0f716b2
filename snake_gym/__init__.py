"""Planar snake robots: batched physics, classical controllers, Gymnasium environments with joint faults, benchmark.

Importing the package registers the environments, so ``gym.make("SnakeGym/Waypoints-v0")`` works; it loads neither
numba nor torch. The names below load their modules at first use.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from snake_gym.registry import register_envs

__version__ = "0.1.0"

if not Path(__file__).with_name("agents").exists():  # a checkout, where it lies beside this folder: see setup.py
    __path__.append(str(Path(__file__).parents[1]))

_LAZY = {
    "ConfigError": "snake_gym.config",
    "FaultInjection": "snake_gym.spatial.fault_injection",
    "RobotSpec": "snake_gym.robot.spec",
    "load_robot": "snake_gym.robot.catalogue",
    "make_controller": "snake_gym.controllers",
    "make_waypoints": "snake_gym.envs",
    "load_policy": "snake_gym.interface.policy_file",
    "load_plugins": "snake_gym.plugins",
    "register_column": "snake_gym.interface.observations",
    "register_fault_kind": "snake_gym.simulation.fault_kinds",
    "register_randomiser": "snake_gym.simulation.randomisation",
    "register_privileged": "snake_gym.tasks.privileged",
    "register_task": "snake_gym.registry",
}

__all__ = ["__version__", *_LAZY]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})


register_envs()
