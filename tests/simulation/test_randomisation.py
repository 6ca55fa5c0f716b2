"""A world that varies: what is drawn, what it does to robots and sensors, and what it leaves alone."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from snake_gym.config import build, load_yaml
from snake_gym.envs import WaypointsConfig
from snake_gym.envs.core import SnakeCore
from snake_gym.robot.measurement import tracked_point
from snake_gym.robot.presets import RESILIENT, RESILIENT_SERVO
from snake_gym.robot.spec import FrictionSpec
from snake_gym.simulation.quantities import QUANTITIES
from snake_gym.simulation.randomisation import RandomisationConfig
from snake_gym.simulation.robot_params import chain_params
from snake_gym.simulation.simulated_robot import SimulatedRobot
from tests.oracles.dense_chain import DenseChain, DenseState

PRESET = load_yaml("configs/env/randomised_servo.yaml")
ALL = {**PRESET["randomisation"], "friction_turning": {"low": 0.5, "high": 2.0}}
SERVO = "resilient_servo"
"""A robot with small numbers of physics steps."""
TURNS = {"preset": SERVO, "friction": {"rotational_nms_rad": 0.01}}
"""The same with all that can vary."""


def make(randomisation: dict[str, Any], n_worlds: int = 4, **settings: Any) -> SnakeCore:
    healthy = {"robot": SERVO, "faults": {"n_max": 0}, "randomisation": randomisation}
    core = SnakeCore(build(WaypointsConfig, {**healthy, **settings}, "env"), n_worlds)
    core.reset(np.arange(n_worlds))
    return core


def play(core: SnakeCore, n_steps: int) -> list[Any]:
    rng = np.random.default_rng(0)
    return [core.step(rng.uniform(-1.0, 1.0, core.action.shape)) for _ in range(n_steps)]


def test_the_preset_varies_all_that_can_vary() -> None:
    on = RandomisationConfig(**ALL).ranges.keys()
    assert on == QUANTITIES.keys()


# --- worlds ----------------------------------------------------------------------------------------------------------


def test_level_0_is_the_nominal_world_bit_for_bit_and_half_of_it_half_the_way() -> None:
    bodies = ("friction_along", "friction_across", "mass", "link_length", "payload_kg", "servo_gain", "torque_limit")
    some = {name: ALL[name] for name in (*bodies, "slope_rad", "supply_voltage", "speed_limit", "servo_damping")}
    plain, still = make({}), make({**some, "level": 0.0})
    for (obs, reward, *_), (other, earned, *_) in zip(play(plain, 5), play(still, 5), strict=True):
        # The centre of mass is worked out from the head here: equal but for rounding.
        np.testing.assert_allclose(obs, other, atol=1e-6)
        np.testing.assert_array_equal(reward, earned)
    full, half = make(some), make({**some, "level": 0.5})
    for name in bodies:
        nominal = 0.0 if name == "payload_kg" else 1.0
        whole, part = (core.infos()["randomisation/" + name] - nominal for core in (full, half))
        np.testing.assert_allclose(part, 0.5 * whole, atol=1e-12)


@pytest.mark.parametrize("name", RandomisationConfig(**ALL).ranges)
def test_switching_one_quantity_off_moves_no_other_draw(name: str) -> None:
    pairs = {"pose_loss_hz": "pose_outage_s", "push_hz": "push_m_s"}
    pairs |= {other: one for one, other in pairs.items()}
    off = {name, pairs.get(name, name)}
    infos = make(ALL, robot=TURNS).infos()
    others = make({key: value for key, value in ALL.items() if key not in off}, robot=TURNS).infos()
    for key, value in infos.items():
        if key.removeprefix("randomisation/").removesuffix("_place") not in off:
            np.testing.assert_array_equal(others[key], value, err_msg=key)
        else:
            assert key not in others


def test_what_is_drawn_in_every_step_moves_no_other_draw_either() -> None:
    pushes = {"push_hz": {"low": 2.0, "high": 2.0}, "push_m_s": {"low": 0.1, "high": 0.1}}
    noise = {"angle_noise_rad": {"low": 0.1, "high": 0.1}}
    seen = []
    for more in ({}, {"command_jitter_s": {"high": 0.1}}, {"pose_jitter_s": {"high": 0.1}}):
        core = make({**pushes, **noise, **more})
        forces, errors = [], []
        for _ in range(8):
            core.step(np.zeros(core.action.shape))
            forces.append(core.robot.params.body_acc.copy())
            errors.append(core.measurement.joint_angle - core.robot.joint_angle())
        seen.append((np.array(forces), np.array(errors)))
    assert (seen[0][0] != 0.0).any() and (seen[0][0] == 0.0).any()
    for forces, errors in seen[1:]:
        np.testing.assert_array_equal(forces, seen[0][0])
        np.testing.assert_allclose(errors, seen[0][1], atol=1e-12)


# --- bodies and ground -----------------------------------------------------------------------------------------------


def test_twice_the_mass_gives_the_acceleration_of_the_dense_equations_with_twice_the_mass() -> None:
    twice = {"low": 2.0, "high": 2.0}
    core = make({"mass": twice, "friction_across": twice, "link_length": {"low": 1.5, "high": 1.5}}, robot="resilient")
    robot, spec = core.robot, core.spec
    rng = np.random.default_rng(1)
    robot.state.link_rate[:] = rng.normal(size=robot.state.link_rate.shape)
    robot.state.centre_vel[:] = rng.normal(size=robot.state.centre_vel.shape)
    u = rng.normal(size=(robot.n_worlds, spec.n_joints))
    chain = DenseChain.of(spec)
    chain = replace(
        chain, mass=2.0 * chain.mass, inertia=2.0 * 2.25 * chain.inertia, c_n=2.0 * chain.c_n,
        half_length=1.5 * chain.half_length,
    )  # fmt: skip
    state = robot.state
    expected = chain.accelerate(
        DenseState(state.link_angle, state.link_rate, state.centre_xy, state.centre_vel), u, np.ones(u.shape, bool)
    )
    for got, wanted in zip(robot.derivative(u), expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-9)
    assert RESILIENT.links("link_mass_kg")[0] == spec.links("link_mass_kg")[0]  # controllers know the nominal robot


@pytest.mark.parametrize("sensors", [{}, {"encoder_delay_s": {"high": 0.0}}], ids=["true", "read anew"])
def test_the_head_is_where_the_true_robot_has_it_and_the_measured_centre_where_the_nominal_one_had_it(
    sensors: dict[str, Any],
) -> None:
    core = make({"mass": {"low": 0.3, "high": 3.0}, "link_length": {"low": 0.5, "high": 2.0}, **sensors})
    play(core, 3)
    state, params = core.robot.state, core.robot.params
    # From the tail on, link by link; the centre of mass is the origin of the sum.
    half = params.half_length[..., None] * np.stack([np.cos(state.link_angle), np.sin(state.link_angle)], axis=-1)
    place = np.zeros_like(half)
    for link in range(1, core.spec.n_links):
        place[:, link] = place[:, link - 1] + half[:, link - 1] + half[:, link]
    centre = (params.mass[..., None] * place).sum(axis=1) / params.mass.sum(axis=1)[:, None]
    np.testing.assert_allclose(state.head_xy, state.centre_xy + place[:, -1] - centre, atol=1e-12)
    sample = core.measurement
    nominal = tracked_point(core.spec, sample._replace(centre_xy_w=None), "centre")
    np.testing.assert_array_equal(sample.head_xy_w, state.head_xy)
    assert sample.centre_xy_w is not None
    np.testing.assert_allclose(sample.centre_xy_w, nominal, atol=1e-12)
    assert np.abs(nominal - state.centre_xy).max() > 1e-3


def test_dry_friction_follows_the_weight() -> None:
    dry = {"preset": "resilient_servo", "friction": {"tangential_coulomb": 0.1, "normal_coulomb": 0.5}}
    core = make({"mass": {"low": 2.0, "high": 2.0}, "payload_kg": {"low": 1.0, "high": 1.0}}, robot=dry)
    params, nominal = core.robot.params, chain_params(core.spec, 1)
    loaded = (params.mass - 2.0 * nominal.mass).round(12)
    assert sorted(set(loaded.ravel().tolist())) == [0.0, 1.0] and (loaded.sum(axis=1) == 1.0).all()
    for force, coefficient in ((params.coulomb_t, 0.1), (params.coulomb_n, 0.5)):
        np.testing.assert_allclose(force, coefficient * params.mass * 9.81, rtol=1e-12)


@pytest.mark.parametrize("delay_s", [0.0, 0.085])
def test_patches_lie_as_the_control_step_begins_for_late_references_too(delay_s: float) -> None:
    servo = replace(RESILIENT_SERVO.actuator, delay_s=delay_s)
    spec = replace(RESILIENT_SERVO, friction=FrictionSpec(1.0, 10.0, 0.01), actuator=servo)
    flat, hilly = SimulatedRobot(spec, 1, 1), SimulatedRobot(spec, 1, 1)
    phase = np.array([[0.3, 0.8]])
    core = make({"patches": {"low": 0.5, "high": 0.5}, "patch_size_m": 0.05}, 1)
    assert core.randomisation is not None
    patches = core.randomisation._patches
    patches.phase[:], patches.direction[:] = phase, 0.0
    hilly.lay_patches(patches)
    for robot in (flat, hilly):
        robot.set_shape(np.full((1, 9), 0.3), np.zeros(1), np.zeros((1, 2)))
        robot.state.centre_vel[:] = 1.0, 0.5
    half, angle = 0.07, flat.state.link_angle[0]
    along = half * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    ways = np.append(along[:-1] + along[1:], np.zeros((1, 2)), axis=0)
    middle = flat.state.head_xy - np.cumsum(ways[::-1], axis=0)[::-1]
    factor = 1.0 + 0.5 * np.sin(math.pi / 0.05 * middle + phase).prod(axis=1)
    flat.use_parameters(
        flat.params._replace(**{name: factor * getattr(flat.params, name) for name in ("c_t", "c_n", "c_r")})
    )
    for robot in (flat, hilly):
        robot.step(np.full((1, 9), -0.3))
    np.testing.assert_allclose(hilly.state.link_angle, flat.state.link_angle, atol=1e-9)
    np.testing.assert_allclose(hilly.state.centre_xy, flat.state.centre_xy, atol=1e-9)


def test_a_push_makes_a_free_robot_faster_by_what_it_says() -> None:
    slippery = {"preset": "resilient_servo", "friction": {"tangential_ns_m": 0.0, "normal_ns_m": 0.0}}
    core = make({"push_hz": {"low": 1.0, "high": 1.0}, "push_m_s": {"low": 0.2, "high": 0.2}}, 16, robot=slippery)
    sizes = []
    for _ in range(20):
        before = core.robot.state.centre_vel.copy()
        core.step(np.zeros(core.action.shape))
        sizes.append(np.hypot(*(core.robot.state.centre_vel - before).T))
    pushed = np.array(sizes) > 0.1
    np.testing.assert_allclose(np.array(sizes)[pushed], 0.2, atol=1e-9)
    np.testing.assert_allclose(np.array(sizes)[~pushed], 0.0, atol=1e-9)
    expected = 1.0 - math.exp(-core.spec.control_dt_s)
    assert abs(pushed.mean() - expected) < 4.0 * math.sqrt(expected / pushed.size)


# --- delays and sensors ----------------------------------------------------------------------------------------------


def test_late_encoders_and_poses_say_what_was() -> None:
    late = {"encoder_delay_s": {"low": 0.3, "high": 0.3}, "pose_delay_s": {"low": 0.4, "high": 0.4}}
    core = make(late)
    angles, heads = [core.robot.joint_angle()] * 3, [core.robot.state.head_xy.copy()] * 3
    for _ in range(6):
        play(core, 1)
        angles.append(core.robot.joint_angle())
        heads.append(core.robot.state.head_xy.copy())
        np.testing.assert_allclose(core.measurement.joint_angle, 0.5 * (angles[-2] + angles[-3]), atol=1e-12)
        np.testing.assert_allclose(core.measurement.head_xy_w, heads[-3], atol=1e-12)


def test_noise_and_biases_have_the_sizes_that_the_infos_tell() -> None:
    names = ("angle_noise_rad", "rate_noise_rad_s", "position_noise_m", "heading_noise_rad")
    noise = {name: {"low": 0.1 * (i + 1), "high": 0.1 * (i + 1)} for i, name in enumerate(names)}
    biases = {name: {"low": -0.5, "high": 0.5} for name in ("angle_bias_rad", "position_bias_m", "heading_bias_rad")}
    core = make({**noise, **biases}, 500)
    infos, state, sample = core.infos(), core.robot.state, core.measurement
    heading = (sample.head_angle - state.link_angle[:, -1])[:, None]
    for error, size, bias in (
        (sample.joint_angle - core.robot.joint_angle(), 0.1, infos["randomisation/angle_bias_rad"]),
        (sample.joint_rate - core.robot.joint_rate(), 0.2, np.zeros((500, 9))),
        (sample.head_xy_w - state.head_xy, 0.3, infos["randomisation/position_bias_m"]),
        (heading, 0.4, infos["randomisation/heading_bias_rad"][:, None]),
    ):
        assert (error - bias).std() == pytest.approx(size, rel=4.0 / math.sqrt(2.0 * error.size))


# --- faults in a world that varies -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("outage_s", "lasts"), [(0.4, 2), (0.5, 3), (1.0, 5)])
def test_a_lost_pose_is_the_last_one_and_outages_last_as_long_as_set(outage_s: float, lasts: int) -> None:
    core = make({"pose_loss_hz": {"low": 0.3, "high": 0.3}, "pose_outage_s": {"low": outage_s, "high": outage_s}}, 32)
    valid, head = [core.measurement.pose_valid], core.measurement.head_xy_w
    rng = np.random.default_rng(0)
    for _ in range(200):
        core.step(rng.uniform(-1.0, 1.0, core.action.shape))
        seen = core.measurement
        head = np.where(seen.pose_valid[:, None], core.robot.state.head_xy, head)
        np.testing.assert_array_equal(seen.head_xy_w, head)
        valid.append(seen.pose_valid)
    told = ["".join("v" if v else "l" for v in row) for row in np.array(valid).T]
    lengths = [len(run) for row in told for run in re.findall("(?<=v)l+(?=v)", row)]
    # Where one outage follows upon another they make one run; none ends early or late.
    assert lengths.count(lasts) > 100 and all(length % lasts == 0 for length in lengths)


def test_a_lower_voltage_sags_as_that_of_a_robot_which_is_built_for_it() -> None:
    """Ohm's law: the share of the voltage that a current takes is larger where the voltage is lower."""
    share = 0.6
    high = {"torque_limit_nm": 4.0, "speed_limit_rad_s": 2.0, "supply_voltage_v": 12.0}
    low = {name: share * value for name, value in high.items()}
    beside = {"kp": 60.0, "kd": 10.0, "supply_resistance_ohm": 3.0}
    robots = [{"preset": SERVO, "actuator": {**beside, **own}} for own in (high, low)]
    varied = make({"supply_voltage": {"low": share, "high": share}}, 2, robot=robots[0])
    built = make({}, 2, robot=robots[1])
    for core in (varied, built):
        play(core, 10)
    assert built.robot.state.supply.max() < 0.9
    np.testing.assert_allclose(varied.robot.state.supply, built.robot.state.supply, rtol=1e-6)
    np.testing.assert_allclose(varied.robot.state.link_angle, built.robot.state.link_angle, atol=1e-6)
