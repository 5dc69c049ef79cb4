"""The whole force of a smooth contact: derivatives, cone, memory; and Luaces' two experiments on a line."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from smooth_cases import FORCE_LAWS, ride, table

from plant.contact_law.bristle import contact_law
from plant.contact_law.model import Law, Response, Smooth, new_response

BRISTLES = [Law.HUNT_CROSSLEY, Law.LANKARANI_NIKRAVESH, Law.KELVIN_VOIGT]
GIVEN = {"bristle_stiffness": 2e4, "bristle_damping": 50.0, "stick_speed": 0.05, "strain": 0.9}
H, MASS = 1e-3, 0.7
Vector = NDArray[np.float64]


def rough(law: Law, *, given: bool = False) -> Smooth:
    more = GIVEN if given and law in BRISTLES else {}
    if law == Law.WANG:
        more = {"damping": 20.0, "exponent": 1.2, "shear_stiffness": 3e4, "shear_damping": 15.0}
    if law == Law.KELVIN_VOIGT or law == Law.WANG:
        return table(law, friction=0.4, stiction=0.6, viscous=0.7, adhesion=1.0, **more)
    return table(law, friction=0.4, stiction=0.6, viscous=0.7, adhesion=1.0, restitution=0.6, **more)


def at(p: Smooth, n: Vector, depth: float, s: Vector, v: Vector, out: Response) -> Vector:
    contact_law(p, 0, *n, depth, -n @ v, 0.4, *s, *s, *v, MASS, H, out)
    return out.force.copy()


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("law", FORCE_LAWS)
def test_derivatives_are_those_of_the_force(law: Law, given: bool) -> None:
    """Central differences; a state within a difference of a kink (the cone, a force that ends) may fail: few do."""
    rng, p, out, wrong = np.random.default_rng(3), rough(law, given=given), new_response(), 0
    for _ in range(300):
        n = rng.normal(size=3)
        n /= np.linalg.norm(n)
        depth = 10 ** rng.uniform(-4, -2)
        s, v = rng.normal(size=3) * 10 ** rng.uniform(-5, -3), rng.normal(size=3) * 10 ** rng.uniform(-3, 0)
        force = at(p, n, depth, s, v, out)
        stiffness, damping = out.stiffness.copy(), out.damping.copy()
        by_x, by_v = np.zeros((3, 3)), np.zeros((3, 3))
        dx, dv = 1e-5 * depth, 1e-6 * float(np.linalg.norm(v))
        for c, axis in enumerate(np.eye(3)):
            x, u = dx * axis, dv * axis
            by_x[:, c] = at(p, n, depth + n @ x, s - x, v, out) - at(p, n, depth - n @ x, s + x, v, out)
            by_v[:, c] = at(p, n, depth, s, v - u, out) - at(p, n, depth, s, v + u, out)
        least = 1e-3 * np.linalg.norm(force)
        near = abs(stiffness - by_x / (2 * dx)).max() < 1e-5 * max(abs(stiffness).max(), least)
        wrong += not (near and abs(damping - by_v / (2 * dv)).max() < 1e-5 * max(abs(damping).max(), least))
    assert wrong <= 2


@pytest.mark.parametrize("law", FORCE_LAWS)
def test_derivatives_of_a_contact_that_sticks_are_symmetric(law: Law) -> None:
    out, n = new_response(), np.array([0.0, 0.6, 0.8])
    at(rough(law), n, 1e-3, np.array([1e-6, 0, 0]), np.zeros(3), out)
    assert out.damping == pytest.approx(out.damping.T)
    across = np.array([[0.0, 0.8, -0.6], [1.0, 0, 0]])
    assert across @ (out.stiffness - out.stiffness.T) @ across.T == pytest.approx(np.zeros((2, 2)))
    assert np.linalg.eigvalsh(0.5 * (out.stiffness + out.stiffness.T)).min() > 0


@pytest.mark.parametrize("law", FORCE_LAWS)
def test_friction_stays_in_its_cone(law: Law) -> None:
    rng, p, out = np.random.default_rng(4), rough(law), new_response()
    for _ in range(2000):
        n = rng.normal(size=3)
        n /= np.linalg.norm(n)
        s, v = rng.normal(size=3) * 10 ** rng.uniform(-7, -1), rng.normal(size=3) * 10 ** rng.uniform(-5, 1)
        s -= n * (n @ s)
        force = at(p, n, 1e-3, s, v, out)
        across, slip = force - n * (n @ force), v - n * (n @ v)
        load = n @ force + 1.0
        limit = (0.6 if law in BRISTLES else 0.4) * load + 0.7 * float(np.linalg.norm(slip))
        assert load >= -1e-12
        assert np.linalg.norm(across) <= limit + 1e-9
        assert abs(n @ out.stretch) < 1e-12


@pytest.mark.parametrize("law", FORCE_LAWS)
def test_anything_finite_gives_something_finite(law: Law) -> None:
    p, out, n = rough(law), new_response(), np.array([0.0, 0, 1])
    for depth in (-1.0, 0.0, 1e-300, 1e-9, 1e3):
        for size in (0.0, 1e-300, 1e-9, 1e9):
            for first, mass in ((0.0, 0.0), (1.0, 1e9)):
                v = size * np.array([1.0, -1.0, 0.3])
                contact_law(p, 0, *n, depth, -v[2], first, *(size * n), *(size * n), *v, mass, H, out)
                for part in out:
                    assert np.isfinite(part).all()


def test_bristles_that_give_way_keep_the_stretch_of_their_limit() -> None:
    """strain * mu_s L / k along the slip (Luaces eq. 3.15); below the limit nothing is lost."""
    p, out, n = rough(Law.HUNT_CROSSLEY, given=True), new_response(), np.array([0.0, 0, 1])
    slip = np.array([0.3, 0.4, 0.0])
    force = at(p, n, 1e-3, np.zeros(3), slip, out)
    assert out.stretch == pytest.approx(0.9 * 0.6 * (force[2] + 1.0) / 2e4 * slip / 0.5)
    at(p, n, 1e-3, np.array([1e-5, 2e-5, 0.0]), np.zeros(3), out)
    assert out.stretch == pytest.approx([1e-5, 2e-5, 0.0])


def test_wang_creeps_to_its_limit_with_its_own_time_constant() -> None:
    """Sliding on: c ds/dt = mu L - k s, an exponential with the time c / k."""
    p, out = rough(Law.WANG), new_response()
    s, h, slip = 0.0, 1e-6, 2.0
    seen = []
    for _ in range(2000):
        now, before, speed = (s + h * slip, 0.0, 0.0), (s, 0.0, 0.0), (slip, 0.0, 0.0)
        contact_law(p, 0, 0.0, 0.0, 1.0, 1e-3, 0.0, 1.0, *now, *before, *speed, MASS, h, out)
        s = out.stretch[0]
        seen.append(s)
    limit = 0.4 * (out.force[2] + 1.0) / 3e4
    t = h * np.arange(1, 2001)
    assert seen == pytest.approx(limit * (1 - np.exp(-t * 3e4 / 15.0)), abs=2e-3 * limit)


def test_luaces_mass_spring_with_coulomb_friction() -> None:
    """Luaces 3.3.1: amplitudes fall by 2 mu m g / k at each half swing; it sticks, until at 10 s the spring is made
    ten times as stiff. Closed form, half swing by half swing."""
    h, mu, g = 0.01, 0.02, 9.81
    # depth for a load of m g under a linear law; all else of the bristles from load, mass and step
    p = table(Law.KELVIN_VOIGT, stiffness=1e5, friction=mu)
    seen = ride(p, g / 1e5, h, 1300, (1.0, 0.0), lambda t: 1.0 if t < 10.0 else 10.0)
    t = h * np.arange(1301)
    truth = swings(t[:1001], 1.0, 1.0, mu * g)
    truth = np.append(truth, swings(t[1001:] - 10.0, truth[-1], 10.0, mu * g))
    assert truth[1000] == pytest.approx(6 * mu * g - 1.0)
    assert seen[:, 0] == pytest.approx(truth, abs=0.012)
    assert abs(seen[960:1000, 1]).max() < 1e-3


def swings(t: Vector, start: float, k: float, friction: float) -> Vector:
    """A mass of 1 kg let go at `start` on a spring `k`, with Coulomb friction."""
    out, half = np.zeros_like(t), math.pi / math.sqrt(k)
    for i, now in enumerate(t):
        x, left = start, now
        while abs(x) * k > friction:
            centre = math.copysign(friction / k, x)
            if left < half:
                x = centre + (x - centre) * math.cos(math.sqrt(k) * left)
                break
            x, left = 2 * centre - x, left - half
        out[i] = x
    return out


def test_bowden_leben_stick_slip() -> None:
    """Luaces 3.3.2 against an integration that switches between sticking and sliding: the spring lets go at mu_s m g
    over k, and the saw teeth have the right height and length."""
    h, belt, k = 1e-3, 0.05, 2.0
    p = table(
        Law.KELVIN_VOIGT,
        stiffness=1e5,
        friction=0.1,
        stiction=0.15,
        viscous=0.1,
        bristle_stiffness=1e5,
        bristle_damping=math.sqrt(1e5),
        stick_speed=1e-3,
    )
    seen = ride(p, 10.0 / 1e5, h, 40_500, (0.0, belt), lambda t: k, belt)[:, 0]
    top, least, slide = let_go(k, belt)
    tops = [i for i in range(1, len(seen) - 1) if seen[i - 1] < seen[i] >= seen[i + 1]]
    assert len(tops) == 3
    assert seen[tops] == pytest.approx(top, abs=0.004)
    assert seen[tops[0] :].min() == pytest.approx(least - 0.002, abs=0.004)
    period = slide + (0.75 - least) / belt
    assert np.diff(tops) * h == pytest.approx(period, rel=0.01)


def let_go(k: float, belt: float) -> tuple[float, float, float]:
    """The greatest position after letting go, where it sticks again, and when."""

    def motion(_: float, y: Vector) -> list[float]:
        return [y[1], -k * y[0] + 0.1 * 10.0 + 0.1 * (belt - y[1])]

    def sticks(t: float, y: Vector) -> float:
        return float(y[1] - belt) if t > 1e-3 else -1.0

    sticks.terminal, sticks.direction = True, 1  # type: ignore[attr-defined]
    run = solve_ivp(motion, (0.0, 10.0), [0.75, belt], events=sticks, rtol=1e-10, atol=1e-12)
    return float(run.y[0].max()), float(run.y[0, -1]), float(run.t[-1])
