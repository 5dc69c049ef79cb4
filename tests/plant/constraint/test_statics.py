"""Reactions against statics, and compliance against Hooke.

Sign of a reaction: `row.force` acts on the second body along the row's axis of the joint frame, and on the first
against it. Angular rows of a fixed joint are moments about the joint's axes. Those of a hinge are written for
g_i = b_z . a_i, so the moment on the second body is (-force_4, force_3) about the joint's x and y.
"""

import numpy as np
import pytest
from worlds import G, about, advance, compiled, push, reaction, watched

from plant.engine.compile import Engine
from plant.world.world import World


def beam(dt: float = 1e-3, **options: float) -> Engine:
    """A beam of 2 m and 40 kg, built in at the origin, sticking out along x, with 500 N on its end."""
    world = World()
    world.body("beam", mass=40, inertia=(0.5, 14, 14), pos=(1, 0, 0))
    world.fixed("wall", None, "beam", at=(0, 0, 0), **options)
    engine = compiled(world, dt)
    push(
        engine, "beam", (0, 0, -500), (0, 500, 0)
    )  # 500 N down at the end = the same at the centre and a moment of 500 N x 1 m
    return engine


def test_a_built_in_beam() -> None:
    """The wall pushes up with weight and load, and turns against their moments: M_y = -(m g l / 2 + F l)."""
    force = reaction(advance(beam(), 1.0), "wall")
    assert force[:3] == pytest.approx([0, 0, 40 * G + 500], abs=1e-3)
    assert force[3:] == pytest.approx([0, -(40 * G * 1 + 500 * 2), 0], abs=1e-3)


def test_reaction_is_opposite_when_the_beam_is_named_first() -> None:
    world = World()
    world.body("beam", mass=40, inertia=(0.5, 14, 14), pos=(1, 0, 0))
    world.fixed("wall", "beam", None, at=(0, 0, 0))
    force = reaction(advance(compiled(world), 1.0), "wall")
    assert force == pytest.approx([0, 0, -40 * G, 0, 40 * G, 0], abs=1e-3)


def test_a_soft_joint_yields_by_force_over_stiffness() -> None:
    """Linear: z = -F / k. Turning: M / k."""
    stiffness = 1e6
    engine = advance(beam(stiffness=stiffness, damping_time=0.02), 3.0)
    tip = engine.content.data.row.error[0]
    assert tip[2] == pytest.approx(-(40 * G + 500) / stiffness, rel=1e-3)
    assert tip[4] == pytest.approx((40 * G + 1000) / stiffness, rel=2e-3)


def test_a_spring_of_joints_swings_at_its_natural_frequency() -> None:
    """Undamped (damping time 0), a mass on a joint of stiffness k has the period 2 pi sqrt(m / k); SPOOK adds a known
    slow-down below 1 %.
    """
    mass, stiffness, dt = 2.0, 5e3, 2e-4
    world = World(gravity=(0, 0, 0))
    world.body("m", mass=mass, inertia=(1, 1, 1), vel=(0, 0, 0.5))
    world.ball("spring", None, "m", at=(0, 0, 0), stiffness=stiffness, damping_time=0.0)
    engine = compiled(world, dt)
    seen = []
    for _ in range(round(1.0 / dt)):
        assert engine.step() == 0
        seen.append(engine.content.data.state.pos[0, 2])
    z = np.array(seen)
    k = np.flatnonzero((z[:-1] < 0) & (z[1:] >= 0))
    when = (k + z[k] / (z[k] - z[k + 1])) * dt
    assert np.diff(when).mean() == pytest.approx(2 * np.pi * np.sqrt(mass / stiffness), rel=0.01)


def test_moment_of_a_hinge() -> None:
    """A beam on a hinge about y that would tip about x by a weight at its side: the hinge holds m g e about x."""
    world = World()
    world.body("beam", mass=40, inertia=(0.5, 14, 14), pos=(0, 0.3, 0))
    world.hinge("pin", None, "beam", at=(0, 0, 0), axis=(0, 1, 0), reference=(1, 0, 0))
    engine = advance(compiled(world), 1.0)
    axes = engine.content.data.row.axes[0]
    force = reaction(engine, "pin")
    assert axes.T @ force[:3] == pytest.approx([0, 0, 40 * G], abs=1e-3)
    moment = -force[4] * axes[0] + force[3] * axes[1]
    assert moment == pytest.approx([40 * G * -0.3 * -1, 0, 0], abs=1e-3)


def test_a_simply_supported_beam_shares_its_load_by_the_lever() -> None:
    """Pin at 0, roller at 3 m, weight at 1 m: two thirds and one third."""
    world = World()
    world.body("beam", mass=30, inertia=(1, 20, 20), pos=(1, 0, 0))
    world.hinge("pin", None, "beam", at=(0, 0, 0), axis=(0, 1, 0))
    world.point_line("roller", None, "beam", at=(3, 0, 0), axis=(1, 0, 0))
    engine = advance(compiled(world), 1.0)
    rows = engine.content.data.row
    pin = rows.axes[0].T @ reaction(engine, "pin")[:3]
    roller = rows.axes[1][:2].T @ reaction(engine, "roller")[:2]
    assert pin == pytest.approx([0, 0, 20 * G], abs=1e-3)
    assert roller == pytest.approx([0, 0, 10 * G], abs=1e-3)


