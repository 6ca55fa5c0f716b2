"""What a training says about its speed."""

from __future__ import annotations

import pytest
from snake_gym.agents import display


def test_the_time_left_does_not_count_the_compilation(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr(display.time, "monotonic", lambda: now[0])
    shown = display.TrainingDisplay(10_000)
    with shown.show(begin=0):
        now[0] = 300.0  # the first step waits for the compiler
        shown.advance(100)
        assert capsys.readouterr().err == ""
        now[0] = 320.0
        shown.advance(2_100)
    assert capsys.readouterr().err == "2,100/10,000 steps, 100/s, 79 s left\n"
