"""Newmark, HHT and generalized-alpha: which end of the spectral radius dissipates, and their order."""

from itertools import pairwise

import numpy as np
import pytest
from mechanisms import FourBar, natural

from plant.natural.integrators import Integrator, generalized_alpha, hht, newmark
from plant.world.checks import WorldError
from plant.world.world import World

FAST = 1e5  # frequency times step


def amplification(method: Integrator, z: float) -> np.ndarray:
    """(q, h v, h^2 a) after one step of q'' = -w^2 q, z = w h: Newmark's formulas and the balance of forces."""
    beta, gamma, dm, df = method
    after = np.array([[1.0, 0.0, -beta], [0.0, 1.0, -gamma], [(1 - df) * z**2, 0.0, 1 - dm]])
    before = np.array([[1.0, 1.0, 0.5 - beta], [0.0, 1.0, 1 - gamma], [-df * z**2, 0.0, -dm]])
    return np.linalg.solve(after, before)


def spectral_radius(method: Integrator, z: float) -> float:
    return float(np.abs(np.linalg.eigvals(amplification(method, z))).max())


@pytest.mark.parametrize("radius", [0.0, 0.2, 0.5, 0.8, 1.0])
def test_the_radius_is_what_is_left_of_a_fast_oscillation(radius: float) -> None:
    """So one keeps everything, and zero kills: the text beside eq. 2.47 says the contrary."""
    assert spectral_radius(generalized_alpha(radius), FAST) == pytest.approx(radius, abs=2e-3)


@pytest.mark.parametrize(
    "method", [newmark(), generalized_alpha(1.0), hht(0.0)], ids=["trapezoidal", "radius 1", "hht 0"]
)
def test_methods_without_dissipation_keep_every_frequency(method: Integrator) -> None:
    for z in (0.01, 1.0, 100.0):
        assert spectral_radius(method, z) == pytest.approx(1.0, abs=1e-9)


def test_hht_dissipates_more_with_its_parameter() -> None:
    radii = [spectral_radius(hht(df), FAST) for df in (0.0, 0.1, 0.2, 1 / 3)]
    assert all(a > b for a, b in pairwise(radii))
    assert radii[-1] == pytest.approx(0.5, abs=1e-3)


@pytest.mark.parametrize("method", [newmark(), hht(0.2), generalized_alpha(0.0), generalized_alpha(0.8)])
def test_slow_oscillations_are_followed_to_second_order(method: Integrator) -> None:
    """The error of the eigenvalue exp(i z) in a step is of third order in z."""
    errors = []
    for z in (0.2, 0.1, 0.05):
        values = np.linalg.eigvals(amplification(method, z))
        errors.append(np.abs(values - np.exp(1j * z)).min())
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert orders.min() > 2.8


@pytest.mark.parametrize("call", [lambda: newmark(0.1, 0.5), lambda: hht(0.5), lambda: generalized_alpha(1.2)])
def test_methods_that_are_not_stable_are_refused(call: object) -> None:
    with pytest.raises(WorldError, match=r"stable|between"):
        call()  # type: ignore[operator]


@pytest.mark.parametrize("radius", [0.5, 0.9, 1.0])
def test_the_core_damps_a_stiff_spring_as_its_radius_says(radius: float) -> None:
    """A mass on a spring of 1e12 N/m, far beyond what the step can follow: the amplitude falls by the radius each step
    until only the slow part is left."""
    world = World(gravity=(0, 0, 0))
    world.body("mass", mass=1.0, inertia=(0.1, 0.1, 0.1), pos=(1.0, 0, 0), vel=(0.1, 0, 0))
    world.prismatic("rail", None, "mass", at=(0, 0, 0), axis=(1, 0, 0))
    world.spring("stiff", None, "mass", at_a=(0, 0, 0), at_b=(1.0, 0, 0), stiffness=1e12)
    engine = natural(world, integrator=generalized_alpha(radius), iterations=4)
    steps = 12
    seen = []
    for _ in range(steps):
        assert engine.step() == 0
        seen.append(abs(engine.position("mass")[0] - 1.0) + 1e-30)
    # a double root makes the first steps grow by their number; ratios over several steps settle on the radius
    ratio = (seen[-1] / seen[-5]) ** 0.25
    assert ratio == pytest.approx(spectral_radius(generalized_alpha(radius), 1e3), rel=0.25)


STEPS = 8  # in each period of a four-bar that swings


def decay_of_a_four_bar(radius: float) -> float:
    """What a period leaves of the energy of a small swing of a four-bar."""
    four_bar = FourBar()
    turn, frequency = four_bar.rest()
    world = four_bar.hanging(turn + 0.003)
    engine = natural(world, 2 * np.pi / frequency / STEPS, integrator=generalized_alpha(radius), iterations=8)
    low, seen = four_bar.terms(turn)[1], []
    periods = 10 if radius < 0.8 else 80  # as long as something is left
    for _ in range(periods + 1):
        block = []
        for _ in range(STEPS):
            assert engine.step() == 0
            block.append(engine.energy() - low)
        seen.append(np.mean(block))
    return float((seen[-1] / seen[0]) ** (1 / periods))


@pytest.mark.parametrize("radius", [0.0, 0.5, 0.8, 0.9, 1.0])
def test_a_four_bar_loses_what_the_radius_says_in_each_period(radius: float) -> None:
    """A mechanism with a loop and projections dissipates as one oscillator with its frequency does: within a tenth of
    the loss, or of that for a radius of 0.9, which is told from 1."""
    predicted, near = (spectral_radius(generalized_alpha(r), 2 * np.pi / STEPS) ** (2 * STEPS) for r in (radius, 0.9))
    seen = decay_of_a_four_bar(radius)
    print(f"radius {radius}: a period leaves {seen:.6f} of the energy, predicted {predicted:.6f}")
    assert seen == pytest.approx(predicted, abs=0.1 * max(1 - predicted, 1 - near))
