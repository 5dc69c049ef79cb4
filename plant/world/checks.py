"""Checks of a world's description, and the error that they raise."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Vector = NDArray[np.float64]


class WorldError(ValueError):
    """A world that cannot be; the message names what is wrong with what."""


def three(what: str, given: ArrayLike) -> Vector:
    """Three finite numbers."""
    v = np.array(given, float)
    if v.shape != (3,) or not np.isfinite(v).all():
        raise WorldError(f"{what} = {given!r}: must be three finite numbers")
    return v


def distance_between(name: str, a: ArrayLike, b: ArrayLike) -> float:
    """Distance of two points that must not be one."""
    far = float(np.linalg.norm(three(f"{name!r}: at_b", b) - three(f"{name!r}: at_a", a)))
    if not far > 0:
        raise WorldError(f"{name!r}: at_a and at_b are the same point")
    return far
