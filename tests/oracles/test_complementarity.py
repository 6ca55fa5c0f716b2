"""The rigid contact model satisfies complementarity, found out from nothing but the states before and after a step.

A step of length h from a state in touch is a backward Euler step whose geometry is the one foreseen for its end. With
the contact rows J and the gap g* there, the generalised velocities u before and u' after, and the impulse j,

    0 <= J u' - v_t  perpendicular to  j >= 0,   v_t = -(g* / h - J u),

i.e. a contact closes to no less than nothing (its gap after the step is h (J u' - v_t)); if it comes in faster than
2 cm/s, v_t is -e times that, if that is more. To 1e-8 m/s; with restitution to 1 mm/s, as a robot that would gain
energy at the end of a call is slowed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from snake_gym.robot.spec import ContactSpec, FloatArray, RobotSpec
from snake_gym.simulation.simulated_robot import SimulatedRobot
from tests.oracles.contact_scenes import (
    SLIDING_SCENES,
    SlidingScene,
    discs,
    generalised_velocity,
    one_cell,
    sliding_robot,
)  # fmt: skip
from tests.oracles.dense_chain import DenseChain
from tests.oracles.rigid_impact import contact_rows, find_contacts

TOLERANCE_M_S = 1e-8
TOLERANCE_OF_BOUNCES_M_S = 1e-3
SLOWEST_IMPACT_M_S = 0.02

CROWD = SlidingScene(
    sliding_robot((0.0, -2.0), 5.0, 0.5),
    discs(*((0.13 * k - 0.39, -0.12 - 0.03 * (k % 2), 0.03) for k in range(7))), (0.0, 0.0), 0.5, 4.0,
)  # fmt: skip
SCENES = {"limp over two pegs": SLIDING_SCENES["limp over two pegs"], "among a crowd of pegs": CROWD}


def after_steps(scene: SlidingScene, spec: RobotSpec, n_steps: int) -> tuple[SimulatedRobot, FloatArray]:
    """The robot after one call of ``n_steps`` steps, and the impulse on each link in that call, (N, 2) [N s]."""
    robot = SimulatedRobot(spec, 1, 1, obstacles=one_cell(scene.features))
    state = robot.state
    state.link_angle[0], state.link_rate[0], state.centre_xy[0], state.centre_vel[0] = scene.start()
    robot.step(scene.references()[:1], None, n_steps)
    return robot, state.contact_force[0] * n_steps * spec.sim_dt_s


@pytest.mark.parametrize("name", SCENES)
@pytest.mark.parametrize(
    ("dt_s", "restitution"), [pytest.param(0.002, 0.0, marks=pytest.mark.slow), (0.005, 0.0), (0.005, 0.5)]
)
def test_rigid_contacts_satisfy_complementarity(name: str, dt_s: float, restitution: float) -> None:
    scene = SCENES[name]
    spec = replace(scene.spec, contact=ContactSpec("rigid", restitution=restitution), sim_dt_s=dt_s, control_dt_s=dt_s)
    chain, radius = DenseChain.of(spec), spec.links("link_radius_m")
    scale, tolerance = spec.links("link_mass_kg").sum(), TOLERANCE_OF_BOUNCES_M_S if restitution else TOLERANCE_M_S
    previous = [after_steps(scene, spec, n) for n in (1, 2)]
    n_pressing = most_at_once = n_impacts = 0
    for n_steps in range(3, round(1.0 / dt_s)):
        (_, long_ago), (before, until) = previous
        robot, total = after_steps(scene, spec, n_steps)
        previous = [previous[1], (robot, total)]
        touched = np.linalg.norm(until - long_ago, axis=1) > 1e-9 * scale
        if not touched.any():  # a smooth past: another formula
            continue
        old = before.state
        theta = old.link_angle[0] + dt_s * old.link_rate[0]
        centre = old.centre_xy[0] + dt_s * old.centre_vel[0]
        contacts = find_contacts(chain, radius, theta, centre, scene.features, 0.02)
        rows = contact_rows(chain, theta, centre, contacts)
        gap, approach = np.array([c.gap for c in contacts]), rows @ generalised_velocity(before)
        target = approach - gap / dt_s
        impact = (gap < 0.0) & (approach < -SLOWEST_IMPACT_M_S) & (restitution > 0.0)
        target = np.where(impact, np.maximum(target, -restitution * approach), target)
        n_impacts += int(impact.sum())
        closing = rows @ generalised_velocity(robot) - target
        assert (closing > -tolerance).all(), n_steps
        push = total - until
        for link in range(spec.n_links):
            mine = [k for k, c in enumerate(contacts) if c.link == link and closing[k] < tolerance]
            normals = np.array([contacts[k].normal for k in mine]).reshape(-1, 2)
            if np.linalg.norm(push[link]) < tolerance * scale:
                continue
            # What presses on a link are its closed contacts, each outwards.
            assert len(mine) > 0, (n_steps, link, push[link])
            share = np.linalg.lstsq(normals.T, push[link])[0]
            np.testing.assert_allclose(normals.T @ share, push[link], rtol=0, atol=tolerance * scale)
            assert (share > -tolerance * scale).all()
            n_pressing += len(mine)
        most_at_once = max(most_at_once, int((closing < tolerance).sum()))
    assert n_pressing > 100
    assert most_at_once >= 2 and (n_impacts > 0) == (restitution > 0.0)
