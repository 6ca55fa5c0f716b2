"""Simulation of W spatial robots by MuJoCo: a thread pool steps all worlds, in one call for each control step.

``mujoco.rollout`` takes the worlds' states and the servos' commands for every physics step and gives states and torques
back; no Python runs in between. Each call begins MuJoCo's constraint solver anew, so that what a world does follows
from its state alone: it is the same bits alone, in any batch, on any number of threads, and after a restore.

Faults and grounds are in the models: a world that has its own gets a copy of the model, changed when a fault begins or
ends. A locked joint has both its stops where it was; they yield by some milliradians under the torque of a servo.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import mujoco
import numpy as np
from mujoco import rollout
from numpy.typing import NDArray

from snake_gym.config.threads import process_threads
from snake_gym.physics.faults import FREE, HEALTHY, LOCKED, OFFSET, SLOW, WEAK, acting
from snake_gym.physics.state import FaultState, no_faults
from snake_gym.robot.protocol import Robot
from snake_gym.robot.recorded_body import Ground, RecordedBody
from snake_gym.robot.spec import FloatArray
from snake_gym.simulation.fault_effects import ServoState, quiet_servos
from snake_gym.spatial.ground import GroundSpec, make_ground
from snake_gym.spatial.kinematics import Posture, posture, rotation_of_quaternion
from snake_gym.spatial.mjcf import back_emf, servo_bias, write_mjcf
from snake_gym.spatial.recording import record_body
from snake_gym.spatial.self_overlap import deepest_overlap
from snake_gym.spatial.spec import SpatialSpec

SEIZED_SOLREF = (2.0, 1.0)
"""Time constant, in physics steps, and damping ratio of a locked joint's stops."""
SEIZED_SOLIMP = (0.99, 0.99, 0.001, 0.5, 2.0)
"""How rigid they are, see MuJoCo's ``solimp``."""
FAST_RAD_S = 30.0
"""Joint rate beyond which a control step is taken again with smaller physics steps: servos never turn so fast."""
FINER = 4
"""Physics steps that then stand for one."""
CLEARANCE_M = 1e-3
"""Height above the ground at which robots begin."""


class SpatialState(NamedTuple):
    """Moving state of W spatial robots, one row per world; the names that planar robots have too mean the same."""

    physics: FloatArray
    """State of MuJoCo (W, S): time, positions, velocities; all others follow from it, but work and torque."""
    link_angle: FloatArray
    """Horizontal directions of the links towards the head (W, N) [rad], from the tail."""
    centre_xy: FloatArray
    """Centre of mass (W, 2) [m], world frame, by the nominal masses, without wheels."""
    centre_z: FloatArray
    """Its height (W,) [m]."""
    centre_vel: FloatArray
    """Mean velocity of the centre of mass over the last control step (W, 2) [m/s]."""
    heading: FloatArray
    """Horizontal direction of the body (W,) [rad], see ``posture``."""
    turning_rate: FloatArray
    """Mean rate of the heading over the last control step (W,) [rad/s]."""
    head_xy: FloatArray
    """Middle of the head (W, 2) [m]."""
    time_s: FloatArray
    """Time since the world's reset (W,) [s]."""
    work_j: FloatArray
    """Positive work of the actuators since the world's reset (W,) [J]."""
    joint_torque: FloatArray
    """Joint torques in the last physics step (W, J) [N m]."""
    peak_torque: FloatArray
    """Largest torque of any joint since the world's reset (W,) [N m]."""
    acting: FloatArray
    """Kinds of the faults that acted in the last control step (W, J), 0 for none."""
    stood_still: FloatArray
    """Always 0 (W,): MuJoCo does not refuse a step."""
    self_overlap_m: FloatArray
    """Deepest overlap of two links since the reset, at the ends of calls (W,) [m]: links do not see each other."""
    overlap_now_m: FloatArray
    """The same at the end of the last call (W,) [m]; 0: none."""


