"""Adapters that hold answers back, up to FTDI's 16 ms: a robot runs, or the message says what to do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from snake_gym.hardware.__main__ import main
from snake_gym.hardware.bus.bus import BusPort
from snake_gym.hardware.calibration.calibration import straight_chain
from snake_gym.hardware.guard.body import BringUpError
from snake_gym.hardware.guard.checks import SafetyLimits
from snake_gym.hardware.guard.client import GuardedBody
from tests.hardware.rig import Bench, Rig, serve


@pytest.mark.parametrize(("latency_s", "period_s"), [(0.008, 0.02), (0.016, 0.03), (0.025, 0.05)])
def test_a_robot_runs_on_a_slow_adapter(tmp_path: Path, latency_s: float, period_s: float) -> None:
    rig = Rig(tmp_path, 9)
    rig.bus.latency_s, rig.body.period_s = latency_s, period_s
    rig.body.start()
    rig.run(1.0, np.full(9, 0.2))
    assert (rig.body.stop_reason, rig.body.news(), rig.driver.late.total()) == (None, [], 0)
    np.testing.assert_allclose(rig.body.sample().joint_angle, 0.2, atol=1e-3)
    assert rig.driver.cycle_time([1]).latency_s == pytest.approx(latency_s, abs=1e-3)


def test_a_period_too_short_for_the_adapter_is_refused_with_what_to_do(tmp_path: Path) -> None:
    rig = Rig(tmp_path, 9)
    rig.bus.latency_s = 0.016
    expected = r"period_s is 0.02; expected >= 0.03: .* answers take 16 ms \(or set the adapter's latency timer"
    with pytest.raises(BringUpError, match=expected):
        rig.body.start()


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


def test_late_answers_are_counted_for_the_servo_that_was_late() -> None:
    bench = Bench([1, 2, 3])
    bench.driver.read_block([1, 2, 3], "present_position")
    bench.bus.faults.order("late", 2)
    for _ in range(5):
        bench.driver.read_block([1, 2, 3], "present_position", deadline_s=bench.now() + 0.008)
        bench.wait(0.02)
    assert dict(bench.driver.late) == {2: 1}


def test_doctor_and_guard_on_a_serial_device_of_16_ms(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    limits = SafetyLimits(ramp_time_s=0.05, lost_after_s=5.0, command_timeout_s=30.0)
    with serve(range(1, 10)) as port:
        assert main(["scan", "--doctor", "--port", port.port, "--ids", "1-2"]) in (0, 1)  # 1: the machine is busy
        assert "garbled" in capsys.readouterr().out
        port.bus.latency_s = 0.016
        assert main(["scan", "--doctor", "--port", port.port, "--ids", "1-2"]) == 1
        lines = capsys.readouterr().out.splitlines()
        assert [line.split()[0] for line in lines[5:7]] == ["1", "2"] and all("12.0 V" in line for line in lines[5:7])
        assert "set the adapter's latency timer" in lines[-1] and "or connection.period_s to 0.0" in lines[-1]
        body = GuardedBody(
            BusPort(port.port), straight_chain(range(1, 10), 1.2), limits, 0.05, latch=tmp_path / "estop"
        )
        try:
            body.start()
            when = body.clock.now()
            for _ in range(40):
                body.command(np.full(9, 0.2))
                when += 0.1
                sample = body.run_until(when)
                if np.abs(sample.joint_angle - 0.2).max() < 0.01:
                    break
            assert np.abs(sample.joint_angle - 0.2).max() < 0.01
            assert body.stop_reason is None
        finally:
            body.close()
