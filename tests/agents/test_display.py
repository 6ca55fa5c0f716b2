"""What a training says about its speed."""

from __future__ import annotations

import time

import pytest

from agents import display


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


def test_a_long_silence_at_the_begin_is_explained_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(display, "_SILENT_S", 0.01)
    shown = display.TrainingDisplay(10_000)
    with shown.show(begin=0):
        time.sleep(0.1)
        shown.advance(100)
        time.sleep(0.05)
    assert capsys.readouterr().err.count("compiling the physics") == 1
    with shown.show(begin=100):
        shown.advance(200)
        time.sleep(0.05)
    assert capsys.readouterr().err == ""
