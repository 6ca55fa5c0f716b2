"""Truth about W simulated robots, as named columns for a critic in training, never for a policy.

``observation.privileged`` names them, in this order; a user's own are registered by ``register_privileged``. No policy
file holds them, and a real robot does not know them. Entries are ``clip(value * scale, -10, 10)``, as of observations.

``randomisation/<name>`` is what was drawn for the episode, as in the info of that name, from -1 (the lowest value that
any difficulty allows) to 1 (the highest).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from snake_gym.config import ConfigError
from snake_gym.interface.mirror import ALONG_LEFT, SAME, TURNED, Mirror, Reflection, find_reflection, side_by_side
from snake_gym.interface.observations import BOUND, Column, Field, n_joints, rate_scale
from snake_gym.plugins import check_free, check_numbers, choose_registered
from snake_gym.robot.chain import ChainSpec, FloatArray
from snake_gym.robot.measurement import Measurement, mean_angle, turn_back
from snake_gym.robot.protocol import Robot
from snake_gym.robot.spec import GRAVITY_M_S2
from snake_gym.simulation.fault_kinds import FAULT_KINDS
from snake_gym.simulation.randomisation import DrawnQuantities, RandomisationConfig

DRAWN = "randomisation/"
_DRAWN_MIRRORS: dict[str, Mirror] = {
    "angle_bias_rad": TURNED, "heading_bias_rad": TURNED, "position_bias_m": ALONG_LEFT, "slope_rad_place": TURNED,
    "patches_place": None,
}  # fmt: skip
"""Quantities that do not stay in a mirror; the rows of patches cannot be mirrored by signs."""


class Truth(NamedTuple):
    """What privileged columns are made from, in W worlds."""

    robot: Robot
    measurement: Measurement
    randomisation: DrawnQuantities | None
    fault_kinds: tuple[str, ...]
    """Kinds of joint faults that may come."""
    among_obstacles: bool

    @property
    def spec(self) -> ChainSpec:
        return self.robot.spec

    @property
    def heading(self) -> FloatArray:
        """(W,) [rad] true mean link angle, of a spatial robot the horizontal direction of its body."""
        return self.robot.heading()


Values = TypeVar("Values", bound=Callable[[Truth], FloatArray])


PRIVILEGED: dict[str, Column] = {}
"""All privileged columns by name, but for those of the randomisation."""


def register_privileged(
    name: str,
    unit: str,
    meaning: str,
    width: int | Callable[[Truth], int] = 1,
    scale: float | Callable[[Truth], float] = 1.0,
    mirror: Mirror = None,
    needs: str = "",
) -> Callable[[Values], Values]:
    """Decorator: make a function from ``Truth`` to values (W, width) a column for ``observation.privileged``.

    Arguments as of ``register_column``. Raises ConfigError where another function has the name.
    """

    def add(values: Values) -> Values:
        taken = DRAWN if name.startswith(DRAWN) else getattr(PRIVILEGED.get(name), "values", None)
        check_free(f"privileged column {name!r}", taken, values)
        PRIVILEGED[name] = Column(values, unit, meaning, width, scale, BOUND, needs, mirror)
        return values

    return add


def check_privileged(names: Sequence[str], randomisation: RandomisationConfig) -> None:
    """Raise ConfigError for a name that is not known, or named twice."""
    known = [*PRIVILEGED, *(DRAWN + name for name in randomisation.info_names)]
    for i, name in enumerate(names):
        where = f"observation.privileged[{i}]"
        choose_registered(name, known, where)
        if name in names[:i]:
            raise ConfigError(f"{where} is {name!r} again; expected each once")


class PrivilegedLayout:
    """Names, places and scales of the columns ``names`` in the worlds of ``truth``.

    Raises ConfigError for a column of which there is nothing in these worlds.
    """

    def __init__(self, names: Sequence[str], truth: Truth) -> None:
        self._truth = truth
        self._columns = [_column_of(name, truth) for name in names]
        self.fields: dict[str, Field] = {}
        self.size = 0
        for name, column in zip(names, self._columns, strict=True):
            self.fields[name] = column.place(name, self.size, truth, is_named=True)
            self.size += self.fields[name].width

    def reflection(self) -> Reflection:
        """Return how the columns look in a mirror. Raises ConfigError where nobody has said it."""
        return side_by_side(
            [
                find_reflection(column.mirror, place.width, f"the privileged column {place.name}")
                for column, place in zip(self._columns, self.fields.values(), strict=True)
            ]
        )

    def build(self, measurement: Measurement) -> NDArray[np.float32]:
        """The truth (W, P) float32 at the time of ``measurement``, a fresh array."""
        truth = self._truth._replace(measurement=measurement)
        parts, n_worlds = [], truth.robot.n_worlds
        for column, place in zip(self._columns, self.fields.values(), strict=True):
            values = check_numbers(column.values(truth), (n_worlds, place.width), f"the privileged column {place.name}")
            parts.append(values * place.scale if place.scale != 1.0 else values)
        shown = np.concatenate(parts, axis=1, dtype=np.float32, casting="same_kind")
        return shown.clip(-BOUND, BOUND, out=shown)


def _column_of(name: str, truth: Truth) -> Column:
    drawn = truth.randomisation
    if not name.startswith(DRAWN) or drawn is None:
        return PRIVILEGED[choose_registered(name, PRIVILEGED, "a name in observation.privileged")]
    quantity = name.removeprefix(DRAWN)
    return Column(
        lambda truth: drawn.shares(quantity), "1", f"what was drawn of {quantity}, from -1 (lowest) to 1 (highest)",
        drawn.shares(quantity).shape[1], mirror=_DRAWN_MIRRORS.get(quantity, SAME),
    )  # fmt: skip


# --- our own columns -------------------------------------------------------------------------------------------------


@register_privileged("true_joint_angle", "rad", "joint angle", n_joints, mirror=TURNED)
def true_joint_angle(truth: Truth) -> FloatArray:
    return truth.robot.joint_angle()


@register_privileged("true_joint_rate", "rad/s", "joint rate", n_joints, rate_scale, mirror=TURNED)
def true_joint_rate(truth: Truth) -> FloatArray:
    return truth.robot.joint_rate()


@register_privileged(
    "true_velocity", "m/s", "velocity of the centre of mass, along the mean link angle and to its left", 2,
    mirror=ALONG_LEFT,
)  # fmt: skip
def true_velocity(truth: Truth) -> FloatArray:
    return turn_back(truth.robot.state.centre_vel, truth.heading)


@register_privileged("true_turning_rate", "rad/s", "rate of the mean link angle", mirror=TURNED)
def true_turning_rate(truth: Truth) -> FloatArray:
    return truth.robot.turning_rate()[:, None]


@register_privileged(
    "position_error", "m", "measured minus true centre of mass, along the true mean link angle and to its left", 2,
    10.0, ALONG_LEFT,
)  # fmt: skip
def position_error(truth: Truth) -> FloatArray:
    """The measured centre is worked out from the measured head and joints (``simulation.sensors``)."""
    assert truth.measurement.centre_xy_w is not None
    return turn_back(truth.measurement.centre_xy_w - truth.robot.state.centre_xy, truth.heading)


@register_privileged("mean_angle_error", "rad", "measured minus true mean link angle", mirror=TURNED)
def mean_angle_error(truth: Truth) -> FloatArray:
    return (mean_angle(truth.measurement) - truth.heading)[:, None]


@register_privileged(
    "fault_kind", "1", "1 where a joint has a fault now, for each joint, in it for each kind that may come, by name",
    lambda truth: truth.spec.n_joints * len(truth.fault_kinds), mirror=SAME,
    needs="faults that may come, as by faults.n_max",
)  # fmt: skip
def fault_kind(truth: Truth) -> FloatArray:
    codes = np.array([FAULT_KINDS[kind].code for kind in truth.fault_kinds])
    first, second = truth.robot.acting_kinds()[..., None]
    return ((first == codes) | (second == codes)).reshape(truth.robot.n_worlds, -1).astype(np.float64)


@register_privileged(
    "true_contact_force", "N", "force of the obstacles on each link from the tail, along the link and to its left",
    lambda truth: 2 * truth.spec.n_links if truth.among_obstacles else 0,
    lambda truth: 1.0 / (GRAVITY_M_S2 * float(truth.spec.links("link_mass_kg").sum())), mirror=ALONG_LEFT,
    needs="a task with obstacles",
)  # fmt: skip
def true_contact_force(truth: Truth) -> FloatArray:
    state = truth.robot.state
    force = turn_back(state.contact_force.reshape(-1, 2), state.link_angle.ravel())
    return force.reshape(truth.robot.n_worlds, -1)
