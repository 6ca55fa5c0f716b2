"""Dead reckoning against the simulated robot, poses from the network through real sockets."""

from __future__ import annotations

import json
import math
import socket
from collections.abc import Iterator

import numpy as np
import pytest

from snake_gym.config import ConfigError
from snake_gym.hardware.pose.dead_reckoning import DeadReckoning
from snake_gym.hardware.pose.udp_json import UdpJson
from snake_gym.robot.presets import PRESETS, RESILIENT_SERVO
from snake_gym.simulation.simulated_robot import SimulatedRobot

NO_JOINTS = np.zeros(RESILIENT_SERVO.n_joints)


@pytest.mark.parametrize(
    ("name", "wave"),
    [
        ("resilient_servo", (0.5, 2.0, 0.6)),
        pytest.param("snakesys", (0.6, 0.8, 0.9), marks=pytest.mark.slow),
        pytest.param("muscle", (0.5, 6.28, 1.2), marks=pytest.mark.slow),
    ],
)
def test_dead_reckoning_drifts_by_a_few_per_cent_of_the_way(name: str, wave: tuple[float, float, float]) -> None:
    """A simulated robot crawls, and the source follows its joints fifty times a second."""
    spec, source, seconds = PRESETS[name], DeadReckoning(PRESETS[name]), 10.0
    amplitude, frequency, shift = wave
    robot = SimulatedRobot(spec, 1, 1)
    lag = shift * np.arange(spec.n_joints)
    robot.set_shape(amplitude * np.sin(lag)[None], np.zeros(1), np.zeros((1, 2)), "head")
    step = max(1, round(0.02 / spec.sim_dt_s))
    for k in range(round(seconds / spec.control_dt_s)):
        reference = amplitude * np.sin(frequency * (k + 1) * spec.control_dt_s + lag)[None]
        left = spec.n_substeps
        while left > 0:
            robot.step(reference, n_substeps=min(step, left))
            left -= step
            source.follow(robot.joint_angle()[0], robot.joint_rate()[0], float(robot.state.time_s[0]))
    pose = source.read(0.0)
    way = np.linalg.norm(robot.state.head_xy[0])
    assert way > 1.0
    assert np.linalg.norm(pose.xy_w - robot.state.head_xy[0]) < 0.03 * way
    assert abs(pose.angle - robot.state.link_angle[0, -1]) < 0.02


def test_dead_reckoning_ignores_what_cannot_be_followed() -> None:
    source = DeadReckoning(RESILIENT_SERVO)
    assert not source.read(0.0).valid
    source.follow(NO_JOINTS, NO_JOINTS, 0.0)
    before = source.read(0.0)
    assert before.valid
    source.follow(NO_JOINTS + 1.0, NO_JOINTS, 5.0)  # a pause: nobody knows what happened
    np.testing.assert_array_equal(source.read(5.0).xy_w, before.xy_w)
    source.follow(np.full_like(NO_JOINTS, math.nan), NO_JOINTS, 5.1)
    assert source.read(5.1).stamp_s == 5.0


@pytest.fixture
def udp() -> Iterator[UdpJson]:
    source = UdpJson(port=0, stale_s=0.5)
    yield source
    source.close()


@pytest.fixture
def sender() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        yield made


def send(sender: socket.socket, source: UdpJson, *datagrams: bytes) -> None:
    """Datagrams to this machine: they have arrived when this returns."""
    for datagram in datagrams:
        sender.sendto(datagram, ("127.0.0.1", source.port))


def told(**changes: object) -> bytes:
    return json.dumps({"x_m": 1.0, "y_m": 2.0, "angle_rad": 0.5, **changes}).encode()


def test_a_pose_from_the_network_is_taken_and_grows_stale(udp: UdpJson, sender: socket.socket) -> None:
    assert not udp.read(0.0).valid
    assert udp.trouble == f"nothing arrives on UDP 127.0.0.1:{udp.port}"
    with pytest.raises(ConfigError, match="cannot listen there: Address already in use"):
        UdpJson(port=udp.port)
    send(sender, udp, told())
    pose = udp.read(10.0)
    assert pose.valid
    np.testing.assert_array_equal(pose.xy_w, [1.0, 2.0])
    assert udp.read(10.4).valid
    assert not udp.read(10.6).valid
    send(sender, udp, told(x_m=3.0, stamp_s=7.0), told(x_m=9.0, stamp_s=6.9))
    assert udp.read(11.0).xy_w[0] == 3.0  # the one that was overtaken is thrown away


JUNK = [
    b"", b"{", b"[]", b"7", b"\xff\xfe", told(x_m="far"), told(x_m=math.nan), b'{"x_m": 1, "y_m": 2}', b"[" * 1500,
    told(angle_rad=math.inf), told(stamp_s=math.nan), told(up=[0, 0, 0]), told(up=[0, 1]), told(z_m=1e999),
]  # fmt: skip


def test_junk_from_the_network_is_counted_and_changes_nothing(udp: UdpJson, sender: socket.socket) -> None:
    send(sender, udp, *JUNK)
    assert not udp.read(0.0).valid
    assert udp.trouble == f"the {len(JUNK)} datagrams on UDP 127.0.0.1:{udp.port} were no poses"
    send(sender, udp, told(z_m=0.1, up=[0, 3, 4]), *JUNK)
    pose = udp.read(1.0)
    assert pose.valid and udp.n_refused == 2 * len(JUNK)
    np.testing.assert_array_equal(pose.xy_w, [1.0, 2.0])
    assert pose.z_w == 0.1 and pose.up_h is not None, "of a spatial robot"
    np.testing.assert_allclose(pose.up_h, [0.0, 0.6, 0.8])
