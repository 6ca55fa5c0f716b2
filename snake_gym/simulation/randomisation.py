"""A world that varies: what differs from episode to episode between the simulated robot and the nominal one.

``quantities`` has the table of what can vary; a user's own functions vary further parameters. Each quantity is drawn
anew for every episode, uniformly in a range of its own, and is off by default. ``level`` shrinks all ranges towards the
nominal robot, for curricula: at 0 nothing varies, at 1 everything does as set. Controllers, residual actions and what
a sensor derives know the nominal robot only; the true one is ``SimulatedRobot.params``.

Each quantity has a place of its own in its world's random stream, and so has each thing that is drawn anew in every
control step: switching one on moves no other draw. What is drawn for an episode is in the infos, as
``randomisation/<name>``.

Delays add to ``actuator.delay_s``. Jitter adds, in every control step, a time uniform from 0 to the episode's value.
Pushes come at random times: for one control step a force in a random direction acts on every link by its mass, so that
a free robot would be faster by ``push_m_s``.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from operator import attrgetter
from types import SimpleNamespace
from typing import Annotated, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from snake_gym.config import ConfigError, Settings
from snake_gym.config.settings import Share
from snake_gym.physics.state import Patches
from snake_gym.plugins import check_free, choose_registered
from snake_gym.robot.spec import GRAVITY_M_S2, FloatArray, RobotSpec
from snake_gym.simulation.fault_kinds import Law, lacks_gears
from snake_gym.simulation.quantities import QUANTITIES, STEEPEST_RAD, Range
from snake_gym.simulation.robot_params import chain_params
from snake_gym.simulation.sensor_errors import SENSED, SensorErrors
from snake_gym.simulation.simulated_robot import SimulatedRobot
from snake_gym.simulation.streams import RandomStreams, begin_streams

Rows = NDArray[np.int64]
_PLACE = "_place"
_BODIES = ("mass", "mass_ahead", "link_length", "payload_kg")


class Randomiser(NamedTuple):
    """A user's function that changes parameters of one robot in place: ``function(params, rng)``."""

    function: Callable[[Any, np.random.Generator], None]
    laws: tuple[Law, ...]


RANDOMISERS: dict[str, Randomiser] = {}
"""Registered functions by name."""
Function = TypeVar("Function", bound=Callable[[Any, np.random.Generator], None])


def register_randomiser(name: str, laws: tuple[Law, ...] = ()) -> Callable[[Function], Function]:
    """Return a decorator that gives a function ``randomise(params, rng)`` a name for ``randomisation.functions``.

    It is called for each new episode of each world and changes the parameters in place: those of one robot, with the
    fields of ``physics.state.ChainParams`` (N,) or (J,). ``rng`` follows from the world's seed and episode. ``laws`` of
    the physics switches on those that the nominal robot may lack. Raises ConfigError where another function has the
    name.
    """

    def register(function: Function) -> Function:
        check_free(f"randomiser {name!r}", getattr(RANDOMISERS.get(name), "function", None), function)
        RANDOMISERS[name] = Randomiser(function, laws)
        return function

    return register


_FIELDS = [(name, Annotated[Range, quantity] | None) for name, quantity in QUANTITIES.items()]
_SIZE = list(QUANTITIES).index("patches") + 1
"""Place of patch_size_m among the fields: stored hashes follow their order."""


