"""What the identifications gave: rows and claims."""

from __future__ import annotations

from collections.abc import Sequence

from papers.irani2015.friction import TABLE_1, UNITS, Fit
from papers.study import Claim, Verdict

WITHIN = 0.1
"""Relative error of every coefficient that counts as recovered."""

Rows = list[list[float | str | None]]


def fit_rows(fits: Sequence[Fit]) -> tuple[list[str], Rows]:
    """Columns and rows, one for each fit; first the true values."""
    names = [f"{name} [{UNITS[name]}]" for name in TABLE_1]
    columns = ["method", "start", "seed", *names, "worst error [%]", "eq. 6 [%]", "simulated runs", "time [s]"]
    rows: Rows = [["true", "", None, *TABLE_1.values(), None, None, None, None]]
    for fit in fits:
        found = fit.found
        values = [found.values[name] for name in TABLE_1]
        tail = [100.0 * fit.worst(), 100.0 * found.head_error, float(found.n_simulations), found.seconds]
        rows.append([fit.method, fit.start, float(fit.seed), *values, *tail])
    return columns, rows


def claims_about_fits(fits: Sequence[Fit]) -> list[Claim]:
    """Whether each method, from each start, finds all five coefficients again."""
    claims = []
    for method, start in dict.fromkeys((fit.method, fit.start) for fit in fits):
        own = [fit for fit in fits if (fit.method, fit.start) == (method, start)]
        good = sum(fit.worst() <= WITHIN for fit in own)
        verdict: Verdict = "reproduced" if good == len(own) else "partly" if good else "not"
        worst = max(own, key=Fit.worst)
        which = max(worst.errors().items(), key=lambda item: abs(item[1]))
        runs = sum(fit.found.n_simulations for fit in own) / len(own)
        seconds = sum(fit.found.seconds for fit in own) / len(own)
        label = "Alternating variable search" if method == "avs" else "Least squares on whole paths (not in the paper)"
        note = (
            f"{good} of {len(own)} noise seeds with all five within 10 %; worst {100 * which[1]:+.1f} % ({which[0]}); "
            f"{runs:.0f} simulated runs and {seconds:.0f} s for each."
        )
        text = f"{label} identifies the five coefficients from noisy logs, from the {start} start"
        claims.append(Claim(text, "section 4, Table 1", verdict, note=note))
    return claims
