"""A world that varies: what differs from episode to episode between the robot that is simulated and the nominal one.

Each quantity is drawn anew for every episode, uniformly in a range of its own, and is off by default. ``level`` shrinks
all ranges towards the nominal robot, for curricula: at 0 nothing varies, at 1 everything does as set. Controllers,
residual actions and what a sensor derives know the nominal robot only; the true one is ``SimulatedRobot.params``.

Each quantity has a place of its own in its world's random stream, and so has each thing that is drawn anew in every
control step: switching one on moves no other draw. What is drawn for an episode is in the infos, as
``randomisation/<name>``.

Body: a link's inertia follows its mass and the square of its length; Coulomb friction follows the weight. Where a
link's mass has its centre off the middle, the ground bears the link there. A payload sits at the middle of one link,
any with the same chance. Joint angles, and so the head's place for a given shape, are
those of the true lengths.

Ground: friction along, across and against rotation is scaled, viscous and Coulomb alike, and that along a link that
moves tail first once more; patches, as on an egg box,
scale all three from place to place (``physics.state.Patches``), for each link by where its middle is as the control
step begins. A slope, downhill in any direction, adds to that of the robot's settings.

Supply: its voltage scales torque limits, speed limits and no-load speeds, as of a DC motor; its resistance stays.

Delays add to ``actuator.delay_s``. Jitter adds, in every control step, a time uniform from 0 to the episode's value.
Late readings lie on straight lines between those of whole control steps. Contact sensors and the scanner are not late.

Pushes come at random times: for one control step a force in a random direction acts on every link by its mass, so that
a free robot would be faster by ``push_m_s``.

Pose: the source loses the robot at random times and repeats the last pose meanwhile; ``pose_valid`` tells so.
"""

from __future__ import annotations

import dataclasses
import math
import typing
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from operator import attrgetter
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from snake_gym.config import ConfigError, Settings, check_order
from snake_gym.config.settings import Share, declared_types
from snake_gym.physics.state import Patches
from snake_gym.robot.measurement import Measurement
from snake_gym.robot.spec import GRAVITY_M_S2, FloatArray, RobotSpec
from snake_gym.simulation.disturbances import draw_step, read_chains, settle_poses
from snake_gym.simulation.simulated_robot import SimulatedRobot, chain_params
from snake_gym.simulation.streams import RandomStreams

Rows = NDArray[np.int64]
STEEPEST_RAD = math.pi / 4.0
"""Steepest slope of the ground, that of the robot's settings included."""


class Uniform(Settings):
    """Range of a quantity that is uniform in [low, high]; at the value ``nominal`` it changes nothing."""

    nominal: ClassVar[float] = 0.0
    low: float = 0.0
    """Lowest value."""
    high: float = 0.0
    """Highest value."""

    def check(self) -> None:
        """Raise ValueError unless low and high are in this order."""
        check_order(self, "low", "high")


FactorNumber = Annotated[float, Field(ge=0.01, le=100.0)]
Amount = Annotated[float, Field(ge=0.0, le=1e3)]
ShareBelowOne = Annotated[float, Field(ge=0.0, lt=1.0)]
Delay = Annotated[float, Field(ge=0.0, le=1.0)]
Error = Annotated[float, Field(ge=-1e3, le=1e3)]


class Factor(Uniform):
    """Factor on what the nominal robot has; 1 changes nothing."""

    nominal = 1.0
    low: FactorNumber = 1.0
    high: FactorNumber = 1.0


class More(Uniform):
    """Amount beyond what the nominal robot has."""

    low: Amount = 0.0
    high: Amount = 0.0


class Ripple(Uniform):
    """Share of a quantity by which it goes up and down."""

    low: ShareBelowOne = 0.0
    high: ShareBelowOne = 0.0


class Lean(Uniform):
    """Share of half a link's length by which something sits ahead of the middle; negative: behind it."""

    low: Annotated[float, Field(ge=-0.9, le=0.9)] = 0.0
    high: Annotated[float, Field(ge=-0.9, le=0.9)] = 0.0


class Later(Uniform):
    """Time [s] by which something is later."""

    low: Delay = 0.0
    high: Delay = 0.0


