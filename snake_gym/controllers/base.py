"""Base of controllers, which turn measurements and a goal into joint references; the caller carries their state.

A controller is a frozen set of parameters; all that changes is in a ``ControllerState``, a dict of arrays whose first
axis counts worlds, so that an env can mask-reset, save and restore it. It knows the *nominal* robot only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Annotated, Any, ClassVar, Protocol, TypeVar

import numpy as np
from pydantic import Field

from snake_gym.config import ConfigError
from snake_gym.plugins import check_free
from snake_gym.robot.measurement import Goal, Measurement
from snake_gym.robot.spec import FloatArray, RobotSpec

ControllerState = dict[str, FloatArray]
PerWorld = Mapping[str, FloatArray]

TWO_PI = 2.0 * math.pi
BELOW_TWO_PI = math.nextafter(TWO_PI, 0.0)
Gain = Annotated[float, Field(ge=0.0, le=1e3)]
Swing = Annotated[float, Field(ge=0.0, le=math.pi)]
"""Size of a joint angle [rad]."""


class Controller(Protocol):
    """Classical gait controller for W robots at once.

    A controller that compares the joints' motion with their references has ``command_given(reference, state)``, which
    is called with the references (W, J) [rad] really sent, where they are not those of ``command``.
    """

    n_joints: int

    def initial_state(self, n_worlds: int) -> ControllerState:
        """Return the state at the start of an episode; every array has shape (n_worlds, ...)."""
        ...

    def command(self, measurement: Measurement, goal: Goal, state: ControllerState, dt_s: float) -> FloatArray:
        """Return joint references (W, J) [rad] to hold for the next ``dt_s`` [s]; advance ``state`` in place."""
        ...

    def phase(self, state: ControllerState) -> FloatArray:
        """Return the gait phase (W,) [rad] that the next ``command`` will use."""
        ...


class Gait:
    """Base of gaits: settings, the nominal robot ``spec``, and a phase as state; a gait adds ``command``."""

    config_type: ClassVar[type[Any]]
    """Dataclass of the settings; ``register_controller`` sets it."""
    spatial: ClassVar[bool] = False
    """True for a gait of spatial robots; the others are for planar ones."""
    lopsided: ClassVar[tuple[str, ...] | None] = None
    """Settings that have to be 0 for a gait that commands a mirrored robot (``interface.mirror``) the mirrored angles,
    half a period later; None: it is not known to do so."""

    def __init__(self, config: Any, spec: Any, per_world: PerWorld | None = None) -> None:
        self.config = config
        self.spec = spec
        self.n_joints = spec.n_joints
        self.parameter = per_world_parameters(config, per_world)

    def initial_state(self, n_worlds: int) -> ControllerState:
        """Return the state at the start of an episode: all gaits at phase zero."""
        return {"phase": np.zeros(n_worlds)}

    def phase(self, state: ControllerState) -> FloatArray:
        """Return the gait phase (W,) [rad] of the tail joint that the next command will use."""
        return state["phase"]

    def limited(self, reference: FloatArray) -> FloatArray:
        """Return ``reference`` (J, W) as joint references (W, J) [rad] within the robot's joint limit."""
        limit = self.spec.joint_limit_rad
        kept = np.minimum(reference, limit)  # in two steps: np.clip takes twice as long
        np.maximum(kept, -limit, out=kept)
        return kept.T.copy()


CONTROLLERS: dict[str, type[Any]] = {}
"""Controllers by kind, in the order in which they were registered."""

MadeController = TypeVar("MadeController", bound=type[Any])


def register_controller(kind: str, config_type: type[Any]) -> Callable[[MadeController], MadeController]:
    """Return a class decorator that registers a controller as ``kind``, with settings of the dataclass ``config_type``.

    The class is made as ``cls(config, spec, per_world)``, see ``Gait``. A field of ``config_type`` that holds the
    settings of a controller within this one, as a dict, has ``metadata={"controller": True}``. Raises ValueError where
    another class has the name, TypeError where ``config_type`` is no dataclass.
    """
    if not is_dataclass(config_type):
        raise TypeError(f"config_type of controller {kind!r} is {config_type!r}; expected a dataclass")

    def register(cls: MadeController) -> MadeController:
        check_free(f"controller {kind!r}", CONTROLLERS.get(kind), cls)
        cls.config_type = config_type
        CONTROLLERS[kind] = cls
        return cls

    return register


