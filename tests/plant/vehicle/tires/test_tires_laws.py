"""Each tire law against the curve that it is published with, computed here once more and in another way."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from plant.vehicle.tires.composite_slip import CompositeSlip
from plant.vehicle.tires.fiala import Fiala
from plant.vehicle.tires.laws import LAWS, code_of, law_force, law_peaks
from plant.vehicle.tires.magic_formula import MagicFormula
from plant.vehicle.tires.model import COLUMNS, Tire

F0, R = 4e4, 0.55
EVERY = sorted(LAWS)
LOADS = (0.1 * F0, 0.5 * F0, F0, 2.0 * F0)


def columns(law) -> np.ndarray:
    return np.array(law.columns(F0, R))


def force(law, fz, sx, sy, grip=1.0, half=0.15):
    return law_force(code_of(law), columns(law), fz, grip, half, sx, sy)


def made(name):
    return LAWS[name].parameters()


def friction(law, fz) -> tuple[float, float]:
    """Largest force over load along and across, by the law's own definition."""
    if isinstance(law, MagicFormula):
        df = (fz - F0) / F0
        return law.pdx1 + law.pdx2 * df, law.pdy1 + law.pdy2 * df
    return law.friction, law.friction


def magic(s, slope, peak, c, e):
    b = slope / (c * peak)
    return peak * np.sin(c * np.arctan(b * s - e * (b * s - np.arctan(b * s))))


@pytest.mark.parametrize("fz", LOADS)
def test_magic_formula_in_pure_slip(fz: float) -> None:
    law = MagicFormula(cx=1.65, ex=-0.4, pdx1=0.9, pdx2=-0.1, pkx1=14, pkx2=-0.5, cy=1.3, ey=-1.2, pdy1=0.85, pky2=2.2)
    df = (fz - F0) / F0
    kx, ky = fz * (14 - 0.5 * df), law.pky1 * F0 * math.sin(2 * math.atan(fz / (2.2 * F0)))
    for s in (-0.9, -0.2, -0.03, 0.001, 0.05, 0.3):
        assert force(law, fz, s, 0.0)[0] == pytest.approx(magic(s, kx, (0.9 - 0.1 * df) * fz, 1.65, -0.4), rel=1e-12)
        wanted = magic(s, ky, (0.85 - 0.05 * df) * fz, 1.3, -1.2)
        assert force(law, fz, 0.0, s)[1] == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("fz", LOADS)
@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize("e", [-2.0, 0.0, 0.6])
def test_magic_formula_peaks_where_it_says(fz: float, across: bool, e: float) -> None:
    law = MagicFormula(ex=e, ey=e)
    says = law_peaks(0, columns(law), fz, 1.0)[across]

    def pull(s):
        return force(law, fz, 0.0, s)[1] if across else force(law, fz, s, 0.0)[0]

    found = minimize_scalar(
        lambda s: -pull(s), bounds=(0.2 * says, 5 * says), method="bounded", options={"xatol": 1e-9}
    )
    assert found.x == pytest.approx(says, rel=1e-3)
    assert pull(says) == pytest.approx(friction(law, fz)[across] * fz, rel=1e-12)


def test_magic_formula_trail() -> None:
    """At no slip the trail is Dt; the moment turns the wheel back to where it goes, and changes sign far out."""
    law = MagicFormula(qdz1=0.1, ct=1.3)
    _, fy, mz = force(law, F0, 0.0, 1e-6)
    assert -mz / fy == pytest.approx(0.1 * R, rel=1e-6)
    _, fy, mz = force(law, F0, 0.0, 5.0)
    assert fy > 0
    assert mz > 0
    a = 10 * math.hypot(0.05, 12 * F0 / law.slopes(F0)[1] * 0.04)
    _, fy, mz = force(law, F0, 0.04, 0.05)
    assert -mz / fy == pytest.approx(0.1 * R * math.cos(1.3 * math.atan(a + 1.0 * (a - math.atan(a)))), rel=1e-12)