class Slope(Uniform):
    """Angle [rad] between the ground and the horizontal."""

    low: Annotated[float, Field(ge=0.0, le=STEEPEST_RAD)] = 0.0
    high: Annotated[float, Field(ge=0.0, le=STEEPEST_RAD)] = 0.0


class Bias(Uniform):
    """Constant error of a reading, to either side."""

    low: Error = 0.0
    high: Error = 0.0


class RandomisationConfig(Settings):
    """What varies from episode to episode, uniform in {low, high}; null: nothing. Amounts add to nominal ones."""

    level: Share = 1.0
    """Share of all ranges that is used, from the nominal robot on: 0, nothing varies, to 1."""
    friction_along: Factor | None = None
    """Factor of ground friction along the links, viscous and Coulomb, of spatial robots in all directions; one for the
    world."""
    friction_across: Factor | None = None
    """Factor of ground friction across the links; one for the world."""
    friction_turning: Factor | None = None
    """Factor of ground friction against rotation; one for the world."""
    patches: Ripple | None = None
    """Largest change of friction from place to place, as a share."""
    patch_size_m: Annotated[float, Field(ge=1e-3, le=1e6)] = 0.5
    """Side of a patch of the ground."""
    slope_rad: Slope | None = None
    """Slope of the ground, downhill in any direction."""
    mass: Factor | None = None
    """Factor of each link's mass."""
    link_length: Factor | None = None
    """Factor of each link's length."""
    payload_kg: More | None = None
    """Payload on one link."""
    servo_gain: Factor | None = None
    """Factor of each joint's kp."""
    servo_damping: Factor | None = None
    """Factor of each joint's kd."""
    torque_limit: Factor | None = None
    """Factor of each joint's torque limit."""
    speed_limit: Factor | None = None
    """Factor of each joint's speed limit."""
    supply_voltage: Factor | None = None
    """Factor of the supply's voltage, and so of torque and speed limits and no-load speeds; one for the robot."""
    backlash_rad: More | None = None
    """More backlash of each joint."""
    joint_friction_nm: More | None = None
    """More dry friction of each joint."""
    command_delay_s: Later | None = None
    """More delay of the commands."""
    command_jitter_s: Later | None = None
    """Largest further delay of the commands, drawn anew for each."""
    encoder_delay_s: Later | None = None
    """Delay of joint angles and rates."""
    encoder_jitter_s: Later | None = None
    """Largest further delay of joint angles and rates, drawn anew in each control step."""
    pose_delay_s: Later | None = None
    """Delay of the head's pose."""
    pose_jitter_s: Later | None = None
    """Largest further delay of the head's pose, drawn anew in each control step."""
    angle_noise_rad: More | None = None
    """Standard deviation of white noise on joint angles."""
    rate_noise_rad_s: More | None = None
    """Standard deviation of white noise on joint rates."""
    position_noise_m: More | None = None
    """Standard deviation of white noise on the head's position."""
    heading_noise_rad: More | None = None
    """Standard deviation of white noise on the head's angle."""
    angle_bias_rad: Bias | None = None
    """Constant error of each joint angle, as of a horn on the wrong tooth or a poor calibration."""
    position_bias_m: Bias | None = None
    """Constant error of the head's position along x and along y."""
    heading_bias_rad: Bias | None = None
    """Constant error of the head's angle, as of a tag glued on askew."""
    pose_loss_hz: More | None = None
    """How often the pose source loses the robot."""
    pose_outage_s: More | None = None
    """How long it has lost it each time."""
    push_hz: More | None = None
    """How often the robot is pushed."""
    push_m_s: More | None = None
    """Change of speed that a push gives."""
    friction_backward: Factor | None = None
    """Further factor of ground friction along links that move tail first, as of scales; one for the world."""
    mass_ahead: Lean | None = None
    """Distance of each link's centre of mass ahead of its middle, as a share of half its length."""

    def check(self) -> None:
        """Raise ValueError for one of a pair that has no effect without the other."""
        for one, other in (("pose_loss_hz", "pose_outage_s"), ("push_hz", "push_m_s")):
            if (getattr(self, one) is None) != (getattr(self, other) is None):
                missing, there = (one, other) if getattr(self, one) is None else (other, one)
                raise ValueError(f"{missing} is null, but {there} is set; expected both or none")

    @property
    def ranges(self) -> dict[str, Uniform]:
        """The quantities that vary, by name."""
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, Uniform)}

    @property
    def told(self) -> tuple[str, ...]:
        """Names of the infos on what was drawn, without ``randomisation/``."""
        places = [name + _PLACE for name in self.ranges if name in _PLACES]
        return ("level", *self.ranges, *places) if self.ranges else ()

    def highest(self, name: str) -> float:
        """Return the largest value of a quantity at any level; the nominal one where it does not vary."""
        given = getattr(self, name)
        return 0.0 if given is None else max(given.high, given.nominal)

    def longest_link(self) -> float:
        """Return the largest factor of a link's length."""
        return max(1.0, self.highest("link_length"))

    def check_robot(self, spec: RobotSpec) -> RobotSpec:
        """Return a robot with all laws that the varied robots may have, each as hard to step as any of them.

        Raises ConfigError for what this robot does not have.
        """
        ranges = self.ranges
        for name, paths in _SCALED.items():
            if name in ranges and not any(np.any(attrgetter(path)(spec)) for path in paths):
                raise ConfigError(
                    f"randomisation.{name} is set, but {spec.name} has none; expected {' or '.join(paths)} > 0"
                )
        for name, paths in _LIMITED.items():
            if name in ranges and not any(np.isfinite(spec.joints(path)).any() for path in paths):
                wanted = " or ".join(paths)
                raise ConfigError(f"randomisation.{name} is set, but {spec.name} has none; expected a finite {wanted}")
        for name in ("command_jitter_s", "encoder_jitter_s", "pose_jitter_s"):
            if self.highest(name) > spec.control_dt_s:
                raise ConfigError(
                    f"randomisation.{name}.high is {self.highest(name):g}; expected at most the robot's control_dt_s, "
                    f"{spec.control_dt_s:g}"
                )
        actuator = spec.actuator
        late = self.highest("command_delay_s") + self.highest("command_jitter_s")
        if late > 0.0 and actuator.kind != "position":
            name = "command_delay_s" if self.command_delay_s else "command_jitter_s"
            raise ConfigError(
                f"randomisation.{name} is set, but robot.actuator.kind is {actuator.kind!r}; expected 'position'"
            )
        if actuator.delay_s + late > 1.0:
            raise ConfigError(
                f"randomisation.command_delay_s.high is {self.highest('command_delay_s'):g}; expected at most 1 s with "
                "command_jitter_s and actuator.delay_s"
            )
        if self.slope_rad and abs(spec.incline_rad) + self.slope_rad.high > STEEPEST_RAD:
            raise ConfigError(
                f"randomisation.slope_rad.high is {self.slope_rad.high:g}; expected at most "
                f"{max(STEEPEST_RAD - abs(spec.incline_rad), 0.0):g}, as slopes end at {STEEPEST_RAD:.4g}"
            )
        try:
            return self._hardest(spec)
        except ConfigError as error:
            set_ones = [name for name in _HARD if name in ranges]
            raise ConfigError(f"randomisation ({', '.join(set_ones)}) asks for too much: {error}") from None

    def _hardest(self, spec: RobotSpec) -> RobotSpec:
        """Return ``spec`` with the laws that varied robots have besides, and the fastest of their decays."""
        ranges = self.ranges
        changes: dict[str, FloatArray] = {}
        if self.highest("backlash_rad") > 0.0:
            changes["backlash_rad"] = spec.joints("actuator.backlash_rad") + self.highest("backlash_rad")
        rubs = spec.joints("joint_friction_nm") + self.highest("joint_friction_nm")
        if "servo_damping" in ranges:
            changes["kd"] = spec.joints("actuator.kd") * max(1.0, ranges["servo_damping"].high)
        inertia = spec.inertia()
        if "mass" in ranges:
            inertia = inertia * min(1.0, ranges["mass"].low)
        if "link_length" in ranges:
            inertia = inertia * min(1.0, ranges["link_length"].low) ** 2
        turning = spec.links("friction.rotational_nms_rad") * max(1.0, self.highest("friction_turning"))
        turning *= 1.0 + self.highest("patches")
        friction = replace(spec.friction, rotational_nms_rad=tuple(turning.tolist()))
        if self.friction_backward:
            friction = replace(friction, backward=2.0)  # any but 1 brings the law
        lists: dict[str, Any] = {name: tuple(values.tolist()) for name, values in changes.items()}
        actuator = replace(spec.actuator, **lists)
        inertias, joint_friction = tuple(inertia.tolist()), tuple(rubs.tolist())
        return replace(
            spec, actuator=actuator, friction=friction, link_inertia_kgm2=inertias, joint_friction_nm=joint_friction
        )


