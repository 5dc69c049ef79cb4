"""Checks at compile: invalid steps, bodies, meshes and hulls, and pairs of shapes that cannot touch, are refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from hilnode.core.signals import nearest
from plant.codes import Solver, Stepper
from plant.collision.model import Kind
from plant.collision.pairs.table import known_pairs
from plant.collision.shape.hull import CORNERS
from plant.collision.shape.shapes import Hull, Mesh
from plant.collision.volume.volume import KNOWN
from plant.contact_law.model import Law
from plant.world.bodies import Body, Placed
from plant.world.checks import WorldError
from plant.world.materials import Material
from plant.world.world import World

STEPPERS = {s.name.lower(): s for s in Stepper}
SOLVERS = {s.name.lower(): s for s in Solver}


def check_world(world: World, dt: float, stepper: str, solver: str) -> None:
    """Refuse a step, gravity, names of methods, bodies and joints that cannot be."""
    if not (np.isfinite(dt) and dt > 0):
        raise WorldError(f"dt = {dt}: a step must take a positive number of seconds")
    if np.shape(world.gravity) != (3,) or not np.isfinite(np.array(world.gravity, float)).all():
        raise WorldError(f"gravity {tuple(world.gravity)} must be three finite numbers")
    for what, given, known in (("stepper", stepper, STEPPERS), ("solver", solver, SOLVERS)):
        if given not in known:
            raise WorldError(f"{what} {given!r} is not known: {nearest(given, list(known))}")
    for body in world.bodies.values():
        check_body(body)
    for j in world.joints.values():
        if not any(n is not None and world.bodies[n].kind == "dynamic" for n in (j.a, j.b)):
            raise WorldError(f"joint {j.name!r} connects nothing that can move")


def check_meshes(world: World) -> None:
    """Refuse meshes that are not sound, and open ones on bodies that move by themselves: these must have an inside."""
    seen: dict[int, bool] = {}
    for k, s in enumerate(world.shapes):
        if not isinstance(s.shape, Mesh):
            continue
        where = f"{s.shape.source or 'mesh'} (shape {k}, on {s.body or 'the ground'})"
        if id(s.shape) not in seen:
            if fault := s.shape.fault():
                raise WorldError(f"{where}: {fault}")
            seen[id(s.shape)] = s.shape.is_closed()
        if not seen[id(s.shape)] and s.body is not None and world.bodies[s.body].kind == "dynamic":
            raise WorldError(f"{where}: {s.shape.fault(closed=True)}; a body that moves must have an inside")


def check_hulls(world: World) -> None:
    """Refuse hulls with more corners than meshes and fields can tell apart, if they meet any."""
    surfaces = [s for s in world.shapes if s.shape.kind in (Kind.MESH, Kind.FIELD)]
    for k, s in enumerate(world.shapes):
        if not isinstance(s.shape, Hull) or len(s.shape.vertices) <= CORNERS:
            continue
        if any(s.group & o.mask and o.group & s.mask and s.body != o.body for o in surfaces):
            raise WorldError(
                f"hull (shape {k}, on {s.body or 'the ground'}): has {len(s.shape.vertices)} corners, but meshes and "
                f"fields touch hulls of {CORNERS} at most; leave out points that hardly change its form, or part them "
                "by masks"
            )


@contextmanager
def refusing() -> Iterator[None]:
    """Raise a ValueError from the making of a shape as a WorldError."""
    try:
        yield
    except WorldError:
        raise
    except ValueError as error:
        raise WorldError(str(error)) from error


def check_body(body: Body) -> None:
    """Refuse a mass and an inertia that no rigid body has."""
    if body.kind != "dynamic":
        return
    if not (np.isfinite(body.mass) and body.mass > 0):
        raise WorldError(f"body {body.name!r}: mass {body.mass} kg must be positive; for a fixed one use kind='static'")
    tensor = body.inertia
    if np.isfinite(tensor).all() and not np.allclose(tensor, tensor.T, rtol=1e-9, atol=1e-12 * abs(np.trace(tensor))):
        raise WorldError(f"body {body.name!r}: its inertia tensor is not symmetric")
    moments = np.linalg.eigvalsh(tensor) if np.isfinite(tensor).all() else np.diag(tensor)
    if not (np.isfinite(moments).all() and moments[0] > 0):
        raise WorldError(f"body {body.name!r}: principal moments {moments.tolist()} kg m^2 must be positive")
    if moments[2] > (moments[0] + moments[1]) * (1 + 1e-9):
        raise WorldError(
            f"body {body.name!r}: principal moments {moments.tolist()} break the triangle rule: no rigid body has them"
        )


def pairs_of_kinds(world: World, spare: int) -> set[tuple[Kind, Kind]]:
    """Pairs of kinds, lower first, that may touch in this world. Refuses pairs of shapes that cannot."""
    kinds, known = set(), known_pairs()
    for one, other in _pairs_that_meet(world):
        key = (one.shape.kind, other.shape.kind)
        if key not in known and one.body != other.body:
            raise WorldError(
                f"{_both(one, other)}: such shapes cannot touch; give them masks that part them, or use hulls"
            )
        kinds.add(key)
    return kinds | _kinds_to_come(world, spare)


def overlapping(world: World, spare: int) -> set[tuple[Kind, Kind]]:
    """Pairs of kinds, lower first, that may touch by volume. Refuses pairs of shapes whose overlap is not known."""
    kinds = set()
    for one, other in _pairs_that_meet(world):
        if world.materials.get((one.material, other.material), Material()).law.law != Law.FOUNDATION:
            continue
        key = (one.shape.kind, other.shape.kind)
        if key not in KNOWN and one.body != other.body:
            raise WorldError(
                f"{_both(one, other)}: law 'foundation' of {one.material!r} on {other.material!r} needs the volume "
                "that they have in common, which is not known for such shapes; make one of them of hulls, give them "
                "masks that part them, or a material with another law"
            )
        kinds.add(key)
    return kinds | {key for key in _kinds_to_come(world, spare) if key in KNOWN}


def _both(one: Placed, other: Placed) -> str:
    return " and ".join(f"{s.shape.kind.name.lower()} on {s.body or 'the ground'}" for s in (one, other))


def _kinds_to_come(world: World, spare: int) -> set[tuple[Kind, Kind]]:
    """Pairs of kinds that shapes added to a running engine may make."""
    simple = [k for k in Kind if k < Kind.HULL] if spare else []
    return {(min(a, b), max(a, b)) for a in simple for b in [*simple, *(s.shape.kind for s in world.shapes)]}


def _pairs_that_meet(world: World) -> Iterator[tuple[Placed, Placed]]:
    """Pairs of shapes that may touch, the lower kind first; of many that are alike in all but their place, some."""
    moves = {n: b.kind == "dynamic" for n, b in world.bodies.items()}
    seen: dict[tuple[object, ...], Placed] = {}
    for s in world.shapes:  # two of a sort are enough
        sort: tuple[object, ...] = (s.shape.kind, s.body is not None and moves[s.body], s.group, s.mask, s.material)
        if sort in seen and seen[sort].body != s.body:
            sort = (*sort, "another")
        seen.setdefault(sort, s)
    for one in seen.values():
        for other in seen.values():
            if one.shape.kind > other.shape.kind or not (one.group & other.mask and other.group & one.mask):
                continue
            if any(s.body is not None and moves[s.body] for s in (one, other)):
                yield one, other
