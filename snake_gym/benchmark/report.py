"""Report of a comparison: numbers with intervals, a table and rows.

Policies are compared by the score of the env's task: progress [m], or success in reaching the goal. The reference is
the classical one with the largest mean score; the ratio's interval chooses it again in every bootstrap resample.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from snake_gym.benchmark.runner import Episodes
from snake_gym.benchmark.statistics import interval, mean_interval, ratio_interval, share_interval
from snake_gym.robot.spec import FloatArray

DEFINITIONS = {
    "mean": "mean progress in an episode [m]",
    "ci95": "95 % bootstrap interval (BCa over episodes) of mean; likewise every *_ci95, but success has Wilson's; "
    "null where there is none, as for a single episode",
    "targets": "mean number of targets reached in an episode",
    "success": "share of episodes that are a success",
    "time_to_target_s": "mean time to the first target [s]; an episode without one counts with its full length",
    "time_to_goal_s": "mean time to the goal [s]; an episode that does not reach it counts with its full length",
    "route_share": "mean of progress over the route's length",
    "contact_share": "mean share of the time with at least one contact",
    "contact_force_n": "mean over time of the contact forces of all links together [N]",
    "score": "what policies are compared by: progress_m, is_success or a record of the task, whose mean then stands "
    "under its own name",
    "cross_track_m": "mean distance from the path [m], over time and episodes",
    "rms_cross_track_m": "mean over the episodes of the root of the mean squared distance from the path [m]",
    "schedule_error_m": "mean way ahead of or behind the schedule [m]; 0 without a wanted speed",
    "tracking": "mean of how well commands are followed: 1 is best, 0 worst",
    "speed_error_m_s": "mean size of the speed error [m/s]",
    "heading_error_rad": "mean size of the heading error [rad]",
    "stood_still": "mean number of solutions of physics steps in an episode that did not settle",
    "penetration_m": "deepest penetration into an obstacle in any episode [m]",
    "step_check": "mean progress [m] of the first scenarios at the step of the robot and at half of it (step_s), and "
    "the largest difference in one of them; only with --check-step",
    "energy_j": "mean positive actuator work in an episode [J]",
    "energy_j_per_m": "total work over total progress [J/m]; null where progress is not positive",
    "by_faults": "the same for the episodes with that number of failed joints",
    "scenarios": "hash of the task, its settings, the robot and the seeds: results with the same one can stand side by "
    "side, whatever the machine",
    "code": "hash of the code that the numbers depend on",
    "seeds": "of the scenarios, and what such seeds are for: benchmarks, or (then it is noted) training or tuning",
    "notes": "what to know beside the numbers: known scenarios, policies and gaits on another robot or in other "
    "scenarios than they were trained or tuned for",
    "controller": "every parameter of a classical policy",
    "policy": "digest of a learned policy's file",
    "ratio": "mean score of the first learned policy over that of the best classical one; episodes are paired",
    "ahead": "share of scenarios in which the learned policy has a higher score than the best classical one",
    "behind": "share of scenarios in which it has a lower one",
    "lead": "mean score of the learned policy minus that of the best classical one; episodes are paired",
}
ROW_COLUMNS = (
    "policy", "kind", "episode", "seed", "n_faults", "faults", "progress_m", "targets_reached",
    "time_to_first_target_s", "last_target_time_s", "is_success", "energy_j", "n_failed_joints", "episode_time_s",
    "return", "route_m", "time_to_goal_s", "contact_time_s", "contact_impulse_ns", "penetration_m", "self_overlap_m",
    "stood_still", "passed_m", "mean_cross_track_m", "rms_cross_track_m", "mean_schedule_error_m", "tracking",
    "commanded_m", "mean_speed_error_m_s", "mean_heading_error_rad",
)  # fmt: skip
"""Columns of the rows, if the env reports them."""
_COMPARED = ("ratio", "ratio_ci95", "ahead", "behind", "lead", "lead_ci95")
"""Comparisons of a learned policy with the best classical one; see ``DEFINITIONS``."""


def summarise(results: Sequence[Episodes], resamples: int) -> dict[str, Any]:
    """Return all results of the comparison as data for JSON; undefined values are None. See ``DEFINITIONS``."""
    policies: dict[str, Any] = {}
    for episodes in results:
        everything = np.ones(episodes.n, dtype=bool)
        policies[episodes.name] = {"kind": episodes.kind, **_summary(episodes, everything, resamples)}
        faults = episodes.columns["n_faults"]
        policies[episodes.name]["by_faults"] = {
            str(count): _summary(episodes, faults == count, resamples) for count in np.unique(faults).tolist()
        }
    best = best_classical(results)
    learned = [episodes for episodes in results if episodes.kind == "learned"]
    rivals = [score(episodes) for episodes in results if episodes.kind == "classical"]
    for episodes in learned:
        policies[episodes.name].update(_against(episodes, best, rivals, resamples))
    first = policies[learned[0].name] if learned else dict.fromkeys(_COMPARED)
    return {
        "policies": policies,
        "score": results[0].score if results else None,
        "learned": learned[0].name if learned else None,
        "best_classical": None if best is None else best.name,
        **{key: first[key] for key in _COMPARED},
    }


def best_classical(results: Sequence[Episodes]) -> Episodes | None:
    """Return the classical policy with the largest mean score."""
    classical = [episodes for episodes in results if episodes.kind == "classical"]
    return max(classical, key=lambda episodes: float(score(episodes).mean()), default=None)


def score(episodes: Episodes) -> FloatArray:
    """Return the score (W,) by which episodes are compared."""
    return np.asarray(episodes.columns[episodes.score], dtype=np.float64)


def _against(learned: Episodes, best: Episodes | None, rivals: Sequence[FloatArray], resamples: int) -> dict[str, Any]:
    if best is None:
        return dict.fromkeys(_COMPARED)
    own, reference = score(learned), score(best)
    mean = float(reference.mean())
    return {
        "ratio": _number(own.mean() / mean) if mean > 0.0 else None,
        "ratio_ci95": _interval(ratio_interval(own, np.stack(rivals), resamples)),
        "ahead": _number(np.mean(own > reference)),
        "behind": _number(np.mean(own < reference)),
        "lead": _number(own.mean() - mean),
        "lead_ci95": _interval(interval(np.stack([own, reference]), lambda means: means[0] - means[1], resamples)),
    }


def _summary(episodes: Episodes, chosen: NDArray[np.bool_], resamples: int) -> dict[str, Any]:
    columns = {name: values[chosen] for name, values in episodes.columns.items()}
    progress, energy = columns["progress_m"], columns["energy_j"]
    summary = {
        "mean": _number(progress.mean()),
        "ci95": _interval(mean_interval(progress, resamples)),
        "episodes": int(progress.size),
    }
    for name, values in _measures(columns, episodes.score).items():
        summary[name] = _number(values.mean())
        bounds = share_interval(values) if values.dtype == np.bool_ else mean_interval(values, resamples)
        summary[f"{name}_ci95"] = _interval(bounds)
    if "stood_still" in columns:
        summary["stood_still"] = _number(columns["stood_still"].mean())
    if "penetration_m" in columns:
        summary["penetration_m"] = _number(columns["penetration_m"].max())
    total = float(progress.sum())
    summary["energy_j_per_m"] = _number(energy.sum() / total) if total > 0.0 else None
    return summary


def _measures(columns: Mapping[str, NDArray[Any]], score: str) -> dict[str, NDArray[Any]]:
    """Return quantities averaged besides the progress, by name, (W,) each, if the env reports their inputs."""
    length = columns["episode_time_s"]
    measures = {"success": columns["is_success"], "energy_j": columns["energy_j"]}
    for name, reached in (("time_to_target_s", "time_to_first_target_s"), ("time_to_goal_s", "time_to_goal_s")):
        if reached in columns:
            measures[name] = np.where(np.isfinite(columns[reached]), columns[reached], length)
    if "targets_reached" in columns:
        measures["targets"] = columns["targets_reached"]
    if "route_m" in columns:
        measures["route_share"] = columns["progress_m"] / columns["route_m"]
    if "contact_time_s" in columns:
        measures["contact_share"] = columns["contact_time_s"] / length
        measures["contact_force_n"] = columns["contact_impulse_ns"] / length
    for name, column in _ERRORS.items():
        if column in columns:
            measures[name] = columns[column]
    if _key(score) == score:
        measures[score] = columns[score]
    return measures


_ERRORS = {
    "cross_track_m": "mean_cross_track_m", "rms_cross_track_m": "rms_cross_track_m",
    "schedule_error_m": "mean_schedule_error_m", "speed_error_m_s": "mean_speed_error_m_s",
    "heading_error_rad": "mean_heading_error_rad",
}  # fmt: skip
"""Errors averaged over the episodes: name in the summary -> column."""


def _key(score: str) -> str:
    """Return the name, in a policy's summary, of the mean of the score."""
    return {"progress_m": "mean", "is_success": "success"}.get(score, score)


