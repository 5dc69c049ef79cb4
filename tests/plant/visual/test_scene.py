"""What displays are told of a machine: every shape where it is, meshes once, nothing too large."""

import json

import numpy as np
import pytest

from plant import registry
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
from plant.visual.from_world import MOST_TRIANGLES, frames_of, scene_of
from plant.world.world import World

CUBE = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], float)
SIMPLE = {
    "sphere": Sphere(0.1),
    "capsule": Capsule(0.1, 0.2),
    "box": Box(1, 2, 3),
    "cylinder": Cylinder(0.1, 0.2),
    "cone": Cone(0.1, 0.2),
    "plane": Plane(),
    "torus": Torus(0.2, 0.05),
    "link": Link(0.3, 0.1, 0.02),
}


def world_of(*shapes: Shape) -> World:
    world = World()
    for k, shape in enumerate(shapes):
        world.body(f"b{k}")
        world.shape(f"b{k}", shape, at=(k, 0, 0), quat=(0, 1, 0, 0))
    return world


def scene(world: World) -> list[dict]:
    made = scene_of(world.shapes, list(world.bodies), "m")
    return json.loads(json.dumps(made))  # JSON can carry it


@pytest.mark.parametrize("kind", SIMPLE)
def test_a_simple_shape_is_its_kind_and_its_sizes(kind):
    (entry,) = scene(world_of(SIMPLE[kind]))
    values = [v for v in vars(SIMPLE[kind]).values() if isinstance(v, (int, float))]
    assert (entry["body"], entry["kind"], entry["size"]) == ("m.b0", kind, values)
    assert (entry["p"], entry["q"]) == ([0, 0, 0], [0, 1, 0, 0])
    assert {type(x) for key in ("size", "p", "q", "colour") for x in entry[key]} == {float}


def test_every_kind_of_shape_is_known():
    """One that is added must be taught here too."""

    def leaves(kind: type) -> set[type]:
        below = kind.__subclasses__()
        return set().union(*map(leaves, below)) if below else {kind}

    assert leaves(Shape) == {type(s) for s in SIMPLE.values()} | {Hull, Mesh, Field}


def test_a_surface_is_sent_once_for_all_who_show_it():
    hull = Hull(CUBE)
    surface, first, second = scene(world_of(hull, hull))
    assert surface["kind"] == "surface"
    assert first["mesh"] == second["mesh"] == surface["name"]
    assert (first["body"], second["body"], second["p"]) == ("m.b0", "m.b1", [1, 0, 0])
    vertices, faces = np.reshape(surface["vertices"], (-1, 3)), np.reshape(surface["faces"], (-1, 3))
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    assert np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6 == pytest.approx(1.0)  # volume of the cube


def test_a_field_of_heights_is_a_surface_seen_from_above():
    heights = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 2.0]])
    world = World()
    world.shape(None, Field(heights, (0.5, 2.0)))
    surface, entry = scene(world)
    assert entry["body"] == ""
    vertices, faces = np.reshape(surface["vertices"], (-1, 3)), np.reshape(surface["faces"], (-1, 3))
    assert sorted(map(tuple, vertices[:, :2])) == [(x, y) for x in (-0.25, 0.25) for y in (-2.0, 0.0, 2.0)]
    assert {tuple(v) for v in vertices} >= {(-0.25, 0.0, 1.0), (0.25, 2.0, 2.0)}
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    areas = np.cross(b - a, c - a)[:, 2] / 2
    assert (areas > 0).all()
    assert areas.sum() == pytest.approx(0.5 * 4.0)


def test_a_surface_that_is_too_large_is_the_box_around_it():
    n = 1 + int(np.sqrt(MOST_TRIANGLES / 2)) + 1
    world = World()
    world.body("b")
    half_turn = (0, 0, 0, 1)  # about z
    mesh = Field(np.zeros((n, n)), 0.1)
    world.shape("b", mesh, at=(1, 2, 3), quat=half_turn)
    (entry,) = scene(world)
    assert entry["kind"] == "box"
    assert entry["p"] == pytest.approx([1, 2, 3])
    assert entry["size"][:2] == pytest.approx([0.1 * (n - 1)] * 2)


def test_a_box_around_stands_where_the_surface_was():
    """A cube whose corner is the origin, turned by half a turn about z."""
    world = World()
    world.body("b")
    world.shape("b", Hull(CUBE), at=(5, 0, 0), quat=(0, 0, 0, 1))
    from plant.visual import from_world as module

    limit, module.MOST_TRIANGLES = module.MOST_TRIANGLES, 3
    try:
        (entry,) = scene(world)
    finally:
        module.MOST_TRIANGLES = limit
    assert entry["p"] == pytest.approx([4.5, -0.5, 0.5])


@pytest.mark.parametrize("kind", ["double_pendulum", "crane_arm"])
def test_every_body_of_a_machine_can_be_seen(kind):
    plant = registry.create(kind, 1e-3)
    assert {entry["body"] for entry in plant.scene} == set(plant.bodies)
    json.dumps(plant.scene)


def test_shapes_that_collide_are_in_the_scene_of_the_plant():
    from plant.engine.as_plant import as_plant

    world = World()
    world.plane()
    world.solid("ball", Sphere(0.1), density=1000, pos=(0, 0, 1))
    plant = as_plant(world.compile(dt=0.001), "m", scene=({"body": "m.ball", "kind": "flag"},))
    assert [(e["body"], e["kind"]) for e in plant.scene] == [("", "plane"), ("m.ball", "sphere"), ("m.ball", "flag")]


def test_a_joint_is_a_frame_on_its_first_body():
    """The joint's axis points along world y; the body it stands on is turned a quarter about z."""
    world = World()
    quarter = np.array([1, 0, 0, 1]) / np.sqrt(2)
    world.body("base", pos=(1, 0, 0), quat=quarter)
    world.body("arm", pos=(1, 2, 0))
    world.hinge("pin", "base", "arm", at=(1, 2, 3), axis=(0, 1, 0))
    world.ball("foot", None, "base", at=(1, 0, 0))
    pin, foot = json.loads(json.dumps(list(frames_of(world, "m"))))
    assert (pin["kind"], pin["name"], pin["body"], pin["body_b"]) == ("frame", "m.pin", "m.base", "m.arm")
    assert pin["p"] == pytest.approx([2, 0, 3])  # world y is the base's x
    w, x, y, z = pin["q"]
    along = [2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)]  # its z axis
    assert along == pytest.approx([1, 0, 0])
    assert (foot["body"], foot["body_b"], foot["p"]) == ("m.base", "", pytest.approx([0, 0, 0]))


def test_joints_are_in_the_scene_of_the_plant():
    from plant.engine.as_plant import as_plant

    world = World()
    world.solid("ball", Sphere(0.1), density=1000, pos=(0, 0, 1))
    world.hinge("pin", None, "ball", at=(0, 0, 1), axis=(0, 1, 0))
    plant = as_plant(world.compile(dt=0.001), "m", reactions=["pin"])
    assert [e["name"] for e in plant.scene if e["kind"] == "frame"] == ["m.pin"]
    assert "m.pin.pull" in [s.name for s in plant.outputs]
