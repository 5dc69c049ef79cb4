"""The same world gives the same bits, in any units the same motion, and a step takes no memory."""

import gc

import numpy as np
import pytest
from numba.core.runtime import _nrt_python as nrt
from numba.core.runtime import rtsys
from worlds import about, advance, angle, box, compiled

from plant.engine.compile import Engine
from plant.world.world import World


def machine(length: float = 1.0, mass: float = 1.0) -> World:
    """A bit of everything: an arm of two links with a motor, friction and a limit, a loop, and a box thrown on a plane.

    `length` and `mass` say how many units make a metre and a kilogram; forces and stiffness follow.
    """
    force, moment = mass * length, mass * length**2
    stiff = mass  # [N/m] = kg/s^2

    def at(x: float, y: float, z: float) -> tuple[float, float, float]:
        return x * length, y * length, z * length

    world = World(gravity=at(0, 0, -9.80665), visible=4e-6 * length, margin=2e-3 * length, slow=1e-4 * length)
    inertia = np.array([0.02, 0.1, 0.1]) * moment
    soft = {"stiffness": 1e9 * stiff}
    world.body("upper", mass=4 * mass, inertia=inertia, pos=at(0.5, 0, 2))
    world.body("lower", mass=2 * mass, inertia=inertia, pos=at(1.5, 0, 2), quat=about((0, 1, 0), 0.3))
    for name, a, b, where in (("shoulder", None, "upper", at(0, 0, 2)), ("elbow", "upper", "lower", at(1, 0, 2))):
        # one number for linear and turning rows: turning ones are never loaded beyond rounding in this plane machine
        world.hinge(name, a, b, at=where, axis=(0, 1, 0), **soft)
    world.ball("strut foot", None, "upper", at=at(0, 0, 2), **soft)
    world.motor("drive", "shoulder", speed=-0.5, force=30 * force * length)
    world.friction("drag", "elbow", force=0.3 * force * length)
    world.limit("stop", "elbow", low=-1.0, high=0.8)
    for actuator in world.actuators.values():
        actuator.stiffness = 1e9 * moment
    world.plane()
    world.material("default", "default", friction=0.4, stiffness=1e7 * stiff)
    box(world, "box", 0.3 * length, 5 * mass, at(-1, 0, 0.2), vel=at(0.8, 0.3, 0), spin=(0.4, -0.2, 0.3))
    return world


def fingerprint(engine: Engine) -> bytes:
    s = engine.content.data.state
    return b"".join(a.tobytes() for a in (s.pos, s.quat, s.vel, s.angle, engine.content.data.row.force))


def test_two_runs_give_the_same_bits() -> None:
    one, other = compiled(machine()), compiled(machine())
    advance(one, 2.0)
    for _ in range(20):
        advance(other, 0.1)  # however the steps are portioned
    assert fingerprint(one) == fingerprint(other)


def test_a_copied_state_goes_on_alike() -> None:
    """All that matters lies in the data: copied over at one time, a second engine follows bit by bit."""
    one, other = advance(compiled(machine()), 0.5), compiled(machine())
    for group, twin in zip(one.content.data, other.content.data, strict=True):
        for array, copy in zip(group, twin, strict=True) if isinstance(group, tuple) else [(group, twin)]:
            copy[...] = array
    advance(one, 0.5)
    advance(other, 0.5)
    assert fingerprint(one) == fingerprint(other)


def test_a_step_takes_no_memory() -> None:
    engine = advance(compiled(machine()), 0.1)
    counted = nrt.memsys_stats_enabled()
    nrt.memsys_enable_stats()
    try:
        gc.collect()
        used = [allocations(engine, steps) for steps in (1, 1000)]
    finally:
        if not counted:
            nrt.memsys_disable_stats()
    assert used[0] == used[1]


def allocations(engine: Engine, steps: int) -> int:
    """Taken by one call that makes so many steps; the call itself wraps its argument."""
    before = rtsys.get_allocation_stats().alloc
    assert engine.step(steps) == 0
    return int(rtsys.get_allocation_stats().alloc - before)


def test_joint_motion_is_the_same_in_other_units() -> None:
    """Millimetres and grams instead of metres and kilograms, a second and a half of the arm: the same motion to
    rounding.
    """
    metres, other = compiled(arm_only()), compiled(arm_only(1e3, 1e3))
    advance(metres, 1.5)
    advance(other, 1.5)
    assert abs(angle(metres, "elbow")) > 0.2
    assert angle(other, "elbow") == pytest.approx(angle(metres, "elbow"), rel=1e-9)
    assert other.position("lower") / 1e3 == pytest.approx(metres.position("lower"), rel=1e-9, abs=1e-9)


def arm_only(length: float = 1.0, mass: float = 1.0) -> World:
    """The arm on ball joints in a plane held by nothing else, so that all rows are linear and scale alike."""
    moment = mass * length**2

    def at(x: float, z: float) -> tuple[float, float, float]:
        return x * length, 0.0, z * length

    world = World(gravity=at(0, -9.80665), visible=4e-6 * length, margin=2e-3 * length, slow=1e-4 * length)
    for name, x, mass_of in (("upper", 0.5, 4), ("lower", 1.5, 2)):
        world.body(name, mass=mass_of * mass, inertia=np.array([0.02, 0.1, 0.1]) * moment, pos=at(x, 2))
    options = {"stiffness": 1e9 * moment}  # turning rows [N m/rad]
    world.joint("shoulder", None, "upper", at=at(0, 2), axis=(0, 1, 0), locked=(3, 4), turning=2, **options)  # type: ignore[arg-type]
    world.joint("elbow", "upper", "lower", at=at(1, 2), axis=(0, 1, 0), locked=(3, 4), turning=2, **options)  # type: ignore[arg-type]
    world.ball("shoulder pin", None, "upper", at=at(0, 2), stiffness=1e9 * mass)
    world.ball("elbow pin", "upper", "lower", at=at(1, 2), stiffness=1e9 * mass)
    world.motor("drive", "shoulder", speed=-0.5, force=30 * moment)
    world.friction("drag", "elbow", force=0.3 * moment)
    world.limit("stop", "elbow", low=-1.0, high=0.8)
    for actuator in world.actuators.values():
        actuator.stiffness = 1e9 * moment
    return world


def test_contact_is_the_same_in_other_units() -> None:
    metres, other = advance(compiled(machine()), 1.0), advance(compiled(machine(1e3, 1e3)), 1.0)
    assert other.position("box") / 1e3 == pytest.approx(metres.position("box"), rel=1e-9, abs=1e-9)
