"""Faults in MuJoCo envs of others: closed forms on small machines, and the bare env where nothing fails."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import gymnasium as gym
import mujoco
import numpy as np
import pytest
from gymnasium.envs.mujoco import MujocoEnv
from gymnasium.utils.env_checker import check_env
from numpy.typing import NDArray
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

from snake_gym import FaultInjection
from snake_gym.envs import SnakeEnv

FloatArray = NDArray[np.float64]
INERTIA, TORQUE, STEP_S = 0.5, 2.0, 0.01
MOTOR = f'<motor joint="a" gear="{TORQUE}" ctrlrange="-1 1"/>'
SERVO = '<position joint="a" kp="20" kv="4" forcerange="-3 3"/>'
WHEEL = f"""<mujoco><option integrator="RK4" timestep="{STEP_S / 4}" gravity="0 0 0"/><worldbody><body>
<joint name="a" type="hinge" axis="0 0 1"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 {INERTIA}"/>
</body></worldbody><actuator>%s</actuator></mujoco>"""
PENDULUM = WHEEL.replace('0 0 0"/><worldbody', '0 -9.81 0"/><worldbody').replace('pos="0 0 0"', 'pos="0.3 0 0"') % MOTOR
CARTS = """<mujoco><option integrator="%s" timestep="0.0025" gravity="0 0 0"/><worldbody><body>
<joint name="a" type="slide" axis="1 0 0"/><inertial pos="0 0 0" mass="3" diaginertia="1 1 1"/><body>
<joint name="b" type="slide" axis="1 0 0"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body></body>
</worldbody><actuator><motor joint="a" gear="8"/><motor joint="b" gear="8"/></actuator></mujoco>"""


class Machine(MujocoEnv):
    """Somebody's env: angles and rates as they are, from a given start."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def __init__(self, folder: Path, xml: str, rate: tuple[float, ...] = (0.0,)) -> None:
        (folder / "machine.xml").write_text(xml)
        self.rate, n = np.array(rate), len(rate)
        self.observation_structure = {"qpos": n, "qvel": n}
        box = gym.spaces.Box(-np.inf, np.inf, (2 * n,), np.float64)
        super().__init__(str(folder / "machine.xml"), 4, box)

    def reset_model(self) -> FloatArray:
        self.set_state(np.zeros(self.rate.size), self.rate)
        return self.state_vector()

    def step(self, action: Any) -> tuple[FloatArray, float, bool, bool, dict[str, Any]]:
        self.do_simulation(action, self.frame_skip)
        return self.state_vector(), 0.0, False, False, {}


def event(kind: str, joint: int = 1, **sizes: float) -> dict[str, Any]:
    return {"joint": joint, "kind": kind, **sizes}


def play(env: gym.Env[Any, Any], command: Any, time_s: float) -> FloatArray:
    """Return the observations (T + 1, D) of an episode under constant or given commands (T, A)."""
    n = round(time_s / STEP_S)
    size = env.action_space.shape[0]  # type: ignore[index]
    commands = np.broadcast_to(np.asarray(command, np.float64), (n, size))
    return np.array([env.reset(seed=0)[0], *(env.step(one)[0] for one in commands)])


def one_joint(folder: Path, fault: dict[str, Any], actuator: str = MOTOR, rate: float = 0.0, **given: Any) -> Any:
    return FaultInjection(Machine(folder, WHEEL % actuator, (rate,)), {"events": [fault]}, **given)


