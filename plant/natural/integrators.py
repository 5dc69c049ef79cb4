"""Integrators as parameters of one formula: Newmark, HHT, generalized-alpha (Luaces eq. 2.12-2.13, 2.42-2.47).

All are one formula,

    M [(1 - dm) a+ + dm a] + (1 - df) [constraints - Q]+ + df [constraints - Q] = 0
    q+ = q + h v + h^2 / 2 [(1 - 2 beta) a + 2 beta a+]
    v+ = v + h [(1 - gamma) a + gamma a+]

with four numbers. Which end of the spectral radius dissipates: with the relations of 2.47, which are those of Chung and
Hulbert, `radius` is the factor by which the amplitude of an infinitely fast oscillation is multiplied in a step. So
radius = 1 keeps everything (dm = df = 1/2: the same dissipation as the trapezoidal rule, none), and radius = 0 kills
fast oscillations in one step. The text beside eq. 2.47 has it the other way round; the numbers do not
(`tests/plant/natural/test_natural_integrators.py` measures it).
"""

from __future__ import annotations

from typing import NamedTuple

from plant.world.checks import WorldError


class Integrator(NamedTuple):
    """Four numbers that make a method."""

    beta: float
    gamma: float
    dm: float
    df: float


def newmark(beta: float = 0.25, gamma: float = 0.5) -> Integrator:
    """Newmark's family; the trapezoidal rule if nothing is given."""
    if not (gamma >= 0.5 and beta >= gamma / 2):
        raise WorldError(
            f"newmark(beta={beta}, gamma={gamma}) is not stable: it takes gamma >= 1/2 and beta >= gamma/2"
        )
    return Integrator(beta, gamma, 0.0, 0.0)


TRAPEZOIDAL = newmark()


def hht(df: float = 0.1) -> Integrator:
    """Hilber, Hughes and Taylor (eq. 2.43-2.46): forces between the ends of the step; dissipates more with `df`."""
    if not 0.0 <= df <= 1.0 / 3.0:
        raise WorldError(f"hht(df={df}): df lies between 0 (trapezoidal rule) and 1/3 (most dissipation)")
    return Integrator((1.0 + df) ** 2 / 4.0, (1.0 + 2.0 * df) / 2.0, 0.0, df)


def generalized_alpha(radius: float = 0.8) -> Integrator:
    """Generalized-alpha (eq. 2.47 and after) by the spectral radius at infinite frequency: 1 keeps, 0 kills."""
    if not 0.0 <= radius <= 1.0:
        raise WorldError(f"generalized_alpha(radius={radius}): the radius lies between 0 and 1")
    dm = (2.0 * radius - 1.0) / (radius + 1.0)
    df = radius / (radius + 1.0)
    return Integrator((1.0 + df - dm) ** 2 / 4.0, 0.5 - dm + df, dm, df)
