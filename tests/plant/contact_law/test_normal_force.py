"""Normal force laws against closed forms and against scipy's integration of the same or of a textbook law."""

import math

import numpy as np
import pytest
from smooth_cases import FORCE_LAWS, law_rebound, rebound, table

from plant.contact_law import normal_force
from plant.contact_law.material import LawError, force_law
from plant.contact_law.model import Law
from plant.contact_law.normal_force import normal

SPEEDS = [0.1, 0.3, 1.0]
MASS = 0.7


@pytest.mark.parametrize("law", FORCE_LAWS)
def test_derivatives_are_those_of_the_force(law: Law) -> None:
    rng = np.random.default_rng(1)
    p = table(law, restitution=0.6, adhesion=2.0)
    for _ in range(500):
        depth, rate, first = 10 ** rng.uniform(-5, -2), rng.uniform(-0.3, 1), rng.uniform(0.3, 1)
        _, by_depth, by_rate = normal(p, 0, depth, rate, first, MASS)
        step = 1e-5 * depth
        slope = normal(p, 0, depth + step, rate, first, MASS)[0] - normal(p, 0, depth - step, rate, first, MASS)[0]
        assert by_depth == pytest.approx(slope / (2 * step), rel=1e-5, abs=1e-3)
        slope = normal(p, 0, depth, rate + 1e-5, first, MASS)[0] - normal(p, 0, depth, rate - 1e-5, first, MASS)[0]
        assert by_rate == pytest.approx(slope / 2e-5, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("law", FORCE_LAWS)
def test_a_law_never_pulls_and_adhesion_is_all_that_does(law: Law) -> None:
    sticky, dry = table(law, restitution=0.2, adhesion=3.0), table(law, restitution=0.2)
    for depth in (1e-9, 1e-6, 1e-3):
        for rate in (-100.0, -1.0, 0.0, 1.0):
            force = normal(dry, 0, depth, rate, 0.5, MASS)[0]
            assert force >= 0.0
            assert normal(sticky, 0, depth, rate, 0.5, MASS)[0] == pytest.approx(force - 3.0)
    assert normal(dry, 0, 1e-3, -100.0, 0.5, MASS) == (0.0, 0.0, 0.0)
    assert normal(sticky, 0, 0.0, 1.0, 0.5, MASS) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("law", FORCE_LAWS)
def test_no_cycle_gains_energy(law: Law) -> None:
    """Depths that swing as they like, driven from outside: what goes in is never less than what comes out."""
    rng = np.random.default_rng(2)
    p = table(law, restitution=0.9)
    for _ in range(10):
        t = np.linspace(0, 2 * np.pi, 1501)
        amplitude, swing = 10 ** rng.uniform(-5, -3), 10 ** rng.uniform(0, 4)
        shape = np.cumsum([c * np.sin(k * t + s) for k, (c, s) in enumerate(rng.uniform(-1, 1, (4, 2)), 1)], 0)[-1]
        depth = amplitude * (shape - rng.uniform(-1, 1))
        rate = np.gradient(depth, t[1]) * swing
        work = [normal(p, 0, d, r, 0.3, MASS)[0] * r for d, r in zip(depth, rate, strict=True)]
        scale = np.trapezoid(np.abs(work), t)
        assert np.trapezoid(work, t) >= -1e-4 * scale


@pytest.mark.parametrize("speed", SPEEDS)
@pytest.mark.parametrize("restitution", [0.8, 0.9, 0.95])
def test_hunt_crossley_has_its_restitution_where_it_is_valid(speed: float, restitution: float) -> None:
    """Within 5 % from 0.8 upwards, whatever the speed; and always what the closed form says it has."""
    p = table(Law.HUNT_CROSSLEY, restitution=restitution)
    seen = law_rebound(p, MASS, speed)
    assert seen == pytest.approx(restitution, rel=0.05)
    assert seen == pytest.approx(normal_force.own_restitution(p.hysteresis[0]), rel=1e-5)


@pytest.mark.parametrize("law", [Law.HUNT_CROSSLEY, Law.LANKARANI_NIKRAVESH])
@pytest.mark.parametrize("restitution", [0.2, 0.5])
def test_hysteretic_laws_bounce_more_than_asked_for_where_they_are_not_valid(law: Law, restitution: float) -> None:
    p = table(law, restitution=restitution)
    seen = law_rebound(p, MASS, 0.5)
    assert seen > 1.2 * restitution
    assert seen == pytest.approx(normal_force.own_restitution(p.hysteresis[0]), rel=1e-5)


@pytest.mark.parametrize("restitution", [0.1, 0.4, 0.7, 0.95])
def test_exact_hysteresis_has_the_restitution_that_was_asked_for(restitution: float) -> None:
    p = table(Law.HUNT_CROSSLEY, hysteresis=normal_force.exact_hysteresis(restitution), exponent=1.3)
    assert law_rebound(p, MASS, 0.4) == pytest.approx(restitution, rel=1e-4)


@pytest.mark.parametrize("restitution", [0.05, 0.135, 0.3, 0.6, 0.9])
def test_kelvin_voigt_has_its_restitution(restitution: float) -> None:
    p = table(Law.KELVIN_VOIGT, restitution=restitution)
    assert law_rebound(p, MASS, 0.3) == pytest.approx(restitution, rel=1e-4)


@pytest.mark.parametrize("restitution", [0.3, 0.6, 0.9])
def test_smc_is_tsuji_damping_on_hertz(restitution: float) -> None:
    """The damping constant leaves exactly e if the end may pull (Antypov and Elliott 2011); as it may not, a contact is
    livelier, the more it is damped."""
    k, log = 1e6, math.log(restitution)
    alpha = -log * math.sqrt(5.0 / (log * log + math.pi**2))

    def textbook(d: float, r: float) -> float:
        return k * max(d, 0) ** 1.5 + alpha * math.sqrt(MASS * k) * max(d, 0) ** 0.25 * r

    assert rebound(textbook, MASS, 0.3) == pytest.approx(restitution, rel=1e-3)
    seen = law_rebound(table(Law.SMC, restitution=restitution), MASS, 0.3)
    assert seen == pytest.approx(rebound(lambda d, r: max(textbook(d, r), 0), MASS, 0.3), rel=1e-5)
    assert restitution < seen < restitution + 0.15 * (1 - restitution)


def test_wang_loses_more_the_faster_it_is() -> None:
    """e = 1 - a v for small a v (Hunt and Crossley)."""
    p = table(Law.WANG, dissipation=0.05, exponent=1.5, shear_stiffness=1e4)
    for speed in SPEEDS:
        assert 1.0 - law_rebound(p, MASS, speed) == pytest.approx(0.05 * speed, rel=0.05)


def test_hertz_stiffness_is_that_of_johnson() -> None:
    """Approach of two steel balls under 100 N: (9 F^2 / 16 R E^2)^(1/3), Johnson eq. 4.23; a plane has 1/R = 0."""
    e = 210e9 / (2 * (1 - 0.09))
    for radius, curve in ((0.02, 0.02), ((0.03, 0.06), 0.02)):
        depth = (9 * 100.0**2 / (16 * curve * e**2)) ** (1 / 3)
        assert normal_force.hertz_stiffness(210e9, 0.3, radius) * depth**1.5 == pytest.approx(100.0)
    rubber = normal_force.hertz_stiffness((210e9, 5e6), (0.3, 0.5), 0.02)
    assert rubber == pytest.approx(4 / 3 * 5e6 / 0.75 * math.sqrt(0.02), rel=1e-4)
    # Mindlin: the ratio of shear to normal stiffness is 2 (1 - v) / (2 - v)
    shear = normal_force.mindlin_stiffness(210e9, 0.3, 0.02)
    assert shear / (1.5 * normal_force.hertz_stiffness(210e9, 0.3, 0.02)) == pytest.approx(2 * 0.7 / 1.7)
    given = force_law("smc", {"stiffness": normal_force.hertz_stiffness(210e9, 0.3, 0.02)})
    assert given.shear_stiffness == pytest.approx(shear)


@pytest.mark.parametrize(
    ("law", "given", "word"),
    [
        ("hertz", {}, "hunt_crossley"),
        ("hunt_crossley", {}, "stiffness, or young and radius"),
        ("hunt_crossley", {"young": 1e9}, "young and radius"),
        ("hunt_crossley", {"young": 1e9, "radius": 0.1, "stiffness": 1.0}, "needs"),
        ("hunt_crossley", {"young": 1e9, "radius": 0.1, "exponent": 1.2}, "exponent 1.5"),
        ("hunt_crossley", {"stiffness": 1e5, "damping": 3.0}, "takes no damping"),
        ("hunt_crossley", {"stiffness": 1e5, "restitution": 1.2}, "at most 1"),
        ("hunt_crossley", {"stiffness": -1e5}, "above 0"),
        ("hunt_crossley", {"stiffness": 1e5, "friction": 0.5, "stiction": 0.4}, "stiction"),
        ("hunt_crossley", {"stiffness": (1e5, 1e5)}, "one number"),
        ("kelvin_voigt", {"stiffness": math.inf}, "stiffness"),
        ("wang", {"stiffness": 1e5, "exponent": 1.5}, "shear_stiffness"),
        ("smc", {"young": 1e9, "radius": 0.1, "poisson": 0.7}, "at most 0.5"),
    ],
)
def test_what_cannot_be_is_refused(law: str, given: dict[str, float], word: str) -> None:
    with pytest.raises(LawError, match=word):
        force_law(law, given)
