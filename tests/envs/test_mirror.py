"""A robot in a mirrored world that is given mirrored actions sees what the robot sees, mirrored.

The mirrored world is built by hand from the other one: nothing of ``interface.mirror`` is in it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import snake_gym
from snake_gym.config import ConfigError
from snake_gym.controllers.base import CONTROLLERS
from snake_gym.envs.core import SnakeCore
from snake_gym.envs.mirror import env_reflections
from snake_gym.interface import observations
from snake_gym.interface.observations import FURTHER
from snake_gym.tasks.privileged import PRIVILEGED
from snake_gym.tasks.task_settings import build_env
from tests.tasks_of_robots import PLANAR_TASKS

N_STEPS = 50
FLIP_Y = np.array([1.0, -1.0])
OWN_TASKS = [env_id for env_id in PLANAR_TASKS if env_id.startswith("SnakeGym/")]
RANDOMISED = {
    "friction_across": {"low": 0.5, "high": 2.0},
    "friction_backward": {"low": 1.0, "high": 2.0},
    "mass": {"low": 0.7, "high": 1.3},
    "mass_ahead": {"low": -0.2, "high": 0.3},
    "payload_kg": {"low": 0.0, "high": 0.5},
    "slope_rad": {"low": 0.02, "high": 0.05},
    "angle_bias_rad": {"low": -0.1, "high": 0.1},
    "position_bias_m": {"low": -0.1, "high": 0.1},
    "heading_bias_rad": {"low": -0.1, "high": 0.1},
}
INCLINED = {"preset": "resilient_servo", "incline_rad": 0.05, "incline_direction_rad": 1.0}
ACTIONS: dict[str, dict[str, Any]] = {
    "joint_reference": {"kind": "joint_reference"},
    "gait": {"kind": "gait"},
    "paced": {"kind": "residual", "controller": {"kind": "fault_aware"}, "pace_range": 0.5},
}


class Mirrored:
    """One world, and the same in a mirror, built by turning round all that has a side."""

    def __init__(self, env_id: str, settings: dict[str, Any]) -> None:
        self.plain, self.turned = (SnakeCore(build_env(env_id, settings), 1) for _ in range(2))
        turned: Any = self.turned
        task, robot, drawn = turned.task, turned.robot, turned.randomisation
        self.place, robot.set_shape = robot.set_shape, self._place_turned
        if hasattr(task, "draw_fields"):
            self.draw_fields = task.draw_fields
            task.draw_fields = self._draw_turned
        if drawn is not None:
            self.begin, drawn.begin = drawn.begin, self._vary_turned
        for core in (self.plain, self.turned):
            core.reset(np.array([11]))
        self.seen = [core.observe() for core in (self.plain, self.turned)]
        self._turn_gait(self.turned.decoder_state)
        self.seen[1] = self.turned.observe()

    def _place_turned(self, joint_angle: Any, head_angle: Any, xy: Any, *rest: Any) -> None:
        task: Any = self.turned.task
        if not hasattr(task, "draw_fields"):
            task.targets_xy *= FLIP_Y
            if hasattr(task, "routes"):
                task.routes.xy *= FLIP_Y
                task.routes.restored()
            if hasattr(task, "command"):
                task.command["heading_rad"] *= -1.0
                task.record["commanded_heading_rad"] *= -1.0
        self.place(-joint_angle, -head_angle, xy * FLIP_Y, *rest)

    def _draw_turned(self, *arguments: Any) -> Any:
        start, fields = self.draw_fields(*arguments)
        turned = np.array([1.0, -1.0, 1.0, -1.0, 1.0, 1.0])
        return start, [field._replace(features=field.features * turned, route=field.route * FLIP_Y) for field in fields]

    def _vary_turned(self, *arguments: Any) -> None:
        drawn: Any = self.turned.randomisation
        self.begin(*arguments)
        drawn["angle_bias_rad"][:] *= -1.0
        drawn["heading_bias_rad"][:] *= -1.0
        drawn["position_bias_m"][:] *= FLIP_Y
        drawn["slope_rad_place"][:] = 1.0 - drawn["slope_rad_place"]
        drawn.restored()

    @staticmethod
    def _turn_gait(state: dict[str, Any]) -> None:
        """Half a period later; of oscillators, the other side."""
        if "phase" in state:
            state["phase"][:] = np.mod(state["phase"] + math.pi, 2.0 * math.pi)
        for name in ("u", "v"):
            if name in state:
                state[name][:] *= -1.0

    def step(self, action: Any, turned_action: Any) -> None:
        steps = [core.step(a) for core, a in ((self.plain, action), (self.turned, turned_action))]
        self.seen, (reward, of_turned) = [step[0] for step in steps], [step[1] for step in steps]
        np.testing.assert_allclose(of_turned, reward, rtol=0.0, atol=1e-6)


def settings_for(env_id: str, action: dict[str, Any]) -> dict[str, Any]:
    """Settings with every column of which there is something."""
    among = env_id in ("SnakeGym/ObstacleField-v0", "SnakeGym/Escape-v0")
    privileged = [name for name in PRIVILEGED if among or name != "true_contact_force"]
    privileged += [f"randomisation/{name}" for name in ("level", *RANDOMISED, "slope_rad_place", "payload_kg_place")]
    lacking = {"fault_probability"} | ({"tail_leads", "suspected_fault"} if action["kind"] != "residual" else set())
    further = [name for name in FURTHER if name not in lacking]
    settings: dict[str, Any] = {
        "action": action,
        "faults": {"n_min": 2, "n_max": 2, "kinds": ["locked", "weak"], "reveal": True},
        "randomisation": RANDOMISED,
        "observation": {"columns": ["standard", *further], "history": 2, "privileged": privileged},
        "n_threads": 1,
    }
    if env_id == "SnakeGym/Waypoints-v0":
        settings["course"] = {"lookahead": 2}
    if env_id == "SnakeGym/PathFollow-v0":
        settings["follow"] = {"speed_m_s": 0.1}
    return settings


def parts_of(core: SnakeCore) -> list[tuple[str, slice]]:
    """Names and places of all columns of the parts in a row, the newest step's."""
    policy = [(name, field.columns) for name, field in core.layout.fields.items()]
    if core.privileged is None:
        return policy
    begin = core.layout.size
    privileged = [
        (name, slice(begin + f.first, begin + f.first + f.width)) for name, f in core.privileged.fields.items()
    ]
    return policy + privileged


