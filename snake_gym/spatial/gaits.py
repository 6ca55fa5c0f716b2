"""Five gaits of spatial robots from one network of Hopf oscillators, with steady changes from gait to gait (liu2024).

Modes: CL creeping, TWL travelling wave, SWL side winding, ARL arc rolling, SRL spiral rolling. One oscillator for each
joint, full topology, Gaussian weights; equations 7 to 24 of the paper. With D (eq. 18) scaling by the amplitudes and
turning by the phases, the network reads in its own locked coordinates y = D x^ exp(-i omega t)

    dy_i/dt = xi(|y_i|) y_i - alpha sum_j w_ij (y_i - y_j),    u_i = c_i + rho_i Re(y_i exp(i (theta + psi_i)))

with the amplitude rho_i, phase psi_i and centre c_i of the gait and theta the integral of omega. Yaw joint k from the
head has psi = -(k - 1) phi, pitch joint k pi/2 less (eq. 24). All in float64: from equal starts single precision would
leave its unstable states by rounding alone.

Changes of gait, our addition. As published, a change of gait jumps in D: the coupling then pulls the oscillators over
many periods, and where the new wave sums to zero over the old one they damp each other and stand still. Here rho, psi,
c and omega go to their new values on critically damped paths, D with them, so that the network stays locked. A path
follows from its present value and rate alone: it may turn at any moment, positions and rates never jump, accelerations
are bounded. Phases take the shorter way round, after the common phase has been chosen that the joints like best; at the
rate ``change_rate`` of the gait's frequency no joint's phase runs slower than half of omega.

Start: ``locked`` begins at the robot's own joint angles, which the centres take up, with amplitude zero. ``published``
begins as the authors' program does, at u = the joint's angle (0.1 degrees where it is smaller), v = 0, amplitudes as
they are wanted: locking then takes 5 to 13 periods. ``wound`` begins within the gait, at the phase that the joints'
angles are nearest to, and stands still at first.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from snake_gym.config import Settings
from snake_gym.config.settings import NonNegative, Positive
from snake_gym.controllers.base import ControllerState, Gait, PerWorld, Swing, register_controller
from snake_gym.controllers.speed_hold import pace_of
from snake_gym.robot.measurement import Goal, Measurement, mean_angle
from snake_gym.robot.spec import FloatArray
from snake_gym.spatial.spec import SpatialSpec

Mode = Literal["CL", "TWL", "SWL", "ARL", "SRL"]
MODES: tuple[Mode, ...] = get_args(Mode)
Frequency = Annotated[float, Field(ge=-1e3, le=1e3)]
SHORT = ("CL", "TWL", "SWL")
SLOWEST_RAD_S = 0.01
"""Frequency by which gaits that stand still, or nearly, are changed."""
STILL_RAD = math.radians(0.1)
"""Amplitude of joints that a gait does not use (eq. 25 and 26)."""
START_RAD = math.radians(0.1)
"""Least start of an oscillator in the authors' program."""
WEIGHT_WIDTH = 5.0
"""Standard deviation sigma of the Gaussian weights, whose mean is 1 (authors' program)."""
LARGEST_EXCESS = 30.0
"""Largest -e that is used: beyond it the smoothed law is at its limit to 1e-13."""
SERVO_SHARE = 0.6
"""Share of the servos' speed that the swing of a gait may take; a change of gait adds to it."""
MAX_STEP_S = 0.1
"""Longest step of the network's integration, short beside 1 / lambda."""


class GaitMode(Settings):
    """Parameters of one gait."""

    n_waves: Annotated[float, Field(ge=0.0, le=64.0)] = 2.0
    """Number K_n of waves along the body (CL, TWL, SWL)."""
    yaw_rad: Swing | None = None
    """Initial angle a_y of the yaw joints; None: they are nearly still."""
    pitch_rad: Swing | None = None
    """Initial angle a_p of the pitch joints, likewise."""
    arc_radius_m: Positive | None = None
    """Radius r_a of the arc (ARL)."""
    spiral_radius_m: Positive | None = None
    """Radius r_s of the spiral (SRL)."""
    spiral_pitch_m: NonNegative = 0.0
    """Rise p_s of the spiral per radian (SRL)."""
    frequency_rad_s: Frequency = math.pi / 5.0
    """Frequency omega; its sign turns the direction of motion."""
    travel_rad: float = 0.0
    """Direction of motion, from the body's heading to the left, at the sign of ``frequency_rad_s``."""
    two_ways: bool = False
    """Whether the gait goes as well the other way at the other sign: rolling and winding do."""