_ALONG = ("friction.tangential_ns_m", "friction.tangential_coulomb")
_ACROSS = ("friction.normal_ns_m", "friction.normal_coulomb")
_TURNING = ("friction.rotational_nms_rad", "friction.rotational_coulomb_nm")
_SCALED = {
    "friction_along": _ALONG, "friction_backward": _ALONG, "friction_across": _ACROSS, "friction_turning": _TURNING,
    "patches": (*_ALONG, *_ACROSS, *_TURNING), "servo_gain": ("actuator.kp",), "servo_damping": ("actuator.kd",),
}  # fmt: skip
"""Settings of a robot that a factor scales: one of them has to be there."""
_LIMITED = {
    "torque_limit": ("actuator.torque_limit_nm",), "speed_limit": ("actuator.speed_limit_rad_s",),
    "supply_voltage": ("actuator.torque_limit_nm", "actuator.speed_limit_rad_s"),
}  # fmt: skip
"""The same of limits: one of them has to be finite."""
_HARD = ["backlash_rad", "joint_friction_nm", "servo_damping", "mass", "link_length", "friction_turning", "patches"]
"""Quantities that may ask for laws or steps that the robot's method does not have."""
_PER_LINK = ("mass", "mass_ahead", "link_length")
_PER_JOINT = (
    "servo_gain", "servo_damping", "torque_limit", "speed_limit", "backlash_rad", "joint_friction_nm", "angle_bias_rad",
)  # fmt: skip
_SEVERAL = {"position_bias_m": 2}
_PLACES = {"patches": 3, "slope_rad": 1, "payload_kg": 1}
"""Numbers in [0, 1) that a quantity needs besides: direction and two phases; direction; which link."""
_PLACE = "_place"


