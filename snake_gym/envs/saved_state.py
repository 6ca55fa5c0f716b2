"""Restoring of a saved state into an env: all of it is checked before any of it is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snake_gym.config.errors import show

Arrays = Mapping[str, NDArray[Any]]


def write_state(
    own: Arrays, state: Mapping[str, Any], at_first: Arrays, check: Callable[[Arrays], None] = lambda arrays: None
) -> None:
    """Write the arrays or lists of ``state`` into those of ``own``, which have the same names, shapes and kinds.

    Arrays with infinite or NaN entries ``at_first`` (such as future times) may have them again; no others may.
    ``check`` raises ValueError for faults that nobody has registered.

    Raises ValueError for another name, shape or kind, or a number that is not finite; then nothing is written.
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
    if own.dtype.kind == "f":
        allowed = np.isfinite(kept)
        allowed |= np.isnan(kept) & np.isnan(at_first).any()
        allowed |= np.isinf(kept) & np.isinf(at_first).any()
        if not allowed.all():
            place = tuple(np.argwhere(~allowed)[0].tolist())
            raise ValueError(f"env state {name} holds {kept[place]} at {list(place)}; expected finite numbers")
    return kept