def _number(value: Any) -> float | None:
    return float(value) if math.isfinite(value) else None


def _interval(bounds: tuple[float, float]) -> list[float] | None:
    return [float(bound) for bound in bounds] if all(math.isfinite(bound) for bound in bounds) else None


def rows_csv(results: Sequence[Episodes]) -> str:
    """Return CSV text with one line for each episode of each policy."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    made = {"policy", "kind", "episode"}
    names = [name for name in ROW_COLUMNS if name in made or all(name in each.columns for each in results)]
    writer.writerow(names)
    for episodes in results:
        columns = {
            **episodes.columns,
            "policy": [episodes.name] * episodes.n,
            "kind": [episodes.kind] * episodes.n,
            "episode": np.arange(episodes.n),
            "is_success": episodes.columns["is_success"].astype(int),
        }
        lists = [np.asarray(columns[name]).tolist() for name in names]
        writer.writerows([_cell(value) for value in row] for row in zip(*lists, strict=True))
    return buffer.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else ""  # all digits, so that numbers and intervals follow from the rows
    return value


_CELLS: dict[str, tuple[str, str]] = {
    "targets": ("targets", ".2f"), "success": ("success", ".0%"), "route_share": ("of the route", ".0%"),
    "time_to_target_s": ("1st at [s]", ".1f"), "time_to_goal_s": ("goal at [s]", ".1f"),
    "contact_share": ("in contact", ".0%"), "contact_force_n": ("contact [N]", ".1f"),
    "cross_track_m": ("off path [m]", ".3f"), "speed_error_m_s": ("speed off [m/s]", ".3f"),
    "heading_error_rad": ("heading off [rad]", ".2f"), "energy_j_per_m": ("J/m", ".0f"),
}  # fmt: skip
"""Columns of the table: key in the summary -> heading and number format."""


def tables(summary: Mapping[str, Any], title: str) -> list[Table]:
    """Return tables for a terminal: every policy's results, and its score by number of failed joints."""
    key = _key(summary["score"])
    heading = key.replace("_", " ")
    ranked = sorted(summary["policies"].items(), key=lambda item: -(item[1][key] or 0.0))
    shown = [name for name in _CELLS if any(name in policy for _, policy in ranked) and name != key]
    heads = ["progress [m] (95 %)", *(_CELLS[name][0] for name in shown)]
    overall = _table(title, "policy", heads if key == "mean" else [f"{heading} (95 %)", *heads])
    for name, policy in ranked:
        cells = [_with_interval(policy)]
        cells += ["-" if policy.get(each) is None else format(policy[each], _CELLS[each][1]) for each in shown]
        if key != "mean":
            cells.insert(0, _with_interval(policy, key))
        overall.add_row(Text(name), *cells, style="bold" if policy["kind"] == "learned" else None)
    what = {"success": "success [%]", "mean": "progress [m]"}.get(key, heading)
    by_faults = _table(
        f"{what} by number of failed joints, ± half of the 95 % interval", "failed",
        [*(name for name, _ in ranked), "episodes"],
    )  # fmt: skip
    for count in sorted({int(count) for _, policy in ranked for count in policy["by_faults"]}):
        groups = [policy["by_faults"][str(count)] for _, policy in ranked]
        by_faults.add_row(str(count), *(_with_half_width(group, key) for group in groups), str(groups[0]["episodes"]))
    return [overall, by_faults]


