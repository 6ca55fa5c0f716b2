"""Report of a comparison: numbers with intervals, a table and rows.

Policies are compared by the score of the env's task: progress [m], or success in reaching the goal. The reference is
the classical one with the largest mean score, of several the one with the most progress; the ratio's interval chooses
it again in every bootstrap resample.
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

from snake_gym.benchmark.recovery import FIRST, LAST, RECOVERY, SPEEDS, recovery
from snake_gym.benchmark.runner import INFO_COLUMNS, Episodes
from snake_gym.benchmark.scenarios import ORACLES
from snake_gym.benchmark.statistics import (
    compare_scores,
    interval,
    mean_interval,
    number,
    ratio_interval,
    share_interval,
    spread,
)
from snake_gym.robot.spec import FloatArray

ROW_COLUMNS = (
    "policy", "kind", "episode", "seed", "n_faults", "faults", "fault_size", FIRST, LAST, *SPEEDS, RECOVERY,
    *(name for name in INFO_COLUMNS if name != "n_faults"), "return",
)  # fmt: skip
"""Columns of the rows, if the env reports them; ``training`` follows if a policy has several."""
SEVERE = 3
"""Fewest faults of a severe episode."""


def summarise(
    results: Sequence[Episodes], resamples: int, references: Sequence[str] = (), weight_n: float | None = None
) -> dict[str, Any]:
    """Return all results of the comparison as data for JSON; undefined values are None (docs/comparing.md)."""
    scores = {episodes.name: episodes.plays(episodes.score) for episodes in results}
    best = best_classical(results)
    rivals = [scores[episodes.name] for episodes in results if episodes.kind == "classical"]
    oracles = {episodes.name: scores[episodes.name].mean(axis=0) for episodes in results if episodes.kind == "oracle"}
    compared = dict.fromkeys([*([] if best is None else [best.name]), *references])
    policies: dict[str, Any] = {}
    for episodes in results:
        name, faults, own = episodes.name, episodes.columns["n_faults"], scores[episodes.name]
        policy = {"kind": episodes.kind, **_summary(episodes, faults >= 0, resamples), **spread(own, resamples)}
        per_m = policy["energy_j_per_m"]
        policy["cost_of_transport"] = per_m / weight_n if per_m is not None and weight_n else None
        policy["by_faults"] = {
            str(count): _summary(episodes, faults == count, resamples) | _regained(episodes, faults == count, resamples)
            for count in np.unique(faults).tolist()
        }
        for by, groups in fault_groups(episodes.columns).items():
            policy[by] = {key: _of_group(episodes, chosen, resamples) for key, chosen in groups.items()}
        policy |= _regained(episodes, faults >= 0, resamples)
        healthy = faults[: own.shape[1]] == 0
        policy["against"] = {
            other: compare_scores(own, scores[other], resamples) | healthy_tax(own, scores[other], healthy, resamples)
            for other in compared
            if other != name
        }
        if episodes.kind == "learned" and best is not None and np.isfinite(own).all():
            policy |= _against_best(own, scores[best.name].mean(axis=0), rivals, resamples)
        policy |= {f"of_{each}": share_of(own, oracle, faults, resamples) for each, oracle in oracles.items()}
        policies[name] = policy
    return {
        "policies": policies,
        "score": results[0].score if results else None,
        "best_classical": None if best is None else best.name,
        "weight_n": weight_n,
    }


def _regained(episodes: Episodes, chosen: NDArray[np.bool_], resamples: int) -> dict[str, Any]:
    columns = [name for name in (*SPEEDS, RECOVERY) if name in episodes.columns]
    found = recovery({name: episodes.plays(name, chosen) for name in columns}, resamples) if columns else {}
    return {"recovery": found} if found else {}


def share_of(plays: FloatArray, bound: FloatArray, n_faults: NDArray[Any], resamples: int) -> dict[str, Any]:
    """Return the mean of ``plays`` (T, n) over that of ``bound`` (n,), in all scenarios and in those with ``SEVERE``
    faults and more, and both intervals; None without them, or where the bound makes nothing."""
    found: dict[str, Any] = {}
    for name, chosen in (("share", n_faults >= 0), ("severe", n_faults >= SEVERE)):
        chosen = chosen[: bound.size]
        own, best = plays[:, chosen], bound[chosen]
        known = best.size > 0 and best.mean() > 0.0
        found[name] = number(own.mean() / best.mean()) if known else None
        found[f"{name}_ci95"] = ratio_interval(own, best, resamples) if known else None
    return found


def healthy_tax(own: FloatArray, other: FloatArray, healthy: NDArray[np.bool_], resamples: int) -> dict[str, Any]:
    """Return the share by which ``own`` (T, n) is below ``other`` without faults; None if all have faults."""
    share = share_of(own[:, healthy], other[:, healthy].mean(axis=0), np.zeros(healthy.sum()), resamples)
    tax, ends = share["share"], share["share_ci95"]
    return {
        "healthy_tax": None if tax is None else 1.0 - tax,
        "healthy_tax_ci95": None if ends is None else [1.0 - ends[1], 1.0 - ends[0]],
    }


def fault_groups(columns: Mapping[str, NDArray[Any]]) -> dict[str, dict[str, NDArray[np.bool_]]]:
    """Return the episodes by the one kind of their ``faults`` (W,), and by the one joint that fails, as masks (W,).

    Where every faulty episode has one fault with a size, they are grouped by that too: by the share of the torque (or
    other strength) that is lost, or the shift in degrees.
    """
    found = {}
    for group, part in (("by_kind", 1), ("by_joint", 0)):
        sets = [{fault.split(":")[part] for fault in text.split()} for text in columns["faults"].tolist()]
        only = np.array([min(each) if len(each) == 1 else "" for each in sets])
        found[group] = {key: only == key for key in sorted(set(only.tolist()) - {""})}
    size = columns.get("fault_size", np.full(1, np.nan))
    if np.isfinite(size).any() and (np.isfinite(size) == (columns["n_faults"] > 0)).all():
        found["by_size"] = {}
        for kind, chosen in found["by_kind"].items():
            is_shift = kind in ("offset", "slipped")
            value, width = (np.degrees(size), 10) if is_shift else (100.0 * (1.0 - size), 20)
            place = np.maximum(np.ceil(value / width), 1.0) * width
            for end in np.unique(place[chosen]).astype(int).tolist():
                key = f"{kind} {end - width:02}-{end:02} {'deg' if is_shift else '%'}"
                found["by_size"][key] = chosen & (place == end)
    return found


def _of_group(episodes: Episodes, chosen: NDArray[np.bool_], resamples: int) -> dict[str, Any]:
    runs = episodes.plays(episodes.score, chosen)
    return {"score": number(runs.mean()), "score_ci95": mean_interval(runs, resamples), "episodes": runs.shape[1]}


def best_classical(results: Sequence[Episodes]) -> Episodes | None:
    """Return the classical policy with the largest mean score; of several the one with the most progress, then by
    name."""

    def rank(episodes: Episodes) -> tuple[float, float, str]:
        return -episodes.plays(episodes.score).mean(), -float(episodes.columns["progress_m"].mean()), episodes.name

    classical = [episodes for episodes in results if episodes.kind == "classical"]
    known = [episodes for episodes in classical if not math.isnan(rank(episodes)[0])]
    return min(known, key=rank, default=None)


def _against_best(own: FloatArray, best: FloatArray, rivals: Sequence[FloatArray], resamples: int) -> dict[str, Any]:
    mean = float(best.mean())
    return {
        "ratio": number(own.mean() / mean) if mean > 0.0 else None,
        "ratio_ci95": ratio_interval(own, np.concatenate(rivals), resamples),
        "ahead": number(np.mean(own > best)),
        "behind": number(np.mean(own < best)),
    }


def _summary(episodes: Episodes, chosen: NDArray[np.bool_], resamples: int) -> dict[str, Any]:
    columns = {name: values[chosen] for name, values in episodes.columns.items()}
    way_m = episodes.plays("progress_m", chosen)
    summary = {"mean": number(way_m.mean()), "ci95": mean_interval(way_m, resamples), "episodes": way_m.shape[1]}
    for name, values in _measures(columns, episodes.score).items():
        summary[name] = number(values.mean())
        runs = values.reshape(episodes.shape[0], -1)
        alike = values.dtype == np.bool_ and bool((runs == runs[:1]).all())
        summary[f"{name}_ci95"] = share_interval(runs[0]) if alike else mean_interval(runs, resamples)
    if "penetration_m" in columns:
        summary["penetration_m"] = number(columns["penetration_m"].max())
    for name, parts in _RATES.items():
        if all(part in columns for part in parts):
            pair = np.stack([episodes.plays(part, chosen) for part in parts])
            summary[name] = number(_rate(pair.sum(axis=(1, 2))))
            summary[f"{name}_ci95"] = interval(pair, _rate, resamples)
    return summary


_RATES = {
    "energy_j_per_m": ("energy_j", "progress_m"), "loss_per_change_m": ("change_loss_m", "n_changes"),
    "route_share": ("progress_m", "route_m"), "contact_share": ("contact_time_s", "episode_time_s"),
    "contact_force_n": ("contact_impulse_ns", "episode_time_s"),
}  # fmt: skip
"""Sums of one column over those of another, if the env reports both."""


def _rate(means: FloatArray) -> FloatArray:
    """Return the first of both (2, ...) over the second, nan where that is not positive."""
    with np.errstate(all="ignore"):
        return np.asarray(np.where(means[1] > 0.0, means[0] / means[1], np.nan))


_AS_KEPT = {
    "success": "is_success", "energy_j": "energy_j", "targets": "targets_reached",
    "cross_track_m": "mean_cross_track_m", "rms_cross_track_m": "rms_cross_track_m",
    "schedule_error_m": "mean_schedule_error_m", "speed_error_m_s": "mean_speed_error_m_s",
    "heading_error_rad": "mean_heading_error_rad", "stood_still": "stood_still",
}  # fmt: skip
"""Columns averaged over the episodes: name in the summary -> column."""
_TIMES = {"time_to_target_s": "time_to_first_target_s", "time_to_goal_s": "time_to_goal_s"}
"""Averaged times; an episode without success counts with its length."""


def _measures(columns: Mapping[str, NDArray[Any]], score: str) -> dict[str, NDArray[Any]]:
    """Return averaged quantities other than the progress, by name, (W,) each, if the env reports their inputs."""
    made = {name: columns[column] for name, column in _AS_KEPT.items() if column in columns}
    times = {name: columns[column] for name, column in _TIMES.items() if column in columns}
    made |= {name: np.where(np.isfinite(time), time, columns["episode_time_s"]) for name, time in times.items()}
    return made if score_key(score) != score else {**made, score: columns[score]}


def score_key(score: str) -> str:
    """Return the name, in a policy's summary, of the mean of the score."""
    return {"progress_m": "mean", "is_success": "success"}.get(score, score)