class RandomisationConfig(Settings):
    """What varies from episode to episode, uniform in {low, high}; null: nothing. Amounts add to nominal ones."""

    level: Share = 1.0
    """Share of all ranges that is used, from the nominal robot on: 0, nothing varies, to 1."""
    __annotations__ |= dict(_FIELDS[:_SIZE])
    locals().update(dict.fromkeys(QUANTITIES))
    patch_size_m: Annotated[float, Field(ge=1e-3, le=1e6)] = 0.5
    """Side of a patch of the ground."""
    __annotations__ |= dict(_FIELDS[_SIZE:])
    functions: tuple[str, ...] = ()
    """Registered functions that change further parameters, in this order (docs/extending.md)."""

    @classmethod
    def notes_of_tables(cls) -> dict[str, str]:
        """Return what the reference page says of settings that stand in a table."""
        return {
            name: f"{one.meaning} [{one.unit}]; ends in [{one.lowest:g}, {one.highest:g}], nominal {one.nominal:g}."
            for name, one in QUANTITIES.items()
        }

    def check(self) -> None:
        """Raise ValueError for one of a pair that has no effect without the other, or an unknown function."""
        for name in self.ranges:
            partner = QUANTITIES[name].partner
            if partner and getattr(self, partner) is None:
                raise ValueError(f"{partner} is null, but {name} is set; expected both or none")
        for i, name in enumerate(self.functions):
            choose_registered(name, RANDOMISERS, f"functions[{i}]")

    @property
    def ranges(self) -> dict[str, Range]:
        """The quantities that vary, by name."""
        return {name: given for name in QUANTITIES if (given := getattr(self, name)) is not None}

    @property
    def any(self) -> bool:
        """Whether something varies."""
        return bool(self.ranges or self.functions)

    @property
    def info_names(self) -> tuple[str, ...]:
        """Names of the infos on what was drawn, without ``randomisation/``."""
        places = [name + _PLACE for name in self.ranges if QUANTITIES[name].places]
        return ("level", *self.ranges, *places) if self.any else ()

    @property
    def laws(self) -> set[Law]:
        """Laws of the physics that the varied robots need."""
        laws = {law for name in self.functions for law in RANDOMISERS[name].laws}
        return laws | {law for name in self.ranges if (law := QUANTITIES[name].law) and self.highest(name) > 0.0}

    def highest(self, name: str) -> float:
        """Return the largest value of a quantity at any level; the nominal one where it does not vary."""
        given, nominal = getattr(self, name), QUANTITIES[name].nominal
        return nominal if given is None else max(given.high, nominal)

    def check_robot(self, spec: RobotSpec) -> None:
        """Raise ConfigError for what this robot does not have, or cannot have at the end of a range."""
        for name in self.ranges:
            one = QUANTITIES[name]
            if one.paths and not any(np.any(attrgetter(path)(spec)) for path in one.paths):
                expected = f"{' or '.join(one.paths)} > 0"
            elif one.limits and not any(np.isfinite(spec.joints(path)).any() for path in one.limits):
                expected = f"a finite {' or '.join(one.limits)}"
            else:
                continue
            raise ConfigError(f"randomisation.{name} is set, but {spec.name} has none; expected {expected}")
        for name in ("command_jitter_s", "encoder_jitter_s", "pose_jitter_s"):
            if self.highest(name) > spec.control_dt_s:
                raise ConfigError(
                    f"randomisation.{name}.high is {self.highest(name):g}; expected at most the robot's control_dt_s, "
                    f"{spec.control_dt_s:g}"
                )
        actuator, delay_s = spec.actuator, self.highest("command_delay_s")
        late = delay_s + self.highest("command_jitter_s")
        if late > 0.0 and actuator.kind != "position":
            name = "command_delay_s" if delay_s > 0.0 else "command_jitter_s"
            raise ConfigError(
                f"randomisation.{name} is set, but robot.actuator.kind is {actuator.kind!r}; expected 'position'"
            )
        if actuator.delay_s + late > 1.0:
            raise ConfigError(
                f"randomisation.command_delay_s.high is {delay_s:g}; expected at most 1 s with command_jitter_s and "
                "actuator.delay_s"
            )
        room = STEEPEST_RAD - abs(spec.incline_rad)
        if "slope_rad" in self.ranges and self.highest("slope_rad") > room:
            raise ConfigError(
                f"randomisation.slope_rad.high is {self.highest('slope_rad'):g}; expected at most {max(room, 0.0):g}, "
                f"as slopes end at {STEEPEST_RAD:.4g}"
            )
        if self.highest("backlash_rad") > 0.0 and lacks_gears(spec):
            raise ConfigError(
                f"randomisation.backlash_rad is set, but robot.actuator.kind is {actuator.kind!r}; expected 'position' "
                "or 'torque'"
            )