def test_a_truss_of_two_struts() -> None:
    """A load on two struts at 45 degrees: each carries F / (2 sin 45), along itself."""
    world = World(gravity=(0, 0, 0))
    for name, side in (("left", -1), ("right", 1)):
        world.body(name, mass=1, inertia=(0.1,) * 3, pos=(0.5 * side, 0, 0.5), quat=about((0, 1, 0), 0.7))
        world.hinge(f"{name} foot", None, name, at=(side, 0, 0), axis=(0, 1, 0))
    world.hinge("apex", "left", "right", at=(0, 0, 1), axis=(0, 1, 0))
    engine = compiled(world)
    # 1000 N down at the apex, carried into the left strut as force at its centre and moment
    push(engine, "left", (0, 0, -1000), tuple(np.cross((0.5, 0, 0.5), (0, 0, -1000))))
    advance(engine, 1.0)
    rows = engine.content.data.row
    left = rows.axes[0].T @ rows.force[0, :3]
    right = rows.axes[1].T @ rows.force[1, :3]
    each = 1000 / (2 * np.sin(np.pi / 4))
    assert left == pytest.approx([each * np.sqrt(0.5), 0, each * np.sqrt(0.5)], abs=0.05)
    assert right == pytest.approx([-each * np.sqrt(0.5), 0, each * np.sqrt(0.5)], abs=0.05)


def chain(links: int, load: float, dt: float) -> Engine:
    """Links of 1 kg hanging straight down on ball joints, and a load at the end; one link is given a push of a
    micrometre a second.
    """
    world = World()
    before = None
    for k in range(links):
        nudge = (1e-6 if k == 4 else 0.0, 0, 0)
        world.body(f"link {k}", mass=1, inertia=(0.01, 0.01, 0.01), pos=(0, 0, -0.15 - 0.3 * k), vel=nudge)
        world.ball(f"pin {k}", before, f"link {k}", at=(0, 0, -0.3 * k))
        before = f"link {k}"
    world.body("load", mass=load, inertia=(load * 0.1,) * 3, pos=(0, 0, -0.3 * links - 0.5))
    world.ball("hook", before, "load", at=(0, 0, -0.3 * links))
    return compiled(world, dt)


@pytest.mark.parametrize(
    ("load", "dt"),
    [
        (1e3, 1e-3),
        (1e4, 1e-3),
        (1e5, 1e-3),
        (1e5, 1 / 60),
    ],
)
def test_vortex_mass_ratio(load: float, dt: float) -> None:
    """A load on a chain of ten links of 1 kg (Vortex 3.1.4.1: 100 t at 60 Hz): it hangs still, and the top pin
    carries it all.
    """
    engine = chain(10, load, dt)
    advance(engine, 10.0)
    assert engine.gap() < 2e-5
    assert engine.position("load") == pytest.approx([0, 0, -3.5], abs=2e-4)
    assert np.abs(engine.content.data.state.vel).max() < 1e-5
    assert np.linalg.norm(reaction(engine, "pin 0")[:3]) == pytest.approx((load + 10) * G, rel=1e-6)


def test_a_heavy_load_on_a_chain_swings() -> None:
    """Pushed aside, 10 t on links of 1 kg swing at 1 ms; the chain stays together and gains no energy."""
    engine = chain(10, 1e4, 1e-3)
    push(engine, "load", (2e4, 0, 0))
    advance(engine, 1.0)
    push(engine, "load")
    lowest = -1e4 * G * 3.5 - 10 * G * 1.5
    before = engine.energy() - lowest
    seen = watched(engine, 5.0, Engine.energy, every=10) - lowest
    assert abs(engine.position("load")[0]) > 0.1
    assert engine.gap() < 2e-5
    assert seen.max() < 1.01 * before
    assert seen.min() > 0.9 * before


def test_vortex_mass_ratio_upside_down() -> None:
    """A heavy body at the top of a light chain: the root carries it, ten links hang below."""
    world = World()
    world.body("heavy", mass=1e5, inertia=(1e4,) * 3)
    world.hinge("hanger", None, "heavy", at=(0, 0, 0.5), axis=(0, 1, 0))
    before = "heavy"
    for k in range(10):
        world.body(f"link {k}", mass=1, inertia=(0.01, 0.01, 0.002), pos=(0.15 + 0.3 * k, 0, -0.5))
        world.hinge(f"pin {k}", before, f"link {k}", at=(0.3 * k, 0, -0.5), axis=(0, 1, 0))
        before = f"link {k}"
    engine = compiled(world, 1 / 60)
    start = engine.energy()
    for _ in range(600):
        assert engine.step() == 0
        assert engine.energy() < start + 1.0
    assert engine.gap() < 5e-3
