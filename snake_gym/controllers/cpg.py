"""Central pattern generator: one Hopf oscillator for each joint, phase-locked by diffusive coupling.

Model: liu2024, section 3.1, with formulas restored that its text lost. Oscillator i has the state x_i = (u_i, v_i)
about its centre (u_c, 0), x^ = x - centre, and the joint's reference is u_i at the end of the command's interval:

    dx_i/dt = omega (-v^_i, u^_i) + xi_i x^_i - alpha sum_j w_ij (x^_i - T_ij x^_j)
    e_i = sigma - |x^_i|^2 / rho^2
    xi = lambda sigma (2 / (1 + exp(-k e)) - 1)  where e < 0,   lambda e  otherwise
    T_ij = R((i - j) delta)

The limit cycle has the radius rho sqrt(sigma); sigma = k = 1 as in the paper. Joint i then follows
``u_c + rho sin(phase + (i-1) delta)``: the serpenoid gait, with a soft start and soft changes of gait.

Integration. The matrix D of the paper (eq. 18) turns oscillator i back by its own phase shift and scales it by 1/rho;
in a frame that also turns with omega, y = exp(-omega t) D x^, the network reads

    dy_i/dt = xi(y_i) y_i - alpha sum_j L_ij y_j,     L the graph Laplacian of w,

without the fast rotation: turning is exact, the locked gait is a fixed point, and worlds with different gaits share one
product. RK4 then needs a step that is small against the rates of convergence only (``MAX_STEP_S``, ``MAX_RATE_STEP``).
All of it is in double precision: oscillators that start alike leave the unstable state by small differences, which
rounding to single precision would make up. The stored state is x itself: no joint jumps where the gait is changed.

Departures from the paper: its lambda and alpha (``PAPER_RATES``) take tens of seconds to converge and are not the
defaults; nor is its start, (0.1 deg, 0), from which the gait would take twice as long to grow as from ``START``. Its
Gaussian weights exp(-(d - 1)^2 / 2 sigma^2) have mu = 1 and sigma = 5; our distance d is counted in joints.
Of its networks ours is the full one. The paper does not steer: here u_c, to which the limit cycle follows, approaches
the point-of-sight offset at ``steering_rate_per_s``.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from snake_gym.controllers.base import ControllerState, Gain, Gait, PerWorld, register_controller, searched, wrap_phase
from snake_gym.controllers.guidance import PointOfSight, SteeringConfig
from snake_gym.controllers.serpenoid import GaitConfig
from snake_gym.controllers.speed_hold import pace_of
from snake_gym.robot.measurement import Goal, Measurement
from snake_gym.robot.spec import FloatArray, RobotSpec

Weights = Literal["equal", "gaussian"]
Rate = Annotated[float, Field(ge=0.0, le=100.0)]

PAPER_RATES = {"convergence_per_s": 0.2, "coupling_per_s": 0.01}
"""Rates lambda and alpha of liu2024, section 3.1 [1/s]."""
START = (0.1, 0.1)
"""Initial (u, v) of the tail's oscillator [rad]: our choice, see above."""
START_GROWTH = 0.01
"""Share by which each oscillator starts larger than the one behind it. Where a whole number of waves sums to zero,
equal ones would damp each other down to rounding, and be silent until that has grown again."""
MAX_STEP_S = 0.1
MAX_RATE_STEP = 1.0
"""Largest RK4 step times the fastest rate of convergence (RK4 is stable up to 2.8)."""
LARGEST_EXCESS = 30.0
"""Largest -e that is used: beyond it the smoothed amplitude law is at its limit to 1e-13 and would overflow."""


class CpgConfig(SteeringConfig, GaitConfig):
    """Settings of a steered Hopf network; ``amplitude_rad`` is rho, ``phase_shift_rad`` the locked difference."""

    convergence_per_s: Rate = searched(2.0, 0.5, 8.0, log=True)
    """Rate lambda at which the amplitude settles [1/s]."""
    coupling_per_s: Rate = searched(0.6, 0.05, 2.0, log=True)
    """Rate alpha at which the phases lock, for a coupling weight of one [1/s]."""
    weights: Weights = "equal"
    """Weight of a coupling: one, or a Gaussian of the distance along the chain, one between neighbours."""
    weight_width_joints: Annotated[float, Field(ge=1e-3, le=1e3)] = 2.0
    """Standard deviation sigma of the Gaussian weights [joints]; liu2024 has 5."""
    steering_rate_per_s: Gain = searched(10.0, 1.0, 30.0, log=True)
    """Rate at which u_c approaches the wanted offset [1/s]."""

    def check(self) -> None:
        if not self.amplitude_rad >= 1e-6:
            raise ValueError(f"amplitude_rad is {self.amplitude_rad:g}; expected in [1e-06, pi]")


