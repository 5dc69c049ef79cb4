"""The narrow phase: the table of pairs, and what the engine makes of the contacts that it lists.

Every pair at random places is the subject of test_every_pair.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement, product
from typing import Any

import coal
import numpy as np
import pytest
import trimesh
from coal_peer import twin
from mesh_scenes import block, grid, touch
from scipy.spatial.transform import Rotation

from hilnode.core.struct import Struct
from plant.collision.model import POINTS, Kind
from plant.collision.pairs.table import known_pairs, pair_table
from plant.collision.scene import Placement, build_scene
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
from plant.engine.compile import Engine
from plant.world.checks import WorldError
from plant.world.world import World

G = 9.80665
KNOWN = sorted(known_pairs())
EVERY = list(combinations_with_replacement(Kind, 2))
STRANGERS = next(p for p in EVERY if p not in KNOWN and Kind.PLANE not in p)  # two kinds that cannot touch
SLACK = {(Kind.BOX, Kind.BOX): 0.0101}  # of the depth
SHAPES: dict[Kind, Shape] = {
    Kind.SPHERE: Sphere(0.1),
    Kind.CAPSULE: Capsule(0.06, 0.2),
    Kind.BOX: Box(0.3, 0.2, 0.1),
    Kind.CYLINDER: Cylinder(0.1, 0.2),
    Kind.CONE: Cone(0.12, 0.2),
    Kind.HULL: Hull(
        [(0.1, 0, 0), (-0.1, 0.1, 0), (-0.1, -0.1, 0.02), (0, 0, 0.15), (0, 0.02, -0.1), (0.05, 0.1, 0.05)]
    ),
    Kind.PLANE: Plane(),
    Kind.TORUS: Torus(0.12, 0.03),
    Kind.LINK: Link(0.15, 0.08, 0.02),
    Kind.MESH: Mesh(*block(0.12, 0.1, 0.08)),
    Kind.FIELD: Field(0.05 * np.random.default_rng(3).standard_normal((12, 12)), 0.15),
}


def names(pair: tuple[Kind, Kind]) -> str:
    return " on ".join(k.name.lower() for k in pair)


@dataclass
class Points:
    """A manifold."""

    point: np.ndarray
    normal: np.ndarray
    depth: np.ndarray
    feature: np.ndarray

    @property
    def deepest(self) -> float:
        return float(self.depth.max(initial=-np.inf))

    @property
    def way_out(self) -> np.ndarray:
        return self.normal[self.depth.argmax()]


class Two:
    """Two shapes of a pair, to be put anywhere and asked for their manifold."""

    def __init__(self, pair: tuple[Kind, Kind], shapes: tuple[Shape, Shape] | None = None) -> None:
        self.shapes = shapes or (SHAPES[pair[0]], SHAPES[pair[1]])
        placements = [Placement(s, b, np.zeros(3), np.eye(3), 0) for b, s in enumerate(self.shapes)]
        eye = np.tile(np.eye(3), (2, 1, 1))
        kinds, at = np.zeros(2, np.int64), np.zeros((2, 3))
        made = build_scene(
            placements, kinds, at, eye, spare=0, joints=0, excluded=(), margin=0.01, table=pair_table([pair])
        )
        self.scene, self.record = made, Struct(made)

    def put(self, s: int, at: np.ndarray, turn: np.ndarray) -> None:
        self.scene.placed.pos[s], self.scene.placed.rot[s] = at, turn

    def points(self, margin: float = 0.0, order: tuple[int, int] = (0, 1)) -> Points:
        n, out = touch(self.record.address, *order, margin), self.scene.out
        assert 0 <= n <= POINTS
        return Points(*(array[:n].copy() for array in (out.point, out.normal, out.depth, out.feature)))

    def far(self) -> float:
        """Distance of the frames beyond which the shapes can not touch."""
        return self.shapes[0].bound() + self.shapes[1].bound()


def random_places(two: Two, seed: int, count: int) -> Iterator[None]:
    """Put the pair anywhere: from one inside the other to just apart; before a plane or field, about its surface."""
    rng = np.random.default_rng(seed)
    ground = 0 if two.shapes[0].kind == Kind.PLANE else 1
    for _ in range(count):
        base, turn = rng.uniform(-5, 5, 3), Rotation.random(random_state=rng).as_matrix()
        way = rng.normal(size=3)
        way *= rng.uniform(0.0, 1.0) * min(two.far(), 9.0) * 1.3 / np.linalg.norm(way)
        if two.shapes[ground].kind in (Kind.PLANE, Kind.FIELD):
            high = rng.uniform(-0.3, 1.5) * two.shapes[1 - ground].bound()
            way = turn @ np.array([*rng.uniform(-0.4, 0.4, 2), high])
        two.put(ground, base, turn)
        two.put(1 - ground, base + way, Rotation.random(random_state=rng).as_matrix())
        yield


@pytest.mark.parametrize("pair", [p for p in KNOWN if p[0] == p[1]], ids=names)
def test_two_of_a_kind_see_each_other_alike(pair: tuple[Kind, Kind]) -> None:
    """Asked the other way round, depths are the same and the normal of the deepest point is turned about."""
    two, seen = Two(pair), 0
    for _ in random_places(two, 7, 100):
        one, other = two.points(), two.points(order=(1, 0))
        if one.deepest <= 0.0 and other.deepest <= 0.0:
            continue
        seen += 1
        assert one.deepest == pytest.approx(other.deepest, abs=1e-6, rel=SLACK.get(pair, 0.0))
        if abs(one.deepest - other.deepest) < 1e-12 and len(one.depth) == len(other.depth) == 1:
            assert one.way_out == pytest.approx(-other.way_out, abs=1e-6)
    assert seen > 15


def rock() -> Mesh:
    """A rough ball of 1,280 triangles, with many hollow edges."""
    ball, rng = trimesh.creation.icosphere(subdivisions=3, radius=0.18), np.random.default_rng(8)
    return Mesh(np.array(ball.vertices) * (1 + 0.05 * rng.standard_normal((642, 1))), np.array(ball.faces))


@pytest.mark.parametrize("kind", [k for k in Kind if k <= Kind.HULL], ids=lambda k: k.name.lower())
def test_a_rough_rock_is_touched_only_where_coal_sees_it_touched(kind: Kind) -> None:
    """Apart by a millimetre or more there is no overlap, and with an overlap there is one.

    To coal a mesh is a surface, so only shapes whose middle is outside the rock can be said to be apart.
    """
    shapes = SHAPES[kind], rock()
    two, theirs = Two((kind, Kind.MESH), shapes), [twin(s) for s in shapes]
    wrong = missed = apart = 0
    for _ in random_places(two, 12, 400):
        places = [coal.Transform3s(r, p) for r, p in zip(two.scene.placed.rot, two.scene.placed.pos, strict=True)]
        request, result = coal.DistanceRequest(), coal.DistanceResult()
        distance = coal.distance(theirs[0], places[0], theirs[1], places[1], request, result)
        deepest = two.points().deepest
        outside = np.linalg.norm(np.subtract(*two.scene.placed.pos)) > shapes[1].bound()
        apart += outside and distance > 1e-3
        wrong += outside and distance > 1e-3 and deepest > 0.0
        missed += distance < -1e-3 and deepest <= 0.0
    assert apart > 30
    assert missed == 0
    assert wrong == 0


def alone(kind: Kind, at: float) -> World:
    """A world of one body of a kind."""
    world = World()
    world.body("one", mass=1, inertia=(0.01, 0.01, 0.01), pos=(0, 0, at))
    world.shape("one", SHAPES[kind])
    return world


@pytest.mark.parametrize("pair", [p for p in EVERY if p not in known_pairs()], ids=names)
def test_a_pair_that_cannot_touch_is_refused_with_a_sentence(pair: tuple[Kind, Kind]) -> None:
    world = alone(pair[0], 1.0)
    world.shape(None, SHAPES[pair[1]])
    expected = rf"{pair[0].name.lower()} on one and {pair[1].name.lower()} on the ground: .*cannot touch.*mask"
    with pytest.raises(WorldError, match=expected):
        world.compile(1e-3)


def test_masks_part_what_cannot_touch() -> None:
    """As the sentence advises: two that need not meet may be in one world."""
    one, other = STRANGERS
    world = alone(one, 1.0)
    world.shape(None, SHAPES[other], group=2, mask=2)
    assert world.compile(1e-3).step(10) == 0


def test_compounds_that_cannot_touch_are_refused_too() -> None:
    """Two bodies, each of two such shapes: the one of the first would pass through the other of the second."""
    world = World()
    for name in ("one", "other"):
        world.body(name, mass=1, inertia=(0.01, 0.01, 0.01))
        for kind in STRANGERS:
            world.shape(name, SHAPES[kind])
    with pytest.raises(WorldError, match="cannot touch"):
        world.compile(1e-3)


# What rests on what


def floors() -> dict[str, Shape]:
    """Level ground at z = 0 by four shapes, and a closed mesh with it on top."""
    return {
        "plane": Plane(),
        "box": Box(4, 4, 0.5),
        "mesh floor": Mesh(*grid(21, 2.0, lambda x, y: 0.0 * x)),
        "closed mesh": Mesh(*block(2.0, 2.0, 0.25)),
        "field": Field(np.zeros((21, 21)), 0.2),
    }


FRUSTUM = Hull([(x * r, y * r, z) for r, z in ((0.12, 0.3), (0.06, 0.5)) for x in (-1, 1) for y in (-1, 1)])
LYING = (math.sqrt(0.5), 0.0, math.sqrt(0.5), 0.0)  # z along x
RESTING: dict[str, tuple[Shape, tuple[float, ...], float]] = {  # shape, turn, height of its origin at rest
    "sphere": (Sphere(0.1), (1, 0, 0, 0), 0.1),
    "box": (Box(0.3, 0.2, 0.1), (1, 0, 0, 0), 0.05),
    "box on its end": (Box(0.3, 0.2, 0.1), LYING, 0.15),
    "lying capsule": (Capsule(0.06, 0.2), LYING, 0.06),
    "standing cylinder": (Cylinder(0.1, 0.15), (1, 0, 0, 0), 0.075),
    "lying cylinder": (Cylinder(0.1, 0.15), LYING, 0.1),
    "cone": (Cone(0.1, 0.2), (1, 0, 0, 0), 0.1),
    "hull": (FRUSTUM, (1, 0, 0, 0), -0.3),
    "torus": (Torus(0.12, 0.03), (1, 0, 0, 0), 0.03),
    "link": (Link(0.15, 0.08, 0.02), (1, 0, 0, 0), 0.02),
    "mesh": (Mesh(*block(0.12, 0.1, 0.08)), (1, 0, 0, 0), 0.08),
}


def can_touch(body: str, floor: str) -> bool:
    pair = sorted((RESTING[body][0].kind, floors()[floor].kind))
    return (pair[0], pair[1]) in known_pairs()


def resting() -> list[Any]:
    """Parameters of a test over what lies on what."""
    both = product(RESTING, floors())
    return [pytest.param(body, floor, id=f"{body} on {floor}") for body, floor in both if can_touch(body, floor)]


def dropped(body: str, floor: str, lift: float, tilt: float) -> Engine:
    """A body above a floor, a little tilted about a level axis that is none of its own."""
    shape, turn, height = RESTING[body]
    world = World()
    world.material("default", "default", friction=0.6)
    ground = floors()[floor]
    world.shape(None, ground, at=(0, 0, -0.25 if floor in ("box", "closed mesh") else 0.0))
    lean = Rotation.from_rotvec(tilt * np.array([0.8, 0.6, 0.0])) * Rotation.from_quat([*turn[1:], turn[0]])
    x, y, z, w = lean.as_quat()
    mass, com, inertia = shape.mass_properties(800)
    inertia = 0.5 * (inertia + inertia.T)
    world.body("it", mass=mass, com=com, inertia=inertia, pos=(0.013, 0.027, height + lift), quat=(w, x, y, z))
    world.shape("it", shape)
    return world.compile(1e-3, contacts=64)


@pytest.mark.parametrize(("body", "floor"), resting())
def test_a_body_of_every_kind_comes_to_rest_at_its_height(body: str, floor: str) -> None:
    """Dropped by 2 cm and tilted by 2 degrees, it ends up level, its lowest point at z = 0 within the compliance of
    the contact (its weight over 1e8 N/m: less than a micrometre) and what the solver calls a visible gap (4 um).
    """
    engine = dropped(body, floor, 0.02, 0.035)
    assert engine.step(2000) == 0
    speed = engine.content.data.state.vel[0].copy()
    if body in ("sphere", "lying capsule", "lying cylinder"):  # these may roll on
        assert abs(speed[2]) < 1e-3
    else:
        assert np.abs(speed).max() < 1e-3
    assert engine.position("it")[2] == pytest.approx(RESTING[body][2], abs=1e-5)


@pytest.mark.parametrize(("body", "floor"), resting())
def test_warm_starts_survive_at_rest(body: str, floor: str) -> None:
    """What lies still is touched by the same features in every step: no contact is new, so impulses carry over.

    Their sum is the weight times the step.
    """
    engine = dropped(body, floor, 0.0, 0.0)
    assert engine.step(200) == 0
    contact = engine.content.data.contact
    before = sorted(contact.feature[: contact.count[0]])
    assert before
    for _ in range(20):
        assert engine.step() == 0
        assert contact.new[0] == 0
        assert sorted(contact.feature[: contact.count[0]]) == before
    n = contact.count[0]
    side = np.where(contact.body[:n, 0] == 0, 1.0, -1.0)  # the normal pushes the first body and pulls the second
    push = (side * contact.impulse[:n, 0] * contact.normal[:n, 2]).sum() / 1e-3
    assert push == pytest.approx(engine.content.model.body.mass[0] * G, rel=1e-3)


@pytest.mark.parametrize("floor", floors())
@pytest.mark.parametrize("heading", [0.0, 0.3])
def test_a_box_that_slides_slowly_keeps_its_features(floor: str, heading: float) -> None:
    """Four corners, over the joints between triangles and cells too: the numbers stay, so no contact is ever new."""
    engine = dropped("box", floor, 0.0, 0.0)
    engine.content.model.material.friction[:] = engine.content.model.material.stiction[:] = 0.0
    assert engine.step(50) == 0
    engine.content.data.state.vel[0, :2] = 0.2 * math.cos(heading), 0.2 * math.sin(heading)
    contact = engine.content.data.contact
    seen = set()
    for _ in range(1000):
        assert engine.step() == 0
        seen.add(tuple(sorted(contact.feature[: contact.count[0]])))
    assert engine.position("it")[0] == pytest.approx(0.013 + 0.2 * math.cos(heading), abs=1e-4)
    assert len(seen) == 1
    assert len(seen.pop()) == 4


@pytest.mark.parametrize("kind", [Kind.HULL, Kind.MESH])
def test_a_solid_with_corners_is_taken_as_it_says_it_is(kind: Kind) -> None:
    """The mass and the inertia that a shape works out for itself are good enough for a body."""
    world = World()
    world.solid("symmetric", FRUSTUM if kind == Kind.HULL else SHAPES[kind], density=800)
    world.solid("any", SHAPES[kind], density=800, pos=(1, 0, 0))
    assert world.compile(1e-3).step(10) == 0


# Compounds, groups, joints, materials


def test_the_parts_of_a_compound_carry_by_the_law_of_the_lever() -> None:
    """A bar on two balls at -0.4 m and 0.2 m from its centre of mass: they bear 1/3 and 2/3 of the weight."""
    world = World()
    world.plane()
    world.body("bar", mass=6, inertia=(0.1, 0.5, 0.5), pos=(0, 0, 0.1))
    world.shape("bar", Sphere(0.1), at=(-0.4, 0, 0))
    world.shape("bar", Sphere(0.1), at=(0.2, 0, 0))
    engine = world.compile(1e-3)
    assert engine.step(500) == 0
    contact = engine.content.data.contact
    assert contact.count[0] == 2
    left, right = sorted(zip(contact.point[:2, 0], contact.impulse[:2, 0] / 1e-3, strict=True))
    assert left == pytest.approx((-0.4, 6 * G / 3), rel=1e-3)
    assert right == pytest.approx((0.2, 6 * G * 2 / 3), rel=1e-3)


def test_the_centre_of_mass_of_a_compound_need_not_be_its_origin() -> None:
    """A hammer of a handle and a head, `com` away from the origin of its frame, lies with both at their radii."""
    world = World()
    world.plane()
    world.body("hammer", mass=2, inertia=(0.01, 0.02, 0.02), com=(0.25, 0, 0.02), pos=(0, 0, 0.1))
    world.shape("hammer", Capsule(0.02, 0.3), at=(0.1, 0, 0), quat=LYING)
    world.shape("hammer", Box(0.1, 0.12, 0.1), at=(0.3, 0, 0.03))
    engine = world.compile(1e-3)
    assert engine.step(1500) == 0
    assert engine.position("hammer")[2] == pytest.approx(0.02, abs=1e-5)  # head: 0.03 - 0.05 = -0.02, as the handle


def test_parts_of_one_body_do_not_touch_each_other() -> None:
    world = World(gravity=(0, 0, 0))
    world.body("lump", mass=1)
    for x in (0.0, 0.05, 0.1):
        world.shape("lump", Box(0.2, 0.2, 0.2), at=(x, 0, 0))
    engine = world.compile(1e-3)
    assert engine.step(10) == 0
    assert engine.content.data.contact.count[0] == 0
    assert not engine.content.data.state.vel.any()


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [
        ((1, 1), (1, 1), True),
        ((1, 2), (2, 1), True),
        ((1, 1), (2, 2), False),
        ((1, 3), (2, 2), False),  # only one of the two wants to
        ((2, 2), (1, 3), False),
        ((5, 2), (2, 4), True),  # one common bit each way is enough
        ((1, 0), (1, 1), False),
    ],
)
def test_two_shapes_meet_if_each_is_in_the_mask_of_the_other(
    one: tuple[int, int], other: tuple[int, int], meet: bool
) -> None:
    """A ball on a table stays, or falls as if there were none: by g h^2 n (n + 1) / 2 in n steps (closed form)."""
    world = World()
    world.shape(None, Box(2, 2, 0.2), at=(0, 0, -0.1), group=one[0], mask=one[1])
    world.body("ball", mass=1, inertia=(0.01, 0.01, 0.01), pos=(0, 0, 0.1))
    world.shape("ball", Sphere(0.1), group=other[0], mask=other[1])
    engine = world.compile(1e-3)
    assert engine.step(300) == 0
    fallen = 0.0 if meet else G * 1e-6 * 300 * 301 / 2
    assert engine.position("ball")[2] == pytest.approx(0.1 - fallen, abs=1e-5)


@pytest.mark.parametrize("joined", [True, False])
def test_neighbours_in_a_joint_do_not_touch(joined: bool) -> None:
    """Overlapping arms are left alone by each other if a hinge joins them, but the arm after the next is not."""
    world = World(gravity=(0, 0, 0))
    for k in range(3):
        world.body(f"arm{k}", mass=1, inertia=(0.01, 0.01, 0.01), pos=(0.28 * k, 0, 0))
        world.shape(f"arm{k}", Box(0.3, 0.1, 0.1))
    if joined:
        for k in range(2):
            world.hinge(f"pin{k}", f"arm{k}", f"arm{k + 1}", at=(0.14 + 0.28 * k, 0, 0), axis=(0, 1, 0))
    engine = world.compile(1e-3)
    assert engine.step() == 0
    contact = engine.content.data.contact
    touching = {tuple(sorted(contact.body[c])) for c in range(contact.count[0])}
    assert touching == (set() if joined else {(0, 1), (1, 2)})


def test_the_next_but_one_in_a_chain_is_touched() -> None:
    world = World(gravity=(0, 0, 0))
    for k, x in enumerate((0.0, 0.15, 0.28)):
        world.body(f"arm{k}", mass=1, inertia=(0.01, 0.01, 0.01), pos=(x, 0, 0))
        world.shape(f"arm{k}", Box(0.3, 0.1, 0.1))
    world.hinge("a", "arm0", "arm1", at=(0.1, 0, 0), axis=(0, 1, 0))
    world.hinge("b", "arm1", "arm2", at=(0.2, 0, 0), axis=(0, 1, 0))
    engine = world.compile(1e-3)
    assert engine.step() == 0
    contact = engine.content.data.contact
    assert {tuple(sorted(contact.body[c])) for c in range(contact.count[0])} == {(0, 2)}


def test_each_pair_of_materials_has_its_own_friction() -> None:
    """Boxes at 2 m/s on ice and on rubber stop after v^2 / (2 mu g), each with the friction of its pair."""
    friction = {("steel", "ice"): 0.05, ("wood", "ice"): 0.1, ("steel", "rubber"): 0.4, ("wood", "rubber"): 0.8}
    world = World()
    for pair, mu in friction.items():
        world.material(*pair, friction=mu)
    for k, ground in enumerate(("ice", "rubber")):
        world.shape(None, Box(100, 2, 1), at=(0, 10.0 * k, -0.5), material=ground)
    for k, (kind, ground) in enumerate(friction):
        name, y = f"{kind} on {ground}", 10.0 * (ground == "rubber") + 0.5 * (k % 2)
        world.solid(name, Box(0.3, 0.3, 0.05), density=500, material=kind, pos=(0, y, 0.025), vel=(2, 0, 0))
    engine = world.compile(1e-3)
    assert engine.step(5000) == 0
    for (kind, ground), mu in friction.items():
        assert engine.position(f"{kind} on {ground}")[0] == pytest.approx(2**2 / (2 * mu * G), rel=2e-3, abs=2e-3)