def _table(title: str, first: str, columns: Sequence[str]) -> Table:
    made = Table(title=Text(title), title_justify="left", title_style="", box=SIMPLE_HEAD, header_style="bold")
    made.add_column(Text(first), overflow="fold")
    for column in columns:
        made.add_column(Text(column, overflow="fold"), justify="right", no_wrap=len(column) < 20)
    return made


def _with_interval(group: Mapping[str, Any], key: str = "mean") -> str:
    """Return a mean and its interval, ``-`` if it has none, as for a single episode."""
    spec = ".0%" if key == "success" else ".2f"
    return f"{group[key]:{spec}} {show_bounds(interval_of(group, key), spec)}"


def interval_of(group: Mapping[str, Any], key: str) -> Sequence[float] | None:
    """Return the interval of the mean ``key`` in a policy's summary, or in a group's; None if it has none."""
    bounds: Sequence[float] | None = group["ci95" if key == "mean" else f"{key}_ci95"]
    return bounds


def show_bounds(bounds: Sequence[float] | None, spec: str) -> str:
    """Return an interval as text; ``[-]`` if there is none."""
    return "[-]" if bounds is None else f"[{bounds[0]:{spec}}, {bounds[1]:{spec}}]"


def _with_half_width(group: Mapping[str, Any], key: str) -> str:
    bounds, scale, spec = interval_of(group, key), *((100.0, ".1f") if key == "success" else (1.0, ".2f"))
    half = "-" if bounds is None else format(scale * (bounds[1] - bounds[0]) / 2.0, spec)
    return f"{scale * group[key]:{spec}} ± {half}"