class Columns(NamedTuple):
    """Columns of the table of all quantities, in the order of the settings; those that do not vary are nominal."""

    of: dict[str, slice]
    """Columns of each quantity, and of its places."""
    low: FloatArray
    high: FloatArray
    nominal: FloatArray
    """NaN: a place, in [0, 1) at any level."""

    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Return the lowest and the highest value that any level allows."""
        return np.fmin(self.low, self.nominal), np.fmax(self.high, self.nominal)


def lay_out(config: RandomisationConfig, spec: RobotSpec) -> Columns:
    """Return the columns of all quantities for a robot; which of them vary moves none of them."""
    of: dict[str, slice] = {}
    rows: list[tuple[float, float, float]] = []
    for name, tp in declared_types(type(config)).items():
        kind = typing.get_args(tp)[0]
        if not (isinstance(kind, type) and issubclass(kind, Uniform)):
            continue
        given = getattr(config, name) or kind()
        width = spec.n_links if name in _PER_LINK else spec.n_joints if name in _PER_JOINT else _SEVERAL.get(name, 1)
        of[name] = slice(len(rows), len(rows) + width)
        rows += [(given.low, given.high, kind.nominal)] * width
        of[name + _PLACE] = slice(len(rows), len(rows) + _PLACES.get(name, 0))
        rows += [(0.0, 1.0, math.nan)] * _PLACES.get(name, 0)
    low, high, nominal = np.array(rows).T.copy()
    return Columns(of, low, high, nominal)


class DrawnQuantities:
    """What varies in W worlds, drawn for each episode and told in infos; what it does to a robot is said below."""

    def __init__(self, config: RandomisationConfig, spec: Any, n_worlds: int) -> None:
        self.config, self.n_worlds = config, n_worlds
        self._ranges = config.ranges
        self._columns = lay_out(config, spec)
        self.level: FloatArray = np.full(n_worlds, config.level)
        """Level of each world's next episode (W,), in [0, 1]: a curriculum may change it."""
        self._present_level = self.level.copy()
        nominal = np.where(np.isnan(self._columns.nominal), 0.0, self._columns.nominal)
        self.values: FloatArray = np.tile(nominal, (n_worlds, 1))
        """All quantities of the present episodes (W, columns)."""
        self._streams = RandomStreams("randomisation", n_worlds)
        self._step_streams = RandomStreams("randomisation of steps", n_worlds)
        self.sensors: SensorErrors | None = None
        """Errors of the sensors; None: none vary."""
        self._told: dict[str, NDArray[Any]] = {}
        self._tell()

    @abstractmethod
    def _change_robots(self, rows: Rows) -> None:
        """Write the parameters of the true robots ``rows``; they follow from ``values`` alone."""

    def before_step(self) -> None:
        """Set what differs from control step to control step."""

    def given(self, rows: Rows) -> dict[str, FloatArray]:
        """Return all quantities of the worlds ``rows`` (M, n), by name."""
        values = self.values[rows]
        return {name: values[:, columns] for name, columns in self._columns.of.items()}

    def __getitem__(self, name: str) -> FloatArray:
        """Return the present values of a quantity (W,), or (W, n) where a robot has several; not copied."""
        columns = self._columns.of[name]
        return self.values[:, columns.start] if columns.stop - columns.start == 1 else self.values[:, columns]

    def begin(self, seeds: NDArray[np.int64], episodes: NDArray[np.int64], rows: Rows) -> None:
        """Draw anew for the new episodes of the worlds ``rows``; arguments as of ``RandomStreams``."""
        wrong = self.level[~((self.level >= 0.0) & (self.level <= 1.0))]
        if wrong.size:
            raise ConfigError(f"randomisation.level is {wrong[0]:g}; expected in [0, 1]")
        self._present_level[rows] = self.level[rows]
        self._streams.begin(seeds, episodes, rows)
        self._step_streams.begin(seeds, episodes, rows)
        u = self._streams.uniform(self.values.shape[1], rows)
        of, level = self._columns, self.level[rows][:, None]
        low = of.nominal + level * (of.low - of.nominal)
        high = of.nominal + level * (of.high - of.nominal)
        self.values[rows] = np.where(np.isnan(of.nominal), u, low + u * (high - low))
        self._change_robots(rows)
        if self.sensors is not None:
            self.sensors.begin(seeds, episodes, rows)
        self._tell()

    def shares(self, name: str) -> FloatArray:
        """Return where what was drawn lies between the lowest and the highest value that any level allows (W, n), from
        -1 to 1; 0 where that is one value.

        ``name``: one of ``RandomisationConfig.told``.
        """
        if name == "level":
            return 2.0 * self._present_level[:, None] - 1.0
        columns = self._columns.of[name]
        (low, high), values = self._columns.bounds(), self.values[:, columns]
        low, half = low[columns], 0.5 * (high - low)[columns]
        return np.where(half > 0.0, (values - low - half) / np.where(half > 0.0, half, 1.0), 0.0)

    def infos(self) -> Mapping[str, NDArray[Any]]:
        """Return what was drawn for the present episodes, by name; read-only arrays that later episodes replace."""
        return self._told

    def scenario(self) -> dict[str, NDArray[Any]]:
        """Return all quantities of the present episodes, a copy."""
        return {"randomisation": self.values.copy()}

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        """Return everything that later steps depend on, by name: the arrays themselves."""
        arrays: dict[str, NDArray[Any]] = {
            "randomisation/values": self.values, "randomisation/level": self.level,
            "randomisation/present_level": self._present_level,
        }  # fmt: skip
        arrays |= self._step_streams.state_arrays("stream/randomisation")
        return arrays | (self.sensors.state_arrays() if self.sensors is not None else {})

    def restored(self) -> None:
        """Make the rest follow after the arrays of ``state_arrays`` were written to."""
        rows = np.arange(self.n_worlds)
        self._change_robots(rows)
        if self.sensors is not None:
            self.sensors.take_over(rows)
        self._tell()

    def _tell(self) -> None:
        told = self.values.copy()
        told.flags.writeable = False
        self._told = {"randomisation/level": self._present_level.copy()}
        for name, columns in self._columns.of.items():
            if name.removesuffix(_PLACE) in self._ranges and columns.stop > columns.start:
                one = columns.stop - columns.start == 1
                self._told["randomisation/" + name] = told[:, columns.start] if one else told[:, columns]


