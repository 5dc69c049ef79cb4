"""Seeded noise as a function of seed and step, with no state: the same seed gives the same run, whatever came before.

Ref: G. Box, M. Muller, 1958, over the numbers of splitmix64.
"""

from __future__ import annotations

import math

import numpy as np

from hilnode.core.jit import inline
from hilnode.core.splitmix64 import MANTISSA, STEP, UNIT, mix


@inline
def uniform(seed, slot, step, draw):
    """A number in (0, 1) for this seed, slot and step; `draw` tells several of one step apart."""
    stream = mix(seed + STEP * np.uint64(slot + 1))
    z = mix(stream + STEP * np.uint64(2 * step + draw + 1))
    return (float(z >> MANTISSA) + 0.5) * UNIT


@inline
def normal(seed, slot, step):
    """A standard normal number for this seed, slot and step."""
    r = math.sqrt(-2.0 * math.log(uniform(seed, slot, step, 0)))
    return r * math.cos(2.0 * math.pi * uniform(seed, slot, step, 1))