def assert_mirrored(worlds: Mirrored, n_steps: int = N_STEPS) -> np.ndarray[Any, Any]:
    """Return what was seen (n_steps + 1, D), after it was compared with what is seen in the mirrored world."""
    core = worlds.plain
    of_obs, of_action = env_reflections(core)
    rng = np.random.default_rng(5)
    seen = []
    for step in range(n_steps + 1):
        plain, turned = (
            np.concatenate(list(obs.values()), axis=1) if isinstance(obs, dict) else obs for obs in worlds.seen
        )
        wrong = ~(np.abs(turned - of_obs(plain)) <= 1e-6)[0]
        names = [name for name, place in parts_of(core) if wrong[place].any()]
        assert not wrong.any(), f"{names}, step {step}, columns {np.flatnonzero(wrong)}"
        seen.append(plain[0])
        action = rng.uniform(-1.0, 1.0, (1, core.decoder.size))
        worlds.step(action, of_action(action))
    return np.array(seen)


@pytest.mark.parametrize("kind", ACTIONS)
@pytest.mark.parametrize("env_id", OWN_TASKS)
def test_the_mirrored_world_looks_mirrored(env_id: str, kind: str) -> None:
    worlds = Mirrored(env_id, settings_for(env_id, ACTIONS[kind]))
    seen = assert_mirrored(worlds)
    visible = np.abs(seen).max(axis=0) > 1e-4  # a wrong sign would show
    unseen = {name for name, place in parts_of(worlds.plain) if not visible[place].any()}
    assert unseen <= {"contact_force", "true_contact_force", "tail_leads"}, unseen
    if env_id == "SnakeGym/Escape-v0":
        assert unseen <= {"tail_leads"}


ONE_SIDED: dict[str, tuple[str, dict[str, Any]]] = {
    "circle": ("SnakeGym/PathFollow-v0", {"path": {"kind": "circle", "side": "left"}}),
    "recorded": ("SnakeGym/PathFollow-v0", {"path": {"kind": "recorded", "points": [[0, 0], [1, 0], [1, 1]]}}),
    "paper": ("SnakeGym/Waypoints-v0", {"course": {"kind": "paper"}, "start": {"random": False}}),
    "list": ("SnakeGym/Waypoints-v0", {"course": {"kind": "list", "targets": [[1, 1], [2, 2]]}}),
    "field": (
        "SnakeGym/ObstacleField-v0",
        {"field": {"kind": "list", "shapes": [{"x_m": 1.0, "y_m": 0.3, "radius_m": 0.1}], "goal_m": [3.0, 1.0]}},
    ),
}


