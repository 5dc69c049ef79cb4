"""A wheel and the ground: where it touches, how deep, which way it rolls; on slopes, at edges, over steps, lying."""

import numpy as np
import pytest
from tire_rig import G, Rig, flat, slope, turned

from plant.vehicle.tires.model import Tire, Wheel, build_tires

TIRE = Tire(radius=0.5, width=0.3, stiffness=1e6, damping=2e4)


def one(patches=None, tire=TIRE, **options) -> Rig:
    rig = Rig([Wheel(0, tire)], patches=patches, **options)
    return rig


def test_static_sink_is_load_over_stiffness() -> None:
    rig = one(mass=5000)
    rig.pos[0, 2] = 0.5
    rig.free[0, 3:] = 0
    rig.run(12)
    assert 0.5 - rig.pos[0, 2] == pytest.approx(5000 * G / 1e6, rel=1e-6)
    assert rig.tires.load[0] == pytest.approx(5000 * G, rel=1e-6)
    assert rig.tires.point[0] == pytest.approx((0, 0, 0), abs=1e-12)
    assert rig.tires.touch[0] == 1


def test_a_stiffening_tire_sinks_by_its_quadratic() -> None:
    rig = one(tire=Tire(stiffness=5e5, stiffening=1e7, damping=2e4), mass=5000)
    rig.pos[0, 2] = 0.5
    rig.free[0, 3:] = 0
    rig.run(12)
    assert 0.5 - rig.pos[0, 2] == pytest.approx((-5e5 + np.sqrt(25e10 + 4e7 * 5000 * G)) / 2e7, rel=1e-6)


def test_the_ground_never_pulls() -> None:
    rig = one()
    rig.pos[0, 2] = 0.499
    rig.vel[0, 2] = 1.0  # the damper alone would pull with 20 kN
    assert rig.look()[0] == pytest.approx(np.zeros(6), abs=0)
    rig.pos[0, 2] = 0.501
    rig.vel[0, 2] = -1.0
    assert rig.look()[0] == pytest.approx(np.zeros(6), abs=0)
    assert rig.tires.touch[0] == 0


@pytest.mark.parametrize("degrees", [0, 10, 35, 60])
@pytest.mark.parametrize("about", ["y", "x"])
@pytest.mark.parametrize("heading", [0, 30, 90, 200])
def test_depth_normal_and_directions_on_slopes(degrees: float, about: str, heading: float) -> None:
    """The wheel stands upright on the slope, heading anywhere on it."""
    rig = one([slope(degrees, about=about)])
    tilt = turned((0, 1, 0), -degrees) if about == "y" else turned((1, 0, 0), degrees)
    n = np.array([-np.sin(np.radians(degrees)), 0, np.cos(np.radians(degrees))])
    if about == "x":
        n = np.array([0, n[0], n[2]])
    rig.quat[0] = _times(tilt, turned((0, 0, 1), heading))
    rig.pos[0] = 0.48 * n + (3 * np.array([n[2], 0, -n[0]]) if about == "y" else 0)
    for _ in range(200):
        rig.look()
    assert rig.tires.depth[0] == pytest.approx(0.02, abs=1e-9)
    assert rig.tires.camber[0] == pytest.approx(0, abs=1e-6)
    assert rig.wrench[0, :3] == pytest.approx(2e4 * n, abs=1e-3)
    assert rig.wrench[0, 3:] == pytest.approx(np.zeros(3), abs=1e-3)
    # rolling forwards without slip is felt as travel along the heading: no force along
    ahead = _turn(rig.quat[0], (1, 0, 0))
    rig.vel[0, :3] = 2.0 * ahead
    rig.vel[0, 3:] = 2.0 / (0.5 - 0.02 / 3) * _turn(rig.quat[0], (0, 1, 0))
    rig.look()
    assert rig.tires.slip[0] == pytest.approx(0, abs=1e-9)
    rig.vel[0, 3:] *= 1.1
    for _ in range(1000):
        rig.look()
    assert rig.tires.slip[0] == pytest.approx(0.1, rel=1e-2)
    assert rig.tires.force[0] @ ahead > 1e4


