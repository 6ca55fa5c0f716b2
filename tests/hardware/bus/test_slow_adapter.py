"""Adapters that hold answers back, up to FTDI's 16 ms: a robot runs, or the message says what to do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from snake_gym.hardware.__main__ import main
from snake_gym.hardware.guard.body import BringUpError
from tests.hardware.rig import Bench, Rig, serve


@pytest.mark.parametrize(("latency_s", "period_s"), [(0.008, 0.02), (0.016, 0.03), (0.025, 0.05)])
def test_a_robot_runs_on_a_slow_adapter(tmp_path: Path, latency_s: float, period_s: float) -> None:
    rig = Rig(tmp_path, 9)
    rig.bus.latency_s, rig.body.period_s = latency_s, period_s
    rig.body.start()
    rig.run(1.0, np.full(9, 0.2))
    assert (rig.body.stop_reason, rig.body.news()) == (None, [])
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


def test_the_doctor_names_an_adapter_of_16_ms(capsys: pytest.CaptureFixture[str]) -> None:
    with serve(range(1, 3)) as port:
        port.bus.latency_s = 0.016
        assert main(["scan", "--doctor", "--port", port.port, "--ids", "1-2"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[5:7]] == ["1", "2"] and all("12.0 V" in line for line in lines[5:7])
    assert "set the adapter's latency timer" in lines[-1] and "or connection.period_s to 0.0" in lines[-1]
