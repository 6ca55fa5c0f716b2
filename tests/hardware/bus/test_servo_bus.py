"""The driver against emulated servos: what it reads, writes, and what it does when things go wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from snake_gym.emulator.bus import EmulatedServo
from snake_gym.hardware.bus.bus import NO_ANSWER, PORT_GONE, BlockRead
from snake_gym.hardware.bus.family import READING, ServoError
from snake_gym.hardware.bus.protocol import BROADCAST_ID, PROTOCOLS, Instruction, Packet
from tests.hardware.rig import AdapterFaults, Bench

both = pytest.mark.usefixtures("family")
ALL = list(range(1, 14))
BLOCK = READING


def settled(ids: list[int] = ALL, **more: Any) -> Bench:
    """A bench on which nothing has been asked but what the driver asks at first."""
    rig = Bench(ids, **more)
    rig.driver.ping(ids[0])
    rig.spy.written.clear()
    return rig


def packets(rig: Bench) -> list[Packet]:
    """What was sent."""
    return [packet for data in rig.spy.written if (packet := rig.bus.protocol.parse(data)) is not None]


def positions(found: BlockRead) -> list[int]:
    """Present positions in the order of the IDs, of servos that all answered."""
    return [values["present_position"] for values in found.values.values() if values is not None]


def test_one_request_reads_all_servos_in_their_wire_time() -> None:
    rig = settled()
    start_s = rig.now()
    found = rig.driver.read_block(ALL, *BLOCK)
    assert rig.spy.written == [PROTOCOLS[1].sync_read(ALL, 56, 15)]
    assert rig.now() - start_s == pytest.approx(2.94e-3, abs=1e-6)
    assert not found.failures
    assert found.stamp_s == start_s
    assert positions(found) == [2048] * 13
    assert set(found.errors.values()) == {0}


def test_targets_are_one_packet_of_golden_bytes() -> None:
    rig = settled([1, 2])
    assert rig.driver.write_targets([1, 2], [1000, -1], speed=[1000, 0])
    blocks = bytes([0, 0xE8, 3, 0, 0, 0xE8, 3]), bytes([0, 1, 0x80, 0, 0, 0, 0])
    assert rig.spy.written == [PROTOCOLS[1].sync_write(41, [(1, blocks[0]), (2, blocks[1])])]
    rig.wait(2.0)
    assert positions(rig.driver.read_block([1, 2], *BLOCK)) == [1000, 0]  # limits of the servo: 0 to 4095


def test_wrong_arguments_are_refused_before_a_byte_is_sent() -> None:
    rig = settled([1, 2])
    for call in (
        lambda: rig.driver.write_targets([1, 2], [2048, 40_000]),
        lambda: rig.driver.write_targets([1, 2], [2048]),
        lambda: rig.driver.write_register(1, "baud_rate", 6),
        lambda: rig.driver.write_register(1, "present_position", 6),
        lambda: rig.driver.write_register(1, "goal_postion", 6),
        lambda: rig.driver.torque([300], False),
    ):
        with pytest.raises(ValueError, match=r"."):
            call()
    assert rig.spy.written == []


def test_acknowledged_and_unacknowledged_writes() -> None:
    rig = Bench([1, 2])
    assert rig.driver.write_register(1, "torque_limit", 300)
    rig.spy.written.clear()
    assert rig.driver.write_register(2, "torque_limit", 400, acknowledged=False)
    rig.wait(0.01)
    assert rig.spy.end.read(100, 0.01) == b""  # written so that no servo answers
    assert [rig.bus.servo(i).memory.get("torque_limit") for i in (1, 2)] == [300, 400]
    assert rig.driver.write_register(2, "goal_position", -5)
    assert not rig.driver.write_register(9, "torque_limit", 300)


def test_a_servo_set_not_to_acknowledge_can_be_written() -> None:
    rig = Bench([EmulatedServo(one, settings={"response_level": 0}) for one in (1, 2)])
    assert rig.driver.write_register(1, "torque_limit", 321)
    assert rig.bus.servo(1).memory.get("torque_limit") == 321
    assert rig.driver.torque([1, 2], True) == {1: True, 2: True}


@both
def test_an_echoing_adapter() -> None:
    rig = Bench(ALL, faults=AdapterFaults(lost=0.02, corrupted=0.02), echo=True)
    for k in range(50):
        found = rig.driver.read_block(ALL, *BLOCK)
        rig.driver.write_targets(ALL, [2048 + k] * 13)
        rig.wait(0.01)
        for values in found.values.values():
            assert values is None or 2048 <= values["present_position"] <= 2048 + k
    assert rig.driver.write_register(3, "torque_limit", 500)


@pytest.mark.parametrize("echo", [False, True])
def test_an_answer_that_looks_like_the_echo_of_its_request(echo: bool) -> None:
    """A ping and its answer with the voltage bit set are the same six bytes; so are a read and two bytes of data."""
    rig = Bench([1], echo=echo)
    rig.bus.servo(1).supply_v = 30.0
    info = rig.driver.ping(1)
    assert info is not None
    assert info.error == ServoError.VOLTAGE
    assert rig.driver.ping(2) is None  # and an echo alone is no servo
    servo = rig.bus.servo(1)
    servo.supply_v, servo.encoder_broken = 12.0, True
    servo.memory.set("goal_position", 42 + 2 * 256)  # reads as the request itself: 2 bytes from address 42
    found = rig.driver.read_block([1], "goal_position")
    assert found.values[1] == {"goal_position": 42 + 2 * 256}
    assert found.errors[1] == ServoError.ENCODER


def drive(rig: Bench, n_ticks: int, period_s: float = 0.02) -> tuple[int, int, int]:
    """A 50 Hz loop of moving joints; (answers, missing ones, wrong ones), every deadline kept.

    Wrong is an answer with a position that the servo has not measured within this very reading.
    """
    measured: dict[int, set[int]] = {}
    for servo in rig.bus.servos:
        _watch(servo, measured)
    for servo_id in ALL:
        rig.driver.ping(servo_id)
    rig.driver.torque(ALL, True)
    answers = missing = wrong = 0
    next_s = rig.now()
    for k in range(n_ticks):
        next_s += period_s
        goals = [2048 + 7 * i + (300 if k % 50 < 25 else -300) for i in ALL]
        rig.driver.write_targets(ALL, goals, speed=600)
        measured.clear()
        found = rig.driver.read_block(ALL, *BLOCK, deadline_s=next_s - 0.002)
        assert rig.now() <= next_s - 0.002 + 1e-9
        for servo_id, values in found.values.items():
            if values is None:
                missing += 1
                assert servo_id in found.failures
            else:
                answers += 1
                wrong += values["present_position"] not in measured.get(servo_id, ())
        rig.wait(next_s - rig.now())
    return answers, missing, wrong


def _watch(servo: EmulatedServo, measured: dict[int, set[int]]) -> None:
    def sense() -> None:
        EmulatedServo.sense(servo)
        measured.setdefault(servo.id, set()).add(servo.memory.get("present_position"))

    servo.sense = sense  # type: ignore[method-assign]


@both
@pytest.mark.parametrize(
    ("faults", "n_ticks", "most_missing", "most_wrong", "missing"),
    [
        (AdapterFaults(lost=0.01, corrupted=0.01, seed=3), 80, 2e-3, 1e-3, "skip"),  # asked again within the period
        (AdapterFaults(late=0.05, late_min_s=0.004, late_max_s=0.09, seed=7), 80, 0.02, 0.0, "stop"),
        (AdapterFaults(lost=0.1, corrupted=0.1, late=0.1, merged=0.1, wrong_id=0.05, seed=5), 100, 0.7, 0.02, "skip"),
    ],
    ids=["rare", "late", "many"],
)
def test_faults_cost_few_answers_and_give_hardly_a_wrong_one(
    faults: AdapterFaults, n_ticks: int, most_missing: float, most_wrong: float, missing: str
) -> None:
    """A damaged packet has a right checksum in 1 case of 256; a wrong ID is noticed where the right one answers."""
    rig = Bench(ALL, faults=replace(faults), missing=missing)
    answers, n_missing, wrong = drive(rig, n_ticks)
    assert rig.bus.faults.counts.total() > 15
    assert n_missing < most_missing * (answers + n_missing)
    assert wrong <= most_wrong * answers


@both
def test_wrong_id_is_neither_taken_nor_lost() -> None:
    rig = Bench(ALL)
    rig.driver.torque(ALL, True)
    for servo in rig.bus.servos:
        rig.driver.write_register(servo.id, "goal_position", 1000 + 10 * servo.id)
    rig.wait(2.0)
    for servo_id in ALL:
        rig.bus.faults.order("wrong_id", servo_id)
        found = rig.driver.read_block(ALL, *BLOCK)
        assert not found.failures, servo_id
        assert positions(found) == [servo.present() for servo in rig.servos]
    assert rig.bus.faults.counts["wrong_id"] == 13


@both
@pytest.mark.parametrize("missing", ["skip", "stop"])
def test_a_servo_dies_and_comes_back(missing: str) -> None:
    rig = Bench(ALL, missing=missing)
    drive(rig, 10)
    rig.bus.servo(6).dead = True
    answers, n_missing, wrong = drive(rig, 50)
    assert (answers, n_missing, wrong) == (50 * 12, 50, 0)
    start_s = rig.now()
    found = rig.driver.read_block(ALL, *BLOCK)
    assert found.failures == {6: NO_ANSWER}
    assert rig.now() - start_s < 0.0045  # the others do not wait for it
    rig.bus.servo(6).dead = False
    drive(rig, 15)
    assert not rig.driver.read_block(ALL, *BLOCK).failures


@both
def test_servos_that_went_silent_together_come_back_together() -> None:
    rig, n_silent = Bench(ALL), []
    for k in range(40):
        for servo in rig.bus.servos[1:]:
            servo.dead = k < 10
        n_silent.append(len(rig.driver.read_block(ALL, *BLOCK, deadline_s=rig.now() + 0.014).failures))
        rig.wait(0.02)
    back = next(k for k in range(10, 40) if n_silent[k] < 12)
    assert n_silent[9] == 12 and n_silent[back + 1] == 0


@both
def test_an_interrupted_reading_leaves_nothing_behind() -> None:
    """Ctrl-C in the middle of an answer: what was on its way is not taken for the next answer."""
    rig = Bench([1, 2])
    rig.driver.torque([1, 2], True)
    rig.driver.write_targets([1, 2], [3000, 3000], speed=1000)
    read = rig.spy.end.read
    calls = 0

    def interrupted(max_bytes: int, timeout_s: float) -> bytes:
        nonlocal calls
        calls += timeout_s > 0.0
        if calls == 2:
            rig.spy.end.read = read  # type: ignore[method-assign]
            raise KeyboardInterrupt
        return read(max_bytes, timeout_s)

    rig.spy.end.read = interrupted  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        rig.driver.read_block([1, 2], *BLOCK)
    rig.spy.written.clear()
    rig.bus.clock.sleep(50e-6)  # servo 2 is still talking: a new request runs into it
    found = rig.driver.read_block([1, 2], *BLOCK)
    assert not found.failures
    asked = [rig.bus.protocol.split(one.params)[1] for one in packets(rig) if one.id == BROADCAST_ID]
    assert asked and all(n_bytes != 15 for n_bytes in asked)
    assert positions(found) == pytest.approx([servo.present() for servo in rig.servos], abs=10)


@both
def test_the_port_vanishes_and_comes_back() -> None:
    rig = Bench(ALL)
    drive(rig, 5)
    goals = [servo.memory.get("goal_position") for servo in rig.bus.servos]
    rig.bus.unplugged = True
    rig.spy.written.clear()
    for _ in range(50):
        assert set(rig.driver.read_block(ALL, *BLOCK).failures.values()) == {PORT_GONE}
        assert not rig.driver.write_targets(ALL, [100] * 13)
        assert not rig.driver.write_register(1, "torque_limit", 10)
        assert rig.driver.torque(ALL, False) == dict.fromkeys(ALL, False)
        assert rig.driver.ping(1) is None
        rig.wait(0.02)
    assert len(rig.spy.written) <= 1
    rig.bus.unplugged = False
    rig.wait(0.6)
    assert not rig.driver.read_block(ALL, *BLOCK).failures
    # nothing that was asked for in between has been sent, nor anything from before again
    assert Instruction.SYNC_WRITE not in {one.error_or_instruction for one in packets(rig)[1:]}
    assert [servo.memory.get("goal_position") for servo in rig.bus.servos] == goals


@both
def test_targets_are_never_repeated() -> None:
    rig = settled(faults=AdapterFaults(lost=0.3, corrupted=0.3))
    for k in range(100):
        rig.driver.write_targets(ALL, [2048 + k] * 13)
        rig.driver.read_block(ALL, *BLOCK, deadline_s=rig.now() + 0.02)
    goals = [one for one in packets(rig) if one.error_or_instruction == Instruction.SYNC_WRITE]
    assert len(goals) == len(set(goals)) == 100


@both
def test_torque_off_reaches_every_servo_that_can_be_reached() -> None:
    rig = Bench(ALL, faults=AdapterFaults(lost=0.2, corrupted=0.1, seed=11))
    rig.bus.servo(1).dead = rig.bus.servo(7).dead = True
    for _ in range(5):
        for servo in rig.bus.servos:
            servo.memory.set("torque_enable", 1)
        rig.spy.written.clear()
        off = rig.driver.torque(ALL, False)
        address = rig.driver.family.register("torque_enable").address
        first = next(one for one in packets(rig) if one.error_or_instruction == Instruction.SYNC_WRITE)
        wanted = rig.bus.protocol.sync_write(address, [(i, b"\x00") for i in ALL])
        assert first == rig.bus.protocol.parse(wanted), "all of them by the first packet"
        assert off == {servo.id: not servo.dead for servo in rig.bus.servos}
        assert rig.torque_on() == [servo.dead for servo in rig.servos]