class Columns(NamedTuple):
    """Columns of the array of all quantities, in the order of the table; those that do not vary are nominal."""

    of: dict[str, slice]
    """Columns of each quantity, and of its places."""
    low: FloatArray
    high: FloatArray
    nominal: FloatArray
    """NaN: a place, in [0, 1) at any level."""


def lay_out(config: RandomisationConfig, spec: Any) -> Columns:
    """Return the columns of all quantities for a robot; which of them vary moves none of them."""
    of: dict[str, slice] = {}
    rows: list[tuple[float, float, float]] = []
    for name, one in QUANTITIES.items():
        given = getattr(config, name) or Range(one.nominal, one.nominal)
        width: int = getattr(spec, f"n_{one.per}s") if isinstance(one.per, str) else one.per
        of[name] = slice(len(rows), len(rows) + width)
        rows += [(given.low, given.high, one.nominal)] * width
        of[name + _PLACE] = slice(len(rows), len(rows) + one.places)
        rows += [(0.0, 1.0, math.nan)] * one.places
    return Columns(of, *np.array(rows).T.copy())


class DrawnQuantities:
    """What varies in W worlds, drawn for each episode and shown in infos; a subclass writes it to its robots.

    ``params``: those of one nominal robot, arrays (1, ...).
    """

    def __init__(self, config: RandomisationConfig, spec: Any, params: Any, n_worlds: int) -> None:
        self.config, self.n_worlds = config, n_worlds
        self._nominal = params
        self._columns = lay_out(config, spec)
        self.level: FloatArray = np.full(n_worlds, config.level)
        """Level of each world's next episode (W,), in [0, 1]: a curriculum may change it."""
        self._present_level = self.level.copy()
        nominal = np.where(np.isnan(self._columns.nominal), 0.0, self._columns.nominal)
        self.values: FloatArray = np.tile(nominal, (n_worlds, 1))
        """All quantities of the present episodes (W, columns)."""
        self._streams = RandomStreams("randomisation", n_worlds)
        self._step_streams = RandomStreams("randomisation of steps", n_worlds)
        self._function_streams = RandomStreams("randomisation functions", n_worlds)
        self.sensors: SensorErrors | None = None
        """Errors of the sensors; None: none vary."""
        self._infos: dict[str, NDArray[Any]] = {}
        self._write_infos()

    @abstractmethod
    def _change_robots(self, rows: Rows) -> None:
        """Write what was drawn to the true robots ``rows``; it follows from ``values`` and streams alone."""

    def before_step(self) -> None:
        """Set what differs from control step to control step."""

    def drawn_params(self, rows: Rows) -> Any:
        """Return the parameters (M, ...) that the quantities make of the worlds ``rows`` (M,)."""
        params = type(self._nominal)(*(np.repeat(array, rows.size, axis=0) for array in self._nominal))
        values, of = self.values[rows], self._columns.of
        for name in sorted(self.config.ranges, key="payload_kg".__eq__):  # a payload sits on a link as drawn: last
            if (write := QUANTITIES[name].write) is not None:
                write(params, values[:, of[name]], values[:, of[name + _PLACE]])
        return params

    def apply_functions(self, params: Any, rows: Rows) -> None:
        """Let the user's functions change the parameters (M, ...) of the worlds ``rows`` (M,), by their level.

        Raises ConfigError for parameters that no robot can have.
        """
        for name in self.config.functions:
            keys, before = self._function_streams.branch(name).key[rows], [array.copy() for array in params]
            for m, key in enumerate(keys.tolist()):
                own = SimpleNamespace(**{field: array[m].copy() for field, array in params._asdict().items()})
                if RANDOMISERS[name].function(own, np.random.default_rng(key)) is not None:
                    raise ConfigError(f"the randomiser {name} returns a value; expected None, params changed in place")
                for field, array in params._asdict().items():
                    array[m] = getattr(own, field)
            for field, was, now in zip(params._fields, before, params, strict=True):
                _check_param(name, field, now)
                level = self._present_level[rows].reshape(-1, *(1,) * (now.ndim - 1))
                with np.errstate(invalid="ignore"):  # a limit that was or becomes inf
                    part = was + level * (now - was)
                now[:] = np.where(level == 1.0, now, np.where(np.isfinite(part), part, was))

    def __getitem__(self, name: str) -> FloatArray:
        """Return the present values of a quantity (W,), or (W, n) where a robot has several; not copied."""
        columns = self._columns.of[name]
        return self.values[:, columns.start] if columns.stop - columns.start == 1 else self.values[:, columns]

    def begin(self, seeds: NDArray[np.int64], episodes: NDArray[np.int64], rows: Rows) -> None:
        """Draw anew for the new episodes of the worlds ``rows``; arguments as of ``RandomStreams``."""
        self._present_level[rows] = self.level[rows]
        begin_streams((self._streams, self._step_streams, self._function_streams), seeds, episodes, rows)
        u = self._streams.uniform(self.values.shape[1], rows)
        of, level = self._columns, self.level[rows][:, None]
        low = of.nominal + level * (of.low - of.nominal)
        high = of.nominal + level * (of.high - of.nominal)
        self.values[rows] = np.where(np.isnan(of.nominal), u, low + u * (high - low))
        self._change_robots(rows)
        if self.sensors is not None:
            self.sensors.begin(seeds, episodes, rows)
        self._write_infos()

    def shares(self, name: str) -> FloatArray:
        """Return where what was drawn lies between the lowest and the highest value that any level allows (W, n), from
        -1 to 1; 0 where that is one value.

        ``name``: one of ``RandomisationConfig.info_names``.
        """
        if name == "level":
            return 2.0 * self._present_level[:, None] - 1.0
        of, columns = self._columns, self._columns.of[name]
        low, high = (ends[columns] for ends in (np.fmin(of.low, of.nominal), np.fmax(of.high, of.nominal)))
        half = 0.5 * (high - low)
        return np.where(half > 0.0, (self.values[:, columns] - low - half) / np.where(half > 0.0, half, 1.0), 0.0)

    def infos(self) -> Mapping[str, NDArray[Any]]:
        """Return what was drawn for the present episodes, by name; read-only arrays that later episodes replace."""
        return self._infos

    def scenario(self) -> dict[str, NDArray[Any]]:
        """Return all quantities of the present episodes, a copy."""
        keys = {name: self._function_streams.branch(name).key for name in self.config.functions}
        return {"randomisation": self.values.copy(), **{f"randomisation/{name}": key for name, key in keys.items()}}

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        """Return everything that later steps depend on, by name: the arrays themselves."""
        arrays: dict[str, NDArray[Any]] = {
            "randomisation/values": self.values, "randomisation/level": self.level,
            "randomisation/present_level": self._present_level,
        }  # fmt: skip
        arrays |= self._step_streams.state_arrays("stream/randomisation")
        if self.config.functions:
            arrays |= self._function_streams.state_arrays("stream/randomisation_functions")
        return arrays | (self.sensors.state_arrays() if self.sensors is not None else {})

    def restored(self) -> None:
        """Make the rest follow after the arrays of ``state_arrays`` were written to."""
        self._change_robots(np.arange(self.n_worlds))
        self._write_infos()

    def _write_infos(self) -> None:
        values = self.values.copy()
        values.flags.writeable = False
        self._infos = {"randomisation/level": self._present_level.copy()}
        for name, columns in self._columns.of.items():
            if getattr(self.config, name.removesuffix(_PLACE)) is not None and columns.stop > columns.start:
                one = columns.stop - columns.start == 1
                self._infos["randomisation/" + name] = values[:, columns.start] if one else values[:, columns]