def rows_csv(results: Sequence[Episodes]) -> str:
    """Return CSV text with one line for each episode of each policy."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    made = {"policy", "kind", "episode"}
    plays = ["training"] if any("training" in each.columns for each in results) else []
    names = [name for name in ROW_COLUMNS if name in made or all(name in each.columns for each in results)]
    names += plays
    writer.writerow(names)
    for episodes in results:
        columns = {
            **{name: np.zeros(episodes.n, dtype=np.int64) for name in plays},
            **episodes.columns,
            "policy": [episodes.name] * episodes.n,
            "kind": [episodes.kind] * episodes.n,
            "episode": np.arange(episodes.n) % episodes.shape[1],
            "is_success": episodes.columns["is_success"].astype(int),
        }
        lists = [np.asarray(columns[name]).tolist() for name in names]
        # All digits, so that numbers and intervals follow from the rows.
        cells = [["" if isinstance(one, float) and not math.isfinite(one) else one for one in part] for part in lists]
        writer.writerows(zip(*cells, strict=True))
    return buffer.getvalue()


_CELLS: dict[str, tuple[str, str]] = {
    "worst_tenth": ("worst\n10%", ".2f"),
    "targets": ("targets", ".2f"), "success": ("success", ".0%"), "route_share": ("of the\nroute", ".0%"),
    "time_to_goal_s": ("goal at\n[s]", ".1f"),
    "contact_share": ("in\ncontact", ".0%"), "contact_force_n": ("contact\n[N]", ".1f"),
    "cross_track_m": ("off path\n[m]", ".3f"), "speed_error_m_s": ("speed off\n[m/s]", ".3f"),
    "heading_error_rad": ("heading\noff [rad]", ".2f"),
    "energy_j_per_m": ("J/m", ".0f"), "loss_per_change_m": ("lost at a\nchange [m]", ".2f"),
    **{f"of_{name}": (f"of\n{name}", ".2f") for name in ORACLES},
}  # fmt: skip
"""Columns of the table: key in the summary -> heading and number format."""


def tables(summary: Mapping[str, Any], title: str) -> list[Table]:
    """Return tables for a terminal: every policy's results, and its score by number of failed joints."""
    key = score_key(summary["score"])
    heading = key.replace("_", " ")
    ranked = sorted(summary["policies"].items(), key=lambda item: math.inf if item[1][key] is None else -item[1][key])
    left_out = (key, "worst_tenth") if key == "success" else (key,)  # the worst of zeros and ones says nothing
    known = {name for _, policy in ranked for name in _CELLS if policy.get(name) is not None}
    shown = [name for name in _CELLS if name in known and name not in left_out]
    means = dict.fromkeys([key, "mean"])
    heads = [f"{'progress [m]' if name == 'mean' else heading} (95 %)" for name in means]
    overall = _table(title, [*heads, *(_CELLS[name][0] for name in shown)])
    for name, policy in ranked:
        cells = [with_interval(policy, mean) for mean in means]
        for each in shown:
            value = policy[each]["share"] if each.startswith("of_") else policy.get(each)
            cells.append("-" if value is None else format(value, _CELLS[each][1]))
        seeds = policy["seed_means"] if policy["kind"] == "learned" else []
        label = f"{name} ({len(seeds)} seed{'s' if len(seeds) > 1 else ''})" if seeds else name
        overall.add_row(Text(label), *cells, style="bold" if seeds else None)
        names = policy.get("training_names") or [f"seed {i + 1}" for i in range(len(seeds))]
        for training, mean in zip(names, seeds if len(seeds) > 1 else [], strict=False):
            overall.add_row(Text(f"  {training}"), mean_text(mean, key))
    what = {"success": "success [%]", "mean": "progress [m]"}.get(key, heading)
    groups = ranked[0][1]["by_faults"]
    by_faults = _table(f"{what} by number of failed joints, ± half of the 95 % interval", list(groups))
    for name, policy in ranked:
        by_faults.add_row(Text(name), *(_with_half_width(group, key) for group in policy["by_faults"].values()))
    by_faults.add_row("episodes", *(str(group["episodes"]) for group in groups.values()))
    return [overall, by_faults]