_DEGREES = math.radians(50.0)
GAITS: dict[Mode, GaitMode] = {
    "CL": GaitMode(2, _DEGREES),
    "TWL": GaitMode(3, None, _DEGREES, frequency_rad_s=-math.pi / 5.0),
    "SWL": GaitMode(2, _DEGREES, math.radians(15.0), travel_rad=-math.pi / 2.0, two_ways=True),
    "ARL": GaitMode(arc_radius_m=2.0, frequency_rad_s=math.pi / 2.0, travel_rad=math.pi / 2.0, two_ways=True),
    "SRL": GaitMode(spiral_radius_m=0.26, spiral_pitch_m=0.04, travel_rad=math.pi / 2.0, two_ways=True),
}
"""Gaits of the paper's simulations (Table 3); TWL with the sign that drives it forward."""
EXPERIMENTS: dict[Mode, GaitMode] = {
    "CL": GAITS["CL"], "SWL": GAITS["SWL"], "ARL": replace(GAITS["ARL"], arc_radius_m=1.0),
}  # fmt: skip
"""Gaits of the paper's experiments on flat ground (Table 4)."""
COMPLEX: dict[str, GaitMode] = {
    **{f"SWL{i}": replace(GAITS["SWL"], yaw_rad=math.radians(yaw), pitch_rad=math.radians(20.0))
       for i, yaw in ((1, 50.0), (2, 70.0), (3, 50.0), (4, 70.0))},
    **{f"ARL{i}": replace(GAITS["ARL"], arc_radius_m=radius) for i, radius in ((1, 1.0), (2, 1.2), (3, 1.0), (4, 1.2))},
}  # fmt: skip
"""Gaits of the paper's experiments on grass (1, 2) and rocks (3, 4) (Table 5)."""


class Wave:
    """Amplitudes and phases of one gait for a robot, per joint from the tail."""

    def __init__(self, gait: GaitMode, spec: SpatialSpec) -> None:
        axes = spec.axes_from_head()
        is_yaw = np.array([axis == "yaw" for axis in axes])
        pair = np.where(is_yaw, np.cumsum(is_yaw), np.cumsum(~is_yaw)) - 1
        n, length = max(spec.n_joints / 2.0, 1.0), spec.link_length_m
        if gait.arc_radius_m is not None:
            shift, yaw = 0.0, 2.0 * length / gait.arc_radius_m
            pitch = yaw
        elif gait.spiral_radius_m is not None:
            square = gait.spiral_radius_m**2 + gait.spiral_pitch_m**2
            curvature, torsion = gait.spiral_radius_m / square, gait.spiral_pitch_m / square
            shift = torsion * length
            yaw = 2.0 * curvature * length * (math.sin(shift) / shift if shift > 0.0 else 1.0)
            pitch = yaw
        else:
            shift = 2.0 * math.pi * gait.n_waves / n
            swing = 2.0 * abs(math.sin(math.pi * gait.n_waves / n))
            yaw = STILL_RAD if gait.yaw_rad is None else max(swing * gait.yaw_rad, STILL_RAD)
            pitch = STILL_RAD if gait.pitch_rad is None else max(swing * gait.pitch_rad, STILL_RAD)
        amplitude = np.minimum(np.where(is_yaw, yaw, pitch), spec.joint_limit_rad)
        phase = -shift * pair - np.where(is_yaw, 0.0, 0.5 * math.pi)
        self.amplitude_rad: FloatArray = amplitude[::-1].copy()
        self.phase_rad: FloatArray = phase[::-1].copy()
        fastest = spec.joints("actuator.speed_limit_rad_s").min()
        limit = SERVO_SHARE * fastest / amplitude.max()
        self.frequency_rad_s = float(np.clip(gait.frequency_rad_s, -limit, limit))
        """Frequency, no higher than the servos can follow."""
        self.highest_rad_s = float(limit)
        """Highest frequency that the servos can follow."""


