"""splitmix64: random bits as a function of a counter. Who adds STEP to a 64-bit counter and mixes it gets its stream.

Ref: S. Vigna's splitmix64 (G. L. Steele, D. Lea and C. H. Flood, Fast splittable pseudorandom number generators, OOPSLA
2014).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hilnode.core.jit import inline

STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_30, _27, _31 = np.uint64(30), np.uint64(27), np.uint64(31)

MANTISSA = np.uint64(11)  # shift that leaves the 53 bits of a float64's mantissa
UNIT = 1.0 / 9007199254740992.0  # 2^-53, of those bits to 0 .. 1


@inline
def mix(z: Any) -> Any:
    """Scramble 64 bits: each bit of `z` changes half of the bits of the result."""
    z = (z ^ (z >> _30)) * _FIRST
    z = (z ^ (z >> _27)) * _SECOND
    return z ^ (z >> _31)
