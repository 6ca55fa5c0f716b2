"""Times of arrival at the targets: the table beside the paper, and the claims about them (section 4.3, Fig. 14)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from papers.dynamics import Point
from papers.sibilska2022.experiment import BROKEN_SETS, PAPER_S, Broken, Case, ControllerName, ModelName
from papers.study import Claim, Table, Verdict, compare
from snake_gym.robot.spec import FloatArray

Arrivals = Mapping[Case, FloatArray]
"""Case -> arrivals at the targets (K,) [s], NaN where not reached."""

TOLERANCE = 0.03
"""Relative, for published times: a target just missed costs a turn, and the paper gives neither step nor parameters."""


def joints(broken: Sequence[int], comma: str = ", ") -> str:
    """``3, 5, 8`` or ``none``."""
    return comma.join(map(str, broken)) or "none"


def arrival_table(rows: Iterable[Mapping[str, Any]]) -> Table:
    """Arrivals at every target, with the paper's last one and the deviation from it (rows: see ``as_rows``)."""
    rows = list(rows)
    n_targets = len(rows[0]["arrivals_s"])
    heads = [f"{number} [s]" for number in range(1, n_targets + 1)]
    cells = []
    for row in rows:
        last, paper = row["arrivals_s"][-1], row["paper_s"]
        off = None if last is None or paper is None else f"{100.0 * (last / paper - 1.0):+.1f}%"
        fixed = [row["point"], row["model"], row["controller"], joints(row["broken"], ",")]
        cells.append([*fixed, *row["arrivals_s"], paper, off])
    return Table(
        "arrivals",
        "Arrivals at the targets, recomputed",
        ["point", "model", "control", "broken", *heads, "paper [s]", "dev."],
        cells,
        "model: published = the equations behind the paper's times (head: N m in eq. 26); consistent = the physics of "
        "every env. For the centre they are the same. A dash: not reached, or no number in the paper.",
    )


def arrival_claims(arrivals: Arrivals) -> list[Claim]:
    """Claims of section 4.3, as far as the simulated cases bear on them."""
    last = {case: float(times[-1]) for case, times in arrivals.items()}
    claims = [_published_time(last, *key) for key in PAPER_S if _case(*key) in last]
    claims += _all_reached(arrivals)
    claims += _coupled_is_faster(last)
    claims += _head_with_coupling_is_best(last)
    return claims


def _case(point: Point, controller: ControllerName, broken: Broken, model: ModelName = "published") -> Case:
    return Case(point, model, controller, broken)


def _published_time(last: Mapping[Case, float], point: Point, controller: ControllerName, broken: Broken) -> Claim:
    broken_joints = (
        f"joints {joints(broken)} broken" if len(broken) > 1 else f"joint {broken[0]} broken" if broken else "no fault"
    )
    text = f"{controller.upper()} guided by the {point}, {broken_joints}: arrival at the fifth target"
    note = "The published head model (N m in eq. 26)." if point == "head" else ""
    measured = last[_case(point, controller, broken)]
    return compare(text, "section 4.3, Fig. 14", PAPER_S[point, controller, broken], measured, "s", TOLERANCE, note)


def _all_reached(arrivals: Arrivals) -> list[Claim]:
    published = [times for case, times in arrivals.items() if case.model == "published"]
    reached = sum(bool(times[-1] == times[-1]) for times in published)
    verdict: Verdict = "reproduced" if reached == len(published) else "partly" if reached else "not"
    text = "All targets are reached in every published simulation, with up to three joints broken"
    return [Claim(text, "section 4.3, Fig. 12-13", verdict, note=f"{reached} of {len(published)} runs reach them all.")]


def _coupled_is_faster(last: Mapping[Case, float]) -> list[Claim]:
    claims = []
    pairs: tuple[tuple[Point, ModelName], ...] = (
        ("centre", "published"),
        ("head", "published"),
        ("head", "consistent"),
    )
    for point, model in pairs:
        saved = {
            broken: 1.0 - last[_case(point, "cc", broken, model)] / last[_case(point, "sjc", broken, model)]
            for broken in BROKEN_SETS
            if broken and {_case(point, name, broken, model) for name in ("sjc", "cc")} <= last.keys()
        }
        if not saved:
            continue
        verdict: Verdict = "reproduced" if min(saved.values()) > 0 else "partly" if max(saved.values()) > 0 else "not"
        how = {"published": "", "consistent": ", consistent physics"}[model]
        text = f"With broken joints CC arrives before SJC, guided by the {point}{how}"
        numbers = "; ".join(f"{joints(broken)}: {100 * share:.0f} %" for broken, share in saved.items())
        claims.append(Claim(text, "section 4.3, Fig. 14", verdict, note=f"Time saved with joints broken {numbers}."))
    return claims


def _head_with_coupling_is_best(last: Mapping[Case, float]) -> list[Claim]:
    """With broken joints CC guided by the head is the fastest of the four; by the physics of the paper and by ours."""
    claims = []
    for model, how in (("published", "published head model"), ("consistent", "consistent physics")):
        ahead: list[bool] = []
        numbers = []
        for broken in filter(None, BROKEN_SETS):
            best: ModelName = "published" if model == "published" else "consistent"
            head, centre = _case("head", "cc", broken, best), _case("centre", "cc", broken)
            rivals = [_case("head", "sjc", broken, best), centre, _case("centre", "sjc", broken)]
            if not {head, *rivals} <= last.keys():
                continue
            ahead.append(last[head] <= (1.0 + TOLERANCE) * min(last[rival] for rival in rivals))
            numbers.append(f"{joints(broken)}: {last[head]:.0f} s, guided by the centre {last[centre]:.0f} s")
        if ahead:
            verdict: Verdict = "reproduced" if all(ahead) else "partly" if any(ahead) else "not"
            why = "" if model == "published" else " The published advantage comes from N m in place of m in eq. 26."
            text = f"With broken joints CC guided by the head is the fastest of all, or as fast ({how})"
            claims.append(Claim(text, "section 4.3, Fig. 14", verdict, note=f"CC with {'; '.join(numbers)}.{why}"))
    return claims