class MultimodalConfig(Settings):
    """Settings of the network, and the gait that it begins with. What is None is as published for the mode."""

    mode: Mode = "SWL"
    """CL creeping, TWL travelling wave, SWL side winding, ARL arc rolling, SRL spiral rolling."""
    frequency_rad_s: Frequency | None = None
    """Frequency omega."""
    n_waves: Annotated[float, Field(ge=0.0, le=64.0)] | None = None
    """Number of waves along the body (CL, TWL, SWL)."""
    yaw_rad: Swing | None = None
    """Initial angle a_y of the yaw joints (CL, SWL)."""
    pitch_rad: Swing | None = None
    """Initial angle a_p of the pitch joints (TWL, SWL)."""
    arc_radius_m: Positive | None = None
    """Radius of the arc (ARL)."""
    spiral_radius_m: Positive | None = None
    """Radius of the spiral (SRL)."""
    spiral_pitch_m: NonNegative | None = None
    """Rise of the spiral per radian (SRL)."""
    steering_rad: Annotated[float, Field(ge=-1.0, le=1.0)] = 0.0
    """Centre u_c of the yaw joints; positive bends the robot to its right."""
    guided: bool = False
    """Steer to the goal: by the yaw joints' centre, and backwards with gaits that go both ways."""
    steering_gain: NonNegative = 0.15
    """``guided``: centre per radian between the direction of motion and the bearing of the goal."""
    max_steering_rad: Annotated[float, Field(ge=0.0, le=1.0)] = math.radians(10.0)
    """``guided`` and gait actions: largest centre."""
    pace_range: Annotated[float, Field(ge=1.0, le=10.0)] = 3.0
    """Gait actions: frequency, as a multiple of the mode's own, for a pace of 1."""
    convergence_per_s: Positive = 0.2
    """Rate lambda at which amplitudes settle."""
    coupling_per_s: NonNegative = 0.01
    """Rate alpha at which phases lock."""
    amplitude_law: Positive = 1.0
    """Coefficient k of the smoothed amplitude law."""
    change_rate: Annotated[float, Field(ge=0.05, le=0.43)] = 0.4
    """Rate of changes of gait, as a share of the frequency."""
    start: Literal["locked", "published", "wound"] = "locked"
    """How the network begins: locked: at the joints' angles; published: as the authors' program does; wound: within the
    gait, for robots that are bent so already."""

    def gait(self) -> GaitMode:
        """Return the gait that the network begins with."""
        names = (
            "frequency_rad_s", "n_waves", "yaw_rad", "pitch_rad", "arc_radius_m", "spiral_radius_m", "spiral_pitch_m",
        )  # fmt: skip
        base = GAITS[self.mode]
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        used = {"frequency_rad_s", *(["n_waves"] if self.mode in SHORT else [])}
        used |= {name for name in names[2:6] if getattr(base, name) is not None}
        used |= {"spiral_pitch_m"} if self.mode == "SRL" else set()
        unused = sorted(given.keys() - used)
        if unused:
            raise ValueError(
                f"{unused[0]} is set, which {self.mode} has no use for; expected {', '.join(sorted(used))}"
            )
        return replace(base, **given)

    def check(self) -> None:
        """Raise ValueError for a parameter that the mode has no use for."""
        self.gait()


_PATHS = ("rho", "psi", "centre", "omega")
"""Quantities of a gait that go on smooth paths: state, its rate and its goal by these names."""


