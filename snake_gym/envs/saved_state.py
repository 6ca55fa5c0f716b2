"""Restoring of a saved state into an env: all of it is checked before any of it is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snake_gym.config.errors import show
from snake_gym.simulation.fault_kinds import check_codes

Arrays = Mapping[str, NDArray[Any]]


def write_state(own: Arrays, state: Mapping[str, Any], at_first: Arrays) -> None:
    """Write the arrays or lists of ``state`` into those of ``own``, which have the same names and shapes.

    Arrays with infinite or NaN entries ``at_first`` (such as future times) may have them again; no others may.

    Raises ValueError for another name or shape, a number that is not finite, or a fault of an unknown kind; then
    nothing is written.
    """
    if not isinstance(state, Mapping):
        raise ValueError(f"env state is {show(state)}; expected what get_state returned")
    if own.keys() != state.keys():
        odd = sorted(own.keys() ^ {str(name) for name in state})
        raise ValueError(f"env state has other parts than this env: {', '.join(odd)}")
    checked = {name: _as_kept(name, state[name], values, at_first[name]) for name, values in own.items()}
    for slot in ("fault", "second_fault"):
        check_codes(checked[f"{slot}/kind"])
    for name, values in own.items():
        values[...] = checked[name]


def _as_kept(name: str, given: Any, own: NDArray[Any], at_first: NDArray[Any]) -> NDArray[Any]:
    """Return ``given`` as an array like ``own``."""
    kept = np.asarray(given, own.dtype)
    if kept.size == own.size == 0:  # lists do not tell the shape of nothing
        return own
    if kept.shape != own.shape:
        raise ValueError(f"env state {name} has shape {kept.shape}; expected {own.shape}")
    if np.isfinite(at_first).all() and not np.isfinite(kept).all():
        raise ValueError(f"env state {name} holds {kept[~np.isfinite(kept)][0]}; expected finite numbers")
    return kept