class Randomisation(DrawnQuantities):
    """Quantities of W planar robots, written to the true robots' parameters.

    Raises ConfigError for what the robot ``spec`` does not have.
    """

    def __init__(self, config: RandomisationConfig, spec: RobotSpec, robot: SimulatedRobot) -> None:
        self.robot = robot
        n_worlds = robot.n_worlds
        super().__init__(config, spec, n_worlds)
        self._nominal = chain_params(spec, 1)
        self._dt_s = spec.control_dt_s
        robot.same_params = False
        robot.nominal_bodies = not {"mass", "mass_ahead", "link_length", "payload_kg"} & self._ranges.keys()
        late = config.highest("command_delay_s") + config.highest("command_jitter_s")
        self._delay = robot.delay_commands(spec.actuator.delay_s + late) if late > 0.0 else None
        self._nominal_delay_s = spec.actuator.delay_s
        self._delay_s = self._delay.delay_s if self._delay is not None else np.zeros(n_worlds)
        self._least_delay_s, self._jitter_s = np.zeros(n_worlds), np.zeros(n_worlds)
        self._steps_differ = bool({"push_hz", "command_jitter_s"} & self._ranges.keys())
        self._push_chance, self._push_acc = np.zeros(n_worlds), np.zeros(n_worlds)
        self._base_acc = np.tile(spec.body_acceleration, (n_worlds, 1))
        pose = robot.state.link_angle.copy(), robot.state.centre_xy.copy()
        waves = np.zeros(n_worlds), np.zeros(n_worlds), np.zeros((n_worlds, 2))
        self._patches = Patches(*waves, config.patch_size_m, *pose)
        if "patches" in self._ranges:
            robot.lay_patches(self._patches)
        if _SENSED & self._ranges.keys():
            self.sensors = SensorErrors(self, spec)

    def before_step(self) -> None:
        """Set what differs from control step to control step: delays of commands, and pushes."""
        if not self._steps_differ:
            return
        streams = self._step_streams
        draw_step(
            streams.key, streams.counter, self._least_delay_s, self._jitter_s, self._delay_s, self._push_chance,
            self._push_acc, self._base_acc, self.robot.params.body_acc,
        )  # fmt: skip

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        """Return everything that later steps depend on, by name: the arrays themselves."""
        late = self._delay
        waiting = {} if late is None else {"randomisation/waiting": late.waiting, "randomisation/due": late.due}
        return super().state_arrays() | waiting

    def _change_robots(self, rows: Rows) -> None:
        """Write the parameters of the true robots ``rows``; they follow from ``values`` alone."""
        given = self.given(rows)
        old, new = self._nominal, self.robot.params
        mass = old.mass * given["mass"]
        payload = given["payload_kg"][:, 0]
        loaded = (given["payload_kg_place"][:, 0] * mass.shape[1]).astype(np.int64)
        worlds, loaded = np.arange(rows.size), np.minimum(loaded, mass.shape[1] - 1)
        bare = mass[worlds, loaded]
        mass[worlds, loaded] += payload
        half, ahead = old.half_length * given["link_length"], old.ahead + given["mass_ahead"]
        inertia = old.inertia * given["mass"] * given["link_length"] ** 2
        # Link and payload, at the link's middle, turn about the centre of both.
        apart = ahead[worlds, loaded] * half[worlds, loaded]
        inertia[worlds, loaded] += bare * payload / (bare + payload) * apart**2
        ahead[worlds, loaded] *= bare / (bare + payload)
        new.mass[rows], new.half_length[rows], new.inertia[rows], new.ahead[rows] = mass, half, inertia, ahead
        downhill, slope = 2.0 * np.pi * given["slope_rad_place"][:, 0], np.sin(given["slope_rad"][:, 0])
        pull = GRAVITY_M_S2 * slope[:, None] * np.stack([np.cos(downhill), np.sin(downhill)], axis=1)
        self._base_acc[rows] = new.body_acc[rows] = old.body_acc + pull
        normal, nominal = (_normal(acc) for acc in (new.body_acc[rows], old.body_acc))
        weight = mass / old.mass * (normal / nominal)[:, None]
        for axis, name in (("t", "along"), ("n", "across"), ("r", "turning")):
            factor = given["friction_" + name]
            getattr(new, "c_" + axis)[rows] = getattr(old, "c_" + axis) * factor
            getattr(new, "coulomb_" + axis)[rows] = getattr(old, "coulomb_" + axis) * factor * weight
        new.backward[rows] = old.backward * given["friction_backward"]
        volt = given["supply_voltage"]
        new.kp[rows] = old.kp * given["servo_gain"]
        new.kd[rows] = old.kd * given["servo_damping"]
        new.torque_limit[rows] = old.torque_limit * given["torque_limit"] * volt
        new.speed_limit[rows] = old.speed_limit * given["speed_limit"] * volt
        new.no_load_speed[rows] = old.no_load_speed * volt
        new.sag_per_nm[rows] = old.sag_per_nm / volt
        new.play[rows] = old.play + 0.5 * given["backlash_rad"]
        new.joint_friction[rows] = old.joint_friction + given["joint_friction_nm"]
        self._patches.height[rows] = given["patches"][:, 0]
        self._patches.direction[rows] = 2.0 * np.pi * given["patches_place"][:, 0]
        self._patches.phase[rows] = 2.0 * np.pi * given["patches_place"][:, 1:]
        self._push_chance[rows] = -np.expm1(-given["push_hz"][:, 0] * self._dt_s)
        self._push_acc[rows] = given["push_m_s"][:, 0] / self._dt_s
        self._least_delay_s[rows] = self._delay_s[rows] = self._nominal_delay_s + given["command_delay_s"][:, 0]
        self._jitter_s[rows] = given["command_jitter_s"][:, 0]


