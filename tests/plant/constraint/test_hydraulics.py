"""The hydraulic cylinder against closed forms: a trapped column of oil, a step of the valve, statics and the relief."""

import math
from itertools import pairwise

import numpy as np
import pytest
from worlds import advance, centre, compiled, velocity, watched

from plant.engine.compile import Engine
from plant.world.checks import WorldError
from plant.world.world import World

BORE, ROD, STROKE, MASS, BULK, LINES = 0.1, 0.06, 1.0, 2000.0, 1.4e9, 1e-3
AREA_A = math.pi / 4 * BORE**2
AREA_B = AREA_A - math.pi / 4 * ROD**2


def press(gravity: float = 0.0, **options: object) -> World:
    """A mass on a level (or, with gravity, upright) slide, half way out, moved by a cylinder."""
    world = World(gravity=(0, 0, -gravity))
    world.body("piston", mass=MASS, inertia=(100, 100, 100), pos=(0, 0, 0.5))
    world.prismatic("slide", None, "piston", at=(0, 0, 0.5), axis=(0, 0, 1))
    settings = {"flow": 1e-3, "line_volume": LINES, "bulk": BULK} | options
    world.hydraulic_cylinder("ram", "slide", bore=BORE, rod=ROD, stroke=STROKE, **settings)  # type: ignore[arg-type]
    return world


def halfway(engine: Engine) -> Engine:
    """The slide is 0 where the joint was made; shift it so that the piston is half way out."""
    engine.content.model.joint.pa[0, 2] -= STROKE / 2
    engine.content.data.status[3] = 0
    return engine


def oil_stiffness() -> float:
    """Of both trapped columns, half way out [N/m]."""
    return BULK * (AREA_A**2 / (LINES + AREA_A * STROKE / 2) + AREA_B**2 / (LINES + AREA_B * STROKE / 2))


@pytest.mark.parametrize(("dt", "most"), [(1e-4, 2e-3), (1e-3, 2e-2)])
def test_a_trapped_column_rings_at_its_natural_frequency(dt: float, most: float) -> None:
    """Valve shut: w = sqrt(k / m) with the stiffness of both columns; damped by w h / 2 of critical, as designed."""
    world = press(pressure=(50e5, 50e5 * AREA_A / AREA_B))
    engine = halfway(compiled(world, dt))
    engine.content.data.state.vel[0, 2] = 0.01
    w = math.sqrt(oil_stiffness() / MASS)
    seen = watched(engine, 6 * math.pi / w, lambda e: float(velocity(e, "piston")[2]))
    t = np.arange(len(seen)) * dt
    falls = np.flatnonzero((seen[:-1] > 0) & (seen[1:] <= 0))
    times = t[falls] + dt * seen[falls] / (seen[falls] - seen[falls + 1])
    assert np.diff(times).mean() == pytest.approx(2 * math.pi / w, rel=most)
    peaks = [seen[a:b].max() for a, b in pairwise(falls)]
    assert math.log(peaks[0] / peaks[1]) == pytest.approx(2 * math.pi * (w * dt / 2), rel=0.1)


def test_a_load_is_held_by_the_pressure_below_it() -> None:
    """Shut valve, upright, both chambers well above zero: the pressures settle where they carry the weight."""
    engine = halfway(compiled(press(9.80665, pressure=(60e5, 60e5))))
    advance(engine, 3.0)
    p = engine.content.data.chamber.pressure[0]
    assert p[0] * AREA_A - p[1] * AREA_B == pytest.approx(MASS * 9.80665, rel=1e-6)
    sag = centre(engine, "piston")[2] - 0.5
    force = MASS * 9.80665 - 60e5 * (AREA_A - AREA_B)
    assert sag == pytest.approx(-force / oil_stiffness(), rel=2e-2)


