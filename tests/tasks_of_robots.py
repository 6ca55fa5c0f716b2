"""Our tasks by the kind of robot that they are for."""

from __future__ import annotations

from snake_gym.registry import TASKS, find_task

SPATIAL_TASKS = [name for name in TASKS if find_task(name)().load_robot().in_space]
PLANAR_TASKS = [name for name in TASKS if name not in SPATIAL_TASKS]
