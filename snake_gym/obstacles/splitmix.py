"""Random hash SplitMix64 (Steele, Lea, Flood, Fast splittable pseudorandom number generators, OOPSLA 2014).

Number c of a stream is ``mix(key + c * GOLDEN)``, a function of the key alone, the same on every machine.
"""

from __future__ import annotations

from typing import Any

import numpy as np

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
TO_UNIT = 2.0**-53
"""Factor that brings the upper 53 bits of a hash into [0, 1)."""
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def mix(z: Any) -> Any:
    """Return the hash of 64-bit numbers, one or an array (uint64); kernels compile it."""
    z = (z ^ (z >> np.uint64(30))) * _MIX_1
    z = (z ^ (z >> np.uint64(27))) * _MIX_2
    return z ^ (z >> np.uint64(31))
