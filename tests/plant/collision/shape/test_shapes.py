"""Shapes for people: sizes, checks, and mass properties against trimesh and closed forms."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import trimesh
from scipy.integrate import quad

from plant.collision.model import Kind
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
    Sphere,
    Torus,
    mesh_from_file,
)

CUBE = np.array(list(itertools.product((0.0, 1.0), repeat=3)))
EVERY = [
    Sphere(0.5),
    Capsule(0.2, 1.0),
    Box(1, 2, 3),
    Cylinder(0.5, 2.0),
    Cone(0.5, 2.0),
    Hull(CUBE * [1, 2, 3] + 5.0),
    Plane(),
    Torus(1.0, 0.2),
    Link(1.0, 0.3, 0.1),
    Mesh(CUBE, trimesh.creation.box().faces),
    Field(np.arange(12.0).reshape(3, 4), 0.5),
]


def tetra(scale=1.0):
    vertices = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], float) * scale
    return vertices, np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]])


def assert_same(ours, mesh, density, rtol):
    """Against a fine mesh of the same solid by trimesh, whose error is that of the mesh."""
    mass, centre, inertia = ours
    mesh.density = density
    assert mass == pytest.approx(mesh.mass, rel=rtol)
    size = np.ptp(mesh.bounds, axis=0).max()
    np.testing.assert_allclose(centre, mesh.center_mass, atol=rtol * size)
    np.testing.assert_allclose(inertia, mesh.moment_inertia, atol=rtol * np.abs(mesh.moment_inertia).max())


def tube(path, radius, sections=200):
    """A closed pipe about a closed path [n, 3] in the plane z = 0."""
    along = np.roll(path, -1, 0) - np.roll(path, 1, 0)
    along /= np.linalg.norm(along, axis=1)[:, None]
    out = np.column_stack([along[:, 1], -along[:, 0], np.zeros(len(path))])
    angle = np.linspace(0, 2 * np.pi, sections, endpoint=False)
    ring = out[:, None] * np.cos(angle)[None, :, None] + np.array([0, 0, 1.0]) * np.sin(angle)[None, :, None]
    vertices = (path[:, None] + radius * ring).reshape(-1, 3)
    i, j = np.meshgrid(np.arange(len(path)), np.arange(sections), indexing="ij")
    a = (i * sections + j).ravel()
    b = (((i + 1) % len(path)) * sections + j).ravel()
    c = (((i + 1) % len(path)) * sections + (j + 1) % sections).ravel()
    d = (i * sections + (j + 1) % sections).ravel()
    mesh = trimesh.Trimesh(vertices, np.vstack([np.c_[a, b, c], np.c_[a, c, d]]), process=False)
    if mesh.volume < 0:
        mesh.invert()
    return mesh


def test_every_kind_has_a_shape():
    assert [s.kind for s in EVERY] == list(Kind)
    for s in EVERY:
        sizes = s.sizes()
        assert len(sizes) == 4
        assert all(isinstance(x, float) for x in (*sizes, s.bound()))


def test_mass_of_round_shapes_against_fine_meshes():
    make = trimesh.creation
    assert_same(Sphere(0.7).mass_properties(1000.0), make.icosphere(5, 0.7), 1000.0, 3e-3)
    capsule = make.capsule(height=1.3, radius=0.4, count=[128, 128])
    capsule.apply_translation([0, 0, -capsule.bounds.mean(0)[2]])
    assert_same(Capsule(0.4, 1.3).mass_properties(800.0), capsule, 800.0, 2e-3)
    assert_same(Cylinder(0.4, 1.3).mass_properties(500.0), make.cylinder(0.4, 1.3, sections=512), 500.0, 2e-4)
    cone = make.cone(0.4, 1.3, sections=512)
    cone.apply_translation([0, 0, -0.65])
    assert_same(Cone(0.4, 1.3).mass_properties(500.0), cone, 500.0, 2e-4)
    assert_same(Box(1, 2, 3).mass_properties(10.0), make.box([1, 2, 3]), 10.0, 1e-12)
    angle = np.linspace(0, 2 * np.pi, 400, endpoint=False)
    path = np.column_stack([np.cos(angle), np.sin(angle), 0 * angle])
    assert_same(Torus(1.0, 0.3).mass_properties(7800.0), tube(path, 0.3), 7800.0, 1e-3)


def test_mass_of_a_link_against_a_bent_tube():
    angle = np.linspace(-np.pi / 2, np.pi / 2, 300)
    bend = 0.3 * np.column_stack([np.cos(angle), np.sin(angle), 0 * angle])
    path = np.vstack([bend + np.array([0.5, 0, 0]), bend * [-1, -1, 1] - [0.5, 0, 0]])
    assert_same(Link(1.0, 0.3, 0.1).mass_properties(7800.0), tube(path, 0.1), 7800.0, 2e-3)


def test_mass_of_a_capsule_by_quadrature():
    def across(z):
        return np.sqrt(0.4**2 - max(abs(z) - 0.65, 0.0) ** 2)

    def integral(f):
        return quad(lambda z: f(z, across(z)), -1.05, 1.05, points=[-0.65, 0.65])[0]

    mass, centre, inertia = Capsule(0.4, 1.3).mass_properties(2.0)
    assert mass == pytest.approx(2.0 * integral(lambda z, r: np.pi * r * r), rel=1e-9)
    np.testing.assert_array_equal(centre, 0.0)
    assert inertia[2, 2] == pytest.approx(2.0 * integral(lambda z, r: 0.5 * np.pi * r**4), rel=1e-9)
    side = 2.0 * integral(lambda z, r: np.pi * r * r * (0.25 * r * r + z * z))
    assert inertia[0, 0] == pytest.approx(side, rel=1e-9)
    assert inertia[1, 1] == pytest.approx(side, rel=1e-9)


def test_hull_and_mesh_are_exact_and_match_trimesh():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(40, 3)) + np.array([100.0, -50.0, 7.0])
    hull = trimesh.convex.convex_hull(points)
    assert_same(Hull(points).mass_properties(3.0), hull, 3.0, 1e-9)
    assert_same(Mesh(hull.vertices, hull.faces).mass_properties(3.0), hull, 3.0, 1e-9)
    mass, centre, inertia = Mesh(*tetra(2.0)).mass_properties(6.0)
    assert mass == pytest.approx(8.0, rel=1e-14)
    np.testing.assert_allclose(centre, 0.5, rtol=1e-14)
    np.testing.assert_allclose(np.diag(inertia), 8.0 * 4.0 * 2 * 3.0 / 80.0, rtol=1e-13)
    np.testing.assert_allclose(inertia[0, 1], 8.0 * 4.0 / 80.0, rtol=1e-13)
    box = Hull(CUBE * [1, 2, 3] + 50.0)
    np.testing.assert_allclose(box.mass_properties(2.0)[2], Box(1, 2, 3).mass_properties(2.0)[2], atol=1e-10)
    np.testing.assert_allclose(box.middle(), [50.5, 51.0, 51.5])
    np.testing.assert_allclose(box.sizes(), Box(1, 2, 3).sizes())
    assert box.bound() == pytest.approx(Box(1, 2, 3).bound())


def test_bounds_hold_the_surface():
    assert Capsule(0.2, 1.0).bound() == 0.7
    assert Link(1.0, 0.3, 0.1).bound() == pytest.approx(0.9)
    assert Torus(1.0, 0.2).bound() == 1.2
    assert Cone(3.0, 8.0).bound() == Cylinder(3.0, 8.0).bound() == 5.0
    assert Plane().bound() == np.inf
    ground = Field([[0.0, 1.0, 2.0], [3.0, 4.0, 6.0]], (2.0, 0.5))
    assert ground.sizes() == (1.0, 0.5, 3.0, 0.0)
    np.testing.assert_array_equal(ground.middle(), [0.0, 0.0, 3.0])


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Sphere(0.0), "Sphere: radius must be a finite number above 0, not 0.0"),
        (lambda: Sphere(float("nan")), "Sphere: radius"),
        (lambda: Capsule(1.0, -1.0), "Capsule: length"),
        (lambda: Box(1, 2, float("inf")), "Box: z"),
        (lambda: Cylinder("1", 2), "Cylinder: radius"),
        (lambda: Torus(0.1, 0.2), "Torus: wire .* must be thinner than ring"),
        (lambda: Link(1.0, 0.1, 0.2), "Link: wire .* must be thinner than bend"),
        (lambda: Hull(CUBE[:3]), "Hull: has 3 point"),
        (lambda: Hull(CUBE * [1, 1, 0]), "Hull: .* in one plane"),
        (lambda: Mesh(CUBE, [[0, 1, 8]]), r"Mesh: triangle 0 names vertices \[0, 1, 8\]"),
        (lambda: Mesh(CUBE, [[0.0, 1.0, 2.0]]), "Mesh: triangles must be whole numbers"),
        (lambda: Mesh(CUBE, [[0, 1, 2], [0, 1, 1]]), "Mesh: triangle 1 has no area"),
        (lambda: Mesh(CUBE, np.zeros((0, 3), int)), "Mesh: it has no triangles"),
        (lambda: Mesh(*tetra()[:1], tetra()[1][:3]).mass_properties(1.0), "triangle 0: its edge .* is open"),
        (lambda: Mesh(tetra()[0], tetra()[1][:, ::-1]).mass_properties(1.0), "face inwards"),
        (lambda: Field([[0.0, np.nan], [0.0, 0.0]], 1.0), r"Field: height \[0, 1\] is nan"),
        (lambda: Field([1.0, 2.0], 1.0), "Field: heights must be"),
        (lambda: Field(np.zeros((2, 2)), (1.0, 0.0)), "Field: spacing"),
        (lambda: Plane().mass_properties(1.0), "a Plane has no mass"),
        (lambda: Sphere(1.0).mass_properties(0.0), "Sphere: density"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(make, says):
    with pytest.raises(ValueError, match=says):
        make()


@pytest.mark.parametrize("kind", ["stl", "obj", "glb", "ply"])
def test_files_give_back_the_solid(tmp_path, kind):
    path = tmp_path / f"part.{kind}"
    trimesh.creation.box([1, 2, 3]).export(path)
    said = []
    mesh = mesh_from_file(path, lambda part, what: said.append((part, what)))
    assert len(mesh.vertices) == 8
    assert mesh.mass_properties(1.0)[0] == pytest.approx(6.0, rel=1e-6)
    assert [p for p, _ in said] == sorted(p for p, _ in said)
    assert said[-1][0] == 1.0
    assert mesh_from_file(path, scale=0.001).mass_properties(1.0)[0] == pytest.approx(6e-9, rel=1e-6)


def test_a_scene_is_flattened_where_its_parts_stand(tmp_path):
    scene = trimesh.Scene()
    scene.add_geometry(trimesh.creation.box([1, 1, 1]), transform=trimesh.transformations.translation_matrix([5, 0, 0]))
    scene.add_geometry(
        trimesh.creation.box([1, 1, 1]), transform=trimesh.transformations.translation_matrix([-5, 0, 0])
    )
    path = tmp_path / "two.glb"
    scene.export(path)
    mesh = mesh_from_file(path)
    mass, centre, inertia = mesh.mass_properties(1.0)
    assert mass == pytest.approx(2.0)
    np.testing.assert_allclose(centre, 0.0, atol=1e-9)
    assert inertia[1, 1] == pytest.approx(2.0 * (1.0 / 6.0 + 25.0))


def test_bad_files_are_refused_with_file_triangle_and_fix(tmp_path):
    vertices, triangles = tetra()

    def refuse(name, vertices, triangles, says, **options):
        path = tmp_path / name
        path.write_text(
            "".join(f"v {a} {b} {c}\n" for a, b, c in vertices)
            + "".join(f"f {a + 1} {b + 1} {c + 1}\n" for a, b, c in triangles)
        )
        with pytest.raises(ValueError, match=says) as caught:
            mesh_from_file(path, **options)
        assert str(path) in str(caught.value)

    refuse("open.obj", vertices, triangles[:3], "triangle 0: .* is open .*close the holes")
    refuse("inside.obj", vertices, triangles[:, ::-1], "face inwards .*reverse the order")
    refuse("mixed.obj", vertices, np.vstack([triangles[:3], triangles[3][::-1]]), "triangle 3: .*same way")
    refuse("sliver.obj", vertices, np.vstack([triangles, [[0, 1, 1]]]), "triangle 4 has no area")
    wrong = vertices.copy()
    wrong[2, 1] = np.nan
    refuse("nan.obj", wrong, triangles, "must be finite", closed=False)
    refuse("empty.obj", vertices, triangles[:0], "no triangles|cannot be read")
    open_path = tmp_path / "open.obj"
    assert len(mesh_from_file(open_path, closed=False).triangles) == 3
    broken = tmp_path / "broken.stl"
    broken.write_bytes(b"solid nothing")
    with pytest.raises(ValueError, match=r"broken.stl: "):
        mesh_from_file(broken)
    with pytest.raises(FileNotFoundError, match=r"none.stl"):
        mesh_from_file(tmp_path / "none.stl")


@pytest.mark.slow
def test_two_million_triangles_load(tmp_path):
    steps = 1000
    mesh = tube(
        np.column_stack([f(np.linspace(0, 2 * np.pi, steps, endpoint=False)) for f in (np.cos, np.sin, np.zeros_like)]),
        0.3,
        steps,
    )
    path = tmp_path / "big.stl"
    mesh.export(path)
    said = []
    made = mesh_from_file(path, lambda part, what: said.append(what))
    assert len(made.triangles) == 2_000_000
    assert len(made.vertices) == 1_000_000
    assert "welding 2000000 triangles" in said
    assert made.mass_properties(1.0)[0] == pytest.approx(2 * np.pi**2 * 0.09, rel=1e-4)
