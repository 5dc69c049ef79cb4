"""Shapes that cannot be, and room that is not there: refused at compile with what, where and how to mend it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import trimesh
from worlds import compiled

from hilnode.core.struct import Struct
from plant.collision.shape.shapes import Box, Hull, Mesh, Sphere, mesh_from_file
from plant.engine.compile import compile_world
from plant.velocity.step import CONTACTS_FULL, FULL, MESHES_FULL, PAIRS_FULL
from plant.world.checks import WorldError
from plant.world.world import World

VERTICES = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0.3, 0.3, 0.8]], float)
TRIANGLES = np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]])
FAR_AWAY = VERTICES + np.array([9.0, 0, 0])


def world_with(mesh: Mesh, kind: str = "dynamic") -> World:
    world = World()
    world.plane()
    world.body("rock", mass=1.0, inertia=(1, 1, 1), kind=kind, pos=(0, 0, 3))
    world.shape("rock", mesh)
    return world


@pytest.mark.parametrize(
    ("vertices", "triangles", "says"),
    [
        (VERTICES, TRIANGLES[:, ::-1], "triangle 0 and 3 more .* face inwards .*reverse"),
        (VERTICES, np.vstack([TRIANGLES[:2], TRIANGLES[2, ::-1]]), "triangle 2: its edge .* same way .*same side"),
        (
            np.vstack([VERTICES, FAR_AWAY]),
            np.vstack([TRIANGLES, TRIANGLES[:, ::-1] + 4]),
            "triangle 4 and 3 more .* face inwards",
        ),
        (
            np.vstack([VERTICES, FAR_AWAY]),
            np.vstack([TRIANGLES[:3], TRIANGLES[:, ::-1] + 4]),
            "triangle 3 and 3 more .* face inwards",
        ),
        ([[0, 0, 0], [1, 0, 0], [0.5, 2e-11, 0]], [[0, 1, 2]], "triangle 0 has no area"),
    ],
    ids=["inside out", "mixed", "one of two parts", "a part beside an open one", "needle"],
)
def test_surfaces_without_a_side_are_no_meshes(vertices: np.ndarray, triangles: np.ndarray, says: str) -> None:
    with pytest.raises(ValueError, match=f"^part.stl: {says}"):
        Mesh(vertices, triangles, "part.stl")


def test_a_cavity_may_face_inwards() -> None:
    """A hollow ball: its inner surface faces its middle."""
    outer, inner = (trimesh.creation.icosphere(subdivisions=2, radius=r) for r in (1.0, 0.5))
    n = len(outer.vertices)
    shell = Mesh(np.vstack([outer.vertices, inner.vertices]), np.vstack([outer.faces, inner.faces[:, ::-1] + n]))
    assert shell.is_closed()
    assert shell.mass_properties(1.0)[0] == pytest.approx(outer.volume - inner.volume)


def test_a_mesh_remembers_its_file(tmp_path: Path) -> None:
    path = tmp_path / "part.stl"
    trimesh.creation.box((1, 1, 1)).export(path)
    mesh = mesh_from_file(path)
    assert mesh.source == str(path)
    mesh.vertices[3, 1] = np.nan
    with pytest.raises(WorldError, match=r"part.stl \(shape 1, on rock\): triangle \d+: vertex 3 is .*export it again"):
        compiled(world_with(mesh))


def test_a_mesh_that_was_turned_inside_out_is_refused_at_compile() -> None:
    mesh = Mesh(VERTICES, TRIANGLES)
    mesh.triangles[:] = mesh.triangles[:, ::-1].copy()
    with pytest.raises(WorldError, match=r"mesh \(shape 1, on rock\): triangle 0 and 3 more .* face inwards"):
        compiled(world_with(mesh))


def test_an_open_mesh_is_for_what_stands() -> None:
    sheet = Mesh(VERTICES, TRIANGLES[:3], "sheet.obj")
    with pytest.raises(WorldError, match=r"sheet.obj \(shape 1, on rock\): triangle \d: .* is open .*close the holes"):
        compiled(world_with(sheet))
    for kind in ("static", "kinematic"):
        assert compiled(world_with(sheet, kind)).step() == 0


@pytest.mark.parametrize("points", [np.zeros((0, 3)), np.zeros((5, 3)), VERTICES[:3], VERTICES * [1, 1, 0]])
def test_empty_hulls_are_refused(points: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"Hull: .*(needs 4|no inside)"):
        Hull(points)


def test_the_trees_of_large_meshes_tell_how_far_they_are() -> None:
    said: list[tuple[float, str]] = []
    ball = trimesh.creation.icosphere(subdivisions=6)
    mesh = Mesh(np.array(ball.vertices), np.array(ball.faces), "ball.stl")
    compile_world(world_with(mesh), 1e-3, progress=lambda part, what: said.append((part, what)))
    parts = [part for part, _ in said]
    assert parts == sorted(parts)
    assert parts[-1] == 1.0
    assert said[0][1] == "sorting 81920 triangles of ball.stl"


def test_a_mesh_that_is_placed_often_is_kept_once() -> None:
    mesh, lump = Mesh(VERTICES, TRIANGLES), Hull(VERTICES)
    world = World()
    world.plane()
    for k in range(20):
        world.solid(f"rock {k}", mesh if k % 2 else lump, density=1000, pos=(2.0 * k, 0, 0.1))
    engine = compiled(world, contacts=200)
    scene = engine.content.scene
    assert len(scene.mesh.triangle) == 4
    assert len(scene.hull.vertex) == 4
    assert engine.step(600) == 0
    heights = [engine.position(f"rock {k}")[2] for k in range(20)]
    assert heights == pytest.approx([0.0] * 20, abs=1e-4)


def crowd(movers: int, cell: float, **options: object) -> tuple[World, int]:
    """A few large boxes over a floor of many small ones."""
    world = World(gravity=(0, 0, 0))
    for x in range(60):
        for y in range(60):
            world.shape(None, Box(cell, cell, cell), at=(x * cell, y * cell, 0))
    for k in range(movers):
        world.solid(
            f"slab {k}", Box(60 * cell, 60 * cell, 0.1), density=10, pos=(30 * cell, 30 * cell, 0.5 * cell + 0.07 + k)
        )
    return world, compile_world(world, 1e-3, **options).step()  # type: ignore[arg-type]


def test_few_movers_among_much_scenery_have_room() -> None:
    """A slab over 3,600 boxes has 3,600 candidates: they were counted by movers alone, 88 of them."""
    world, status = crowd(1, 0.1, contacts=64)
    assert status == 0
    assert compile_world(world, 1e-3, pairs=50).step() == PAIRS_FULL
    assert "(pairs=...)" in FULL[PAIRS_FULL]
    with pytest.raises(WorldError, match="pairs=0: there must be room for one"):
        compile_world(world, 1e-3, pairs=0)


@pytest.mark.parametrize("scenery", ["tree", "octree", "kdtree"])
def test_every_tree_of_scenery_carries_a_ball(scenery: str) -> None:
    world = World()
    for x in range(-3, 4):
        world.shape(None, Box(0.5, 2, 0.2), at=(0.5 * x, 0, -0.1))
    world.solid("ball", Sphere(0.1), density=1000, pos=(0.1, 0, 0.15))
    engine = compile_world(world, 1e-3, scenery=scenery)
    assert engine.step(500) == 0
    assert engine.position("ball")[2] == pytest.approx(0.1, abs=1e-4)


def test_a_tree_of_scenery_that_there_is_not() -> None:
    world = World()
    world.plane()
    with pytest.raises(WorldError, match=r"scenery 'bsp' is not known"):
        compile_world(world, 1e-3, scenery="bsp")


def test_too_few_contacts_say_which_room_is_too_small() -> None:
    world = World()
    world.plane()
    for k in range(4):
        world.solid(f"box {k}", Box(1, 1, 1), density=100, pos=(2 * k, 0, 0.5))
    assert compile_world(world, 1e-3, contacts=8).step() == CONTACTS_FULL


def test_meshes_that_cross_along_too_many_triangles_say_so() -> None:
    """With room for one segment: the contour of two tetrahedra has more."""
    world = World(gravity=(0, 0, 0))
    mesh = Mesh(VERTICES, TRIANGLES)
    world.solid("one", mesh, density=1000)
    world.solid("two", mesh, density=1000, pos=(0.2, 0.1, 0.1))
    engine = compile_world(world, 1e-3)
    work = engine.content.scene.crossing
    assert len(work.group) == 2048
    assert engine.step() == 0
    assert work.lost[0] == 0
    small = engine.content._replace(
        scene=engine.content.scene._replace(crossing=work._replace(group=np.zeros(1, np.int64)))
    )
    engine.record = Struct(small)
    assert engine.step() == MESHES_FULL
    assert work.lost[0] > 0


def test_a_body_joined_to_the_ground_still_meets_it() -> None:
    """A box on an upright slide stands on the floor; one hinged to another body goes through that."""
    world = World()
    world.plane()
    world.solid("guided", Box(1, 1, 1), density=100, pos=(0, 0, 0.55))
    world.prismatic("slide", None, "guided", at=(0, 0, 0), axis=(0, 0, 1))
    engine = compiled(world)
    assert engine.step(1000) == 0
    assert engine.position("guided")[2] == pytest.approx(0.5, abs=1e-3)
