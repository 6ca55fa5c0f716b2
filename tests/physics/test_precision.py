"""Physics in float32: the same ways as in float64, anywhere in the world, and refusals of laws that need float64."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from snake_gym.controllers.serpenoid import serpenoid_reference
from snake_gym.robot.presets import MUSCLE, RESILIENT_SERVO
from snake_gym.robot.spec import ContactSpec, FloatArray, FrictionSpec, RobotSpec
from snake_gym.simulation.simulated_robot import Precision, SimulatedRobot
from tests.oracles.contact_scenes import discs, one_cell
from tests.oracles.random_crawlers import draw_crawler


def crawl(spec: RobotSpec, references: FloatArray, precision: Precision, xy: Any, turned: float) -> tuple[Any, float]:
    """Places of the centre of mass (K, 2) [m] after each reference, from where it began, and the work [J]."""
    robot = SimulatedRobot(spec, 1, 1, precision=precision)
    robot.set_shape(references[:1], np.full(1, turned), np.array([xy]), "centre")
    track = []
    for reference in references:
        robot.step(reference[None])
        track.append(robot.state.centre_xy[0] - xy)
    assert robot.state.stood_still[0] == 0.0
    return np.array(track), robot.state.work_j[0]


@pytest.mark.parametrize("change", [{}, {"sim_dt_s": 1e-3}, {"joint_stop_rad": 0.6}, {"incline_rad": 0.05}])
@pytest.mark.parametrize("seed", range(4))
def test_a_robot_goes_the_same_way_as_in_float64_near_and_far_from_the_origin(change: Any, seed: int) -> None:
    crawler = draw_crawler(seed, "viscous")
    spec, references = replace(crawler.spec, **change), np.clip(crawler.references(), -0.59, 0.59)
    truth, work = crawl(spec, references, "float64", (0.0, 0.0), 0.0)
    way = max(np.hypot(*np.diff(truth, axis=0).T).sum(), 0.1 * spec.length_m)
    for xy, turned in (((0.0, 0.0), 0.0), ((3000.0, -700.0), 40.0 * math.pi)):
        track, single_work = crawl(spec, references, "float32", xy, turned)
        assert np.abs(track - truth).max() < 2e-4 * way
        assert single_work == pytest.approx(work, rel=1e-3)


def test_muscles_move_the_same_way_as_in_float64() -> None:
    spec = replace(MUSCLE, friction=FrictionSpec(0.2, 2.0))
    phase = 8.0 * spec.control_dt_s * np.arange(100)
    references = serpenoid_reference(phase, 0.6, 1.2, spec.n_joints)
    truth, work = crawl(spec, references, "float64", (0.0, 0.0), 0.0)
    track, single_work = crawl(spec, references, "float32", (0.0, 0.0), 0.0)
    assert np.abs(track - truth).max() < 2e-4 * np.hypot(*np.diff(truth, axis=0).T).sum()
    assert single_work == pytest.approx(work, rel=1e-3)


@pytest.mark.parametrize("restitution", [0.0, 0.5])
def test_control_steps_among_pegs_end_as_in_float64(restitution: float) -> None:
    """Each from the same state, since ways among pegs are chaotic."""
    spec, n_worlds = replace(RESILIENT_SERVO, contact=ContactSpec(restitution=restitution), control_dt_s=0.05), 8
    pegs = one_cell(discs(*((x, y, 0.06) for x in np.arange(-2.0, 2.0, 0.35) for y in (-0.18, 0.18))), n_worlds)
    double, single = (SimulatedRobot(spec, n_worlds, 1, pegs, precision) for precision in ("float64", "float32"))
    for robot in (double, single):
        robot.set_shape(np.zeros((n_worlds, spec.n_joints)), np.zeros(n_worlds), np.zeros((n_worlds, 2)))
    speed = np.linspace(2.0, 5.0, n_worlds)
    misses = []
    for k in range(80):
        for values, given in zip(single.state, double.state, strict=True):
            values[:] = given
        reference = serpenoid_reference(0.05 * k * speed, 0.6, 0.7, spec.n_joints)
        double.step(reference), single.step(reference)
        touching = double.state.n_contacts > 0
        misses.append(np.abs(single.state.link_rate - double.state.link_rate)[touching].max(axis=1))
    missed = np.concatenate(misses)
    assert missed.size > 200
    assert np.median(missed) < 1e-3 and np.quantile(missed, 0.95) < 5e-3