def check_mirror(controller: Any, where: str) -> None:
    """Raise ConfigError unless a controller commands a mirrored robot the mirrored angles, see ``Gait.lopsided``."""
    lopsided = getattr(controller, "lopsided", None)
    name = type(controller).__name__
    if lopsided is None:
        raise ConfigError(
            f"{where}: {name} does not say whether it looks the same in a mirror; if it does, give the class "
            "lopsided = (), or the names of the settings that have to be 0 for it"
        )
    for setting in lopsided:
        value = np.asarray(controller.parameter[setting])
        if value.any():
            raise ConfigError(f"{where}.{setting} is {value.flat[0]:g}, not the same in a mirror; expected 0")


def per_world_parameters(config: Any, per_world: PerWorld | None) -> dict[str, FloatArray]:
    """Return every number of ``config`` as a 0-d array, or (W,) for the fields named in ``per_world``.

    The arrays of ``per_world`` (W,) replace the one value of ``config``. Raises ValueError where a name is no number of
    the configuration, the lengths differ, or a value is out of range.
    """
    given = {name: np.asarray(values, dtype=np.float64) for name, values in (per_world or {}).items()}
    single = {f.name: getattr(config, f.name) for f in fields(config)}
    single = {name: value for name, value in single.items() if type(value) in (float, int)}
    for name, values in given.items():
        if name not in single:
            raise ValueError(f"parameter '{name}' cannot be set per world; expected one of {sorted(single)}")
        if values.ndim != 1 or values.size != next(iter(given.values())).size:
            raise ValueError(f"parameter '{name}' has shape {values.shape}; expected one number for each world")
    for row in zip(*given.values(), strict=True):
        replace(config, **{name: float(value) for name, value in zip(given, row, strict=True)})  # checks the ranges
    parameters = {name: np.array(value, dtype=np.float64) for name, value in single.items()}
    parameters.update({name: values.copy() for name, values in given.items()})
    return parameters


def make_model(spec: RobotSpec, n_worlds: int, what: str) -> Any:
    """Return simulated robots as a model for ``what``. Raises ConfigError where the simulation does not load."""
    try:
        from snake_gym.simulation.simulated_robot import SimulatedRobot
    except ImportError as error:
        raise ConfigError(f"{what} needs the simulation, which does not load here: {error}") from None
    return SimulatedRobot(spec, n_worlds)


def wrap_phase(phase: FloatArray) -> None:
    """Bring ``phase`` [rad] into [0, 2 pi), in place."""
    np.remainder(phase, TWO_PI, out=phase)
    np.minimum(phase, BELOW_TWO_PI, out=phase)  # a phase just below zero rounds up to 2 pi


@dataclass(frozen=True)
class SearchRange:
    """Range in which the tuner looks for a parameter."""

    low: float
    high: float
    log: bool = False
    """True if the logarithm is searched evenly, not the value."""
    limit: Callable[[RobotSpec], float] | None = None
    """Function that gives the upper end for a robot, where that is lower than ``high``."""


def searched(
    default: Any, low: float, high: float, log: bool = False, limit: Callable[[RobotSpec], float] | None = None
) -> Any:
    """Return a field of a controller's settings that the tuner searches, see ``SearchRange``."""
    return field(default=default, metadata={"search": SearchRange(low, high, log, limit)})


def search_ranges(config_type: type[Any]) -> dict[str, SearchRange]:
    """Return the searched fields of a controller's settings, in their order.

    A field that a subclass declares anew, for another default, keeps the range that it had.
    """
    declared = [getattr(cls, "__dataclass_fields__", {}) for cls in config_type.__mro__]
    found = {}
    for name in (setting.name for setting in fields(config_type)):
        ranges = [of[name].metadata["search"] for of in declared if name in of and "search" in of[name].metadata]
        if ranges:
            found[name] = ranges[0]
    return found
