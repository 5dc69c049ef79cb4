"""Seeded noise as a function of seed and step, with no state: the same seed gives the same run, whatever came before.

Ref: S. Vigna, splitmix64; G. Box, M. Muller, 1958.
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
def _scramble(z):
    z = (z ^ (z >> _S30)) * _MIX1
    z = (z ^ (z >> _S27)) * _MIX2
    return z ^ (z >> _S31)


@inline
def uniform(seed, slot, step, draw):
    """A number in (0, 1) for this seed, slot and step; `draw` tells several of one step apart."""
    stream = _scramble(seed + _STEP * np.uint64(slot + 1))
    z = _scramble(stream + _STEP * np.uint64(2 * step + draw + 1))
    return (float(z >> _S11) + 0.5) / 9007199254740992.0


@inline
def normal(seed, slot, step):
    """A standard normal number for this seed, slot and step."""
    r = math.sqrt(-2.0 * math.log(uniform(seed, slot, step, 0)))
    return r * math.cos(2.0 * math.pi * uniform(seed, slot, step, 1))
