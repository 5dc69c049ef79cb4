"""Machines that stand: brakes on, on slopes; and machines that cannot."""

import numpy as np
import pytest
from tire_rig import G, Rig, machine, slope, turned

from plant.vehicle.tires.composite_slip import CompositeSlip
from plant.vehicle.tires.fiala import Fiala
from plant.vehicle.tires.magic_formula import MagicFormula
from plant.vehicle.tires.model import Tire, Wheel

LAWS = [MagicFormula(), Fiala(), CompositeSlip()]


def on_slope(tire: Tire, degrees: float, about: str = "y", **options):
    rig = machine(tire, patches=[slope(degrees, about=about)], **options)
    angle = np.radians(degrees)
    rig.quat[0] = turned((0, 1, 0), -degrees) if about == "y" else turned((1, 0, 0), degrees)
    n = np.array([-np.sin(angle), 0, np.cos(angle)]) if about == "y" else np.array([0, -np.sin(angle), np.cos(angle)])
    rig.pos[0] = (1.2 - 5e4 * np.cos(angle) / tire.stiffness) * n
    return rig


@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
@pytest.mark.parametrize("about", ["y", "x"])
@pytest.mark.parametrize("stiffness", [0.8e6, 2e6])
def test_a_braked_machine_stands_on_20_degrees(law, about: str, stiffness: float) -> None:
    rig = on_slope(Tire(law=law, stiffness=stiffness, damping=3e4), 20, about)
    rig.run(20)
    where = rig.pos[0].copy()
    rig.run(60)
    assert np.linalg.norm(rig.pos[0] - where) < 1e-4  # ten times less than 1 mm in a minute
    held = rig.tires.along if about == "y" else rig.tires.across
    assert abs(held.sum()) == pytest.approx(2e4 * G * np.sin(np.radians(20)), rel=1e-3)
    assert rig.tires.load.sum() == pytest.approx(2e4 * G * np.cos(np.radians(20)), rel=1e-3)


@pytest.mark.parametrize("about", ["y", "x"])
@pytest.mark.parametrize(("degrees", "stands"), [(18.0, True), (22.5, False)])
def test_it_slides_where_friction_ends(about: str, degrees: float, stands: bool) -> None:
    """mu = 0.38 is the tangent of 20.8 degrees. What slides is sped up by g (sin - mu cos)."""
    law = Fiala(friction=0.38, sliding_friction=0.38, load_power=1.0)
    rig = on_slope(Tire(law=law, damping=3e4), degrees, about)
    rig.run(40 if stands else 2)
    before, v = rig.pos[0].copy(), np.linalg.norm(rig.vel[0, :3])
    rig.run(1)
    if stands:
        assert np.linalg.norm(rig.pos[0] - before) < 1e-4
    else:
        angle = np.radians(degrees)
        pull = G * (np.sin(angle) - 0.38 * np.cos(angle))
        assert np.linalg.norm(rig.vel[0, :3]) - v == pytest.approx(pull, rel=0.05)


def test_a_push_moves_it_and_it_comes_back() -> None:
    """Within friction the tires are springs: pushed and let go, the machine comes back but for what the tread lost."""
    tire = Tire(damping=3e4)
    rig = on_slope(tire, 0)
    rig.run(5)
    x = rig.pos[0, 0]
    rig.extra[0, 0] = 4e4
    rig.run(12)
    moved = rig.pos[0, 0] - x
    cx = tire.standing_stiffness()[0]
    # four treads, and the machine leans about its tires: the middle is 1.2 m up, the wheels at +-1.3 m
    wanted = 4e4 / (4 * cx) + 4e4 * 1.15**2 / (4 * 1e6 * 1.3**2)
    assert moved == pytest.approx(wanted, rel=0.15)
    rig.extra[0, 0] = 0.0
    rig.run(12)
    assert abs(rig.pos[0, 0] - x) < 0.3 * moved


@pytest.mark.parametrize("stiffness", [0.8e6, 2e6])
def test_a_light_wheel_under_load_is_stable_up_to_its_longest_step(stiffness: float) -> None:
    """200 kg and 40 kg m^2, pressed down with 50 kN, kicked in all directions: it comes to rest, at 1 ms and longer."""
    tire = Tire(stiffness=stiffness, damping=2e4)
    longest = tire.longest_step(200, 40)
    assert longest > 1e-3
    for h in (1e-3, longest):
        rig = Rig([Wheel(0, tire)], mass=200, inertia=(22, 40, 22), h=h)
        rig.free[0, 3] = rig.free[0, 5] = 0  # the axle is held level and straight
        rig.extra[0, 2] = -5e4
        rig.pos[0, 2] = 0.5 - 5e4 / stiffness
        rig.vel[0] = (0.3, 0.2, -0.5, 0, 1.0, 0)
        rig.run(0.2)
        kicked = abs(rig.vel[0]).max()
        rig.run(20)
        assert kicked < 5.0
        assert abs(rig.vel[0]).max() < 1e-4
    assert tire.longest_step(20, 1) < longest
