"""Wheels that roll, brake, corner and bounce, against what can be worked out on paper."""

import numpy as np
import pytest
from tire_rig import G, Rig, machine, turned

from plant.vehicle.tires.composite_slip import CompositeSlip
from plant.vehicle.tires.fiala import Fiala
from plant.vehicle.tires.magic_formula import MagicFormula
from plant.vehicle.tires.model import Tire, Wheel

LAWS = [MagicFormula(), Fiala(), CompositeSlip()]
NAMES = [type(law).__name__ for law in LAWS]


def upright(tire: Tire, mass=5000.0, inertia=(20.0, 40.0, 20.0), **options) -> Rig:
    """A wheel that carries a load and is kept upright and straight."""
    rig = Rig([Wheel(0, tire)], mass=mass, inertia=inertia, **options)
    rig.free[0, 3] = rig.free[0, 5] = 0
    rig.pos[0, 2] = tire.radius - mass * G / tire.stiffness
    return rig


@pytest.mark.parametrize("law", LAWS, ids=NAMES)
def test_free_rolling_has_no_slip_and_the_rolling_radius(law) -> None:
    rig = upright(Tire(law=law, rolling_resistance=0))
    rig.vel[0, 0] = 5.0
    rig.run(5)
    assert abs(rig.tires.slip[0]) < 1e-9
    assert abs(rig.tires.along[0]) < 1e-3
    assert rig.vel[0, 0] / rig.vel[0, 4] == pytest.approx(0.5 - 5000 * G / 1e6 / 3, rel=1e-6)


def test_rolling_resistance_slows_by_its_coefficient() -> None:
    tire = Tire(rolling_resistance=0.02)
    rig = upright(tire)
    rig.vel[0, 0], rig.vel[0, 4] = 10.0, 10.0 / (0.5 - 5000 * G / 1e6 / 3)
    rig.run(1)
    v = rig.vel[0, 0]
    rig.run(4)
    # the moment is 0.02 Fz (loaded radius), slowing the wheel's mass and spin through the rolling radius
    loaded, rolls = 0.5 - 5000 * G / 1e6, 0.5 - 5000 * G / 1e6 / 3
    slowing = 0.02 * 5000 * G * loaded / rolls / (5000 + 40 / rolls**2)
    assert (v - rig.vel[0, 0]) / 4 == pytest.approx(slowing, rel=1e-3)


def test_a_free_wheel_stands_on_a_slope_below_its_rolling_resistance() -> None:
    line = np.linspace(-40, 40, 81)
    for grade, stands in ((0.01, True), (0.03, False)):
        rig = upright(
            Tire(rolling_resistance=0.02), patches=[(np.tile(grade * line[:, None], (1, 81)), 1.0, (0, 0, 0))]
        )
        rig.run(40)
        x = rig.pos[0, 0]
        rig.run(10)
        assert (abs(rig.pos[0, 0] - x) < 1e-6) == stands


@pytest.mark.parametrize("speed", [3.0, 12.0])
@pytest.mark.parametrize("across", [False, True])
def test_relaxation_time_is_length_over_speed(speed: float, across: bool) -> None:
    """A step of slip at constant speed and load: 63.2 % of the force after sigma / V."""
    tire = Tire(law=Fiala(friction=3, sliding_friction=3), relaxation_x=0.4, relaxation_y=0.7, low_speed=1.0)
    rig = upright(tire, h=1e-4)
    rolls = 0.5 - 5000 * G / 1e6 / 3
    rig.vel[0, 0], rig.vel[0, 4] = speed, speed / rolls
    rig.look()
    if across:
        rig.vel[0, 1] = -0.001 * speed
    else:
        rig.vel[0, 4] *= 1.001
    seen = []
    for _ in range(round(5 / speed / rig.h)):
        rig.look()
        seen.append(rig.tires.across[0] if across else rig.tires.along[0])
    force = np.array(seen)
    sigma = 0.7 if across else 0.4
    after = np.interp(1 - np.exp(-1), force / force[-1], rig.h * np.arange(1, force.size + 1))
    assert after == pytest.approx(sigma / speed, rel=2e-3)
    assert force[-1] == pytest.approx(0.001 * tire.law.slopes(5e4)[across] * (5000 * G / 5e4) ** 0.8, rel=2e-3)


