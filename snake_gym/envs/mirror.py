"""How observations and actions of an env look in a mirror, for training with mirrored data.

A mirrored sample is a true step of the mirrored task, reward included. What a policy is shown may therefore lie to one
side: a path or course that is given, listed obstacles, a start at one phase. The same policy then learns the task to
the other side, too; all that it cannot learn is by heart what it is not shown, such as to which side a path turns
beyond its preview.

What is hidden has to lie on either side alike, for nothing seen tells a policy on which side it is. Faults, slopes and
biases that are drawn do. Those that are set to one side are refused here, and so are columns and controllers that do
not say how they look in a mirror. A user's own task has to score, and a user's own kind of fault to act, on either side
alike.
"""

from __future__ import annotations

import math

from snake_gym.config import ConfigError
from snake_gym.config.errors import show
from snake_gym.envs.core import SnakeCore
from snake_gym.interface.mirror import Reflection, side_by_side
from snake_gym.simulation.fault_kinds import ends
from snake_gym.tasks.task import EnvConfig

_BIASES = ("angle_bias_rad", "position_bias_m", "heading_bias_rad")


def env_reflections(core: SnakeCore) -> tuple[Reflection, Reflection]:
    """Return how observations, their parts in a row, and actions look in a mirror. Raises ConfigError if unknown."""
    check_sides(core.config, core.spec.incline_rad, core.spec.incline_direction_rad)
    action = core.decoder.reflection()
    parts = [core.layout.reflection(action)]
    if core.privileged is not None:
        parts.append(core.privileged.reflection())
    return side_by_side(parts), action


def check_sides(config: EnvConfig, incline_rad: float = 0.0, direction_rad: float = 0.0) -> None:
    """Raise ConfigError for a setting that is not the same in a mirror, which it names."""
    listed = (
        ("faults", config.faults, "offset_rad", ("offset", "slipped")),
        ("sensors.encoder_faults", config.sensors.encoder_faults, "bias_rad", ("biased",)),
    )
    for path, faults, name, kinds in listed:
        for i, fault in enumerate(faults.events):
            if fault.kind in kinds and (spread := ends(getattr(fault, name))) != (-spread[1], -spread[0]):
                given = list(spread) if spread[0] != spread[1] else spread[0]
                expected = f"0, [-x, x], or {path}.kinds, drawn to either side"
                raise _one_sided(f"{path}.events[{i}].{name} is {show(given)}", expected)
    for kind in config.faults.present_kinds:
        if kind.endswith(("_left", "_right")):
            raise _one_sided(f"faults has {kind}", "kinds that fail both muscles")
    for name in _BIASES:
        drawn = getattr(config.randomisation, name)
        if drawn is not None and drawn.low != -drawn.high:
            raise _one_sided(f"randomisation.{name} is {{low: {drawn.low:g}, high: {drawn.high:g}}}", "low = -high")
    course = getattr(getattr(config, "course", None), "kind", "random")
    if incline_rad != 0.0 and course != "random":
        raise _one_sided(f"course.kind is {show(course)} on a slope (robot.incline_rad)", "random")
    if incline_rad != 0.0 and not config.start.random and abs(math.sin(direction_rad)) > 1e-9:
        raise _one_sided(f"robot.incline_direction_rad is {direction_rad:g}", "0 or pi, or start.random true")


def _one_sided(what: str, expected: str) -> ConfigError:
    return ConfigError(f"env.{what}, which is not the same in a mirror; expected {expected}")
