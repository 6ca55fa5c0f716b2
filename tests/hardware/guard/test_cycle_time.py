"""A bus cycle on a slow wire or adapter: every answer has its time, and periods too short are refused.

The emulated wire counts ten bits a byte and the servos' return delays, on a clock that moves only when somebody waits.
"""

from __future__ import annotations

import socket
from pathlib import Path

import numpy as np
import pytest

from snake_gym.config import build, load_yaml
from snake_gym.emulator.bus import EmulatedBus, EmulatedServo
from snake_gym.hardware.__main__ import main
from snake_gym.hardware.bus.feetech import FEETECH
from snake_gym.hardware.bus.servo_bus import ServoBus, wire_times
from snake_gym.hardware.calibration.calibration import straight_chain
from snake_gym.hardware.guard.body import BringUpError
from snake_gym.hardware.guard.emergency_stop import EmergencyStop
from snake_gym.hardware.guard.guard import Guard
from snake_gym.hardware.guard.servo_body import ServoBody
from snake_gym.hardware.robot.connection import ConnectionConfig
from tests.hardware.rig import QUICK, Bench, Rig, serve

CONFIGS = Path(__file__).parents[3] / "configs" / "hardware"
SLOW = build(ConnectionConfig, load_yaml(CONFIGS / "sm8524bl.yaml")["connection"])
FACTORY_RETURN_DELAY = 250
"""Register value: 500 us."""


def make_body(folder: Path, baud: int, period_s: float, n: int = 9, return_delay: int = 0) -> ServoBody:
    registers = {"baud_rate": FEETECH.baud_rates.index(baud), "return_delay": return_delay}
    bus = EmulatedBus([EmulatedServo(k + 1, "SM8524BL", settings=registers) for k in range(n)], baud=baud)
    driver = ServoBus(bus.host_transport(), baud, bus.clock)
    chain = straight_chain(range(1, n + 1), 1.2, "SM8524BL")
    return ServoBody(driver, chain, QUICK, period_s, stop=EmergencyStop(folder / "estop"))


@pytest.mark.parametrize("period_s", [0.03, SLOW.period_s])
def test_a_guard_that_waits_for_a_command_leaves_all_answers_of_the_next_cycle_their_time(
    tmp_path: Path, period_s: float
) -> None:
    body = make_body(tmp_path, SLOW.baud, period_s)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    guard = Guard(ours, body.bus, body.torque, body)
    body.start()
    for cycle in range(60):
        body.clock.sleep(guard.patience_s())  # as long as it may: the policy commands in every sixth cycle only
        if cycle % 6 == 0:
            body.command(np.full(9, 0.1))
        body.send_goal()
        body.clock.sleep(body.next_cycle_s - body.clock.now())
        body.cycle()
        assert body.sample().health.answered.all()
    ours.close()
    theirs.close()


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
        settings = load_yaml(path)
        if "connection" in settings and settings["connection"]["port"].startswith("/dev"):
            connection = build(ConnectionConfig, settings["connection"])
            assert connection.period_s >= wire_times(9, connection.baud, FEETECH, 500e-6).shortest_period_s, path.name


@pytest.mark.parametrize(("latency_s", "period_s"), [(0.008, 0.02), (0.016, 0.03), (0.025, 0.05)])
def test_a_robot_runs_on_a_slow_adapter(tmp_path: Path, latency_s: float, period_s: float) -> None:
    rig = Rig(tmp_path, 9)
    rig.bus.latency_s, rig.body.period_s = latency_s, period_s
    rig.body.start()
    rig.run(1.0, np.full(9, 0.2))
    assert (rig.body.stop_reason, rig.body.news()) == (None, [])
    np.testing.assert_allclose(rig.body.sample().joint_angle, 0.2, atol=1e-3)
    assert rig.driver.cycle_time([1]).latency_s == pytest.approx(latency_s, abs=1e-3)


def test_the_wait_follows_what_answers_take_or_is_what_is_set() -> None:
    bench = Bench([1, 2])
    bench.bus.latency_s = 0.016
    assert bench.driver.ping(1) is not None
    assert 0.017 < bench.driver.line.wait_s < 0.022
    bench.bus.latency_s = 0.0
    for _ in range(40):
        bench.driver.read_block([1, 2], "present_position")
    assert bench.driver.line.wait_s < 0.006
    given = Bench([1], latency_s=0.01)
    given.bus.latency_s = 0.016
    assert given.driver.ping(1) is None


def test_the_doctor_names_an_adapter_of_16_ms(capsys: pytest.CaptureFixture[str]) -> None:
    with serve(range(1, 3)) as port:
        port.bus.latency_s = 0.016
        assert main(["scan", "--doctor", "--port", port.port, "--ids", "1-2"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[5:7]] == ["1", "2"] and all("12.0 V" in line for line in lines[5:7])
    assert "set the adapter's latency timer" in lines[-1] and "or connection.period_s to 0.0" in lines[-1]
