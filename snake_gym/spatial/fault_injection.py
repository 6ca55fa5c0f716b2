"""Faults of joints and encoders in anybody's Gymnasium MuJoCo env: ``FaultInjection``.

Joints are the hinges and slides that actuators drive, numbered from 1 in the actuators' order. Which fail, how and when
is drawn as in our own envs: a robot of as many joints gets the same faults from the same seed. Faults begin and end
with control steps, by changes of MuJoCo's model that the next reset undoes.

locked: the joint stops as by an impact in no time, which the whole body feels, and an armature of ``HELD`` holds it,
stable in every integrator; contacts and other constraints answer in the next physics step.
free: the actuator gives no force. weak: a share of its force, and of the limits of its force.
slow: a motor's back electromotive force, as damping: at a share of ``speed_limit_rad_s``, the largest command gives no
more torque. A healthy joint has no such limit; without a ``speed_limit_rad_s``, nothing can be slow.
offset, misread: a position servo's aim is shifted. Refused for other actuators: they are commanded no angle.
silent: the last command stands, the reading stays. rough, overload: shares of the largest torque, which must be known.
slipped, loose: refused; MuJoCo's joints have no gears.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import gymnasium as gym
import mujoco
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import NDArray

from snake_gym.config import ConfigError, apply_keywords
from snake_gym.physics.faults import FREE, HEALTHY, LOCKED, OFFSET, SLOW, WEAK, acting
from snake_gym.physics.state import FaultState, no_faults, zero_state
from snake_gym.robot.spec import ActuatorSpec, FloatArray, RobotSpec
from snake_gym.simulation.fault_effects import LAST_KERNEL_CODE, apply_effects, quiet_servos
from snake_gym.simulation.fault_kinds import FAULT_KINDS, ends
from snake_gym.simulation.faults import FaultConfig, draw_faults
from snake_gym.simulation.sensors import EncoderFaultConfig, Encoders, encoder_errors
from snake_gym.simulation.streams import RandomStreams

HELD = 1e12
"""Armature of a locked joint [kg m^2]: 100 N m turn it by 0.2 microradians in a minute."""
AHEAD = 512
"""Control steps that are worked out at once."""
STEADY = [FAULT_KINDS[name].code for name in ("rough", "silent")]
"""Kinds of faults with an effect that stays what it is at the onset."""
CHANGED = (
    "dof_armature", "dof_damping", "dof_frictionloss", "actuator_gainprm", "actuator_biasprm", "actuator_forcerange",
    "jnt_actfrcrange",
)  # fmt: skip
"""Arrays of MuJoCo's model that faults change."""
ROW = np.array([0])