@pytest.mark.parametrize("fz", LOADS)
def test_fiala_cubic_and_where_it_slides(fz: float) -> None:
    law = Fiala(across=9, load_power=0.7, friction=0.85, sliding_friction=0.85)
    c, most = 9 * F0 * (fz / F0) ** 0.7, 0.85 * fz
    sliding = 3 * most / c  # tangent of the slip angle
    assert law_peaks(1, columns(law), fz, 1.0)[1] == pytest.approx(sliding)
    for share in (-0.99, -0.5, 0.01, 0.3, 0.8):
        t = share * sliding
        # force of the cubic as Fiala has it: C t - (C t)^2 / (3 mu Fz) + (C t)^3 / (27 mu^2 Fz^2)
        wanted = c * t - c * t * abs(c * t) / (3 * most) + (c * t) ** 3 / (27 * most**2)
        _, fy, mz = force(law, fz, 0.0, t, half=0.2)
        assert fy == pytest.approx(wanted, rel=1e-12)
        z = abs(share)
        assert mz == pytest.approx(-math.copysign(most * 0.2 * z * (1 - z) ** 3, t), rel=1e-9)
    for share in (1.0, 1.5, 4.0):
        assert force(law, fz, 0.0, share * sliding) == pytest.approx((0.0, most, 0.0))
    # bristles with a parabolic pressure: integrate what sticks and what slides over the patch
    x = np.linspace(-1, 1, 400_001)
    t = 0.4 * sliding
    stress = np.minimum(c * t / 2 * (1 - x), 0.75 * most * (1 - x * x))
    _, fy, mz = force(law, fz, 0.0, t, half=0.2)
    assert fy == pytest.approx(np.trapezoid(stress, x), rel=1e-6)
    assert mz == pytest.approx(0.2 * np.trapezoid(stress * x, x), rel=1e-5)


def test_fiala_friction_falls_with_slip() -> None:
    law = Fiala(friction=0.9, sliding_friction=0.6)
    assert force(law, F0, -1.0, 0.0)[0] == pytest.approx(-0.6 * F0)
    assert force(law, F0, -0.5, 0.0)[0] == pytest.approx(-0.75 * F0)


@pytest.mark.parametrize("fz", LOADS)
def test_composite_slip_saturation(fz: float) -> None:
    law = CompositeSlip(across=7, top_load=2.5, decline=0.2)
    ratio = fz / F0
    cy = 7 * F0 * ratio * (1 - ratio / 5) / (1 - 1 / 5)
    for s in (-0.6, 0.02, 0.1):
        most = 0.8 * (1 - 0.2 * abs(s)) * fz
        c = math.pi * cy * abs(s) / (4 * most)
        f = (c**3 + 0.34 * c**2 + 4 / math.pi * c) / (c**3 + 0.57 * c**2 + 0.32 * c + 1)
        assert force(law, fz, 0.0, s)[1] == pytest.approx(math.copysign(most * f, s), rel=1e-12)


@pytest.mark.parametrize("name", EVERY)
def test_slopes_at_small_slip(name: str) -> None:
    law = made(name)
    along, across = law.slopes(F0)
    s = 1e-7
    assert force(law, F0, s, 0.0)[0] / s == pytest.approx(along, rel=1e-4)
    assert force(law, F0, 0.0, s)[1] / s == pytest.approx(across, rel=1e-4)


@pytest.mark.parametrize("name", EVERY)
def test_friction_is_never_exceeded(name: str) -> None:
    law, rng = made(name), np.random.default_rng(5)
    largest = 0.0
    for _ in range(4000):
        fz = F0 * rng.uniform(0.01, 2.5)
        grip = rng.uniform(0.2, 1.0)
        size, way = 10 ** rng.uniform(-3, 0.3), rng.uniform(0, 2 * math.pi)
        fx, fy, mz = force(law, fz, size * math.cos(way), size * math.sin(way), grip)
        mx, my = friction(law, fz)
        used = math.hypot(fx / (grip * mx * fz), fy / (grip * my * fz))
        assert used <= 1 + 1e-12
        assert math.isfinite(mz)
        largest = max(largest, used)
    assert largest > 0.97  # and it is used


