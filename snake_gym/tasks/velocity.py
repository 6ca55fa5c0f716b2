"""Task: follow commands of speed and heading, which change at random times.

The velocity of the tracked point is averaged over about one cycle of the gait (a lag of ``command.smoothing_s``), since
a snake's speed ripples within it. Its part along the commanded heading is compared with the commanded speed. Heading
means the direction of this velocity, whichever end leads; a robot slower than a tenth of the command has none, and its
error counts as a quarter turn.

Policies are compared by ``tracking``, the mean over time of

    exp(-(speed error / speed_scale)^2) exp(-(heading error / heading_scale)^2),

1 for a robot that follows exactly. Scores use the truth; what is shown is measured.
"""

from __future__ import annotations

import math
from dataclasses import field, replace
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from snake_gym.config import ConfigError, Settings, check_order
from snake_gym.config.settings import Positive
from snake_gym.interface.mirror import ALONG_LEFT, SAME
from snake_gym.interface.observations import Seen, register_column
from snake_gym.robot.measurement import Goal, head_angle_for, turn_back
from snake_gym.robot.spec import FloatArray, RobotSpec
from snake_gym.tasks.task import (
    BoolArray,
    EnvConfig,
    NewEpisodes,
    Point,
    Record,
    Scenery,
    Start,
    Step,
    Task,
    check_place,
)

MOST_COMMANDS = 10_000
_FAR_M = 10.0
"""Distance of the target that is shown, in the commanded heading."""
_SLOW = 0.1
"""Share of the commanded speed below which a robot has no heading."""
_SLACK_S = 1e-9

Speed = Annotated[float, Field(ge=0.001, le=100.0)]


class CommandConfig(Settings):
    """Which commands come, and how well they are to be followed."""

    min_speed_m_s: Speed = 0.05
    """Lowest commanded speed."""
    max_speed_m_s: Speed = 0.3
    """Highest commanded speed."""
    max_turn_rad: Annotated[float, Field(ge=0.0, le=math.pi)] = 1.0
    """Largest change of heading from one command to the next; the first one's is from the robot's heading."""
    min_interval_s: Annotated[float, Field(ge=0.001, le=1e6)] = 8.0
    """Shortest time between two commands; the first comes at the start."""
    max_interval_s: Annotated[float, Field(ge=0.001, le=1e6)] = 15.0
    """Longest time between two commands."""
    smoothing_s: Positive = 1.5
    """Time over which velocities are averaged (time constant of a lag)."""
    speed_scale_m_s: Positive = 0.05
    """Speed error at which the speed's part of tracking is 1/e."""
    heading_scale_rad: Positive = 0.5
    """Heading error at which the heading's part of tracking is 1/e."""
    success_speed_m_s: Positive = 0.05
    """An episode is a success with a mean speed error of at most this ..."""
    success_heading_rad: Positive = 0.4
    """... and a mean heading error of at most this."""
    tracked_point: Point = "centre"
    """Point of the robot that is to move so: centre (of mass), or head (the centre of the head link)."""

    def check(self) -> None:
        check_order(self, "min_speed_m_s", "max_speed_m_s")
        check_order(self, "min_interval_s", "max_interval_s")


class VelocityRewardConfig(Settings):
    """Weights of the reward terms; the reward is the sum of weight times term."""

    speed: float = 1.0
    """exp(-(speed error / speed_scale)^2), in each step."""
    heading: float = 0.5
    """exp(-(heading error / heading_scale)^2), in each step."""
    effort: float = -0.01
    """per unit of squared action, summed over the action's entries."""
    energy: float = 0.0
    """per joule of positive actuator work."""


class VelocityConfig(EnvConfig):
    """A planar snake robot follows commands of speed and heading, by default with 0 to 3 joints locked.

    A chain of links crawls on flat ground with anisotropic friction by moving its joints; those of ``faults`` fail,
    unknown to the policy. A command is a heading and a speed in it; new ones come at random times, which are not shown.
    The target that is shown lies far away in the commanded heading, so heading_error is that to the command. Next to it
    stand the commanded speed and the robot's own velocity along and across the commanded heading, from measured
    positions. Never terminated.
    """

    command: CommandConfig = field(default_factory=CommandConfig)
    reward: VelocityRewardConfig = field(default_factory=VelocityRewardConfig)

    def at_difficulty(self, difficulty: float) -> Self:
        """Commands turn by that share of their largest turn."""
        command = replace(self.command, max_turn_rad=difficulty * self.command.max_turn_rad)
        return replace(super().at_difficulty(difficulty), command=command)

    def make_task(self, spec: RobotSpec, n_worlds: int) -> Task:
        n_commands = math.ceil(self.time_limit_s / self.command.min_interval_s) + 1
        if n_commands > MOST_COMMANDS:
            raise ConfigError(
                f"env.command.min_interval_s is {self.command.min_interval_s:g} for time_limit_s "
                f"{self.time_limit_s:g}; expected at most {MOST_COMMANDS} commands in an episode"
            )
        return Velocity(self.command, self.reward, spec, n_worlds, n_commands)


