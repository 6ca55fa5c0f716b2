"""Figures of the study of fault-aware control; each function draws on an empty matplotlib figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from papers.faults.runs import Detection, Result, mean_with_interval
from snake_gym.robot.spec import FloatArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BAR = 0.8


def draw_delays(canvas: Figure, detections: Sequence[Detection]) -> None:
    """Draw the share of the failed joints that are found within a time, for every kind and noise."""
    axis = canvas.subplots()
    kinds = list(dict.fromkeys(d.kind for d in detections if d.delay_s.size))
    noises = sorted({d.noise_rad for d in detections})
    styles = ("-", "--", ":")
    for d in detections:
        if not d.delay_s.size:
            continue
        delay = np.sort(d.delay_s[np.isfinite(d.delay_s)])
        share = 100.0 * np.arange(1, delay.size + 1) / d.delay_s.size
        label = f"{d.kind}, noise {d.noise_rad:g} rad"
        style = styles[noises.index(d.noise_rad) % len(styles)]
        axis.step(delay, share, where="post", ls=style, c=f"C{kinds.index(d.kind)}", label=label)
    axis.set(xlabel="time since the joint failed [s]", ylabel="failed joints found [%]")
    axis.set(xlim=(0.0, 10.0), ylim=(0.0, 105.0))
    canvas.legend(loc="outside right upper", fontsize=8)


def draw_by_count(canvas: Figure, results: Sequence[Result], names: Sequence[str]) -> None:
    """Draw progress with 0 to 3 locked joints, with 95 % intervals."""
    axis = canvas.subplots()
    chosen = [r for name in names for r in results if (r.name, r.scenario) == (name, "locked")]
    counts = sorted({int(n) for r in chosen for n in np.unique(r.n_faults)})
    width = _BAR / len(chosen)
    for k, result in enumerate(chosen):
        bars = [mean_with_interval(result.progress_m[result.n_faults == n]) for n in counts]
        middle = np.array([b.mean for b in bars])
        error = np.array([[b.mean - b.low for b in bars], [b.high - b.mean for b in bars]])
        place = np.array(counts) + (k + 0.5) * width - 0.5 * _BAR
        axis.bar(place, middle, width, yerr=error, capsize=2, label=result.name)
    axis.set(xticks=counts, xlabel="locked joints", ylabel="progress in 60 s [m]")
    canvas.legend(loc="outside right upper", fontsize=8)


def draw_by_joint(canvas: Figure, single: Mapping[tuple[str, str], FloatArray]) -> None:
    """Draw progress against the failed joint; ``single`` has (kind, contender) -> (J,)."""
    kinds = list(dict.fromkeys(kind for kind, _ in single))
    axes = np.atleast_1d(canvas.subplots(1, len(kinds), sharey=True))
    for axis, kind in zip(axes, kinds, strict=True):
        names = [name for k, name in single if k == kind]
        for number, name in enumerate(names):
            values = single[kind, name]
            axis.plot(np.arange(1, values.size + 1), values, "o-", ms=4, c=f"C{number}",
                      label=name if kind == kinds[0] else None)  # fmt: skip
        axis.axhline(0.0, color="k", lw=0.6)
        axis.set(title=f"one joint {kind}", xlabel="failed joint (1: tail)")
    axes[0].set_ylabel("progress in 60 s [m]")
    canvas.legend(loc="outside lower center", ncols=3, fontsize=9)