class FaultInjection(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """A Gymnasium MuJoCo env with faults; wrappers that change observations belong around it, of the model inside.

    Infos have ``n_failed_joints`` and ``n_faults`` too, see docs/env.md; ``faults.reveal`` appends to the observation a
    1 for each joint that is failed now, 0 for each other. A reset with a seed begins that seed's episodes, one without
    continues them.

    Args:
        env: an env with MuJoCo's ``model`` and ``data``, and ``dt`` [s]. Faults of encoders need its
            ``observation_structure`` as well, which Gymnasium's v5 envs have; they change angles and rates alone.
        faults: settings of joint faults (``FaultConfig``); by default 0 to 3 locked joints.
        encoder_faults: settings of encoder faults (``EncoderFaultConfig``); by default none.
        speed_limit_rad_s: speed limit of joints, of which slow ones keep a share; of slides in m/s.

    Raises ValueError for settings that are wrong, or faults that these actuators cannot have.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        faults: FaultConfig | Mapping[str, Any] | None = None,
        encoder_faults: EncoderFaultConfig | Mapping[str, Any] | None = None,
        speed_limit_rad_s: float = np.inf,
    ) -> None:
        RecordConstructorArgs.__init__(
            self, faults=faults, encoder_faults=encoder_faults, speed_limit_rad_s=speed_limit_rad_s
        )
        super().__init__(env)
        self.faults = apply_keywords(FaultConfig, faults, {}, "faults")
        readings = apply_keywords(EncoderFaultConfig, encoder_faults, {}, "encoder_faults")
        self._base = cast(Any, env.unwrapped)
        self._name = (env.spec.id if env.spec else type(self._base).__name__).rpartition("/")[2]
        self._model: Any = getattr(self._base, "model", None)
        if not isinstance(self._model, mujoco.MjModel):
            raise ConfigError(f"{self._name} has no MuJoCo model; expected a Gymnasium MuJoCo env")
        self._data, self._scratch, self._step_s = self._base.data, mujoco.MjData(self._model), float(self._base.dt)
        self._joints, self._is_servo, self._torque_nm = actuated_joints(self._model, self._name)
        self._dofs, self._gear = self._model.jnt_dofadr[self._joints], self._model.actuator_gear[:, 0]
        n, torque_nm, kinds = self._joints.size, tuple(self._torque_nm.tolist()), self.faults.present_kinds
        self._chain, self._speed_limit = zero_state(1, n + 1), speed_limit_rad_s
        motors = ActuatorSpec(kind="torque", torque_limit_nm=torque_nm, speed_limit_rad_s=speed_limit_rad_s)
        self._spec = RobotSpec(name=self._name, n_links=n + 1, actuator=motors)  # what kinds of faults ask of a robot
        self._check_kinds()
        effects = {kind for kind in kinds if FAULT_KINDS[kind].effect is not None}
        self._has_effects, self._reads = bool(effects), readings.any or not effects <= {"rough", "overload"}
        if self._has_effects and env.action_space.shape != (n,):
            raise ConfigError(f"{self._name} has actions {env.action_space}; expected one entry for each of {n} joints")
        self._encoders = Encoders(readings, 1, n)
        self._angles, self._rates = self._places_in_observation() if self._reads else np.zeros((2, n), np.int64)
        if self.faults.reveal:
            space = env.observation_space
            if not isinstance(space, gym.spaces.Box) or len(space.shape) != 1:
                raise ConfigError(f"faults.reveal is True, but {self._name} has no flat observation; expected a vector")
            low, high = np.append(space.low, np.zeros(n)), np.append(space.high, np.ones(n))
            self.observation_space = gym.spaces.Box(*np.array([low, high], space.dtype), dtype=space.dtype)
        self._slots = (no_faults(1, n), no_faults(1, n))
        self._streams, self._seed, self._episode = RandomStreams("faults", 1), np.full(1, -1), np.zeros(1, int)
        self._sound: dict[str, FloatArray] = {}  # the model's arrays without faults; empty before the first reset

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin a new episode with faults of its own."""
        for name, values in self._sound.items():
            getattr(self._model, name)[:] = values
        obs, info = self.env.reset(seed=seed, options=options)
        if self._base.model is not self._model or self._base.data is not self._data:
            raise ConfigError(f"{self._name} has another model now; expected one that is changed in place")
        self._sound = {name: getattr(self._model, name).copy() for name in CHANGED}
        self._episode += 1
        if seed is not None or self._seed[0] < 0:
            self._seed[0] = (self._base.np_random_seed if seed is None else seed) % 2**63
            self._episode[0] = 0
        self._streams.begin(self._seed, self._episode)
        draw_faults(self.faults, self._streams, self._slots, ROW)
        self._encoders.begin(self._seed, self._episode, ROW)
        self._servos, self._silent = quiet_servos(1, self._joints.size), np.zeros(0, np.int64)
        self._n_faults = int(((self._slots[0].kind != HEALTHY) | (self._slots[1].kind != HEALTHY)).sum())
        self._locked = np.zeros(self._joints.size, bool)
        self._before = np.zeros((1, 2 * self._joints.size), bool)
        self._last = obs
        self._look_ahead(0)
        return self._observe(obs), info | self._infos[self._row]

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Advance the env by one control step."""
        if not self._sound:
            raise gym.error.ResetNeeded("step before the first reset; call reset() first")
        if self._has_effects:
            action = self._command(np.asarray(action))
        elif self._busy[self._row]:
            self._use(self._laws, self._place[self._row])
        obs, reward, terminated, truncated, info = self.env.step(action)
        self._row += 1
        if self._row == AHEAD:
            self._look_ahead(self._n_steps + AHEAD)
        return self._observe(obs), reward, terminated, truncated, info | self._infos[self._row]

    def _look_ahead(self, n_steps: int) -> None:
        """Work out what the faults do in ``AHEAD`` control steps after ``n_steps``, and which act at their end."""
        times, self._n_steps = self._step_s * (n_steps + np.arange(AHEAD + 1, dtype=np.float64)), n_steps
        first, second = (acting(faults, times) for faults in self._slots)
        both, self._failed, self._row = np.concatenate([first, second], axis=1), first | second, 0
        busy = (both != np.concatenate([self._before, both[:-1]])).any(axis=1)
        if self._has_effects:
            kinds = np.concatenate([faults.kind for faults in self._slots], axis=1)
            busy |= (both & (kinds > LAST_KERNEL_CODE) & ~np.isin(kinds, STEADY)).any(axis=1)
        elif busy.any():
            self._laws, self._place = self._joint_laws(self._slots, times[busy]), np.cumsum(busy) - 1
        self._busy, self._before, n_failed = busy.tolist(), both[-2:-1], self._failed.sum(axis=1).tolist()
        infos = [{"n_failed_joints": n, "n_faults": self._n_faults} for n in range(self._joints.size + 1)]
        self._infos = [infos[n] for n in n_failed]
        if self._encoders.config.any:
            noise = self._encoders.streams.normal(times.size * 2 * self._joints.size).reshape(times.size, -1)
            of_angle, of_rate, dead = encoder_errors(self._encoders.faults, times, noise)
            self._errors = np.zeros((times.size, self._last.size), self._last.dtype)
            self._errors[:, self._angles], self._errors[:, self._rates] = of_angle, of_rate
            self._frozen, self._still = np.zeros((2, *self._errors.shape), bool)
            self._frozen[:, self._angles], self._still[:, self._rates], self._some_dead = dead, dead, bool(dead.any())

    def _observe(self, obs: Any) -> Any:
        """Return what the encoders make of an observation, and the failed joints where they are revealed."""
        if self._reads:
            if self._encoders.config.any:
                obs = obs + self._errors[self._row]
                if self._some_dead:
                    np.copyto(obs, self._last, where=self._frozen[self._row])
                    np.copyto(obs, 0.0, where=self._still[self._row])
            if self._has_effects:
                obs = obs.copy()
                obs[self._angles] += self._servos.misread_rad[0]
                obs[self._silent] = self._last[self._silent]
            self._last = obs.copy()
        return np.concatenate([obs, self._failed[self._row]], dtype=obs.dtype) if self.faults.reveal else obs

    def _command(self, action: NDArray[Any]) -> NDArray[Any]:
        """Return the commands that come through where kinds of faults have effects; change the model by these."""
        chain, data, servos = self._chain, self._data, self._servos
        if not self._busy[self._row]:
            servos.command[0] = np.where(servos.silent, servos.command, action)[0] if self._silent.size else action
            return servos.command[0].astype(action.dtype) if self._silent.size else action
        chain.time_s[:] = self._step_s * (self._n_steps + self._row)
        chain.link_angle[0, 1:] = -np.cumsum(data.qpos[self._model.jnt_qposadr[self._joints]])
        chain.link_rate[0, 1:] = -np.cumsum(data.qvel[self._dofs])
        servos.torque_square[0] = data.qfrc_actuator[self._dofs] ** 2
        done = apply_effects(self._spec, self._slots, chain, servos, action.astype(np.float64)[None], ROW, self._step_s)
        if done.backlash_rad.any() or done.shift_rad[0, ~self._is_servo].any():
            raise ConfigError(f"a fault has backlash or a shifted angle, which {self._name}'s actuators cannot have")
        self._silent = np.append(self._angles[servos.silent[0]], self._rates[servos.silent[0]])
        self._use(self._joint_laws(done.faults, chain.time_s, done.friction_nm, done.shift_rad), 0)
        return done.reference[0].astype(action.dtype)

    def _joint_laws(
        self, slots: tuple[FaultState, FaultState], times: FloatArray, friction_nm: Any = 0.0, shift_rad: Any = 0.0
    ) -> dict[str, NDArray[Any]]:
        """Return the model's arrays at ``times`` (M,) [s], and as "locked" which joints are (M, J), by the faults in
        ``slots`` and further dry friction and shifts of aims (M, J).
        """
        shape = (times.size, self._joints.size)
        locked, share, speed_share = np.zeros(shape, bool), np.ones(shape), np.full(shape, np.inf)
        for faults in slots:
            kind = np.where(acting(faults, times), faults.kind, HEALTHY)
            locked |= kind == LOCKED
            share *= np.where(kind == WEAK, faults.strength, kind != FREE)
            speed_share = np.where(kind == SLOW, np.minimum(speed_share, 1.0) * faults.strength, speed_share)
            shift_rad = shift_rad + np.where(kind == OFFSET, faults.offset_rad, 0.0)
        laws: dict[str, Any] = {name: np.repeat(array[None], times.size, axis=0) for name, array in self._sound.items()}
        laws["dof_armature"][:, self._dofs] += HELD * locked
        laws["dof_damping"][:, self._dofs] += share * self._damping(speed_share)
        laws["dof_frictionloss"][:, self._dofs] += friction_nm
        for name in ("actuator_gainprm", "actuator_biasprm", "actuator_forcerange"):
            laws[name] *= share[..., None]
        laws["jnt_actfrcrange"][:, self._joints] *= share[..., None]
        laws["actuator_biasprm"][..., 0] += laws["actuator_gainprm"][..., 0] * self._gear * shift_rad
        return {**laws, "locked": locked}

    def _damping(self, speed_share: FloatArray) -> FloatArray:
        """Return the damping [N m s/rad] by which the largest torque gives no more than shares of the speed limit
        (M, J), inf where joints have none. Raises ConfigError where Runge-Kutta 4, which damps explicitly, is unstable.
        """
        slow, option = np.isfinite(speed_share), self._model.opt
        damping = np.where(slow, self._torque_nm, 0.0) / np.where(slow, speed_share * self._speed_limit, 1.0)
        per_step = (damping * self._model.dof_invweight0[self._dofs]).max() * option.timestep
        if option.integrator == mujoco.mjtIntegrator.mjINT_RK4.value and per_step > 1.0:
            least = f"{per_step * self._speed_limit:.3g} at least, as Runge-Kutta 4 cannot damp these joints more"
            raise ConfigError(f"speed_limit_rad_s is {self._speed_limit:g}; expected {least}")
        return damping

    def _use(self, laws: dict[str, NDArray[Any]], row: int) -> None:
        """Change the model by the laws of a row; joints that lock now stop, by impulses p along them:
        M (v' - v) = E p, and v' = 0 there.
        """
        model, dofs = self._model, self._dofs[laws["locked"][row] & ~self._locked]
        self._locked = laws["locked"][row]
        for name in CHANGED:
            getattr(model, name)[:] = laws[name][row]
        if dofs.size:
            data, answers = self._scratch, np.zeros((dofs.size, model.nv))
            data.qpos[:] = self._data.qpos  # what the env has worked out is of a physics step ago
            mujoco.mj_fwdPosition(model, data)
            mujoco.mj_solveM(model, data, answers, np.eye(model.nv)[dofs])
            self._data.qvel -= np.linalg.solve(answers[:, dofs], self._data.qvel[dofs]) @ answers
            self._data.qvel[dofs] = 0.0

    def _check_kinds(self) -> None:
        """Raise ValueError for faults that these joints cannot have."""
        self.faults.check_robot(self._spec)
        lacks = {"slipped": "gears", "loose": "gears"}
        if not self._is_servo.all():
            lacks |= dict.fromkeys(("offset", "misread"), "position servos, which alone are commanded an angle")
        if not np.isfinite(self._torque_nm).all():
            lacks["slow"] = "torque limit"
        for name in sorted(self.faults.present_kinds.intersection(lacks)):
            raise ConfigError(f"faults has {name}, but {self._name} has no {lacks[name]}; expected another kind")
        if "slow" in self.faults.present_kinds:
            given = [event.strength for event in self.faults.events if event.kind == "slow"]
            least = min(ends(strength)[0] for strength in given or [self.faults.slow_strength])
            self._damping(np.full(self._joints.size, least))

    def _places_in_observation(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where the joints' angles and rates stand in an observation (J,). Raises ConfigError."""
        layer, model = self.env, self._model
        found = getattr(layer.unwrapped, "observation_structure", None) or {}
        n_skipped, n_angles = found.get("skipped_qpos", 0), found.get("qpos", 0)
        angles = model.jnt_qposadr[self._joints] - n_skipped
        known = n_skipped + n_angles == model.nq and found.get("qvel") == model.nv and angles.min() >= 0
        while known and isinstance(layer, gym.Wrapper):
            known, layer = not isinstance(layer, gym.ObservationWrapper), layer.env
        if not known:
            raise ConfigError(f"{self._name} has no observation_structure of angles and rates for encoders that fail")
        return angles, n_angles + self._dofs


def actuated_joints(model: Any, name: str) -> tuple[NDArray[np.int64], NDArray[np.bool_], FloatArray]:
    """Return the joint that each actuator drives (J,), whether it is a position servo (J,), and its largest torque (J,)
    [N m], inf where none is known. Raises ConfigError for actuators that faults are not defined for.
    """
    joints, gain, bias = model.actuator_trnid[:, 0], model.actuator_gainprm, model.actuator_biasprm
    is_fixed = model.actuator_gaintype == mujoco.mjtGain.mjGAIN_FIXED.value
    is_motor = model.actuator_biastype == mujoco.mjtBias.mjBIAS_NONE.value
    is_linear = is_fixed & (is_motor | (model.actuator_biastype == mujoco.mjtBias.mjBIAS_AFFINE.value))
    drives = np.isin(model.actuator_trntype, [mujoco.mjtTrn.mjTRN_JOINT.value, mujoco.mjtTrn.mjTRN_JOINTINPARENT.value])
    one_axis = model.jnt_type[joints * drives] >= mujoco.mjtJoint.mjJNT_SLIDE.value  # hinges come after slides
    if not (is_linear & drives & one_axis).all() or not 0 < joints.size == np.unique(joints).size:
        raise ConfigError(f"{name} has other actuators than linear ones, each of a hinge or slide of its own")
    limited = is_motor & model.actuator_ctrllimited.astype(bool)
    force = np.where(limited, np.abs(gain[:, 0]) * np.abs(model.actuator_ctrlrange).max(axis=1), np.inf)
    own = np.abs(model.actuator_forcerange).max(axis=1)
    torque = np.where(model.actuator_forcelimited, np.minimum(force, own), force) * np.abs(model.actuator_gear[:, 0])
    of_joint = np.abs(model.jnt_actfrcrange[joints]).max(axis=1)
    torque = np.where(model.jnt_actfrclimited[joints], np.minimum(torque, of_joint), torque)
    return joints, ~is_motor & (bias[:, 1] == -gain[:, 0]), torque
