"""Every number that can be set in an env, against numbers that make no sense.

Each is either refused in one line that names the setting and the value, or the env begins and steps with finite
observations.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
import types
import typing
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest

from snake_gym.config import ConfigError, build, merge
from snake_gym.controllers import CONTROLLERS
from snake_gym.envs import EnvConfig, ObstacleFieldConfig, WaypointsConfig
from snake_gym.envs.core import SnakeCore
from snake_gym.robot.measurement import Measurement, tracked_point
from snake_gym.robot.presets import PRESETS
from snake_gym.robot.spec import RobotSpec
from snake_gym.simulation.faults import JointFault
from snake_gym.simulation.sensors import EncoderFault
from snake_gym.simulation.simulated_robot import SimulatedRobot
from snake_gym.tasks.escape import EscapeConfig
from snake_gym.tasks.path_follow import PathFollowConfig
from snake_gym.tasks.velocity import VelocityConfig

NONSENSE = (math.nan, math.inf, -math.inf, 1e300, -1, 1e-300)
Path = tuple[str, ...]

FAULTS = {"n_min": 3, "n_max": 3, "kinds": ["weak", "slow", "offset"], "intermittent_share": 0.5, "duration_s": 1.0}
ENCODER_FAULTS = {"n_min": 3, "n_max": 3, "kinds": ["dead", "biased", "noisy"]}
SERVO = {
    "preset": "resilient_servo", "joint_stop_rad": 1.5,
    "actuator": {"no_load_speed_rad_s": 4.0, "supply_resistance_ohm": 0.1, "backlash_rad": 0.01, "delay_s": 0.02},
}  # fmt: skip
CIRCLE = {"x_m": 1.5, "y_m": 0.5, "radius_m": 0.1}
WALL = {"x0_m": 1.5, "y0_m": 0.5, "x1_m": 1.6, "y1_m": 0.7}


def numbers_of(cls: type[Any], group: Path = ()) -> Iterator[Path]:
    """Paths of the settings of a dataclass, and of its groups, that hold a number."""
    hints = typing.get_type_hints(cls)
    for f in dataclasses.fields(cls):
        tp, path = hints[f.name], (*group, f.name)
        members = typing.get_args(tp) if typing.get_origin(tp) in (typing.Union, types.UnionType) else (tp,)
        for member in members:
            if isinstance(member, type) and dataclasses.is_dataclass(member):
                yield from numbers_of(member, path)
        if float in members or int in members:
            yield path


def nest(path: Path, value: Any) -> dict[str, Any]:
    for key in reversed(path):
        value = {key: value}
    assert isinstance(value, dict)
    return value


def play(config: EnvConfig) -> str:
    """What is wrong with the env; empty where it begins and steps as it should."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        core = SnakeCore(config, 2)
        seen = [core.reset(np.arange(2))]
        for i in range(3):
            obs, reward, *_ = core.step(np.random.default_rng(i).uniform(-1.0, 1.0, core.action.shape))
            seen += [obs, reward]
    return "" if all(np.isfinite(values).all() for values in seen) else "is accepted, and something is not finite"


def attempt(kind: type[EnvConfig], settings: Mapping[str, Any], name: str, value: float) -> str:
    """What is wrong; empty where the value works or is refused in one line that names the setting."""
    try:
        wrong = play(build(kind, {**settings, "n_threads": settings.get("n_threads", 1)}, "env"))
        return f"{value} {wrong}" if wrong else ""
    except ConfigError as error:
        text = str(error)
        return "" if name in text and "\n" not in text else f"{value} is refused without naming it: {text[:160]}"
    except Exception as error:
        return f"{value} raises {type(error).__name__}: {str(error)[:160]}"


class Case(typing.NamedTuple):
    kind: type[EnvConfig]
    base: dict[str, Any]
    paths: list[Path]


def controller_case(name: str) -> Case:
    base: dict[str, Any] = {"action": {"kind": "residual", "controller": {"kind": name}}}
    if name in ("pfl", "speed"):
        base["robot"] = {"pfl": "pegboard", "speed": "muscle"}[name]
    return Case(WaypointsConfig, base, list(numbers_of(CONTROLLERS[name].config_type, ("action", "controller"))))


