"""A policy's steps on a crude robot, from measurements to joint references; needs numpy alone."""

from __future__ import annotations

import numpy as np

from snake_gym.interface.observer import Observer
from snake_gym.interface.policy_file import FilePolicy
from snake_gym.robot.measurement import Goal, Measurement


def play(policy: FilePolicy, n_steps: int = 10) -> np.ndarray:
    """Joint references (n_steps, J) [rad]: joints turn towards them by at most 0.4 rad in a step, the head stays."""
    layout, decoder = policy.make_layout(), policy.make_decoder()
    n_joints = policy.spec.n_joints
    state, action = decoder.initial_state(1), np.zeros((1, decoder.size))
    angle = 0.3 * np.sin(np.arange(n_joints))[None]
    rate = np.zeros_like(angle)
    reference, references = angle, []
    goal = Goal(np.array([[1.5, 0.5]]), np.ones(1, bool))
    for _ in range(n_steps):
        measurement = Measurement(angle, rate, np.zeros((1, 2)), np.zeros(1), np.ones(1, bool))
        obs = Observer(layout, 1).look(measurement, goal, reference, action, decoder.phase(state))
        action = policy.predict(obs)[0].astype(np.float64)
        reference = decoder.decode(action, measurement, goal, state)
        turn = np.clip(reference - angle, -0.4, 0.4)
        angle, rate = angle + turn, turn / policy.spec.control_dt_s
        references.append(reference[0])
    return np.array(references)