@register_controller("multimodal", MultimodalConfig)
class Multimodal(Gait):
    """Controller of a spatial robot by the network of the module.

    State: ``y`` (W, J, 2) the oscillators in locked coordinates; ``theta`` (W,) [rad]; ``rho``, ``psi``, ``centre``
    (W, J) [rad] and ``omega`` (W,) [rad/s] of the gait now, with ``_rate`` and ``_goal`` of each; ``change`` (W,) [1/s]
    rate of the change; ``mode`` (W,) number of the mode; ``way`` (W,) 1 or -1 backwards; ``begun`` (W,) 0 before the
    first command.
    """

    spatial = True
    modes = MODES

    def __init__(self, config: MultimodalConfig, spec: SpatialSpec, per_world: PerWorld | None = None) -> None:
        super().__init__(config, spec, per_world)
        self.robot = spec
        self._weight = coupling_weights(spec)
        self._waves = [Wave(GAITS[mode], spec) for mode in MODES]
        self._own = Wave(config.gait(), spec)
        own = MODES.index(config.mode)
        self._waves[own] = self._own
        self._gaits = [config.gait() if i == own else GAITS[mode] for i, mode in enumerate(MODES)]
        self._yaw = np.array([axis == "yaw" for axis in spec.axes()])
        self._n_steps = max(1, math.ceil(spec.control_dt_s / MAX_STEP_S - 1e-9))

    # --- state and changes of gait -----------------------------------------------------------------------------------

    def initial_state(self, n_worlds: int) -> ControllerState:
        """Return the state before the first command: the configured gait at amplitude zero, or as published."""
        w, j = n_worlds, self.n_joints
        wave = self._own
        state: ControllerState = {
            "y": np.zeros((w, j, 2)), "theta": np.zeros(w), "change": np.zeros(w), "begun": np.zeros(w),
            "mode": np.full(w, float(MODES.index(self.config.mode))), "way": np.ones(w),
        }  # fmt: skip
        state["y"][..., 0] = 1.0
        goals = {
            "rho": np.tile(wave.amplitude_rad, (w, 1)), "psi": np.tile(wave.phase_rad, (w, 1)),
            "centre": np.tile(self.config.steering_rad * self._yaw, (w, 1)), "omega": np.full(w, wave.frequency_rad_s),
        }  # fmt: skip
        for name, goal in goals.items():
            state[f"{name}_goal"] = goal
            state[name] = goal.copy()
            state[f"{name}_rate"] = np.zeros_like(goal)
        if self.config.start == "locked":
            state["rho"][:] = 0.0
        if self.config.start == "wound":
            state["omega"][:] = 0.0
        state["change"][:] = self.config.change_rate * max(abs(wave.frequency_rad_s), SLOWEST_RAD_S)
        return state

    def set_gait(
        self, state: ControllerState, mask: NDArray[np.bool_], gait: Mode | GaitMode, pace: FloatArray | float = 1.0
    ) -> None:
        """Go over to a gait in the worlds of ``mask`` (W,), from whatever they are doing.

        ``pace``, a number or (W,), multiplies its frequency, below 0 backwards.
        """
        rows = np.flatnonzero(mask)
        if rows.size == 0:
            return
        if isinstance(gait, GaitMode):
            wave = Wave(gait, self.robot)
        else:
            wave = self._waves[MODES.index(gait)]
            state["mode"][rows] = MODES.index(gait)
        self._take(state, rows, wave)
        self._set_pace(state, rows, wave, np.broadcast_to(pace, mask.shape)[rows])

    def _take(self, state: ControllerState, rows: NDArray[np.int64], wave: Wave) -> None:
        """Aim amplitudes and phases of the worlds ``rows`` at a gait: phases by the shorter way."""
        present, rho = state["psi"][rows], np.maximum(state["rho"][rows], STILL_RAD)
        gap = wave.phase_rad - present
        weight = np.minimum(rho, wave.amplitude_rad)
        common = np.arctan2((weight * np.sin(gap)).sum(axis=1), (weight * np.cos(gap)).sum(axis=1))
        gap = np.remainder(gap - common[:, None] + math.pi, 2.0 * math.pi) - math.pi
        state["psi_goal"][rows] = present + gap
        state["rho_goal"][rows] = wave.amplitude_rad

    def _set_pace(self, state: ControllerState, rows: NDArray[np.int64], wave: Wave, pace: FloatArray) -> None:
        omega = np.clip(pace * wave.frequency_rad_s, -wave.highest_rad_s, wave.highest_rad_s)
        state["omega_goal"][rows] = omega
        fastest = np.maximum(np.abs(omega), np.abs(state["omega"][rows]))
        slowest = max(0.1 * abs(wave.frequency_rad_s), SLOWEST_RAD_S)
        state["change"][rows] = self.config.change_rate * np.maximum(fastest, slowest)

    # --- commands ----------------------------------------------------------------------------------------------------

    def command(self, measurement: Measurement, goal: Goal, state: ControllerState, dt_s: float) -> FloatArray:
        """Return joint references (W, J) [rad] to be reached in ``dt_s`` [s], within the robot's joint limit."""
        new = state["begun"] == 0.0
        if new.any():
            self._begin(state, new, measurement.joint_angle)
        if self.config.guided:
            self._guide(measurement, goal, state)
        self._follow_paths(state, dt_s * pace_of(state))
        self._integrate(state["y"], dt_s)
        return np.clip(self.reference(state), -self.robot.joint_limit_rad, self.robot.joint_limit_rad)

    def reference(self, state: ControllerState) -> FloatArray:
        """Return the oscillators' outputs u (W, J) [rad] of the state."""
        angle = state["theta"][:, None] + state["psi"]
        y = state["y"]
        return state["centre"] + state["rho"] * (y[..., 0] * np.cos(angle) - y[..., 1] * np.sin(angle))

    def phase(self, state: ControllerState) -> FloatArray:
        """Return the common phase theta (W,) [rad] of the network."""
        return state["theta"]

    def _begin(self, state: ControllerState, new: NDArray[np.bool_], joint_angle: FloatArray) -> None:
        """Begin at the joints' angles in the worlds of ``new`` (W,)."""
        state["begun"][new] = 1.0
        if self.config.start == "locked":
            state["centre"][new] = joint_angle[new]
            return
        if self.config.start == "wound":
            wave = state["rho"][new] * np.exp(1j * state["psi"][new])
            state["theta"][new] = -np.angle((wave * (joint_angle - state["centre"])[new]).sum(axis=1))
            return
        u = joint_angle[new] - state["centre"][new]
        u = np.where(np.abs(u) < START_RAD, START_RAD, u) / state["rho"][new]
        psi = state["psi"][new]
        state["y"][new] = np.stack([u * np.cos(psi), -u * np.sin(psi)], axis=-1)

    def _guide(self, measurement: Measurement, goal: Goal, state: ControllerState) -> None:
        """Steer to the goal: forwards or, with gaits that go both ways, backwards, whichever is nearer."""
        config = self.config
        mode = state["mode"].astype(np.int64)
        travel = np.array([gait.travel_rad for gait in self._gaits])[mode]
        both = np.array([gait.two_ways for gait in self._gaits])[mode]
        omega = np.array([wave.frequency_rad_s for wave in self._waves])[mode]
        here = measurement.head_xy_w if measurement.centre_xy_w is None else measurement.centre_xy_w
        way = goal.target_xy_w - here
        error = np.arctan2(way[:, 1], way[:, 0]) - mean_angle(measurement) - travel
        error = np.remainder(error + math.pi, 2.0 * math.pi) - math.pi
        error = np.where(goal.active, error, 0.0)
        margin = 0.5 * math.pi + 0.2 * state["way"]  # a side that is kept until the other is clearly nearer
        back = both & (np.abs(error) > margin)
        turn = np.where(back, np.remainder(error + 2.0 * math.pi, 2.0 * math.pi) - math.pi, error)
        state["way"][:] = np.where(back, -1.0, 1.0)
        state["omega_goal"][:] = state["way"] * omega
        centre = np.clip(-config.steering_gain * turn, -config.max_steering_rad, config.max_steering_rad)
        state["centre_goal"][:] = centre[:, None] * self._yaw

    # --- actions of a policy -----------------------------------------------------------------------------------------

    @property
    def gait_actions(self) -> tuple[str, ...]:
        """Names of the actions by which a policy sets the gait: the mode with the largest preference is taken."""
        return (*(f"prefer_{mode}" for mode in MODES), "pace", "steering")

    def take_action(self, action: FloatArray, state: ControllerState) -> None:
        """Set mode, pace and steering by actions (W, 7) in [-1, 1], in place.

        A pace of 0 stands still, of 1 is ``pace_range`` times the mode's own, below 0 backwards. Steering of 1 is
        ``max_steering_rad``, to the left.
        """
        best = np.argmax(action[:, : len(MODES)], axis=1)
        for code in np.unique(best):
            rows = np.flatnonzero(best == code)
            changed = rows[state["mode"][rows] != code]
            if changed.size:
                state["mode"][changed] = code
                self._take(state, changed, self._waves[code])
            self._set_pace(state, rows, self._waves[code], self.config.pace_range * action[rows, -2])
        state["centre_goal"][:] = -self.config.max_steering_rad * action[:, -1:] * self._yaw

    # --- the network -------------------------------------------------------------------------------------------------

    def _follow_paths(self, state: ControllerState, dt_s: FloatArray | float) -> None:
        """Move the gait's parameters by ``dt_s`` (a number or (W,)) [s] towards their goals, in place, exactly."""
        k = state["change"]
        dt = np.broadcast_to(dt_s, k.shape)
        fade = np.exp(-k * dt)
        for name in _PATHS:
            value, rate, goal = state[name], state[f"{name}_rate"], state[f"{name}_goal"]
            own_k, own_dt, own_fade = (a if value.ndim == 1 else a[:, None] for a in (k, dt, fade))
            gap = value - goal
            push = rate + own_k * gap
            if name == "omega":
                state["theta"] += goal * dt + gap * (1.0 - fade) / k + push * ((1.0 - fade) / k - dt * fade) / k
                np.remainder(state["theta"], 2.0 * math.pi, out=state["theta"])
            value[:] = goal + (gap + push * own_dt) * own_fade
            rate[:] = (rate - own_k * push * own_dt) * own_fade

    def _integrate(self, y: FloatArray, dt_s: float) -> None:
        """Advance the oscillators (W, J, 2) by ``dt_s`` [s], by classical Runge-Kutta, in place."""
        n = max(self._n_steps, math.ceil(dt_s / MAX_STEP_S - 1e-9))
        h = dt_s / n
        for _ in range(n):
            a = self._slope(y)
            b = self._slope(y + 0.5 * h * a)
            c = self._slope(y + 0.5 * h * b)
            d = self._slope(y + h * c)
            y += h / 6.0 * (a + 2.0 * b + 2.0 * c + d)

    def _slope(self, y: FloatArray) -> FloatArray:
        """Return dy/dt (W, J, 2) [1/s]."""
        config = self.config
        e = 1.0 - (y[..., 0] ** 2 + y[..., 1] ** 2)
        excess = np.minimum(np.maximum(-config.amplitude_law * e, 0.0), LARGEST_EXCESS)
        smooth = 2.0 / (1.0 + np.exp(excess)) - 1.0
        growth = config.convergence_per_s * np.where(e < 0.0, smooth, e)
        # joint by joint, not by a matrix product: that rounds a world alone and in a batch differently
        pull = np.zeros_like(y)
        for j in range(self.n_joints):
            pull += self._weight[:, j, None] * y[:, j : j + 1]
        pull -= self._weight.sum(axis=1)[:, None] * y
        return growth[..., None] * y + config.coupling_per_s * pull


def coupling_weights(spec: SpatialSpec) -> FloatArray:
    """Return the Gaussian weights w_ij (J, J), from the tail, none of an oscillator with itself.

    The distance of the authors' program: between pairs for joints of one kind, one more for different kinds.
    """
    axes = spec.axes_from_head()
    is_yaw = np.array([axis == "yaw" for axis in axes])
    pair = np.arange(spec.n_joints) // 2
    distance = np.abs(pair[:, None] - pair) + (is_yaw[:, None] != is_yaw)
    weight = np.exp(-((distance - 1.0) ** 2) / (2.0 * WEIGHT_WIDTH**2))
    np.fill_diagonal(weight, 0.0)
    return np.asarray(weight[::-1, ::-1].copy())