def test_an_open_valve_moves_the_piston_at_the_speed_of_its_flow() -> None:
    """Steady, no load: the two orifices share the supply so that flow A = area_a v, flow B = area_b v and the forces
    balance. Closed form: v = k sqrt(dp_A) / area_a with area_a p_A = area_b p_B."""
    world = press()
    engine = halfway(compiled(world))
    engine.content.data.chamber.valve[0] = 0.5
    advance(engine, 2.0)
    gain = 0.5 * 1e-3 / math.sqrt(250e5 - 1e5)
    # k^2 (ps - pa) = (A v)^2, k^2 (pb - pt) = (B v)^2, A pa = B pb
    square = gain**2 * (AREA_A * 250e5 - AREA_B * 1e5) / (AREA_A**3 + AREA_B**3)
    assert velocity(engine, "piston")[2] == pytest.approx(math.sqrt(square), rel=2e-3)


def test_the_relief_valve_bounds_the_pressure() -> None:
    """Pushed in with more than the relief pressure bears: the piston yields, the pressure stays near the relief's."""
    engine = halfway(compiled(press()))
    highest = 0.0
    for k in range(500):  # a load that comes slowly: a sudden one would swing to twice its pressure
        engine.content.data.state.wrench[0, 2] = -min(1.0, k / 400) * 1.2 * 300e5 * AREA_A
        advance(engine, 1e-3)
        highest = max(highest, engine.content.data.chamber.pressure[0, 0])
    assert 300e5 < highest < 1.3 * 300e5
    assert velocity(engine, "piston")[2] < -1e-3


@pytest.mark.parametrize("dt", [1e-4, 1e-3])
def test_a_load_beyond_the_supply_is_held_by_the_check(dt: float) -> None:
    """Upright, valve open, and the weight asks for 5 % more than the pump gives: no oil goes back to the pump, so the
    piston stays; and it stays below where it began by no more than the oil gives way."""
    weight = MASS * 9.80665
    held = weight / AREA_A
    engine = halfway(compiled(press(9.80665, pressure=(held, 0.0), supply=held / 1.05, tank=0.0), dt))
    engine.content.data.chamber.valve[0] = 1.0
    for _ in range(20):
        advance(engine, 0.1)
        assert engine.content.data.chamber.flow[0, 0] == 0.0
    assert centre(engine, "piston")[2] == pytest.approx(0.5, abs=1e-5)
    assert engine.content.data.chamber.pressure[0, 0] == pytest.approx(held, rel=1e-3)


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
def test_the_pump_carries_no_chamber_above_itself(share: float) -> None:
    """A piston at its stop, valve wide open, from any drop: the pressure comes up to the supply's and stops there,
    though a step is many times as long as the chamber takes to fill."""
    engine = halfway(compiled(press(pressure=(share * 250e5, 1e5), bulk=1e12)))
    engine.content.data.chamber.valve[0] = 1.0
    engine.content.model.body.mass[0] = 1e12  # it stands
    for _ in range(100):
        advance(engine, 1e-3)
        assert engine.content.data.chamber.pressure[0, 0] <= 250e5 * (1 + 1e-9)
    assert engine.content.data.chamber.pressure[0, 0] == pytest.approx(250e5, rel=1e-3)


@pytest.mark.parametrize("bulk", [1e8, 1.4e9, 1e12])
def test_any_stiffness_of_oil_is_stable(bulk: float) -> None:
    engine = halfway(compiled(press(bulk=bulk)))
    for k in range(200):
        engine.content.data.chamber.valve[0] = 1.0 if k % 20 < 10 else -1.0
        advance(engine, 1e-3)
        assert abs(velocity(engine, "piston")[2]) < 1.0


def test_a_cylinder_that_cannot_be_is_refused() -> None:
    world = World()
    world.body("piston", mass=1, inertia=(1, 1, 1))
    world.prismatic("slide", None, "piston", at=(0, 0, 0), axis=(0, 0, 1))
    with pytest.raises(WorldError, match=r"'ram'.*rod < bore"):
        world.hydraulic_cylinder("ram", "slide", bore=0.05, rod=0.06, stroke=1, flow=1e-3)