@pytest.mark.parametrize("lean", [-20, -5, 3, 15])
def test_a_leaning_wheel_touches_with_its_lower_side(lean: float) -> None:
    rig = one()
    rig.quat[0] = turned((1, 0, 0), lean)
    rig.pos[0, 2] = 0.48
    rig.look()
    assert rig.tires.camber[0] == pytest.approx(np.radians(lean))  # positive: the left side is up
    # from under the middle, (R sin + w/2 ..): to the left when the left side is down
    c = np.sin(np.radians(lean))
    wanted = -0.15 * c / np.hypot(c, 0.25) * np.cos(np.radians(lean)) + 0.5 * c
    assert rig.tires.point[0, 1] == pytest.approx(wanted, abs=1e-9)
    assert rig.tires.point[0, 2] == pytest.approx(0, abs=1e-12)


def test_the_normal_force_has_an_energy() -> None:
    """Without damping, the wrench is the slope of k d^2 / 2 over every position and turn of the wheel."""
    rig = one([slope(20)], tire=Tire(damping=0, rolling_resistance=0))
    rng = np.random.default_rng(2)
    for _ in range(20):
        q0, p0 = turned(rng.normal(size=3), rng.uniform(-40, 40)), np.array([0.1, 0.2, 0.5])

        def energy(p, q):
            rig.pos[0], rig.quat[0] = p, q
            rig.tires.fresh[0] = 1
            rig.look()
            return 0.5e6 * rig.tires.depth[0] ** 2

        energy(p0, q0)
        assert rig.tires.depth[0] > 0.001
        wrench, e = rig.wrench[0].copy(), 1e-6
        for i in range(3):
            d = np.eye(3)[i]
            slopes = (energy(p0 + e * d, q0) - energy(p0 - e * d, q0)) / (2 * e)
            turns = [energy(p0, _times(turned(d, s * np.degrees(e)), q0)) for s in (1, -1)]
            assert wrench[i] == pytest.approx(-slopes, abs=2)
            assert wrench[3 + i] == pytest.approx(-(turns[0] - turns[1]) / (2 * e), abs=2)


def test_depth_is_continuous_over_steps_patches_and_the_rim() -> None:
    """Rolled over a cell as steep as a wall, on a patch 0.2 m higher, and off the end of the world."""
    heights = np.zeros((81, 41))
    heights[40:, :] = 0.15
    low, high = (heights, 0.25, (0, 0, 0)), (np.zeros((9, 9)), 0.5, (7.0, 0.0, 0.35))
    for v in (0.3, 3.0):
        rig = one([low, high])
        rig.pos[0] = (-2, 0, 0.55)
        rig.vel[0, 0] = v
        seen, depths = [], [0.0]
        while rig.pos[0, 0] < 12:
            rig.look()
            depths.append(rig.tires.depth[0])
            if rig.tires.fresh[0] == 0:
                seen.append(rig.tires.height[0].mean())
            rig.pos[0, 0] += 1e-3 * v
        # the wheel is kept at its height, and what it feels is a ramp: no jump of 0.2 m in 1 ms
        assert max(depths) > 0.29
        assert np.abs(np.diff(depths)).max() < 1e-3 * (5.0 * v + 1.5)
        seen = np.array(seen)
        assert seen[0] == 0
        assert np.any(np.abs(seen - 0.15) < 1e-9)
        assert np.any(np.abs(seen - 0.35) < 1e-9)
        assert rig.tires.touch[0] == 0  # and beyond the rim there is nothing


def test_ground_that_jumps_up_is_followed_at_a_rate() -> None:
    rig = one()
    rig.pos[0, 2] = 0.6
    rig.look()
    rig.fields.height[:] = 0.2
    rig.look()
    assert rig.tires.height[0] == pytest.approx(np.full(6, 5e-4))
    for _ in range(400):
        rig.look()
    assert rig.tires.depth[0] == pytest.approx(0.1)


def test_off_the_rim_it_falls() -> None:
    rig = one([flat(10.0)], mass=1000, inertia=(20, 40, 20))
    rig.pos[0] = (4.0, 0, 0.5)
    rig.vel[0, 0], rig.vel[0, 4] = 2.0, 4.0
    rig.run(3)
    assert rig.pos[0, 2] < -10
    assert np.isfinite(rig.pos).all()
    assert rig.tires.load[0] == 0


def test_no_ground_at_all() -> None:
    rig = one([flat(10.0)])
    rig.pos[0] = (50, 0, 0.3)
    assert rig.look()[0] == pytest.approx(np.zeros(6), abs=0)