def _points(compared: Mapping[str, Any]) -> str:
    bounds = compared["lead_ci95"]
    return f"{100.0 * compared['lead']:+.1f} {show_bounds(bounds and [100.0 * bound for bound in bounds], '+.1f')}"


def verdict(summary: Mapping[str, Any]) -> str:
    """Return the ``verdicts`` in one text."""
    return " ".join(verdicts(summary))


def verdicts(summary: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each learned policy that is compared with the best classical one."""
    best = summary["best_classical"]
    learned = ((name, each) for name, each in summary["policies"].items() if each.get("ratio") is not None)
    return [_verdict(name, each, best, summary["score"]) for name, each in learned]


def _verdict(name: str, compared: Mapping[str, Any], best: str, score: str) -> str:
    interval = compared["ratio_ci95"]
    bounds = f" [{interval[0]:.2f}, {interval[1]:.2f}]" if interval else ""
    if score == "is_success":
        return (
            f"{name} reaches the goal {compared['ratio']:.2f}{bounds} times as often as {best}, the best classical "
            f"controller: {_points(compared)} percentage points. It does where that does not in "
            f"{compared['ahead']:.1%} of the scenarios, the other way round in {compared['behind']:.1%}."
        )
    does = "makes" if score == "progress_m" else "has"
    of = "progress" if score == "progress_m" else score.replace("_", " ")
    return (
        f"{name} {does} {compared['ratio']:.2f}{bounds} times the {of} of {best}, the best classical controller, "
        f"and is ahead in {compared['ahead']:.0%} of the scenarios."
    )