class Randomisation(DrawnQuantities):
    """Quantities of W planar robots. Raises ConfigError for laws that the robot ``spec`` cannot have."""

    def __init__(self, config: RandomisationConfig, spec: RobotSpec, robot: SimulatedRobot) -> None:
        n_worlds = robot.n_worlds
        super().__init__(config, spec, chain_params(spec, 1), n_worlds)
        self.robot = robot
        robot.allow_laws(config.laws)
        robot.same_params = False
        robot.nominal_bodies = config.ranges.keys().isdisjoint(_BODIES) and not config.functions
        self._base_acc = robot.params.body_acc.copy()
        self._dt_s = spec.control_dt_s
        late = config.highest("command_delay_s") + config.highest("command_jitter_s")
        self._delay = robot.delay_commands(spec.actuator.delay_s + late) if late > 0.0 else None
        self._delay_s = self._delay.delay_s if self._delay is not None else np.zeros(n_worlds)
        self._least_delay_s = np.zeros(n_worlds)
        self._push_chance, self._push_acc = np.zeros(n_worlds), np.zeros(n_worlds)
        self._steps_differ = not config.ranges.keys().isdisjoint(("push_hz", "command_jitter_s"))
        pose = robot.state.link_angle.copy(), robot.state.centre_xy.copy()
        waves = np.zeros(n_worlds), np.zeros(n_worlds), np.zeros((n_worlds, 2))
        self._patches = Patches(*waves, config.patch_size_m, *pose)
        if "patches" in config.ranges:
            robot.lay_patches(self._patches)
        if not config.ranges.keys().isdisjoint(SENSED):
            self.sensors = SensorErrors(self, spec)

    def before_step(self) -> None:
        """Set what differs from control step to control step: delays of commands, and pushes."""
        if not self._steps_differ:
            return
        late, pushed, where = self._step_streams.uniform(3).T
        self._delay_s[:] = self._least_delay_s + self["command_jitter_s"] * late
        push, angle = np.where(pushed < self._push_chance, self._push_acc, 0.0), 2.0 * np.pi * where
        along = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        self.robot.params.body_acc[:] = self._base_acc + push[:, None] * along

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        """Return everything that later steps depend on, by name: the arrays themselves."""
        late = self._delay
        waiting = {} if late is None else {"randomisation/waiting": late.waiting, "randomisation/due": late.due}
        return super().state_arrays() | waiting

    def _change_robots(self, rows: Rows) -> None:
        """Write what was drawn to the true robots ``rows``; Coulomb friction follows the weight."""
        drawn, nominal = self.drawn_params(rows), self._nominal
        normal, level = (_normal(acc) for acc in (drawn.body_acc, nominal.body_acc))
        weight = drawn.mass / nominal.mass * (normal / level)[:, None]
        for friction in (drawn.coulomb_t, drawn.coulomb_n, drawn.coulomb_r):
            friction *= weight
        if self.config.functions:
            self.apply_functions(drawn, rows)
            self.robot.check_laws(drawn)
        for ours, new in zip(self.robot.params, drawn, strict=True):
            ours[rows] = new
        self._base_acc[rows] = drawn.body_acc
        place = 2.0 * np.pi * self["patches_place"][rows]
        self._patches.height[rows] = self["patches"][rows]
        self._patches.direction[rows], self._patches.phase[rows] = place[:, 0], place[:, 1:]
        self._push_chance[rows] = -np.expm1(-self["push_hz"][rows] * self._dt_s)
        self._push_acc[rows] = self["push_m_s"][rows] / self._dt_s
        delay_s = self.robot.spec.actuator.delay_s + self["command_delay_s"][rows]
        self._least_delay_s[rows] = self._delay_s[rows] = delay_s
        if self.sensors is not None:
            self.sensors.take_over(rows)


def _check_param(name: str, field: str, values: FloatArray) -> None:
    """Raise ConfigError where the function ``name`` has made no parameter of a robot."""
    if field in ("ahead", "body_acc"):
        good, expected = np.isfinite(values), "a finite number"
    elif field in ("mass", "inertia", "half_length"):
        good, expected = np.isfinite(values) & (values > 0.0), "> 0"
    else:
        good, expected = values >= 0.0, ">= 0"
    if not good.all():
        raise ConfigError(f"the randomiser {name} sets params.{field} to {values[~good][0]:g}; expected {expected}")


def _normal(body_acc: FloatArray) -> FloatArray:
    """Return gravity's part across the ground (M,) [m/s^2] where ``body_acc`` (M, 2) is its part along it."""
    return np.sqrt(GRAVITY_M_S2**2 - (body_acc**2).sum(axis=1))