def test_each_kind_moves_one_joint_as_its_closed_form_says(tmp_path: Path) -> None:
    time = np.arange(201) * STEP_S
    seen = play(one_joint(tmp_path, event("free", onset_s=1.0, period_s=0.2, duty=0.5)), 1.0, 2.0)
    driven = np.minimum(time, 1.0) + np.sum([np.clip(time - on, 0.0, 0.1) for on in 1.1 + 0.2 * np.arange(5)], axis=0)
    np.testing.assert_allclose(seen[:, 1], TORQUE / INERTIA * driven, atol=1e-9)
    seen = play(one_joint(tmp_path, event("weak", strength=0.25, duration_s=1.0)), 1.0, 2.0)
    np.testing.assert_allclose(seen[:, 1], TORQUE / INERTIA * np.where(time < 1, 0.25 * time, time - 0.75), atol=1e-9)
    seen = play(one_joint(tmp_path, event("slow", strength=0.2), speed_limit_rad_s=5.0), 1.0, 2.0)
    np.testing.assert_allclose(seen[:, 1], 1.0 - np.exp(-TORQUE / INERTIA * time), atol=1e-6)
    seen = play(one_joint(tmp_path, event("rough", strength=0.4)), 0.3, 2.0)
    np.testing.assert_allclose(seen, 0.0, atol=5e-3)
    seen = play(one_joint(tmp_path, event("rough", strength=0.4)), 0.9, 2.0)
    np.testing.assert_allclose(seen[:, 1], 0.5 * TORQUE / INERTIA * time, rtol=1e-3, atol=1e-3)
    seen = play(one_joint(tmp_path, event("offset", offset_rad=0.3), SERVO), 0.5, 6.0)
    np.testing.assert_allclose(seen[-1], [0.8, 0.0], atol=1e-6)
    env = one_joint(tmp_path, event("misread", strength=0.3), SERVO)
    error = play(env, 0.5, 1.0)[-1, 0] - env.unwrapped.data.qpos[0]
    assert 0.0 < abs(error) < 0.3 and env.unwrapped.model.actuator_biasprm[0, 0] == pytest.approx(-20.0 * error)
    cool = -5.0 * np.log(1.0 - 0.5**2)  # a load of twice what it bears heats by 4 (1 - exp(-t / 5))
    seen = play(one_joint(tmp_path, event("overload", strength=0.5)), 1.0, 2.0)
    np.testing.assert_allclose(seen[-1, 1], TORQUE / INERTIA * cool, atol=2 * STEP_S * TORQUE / INERTIA)


def test_a_locked_joint_holds_against_weight_and_torque_and_comes_back(tmp_path: Path) -> None:
    fault = event("locked", onset_s=0.5, duration_s=59.5)
    seen = play(FaultInjection(Machine(tmp_path, PENDULUM), {"events": [fault]}), 1.0, 61.0)
    assert seen[49, 1] != 0.0
    np.testing.assert_allclose(seen[51:6001, 0], seen[50, 0], rtol=0.0, atol=1e-8)
    np.testing.assert_allclose(seen[51:6001, 1], 0.0, atol=1e-9)
    assert abs(seen[-1, 0] - seen[50, 0]) > 0.01


@pytest.mark.parametrize("integrator", ["Euler", "RK4", "implicitfast"])
def test_what_locks_in_motion_keeps_its_momentum_and_moves_as_one_body(integrator: str, tmp_path: Path) -> None:
    env = FaultInjection(Machine(tmp_path, CARTS % integrator, (1.0, 4.0)), {"events": [event("locked", 2)]})
    seen = play(env, [[0.5, 1.0]], 1.0)
    np.testing.assert_allclose(seen[:, 1], 0.0, atol=1e-9)
    time = np.arange(101) * STEP_S
    np.testing.assert_allclose(seen[1:, 2], (2.0 + time * 8.0 * 0.5 / 4.0)[1:], rtol=1e-9)


def test_a_silent_joint_keeps_its_command_and_reading_and_encoders_err(tmp_path: Path) -> None:
    commands = np.linspace(-1.0, 1.0, 100)[:, None]
    env = one_joint(tmp_path, event("silent", onset_s=0.3, duration_s=0.4))
    seen, bare = play(env, commands, 1.0), Machine(tmp_path, WHEEL % MOTOR)
    got = commands.copy()
    got[30:70] = commands[29]
    truth = play(bare, got, 1.0)
    truth[31:71] = truth[30]
    np.testing.assert_array_equal(seen, truth)
    biased = {"events": [{"joint": 1, "kind": "biased", "bias_rad": 0.2, "onset_s": 0.5}]}
    seen = play(FaultInjection(bare, {"n_max": 0}, biased), 0.0, 1.0)
    np.testing.assert_array_equal(seen[:, 0], np.where(np.arange(101) < 50, 0.0, 0.2))
    dead = {"events": [{"joint": 1, "kind": "dead", "onset_s": 0.5}]}
    seen = play(FaultInjection(Machine(tmp_path, WHEEL % MOTOR, (1.0,)), {"n_max": 0}, dead), 0.0, 1.0)
    step = np.arange(101)
    np.testing.assert_allclose(seen, np.stack([np.minimum(step, 49) / 100, step < 50], axis=1), atol=1e-12)


