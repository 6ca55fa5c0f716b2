"""Every pose source against what it measures: the simulated robot, real sockets, bytes of a real protocol."""

from __future__ import annotations

import json
import math
import os
import pty
import socket
import struct
import tty
from collections.abc import Iterator

import numpy as np
import pytest

from snake_gym.config import ConfigError
from snake_gym.hardware.bus.transport import SerialTransport
from snake_gym.hardware.pose.dead_reckoning import DeadReckoning
from snake_gym.hardware.pose.serial_imu import PACKET_BYTES, RvcParser, SerialImu
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
    assert np.linalg.norm(pose.xy_w - robot.state.head_xy[0]) < 0.06 * way
    assert abs(pose.angle - robot.state.link_angle[0, -1]) < 0.06


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
def senders() -> Iterator[list[socket.socket]]:
    both = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
    yield both
    for one in both:
        one.close()


def send(sender: socket.socket, source: UdpJson, *datagrams: bytes) -> None:
    """Datagrams to this machine: they have arrived when this returns."""
    for datagram in datagrams:
        sender.sendto(datagram, ("127.0.0.1", source.port))


def told(**changes: object) -> bytes:
    return json.dumps({"x_m": 1.0, "y_m": 2.0, "angle_rad": 0.5, **changes}).encode()


def test_a_pose_from_the_network_is_taken_and_grows_stale(udp: UdpJson, senders: list[socket.socket]) -> None:
    assert not udp.read(0.0).valid
    send(senders[0], udp, told())
    pose = udp.read(10.0)
    assert pose.valid
    np.testing.assert_array_equal(pose.xy_w, [1.0, 2.0])
    assert udp.read(10.4).valid
    assert not udp.read(10.6).valid
    send(senders[0], udp, told(x_m=3.0, stamp_s=7.0), told(x_m=9.0, stamp_s=6.9))
    assert udp.read(11.0).xy_w[0] == 3.0  # the one that was overtaken is thrown away


def test_two_senders_are_not_mixed_and_the_second_is_named_once(
    udp: UdpJson, senders: list[socket.socket], capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = senders
    assert udp.trouble == f"nothing arrives on UDP 127.0.0.1:{udp.port}"
    for k in range(3):
        send(first, udp, told(x_m=float(k), stamp_s=100.0 + k))
        send(second, udp, told(x_m=50.0, stamp_s=200.0))
        assert udp.read(0.1 * k).xy_w[0] == k
    other, own = (f"127.0.0.1:{one.getsockname()[1]}" for one in (second, first))
    assert capsys.readouterr().err == f"poses also come from {other}; ignored, those of {own} count\n"
    send(second, udp, told(x_m=50.0, stamp_s=99.0))  # the first has gone silent; another clock
    assert udp.read(1.0).xy_w[0] == 50.0
    assert udp.trouble == ""


@pytest.mark.parametrize(
    "junk",
    [b"", b"{", b"[]", b"7", b"\xff\xfe", told(x_m="far"), told(x_m=math.nan), b'{"x_m": 1, "y_m": 2}', b"[" * 1500,
     told(angle_rad=math.inf), told(stamp_s=math.nan)],
)  # fmt: skip
def test_junk_from_the_network_is_counted_and_changes_nothing(
    udp: UdpJson, senders: list[socket.socket], junk: bytes
) -> None:
    send(senders[0], udp, junk)
    assert not udp.read(0.0).valid
    assert udp.trouble == f"the 1 datagrams on UDP 127.0.0.1:{udp.port} were no poses"
    send(senders[0], udp, told(), junk)
    pose = udp.read(1.0)
    assert pose.valid
    np.testing.assert_array_equal(pose.xy_w, [1.0, 2.0])
    assert udp.n_refused == 2


def test_a_port_in_use_is_named(udp: UdpJson) -> None:
    with pytest.raises(ConfigError, match=r"cannot listen there: another program does \(a run still going\?\)"):
        UdpJson(port=udp.port)


def pack_rvc(index: int, yaw_rad: float) -> bytes:
    """A packet of a level, unaccelerated sensor."""
    yaw = round(math.remainder(yaw_rad, 2.0 * math.pi) / math.radians(0.01))
    body = struct.pack("<B6h3x", index & 0xFF, yaw, 0, 0, 0, 0, 1000)
    return b"\xaa\xaa" + body + bytes([sum(body) & 0xFF])


def test_imu_packets_are_found_in_noise_and_bad_ones_refused() -> None:
    parser = RvcParser()
    rng = np.random.default_rng(0)
    packets = [pack_rvc(i, 0.1 * i) for i in range(20)]
    assert {len(packet) for packet in packets} == {PACKET_BYTES}
    spoiled = bytearray(packets[7])
    spoiled[4] ^= 0x10
    stream = b"\xaa" + b"".join(packets[:7]) + bytes(spoiled) + b"\xaa\xaa\x01" + b"".join(packets[8:])
    found: list[float] = []
    while stream:
        n = int(rng.integers(1, 9))
        found += parser.feed(stream[:n])
        stream = stream[n:]
    expected = [0.1 * i for i in range(20) if i != 7]
    np.testing.assert_allclose(found, expected, atol=2e-4)


def test_the_imu_s_heading_replaces_that_of_dead_reckoning_and_its_loss_is_told() -> None:
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    source = SerialImu(
        SerialTransport(os.ttyname(theirs), 115_200), DeadReckoning(RESILIENT_SERVO, (1.0, 0.0), 0.3), stale_s=0.2
    )
    assert not source.read(0.0).valid
    assert source.trouble.startswith("no packet from the sensor")
    for k in range(200):  # three turns to the left: the sensor's yaw goes down, and wraps
        os.write(ours, pack_rvc(k, 2.0 - 0.1 * k))
        source.follow(NO_JOINTS, NO_JOINTS, 0.01 * k)
    pose = source.read(2.0)
    assert pose.valid
    assert pose.angle == pytest.approx(0.3 + 0.1 * 199, abs=1e-3)
    assert not source.read(2.5).valid
    for end in (theirs, ours):
        os.close(end)
    assert not source.read(2.6).valid
    assert source.trouble == "the sensor's port has vanished"
    source.close()
