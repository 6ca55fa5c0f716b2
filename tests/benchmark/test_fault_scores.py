"""Scores of fault detectors on a log whose answers are known by heart."""

from __future__ import annotations

import numpy as np
import pytest

from snake_gym.benchmark.fault_logs import KINDS, FaultLog, record
from snake_gym.benchmark.fault_scores import pool, score
from snake_gym.controllers.fault_detection import FREE, LOCKED, WEAK
from snake_gym.controllers.learned_detection import CODES
from snake_gym.physics.faults import FAULT_CODES
from snake_gym.robot.presets import PRESETS

SPEC = PRESETS["resilient_servo"]  # control step 0.2 s


def log_of(kinds: dict[int, tuple[str, int]], steps: int = 20) -> FaultLog:
    """One world; each joint has a kind from a step on."""
    shape = (steps, 1, SPEC.n_joints)
    kind, severity = np.zeros(shape, np.int64), np.zeros(shape)
    for joint, (name, onset) in kinds.items():
        kind[onset:, 0, joint] = FAULT_CODES[name]
        severity[onset:, 0, joint] = 0.3 * (name == "weak")
    nothing = np.zeros(shape)
    return FaultLog(SPEC, nothing, nothing, nothing, kind, severity)


def test_the_truth_is_of_both_faults_of_a_joint() -> None:
    events = [
        {"joint": 2, "kind": "weak", "strength": 0.3, "onset_s": 0.5, "duration_s": 1.0},
        {"joint": 2, "kind": "offset", "offset_rad": 0.25, "onset_s": 1.0},
    ]
    log = record({"robot": "resilient_servo", "faults": {"n_max": 0, "onset_min_s": 0.0, "events": events}}, 1, 0, 2.0)
    at = [1, 4, 6, 9]  # 0.2, 0.8, 1.2 s, when both act, and 1.8 s
    assert log.kind[at, 0, 1].tolist() == [FAULT_CODES[kind] for kind in ("healthy", "weak", "weak", "offset")]
    assert log.severity[at, 0, 1].tolist() == [0.0, 0.3, 0.3, 0.25]
    assert not np.delete(log.kind, 1, axis=2).any()


def test_delays_names_and_false_alarms_are_counted() -> None:
    log = log_of({0: ("locked", 5), 1: ("free", 10), 2: ("weak", 4)})
    estimate, severity = np.zeros(log.kind.shape), np.zeros(log.kind.shape)
    estimate[8:, 0, 0] = LOCKED  # 0.6 s late
    estimate[3:7, 0, 1] = LOCKED  # before it fails, and not after
    estimate[4:, 0, 2], severity[4:, 0, 2] = WEAK, 0.2
    estimate[[15, 17], 0, 5] = FREE  # twice, on a healthy joint
    scores = score(estimate, severity, log)
    assert [KINDS[kind] for kind in scores.kind] == ["locked", "free", "weak"]
    np.testing.assert_allclose(scores.delay_s, [0.6, np.nan, 0.0])
    assert scores.false_alarms == 3
    assert scores.flagged_h == pytest.approx(6 * 0.2 / 3600)
    assert scores.healthy_h == pytest.approx((9 * 20 - 15 - 10 - 16) * 0.2 / 3600)
    np.testing.assert_allclose(scores.severity_error, [np.nan, np.nan, 0.1])
    assert (scores.found("locked"), scores.found("free")) == (1.0, 0.0)
    assert scores.confusion("free") == [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    assert scores.delay_quantile_s("free", 0.5) == np.inf
    both = pool([scores, scores])
    assert both.kind.size == 6 and both.healthy_h == 2 * scores.healthy_h


def test_a_log_tells_the_truth() -> None:
    faults = {"n_min": 2, "n_max": 2, "onset_min_s": 1.0, "onset_max_s": 2.0, "kinds": ["locked", "weak"]}
    log = record({"robot": SPEC.name, "faults": faults}, 3, 7, 6.0)
    assert log.kind.shape == log.joint_angle.shape == log.reference.shape == (30, 3, SPEC.n_joints)
    assert (log.kind[:5] == 0).all() and ((log.kind[-1] != 0).sum(axis=1) == 2).all()
    locked, weak = (log.kind[-1] == FAULT_CODES[kind] for kind in ("locked", "weak"))
    assert (np.abs(np.diff(log.joint_angle[-15:], axis=0)).max(axis=0)[locked] < 1e-6).all()
    assert (log.severity[-1][weak] >= 0.05).all() and (log.severity[-1][~weak] == 0.0).all()
    assert set(CODES) == {"healthy", *KINDS}