@pytest.mark.parametrize("name", ["Ant-v5", "HalfCheetah-v5", "Humanoid-v5", "Swimmer-v5"])
def test_without_faults_and_after_them_it_is_the_bare_env_to_the_last_bit(name: str) -> None:
    bare, broken = gym.make(name), FaultInjection(gym.make(name), {"n_min": 2, "n_max": 2, "kinds": ["locked", "weak"]})
    none, model = FaultInjection(gym.make(name), {"n_max": 0}), broken.unwrapped.model  # type: ignore[attr-defined]
    sound = np.zeros(mujoco.mj_sizeModel(model), np.uint8)
    mujoco.mj_saveModel(model, None, sound)
    for episode in range(2):
        want, got, _ = (env.reset(seed=episode)[0] for env in (bare, none, broken))
        np.testing.assert_array_equal(got, want)
        bare.action_space.seed(episode)
        for _ in range(20):
            action = bare.action_space.sample()
            want, got, failing = (env.step(action) for env in (bare, none, broken))
            np.testing.assert_array_equal(got[0], want[0])
            assert got[1:4] == want[1:4]
            np.testing.assert_equal(got[4], want[4] | {"n_failed_joints": 0, "n_faults": 0})
            assert failing[4]["n_failed_joints"] == 2 and np.isfinite(failing[0]).all()
    broken.faults = none.faults
    broken.reset(seed=0)
    after = np.zeros_like(sound)
    mujoco.mj_saveModel(model, None, after)
    np.testing.assert_array_equal(after, sound)


def test_the_same_seed_breaks_the_same_joints_as_in_our_envs() -> None:
    faults = {
        "n_min": 0, "n_max": 4, "kinds": ["locked", "weak", "free"], "onset_max_s": 0.5, "duration_s": 0.2,
        "duration_max_s": 1.0, "second_share": 0.5, "intermittent_share": 0.5, "period_max_s": 0.8, "jitter": 0.5,
    }  # fmt: skip
    env = FaultInjection(gym.make("Ant-v5"), {**faults, "reveal": True})
    ours = SnakeEnv(robot={"n_links": 9}, faults=faults)
    for seed in (3, None, 7):
        obs, info = env.reset(seed=seed)
        _, theirs = ours.reset(seed=seed)
        for slot, other in zip(env._slots, (ours.core.robot.faults, ours.core.robot.second_faults), strict=True):
            for name in ("kind", "onset_s", "end_s", "strength", "period_s", "key"):
                np.testing.assert_array_equal(getattr(slot, name), getattr(other, name))
        assert info["n_faults"] == theirs["n_faults"] and obs[-8:].sum() == info["n_failed_joints"]


@pytest.mark.filterwarnings("ignore:.*different from the unwrapped version", "ignore:.*infinity")
def test_checkers_vector_envs_and_learners_take_it() -> None:
    faults = {"n_min": 1, "reveal": True, "onset_max_s": 0.1}
    settings = {"faults": faults, "encoder_faults": {"n_max": 2, "kinds": ["noisy"]}}
    check_env(FaultInjection(gym.make("Swimmer-v5").unwrapped, **settings), skip_render_check=True)
    envs = gym.make_vec("Swimmer-v5", 2, wrappers=[lambda env: FaultInjection(env, **settings)])
    envs.reset(seed=0)
    _, _, _, _, infos = envs.step(envs.action_space.sample())
    assert infos["n_faults"].min() >= 1
    again = gym.make(envs.envs[0].spec)
    np.testing.assert_array_equal(again.reset(seed=1)[0], envs.reset(seed=0)[0][1])
    swimmers = make_vec_env("Swimmer-v5", 2, wrapper_class=FaultInjection, wrapper_kwargs=settings)
    PPO("MlpPolicy", swimmers, n_steps=16, batch_size=32, device="cpu").learn(64)


def test_in_the_example_each_kind_of_fault_takes_ant_another_way() -> None:
    main = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "faulty_ant.py"))["main"]
    found = main(["--episodes", "2", "--episode-steps", "60"])
    assert len({tuple(ways) for ways in found.values()}) == 6 and np.isfinite(list(found.values())).all()


@pytest.mark.parametrize(
    ("name", "settings", "fragment"),
    [
        ("Ant-v5", {"faults": {"kinds": ["offset"]}}, "no position servos"),
        ("Ant-v5", {"faults": {"kinds": ["loose"]}}, "no gears"),
        ("Ant-v5", {"faults": {"kinds": ["slow"]}}, "no speed limit"),
        ("Swimmer-v5", {"faults": {"kinds": ["slow"]}, "speed_limit_rad_s": 5.0}, "Runge-Kutta"),
        ("Reacher-v5", {"faults": {"kinds": ["silent"]}}, "observation_structure"),
        ("Ant-v5", {"faults": {"joints": [9]}}, "1 to 8"),
        ("CartPole-v1", {}, "no MuJoCo model"),
    ],
)  # fmt: skip
def test_what_an_actuator_cannot_have_is_refused(name: str, settings: dict[str, Any], fragment: str) -> None:
    with pytest.raises(ValueError, match=fragment):
        FaultInjection(gym.make(name), **settings)