class SpatialParams(NamedTuple):
    """What may differ between W robots of one specification, one row for each."""

    contact_friction: FloatArray
    """Coefficient of dry friction on the ground (W,)."""
    mass: FloatArray
    """Factors of the links' masses and inertias (W, N), from the tail."""
    kp: FloatArray
    """Gains (W, J) [N m/rad] of the servos, from the tail."""
    kd: FloatArray
    """Their damping (W, J) [N m s/rad]."""
    torque_limit: FloatArray
    """(W, J) [N m]"""
    speed_limit: FloatArray
    """(W, J) [rad/s]"""
    joint_friction: FloatArray
    """Dry friction of the joints (W, J) [N m]."""


def nominal_params(spec: SpatialSpec, n_worlds: int) -> SpatialParams:
    """Return the parameters of ``n_worlds`` robots as specified."""
    actuator = [spec.joints(f"actuator.{name}") for name in ("kp", "kd", "torque_limit_nm", "speed_limit_rad_s")]
    rows = (
        np.array(spec.friction), np.ones(spec.n_links), *actuator, np.full(spec.n_joints, spec.joint_friction_nm),
    )  # fmt: skip
    return SpatialParams(*(np.repeat(row[None], n_worlds, axis=0) for row in rows))


class SpatialRobot(Robot):
    """W spatial robots of one specification on grounds, stepped by ``n_threads`` threads (None: all of the process).

    ``ground``: that of all worlds; ``lay_heights`` gives a world its own.
    """

    def __init__(
        self,
        spec: SpatialSpec,
        n_worlds: int,
        n_threads: int | None = None,
        ground: GroundSpec | Ground | None = None,
    ) -> None:
        self.spec = spec
        self.ground = ground
        self.n_worlds = n_worlds
        self.n_threads = n_threads or process_threads()
        self.model = mujoco.MjModel.from_xml_string(write_mjcf(spec, ground))
        """Model of a healthy world on the common ground."""
        size = mujoco.mj_stateSize(self.model, mujoco.mjtState.mjSTATE_FULLPHYSICS.value)
        self._n_positions, n_velocities = self.model.nq, self.model.nv
        if size != 1 + self._n_positions + n_velocities:
            raise RuntimeError(f"MuJoCo's state has {size} numbers; expected time, positions and velocities alone")
        names = [f"joint_{i + 1}" for i in range(spec.n_joints)]
        at_position = np.array([self.model.joint(name).qposadr[0] for name in names])
        self._joints = np.array([self.model.joint(name).id for name in names])
        dofs = np.array([self.model.joint(name).dofadr[0] for name in names])
        self._angles, self._rates = 1 + at_position, 1 + self._n_positions + dofs
        w, j = n_worlds, spec.n_joints
        self.state = SpatialState(
            np.zeros((w, size)), np.zeros((w, spec.n_links)), np.zeros((w, 2)), np.zeros(w), np.zeros((w, 2)),
            np.zeros(w), np.zeros(w), np.zeros((w, 2)), np.zeros(w), np.zeros(w), np.zeros((w, j)), np.zeros(w),
            np.zeros((w, j)), np.zeros(w), np.zeros(w), np.zeros(w),
        )  # fmt: skip
        self.state.physics[:] = self._at_rest()
        self.faults: FaultState = no_faults(w, j)
        self.second_faults: FaultState = no_faults(w, j)
        """Further faults, of joints that have two; spatial robots act on the first alone."""
        self.servos: ServoState = quiet_servos(w, j)
        """``servos.command``: what the servos aim at; it goes to the references no faster than their speed limit."""
        self.delay = self.feedforward = None
        self.torques: FloatArray = np.zeros((w, 0, j))
        """Joint torques in each physics step of the last call (M, n, J) [N m], for studies; not part of the state."""
        self.paths: FloatArray = np.zeros((w, 0, size))
        """States after each physics step of the last call (M, n, S), likewise."""
        self._models: list[Any] = []
        """Models of worlds with faults or grounds of their own; none: all have the common one."""
        self._modelled: FloatArray = np.stack([np.zeros((w, j)), np.zeros((w, j)), np.ones((w, j))])
        """Faults that the models have: kinds, angles of locks, strengths (3, W, J); NaN: not known."""
        self._heights: dict[int, FloatArray] = {}
        """Heights that worlds have of their own."""
        self.params = nominal_params(spec, w)
        """True parameters, to be changed by ``use_parameters`` alone."""
        self._links = [self.model.body(f"link_{i + 1}").id for i in range(spec.n_joints)] + [self.model.body("head").id]
        self._dofs = dofs
        self._pools: dict[int, tuple[Any, list[Any]]] = {}
        self._derive(slice(None))

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy needs: it makes its own threads."""
        return {**self.__dict__, "_pools": {}}

    # --- grounds -----------------------------------------------------------------------------------------------------

    def own_models(self) -> list[Any]:
        """Return a model for each world, to be changed in place; from now on each world has its own."""
        if not self._models:
            self._models = [copy.copy(self.model) for _ in range(self.n_worlds)]
        return self._models

    def own_model(self, world: int) -> Any:
        """Return the model that a world has."""
        return self._models[world] if self._models else self.model

    def lay_heights(self, world: int, heights_m: FloatArray) -> None:
        """Give one world the heights [m] of its field, within the span and on the grid of the common ground's."""
        model = self.own_models()[world]
        low, rise = model.geom("ground").pos[2], model.hfield_size[0, 2]
        model.hfield_data[:] = np.clip((heights_m - low) / rise, 0.0, 1.0).ravel()
        self._heights[world] = heights_m

    def ground_of(self, world: int) -> Ground:
        """Return the shapes that one world's robot moves on."""
        shapes = self.ground if isinstance(self.ground, Ground) else make_ground(self.ground or GroundSpec())
        return shapes._replace(heights_m=self._heights.get(world, shapes.heights_m))

    def use_parameters(self, rows: NDArray[np.int64], params: SpatialParams) -> None:
        """Give the robots ``rows`` (M,) parameters of their own, one row of ``params`` for each.

        Controllers, and what is worked out from measurements, keep the specification's.
        """
        data = mujoco.MjData(self.model)
        models, sound = self.own_models(), self.model
        on_joints, bodies = self._joints, self._links
        for values, given in zip(self.params, params, strict=True):
            values[rows] = given
        for row, world in enumerate(rows):
            model = models[world]
            # of two shapes that touch, the larger coefficient counts
            model.geom_friction[:, 0] = params.contact_friction[row]
            model.body_mass[bodies] = params.mass[row] * sound.body_mass[bodies]
            model.body_inertia[bodies] = params.mass[row][:, None] * sound.body_inertia[bodies]
            model.dof_frictionloss[self._dofs] = params.joint_friction[row]
            for joint in range(on_joints.size):
                self._set_servo(int(world), joint, HEALTHY)
            mujoco.mj_setConst(model, data)
        self._modelled[:, rows] = np.nan

    # --- placing -----------------------------------------------------------------------------------------------------

    def _at_rest(self) -> FloatArray:
        data = mujoco.MjData(self.model)
        rest = np.concatenate([[0.0], data.qpos, np.zeros(self.model.nv)])
        rest[3] = self.spec.rest_height_m + CLEARANCE_M
        return rest

    def set_shape(
        self,
        joint_angle: FloatArray,
        head_angle: FloatArray,
        point_xy: FloatArray,
        point: str = "head",
        mask: NDArray[np.bool_] | None = None,
    ) -> None:
        """Place the M robots of ``mask`` (W,) at rest, lying on height 0, bent by ``joint_angle`` (M, J) [rad].

        ``head_angle`` (M,) [rad] is the head's horizontal direction, ``point_xy`` (M, 2) [m] the place of ``point``
        ("head" or "centre"). A robot that is bent by pitch joints begins with its lowest link just above the ground.
        """
        rows = np.arange(self.n_worlds) if mask is None else np.flatnonzero(mask)
        turn = 0.5 * (np.asarray(head_angle, np.float64) + 0.5 * np.pi)
        nothing = np.zeros(rows.size)
        quaternions = np.stack([np.cos(turn), nothing, nothing, np.sin(turn)], axis=1)
        base = np.zeros((rows.size, 3))
        shape = posture(self.spec, rotation_of_quaternion(quaternions), base, joint_angle)
        at = shape.middle[:, -1, :2] if point == "head" else shape.centre[:, :2]
        base[:, :2] = point_xy - at
        base[:, 2] = self.spec.rest_height_m + CLEARANCE_M - np.minimum(shape.middle[..., 2].min(axis=1), 0.0)
        for row, world in enumerate(rows):
            if world in self._heights:
                below = shape.middle[row, :, :2] + base[row, :2]
                base[row, 2] += max(self._highest_below(int(world), below), 0.0)
        self.set_pose(joint_angle, quaternions, base, mask)

    def _highest_below(self, world: int, points_xy: FloatArray) -> float:
        """Return the highest of a world's own heights [m] within half a link of the points (N, 2) [m]."""
        heights, half_size = self._heights[world], self.model.hfield_size[0, :2]
        n_rows, n_columns = heights.shape
        cell = 2.0 * half_size / [n_columns - 1, n_rows - 1]
        reach = np.ceil(0.6 * self.spec.link_length_m / cell).astype(int)
        around = np.stack(np.meshgrid(*(np.arange(-r, r + 1) for r in reach)), axis=-1).reshape(-1, 2)
        places = np.rint((points_xy + half_size) / cell).astype(int)[:, None] + around
        columns, rows = np.clip(places[..., 0], 0, n_columns - 1), np.clip(places[..., 1], 0, n_rows - 1)
        return float(heights[rows, columns].max())

    def set_pose(
        self,
        joint_angle: FloatArray,
        quaternions: FloatArray,
        base_w: FloatArray,
        mask: NDArray[np.bool_] | None = None,
    ) -> None:
        """Place the base frames of the M robots of ``mask`` at ``base_w`` (M, 3) [m], turned by ``quaternions`` (M, 4).

        They rest, bent by ``joint_angle`` (M, J) [rad], time and work at zero; their servos aim at those angles.
        """
        rows = np.arange(self.n_worlds) if mask is None else np.flatnonzero(mask)
        physics = np.tile(self._at_rest(), (rows.size, 1))
        physics[:, 1:4], physics[:, 4:8] = base_w, quaternions
        physics[:, self._angles] = joint_angle
        for values in self.state:
            values[rows] = 0.0
        self.state.physics[rows] = physics
        for name, values in self.servos._asdict().items():
            values[rows] = joint_angle if name == "command" else 0
        self._derive(rows)

    def _derive(self, rows: Any) -> Posture:
        """Make the rest of the state follow from ``physics``; return the robots' postures."""
        state = self.state
        shape = posture(self.spec, *self.base_pose(rows), self.joint_angle()[rows])
        state.link_angle[rows] = np.arctan2(shape.axis[..., 1], shape.axis[..., 0])
        state.centre_xy[rows], state.centre_z[rows] = shape.centre[:, :2], shape.centre[:, 2]
        state.heading[rows], state.head_xy[rows] = shape.heading, shape.middle[:, -1, :2]
        state.time_s[rows] = state.physics[rows, 0]
        return shape

    # --- reading -----------------------------------------------------------------------------------------------------

    def joint_angle(self) -> FloatArray:
        """Return the joint angles (W, J) [rad], from the tail."""
        return self.state.physics[:, self._angles]

    def joint_rate(self) -> FloatArray:
        """Return the joint rates (W, J) [rad/s]."""
        return self.state.physics[:, self._rates]

    def base_pose(self, rows: Any = slice(None)) -> tuple[FloatArray, FloatArray]:
        """Return rotation (M, 3, 3) and origin (M, 3) [m] of the base frames of the worlds ``rows`` in the world."""
        quaternions = self.state.physics[rows, 4:8]
        length = np.sqrt((quaternions**2).sum(axis=1, keepdims=True))
        return rotation_of_quaternion(quaternions / length), self.state.physics[rows, 1:4].copy()

    def heading(self) -> FloatArray:
        """Return the horizontal direction of the body (W,) [rad]."""
        return self.state.heading

    def turning_rate(self) -> FloatArray:
        """Return its mean rate over the last control step (W,) [rad/s]."""
        return self.state.turning_rate

    def motion(self) -> tuple[FloatArray, ...]:
        """Return what has to be finite, arrays (W, ...)."""
        return (self.state.physics,)

    def acting_kinds(self) -> NDArray[np.int64]:
        """Return the kinds of each joint's first and second fault that act now (2, W, J); there is no second."""
        first = np.where(acting(self.faults, self.state.time_s), self.faults.kind, HEALTHY)
        return np.stack([first, np.zeros_like(first)])

    def pose(self) -> Mapping[str, FloatArray]:
        """Return joint angles, and rotation and origin of the base frames, see ``base_pose``."""
        rotation, origin = self.base_pose()
        return {"joint_angle": self.joint_angle(), "rotation": rotation, "origin": origin}

    def recorded_body(self, world: int, poses: Mapping[str, FloatArray]) -> RecordedBody:
        """Return the motion of one world's robot and the ground around it, see ``Robot``."""
        return record_body(self.spec, self.ground_of(world), **poses)

    def has_registered_faults(self) -> bool:
        """Return True: what the servos do is always kept."""
        return True

    # --- stepping ----------------------------------------------------------------------------------------------------

    def step(self, reference: FloatArray, mask: NDArray[np.bool_] | None = None) -> None:
        """Advance the worlds of ``mask`` (W,) by one control step.

        ``reference`` (W, J) [rad]: joint angles that the servos go to, no faster than their speed limit.
        """
        rows = np.arange(self.n_worlds) if mask is None else np.flatnonzero(mask)
        if rows.size == 0:
            return
        n, spec, state = self.spec.n_substeps, self.spec, self.state
        speed, aim = self._take_faults(rows, np.clip(reference[rows], -spec.joint_limit_rad, spec.joint_limit_rad))
        last = self.servos.command[rows]
        if spec.profile == "ramp":
            speed = np.minimum(speed, np.abs(aim - last) / (n * spec.sim_dt_s))
        reach = speed * spec.sim_dt_s
        steps = np.arange(1, n + 1)[:, None]
        gap = (aim - last)[:, None]
        with np.errstate(invalid="ignore"):  # a servo without speed limit: inf
            command = last[:, None] + np.clip(gap, -reach[:, None] * steps, reach[:, None] * steps)
        self.servos.command[rows] = command[:, -1]
        before = state.physics[rows]
        centre, heading = state.centre_xy[rows].copy(), state.heading[rows].copy()
        control = np.concatenate([command, np.zeros_like(command)], axis=2)  # back electromotive forces take none
        models = [self._models[row] for row in rows] if self._models else self.model
        pool, data = self._pool()
        with np.errstate(all="ignore"):
            path, torque = pool.rollout(models, data, before, control)
        with np.errstate(invalid="ignore"):
            fast = ~(np.abs(path[:, :, self._rates]).max(axis=(1, 2)) <= FAST_RAD_S)
        for row in np.flatnonzero(fast):
            path[row], torque[row] = self._step_finer(int(rows[row]), before[row], control[row])
        state.physics[rows] = path[:, -1]
        rate = np.concatenate([before[:, None, self._rates], path[:, :-1][:, :, self._rates]], axis=1)
        power = np.maximum(torque * rate, 0.0)
        state.work_j[rows] += power.sum(axis=2).sum(axis=1) * spec.sim_dt_s
        state.joint_torque[rows] = torque[:, -1]
        state.peak_torque[rows] = np.maximum(state.peak_torque[rows], np.abs(torque).max(axis=(1, 2)))
        self.torques, self.paths = torque, path
        state.overlap_now_m[rows] = deepest_overlap(spec, self._derive(rows))
        state.self_overlap_m[rows] = np.maximum(state.self_overlap_m[rows], state.overlap_now_m[rows])
        state.centre_vel[rows] = (state.centre_xy[rows] - centre) / (n * spec.sim_dt_s)
        turned = state.heading[rows] - heading
        state.turning_rate[rows] = np.arctan2(np.sin(turned), np.cos(turned)) / (n * spec.sim_dt_s)
        self.servos.torque_square[rows] = (torque**2).mean(axis=1)

    def _step_finer(self, world: int, before: FloatArray, control: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return states (n, S) and torques (n, J) of one world's control step by physics steps ``FINER`` times smaller.

        Of links that strike the ground in a heap, MuJoCo's fast implicit integrator now and then makes energy at 4 ms.
        """
        model = copy.copy(self.own_model(world))
        model.opt.timestep /= FINER
        with np.errstate(all="ignore"):
            path, torque = rollout.rollout(
                model, mujoco.MjData(model), before[None], np.repeat(control, FINER, axis=0)[None]
            )
        return path[0, FINER - 1 :: FINER], torque[0, FINER - 1 :: FINER]

    def _pool(self) -> tuple[Any, list[Any]]:
        """Return this process's threads and a MuJoCo workspace for each."""
        key = os.getpid()
        if key not in self._pools:
            n = min(self.n_threads, self.n_worlds)
            data = [mujoco.MjData(self.model) for _ in range(n)]
            self._pools = {key: (rollout.Rollout(nthread=n if n > 1 else 0), data)}
        return self._pools[key]

    def _take_faults(self, rows: NDArray[np.int64], aim: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Change the models of the worlds ``rows`` by the faults that act now; return speed limits and aims (M, J)."""
        speed = self.params.speed_limit[rows]
        faults, state = self.faults, self.state
        if not faults.kind.any() and not self._modelled[0].any():
            return speed, aim
        kind = self.acting_kinds()[0][rows]
        fresh = (state.acting[rows] != LOCKED) | (faults.memory[rows] == 0.0)  # a live fault begins without a memory
        seizes = (kind == LOCKED) & fresh
        faults.memory[rows] = np.where(seizes, self.joint_angle()[rows], faults.memory[rows])
        state.acting[rows] = kind
        memory = np.where(kind == LOCKED, faults.memory[rows], 0.0)
        strength = np.where((kind == WEAK) | (kind == SLOW), faults.strength[rows], 1.0)
        law = np.stack([kind, memory, strength])
        for row, joint in np.argwhere((law != self._modelled[:, rows]).any(axis=0)):
            self._break(int(rows[row]), int(joint), int(kind[row, joint]))
        self._modelled[:, rows] = law
        speed = np.where(kind == SLOW, strength * speed, speed)
        return speed, np.where(kind == OFFSET, aim + faults.offset_rad[rows], aim)

    def _break(self, world: int, joint: int, kind: int) -> None:
        """Give one joint of one world's model the law of a kind of fault, HEALTHY among them."""
        model, sound, number = self.own_models()[world], self.model, int(self._joints[joint])
        for name in ("jnt_limited", "jnt_range", "jnt_solref", "jnt_solimp"):
            getattr(model, name)[number] = getattr(sound, name)[number]
        if kind == LOCKED:
            model.jnt_limited[number] = True
            model.jnt_range[number] = self.faults.memory[world, joint]
            model.jnt_solref[number] = (SEIZED_SOLREF[0] * self.spec.sim_dt_s, SEIZED_SOLREF[1])
            model.jnt_solimp[number] = SEIZED_SOLIMP
        self._set_servo(world, joint, kind)

    def _set_servo(self, world: int, joint: int, kind: int) -> None:
        """Give one joint of one world's model the servo's law under a kind of fault, HEALTHY among them."""
        model, params, number = self.own_models()[world], self.params, int(self._joints[joint])
        strength = float(self.faults.strength[world, joint])
        power = 0.0 if kind == FREE else strength if kind == WEAK else 1.0
        kp, kd = power * params.kp[world, joint], power * params.kd[world, joint]
        speed, slope = params.speed_limit[world, joint] * (strength if kind == SLOW else 1.0), 0.0
        if self.model.actuator_forcelimited[joint]:
            limit = power * params.torque_limit[world, joint]
            slope = back_emf(limit, speed)
            model.actuator_forcerange[joint] = model.jnt_actfrcrange[number] = -limit, limit
        model.actuator_gainprm[joint, 0] = kp
        model.actuator_biasprm[joint, 1:3] = servo_bias(kp, kd, slope)
        model.actuator_biasprm[self.spec.n_joints + joint, 2] = -slope

    def restored(self) -> None:
        """Make the models follow, in the next step, after ``state`` and ``faults`` were written to."""
        if self._models:
            self._modelled[:] = np.nan
