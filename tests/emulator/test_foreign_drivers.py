"""Drivers that others wrote talk to the emulator through the pseudo terminal as they would to servos.

None of them is needed to run this project; the ``dev`` extra brings them all. Left alone they wait 20-100 ms for an
answer and do not ask again; here they wait ``PATIENCE_S``, so that a busy machine fails no test.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import dynamixel_sdk as dxl
import pytest
import scservo_sdk as scs
import serial
from feetech_cli import protocol

from snake_gym.hardware.bus.dynamixel import XL330, XL430, XM430
from snake_gym.hardware.bus.family import ServoFamily
from tests.hardware.emulate_servos import emulated

IDS = [1, 2, 5]
PATIENCE_S = 0.3


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    for sdk in (scs, dxl):
        monkeypatch.setattr(sdk.port_handler, "LATENCY_TIMER", 1e3 * PATIENCE_S)


@pytest.fixture(scope="module")
def port() -> Iterator[str]:
    with emulated(IDS) as device:
        yield device


def until_equal(read: Any, wanted: Any) -> Any:
    """What ``read`` gives once it is ``wanted``, or after 20 s."""
    end_s = time.monotonic() + 20.0
    while (found := read()) != wanted and time.monotonic() < end_s:
        time.sleep(0.02)
    return found


# --- feetech-servo-sdk 1.0: the SDK that LeRobot uses ----------------------------------------------------------------


@pytest.fixture
def sdk1(port: str) -> Iterator[Any]:
    handler = scs.PortHandler(port)
    assert handler.openPort()
    yield handler, scs.PacketHandler(0)
    handler.closePort()


def test_sdk1_pings_reads_and_writes(sdk1: Any) -> None:
    handler, packets = sdk1
    for servo_id in IDS:
        assert packets.ping(handler, servo_id) == (777, scs.COMM_SUCCESS, 0)
    assert packets.ping(handler, 9)[1] == scs.COMM_RX_TIMEOUT
    assert packets.read2ByteTxRx(handler, 1, 56) == (2048, scs.COMM_SUCCESS, 0)
    assert packets.read1ByteTxRx(handler, 1, 200) == (0, scs.COMM_SUCCESS, 0)
    assert packets.write1ByteTxRx(handler, 1, 41, 50) == (scs.COMM_SUCCESS, 0)
    assert packets.read1ByteTxRx(handler, 1, 41) == (50, scs.COMM_SUCCESS, 0)
    assert packets.write1ByteTxRx(handler, 1, 41, 0) == (scs.COMM_SUCCESS, 0)
    assert packets.write2ByteTxRx(handler, 1, 42, 2300) == (scs.COMM_SUCCESS, 0)
    assert until_equal(lambda: packets.read2ByteTxRx(handler, 1, 56)[0], 2300) == 2300


def test_sdk1_sync_write_and_read(sdk1: Any) -> None:
    handler, packets = sdk1
    writer = scs.GroupSyncWrite(handler, packets, 41, 7)
    for servo_id in IDS:
        goal = 2000 + 100 * servo_id
        writer.addParam(servo_id, [0, scs.SCS_LOBYTE(goal), scs.SCS_HIBYTE(goal), 0, 0, 0, 0])
    assert writer.txPacket() == scs.COMM_SUCCESS
    reader = scs.GroupSyncRead(handler, packets, 56, 15)
    for servo_id in IDS:
        reader.addParam(servo_id)

    def positions() -> list[int]:
        assert reader.txRxPacket() == scs.COMM_SUCCESS
        return [reader.getData(i, 56, 2) for i in IDS]

    goals = [2000 + 100 * i for i in IDS]
    assert until_equal(positions, goals) == goals
    assert [reader.getData(i, 63, 1) for i in IDS] == [25, 25, 25]


def test_sdk1_changes_an_id_as_lerobot_does(sdk1: Any) -> None:
    handler, packets = sdk1
    for address, value in ((40, 0), (55, 0), (5, 77)):
        assert packets.write1ByteTxRx(handler, 5, address, value) == (scs.COMM_SUCCESS, 0)
    assert packets.ping(handler, 77)[1] == scs.COMM_SUCCESS
    assert packets.ping(handler, 5)[1] == scs.COMM_RX_TIMEOUT
    for address, value in ((5, 5), (55, 1)):
        assert packets.write1ByteTxRx(handler, 77 if address == 5 else 5, address, value) == (scs.COMM_SUCCESS, 0)


def test_sdk1_broadcast_ping_as_lerobot_does(sdk1: Any) -> None:
    handler, packets = sdk1
    assert packets.txPacket(handler, [0, 0, scs.BROADCAST_ID, 2, scs.INST_PING, 0]) == scs.COMM_SUCCESS
    handler.is_using = False
    assert until_equal(handler.getBytesAvailable, 6 * len(IDS)) == 6 * len(IDS)
    answers = bytes(handler.readPort(100))
    assert answers == b"".join(bytes([0xFF, 0xFF, i, 2, 0, ~(i + 2) & 0xFF]) for i in IDS)


# --- dynamixel-sdk 4.1: Robotis's own -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def x_port() -> Iterator[str]:
    with emulated(IDS, "XL430-W250", baud_rate=3) as device:
        yield device


@pytest.fixture
def robotis(x_port: str) -> Iterator[Any]:
    handler = dxl.PortHandler(x_port)
    assert handler.setBaudRate(1_000_000)
    yield handler, dxl.PacketHandler(2.0)
    handler.closePort()


def test_robotis_sdk_pings_reads_and_writes(robotis: Any) -> None:
    handler, packets = robotis
    for servo_id in IDS:
        assert packets.ping(handler, servo_id) == (1060, dxl.COMM_SUCCESS, 0)
    assert packets.ping(handler, 9)[1] == dxl.COMM_RX_TIMEOUT
    assert packets.read4ByteTxRx(handler, 1, 132) == (2048, dxl.COMM_SUCCESS, 0)
    assert packets.read2ByteTxRx(handler, 1, 144) == (120, dxl.COMM_SUCCESS, 0)
    assert packets.write4ByteTxRx(handler, 1, 116, 2300) == (dxl.COMM_SUCCESS, 0)
    assert packets.read1ByteTxRx(handler, 1, 64) == (0, dxl.COMM_SUCCESS, 0), "a goal switches no torque on"
    assert packets.write1ByteTxRx(handler, 1, 64, 1) == (dxl.COMM_SUCCESS, 0)
    assert packets.write4ByteTxRx(handler, 1, 116, 2300) == (dxl.COMM_SUCCESS, 0)
    assert until_equal(lambda: packets.read4ByteTxRx(handler, 1, 132)[0], 2300) == 2300
    refused = {(116, 4, 5000): 6, (112, 4, 40_000): 4, (11, 1, 3): 7, (132, 4, 0): 7, (116, 2, 2048): 5}
    for (address, size, value), why in refused.items():
        data = list(value.to_bytes(size, "little"))
        assert packets.writeTxRx(handler, 1, address, size, data) == (dxl.COMM_SUCCESS, why), address
    assert packets.write1ByteTxRx(handler, 1, 64, 0) == (dxl.COMM_SUCCESS, 0)


def test_robotis_sdk_reads_what_has_to_be_stuffed(robotis: Any) -> None:
    handler, packets = robotis
    for value in (-131_073 & 0xFFFFFFFF, 0):  # bytes FF FF FD FF
        assert packets.write4ByteTxRx(handler, 2, 20, value) == (dxl.COMM_SUCCESS, 0)
        assert packets.read4ByteTxRx(handler, 2, 20) == (value, dxl.COMM_SUCCESS, 0)


def test_robotis_sdk_sync_write_and_read(robotis: Any) -> None:
    handler, packets = robotis
    for address, size, value in ((64, 1, 1), (116, 4, 2100)):
        writer = dxl.GroupSyncWrite(handler, packets, address, size)
        for servo_id in IDS:
            writer.addParam(servo_id, (value + (servo_id if size == 4 else 0)).to_bytes(size, "little"))
        assert writer.txPacket() == dxl.COMM_SUCCESS
    reader = dxl.GroupSyncRead(handler, packets, 126, 21)
    for servo_id in IDS:
        reader.addParam(servo_id)
    wanted = [dxl.COMM_SUCCESS, 2101, 2102, 2105]
    assert until_equal(lambda: [reader.txRxPacket(), *(reader.getData(i, 132, 4) for i in IDS)], wanted) == wanted
    assert [reader.getData(i, 146, 1) for i in IDS] == [25, 25, 25]


def test_robotis_sdk_finds_all_and_reboots_one(robotis: Any) -> None:
    handler, packets = robotis
    found, result = packets.broadcastPing(handler)
    assert (result, found) == (dxl.COMM_SUCCESS, {one: [1060, 45] for one in IDS})
    assert packets.write1ByteTxRx(handler, 5, 64, 1) == (dxl.COMM_SUCCESS, 0)
    assert packets.reboot(handler, 5) == (dxl.COMM_SUCCESS, 0)
    assert until_equal(lambda: packets.read1ByteTxRx(handler, 5, 64), (0, dxl.COMM_SUCCESS, 0))[1] == dxl.COMM_SUCCESS


@pytest.mark.parametrize(("family", "name"), [(XL330, "xl330_m288"), (XL430, "xl430_w250"), (XM430, "xm430_w350")])
def test_robotis_tables_are_ours(family: ServoFamily, name: str) -> None:
    text = (files("dynamixel_easy_sdk") / "control_table" / f"{name}.model").read_text()
    rows = re.findall(r"^(\d+)\t(\d+)\t", text.split("[control table]")[1], re.MULTILINE)
    theirs = {int(address): int(size) for address, size in rows if int(address) < 147}
    ours = {one.address: one.encoding.size for one in family.registers}
    assert {at: ours.get(at) for at in theirs if at != 13 or 13 in ours} == theirs
    assert set(ours) - set(theirs) <= {13, 60, 62, 147}, "protocol, start-up, slope, backup: not in all of their files"


# --- rustypot: a driver in Rust --------------------------------------------------------------------------------------


def test_rustypot_x(x_port: str) -> None:
    rustypot = pytest.importorskip("rustypot", reason="it has no wheel for Python 3.14")
    servos = rustypot.Xl430PyController(serial_port=x_port, baudrate=1_000_000, timeout=PATIENCE_S)
    assert [servos.ping(i) for i in (1, 2, 5, 7)] == [True, True, True, False]
    servos.sync_write_torque_enable(IDS, [True] * 3)
    servos.sync_write_bus_watchdog(IDS, [127] * 3)
    assert servos.sync_read_bus_watchdog(IDS) == [127] * 3
    assert [bytes(one) for one in servos.sync_read_raw_data(IDS, 144, 2)] == [b"\x78\0"] * 3
    servos.sync_write_torque_enable(IDS, [False] * 3)
    assert not any(servos.sync_read_torque_enable(IDS))


# --- feetech-cli -----------------------------------------------------------------------------------------------------


def test_feetech_cli_reads_and_writes_where_the_adapter_echoes() -> None:
    with emulated(IDS, echo=1) as device, serial.Serial(device, 1_000_000, timeout=PATIENCE_S) as line:
        packets = protocol.PacketHandler(line)
        assert packets.ping(1)
        assert packets.read(5, 56, 2) == b"\x00\x08"
        packets.write(5, 42, (2222).to_bytes(2, "little"))
        assert until_equal(lambda: packets.decode(2, packets.read(5, 56, 2)), 2222) == 2222
        assert [packets.decode(2, data) for _, data in packets.sync_read([1, 2], 56, 2).values()] == [2048, 2048]