@pytest.mark.parametrize("v", [3.0, 10.0])
def test_braking_distance_of_locked_wheels(v: float) -> None:
    """v^2 / (2 mu g), and no running back at the end."""
    tire = Tire(law=Fiala(friction=0.7, sliding_friction=0.7), damping=4e4)
    rig = machine(tire)
    rig.pos[0, 2] = 1.2 - 2e4 * G / 4e6
    rig.run(3)
    rig.vel[0, 0] = v
    x = rig.pos[0, 0]
    log = rig.run(v / (0.7 * G) + 8, log=True)
    stretch = 3 * 0.7 * 5e4 / tire.standing_stiffness()[0]  # of a tread that slides: 63 mm
    assert rig.pos[0, 0] - x == pytest.approx(v**2 / (2 * 0.7 * G), abs=1.5 * stretch)
    assert abs(rig.vel[0]).max() < 1e-3
    assert log[:, 0].max() - log[-1, 0] < 2 * stretch  # back to no stretch, and no further than it came


def test_acceleration_by_a_torque() -> None:
    """Below the limit of friction, a torque on the axle moves mass and spin: F r = T."""
    tire = Tire(rolling_resistance=0)
    rig = upright(tire)
    rig.extra[0, 4] = 4000.0
    rig.run(1)
    v = rig.vel[0, 0]
    rig.run(2)
    rolls = 0.5 - 5000 * G / 1e6 / 3
    assert (rig.vel[0, 0] - v) / 2 == pytest.approx(4000 / rolls / (5000 + 40 / rolls**2), rel=5e-3)
    assert rig.tires.slip[0] == pytest.approx(4000 / rolls / (12 * 5e4), rel=0.1)


def test_driving_work_is_kinetic_energy_and_slip() -> None:
    """What the torque puts in is found as energy, but for what slips: nothing comes from the radii."""
    tire = Tire(law=MagicFormula(pkx1=80), rolling_resistance=0)
    rig = upright(tire)
    rig.vel[0, 0], rig.vel[0, 4] = 5.0, 5.0 / (0.5 - 5000 * G / 1e6 / 3)
    rig.run(1)

    def energy():
        return 0.5 * 5000 * rig.vel[0, 0] ** 2 + 20 * rig.vel[0, 4] ** 2

    start, work, lost = energy(), 0.0, 0.0
    rig.extra[0, 4] = 5000.0
    rolls = 0.5 - 5000 * G / 1e6 / 3
    for _ in range(2000):
        before = rig.vel[0].copy()
        rig.run(1e-3)
        mean = 0.5 * (before + rig.vel[0])
        work += 5000 * mean[4] * 1e-3
        lost += rig.tires.along[0] * (rolls * mean[4] - mean[0]) * 1e-3
    assert lost < 0.02 * work
    assert energy() - start == pytest.approx(work - lost, rel=2e-3)


@pytest.mark.parametrize("law", LAWS, ids=NAMES)
def test_a_spinning_wheel_on_the_spot_pulls_with_sliding_friction(law) -> None:
    rig = upright(Tire(law=law), mass=5000)
    rig.free[0, 0] = 0
    rig.vel[0, 4], rig.free[0, 4] = 20.0, 0
    rig.run(0.5)
    assert 0.4 < rig.tires.along[0] / rig.tires.load[0] < 0.81
    rig.vel[0, 4] = -20.0
    rig.run(0.5)
    assert -0.81 < rig.tires.along[0] / rig.tires.load[0] < -0.4


def test_a_wheel_across_its_heading_is_stopped() -> None:
    rig = upright(Tire())
    rig.vel[0, 1] = 3.0
    rig.run(0.3)
    assert rig.tires.across[0] / rig.tires.load[0] == pytest.approx(-0.7, abs=0.1)
    rig.run(20)
    assert abs(rig.vel[0, 1]) < 1e-6


@pytest.mark.parametrize("way", [1, -1])
def test_aligning_moment_turns_the_wheel_to_where_it_goes(way: int) -> None:
    """Also when it goes backwards."""
    rig = upright(Tire())
    rig.vel[0, 0], rig.vel[0, 1] = 3.0 * way, 0.1
    rig.vel[0, 4] = rig.vel[0, 0] / (0.5 - 5000 * G / 1e6 / 3)
    for _ in range(2000):
        rig.look()
    turn = rig.tires.moment[0]
    assert turn * way > 100  # towards the velocity's side


