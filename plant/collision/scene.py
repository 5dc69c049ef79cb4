"""The scene: all arrays of collision detection in one struct, and how it is built from the shapes of a world."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from hilnode.core.jit import kernel
from hilnode.core.struct import I2, Struct, viewer, zeros
from plant.codes import BodyKind
from plant.collision.broadphase.model import BroadPhase, build_broad_phase
from plant.collision.broadphase.pairs import Pairs, new_pairs
from plant.collision.model import Kind, Manifold, Placed, Shapes, new_manifold, new_placed, view_placed, view_shapes
from plant.collision.narrowphase.field import Fields, build_fields
from plant.collision.narrowphase.gjk import ConvexScratch, new_convex_scratch
from plant.collision.narrowphase.ring import RingScratch, new_ring_scratch
from plant.collision.narrowphase.surface_intersection import Crossing, new_crossing
from plant.collision.shape.hull import Hulls, build_hulls
from plant.collision.shape.mesh import Meshes, build_meshes
from plant.collision.shape.shapes import Field, Hull, Mesh, Shape
from plant.collision.transforms import place_ground, place_shapes

EVERYTHING = (1 << 31) - 1  # all groups

S = TypeVar("S", bound=Shape)


class Scene(NamedTuple):
    """What the pair kernels and the broad phase work on."""

    shape: Shapes
    placed: Placed
    hull: Hulls
    mesh: Meshes
    field: Fields
    broad: BroadPhase
    pairs: Pairs
    out: Manifold
    convex: ConvexScratch
    crossing: Crossing
    ring: RingScratch
    table: I2  # [kind, kind] address of the kernel of each pair of kinds, 0 = they never meet
    volumes: int = 0  # address of what tells volumes of overlap (`volume`), 0 = no material asks for it


view_scene = viewer(Scene)


@dataclass(frozen=True)
class Placement:
    """A shape on a body: where it is in the body's frame, what it is made of and whom it meets."""

    shape: Shape
    body: int  # -1 = ground
    at: NDArray[np.float64]  # [3] from the body's centre of mass
    turn: NDArray[np.float64]  # [3, 3]
    material: int
    group: int = 1
    mask: int = EVERYTHING


@kernel
def _place(shapes, placed, pos, rot):
    s, p = view_shapes(shapes), view_placed(placed)
    place_ground(s, p)
    place_shapes(s, p, pos, rot)


def build_scene(
    placements: Sequence[Placement],
    body_kind: NDArray[np.int64],
    pos: NDArray[np.float64],
    rot: NDArray[np.float64],
    *,
    spare: int,
    joints: int,
    excluded: Iterable[tuple[int, int]],
    margin: float,
    table: NDArray[np.int64],
    scenery: str = "tree",
    pairs: int | None = None,
    say: Callable[[float, str], None] | None = None,
) -> Scene:
    """All shapes, with room for `spare` more, and for `joints` new pairs of bodies that do not meet.

    Bodies have their centres of mass at `pos` [b, 3] and are turned by `rot` [b, 3, 3]. `scenery` is the tree for what
    never moves, `pairs` the room for candidates of the broad phase (see there), and `say(part, what)` is told how far
    the trees of the meshes are. A hull or mesh that is placed several times is kept once; fields change, each for
    itself.
    """
    hulls, meshes = _assets(placements, Hull), _assets(placements, Mesh)
    fields = [p.shape for p in placements if isinstance(p.shape, Field)]
    n = len(placements) + spare
    shapes: Shapes = zeros(Shapes, {"at": (n, 3), "turn": (n, 3, 3), "size": (n, 4)}, n)
    shapes.body[:] = -1
    number = {id(s): a for a, s in enumerate(hulls)} | {id(s): a for a, s in enumerate(meshes)}
    fields_seen = 0
    for k, placement in enumerate(placements):
        write_shape(shapes, k, placement)
        if placement.shape.kind in (Kind.HULL, Kind.MESH):
            shapes.asset[k] = number[id(placement.shape)]
        elif placement.shape.kind == Kind.FIELD:
            shapes.asset[k], fields_seen = fields_seen, fields_seen + 1
    placed = new_placed(n)
    kinds = np.append(body_kind, BodyKind.DYNAMIC)
    shapes.body[len(placements) :] = len(body_kind)  # places to spare are on a body that there is not, and switched off
    shapes_record, placed_record = Struct(shapes), Struct(placed)
    _place(shapes_record.address, placed_record.address, pos, rot)
    broad = build_broad_phase(shapes, placed, kinds, excluded=excluded, margin=margin, scenery=scenery, room=pairs)
    shapes.body[len(placements) :] = -1
    behind = np.full(joints, np.iinfo(np.int64).max)
    surfaces = sum(p.shape.kind in (Kind.MESH, Kind.FIELD) for p in placements)
    return Scene(
        shape=shapes,
        placed=placed,
        hull=build_hulls([h.vertices for h in hulls]),
        mesh=build_meshes(
            [(m.vertices - m.middle(), m.triangles) for m in meshes],
            _telling(meshes, say),
            [m.source or f"mesh {k}" for k, m in enumerate(meshes)],
        ),
        field=build_fields([(np.asarray(f.heights) - f.middle()[2], *f.steps()) for f in fields]),
        broad=broad._replace(excluded=np.concatenate([broad.excluded, behind])),
        pairs=new_pairs(len(broad.key_new)),
        out=new_manifold(),
        convex=new_convex_scratch(),
        crossing=new_crossing(sum(len(m.triangles) for m in meshes) if surfaces > 1 else 1),
        ring=new_ring_scratch(),
        table=table,
    )


def _assets(placements: Sequence[Placement], kind: type[S]) -> list[S]:
    """The shapes of one sort in the order of their first placement, without repetition."""
    return list({id(p.shape): p.shape for p in placements if isinstance(p.shape, kind)}.values())


def _telling(meshes: Sequence[Mesh], say: Callable[[float, str], None] | None) -> Callable[[int, float], None] | None:
    """The progress of one mesh as that of all, weighed by their triangles."""
    if say is None or not meshes:
        return None
    first = np.cumsum([0, *(len(m.triangles) for m in meshes)])

    def tell(mesh: int, done: float) -> None:
        name = meshes[mesh].source or f"mesh {mesh}"
        count = len(meshes[mesh].triangles)
        say(float((first[mesh] + done * count) / first[-1]), f"sorting {count} triangles of {name}")

    return tell


def write_shape(shapes: Shapes, k: int, p: Placement) -> None:
    """Shape `k`; the asset of a hull, mesh or field is for the caller to set."""
    shapes.kind[k], shapes.body[k] = p.shape.kind, p.body
    shapes.turn[k] = p.turn
    shapes.at[k] = p.at + p.turn @ p.shape.middle()
    shapes.size[k], shapes.bound[k] = p.shape.sizes(), p.shape.bound()
    shapes.material[k], shapes.group[k], shapes.mask[k] = p.material, p.group, p.mask
    shapes.asset[k], shapes.enabled[k] = -1, 1