@pytest.mark.parametrize("name", ONE_SIDED)
def test_what_is_shown_may_lie_to_one_side(name: str) -> None:
    """In a mirror it lies to the other side, and steps and rewards are those of the task there."""
    env_id, settings = ONE_SIDED[name]
    assert_mirrored(Mirrored(env_id, {**settings, "n_threads": 1}), 20)


@pytest.mark.parametrize("spread", [0.0, [0.0, 0.0], [-0.3, 0.3]])
def test_listed_faults_that_lie_on_either_side_alike_are_taken(spread: Any) -> None:
    shift = {"joint": 2, "kind": "offset", "offset_rad": spread}
    bias = {"joint": 2, "kind": "biased", "bias_rad": spread}
    settings = {"faults": {"events": [shift]}, "sensors": {"encoder_faults": {"events": [bias]}}, "n_threads": 1}
    env_reflections(SnakeCore(build_env("SnakeGym/Waypoints-v0", settings), 1))


SYMMETRIC = ("cc", "cpg", "fault_aware", "pfl", "serpenoid", "sjc", "speed")


@pytest.mark.parametrize("kind", SYMMETRIC)
def test_every_controller_commands_a_mirrored_robot_mirrored_angles(kind: str) -> None:
    settings = {"action": {"kind": "residual", "controller": {"kind": kind}}, "n_threads": 1}
    assert_mirrored(Mirrored("SnakeGym/Waypoints-v0", settings))


def test_controllers_say_how_they_look_in_a_mirror() -> None:
    ours = {kind: cls for kind, cls in CONTROLLERS.items() if cls.__module__.startswith("snake_gym.")}
    own = {kind: cls for kind, cls in ours.items() if not getattr(cls, "spatial", False)}
    says_so = {kind for kind, cls in own.items() if getattr(cls, "lopsided", None) is not None}
    assert says_so == set(SYMMETRIC)  # those that the test above has seen in a mirror


# --- what is refused -------------------------------------------------------------------------------------------------


def broken(kind: str, **sizes: Any) -> dict[str, Any]:
    return {"faults": {"events": [{"joint": 2, "kind": kind, **sizes}]}}


ENCODER = {"sensors": {"encoder_faults": {"events": [{"joint": 2, "kind": "biased"}]}}}
BENT = {"action": {"kind": "residual", "controller": {"kind": "serpenoid", "offset_rad": 0.1}}}
PATCHES = {"randomisation": {"patches": {"low": 0.1, "high": 0.2}}}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"randomisation": {"angle_bias_rad": {"low": 0.0, "high": 0.1}}}, "randomisation.angle_bias_rad is"),
        (broken("offset"), r"faults.events\[0\].offset_rad is 0.349"),
        (ENCODER, r"encoder_faults.events\[0\].bias_rad is 0.2"),
        ({"robot": INCLINED, "course": {"kind": "paper"}}, "course.kind is 'paper' on a slope"),
        (BENT, "action.controller.offset_rad is 0.1, not the same in a mirror; expected 0"),
        ({**PATCHES, "observation": {"privileged": ["randomisation/patches_place"]}}, "randomisation/patches_place"),
        ({"observation": {"columns": ["joint_angle", "silent_on_mirrors"]}}, "the column silent_on_mirrors of the"),
        ({"observation": {"columns": ["badly_mirrored"]}}, "the mirror of the column badly_mirrored .* is 2; expected"),
    ],
)
def test_what_has_a_side_is_refused(settings: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, mirror in (("silent_on_mirrors", None), ("badly_mirrored", 2)):
        monkeypatch.setitem(observations.COLUMNS, name, None)  # is taken away again at the end
        del observations.COLUMNS[name]
        snake_gym.register_column(name, "1", "x", width=3, mirror=mirror)(lambda seen: np.zeros((1, 3)))
    core = SnakeCore(build_env("SnakeGym/Waypoints-v0", {**settings, "n_threads": 1}), 1)
    with pytest.raises(ConfigError, match=message):
        env_reflections(core)