def test_steady_cornering_of_a_single_track_machine() -> None:
    """Two wheels in a line at a and b with slopes C, steer d, speed V: r = V d / (l + V^2 K), K = m (b - a) / (C l).

    The forces act behind the wheels' middles by the trail, which moves a and b.
    """
    a, b, m, v, d = 1.2, 1.6, 8000.0, 8.0, 0.01
    law = Fiala(friction=1, sliding_friction=1, load_power=1.0, across=8.0)
    tire = Tire(law=law, width=0.05, rolling_resistance=0)
    steered = (-np.sin(d), np.cos(d), 0.0)
    wheels = [Wheel(0, tire, axis=steered, centre=(a, 0, 0)), Wheel(0, tire, centre=(-b, 0, 0))]
    rig = Rig(wheels, mass=m, inertia=(2000.0, 6000.0, 12000.0))
    # these wheels cannot spin and would brake: an endless relaxation length keeps the slip along from coming
    rig.tires.relax[:, 0] = 1e12
    rig.tires.low_damping[:] = 0
    rig.free[0, 3:5] = 0  # neither rolls nor pitches, so that each wheel bears half
    rig.pos[0, 2] = 0.5 - m * G / 2e6
    rig.vel[0, 0] = v
    for _ in range(4000):
        rig.run(1e-3)
        heading = 2 * np.arctan2(rig.quat[0, 3], rig.quat[0, 0])
        forwards = np.array([np.cos(heading), np.sin(heading)])
        rig.vel[0, :2] += forwards * (v - rig.vel[0, :2] @ forwards)
    trail = np.sqrt(0.5 * m * G / 2e6) / 3
    slope = 8.0 * m * G / 2
    k = m * (b + trail - (a - trail)) / (slope * (a + b))
    assert rig.vel[0, 5] == pytest.approx(v * d / (a + b + v**2 * k), rel=0.01)
    assert rig.tires.across.sum() == pytest.approx(m * v * rig.vel[0, 5], rel=0.01)


def test_drop_gains_no_energy() -> None:
    """From 0.3 m, without damping: it comes back to where it was, and never higher; with damping lower each time."""
    for damping, back in ((0.0, 0.3), (1e4, 0.25)):
        rig = upright(Tire(damping=damping), mass=2000)
        rig.pos[0, 2] = 0.8
        log = rig.run(8, log=True)
        tops = log[1:-1, 2][(log[1:-1, 2] > log[:-2, 2]) & (log[1:-1, 2] >= log[2:, 2])]
        assert len(tops) > 3
        # symplectic Euler wobbles by g h^2-like amounts around the true energy
        assert tops.max() <= 0.8 + 2e-3
        if damping == 0:
            assert tops.min() == pytest.approx(0.5 + back, abs=4e-3)
        else:
            assert (np.diff(tops) < 1e-6).all()


def test_drop_of_a_tilted_spinning_wheel_gains_no_energy() -> None:
    tire = Tire(damping=2e3, stiffness=5e5)
    rig = Rig([Wheel(0, tire)], mass=200, inertia=(20, 40, 20))
    rig.pos[0, 2], rig.quat[0] = 1.2, turned((1, 0.3, 0), 40)
    rig.vel[0] = (2, 1, 0, 1, 8, 2)

    def energy():
        w, x, y, z = rig.quat[0]
        axis = np.array([2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)])
        spin = rig.vel[0, 3:]
        along = spin @ axis
        turning = 0.5 * 40 * along**2 + 0.5 * 20 * (spin @ spin - along**2)
        return 200 * G * rig.pos[0, 2] + 100 * rig.vel[0, :3] @ rig.vel[0, :3] + turning

    start = most = energy()
    for _ in range(100):
        rig.run(0.05)
        if rig.tires.touch[0] == 0:  # else some is in the tire
            most = max(most, energy())
    assert most <= start * 1.01
    assert energy() < 0.9 * start
    assert np.isfinite(rig.pos).all()


def test_grip_set_from_outside_limits_the_force() -> None:
    rig = upright(Tire(law=Fiala(friction=0.8, sliding_friction=0.8)))
    rig.free[0, 0] = 0
    rig.vel[0, 4], rig.free[0, 4] = 20.0, 0
    for grip in (1.0, 0.25, 0.0):
        rig.tires.grip[0] = grip
        rig.run(0.3)
        assert rig.tires.along[0] / rig.tires.load[0] == pytest.approx(0.8 * grip, abs=1e-3)


def test_same_bits_twice() -> None:
    runs = []
    for _ in range(2):
        rig = machine(Tire(), patches=[(np.random.default_rng(8).uniform(-0.1, 0.1, (60, 60)), 0.5, (0, 0, 0))])
        rig.pos[0, 2], rig.vel[0] = 1.5, (2, 1, 0, 0.1, 0.2, 0.3)
        rig.run(3)
        runs.append((rig.pos.copy(), rig.vel.copy(), rig.tires.stretch.copy()))
    assert all((x == y).all() for x, y in zip(*runs, strict=True))
