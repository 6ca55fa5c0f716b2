"""The wave that runs along the body in steady state, in closed form, and the reference that gives SJC the wave of CC.

Joints are driven by their acceleration, so their motion does not depend on the body's: with
``u_i = k_p (r_i - phi_i) - k_d phi_dot_i`` (eq. 32) and ``phi_ddot_i = u_i + c u_{i-1}`` (eq. 37), the amplitudes at
the gait's frequency, ``phi_i = Im(Phi_i exp(j omega t))`` and ``r_i = Im(R_i exp(j omega t))``, follow joint by joint:

    U_i = k_p R_i - (k_p + j omega k_d) Phi_i,    -omega^2 Phi_i = U_i + c U_{i-1},    locked joints: Phi_i = 0.

A locked joint's signal U_b = k_p R_b is large, since its error is never reduced; with CC it drives the next joint.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from papers.sibilska2022.experiment import COUPLING, Broken, ControllerName
from snake_gym.controllers.serpenoid import GaitConfig
from snake_gym.robot.presets import RESILIENT

FaultKind = Literal["locked", "free", "weak"]
Waves = NDArray[np.complex128]

_OMEGA, _N_JOINTS = GaitConfig.frequency_rad_s, RESILIENT.n_joints
_KP, _KD = (float(RESILIENT.joints(f"actuator.{gain}")[0]) for gain in ("kp", "kd"))
_LOOP = _KP - _OMEGA**2 + 1j * _OMEGA * _KD


class Trial(NamedTuple):
    """One run."""

    controller: ControllerName
    broken: Broken
    kind: FaultKind = "locked"
    amplitude_rad: float = GaitConfig.amplitude_rad
    coupled_wave: bool = False
    """SJC whose joints are given the wave of CC (see ``extra_reference``)."""
    start_angle_rad: float = 0.0
    """Of the head link, counter-clockwise from the x axis; the paper's is 0."""


def reference_wave(amplitude_rad: float) -> Waves:
    """R_i (J,) [rad] of eq. 33."""
    return np.asarray(amplitude_rad * np.exp(1j * GaitConfig.phase_shift_rad * np.arange(_N_JOINTS)))


def joint_wave(coupling: float, broken: Broken, amplitude_rad: float) -> Waves:
    """Phi_i (J,) [rad] in steady state, with the joints of ``broken`` locked."""
    reference, wave = reference_wave(amplitude_rad), np.zeros(_N_JOINTS, dtype=np.complex128)
    behind = 0.0 + 0.0j  # U_{i-1}
    for index in range(_N_JOINTS):
        if index + 1 not in broken:
            wave[index] = (_KP * reference[index] + coupling * behind) / _LOOP
        behind = _KP * reference[index] - (_KP + 1j * _OMEGA * _KD) * wave[index]
    return wave


def extra_reference(trial: Trial) -> Waves:
    """What a trial adds to its controller's reference, (J,) [rad]: zero, or what gives SJC the wave of CC.

    An uncoupled joint follows its reference with Phi = k_p R / (k_p - omega^2 + j omega k_d): solved for R.
    """
    if not trial.coupled_wave:
        return np.zeros(_N_JOINTS, dtype=np.complex128)
    wanted = joint_wave(COUPLING["cc"], trial.broken, trial.amplitude_rad)
    return np.asarray(wanted * _LOOP / _KP - reference_wave(trial.amplitude_rad))
