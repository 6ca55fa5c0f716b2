"""The search for settings of a training: its ranges, what it makes of evaluations, and what is left after a kill."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from snake_gym.agents import search
from snake_gym.agents.run_folder import RunFolder
from snake_gym.agents.search_space import NumberRange, read_space

from snake_gym.config import ConfigError, load_yaml
from tests.agents.test_seeds import ROOT, start, trainings, wait_for, wait_for_none, write_config

SPACE = """
algorithm.learning_rate: {low: 1e-5, high: 1e-2, log: true}
algorithm.n_epochs: {low: 1, high: 3}
algorithm.network.net_arch: {choices: [[8], [16]]}
"""


@pytest.mark.check
def test_ranges_are_read(tmp_path: Path) -> None:
    (tmp_path / "space.yaml").write_text(SPACE)
    space = read_space(tmp_path / "space.yaml")
    assert space["algorithm.learning_rate"] == NumberRange(1e-5, 1e-2, log=True)
    assert space["algorithm.n_epochs"].ends == (1, 3)
    assert space["algorithm.network.net_arch"].ends == ([8], [16])


@pytest.mark.check
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: {low: 2, high: 1}", "a.low is 2, high is 1; expected low < high"),
        ("a: {low: 0, high: 1, log: true}", "a.low is 0; expected > 0 with log"),
        ("a: {low: 1}", "a.high is missing"),
        ("a: {low: 1, hihg: 2}", "hihg is not a setting; did you mean 'high'"),
        ("a: {choices: [1]}", "choices is .*; expected two different values"),
        ("a: {choices: [1, 1]}", "expected two different values"),
        ("a: 3", "a is 3; expected {low"),
        ("run_dir: {choices: [a, b]}", "run_dir cannot be searched"),
        ("eval.episodes: {low: 1, high: 3}", "eval.episodes cannot be searched"),
        ("env_id: {choices: [a, b]}", "env_id cannot be searched"),
        ("env.faults.n_max: {low: 1, high: 3}", "env.faults.n_max cannot be searched"),
        ("env.robot: {choices: [a, b]}", "env.robot cannot be searched"),
        ("{}", "has no ranges"),
    ],
)
def test_wrong_ranges_are_one_line(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "space.yaml").write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_space(tmp_path / "space.yaml")


class Searched:
    """A search without its processes: the test plays their part."""

    def __init__(self, folder: Path, *words: str, space: str = SPACE) -> None:
        pytest.importorskip("optuna")
        from snake_gym.agents.search_trials import Search

        (folder / "space.yaml").write_text(space)
        files = ["--config", str(write_config(folder / "small.yaml")), "--space", str(folder / "space.yaml")]
        self.words = [*files, "--out", str(folder / "out"), "--trials", "9", *words]
        self.search = Search(search.parse(self.words))

    def play(self, job: Any, *values: float, code: int = 0) -> bool:
        """The job makes these evaluations one after the other; True if it is stopped on the way."""
        for number, value in enumerate(values, start=1):
            RunFolder(job.folder).note_evaluation(2048 * number, {"return": value, "energy_j": value, "length": 1.0})
            if self.search.is_unwanted(job):
                self.search.end(job, 130)
                return True
        self.search.end(job, code)
        return False


@pytest.mark.parametrize(
    ("space", "words", "message"),
    [
        ("algorithm.learning_rat: {low: 1, high: 2}", (), "learning_rat with the value 1: .*did you mean"),
        ("algorithm.gamma: {low: 0.9, high: 1.5}", (), "gamma with the value 1.5"),
        ("env.reward.progress: {low: 1, high: 2}", (), "env.reward.progress changes what return means"),
        (SPACE, ("--trials", "0"), "--trials is 0; expected at least 1"),
        (SPACE, ("--objective", "energy_j"), "--objective is 'energy_j', of which less is better; expected --minimise"),
        (SPACE, ("--objective", "regret_share"), "'regret_share', of which less is better"),
    ],
)
def test_a_wrong_search_is_refused_before_a_trial(
    space: str, words: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=message):
        Searched(tmp_path, *words, space=space)
    assert not (tmp_path / "out").exists()


def test_trials_are_pruned_finished_and_failed_by_their_evaluations(tmp_path: Path) -> None:
    searched = Searched(tmp_path)
    jobs = searched.search.jobs()
    for value in range(5):
        assert not searched.play(next(jobs), value, value, value, value)
    assert searched.play(next(jobs), 1.0, 1.0, 9.0, 9.0), "worse than the median, 2, at its first evaluation"
    assert not searched.play(next(jobs), 3.0, 3.0, 3.0, 0.5), "the last evaluation ends a trial, it stops none"
    failing = next(jobs)
    failing.log.parent.mkdir(parents=True, exist_ok=True)
    failing.log.write_text("error: it diverged\n")
    searched.play(failing, code=2)
    states = [trial.state.name for trial in searched.search.study.trials()]
    assert states == ["COMPLETE"] * 5 + ["PRUNED", "COMPLETE", "FAIL"]
    assert searched.search.study.trials()[6].value == 0.5
    assert searched.search.study.trials()[7].user_attrs["reason"] == "it diverged"
    assert searched.search.report(finished=True) == 0
    best = searched.search.study.values(searched.search.study.trials()[4])
    assert load_yaml(tmp_path / "out" / "best.yaml")["algorithm"]["learning_rate"] == best["algorithm.learning_rate"]


def test_without_a_given_period_every_evaluation_counts(tmp_path: Path) -> None:
    searched = Searched(tmp_path, "--set", "eval.every_steps=null")
    jobs = searched.search.jobs()
    for _ in range(5):
        assert not searched.play(next(jobs), 0.0, 5.0, 5.0, 5.0)
    assert searched.play(next(jobs), 0.0, 1.0, 9.0, 9.0), "as good as the others at first, worse at the second"


def test_what_is_to_be_small_is_minimised(tmp_path: Path) -> None:
    searched = Searched(tmp_path, "--objective", "energy_j", "--minimise")
    jobs = searched.search.jobs()
    for value in range(5):
        assert not searched.play(next(jobs), value, value, value, value)
    assert searched.play(next(jobs), 3.0, 3.0, 0.0, 0.0), "worse than the median, 2"
    assert searched.search.report(finished=True) == 0
    best = searched.search.study.values(searched.search.study.trials()[0])
    assert load_yaml(tmp_path / "out" / "best.yaml")["algorithm"]["learning_rate"] == best["algorithm.learning_rate"]


def test_a_trial_that_somebody_stopped_is_left_and_one_without_a_value_has_failed(tmp_path: Path) -> None:
    searched = Searched(tmp_path)
    jobs = searched.search.jobs()
    searched.play(next(jobs), 1.0)
    searched.play(next(jobs), float("nan"))
    assert searched.search.report(finished=True) == 0
    assert searched.search.study.trials()[1].user_attrs["reason"] == "return is nan"
    searched.play(next(jobs), 1.0, code=130)
    assert searched.search.report(finished=True) == 1


def test_two_searches_do_not_work_in_one_folder(tmp_path: Path) -> None:
    searched = Searched(tmp_path)
    with searched.search.lock(), pytest.raises(ConfigError, match="out is in use: another process"):
        search.main([*searched.words, "--quiet"])
    assert not (tmp_path / "out" / "study.db").exists()


def test_trials_draw_nothing_and_play_no_gaits_that_do_not_count(tmp_path: Path) -> None:
    plain = next(Searched(tmp_path).search.jobs()).arguments
    assert {"eval.pictures=false", "eval.references=false"} <= set(plain)
    (tmp_path / "b").mkdir()
    of_regret = next(Searched(tmp_path / "b", "--objective", "regret", "--minimise").search.jobs()).arguments
    assert "eval.references=false" not in of_regret


def test_a_search_that_was_killed_suggests_what_it_would_have_suggested(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    whole = Searched(tmp_path / "a")
    for value, job in enumerate(whole.search.jobs()):
        whole.play(job, *[float(value % 4)] * 4)
    for value in range(9):  # each launch is lost after it began a trial
        lost = Searched(tmp_path / "b")
        begun = next(lost.search.jobs())
        again = Searched(tmp_path / "b")
        job = next(again.search.jobs())
        assert job == begun
        again.play(job, *[float(value % 4)] * 4)
    one, two = (each.search.study.trials() for each in (whole, again))
    assert [(trial.params, trial.value, trial.state) for trial in one] == [
        (trial.params, trial.value, trial.state) for trial in two
    ]
    assert len(one) == 9


def test_another_search_in_the_folder_is_refused_but_a_mistyped_objective_is_mended(tmp_path: Path) -> None:
    searched = Searched(tmp_path, "--objective", "retrun")
    with pytest.raises(ConfigError, match=r"--objective is 'retrun'; .*did you mean 'return'"):
        searched.play(next(searched.search.jobs()), 1.0)
    searched = Searched(tmp_path)
    searched.play(next(searched.search.jobs()), 1.0)
    for words, changed in (
        (("--objective", "length"), "objective"), (("--set", "algorithm.gamma=0.5"), r"config\.algorithm\.gamma"),
        (("--minimise",), "minimise"),
    ):  # fmt: skip
        with pytest.raises(ConfigError, match=f"holds a search with another {changed}; choose another --out"):
            next(Searched(tmp_path, *words).search.jobs())


def test_the_study_holds_nothing_that_is_unpickled_and_a_broken_one_is_refused(tmp_path: Path) -> None:
    searched = Searched(tmp_path)
    searched.play(next(searched.search.jobs()), 1.0)
    with sqlite3.connect(tmp_path / "out" / "study.db") as database:
        dump = "\n".join(database.iterdump())
    assert "X'80" not in dump.upper(), "no blob begins like a pickle"
    (tmp_path / "out" / "study.db").write_bytes(b"no database" * 1000)
    with pytest.raises(ConfigError, match=r"study\.db is no study"):
        next(Searched(tmp_path).search.jobs())


@pytest.mark.slow
def test_a_killed_search_goes_on_with_its_trials(tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    (tmp_path / "space.yaml").write_text(SPACE)
    out = tmp_path / "out"
    command = [
        sys.executable, "-m", "snake_gym.agents.search", "--config", str(write_config(tmp_path / "small.yaml", 4096)),
        "--space", str(tmp_path / "space.yaml"), "--out", str(out), "--trials", "2", "--jobs", "1", "--quiet",
    ]  # fmt: skip
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    wait_for(lambda: len(list((out / "trial_0000").glob("checkpoints/step_*"))) > 1, process)
    process.kill()
    process.communicate()
    wait_for_none(out)
    assert not trainings(out)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    first, second = RunFolder(out / "trial_0000").launches()
    assert (first.get("to_step"), second["from_step"] > 0) == (None, True)
    run = start("--config", str(out / "best.yaml"), "--run-dir", str(tmp_path / "best"), "--quiet")
    assert run.communicate() and run.returncode == 0
    assert "best trials by return" in done.stdout


def test_the_shipped_ranges_fit_the_shipped_training(tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    from snake_gym.agents.search_trials import Search

    files = ["--config", str(ROOT / "configs/train/ppo.yaml"), "--space", str(ROOT / "configs/search/ppo.yaml")]
    assert Search(search.parse([*files, "--out", str(tmp_path / "out")])).threads == 1
