"""Identification of a robot from logged runs: logs and a nominal RobotSpec in, a RobotSpec out.

    logs = [RunLog(period_s, references, joint_angles, head_positions, head_angles), ...]
    found = identify(logs, spec, coefficients)               # or method="avs", irani2015's way
    found.spec, found.values, found.relative_std

Two methods on the same replayed runs (``Replay``): ``least_squares`` fits whole paths, with its Jacobian as one batch
of worlds with different parameters; ``avs`` is the alternating variable search of irani2015 on the last head position
only (eq. 6). Any number of a RobotSpec can be a ``Coefficient``: friction, masses excepted, servo gains, torque and
speed limits, backlash.
"""

from __future__ import annotations

from snake_gym.simulation.identification.coefficients import Coefficient, Place
from snake_gym.simulation.identification.fit import Identification, SensorNoise, identify
from snake_gym.simulation.identification.run_log import RunLog

__all__ = ["Coefficient", "Identification", "Place", "RunLog", "SensorNoise", "identify"]