def beam(stepper: str) -> Engine:
    """A level beam of 2 t and 4 m on a hinge, held by a cylinder from the ground below it to its underside."""
    world = World()
    world.body("beam", mass=2000, inertia=(100, 2700, 2700), com=(2, 0, 0), pos=(0, 0, 2))
    world.hinge("foot", None, "beam", at=(0, 0, 2), axis=(0, -1, 0))
    world.hydraulic_cylinder(
        "ram", "foot", bore=BORE, rod=ROD, stroke=1.2, closed=1.2, flow=1e-3, pins=((0.5, 0, 0.5), (1.5, 0, 1.9))
    )
    return world.compile(1e-3, stepper=stepper)


@pytest.mark.parametrize("stepper", ["spook", "ali3p"])
def test_a_cylinder_between_pins_bears_a_beam_by_its_lever(stepper: str) -> None:
    """Shut valve: the force along the cylinder times its arm about the hinge is the moment of the weight."""
    engine = beam(stepper)
    d = engine.content.data
    d.chamber.valve[0] = 0.3  # let it find its pressure
    advance(engine, 0.4)
    d.chamber.valve[0] = 0.0
    advance(engine, 12.0)  # the column rings for long
    angle = float(d.state.angle[0, 0])
    c, s = math.cos(angle), math.sin(angle)
    pin = np.array([1.5 * c + 0.1 * s, 2.0 + 1.5 * s - 0.1 * c])
    way = pin - [0.5, 0.5]
    arm = (pin[0] * way[1] - (pin[1] - 2.0) * way[0]) / np.hypot(*way)
    force = AREA_A * d.chamber.pressure[0, 0] - AREA_B * d.chamber.pressure[0, 1]
    assert force * arm == pytest.approx(2000 * 9.80665 * 2 * math.cos(angle), rel=2e-3)
    assert d.chamber.out[0] == pytest.approx(np.hypot(*way) - 1.2, abs=1e-6)
    assert d.target.pushed[0] == pytest.approx(2000 * 9.80665 * 2 * math.cos(angle), rel=2e-3)


@pytest.mark.parametrize("stepper", ["spook", "ali3p"])
def test_oil_that_goes_in_lifts_the_beam_by_its_volume(stepper: str) -> None:
    engine = beam(stepper)
    d = engine.content.data
    advance(engine, 0.5)
    before, pressed, d.chamber.valve[0] = float(d.chamber.out[0]), float(d.chamber.pressure[0, 0]), 0.5
    oil = 0.0
    for _ in range(2000):
        assert engine.step() == 0
        oil += 1e-3 * float(d.chamber.flow[0, 0])
    out = float(d.chamber.out[0])
    squeezed = (LINES + AREA_A * out) * (float(d.chamber.pressure[0, 0]) - pressed) / BULK
    assert out > before + 0.05
    assert AREA_A * (out - before) == pytest.approx(oil - squeezed, rel=0.01)


def test_pins_that_no_cylinder_fits_between_are_refused() -> None:
    world = World()
    world.body("beam", mass=10, inertia=(1, 1, 1))
    world.hinge("foot", None, "beam", at=(0, 0, 0), axis=(0, 1, 0))
    with pytest.raises(WorldError, match=r"pins are 0\.5 m apart, which must lie between closed 1.2 and 2.2"):
        world.hydraulic_cylinder(
            "ram", "foot", bore=BORE, rod=ROD, stroke=1, closed=1.2, flow=1e-3, pins=((0.3, 0, 0), (0, 0, 0.4))
        )
    with pytest.raises(WorldError, match="on the hinge's axis"):
        world.hydraulic_cylinder(
            "ram", "foot", bore=BORE, rod=ROD, stroke=1, closed=1.2, flow=1e-3, pins=((0, 2, 0), (0, 0, 0.4))
        )
