"""The visual description of a world: each of its shapes, and the frames of its joints, as entries (entries.py)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from plant.collision.shape.shapes import (
    Box,
    Capsule,
    Cone,
    Cylinder,
    Field,
    Hull,
    Link,
    Mesh,
    Plane,
    Shape,
    Sphere,
    Torus,
)
from plant.visual.entries import COLOURS, GROUND_COLOUR, Entry, entry
from plant.world.bodies import Placed
from plant.world.rotations import conjugate, product, rotated
from plant.world.world import World

MOST_TRIANGLES = 20_000  # of one surface
MOST_IN_ALL = 100_000


def scene_of(shapes: Iterable[Placed], bodies: Sequence[str], machine: str) -> tuple[Entry, ...]:
    """Every shape of a world; `bodies` give each its colour, `machine` is the first word of their names."""
    surfaces: dict[int, Entry] = {}  # by the shape they are of
    made: list[Entry] = []
    triangles = 0
    for placed in shapes:
        shape = placed.shape
        colour = GROUND_COLOUR if placed.body is None else COLOURS[bodies.index(placed.body) % len(COLOURS)]
        body = "" if placed.body is None else f"{machine}.{placed.body}"
        where = {"p": placed.at.tolist(), "q": placed.quat.tolist(), "colour": colour}
        if (words := _plain(shape)) is not None:
            made.append(entry(body, *words, **where))
            continue
        vertices, faces = _surface(shape)
        if id(shape) not in surfaces:
            if len(faces) > MOST_TRIANGLES or triangles + len(faces) > MOST_IN_ALL:
                made.append(_box_around(body, vertices, placed, colour))
                continue
            triangles += len(faces)
            surfaces[id(shape)] = {
                "kind": "surface",
                "name": f"surface{len(surfaces)}",
                "vertices": vertices.ravel().tolist(),
                "faces": faces.ravel().tolist(),
            }
        made.append(entry(body, "mesh", (), **where) | {"mesh": surfaces[id(shape)]["name"]})
    return (*surfaces.values(), *made)


def frames_of(world: World, machine: str) -> Iterator[Entry]:
    """Every joint of a world: its frame on the first of its bodies, or on the second if the first is the ground."""
    for joint in world.joints.values():
        on, other = (joint.a, joint.b) if joint.a is not None else (joint.b, joint.a)
        at = joint.at if on == joint.a or joint.at_b is None else joint.at_b
        p, q = np.asarray(at, float), joint.quat
        if on is not None:
            body = world.bodies[on]
            back = conjugate(body.quat)
            p, q = rotated(back, p - body.pos), product(back, q)
        yield {
            "kind": "frame",
            "name": f"{machine}.{joint.name}",
            "body": f"{machine}.{on}" if on is not None else "",
            "body_b": f"{machine}.{other}" if other is not None else "",
            "p": [float(x) for x in p],
            "q": [float(x) for x in q],
        }


def _plain(shape: Shape) -> tuple[str, tuple[float, ...]] | None:
    """Kind and size of a shape that a few numbers describe."""
    match shape:
        case Sphere():
            return "sphere", (shape.radius,)
        case Capsule():
            return "capsule", (shape.radius, shape.length)
        case Box():
            return "box", (shape.x, shape.y, shape.z)
        case Cylinder():
            return "cylinder", (shape.radius, shape.height)
        case Cone():
            return "cone", (shape.radius, shape.height)
        case Plane():
            return "plane", ()
        case Torus():
            return "torus", (shape.ring, shape.wire)
        case Link():
            return "link", (shape.length, shape.bend, shape.wire)
    return None


def _surface(shape: Shape) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Vertices and triangles in the coordinates that the shape was given in."""
    if isinstance(shape, (Hull, Mesh)):
        return shape.vertices, shape.triangles
    if isinstance(shape, Field):
        return _grid(shape)
    raise TypeError(
        f"a {type(shape).__name__} has no place in a scene yet: teach plant/visual/from_world.py what it looks like"
    )


def _grid(shape: Field) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """A field of heights as two triangles per cell, seen from above counter-clockwise."""
    heights = np.asarray(shape.heights, float)
    nx, ny = heights.shape
    dx, dy = shape.steps()
    x, y = np.meshgrid((np.arange(nx) - 0.5 * (nx - 1)) * dx, (np.arange(ny) - 0.5 * (ny - 1)) * dy, indexing="ij")
    vertices = np.stack([x, y, heights], axis=-1).reshape(-1, 3)
    a = (np.arange(nx - 1)[:, None] * ny + np.arange(ny - 1)).ravel()
    faces = np.concatenate([np.stack([a, a + ny, a + ny + 1], 1), np.stack([a, a + ny + 1, a + 1], 1)])
    return vertices, faces


def _box_around(body: str, vertices: NDArray[np.float64], placed: Placed, colour: Sequence[float]) -> Entry:
    low, high = vertices.min(0), vertices.max(0)
    middle = rotated(placed.quat, 0.5 * (low + high)) + placed.at
    return entry(body, "box", high - low, p=middle, q=placed.quat, colour=colour)