def _table(title: str, columns: Sequence[str]) -> Table:
    made = Table(title=Text(title), title_justify="left", title_style="", box=SIMPLE_HEAD, header_style="bold")
    made.add_column("policy", overflow="fold")
    for column in columns:
        made.add_column(Text(column), justify="right", no_wrap=True)
    return made


def with_interval(group: Mapping[str, Any], key: str = "mean") -> str:
    """Return a mean and its interval, ``-`` if it has none, as for a single episode."""
    spec = ".0%" if key == "success" else ".2f"
    return f"{mean_text(group[key], key)} {show_bounds(interval_of(group, key), spec)}"


def mean_text(mean: float | None, key: str) -> str:
    """Return a mean score as text."""
    return "-" if mean is None else format(mean, ".0%" if key == "success" else ".2f")


def interval_of(group: Mapping[str, Any], key: str) -> Sequence[float] | None:
    """Return the interval of the mean ``key`` in a policy's summary, or in a group's; None if it has none."""
    ends: Sequence[float] | None = group["ci95" if key == "mean" else f"{key}_ci95"]
    return ends


def show_bounds(ends: Sequence[float] | None, spec: str) -> str:
    """Return an interval as text; ``[-]`` if there is none."""
    return "[-]" if ends is None else f"[{ends[0]:{spec}}, {ends[1]:{spec}}]"


def _with_half_width(group: Mapping[str, Any], key: str) -> str:
    ends, scale, spec = interval_of(group, key), *((100.0, ".1f") if key == "success" else (1.0, ".2f"))
    half = "-" if ends is None else format(scale * (ends[1] - ends[0]) / 2.0, spec)
    return f"{'-' if group[key] is None else format(scale * group[key], spec)} ± {half}"


def verdicts(summary: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each learned policy that is compared with the best classical one."""
    score = summary["score"]
    what = {"progress_m": "progress", "is_success": "success"}.get(score, score.replace("_", " "))
    found = []
    for name, each in summary["policies"].items():
        if each.get("ratio") is not None:
            ends = f" {show_bounds(each['ratio_ci95'], '.2f')}" if each["ratio_ci95"] else ""
            pairs = "pairs of a scenario and a training seed" if len(each["seed_means"]) > 1 else "scenarios"
            found.append(
                f"{name} makes {each['ratio']:.2f}{ends} times the {what} of {summary['best_classical']}, the best "
                f"classical controller that plays, and is ahead in {each['ahead']:.0%} of the {pairs}."
            )
    return found
