"""Results of somebody else: rows are played again and compared, several results stand in one table."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from snake_gym.benchmark import evaluate, others_results
from snake_gym.benchmark.report import summarise
from snake_gym.config import ConfigError, dump_yaml, find_config, load_yaml
from tests.agents.runs import untrained

ENV = {"time_limit_s": 4.0, "faults": {"n_max": 2}}
ACTION = {"kind": "residual", "controller": {"kind": "sjc", "amplitude_rad": 0.5, "frequency_rad_s": 4.0}}


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with somebody's policy and results, ``results``, and nothing of what he started from but the policy."""
    root = tmp_path_factory.mktemp("theirs")
    policy = untrained(root / "policy", {**ENV, "action": ACTION})
    for kind in ("sjc", "cc"):
        dump_yaml({"controller": {"kind": kind, "amplitude_rad": 0.5, "frequency_rad_s": 4.0}}, root / f"{kind}.yaml")
    controllers = f"sjc={root}/sjc.yaml,cc={root}/cc.yaml"
    evaluate.main(["--policy", f"mine={policy}", "--controllers", controllers, "--episodes", "12", "--set",
                   "resamples=200", "--no-pictures", "--out", str(root / "results")])  # fmt: skip
    for kind in ("sjc", "cc"):
        (root / f"{kind}.yaml").unlink()
    return root


@pytest.fixture
def results(theirs: Path, tmp_path: Path) -> Path:
    """A copy of the results that may be changed."""
    return Path(shutil.copytree(theirs / "results", tmp_path / "results"))


def check(results: Path, *options: str) -> int:
    return evaluate.main(["--check", str(results), *options])


