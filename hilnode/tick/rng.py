"""Seeded noise without state outside the caller's arrays: the same seed gives the same run.

Ref: S. Vigna, splitmix64 (a fixed-increment version of Java 8's SplittableRandom); G. Box, M. Muller, 1958.
"""

from __future__ import annotations

import math

import numpy as np

from hilnode.jit import inline

_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)


@inline
def uniform(state, k):
    """Next number in (0, 1) of generator `k`."""
    state[k] += _STEP
    z = state[k]
    z = (z ^ (z >> _S30)) * _MIX1
    z = (z ^ (z >> _S27)) * _MIX2
    z = z ^ (z >> _S31)
    return (float(z >> _S11) + 0.5) / 9007199254740992.0


@inline
def normal(state, k):
    """Next standard normal number of generator `k`."""
    r = math.sqrt(-2.0 * math.log(uniform(state, k)))
    return r * math.cos(2.0 * math.pi * uniform(state, k))