@register_column("commanded_speed", "m/s", "commanded speed", scale=5.0, mirror=SAME)
def commanded_speed(seen: Seen) -> FloatArray:
    return seen.signals["commanded_speed"][:, None]


@register_column(
    "velocity", "m/s", "averaged velocity along the commanded heading and to its left, measured", 2, 5.0,
    mirror=ALONG_LEFT,
)  # fmt: skip
def velocity(seen: Seen) -> FloatArray:
    return seen.signals["velocity"]


class Velocity(Task):
    """Commands and errors of W worlds with ``n_commands`` commands; where the last one would begin, they come again."""

    stream = "command"
    score = "tracking"
    columns = ("commanded_speed", "velocity")
    commands_speed = True
    records = {  # noqa: RUF012
        "progress_m": Record("m", "averaged speed, at most the commanded one, in the commanded headings over time"),
        "commanded_m": Record("m", "commanded way so far"),
        "tracking": Record("1", "how well the commands are followed, mean so far: 1 is best, 0 worst"),
        "speed_error_m_s": Record(
            "m/s", "averaged speed in the commanded heading minus the commanded speed of this step"
        ),
        "mean_speed_error_m_s": Record("m/s", "mean size of the speed error so far"),
        "heading_error_rad": Record(
            "rad",
            "direction of the averaged velocity minus the commanded heading of this step; pi/2 below a tenth of "
            "the commanded speed",
        ),
        "mean_heading_error_rad": Record("rad", "mean size of the heading error so far"),
        "commanded_speed_m_s": Record("m/s", "the command for the next step"),
        "commanded_heading_rad": Record("rad", "the command for the next step, world frame"),
        "is_success": Record("bool", "mean errors so far are small enough (`command.success_*`)", False),
    }

    def __init__(
        self, config: CommandConfig, reward: VelocityRewardConfig, spec: RobotSpec, n_worlds: int, n_commands: int
    ) -> None:
        super().__init__(reward, n_worlds, 0, tracked_point=config.tracked_point)
        self.config, self._dt_s = config, spec.control_dt_s
        self._share = -math.expm1(-spec.control_dt_s / config.smoothing_s)
        self.n_random = 3 * n_commands
        names = ("begin_s", "heading_rad", "speed_m_s")
        self.command: dict[str, FloatArray] = {name: self.keep(f"command_{name}", 0.0, n_commands) for name in names}
        """Commands (W, K): begin, heading in the world frame, and speed."""
        self.scenario = {f"command_{name}": values for name, values in self.command.items()}
        self.current = self.keep("command_now", 0)
        """(W,) the command that holds now."""
        self.steps = self.keep("command_steps", 0)
        self.mean_velocity: FloatArray = self.keep("mean_velocity", 0.0, 2)
        """(W, 2) [m/s] averaged velocity of the tracked point, world frame."""
        self.seen_xy: FloatArray = self.keep("seen_xy", math.nan, 2)
        self.seen_velocity: FloatArray = self.keep("seen_velocity", 0.0, 2)
        """Last measured position (W, 2) [m] of the tracked point, and its averaged velocity [m/s]."""

    def begin(self, new: NewEpisodes) -> Start:
        """New commands; the robots start at the origin, the mean of the link angles is ``heading``."""
        config, rows = new.config.command, new.rows
        wait, turn, fast = np.split(new.u, 3, axis=1)
        interval = config.min_interval_s + wait * (config.max_interval_s - config.min_interval_s)
        change = config.max_turn_rad * (2.0 * turn - 1.0)
        self.command["begin_s"][rows] = np.cumsum(interval, axis=1) - interval[:, :1]
        self.command["heading_rad"][rows] = new.heading[:, None] + np.cumsum(change, axis=1)
        self.command["speed_m_s"][rows] = config.min_speed_m_s + fast * (config.max_speed_m_s - config.min_speed_m_s)
        self._command(rows)
        return Start(np.zeros((rows.size, 2)), head_angle_for(new.joint_angle, new.heading))

    def evaluate(self, step: Step) -> tuple[dict[str, FloatArray], BoolArray]:
        config, record, live = self.config, self.record, step.live
        wanted = record["commanded_speed_m_s"]
        moved = (step.point_xy - step.before_xy) / self._dt_s
        self.mean_velocity += np.where(live[:, None], self._share * (moved - self.mean_velocity), 0.0)
        along, across = turn_back(self.mean_velocity, record["commanded_heading_rad"]).T
        has_heading = np.hypot(along, across) >= _SLOW * wanted
        heading_error = np.where(has_heading, np.arctan2(across, along), 0.5 * math.pi)
        speed_error = along - wanted
        speed_kernel = np.exp(-np.square(np.minimum(np.abs(speed_error) / config.speed_scale_m_s, 20.0)))
        heading_kernel = np.exp(-np.square(np.minimum(np.abs(heading_error) / config.heading_scale_rad, 20.0)))

        self.steps += live
        n = np.maximum(self.steps, 1)
        new = {"speed_error_m_s": speed_error, "heading_error_rad": heading_error}
        for mean, value in (
            ("tracking", speed_kernel * heading_kernel), ("mean_speed_error_m_s", np.abs(speed_error)),
            ("mean_heading_error_rad", np.abs(heading_error)),
        ):  # fmt: skip
            new[mean] = record[mean] + (value - record[mean]) / n
        new["progress_m"] = record["progress_m"] + np.minimum(along, wanted) * self._dt_s
        new["commanded_m"] = record["commanded_m"] + wanted * self._dt_s
        for name, values in new.items():
            np.copyto(record[name], values, where=live)
        near = record["mean_speed_error_m_s"] <= config.success_speed_m_s
        straight = record["mean_heading_error_rad"] <= config.success_heading_rad
        record["is_success"][:] = (self.steps > 0) & near & straight
        np.copyto(self.current, _command_at(step.state.time_s, self.command["begin_s"]), where=live)
        self._command(self.rows)
        return {"speed": speed_kernel * live, "heading": heading_kernel * live, **step.efforts()}, np.zeros_like(live)

    def update_goal(self, measured_xy: FloatArray, rows: Any) -> None:
        """Average the measured velocity."""
        last = self.seen_xy[rows]
        moved = np.where(np.isnan(last), 0.0, measured_xy - last) / self._dt_s
        self.seen_velocity[rows] += self._share * (moved - self.seen_velocity[rows])
        self.seen_xy[rows] = measured_xy

    def goal(self) -> Goal:
        """A place far ahead of the measured point in the commanded heading, at the commanded speed."""
        here, heading = np.where(np.isnan(self.seen_xy), 0.0, self.seen_xy), self.record["commanded_heading_rad"]
        ahead = np.stack([np.cos(heading), np.sin(heading)], axis=1)
        return Goal(here + _FAR_M * ahead, np.ones(len(here), bool), self.record["commanded_speed_m_s"].copy())

    def signals(self) -> dict[str, FloatArray]:
        seen = turn_back(self.seen_velocity, self.record["commanded_heading_rad"])
        return {"commanded_speed": self.record["commanded_speed_m_s"], "velocity": seen}

    def move_target(self, world: int, xy: Any) -> None:
        """Turn the present command towards ``xy``, as seen from where the tracked point was last measured."""
        gap = check_place(xy) - np.where(np.isnan(self.seen_xy[world]), 0.0, self.seen_xy[world])
        self.command["heading_rad"][world, self.current[world]] = math.atan2(gap[1], gap[0])
        self._command(self.rows)

    def scenery(self, world: int) -> Scenery:
        heading = math.remainder(math.degrees(self.record["commanded_heading_rad"][world]), 360.0)
        caption = f"commanded {self.record['commanded_speed_m_s'][world]:.2f} m/s at {round(heading)} deg"
        return Scenery(np.zeros((0, 6)), np.zeros((1, 2)), caption)

    def _command(self, rows: NDArray[np.int64]) -> None:
        """Write the present commands of the worlds of ``rows`` into the records."""
        for name in ("speed_m_s", "heading_rad"):
            self.record[f"commanded_{name}"][rows] = self.command[name][rows, self.current[rows]]


def _command_at(time_s: FloatArray, begin_s: FloatArray) -> NDArray[np.int64]:
    """Return the command (W,) that holds at ``time_s`` (W,) of schedules ``begin_s`` (W, K)."""
    time_s = np.mod(time_s + _SLACK_S, begin_s[:, -1])  # beyond the time limit, all commands come again
    return np.asarray((begin_s[:, :-1] <= time_s[:, None]).sum(axis=1) - 1)