def test_a_lying_wheel_rests_and_has_plain_friction() -> None:
    rig = one(mass=200, inertia=(20, 40, 20), tire=Tire(radius=0.5, width=0.3, stiffness=5e5, damping=5e3))
    rig.quat[0] = turned((1, 0, 0), 90)
    rig.pos[0, 2] = 0.2
    rig.run(2)
    reach = 0.15 * (np.hypot(1, 0.25) - 0.25)
    assert rig.pos[0, 2] == pytest.approx(reach - 200 * G / 5e5, abs=1e-6)
    rig.free[0, 3:5] = 0  # one point of contact: it would topple
    rig.vel[0, :2] = 2.0, 1.0
    began = rig.pos[0, :2].copy()
    log = rig.run(16, log=True)
    # mu = 0.75 .. 0.8, less at large slip; stops after v^2 / (2 mu g), and the tread springs back
    way = np.linalg.norm(log[:, :2] - began, axis=1).max()
    assert np.linalg.norm(rig.vel[0]) < 1e-6
    assert 5 / (2 * 0.85 * G) < way < 5 / (2 * 0.4 * G)
    rig.vel[0, 5] = 3.0
    rig.run(6)
    assert abs(rig.vel[0, 5]) < 1e-6  # friction about the normal too


def test_upside_down_nothing_changes() -> None:
    """A wheel has no top: turned over about its heading, it rolls the other way about its axis."""
    rig = one()
    rig.quat[0] = turned((1, 0, 0), 180)
    rig.pos[0, 2] = 0.48
    rig.vel[0, 0] = 2.0
    rig.vel[0, 4] = 2.0 / (0.5 - 0.02 / 3)
    for _ in range(100):
        rig.look()
    assert rig.tires.load[0] == pytest.approx(2e4)
    assert rig.tires.slip[0] == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("what", ["pos", "quat", "vel"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_adds_nothing_and_is_forgotten(what: str, value: float) -> None:
    rig = one()
    rig.pos[0, 2] = 0.48
    good = rig.look().copy()
    held = getattr(rig, what).copy()
    for k in range(held.shape[1]):
        getattr(rig, what)[:] = held
        getattr(rig, what)[0, k] = value
        rig.look()
        assert np.isfinite(rig.wrench).all()
    getattr(rig, what)[:] = held
    rig.tires.stretch[:] = 0
    for _ in range(3):
        rig.look()
    assert rig.wrench == pytest.approx(good, abs=1e-6)


@pytest.mark.parametrize("what", ["pos", "quat", "vel"])
def test_absurd_numbers_are_survived(what: str) -> None:
    """Finite forces or none; and once the wheel is back it stands as before."""
    rig = one()
    rig.pos[0, 2] = 0.48
    rig.look()
    held = getattr(rig, what).copy()
    for k in range(held.shape[1]):
        for value in (-1e300, 1e300, 1e150, -1e9):
            getattr(rig, what)[:] = held
            getattr(rig, what)[0, k] = value
            rig.look()
            assert np.isfinite(rig.wrench).all()
            assert np.isfinite(rig.tires.height).all()
    getattr(rig, what)[:] = held
    for _ in range(20):
        rig.look()
    assert rig.tires.load[0] == pytest.approx(2e4)


@pytest.mark.parametrize("quat", [(0, 0, 0, 0), (1, 0, 0, 0), (0.7071067811865476, 0.7071067811865476, 0, 0)])
def test_degenerate_poses_are_finite(quat) -> None:
    rig = one()
    rig.quat[0] = quat
    for z in (-50.0, -0.5, 0.0, 0.01, 0.3):
        rig.pos[0, 2] = z
        assert np.isfinite(rig.look()).all()
        assert rig.wrench[0, 2] <= 1e6 * 0.9 * 0.5 + 1


def test_bad_wheels_are_refused() -> None:
    with pytest.raises(ValueError, match=r"wheel 1: axis .* must not be zero"):
        build_tires([Wheel(0), Wheel(1, axis=(0, 0, 0))])
    with pytest.raises(ValueError, match="wheel 0: body = -1"):
        build_tires([Wheel(-1)])
    with pytest.raises(ValueError, match=r"wheel 0: centre = .* three finite numbers"):
        build_tires([Wheel(0, centre=(0, np.nan, 0))])


def _times(a, b):
    w, v, s, u = a[0], np.array(a[1:]), b[0], np.array(b[1:])
    return np.concatenate([[w * s - v @ u], w * u + s * v + np.cross(v, u)])


def _turn(q, v):
    w, u, v = q[0], np.array(q[1:]), np.array(v, float)
    return v + 2 * np.cross(u, np.cross(u, v) + w * v)