VARYING = {name: {"low": 0.1, "high": 1.0} for name in ("pose_loss_hz", "pose_outage_s", "push_hz", "push_m_s")}
WAYPOINTS = {
    "faults": FAULTS, "sensors": {"encoder_faults": ENCODER_FAULTS}, "action": {"kind": "gait"},
    "randomisation": VARYING,
}  # fmt: skip
FIELD = {
    "randomisation": VARYING, "range_scan": {"noise_m": 0.01, "dropout": 0.1}, "contact_sensor": {"noise_n": 1.0},
}  # fmt: skip
CASES: dict[str, Case] = {
    "waypoints": Case(WaypointsConfig, WAYPOINTS, list(numbers_of(WaypointsConfig))),
    "residual": Case(WaypointsConfig, {"action": {"kind": "residual"}}, [("action", "scale_rad")]),
    "field": Case(
        ObstacleFieldConfig, FIELD,
        [path for path in numbers_of(ObstacleFieldConfig) if path[0] not in ("faults", "sensors", "action")],
    ),
    "thicket": Case(
        EscapeConfig, {"costs": {"heat_share": 0.5, "contact_force_n": 10.0}},
        [path for path in numbers_of(EscapeConfig) if path[0] in ("field", "goal", "costs", "difficulty")],
    ),
    **{
        f"field of {kind}": Case(
            ObstacleFieldConfig, {"field": {"kind": kind}},
            [path for path in numbers_of(ObstacleFieldConfig) if path[0] == "field" and path[1] in
             ("gap_m", "width_m", "wall_radius_m", "clearance_m", "n_turns", "goal_distance_m", "obstacle_radius_m")],
        )
        for kind in ("forest", "corridor", "bends", "gates")
    },
    **{
        f"{kind} to follow": Case(
            PathFollowConfig, {"path": {"kind": kind}, "follow": {"speed_m_s": 0.1}},
            [path for path in numbers_of(PathFollowConfig) if path[0] in ("path", "follow", "reward")],
        )
        for kind in ("line", "circle", "square", "spline")
    },
    "commands": Case(
        VelocityConfig, {"action": {"kind": "residual"}},
        [path for path in numbers_of(VelocityConfig) if path[0] in ("command", "reward", "time_limit_s")],
    ),
    "servo robot": Case(WaypointsConfig, {"robot": SERVO}, list(numbers_of(RobotSpec, ("robot",)))),
    "muscle robot": Case(
        WaypointsConfig, {"robot": {"preset": "muscle"}}, list(numbers_of(RobotSpec, ("robot",)))
    ),
    "robot among pegs": Case(
        ObstacleFieldConfig, {"robot": {"preset": "pegboard"}},
        [path for path in numbers_of(RobotSpec, ("robot",)) if path[1] in ("contact", "friction", "link_radius_m")],
    ),
    "rk4 robot": Case(
        WaypointsConfig, {"robot": {"preset": "resilient"}},
        [path for path in numbers_of(RobotSpec, ("robot",)) if path[1] in ("actuator", "friction", "sim_dt_s")],
    ),
    **{f"controller {name}": controller_case(name) for name in CONTROLLERS if name != "multimodal"},
}  # fmt: skip


def blamed(path: Path) -> str:
    """What a message about the setting has to name."""
    return {"attachment_m": "muscle", "half_width_m": "muscle"}.get(path[-1], path[-1])


@pytest.mark.parametrize("name", CASES)
def test_a_number_without_sense_is_refused_by_name_or_harmless(name: str) -> None:
    case = CASES[name]
    assert play(build(case.kind, case.base, "env")) == ""
    for path, value in itertools.product(case.paths, NONSENSE):
        assert attempt(case.kind, merge(case.base, nest(path, value)), blamed(path), value) == "", path


def test_the_scan_notices_a_number_that_is_let_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """It must be able to fail."""
    monkeypatch.setattr(f"{__name__}.play", lambda config: "is accepted, and something is not finite")
    assert [
        attempt(WaypointsConfig, {"time_limit_s": t}, name, t) for t, name in ((3, "time_limit_s"), (-1, "robot"))
    ] == [
        "3 is accepted, and something is not finite",
        "-1 is refused without naming it: env.time_limit_s is -1; expected finite and > 0, at most 1e+09",
    ]