@pytest.mark.parametrize("name", EVERY)
def test_symmetric_and_opposed_to_the_slip(name: str) -> None:
    law, rng = made(name), np.random.default_rng(6)
    for _ in range(300):
        sx, sy = rng.uniform(-1, 1, 2)
        fx, fy, mz = force(law, F0, sx, sy)
        assert fx * sx >= 0
        assert fy * sy >= 0
        assert force(law, F0, -sx, sy) == pytest.approx((-fx, fy, mz))
        assert force(law, F0, sx, -sy) == pytest.approx((fx, -fy, -mz))
    assert force(law, F0, 0.0, 0.0) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("name", EVERY)
def test_sliding_is_opposed_along_its_own_way(name: str) -> None:
    """A tire that slides altogether is pushed against the way it slides, whatever its slopes are."""
    law = made(name)
    fx, fy, _ = force(law, F0, -0.8, 0.6)
    mx, my = friction(law, F0)
    assert math.atan2(fy / my, -fx / mx) == pytest.approx(math.atan2(0.6, 0.8), abs=0.1)


@pytest.mark.parametrize("name", EVERY)
def test_every_law_has_what_a_law_needs(name: str) -> None:
    entry = LAWS[name]
    assert entry.reference
    law = entry.parameters()
    assert len(columns(law)) <= COLUMNS
    assert code_of(law) == entry.code
    assert sorted(e.code for e in LAWS.values()) == list(range(len(LAWS)))
    for f in type(law).__dataclass_fields__.values():
        assert f.metadata["doc"]
        assert f.metadata["unit"]
    for fz in (1e-2, *LOADS):
        peaks = entry.peaks(columns(law), fz, 1.0)
        assert all(0.01 < p < 3 for p in peaks)
        assert entry.force(columns(law), fz, 1.0, 0.1, 0.02, 0.03) == force(law, fz, 0.02, 0.03, half=0.1)


@pytest.mark.parametrize("name", EVERY)
def test_less_grip_leaves_the_slope(name: str) -> None:
    law = made(name)
    assert force(law, F0, 1e-7, 0.0, grip=0.3)[0] == pytest.approx(force(law, F0, 1e-7, 0.0)[0], rel=1e-4)
    assert law_peaks(code_of(law), columns(law), F0, 0.3)[0] < law_peaks(code_of(law), columns(law), F0, 1.0)[0]


def test_bad_parameters_are_refused_with_name_value_and_range() -> None:
    with pytest.raises(ValueError, match=r"MagicFormula\.cx = 2\.5 must be at least 1\.05 and at most 2"):
        MagicFormula(cx=2.5)
    with pytest.raises(ValueError, match=r"Fiala\.friction = 0 must be above 0"):
        Fiala(friction=0)
    with pytest.raises(ValueError, match=r"Fiala\.sliding_friction = 0\.9 must not exceed friction 0\.8"):
        Fiala(sliding_friction=0.9)
    with pytest.raises(ValueError, match=r"CompositeSlip\.c2 = 0\.5.*exceed friction"):
        CompositeSlip(c2=0.5)
    with pytest.raises(ValueError, match=r"Tire\.radius = -1 m must be above 0 and at most 5: without load"):
        Tire(radius=-1)
    with pytest.raises(ValueError, match=r"Tire\.damping = nan N\*s/m"):
        Tire(damping=math.nan)
    with pytest.raises(ValueError, match="MagicFormula, Fiala, CompositeSlip"):
        code_of("fiala")
