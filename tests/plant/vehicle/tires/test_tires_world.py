"""A machine of 20 t on four turning wheels in the engine: explicit tires at 1 ms under rigid joints."""

import numpy as np
import pytest

from hilnode.core.jit import kernel
from hilnode.core.struct import Struct, viewer
from plant.collision.shape.shapes import Field
from plant.engine.compile import compile_world
from plant.model import view_engine
from plant.soil.ground import Ground, build_ground
from plant.stages import call_stage
from plant.vehicle.tires.model import Tire, Wheel, build_tires, view_tires
from plant.vehicle.tires.step import tire_wrenches
from plant.world.world import World

G = 9.80665
_ground = viewer(Ground)
WHEELS = [f"wheel{k}" for k in range(4)]
CORNERS = [(x, y, 0.5) for x in (-1.3, 1.3) for y in (-1.1, 1.1)]


@kernel
def _drive(engine, tires, ground, wheels, torque, count):
    """Steps of the engine with the tires' forces and a torque on each axle."""
    e, t, g = view_engine(engine), view_tires(tires), _ground(ground)
    s = e.data.state
    for _ in range(count):
        s.wrench[:] = 0.0
        for k in range(wheels.size):
            s.wrench[wheels[k], 4] += torque
        tire_wrenches(t, g, e.scene.field, s.pos, s.quat, s.vel, e.model.setup.h, s.wrench)
        status = call_stage(e.model.stage.step, engine, 1)
        if status != 0:
            return status
    return 0


class Truck:
    """Frame and four wheels on hinges, on a field of its own shape; nothing collides."""

    def __init__(self, heights=None, stiffness=1e6, speed=0.0) -> None:
        world = World()
        world.shape(None, Field(np.zeros((81, 21)) if heights is None else heights, 1.0, low=-3, high=3))
        world.body("frame", mass=19200, inertia=(2e4, 4e4, 4e4), pos=(0, 0, 1.3), vel=(speed, 0, 0))
        for name, at in zip(WHEELS, CORNERS, strict=True):
            world.body(name, mass=200, inertia=(22, 40, 22), pos=at, vel=(speed, 0, 0), spin=(0, speed / 0.484, 0))
            world.hinge(f"{name}_axle", "frame", name, at=at, axis=(0, 1, 0))
        self.engine = compile_world(world, 1e-3)
        tire = Tire(stiffness=stiffness, damping=2e4)
        numbers = [self.engine.index(w) for w in WHEELS]
        self.tires = build_tires([Wheel(n, tire) for n in numbers])
        self.numbers = np.array(numbers)
        self.ground = build_ground(self.engine.content.scene, [0])
        self.records = Struct(self.tires), Struct(self.ground)

    def run(self, seconds: float, torque: float = 0.0) -> None:
        addresses = [r.address for r in self.records]
        steps = round(seconds * 1000)
        assert _drive(self.engine.record.address, *addresses, self.numbers, torque, steps) == 0

    @property
    def state(self):
        return self.engine.content.data.state


@pytest.mark.parametrize("stiffness", [0.8e6, 2e6])
def test_a_20_t_machine_sinks_drives_and_rolls(stiffness: float) -> None:
    truck = Truck(stiffness=stiffness)
    frame = truck.engine.index("frame")
    truck.run(8)
    assert truck.tires.depth == pytest.approx(np.full(4, 5000 * G / stiffness), rel=1e-3)
    assert abs(truck.state.vel).max() < 1e-3
    truck.run(4, torque=2000.0)
    v = truck.state.vel[frame, 0]
    rolls = 0.5 - 5000 * G / stiffness / 3
    drag = 0.015 * 2e4 * G * (0.5 - 5000 * G / stiffness) / rolls
    wanted = 4 * (4 * 2000 / rolls - drag) / (2e4 + 4 * 40 / rolls**2)
    assert v == pytest.approx(wanted, rel=0.03)
    assert abs(truck.state.vel[frame, 1]) < 1e-9  # and straight
    truck.run(2)
    assert truck.state.vel[frame, 0] < v


def test_over_a_bumpy_field_it_stays_up_and_calm() -> None:
    rng = np.random.default_rng(4)
    truck = Truck(heights=rng.uniform(-0.08, 0.08, (81, 21)), speed=4.0)
    highest = 0.0
    for _ in range(60):
        truck.run(0.1, torque=600.0)
        highest = max(highest, truck.tires.load.max())
    frame = truck.engine.index("frame")
    assert np.isfinite(truck.state.pos).all()
    assert 1.0 < truck.state.pos[frame, 2] < 1.5
    assert 1.0 < truck.state.vel[frame, 0] < 12.0
    assert highest < 4 * 5000 * G