LISTS: dict[str, tuple[type[EnvConfig], Path, dict[str, Any]]] = {
    **{
        f"joint fault {kind}": (WaypointsConfig, ("faults", "events"), {"kind": kind, "joint": 3, "period_s": 1.0})
        for kind in ("weak", "offset", "locked", "slipped", "overload")
    },
    **{
        f"encoder fault {kind}": (
            WaypointsConfig, ("sensors", "encoder_faults", "events"), {"joint": 3, "kind": kind}
        )
        for kind in ("dead", "biased", "noisy")
    },
    "circle": (ObstacleFieldConfig, ("field", "shapes"), CIRCLE),
    "capsule": (ObstacleFieldConfig, ("field", "shapes"), {**WALL, "radius_m": 0.1}),
    "wall": (ObstacleFieldConfig, ("field", "shapes"), WALL),
}  # fmt: skip


@pytest.mark.parametrize("name", LISTS)
def test_an_entry_of_a_list_without_sense_is_refused_by_name_or_harmless(name: str) -> None:
    kind, path, entry = LISTS[name]
    types_of_entries: dict[str, type[Any]] = {"joint": JointFault, "encoder": EncoderFault}
    of = types_of_entries.get(name.split()[0])
    keys = [f.name for f in dataclasses.fields(of) if f.name != "kind"] if of else list(entry)
    field = {"field": {"kind": "list", "goal_m": [4.0, 0.0]}} if of is None else {}
    assert play(build(kind, merge(field, nest(path, [entry])), "env")) == ""
    near = "field.shapes[0] stands where the robot starts"  # and so it does: -1 is a place as good as any
    for key, value in itertools.product(keys, NONSENSE):
        wrong = attempt(kind, merge(field, nest(path, [{**entry, key: value}])), key, value)
        assert wrong == "" or near in wrong, key


@pytest.mark.parametrize("name", ["targets", "points", "goal_m", "joints", "path.points", "preview_m"])
def test_a_place_or_a_joint_without_sense_is_refused_by_name(name: str) -> None:
    for value in NONSENSE[:4]:
        kind, settings = {
            "targets": (WaypointsConfig, {"course": {"kind": "list", "targets": [[value, 1.0]]}}),
            "joints": (WaypointsConfig, {"faults": {"joints": [value]}}),
            "path.points": (PathFollowConfig, {"path": {"kind": "recorded", "points": [[0.0, 0.0], [1.0, value]]}}),
            "preview_m": (PathFollowConfig, {"follow": {"preview_m": [value]}}),
            "points": (
                ObstacleFieldConfig,
                {"field": {"kind": "list", "shapes": [{"points": [[value, 0.0], [0.1, 0.3], [0.5, 0.9]]}]}},
            ),
            "goal_m": (ObstacleFieldConfig, {"field": {"kind": "list", "shapes": [CIRCLE], "goal_m": [value, 0.0]}}),
        }[name]
        assert attempt(kind, settings, "joint" if name == "joints" else name, value) == ""


def test_a_point_that_no_robot_has_is_refused_wherever_it_is_named() -> None:
    robot = SimulatedRobot(PRESETS["resilient_servo"], 1, 1)
    with pytest.raises(ValueError, match="point is 'tail'; expected one of centre, head"):
        robot.set_shape(np.zeros((1, 9)), np.zeros(1), np.zeros((1, 2)), "tail")
    sample = Measurement(np.zeros((1, 9)), np.zeros((1, 9)), np.zeros((1, 2)), np.zeros(1), np.ones(1, bool))
    with pytest.raises(ValueError, match="point is 'haed'; expected one of centre, head; did you mean 'head'"):
        tracked_point(robot.spec, sample, "haed")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"robot": {"preset": "resilient_servo", "sim_dt_s": 1e-6}}, "sim_dt_s at least 2e-06"),
        ({"time_limit_s": 1e9}, "time_limit_s is 1e+09; expected at most 2e+06 (10000000 control steps"),
        ({"time_limit_s": 2e6 + 0.2}, "time_limit_s is 2e+06; expected at most 2e+06"),
        (
            {"robot": {"preset": "resilient_servo", "sim_dt_s": 1e-12, "control_dt_s": 1e-8}},
            "time_limit_s is 60; expected at most 0.1",
        ),
    ],
)
def test_an_episode_that_would_never_end_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        SnakeCore(build(WaypointsConfig, settings, "env"), 1)