def edit_rows(results: Path, change: Callable[[dict[str, str]], Any]) -> None:
    with (results / "episodes.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        change(row)
    with (results / "episodes.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)


def without(results: Path, *columns: str) -> None:
    """Take columns out of the rows."""
    edit_rows(results, lambda row: [row.pop(column) for column in columns])


def resummarise(results: Path, left_out: str = "") -> None:
    """Write the numbers that follow from the rows, as a forger would, without the policy ``left_out``."""
    edit_results(results, lambda content: content["policies"].pop(left_out, None))
    lines = (results / "episodes.csv").read_text().splitlines(keepends=True)
    (results / "episodes.csv").write_text("".join(line for line in lines if not line.startswith(f"{left_out},")))
    told = json.loads((results / "results.json").read_text())
    rows = others_results.read_rows(results / "episodes.csv")
    found = [others_results._episodes(name, policy["kind"], told["score"], rows[name])
             for name, policy in told["policies"].items()]  # fmt: skip
    made = summarise(found, told["config"]["resamples"], (), told["weight_n"])
    policies = {name: {**policy, **made["policies"][name]} for name, policy in told["policies"].items()}
    (results / "results.json").write_text(json.dumps({**told, **made, "policies": policies}))


def edit_results(results: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    content = json.loads((results / "results.json").read_text())
    change(content)
    (results / "results.json").write_text(json.dumps(content))


def narrow(bounds: list[float]) -> None:
    """Shrink an interval about its middle to a tenth of its width."""
    middle, half = 0.5 * (bounds[0] + bounds[1]), 0.05 * (bounds[1] - bounds[0])
    bounds[:] = middle - half, middle + half


def test_rows_of_policies_and_controllers_are_equal(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(results, "--rows", "3") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "9 of 9 rows are equal"
    assert len([line for line in lines if line.startswith("mine seed 1000") and line.endswith(": equal")]) == 3
    assert not any(line.startswith("note") for line in lines)


def test_a_row_that_was_changed_is_found(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def better(row: dict[str, str]) -> None:
        if row["policy"] == "mine" and row["seed"] == "1000004":
            row["progress_m"] = str(float(row["progress_m"]) + 0.05)

    edit_rows(results, better)
    assert check(results, "--rows", "12") == 1
    text = capsys.readouterr().out
    assert "mine seed 1000004: not equal, here in brackets: progress_m " in text
    assert "35 of 36 rows are equal" in text
    assert "wrong: mine.mean is" in text


def test_numbers_that_do_not_follow_from_the_rows_are_found(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit_results(results, lambda content: content["policies"]["cc"].update(mean=9.0))
    edit_rows(results, lambda row: row.update(seed="5") if row["seed"] == "1000003" else None)
    assert check(results, "--rows", "12") == 1
    text = capsys.readouterr().out
    assert "wrong: cc.mean is 9.0 in results.json, " in text
    assert "cc seed 5: not equal, here in brackets: its seed is none of 1000000 to 1000011" in text
    assert "wrong: cc has seed 1000003 0 times; expected 12 seeds from 1000000 on, once each" in text


def test_rows_that_stand_in_the_place_of_others_are_found(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The worst half of an entrant's rows replaced by its best: each plays as told, and all numbers follow."""
    with (results / "episodes.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    mine = sorted((row for row in rows if row["policy"] == "mine"), key=lambda row: float(row["progress_m"]))
    better = {id(bad): good for bad, good in zip(mine[:6], mine[6:], strict=True)}
    with (results / "episodes.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(better.get(id(row), row) for row in rows)
    theirs = others_results.read_results(results)
    found = [others_results._episodes(name, policy["kind"], theirs.summary["score"], theirs.rows[name])
             for name, policy in theirs.summary["policies"].items()]  # fmt: skip
    forged = summarise(found, 200)
    edit_results(results, lambda content: content.update(
        forged | {"policies": {k: v | forged["policies"][k] for k, v in content["policies"].items()}}
    ))  # fmt: skip
    assert check(results, "--rows", "12") == 1
    text = capsys.readouterr().out
    assert "36 of 36 rows are equal" in text
    assert "wrong: mine has seed" in text and "wrong: mine.mean" not in text


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda content: content["policies"]["mine"].update(ci95=[9.0, 9.5]), "mine.ci95 is [9.0, 9.5]"),
        (lambda content: narrow(content["policies"]["mine"]["ci95"]), "mine.ci95 is ["),
        (lambda content: narrow(content["policies"]["mine"]["lead_ci95"]), "mine.lead_ci95 is ["),
        (lambda content: content["policies"]["mine"].update(success=0.9), "mine.success is 0.9"),
        (lambda content: content["policies"]["mine"].update(energy_j=1.0), "mine.energy_j is 1.0"),
        (lambda content: content["policies"]["mine"]["by_faults"]["0"].update(mean=7.0), "mine.by_faults.0.mean is 7"),
        (lambda content: content["policies"]["mine"].update(ratio=3.0, lead=2.0), "mine.ratio is 3.0"),
        (lambda content: content.update(ahead=1.0), "ahead is 1.0"),
        (lambda content: content.update(best_classical="zero"), "best_classical is 'zero'"),
    ],
)
def test_every_number_of_a_summary_follows_from_the_rows(
    change: Callable[[Any], Any], told: str, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit_results(results, change)
    assert check(results, "--rows", "1") == 1
    assert f"wrong: {told}" in capsys.readouterr().out
    assert evaluate.main(["--table", str(results)]) == 0
    assert told in capsys.readouterr().out.replace("\n", " ")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda content: content["policies"]["mine"]["by_faults"].update({"4": {"mean": 9.0}}), "has mine.by_faults.4"),
        (lambda content: content["policies"]["mine"].update(route_share=1.0), "has mine.route_share that"),
        (lambda content: content["policies"]["mine"]["against"].update(sota={}), "has mine.against.sota that"),
        (lambda content: content["policies"]["mine"].update(training_names=["best"]), "has mine.training_names that"),
        (lambda content: content["policies"]["mine"].update(controller={}), "has mine.controller that"),
        (lambda content: content["policies"]["cc"].update(reveal=True), "has cc.reveal that"),
        (lambda content: content["policies"]["mine"].pop("iqm"), "results.json lacks mine.iqm: another version"),
        (lambda content: content.pop("notes"), "results.json lacks notes: another version"),
        (lambda content: content.update(sota=1.0), "has sota that"),
        (lambda content: content["config"].update(sota=1.0), "its config has sota that this version would not write"),
        (lambda content: content["config"].pop("variants"), "its config lacks variants: another version"),
        (lambda content: content["definitions"].update(mean="in km"), "its definitions of mean are not those of"),
        (lambda content: content["seeds"].update(first=0), "seeds.first is 0 in results.json"),
        (lambda content: content["policies"]["cc"].update(kind="reference"), "its policies are mine (learned), sjc"),
    ],
)
def test_what_this_version_would_not_have_written_is_found(
    change: Callable[[Any], Any], told: str, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit_results(results, change)
    assert check(results, "--rows", "1") == 1
    wrong = [line for line in capsys.readouterr().out.splitlines() if line.startswith("wrong: ")]
    assert told in wrong[0] and (len(wrong) == 1 or "reference" in wrong[0])


def test_a_step_check_that_was_invented_and_notes_that_were_removed_are_found(
    theirs: Path, results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = {"scenarios": 12, "step_s": 0.005, "mean": 1.5, "mean_at_half": 1.5, "largest_difference_m": 0.0}
    edit_results(results, lambda content: content["policies"]["sjc"].update(step_check=made))
    assert check(results, "--rows", "1") == 1
    text = capsys.readouterr().out
    assert "wrong: sjc.step_check.mean_at_half is 1.5 in results.json, " in text
    edit_results(results, lambda content: content["policies"]["sjc"].update(step_check={"largest": 0.0}))
    assert check(results, "--rows", "1") == 1
    assert "wrong: sjc.step_check.largest is 0.0 in results.json, nothing here" in capsys.readouterr().out
    out = tmp_path / "checked"
    evaluate.main(["--policy", f"mine={theirs}/policy", "--controllers", "none", "--episodes", "4", "--no-pictures",
                   "--set", "resamples=100", "env.time_limit_s=2", "seed=1", "--check-step", "--out",
                   str(out)])  # fmt: skip
    capsys.readouterr()
    assert check(out, "--rows", "1") == 0
    edit_results(out, lambda content: content.update(notes=[]))
    assert check(out, "--rows", "1") == 1
    text = capsys.readouterr().out
    for note in ("'seeds 1 to 4 are among", "'mine: trained in other scenarios: ", "'mine: at half the physics step"):
        assert f"wrong: results.json has no note {note}" in text


def test_variants_and_oracles_are_checked_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = load_yaml(find_config(Path("configs/benchmark/resilience.yaml")))
    dump_yaml({**config, "scenarios": None}, tmp_path / "benchmark.yaml")
    evaluate.main(["--config", str(tmp_path / "benchmark.yaml"), "--classical-only", "--controllers", "cc,oracle_next",
                   "--episodes", "3", "--set", "resamples=100", "env.time_limit_s=2", "--no-pictures", "--out",
                   str(tmp_path / "out")])  # fmt: skip
    kinds = [
        policy["kind"] for policy in json.loads((tmp_path / "out" / "results.json").read_text())["policies"].values()
    ]
    assert {"oracle", "reference"} < set(kinds)
    capsys.readouterr()
    assert check(tmp_path / "out", "--rows", "2") == 0
    assert f"{2 * len(kinds)} of {2 * len(kinds)} rows are equal" in capsys.readouterr().out


@pytest.mark.parametrize("left_out", ["sjc", "cc", "mine"])
def test_a_policy_that_was_left_out_is_missed(left_out: str, results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    resummarise(results)
    assert check(results, "--rows", "1") == 0
    resummarise(results, left_out)
    capsys.readouterr()
    assert check(results, "--rows", "1") == 1
    of_settings = "mine (learned), sjc (classical), cc (classical) by its settings"
    wrong = [line for line in capsys.readouterr().out.splitlines() if line.startswith("wrong: ")]
    assert len(wrong) == 1 and wrong[0].endswith(of_settings)
    evaluate.main(["--table", str(results)])
    assert of_settings in capsys.readouterr().out


def test_a_controller_that_is_called_learned_is_found(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    edit_results(results, lambda content: content["policies"]["cc"].update(kind="learned"))
    assert check(results, "--rows", "1") == 1
    told = "cc (learned) in results.json, mine (learned), sjc (classical), cc (classical) by its settings"
    assert told in capsys.readouterr().out


def test_rows_of_a_policy_without_results_are_found(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = (results / "episodes.csv").read_text().splitlines()
    more = [line.replace("cc,", "hidden,", 1) for line in lines if line.startswith("cc,")]
    (results / "episodes.csv").write_text("\n".join([*lines, *more, ""]))
    assert check(results, "--rows", "1") == 1
    assert "wrong: episodes.csv has rows of hidden, which results.json does not have" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        (["targets_reached"], "has mine.targets, mine.targets_ci95, "),
        (["time_to_first_target_s"], "has mine.time_to_target_s, "),
        (["return"], "return no column ("),
        (["kind"], "mine has rows of another kind or episode"),
        (["episode"], "mine has rows of another kind or episode"),
    ],
)
def test_columns_that_were_removed_are_missed(
    columns: list[str], told: str, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    without(results, *columns)
    assert check(results, "--rows", "1") == 1
    assert told in capsys.readouterr().out
    if told.startswith("has"):
        evaluate.main(["--table", str(results)])
        assert told in capsys.readouterr().out


def test_rows_of_another_kind_or_number_are_found(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit_rows(results, lambda row: row.update(kind="classical") if row["policy"] == "mine" else None)
    edit_rows(results, lambda row: row.update(episode="7") if row["policy"] == "cc" else None)
    assert check(results, "--rows", "1") == 1
    text = capsys.readouterr().out
    for name in ("mine", "cc"):
        assert f"wrong: {name} has rows of another kind or episode" in text


def test_scores_that_are_all_a_little_better_get_a_note(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def better(row: dict[str, str]) -> None:
        progress = float(row["progress_m"])
        row["progress_m"] = repr(progress + 9e-4 * abs(progress))

    edit_rows(results, better)
    resummarise(results)
    check(results, "--rows", "12")
    text = capsys.readouterr().out
    assert "36 of 36 rows are equal" in text and "note: sjc: every score told is above the one found, by " in text


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda config: config.update(seed=5), "config.seed is 5 in results.json, 1000000 by its config.yaml"),
        (lambda config: config["env"]["faults"].update(n_max=1), "config.env.faults.n_max is 1 in results.json, 2 by"),
        (lambda config: config["env"].update(robot="muscle"), "config.env.robot is 'muscle' in results.json"),
    ],
)
def test_settings_in_the_results_are_those_of_the_scenarios(
    change: Callable[[Any], Any], told: str, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit_results(results, lambda content: change(content["config"]))
    assert check(results, "--rows", "1") == 1
    assert f"wrong: {told}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: content["policies"]["mine"].update(kind="best"), "policies.mine.kind is 'best'"),
        (lambda content: content["policies"]["mine"].pop("kind"), "policies.mine.kind is null"),
        (lambda content: content["policies"]["mine"].update(kind="classical"), "policies.mine has no controller"),
        (lambda content: content["policies"]["cc"].update(controller="x"), "policies.cc.controller is 'x'"),
        (lambda content: content["policies"].update(mine=None), "policies.mine is null"),
        (lambda content: content.update(policies=["mine"]), "policies is .*; expected"),
        (lambda content: content["config"].update(resamples="many"), "config.resamples is 'many'"),
        (lambda content: content["config"].pop("resamples"), "config.resamples is null"),
        (lambda content: content.update(versions="x"), "versions is 'x'"),
        (lambda content: content.update(notes=3), "notes is 3"),
        (lambda content: content.update(definitions=["x"]), "definitions is .*; expected"),
        (lambda content: content["config"].update(controllers=3), "config: controllers is 3|config.controllers is 3"),
        (lambda content: content.update(score=3), "score is 3"),
        (lambda content: content.update(score="progres_m"), "the score 'progres_m'; expected a column"),
    ],
)
def test_results_of_another_form_are_named_in_one_line(
    change: Callable[[Any], Any], message: str, results: Path
) -> None:
    edit_results(results, change)
    for option in ("--check", "--table"):
        with pytest.raises(ConfigError, match=message) as caught:
            evaluate.main([option, str(results)])
        assert "\n" not in str(caught.value)


def test_other_scenarios_code_and_rows_are_noted(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = load_yaml(results / "config.yaml")
    content["env"]["time_limit_s"] = 2.0
    dump_yaml(content, results / "config.yaml")
    edit_results(
        results, lambda content: content.update(code="0") or content["versions"].update(numpy="1.0", snake_gym="0")
    )
    text = (results / "episodes.csv").read_text()
    (results / "episodes.csv").write_text("\n".join(text.splitlines()[:-1]) + "\n")
    assert check(results) == 1
    notes = "".join(line for line in capsys.readouterr().out.splitlines() if line.startswith(("note", "wrong")))
    for note in ("does not have the scenarios of its results.json", "another version of the code", "numpy 1.0 (",
                 "snake_gym 0 (", "has 11 rows; expected 12"):  # fmt: skip
        assert note in notes


@pytest.mark.parametrize("score", ["energy_j", "is_success"])
def test_another_score_than_the_task_s_is_found(
    score: str, results: Path, theirs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit_results(results, lambda content: content.update(score=score))
    resummarise(results)
    assert check(results, "--rows", "1") == 1
    assert f"its score is {score}; SnakeGym/Waypoints-v0 is scored by progress_m" in capsys.readouterr().out
    with pytest.raises(ConfigError, match=f"is scored by {score}, .* by progress_m; expected one score"):
        evaluate.main(["--table", str(results), str(theirs / "results")])


def test_text_that_commands_a_terminal_is_refused(results: Path) -> None:
    edit_results(results, lambda content: content["notes"].append("\x1b[2Jall is well"))
    with pytest.raises(ConfigError, match="has control characters in its text"):
        check(results)


def test_names_are_no_markup(theirs: Path, tmp_path: Path) -> None:
    evaluate.main(["--policy", f"[/red]={theirs}/policy", "--controllers", "none", "--episodes", "4", "--set",
                   "resamples=200", "--no-pictures", "--out", f"{tmp_path}/out"])  # fmt: skip
    assert "[/red]" in json.loads((tmp_path / "out" / "results.json").read_text())["policies"]


def test_numbers_that_are_text_are_found(results: Path, theirs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit_results(results, lambda content: content["policies"]["mine"].update(mean=str(1.0)))
    assert check(results, "--rows", "1") == 1
    assert "mine.mean is '1.0' in results.json" in capsys.readouterr().out
    with pytest.raises(ConfigError, match=r"of this version: .*mine.mean is '1.0' in results.json"):
        evaluate.main(["--table", str(results), str(theirs / "results")])


def test_a_controller_of_another_kind_than_its_name_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    evaluate.main(["--classical-only", "--controllers", "sjc", "--episodes", "4", "--set", "env.time_limit_s=2",
                   "resamples=200", "scenarios=null", "--no-pictures", "--out", str(out)])  # fmt: skip
    for name in ("results.json", "config.yaml", "episodes.csv"):
        text = (out / name).read_text()
        kept = text.replace('"kind": "sjc"', '"kind": "KEPT"').replace("sjc", "fault_aware").replace("KEPT", "sjc")
        (out / name).write_text(kept)
    assert check(out, "--rows", "1") == 1
    assert "fault_aware stands for the tuned controller of that name; its recorded" in capsys.readouterr().out


def test_a_row_is_played_among_as_many_as_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Products with a matrix of one row are rounded otherwise; here the policy itself depends on the number of rows."""
    code = "def predict(self, obs, *a, **k): return np.full((len(obs), 9), 0.01 * len(obs)), None"
    (tmp_path / "mine.py").write_text(f"import numpy as np\nclass P:\n    {code}\ndef make(env): return P()\n")
    own = ["--policy", f"mine={tmp_path}/mine.py:make"]
    dump_yaml({"time_limit_s": 2.0}, tmp_path / "env.yaml")
    evaluate.main([*own, "--env", str(tmp_path / "env.yaml"), "--controllers", "none", "--episodes", "12", "--set",
                   "resamples=200", "replicates=2", "--no-pictures", "--out", f"{tmp_path}/out"])  # fmt: skip
    assert check(tmp_path / "out", "--rows", "2", *own) == 0
    assert "2 of 2 rows are equal" in capsys.readouterr().out


def test_code_of_somebody_else_is_played_only_if_it_is_given(
    theirs: Path, results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "code_of_theirs.py").write_text("open('executed', 'w')\ndef make(env): raise OSError('none')\n")
    content = load_yaml(results / "config.yaml")
    for path in ("code_of_theirs.py:make", "code_of_theirs:make", "model.zip", "nowhere/policy", ""):
        content["policies"] = {"mine": path}
        dump_yaml(content, results / "config.yaml")
        assert check(results, "--rows", "1") == 1
        text = capsys.readouterr().out
        assert "wrong: mine is not checked: give --policy mine=" in text
        assert "2 of 2 rows are equal" in text
    content["policies"] = {"mine": ["runs/a", "runs/b"]}
    dump_yaml(content, results / "config.yaml")
    assert check(results, "--rows", "1") == 1
    told = "wrong: mine is not checked: 1 trainings in the results, 2 in its config.yaml; give --policy mine=PATH"
    assert told in capsys.readouterr().out
    assert not (tmp_path / "executed").exists()
    assert check(results, "--rows", "1", "--policy", f"mine={theirs}/policy") == 0
    assert "3 of 3 rows are equal" in capsys.readouterr().out
    untrained(tmp_path / "another", {**ENV, "action": ACTION}, still=True)
    assert check(results, "--rows", "12", "--policy", f"mine={tmp_path}/another") == 1
    assert "another is another policy than that of the results" in capsys.readouterr().out
    edit_results(results, lambda content: content["policies"]["mine"].update(policy="0" * 64))
    assert check(results, "--rows", "1", "--policy", f"mine={theirs}/policy") == 1
    assert "wrong: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--check", "{}", "--policy", "cc=x"], "has no learned policy 'cc'; it has mine"),
        (["--check", "{}", "--episodes", "3"], "--check does not go with --episodes"),
        (["--check", "{}", "--rows", "0"], "--rows is 0; expected at least 1"),
        (["--rows", "3"], "--rows goes with --check"),
        (["--check", "{}/none"], "results/none does not exist; expected the folder"),
        (["--table", "{}", "--policy", "x=y"], "--table does not go with --policy"),
        (["--table", "{}/episodes.csv"], "episodes.csv is not JSON"),
        (["--table", "{}/list.json"], "list.json has no policies, score"),
        (["--table", "{}/odd.json"], "odd.json: policies.a is 3"),
    ],
)
def test_mistakes_are_named_in_one_line(options: list[str], message: str, results: Path) -> None:
    (results / "list.json").write_text("[]")
    odd = dict.fromkeys(("policies", "score", "scenarios", "code", "config", "versions"), 3)
    (results / "odd.json").write_text(json.dumps(odd | {"policies": {"a": 3}}))
    with pytest.raises(ConfigError, match=message) as caught:
        evaluate.main([text.format(results) for text in options])
    assert "\n" not in str(caught.value)


def test_a_damaged_file_of_rows_is_named(results: Path) -> None:
    edit_rows(results, lambda row: row.update(n_faults="abc") if row["seed"] == "1000003" else None)
    with pytest.raises(ConfigError, match=r"has 'abc' as n_faults of \w+, seed 1000003; expected a number"):
        check(results)
    (results / "episodes.csv").write_text("policy,seed,progress_m\nmine,1\n")
    with pytest.raises(ConfigError, match=r"episodes.csv has a row of another form"):
        check(results)
    columns = "policy,seed,progress_m,is_success,energy_j,episode_time_s,n_faults"
    (results / "episodes.csv").write_text(f"{columns}\nother,1,2,0,3,4,0\n")
    with pytest.raises(ConfigError, match=r"episodes.csv has no rows of sjc; it has other"):
        check(results)
    (results / "episodes.csv").write_text(f"{columns}\n")
    with pytest.raises(ConfigError, match=r"episodes.csv has no rows of sjc; it has none"):
        check(results)


def test_results_of_several_people_stand_in_one_table(
    theirs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # a short name for the folder
    policy = untrained(tmp_path / "own", {**ENV, "action": ACTION}, still=True)
    named = {"name": "my chain", "preset": "resilient_servo"}
    play = ["--policy", f"mine={policy}", "--episodes", "12", "--set", "resamples=200", "--no-pictures"]
    dump_yaml(named, tmp_path / "chain.yaml")
    evaluate.main([*play, "--robot", str(tmp_path / "chain.yaml"), "--controllers", "none", "--out", "out"])
    capsys.readouterr()
    one, other = theirs / "results", Path("out", "results.json")
    assert evaluate.main(["--table", str(one), str(other), str(one / "results.json")]) == 0
    text = capsys.readouterr().out
    first = text.split("progress [m] by number")[0]
    assert [first.count(f"  {name} ") for name in ("sjc", "cc", "mine")] == [1, 1, 2]
    assert "mine (out)" in first
    evaluate.main([*play, "--set", "env.time_limit_s=2", "--controllers", "none", "--out", "short"])
    with pytest.raises(ConfigError, match=r"results and .*short are of different scenarios \(\w{12} and \w{12}\)"):
        evaluate.main(["--table", str(one), "short"])


def test_the_hash_is_that_of_the_scenarios_alone(theirs: Path, tmp_path: Path) -> None:
    told = json.loads((theirs / "results" / "results.json").read_text())["scenarios"]
    play = ["--policy", f"x={theirs}/policy", "--controllers", "none", "--episodes", "12", "--no-pictures", "--set",
            "resamples=100", "--out", f"{tmp_path}/out"]  # fmt: skip
    for change, same in (
        ([], True),
        (["env.reward.progress=3"], True),
        (["env.n_threads=1"], True),
        (["seed=1000001"], False),
        (["env.faults.n_max=1"], False),
        (["robot={preset: resilient_servo, link_mass_kg: 2.0}"], False),
    ):
        evaluate.main([*play, *(["--set", *change] if change else [])])
        found = json.loads((tmp_path / "out" / "results.json").read_text())["scenarios"]
        assert (found == told) is same, change
