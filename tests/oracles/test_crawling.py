"""Crawling robots against Lagrange's equations: at the chosen step; work, dead bands; scales; masses off the middle."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.accuracy import draw_scenarios
from snake_gym.robot.presets import PRESETS, RESILIENT_SERVO
from snake_gym.robot.spec import FrictionSpec, RobotSpec
from snake_gym.simulation.simulated_robot import SimulatedRobot
from tests.oracles.dry_chain import follow_gait, run_gait
from tests.oracles.random_crawlers import CONVERGED_S, GROUNDS, Ground, crawl, draw_crawler


@pytest.mark.slow
@pytest.mark.parametrize(("ground", "seed"), [(ground, seed) for ground in GROUNDS for seed in range(4)])
def test_random_robots_come_within_two_percent_at_the_chosen_step(ground: Ground, seed: int) -> None:
    crawler = draw_crawler(seed, ground)
    oracle, finer = (run_gait(crawler.spec, crawler.references(), rest) for rest in (1e-5, 5e-6))
    assert crawler.error(oracle, finer) < 5e-4
    assert crawler.error(crawler.run(CONVERGED_S), finer) < 2e-3
    assert crawler.error(crawler.run(), finer) < 0.02


SECONDS = 6.0


@pytest.mark.parametrize(("name", "step_s"), [("resilient_servo", 0.01), ("pegboard", 0.005)])
def test_the_work_of_a_gait_on_viscous_ground_is_that_of_lagranges_equations(name: str, step_s: float) -> None:
    spec = replace(PRESETS[name], sim_dt_s=step_s)
    references = draw_scenarios(spec, 1).references()[: round(SECONDS / spec.control_dt_s)]
    robot = SimulatedRobot(spec, 1, 1)
    robot.set_shape(references[:1], np.zeros(1), np.zeros((1, 2)), "centre")
    for reference in references:
        robot.step(reference[None])
    truth = follow_gait(spec, references)[-1, -1]
    assert robot.state.work_j[0] == pytest.approx(truth, rel=0.02)


def test_a_dead_band_with_a_speed_limit_moves_the_robot_as_lagranges_equations_say() -> None:
    base = RESILIENT_SERVO
    servo = replace(base.actuator, kp=10.0, kd=0.8, speed_limit_rad_s=2.0, dead_band_rad=0.1)
    spec = replace(base, n_links=5, actuator=servo, sim_dt_s=5e-4)
    phase = np.arange(4) - 0.6 * np.arange(20)[:, None]
    references = 0.7 * np.sin(phase)
    truth = run_gait(spec, references)
    way = np.hypot(*np.diff(truth, axis=0).T).sum()
    assert way > 0.3 and np.abs(crawl(spec, references) - truth).max() < 2e-3 * way


ROD = RobotSpec(n_links=2, link_half_length_m=0.1, link_mass_kg=0.5, control_dt_s=0.1, sim_dt_s=1e-3)
DRY = {"tangential_ns_m": 0.0, "normal_ns_m": 0.0, "tangential_coulomb": 0.1, "normal_coulomb": 0.5}


@pytest.mark.parametrize(("ground", "axes"), [("viscous", "independent"), ("dry", "independent"), ("dry", "coupled")])
@pytest.mark.parametrize("what", ["scales", "centres", "both"])
def test_the_way_is_that_of_lagranges_equations(ground: str, axes: str, what: str) -> None:
    crawler = draw_crawler(5, "viscous")
    rng, n = np.random.default_rng(7), crawler.spec.n_links
    backward = tuple(rng.uniform(1.5, 4.0, n).tolist()) if what != "centres" else 1.0
    ahead = rng.uniform(-0.8, 0.8, n) if what != "scales" else np.zeros(n)
    base = crawler.spec.friction if ground == "viscous" else FrictionSpec(**DRY)  # type: ignore[arg-type]
    friction = replace(base, backward=backward, coulomb_axes=axes)  # type: ignore[arg-type]
    spec = replace(crawler.spec, friction=friction, sim_dt_s=5e-4)
    references = crawler.references()[round(3.0 / spec.control_dt_s) :: -1]  # backwards in time: tail first
    truth, got = run_gait(spec, references, ahead=ahead), crawl(spec, references, ahead)
    plain = run_gait(replace(spec, friction=replace(friction, backward=1.0)), references)
    way = max(np.hypot(*np.diff(truth, axis=0).T).sum(), 0.1 * spec.length_m)
    assert np.abs(got - truth).max() < 1e-3 * way
    assert np.abs(plain - truth).max() > 0.01 * way, "the law does not matter here"


@pytest.mark.parametrize("axes", ["independent", "coupled"])
def test_scales_hold_a_rod_on_a_slope_tail_first_only(axes: str) -> None:
    """Slope 0.2 with mu 0.1: slides down head first at g (sin - mu cos); with 3 times mu backward it holds."""
    friction = FrictionSpec(**DRY, backward=3.0, coulomb_axes=axes)  # type: ignore[arg-type]
    for downhill, moves in ((0.0, True), (np.pi, False)):
        robot = SimulatedRobot(replace(ROD, friction=friction, incline_rad=0.2, incline_direction_rad=downhill), 1, 1)
        robot.set_shape(np.zeros((1, 1)), np.zeros(1), np.zeros((1, 2)), "centre")
        for _ in range(10):
            robot.step(np.zeros((1, 1)))
        slid = 0.5 * 9.81 * (np.sin(0.2) - 0.1 * np.cos(0.2)) if moves else 0.0
        assert robot.state.centre_xy[0, 0] == pytest.approx(slid, rel=2e-3, abs=2e-6)


def test_a_rod_on_ice_turns_about_its_centre_of_mass() -> None:
    """Free motion: the centre of mass goes straight, and the head's middle circles it at its distance."""
    spec = replace(ROD, friction=FrictionSpec(0.0, 0.0))
    robot = SimulatedRobot(spec, 1, 1)
    ahead = np.array([[0.5, -0.2]])
    robot.use_parameters(robot.params._replace(ahead=ahead))
    robot.set_shape(np.zeros((1, 1)), np.zeros(1), np.zeros((1, 2)), "head")
    # Along the links' common line: middles at -0.2 and 0 m, centres of mass at -0.15 and -0.02 m.
    np.testing.assert_allclose(robot.state.centre_xy, [[-0.085, 0.0]], atol=1e-15)
    robot.state.link_rate[:] = 2.0
    robot.state.centre_vel[:] = 0.3, -0.1
    energy = robot.kinetic_energy()[0]
    inertia = spec.inertia().sum() + 0.5 * (0.065**2 + 0.065**2)
    assert energy == pytest.approx(0.5 * 1.0 * (0.3**2 + 0.1**2) + 0.5 * inertia * 4.0)
    for _ in range(10):
        robot.step(np.zeros((1, 1)))
    turned = robot.state.link_angle[0, 1]
    np.testing.assert_allclose(robot.state.centre_xy[0], [-0.085 + 0.3, -0.1], atol=1e-9)
    head = robot.state.centre_xy[0] + 0.085 * np.array([np.cos(turned), np.sin(turned)])
    np.testing.assert_allclose(robot.state.head_xy[0], head, atol=1e-4)
    assert turned == pytest.approx(2.0, abs=1e-3) and robot.kinetic_energy()[0] == pytest.approx(energy, rel=1e-4)
