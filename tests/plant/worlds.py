"""What the verification tests of the engine share: how a world is stepped and looked at, and bodies that recur."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from plant.collision.shape.shapes import Box
from plant.engine.compile import Engine, compile_world
from plant.world.rotations import conjugate, rotated
from plant.world.world import World

G = 9.80665  # [m/s^2] the gravity of a world that names none
DOWN = (0.0, 0.0, -G)


def compiled(world: World, dt: float = 1e-3, *, contacts: int = 64) -> Engine:
    return compile_world(world, dt, contacts=contacts)


def advance(engine: Engine, seconds: float) -> Engine:
    """Step for so long and see that every step went well."""
    count = round(seconds / engine.content.model.setup.h)
    assert engine.step(count) == 0
    return engine


def watched(engine: Engine, seconds: float, look: Callable[[Engine], float], every: int = 1) -> NDArray[np.float64]:
    """What `look` says after each `every` steps; the state at the start is the first."""
    count = round(seconds / (engine.content.model.setup.h * every))
    seen = [look(engine)]
    for _ in range(count):
        assert engine.step(every) == 0
        seen.append(look(engine))
    return np.array(seen)


def centre(engine: Engine, body: str) -> NDArray[np.float64]:
    """Centre of mass [m]."""
    return engine.content.data.state.pos[engine.index(body)].copy()


def velocity(engine: Engine, body: str) -> NDArray[np.float64]:
    """Of the centre of mass [m/s]."""
    return engine.content.data.state.vel[engine.index(body), :3].copy()


def spin(engine: Engine, body: str) -> NDArray[np.float64]:
    """Angular velocity in world axes [rad/s]."""
    return engine.content.data.state.vel[engine.index(body), 3:].copy()


def attitude(engine: Engine, body: str) -> NDArray[np.float64]:
    return engine.content.data.state.quat[engine.index(body)].copy()


def point(engine: Engine, body: str, local: tuple[float, float, float]) -> NDArray[np.float64]:
    """Where a point of the body's frame is [m]."""
    return engine.position(body) + rotated(attitude(engine, body), np.array(local))


def direction(engine: Engine, body: str, local: tuple[float, float, float]) -> NDArray[np.float64]:
    """Where a direction of the body's frame points."""
    return rotated(attitude(engine, body), np.array(local))


def push(
    engine: Engine, body: str, force: tuple[float, ...] = (0, 0, 0), torque: tuple[float, ...] = (0, 0, 0)
) -> None:
    """A force [N] at the centre of mass and a torque [N m], until changed."""
    engine.content.data.state.wrench[engine.index(body)] = (*force, *torque)


def angular_momentum(engine: Engine, body: str) -> NDArray[np.float64]:
    """About the centre of mass, world axes [kg m^2/s]."""
    b, q = engine.index(body), attitude(engine, body)
    return rotated(q, engine.content.model.body.inertia[b] @ rotated(conjugate(q), spin(engine, body)))


def joint_number(engine: Engine, joint: str) -> int:
    return list(engine.world.joints).index(joint)


def angle(engine: Engine, joint: str) -> float:
    """Free angle of a hinge, unwound, as the last step left it [rad]."""
    return float(engine.content.data.state.angle[joint_number(engine, joint), 0])


def reaction(engine: Engine, joint: str) -> NDArray[np.float64]:
    """What the locked rows of a joint push with [N, N m]: on b along the row, on a against it."""
    return engine.content.data.row.force[joint_number(engine, joint)].copy()


def rows_of(engine: Engine, kind: int) -> Iterator[int]:
    """The bounded rows of a kind in the last step."""
    rows = engine.content.data.bounded
    return (k for k in range(rows.count[0]) if rows.kind[k] == kind)


def rod(length: float, mass: float, thickness: float = 0.02) -> dict[str, object]:
    """A square rod along x: mass and inertia."""
    across = mass * (length**2 + thickness**2) / 12
    return {"mass": mass, "inertia": (mass * thickness**2 / 6, across, across)}


def box(world: World, name: str, size: float, mass: float, at: tuple[float, float, float], **state: object) -> str:
    """A cube."""
    moment = mass * size**2 / 6
    world.body(name, mass=mass, inertia=(moment, moment, moment), pos=at, **state)  # type: ignore[arg-type]
    world.shape(name, Box(size, size, size))
    return name


def about(axis: tuple[float, float, float], turn: float) -> tuple[float, ...]:
    """Quaternion of a turn [rad] about a unit axis."""
    return (np.cos(turn / 2), *(np.sin(turn / 2) * np.array(axis)))


def orders(errors: list[float]) -> NDArray[np.float64]:
    """Observed orders of convergence of errors at steps halved each time."""
    e = np.array(errors)
    return np.log2(e[:-1] / e[1:])
