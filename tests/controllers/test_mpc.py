"""Model-predictive control: its plans, the model behind them, and the oracle made of the same parts."""

from __future__ import annotations

import numpy as np
import pytest

from snake_gym.benchmark.oracle import oracle_entrant
from snake_gym.benchmark.runner import play, roll
from snake_gym.benchmark.scenarios import BenchmarkConfig, Entrant, Scenarios, make_scenarios
from snake_gym.config import build
from snake_gym.controllers import make_controller
from snake_gym.controllers.noise import begin_noise, initial_noise
from snake_gym.controllers.plans import PlanConfig, Planner, Worth
from snake_gym.controllers.speed_hold import PACE
from snake_gym.interface.policy import ZeroResidual, controller_action
from tests.controllers.worlds import SPEC, random_world

FAULTS = {"n_min": 2, "n_max": 2, "kinds": ["locked"]}


def scenarios(episodes: int = 3, env_id: str = "SnakeGym/Waypoints-v0", **env: object) -> Scenarios:
    settings = {"env_id": env_id, "episodes": episodes, "env": {"time_limit_s": 8.0, **env}}
    return make_scenarios(build(BenchmarkConfig, settings, "benchmark"))


def classical(**settings: object) -> Entrant:
    action = {"action": controller_action(settings)}
    return Entrant(str(settings["kind"]), "classical", action, lambda env: ZeroResidual(env.core.decoder.size), {})


def planner_state(config: PlanConfig, n_worlds: int = 2) -> tuple[Planner, dict[str, np.ndarray]]:
    planner = Planner(config, SPEC)
    state = {**planner.initial_state(n_worlds, 0.5, 5.0, 0.4), **initial_noise(n_worlds)}
    begin_noise(state, *random_world(n_worlds))
    return planner, state


def test_the_mean_of_equal_plans_weighted_by_worth_is_found() -> None:
    """Worth that is linear in the frequency moves it up by spread^2 / temperature, the tilt of a normal density."""
    planner, state = planner_state(PlanConfig(samples=1000, reversed_share=0.0, frequency_spread_rad_s=0.2))
    plans = planner.draw(state)
    planner.improve(state, plans, 0.02 * 2.0 * plans.frequency)
    np.testing.assert_allclose(state["plan_frequency"], 5.0 + 2.0 * 0.2**2, atol=0.04)


def test_a_plan_that_turns_the_gait_round_is_taken_only_where_it_is_better() -> None:
    planner, state = planner_state(PlanConfig())
    plans = planner.draw(state)
    worth = np.zeros(plans.frequency.shape)
    worth[1, -3] = 0.1
    planner.improve(state, plans, worth)
    assert state["plan_frequency"][0] > 0.0 > state["plan_frequency"][1]
    assert state["plan_frequency"][1] == plans.frequency[1, -3]


def test_following_a_plan_step_by_step_gives_the_plan() -> None:
    planner, state = planner_state(PlanConfig())
    state["plan_offset"][:, 1] = 0.3
    now, pace = planner.draw(state), np.array([1.0, 0.4])
    expected = [planner.reference(now, {"phase": state["phase"].copy()}, step, pace)[:, 0] for step in range(2)]
    np.testing.assert_allclose([planner.follow(state, pace) for _ in range(2)], expected, atol=1e-12)


def test_plans_are_judged_at_the_pace_at_which_the_clock_is_held() -> None:
    """Plans that differ in their frequency alone are all the same motion where the clock stands still."""
    spreads = dict.fromkeys(
        ("amplitude_spread_rad", "phase_spread_rad", "shift_spread_rad", "offset_spread_rad", "turn_spread_rad"), 0.0
    )
    plan = {"samples": 16, "temperature_m": 1e-9, "reversed_share": 0.0, "frequency_spread_rad_s": 0.5, **spreads}
    controller, world, found = make_controller({"kind": "mpc", **plan}, SPEC), random_world(2), {}
    for pace in (0.0, 1.0, -1.0):
        state = controller.initial_state(2) | {PACE: np.full(2, pace)}
        drawn = {name: values.copy() for name, values in state.items()}
        begin_noise(drawn, *world)
        frequency = controller.planner.draw(drawn).frequency
        controller.command(*world, state, 0.2)
        found[pace] = state["plan_frequency"]
    np.testing.assert_allclose(found[0.0], frequency.mean(axis=1))
    assert (np.abs(frequency - found[1.0][:, None]).min(axis=1) < 1e-6).all(), "the best one"
    np.testing.assert_array_equal(found[-1.0], found[1.0])


def test_worth_counts_the_way_to_the_target_and_the_time_after_it() -> None:
    planner, state = planner_state(PlanConfig(samples=4, heading_m=0.0, speed_m_s=0.5), 1)
    worth = Worth(planner, planner.draw(state))
    for step in range(planner.n_steps):
        worth.add(np.full(4, 0.01), np.arange(4) + 5 == step, next_is_hidden=True)
    total = worth.total(np.zeros(4), np.ones((4, 2)))[0]
    reached_in = np.arange(4) + 6
    np.testing.assert_allclose(total, 0.01 * reached_in + 0.5 * 0.2 * (planner.n_steps - reached_in))


@pytest.mark.parametrize("name", ["onset_s", "duration_s"])
def test_only_some_oracles_know_when_faults_come_and_end_and_the_controller_does_not(name: str) -> None:
    for who, knows in (("oracle_next", True), ("oracle_now", False), ("mpc", False)):
        shapes = []
        for value in (0.6, 50.0):  # after the first step, which the two scenarios share; within the horizon or not
            here = scenarios(1, faults={"events": [{"joint": 4, "kind": "locked", name: value}]})
            settings = {"samples": 64}
            entrant = classical(kind="mpc", **settings) if who == "mpc" else oracle_entrant(who, here, **settings)
            env = here.make_env(entrant)
            played = roll(entrant.make_policy(env), env, 0)
            next(played), next(played)
            shapes.append(env.core.robot.joint_angle())
        assert (np.abs(shapes[0] - shapes[1]).max() > 1e-6) == knows, who


def test_an_oracle_in_a_batch_plays_like_alone_and_again() -> None:
    here = scenarios(time_limit_s=1.0, faults=FAULTS)
    entrant = oracle_entrant("oracle_next", here, samples=8)
    together = play(entrant, here).columns["progress_m"]
    np.testing.assert_array_equal(play(entrant, here, rows=[1]).columns["progress_m"], together[1:2])
