"""Simulation of W robots of one specification: a RobotSpec turned into arrays, stepped by the physics kernels.

Threads take the worlds block by block; the kernels release the interpreter lock and a waiting thread sleeps, so that
another busy process on the same cores costs its share and no more. Worlds do not interact, and each is computed by the
same instructions at any place in a block: results do not depend on the number of threads.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from operator import is_
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from snake_gym.compilation import typed
from snake_gym.config import ConfigError, choose
from snake_gym.config.threads import process_threads
from snake_gym.obstacles.overlap import deepest_overlaps
from snake_gym.physics.faults import FREE, HEALTHY, LOCKED, SLIPPED, WEAK, WEAK_LEFT, WEAK_RIGHT, acting
from snake_gym.physics.integrate import step_worlds
from snake_gym.physics.state import (
    ChainParams,
    ChainState,
    FaultState,
    LateCommands,
    Obstacles,
    Patches,
    no_faults,
    no_late_commands,
    no_obstacles,
    no_patches,
    zero_state,
)
from snake_gym.robot.measurement import POINTS, centre_weights, chain_angles, weigh_directions
from snake_gym.robot.muscle_pair import muscle_force, muscle_length
from snake_gym.robot.protocol import Robot
from snake_gym.robot.spec import FloatArray, RobotSpec
from snake_gym.simulation.accelerations import accelerate
from snake_gym.simulation.command_delays import CommandDelay, VaryingDelay
from snake_gym.simulation.fault_effects import LAST_KERNEL_CODE, ServoState, apply_effects, quiet_servos
from snake_gym.simulation.fault_kinds import FAULT_KINDS, Law, name_of_code
from snake_gym.simulation.robot_params import chain_params, needed_laws

_OFF = {"backward": 1.0, "torque_limit": np.inf, "stop": np.inf, "no_load_speed": np.inf}
"""Parameters that mean no law, where that is not 0."""
_MIN_WORLDS_PER_THREAD = 16
Precision = Literal["float64", "float32"]
_DEEPEST_START_M = 1e-4
"""Overlap with an obstacle [m] with which a robot may begin."""


class SimulatedRobot(Robot):
    """W planar chains of one RobotSpec, stepped by ``n_threads`` threads (None: as many as this process may use).

    ``obstacles``: the obstacles of each world, read anew at every step. Raises ConfigError where there are some that
    do not suit the robot (``RobotSpec.check_among_obstacles``). ``precision``: of the kernels' numbers.
    """

    def __init__(
        self,
        spec: RobotSpec,
        n_worlds: int,
        n_threads: int | None = None,
        obstacles: Obstacles | None = None,
        precision: Precision = "float64",
    ) -> None:
        if obstacles is not None:
            spec.check_among_obstacles()
        self._among_obstacles = obstacles is not None
        self.spec = spec
        self.n_worlds = n_worlds
        self.n_threads = n_threads or process_threads()
        self.params = chain_params(spec, n_worlds)
        self.same_params = True
        """True while all worlds have the parameters of the first; set it to False after a change of ``params``."""
        self.nominal_bodies = True
        """True while masses, their centres and lengths are the specification's; set it to False after a change of
        them. The sensed centre of mass follows from the specification and then differs from the true one."""
        self.nominal_weights = centre_weights(spec.links("link_half_length_m"), spec.links("link_mass_kg"))
        """Weights of the links' directions in the nominal robot's centre of mass (N,) [m] (``centre_weights``)."""
        self.feedforward = np.zeros((n_worlds, spec.n_joints))
        """Feedforward of ``step`` where none is given (W, J)."""
        n_muscle_pairs = spec.n_joints if spec.actuator.kind == "muscle" else 0
        self.state: ChainState = zero_state(n_worlds, spec.n_links, n_muscle_pairs)
        self.state.head_xy[:] = -self._centre_offset(self.state.link_angle)
        self.faults: FaultState = no_faults(n_worlds, spec.n_joints)
        self.second_faults: FaultState = no_faults(n_worlds, spec.n_joints)
        """Further faults, of joints that have two."""
        self.servos: ServoState = quiet_servos(n_worlds, spec.n_joints)
        self.obstacles = no_obstacles(n_worlds) if obstacles is None else obstacles
        self._laws = needed_laws(spec, obstacles is not None)
        self._number = np.dtype(precision).type
        self._check_precision()
        self._all = np.arange(n_worlds)
        delay_s, shape = spec.actuator.delay_s, (n_worlds, spec.n_joints)
        self.delay = CommandDelay(delay_s, spec.step_s, spec.n_substeps, *shape) if delay_s > 0.0 else None
        """Queue of references that do not act yet; None: references act at once."""
        self.varying_delay: VaryingDelay | None = None
        """The same where each world and command has a delay of its own; it then stands for all of the delay."""
        self._no_late_commands = no_late_commands(spec.n_joints)
        self._patches = no_patches()
        self._last_arrays: tuple[Any, ...] = (None,)
        self._stepper: Any = None
        """The stepper for the types of ``_last_arrays``, the tuples of its last call; None: they are new."""

    def __getstate__(self) -> dict[str, Any]:
        """Return all but compiled code."""
        return self.__dict__ | {"_stepper": None}

    def _check_precision(self) -> None:
        """Raise ConfigError for laws that hang on differences which float32 does not tell apart."""
        laws, contact = self._laws, self._laws.contact
        needs = {"Coulomb friction of the ground": laws.coulomb, "dry friction of joints": laws.joint_friction}
        needs["contact.model 'rigid'"] = laws.obstacles and contact.rigid
        needs["contact.friction_coulomb"] = laws.obstacles and contact.coulomb > 0.0
        for name in (name for name, is_on in needs.items() if is_on and self._number is np.float32):
            raise ConfigError(f"precision is 'float32'; expected 'float64', which {name} needs")

    def lay_patches(self, patches: Patches) -> None:
        """Let the ground have patches of other friction; the arrays are read anew at every step, which begins
        by writing the robots' pose into them."""
        self._patches, self.same_params = patches, False
        self._laws = self._laws._replace(patches=True)

    def delay_commands(self, longest_s: float) -> VaryingDelay:
        """Let each world and command have a delay of its own, up to ``longest_s``, instead of ``actuator.delay_s``."""
        spec = self.spec
        self.delay = None
        self.varying_delay = VaryingDelay(longest_s, spec.step_s, spec.n_substeps, self.n_worlds, spec.n_joints)
        self._laws = self._laws._replace(late=True)
        return self.varying_delay

    def use_parameters(self, params: ChainParams) -> None:
        """Give each world parameters of its own, one row for each (see ``chain_params``); the laws stay those of spec.

        Sensors work out the centre of mass with the specification's masses and lengths, as on a real robot. Raises
        ValueError for parameters of a law that the specification's robot does not have: they would have no effect.
        """
        for name, wanted, given in zip(ChainParams._fields, self.params, params, strict=True):
            if given.shape != wanted.shape:
                raise ValueError(f"params.{name} has shape {given.shape}; expected {wanted.shape}")
        self.check_laws(params)
        self.params = ChainParams(*(np.ascontiguousarray(values, dtype=np.float64) for values in params))
        self.same_params = False
        nominal = chain_params(self.spec, 1)
        bodies = ("mass", "half_length", "ahead")
        self.nominal_bodies = all(bool((getattr(params, f) == getattr(nominal, f)).all()) for f in bodies)
        self.state.head_xy[:] = self.state.centre_xy - self._centre_offset(self.state.link_angle)

    def check_laws(self, params: ChainParams) -> None:
        """Raise ValueError for parameters (any worlds) that need a law that is off: they would have no effect."""
        laws = self._laws
        for is_on, names, law in (
            (laws.one_way, ("backward",), "friction that differs forward and backward"),
            (laws.coulomb, ("coulomb_t", "coulomb_n", "coulomb_r"), "Coulomb friction"),
            (laws.limits, ("torque_limit",), "torque limit"),
            (laws.stops, ("stop",), "joint stops"),
            (laws.joint_friction, ("joint_friction",), "joint friction"),
            (laws.imperfect, ("dead_band", "play", "no_load_speed", "sag_per_nm"), "imperfections of its servos"),
        ):
            for name in () if is_on else names:
                values = getattr(params, name)
                off = _OFF.get(name, 0.0)
                if (values != off).any():
                    expected = f"{off:g}, as the robot's specification has no {law}"
                    raise ValueError(f"params.{name} is {values[values != off][0]:g}; expected {expected}")

    def _centre_offset(self, theta: FloatArray, rows: Any = slice(None)) -> FloatArray:
        """Return centre of mass minus the head's middle (M, 2) [m] of the true robots ``rows`` at angles (M, N)."""
        params = self.params
        return weigh_directions(centre_weights(params.half_length[rows], params.mass[rows], params.ahead[rows]), theta)

    def set_shape(
        self,
        joint_angle: FloatArray,
        head_angle: FloatArray,
        point_xy: FloatArray,
        point: str = "head",
        mask: NDArray[np.bool_] | None = None,
    ) -> None:
        """Place the M robots of ``mask`` (W,) at rest, time and work at zero, bent by ``joint_angle`` (M, J) [rad].

        ``head_angle`` (M,) [rad] and the place ``point_xy`` (M, 2) [m] of ``point`` ("head" or "centre"): world frame.
        Raises ConfigError for a link within an obstacle.
        """
        choose(point, POINTS, "point")
        rows = self._all if mask is None else np.flatnonzero(mask)
        theta = chain_angles(joint_angle, np.asarray(head_angle, dtype=np.float64))
        centre = np.array(point_xy, dtype=np.float64)
        to_centre = self._centre_offset(theta, rows)
        if point == "head":
            centre += to_centre
        for values in self.state:
            values[rows] = 0.0
        self.state.link_angle[rows] = theta
        self.state.centre_xy[rows] = centre
        self.state.head_xy[rows] = centre - to_centre
        self.state.supply[rows] = 1.0
        self.state.muscle_pressure[rows] = self.spec.actuator.muscle.base_pressure_pa
        self.servos.command[rows] = joint_angle
        self.servos.misread_rad[rows] = 0.0
        self.servos.silent[rows] = False
        self.servos.torque_square[rows] = 0.0
        if (delay := self.delay or self.varying_delay) is not None:
            delay.begin(np.asarray(joint_angle, dtype=np.float64), rows)
        if self._among_obstacles:
            self._check_overlap(rows)

    def _check_overlap(self, worlds: NDArray[np.int64]) -> None:
        """Raise ConfigError if a robot begins within an obstacle, which would throw it out."""
        angle, half = self.state.link_angle[worlds], self.params.half_length[worlds]
        along = half[..., None] * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
        centre = np.insert(np.cumsum(along[:, :-1] + along[:, 1:], axis=1), 0, 0.0, axis=1)
        centre += self.state.head_xy[worlds][:, None] - centre[:, -1:]
        overlap = deepest_overlaps(self.obstacles.feature[worlds], angle, centre, half, self.params.radius[worlds])
        worst = int(overlap.argmax())
        if overlap[worst] > _DEEPEST_START_M:
            raise ConfigError(
                f"world {worlds[worst]} begins with a link {1e3 * overlap[worst]:.3g} mm within an obstacle; expected "
                f"at most {1e3 * _DEEPEST_START_M:g} mm"
            )

    def joint_angle(self) -> FloatArray:
        """Return the joint angles phi_i = theta_i - theta_{i+1} (W, J) [rad]."""
        return self.state.link_angle[:, :-1] - self.state.link_angle[:, 1:]

    def joint_rate(self) -> FloatArray:
        """Return the joint rates (W, J) [rad/s]."""
        return self.state.link_rate[:, :-1] - self.state.link_rate[:, 1:]

    def motion(self) -> tuple[FloatArray, ...]:
        """Return what has to be finite, arrays (W, ...)."""
        return self.state.link_angle, self.state.link_rate, self.state.centre_xy, self.state.centre_vel

    def restored(self) -> None:
        """Switch on the laws of the faults that were written to ``faults``."""
        self.allow_faults(self.fault_names())

    def read_servos(self, rows: Any = slice(None)) -> tuple[FloatArray, FloatArray, bool]:
        """Return joint angles [rad] and rates [rad/s] (M, J) as the servos' own encoders read them.

        The third value is False where some world's faults let a servo read, or tell, another angle than its joint's.
        """
        state = self.state
        angle, rate = (values[:, :-1] - values[:, 1:] for values in (state.link_angle[rows], state.link_rate[rows]))
        if self._last_kind() < SLIPPED:
            return angle, rate, True
        return angle - state.slip_rad[rows] + self.servos.misread_rad[rows], rate - state.slip_rate[rows], False

    def heading(self) -> FloatArray:
        """Return the mean link angle (W,) [rad]."""
        return self.state.link_angle.mean(axis=1)

    def turning_rate(self) -> FloatArray:
        """Return the mean rate of the links (W,) [rad/s]."""
        return self.state.link_rate.mean(axis=1)

    def acting_kinds(self) -> NDArray[np.int64]:
        """Return the kinds of each joint's first and second fault that act at the present time (2, W, J); 0: none."""
        both, time_s = (self.faults, self.second_faults), self.state.time_s
        return np.array([one.kind * acting(one, time_s) if one.kind.any() else one.kind for one in both])

    def allow_faults(self, kinds: Iterable[str]) -> None:
        """Switch on the laws that faults of these ``kinds`` need: of slips, torques, friction and backlash."""
        chosen = [FAULT_KINDS[kind] for kind in kinds]
        self.allow_laws(law for kind in chosen for law in kind.laws)
        if any(kind.code >= SLIPPED for kind in chosen):
            self.note_torques()

    def allow_laws(self, laws: Iterable[Law]) -> None:
        """Switch on further laws, for faults and for parameters that are not the specification's."""
        on: dict[str, Any] = dict.fromkeys(laws, True)
        self._laws = self._laws._replace(**on)
        self._check_precision()

    def fault_names(self) -> set[str]:
        """Return the kinds of all faults that joints have, had or will have in the present episodes."""
        codes = np.unique(np.stack([self.faults.kind, self.second_faults.kind]))
        return {name_of_code(code) for code in codes.tolist() if code != HEALTHY}

    def has_registered_faults(self) -> bool:
        """Return True if a joint has, had or will have a fault of a registered kind: what servos do is then kept."""
        return self._last_kind() > LAST_KERNEL_CODE

    def _last_kind(self) -> int:
        """Return the largest code of a fault that joints have, had or will have in the present episodes."""
        first, second = self.faults.kind, self.second_faults.kind
        return max(int(first.max()), int(second.max()) if np.count_nonzero(second) else HEALTHY)

    def note_torques(self) -> None:
        """Keep the mean square of each motor's torque, ``servos.torque_square``, whatever faults there are."""
        self._laws = self._laws._replace(servo_faults=True)

    def take_pressures(self) -> None:
        """Let muscles get ``state.pressure_command`` alone, without the loops of their joints."""
        self._laws = self._laws._replace(muscle=self._laws.muscle._replace(direct=True))

    def muscle_tension(self, rows: Any = slice(None)) -> FloatArray:
        """Return the tension of the left and right muscle of each joint (M, J, 2) [N]."""
        kinds = self.acting_kinds()[:, rows, :, None] == np.array([WEAK_LEFT, WEAK_RIGHT])
        strength = np.array([self.faults.strength[rows], self.second_faults.strength[rows]])[..., None]
        spec, angle = self.spec.actuator.muscle, self.joint_angle()[rows]
        tension = muscle_force(spec, muscle_length(spec, angle), self.state.muscle_pressure[rows])
        return np.asarray(np.where(kinds, strength, 1.0).prod(axis=0) * tension)

    def step(
        self,
        reference: FloatArray,
        feedforward: FloatArray | None = None,
        n_substeps: int | None = None,
        mask: NDArray[np.bool_] | None = None,
    ) -> None:
        """Advance the worlds of ``mask`` by ``n_substeps`` steps of sim_dt_s (None: one control step).

        Args:
            reference: (W, J) [rad] joint angles that the actuators aim at.
            feedforward: (W, J) torque [N m] (acceleration-controlled: [rad/s^2]) added to it; None: the robot's.

        Raises ValueError for other steps than one control step where references act late.
        """
        n_substeps = self.spec.n_substeps if n_substeps is None else n_substeps
        # Numba would compile the physics anew for other layouts and types.
        reference = np.require(reference, np.float64, ("C", "W"))
        feedforward = self.feedforward if feedforward is None else np.require(feedforward, np.float64, ("C", "W"))
        ids = self._all if mask is None else np.flatnonzero(mask)
        step_s = n_substeps * self.spec.step_s
        reference, shift, faults, params = self._apply_faults(ids, reference, step_s)
        if self._laws.servo_faults:
            self.servos.torque_square[ids] = 0.0
        if self._laws.patches:
            self._patches.link_angle[ids] = self.state.link_angle[ids]
            self._patches.centre_xy[ids] = self.state.centre_xy[ids]
        delay = self.delay or self.varying_delay
        if delay is not None and n_substeps != delay.n_substeps:
            raise ValueError(
                f"n_substeps is {n_substeps}; expected {delay.n_substeps}, a control step, as references of this "
                "robot act late (actuator.delay_s)"
            )
        parts = [(reference, n_substeps, self._no_late_commands)] if delay is None else delay.pass_on(reference, ids)
        for aim, n_steps, later in parts:
            aims = aim if shift is None else aim + shift
            later_aims = later if shift is None else later._replace(aim=later.aim + shift[:, None, :])
            self._advance(ids, n_steps, params, faults, later_aims, aims, feedforward)
        if self._laws.servo_faults:
            self.servos.torque_square[ids] /= step_s

    def _apply_faults(
        self, ids: NDArray[np.int64], reference: FloatArray, step_s: float
    ) -> tuple[FloatArray, FloatArray | None, tuple[FaultState, FaultState], ChainParams]:
        """Return references and their shifts in the servos' loops (W, J), faults of the kernels' kinds and parameters
        under the faults of this control step; shifts None: there are none."""
        faults, params, last_kind = (self.faults, self.second_faults), self.params, self._last_kind()
        if last_kind >= SLIPPED and not self._laws.servo_faults:
            self.note_torques()
        if last_kind <= LAST_KERNEL_CODE:
            return reference, None, faults, params
        done = apply_effects(self.spec, faults, self.state, self.servos, reference, ids, step_s)
        for is_on, values, name in (
            (self._laws.joint_friction, done.friction_nm, "joint friction"),
            (self._laws.imperfect, done.backlash_rad, "backlash"),
        ):
            if values.any() and not is_on:
                raise ConfigError(f"a fault has {name}, which its kind does not name; expected it among its laws")
        if done.friction_nm.any():
            params = params._replace(joint_friction=params.joint_friction + done.friction_nm)
        if done.backlash_rad.any():
            params = params._replace(play=params.play + 0.5 * done.backlash_rad)
        return done.reference, done.shift_rad if done.shift_rad.any() else None, done.faults, params

    def _advance(
        self,
        ids: NDArray[np.int64],
        n_substeps: int,
        params: ChainParams,
        faults: tuple[FaultState, FaultState],
        later: LateCommands,
        *commands: FloatArray,
    ) -> None:
        """Advance the worlds ``ids`` by ``n_substeps`` physics steps; ``commands`` act at once, ``later`` in time."""
        same_params = self.same_params and params is self.params
        ground = (self.obstacles, later, self._patches)
        how = (self._number, self._laws, self.spec.step_s, n_substeps)
        world_data = (self.state, params, same_params, faults, *ground, self.servos.torque_square, *commands)
        arguments = (ids, np.zeros(1, np.int64), *how, *world_data)
        arrays = (self.state, params, *faults, *ground, self.servos)
        if all(map(is_, arrays, self._last_arrays)):
            stepper = self._stepper = self._stepper or typed(step_worlds, arguments)
        else:
            stepper, self._stepper, self._last_arrays = step_worlds, None, arrays
        n_helpers = min(self.n_threads, ids.size // _MIN_WORLDS_PER_THREAD) - 1
        helpers = [_thread_pool(n_helpers, os.getpid()).submit(stepper, *arguments) for _ in range(n_helpers)]
        stepper(*arguments)
        for helper in helpers:
            if not helper.cancel():  # one that has not begun by now has nothing left to do
                helper.result()

    def derivative(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the present accelerations of the links (W, N) [rad/s^2] and the centre of mass (W, 2) [m/s^2].

        ``u`` (W, J) are joint accelerations [rad/s^2] of an acceleration-controlled robot, else joint torques [N m];
        joint stops, and the actuator but for its torque limit, have no effect. LOCKED joints get acceleration 0, FREE
        ones their viscous torque. Raises ValueError for Coulomb friction, joint friction and obstacles, whose forces
        follow from a step only.
        """
        laws = self._laws
        forces = {"Coulomb friction": laws.coulomb, "joint friction": laws.joint_friction, "obstacles": laws.obstacles}
        for name, is_on in forces.items():
            if is_on:
                raise ValueError(f"derivative knows no {name}; expected a robot without")
        kinds, strength = self.acting_kinds(), np.stack([self.faults.strength, self.second_faults.strength])
        locked, free = ((kinds == kind).any(axis=0) for kind in (LOCKED, FREE))
        share = np.where(locked | free, 0.0, np.where(kinds == WEAK, strength, 1.0).prod(axis=0))
        given = locked | (~free & (self.spec.actuator.kind == "acceleration"))
        u = share * np.where(given, u, np.clip(u, -self.params.torque_limit, self.params.torque_limit))
        u -= np.where(free & ~locked, self.params.free_damping * self.joint_rate(), 0.0)
        return accelerate(self.params, self.state, u, given)

    def link_velocities(self) -> FloatArray:
        """Return the velocity of each link's centre of mass (W, N, 2) [m/s], world frame."""
        state, half = self.state, self.params.half_length
        lever = half * state.link_rate
        part = np.stack([-lever * np.sin(state.link_angle), lever * np.cos(state.link_angle)], axis=-1)
        relative = self.params.ahead[..., None] * part
        relative[:, 1:] += np.cumsum(part[:, :-1] + part[:, 1:], axis=1)
        mean = (self.params.mass[..., None] * relative).sum(axis=1) / self.params.mass.sum(axis=1)[:, None]
        return relative + (state.centre_vel - mean)[:, None, :]

    def kinetic_energy(self) -> FloatArray:
        """Return the kinetic energy (W,) [J]."""
        speed2 = (self.link_velocities() ** 2).sum(axis=-1)
        spin = self.params.inertia * self.state.link_rate**2
        return 0.5 * (self.params.mass * speed2 + spin).sum(axis=1)


@cache
def _thread_pool(workers: int, process: int) -> ThreadPoolExecutor:
    """Return the one pool of this size for all robots of a process; a forked child makes its own."""
    return ThreadPoolExecutor(workers, thread_name_prefix="snake_gym-physics")
