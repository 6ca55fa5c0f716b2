"""Identification of a robot from logged runs: logs and a nominal RobotSpec in, a RobotSpec out.

    logs = [RunLog(period_s, references, joint_angles, head_positions, head_angles), ...]
    found = identify(logs, spec, coefficients)
    found.spec, found.values, found.relative_std

A nonlinear least-squares fit of whole replayed paths (``Replay``), with its Jacobian as one batch of worlds with
different parameters. Any positive number of a RobotSpec can be a ``Coefficient``: friction, masses excepted, servo
gains, torque and speed limits, backlash, the delay of references.
"""

from __future__ import annotations

from snake_gym.simulation.identification.coefficients import Coefficient, Place
from snake_gym.simulation.identification.fit import Identification, SensorNoise, identify
from snake_gym.simulation.identification.run_log import RunLog

__all__ = ["Coefficient", "Identification", "Place", "RunLog", "SensorNoise", "identify"]
