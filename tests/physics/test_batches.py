"""A world in a batch is that world alone, to the last bit, on any number of threads, whatever laws it has."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from snake_gym.physics.faults import (
    BURST_LEFT,
    FREE,
    HEALTHY,
    LEAK_RIGHT,
    LOCKED,
    OFFSET,
    SLIPPED,
    SLOW,
    WEAK,
    WEAK_LEFT,
)  # fmt: skip
from snake_gym.physics.state import Obstacles
from snake_gym.robot.presets import PRESETS, RESILIENT_SERVO
from snake_gym.robot.spec import ActuatorSpec, ContactSpec, FrictionSpec, RobotSpec
from snake_gym.simulation.simulated_robot import Precision, SimulatedRobot
from tests.oracles.contact_scenes import one_cell
from tests.physics.test_contact_properties import clutter, make_spec

WORLDS = 37
ALONE = (0, 3, 8, 21, 36)
"""Worlds that are played alone too: first and last lanes of blocks, and some between."""


class Case(NamedTuple):
    spec: RobotSpec
    kinds: tuple[int, ...] = (HEALTHY, HEALTHY, LOCKED, FREE, WEAK, SLOW, OFFSET, SLIPPED)
    n_steps: int = 12
    among: bool = False
    speed_m_s: float = 0.3
    """Standard deviation at the start, and of link rates too where it is above 1."""
    precision: Precision = "float64"
    bend_rad: float = 0.0
    """Bend to all joints of two of three worlds, which curl up."""
    holds: bool = False
    """The commands stay as they are in the first step."""


def limited(n_links: int) -> Case:
    servo = ActuatorSpec("position", 5.0, 0.5, torque_limit_nm=0.4, speed_limit_rad_s=1.0)
    lengths, masses = (tuple(np.linspace(*ends, n_links).tolist()) for ends in ((0.05, 0.09), (0.5, 1.5)))
    friction = FrictionSpec(1.0, 10.0, 0.01)
    spec = RobotSpec(
        n_links=n_links, link_half_length_m=lengths, link_mass_kg=masses, friction=friction, actuator=servo,
        control_dt_s=0.04, sim_dt_s=0.002,
    )  # fmt: skip
    return Case(spec, (HEALTHY, LOCKED, FREE, WEAK))


def rubbing(name: str) -> Case:
    spec = PRESETS[name]
    return Case(replace(spec, joint_friction_nm=tuple(0.02 * (i % 3) for i in range(spec.n_joints))))


def stiff(stop: float, backlash: float) -> Case:
    """Many joints stick, slide, hang at a flank, at a stop, at the torque limit, and change together."""
    servo = replace(RESILIENT_SERVO.actuator, kp=500.0, kd=1.0, speed_limit_rad_s=math.inf, backlash_rad=backlash)
    spec = replace(RESILIENT_SERVO, n_links=40, joint_friction_nm=0.3, joint_stop_rad=stop, actuator=servo)
    return Case(spec, (HEALTHY,), 4)


def touching(model: Any, kind: Any) -> Case:
    spec = make_spec(
        model, contact=ContactSpec(model, restitution=0.4, friction_coulomb=0.3), joint_stop_rad=0.8,
        friction=FrictionSpec(0.3, 2.0, 0.0, 0.05, 0.3), actuator=ActuatorSpec(kind, 8.0, 0.5, 0.8), sim_dt_s=0.0025,
        control_dt_s=0.05,
    )  # fmt: skip
    return Case(spec, (HEALTHY, HEALTHY, FREE, LOCKED, WEAK), 10, True)


THROWN = RobotSpec(
    n_links=7, link_radius_m=0.01, friction=FrictionSpec(0.0, 0.0, 0.0, 0.1, 0.3), sim_dt_s=0.005,
    actuator=ActuatorSpec("position", 10.0, 1.0), control_dt_s=0.05,
)  # fmt: skip
"""So fast at the start that its first step is taken in parts."""
WHEELS = PRESETS["robo_conda"]
WORN = replace(
    WHEELS.actuator, dead_band_rad=0.01, backlash_rad=0.03, no_load_speed_rad_s=4.0, supply_resistance_ohm=0.1
)
CASES = {
    **{f"{n} links": limited(n) for n in (2, 3, 10, 33)},
    **{name: Case(PRESETS[name]) for name in ("resilient_servo", "robo_conda", "muscle")},
    "single muscles": Case(PRESETS["muscle"], (HEALTHY, BURST_LEFT, LEAK_RIGHT, WEAK_LEFT, WEAK)),
    "worn servos": Case(replace(WHEELS, actuator=WORN)),
    **{f"{name}, dry joints": rubbing(name) for name in ("resilient_servo", "robo_conda", "muscle", "snakesys")},
    **{f"stop {stop}, backlash {gap}": stiff(stop, gap) for stop in (0.3, math.inf) for gap in (0.02, 0.0)},
    "thrown on dry ground": Case(THROWN, (HEALTHY,), 3, True, 5.0),
    "curling": Case(replace(PRESETS["resilient_servo"], links_touch=True), n_steps=30, bend_rad=1.2),
    **{f"{model}, {kind}": touching(model, kind) for model in ("rigid", "stiff") for kind in ("position", "torque")},
}
_pegs = CASES["stiff, position"]
_loose = replace(_pegs.spec, actuator=replace(_pegs.spec.actuator, backlash_rad=0.03))
CASES["thrown among pegs, backlash"] = Case(_loose, (HEALTHY,), 20, True, 3.0)
_servo = replace(RESILIENT_SERVO.actuator, backlash_rad=0.03)
CASES["held, float32"] = Case(replace(RESILIENT_SERVO, actuator=_servo), n_steps=40, precision="float32", holds=True)
WET = FrictionSpec(0.3, 2.0, backward=1.5)
for _name, _case in {
    **{name: CASES[name] for name in ("2 links", "33 links", "resilient_servo", "curling")},
    "worn servos": CASES["worn servos"], "stiff, position": CASES["stiff, position"],
}.items():  # fmt: skip
    _spec = replace(_case.spec, contact=replace(_case.spec.contact, friction_coulomb=0.0))
    _spec = replace(_spec, friction=WET) if _spec.has_coulomb_friction else _spec
    CASES[f"{_name}, float32"] = _case._replace(spec=_spec, precision="float32")


def fields() -> Obstacles:
    """Another clutter in every world."""
    each = [one_cell(clutter(world)) for world in range(WORLDS)]
    found = one_cell(np.zeros((max(one.feature.shape[1] for one in each), 6)), WORLDS)
    for world, one in enumerate(each):
        k = one.feature.shape[1]
        found.feature[world, :k], found.cell_item[world, :k] = one.feature[0], one.cell_item[0]
        found.cell_start[world] = 0, k
    return found


def play(case: Case, rows: NDArray[np.int64], n_threads: int = 1, moving: Any = None) -> SimulatedRobot:
    """The worlds ``rows`` of 37 worlds that differ in shape, motion, faults and commands."""
    spec, rng = case.spec, np.random.default_rng(3)
    mine = Obstacles(*(a[rows] if isinstance(a, np.ndarray) else a for a in fields())) if case.among else None
    robot = SimulatedRobot(spec, len(rows), n_threads, mine, case.precision)
    stop = min(0.3, 0.9 * float(spec.joints("joint_stop_rad").min()))
    shape = (0.0 if case.among else stop) * rng.uniform(-1.0, 1.0, (WORLDS, spec.n_joints))
    robot.set_shape(shape[rows], np.zeros(len(rows)), np.zeros((len(rows), 2)), "centre")
    robot.state.centre_vel[:] = case.speed_m_s * rng.normal(size=(WORLDS, 2))[rows]
    if case.speed_m_s > 1.0:
        robot.state.link_rate[:] = case.speed_m_s * rng.normal(size=(WORLDS, spec.n_links))[rows]
    joints = (WORLDS, spec.n_joints)
    onset = rng.uniform(0.0, 0.5, joints) * case.n_steps * spec.control_dt_s
    drawn = {
        "kind": rng.choice(case.kinds, joints), "onset_s": onset, "end_s": onset + rng.uniform(0.1, 2.0, joints),
        "period_s": np.where(rng.uniform(size=joints) < 0.5, np.inf, rng.uniform(0.05, 0.5, joints)),
        "duty": np.full(joints, 0.4), "strength": np.full(joints, 0.3), "offset_rad": np.full(joints, 0.2),
    }  # fmt: skip
    for name, values in drawn.items():
        getattr(robot.faults, name)[:] = values[rows]
    if spec.actuator.kind == "muscle":
        robot.state.pressure_command[:] = rng.normal(0.0, 3e4, (WORLDS, spec.n_joints, 2))[rows]
    touches = np.zeros(len(rows))
    references = rng.uniform(-0.6, 0.6, (case.n_steps, *joints))
    references[:] = references[:1] if case.holds else references
    for reference in references:
        robot.step((reference + case.bend_rad * (np.arange(WORLDS) % 3)[:, None])[rows], mask=moving)
        touches += robot.state.n_contacts
    if case.among and case.n_steps and moving is None and len(rows) > 1:
        assert (touches > 0.0).mean() > 0.5
    if case.bend_rad and case.n_steps and moving is None and len(rows) > 1:
        assert (robot.state.self_overlap_m > 0.0).mean() > 0.3, "they touch themselves"
    assert robot.state.stood_still.sum() == 0
    return robot


@pytest.mark.parametrize("name", CASES)
def test_a_world_in_a_batch_equals_that_world_alone_bit_for_bit(name: str) -> None:
    case, everyone = CASES[name], np.arange(WORLDS)
    one, two = play(case, everyone, 1), play(case, everyone, 2)
    some = np.isin(everyone, ALONE)
    part, still = play(case, everyone, 2, some), play(case._replace(n_steps=0), everyone)
    for field, values in one.state._asdict().items():
        np.testing.assert_array_equal(getattr(two.state, field), values, err_msg=f"{field} with two threads")
        np.testing.assert_array_equal(getattr(part.state, field)[some], values[some], err_msg=f"{field} of some")
        np.testing.assert_array_equal(getattr(part.state, field)[~some], getattr(still.state, field)[~some])
    for world in ALONE:
        alone = play(case, np.array([world]))
        for field, values in alone.state._asdict().items():
            np.testing.assert_array_equal(values[0], getattr(one.state, field)[world], err_msg=f"{field} alone")
