"""A robot from its logs: which numbers of its model are worth identifying, and the fit that finds them.

Found are friction of ground and joints, servo gains and backlash, as far as the nominal robot has them, and the delay
by which references act. A robot that should be identified with backlash, say, is given some.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from snake_gym.robot.spec import RobotSpec
from snake_gym.simulation.identification.coefficients import Coefficient, Place
from snake_gym.simulation.identification.fit import Identification, SensorNoise, identify
from snake_gym.simulation.identification.robot_replay import with_finer_step
from snake_gym.simulation.identification.run_log import RunLog

_WEIGHTS = SensorNoise(position_m=0.1, heading_rad=0.2, joint_rad=0.2)
"""Misses that count alike: of a model that lacks something, rather than of sensors, or joints would decide alone."""
_DELAY_START_S = 0.01
_GROUPS = 3
"""A field with more different numbers than this is not identified."""
_FRICTION = ("tangential_ns_m", "normal_ns_m", "tangential_coulomb", "normal_coulomb")
_SERVO = ("kp", "kd", "backlash_rad")


def usual_coefficients(spec: RobotSpec) -> list[Coefficient]:
    """What is worth identifying of ``spec``, as far as it has any."""
    paths = [f"friction.{name}" for name in _FRICTION] + [f"actuator.{name}" for name in _SERVO] + ["joint_friction_nm"]
    return [one for path in paths for one in _grouped(spec, path)]


def _grouped(spec: RobotSpec, path: str) -> list[Coefficient]:
    """One coefficient for each different number > 0 in a field."""
    name = path.rpartition(".")[2]
    values = spec.links(path) if path.startswith("friction.") else spec.joints(path)
    groups = [value for value in np.unique(values).tolist() if value > 0.0]
    if len(groups) > _GROUPS:
        return []
    found = []
    for value in groups:
        members = None if len(np.unique(values)) == 1 else tuple((np.flatnonzero(values == value) + 1).tolist())
        label = name if members is None else f"{name}[{','.join(map(str, members))}]"
        found.append(Coefficient(label, value, value / 8.0, 8.0 * value, (Place(path, members),)))
    return found


def identify_robot(
    logs: Sequence[RunLog], spec: RobotSpec, method: str = "least_squares", said: str = "logged runs"
) -> Identification:
    """Friction, servo gains and delay with which ``spec`` moves as logged. Raises ConfigError.

    Args:
        method: least_squares finds all of them on whole paths; avs (irani2015) finds the friction on the head's last
            position, with the other numbers, the delay among them, as they are.
        said: where the logs are from, for the specification's source.
    """
    coefficients, step = usual_coefficients(spec), with_finer_step(spec, logs[0].period_s)
    if method == "avs":
        only = [one for one in coefficients if one.places[0].path.startswith("friction.")]
        found = identify(logs, step, only, "avs")
    else:
        found = identify(logs, step, coefficients, "least_squares", _WEIGHTS, delay_start_s=_DELAY_START_S)
    named = replace(
        found.spec, name=f"{spec.name}_identified", control_dt_s=spec.control_dt_s, sim_dt_s=spec.sim_dt_s,
        integrator=spec.integrator,
        source=f"{spec.name} with friction and servos identified from {said} ({method})",
    )  # fmt: skip
    return replace(found, spec=named)
