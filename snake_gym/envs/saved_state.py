"""Restoring of a saved state into an env: all of it is checked before any of it is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snake_gym.config.errors import show
from snake_gym.config.settings import LARGEST
from snake_gym.simulation.faults import SHORTEST_PERIOD_S

Arrays = Mapping[str, NDArray[Any]]


def write_state(
    own: Arrays, state: Mapping[str, Any], at_first: Arrays, check: Callable[[Arrays], None] = lambda arrays: None
) -> None:
    """Write the arrays or lists of ``state`` into those of ``own``, which have the same names, shapes and kinds.

    Arrays with infinite or NaN entries ``at_first`` (such as future times) may have them again; no others may.
    ``check`` raises ValueError for arrays that are valid one by one but inconsistent.

    Raises ValueError for another name, shape or kind, or an impossible number; then nothing is written.
    """
    if not isinstance(state, Mapping):
        raise ValueError(f"env state is {show(state)}; expected what get_state returned")
    if own.keys() != state.keys():
        odd = sorted(own.keys() ^ {str(name) for name in state})
        raise ValueError(f"env state has other parts than this env: {', '.join(odd)}")
    checked = {name: _as_kept(name, state[name], values, at_first[name]) for name, values in own.items()}
    check(checked)
    for name, values in own.items():
        values[...] = checked[name]


def _as_kept(name: str, given: Any, own: NDArray[Any], at_first: NDArray[Any]) -> NDArray[Any]:
    """Return ``given`` as an array like ``own``."""
    plain = np.asarray(given)
    if plain.size == own.size == 0:  # lists do not tell the shape of nothing
        return own
    if plain.shape != own.shape:
        raise ValueError(f"env state {name} has shape {plain.shape}; expected {own.shape}")
    kept = plain
    if plain.dtype != own.dtype:
        try:
            with np.errstate(invalid="ignore"):
                kept = np.array(given, dtype=own.dtype)
            changed = ~((kept == plain) | ((kept != kept) & (plain != plain)))  # NaN stays NaN
        except (TypeError, ValueError, OverflowError):
            changed = np.ones(own.shape, bool)
        if changed.any() or (plain.size and plain.dtype.kind not in "biuf"):
            wrong = plain[changed] if changed.any() else plain
            raise ValueError(f"env state {name} holds {show(wrong.ravel().tolist()[0])}; expected {own.dtype}")
    least = 0 if own.dtype.kind in "iu" else -np.inf
    if name == "episode":
        least = -1
    if name.endswith("period_s"):
        least = SHORTEST_PERIOD_S
    if (kept < least).any():
        raise ValueError(f"env state {name} holds {show(kept[kept < least].tolist()[0])}; expected >= {least:g}")
    if own.dtype.kind == "f":
        allowed = np.isfinite(kept)
        allowed |= np.isnan(kept) & np.isnan(at_first).any()
        allowed |= np.isinf(kept) & np.isinf(at_first).any()
        if name.endswith("_s"):
            allowed &= ~(np.abs(kept) > LARGEST) | np.isinf(kept)
        if not allowed.all():
            place = tuple(np.argwhere(~allowed)[0].tolist())
            expected = "finite numbers" + (f", at most {LARGEST:g}" if name.endswith("_s") else "")
            raise ValueError(f"env state {name} holds {kept[place]} at {list(place)}; expected {expected}")
    return kept