@register_controller("cpg", CpgConfig)
class Cpg(Gait):
    """Controller of a steered Hopf network.

    State: ``u``, ``v`` (W, J) [rad] the oscillators, ``centre`` (W,) [rad] u_c, and the gait of each world:
    ``amplitude_rad``, ``frequency_rad_s``, ``phase_shift_rad`` (W,).
    """

    lopsided = ()

    def __init__(self, config: CpgConfig, spec: RobotSpec, per_world: PerWorld | None = None) -> None:
        super().__init__(config, spec, per_world)
        self._guidance = PointOfSight(spec, config.tracked_point)
        weight = coupling_weights(spec.n_joints, config.weights, config.weight_width_joints)
        self._coupling = Coupling(weight, self.parameter["coupling_per_s"])
        rate = 2.0 * self.parameter["convergence_per_s"] + self._coupling.fastest_per_s
        self._attraction = self.parameter["convergence_per_s"]
        self._max_step_s = min(MAX_STEP_S, MAX_RATE_STEP / max(float(rate.max()), 1e-9))

    def initial_state(self, n_worlds: int) -> ControllerState:
        """Return the state with all oscillators near (0.1, 0.1) rad, centred, with the configured gait."""
        size = np.tile(1.0 + START_GROWTH * np.arange(self.n_joints), (n_worlds, 1))
        state = {"u": START[0] * size, "v": START[1] * size, "centre": np.zeros(n_worlds)}
        for name in ("amplitude_rad", "frequency_rad_s", "phase_shift_rad"):
            state[name] = np.broadcast_to(self.parameter[name], (n_worlds,)).copy()
        return state

    def command(self, measurement: Measurement, goal: Goal, state: ControllerState, dt_s: float) -> FloatArray:
        """Return the network's joint references in ``dt_s`` [s] (W, J) [rad], within the robot's joint limit."""
        wanted = self._guidance.offset(measurement, goal, self.parameter)
        state["centre"] += -np.expm1(-self.parameter["steering_rate_per_s"] * dt_s) * (wanted - state["centre"])
        self._integrate(state, dt_s)
        return self.limited(state["u"].T)

    def phase(self, state: ControllerState) -> FloatArray:
        """Return the phase (W,) [rad] that the tail joint's sine will have in one control step, with the next command.

        It follows from the sum of all oscillators, turned back to the tail.
        """
        in_phase, quadrature = self._turn(state, np.zeros(1))
        u, v = self._displacement(state)
        mean_u = (u * in_phase + v * quadrature).sum(axis=0)
        mean_v = (v * in_phase - u * quadrature).sum(axis=0)
        phase = np.arctan2(mean_u, -mean_v)  # u = rho sin(phase), v = -rho cos(phase)
        phase += state["frequency_rad_s"] * pace_of(state) * self.spec.control_dt_s
        wrap_phase(phase)
        return phase

    def _displacement(self, state: ControllerState) -> FloatArray:
        """Return x^ = (u^, v^) (2, J, W) [rad], worlds along the last axis: numpy is faster on long rows."""
        x = np.empty((2, self.n_joints, state["centre"].size))
        x[0] = state["u"].T - state["centre"]
        x[1] = state["v"].T
        return x

    def _turn(self, state: ControllerState, angle: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return cos and sin of all oscillators' lags plus ``angle`` (J, W), or (J, 1) where all worlds agree."""
        shift = state["phase_shift_rad"]
        if (shift == shift[0]).all() and (angle == angle[0]).all():
            shift, angle = shift[:1], angle[:1]
        turn = shift * np.arange(self.n_joints)[:, None] + angle
        return np.cos(turn), np.sin(turn)

    def _integrate(self, state: ControllerState, dt_s: float) -> None:
        """Advance u, v by ``dt_s`` [s], with the centre held, in place."""
        cos, sin = self._turn(state, np.zeros(1))
        x = self._displacement(state)
        y = np.empty_like(x)
        x /= state["amplitude_rad"]
        _rotate(x, cos, -sin, out=y)
        n_steps = max(1, math.ceil(dt_s / self._max_step_s - 1e-9))
        for _ in range(n_steps):
            self._step(y, dt_s / n_steps)
        cos, sin = self._turn(state, state["frequency_rad_s"] * pace_of(state) * dt_s)
        _rotate(y, cos, sin, out=x)
        x *= state["amplitude_rad"]
        x[0] += state["centre"]
        state["u"][:] = x[0].T
        state["v"][:] = x[1].T

    def _step(self, y: FloatArray, h: float) -> None:
        """Advance the network without its rotation, y (2, J, W), by one RK4 step of ``h`` [s], in place."""
        probe, total = np.empty_like(y), np.zeros_like(y)
        rate = self._rate(y)
        for reach, share in ((0.5, 1.0), (0.5, 2.0), (1.0, 2.0)):
            np.multiply(rate, reach * h, out=probe)
            probe += y
            rate *= share * h / 6.0
            total += rate
            rate = self._rate(probe)
        rate *= h / 6.0
        total += rate
        y += total

    def _rate(self, y: FloatArray) -> FloatArray:
        """Return dy/dt (2, J, W) [1/s] of the network without its rotation."""
        squares = np.square(y)
        excess = np.add(squares[0], squares[1], out=squares[0])  # -e
        excess -= 1.0
        growth = np.maximum(excess, 0.0)
        np.minimum(growth, LARGEST_EXCESS, out=growth)
        np.exp(growth, out=growth)
        growth += 1.0
        np.divide(2.0, growth, out=growth)
        growth -= 1.0  # the smoothed law where e < 0, zero elsewhere
        growth -= np.minimum(excess, 0.0, out=excess)
        growth *= self._attraction
        growth -= self._coupling.decay
        rate = y * growth
        self._coupling.add_pull(rate, y)
        return rate


def _rotate(x: NDArray[Any], cos: FloatArray, sin: FloatArray, out: NDArray[Any]) -> None:
    """Write x (2, J, W), turned by the angles with these ``cos`` and ``sin``, into ``out``, which must not be x."""
    np.subtract(x[0] * cos, x[1] * sin, out=out[0], casting="same_kind")
    np.add(x[1] * cos, x[0] * sin, out=out[1], casting="same_kind")


def coupling_weights(n_joints: int, weights: Weights, width_joints: float) -> FloatArray:
    """Return the weights w_ij (J, J) of a network of all with all: alpha sum_j L_ij y_j, L the Laplacian of w.

    The paper names its networks without matrices. This is that of its published software, but for the distance in the
    Gaussian, which is taken along the body and not along the rows of yaw and pitch joints.
    """
    i, j = np.indices((n_joints, n_joints))
    distance = np.abs(i - j)
    weight = np.exp(-0.5 * ((distance - 1) / width_joints) ** 2) if weights == "gaussian" else np.ones_like(distance)
    return np.where(distance > 0, weight, 0.0)


class Coupling:
    """Coupling term for y (2, J, W), split as ``-decay y_i + pull from the others``.

    The sums are not left to BLAS, which rounds a world alone and in a batch differently. They run diagonal by diagonal
    or, where all couplings are equal, over the sum of all oscillators.

    Args:
        weight: w (J, J), no self-coupling.
        rate_per_s: alpha, one number or (W,) [1/s].
    """

    decay: FloatArray
    """Rate of each oscillator's own decay (J, 1) or (J, W) [1/s]."""
    fastest_per_s: float
    """Fastest rate at which phases lock [1/s]."""

    def __init__(self, weight: FloatArray, rate_per_s: FloatArray) -> None:
        n = weight.shape[0]
        alpha = np.atleast_1d(rate_per_s)
        total = weight.sum(axis=1)
        self.fastest_per_s = float(np.abs(np.linalg.eigvals(np.diag(total) - weight)).max() * alpha.max())
        self._bands: list[tuple[int, FloatArray]] = []
        self._common: FloatArray | None = None
        others = weight[~np.eye(n, dtype=bool)]
        if n > 3 and np.ptp(others) == 0.0:
            self._common = alpha * others[0]
            total = total + others[0]  # the sum of all oscillators holds the oscillator itself
        else:
            bands = [(shift, np.diagonal(weight, shift)[:, None] * alpha) for shift in range(1 - n, n)]
            self._bands = [(shift, band) for shift, band in bands if band.any()]
        self.decay = total[:, None] * alpha

    def add_pull(self, rate: FloatArray, y: FloatArray) -> None:
        """Add ``alpha sum_j w_ij y_j`` (or its part that is not in ``decay``) to ``rate`` (2, J, W), in place."""
        if self._common is not None:
            # With one number in each row np.add.reduce would sum in another order.
            total = np.add.accumulate(y, axis=1)[:, -1] if y.shape[2] == 1 else np.add.reduce(y, axis=1)
            total *= self._common
            rate += total[:, None]
        for shift, band in self._bands:
            if shift > 0:
                rate[:, :-shift] += band * y[:, shift:]
            else:
                rate[:, -shift:] += band * y[:, :shift]
