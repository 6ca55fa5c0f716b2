"""What varies from episode to episode of spatial robots: masses, servos, dry friction of joints and on the ground.

The quantities, their draws and infos are those of planar robots (``simulation.randomisation``); those that a spatial
robot does not have are refused. Dry friction on the ground has one coefficient for all directions: ``friction_along``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from snake_gym.simulation.randomisation import DrawnQuantities, RandomisationConfig
from snake_gym.spatial.simulation import SpatialRobot, nominal_params
from snake_gym.spatial.spec import SpatialSpec


class SpatialRandomisation(DrawnQuantities):
    """Quantities of W spatial robots, written to their models. A link's inertia follows its mass."""

    def __init__(self, config: RandomisationConfig, spec: SpatialSpec, robot: SpatialRobot) -> None:
        self.robot = robot
        super().__init__(config, spec, nominal_params(spec, 1), robot.n_worlds)

    def _change_robots(self, rows: NDArray[np.int64]) -> None:
        params = self.drawn_params(rows)
        self.apply_functions(params, rows)
        self.robot.use_parameters(rows, params)
