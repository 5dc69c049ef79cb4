"""Normal forces of smooth contacts over the depth d > 0 and its rate r = d depth / dt, positive while approaching.

    HUNT_CROSSLEY        F = k d^n (1 + b r / r0),  b = 3 (1 - e) / 2                        Luaces eq. 3.1
    LANKARANI_NIKRAVESH  the same with b = 3 (1 - e^2) / 4
    KELVIN_VOIGT         F = k d + c r,  c given, or 2 z sqrt(k m) with the damping ratio z that leaves restitution e
    SMC                  F = k d^1.5 + 2 z sqrt(5 S m / 6) r,  S = 3/2 k sqrt(d)             Koerner eq. 2.16, 2.17
    WANG                 F = k d^n (1 + 3/2 a r) + c r                                       Wang eq. 9, 12, 13

r0 is the speed at which the contact began, e the restitution, m the effective mass of the contact. A law never pulls:
where the damping of a fast departure would, F = 0. Adhesion A [N] is taken off afterwards, so touching surfaces hold
each other with up to A.

What restitution a law really has: with F = k d^n (1 + b r / r0) the work of the damping closes to

    b - ln(1 + b) = -e b - ln(1 - e b)

whatever k, n, m and r0 are. The b of Hunt and Crossley and of Lankarani and Nikravesh are its limits for e near 1:
asked for 0.9 they give 0.909 and 0.913, asked for 0.5 they give 0.66 and 0.73. `exact_hysteresis` solves it for b.

Against the sources: eq. 3.4 and 3.5 print a minus too many (K and C of a contact that pushes back are positive along n)
and 3.4 the first depth where the first speed is meant; eq. 2.16 has the root of R d in front and eq. 2.17 again
in k_n: once is right; the shear modulus of eq. 2.19 is (sum of 2 (2 - v)(1 + v) / E)^-1 as in Mindlin's work, with the
signs the other way round.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from hilnode.core.jit import inline, kernel
from plant.contact_law.model import Law

HUNT_CROSSLEY, LANKARANI_NIKRAVESH = int(Law.HUNT_CROSSLEY), int(Law.LANKARANI_NIKRAVESH)
KELVIN_VOIGT, SMC = int(Law.KELVIN_VOIGT), int(Law.SMC)
WANG = int(Law.WANG)
SLOWEST = 1e-6  # [m/s] a first speed below it is none: the laws divide by it
SHALLOW = 1e-9  # [m] SMC's damping grows with d^1/4: its slope is taken no nearer to the surface
FIVE_SIXTHS = 2.0 * math.sqrt(5.0 / 6.0)
STIFFEST = 10.0  # damping ratio of a linear contact that practically does not bounce (e = 0.002)


@inline
def power(depth, exponent):
    """depth^exponent and its derivative; the usual exponents without a logarithm."""
    if exponent == 1.5:
        root = math.sqrt(depth)
        return depth * root, 1.5 * root
    if exponent == 1.0:
        return depth, 1.0
    s = depth ** (exponent - 1.0)
    return depth * s, exponent * s


@inline
def _hysteretic(k, exponent, share, depth, rate):
    """k d^n (1 + share * rate)."""
    s, slope = power(depth, exponent)
    grow = 1.0 + share * rate
    return k * s * grow, k * slope * grow, k * s * share


@inline
def _hertz_damped(k, ratio, depth, rate, mass):
    """k d^1.5 + g d^1/4 rate."""
    root = math.sqrt(depth)
    g = FIVE_SIXTHS * ratio * math.sqrt(1.5 * k * max(mass, 0.0))
    quarter = math.sqrt(root)
    near = max(depth, SHALLOW)
    bend = 0.25 * g * math.sqrt(math.sqrt(near)) / near * rate
    return k * depth * root + g * quarter * rate, 1.5 * k * root + bend, g * quarter


@kernel
def normal(p, i, depth, rate, first_rate, mass):
    """Force [N], d force / d depth [N/m], d force / d rate [N s/m] of material pair `i`.

    `rate` is d depth / dt [m/s], `first_rate` the speed at which the contact began [m/s], `mass` [kg] effective.
    """
    if not depth > 0.0:
        return 0.0, 0.0, 0.0
    law, k = p.law[i], p.stiffness[i]
    if law == HUNT_CROSSLEY or law == LANKARANI_NIKRAVESH:
        f, df, dr = _hysteretic(k, p.exponent[i], p.hysteresis[i] / max(first_rate, SLOWEST), depth, rate)
    elif law == KELVIN_VOIGT:
        c = p.damping[i] + 2.0 * p.damping_ratio[i] * math.sqrt(k * max(mass, 0.0))
        f, df, dr = k * depth + c * rate, k, c
    elif law == SMC:
        f, df, dr = _hertz_damped(k, p.damping_ratio[i], depth, rate, mass)
    elif law == WANG:
        f, df, dr = _hysteretic(k, p.exponent[i], 1.5 * p.dissipation[i], depth, rate)
        f, dr = f + p.damping[i] * rate, dr + p.damping[i]
    else:
        return 0.0, 0.0, 0.0
    if not f > 0.0:
        f, df, dr = 0.0, 0.0, 0.0
    return f - p.adhesion[i], df, dr


Pair = float | Sequence[float]


def _both(value: Pair) -> tuple[float, ...]:
    """The value of each of the two sides; a single one holds for both."""
    both = (value, value) if isinstance(value, int | float) else tuple(float(v) for v in value)
    if len(both) != 2:
        raise ValueError(f"one value, or one for each of the two materials, not {value!r}")
    return both


def effective_young(young: Pair, poisson: Pair) -> float:
    """1 / sum of (1 - v^2) / E [Pa] (Luaces eq. 3.3, Koerner eq. 2.19)."""
    return 1.0 / sum((1 - v * v) / e for e, v in zip(_both(young), _both(poisson), strict=True))


def effective_shear(young: Pair, poisson: Pair) -> float:
    """1 / sum of 2 (2 - v)(1 + v) / E [Pa] (Koerner eq. 2.19 with its signs corrected)."""
    return 1.0 / sum(2 * (2 - v) * (1 + v) / e for e, v in zip(_both(young), _both(poisson), strict=True))


def effective_radius(radius: Pair) -> float:
    """R1 R2 / (R1 + R2) [m]; a single one is that of a sphere on a plane."""
    return float(radius) if isinstance(radius, int | float) else 1.0 / sum(1.0 / r for r in _both(radius))


def hertz_stiffness(young: Pair, poisson: Pair, radius: Pair) -> float:
    """k of F = k d^1.5 [N/m^1.5] for round surfaces (Luaces eq. 3.2).

    `young` [Pa] and `poisson` one for both materials or one for each; `radius` [m] of a sphere on a plane, or of two
    spheres. Flat surfaces have none: there the user gives a stiffness.
    """
    return 4.0 / 3.0 * effective_young(young, poisson) * math.sqrt(effective_radius(radius))


def mindlin_stiffness(young: Pair, poisson: Pair, radius: Pair) -> float:
    """k of the shear stiffness k sqrt(d) [N/m^1.5] (Koerner eq. 2.18)."""
    return 8.0 * effective_shear(young, poisson) * math.sqrt(effective_radius(radius))


def own_restitution(hysteresis: float) -> float:
    """Restitution that F = k d^n (1 + hysteresis r / r0) really has."""
    if hysteresis <= 0.0:
        return 1.0
    work = hysteresis - math.log1p(hysteresis)
    return _root(lambda u: -u - math.log1p(-u) - work, 0.0, 1.0 - 1e-15) / hysteresis


def exact_hysteresis(restitution: float) -> float:
    """Hysteresis with which a contact really has this restitution, for restitutions above 0.01."""
    if restitution >= 1.0:
        return 0.0
    if restitution < 0.01:
        raise ValueError(f"restitution {restitution}: below 0.01 the law needs more hysteresis than makes sense")
    return _root(lambda b: restitution - own_restitution(b), 0.0, 100.0)


def linear_restitution(ratio: float) -> float:
    """Restitution of a linear spring and damper that never pulls, by its damping ratio: the contact ends where the
    force is zero, before the surfaces part (Schwager and Poeschel 2007)."""
    if ratio < 1.0:
        root = math.sqrt(1.0 - ratio * ratio)
        return math.exp(-ratio / root * math.atan2(2.0 * ratio * root, 2.0 * ratio * ratio - 1.0))
    if ratio == 1.0:
        return math.exp(-2.0)
    root = math.sqrt(ratio * ratio - 1.0)
    return math.exp(-ratio / root * math.log((ratio + root) / (ratio - root)))


def linear_damping_ratio(restitution: float) -> float:
    """Damping ratio with which a linear contact has this restitution; at most STIFFEST."""
    if restitution <= linear_restitution(STIFFEST):
        return STIFFEST
    return _root(lambda z: restitution - linear_restitution(z), 0.0, STIFFEST)


def hertz_damping_ratio(restitution: float) -> float:
    """Of SMC: -ln e / sqrt(ln^2 e + pi^2), as Chrono has it. Exact if the end of a contact may pull; as it may not,
    0.9 becomes 0.902, 0.6 becomes 0.63 and 0.3 becomes 0.40."""
    log = math.log(max(restitution, 1e-4))
    return -log / math.sqrt(log * log + math.pi * math.pi)


def _root(f: Callable[[float], float], low: float, high: float) -> float:
    """Where the rising function `f` is zero, by halving."""
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if f(middle) < 0.0 else (low, middle)
    return 0.5 * (low + high)
