"""A bus cycle on a slow wire: every answer has its time, whenever the goals go out; periods too short are refused.

The emulated wire counts ten bits a byte and the servos' return delays, on a clock that moves only when somebody waits.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from snake_gym.config import build, load_yaml
from snake_gym.emulator.bus import EmulatedBus, EmulatedServo
from snake_gym.hardware.bus.feetech import FEETECH
from snake_gym.hardware.bus.servo_bus import ServoBus, wire_times
from snake_gym.hardware.calibration.calibration import straight_chain
from snake_gym.hardware.guard.body import BringUpError
from snake_gym.hardware.guard.cycle_time import shortest_period_s
from snake_gym.hardware.guard.emergency_stop import EmergencyStop
from snake_gym.hardware.guard.guard import Guard
from snake_gym.hardware.guard.servo_body import ServoBody
from snake_gym.hardware.robot.connection import ConnectionConfig
from tests.hardware.rig import QUICK

CONFIGS = Path(__file__).parents[3] / "configs" / "hardware"
SLOW = build(ConnectionConfig, load_yaml(CONFIGS / "sm8524bl.yaml")["connection"])
FACTORY_RETURN_DELAY = 250
"""Register value: 500 us."""


def make_body(folder: Path, baud: int, period_s: float, n: int = 9, return_delay: int = 0) -> ServoBody:
    settings = {"baud_rate": FEETECH.baud_rates.index(baud), "return_delay": return_delay}
    bus = EmulatedBus([EmulatedServo(k + 1, "SM8524BL", settings=settings) for k in range(n)], baud=baud)
    driver = ServoBus(bus.host_transport(), baud, bus.clock)
    chain = straight_chain(range(1, n + 1), 1.2, "SM8524BL")
    return ServoBody(driver, chain, QUICK, period_s, stop=EmergencyStop(folder / "estop"))


@pytest.fixture
def link() -> Iterator[socket.socket]:
    policys, guards = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with policys, guards:
        yield guards


@pytest.mark.parametrize("period_s", [0.03, SLOW.period_s])
def test_a_guard_that_waits_for_a_command_leaves_all_answers_of_the_next_cycle_their_time(
    tmp_path: Path, link: socket.socket, period_s: float
) -> None:
    body = make_body(tmp_path, SLOW.baud, period_s)
    guard = Guard(link, body.bus, body.torque, body)
    body.start()
    lost = np.zeros(9, int)
    for cycle in range(60):
        body.clock.sleep(guard.patience_s())  # as long as it may: the policy commands in every sixth cycle only
        if cycle % 6 == 0:
            body.command(np.full(9, 0.1))
        body.send_goal()
        body.clock.sleep(body.next_cycle_s - body.clock.now())
        body.cycle()
        lost += ~body.sample().health.answered
    assert lost.tolist() == [0] * 9
    assert body.stop_reason is None


@pytest.mark.parametrize(
    ("baud", "n", "too_short_s", "fits_s"), [(115_200, 9, 0.03, 0.035), (1_000_000, 20, 0.02, 0.025)]
)
def test_return_delays_count_for_the_period(
    tmp_path: Path, baud: int, n: int, too_short_s: float, fits_s: float
) -> None:
    make_body(tmp_path, baud, too_short_s, n).start()
    slow = make_body(tmp_path, baud, too_short_s, n, FACTORY_RETURN_DELAY)
    expected = rf"period_s is {too_short_s:g}; expected >= {fits_s:g}: {n} servos at {baud} baud .* 500 us"
    with pytest.raises(BringUpError, match=expected):
        slow.start()
    body = make_body(tmp_path, baud, fits_s, n, FACTORY_RETURN_DELAY)
    body.start()
    for k in range(40):
        body.command(np.full(n, 0.01 * k))
        body.run_until(body.clock.now() + fits_s)
        assert body.sample().health.answered.all()


def test_the_configurations_that_ship_have_time_for_servos_as_they_leave_the_factory() -> None:
    for path in CONFIGS.glob("*.yaml"):
        told = load_yaml(path)
        if "connection" in told and told["connection"]["port"].startswith("/dev"):
            connection = build(ConnectionConfig, told["connection"])
            assert connection.period_s >= shortest_period_s(wire_times(9, connection.baud, FEETECH, 500e-6)), path.name