def _normal(body_acc: FloatArray) -> FloatArray:
    """Return gravity's part across the ground (M,) [m/s^2] where ``body_acc`` (M, 2) is its part along it."""
    return np.sqrt(GRAVITY_M_S2**2 - (body_acc**2).sum(axis=1))


_PARTS = ("encoder", "pose")
_LATE = {"encoder_delay_s", "encoder_jitter_s", "pose_delay_s", "pose_jitter_s"}
_NOISE = ("angle_noise_rad", "rate_noise_rad_s", "position_noise_m", "heading_noise_rad")
_SENSED = {*_LATE, *_NOISE, "angle_bias_rad", "position_bias_m", "heading_bias_rad", "pose_loss_hz", "pose_outage_s"}


class SensorErrors:
    """Delays, noise, biases and losses of encoders and pose source that vary, beside those of ``SensorConfig``."""

    def __init__(self, drawn: Randomisation, spec: RobotSpec) -> None:
        config, n_worlds, n_read = drawn.config, drawn.robot.n_worlds, 2 * spec.n_joints + 3
        on = config.ranges.keys()
        self._drawn, self._dt_s = drawn, spec.control_dt_s
        longest = max(config.highest(part + "_delay_s") + config.highest(part + "_jitter_s") for part in _PARTS)
        depth = math.ceil(longest / self._dt_s) + 2 if on & _LATE else 0
        self.past: FloatArray = np.zeros((n_worlds, depth, n_read))
        """Last readings without noise and bias (W, D, 2 J + 3), a ring (``simulation.disturbances``)."""
        self.newest: NDArray[np.int64] = np.zeros(n_worlds, np.int64)
        """Place of the present readings in it (W,)."""
        self._fresh = np.ones(n_worlds, bool)
        self.lost_until_s: FloatArray = np.zeros(n_worlds)
        """Time at which the pose source finds the robot again (W,) [s]; in the past: it has it."""
        self.held_pose: FloatArray = np.zeros((n_worlds, 3))
        """Last valid pose (W, 3): x, y [m], angle [rad]."""
        self.streams = RandomStreams("randomisation of sensors", n_worlds)
        self._ids = np.arange(n_worlds)
        self._chance: FloatArray = np.zeros(0)
        self._loss_chance, self._outage_s = np.zeros(n_worlds), np.zeros(n_worlds)
        self._delay, self._jitter = np.zeros((n_worlds, 2)), np.zeros((n_worlds, 2))
        self._noise, self._bias = np.zeros((n_worlds, len(_NOISE))), np.zeros((n_worlds, n_read))

    def begin(self, seeds: NDArray[np.int64], episodes: NDArray[np.int64], rows: Rows) -> None:
        """Begin new episodes of the worlds ``rows``; arguments as of ``RandomStreams``."""
        self.streams.begin(seeds, episodes, rows)
        self._fresh[rows] = True
        self.lost_until_s[rows] = 0.0
        self.take_over(rows)

    def take_over(self, rows: Rows) -> None:
        """Take over what was drawn for the worlds ``rows``."""
        drawn, n_joints = self._drawn, self._bias.shape[1] // 2 - 1
        for k, part in enumerate(_PARTS):
            self._delay[rows, k] = drawn[part + "_delay_s"][rows] / self._dt_s
            self._jitter[rows, k] = drawn[part + "_jitter_s"][rows] / self._dt_s
        for k, name in enumerate(_NOISE):
            self._noise[rows, k] = drawn[name][rows]
        self._loss_chance[rows] = -np.expm1(-drawn["pose_loss_hz"][rows] * self._dt_s)
        self._outage_s[rows] = drawn["pose_outage_s"][rows]
        self._bias[rows, :n_joints] = drawn["angle_bias_rad"][rows].reshape(-1, n_joints)
        self._bias[rows, -3:-1] = drawn["position_bias_m"][rows]
        self._bias[rows, -1] = drawn["heading_bias_rad"][rows]

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        """Return everything that later samples depend on, by name: the arrays themselves."""
        return {
            "sensor_error/past": self.past, "sensor_error/newest": self.newest,
            "sensor_error/lost_until_s": self.lost_until_s, "sensor_error/held_pose": self.held_pose,
            **self.streams.state_arrays("stream/sensor_error"),
        }  # fmt: skip

    def read(self, robot: SimulatedRobot, rows: Any) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return joint angles, joint rates (M, J), head positions (M, 2) and angles (M,) as read in worlds ``rows``."""
        state, ids = robot.state, self._ids[rows]
        seen, self._chance = np.empty((ids.size, self._bias.shape[1])), np.empty(ids.size)
        head_angle = state.link_angle[:, -1].copy()  # contiguous, as with one world: no second kernel is compiled
        read_chains(
            ids, robot.servo_angle(), robot.servo_rate(), head_angle, state.head_xy, self.past, self.newest,
            self._fresh, self._delay, self._jitter, self._noise, self._bias, self.streams.key, self.streams.counter,
            seen, self._chance,
        )  # fmt: skip
        n_joints = robot.spec.n_joints
        return seen[:, :n_joints], seen[:, n_joints:-3], seen[:, -3:-1], seen[:, -1]

    def settle(self, sample: Measurement, robot: SimulatedRobot, rows: Any) -> Measurement:
        """Return the sample of the worlds ``rows`` with the last valid pose where it is lost, and with the centre."""
        ids = self._ids[rows]
        pose, centre = np.column_stack([sample.head_xy_w, sample.head_angle]), np.empty((ids.size, 2))
        settle_poses(
            ids, np.ascontiguousarray(sample.joint_angle), pose, robot.state.time_s, self._chance, self._loss_chance,
            self._outage_s, self.lost_until_s, self.held_pose, robot.nominal_weights, sample.pose_valid, centre,
        )  # fmt: skip
        return sample._replace(head_xy_w=pose[:, :2], head_angle=pose[:, 2], centre_xy_w=centre)
